//! [`Progress`]: the counters of a read that is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a read. Cheap to clone; clones watch the same read, from any thread.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
///
/// let reader = Reader::open("testdata/trips.parquet")?;
/// let progress = reader.progress().clone();
/// for batch in reader.batches()? {
///     drop(batch?);
///     println!("{} of {} rows", progress.rows(), progress.rows_total());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Progress {
    shared: Arc<Counters>,
    /// Whether the read is one of several that are counted together.
    is_part: bool,
}

#[derive(Debug, Default)]
struct Counters {
    rows: AtomicU64,
    rows_total: AtomicU64,
    bytes: AtomicU64,
    row_groups: AtomicU64,
    indexes_ignored: AtomicU64,
}

impl Progress {
    /// Rows returned so far.
    pub fn rows(&self) -> u64 {
        self.shared.rows.load(Ordering::Relaxed)
    }

    /// Rows that will be returned in all; with a filter, the rows that it is evaluated on.
    pub fn rows_total(&self) -> u64 {
        self.shared.rows_total.load(Ordering::Relaxed)
    }

    /// Bytes of column chunks and their page indexes fetched so far.
    pub fn bytes_fetched(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Row groups fetched so far.
    pub fn row_groups(&self) -> u64 {
        self.shared.row_groups.load(Ordering::Relaxed)
    }

    /// Page indexes ignored so far, because they contradict themselves, the metadata or the pages.
    pub fn indexes_ignored(&self) -> u64 {
        self.shared.indexes_ignored.load(Ordering::Relaxed)
    }

    /// The progress of one of several reads that are counted together.
    pub(crate) fn of_part(&self) -> Self {
        Self { shared: self.shared.clone(), is_part: true }
    }

    pub(crate) fn begin(&self, rows_total: u64) {
        match self.is_part {
            true => {
                self.shared.rows_total.fetch_add(rows_total, Ordering::Relaxed);
            }
            false => self.shared.rows_total.store(rows_total, Ordering::Relaxed),
        }
    }

    pub(crate) fn fetched(&self, bytes: u64) {
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn ignored_indexes(&self, n: usize) {
        self.shared.indexes_ignored.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub(crate) fn opened(&self, indexes_ignored: usize) {
        self.shared.row_groups.fetch_add(1, Ordering::Relaxed);
        self.shared.indexes_ignored.fetch_add(indexes_ignored as u64, Ordering::Relaxed);
    }

    pub(crate) fn gave(&self, rows: usize) {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}
