//! Tests a cluster of Ballista that reads and writes Parquet through marquetry against DataFusion
//! in one process with its own Parquet source.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_executor::{new_standalone_executor, new_standalone_executor_from_state};
use ballista_scheduler::standalone::new_standalone_scheduler_from_state;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use marquetry_datafusion::{
    MarquetryCodecWith, MarquetryFormat, MarquetrySource, MarquetryTable, ReplaceParquet, ScanSettings,
};

const TABLES: [&str; 2] = ["orders", "customers"];

/// A filter; aggregates after a shuffle; a join; a filter that is learned from the first rows; and
/// no table of files at all.
const QUERIES: [&str; 6] = [
    "select id, note from orders where cents > 9000 and note like '%7' order by id",
    "select customer, count(*), sum(cents), max(day) from orders where day >= date '2026-01-20' \
     group by customer order by customer",
    "select region, count(*), sum(cents), min(note) from orders join customers using (customer) \
     where region <> 'north' group by region order by region",
    "select id, cents from orders order by cents desc, id limit 10",
    "select count(*), count(note), count(distinct customer) from orders",
    "select x * 2 from (values (1), (2)) as t (x) order by x",
];

/// Writes the tables with DataFusion's own writer: orders in two files of ten row groups each.
async fn write_tables(folder: &Path) {
    let session = SessionContext::new();
    let orders = |first: i64| {
        let last = first + 9999;
        format!(
            "select value as id, value * 7919 % 100 as customer, value * 104729 % 10007 as cents, \
             date '2026-01-01' + cast(value / 500 as int) as day, \
             case when value % 11 <> 0 then 'note ' || value end as note \
             from generate_series({first}, {last})"
        )
    };
    let customers = "select value as customer, \
        case value % 3 when 0 then 'north' when 1 then 'east' else 'west' end as region \
        from generate_series(0, 89)";
    for (name, rows) in [
        ("orders/1", orders(0)),
        ("orders/2", orders(10_000)),
        ("customers/1", customers.to_owned()),
    ] {
        let path = folder.join(name).with_extension("parquet");
        let sql = format!(
            "copy ({rows}) to '{}' stored as parquet \
             options (format.max_row_group_size 1000, format.compression snappy)",
            path.display()
        );
        query(&session, &sql).await.unwrap();
    }
}

fn path_of(folder: &Path, table: &str) -> String {
    format!("{}/{table}/", folder.display())
}

/// DataFusion as it is, in one process.
async fn alone(folder: &Path) -> SessionContext {
    let session = SessionContext::new();
    for table in TABLES {
        let path = path_of(folder, table);
        session.register_parquet(table, path, ParquetReadOptions::default()).await.unwrap();
    }
    session
}

async fn register(session: &SessionContext, folder: &Path) {
    for table in TABLES {
        let paths = [path_of(folder, table)];
        let opened = MarquetryTable::open(&session.state(), paths).await.unwrap();
        session.register_table(table, Arc::new(opened)).unwrap();
    }
}

/// Counts the scans of ours that were decoded.
#[derive(Debug)]
struct Counting {
    codec: Arc<dyn PhysicalExtensionCodec>,
    scans: Arc<AtomicUsize>,
}

impl PhysicalExtensionCodec for Counting {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.codec.try_decode(buf, inputs, context, converter)?;
        let scan = plan.downcast_ref::<DataSourceExec>();
        if scan.and_then(DataSourceExec::downcast_to_file_source::<MarquetrySource>).is_some() {
            self.scans.fetch_add(1, Ordering::Relaxed);
        }
        Ok(plan)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.codec.try_encode(node, buf, converter)
    }
}

/// The state of a client, a scheduler and an executor, and the number of our scans that executors
/// decode: only they do, the others encode.
fn state(adaptive: bool) -> (SessionState, Arc<AtomicUsize>) {
    let scans = Arc::new(AtomicUsize::new(0));
    let config = SessionConfig::new_with_ballista();
    let logical = MarquetryCodecWith::new(config.ballista_logical_extension_codec());
    let physical = MarquetryCodecWith::new(config.ballista_physical_extension_codec());
    let physical = Counting { codec: Arc::new(physical), scans: Arc::clone(&scans) };
    let config = config
        .with_ballista_logical_extension_codec(Arc::new(logical))
        .with_ballista_physical_extension_codec(Arc::new(physical))
        .with_ballista_adaptive_query_planner(adaptive)
        .with_ballista_standalone_parallelism(2)
        .with_target_partitions(2)
        .with_repartition_file_min_size(1);
    let state = SessionStateBuilder::new().with_default_features().with_config(config).build();
    (state, scans)
}

/// A client and a scheduler whose plans scan through our source, whatever table they are made of.
fn state_with_the_rule() -> (SessionState, Arc<AtomicUsize>) {
    // The adaptive planner of Ballista does not run the rules of a session.
    let (state, scans) = state(false);
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(ReplaceParquet::new()));
    let state = SessionStateBuilder::from(state).with_physical_optimizer_rules(rules).build();
    (state, scans)
}

async fn query(session: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    session.sql(sql).await?.collect().await
}

/// The rows of a query as text, in the order of the answer.
fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    let mut out = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> =
            columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            out.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_cluster_gives_the_rows_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let alone = alone(folder.path()).await;
    for adaptive in [false, true] {
        let (state, scans) = state(adaptive);
        let cluster = SessionContext::standalone_with_state(state).await.unwrap();
        register(&cluster, folder.path()).await;
        for sql in QUERIES {
            let before = scans.load(Ordering::Relaxed);
            let found = query(&cluster, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
            let expected = rows(&query(&alone, sql).await.unwrap());
            assert!(!expected.is_empty(), "{sql}");
            assert_eq!(rows(&found), expected, "{sql}");
            let decoded = scans.load(Ordering::Relaxed) - before;
            assert_eq!(decoded > 0, sql.contains("orders"), "{decoded} scans: {sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_a_pattern_has_the_same_files_at_the_scheduler() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let cluster = SessionContext::standalone_with_state(state(true).0).await.unwrap();
    let paths = [format!("{}/orders/1*.parquet", folder.path().display())];
    let table = MarquetryTable::open(&cluster.state(), paths).await.unwrap();
    cluster.register_table("one", Arc::new(table)).unwrap();
    let found = query(&cluster, "select count(*), max(id) from one").await.unwrap();
    assert_eq!(rows(&found), ["10000|9999"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stages_of_a_cluster_scan_through_our_source() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let (state, scans) = state(true);
    let cluster = SessionContext::standalone_with_state(state).await.unwrap();
    register(&cluster, folder.path()).await;
    // The metrics of the executors come back with the plan of each stage.
    let sql = format!("explain analyze {}", QUERIES[2]);
    let plan = rows(&query(&cluster, &sql).await.unwrap()).join("\n");
    println!("{plan}");
    let ours: Vec<_> = plan.lines().filter(|line| line.contains("file_type=marquetry")).collect();
    assert!(ours.len() >= 2, "{plan}");
    assert!(ours.iter().all(|line| line.contains("output_rows=")), "{plan}");
    assert!(!plan.contains("file_type=parquet"), "{plan}");
    assert!(plan.contains("Shuffle"), "{plan}");
    assert!(scans.load(Ordering::Relaxed) >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rule_at_the_scheduler_replaces_scans_of_ordinary_tables() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let alone = alone(folder.path()).await;
    let (state, scans) = state_with_the_rule();
    let cluster = SessionContext::standalone_with_state(state).await.unwrap();
    for table in TABLES {
        let path = path_of(folder.path(), table);
        let sql = format!("create external table {table} stored as parquet location '{path}'");
        query(&cluster, &sql).await.unwrap();
    }
    for sql in QUERIES.into_iter().filter(|sql| sql.contains("orders")) {
        let before = scans.load(Ordering::Relaxed);
        let found = query(&cluster, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(rows(&found), rows(&query(&alone, sql).await.unwrap()), "{sql}");
        assert!(scans.load(Ordering::Relaxed) > before, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_table_of_our_format_is_refused_by_the_client() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let cluster = SessionContext::standalone_with_state(state(true).0).await.unwrap();
    marquetry_datafusion::install!(&cluster).unwrap();
    let path = path_of(folder.path(), "orders");
    let sql = format!("create external table orders stored as parquet location '{path}'");
    query(&cluster, &sql).await.unwrap();
    let error = query(&cluster, "select id from orders").await.unwrap_err().to_string();
    assert!(error.contains("unknown file format: MarquetryFormat"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_writes_through_our_sink() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let (state, _) = state(true);
    let cluster = SessionContext::standalone_with_state(state).await.unwrap();
    marquetry_datafusion::install!(&cluster).unwrap();
    register(&cluster, folder.path()).await;
    let out = folder.path().join("out");
    let sql = format!(
        "copy (select * from orders where cents < 5000) to '{}/' stored as parquet",
        out.display()
    );
    query(&cluster, &sql).await.unwrap();
    let alone = alone(folder.path()).await;
    let path = path_of(folder.path(), "out");
    alone.register_parquet("out", path, ParquetReadOptions::default()).await.unwrap();
    let expected = query(&alone, "select * from orders where cents < 5000 order by id").await;
    let found = query(&alone, "select * from out order by id").await;
    assert_eq!(rows(&found.unwrap()), rows(&expected.unwrap()));
    for file in std::fs::read_dir(&out).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let footer = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4096)..]);
        assert!(footer.contains("marquetry version"), "{footer}");
    }
}

/// A client with our codecs, of a scheduler that may have them and an executor that may.
async fn client_of(scheduler_has_it: bool, executor_has_it: bool) -> SessionContext {
    let (ours, _) = state(true);
    let config = SessionConfig::new_with_ballista();
    let plain = SessionStateBuilder::new().with_default_features().with_config(config).build();
    let scheduler = if scheduler_has_it { &ours } else { &plain };
    let address = new_standalone_scheduler_from_state(scheduler).await.unwrap();
    let url = format!("http://localhost:{}", address.port());
    let to_scheduler = SchedulerGrpcClient::connect(url).await.unwrap();
    if executor_has_it {
        new_standalone_executor_from_state(to_scheduler, 2, &ours).await.unwrap();
    } else {
        new_standalone_executor(to_scheduler, 2, BallistaCodec::default()).await.unwrap();
    }
    let url = format!("df://localhost:{}", address.port());
    SessionContext::remote_with_state(&url, ours).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_codec_is_missing_the_query_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path()).await;
    let sql = "select count(*) from orders where cents > 10";
    let with_all = client_of(true, true).await;
    register(&with_all, folder.path()).await;
    query(&with_all, sql).await.unwrap();
    for (scheduler_has_it, executor_has_it, expected) in [
        (true, false, "Could not deserialize BallistaPhysicalPlanNode"),
        (false, true, "LogicalExtensionCodec is not provided"),
    ] {
        let client = client_of(scheduler_has_it, executor_has_it).await;
        register(&client, folder.path()).await;
        let error = query(&client, sql).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Scans that every executor knows are those of DataFusion's own source.
    let client = client_of(true, false).await;
    let format = MarquetryFormat::new().with_settings(ScanSettings::new().with_portable_plans(true));
    let paths = [path_of(folder.path(), "orders")];
    let table = MarquetryTable::open_partitioned(&client.state(), paths, [], format).await;
    client.register_table("orders", Arc::new(table.unwrap())).unwrap();
    let expected = rows(&query(&alone(folder.path()).await, sql).await.unwrap());
    assert_eq!(rows(&query(&client, sql).await.unwrap()), expected);
}
