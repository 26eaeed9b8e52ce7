//! Decides what a group is in Arrow: list, map, variant, file reference or plain struct.
//!
//! Spec: LogicalTypes.md, "Nested Types", with the backward-compatibility rules. Used by `to_arrow`
//! and by `projection`, which must agree on what the element of a list is. An annotation whose
//! structure the group lacks is ignored: the group is a struct, and nothing is lost.
//! Trap: the five rules for lists are tried in order, on the group as it is in the file, not on
//! what is left of it after a projection. A group is looked at once for each node below it, so the
//! time must not depend on its number of children, and no element may be decoded.

use super::annotation::{self, GroupAnnotation};
use super::node::Node;
use crate::format::{ConvertedType, LogicalKind, Type};

/// The kind of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Group<'a> {
    /// Fields side by side.
    Struct,
    /// A list.
    List(ListGroup<'a>),
    /// A map.
    Map(Map<'a>),
    /// A VARIANT of specification version 1: a struct with `metadata`.
    Variant,
    /// A FILE reference: a struct.
    File,
}

/// A group that is a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ListGroup<'a> {
    /// The repeated node.
    pub(super) repeated: Node<'a>,
    /// Which node the element is.
    pub(super) element: Element,
}

/// Which node the element of a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// The repeated node itself, never null.
    Repeated,
    /// The only child of the repeated node.
    Child,
}

/// A group that is a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Map<'a> {
    /// The repeated group of keys and values.
    pub(super) entries: Node<'a>,
    pub(super) key: Node<'a>,
    pub(super) value: Node<'a>,
}

/// A rule for lists: when it holds, and what the element is then. `g` is the annotated group, `r`
/// its repeated child.
struct ListRule {
    holds: fn(g: Node<'_>, r: Node<'_>) -> bool,
    element: Element,
}

/// LogicalTypes.md, "Backward-compatibility rules", in order; the first that holds decides.
#[rustfmt::skip]
const LIST_RULES: [ListRule; 5] = [
    // 1. The repeated node is a leaf.
    ListRule { holds: |_, r| r.is_leaf(),                                       element: Element::Repeated },
    // 2. A group of several fields.
    ListRule { holds: |_, r| r.children().take(2).count() != 1,                 element: Element::Repeated },
    // 3. A group of one field that is repeated too.
    ListRule { holds: |_, r| r.children().all(Node::is_repeated),               element: Element::Repeated },
    // 4. A group of one field with one of two legacy names.
    ListRule { holds: |g, r| r.name_bytes() == b"array" || is_tuple_of(r, g),   element: Element::Repeated },
    // 5. Otherwise.
    ListRule { holds: |_, _| true,                                              element: Element::Child },
];

fn is_tuple_of(repeated: Node<'_>, group: Node<'_>) -> bool {
    repeated.name_bytes().strip_suffix(b"_tuple") == Some(group.name_bytes())
}

/// The kind of the group `g`, without its own repetition.
pub(super) fn group(g: Node<'_>) -> Group<'_> {
    let found = match annotation::of_group(g.head()) {
        Some(GroupAnnotation::List) => list(g),
        Some(GroupAnnotation::Map) => map(g),
        Some(GroupAnnotation::Variant) => variant(g),
        Some(GroupAnnotation::File) => file(g),
        None => None,
    };
    found.unwrap_or(Group::Struct)
}

/// Whether a node is a VARIANT of the version that is known.
pub(crate) fn is_variant(node: Node<'_>) -> bool {
    !node.is_leaf() && group(node) == Group::Variant
}

/// Whether a node is a FILE.
#[cfg(feature = "check")]
pub(crate) fn is_file(node: Node<'_>) -> bool {
    !node.is_leaf() && group(node) == Group::File
}

/// The element of a list of three levels.
pub(crate) fn element_of_list(node: Node<'_>) -> Option<Node<'_>> {
    match group(node) {
        Group::List(ListGroup { repeated, element: Element::Child }) => repeated.children().next(),
        _ => None,
    }
}

/// The key and the value of a map.
pub(crate) fn key_and_value(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    match group(node) {
        Group::Map(map) => Some((map.key, map.value)),
        _ => None,
    }
}

/// The only child, if it is REPEATED.
fn repeated_child(g: Node<'_>) -> Option<Node<'_>> {
    let mut children = g.children();
    let child = children.next()?;
    (children.next().is_none() && child.is_repeated()).then_some(child)
}

fn list(g: Node<'_>) -> Option<Group<'_>> {
    let repeated = repeated_child(g)?;
    let rule = LIST_RULES.iter().find(|rule| (rule.holds)(g, repeated))?;
    Some(Group::List(ListGroup { repeated, element: rule.element }))
}

/// Positions decide, not names: the first child is the key, the second the value. Without a value
/// the map is a set, and reads as the list of its keys. An OPTIONAL key is against the rules, but
/// Presto and Athena wrote such.
fn map(g: Node<'_>) -> Option<Group<'_>> {
    let entries = repeated_child(g)?;
    // By their leaves: there may be any number of groups without a leaf between them.
    let leaves = entries.leaves();
    let key = child_above(entries, leaves.start).filter(|_| !leaves.is_empty())?;
    let after_key = key.leaves().end;
    if after_key == leaves.end {
        return list(g);
    }
    let value = child_above(entries, after_key)?;
    let is_map = value.leaves().end == leaves.end && !key.is_repeated();
    is_map.then_some(Group::Map(Map { entries, key, value }))
}

/// The child of `group` that is, or has below it, this leaf.
fn child_above(group: Node<'_>, leaf: usize) -> Option<Node<'_>> {
    let mut node = group.schema().leaf_node(leaf).ok()?;
    loop {
        let parent = node.parent()?;
        if parent == group {
            return Some(node);
        }
        node = parent;
    }
}

/// VARIANT children are found by name, and there are three names. A newer version than ours reads
/// as the struct that it is in the file.
fn variant(g: Node<'_>) -> Option<Group<'_>> {
    if g.children().nth(3).is_some() {
        return None;
    }
    let mut has_metadata = false;
    for child in g.children() {
        match child.name_bytes() {
            b"metadata" => has_metadata = is_plain_bytes(child),
            b"value" if is_plain_bytes(child) => {}
            b"typed_value" => {}
            _ => return None,
        }
    }
    has_metadata.then_some(Group::Variant)
}

/// FILE children are found by name, any of them may be missing, and others may not be there.
fn file(g: Node<'_>) -> Option<Group<'_>> {
    let fits = |child: Node<'_>| {
        let head = child.head();
        let is_string = head.logical() == LogicalKind::String
            || head.logical() == LogicalKind::Absent
                && head.converted_type() == Some(ConvertedType::Utf8);
        !child.is_repeated()
            && match child.name_bytes() {
                b"uri" | b"content_type" | b"checksum" => {
                    child.has_type(Type::ByteArray) && is_string
                }
                b"offset" | b"size" => child.has_type(Type::Int64),
                b"inline" => child.has_type(Type::ByteArray),
                _ => false,
            }
    };
    // There are six names.
    (g.children().nth(6).is_none() && g.children().all(fits)).then_some(Group::File)
}

fn is_plain_bytes(node: Node<'_>) -> bool {
    node.has_type(Type::ByteArray) && !node.is_repeated()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{LogicalType, VariantType};
    use crate::schema::Physical;
    use crate::schema::samples::{Optional, Repeated, Required, col, group as node, schema};

    #[test]
    fn more_children_than_there_are_names_are_a_struct() {
        let binary = |name| col(Required, Physical::ByteArray, name);
        let annotated = |logical: LogicalType, children| {
            schema([node(Optional, "v", children).logical(logical)])
        };
        let variant = || LogicalType::Variant(VariantType::default());
        let of = |schema: &crate::schema::Schema| {
            schema.field(0).map(|field| match group(field) {
                Group::Variant => "variant",
                Group::File => "file",
                _ => "struct",
            })
        };
        let three = vec![binary("metadata"), binary("value"), binary("typed_value")];
        assert_eq!(of(&annotated(variant(), three)), Some("variant"));
        let four = vec![binary("metadata"); 4];
        assert_eq!(of(&annotated(variant(), four)), Some("struct"));
        let six = vec![binary("inline"); 6];
        assert_eq!(of(&annotated(LogicalType::File, six)), Some("file"));
        let seven = vec![binary("inline"); 7];
        assert_eq!(of(&annotated(LogicalType::File, seven)), Some("struct"));
    }
    #[test]
    fn groups_without_a_leaf_are_no_key_and_no_value() {
        let leaf = |name| col(Required, Physical::Int32, name);
        let empty = || node(Required, "empty", Vec::new());
        let of = |fields| {
            let entries = node(Repeated, "entries", fields);
            let schema = schema([node(Optional, "m", [entries]).logical(LogicalType::Map)]);
            schema.field(0).map(|field| match group(field) {
                Group::Map(map) => format!("{} to {}", map.key.name(), map.value.name()),
                Group::List(list) => format!("list of {}", list.repeated.name()),
                _ => "struct".to_owned(),
            })
        };
        let some = |text: &str| Some(text.to_owned());
        let below = || node(Required, "v", vec![empty(), leaf("x"), empty()]);
        assert_eq!(of(vec![empty(), leaf("k"), empty(), below(), empty()]), some("k to v"));
        assert_eq!(of(vec![empty(), leaf("k"), empty()]), some("list of entries"));
        assert_eq!(of(vec![leaf("k"), below(), empty(), leaf("z")]), some("struct"));
        assert_eq!(of(vec![empty(), empty()]), some("struct"));
    }
}
