//! [`RowGroupPlanner`] plans reads of row groups of one file.

use std::sync::Arc;

use datafusion_common::Result;

use crate::error::to_datafusion;
use crate::file_filter::{Evaluation, FileFilter};
use marquetry::engine::{FilterCounters, ReadWiring};
use marquetry::read::{PageIndexUse, Plan};
use marquetry::{AsyncReader, ErrorKind};

/// Plans reads of row groups of one file, by what is known of its filters at the time.
pub(crate) struct RowGroupPlanner {
    pub(crate) reader: AsyncReader,
    pub(crate) wiring: ReadWiring,
    pub(crate) filter: FileFilter,
    /// Whether the query depends on the order of the rows.
    pub(crate) is_ordered: bool,
}

/// A read that was planned, and what it is to count.
pub(crate) struct Planned {
    pub(crate) reader: AsyncReader,
    pub(crate) plan: Plan,
    pub(crate) counts: PlanCounts,
}

/// The counts that a plan adds to the metrics when it is read. A row group may be planned more than
/// once; it counts once, by the plan by which it is read.
#[derive(Default)]
pub(crate) struct PlanCounts {
    /// `None` if the filter could not be looked at.
    pub(crate) row_groups: Option<RowGroupCounts>,
    /// Row groups that a limit needs, and those that it does not.
    pub(crate) limit: Option<(usize, usize)>,
    /// The counters of what the read does for its filter.
    pub(crate) counters: Arc<FilterCounters>,
}

/// The row groups that statistics have left.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowGroupCounts {
    pub(crate) left: usize,
    pub(crate) pruned: usize,
    /// Number of row groups in which all rows pass.
    pub(crate) fully_matched: usize,
    /// Whether page indexes could exclude nothing more.
    pub(crate) skips_page_indexes: bool,
}

impl RowGroupCounts {
    fn new(plan: &Plan, page_index: PageIndexUse, groups: usize) -> Result<Self> {
        let left = row_groups_of(plan).len();
        let fully_matched = plan.claimed_rows().count();
        let skips_page_indexes = page_index != PageIndexUse::Never
            && plan.skips_page_indexes().map_err(to_datafusion)?;
        let pruned = groups.saturating_sub(left);
        Ok(Self { left, pruned, fully_matched: fully_matched.min(left), skips_page_indexes })
    }
}

impl RowGroupPlanner {
    /// The read of row groups, with what their statistics leave of them, for a query that wants
    /// `left` more rows.
    ///
    /// # Errors
    /// Whatever is wrong with the metadata or the filter.
    pub(crate) fn planned(&self, groups: &[usize], left: Option<u64>) -> Result<Planned> {
        let mut counts = PlanCounts::default();
        let mut wiring = self.wiring.clone();
        wiring.counters = Some(Arc::clone(&counts.counters));
        let mut reader = self.reader.clone().wired(wiring);
        reader = reader.row_groups(groups.iter().copied()).map_err(to_datafusion)?;
        if let Some(left) = left
            && !matches!(self.filter.evaluation, Evaluation::Batches(_))
        {
            reader = reader.limit(left);
        }
        let Some(filter) = self.filter.now()? else {
            let plan = reader.plan().map_err(to_datafusion)?;
            // Row groups beyond a limit do not count as pruned.
            let all = RowGroupCounts { left: groups.len(), ..RowGroupCounts::default() };
            counts.row_groups = Some(all);
            return Ok(Planned { reader, plan, counts });
        };
        let page_index = reader.read_options().page_index;
        let filtered = reader.clone().filter(filter);
        match filtered.plan() {
            Ok(plan) => {
                counts.row_groups = Some(RowGroupCounts::new(&plan, page_index, groups.len())?);
                let (reader, plan) = self.within_limit(filtered, plan, left, &mut counts)?;
                Ok(Planned { reader, plan, counts })
            }
            // A literal that the type of the column does not hold, perhaps.
            Err(e) if e.kind() == ErrorKind::Usage => {
                let reader = match self.filter.untyped()? {
                    Some(filter) => reader.filter(filter),
                    None => reader,
                };
                let plan = reader.plan().map_err(to_datafusion)?;
                Ok(Planned { reader, plan, counts })
            }
            Err(e) => Err(to_datafusion(e)),
        }
    }

    /// The read; if the row groups in which all rows pass suffice for the limit, a read of only
    /// those.
    fn within_limit(
        &self,
        reader: AsyncReader,
        plan: Plan,
        left: Option<u64>,
        counts: &mut PlanCounts,
    ) -> Result<(AsyncReader, Plan)> {
        let Some(left) = left.filter(|_| !self.is_ordered) else { return Ok((reader, plan)) };
        let (mut enough, mut rows) = (Vec::new(), 0u64);
        for (row_group, claimed) in plan.claimed_rows() {
            if rows >= left {
                break;
            }
            rows = rows.saturating_add(claimed);
            enough.push(row_group);
        }
        enough.dedup();
        let all = row_groups_of(&plan).len();
        if rows < left || enough.len() == all {
            counts.limit = Some((all, 0));
            return Ok((reader, plan));
        }
        counts.limit = Some((enough.len(), all - enough.len()));
        let reader = reader.row_groups(enough).map_err(to_datafusion)?;
        let plan = reader.plan().map_err(to_datafusion)?;
        Ok((reader, plan))
    }
}

/// The row groups that a plan reads.
fn row_groups_of(plan: &Plan) -> Vec<usize> {
    let mut out: Vec<usize> = plan.ranges().iter().map(|range| range.row_group).collect();
    out.dedup();
    out
}
