//! How waves shrink after memory ran out.

use super::wave::WaveSize;
use crate::error::{Error, ErrorKind, LimitKind};

/// How rows are decoded again after memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// In waves that take less.
    InWaves,
    /// In batches that are made one at a time, of fewer rows.
    InBatches,
}

/// After memory ran out, waves are made this many times smaller.
const SHRINK: u64 = 4;

impl WaveSize {
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
