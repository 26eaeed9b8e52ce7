//! Decodes rows inside lists: levels are decoded ahead until the row after the last one begins.

use super::cursor::misplaced;
use super::reader::{LeafReader, too_few_rows};
use super::rows::{DecodedRows, LevelsAhead, RowOutput};
use crate::bytes::saturated;
use crate::error::{Error, Spec};
use crate::free_lists::round_to_size_class;
use crate::levels::leaf_validity;
use crate::read::supplied::Stop;

/// Number of levels that are decoded at a time, so that they and their results stay in the L1
/// cache.
const LEVEL_BLOCK: usize = 8192;

impl LeafReader {
    /// Decodes or skips rows.
    pub(super) fn decode_nested(
        &mut self,
        rows: usize,
        output: &mut RowOutput,
    ) -> Result<(), Stop> {
        loop {
            let begun = self.rows_begun;
            if begun == rows && self.slots_left() == 0 && self.cursor.pages.are_located() {
                // The next page begins with a row, and may not have been fetched.
                return Ok(());
            }
            let begins_page = self.slots_left() == 0;
            if self.ahead.left() == 0 && !self.decode_levels()? {
                if begun < rows {
                    return Err(too_few_rows(begun, rows).into());
                }
                return Ok(());
            }
            let row = self.next_row + begun as u64;
            if let Some((located, _)) = self.cursor.pages.rows().filter(|_| begins_page)
                && (located.start != row || self.ahead.rep.get(0) != 0)
            {
                return Err(misplaced(&located, format_args!("begins with row {row}")).into());
            }
            if !self.first_slot_seen {
                self.first_slot_seen = true;
                let level = self.ahead.rep.get(0);
                if level != 0 {
                    return Err(Error::mismatch(
                        Spec::Levels,
                        "first repetition level of the column chunk",
                        0,
                        level,
                    )
                    .into());
                }
            }
            let (start, end) = self.ahead.take_rows(&mut self.rows_begun, rows);
            if start == end {
                return Ok(());
            }
            let mut skipped = DecodedRows::new(self.cursor.max_def, self.cursor.max_rep);
            let kept = output.rows().unwrap_or(&mut skipped);
            let first = kept.validity.len();
            let (slot, max_def) = (self.slot, self.cursor.max_def);
            let def = &self.ahead.def;
            let decoded = leaf_validity(def, start..end, slot, max_def, &mut kept.validity);
            if self.keep_levels {
                kept.def.push_range(def, start..end);
                kept.rep.push_range(&self.ahead.rep, start..end);
            }
            self.slots_seen += decoded.slots as u64;
            if first == 0 && matches!(output, RowOutput::Append(_)) {
                // The last row may go on in the next block.
                let seen = (self.next_row + self.rows_begun as u64).saturating_sub(1);
                let expected = slots_expected(self.slots_seen, seen, rows);
                let max = self.max_expected();
                self.cursor.values.reserve(expected.min(max).max(decoded.slots))?;
            }
            self.decode_values(decoded, first, output)?;
        }
    }

    /// Maximum slots that are preallocated.
    fn max_expected(&self) -> usize {
        let of_chunk = self.cursor.pages.bytes() / MIN_ENCODED_BYTES_PER_SLOT;
        let max = saturated(of_chunk).max(MAX_EXPECTED);
        max.min(self.cursor.memory.capacity() / MEMORY_PER_SLOT)
    }

    /// Decodes the next block of levels; false after the last page.
    fn decode_levels(&mut self) -> Result<bool, Stop> {
        self.ahead.clear();
        // A block may be padding alone.
        while self.ahead.left() == 0 {
            if self.cursor.open()?.is_none() {
                return Ok(false);
            }
            let Some(page) = &mut self.cursor.page else {
                return Ok(false);
            };
            let n = page.slots_left.min(LEVEL_BLOCK);
            let LevelsAhead { def, rep, .. } = &mut self.ahead;
            let read = page.rep.read(n, rep).and_then(|()| page.def.read(n, def));
            let read = read.and_then(|()| match self.drops_padding {
                true => self.order.check_without_padding(def, rep),
                false => self.order.check(def, rep),
            });
            if read.is_err() {
                self.ahead.clear();
            }
            page.slots_left -= n;
            read?;
        }
        Ok(true)
    }
}

/// The slots that `wanted` rows are likely to have, where `rows` rows have `slots`: a little more.
fn slots_expected(slots: u64, rows: u64, wanted: usize) -> usize {
    let expected = u128::from(slots) * wanted as u128 / u128::from(rows.max(1));
    // No more than all memory.
    round_to_size_class(usize::try_from(expected + expected / 32).unwrap_or(usize::MAX))
}

/// Slots that may be preallocated however small the chunk is.
const MAX_EXPECTED: usize = 1 << 20;

/// Assumed encoded bytes per slot, because preallocated memory should be at most a few times the
/// bytes of the file.
const MIN_ENCODED_BYTES_PER_SLOT: u64 = 4;

/// Free bytes of memory per preallocated slot, because values may be large.
const MEMORY_PER_SLOT: usize = 256;
