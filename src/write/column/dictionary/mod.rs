//! Interning: finds the distinct values of a leaf, and which of them each value is.
//!
//! Trap: data without repetition must be found early, because interning is the most expensive part
//! of writing.

mod limits;
mod hash;
mod ints;
mod byte_arrays;

use self::byte_arrays::Interner;
use self::ints::words;
pub(super) use self::limits::DictionaryLimits;
use super::arrays::{Slots, bytes_layout, values_of};
use super::byte_arrays::{ByteRun, Ends, Texts};
use super::values::Values;
use crate::schema::Leaf;
use crate::spare::Spare;
use crate::write::shred::Part;

/// Entries, in the order of their first occurrence, and the index of every value among them.
pub(super) struct Interned<'a> {
    pub(super) entries: Values<'a>,
    pub(super) codes: Vec<u32>,
    /// Whether the entries are all different.
    pub(super) distinct: bool,
}

/// Finds the distinct values; `None` if they grow beyond the limits, or so fast that they are
/// likely to.
pub(super) fn intern<'a>(
    values: &Values<'a>,
    limits: DictionaryLimits,
    spare: &Spare,
) -> Option<Interned<'a>> {
    match values {
        Values::Bits(_) => None,
        Values::Words32(values) => {
            let (entries, codes) = words(values, limits, spare)?;
            Some(Interned { entries: Values::Words32(entries.into()), codes, distinct: true })
        }
        Values::Words64(values) => {
            let (entries, codes) = words(values, limits, spare)?;
            Some(Interned { entries: Values::Words64(entries.into()), codes, distinct: true })
        }
        Values::Bytes(values) => {
            let mut interner = Interner::new(values.len(), limits, spare);
            for value in values.iter(0..values.len()) {
                interner.push(value, 0, value.len())?;
            }
            let (entries, codes) = interner.finish()?;
            Some(Interned { entries: Values::Bytes(Texts::Slices(entries)), codes, distinct: true })
        }
        Values::Fixed { width: 0, .. } => None,
        Values::Fixed { width, bytes } => {
            let n = bytes.len() / width;
            let mut interner = Interner::new(n, limits, spare);
            for i in 0..n {
                interner.push(bytes, i * width, *width)?;
            }
            let (entries, codes) = interner.finish()?;
            Some(Interned {
                entries: Values::Fixed { width: *width, bytes: entries.concat().into() },
                codes,
                distinct: true,
            })
        }
    }
}

/// As [`intern`], of the byte strings of a leaf, without gathering them first; `None` too where
/// they must be gathered.
pub(super) fn intern_parts<'a>(
    parts: &'a [Part],
    leaf: &Leaf,
    limits: DictionaryLimits,
    spare: &Spare,
) -> Option<Interned<'a>> {
    let n = parts.iter().map(values_of).sum();
    let mut interner = Interner::new(n, limits, spare);
    for part in parts {
        let layout = bytes_layout(part, leaf)?;
        Slots::of(part).for_each_byte_run(layout, |run| match run {
            ByteRun::Between(buffer, Ends::Small(offsets)) => interner.push_all(buffer, offsets),
            ByteRun::Between(buffer, Ends::Large(offsets)) => interner.push_all(buffer, offsets),
            ByteRun::One(buffer, start, len) => interner.push(buffer, start, len),
        })?;
    }
    let (entries, codes) = interner.finish()?;
    Some(Interned { entries: Values::Bytes(Texts::Slices(entries)), codes, distinct: true })
}

/// One entry for each distinct value that is used, and the codes that follow; `None` where nothing
/// repeats.
pub(super) fn unify<'a>(entries: &Values<'a>, keys: &[u32], spare: &Spare) -> Option<Interned<'a>> {
    let limits = DictionaryLimits::NONE;
    // First those that are used, in the order of their first use; then those that are equal become
    // one.
    const UNUSED: u32 = u32::MAX;
    let mut place = vec![UNUSED; entries.len()];
    let mut used = Vec::new();
    let mut codes = spare.take(keys.len());
    for &key in keys {
        let slot = place.get_mut(key as usize)?;
        if *slot == UNUSED {
            *slot = u32::try_from(used.len()).ok()?;
            used.push(key);
        }
        codes.push(*slot);
    }
    let entries = entries.take(&used);
    match intern(&entries, limits, spare) {
        Some(unified) if unified.entries.len() < entries.len() => {
            for code in &mut codes {
                *code = unified.codes.get(*code as usize).copied()?;
            }
            spare.give(unified.codes);
            Some(Interned { entries: unified.entries, codes, distinct: true })
        }
        Some(_) => Some(Interned { entries, codes, distinct: true }),
        // Given up: equal entries do no harm.
        None => Some(Interned { entries, codes, distinct: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare() -> Spare {
        Spare::new(1 << 20)
    }

    #[test]
    fn strings_that_are_alike_at_their_ends_are_told_apart() {
        let seed = 23;
        let mut rng = fastrand::Rng::with_seed(seed);
        for longest in [1usize, 4, 9, 17, 40, 200] {
            // Few letters, zeros among them: the same ends, other lengths, other middles.
            let texts: Vec<Vec<u8>> = (0..30_000)
                .map(|_| (0..rng.usize(0..=longest)).map(|_| rng.u8(0..2)).collect())
                .collect();
            let values = Values::Bytes(Texts::Slices(texts.iter().map(Vec::as_slice).collect()));
            let limits = DictionaryLimits::NONE;
            let interned = intern(&values, limits, &spare()).unwrap();
            assert_eq!(interned.entries.take(&interned.codes), values, "seed {seed}");
            let distinct: std::collections::HashSet<_> = texts.iter().collect();
            assert_eq!(interned.entries.len(), distinct.len(), "seed {seed}");
        }
    }
}
