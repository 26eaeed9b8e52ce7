//! [`materialize`] converts strings that were read for a filter, as a dictionary or as views, to
//! the type that the caller asked for.
//!
//! `read::batch` uses it after the filter, so that only values of rows that passed are copied, once
//! each.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteArrayType, ByteViewType, StringViewType};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, BinaryViewArray, GenericByteArray, StringViewArray,
};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::values::Offsets;
use crate::error::{Error, Result};
use crate::free_lists::FreeLists;
use crate::rows::{keys_of, nulls_of, value_bytes};
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::trusted::{self, ViewStrings};

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
                DataType::Utf8View | DataType::BinaryView => viewed(dictionary, to),
                _ => Ok(take(values, dictionary.keys(), None)?),
            }
        }
        (DataType::Utf8View, DataType::Utf8) => copied::<StringViewType, i32>(&array, to),
        (DataType::Utf8View, DataType::LargeUtf8) => copied::<StringViewType, i64>(&array, to),
        (DataType::BinaryView, DataType::Binary) => copied::<BinaryViewType, i32>(&array, to),
        (DataType::BinaryView, DataType::LargeBinary) => copied::<BinaryViewType, i64>(&array, to),
        (from, to) => Err(Error::internal(format_args!("{from} was read where {to} is wanted"))),
    }
}

/// Bytes of the values that [`materialize`] would copy.
pub(in crate::read) fn materialized_bytes(array: &ArrayRef, to: &DataType) -> u64 {
    if array.data_type() == to { 0 } else { value_bytes(array) }
}

/// Views of the entries that the keys of a dictionary array name. Those of 64-bit offsets are
/// copied one by one.
fn viewed(dictionary: &dyn AnyDictionaryArray, to: &DataType) -> Result<ArrayRef> {
    let values = dictionary.values();
    match values.data_type() {
        DataType::Utf8 => named(dictionary, values.as_string::<i32>(), to),
        DataType::Binary => named(dictionary, values.as_binary::<i32>(), to),
        DataType::LargeUtf8 => {
            let found = take(values, dictionary.keys(), None)?;
            Ok(Arc::new(StringViewArray::from(found.as_string::<i64>())))
        }
        DataType::LargeBinary => {
            let found = take(values, dictionary.keys(), None)?;
            Ok(Arc::new(BinaryViewArray::from(found.as_binary::<i64>())))
        }
        _ => Ok(take(values, dictionary.keys(), None)?),
    }
}

/// Views of the dictionary entries that the keys refer to; none of them is null.
fn named<T: ByteArrayType<Offset = i32>>(
    dictionary: &dyn AnyDictionaryArray,
    values: &GenericByteArray<T>,
    to: &DataType,
) -> Result<ArrayRef> {
    let (mut keys, nulls) = (keys_of(dictionary), nulls_of(dictionary));
    if let Some(nulls) = &nulls {
        // The values of nulls are not copied.
        let valid = nulls.iter().zip(&mut keys);
        valid.filter(|(is_valid, _)| !is_valid).for_each(|(_, key)| *key = u32::MAX);
    }
    let mut views = ViewStrings::new();
    views.append_named(values, &keys)?;
    views.finish(to, nulls, &FreeLists::none())
}

/// Looks up the keys of a dictionary array, whose `values` are none of them null.
fn looked_up<T: ByteArrayType<Offset = i32>>(
    dictionary: &dyn AnyDictionaryArray,
    values: &GenericByteArray<T>,
    to: &DataType,
) -> Result<ArrayRef> {
    let slots = dictionary.len();
    let nulls = nulls_of(dictionary);
    let mut keys = keys_of(dictionary);
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int32Array, StringArray};

    /// A dictionary of 100 entries of `len(i)` bytes, and slots that name those of `keys`.
    fn coded(len: impl Fn(usize) -> usize, keys: Vec<Option<i32>>) -> DictionaryArray<Int32Type> {
        let entries = (0..100).map(|i| format!("{i:02}é{}", "x".repeat(len(i))));
        let entries = StringArray::from_iter_values(entries);
        DictionaryArray::new(Int32Array::from(keys), Arc::new(entries))
    }

    #[test]
    fn views_of_a_dictionary_are_those_of_its_slots_however_few_of_it_they_name() {
        let all: Vec<_> = (0..1000).map(|i| Some(i * 37 % 100)).collect();
        let few = vec![Some(3), None, Some(99), Some(3)];
        for (len, keys, copied) in [
            (0, all.clone(), Some(0)),
            (40, all, None),
            (40, few.clone(), Some(132)),
            (0, few, Some(0)),
            (40, vec![None, None], Some(0)),
            (40, vec![], Some(0)),
        ] {
            let array = coded(|_| len, keys);
            let values = take(array.values(), array.keys(), None).unwrap();
            let expected = StringViewArray::from(values.as_string::<i32>());
            let entries = array.values().as_string::<i32>().value_data().as_ptr();
            let found = materialize(Arc::new(array), &DataType::Utf8View).unwrap();
            found.to_data().validate_full().unwrap();
            assert_eq!(found.as_string_view(), &expected);
            let buffers = found.as_string_view().data_buffers();
            match copied {
                Some(bytes) => assert_eq!(buffers.iter().map(|b| b.len()).sum::<usize>(), bytes),
                None => assert_eq!(buffers[0].as_ptr(), entries, "the entries are shared"),
            }
        }
    }
}
