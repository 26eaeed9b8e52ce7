//! Encodes row groups: their columns by many threads, several row groups at a time, given back in the order in which they came.
//!
//! A column of a row group is a job. The jobs stand in one queue, those of the older row group first, the heaviest first among them. Threads of the
//! pool take them from there, and so does the caller while it waits: it never waits for a job that nobody has begun.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Pool;
use crate::error::{Error, Result};
use crate::write::{Column, EncodedChunk, EncodedRowGroup, Layout, PendingRowGroup};

/// The threads that encode.
#[derive(Debug, Clone, Default)]
pub(crate) enum Encode {
    /// The calling one.
    Serial,
    /// As many as there are cores.
    #[default]
    Auto,
    /// Those of a pool, and the calling one while it waits.
    Pool(Pool),
}

impl Encode {
    /// `threads` threads, the calling one among them.
    pub(crate) fn new(threads: usize) -> Result<Self> {
        if threads <= 1 { Ok(Self::Serial) } else { Pool::beside(threads).map(Self::Pool) }
    }

    #[cfg(feature = "parallel")]
    pub(crate) fn pool(pool: Arc<rayon::ThreadPool>) -> Self {
        Self::Pool(Pool::Own(pool))
    }

    fn workers(&self) -> Option<&Pool> {
        match self {
            Self::Serial => None,
            Self::Auto => Some(&Pool::Global),
            Self::Pool(pool) => Some(pool),
        }
        .filter(|pool| pool.has_threads())
    }

    /// Whose threads may wait for a row group: `None` if it is to be the calling one.
    #[cfg(feature = "async")]
    pub(crate) fn pool_of_jobs(&self) -> Option<Pool> {
        match self {
            Self::Serial => None,
            Self::Auto => Some(Pool::Global),
            Self::Pool(pool) => Some(pool.clone()),
        }
    }

    /// Row groups that may be on their way while the next one is filled.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.workers().map_or(0, |pool| pool.threads().clamp(1, MOST_IN_FLIGHT))
    }
}

/// Row groups on their way, however many threads there are. What is known of row group `n` is so at the latest when row group `n + 1 + MOST_IN_FLIGHT`
/// is begun.
pub(crate) const MOST_IN_FLIGHT: usize = 8;

/// Row groups that are being encoded, the oldest first.
pub(crate) struct InFlight {
    threads: Encode,
    queue: Arc<Queue>,
    groups: VecDeque<Arc<Group>>,
}

impl InFlight {
    pub(crate) fn new(threads: Encode) -> Self {
        Self { threads, queue: Arc::default(), groups: VecDeque::new() }
    }

    /// Row groups begun and not given back.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The rows that were given for them: memory that is still held, see [`PendingRowGroup::memory`].
    pub(crate) fn memory(&self) -> u64 {
        self.groups.iter().map(|group| group.pending.memory()).sum()
    }

    /// Bytes of their rows as Arrow arrays.
    pub(crate) fn bytes(&self) -> u64 {
        self.groups.iter().map(|group| group.pending.bytes()).sum()
    }

    /// Begins to encode a row group.
    pub(crate) fn begin(&mut self, layout: &Arc<Layout>, pending: PendingRowGroup) {
        let columns = pending.columns(layout);
        let state = State { left: columns.len(), ..State::default() };
        let mut jobs: Vec<usize> = (0..columns.len()).collect();
        let group = Arc::new(Group {
            layout: layout.clone(),
            columns,
            pending,
            state: Mutex::new(state),
            done: Condvar::new(),
        });
        self.groups.push_back(group.clone());
        let workers = self.threads.workers();
        if workers.is_some() {
            jobs.sort_by_key(|&column| std::cmp::Reverse(group.pending.column_bytes(column)));
        }
        let jobs = jobs.into_iter().map(|column| Job { group: group.clone(), column });
        lock(&self.queue.0).extend(jobs);
        if let Some(pool) = workers {
            for _ in 0..group.columns.len() {
                let queue = self.queue.clone();
                pool.spawn(move || {
                    queue.work();
                });
            }
        }
    }

    /// The oldest row group once it is encoded, the calling thread helping, and its bytes as Arrow arrays; `None` if there is none.
    ///
    /// # Errors
    /// `Usage` if a value does not fit its leaf.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, EncodedRowGroup)>> {
        let Some(group) = self.groups.pop_front() else {
            return Ok(None);
        };
        group.wait(&self.queue);
        let mut state = lock(&group.state);
        match state.failure.take() {
            Some(Failure::Error(error)) => return Err(error),
            Some(Failure::Panic(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            None => {}
        }
        state.columns.sort_by_key(|(column, _)| *column);
        let chunks = std::mem::take(&mut state.columns);
        let chunks = chunks.into_iter().flat_map(|(_, chunks)| chunks).collect();
        let row_group = EncodedRowGroup { rows: group.pending.rows(), chunks };
        Ok(Some((group.pending.bytes(), row_group)))
    }

    /// Forgets all row groups. No work is left behind: what runs is at most one column a thread.
    pub(crate) fn cancel(&mut self) {
        lock(&self.queue.0).clear();
        for group in self.groups.drain(..) {
            lock(&group.state).failure = Some(Failure::Error(Error::usage("cancelled")));
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// The columns that nobody has begun.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Job>>);

struct Job {
    group: Arc<Group>,
    column: usize,
}

impl Queue {
    /// Does the next job, and says whether there was one.
    fn work(&self) -> bool {
        let job = lock(&self.0).pop_front();
        let Some(Job { group, column }) = job else {
            return false;
        };
        group.encode(column);
        true
    }
}

struct Group {
    layout: Arc<Layout>,
    pending: PendingRowGroup,
    columns: Vec<Column>,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Columns that are not encoded yet.
    left: usize,
    /// The others, as they came.
    columns: Vec<(usize, Vec<EncodedChunk>)>,
    /// The first failure; nothing more is encoded then.
    failure: Option<Failure>,
}

enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl Group {
    fn encode(&self, column: usize) {
        // The lock is not held while the column is encoded.
        let has_failed = lock(&self.state).failure.is_some();
        let result = match has_failed {
            true => Ok(Ok(Vec::new())),
            false => catch_unwind(AssertUnwindSafe(|| self.chunks(column))),
        };
        let mut state = lock(&self.state);
        state.left -= 1;
        let failure = match result {
            Ok(Ok(chunks)) => {
                state.columns.push((column, chunks));
                None
            }
            Ok(Err(error)) => Some(Failure::Error(error)),
            Err(panic) => Some(Failure::Panic(panic)),
        };
        if state.failure.is_none() {
            state.failure = failure;
        }
        if state.left == 0 {
            self.done.notify_all();
        }
    }

    fn chunks(&self, column: usize) -> Result<Vec<EncodedChunk>> {
        let Some(column) = self.columns.get(column) else {
            return Ok(Vec::new());
        };
        let leaves = self.pending.shred(&self.layout, column)?;
        let leaves = column.leaves.clone().zip(&leaves);
        leaves.map(|(leaf, shredded)| self.pending.encode(&self.layout, leaf, shredded)).collect()
    }

    /// Works until all columns are encoded.
    fn wait(&self, queue: &Queue) {
        while lock(&self.state).left > 0 && queue.work() {}
        // What is left runs on other threads, which wait for nobody.
        let mut state = lock(&self.state);
        while state.left > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Nothing panics while it holds a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
