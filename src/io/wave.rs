//! [`WaveSize`]: how much is decoded at a time, and how it becomes less where the memory does not suffice.
//!
//! Used by the parallel driver and the asynchronous one. The metadata say how much a wave will take, and may be wrong.

use crate::error::{Error, ErrorKind, LimitKind};
use crate::read::Plan;

/// The size of the waves to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaveSize {
    /// Bytes of a wave; it has one window however large that is.
    pub(super) bytes: u64,
    /// Whether a wave may begin while the batches of the one before it wait.
    pub(super) may_overlap: bool,
}

/// How rows are decoded again for which there was not enough memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// In waves that take less.
    InWaves,
    /// In batches that are made one at a time, of fewer rows.
    InBatches,
}

/// Memory of a wave for each thread, if the budget allows.
const WAVE_BYTES_PER_THREAD: u64 = 16 << 20;

/// A wave for which there was not enough memory is tried with so many times less.
const SHRINK: u64 = 4;

impl WaveSize {
    /// Of a read of `plan` by so many threads.
    pub(super) fn new(plan: &Plan, threads: usize) -> Self {
        // Two waves and the fetched bytes of their row groups share the budget.
        let share = plan.budget().cap() / 4;
        let bytes = share.min(WAVE_BYTES_PER_THREAD * threads as u64);
        Self { bytes, may_overlap: true }
    }

    /// Makes the next waves smaller, because one of `windows` windows failed with `error`; `overlapped` says whether batches of the wave before it waited,
    /// `is_overweight` whether one of its own batches held more than it should.
    pub(super) fn shrink(
        &mut self,
        error: &Error,
        windows: usize,
        overlapped: bool,
        is_overweight: bool,
    ) -> Retry {
        let is_memory = error.kind() == ErrorKind::Limit(LimitKind::Memory);
        if !is_memory || is_overweight || (windows <= 1 && !overlapped) {
            return Retry::InBatches;
        }
        if overlapped {
            self.may_overlap = false;
        } else {
            // Less than a window is one window.
            self.bytes = if windows as u64 > SHRINK { self.bytes / SHRINK } else { 0 };
        }
        Retry::InWaves
    }
}
