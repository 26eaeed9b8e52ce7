//! The [`Pool`] of a build without the feature `parallel` consists of the calling thread.

use crate::error::{Error, Result};

/// The threads that decode: the one that asks.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    /// The calling thread.
    Global,
}

impl Pool {
    /// A pool of one thread.
    ///
    /// # Errors
    /// `FeatureDisabled` if more are wanted.
    pub(crate) fn new(threads: usize) -> Result<Self> {
        if threads > 1 {
            return Err(Error::feature_disabled(
                "parallel",
                format_args!("decoding with {threads} threads"),
            ));
        }
        Ok(Self::Global)
    }

    /// Whether the pool helps beside the calling thread.
    pub(crate) fn has_threads(&self) -> bool {
        false
    }

    /// Does the work here and now.
    pub(crate) fn spawn(&self, work: impl FnOnce()) {
        work();
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        1
    }
}

/// Does work for each of `items`.
///
/// # Errors
/// The first of those of the work.
#[cfg(feature = "check")]
pub(crate) fn map_in<T, R>(
    _pool: Option<&Pool>,
    items: &[T],
    work: impl Fn(&T) -> Result<R>,
) -> Result<Vec<R>> {
    map_in_pool(items, work)
}

/// Does work for each of `items`.
///
/// # Errors
/// The first of those of the work.
pub(super) fn map_in_pool<T, R>(items: &[T], work: impl Fn(&T) -> Result<R>) -> Result<Vec<R>> {
    items.iter().map(work).collect()
}

/// Does both, one after the other.
pub(super) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}
