//! Tests that an asynchronous writer writes the file of the blocking writer, whole or not at all,
//! whatever fails.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use marquetry::arrow_array::{Int32Array, RecordBatch};
use marquetry::io::{AsyncSink, StoreSink, WriteSink};
use marquetry::{
    AsyncWriter, Compression, Error, ErrorKind, Reader, Result, RowGroupEncoder, WriteOptions,
    Writer,
};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart,
};

use crate::support::numbered::{numbers, rows};

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), work).await.expect("an end")
    })
}

/// A store in memory whose requests for writing fail from one on, and which counts parts and
/// uploads that are begun.
#[derive(Debug, Default)]
struct Faulty {
    inner: InMemory,
    /// The write that fails, and all after it.
    fails: Option<usize>,
    writes: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
    aborted: Arc<AtomicUsize>,
    /// Parts that are being uploaded, and their maximum at a time.
    parts: Arc<AtomicUsize>,
    most_parts: Arc<AtomicUsize>,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

fn fail() -> object_store::Error {
    object_store::Error::Generic { store: "faulty", source: "full".into() }
}

impl Faulty {
    fn attempt(fails: Option<usize>, writes: &AtomicUsize) -> object_store::Result<()> {
        let n = writes.fetch_add(1, Ordering::Relaxed);
        if fails.is_some_and(|from| n >= from) { Err(fail()) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    fails: Option<usize>,
    writes: Arc<AtomicUsize>,
    aborted: Arc<AtomicUsize>,
    parts: Arc<AtomicUsize>,
    most_parts: Arc<AtomicUsize>,
    first: Option<usize>,
}

#[async_trait::async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        // All parts but the last have one length.
        let len = data.content_length();
        assert!(self.first.is_none_or(|first| len <= first), "a part of {len}");
        self.first.get_or_insert(len);
        let failed = Faulty::attempt(self.fails, &self.writes);
        let (parts, max) = (self.parts.clone(), self.most_parts.clone());
        let done = self.inner.put_part(data);
        async move {
            max.fetch_max(parts.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            // A busy machine may take long to begin the next part: it is waited for, within reason.
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                if max.load(Ordering::Relaxed) > 1 {
                    break;
                }
            }
            parts.fetch_sub(1, Ordering::Relaxed);
            failed?;
            done.await
        }
        .boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        Faulty::attempt(self.fails, &self.writes)?;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.aborted.fetch_add(1, Ordering::Relaxed);
        self.inner.abort().await
    }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        Self::attempt(self.fails, &self.writes)?;
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        Self::attempt(self.fails, &self.writes)?;
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(FaultyUpload {
            inner: self.inner.put_multipart_opts(path, options).await?,
            fails: self.fails,
            writes: self.writes.clone(),
            aborted: self.aborted.clone(),
            parts: self.parts.clone(),
            most_parts: self.most_parts.clone(),
            first: None,
        }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Large enough for several parts.
fn large() -> WriteOptions {
    WriteOptions::new().with_compression(Compression::Uncompressed).with_row_group_rows(100_000)
}

const LARGE: i64 = 1_200_000;

async fn write(
    store: Arc<dyn ObjectStore>,
    threads: usize,
    options: WriteOptions,
    count: i64,
) -> Result<marquetry::WriteReport> {
    let encoder = RowGroupEncoder::new(rows(0, 1).schema(), options)?.with_threads(threads)?;
    let sink = StoreSink::new(store, "a.parquet".into()).with_part_bytes(5 << 20);
    let mut writer = AsyncWriter::over(sink, encoder);
    let mut from = 0;
    while from < count {
        let n = 50_000.min(count - from);
        writer.write(&rows(from, n)).await?;
        from += n;
    }
    writer.finish().await
}

fn blocking(options: WriteOptions, count: i64) -> Bytes {
    let mut writer = Writer::new(WriteSink(Vec::new()), rows(0, 1).schema(), options).unwrap();
    let mut from = 0;
    while from < count {
        let n = 50_000.min(count - from);
        writer.write(&rows(from, n)).unwrap();
        from += n;
    }
    writer.into_inner().unwrap().1.into()
}

#[test]
fn the_file_is_that_of_the_blocking_writer() {
    run(async {
        for (options, count) in [(WriteOptions::new(), 10_000), (large(), LARGE)] {
            let expected = blocking(options.clone(), count);
            for threads in [1, 3] {
                let faulty = Faulty::default();
                let (begun, most_parts) = (faulty.begun.clone(), faulty.most_parts.clone());
                let store: Arc<dyn ObjectStore> = Arc::new(faulty);
                let report = write(store.clone(), threads, options.clone(), count).await.unwrap();
                let found = store.get(&"a.parquet".into()).await.unwrap().bytes().await.unwrap();
                assert!(found == expected, "{} bytes, {}", found.len(), expected.len());
                assert_eq!(report.bytes, expected.len() as u64);
                assert_eq!(report.rows, count as u64);
                let is_large = count == LARGE;
                assert_eq!(begun.load(Ordering::Relaxed), usize::from(is_large));
                assert!(!is_large || most_parts.load(Ordering::Relaxed) > 1, "side by side");
            }
        }
    });
}

#[test]
fn a_local_store_holds_it_too() {
    // The local store needs the blocking threads of tokio.
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn ObjectStore> =
        Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        write(store.clone(), 2, large(), LARGE).await.unwrap();
        let reader = Reader::open_store(store, "a.parquet").await.unwrap();
        assert_eq!(reader.file_rows().unwrap(), LARGE as u64);
        let taken = reader.take(&[1_199_999, 7]).await.unwrap();
        assert_eq!(taken.slice(0, 1).columns(), rows(1_199_999, 1).columns());
        assert_eq!(taken.slice(1, 1).columns(), rows(7, 1).columns());
    });
    let local = Reader::open(folder.path().join("a.parquet")).unwrap();
    assert_eq!(numbers(&local).unwrap(), Vec::from_iter(0..LARGE));
}

#[test]
fn wherever_it_fails_no_object_is_left_and_the_old_one_stays() {
    run(async {
        for (options, count) in [(WriteOptions::new(), 10_000), (large(), LARGE)] {
            let mut n = 0;
            loop {
                let faulty = Faulty { fails: Some(n), ..Faulty::default() };
                let old = faulty.inner.put(&"a.parquet".into(), "old".into()).await;
                old.unwrap();
                let (begun, aborted) = (faulty.begun.clone(), faulty.aborted.clone());
                let store: Arc<dyn ObjectStore> = Arc::new(faulty);
                let done = write(store.clone(), 2, options.clone(), count).await;
                let found = store.get(&"a.parquet".into()).await.unwrap().bytes().await.unwrap();
                assert_eq!(
                    begun.load(Ordering::Relaxed) - aborted.load(Ordering::Relaxed),
                    usize::from(done.is_ok() && count == LARGE)
                );
                match done {
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Io);
                        assert_eq!(found, "old");
                    }
                    Ok(report) => {
                        assert_eq!(report.bytes, found.len() as u64);
                        break;
                    }
                }
                n += 1;
            }
            assert!(n > 0 && (count < LARGE || n > 3), "{n} writes");
        }
    });
}

/// A sink that records its calls.
#[derive(Default)]
struct Noted {
    bytes: Vec<u8>,
    ended: Arc<AtomicUsize>,
    /// Never comes back from writing; whether it was asked to write.
    hanging: Option<Arc<AtomicBool>>,
}

const FINISHED: usize = 1;
const ABORTED: usize = 2;

impl AsyncSink for Noted {
    fn write(&mut self, bytes: Vec<Bytes>) -> BoxFuture<'_, Result<()>> {
        async move {
            if let Some(asked) = &self.hanging {
                asked.store(true, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
            self.bytes.extend(bytes.concat());
            Ok(())
        }
        .boxed()
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        async {
            self.ended.store(FINISHED, Ordering::Relaxed);
            Ok(())
        }
        .boxed()
    }

    fn abort(&mut self) -> BoxFuture<'_, Result<()>> {
        async {
            self.ended.store(ABORTED, Ordering::Relaxed);
            Ok(())
        }
        .boxed()
    }
}

#[test]
fn an_error_of_the_rows_aborts_and_poisons() {
    run(async {
        let ended = Arc::new(AtomicUsize::new(0));
        let sink = Noted { ended: ended.clone(), ..Noted::default() };
        let mut writer = AsyncWriter::new(sink, rows(0, 1).schema(), WriteOptions::new()).unwrap();
        writer.write(&rows(0, 10)).await.unwrap();
        // A batch of another schema is refused, and nothing else.
        let other = [("n", Arc::new(Int32Array::from(vec![1])) as _)];
        let other = RecordBatch::try_from_iter(other).unwrap();
        assert_eq!(writer.write(&other).await.unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(ended.load(Ordering::Relaxed), 0);
        writer.write(&rows(10, 10)).await.unwrap();
        assert_eq!(writer.finish().await.unwrap().rows, 20);
        assert_eq!(ended.load(Ordering::Relaxed), FINISHED);
    });
}

#[test]
fn a_call_that_is_dropped_ends_the_file() {
    run(async {
        let ended = Arc::new(AtomicUsize::new(0));
        let asked = Arc::new(AtomicBool::new(false));
        let hanging = Some(asked.clone());
        let sink = Noted { ended: ended.clone(), hanging, ..Noted::default() };
        let mut writer = AsyncWriter::new(sink, rows(0, 1).schema(), WriteOptions::new()).unwrap();
        writer.write(&rows(0, 10)).await.unwrap();
        {
            let mut flush = Box::pin(writer.flush());
            while !asked.load(Ordering::Relaxed) {
                let done = futures_util::future::poll_immediate(&mut flush).await;
                assert!(done.is_none(), "the sink never comes back");
                tokio::task::yield_now().await;
            }
        }
        let error: Error = writer.write(&rows(10, 10)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(ended.load(Ordering::Relaxed), 0);
        writer.abort().await.unwrap();
        assert_eq!(ended.load(Ordering::Relaxed), ABORTED);
    });
}
