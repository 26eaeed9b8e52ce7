//! The end of the corridor: a [`RecordBatch`] from the leaves of a window.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};

use super::assemble::{Leaves, assemble};
use super::filter::Filter;
use super::leaf::LeafBatch;
use super::options::VirtualColumn;
use super::pick::Keep;
use super::plan::Plan;
use crate::error::Result;
use crate::schema::Shape;

/// Where the rows of a batch come from.
pub(super) struct Origin<'a> {
    pub(super) row_group: usize,
    /// Number of the first row of the row group in the file.
    pub(super) first_row: u64,
    pub(super) file_name: Option<&'a str>,
}

/// Decoded leaves, in the order of the plan, and the rows that they are of.
pub(super) struct Decoded<'a> {
    pub(super) leaves: Vec<LeafBatch>,
    /// How many rows.
    pub(super) rows: usize,
    /// Which of them go into the batch; `None` if all do.
    pub(super) keep: Option<&'a BooleanArray>,
}

/// Makes the batch of `rows` rows from leaves that were decoded before the filter was evaluated, and leaves decoded after it, for the rows of
/// `spans`.
pub(super) fn record_batch(
    plan: &Plan,
    rows: usize,
    early: Decoded<'_>,
    late: Decoded<'_>,
    spans: &[Range<u64>],
    origin: &Origin<'_>,
) -> Result<RecordBatch> {
    let virtual_columns = &plan.options().virtual_columns;
    let width = plan.shapes().len() + virtual_columns.len();
    let mut early = Columns::new(early, width);
    let mut late = Columns::new(late, width);
    let mut columns = Vec::with_capacity(width);
    let is_early = plan.filter().map(Filter::early_columns).unwrap_or_default();
    for (i, shape) in plan.shapes().iter().enumerate() {
        let side = if is_early.get(i) == Some(&true) { &mut early } else { &mut late };
        let column = side.next(shape).map_err(|e| e.at_column(shape.field.name().as_str()))?;
        columns.push(column);
    }
    for column in virtual_columns {
        columns.push(late.kept(virtual_column(column, late.rows, spans, origin))?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(plan.schema().clone(), columns, &options)?)
}

/// Assembles columns, and keeps some rows of them.
struct Columns<'a> {
    leaves: Leaves,
    rows: usize,
    keep: Option<Keep<'a>>,
}

impl<'a> Columns<'a> {
    fn new(decoded: Decoded<'a>, width: usize) -> Self {
        let Decoded { leaves, rows, keep } = decoded;
        Self { leaves: Leaves::new(leaves), rows, keep: keep.map(|keep| Keep::new(keep, width)) }
    }

    fn next(&mut self, shape: &Shape) -> Result<ArrayRef> {
        let column = assemble(shape, &mut self.leaves, self.rows)?;
        self.kept(column)
    }

    fn kept(&self, column: ArrayRef) -> Result<ArrayRef> {
        match &self.keep {
            Some(keep) => keep.of(&column),
            None => Ok(column),
        }
    }
}

fn virtual_column(
    column: &VirtualColumn,
    rows: usize,
    spans: &[Range<u64>],
    origin: &Origin<'_>,
) -> ArrayRef {
    match column {
        VirtualColumn::RowNumber { .. } => {
            let number = |row: u64| i64::try_from(origin.first_row + row).unwrap_or(i64::MAX);
            let spans = spans.iter().cloned();
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
