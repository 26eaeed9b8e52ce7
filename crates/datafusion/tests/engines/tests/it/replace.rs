//! Tests the rule that replaces scans of DataFusion's own source, and the scans that it leaves.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::*;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, ParquetFileReaderFactory};
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use marquetry_datafusion::{ReplaceParquet, ScanSettings};

use crate::{query, text};

fn session(in_front: bool) -> SessionContext {
    let mut rules = PhysicalOptimizer::new().rules;
    let at = if in_front { 0 } else { rules.len() };
    rules.insert(at, Arc::new(ReplaceParquet::new()));
    let config = SessionConfig::new().with_target_partitions(2).with_repartition_file_min_size(1);
    let state = SessionStateBuilder::new_with_default_features().with_config(config);
    SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build())
}

fn write(folder: &Path) -> String {
    let id = Int64Array::from_iter_values(0..4000);
    let name = StringArray::from_iter_values((0..4000).map(|i| format!("n{}", i % 7)));
    let columns = [("id", Arc::new(id) as ArrayRef), ("name", Arc::new(name))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = folder.join("t.parquet");
    engines::write(&path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), 500);
    path.display().to_string()
}

#[tokio::test]
async fn tables_that_datafusion_registers_are_read_by_us() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let stock = engines::stock(SessionConfig::new());
    stock.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
    for in_front in [true, false] {
        let ctx = session(in_front);
        ctx.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
        for sql in [
            "select * from t",
            "select id from t where name = 'n3' and id % 2 = 0",
            "select name, count(*) from t where id > 900 group by name",
            "select id from t order by id desc limit 5",
            "select count(*) from t",
        ] {
            let plan = crate::plan(&ctx, sql).await;
            let plan = text(&plan);
            assert!(!plan.contains("file_type=parquet"), "{plan}");
            let (mut found, mut expected) =
                (engines::rows(&query(&ctx, sql).await), engines::rows(&query(&stock, sql).await));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{sql}");
        }
    }
    let ctx = session(true);
    ctx.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
    let plan = text(&crate::plan(&ctx, "select id from t where name = 'n3'").await);
    assert!(plan.contains("file_type=marquetry") && !plan.contains("FilterExec"), "{plan}");
}

#[tokio::test]
async fn a_scan_that_leaves_out_rows_stays_where_ours_would_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let mut config = SessionConfig::new();
    let sql = "select id from t where name = 'n3'";
    for filters_rows in [true, false] {
        config.options_mut().execution.parquet.pushdown_filters = filters_rows;
        let ctx = engines::stock(config.clone());
        ctx.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
        let mut expected = engines::rows(&query(&ctx, sql).await);
        expected.sort();
        for (settings, stays) in [
            (ScanSettings::new(), false),
            (ScanSettings::new().with_pushdown(false), filters_rows),
            (ScanSettings::new().with_portable_plans(true), filters_rows),
        ] {
            let stock = crate::plan(&ctx, sql).await;
            assert_eq!(!text(&stock).contains("FilterExec"), filters_rows);
            let rule = ReplaceParquet::new().with_settings(settings);
            let plan = rule.optimize(stock, config.options()).unwrap();
            assert_eq!(text(&plan).contains("file_type=parquet"), stays, "{}", text(&plan));
            let found = datafusion::physical_plan::collect(plan, ctx.task_ctx()).await.unwrap();
            let mut found = engines::rows(&found);
            found.sort();
            assert_eq!(found, expected);
        }
    }
}

#[tokio::test]
async fn the_rule_keeps_the_metadata_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let ctx = engines::stock(SessionConfig::new());
    ctx.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
    let runtime = SessionContext::new().runtime_env();
    let cache = runtime.cache_manager.get_file_metadata_cache();
    let rule = ReplaceParquet::new().with_metadata_cache(cache.clone());
    let stock = crate::plan(&ctx, "select sum(id) from t").await;
    let plan = rule.optimize(stock, SessionConfig::new().options()).unwrap();
    assert_eq!(cache.len(), 0);
    datafusion::physical_plan::collect(plan, ctx.task_ctx()).await.unwrap();
    assert_eq!(cache.len(), 1);
}

#[tokio::test]
async fn the_rule_gives_scans_the_memory_pool() {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use futures::StreamExt;
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let ctx = engines::stock(SessionConfig::new().with_target_partitions(1).with_batch_size(100));
    ctx.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
    let stock = crate::plan(&ctx, "select id, name from t").await;
    let reserved = async |rule: ReplaceParquet, pool: Arc<dyn MemoryPool>| {
        let plan = rule.optimize(stock.clone(), SessionConfig::new().options()).unwrap();
        let mut stream = plan.execute(0, ctx.task_ctx()).unwrap();
        stream.next().await.unwrap().unwrap();
        pool.reserved()
    };
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
    assert_eq!(reserved(ReplaceParquet::new(), pool.clone()).await, 0);
    let rule = ReplaceParquet::new().with_memory_pool(pool.clone());
    assert!(reserved(rule, pool.clone()).await > 1000);
    assert_eq!(pool.reserved(), 0);
}

/// A reader of the caller's.
#[derive(Debug)]
struct OwnReader;

/// One whose name begins as that of one of DataFusion's.
#[derive(Debug)]
struct CachedParquetFileReaderFactoryOfMine;

macro_rules! unread {
    ($factory:ty) => {
        impl ParquetFileReaderFactory for $factory {
            fn create_reader(
                &self,
                _partition: usize,
                _file: PartitionedFile,
                _hint: Option<usize>,
                _metrics: &ExecutionPlanMetricsSet,
            ) -> datafusion::error::Result<Box<dyn AsyncFileReader + Send>> {
                unreachable!("nothing is read")
            }
        }
    };
}

unread!(OwnReader);
unread!(CachedParquetFileReaderFactoryOfMine);

#[test]
fn what_is_not_understood_stays_as_it_was() {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let scan = |source: ParquetSource, file: PartitionedFile| -> Arc<dyn ExecutionPlan> {
        let url = ObjectStoreUrl::local_filesystem();
        let config = FileScanConfigBuilder::new(url, Arc::new(source)).with_file(file).build();
        DataSourceExec::from_data_source(config)
    };
    let stays = |plan: Arc<dyn ExecutionPlan>| {
        let config = SessionConfig::new();
        let found = ReplaceParquet::new().optimize(plan, config.options()).unwrap();
        let text = text(&found);
        assert!(text.contains("file_type="), "{text}");
        text.contains("file_type=parquet")
    };
    let file = || PartitionedFile::new("t.parquet", 1000);
    let source = || ParquetSource::new(schema.clone());
    assert!(!stays(scan(source(), file())));
    let planned = file().with_extension(ParquetAccessPlan::new_all(1));
    assert!(!stays(scan(source(), planned.clone())), "an access plan");
    assert!(stays(scan(source(), planned.with_extension(7u8))), "an extension of the caller's");
    let own = source().with_parquet_file_reader_factory(Arc::new(OwnReader));
    assert!(stays(scan(own, file())), "a reader of the caller's");
    let factory = Arc::new(CachedParquetFileReaderFactoryOfMine);
    let own = source().with_parquet_file_reader_factory(factory);
    assert!(stays(scan(own, file())), "a reader with a name much like one of DataFusion's");
    let mut options = source().table_parquet_options().clone();
    options.crypto.factory_id = Some("keys".into());
    assert!(stays(scan(source().with_table_parquet_options(options), file())), "keys");
    let mut options = source().table_parquet_options().clone();
    options.global.coerce_int96 = Some("days".into());
    assert!(
        stays(scan(source().with_table_parquet_options(options), file())),
        "a value that is none"
    );
}

#[tokio::test]
async fn the_rows_that_an_extension_of_a_file_chooses_are_read() {
    use datafusion::datasource::physical_plan::parquet::{ParquetRowSelection, RowGroupAccess};
    use datafusion::parquet::arrow::arrow_reader::{RowSelection as StockSelection, RowSelector};
    use datafusion::physical_plan::collect;
    use marquetry::RowSelection;
    use marquetry_datafusion::MarquetrySource;

    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let fields =
        vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)];
    let schema = Arc::new(Schema::new(fields));
    let file = || PartitionedFile::from_path(path.clone()).unwrap();
    let ids = async |file: PartitionedFile| {
        let source = Arc::new(MarquetrySource::new(schema.clone()));
        let url = ObjectStoreUrl::local_filesystem();
        let config = FileScanConfigBuilder::new(url, source).with_file(file);
        let plan = DataSourceExec::from_data_source(config.build());
        let found = collect(plan, SessionContext::new().task_ctx()).await?;
        let ids = engines::rows(&found).into_iter();
        Ok::<_, datafusion::error::DataFusionError>(
            ids.map(|row| row.split('|').next().unwrap().parse::<i64>().unwrap())
                .collect::<Vec<_>>(),
        )
    };
    let part = StockSelection::from(vec![
        RowSelector::skip(100),
        RowSelector::select(7),
        RowSelector::skip(393),
    ]);
    let mut groups = vec![RowGroupAccess::Skip; 8];
    groups[1] = RowGroupAccess::Scan;
    groups[3] = RowGroupAccess::Selection(part);
    let access = file().with_extension(ParquetAccessPlan::new(groups));
    let expected: Vec<i64> = (500..1000).chain(1600..1607).collect();
    assert_eq!(ids(access.clone()).await.unwrap(), expected);
    // The same through a scan of DataFusion's own source, as table formats make it.
    let source = Arc::new(ParquetSource::new(schema.clone()));
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file(access.clone());
    let stock = DataSourceExec::from_data_source(config.build());
    let swapped = ReplaceParquet::new().optimize(stock.clone(), SessionConfig::new().options());
    let swapped = swapped.unwrap();
    assert!(text(&swapped).contains("file_type=marquetry"));
    let task = SessionContext::new().task_ctx();
    let found = engines::rows(&collect(swapped, task.clone()).await.unwrap());
    assert_eq!(found, engines::rows(&collect(stock, task).await.unwrap()));
    let whole = vec![RowSelector::skip(3990), RowSelector::select(10)];
    let whole = ParquetRowSelection::new(StockSelection::from(whole));
    let chosen = file().with_extension(whole);
    assert_eq!(ids(chosen).await.unwrap(), (3990..4000).collect::<Vec<_>>());
    let ours = RowSelection::from_ranges(4000, std::iter::once(3..5)).unwrap();
    assert_eq!(ids(file().with_extension(ours.clone())).await.unwrap(), [3, 4]);
    let error = ids(access.with_extension(ours)).await.unwrap_err();
    assert!(error.to_string().contains("t.parquet"), "{error}");
    // Selects rows of another file.
    let short = StockSelection::from(vec![RowSelector::select(10)]);
    let error = ids(file().with_extension(ParquetRowSelection::new(short))).await.unwrap_err();
    assert!(error.to_string().contains("4000"), "{error}");
    let error = ids(file().with_extension(ParquetAccessPlan::new_all(3))).await.unwrap_err();
    assert!(error.to_string().contains("8 row groups"), "{error}");
}
