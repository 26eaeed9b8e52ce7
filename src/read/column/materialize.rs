//! [`materialize`]: strings that were read for a filter, as a dictionary or as views, converted to
//! the type that the caller asked for.
//!
//! Used by `read::batch` after the filter, so that only values of rows that passed are copied, each
//! once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteArrayType, ByteViewType, Int32Type, StringViewType};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, BinaryViewArray, GenericByteArray, OffsetSizeTrait,
    StringViewArray,
};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::values::Offsets;
use crate::error::{Error, Result};
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::trusted;

/// The same values, as this type.
///
/// # Errors
/// `Limit` if they do not fit 32-bit offsets.
pub(in crate::read) fn materialize(array: ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array);
    }
    match (array.data_type(), to) {
        (DataType::Dictionary(..), _) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            match to {
                DataType::Utf8 => looked_up(dictionary, values.as_string::<i32>(), to),
                DataType::Binary => looked_up(dictionary, values.as_binary::<i32>(), to),
                DataType::Utf8View | DataType::BinaryView => viewed(dictionary),
                _ => Ok(take(values, dictionary.keys(), None)?),
            }
        }
        (DataType::Utf8View, DataType::Utf8) => copied::<StringViewType, i32>(&array, to),
        (DataType::Utf8View, DataType::LargeUtf8) => copied::<StringViewType, i64>(&array, to),
        (DataType::BinaryView, DataType::Binary) => copied::<BinaryViewType, i32>(&array, to),
        (DataType::BinaryView, DataType::LargeBinary) => copied::<BinaryViewType, i64>(&array, to),
        (from, to) => Err(Error::usage(format_args!("{from} was read where {to} is wanted"))),
    }
}

/// Bytes of the strings that [`materialize`] would copy.
pub(in crate::read) fn materialized_bytes(array: &ArrayRef, to: &DataType) -> u64 {
    fn of_keys<O: OffsetSizeTrait>(dictionary: &dyn AnyDictionaryArray, offsets: &[O]) -> u64 {
        let len = |key: usize| match offsets.get(key..key + 2) {
            Some([start, end]) => end.as_usize().saturating_sub(start.as_usize()) as u64,
            _ => 0,
        };
        // Without entries all keys are null, and there is nothing to count.
        if offsets.len() < 2 {
            return 0;
        }
        let (keys, nulls) = (dictionary.normalized_keys(), dictionary.keys().nulls());
        let is_valid = |i: usize| nulls.is_none_or(|nulls| nulls.is_valid(i));
        let valid = keys.iter().enumerate().filter(|(i, _)| is_valid(*i));
        valid.map(|(_, key)| len(*key)).sum()
    }
    if array.data_type() == to {
        return 0;
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = dictionary.values();
        return match values.data_type() {
            DataType::Utf8 => of_keys(dictionary, values.as_string::<i32>().value_offsets()),
            DataType::Binary => of_keys(dictionary, values.as_binary::<i32>().value_offsets()),
            DataType::LargeUtf8 => of_keys(dictionary, values.as_string::<i64>().value_offsets()),
            DataType::LargeBinary => of_keys(dictionary, values.as_binary::<i64>().value_offsets()),
            _ => 0,
        };
    }
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(u64::from).sum(),
        _ => 0,
    }
}

/// Views of the entries that the keys of a dictionary array name. The strings are not copied,
/// unless most entries are not named.
fn viewed(dictionary: &dyn AnyDictionaryArray) -> Result<ArrayRef> {
    let views = |array: &ArrayRef| -> Result<ArrayRef> {
        Ok(match array.data_type() {
            DataType::Utf8 => Arc::new(StringViewArray::from(array.as_string::<i32>())),
            DataType::LargeUtf8 => Arc::new(StringViewArray::from(array.as_string::<i64>())),
            DataType::Binary => Arc::new(BinaryViewArray::from(array.as_binary::<i32>())),
            DataType::LargeBinary => Arc::new(BinaryViewArray::from(array.as_binary::<i64>())),
            _ => Arc::clone(array),
        })
    };
    let values = dictionary.values();
    if values.len() / 2 > dictionary.len() {
        return views(&take(values, dictionary.keys(), None)?);
    }
    Ok(take(&views(values)?, dictionary.keys(), None)?)
}

/// Looks up the keys of a dictionary array, whose `values` are none of them null.
fn looked_up<T: ByteArrayType<Offset = i32>>(
    dictionary: &dyn AnyDictionaryArray,
    values: &GenericByteArray<T>,
    to: &DataType,
) -> Result<ArrayRef> {
    let slots = dictionary.len();
    let nulls = dictionary.keys().nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let mut keys: Vec<u32> = match dictionary.keys().as_primitive_opt::<Int32Type>() {
        Some(keys) => keys.values().iter().map(|key| key.cast_unsigned()).collect(),
        None if values.is_empty() => vec![0; slots],
        None => {
            let keys = dictionary.normalized_keys();
            keys.into_iter().map(|key| u32::try_from(key).expect("an index of 32 bits")).collect()
        }
    };
    let mut valid = Bitmap::default();
    if let Some(nulls) = &nulls {
        valid.append_bits(nulls.validity(), nulls.offset(), slots);
        compact(&mut keys, 0, &valid, 0);
    }
    let mut out = Offsets::<i32>::new();
    out.look_up(&keys, values)?;
    if nulls.is_some() {
        out.spread_nulls(&valid, slots, keys.len());
    }
    out.into_array(to, nulls)
}

/// Copies the values that views point at.
fn copied<V: ByteViewType, O: trusted::Offset>(
    array: &ArrayRef,
    to: &DataType,
) -> Result<ArrayRef> {
    let views = array.as_byte_view::<V>();
    let mut out = Offsets::<O>::new();
    out.append_views(views)?;
    out.into_array(to, views.nulls().cloned())
}
