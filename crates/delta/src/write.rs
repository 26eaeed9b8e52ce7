//! Writes a file, with the field ids that the kernel states.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::schema::ColumnMetadataKey;
use delta_kernel::{EngineData, FileSize, KernelError, KernelResult, KernelResultIteratorStatic};
use marquetry::io::StoreSink;
use marquetry::schema::FIELD_ID_KEY;
use marquetry::{AsyncWriter, WriteOptions, Writer};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::Handle;
use url::Url;

use crate::error::{at, refused};
use crate::read::local_path;
use crate::runtime::wait;

/// Batches of the kernel, with the schema that the file gets.
pub(crate) struct Rows {
    first: Option<RecordBatch>,
    rest: KernelResultIteratorStatic<Box<dyn EngineData>>,
    /// With field ids. The batches need none: the writer compares their names and types with it.
    schema: SchemaRef,
}

impl Rows {
    pub(crate) fn new(
        location: &Url,
        mut data: KernelResultIteratorStatic<Box<dyn EngineData>>,
    ) -> KernelResult<Self> {
        let Some(first) = data.next() else {
            return Err(refused(
                location,
                format_args!("there are no batches, so no schema to write"),
            ));
        };
        let first = batch(first?)?;
        let fields = first.schema_ref().fields().iter().map(|field| with_id(field));
        let schema = Arc::new(Schema::new(fields.collect::<Result<Fields, _>>()?));
        Ok(Self { first: Some(first), rest: data, schema })
    }
}

impl Iterator for Rows {
    type Item = KernelResult<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => Some(self.rest.next()?.and_then(batch)),
        }
    }
}

fn batch(data: Box<dyn EngineData>) -> KernelResult<RecordBatch> {
    Ok(ArrowEngineData::try_from_engine_data(data)?.into())
}

/// Writes a local file, which is there when it is whole.
pub(crate) fn local(location: &Url, rows: Rows, options: WriteOptions) -> KernelResult<FileSize> {
    let path = local_path(location)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(KernelError::from)?;
    }
    let schema = Arc::clone(&rows.schema);
    let mut writer = Writer::create_with(path, schema, options).map_err(at(location))?;
    for batch in rows {
        writer.write(&batch?).map_err(at(location))?;
    }
    Ok(writer.finish().map_err(at(location))?.bytes)
}

/// Writes an object, which is there when it is whole.
///
/// The batches are made on this thread: they may come from reads that the runtime must serve.
pub(crate) fn stored(
    location: &Url,
    rows: Rows,
    options: WriteOptions,
    store: Arc<dyn ObjectStore>,
    runtime: &Handle,
) -> KernelResult<FileSize> {
    let path = Path::from_url_path(location.path()).map_err(KernelError::generic_err)?;
    let sink = StoreSink::new(store, path);
    let schema = Arc::clone(&rows.schema);
    let mut writer = AsyncWriter::new(sink, schema, options).map_err(at(location))?;
    for batch in rows {
        let written = match batch {
            Ok(batch) => {
                let _context = runtime.enter();
                wait(writer.write(&batch)).map_err(at(location))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            let _context = runtime.enter();
            // The first error is the one that is reported.
            let _ = wait(writer.abort());
            return Err(error);
        }
    }
    let _context = runtime.enter();
    Ok(wait(writer.finish()).map_err(at(location))?.bytes)
}

/// `field` with the ids that the metadata of the kernel give it and what it holds.
fn with_id(field: &Field) -> Result<FieldRef, ArrowError> {
    let nested = field.metadata().get(ColumnMetadataKey::ColumnMappingNestedIds.as_ref());
    let nested = nested.map(|json| nested_ids(field.name(), json)).transpose()?.unwrap_or_default();
    let data_type = type_with_ids(field.data_type(), field.name(), &nested)?;
    let mut field = field.clone().with_data_type(data_type);
    let keys = [ColumnMetadataKey::ParquetFieldId, ColumnMetadataKey::ColumnMappingId];
    let id = keys.iter().find_map(|key| field.metadata().get(key.as_ref())).cloned();
    if let Some(id) = id {
        field.metadata_mut().entry(FIELD_ID_KEY.to_owned()).or_insert(id);
    }
    Ok(Arc::new(field))
}

/// `path` leads from the nearest field of a struct to here, whose `ids` are those of elements, keys
/// and values.
fn type_with_ids(
    data_type: &DataType,
    path: &str,
    ids: &HashMap<String, i64>,
) -> Result<DataType, ArrowError> {
    let inner = |field: &Field, step: &str| {
        let path = format!("{path}.{step}");
        let mut field = field.clone().with_data_type(type_with_ids(field.data_type(), &path, ids)?);
        if let Some(id) = ids.get(&path) {
            field.metadata_mut().entry(FIELD_ID_KEY.to_owned()).or_insert_with(|| id.to_string());
        }
        Ok::<_, ArrowError>(Arc::new(field))
    };
    Ok(match data_type {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| with_id(field)).collect::<Result<_, _>>()?)
        }
        DataType::List(item) => DataType::List(inner(item, "element")?),
        DataType::Map(entries, sorted) => {
            let DataType::Struct(pair) = entries.data_type() else { return Ok(data_type.clone()) };
            let pair = pair.iter().zip(["key", "value"]).map(|(field, step)| inner(field, step));
            let pair = DataType::Struct(pair.collect::<Result<_, _>>()?);
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pair)), *sorted)
        }
        other => other.clone(),
    })
}

/// The ids by path that the kernel states as a JSON object.
fn nested_ids(field: &str, json: &str) -> Result<HashMap<String, i64>, ArrowError> {
    serde_json::from_str(json).map_err(|e| {
        ArrowError::SchemaError(format!(
            "the nested field ids of {field} are no object of numbers: {e}"
        ))
    })
}
