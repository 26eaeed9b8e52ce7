//! [`Overlay`]: the rows that a filter leaves, by what `explain` finds out.

use std::ops::Range;

use marquetry::read::PageIndexUse;
use marquetry::{Predicate, Reader};

use super::file::FileLayout;
use crate::args::Global;
use crate::failure::Result;
use crate::input;

/// The rows that statistics, bloom filters, dictionaries and page indexes leave.
pub(crate) struct Overlay {
    /// The condition, as it was given.
    pub(crate) condition: String,
    /// Of each row group: ranges of rows, counted in it, in their order.
    left: Vec<Vec<Range<u64>>>,
    pub(crate) rows_left: u64,
    pub(crate) row_groups_pruned: usize,
}

impl Overlay {
    /// # Errors
    /// Of the condition, and of the file.
    pub(crate) fn new(layout: &FileLayout, condition: &str, global: &Global) -> Result<Self> {
        let reader: Reader = input::open(&layout.path, global)?;
        let reader = reader.filter(Predicate::parse(condition)?);
        // Also the page indexes of small row groups, which cost a read more than they save.
        let mut options = reader.read_options().clone();
        options.page_index = PageIndexUse::Always;
        let plan = reader.options(options).explain()?;
        let mut left = vec![Vec::new(); layout.rows().len()];
        let rows_left = plan.rows_left();
        let mut row_groups_pruned = 0;
        for group in plan.row_groups {
            row_groups_pruned += usize::from(group.rows_left == 0 && group.rows > 0);
            if let Some(ranges) = left.get_mut(group.row_group) {
                *ranges = group.ranges_left;
            }
        }
        Ok(Self { condition: condition.to_owned(), left, rows_left, row_groups_pruned })
    }

    /// Whether no row of a range of a row group is left.
    pub(crate) fn prunes(&self, row_group: usize, rows: &Range<u64>) -> bool {
        let left = self.left.get(row_group).map(Vec::as_slice).unwrap_or_default();
        let after = left.partition_point(|range| range.end <= rows.start);
        left.get(after).is_none_or(|range| range.start >= rows.end)
    }

    /// The ranges of a row group of `rows` rows that are pruned.
    pub(crate) fn pruned(&self, row_group: usize, rows: u64) -> Vec<Range<u64>> {
        let left = self.left.get(row_group).map(Vec::as_slice).unwrap_or_default();
        let (mut out, mut at) = (Vec::new(), 0);
        for range in left {
            if range.start > at {
                out.push(at..range.start.min(rows));
            }
            at = at.max(range.end);
        }
        if at < rows {
            out.push(at..rows);
        }
        out
    }
}
