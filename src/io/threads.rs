//! The threads of rayon.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
pub(crate) use rayon::{ThreadPool, current_num_threads, join, spawn, yield_now};

use crate::error::{Error, Result};

/// A new pool of `threads` threads.
///
/// # Errors
/// `Io` if the threads cannot be started.
pub(super) fn new_pool(threads: usize) -> Result<ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("marquetry-{i}"))
        .build()
        .map_err(|e| Error::io("starting threads", std::io::Error::other(e)))
}

/// Does work for each of `items`, by all threads of the pool that the calling one belongs to.
///
/// # Errors
/// One of those of the work.
pub(super) fn map<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, E> + Sync + Send,
) -> Result<Vec<R>, E> {
    items.into_par_iter().with_max_len(1).map(work).collect()
}
