//! Batches of iceberg's Arrow as ours, through the C Stream interface: nothing is copied.

use arrow_array_58::ffi_stream::FFI_ArrowArrayStream as Stream58;
use arrow_array_58::{RecordBatch as Batch58, RecordBatchIterator};
use arrow_schema_58::SchemaRef as Schema58;
use marquetry::arrow_array::RecordBatch;
use marquetry::arrow_schema::SchemaRef;
use marquetry::ffi::{self, FFI_ArrowArrayStream};

use crate::failed;

/// The schema and the batches.
pub(crate) fn import(
    schema: Schema58,
    batches: Vec<Batch58>,
) -> iceberg::Result<(SchemaRef, Vec<RecordBatch>)> {
    let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    let mut stream = std::mem::ManuallyDrop::new(Stream58::new(Box::new(batches)));
    // SAFETY: both are the `struct ArrowArrayStream` of the specification, laid out as C does, and
    // not shared: the original is not dropped.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw((&raw mut *stream).cast()) };
    let mut imported = ffi::import(stream).map_err(failed)?;
    let mut ours = Vec::new();
    while let Some(batch) = imported.next_batch().map_err(failed)? {
        ours.push(batch);
    }
    Ok((imported.schema(), ours))
}
