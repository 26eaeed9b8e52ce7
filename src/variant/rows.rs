//! Reads the rows of a [`VariantArray`], one by one or as JSON, and reconstructs those that are
//! shredded.

use arrow_array::StringArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use super::array::VariantArray;
use super::build::VariantBuf;
use super::unshred::{Unshredder, end_of, first_end};
use super::value::Variant;
use crate::error::Result;
use crate::limits::Growth;

/// Maximum bytes of the texts of a column, whose offsets have 32 bits.
const MAX_TEXT: usize = i32::MAX as usize;

/// Maximum bytes of a value that is written as text: four times those of the text.
const MAX_VALUE: usize = 1 << 30;

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
        let growth = Growth::within(MAX_VALUE);
        let mut unshredder = Unshredder::new(self, &growth);
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
        self.to_json_within(Growth::UNLIMITED)
    }

    /// As [`to_json`](Self::to_json); `growth` counts the texts.
    pub(crate) fn to_json_within(&self, growth: &Growth) -> Result<StringArray> {
        let mut unshredder = Unshredder::new(self, growth);
        let mut scratch = Vec::new();
        let (mut text, mut ends) = (String::new(), first_end(self.len)?);
        for row in 0..self.len {
            if !self.is_null(row) {
                scratch.clear();
                unshredder.append(row, &mut scratch)?;
                let metadata = unshredder.metadata()?;
                Variant::new(metadata, &scratch)?.write_json_within(&mut text, MAX_TEXT, growth)?;
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
        Unshredder::new(self, Growth::UNLIMITED).append(row, &mut value)?;
        VariantBuf::new(self.metadata_of(row)?.to_vec(), value).map(Some)
    }
}
