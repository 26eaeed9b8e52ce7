//! [`WaveSize`]: how much is decoded at a time, and how it shrinks after memory ran out.
//!
//! Used by the parallel driver and the asynchronous one. The metadata say how much a wave will
//! take, and may be wrong.

#[cfg(feature = "async")]
use std::collections::VecDeque;
#[cfg(feature = "async")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "async")]
use super::row_group_open::contradicts;
use crate::error::{Error, ErrorKind, LimitKind};
use crate::read::Plan;
#[cfg(feature = "async")]
use crate::read::{ReservedBatch, RowGroup, RowRange, is_too_large};

/// The size of the waves to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaveSize {
    /// Bytes of a wave. It has at least one window, however large that is.
    pub(super) bytes: u64,
    /// Whether a wave may begin while batches of the one before it are not given out.
    pub(super) may_overlap: bool,
}

/// How rows are decoded again after memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// In waves that take less.
    InWaves,
    /// In batches that are made one at a time, of fewer rows.
    InBatches,
}

/// Memory of a wave for each thread, if the budget allows.
const WAVE_BYTES_PER_THREAD: u64 = 16 << 20;

/// After memory ran out, waves are made this many times smaller.
const SHRINK: u64 = 4;

impl WaveSize {
    /// Of a read of `plan` by so many threads.
    pub(super) fn new(plan: &Plan, threads: usize) -> Self {
        // Two waves and the fetched bytes of their row groups share the budget.
        let share = plan.budget().cap() / 4;
        let bytes = share.min(WAVE_BYTES_PER_THREAD * threads as u64);
        Self { bytes, may_overlap: true }
    }

    /// Makes the next waves smaller, because one of `windows` windows failed with `error`;
    /// `overlapped` says whether batches of the wave before it waited, `is_overweight` whether one
    /// of its own batches held more than it should.
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
            // With 0 bytes, a wave has one window.
            self.bytes = if windows as u64 > SHRINK { self.bytes / SHRINK } else { 0 };
        }
        Retry::InWaves
    }
}

#[cfg(feature = "async")]
/// A row group that is to be decoded.
pub(super) struct QueuedRowGroup {
    pub(super) row_group: RowGroup,
    /// Whether nothing of it was decoded yet.
    pub(super) is_new: bool,
    /// Whether it is read without its page index, because that was found to be wrong.
    pub(super) ignores_index: bool,
}

#[cfg(feature = "async")]
/// The result of a wave.
pub(super) struct WaveResult {
    pub(super) batches: Vec<ReservedBatch>,
    /// How large the next waves are.
    pub(super) size: WaveSize,
    /// Row groups that are not decoded to their end.
    pub(super) queue: VecDeque<QueuedRowGroup>,
    /// Rows after the batches, to be read again without their index.
    pub(super) again: Vec<RowRange>,
    /// The error after the batches, if there is one.
    pub(super) failed: Option<Error>,
}

#[cfg(feature = "async")]
impl WaveResult {
    /// Nothing yet.
    pub(super) fn of(queue: VecDeque<QueuedRowGroup>, size: WaveSize) -> Self {
        Self { batches: Vec::new(), size, queue, again: Vec::new(), failed: None }
    }
}

#[cfg(feature = "async")]
/// Decodes a batch of the queue on this thread. None if there is memory for it only after the
/// batches that wait are given out, or if a row group gave nothing: other tasks may want the
/// thread before the next.
pub(super) fn serial_wave(
    queue: VecDeque<QueuedRowGroup>,
    size: WaveSize,
    overlaps: bool,
    cancelled: &AtomicBool,
) -> WaveResult {
    let mut result = WaveResult::of(queue, size);
    while let Some(front) = result.queue.front_mut() {
        let rest = front.row_group.rest();
        match front.row_group.next_batch() {
            Ok(Some(batch)) => {
                front.is_new = false;
                result.batches.push(batch);
                break;
            }
            Ok(None) => {
                let gave_nothing = front.is_new;
                result.queue.pop_front();
                if gave_nothing {
                    break;
                }
            }
            Err(e) if contradicts(&e) && !front.ignores_index => {
                result.queue.pop_front();
                result.again.push(rest);
                break;
            }
            Err(e) if is_too_large(&e) && overlaps => {
                result.size.may_overlap = false;
                break;
            }
            Err(e) => {
                result.failed = Some(e);
                break;
            }
        }
        if cancelled.load(Ordering::Relaxed) {
            break;
        }
    }
    result
}
