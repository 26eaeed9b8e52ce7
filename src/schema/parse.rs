//! [`Schema::parse`] builds a valid tree from the elements of a footer.
//!
//! Spec: parquet.thrift, `SchemaElement`.
//! Trap: the depth is limited here, once, so that every later walk may recurse, Arrow's own among
//! them.

use std::fmt;
use std::sync::Arc;

use super::names::ChildLookup;
use super::node::{Link, Schema};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{
    ConvertedType, ElementHead, FieldRepetitionType, LogicalKind, SchemaElement, SchemaElements,
    Type,
};
use crate::limits::Limits;
use crate::memory;

impl Schema {
    /// Builds the schema from `elements`, which are listed depth-first.
    ///
    /// An unknown type or repetition is accepted here, and refused when the column is asked for. A
    /// missing repetition is REQUIRED, as other readers take it.
    ///
    /// # Errors
    /// `Malformed(Schema)` if the elements are not exactly one tree, a child count is negative, an
    /// element is neither leaf nor group, or a FIXED_LEN_BYTE_ARRAY has no length. `Limit(Nesting)`
    /// if the tree is deeper than `limits.nesting`; `Limit(Memory)` if the paths of all leaves
    /// would take a quarter of `limits.memory_bytes`; `Limit(Footer)` beyond 4 GiB.
    pub fn parse(elements: Vec<SchemaElement>, limits: &Limits) -> Result<Self> {
        Self::from_elements(SchemaElements::encode(elements)?, limits)
    }

    /// Like [`Schema::parse`], for elements that are in a footer.
    ///
    /// # Errors
    /// As [`Schema::parse`].
    pub(crate) fn from_elements(elements: SchemaElements, limits: &Limits) -> Result<Self> {
        if elements.len() == 0 {
            return Err(malformed("the schema has no element, not even a root"));
        }
        let mut links = memory::vec_for::<Link>(elements.len())?;
        // Most schemas are flat, or nearly so: elements are leaves, and leaves are fields.
        let children = elements.head(0).num_children().and_then(|n| usize::try_from(n).ok());
        let mut fields = memory::vec_for(children.unwrap_or(0).min(elements.len()))?;
        let mut leaves = memory::vec_for(elements.len())?;
        let mut leaves_before = 0;
        // Each leaf has its whole path: few bytes of a deep and wide tree stand for many.
        let (mut path_bytes, max_path_bytes) = (0u64, limits.memory_bytes / 4);
        // The groups around the next element, with how many children each still waits for.
        let mut open = Vec::<OpenGroup>::new();
        for index in (0u32..).take(elements.len()) {
            let head = elements.head(index);
            let parent = match open.last_mut() {
                Some(group) => group.next_child(),
                None if index == 0 => 0,
                None => return Err(more_elements(index, elements.len())),
            };
            let mut depth = open.last().map_or(0, |group| group.depth);
            if depth > limits.nesting.min(Limits::MAX_NESTING) {
                return Err(too_deep(limits.nesting));
            }
            let mut link = Link::root(index, parent, leaves_before);
            if let Some(parent) = links.get(parent as usize) {
                link.is_leaf = is_leaf(&elements, index)?;
                link.descend_from(parent, head)?;
            }
            if open.len() == 1 {
                fields.push(index);
            }
            let around = open.last().map_or(0, |group| group.path_bytes);
            let path = around + (head.name_len() + size_of::<Arc<str>>()) as u64;
            if link.is_leaf {
                leaves.push(index);
                leaves_before += 1;
                path_bytes += path;
                if path_bytes > max_path_bytes {
                    return Err(paths_too_long(leaves_before, max_path_bytes));
                }
            } else {
                let is_bare = index != 0 && is_bare_list(head, elements.head(parent));
                depth += 1 + usize::from(is_bare);
                let children_left = child_count(&elements, index)?;
                open.push(OpenGroup { node: index, children_left, path_bytes: path, depth });
            }
            links.push(link);
            while let Some(group) = open.pop_if(|group| group.children_left == 0) {
                if let Some(link) = links.get_mut(group.node as usize) {
                    link.end = index + 1;
                }
            }
        }
        if let Some(group) = open.last() {
            return Err(group.lacks_children(elements.name(group.node)));
        }
        Ok(Self { elements, links, fields, leaves, lookup: ChildLookup::default() })
    }
}

/// A group whose children are not all there yet.
struct OpenGroup {
    node: u32,
    children_left: u32,
    /// Bytes of the path to it.
    path_bytes: u64,
    /// How deep it is nested, itself counted: at least as deep as the Arrow type will be.
    depth: usize,
}

impl OpenGroup {
    /// The next element is a child of it; returns which node it is itself.
    fn next_child(&mut self) -> u32 {
        self.children_left -= 1;
        self.node
    }

    #[cold]
    fn lacks_children(&self, name: &str) -> Error {
        let n = self.children_left;
        let what = format_args!("the schema ends early: group {name:?} lacks {n} of its children");
        malformed(what)
    }
}

/// The tree is whole after `expected` elements, and others follow.
#[cold]
fn more_elements(expected: u32, found: usize) -> Error {
    Error::mismatch(Spec::Schema, "elements in the tree", expected, found)
}

impl Link {
    /// An element without the levels of those above it.
    fn root(index: u32, parent: u32, leaf: u32) -> Self {
        let (is_leaf, flawed) = (false, false);
        Self { parent, end: index + 1, leaf, max_def: 0, max_rep: 0, is_leaf, flawed }
    }

    /// Counts the levels of `element` on top of those of its parent.
    fn descend_from(&mut self, parent: &Self, element: &ElementHead) -> Result<()> {
        let (def, rep) = match element.repetition_type() {
            None | Some(FieldRepetitionType::Required) => (0, 0),
            Some(FieldRepetitionType::Optional) => (1, 0),
            Some(FieldRepetitionType::Repeated) => (1, 1),
            Some(FieldRepetitionType::Unknown(_)) => {
                self.flawed = true;
                (0, 0)
            }
        };
        self.flawed |= parent.flawed;
        // The nesting is capped far below.
        let too_many = || too_deep(usize::from(u8::MAX));
        self.max_def = parent.max_def.checked_add(def).ok_or_else(too_many)?;
        self.max_rep = parent.max_rep.checked_add(rep).ok_or_else(too_many)?;
        Ok(())
    }
}

/// Whether an element below the root is a leaf, in a schema that was parsed.
///
/// Trap: some writers give leaves a child count of 0, others give groups a type.
pub(crate) fn is_leaf_element(element: &SchemaElement) -> bool {
    element.r#type.is_some() && matches!(element.num_children, None | Some(0))
}

/// Whether the element at `index`, below the root, is a leaf, with what a leaf needs.
fn is_leaf(elements: &SchemaElements, index: u32) -> Result<bool> {
    let head = elements.head(index);
    match (head.r#type(), head.num_children()) {
        // As in `is_leaf_element`.
        (Some(Type::FixedLenByteArray), None | Some(0)) => match elements.get(index).type_length {
            Some(0..) => Ok(true),
            Some(length) => Err(Error::mismatch(
                Spec::Schema,
                "type_length of a FIXED_LEN_BYTE_ARRAY",
                "at least 0",
                length,
            )
            .at_column(elements.name(index))),
            None => Err(malformed("a FIXED_LEN_BYTE_ARRAY has no type_length")
                .at_column(elements.name(index))),
        },
        (Some(_), None | Some(0)) => Ok(true),
        (_, Some(_)) => Ok(false),
        (None, None) => Err(malformed("an element has neither type nor num_children")
            .at_column(elements.name(index))),
    }
}

fn child_count(elements: &SchemaElements, group: u32) -> Result<u32> {
    let count = elements.head(group).num_children().unwrap_or(0);
    u32::try_from(count).map_err(|_| {
        Error::mismatch(Spec::Schema, "num_children", "at least 0", count)
            .at_column(elements.name(group))
    })
}

/// Whether a group becomes a list and a struct: it is repeated, and no LIST or MAP is around it to
/// be the list.
fn is_bare_list(group: &ElementHead, parent: &ElementHead) -> bool {
    let is_logical = matches!(parent.logical(), LogicalKind::List | LogicalKind::Map);
    let is_converted = matches!(
        parent.converted_type(),
        Some(ConvertedType::List | ConvertedType::Map | ConvertedType::MapKeyValue)
    );
    let is_in_list = (is_logical || is_converted) && parent.num_children() == Some(1);
    group.repetition_type() == Some(FieldRepetitionType::Repeated) && !is_in_list
}

#[cold]
fn too_deep(levels: usize) -> Error {
    let max = Limits::MAX_NESTING;
    let (levels, advice) = if levels < max {
        (levels, format!("Limits::nesting can be raised to {max}"))
    } else {
        (max, "no deeper one can be read, because every level takes stack".to_owned())
    };
    Error::limit(
        LimitKind::Nesting,
        format_args!("the schema is nested deeper than {levels} levels; {advice}"),
    )
}

#[cold]
fn paths_too_long(leaves: u32, allowed: u64) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!(
            "the paths of the first {leaves} columns take more than {allowed} bytes, a quarter of Limits::memory_bytes; raise it to read on"
        ),
    )
}

#[cold]
fn malformed(message: impl fmt::Display) -> Error {
    Error::malformed(Spec::Schema, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::format::{FileMetaData, FooterIndex, LogicalType, Thrift};
    use crate::schema::names::Named;
    use crate::schema::samples::{self, Optional, Repeated, Required, col, group, list, schema};
    use crate::schema::{Node, Physical};

    fn parse(elements: Vec<SchemaElement>) -> Result<Schema> {
        Schema::parse(elements, &Limits::default())
    }

    /// A group that claims this many children.
    fn claims(name: &str, children: i32) -> SchemaElement {
        SchemaElement { num_children: Some(children), ..samples::element(name) }
    }

    fn leaf(name: &str) -> SchemaElement {
        samples::leaf(name, Physical::Int32)
    }

    #[test]
    fn levels_leaves_and_paths_of_the_dremel_document() {
        // README.md, "Nested Encoding", and the Dremel paper, figure 2.
        let schema = schema([
            col(Required, Physical::Int64, "DocId"),
            group(
                Optional,
                "Links",
                [
                    col(Repeated, Physical::Int64, "Backward"),
                    col(Repeated, Physical::Int64, "Forward"),
                ],
            ),
            group(
                Repeated,
                "Name",
                [
                    group(
                        Repeated,
                        "Language",
                        [
                            col(Required, Physical::ByteArray, "Code"),
                            col(Optional, Physical::ByteArray, "Country"),
                        ],
                    ),
                    col(Optional, Physical::ByteArray, "Url"),
                ],
            ),
        ]);
        let expected = [
            ("DocId", 0, 0, false),
            ("Links.Backward", 2, 1, true),
            ("Links.Forward", 2, 1, true),
            ("Name.Language.Code", 2, 2, false),
            ("Name.Language.Country", 3, 2, true),
            ("Name.Url", 2, 1, true),
        ];
        assert_eq!(schema.leaves_len(), expected.len());
        for (index, (path, max_def, max_rep, nullable)) in expected.into_iter().enumerate() {
            let leaf = schema.leaf(index).unwrap();
            assert_eq!(leaf.path.dotted(), path);
            assert_eq!((leaf.max_def, leaf.max_rep), (max_def, max_rep), "{path}");
            assert_eq!((leaf.index, leaf.nullable), (index, nullable), "{path}");
        }
        assert_eq!(schema.leaf(6).unwrap_err().kind(), ErrorKind::Usage);
        let leaves: Vec<_> = schema.fields().map(Node::leaves).collect();
        assert_eq!(leaves, [0..1, 1..3, 3..6]);
        assert_eq!(schema.root().leaves(), 0..6);
        assert_eq!(schema.root().children().count(), 3);
    }

    #[test]
    fn odd_but_readable_trees() {
        // A leaf that says 0 children, a group that also has a type, groups without children.
        let elements = vec![
            claims("root", 4),
            SchemaElement { num_children: Some(0), ..leaf("a") },
            SchemaElement { num_children: Some(1), ..leaf("g") },
            leaf("b"),
            claims("empty", 0),
            SchemaElement { repetition_type: None, ..leaf("") },
        ];
        let schema = parse(elements).unwrap();
        let names: Vec<_> = schema.fields().map(Node::name).collect();
        assert_eq!(names, ["a", "g", "empty", ""]);
        assert_eq!(schema.leaves_len(), 3);
        assert_eq!(schema.field(2).unwrap().leaves(), 2..2);
        assert!(!schema.leaf(2).unwrap().nullable, "no repetition is REQUIRED");

        let root_only = parse(vec![samples::element("root")]).unwrap();
        assert_eq!((root_only.fields_len(), root_only.leaves_len()), (0, 0));
        let empty_root = parse(vec![claims("root", 0)]).unwrap();
        assert_eq!(empty_root.root().children().count(), 0);
    }

    #[test]
    fn broken_trees_are_malformed() {
        let fixed = |type_length| SchemaElement {
            type_length,
            ..samples::leaf("f", Physical::FixedLenByteArray(1))
        };
        let broken = [
            vec![],
            vec![claims("root", 1)],
            vec![claims("root", i32::MAX), leaf("a")],
            vec![claims("root", 1), leaf("a"), leaf("b")],
            vec![claims("root", 0), leaf("a")],
            vec![samples::element("root"), leaf("a")],
            vec![claims("root", -1)],
            vec![claims("root", 1), claims("g", -1)],
            vec![claims("root", 1), SchemaElement { num_children: Some(-1), ..leaf("a") }],
            vec![claims("root", 1), claims("g", 2), leaf("a")],
            vec![claims("root", 1), samples::element("neither")],
            vec![claims("root", 1), fixed(None)],
            vec![claims("root", 1), fixed(Some(-1))],
        ];
        for elements in broken {
            let error = parse(elements.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Schema), "{elements:?}");
        }
        parse(vec![claims("root", 1), fixed(Some(0))]).unwrap();
    }

    #[test]
    fn depth_is_capped() {
        let nested = |depth: usize| {
            let mut elements = vec![claims("g", 1); depth];
            elements.push(leaf("a"));
            parse(elements)
        };
        assert_eq!(nested(208).unwrap().leaf(0).unwrap().path.names().len(), 208);
        for depth in [209, 100_000] {
            let error = nested(depth).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Nesting));
            let text = "deeper than 208 levels; Limits::nesting can be raised to 224";
            assert!(error.to_string().contains(text), "{error}");
        }
        let limits = Limits { nesting: usize::MAX, ..Limits::default() };
        let raised = |depth: usize| {
            let mut elements = vec![claims("g", 1); depth];
            elements.push(leaf("a"));
            Schema::parse(elements, &limits)
        };
        raised(Limits::MAX_NESTING).unwrap();
        for depth in [225, 70_000] {
            let error = raised(depth).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Nesting));
            let text = "deeper than 224 levels; no deeper one can be read";
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn a_repeated_group_counts_twice_unless_it_is_that_of_a_list() {
        let repeated = SchemaElement { repetition_type: Some(Repeated), ..claims("r", 1) };
        let list = |logical_type| SchemaElement { logical_type, ..claims("l", 1) };
        let nested = |groups: &[SchemaElement], times: usize| {
            let mut elements = vec![claims("g", 1); 2];
            elements.extend(groups.iter().cloned().cycle().take(groups.len() * times));
            elements.push(leaf("a"));
            parse(elements)
        };
        nested(std::slice::from_ref(&repeated), 103).unwrap();
        nested(std::slice::from_ref(&repeated), 104).unwrap_err();
        let lists = [list(Some(LogicalType::List)), repeated.clone()];
        nested(&lists, 103).unwrap();
        nested(&lists, 104).unwrap_err();
        nested(&[list(None), repeated], 69).unwrap_err();
    }

    #[test]
    fn paths_of_a_deep_and_wide_tree_are_bounded() {
        // 100 names of 1,000 bytes above 10,000 leaves: 300 KB that stand for 1 GB.
        let parse = |leaves: usize, memory_bytes: u64| {
            let mut elements = vec![claims("root", 1)];
            elements.extend(vec![claims(&"g".repeat(1_000), 1); 100]);
            elements.last_mut().unwrap().num_children = Some(leaves as i32);
            elements.extend(vec![leaf("a"); leaves]);
            Schema::parse(elements, &Limits { memory_bytes, ..Limits::default() })
        };
        assert_eq!(parse(100, 64 << 20).unwrap().leaves_len(), 100);
        let error = parse(10_000, 64 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
        parse(10_000, 8 << 30).unwrap();
    }

    #[test]
    fn unknown_types_and_repetitions_fail_only_when_asked_for() {
        let unknown = FieldRepetitionType::Unknown(-7);
        let schema = parse(vec![
            claims("root", 3),
            leaf("a"),
            SchemaElement { r#type: Some(Type::Unknown(-7)), ..leaf("b") },
            SchemaElement { repetition_type: Some(unknown), ..claims("g", 1) },
            leaf("c"),
        ])
        .unwrap();
        schema.leaf(0).unwrap();
        assert_eq!(schema.leaf(1).unwrap_err().kind(), ErrorKind::Unsupported("physical type"));
        assert_eq!(schema.leaf(2).unwrap_err().kind(), ErrorKind::Unsupported("repetition type"));
    }

    #[test]
    fn fields_by_name() {
        let names = ["a", "b", "a", "", "a.b", "A", "a"];
        let schema = schema(names.map(|name| col(Required, Physical::Int32, name)));
        for (name, expected) in [
            ("a", Named::Several(0)),
            ("b", Named::One(1)),
            ("", Named::One(3)),
            ("a.b", Named::One(4)),
            ("A", Named::One(5)),
            ("B", Named::None),
        ] {
            assert_eq!(schema.field_named(name), expected, "{name:?}");
        }
    }

    #[test]
    fn random_trees_are_read_back_or_refused() {
        for seed in 0..2000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut elements = vec![claims("root", rng.i32(-1..4))];
            for _ in 0..rng.usize(..12) {
                let mut element = leaf("x");
                element.r#type = rng.bool().then_some(Type::from(rng.i32(-1..9)));
                element.num_children = rng.bool().then(|| rng.i32(-1..4));
                element.type_length = rng.bool().then(|| rng.i32(-1..4));
                element.repetition_type =
                    rng.bool().then(|| FieldRepetitionType::from(rng.i32(0..4)));
                elements.push(element);
            }
            let Ok(schema) = parse(elements.clone()) else {
                continue;
            };
            // Every node is reached exactly once from the root.
            let mut reached = 0;
            let mut leaves = 0;
            let mut stack = vec![schema.root()];
            while let Some(node) = stack.pop() {
                reached += 1;
                leaves += usize::from(node.is_leaf());
                stack.extend(node.children());
                let below = node.children().map(|child| child.leaves().len()).sum::<usize>();
                assert_eq!(node.leaves().len(), below + usize::from(node.is_leaf()), "{seed}");
            }
            assert_eq!((reached, leaves), (elements.len(), schema.leaves_len()), "seed {seed}");
            for index in 0..leaves {
                let _ = schema.leaf(index);
            }
        }
    }

    /// The schema of a file with these elements.
    fn from_footer(elements: Vec<SchemaElement>) -> Result<Schema> {
        let footer = FileMetaData { schema: elements, ..FileMetaData::default() };
        let mut index = FooterIndex::parse(footer.to_thrift().into()).unwrap();
        Schema::from_elements(index.take_schema(), &Limits::default())
    }

    #[test]
    fn a_schema_of_a_footer_is_that_of_its_elements() {
        let logical = [LogicalType::List, LogicalType::Map, LogicalType::String, LogicalType::Uuid];
        for seed in 0..2000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut elements = vec![claims("root", rng.i32(0..4))];
            for _ in 0..rng.usize(..12) {
                let mut element = leaf(rng.choice(["a", "b", "", "\u{e9}"]).unwrap());
                element.r#type = rng.bool().then_some(Type::from(rng.i32(-1..9)));
                element.num_children = rng.bool().then(|| rng.i32(0..4));
                element.type_length = rng.bool().then(|| rng.i32(0..4));
                element.repetition_type =
                    rng.bool().then(|| FieldRepetitionType::from(rng.i32(0..4)));
                element.logical_type = rng.bool().then(|| rng.choice(&logical).unwrap().clone());
                element.converted_type = rng.bool().then(|| ConvertedType::from(rng.i32(0..400)));
                element.field_id = rng.bool().then(|| rng.i32(..));
                elements.push(element);
            }
            let (ours, theirs) = (parse(elements.clone()), from_footer(elements.clone()));
            let (ours, theirs) = match (ours, theirs) {
                (Ok(ours), Ok(theirs)) => (ours, theirs),
                (Err(ours), Err(theirs)) => {
                    assert_eq!(ours.to_string(), theirs.to_string(), "seed {seed}");
                    continue;
                }
                (ours, theirs) => panic!("seed {seed}: {ours:?} is not {theirs:?}"),
            };
            assert_eq!(ours, theirs, "seed {seed}");
            assert_eq!(theirs.elements().collect::<Vec<_>>(), elements, "seed {seed}");
            assert_eq!(ours.tree().to_string(), theirs.tree().to_string(), "seed {seed}");
            for index in 0..ours.leaves_len() {
                let text = |schema: &Schema| format!("{:?}", schema.leaf(index));
                assert_eq!(text(&ours), text(&theirs), "seed {seed}");
            }
            // What a node answers without decoding is what its element says.
            for (node, element) in theirs.nodes().map(|i| theirs.node(i)).zip(&elements) {
                assert_eq!(node.name(), element.name, "seed {seed}");
                assert_eq!(node.field_id(), element.field_id, "seed {seed}");
                let repeated = element.repetition_type == Some(Repeated);
                assert_eq!(node.is_repeated(), repeated && !node.is_root(), "seed {seed}");
            }
            if let Some(last) = elements.last_mut() {
                last.name.push('x');
                assert_ne!(parse(elements).unwrap(), theirs, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_node_takes_40_bytes() {
        assert_eq!(size_of::<ElementHead>() + size_of::<Link>(), 40);
    }

    #[test]
    fn fields_that_are_not_known_are_kept() {
        // Fields 1, 4 and 17: a BOOLEAN named "a".
        let bytes = [0x15, 0, 0x38, 1, b'a', 0xD5, 6, 0];
        let (element, len) = SchemaElement::from_thrift(&bytes).unwrap();
        assert_eq!(len, bytes.len());
        assert!(!element.unknown.is_empty());
        let elements = vec![claims("root", 1), element];
        for schema in [parse(elements.clone()), from_footer(elements.clone())] {
            assert_eq!(schema.unwrap().elements().collect::<Vec<_>>(), elements);
        }
    }

    #[test]
    fn list_levels() {
        let schema = schema([list(Optional, "a", col(Optional, Physical::Int32, "element"))]);
        let leaf = schema.leaf(0).unwrap();
        assert_eq!((leaf.max_def, leaf.max_rep), (3, 1));
        assert_eq!(leaf.path.dotted(), "a.list.element");
    }
}
