//! What DataFusion plans by, and what it is told: statistics, orders, metrics, caches, learned filters.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use crate::{Pair, metric, plan, query, text};

/// Sorted by `id`; `wild` is in no order.
fn table(rows: i64) -> RecordBatch {
    let id = Int64Array::from_iter_values(0..rows);
    let wild = Int64Array::from_iter_values((0..rows).map(|i| i * 7919 % rows));
    let float =
        Float64Array::from_iter_values((0..rows).map(|i| if i == 5 { f64::NAN } else { i as f64 }));
    let name = StringArray::from_iter_values((0..rows).map(|i| format!("n{:05}", i / 3)));
    RecordBatch::try_from_iter([
        ("id", Arc::new(id) as ArrayRef),
        ("wild", Arc::new(wild)),
        ("float", Arc::new(float)),
        ("name", Arc::new(name)),
    ])
    .unwrap()
}

fn write(path: &std::path::Path, batch: RecordBatch, row_group: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(row_group))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(100)
        .build();
    engines::write_with(path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), properties);
}

async fn run(session: &SessionContext, sql: &str) -> (Arc<dyn ExecutionPlan>, Vec<RecordBatch>) {
    let plan = plan(session, sql).await;
    let rows = collect(plan.clone(), session.task_ctx()).await.unwrap();
    (plan, rows)
}

#[tokio::test]
async fn statistics_answer_counts_and_bounds_but_not_of_floats_with_nans() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, table(3000), 500);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let (plan, found) =
        run(&pair.ours, "select count(*), min(id), max(id), count(name) from t").await;
    assert_eq!(engines::rows(&found), ["3000|0|2999|3000"]);
    assert!(!text(&plan).contains("DataSourceExec"), "{}", text(&plan));
    // The bounds in the file do not tell of NaN.
    let (plan, found) = run(&pair.ours, "select max(float) from t").await;
    assert_eq!(engines::rows(&found), ["NaN"]);
    assert!(text(&plan).contains("DataSourceExec"), "{}", text(&plan));
}

#[tokio::test]
async fn row_groups_and_pages_are_pruned_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, table(4000), 500);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let (plan, found) = run(&pair.ours, "select wild from t where id >= 1200 and id < 1300").await;
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
    let (all, _) = run(&pair.ours, "select wild, id from t").await;
    assert!(metric(&plan, "bytes_scanned") > 0);
    assert!(metric(&plan, "bytes_scanned") < metric(&all, "bytes_scanned") / 4);
    assert_eq!(metric(&plan, "pushdown_rows_matched"), 100);
    let pruned = format!("{:?}", plan.metrics());
    assert!(pruned.contains("row_groups_pruned_statistics"), "{pruned}");
    let (plan, _) = run(&pair.ours, "select wild from t where name = 'n00700'").await;
    assert_eq!(metric(&plan, "pushdown_rows_matched"), 3);
}

#[tokio::test]
async fn orders_in_files_spare_sorts() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(2);
    write(&folder.path().join("raw.parquet"), table(3000), 500);
    pair.table("raw", &folder.path().join("raw.parquet")).await;
    // The sort order goes into the file with COPY, and comes back with the table.
    let sorted = folder.path().join("sorted.parquet");
    let copy = format!(
        "CREATE EXTERNAL TABLE written (id bigint, wild bigint) STORED AS PARQUET \
         WITH ORDER (wild ASC NULLS LAST) LOCATION '{}/w/'",
        folder.path().display()
    );
    query(&pair.ours, &copy).await;
    query(&pair.ours, "insert into written select id, wild from raw").await;
    let _ = sorted;
    let (plan, found) = run(&pair.ours, "select wild from written order by wild").await;
    assert!(!text(&plan).contains("SortExec"), "{}", text(&plan));
    let expected = query(&pair.stock, "select wild from raw order by wild").await;
    assert_eq!(engines::rows(&found), engines::rows(&expected));
    let read = format!(
        "CREATE EXTERNAL TABLE again STORED AS PARQUET LOCATION '{}/w/'",
        folder.path().display()
    );
    query(&pair.ours, &read).await;
    let plan = plan_of(&pair.ours, "select wild from again").await;
    assert!(plan.contains("output_ordering=[wild@0 ASC NULLS LAST]"), "{plan}");
}

async fn plan_of(session: &SessionContext, sql: &str) -> String {
    text(&plan(session, sql).await)
}

#[tokio::test]
async fn the_first_of_many_rows_are_found_without_reading_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, table(20_000), 500);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    for order in ["id desc", "id", "wild desc, id", "name desc, id", "float"] {
        pair.same_order(&format!("select id, wild from t order by {order} limit 7")).await;
    }
    // DataFusion's own source loses the NaN, of which no bound tells, to a pruned row group.
    let found = query(&pair.ours, "select id from t order by float desc limit 2").await;
    assert_eq!(engines::rows(&found), ["5", "19999"]);
    let (plan, _) = run(&pair.ours, "select id, wild from t order by id desc limit 7").await;
    let (all, _) = run(&pair.ours, "select id, wild from t").await;
    let (few, many) = (metric(&plan, "bytes_scanned"), metric(&all, "bytes_scanned"));
    assert!(few * 8 < many, "{few} of {many} bytes: {}", text(&plan));
    assert!(metric(&plan, "row_groups_pruned_dynamic_filter") > 30, "{:?}", plan.metrics());
    assert!(text(&plan).contains("dynamic_rg_pruning=eligible"), "{}", text(&plan));
}

#[tokio::test]
async fn joins_prune_the_side_that_is_probed() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("big.parquet"), table(20_000), 500);
    write(&folder.path().join("small.parquet"), table(30), 500);
    let pair = Pair::new(1);
    pair.table("big", &folder.path().join("big.parquet")).await;
    pair.table("small", &folder.path().join("small.parquet")).await;
    let sql = "select big.wild, small.name from big join small on big.id = small.id + 900 where small.wild > 3";
    assert!(pair.same(sql).await > 0);
    let sql =
        "select big.wild, small.name from big join small on big.id = small.id where small.wild > 3";
    assert!(pair.same(sql).await > 0);
    let (plan, _) = run(&pair.ours, sql).await;
    let (all, _) = run(&pair.ours, "select id, wild from big").await;
    let (few, many) = (metric(&plan, "bytes_scanned"), metric(&all, "bytes_scanned"));
    assert!(few * 3 < many, "{few} of {many} bytes: {}", text(&plan));
}

#[tokio::test]
async fn the_metadata_of_a_file_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, table(1000), 500);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let cache = pair.ours.runtime_env().cache_manager.get_file_metadata_cache();
    assert_eq!(cache.len(), 1);
    query(&pair.ours, "select sum(id) from t").await;
    query(&pair.ours, "select sum(wild) from t where id > 7").await;
    assert_eq!(cache.len(), 1);
}

#[tokio::test]
async fn errors_say_which_file_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.parquet");
    write(&path, table(1000), 500);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[5..200].fill(0xAB);
    std::fs::write(&path, bytes).unwrap();
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let error = pair.ours.sql("select id from t").await.unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("broken.parquet"), "{error}");
}
