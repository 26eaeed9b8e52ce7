//! State that the threads share while they decode a row group together: the tasks, one for each
//! leaf, and the shares that a task is split into.

use bytes::Bytes;

use super::column_task::{ChunkSource, ColumnTask};
use super::page_search::PageSearch;
use super::plan::ChunkWork;
use super::row_group::RowGroupDecoder;
use super::supplied::Step;
use crate::error::{Error, Result};

impl RowGroupDecoder {
    /// The leaves, in the order of [`Plan::leaves`]; without those that only the filter needs if it
    /// need not be evaluated.
    pub(super) fn tasks(&mut self) -> &mut [ColumnTask] {
        &mut self.tasks
    }

    /// Whether its tasks may be split: not if pages are read as they come, or if memory ran out.
    pub(super) fn may_split(&self) -> bool {
        self.may_split
    }

    /// Rows that are wanted of it.
    pub(super) fn rows(&self) -> u64 {
        self.range.count()
    }
}

impl ColumnTask {
    /// About how much work it is.
    pub(crate) fn work(&self) -> ChunkWork {
        self.work
    }

    /// Number of shares of the leaf, each decoded on a thread of its own.
    pub(crate) fn shares(&self) -> usize {
        self.decoders.len().max(1)
    }

    /// Whether it may be split: not if it was before, or if the rows of its pages cannot be known.
    pub(crate) fn may_split(&self) -> bool {
        self.may_split
    }

    /// Lets `shares` threads decode the leaf, each its own pages, if the rows of its pages can be
    /// known and there is memory for it. Decoders so far are dropped: the next window may lie
    /// anywhere. `given` is what the step before asked for.
    ///
    /// # Errors
    /// As [`ColumnTask::decoders`].
    pub(crate) fn split(&mut self, shares: usize, given: Option<Bytes>) -> Result<Step<()>> {
        let ChunkSource { plan, list, context, .. } = &mut self.chunk;
        self.may_split = false;
        // Pages of these writers depend on the page before.
        if plan.footer().quirks().carries_prefix {
            return Ok(Step::Done(()));
        }
        let search = self.search.get_or_insert_with(|| PageSearch::new(list, self.rows_in_group));
        let found = match search.step(context, plan.budget(), given) {
            Step::Done(found) => found,
            Step::NeedsMore(range) => return Ok(Step::NeedsMore(range)),
        };
        self.search = None;
        let Some(found) = found else { return Ok(Step::Done(())) };
        let max = found.pages().map_or(1, <[_]>::len);
        if shares < 2 || max < 2 {
            return Ok(Step::Done(()));
        }
        *list = found;
        self.decoders.clear();
        for _ in 0..shares.min(max) {
            self.decoders.push(self.chunk.decoder()?);
        }
        Ok(Step::Done(()))
    }

    /// Adds to an error the column that it concerns.
    pub(crate) fn place(&self, error: Error) -> Error {
        let ChunkSource { plan, column_index, row_group, .. } = &self.chunk;
        let error = match plan.leaves().get(*column_index) {
            Some(spec) => error.at_column(spec.leaf.path.dotted()),
            None => error,
        };
        error.at_row_group(*row_group)
    }
}
