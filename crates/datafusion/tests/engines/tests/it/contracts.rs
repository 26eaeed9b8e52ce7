//! Tests what DataFusion expects of a source beyond the rows: options with effect, metrics that
//! count, plans that tell.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use crate::{Pair, metric, plan, query, text};

/// 20 row groups of 20,000 rows, in pages of 4,000, with bloom filters.
fn write(path: &Path) {
    let ids = Int64Array::from_iter_values(0..400_000);
    let wild = Int64Array::from_iter_values((0..400_000).map(|i| i * 7919 % 400_000 * 2));
    let names = StringArray::from_iter_values((0..400_000).map(|i| format!("n{:06}", i / 3)));
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("wild", Arc::new(wild)),
        ("name", Arc::new(names)),
    ])
    .unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(20_000))
        .set_data_page_row_count_limit(4000)
        .set_write_batch_size(1000)
        .set_dictionary_enabled(false)
        .set_bloom_filter_enabled(true)
        .build();
    engines::write_with(path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), properties);
}

async fn table(pair: &Pair, folder: &Path) {
    let path = folder.join("t.parquet");
    write(&path);
    pair.table("t", &path).await;
}

async fn run(session: &SessionContext, sql: &str) -> (Arc<dyn ExecutionPlan>, Vec<String>) {
    let plan = plan(session, sql).await;
    let rows = collect(plan.clone(), session.task_ctx()).await.unwrap();
    (plan, engines::rows(&rows))
}

/// Pruned and matched, as a metric counts them.
pub fn pruning(plan: &Arc<dyn ExecutionPlan>, wanted: &str) -> (usize, usize) {
    let mut out = (0, 0);
    for metric in plan.metrics().iter().flat_map(|metrics| metrics.iter()) {
        if let MetricValue::PruningMetrics { name, pruning_metrics } = metric.value()
            && name == wanted
        {
            out.0 += pruning_metrics.pruned();
            out.1 += pruning_metrics.matched();
        }
    }
    for child in plan.children() {
        let (pruned, matched) = pruning(child, wanted);
        out = (out.0 + pruned, out.1 + matched);
    }
    out
}

#[tokio::test]
async fn metrics_count_what_was_pruned_and_by_what() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    table(&pair, folder.path()).await;
    let (plan, found) =
        run(&pair.ours, "select wild from t where id >= 48000 and id < 54000").await;
    assert_eq!(found.len(), 6000);
    assert_eq!(pruning(&plan, "row_groups_pruned_statistics"), (19, 1));
    assert_eq!(pruning(&plan, "page_index_pages_pruned"), (3, 2));
    assert_eq!(pruning(&plan, "page_index_rows_pruned"), (12_000, 8_000));
    assert_eq!(pruning(&plan, "row_groups_pruned_bloom_filter"), (0, 1));
    assert_eq!(metric(&plan, "pushdown_rows_matched"), 6000);
    assert_eq!(metric(&plan, "pushdown_rows_pruned"), 2000);
    for time in ["row_pushdown_eval_time", "statistics_eval_time", "page_index_eval_time"] {
        assert!(metric(&plan, time) > 0, "{time}");
    }
    let shown = format!("{:?}", plan.metrics());
    assert!(shown.contains("scan_efficiency_ratio"), "{shown}");
    // There are no odd values, which only a bloom filter shows.
    let (plan, found) = run(&pair.ours, "select id from t where wild = 9999").await;
    assert!(found.is_empty());
    let (pruned, matched) = pruning(&plan, "row_groups_pruned_bloom_filter");
    assert!(pruned > 15 && pruned + matched == 20, "{pruned} pruned, {matched} matched");
    assert!(metric(&plan, "bloom_filter_eval_time") > 0);
    // Rows that a limit leaves unread were not removed by the filter.
    let (plan, found) = run(&pair.ours, "select id from t where id >= 0 limit 10").await;
    assert_eq!(found.len(), 10);
    assert_eq!(metric(&plan, "pushdown_rows_pruned"), 0);
}

#[tokio::test]
async fn a_limit_reads_the_row_groups_of_which_all_rows_pass() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    table(&pair, folder.path()).await;
    let (plan, found) = run(&pair.ours, "select id from t where id >= 10000 limit 24000").await;
    assert_eq!(found.len(), 24_000);
    assert!(found.iter().all(|id| id.parse::<i64>().unwrap() >= 10_000));
    // The first has rows that do not pass; the next two have enough.
    assert_eq!(pruning(&plan, "limit_pruned_row_groups"), (18, 2));
    assert_eq!(metric(&plan, "pushdown_rows_pruned"), 0);
    let (_, found) = run(&pair.ours, "select id from t where id >= 392000 limit 24000").await;
    assert_eq!(found.len(), 8000);
}

#[tokio::test]
async fn options_that_switch_pruning_off_have_effect() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = "set datafusion.execution.parquet";
    let bloomed = "select id from t where wild = 9999";
    let sorted = "select wild from t where id >= 48000 and id < 54000";
    let mut scanned = Vec::new();
    for settings in [&[][..], &["bloom_filter_on_read"], &["pruning"]] {
        let pair = Pair::new(1);
        for setting in settings {
            pair.run(&format!("{parquet}.{setting} = false")).await;
        }
        table(&pair, folder.path()).await;
        pair.same(bloomed).await;
        assert_eq!(pair.same(sorted).await, 6000);
        let (plan, _) = run(&pair.ours, bloomed).await;
        let bloomed = metric(&plan, "bytes_scanned");
        let (plan, _) = run(&pair.ours, sorted).await;
        assert_eq!(text(&plan).contains("pruning_predicate"), settings != ["pruning"]);
        scanned.push((bloomed, metric(&plan, "bytes_scanned")));
    }
    let [(all_on, sorted), (no_bloom, _), (_, unpruned)] = scanned[..] else { unreachable!() };
    assert!(all_on * 2 < no_bloom, "{scanned:?}");
    assert!(sorted * 4 < unpruned, "{scanned:?}");
}

#[tokio::test]
async fn without_row_filters_pages_and_bloom_filters_still_prune() {
    use marquetry_datafusion::{MarquetryFormatFactory, ScanSettings};
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    let factory =
        MarquetryFormatFactory::new().with_settings(ScanSettings::new().with_pushdown(false));
    marquetry_datafusion::install!(&pair.ours, factory).unwrap();
    table(&pair, folder.path()).await;
    let sql = "select wild from t where id >= 48000 and id < 54000";
    assert_eq!(pair.same(sql).await, 6000);
    let (plan, _) = run(&pair.ours, sql).await;
    assert!(text(&plan).contains("FilterExec"), "{}", text(&plan));
    assert_eq!(pruning(&plan, "page_index_rows_pruned"), (12_000, 8_000));
    assert_eq!(metric(&plan, "pushdown_rows_pruned"), 0);
    let (plan, found) = run(&pair.ours, "select id from t where wild = 9999").await;
    assert!(found.is_empty());
    assert!(pruning(&plan, "row_groups_pruned_bloom_filter").0 > 15);
    for filter in ["wild % 600 = 2", "name like '%77' and id > 390000", "id in (3, 5000)"] {
        assert!(pair.same(&format!("select id, name from t where {filter}")).await > 0);
    }
}

#[tokio::test]
async fn plans_tell_what_is_pruned_by() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    table(&pair, folder.path()).await;
    for sql in ["select id from t where id > 7", "select id from t where name in ('a', 'n000700')"]
    {
        let (ours, stock) = (plan(&pair.ours, sql).await, plan(&pair.stock, sql).await);
        let shown = |plan| {
            let text = text(plan);
            let at = text.find("pruning_predicate=").unwrap_or_else(|| panic!("{text}"));
            text[at..].trim_end().to_owned()
        };
        assert_eq!(shown(&ours), shown(&stock));
    }
}

#[tokio::test]
async fn rows_tell_their_numbers_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for partitions in [1, 3] {
        let pair = Pair::new(partitions);
        table(&pair, folder.path()).await;
        for sql in [
            "select file_row_index() + 1, name from t where id % 7001 = 3",
            "select sum(n), count(*) from (select file_row_index() as n, id from t) where n = id",
            "select max(n), count(*) from (select file_row_index() as n from t)",
        ] {
            assert!(pair.same(sql).await > 0, "{sql}");
        }
    }
    let pair = Pair::new(1);
    table(&pair, folder.path()).await;
    let found = query(&pair.ours, "select file_row_index(), id from t where id = 54321").await;
    assert_eq!(engines::rows(&found), ["54321|54321"]);
}

#[tokio::test]
async fn a_table_can_ask_for_filters_above_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path);
    let pair = Pair::new(1);
    let sql = format!(
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}' \
         OPTIONS ('format.pushdown_filters' 'false')",
        path.display()
    );
    pair.run(&sql).await;
    let sql = "select id from t where id % 3001 = 0";
    assert!(text(&plan(&pair.ours, sql).await).contains("FilterExec"));
    assert!(pair.same(sql).await > 0);
}

#[tokio::test]
async fn a_scan_reserves_what_it_holds_from_the_pool() {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionConfig;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.parquet");
    let names = (0..40_000).map(|i| format!("{:0>200}", i * 7919 % 40_009));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let batch = RecordBatch::try_from_iter([("name", names)]).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(10_000))
        .set_dictionary_enabled(false);
    engines::write_with(
        &path,
        [Ok::<_, std::convert::Infallible>(batch)].into_iter(),
        properties.build(),
    );
    let read = async |bytes: usize| {
        let pool = Arc::new(GreedyMemoryPool::new(bytes));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool.clone()).build_arc().unwrap();
        let config = SessionConfig::new().with_target_partitions(1);
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        marquetry_datafusion::install!(&ctx).unwrap();
        engines::register(&ctx, "t", &path).await.unwrap();
        let plan = plan(&ctx, "select name from t").await;
        let mut stream = datafusion::physical_plan::execute_stream(plan, ctx.task_ctx())?;
        let (mut rows, mut most) = (0, 0);
        while let Some(batch) = futures::StreamExt::next(&mut stream).await {
            rows += batch?.num_rows();
            most = most.max(pool.reserved());
        }
        assert_eq!(pool.reserved(), 0);
        Ok::<_, datafusion::error::DataFusionError>((rows, most))
    };
    let (rows, most) = read(1 << 30).await.unwrap();
    assert_eq!(rows, 40_000);
    assert!(most > 100_000, "{most} bytes reserved");
    // A row group takes 2 MB, and an eighth of a pool is fetched ahead.
    let (rows, most) = read(6 << 20).await.unwrap();
    assert!(rows == 40_000 && most < 6 << 20, "{rows} rows, {most} bytes reserved");
    // A scan does not fail for the pool: a sort above it would have spilled.
    assert_eq!(read(10_000).await.unwrap().0, 40_000);
}

#[tokio::test]
async fn the_time_of_a_scan_and_the_skew_of_its_partitions_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(2);
    table(&pair, folder.path()).await;
    let skew = |plan: &Arc<dyn ExecutionPlan>| {
        let mut nodes = vec![Arc::clone(plan)];
        while let Some(node) = nodes.pop() {
            nodes.extend(node.children().into_iter().cloned());
            for metric in node.metrics().iter().flat_map(|metrics| metrics.iter()) {
                if metric.value().name() == "output_rows_skew" {
                    return Some(metric.value().to_string());
                }
            }
        }
        None
    };
    for sql in ["select id, name from t where wild % 3 > 0", "select id from t where id < 100000"] {
        let (ours, _) = run(&pair.ours, sql).await;
        let (stock, _) = run(&pair.stock, sql).await;
        let nanos = metric(&ours, "elapsed_compute");
        assert!(nanos > 100_000, "{nanos} ns: {sql}");
        // Each partition returns as many rows in both, unless one took work of the other.
        let (ours, stock) = (skew(&ours), skew(&stock));
        println!("skew {ours:?}, of DataFusion's own source {stock:?}: {sql}");
        assert!(ours.is_some_and(|skew| skew.ends_with('%')), "{sql}");
    }
    let alone = Pair::new(1);
    table(&alone, folder.path()).await;
    let sql = "select id from t where wild % 3 > 0";
    let (ours, _) = run(&alone.ours, sql).await;
    let (stock, _) = run(&alone.stock, sql).await;
    assert_eq!(skew(&ours), skew(&stock));
}
