//! [`SparseDictionary`] looks up a few entries in the dictionary page, which costs less than to
//! decode all of it.

use bytes::Bytes;

use crate::encoding::dictionary::out_of_range;
use crate::encoding::{ValueSpan, plain};
use crate::error::Result;
use crate::page::DictionaryPage;

/// A dictionary page whose entries are looked up in it.
pub(super) struct SparseDictionary {
    page: DictionaryPage,
    /// Entries that were wanted so far.
    wanted: usize,
    places: Places,
}

/// Where the entries lie.
enum Places {
    /// Values of this many bytes each, one after the other.
    OfWidth(usize),
    /// Each after its length: the spans of the first, up to the highest that was wanted, and the
    /// decoder of the others.
    AfterLengths(Vec<ValueSpan>, plain::ByteArrays),
}

/// Share of the entries (one in this many) that are looked up one by one, before the whole
/// dictionary is decoded.
const PART_OF_DICTIONARY: usize = 16;

impl SparseDictionary {
    /// A dictionary of entries of `width` bytes each, which may be 0.
    ///
    /// # Errors
    /// `Malformed` if the page does not hold them all.
    pub(super) fn with_width(page: DictionaryPage, width: usize) -> Result<Self> {
        whole_values(&page, width)?;
        Ok(Self { page, wanted: 0, places: Places::OfWidth(width) })
    }

    /// A dictionary of byte strings.
    ///
    /// # Errors
    /// `Malformed` if the page cannot hold as many entries as its header states.
    pub(super) fn of_byte_strings(page: DictionaryPage) -> Result<Self> {
        let rest = plain::ByteArrays::new(page.bytes.clone(), page.values)?;
        Ok(Self { page, wanted: 0, places: Places::AfterLengths(Vec::new(), rest) })
    }

    /// Counts `more` wanted entries. True while they are so few that preparing the dictionary costs
    /// more than looking them up.
    pub(super) fn stays_sparse(&mut self, more: usize) -> bool {
        self.wanted = self.wanted.saturating_add(more);
        self.wanted <= self.page.values / PART_OF_DICTIONARY
    }

    /// The page that the entries are looked up in.
    pub(super) fn page(&self) -> &DictionaryPage {
        &self.page
    }

    /// Where an entry lies in the page.
    ///
    /// # Errors
    /// `Malformed` if there is no such entry, or it or one before it reaches beyond the page.
    pub(super) fn span(&mut self, index: u32) -> Result<ValueSpan> {
        let at = index as usize;
        if at >= self.page.values {
            return Err(out_of_range(index, self.page.values));
        }
        match &mut self.places {
            Places::OfWidth(width) => {
                let fits = |n: usize| u32::try_from(n).expect("a page of at most 2 GiB");
                Ok(ValueSpan { start: fits(at * *width), len: fits(*width) })
            }
            Places::AfterLengths(spans, rest) => {
                if let Some(more) = (at + 1).checked_sub(spans.len()) {
                    rest.read_spans(more, spans)?;
                }
                Ok(spans[at])
            }
        }
    }

    /// Appends the bytes of the entries of indices.
    ///
    /// # Errors
    /// As [`SparseDictionary::span`].
    pub(super) fn append(&mut self, indices: &[u32], out: &mut Vec<u8>) -> Result<()> {
        for &index in indices {
            let span = self.span(index)?;
            out.extend_from_slice(span.slice(&self.page.bytes));
        }
        Ok(())
    }
}

/// The bytes of all entries of a dictionary page; an error if it has fewer.
pub(super) fn whole_values(page: &DictionaryPage, width: usize) -> Result<Bytes> {
    // `new` checks that the page holds them all.
    plain::FixedBytes::new(page.bytes.clone(), width, page.values)?;
    Ok(page.bytes.slice(..page.values * width))
}
