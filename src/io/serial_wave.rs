//! Waves of the asynchronous driver, and how one thread decodes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use super::row_group_open::contradicts;
use super::wave::WaveSize;
use crate::error::Error;
use crate::read::{ReservedBatch, RowGroup, RowRange, is_too_large};

/// A row group that is to be decoded.
pub(super) struct QueuedRowGroup {
    pub(super) row_group: RowGroup,
    /// Whether nothing of it was decoded yet.
    pub(super) is_new: bool,
    /// Whether it is read without its page index, because that was found to be wrong.
    pub(super) ignores_index: bool,
}

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

impl WaveResult {
    /// Nothing yet.
    pub(super) fn of(queue: VecDeque<QueuedRowGroup>, size: WaveSize) -> Self {
        Self { batches: Vec::new(), size, queue, again: Vec::new(), failed: None }
    }
}

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
