//! [`PageWalk`]: the pages of a column chunk, headers and bodies, as they lie in the file.
//!
//! Spec: README.md, "Column chunks". Used by `column`. Trap: a header says where the next page
//! begins, so what stands after a broken one cannot be told apart.

use std::ops::Range;

use bytes::Bytes;

use super::context::FileContext;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::limits::Reservation;
use crate::page::{PageContext, PagePosition, StoredHeader, count};

/// Reads the pages of a chunk one after the other.
pub(super) struct PageWalk<'f> {
    file: &'f FileContext,
    range: Range<u64>,
    /// Where the next page begins.
    at: u64,
    /// Bytes of the chunk that were read, where they begin, and their memory.
    window: (u64, Bytes, Option<Reservation>),
}

/// A page as it lies in the file.
pub(super) struct FoundBytes {
    pub(super) stored: StoredHeader,
    pub(super) body: Bytes,
    pub(super) offset: u64,
    /// The offset after its last byte.
    pub(super) end: u64,
}

/// Bytes that are read at a time, if the chunk has as many.
const WINDOW: u64 = 1 << 20;
/// Bytes in which most headers are found, and those that no header exceeds.
const FEW: u64 = 16 << 10;
const MAX_HEADER: u64 = 16 << 20;

impl<'f> PageWalk<'f> {
    pub(super) fn new(file: &'f FileContext, range: Range<u64>) -> Self {
        let at = range.start;
        Self { file, range, at, window: (at, Bytes::new(), None) }
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.range.end
    }

    pub(super) fn offset(&self) -> u64 {
        self.at
    }

    pub(super) fn bytes_left(&self) -> u64 {
        self.range.end.saturating_sub(self.at)
    }

    /// The next page.
    ///
    /// # Errors
    /// `Io`; `Limit(Memory)`; `Malformed(Metadata)` if there is no header; `Malformed(Pages)` if
    /// the page would end after its chunk.
    pub(super) fn next_page(
        &mut self,
        context: &PageContext,
        position: PagePosition,
    ) -> Result<FoundBytes> {
        let mut len = FEW;
        let stored = loop {
            let bytes = self.bytes(self.at, len)?;
            let is_all = self.at.saturating_add(len) >= self.range.end;
            match context.read_header(&bytes, position) {
                Ok(stored) => break stored,
                // Statistics may make it long.
                Err(_) if !is_all && len < MAX_HEADER => len = len.saturating_mul(4),
                Err(error) => return Err(error),
            }
        };
        let body_len = count(stored.header.compressed_page_size, "compressed_page_size")? as u64;
        let start = self.at.saturating_add(stored.len as u64);
        let end = start.saturating_add(body_len);
        if end > self.range.end {
            return Err(Error::mismatch(
                Spec::Pages,
                "compressed_page_size",
                format_args!(
                    "at most the {} bytes left of the column chunk",
                    self.range.end.saturating_sub(start)
                ),
                body_len,
            ));
        }
        let body = self.bytes(start, body_len)?;
        let offset = std::mem::replace(&mut self.at, end);
        Ok(FoundBytes { stored, body, offset, end })
    }

    /// Up to `len` bytes of the chunk from `start` on.
    fn bytes(&mut self, start: u64, len: u64) -> Result<Bytes> {
        let end = start.saturating_add(len).min(self.range.end);
        let (from, bytes, _) = &self.window;
        let has = *from <= start && from.saturating_add(bytes.len() as u64) >= end;
        if !has {
            // The memory of what was read before is given back first.
            self.window = (start, Bytes::new(), None);
            // With the header after a body, which would be read again with the next body otherwise.
            let wide = start.saturating_add(len.saturating_add(FEW).max(WINDOW));
            let wide = wide.min(self.range.end);
            let read = match self.file.read(start..wide) {
                Err(error) if matches!(error.kind(), ErrorKind::Limit(_)) && wide > end => {
                    self.file.read(start..end)
                }
                read => read,
            };
            let (bytes, memory) = read?;
            self.window = (start, bytes, Some(memory));
        }
        let (from, bytes, _) = &self.window;
        let at = |offset: u64| {
            usize::try_from(offset.saturating_sub(*from)).unwrap_or(usize::MAX).min(bytes.len())
        };
        Ok(bytes.slice(at(start)..at(end).max(at(start))))
    }
}
