//! Ends a filtered read: applies offset and limit to the rows that passed, and joins small batches.
//!
//! Used by `reader`, after any of the drivers. Trap: batches may have different dictionaries, whose
//! entries together may exceed the type of their keys; such batches are not joined.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};

use super::plan::Plan;
use crate::bytes::saturated;
use crate::error::Result;
use crate::limits::Reservation;
use crate::rows;

/// A batch of more than this part of `batch_rows` is given as it is, because joining would copy it.
const ENOUGH: usize = 4;

/// Rows that wait until there are enough of them.
pub(crate) struct Coalescer {
    schema: SchemaRef,
    batch_rows: usize,
    batch_bytes: usize,
    skip: u64,
    left: u64,
    waiting: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// A batch that there was no memory to wait for.
    next: Option<RecordBatch>,
    /// The memory of rows that wait, and of the batch that they are to be joined in.
    memory: Reservation,
}

impl Coalescer {
    /// For the batches of a read with a filter.
    pub(crate) fn new(plan: &Plan) -> Self {
        let (schema, options) = (plan.schema().clone(), plan.options());
        Self {
            schema,
            batch_rows: options.batch_rows,
            batch_bytes: plan.batch_bytes(),
            skip: options.offset,
            // Without a limit, all are wanted.
            left: options.limit.unwrap_or(u64::MAX),
            waiting: Vec::new(),
            rows: 0,
            bytes: 0,
            next: None,
            memory: plan.budget().reservation("batches that are to be joined"),
        }
    }

    /// Whether no more rows are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Takes rows that passed. Returns the waiting rows, once a batch is full; those of
    /// [`Coalescer::next`] follow.
    ///
    /// # Errors
    /// `Arrow` if batches cannot be joined.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let rows = batch.num_rows() as u64;
        let skipped = self.skip.min(rows);
        let taken = (rows - skipped).min(self.left);
        self.skip -= skipped;
        self.left -= taken;
        if taken == 0 {
            return Ok(None);
        }
        let at = |n: u64| saturated(n);
        let batch = if taken == rows { batch } else { batch.slice(at(skipped), at(taken)) };
        let bytes = batch.get_array_memory_size();
        if self.reserve(&batch, bytes) {
            self.wait(batch, bytes);
            return if self.rows > self.batch_rows / ENOUGH { self.take() } else { Ok(None) };
        }
        if self.waiting.is_empty() {
            return Ok(Some(batch));
        }
        let full = self.take()?;
        match self.reserve(&batch, bytes) {
            true => self.wait(batch, bytes),
            false => self.next = Some(batch),
        }
        Ok(full)
    }

    /// Reserves the memory of a batch if it can be joined with those that wait.
    fn reserve(&mut self, batch: &RecordBatch, bytes: usize) -> bool {
        self.rows + batch.num_rows() <= self.batch_rows
            && self.bytes.saturating_add(bytes) <= self.batch_bytes
            && self.waiting.last().is_none_or(|last| go_together(last, batch))
            && self.memory.grow(bytes.saturating_mul(2)).is_ok()
    }

    fn wait(&mut self, batch: RecordBatch, bytes: usize) {
        self.rows += batch.num_rows();
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push(batch);
    }

    /// The batch that follows what [`Coalescer::push`] gave, if it does not wait. To be asked for
    /// before the next one is pushed.
    pub(crate) fn next(&mut self) -> Option<RecordBatch> {
        self.next.take()
    }

    /// The rows that wait.
    ///
    /// # Errors
    /// As [`Coalescer::push`].
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>> {
        let waiting = std::mem::take(&mut self.waiting);
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let joined = match &waiting[..] {
            [] => None,
            [one] => Some(one.clone()),
            _ => {
                let places: Vec<u64> = (0..rows as u64).collect();
                Some(rows::take(&self.schema, &waiting, &places)?)
            }
        };
        self.memory.resize(0)?;
        Ok(joined)
    }
}

/// Whether batches can be joined without joining dictionaries.
fn go_together(a: &RecordBatch, b: &RecordBatch) -> bool {
    let mut columns = a.columns().iter().zip(b.columns());
    columns.all(|(a, b)| match a.data_type() {
        DataType::Dictionary(..) => {
            let (a, b) = (a.as_any_dictionary().values(), b.as_any_dictionary().values());
            Arc::ptr_eq(a, b)
        }
        other => !holds_dictionary(other),
    })
}

fn holds_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_dictionary(field.data_type()),
        DataType::RunEndEncoded(_, values) => holds_dictionary(values.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_dictionary(field.data_type())),
        _ => false,
    }
}
