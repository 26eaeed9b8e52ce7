use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeListArray, Int32Array, Int64Array,
    LargeListArray, ListArray, MapArray, RunArray, StringViewArray, StructArray, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Fields};

use super::*;
use crate::error::ErrorKind;

/// Rows with a key, their number, and values of nested views.
fn batch(keys: &[i32], first: i64) -> RecordBatch {
    let numbers = Int64Array::from_iter_values((first..).take(keys.len()));
    let texts: Vec<String> = keys.iter().map(|key| format!("a text of the key {key}")).collect();
    let views = StringViewArray::from_iter_values(&texts);
    let field = Arc::new(arrow_schema::Field::new_list_field(views.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(keys.iter().map(|_| 1));
    let list = ListArray::new(field, offsets, Arc::new(views.clone()), None);
    let columns: [(&str, ArrayRef); 4] = [
        ("key", Arc::new(Int32Array::from(keys.to_vec()))),
        ("number", Arc::new(numbers)),
        ("text", Arc::new(views)),
        ("list", Arc::new(list)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Sorts batches of random keys; returns the rows, and the bytes that were spilled.
fn sorted(memory: u64, batches: &[RecordBatch], folder: &Path) -> (Vec<(i32, i64)>, u64) {
    let sorter = RowSorter::new(batches[0].schema(), [SortColumn::descending("key")]).unwrap();
    let mut sorter = sorter.memory(memory).temp_folder(folder);
    for batch in batches {
        sorter.push(batch).unwrap();
    }
    let rows = sorter.finish().unwrap();
    let spilled = rows.spilled_bytes();
    let mut out = Vec::new();
    for batch in rows {
        let batch = batch.unwrap();
        let keys = batch.column(0).as_primitive::<Int32Type>();
        let numbers = batch.column(1).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let text = format!("a text of the key {}", keys.value(row));
            assert_eq!(batch.column(2).as_string_view().value(row), text);
            let list = batch.column(3).as_list::<i32>().value(row);
            assert_eq!(list.as_string_view().value(0), text);
            out.push((keys.value(row), numbers.value(row)));
        }
    }
    (out, spilled)
}

#[test]
fn rows_beyond_memory_are_sorted_as_those_within_it() {
    let folder = tempfile::tempdir().unwrap();
    let seed = 20_261_126;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut batches = Vec::new();
    let mut first = 0;
    for _ in 0..120 {
        let rows = random.usize(0..400);
        // Few keys: equal rows stand in many runs.
        let keys: Vec<i32> = (0..rows).map(|_| random.i32(0..40)).collect();
        batches.push(batch(&keys, first));
        first += rows as i64;
    }
    let (all, spilled) = sorted(1 << 30, &batches, folder.path());
    assert_eq!(spilled, 0);
    let mut expected = all.clone();
    expected.sort_by_key(|(key, number)| (std::cmp::Reverse(*key), *number));
    assert_eq!(all, expected);
    // In one merge, and in several: two runs at a time.
    let bytes: u64 = batches.iter().map(batch_bytes).sum();
    for (memory, passes) in [(bytes, 1), (bytes / 4, 1), (100 << 10, 3)] {
        let (rows, spilled_now) = sorted(memory, &batches, folder.path());
        assert!(rows == expected, "memory {memory}");
        assert!(spilled_now >= passes * bytes, "{memory}: {spilled_now} of {bytes} bytes");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
}

#[test]
fn few_runs_are_open_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let batches: Vec<_> = (0..300).map(|i| batch(&vec![i % 7; 400], 400 * i64::from(i))).collect();
    let sorter = RowSorter::new(batches[0].schema(), [SortColumn::ascending("key")]).unwrap();
    let mut sorter = sorter.memory(100 << 10).temp_folder(folder.path());
    assert_eq!(sorter.fan_in(), 2);
    let mut spilled = 0;
    for batch in &batches {
        sorter.push(batch).unwrap();
        spilled = spilled.max(sorter.runs.len());
    }
    assert!((4..=9).contains(&spilled), "{spilled} runs");
}

#[test]
fn a_batch_of_a_run_has_no_bytes_of_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let batches: Vec<_> = (0..64).map(|i| batch(&vec![i; 100], 0)).collect();
    let bytes: u64 = batches.iter().map(batch_bytes).sum();
    let (_, spilled) = sorted(bytes, &batches, folder.path());
    assert!(spilled > 0 && spilled < 3 * bytes, "{spilled} bytes of {bytes}");
}

/// Columns with views in them, in every nesting.
fn nests_of_views(keys: &[i32]) -> RecordBatch {
    let texts: Vec<String> = keys.iter().map(|key| format!("a text of the key {key}")).collect();
    let views: ArrayRef = Arc::new(StringViewArray::from_iter_values(&texts));
    let binary: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(&texts));
    let field = |name: &str, of: &ArrayRef| {
        Arc::new(arrow_schema::Field::new(name, of.data_type().clone(), true))
    };
    let item = field("item", &views);
    let ones = || keys.iter().map(|_| 1);
    let nested = StructArray::from(vec![(field("b", &binary), binary.clone())]);
    let nested: ArrayRef = Arc::new(nested);
    let key = Arc::new(arrow_schema::Field::new("key", views.data_type().clone(), false));
    let entries = StructArray::from(vec![(key, views.clone()), (field("value", &nested), nested)]);
    let of_entries = Arc::new(arrow_schema::Field::new("e", entries.data_type().clone(), false));
    let map = MapArray::new(of_entries, OffsetBuffer::from_lengths(ones()), entries, None, false);
    let large =
        LargeListArray::new(item.clone(), OffsetBuffer::from_lengths(ones()), views.clone(), None);
    let columns: [(&str, ArrayRef); 5] = [
        ("key", Arc::new(Int32Array::from(keys.to_vec()))),
        ("binary", binary),
        ("large", Arc::new(large)),
        ("fixed", Arc::new(FixedSizeListArray::new(item, 1, views, None))),
        ("map", Arc::new(map)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn views_in_every_nesting_come_back_from_files_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let batches: Vec<_> = (0..40).map(|i| nests_of_views(&[i % 7, 100 - i, i, 3])).collect();
    let all = |memory: u64| {
        let sorter = RowSorter::new(batches[0].schema(), [SortColumn::ascending("key")]).unwrap();
        let mut sorter = sorter.memory(memory).temp_folder(folder.path());
        batches.iter().for_each(|batch| sorter.push(batch).unwrap());
        let rows = sorter.finish().unwrap();
        let spilled = rows.spilled_bytes();
        let rows: Vec<RecordBatch> = rows.map(Result::unwrap).collect();
        (arrow_select::concat::concat_batches(&batches[0].schema(), &rows).unwrap(), spilled)
    };
    let (within, spilled) = all(1 << 30);
    assert_eq!((within.num_rows(), spilled), (160, 0));
    let (beyond, spilled) = all(10 << 10);
    assert!(spilled > 0);
    assert_eq!(beyond, within);
}

#[test]
fn what_cannot_be_sorted_is_refused() {
    let one = batch(&[1, 2], 0);
    let refused = |path: &str| {
        RowSorter::new(one.schema(), [SortColumn::ascending(path)]).map(drop).unwrap_err().kind()
    };
    assert_eq!(refused("list.list.element"), ErrorKind::Usage);
    assert_eq!(refused("absent"), ErrorKind::Usage);
    assert_eq!(RowSorter::new(one.schema(), []).map(drop).unwrap_err().kind(), ErrorKind::Usage);
    let by_key = || RowSorter::new(one.schema(), [SortColumn::ascending("key")]).unwrap();
    let mut sorter = by_key().memory(1).temp_folder("/no such folder");
    sorter.push(&one).unwrap();
    assert_eq!(sorter.push(&one).unwrap_err().kind(), ErrorKind::Io);
    let mut sorter = by_key().memory(1).without_temp_files();
    sorter.push(&one).unwrap();
    assert_eq!(sorter.push(&one).unwrap_err().kind(), ErrorKind::Limit(LimitKind::Memory));
}

#[test]
fn runs_of_values_keep_their_type_and_may_lie_below_null_structs() {
    let of = |name, data_type, nullable| Arc::new(Field::new(name, data_type, nullable));
    let runs = |ends: Vec<i32>, values: Vec<i32>| -> ArrayRef {
        let (ends, values) = (Int32Array::from(ends), Int32Array::from(values));
        let runs = RunArray::<Int32Type>::try_new(&ends, &values).unwrap();
        // Arrow's kernels make the values nullable.
        let data_type = DataType::RunEndEncoded(
            of("run_ends", DataType::Int32, false),
            of("values", DataType::Int32, false),
        );
        make_array(runs.into_data().into_builder().data_type(data_type).build().unwrap())
    };
    let values = |array: &ArrayRef| -> Vec<i32> {
        let runs = array.as_run::<Int32Type>();
        let values = runs.values().as_primitive::<Int32Type>();
        (0..runs.len()).map(|i| values.value(runs.get_physical_index(i))).collect()
    };
    let batch = |first: i32| {
        let below = runs(vec![1, 3, 4], vec![first, first + 3, first + 1]);
        let field = Field::new("r", below.data_type().clone(), false);
        let nulls = NullBuffer::from(vec![true, true, false, true]);
        let parent = StructArray::new(vec![field].into(), vec![below], Some(nulls));
        let columns: [(&str, ArrayRef); 2] =
            [("v", runs(vec![2, 4], vec![5, first])), ("s", Arc::new(parent))];
        RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, name == "s")),
        )
        .unwrap()
    };
    let batches = [batch(10), batch(20)];
    for (by, expected) in [
        (SortColumn::ascending("v"), [5, 5, 5, 5, 10, 10, 20, 20]),
        (SortColumn::descending("s.r"), [5, 20, 5, 5, 10, 5, 10, 20]),
    ] {
        let mut sorter = RowSorter::new(batches[0].schema(), [by]).unwrap().without_temp_files();
        batches.iter().for_each(|batch| sorter.push(batch).unwrap());
        let rows: Result<Vec<_>> = sorter.finish().unwrap().collect();
        let found: Vec<i32> =
            rows.unwrap().iter().flat_map(|rows| values(rows.column(0))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn values_below_null_structs_are_sorted_in_slices_too() {
    let below: ArrayRef = Arc::new(BooleanArray::from(vec![true, true, false, true, false]));
    let field = Field::new("b", DataType::Boolean, false);
    let nulls = NullBuffer::from(vec![true, false, true, false, true]);
    let parent = StructArray::new(vec![field].into(), vec![below], Some(nulls));
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..5));
    let columns: [(&str, ArrayRef); 2] = [("s", Arc::new(parent)), ("number", numbers)];
    let batch = RecordBatch::try_from_iter(columns).unwrap().slice(1, 4);
    let by = SortColumn::descending("s.b").nulls_first();
    let mut sorter = RowSorter::new(batch.schema(), [by]).unwrap();
    sorter.push(&batch).unwrap();
    let rows: Vec<_> = sorter.finish().unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0].column(1).as_primitive::<Int32Type>().values()[..], [1, 3, 2, 4]);
}

#[test]
fn a_struct_without_fields_has_nothing_to_sort_by() {
    let field = Field::new("s", DataType::Struct(Fields::empty()), true);
    let schema = Arc::new(ArrowSchema::new(vec![field]));
    let error = RowSorter::new(schema, [SortColumn::ascending("s._empty")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}
