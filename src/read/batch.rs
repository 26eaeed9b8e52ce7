//! The end of the corridor: a [`RecordBatch`] from the leaves of a window.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray};

use super::assemble::{Leaves, assemble};
use super::leaf::LeafBatch;
use super::options::VirtualColumn;
use super::plan::Plan;
use crate::error::Result;

/// Where the rows of a batch come from.
pub(super) struct Origin<'a> {
    pub(super) row_group: usize,
    /// Number of the first row of the row group in the file.
    pub(super) first_row: u64,
    /// Which rows of the row group.
    pub(super) spans: &'a [Range<u64>],
    pub(super) file_name: Option<&'a str>,
}

/// Makes the batch of `rows` rows from the decoded leaves, given in the order of [`Plan::leaves`].
pub(super) fn record_batch(
    plan: &Plan,
    rows: usize,
    leaves: Vec<LeafBatch>,
    origin: &Origin<'_>,
) -> Result<RecordBatch> {
    let mut leaves = Leaves::new(leaves);
    let virtual_columns = &plan.options().virtual_columns;
    let mut columns = Vec::with_capacity(plan.shapes().len() + virtual_columns.len());
    for shape in plan.shapes() {
        let column = assemble(shape, &mut leaves, rows)
            .map_err(|e| e.at_column(shape.field.name().as_str()))?;
        columns.push(column);
    }
    for column in virtual_columns {
        columns.push(virtual_column(column, rows, origin));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(plan.schema().clone(), columns, &options)?)
}

fn virtual_column(column: &VirtualColumn, rows: usize, origin: &Origin<'_>) -> ArrayRef {
    match column {
        VirtualColumn::RowNumber { .. } => {
            let number = |row: u64| i64::try_from(origin.first_row + row).unwrap_or(i64::MAX);
            let spans = origin.spans.iter().cloned();
            Arc::new(Int64Array::from_iter_values(spans.flatten().map(number)))
        }
        VirtualColumn::RowGroup { .. } => {
            let row_group = i32::try_from(origin.row_group).unwrap_or(i32::MAX);
            Arc::new(Int32Array::from_value(row_group, rows))
        }
        VirtualColumn::FileName { .. } => match origin.file_name {
            Some(name) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows))),
            None => Arc::new(StringArray::new_null(rows)),
        },
    }
}
