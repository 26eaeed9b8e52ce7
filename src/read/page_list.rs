//! [`PageList`]: the fetched bytes of a column chunk.
//!
//! It is the whole chunk, whose pages are not located, or a list of pages whose rows are known.
//! Trap: the rows come from an index that may be wrong. [`PageList::located`] refuses what the
//! headers disprove, `LeafReader` the rest.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result, Spec};
use crate::format::{Encoding, PageHeader, PageType};
use crate::limits::Reservation;
use crate::page::{PageContext, PagePosition, StoredHeader};

/// The fetched bytes of a column chunk. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct PageList(pub(super) Arc<PageListKind>);

/// The kinds of a page list.
#[derive(Debug)]
pub(super) enum PageListKind {
    /// All of the chunk.
    Whole { bytes: Bytes, offset: u64, slots: u64 },
    /// All of the chunk, given piece by piece while it is decoded.
    InPieces { range: Range<u64>, slots: u64 },
    /// Pages whose rows are known.
    Located {
        head: Bytes,
        offset: u64,
        pages: Vec<LocatedPage>,
        row_count_source: RowCountSource,
        /// The memory of `head`, if the pages are given while they are decoded.
        in_pieces: Option<Reservation>,
    },
}

/// The origin of the knowledge which rows a page holds.
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
    /// Header and body; empty if they are fetched while they are decoded.
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

    /// Like [`PageList::whole`], for a chunk that is read piece by piece while it is decoded.
    pub(super) fn in_pieces(range: Range<u64>, slots: u64) -> Self {
        Self(Arc::new(PageListKind::InPieces { range, slots }))
    }

    /// Some pages of a chunk, in file order, as an index places them; `head` has the bytes before
    /// the first data page, at `offset`, or nothing. Returns whether a page refers to the
    /// dictionary.
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

/// The places of a page, by its header.
pub(super) struct Header {
    /// Bytes of header and body.
    pub(super) len: usize,
    pub(super) is_data: bool,
    pub(super) slots: u64,
    /// Rows of a data page, if its header states them.
    pub(super) rows: Option<u64>,
    /// Whether the values of a data page are indices.
    refers_to_dictionary: bool,
}

impl Header {
    /// The header at the start of `bytes`, if there is one and its body follows.
    pub(super) fn read(
        bytes: &[u8],
        context: &PageContext,
        position: PagePosition,
    ) -> Option<Self> {
        Self::parse(bytes, context, position).filter(|found| found.len <= bytes.len())
    }

    pub(super) fn parse(
        bytes: &[u8],
        context: &PageContext,
        position: PagePosition,
    ) -> Option<Self> {
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
        // Outside lists every row is one slot, whatever the header states.
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

/// Bytes that are read at a time, few enough to stay in the cache of a core until they are decoded.
pub(super) const PIECE: usize = 256 << 10;

/// Bytes asked for beyond a page, for the header of the next one.
pub(super) const SLACK: usize = 512;
