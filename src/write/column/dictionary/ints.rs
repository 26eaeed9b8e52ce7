//! Interning of integers: those in a narrow range through a table, the others through a hash table.

use super::hash::{MIX, fold};
use super::limits::{
    AHEAD, BLOCK, DictionaryGrowth, DictionaryLimits, FIRST_LOOK, MAX_DISTINCT_SHARE, MAX_PROBES,
    NONE,
};
use crate::free_lists::FreeLists;
use crate::simd::extremes::{extremes_i32_with, extremes_i64_with};
use crate::simd::{Isa, prefetch};

/// Words that are interned.
pub(super) trait DictionaryInt: Copy + Eq + Ord + Default + Send + 'static {
    fn wide(self) -> i64;

    /// Minimum and maximum of some values.
    fn extremes(values: &[Self]) -> (Self, Self);
}

impl DictionaryInt for i32 {
    fn wide(self) -> i64 {
        self.into()
    }

    fn extremes(values: &[Self]) -> (Self, Self) {
        extremes_i32_with(Isa::best(), values, 0)
    }
}

impl DictionaryInt for i64 {
    fn wide(self) -> i64 {
        self
    }

    fn extremes(values: &[Self]) -> (Self, Self) {
        extremes_i64_with(Isa::best(), values, 0)
    }
}

/// Maximum range of a lookup table, because its codes take 4 MiB.
const MAX_TABLE_RANGE: u64 = 1 << 20;

pub(super) fn intern_ints<T: DictionaryInt>(
    values: &[T],
    limits: DictionaryLimits,
    free_lists: &FreeLists,
) -> Option<(Vec<T>, Vec<u32>)> {
    if values.is_sorted() || values.is_sorted_by(|a, b| a >= b) {
        return by_runs(values, limits, free_lists);
    }
    if values.is_empty() {
        return None;
    }
    let (least, greatest) = T::extremes(values);
    let least = least.wide();
    let range = greatest.wide().wrapping_sub(least).cast_unsigned();
    if range < MAX_TABLE_RANGE.min(values.len() as u64 * 4) {
        by_table(values, least, range, limits, free_lists)
    } else {
        by_hash(values, limits, free_lists)
    }
}

/// Equal values stand together: each run is an entry.
fn by_runs<T: DictionaryInt>(
    values: &[T],
    limits: DictionaryLimits,
    free_lists: &FreeLists,
) -> Option<(Vec<T>, Vec<u32>)> {
    let changes = values.windows(2).filter(|pair| matches!(pair, [a, b] if a != b)).count();
    let n = changes + usize::from(!values.is_empty());
    let hopeless =
        values.len() >= FIRST_LOOK && n as f64 > values.len() as f64 * MAX_DISTINCT_SHARE;
    if n > limits.bytes / size_of::<T>() || (limits.must_pay && hopeless) {
        return None;
    }
    let mut entries = Vec::with_capacity(n);
    let mut codes = free_lists.take(values.len());
    for run in values.chunk_by(|a, b| a == b) {
        let code = u32::try_from(entries.len()).ok()?;
        entries.extend(run.first());
        codes.resize(codes.len() + run.len(), code);
    }
    Some((entries, codes))
}

fn by_table<T: DictionaryInt>(
    values: &[T],
    least: i64,
    range: u64,
    limits: DictionaryLimits,
    free_lists: &FreeLists,
) -> Option<(Vec<T>, Vec<u32>)> {
    let slots = usize::try_from(range).expect("a table is made of narrow ranges only") + 1;
    let mut table: Vec<u32> = free_lists.take(slots);
    table.resize(slots, NONE);
    let mut entries = Vec::new();
    let mut codes = free_lists.take(values.len());
    let mut growth = DictionaryGrowth::new(values.len(), size_of::<T>(), limits);
    for block in values.chunks(BLOCK) {
        codes.extend(block.iter().map(|value| {
            let at = value.wide().wrapping_sub(least).cast_unsigned();
            let Some(slot) = usize::try_from(at).ok().and_then(|at| table.get_mut(at)) else {
                return 0;
            };
            if *slot == NONE {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "at most as many as the table has"
                )]
                {
                    *slot = entries.len() as u32;
                }
                entries.push(*value);
            }
            *slot
        }));
        if !growth.goes_on(codes.len(), entries.len()) {
            free_lists.give(table);
            free_lists.give(codes);
            return None;
        }
    }
    free_lists.give(table);
    Some((entries, codes))
}

/// Bits of the first table: 4,096 slots.
const FIRST_BITS: u32 = 12;

/// Tables of more bits lie beyond the nearest caches.
const NEAR_BITS: u32 = 14;

/// An open-addressed table of values and their codes; doubled when half full.
struct IntTable<T> {
    slots: Vec<(T, u32)>,
    bits: u32,
}

impl<T: DictionaryInt> IntTable<T> {
    fn new(bits: u32, free_lists: &FreeLists) -> Self {
        let mut slots = free_lists.take(1 << bits);
        slots.resize(1 << bits, (T::default(), NONE));
        Self { slots, bits }
    }

    /// The slot where a value is looked for first.
    #[inline]
    fn home(&self, value: T) -> usize {
        let hash = fold(value.wide().cast_unsigned() ^ MIX[0], MIX[1]);
        usize::try_from(hash >> (64 - self.bits)).expect("a table has fewer than 2^32 slots")
    }

    /// The code of a value; `fresh` becomes it if there is none yet. `None` if it cannot be found
    /// in reasonable time.
    #[inline]
    fn code(&mut self, value: T, home: usize, fresh: u32) -> Option<u32> {
        let mask = self.slots.len() - 1;
        for at in home..home + MAX_PROBES {
            let slot = self.slots.get_mut(at & mask)?;
            if slot.0 == value && slot.1 != NONE {
                return Some(slot.1);
            }
            if slot.1 == NONE {
                *slot = (value, fresh);
                return Some(fresh);
            }
        }
        None
    }

    fn grow(&mut self, entries: &[T], free_lists: &FreeLists) -> Option<()> {
        let grown = Self::new(self.bits + 1, free_lists);
        free_lists.give(std::mem::replace(self, grown).slots);
        for (code, &value) in (0u32..).zip(entries) {
            self.code(value, self.home(value), code)?;
        }
        Some(())
    }
}

fn by_hash<T: DictionaryInt>(
    values: &[T],
    limits: DictionaryLimits,
    free_lists: &FreeLists,
) -> Option<(Vec<T>, Vec<u32>)> {
    let mut table = IntTable::new(FIRST_BITS, free_lists);
    let mut entries: Vec<T> = Vec::new();
    let mut codes = free_lists.take(values.len());
    let mut growth = DictionaryGrowth::new(values.len(), size_of::<T>(), limits);
    for block in values.chunks(BLOCK) {
        for some in block.chunks(AHEAD) {
            // A small table can be sparse, so that values rarely collide.
            let capacity = if table.bits <= NEAR_BITS { 8 } else { 2 };
            if (entries.len() + AHEAD) * capacity > table.slots.len() {
                table.grow(&entries, free_lists)?;
            }
            let mut homes = [0; AHEAD];
            for (home, &value) in homes.iter_mut().zip(some) {
                *home = table.home(value);
            }
            if table.bits > NEAR_BITS {
                homes.iter().for_each(|home| prefetch(&table.slots, *home));
            }
            for (&value, home) in some.iter().zip(homes) {
                #[expect(clippy::cast_possible_truncation, reason = "the growth has limits")]
                let fresh = entries.len() as u32;
                let code = table.code(value, home, fresh)?;
                if code == fresh {
                    entries.push(value);
                }
                codes.push(code);
            }
        }
        if !growth.goes_on(codes.len(), entries.len()) {
            free_lists.give(table.slots);
            free_lists.give(codes);
            return None;
        }
    }
    free_lists.give(table.slots);
    Some((entries, codes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: DictionaryLimits = DictionaryLimits { bytes: usize::MAX, must_pay: true };

    fn free_lists() -> FreeLists {
        FreeLists::new(1 << 20)
    }

    #[test]
    fn codes_lead_back_to_the_values() {
        let seed = 21;
        let mut rng = fastrand::Rng::with_seed(seed);
        for range in [1i64, 10, 70_000, i64::MAX] {
            let random = |_| rng.i64(0..range.min(9_000)) * (range / 9_000).max(1);
            let values: Vec<i64> = (0..20_000).map(random).collect();
            let (mut rising, mut falling) = (values.clone(), values.clone());
            rising.sort_unstable();
            falling.sort_unstable_by(|a, b| b.cmp(a));
            for values in [values, rising, falling] {
                let (entries, codes) = intern_ints(&values, ANY, &free_lists()).unwrap();
                let back: Vec<i64> = codes.iter().map(|&code| entries[code as usize]).collect();
                assert_eq!(back, values, "seed {seed}");
                let distinct: std::collections::HashSet<_> = values.iter().collect();
                assert_eq!(entries.len(), distinct.len());
            }
        }
    }

    #[test]
    fn values_without_repetition_are_given_up() {
        let rising: Vec<i64> = (0..100_000).map(|i| i * 1_000_003).collect();
        let mut values = rising.clone();
        fastrand::Rng::with_seed(24).shuffle(&mut values);
        let dense: Vec<i64> = values.iter().map(|value| value / 1_000_003).collect();
        for values in [&rising, &values, &dense] {
            assert!(intern_ints(values, ANY, &free_lists()).is_none());
            assert_eq!(
                intern_ints(values, DictionaryLimits::NONE, &free_lists()).unwrap().0.len(),
                100_000
            );
            assert!(
                intern_ints(
                    values,
                    DictionaryLimits { bytes: 80_000, must_pay: false },
                    &free_lists()
                )
                .is_none()
            );
        }
        // 50,000 of a million, evenly: most of the first ones are new, and yet it pays.
        let mut rng = fastrand::Rng::with_seed(22);
        let many: Vec<i64> = (0..1_000_000).map(|_| rng.i64(0..50_000) * 1_000_003).collect();
        assert_eq!(
            intern_ints(&many, ANY, &free_lists()).map(|(entries, _)| entries.len()),
            Some(50_000)
        );
        let few = vec![7i64; 5];
        assert_eq!(intern_ints(&few, ANY, &free_lists()).unwrap().0, [7]);
    }
}
