//! Metadata of wide files, from memory: us beside the `parquet` crate 60.1, in turns, in one
//! process; files of both writers.
//!
//! `cargo bench --bench meta` prints one Markdown table; `cargo bench --bench meta -- TEXT` only
//! the rows whose name holds the text. A figure is the median over the rounds; a ratio is rival /
//! ours, the median over the rounds of the pairs measured side by side. Rows named "lean" let the
//! rival leave out what it can: statistics of all kinds.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::redundant_clone,
    dead_code,
    reason = "a bench makes its own data"
)]

#[path = "common/mod.rs"]
mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use marquetry::arrow_array::{ArrayRef, Float32Array, RecordBatch};
use marquetry::io::WriteSink;
use marquetry::{Reader, WriteOptions, Writer};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use parquet::file::properties::WriterProperties;

/// Pairs of runs.
const ROUNDS: usize = 11;

const ROW_GROUPS: usize = 4;

/// Rows of a row group.
const ROWS: usize = 100;

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    println!("| file, task | parquet 60.1, ms | ours, ms | ratio | spread |");
    println!("|---|--:|--:|--:|--:|");
    for columns in [100, 1_000, 10_000] {
        for (writer, file) in [("ours", of_ours(columns)), ("theirs", of_theirs(columns))] {
            let row = |task: &str, theirs: &dyn Fn(), ours: &dyn Fn()| {
                let name = format!("{columns} columns of {writer}, {task}");
                if name.contains(&filter) {
                    print_row(&name, theirs, ours);
                }
            };
            row("footer", &|| theirs(&file, false, false), &|| ours(&file, false));
            row("footer, held", &|| theirs(&file, false, false), &|| ours_held(&file, false));
            row("footer, lean", &|| theirs(&file, false, true), &|| ours(&file, false));
            row("footer and page index", &|| theirs(&file, true, false), &|| ours(&file, true));
            let held = "footer and page index, held";
            row(held, &|| theirs(&file, true, false), &|| ours_held(&file, true));
            row("open, all of the schema", &|| theirs_schema(&file), &|| ours_schema(&file));
            for n in [1, 3] {
                let names: Vec<String> = (0..n).map(|i| name(i * columns / n)).collect();
                let task = format!("open and read {n}");
                row(&task, &|| theirs_read(&file, &names), &|| ours_read(&file, &names));
            }
        }
    }
}

fn name(column: usize) -> String {
    format!("feature_{column:05}")
}

fn values(column: usize) -> impl Iterator<Item = f32> {
    (0..ROW_GROUPS * ROWS).map(move |row| ((row * 31 + column) % 97) as f32)
}

fn of_ours(columns: usize) -> Bytes {
    let array = |i| Arc::new(Float32Array::from_iter_values(values(i))) as ArrayRef;
    let batch = RecordBatch::try_from_iter((0..columns).map(|i| (name(i), array(i))));
    let batch = batch.expect("a batch");
    let options = WriteOptions::new().with_row_group_rows(ROWS as u64);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

fn of_theirs(columns: usize) -> Bytes {
    use arrow_array_60::{ArrayRef, Float32Array, RecordBatch};
    let array = |i| Arc::new(Float32Array::from_iter_values(values(i))) as ArrayRef;
    let batch = RecordBatch::try_from_iter((0..columns).map(|i| (name(i), array(i))));
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROWS));
    common::write(&batch.expect("a batch"), properties)
}

/// Decodes and visits all metadata; only the footer is kept.
fn ours(file: &Bytes, page_index: bool) {
    let mut reader = Reader::new(file.clone()).expect("a file");
    if page_index {
        reader.load_page_indexes().expect("indexes");
    }
    let metadata = reader.metadata();
    for row_group in 0..metadata.row_groups() {
        for chunk in metadata.column_chunks(row_group).expect("chunks") {
            let chunk = black_box(chunk.expect("a chunk"));
            if page_index {
                black_box(metadata.page_index_of(&chunk).expect("an index"));
            }
        }
    }
}

/// All metadata, decoded and all of it held.
fn ours_held(file: &Bytes, page_index: bool) {
    let mut reader = Reader::new(file.clone()).expect("a file");
    if page_index {
        reader.load_page_indexes().expect("indexes");
    }
    let metadata = reader.metadata();
    let (mut chunks, mut indexes) = (Vec::new(), Vec::new());
    for row_group in 0..metadata.row_groups() {
        for chunk in metadata.column_chunks(row_group).expect("chunks") {
            let chunk = chunk.expect("a chunk");
            if page_index {
                indexes.push(metadata.page_index_of(&chunk).expect("an index"));
            }
            chunks.push(chunk);
        }
    }
    black_box((chunks, indexes));
}

fn theirs(file: &Bytes, page_index: bool, lean: bool) {
    let policy = if page_index { PageIndexPolicy::Required } else { PageIndexPolicy::Skip };
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
    if lean {
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        reader = reader.with_metadata_options(Some(options));
    }
    black_box(reader.parse_and_finish(file).expect("metadata"));
}

fn ours_schema(file: &Bytes) {
    black_box(Reader::new(file.clone()).expect("a file").schema().expect("a schema"));
}

fn theirs_schema(file: &Bytes) {
    let options = ArrowReaderOptions::new();
    black_box(ArrowReaderMetadata::load(file, options).expect("metadata").schema().clone());
}

fn ours_read(file: &Bytes, names: &[String]) {
    let reader = Reader::new(file.clone()).expect("a file").threads(1);
    let reader = reader.project(names).expect("columns that are there");
    let rows: usize =
        reader.batches().expect("a plan").map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(rows, ROW_GROUPS * ROWS);
}

fn theirs_read(file: &Bytes, names: &[String]) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).expect("a file");
    let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().map(String::as_str));
    let reader = builder.with_projection(mask).build().expect("a reader");
    let rows: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(rows, ROW_GROUPS * ROWS);
}

fn print_row(name: &str, theirs: &dyn Fn(), ours: &dyn Fn()) {
    let time = |run: &dyn Fn()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e3
    };
    time(theirs);
    time(ours);
    let (mut a, mut b, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (t, o) = (time(theirs), time(ours));
        a.push(t);
        b.push(o);
        ratios.push(t / o);
    }
    let ratio = median(&mut ratios);
    let (least, max) = (ratios.first(), ratios.last());
    println!(
        "| {name} | {:.3} | {:.3} | {ratio:.2} | {:.2} to {:.2} |",
        median(&mut a),
        median(&mut b),
        least.unwrap_or(&0.0),
        max.unwrap_or(&0.0),
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
