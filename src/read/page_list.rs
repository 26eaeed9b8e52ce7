//! [`PageList`]: what was fetched of a column chunk.
//!
//! It is the whole chunk, of which nothing more is known, or pages of which each row is known.
//! Trap: rows come from an index that may lie. What the headers can disprove is refused by
//! [`PageList::located`], the rest by `LeafReader`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes::saturated;
use crate::error::{Error, Result, Spec};
use crate::format::{Encoding, PageHeader, PageType};
use crate::page::{PageContext, PagePosition, StoredHeader};

/// Gives any bytes of the file at once: for chunks that are read while they are decoded. All else
/// is asked for beforehand.
pub(crate) trait RangeReader: std::fmt::Debug + Send + Sync {
    /// The bytes of `range`.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;
}

/// What was fetched of a column chunk. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct PageList(pub(super) Arc<PageListKind>);

/// What is known of it.
#[derive(Debug)]
pub(super) enum PageListKind {
    /// All of the chunk.
    Whole { bytes: Bytes, offset: u64, slots: u64 },
    /// All of the chunk, read while it is decoded.
    Streaming { range_reader: Arc<dyn RangeReader>, range: Range<u64>, slots: u64 },
    /// Pages of which it is known which rows they hold; read while they are decoded if there is a
    /// `range_reader`.
    Located {
        head: Bytes,
        offset: u64,
        pages: Vec<LocatedPage>,
        row_count_source: RowCountSource,
        range_reader: Option<Arc<dyn RangeReader>>,
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
    /// Header and body; empty if they are read while they are decoded.
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

    /// As [`PageList::whole`], of a chunk that is read while it is decoded.
    pub(super) fn streaming(
        range_reader: Arc<dyn RangeReader>,
        range: Range<u64>,
        slots: u64,
    ) -> Self {
        Self(Arc::new(PageListKind::Streaming { range_reader, range, slots }))
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
            range_reader: None,
        }));
        Ok((list, refers_to_dictionary))
    }

    /// Bytes of the pages in the file.
    pub(super) fn bytes(&self) -> u64 {
        match &*self.0 {
            PageListKind::Whole { bytes, .. } => bytes.len() as u64,
            PageListKind::Streaming { range, .. } => range.end - range.start,
            PageListKind::Located { pages, .. } => {
                pages.iter().map(|page| page.range.end.saturating_sub(page.range.start)).sum()
            }
        }
    }

    /// The same pages, with the rows of each if the headers tell them and all is well; the chunk
    /// holds `rows` rows.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    pub(super) fn find_pages(&self, rows: u64, context: &PageContext) -> Result<Option<Self>> {
        let (offset, found, range_reader) = match &*self.0 {
            PageListKind::Whole { bytes, offset, slots } => {
                let end = offset.saturating_add(bytes.len() as u64);
                let next = |at: u64, position| {
                    let rest = bytes.slice(saturated(at - offset).min(bytes.len())..);
                    let header = Header::read(&rest, context, position);
                    Ok(header.map(|header| (rest.slice(..header.len), header)))
                };
                (*offset, FoundPages::find(*offset..end, *slots, rows, next)?, None)
            }
            PageListKind::Streaming { range_reader, range, slots } => {
                let next = |at: u64, position| {
                    let header =
                        Header::read_from(&**range_reader, at..range.end, context, position)?;
                    Ok(header.map(|header| (Bytes::new(), header)))
                };
                let found = FoundPages::find(range.clone(), *slots, rows, next)?;
                (range.start, found, Some(range_reader.clone()))
            }
            PageListKind::Located { .. } => return Ok(Some(self.clone())),
        };
        let Some(FoundPages { pages, head_end }) = found else { return Ok(None) };
        let head = match (&*self.0, &range_reader) {
            (PageListKind::Whole { bytes, .. }, _) => bytes.slice(..saturated(head_end - offset)),
            // The dictionary is read once, for all walks.
            (_, Some(range_reader)) => range_reader.read(offset..head_end)?,
            _ => Bytes::new(),
        };
        let row_count_source = RowCountSource::Headers;
        Ok(Some(Self(Arc::new(PageListKind::Located {
            head,
            offset,
            pages,
            row_count_source,
            range_reader,
        }))))
    }

    /// The data pages, where it is known which rows they hold.
    pub(super) fn pages(&self) -> Option<&[LocatedPage]> {
        match &*self.0 {
            PageListKind::Whole { .. } | PageListKind::Streaming { .. } => None,
            PageListKind::Located { pages, .. } => Some(pages),
        }
    }
}

/// The data pages of a chunk, and where the first one begins.
struct FoundPages {
    pages: Vec<LocatedPage>,
    head_end: u64,
}

impl FoundPages {
    /// Goes from header to header. `next` gives the header at a place of the file, and the bytes of
    /// the page if they are there; no header if there is none, or its page is not within the chunk.
    /// `None` if the chunk is unusual in any way.
    fn find(
        range: Range<u64>,
        slots: u64,
        rows: u64,
        mut next: impl FnMut(u64, PagePosition) -> Result<Option<(Bytes, Header)>>,
    ) -> Result<Option<Self>> {
        let mut found = Self { pages: Vec::new(), head_end: range.start };
        let (mut at, mut slots_left, mut row) = (range.start, slots, 0u64);
        let mut position = PagePosition { is_first: true, data_pages: 0 };
        while slots_left > 0 {
            let Some((bytes, header)) = next(at, position)? else { return Ok(None) };
            position.is_first = false;
            let page = at..at.saturating_add(header.len as u64);
            at = page.end;
            if !header.is_data {
                // After a data page there is nothing else in any sound chunk.
                if position.data_pages > 0 {
                    return Ok(None);
                }
                found.head_end = at;
                continue;
            }
            let index = position.data_pages;
            position.data_pages += 1;
            let left = slots_left.checked_sub(header.slots);
            let end = header.rows.and_then(|rows| row.checked_add(rows));
            let Some((left, end)) = left.zip(end) else { return Ok(None) };
            // A page without rows has nothing to give.
            if end > row {
                found.pages.push(LocatedPage { bytes, range: page, rows: row..end, index });
            } else if header.slots > 0 {
                return Ok(None);
            }
            (slots_left, row) = (left, end);
        }
        Ok((row == rows).then_some(found))
    }
}

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

    /// The header at the start of `range`, if there is one and its body is within.
    ///
    /// # Errors
    /// `Io` if it cannot be read.
    fn read_from(
        range_reader: &dyn RangeReader,
        range: Range<u64>,
        context: &PageContext,
        position: PagePosition,
    ) -> Result<Option<Self>> {
        // Most headers are small; bounds of long strings can make them large.
        for max in [SLACK as u64, PIECE as u64] {
            let end = range.end.min(range.start.saturating_add(max));
            let found = Self::parse(&range_reader.read(range.start..end)?, context, position);
            if found.is_some() {
                return Ok(found.filter(|found| found.len as u64 <= range.end - range.start));
            }
        }
        Ok(None)
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

/// Bytes read at a time: so many stay in the cache of a core until they are decoded.
pub(super) const PIECE: usize = 256 << 10;

/// Bytes read beyond a page, for the header of the next one.
pub(super) const SLACK: usize = 512;
