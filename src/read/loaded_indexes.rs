//! [`LoadedIndexes`]: page indexes and bloom filters that a read has fetched, for a cache of
//! metadata that wants them too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::metadata::Metadata;
use crate::limits::{Budget, Reservation};
use crate::range_cache::RangeCache;

/// The indexes that reads of a file have fetched, beyond those that its metadata hold.
///
/// A driver passes it to reads as [`ReadWiring::loaded_indexes`](super::ReadWiring), and afterwards
/// puts [`LoadedIndexes::beside`] in its cache of metadata, so that later reads fetch no index
/// again.
#[derive(Debug)]
pub struct LoadedIndexes {
    known: Metadata,
    max_bytes: usize,
    found: Mutex<FetchedIndexes>,
}

#[derive(Debug, Default)]
struct FetchedIndexes {
    ranges: RangeCache,
    bytes: usize,
    memory: Vec<Reservation>,
}

impl LoadedIndexes {
    /// Keeps at most `max_bytes` of indexes that are not in `known`.
    pub fn new(known: Metadata, max_bytes: usize) -> Self {
        Self { known, max_bytes, found: Mutex::default() }
    }

    /// Whether no index was fetched that the metadata do not hold.
    pub fn is_empty(&self) -> bool {
        self.lock().bytes == 0
    }

    /// Adds the fetched indexes to `metadata`, which must be of the same file; `None` if they have
    /// all of them.
    pub fn beside(&self, metadata: &Metadata) -> Option<Metadata> {
        metadata.with_indexes(&self.lock().ranges)
    }
}

impl LoadedIndexes {
    /// Copies the bytes of an index that begin at `start` of the file, unless they are there
    /// already, or there is no memory for them.
    pub(super) fn keep(&self, start: u64, bytes: &[u8], budget: &Budget) {
        let range = start..start.saturating_add(bytes.len() as u64);
        if bytes.is_empty() || self.known.loaded(&range).is_some() {
            return;
        }
        let mut found = self.lock();
        let sum = found.bytes.saturating_add(bytes.len());
        if sum > self.max_bytes || found.ranges.get_slice(&range).is_some() {
            return;
        }
        let Ok(memory) = budget.take_for("indexes to keep", bytes.len()) else { return };
        // A copy: what was fetched is a part of something larger.
        found.ranges.insert(start, Bytes::copy_from_slice(bytes));
        found.memory.push(memory);
        found.bytes = sum;
    }

    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, FetchedIndexes> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
