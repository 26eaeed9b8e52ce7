//! [`ChunkBytes`]: the bytes of a column chunk, from one page to the next.
//!
//! Where bytes are cheap to get, as from a local file, a large chunk is not fetched before it is
//! decoded: it is read piece by piece, into a buffer that is reused. A whole chunk would need fresh
//! memory, whose page faults cost more than most decoding.

use std::ops::Range;

use bytes::{Buf, Bytes};

use super::page_list::{PIECE, SLACK};
use super::supplied::Stop;
use crate::crypt::Module;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::PageHeader;
use crate::limits::{Budget, Reservation};
use crate::page::{PageContext, PagePosition, StoredHeader};

/// A page whose header is read and whose body is not opened.
pub(super) struct RawPage {
    pub header: Box<PageHeader>,
    pub body: Bytes,
    /// The module of the body, if it is encrypted.
    pub module: Option<Module>,
    /// Where its header begins in the file.
    pub offset: u64,
}

/// The rest of a chunk, of the part before its first data page, or of a page of it.
pub(super) struct ChunkBytes {
    /// The bytes that are in memory.
    rest: Bytes,
    /// Where the next page begins in the file; `rest` begins there too.
    offset: u64,
    /// The header of the next page, once it is read.
    next: Option<PageStart>,
    pieces: Option<Pieces>,
}

/// The header of a page, and how long its parts are. They end within the chunk.
struct PageStart {
    header: Box<PageHeader>,
    header_len: usize,
    body_len: usize,
    module: Option<Module>,
}

/// The bytes of a chunk that are still to be read.
struct Pieces {
    /// Where the chunk, or the page, ends in the file.
    end: u64,
    /// The current piece, or the piece that is wanted.
    held: Reservation,
    /// The range that was asked for and is not supplied yet.
    wanted: Option<Range<u64>>,
    /// Whether the page before was skipped, so that this one may be, too.
    skips: bool,
}

impl ChunkBytes {
    /// Bytes that begin at `offset` of the file, all of them in memory.
    pub(super) fn new(bytes: Bytes, offset: u64) -> Self {
        Self { rest: bytes, offset, next: None, pieces: None }
    }

    /// Like [`ChunkBytes::new`], for a chunk that ends at `end` and is read piece by piece;
    /// `budget` counts the current piece.
    pub(super) fn in_pieces(bytes: Bytes, offset: u64, end: u64, budget: &Budget) -> Self {
        let held = budget.reservation("a piece of a column chunk");
        let pieces = Some(Pieces { end, held, wanted: None, skips: false });
        Self { rest: bytes, offset, next: None, pieces }
    }

    /// Continues with the page of this range; `bytes` of it are in memory.
    pub(super) fn move_to(&mut self, bytes: Bytes, range: Range<u64>) {
        (self.rest, self.offset) = (bytes, range.start);
        if let Some(pieces) = &mut self.pieces {
            pieces.end = range.end;
        }
    }

    /// Whether a page has begun, or is asked for, and is not taken.
    pub(super) fn has_begun(&self) -> bool {
        !self.rest.is_empty() || self.next.is_some() || self.is_waiting()
    }

    /// Whether bytes were asked for and are not supplied yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| pieces.wanted.is_some())
    }

    /// Where the next page begins in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether pages lie in a piece of the chunk, which is counted only until the next one is
    /// given.
    pub(super) fn are_in_pieces(&self) -> bool {
        self.pieces.is_some()
    }

    /// Number of bytes of the chunk that are not in memory.
    fn missing(&self) -> u64 {
        let loaded_end = self.offset + self.rest.len() as u64;
        self.pieces.as_ref().map_or(0, |pieces| pieces.end.saturating_sub(loaded_end))
    }

    /// Asks for at least `len` bytes from the next page on, or for all that there are.
    fn ask_for(&mut self, len: usize) -> Stop {
        let Some(pieces) = &mut self.pieces else {
            return Error::internal("a column chunk that is at hand lacks bytes").into();
        };
        let end = self.offset.saturating_add(len as u64).min(pieces.end);
        // Before the next piece, so that its memory can be used again.
        self.rest = Bytes::new();
        let len = usize::try_from(end - self.offset).unwrap_or(usize::MAX);
        if let Err(e) = pieces.held.resize(len) {
            return e.into();
        }
        pieces.wanted = Some(self.offset..end);
        Stop::NeedsMore(self.offset..end)
    }

    /// Takes the bytes that were asked for.
    ///
    /// # Errors
    /// `Usage` if they are not as many, or none were asked for.
    pub(super) fn supply(&mut self, bytes: Bytes) -> Result<()> {
        let wanted = self.pieces.as_mut().and_then(|pieces| pieces.wanted.take());
        let len = wanted.map_or(0, |range| range.end - range.start);
        if bytes.len() as u64 != len {
            let given = bytes.len();
            return Err(Error::usage(format_args!(
                "a column chunk was given {given} bytes for a piece of {len}"
            )));
        }
        self.rest = bytes;
        Ok(())
    }

    /// The header of the next page; `None` if no bytes are left.
    ///
    /// # Errors
    /// `Malformed` if it is none, or its body is cut off; `Limit(Memory)` for a piece.
    pub(super) fn next_header(
        &mut self,
        context: &PageContext,
        position: PagePosition,
    ) -> Result<Option<&PageHeader>, Stop> {
        if self.next.is_none() {
            if self.rest.is_empty() {
                if self.missing() == 0 {
                    return Ok(None);
                }
                let skips = self.pieces.as_ref().is_some_and(|pieces| pieces.skips);
                return Err(self.ask_for(if skips { SLACK } else { PIECE }));
            }
            let StoredHeader { header, len: header_len, body: module } =
                match context.read_header(&self.rest, position) {
                    Ok(header) => header,
                    // It may be cut off.
                    Err(e) if self.missing() > 0 && e.kind() != ErrorKind::Crypto => {
                        return Err(self.ask_for(piece(self.rest.len().saturating_mul(2))));
                    }
                    Err(e) => return Err(e.into()),
                };
            let body_len =
                crate::page::count(header.compressed_page_size, "PageHeader.compressed_page_size")?;
            let left = (self.rest.len() - header_len) as u64 + self.missing();
            if body_len as u64 > left {
                return Err(Error::mismatch(
                    Spec::Pages,
                    "compressed_page_size",
                    format_args!("at most the {left} bytes left of the column chunk"),
                    body_len,
                )
                .into());
            }
            self.next = Some(PageStart { header, header_len, body_len, module });
        }
        Ok(self.next.as_ref().map(|next| &*next.header))
    }

    /// Takes the next page. `None` if no bytes are left.
    ///
    /// # Errors
    /// As [`ChunkBytes::next_header`].
    pub(super) fn take_page(
        &mut self,
        context: &PageContext,
        position: PagePosition,
    ) -> Result<Option<RawPage>, Stop> {
        self.next_header(context, position)?;
        let Some(next) = self.next.take() else { return Ok(None) };
        let len = next.header_len.saturating_add(next.body_len);
        if len > self.rest.len() {
            self.next = Some(next);
            // Many pages at a time, or one: a page that is cut off at the end is given twice.
            return Err(self.ask_for(piece(len.saturating_add(SLACK))));
        }
        let PageStart { header, header_len, module, .. } = next;
        let mut body = self.rest.split_to(len);
        // To split the header off would count references up and down.
        body.advance(header_len);
        let offset = self.offset;
        self.move_on(len, false);
        Ok(Some(RawPage { header, body, module, offset }))
    }

    /// Skips the next page, whose header was read. Its body is not asked for.
    pub(super) fn skip_page(&mut self) {
        if let Some(PageStart { header_len, body_len, .. }) = self.next.take() {
            let len = header_len.saturating_add(body_len);
            let _ = self.rest.split_to(len.min(self.rest.len()));
            self.move_on(len, true);
        }
    }

    fn move_on(&mut self, len: usize, skips: bool) {
        self.offset += len as u64;
        if let Some(pieces) = &mut self.pieces {
            pieces.skips = skips;
        }
    }
}

/// How many bytes to ask for where `len` are needed: a whole piece if they are few.
fn piece(len: usize) -> usize {
    if len <= PIECE / 4 { PIECE } else { len }
}
