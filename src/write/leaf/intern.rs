//! Interning: finds the distinct values of a leaf, and which of them each value is.
//!
//! Integers in a narrow range go through a table, everything else through a hash table. Trap: data without repetition must be found out early, as
//! this is the dearest part of writing.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::values::Values;
use crate::simd::prefetch;

/// Entries, in the order of their first occurrence, and the index of every value among them.
pub(super) struct Interned<'a> {
    pub(super) entries: Values<'a>,
    pub(super) codes: Vec<u32>,
    /// Whether the entries are all different.
    pub(super) distinct: bool,
}

/// How large a dictionary may grow.
#[derive(Debug, Clone, Copy)]
pub(super) struct DictionaryLimits {
    /// Bytes of its entries, as PLAIN.
    pub(super) bytes: usize,
}

/// Values up to the first look at how the dictionary grows; the next ones are at twice as many each.
const FIRST_LOOK: usize = 1 << 12;

/// The share of values that may be distinct, or a dictionary is not worth its hashing.
const HOPELESS: f64 = 0.5;

/// Watches a dictionary grow.
struct Watch {
    /// Entries that are too many.
    most: usize,
    /// Values in all.
    n: usize,
    next_look: usize,
    entries_then: usize,
}

impl Watch {
    fn new(n: usize, most: usize) -> Self {
        Self { most, n, next_look: FIRST_LOOK, entries_then: 0 }
    }

    /// Whether to go on, `seen` values into it.
    fn goes_on(&mut self, seen: usize, entries: usize) -> bool {
        if entries > self.most {
            return false;
        }
        if seen < self.next_look {
            return true;
        }
        let half = seen / 2;
        let is_first = self.entries_then == 0;
        let fresh = (entries - self.entries_then) as f64 / half as f64;
        self.entries_then = entries;
        self.next_look = seen * 2;
        if is_first || fresh >= 1.0 {
            // All values since half the way here were new: 16,384 of them tell enough.
            return is_first || seen < FIRST_LOOK * 4;
        }
        // If all values are equally likely, of `k` so many are new after `x` others: e^(-x/k).
        let distinct = seen as f64 * 0.75 / -fresh.ln();
        distinct < self.n as f64 * HOPELESS || (entries as f64) < half as f64 * HOPELESS
    }
}

/// Values looked at between two checks.
const BLOCK: usize = 4096;

/// Finds the distinct values; `None` if they grow beyond the limits, or so fast that they are likely to.
pub(super) fn intern<'a>(values: &Values<'a>, limits: DictionaryLimits) -> Option<Interned<'a>> {
    match values {
        Values::Bits(_) => None,
        Values::Words32(values) => {
            let (entries, codes) = words(values, limits.bytes / 4)?;
            Some(Interned { entries: Values::Words32(entries), codes, distinct: true })
        }
        Values::Words64(values) => {
            let (entries, codes) = words(values, limits.bytes / 8)?;
            Some(Interned { entries: Values::Words64(entries), codes, distinct: true })
        }
        Values::Bytes(values) => {
            let (entries, codes) = slices(values.iter().copied(), values.len(), limits)?;
            Some(Interned { entries: Values::Bytes(entries), codes, distinct: true })
        }
        Values::Fixed { width: 0, .. } => None,
        Values::Fixed { width, bytes } => {
            let values = bytes.chunks_exact(*width);
            let n = values.len();
            let (entries, codes) = slices(values, n, limits)?;
            Some(Interned {
                entries: Values::Fixed { width: *width, bytes: entries.concat() },
                codes,
                distinct: true,
            })
        }
    }
}

/// Words that are interned.
trait Word: Copy + Eq + Ord {
    fn wide(self) -> i64;
}

impl Word for i32 {
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Word for i64 {
    fn wide(self) -> i64 {
        self
    }
}

/// The widest range that a table is made for.
const TABLE: u64 = 1 << 16;

fn words<T: Word + Default>(values: &[T], most: usize) -> Option<(Vec<T>, Vec<u32>)> {
    let least = values.iter().min()?.wide();
    let greatest = values.iter().max()?.wide();
    let range = greatest.wrapping_sub(least).cast_unsigned();
    if range < TABLE.min(values.len() as u64 * 4) {
        return Some(by_table(values, least, range));
    }
    by_hash(values, most)
}

fn by_table<T: Word>(values: &[T], least: i64, range: u64) -> (Vec<T>, Vec<u32>) {
    let mut table = vec![NONE; usize::try_from(range).unwrap_or(0) + 1];
    let mut entries = Vec::new();
    let codes = values.iter().map(|value| {
        let at = value.wide().wrapping_sub(least).cast_unsigned();
        let Some(slot) = usize::try_from(at).ok().and_then(|at| table.get_mut(at)) else {
            return 0;
        };
        if *slot == NONE {
            #[expect(clippy::cast_possible_truncation, reason = "at most as many as the table has")]
            {
                *slot = entries.len() as u32;
            }
            entries.push(*value);
        }
        *slot
    });
    let codes = codes.collect();
    (entries, codes)
}

/// No entry.
const NONE: u32 = u32::MAX;

/// Bits of the first table: 4,096 slots.
const FIRST_BITS: u32 = 12;

/// Values looked up at a time: their slots are asked for before the first of them is looked at, so that the cache misses overlap.
const AHEAD: usize = 32;

/// An open-addressed table of values and their codes; doubled when half full.
struct WordTable<T> {
    slots: Vec<(T, u32)>,
    bits: u32,
}

impl<T: Word + Default> WordTable<T> {
    fn new(bits: u32) -> Self {
        Self { slots: vec![(T::default(), NONE); 1 << bits], bits }
    }

    /// The slot where a value is looked for first.
    #[inline]
    fn home(&self, value: T) -> usize {
        // Fibonacci hashing, twice: the high bits of the product are well mixed.
        let product = value.wide().cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (product ^ product >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        usize::try_from(mixed >> (64 - self.bits)).unwrap_or(0)
    }

    /// The code of a value; `fresh` becomes it if there is none yet.
    #[inline]
    fn code(&mut self, value: T, home: usize, fresh: u32) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = home;
        loop {
            let slot = self.slots.get_mut(at & mask)?;
            if slot.1 == NONE {
                *slot = (value, fresh);
                return Some(fresh);
            }
            if slot.0 == value {
                return Some(slot.1);
            }
            at += 1;
        }
    }

    fn grow(&mut self, entries: &[T]) -> Option<()> {
        *self = Self::new(self.bits + 1);
        for (code, &value) in (0u32..).zip(entries) {
            self.code(value, self.home(value), code)?;
        }
        Some(())
    }
}

fn by_hash<T: Word + Default>(values: &[T], most: usize) -> Option<(Vec<T>, Vec<u32>)> {
    let mut table = WordTable::new(FIRST_BITS);
    let mut entries: Vec<T> = Vec::new();
    let mut codes = Vec::with_capacity(values.len());
    let mut watch = Watch::new(values.len(), most.min(u32::MAX as usize / 2));
    for block in values.chunks(BLOCK) {
        for some in block.chunks(AHEAD) {
            if (entries.len() + AHEAD) * 2 > table.slots.len() {
                table.grow(&entries)?;
            }
            let mut homes = [0; AHEAD];
            for (home, &value) in homes.iter_mut().zip(some) {
                *home = table.home(value);
                prefetch(&table.slots, *home);
            }
            for (&value, home) in some.iter().zip(homes) {
                #[expect(clippy::cast_possible_truncation, reason = "the watch stops before")]
                let fresh = entries.len() as u32;
                let code = table.code(value, home, fresh)?;
                if code == fresh {
                    entries.push(value);
                }
                codes.push(code);
            }
        }
        if !watch.goes_on(codes.len(), entries.len()) {
            return None;
        }
    }
    Some((entries, codes))
}

/// An open-addressed table of byte strings: a part of the hash, and the code.
struct SliceTable {
    slots: Vec<(u32, u32)>,
    bits: u32,
}

impl SliceTable {
    fn new(bits: u32) -> Self {
        Self { slots: vec![(0, NONE); 1 << bits], bits }
    }

    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> (64 - self.bits)).unwrap_or(0)
    }

    /// The part of a hash that tells values apart without looking at them.
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    fn tag(hash: u64) -> u32 {
        hash as u32
    }

    fn code(&mut self, value: &[u8], hash: u64, entries: &[&[u8]]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots.get_mut(at & mask)?;
            if slot.1 == NONE {
                let fresh = u32::try_from(entries.len()).ok()?;
                *slot = (Self::tag(hash), fresh);
                return Some(fresh);
            }
            if slot.0 == Self::tag(hash) && entries.get(slot.1 as usize) == Some(&value) {
                return Some(slot.1);
            }
            at += 1;
        }
    }

    fn grow(&mut self, hashes: &[u64]) -> Option<()> {
        *self = Self::new(self.bits + 1);
        let mask = self.slots.len() - 1;
        for (code, &hash) in (0u32..).zip(hashes) {
            let mut at = self.home(hash);
            while self.slots.get(at & mask)?.1 != NONE {
                at += 1;
            }
            *self.slots.get_mut(at & mask)? = (Self::tag(hash), code);
        }
        Some(())
    }
}

fn slices<'v>(
    values: impl Iterator<Item = &'v [u8]>,
    n: usize,
    limits: DictionaryLimits,
) -> Option<(Vec<&'v [u8]>, Vec<u32>)> {
    let state = FixedState::default();
    let mut table = SliceTable::new(FIRST_BITS);
    let mut entries: Vec<&[u8]> = Vec::new();
    let mut hashes: Vec<u64> = Vec::new();
    let mut codes = Vec::with_capacity(n);
    let mut bytes = 0usize;
    let mut watch = Watch::new(n, u32::MAX as usize / 2);
    let mut values = values.peekable();
    let mut some: Vec<(&[u8], u64)> = Vec::with_capacity(AHEAD);
    let mut next_check = BLOCK;
    while values.peek().is_some() {
        if (entries.len() + AHEAD) * 2 > table.slots.len() {
            table.grow(&hashes)?;
        }
        some.clear();
        some.extend(values.by_ref().take(AHEAD).map(|value| (value, state.hash_one(value))));
        for (_, hash) in &some {
            prefetch(&table.slots, table.home(*hash));
        }
        for (_, hash) in &some {
            if let Some((tag, code)) = table.slots.get(table.home(*hash))
                && *tag == SliceTable::tag(*hash)
                && let Some(entry) = entries.get(*code as usize)
            {
                prefetch(entry, 0);
                prefetch(entry, entry.len().saturating_sub(1));
            }
        }
        for &(value, hash) in &some {
            let code = table.code(value, hash, &entries)?;
            if code as usize == entries.len() {
                entries.push(value);
                hashes.push(hash);
                bytes += value.len() + size_of::<u32>();
            }
            codes.push(code);
        }
        if codes.len() >= next_check {
            next_check = codes.len() + BLOCK;
            if bytes > limits.bytes || !watch.goes_on(codes.len(), entries.len()) {
                return None;
            }
        }
    }
    (bytes <= limits.bytes).then_some((entries, codes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: DictionaryLimits = DictionaryLimits { bytes: usize::MAX };

    #[test]
    fn codes_lead_back_to_the_values() {
        let seed = 21;
        let mut rng = fastrand::Rng::with_seed(seed);
        for range in [1i64, 10, 70_000, i64::MAX] {
            let values: Vec<i64> = (0..20_000)
                .map(|_| rng.i64(0..range.min(9_000)) * (range / 9_000).max(1))
                .collect();
            let (entries, codes) = words(&values, usize::MAX).unwrap();
            let back: Vec<i64> = codes.iter().map(|&code| entries[code as usize]).collect();
            assert_eq!(back, values, "seed {seed}");
            let distinct: std::collections::HashSet<_> = values.iter().collect();
            assert_eq!(entries.len(), distinct.len());
        }
        let texts: Vec<String> = (0..9000).map(|_| format!("{}", rng.u32(0..500))).collect();
        let values = Values::Bytes(texts.iter().map(String::as_bytes).collect());
        let interned = intern(&values, ANY).unwrap();
        assert_eq!(interned.entries.take(&interned.codes), values);
    }

    #[test]
    fn values_without_repetition_are_given_up() {
        let values: Vec<i64> = (0..100_000).map(|i| i * 1_000_003).collect();
        assert!(words(&values, usize::MAX).is_none());
        // 50,000 of a million, evenly: most of the first ones are new, and yet it pays.
        let mut rng = fastrand::Rng::with_seed(22);
        let many: Vec<i64> = (0..1_000_000).map(|_| rng.i64(0..50_000) * 1_000_003).collect();
        assert_eq!(words(&many, usize::MAX).map(|(entries, _)| entries.len()), Some(50_000));
        let few = vec![7i64; 5];
        assert_eq!(words(&few, usize::MAX).unwrap().0, [7]);
    }
}
