//! An object store in memory that counts its requests.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use datafusion::execution::memory_pool::MemoryPool;
use datafusion::prelude::SessionContext;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::*;

/// Counts the requests for bytes, and notes which; parts of uploads take a while.
#[derive(Debug, Default)]
pub struct CountingStore {
    inner: InMemory,
    gets: AtomicUsize,
    asked: Mutex<Vec<String>>,
    /// Objects whose paths contain it are not written.
    pub refused: Mutex<Option<String>>,
    pub uploads: Arc<Uploads>,
}

/// The bytes that are being written to a store.
#[derive(Debug, Default)]
pub struct Uploads {
    bytes: AtomicUsize,
    pub max_bytes: AtomicUsize,
    pub parts: AtomicUsize,
    /// The bytes that a memory pool has reserved, and the minimum that was left beside the parts.
    pub pool: Mutex<Option<Arc<dyn MemoryPool>>>,
    pub least_left: Mutex<Option<i64>>,
}

#[derive(Debug)]
struct SlowUpload {
    inner: Box<dyn MultipartUpload>,
    uploads: Arc<Uploads>,
}

#[async_trait::async_trait]
impl MultipartUpload for SlowUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (len, uploads) = (data.content_length(), self.uploads.clone());
        let done = self.inner.put_part(data);
        let now = uploads.bytes.fetch_add(len, Ordering::Relaxed) + len;
        uploads.max_bytes.fetch_max(now, Ordering::Relaxed);
        uploads.parts.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_millis(40)).await;
            if let Some(pool) = &*uploads.pool.lock().unwrap() {
                let bytes = uploads.bytes.load(Ordering::Relaxed);
                let left = pool.reserved() as i64 - bytes as i64;
                let mut least = uploads.least_left.lock().unwrap();
                *least = Some(least.map_or(left, |least| least.min(left)));
            }
            uploads.bytes.fetch_sub(len, Ordering::Relaxed);
            done.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CountingStore")
    }
}

impl CountingStore {
    /// A store with these objects, which the session knows as `count://files/`.
    pub async fn with(session: &SessionContext, files: &[(&str, Vec<u8>)]) -> Arc<Self> {
        let store = Arc::new(Self::default());
        for (path, bytes) in files {
            store.inner.put(&Path::from(*path), bytes.clone().into()).await.unwrap();
        }
        let url = url::Url::parse("count://files/").unwrap();
        session.runtime_env().register_object_store(&url, store.clone());
        store
    }

    /// The requests since the last time, and what they were for.
    pub fn take(&self) -> (usize, Vec<String>) {
        (self.gets.swap(0, Ordering::Relaxed), std::mem::take(&mut self.asked.lock().unwrap()))
    }

    /// Puts another object in the place of one.
    pub async fn replace(&self, path: &str, bytes: Vec<u8>) {
        self.inner.put(&Path::from(path), bytes.into()).await.unwrap();
    }
}

#[async_trait::async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if self.refused.lock().unwrap().as_ref().is_some_and(|part| path.as_ref().contains(part)) {
            return Err(Error::NotImplemented {
                operation: "put".into(),
                implementer: path.to_string(),
            });
        }
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(path, options).await?;
        Ok(Box::new(SlowUpload { inner, uploads: self.uploads.clone() }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        if !options.head {
            self.gets.fetch_add(1, Ordering::Relaxed);
            self.asked.lock().unwrap().push(format!("{path} {:?}", options.range));
        }
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
