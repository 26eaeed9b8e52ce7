//! The queue of a writer: the columns of row groups that are to be encoded, and the threads that
//! encode them.
//!
//! Trap: the threads of a pool may all be busy elsewhere, and may even wait for the caller. So the
//! caller never waits for a job that no thread has begun: it runs that job itself.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::pool::Pool;
use crate::error::{Error, Result};
use crate::memory;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, work_with};
use crate::write::{Parallelism, SingleThread};

/// The columns that no thread has begun.
#[derive(Default)]
pub(super) struct Queue(Mutex<Jobs>);

#[derive(Default)]
struct Jobs {
    jobs: VecDeque<Job>,
    /// Threads that encode a column now.
    busy: usize,
}

pub(super) struct Job {
    pub(super) group: Arc<dyn ColumnGroup>,
    pub(super) column: usize,
}

/// Columns that are encoded one by one.
pub(super) trait ColumnGroup: Send + Sync {
    /// Encodes one of them.
    fn encode(&self, column: usize, parallelism: &dyn Parallelism);
}

impl Queue {
    /// Appends jobs, and asks the threads of a pool to do them.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn begin(
        self: &Arc<Self>,
        jobs: impl ExactSizeIterator<Item = Job>,
        pool: Option<&Pool>,
    ) -> Result<()> {
        let n = jobs.len();
        let mut queue = lock(&self.0);
        queue.jobs.try_reserve(n)?;
        queue.jobs.extend(jobs);
        drop(queue);
        let Some(pool) = pool else {
            return Ok(());
        };
        for _ in 0..n.min(pool.threads()) {
            let (queue, own) = (self.clone(), pool.clone());
            pool.spawn(move || while queue.work(Some(&own)) {});
        }
        Ok(())
    }

    /// Forgets the jobs that no thread has begun.
    pub(super) fn clear(&self) {
        lock(&self.0).jobs.clear();
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
pub(super) struct NewThreads(pub(super) usize);

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
    work_with(n.min(threads).saturating_sub(1), "marquetry-pages", || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                break;
            }
            work(i);
        }
    });
}

/// The results of the columns of a row group.
pub(super) struct Results<T> {
    state: Mutex<ResultsSoFar<T>>,
    done: Condvar,
}

struct ResultsSoFar<T> {
    /// Columns that are not encoded yet.
    left: usize,
    /// The encoded columns, in the order in which they were done.
    columns: Vec<(usize, T)>,
    /// The first failure; nothing more is encoded then.
    failure: Option<Failure>,
}

enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl<T> Results<T> {
    /// None yet, of this number of columns.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory for them.
    pub(super) fn of_columns(columns: usize) -> Result<Self> {
        let so_far = memory::vec_for(columns)?;
        let state = ResultsSoFar { left: columns, columns: so_far, failure: None };
        Ok(Self { state: Mutex::new(state), done: Condvar::new() })
    }

    /// Adds the result of a column; `encode` is not called after a failure.
    pub(super) fn add(&self, column: usize, encode: impl FnOnce() -> Result<T>) {
        // The lock is not held while the column is encoded.
        let has_failed = lock(&self.state).failure.is_some();
        let result = match has_failed {
            true => Ok(Ok(None)),
            false => catch_unwind(AssertUnwindSafe(|| encode().map(Some))),
        };
        let mut state = lock(&self.state);
        state.left -= 1;
        let failure = match result {
            Ok(Ok(encoded)) => {
                state.columns.extend(encoded.map(|encoded| (column, encoded)));
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

    /// Columns that are left are not encoded any more.
    pub(super) fn fail(&self, error: Error) {
        lock(&self.state).failure = Some(Failure::Error(error));
    }

    /// Waits until all columns are encoded. Does the jobs that no other thread has begun.
    pub(super) fn wait(&self, queue: &Queue, pool: Option<&Pool>) {
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

    /// The results, in the order of the columns.
    ///
    /// # Errors
    /// The first of the columns that failed.
    ///
    /// # Panics
    /// If that one panicked.
    pub(super) fn take(&self) -> Result<Vec<T>> {
        let mut state = lock(&self.state);
        match state.failure.take() {
            Some(Failure::Error(error)) => return Err(error),
            Some(Failure::Panic(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            None => {}
        }
        state.columns.sort_unstable_by_key(|(column, _)| *column);
        let columns = std::mem::take(&mut state.columns);
        memory::collected(columns.into_iter().map(|(_, encoded)| encoded))
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
    use std::sync::atomic::AtomicBool;

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
        queue.begin(jobs, Some(&pool)).unwrap();
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
