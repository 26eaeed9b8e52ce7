//! [`SparseDictionary`]: looks up few entries in the dictionary page, which costs less than to
//! prepare all of it.

use bytes::Bytes;

use crate::encoding::dictionary::out_of_range;
use crate::encoding::{Span, plain};
use crate::error::Result;
use crate::page::DictionaryPage;
use crate::read::column::values::reader::no_page;

/// A dictionary page of which few entries are wanted: they are looked up in it.
pub(super) struct SparseDictionary {
    values: plain::ByteArrays,
    /// Entries that the page has.
    entries: usize,
    /// Entries that were wanted so far.
    wanted: usize,
    /// The spans of the first entries, up to the highest that was wanted.
    spans: Vec<Span>,
}

/// One entry in so many is looked up by itself, before the whole dictionary is prepared.
const PART_OF_DICTIONARY: usize = 16;

impl SparseDictionary {
    pub(super) fn new(page: DictionaryPage) -> Result<Self> {
        let entries = page.values;
        let values = plain::ByteArrays::new(page.bytes, entries)?;
        Ok(Self { values, entries, wanted: 0, spans: Vec::new() })
    }

    /// Counts `more` wanted entries. True while they are so few that preparing the dictionary costs
    /// more than looking them up.
    pub(super) fn stays_sparse(&mut self, more: usize) -> bool {
        self.wanted = self.wanted.saturating_add(more);
        self.wanted <= self.entries / PART_OF_DICTIONARY
    }

    /// The bytes of the page.
    pub(super) fn buffer(&self) -> &Bytes {
        self.values.buffer()
    }

    /// The page that the entries are looked up in.
    pub(super) fn page(&self) -> DictionaryPage {
        DictionaryPage { values: self.entries, bytes: self.values.buffer().clone() }
    }

    /// Where an entry lies.
    pub(super) fn span(&mut self, index: u32) -> Result<Span> {
        let index_of = index as usize;
        if index_of >= self.entries {
            return Err(out_of_range(index, self.entries));
        }
        if let Some(more) = (index_of + 1).checked_sub(self.spans.len()) {
            self.values.read_spans(more, &mut self.spans)?;
        }
        self.spans.get(index_of).copied().ok_or_else(no_page)
    }
}
