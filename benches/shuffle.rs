//! An epoch of shuffled rows over ten files, as for training: `Dataset::shuffled` with windows of
//! several sizes, on one thread and on two.
//!
//! `cargo bench --bench shuffle` prints one Markdown table. The files are made once in
//! `SHUFFLE_DIR` (a temporary folder by default) with `SHUFFLE_ROWS` rows each (a million).
//! `benches/shuffle_peers.py` reads the same files with pyarrow and polars.
//!
//! `places` says how well rows are mixed: from how many of a thousand equal parts of the dataset
//! the 1,024 rows of a batch come, in the mean. Of an even shuffle, 641.

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

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array_60::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use marquetry::Dataset;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

const FILES: usize = 10;
const BATCH: usize = 1_024;
const ROUNDS: usize = 5;

fn main() {
    let rows = std::env::var("SHUFFLE_ROWS").map_or(1_000_000, |n| n.parse().expect("a number"));
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder =
        std::env::var("SHUFFLE_DIR").map_or_else(|_| temporary.path().into(), PathBuf::from);
    let files = files(&folder, rows);
    println!("| reader | threads | CPU s | wall s | peak MB | places |\n|---|--:|--:|--:|--:|--:|");
    for (threads, mebibytes) in [(1, 64), (1, 256), (2, 64), (2, 256)] {
        let mut times: Vec<(Duration, Duration)> = Vec::new();
        let (mut places, mut peak) = (0.0, 0);
        for epoch in 0..ROUNDS as u64 {
            forget_peak();
            let (cpu_before, start) = (cpu(), Instant::now());
            let dataset = Dataset::open(&files).expect("files");
            let dataset = dataset.map(|reader| Ok(reader.threads(threads))).expect("files");
            let shuffled = dataset.shuffled(7, mebibytes << 20).epoch(epoch).batch_rows(BATCH);
            let mut batches = shuffled.batches().expect("a plan");
            let (mut seen, mut found, mut n) = (0, 0, 0_usize);
            while let Some(batch) = batches.next_batch().expect("a batch") {
                seen += batch.num_rows();
                n += 1;
                if n % 100 == 1 {
                    let keys = batch.column(0).as_primitive::<Int64Type>().values();
                    let parts: BTreeSet<i64> =
                        keys.iter().map(|key| key * 1_000 / (FILES * rows) as i64).collect();
                    found += parts.len();
                }
            }
            assert_eq!(seen, FILES * rows);
            times.push((cpu() - cpu_before, start.elapsed()));
            places = found as f64 / n.div_ceil(100) as f64;
            peak = peak.max(peak_resident());
        }
        times.sort();
        let (cpu, wall) = times[times.len() / 2];
        println!(
            "| ours, window of {mebibytes} MiB | {threads} | {:.2} | {:.2} | {} | {places:.0} |",
            cpu.as_secs_f64(),
            wall.as_secs_f64(),
            peak >> 20
        );
    }
}

/// A key that counts all rows, a number and a text; four row groups a file.
fn files(folder: &Path, rows: usize) -> Vec<PathBuf> {
    let mut rng = fastrand::Rng::with_seed(9);
    let make = |i: usize| {
        let path = folder.join(format!("part-{i}-{rows}.parquet"));
        let keys = Int64Array::from_iter_values((i * rows) as i64..((i + 1) * rows) as i64);
        let numbers = Float64Array::from_iter_values((0..rows).map(|_| rng.f64()));
        let texts = (0..rows).map(|_| format!("text {:x}", rng.u64(..)));
        let batch = RecordBatch::try_from_iter([
            ("key", Arc::new(keys) as ArrayRef),
            ("number", Arc::new(numbers)),
            ("text", Arc::new(StringArray::from_iter_values(texts))),
        ]);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(rows / 4));
        if !path.exists() {
            let file = common::write(&batch.expect("columns of one length"), properties);
            std::fs::write(&path, file).expect("a file");
        }
        path
    };
    (0..FILES).map(make).collect()
}

/// CPU time of the process.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn forget_peak() {
    _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Resident bytes of the process at their peak.
fn peak_resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kibibytes.unwrap_or_default() << 10
}
