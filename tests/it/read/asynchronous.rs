//! Tests that asynchronous reads return what other reads do, however slow or faulty the source, and
//! how many requests they make.

use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt};
use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch};
use marquetry::io::{AsyncSource, WriteSink};
use marquetry::read::{Latency, PageIndexUse, ReadAhead, VirtualColumn};
use marquetry::schema::Projection;
use marquetry::{
    AsyncReader, Error, ErrorKind, Reader, Result, RowSelection, WriteOptions, Writer, col,
};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::filter::rows::table;
use crate::read::row_selection::{flags, lie, one_column, write};
use crate::support::cells::columns;
use crate::support::generate::{case, every_case};
use crate::support::predicates::{Target, comparable, random};
use crate::support::{read_with, testdata, with_index};

/// A file that is far away.
#[derive(Default)]
struct Far {
    file: Bytes,
    latency: Option<Latency>,
    delay: Duration,
    /// The request that fails, and how.
    fails: Option<(usize, Fault)>,
    requests: Arc<Mutex<Vec<Range<u64>>>>,
    /// Requests without an answer now, and how often one was made when there was none.
    in_flight: Arc<(AtomicUsize, AtomicUsize)>,
}

#[derive(Clone, Copy)]
enum Fault {
    Error,
    Short,
    Long,
}

impl Far {
    fn new(file: impl Into<Bytes>) -> Self {
        Self { file: file.into(), ..Self::default() }
    }
}

impl AsyncSource for Far {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async { Ok(self.file.len() as u64) })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let n = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(range.clone());
                requests.len() - 1
            };
            let (now, rounds) = &*self.in_flight;
            if now.fetch_add(1, Ordering::Relaxed) == 0 {
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            now.fetch_sub(1, Ordering::Relaxed);
            let bytes = self.file.slice(range.start as usize..range.end as usize);
            match self.fails {
                Some((at, Fault::Error)) if at == n => {
                    Err(Error::io("far away", std::io::Error::other("gone")))
                }
                Some((at, Fault::Short)) if at == n => Ok(bytes.slice(..bytes.len() - 1)),
                Some((at, Fault::Long)) if at == n => Ok([&bytes[..], b"!"].concat().into()),
                _ => Ok(bytes),
            }
        })
    }

    fn latency(&self) -> Latency {
        self.latency.unwrap_or(Latency::STORE)
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let max = Duration::from_secs(60);
        tokio::time::timeout(max, work).await.expect("an end")
    })
}

async fn open(file: impl Into<Bytes>) -> AsyncReader {
    Reader::open_async(Far::new(file)).await.expect("a file")
}

async fn rows(reader: &AsyncReader) -> Result<Vec<RecordBatch>> {
    reader.stream()?.try_collect().await
}

#[test]
fn every_file_of_the_folder_is_the_same_from_a_store() {
    run(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let folder = testdata("");
        let mut files = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "parquet") {
                continue;
            }
            files += 1;
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let file = std::fs::read(&path).unwrap();
            store.put(&name.clone().into(), file.into()).await.unwrap();
            for threads in [1, 2] {
                let expected = read_with(Reader::open(&path).unwrap().threads(threads)).unwrap();
                let reader = Reader::open_store(store.clone(), name.as_str()).await.unwrap();
                let reader = reader.threads(threads);
                assert_eq!(rows(&reader).await.unwrap(), expected, "{name}");
                assert_eq!(reader.count().await.unwrap(), reader.file_rows().unwrap());
            }
        }
        assert!(files > 20);
    });
}

#[test]
fn random_reads_give_the_rows_of_the_blocking_reader() {
    every_case(600, |seed| {
        let case = case(seed);
        let rng = &mut Rng::with_seed(seed);
        let local = Reader::new(case.file.clone()).expect("a file").threads(1);
        let all = columns(&case.schema, &read_with(local.clone()).expect("rows"));
        let n = usize::try_from(local.file_rows().expect("a count")).expect("few rows");
        let comparable = comparable(&case.schema);
        let mut options = local.read_options().clone();
        options.virtual_columns = vec![VirtualColumn::RowNumber { name: "number".into() }];
        let max = [5, 50, 500][rng.usize(0..3)];
        options.batch_rows = rng.usize(1..=max);
        options.page_index =
            [PageIndexUse::Always, PageIndexUse::Auto, PageIndexUse::Never][rng.usize(0..3)];
        if !comparable.is_empty() && rng.u8(0..3) > 0 {
            options.filter = Some(random(rng, &comparable, &all, 2).0);
        }
        if rng.u8(0..3) == 0 {
            let flags: Vec<bool> = (0..n).map(|_| rng.bool()).collect();
            options.selection = Some(RowSelection::from_bits(flags.into()));
        }
        if rng.u8(0..3) == 0 {
            options.offset = rng.u64(0..=n as u64 / 4);
            options.limit = Some(rng.u64(0..=n as u64));
        }
        let gap = [0, 1_000, 1 << 20][rng.usize(0..3)];
        let latency = Latency::new(Duration::from_secs(1), gap);
        let threads = rng.usize(1..=2);
        let expected = read_with(local.options(options.clone())).expect("rows");
        options.latency = Some(latency);
        let name = format!("{:?}: {}", options.filter.as_ref().map(ToString::to_string), case.name);
        run(async {
            let reader = open(case.file.clone()).await.options(options).threads(threads);
            let found = rows(&reader).await.unwrap_or_else(|e| panic!("{e}: {name}"));
            let total = |batches: &[RecordBatch]| -> usize {
                batches.iter().map(RecordBatch::num_rows).sum()
            };
            assert_eq!(total(&found), total(&expected), "{name}");
            assert_eq!(reader.count().await.unwrap(), total(&expected) as u64, "{name}");
            let schema = reader.schema().unwrap();
            assert!(columns(&schema, &found) == columns(&schema, &expected), "{name}");
            if n > 0 {
                let wanted: Vec<u64> =
                    (0..rng.usize(0..20)).map(|_| rng.u64(0..n as u64)).collect();
                let taken = [reader.take(&wanted).await.unwrap()];
                let local =
                    Reader::new(case.file.clone()).unwrap().options(reader.read_options().clone());
                let expected = [local.take(&wanted).unwrap()];
                assert!(columns(&schema, &taken) == columns(&schema, &expected), "{name}");
            }
        });
    });
}

#[test]
fn a_fault_of_the_source_comes_behind_the_rows_before_it() {
    run(async {
        for threads in [1, 2] {
            for fault in [Fault::Error, Fault::Short, Fault::Long] {
                let mut n = 0;
                loop {
                    n += 1;
                    let far = Far { fails: Some((n, fault)), ..Far::new(table()) };
                    let latency = Latency::new(Latency::STORE.per_request, 1_000);
                    let reader = Reader::open_async(far).await.unwrap().threads(threads);
                    let mut batches = reader.latency(latency).batch_rows(1_000).stream().unwrap();
                    let mut given = 0;
                    let error = loop {
                        match batches.next().await {
                            Some(Ok(batch)) => given += batch.num_rows(),
                            Some(Err(e)) => break Some(e),
                            None => break None,
                        }
                    };
                    let Some(error) = error else {
                        assert!(n > 2, "{n} requests");
                        assert_eq!(given, 40_000);
                        break;
                    };
                    assert_eq!(error.kind(), ErrorKind::Io);
                    assert_eq!(given % 10_000, 0, "whole row groups");
                    assert!(error.at().row_group.is_some());
                    assert!(batches.next().await.is_none(), "nothing comes after an error");
                }
            }
        }
        let far = Far { fails: Some((0, Fault::Error)), ..Far::new(table()) };
        assert_eq!(Reader::open_async(far).await.err().unwrap().kind(), ErrorKind::Io);
    });
}

#[test]
fn a_slow_source_is_read_ahead_and_dropping_the_stream_ends_it() {
    run(async {
        let far = Far { delay: Duration::from_millis(100), ..Far::new(table()) };
        let (requests, in_flight) = (far.requests.clone(), far.in_flight.clone());
        let reader = Reader::open_async(far).await.unwrap().project(["key"]).unwrap().threads(2);
        // How often the source is waited for: the end of the file, which it was opened by, has two
        // of the four row groups.
        let waits = async |reader: &AsyncReader| {
            let before = in_flight.1.load(Ordering::Relaxed);
            let batches = rows(reader).await.unwrap();
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 40_000);
            in_flight.1.load(Ordering::Relaxed) - before
        };
        assert_eq!(waits(&reader).await, 1, "two row groups are fetched side by side");
        let one = reader.clone().threads(1).read_ahead(ReadAhead::new(1, u64::MAX));
        assert_eq!(waits(&one).await, 2, "one row group at a time");
        requests.lock().unwrap().clear();
        let mut batches = reader.clone().batch_rows(100).stream().unwrap();
        assert!(batches.next().await.is_some());
        drop(batches);
        let asked = requests.lock().unwrap().len();
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(requests.lock().unwrap().len(), asked);
        let pending = reader.stream().unwrap();
        drop(pending);
    });
}

/// 16 MB: 100 columns of random numbers, 20 row groups of 1,000 rows in pages of 100; the first
/// column counts in each row group from 0.
fn wide() -> Bytes {
    let mut rng = Rng::with_seed(1);
    let mut row_group = || {
        let mut columns = vec![Int64Array::from_iter_values(0..1_000)];
        columns.resize_with(100, || Int64Array::from_iter_values((0..1_000).map(|_| rng.i64(..))));
        let columns = columns.into_iter().enumerate();
        RecordBatch::try_from_iter(
            columns.map(|(i, it)| (format!("c{i}"), Arc::new(it) as ArrayRef)),
        )
    };
    let first = row_group().unwrap();
    let options = WriteOptions::new().with_row_group_rows(1_000).with_page_rows(100);
    let mut writer = Writer::new(WriteSink(Vec::new()), first.schema(), options).unwrap();
    writer.write(&first).unwrap();
    (1..20).for_each(|_| writer.write(&row_group().unwrap()).unwrap());
    writer.into_inner().unwrap().1.into()
}

#[test]
fn requests_are_few() {
    run(async {
        // The tail holds all of a small file.
        let far = Far::new(std::fs::read(testdata("trips.parquet")).unwrap());
        let requests = far.requests.clone();
        let reader = Reader::open_async(far).await.unwrap().filter(col("id").lt(100));
        assert!(reader.count().await.unwrap() > 0);
        assert_eq!(requests.lock().unwrap().len(), 1);

        let file = wide();
        for threads in [1, 2] {
            let far = Far::new(file.clone());
            let requests = far.requests.clone();
            let reader = Reader::open_async(far).await.unwrap().threads(threads);
            assert_eq!(requests.lock().unwrap().len(), 1, "the footer");
            let three = reader.clone().project(["c3", "c50", "c90"]).unwrap();
            rows(&three).await.unwrap();
            assert_eq!(requests.lock().unwrap().len(), 1 + 20, "one a row group");
            requests.lock().unwrap().clear();
            let few = three.filter(col("c0").lt(10));
            assert_eq!(few.count().await.unwrap(), 200);
            rows(&few).await.unwrap();
            let asked = requests.lock().unwrap().len();
            assert!(asked <= 2 * (1 + 2 * 20), "{asked}: indexes, and at most two a row group");
            requests.lock().unwrap().clear();
            let taken = reader.take(&[5, 15_000]).await.unwrap();
            assert_eq!(taken.num_rows(), 2);
            let asked = requests.lock().unwrap().len();
            assert!(asked <= 3, "{asked}: indexes, and two row groups");
        }
    });
}

#[test]
fn an_index_that_lies_is_put_aside() {
    let mut ignored = 0;
    for seed in 0..300 {
        let rng = &mut Rng::with_seed(seed);
        let options = WriteOptions::new().with_page_rows(rng.usize(1..60));
        let file = write(&one_column(rng), options);
        let sound = Reader::new(file.clone()).unwrap();
        let mut pages = sound.page_index(0, 0).unwrap().offset_index.unwrap().page_locations;
        lie(rng, &mut pages);
        let flags = flags(rng, sound.file_rows().unwrap() as usize);
        let selection = RowSelection::from_bits(flags.into());
        let expected = read_with(sound.clone().select(selection.clone()).unwrap()).unwrap();
        let schema = sound.schema().unwrap();
        run(async {
            let reader = open(with_index(&file, None, pages)).await.select(selection).unwrap();
            let mut options = reader.read_options().clone();
            options.page_index = PageIndexUse::Always;
            let reader = reader.options(options).batch_rows(rng.usize(1..100));
            let reader = reader.threads(rng.usize(1..=2));
            let found = rows(&reader).await.unwrap_or_else(|e| panic!("{e}: seed {seed}"));
            let (found, expected) = (columns(&schema, &found), columns(&schema, &expected));
            assert!(found == expected, "seed {seed}");
            ignored += reader.progress().indexes_ignored();
        });
    }
    assert!(ignored > 150, "{ignored} indexes put aside");
}

#[test]
fn what_is_known_is_not_fetched_again() {
    run(async {
        let file = wide();
        let mut reader = open(file.clone()).await.project(["c3", "c50"]).unwrap();
        reader.load_page_indexes().await.unwrap();
        let far = Far::new(file.clone());
        let requests = far.requests.clone();
        let known = Reader::open_async_with(far, reader.metadata().clone());
        let known = known.project(["c3", "c50"]).unwrap();
        assert_eq!(requests.lock().unwrap().len(), 0);
        let taken = known.take(&[5, 15_000]).await.unwrap();
        assert_eq!(requests.lock().unwrap().len(), 2, "two row groups");
        assert_eq!(taken, reader.take(&[5, 15_000]).await.unwrap());
        let local = Reader::new(file).unwrap().project(["c3", "c50"]).unwrap();
        assert_eq!(taken, local.take(&[5, 15_000]).unwrap());
    });
}

#[test]
fn row_groups_larger_than_a_share_of_the_memory_are_read_in_parts() {
    let file = wide();
    let local = Reader::new(file.clone()).unwrap();
    let schema = local.schema().unwrap();
    for filter in [None, Some(col("c0").gt_eq(310).and(col("c7").gt(0)))] {
        let mut options = local.read_options().clone();
        options.filter = filter;
        options.row_groups = Some(vec![7, 2]);
        let expected = read_with(local.clone().options(options.clone())).unwrap();
        // A row group has 800 KB.
        options.limits.memory_bytes = 1 << 20;
        run(async {
            for threads in [1, 2] {
                let reader = open(file.clone()).await.options(options.clone()).threads(threads);
                let found = rows(&reader).await.unwrap();
                assert!(options.filter.is_some() || found.len() > expected.len());
                assert!(columns(&schema, &found) == columns(&schema, &expected));
            }
        });
    }
}

#[test]
fn of_the_other_columns_only_the_pages_of_the_rows_that_pass_are_fetched() {
    run(async {
        let latency = Latency::new(Duration::from_millis(30), 0);
        for threads in [1, 2] {
            let far = Far { latency: Some(latency), ..Far::new(table()) };
            let requests = far.requests.clone();
            let reader = Reader::open_async(far).await.unwrap().threads(threads);
            requests.lock().unwrap().clear();
            // Statistics, page indexes and bloom filters say nothing of it.
            let reader = reader.filter(col("word").like("%d 39999"));
            let found = rows(&reader).await.unwrap();
            assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
            let asked: u64 =
                requests.lock().unwrap().iter().map(|range| range.end - range.start).sum();
            let plan = reader.explain().await.unwrap();
            assert!(asked < plan.bytes() / 2, "{asked} of {} bytes", plan.bytes());
        }
    });
}

#[test]
fn random_filters_of_a_far_table_give_the_rows_of_the_blocking_reader() {
    let file = table();
    let local = Reader::new(file.clone()).unwrap();
    let all = columns(&local.schema().unwrap(), &read_with(local).unwrap());
    let targets: Vec<Target> = vec![(0, "key".into()), (1, "word".into()), (2, "text".into())];
    let check = |seed| {
        let rng = &mut Rng::with_seed(seed);
        let (predicate, _) = random(rng, &targets, &all, 3);
        let local = Reader::new(file.clone()).unwrap();
        let mut options = local.read_options().clone();
        options.projection = [
            Projection::names(["text"]),
            Projection::names(["key", "text"]),
            Projection::names::<String>([]),
            Projection::All,
        ][rng.usize(0..4)]
        .clone();
        options.virtual_columns = vec![VirtualColumn::RowNumber { name: "number".into() }];
        let name = format!("seed {seed}: {predicate}");
        options.filter = Some(predicate);
        options.batch_rows = [100, 1_000, 65_536][rng.usize(0..3)];
        options.limits.memory_bytes = [8 << 20, 4 << 30][rng.usize(0..2)];
        if rng.bool() {
            options.row_groups = Some(vec![3, 1]);
        }
        if rng.u8(0..3) == 0 {
            options.limit = Some(rng.u64(0..10_000));
        }
        let bytes_per_second = [0, 100_000_000][rng.usize(0..2)];
        options.latency = Some(Latency::new(Latency::STORE.per_request, bytes_per_second));
        let reader = local.clone().options(options.clone());
        let schema = reader.schema().unwrap();
        let expected = columns(&schema, &read_with(reader).unwrap());
        run(async {
            let reader = open(file.clone()).await.options(options).threads(rng.usize(1..=2));
            let found = rows(&reader).await.unwrap_or_else(|e| panic!("{e}: {name}"));
            assert!(columns(&schema, &found) == expected, "{name}");
        });
    };
    // Windows for which the filter is known to be true stand beside windows that it is evaluated
    // on.
    check(2052);
    every_case(60, check);
}
