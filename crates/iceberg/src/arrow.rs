//! Batches of iceberg's Arrow as ours, by way of Arrow IPC: the two differ in their types, not in
//! their bytes, which are copied once.

use std::fmt::Display;

use arrow_array_58::RecordBatch as Batch58;
use arrow_ipc_58::writer::StreamWriter;
use arrow_schema_58::Schema as Schema58;
use marquetry::arrow_array::RecordBatch;
use marquetry::arrow_buffer::Buffer;
use marquetry::arrow_ipc::reader::StreamDecoder;
use marquetry::arrow_schema::SchemaRef;

/// The schema and the batches.
pub(crate) fn import(
    schema: &Schema58,
    batches: &[Batch58],
) -> iceberg::Result<(SchemaRef, Vec<RecordBatch>)> {
    let mut stream = StreamWriter::try_new(Vec::new(), schema).map_err(invalid)?;
    for batch in batches {
        stream.write(batch).map_err(invalid)?;
    }
    let mut stream = Buffer::from_vec(stream.into_inner().map_err(invalid)?);
    let mut decoder = StreamDecoder::new();
    let mut ours = Vec::new();
    while let Some(batch) = decoder.decode(&mut stream).map_err(invalid)? {
        ours.push(batch);
    }
    let schema = decoder.schema().ok_or_else(|| invalid("an IPC stream without a schema"))?;
    Ok((schema, ours))
}

fn invalid(error: impl Display) -> iceberg::Error {
    iceberg::Error::new(iceberg::ErrorKind::DataInvalid, error.to_string())
}
