//! Interns integers: those in a narrow range through a table, the others through a hash table.

use super::hash::{MIX, fold};
use super::limits::{
    AHEAD, BLOCK, DictionaryGrowth, DictionaryLimits, FIRST_LOOK, MAX_DISTINCT_SHARE, MAX_PROBES,
    NONE,
};
use super::parts::{DictionaryBuilder, PartedValues};
use crate::free_lists::FreeLists;
use crate::memory;
use crate::simd::extremes::{extremes_i32_with, extremes_i64_with};
use crate::simd::{Isa, Kernel, prefetch};

/// Words that are interned.
pub(super) trait DictionaryInt: Copy + Eq + Ord + Default + Send + Sync + 'static {
    fn wide(self) -> i64;

    /// Minimum and maximum of some values.
    fn extremes(values: &[Self]) -> (Self, Self);
}

impl DictionaryInt for i32 {
    fn wide(self) -> i64 {
        self.into()
    }

    fn extremes(values: &[Self]) -> (Self, Self) {
        extremes_i32_with(Isa::for_kernel(Kernel::Extremes), values, 0)
    }
}

impl DictionaryInt for i64 {
    fn wide(self) -> i64 {
        self
    }

    fn extremes(values: &[Self]) -> (Self, Self) {
        extremes_i64_with(Isa::for_kernel(Kernel::Extremes), values, 0)
    }
}

/// Maximum range of a lookup table, because its codes take 4 MiB.
const MAX_TABLE_RANGE: u64 = 1 << 20;

/// The entries, and the code of every value; `None` where it is better to give up.
pub(super) fn intern_ints<T: DictionaryInt>(
    values: &[T],
    parted: &PartedValues<'_>,
) -> Option<(Vec<T>, Vec<u32>)> {
    let PartedValues { limits, free_lists, .. } = *parted;
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
        intern_by(values, parted, || RangeTable::new(least, range, free_lists))
    } else {
        intern_by(values, parted, || HashTable::new(FIRST_BITS, free_lists))
    }
}

fn intern_by<T: DictionaryInt, L: IntTable<T>>(
    values: &[T],
    parted: &PartedValues<'_>,
    table: impl Fn() -> Option<L> + Sync,
) -> Option<(Vec<T>, Vec<u32>)> {
    let free_lists = parted.free_lists;
    let new = |n, growth| {
        let codes = free_lists.take(n).ok()?;
        Some(IntDictionary { table: table()?, entries: Vec::new(), codes, growth, free_lists })
    };
    parted.intern(new, |dictionary, range| {
        let values = values.get(range).expect("parts lie within the values");
        values.chunks(BLOCK).try_for_each(|block| dictionary.push(block))
    })
}

/// Integers that are looked up in a table.
struct IntDictionary<'f, T: DictionaryInt, L: IntTable<T>> {
    table: L,
    entries: Vec<T>,
    codes: Vec<u32>,
    growth: DictionaryGrowth,
    free_lists: &'f FreeLists,
}

/// Where integers are looked up.
trait IntTable<T>: Send {
    /// Appends the codes of some values, and the values that are new. `None` if one cannot be found
    /// in reasonable time.
    fn look_up(
        &mut self,
        values: &[T],
        entries: &mut Vec<T>,
        codes: &mut Vec<u32>,
        free_lists: &FreeLists,
    ) -> Option<()>;

    /// Returns the memory to its pool.
    fn put_back(&mut self, free_lists: &FreeLists);
}

impl<T: DictionaryInt, L: IntTable<T>> IntDictionary<'_, T, L> {
    fn push(&mut self, block: &[T]) -> Option<()> {
        self.table.look_up(block, &mut self.entries, &mut self.codes, self.free_lists)?;
        let (entries, bytes) = self.size();
        self.growth.should_continue(self.codes.len(), entries, bytes).then_some(())
    }
}

impl<T: DictionaryInt, L: IntTable<T>> DictionaryBuilder for IntDictionary<'_, T, L> {
    type Entry = T;

    fn growth(&mut self) -> &mut DictionaryGrowth {
        &mut self.growth
    }

    fn size(&mut self) -> (usize, usize) {
        (self.entries.len(), size_of_val(self.entries.as_slice()))
    }

    fn merge(&mut self, entries: &[T]) -> Option<Vec<u32>> {
        let mut codes = memory::vec_for(entries.len()).ok()?;
        self.table.look_up(entries, &mut self.entries, &mut codes, self.free_lists)?;
        Some(codes)
    }

    fn append_codes(&mut self, n: usize) -> Option<&mut [u32]> {
        let start = self.codes.len();
        memory::room(&mut self.codes, n).ok()?;
        self.codes.resize(start + n, 0);
        self.codes.get_mut(start..)
    }

    fn end(&mut self) -> Option<()> {
        Some(())
    }

    fn into_dictionary(mut self) -> (Vec<T>, Vec<u32>) {
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.codes))
    }
}

/// The memory is used again by the table of another chunk.
impl<T: DictionaryInt, L: IntTable<T>> Drop for IntDictionary<'_, T, L> {
    fn drop(&mut self) {
        self.table.put_back(self.free_lists);
        self.free_lists.put_back(std::mem::take(&mut self.codes));
    }
}

/// Equal values are adjacent: each run is an entry.
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
    let mut entries = memory::vec_for(n).ok()?;
    let mut codes = free_lists.take(values.len()).ok()?;
    for run in values.chunk_by(|a, b| a == b) {
        let code = u32::try_from(entries.len()).ok()?;
        entries.extend(run.first());
        codes.resize(codes.len() + run.len(), code);
    }
    Some((entries, codes))
}

/// The codes of all integers of a narrow range.
struct RangeTable {
    slots: Vec<u32>,
    least: i64,
}

impl RangeTable {
    fn new(least: i64, range: u64, free_lists: &FreeLists) -> Option<Self> {
        let n = usize::try_from(range).expect("a table is made of narrow ranges only") + 1;
        let mut slots = free_lists.take(n).ok()?;
        slots.resize(n, NONE);
        Some(Self { slots, least })
    }
}

impl<T: DictionaryInt> IntTable<T> for RangeTable {
    fn look_up(
        &mut self,
        values: &[T],
        entries: &mut Vec<T>,
        codes: &mut Vec<u32>,
        _: &FreeLists,
    ) -> Option<()> {
        memory::room(entries, values.len()).ok()?;
        memory::room(codes, values.len()).ok()?;
        let (table, least) = (self.slots.as_mut_slice(), self.least);
        codes.extend(values.iter().map(|value| {
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
        Some(())
    }

    fn put_back(&mut self, free_lists: &FreeLists) {
        free_lists.put_back(std::mem::take(&mut self.slots));
    }
}

/// Bits of the first table: 4,096 slots.
const FIRST_BITS: u32 = 12;

/// Tables of more bits lie beyond the nearest caches.
const NEAR_BITS: u32 = 14;

/// An open-addressed table of values and their codes; doubled when half full.
struct HashTable<T> {
    slots: Vec<(T, u32)>,
    bits: u32,
}

impl<T: DictionaryInt> HashTable<T> {
    fn new(bits: u32, free_lists: &FreeLists) -> Option<Self> {
        let mut slots = free_lists.take(1 << bits).ok()?;
        slots.resize(1 << bits, (T::default(), NONE));
        Some(Self { slots, bits })
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
        let grown = Self::new(self.bits + 1, free_lists)?;
        free_lists.put_back(std::mem::replace(self, grown).slots);
        for (code, &value) in (0u32..).zip(entries) {
            self.code(value, self.home(value), code)?;
        }
        Some(())
    }
}

impl<T: DictionaryInt> IntTable<T> for HashTable<T> {
    fn look_up(
        &mut self,
        values: &[T],
        entries: &mut Vec<T>,
        codes: &mut Vec<u32>,
        free_lists: &FreeLists,
    ) -> Option<()> {
        for some in values.chunks(AHEAD) {
            memory::room(entries, some.len()).ok()?;
            memory::room(codes, some.len()).ok()?;
            // A small table can be sparse, so that values rarely collide.
            let capacity = if self.bits <= NEAR_BITS { 8 } else { 2 };
            if (entries.len() + AHEAD) * capacity > self.slots.len() {
                self.grow(entries, free_lists)?;
            }
            let mut homes = [0; AHEAD];
            for (home, &value) in homes.iter_mut().zip(some) {
                *home = self.home(value);
            }
            if self.bits > NEAR_BITS {
                homes.iter().for_each(|home| prefetch(&self.slots, *home));
            }
            for (&value, home) in some.iter().zip(homes) {
                #[expect(clippy::cast_possible_truncation, reason = "the growth has limits")]
                let fresh = entries.len() as u32;
                let code = self.code(value, home, fresh)?;
                if code == fresh {
                    entries.push(value);
                }
                codes.push(code);
            }
        }
        Some(())
    }

    fn put_back(&mut self, free_lists: &FreeLists) {
        free_lists.put_back(std::mem::take(&mut self.slots));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::column::parallelism::SingleThread;

    const ANY: DictionaryLimits = DictionaryLimits { bytes: usize::MAX, must_pay: true };

    fn intern<T: DictionaryInt>(
        values: &[T],
        limits: DictionaryLimits,
    ) -> Option<(Vec<T>, Vec<u32>)> {
        let free_lists = &FreeLists::new(1 << 20);
        let n = values.len();
        intern_ints(values, &PartedValues { n, limits, parallelism: &SingleThread, free_lists })
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
                let (entries, codes) = intern(&values, ANY).unwrap();
                let back: Vec<i64> = codes.iter().map(|&code| entries[code as usize]).collect();
                assert_eq!(back, values, "seed {seed}");
                let distinct: std::collections::HashSet<_> = values.iter().collect();
                assert_eq!(entries.len(), distinct.len());
            }
        }
    }

    #[test]
    fn the_memory_of_a_table_is_used_again() {
        let pool = crate::BufferPool::new(64 << 20);
        let free_lists = pool.free_lists();
        let dense: Vec<i64> = (0..100_000).map(|i| i * 1_000_003 % 20_000).collect();
        let spread: Vec<i64> = dense.iter().map(|value| value << 40).collect();
        let (n, limits) = (dense.len(), DictionaryLimits::NONE);
        for values in [dense, spread] {
            pool.clear();
            let parted = PartedValues { n, limits, parallelism: &SingleThread, free_lists };
            assert!(intern_ints(&values, &parted).is_some());
            assert!(pool.held_bytes() > 0);
        }
    }

    #[test]
    fn values_without_repetition_are_given_up() {
        let rising: Vec<i64> = (0..100_000).map(|i| i * 1_000_003).collect();
        let mut values = rising.clone();
        fastrand::Rng::with_seed(24).shuffle(&mut values);
        let dense: Vec<i64> = values.iter().map(|value| value / 1_000_003).collect();
        for values in [&rising, &values, &dense] {
            assert!(intern(values, ANY).is_none());
            assert_eq!(intern(values, DictionaryLimits::NONE).unwrap().0.len(), 100_000);
            assert!(intern(values, DictionaryLimits { bytes: 80_000, must_pay: false }).is_none());
        }
        // 50,000 of a million, evenly: most of the first ones are new, and yet it pays.
        let mut rng = fastrand::Rng::with_seed(22);
        let many: Vec<i64> = (0..1_000_000).map(|_| rng.i64(0..50_000) * 1_000_003).collect();
        assert_eq!(intern(&many, ANY).map(|(entries, _)| entries.len()), Some(50_000));
        let few = vec![7i64; 5];
        assert_eq!(intern(&few, ANY).unwrap().0, [7]);
    }
}
