//! [`FilteredOpening`]: a row group on its way, of which the columns of the filter are fetched and
//! decoded first, if that pays; then of the others only the pages of the rows that pass.
//!
//! Used by the blocking drivers and the asynchronous one, which fetch its bytes. It pays where
//! bytes cost time: where the source is neither memory nor a local file. Trap: each row group costs
//! one more round trip. If the rows that pass lie in all pages, nothing is saved; [`FilterFirst`]
//! learns that as the read goes on.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;

use super::progress::Progress;
use super::row_group_open::{Opened, RowGroupOpening, contradicts};
use crate::error::Result;
use crate::range_cache::RangeCache;
use crate::read::{PageIndexPlan, Plan, ReservedBatch, RowGroup, RowRange};
use crate::selection::RowSelection;

/// Finds out which rows pass a filter before the other columns are fetched.
pub(super) struct FilterFirst {
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
    pub(super) fn new(plan: &Plan) -> Option<Self> {
        // What is wrong comes to light where all columns are read.
        let plan = plan.filter_only_plan().ok().flatten()?;
        Some(Self { plan, estimated_saving: AtomicU64::new(0), fetched: AtomicU64::new(0) })
    }

    /// The candidate of a row group. `None` if a round trip for it is likely to cost more than it
    /// saves.
    fn candidate(&self, left: &PageIndexPlan, gap: u64) -> Option<Candidate> {
        let range = left.range();
        if range.is_claimed() {
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

/// What row groups are opened for.
#[derive(Clone, Copy)]
pub(super) struct OpenContext<'a> {
    pub(super) plan: &'a Plan,
    pub(super) progress: &'a Progress,
    /// Whether large chunks are given while they are decoded.
    pub(super) in_pieces: bool,
    /// Where it may pay to evaluate the filter first.
    pub(super) filter_first: Option<&'a FilterFirst>,
    /// Bytes that come in the time of a request.
    pub(super) gap: u64,
}

/// A row group that is being opened: a driver fetches the bytes of [`needs`](Self::needs) and gives
/// them to [`supply`](Self::supply), until it is [`OpenStep::Done`].
pub(super) struct FilteredOpening<'a> {
    context: OpenContext<'a>,
    opening: RowGroupOpening,
    phase: Phase,
    /// What was fetched for the filter, which is not fetched again.
    kept: RangeCache,
    /// What the opening needs and is not kept.
    missing: Vec<Range<u64>>,
}

/// What the opening is for.
enum Phase {
    /// To find out which rows may be left, and whether to evaluate the filter first.
    Undecided,
    /// All columns of them.
    AllColumns,
    /// The columns of the filter.
    FilterColumns(Candidate),
    /// All columns of the rows that pass; so many bytes were fetched for that.
    Passed(Candidate, u64),
}

/// What comes next.
pub(super) enum OpenStep<'a> {
    /// More bytes are needed.
    More(FilteredOpening<'a>),
    /// The filter is to be evaluated, on a thread that may be busy for long.
    Filter(FilterTask, AfterFilter<'a>),
    /// The row group; `None` if no row is left of it.
    Done(Option<Box<RowGroup>>),
}

/// The columns of the filter, of a row group.
pub(super) struct FilterTask {
    row_group: Box<RowGroup>,
    rows: u64,
    first_row: u64,
}

/// A row group whose filter is being evaluated.
pub(super) struct AfterFilter<'a> {
    context: OpenContext<'a>,
    candidate: Candidate,
    kept: RangeCache,
}

impl<'a> FilteredOpening<'a> {
    /// Opens a row group of the plan.
    ///
    /// # Errors
    /// As [`RowGroupOpening::new`].
    pub(super) fn new(context: OpenContext<'a>, range: &RowRange) -> Result<Self> {
        let opening = RowGroupOpening::new(context.plan, range, context.progress)?;
        let phase = match context.filter_first {
            Some(_) => Phase::Undecided,
            None => Phase::AllColumns,
        };
        Ok(Self::of(context, opening, phase))
    }

    /// As [`RowGroupOpening::again`].
    ///
    /// # Errors
    /// As [`RowGroupOpening::new`].
    pub(super) fn again(context: OpenContext<'a>, rest: &RowRange) -> Result<Self> {
        let opening = RowGroupOpening::again(context.plan, rest, context.progress)?;
        Ok(Self::of(context, opening, Phase::AllColumns))
    }

    fn of(context: OpenContext<'a>, opening: RowGroupOpening, phase: Phase) -> Self {
        let (kept, missing) = (RangeCache::default(), Vec::new());
        Self { context, opening, phase, kept, missing }.settled()
    }

    /// After the opening has changed.
    fn settled(mut self) -> Self {
        let is_last = matches!(self.phase, Phase::AllColumns | Phase::Passed(..));
        if is_last && self.context.in_pieces {
            self.opening = self.opening.in_pieces();
        }
        let missing = self.opening.needs().iter().filter(|need| self.kept.get(need).is_none());
        self.missing = missing.cloned().collect();
        self
    }

    /// The bytes wanted; none if there is nothing to ask at this stage.
    pub(super) fn needs(&self) -> &[Range<u64>] {
        &self.missing
    }

    /// Index of the row group.
    pub(super) fn row_group(&self) -> usize {
        self.opening.row_group()
    }

    /// As [`RowGroupOpening::check_memory`].
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget has no room for the bytes wanted.
    pub(super) fn check_memory(&self) -> Result<()> {
        self.opening.check_memory()
    }

    /// Takes the bytes wanted, in the same order; `read` bytes were read for them.
    ///
    /// # Errors
    /// As [`RowGroupOpening::supply`].
    pub(super) fn supply(mut self, bytes: Vec<Bytes>, read: u64) -> Result<OpenStep<'a>> {
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
        // As they were found missing; a driver that gives too few is told so.
        let mut missing = self.missing.iter().peekable();
        let wanted = self.opening.needs().iter().filter_map(|need| {
            match missing.next_if(|missing| *missing == need) {
                Some(_) => given.next(),
                None => self.kept.get(need),
            }
        });
        let wanted = wanted.collect();
        let Self { context, opening, phase, kept, .. } = self;
        let opened = opening.supply(wanted);
        match (opened, phase) {
            (Ok(Opened::More(opening)), phase) => {
                Self { context, opening, phase, kept, missing: Vec::new() }.decided()
            }
            (Ok(Opened::Done(row_group)), Phase::FilterColumns(candidate)) => {
                let rows = context.plan.footer().row_group_rows(candidate.left.row_group)?;
                let first_row = candidate.left.first_row;
                let after = AfterFilter { context, candidate, kept };
                match row_group {
                    None => after.resume(Ok(RowSelection::none(rows))),
                    Some(row_group) => {
                        Ok(OpenStep::Filter(FilterTask { row_group, rows, first_row }, after))
                    }
                }
            }
            (Ok(Opened::Done(row_group)), phase) => {
                if let Phase::Passed(candidate, fetched) = phase {
                    context.learn(&candidate, fetched);
                }
                Ok(OpenStep::Done(row_group))
            }
            (Err(e), Phase::FilterColumns(candidate)) => {
                AfterFilter { context, candidate, kept }.resume(Err(e))
            }
            (Err(e), _) => Err(e),
        }
    }

    /// Once it is known which rows may be left: goes on with the columns of the filter, if that
    /// pays, or with all.
    fn decided(mut self) -> Result<OpenStep<'a>> {
        let context = self.context;
        if let (Phase::Undecided, Some(left), Some(filter_first)) =
            (&self.phase, self.opening.left(), context.filter_first)
        {
            self.phase = match filter_first.candidate(left, context.gap) {
                None => Phase::AllColumns,
                Some(candidate) => {
                    // What is counted is fetched for the caller all the same.
                    let progress = Progress::default();
                    match RowGroupOpening::pruned(&filter_first.plan, &candidate.left, &progress) {
                        Ok(opening) => self.opening = opening,
                        Err(e) => {
                            let kept = self.kept;
                            return AfterFilter { context, candidate, kept }.resume(Err(e));
                        }
                    }
                    Phase::FilterColumns(candidate)
                }
            };
        }
        Ok(OpenStep::More(self.settled()))
    }
}

impl FilterTask {
    /// The rows that pass, as far as they were decoded before the read was cancelled.
    ///
    /// # Errors
    /// Whatever is wrong with the pages.
    pub(super) fn run(self, cancelled: &AtomicBool) -> Result<RowSelection> {
        let Self { mut row_group, rows, first_row } = self;
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
        RowSelection::from_rows(rows, passed)
    }
}

impl<'a> AfterFilter<'a> {
    /// Goes on with the rows that pass; with all of them if the filter contradicts the page index,
    /// which is not believed then.
    ///
    /// # Errors
    /// Another error of the filter; or as [`RowGroupOpening::new`].
    pub(super) fn resume(self, passed: Result<RowSelection>) -> Result<OpenStep<'a>> {
        let Self { context, candidate, kept } = self;
        let passed = match passed {
            Err(e) if contradicts(&e) => {
                return FilteredOpening::again(context, &candidate.left).map(OpenStep::More);
            }
            passed => passed?,
        };
        let Some(left) = candidate.left.passed(passed) else {
            context.learn(&candidate, 0);
            return Ok(OpenStep::Done(None));
        };
        let opening = RowGroupOpening::pruned(context.plan, &left, context.progress)?;
        let phase = Phase::Passed(candidate, 0);
        let opening = FilteredOpening { context, opening, phase, kept, missing: Vec::new() };
        Ok(OpenStep::More(opening.settled()))
    }
}

impl OpenContext<'_> {
    fn learn(&self, candidate: &Candidate, fetched: u64) {
        if let Some(filter_first) = self.filter_first {
            filter_first.learn(candidate, fetched);
        }
    }
}
