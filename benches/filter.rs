//! Filtered reads from memory, on one thread: us beside the `parquet` crate 60.1 with its `RowFilter`, and beside our own full scan with a filter
//! behind it, in turns, in one process.
//!
//! `cargo bench --bench filter` prints one Markdown table; `cargo bench --bench filter -- TEXT` only the rows whose name holds the text. A ratio is the
//! other / ours, the median over the rounds of the pairs measured side by side.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::redundant_clone,
    reason = "a bench makes its own data"
)]

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Instant;

use arrow_array_60::cast::AsArray;
use arrow_array_60::types::Int64Type;
use arrow_array_60::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use marquetry::{Predicate, Reader, col};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

const BATCH: usize = 65_536;
const ROUNDS: usize = 7;
const ROWS: i64 = 1_000_000;

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    println!(
        "| filter | rows kept | RowFilter, ms | our scan + filter, ms | ours, ms | RowFilter / ours | scan / ours |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (order, file) in [("sorted", file(false)), ("random", file(true))] {
        for share in [0.001, 0.01, 0.1, 0.5, 0.99] {
            let below = (ROWS as f64 * share) as i64;
            let name = format!("{order} keys, {} %", share * 100.0);
            if name.contains(&wanted) {
                let predicate = col("key").lt(below);
                let theirs = move |batch: RecordBatch| {
                    let keys = batch.column(0).as_primitive::<Int64Type>();
                    BooleanArray::from_unary(keys, |key| key < below)
                };
                row(&name, &file, &predicate, 0, theirs);
            }
        }
        let name = format!("{order} keys, count a city of 50");
        if name.contains(&wanted) {
            let predicate = col("city").eq("city 7");
            let whole = Reader::new(file.clone()).expect("a file").threads(1).batch_rows(BATCH);
            let few = whole.clone().project(["city"]).expect("a column");
            let bound = predicate.bind_to(&few.schema().expect("a schema")).expect("a column");
            let scan = || -> usize {
                let batches = few.batches().expect("a plan").map(|batch| {
                    bound.evaluate(&batch.expect("a batch")).expect("verdicts").true_count()
                });
                batches.sum()
            };
            let whole = whole.filter(predicate);
            let ours = || whole.count().expect("a count") as usize;
            assert_eq!(ours(), scan());
            let (mut full, mut own, mut ratios) = (vec![], vec![], vec![]);
            for _ in 0..ROUNDS {
                let (a, b) = (time(&scan), time(&ours));
                full.push(a);
                own.push(b);
                ratios.push(a / b);
            }
            let (full, own, ratio) = (median(full), median(own), median(ratios));
            println!("| {name} | {} | | {full:.2} | {own:.2} | | {ratio:.2} |", ours());
        }
        let name = format!("{order} keys, a city of 50");
        if name.contains(&wanted) {
            let theirs = |batch: RecordBatch| {
                BooleanArray::from_unary(batch.column(0).as_string::<i32>(), |c| c == "city 7")
            };
            row(&name, &file, &col("city").eq("city 7"), 3, theirs);
        }
    }
}

/// Five columns; the keys are 0 to the number of rows.
fn file(shuffled: bool) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut keys: Vec<i64> = (0..ROWS).collect();
    if shuffled {
        rng.shuffle(&mut keys);
    }
    let numbers = Float64Array::from_iter_values((0..ROWS).map(|_| rng.f64()));
    let counts =
        Int64Array::from_iter((0..ROWS).map(|_| (rng.u8(0..9) > 0).then(|| rng.i64(0..500))));
    let cities =
        StringArray::from_iter_values((0..ROWS).map(|_| format!("city {}", rng.u8(0..50))));
    let texts = StringArray::from_iter_values((0..ROWS).map(|_| format!("text {:x}", rng.u64(..))));
    let batch = RecordBatch::try_from_iter([
        ("key", Arc::new(Int64Array::from(keys)) as ArrayRef),
        ("number", Arc::new(numbers)),
        ("count", Arc::new(counts)),
        ("city", Arc::new(cities)),
        ("text", Arc::new(texts)),
    ])
    .expect("columns of one length");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(250_000))
        .set_data_page_row_count_limit(20_000);
    common::write(&batch, properties)
}

fn ours(file: &Bytes, predicate: &Predicate) -> usize {
    let reader = Reader::new(file.clone()).expect("a file").threads(1).batch_rows(BATCH);
    let reader = reader.filter(predicate.clone());
    reader.batches().expect("a plan").map(|batch| batch.expect("a batch").num_rows()).sum()
}

/// Everything is read, and filtered behind it.
fn scan(file: &Bytes, predicate: &Predicate) -> usize {
    let reader = Reader::new(file.clone()).expect("a file").threads(1).batch_rows(BATCH);
    let bound = predicate.bind_to(&reader.schema().expect("a schema")).expect("columns");
    let batches = reader.batches().expect("a plan").map(|batch| {
        let batch = batch.expect("a batch");
        let keep = bound.evaluate(&batch).expect("verdicts");
        arrow_select::filter::filter_record_batch(&batch, &keep).expect("rows").num_rows()
    });
    batches.sum()
}

fn theirs(
    file: &Bytes,
    leaf: usize,
    predicate: impl Fn(RecordBatch) -> BooleanArray + Send + 'static,
) -> usize {
    let options = ArrowReaderOptions::new()
        .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options)
        .expect("a file");
    let mask = ProjectionMask::leaves(builder.parquet_schema(), [leaf]);
    let filter = ArrowPredicateFn::new(mask, move |batch| Ok(predicate(batch)));
    let builder = builder.with_row_filter(RowFilter::new(vec![Box::new(filter)]));
    let reader = builder.with_batch_size(BATCH).build().expect("a reader");
    reader.map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn row(
    name: &str,
    file: &Bytes,
    predicate: &Predicate,
    leaf: usize,
    of_theirs: impl Fn(RecordBatch) -> BooleanArray + Send + Clone + 'static,
) {
    let rows = ours(file, predicate);
    assert_eq!(rows, scan(file, predicate), "{name}");
    assert_eq!(rows, theirs(file, leaf, of_theirs.clone()), "{name}");
    let mut times = [vec![], vec![], vec![], vec![], vec![]];
    for _ in 0..ROUNDS {
        let rival = time(&|| theirs(file, leaf, of_theirs.clone()));
        let full = time(&|| scan(file, predicate));
        let own = time(&|| ours(file, predicate));
        for (all, one) in times.iter_mut().zip([rival, full, own, rival / own, full / own]) {
            all.push(one);
        }
    }
    let [rival, full, own, by_rival, by_full] = times.map(median);
    println!(
        "| {name} | {rows} | {rival:.2} | {full:.2} | {own:.2} | {by_rival:.2} | {by_full:.2} |"
    );
}

/// Milliseconds of a run.
fn time(run: &dyn Fn() -> usize) -> f64 {
    let start = Instant::now();
    std::hint::black_box(run());
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
