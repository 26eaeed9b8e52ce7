//! The ledger of SIMD kernels: what each brings end to end, on the shapes that it is there for.
//!
//! `MARQUETRY_ISA=switch cargo bench --features engine --bench kernels` prints the figures of
//! `docs/kernels.md` as Markdown. Each shape is read, filtered or written with all kernels, and
//! with one of them held to its scalar definition (or to AVX2), in turns; the figure is the median
//! of the ratios of process CPU times, beside the quarters in the middle. An argument names the one
//! kernel that is measured.

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

use std::hint::black_box;
use std::time::Duration;

use common::Case;
use marquetry::arrow_array::RecordBatch;
use marquetry::engine::switch_kernel;
use marquetry::format::Encoding;
use marquetry::io::WriteSink;
use marquetry::{
    Compression, Predicate, Profile, Reader, RowGroupEncoder, WriteOptions, Writer, col,
};

/// Rows of a batch.
const BATCH: usize = 65_536;

/// Pairs of runs.
const ROUNDS: usize = 31;

/// The kernels, and the shapes that each is there for.
const KERNELS: [(&str, &[&str]); 15] = [
    ("unpack", &["read i64 dictionary, large", "read string short dictionary", "read bool rle"]),
    ("pack", &["write i64 dictionary", "write i64 delta as DELTA", "write lineitem uncompressed"]),
    (
        "gather",
        &["read i64 dictionary", "read view short dictionary", "read lineitem uncompressed"],
    ),
    ("compact", &["filter lineitem uncompressed", "filter i64 plain 10% null"]),
    (
        "expand",
        &[
            "read i64 plain 10% null",
            "read i32 plain 10% null",
            "read i64 plain 50% null",
            "read decimal(38,2) plain 10% null",
        ],
    ),
    ("prefix_sum", &["read i32 delta", "read i64 delta", "read string short delta length"]),
    ("transpose", &["read f32 split", "read f64 split", "write f64 plain as SPLIT"]),
    ("extremes", &["write i32 plain", "write f64 plain", "write lineitem uncompressed"]),
    ("deltas", &["write i64 delta as DELTA", "write i64 delta", "write i32 plain as DELTA"]),
    ("decimals", &["write f64 plain as ALP", "write f64 plain"]),
    (
        "lengths",
        &[
            "read string short delta length",
            "read string short delta bytes",
            "read view short plain",
        ],
    ),
    ("join", &["read string short delta bytes", "read string long delta bytes"]),
    (
        "levels",
        &["read list of i64", "read list of i64, nulls at each level", "read i64 plain 10% null"],
    ),
    ("bits", &["read bool plain 10% null", "filter i64 plain 10% null"]),
    ("snappy", &["read lineitem snappy"]),
];

/// Something that is done with a file.
enum Work {
    Read(Case),
    Filter(Case, Box<Predicate>),
    Write(Vec<RecordBatch>, Option<Encoding>),
}

struct Shape {
    name: String,
    work: Work,
}

impl Shape {
    fn run(&self) {
        match &self.work {
            Work::Read(case) => read(open(case)),
            Work::Filter(case, filter) => read(open(case).filter((**filter).clone())),
            Work::Write(rows, encoding) => write(rows, *encoding),
        }
    }
}

fn open(case: &Case) -> Reader {
    Reader::new(case.file.clone()).expect("a file").threads(1).batch_rows(BATCH).views(case.views)
}

fn read(reader: Reader) {
    for batch in reader.batches().expect("a plan") {
        black_box(batch.expect("a batch"));
    }
}

fn write(rows: &[RecordBatch], encoding: Option<Encoding>) {
    let mut options = WriteOptions::new()
        .with_profile(Profile::Balanced)
        .with_compression(Compression::Uncompressed);
    if let Some(encoding) = encoding {
        options = options.with_column("*", |column| column.with_encoding(encoding));
    }
    let encoder = RowGroupEncoder::new(rows[0].schema(), options).expect("a schema");
    let encoder = encoder.with_threads(1).expect("one thread");
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    for batch in rows {
        writer.write(batch).expect("a batch that can be written");
    }
    black_box(writer.into_inner().expect("a file").1);
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    let mut add = |name: String, work: Work| shapes.push(Shape { name, work });
    let rows = |case: &Case| -> Vec<RecordBatch> {
        open(case).batches().expect("a plan").map(|batch| batch.expect("a batch")).collect()
    };
    let written = ["i32 plain", "i64 delta", "i64 dictionary", "f64 plain", "decimal(15,2) plain"];
    for case in common::columns() {
        if written.contains(&case.name.as_str()) {
            add(format!("write {}", case.name), Work::Write(rows(&case), None));
            if case.name.starts_with('i') {
                let encoding = Some(Encoding::DeltaBinaryPacked);
                add(format!("write {} as DELTA", case.name), Work::Write(rows(&case), encoding));
            }
            if case.name.starts_with('f') {
                let split = Some(Encoding::ByteStreamSplit);
                add(format!("write {} as SPLIT", case.name), Work::Write(rows(&case), split));
                let alp = Some(Encoding::Alp);
                add(format!("write {} as ALP", case.name), Work::Write(rows(&case), alp));
            }
        }
        if case.name == "i64 plain 10% null" {
            let copy = Case { file: case.file.clone(), name: case.name.clone(), ..case };
            add(
                format!("filter {}", case.name),
                Work::Filter(copy, Box::new(col("v").lt(i64::MAX / 2))),
            );
        }
        add(format!("read {}", case.name), Work::Read(case));
    }
    for case in common::nested() {
        add(format!("read {}", case.name), Work::Read(case));
    }
    for case in common::lineitem() {
        if case.name.ends_with("uncompressed") {
            add(format!("write {}", case.name), Work::Write(rows(&case), None));
        }
        let copy = Case { file: case.file.clone(), name: case.name.clone(), ..case };
        add(
            format!("filter {}", case.name),
            Work::Filter(copy, Box::new(col("l_suppkey").lt(5_000))),
        );
        add(format!("read {}", case.name), Work::Read(case));
    }
    shapes
}

fn main() {
    if !switch_kernel("unpack", "best") {
        eprintln!("build this bench with MARQUETRY_ISA=switch in the environment");
        return;
    }
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let shapes = shapes();
    shapes.iter().for_each(Shape::run);
    println!("| kernel | version | shape | time without it / time with it | quarters |");
    println!("|---|---|---|--:|--:|");
    for (kernel, its_shapes) in KERNELS.iter().filter(|(kernel, _)| kernel.contains(&wanted)) {
        for name in its_shapes.iter() {
            let Some(shape) = shapes.iter().find(|shape| shape.name == *name) else {
                eprintln!("there is no shape {name}");
                continue;
            };
            for version in [Version::AVX512, Version::AVX2, Version::BEST] {
                // The others run with what a machine of this version has.
                KERNELS.iter().for_each(|(other, _)| assert!(switch_kernel(other, version.with)));
                let mut ratios = ratios(shape, kernel, version);
                let ratio = median(&mut ratios);
                let (low, high) = (ratios[ROUNDS / 4], ratios[ROUNDS * 3 / 4]);
                println!(
                    "| `{kernel}` | {} | {name} | {ratio:.2} | {low:.2} to {high:.2} |",
                    version.name
                );
            }
        }
    }
}

/// A version of a kernel, and what would run in its place.
#[derive(Clone, Copy)]
struct Version {
    name: &'static str,
    with: &'static str,
    without: &'static str,
}

impl Version {
    const AVX512: Self = Self { name: "AVX-512 over AVX2", with: "best", without: "avx2" };
    const AVX2: Self = Self { name: "AVX2 over scalar", with: "avx2", without: "scalar" };
    const BEST: Self = Self { name: "best over scalar", with: "best", without: "scalar" };
}

/// The time without a kernel by that with it, in pairs of runs.
fn ratios(shape: &Shape, kernel: &str, version: Version) -> Vec<f64> {
    let time = |level: &str| {
        assert!(switch_kernel(kernel, level), "a kernel of this build: {kernel}");
        let start = cpu();
        shape.run();
        cpu().saturating_sub(start).as_secs_f64()
    };
    let ratios = (0..ROUNDS).map(|_| {
        let with = time(version.with);
        time(version.without) / with
    });
    let ratios = ratios.collect();
    switch_kernel(kernel, version.with);
    ratios
}

/// CPU time of the process; the time of the wall where there is no such clock.
fn cpu() -> Duration {
    #[cfg(unix)]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        now.try_into().expect("a clock that runs forward")
    }
    #[cfg(not(unix))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
