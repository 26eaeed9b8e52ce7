//! Bytes that the rows of arrays take in memory. A slice has those of its own rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, GenericListViewArray, OffsetSizeTrait, RunArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;

use super::own_elements::own_range;

/// Bytes of the rows of an array: of lists those of their own elements, and of views those of their
/// values, though rows may share them. A dictionary has all of its entries. At most
/// [`MAX_ARRAY_BYTES`].
pub(crate) fn array_bytes(array: &ArrayRef) -> u64 {
    use DataType as D;
    let below: u64 = match array.data_type() {
        D::Utf8View => of_views(array.as_string_view().views()),
        D::BinaryView => of_views(array.as_binary_view().views()),
        D::Struct(_) => arrays_bytes(array.as_struct().columns()),
        D::List(_) => {
            let lists = array.as_list::<i32>();
            of_elements(lists.offsets(), lists.values())
        }
        D::LargeList(_) => {
            let lists = array.as_list::<i64>();
            of_elements(lists.offsets(), lists.values())
        }
        D::Map(..) => {
            let maps = array.as_map();
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            of_elements(maps.offsets(), &entries)
        }
        D::FixedSizeList(..) => array_bytes(array.as_fixed_size_list().values()),
        D::ListView(_) => of_list_views(array.as_list_view::<i32>()),
        D::LargeListView(_) => of_list_views(array.as_list_view::<i64>()),
        D::RunEndEncoded(ends, _) => match ends.data_type() {
            D::Int16 => array.as_run_opt::<Int16Type>().map_or(0, of_runs),
            D::Int32 => array.as_run_opt::<Int32Type>().map_or(0, of_runs),
            _ => array.as_run_opt::<Int64Type>().map_or(0, of_runs),
        },
        _ => {
            let bytes = array.to_data().get_slice_memory_size();
            return bytes.unwrap_or_else(|_| array.get_buffer_memory_size()) as u64;
        }
    };
    let validity = array.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
    below.saturating_add(validity as u64).min(MAX_ARRAY_BYTES)
}

/// Bytes of the rows of several arrays; at most [`MAX_ARRAY_BYTES`].
pub(crate) fn arrays_bytes(arrays: &[ArrayRef]) -> u64 {
    let bytes = arrays.iter().map(array_bytes).fold(0, u64::saturating_add);
    bytes.min(MAX_ARRAY_BYTES)
}

/// More bytes than any memory has: lists that share elements can stand for any number, and sums of
/// what batches have must not overflow.
pub(crate) const MAX_ARRAY_BYTES: u64 = 1 << 48;

/// Bytes of views and of the values that they refer to; a short value is in its view.
fn of_views(views: &[u128]) -> u64 {
    const MAX_INLINE: u64 = 12;
    let lens = views.iter().map(|view| view & u128::from(u32::MAX));
    let lens = lens.map(|len| u64::try_from(len).unwrap_or(u64::MAX));
    let long = lens.filter(|len| *len > MAX_INLINE).fold(0, u64::saturating_add);
    long.saturating_add(size_of_val(views) as u64)
}

fn of_elements<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &ArrayRef) -> u64 {
    let own = own_range(offsets);
    let elements = array_bytes(&values.slice(own.start, own.len()));
    elements.saturating_add(size_of_val(&offsets[..]) as u64)
}

/// Lists may share elements: each is counted as often as lists have it, all of them alike.
fn of_list_views<O: OffsetSizeTrait>(lists: &GenericListViewArray<O>) -> u64 {
    let elements: u128 = lists.sizes().iter().map(|size| size.as_usize() as u128).sum();
    let all = u128::from(array_bytes(lists.values()));
    let own = all.saturating_mul(elements) / (lists.values().len() as u128).max(1);
    let places = size_of_val(&lists.offsets()[..]) + size_of_val(&lists.sizes()[..]);
    u64::try_from(own).unwrap_or(u64::MAX).saturating_add(places as u64)
}

fn of_runs<R: RunEndIndexType>(runs: &RunArray<R>) -> u64 {
    let values = runs.values_slice();
    array_bytes(&values).saturating_add((values.len() * size_of::<R::Native>()) as u64)
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::{
        BinaryViewArray, Int32Array, ListViewArray, StringArray, StringViewArray, StructArray,
    };
    use arrow_schema::Field;

    use super::*;

    fn bytes(array: impl Array + 'static) -> u64 {
        array_bytes(&(Arc::new(array) as ArrayRef))
    }

    #[test]
    fn views_have_the_bytes_of_their_long_values() {
        let long = "x".repeat(1000);
        let views = StringViewArray::from(vec![Some("short"), None, Some(&long), Some(&long)]);
        assert_eq!(bytes(views.clone()), 4 * 16 + 2000 + 1);
        assert_eq!(bytes(views.slice(0, 3)), 3 * 16 + 1000 + 1);
        let binary = BinaryViewArray::from(vec![&b"0123456789ab"[..], &b"0123456789abc"[..]]);
        assert_eq!(bytes(binary), 2 * 16 + 13);
        let field = Arc::new(Field::new("text", DataType::Utf8View, true));
        let group = StructArray::from(vec![(field, Arc::new(views) as ArrayRef)]);
        assert_eq!(bytes(group.slice(2, 1)), 16 + 1000 + 1);
    }

    #[test]
    fn a_slice_of_lists_has_its_own_elements() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        for n in 0..100 {
            (0..n).for_each(|i| lists.values().append_value(i));
            lists.append(true);
        }
        let lists = lists.finish();
        assert_eq!(bytes(lists.slice(0, 3)), 3 * 8 + 4 * 4);
        assert_eq!(bytes(lists.slice(10, 2)), 21 * 8 + 3 * 4);
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        let (offsets, sizes) = (vec![0, 10, 10], vec![5, 20, 20]);
        let views =
            ListViewArray::new(item, offsets.into(), sizes.into(), lists.values().clone(), None);
        assert_eq!(bytes(views.clone()), 45 * 8 + 3 * 8);
        assert_eq!(bytes(views.slice(0, 1)), 5 * 8 + 8);
        // Lists that share lists that share lists.
        let mut shared = lists.values().clone();
        for _ in 0..10 {
            let item = Arc::new(Field::new_list_field(shared.data_type().clone(), true));
            let len = i32::try_from(shared.len()).unwrap();
            let (offsets, sizes) = (vec![0; 16], vec![len; 16]);
            let views = ListViewArray::new(item, offsets.into(), sizes.into(), shared, None);
            shared = Arc::new(views);
        }
        assert_eq!(array_bytes(&shared), MAX_ARRAY_BYTES);
        // More of them than a number has bytes.
        let field = Arc::new(Field::new("lists", shared.data_type().clone(), true));
        let group: ArrayRef = Arc::new(StructArray::from(vec![(field, shared); 70_000]));
        assert_eq!(array_bytes(&group), MAX_ARRAY_BYTES);
    }

    #[test]
    fn a_slice_of_runs_has_its_own_runs() {
        let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "bcd", "", "e"]));
        let ends = Int32Array::from(vec![4, 5, 9, 20]);
        let runs = RunArray::<Int32Type>::try_new(&ends, &values).unwrap();
        assert_eq!(bytes(runs.slice(0, 5)), 4 + 3 * 4 + 2 * 4);
        assert_eq!(bytes(runs.slice(10, 5)), 1 + 2 * 4 + 4);
    }
}
