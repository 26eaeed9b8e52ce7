//! Tests scans that travel: the codecs, and a cluster of two workers in this process.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{
    DistributedExt, SessionStateBuilderExt, Worker, WorkerQueryContext, WorkerResolver,
    display_plan_ascii,
};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes,
    physical_plan_to_bytes_with_extension_codec,
};
use engines::{TPCH_TABLES, tpch_queries, write_tpch};
use marquetry_datafusion::{
    MarquetryFormat, MarquetryFormatFactory, MarquetryLogicalCodec, MarquetryPhysicalCodec,
    MarquetryTable, ScanSettings,
};
use tokio::net::TcpListener;
use tonic::transport::Server;
use url::Url;

use crate::{Pair, query, text};

async fn tables(session: &SessionContext, folder: &std::path::Path) {
    for table in TPCH_TABLES {
        let path = folder.join(format!("{table}.parquet"));
        engines::register(session, table, &path).await.unwrap();
    }
}

#[tokio::test]
async fn a_scan_survives_the_way_to_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let pair = Pair::new(2);
    tables(&pair.ours, folder.path()).await;
    for sql in [
        "select l_orderkey, l_extendedprice * 2 as twice from lineitem where l_shipmode in ('MAIL', 'AIR') and l_discount > 0.05",
        "select count(*), sum(o_totalprice) from orders where o_comment like '%special%' or o_orderkey < 99",
        "select c_name from customer limit 7",
    ] {
        let plan = crate::plan(&pair.ours, sql).await;
        let codec = MarquetryPhysicalCodec;
        let bytes = physical_plan_to_bytes_with_extension_codec(plan.clone(), &codec).unwrap();
        let task = pair.ours.task_ctx();
        let back = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
        assert_eq!(text(&back), text(&plan));
        let mut found = engines::rows(&collect(back, task).await.unwrap());
        let mut expected = engines::rows(&query(&pair.ours, sql).await);
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_scan_that_cannot_travel_whole_is_refused() {
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::FileScanConfigBuilder;
    use datafusion::datasource::source::DataSourceExec;
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::physical_expr_adapter::DefaultPhysicalExprAdapterFactory;
    use marquetry::RowSelection;
    use marquetry_datafusion::MarquetrySource;

    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let path = folder.path().join("nation.parquet").display().to_string();
    let ctx = engines::ours(SessionConfig::new());
    let table = MarquetryTable::open(&ctx.state(), [&path]).await.unwrap();
    let schema = datafusion::catalog::TableProvider::schema(&table);
    let file = PartitionedFile::from_path(path).unwrap();
    let encode = |file: PartitionedFile, own_adapter: bool, portable: bool| {
        let source = MarquetrySource::new(schema.clone())
            .with_settings(ScanSettings::new().with_portable_plans(portable));
        let url = ObjectStoreUrl::local_filesystem();
        let mut config = FileScanConfigBuilder::new(url, Arc::new(source)).with_file(file);
        if own_adapter {
            config = config.with_expr_adapter(Some(Arc::new(DefaultPhysicalExprAdapterFactory)));
        }
        let plan = DataSourceExec::from_data_source(config.build());
        physical_plan_to_bytes_with_extension_codec(plan, &MarquetryPhysicalCodec).map(drop)
    };
    let chosen =
        file.clone().with_extension(RowSelection::from_ranges(25, std::iter::once(0..2)).unwrap());
    for portable in [false, true] {
        encode(file.clone(), false, portable).unwrap();
        let error = encode(chosen.clone(), false, portable).unwrap_err();
        assert!(error.to_string().contains("extension"), "{error}");
        let error = encode(file.clone(), true, portable).unwrap_err();
        assert!(error.to_string().contains("adapter"), "{error}");
    }
}

#[tokio::test]
async fn a_sink_survives_the_way_to_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let pair = Pair::new(1);
    tables(&pair.ours, folder.path()).await;
    let sql = format!(
        "CREATE EXTERNAL TABLE out (k bigint, name varchar) STORED AS PARQUET \
         WITH ORDER (k ASC NULLS LAST) LOCATION '{}/out/'",
        folder.path().display()
    );
    query(&pair.ours, &sql).await;
    let sql = "insert into out select c_custkey, c_name from customer";
    let plan = crate::plan(&pair.ours, sql).await;
    let codec = MarquetryPhysicalCodec;
    let bytes = physical_plan_to_bytes_with_extension_codec(plan.clone(), &codec).unwrap();
    let task = pair.ours.task_ctx();
    let back = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
    assert_eq!(text(&back), text(&plan));
    collect(back, task).await.unwrap();
    let found = query(&pair.ours, "select count(*), min(name) from out").await;
    assert_eq!(engines::rows(&found), ["150|Customer#000000001"]);
    let plan = text(&crate::plan(&pair.ours, "select k from out order by k nulls last").await);
    assert!(!plan.contains("SortExec"), "{plan}");
}

#[tokio::test]
async fn portable_plans_stay_portable_in_logical_plans() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let ctx = engines::ours(SessionConfig::new());
    let path = folder.path().join("nation.parquet").display().to_string();
    let format =
        MarquetryFormat::new().with_settings(ScanSettings::new().with_portable_plans(true));
    let table = MarquetryTable::open_partitioned(&ctx.state(), [path], [], format).await.unwrap();
    ctx.register_table("nation", Arc::new(table)).unwrap();
    let plan = ctx.sql("select n_name from nation").await.unwrap();
    let codec = MarquetryLogicalCodec;
    let bytes = logical_plan_to_bytes_with_extension_codec(plan.logical_plan(), &codec).unwrap();
    let back =
        logical_plan_from_bytes_with_extension_codec(&bytes, &ctx.task_ctx(), &codec).unwrap();
    let plan = ctx.state().create_physical_plan(&back).await.unwrap();
    physical_plan_to_bytes(plan).expect("a scan that every worker understands");
}

#[tokio::test]
async fn a_worker_without_the_codec_says_so_or_reads_it_as_its_own() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let sql = "select o_orderkey from orders where o_totalprice > 200000";
    let pair = Pair::new(1);
    tables(&pair.ours, folder.path()).await;
    let plan = crate::plan(&pair.ours, sql).await;
    let error = physical_plan_to_bytes(plan).unwrap_err();
    assert!(error.to_string().contains("codec"), "{error}");
    // With portable plans, every worker understands them.
    let portable = engines::stock(SessionConfig::new().with_target_partitions(1));
    let factory =
        MarquetryFormatFactory::new().with_settings(ScanSettings::new().with_portable_plans(true));
    marquetry_datafusion::install!(&portable, factory).unwrap();
    tables(&portable, folder.path()).await;
    let plan = crate::plan(&portable, sql).await;
    assert!(text(&plan).contains("file_type=marquetry"), "{}", text(&plan));
    let bytes = physical_plan_to_bytes(plan).unwrap();
    let worker = engines::stock(SessionConfig::new());
    let task = worker.task_ctx();
    let back = datafusion_proto::bytes::physical_plan_from_bytes(&bytes, &task).unwrap();
    assert!(text(&back).contains("file_type=parquet"), "{}", text(&back));
    let mut found = engines::rows(&collect(back, task).await.unwrap());
    let mut expected = engines::rows(&query(&portable, sql).await);
    found.sort();
    expected.sort();
    assert!(!found.is_empty());
    assert_eq!(found, expected);
}

#[tokio::test]
async fn tables_and_copies_survive_in_logical_plans() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.001);
    let ctx = engines::ours(SessionConfig::new());
    let path = folder.path().join("nation.parquet").display().to_string();
    let table = MarquetryTable::open(&ctx.state(), [path]).await.unwrap();
    ctx.register_table("nation", Arc::new(table)).unwrap();
    let codec = MarquetryLogicalCodec;
    let plan = ctx.sql("select n_name from nation where n_regionkey = 2").await.unwrap();
    let expected = engines::rows(&plan.clone().collect().await.unwrap());
    let bytes = logical_plan_to_bytes_with_extension_codec(plan.logical_plan(), &codec).unwrap();
    let task = ctx.task_ctx();
    let back = logical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
    let found = ctx.execute_logical_plan(back).await.unwrap().collect().await.unwrap();
    assert_eq!(engines::rows(&found), expected);
    let out = folder.path().join("out.parquet");
    let copy = format!("COPY (select 1 as one) TO '{}' STORED AS PARQUET", out.display());
    let plan = ctx.state().create_logical_plan(&copy).await.unwrap();
    let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
    let back = logical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
    ctx.execute_logical_plan(back).await.unwrap().collect().await.unwrap();
    assert!(out.exists());
}

/// Where the workers are.
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

async fn worker_state(context: WorkerQueryContext) -> Result<SessionState> {
    Ok(context.builder.with_distributed_user_codec(MarquetryPhysicalCodec).build())
}

async fn state_without_codec(context: WorkerQueryContext) -> Result<SessionState> {
    Ok(context.builder.build())
}

/// A worker that listens on this machine.
async fn start_worker() -> Url {
    start(Worker::from_session_builder(worker_state)).await
}

async fn start(worker: Worker) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = worker.into_worker_server();
    tokio::spawn(async move {
        let accept = |listener: TcpListener| async {
            Some((listener.accept().await.map(|(stream, _)| stream), listener))
        };
        let incoming = Box::pin(futures::stream::unfold(listener, accept));
        Server::builder().add_service(service).serve_with_incoming(incoming).await
    });
    Url::parse(&url).unwrap()
}

/// A session that plans for these workers.
fn cluster(workers: Vec<Url>) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2).with_repartition_file_min_size(1);
    let state = SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_distributed_worker_resolver(Workers(workers))
        .with_distributed_user_codec(MarquetryPhysicalCodec)
        .with_distributed_planner()
        .with_distributed_file_scan_config_bytes_per_partition(100_000)
        .unwrap()
        .build();
    SessionContext::new_with_state(state)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_workers_without_the_codec_answer_and_with_portable_plans_they_give_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.02);
    let mut workers = Vec::new();
    for _ in 0..2 {
        workers.push(start(Worker::from_session_builder(state_without_codec)).await);
    }
    let sql = "select l_shipmode, count(*) from lineitem group by l_shipmode order by l_shipmode";
    let session = cluster(workers.clone());
    marquetry_datafusion::install!(&session).unwrap();
    tables(&session, folder.path()).await;
    let error = session.sql(sql).await.unwrap().collect().await.unwrap_err();
    // An error of the engine, before any codec of ours is asked: README explains it.
    assert!(error.to_string().contains("Can't find required codec in codec list"), "{error}");
    let session = cluster(workers);
    let factory =
        MarquetryFormatFactory::new().with_settings(ScanSettings::new().with_portable_plans(true));
    marquetry_datafusion::install!(&session, factory).unwrap();
    tables(&session, folder.path()).await;
    let alone = engines::stock(SessionConfig::new().with_target_partitions(1));
    tables(&alone, folder.path()).await;
    let expected = query(&alone, sql).await;
    assert_eq!(engines::rows(&query(&session, sql).await), engines::rows(&expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_give_the_rows_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.02);
    let workers = vec![start_worker().await, start_worker().await];
    let cluster = cluster(workers);
    marquetry_datafusion::install!(&cluster).unwrap();
    tables(&cluster, folder.path()).await;
    let alone = engines::stock(SessionConfig::new().with_target_partitions(1));
    tables(&alone, folder.path()).await;
    let mut distributed = 0;
    for (name, sql) in tpch_queries() {
        let plan = crate::plan(&cluster, &sql).await;
        let shown = display_plan_ascii(plan.as_ref(), false);
        if shown.contains("NetworkShuffleExec") && shown.contains("file_type=marquetry") {
            distributed += 1;
        }
        if name == "q12" {
            println!("{shown}");
        }
        let task: Arc<_> = cluster.task_ctx();
        let found = collect(plan as Arc<dyn ExecutionPlan>, task).await;
        let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        let expected = query(&alone, &sql).await;
        assert_eq!(engines::rows(&found), engines::rows(&expected), "{name}");
    }
    assert!(distributed > 10, "only {distributed} plans used the workers");
}
