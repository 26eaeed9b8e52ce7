use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, StringViewArray};

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
    let bytes: u64 = batches.iter().map(rows_bytes).sum();
    for (memory, passes) in [(bytes, 1), (bytes / 4, 1), (100 << 10, 3)] {
        let (rows, spilled_now) = sorted(memory, &batches, folder.path());
        assert!(rows == expected, "memory {memory}");
        assert!(spilled_now >= passes * bytes, "{memory}: {spilled_now} of {bytes} bytes");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
}

#[test]
fn a_batch_of_a_run_has_no_bytes_of_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let batches: Vec<_> = (0..64).map(|i| batch(&vec![i; 100], 0)).collect();
    let bytes: u64 = batches.iter().map(rows_bytes).sum();
    let (_, spilled) = sorted(bytes, &batches, folder.path());
    assert!(spilled > 0 && spilled < 3 * bytes, "{spilled} bytes of {bytes}");
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
