//! [`StoreSource`]: an object of an object store.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};

use super::{AsyncSource, FileEnd};
use crate::error::{Error, Result};

/// An object of an object store.
///
/// If the object is replaced while it is read, the read fails: parts of two files are never mixed, where the store gives entity tags.
#[derive(Debug)]
pub struct StoreSource {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// The entity tag of the first answer.
    tag: OnceLock<Option<String>>,
}

impl StoreSource {
    /// The object at `path`.
    pub fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { store, path, tag: OnceLock::new() }
    }

    async fn get(&self, range: Option<GetRange>) -> object_store::Result<GetResult> {
        let if_match = self.tag.get().cloned().flatten();
        let head = range.is_none();
        let options = GetOptions { range, if_match, head, ..GetOptions::default() };
        let found = self.store.get_opts(&self.path, options).await?;
        self.tag.get_or_init(|| found.meta.e_tag.clone());
        Ok(found)
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

    fn read_end(&self, most: u64) -> BoxFuture<'_, Result<FileEnd>> {
        Box::pin(async move {
            let what = "reading the end of the object";
            let found = match self.get(Some(GetRange::Suffix(most))).await {
                // Azure has no suffix ranges.
                Err(object_store::Error::NotSupported { .. }) => {
                    let file_len = self.len().await?;
                    let bytes = self.read(file_len.saturating_sub(most)..file_len).await?;
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

pub(super) fn failed(what: &str, error: object_store::Error) -> Error {
    Error::io(what, error.into())
}
