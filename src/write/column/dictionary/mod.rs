//! Interning finds the distinct values of a leaf, and the index of each value among them.
//!
//! Trap: data without repetition must be recognised early, because interning is the most expensive
//! part of writing.

mod limits;
mod hash;
mod part_sizes;
mod parts;
mod ints;
mod byte_arrays;

use std::ops::Range;

use self::byte_arrays::ByteArrayBuilder;
use self::ints::intern_ints;
pub(super) use self::limits::DictionaryLimits;
use self::parts::PartedValues;
use super::arrays::{bytes_layout, for_each_part, values_of};
use super::byte_arrays::{ByteArrayValues, ByteRun, Ends};
use super::parallelism::Parallelism;
use super::values::LeafValues;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::schema::Leaf;
use crate::write::shred::ArrayPart;

/// Entries, in the order of their first occurrence, and the index of every value among them.
pub(super) struct ValueDictionary<'a> {
    pub(super) entries: LeafValues<'a>,
    pub(super) codes: Vec<u32>,
    /// Whether the entries are all different.
    pub(super) distinct: bool,
}

/// Finds the distinct values; `None` if they exceed the limits, or grow so fast that they are
/// likely to. The number of threads does not change the result, unless values were made to collide
/// in the hash table.
pub(super) fn intern<'a>(
    values: &LeafValues<'a>,
    limits: DictionaryLimits,
    parallelism: &dyn Parallelism,
    free_lists: &FreeLists,
) -> Option<ValueDictionary<'a>> {
    let n = values.len();
    let parted = PartedValues { n, limits, parallelism, free_lists };
    let (entries, codes) = match values {
        LeafValues::Bits(_) => return None,
        LeafValues::Words32(values) => {
            let (entries, codes) = intern_ints(values, &parted)?;
            (LeafValues::Words32(entries.into()), codes)
        }
        LeafValues::Words64(values) => {
            let (entries, codes) = intern_ints(values, &parted)?;
            (LeafValues::Words64(entries.into()), codes)
        }
        LeafValues::Bytes(values) => {
            let new = |n, growth| ByteArrayBuilder::new(n, growth, free_lists);
            let (entries, codes) = parted.intern(new, |builder, range| {
                values.iter(range).try_for_each(|value| builder.push(value, 0, value.len()))
            })?;
            (LeafValues::Bytes(ByteArrayValues::Slices(entries)), codes)
        }
        LeafValues::Fixed { width: 0, .. } => return None,
        LeafValues::Fixed { width, bytes } => {
            let new = |n, growth| ByteArrayBuilder::new(n, growth, free_lists);
            let (entries, codes) = parted.intern(new, |builder, mut range| {
                range.try_for_each(|i| builder.push(bytes, i * width, *width))
            })?;
            let mut bytes = memory::vec_for(entries.len() * width).ok()?;
            entries.iter().for_each(|entry| bytes.extend_from_slice(entry));
            (LeafValues::Fixed { width: *width, bytes: bytes.into() }, codes)
        }
    };
    Some(ValueDictionary { entries, codes, distinct: true })
}

/// Like [`intern`], for the byte strings of a leaf, without gathering them first; `None` too where
/// they must be gathered.
pub(super) fn intern_parts<'a>(
    parts: &'a [ArrayPart],
    leaf: &Leaf,
    limits: DictionaryLimits,
    parallelism: &dyn Parallelism,
    free_lists: &FreeLists,
) -> Option<ValueDictionary<'a>> {
    let n = parts.iter().map(values_of).sum();
    let parted = PartedValues { n, limits, parallelism, free_lists };
    let new = |n, growth| ByteArrayBuilder::new(n, growth, free_lists);
    let push = |builder: &mut ByteArrayBuilder<'a>, range: Range<usize>| {
        for_each_part(parts, range, |part, slots| {
            let layout = bytes_layout(part, leaf)?;
            slots.for_each_byte_run(layout, |run| match run {
                ByteRun::Between(buffer, Ends::Small(offsets)) => builder.push_all(buffer, offsets),
                ByteRun::Between(buffer, Ends::Large(offsets)) => builder.push_all(buffer, offsets),
                ByteRun::One(buffer, start, len) => builder.push(buffer, start, len),
            })
        })
    };
    let (entries, codes) = parted.intern(new, push)?;
    Some(ValueDictionary {
        entries: LeafValues::Bytes(ByteArrayValues::Slices(entries)),
        codes,
        distinct: true,
    })
}

/// One entry for each distinct value that is used, and the codes that follow. `None` if a key has
/// no value, or there are too many.
pub(super) fn unify<'a>(
    entries: &LeafValues<'a>,
    keys: &[u32],
    parallelism: &dyn Parallelism,
    free_lists: &FreeLists,
) -> Option<ValueDictionary<'a>> {
    let limits = DictionaryLimits::NONE;
    // First those that are used, in the order of their first use; then those that are equal become
    // one.
    const UNUSED: u32 = u32::MAX;
    let mut place = memory::filled(UNUSED, entries.len()).ok()?;
    let mut used = Vec::new();
    let mut codes = free_lists.take(keys.len()).ok()?;
    for &key in keys {
        let slot = place.get_mut(key as usize)?;
        if *slot == UNUSED {
            *slot = u32::try_from(used.len()).ok()?;
            memory::push(&mut used, key).ok()?;
        }
        codes.push(*slot);
    }
    let entries = entries.take(&used).ok()?;
    match intern(&entries, limits, parallelism, free_lists) {
        Some(unified) if unified.entries.len() < entries.len() => {
            for code in &mut codes {
                *code = unified.codes.get(*code as usize).copied()?;
            }
            free_lists.put_back(unified.codes);
            Some(ValueDictionary { entries: unified.entries, codes, distinct: true })
        }
        Some(_) => Some(ValueDictionary { entries, codes, distinct: true }),
        // Interning gave up. Equal entries are legal.
        None => Some(ValueDictionary { entries, codes, distinct: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parallelism::SingleThread;
    use super::*;

    fn free_lists() -> FreeLists {
        FreeLists::new(1 << 20)
    }

    #[test]
    fn strings_that_are_alike_at_their_ends_are_told_apart() {
        let seed = 23;
        let mut rng = fastrand::Rng::with_seed(seed);
        for longest in [1usize, 4, 9, 17, 40, 200] {
            // Few letters, zeros among them: the same ends, other lengths, other middles.
            let byte_arrays: Vec<Vec<u8>> = (0..30_000)
                .map(|_| (0..rng.usize(0..=longest)).map(|_| rng.u8(0..2)).collect())
                .collect();
            let values = LeafValues::Bytes(ByteArrayValues::Slices(
                byte_arrays.iter().map(Vec::as_slice).collect(),
            ));
            let limits = DictionaryLimits::NONE;
            let interned = intern(&values, limits, &SingleThread, &free_lists()).unwrap();
            assert_eq!(interned.entries.take(&interned.codes).unwrap(), values, "seed {seed}");
            let distinct: std::collections::HashSet<_> = byte_arrays.iter().collect();
            assert_eq!(interned.entries.len(), distinct.len(), "seed {seed}");
        }
    }
}
