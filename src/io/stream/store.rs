//! [`StoreSource`] and [`StoreSink`] read and write an object of an object store.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, MultipartUpload, ObjectMeta, ObjectStore, PutPayload,
};

use super::part_sizes::{MIN_PART_BYTES, PartSizes};
use super::sink::AsyncSink;
use super::source::{AsyncSource, FileEnd};
use crate::bytes::saturated;
use crate::error::{Error, Result};

/// An object of an object store.
///
/// If the object is replaced while it is read, the read fails: parts of two versions are never
/// mixed if the store has entity tags.
#[derive(Debug)]
pub struct StoreSource {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// The entity tag of the first answer.
    tag: OnceLock<Option<String>>,
    /// The metadata of the object in the listing.
    listed: Option<ObjectMeta>,
}

impl StoreSource {
    /// The object at `path`.
    pub fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { store, path, tag: OnceLock::new(), listed: None }
    }

    /// The object that a listing returned. If it was replaced since then, the read fails, because
    /// metadata such as its footer may be those of the earlier version.
    pub fn listed(store: Arc<dyn ObjectStore>, meta: ObjectMeta) -> Self {
        Self { listed: Some(meta.clone()), ..Self::new(store, meta.location) }
    }

    async fn get(&self, range: Option<GetRange>) -> object_store::Result<GetResult> {
        // A store compares tags so that a weak one matches none. Spec: RFC 9110, 13.1.1.
        let if_match = self.tag.get().cloned().flatten().filter(|tag| !tag.starts_with("W/"));
        let head = range.is_none();
        let options = GetOptions { range, if_match, head, ..GetOptions::default() };
        let found = self.store.get_opts(&self.path, options).await?;
        if self.tag.get().is_none()
            && let Some(listed) = &self.listed
            && is_replaced(listed, &found.meta)
        {
            return Err(replaced(&self.path));
        }
        // Requests that began before the first answer asked for no version, and not every store
        // heeds that one is asked for.
        let first = self.tag.get_or_init(|| found.meta.e_tag.clone());
        match (first, &found.meta.e_tag) {
            (Some(first), Some(tag)) if bare(first) != bare(tag) => {
                let source = "the object was replaced while it was read: read it again".into();
                Err(object_store::Error::Precondition { path: self.path.to_string(), source })
            }
            _ => Ok(found),
        }
    }
}

/// An entity tag without what listings of some stores leave out: the quotes, and that it is weak.
fn bare(tag: &str) -> &str {
    tag.trim_start_matches("W/").trim_matches('"')
}

/// The error of a read that finds another object than the one that was listed.
#[cold]
pub fn replaced(path: &Path) -> object_store::Error {
    let source = "the object was replaced after it was listed: plan the read again".into();
    object_store::Error::Precondition { path: path.to_string(), source }
}

/// Whether an object differs from the one that was listed: by their entity tags if both have one,
/// else by their lengths.
pub fn is_replaced(listed: &ObjectMeta, found: &ObjectMeta) -> bool {
    match (&listed.e_tag, &found.e_tag) {
        (Some(listed), Some(found)) => bare(listed) != bare(found),
        _ => listed.size != found.size,
    }
}

impl AsyncSource for StoreSource {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async {
            let found = self.get(None).await.map_err(|e| failed("the length of the object", e))?;
            Ok(found.meta.size)
        })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let what = || format!("reading {} bytes at {}", range.end - range.start, range.start);
            let wanted = Some(GetRange::Bounded(range.clone()));
            let found = self.get(wanted).await.map_err(|e| failed(&what(), e))?;
            found.bytes().await.map_err(|e| failed(&what(), e))
        })
    }

    fn read_end(&self, max: u64) -> BoxFuture<'_, Result<FileEnd>> {
        Box::pin(async move {
            let what = "reading the end of the object";
            let found = match self.get(Some(GetRange::Suffix(max))).await {
                // Azure has no suffix ranges.
                Err(object_store::Error::NotSupported { .. }) => {
                    let file_len = self.len().await?;
                    let bytes = self.read(file_len.saturating_sub(max)..file_len).await?;
                    return Ok(FileEnd { bytes, file_len });
                }
                found => found.map_err(|e| failed(what, e))?,
            };
            let file_len = found.meta.size;
            let bytes = found.bytes().await.map_err(|e| failed(what, e))?;
            Ok(FileEnd { bytes, file_len })
        })
    }
}

/// An object that is being written: in parts that are uploaded side by side, or, if it is small, at
/// once.
///
/// The object appears when it is whole; an existing object of the same name stays until then. A
/// sink that is dropped unfinished may leave parts that listings do not show. [`AsyncSink::abort`]
/// removes them, as a lifecycle rule of most stores does.
#[derive(Debug)]
pub struct StoreSink {
    store: Arc<dyn ObjectStore>,
    path: Path,
    sizes: PartSizes,
    /// About how much memory the parts take, as long as they are short enough.
    memory: usize,
    /// Parts that were begun, and their bytes.
    begun: usize,
    begun_bytes: u64,
    /// Less than a part.
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
    upload: Option<Box<dyn MultipartUpload>>,
    parts: FuturesUnordered<SentPart>,
    /// Bytes of the parts that are being uploaded.
    sent_bytes: usize,
}

/// A part that is being uploaded, and its bytes.
type SentPart = BoxFuture<'static, object_store::Result<usize>>;

/// Bytes of the first parts, unless the caller sets them or there is less memory.
const PART_BYTES: usize = 8 << 20;

/// Maximum parts that are uploaded at a time.
const MAX_SENT_PARTS: usize = 8;

/// The methods by which an engine controls the memory of an upload.
#[cfg_attr(not(feature = "engine"), allow(dead_code))]
impl StoreSink {
    /// Lets parts have the length that the next one should have, if it has less because of the
    /// memory and `has_memory` says that there is enough for two of them. Else an object may come
    /// to have too many parts.
    pub(crate) fn grow_parts(&mut self, has_memory: impl FnOnce(u64) -> bool) {
        let wanted = self.sizes.wanted_after(self.begun);
        if wanted > self.part_bytes() && has_memory((wanted as u64).saturating_mul(2)) {
            self.sizes.allow(wanted);
        }
    }

    /// Bytes of memory that are held: parts that are being uploaded, and bytes that do not fill a
    /// part yet.
    pub(crate) fn bytes_held(&self) -> u64 {
        (self.kept_bytes + self.sent_bytes) as u64
    }

    /// Waits until no part is being uploaded.
    ///
    /// # Errors
    /// `Io` if one cannot be written.
    pub(crate) async fn drain(&mut self) -> Result<()> {
        while !self.parts.is_empty() {
            self.part_done().await?;
        }
        Ok(())
    }
}

impl StoreSink {
    /// The object at `path`.
    pub fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self {
            store,
            path,
            sizes: PartSizes::growing(PART_BYTES, usize::MAX),
            memory: (MAX_SENT_PARTS + 1) * PART_BYTES,
            begun: 0,
            begun_bytes: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            upload: None,
            parts: FuturesUnordered::new(),
            sent_bytes: 0,
        }
    }

    /// Uploads parts of `bytes` bytes, all but the last of one length, as some stores require. At
    /// least 5 MiB. Stores take at most 10,000 parts: more are an error.
    ///
    /// By default the first 4,000 parts have 8 MiB; then they double after each 600, because the
    /// size of the object is not known in advance. Objects of 5 TiB are possible. At least two
    /// parts are held in memory: beyond 100 GB those have 128 MiB and more. A store that requires
    /// parts of one length needs this option for objects of more than 31 GiB.
    #[must_use]
    pub fn with_part_bytes(mut self, bytes: usize) -> Self {
        self.sizes = PartSizes::equal(bytes);
        self.memory = self.memory.max(bytes.saturating_mul(MAX_SENT_PARTS + 1));
        self
    }

    /// Limits the memory to about `memory` bytes, at least 10 MiB: with less memory parts are
    /// smaller, fewer are uploaded at a time, and parts grow only as far as it allows. Default 72
    /// MiB, which is nine parts of 8 MiB.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> Self {
        let memory = saturated(memory);
        // As many parts as may be uploaded at a time, and one that fills.
        let first = (memory / (MAX_SENT_PARTS + 1)).clamp(MIN_PART_BYTES, PART_BYTES);
        Self { sizes: PartSizes::growing(first, memory / 2), memory, ..self }
    }

    /// Bytes of the next part.
    fn part_bytes(&self) -> usize {
        self.sizes.after(self.begun)
    }

    /// Maximum parts that may be uploaded at a time, beside one that fills.
    fn max_sent_parts(&self) -> usize {
        (self.memory / self.part_bytes()).saturating_sub(1).clamp(1, MAX_SENT_PARTS)
    }

    /// Memory of one part that is being uploaded, and of one that fills.
    pub(crate) const MIN_MEMORY: u64 = 2 * MIN_PART_BYTES as u64;

    /// Cuts off the first `len` buffered bytes.
    fn cut(&mut self, len: usize) -> PutPayload {
        let mut part = Vec::new();
        let mut left = len;
        while left > 0
            && let Some(mut bytes) = self.kept.pop_front()
        {
            let rest = bytes.split_off(left.min(bytes.len()));
            if !rest.is_empty() {
                self.kept.push_front(rest);
            }
            left -= bytes.len();
            part.push(bytes);
        }
        self.kept_bytes -= len - left;
        part.into_iter().collect()
    }

    async fn put_part(&mut self, len: usize) -> Result<()> {
        self.sizes.check(self.begun, self.begun_bytes)?;
        while self.parts.len() >= self.max_sent_parts() {
            self.part_done().await?;
        }
        let payload = self.cut(len);
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => {
                let begun = self.store.put_multipart_opts(&self.path, Default::default()).await;
                self.upload.insert(begun.map_err(|e| failed("beginning an upload", e))?)
            }
        };
        let part = upload.put_part(payload);
        self.sent_bytes += len;
        self.begun += 1;
        self.begun_bytes += len as u64;
        self.parts.push(async move { part.await.map(|()| len) }.boxed());
        // An upload begins when it is first polled.
        self.part_done().now_or_never().unwrap_or(Ok(()))
    }

    /// Waits for a part, if one is being uploaded.
    async fn part_done(&mut self) -> Result<()> {
        match self.parts.next().await {
            Some(done) => self.sent(done),
            None => Ok(()),
        }
    }

    /// After a part came, or failed.
    fn sent(&mut self, done: object_store::Result<usize>) -> Result<()> {
        self.sent_bytes -= done.map_err(|e| failed("uploading a part", e))?;
        Ok(())
    }
}

impl AsyncSink for StoreSink {
    fn write(&mut self, bytes: Vec<Bytes>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.kept_bytes += bytes.iter().map(Bytes::len).sum::<usize>();
            self.kept.extend(bytes);
            while self.kept_bytes >= self.part_bytes() {
                self.put_part(self.part_bytes()).await?;
            }
            Ok(())
        })
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while let Some(done) = ready!(self.parts.poll_next_unpin(cx)) {
            self.sent(done)?;
        }
        Poll::Ready(Ok(()))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            if self.upload.is_none() {
                let payload = self.cut(self.kept_bytes);
                let put = self.store.put_opts(&self.path, payload, Default::default()).await;
                return put.map(drop).map_err(|e| failed("writing the object", e));
            }
            if self.kept_bytes > 0 {
                self.put_part(self.kept_bytes).await?;
            }
            while !self.parts.is_empty() {
                self.part_done().await?;
            }
            match &mut self.upload {
                Some(upload) => {
                    upload.complete().await.map_err(|e| failed("ending the upload", e))?;
                    self.upload = None;
                    Ok(())
                }
                None => Ok(()),
            }
        })
    }

    fn abort(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.parts.clear();
            self.kept.clear();
            (self.kept_bytes, self.sent_bytes) = (0, 0);
            match self.upload.take() {
                Some(mut upload) => {
                    upload.abort().await.map_err(|e| failed("ending the upload", e))
                }
                None => Ok(()),
            }
        })
    }
}

fn failed(what: &str, error: object_store::Error) -> Error {
    Error::io(what, error.into())
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;
    use crate::error::{ErrorKind, LimitKind};

    fn write(sink: &mut StoreSink, bytes: usize) -> Result<()> {
        sink.write(vec![Bytes::from(vec![7; bytes])]).now_or_never().expect("memory never waits")
    }

    fn sink() -> StoreSink {
        StoreSink::new(Arc::new(InMemory::new()), "a.parquet".into())
    }

    #[test]
    fn parts_of_a_large_object_grow_and_fewer_are_on_their_way() {
        let mut sink = sink();
        assert_eq!((sink.part_bytes(), sink.max_sent_parts()), (8 << 20, 8));
        sink.begun = 4000;
        assert_eq!((sink.part_bytes(), sink.max_sent_parts()), (16 << 20, 3));
        write(&mut sink, 9 << 20).unwrap();
        assert_eq!((sink.begun, sink.kept_bytes), (4000, 9 << 20));
        write(&mut sink, 9 << 20).unwrap();
        assert_eq!((sink.begun, sink.kept_bytes), (4001, 2 << 20));
        // With little memory they stay as they are.
        let mut small = self::sink().with_memory(StoreSink::MIN_MEMORY);
        for begun in [0, 4000, 9999] {
            small.begun = begun;
            assert_eq!((small.part_bytes(), small.max_sent_parts()), (5 << 20, 1));
        }
        // Parts whose length the caller sets are as many as before.
        let mut equal = self::sink().with_part_bytes(32 << 20);
        equal.begun = 9000;
        assert_eq!((equal.part_bytes(), equal.max_sent_parts()), (32 << 20, 8));
    }

    #[test]
    fn a_part_that_a_store_would_refuse_is_not_sent() {
        let mut sink = sink().with_part_bytes(5 << 20);
        write(&mut sink, 5 << 20).unwrap();
        sink.begun = 9999;
        write(&mut sink, 5 << 20).unwrap();
        assert_eq!(sink.begun, 10_000);
        let error = write(&mut sink, 5 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Parts));
        assert_eq!((sink.begun, sink.begun_bytes), (10_000, 10 << 20));
        sink.kept_bytes = 0;
        sink.kept.clear();
        // The object is whole without it.
        sink.finish().now_or_never().expect("memory never waits").unwrap();
    }
}
