//! [`RowGroupOpening`] leads from the rows of a plan to a row group whose bytes are in memory. A
//! driver fetches the bytes.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::error::Result;
use crate::read::plan::{PageIndexPlan, Plan, RowGroupPlan, RowRange};
use crate::read::progress::Progress;
use crate::read::prune::RowGroupPruner;
use crate::read::row_group::RowGroupDecoder;
use crate::read::supplied::Step;

/// A row group that is being opened.
///
/// A driver makes one for each of [`Plan::ranges`]. It fetches the bytes of [`needs`](Self::needs)
/// and passes them to [`supply`](Self::supply), often several times. Bloom filters and indexes come
/// first, if they may decide the filter; then the pages.
pub struct RowGroupOpening {
    plan: Plan,
    progress: Progress,
    /// Whether large chunks are given while they are decoded.
    in_pieces: bool,
    /// Its rows before an index left some out.
    all: RowRange,
    rows: u64,
    stage: Stage,
}

impl fmt::Debug for RowGroupOpening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroupOpening")
            .field("row_group", &self.row_group())
            .field("needs", &self.needs())
            .finish_non_exhaustive()
    }
}

/// The purpose of the wanted bytes.
enum Stage {
    /// Which rows are left.
    Prune(Box<RowGroupPruner>),
    /// Where their pages are.
    Indexes(Box<PageIndexPlan>),
    /// The pages.
    Pages(Box<RowGroupPlan>),
}

impl RowGroupOpening {
    /// Opens a row group of a plan.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub fn new(plan: &Plan, range: &RowRange, progress: &Progress) -> Result<Self> {
        Ok(Self::at(plan, range, range, progress, Stage::Prune(plan.pruner(range)?.into())))
    }

    /// Opens a row group again whose index was found to be wrong while it was decoded. All of its
    /// column chunks are fetched.
    ///
    /// # Errors
    /// As [`RowGroupOpening::new`].
    pub(super) fn without_index(plan: &Plan, all: &RowRange, progress: &Progress) -> Result<Self> {
        plan.page_cache().forget(all.row_group);
        let pages = plan.row_group(all)?.without_index()?;
        Ok(Self::at(plan, all, all, progress, Stage::Pages(pages.into())))
    }

    /// Opens a row group whose rows that are left of `all` are known.
    ///
    /// # Errors
    /// As [`RowGroupOpening::new`].
    pub(super) fn pruned(
        plan: &Plan,
        left: &RowRange,
        all: &RowRange,
        progress: &Progress,
    ) -> Result<Self> {
        let stage = Stage::Indexes(plan.row_group(left)?.into());
        Ok(Self::at(plan, left, all, progress, stage))
    }

    fn at(plan: &Plan, left: &RowRange, all: &RowRange, progress: &Progress, stage: Stage) -> Self {
        let (plan, progress, rows) = (plan.clone(), progress.clone(), left.count());
        Self { plan, progress, in_pieces: false, all: all.clone(), rows, stage }
    }

    /// The rows that are left, once they are known and before their pages are asked for.
    pub(super) fn left(&self) -> Option<&PageIndexPlan> {
        match &self.stage {
            Stage::Indexes(indexes) => Some(indexes),
            _ => None,
        }
    }

    /// Lets large chunks be given while they are decoded, by [`RowGroupDecoder::next_step`].
    pub(super) fn in_pieces(mut self) -> Result<Self> {
        self.in_pieces = true;
        if let Stage::Pages(pages) = self.stage {
            self.stage = Stage::Pages(pages.in_pieces()?.into());
        }
        Ok(self)
    }

    /// Checks that there is memory for the bytes wanted, before they are fetched.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget does not suffice for them.
    pub(super) fn check_memory(&self) -> Result<()> {
        match &self.stage {
            Stage::Pages(pages) => pages.check_memory(),
            Stage::Prune(_) | Stage::Indexes(_) => Ok(()),
        }
    }

    /// The wanted bytes; none if this stage needs none.
    pub fn needs(&self) -> &[Range<u64>] {
        match &self.stage {
            Stage::Prune(pruner) => pruner.needs(),
            Stage::Indexes(indexes) => indexes.needs(),
            Stage::Pages(pages) => pages.needs(),
        }
    }

    /// Index of the row group.
    pub(super) fn row_group(&self) -> usize {
        self.all.row_group
    }

    /// Rows that were wanted of it when this began.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the wanted bytes, in the same order. When it is done, the step has the row group, or
    /// `None` if indexes prove that the filter is true for none of its rows.
    ///
    /// # Errors
    /// Any fault of the metadata and indexes; `Limit(Memory)` if the budget does not suffice for
    /// the bytes.
    pub fn supply(mut self, bytes: Vec<Bytes>) -> Result<Step<Option<Box<RowGroupDecoder>>, Self>> {
        self.stage = match self.stage {
            Stage::Prune(pruner) => match pruner.supply(&bytes)? {
                Step::NeedsMore(pruner) => Stage::Prune(pruner),
                Step::Done((range, found)) => {
                    self.progress.ignored_indexes(found.ignored.len());
                    let Some(range) = range else { return Ok(Step::Done(None)) };
                    Stage::Indexes(self.plan.row_group(&range)?.into())
                }
            },
            Stage::Indexes(indexes) => {
                let pages = indexes.supply(&bytes)?;
                Stage::Pages(if self.in_pieces { pages.in_pieces()? } else { pages }.into())
            }
            Stage::Pages(pages) => {
                let ignored = pages.ignored_indexes().len();
                let is_pruned = *pages.range() != self.all;
                match RowGroupDecoder::open(*pages, &bytes)? {
                    // The index that is wrong may be why rows were left out.
                    Step::NeedsMore(pages)
                        if is_pruned && pages.ignored_indexes().len() > ignored =>
                    {
                        self.progress.ignored_indexes(pages.ignored_indexes().len());
                        let Self { plan, progress, in_pieces, all, rows, .. } = self;
                        let again = Self::without_index(&plan, &all, &progress)?;
                        let again = if in_pieces { again.in_pieces()? } else { again };
                        return Ok(Step::NeedsMore(Self { rows, ..again }));
                    }
                    // Each time one index fewer, or once for dictionaries: at most twice as often
                    // as there are leaves.
                    Step::NeedsMore(pages) => Stage::Pages(pages),
                    Step::Done(row_group) => {
                        self.progress.opened(ignored);
                        return Ok(Step::Done(Some(row_group)));
                    }
                }
            }
        };
        Ok(Step::NeedsMore(self))
    }
}
