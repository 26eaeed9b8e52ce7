//! [`ChunkBytes`]: the bytes of a column chunk, from one page to the next.
//!
//! Where bytes cost next to nothing to get, as from a local file, a large chunk is not fetched but
//! [read](RangeReader), a piece at a time into memory that is used again: fetched whole, it would
//! take fresh pages of memory, which cost more than to decode most of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::page_list::{PIECE, RangeReader, SLACK};
use crate::crypt::Module;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::PageHeader;
use crate::limits::{Budget, Reservation};
use crate::page::{PageContext, PagePosition, StoredHeader};

/// A page whose header is read and whose body is not opened.
pub(super) struct RawPage {
    pub header: PageHeader,
    pub body: Bytes,
    /// What the body is, if it is encrypted.
    pub module: Option<Module>,
    /// Where its header begins in the file.
    pub offset: u64,
}

/// What is left of a chunk, of what precedes its first data page, or of a page of it.
pub(super) struct ChunkBytes {
    /// Those that are at hand.
    rest: Bytes,
    /// Where `rest` begins in the file.
    offset: u64,
    streaming: Option<Streaming>,
}

/// What is still to be read of a chunk.
struct Streaming {
    range_reader: Arc<dyn RangeReader>,
    /// Where the chunk, or the page, ends in the file.
    end: u64,
    held: Reservation,
}

impl ChunkBytes {
    /// Bytes that begin at `offset` of the file, all of them at hand.
    pub(super) fn new(bytes: Bytes, offset: u64) -> Self {
        Self { rest: bytes, offset, streaming: None }
    }

    /// As [`ChunkBytes::new`], of a chunk that goes on up to `end` and is read while it is decoded;
    /// what is held of it is counted by `budget`.
    pub(super) fn streaming(
        bytes: Bytes,
        offset: u64,
        end: u64,
        range_reader: &Arc<dyn RangeReader>,
        budget: &Budget,
    ) -> Self {
        let held = budget.reservation("a piece of a column chunk");
        let streaming = Some(Streaming { range_reader: range_reader.clone(), end, held });
        Self { rest: bytes, offset, streaming }
    }

    /// Goes on with the page of this range, of which `bytes` are at hand.
    pub(super) fn move_to(&mut self, bytes: Bytes, range: Range<u64>) {
        (self.rest, self.offset) = (bytes, range.start);
        if let Some(streaming) = &mut self.streaming {
            streaming.end = range.end;
        }
    }

    /// Whether nothing is at hand.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Where the next page begins in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether pages lie in a piece of the chunk, which is counted only until the next one is read.
    pub(super) fn are_streaming(&self) -> bool {
        self.streaming.is_some()
    }

    /// Bytes of the chunk that are not at hand.
    fn unread(&self) -> u64 {
        let at_hand = self.offset + self.rest.len() as u64;
        self.streaming.as_ref().map_or(0, |streaming| streaming.end.saturating_sub(at_hand))
    }

    /// Reads at least `len` bytes, or all that there are: a whole piece if they are few.
    fn read_more(&mut self, len: usize) -> Result<()> {
        let Some(Streaming { range_reader, end, held }) = &mut self.streaming else {
            return Ok(());
        };
        // Many pages at a time, or one: a page that is cut off at the end is read twice.
        let len = if len <= PIECE / 4 { PIECE } else { len };
        let end = self.offset.saturating_add(len as u64).min(*end);
        // Before the next piece, so that its memory can be used again.
        self.rest = Bytes::new();
        held.resize(usize::try_from(end - self.offset).unwrap_or(usize::MAX))?;
        let range = self.offset..end;
        let bytes = range_reader.read(range.clone())?;
        if bytes.len() as u64 != range.end - range.start {
            let given = bytes.len();
            return Err(Error::usage(format_args!(
                "RangeReader::read gave {given} bytes for the range {range:?}"
            )));
        }
        self.rest = bytes;
        Ok(())
    }

    /// Takes the next page from what is at hand, or reads it. `None` if no bytes are left.
    ///
    /// # Errors
    /// `Malformed` if it is no page, or is cut off; `Io`; `Limit(Memory)` for a piece that is
    /// read.
    pub(super) fn take_page(
        &mut self,
        context: &PageContext,
        position: PagePosition,
    ) -> Result<Option<RawPage>> {
        let offset = self.offset;
        if self.rest.is_empty() {
            self.read_more(0)?;
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let StoredHeader { header, len: header_len, body: module } = loop {
            match context.read_header(&self.rest, position) {
                Ok(header) => break header,
                // It may be cut off.
                Err(e) if self.unread() > 0 && e.kind() != ErrorKind::Crypto => {
                    self.read_more(self.rest.len().saturating_mul(2))?;
                }
                Err(e) => return Err(e),
            }
        };
        let body_len =
            crate::page::count(header.compressed_page_size, "PageHeader.compressed_page_size")?;
        let len = header_len.saturating_add(body_len);
        if len > self.rest.len() && len as u64 <= self.rest.len() as u64 + self.unread() {
            self.read_more(len.saturating_add(SLACK))?;
        }
        if len > self.rest.len() {
            let left = (self.rest.len() - header_len) as u64 + self.unread();
            return Err(Error::mismatch(
                Spec::Pages,
                "compressed_page_size",
                format_args!("at most the {left} bytes left of the column chunk"),
                body_len,
            ));
        }
        let mut taken = self.rest.split_to(len);
        self.offset += taken.len() as u64;
        let body = taken.split_off(header_len);
        Ok(Some(RawPage { header, body, module, offset }))
    }
}
