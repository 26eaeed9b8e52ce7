//! Encoding alone: one column, one encoding, no codec, no statistics, no checksums, no page index;
//! us beside `ArrowWriter` of the `parquet` crate 60.1, in turns, in one process. `cargo bench
//! --bench encode [-- TEXT]` prints nanoseconds a value and the ratio rival / ours, a median over
//! rounds.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::redundant_clone,
    reason = "a bench makes its own data"
)]

#[path = "common/mod.rs"]
mod common;

use std::time::Instant;

use marquetry::io::WriteSink;
use marquetry::write::encoding_named;
use marquetry::{Compression, Reader, RowGroupEncoder, StatisticsLevel, WriteOptions, Writer};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

/// Pairs of runs.
const ROUNDS: usize = 7;

/// Rows of a batch, for both.
const BATCH: usize = 65_536;

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    println!("| values: encoding | parquet 60.1, ns | ours, ns | ratio |");
    println!("|---|--:|--:|--:|");
    let wanted = [
        ("i32 plain", "PLAIN"),
        ("i64 plain 10% null", "PLAIN"),
        ("i32 delta", "DELTA_BINARY_PACKED"),
        ("i64 delta", "DELTA_BINARY_PACKED"),
        ("i64 delta, wide", "DELTA_BINARY_PACKED"),
        ("i64 dictionary", "RLE_DICTIONARY"),
        ("f32 split", "BYTE_STREAM_SPLIT"),
        ("f64 split", "BYTE_STREAM_SPLIT"),
        ("bool plain", "PLAIN"),
        ("bool rle", "RLE"),
        ("string short plain", "PLAIN"),
        ("string short dictionary", "RLE_DICTIONARY"),
        ("string short delta length", "DELTA_LENGTH_BYTE_ARRAY"),
        ("string short delta bytes", "DELTA_BYTE_ARRAY"),
        ("string long delta bytes", "DELTA_BYTE_ARRAY"),
    ];
    for case in common::columns() {
        let Some((_, encoding)) = wanted.iter().find(|(name, _)| *name == case.name) else {
            continue;
        };
        if case.name.contains(&filter) && !case.views {
            row(&case, encoding);
        }
    }
}

fn row(case: &common::Case, encoding: &str) {
    let reader = Reader::new(case.file.clone()).expect("a file").batch_rows(BATCH);
    let ours: Vec<_> =
        reader.batches().expect("a plan").map(|batch| batch.expect("a batch")).collect();
    let builder = ParquetRecordBatchReaderBuilder::try_new(case.file.clone()).expect("a file");
    let reader = builder.with_batch_size(BATCH).build().expect("a reader");
    let theirs: Vec<_> = reader.map(|batch| batch.expect("a batch")).collect();
    let named = encoding_named(encoding).expect("an encoding");
    let options = WriteOptions::new()
        .with_compression(Compression::Uncompressed)
        .with_statistics(StatisticsLevel::None)
        .with_checksums(false)
        .with_column("*", |column| column.with_encoding(named));
    let encoder = RowGroupEncoder::new(ours[0].schema(), options).expect("a schema");
    let encoder = encoder.with_threads(1).expect("one thread");
    let mut properties =
        WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    properties = match encoding {
        "RLE_DICTIONARY" => properties.set_dictionary_page_size_limit(64 << 20),
        other => properties
            .set_dictionary_enabled(false)
            .set_encoding(other.parse().expect("an encoding")),
    };
    let properties = properties.build();
    let us = || {
        let mut writer = Writer::over(WriteSink(Vec::new()), encoder.clone());
        ours.iter().for_each(|batch| writer.write(batch).expect("a batch"));
        writer.into_inner().expect("a file").1.len()
    };
    let them = || {
        let schema = theirs[0].schema();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), schema, Some(properties.clone())).expect("a writer");
        theirs.iter().for_each(|batch| writer.write(batch).expect("a batch"));
        writer.into_inner().expect("a file").len()
    };
    let time = |run: &dyn Fn() -> usize| {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed().as_secs_f64() * 1e9 / case.rows as f64
    };
    time(&them);
    time(&us);
    let (mut a, mut b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (t, o) = (time(&them), time(&us));
        a.push(t);
        b.push(o);
        ratios.push(t / o);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "| {}: {encoding} | {:.2} | {:.2} | {:.2} |",
        case.name,
        median(&mut a),
        median(&mut b),
        median(&mut ratios)
    );
}
