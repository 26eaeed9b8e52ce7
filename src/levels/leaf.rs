//! [`LeafLevels`]: the levels of a leaf that is to be written.

use std::ops::Range;

use super::buffer::{LevelBuffer, LevelView, Period};
use crate::encoding::rle::{self, BitWidth};
use crate::error::Result;
use crate::memory;
use crate::simd::bitmap::Bitmap;

/// The levels of a leaf in one row group.
///
/// # Errors
/// `Limit(Memory)` of all that appends or encodes levels, if the system has no memory.
#[derive(Debug)]
pub(crate) struct LeafLevels {
    max_def: u16,
    max_rep: u16,
    len: usize,
    pub(super) def: Def,
    pub(super) rep: LevelBuffer,
}

/// Definition levels.
#[derive(Debug)]
pub(super) enum Def {
    /// Levels of any leaf.
    Levels(LevelBuffer),
    /// Levels of a leaf whose maximum is 1, once there is a null: a validity bitmap suffices.
    Bits(Bitmap),
}

impl LeafLevels {
    /// No levels yet, of a leaf with these highest ones.
    pub(crate) fn new(max_def: u16, max_rep: u16) -> Self {
        let (def, rep) = (Def::Levels(LevelBuffer::default()), LevelBuffer::default());
        Self { max_def, max_rep, len: 0, def, rep }
    }

    /// Entries so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The highest definition level.
    pub(crate) fn max_def(&self) -> u16 {
        self.max_def
    }

    /// The highest repetition level.
    pub(crate) fn max_rep(&self) -> u16 {
        self.max_rep
    }

    /// Bytes of memory held.
    pub(crate) fn bytes_held(&self) -> usize {
        let def = match &self.def {
            Def::Levels(levels) => levels.bytes_held(),
            Def::Bits(bits) => bits.len() / 8,
        };
        def + self.rep.bytes_held()
    }

    /// Appends `n` rows whose entries all have one definition level, and begin a row each.
    pub(crate) fn push_run(&mut self, def: u16, n: usize) -> Result<()> {
        match &mut self.def {
            Def::Levels(levels) => levels.push_run(def, n)?,
            Def::Bits(bits) => {
                bits.try_reserve(n)?;
                bits.append_run(def == 1, n);
            }
        }
        self.rep.push_run(0, n)?;
        self.len += n;
        Ok(())
    }

    /// Appends rows of a leaf outside lists, one bit each: the highest definition level where it is
    /// set, one less where it is not.
    pub(crate) fn push_validity(&mut self, bytes: &[u8], offset: usize, n: usize) -> Result<()> {
        if self.max_def == 1 {
            if let Def::Levels(levels) = &self.def {
                let mut bits = Bitmap::default();
                append_bits(levels, &mut bits)?;
                self.def = Def::Bits(bits);
            }
            if let Def::Bits(bits) = &mut self.def {
                bits.try_reserve(n)?;
                bits.append_bits(bytes, offset, n);
            }
            self.rep.push_run(0, n)?;
            self.len += n;
            return Ok(());
        }
        let null = self.max_def.saturating_sub(1);
        let levels = memory::collected((offset..offset + n).map(|i| {
            null + u16::from(bytes.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 != 0))
        }))?;
        let mut def = LevelBuffer::default();
        def.push_vec(levels)?;
        let mut rep = LevelBuffer::default();
        rep.push_run(0, n)?;
        self.push(&def, &rep)
    }

    /// Like [`LeafLevels::push`]; the memory is taken over if there are no levels yet.
    pub(crate) fn append(&mut self, def: LevelBuffer, rep: LevelBuffer) -> Result<()> {
        match &mut self.def {
            Def::Levels(levels) if self.len == 0 => {
                self.len = def.len();
                *levels = def;
                self.rep = rep;
            }
            _ => self.push(&def, &rep)?,
        }
        Ok(())
    }

    /// Appends entries.
    pub(crate) fn push(&mut self, def: &LevelBuffer, rep: &LevelBuffer) -> Result<()> {
        let n = def.len();
        match &mut self.def {
            Def::Levels(levels) => levels.push_range(def, 0, n)?,
            Def::Bits(bits) => append_bits(def, bits)?,
        }
        self.rep.push_range(rep, 0, n)?;
        self.len += n;
        Ok(())
    }

    /// The definition and repetition level of every entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        (0..self.len).map(move |i| {
            let def = match &self.def {
                Def::Levels(levels) => levels.level(i),
                Def::Bits(bits) => u16::from(bits.get(i)),
            };
            (def, self.rep.level(i))
        })
    }

    /// Entries of `range` that hold a value.
    pub(crate) fn values(&self, range: Range<usize>) -> usize {
        match &self.def {
            Def::Bits(bits) => bits.count_ones(range),
            Def::Levels(levels) => match levels.view() {
                LevelView::Uniform(level) if level == self.max_def => range.len(),
                LevelView::Uniform(_) => 0,
                LevelView::Mixed(levels) => occurrences(&levels[range], self.max_def),
                LevelView::Regular(period) => occurrences_in(period, range, self.max_def),
            },
        }
    }

    /// Where the rows begin that `rows` names, in ascending order; the number of rows is the end.
    pub(crate) fn entries_of_rows(&self, rows: &[usize]) -> Result<Vec<usize>> {
        let levels = match self.rep.view() {
            LevelView::Mixed(levels) => levels,
            LevelView::Regular(period) if period.first == 0 && period.rest > 0 => {
                return memory::collected(rows.iter().map(|row| row * period.slots));
            }
            LevelView::Regular(period) => &period.levels(0..self.len)?,
            LevelView::Uniform(_) => return memory::copied(rows),
        };
        let mut entries = memory::vec_for(rows.len())?;
        let (mut row, mut at) = (0, 0);
        for &wanted in rows {
            // Block by block to the one in which the row begins.
            while let Some(block) = levels.get(at..(at + SEEK).min(levels.len())) {
                let begun = occurrences(block, 0);
                if block.is_empty() || row + begun > wanted {
                    break;
                }
                row += begun;
                at += block.len();
            }
            let rest = &levels[at..];
            let begins = rest.iter().enumerate().filter(|(_, level)| **level == 0);
            let entry = begins.map(|(i, _)| i).nth(wanted - row);
            entries.push(entry.map_or(levels.len(), |i| at + i));
        }
        Ok(entries)
    }

    /// Appends the definition levels of `range`, without a length; returns whether there are any.
    pub(crate) fn encode_def(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<bool> {
        if self.max_def == 0 {
            return Ok(false);
        }
        let width = BitWidth::for_max(u32::from(self.max_def));
        match &self.def {
            Def::Bits(bits) => {
                let n = range.len();
                rle::encode_bits_into(&bits.to_bytes(range)?, 0, n, out);
            }
            Def::Levels(levels) => encode(levels, range, width, out)?,
        }
        Ok(true)
    }

    /// Appends the repetition levels of `range`, without a length; returns whether there are any.
    pub(crate) fn encode_rep(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<bool> {
        if self.max_rep == 0 {
            return Ok(false);
        }
        encode(&self.rep, range, BitWidth::for_max(u32::from(self.max_rep)), out)?;
        Ok(true)
    }

    /// How often each definition level occurs in `range`.
    pub(crate) fn def_histogram(&self, range: Range<usize>) -> Vec<i64> {
        match &self.def {
            Def::Levels(levels) => histogram(levels, range, self.max_def),
            Def::Bits(bits) => {
                let (n, ones) = (range.len(), bits.count_ones(range));
                vec![count(n - ones), count(ones)]
            }
        }
    }

    /// How often each repetition level occurs in `range`.
    pub(crate) fn rep_histogram(&self, range: Range<usize>) -> Vec<i64> {
        histogram(&self.rep, range, self.max_rep)
    }
}

fn encode(
    levels: &LevelBuffer,
    range: Range<usize>,
    width: BitWidth,
    out: &mut Vec<u8>,
) -> Result<()> {
    match levels.view() {
        LevelView::Uniform(level) => {
            rle::encode_run_into(u32::from(level), range.len(), width, out);
        }
        LevelView::Mixed(levels) => rle::encode_levels_into(&levels[range], width, out),
        LevelView::Regular(period) if period.is_whole(&range) && is_repeated(&period) => {
            let start = out.len();
            rle::encode_levels_into(&period.levels(0..period.slots)?, width, out);
            let (first, lists) = (start..out.len(), range.len() / period.slots);
            memory::room(out, first.len() * lists.saturating_sub(1))?;
            for _ in 1..lists {
                out.extend_from_within(first.clone());
            }
            if range.is_empty() {
                out.truncate(start);
            }
        }
        LevelView::Regular(period) => {
            rle::encode_levels_into(&period.levels(range)?, width, out);
        }
    }
    Ok(())
}

/// Whether the encoded levels of a list may stand one after the other: they end with whole groups,
/// and are so long that they would have runs of their own.
fn is_repeated(period: &Period) -> bool {
    period.slots.is_multiple_of(8) && period.slots >= MIN_REPEATED
}

/// Minimum slots of a list whose encoded levels are repeated: about 1 byte for each 100 slots.
const MIN_REPEATED: usize = 256;

fn histogram(levels: &LevelBuffer, range: Range<usize>, max: u16) -> Vec<i64> {
    match levels.view() {
        LevelView::Uniform(of) => {
            (0..=max).map(|level| if level == of { count(range.len()) } else { 0 }).collect()
        }
        LevelView::Mixed(levels) => {
            // There are few levels: a vectorised pass for each is faster than one that counts in
            // memory.
            let levels = &levels[range];
            (0..=max).map(|level| count(occurrences(levels, level))).collect()
        }
        LevelView::Regular(period) => {
            let of = |level| count(occurrences_in(period, range.clone(), level));
            (0..=max).map(of).collect()
        }
    }
}

/// How often a level occurs in a range of a period.
fn occurrences_in(period: Period, range: Range<usize>, level: u16) -> usize {
    let firsts = range.end.div_ceil(period.slots) - range.start.div_ceil(period.slots);
    let of = |of: u16, n: usize| if of == level { n } else { 0 };
    of(period.first, firsts) + of(period.rest, range.len() - firsts)
}

/// Appends a bit for each level: whether it is 1.
fn append_bits(levels: &LevelBuffer, bits: &mut Bitmap) -> Result<()> {
    bits.try_reserve(levels.len())?;
    match levels.view() {
        LevelView::Uniform(level) => bits.append_run(level == 1, levels.len()),
        LevelView::Mixed(levels) => levels.iter().for_each(|level| bits.append_run(*level == 1, 1)),
        LevelView::Regular(period) => {
            (0..levels.len()).for_each(|slot| bits.append_run(period.level(slot) == 1, 1));
        }
    }
    Ok(())
}

/// Entries skipped at a time on the way to a row.
const SEEK: usize = 1024;

/// How often a level occurs.
fn occurrences(levels: &[u16], level: u16) -> usize {
    // Blocks that 16 bits can count: as many lanes as levels.
    let of_block = |block: &[u16]| block.iter().map(|l| u16::from(*l == level)).sum::<u16>();
    levels.chunks(SEEK).map(|block| usize::from(of_block(block))).sum()
}

/// A count as the format has it.
fn count(n: usize) -> i64 {
    i64::try_from(n).expect("no vector has more items")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_levels_say_the_same() {
        let seed = 4;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bits = LeafLevels::new(1, 0);
        let mut plain = LevelBuffer::default();
        for _ in 0..50 {
            let n = rng.usize(0..200);
            if rng.bool() {
                let level = rng.u16(0..2);
                bits.push_run(level, n).unwrap();
                plain.push_run(level, n).unwrap();
            } else {
                let bytes: Vec<u8> = (0..n.div_ceil(8) + 1).map(|_| rng.u8(..)).collect();
                bits.push_validity(&bytes, 3, n).unwrap();
                for i in 3..3 + n {
                    plain.push_slice(&[u16::from(bytes[i / 8] >> (i % 8) & 1)]).unwrap();
                }
            }
        }
        assert_eq!(bits.len(), plain.len());
        let len = plain.len();
        for range in [0..len, 3..len / 2, len / 2..len, 5..5] {
            let expected = histogram(&plain, range.clone(), 1);
            assert_eq!(bits.def_histogram(range.clone()), expected, "seed {seed}");
            assert_eq!(bits.values(range.clone()) as i64, expected[1]);
            assert_eq!(bits.rep_histogram(range.clone()), [range.len() as i64]);
        }
    }

    #[test]
    fn levels_of_one_bit_are_held_as_bits() {
        let mut levels = LeafLevels::new(1, 0);
        levels.push_validity(&[0x55; 100], 0, 800).unwrap();
        assert_eq!(levels.bytes_held() - levels.rep.bytes_held(), 100);
    }

    #[test]
    fn validity_below_groups_gives_the_two_highest_levels() {
        let mut levels = LeafLevels::new(3, 0);
        levels.push_validity(&[0b0010_0000, 0b0000_0101], 5, 7).unwrap();
        let def: Vec<_> = levels.entries().map(|(def, _)| def).collect();
        assert_eq!(def, [3, 2, 2, 3, 2, 3, 2]);
    }

    #[test]
    fn a_period_says_the_same_as_its_levels() {
        for slots in [1, 2, 7, 8, 255, 256, 768, 1_000] {
            let period = Period { first: 0, rest: 1, slots };
            let mut levels = (LevelBuffer::default(), LevelBuffer::default());
            levels.0.push_regular(period, 5).unwrap();
            levels.1.push_vec(period.levels(0..5 * slots).unwrap()).unwrap();
            let of = |rep| {
                let mut leaf = LeafLevels::new(1, 1);
                let mut def = LevelBuffer::default();
                def.push_run(1, 5 * slots).unwrap();
                leaf.append(def, rep).unwrap();
                leaf
            };
            let (period, mixed) = (of(levels.0), of(levels.1));
            assert!(period.entries().eq(mixed.entries()), "{slots}");
            let rows = [0, 1, 3, 5];
            assert_eq!(
                period.entries_of_rows(&rows).unwrap(),
                mixed.entries_of_rows(&rows).unwrap(),
                "{slots}"
            );
            for range in [0..0, 0..slots, slots..4 * slots, 0..5 * slots] {
                assert_eq!(period.rep_histogram(range.clone()), mixed.rep_histogram(range.clone()));
                let mut bytes = Vec::new();
                period.encode_rep(range.clone(), &mut bytes).unwrap();
                let decoded = crate::levels::LevelDecoder::hybrid(bytes.into(), 1, range.len());
                let mut planes = crate::levels::LevelDecoder::planes(1);
                decoded.unwrap().read(range.len(), &mut planes).unwrap();
                assert!(range.enumerate().all(|(i, slot)| planes.get(i) == period.rep.level(slot)));
            }
        }
    }

    #[test]
    fn rows_begin_at_repetition_level_0() {
        let mut levels = LeafLevels::new(2, 1);
        let (mut def, mut rep) = (LevelBuffer::default(), LevelBuffer::default());
        def.push_slice(&[2, 2, 0, 2, 2, 2]).unwrap();
        rep.push_slice(&[0, 1, 0, 0, 1, 1]).unwrap();
        levels.push(&def, &rep).unwrap();
        assert_eq!(levels.entries_of_rows(&[0, 1, 2, 3]).unwrap(), [0, 2, 3, 6]);
        assert_eq!(levels.entries_of_rows(&[2, 3]).unwrap(), [3, 6]);
        assert_eq!(levels.values(0..3), 2);
        let seed = 5;
        let mut rng = fastrand::Rng::with_seed(seed);
        let reps: Vec<u16> = (0..10_000).map(|i| if i == 0 { 0 } else { rng.u16(0..3) }).collect();
        let begins: Vec<usize> = (0..reps.len()).filter(|i| reps[*i] == 0).collect();
        let mut levels = LeafLevels::new(1, 2);
        let mut rep = LevelBuffer::default();
        rep.push_slice(&reps).unwrap();
        let mut def = LevelBuffer::default();
        def.push_run(1, reps.len()).unwrap();
        levels.push(&def, &rep).unwrap();
        let rows: Vec<usize> = (0..begins.len()).step_by(97).chain([begins.len()]).collect();
        let expected: Vec<usize> =
            rows.iter().map(|row| begins.get(*row).copied().unwrap_or(reps.len())).collect();
        assert_eq!(levels.entries_of_rows(&rows).unwrap(), expected, "seed {seed}");
    }
}
