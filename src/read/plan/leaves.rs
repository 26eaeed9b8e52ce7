//! [`LeafPlan`]: the leaves that are read, and what each becomes.

use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::read::filter::Filter;
use crate::read::footer::Footer;
use crate::schema::convert::{Conversion, conversion};
use crate::schema::{Kind, Leaf, Shape};

/// A leaf that is read, and what it becomes.
#[derive(Debug, Clone)]
pub(crate) struct LeafPlan {
    /// The leaf.
    pub leaf: Leaf,
    /// The Arrow type that it is read as.
    pub data_type: DataType,
    /// The way there.
    pub conversion: Conversion,
    /// Whether its levels are kept for `assemble`, because a list or a struct that may be null is above it.
    pub keep_levels: bool,
    /// Definition level at which the leaf has a slot: that of the elements of the innermost list around it.
    pub slot: u16,
    /// Definition level of an element of each list around the leaf, the outermost first.
    pub elements: Vec<u16>,
}

/// The leaves of the shapes, in output order, and which of them must keep their levels.
pub(in crate::read) fn leaf_plans(footer: &Footer, shapes: &[Shape]) -> Result<Vec<LeafPlan>> {
    let mut leaves = Vec::new();
    for shape in shapes {
        walk(footer, shape, false, &mut Vec::new(), &mut leaves)?;
    }
    Ok(leaves)
}

/// Appends the leaves of a shape; `keep` says whether a list or a struct that may be null is above it, `elements` which lists are.
fn walk(
    footer: &Footer,
    shape: &Shape,
    keep: bool,
    elements: &mut Vec<u16>,
    out: &mut Vec<LeafPlan>,
) -> Result<()> {
    match &shape.kind {
        Kind::Leaf { leaf } => {
            let leaf = footer.schema().leaf(*leaf)?;
            let data_type = shape.field.data_type().clone();
            let conversion = conversion(&leaf, &data_type).ok_or_else(|| {
                Error::usage(format_args!(
                    "{} cannot be read as {data_type} without loss",
                    leaf.physical
                ))
                .at_column(leaf.path.dotted())
            })?;
            let (slot, elements) = (shape.levels.slot, elements.clone());
            out.push(LeafPlan { leaf, data_type, conversion, keep_levels: keep, slot, elements });
            Ok(())
        }
        Kind::Struct(children) => {
            // The first leaf speaks for the struct; the others must say the same.
            let keep = keep || shape.levels.may_be_null();
            children.iter().try_for_each(|child| walk(footer, child, keep, elements, out))
        }
        Kind::List { item: child, element, .. } | Kind::Map { entries: child, element, .. } => {
            elements.push(*element);
            walk(footer, child, true, elements, out)?;
            elements.pop();
            Ok(())
        }
        Kind::Missing => Ok(()),
    }
}

/// For each column and for each leaf of it whether unwanted rows are left out while it is decoded: where a row is a slot, and the filter does not need
/// all of them.
pub(super) fn picks(shapes: &[Shape], filter: Option<&Filter>) -> (Vec<bool>, Vec<bool>) {
    let early = filter.map(Filter::early_columns).unwrap_or_default();
    let (mut columns, mut leaves) = (Vec::with_capacity(shapes.len()), Vec::new());
    for (i, shape) in shapes.iter().enumerate() {
        let first = leaves.len();
        shape.for_each_leaf(&mut |_, _| leaves.push(false));
        let picks = early.get(i) != Some(&true) && !has_list(shape);
        leaves.iter_mut().skip(first).for_each(|leaf| *leaf = picks);
        columns.push(picks);
    }
    (columns, leaves)
}

fn has_list(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::List { .. } | Kind::Map { .. } => true,
        Kind::Struct(children) => children.iter().any(has_list),
        Kind::Leaf { .. } | Kind::Missing => false,
    }
}
