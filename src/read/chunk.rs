//! A column chunk: its pages, one after the other, from what was fetched of it.
//!
//! A [`PageList`] says what that is: the whole chunk, of which nothing more is known, or pages of
//! which each row is known. [`Pages`] walks either; where rows are known it can also jump. Several
//! walks of one list are independent, so that several threads can share a chunk.
//!
//! Where bytes cost next to nothing to get, as from a local file, a large chunk is not fetched but
//! [pulled](RangeReader), a piece at a time into memory that is used again: fetched whole, it would
//! take fresh pages of memory, which cost more than to decode most of them. Trap: rows come from an
//! index that may lie. What the headers can disprove is refused by [`PageList::placed`], the rest
//! by `LeafReader`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::page_cache::KeptDictionary;
use crate::crypt::Module;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::{CompressionCodec, Encoding, PageHeader, PageType};
use crate::limits::{Budget, Reservation};
use crate::page::{
    DataPage, DictionaryPage, Page, PageContext, PageOpener, PagePosition, StoredHeader,
};

/// Gives any bytes of the file at once: for chunks that are read while they are decoded. All else
/// is asked for beforehand.
pub(crate) trait RangeReader: std::fmt::Debug + Send + Sync {
    /// The bytes of `range`.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    fn pull(&self, range: Range<u64>) -> Result<Bytes>;
}

/// What was fetched of a column chunk. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct PageList(Arc<List>);

#[derive(Debug)]
enum List {
    /// All of the chunk.
    Whole { bytes: Bytes, offset: u64, slots: u64 },
    /// All of the chunk, to be pulled.
    Streaming { pull: Arc<dyn RangeReader>, range: Range<u64>, slots: u64 },
    /// Pages of which it is known which rows they hold; to be pulled where `pull` says from where.
    LocatedWalk {
        head: Bytes,
        offset: u64,
        pages: Vec<LocatedPage>,
        trust: RowCountSource,
        pull: Option<Arc<dyn RangeReader>>,
    },
}

/// Who says which rows a page holds.
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
    /// Header and body; empty if they are to be pulled.
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
        Self(Arc::new(List::Whole { bytes, offset, slots }))
    }

    /// As [`PageList::whole`], to be pulled.
    pub(super) fn pulled(pull: Arc<dyn RangeReader>, range: Range<u64>, slots: u64) -> Self {
        Self(Arc::new(List::Streaming { pull, range, slots }))
    }

    /// Some pages of a chunk, in file order, as an index places them; `head` is what stands before
    /// the first data page, at `offset`.
    ///
    /// # Errors
    /// `Malformed(PageIndex)` if the header of a page contradicts its place.
    pub(super) fn placed(
        head: Bytes,
        offset: u64,
        pages: Vec<LocatedPage>,
        context: &PageContext,
    ) -> Result<Self> {
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
        for page in &pages {
            let rows = page.rows.end.saturating_sub(page.rows.start);
            let position = PagePosition { is_first: false, data_pages: page.index };
            let found = Header::read(&page.bytes, context, position).filter(|found| {
                found.len == page.bytes.len() && found.rows.is_none_or(|found| found == rows)
            });
            if !found.is_some_and(|found| found.is_data) {
                return Err(Error::malformed(
                    Spec::PageIndex,
                    format_args!(
                        "the offset index says that a data page of {} bytes and {rows} rows is here, and its header does not",
                        page.bytes.len()
                    ),
                )
                .at_offset(page.range.start)
                .at_page(page.index));
            }
        }
        let trust = RowCountSource::Index;
        Ok(Self(Arc::new(List::LocatedWalk { head, offset, pages, trust, pull: None })))
    }

    /// Bytes of the pages in the file.
    pub(super) fn bytes(&self) -> u64 {
        match &*self.0 {
            List::Whole { bytes, .. } => bytes.len() as u64,
            List::Streaming { range, .. } => range.end - range.start,
            List::LocatedWalk { pages, .. } => {
                pages.iter().map(|page| page.range.end.saturating_sub(page.range.start)).sum()
            }
        }
    }

    /// The same pages, with the rows of each if the headers tell them and all is well; the chunk
    /// holds `rows` rows.
    pub(super) fn find_pages(&self, rows: u64, context: &PageContext) -> Option<Self> {
        let (range, slots, pull) = match &*self.0 {
            List::Whole { bytes, offset, slots } => {
                (*offset..offset.checked_add(bytes.len() as u64)?, *slots, None)
            }
            List::Streaming { pull, range, slots } => (range.clone(), *slots, Some(pull)),
            List::LocatedWalk { .. } => return Some(self.clone()),
        };
        let mut rest = match &*self.0 {
            List::Whole { bytes, .. } => bytes.clone(),
            _ => Bytes::new(),
        };
        let (mut at, mut head_end) = (range.start, range.start);
        let (mut slots_left, mut row) = (slots, 0u64);
        let mut pages: Vec<LocatedPage> = Vec::new();
        let mut position = PagePosition { is_first: true, data_pages: 0 };
        while slots_left > 0 {
            let header = match pull {
                Some(pull) => Header::pull(&**pull, at..range.end, context, position)?,
                None => Header::read(&rest, context, position)?,
            };
            position.is_first = false;
            let page = at..at.checked_add(header.len as u64)?;
            let bytes = rest.split_to(header.len.min(rest.len()));
            at = page.end;
            if !header.is_data {
                // Behind a data page there is nothing else in any sound chunk.
                if position.data_pages > 0 {
                    return None;
                }
                head_end = at;
                continue;
            }
            let index = position.data_pages;
            position.data_pages += 1;
            slots_left = slots_left.checked_sub(header.slots)?;
            let end = row.checked_add(header.rows?)?;
            // A page without rows has nothing to give.
            if end > row {
                pages.push(LocatedPage { bytes, range: page, rows: row..end, index });
            } else if header.slots > 0 {
                return None;
            }
            row = end;
        }
        if row != rows {
            return None;
        }
        let (offset, trust, pull) = (range.start, RowCountSource::Headers, pull.cloned());
        let head = match &*self.0 {
            List::Whole { bytes, .. } => bytes.slice(..usize::try_from(head_end - offset).ok()?),
            // The dictionary is pulled once, for all walks.
            _ => pull.as_ref()?.pull(offset..head_end).ok()?,
        };
        Some(Self(Arc::new(List::LocatedWalk { head, offset, pages, trust, pull })))
    }

    /// The data pages, where it is known which rows they hold.
    pub(super) fn pages(&self) -> Option<&[LocatedPage]> {
        match &*self.0 {
            List::Whole { .. } | List::Streaming { .. } => None,
            List::LocatedWalk { pages, .. } => Some(pages),
        }
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
}

impl Header {
    /// The header at the start of `bytes`, if there is one and its body follows.
    fn read(bytes: &[u8], context: &PageContext, position: PagePosition) -> Option<Self> {
        Self::parse(bytes, context, position).filter(|found| found.len <= bytes.len())
    }

    /// The header at the start of `range`, if there is one and its body is within.
    fn pull(
        pull: &dyn RangeReader,
        range: Range<u64>,
        context: &PageContext,
        position: PagePosition,
    ) -> Option<Self> {
        // Most headers are small; bounds of long strings can make them large.
        for max in [SLACK as u64, PIECE as u64] {
            let end = range.end.min(range.start.saturating_add(max));
            let found = Self::parse(&pull.pull(range.start..end).ok()?, context, position);
            if found.is_some() {
                return found.filter(|found| found.len as u64 <= range.end - range.start);
            }
        }
        None
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
            _ => return Some(Self { len, is_data: false, slots: 0, rows: None }),
        };
        // Outside lists every row is one slot, whatever else the header may say.
        let rows = if context.max_rep == 0 { Some(slots) } else { rows };
        Some(Self { len, is_data: true, slots, rows })
    }
}

/// The pages of a column chunk, in file order.
pub(super) struct Pages {
    /// Bytes of all pages in the file.
    bytes: u64,
    /// What is left of the chunk, or of what stands before its first data page, or of the placed
    /// page at hand.
    rest: Bytes,
    /// Where `rest` begins in the file.
    offset: u64,
    opener: PageOpener,
    /// Slots that no page has accounted for yet; the chunk's metadata said how many there are.
    slots_left: u64,
    /// Data pages given or skipped so far.
    page: usize,
    dictionary_seen: bool,
    /// Whether its header was read.
    dictionary_read: bool,
    /// The dictionary page, until a page that is read refers to it: few pages of many may not.
    dictionary: Option<Pending>,
    /// Whether it is given before all others instead.
    dictionary_first: bool,
    /// Whether a data page was given.
    data_seen: bool,
    next: Option<Pending>,
    /// The page that was opened in part, to be opened anew as a whole if more of it is wanted.
    in_part: Option<Pending>,
    /// Where the dictionary is kept for other reads, if it is.
    kept: Option<KeptDictionary>,
    placed: Option<LocatedWalk>,
    pulled: Option<Streaming>,
}

/// What is pulled of a chunk.
struct Streaming {
    pull: Arc<dyn RangeReader>,
    /// Where the chunk ends in the file.
    end: u64,
    held: Reservation,
}

/// Bytes pulled at a time: so many stay in the cache of a core until they are decoded.
const PIECE: usize = 256 << 10;

/// Bytes pulled beyond a page, for the header of the next one.
const SLACK: usize = 512;

/// How far a walk over pages of known rows is.
struct LocatedWalk {
    list: PageList,
    trust: RowCountSource,
    /// Index, in the list, of the page that is given next.
    next: usize,
    /// Rows of the page that was given last.
    rows: Range<u64>,
    /// First row of the page that may be given next: none is left out but by a jump.
    expected: u64,
}

/// A page whose header is read and whose body is not opened.
struct Pending {
    header: PageHeader,
    body: Bytes,
    /// What the body is, if it is encrypted.
    module: Option<Module>,
    offset: u64,
}

impl Pending {
    fn is_data(&self) -> bool {
        matches!(self.header.r#type, PageType::DataPage | PageType::DataPageV2)
    }

    /// Whether it is a data page of indices.
    fn refers_to_dictionary(&self) -> bool {
        let header = &self.header;
        let v1 = header.data_page_header.as_ref().map(|header| header.encoding);
        let v2 = header.data_page_header_v2.as_ref().map(|header| header.encoding);
        let encoding = if header.r#type == PageType::DataPageV2 { v2 } else { v1 };
        matches!(encoding, Some(Encoding::RleDictionary | Encoding::PlainDictionary))
    }
}

impl Pages {
    /// A walk over the pages of `list`.
    ///
    /// # Errors
    /// None for a list of bytes that are there; `Limit(Memory)` if the budget is used up.
    pub(super) fn new(list: &PageList, context: PageContext, budget: &Budget) -> Result<Self> {
        let pulled = |pull: &Arc<dyn RangeReader>, end: u64| -> Result<Streaming> {
            let held = budget.reservation("a piece of a column chunk");
            Ok(Streaming { pull: pull.clone(), end, held })
        };
        let (rest, offset, slots_left, placed, pulled) = match &*list.0 {
            List::Whole { bytes, offset, slots } => (bytes.clone(), *offset, *slots, None, None),
            List::Streaming { pull, range, slots } => {
                (Bytes::new(), range.start, *slots, None, Some(pulled(pull, range.end)?))
            }
            List::LocatedWalk { head, offset, trust, pull, .. } => {
                let placed = LocatedWalk {
                    list: list.clone(),
                    trust: *trust,
                    next: 0,
                    rows: 0..0,
                    expected: 0,
                };
                // Until the first page is asked for, there is nothing to pull.
                let pulled = pull.as_ref().map(|pull| pulled(pull, *offset)).transpose()?;
                (head.clone(), *offset, 0, Some(placed), pulled)
            }
        };
        Ok(Self {
            bytes: list.bytes(),
            rest,
            offset,
            opener: PageOpener::new(context, budget),
            slots_left,
            page: 0,
            dictionary_seen: false,
            dictionary_read: false,
            dictionary: None,
            dictionary_first: false,
            data_seen: false,
            next: None,
            in_part: None,
            kept: None,
            placed,
            pulled,
        })
    }

    /// Bytes of all pages in the file, wherever the walk is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the dictionary, once it is decompressed, for other reads, if only some pages are read;
    /// or takes it from there.
    #[must_use]
    pub(super) fn keeping(mut self, kept: KeptDictionary) -> Self {
        let is_compressed = self.opener.context().codec != CompressionCodec::Uncompressed;
        let few = self.placed.as_ref().is_some_and(|placed| placed.trust == RowCountSource::Index);
        self.kept = (is_compressed && few).then_some(kept);
        self
    }

    /// Gives the dictionary page, if there is one, before all others, whether they refer to it or
    /// not.
    #[must_use]
    pub(super) fn with_dictionary_first(mut self) -> Self {
        self.dictionary_first = true;
        self
    }

    /// Opens the next page that carries values; `None` after the last.
    ///
    /// # Errors
    /// `Malformed` if a page breaks a rule, or the chunk ends before its slots do.
    pub(super) fn next_page(&mut self) -> Result<Option<Page>> {
        self.next_page_for(&[], 0)
    }

    /// As [`Pages::next_page`]. Of a page whose rows are known, and slots of a leaf outside lists,
    /// no more need be opened than it takes for the rows of `expected`, which are ascending, unless
    /// row `next_wanted_row` lies in it too; [`Pages::open_again`] opens the rest.
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub(super) fn next_page_for(
        &mut self,
        expected: &[Range<u64>],
        next_wanted_row: u64,
    ) -> Result<Option<Page>> {
        self.in_part = None;
        loop {
            let Some(pending) = self.pending()? else {
                return Ok(None);
            };
            let may_wait = self.placed.is_some() && !self.dictionary_first;
            let waits = may_wait && !self.dictionary_seen && self.dictionary.is_none();
            if waits && pending.header.r#type == PageType::DictionaryPage {
                self.dictionary = Some(pending);
                continue;
            }
            let pending = match self.dictionary.take_if(|_| pending.refers_to_dictionary()) {
                None => pending,
                Some(dictionary) => {
                    self.next = Some(pending);
                    dictionary
                }
            };
            if let Some(slots) = self.expected_of(&pending, expected, next_wanted_row)
                && let Some(data) = self.opener.open_start(&pending.header, &pending.body, slots)
            {
                let slots = data.slots + data.slots_left_out;
                self.note_data(slots).map_err(|e| e.at_offset(pending.offset))?;
                self.in_part = Some(pending);
                return Ok(Some(Page::Data(Box::new(data))));
            }
            let Pending { header, body, module, offset } = pending;
            let compressed = body.len();
            let page = match self.kept_dictionary(&header) {
                Some(kept) => {
                    self.opener.share(&kept).map(|memory| Some(Page::Dictionary(kept, memory)))
                }
                None => self.opener.open(&header, body, module),
            };
            match page.map_err(|e| e.at_offset(offset).at_page(self.page))? {
                None => {}
                Some(Page::Dictionary(dictionary, memory)) => {
                    self.note_dictionary(offset)?;
                    // What was hardly compressed is as soon decompressed again.
                    let pays = compressed < dictionary.bytes.len() / 8 * 7;
                    if let Some(kept) = self.kept.as_ref().filter(|_| pays) {
                        let verified = self.opener.context().verify_checksums;
                        kept.keep(&dictionary, verified, self.opener.memory_cap());
                    }
                    return Ok(Some(Page::Dictionary(dictionary, memory)));
                }
                Some(Page::Data(data)) => {
                    self.note_data(data.slots).map_err(|e| e.at_offset(offset))?;
                    return Ok(Some(Page::Data(data)));
                }
            }
        }
    }

    /// The dictionary that another read has decompressed.
    fn kept_dictionary(&self, header: &PageHeader) -> Option<DictionaryPage> {
        let PageContext { page_bytes, verify_checksums, .. } = *self.opener.context();
        let kept = self.kept.as_ref().filter(|_| header.r#type == PageType::DictionaryPage)?;
        kept.find(page_bytes, verify_checksums)
    }

    /// How many rows of a page, from its first, there are up to the last that is expected; `None`
    /// if that is all, or nothing is known.
    fn expected_of(
        &self,
        pending: &Pending,
        expected: &[Range<u64>],
        next_wanted_row: u64,
    ) -> Option<usize> {
        let placed = self.placed.as_ref().filter(|_| pending.is_data())?;
        let Range { start, end } = placed.rows;
        if next_wanted_row < end {
            return None;
        }
        let last = expected.partition_point(|span| span.start < end).checked_sub(1)?;
        let last = expected.get(last)?.end;
        usize::try_from(last.checked_sub(start)?).ok().filter(|rows| *rows > 0 && last < end)
    }

    /// Opens the page at hand anew, as a whole, after [`Pages::next_page_for`] opened it in part.
    ///
    /// # Errors
    /// As [`Pages::next_page`]; `Usage` if the page was opened as a whole.
    pub(super) fn open_again(&mut self) -> Result<DataPage> {
        let whole = || Error::usage("a page that was opened as a whole cannot be opened again");
        let Pending { header, body, module, offset } = self.in_part.take().ok_or_else(whole)?;
        match self.opener.open(&header, body, module).map_err(|e| e.at_offset(offset))? {
            Some(Page::Data(data)) => Ok(*data),
            _ => Err(whole()),
        }
    }

    /// Skips the next page without opening it if it is a data page of at most `max_slots` slots;
    /// says of how many.
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub(super) fn skip_page(&mut self, max_slots: usize) -> Result<Option<usize>> {
        let Some(pending) = self.pending()? else {
            return Ok(None);
        };
        let header = &pending.header;
        let num_values = match header.r#type {
            PageType::DataPage => header.data_page_header.as_ref().map(|h| h.num_values),
            PageType::DataPageV2 => header.data_page_header_v2.as_ref().map(|h| h.num_values),
            _ => None,
        };
        let slots = num_values.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= max_slots);
        match slots {
            Some(slots) => {
                self.note_data(slots).map_err(|e| e.at_offset(pending.offset))?;
                Ok(Some(slots))
            }
            None => {
                self.next = Some(pending);
                Ok(None)
            }
        }
    }

    /// Whether pages lie in memory that is pulled, and counted only until the next piece is.
    pub(super) fn are_pulled(&self) -> bool {
        self.pulled.is_some()
    }

    /// Whether it is known which rows each page holds.
    pub(super) fn are_placed(&self) -> bool {
        self.placed.is_some()
    }

    /// The rows of the page that was given last, where they are known, and by whom.
    pub(super) fn rows(&self) -> Option<(Range<u64>, RowCountSource)> {
        self.placed.as_ref().map(|placed| (placed.rows.clone(), placed.trust))
    }

    /// Goes on with the page that holds `row`, and says which row it begins with; only where rows
    /// are known.
    ///
    /// # Errors
    /// `Usage` if that page is not among those of the list.
    pub(super) fn seek(&mut self, row: u64) -> Result<u64> {
        let found = self.placed.as_mut().and_then(|placed| {
            let pages = placed.list.pages()?;
            let next = pages.partition_point(|page| page.rows.end <= row);
            let first = pages.get(next).map(|page| page.rows.start)?;
            (placed.next, placed.expected) = (next, first);
            (first <= row).then_some(first)
        });
        found.ok_or_else(|| {
            Error::usage(format_args!("row {row} lies in no page that was asked for"))
        })
    }

    /// Index of the page that was given last, the dictionary not counted.
    pub(super) fn page(&self) -> usize {
        self.page.saturating_sub(1)
    }

    /// The next page, header read; `None` when every slot is accounted for.
    fn pending(&mut self) -> Result<Option<Pending>> {
        if let Some(pending) = self.next.take() {
            return Ok(Some(pending));
        }
        match &mut self.placed {
            // A chunk of zero slots has no pages that matter; what follows the last slot is not
            // ours.
            None if self.slots_left == 0 => return Ok(None),
            None => {}
            // What stands before the first data page comes first.
            Some(_) if !self.rest.is_empty() => {}
            Some(placed) => {
                let Some(page) = placed.list.pages().and_then(|pages| pages.get(placed.next))
                else {
                    return Ok(None);
                };
                if page.rows.start != placed.expected {
                    return Err(Error::usage(format_args!(
                        "row {} lies in no page that was asked for",
                        placed.expected
                    )));
                }
                placed.next += 1;
                self.dictionary_read = true;
                placed.rows = page.rows.clone();
                placed.expected = page.rows.end;
                (self.rest, self.offset) = (page.bytes.clone(), page.range.start);
                if let Some(pulled) = &mut self.pulled {
                    pulled.end = page.range.end;
                }
                self.page = page.index;
            }
        }
        let offset = self.offset;
        self.take_page().map(Some).map_err(|e| e.at_offset(offset).at_page(self.page))
    }

    /// Bytes of the chunk that are not at hand.
    fn to_pull(&self) -> u64 {
        let at_hand = self.offset + self.rest.len() as u64;
        self.pulled.as_ref().map_or(0, |pulled| pulled.end.saturating_sub(at_hand))
    }

    /// Sees to it that at least `len` bytes are at hand, or all that there are; with small ones
    /// come those behind them.
    fn pull(&mut self, len: usize) -> Result<()> {
        let Some(Streaming { pull, end, held }) = &mut self.pulled else {
            return Ok(());
        };
        // Many pages at a time, or one: a page that is cut off at the end is pulled twice.
        let len = if len <= PIECE / 4 { PIECE } else { len };
        let end = self.offset.saturating_add(len as u64).min(*end);
        // Before the next piece, so that its memory can be used again.
        self.rest = Bytes::new();
        held.resize(usize::try_from(end - self.offset).unwrap_or(usize::MAX))?;
        let range = self.offset..end;
        let bytes = pull.pull(range.clone())?;
        if bytes.len() as u64 != range.end - range.start {
            let given = bytes.len();
            return Err(Error::usage(format_args!(
                "RangeReader::pull gave {given} bytes for the range {range:?}"
            )));
        }
        self.rest = bytes;
        Ok(())
    }

    /// Takes the next page from what is at hand, or pulls it.
    fn take_page(&mut self) -> Result<Pending> {
        let offset = self.offset;
        if self.rest.is_empty() {
            self.pull(0)?;
        }
        if self.rest.is_empty() {
            return Err(Error::malformed(
                Spec::Pages,
                format_args!("the column chunk ends with {} values missing", self.slots_left),
            ));
        }
        let is_first = !self.data_seen && !self.dictionary_read;
        let position = PagePosition { is_first, data_pages: self.page };
        let StoredHeader { header, len: header_len, body: module } = loop {
            match self.opener.context().read_header(&self.rest, position) {
                Ok(header) => break header,
                // It may be cut off.
                Err(e) if self.to_pull() > 0 && e.kind() != ErrorKind::Crypto => {
                    self.pull(self.rest.len().saturating_mul(2))?;
                }
                Err(e) => return Err(e),
            }
        };
        self.dictionary_read |= header.r#type == PageType::DictionaryPage;
        let body_len =
            crate::page::count(header.compressed_page_size, "PageHeader.compressed_page_size")?;
        let len = header_len.saturating_add(body_len);
        if len > self.rest.len() && len as u64 <= self.rest.len() as u64 + self.to_pull() {
            self.pull(len.saturating_add(SLACK))?;
        }
        if len > self.rest.len() {
            let left = (self.rest.len() - header_len) as u64 + self.to_pull();
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
        Ok(Pending { header, body, module, offset })
    }

    fn note_dictionary(&mut self, offset: u64) -> Result<()> {
        // Of placed pages, the head has been looked through, and may be opened later where nobody
        // minds.
        let may_follow = self.placed.is_some() && !self.dictionary_first;
        if self.dictionary_seen || (self.data_seen && !may_follow) {
            return Err(Error::malformed(
                Spec::Pages,
                "a dictionary page must be the first of its column chunk, and the only one",
            )
            .at_offset(offset));
        }
        self.dictionary_seen = true;
        Ok(())
    }

    fn note_data(&mut self, slots: usize) -> Result<()> {
        self.page += 1;
        self.data_seen = true;
        if self.placed.is_some() {
            return Ok(());
        }
        self.slots_left = self.slots_left.checked_sub(slots as u64).ok_or_else(|| {
            Error::mismatch(
                Spec::Pages,
                "num_values of the page",
                format_args!("at most the {} that the column chunk has left", self.slots_left),
                slots,
            )
            .at_page(self.page - 1)
        })?;
        Ok(())
    }
}
