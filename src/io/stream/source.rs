//! [`AsyncSource`] provides the bytes of a file asynchronously; some of them are kept in memory.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::future::try_join_all;

use crate::error::Result;
use crate::io::file_set::FileSet;
use crate::io::ranges::{Requests, check_given};
use crate::io::source::Source;
use crate::range_cache::RangeCache;
use crate::read::{Latency, Metadata};

/// Provides any range of the bytes of a file asynchronously.
///
/// This crate lets its futures run under any runtime. The source decides whether a failed request
/// is retried.
#[expect(clippy::len_without_is_empty, reason = "an empty file is no Parquet file")]
pub trait AsyncSource: Send + Sync {
    /// Length of the file, in bytes.
    ///
    /// # Errors
    /// `Io` if it cannot be found out.
    fn len(&self) -> BoxFuture<'_, Result<u64>>;

    /// Reads the bytes of `range`, all of them.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>>;

    /// Reads the bytes of several ranges, in their order: side by side, if the source has no better
    /// way. Close ranges were joined and long ones split before.
    ///
    /// # Errors
    /// As [`AsyncSource::read`].
    fn read_many(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        Box::pin(try_join_all(ranges.into_iter().map(|range| self.read(range))))
    }

    /// Reads the last `max` bytes, or all if there are fewer: the first request to a file. In one
    /// request if the source can.
    ///
    /// # Errors
    /// As [`AsyncSource::read`].
    fn read_end(&self, max: u64) -> BoxFuture<'_, Result<FileEnd>> {
        Box::pin(async move {
            let file_len = self.len().await?;
            let range = file_len.saturating_sub(max)..file_len;
            let bytes = self.read(range.clone()).await?;
            check_given(&range, bytes.len())?;
            Ok(FileEnd { bytes, file_len })
        })
    }

    /// The cost of a request, which decides whether ranges that lie close are read in one.
    fn latency(&self) -> Latency {
        Latency::STORE
    }
}

/// The end of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileEnd {
    /// Its last bytes.
    pub bytes: Bytes,
    /// Length of the file, in bytes.
    pub file_len: u64,
}

impl FileEnd {
    /// The last `bytes` of a file of `file_len` bytes.
    pub const fn new(bytes: Bytes, file_len: u64) -> Self {
        Self { bytes, file_len }
    }
}

impl AsyncSource for Bytes {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async { Source::len(self) })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async { Source::read(self, range) })
    }

    fn latency(&self) -> Latency {
        Latency::LOCAL
    }
}

impl<S: AsyncSource + ?Sized> AsyncSource for Arc<S> {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        (**self).len()
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        (**self).read(range)
    }

    fn read_many(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        (**self).read_many(ranges)
    }

    fn read_end(&self, max: u64) -> BoxFuture<'_, Result<FileEnd>> {
        (**self).read_end(max)
    }

    fn latency(&self) -> Latency {
        (**self).latency()
    }
}

/// The bytes of ranges, and what fetching them took.
#[derive(Default)]
pub(in crate::io) struct FetchedRanges {
    /// Their bytes.
    pub(in crate::io) bytes: Vec<Bytes>,
    /// Bytes of the ranges that were not in memory.
    pub(in crate::io) wanted: u64,
    /// Bytes that were read for those, gaps included.
    pub(in crate::io) read: u64,
}

/// A source, and ranges of it that are in memory: those that were read with the footer, or ahead.
#[derive(Clone)]
pub(in crate::io) struct CachedSource {
    source: Arc<dyn AsyncSource>,
    latency: Latency,
    held: Arc<Mutex<RangeCache>>,
    /// The bytes that were fetched for a read that another may take over; `None` if they are not
    /// kept.
    kept: Arc<Mutex<Option<RangeCache>>>,
    /// The metadata, for page indexes that are loaded.
    metadata: Option<Metadata>,
}

impl CachedSource {
    pub(in crate::io) fn new(source: Arc<dyn AsyncSource>, latency: Option<Latency>) -> Self {
        let latency = latency.unwrap_or_else(|| source.latency());
        Self { source, latency, held: Arc::default(), kept: Arc::default(), metadata: None }
    }

    /// The same, with the page indexes that the metadata hold.
    pub(in crate::io) fn knowing(self, metadata: Metadata) -> Self {
        Self { metadata: Some(metadata), ..self }
    }

    /// Holds the end of the file.
    pub(in crate::io) fn hold_end(&self, end: Option<FileEnd>) {
        if let Some(FileEnd { bytes, file_len }) = end {
            self.hold(file_len - (bytes.len() as u64).min(file_len), bytes);
        }
    }

    /// Holds bytes that begin at `start` of the file.
    pub(in crate::io) fn hold(&self, start: u64, bytes: Bytes) {
        lock(&self.held).insert(start, bytes);
    }

    /// Keeps `fetched`, and all that is fetched from now on.
    pub(in crate::io) fn keep(&self, fetched: RangeCache) {
        *lock(&self.kept) = Some(fetched);
    }

    /// Takes the kept bytes, and keeps no more.
    pub(in crate::io) fn take_kept(&self) -> Option<RangeCache> {
        lock(&self.kept).take()
    }

    /// Whether the bytes of `range` are in memory.
    pub(in crate::io) fn holds(&self, range: &Range<u64>) -> bool {
        self.find(range).is_some()
    }

    /// The bytes of `range`, if they are in memory.
    pub(in crate::io) fn find(&self, range: &Range<u64>) -> Option<Bytes> {
        let loaded = || self.metadata.as_ref().and_then(|metadata| metadata.loaded(range));
        let kept = || lock(&self.kept).as_ref().and_then(|kept| kept.get(range));
        loaded().or_else(|| lock(&self.held).get(range)).or_else(kept)
    }

    /// The cost of requests.
    pub(in crate::io) fn latency(&self) -> Latency {
        self.latency
    }

    /// Bytes that come in the time of a request.
    pub(in crate::io) fn gap(&self) -> u64 {
        self.latency.gap()
    }

    /// Reads ranges, in their order, those that lie close in one request.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    pub(in crate::io) async fn fetch(&self, ranges: &[Range<u64>]) -> Result<FetchedRanges> {
        let len = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum();
        let mut out: Vec<_> = ranges.iter().map(|range| self.find(range)).collect();
        let missing = ranges.iter().zip(&out).filter(|(_, found)| found.is_none());
        let missing: Vec<Range<u64>> = missing.map(|(range, _)| range.clone()).collect();
        let wanted = len(&missing);
        let mut read = 0;
        if wanted > 0 {
            let requests = Requests::side_by_side(&missing, self.latency);
            read = len(requests.needs());
            let bytes = self.source.read_many(requests.needs().to_vec()).await?;
            let found = requests.supply(bytes)?;
            if let Some(kept) = &mut *lock(&self.kept) {
                missing.iter().zip(&found).for_each(|(at, it)| kept.insert(at.start, it.clone()));
            }
            for (out, found) in out.iter_mut().filter(|out| out.is_none()).zip(found) {
                *out = Some(found);
            }
        }
        let bytes = out.into_iter().map(Option::unwrap_or_default).collect();
        Ok(FetchedRanges { bytes, wanted, read })
    }
}

/// Nothing panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncSource> AsyncSource for FileSet<S> {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async { Ok(self.len) })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let (file, range) = self.find(&range)?;
            file.source.read(range).await.map_err(|e| e.at_file(file.name.clone()))
        })
    }

    fn latency(&self) -> Latency {
        self.files.first().map_or(Latency::STORE, |file| file.source.latency())
    }
}
