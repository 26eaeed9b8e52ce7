//! A row group: its leaves, decoded window by window.
//!
//! A window is the rows of one batch. A serial driver asks for batch after batch; a parallel one takes the [`Unit`]s of several row groups,
//! decodes windows of each on any thread, and gives the results to a [`Batcher`].

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::batch::{Decoded, Origin, record_batch};
use super::chunk::{PageList, Pages};
use super::leaf::{LeafBatch, LeafReader};
use super::plan::{Plan, RowRange};
use crate::error::{Error, Result};
use crate::limits::Reservation;
use crate::page::PageContext;

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

/// One leaf of one row group: one or more [`Part`]s that decode it.
pub struct Unit {
    chunk: Chunk,
    parts: Vec<Part>,
    rows_in_group: u64,
    /// Compressed bytes: a guess of the work.
    cost: usize,
}

/// What a thread decodes at a time: windows of one leaf, in ascending order.
pub struct Part {
    reader: LeafReader,
    row_group: usize,
    column: Arc<str>,
}

/// What a column chunk is read from.
pub(super) struct Chunk {
    pub(super) plan: Plan,
    pub(super) leaf: usize,
    pub(super) list: PageList,
    pub(super) context: PageContext,
    pub(super) row_group: usize,
    pub(super) column: Arc<str>,
}

impl RowGroup {
    pub(super) fn new(
        plan: Plan,
        range: RowRange,
        rows_in_group: u64,
        units: Vec<Unit>,
        batch_rows: usize,
        batch_bytes: u64,
        fetched: Reservation,
    ) -> Self {
        let next_row = range.rows.start;
        Self {
            plan,
            range,
            rows_in_group,
            next_row,
            batch_rows,
            batch_bytes,
            units,
            _fetched: fetched,
        }
    }

    /// The rows of the next `batches` batches; fewer at the end of the row group. They are given out: the units must decode them next.
    pub fn windows(&mut self, batches: usize) -> Vec<Window> {
        let mut windows = Vec::new();
        while windows.len() < batches && !self.is_done() {
            windows.push(self.window());
        }
        windows
    }

    fn window(&mut self) -> Window {
        let most = self.batch_rows as u64;
        let start = self.next_row;
        let mut window = match &self.range.selection {
            None => Window::of(std::iter::once(start..self.range.rows.end), most),
            Some(selection) => {
                let runs = selection.runs_from(start);
                Window::of(runs.map(|run| run.start.max(start)..run.end), most)
            }
        };
        self.next_row = window.end();
        window.is_sure = match (&self.range.sure, self.plan.filter()) {
            (None, filter) => filter.is_none(),
            (Some(sure), _) => window.spans.iter().all(|span| {
                let run = sure.runs_from(span.start).next();
                run.is_some_and(|run| run.start <= span.start && span.end <= run.end)
            }),
        };
        window
    }

    /// The rows from the next one on.
    pub fn rest(&self) -> RowRange {
        self.rest_from(self.next_row)
    }

    /// The rows from the first of `window` on.
    pub fn rest_with(&self, window: &Window) -> RowRange {
        self.rest_from(window.spans.first().map_or(self.next_row, |span| span.start))
    }

    fn rest_from(&self, row: u64) -> RowRange {
        let rows = row..self.range.rows.end;
        RowRange { rows, ..self.range.clone() }
    }

    /// Whether every window is given out.
    pub fn is_done(&self) -> bool {
        self.next_row >= self.range.rows.end
    }

    /// About how many bytes a batch takes as Arrow arrays, by what the metadata say.
    pub fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// The leaves, in the order of [`Plan::leaves`]; without those that only the filter needs if it need not be evaluated.
    pub fn units(&mut self) -> &mut [Unit] {
        &mut self.units
    }

    /// Whether there is a filter that must be evaluated for some of the rows, so that batches are made in two steps: [`Unit::is_early`].
    pub fn is_filtered(&self) -> bool {
        self.plan.filter().is_some() && !self.range.is_sure()
    }

    /// Whether `window` is the last of the row group, so that nothing may be left in its chunks.
    pub fn ends_with(&self, window: &Window) -> bool {
        window.end() == self.rows_in_group
    }

    /// What makes batches of the leaves of this row group, on any thread.
    pub fn batcher(&self) -> Batcher {
        Batcher { plan: self.plan.clone(), range: self.range.clone() }
    }

    /// Decodes the next batch on this thread; `None` after the last row. With a filter, a batch has the rows of a window that pass: it is never
    /// empty.
    ///
    /// # Errors
    /// Whatever is wrong with the pages of the rows.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let batcher = self.batcher();
        while let Some(window) = self.windows(1).pop() {
            let early = self.decode(true, &window)?;
            let sifted = batcher.sift(window, early)?;
            let rest = sifted.rest();
            if self.plan.filter().is_some() && rest.rows() == 0 {
                continue;
            }
            let late = self.decode(false, rest)?;
            return batcher.batch(sifted, late).map(Some);
        }
        Ok(None)
    }

    /// Decodes a window of the leaves that come before the filter, or of those that come after it.
    fn decode(&mut self, early: bool, window: &Window) -> Result<Vec<LeafBatch>> {
        let last = self.ends_with(window);
        let mut leaves = Vec::with_capacity(self.units.len());
        for unit in self.units.iter_mut().filter(|unit| unit.is_wanted(early, window)) {
            for part in unit.parts().iter_mut().take(1) {
                leaves.push(part.decode(window, last)?);
            }
        }
        Ok(leaves)
    }
}

/// Makes batches of decoded leaves.
#[derive(Debug, Clone)]
pub struct Batcher {
    plan: Plan,
    range: RowRange,
}

impl Batcher {
    /// Evaluates the filter on the rows of a window, given what the early units decoded for it, in the order of [`Plan::leaves`]. Where there is no
    /// filter, or it need not be evaluated, all rows pass.
    ///
    /// # Errors
    /// `Malformed` if the columns contradict each other, and whatever a function of the user fails with.
    pub fn sift(&self, window: Window, early: Vec<LeafBatch>) -> Result<Sifted> {
        let decoded = window.decoded();
        let Some(filter) = self.plan.filter().filter(|_| !window.is_sure) else {
            let keep = window.keep.clone();
            return Ok(Sifted { early, decoded, keep, rest: window });
        };
        let passed =
            filter.evaluate(&early, decoded).map_err(|e| e.at_row_group(self.range.row_group))?;
        let passed = match &window.keep {
            Some(keep) => passed.values() & keep.values(),
            None => passed.values().clone(),
        };
        let rest = window.narrowed(&passed);
        let keep = (rest.rows < decoded).then(|| BooleanArray::new(passed, None));
        Ok(Sifted { early, decoded, keep, rest })
    }

    /// Makes the batch of the rows that passed; `late` is what the other units decoded for [`Sifted::rest`], in the order of [`Plan::leaves`].
    ///
    /// # Errors
    /// `Malformed` if the columns contradict each other.
    pub fn batch(&self, sifted: Sifted, late: Vec<LeafBatch>) -> Result<RecordBatch> {
        let Sifted { early, decoded, keep, rest } = sifted;
        let origin = Origin {
            row_group: self.range.row_group,
            first_row: self.range.first_row,
            file_name: self.plan.file_name().map(|name| &**name),
        };
        let early = Decoded { leaves: early, rows: decoded, keep: keep.as_ref() };
        let late = Decoded { leaves: late, rows: rest.decoded(), keep: rest.keep.as_ref() };
        record_batch(&self.plan, rest.rows, early, late, &rest.spans, &origin)
            .map_err(|e: Error| e.at_row_group(self.range.row_group))
    }
}

/// A window of which it is known which rows pass the filter.
pub struct Sifted {
    early: Vec<LeafBatch>,
    /// Rows of the early leaves.
    decoded: usize,
    /// Which of them pass; `None` if all do.
    keep: Option<BooleanArray>,
    rest: Window,
}

impl Sifted {
    /// What is to be decoded of the late leaves; its rows are those that pass.
    pub fn rest(&self) -> &Window {
        &self.rest
    }
}

/// The rows of one batch, counted from the first of the row group.
#[derive(Debug, Clone)]
pub struct Window {
    /// What is decoded: ascending, none empty, no two touching.
    spans: Arc<[Range<u64>]>,
    /// Which of the decoded rows are wanted; `None` if all are.
    keep: Option<BooleanArray>,
    rows: usize,
    /// Whether the filter, if there is one, is known to be true of all rows.
    is_sure: bool,
}

/// Rows that are decoded sooner than skipped; their pages must be there.
pub(super) const GAP: u64 = 16;

/// Rows not decoded that pay for one more stretch, where a filter leaves stretches of rows.
const ROWS_FOR_A_STRETCH: usize = 64;

/// How many rows may be decoded for one that is wanted, so that no stretch need be skipped.
const MOST_FOR_ONE: u64 = 3;

impl Window {
    /// The first `most` rows of `runs`, of which there is at least one.
    fn of(runs: impl Iterator<Item = Range<u64>>, most: u64) -> Self {
        let (mut wanted, mut rows) = (Vec::new(), 0u64);
        for Range { start, end } in runs {
            let end = end.min(start.saturating_add(most - rows));
            rows += end - start;
            wanted.push(start..end);
            if rows >= most {
                break;
            }
        }
        let (spans, keep) = match join(&wanted, rows) {
            Some((spans, keep)) => (spans, Some(keep)),
            None => (wanted, None),
        };
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        Self { spans: spans.into(), keep, rows, is_sure: false }
    }

    /// Only those of the decoded rows whose bits are set. Few of them are decoded in stretches, of many all: whichever is less work.
    fn narrowed(&self, passed: &BooleanBuffer) -> Self {
        let rows = passed.count_set_bits();
        let decoded = passed.len();
        if rows == 0 {
            return Self { spans: [].into(), keep: None, rows, is_sure: true };
        }
        let most = (decoded - rows) / ROWS_FOR_A_STRETCH;
        if passed.set_slices().take(most + 1).count() > most {
            let keep = (rows < decoded).then(|| BooleanArray::new(passed.clone(), None));
            return Self { spans: self.spans.clone(), keep, rows, is_sure: true };
        }
        // From places among the decoded rows to rows of the row group.
        let mut runs = Vec::new();
        let mut spans = self.spans.iter().cloned();
        let (mut span, mut first) = (spans.next().unwrap_or_default(), 0u64);
        for (start, end) in passed.set_slices() {
            let (mut at, end) = (start as u64, end as u64);
            while at < end {
                let len = span.end - span.start;
                if at >= first + len {
                    let Some(next) = spans.next() else { break };
                    (span, first) = (next, first + len);
                    continue;
                }
                let until = end.min(first + len);
                runs.push(span.start + (at - first)..span.start + (until - first));
                at = until;
            }
        }
        Self { is_sure: true, ..Self::of(runs.into_iter(), u64::MAX) }
    }

    /// Rows of the batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows that are decoded: more than wanted where they are decoded sooner than skipped.
    pub fn decoded(&self) -> usize {
        self.keep.as_ref().map_or(self.rows, |keep| keep.values().len())
    }

    /// Behind its last row.
    fn end(&self) -> u64 {
        self.spans.last().map_or(u64::MAX, |span| span.end)
    }
}

/// Joins runs across short gaps, and says which of the rows are wanted; `None` if that does not pay.
fn join(runs: &[Range<u64>], rows: u64) -> Option<(Vec<Range<u64>>, BooleanArray)> {
    let mut spans: Vec<Range<u64>> = Vec::new();
    let mut more = 0;
    for run in runs {
        match spans.last_mut() {
            Some(last) if run.start - last.end <= GAP => {
                more += run.start - last.end;
                last.end = run.end;
            }
            _ => spans.push(run.clone()),
        }
    }
    if more == 0 || more > rows.saturating_mul(MOST_FOR_ONE) {
        return None;
    }
    let mut keep = BooleanBufferBuilder::new(usize::try_from(rows + more).ok()?);
    let mut end = None;
    for run in runs {
        let gap = end.map_or(0, |end| run.start - end);
        if gap <= GAP {
            keep.append_n(usize::try_from(gap).ok()?, false);
        }
        keep.append_n(usize::try_from(run.end - run.start).ok()?, true);
        end = Some(run.end);
    }
    Some((spans, BooleanArray::new(keep.finish(), None)))
}

impl Chunk {
    fn part(&self) -> Result<Part> {
        let Self { plan, leaf, list, context, row_group, column } = self;
        let pages = Pages::new(list, context.clone(), plan.budget())?;
        let leaf = plan.leaves().get(*leaf).ok_or_else(|| Error::usage("no such leaf"))?;
        let carries_prefix = plan.footer().writer().carries_prefix;
        let utf8 = plan.options().utf8;
        let reader = LeafReader::new(leaf, pages, utf8, carries_prefix, plan.budget())
            .map_err(|e| e.at_column(column.clone()).at_row_group(*row_group))?;
        Ok(Part { reader, row_group: *row_group, column: column.clone() })
    }
}

impl Unit {
    pub(super) fn new(chunk: Chunk, rows_in_group: u64, cost: usize) -> Result<Self> {
        let parts = vec![chunk.part()?];
        Ok(Self { chunk, parts, rows_in_group, cost })
    }

    /// Whether the leaf is decoded before the filter is evaluated.
    pub fn is_early(&self) -> bool {
        self.chunk.plan.filter().is_some_and(|filter| filter.is_early(self.chunk.leaf))
    }

    /// Whether the leaf is decoded before the filter, or after it, as asked, and at all: what only the filter needs is not where it need not be
    /// evaluated.
    pub fn is_wanted(&self, early: bool, window: &Window) -> bool {
        let Chunk { plan, leaf, .. } = &self.chunk;
        self.is_early() == early && (*leaf < plan.output_leaves() || !window.is_sure)
    }

    /// About how much work the chunk is, in compressed bytes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// What decodes the leaf: one part, or as many as it was split into.
    pub fn parts(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// Lets `parts` threads decode the leaf, each its own pages, if it is known where those are. Before anything is decoded.
    ///
    /// # Errors
    /// As for the first part.
    pub fn split(&mut self, parts: usize) -> Result<()> {
        let Chunk { plan, list, context, .. } = &mut self.chunk;
        // Pages of these writers need those in front of them.
        if plan.footer().writer().carries_prefix {
            return Ok(());
        }
        let Some(found) = list.find_pages(self.rows_in_group, context) else {
            return Ok(());
        };
        let most = found.pages().map_or(1, <[_]>::len);
        if parts < 2 || most < 2 {
            return Ok(());
        }
        *list = found;
        self.parts.clear();
        for _ in 0..parts.min(most) {
            self.parts.push(self.chunk.part()?);
        }
        Ok(())
    }
}

impl Part {
    /// Decodes the rows of a window that lies behind those decoded so far; with `last`, nothing may be left after them.
    ///
    /// # Errors
    /// Whatever is wrong with the pages; the place is in the error.
    pub fn decode(&mut self, window: &Window, last: bool) -> Result<LeafBatch> {
        let mut decode = || {
            self.reader.reserve(window.decoded());
            for span in &*window.spans {
                self.reader.seek(span.start)?;
                let rows = usize::try_from(span.end - span.start)
                    .map_err(|_| Error::usage("a window of more rows than memory"))?;
                self.reader.append(rows)?;
            }
            if last {
                self.reader.finish()?;
            }
            self.reader.take()
        };
        decode().map_err(|e| {
            e.at_page(self.reader.page())
                .at_column(self.column.clone())
                .at_row_group(self.row_group)
        })
    }
}
