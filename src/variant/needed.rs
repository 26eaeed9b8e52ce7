//! Finds the leaves of a VARIANT column that a part of its values needs.

use arrow_schema::DataType;

use super::malformed::malformed;
use super::path::{VariantPath, VariantStep};
use crate::error::{Error, Result};
use crate::format::{LogicalType, TimeUnit};
use crate::schema::{Node, Physical, element_of_list, is_variant, leaf_type};

/// The leaves of a file that a part of the values needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeededLeaves {
    /// By index, sorted.
    pub(crate) leaves: Vec<usize>,
    /// The leaf that holds the shredded part, and the `value` beside it, if there is one: the
    /// statistics of the leaf cover all rows only if that `value` is null in all of them.
    pub(crate) typed: Option<(usize, Option<usize>)>,
}

/// The leaves of the VARIANT `node` that the part at `path`, as `data_type`, needs. The `value` of
/// shredded objects on the path is not needed: it must not have fields that have a column.
/// `is_all_null` returns whether the metadata of the file prove a leaf to be null in all rows.
///
/// # Errors
/// `Usage` if the column is no VARIANT.
pub(crate) fn needed_leaves(
    node: Node<'_>,
    path: &VariantPath,
    data_type: &DataType,
    is_all_null: &dyn Fn(usize) -> bool,
) -> Result<NeededLeaves> {
    if !is_variant(node) {
        return Err(Error::usage(format_args!(
            "a path needs a VARIANT column, and {} is none",
            node.path().dotted()
        )));
    }
    check_shredding(node)?;
    let as_variant = data_type.is_nested();
    let metadata = child(node, "metadata").map(|leaf| leaf.leaves().start);
    let mut at = node;
    let mut steps = path.steps().iter();
    let mut rest = steps.as_slice();
    while let Some(step) = steps.next() {
        let typed = child(at, "typed_value").filter(|typed| !typed.is_leaf());
        let list = typed.and_then(element_of_list);
        let next = match (step, typed, list) {
            (VariantStep::Field(name), Some(typed), None) => child(typed, name),
            (VariantStep::Index(_), _, Some(element)) => Some(element),
            _ => None,
        };
        let Some(next) = next.filter(|next| !next.is_leaf()) else { break };
        at = next;
        rest = steps.as_slice();
    }
    let value = child(at, "value").map(|leaf| leaf.leaves().start);
    let typed = child(at, "typed_value").filter(|_| rest.is_empty());
    let mut leaves = Vec::new();
    match typed {
        Some(typed) if typed.is_leaf() || as_variant => leaves.extend(typed.leaves()),
        _ => {}
    }
    let reads_value = value.is_some_and(|leaf| leaves.is_empty() || !is_all_null(leaf));
    leaves.extend(value.filter(|_| reads_value));
    leaves.extend(metadata.filter(|_| reads_value || as_variant || leaves.is_empty()));
    leaves.sort_unstable();
    leaves.dedup();
    // Lists have several values a row.
    let in_list = at.max_rep() > node.max_rep();
    let typed = typed.filter(|typed| typed.is_leaf() && !in_list);
    Ok(NeededLeaves { leaves, typed: typed.map(|typed| (typed.leaves().start, value)) })
}

/// The VARIANT around a leaf, or its top-level field if there is none.
pub(crate) fn variant_around(leaf: Node<'_>) -> Node<'_> {
    let mut node = leaf;
    while let Some(parent) = node.parent().filter(|_| !is_variant(node)) {
        if parent.parent().is_none() {
            break;
        }
        node = parent;
    }
    node
}

/// Checks that a VARIANT of a file is shredded into allowed types, by the types of the file:
/// several may be one type in Arrow.
///
/// # Errors
/// `Malformed(Variant)` if a `typed_value` is of another type.
pub(crate) fn check_shredding(pair: Node<'_>) -> Result<()> {
    let Some(typed) = child(pair, "typed_value") else { return Ok(()) };
    if let Some(element) = element_of_list(typed) {
        return check_shredding(element);
    }
    if !typed.is_leaf() {
        return typed.children().try_for_each(check_shredding);
    }
    if is_shredded_type(typed)? {
        return Ok(());
    }
    Err(malformed(format_args!(
        "{} is no type that a VARIANT can be shredded as: VariantShredding.md lists them",
        leaf_type(&typed.schema().leaf(typed.leaves().start)?)
    ))
    .at_column(typed.path().dotted()))
}

/// The table of shredded types of VariantShredding.md.
fn is_shredded_type(leaf: Node<'_>) -> Result<bool> {
    let physical = leaf.physical()?;
    let described = leaf.schema().leaf(leaf.leaves().start)?;
    Ok(match (physical, described.logical) {
        (
            Physical::Boolean
            | Physical::Int32
            | Physical::Int64
            | Physical::Float
            | Physical::Double
            | Physical::ByteArray,
            None,
        )
        | (Physical::Int32, Some(LogicalType::Date))
        | (Physical::ByteArray, Some(LogicalType::String))
        | (Physical::FixedLenByteArray(16), Some(LogicalType::Uuid))
        | (_, Some(LogicalType::Decimal(_))) => true,
        (_, Some(LogicalType::Integer(integer))) => integer.is_signed,
        (Physical::Int64, Some(LogicalType::Time(time))) => {
            !time.is_adjusted_to_utc && time.unit == TimeUnit::Micros
        }
        (Physical::Int64, Some(LogicalType::Timestamp(timestamp))) => {
            timestamp.unit != TimeUnit::Millis
        }
        _ => false,
    })
}

fn child<'a>(of: Node<'a>, name: &str) -> Option<Node<'a>> {
    of.children().find(|child| child.name() == name)
}
