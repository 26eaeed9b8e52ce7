//! Interns with several threads: each builds the dictionary of a part, and the dictionaries are
//! then merged.
//!
//! The entries of the second part are added to the dictionary of the first, then those of the
//! third: in the order of their first occurrence, as one thread would add them. Trap: the
//! dictionary must be given up exactly where one thread would give it up, so each part records how
//! its dictionary grew. Until the merge, each part holds a table and entries of its own, which the
//! limits bound, and four bytes a value.

use std::ops::Range;

use super::limits::{BLOCK, DictionaryGrowth, DictionaryLimits, DictionaryProgress};
use super::part_sizes::{MAPPED_CODES, MIN_PART_VALUES};
use crate::free_lists::FreeLists;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::write::column::parallelism::Parallelism;

/// Finds the distinct ones of values that are pushed.
pub(super) trait DictionaryBuilder: Send + Sized {
    type Entry: Send + Sync;

    fn growth(&mut self) -> &mut DictionaryGrowth;

    /// How many entries there are, and their bytes as PLAIN.
    fn size(&mut self) -> (usize, usize);

    /// The codes of the entries of another dictionary; those that are new are added. `None` if one
    /// cannot be found in reasonable time.
    fn merge(&mut self, entries: &[Self::Entry]) -> Option<Vec<u32>>;

    /// Room for the codes of the next `n` values, which are looked up elsewhere; `None` without
    /// memory for them.
    fn append_codes(&mut self, n: usize) -> Option<&mut [u32]>;

    /// To be called after the last value. `None` if it is better to give up.
    fn end(&mut self) -> Option<()>;

    /// The entries, and the code of every value.
    fn into_dictionary(self) -> (Vec<Self::Entry>, Vec<u32>);
}

/// The dictionary of a part that is not the first.
struct PartDictionary<E> {
    entries: Vec<E>,
    codes: Vec<u32>,
    growth: Vec<DictionaryProgress>,
}

/// Values that are interned in parts.
pub(super) struct PartedValues<'p> {
    /// How many there are.
    pub(super) n: usize,
    pub(super) limits: DictionaryLimits,
    pub(super) parallelism: &'p dyn Parallelism,
    pub(super) free_lists: &'p FreeLists,
}

impl PartedValues<'_> {
    /// Interns the values of all parts: `new` begins a dictionary for a number of values, `push`
    /// looks some values up. `None` if the dictionary is given up.
    pub(super) fn intern<B: DictionaryBuilder>(
        &self,
        new: impl Fn(usize, DictionaryGrowth) -> Option<B> + Sync,
        push: impl Fn(&mut B, Range<usize>) -> Option<()> + Sync,
    ) -> Option<(Vec<B::Entry>, Vec<u32>)> {
        let &Self { n, limits, parallelism, .. } = self;
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = new(n, DictionaryGrowth::new(n, limits, stop.clone()))?;
        let parts = parallelism.threads().min(n / MIN_PART_VALUES).max(1);
        // One thread checks the growth at multiples of a block; so do parts that begin at one.
        let begin = |part| if part == parts { n } else { n / BLOCK * part / parts * BLOCK };
        let first = Mutex::new(Some(&mut all));
        let others = Mutex::new(Vec::new());
        parallelism.for_each(parts, &|part| {
            let values = begin(part)..begin(part + 1);
            if part == 0 {
                let all = lock(&first).take();
                if all.and_then(|all| push(all, values)).is_none() {
                    stop.store(true, Ordering::Relaxed);
                }
            } else if !stop.load(Ordering::Relaxed) {
                let growth = DictionaryGrowth::of_part(values.len(), limits, stop.clone());
                // Without memory for one, the values are looked up with those of the first part.
                let Some(mut builder) = new(values.len(), growth) else { return };
                if push(&mut builder, values).and_then(|()| builder.end()).is_some() {
                    let growth = builder.growth().take_progress();
                    let (entries, codes) = builder.into_dictionary();
                    lock(&others).push((part, PartDictionary { entries, codes, growth }));
                }
            }
        });
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let mut others = others.into_inner().unwrap_or_else(PoisonError::into_inner);
        others.sort_by_key(|(part, _)| *part);
        let mut others = others.into_iter().peekable();
        let mut mapped = Vec::with_capacity(parts);
        for part in 1..parts {
            match others.next_if(|(made, _)| *made == part) {
                Some((_, made)) => mapped.push(merged(&mut all, begin(part), made)?),
                // One that repeats too little is looked up here.
                None => {
                    self.append(&mut all, std::mem::take(&mut mapped))?;
                    push(&mut all, begin(part)..begin(part + 1))?;
                }
            }
        }
        self.append(&mut all, mapped)?;
        all.end()?;
        Some(all.into_dictionary())
    }

    /// Appends the codes of parts, mapped to those of all.
    fn append<B: DictionaryBuilder>(&self, all: &mut B, parts: Vec<MappedCodes>) -> Option<()> {
        let n = parts.iter().map(|part| part.codes.len()).sum();
        let mut rest = all.append_codes(n)?;
        let mut some = Vec::new();
        for MappedCodes { codes, map } in &parts {
            let (of_part, next) = rest.split_at_mut(codes.len());
            rest = next;
            let of_part = of_part.chunks_mut(MAPPED_CODES).zip(codes.chunks(MAPPED_CODES));
            some.extend(of_part.map(|(out, codes)| Mutex::new((out, codes, map))));
        }
        self.parallelism.for_each(some.len(), &|i| {
            let some = some.get(i).expect("one for each number");
            let (out, codes, map) = &mut *lock(some);
            for (out, code) in out.iter_mut().zip(*codes) {
                *out = *map.get(*code as usize).expect("codes are those of entries");
            }
        });
        drop(some);
        parts.into_iter().for_each(|part| self.free_lists.put_back(part.codes));
        Some(())
    }
}

/// Adds the dictionary of the part that begins with value `seen`; `None` if the dictionary is given
/// up.
fn merged<B: DictionaryBuilder>(
    all: &mut B,
    seen: usize,
    part: PartDictionary<B::Entry>,
) -> Option<MappedCodes> {
    let PartDictionary { entries, codes, growth } = part;
    let (mut known, _) = all.size();
    let map = all.merge(&entries)?;
    let mut counted = 0;
    for at in growth {
        // New entries have the next codes.
        let greatest = map.get(counted..at.entries)?.iter().max();
        known = known.max(greatest.map_or(0, |code| *code as usize + 1));
        counted = at.entries;
        if !all.growth().pays(DictionaryProgress { seen: seen + at.seen, entries: known }) {
            return None;
        }
    }
    let (entries, bytes) = all.size();
    all.growth().fits(entries, bytes).then_some(MappedCodes { codes, map })
}

/// The codes of a part, and that of each of its entries in the dictionary of all values.
struct MappedCodes {
    codes: Vec<u32>,
    map: Vec<u32>,
}

/// A panic of a thread is passed on when all have ended.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::intern;
    use super::*;
    use crate::write::column::byte_arrays::ByteArrayValues;
    use crate::write::column::parallelism::SingleThread;
    use crate::write::column::values::LeafValues;

    /// This many threads, which take the parts in any order.
    struct Threads(usize);

    impl Parallelism for Threads {
        fn threads(&self) -> usize {
            self.0
        }

        fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
            std::thread::scope(|scope| {
                for i in (0..n).rev() {
                    scope.spawn(move || work(i));
                }
            });
        }
    }

    /// The last part first, on one thread.
    struct Backwards;

    impl Parallelism for Backwards {
        fn threads(&self) -> usize {
            3
        }

        fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
            (0..n).rev().for_each(work);
        }
    }

    /// Numbers in stretches that repeat more or less.
    fn numbers(rng: &mut fastrand::Rng) -> Vec<u64> {
        let n = rng.usize(0..50_000);
        let mut numbers = Vec::with_capacity(n);
        while numbers.len() < n {
            let len = rng.usize(1..=n - numbers.len());
            let distinct = 1u64 << rng.u32(0..17);
            let from = rng.u64(0..3) * (distinct / 2);
            numbers.extend((0..len).map(|_| from + rng.u64(0..distinct)));
        }
        numbers
    }

    /// The dictionary, or that it was given up.
    fn found(
        values: &LeafValues<'_>,
        limits: DictionaryLimits,
        parallelism: &dyn Parallelism,
    ) -> Option<(Vec<u8>, Vec<u32>)> {
        let free_lists = FreeLists::new(1 << 20);
        let dictionary = intern(values, limits, parallelism, &free_lists)?;
        Some((format!("{:?}", dictionary.entries).into_bytes(), dictionary.codes))
    }

    /// Checks that several threads find the dictionary of one thread. Returns whether there was
    /// one.
    fn check(values: &LeafValues<'_>, limits: DictionaryLimits, round: &str) -> bool {
        let alone = found(values, limits, &SingleThread);
        for threads in 2..=4 {
            let several = found(values, limits, &Threads(threads));
            assert!(several == alone, "{threads} threads, {limits:?}, {round}");
        }
        assert!(found(values, limits, &Backwards) == alone, "backwards, {limits:?}, {round}");
        alone.is_some()
    }

    #[test]
    fn several_threads_find_the_dictionary_of_one() {
        let seed = 29;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut outcomes = [0; 2];
        for round in 0..20 {
            let numbers = numbers(&mut rng);
            let factor = [1, 1_000_003][round % 2];
            let text = |i: &u64| match i % 3 {
                _ if round % 3 == 0 => format!("{i}"),
                0 => format!("a value of more than sixteen bytes: {i}"),
                1 => format!("{i:->150}"),
                _ => format!("{i}"),
            };
            let texts: Vec<String> = numbers.iter().map(text).collect();
            let wide: Vec<i64> = numbers.iter().map(|i| i.cast_signed() * factor).collect();
            // As float bits: NaNs and both zeros among them.
            let narrow = numbers.iter().map(|i| match i % 50 {
                0 => f32::NAN.to_bits().cast_signed(),
                1 => (-0.0f32).to_bits().cast_signed(),
                i => i32::try_from(i).unwrap(),
            });
            let fixed: Vec<u8> = numbers.iter().flat_map(|i| (i * 257).to_le_bytes()).collect();
            let distinct = numbers.iter().collect::<std::collections::HashSet<_>>().len();
            for values in [
                LeafValues::Words64(wide.into()),
                LeafValues::Words32(narrow.collect::<Vec<_>>().into()),
                LeafValues::Fixed { width: 8, bytes: fixed.into() },
                LeafValues::Bytes(ByteArrayValues::Slices(
                    texts.iter().map(String::as_bytes).collect(),
                )),
            ] {
                let round = format!("seed {seed}, round {round}, {distinct} distinct");
                let bytes = distinct * [4, 8, 40, usize::MAX >> 32][rng.usize(0..4)];
                for bytes in [usize::MAX, bytes, bytes.saturating_sub(1), rng.usize(0..=bytes)] {
                    for must_pay in [false, true] {
                        let limits = DictionaryLimits { bytes, must_pay };
                        outcomes[usize::from(check(&values, limits, &round))] += 1;
                    }
                }
            }
        }
        assert!(outcomes.iter().all(|n| *n > 50), "seed {seed}: {outcomes:?} given up and not");
    }

    #[test]
    fn a_part_that_repeats_too_little_is_looked_up_by_the_first() {
        // A third of the second of three parts is new, and yet the dictionary pays. The third part
        // is merged after it.
        let n = MIN_PART_VALUES as i64;
        let few = (0..n).map(|i| i % 7 * 1_000_003);
        let values: Vec<i64> =
            few.clone().chain((0..n).map(|i| i % (n / 3) * 999_983)).chain(few).collect();
        let limits = DictionaryLimits { bytes: usize::MAX, must_pay: true };
        assert!(check(&LeafValues::Words64(values.into()), limits, "three parts"));
    }

    #[test]
    fn a_dictionary_that_grows_too_fast_in_a_later_part_is_given_up() {
        // Each of two parts repeats enough by itself. After the second, a quarter of all values
        // were new since the first, so the entries are not expected to repeat often enough.
        let n = 1 << 15;
        let first = (0..n).map(|i| i % 8_500 * 1_000_003);
        let second = (0..n).map(|i| i % 8_000 * 1_000_003 + 1);
        let values: Vec<i64> = first.chain(second).collect();
        let texts: Vec<String> = values.iter().map(i64::to_string).collect();
        let texts = texts.iter().map(String::as_bytes).collect();
        for values in
            [LeafValues::Words64(values.into()), LeafValues::Bytes(ByteArrayValues::Slices(texts))]
        {
            let limits = DictionaryLimits { bytes: usize::MAX, must_pay: true };
            assert!(!check(&values, limits, "two parts"));
            assert!(check(&values, DictionaryLimits::NONE, "two parts"));
        }
    }

    #[test]
    fn entries_of_later_parts_follow_those_of_earlier_ones() {
        let n = MIN_PART_VALUES;
        // Of each part: the first value, and those that follow by turns.
        let parts = [(5, [1, 2]), (9_000_000, [2, 3]), (3, [4, 1])];
        let values: Vec<i32> = parts
            .iter()
            .flat_map(|(first, turns)| std::iter::once(*first).chain((1..n).map(|i| turns[i % 2])))
            .collect();
        let (values, free_lists) = (LeafValues::Words32(values.into()), FreeLists::new(1 << 20));
        let dictionary = intern(&values, DictionaryLimits::NONE, &Threads(3), &free_lists).unwrap();
        let expected = vec![5, 2, 1, 9_000_000, 3, 4];
        assert_eq!(dictionary.entries, LeafValues::Words32(expected.into()));
        assert_eq!(dictionary.entries.take(&dictionary.codes).unwrap(), values);
    }
}
