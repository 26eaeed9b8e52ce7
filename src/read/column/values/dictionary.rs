//! Reads dictionary arrays: the data pages have the keys, the dictionary page has the values.

use std::marker::PhantomData;

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, ArrayRef, PrimitiveArray, types};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;

use super::indices::{FromIndices, IndexReader, too_many};
use super::reader::ValueReader;
use crate::error::{Error, Result};
use crate::free_lists::FreeLists;
use crate::trusted;

/// The reader of a dictionary array. `values` decodes its entries.
pub(super) fn dictionary_reader(
    key: &DataType,
    value: &DataType,
    values: Box<dyn ValueReader>,
) -> Result<Box<dyn ValueReader>> {
    fn boxed<K: ArrowDictionaryKeyType>(
        value: &DataType,
        values: Box<dyn ValueReader>,
    ) -> Box<dyn ValueReader> {
        IndexReader::boxed(FromKeys::<K>(PhantomData), value, values)
    }
    Ok(match key {
        DataType::Int8 => boxed::<types::Int8Type>(value, values),
        DataType::Int16 => boxed::<types::Int16Type>(value, values),
        DataType::Int32 => boxed::<types::Int32Type>(value, values),
        DataType::Int64 => boxed::<types::Int64Type>(value, values),
        DataType::UInt8 => boxed::<types::UInt8Type>(value, values),
        DataType::UInt16 => boxed::<types::UInt16Type>(value, values),
        DataType::UInt32 => boxed::<types::UInt32Type>(value, values),
        DataType::UInt64 => boxed::<types::UInt64Type>(value, values),
        other => {
            return Err(Error::usage(format_args!("{other} cannot be the key of a dictionary")));
        }
    })
}

/// Indices as keys.
struct FromKeys<K>(PhantomData<fn() -> K>);

impl<K: ArrowDictionaryKeyType> FromIndices for FromKeys<K> {
    fn build(
        &self,
        indices: &[u32],
        values: ArrayRef,
        nulls: Option<NullBuffer>,
        free_lists: &FreeLists,
    ) -> Result<ArrayRef> {
        if K::Native::from_usize(values.len()).is_none()
            && let Some(highest) = indices.iter().copied().max()
            && K::Native::from_usize(highest as usize).is_none()
        {
            return Err(too_many(highest as usize + 1));
        }
        let mut keys = free_lists.take(indices.len())?;
        keys.extend(indices.iter().map(|&index| K::Native::usize_as(index as usize)));
        let keys = PrimitiveArray::<K>::try_new(free_lists.pooled(keys).into(), nulls)?;
        trusted::dictionary_array(keys, values)
    }
}
