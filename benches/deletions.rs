//! Reads with deleted rows, on one thread: rows that a deletion vector leaves out, beside a filter
//! on the row number after a whole read, and beside a `RowSelection` of the `parquet` crate 60.1,
//! in turns, in one process.
//!
//! `cargo bench --bench deletions` prints one Markdown table; with
//! `-- TEXT` only the rows whose name holds the text. A ratio is the other / ours, the median over
//! the rounds of the pairs measured side by side. The file is lineitem in SNAPPY, from memory, or
//! the one that `MARQUETRY_LINEITEM` names.

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

use std::time::Duration;

use bytes::Bytes;
use marquetry::arrow_array::BooleanArray;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::read::VirtualColumn;
use marquetry::{DeletionVector, Reader};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::metadata::PageIndexPolicy;

const BATCH: usize = 65_536;
const ROUNDS: usize = 9;

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let file = match std::env::var_os("MARQUETRY_LINEITEM") {
        Some(path) => std::fs::read(path).expect("the file that MARQUETRY_LINEITEM names").into(),
        None => {
            let mut cases = common::lineitem().into_iter();
            cases.find(|case| case.name.ends_with("snappy")).expect("a case").file
        }
    };
    let rows = reader(&file).rows().expect("a number of rows");
    println!(
        "| deleted | rows | plain read, ms | filter, ms | RowSelection, ms | excluded, ms | \
         filter / excluded | RowSelection / excluded |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    );
    for (name, deleted) in deletions(rows) {
        if name.contains(&wanted) {
            row(&name, &file, rows, &deleted);
        }
    }
}

/// Single rows at random, and runs of rows.
fn deletions(rows: u64) -> Vec<(String, Vec<u64>)> {
    let mut rng = fastrand::Rng::with_seed(11);
    let mut all = Vec::new();
    for percent in [0.01, 0.1, 1.0, 10.0, 50.0] {
        let deleted = (0..rows).filter(|_| rng.f64() * 100.0 < percent).collect();
        all.push((format!("random, {percent} %"), deleted));
    }
    for (len, percent) in [(1_000, 1.0), (1_000, 10.0), (100_000, 50.0)] {
        let runs = (0..rows).step_by(len).filter(|_| rng.f64() * 100.0 < percent);
        let deleted = runs.flat_map(|at| at..(at + len as u64).min(rows)).collect();
        all.push((format!("runs of {len}, about {percent} %"), deleted));
    }
    all
}

/// A deletion vector of Delta, its containers arrays or bitmaps.
fn roaring(deleted: &[u64]) -> Vec<u8> {
    let containers: Vec<&[u64]> = deleted.chunk_by(|a, b| a >> 16 == b >> 16).collect();
    let mut out = 1_681_511_377_u32.to_le_bytes().to_vec();
    out.extend(1_u64.to_le_bytes());
    out.extend([0, 12_346, containers.len() as u32].iter().flat_map(|n: &u32| n.to_le_bytes()));
    let (mut offset, mut offsets, mut bodies) = (8 + 8 * containers.len(), vec![], vec![]);
    for rows in containers {
        out.extend(((rows[0] >> 16) as u16).to_le_bytes());
        out.extend(((rows.len() - 1) as u16).to_le_bytes());
        let mut body = vec![0; if rows.len() > 4096 { 8192 } else { 0 }];
        for row in rows {
            match rows.len() > 4096 {
                true => body[*row as usize % 65_536 / 8] |= 1 << (row % 8),
                false => body.extend((*row as u16).to_le_bytes()),
            }
        }
        offsets.extend((offset as u32).to_le_bytes());
        offset += body.len();
        bodies.extend(body);
    }
    out.extend(offsets);
    out.extend(bodies);
    out
}

fn reader(file: &Bytes) -> Reader {
    Reader::new(file.clone()).expect("a file").threads(1).batch_rows(BATCH)
}

fn plain(file: &Bytes) -> usize {
    let batches = reader(file).batches().expect("a plan");
    batches.map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn excluded(file: &Bytes, deleted: &DeletionVector) -> usize {
    let reader = reader(file).exclude(deleted).expect("a file");
    let batches = reader.batches().expect("a plan");
    batches.map(|batch| batch.expect("a batch").num_rows()).sum()
}

/// Whole batches with the numbers of their rows, filtered by them.
fn filtered(file: &Bytes, is_deleted: &[bool]) -> usize {
    let number = VirtualColumn::RowNumber { name: "row".into() };
    let batches = reader(file).virtual_column(number).batches().expect("a plan");
    let kept = batches.map(|batch| {
        let mut batch = batch.expect("a batch");
        let numbers = batch.remove_column(batch.num_columns() - 1);
        let numbers = numbers.as_primitive::<Int64Type>();
        let keep = BooleanArray::from_unary(numbers, |row| !is_deleted[row as usize]);
        arrow_select::filter::filter_record_batch(&batch, &keep).expect("rows").num_rows()
    });
    kept.sum()
}

fn theirs(file: &Bytes, kept: &RowSelection) -> usize {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(file, options).expect("metadata");
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata);
    let reader = builder.with_row_selection(kept.clone()).with_batch_size(BATCH).build();
    reader.expect("a reader").map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn row(name: &str, file: &Bytes, rows: u64, deleted: &[u64]) {
    let vector = DeletionVector::from_delta(roaring(deleted)).expect("a deletion vector");
    let mut is_deleted = vec![false; rows as usize];
    deleted.iter().for_each(|row| is_deleted[*row as usize] = true);
    let mut kept = Vec::new();
    let mut at = 0;
    for deleted in vector.ranges() {
        kept.push(at..deleted.start as usize);
        at = deleted.end as usize;
    }
    kept.push(at..rows as usize);
    let kept = RowSelection::from_consecutive_ranges(kept.into_iter(), rows as usize);

    let count = rows as usize - deleted.len();
    assert_eq!(excluded(file, &vector), count, "{name}");
    assert_eq!(filtered(file, &is_deleted), count, "{name}");
    assert_eq!(theirs(file, &kept), count, "{name}");
    let mut times = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        let whole = cpu(|| plain(file));
        let filter = cpu(|| filtered(file, &is_deleted));
        let rival = cpu(|| theirs(file, &kept));
        let own = cpu(|| excluded(file, &vector));
        for (all, one) in
            times.iter_mut().zip([whole, filter, rival, own, filter / own, rival / own])
        {
            all.push(one);
        }
    }
    let [whole, filter, rival, own, by_filter, by_rival] = times.map(median);
    println!(
        "| {name} | {} | {whole:.1} | {filter:.1} | {rival:.1} | {own:.1} | {by_filter:.2} | \
         {by_rival:.2} |",
        deleted.len()
    );
}

/// CPU time of the process, in milliseconds.
fn cpu(run: impl FnOnce() -> usize) -> f64 {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    std::hint::black_box(run());
    (now() - start).as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
