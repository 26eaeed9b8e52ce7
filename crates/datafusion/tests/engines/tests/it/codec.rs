//! Tests what the codecs carry. Messages of others: `crates/datafusion/tests/plan_message`.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{ColumnarValue, Extension, LogicalPlan, ScalarUDF, Volatility};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionContext, create_udf};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{
    DefaultPhysicalProtoConverter, PhysicalExtensionCodec, PhysicalProtoConverterExtension,
};
use engines::write_tpch;
use marquetry::Limits;
use marquetry_datafusion::{
    MarquetryCodecWith, MarquetryFormat, MarquetryFormatFactory, MarquetryLogicalCodec,
    MarquetryPhysicalCodec, MarquetrySource, MarquetryTable, ScanSettings,
};

use crate::query;

/// A session whose table `nation` is read within these limits.
async fn limited(folder: &std::path::Path, limits: &Limits) -> (SessionContext, MarquetryTable) {
    let ctx = engines::ours(Default::default());
    let path = folder.join("nation.parquet").display().to_string();
    let format =
        MarquetryFormat::new().with_settings(ScanSettings::new().with_limits(limits.clone()));
    let open = async || {
        let (state, format) = (ctx.state(), format.clone());
        MarquetryTable::open_partitioned(&state, [&path], [], format).await.unwrap()
    };
    ctx.register_table("nation", Arc::new(open().await)).unwrap();
    let table = open().await;
    (ctx, table)
}

/// The bytes of the one scan of a plan.
fn scan_bytes(plan: &Arc<dyn ExecutionPlan>) -> Vec<u8> {
    if plan.children().is_empty() {
        let mut bytes = Vec::new();
        let converter = DefaultPhysicalProtoConverter {};
        MarquetryPhysicalCodec.try_encode(Arc::clone(plan), &mut bytes, &converter).unwrap();
        return bytes;
    }
    scan_bytes(plan.children()[0])
}

fn decode_scan(
    ctx: &SessionContext,
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    let converter = DefaultPhysicalProtoConverter {};
    MarquetryPhysicalCodec.try_decode(bytes, inputs, &ctx.task_ctx(), &converter)
}

/// The source of a scan, with its settings.
fn shown(scan: &Arc<dyn ExecutionPlan>) -> String {
    let scan = scan.downcast_ref::<DataSourceExec>().expect("a scan");
    format!("{:?}", scan.downcast_to_file_source::<MarquetrySource>().expect("one of ours").1)
}

fn of_memory(bytes: u64) -> Limits {
    let mut limits = Limits::default();
    limits.memory_bytes = bytes;
    limits
}

#[tokio::test]
async fn limits_go_with_a_scan_to_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let worker = engines::ours(Default::default());
    let sql = "select n_name from nation";
    for (limits, is_enough) in [(of_memory(1 << 20), true), (of_memory(1000), false)] {
        let (ctx, _) = limited(folder.path(), &limits).await;
        let plan = crate::plan(&ctx, sql).await;
        let back = decode_scan(&worker, &scan_bytes(&plan), &[]).unwrap();
        let found = collect(back, worker.task_ctx()).await;
        assert_eq!(found.is_ok(), is_enough, "{limits:?}: {found:?}");
        if let Err(e) = found {
            assert!(e.to_string().contains("Limits::memory_bytes"), "{e}");
        }
    }
    // All five, as the worker has them.
    let mut limits = Limits::default();
    limits.footer_bytes = 1_000_001;
    limits.page_bytes = 1_000_002;
    limits.nesting = 103;
    limits.rows_without_columns = 1_000_004;
    limits.memory_bytes = 1_000_005;
    let (ctx, table) = limited(folder.path(), &limits).await;
    let bytes = scan_bytes(&crate::plan(&ctx, sql).await);
    let shown = shown(&decode_scan(&worker, &bytes, &[]).unwrap());
    assert!(shown.contains(&format!("{limits:?}")), "{shown}");
    // And those of a table and of a format in a logical plan.
    let (codec, name) = (MarquetryLogicalCodec, TableReference::bare("nation"));
    let mut bytes = Vec::new();
    let schema = TableProvider::schema(&table);
    codec.try_encode_table_provider(&name, Arc::new(table), &mut bytes).unwrap();
    let back = codec.try_decode_table_provider(&bytes, &name, schema, &worker.task_ctx()).unwrap();
    assert!(format!("{back:?}").contains(&format!("{limits:?}")), "{back:?}");
    let factory = MarquetryFormatFactory::new()
        .with_settings(ScanSettings::new().with_limits(limits.clone()));
    let mut bytes = Vec::new();
    codec.try_encode_file_format(&mut bytes, Arc::new(factory)).unwrap();
    let back = codec.try_decode_file_format(&bytes, &worker.task_ctx()).unwrap();
    assert!(format!("{back:?}").contains(&format!("{limits:?}")), "{back:?}");
}

#[tokio::test]
async fn scans_without_limits_are_what_they_were_before_there_were_any() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let sql = "select n_name from nation";
    let (ctx, _) = limited(folder.path(), &Limits::default()).await;
    let without = scan_bytes(&crate::plan(&ctx, sql).await);
    let (limited, _) = limited(folder.path(), &of_memory(12_345)).await;
    let with = scan_bytes(&crate::plan(&limited, sql).await);
    // The fifth field of the message comes last, and is all that differs.
    assert!(with.len() > without.len());
    assert_eq!(with[..without.len()], without);
    assert_eq!(with[without.len()], (5 << 3) | 2);
    let back = decode_scan(&ctx, &without, &[]).unwrap();
    assert!(shown(&back).contains(&format!("{:?}", Limits::default())));
    // One that a later version adds is passed over.
    let mut later = without.clone();
    later.extend([(15 << 3) | 2, 3, 1, 2, 3]);
    decode_scan(&ctx, &later, &[]).unwrap();
}

#[tokio::test]
async fn any_numbers_of_a_peer_are_limits() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let sql = "select n_name from nation";
    for number in [0, 1, u64::MAX / 2, u64::MAX] {
        let mut limits = Limits::default();
        (limits.footer_bytes, limits.page_bytes) = (number, number);
        (limits.rows_without_columns, limits.memory_bytes) = (number, number);
        limits.nesting = usize::try_from(number).unwrap();
        let (ctx, _) = limited(folder.path(), &Limits::default()).await;
        let mut bytes = scan_bytes(&crate::plan(&ctx, sql).await);
        let mut message = Vec::new();
        for field in 1u8..=5 {
            message.push(field << 3);
            let mut n = number;
            while n >= 128 {
                message.push(n as u8 | 128);
                n >>= 7;
            }
            message.push(n as u8);
        }
        bytes.extend([(5 << 3) | 2, u8::try_from(message.len()).unwrap()]);
        bytes.extend(message);
        let back = decode_scan(&ctx, &bytes, &[]).unwrap();
        assert!(shown(&back).contains(&format!("{limits:?}")), "{}", shown(&back));
        let found = collect(back, ctx.task_ctx()).await;
        assert_eq!(found.is_ok(), number > 1, "{found:?}");
    }
}

/// The codec of an engine: it has a node and a table of its own, and a function that no registry
/// knows.
#[derive(Debug)]
struct EngineCodec;

/// A function of the engine.
fn is_even() -> ScalarUDF {
    let even = |values: &[ColumnarValue]| {
        let values = ColumnarValue::values_to_arrays(values)?.swap_remove(0);
        let values = values.as_primitive::<Int64Type>().iter();
        let even: BooleanArray = values.map(|value| value.map(|value| value % 2 == 0)).collect();
        Ok(ColumnarValue::Array(Arc::new(even)))
    };
    let (of, gives) = (vec![DataType::Int64], DataType::Boolean);
    create_udf("engine_is_even", of, gives, Volatility::Immutable, Arc::new(even))
}

impl PhysicalExtensionCodec for EngineCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        _context: &TaskContext,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        assert_eq!(buf, b"node");
        Ok(Arc::new(EmptyExec::new(SchemaRef::new(Schema::empty()))))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        assert!(node.is::<EmptyExec>());
        buf.extend(b"node");
        Ok(())
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        buf.extend(node.name().bytes());
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        assert_eq!((name, buf), (is_even().name(), is_even().name().as_bytes()));
        Ok(Arc::new(is_even()))
    }
}

impl LogicalExtensionCodec for EngineCodec {
    fn try_decode(&self, _: &[u8], _: &[LogicalPlan], _: &TaskContext) -> Result<Extension> {
        unreachable!("no such node here")
    }

    fn try_encode(&self, _: &Extension, _: &mut Vec<u8>) -> Result<()> {
        unreachable!("no such node here")
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        _table: &TableReference,
        schema: SchemaRef,
        _context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        assert_eq!(buf, b"table");
        Ok(Arc::new(MemTable::try_new(schema, vec![Vec::new()])?))
    }

    fn try_encode_table_provider(
        &self,
        _table: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        assert!(node.is::<MemTable>());
        buf.extend(b"table");
        Ok(())
    }
}

#[tokio::test]
async fn what_is_not_ours_goes_through_the_codec_of_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let codec: Arc<dyn PhysicalExtensionCodec> = Arc::new(EngineCodec);
    let codec = MarquetryCodecWith::new(codec);
    let converter = DefaultPhysicalProtoConverter {};
    let (ctx, table) = limited(folder.path(), &Limits::default()).await;
    let worker = engines::ours(Default::default());
    let task = worker.task_ctx();
    let encoded = |plan: Arc<dyn ExecutionPlan>| {
        let mut bytes = Vec::new();
        codec.try_encode(plan, &mut bytes, &converter).unwrap();
        bytes
    };
    let node = encoded(Arc::new(EmptyExec::new(SchemaRef::new(Schema::empty()))));
    assert_eq!(node, b"node");
    assert!(codec.try_decode(&node, &[], &task, &converter).unwrap().is::<EmptyExec>());
    // A scan of ours, and in it a function of the engine.
    ctx.register_udf(is_even());
    let sql = "select n_name from nation where engine_is_even(n_nationkey)";
    let plan = crate::plan(&ctx, sql).await;
    assert!(plan.children().is_empty() && crate::text(&plan).contains("engine_is_even"));
    let scan = encoded(Arc::clone(&plan));
    assert!(scan.starts_with(b"MQSCAN1"));
    decode_scan(&worker, &scan, &[]).expect_err("a function that only the engine knows");
    let back = codec.try_decode(&scan, &[], &task, &converter).unwrap();
    let found = collect(back, Arc::clone(&task)).await.unwrap();
    assert_eq!(engines::rows(&found), engines::rows(&query(&ctx, sql).await));
    assert_eq!(found.iter().map(|batch| batch.num_rows()).sum::<usize>(), 13);
    // Tables, of the engine and of ours.
    let codec: Arc<dyn LogicalExtensionCodec> = Arc::new(EngineCodec);
    let codec = MarquetryCodecWith::new(codec);
    let (name, schema) = (TableReference::bare("nation"), TableProvider::schema(&table));
    let of_engine = MemTable::try_new(Arc::clone(&schema), vec![Vec::new()]).unwrap();
    let through = |table: Arc<dyn TableProvider>| {
        let mut bytes = Vec::new();
        codec.try_encode_table_provider(&name, table, &mut bytes).unwrap();
        codec.try_decode_table_provider(&bytes, &name, Arc::clone(&schema), &task).unwrap()
    };
    assert!(through(Arc::new(of_engine)).is::<MemTable>());
    assert!(through(Arc::new(table)).is::<MarquetryTable>());
    let mut bytes = Vec::new();
    let factory =
        MarquetryFormatFactory::new().with_settings(ScanSettings::new().with_pushdown(false));
    codec.try_encode_file_format(&mut bytes, Arc::new(factory)).unwrap();
    let back = codec.try_decode_file_format(&bytes, &task).unwrap();
    assert!(format!("{back:?}").contains("pushdown: false"), "{back:?}");
}

#[tokio::test]
async fn patterns_go_with_a_table_to_a_scheduler() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let ctx = engines::ours(Default::default());
    // A path with a pattern, and one without; beside them lie files of other schemas.
    let apart = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("nation.parquet"), apart.path().join("n.parquet")).unwrap();
    let paths = [folder.path().join("na*.parquet"), apart.path().join("n.parquet")];
    let paths = paths.map(|path| path.display().to_string());
    let table = MarquetryTable::open(&ctx.state(), paths).await.unwrap();
    let (name, schema) = (TableReference::bare("nation"), TableProvider::schema(&table));
    let mut bytes = Vec::new();
    let codec = MarquetryLogicalCodec;
    codec.try_encode_table_provider(&name, Arc::new(table.clone()), &mut bytes).unwrap();
    let back = codec.try_decode_table_provider(&bytes, &name, schema, &ctx.task_ctx()).unwrap();
    assert_eq!(back.downcast_ref::<MarquetryTable>().unwrap().paths(), table.paths());
    ctx.register_table("here", Arc::new(table)).unwrap();
    ctx.register_table("there", back).unwrap();
    let found = query(&ctx, "select count(*) from here union all select count(*) from there").await;
    assert_eq!(engines::rows(&found), ["50", "50"]);
}
