//! [`Opening`]: a row group that is being opened. If it saves bytes, the columns of the filter are
//! fetched and decoded first, and then only those pages of the others that hold rows that pass.
//!
//! It can save time only where bytes are slow: where the source is neither memory nor a local file.
//! Trap: each row group costs one more round trip. If the rows that pass lie in all pages, nothing
//! is saved; [`FilterFirst`] learns that as the read goes on.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;

use super::opening::RowGroupOpening;
use crate::error::Result;
use crate::memory;
use crate::range_cache::RangeCache;
use crate::read::batch::ReservedBatch;
use crate::read::plan::{PageIndexPlan, Plan, RowRange};
use crate::read::progress::Progress;
use crate::read::retry::{Failed, Retry};
use crate::read::row_group::RowGroupDecoder;
use crate::read::supplied::Step;
use crate::selection::RowSelection;

/// Finds out which rows pass a filter before the other columns are fetched.
pub(crate) struct FilterFirst {
    plan: Plan,
    /// Bytes that could be saved so far.
    estimated_saving: AtomicU64,
    /// Bytes of these that were fetched all the same.
    fetched: AtomicU64,
}

/// Candidate rows, and the estimated saving.
struct Candidate {
    /// The rows that may be left.
    left: RowRange,
    /// Bytes that need not be fetched if no row passes, estimated.
    bytes: u64,
}

impl FilterFirst {
    /// For the filter of `plan`. `None` if there is no filter, or it needs all columns, or its
    /// columns cannot be planned alone.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        // A fault is reported when all columns are read.
        let plan = plan.filter_only_plan().ok().flatten()?;
        Some(Self { plan, estimated_saving: AtomicU64::new(0), fetched: AtomicU64::new(0) })
    }

    /// The candidate of a row group. `None` if a round trip for it is likely to cost more than it
    /// saves.
    fn candidate(&self, left: &PageIndexPlan, gap: u64) -> Option<Candidate> {
        let range = left.range();
        if range.is_claimed_or_proven() {
            return None;
        }
        // As above.
        let own = self.plan.row_group(range).ok()?.wanted_bytes();
        let bytes = left.wanted_bytes().saturating_sub(own);
        let (before, fetched) =
            (self.estimated_saving.load(Ordering::Relaxed), self.fetched.load(Ordering::Relaxed));
        // Tried until four round trips' worth of bytes were at stake, then while it saves a
        // quarter.
        let pays = before <= gap.saturating_mul(4) || fetched <= before / 4 * 3;
        (pays && bytes > gap).then(|| Candidate { left: range.clone(), bytes })
    }

    /// Counts how many bytes were fetched all the same.
    fn learn(&self, candidate: &Candidate, fetched: u64) {
        self.estimated_saving.fetch_add(candidate.bytes, Ordering::Relaxed);
        self.fetched.fetch_add(fetched, Ordering::Relaxed);
    }
}

/// The context in which row groups are opened.
pub(crate) struct OpenContext {
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    /// Whether large chunks are given while they are decoded.
    pub(crate) in_pieces: bool,
    /// Where it may pay to evaluate the filter first.
    pub(crate) filter_first: Option<FilterFirst>,
    /// Bytes that come in the time of a request.
    pub(crate) gap: u64,
}

/// A row group that is being opened: a driver fetches the bytes of [`needs`](Self::needs) and
/// passes them to [`supply`](Self::supply).
pub(crate) struct Opening {
    context: Arc<OpenContext>,
    /// The rows that are wanted.
    all: RowRange,
    opening: RowGroupOpening,
    phase: Phase,
    /// The bytes that were fetched for the filter, which are not fetched again.
    kept: RangeCache,
    /// The ranges that the opening needs and that are not kept.
    missing: Vec<Range<u64>>,
}

/// The purpose of the opening.
enum Phase {
    /// To find out which rows may be left, and whether to evaluate the filter first.
    Undecided,
    /// All columns of them.
    AllColumns,
    /// The columns of the filter.
    FilterColumns(Candidate),
    /// All columns of the rows that pass, and how many bytes were fetched for that.
    Passed(Candidate, u64),
}

/// A step towards a row group.
pub(crate) type OpenStep = Step<Opened, Opening>;

/// The result of an opening.
pub(crate) enum Opened {
    /// The filter is to be evaluated, on a thread that may be busy for long.
    Filter(Box<FilterTask>),
    /// The row group; `None` if no row is left of it.
    RowGroup(Option<Box<RowGroupDecoder>>),
}

/// The columns of the filter, of a row group.
pub(crate) struct FilterTask {
    /// `None` if no row is left of it.
    row_group: Option<Box<RowGroupDecoder>>,
    context: Arc<OpenContext>,
    /// The rows that are wanted.
    all: RowRange,
    candidate: Candidate,
    kept: RangeCache,
}

impl Opening {
    /// Opens a row group of the plan; with `without_index` one whose index was found to be wrong.
    ///
    /// # Errors
    /// As [`RowGroupOpening::new`].
    pub(crate) fn new(
        context: &Arc<OpenContext>,
        range: &RowRange,
        without_index: bool,
    ) -> Result<Self> {
        let OpenContext { plan, progress, filter_first, .. } = &**context;
        if without_index {
            let opening = RowGroupOpening::without_index(plan, range, progress)?;
            return Self::at_phase(context.clone(), range, opening, Phase::AllColumns);
        }
        let opening = RowGroupOpening::new(plan, range, progress)?;
        let phase = match filter_first {
            Some(_) => Phase::Undecided,
            None => Phase::AllColumns,
        };
        Self::at_phase(context.clone(), range, opening, phase)
    }

    fn at_phase(
        context: Arc<OpenContext>,
        all: &RowRange,
        opening: RowGroupOpening,
        phase: Phase,
    ) -> Result<Self> {
        let (kept, missing) = (RangeCache::default(), Vec::new());
        Self { context, all: all.clone(), opening, phase, kept, missing }.settled()
    }

    /// After the opening has changed.
    fn settled(mut self) -> Result<Self> {
        let is_last = matches!(self.phase, Phase::AllColumns | Phase::Passed(..));
        if is_last && self.context.in_pieces {
            self.opening = self.opening.in_pieces()?;
        }
        let missing = self.opening.needs().iter().filter(|need| self.kept.get(need).is_none());
        self.missing = memory::collected(missing.cloned())?;
        Ok(self)
    }

    /// The bytes wanted, once there is memory for them; none if there is nothing to ask at this
    /// stage.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget does not suffice for the bytes wanted.
    pub(crate) fn needs(&self) -> Result<&[Range<u64>]> {
        self.opening.check_memory()?;
        Ok(&self.missing)
    }

    /// Index of the row group.
    pub(crate) fn row_group(&self) -> usize {
        self.opening.row_group()
    }

    /// Rows that were wanted of it when this began.
    pub(crate) fn rows(&self) -> u64 {
        self.opening.rows()
    }

    /// Takes the bytes wanted, in the same order; `read` bytes were read for them.
    ///
    /// # Errors
    /// As [`RowGroupOpening::supply`].
    pub(crate) fn supply(mut self, bytes: Vec<Bytes>, read: u64) -> Result<OpenStep, Failed> {
        match &mut self.phase {
            Phase::FilterColumns(_) => {
                for (need, bytes) in self.missing.iter().zip(&bytes) {
                    self.kept.insert(need.start, bytes.clone());
                }
            }
            Phase::Passed(_, fetched) => *fetched += read,
            Phase::Undecided | Phase::AllColumns => {}
        }
        let mut given = bytes.into_iter();
        // In the order in which they were found missing; a driver that supplies too few gets an
        // error.
        let mut missing = self.missing.iter().peekable();
        let wanted = self.opening.needs().iter().filter_map(|need| {
            match missing.next_if(|missing| *missing == need) {
                Some(_) => given.next(),
                None => self.kept.get(need),
            }
        });
        let wanted = memory::collected(wanted)?;
        let Self { context, all, opening, phase, kept, .. } = self;
        let opened = opening.supply(wanted);
        match (opened, phase) {
            (Ok(Step::NeedsMore(opening)), phase) => {
                Self { context, all, opening, phase, kept, missing: Vec::new() }.decided()
            }
            (Ok(Step::Done(row_group)), Phase::FilterColumns(candidate)) => {
                let task = FilterTask { row_group, context, all, candidate, kept };
                Ok(Step::Done(Opened::Filter(Box::new(task))))
            }
            (Ok(Step::Done(row_group)), phase) => {
                if let Phase::Passed(candidate, fetched) = phase {
                    context.learn(&candidate, fetched);
                }
                Ok(Step::Done(Opened::RowGroup(row_group)))
            }
            (Err(e), _) => Err(e.into()),
        }
    }

    /// Once the possible rows are known, continues with the columns of the filter, if that pays, or
    /// with all.
    fn decided(mut self) -> Result<OpenStep, Failed> {
        if let (Phase::Undecided, Some(left), Some(filter_first)) =
            (&self.phase, self.opening.left(), &self.context.filter_first)
        {
            self.phase = match filter_first.candidate(left, self.context.gap) {
                None => Phase::AllColumns,
                Some(candidate) => {
                    // Its counts are discarded, because the caller's progress counts the same
                    // bytes anyway.
                    let progress = Progress::default();
                    let (plan, left) = (&filter_first.plan, &candidate.left);
                    self.opening = RowGroupOpening::pruned(plan, left, &self.all, &progress)?;
                    Phase::FilterColumns(candidate)
                }
            };
        }
        Ok(Step::NeedsMore(self.settled()?))
    }
}

impl FilterTask {
    /// Continues with the rows that pass, as far as they were decoded before the read was
    /// cancelled; with all rows if the pages of the filter contradict the page index, which is then
    /// ignored.
    ///
    /// # Errors
    /// Any fault of the pages; or as [`RowGroupOpening::new`].
    pub(crate) fn run(mut self, cancelled: &AtomicBool) -> Result<OpenStep, Failed> {
        let passed = self.evaluate(cancelled);
        let Self { context, all, candidate, kept, .. } = self;
        let passed = match passed {
            Err(Failed { retry: Some(Retry::WithoutIndex), .. }) => {
                return Ok(Step::NeedsMore(Opening::new(&context, &all, true)?));
            }
            passed => passed?,
        };
        let Some(left) = all.passed(passed) else {
            context.learn(&candidate, 0);
            return Ok(Step::Done(Opened::RowGroup(None)));
        };
        let opening = RowGroupOpening::pruned(&context.plan, &left, &left, &context.progress)?;
        let phase = Phase::Passed(candidate, 0);
        let opening = Opening { context, all, opening, phase, kept, missing: Vec::new() };
        Ok(Step::NeedsMore(opening.settled()?))
    }

    /// The rows that pass.
    fn evaluate(&mut self, cancelled: &AtomicBool) -> Result<RowSelection, Failed> {
        let RowRange { row_group, first_row, .. } = self.candidate.left;
        let mut passed = Vec::new();
        while let Some(columns) = &mut self.row_group
            && !cancelled.load(Ordering::Relaxed)
            && let Some(ReservedBatch { batch, .. }) = columns.next_step(None)?.done()?
        {
            let numbers = batch.columns().last().expect("the numbers of the rows come last");
            let number = |number: &i64| {
                let number = u64::try_from(*number).expect("rows are counted from 0");
                number.checked_sub(first_row).expect("rows are counted from the first of the group")
            };
            passed.extend(numbers.as_primitive::<Int64Type>().values().iter().map(number));
        }
        // Its memory is free before that of the other columns is taken.
        self.row_group = None;
        let rows = self.context.plan.footer().row_group_rows(row_group)?;
        Ok(RowSelection::from_rows(rows, passed)?)
    }
}

impl OpenContext {
    fn learn(&self, candidate: &Candidate, fetched: u64) {
        if let Some(filter_first) = &self.filter_first {
            filter_first.learn(candidate, fetched);
        }
    }
}
