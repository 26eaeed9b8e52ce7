//! Opens files of object stores, and finds them below a prefix.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, path::Path as ObjectPath};

use super::external::{Found, Summary, names_of, path_text, refused};
use super::file::WithFileName;
use super::stream::AsyncReader;
use crate::crypt::Decryption;
use crate::error::{Error, Result};
use crate::io::{AsyncSource, FileSet, StoreSource};
use crate::limits::Limits;
use crate::read::PageCache;

impl AsyncReader {
    /// Opens an object of an object store, usually with one request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> marquetry::Result<()> {
    /// use std::sync::Arc;
    /// use futures_util::TryStreamExt;
    /// use marquetry::{Reader, col};
    /// use object_store::{ObjectStore, local::LocalFileSystem};
    ///
    /// let store = LocalFileSystem::new_with_prefix("testdata").unwrap();
    /// let store: Arc<dyn ObjectStore> = Arc::new(store);
    /// let reader = Reader::open_store(store, "trips.parquet").await?.project(["id"])?;
    /// let mut batches = reader.filter(col("id").lt(10)).stream()?;
    /// while let Some(batch) = batches.try_next().await? {
    ///     println!("{} rows", batch.num_rows());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::open_async`](crate::Reader::open_async).
    pub async fn open_store(
        store: Arc<dyn ObjectStore>,
        path: impl Into<ObjectPath>,
    ) -> Result<Self> {
        let path = path.into();
        let name: Arc<str> = path.as_ref().into();
        Self::open_async(StoreSource::new(store, path)).await.named(name)
    }

    /// Like [`Reader::open_store`](crate::Reader::open_store), for an encrypted object.
    ///
    /// # Errors
    /// As [`Reader::open_async_encrypted`](crate::Reader::open_async_encrypted).
    pub async fn open_store_encrypted(
        store: Arc<dyn ObjectStore>,
        path: impl Into<ObjectPath>,
        keys: &Decryption,
    ) -> Result<Self> {
        let path = path.into();
        let name: Arc<str> = path.as_ref().into();
        let source = StoreSource::new(store, path);
        Self::open_async_encrypted(source, Limits::default(), keys).await.named(name)
    }

    /// Like [`Reader::files_below`](crate::Reader::files_below), with the objects below `prefix` of
    /// a store. The length of each is requested, 16 at a time.
    ///
    /// # Errors
    /// As [`Reader::files_below`](crate::Reader::files_below).
    pub async fn objects_below(
        mut self,
        store: Arc<dyn ObjectStore>,
        prefix: impl Into<ObjectPath>,
    ) -> Result<Self> {
        let found = self.find_objects(store, prefix.into()).await.map_err(|e| self.name(e))?;
        if let Some((set, metadata)) = found {
            (self.source, self.metadata) = (Arc::new(set), metadata);
            (self.page_cache, self.end) = (PageCache::default(), None);
        }
        Ok(self)
    }

    async fn find_objects(
        &self,
        store: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
    ) -> Result<Option<Found<Arc<dyn AsyncSource>>>> {
        let Some(summary) = Summary::new(&self.metadata)? else { return Ok(None) };
        let object = |path: &str| {
            let names = names_of(path)?.join("/");
            let whole = match prefix.as_ref() {
                "" => names,
                prefix => format!("{prefix}/{names}"),
            };
            let path = ObjectPath::parse(&whole);
            path.map_err(|e| refused(path_text(&whole), format_args!("no path of an object: {e}")))
        };
        let paths = summary.paths.iter().map(|path| object(path)).collect::<Result<Vec<_>>>()?;
        let opened = futures_util::stream::iter(paths.into_iter().map(|path| {
            let store = store.clone();
            async move {
                let name: Arc<str> = path.as_ref().into();
                let source: Arc<dyn AsyncSource> = Arc::new(StoreSource::new(store, path));
                let len = source.len().await.map_err(|e| e.at_file(name.clone()))?;
                Ok::<_, Error>((name, len, source))
            }
        }));
        let mut files = vec![(self.own_name(), self.file_len(), self.source.clone())];
        let others: Vec<_> = opened.buffered(16).try_collect().await?;
        files.extend(others);
        let set = FileSet::new(files)?;
        let metadata = summary.moved(&set, &self.options.limits)?;
        Ok(Some((set, metadata)))
    }
}
