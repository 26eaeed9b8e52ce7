//! One column, one encoding: our decoding to Arrow beside the `parquet` crate's lowest reader,
//! which gives plain vectors, in turns.
//!
//! `cargo bench --bench decode` prints one Markdown table, in millions of slots a second.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::redundant_clone,
    dead_code,
    reason = "a bench makes its own data"
)]

#[path = "common/mod.rs"]
mod common;

use std::time::Instant;

use common::Case;
use marquetry::Reader;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Slots asked for at a time.
const BATCH: usize = 65_536;

/// Pairs of runs.
const ROUNDS: usize = 9;

fn main() {
    println!("| column | parquet 60.1, M/s | ours, M/s | ratio |");
    println!("|---|--:|--:|--:|");
    for case in common::columns() {
        if case.views {
            continue;
        }
        theirs(&case);
        ours(&case);
        let (mut a, mut b, mut ratios) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let (t, o) = (time(|| theirs(&case)), time(|| ours(&case)));
            a.push(case.rows as f64 / t / 1e6);
            b.push(case.rows as f64 / o / 1e6);
            ratios.push(t / o);
        }
        println!(
            "| {} | {:.0} | {:.0} | {:.2} |",
            case.name,
            median(&mut a),
            median(&mut b),
            median(&mut ratios)
        );
    }
}

fn time(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn ours(case: &Case) {
    let reader = Reader::new(case.file.clone()).expect("a file").threads(1).batch_rows(BATCH);
    for batch in reader.batches().expect("a plan") {
        std::hint::black_box(batch.expect("a batch"));
    }
}

fn theirs(case: &Case) {
    let reader = SerializedFileReader::new(case.file.clone()).expect("a file");
    for i in 0..reader.num_row_groups() {
        let group = reader.get_row_group(i).expect("a row group");
        macro_rules! read {
            ($column:expr) => {{
                let mut column = $column;
                let (mut levels, mut values) = (Vec::new(), Vec::new());
                loop {
                    levels.clear();
                    values.clear();
                    let (rows, _, _) = column
                        .read_records(BATCH, Some(&mut levels), None, &mut values)
                        .expect("values");
                    std::hint::black_box(&values);
                    if rows == 0 {
                        break;
                    }
                }
            }};
        }
        match group.get_column_reader(0).expect("a column") {
            ColumnReader::BoolColumnReader(column) => read!(column),
            ColumnReader::Int32ColumnReader(column) => read!(column),
            ColumnReader::Int64ColumnReader(column) => read!(column),
            ColumnReader::Int96ColumnReader(column) => read!(column),
            ColumnReader::FloatColumnReader(column) => read!(column),
            ColumnReader::DoubleColumnReader(column) => read!(column),
            ColumnReader::ByteArrayColumnReader(column) => read!(column),
            ColumnReader::FixedLenByteArrayColumnReader(column) => read!(column),
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
