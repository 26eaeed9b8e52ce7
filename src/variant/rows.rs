//! Reads the rows of a [`VariantArray`], one by one or as JSON, and reconstructs those that are
//! shredded.

use arrow_array::StringArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use super::array::VariantArray;
use super::build::VariantBuf;
use super::unshred::{Unshredder, end_of};
use super::value::Variant;
use crate::error::Result;

impl VariantArray {
    /// Appends the JSON text of a row; see [`Variant::to_json`]. Returns false, and appends
    /// nothing, if the row is null.
    ///
    /// # Errors
    /// As [`Variant::to_json`].
    pub fn write_json(&self, row: usize, out: &mut String) -> Result<bool> {
        if self.is_null(row) {
            return Ok(false);
        }
        let mut unshredder = Unshredder::new(self);
        let mut value = Vec::new();
        unshredder.append(row, &mut value)?;
        Variant::new(unshredder.metadata()?, &value)?.write_json(out)?;
        Ok(true)
    }

    /// The values as JSON text; see [`Variant::to_json`].
    ///
    /// # Errors
    /// As [`Variant::to_json`]; `Limit(Memory)` if the texts take more than 2 GiB.
    pub fn to_json(&self) -> Result<StringArray> {
        self.to_json_within(i32::MAX as usize)
    }

    /// As JSON within `max` bytes.
    pub(crate) fn to_json_within(&self, max: usize) -> Result<StringArray> {
        let mut unshredder = Unshredder::new(self);
        let mut scratch = Vec::new();
        let mut text = String::new();
        let mut ends = Vec::with_capacity(self.len + 1);
        ends.push(0);
        for row in 0..self.len {
            if !self.is_null(row) {
                scratch.clear();
                unshredder.append(row, &mut scratch)?;
                let metadata = unshredder.metadata()?;
                Variant::new(metadata, &scratch)?.write_json_within(&mut text, max)?;
            }
            ends.push(end_of(text.as_bytes())?);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let bytes = Buffer::from_vec(text.into_bytes());
        Ok(StringArray::try_new(offsets, bytes, self.nulls.clone())?)
    }

    /// The value of a row, unshredded; `None` if the row is null.
    ///
    /// # Errors
    /// `Malformed(Variant)` if the value is cut short or contradicts itself.
    pub fn value(&self, row: usize) -> Result<Option<VariantBuf>> {
        if self.is_null(row) {
            return Ok(None);
        }
        let mut value = Vec::new();
        Unshredder::new(self).append(row, &mut value)?;
        VariantBuf::new(self.metadata_of(row)?.to_vec(), value).map(Some)
    }
}
