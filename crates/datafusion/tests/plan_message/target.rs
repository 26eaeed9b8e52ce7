//! Parts of plans that another process has sent: messages of any bytes are decoded or refused. What
//! is decoded is encoded and decoded again as the same, and a scan is run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use arrow_array::{
    Array, ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, SchemaRef, SortOptions};
use datafusion_common::config::TableParquetOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, ScalarValue, Statistics, TableReference};
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::FileScanConfigBuilder;
use datafusion_datasource::file_sink_config::{FileOutputMode, FileSinkConfig};
use datafusion_datasource::sink::DataSinkExec;
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource::{ListingTableUrl, PartitionedFile, TableSchema};
use datafusion_execution::TaskContext;
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_expr::Operator;
use datafusion_expr::dml::InsertOp;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNullExpr, LikeExpr, NotExpr, lit,
};
use datafusion_physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_expr_common::sort_expr::{
    LexOrdering, LexRequirement, PhysicalSortExpr, PhysicalSortRequirement,
};
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::{ExecutionPlan, SortOrderPushdownResult};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
use futures_util::StreamExt;
use marquetry::io::WriteSink;
use marquetry::{Limits, WriteOptions, Writer};
use marquetry_datafusion::{
    MarquetryFormat, MarquetryFormatFactory, MarquetryLogicalCodec, MarquetryPhysicalCodec,
    MarquetrySink, MarquetrySource, MarquetryTable, ScanSettings,
};
use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutPayload};

use crate::heap;

const ROWS: i32 = 100;
const FILE: &str = "file.parquet";
/// Batches of a scan that are asked for: a message may name the file many times.
const MAX_BATCHES: usize = 200;
/// The memory that a scan is given.
const MEMORY: usize = 64 << 20;

/// # Panics
/// At a finding.
pub(crate) fn run(data: &[u8]) {
    let Some((kind, message)) = data.split_first() else { return };
    static HOOK: Once = Once::new();
    HOOK.call_once(note_panics);
    panicked();
    let before = heap::start();
    decode_and_run(*kind, message);
    let peak = heap::peak().saturating_sub(before);
    // A message becomes expressions, statistics and names, each larger than its bytes.
    assert!(peak <= MEMORY + (16 << 20) + 16 * message.len(), "{} MiB of heap", peak >> 20);
    // The codecs make errors of panics, because DataFusion's part of the decoding panics.
    let panicked = panicked();
    assert!(panicked.is_none(), "a panic outside DataFusion became an error: {panicked:?}");
}

fn decode_and_run(kind: u8, message: &[u8]) {
    let Ok(first) = round_trip(kind, message) else { return };
    // A scan may be decoded to what DataFusion cannot encode.
    let Ok(sent) = first.encoded else {
        assert!(kind % 4 < 2, "a table or a format cannot be encoded");
        _ = first.scan.as_ref().and_then(execute);
        return;
    };
    let second = round_trip(kind, &sent).unwrap_or_else(|e| panic!("{e}: decoded again"));
    let again = second.encoded.unwrap_or_else(|e| panic!("{e}: encoded again"));
    assert!(sorted(again) == sorted(sent), "the second message is another");
    if let (Some(first), Some(second)) = (first.scan, second.scan) {
        let rows = (execute(&first), execute(&second));
        assert!(rows.0 == rows.1, "{rows:?} rows");
    }
}

/// A decoded message.
pub(crate) struct Decoded {
    pub(crate) encoded: Result<Vec<u8>>,
    pub(crate) scan: Option<Arc<dyn ExecutionPlan>>,
}

/// Decodes a message, and encodes what it means.
pub(crate) fn round_trip(kind: u8, message: &[u8]) -> Result<Decoded> {
    let codec = MarquetryLogicalCodec;
    let mut bytes = Vec::new();
    let encoded = match kind % 4 {
        0 => {
            let scan = decode(message, &[])?;
            return Ok(Decoded { encoded: encode(Arc::clone(&scan)), scan: Some(scan) });
        }
        1 => encode(decode(message, &[Arc::new(EmptyExec::new(schema()))])?),
        2 => {
            let table = codec.try_decode_table_provider(message, &name(), schema(), task())?;
            codec.try_encode_table_provider(&name(), table, &mut bytes).map(|()| bytes)
        }
        _ => {
            let format = codec.try_decode_file_format(message, task())?;
            codec.try_encode_file_format(&mut bytes, format).map(|()| bytes)
        }
    };
    Ok(Decoded { encoded, scan: None })
}

/// The metadata of a schema are encoded in any order.
fn sorted(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.sort_unstable();
    bytes
}

pub(crate) fn decode(
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    let converter = DefaultPhysicalProtoConverter {};
    MarquetryPhysicalCodec.try_decode(bytes, inputs, task(), &converter)
}

pub(crate) fn encode(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    MarquetryPhysicalCodec.try_encode(plan, &mut bytes, &DefaultPhysicalProtoConverter {})?;
    Ok(bytes)
}

/// The place of the last panic outside DataFusion, on any thread: those of a pool are passed on.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);

fn panicked() -> Option<String> {
    PANICKED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn note_panics() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        if !(place.contains("/registry/") && place.contains("/datafusion-")) {
            *PANICKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
            before(panic);
        }
    }));
}

/// Runs a scan on one thread: the number of its rows, unless there is an error. DataFusion's
/// expressions panic at some types that they were not planned for.
pub(crate) fn execute(scan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    match catch_unwind(AssertUnwindSafe(|| rows(scan))) {
        Ok(rows) => rows.ok(),
        Err(panic) => {
            if panicked().is_some() {
                resume_unwind(panic);
            }
            None
        }
    }
}

fn rows(scan: &Arc<dyn ExecutionPlan>) -> Result<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut rows = 0;
        for partition in 0..scan.properties().partitioning.partition_count().min(8) {
            let mut stream = scan.execute(partition, Arc::clone(task()))?.take(MAX_BATCHES);
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                rows += batch.num_rows();
                for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
                    assert!(field.is_nullable() || column.logical_null_count() == 0, "{field}");
                    column.to_data().validate_full().expect("an array that Arrow allows");
                }
            }
        }
        Ok(rows)
    })
}

/// A worker whose one file is in memory.
fn task() -> &'static Arc<TaskContext> {
    static TASK: OnceLock<Arc<TaskContext>> = OnceLock::new();
    TASK.get_or_init(|| {
        let store = InMemory::new();
        let file = PutPayload::from(file().to_vec());
        let put = async { store.put(&FILE.into(), file).await };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(put).expect("a file in memory");
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(MEMORY, 1.0);
        let runtime = runtime.build_arc().expect("an environment");
        // In the place of the disk.
        runtime.register_object_store(url().as_ref(), Arc::new(store));
        Arc::new(TaskContext::default().with_runtime(runtime))
    })
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.memory_bytes = MEMORY as u64;
    limits
}

fn url() -> ObjectStoreUrl {
    ObjectStoreUrl::local_filesystem()
}

fn name() -> TableReference {
    TableReference::bare("t")
}

fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values((0..ROWS).map(i64::from)))),
        ("name", Arc::new(StringArray::from_iter((0..ROWS).map(text)))),
        ("x", Arc::new(Float64Array::from_iter_values((0..ROWS).map(|i| f64::from(i) / 4.0)))),
        ("day", Arc::new(Date32Array::from_iter_values((0..ROWS).map(|i| 20_000 + i)))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .expect("a batch")
}

fn text(row: i32) -> Option<String> {
    (row % 7 != 3).then(|| format!("name {}", row % 13))
}

fn schema() -> SchemaRef {
    static SCHEMA: OnceLock<SchemaRef> = OnceLock::new();
    Arc::clone(SCHEMA.get_or_init(|| batch().schema()))
}

/// Several row groups and pages, with their statistics.
fn file() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let options = WriteOptions::new().with_row_group_rows(40).with_page_rows(10);
        let mut writer = Writer::new(WriteSink(Vec::new()), schema(), options).expect("a writer");
        writer.write(&batch()).expect("rows");
        writer.into_inner().expect("a file").1
    })
}

pub(crate) fn column(name: &str) -> Arc<dyn PhysicalExpr> {
    let (index, _) = table().table_schema().column_with_name(name).expect("a column");
    Arc::new(Column::new(name, index))
}

fn compare(name: &str, op: Operator, value: ScalarValue) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(column(name), op, lit(value)))
}

fn table() -> TableSchema {
    let partition = Arc::new(Field::new("part", DataType::Utf8, false));
    TableSchema::builder(schema()).with_table_partition_cols(vec![partition]).build()
}

fn filters() -> Vec<Arc<dyn PhysicalExpr>> {
    let (name, listed) = (column("name"), vec![lit("name 1"), lit("name 12")]);
    let in_list = InListExpr::try_new(name, listed, false, table().table_schema());
    let like = LikeExpr::new(false, false, column("name"), lit("name 1%"));
    let day = ScalarValue::Date32(Some(20_040));
    let cast = CastExpr::new(column("id"), DataType::Utf8, None);
    let cast = BinaryExpr::new(Arc::new(cast), Operator::Eq, lit("17"));
    let is_null = Arc::new(IsNullExpr::new(column("name")));
    let both = BinaryExpr::new(
        compare("x", Operator::Lt, ScalarValue::from(9.5)),
        Operator::And,
        Arc::new(NotExpr::new(is_null)),
    );
    vec![
        compare("id", Operator::GtEq, ScalarValue::from(50i64)),
        compare("day", Operator::Eq, day),
        compare("part", Operator::NotEq, ScalarValue::from("a")),
        Arc::new(in_list.expect("a list")),
        Arc::new(like),
        Arc::new(cast),
        Arc::new(both),
    ]
}

/// Six columns, more than the table has.
fn computed() -> ProjectionExprs {
    let plus = |n: i64| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(column("id"), Operator::Plus, lit(n)))
    };
    let sums = (0..5).map(|n| ProjectionExpr::new(plus(n), format!("sum{n}")));
    ProjectionExprs::new(sums.chain([ProjectionExpr::new(column("name"), "name")]))
}

/// Asks a scan for rows in this order.
fn ordered(scan: &Arc<dyn ExecutionPlan>, name: &str, index: usize) -> Arc<dyn ExecutionPlan> {
    let options = SortOptions { descending: true, nulls_first: false };
    let by = PhysicalSortExpr::new(Arc::new(Column::new(name, index)), options);
    match scan.try_pushdown_sort(&[by]).expect("an order") {
        SortOrderPushdownResult::Exact { inner } | SortOrderPushdownResult::Inexact { inner } => {
            inner
        }
        SortOrderPushdownResult::Unsupported => panic!("no order by {name}"),
    }
}

pub(crate) fn scan(of: usize, filter: Option<Arc<dyn PhysicalExpr>>) -> Arc<dyn ExecutionPlan> {
    let settings = ScanSettings::new().with_limits(limits()).with_pushdown(of % 3 != 2);
    let mut source = MarquetrySource::new(table()).with_settings(settings);
    if let Some(filter) = filter {
        source = source.with_filter(filter);
    }
    config(of, Arc::new(source))
}

fn config(of: usize, source: Arc<dyn FileSource>) -> Arc<dyn ExecutionPlan> {
    let mut known = Statistics::new_unknown(table().table_schema());
    known.num_rows = Precision::Exact(batch().num_rows());
    let part = |value: &str| vec![ScalarValue::from(value)];
    let size = file().len() as u64;
    let whole = PartitionedFile::new(FILE, size).with_partition_values(part("a"));
    let half = PartitionedFile::new(FILE, size).with_partition_values(part("b"));
    let half = half.with_range(0, size as i64 / 2).with_statistics(Arc::new(known));
    let groups = vec![FileGroup::new(vec![whole]), FileGroup::new(vec![half])];
    let mut config = FileScanConfigBuilder::new(url(), source)
        .with_file_groups(groups)
        .with_limit((of % 2 == 1).then_some(30))
        .with_batch_size((of % 4 == 3).then_some(16));
    if of % 3 == 1 {
        let by = PhysicalSortExpr::new(column("id"), SortOptions::default());
        config = config.with_output_ordering(LexOrdering::new([by]).into_iter().collect());
    }
    if of.is_multiple_of(2) {
        config = config.with_projection_indices(Some(vec![4, 1, 0])).expect("columns");
    }
    DataSourceExec::from_data_source(config.build())
}

fn sink() -> Arc<dyn ExecutionPlan> {
    let config = FileSinkConfig {
        original_url: "file:///out/".to_owned(),
        object_store_url: url(),
        file_group: FileGroup::new(Vec::new()),
        table_paths: vec![ListingTableUrl::parse("file:///out/").expect("a URL")],
        output_schema: schema(),
        table_partition_cols: vec![("name".to_owned(), DataType::Utf8)],
        insert_op: InsertOp::Append,
        keep_partition_by_columns: false,
        file_extension: "parquet".to_owned(),
        file_output_mode: FileOutputMode::Automatic,
    };
    let input = Arc::new(EmptyExec::new(schema()));
    let sink = MarquetrySink::new(config, TableParquetOptions::default());
    let by = PhysicalSortExpr::new(Arc::new(Column::new("id", 0)), SortOptions::default());
    let order = LexRequirement::new([PhysicalSortRequirement::from(by)]);
    Arc::new(DataSinkExec::new(input, Arc::new(sink), order))
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let seed = |kind: u8, message: Vec<u8>| [vec![kind], message].concat();
    let mut out = vec![seed(1, encode(sink()).expect("a sink"))];
    let filters = filters().into_iter().map(Some).chain([None]);
    let scans = filters.enumerate().map(|(i, filter)| scan(i, filter));
    out.extend(scans.map(|scan| seed(0, encode(scan).expect("a scan"))));
    let plain = MarquetrySource::new(table());
    let computed = plain.try_pushdown_projection(&computed()).expect("columns").expect("a source");
    let orders =
        [ordered(&config(9, Arc::new(plain)), "id", 0), ordered(&config(9, computed), "name", 5)];
    out.extend(orders.map(|scan| seed(0, encode(scan).expect("a scan"))));
    let settings = ScanSettings::new().with_limits(limits()).with_portable_plans(true);
    let format = MarquetryFormat::new().with_settings(settings.clone());
    let paths = ["file:///data/", "file:///more/a*.parquet"];
    let partitions = [("part".to_owned(), DataType::Utf8)];
    let table = MarquetryTable::with_schema(schema(), paths, partitions, format).expect("a table");
    let mut bytes = Vec::new();
    MarquetryLogicalCodec
        .try_encode_table_provider(&name(), Arc::new(table), &mut bytes)
        .expect("a table");
    out.push(seed(2, bytes));
    let mut bytes = Vec::new();
    let factory = MarquetryFormatFactory::new().with_settings(settings);
    MarquetryLogicalCodec.try_encode_file_format(&mut bytes, Arc::new(factory)).expect("a format");
    out.push(seed(3, bytes));
    out
}
