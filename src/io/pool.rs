//! [`Pool`]: the threads that decode and encode; without the feature `parallel`, only the calling
//! thread.

use std::sync::Arc;

use super::threads::{self, ThreadPool};
use crate::error::Result;

/// The threads that decode.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    /// Rayon's global pool: as many threads as there are cores.
    Global,
    /// A pool of the caller's.
    Own(Arc<ThreadPool>),
}

impl Pool {
    /// A new pool of `threads` threads.
    ///
    /// # Errors
    /// `Io` if the threads cannot be started; `FeatureDisabled` without the feature `parallel`.
    pub(crate) fn new(threads: usize) -> Result<Self> {
        threads::new_pool(threads).map(|pool| Self::Own(Arc::new(pool)))
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        match self {
            Self::Global => threads::current_num_threads(),
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
            Self::Global => threads::spawn(work),
            Self::Own(pool) => pool.spawn(work),
        }
    }

    /// If the calling thread is one of the pool, lets it do other work of the pool for a moment.
    /// Returns whether it is.
    pub(super) fn help(&self) -> bool {
        let yielded = match self {
            Self::Global => threads::yield_now(),
            Self::Own(pool) => pool.yield_now(),
        };
        yielded.is_some()
    }
}

/// Does work for each of `items`, by all threads of `pool`, or by the calling one.
///
/// # Errors
/// One of those of the work.
#[cfg(feature = "check")]
pub(crate) fn map_in<T: Send, R: Send>(
    pool: Option<&Pool>,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Send + Sync,
) -> Result<Vec<R>> {
    match pool {
        None => crate::memory::try_collected(items.into_iter().map(work)),
        Some(Pool::Global) => threads::map(items, work),
        Some(Pool::Own(pool)) => pool.install(|| threads::map(items, work)),
    }
}
