//! [`PageSearch`] finds which rows each page of a column chunk holds, from the headers of all its
//! pages.
//!
//! Several threads can then decode one leaf. Nothing is decompressed.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::page_list::{Header, LocatedPage, PIECE, PageList, PageListKind, RowCountSource, SLACK};
use super::supplied::Step;
use crate::bytes::saturated;
use crate::limits::{Budget, Reservation};
use crate::page::{PageContext, PagePosition};

/// Goes over a chunk from header to header, to find the rows of each page.
pub(super) struct PageSearch {
    list: PageList,
    /// Where the next header begins in the file, and where the chunk ends.
    rest: Range<u64>,
    slots_left: u64,
    /// Rows of the pages so far, and of the chunk.
    row: u64,
    rows: u64,
    position: PagePosition,
    found: Vec<LocatedPage>,
    /// Where the first data page begins.
    head: Range<u64>,
    /// Maximum bytes that are asked for to read the next header.
    header_bytes: usize,
    /// The memory of the head, from when it is asked for.
    head_memory: Option<Reservation>,
}

impl PageSearch {
    /// A search in a chunk of `rows` rows.
    pub(super) fn new(list: &PageList, rows: u64) -> Self {
        let (range, slots_left) = match &*list.0 {
            PageListKind::Whole { bytes, offset, slots } => {
                (*offset..offset.saturating_add(bytes.len() as u64), *slots)
            }
            PageListKind::InPieces { range, slots } => (range.clone(), *slots),
            PageListKind::Located { .. } => (0..0, 0),
        };
        Self {
            list: list.clone(),
            head: range.start..range.start,
            rest: range,
            slots_left,
            row: 0,
            rows,
            position: PagePosition { is_first: true, data_pages: 0 },
            found: Vec::new(),
            header_bytes: SLACK,
            head_memory: None,
        }
    }

    /// Returns the same pages with the rows of each, if the headers state them, the chunk is not
    /// unusual in any way, and the budget suffices for the dictionary page.
    pub(super) fn step(
        &mut self,
        context: &PageContext,
        budget: &Budget,
        mut given: Option<Bytes>,
    ) -> Step<Option<PageList>> {
        let list = self.list.clone();
        if let PageListKind::Located { .. } = &*list.0 {
            return Step::Done(Some(list));
        }
        while self.slots_left > 0 {
            let found = match self.next_header(context, given.take()) {
                Step::Done(found) => found,
                Step::NeedsMore(range) => return Step::NeedsMore(range),
            };
            let is_usual = found.is_some_and(|(bytes, header)| self.take(bytes, &header));
            if !is_usual {
                return Step::Done(None);
            }
        }
        if self.row != self.rows {
            return Step::Done(None);
        }
        let (head, in_pieces) = match &*list.0 {
            PageListKind::Whole { bytes, offset, .. } => {
                (bytes.slice(..saturated(self.head.end - offset)), None)
            }
            // The dictionary page is given once, for all walks.
            _ => {
                // Decoded whole, the chunk takes less memory.
                let Some(memory) = self.head_memory(budget) else { return Step::Done(None) };
                let head = match given {
                    None if self.head.is_empty() => Bytes::new(),
                    None => {
                        self.head_memory = Some(memory);
                        return Step::NeedsMore(self.head.clone());
                    }
                    Some(head) => head,
                };
                (head, Some(memory))
            }
        };
        Step::Done(Some(PageList(Arc::new(PageListKind::Located {
            head,
            offset: self.head.start,
            pages: std::mem::take(&mut self.found),
            row_count_source: RowCountSource::Headers,
            in_pieces,
        }))))
    }

    /// The next header, and the bytes of its page where they are in memory; `None` if there is no
    /// header, or it is not worth being looked for.
    fn next_header(
        &mut self,
        context: &PageContext,
        given: Option<Bytes>,
    ) -> Step<Option<(Bytes, Header)>> {
        if let PageListKind::Whole { bytes, offset, .. } = &*self.list.0 {
            let rest = bytes.slice(saturated(self.rest.start - offset).min(bytes.len())..);
            let header = Header::read(&rest, context, self.position);
            return Step::Done(header.map(|header| (rest.slice(..header.len), header)));
        }
        let Range { start, end } = self.rest;
        if let Some(bytes) = given {
            let header = Header::parse(&bytes, context, self.position);
            // Most headers are small; bounds of long strings can make them large.
            if header.is_some() || self.header_bytes >= PIECE {
                self.header_bytes = SLACK;
                let header = header.filter(|header| header.len as u64 <= end - start);
                return Step::Done(header.map(|header| (Bytes::new(), header)));
            }
            self.header_bytes = PIECE;
        }
        if start >= end || self.pages_are_tiny() {
            return Step::Done(None);
        }
        let max = start.saturating_add(self.header_bytes as u64);
        Step::NeedsMore(start..max.min(end))
    }

    /// The memory of what precedes the data pages; `None` if the budget has no room for it.
    fn head_memory(&mut self, budget: &Budget) -> Option<Reservation> {
        if let Some(memory) = self.head_memory.take() {
            return Some(memory);
        }
        let len = usize::try_from(self.head.end - self.head.start).unwrap_or(usize::MAX);
        budget.take_for("what precedes the data pages of a column chunk", len).ok()
    }

    /// Whether the pages so far take fewer bytes than to look for them.
    fn pages_are_tiny(&self) -> bool {
        let n = self.found.len() as u64;
        n > MAX_TINY && (self.rest.start - self.head.end) / n < SLACK as u64
    }

    /// Continues after the page of this header. False if the page should not be there.
    fn take(&mut self, bytes: Bytes, header: &Header) -> bool {
        self.position.is_first = false;
        let page = self.rest.start..self.rest.start.saturating_add(header.len as u64);
        self.rest.start = page.end;
        if !header.is_data {
            self.head.end = page.end;
            // After a data page there is nothing else in any sound chunk.
            return self.position.data_pages == 0;
        }
        let index = self.position.data_pages;
        self.position.data_pages += 1;
        let left = self.slots_left.checked_sub(header.slots);
        let end = header.rows.and_then(|rows| self.row.checked_add(rows));
        let Some((left, end)) = left.zip(end) else { return false };
        // A page without rows is skipped.
        if end > self.row {
            let rows = self.row..end;
            self.found.push(LocatedPage { bytes, range: page, rows, index });
        } else if header.slots > 0 {
            return false;
        }
        (self.slots_left, self.row) = (left, end);
        true
    }
}

/// Pages from which on they are asked how large they are.
const MAX_TINY: u64 = 1024;
