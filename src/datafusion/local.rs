//! [`LocalSource`]: a file of the local store of DataFusion, whose ranges are read by one call.
//!
//! An object of any other store is a [`StoreSource`](crate::io::StoreSource), which asks for ranges
//! side by side, and for the version of the object that it began with.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::error::{Error, Result};
use crate::io::AsyncSource;
use crate::read::Latency;

/// A local file.
#[derive(Debug)]
pub(super) struct LocalSource {
    store: Arc<dyn ObjectStore>,
    path: Path,
}

impl LocalSource {
    pub(super) fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { store, path }
    }
}

impl AsyncSource for LocalSource {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async {
            let found = self.store.head(&self.path).await;
            found.map(|meta| meta.size).map_err(|e| failed("the length of the file", e))
        })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let what = || format!("reading {} bytes at {}", range.end - range.start, range.start);
            let found = self.store.get_range(&self.path, range.clone()).await;
            found.map_err(|e| failed(&what(), e))
        })
    }

    fn read_many(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        Box::pin(async move {
            let found = self.store.get_ranges(&self.path, &ranges).await;
            found.map_err(|e| failed(&format!("reading {} ranges", ranges.len()), e))
        })
    }

    fn latency(&self) -> Latency {
        Latency::LOCAL
    }
}

fn failed(what: &str, error: object_store::Error) -> Error {
    Error::io(what, error.into())
}
