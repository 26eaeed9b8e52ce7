//! [`LocalSource`]: a file of the local store of DataFusion, whose ranges are read by one call.
//!
//! An object of any other store is a [`StoreSource`](marquetry::io::StoreSource), which requests
//! ranges side by side, and all of the same version of the object.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use marquetry::engine::{is_replaced, replaced};
use marquetry::io::AsyncSource;
use marquetry::read::Latency;
use marquetry::{Error, Result};

/// A local file. If it was replaced after it was listed, it is not read; the first read looks.
#[derive(Debug)]
pub(crate) struct LocalSource {
    store: Arc<dyn ObjectStore>,
    listed: ObjectMeta,
    is_checked: AtomicBool,
}

impl LocalSource {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, listed: ObjectMeta) -> Self {
        Self { store, listed, is_checked: AtomicBool::new(false) }
    }

    fn path(&self) -> &Path {
        &self.listed.location
    }

    /// Looks, beside the first read, whether the file is the one that was listed.
    async fn checked<T>(
        &self,
        what: impl Fn() -> String,
        read: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T> {
        let check = async {
            if self.is_checked.load(Ordering::Relaxed) {
                return Ok(());
            }
            if is_replaced(&self.listed, &self.store.head(self.path()).await?) {
                return Err(replaced(self.path()));
            }
            self.is_checked.store(true, Ordering::Relaxed);
            Ok(())
        };
        let read = futures_util::future::try_join(check, read).await;
        read.map(|(_, read)| read).map_err(|e| failed(&what(), e))
    }
}

impl AsyncSource for LocalSource {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async {
            let found = self.store.head(self.path()).await;
            found.map(|meta| meta.size).map_err(|e| failed("the length of the file", e))
        })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let what = || format!("reading {} bytes at {}", range.end - range.start, range.start);
            self.checked(what, self.store.get_range(self.path(), range.clone())).await
        })
    }

    fn read_many(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        Box::pin(async move {
            let what = || format!("reading {} ranges", ranges.len());
            self.checked(what, self.store.get_ranges(self.path(), &ranges)).await
        })
    }

    fn latency(&self) -> Latency {
        Latency::LOCAL
    }
}

fn failed(what: &str, error: object_store::Error) -> Error {
    Error::io(what, error.into())
}
