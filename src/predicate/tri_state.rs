//! [`TriState`] holds SQL's three values for many rows, as two bitmaps of the rows that are true
//! and of those that are false. Logic on it is plain bit operations.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{AnyDictionaryArray, Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::rows::dictionary_keys;

/// The rows that are true and those that are false; all others are null.
#[derive(Debug, Clone)]
pub(super) struct TriState {
    pub(super) trues: BooleanBuffer,
    pub(super) falses: BooleanBuffer,
}

impl TriState {
    pub(super) fn constant(value: Option<bool>, len: usize) -> Self {
        let all = |is: bool| {
            if is { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) }
        };
        Self { trues: all(value == Some(true)), falses: all(value == Some(false)) }
    }

    /// From values that are all true or false, none null.
    pub(super) fn total(trues: BooleanBuffer) -> Self {
        Self { falses: !&trues, trues }
    }

    pub(super) fn from_array(array: &BooleanArray) -> Self {
        Self::total(array.values().clone()).masked(array.nulls())
    }

    /// Null where there is no value.
    pub(super) fn masked(self, nulls: Option<&NullBuffer>) -> Self {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => self,
            Some(nulls) => {
                Self { trues: &self.trues & nulls.inner(), falses: &self.falses & nulls.inner() }
            }
        }
    }

    pub(super) fn not(self) -> Self {
        Self { trues: self.falses, falses: self.trues }
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self { trues: &self.trues & &other.trues, falses: &self.falses | &other.falses }
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        Self { trues: &self.trues | &other.trues, falses: &self.falses & &other.falses }
    }

    /// Looks up the results of the entries of a dictionary for its slots.
    pub(super) fn looked_up(&self, dictionary: &dyn AnyDictionaryArray) -> Self {
        let len = dictionary.len();
        if self.trues.is_empty() {
            return Self::constant(None, len);
        }
        let nulls = dictionary.keys().nulls();
        let entries = self.trues.len();
        let is_total = self.trues.count_set_bits() + self.falses.count_set_bits() == entries;
        if is_total && self.falses.count_set_bits() == entries {
            return Self::constant(Some(false), len).masked(nulls);
        }
        match dictionary.keys().as_primitive_opt::<Int32Type>() {
            Some(keys) if is_total => {
                let (bits, offset) = (self.trues.values(), self.trues.offset());
                // The key of a null may be anything.
                let is = |key: &i32| {
                    let bit = offset + key.cast_unsigned() as usize;
                    bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
                };
                let words =
                    keys.values().chunks(64).map(|keys| match keys {
                        // A run is one test.
                        [first, .., last]
                            if first == last && keys.iter().all(|key| key == first) =>
                        {
                            if is(first) { u64::MAX } else { 0 }
                        }
                        _ => keys.iter().rev().fold(0, |word, key| word << 1 | u64::from(is(key))),
                    });
                let trues = Buffer::from_iter(words);
                Self::total(BooleanBuffer::new(trues, 0, len)).masked(nulls)
            }
            _ => {
                let keys = dictionary_keys(dictionary);
                self.gathered(len, |i| keys.get(i).copied()).masked(nulls)
            }
        }
    }

    /// The result at `of(i)` for each i; null where that is `None`.
    pub(super) fn gathered(&self, len: usize, of: impl Fn(usize) -> Option<usize>) -> Self {
        let gather = |from: &BooleanBuffer| {
            BooleanBuffer::collect_bool(len, |i| of(i).is_some_and(|at| from.value(at)))
        };
        Self { trues: gather(&self.trues), falses: gather(&self.falses) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{DictionaryArray, Int32Array, StringArray};

    use super::*;

    #[test]
    fn runs_of_keys_give_what_each_key_gives() {
        let seed = 23;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let entries = rng.i32(1..200);
            let trues: BooleanBuffer = (0..entries + 3).map(|_| rng.bool()).collect();
            // The results do not begin at a byte.
            let results = TriState::total(trues.slice(3, entries as usize));
            let mut keys = Vec::new();
            for _ in 0..rng.usize(0..9) {
                let key = (rng.u8(..) > 60).then(|| rng.i32(0..entries));
                keys.extend(std::iter::repeat_n(key, rng.usize(1..300)));
                keys.extend((0..rng.usize(0..90)).map(|_| Some(rng.i32(0..entries))));
            }
            let values = StringArray::from_iter_values((0..entries).map(|i| i.to_string()));
            let array = DictionaryArray::new(Int32Array::from(keys.clone()), Arc::new(values));
            let found = results.looked_up(&array);
            for (i, key) in keys.iter().enumerate() {
                let expected = key.map(|key| results.trues.value(key as usize));
                let found = (found.trues.value(i), found.falses.value(i));
                assert_eq!(found, (expected == Some(true), expected == Some(false)), "seed {seed}");
            }
        }
    }
}
