//! The faults of byte strings that are laid out as an Arrow array: the type, the validity, the
//! length, or a lack of memory.

use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::{Error, LimitKind, Result};

#[cold]
pub(super) fn wrong_type(data_type: &DataType) -> Error {
    Error::internal(format_args!("byte strings cannot be laid out as {data_type}"))
}

#[cold]
pub(super) fn not_text() -> Error {
    Error::internal("byte strings that were not checked to be UTF-8 cannot become text")
}

/// The nulls of `len` slots.
pub(super) fn checked_nulls(nulls: Option<NullBuffer>, len: usize) -> Result<Option<NullBuffer>> {
    match nulls {
        Some(nulls) if nulls.len() != len => Err(Error::internal(format_args!(
            "{len} slots of byte strings were given the validity of {}",
            nulls.len()
        ))),
        nulls => Ok(nulls),
    }
}

/// An end, or the number of a buffer, that the layout has no room for.
#[cold]
pub(crate) fn too_long() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "more than 2 GiB of strings in one batch; read fewer rows per batch, or with 64-bit offsets",
    )
}
