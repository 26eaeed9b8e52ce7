//! Tests of rows by their numbers in several files, and of shuffled reads.

use std::collections::HashSet;
use std::path::PathBuf;

use fastrand::Rng;
use marquetry::arrow_array::RecordBatch;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::format::{SchemaElement, Type};
use marquetry::{
    Dataset, ErrorKind, LimitKind, Reader, RowSelection, Shuffled, WriteOptions, Writer, col,
};

use crate::support::numbered::rows;
use crate::support::{Chunk, file, required};

/// Files whose rows are numbered through, with row groups and pages of odd sizes.
struct Files {
    _folder: tempfile::TempDir,
    paths: Vec<PathBuf>,
    rows: i64,
}

fn files(lens: &[i64]) -> Files {
    let folder = tempfile::tempdir().unwrap();
    let (mut paths, mut first) = (Vec::new(), 0);
    for (i, len) in lens.iter().enumerate() {
        let path = folder.path().join(format!("{i}.parquet"));
        let options = WriteOptions::new().with_page_rows(100).with_row_group_rows(1_500);
        let mut writer = Writer::create_with(&path, rows(0, 1).schema(), options).unwrap();
        writer.write(&rows(first, *len)).unwrap();
        writer.finish().unwrap();
        paths.push(path);
        first += len;
    }
    Files { _folder: folder, paths, rows: first }
}

/// The numbers of a batch, whose rows must be whole.
fn numbers(batch: &RecordBatch) -> Vec<i64> {
    let numbers = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    for (i, number) in numbers.iter().enumerate() {
        assert_eq!(batch.column(1).slice(i, 1).to_data(), rows(*number, 1).column(1).to_data());
    }
    numbers
}

fn epoch(shuffled: &Shuffled) -> Vec<Vec<i64>> {
    let mut batches = shuffled.batches().unwrap();
    let mut out = Vec::new();
    while let Some(batch) = batches.next_batch().unwrap() {
        out.push(numbers(&batch));
    }
    assert!(batches.next_batch().unwrap().is_none());
    out
}

#[test]
fn rows_of_all_files_are_taken_in_the_order_that_was_asked_for() {
    let files = files(&[2_000, 1, 4_321, 7]);
    let dataset = Dataset::open(&files.paths).unwrap();
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for n in [0, 1, 2, 50, 900] {
        let wanted: Vec<u64> = (0..n).map(|_| rng.u64(0..files.rows as u64)).collect();
        let batch = dataset.take(&wanted).unwrap();
        let expected: Vec<i64> = wanted.iter().map(|row| *row as i64).collect();
        assert_eq!(numbers(&batch), expected, "seed {seed}");
        assert_eq!(batch.schema(), dataset.schema().unwrap());
    }
    let last = dataset.take(&[files.rows as u64 - 1, 2_000, 1_999, 2_000]).unwrap();
    assert_eq!(numbers(&last), [files.rows - 1, 2_000, 1_999, 2_000]);
    // Rows are numbered as in the files, whatever is selected.
    let narrow = dataset.clone().offset(5).filter(col("n").lt(0)).project(["n"]).unwrap();
    assert_eq!(narrow.take(&[3]).unwrap().num_rows(), 1);
    let error = dataset.take(&[files.rows as u64]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[cfg(feature = "async")]
#[test]
fn rows_are_taken_from_asynchronous_sources_too() {
    use marquetry::AsyncReader;

    let files = files(&[300, 200]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut readers = Vec::new();
        for path in &files.paths {
            let bytes = bytes::Bytes::from(std::fs::read(path).unwrap());
            readers.push(AsyncReader::open_async(bytes).await.unwrap());
        }
        let batch = Dataset::new(readers).take(&[450, 2, 450, 299]).await.unwrap();
        assert_eq!(numbers(&batch), [450, 2, 450, 299]);
    });
}

#[test]
fn an_epoch_has_every_row_once_and_is_the_same_for_the_same_seed() {
    let files = files(&[5_000, 3, 2_777, 1_500]);
    let dataset = Dataset::open(&files.paths).unwrap();
    for (window, batch_rows) in
        [(20_000, 64), (20_000, 1), (3_000, 1_000), (1, 7), (1 << 30, 333), (50_000, 100_000)]
    {
        let shuffled = dataset.shuffled(7, window).batch_rows(batch_rows);
        let found = epoch(&shuffled);
        let all: Vec<i64> = found.concat();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..files.rows), "window {window}");
        assert_ne!(all, sorted, "window {window}");
        let (last, full) = found.split_last().unwrap();
        assert!(full.iter().all(|batch| batch.len() == batch_rows), "window {window}");
        assert!(last.len() <= batch_rows);
        assert_eq!(epoch(&shuffled), found, "window {window}");
        assert_ne!(epoch(&shuffled.clone().epoch(1)), found);
        assert_ne!(epoch(&dataset.shuffled(8, window).batch_rows(batch_rows)), found);
    }
}

#[test]
fn parts_of_an_epoch_are_disjoint_and_complete() {
    let files = files(&[5_000, 2_777, 1_500]);
    let dataset = Dataset::open(&files.paths).unwrap();
    for parts in [1, 2, 3, 7] {
        let shuffled = dataset.shuffled(3, 20_000).batch_rows(50).epoch(2);
        let found: Vec<Vec<i64>> =
            (0..parts).map(|part| epoch(&shuffled.clone().part(part, parts)).concat()).collect();
        let all: HashSet<i64> = found.concat().into_iter().collect();
        assert_eq!((all.len(), found.concat().len()), (files.rows as usize, files.rows as usize));
        let mean = files.rows as usize / parts;
        assert!(found.iter().all(|part| part.len() * 3 > mean * 2), "parts are about equal");
    }
    let error = dataset.shuffled(3, 20_000).part(2, 2).batches().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn an_epoch_goes_on_where_it_was_left() {
    let files = files(&[3_000, 1_234]);
    let dataset = Dataset::open(&files.paths).unwrap();
    for (window, batch_rows) in [(20_000, 64), (4_000, 500), (4_000, 1), (1, 999), (1 << 30, 100)] {
        let shuffled = dataset.shuffled(5, window).batch_rows(batch_rows).part(1, 2);
        let whole = epoch(&shuffled);
        for skip in [0, 1, 2, 3, 5, 9, whole.len() / 2, whole.len() - 1, whole.len(), 10_000] {
            let rest = epoch(&shuffled.clone().skip(skip as u64));
            let expected = whole.get(skip..).unwrap_or_default();
            assert_eq!(rest, expected, "window {window}, {batch_rows} rows, {skip} skipped");
        }
    }
}

#[test]
fn what_is_skipped_is_not_read() {
    let files = files(&[9_000]);
    let dataset = Dataset::open(&files.paths).unwrap();
    let shuffled = dataset.shuffled(5, 20_000).batch_rows(100);
    let before = dataset.progress().rows();
    assert_eq!(epoch(&shuffled.skip(85)).len(), 5);
    let read = dataset.progress().rows() - before;
    assert!(read < 4_000, "{read} rows");
}

#[test]
fn places_in_the_order_tell_little_of_places_in_the_files() {
    let files = files(&[30_000, 30_000, 40_000]);
    let dataset = Dataset::open(&files.paths).unwrap();
    // A window of about a tenth of the rows.
    let bytes = dataset.estimated_cost().unwrap();
    let order = epoch(&dataset.shuffled(11, bytes / 10)).concat();
    let n = order.len() as f64;
    let mean = (n - 1.0) / 2.0;
    let products =
        order.iter().enumerate().map(|(i, row)| (i as f64 - mean) * (*row as f64 - mean));
    // The variance of the numbers from 0 to n - 1.
    let variance = (n * n - 1.0) / 12.0;
    let correlation = products.sum::<f64>() / n / variance;
    assert!(correlation.abs() < 0.15, "{correlation}");
    // Neighbours in the order are seldom from the same block, and never one after the other.
    let near = order.windows(2).filter(|pair| (pair[0] - pair[1]).abs() < 150).count();
    assert!((near as f64) < n * 0.1, "{near} of {n}");
    // Each quarter of the order has about a quarter of the rows of each quarter of the files.
    for quarter in order.chunks(order.len() / 4) {
        let mut from = [0usize; 4];
        quarter.iter().for_each(|row| from[(*row as usize * 4 / order.len()).min(3)] += 1);
        for count in from {
            let share = count as f64 / quarter.len() as f64;
            assert!((0.1..0.4).contains(&share), "{from:?}");
        }
    }
}

#[test]
fn only_wanted_rows_are_shuffled() {
    let files = files(&[3_000, 2_000]);
    let dataset = Dataset::open(&files.paths).unwrap();
    let odd = RowSelection::from_rows(3_000, (1..3_000).step_by(2)).unwrap();
    let first = dataset.readers()[0].clone().select(odd).unwrap();
    let second = dataset.readers()[1].clone().row_groups([1]).unwrap();
    let dataset = Dataset::new([first, second]).offset(10).limit(1_600);
    let mut found = epoch(&dataset.shuffled(1, 5_000).batch_rows(32)).concat();
    found.sort_unstable();
    let expected = (1..3_000).step_by(2).chain(4_500..5_000).skip(10).take(1_600);
    assert!(found.into_iter().eq(expected));
    let filtered = dataset.filter(col("n").gt(7));
    let error = filtered.shuffled(1, 5_000).batches().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
    let none = Dataset::open(&files.paths).unwrap().limit(0);
    assert!(epoch(&none.shuffled(1, 5_000)).is_empty());
}

/// A file that states this many rows, and has none.
fn rows_without_bytes(columns: Vec<SchemaElement>, chunks: Vec<Chunk>, rows: i64) -> Reader {
    Reader::new(bytes::Bytes::from(file(columns, rows, chunks))).unwrap()
}

#[test]
fn sizes_that_a_file_states_are_no_reason_to_allocate_blocks() {
    let rows = 1u64 << 32;
    let mut chunk = Chunk::new(Type::ByteArray, rows as usize, &[vec![0; 100]]);
    chunk.meta.total_uncompressed_size = 1 << 62;
    let leaf = required("v", Type::ByteArray);
    let reader = rows_without_bytes(vec![leaf], vec![chunk], rows as i64);
    let error = Dataset::new([reader]).shuffled(1, 1 << 20).batches().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory), "{error}");
}

#[test]
fn more_rows_than_can_be_counted_are_the_greatest_number() {
    let reader = rows_without_bytes(Vec::new(), Vec::new(), i64::MAX);
    let dataset = Dataset::new([reader.clone(), reader.clone(), reader]);
    assert_eq!(dataset.rows().unwrap(), u64::MAX);
    assert_eq!(dataset.estimated_cost().unwrap(), u64::MAX);
}
