//! Decodes selected rows: a block of rows is decoded, and the wanted ones are moved together while
//! the block is in the L1 cache. Long runs of wanted rows are decoded as if there were no
//! selection.
//!
//! Used where a filter or a selection leaves rows that lie so close that skipping between them
//! costs more than decoding them, and only outside lists, where a row is a slot. Longer gaps are
//! skipped, whole pages included.

use std::ops::Range;

use arrow_buffer::BooleanBuffer;

use super::reader::{LeafReader, too_few_rows};
use super::rows::{DecodedRows, RowOutput};
use crate::bytes::saturated;
use crate::error::{Error, Result};
use crate::levels::{LevelDecoder, Validity, leaf_validity};
use crate::read::supplied::Stop;
use crate::simd::bitmap::Bitmap;

/// Rows decoded at a time.
const BLOCK: usize = 2048;

/// Minimum consecutive unwanted rows that are skipped, because decoding fewer costs less.
const GAP: usize = 256;

/// Minimum consecutive wanted rows that are decoded as if there were no selection, because that is
/// faster than moving them. They count in words of 64.
const WHOLE: usize = 256;

/// Consecutive rows that are decoded in one way.
struct RowRun {
    rows: Range<usize>,
    /// Whether all of them are wanted.
    all_wanted: bool,
}

impl LeafReader {
    /// Decodes the rows whose bits are set. Bit `range.start` of `keep` is that of row `row`. The
    /// next row is then the one after the last that was decoded.
    ///
    /// # Errors
    /// As [`LeafReader::read`]; `Internal` for a leaf within lists.
    pub(crate) fn append_selected(
        &mut self,
        row: u64,
        keep: &BooleanBuffer,
        range: Range<usize>,
    ) -> Result<(), Stop> {
        if self.cursor.max_rep > 0 {
            return Err(Error::internal("rows of a list cannot be selected by their slots").into());
        }
        self.guarded(|reader| reader.append_runs(row, keep, range))
    }

    fn append_runs(
        &mut self,
        row: u64,
        keep: &BooleanBuffer,
        range: Range<usize>,
    ) -> Result<(), Stop> {
        let Range { start, end } = range;
        let mut wanted = Bitmap::default();
        wanted.append_bits(keep.values(), keep.offset() + start, end.saturating_sub(start));
        let mut output = RowOutput::Append(self.take_rows());
        let decoded = self.decode_runs(row, &wanted, &mut output);
        if let RowOutput::Append(kept) = output {
            self.rows = kept;
        }
        decoded?;
        Ok(self.ends_with_page()?)
    }

    /// Decodes the wanted rows from the next row on.
    fn decode_runs(
        &mut self,
        row: u64,
        wanted: &Bitmap,
        output: &mut RowOutput,
    ) -> Result<(), Stop> {
        let mut selection = Bitmap::default();
        for RowRun { rows, all_wanted } in row_runs(wanted) {
            // Some of the rows are decoded if it stopped in between.
            let mut at = rows.start.max(saturated(self.next_row.saturating_sub(row)));
            if at < rows.end {
                self.seek(row + at as u64)?;
            }
            while at < rows.end {
                let Some(page) = self.cursor.open()? else {
                    return Err(too_few_rows(at, rows.end).into());
                };
                let mut n = (rows.end - at).min(page.slots_left);
                match output.rows() {
                    Some(kept) if !all_wanted => {
                        n = n.min(BLOCK);
                        selection.clear();
                        selection.append_range(wanted, at..at + n);
                        self.select(n, &selection, kept)?;
                    }
                    _ => self.go(n, output)?,
                }
                at += n;
            }
        }
        Ok(())
    }

    /// Decodes those of the next `n` rows, which lie in one page, whose bits are set.
    fn select(&mut self, n: usize, selection: &Bitmap, kept: &mut DecodedRows) -> Result<()> {
        let (max_def, slot) = (self.cursor.max_def, self.slot);
        let Some(page) = &mut self.cursor.page else {
            return Err(too_few_rows(0, n));
        };
        page.slots_left -= n;
        let mut validity = Validity::default();
        let values = match max_def {
            0 => {
                validity.push_run(true, n);
                n
            }
            1 => page.def.read_validity(n, &mut validity)?,
            _ => {
                let mut def = LevelDecoder::planes(max_def);
                page.def.read(n, &mut def)?;
                if self.keep_levels {
                    selection.runs().for_each(|run| kept.def.push_range(&def, run));
                }
                leaf_validity(&def, 0..n, slot, max_def, &mut validity).values
            }
        };
        page.take_values(values)?;
        let first = kept.validity.len();
        let slots = selection.count_ones(0..n);
        kept.validity.push_selected(&validity, selection);
        if self.keep_levels {
            if max_def <= 1 {
                kept.append_levels_of_validity(first, slots);
            }
            kept.rep.push_run(0, slots);
        }
        self.cursor.ensure_decompressed(values)?;
        let max_bytes = self.cursor.memory.capacity();
        let selected = match validity.bitmap().filter(|_| values < n) {
            None => {
                self.cursor.values.read_selected(n, selection, max_bytes)?;
                slots
            }
            Some(valid) => {
                // Values are dense: turns the bits of wanted slots into the bits of wanted values.
                let mut of_values = Bitmap::default();
                of_values.append_kept(selection, 0, valid, 0, n);
                if values > 0 {
                    self.cursor.values.read_selected(values, &of_values, max_bytes)?;
                }
                of_values.count_ones(0..values)
            }
        };
        if selected < slots
            && let Some(bitmap) = kept.validity.bitmap()
        {
            self.cursor.values.room_for_nulls(slots - selected, max_bytes)?;
            self.cursor.values.spread(bitmap, first, slots, selected);
        }
        self.next_row += n as u64;
        let bytes = self.cursor.values.bytes_held() + kept.bytes_held();
        self.cursor.memory.set_array_bytes(bytes)
    }
}

/// Runs that hold all set bits: those of nothing else that are long, and mixed ones for the rest.
fn row_runs(wanted: &Bitmap) -> Vec<RowRun> {
    let mut out = Vec::new();
    let (mut at, mut before) = (0, 0);
    while at < wanted.len() {
        let start = at;
        while at + 64 <= wanted.len() && wanted.word_at(at) == u64::MAX {
            at += 64;
        }
        if at - start >= WHOLE {
            push_mixed(wanted, before..start, &mut out);
            out.push(RowRun { rows: start..at, all_wanted: true });
            before = at;
        }
        at += 64;
    }
    push_mixed(wanted, before..wanted.len(), &mut out);
    out
}

/// Appends runs that hold all set bits of `range`, with at least [`GAP`] unset bits between two of
/// them.
fn push_mixed(wanted: &Bitmap, range: Range<usize>, out: &mut Vec<RowRun>) {
    let first = out.len();
    for at in range.clone().step_by(64) {
        let word = wanted.word_at(at) & (u64::MAX >> (64 - (range.end - at).min(64)));
        if word == 0 {
            continue;
        }
        let start = at + word.trailing_zeros() as usize;
        let end = at + 64 - word.leading_zeros() as usize;
        match out[first..].last_mut() {
            Some(last) if start - last.rows.end < GAP => last.rows.end = end,
            _ => out.push(RowRun { rows: start..end, all_wanted: false }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_hold_every_set_bit_and_begin_and_end_with_one() {
        let seed = 2;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut seen = [0; 2];
        for _ in 0..300 {
            let mut bits = Bitmap::default();
            for _ in 0..rng.usize(0..12) {
                let max = [3, 70, 900][rng.usize(0..3)];
                bits.append_run(rng.bool(), rng.usize(1..max));
            }
            let found = row_runs(&bits);
            let inside = |i: &usize| found.iter().any(|one| one.rows.contains(i));
            assert!((0..bits.len()).filter(|i| bits.get(*i)).all(|i| inside(&i)), "seed {seed}");
            for RowRun { rows, all_wanted } in &found {
                seen[usize::from(*all_wanted)] += 1;
                assert!(bits.get(rows.start) && bits.get(rows.end - 1), "seed {seed}");
                let full = bits.count_ones(rows.clone()) == rows.len();
                assert!(!all_wanted || full && rows.len() >= WHOLE, "seed {seed}");
            }
            for two in found.windows(2) {
                let gap = two[1].rows.start.checked_sub(two[0].rows.end).expect("ascending");
                assert!(gap >= GAP || two[0].all_wanted || two[1].all_wanted, "seed {seed}");
            }
        }
        assert!(seen.iter().all(|n| *n > 100), "{seen:?} of {seed}");
    }
}
