//! [`Pages`] reads the pages of a column chunk, one after the other.
//!
//! It walks over a [`PageList`], and can jump if the rows of each page are known. Several walks of
//! one list are independent, so that several threads can share a chunk.

use std::ops::Range;

use bytes::Bytes;

use super::chunk_bytes::{ChunkBytes, RawPage};
use super::page_cache::KeptDictionary;
use super::page_list::{PageList, PageListKind, RowCountSource, refers_to_dictionary};
use super::supplied::Stop;
use crate::error::{Error, Result, Spec};
use crate::format::{CompressionCodec, PageHeader, PageType};
use crate::limits::Budget;
use crate::page::{DataPage, DictionaryPage, Page, PageContext, PageOpener, PagePosition};

/// The pages of a column chunk, in file order.
pub(super) struct Pages {
    /// Bytes of all pages in the file.
    bytes: u64,
    source: ChunkBytes,
    opener: PageOpener,
    /// Slots that no page has accounted for yet, of those that the chunk's metadata state.
    slots_left: u64,
    /// Data pages returned or skipped so far.
    page: usize,
    dictionary_seen: bool,
    /// Whether its header was read.
    dictionary_read: bool,
    /// The dictionary page, until a page that is read refers to it: few pages of many may not.
    dictionary: Option<RawPage>,
    /// Whether it is returned before all others instead.
    dictionary_first: bool,
    /// Whether a data page was returned.
    data_seen: bool,
    next: Option<RawPage>,
    /// The page that was opened in part, to be opened again as a whole if more of it is wanted.
    in_part: Option<RawPage>,
    /// Where the dictionary is kept for other reads, if it is.
    kept: Option<KeptDictionary>,
    /// How far the walk is, where rows are known.
    located: Option<LocatedWalk>,
}

/// How far a walk over pages of known rows is.
struct LocatedWalk {
    list: PageList,
    row_count_source: RowCountSource,
    /// Index, in the list, of the page that is returned next.
    next: usize,
    /// Rows of the page that was returned last.
    rows: Range<u64>,
    /// First row of the page that may be returned next: none is left out but by a jump.
    expected: u64,
}

fn is_data(page: &RawPage) -> bool {
    matches!(page.header.r#type, PageType::DataPage | PageType::DataPageV2)
}

impl Pages {
    /// A walk over the pages of `list`.
    pub(super) fn new(list: &PageList, context: PageContext, budget: &Budget) -> Self {
        let (source, slots_left, located) = match &*list.0 {
            PageListKind::Whole { bytes, offset, slots } => {
                (ChunkBytes::new(bytes.clone(), *offset), *slots, None)
            }
            PageListKind::InPieces { range, slots } => {
                let Range { start, end } = *range;
                (ChunkBytes::in_pieces(Bytes::new(), start, end, budget), *slots, None)
            }
            PageListKind::Located { head, offset, row_count_source, in_pieces, .. } => {
                let (list, row_count_source) = (list.clone(), *row_count_source);
                let located =
                    LocatedWalk { list, row_count_source, next: 0, rows: 0..0, expected: 0 };
                let source = match in_pieces {
                    // Until the first page is asked for, nothing is missing.
                    Some(_) => ChunkBytes::in_pieces(head.clone(), *offset, *offset, budget),
                    None => ChunkBytes::new(head.clone(), *offset),
                };
                (source, 0, Some(located))
            }
        };
        Self {
            bytes: list.bytes(),
            source,
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
            located,
        }
    }

    /// Bytes of all pages in the file, wherever the walk is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the dictionary, once it is decompressed, for other reads, if only some pages are read;
    /// or takes it from there. One that was decrypted does not outlive its read.
    #[must_use]
    pub(super) fn keeping(mut self, kept: KeptDictionary) -> Self {
        let context = self.opener.context();
        let is_compressed = context.codec != CompressionCodec::Uncompressed;
        let is_plain = context.decryptor.is_none();
        let few = self
            .located
            .as_ref()
            .is_some_and(|located| located.row_count_source == RowCountSource::Index);
        self.kept = (is_compressed && is_plain && few).then_some(kept);
        self
    }

    /// Returns the dictionary page, if there is one, before all others, whether they refer to it or
    /// not.
    #[must_use]
    pub(super) fn with_dictionary_first(mut self) -> Self {
        self.dictionary_first = true;
        self
    }

    /// Takes the bytes that the walk asked for.
    ///
    /// # Errors
    /// `Usage` if they are not as many, or none were asked for.
    pub(super) fn supply(&mut self, bytes: Bytes) -> Result<()> {
        self.source.supply(bytes)
    }

    /// Opens the next page that carries values; `None` after the last.
    ///
    /// # Errors
    /// `Malformed` if a page breaks a rule, or the chunk ends before its slots do.
    pub(super) fn next_page(&mut self) -> Result<Option<Page>, Stop> {
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
    ) -> Result<Option<Page>, Stop> {
        self.in_part = None;
        while let Some(pending) = self.pending_or_dictionary()? {
            if let Some(slots) = self.expected_of(&pending, expected, next_wanted_row)
                && let Some(data) = self.opener.open_start(&pending.header, &pending.body, slots)
            {
                let slots = data.slots + data.slots_left_out;
                self.note_data(slots).map_err(|e| e.at_offset(pending.offset))?;
                self.in_part = Some(pending);
                return Ok(Some(Page::Data(Box::new(data))));
            }
            let RawPage { header, body, module, offset } = pending;
            let compressed = body.len();
            let page = match self.kept_dictionary(&header) {
                Some(kept) => {
                    self.opener.share(&kept).map(|memory| Some(Page::Dictionary(kept, memory)))
                }
                None => self.opener.open(&header, body, module),
            };
            let place = |e: Error| match header.r#type {
                PageType::DictionaryPage => e.at_offset(offset).at_dictionary_page(),
                _ => e.at_offset(offset).at_page(self.page),
            };
            match page.map_err(place)? {
                None => {}
                Some(Page::Dictionary(dictionary, memory)) => {
                    self.note_dictionary(offset)?;
                    // A page that hardly compressed is decompressed again as quickly.
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
        Ok(None)
    }

    /// The next page; the dictionary, where it may wait, before the first page that refers to it.
    fn pending_or_dictionary(&mut self) -> Result<Option<RawPage>, Stop> {
        while let Some(pending) = self.pending()? {
            let may_wait = self.located.is_some() && !self.dictionary_first;
            let waits = may_wait && !self.dictionary_seen && self.dictionary.is_none();
            if waits && pending.header.r#type == PageType::DictionaryPage {
                self.dictionary = Some(pending);
                continue;
            }
            return Ok(Some(
                match self.dictionary.take_if(|_| refers_to_dictionary(&pending.header)) {
                    None => pending,
                    Some(dictionary) => {
                        self.next = Some(pending);
                        dictionary
                    }
                },
            ));
        }
        Ok(None)
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
        pending: &RawPage,
        expected: &[Range<u64>],
        next_wanted_row: u64,
    ) -> Option<usize> {
        let located = self.located.as_ref().filter(|_| is_data(pending))?;
        let Range { start, end } = located.rows;
        if next_wanted_row < end {
            return None;
        }
        let last = expected.partition_point(|span| span.start < end).checked_sub(1)?;
        let last = expected.get(last)?.end;
        usize::try_from(last.checked_sub(start)?).ok().filter(|rows| *rows > 0 && last < end)
    }

    /// Opens the current page again, as a whole, after [`Pages::next_page_for`] opened a part of
    /// it.
    ///
    /// # Errors
    /// As [`Pages::next_page`]; `Internal` if the page was opened as a whole.
    pub(super) fn open_again(&mut self) -> Result<DataPage> {
        let whole = || Error::internal("a page that was opened as a whole cannot be opened again");
        let RawPage { header, body, module, offset } = self.in_part.take().ok_or_else(whole)?;
        // Its checksum was verified when its start was opened.
        let page = self.opener.open_verified(&header, body, module);
        // It was counted when its start was opened.
        let page = page.map_err(|e| e.at_offset(offset).at_page(self.page.saturating_sub(1)));
        match page? {
            Some(Page::Data(data)) => Ok(*data),
            _ => Err(whole()),
        }
    }

    /// Skips the next page if it is a data page of at most `max_slots` slots; returns how many.
    /// Its body is neither opened nor asked for. Only where rows are not known.
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub(super) fn skip_page(&mut self, max_slots: usize) -> Result<Option<usize>, Stop> {
        let offset = self.next.as_ref().map_or_else(|| self.source.offset(), |page| page.offset);
        let position = self.position();
        let header = match &self.next {
            Some(page) => Some(&*page.header),
            None if self.slots_left == 0 => None,
            None => {
                let header = self.source.next_header(self.opener.context(), position);
                header.map_err(|e| e.map(|e| e.at_offset(offset).at_page(self.page)))?
            }
        };
        let num_values = header.and_then(|header| match header.r#type {
            PageType::DataPage => header.data_page_header.as_ref().map(|h| h.num_values),
            PageType::DataPageV2 => header.data_page_header_v2.as_ref().map(|h| h.num_values),
            _ => None,
        });
        let slots = num_values.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= max_slots);
        let Some(slots) = slots else { return Ok(None) };
        if self.next.take().is_none() {
            self.source.skip_page();
        }
        self.note_data(slots).map_err(|e| e.at_offset(offset))?;
        Ok(Some(slots))
    }

    /// Whether pages lie in a piece of the chunk, which is counted only until the next one is
    /// given.
    pub(super) fn are_in_pieces(&self) -> bool {
        self.source.are_in_pieces()
    }

    /// Whether the rows of each page are known.
    pub(super) fn are_located(&self) -> bool {
        self.located.is_some()
    }

    /// The rows of the page that was returned last, where they are known, and from what.
    pub(super) fn rows(&self) -> Option<(Range<u64>, RowCountSource)> {
        self.located.as_ref().map(|located| (located.rows.clone(), located.row_count_source))
    }

    /// Continues with the page that holds `row`, and returns its first row; only if rows are known.
    ///
    /// # Errors
    /// `Internal` if that page is not among those of the list.
    pub(super) fn seek(&mut self, row: u64) -> Result<u64> {
        let found = self.located.as_mut().and_then(|located| {
            let pages = located.list.pages()?;
            let next = pages.partition_point(|page| page.rows.end <= row);
            let first = pages.get(next).map(|page| page.rows.start)?;
            (located.next, located.expected) = (next, first);
            (first <= row).then_some(first)
        });
        found.ok_or_else(|| {
            Error::internal(format_args!("row {row} lies in no page that was asked for"))
        })
    }

    /// Whether bytes were asked for and are not supplied yet.
    pub(super) fn are_waiting(&self) -> bool {
        self.source.is_waiting()
    }

    /// Index of the page whose bytes were asked for, or else of the one that was returned last, the
    /// dictionary not counted.
    pub(super) fn page(&self) -> usize {
        if self.are_waiting() { self.page } else { self.page.saturating_sub(1) }
    }

    /// The next page, header read; `None` when every slot is accounted for.
    fn pending(&mut self) -> Result<Option<RawPage>, Stop> {
        if let Some(pending) = self.next.take() {
            return Ok(Some(pending));
        }
        match &mut self.located {
            // A chunk of zero slots has no pages that matter; what follows the last slot is not
            // ours.
            None if self.slots_left == 0 => return Ok(None),
            None => {}
            // The bytes before the first data page come first; and those that were asked for.
            Some(_) if self.source.has_begun() => {}
            Some(located) => {
                let Some(page) = located.list.pages().and_then(|pages| pages.get(located.next))
                else {
                    return Ok(None);
                };
                if page.rows.start != located.expected {
                    return Err(Error::internal(format_args!(
                        "row {} lies in no page that was asked for",
                        located.expected
                    ))
                    .into());
                }
                located.next += 1;
                self.dictionary_read = true;
                located.rows = page.rows.clone();
                located.expected = page.rows.end;
                self.source.move_to(page.bytes.clone(), page.range.clone());
                self.page = page.index;
            }
        }
        let offset = self.source.offset();
        let page = self.page;
        let place = |e: Error| e.at_offset(offset).at_page(page);
        self.take_page().map(Some).map_err(|stop| stop.map(place))
    }

    /// Where the next page is among those of the chunk.
    fn position(&self) -> PagePosition {
        let is_first = !self.data_seen && !self.dictionary_read;
        PagePosition { is_first, data_pages: self.page }
    }

    /// Takes the next page, wherever it is.
    fn take_page(&mut self) -> Result<RawPage, Stop> {
        let position = self.position();
        let page = self.source.take_page(self.opener.context(), position)?.ok_or_else(|| {
            Error::malformed(
                Spec::Pages,
                format_args!("the column chunk ends with {} values missing", self.slots_left),
            )
        })?;
        self.dictionary_read |= page.header.r#type == PageType::DictionaryPage;
        Ok(page)
    }

    fn note_dictionary(&mut self, offset: u64) -> Result<()> {
        // The head of located pages was checked, and the dictionary may be opened after data pages.
        let may_follow = self.located.is_some() && !self.dictionary_first;
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
        if self.located.is_some() {
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
