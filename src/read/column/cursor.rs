//! [`PageCursor`] walks the pages of a column chunk, and holds the page that is being read.

use std::ops::Range;
use std::sync::Arc;

use super::length_prefixes;
use super::memory::ColumnMemory;
use super::values::{Count, ValueReader};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::levels::{LevelDecoder, Validity};
use crate::page::{DataPage, DictionaryPage, Page, PageMemory};
use crate::read::chunk::Pages;
use crate::read::page_list::RowCountSource;
use crate::read::supplied::Stop;
use crate::schema::Physical;

/// The pages of a column chunk, one after the other.
pub(super) struct PageCursor {
    pub(super) physical: Physical,
    pub(super) max_def: u16,
    pub(super) max_rep: u16,
    pub(super) pages: Pages,
    pub(super) values: Box<dyn ValueReader>,
    pub(super) page: Option<OpenPage>,
    pub(super) memory: ColumnMemory,
    /// Upcoming row ranges, and the next row that may be wanted after them; limits how far a page
    /// is decompressed.
    pub(super) upcoming: (Arc<[Range<u64>]>, u64),
}

/// The rest of the current page.
pub(super) struct OpenPage {
    /// Slots whose levels are not decoded yet.
    pub(super) slots_left: usize,
    /// Values that the levels may still ask for.
    pub(super) values_left: usize,
    /// Slots and values of a page that was opened in part: the totals, not the rest.
    pub(super) in_part: Option<(usize, usize)>,
    pub(super) def: LevelDecoder,
    pub(super) rep: LevelDecoder,
    memory: PageMemory,
    /// Bytes of the values.
    byte_len: usize,
}

impl OpenPage {
    /// Uses up values that levels ask for.
    pub(super) fn take_values(&mut self, values: usize) -> Result<()> {
        self.values_left = self.values_left.checked_sub(values).ok_or_else(|| {
            let left = self.values_left;
            Error::mismatch(Spec::Pages, "values that the levels ask for", left, values)
        })?;
        Ok(())
    }
}

impl PageCursor {
    /// Slots of the current page whose levels are not decoded yet.
    pub(super) fn slots_left(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.slots_left)
    }

    /// Sets the dictionary of the chunk. Its memory is reserved here and nowhere else, before any
    /// of it is built, for as long as the chunk is read.
    pub(super) fn set_dictionary(
        &mut self,
        page: DictionaryPage,
        memory: PageMemory,
    ) -> Result<()> {
        // Checked here, because the tables are as long as is stated.
        let max = max_entries(self.physical, page.bytes.len());
        if page.values > max {
            return Err(Error::mismatch(
                Spec::Encodings("PLAIN"),
                "entries of the dictionary page",
                format_args!("at most the {max} that its {} bytes can hold", page.bytes.len()),
                page.values,
            ));
        }
        let tables = self.values.dictionary_bytes(page.values, page.bytes.len());
        let mut held = self.memory.budget().take_for("the tables of a dictionary", tables)?;
        if let Some(memory) = memory {
            held.absorb(memory);
        }
        let DictionaryPage { values, mut bytes } = page;
        if let Some(width) = self.fixed_len() {
            let (values, memory) =
                length_prefixes::without(bytes, width, values, self.memory.budget())?;
            bytes = values;
            memory.into_iter().for_each(|memory| held.absorb(memory));
        }
        self.memory.dictionary = Some(Arc::new(held));
        self.values.set_dictionary(DictionaryPage { values, bytes })
    }

    /// The current page, or the next one if it is used up; `None` after the last.
    pub(super) fn open(&mut self) -> Result<Option<&mut OpenPage>, Stop> {
        while self.page.as_ref().is_none_or(|page| page.slots_left == 0) {
            if self.page.as_ref().is_some_and(|page| page.in_part.is_some()) {
                self.reopen_whole(0)?;
                continue;
            }
            // Closed first, so that two pages are never held at once.
            self.close()?;
            match self.pages.next_page_for(&self.upcoming.0, self.upcoming.1)? {
                None => return Ok(None),
                Some(Page::Dictionary(page, memory)) => {
                    self.set_dictionary(page, memory).map_err(Error::at_dictionary_page)?;
                }
                Some(Page::Data(page)) => self.open_data_page(*page)?,
            }
        }
        Ok(self.page.as_mut())
    }

    fn open_data_page(&mut self, page: DataPage) -> Result<()> {
        self.check_rows(&page)?;
        let in_part = page.slots_left_out > 0;
        match self.set_page(page) {
            // The error may come from the cut, so the whole page decides.
            Err(_) if in_part => {
                self.close()?;
                let whole = self.pages.open_again()?;
                self.set_page(whole)
            }
            set => set,
        }
    }

    /// Checks the rows that an index or a page header states against the page.
    fn check_rows(&self, page: &DataPage) -> Result<()> {
        let Some((located, source)) = self.pages.rows() else { return Ok(()) };
        let rows = match (self.max_rep, source) {
            // Outside lists, the slots of the header are the rows.
            (0, RowCountSource::Headers) => return Ok(()),
            (0, RowCountSource::Index) => page.slots + page.slots_left_out,
            _ => page.rep.count_zeros(page.slots)?,
        };
        match located.end - located.start == rows as u64 {
            true => Ok(()),
            false => Err(misplaced(&located, format_args!("has {rows} rows"))),
        }
    }

    fn set_page(&mut self, page: DataPage) -> Result<()> {
        let page = self.without_lengths(page)?;
        let DataPage { slots, slots_left_out, values, rep, def, encoding, bytes, memory } = page;
        let byte_len = bytes.len();
        let count = match values {
            Some(values) => Count::Exactly(values),
            // All slots are null, unless values have no bytes either.
            None if bytes.is_empty()
                && slots_left_out == 0
                && self.physical.byte_width() != Some(0) =>
            {
                Count::Exactly(0)
            }
            None => Count::AtMost(slots),
        };
        // A page of nulls may hold anything, or nothing, where its values would be.
        if count.max() > 0 {
            self.values.set_page(encoding, bytes, count)?;
        }
        let in_part = (slots_left_out > 0).then_some((slots, count.max()));
        let (slots_left, values_left) = (slots, count.max());
        self.page = Some(OpenPage { slots_left, values_left, in_part, def, rep, memory, byte_len });
        Ok(())
    }

    /// The length of the values, if they are FIXED_LEN_BYTE_ARRAY.
    fn fixed_len(&self) -> Option<usize> {
        match self.physical {
            Physical::FixedLenByteArray(width) => Some(width),
            _ => None,
        }
    }

    /// Removes the lengths before PLAIN values of a fixed length, where a file has some.
    fn without_lengths(&self, mut page: DataPage) -> Result<DataPage> {
        let is_plain = page.encoding == Encoding::Plain;
        let Some(width) = self.fixed_len().filter(|_| is_plain) else { return Ok(page) };
        if page.slots_left_out > 0 {
            // Where a part ends tells nothing.
            return match length_prefixes::may_be_there(&page.bytes, width) {
                true => Err(Error::internal("the whole page tells whether it has lengths")),
                false => Ok(page),
            };
        }
        let values = match page.values {
            Some(values) => values,
            None if length_prefixes::are_in_doubt(&page.bytes, width, page.slots) => {
                page.def.count_max(page.slots)?
            }
            None => return Ok(page),
        };
        // A page of nulls may hold anything.
        if values > 0 {
            let budget = self.memory.budget();
            let (bytes, memory) = length_prefixes::without(page.bytes, width, values, budget)?;
            page.bytes = bytes;
            if let Some(mut memory) = memory {
                page.memory.into_iter().for_each(|page| memory.absorb(page));
                page.memory = Some(memory);
            }
        }
        Ok(page)
    }

    /// Closes the current page. If the array points into it, its memory stays reserved until the
    /// batch is made.
    pub(super) fn close(&mut self) -> Result<Option<OpenPage>> {
        let Some(mut page) = self.page.take() else { return Ok(None) };
        if self.values.leave_page() {
            self.memory.count_page(page.byte_len);
            match page.memory.take() {
                Some(memory) => self.memory.adopted.absorb(memory),
                None if self.pages.are_in_pieces() => self.memory.adopted.grow(page.byte_len)?,
                None => {}
            }
        }
        Ok(Some(page))
    }

    /// Replaces a page that was opened in part by the whole page, and leaves the last
    /// `values_to_repeat` values of the current position unread.
    fn reopen_whole(&mut self, values_to_repeat: usize) -> Result<()> {
        let Some((opened, page)) = self.close()?.and_then(|page| Some((page.in_part?, page)))
        else {
            return Err(no_page_in_part());
        };
        let (slots, values_done) = (opened.0 - page.slots_left, opened.1 - page.values_left);
        // Frees its memory before the whole page takes its own.
        drop(page);
        let whole = self.pages.open_again()?;
        self.set_page(whole)?;
        let Some(page) = &mut self.page else { return Err(no_page_in_part()) };
        match self.max_def {
            0 => {}
            1 => drop(page.def.read_validity(slots, &mut Validity::default())?),
            max_def => page.def.read(slots, &mut LevelDecoder::planes(max_def))?,
        }
        page.slots_left -= slots;
        page.values_left = page.values_left.saturating_sub(values_done);
        self.values.skip(values_done.saturating_sub(values_to_repeat))
    }

    /// Makes sure that the next `values` values of the page are there, if the page has them: opens
    /// the whole page if the part that was opened may lack some.
    pub(super) fn ensure_decompressed(&mut self, values: usize) -> Result<()> {
        match &self.page {
            Some(OpenPage { in_part: Some(_), .. }) if self.values.holds(values) != Some(true) => {
                self.reopen_whole(values)
            }
            _ => Ok(()),
        }
    }

    /// Skips values. Opens the whole page if the part that was opened ends before them.
    pub(super) fn skip_values(&mut self, values: usize) -> Result<()> {
        let skipped = self.values.skip(values);
        match &self.page {
            Some(OpenPage { in_part: Some(_), .. }) if skipped.is_err() => {
                self.reopen_whole(values)?;
                self.values.skip(values)
            }
            _ => skipped,
        }
    }
}

/// Maximum entries of a dictionary page of `byte_len` bytes.
fn max_entries(physical: Physical, byte_len: usize) -> usize {
    match physical {
        Physical::Boolean => byte_len.saturating_mul(8),
        // Each entry has a length of 4 bytes.
        Physical::ByteArray => byte_len / size_of::<u32>(),
        // Entries of no bytes may be any number.
        _ => physical
            .byte_width()
            .and_then(|width| byte_len.checked_div(width))
            .unwrap_or(usize::MAX),
    }
}

#[cold]
fn no_page_in_part() -> Error {
    Error::internal("no page was opened in part")
}

/// A page that does not hold the rows that it should.
#[cold]
pub(super) fn misplaced(located: &Range<u64>, found: impl std::fmt::Display) -> Error {
    Error::malformed(
        Spec::PageIndex,
        format_args!(
            "the page at hand should hold the rows {located:?} of its row group, and {found}"
        ),
    )
}
