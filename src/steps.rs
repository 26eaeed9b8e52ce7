//! Counts the steps of this thread's work, in unit tests alone: what must not grow faster than its
//! input is counted, because a time depends on the machine.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Adds steps to those of this thread. A call stands below `#[cfg(test)]`, where work is done once
/// for each field, name or entry.
#[inline]
pub(crate) fn add(steps: usize) {
    STEPS.set(STEPS.get() + steps);
}

/// The steps that this thread takes for `work`.
pub(crate) fn taken_by<T>(work: impl FnOnce() -> T) -> usize {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}
