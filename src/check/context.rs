//! [`FileContext`]: what every part of a check needs to know of the file.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;

use super::finding::CheckLevel;
use crate::error::{Error, LimitKind, Result};
use crate::io::Source;
use crate::limits::{Budget, Limits, Reservation};
use crate::read::Footer;

/// The file that is checked.
pub(super) struct FileContext {
    pub(super) source: Arc<dyn Source>,
    pub(super) footer: Footer,
    pub(super) file_len: u64,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) level: CheckLevel,
    /// Whether bounds were met in a file without column orders.
    pub(super) has_unordered_bounds: AtomicBool,
    /// Bytes of the file that were read.
    pub(super) bytes_read: AtomicU64,
    /// Slots and values that took next to no bytes.
    pub(super) expanded: AtomicU64,
}

/// Values that may stand for next to no bytes, in the whole file: they take time, and no memory, so
/// that nothing else bounds them.
const MAX_EXPANDED: u64 = 1 << 29;
/// Values for each byte of a page that count as stored in it.
const STORED_PER_BYTE: u64 = 256;

impl FileContext {
    /// Where the last byte is that is not of the footer or after it.
    pub(super) fn footer_start(&self) -> u64 {
        let len = self.footer.stored_len() as u64;
        self.file_len.saturating_sub(8 + len)
    }

    /// Whether a range lies between the magic number and the footer.
    pub(super) fn has_room_for(&self, range: &Range<u64>) -> bool {
        range.start >= 4 && range.start <= range.end && range.end <= self.footer_start()
    }

    /// Reads bytes of the file; the reservation is of their memory.
    ///
    /// # Errors
    /// `Io`; `Limit(Memory)`.
    pub(super) fn read(&self, range: Range<u64>) -> Result<(Bytes, Reservation)> {
        let len = range.end.saturating_sub(range.start);
        let memory = if self.source.in_memory() {
            self.budget.reservation("bytes of the file")
        } else {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            self.budget.take_for("bytes of the file", len)?
        };
        let bytes = self.source.read(range)?;
        self.bytes_read.fetch_add(len, Ordering::Relaxed);
        Ok((bytes, memory))
    }

    /// Counts `values` that are decoded from a page of `byte_len` bytes.
    ///
    /// # Errors
    /// `Limit` if pages of few bytes stand for too many values.
    pub(super) fn expand(&self, values: u64, byte_len: usize) -> Result<()> {
        let stored = (byte_len as u64).saturating_mul(STORED_PER_BYTE);
        let more = values.saturating_sub(stored);
        if more == 0 {
            return Ok(());
        }
        let before = self.expanded.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) <= MAX_EXPANDED {
            return Ok(());
        }
        let text = format_args!(
            "pages of few bytes stand for more than {MAX_EXPANDED} values: they are not checked"
        );
        Err(Error::limit(LimitKind::Rows, text))
    }
}
