//! Bytes of the values of arrays as a copy would have them: rows share the entries of dictionaries,
//! runs, and the bytes of views, and in a copy each has its own.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, OffsetSizeTrait, RunArray, UnionArray,
    downcast_integer_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;

/// Bytes of the values of an array if each slot has its own, as text or a copy of another type may
/// take: slots share the entries of dictionaries, runs, and the bytes of views. Neither offsets nor
/// validity count.
pub fn value_bytes(array: &dyn Array) -> u64 {
    measured(array, 0)
}

/// Bytes of the JSON text of an array, roughly: those of its values, and what is around each of
/// them, where null and the names of members take more than the values themselves.
#[cfg(any(test, feature = "engine"))]
pub fn text_bytes(array: &dyn Array) -> u64 {
    // `null,`
    measured(array, 5)
}

/// The same with `around` bytes more for each slot, at all depths, and then the names of members.
fn measured(array: &dyn Array, around: u64) -> u64 {
    let slots = array.len() as u64;
    bytes_inside(array, around).saturating_add(slots.saturating_mul(around))
}

fn bytes_inside(array: &dyn Array, around: u64) -> u64 {
    use DataType as D;
    let fixed = |width: usize| array.len() as u64 * width as u64;
    match array.data_type() {
        D::Utf8 => between(array.as_string::<i32>().value_offsets()),
        D::Binary => between(array.as_binary::<i32>().value_offsets()),
        D::LargeUtf8 => between(array.as_string::<i64>().value_offsets()),
        D::LargeBinary => between(array.as_binary::<i64>().value_offsets()),
        D::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        D::BinaryView => array.as_binary_view().lengths().map(u64::from).sum(),
        D::Dictionary(..) => of_dictionary(array.as_any_dictionary(), around),
        D::RunEndEncoded(ends, _) => match ends.data_type() {
            D::Int16 => array.as_run_opt::<Int16Type>().map_or(0, |runs| of_runs(runs, around)),
            D::Int32 => array.as_run_opt::<Int32Type>().map_or(0, |runs| of_runs(runs, around)),
            _ => array.as_run_opt::<Int64Type>().map_or(0, |runs| of_runs(runs, around)),
        },
        D::Struct(fields) => {
            let columns = array.as_struct().columns().iter();
            let names = fields.iter().map(|field| field.name().len() as u64 + AROUND_NAME);
            let names = if around > 0 { total(names) } else { 0 };
            let inside = total(columns.map(|column| measured(column, around)));
            inside.saturating_add(names.saturating_mul(array.len() as u64))
        }
        D::List(_) => {
            let lists = array.as_list::<i32>();
            of_spans(lists.values(), span(lists.value_offsets()).into_iter(), around)
        }
        D::LargeList(_) => {
            let lists = array.as_list::<i64>();
            of_spans(lists.values(), span(lists.value_offsets()).into_iter(), around)
        }
        D::Map(..) => {
            let maps = array.as_map();
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            of_spans(&entries, span(maps.value_offsets()).into_iter(), around)
        }
        D::ListView(_) => {
            let lists = array.as_list_view::<i32>();
            let spans = lists.offsets().iter().zip(lists.sizes());
            of_spans(lists.values(), spans.map(|(at, len)| (at.as_usize(), len.as_usize())), around)
        }
        D::LargeListView(_) => {
            let lists = array.as_list_view::<i64>();
            let spans = lists.offsets().iter().zip(lists.sizes());
            of_spans(lists.values(), spans.map(|(at, len)| (at.as_usize(), len.as_usize())), around)
        }
        D::FixedSizeList(..) => measured(array.as_fixed_size_list().values(), around),
        D::FixedSizeBinary(size) => fixed(size.as_usize()),
        D::Boolean => fixed(1).div_ceil(8),
        D::Null => 0,
        D::Union(..) => of_union(array.as_union(), around),
        other => fixed(other.primitive_width().unwrap_or(0)),
    }
}

/// The quotes and the colon of a name.
const AROUND_NAME: u64 = 3;

fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

/// Where the values of some byte strings or lists begin, and how many there are.
fn span<O: OffsetSizeTrait>(offsets: &[O]) -> Option<(usize, usize)> {
    let (first, last) = (offsets.first()?.as_usize(), offsets.last()?.as_usize());
    Some((first, last.saturating_sub(first)))
}

fn between<O: OffsetSizeTrait>(offsets: &[O]) -> u64 {
    span(offsets).map_or(0, |(_, len)| len as u64)
}

fn of_spans(values: &ArrayRef, spans: impl Iterator<Item = (usize, usize)>, around: u64) -> u64 {
    total(spans.map(|(first, len)| measured(&values.slice(first, len), around)))
}

/// Runs have one value for all of their slots.
fn of_runs<R: RunEndIndexType>(runs: &RunArray<R>, around: u64) -> u64 {
    let (values, mut start) = (runs.values_slice(), 0);
    let ends = runs.run_ends().sliced_values().enumerate();
    total(ends.map(|(run, end)| {
        let slots = end.as_usize() - std::mem::replace(&mut start, end.as_usize());
        measured(&values.slice(run, 1), around).saturating_mul(slots as u64)
    }))
}

fn of_union(union: &UnionArray, around: u64) -> u64 {
    let slot = |i: usize| {
        let values = union.child(union.type_id(i));
        measured(&values.slice(union.value_offset(i), 1), around)
    };
    match (union.offsets(), union.data_type()) {
        // A sparse union has a slot in each of its arrays.
        (None, DataType::Union(fields, _)) => {
            total(fields.iter().map(|(id, _)| measured(union.child(id), around)))
        }
        _ => total((0..union.len()).map(slot)),
    }
}

fn of_dictionary(dictionary: &dyn AnyDictionaryArray, around: u64) -> u64 {
    let values = dictionary.values();
    match values.data_type() {
        DataType::Utf8 => of_strings(dictionary, values.as_string::<i32>().value_offsets()),
        DataType::Binary => of_strings(dictionary, values.as_binary::<i32>().value_offsets()),
        DataType::LargeUtf8 => of_strings(dictionary, values.as_string::<i64>().value_offsets()),
        DataType::LargeBinary => of_strings(dictionary, values.as_binary::<i64>().value_offsets()),
        _ => of_keys(dictionary, |key| match key < values.len() {
            true => measured(&values.slice(key, 1), around),
            false => 0,
        }),
    }
}

fn of_strings<O: OffsetSizeTrait>(dictionary: &dyn AnyDictionaryArray, offsets: &[O]) -> u64 {
    of_keys(dictionary, |key| {
        offsets.get(key..).and_then(<[O]>::first_chunk).map_or(0, |ends: &[O; 2]| between(ends))
    })
}

/// The key of a null may be anything, and counts nothing. The keys are not copied: the memory for
/// them could not be refused.
fn of_keys(dictionary: &dyn AnyDictionaryArray, bytes: impl Fn(usize) -> u64) -> u64 {
    let Some(last) = dictionary.values().len().checked_sub(1) else {
        return 0;
    };
    let keys = dictionary.keys();
    downcast_integer_array!(
        keys => {
            let key = |i: usize| {
                keys.values().get(i).map_or(0, |key| bytes(key.as_usize().min(last)))
            };
            match nulls_of(dictionary) {
                None => total((0..keys.len()).map(key)),
                Some(nulls) => total(nulls.valid_indices().map(key)),
            }
        }
        _ => 0,
    )
}

/// Which entry each slot of a dictionary array has. That of a null may be any, and without entries
/// there are only nulls.
pub fn dictionary_keys(dictionary: &dyn AnyDictionaryArray) -> Vec<usize> {
    match dictionary.values().is_empty() {
        true => vec![0; dictionary.len()],
        false => dictionary.normalized_keys(),
    }
}

/// The same for dictionaries of files, whose indices have 32 bits.
pub(crate) fn keys_of(dictionary: &dyn AnyDictionaryArray) -> Vec<u32> {
    match dictionary.keys().as_primitive_opt::<Int32Type>() {
        Some(keys) => keys.values().iter().map(|key| key.cast_unsigned()).collect(),
        None => {
            let keys = dictionary_keys(dictionary).into_iter();
            keys.map(|key| u32::try_from(key).unwrap_or(u32::MAX)).collect()
        }
    }
}

pub(crate) fn nulls_of(dictionary: &dyn AnyDictionaryArray) -> Option<NullBuffer> {
    dictionary.keys().nulls().filter(|nulls| nulls.null_count() > 0).cloned()
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{ListBuilder, StringViewBuilder, UnionBuilder};
    use arrow_array::{
        BooleanArray, DictionaryArray, Int32Array, ListArray, StringArray, StructArray,
    };
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn what_rows_share_counts_for_each_of_them() {
        let entries: ArrayRef = Arc::new(StringArray::from(vec!["a", "bcd", ""]));
        let keys = Int32Array::from(vec![Some(1), Some(1), None, Some(0), Some(2)]);
        let coded: ArrayRef = Arc::new(DictionaryArray::new(keys, entries.clone()));
        assert_eq!(value_bytes(&coded), 7);
        assert_eq!(value_bytes(&coded.slice(1, 2)), 3);
        let none = Int32Array::from(vec![None, None]);
        let empty: ArrayRef = Arc::new(StringArray::new_null(0));
        assert_eq!(value_bytes(&DictionaryArray::new(none, empty)), 0);
        let ends = Int32Array::from(vec![4, 5, 9]);
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &entries).unwrap());
        assert_eq!(value_bytes(&runs), 4 + 3);
        assert_eq!(value_bytes(&runs.slice(2, 3)), 2 + 3);
        let mut views = StringViewBuilder::new();
        let block = views.append_block(vec![b'x'; 100].into());
        for _ in 0..3 {
            views.try_append_view(block, 0, 100).unwrap();
        }
        let views: ArrayRef = Arc::new(views.finish());
        assert_eq!(value_bytes(&views), 300);
        let field = |of: &ArrayRef| Field::new("f", of.data_type().clone(), true);
        let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        let fields = vec![field(&views), field(&bits)];
        let group = StructArray::new(fields.into(), vec![views, bits], None);
        assert_eq!(value_bytes(&group), 301);
        assert_eq!(value_bytes(&group.slice(1, 1)), 101);
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        for n in [3, 0, 2] {
            (0..n).for_each(|_| lists.values().append_value("four"));
            lists.append(true);
        }
        let lists = lists.finish();
        assert_eq!((value_bytes(&lists), value_bytes(&lists.slice(1, 2))), (20, 8));
        // In lists, what is around a value counts more than it.
        let nulls: ArrayRef = Arc::new(arrow_array::NullArray::new(1000));
        let members = vec![field(&nulls)];
        let group: ArrayRef = Arc::new(StructArray::new(members.into(), vec![nulls], None));
        let item = Arc::new(Field::new_list_field(group.data_type().clone(), true));
        let lengths = OffsetBuffer::from_lengths([1, 999]);
        let lists = ListArray::new(item, lengths, group, None);
        assert_eq!((value_bytes(&lists), text_bytes(&lists)), (0, 2 * 5 + 1000 * (5 + 4 + 5)));
        assert_eq!(text_bytes(&lists.slice(0, 1)), 5 + 5 + 4 + 5);
        let mut dense = UnionBuilder::with_capacity_dense(3);
        dense.append::<Int32Type>("a", 1).unwrap();
        dense.append::<Int64Type>("b", 2).unwrap();
        dense.append::<Int64Type>("b", 3).unwrap();
        let dense = dense.build().unwrap();
        assert_eq!((value_bytes(&dense), value_bytes(&dense.slice(0, 2))), (20, 12));
    }
}
