//! Encodes row groups: many threads encode their columns, several row groups at a time, and the
//! encoded row groups are returned in their order.
//!
//! A column of a row group is a job. One queue holds the jobs: those of the older row group first,
//! and of these the heaviest first. Every thread of the pool takes jobs from the queue. If there
//! are fewer jobs than threads, several threads make the dictionary and the pages of a column.

use std::collections::VecDeque;
use std::sync::Arc;

use super::job_queue::{ColumnGroup, Job, NewThreads, Queue, Results};
use super::pool::Pool;
use crate::error::{Error, Result};
use crate::memory;
use crate::write::{
    BatchColumn, CheckedSortOrder, EncodedChunk, EncodedRowGroup, MAX_IN_FLIGHT, Parallelism,
    RowGroupEncryption, RowGroupLayout, ShreddedRows, encode_leaf,
};

/// The threads that encode.
#[derive(Debug, Clone, Default)]
pub(crate) enum EncodeThreads {
    /// The calling one.
    Serial,
    /// As many as there are cores.
    #[default]
    Auto,
    /// The threads of a pool; the calling thread helps if they are busy elsewhere.
    Pool(Pool),
}

impl EncodeThreads {
    /// `threads` threads: with 1, the calling one; with more, those of a new pool, while the
    /// calling one waits.
    pub(crate) fn new(threads: usize) -> Result<Self> {
        if threads <= 1 { Ok(Self::Serial) } else { Pool::new(threads).map(Self::Pool) }
    }

    fn workers(&self) -> Option<&Pool> {
        match self {
            Self::Serial => None,
            Self::Auto => Some(&Pool::Global),
            Self::Pool(pool) => Some(pool),
        }
        .filter(|pool| pool.has_threads())
    }

    /// These threads, for work that the calling one waits for.
    pub(crate) fn parallelism(&self) -> impl Parallelism {
        NewThreads(self.workers().map_or(1, Pool::threads))
    }

    /// The pool whose threads may wait for a row group. `None` if the calling thread is to.
    #[cfg_attr(not(feature = "async"), allow(dead_code))]
    pub(crate) fn pool_of_jobs(&self) -> Option<Pool> {
        match self {
            Self::Serial => None,
            Self::Auto => Some(Pool::Global),
            Self::Pool(pool) => Some(pool.clone()),
        }
    }

    /// Maximum row groups in flight while the next one is filled.
    pub(crate) fn max_in_flight(&self) -> usize {
        self.workers().map_or(0, |pool| pool.threads().clamp(1, MAX_IN_FLIGHT))
    }
}

/// Row groups that are being encoded, the oldest first.
pub(crate) struct InFlight {
    threads: EncodeThreads,
    queue: Arc<Queue>,
    groups: VecDeque<Arc<EncodingGroup>>,
}

impl InFlight {
    pub(crate) fn new(threads: EncodeThreads) -> Self {
        Self { threads, queue: Arc::default(), groups: VecDeque::new() }
    }

    /// Begins to encode a row group, or some leaves of one; encrypts it too if it is known which
    /// one of its file it is.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory for the list of the columns.
    pub(crate) fn begin(
        &mut self,
        layout: &Arc<RowGroupLayout>,
        rows: Box<dyn ShreddedRows>,
        encryption: Option<RowGroupEncryption>,
    ) -> Result<()> {
        let columns = rows.columns(layout)?;
        let mut jobs: Vec<usize> = memory::collected(0..columns.len())?;
        let results = Results::of_columns(columns.len())?;
        let layout = layout.clone();
        let group = Arc::new(EncodingGroup { layout, columns, rows, encryption, results });
        self.groups.try_reserve(1)?;
        let workers = self.threads.workers();
        if workers.is_some() {
            let weight = |column| std::cmp::Reverse(group.rows.column_bytes(column));
            jobs.sort_unstable_by_key(|&column| (weight(column), column));
        }
        let jobs = jobs.into_iter().map(|column| Job { group: group.clone(), column });
        self.queue.begin(jobs, workers)?;
        self.groups.push_back(group);
        Ok(())
    }

    /// Returns the oldest row group once it is encoded, and helps to encode it; `None` if there is
    /// none.
    ///
    /// # Errors
    /// `Usage` if a value does not fit its leaf.
    pub(crate) fn next(&mut self) -> Result<Option<EncodedRowGroup>> {
        let Some(group) = self.groups.pop_front() else {
            return Ok(None);
        };
        group.results.wait(&self.queue, self.threads.workers());
        let chunks = memory::collected(group.results.take()?.into_iter().flatten())?;
        let sorting = group.layout.sorting.as_ref().map(CheckedSortOrder::columns);
        let layout = group.layout.clone();
        Ok(Some(EncodedRowGroup { rows: group.rows.rows(), layout, chunks, sorting }))
    }

    /// Forgets all row groups. Each thread finishes at most the column that it encodes.
    pub(crate) fn cancel(&mut self) {
        self.queue.clear();
        for group in self.groups.drain(..) {
            group.results.fail(Error::cancelled("the row group"));
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.cancel();
    }
}

struct EncodingGroup {
    layout: Arc<RowGroupLayout>,
    rows: Box<dyn ShreddedRows>,
    encryption: Option<RowGroupEncryption>,
    columns: Vec<BatchColumn>,
    results: Results<Vec<EncodedChunk>>,
}

impl ColumnGroup for EncodingGroup {
    fn encode(&self, column: usize, parallelism: &dyn Parallelism) {
        self.results.add(column, || self.chunks(column, parallelism));
    }
}

impl EncodingGroup {
    fn chunks(&self, column: usize, parallelism: &dyn Parallelism) -> Result<Vec<EncodedChunk>> {
        let Some(column) = self.columns.get(column) else {
            return Ok(Vec::new());
        };
        let leaves = self.rows.shred(&self.layout, column)?;
        let leaves = column.leaves.clone().zip(&leaves);
        let encode = |(leaf, shredded)| {
            let rows = self.rows.rows();
            let mut chunk = encode_leaf(&self.layout, leaf, shredded, rows, parallelism)?;
            if let Some(encryption) = &self.encryption {
                encryption.encrypt(leaf, &mut chunk)?;
            }
            Ok(chunk)
        };
        memory::try_collected(leaves.map(encode))
    }
}
