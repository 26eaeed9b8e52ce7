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
mod runs;
mod words;

use arrow_array::ArrayRef;

use self::column::{Column, Count};
use super::options::Utf8;
use super::plan::LeafPlan;
use crate::error::{Error, Result, Spec};
use crate::levels::{LevelBuffer, LevelDecoder, Validity};
use crate::limits::{Budget, Reservation};
use crate::page::{DataPage, Page};
use crate::simd::{Isa, masks};

use super::Pages;
use super::chunk::Trust;

/// The decoded rows of a leaf.
#[derive(Debug)]
pub struct LeafBatch {
    /// One entry for each slot of the leaf: rows outside lists, elements of the innermost list inside them.
    pub array: ArrayRef,
    /// Definition levels, if they are kept.
    pub def: LevelBuffer,
    /// Repetition levels, if they are kept.
    pub rep: LevelBuffer,
}

/// Decodes the rows of one leaf in one row group.
pub struct LeafReader {
    max_def: u16,
    max_rep: u16,
    slot: u16,
    keep_levels: bool,
    pages: Pages,
    column: Box<dyn Column>,
    page: Option<OpenPage>,
    pending: Pending,
    /// Whether a page can be skipped unread: not where it lends its last value to the next.
    pages_stand_alone: bool,
    first_slot_seen: bool,
    /// The next row, counted from the first of the row group.
    next_row: u64,
    /// Rows decoded since the last batch.
    kept: Kept,
    budget: Budget,
    held: Reservation,
}

/// The levels of the current page that are not decoded yet.
struct OpenPage {
    slots_left: usize,
    /// Values that the levels may still ask for.
    values_left: usize,
    def: LevelDecoder,
    rep: LevelDecoder,
}

/// Levels decoded ahead to find where a row ends. They belong to the current page.
#[derive(Default)]
struct Pending {
    def: LevelBuffer,
    rep: LevelBuffer,
    /// Slots of them that are used up.
    used: usize,
}

/// Levels decoded at a time where rows repeat: the levels and what is made of them stay in the cache.
const LEVEL_BLOCK: usize = 8192;

/// What the slots of a stretch are: counted for the value decoder.
#[derive(Debug, Clone, Copy, Default)]
struct Decoded {
    /// Slots of the leaf, nulls included.
    slots: usize,
    /// Values that are stored.
    values: usize,
}

impl LeafReader {
    /// A reader of the leaf of `plan` in the chunk of `pages`.
    ///
    /// # Errors
    /// `Unsupported` if the leaf cannot be read as the plan says.
    pub fn new(
        plan: &LeafPlan,
        pages: Pages,
        utf8: Utf8,
        carries_prefix: bool,
        budget: &Budget,
    ) -> Result<Self> {
        Ok(Self {
            max_def: plan.leaf.max_def,
            max_rep: plan.leaf.max_rep,
            slot: plan.slot,
            keep_levels: plan.keep_levels,
            pages,
            column: column::column(plan, utf8, carries_prefix)?,
            page: None,
            pending: Pending::default(),
            pages_stand_alone: !carries_prefix,
            first_slot_seen: false,
            next_row: 0,
            kept: Kept::default(),
            budget: budget.clone(),
            held: budget.take(0)?,
        })
    }

    /// Decodes the next `rows` rows.
    ///
    /// # Errors
    /// `Malformed` if the chunk has fewer rows or a page breaks a rule, `Limit` if the arrays would grow beyond bounds.
    pub fn read(&mut self, rows: usize) -> Result<LeafBatch> {
        self.reserve(rows);
        self.append(rows)?;
        self.take()
    }

    /// Makes room for `rows` rows, before the first of a batch.
    pub fn reserve(&mut self, rows: usize) {
        if self.max_rep == 0 {
            self.column.reserve(rows);
        }
    }

    /// Decodes the next `rows` rows behind those that no batch was made of yet.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub fn append(&mut self, rows: usize) -> Result<()> {
        let mut sink = Sink::Keep(std::mem::take(&mut self.kept));
        self.go(rows, &mut sink)?;
        if let Sink::Keep(kept) = sink {
            self.kept = kept;
        }
        Ok(())
    }

    /// Makes a batch of the rows decoded since the last one.
    ///
    /// # Errors
    /// `Limit` if they do not fit an array.
    pub fn take(&mut self) -> Result<LeafBatch> {
        let kept = std::mem::take(&mut self.kept);
        let slots = kept.validity.len();
        let array = self.column.finish(kept.validity.into_nulls(), slots)?;
        self.held.resize(0)?;
        Ok(LeafBatch { array, def: kept.def, rep: kept.rep })
    }

    /// Decodes or skips rows.
    fn go(&mut self, rows: usize, sink: &mut Sink) -> Result<()> {
        if self.max_rep == 0 {
            self.flat(rows, sink)?;
        } else {
            self.nested(rows, sink)?;
        }
        self.next_row += rows as u64;
        // Of a page that ends with a row, nothing may be left when that row is read.
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
    pub fn seek(&mut self, row: u64) -> Result<()> {
        let rows = row.saturating_sub(self.next_row);
        if rows == 0 && self.page.is_some() {
            return Ok(());
        }
        if self.pages.rows().is_some_and(|(placed, _)| row >= placed.end) {
            self.next_row = self.pages.seek(row)?;
            (self.page, self.first_slot_seen) = (None, false);
            self.pending.clear();
        }
        self.skip(row.saturating_sub(self.next_row))
    }

    /// Skips the next `rows` rows.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub fn skip(&mut self, rows: u64) -> Result<()> {
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
    pub fn finish(&mut self) -> Result<()> {
        if self.pending.left() > 0 || self.open_page()?.is_some() {
            return Err(Error::malformed(
                Spec::Pages,
                "the column chunk has more rows than its row group",
            ));
        }
        Ok(())
    }

    /// Index of the page that is being read.
    pub fn page(&self) -> usize {
        self.pages.page()
    }

    /// The current page, or the next one if it is used up; `None` after the last.
    fn open_page(&mut self) -> Result<Option<&mut OpenPage>> {
        while self.page.as_ref().is_none_or(|page| page.slots_left == 0) {
            match self.pages.next_page()? {
                None => return Ok(None),
                Some(Page::Dictionary(page)) => self.column.set_dictionary(page)?,
                Some(Page::Data(page)) => {
                    let DataPage { slots, values, rep, def, encoding, bytes } = *page;
                    // An index is believed when the page says the same.
                    if let Some((placed, Trust::Index)) = self.pages.rows() {
                        let rows = if self.max_rep == 0 { slots } else { rep.count_zeros(slots)? };
                        if placed.end - placed.start != rows as u64 {
                            return Err(misplaced(&placed, format_args!("has {rows} rows")));
                        }
                    }
                    let count = values.map_or(Count::AtMost(slots), Count::Exactly);
                    // A page of nulls may hold anything, or nothing, where its values would be.
                    if count.most() > 0 {
                        self.column.set_page(encoding, bytes, count)?;
                    }
                    self.page =
                        Some(OpenPage { slots_left: slots, values_left: count.most(), def, rep });
                }
            }
        }
        Ok(self.page.as_mut())
    }

    /// Rows outside lists: one slot each.
    fn flat(&mut self, rows: usize, sink: &mut Sink) -> Result<()> {
        let (max_def, slot, keep_levels) = (self.max_def, self.slot, self.keep_levels);
        let mut block = std::mem::take(&mut self.pending.def);
        let mut left = rows;
        while left > 0 {
            let Some(page) = self.open_page()? else {
                return Err(fewer_rows(rows - left, rows));
            };
            let n = left.min(page.slots_left);
            page.slots_left -= n;
            let mut skipped = Kept::default();
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
                block.clear();
                page.def.read(n, &mut block)?;
                let decoded = leaf_validity(&block, 0, n, slot, max_def, &mut kept.validity);
                if keep_levels {
                    kept.def.push_range(&block, 0, n);
                    kept.rep.push_run(0, n);
                }
                decoded
            };
            self.values(decoded, first, sink)?;
            left -= n;
        }
        block.clear();
        self.pending.def = block;
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
                && (placed.start != row || self.pending.rep_at(0) != 0)
            {
                return Err(misplaced(&placed, format_args!("begins with row {row}")));
            }
            if !self.first_slot_seen {
                self.first_slot_seen = true;
                if self.pending.rep_at(0) != 0 {
                    return Err(Error::mismatch(
                        Spec::Levels,
                        "first repetition level of the column chunk",
                        0,
                        self.pending.rep_at(0),
                    ));
                }
            }
            let (start, end) = self.pending.rows(&mut begun, rows);
            if start == end {
                return Ok(());
            }
            let mut skipped = Kept::default();
            let kept = sink.kept().unwrap_or(&mut skipped);
            let first = kept.validity.len();
            let (slot, max_def) = (self.slot, self.max_def);
            let decoded =
                leaf_validity(&self.pending.def, start, end, slot, max_def, &mut kept.validity);
            if self.keep_levels {
                kept.def.push_range(&self.pending.def, start, end);
                kept.rep.push_range(&self.pending.rep, start, end);
            }
            self.values(decoded, first, sink)?;
        }
    }

    /// Decodes the next block of levels; false after the last page.
    fn decode_levels(&mut self) -> Result<bool> {
        let Pending { mut def, mut rep, .. } = std::mem::take(&mut self.pending);
        def.clear();
        rep.clear();
        let more = match self.open_page()? {
            None => false,
            Some(page) => {
                let n = page.slots_left.min(LEVEL_BLOCK);
                page.rep.read(n, &mut rep)?;
                page.def.read(n, &mut def)?;
                page.slots_left -= n;
                true
            }
        };
        self.pending = Pending { def, rep, used: 0 };
        Ok(more)
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
            return self.column.skip(values);
        };
        if values > 0 {
            let room = self.budget.cap().saturating_sub(self.budget.used());
            let room =
                usize::try_from(room.saturating_add(self.held.bytes())).unwrap_or(usize::MAX);
            self.column.read(values, room)?;
        }
        if values < slots
            && let Some(bitmap) = kept.validity.bitmap()
        {
            self.column.spread(bitmap, first, slots, values);
        }
        let levels = (kept.def.len() + kept.rep.len()) * size_of::<u16>();
        self.held.resize(self.column.bytes_held() + levels)
    }
}

/// Rows skipped at a time where levels must be walked.
const SKIP_BLOCK: usize = 64 << 10;

/// Where the decoded rows go.
enum Sink {
    Keep(Kept),
    Drop,
}

#[derive(Default)]
struct Kept {
    validity: Validity,
    def: LevelBuffer,
    rep: LevelBuffer,
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

    fn rep_at(&self, i: usize) -> u16 {
        match self.rep.mixed() {
            Some(levels) => levels.get(i).copied().unwrap_or_default(),
            None => self.rep.uniform().unwrap_or_default(),
        }
    }

    /// Uses up slots until row `rows` (counted by `begun`) would begin, or all; says which.
    fn rows(&mut self, begun: &mut usize, rows: usize) -> (usize, usize) {
        let start = self.used;
        let wanted = rows - *begun;
        let end = match self.rep.mixed() {
            None if self.rep.uniform() == Some(0) => {
                let n = self.left().min(wanted);
                *begun += n;
                start + n
            }
            // No row begins here: all of it belongs to the row that is open.
            None => self.rep.len(),
            Some(levels) => {
                let levels = levels.get(start..).unwrap_or_default();
                let zeros = levels.iter().filter(|&&level| level == 0).count();
                if zeros <= wanted {
                    *begun += zeros;
                    self.rep.len()
                } else {
                    *begun = rows;
                    let next = levels
                        .iter()
                        .enumerate()
                        .filter(|(_, level)| **level == 0)
                        .nth(wanted)
                        .map_or(levels.len(), |(i, _)| i);
                    start + next
                }
            }
        };
        self.used = end;
        (start, end)
    }
}

/// A page that does not hold the rows that it should.
#[cold]
fn misplaced(placed: &std::ops::Range<u64>, found: impl std::fmt::Display) -> Error {
    Error::malformed(
        Spec::PageIndex,
        format_args!(
            "the page at hand should hold the rows {placed:?} of its row group, and {found}"
        ),
    )
}

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
fn levels_of_bits(validity: &Validity, first: usize, n: usize, def: &mut LevelBuffer) {
    match validity.bitmap() {
        None => def.push_run(1, n),
        Some(bitmap) => {
            let levels: Vec<u16> = (first..first + n).map(|i| u16::from(bitmap.get(i))).collect();
            def.push_slice(&levels);
        }
    }
}

/// Appends the validity of the leaf for the level entries `[start, end)`; says how many slots and values there are.
fn leaf_validity(
    def: &LevelBuffer,
    start: usize,
    end: usize,
    slot: u16,
    max_def: u16,
    validity: &mut Validity,
) -> Decoded {
    let n = end - start;
    let Some(levels) = def.mixed() else {
        let level = def.uniform().unwrap_or_default();
        if level < slot {
            return Decoded::default();
        }
        let valid = level == max_def;
        validity.push_run(valid, n);
        return Decoded { slots: n, values: if valid { n } else { 0 } };
    };
    let isa = Isa::best();
    let mut decoded = Decoded::default();
    for block in levels[start..end].chunks(64) {
        let valid = masks::at_least(isa, block, max_def);
        let slots =
            if slot == 0 { masks::all(block.len()) } else { masks::at_least(isa, block, slot) };
        let n = slots.count_ones() as usize;
        validity.push_word(masks::select(isa, valid, slots), n);
        decoded.slots += n;
        decoded.values += valid.count_ones() as usize;
    }
    decoded
}
