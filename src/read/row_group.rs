//! A row group: its leaves, decoded window by window.
//!
//! A window is the rows of one batch. A serial driver asks for batch after batch; a parallel one takes the [`Unit`]s of several row groups,
//! decodes windows of each on any thread, and gives the results to a [`Batcher`].

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::batch::{Origin, record_batch};
use super::leaf::{LeafBatch, LeafReader};
use super::plan::{LeafPlan, Plan, RowRange};
use crate::error::{Error, Result};
use crate::limits::Reservation;

/// A row group whose bytes are there.
pub struct RowGroup {
    plan: Plan,
    range: RowRange,
    rows_in_group: u64,
    /// The next row to give, counted from the first of the row group.
    next_row: u64,
    batch_rows: usize,
    /// About how many bytes a batch takes.
    batch_bytes: u64,
    units: Vec<Unit>,
    /// Holds the fetched bytes in the budget.
    _fetched: Reservation,
}

/// One leaf of one row group: what a thread decodes at a time.
pub struct Unit {
    reader: LeafReader,
    row_group: usize,
    column: Arc<str>,
    /// Compressed bytes: a guess of the work.
    cost: usize,
}

impl RowGroup {
    pub(super) fn new(
        plan: Plan,
        range: RowRange,
        rows_in_group: u64,
        mut units: Vec<Unit>,
        batch_rows: usize,
        batch_bytes: u64,
        fetched: Reservation,
    ) -> Result<Self> {
        for unit in &mut units {
            unit.skip(range.rows.start)?;
        }
        let next_row = range.rows.start;
        Ok(Self {
            plan,
            range,
            rows_in_group,
            next_row,
            batch_rows,
            batch_bytes,
            units,
            _fetched: fetched,
        })
    }

    /// Rows of the next `batches` batches, one number each; fewer at the end of the row group. They are given out: the units must
    /// decode them next.
    pub fn windows(&mut self, batches: usize) -> Vec<Window> {
        let mut windows = Vec::new();
        while windows.len() < batches && self.next_row < self.range.rows.end {
            let left = self.range.rows.end - self.next_row;
            let rows = usize::try_from(left).unwrap_or(usize::MAX).min(self.batch_rows);
            windows.push(Window { first: self.next_row, rows });
            self.next_row += rows as u64;
        }
        windows
    }

    /// Whether every window is given out.
    pub fn is_done(&self) -> bool {
        self.next_row >= self.range.rows.end
    }

    /// About how many bytes a batch takes as Arrow arrays, by what the metadata say.
    pub fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// The leaves, in the order of [`Plan::leaves`].
    pub fn units(&mut self) -> &mut [Unit] {
        &mut self.units
    }

    /// Whether `window` is the last of the row group, so that nothing may be left in its chunks.
    pub fn ends_with(&self, window: Window) -> bool {
        window.first + window.rows as u64 == self.rows_in_group
    }

    /// What makes batches of the leaves of this row group, on any thread.
    pub fn batcher(&self) -> Batcher {
        Batcher { plan: self.plan.clone(), range: self.range.clone() }
    }

    /// Decodes the next batch on this thread; `None` after the last row.
    ///
    /// # Errors
    /// Whatever is wrong with the pages of the rows.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(window) = self.windows(1).pop() else {
            return Ok(None);
        };
        let last = self.ends_with(window);
        let mut leaves = Vec::with_capacity(self.units.len());
        for unit in &mut self.units {
            leaves.push(unit.decode(window.rows, last)?);
        }
        self.batcher().batch(window, leaves).map(Some)
    }
}

/// Makes batches of decoded leaves.
#[derive(Debug, Clone)]
pub struct Batcher {
    plan: Plan,
    range: RowRange,
}

impl Batcher {
    /// Makes the batch of a window from what the units decoded for it, in the order of [`Plan::leaves`].
    ///
    /// # Errors
    /// `Malformed` if the columns contradict each other.
    pub fn batch(&self, window: Window, leaves: Vec<LeafBatch>) -> Result<RecordBatch> {
        let origin = Origin {
            row_group: self.range.row_group,
            first_row: self.range.first_row + window.first,
            file_name: self.plan.file_name().map(|name| &**name),
        };
        record_batch(&self.plan, window.rows, leaves, &origin)
            .map_err(|e| e.at_row_group(self.range.row_group))
    }
}

/// The rows of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First row, counted from that of the row group.
    pub first: u64,
    /// Number of rows.
    pub rows: usize,
}

impl Unit {
    pub(super) fn new(reader: LeafReader, plan: &LeafPlan, row_group: usize, cost: usize) -> Self {
        Self { reader, row_group, column: plan.leaf.path.dotted().into(), cost }
    }

    /// About how much work the chunk is, in compressed bytes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Decodes the next `rows` rows; with `last`, nothing may be left after them.
    ///
    /// # Errors
    /// Whatever is wrong with the pages; the place is in the error.
    pub fn decode(&mut self, rows: usize, last: bool) -> Result<LeafBatch> {
        let batch = self.reader.read(rows).map_err(|e| self.place(e))?;
        if last {
            self.reader.finish().map_err(|e| self.place(e))?;
        }
        Ok(batch)
    }

    fn skip(&mut self, rows: u64) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        self.reader.skip(rows).map_err(|e| self.place(e))
    }

    fn place(&self, error: Error) -> Error {
        error
            .at_page(self.reader.page())
            .at_column(self.column.clone())
            .at_row_group(self.row_group)
    }
}
