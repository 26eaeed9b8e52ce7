//! Tests what DataFusion plans by, and what it is told: statistics, orders, metrics, caches,
//! learned filters.

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
    // The bounds in the file exclude NaN.
    let (plan, found) = run(&pair.ours, "select max(float) from t").await;
    assert_eq!(engines::rows(&found), ["NaN"]);
    assert!(text(&plan).contains("DataSourceExec"), "{}", text(&plan));
    // Nor do they show whether the file can be left out.
    let found = query(&pair.ours, "select id from t where float > 1e18").await;
    assert_eq!(engines::rows(&found), ["5"]);
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
    let copy = format!(
        "CREATE EXTERNAL TABLE written (id bigint, wild bigint) STORED AS PARQUET \
         WITH ORDER (wild ASC NULLS LAST) LOCATION '{}/w/'",
        folder.path().display()
    );
    query(&pair.ours, &copy).await;
    query(&pair.ours, "insert into written select id, wild from raw").await;
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
    // DataFusion's own source loses the NaN, which no bound covers, to a pruned row group.
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
async fn a_learned_filter_lets_no_row_in_beyond_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let x = Int64Array::from_iter_values(0..400);
    // The rows that are least come after the first 100.
    let y = (0..400).map(|x| match x {
        0..50 => 1000 + x,
        50..100 => 5000,
        _ => x,
    });
    let y = Int64Array::from_iter_values(y);
    let batch = RecordBatch::try_from_iter([("x", Arc::new(x) as ArrayRef), ("y", Arc::new(y))]);
    write(&path, batch.unwrap(), 50);
    write(&folder.path().join("small.parquet"), table(3), 50);
    let pair = Pair::new(1);
    let sql = format!(
        "CREATE EXTERNAL TABLE t (x bigint, y bigint) STORED AS PARQUET WITH ORDER (x) \
         LOCATION '{}'",
        path.display()
    );
    pair.run(&sql).await;
    pair.table("small", &folder.path().join("small.parquet")).await;
    let first = "(select * from t order by x limit 100)";
    let sql = format!("select * from {first} order by y limit 5");
    let plan = plan_of(&pair.ours, &sql).await;
    assert!(plan.contains("limit=100"), "{plan}");
    let found = engines::rows(&query(&pair.ours, &sql).await);
    assert_eq!(found, ["0|1000", "1|1001", "2|1002", "3|1003", "4|1004"], "{plan}");
    let sql = format!("select s.id, f.x from small s join {first} f on s.id + 100 = f.y");
    assert_eq!(engines::rows(&query(&pair.ours, &sql).await), Vec::<String>::new());
}

#[tokio::test]
async fn an_object_that_was_replaced_is_not_read_by_the_old_footer() {
    use datafusion::object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};
    let folder = tempfile::tempdir().unwrap();
    let bytes = |rows: i64| {
        let path = folder.path().join("t.parquet");
        write(&path, table(rows), 500);
        std::fs::read(&path).unwrap()
    };
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    store.put(&"t.parquet".into(), bytes(1000).into()).await.unwrap();
    let ctx = engines::ours(Default::default());
    let url = url::Url::parse("mem://store").unwrap();
    ctx.register_object_store(&url, Arc::clone(&store));
    let sql = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mem://store/t.parquet'";
    query(&ctx, sql).await;
    let planned = plan(&ctx, "select sum(id) from t").await;
    assert_eq!(engines::rows(&query(&ctx, "select sum(id) from t").await), ["499500"]);
    store.put(&"t.parquet".into(), bytes(1100).into()).await.unwrap();
    let error = collect(planned, ctx.task_ctx()).await.unwrap_err();
    assert!(error.to_string().contains("t.parquet"), "{error}");
    // The same of a local file.
    let (path, other) = (folder.path().join("t.parquet"), folder.path().join("other.parquet"));
    engines::register(&ctx, "local", &path).await.unwrap();
    let planned = plan(&ctx, "select sum(id) from local").await;
    std::fs::copy(&path, &other).unwrap();
    assert_eq!(engines::rows(&query(&ctx, "select sum(id) from local").await), ["604450"]);
    write(&other, table(1100), 400);
    std::fs::rename(other, path).unwrap();
    let error = collect(planned, ctx.task_ctx()).await.unwrap_err();
    assert!(error.to_string().contains("replaced"), "{error}");
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

#[tokio::test]
async fn field_ids_and_required_columns_are_pruned_as_all_others() {
    use datafusion::arrow::datatypes::*;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    // As Iceberg writes them.
    let field = |(i, field): (usize, &FieldRef)| {
        let id = ("PARQUET:field_id".to_owned(), i.to_string());
        field.as_ref().clone().with_nullable(false).with_metadata([id].into())
    };
    let batch = table(4000);
    let fields: Vec<Field> = batch.schema().fields().iter().enumerate().map(field).collect();
    let batch =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).unwrap();
    write(&path, batch, 500);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    pair.run(&format!(
        "CREATE EXTERNAL TABLE declared (id bigint, wild bigint, float double, name varchar) \
         STORED AS PARQUET LOCATION '{}'",
        path.display()
    ))
    .await;
    let (all, _) = run(&pair.ours, "select wild, name from t").await;
    for table in ["t", "declared"] {
        for filter in
            ["name like 'n0070%'", "name in ('n00701', 'n00703')", "id = 2105 or id = 2110"]
        {
            let sql = format!("select wild, name from {table} where {filter}");
            assert!(pair.same(&sql).await > 1, "{sql}");
            let (plan, _) = run(&pair.ours, &sql).await;
            let (few, many) = (metric(&plan, "bytes_scanned"), metric(&all, "bytes_scanned"));
            assert!(few * 4 < many, "{few} of {many} bytes: {sql}");
        }
    }
}

#[tokio::test]
async fn a_scan_whose_filter_passes_nothing_lets_other_tasks_run() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, table(20_000), 200);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            counting.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let plan = plan(&pair.ours, "select name from t where wild % 7 = 9").await;
    let before = turns.load(Ordering::Relaxed);
    collect(plan, pair.ours.task_ctx()).await.unwrap();
    let during = turns.load(Ordering::Relaxed) - before;
    other.abort();
    // One row group at a time, of a hundred.
    assert!(during >= 100, "{during} turns");
}

#[tokio::test]
async fn limits_hold_for_the_files_of_a_table() {
    use marquetry::Limits;
    use marquetry_datafusion::{MarquetryFormat, MarquetryTable, ScanSettings};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, table(1000), 500);
    let open = async |limits: Limits| {
        let ctx = SessionContext::new();
        let (state, format) = (
            ctx.state(),
            MarquetryFormat::new().with_settings(ScanSettings::new().with_limits(limits)),
        );
        let table = MarquetryTable::open_partitioned(&state, [path.to_str().unwrap()], [], format);
        ctx.register_table("t", Arc::new(table.await?))?;
        ctx.sql("select sum(id) from t").await?.collect().await
    };
    assert_eq!(engines::rows(&open(Limits::default()).await.unwrap()), ["499500"]);
    let mut small = Limits::default();
    small.footer_bytes = 100;
    assert!(open(small).await.unwrap_err().to_string().contains("100"));
    let mut small = Limits::default();
    small.memory_bytes = 1000;
    assert!(open(small).await.unwrap_err().to_string().contains("t.parquet"));
}
