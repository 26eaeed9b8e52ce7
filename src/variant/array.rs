//! [`VariantArray`]: a VARIANT column in Arrow, shredded or not.
//!
//! Spec: VariantShredding.md. Arrow holds such a column as the group that it is in the file: a
//! struct of `metadata`, `value` and, where it is shredded, `typed_value`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

use super::columns::{BytesColumn, ShreddedNode, flat};
use super::malformed::malformed;
use crate::error::{Error, Result};
use crate::limits::Growth;

/// A VARIANT column in Arrow: a struct of `metadata`, `value` and `typed_value`, as in the file. It
/// returns the value of each row, reconstructs shredded values ([`VariantArray::unshred`]),
/// extracts parts ([`VariantArray::get`]), and shreds ([`VariantArray::shred`]).
///
/// Spec: VariantShredding.md.
#[derive(Debug, Clone)]
pub struct VariantArray {
    /// `None` if no leaf that was read refers to names.
    pub(super) metadata: Option<(BytesColumn, ArrayRef)>,
    pub(super) root: ShreddedNode,
    pub(super) nulls: Option<NullBuffer>,
    pub(super) len: usize,
}

impl VariantArray {
    /// Whether a field is a VARIANT: a struct with the extension `arrow.parquet.variant`.
    pub fn is_variant(field: &Field) -> bool {
        field.extension_type_name() == Some("arrow.parquet.variant")
            && matches!(field.data_type(), DataType::Struct(_))
    }

    /// The column that a struct array holds.
    ///
    /// # Errors
    /// `Malformed(Variant)` if `metadata` is missing or not binary, or a `typed_value` is of a type
    /// that VARIANT cannot be shredded as.
    pub fn new(array: &StructArray) -> Result<Self> {
        Self::whole(array, array.nulls().cloned(), Growth::UNLIMITED)
    }

    fn whole(array: &StructArray, nulls: Option<NullBuffer>, growth: &Growth) -> Result<Self> {
        let column = Self::from_parts(array, nulls, growth)?;
        column.metadata_array()?;
        if column.root.value.is_none() && column.root.typed.is_none() {
            return Err(malformed("a VARIANT has neither `value` nor `typed_value`"));
        }
        Ok(column)
    }

    /// The column that an array holds, with these nulls; `growth` counts the copies that
    /// dictionaries become.
    pub(crate) fn within(
        array: &ArrayRef,
        nulls: Option<NullBuffer>,
        growth: &Growth,
    ) -> Result<Self> {
        let group = array.as_struct_opt();
        let group = group.ok_or_else(|| {
            malformed(format_args!("a VARIANT is a struct in Arrow, found {}", array.data_type()))
        })?;
        Self::whole(group, nulls, growth)
    }

    /// A column whose leaves were read only for a path; `nulls` replaces the nulls of `array`.
    pub(crate) fn from_parts(
        array: &StructArray,
        nulls: Option<NullBuffer>,
        growth: &Growth,
    ) -> Result<Self> {
        let metadata = match array.column_by_name("metadata") {
            None => None,
            Some(metadata) => {
                let metadata = flat(metadata, growth)?;
                let bytes = BytesColumn::new(&metadata).ok_or_else(|| {
                    malformed(format_args!(
                        "`metadata` of a VARIANT must be binary, found {}",
                        metadata.data_type()
                    ))
                })?;
                Some((bytes, metadata))
            }
        };
        let root = ShreddedNode::new(array, 0, growth)?;
        // Without both, all values are missing.
        Ok(Self { metadata, root, nulls, len: array.len() })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a row is null in Arrow. A row with the VARIANT value null is not.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Whether there is a `typed_value`.
    pub fn is_shredded(&self) -> bool {
        self.root.typed.is_some()
    }

    /// The fields of an unshredded VARIANT: `metadata` and `value`, both binary.
    pub fn unshredded_type() -> DataType {
        DataType::Struct(
            vec![
                Field::new("metadata", DataType::Binary, false),
                Field::new("value", DataType::Binary, false),
            ]
            .into(),
        )
    }

    pub(super) fn metadata_array(&self) -> Result<&ArrayRef> {
        let metadata = self.metadata.as_ref().map(|(_, array)| array);
        metadata.ok_or_else(|| malformed("a VARIANT has no `metadata`"))
    }

    pub(super) fn metadata_of(&self, row: usize) -> Result<&[u8]> {
        let bytes = self.metadata.as_ref().and_then(|(column, _)| column.get(row));
        bytes.ok_or_else(|| malformed("a VARIANT has a value, and no metadata"))
    }
}

impl TryFrom<&Arc<dyn Array>> for VariantArray {
    type Error = Error;

    fn try_from(array: &ArrayRef) -> Result<Self> {
        Self::within(array, array.nulls().cloned(), Growth::UNLIMITED)
    }
}
