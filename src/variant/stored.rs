//! [`StoredRows`]: checks the rows of a column by all rules of the specification, also those that
//! readers pass over.
//!
//! Spec: VariantEncoding.md, VariantShredding.md. Reading sorts the fields of an object, takes two
//! missing columns for null, and takes an object that was not shredded as it is.

use super::array::VariantArray;
use super::columns::{ShreddedNode, TypedKind};
use super::malformed::malformed;
use super::metadata::VariantMetadata;
use super::unshred::Unshredder;
use super::value::Variant;
use crate::error::Result;
use crate::limits::Growth;

/// Checks rows of a column one by one. What a row takes is counted.
pub(crate) struct StoredRows<'a> {
    column: &'a VariantArray,
    unshredder: Unshredder<'a>,
    value: Vec<u8>,
}

impl<'a> StoredRows<'a> {
    pub(crate) fn new(column: &'a VariantArray, growth: &'a Growth) -> Self {
        Self { column, unshredder: Unshredder::new(column, growth), value: Vec::new() }
    }

    /// Checks a row.
    ///
    /// # Errors
    /// `Malformed(Variant)` for a fault; else those of [`Variant::new`].
    pub(crate) fn check(&mut self, row: usize) -> Result<()> {
        if self.column.is_null(row) {
            return Ok(());
        }
        self.value.clear();
        self.unshredder.append(row, &mut self.value)?;
        let metadata = self.unshredder.metadata()?;
        check_metadata(metadata, self.column.metadata_of(row)?)?;
        node(&self.column.root, metadata, row, ShreddedPlace::Value)
    }
}

fn check_metadata(metadata: VariantMetadata<'_>, stored: &[u8]) -> Result<()> {
    let left = stored.len().saturating_sub(metadata.as_bytes().len());
    if left > 0 {
        return Err(malformed(format_args!("{left} bytes follow the names of the metadata")));
    }
    if metadata.is_sorted() && !metadata.is_ascending() {
        return Err(malformed("the metadata say that their names are sorted, and they are not"));
    }
    Ok(())
}

/// Whether a pair of `value` and `typed_value` must have a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShreddedPlace {
    /// The value of a row, or an element of a list.
    Value,
    /// A field of an object, which may be missing.
    Field,
}

/// Checks what a pair stores in a row of its arrays, and what is below it.
fn node(
    node: &ShreddedNode,
    metadata: VariantMetadata<'_>,
    row: usize,
    place: ShreddedPlace,
) -> Result<()> {
    let stored = node.value.as_ref().and_then(|column| column.get(row));
    let column = node.typed.as_ref();
    let typed = column.filter(|typed| typed.is_valid(row));
    if stored.is_none() && typed.is_none() && place == ShreddedPlace::Value {
        return Err(malformed(
            "`value` and `typed_value` are null, and no field of an object is missing",
        ));
    }
    if let Some(stored) = stored {
        let value = Variant::new(metadata, stored)?;
        value.validate()?;
        let what = match (column.map(|column| &column.kind), value) {
            (Some(TypedKind::Object(_)), Variant::Object(_)) => "an object",
            (Some(TypedKind::List(..)), Variant::List(_)) => "an array",
            _ => "",
        };
        if typed.is_none() && !what.is_empty() {
            let text = format_args!("{what} is in `value`, where `typed_value` is for such values");
            return Err(malformed(text));
        }
    }
    match typed.map(|typed| &typed.kind) {
        None | Some(TypedKind::Scalar(_)) => Ok(()),
        Some(TypedKind::List(ranges, element)) => {
            let elements = &mut ranges.elements(row);
            elements.try_for_each(|at| self::node(element, metadata, at, ShreddedPlace::Value))
        }
        Some(TypedKind::Object(members)) => {
            let mut members = members.iter();
            members
                .try_for_each(|(_, member)| self::node(member, metadata, row, ShreddedPlace::Field))
        }
    }
}
