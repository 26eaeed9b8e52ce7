//! [`FoundPages`]: the pages that lie one after the other in a range of bytes, by their headers.
//!
//! Trap: nothing says how long a header is, nor that there is one. What is no header may still be
//! parsed as one, so that each number is checked against the range, and against the others.

use std::ops::Range;

use bytes::Bytes;

use super::other_parts::{FileEnd, OtherPart, begins_part};
use crate::check::{check_header, encoding_of};
use crate::error::Result;
use crate::format::{Encoding, PageHeader, PageType};
use crate::io::{Source, read_exactly};
use crate::limits::{Budget, Reservation};
use crate::page::{PageContext, PagePosition, StoredHeader};

/// A page: what its header says, without its statistics.
#[derive(Debug, Clone)]
pub(super) struct SalvagedPage {
    /// Offset of its header.
    pub(super) start: u64,
    /// Offset of its body.
    pub(super) body: u64,
    /// Offset after its last byte.
    pub(super) end: u64,
    pub(super) r#type: PageType,
    pub(super) encoding: Encoding,
    /// Level entries, or the values of a dictionary.
    pub(super) slots: u64,
    /// Rows, as version 2 says; with the nulls, and the bytes of both kinds of levels.
    pub(super) v2: Option<LevelsOfV2>,
    /// Bytes of the body, uncompressed.
    pub(super) uncompressed: u64,
    pub(super) has_checksum: bool,
    /// Whether a filter or an index lies before it, so that it is the first of a chunk.
    pub(super) begins_chunk: bool,
}

/// The levels of a page of version 2, by its header.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelsOfV2 {
    pub(super) rows: u64,
    pub(super) nulls: u64,
    pub(super) rep_bytes: u64,
    pub(super) def_bytes: u64,
    pub(super) is_compressed: bool,
}

impl SalvagedPage {
    pub(super) fn is_dictionary(&self) -> bool {
        self.r#type == PageType::DictionaryPage
    }

    /// Whether its values are indices into a dictionary.
    pub(super) fn has_indices(&self) -> bool {
        !self.is_dictionary()
            && matches!(self.encoding, Encoding::RleDictionary | Encoding::PlainDictionary)
    }
}

/// Describes the bytes where the next page would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagesEnd {
    /// The range ends, perhaps with indexes, filters or a footer: no page is missing.
    Proper,
    /// The file ends within a page.
    Cut,
    /// Bytes that are nothing known.
    Broken,
    /// The same after an index or a filter: no page of the chunk before is missing.
    BrokenLater,
}

impl PagesEnd {
    /// Whether the last chunk may have more pages than those that are there.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Cut | Self::Broken)
    }
}

/// The pages of a range.
pub(super) struct FoundPages {
    pub(super) pages: Vec<SalvagedPage>,
    pub(super) end: PagesEnd,
    /// Where they end.
    pub(super) end_offset: u64,
    /// The type of the page that is cut off, as far as its header is there.
    pub(super) cut: Option<PageType>,
    _memory: Reservation,
}

/// Bytes in which most headers are found, and those that none exceeds.
const FEW: u64 = 8 << 10;
const MAX_HEADER: u64 = 1 << 20;
/// Bytes that no index exceeds.
const MAX_INDEX: u64 = 64 << 20;

impl FoundPages {
    /// The pages from the start of `range` on, past filters and indexes. `ends_there` says that a
    /// page may end with the range without being the last of a cut file.
    ///
    /// # Errors
    /// `Io`; `Limit(Memory)`.
    pub(super) fn walk(
        source: &dyn Source,
        range: Range<u64>,
        ends_there: bool,
        context: &PageContext,
        budget: &Budget,
    ) -> Result<Self> {
        let mut memory = budget.reservation("the pages of a file without a footer");
        let (mut pages, mut at, mut cut) = (Vec::new(), range.start, None);
        let mut window = PageWindow { start: 0, bytes: Bytes::new() };
        let file_end = if ends_there { None } else { Some(FileEnd::read(source)?) };
        let mut is_after_part = false;
        let end = loop {
            if at >= range.end {
                let is_proper = ends_there || is_after_part;
                break if is_proper { PagesEnd::Proper } else { PagesEnd::Cut };
            }
            match window.header(source, at..range.end, context)? {
                FoundHeader::Page(mut page) => {
                    memory.grow(size_of::<SalvagedPage>())?;
                    at = page.end;
                    // Pages of a type that carries no values are skipped.
                    if page.is_dictionary() || page.r#type != PageType::IndexPage {
                        page.begins_chunk = std::mem::take(&mut is_after_part);
                        pages.push(page);
                    }
                }
                FoundHeader::Cut(kind) => {
                    cut = kind;
                    break PagesEnd::Cut;
                }
                FoundHeader::None => {
                    match window.other_part(source, at..range.end, file_end, budget)? {
                        OtherPart::Whole(end) => (at, is_after_part) = (end, true),
                        OtherPart::Last => break PagesEnd::Proper,
                        _ if is_after_part => break PagesEnd::BrokenLater,
                        _ => break PagesEnd::Broken,
                    }
                }
            }
        };
        Ok(Self { pages, end, end_offset: at, cut, _memory: memory })
    }
}

enum FoundHeader {
    Page(SalvagedPage),
    /// A page that would end after the range, and its type.
    Cut(Option<PageType>),
    None,
}

/// Bytes that were read ahead, because headers of small pages lie close.
struct PageWindow {
    start: u64,
    bytes: Bytes,
}

impl PageWindow {
    fn header(
        &mut self,
        source: &dyn Source,
        range: Range<u64>,
        context: &PageContext,
    ) -> Result<FoundHeader> {
        let mut len = FEW;
        loop {
            let end = range.start.saturating_add(len).min(range.end);
            let bytes = self.read(source, range.start..end)?;
            let position = PagePosition { is_first: false, data_pages: 0 };
            match context.read_header(&bytes, position) {
                Ok(StoredHeader { header, len, .. }) => {
                    return Ok(match found(&header, range.start, len as u64) {
                        Some(page) if page.end > range.end => FoundHeader::Cut(Some(page.r#type)),
                        Some(page) => FoundHeader::Page(page),
                        None => FoundHeader::None,
                    });
                }
                // Statistics may make it long.
                Err(_) if end < range.end && len < MAX_HEADER => len = MAX_HEADER,
                Err(_) if end == range.end && !begins_part(&bytes) && is_start(&bytes) => {
                    return Ok(FoundHeader::Cut(type_of(&bytes)));
                }
                Err(_) => return Ok(FoundHeader::None),
            }
        }
    }

    /// The part at the start of `range`, which begins with no page.
    fn other_part(
        &mut self,
        source: &dyn Source,
        range: Range<u64>,
        file_end: Option<FileEnd>,
        budget: &Budget,
    ) -> Result<OtherPart> {
        let (mut len, mut memory) = (FEW, budget.reservation("an index"));
        loop {
            let end = range.start.saturating_add(len).min(range.end);
            let bytes = self.read(source, range.start..end)?;
            match OtherPart::new(&bytes, range.start, range.end, file_end) {
                OtherPart::Longer if len < MAX_INDEX => len *= 8,
                part => return Ok(part),
            }
            memory.resize(usize::try_from(len).unwrap_or(usize::MAX))?;
        }
    }

    fn read(&mut self, source: &dyn Source, range: Range<u64>) -> Result<Bytes> {
        let has = |start: u64, bytes: &Bytes| {
            start <= range.start && range.end <= start.saturating_add(bytes.len() as u64)
        };
        if !has(self.start, &self.bytes) {
            self.bytes = read_exactly(source, range.clone())?;
            self.start = range.start;
        }
        let at = |offset: u64| usize::try_from(offset.saturating_sub(self.start)).unwrap_or(0);
        let len = self.bytes.len();
        Ok(self.bytes.slice(at(range.start).min(len)..at(range.end).min(len)))
    }
}

/// Whether these may be the first bytes of a header that the end of the file cuts off: its first
/// field is a type of pages.
fn is_start(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15, 0 | 2 | 4 | 6, 0x15, ..] | [0x15] | [0x15, 0 | 2 | 4 | 6] | [])
}

/// The type of the page whose header begins here, if that much is there.
fn type_of(bytes: &[u8]) -> Option<PageType> {
    // A field 1 of a small number, which is twice the type.
    match bytes {
        [0x15, twice, ..] => Some(PageType::from(i32::from(twice / 2))),
        _ => None,
    }
}

/// The page of a header, if it can be one.
fn found(header: &PageHeader, start: u64, header_len: u64) -> Option<SalvagedPage> {
    check_header(header).ok()?;
    let positive = |n: i32| u64::try_from(n).ok();
    let stored = positive(header.compressed_page_size)?;
    let uncompressed = positive(header.uncompressed_page_size)?;
    let encoding = match header.r#type {
        PageType::IndexPage => Encoding::Plain,
        _ => encoding_of(header)?,
    };
    let (slots, v2) = match header.r#type {
        PageType::DataPage => (positive(header.data_page_header.as_ref()?.num_values)?, None),
        PageType::DictionaryPage => {
            (positive(header.dictionary_page_header.as_ref()?.num_values)?, None)
        }
        PageType::DataPageV2 => {
            let inner = header.data_page_header_v2.as_ref()?;
            let levels = LevelsOfV2 {
                rows: positive(inner.num_rows)?,
                nulls: positive(inner.num_nulls)?,
                rep_bytes: positive(inner.repetition_levels_byte_length)?,
                def_bytes: positive(inner.definition_levels_byte_length)?,
                is_compressed: inner.is_compressed.unwrap_or(true),
            };
            let fits = levels.rep_bytes + levels.def_bytes <= stored.min(uncompressed);
            (positive(inner.num_values)?, fits.then_some(levels))
        }
        PageType::IndexPage => (0, None),
        PageType::Unknown(_) => return None,
    };
    if header.r#type == PageType::DataPageV2 && v2.is_none() {
        return None;
    }
    let body = start.checked_add(header_len)?;
    Some(SalvagedPage {
        start,
        body,
        end: body.checked_add(stored)?,
        r#type: header.r#type,
        encoding,
        slots,
        v2,
        uncompressed,
        has_checksum: header.crc.is_some(),
        begins_chunk: false,
    })
}
