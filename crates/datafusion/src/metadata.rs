//! The metadata of a file are read once, and kept in the cache of DataFusion, with the page indexes
//! and bloom filters that queries have fetched.
//!
//! Trap: DataFusion's own source keeps values of another type under the same path. Ours then lie
//! under another path, so that neither evicts the other at each query.

use std::any::Any;
use std::sync::Arc;

use datafusion_common::{HashMap, Result};
use datafusion_execution::cache::cache_manager::{
    CachedFileMetadataEntry, FileMetadata, FileMetadataCache,
};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::error::to_datafusion;
use marquetry::engine::{KnownFile, LoadedIndexes, is_replaced};
use marquetry::io::StoreSource;
use marquetry::{Limits, Metadata};

/// The metadata of a file in DataFusion's cache, with the indexes that were loaded.
struct CachedMetadata {
    metadata: Metadata,
    /// All that it holds in memory. The cache asks when the entry comes and again when it goes, and
    /// the two must be the same.
    bytes: usize,
}

impl CachedMetadata {
    fn entry(object: &ObjectMeta, metadata: Metadata) -> CachedFileMetadataEntry {
        let bytes = metadata.heap_bytes();
        CachedFileMetadataEntry::new(object.clone(), Arc::new(Self { metadata, bytes }))
    }
}

impl FileMetadata for CachedMetadata {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        self.bytes
    }

    fn extra_info(&self) -> HashMap<String, String> {
        let loaded = self.metadata.index_bytes() > 0;
        HashMap::from([("page_index".to_owned(), loaded.to_string())])
    }
}

/// The metadata of `object`, from `cache` if it has them of this version of the file; else
/// `size_hint` bytes of its end are read first, if there is a hint.
pub(crate) async fn fetch(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    cache: Option<&FileMetadataCache>,
    limits: &Limits,
    size_hint: Option<usize>,
) -> Result<KnownFile> {
    let (found, key) = match cache {
        Some(cache) => look_up(cache, object),
        None => (None, object.location.clone()),
    };
    if let Some(metadata) = found {
        return Ok(metadata.into());
    }
    let source = StoreSource::listed(Arc::clone(store), object.clone());
    let size_hint = size_hint.map(|n| n as u64);
    let known = KnownFile::fetch(source, limits.clone(), size_hint).await;
    let known = known.map_err(|e| to_datafusion(e.at_file(object.location.as_ref())))?;
    if let Some(cache) = cache {
        cache.put(&key, CachedMetadata::entry(object, known.metadata.clone()));
    }
    Ok(known)
}

/// Puts the indexes that a read has fetched beside the footer in the cache, when it is dropped.
pub(crate) struct IndexKeeper {
    cache: Arc<FileMetadataCache>,
    object: ObjectMeta,
    loaded: Arc<LoadedIndexes>,
}

/// Maximum part of a cache (one in this many) that the indexes of one file take, because footers of
/// other files must fit too.
const INDEX_PART: usize = 8;

impl IndexKeeper {
    /// For a read of `object`, by `metadata`.
    pub(crate) fn new(
        cache: &Arc<FileMetadataCache>,
        object: &ObjectMeta,
        metadata: &Metadata,
    ) -> Self {
        let max = (cache.cache_limit() / INDEX_PART).saturating_sub(metadata.index_bytes());
        let loaded = Arc::new(LoadedIndexes::new(metadata.clone(), max));
        Self { cache: Arc::clone(cache), object: object.clone(), loaded }
    }

    /// The place for the indexes that the read fetches.
    pub(crate) fn loaded(&self) -> Arc<LoadedIndexes> {
        Arc::clone(&self.loaded)
    }
}

impl Drop for IndexKeeper {
    fn drop(&mut self) {
        if self.loaded.is_empty() {
            return;
        }
        // If two reads end at the same time, the indexes of one may be lost, which costs a request
        // later.
        let (Some(cached), key) = look_up(&*self.cache, &self.object) else { return };
        let Some(more) = self.loaded.beside(&cached) else { return };
        // An entry that is too large would remove the footer.
        let max = self.cache.cache_limit() / INDEX_PART;
        if more.index_bytes() <= max && more.heap_bytes() <= self.cache.cache_limit() / 2 {
            self.cache.put(&key, CachedMetadata::entry(&self.object, more));
        }
    }
}

/// Whether an entry is of this version of a file, as far as a listing shows it.
fn is_of(entry: &CachedFileMetadataEntry, object: &ObjectMeta) -> bool {
    entry.is_valid_for(object) && !is_replaced(&entry.meta, object)
}

/// The metadata of the file in the cache, and the path under which ours lie or will lie.
fn look_up(cache: &FileMetadataCache, object: &ObjectMeta) -> (Option<Metadata>, Path) {
    let ours = |entry: &CachedFileMetadataEntry| {
        let metadata = entry.file_metadata.as_any().downcast_ref::<CachedMetadata>();
        metadata.map(|cached| cached.metadata.clone())
    };
    let own_path = || Path::from(format!("{}#marquetry", object.location));
    for key in [object.location.clone(), own_path()] {
        match cache.get(&key).filter(|entry| is_of(entry, object)) {
            // An entry of another type: ours may be under the other path.
            Some(entry) => match ours(&entry) {
                Some(found) => return (Some(found), key),
                None => continue,
            },
            None => return (None, key),
        }
    }
    (None, own_path())
}
