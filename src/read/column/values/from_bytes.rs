//! [`FromBytes`] converts the bytes of a stored value to the value of an array.

use arrow_buffer::ArrowNativeType;

use crate::error::{Error, Result, Spec};
use crate::simd::native::PlainOldData;

/// From the bytes of a value to the value of an array.
pub(super) trait FromBytes: Send {
    /// A value of the array.
    type Out: ArrowNativeType + PlainOldData;
    /// Converts one value.
    fn convert(&self, bytes: &[u8]) -> Result<Self::Out>;

    /// Converts values of `width` bytes each, laid end to end.
    fn convert_all(&self, bytes: &[u8], width: usize, out: &mut Vec<Self::Out>) -> Result<()> {
        for value in bytes.chunks_exact(width) {
            out.push(self.convert(value)?);
        }
        Ok(())
    }
}

#[cold]
pub(super) fn wrong_length(what: &str, expected: usize, found: usize) -> Error {
    Error::mismatch(
        Spec::Encodings("PLAIN"),
        &format!("bytes of a value of {what}"),
        expected,
        found,
    )
}
