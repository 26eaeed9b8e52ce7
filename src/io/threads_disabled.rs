//! Stands in for rayon without the feature `parallel`: there is the calling thread.

use crate::error::{Error, Result};

/// Cannot be made.
#[derive(Debug)]
pub(crate) enum ThreadPool {}

impl ThreadPool {
    pub(super) fn current_num_threads(&self) -> usize {
        match *self {}
    }

    pub(super) fn spawn(&self, _: impl FnOnce()) {
        match *self {}
    }

    #[cfg(feature = "check")]
    pub(super) fn install<R>(&self, _: impl FnOnce() -> R) -> R {
        match *self {}
    }

    pub(super) fn yield_now(&self) -> Option<()> {
        match *self {}
    }
}

/// # Errors
/// `FeatureDisabled`.
pub(super) fn new_pool(threads: usize) -> Result<ThreadPool> {
    Err(Error::feature_disabled("parallel", format_args!("decoding with {threads} threads")))
}

pub(super) fn current_num_threads() -> usize {
    1
}

/// Does the work here and now.
pub(super) fn spawn(work: impl FnOnce()) {
    work();
}

pub(super) fn yield_now() -> Option<()> {
    None
}

/// Does both, one after the other.
pub(super) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

/// Does work for each of `items`.
///
/// # Errors
/// The first of those of the work.
pub(super) fn map<T, R, E>(items: Vec<T>, work: impl Fn(T) -> Result<R, E>) -> Result<Vec<R>, E> {
    items.into_iter().map(work).collect()
}
