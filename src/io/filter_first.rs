//! [`FilterFirst`]: which rows of a row group pass the filter, found out before the columns that
//! the filter does not need are fetched.
//!
//! Used by the drivers of sources where bytes cost time: the asynchronous one, and the blocking
//! ones where the source is neither memory nor a local file. Trap: each row group costs one more
//! round trip. If the rows that pass lie in all pages, nothing is saved; the read learns that as it
//! goes on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use crate::error::Result;
use crate::read::{PageIndexPlan, Plan, ReservedBatch, RowGroup, RowRange};
use crate::selection::RowSelection;

/// Finds out which rows pass a filter before the other columns are fetched.
pub(super) struct FilterFirst {
    plan: Plan,
    /// Bytes that could be saved so far.
    doubtful: AtomicU64,
    /// Bytes of these that were fetched all the same.
    fetched: AtomicU64,
}

/// Candidate rows, and the estimated saving.
pub(super) struct Candidate {
    /// The rows that may be left.
    pub(super) left: RowRange,
    /// Bytes that need not be fetched if no row passes, estimated.
    pub(super) bytes: u64,
}

impl FilterFirst {
    /// For the filter of `plan`. `None` if there is no filter, or it needs all columns, or its
    /// columns cannot be planned alone.
    pub(super) fn new(plan: &Plan) -> Option<Self> {
        // What is wrong comes to light where all columns are read.
        let plan = plan.scout().ok().flatten()?;
        Some(Self { plan, doubtful: AtomicU64::new(0), fetched: AtomicU64::new(0) })
    }

    /// What is read to find out: the columns of the filter, and the numbers of the rows.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The candidate of a row group. `None` if a round trip for it is likely to cost more than it
    /// saves.
    pub(super) fn candidate(&self, left: &PageIndexPlan, gap: u64) -> Option<Candidate> {
        let range = left.range();
        if range.is_sure() {
            return None;
        }
        // As above.
        let own = self.plan.row_group(range).ok()?.wanted_bytes();
        let bytes = left.wanted_bytes().saturating_sub(own);
        let (before, fetched) =
            (self.doubtful.load(Ordering::Relaxed), self.fetched.load(Ordering::Relaxed));
        // Tried until four round trips' worth of bytes were at stake, then while it saves a
        // quarter.
        let pays = before <= gap.saturating_mul(4) || fetched <= before / 4 * 3;
        (pays && bytes > gap).then(|| Candidate { left: range.clone(), bytes })
    }

    /// Counts how many bytes were fetched all the same.
    pub(super) fn learn(&self, candidate: &Candidate, fetched: u64) {
        self.doubtful.fetch_add(candidate.bytes, Ordering::Relaxed);
        self.fetched.fetch_add(fetched, Ordering::Relaxed);
    }

    /// The rows that pass of a row group that was opened by [`FilterFirst::plan`], as far as it was
    /// read before it was cancelled.
    ///
    /// # Errors
    /// Whatever is wrong with the pages.
    pub(super) fn passed(
        mut row_group: RowGroup,
        rows_in_group: u64,
        first_row: u64,
        cancelled: &AtomicBool,
    ) -> Result<RowSelection> {
        let mut passed = Vec::new();
        while !cancelled.load(Ordering::Relaxed)
            && let Some(ReservedBatch { batch, .. }) = row_group.next_batch()?
        {
            let numbers = batch.columns().last().expect("the numbers of the rows come last");
            let number = |number: &i64| {
                let number = u64::try_from(*number).expect("rows are counted from 0");
                number.checked_sub(first_row).expect("rows are counted from the first of the group")
            };
            passed.extend(numbers.as_primitive::<Int64Type>().values().iter().map(number));
        }
        RowSelection::from_rows(rows_in_group, passed)
    }
}
