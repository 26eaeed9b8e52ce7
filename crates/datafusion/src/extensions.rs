//! Reads the row selection that a table provider attached to a file: the extensions of a
//! [`PartitionedFile`].
//!
//! Our own is a [`RowSelection`] of all rows of the file. With the feature `replace`, those of
//! DataFusion's own source are understood too, and extensions that select no rows are left alone,
//! as that source does; without it, they cannot be told apart, and are refused.

use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::PartitionedFile;

use marquetry::{Metadata, RowSelection};

/// The rows that are chosen of a file; `None` for all.
///
/// # Errors
/// `Plan` if there are several choices, one that is not understood, or one of another file.
pub(crate) fn selection(
    file: &PartitionedFile,
    metadata: &Metadata,
) -> Result<Option<RowSelection>> {
    let ours = file.extension::<RowSelection>().cloned();
    let others = stock::selections(file, metadata)?;
    let mut found: Vec<RowSelection> = ours.into_iter().chain(others).collect();
    if found.len() > 1 {
        return refused(file, "the rows are chosen twice: attach one extension that chooses them");
    }
    Ok(found.pop())
}

#[cfg(feature = "replace")]
pub(crate) use stock::are_known;

#[cold]
fn refused<T>(file: &PartitionedFile, why: &str) -> Result<T> {
    let path = &file.object_meta.location;
    Err(DataFusionError::Plan(format!("marquetry: the extensions of the file {path}: {why}")))
}

#[cfg(feature = "replace")]
mod stock {
    use datafusion_datasource_parquet::{ParquetAccessPlan, ParquetRowSelection, RowGroupAccess};

    use super::*;
    use crate::error::to_datafusion;

    /// The rows that the extensions of DataFusion's own source select.
    pub(crate) fn selections(
        file: &PartitionedFile,
        metadata: &Metadata,
    ) -> Result<Vec<RowSelection>> {
        let mut out = Vec::new();
        if let Some(plan) = file.extension::<ParquetAccessPlan>() {
            let groups = metadata.row_groups();
            if plan.len() != groups {
                let why = format!(
                    "an access plan of {} row groups, and the file has {groups} row groups",
                    plan.len()
                );
                return refused(file, &why);
            }
            let mut parts = Vec::with_capacity(groups);
            for (i, access) in plan.inner().iter().enumerate() {
                let rows = metadata.row_group_rows(i).map_err(to_datafusion)?;
                parts.push(match access {
                    RowGroupAccess::Skip => RowSelection::none(rows),
                    RowGroupAccess::Scan => RowSelection::all(rows),
                    RowGroupAccess::Selection(chosen) => {
                        let runs = chosen.iter().map(|run| (run.row_count, run.skip));
                        of_runs(file, rows, runs)?
                    }
                });
            }
            out.push(RowSelection::concat(parts).map_err(to_datafusion)?);
        }
        if let Some(chosen) = file.extension::<ParquetRowSelection>() {
            let runs = chosen.selection().iter().map(|run| (run.row_count, run.skip));
            out.push(of_runs(file, metadata.rows().map_err(to_datafusion)?, runs)?);
        }
        Ok(out)
    }

    /// Whether all extensions of a file are known here.
    pub(crate) fn are_known(file: &PartitionedFile) -> bool {
        let extensions = &file.extensions;
        let known = [
            extensions.contains::<RowSelection>(),
            extensions.contains::<ParquetAccessPlan>(),
            extensions.contains::<ParquetRowSelection>(),
        ];
        extensions.len() == known.iter().filter(|known| **known).count()
    }

    /// The rows of runs, each with a length and skipped or not; together they must cover `rows`.
    fn of_runs(
        file: &PartitionedFile,
        rows: u64,
        runs: impl Iterator<Item = (usize, bool)>,
    ) -> Result<RowSelection> {
        let (mut ranges, mut at) = (Vec::new(), 0u64);
        for (count, skip) in runs {
            let end = at.saturating_add(count as u64);
            if !skip && end > at {
                ranges.push(at..end);
            }
            at = end;
        }
        if at != rows {
            return refused(file, &format!("a selection of {at} rows, of {rows}"));
        }
        RowSelection::from_ranges(rows, ranges).map_err(to_datafusion)
    }
}

#[cfg(not(feature = "replace"))]
mod stock {
    use super::*;

    /// Nothing can be known of extensions that are not ours.
    pub(crate) fn selections(
        file: &PartitionedFile,
        _metadata: &Metadata,
    ) -> Result<Vec<RowSelection>> {
        let ours = usize::from(file.extensions.contains::<RowSelection>());
        if file.extensions.len() > ours {
            return refused(
                file,
                "one of a type that is not known here: choose rows with a \
                 marquetry::RowSelection, or build with the feature datafusion-replace, which \
                 understands those of DataFusion's own source",
            );
        }
        Ok(Vec::new())
    }
}
