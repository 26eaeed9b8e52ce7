//! Engines, files and batches.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::schema::{ColumnMetadataKey, StructField, StructType};
use delta_kernel::{
    Engine, EngineData, FileMeta, KernelResult, KernelResultIteratorStatic, ParquetHandler,
    PredicateRef,
};
use delta_kernel_default_engine::DefaultEngineBuilder;
use marquetry::{WriteOptions, Writer};
use marquetry_delta::{MarquetryEngine, MarquetryParquetHandler};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use url::Url;

pub(crate) fn local_store() -> Arc<dyn ObjectStore> {
    Arc::new(LocalFileSystem::new())
}

/// The kernel's engine.
pub(crate) fn default_engine() -> Arc<dyn Engine> {
    Arc::new(DefaultEngineBuilder::new(local_store()).build())
}

/// The kernel's engine, as it needs to be to write checkpoints.
pub(crate) fn writing_engine() -> Arc<dyn Engine> {
    use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let executor = TokioMultiThreadExecutor::new(runtime.handle().clone());
    // As long as the process: the executor only borrows it.
    std::mem::forget(runtime);
    let builder = DefaultEngineBuilder::new(local_store());
    Arc::new(builder.with_task_executor(Arc::new(executor)).build())
}

/// Ours around it.
pub(crate) fn our_engine() -> Arc<dyn Engine> {
    Arc::new(MarquetryEngine::new(default_engine(), local_store()))
}

pub(crate) fn handler() -> MarquetryParquetHandler {
    MarquetryParquetHandler::new(local_store())
}

pub(crate) fn url_of(path: &Path) -> Url {
    Url::from_file_path(path).expect("an absolute path")
}

pub(crate) fn meta_of(path: &Path) -> FileMeta {
    let size = std::fs::metadata(path).expect("a file").len();
    FileMeta { location: url_of(path), last_modified: 0, size }
}

/// Writes one file of these batches.
pub(crate) fn write_with(path: &Path, batches: &[RecordBatch], options: WriteOptions) {
    let mut writer = Writer::create_with(path, batches[0].schema(), options).expect("a file");
    for batch in batches {
        writer.write(batch).expect("written");
    }
    writer.finish().expect("finished");
}

pub(crate) fn write(path: &Path, batch: &RecordBatch) {
    write_with(path, std::slice::from_ref(batch), WriteOptions::default().with_hint(false));
}

pub(crate) fn schema(fields: impl IntoIterator<Item = StructField>) -> Arc<StructType> {
    Arc::new(StructType::try_new(fields).expect("a schema"))
}

/// `field` with the id by which its column is found.
pub(crate) fn with_id(field: StructField, id: i64) -> StructField {
    field.add_metadata([(ColumnMetadataKey::ParquetFieldId.as_ref(), id)])
}

/// `field` with an id in a file.
pub(crate) fn arrow_id(field: Field, id: i32) -> Field {
    let id = (marquetry::schema::FIELD_ID_KEY.to_owned(), id.to_string());
    field.with_metadata([id].into())
}

pub(crate) fn nullable(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

pub(crate) fn arrow_schema(fields: impl Into<arrow_schema::Fields>) -> Arc<Schema> {
    Arc::new(Schema::new(fields.into()))
}

/// All that `handler` returns of these files, batch by batch.
pub(crate) fn read_batches(
    handler: &dyn ParquetHandler,
    files: &[FileMeta],
    schema: &Arc<StructType>,
    predicate: Option<PredicateRef>,
) -> KernelResult<Vec<RecordBatch>> {
    handler
        .read_parquet_files(files, Arc::clone(schema), predicate)?
        .map(|data| data.map(batch_of))
        .collect()
}

/// The rows of one file as one batch.
pub(crate) fn read(
    handler: &dyn ParquetHandler,
    path: &Path,
    schema: &Arc<StructType>,
) -> KernelResult<RecordBatch> {
    let batches = read_batches(handler, &[meta_of(path)], schema, None)?;
    Ok(joined(&batches))
}

pub(crate) fn batch_of(data: Box<dyn EngineData>) -> RecordBatch {
    (*ArrowEngineData::try_from_engine_data(data).expect("Arrow data")).into()
}

pub(crate) fn joined(batches: &[RecordBatch]) -> RecordBatch {
    concat_batches(&batches[0].schema(), batches).expect("batches of one schema")
}

pub(crate) fn as_data(
    batches: impl IntoIterator<Item = RecordBatch>,
) -> KernelResultIteratorStatic<Box<dyn EngineData>> {
    let data: Vec<_> = batches
        .into_iter()
        .map(|batch| Ok(Box::new(ArrowEngineData::new(batch)) as Box<dyn EngineData>))
        .collect();
    Box::new(data.into_iter())
}

/// The rows of a batch as text, for comparisons in any order.
pub(crate) fn lines(batch: &RecordBatch) -> Vec<String> {
    use arrow_cast::display::{ArrayFormatter, FormatOptions};
    let options = FormatOptions::default().with_null("∅");
    let columns = batch.columns().iter();
    let columns: Vec<_> = columns
        .map(|column| ArrayFormatter::try_new(column, &options).expect("a format"))
        .collect();
    let line = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>();
    (0..batch.num_rows()).map(|row| line(row).join(" | ")).collect()
}
