//! Lists whose values are their own elements: a slice of lists has those of all rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray,
};
use arrow_schema::{DataType, FieldRef};

use super::own_elements::own_elements;
use crate::error::Result;

/// The same rows, without the elements of lists and entries of maps that are before or behind them.
/// Kernels that convert lists convert those, too. What list views refer to stays.
///
/// # Errors
/// `Arrow` if an array contradicts its type.
pub fn trimmed(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::List(item) => list::<i32>(array, item)?,
        DataType::LargeList(item) => list::<i64>(array, item)?,
        DataType::Map(field, is_sorted) => {
            let of = array.as_map();
            let entries: ArrayRef = Arc::new(of.entries().clone());
            let (offsets, entries) = own_elements(of.offsets(), &entries);
            let entries = trimmed(&entries)?.as_struct().clone();
            let nulls = of.nulls().cloned();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *is_sorted)?)
        }
        DataType::FixedSizeList(item, size) => {
            let of = array.as_fixed_size_list();
            let (values, nulls) = (trimmed(of.values())?, of.nulls().cloned());
            let (item, len) = (item.clone(), of.len());
            Arc::new(FixedSizeListArray::try_new_with_length(item, *size, values, nulls, len)?)
        }
        DataType::Struct(fields) => {
            let of = array.as_struct();
            let columns = of.columns().iter().map(trimmed).collect::<Result<_>>()?;
            let (fields, nulls) = (fields.clone(), of.nulls().cloned());
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, of.len())?)
        }
        _ => array.clone(),
    })
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef> {
    let of = array.as_list::<O>();
    let (offsets, values) = own_elements(of.offsets(), of.values());
    let (values, nulls) = (trimmed(&values)?, of.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(item.clone(), offsets, values, nulls)?))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{ListArray, UInt8Array};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn slices_of_lists_have_their_own_elements() {
        let rows = (0..6).map(|i| (i % 3 > 0).then(|| (0..i).map(Some)));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
        let item = Arc::new(Field::new("item", lists.data_type().clone(), true));
        let pairs = FixedSizeListArray::try_new(item, 2, lists, None).expect("pairs");
        let numbers: ArrayRef = Arc::new(UInt8Array::from(vec![7, 8, 9]));
        let fields = vec![
            Field::new("pairs", pairs.data_type().clone(), true),
            Field::new("numbers", DataType::UInt8, true),
        ];
        let of: ArrayRef =
            Arc::new(StructArray::new(fields.into(), vec![Arc::new(pairs), numbers], None));
        for (first, len) in [(0, 3), (0, 0), (1, 1), (1, 2), (2, 1), (3, 0)] {
            let slice = of.slice(first, len);
            let own = trimmed(&slice).expect("lists");
            assert_eq!(&own, &slice);
            let lists = own.as_struct().column(0).as_fixed_size_list().values().clone();
            let elements: usize = (2 * first..2 * (first + len)).filter(|i| i % 3 > 0).sum();
            assert_eq!(lists.as_list::<i32>().values().len(), elements);
        }
    }
}
