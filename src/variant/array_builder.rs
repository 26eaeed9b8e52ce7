//! [`VariantArrayBuilder`] builds a VARIANT column in Arrow, row by row.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Field};

use super::array::VariantArray;
use super::build::VariantBuilder;
use super::json::VariantJsonOptions;
use super::unshred::{binary, end_of};
use super::value::Variant;
use crate::error::Result;

/// Builds a VARIANT column in Arrow: a struct of `metadata` and `value`.
///
/// ```
/// use marquetry::variant::{VariantArray, VariantArrayBuilder};
///
/// let mut rows = VariantArrayBuilder::new();
/// rows.append_json(r#"{"event": "login", "user": 7}"#)?;
/// rows.append(true)?;
/// rows.append_null();
/// let array = rows.finish()?;
///
/// let column = VariantArray::new(&array)?;
/// assert_eq!(column.to_json()?.value(0), r#"{"event":"login","user":7}"#);
/// let field = VariantArray::field("payload", true);
/// # assert_eq!(field.data_type(), arrow_array::Array::data_type(&array));
/// # Ok::<(), marquetry::Error>(())
/// ```
#[derive(Debug)]
pub struct VariantArrayBuilder {
    builder: VariantBuilder,
    metadata: Vec<u8>,
    metadata_ends: Vec<i32>,
    value: Vec<u8>,
    value_ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Default for VariantArrayBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl VariantArrayBuilder {
    /// A column without rows.
    pub fn new() -> Self {
        Self {
            builder: VariantBuilder::new(),
            metadata: Vec::new(),
            metadata_ends: vec![0],
            value: Vec::new(),
            value_ends: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Number of rows so far.
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the rows so far.
    pub(super) fn bytes(&self) -> usize {
        self.metadata.len() + self.value.len()
    }

    /// Appends a value.
    ///
    /// # Errors
    /// As [`VariantBuilder::append`]; no row is appended then.
    pub fn append<'v>(&mut self, value: impl Into<Variant<'v>>) -> Result<()> {
        self.append_with(|builder| builder.append(value))
    }

    /// Appends the value of a JSON text.
    ///
    /// # Errors
    /// As [`VariantBuilder::append_json`]; no row is appended then.
    pub fn append_json(&mut self, text: &str) -> Result<()> {
        self.append_with(|builder| builder.append_json(text))
    }

    /// Like [`append_json`](Self::append_json), with options.
    ///
    /// # Errors
    /// As [`VariantBuilder::append_json_with`]; no row is appended then.
    pub fn append_json_with(&mut self, text: &str, options: &VariantJsonOptions) -> Result<()> {
        self.append_with(|builder| builder.append_json_with(text, options))
    }

    /// Appends the value that `append` builds.
    ///
    /// # Errors
    /// Those of `append`, and `Usage` if it did not build exactly one value; no row is appended
    /// then.
    pub fn append_with(
        &mut self,
        append: impl FnOnce(&mut VariantBuilder) -> Result<()>,
    ) -> Result<()> {
        let before = (self.metadata.len(), self.value.len());
        let (builder, metadata, value) = (&mut self.builder, &mut self.metadata, &mut self.value);
        let ends = append(builder)
            .and_then(|()| builder.finish_into(metadata, value))
            .and_then(|()| Ok((end_of(metadata)?, end_of(value)?)));
        match ends {
            Ok((metadata_end, value_end)) => {
                self.metadata_ends.push(metadata_end);
                self.value_ends.push(value_end);
                self.nulls.append_non_null();
                Ok(())
            }
            Err(error) => {
                self.builder.clear();
                self.metadata.truncate(before.0);
                self.value.truncate(before.1);
                Err(error)
            }
        }
    }

    /// Appends a row that is null in Arrow. `append(())` appends the VARIANT value null.
    pub fn append_null(&mut self) {
        for ends in [&mut self.metadata_ends, &mut self.value_ends] {
            ends.push(ends.last().copied().unwrap_or_default());
        }
        self.nulls.append_null();
    }

    /// Returns the column, of the type of [`VariantArray::field`], and empties the builder.
    ///
    /// # Errors
    /// None in practice: the columns are checked when values are appended.
    pub fn finish(&mut self) -> Result<StructArray> {
        let DataType::Struct(fields) = VariantArray::unshredded_type() else {
            unreachable!("a VARIANT is a struct in Arrow")
        };
        let take = |bytes: &mut Vec<u8>, ends: &mut Vec<i32>| -> ArrayRef {
            let ends = std::mem::replace(ends, vec![0]);
            Arc::new(binary(std::mem::take(bytes), ends))
        };
        let columns = vec![
            take(&mut self.metadata, &mut self.metadata_ends),
            take(&mut self.value, &mut self.value_ends),
        ];
        Ok(StructArray::try_new(fields, columns, self.nulls.finish())?)
    }
}

impl VariantArray {
    /// The field of a VARIANT column that is not shredded.
    pub fn field(name: impl Into<String>, nullable: bool) -> Field {
        let metadata = [
            ("ARROW:extension:name".to_owned(), "arrow.parquet.variant".to_owned()),
            ("ARROW:extension:metadata".to_owned(), String::new()),
        ];
        Field::new(name, Self::unshredded_type(), nullable).with_metadata(HashMap::from(metadata))
    }
}
