//! [`FilterCounters`] count what a read did for its filter.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Instant;

/// Counts what a read has done for its filter. One caller takes each count, and adds up what it
/// takes.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FilterCounters {
    /// Rows that did not pass when the filter was evaluated.
    pub rows_removed: Counter,
    /// Time for evaluating the filter, in nanoseconds.
    pub row_nanos: Counter,
    /// Values of columns of the output that were decoded for the filter: one for each row and leaf.
    pub shared_decoded: Counter,
    /// Values of these that the output has.
    pub shared_kept: Counter,
    /// Row groups that bloom filters or dictionaries excluded.
    pub bloom_pruned: Counter,
    /// Row groups that bloom filters or dictionaries did not exclude.
    pub bloom_matched: Counter,
    /// Time for probing bloom filters and dictionaries, in nanoseconds.
    pub bloom_nanos: Counter,
    /// Pages of the columns of the filter that page indexes excluded.
    pub pages_pruned: Counter,
    /// Pages of the columns of the filter that page indexes did not exclude.
    pub pages_matched: Counter,
    /// Rows that page indexes excluded.
    pub page_rows_pruned: Counter,
    /// Rows that page indexes did not exclude.
    pub page_rows_matched: Counter,
    /// Time for consulting page indexes, in nanoseconds.
    pub page_nanos: Counter,
}

impl FilterCounters {
    /// Counts a row group that bloom filters or dictionaries were asked about.
    pub(crate) fn add_row_group(&self, is_pruned: bool) {
        let count = if is_pruned { &self.bloom_pruned } else { &self.bloom_matched };
        count.add(1);
    }
}

/// A count since it was last taken.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds the nanoseconds since `start`.
    pub(crate) fn add_since(&self, start: Instant) {
        self.add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the count, and resets it to 0.
    #[cfg_attr(not(feature = "engine"), allow(dead_code))]
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}
