//! [`WaveSize`]: how much is decoded at a time.
//!
//! Used by the parallel driver and the asynchronous one. The metadata say how much a wave will
//! take, and may be wrong.

use crate::read::Plan;

/// The size of the waves to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaveSize {
    /// Bytes of a wave. It has at least one window, however large that is.
    pub(super) bytes: u64,
    /// Whether a wave may begin while batches of the one before it are not given out.
    pub(super) may_overlap: bool,
}

/// Memory of a wave for each thread, if the budget allows.
const WAVE_BYTES_PER_THREAD: u64 = 16 << 20;

impl WaveSize {
    /// Of a read of `plan` by so many threads.
    pub(super) fn new(plan: &Plan, threads: usize) -> Self {
        // Two waves and the fetched bytes of their row groups share the budget.
        let share = plan.budget().cap() / 4;
        let bytes = share.min(WAVE_BYTES_PER_THREAD * threads as u64);
        Self { bytes, may_overlap: true }
    }
}
