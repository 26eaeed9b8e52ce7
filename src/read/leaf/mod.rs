//! A leaf: levels and values of one column chunk, decoded row by row into Arrow arrays.
//!
//! The door where everything is decided once: [`column`] matches the physical type and the conversion, a page matches its encoding. Below it,
//! all is concrete over plain slices.
//!
//! Values are decoded densely, straight into the buffer that becomes the Arrow buffer, and spread to their slots in place where there are
//! nulls. "All present" has neither levels nor a bitmap.

mod boolean;
mod bytes;
mod column;
mod dictionary;
mod fixed;
mod picked;
mod runs;
mod spell;
mod words;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use self::column::{Column, Count};
pub(super) use self::spell::{spelled_bytes, spelled_out};
use super::options::Utf8;
use super::plan::LeafPlan;
use super::window::Weight;
use crate::error::{Error, Result, Spec};
use crate::levels::{Decoded, LevelDecoder, Order, Validity, leaf_validity, rows};
use crate::limits::{Budget, Reservation};
use crate::page::{DataPage, DictionaryPage, Page, PageMemory};
use crate::schema::Physical;
use crate::simd::planes::Planes;
use crate::spare::roughly;

use super::chunk::{Pages, Trust};

/// The decoded rows of a leaf.
#[derive(Debug)]
pub(crate) struct LeafBatch {
    /// One entry for each slot of the leaf: rows outside lists, elements of the innermost list inside them.
    pub array: ArrayRef,
    /// Definition levels, if they are kept.
    pub def: Planes,
    /// Repetition levels, if they are kept.
    pub rep: Planes,
    /// The highest repetition level.
    pub max_rep: u16,
    /// The memory of array and levels, until the batch is given to the caller.
    pub memory: Reservation,
    /// The memory of the dictionary, where the array points into it.
    pub dictionary_memory: Option<Arc<Reservation>>,
}

impl LeafBatch {
    /// The same array and levels, whose memory is reserved by this one.
    pub(in crate::read) fn shared(&self) -> Self {
        Self {
            array: self.array.clone(),
            def: self.def.clone(),
            rep: self.rep.clone(),
            max_rep: self.max_rep,
            memory: self.memory.empty(),
            dictionary_memory: None,
        }
    }
}

/// Decodes the rows of one leaf in one row group.
pub(super) struct LeafReader {
    physical: Physical,
    max_def: u16,
    max_rep: u16,
    slot: u16,
    keep_levels: bool,
    order: Order,
    pages: Pages,
    column: Box<dyn Column>,
    page: Option<OpenPage>,
    pending: Pending,
    /// Whether a page can be skipped unread: not where it lends its last value to the next.
    pages_stand_alone: bool,
    first_slot_seen: bool,
    /// The next row, counted from the first of the row group.
    next_row: u64,
    /// Slots that were decoded or skipped so far, where rows repeat; `next_row` says of how many rows.
    slots_seen: u64,
    /// Rows that will be asked for, and the first behind them that may be: no page need be opened beyond the last of them that lies in it.
    expected: (Arc<[Range<u64>]>, u64),
    /// Rows decoded since the last batch.
    kept: Kept,
    budget: Budget,
    /// The array that is being built.
    held: Reservation,
    /// Pages that were left, and that the array which is being built points into.
    adopted: Reservation,
    /// The dictionary page, and what is made of it.
    dictionary: Arc<Reservation>,
    /// Where the bytes of the batch at hand are counted, how many it may hold, and which of them are of this leaf.
    weight: (Weight, u64),
    weighed: u64,
    /// Whether something was wrong: what stands in the column then fits neither its levels nor its dictionary.
    is_broken: bool,
}

/// The levels of the current page that are not decoded yet.
struct OpenPage {
    slots_left: usize,
    /// Values that the levels may still ask for.
    values_left: usize,
    /// Slots and values of a page that was opened in part, those that are used up included.
    in_part: Option<(usize, usize)>,
    def: LevelDecoder,
    rep: LevelDecoder,
    memory: PageMemory,
    /// Bytes of the values.
    byte_len: usize,
}

/// Levels decoded ahead to find where a row ends. They belong to the current page.
struct Pending {
    def: Planes,
    rep: Planes,
    /// Slots of them that are used up.
    used: usize,
}

/// Levels decoded at a time where rows repeat: the levels and what is made of them stay in the cache.
const LEVEL_BLOCK: usize = 8192;

impl LeafReader {
    /// A reader of the leaf of `plan` in the chunk of `pages`.
    ///
    /// # Errors
    /// `Unsupported` if the leaf cannot be read as the plan says.
    pub(super) fn new(
        plan: &LeafPlan,
        pages: Pages,
        utf8: Utf8,
        carries_prefix: bool,
        budget: &Budget,
    ) -> Result<Self> {
        let mut column = column::column(plan, utf8, carries_prefix)?;
        column.use_spare(budget.spare());
        let pages =
            if column.wants_dictionary_first() { pages.with_dictionary_first() } else { pages };
        Ok(Self {
            physical: plan.leaf.physical,
            max_def: plan.leaf.max_def,
            max_rep: plan.leaf.max_rep,
            slot: plan.slot,
            keep_levels: plan.keep_levels,
            order: Order::new(&plan.elements),
            pages,
            column,
            page: None,
            pending: Pending {
                def: LevelDecoder::planes(plan.leaf.max_def),
                rep: LevelDecoder::planes(plan.leaf.max_rep),
                used: 0,
            },
            pages_stand_alone: !carries_prefix,
            first_slot_seen: false,
            next_row: 0,
            slots_seen: 0,
            expected: ([].into(), 0),
            kept: Kept::new(plan.leaf.max_def, plan.leaf.max_rep),
            budget: budget.clone(),
            held: budget.reservation("the arrays of a batch"),
            adopted: budget.reservation("pages that string views point into"),
            dictionary: Arc::new(budget.reservation("a dictionary")),
            weight: (Weight::default(), u64::MAX),
            weighed: 0,
            is_broken: false,
        })
    }

    /// Does what adds to the column or empties it, unless it failed before.
    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.is_broken {
            return Err(Error::usage("a column chunk is not read on behind what is wrong in it"));
        }
        self.is_broken = true;
        let done = step(self)?;
        self.is_broken = false;
        Ok(done)
    }

    /// Decodes the next `rows` rows.
    ///
    /// # Errors
    /// `Malformed` if the chunk has fewer rows or a page breaks a rule, `Limit` if the arrays would grow beyond bounds.
    #[cfg(test)]
    pub(super) fn read(&mut self, rows: usize) -> Result<LeafBatch> {
        self.reserve(rows);
        self.append(rows)?;
        self.take()
    }

    /// The entries of the dictionary, if the chunk begins with one; for a leaf that is read as a dictionary, before the first row.
    ///
    /// # Errors
    /// `Malformed` if the page breaks a rule.
    pub(super) fn dictionary(&mut self) -> Result<Option<ArrayRef>> {
        let Some(Page::Dictionary(page, memory)) = self.pages.next_page()? else {
            return Ok(None);
        };
        self.set_dictionary(page, memory)?;
        let array = self.take()?.array;
        Ok(array.as_any_dictionary_opt().map(|dictionary| dictionary.values().clone()))
    }

    /// The memory of what [`LeafReader::dictionary`] gave, which is to be held as long as that.
    pub(super) fn into_dictionary_memory(self) -> Arc<Reservation> {
        self.dictionary
    }

    /// The one place where the memory of what is made of a dictionary is reserved: before any of it is made, for as long as the chunk is read.
    fn set_dictionary(&mut self, page: DictionaryPage, memory: PageMemory) -> Result<()> {
        // A page that states more is malformed, which the column finds out.
        let entries = page.values.min(most_entries(self.physical, page.bytes.len()));
        let tables = self.column.dictionary_bytes(entries, page.bytes.len());
        let mut held = self.budget.take_for("the tables of a dictionary", tables)?;
        if let Some(memory) = memory {
            held.absorb(memory);
        }
        self.dictionary = Arc::new(held);
        self.column.set_dictionary(page)
    }

    /// Says which rows will be asked for next, in ascending order, and no others before `behind`: pages whose rows are known need not be opened beyond the
    /// last of them. Others may be asked for; it is more work then.
    pub(super) fn expect(&mut self, rows: &Arc<[Range<u64>]>, behind: u64) {
        if self.max_rep == 0 && self.column.holds(0).is_some() {
            self.expected = (Arc::clone(rows), behind);
        }
    }

    /// Counts what is decoded next in `weight`, which may be `most` bytes: beyond them is an error.
    pub(in crate::read) fn weigh(&mut self, weight: &Weight, most: u64) {
        self.weight = (weight.clone(), most);
    }

    /// Makes room for `rows` rows, before the first of a batch.
    pub(super) fn reserve(&mut self, rows: usize) {
        if self.max_rep == 0 {
            self.column.reserve(rows);
        }
    }

    /// Decodes the next `rows` rows behind those that no batch was made of yet.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub(super) fn append(&mut self, rows: usize) -> Result<()> {
        self.guarded(|reader| {
            let mut sink = Sink::Keep(reader.take_kept());
            reader.go(rows, &mut sink)?;
            if let Sink::Keep(kept) = sink {
                reader.kept = kept;
            }
            Ok(())
        })
    }

    fn take_kept(&mut self) -> Kept {
        std::mem::replace(&mut self.kept, Kept::new(self.max_def, self.max_rep))
    }

    /// Makes a batch of the rows decoded since the last one.
    ///
    /// # Errors
    /// `Limit` if they do not fit an array, `Usage` if something was wrong with them.
    pub(super) fn take(&mut self) -> Result<LeafBatch> {
        self.guarded(|reader| {
            if reader.page_left() == 0
                && reader.page.as_ref().is_some_and(|page| page.in_part.is_none())
            {
                reader.close_page()?;
            }
            let kept = reader.take_kept();
            let slots = kept.validity.len();
            let array = reader.column.finish(kept.validity.into_nulls(), slots)?;
            let mut memory = reader.held.split_off();
            memory.absorb(reader.adopted.split_off());
            // What the column keeps for the next batch is not in this one.
            reader.held.resize(reader.column.bytes_held())?;
            reader.weighed = 0;
            let points = points_into_dictionary(array.data_type());
            let dictionary_memory = points.then(|| reader.dictionary.clone());
            let (def, rep, max_rep) = (kept.def, kept.rep, reader.max_rep);
            Ok(LeafBatch { array, def, rep, max_rep, memory, dictionary_memory })
        })
    }

    /// Decodes or skips rows.
    fn go(&mut self, rows: usize, sink: &mut Sink) -> Result<()> {
        if self.max_rep == 0 {
            self.flat(rows, sink)?;
        } else {
            self.nested(rows, sink)?;
        }
        self.next_row += rows as u64;
        self.ends_with_page()
    }

    /// Of a page that ends with the last row that was read, nothing may be left.
    fn ends_with_page(&self) -> Result<()> {
        match self.pages.rows() {
            Some((placed, _)) if placed.end == self.next_row && self.page_left() > 0 => {
                Err(misplaced(&placed, "has more"))
            }
            _ => Ok(()),
        }
    }

    /// Slots left of the page at hand.
    fn page_left(&self) -> usize {
        self.pending.left() + self.page.as_ref().map_or(0, |page| page.slots_left)
    }

    /// Skips to a row, counted from the first of the row group, that is not behind the next one.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub(super) fn seek(&mut self, row: u64) -> Result<()> {
        let rows = row.saturating_sub(self.next_row);
        if rows == 0 && self.page.is_some() {
            return Ok(());
        }
        if self.pages.rows().is_some_and(|(placed, _)| row >= placed.end) {
            self.next_row = self.pages.seek(row)?;
            self.close_page()?;
            self.first_slot_seen = false;
            self.pending.clear();
        }
        self.skip(row.saturating_sub(self.next_row))
    }

    /// Skips the next `rows` rows.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub(super) fn skip(&mut self, rows: u64) -> Result<()> {
        let mut left = rows;
        while left > 0 {
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(SKIP_BLOCK);
            if self.max_rep == 0 {
                let between_pages = self.page.as_ref().is_none_or(|page| page.slots_left == 0);
                if between_pages && self.pages_stand_alone && !self.pages.are_placed() {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    if let Some(slots) = self.pages.skip_page(most)? {
                        self.first_slot_seen |= slots > 0;
                        self.next_row += slots as u64;
                        left -= slots as u64;
                        continue;
                    }
                }
                let n = self.page.as_ref().map_or(1, |page| page.slots_left.max(1)).min(n);
                self.go(n, &mut Sink::Drop)?;
                left -= n as u64;
            } else {
                self.go(n, &mut Sink::Drop)?;
                left -= n as u64;
            }
        }
        Ok(())
    }

    /// Checks that no row is left.
    ///
    /// # Errors
    /// `Malformed` if one is.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.pending.left() > 0 || self.open_page()?.is_some() {
            return Err(Error::malformed(
                Spec::Pages,
                "the column chunk has more rows than its row group",
            ));
        }
        Ok(())
    }

    /// The next row, counted from the first of the row group.
    pub(super) fn next_row(&self) -> u64 {
        self.next_row
    }

    /// Index of the page that is being read.
    pub(super) fn page(&self) -> usize {
        self.pages.page()
    }

    /// The current page, or the next one if it is used up; `None` after the last.
    fn open_page(&mut self) -> Result<Option<&mut OpenPage>> {
        while self.page.as_ref().is_none_or(|page| page.slots_left == 0) {
            if self.page.as_ref().is_some_and(|page| page.in_part.is_some()) {
                self.open_whole(0)?;
                continue;
            }
            // First, so that two pages are never held where one is read.
            self.close_page()?;
            match self.pages.next_page_for(&self.expected.0, self.expected.1)? {
                None => return Ok(None),
                Some(Page::Dictionary(page, memory)) => self.set_dictionary(page, memory)?,
                Some(Page::Data(page)) => {
                    let DataPage { slots, slots_left_out, rep, .. } = &*page;
                    // An index is believed when the page says the same.
                    if let Some((placed, Trust::Index)) = self.pages.rows() {
                        let rows = match self.max_rep {
                            0 => slots + slots_left_out,
                            _ => rep.count_zeros(*slots)?,
                        };
                        if placed.end - placed.start != rows as u64 {
                            return Err(misplaced(&placed, format_args!("has {rows} rows")));
                        }
                    }
                    let in_part = *slots_left_out > 0;
                    match self.set_page(*page) {
                        Err(_) if in_part => {
                            self.close_page()?;
                            let whole = self.pages.open_again()?;
                            self.set_page(whole)?;
                        }
                        set => set?,
                    }
                }
            }
        }
        Ok(self.page.as_mut())
    }

    fn set_page(&mut self, page: DataPage) -> Result<()> {
        let DataPage { slots, slots_left_out, values, rep, def, encoding, bytes, memory } = page;
        let byte_len = bytes.len();
        let count = values.map_or(Count::AtMost(slots), Count::Exactly);
        // A page of nulls may hold anything, or nothing, where its values would be.
        if count.most() > 0 {
            self.column.set_page(encoding, bytes, count)?;
        }
        let in_part = (slots_left_out > 0).then_some((slots, count.most()));
        let (slots_left, values_left) = (slots, count.most());
        self.page = Some(OpenPage { slots_left, values_left, in_part, def, rep, memory, byte_len });
        Ok(())
    }

    /// Lets go of the page at hand; its memory stays reserved until the batch is made if the array points into it.
    fn close_page(&mut self) -> Result<Option<OpenPage>> {
        let Some(mut page) = self.page.take() else { return Ok(None) };
        if self.column.leave_page() {
            match page.memory.take() {
                Some(memory) => self.adopted.absorb(memory),
                None if self.pages.are_pulled() => self.adopted.grow(page.byte_len)?,
                None => {}
            }
        }
        Ok(Some(page))
    }

    /// Opens a page anew that was opened in part, and goes on where the reading stands; the last `values` values are to be read, or skipped, again.
    fn open_whole(&mut self, values: usize) -> Result<()> {
        let Some((opened, page)) = self.close_page()?.and_then(|page| Some((page.in_part?, page)))
        else {
            return Err(no_page_in_part());
        };
        let (slots, values_done) = (opened.0 - page.slots_left, opened.1 - page.values_left);
        // Its memory goes before that of the whole is taken.
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
        self.column.skip(values_done.saturating_sub(values))
    }

    /// Makes sure that the next `values` values of the page, which the levels ask for, are there if the page has them.
    fn hold(&mut self, values: usize) -> Result<()> {
        match &self.page {
            Some(OpenPage { in_part: Some(_), .. }) if self.column.holds(values) != Some(true) => {
                self.open_whole(values)
            }
            _ => Ok(()),
        }
    }

    /// Skips values, and opens the page as a whole if it is cut off before their end.
    fn skip_values(&mut self, values: usize) -> Result<()> {
        let skipped = self.column.skip(values);
        match &self.page {
            Some(OpenPage { in_part: Some(_), .. }) if skipped.is_err() => {
                self.open_whole(values)?;
                self.column.skip(values)
            }
            _ => skipped,
        }
    }

    /// Rows outside lists: one slot each.
    fn flat(&mut self, rows: usize, sink: &mut Sink) -> Result<()> {
        let (max_def, max_rep) = (self.max_def, self.max_rep);
        let (slot, keep_levels) = (self.slot, self.keep_levels);
        let mut left = rows;
        while left > 0 {
            let Some(page) = self.open_page()? else {
                return Err(fewer_rows(rows - left, rows));
            };
            let n = left.min(page.slots_left);
            page.slots_left -= n;
            let mut skipped = Kept::new(max_def, max_rep);
            let kept = sink.kept().unwrap_or(&mut skipped);
            let first = kept.validity.len();
            let values = match max_def {
                0 => {
                    kept.validity.push_run(true, n);
                    n
                }
                1 => page.def.read_validity(n, &mut kept.validity)?,
                _ => 0,
            };
            let decoded = if max_def <= 1 {
                if keep_levels {
                    // A required leaf below an optional struct: its levels say where the struct is.
                    levels_of_bits(&kept.validity, first, n, &mut kept.def);
                    kept.rep.push_run(0, n);
                }
                Decoded { slots: n, values }
            } else {
                let at = kept.def.len();
                page.def.read(n, &mut kept.def)?;
                let range = at..kept.def.len();
                let decoded = leaf_validity(&kept.def, range, slot, max_def, &mut kept.validity);
                if keep_levels {
                    kept.rep.push_run(0, n);
                } else {
                    kept.def.clear();
                }
                decoded
            };
            self.values(decoded, first, sink)?;
            left -= n;
        }
        Ok(())
    }

    /// Rows that repeat: levels are decoded ahead until the row after the last begins.
    fn nested(&mut self, rows: usize, sink: &mut Sink) -> Result<()> {
        let mut begun = 0usize;
        loop {
            if begun == rows && self.page_left() == 0 && self.pages.are_placed() {
                // The next page begins with a row; it may not even be there.
                return Ok(());
            }
            let begins_page = self.page_left() == 0;
            if self.pending.left() == 0 && !self.decode_levels()? {
                if begun < rows {
                    return Err(fewer_rows(begun, rows));
                }
                return Ok(());
            }
            let row = self.next_row + begun as u64;
            if let Some((placed, _)) = self.pages.rows().filter(|_| begins_page)
                && (placed.start != row || self.pending.rep.get(0) != 0)
            {
                return Err(misplaced(&placed, format_args!("begins with row {row}")));
            }
            if !self.first_slot_seen {
                self.first_slot_seen = true;
                let level = self.pending.rep.get(0);
                if level != 0 {
                    return Err(Error::mismatch(
                        Spec::Levels,
                        "first repetition level of the column chunk",
                        0,
                        level,
                    ));
                }
            }
            let (start, end) = self.pending.rows(&mut begun, rows);
            if start == end {
                return Ok(());
            }
            let mut skipped = Kept::new(self.max_def, self.max_rep);
            let kept = sink.kept().unwrap_or(&mut skipped);
            let first = kept.validity.len();
            let (slot, max_def) = (self.slot, self.max_def);
            let def = &self.pending.def;
            let decoded = leaf_validity(def, start..end, slot, max_def, &mut kept.validity);
            if self.keep_levels {
                kept.def.push_range(def, start..end);
                kept.rep.push_range(&self.pending.rep, start..end);
            }
            self.slots_seen += decoded.slots as u64;
            if first == 0 && matches!(sink, Sink::Keep(_)) {
                // The last of them may go on in the next block.
                let seen = (self.next_row + begun as u64).saturating_sub(1);
                let expected = slots_expected(self.slots_seen, seen, rows);
                let most = self.most_expected();
                self.column.reserve(expected.min(most).max(decoded.slots));
            }
            self.values(decoded, first, sink)?;
        }
    }

    /// Slots that room may be made for before they are there.
    fn most_expected(&self) -> usize {
        let of_chunk = self.pages.bytes() / BYTES_A_SLOT;
        let most = usize::try_from(of_chunk).unwrap_or(usize::MAX).max(MOST_EXPECTED);
        most.min(self.room() / BYTES_EXPECTED)
    }

    /// Decodes the next block of levels; false after the last page.
    fn decode_levels(&mut self) -> Result<bool> {
        self.pending.clear();
        if self.open_page()?.is_none() {
            return Ok(false);
        }
        let Some(page) = &mut self.page else {
            return Ok(false);
        };
        let n = page.slots_left.min(LEVEL_BLOCK);
        let Pending { def, rep, .. } = &mut self.pending;
        let read = page.rep.read(n, rep).and_then(|()| page.def.read(n, def));
        let read = read.and_then(|()| self.order.check(def, rep));
        if read.is_err() {
            self.pending.clear();
        }
        page.slots_left -= n;
        read.map(|()| true)
    }

    /// Bytes that the arrays may take.
    fn room(&self) -> usize {
        let room = self.budget.cap().saturating_sub(self.budget.used());
        let room = room.saturating_add(self.held.bytes());
        let (weight, most) = &self.weight;
        let others = weight.bytes().saturating_sub(self.weighed);
        usize::try_from(room.min(most.saturating_sub(others))).unwrap_or(usize::MAX)
    }

    /// Takes what the column holds now from the budget, and counts it.
    fn hold_bytes(&mut self, bytes: usize) -> Result<()> {
        // Room was made for all rows: most pages change nothing, and may be short.
        if self.held.bytes() == bytes as u64 && self.weighed == bytes as u64 {
            return Ok(());
        }
        self.held.resize(bytes)?;
        let (weight, most) = &self.weight;
        let before = std::mem::replace(&mut self.weighed, bytes as u64);
        weight.change(before, bytes as u64, *most)
    }

    /// Decodes or skips the values of a stretch whose validity begins at slot `first`.
    fn values(&mut self, decoded: Decoded, first: usize, sink: &mut Sink) -> Result<()> {
        let Decoded { slots, values } = decoded;
        if let Some(page) = &mut self.page {
            page.values_left = page.values_left.checked_sub(values).ok_or_else(|| {
                Error::mismatch(
                    Spec::Pages,
                    "values that the levels ask for",
                    page.values_left,
                    values,
                )
            })?;
        }
        let Some(kept) = sink.kept() else {
            return self.skip_values(values);
        };
        if values > 0 {
            self.hold(values)?;
            let room = self.room();
            self.column.read(values, room)?;
        }
        if values < slots
            && let Some(bitmap) = kept.validity.bitmap()
        {
            self.column.spread(bitmap, first, slots, values);
        }
        let bytes = self.column.bytes_held() + kept.bytes_held();
        self.hold_bytes(bytes)
    }
}

/// Entries that so many bytes of a dictionary page can be.
fn most_entries(physical: Physical, byte_len: usize) -> usize {
    match physical {
        Physical::Boolean => byte_len.saturating_mul(8),
        // Each has its length.
        Physical::ByteArray => byte_len / size_of::<u32>(),
        _ => physical
            .byte_width()
            .and_then(|width| byte_len.checked_div(width))
            .unwrap_or(usize::MAX),
    }
}

/// Rows skipped at a time where levels must be walked.
const SKIP_BLOCK: usize = 64 << 10;

/// Where the decoded rows go.
enum Sink {
    Keep(Kept),
    Drop,
}

struct Kept {
    validity: Validity,
    def: Planes,
    rep: Planes,
}

impl Kept {
    fn new(max_def: u16, max_rep: u16) -> Self {
        let (def, rep) = (LevelDecoder::planes(max_def), LevelDecoder::planes(max_rep));
        Self { validity: Validity::default(), def, rep }
    }

    /// Bytes of the levels.
    fn bytes_held(&self) -> usize {
        self.def.bytes_held() + self.rep.bytes_held()
    }
}

impl Sink {
    fn kept(&mut self) -> Option<&mut Kept> {
        match self {
            Self::Keep(kept) => Some(kept),
            Self::Drop => None,
        }
    }
}

impl Pending {
    fn clear(&mut self) {
        self.def.clear();
        self.rep.clear();
        self.used = 0;
    }

    fn left(&self) -> usize {
        self.rep.len() - self.used
    }

    /// Uses up slots until row `most` (counted by `begun`) would begin, or all; says which.
    fn rows(&mut self, begun: &mut usize, most: usize) -> (usize, usize) {
        let start = self.used;
        let (n, end) = rows(&self.rep, start..self.rep.len(), most - *begun);
        *begun += n;
        self.used = end;
        (start, end)
    }
}

/// Whether arrays of a type may hold the dictionary of a chunk.
fn points_into_dictionary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Dictionary(..)
            | DataType::RunEndEncoded(..)
            | DataType::Utf8View
            | DataType::BinaryView
    )
}

#[cold]
fn no_page_in_part() -> Error {
    Error::usage("no page was opened in part")
}

/// A page that does not hold the rows that it should.
#[cold]
fn misplaced(placed: &Range<u64>, found: impl std::fmt::Display) -> Error {
    Error::malformed(
        Spec::PageIndex,
        format_args!(
            "the page at hand should hold the rows {placed:?} of its row group, and {found}"
        ),
    )
}

/// The slots that `wanted` rows will have, where `rows` rows have `slots`: a little more.
fn slots_expected(slots: u64, rows: u64, wanted: usize) -> usize {
    let expected = u128::from(slots) * wanted as u128 / u128::from(rows.max(1));
    roughly(usize::try_from(expected + expected / 32).unwrap_or(usize::MAX))
}

/// Slots that room is made for before they are there, however small the chunk is.
const MOST_EXPECTED: usize = 1 << 20;

/// Bytes of a chunk that stand for a slot more: those of most numbers, so that no more memory is taken than a few times the bytes of the file.
const BYTES_A_SLOT: u64 = 4;

/// Of so many bytes that are left, room is made for one slot.
const BYTES_EXPECTED: usize = 256;

#[cold]
fn fewer_rows(found: usize, wanted: usize) -> Error {
    Error::malformed(
        Spec::Pages,
        format_args!(
            "the column chunk has fewer rows than its row group: {wanted} wanted, {found} left"
        ),
    )
}

/// Spells out the levels that a validity of highest level 1 stands for.
fn levels_of_bits(validity: &Validity, first: usize, n: usize, def: &mut Planes) {
    match validity.bitmap() {
        None => def.push_run(1, n),
        Some(bitmap) => def.push_bits(first..first + n, |at| bitmap.word_at(at)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::bytes::Bytes;
    use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::format::{CompressionCodec, Encoding};
    use crate::io::WriteSink;
    use crate::read::Plan;
    use crate::read::chunk::{PageList, PlacedPage};
    use crate::schema::Dictionaries;
    use crate::write::WriteOptions;
    use crate::{Compression, ErrorKind, Reader, Writer};

    #[test]
    fn no_array_is_made_behind_what_is_wrong() {
        // Nulls first: their keys are 0, of a dictionary that is not told yet to have no entry.
        let values: StringArray = (0..3_000).map(|i| (i >= 2_000).then_some("v")).collect();
        let batch = RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap();
        let options = WriteOptions::new().with_page_rows(1_000);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let (_, file) = writer.into_inner().unwrap();
        let file = Bytes::from(file);
        let reader = Reader::new(file.clone()).unwrap();
        for dictionaries in [Dictionaries::None, Dictionaries::Strings] {
            let plan = reader.clone().dictionaries(dictionaries).plan().unwrap();
            let meta = plan.footer().column_chunk(0, 0).unwrap().meta_data.unwrap();
            let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as usize;
            let end = start + meta.total_compressed_size as usize;
            let leaf = &plan.leaves()[0];
            let context = plan.page_context(leaf, meta.codec);
            // Without its last page.
            let list = PageList::whole(file.slice(start..end - 20), start as u64, 3_000);
            let pages = Pages::new(&list, context, plan.budget()).unwrap();
            let utf8 = plan.options().utf8;
            let mut reader = LeafReader::new(leaf, pages, utf8, false, plan.budget()).unwrap();
            reader.append(1_500).unwrap();
            assert!(matches!(reader.append(1_500).unwrap_err().kind(), ErrorKind::Malformed(_)));
            assert_eq!(reader.take().unwrap_err().kind(), ErrorKind::Usage);
            assert_eq!(reader.append(1).unwrap_err().kind(), ErrorKind::Usage);
        }
    }

    #[test]
    fn more_than_was_expected_of_a_page_is_read_all_the_same() {
        // The first half is longer than the second, or has more values: the guess of where to cut goes wrong.
        let text =
            |i: usize| format!("{} {i}", "long".repeat(if i % 1_000 < 500 { 12 } else { 1 }));
        let texts: StringArray = (0..2_000).map(|i| Some(text(i))).collect();
        let some = (0..2_000).map(|i| (i % 1_000 < 500 || i % 50 == 0).then(|| text(i)));
        let numbers = Int64Array::from_iter((0..2_000).map(|i| (i % 1_000 < 500).then_some(i)));
        let columns: [ArrayRef; 3] =
            [Arc::new(texts), Arc::new(some.collect::<StringArray>()), Arc::new(numbers)];
        let mut in_part = 0;
        for column in columns {
            let batch = RecordBatch::try_from_iter([("v", column.clone())]).unwrap();
            let options = WriteOptions::new()
                .with_page_rows(1_000)
                .with_compression(Compression::Snappy)
                .with_column("v", |column| column.with_encoding(Encoding::Plain));
            let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            let file = Bytes::from(writer.into_inner().unwrap().1);
            let plan = Reader::new(file.clone()).unwrap().plan().unwrap();
            let meta = plan.footer().column_chunk(0, 0).unwrap().meta_data.unwrap();
            let start = meta.data_page_offset as usize;
            let bytes = file.slice(start..start + meta.total_compressed_size as usize);
            let leaf = &plan.leaves()[0];
            let context = plan.page_context(leaf, CompressionCodec::Snappy);
            let list = PageList::whole(bytes, start as u64, 2_000);
            let list = list.find_pages(2_000, &context).unwrap();
            for (first, expected) in [(0, 3), (0, 300), (400, 520), (700, 701), (990, 1_010)] {
                let pages = Pages::new(&list, context.clone(), plan.budget()).unwrap();
                let mut reader =
                    LeafReader::new(leaf, pages, Utf8::Strict, false, plan.budget()).unwrap();
                reader.expect(&std::iter::once(first..expected).collect(), u64::MAX);
                reader.seek(first).unwrap();
                let n = expected as usize - first as usize;
                let found = reader.read(n).unwrap().array;
                assert_eq!(*found, *column.slice(first as usize, n));
                in_part += usize::from(reader.page.as_ref().is_some_and(|p| p.in_part.is_some()));
                // More of the same page, and of the next.
                let found = reader.read(2_000 - expected as usize).unwrap().array;
                assert_eq!(*found, *column.slice(expected as usize, 2_000 - expected as usize));
            }
        }
        assert!(in_part > 0, "no page was opened in part");
    }

    /// A chunk of long strings, uncompressed: its pages, and what stands in front of them.
    fn chunk(name: &str, dictionary: bool) -> (Plan, Bytes, Vec<PlacedPage>) {
        let values = (0..2_000).map(|i| format!("a rather long string {name} {}", i % 9));
        let values = StringArray::from_iter_values(values);
        let batch = RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap();
        let options = WriteOptions::new()
            .with_page_rows(1_000)
            .with_compression(Compression::Uncompressed)
            .with_column("v", |column| match dictionary {
                true => column.with_dictionary(true),
                false => column.with_encoding(Encoding::Plain),
            });
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let (_, file) = writer.into_inner().unwrap();
        let file = Bytes::from(file);
        let plan = Reader::new(file.clone()).unwrap().plan().unwrap();
        let meta = plan.footer().column_chunk(0, 0).unwrap().meta_data.unwrap();
        let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as usize;
        let bytes = file.slice(start..start + meta.total_compressed_size as usize);
        let context = plan.page_context(&plan.leaves()[0], meta.codec);
        let list = PageList::whole(bytes.clone(), start as u64, 2_000);
        let list = list.find_pages(2_000, &context).unwrap();
        let pages = list.pages().unwrap().to_vec();
        (plan, bytes.slice(..pages[0].range.start as usize - start), pages)
    }

    #[test]
    fn pages_without_indices_may_stand_before_those_that_have_them() {
        let (coded, head, mut pages) = chunk("coded", true);
        let (_, none, plain) = chunk("plain", false);
        assert!(!head.is_empty() && none.is_empty());
        assert_eq!((pages.len(), plain.len()), (2, 2));
        pages[0].bytes = plain[0].bytes.clone();
        for (views, dictionaries) in [
            (false, Dictionaries::None),
            (true, Dictionaries::None),
            (false, Dictionaries::Strings),
        ] {
            let mut options = coded.options().clone();
            (options.arrow.views, options.arrow.dictionaries) = (views, dictionaries);
            let plan = coded.footer().plan(&options, coded.file_len(), None).unwrap();
            let leaf = &plan.leaves()[0];
            let context = plan.page_context(leaf, CompressionCodec::Uncompressed);
            let list = PageList::placed(head.clone(), 4, pages.clone(), &context).unwrap();
            let pages = Pages::new(&list, context, plan.budget()).unwrap();
            let mut reader =
                LeafReader::new(leaf, pages, Utf8::Strict, false, plan.budget()).unwrap();
            let array = reader.read(2_000).unwrap().array;
            array.to_data().validate_full().unwrap();
            let texts = spelled_out(array, &DataType::Utf8).unwrap();
            let expected = |i: usize| {
                let name = if i < 1_000 { "plain" } else { "coded" };
                format!("a rather long string {name} {}", i % 9)
            };
            for (i, text) in texts.as_string::<i32>().iter().enumerate() {
                assert_eq!(text, Some(expected(i).as_str()), "row {i}, views {views}");
            }
        }
    }
}
