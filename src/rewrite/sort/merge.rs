//! [`MergedRows`]: the rows of several sorted inputs, in one order.

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use crate::error::Result;
use crate::rows::interleave;
use crate::write::CheckedSortOrder;

/// Batches of an input, whose rows are sorted.
pub(in crate::rewrite) type RowInput = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Rows of some batches, in another order.
pub(in crate::rewrite) struct Interleaved {
    batches: Vec<RecordBatch>,
    /// Of each row its batch, and its place in it.
    places: Vec<(usize, usize)>,
    at: usize,
    /// Rows of a batch that is made.
    batch_rows: usize,
}

impl Interleaved {
    pub(super) fn new(
        batches: Vec<RecordBatch>,
        places: Vec<(usize, usize)>,
        batch_rows: usize,
    ) -> Self {
        Self { batches, places, at: 0, batch_rows: batch_rows.max(1) }
    }
}

impl Iterator for Interleaved {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.places.len().min(self.at.saturating_add(self.batch_rows));
        let places = self.places.get(self.at..end).filter(|places| !places.is_empty())?;
        self.at = end;
        let schema = self.batches.first()?.schema();
        Some(interleave(&schema, &self.batches, places))
    }
}

/// The rows of inputs that are sorted.
///
/// Of each input a batch is held. The one whose last row comes first is given whole, with the rows
/// of the others that come before its last one. Trap: equal rows keep the order of the inputs, and
/// an input may have more rows that are equal to its last one in its next batch.
pub(in crate::rewrite) struct MergedRows {
    order: Arc<CheckedSortOrder>,
    schema: SchemaRef,
    inputs: Vec<HeldInput>,
    ready: Option<Interleaved>,
    batch_rows: usize,
    is_done: bool,
}

struct HeldInput {
    rest: RowInput,
    held: Option<RecordBatch>,
}

impl HeldInput {
    /// Holds a batch with rows, if there is one.
    fn fill(&mut self, schema: &SchemaRef) -> Result<()> {
        while self.held.as_ref().is_none_or(|batch| batch.num_rows() == 0) {
            match self.rest.next() {
                Some(batch) => self.held = Some(like(batch?, schema)?),
                None => {
                    self.held = None;
                    break;
                }
            }
        }
        Ok(())
    }
}

impl MergedRows {
    pub(in crate::rewrite) fn new(
        order: Arc<CheckedSortOrder>,
        schema: SchemaRef,
        inputs: Vec<RowInput>,
        batch_rows: usize,
    ) -> Self {
        let inputs = inputs.into_iter().map(|rest| HeldInput { rest, held: None }).collect();
        Self { order, schema, inputs, ready: None, batch_rows, is_done: false }
    }

    /// The input whose last row comes first, and that row; of equal ones the first input.
    fn bound(&self) -> Result<Option<(usize, RecordBatch)>> {
        let last = |of: &RecordBatch| of.num_rows().saturating_sub(1);
        let mut bound: Option<(usize, &RecordBatch)> = None;
        for (at, input) in self.inputs.iter().enumerate() {
            let Some(batch) = &input.held else { continue };
            let is_first = match bound {
                None => true,
                Some((_, best)) => {
                    self.order.compare((batch, last(batch)), (best, last(best)))?.is_lt()
                }
            };
            if is_first {
                bound = Some((at, batch));
            }
        }
        Ok(bound.map(|(at, batch)| (at, batch.slice(last(batch), 1))))
    }

    /// The next rows; `None` at the end.
    fn step(&mut self) -> Result<Option<Interleaved>> {
        for input in &mut self.inputs {
            input.fill(&self.schema)?;
        }
        let Some((bound_at, bound)) = self.bound()? else { return Ok(None) };
        let mut pieces = Vec::with_capacity(self.inputs.len());
        for (at, input) in self.inputs.iter_mut().enumerate() {
            let Some(batch) = &mut input.held else { continue };
            let rows = match at.cmp(&bound_at) {
                std::cmp::Ordering::Less => {
                    self.order.rows_up_to(batch, Bound::Included((&bound, 0)))?
                }
                std::cmp::Ordering::Equal => batch.num_rows(),
                // Rows that are equal to it come after those of the next batch.
                std::cmp::Ordering::Greater => {
                    self.order.rows_up_to(batch, Bound::Excluded((&bound, 0)))?
                }
            };
            if rows > 0 {
                pieces.push(batch.slice(0, rows));
                *batch = batch.slice(rows, batch.num_rows() - rows);
            }
        }
        let places = match pieces.as_slice() {
            [only] => (0..only.num_rows()).map(|row| (0, row)).collect(),
            _ => self.order.sorted(&pieces)?,
        };
        Ok(Some(Interleaved::new(pieces, places, self.batch_rows)))
    }
}

impl Iterator for MergedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.as_mut().and_then(Interleaved::next) {
                return Some(batch);
            }
            if self.is_done {
                return None;
            }
            match self.step() {
                Ok(ready) => {
                    self.is_done = ready.is_none();
                    self.ready = ready;
                }
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// A batch with this schema, whose types it has. Other metadata of its schema, such as a key of the
/// file that it is of, are left out.
pub(in crate::rewrite) fn like(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let own = batch.schema();
    if Arc::ptr_eq(&own, schema) || own == *schema {
        return Ok(batch);
    }
    let own = Schema::new_with_metadata(own.fields().clone(), schema.metadata().clone());
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    let batch = RecordBatch::try_new_with_options(Arc::new(own), columns, &rows)?;
    Ok(batch.with_schema(schema.clone())?)
}
