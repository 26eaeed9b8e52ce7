//! Whole files, read to RecordBatches from memory: us beside the `parquet` crate 60.1, in turns, in
//! one process.
//!
//! `cargo bench --bench scan` prints one Markdown table; `cargo bench --bench scan -- TEXT` only
//! the rows whose name holds the text. A figure is the median over the rounds; a ratio is rival /
//! ours, the median over the rounds of the pairs measured side by side.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::redundant_clone,
    reason = "a bench makes its own data"
)]

#[path = "common/mod.rs"]
mod common;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use common::Case;
use marquetry::Reader;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

/// Rows of a batch, for both.
const BATCH: usize = 65_536;

/// Pairs of runs.
const ROUNDS: usize = 9;

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let mut table = Table::default();
    let groups: [fn() -> Vec<Case>; 4] =
        [common::columns, common::nested, common::shapes, common::lineitem];
    for cases in groups {
        for case in cases() {
            if case.name.contains(&filter) {
                table.row(
                    &case.name,
                    || theirs(&case),
                    || ours(&case, 1),
                    Some(&|| ours(&case, 2)),
                );
            }
        }
    }
    let case = common::wide();
    for (name, projection) in [("open wide, read 1 column", 1), ("open wide, read 3 columns", 3)] {
        if name.contains(&filter) {
            table.row(
                name,
                || theirs_projected(&case, projection),
                || ours_projected(&case, projection),
                None,
            );
        }
    }
    table.close();
}

fn ours(case: &Case, threads: usize) -> usize {
    let reader =
        Reader::new(case.file.clone()).expect("a file").batch_rows(BATCH).views(case.views);
    let reader = match threads {
        1 => reader.threads(1),
        n => reader.pool(pool(n)),
    };
    let rows =
        reader.batches().expect("a plan").map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(rows, case.rows, "{}", case.name);
    rows
}

/// One pool for all runs, as a service would have.
fn pool(threads: usize) -> Arc<rayon::ThreadPool> {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let build = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    POOL.get_or_init(|| Arc::new(build())).clone()
}

fn theirs(case: &Case) -> usize {
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(case.file.clone()).expect("a file");
    if case.views {
        let mut fields = Vec::new();
        for field in builder.schema().fields() {
            fields.push(field.as_ref().clone().with_data_type(arrow_schema_60::DataType::Utf8View));
        }
        let schema = Arc::new(arrow_schema_60::Schema::new(fields));
        let options = ArrowReaderOptions::new().with_schema(schema);
        builder = ParquetRecordBatchReaderBuilder::try_new_with_options(case.file.clone(), options)
            .expect("a file");
    }
    let reader = builder.with_batch_size(BATCH).build().expect("a reader");
    reader.map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("column_{}", 4_000 + 2_000 * i)).collect()
}

fn ours_projected(case: &Case, n: usize) -> usize {
    let reader = Reader::new(case.file.clone()).expect("a file").threads(1);
    let reader = reader.project(names(n)).expect("columns that are there");
    reader.batches().expect("a plan").map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn theirs_projected(case: &Case, n: usize) -> usize {
    let file: Bytes = case.file.clone();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a file");
    let names = names(n);
    let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().map(String::as_str));
    let reader = builder.with_projection(mask).build().expect("a reader");
    reader.map(|batch| batch.expect("a batch").num_rows()).sum()
}

/// The rows that were printed.
#[derive(Default)]
struct Table {
    ratios: Vec<f64>,
}

impl Table {
    fn row(
        &mut self,
        name: &str,
        theirs: impl Fn() -> usize,
        ours: impl Fn() -> usize,
        ours_2: Option<&dyn Fn() -> usize>,
    ) {
        if self.ratios.is_empty() {
            println!(
                "| rows of a file | parquet 60.1, ms | ours, ms | ratio | spread | ours on 2 threads, ms | 1 thread / 2 |"
            );
            println!("|---|--:|--:|--:|--:|--:|--:|");
        }
        let time = |run: &dyn Fn() -> usize| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed().as_secs_f64() * 1e3
        };
        time(&theirs);
        time(&ours);
        let (mut a, mut b, mut c, mut ratios, mut scaling) =
            (vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let (t, o) = (time(&theirs), time(&ours));
            a.push(t);
            b.push(o);
            ratios.push(t / o);
            if let Some(ours_2) = ours_2 {
                let two = time(ours_2);
                c.push(two);
                scaling.push(o / two);
            }
        }
        let spread = ratios.clone();
        let ratio = median(&mut ratios);
        let (least, max) = (
            spread.iter().copied().fold(f64::MAX, f64::min),
            spread.iter().copied().fold(0.0, f64::max),
        );
        let two = if c.is_empty() {
            String::from(" | ")
        } else {
            format!("{:.2} | {:.2}", median(&mut c), median(&mut scaling))
        };
        println!(
            "| {name} | {:.2} | {:.2} | {ratio:.2} | {least:.2} to {max:.2} | {two} |",
            median(&mut a),
            median(&mut b)
        );
        self.ratios.push(ratio);
    }

    fn close(&self) {
        if self.ratios.is_empty() {
            return;
        }
        let mean =
            (self.ratios.iter().map(|r| r.ln()).sum::<f64>() / self.ratios.len() as f64).exp();
        let below = self.ratios.iter().filter(|r| **r < 1.0).count();
        println!(
            "\n{} rows, geometric mean of the ratios {mean:.2}, {below} below 1.0",
            self.ratios.len()
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
