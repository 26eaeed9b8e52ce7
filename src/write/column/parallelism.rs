//! [`Parallelism`]: the threads that help with a chunk.

/// Threads that help with a chunk.
pub(crate) trait Parallelism: Sync {
    /// Threads that are likely to help now, the calling one among them.
    fn threads(&self) -> usize;

    /// Calls `work` with every number below `n`, on any of them; returns when all calls have.
    fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
pub(crate) struct SingleThread;

impl Parallelism for SingleThread {
    fn threads(&self) -> usize {
        1
    }

    fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(work);
    }
}
