//! [`distinct`] finds equal values of an array, so that they need only one entry of a dictionary.

use std::hash::BuildHasher;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, StringViewArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::DataType;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::error::Result;
use crate::memory;

/// Finds equal values. Returns the position of the first of each distinct value, and for every
/// value its index among those. The first `entries` values are kept even if they are equal.
///
/// # Errors
/// `Limit(Memory)` if the system has no memory.
pub(super) fn distinct(values: &ArrayRef, entries: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    let bytes = DistinctBytes::from_array(values);
    // With a seed that no file can know, as values may be made to collide.
    let state = RandomState::default();
    let mut table: HashTable<(u64, u32)> = HashTable::new();
    let (mut first, mut place) = (Vec::<u32>::new(), memory::vec_for(values.len())?);
    let mut hashes = Vec::with_capacity(HASHED);
    for start in (0..values.len()).step_by(HASHED) {
        // Hashed in blocks, so that hashing does not wait for the table.
        hashes.clear();
        let end = values.len().min(start + HASHED);
        hashes.extend((start..end).map(|i| state.hash_one(bytes.get(i))));
        if first.len() > start / 2 {
            // Most values are distinct: the table grows once, not many times.
            reserve(&mut table, values.len() - start)?;
        }
        reserve(&mut table, end - start)?;
        memory::room(&mut first, end - start)?;
        for (i, &hash) in (start..end).zip(&hashes) {
            let value = bytes.get(i);
            let is_it = |(h, at): &(u64, u32)| {
                #[cfg(test)]
                crate::steps::add(1);
                let at = first.get(*at as usize);
                *h == hash && at.is_some_and(|at| bytes.get(*at as usize) == value)
            };
            let at = match table.entry(hash, is_it, |(hash, _)| *hash) {
                Entry::Occupied(known) if i >= entries => known.get().1,
                entry => {
                    let at = u32::try_from(first.len()).expect("indices have 32 bits");
                    if let Entry::Vacant(vacant) = entry {
                        vacant.insert((hash, at));
                    }
                    first.push(u32::try_from(i).expect("indices have 32 bits"));
                    at
                }
            };
            place.push(at);
        }
    }
    Ok((first, place))
}

/// Makes room for `n` values more.
fn reserve(table: &mut HashTable<(u64, u32)>, n: usize) -> Result<()> {
    table.try_reserve(n, |(hash, _)| *hash).map_err(|_| memory::none_for("a dictionary"))
}

/// Values that are hashed at a time.
const HASHED: usize = 256;

/// The values of an array as bytes, to compare them.
enum DistinctBytes<'a> {
    Offsets32(&'a [i32], &'a [u8]),
    Offsets64(&'a [i64], &'a [u8]),
    Text(&'a StringViewArray),
    Views(&'a BinaryViewArray),
    Bits(&'a BooleanArray),
    /// A buffer, where the first value begins, and the bytes of each.
    Words(Buffer, usize, usize),
    /// Values of no bytes.
    Nothing,
}

impl<'a> DistinctBytes<'a> {
    fn from_array(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Utf8 => {
                let array = array.as_string::<i32>();
                Self::Offsets32(array.value_offsets(), array.value_data())
            }
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                Self::Offsets32(array.value_offsets(), array.value_data())
            }
            DataType::LargeUtf8 => {
                let array = array.as_string::<i64>();
                Self::Offsets64(array.value_offsets(), array.value_data())
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                Self::Offsets64(array.value_offsets(), array.value_data())
            }
            DataType::Utf8View => Self::Text(array.as_string_view()),
            DataType::BinaryView => Self::Views(array.as_binary_view()),
            DataType::Boolean => Self::Bits(array.as_boolean()),
            other => {
                let width = match other {
                    DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
                    other => other.primitive_width(),
                };
                let data = array.to_data();
                match (width, data.buffers().first()) {
                    (Some(width), Some(buffer)) => {
                        Self::Words(buffer.clone(), data.offset() * width, width)
                    }
                    _ => Self::Nothing,
                }
            }
        }
    }

    fn get(&self, i: usize) -> &[u8] {
        fn between<'v, O: ArrowNativeType>(ends: &[O], values: &'v [u8], i: usize) -> &'v [u8] {
            &values[ends[i].as_usize()..ends[i + 1].as_usize()]
        }
        match self {
            Self::Offsets32(offsets, values) => between(offsets, values, i),
            Self::Offsets64(offsets, values) => between(offsets, values, i),
            Self::Text(array) => array.value(i).as_bytes(),
            Self::Views(array) => array.value(i),
            Self::Bits(array) if array.value(i) => &[1],
            Self::Bits(_) => &[0],
            Self::Words(buffer, start, width) => {
                &buffer[start + i * width..start + (i + 1) * width]
            }
            Self::Nothing => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};
    use std::sync::Arc;

    use arrow_array::{BinaryArray, LargeStringArray, StringArray};

    use foldhash::fast::FixedState;

    use super::*;

    /// The expected result of [`distinct`], computed with a map of the standard library.
    fn twin(values: &[Vec<u8>], entries: usize) -> (Vec<u32>, Vec<u32>) {
        let (mut known, mut first, mut place) = (HashMap::new(), Vec::<u32>::new(), Vec::new());
        for (i, value) in values.iter().enumerate() {
            let next = u32::try_from(first.len()).unwrap();
            let at = match known.get(value) {
                Some(&at) if i >= entries => at,
                _ => {
                    known.entry(value).or_insert(next);
                    first.push(u32::try_from(i).unwrap());
                    next
                }
            };
            place.push(at);
        }
        (first, place)
    }

    #[test]
    fn every_type_finds_what_a_map_finds() {
        let seed = 29;
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..60 {
            let (n, longest) = (rng.usize(0..3_000), [1, 8, 16, 17, 40][case % 5]);
            let letter = |rng: &mut fastrand::Rng| rng.u8(b'a'..=b'c');
            let values: Vec<Vec<u8>> = (0..n)
                .map(|_| (0..rng.usize(0..=longest)).map(|_| letter(&mut rng)).collect())
                .collect();
            let entries = if rng.bool() { 0 } else { rng.usize(0..=n) };
            let expected = twin(&values, entries);
            let texts: Vec<&str> = values.iter().map(|v| std::str::from_utf8(v).unwrap()).collect();
            let arrays: [ArrayRef; 5] = [
                Arc::new(StringArray::from(texts.clone())),
                Arc::new(LargeStringArray::from(texts.clone())),
                Arc::new(BinaryArray::from_iter_values(&values)),
                Arc::new(StringViewArray::from(texts)),
                Arc::new(BinaryViewArray::from_iter_values(&values)),
            ];
            for array in arrays {
                let ty = array.data_type();
                assert_eq!(
                    distinct(&array, entries).unwrap(),
                    expected,
                    "{ty}, seed {seed}, {case}"
                );
            }
        }
    }

    #[test]
    fn values_that_are_made_to_collide_take_no_more_steps() {
        // The first 8 bytes make a factor of the hash 0 where its seed is known.
        let zero = 0x082E_FA98_EC4E_6C89u64.rotate_right(16).to_le_bytes();
        let values: Vec<Vec<u8>> =
            (0..5_000u64).map(|i| [zero, i.to_le_bytes()].concat()).collect();
        let known = FixedState::default();
        let hashes = values.iter().map(|value| known.hash_one(value.as_slice()));
        assert_eq!(hashes.collect::<HashSet<_>>().len(), 1, "they are made to collide");
        for array in [
            Arc::new(BinaryArray::from_iter_values(&values)) as ArrayRef,
            Arc::new(BinaryViewArray::from_iter_values(&values)),
        ] {
            let steps = crate::steps::taken_by(|| {
                let (first, _) = distinct(&array, 0).unwrap();
                assert_eq!(first.len(), values.len());
            });
            assert!(steps < 10_000, "{steps} entries looked at for {}", array.data_type());
        }
    }
}
