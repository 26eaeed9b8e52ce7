//! [`RowRange`]: the rows of a row group that are read, before any page index is consulted.

use std::ops::Range;

use crate::error::{Error, Result, Spec};
use crate::predicate::PruneResult;
use crate::read::filter::Filter;
use crate::read::footer::Footer;
use crate::read::options::ReadOptions;
use crate::read::wiring::ReadWiring;
use crate::selection::RowSelection;

/// The wanted rows of one row group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowRange {
    /// Index of the row group.
    pub row_group: usize,
    /// From the first wanted row to the one after the last, counted from the first row of the row
    /// group.
    pub rows: Range<u64>,
    /// Which of its rows, all counted; `None` if they are all of `rows`.
    pub(crate) selection: Option<RowSelection>,
    /// Rows, counted the same way, for which the filter is known to be true: it is not evaluated
    /// for them. `None` if that is known of none.
    pub(crate) proven: Option<RowSelection>,
    /// Whether the metadata claim that the filter is true of all its rows, and it is evaluated all
    /// the same.
    pub(crate) is_claimed: bool,
    /// Number of its first row in the file.
    pub(crate) first_row: u64,
    /// The rows of the row group that it was chosen from: all, unless it is read in parts.
    pub(crate) part: Range<u64>,
}

impl RowRange {
    /// Rows that are wanted.
    pub(crate) fn count(&self) -> u64 {
        match &self.selection {
            Some(selection) => selection.count(),
            None => self.rows.end - self.rows.start,
        }
    }

    /// The rows that are wanted, as ranges.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        match &self.selection {
            Some(selection) => selection.runs().collect(),
            None => vec![self.rows.clone()],
        }
    }

    /// Selects the rows of `selection` among all rows of the row group; `None` if that leaves none.
    pub(crate) fn with_selection(&self, selection: RowSelection) -> Option<Self> {
        let rows = selection.hull();
        let is_run = selection.count() == rows.end - rows.start;
        let selection = if is_run { None } else { Some(selection) };
        (!rows.is_empty()).then(|| Self { rows, selection, ..self.clone() })
    }

    /// Those that are wanted from a row on, counted from the first of the row group.
    pub(in crate::read) fn rest_from(&self, row: u64) -> Self {
        let rows = row.clamp(self.rows.start, self.rows.end)..self.rows.end;
        let rest =
            |all: &RowSelection| all.and(&RowSelection::from_ranges(all.len(), [rows.clone()])?);
        match self.selection.as_ref().map(rest).transpose() {
            Ok(selection) => Self { rows, selection, ..self.clone() },
            Err(_) => self.clone(),
        }
    }

    /// Whether the filter is known to be true of all rows that are wanted.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven.as_ref().is_some_and(RowSelection::is_all)
    }

    /// Whether the metadata claim that the filter is true of all rows that are wanted.
    pub(crate) fn is_claimed_or_proven(&self) -> bool {
        self.is_claimed || self.is_proven()
    }

    /// The metadata claim that the filter is true of all of its `rows`.
    #[must_use]
    pub(in crate::read) fn with_claim(self, filter: &Filter, rows: u64) -> Self {
        match filter.trusts_claims() {
            true => self.with_proven(RowSelection::all(rows)),
            false => Self { is_claimed: true, ..self },
        }
    }

    /// Selects the rows of `passed`, which are known to pass the filter, among all rows of the row
    /// group; `None` if that leaves none.
    pub(crate) fn passed(&self, passed: RowSelection) -> Option<Self> {
        let proven = Some(RowSelection::all(passed.len()));
        self.with_selection(passed).map(|range| Self { proven, ..range })
    }

    /// The filter is known to be true of the rows of `proven`.
    #[must_use]
    pub(in crate::read) fn with_proven(self, proven: RowSelection) -> Self {
        let wanted = match &self.selection {
            Some(wanted) => wanted.and(&proven).map(|both| both.count()),
            None => Ok(proven.slice(self.rows.clone()).count()),
        };
        let proven = if wanted.is_ok_and(|of| of == self.count()) {
            RowSelection::all(proven.len())
        } else {
            proven
        };
        Self { proven: Some(proven).filter(|proven| !proven.is_none()), ..self }
    }

    /// The rows whose pages are wanted: short gaps are decoded too.
    pub(super) fn wanted(&self, rows_in_group: u64, wiring: &ReadWiring) -> Result<RowSelection> {
        Ok(self.to_selection(rows_in_group)?.without_gaps(wiring.max_gap()))
    }

    /// The rows that are wanted, of all `rows_in_group`.
    pub(in crate::read) fn to_selection(&self, rows_in_group: u64) -> Result<RowSelection> {
        match &self.selection {
            Some(selection) => Ok(selection.clone()),
            None => RowSelection::from_ranges(rows_in_group, [self.rows.clone()]),
        }
    }
}

/// The conclusions from the statistics of row groups about a filter.
pub(super) struct Pruned {
    /// The row groups that may hold a match.
    pub(super) kept: Vec<RowRange>,
    /// The indexes of those that cannot.
    pub(super) pruned: Vec<usize>,
}

/// Finds the row groups that cannot hold a match.
pub(super) fn prune(footer: &Footer, filter: &Filter, ranges: Vec<RowRange>) -> Result<Pruned> {
    let mut kept = Vec::with_capacity(ranges.len());
    let mut pruned = Vec::new();
    for range in ranges {
        let rows = footer.row_group_rows(range.row_group)?;
        let facts = filter.facts(footer, range.row_group, rows);
        match filter.prune_result(rows, &facts) {
            PruneResult::Cannot => pruned.push(range.row_group),
            PruneResult::Might => kept.push(range),
            PruneResult::Always => kept.push(range.with_claim(filter, rows)),
        }
    }
    Ok(Pruned { kept, pruned })
}

/// Bytes of the shortest page with values, its header included.
const SHORTEST_PAGE: u64 = 16;

/// Checks that a file of `file_len` bytes can hold `rows` rows: each takes a slot of every leaf,
/// and a page has fewer than 2^31 slots.
///
/// One page may well be a run of that many nulls; but 2^63 rows, say, could never be read.
fn check_rows(footer: &Footer, row_group: usize, rows: u64, file_len: u64) -> Result<()> {
    let max = (file_len / SHORTEST_PAGE).saturating_add(1).saturating_mul(i32::MAX as u64);
    if rows <= max || footer.schema().leaves_len() == 0 {
        return Ok(());
    }
    Err(Error::mismatch(
        Spec::Metadata("RowGroup"),
        "num_rows",
        format_args!(
            "at most {max}, the slots that the pages of a file of {file_len} bytes can have"
        ),
        rows,
    )
    .at_row_group(row_group))
}

/// Chooses the rows of the row groups: offset and limit count over the chosen row groups, unless a
/// filter must choose first.
pub(super) fn row_ranges(
    footer: &Footer,
    options: &ReadOptions,
    wiring: &ReadWiring,
    file_len: u64,
) -> Result<Vec<RowRange>> {
    let mut first_rows = Vec::with_capacity(footer.row_groups());
    let mut first = 0u64;
    for i in 0..footer.row_groups() {
        first_rows.push(first);
        first = first.saturating_add(footer.row_group_rows(i)?);
    }
    let chosen = wiring.chosen_row_groups(options, footer.row_groups());
    let selections = [&options.selection, &options.not_deleted];
    if let Some(selection) = selections.into_iter().flatten().find(|of| of.len() != first) {
        return Err(Error::usage(format_args!(
            "a selection of {} rows, and the file has {first}",
            selection.len()
        )));
    }
    let (mut skip, mut left) = match options.filter {
        Some(_) => (0, u64::MAX),
        None => (options.offset, options.limit.unwrap_or(u64::MAX)),
    };
    let mut ranges = Vec::new();
    for (row_group, part) in chosen {
        let rows = footer.row_group_rows(row_group)?;
        check_rows(footer, row_group, rows, file_len)?;
        let first_row = first_rows.get(row_group).copied().unwrap_or_default();
        let whole = RowRange {
            row_group,
            rows: 0..rows,
            selection: None,
            proven: None,
            is_claimed: false,
            first_row,
            part: 0..rows,
        };
        let wanted = match &options.selection {
            Some(wanted) => wanted.slice(first_row..first_row.saturating_add(rows)),
            None => RowSelection::all(rows),
        };
        let wanted = match &options.not_deleted {
            Some(kept) => wanted.and(&kept.slice(first_row..first_row.saturating_add(rows)))?,
            None => wanted,
        };
        let wanted = match part {
            Some(part) => wanted.and(part)?,
            None => wanted,
        };
        let skipped = skip.min(wanted.count());
        skip -= skipped;
        let wanted = wanted.offset(skipped).limit(left);
        left -= wanted.count();
        ranges.extend(whole.with_selection(wanted));
    }
    Ok(ranges)
}
