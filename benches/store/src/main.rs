//! Reads from a simulated object store: 30 ms until the first byte of a request, then 100 MB/s for
//! each request. Us beside the asynchronous reader of the `parquet` crate 60.1, in turns, in one
//! process.
//!
//! `cargo run --release --manifest-path benches/store/Cargo.toml` prints one Markdown table. The
//! file has 100 columns of random 64-bit integers, in 20 row groups of 6 MB. The bound is the time
//! in which one connection brings the footer and the wanted bytes and nothing else: two requests
//! that depend on each other, and all bytes at 100 MB/s. Requests that run side by side can be
//! faster; what lies between columns and is read with them makes it slower.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array_60::cast::AsArray;
use arrow_array_60::types::Int64Type;
use arrow_array_60::{BooleanArray, RecordBatch as TheirBatch};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch};
use marquetry::io::{AsyncSource, FileEnd, WriteSink};
use marquetry::{Compression, Reader, WriteOptions, Writer, col};
use object_store::{OBJECT_STORE_COALESCE_DEFAULT, coalesce_ranges};
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, RowFilter,
};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

const COLUMNS: usize = 100;
const ROW_GROUPS: i64 = 20;
const ROWS: i64 = 7_500;
const LATENCY: Duration = Duration::from_millis(30);
const BYTES_PER_SECOND: f64 = 100e6;
const ROUNDS: usize = 5;

/// The guessed length of the footer, the same for both.
const GUESS: usize = 512 << 10;

#[derive(Clone)]
struct Store {
    file: Bytes,
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Store {
    async fn get(&self, range: Range<u64>) -> Bytes {
        let len = range.end - range.start;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(len, Ordering::Relaxed);
        tokio::time::sleep(LATENCY + transfer(len)).await;
        self.file.slice(range.start as usize..range.end as usize)
    }
}

fn transfer(bytes: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND)
}

impl AsyncSource for Store {
    fn len(&self) -> BoxFuture<'_, marquetry::Result<u64>> {
        async { Ok(self.file.len() as u64) }.boxed()
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, marquetry::Result<Bytes>> {
        self.get(range).map(Ok).boxed()
    }

    fn read_end(&self, max: u64) -> BoxFuture<'_, marquetry::Result<FileEnd>> {
        let file_len = self.file.len() as u64;
        let range = file_len.saturating_sub(max)..file_len;
        self.get(range).map(move |bytes| Ok(FileEnd::new(bytes, file_len))).boxed()
    }
}

impl AsyncFileReader for Store {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        self.get(range).map(Ok).boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        async move {
            let get = |range| self.get(range).map(Ok::<_, parquet::errors::ParquetError>);
            coalesce_ranges(&ranges, get, OBJECT_STORE_COALESCE_DEFAULT).await
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        async move {
            let len = self.file.len() as u64;
            let indexes = options.map_or(PageIndexPolicy::Skip, |o| o.offset_index_policy());
            let reader = ParquetMetaDataReader::new()
                .with_page_index_policy(indexes)
                .with_prefetch_hint(Some(GUESS));
            reader.load_and_finish(&mut *self, len).await.map(Arc::new)
        }
        .boxed()
    }
}

/// A read: columns, and the rows whose key is below a number.
struct Case {
    name: &'static str,
    columns: Vec<usize>,
    below: Option<i64>,
}

fn main() {
    let file = file();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    let cases = [
        Case { name: "3 columns side by side", columns: vec![50, 51, 52], below: None },
        Case { name: "3 columns far apart", columns: vec![10, 50, 90], below: None },
        Case {
            name: "3 columns, 1 % of the rows",
            columns: vec![10, 50, 90],
            below: Some(KEYS / 100),
        },
        Case {
            name: "50 columns, 1 % of the rows",
            columns: (50..100).collect(),
            below: Some(KEYS / 100),
        },
        Case { name: "all columns", columns: (0..COLUMNS).collect(), below: None },
    ];
    println!(
        "| read of {} MB | bound, ms | parquet, ms | ours, ms | parquet / ours | ours / bound | requests, theirs | ours | MB, theirs | ours |",
        file.len() / 1_000_000
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for case in cases {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(measure(&runtime, &file, |store| our_read(store, &case)));
            theirs.push(measure(&runtime, &file, |store| their_read(store, &case)));
        }
        assert_eq!(ours[0].rows, theirs[0].rows);
        let median = |all: &mut Vec<Measured>| {
            all.sort_by_key(|one| one.time);
            all[all.len() / 2]
        };
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        // The wanted bytes are known exactly if whole chunks are read.
        let chunks = case.columns.len() as u64 * (ROW_GROUPS * ROWS * 8) as u64;
        let bound = 2 * LATENCY + transfer(chunks);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (shown, ratio) = match case.below {
            None => (format!("{:.0}", ms(bound)), format!("{:.2}", ms(ours.time) / ms(bound))),
            Some(_) => ("–".into(), "–".into()),
        };
        println!(
            "| {} | {shown} | {:.0} | {:.0} | {:.1} | {ratio} | {} | {} | {:.1} | {:.1} |",
            case.name,
            ms(theirs.time),
            ms(ours.time),
            ms(theirs.time) / ms(ours.time),
            theirs.requests,
            ours.requests,
            theirs.bytes as f64 / 1e6,
            ours.bytes as f64 / 1e6,
        );
    }
}

#[derive(Clone, Copy)]
struct Measured {
    rows: usize,
    time: Duration,
    requests: u64,
    bytes: u64,
}

fn measure<F: Future<Output = usize>>(
    runtime: &tokio::runtime::Runtime,
    file: &Bytes,
    read: impl FnOnce(Store) -> F,
) -> Measured {
    let store = Store { file: file.clone(), requests: Arc::default(), bytes: Arc::default() };
    let begun = Instant::now();
    let rows = runtime.block_on(read(store.clone()));
    let time = begun.elapsed();
    let (requests, bytes) =
        (store.requests.load(Ordering::Relaxed), store.bytes.load(Ordering::Relaxed));
    Measured { rows, time, requests, bytes }
}

async fn our_read(store: Store, case: &Case) -> usize {
    let reader = Reader::open_async(store).await.expect("a file");
    let mut reader = reader.project(case.columns.iter().map(|i| name(*i))).expect("columns");
    if let Some(below) = case.below {
        reader = reader.filter(col(name(0)).lt(below));
    }
    let batches = reader.stream().expect("a plan");
    batches.try_fold(0, async |rows, batch| Ok(rows + batch.num_rows())).await.expect("rows")
}

async fn their_read(mut store: Store, case: &Case) -> usize {
    let indexes = match case.below {
        Some(_) => PageIndexPolicy::Optional,
        None => PageIndexPolicy::Skip,
    };
    let options = ArrowReaderOptions::new().with_page_index_policy(indexes);
    let metadata = ArrowReaderMetadata::load_async(&mut store, options).await.expect("a file");
    let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(store, metadata);
    let leaves = |columns: &[usize]| {
        ProjectionMask::leaves(builder.parquet_schema(), columns.iter().copied())
    };
    let (projected, key) = (leaves(&case.columns), leaves(&[0]));
    let mut builder = builder.with_projection(projected).with_batch_size(65_536);
    if let Some(below) = case.below {
        let test = move |batch: TheirBatch| {
            let keys = batch.column(0).as_primitive::<Int64Type>();
            Ok(BooleanArray::from_unary(keys, |key| key < below))
        };
        let predicate = Box::new(ArrowPredicateFn::new(key, test));
        builder = builder.with_row_filter(RowFilter::new(vec![predicate]));
    }
    let batches = builder.build().expect("a stream");
    batches.try_fold(0, async |rows, batch| Ok(rows + batch.num_rows())).await.expect("rows")
}

fn name(i: usize) -> String {
    format!("c{i:02}")
}

/// The keys of column 0 run from 0 to `KEYS` in every row group, so that no row group can be pruned
/// by its statistics.
const KEYS: i64 = ROWS;

fn file() -> Bytes {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut row_group = || {
        let mut columns = vec![Int64Array::from_iter_values(0..KEYS)];
        columns
            .resize_with(COLUMNS, || Int64Array::from_iter_values((0..ROWS).map(|_| rng.i64(..))));
        let columns = columns.into_iter().enumerate();
        let columns = columns.map(|(i, column)| (name(i), Arc::new(column) as ArrayRef));
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    let first = row_group();
    let options = WriteOptions::new()
        .with_compression(Compression::Uncompressed)
        .with_row_group_rows(ROWS as u64)
        .with_page_rows(500);
    let mut writer = Writer::new(WriteSink(Vec::new()), first.schema(), options).expect("a writer");
    writer.write(&first).expect("rows");
    for _ in 1..ROW_GROUPS {
        writer.write(&row_group()).expect("rows");
    }
    writer.into_inner().expect("a file").1.into()
}
