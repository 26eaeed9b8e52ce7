//! [`KeySet`]: the keys of a range that pass a filter, one bit for each.
//!
//! Joins look keys up in hash tables. If there are many rows and the keys lie close together, each
//! possible key is looked up once, and rows only test bits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::SchemaRef;
use datafusion_common::{Result, ScalarValue};

/// The keys from one to another, both counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyRange {
    first: i64,
    last: i64,
}

/// Keys of a range that is looked at: two megabytes of bits.
const MAX_KEYS: u64 = 1 << 24;

/// Keys that are looked up at a time.
const STEP: i64 = 8192;

impl KeyRange {
    /// The range between two bounds; `None` if they are of other types than integers of 4 or 8
    /// bytes, or too far apart.
    pub(crate) fn new(lower: &ScalarValue, upper: &ScalarValue) -> Option<Self> {
        let (first, last) = match (lower, upper) {
            (ScalarValue::Int32(Some(lower)), ScalarValue::Int32(Some(upper))) => {
                (i64::from(*lower), i64::from(*upper))
            }
            (ScalarValue::Int64(Some(lower)), ScalarValue::Int64(Some(upper))) => (*lower, *upper),
            _ => return None,
        };
        let range = Self { first, last };
        (first <= last && last.abs_diff(first) < MAX_KEYS).then_some(range)
    }

    /// How many keys there are in it.
    pub(crate) fn keys(self) -> u64 {
        self.last.abs_diff(self.first) + 1
    }
}

/// The keys of a range that pass.
#[derive(Debug)]
pub(crate) struct KeySet {
    first: i64,
    passed: BooleanBuffer,
}

impl KeySet {
    /// Looks up all keys of a range, each a row of `schema`, which has one column; `None` if that
    /// is not of integers.
    ///
    /// # Errors
    /// Those of `test`.
    pub(crate) fn new(
        range: KeyRange,
        schema: &SchemaRef,
        test: impl Fn(&RecordBatch) -> Result<BooleanArray>,
    ) -> Result<Option<Self>> {
        let mut passed = BooleanBufferBuilder::new(0);
        let mut from = range.first;
        loop {
            let to = from.saturating_add(STEP - 1).min(range.last);
            let narrow = || (from..=to).map(i32::try_from).collect::<Result<Vec<_>, _>>().ok();
            let keys: Option<ArrayRef> = match schema.fields().first().map(|it| it.data_type()) {
                Some(&arrow_schema::DataType::Int64) => {
                    Some(Arc::new(Int64Array::from_iter_values(from..=to)))
                }
                Some(&arrow_schema::DataType::Int32) => {
                    narrow().map(|keys| Arc::new(Int32Array::from(keys)) as ArrayRef)
                }
                _ => None,
            };
            let Some(keys) = keys else { return Ok(None) };
            let tested = test(&RecordBatch::try_new(Arc::clone(schema), vec![keys])?)?;
            passed.append_buffer(&match tested.nulls() {
                Some(nulls) => tested.values() & nulls.inner(),
                None => tested.values().clone(),
            });
            if to == range.last {
                return Ok(Some(Self { first: range.first, passed: passed.finish() }));
            }
            from = to + 1;
        }
    }

    /// Which of the keys of a column pass; `None` if it is not of integers.
    pub(crate) fn find(&self, keys: &ArrayRef) -> Option<BooleanArray> {
        let found = if let Some(keys) = keys.as_primitive_opt::<Int64Type>() {
            self.find_in(keys.values().iter().copied())
        } else {
            let keys = keys.as_primitive_opt::<Int32Type>()?;
            self.find_in(keys.values().iter().map(|key| i64::from(*key)))
        };
        let found = match keys.nulls() {
            Some(valid) => &found & valid.inner(),
            None => found,
        };
        Some(BooleanArray::new(found, None))
    }

    fn find_in(&self, mut keys: impl ExactSizeIterator<Item = i64>) -> BooleanBuffer {
        let (bits, len) = (self.passed.values(), self.passed.len() as u64);
        BooleanBuffer::collect_bool(keys.len(), |_| {
            let Some(key) = keys.next() else { return false };
            let at = key.wrapping_sub(self.first).cast_unsigned();
            let byte = usize::try_from(at / 8).ok().and_then(|i| bits.get(i));
            at < len && byte.is_some_and(|byte| byte >> (at % 8) & 1 == 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field, Schema};

    #[test]
    fn keys_are_found_as_they_are_looked_up_and_no_others() {
        let seed = 3;
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..40 {
            let wide = rng.bool();
            let (min, max) =
                if wide { (i64::MIN, i64::MAX) } else { (i32::MIN.into(), i32::MAX.into()) };
            let len = rng.i64(0..30_000);
            let first = match rng.u8(0..4) {
                0 => min,
                1 => max - len,
                _ => rng.i64(-5000..5000),
            };
            let last = first + len;
            let scalar = |key: i64| match wide {
                true => ScalarValue::Int64(Some(key)),
                false => ScalarValue::Int32(Some(i32::try_from(key).unwrap())),
            };
            let range = KeyRange::new(&scalar(first), &scalar(last)).unwrap();
            assert_eq!(range.keys(), len as u64 + 1);
            let column = |keys: Vec<Option<i64>>| -> ArrayRef {
                match wide {
                    true => Arc::new(Int64Array::from(keys)),
                    false => {
                        let keys = keys.into_iter().map(|key| key.map(|key| key as i32));
                        Arc::new(Int32Array::from_iter(keys))
                    }
                }
            };
            let data_type = column(vec![]).data_type().clone();
            let schema = Arc::new(Schema::new(vec![Field::new("k", data_type, true)]));
            let passes = |key: i64| key % 7 == 3 || key % 11 == -2;
            let test = |batch: &RecordBatch| -> Result<BooleanArray> {
                let keys = batch.column(0);
                let key = |i| match wide {
                    true => keys.as_primitive::<Int64Type>().value(i),
                    false => keys.as_primitive::<Int32Type>().value(i).into(),
                };
                Ok((0..keys.len())
                    .map(|i| Some(passes(key(i))).filter(|it| *it || i % 2 == 0))
                    .collect())
            };
            let set = KeySet::new(range, &schema, test).unwrap().unwrap();
            let keys = (0..500).map(|_| match rng.u8(0..8) {
                0 => None,
                1 => Some(rng.i64(min..=max)),
                2 => Some([min, max, first, last][rng.usize(0..4)]),
                3 => Some(first.saturating_add(rng.i64(-70..0)).max(min)),
                4 => Some(last.saturating_add(rng.i64(0..70)).min(max)),
                _ => Some(rng.i64(first..=last)),
            });
            let keys: Vec<Option<i64>> = keys.collect();
            let found = set.find(&column(keys.clone())).unwrap();
            for (i, key) in keys.iter().enumerate() {
                let expected = key.is_some_and(|key| (first..=last).contains(&key) && passes(key));
                assert_eq!(found.value(i), expected, "seed {seed}, case {case}, {key:?}");
            }
        }
    }

    #[test]
    fn ranges_that_are_too_long_or_of_other_types_are_left_alone() {
        let int = |key| ScalarValue::Int64(Some(key));
        assert!(KeyRange::new(&int(i64::MIN), &int(i64::MAX)).is_none());
        assert!(KeyRange::new(&int(0), &int(1 << 24)).is_none());
        assert!(KeyRange::new(&int(5), &int(4)).is_none());
        assert!(KeyRange::new(&int(1), &ScalarValue::Int32(Some(4))).is_none());
        assert!(
            KeyRange::new(&ScalarValue::Date32(Some(1)), &ScalarValue::Date32(Some(4))).is_none()
        );
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]));
        let range = KeyRange::new(&int(0), &int(4)).unwrap();
        let test = |_: &RecordBatch| unreachable!("there are no keys");
        assert!(KeySet::new(range, &schema, test).unwrap().is_none());
    }
}
