//! The memory that is held of a file is counted for as long as a span needs it.

use std::ops::Range;
use std::sync::Arc;

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

/// Bytes of a file, read ahead of what is asked for, so that many small parts take few reads.
pub(super) struct ReadAhead {
    source: Arc<dyn Source>,
    budget: Budget,
    /// Where the bytes end that may be read.
    end: u64,
    /// The bytes that were read last, and where they begin.
    bytes: Bytes,
    start: u64,
    /// How many bytes are read at a time.
    len: u64,
    /// How often those that were read last were asked for.
    uses: u32,
}

/// Bytes that are read at a time, at first and at most.
pub(super) const MIN_READ: u64 = 16 << 10;
const MAX_READ: u64 = 256 << 10;
/// Parts in what was read that show that they are small.
const MANY_USES: u32 = 16;

impl ReadAhead {
    /// Of bytes before `end`.
    pub(super) fn new(source: &Arc<dyn Source>, budget: &Budget, end: u64) -> Self {
        Self {
            source: source.clone(),
            budget: budget.clone(),
            end,
            bytes: Bytes::new(),
            start: 0,
            len: MIN_READ,
            uses: 0,
        }
    }

    /// The bytes from `at` on that were read: at least `len`, unless the end comes before.
    ///
    /// # Errors
    /// `Io`; `Limit(Memory)`.
    pub(super) fn bytes_from(&mut self, at: u64, len: u64) -> Result<Bytes> {
        if at >= self.end {
            return Ok(Bytes::new());
        }
        let wanted = at.saturating_add(len).min(self.end);
        let there = self.start..self.start.saturating_add(self.bytes.len() as u64);
        if at < there.start || there.end < wanted {
            self.len = match self.uses {
                ..MANY_USES => MIN_READ,
                _ => self.len.saturating_mul(2).min(MAX_READ),
            };
            let end = at.saturating_add(self.len.max(len)).min(self.end);
            // Given back before more is taken.
            self.bytes = Bytes::new();
            self.bytes = read(&*self.source, at..end, &self.budget)?;
            (self.start, self.uses) = (at, 0);
        }
        self.uses += 1;
        let before = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(before.min(self.bytes.len())..))
    }
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
