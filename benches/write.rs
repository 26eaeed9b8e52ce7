//! Whole files, written to memory from RecordBatches: us beside `ArrowWriter` of the `parquet`
//! crate 60.1, in turns, in one process.
//!
//! `cargo bench --bench write` prints one Markdown table; `cargo bench --bench write -- TEXT` only
//! the rows whose name holds the text. Three groups: the same encodings forced on both and no
//! codec; the defaults of each but no codec; ZSTD of level 1, the encodings as each chooses them. A
//! ratio is rival / ours, the median over the rounds of the pairs measured side by side, in CPU
//! time of one thread; two threads are measured by the wall clock. Bytes are those of the files.
//!
//! `-- PATH` has the rows of that file instead, `-- chooser` what it costs to choose encodings, `--
//! NAME profile` writes the rows of that name for a profiler.

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

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use common::Case;
use marquetry::arrow_array::RecordBatch;
use marquetry::format::Encoding;
use marquetry::io::WriteSink;
use marquetry::{Compression, Profile, Reader, RowGroupEncoder, WriteOptions, Writer};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::ZstdLevel;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

/// Rows of a batch, for both.
const BATCH: usize = 65_536;

/// Pairs of runs.
const ROUNDS: usize = 7;

/// The same rows, for us and for the rival.
struct Rows {
    ours: Vec<RecordBatch>,
    theirs: Vec<arrow_array_60::RecordBatch>,
    /// The encoding that the rows came in; none is a dictionary.
    encoding: Option<Encoding>,
}

impl Rows {
    fn new(case: &Case) -> Self {
        let reader = Reader::new(case.file.clone()).expect("a file").batch_rows(BATCH);
        let ours = reader.batches().expect("a plan").map(|b| b.expect("a batch")).collect();
        let builder = ParquetRecordBatchReaderBuilder::try_new(case.file.clone()).expect("a file");
        let theirs = builder.with_batch_size(BATCH).build().expect("a reader");
        let chunk = reader.metadata().column_chunk(0, 0).expect("a chunk");
        let meta = chunk.meta_data.expect("a chunk");
        let encoding =
            match meta.dictionary_page_offset {
                Some(_) => None,
                None => meta.encodings.iter().copied().find(|e| {
                    *e != Encoding::Rle || meta.r#type == marquetry::format::Type::Boolean
                }),
            };
        Self { ours, theirs: theirs.map(|b| b.expect("a batch")).collect(), encoding }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Group {
    Forced,
    Chosen,
    Zstd,
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let mut ratios = Vec::new();
    println!(
        "| rows of a file | parquet 60.1, ms | ours, ms | ratio | spread | ours on 2 threads, ms | 1 thread / 2 | bytes, ours / rival |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let embeddings =
        || common::shapes().into_iter().filter(|case| case.name.starts_with("embedding")).collect();
    // The rows of a file, where the text is its path.
    if let Ok(file) = std::fs::read(&filter) {
        let case = Case { name: filter, file: file.into(), rows: 0, views: false };
        let rows = Rows::new(&case);
        row("chosen, no codec", &rows, Group::Chosen);
        row("chosen, ZSTD 1", &rows, Group::Zstd);
        chooser(&case.name, &rows);
        return;
    }
    if filter == "chooser" {
        let mut ratios = Vec::new();
        for case in common::lineitem().into_iter().chain(common::columns()).filter(|c| !c.views) {
            ratios.extend(chooser(&case.name, &Rows::new(&case)));
        }
        let mean = ratios.iter().map(|r: &f64| r.ln()).sum::<f64>() / ratios.len().max(1) as f64;
        println!("{} rows, geometric mean {:.3}", ratios.len(), mean.exp());
        return;
    }
    let groups: [fn() -> Vec<Case>; 4] =
        [common::columns, common::nested, embeddings, common::lineitem];
    for cases in groups {
        for case in cases() {
            if case.views {
                continue;
            }
            let mut rows = None;
            for (group, name) in [
                (Group::Forced, "same encoding, no codec"),
                (Group::Chosen, "chosen, no codec"),
                (Group::Zstd, "chosen, ZSTD 1"),
            ] {
                let name = format!("{}: {name}", case.name);
                let table = case.name.starts_with("lineitem");
                if !name.contains(&filter) || (table && group == Group::Forced) {
                    continue;
                }
                let rows = rows.get_or_insert_with(|| Rows::new(&case));
                ratios.push(row(&name, rows, group));
            }
        }
    }
    for (name, rows) in keyed() {
        for (group, of) in [
            (Group::Forced, "dictionary, no codec"),
            (Group::Chosen, "chosen, no codec"),
            (Group::Zstd, "chosen, ZSTD 1"),
        ] {
            let name = format!("{name}: {of}");
            if name.contains(&filter) {
                ratios.push(row(&name, &rows, group));
            }
        }
    }
    let mean = ratios.iter().map(|r: &f64| r.ln()).sum::<f64>() / ratios.len().max(1) as f64;
    let below = ratios.iter().filter(|r| **r < 1.0).count();
    println!(
        "\n{} rows, geometric mean of the ratios {:.2}, {below} below 1.0",
        ratios.len(),
        mean.exp()
    );
}

/// Arrays of keys and of runs, built alike with both versions of Arrow.
macro_rules! keyed_batch {
    ($arrow:ident, $n:expr, $key:expr) => {{
        let texts = (0..1000).map(|i| format!("a value that is number {i}"));
        let texts = Arc::new($arrow::StringArray::from_iter_values(texts));
        let ints = Arc::new($arrow::Int64Array::from_iter_values((0..1000).map(|i| i * 1_000_003)));
        let keys = $arrow::Int32Array::from_iter_values((0..$n).map($key));
        let runs = (1..=$n / 64).map(|i| i * 64);
        let ends = $arrow::Int32Array::from_iter_values(runs);
        let of_runs = (0..$n / 64).map(|i| format!("a value that is number {}", $key(i)));
        let of_runs = $arrow::StringArray::from_iter_values(of_runs);
        let arrays: [(&str, $arrow::ArrayRef); 3] = [
            ("dictionary of strings", Arc::new($arrow::DictionaryArray::new(keys.clone(), texts))),
            ("dictionary of integers", Arc::new($arrow::DictionaryArray::new(keys, ints))),
            (
                "runs of strings",
                Arc::new($arrow::RunArray::try_new(&ends, &of_runs).expect("runs")),
            ),
        ];
        arrays.map(|(name, array)| {
            (name, $arrow::RecordBatch::try_from_iter([("v", array)]).expect("a column"))
        })
    }};
}

fn keyed() -> Vec<(String, Rows)> {
    use marquetry::arrow_array;
    // Some order, but no runs.
    let key = |i: i32| i.wrapping_mul(0x9E37_79B1u32 as i32).rem_euclid(1000);
    let n = common::ROWS as i32;
    let ours = keyed_batch!(arrow_array, n, key);
    let theirs = keyed_batch!(arrow_array_60, n, key);
    ours.into_iter()
        .zip(theirs)
        .map(|((name, ours), (_, theirs))| {
            let rows = Rows { ours: vec![ours], theirs: vec![theirs], encoding: None };
            (format!("{name} in Arrow"), rows)
        })
        .collect()
}

fn row(name: &str, rows: &Rows, group: Group) -> f64 {
    if std::env::args().any(|arg| arg == "profile") {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            std::hint::black_box(ours(rows, group, 1));
        }
        return 1.0;
    }
    let time = |run: &dyn Fn() -> usize| {
        let (start, cpu) = (Instant::now(), cpu());
        let bytes = std::hint::black_box(run());
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        (ms(self::cpu().saturating_sub(cpu)), ms(start.elapsed()), bytes)
    };
    let them: &dyn Fn() -> usize = &|| theirs(rows, group);
    let us: &dyn Fn() -> usize = &|| ours(rows, group, 1);
    let two: &dyn Fn() -> usize = &|| ours(rows, group, 2);
    let (their_bytes, our_bytes) = (time(them).2, time(us).2);
    let (mut a, mut b, mut c, mut ratios, mut scaling) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let ((t, ..), (o, one, _), (_, w, _)) = (time(them), time(us), time(two));
        a.push(t);
        b.push(o);
        c.push(w);
        ratios.push(t / o);
        scaling.push(one / w);
    }
    let least = ratios.iter().copied().fold(f64::MAX, f64::min);
    let max = ratios.iter().copied().fold(0.0, f64::max);
    let ratio = median(&mut ratios);
    println!(
        "| {name} | {:.2} | {:.2} | {ratio:.2} | {least:.2} to {max:.2} | {:.2} | {:.2} | {:.3} |",
        median(&mut a),
        median(&mut b),
        median(&mut c),
        median(&mut scaling),
        our_bytes as f64 / their_bytes as f64
    );
    ratio
}

/// Measures the cost of choosing encodings: the time of a file whose encodings are chosen, by that
/// of one whose are given, and are the same.
fn chooser(name: &str, rows: &Rows) -> [f64; 2] {
    [(Group::Chosen, "no codec"), (Group::Zstd, "ZSTD 1")].map(|(group, codec)| {
        let file = written(options(rows, group), rows, 1);
        let reader = Reader::new(bytes::Bytes::from(file)).expect("a file of ours");
        let mut forced = options(rows, group);
        for leaf in 0.. {
            let Ok(chunk) = reader.metadata().column_chunk(0, leaf) else { break };
            let meta = chunk.meta_data.expect("a chunk");
            let keyed = meta.dictionary_page_offset.map(|_| Encoding::RleDictionary);
            let other = meta.encodings.iter().copied().find(|e| *e != Encoding::Rle);
            let encoding = keyed.or(other).unwrap_or(Encoding::Rle);
            let path = meta.path_in_schema.join(".");
            forced = forced.with_column(&path, |column| column.with_encoding(encoding));
        }
        let mut ratios = Vec::new();
        for _ in 0..ROUNDS {
            let time = |options: WriteOptions| {
                let start = cpu();
                std::hint::black_box(written(options, rows, 1));
                cpu().saturating_sub(start).as_secs_f64()
            };
            ratios.push(time(options(rows, group)) / time(forced.clone()));
        }
        let ratio = median(&mut ratios);
        println!("{name}: {codec}: chosen / given {ratio:.3}");
        ratio
    })
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
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ours(rows: &Rows, group: Group, threads: usize) -> usize {
    written(options(rows, group), rows, threads).len()
}

fn options(rows: &Rows, group: Group) -> WriteOptions {
    let options = WriteOptions::new().with_profile(Profile::Balanced);
    let options = match group {
        Group::Zstd => options.with_compression(Compression::Zstd(1)),
        _ => options.with_compression(Compression::Uncompressed),
    };
    if group != Group::Forced {
        return options;
    }
    let encoding = rows.encoding.unwrap_or(Encoding::RleDictionary);
    options.with_column("*", |column| column.with_encoding(encoding))
}

fn written(options: WriteOptions, rows: &Rows, threads: usize) -> Vec<u8> {
    let schema = rows.ours[0].schema();
    let encoder = RowGroupEncoder::new(schema, options).expect("a schema");
    let encoder = match threads {
        1 => encoder.with_threads(1).expect("one thread"),
        n => encoder.with_pool(pool(n)),
    };
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    for batch in &rows.ours {
        writer.write(batch).expect("a batch that can be written");
    }
    writer.into_inner().expect("a file").1
}

fn theirs(rows: &Rows, group: Group) -> usize {
    let mut properties: WriterPropertiesBuilder = WriterProperties::builder();
    if group == Group::Zstd {
        let level = ZstdLevel::try_new(1).expect("a level");
        properties = properties.set_compression(parquet::basic::Compression::ZSTD(level));
    }
    if group == Group::Forced {
        properties = match rows.encoding {
            None => properties.set_dictionary_page_size_limit(64 << 20),
            Some(encoding) => {
                let encoding = encoding.to_string().parse().expect("an encoding");
                properties.set_dictionary_enabled(false).set_encoding(encoding)
            }
        };
    }
    let schema = rows.theirs[0].schema();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), schema, Some(properties.build())).expect("a writer");
    for batch in &rows.theirs {
        writer.write(batch).expect("a batch that can be written");
    }
    writer.into_inner().expect("a file").len()
}

/// One pool for all runs, as a service would have.
fn pool(threads: usize) -> Arc<rayon::ThreadPool> {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let build = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    POOL.get_or_init(|| Arc::new(build())).clone()
}
