//! A pool whose threads are those of the scheduler: a thread for each task.

use std::cell::Cell;

/// Whether the pool begins its tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    /// Begins them, sooner or later.
    Works,
    /// All of its threads are busy elsewhere for as long as the caller waits.
    IsBusy,
}

thread_local! {
    // All threads of a schedule are coroutines of one.
    static MOOD: Cell<Mood> = const { Cell::new(Mood::Works) };
}

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    threads: usize,
}

impl Pool {
    pub(crate) fn new(threads: usize, mood: Mood) -> Self {
        MOOD.set(mood);
        Self { threads }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        if MOOD.get() == Mood::Works {
            shuttle::thread::spawn(work);
        }
    }
}
