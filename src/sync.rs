//! Locks, atomics and threads: those of the standard library. What the threads of a read or of a
//! writer share takes them from here, so that `tests/schedules` can put those of a scheduler in
//! their place, which tries the orders in which threads may run.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic};

/// Does `work` on the calling thread, and on up to `helpers` new ones at the same time. If one
/// cannot be started, the others do its part.
pub(crate) fn work_with(helpers: usize, name: &str, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            let helper = std::thread::Builder::new().name(name.to_owned());
            let _ = helper.spawn_scoped(scope, &work);
        }
        work();
    });
}
