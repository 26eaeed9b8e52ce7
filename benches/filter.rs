//! Filtered reads from memory, on one thread: us beside the `parquet` crate 60.1 with its
//! `RowFilter`, and beside our own full scan with a filter after it, in turns, in one process.
//!
//! `cargo bench --bench filter` prints one Markdown table; `cargo bench --bench filter -- TEXT`
//! only the rows whose name holds the text. A ratio is the other / ours, the median over the rounds
//! of the pairs measured side by side. Filters of strings run on the ClickBench table if
//! `MARQUETRY_HITS` names its file, else on one like it. `take` reads rows by their numbers, beside
//! a `RowSelection` with the page index.

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
use arrow_array_60::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use bytes::Bytes;
use marquetry::{Predicate, Reader, col};
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
    RowFilter, RowSelector,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
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
    let files = [
        ("sorted keys", false, Compression::SNAPPY),
        ("random keys", true, Compression::SNAPPY),
        ("random keys, not compressed", true, Compression::UNCOMPRESSED),
    ];
    for (order, shuffled, compression) in files {
        let names: Vec<String> = SHARES
            .iter()
            .map(|share| format!("{order}, {} %", share * 100.0))
            .chain([format!("{order}, count a city of 50"), format!("{order}, a city of 50")])
            .collect();
        if !names.iter().any(|name| name.contains(&wanted)) {
            continue;
        }
        let table = Table { file: keys(shuffled, compression), columns: None };
        for (share, name) in SHARES.iter().zip(&names) {
            let below = (ROWS as f64 * share) as i64;
            if name.contains(&wanted) {
                let predicate = col("key").lt(below);
                row(name, &table, &predicate, "key", move |keys| {
                    let keys = keys.as_primitive::<Int64Type>();
                    BooleanArray::from_unary(keys, |key| key < below)
                });
            }
        }
        let city = col("city").eq("city 7");
        if let Some(name) = names.get(SHARES.len()).filter(|name| name.contains(&wanted)) {
            count(name, &table, &city);
        }
        if let Some(name) = names.get(SHARES.len() + 1).filter(|name| name.contains(&wanted)) {
            row(name, &table, &city, "city", |cities| text(cities, |city| city == "city 7"));
        }
    }
    strings(&wanted);
    points(&wanted);
}

const SHARES: [f64; 5] = [0.001, 0.01, 0.1, 0.5, 0.99];

/// A file, and the columns that are read of it.
struct Table {
    file: Bytes,
    columns: Option<Vec<&'static str>>,
}

/// Filters of strings: on the ClickBench table if `MARQUETRY_HITS` names it, else on a similar one.
fn strings(wanted: &str) {
    type Test = fn(&str) -> bool;
    let cases: [(&str, Predicate, &str, Test, bool); 6] = [
        ("url like '%google%'", col("url").like("%google%"), "url", |s| s.contains("google"), true),
        (
            "url like '%google%', not read",
            col("url").like("%google%"),
            "url",
            |s| s.contains("google"),
            false,
        ),
        (
            "search_phrase <> ''",
            col("search_phrase").not_eq(""),
            "search_phrase",
            |s| !s.is_empty(),
            true,
        ),
        ("search_phrase = ''", col("search_phrase").eq(""), "search_phrase", str::is_empty, false),
        ("title like 'a%'", col("title").like("a%"), "title", |s| s.starts_with('a'), true),
        ("referer = ''", col("referer").eq(""), "referer", str::is_empty, true),
    ];
    if !cases.iter().any(|case| case.0.contains(wanted)) {
        return;
    }
    let file = match std::env::var_os("MARQUETRY_HITS") {
        Some(path) => std::fs::read(path).expect("the file that MARQUETRY_HITS names").into(),
        None => visits(),
    };
    for (name, predicate, column, test, read) in cases {
        if !name.contains(wanted) {
            continue;
        }
        let all = ["url", "search_phrase", "title", "referer"];
        let columns = all.into_iter().filter(|name| read || *name != column).collect();
        let table = Table { file: file.clone(), columns: Some(columns) };
        row(name, &table, &predicate, column, move |values| text(values, test));
    }
}

fn text(values: &ArrayRef, test: impl Fn(&str) -> bool) -> BooleanArray {
    let values = values.as_string::<i32>();
    (0..values.len()).map(|i| Some(test(values.value(i)))).collect()
}

/// Visits of web pages; most pages were visited often.
fn visits() -> Bytes {
    let mut rng = fastrand::Rng::with_seed(3);
    let words = ["news", "google", "maps", "shop", "forum", "auto", "music", "weather", "photo"];
    let word = |rng: &mut fastrand::Rng| words[rng.usize(0..words.len())];
    let urls: Vec<String> = (0..60_000)
        .map(|_| {
            let (host, path) = (rng.u16(0..3000), rng.u32(..));
            format!(
                "http://{}{host}.example/{}/{path:x}?id={}",
                word(&mut rng),
                word(&mut rng),
                rng.u16(..)
            )
        })
        .collect();
    let titles: Vec<String> = (0..20_000)
        .map(|_| format!("{} {} - {}", word(&mut rng), word(&mut rng), rng.u32(..)))
        .collect();
    // Few of them make the most of the visits.
    let mut often = |n: usize| {
        let share = rng.f64();
        (share * share * share * n as f64) as usize
    };
    let of = |texts: &[String], often: &mut dyn FnMut(usize) -> usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            (0..ROWS).map(|_| texts[often(texts.len())].as_str()),
        ))
    };
    let (url, title, referer) =
        (of(&urls, &mut often), of(&titles, &mut often), of(&urls, &mut often));
    let phrases = StringArray::from_iter_values((0..ROWS).map(|_| match rng.u8(0..10) {
        0 => format!("{} {}", word(&mut rng), rng.u16(0..5000)),
        _ => String::new(),
    }));
    let batch = RecordBatch::try_from_iter([
        (
            "watch_id",
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| rng.i64(..)))) as ArrayRef,
        ),
        ("url", url),
        ("title", title),
        ("referer", referer),
        ("search_phrase", Arc::new(phrases)),
    ])
    .expect("columns of one length");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(250_000));
    common::write(&batch, properties)
}

/// Five columns; the keys are 0 to the number of rows.
fn keys(shuffled: bool, compression: Compression) -> Bytes {
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
        .set_compression(compression)
        .set_max_row_group_row_count(Some(250_000))
        .set_data_page_row_count_limit(20_000);
    common::write(&batch, properties)
}

impl Table {
    fn reader(&self) -> Reader {
        let reader = Reader::new(self.file.clone()).expect("a file").threads(1).batch_rows(BATCH);
        match &self.columns {
            Some(columns) => reader.project(columns).expect("columns"),
            None => reader,
        }
    }

    fn ours(&self, predicate: &Predicate) -> usize {
        let reader = self.reader().filter(predicate.clone());
        reader.batches().expect("a plan").map(|batch| batch.expect("a batch").num_rows()).sum()
    }

    /// Everything is read, and filtered after it; what only the filter needs is left out then.
    fn scan(&self, predicate: &Predicate, column: &str) -> usize {
        let reader = self.reader();
        let columns = self.columns.clone().unwrap_or_default();
        let wanted: Vec<usize> = (0..columns.len()).collect();
        let is_more = self.columns.is_some() && !columns.contains(&column);
        let reader = match is_more {
            true => reader.project(columns.into_iter().chain([column])).expect("columns"),
            false => reader,
        };
        let bound = predicate.bind_to(&reader.schema().expect("a schema")).expect("columns");
        let batches = reader.batches().expect("a plan").map(|batch| {
            let mut batch = batch.expect("a batch");
            let keep = bound.evaluate(&batch).expect("verdicts");
            if is_more {
                batch = batch.project(&wanted).expect("columns");
            }
            arrow_select::filter::filter_record_batch(&batch, &keep).expect("rows").num_rows()
        });
        batches.sum()
    }

    fn theirs(
        &self,
        column: &str,
        predicate: impl Fn(&ArrayRef) -> BooleanArray + Send + 'static,
    ) -> usize {
        let options = ArrowReaderOptions::new()
            .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required);
        let builder =
            ParquetRecordBatchReaderBuilder::try_new_with_options(self.file.clone(), options)
                .expect("a file");
        let mask = ProjectionMask::columns(builder.parquet_schema(), [column]);
        let filter = ArrowPredicateFn::new(mask, move |batch| Ok(predicate(batch.column(0))));
        let wanted = match &self.columns {
            Some(columns) => {
                ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied())
            }
            None => ProjectionMask::all(),
        };
        let builder = builder.with_row_filter(RowFilter::new(vec![Box::new(filter)]));
        let reader =
            builder.with_projection(wanted).with_batch_size(BATCH).build().expect("a reader");
        reader.map(|batch| batch.expect("a batch").num_rows()).sum()
    }
}

/// Counts, beside a scan of the one column.
fn count(name: &str, table: &Table, predicate: &Predicate) {
    let whole = table.reader();
    let few = whole.clone().project(["city"]).expect("a column");
    let bound = predicate.bind_to(&few.schema().expect("a schema")).expect("a column");
    let scan = || -> usize {
        let batches = few
            .batches()
            .expect("a plan")
            .map(|batch| bound.evaluate(&batch.expect("a batch")).expect("verdicts").true_count());
        batches.sum()
    };
    let whole = whole.filter(predicate.clone());
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

fn row(
    name: &str,
    table: &Table,
    predicate: &Predicate,
    column: &str,
    of_theirs: impl Fn(&ArrayRef) -> BooleanArray + Send + Clone + 'static,
) {
    let rows = table.ours(predicate);
    assert_eq!(rows, table.scan(predicate, column), "{name}");
    assert_eq!(rows, table.theirs(column, of_theirs.clone()), "{name}");
    let mut times = [vec![], vec![], vec![], vec![], vec![]];
    for _ in 0..ROUNDS {
        let rival = time(&|| table.theirs(column, of_theirs.clone()));
        let full = time(&|| table.scan(predicate, column));
        let own = time(&|| table.ours(predicate));
        for (all, one) in times.iter_mut().zip([rival, full, own, rival / own, full / own]) {
            all.push(one);
        }
    }
    let [rival, full, own, by_rival, by_full] = times.map(median);
    println!(
        "| {name} | {rows} | {rival:.2} | {full:.2} | {own:.2} | {by_rival:.2} | {by_full:.2} |"
    );
}

/// 1,000 random rows of 10 million, by their numbers: the file open already, or opened for them; on
/// one thread, and on as many as there are.
fn points(wanted: &str) {
    let files = [("SNAPPY", Compression::SNAPPY), ("not compressed", Compression::UNCOMPRESSED)];
    for (name, compression) in files {
        let name = format!("take 1,000 of 10,000,000 rows, {name}");
        if name.contains(wanted) {
            point_reads(&name, &many_rows(compression));
        }
    }
}

/// Five columns, in chunks of a million rows.
fn many_rows(compression: Compression) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut writer = None;
    for chunk in 0..10 {
        let rows = 1_000_000;
        let ids = Int64Array::from_iter_values((0..rows).map(|i| chunk * rows + i));
        let prices = Float64Array::from_iter_values((0..rows).map(|_| rng.f64()));
        let counts =
            Int64Array::from_iter((0..rows).map(|_| (rng.u8(0..9) > 0).then(|| rng.i64(0..500))));
        let cities =
            StringArray::from_iter_values((0..rows).map(|_| format!("city {}", rng.u8(0..50))));
        let texts =
            StringArray::from_iter_values((0..rows).map(|_| format!("text {:x}", rng.u64(..))));
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as ArrayRef),
            ("price", Arc::new(prices)),
            ("count", Arc::new(counts)),
            ("city", Arc::new(cities)),
            ("text", Arc::new(texts)),
        ])
        .expect("columns of one length");
        let writer = writer.get_or_insert_with(|| {
            let properties = WriterProperties::builder()
                .set_compression(compression)
                .set_data_page_row_count_limit(4_000)
                .set_write_batch_size(1_000);
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build()))
                .expect("a writer")
        });
        writer.write(&batch).expect("a batch");
    }
    writer.expect("chunks").into_inner().expect("a file").into()
}

fn point_reads(name: &str, file: &Bytes) {
    let mut rng = fastrand::Rng::with_seed(9);
    let rows: Vec<u64> = (0..1000).map(|_| rng.u64(0..10_000_000)).collect();
    let mut sorted = rows.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let mut selectors = Vec::new();
    let mut at = 0;
    for row in &sorted {
        selectors.push(RowSelector::skip((row - at) as usize));
        selectors.push(RowSelector::select(1));
        at = row + 1;
    }
    let options = ArrowReaderOptions::new()
        .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required);
    let open_theirs = || ArrowReaderMetadata::load(file, options.clone()).expect("metadata");
    let take_theirs = |metadata: &ArrowReaderMetadata| -> usize {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone());
        let builder = builder.with_row_selection(selectors.clone().into());
        let reader = builder.with_batch_size(BATCH).build().expect("a reader");
        reader.map(|batch| batch.expect("a batch").num_rows()).sum()
    };
    let open_on_all = || Reader::new(file.clone()).expect("a file");
    let open = || open_on_all().threads(1);
    let take = |reader: &Reader| reader.take(&rows).expect("rows").num_rows();
    let (reader, metadata) = (open(), open_theirs());
    assert_eq!(take(&reader), rows.len());
    assert_eq!(take_theirs(&metadata), sorted.len());
    let fetched = reader.progress().bytes_fetched();
    let again = (take(&reader), reader.progress().bytes_fetched() - fetched).1;
    let of_pages = bytes_of_pages(&reader, &sorted);
    let on_all = open_on_all();
    assert_eq!(take(&on_all), rows.len());
    type Read<'a> = &'a dyn Fn() -> usize;
    let cases: [(&str, Read<'_>, Read<'_>); 4] = [
        ("opened for it", &|| take_theirs(&open_theirs()), &|| take(&open())),
        ("open", &|| take_theirs(&metadata), &|| take(&reader)),
        ("opened for it, all threads", &|| take_theirs(&open_theirs()), &|| take(&open_on_all())),
        ("open, all threads", &|| take_theirs(&metadata), &|| take(&on_all)),
    ];
    for (case, theirs, ours) in cases {
        let mut times = [vec![], vec![], vec![]];
        for _ in 0..ROUNDS {
            let (rival, own) = (time(theirs), time(ours));
            for (all, one) in times.iter_mut().zip([rival, own, rival / own]) {
                all.push(one);
            }
        }
        let [rival, own, ratio] = times.map(median);
        println!("| {name}, {case} | 1000 | {rival:.2} | | {own:.2} | {ratio:.2} | |");
    }
    let share = |bytes: u64| bytes as f64 / of_pages as f64;
    println!(
        "| {name}: bytes fetched / bytes of the pages | | | | {:.3}, then {:.3} | | |",
        share(fetched),
        share(again)
    );
}

/// Bytes of the pages that hold the rows, dictionaries included.
fn bytes_of_pages(reader: &Reader, rows: &[u64]) -> u64 {
    let footer = reader.metadata();
    let (mut first, mut bytes) = (0, 0u64);
    for row_group in 0..footer.row_groups() {
        let end = first + footer.row_group_rows(row_group).expect("a count");
        let inside: Vec<i64> = rows
            .iter()
            .filter(|row| (first..end).contains(*row))
            .map(|row| (row - first) as i64)
            .collect();
        for leaf in 0..footer.schema().leaves_len() {
            let index = reader.page_index(row_group, leaf).expect("an index");
            let pages = index.offset_index.expect("an offset index").page_locations;
            let meta = footer.column_chunk(row_group, leaf).expect("a chunk").meta_data;
            let dictionary =
                meta.and_then(|meta| Some(meta.data_page_offset - meta.dictionary_page_offset?));
            bytes += dictionary.unwrap_or(0) as u64;
            for (i, page) in pages.iter().enumerate() {
                let behind = pages.get(i + 1).map_or(i64::MAX, |next| next.first_row_index);
                let from = inside.partition_point(|row| *row < page.first_row_index);
                if inside.get(from).is_some_and(|row| *row < behind) {
                    bytes += page.compressed_page_size as u64;
                }
            }
        }
        first = end;
    }
    bytes
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
