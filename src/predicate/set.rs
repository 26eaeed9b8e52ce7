//! [`ValueSet`]: the values of an `in`, in a hash set of their bytes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, Scalar};
use arrow_buffer::BooleanBuffer;
use arrow_ord::cmp;
use arrow_schema::DataType;
use foldhash::quality::RandomState;
use hashbrown::HashSet;

use super::arrays::array_of_one;
use super::value::{LiteralValue, compare_floats};
use crate::error::{Error, Result};

/// Values of one type, to look others up in.
#[derive(Debug, Clone)]
pub(super) enum ValueSet {
    /// So few values that comparing with each is faster.
    Few(Vec<ArrayRef>),
    /// Sorted, in the order of predicates.
    Floats(Arc<[f64]>),
    /// Their bytes.
    Bytes(Arc<HashSet<Box<[u8]>, RandomState>>),
}

/// Maximum number of values that are compared one by one.
const MAX_COMPARED: usize = 4;

impl ValueSet {
    pub(super) fn new(values: &[LiteralValue], data_type: &DataType) -> Result<Self> {
        if data_type.is_floating() {
            let floats = values.iter().filter_map(|value| match value {
                LiteralValue::Float(value) => Some(*value),
                _ => None,
            });
            let mut floats: Vec<f64> = floats.collect();
            floats.sort_by(|a, b| compare_floats(*a, *b));
            return Ok(Self::Floats(floats.into()));
        }
        let arrays = values.iter().map(|value| array_of_one(value, data_type));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        if values.len() <= MAX_COMPARED || *data_type == DataType::Boolean {
            return Ok(Self::Few(arrays));
        }
        let mut set = HashSet::with_capacity_and_hasher(values.len(), RandomState::default());
        for array in &arrays {
            each_value(array, |bytes| set.insert(bytes.into()));
        }
        Ok(Self::Bytes(Arc::new(set)))
    }

    /// Which values of an array of strings are in the set, where one of the two has views and the
    /// other has not.
    pub(super) fn find_in_other_form(&self, array: &ArrayRef) -> Result<BooleanBuffer> {
        let found = match self {
            Self::Few(values) => {
                let mut few = Vec::with_capacity(values.len());
                for value in values {
                    each_value(value, |bytes| {
                        few.push(bytes.to_vec());
                        true
                    });
                }
                each_value(array, |bytes| few.iter().any(|value| value == bytes))
            }
            _ => return self.find(array),
        };
        found.ok_or_else(|| Error::usage("values that cannot be looked up"))
    }

    /// Which values of an array are in the set.
    pub(super) fn find(&self, array: &ArrayRef) -> Result<BooleanBuffer> {
        match self {
            Self::Few(values) => {
                let mut found = BooleanBuffer::new_unset(array.len());
                for value in values {
                    found = &found | cmp::eq(array, &Scalar::new(Arc::clone(value)))?.values();
                }
                Ok(found)
            }
            Self::Floats(sorted) => {
                let has = |x: f64| sorted.binary_search_by(|y| compare_floats(*y, x)).is_ok();
                Ok(match array.data_type() {
                    DataType::Float16 => {
                        let values = array.as_primitive::<Float16Type>().values();
                        BooleanBuffer::collect_bool(values.len(), |i| has(values[i].to_f64()))
                    }
                    DataType::Float32 => {
                        let values = array.as_primitive::<Float32Type>().values();
                        BooleanBuffer::collect_bool(values.len(), |i| has(values[i].into()))
                    }
                    _ => {
                        let values = array.as_primitive::<Float64Type>().values();
                        BooleanBuffer::collect_bool(values.len(), |i| has(values[i]))
                    }
                })
            }
            Self::Bytes(set) => {
                let found = each_value(array, |bytes| set.contains(bytes));
                found.ok_or_else(|| Error::usage("values that cannot be looked up"))
            }
        }
    }
}

/// The result of `test` on the bytes of each value, nulls included; `None` for types without.
pub(super) fn each_value(
    array: &ArrayRef,
    mut test: impl FnMut(&[u8]) -> bool,
) -> Option<BooleanBuffer> {
    let len = array.len();
    Some(match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i).as_bytes()))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i).as_bytes()))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i).as_bytes()))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            BooleanBuffer::collect_bool(len, |i| test(array.value(i)))
        }
        other => {
            let width = other.primitive_width()?;
            let data = array.to_data();
            let bytes = data.buffers().first()?.get(data.offset() * width..)?;
            let mut chunks = bytes.chunks_exact(width);
            BooleanBuffer::collect_bool(len, |_| chunks.next().is_some_and(&mut test))
        }
    })
}

/// Whether the values of one type are views of what the other has copies of.
pub(super) fn are_in_other_form(a: &DataType, b: &DataType) -> bool {
    let is_view_of = |view: &DataType, of: &DataType| {
        matches!(
            (view, of),
            (DataType::Utf8View, DataType::Utf8 | DataType::LargeUtf8)
                | (DataType::BinaryView, DataType::Binary | DataType::LargeBinary)
        )
    };
    is_view_of(a, b) || is_view_of(b, a)
}
