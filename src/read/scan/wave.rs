//! [`Wave`]: the windows that are decoded at a time. A window is the rows of one batch; a wave is
//! as many windows, of as many row groups, as fit a share of the memory.
//!
//! [`WaveSize`] limits its bytes. The metadata state how many bytes a wave will take, and may be
//! wrong: after memory ran out, [`WaveSize::shrink`] says how the rows are decoded again.

use std::ops::Range;

use bytes::Bytes;

use crate::error::Result;
use crate::read::batch::ReservedBatch;
use crate::read::plan::{Plan, RowRange};
use crate::read::retry::{Failed, Retry};
use crate::read::row_group::RowGroupDecoder;
use crate::read::supplied::drive;
use crate::read::window::Window;

/// Row groups, and the windows of each that are decoded together.
pub(crate) struct Wave {
    pub(super) groups: Vec<WaveGroup>,
    /// Whether batches of the wave before it were not returned yet when it began.
    pub(super) overlaps: bool,
}

/// Which rows of a row group are read, and how.
pub(super) struct ScanEntry {
    /// Which of the ranges of the read it began as.
    pub(super) id: usize,
    pub(super) range: RowRange,
    /// Whether it is read without its page index, which was found to be wrong.
    pub(super) ignores_index: bool,
}

/// The windows of one row group in a wave.
pub(super) struct WaveGroup {
    pub(super) entry: ScanEntry,
    pub(super) row_group: Box<RowGroupDecoder>,
    /// The first row that the wave may decode of it.
    pub(super) first_row: u64,
    /// Empty if the next batch is made by itself, on one thread.
    pub(super) windows: Vec<Window>,
}

/// The size of the waves to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaveSize {
    /// Bytes of a wave. It has at least one window, however large that is.
    pub(super) bytes: u64,
    /// Whether a wave may begin while batches of the one before it are not returned yet.
    pub(super) may_overlap: bool,
}

/// Memory of a wave for each thread, if the budget allows.
const WAVE_BYTES_PER_THREAD: u64 = 16 << 20;

/// After memory ran out, waves are made this many times smaller.
const SHRINK: u64 = 4;

/// How row groups are decoded again after memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Smaller {
    /// In waves that take less.
    Waves,
    /// In batches that are made one at a time, of fewer rows.
    Batches,
}

impl WaveSize {
    /// The size of waves of a read of `plan` by `threads` threads.
    pub(super) fn new(plan: &Plan, threads: usize) -> Self {
        // Two waves and the fetched bytes of their row groups share the budget.
        let share = plan.budget().cap() / 4;
        let bytes = share.min(WAVE_BYTES_PER_THREAD * threads as u64);
        Self { bytes, may_overlap: true }
    }

    /// Makes the next waves smaller, because `wave` failed.
    fn shrink(&mut self, wave: &Wave, retry: Retry) -> Smaller {
        let windows: usize = wave.groups.iter().map(|group| group.windows.len()).sum();
        let is_single = windows <= 1 && !wave.overlaps;
        if retry != Retry::WithLessMemory || is_single || wave.is_overweight() {
            return Smaller::Batches;
        }
        if wave.overlaps {
            self.may_overlap = false;
        } else {
            // With 0 bytes, a wave has one window.
            self.bytes = if windows as u64 > SHRINK { self.bytes / SHRINK } else { 0 };
        }
        Smaller::Waves
    }

    /// Resets a wave to its beginning, because there was too little memory for it. `has_freed`:
    /// other memory was freed for it.
    pub(super) fn rewind(&mut self, wave: &mut Wave, retry: Retry, has_freed: bool) {
        let smaller = if has_freed { Smaller::Waves } else { self.shrink(wave, retry) };
        for WaveGroup { row_group, first_row, .. } in &mut wave.groups {
            row_group.restart_at(*first_row);
            if smaller == Smaller::Batches {
                row_group.size.distrust();
            }
        }
    }
}

impl Wave {
    /// The next batch of one row group, made on the thread that asks; `None` if the wave has
    /// windows, which may be decoded side by side.
    pub(crate) fn as_single(&mut self) -> Option<SingleBatch<'_>> {
        match &mut self.groups[..] {
            [WaveGroup { row_group, windows, .. }] if windows.is_empty() => {
                Some(SingleBatch(row_group))
            }
            _ => None,
        }
    }

    /// Index of the first row group.
    pub(crate) fn row_group(&self) -> usize {
        self.groups.first().map_or(0, |group| group.entry.range.row_group)
    }

    /// About how many bytes the batches take that its last row group has after it.
    pub(super) fn bytes_left(&self) -> u64 {
        self.groups.last().map_or(u64::MAX, |group| group.row_group.bytes_left())
    }

    /// Whether a row group of it is read with its page index.
    pub(super) fn trusts_index(&self) -> bool {
        self.groups.iter().any(|group| !group.entry.ignores_index)
    }

    /// Whether a batch of it holds more than it should.
    fn is_overweight(&self) -> bool {
        let is_overweight = |group: &WaveGroup| {
            let batch_bytes = group.row_group.plan().batch_bytes();
            group.windows.iter().any(|window| window.is_overweight(batch_bytes))
        };
        self.groups.iter().any(is_overweight)
    }
}

/// A batch that is made by itself, on one thread.
pub(crate) struct SingleBatch<'a>(&'a mut RowGroupDecoder);

impl SingleBatch<'_> {
    /// Makes the batch; none after the last. `read` reads pieces of large chunks while they are
    /// decoded.
    ///
    /// # Errors
    /// As [`RowGroupDecoder::next_batch`]; those of `read`.
    pub(crate) fn make(
        self,
        read: impl FnMut(Range<u64>) -> Result<Bytes>,
    ) -> Result<Vec<ReservedBatch>, Failed> {
        let Self(row_group) = self;
        match drive(read, |given| row_group.next_step(given)) {
            Ok(batch) => Ok(Vec::from_iter(batch)),
            Err(failed) => Err(failed.map(|e| row_group.place(e))),
        }
    }
}
