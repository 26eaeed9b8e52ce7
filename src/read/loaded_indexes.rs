//! [`LoadedIndexes`]: page indexes and bloom filters that a read has fetched, for a cache of
//! metadata that is to have them too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::metadata::Metadata;
use crate::limits::{Budget, Reservation};
use crate::range_cache::RangeCache;

/// What a read has fetched of the indexes of a file that its metadata do not hold.
#[derive(Debug)]
pub(crate) struct LoadedIndexes {
    known: Metadata,
    max_bytes: usize,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    ranges: RangeCache,
    bytes: usize,
    memory: Vec<Reservation>,
}

impl LoadedIndexes {
    /// Keeps at most so many bytes that are not in `known`.
    #[cfg(feature = "datafusion")]
    pub(crate) fn new(known: Metadata, max_bytes: usize) -> Self {
        Self { known, max_bytes, found: Mutex::default() }
    }

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

    /// Whether nothing was found that the metadata do not hold.
    #[cfg(feature = "datafusion")]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().bytes == 0
    }

    /// `metadata` of the same file, with what was found; `None` if they have all of it.
    #[cfg(feature = "datafusion")]
    pub(crate) fn beside(&self, metadata: &Metadata) -> Option<Metadata> {
        metadata.with_indexes(&self.lock().ranges)
    }

    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
