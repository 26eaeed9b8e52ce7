//! A row group: its leaves, decoded window by window.
//!
//! A serial driver asks for batch after batch; a parallel one takes the [`ColumnTask`]s of several
//! row groups, decodes [`Window`]s of each on any thread, and gives the results to a [`Batcher`].

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::batch::{DecodedLeaves, Origin, ReservedBatch, record_batch};
use super::column::LeafBatch;
use super::column_task::{ChunkSource, ColumnTask};
use super::filter::Filter;
use super::filter_stages::DecodeStep;
use super::plan::{Fetched, FetchedChunk, ListedPages, Plan, RowGroupPlan, RowRange};
use super::supplied::Step;
use super::window::Window;
use crate::bytes::saturated;
use crate::error::{Error, ErrorKind, LimitKind, Result, Spec};
use crate::limits::Reservation;
use crate::predicate::nested_bits::within;

/// A row group whose bytes are there.
pub struct RowGroup {
    pub(super) plan: Plan,
    pub(super) range: RowRange,
    rows_in_group: u64,
    /// The next row to give, counted from the first of the row group.
    pub(super) next_row: u64,
    pub(super) batch_rows: usize,
    /// Rows of a batch, as estimated from the metadata.
    estimated_rows: usize,
    /// Maximum rows of a batch: as estimated, unless the estimate was found to be far off.
    max_rows: usize,
    /// What was decoded so far in batches that were not too large: rows and bytes.
    seen: (u64, u64),
    /// About how many bytes a batch takes.
    pub(super) batch_bytes: u64,
    /// Whether batches are made one at a time, because one was larger than the metadata had said.
    pub(super) is_careful: bool,
    /// How many batches were too large.
    rewound: u32,
    pub(super) tasks: Vec<ColumnTask>,
    /// Whether its tasks may be split.
    pub(super) may_split: bool,
    /// Compressed bytes of a row of each leaf of the plan, where it matters which of a filter comes
    /// first.
    row_bytes: Vec<f64>,
    /// The window that is being decoded by [`RowGroup::next_step`].
    open: Option<OpenWindow>,
    /// Holds the fetched bytes in the budget.
    #[cfg_attr(not(feature = "parallel"), expect(dead_code, reason = "freed when it is dropped"))]
    pub(super) fetched: Reservation,
}

impl fmt::Debug for RowGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroup")
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

/// What comes of the bytes of a row group.
pub(crate) enum Supplied {
    /// The row group, ready to be decoded.
    Ready(Box<RowGroup>),
    /// More bytes are needed: dictionary pages that the pages refer to; or all of a chunk whose
    /// pages were not where an index says, so that the index is ignored.
    Again(Box<RowGroupPlan>),
}

impl RowGroupPlan {
    /// Takes the bytes wanted, in the same order.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted, `Limit(Memory)` if the budget has no room for
    /// them.
    pub(crate) fn supply(self, bytes: Vec<Bytes>) -> Result<Supplied> {
        match self.list_pages(&bytes)? {
            ListedPages::Ready(fetched) => Ok(Supplied::Ready(Box::new(RowGroup::new(fetched)))),
            ListedPages::NeedsMore(plan) => Ok(Supplied::Again(Box::new(plan))),
        }
    }
}

impl RowGroup {
    fn new(fetched: Fetched) -> Self {
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
        let tasks = chunks.into_iter().map(task).collect();
        Self {
            next_row: range.rows.start,
            plan,
            range,
            rows_in_group,
            batch_rows,
            estimated_rows: batch_rows,
            max_rows: batch_rows,
            seen: (0, 0),
            batch_bytes,
            is_careful: false,
            rewound: 0,
            tasks,
            may_split: true,
            row_bytes,
            open: None,
            fetched: memory,
        }
    }

    /// The windows of the next `batches` batches, fewer at the end of the row group. The tasks must
    /// decode them next, in this order.
    pub(crate) fn windows(&mut self, batches: usize) -> Vec<Window> {
        // The same for all of them, those too of which the filter is known to be true: each step is
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
        let max = self.batch_rows as u64;
        let start = self.next_row;
        let mut window = match (self.counted_run(), &self.range.selection) {
            (Some(run), _) => Window::of(std::iter::once(run), u64::MAX),
            (None, None) => Window::of(std::iter::once(start..self.range.rows.end), max),
            (None, Some(selection)) => {
                let runs = selection.runs_from(start);
                Window::of(runs.map(|run| run.start.max(start)..run.end), max)
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

    /// For a count: the next rows of which the filter is known to be true, however many. They need
    /// not be decoded, because there are no columns.
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

    /// The rows from the next one on.
    pub(crate) fn rest(&self) -> RowRange {
        match &self.open {
            Some(open) => self.rest_with(&open.window),
            None => self.rest_from(self.next_row),
        }
    }

    /// The rows from the first of `window` on.
    pub(crate) fn rest_with(&self, window: &Window) -> RowRange {
        self.rest_from(window.spans().first().map_or(self.next_row, |span| span.start))
    }

    fn rest_from(&self, row: u64) -> RowRange {
        let rows = row..self.range.rows.end;
        RowRange { rows, ..self.range.clone() }
    }

    /// Whether every window is given out.
    pub(crate) fn is_done(&self) -> bool {
        self.next_row >= self.range.rows.end
    }

    /// Leaves the tasks as they are from now on.
    pub(crate) fn forbid_splits(&mut self) {
        self.may_split = false;
    }

    /// Whether there is a filter that must be evaluated for some of the rows, so that batches are
    /// made in several steps: [`DecodeStep`].
    pub(crate) fn is_filtered(&self) -> bool {
        self.plan.filter().is_some() && !self.range.is_proven()
    }

    /// Whether `window` is the last of the row group, so that nothing may be left in its chunks.
    pub(crate) fn ends_with(&self, window: &Window) -> bool {
        window.end() == self.rows_in_group
    }

    /// What makes batches of the leaves of this row group, on any thread.
    pub(crate) fn batcher(&self) -> Batcher {
        Batcher { plan: self.plan.clone(), range: self.range.clone() }
    }

    /// Decodes the next batch on this thread; `None` after the last row. With a filter, a batch has
    /// the rows of a window that pass: it is never empty. One that would take much more than
    /// [`batch_bytes`](super::ReadOptions::batch_bytes), or more than an array or the memory can
    /// hold, is made of fewer rows.
    ///
    /// # Errors
    /// Whatever is wrong with the pages of the rows; `Limit` if there is no room for a single one,
    /// which is then tried again by the next call.
    pub fn next_batch(&mut self) -> Result<Option<ReservedBatch>> {
        self.next_step(None)?.done()
    }

    /// As [`RowGroup::next_batch`], of a row group whose large chunks are given while they are
    /// decoded: `given` is what the step before asked for.
    ///
    /// # Errors
    /// As [`RowGroup::next_batch`].
    pub(crate) fn next_step(
        &mut self,
        mut given: Option<Bytes>,
    ) -> Result<Step<Option<ReservedBatch>>> {
        let batcher = self.batcher();
        loop {
            let open = self.open.take().or_else(|| {
                let window = self.windows(1).pop()?;
                let filtered = FilteredWindow::new(window.clone());
                Some(OpenWindow {
                    window,
                    filtered,
                    step: DecodeStep::Filter(0),
                    leaves: Vec::new(),
                })
            });
            let Some(mut open) = open else { return Ok(Step::Done(None)) };
            match self.decode_open(&batcher, &mut open, given.take()) {
                Ok(Step::NeedsMore(range)) => {
                    self.open = Some(open);
                    return Ok(Step::NeedsMore(range));
                }
                Ok(Step::Done(None)) => self.learn(&open.window),
                Ok(Step::Done(batch)) => {
                    self.learn(&open.window);
                    return Ok(Step::Done(batch));
                }
                Err(e) if is_too_large(&e) => {
                    let window = &open.window;
                    self.restart_carefully(window);
                    self.batch_rows = self.batch_rows.min(window.rows() / FEWER).max(1);
                    if window.rows() <= 1 {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Says of which column and page an error is, if one asked for bytes that could not be read.
    pub(crate) fn place(&self, error: Error) -> Error {
        let mut parts = self.tasks.iter().flat_map(ColumnTask::waiting);
        let error = match parts.next() {
            Some(part) => part.place(error),
            None => error,
        };
        error.at_row_group(self.range.row_group)
    }

    /// Goes on with a window, up to its batch; `None` if no row passes the filter.
    fn decode_open(
        &mut self,
        batcher: &Batcher,
        open: &mut OpenWindow,
        mut given: Option<Bytes>,
    ) -> Result<Step<Option<ReservedBatch>>> {
        let OpenWindow { filtered, step, leaves, .. } = open;
        loop {
            if let Step::NeedsMore(range) =
                self.decode(*step, filtered.rest(), leaves, &mut given)?
            {
                return Ok(Step::NeedsMore(range));
            }
            let leaves = std::mem::take(leaves);
            let DecodeStep::Filter(stage) = *step else {
                return batcher.batch(filtered, leaves).map(|batch| Step::Done(Some(batch)));
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

    /// Goes back to the first row of a window that was given out: windows may be asked for and
    /// decoded again.
    pub(crate) fn restart_at(&mut self, window: &Window) {
        self.open = None;
        self.may_split = false;
        self.next_row = window.spans().first().map_or(self.next_row, |span| span.start);
        self.tasks.iter_mut().for_each(ColumnTask::restart);
    }

    /// As [`RowGroup::restart_at`], but the batches to come are made one at a time, by
    /// [`RowGroup::next_batch`], until it is known how many rows they may have.
    pub(crate) fn restart_carefully(&mut self, window: &Window) {
        self.is_careful = true;
        self.rewound += 1;
        // The metadata may be right of the rows from here on.
        self.batch_rows = self.batch_rows.min(self.estimated_rows);
        self.restart_at(window);
    }

    /// Gives the next batches more rows, if what was decoded of these windows and of those before
    /// is far less than the metadata had said: they may lie, and a batch of each row takes long.
    pub(crate) fn widen(&mut self, windows: &[Window]) {
        let cap = self.plan.options().batch_rows;
        let cap = if self.is_filtered() { cap.min(MAX_FILTERED) } else { cap };
        if self.rewound > 0 || self.batch_rows >= cap {
            return;
        }
        for window in windows {
            self.seen.0 = self.seen.0.saturating_add(window.decoded() as u64);
            self.seen.1 = self.seen.1.saturating_add(window.weight.with_pages());
        }
        let (rows, bytes) = self.seen;
        let width = (bytes / rows.max(1)).max(1);
        if rows == 0 || width.saturating_mul(FAR_OFF) > self.batch_bytes / self.batch_rows as u64 {
            return;
        }
        let fitting = saturated(self.plan.batch_bytes() as u64 / width);
        let rows = fitting.min(self.batch_rows.saturating_mul(WIDER)).min(cap);
        if rows > self.batch_rows {
            self.max_rows = cap;
            // What the metadata say of a row is still compared with, and bounds the waves.
            let per_row = self.batch_bytes / self.batch_rows as u64;
            self.batch_bytes = per_row.saturating_mul(rows as u64);
            self.batch_rows = rows;
        }
    }

    /// Adjusts the rows of the next batches to the size of this one, once a batch was too large.
    fn learn(&mut self, window: &Window) {
        if self.rewound == 0 {
            self.widen(std::slice::from_ref(window));
            return;
        }
        let width = (window.weight.bytes() / (window.decoded() as u64).max(1)).max(1);
        let fitting = self.plan.batch_bytes() as u64 / width;
        let fitting = saturated(fitting);
        let max = self.max_rows.min(self.batch_rows.saturating_mul(2));
        let rows = fitting.clamp(1, max.max(1));
        // A single long row says nothing of the rows after it.
        let is_known = rows <= self.batch_rows && window.decoded() >= KNOWN_FROM;
        self.is_careful &= !is_known || self.rewound > MAX_REWOUND;
        self.batch_rows = rows;
        self.batch_bytes = width.saturating_mul(rows as u64);
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
            leaves.reserve(self.tasks.len().saturating_sub(leaves.len()));
        }
        let wanted = self.tasks.iter_mut().filter(|task| task.is_wanted(step, window));
        for task in wanted.skip(leaves.len()) {
            let [part, ..] = task.parts()? else { continue };
            match part.decode(window, last, given.take())? {
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

/// A batch that was too large is tried again with this many times fewer rows.
const FEWER: usize = 4;

/// How many times less than estimated rows must take for the estimate to be called wrong. Sane
/// metadata are off by less.
const FAR_OFF: u64 = 16;

/// The next batch has so many times more rows, where the metadata had said far too much.
const WIDER: usize = 4;

/// Maximum rows that a batch is widened to where a filter leaves rows out, because little is known
/// of columns of which few rows were decoded.
const MAX_FILTERED: usize = 1024;

/// Minimum rows of a batch that tell how wide the others will be.
const KNOWN_FROM: usize = 64;

/// Maximum batches that may be too large before all later ones are made one at a time.
const MAX_REWOUND: u32 = 8;

/// Whether fewer rows at a time may help.
pub(crate) fn is_too_large(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit(LimitKind::Memory | LimitKind::ArrayLength))
}

/// Makes batches of decoded leaves.
#[derive(Debug, Clone)]
pub(crate) struct Batcher {
    plan: Plan,
    range: RowRange,
}

impl Batcher {
    /// Evaluates the next stage of the filter on the rows of a window that are left, given what was
    /// decoded for it, in the order of [`Plan::leaves`]. Where there is no filter, or it need not be
    /// evaluated, all rows pass.
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
        let passed = filter.evaluate(stage, &leaves, rows).map_err(|e| {
            let e = e.at_row_group(self.range.row_group);
            // What is wrong with a value is said of the value: here, of which rows.
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
        // Those of the output come first. The others are not needed any more.
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
    Error::usage("all stages of the filter were evaluated already")
}

/// A window, and which of its rows pass the stages of the filter that were evaluated.
pub(crate) struct FilteredWindow {
    /// What was decoded for each stage.
    stages: Vec<DecodedLeaves>,
    rest: Window,
}

impl FilteredWindow {
    pub(crate) fn new(window: Window) -> Self {
        Self { stages: Vec::new(), rest: window }
    }

    /// What is to be decoded next; its rows are those that are left.
    pub(crate) fn rest(&self) -> &Window {
        &self.rest
    }
}
