//! Rows by their numbers, again and again: us from a file of the profile `Points`, as any reader
//! takes it and as only ours does (Lance and Vortex have one reader, too), and from our default
//! file, beside the `parquet` crate 60.1 from its default file, in turns, in one process.
//!
//! `cargo bench --bench points` prints one Markdown table; `cargo bench --bench points -- TEXT`
//! only the tables whose name holds the text. Files are made once in `POINTS_DIR` (a temporary
//! folder by default) with `POINTS_ROWS` rows (10 million), an eightieth of them of embeddings.
//! Times are CPU of the process, medians over the rounds; each round takes other rows. `open` is a
//! read that opens the file first; `again` one of a file whose footer and page index are kept.
//! `benches/points_peers.py` reads the same tables with Lance and Vortex.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a bench makes its own data"
)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array_60 as arrow;
use arrow_array_60::{ArrayRef, RecordBatch};
use arrow_buffer_60::OffsetBuffer;
use arrow_schema_60::{DataType, Field, Fields};
use marquetry::io::MappedFile;
use marquetry::{Profile, Reader, TargetReader, WriteOptions, Writer};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::metadata::PageIndexPolicy;

/// Rows that are taken at a time.
const TAKEN: usize = 1_000;

/// Rows of a batch that is written.
const BATCH: usize = 1 << 16;

const ROUNDS: usize = 9;

/// Values of an embedding.
const WIDTH: usize = 768;

type Table = (&'static str, usize, fn(&mut fastrand::Rng, usize) -> RecordBatch);

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let rows = std::env::var("POINTS_ROWS").map_or(10_000_000, |n| n.parse().expect("a number"));
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder =
        std::env::var("POINTS_DIR").map_or_else(|_| temporary.path().into(), PathBuf::from);
    let tables: [Table; 4] = [
        ("numbers", rows, numbers),
        ("strings", rows, strings),
        ("nested", rows, nested),
        ("embeddings", rows / 80, embeddings),
    ];
    println!(
        "| table | rows | reader | file | of our default | open ms | again ms | read MB | peak MB | \
         times arrow-rs |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (name, rows, make) in tables {
        if name.contains(&filter) {
            run(&Files::make(&folder, name, rows, make), rows, name);
        }
    }
}

/// The files of a table.
struct Files {
    theirs: PathBuf,
    default: PathBuf,
    points: PathBuf,
    /// As `points`, for readers as new as we are.
    newest: PathBuf,
}

impl Files {
    fn make(
        folder: &Path,
        name: &str,
        rows: usize,
        make: fn(&mut fastrand::Rng, usize) -> RecordBatch,
    ) -> Self {
        let path = |of: &str| folder.join(format!("{name}-{rows}-{of}.parquet"));
        let files = Self {
            theirs: path("arrow-rs"),
            default: path("default"),
            points: path("points"),
            newest: path("points-newest"),
        };
        if !files.theirs.exists() {
            let mut rng = fastrand::Rng::with_seed(7);
            let file = File::create(&files.theirs).expect("a file");
            let first = make(&mut fastrand::Rng::with_seed(7), 1);
            let mut writer = ArrowWriter::try_new(file, first.schema(), None).expect("a writer");
            for start in (0..rows).step_by(BATCH) {
                let batch = make(&mut rng, BATCH.min(rows - start));
                writer.write(&batch).expect("a batch that can be written");
            }
            writer.close().expect("a file");
        }
        let points = WriteOptions::new().with_profile(Profile::Points);
        let newest = points.clone().with_readers([TargetReader::Marquetry]);
        let written = [
            (&files.default, WriteOptions::new()),
            (&files.points, points),
            (&files.newest, newest),
        ];
        for (path, options) in written {
            if path.exists() {
                continue;
            }
            let reader = Reader::open(&files.theirs).expect("a file").batch_rows(BATCH);
            let schema = reader.schema().expect("a schema");
            let mut writer = Writer::create_with(path, schema, options).expect("a writer");
            for batch in reader.batches().expect("batches") {
                writer.write(&batch.expect("a batch")).expect("a batch that can be written");
            }
            writer.finish().expect("a file");
        }
        files
    }
}

/// The time and the bytes of one reader.
#[derive(Default)]
struct Taken {
    open: Vec<Duration>,
    again: Vec<Duration>,
    bytes: Vec<u64>,
    peak: u64,
}

fn run(files: &Files, rows: usize, name: &str) {
    let mut rng = fastrand::Rng::with_seed(11);
    let readers = [
        mapped(&files.newest),
        ours(&files.newest),
        mapped(&files.points),
        ours(&files.points),
        ours(&files.default),
    ];
    let options = || ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let load = || {
        let file = File::open(&files.theirs).expect("a file");
        ArrowReaderMetadata::load(&file, options()).expect("metadata")
    };
    let metadata = load();
    let first = |which: usize, rows_wanted: &[u64]| match which {
        0 => mapped(&files.newest).take(rows_wanted).expect("rows").num_rows(),
        1 => ours(&files.newest).take(rows_wanted).expect("rows").num_rows(),
        2 => mapped(&files.points).take(rows_wanted).expect("rows").num_rows(),
        3 => ours(&files.points).take(rows_wanted).expect("rows").num_rows(),
        4 => ours(&files.default).take(rows_wanted).expect("rows").num_rows(),
        _ => theirs(&files.theirs, load(), rows_wanted, rows),
    };
    let again = |which: usize, rows_wanted: &[u64]| match readers.get(which) {
        Some(reader) => reader.take(rows_wanted).expect("rows").num_rows(),
        None => theirs(&files.theirs, metadata.clone(), rows_wanted, rows),
    };
    let mut taken: [Taken; 6] = Default::default();
    for round in 0..=ROUNDS {
        let mut wanted = || -> Vec<u64> { (0..TAKEN).map(|_| rng.u64(0..rows as u64)).collect() };
        let (cold, warm) = (wanted(), wanted());
        for i in 0..6 {
            let which = (i + round) % 6;
            let open = cpu(|| first(which, &cold));
            let warm_time = cpu(|| again(which, &warm));
            let bytes = bytes_read(|| again(which, &warm));
            // The first round warms the page cache of the system.
            if round > 0 {
                taken[which].open.push(open);
                taken[which].again.push(warm_time);
                taken[which].bytes.push(bytes);
            }
        }
        let batches = readers.each_ref().map(|reader| reader.take(&warm).expect("rows"));
        assert!(batches.iter().all(|batch| *batch == batches[0]));
    }
    let wanted: Vec<u64> = (0..TAKEN).map(|_| rng.u64(0..rows as u64)).collect();
    for (which, of) in taken.iter_mut().enumerate() {
        of.peak = peak(|| first(which, &wanted));
    }
    report(files, rows, name, taken);
}

fn report(files: &Files, rows: usize, name: &str, taken: [Taken; 6]) {
    let ms = |times: &[Duration]| {
        let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let len = |path: &Path| std::fs::metadata(path).expect("a file").len() as f64 / 1e6;
    let rival = ms(&taken[5].again);
    let readers = [
        ("ours, points for our reader, mapped", &files.newest),
        ("ours, points for our reader", &files.newest),
        ("ours, points, mapped", &files.points),
        ("ours, points", &files.points),
        ("ours, default", &files.default),
        ("arrow-rs, its default", &files.theirs),
    ];
    for ((reader, path), mut of) in readers.into_iter().zip(taken) {
        of.bytes.sort_unstable();
        println!(
            "| {name} | {rows} | {reader} | {:.1} MB | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} | {:.1} |",
            len(path),
            len(path) / len(&files.default),
            ms(&of.open),
            ms(&of.again),
            of.bytes[of.bytes.len() / 2] as f64 / 1e6,
            of.peak as f64 / 1e6,
            rival / ms(&of.again)
        );
    }
}

fn ours(path: &Path) -> Reader {
    Reader::open(path).expect("a file").threads(1)
}

fn mapped(path: &Path) -> Reader {
    // SAFETY: no other process knows the file.
    let file = unsafe { MappedFile::open(path) }.expect("a file");
    Reader::new(file).expect("a file").threads(1)
}

fn theirs(path: &Path, metadata: ArrowReaderMetadata, rows: &[u64], all: usize) -> usize {
    let mut sorted: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let ranges = sorted.iter().map(|row| *row..*row + 1);
    let file = File::open(path).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_row_selection(RowSelection::from_consecutive_ranges(ranges, all))
        .build()
        .expect("a reader");
    let found: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(found, sorted.len());
    found
}

/// CPU time of the process.
fn cpu(run: impl FnOnce() -> usize) -> Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    assert!(std::hint::black_box(run()) > 0);
    now() - start
}

/// Bytes that calls of the system read.
fn bytes_read(run: impl FnOnce() -> usize) -> u64 {
    let now = || {
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let bytes = io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok());
        bytes.unwrap_or_default()
    };
    let start = now();
    assert!(run() > 0);
    now() - start
}

/// Bytes of memory that are resident at most, beyond those before.
fn peak(run: impl FnOnce() -> usize) -> u64 {
    let of = |name: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or_default() << 10
    };
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = of("VmRSS:");
    assert!(run() > 0);
    of("VmHWM:").saturating_sub(before)
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// A key that is no order, a price, a date.
fn numbers(rng: &mut fastrand::Rng, rows: usize) -> RecordBatch {
    let keys = arrow::Int64Array::from_iter_values((0..rows).map(|_| rng.i64(0..60_000_000)));
    let prices = (0..rows).map(|_| rng.u32(90_000..10_500_000) as f64 / 100.0);
    let prices = arrow::Float64Array::from_iter_values(prices);
    let dates = arrow::Date32Array::from_iter_values((0..rows).map(|_| rng.i32(8_000..10_600)));
    table(vec![("key", Arc::new(keys)), ("price", Arc::new(prices)), ("date", Arc::new(dates))])
}

const WORDS: [&str; 32] = [
    "carefully",
    "quickly",
    "the",
    "regular",
    "final",
    "deposits",
    "requests",
    "pending",
    "above",
    "according",
    "to",
    "bold",
    "packages",
    "accounts",
    "sleep",
    "furiously",
    "ideas",
    "express",
    "theodolites",
    "blithely",
    "slyly",
    "foxes",
    "instructions",
    "even",
    "haggle",
    "unusual",
    "platelets",
    "among",
    "dependencies",
    "silent",
    "ironic",
    "asymptotes",
];

fn comment(rng: &mut fastrand::Rng) -> String {
    let mut out = String::new();
    for i in 0..rng.usize(2..7) {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(WORDS[rng.usize(0..WORDS.len())]);
    }
    out
}

/// A comment, a name of many, a code of a few; one in ten is null.
fn strings(rng: &mut fastrand::Rng, rows: usize) -> RecordBatch {
    let comments = arrow::StringArray::from_iter_values((0..rows).map(|_| comment(rng)));
    let names = (0..rows).map(|_| Some(format!("Customer#{:09}", rng.u32(0..150_000))));
    let names: Vec<Option<String>> = names.collect();
    let names = names.into_iter().map(|name| name.filter(|_| rng.u8(0..10) > 0));
    let names: arrow::StringArray = names.collect();
    let codes = (0..rows).map(|_| ["AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"][rng.usize(0..6)]);
    let codes = arrow::StringArray::from_iter_values(codes);
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("comment", Arc::new(comments), false),
        ("name", Arc::new(names), true),
        ("code", Arc::new(codes), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// A list of up to five structs of a number and a word, and a struct.
fn nested(rng: &mut fastrand::Rng, rows: usize) -> RecordBatch {
    let lengths: Vec<usize> = (0..rows).map(|_| rng.usize(0..6)).collect();
    let all: usize = lengths.iter().sum();
    let numbers = arrow::Int32Array::from_iter_values((0..all).map(|_| rng.i32(0..100_000)));
    let words = (0..all).map(|_| WORDS[rng.usize(0..WORDS.len())]);
    let words = arrow::StringArray::from_iter_values(words);
    let fields = Fields::from(vec![
        Field::new("number", DataType::Int32, false),
        Field::new("word", DataType::Utf8, false),
    ]);
    let items =
        arrow::StructArray::new(fields.clone(), vec![Arc::new(numbers), Arc::new(words)], None);
    let item = Arc::new(Field::new("item", DataType::Struct(fields), false));
    let lists =
        arrow::ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(items), None);
    let x = arrow::Float64Array::from_iter_values((0..rows).map(|_| rng.f64() * 360.0));
    let at = Fields::from(vec![Field::new("x", DataType::Float64, false)]);
    let at = arrow::StructArray::new(at, vec![Arc::new(x)], None);
    table(vec![("items", Arc::new(lists)), ("at", Arc::new(at))])
}

/// A number, and an embedding.
fn embeddings(rng: &mut fastrand::Rng, rows: usize) -> RecordBatch {
    let ids = arrow::Int64Array::from_iter_values((0..rows).map(|_| rng.i64(0..1 << 40)));
    let values = (0..rows * WIDTH).map(|_| rng.f32() - 0.5);
    let values = arrow::Float32Array::from_iter_values(values);
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let lists = arrow::FixedSizeListArray::new(item, WIDTH as i32, Arc::new(values), None);
    table(vec![("id", Arc::new(ids)), ("embedding", Arc::new(lists))])
}
