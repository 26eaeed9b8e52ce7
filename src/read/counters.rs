//! [`FilterCounters`]: what a read did for its filter, for a caller that asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What a read did for its filter. Each count is taken by one caller, who adds it up.
#[derive(Debug, Default)]
pub(crate) struct FilterCounters {
    /// Rows that the filter was evaluated on and that did not pass.
    pub(crate) rows_removed: Counter,
    /// Time for evaluating it, in nanoseconds.
    pub(crate) row_nanos: Counter,
    /// Values of columns of the output that were decoded for the filter, one for each row and leaf;
    /// and those of them that the output has.
    pub(crate) shared_decoded: Counter,
    pub(crate) shared_kept: Counter,
    /// Row groups that bloom filters or dictionaries excluded, and those that they did not.
    pub(crate) bloom_pruned: Counter,
    pub(crate) bloom_matched: Counter,
    pub(crate) bloom_nanos: Counter,
    /// Pages of the columns of the filter that page indexes excluded, and those that they did not.
    pub(crate) pages_pruned: Counter,
    pub(crate) pages_matched: Counter,
    /// The same of rows.
    pub(crate) page_rows_pruned: Counter,
    pub(crate) page_rows_matched: Counter,
    pub(crate) page_nanos: Counter,
}

/// A count since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds the nanoseconds since `start`.
    pub(crate) fn add_since(&self, start: Instant) {
        self.add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    /// The count, which then begins at 0 again.
    #[cfg(any(feature = "datafusion", test))]
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}
