//! Filters, joins and reorders the rows of batches, whatever their types.
//!
//! For use in place of the kernels of Arrow. Traps: those make the values of run-end encoded arrays
//! nullable, whatever their type was, and allocate an element for each list, whatever its size,
//! which a file can state as it likes. Such arrays are copied here.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_array::{make_array, new_empty_array, new_null_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field, SchemaRef};
use arrow_select::filter::{FilterBuilder, FilterPredicate, prep_null_mask_filter};

use crate::bytes::saturated;
use crate::error::{Error, LimitKind, Result};
use crate::memory;

mod own_elements;
mod array_bytes;
#[cfg(any(test, feature = "engine"))]
mod trimmed;
mod value_bytes;

pub(crate) use array_bytes::{MAX_ARRAY_BYTES, array_bytes, arrays_bytes};
pub(crate) use own_elements::own_elements;
#[cfg(feature = "engine")]
pub use trimmed::trimmed;
#[cfg(feature = "engine")]
pub use value_bytes::text_bytes;
pub use value_bytes::{dictionary_keys, value_bytes};
pub(crate) use value_bytes::{keys_of, nulls_of};

/// Which rows of arrays are kept.
pub(crate) struct RowFilter {
    rows: BooleanArray,
    filter: FilterPredicate,
}

impl RowFilter {
    /// The rows whose bits are set, and not null, of one or of more columns.
    pub(crate) fn new(rows: &BooleanArray, columns: usize) -> Self {
        let rows = match rows.null_count() {
            0 => rows.clone(),
            _ => prep_null_mask_filter(rows),
        };
        let filter = FilterBuilder::new(&rows);
        let filter = if columns > 1 { filter.optimize() } else { filter }.build();
        Self { rows, filter }
    }

    /// How many rows are kept.
    pub(crate) fn rows(&self) -> usize {
        self.filter.count()
    }

    /// Keeps those rows of an array.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if is_copied(array.data_type()) {
            let slices = self.rows.values().set_slices();
            return copy(
                &[array],
                self.rows.true_count(),
                slices.map(|(start, end)| (0, start..end)),
            );
        }
        Ok(self.filter.filter(array)?)
    }
}

/// The rows of a batch whose bits are set; those whose bits are null are left out.
///
/// # Errors
/// `Usage` if there are not as many bits as rows.
pub fn filter(batch: &RecordBatch, rows: &BooleanArray) -> Result<RecordBatch> {
    if rows.len() != batch.num_rows() {
        let (bits, rows) = (rows.len(), batch.num_rows());
        return Err(Error::usage(format_args!("a filter of {bits} bits for {rows} rows")));
    }
    let filter = RowFilter::new(rows, batch.num_columns());
    let columns = batch.columns().iter().map(|column| filter.apply(column));
    let columns = memory::try_collected(columns)?;
    batch_of(batch.schema_ref(), columns, filter.rows())
}

/// The rows of batches of a schema, one batch after the other.
///
/// # Errors
/// `Usage` or `Arrow` if a batch has fewer columns, or columns of other types; `Arrow` if offsets
/// of 32 bits have no room for the rows.
#[cfg(any(test, feature = "engine"))]
pub fn concat(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    of_columns(schema, batches, rows, |parts, _| concat_arrays(parts))
}

/// The rows at `places` of all rows of `batches`, in that order.
///
/// # Errors
/// As `concat`.
///
/// # Panics
/// If a place is of no row.
pub fn take(schema: &SchemaRef, batches: &[RecordBatch], places: &[u64]) -> Result<RecordBatch> {
    let mut ends = memory::vec_for(batches.len())?;
    let mut rows = 0u64;
    for batch in batches {
        rows += batch.num_rows() as u64;
        ends.push(rows);
    }
    let in_order = places.len() as u64 == rows && (0..).zip(places).all(|(i, place)| i == *place);
    let indices = UInt64Array::from(memory::copied(places)?);
    of_columns(schema, batches, places.len(), |parts, data_type| {
        if is_copied(data_type) {
            let row = |place: &u64| {
                let (part, row) = place_in(&ends, *place);
                (part, row..row.saturating_add(1))
            };
            return copy(parts, places.len(), places.iter().map(row));
        }
        let all = concat_arrays(parts)?;
        Ok(if in_order { all } else { arrow_select::take::take(&all, &indices, None)? })
    })
}

/// The rows of arrays of a type, one array after the other.
pub(crate) fn concat_arrays(arrays: &[&ArrayRef]) -> Result<ArrayRef> {
    if let [only] = arrays {
        return Ok(ArrayRef::clone(only));
    }
    if arrays.first().is_some_and(|first| is_copied(first.data_type())) {
        let rows = arrays.iter().map(|array| array.len()).sum();
        let runs = arrays.iter().enumerate();
        return copy(arrays, rows, runs.map(|(i, array)| (i, 0..array.len())));
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| &***array).collect();
    Ok(arrow_select::concat::concat(&arrays)?)
}

/// The rows at `places` of `batches`, in that order: each is the index of a batch, and of one of
/// its rows.
///
/// # Errors
/// As `concat`.
///
/// # Panics
/// If a place is of no row.
pub fn interleave(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    places: &[(usize, usize)],
) -> Result<RecordBatch> {
    of_columns(schema, batches, places.len(), |parts, data_type| {
        if is_copied(data_type) {
            let row = |(part, row): &(usize, usize)| (*part, *row..row.saturating_add(1));
            return copy(parts, places.len(), places.iter().map(row));
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|part| &***part).collect();
        Ok(arrow_select::interleave::interleave(&parts, places)?)
    })
}

/// Bytes that a copy of all rows takes. Those of dictionaries and of views share most of theirs.
pub(crate) fn copied_bytes(array: &ArrayRef) -> usize {
    let of_lists = |values: &ArrayRef, offsets: usize| copied_bytes(values) + offsets;
    match array.data_type() {
        DataType::Dictionary(..) => array.as_any_dictionary().keys().get_buffer_memory_size(),
        DataType::Utf8View | DataType::BinaryView => array.len() * size_of::<u128>(),
        DataType::Struct(_) => array.as_struct().columns().iter().map(copied_bytes).sum(),
        DataType::List(_) => of_lists(array.as_list::<i32>().values(), array.len() * 4),
        DataType::LargeList(_) => of_lists(array.as_list::<i64>().values(), array.len() * 8),
        DataType::FixedSizeList(..) => of_lists(array.as_fixed_size_list().values(), 0),
        DataType::Map(..) => {
            let map = array.as_map();
            map.entries().columns().iter().map(copied_bytes).sum::<usize>() + array.len() * 4
        }
        _ => array.get_buffer_memory_size(),
    }
}

/// Nulls of a type, such as those of a column that a file does not have.
///
/// # Errors
/// `Limit(Memory)` if they may take more than `max_bytes`: the size of a list, which a file can
/// state as it likes, is that of a null too.
pub fn nulls(data_type: &DataType, rows: usize, max_bytes: usize) -> Result<ArrayRef> {
    let bytes = memory::bytes_of_nulls(data_type, rows);
    if bytes > max_bytes {
        return Err(Error::limit(
            LimitKind::Memory,
            format_args!(
                "nulls of {rows} rows take {bytes} bytes, and {max_bytes} are allowed; ask for \
                 fewer rows per batch"
            ),
        ));
    }
    null_array(data_type, rows)
}

/// As Arrow's `new_null_array`, which panics if run ends cannot count the rows.
///
/// # Errors
/// `Limit(ArrayLength)` if they cannot: fewer rows may do.
pub(crate) fn null_array(data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    if !runs_have_room(data_type, rows) {
        let why = format_args!("run ends of {data_type} cannot count {rows} rows of nulls");
        return Err(Error::limit(LimitKind::ArrayLength, why));
    }
    Ok(new_null_array(data_type, rows))
}

/// Whether the run ends of a type, and of all types in it, can count its nulls.
fn runs_have_room(data_type: &DataType, slots: usize) -> bool {
    match data_type {
        DataType::RunEndEncoded(ends, values) => {
            let max = match ends.data_type() {
                DataType::Int16 => i16::MAX.cast_unsigned().into(),
                DataType::Int32 => saturated(i32::MAX.cast_unsigned().into()),
                _ => usize::MAX,
            };
            slots <= max && runs_have_room(values.data_type(), 1)
        }
        DataType::FixedSizeList(field, size) => {
            let slots = slots.saturating_mul(usize::try_from(*size).unwrap_or(0));
            runs_have_room(field.data_type(), slots)
        }
        DataType::Struct(fields) => {
            fields.iter().all(|field| runs_have_room(field.data_type(), slots))
        }
        _ => true,
    }
}

/// A place in batches that follow each other, for [`interleave`]: `ends` has the number of rows up
/// to the end of each.
pub(crate) fn place_in(ends: &[u64], row: u64) -> (usize, usize) {
    let part = ends.partition_point(|end| *end <= row);
    let first = part.checked_sub(1).and_then(|before| ends.get(before)).copied();
    (part, saturated(row - first.unwrap_or_default()))
}

/// The batch of the rows that `make` makes of each column of the batches.
fn of_columns<'a>(
    schema: &SchemaRef,
    batches: &'a [RecordBatch],
    rows: usize,
    make: impl Fn(&[&ArrayRef], &DataType) -> Result<ArrayRef>,
) -> Result<RecordBatch> {
    let mut columns = memory::vec_for(schema.fields().len())?;
    for (i, field) in schema.fields().iter().enumerate() {
        let part = |batch: &'a RecordBatch| batch.columns().get(i).ok_or_else(|| missing(field));
        let parts: Vec<&ArrayRef> = memory::try_collected(batches.iter().map(part))?;
        columns.push(match parts.is_empty() {
            true => new_empty_array(field.data_type()),
            false => make(&parts, field.data_type())?,
        });
    }
    batch_of(schema, columns, rows)
}

#[cold]
fn missing(field: &Field) -> Error {
    Error::usage(format_args!("a batch has no column {:?}, which its schema has", field.name()))
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// An element of more bytes, even if it is null, is not to be allocated before it is there.
const WIDE: usize = 256;

/// Lists of a fixed size of more elements are copied whole. The kernels of Arrow make an index for
/// each element, even of those that have no bytes.
const LONG: i32 = 64;

/// Whether values are copied here, because the kernels of Arrow do not handle the type: they name
/// the fields of run-end encoded types anew, derive the number of values of no bytes from their
/// bytes, and allocate elements that no list has. Types that hold such a type are copied too.
fn is_copied(data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(..) | DataType::FixedSizeBinary(0) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => {
            is_copied(field.data_type()) || memory::bytes_of_nulls(field.data_type(), 1) > WIDE
        }
        DataType::FixedSizeList(field, size) => *size > LONG || is_copied(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_copied(field.data_type())),
        DataType::Dictionary(_, values) => is_copied(values),
        _ => false,
    }
}

/// Concatenates ranges of the arrays. `rows` is their total length.
fn copy(
    arrays: &[&ArrayRef],
    rows: usize,
    runs: impl Iterator<Item = (usize, Range<usize>)>,
) -> Result<ArrayRef> {
    let mut types = arrays.iter().map(|array| array.data_type());
    let first = types.next();
    if types.any(|other| Some(other) != first) {
        return Err(Error::usage("arrays of different types are not joined"));
    }
    let data: Vec<_> = arrays.iter().map(|array| array.to_data()).collect();
    let rows = data.first().map_or(0, |of| memory::slots_beforehand(of.data_type(), rows));
    let mut out = MutableArrayData::new(data.iter().collect(), false, rows);
    for (array, rows) in runs {
        out.try_extend(array, rows.start, rows.end)?;
    }
    Ok(make_array(out.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use arrow_array::{Int32Array, RunArray, types::Int32Type};
    use std::sync::Arc;

    use arrow_schema::Schema;

    #[test]
    fn runs_of_values_that_are_never_null_stay_so() {
        let ends = Int32Array::from(vec![2, 5, 6]);
        let values = Int32Array::from(vec![7, 8, 9]);
        let data = RunArray::<Int32Type>::try_new(&ends, &values).unwrap().into_data();
        let of = |name, data_type| Arc::new(Field::new(name, data_type, false));
        let data_type =
            DataType::RunEndEncoded(of("run_ends", DataType::Int32), of("values", DataType::Int32));
        let column = make_array(data.into_builder().data_type(data_type.clone()).build().unwrap());
        let schema = Arc::new(Schema::new(vec![Field::new("v", data_type, false)]));
        let batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
        let decoded = |batch: &RecordBatch| -> Vec<i32> {
            let runs = batch.column(0).as_any().downcast_ref::<RunArray<Int32Type>>().unwrap();
            let values = runs.values().as_any().downcast_ref::<Int32Array>().unwrap().clone();
            (0..runs.len()).map(|i| values.value(runs.get_physical_index(i))).collect()
        };
        let keep = BooleanArray::from(vec![true, false, true, true, false, true]);
        let kept = RowFilter::new(&keep, 1).apply(batch.column(0)).unwrap();
        let kept = RecordBatch::try_new(schema.clone(), vec![kept]).unwrap();
        assert_eq!(decoded(&kept), [7, 8, 8, 9]);
        let keep = keep.iter().enumerate().map(|(i, keep)| (i != 5).then_some(keep?)).collect();
        assert_eq!(decoded(&filter(&batch, &keep).unwrap()), [7, 8, 8], "nulls are left out");
        let twice = [batch.clone(), batch];
        let all = concat(&schema, &twice).unwrap();
        assert_eq!(decoded(&all), [7, 7, 8, 8, 8, 9, 7, 7, 8, 8, 8, 9]);
        let taken = take(&schema, &twice, &[11, 0, 6, 3, 3]).unwrap();
        assert_eq!(decoded(&taken), [9, 7, 7, 8, 8]);
        let taken = interleave(&schema, &twice, &[(1, 5), (0, 0), (1, 0)]).unwrap();
        assert_eq!(decoded(&taken), [9, 7, 7]);
    }

    #[test]
    fn batches_without_columns_have_rows() {
        let schema = Arc::new(Schema::empty());
        let twice = [batch_of(&schema, vec![], 3).unwrap(), batch_of(&schema, vec![], 2).unwrap()];
        let keep = BooleanArray::from(vec![Some(true), None, Some(true)]);
        assert_eq!(filter(&twice[0], &keep).unwrap().num_rows(), 2);
        assert_eq!(concat(&schema, &twice).unwrap().num_rows(), 5);
        assert_eq!(take(&schema, &twice, &[4, 0, 4]).unwrap().num_rows(), 3);
        assert_eq!(interleave(&schema, &twice, &[(1, 0)]).unwrap().num_rows(), 1);
    }

    #[test]
    fn nulls_are_as_large_as_their_type_says() {
        let lists = |size| {
            let field = Arc::new(Field::new_list_field(DataType::Int32, true));
            DataType::FixedSizeList(field, size)
        };
        assert_eq!(nulls(&lists(10), 100, 1 << 13).unwrap().null_count(), 100);
        let error = nulls(&lists(i32::MAX), 100, 1 << 30).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory), "{error}");
        let of = |name, data_type, nullable| Arc::new(Field::new(name, data_type, nullable));
        let (ends, values) = (of("run_ends", DataType::Int16, false), DataType::Int32);
        let runs = DataType::RunEndEncoded(ends, of("values", values, true));
        assert_eq!(nulls(&runs, 32_767, 1 << 30).unwrap().len(), 32_767);
        let pairs = DataType::FixedSizeList(of("item", runs.clone(), true), 2);
        for (data_type, rows) in [(runs, 32_768), (pairs, 16_384)] {
            let error = nulls(&data_type, rows, 1 << 30).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::ArrayLength), "{error}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        for bits in [2, 4] {
            let error = filter(&batch, &BooleanArray::from(vec![true; bits])).unwrap_err();
            assert!(error.to_string().contains("bits for 3 rows"), "{error}");
        }
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int32, true));
        let error = concat(&Arc::new(Schema::new(fields.to_vec())), &[batch]).unwrap_err();
        assert!(error.to_string().contains("no column \"b\""), "{error}");
        let batch = |data_type| {
            let column = new_null_array(&data_type, 2);
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        let two = [batch(DataType::FixedSizeBinary(0)), batch(DataType::FixedSizeBinary(1))];
        let error = concat(two[0].schema_ref(), &two).unwrap_err();
        assert!(error.to_string().contains("different types"), "{error}");
    }

    #[test]
    fn long_lists_of_no_bytes_need_no_index_for_each_element() {
        let field = Arc::new(Field::new_list_field(DataType::Null, true));
        let lists = new_null_array(&DataType::FixedSizeList(field, 1 << 30), 3);
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        let (schema, twice) = (batch.schema(), [batch.clone(), batch.clone()]);
        assert_eq!(filter(&batch, &vec![true, false, true].into()).unwrap().num_rows(), 2);
        assert_eq!(concat(&schema, &twice).unwrap().num_rows(), 6);
        assert_eq!(take(&schema, &twice, &[4, 0, 4]).unwrap().num_rows(), 3);
        assert_eq!(interleave(&schema, &twice, &[(1, 0)]).unwrap().num_rows(), 1);
    }
}
