//! Finds the features of the groups around a column: lists, maps, VARIANT, FILE.

use super::feature::Feature;
use crate::format::{ConvertedType, LogicalType, SchemaElementRef};
use crate::schema::{Node, Repetition, element_of_list};

/// Appends the features of a group that columns are in.
pub(super) fn features_of_group(group: Node<'_>, out: &mut Vec<Feature>) {
    let element = group.element();
    let is_repeated = matches!(group.repetition(), Ok(Repetition::Repeated));
    match (&element.logical_type, element.converted_type) {
        (Some(LogicalType::Unrecognized(..)), _) => out.push(Feature::UnknownLogicalType),
        (Some(LogicalType::Unknown), _) => out.push(Feature::UnknownOnGroup),
        (_, Some(ConvertedType::Unknown(n))) => out.push(Feature::UnknownConvertedType(n)),
        (Some(LogicalType::Variant(_)), _) => out.push(variant(group)),
        (Some(LogicalType::File), _) => out.push(Feature::FileReference),
        _ if is_map(&element) => {
            // The entries of a map may be annotated like the map itself.
            let within = group.parent().is_some_and(|parent| is_map(&parent.element()));
            if !(within && is_repeated) {
                map(group, &element, out);
            }
        }
        _ => {}
    }
    if element.converted_type == Some(ConvertedType::MapKeyValue)
        && group.children().take(3).count() != 2
    {
        out.push(Feature::KeyValueOfOne);
    }
    if is_part_without_value(group) {
        out.push(Feature::VariantPartWithoutValue);
    }
    if is_repeated && is_single_field(group) && is_element(group) {
        out.push(Feature::ListOfSingleField);
    }
}

fn is_map(element: &SchemaElementRef<'_>) -> bool {
    matches!(element.logical_type, Some(LogicalType::Map))
        || matches!(element.converted_type, Some(ConvertedType::Map | ConvertedType::MapKeyValue))
}

fn map(group: Node<'_>, element: &SchemaElementRef<'_>, out: &mut Vec<Feature>) {
    if matches!(group.repetition(), Ok(Repetition::Repeated)) {
        out.push(Feature::RepeatedMap);
    }
    let mut children = group.children();
    let (entries, other) = (children.next(), children.next());
    let Some(entries) = entries.filter(|_| other.is_none()) else {
        out.push(Feature::MapOfSeveral);
        return;
    };
    let of_entries = entries.children().take(3).count();
    let key = entries.children().next();
    let is_optional = |key: Node<'_>| !matches!(key.repetition(), Ok(Repetition::Required));
    out.push(match () {
        () if entries.is_leaf() || of_entries != 2 => Feature::MapWithoutValue,
        () if key.is_some_and(is_optional) => Feature::MapOfOptionalKeys,
        () if element.converted_type.is_none() => Feature::MapOnlyLogical,
        () => Feature::Map,
    });
}

fn variant(group: Node<'_>) -> Feature {
    let names: Vec<&str> = group.children().take(4).map(Node::name).collect();
    Feature::Variant {
        in_order: matches!(names.as_slice(), ["metadata", "value", ..]),
        shredded: names.contains(&"typed_value"),
    }
}

/// Whether a group within a VARIANT has shredded values only.
fn is_part_without_value(group: Node<'_>) -> bool {
    let mut names = group.children().take(2).map(Node::name);
    if (names.next(), names.next()) != (Some("typed_value"), None) {
        return false;
    }
    std::iter::successors(group.parent(), |node| node.parent())
        .any(|node| matches!(node.element().logical_type, Some(LogicalType::Variant(_))))
}

fn is_single_field(group: Node<'_>) -> bool {
    group.children().take(2).count() == 1
}

/// Whether a repeated group is itself the element of a list: not that of a list of three levels,
/// and not the entries of a map.
fn is_element(repeated: Node<'_>) -> bool {
    let Some(parent) = repeated.parent() else { return false };
    let child = repeated.children().next().map(|child| child.path());
    let element = element_of_list(parent).map(|element| element.path());
    !is_map(&parent.element()) && (element.is_none() || element != child)
}
