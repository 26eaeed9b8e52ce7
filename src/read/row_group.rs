//! Decodes a row group, leaf by leaf and window by window.
//!
//! A serial driver asks for batch after batch; a parallel one takes the [`ColumnTask`]s of several
//! row groups, decodes [`Window`]s of each on any thread, and passes the results to a [`Batcher`].

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::batch::{DecodedLeaves, Origin, ReservedBatch, record_batch};
use super::batch_size::BatchSize;
use super::column::LeafBatch;
use super::column_task::{ChunkSource, ColumnTask};
use super::filter::Filter;
use super::filter_stages::DecodeStep;
use super::plan::{Fetched, FetchedChunk, Plan, RowGroupPlan, RowRange};
use super::retry::Failed;
use super::supplied::Step;
use super::window::Window;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::limits::Reservation;
use crate::memory;
use crate::predicate::nested_bits::within;

/// A row group whose bytes are in memory.
pub struct RowGroupDecoder {
    pub(super) plan: Plan,
    pub(super) range: RowRange,
    pub(super) rows_in_group: u64,
    /// The next row to return, counted from the first of the row group.
    pub(super) next_row: u64,
    pub(super) size: BatchSize,
    pub(super) tasks: Vec<ColumnTask>,
    /// Whether its tasks may be split.
    pub(super) may_split: bool,
    /// Compressed bytes of a row of each leaf of the plan, where it matters which of a filter comes
    /// first.
    row_bytes: Vec<f64>,
    /// The window that is being decoded by [`RowGroupDecoder::next_step`].
    open: Option<OpenWindow>,
    /// Holds the fetched bytes in the budget.
    _fetched: Reservation,
}

impl fmt::Debug for RowGroupDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroupDecoder")
            .field("range", &self.range)
            .field("next_row", &self.next_row)
            .finish_non_exhaustive()
    }
}

/// A window whose leaves are being decoded, one after the other.
struct OpenWindow {
    window: Window,
    filtered: FilteredWindow,
    step: DecodeStep,
    /// The leaves of this step so far.
    leaves: Vec<LeafBatch>,
}

impl OpenWindow {
    fn new(window: Window) -> Self {
        let (filtered, step) = (FilteredWindow::new(window.clone()), DecodeStep::Filter(0));
        Self { window, filtered, step, leaves: Vec::new() }
    }
}

impl RowGroupDecoder {
    /// Opens a row group, given the bytes that its plan wants, in the same order. More bytes are
    /// needed if pages refer to dictionary pages that were not fetched, or are not where an index
    /// places them, which is then ignored.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted, `Limit(Memory)` if the budget does not suffice
    /// them.
    pub(super) fn open(
        plan: RowGroupPlan,
        bytes: &[Bytes],
    ) -> Result<Step<Box<Self>, Box<RowGroupPlan>>> {
        Ok(match plan.list_pages(bytes)? {
            Step::Done(fetched) => Step::Done(Box::new(Self::new(fetched)?)),
            Step::NeedsMore(plan) => Step::NeedsMore(Box::new(plan)),
        })
    }

    fn new(fetched: Fetched) -> Result<Self> {
        let Fetched { plan, range, rows_in_group, chunks, batch_rows, batch_bytes, memory } =
            fetched;
        let task = |FetchedChunk { column_index, pages, context, work, .. }| {
            let (plan, row_group) = (plan.clone(), range.row_group);
            let chunk = ChunkSource { plan, column_index, list: pages, context, row_group };
            ColumnTask::new(chunk, rows_in_group, work)
        };
        let mut row_bytes = Vec::new();
        if plan.filter().is_some_and(Filter::has_groups) {
            row_bytes.resize(plan.leaves().len(), 0.0);
            let rows = range.count().max(1);
            for chunk in &chunks {
                if let Some(bytes) = row_bytes.get_mut(chunk.column_index) {
                    *bytes = average(chunk.compressed, rows);
                }
            }
        }
        let tasks = memory::collected(chunks.into_iter().map(task))?;
        Ok(Self {
            next_row: range.rows.start,
            size: BatchSize::new(batch_rows, batch_bytes, plan.batch_bytes()),
            plan,
            range,
            rows_in_group,
            tasks,
            may_split: true,
            row_bytes,
            open: None,
            _fetched: memory,
        })
    }

    /// The windows of the next `batches` batches, fewer at the end of the row group. The tasks must
    /// decode them next, in this order.
    pub(super) fn windows(&mut self, batches: usize) -> Vec<Window> {
        // The same stages for all windows, even where the filter is known to be true: each step is
        // made for one window after the other, and no leaf goes back.
        let stages = self.plan.filter().filter(|_| self.is_filtered()).map(|filter| {
            filter.stages(|leaf| self.row_bytes.get(leaf).copied().unwrap_or_default())
        });
        let mut windows = Vec::new();
        while windows.len() < batches && !self.is_done() {
            let mut window = self.window();
            window.stages.clone_from(&stages);
            windows.push(window);
        }
        windows
    }

    fn window(&mut self) -> Window {
        let max = self.size.rows as u64;
        let (start, gap) = (self.next_row, self.plan.wiring().max_gap());
        let mut window = match (self.counted_run(), &self.range.selection) {
            (Some(run), _) => Window::from_runs(std::iter::once(run), u64::MAX, gap),
            (None, None) => {
                Window::from_runs(std::iter::once(start..self.range.rows.end), max, gap)
            }
            (None, Some(selection)) => {
                let runs = selection.runs_from(start);
                Window::from_runs(runs.map(|run| run.start.max(start)..run.end), max, gap)
            }
        };
        self.next_row = window.end();
        let next_wanted_row = match &self.range.selection {
            None => Some(self.next_row).filter(|_| !self.is_done()),
            Some(selection) => selection.runs_from(self.next_row).next().map(|run| run.start),
        };
        window.next_wanted_row = next_wanted_row.map_or(u64::MAX, |row| row.max(self.next_row));
        window.is_proven = match (&self.range.proven, self.plan.filter()) {
            (None, filter) => filter.is_none(),
            (Some(proven), _) => window.spans().iter().all(|span| {
                let run = proven.runs_from(span.start).next();
                run.is_some_and(|run| run.start <= span.start && span.end <= run.end)
            }),
        };
        window
    }

    /// For a count: the next run of rows for which the filter is known to be true, however long.
    /// They need not be decoded, because there are no columns.
    fn counted_run(&self) -> Option<Range<u64>> {
        if !self.plan.wiring().counting {
            return None;
        }
        let wanted = match &self.range.selection {
            None => self.next_row..self.range.rows.end,
            Some(selection) => selection.runs_from(self.next_row).next()?,
        };
        let start = wanted.start.max(self.next_row);
        let proven = self.range.proven.as_ref()?.runs_from(start).next()?;
        let end = wanted.end.min(proven.end);
        (proven.start <= start && start < end).then_some(start..end)
    }

    /// The next row to return, counted from the first of the row group.
    pub(super) fn next_row(&self) -> u64 {
        match self.open.as_ref().and_then(|open| open.window.spans().first()) {
            Some(span) => span.start,
            None => self.next_row,
        }
    }

    /// Whether no row of it is before this one.
    pub(super) fn begins_at(&self, row: u64) -> bool {
        row == self.range.rows.start
    }

    /// The plan of the read.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether few windows are to be decoded before the next: the first ones teach which columns of
    /// the filter are better decoded later.
    pub(super) fn is_to_learn(&self) -> bool {
        self.is_filtered() && self.plan.filter().is_some_and(Filter::is_to_learn)
    }

    /// Whether nothing of it was decoded.
    pub(super) fn is_new(&self) -> bool {
        self.next_row == self.range.rows.start
    }

    /// Estimated bytes of a batch as Arrow arrays, by the metadata.
    pub(super) fn batch_bytes(&self) -> u64 {
        self.size.bytes
    }

    /// Estimated number of batches to come.
    pub(super) fn batches_left(&self) -> u64 {
        let rows = self.range.rows.end.saturating_sub(self.next_row);
        rows.div_ceil(self.size.rows.max(1) as u64)
    }

    /// Estimated bytes of these batches.
    pub(super) fn bytes_left(&self) -> u64 {
        self.batches_left().saturating_mul(self.size.bytes)
    }

    /// Whether batches are to be made one at a time, by [`RowGroupDecoder::next_batch`].
    pub(super) fn is_careful(&self) -> bool {
        self.size.is_careful()
    }

    /// Whether every window has been returned.
    pub(super) fn is_done(&self) -> bool {
        self.next_row >= self.range.rows.end
    }

    /// Does not split tasks from now on.
    pub(super) fn forbid_splits(&mut self) {
        self.may_split = false;
    }

    /// Whether there is a filter that must be evaluated for some of the rows, so that batches are
    /// made in several steps: [`DecodeStep`].
    pub(super) fn is_filtered(&self) -> bool {
        self.plan.filter().is_some() && !self.range.is_proven()
    }

    /// Whether `window` is the last of the row group, so that nothing may be left in its chunks.
    fn ends_with(&self, window: &Window) -> bool {
        window.end() == self.rows_in_group
    }

    /// The batcher of this row group, which makes batches of leaves on any thread.
    pub(super) fn batcher(&self) -> Batcher {
        Batcher { plan: self.plan.clone(), range: self.range.clone() }
    }

    /// Decodes the next batch on this thread; `None` after the last row. With a filter, a batch has
    /// the rows of a window that pass, and is never empty. A batch that would take much more than
    /// [`batch_bytes`](super::ReadOptions::batch_bytes), or more than an array or the memory can
    /// hold, is made of fewer rows.
    ///
    /// # Errors
    /// Any fault of the pages of the rows; `Limit` if not even a single row fits, which the next
    /// call tries again.
    pub fn next_batch(&mut self) -> Result<Option<ReservedBatch>> {
        self.next_step(None)?.done()
    }

    /// Like [`RowGroupDecoder::next_batch`], for a row group whose large chunks are given while
    /// they are decoded: `given` is what the step before asked for.
    ///
    /// # Errors
    /// As [`RowGroupDecoder::next_batch`].
    pub(super) fn next_step(
        &mut self,
        mut given: Option<Bytes>,
    ) -> Result<Step<Option<ReservedBatch>>, Failed> {
        let batcher = self.batcher();
        loop {
            let open = self.open.take().or_else(|| self.windows(1).pop().map(OpenWindow::new));
            let Some(mut open) = open else { return Ok(Step::Done(None)) };
            match self.decode_open(&batcher, &mut open, given.take()) {
                Ok(Step::NeedsMore(range)) => {
                    self.open = Some(open);
                    return Ok(Step::NeedsMore(range));
                }
                Ok(Step::Done(batch)) => {
                    self.size.learn(&open.window, self.max_batch_rows());
                    if batch.is_some() {
                        return Ok(Step::Done(batch));
                    }
                }
                Err(failed) if failed.is_too_large() => {
                    let rows = open.window.rows();
                    self.restart_at(
                        open.window.spans().first().map_or(self.next_row, |span| span.start),
                    );
                    self.size.shrink(rows);
                    if rows <= 1 {
                        return Err(failed);
                    }
                }
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Adds the column and the page to an error that concerns bytes which could not be read.
    pub(super) fn place(&self, error: Error) -> Error {
        let mut decoders = self.tasks.iter().flat_map(ColumnTask::waiting);
        let error = match decoders.next() {
            Some(decoder) => decoder.place(error),
            None => error,
        };
        error.at_row_group(self.range.row_group)
    }

    /// Continues with a window, up to its batch; `None` if no row passes the filter.
    fn decode_open(
        &mut self,
        batcher: &Batcher,
        open: &mut OpenWindow,
        mut given: Option<Bytes>,
    ) -> Result<Step<Option<ReservedBatch>>, Failed> {
        let OpenWindow { filtered, step, leaves, .. } = open;
        loop {
            if let Step::NeedsMore(range) =
                self.decode(*step, filtered.rest(), leaves, &mut given)?
            {
                return Ok(Step::NeedsMore(range));
            }
            let leaves = std::mem::take(leaves);
            let DecodeStep::Filter(stage) = *step else {
                return Ok(Step::Done(Some(batcher.batch(filtered, leaves)?)));
            };
            batcher.apply_filter(filtered, leaves)?;
            if self.plan.filter().is_some() && filtered.rest().rows() == 0 {
                return Ok(Step::Done(None));
            }
            *step = match stage + 1 {
                next if next < filtered.rest().filter_stages() => DecodeStep::Filter(next),
                _ => DecodeStep::Output,
            };
        }
    }

    /// Goes back to a row: windows may be asked for and decoded again from there.
    pub(super) fn restart_at(&mut self, row: u64) {
        self.open = None;
        self.may_split = false;
        self.next_row = row;
        self.tasks.iter_mut().for_each(ColumnTask::restart);
    }

    /// Maximum rows of a batch, however narrow they are.
    pub(super) fn max_batch_rows(&self) -> usize {
        let max = self.plan.options().batch_rows;
        if self.is_filtered() { max.min(MAX_FILTERED) } else { max }
    }

    /// Decodes a window of the leaves of a step; `leaves` has those that are decoded.
    fn decode(
        &mut self,
        step: DecodeStep,
        window: &Window,
        leaves: &mut Vec<LeafBatch>,
        given: &mut Option<Bytes>,
    ) -> Result<Step<()>> {
        let (last, is_done) = (self.ends_with(window), self.is_done());
        if step == DecodeStep::Output {
            memory::room(leaves, self.tasks.len().saturating_sub(leaves.len()))?;
        }
        let wanted = self.tasks.iter_mut().filter(|task| task.is_wanted(step, window));
        for task in wanted.skip(leaves.len()) {
            let [decoder, ..] = task.decoders()? else { continue };
            match decoder.decode(window, last, given.take())? {
                Step::Done(leaf) => leaves.push(leaf),
                Step::NeedsMore(range) => return Ok(Step::NeedsMore(range)),
            }
            if is_done {
                task.restart();
            }
        }
        Ok(Step::Done(()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn average(bytes: u64, rows: u64) -> f64 {
    bytes as f64 / rows as f64
}

/// Maximum rows that a batch grows to where a filter leaves rows out, because little is known of
/// columns that decoded few rows.
const MAX_FILTERED: usize = 1024;

/// Makes batches of decoded leaves.
#[derive(Debug, Clone)]
pub(crate) struct Batcher {
    plan: Plan,
    range: RowRange,
}

impl Batcher {
    /// Evaluates the next stage of the filter on the remaining rows of a window, given the leaves
    /// that were decoded for it, in the order of [`Plan::leaves`]. If there is no filter, or it
    /// need not be evaluated, all rows pass.
    ///
    /// # Errors
    /// `Malformed` if the columns contradict each other, and whatever a function of the user fails
    /// with.
    pub(crate) fn apply_filter(
        &self,
        window: &mut FilteredWindow,
        mut leaves: Vec<LeafBatch>,
    ) -> Result<()> {
        let rest = &mut window.rest;
        let number = window.stages.len();
        // The leaves of later stages have only the rows that are left.
        let rows = if number == 0 { rest.decoded() } else { rest.rows() };
        let stages = rest.stages.clone();
        let filter = self.plan.filter().filter(|_| !rest.is_proven);
        let (Some(filter), Some(stages)) = (filter, stages) else {
            let keep = rest.keep().filter(|_| number == 0).cloned();
            window.stages.push(DecodedLeaves { leaves, rows, keep });
            return Ok(());
        };
        let stage = stages.get(number).ok_or_else(evaluated)?;
        let passed = filter.evaluate(stage, &leaves, rows, self.plan.budget()).map_err(|e| {
            let e = e.at_row_group(self.range.row_group);
            // An error of a value is reported without its rows; they are added here.
            match (e.kind(), rest.spans()) {
                (ErrorKind::Malformed(Spec::Geospatial), [first, ..]) => {
                    e.within(format_args!("rows from {} on", first.start))
                }
                _ => e,
            }
        })?;
        let is_last = number + 1 == stages.len();
        let passed = match rest.keep() {
            Some(keep) if number == 0 => passed.values() & keep,
            _ => passed.values().clone(),
        };
        let of_decoded = match rest.keep() {
            Some(keep) if number > 0 => within(keep, &passed),
            _ => passed.clone(),
        };
        *rest = rest.narrowed(&of_decoded, is_last && self.plan.has_late_lists());
        rest.is_proven = is_last;
        let keep = (rest.rows() < rows).then_some(passed);
        if let Some(passed) = &keep {
            for before in &mut window.stages {
                before.keep = Some(match &before.keep {
                    Some(keep) => within(keep, passed),
                    None => passed.clone(),
                });
            }
        }
        if is_last {
            filter.count_kept(&stages, rest.rows());
        }
        if rest.rows() == 0 {
            window.stages.clear();
            return Ok(());
        }
        // The leaves of the output come first. The others are not needed any more.
        leaves.truncate(stage.shared_leaves);
        window.stages.push(DecodedLeaves { leaves, rows, keep });
        Ok(())
    }

    /// Makes the batch of the rows that passed; `late` is what the other tasks decoded for
    /// [`FilteredWindow::rest`], in the order of [`Plan::leaves`].
    ///
    /// # Errors
    /// `Malformed` if the columns contradict each other.
    pub(crate) fn batch(
        &self,
        filtered: &mut FilteredWindow,
        late: Vec<LeafBatch>,
    ) -> Result<ReservedBatch> {
        let origin = Origin {
            row_group: self.range.row_group,
            first_row: self.range.first_row,
            file_name: self.plan.file_name().map(|name| &**name),
        };
        let early = std::mem::take(&mut filtered.stages);
        record_batch(&self.plan, &filtered.rest, early, late, &origin)
            .map_err(|e: Error| e.at_row_group(self.range.row_group))
    }
}

#[cold]
fn evaluated() -> Error {
    Error::internal("all stages of the filter were evaluated already")
}

/// A window, and which of its rows pass the stages of the filter that were evaluated.
pub(crate) struct FilteredWindow {
    /// The leaves that were decoded for each stage.
    stages: Vec<DecodedLeaves>,
    rest: Window,
}

impl FilteredWindow {
    pub(crate) fn new(window: Window) -> Self {
        Self { stages: Vec::new(), rest: window }
    }

    /// The rest of the window, to be decoded next; its rows are those that passed so far.
    pub(crate) fn rest(&self) -> &Window {
        &self.rest
    }
}
