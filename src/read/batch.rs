//! Builds a [`RecordBatch`] from the leaves of a window: the last stage of a read.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_buffer::BooleanBuffer;

use super::assemble::{Leaves, assemble};
use super::column::{LeafBatch, materialize, materialized_bytes};
use super::filter::Filter;
use super::options::VirtualColumn;
use super::plan::Plan;
use super::variant::Output;
use super::window::{UnselectedRows, Window, max_bytes};
use crate::bytes::saturated;
use crate::error::{Error, Result, Spec};
use crate::limits::{Growth, Reservation};
use crate::memory;
use crate::rows::{RowFilter, copied_bytes};
use crate::schema::{Kind, Shape};

/// Where the rows of a batch come from.
pub(super) struct Origin<'a> {
    pub(super) row_group: usize,
    /// Number of the first row of the row group in the file.
    pub(super) first_row: u64,
    pub(super) file_name: Option<&'a str>,
}

/// Decoded leaves, in the order of the plan, and the rows that they are of.
pub(super) struct DecodedLeaves {
    pub(super) leaves: Vec<LeafBatch>,
    /// How many rows.
    pub(super) rows: usize,
    /// Which of them go into the batch; `None` if all do.
    pub(super) keep: Option<BooleanBuffer>,
}

/// A batch, with its memory until it is returned to the caller.
#[non_exhaustive]
pub struct ReservedBatch {
    /// The rows.
    pub batch: RecordBatch,
    /// The memory of its arrays.
    _memory: BatchMemory,
}

impl fmt::Debug for ReservedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservedBatch").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// The memory that the arrays of a batch have reserved.
struct BatchMemory {
    arrays: Reservation,
    /// Shared with other batches of the same chunk.
    _dictionaries: Vec<Arc<Reservation>>,
}

impl BatchMemory {
    /// Takes over what the leaves have reserved.
    fn take_from<'a>(plan: &Plan, leaves: impl Iterator<Item = &'a mut Leaves>) -> Self {
        let mut arrays = plan.budget().reservation("the arrays of a batch");
        let mut dictionaries = Vec::new();
        for memory in leaves.flat_map(Leaves::take_memory) {
            arrays.absorb(memory.arrays);
            dictionaries.extend(memory.dictionary);
        }
        Self { arrays, _dictionaries: dictionaries }
    }
}

/// Makes the batch of the rows of `window` from leaves that were decoded for each stage of the
/// filter, and leaves decoded after it.
pub(super) fn record_batch(
    plan: &Plan,
    window: &Window,
    early: Vec<DecodedLeaves>,
    late: Vec<LeafBatch>,
    origin: &Origin<'_>,
) -> Result<ReservedBatch> {
    let virtual_columns = &plan.options().virtual_columns;
    let width = plan.shapes().len() + virtual_columns.len();
    let row_spans = window.row_spans(UnselectedRows::Apart);
    let late_keep = KeptRows::new(row_spans.rows, row_spans.keep.clone(), width);
    let all_rows = KeptRows::new(window.rows(), None, width);
    let of_stage = |DecodedLeaves { leaves, rows, keep }| {
        (Leaves::new(leaves, plan.budget()), KeptRows::new(rows, keep, width))
    };
    let mut early: Vec<(Leaves, KeptRows)> = early.into_iter().map(of_stage).collect();
    let mut late = Leaves::new(late, plan.budget());
    let all = early.iter_mut().map(|(leaves, _)| leaves).chain(std::iter::once(&mut late));
    let mut memory = BatchMemory::take_from(plan, all);
    let mut columns = memory::vec_for(width)?;
    let max = max_bytes(plan.batch_bytes(), window.rows());
    // Without a filter no column is early.
    let is_early = plan.filter().map_or(&[][..], Filter::early_columns);
    for (i, shape) in plan.shapes().iter().enumerate() {
        let (leaves, kept) = match is_early.get(i) {
            Some(true) => {
                let stage = early.get_mut(window.stage_of_column(i)).ok_or_else(|| {
                    Error::internal("a column of the filter was not decoded for its stage")
                })?;
                (&mut stage.0, &stage.1)
            }
            _ if plan.column_drops_rows(i) => (&mut late, &all_rows),
            _ => (&mut late, &late_keep),
        };
        let column = assemble_column(shape, leaves, kept, (window, max), &mut memory.arrays);
        let made = column.and_then(|column| match plan.outputs().get(i) {
            None | Some(Output::Stored) => {
                columns.push(column);
                Ok(())
            }
            Some(output) => apply_output(output, column, &mut memory.arrays, &mut columns),
        });
        made.map_err(|e| e.at_column(shape.field.name().as_str()))?;
    }
    for column in virtual_columns {
        let column = virtual_column(column, row_spans.rows, &row_spans.spans, origin)?;
        columns.push(late_keep.apply(column)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(window.rows()));
    let batch = RecordBatch::try_new_with_options(plan.schema().clone(), columns, &options)?;
    if early.iter().any(|(_, kept)| kept.keep.is_some()) || late_keep.keep.is_some() {
        // The batch holds copies, so the originals can go.
        drop((early, late));
        let held = saturated(memory.arrays.bytes());
        memory.arrays.resize(held.min(batch.get_array_memory_size()))?;
    }
    Ok(ReservedBatch { batch, _memory: memory })
}

/// Makes the column of `shape` of the kept rows of `window`. `arrays` counts its array, and the
/// bytes that are copied to make it; the window weighs at most `max` bytes.
fn assemble_column(
    shape: &Shape,
    leaves: &mut Leaves,
    kept: &KeptRows,
    (window, max): (&Window, u64),
    arrays: &mut Reservation,
) -> Result<ArrayRef> {
    let first = leaves.position();
    let column = assemble(shape, leaves, kept.rows)?;
    leaves.release_padding();
    if !matches!(shape.kind, Kind::Leaf { .. }) {
        // Offsets of lists, and validity of groups.
        let own = column.get_buffer_memory_size();
        arrays.grow(own.saturating_sub(leaves.bytes_since(first)))?;
    }
    arrays.grow(kept.copied_bytes(&column))?;
    let column = kept.apply(column)?;
    let to = shape.field.data_type();
    // A few dictionary entries may become many bytes of strings.
    let materialized = materialized_bytes(&column, to);
    window.weight.change(0, materialized, max)?;
    arrays.grow(saturated(materialized))?;
    materialize(column, to)
}

/// Appends the column that a VARIANT output makes, and counts it in `arrays`.
fn apply_output(
    output: &Output,
    column: ArrayRef,
    arrays: &mut Reservation,
    columns: &mut Vec<ArrayRef>,
) -> Result<()> {
    let growth = Growth::counted(arrays.empty());
    let first = columns.len();
    output.apply(column, &growth, columns)?;
    let made = columns[first..].iter().map(|made| made.get_buffer_memory_size());
    if let Growth::Of(grown) = growth {
        let mut grown = grown.into_inner();
        grown.resize(made.sum())?;
        arrays.absorb(grown);
    }
    Ok(())
}

/// Keeps some rows of columns.
struct KeptRows {
    rows: usize,
    keep: Option<RowFilter>,
}

impl KeptRows {
    fn new(rows: usize, keep: Option<BooleanBuffer>, width: usize) -> Self {
        let keep = keep.map(|keep| RowFilter::new(&BooleanArray::new(keep, None), width));
        Self { rows, keep }
    }

    /// About how many bytes [`KeptRows::apply`] copies.
    fn copied_bytes(&self, column: &ArrayRef) -> usize {
        let Some(keep) = &self.keep else { return 0 };
        let bytes = copied_bytes(column);
        let part = bytes as u128 * keep.rows() as u128 / column.len().max(1) as u128;
        usize::try_from(part).expect("no more than the bytes of the column")
    }

    fn apply(&self, column: ArrayRef) -> Result<ArrayRef> {
        match &self.keep {
            Some(keep) => keep.apply(&column),
            None => Ok(column),
        }
    }
}

fn virtual_column(
    column: &VirtualColumn,
    rows: usize,
    spans: &[Range<u64>],
    origin: &Origin<'_>,
) -> Result<ArrayRef> {
    Ok(match column {
        VirtualColumn::RowNumber { .. } => {
            let last = spans.last().map_or(0, |span| span.end);
            let end = origin.first_row.checked_add(last).and_then(|end| i64::try_from(end).ok());
            end.ok_or_else(|| {
                Error::malformed(Spec::Metadata("RowGroup"), "row numbers overflow 64 bits")
            })?;
            // No row is beyond the end.
            let number = |row: u64| (origin.first_row + row).cast_signed();
            let spans = spans.iter().cloned();
            Arc::new(Int64Array::from_iter_values(spans.flatten().map(number)))
        }
        VirtualColumn::RowGroup { .. } => {
            let row_group = i32::try_from(origin.row_group);
            let row_group = row_group.expect("a footer of 2 GiB has no more row groups");
            Arc::new(Int32Array::from_value(row_group, rows))
        }
        VirtualColumn::FileName { .. } => repeated(origin.file_name, rows),
        VirtualColumn::Constant { value, .. } => repeated(value.as_deref(), rows),
    })
}

fn repeated(text: Option<&str>, rows: usize) -> ArrayRef {
    Arc::new(match text {
        Some(text) => StringArray::from_iter_values(std::iter::repeat_n(text, rows)),
        None => StringArray::new_null(rows),
    })
}
