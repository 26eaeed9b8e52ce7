//! Few entries of a dictionary: they are looked up in its page, which costs less than to prepare all of it.

use super::text::{Lossy, checked_text};
use super::{BytesColumn, Layout, Payload, Place, set_whole_dictionary};
use crate::encoding::dictionary::out_of_range;
use crate::encoding::{Span, plain};
use crate::error::Result;
use crate::page::DictionaryPage;
use crate::read::leaf::column::{no_dictionary, no_page};

/// A dictionary page of which few entries are wanted: they are looked up in it.
pub(super) struct DictionaryOfFew {
    values: plain::ByteArrays,
    /// Entries that the page has.
    entries: usize,
    /// Those that were wanted so far.
    wanted: usize,
    /// Where the first of them lie, as far as was asked.
    spans: Vec<Span>,
}

/// So much of a dictionary may be looked up in its page before all of it is prepared.
const PART_OF_DICTIONARY: usize = 16;

impl DictionaryOfFew {
    pub(super) fn new(page: DictionaryPage) -> Result<Self> {
        let entries = page.values;
        let values = plain::ByteArrays::new(page.bytes, entries)?;
        Ok(Self { values, entries, wanted: 0, spans: Vec::new() })
    }

    /// Where an entry lies.
    fn span(&mut self, index: u32) -> Result<Span> {
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

/// Before `more` indices are looked up: prepares the dictionary, unless so few of it are wanted that this is more work.
pub(super) fn prepare_dictionary<L: Layout>(
    column: &mut BytesColumn<L>,
    more: usize,
) -> Result<()> {
    let Some(few) = &mut column.few else { return Ok(()) };
    few.wanted = few.wanted.saturating_add(more);
    if few.wanted <= few.entries / PART_OF_DICTIONARY {
        return Ok(());
    }
    let page = DictionaryPage { values: few.entries, bytes: few.values.buffer().clone() };
    column.few = None;
    set_whole_dictionary(column, page)
}

/// Appends the entries of `picked`, found in the dictionary page.
pub(super) fn look_up_few<L: Layout>(column: &mut BytesColumn<L>, room: usize) -> Result<()> {
    let BytesColumn { few, utf8, layout, picked, .. } = column;
    let few = few.as_mut().ok_or_else(no_dictionary)?;
    for &index in &*picked {
        let span = [few.span(index)?];
        let page = few.values.buffer();
        let lossy = match *utf8 {
            None => None,
            Some(utf8) => checked_text(utf8, page, &span, Place::Apart)?,
        };
        match lossy {
            None => layout.append(Payload::Shared(page), &span, Place::Apart, room)?,
            Some(Lossy { bytes, spans }) => {
                layout.append(Payload::Borrowed(&bytes), &spans, Place::Apart, room)?;
            }
        }
    }
    Ok(())
}
