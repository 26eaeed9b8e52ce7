//! [`Pool`]: the threads that decode and encode; without the feature `parallel`, only the calling
//! thread.

use std::sync::Arc;

use crate::error::{Error, Result};

/// The threads that decode.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    /// Rayon's global pool: as many threads as there are cores.
    Global,
    /// A pool of the caller's.
    Own(Arc<rayon::ThreadPool>),
}

impl Pool {
    /// A new pool of `threads` threads.
    ///
    /// # Errors
    /// `Io` if the threads cannot be started.
    pub(crate) fn new(threads: usize) -> Result<Self> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("marquetry-{i}"))
            .build()
            .map(|pool| Self::Own(Arc::new(pool)))
            .map_err(|e| Error::io("starting threads", std::io::Error::other(e)))
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        match self {
            Self::Global => rayon::current_num_threads(),
            Self::Own(pool) => pool.current_num_threads(),
        }
    }

    /// Whether the pool helps beside the calling thread; a global pool of one thread does not.
    pub(crate) fn has_threads(&self) -> bool {
        match self {
            Self::Global => self.threads() > 1,
            Self::Own(_) => true,
        }
    }

    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::Global => rayon::spawn(work),
            Self::Own(pool) => pool.spawn(work),
        }
    }

    /// If the calling thread is one of the pool, lets it do other work of the pool for a moment.
    /// Returns whether it is.
    pub(super) fn help(&self) -> bool {
        let yielded = match self {
            Self::Global => rayon::yield_now(),
            Self::Own(pool) => pool.yield_now(),
        };
        yielded.is_some()
    }
}

/// Does both, side by side where another thread of the pool is free.
pub(super) fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    rayon::join(a, b)
}

/// Does work for each of `items`, by all threads of `pool`, or by the calling one.
///
/// # Errors
/// One of those of the work.
#[cfg(feature = "check")]
pub(crate) fn map_in<T: Sync, R: Send>(
    pool: Option<&Pool>,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Send + Sync,
) -> Result<Vec<R>> {
    match pool {
        None => items.iter().map(work).collect(),
        Some(Pool::Global) => map_in_pool(items, work),
        Some(Pool::Own(pool)) => pool.install(|| map_in_pool(items, work)),
    }
}

/// Does work for each of `items`, by all threads of the pool that the calling one belongs to.
///
/// # Errors
/// One of those of the work.
pub(super) fn map_in_pool<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

    items.par_iter().with_max_len(1).map(&work).collect()
}
