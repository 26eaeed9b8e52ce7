//! [`PageList`]: what was fetched of a column chunk.
//!
//! It is the whole chunk, of which nothing more is known, or pages of which each row is known.
//! Trap: rows come from an index that may lie. What the headers can disprove is refused by
//! [`PageList::located`], the rest by `LeafReader`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::supplied::Step;
use crate::bytes::saturated;
use crate::error::{Error, Result, Spec};
use crate::format::{Encoding, PageHeader, PageType};
use crate::limits::{Budget, Reservation};
use crate::page::{PageContext, PagePosition, StoredHeader};

/// What was fetched of a column chunk. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct PageList(pub(super) Arc<PageListKind>);

/// What is known of it.
#[derive(Debug)]
pub(super) enum PageListKind {
    /// All of the chunk.
    Whole { bytes: Bytes, offset: u64, slots: u64 },
    /// All of the chunk, given piece by piece while it is decoded.
    InPieces { range: Range<u64>, slots: u64 },
    /// Pages of which it is known which rows they hold.
    Located {
        head: Bytes,
        offset: u64,
        pages: Vec<LocatedPage>,
        row_count_source: RowCountSource,
        /// The memory of `head`, if the pages are given while they are decoded.
        in_pieces: Option<Reservation>,
    },
}

/// What says which rows a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowCountSource {
    /// The headers of all pages of the chunk.
    Headers,
    /// An index: the rows of a page are counted before any is given.
    Index,
}

/// A data page, and which rows it holds.
#[derive(Debug, Clone)]
pub(super) struct LocatedPage {
    /// Header and body; empty if they are given while they are decoded.
    pub bytes: Bytes,
    /// Where header and body are in the file.
    pub range: Range<u64>,
    /// Rows, counted from the first of the row group.
    pub rows: Range<u64>,
    /// Index among the data pages of the chunk.
    pub index: usize,
}

impl PageList {
    /// A chunk of `slots` level entries whose bytes begin at `offset` of the file.
    pub(super) fn whole(bytes: Bytes, offset: u64, slots: u64) -> Self {
        Self(Arc::new(PageListKind::Whole { bytes, offset, slots }))
    }

    /// As [`PageList::whole`], of a chunk that is given piece by piece while it is decoded.
    pub(super) fn in_pieces(range: Range<u64>, slots: u64) -> Self {
        Self(Arc::new(PageListKind::InPieces { range, slots }))
    }

    /// Some pages of a chunk, in file order, as an index places them; `head` is what stands before
    /// the first data page, at `offset`, or nothing. Says whether a page refers to the dictionary.
    ///
    /// # Errors
    /// `Malformed(PageIndex)` if the header of a page contradicts its place.
    pub(super) fn located(
        head: Bytes,
        offset: u64,
        pages: Vec<LocatedPage>,
        context: &PageContext,
    ) -> Result<(Self, bool)> {
        let mut rest = &head[..];
        let mut position = PagePosition { is_first: true, data_pages: 0 };
        while let Some(found) = Some(rest).filter(|rest| !rest.is_empty()) {
            let found = Header::read(found, context, position).filter(|found| !found.is_data);
            position.is_first = false;
            let left = found.and_then(|found| rest.get(found.len..));
            rest = left.ok_or_else(|| {
                Error::malformed(
                    Spec::PageIndex,
                    "what stands before the first page of the offset index is no dictionary page",
                )
                .at_offset(offset)
            })?;
        }
        let mut refers_to_dictionary = false;
        for page in &pages {
            let rows = page.rows.end.saturating_sub(page.rows.start);
            let position = PagePosition { is_first: false, data_pages: page.index };
            let found = Header::read(&page.bytes, context, position).filter(|found| {
                found.len == page.bytes.len() && found.rows.is_none_or(|found| found == rows)
            });
            let found = found.filter(|found| found.is_data).ok_or_else(|| {
                Error::malformed(
                    Spec::PageIndex,
                    format_args!(
                        "the offset index says that a data page of {} bytes and {rows} rows is here, and its header does not",
                        page.bytes.len()
                    ),
                )
                .at_offset(page.range.start)
                .at_page(page.index)
            })?;
            refers_to_dictionary |= found.refers_to_dictionary;
        }
        let row_count_source = RowCountSource::Index;
        let list = Self(Arc::new(PageListKind::Located {
            head,
            offset,
            pages,
            row_count_source,
            in_pieces: None,
        }));
        Ok((list, refers_to_dictionary))
    }

    /// Bytes of the pages in the file.
    pub(super) fn bytes(&self) -> u64 {
        match &*self.0 {
            PageListKind::Whole { bytes, .. } => bytes.len() as u64,
            PageListKind::InPieces { range, .. } => range.end - range.start,
            PageListKind::Located { pages, .. } => {
                pages.iter().map(|page| page.range.end.saturating_sub(page.range.start)).sum()
            }
        }
    }

    /// The data pages, where it is known which rows they hold.
    pub(super) fn pages(&self) -> Option<&[LocatedPage]> {
        match &*self.0 {
            PageListKind::Whole { .. } | PageListKind::InPieces { .. } => None,
            PageListKind::Located { pages, .. } => Some(pages),
        }
    }
}

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

    /// The same pages, with the rows of each, if the headers tell them and the chunk is not unusual
    /// in any way.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget has no room for the dictionary page.
    pub(super) fn step(
        &mut self,
        context: &PageContext,
        budget: &Budget,
        mut given: Option<Bytes>,
    ) -> Result<Step<Option<PageList>>> {
        let list = self.list.clone();
        if let PageListKind::Located { .. } = &*list.0 {
            return Ok(Step::Done(Some(list)));
        }
        while self.slots_left > 0 {
            let found = match &*list.0 {
                PageListKind::Whole { bytes, offset, .. } => {
                    let rest = bytes.slice(saturated(self.rest.start - offset).min(bytes.len())..);
                    Header::read(&rest, context, self.position)
                        .map(|header| (rest.slice(..header.len), header))
                }
                _ => {
                    let Some(bytes) = given.take() else {
                        let Range { start, end } = self.rest;
                        if start >= end || self.pages_are_tiny() {
                            return Ok(Step::Done(None));
                        }
                        let max = start.saturating_add(self.header_bytes as u64);
                        return Ok(Step::NeedsMore(start..max.min(end)));
                    };
                    let header = Header::parse(&bytes, context, self.position);
                    // Most headers are small; bounds of long strings can make them large.
                    if header.is_none() && self.header_bytes < PIECE {
                        self.header_bytes = PIECE;
                        continue;
                    }
                    self.header_bytes = SLACK;
                    let left = self.rest.end - self.rest.start;
                    let header = header.filter(|header| header.len as u64 <= left);
                    header.map(|header| (Bytes::new(), header))
                }
            };
            let is_usual = found.is_some_and(|(bytes, header)| self.take(bytes, &header));
            if !is_usual {
                return Ok(Step::Done(None));
            }
        }
        if self.row != self.rows {
            return Ok(Step::Done(None));
        }
        let (head, in_pieces) = match &*list.0 {
            PageListKind::Whole { bytes, offset, .. } => {
                (bytes.slice(..saturated(self.head.end - offset)), None)
            }
            // The dictionary page is given once, for all walks.
            _ => {
                let memory = match self.head_memory.take() {
                    Some(memory) => memory,
                    None => {
                        let len = usize::try_from(self.head.end - self.head.start);
                        let what = "what precedes the data pages of a column chunk";
                        budget.take_for(what, len.unwrap_or(usize::MAX))?
                    }
                };
                let head = match given {
                    None if self.head.is_empty() => Bytes::new(),
                    None => {
                        self.head_memory = Some(memory);
                        return Ok(Step::NeedsMore(self.head.clone()));
                    }
                    Some(head) => head,
                };
                (head, Some(memory))
            }
        };
        Ok(Step::Done(Some(PageList(Arc::new(PageListKind::Located {
            head,
            offset: self.head.start,
            pages: std::mem::take(&mut self.found),
            row_count_source: RowCountSource::Headers,
            in_pieces,
        })))))
    }

    /// Whether the pages so far take fewer bytes than to look for them.
    fn pages_are_tiny(&self) -> bool {
        let n = self.found.len() as u64;
        n > MAX_TINY && (self.rest.start - self.head.end) / n < SLACK as u64
    }

    /// Goes on behind the page of this header. False if it should not be where it is.
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
        // A page without rows has nothing to give.
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

/// What the header of a page says of where things are.
struct Header {
    /// Bytes of header and body.
    len: usize,
    is_data: bool,
    slots: u64,
    /// Rows of a data page, if it says.
    rows: Option<u64>,
    /// Whether the values of a data page are indices.
    refers_to_dictionary: bool,
}

impl Header {
    /// The header at the start of `bytes`, if there is one and its body follows.
    fn read(bytes: &[u8], context: &PageContext, position: PagePosition) -> Option<Self> {
        Self::parse(bytes, context, position).filter(|found| found.len <= bytes.len())
    }

    fn parse(bytes: &[u8], context: &PageContext, position: PagePosition) -> Option<Self> {
        let StoredHeader { header, len, .. } = context.read_header(bytes, position).ok()?;
        let body_len = usize::try_from(header.compressed_page_size).ok()?;
        let len = len.checked_add(body_len)?;
        let number = |n: i32| u64::try_from(n).ok();
        let (slots, rows) = match header.r#type {
            PageType::DataPage => (number(header.data_page_header.as_ref()?.num_values)?, None),
            PageType::DataPageV2 => {
                let inner = header.data_page_header_v2.as_ref()?;
                (number(inner.num_values)?, Some(number(inner.num_rows)?))
            }
            _ => {
                let (slots, rows, refers_to_dictionary) = (0, None, false);
                return Some(Self { len, is_data: false, slots, rows, refers_to_dictionary });
            }
        };
        // Outside lists every row is one slot, whatever else the header may say.
        let rows = if context.max_rep == 0 { Some(slots) } else { rows };
        let refers_to_dictionary = refers_to_dictionary(&header);
        Some(Self { len, is_data: true, slots, rows, refers_to_dictionary })
    }
}

/// Whether the values of a data page are indices.
pub(super) fn refers_to_dictionary(header: &PageHeader) -> bool {
    let v1 = header.data_page_header.as_ref().map(|header| header.encoding);
    let v2 = header.data_page_header_v2.as_ref().map(|header| header.encoding);
    let encoding = if header.r#type == PageType::DataPageV2 { v2 } else { v1 };
    matches!(encoding, Some(Encoding::RleDictionary | Encoding::PlainDictionary))
}

/// Bytes asked for at a time: so many stay in the cache of a core until they are decoded.
pub(super) const PIECE: usize = 256 << 10;

/// Bytes asked for beyond a page, for the header of the next one.
pub(super) const SLACK: usize = 512;
