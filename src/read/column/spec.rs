//! [`ColumnSpec`]: a leaf that is read, and the Arrow type that it is read as.

use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::memory;
use crate::schema::convert::{ReadConversion, read_conversion};
use crate::schema::{Kind, Leaf, Schema, Shape};

/// A leaf that is read, and what it becomes.
#[derive(Debug, Clone)]
pub(crate) struct ColumnSpec {
    /// The leaf.
    pub leaf: Leaf,
    /// The Arrow type that it is read as.
    pub data_type: DataType,
    /// How stored values become values of that type.
    pub conversion: ReadConversion,
    /// Whether its levels are kept for `assemble`, because a list or a struct that may be null is
    /// above it.
    pub keep_levels: bool,
    /// Definition level at which the leaf has a slot: that of the elements of the innermost list
    /// around it.
    pub slot: u16,
    /// Definition level of an element of each list around the leaf, the outermost first.
    pub elements: Vec<u16>,
}

/// The leaves of the shapes, in output order, and which of them must keep their levels.
pub(in crate::read) fn column_specs(schema: &Schema, shapes: &[Shape]) -> Result<Vec<ColumnSpec>> {
    let mut leaves = memory::vec_for(shapes.len())?;
    for shape in shapes {
        walk(schema, shape, false, &mut Vec::new(), &mut leaves)?;
    }
    Ok(leaves)
}

/// Appends the leaves of a shape; `keep` is set below a list or a struct that may be null, and
/// `elements` has the lists above it.
fn walk(
    schema: &Schema,
    shape: &Shape,
    keep: bool,
    elements: &mut Vec<u16>,
    out: &mut Vec<ColumnSpec>,
) -> Result<()> {
    match &shape.kind {
        Kind::Leaf { leaf } => {
            let leaf = schema.leaf(*leaf)?;
            let data_type = shape.field.data_type().clone();
            let conversion = read_conversion(&leaf, &data_type).ok_or_else(|| {
                Error::usage(format_args!(
                    "{} cannot be read as {data_type} without loss",
                    leaf.physical
                ))
                .at_column(leaf.path.dotted())
            })?;
            let (slot, elements) = (shape.levels.slot, elements.clone());
            out.push(ColumnSpec { leaf, data_type, conversion, keep_levels: keep, slot, elements });
            Ok(())
        }
        Kind::Struct(children) => {
            // The first leaf decides where the struct is null; `assemble` compares the others with
            // it.
            let keep = keep || shape.levels.may_be_null();
            children.iter().try_for_each(|child| walk(schema, child, keep, elements, out))
        }
        Kind::List { item: child, element, .. } | Kind::Map { entries: child, element, .. } => {
            elements.push(*element);
            walk(schema, child, true, elements, out)?;
            elements.pop();
            Ok(())
        }
        Kind::Missing => Ok(()),
    }
}
