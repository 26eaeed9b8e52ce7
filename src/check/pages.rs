//! [`PageWalk`]: the pages of a column chunk, headers and bodies, as they lie in the file.
//!
//! Spec: README.md, "Column chunks". Used by `column`. Trap: a header says where the next page
//! begins, so what stands after a broken one cannot be told apart.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use super::context::FileContext;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::limits::Reservation;
use crate::memory;
use crate::page::{PageContext, PagePosition, StoredHeader, count};

/// Reads the pages of a chunk one after the other.
pub(super) struct PageWalk<'f> {
    file: &'f FileContext,
    range: Range<u64>,
    /// Where the next page begins.
    at: u64,
    /// Bytes of the chunk that were read and are not done with, one after the other.
    windows: VecDeque<ReadWindow>,
    /// The memory of bytes that were joined last.
    joined: Option<Reservation>,
}

/// Bytes that were read together.
struct ReadWindow {
    start: u64,
    bytes: Bytes,
    _memory: Reservation,
}

impl ReadWindow {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// The bytes of a range that lie in it.
    fn part(&self, range: &Range<u64>) -> Bytes {
        let len = self.bytes.len();
        let at = |offset: u64| {
            usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX).min(len)
        };
        self.bytes.slice(at(range.start)..at(range.end).max(at(range.start)))
    }
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
const WINDOW: u64 = 2 << 20;
/// Bytes in which most headers are found, and those that no header exceeds.
const FEW: u64 = 16 << 10;
const MAX_HEADER: u64 = 16 << 20;

impl<'f> PageWalk<'f> {
    pub(super) fn new(file: &'f FileContext, range: Range<u64>) -> Self {
        let at = range.start;
        Self { file, range, at, windows: VecDeque::new(), joined: None }
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

    /// Up to `len` bytes of the chunk from `start` on. Each byte is read once, unless that takes
    /// more memory than there is.
    fn bytes(&mut self, start: u64, len: u64) -> Result<Bytes> {
        let wanted = start..start.saturating_add(len).min(self.range.end);
        self.joined = None;
        if wanted.is_empty() {
            return Ok(Bytes::new());
        }
        while self.windows.front().is_some_and(|window| window.end() <= start) {
            self.windows.pop_front();
        }
        if self.windows.front().is_some_and(|window| window.start > start) {
            self.windows.clear();
        }
        let read = self.windows.back().map_or(start, ReadWindow::end);
        if read < wanted.end {
            match self.read(read..wanted.end) {
                Err(error) if is_limit(&error) && !self.windows.is_empty() => {
                    // The memory of what was read before is given back first.
                    self.windows.clear();
                    self.read(wanted.clone())?;
                }
                read => read?,
            }
        }
        match self.joined(&wanted) {
            Err(error) if is_limit(&error) => {
                self.windows.clear();
                self.read(wanted.clone())?;
                self.joined(&wanted)
            }
            joined => joined,
        }
    }

    /// Reads at least these bytes of the chunk.
    fn read(&mut self, range: Range<u64>) -> Result<()> {
        let wide = if self.file.source.in_memory() {
            self.range.end
        } else {
            // With the header after a body.
            let len = range.end.saturating_sub(range.start).saturating_add(FEW).max(WINDOW);
            range.start.saturating_add(len).min(self.range.end)
        };
        let (bytes, memory) = match self.file.read(range.start..wide) {
            Err(error) if is_limit(&error) && wide > range.end => self.file.read(range.clone())?,
            read => read?,
        };
        self.windows.push_back(ReadWindow { start: range.start, bytes, _memory: memory });
        Ok(())
    }

    /// Bytes that were read, copied if not all of them were read together.
    fn joined(&mut self, wanted: &Range<u64>) -> Result<Bytes> {
        if let Some(first) = self.windows.front().filter(|window| window.end() >= wanted.end) {
            return Ok(first.part(wanted));
        }
        let len = usize::try_from(wanted.end.saturating_sub(wanted.start)).unwrap_or(usize::MAX);
        self.joined = Some(self.file.budget.take_for("bytes of a page", len)?);
        let mut bytes = memory::vec_for(len)?;
        self.windows.iter().for_each(|window| bytes.extend_from_slice(&window.part(wanted)));
        Ok(bytes.into())
    }
}

fn is_limit(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit(_))
}
