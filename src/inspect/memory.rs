//! The memory that is held of a file is counted for as long as a span needs it.

use std::ops::Range;

use bytes::Bytes;

use crate::compress::{self, Decompressor, first_capacity};
use crate::error::{Error, LimitKind, Result};
use crate::format::CompressionCodec;
use crate::io::Source;
use crate::limits::{Budget, Reservation};
use crate::memory;

/// Bytes, and the memory that they take.
struct Counted {
    bytes: Bytes,
    _memory: Reservation,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The bytes that the memory is for: it is given back with the last of them.
pub(super) fn holding(memory: Reservation, bytes: Bytes) -> Bytes {
    Bytes::from_owner(Counted { bytes, _memory: memory })
}

/// Reads a range of the file.
///
/// # Errors
/// `Io`; `Limit(Memory)`.
pub(super) fn read(source: &dyn Source, range: Range<u64>, budget: &Budget) -> Result<Bytes> {
    let len = range.end.saturating_sub(range.start);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let memory = budget.take_for("bytes of the file", len)?;
    Ok(holding(memory, source.read(range)?))
}

/// Decompresses `input` to `len` bytes.
///
/// # Errors
/// `Limit`, or what the codec finds wrong.
pub(super) fn decompress(
    codec: CompressionCodec,
    input: &[u8],
    len: usize,
    max_len: u64,
    budget: &Budget,
) -> Result<Bytes> {
    if len as u64 > max_len {
        return Err(Error::limit(
            LimitKind::Page,
            format_args!("a page of {len} bytes; Limits::page_bytes allows {max_len}"),
        ));
    }
    let held = budget.take_for("a decompressed page", len)?;
    let mut decompressor = Decompressor::new(codec)?;
    let working = decompressor.working_bytes(input);
    let _working = budget.take_for("the window of the codec", working)?;
    let capacity = first_capacity(input.len(), len).saturating_add(compress::SLACK);
    let mut out = memory::vec_for(capacity)?;
    decompressor.decompress(input, len, &mut out)?;
    Ok(holding(held, out.into()))
}
