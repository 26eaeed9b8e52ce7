//! Encodes row groups: many threads encode their columns, several row groups at a time, and the
//! encoded row groups are returned in their order.
//!
//! A column of a row group is a job. One queue holds the jobs: those of the older row group first,
//! and of these the heaviest first. Every thread of the pool takes jobs from the queue. If there
//! are fewer jobs than threads, several threads make the dictionary and the pages of a column.
//! Trap: the threads of a pool may all be busy elsewhere, and may even wait for the caller. So the
//! caller never waits for a job that no thread has begun: it runs that job itself.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pool::Pool;
use crate::error::{Error, Result};
use crate::write::{
    BatchColumn, CheckedSortOrder, EncodedChunk, EncodedRowGroup, MAX_IN_FLIGHT, Parallelism,
    RowGroupEncryption, RowGroupLayout, ShreddedRows, SingleThread, encode_leaf,
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

    /// These threads, for work that the calling one waits for.
    pub(crate) fn parallelism(&self) -> impl Parallelism {
        NewThreads(self.workers().map_or(1, Pool::threads))
    }

    fn workers(&self) -> Option<&Pool> {
        match self {
            Self::Serial => None,
            Self::Auto => Some(&Pool::Global),
            Self::Pool(pool) => Some(pool),
        }
        .filter(|pool| pool.has_threads())
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
    pub(crate) fn begin(
        &mut self,
        layout: &Arc<RowGroupLayout>,
        rows: Box<dyn ShreddedRows>,
        encryption: Option<RowGroupEncryption>,
    ) {
        let columns = rows.columns(layout);
        let state = EncodingState { left: columns.len(), ..EncodingState::default() };
        let mut jobs: Vec<usize> = (0..columns.len()).collect();
        let group = Arc::new(EncodingGroup {
            layout: layout.clone(),
            columns,
            rows,
            encryption,
            state: Mutex::new(state),
            done: Condvar::new(),
        });
        self.groups.push_back(group.clone());
        let workers = self.threads.workers();
        if workers.is_some() {
            jobs.sort_by_key(|&column| std::cmp::Reverse(group.rows.column_bytes(column)));
        }
        let jobs = jobs.into_iter().map(|column| Job { group: group.clone(), column });
        self.queue.begin(jobs, workers);
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
        group.wait(&self.queue, self.threads.workers());
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
        let sorting = group.layout.sorting.as_ref().map(CheckedSortOrder::columns);
        let layout = group.layout.clone();
        Ok(Some(EncodedRowGroup { rows: group.rows.rows(), layout, chunks, sorting }))
    }

    /// Forgets all row groups. Each thread finishes at most the column that it encodes.
    pub(crate) fn cancel(&mut self) {
        lock(&self.queue.0).jobs.clear();
        for group in self.groups.drain(..) {
            lock(&group.state).failure = Some(Failure::Error(Error::cancelled("the row group")));
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// The columns that no thread has begun.
#[derive(Default)]
struct Queue(Mutex<Jobs>);

#[derive(Default)]
struct Jobs {
    jobs: VecDeque<Job>,
    /// Threads that encode a column now.
    busy: usize,
}

struct Job {
    group: Arc<dyn ColumnGroup>,
    column: usize,
}

/// Columns that are encoded one by one.
trait ColumnGroup: Send + Sync {
    /// Encodes one of them.
    fn encode(&self, column: usize, parallelism: &dyn Parallelism);
}

impl Queue {
    /// Appends jobs, and asks the threads of a pool to do them.
    fn begin(self: &Arc<Self>, jobs: impl ExactSizeIterator<Item = Job>, pool: Option<&Pool>) {
        let n = jobs.len();
        lock(&self.0).jobs.extend(jobs);
        let Some(pool) = pool else {
            return;
        };
        for _ in 0..n.min(pool.threads()) {
            let (queue, own) = (self.clone(), pool.clone());
            pool.spawn(move || while queue.work(Some(&own)) {});
        }
    }

    /// Does the next job. False if there is none, or if as many threads work as the pool has.
    fn work(&self, pool: Option<&Pool>) -> bool {
        let mut jobs = lock(&self.0);
        if pool.is_some_and(|pool| jobs.busy >= pool.threads()) {
            return false;
        }
        let Some(Job { group, column }) = jobs.jobs.pop_front() else {
            return false;
        };
        jobs.busy += 1;
        drop(jobs);
        match pool {
            Some(pool) => {
                group.encode(column, &IdleThreads { queue: self, threads: pool.threads() })
            }
            None => group.encode(column, &SingleThread),
        }
        lock(&self.0).busy -= 1;
        true
    }
}

/// Idle threads of the pool, for the dictionary and the pages of a column.
///
/// The work is done by new threads, as many as the pool has idle ones. Threads of the pool would be
/// a risk: one that waits for others may meanwhile be given any work, even work that waits for the
/// row group.
struct IdleThreads<'a> {
    queue: &'a Queue,
    /// Number of threads of the pool.
    threads: usize,
}

impl Parallelism for IdleThreads<'_> {
    fn threads(&self) -> usize {
        let jobs = lock(&self.queue.0);
        let others = self.threads.saturating_sub(jobs.busy);
        if jobs.jobs.is_empty() { others + 1 } else { 1 }
    }

    fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
        for_each_by(self.threads(), n, work);
    }
}

/// As many new threads, the calling one among them.
struct NewThreads(usize);

impl Parallelism for NewThreads {
    fn threads(&self) -> usize {
        self.0
    }

    fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
        for_each_by(self.0, n, work);
    }
}

fn for_each_by(threads: usize, n: usize, work: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                break;
            }
            work(i);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..n.min(threads) {
            let helper = std::thread::Builder::new().name("marquetry-pages".to_owned());
            // If a thread cannot be started, the others do its part.
            let _ = helper.spawn_scoped(scope, work);
        }
        work();
    });
}

struct EncodingGroup {
    layout: Arc<RowGroupLayout>,
    rows: Box<dyn ShreddedRows>,
    encryption: Option<RowGroupEncryption>,
    columns: Vec<BatchColumn>,
    state: Mutex<EncodingState>,
    done: Condvar,
}

#[derive(Default)]
struct EncodingState {
    /// Columns that are not encoded yet.
    left: usize,
    /// The encoded columns, in the order in which they were done.
    columns: Vec<(usize, Vec<EncodedChunk>)>,
    /// The first failure; nothing more is encoded then.
    failure: Option<Failure>,
}

enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl ColumnGroup for EncodingGroup {
    fn encode(&self, column: usize, parallelism: &dyn Parallelism) {
        // The lock is not held while the column is encoded.
        let has_failed = lock(&self.state).failure.is_some();
        let result = match has_failed {
            true => Ok(Ok(Vec::new())),
            false => catch_unwind(AssertUnwindSafe(|| self.chunks(column, parallelism))),
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
        leaves.map(encode).collect()
    }

    /// Waits until all columns are encoded. Does the jobs that no other thread has begun.
    fn wait(&self, queue: &Queue, pool: Option<&Pool>) {
        let mut state = lock(&self.state);
        while state.left > 0 {
            if pool.is_some() {
                let waited = self.done.wait_timeout(state, MAX_WAIT);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                if state.left == 0 {
                    break;
                }
            }
            drop(state);
            // Jobs that are left run on other threads, which do not wait for this one.
            while lock(&self.state).left > 0 && queue.work(pool) {}
            state = lock(&self.state);
        }
    }
}

/// How long the caller waits before it does a job itself, because the pool may never begin it.
const MAX_WAIT: Duration = Duration::from_millis(1);

/// Nothing panics while it holds a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, feature = "parallel"))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use super::*;

    /// Where two threads meet: each waits for the other, for a time in which no machine is too
    /// busy.
    #[derive(Default)]
    struct Meeting(Mutex<usize>, Condvar);

    impl Meeting {
        /// Whether another worker came.
        fn come(&self) -> bool {
            let mut came = lock(&self.0);
            *came += 1;
            self.1.notify_all();
            let minute = Duration::from_secs(60);
            let waited = self.1.wait_timeout_while(came, minute, |came| *came < 2);
            *waited.unwrap_or_else(PoisonError::into_inner).0 >= 2
        }
    }

    #[test]
    fn an_idle_thread_helps_with_the_column_of_another() {
        let queue = Queue::default();
        // As if this one were at a job, and another of the pool at none.
        lock(&queue.0).busy = 1;
        let idle = IdleThreads { queue: &queue, threads: 2 };
        assert_eq!(idle.threads(), 2);
        let (meeting, met, calls) =
            (Meeting::default(), AtomicBool::new(true), AtomicUsize::new(0));
        idle.for_each(4, &|i| {
            calls.fetch_add(1 << (8 * i), Ordering::Relaxed);
            met.fetch_and(meeting.come(), Ordering::Relaxed);
        });
        assert_eq!(calls.into_inner(), 0x0101_0101, "each number once");
        assert!(met.into_inner(), "two threads at a time");
        lock(&queue.0).busy = 2;
        assert_eq!(idle.threads(), 1, "no thread is idle");
    }

    #[test]
    fn two_columns_are_encoded_at_a_time_and_no_more_than_the_pool_has_threads() {
        let (queue, pool) = (Arc::new(Queue::default()), Pool::new(2).unwrap());
        lock(&queue.0).busy = 2;
        assert!(!queue.work(Some(&pool)), "all threads are busy");
        lock(&queue.0).busy = 0;
        assert!(!queue.work(Some(&pool)), "no jobs");
        // Four columns that each wait for another one that is begun.
        let (sender, receiver) = std::sync::mpsc::channel();
        let group = Arc::new(Meetings(Default::default(), Mutex::new(sender)));
        let jobs = (0..4).map(|column| Job { group: group.clone(), column });
        queue.begin(jobs, Some(&pool));
        let met: Vec<bool> = (0..4).map(|_| receiver.recv().unwrap()).collect();
        assert_eq!(met, [true; 4]);
    }

    struct Meetings([Meeting; 2], Mutex<std::sync::mpsc::Sender<bool>>);

    impl ColumnGroup for Meetings {
        fn encode(&self, column: usize, _: &dyn Parallelism) {
            let met = self.0[column / 2].come();
            lock(&self.1).send(met).unwrap();
        }
    }
}
