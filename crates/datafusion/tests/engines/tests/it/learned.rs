//! Tests filters that are learned while a query runs: what they leave out, and what is fetched
//! meanwhile.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfigBuilder;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, DynamicFilterPhysicalExpr, NotExpr, col, lit,
};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use fastrand::Rng;
use futures::StreamExt;
use marquetry_datafusion::MarquetrySource;

use crate::{Pair, metric, plan};

/// Rows of a row group.
pub const GROUP: i64 = 20_000;

/// Sorted by `id`; `wild` is in no order.
pub fn write(path: &Path, row_groups: i64) -> SchemaRef {
    let rows = row_groups * GROUP;
    let wild = Int64Array::from_iter_values((0..rows).map(|i| i * 7919 % rows));
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
        ("wild", Arc::new(wild)),
    ])
    .unwrap();
    let schema = batch.schema();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP as usize))
        .set_data_page_row_count_limit(2000)
        .set_write_batch_size(1000)
        .set_dictionary_enabled(false)
        .build();
    engines::write_with(path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), properties);
    schema
}

/// A scan whose filter is still to be learned.
pub struct Scan {
    pub filter: Arc<DynamicFilterPhysicalExpr>,
    column: Arc<dyn PhysicalExpr>,
    pub plan: Arc<dyn ExecutionPlan>,
    pub stream: SendableRecordBatchStream,
}

impl Scan {
    fn new(path: &Path, schema: SchemaRef) -> Self {
        let source = MarquetrySource::new(schema.clone());
        Self::over(path, source, col("id", &schema).unwrap())
    }

    /// A scan whose filter will be one of `column`.
    pub fn over(path: &Path, source: MarquetrySource, column: Arc<dyn PhysicalExpr>) -> Self {
        let filter = DynamicFilterPhysicalExpr::new(vec![Arc::clone(&column)], lit(true));
        let filter = Arc::new(filter);
        let plan = scan_of(path, source.with_filter(filter.clone()));
        let config = SessionConfig::new().with_batch_size(1000);
        let task = SessionContext::new_with_config(config).task_ctx();
        let stream = plan.execute(0, task).unwrap();
        Self { filter, column, plan, stream }
    }

    /// Learns that only rows are wanted in which the column is at least `from`.
    pub fn learn(&self, from: i64) {
        let test = BinaryExpr::new(Arc::clone(&self.column), Operator::GtEq, lit(from));
        self.filter.update(Arc::new(test)).unwrap();
    }

    /// The first and the last id of the next batch.
    pub async fn next(&mut self) -> Option<(i64, i64)> {
        // The bytes that are being fetched arrive meanwhile.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let batch = self.stream.next().await?.unwrap();
        let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        Some((ids.value(0), ids.value(ids.len() - 1)))
    }

    async fn rest(&mut self) -> (i64, i64) {
        let (first, mut last) = self.next().await.unwrap();
        while let Some((_, end)) = self.next().await {
            last = end;
        }
        (first, last)
    }

    pub fn fetched(&self) -> usize {
        metric(&self.plan, "bytes_scanned")
    }
}

#[tokio::test]
async fn the_next_row_group_is_fetched_while_one_is_decoded_and_not_fetched_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = write(&path, 4);
    let mut scan = Scan::new(&path, schema.clone());
    assert_eq!(scan.next().await, Some((0, 999)));
    let one = scan.fetched();
    scan.learn(3);
    for i in 1..5 {
        assert_eq!(scan.next().await, Some((i * 1000, i * 1000 + 999)));
    }
    let two = scan.fetched();
    assert!(two > one * 18 / 10 && two < one * 22 / 10, "{one} bytes, then {two}");
    // With the filter that is learned now, half of the fetched row group is not wanted.
    scan.learn(GROUP * 3 / 2);
    assert_eq!(scan.rest().await.1, GROUP * 4 - 1);
    let all = scan.fetched();
    assert!(all < one * 42 / 10, "{one} bytes, then {all}");
    // A row group that is excluded as a whole is not decoded.
    let mut scan = Scan::new(&path, schema);
    scan.next().await;
    for _ in 1..5 {
        scan.next().await;
    }
    assert!(scan.fetched() > one * 18 / 10);
    scan.learn(GROUP * 7 / 2);
    while let Some((first, last)) = scan.next().await {
        if first >= GROUP {
            assert_eq!((first, last / GROUP), (GROUP * 7 / 2, 3));
            break;
        }
    }
    assert_eq!(metric(&scan.plan, "row_groups_pruned_dynamic_filter"), 2);
    while scan.next().await.is_some() {}
    assert!(scan.fetched() < one * 3, "{one} bytes, then {}", scan.fetched());
}

#[tokio::test]
async fn a_filter_that_will_not_change_opens_all_row_groups_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = write(&path, 4);
    let mut scan = Scan::new(&path, schema);
    assert_eq!(scan.next().await, Some((0, 999)));
    scan.learn(GROUP / 2);
    scan.filter.mark_complete();
    assert_eq!(scan.rest().await.1, GROUP * 4 - 1);
    assert_eq!(metric(&scan.plan, "row_groups_pruned_dynamic_filter"), 0);
}

#[tokio::test]
async fn the_bounds_of_one_column_say_nothing_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let n = Int64Array::from_iter_values(0..30_000);
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(n) as ArrayRef),
        ("k", Arc::new(Int64Array::from_iter_values((0..30_000).map(|i| i % 1000)))),
    ]);
    let batch = batch.unwrap();
    let schema = batch.schema();
    engines::write(&path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), 30_000);
    let (id, k) = (col("id", &schema).unwrap(), col("k", &schema).unwrap());
    let test = |left: Arc<dyn PhysicalExpr>, op, right: i64| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, op, lit(right)))
    };
    let and = |a, b| -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(a, Operator::And, b)) };
    let bounds = and(test(k.clone(), Operator::GtEq, 0), test(k.clone(), Operator::LtEq, 998));
    let seventh = test(test(id.clone(), Operator::Modulo, 7), Operator::Eq, 3);
    let filter = Arc::new(DynamicFilterPhysicalExpr::new(vec![id, k], lit(true)));
    filter.update(and(bounds, Arc::new(NotExpr::new(seventh)))).unwrap();
    let source = MarquetrySource::new(schema).with_filter(filter);
    let found = collect(scan_of(&path, source), SessionContext::new().task_ctx()).await.unwrap();
    let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
    let expected = (0..30_000).filter(|i| i % 1000 <= 998 && i % 7 != 3).count();
    assert_eq!(rows, expected);
}

fn scan_of(path: &Path, source: MarquetrySource) -> Arc<dyn ExecutionPlan> {
    let size = std::fs::metadata(path).unwrap().len();
    let file = PartitionedFile::new(path.to_str().unwrap(), size);
    let url = ObjectStoreUrl::local_filesystem();
    let config = FileScanConfigBuilder::new(url, Arc::new(source)).with_file(file).build();
    DataSourceExec::from_data_source(config)
}

/// Two engines that join on several partitions, however small the tables are.
fn partitioned(partitions: usize) -> Pair {
    let config = || {
        let mut config = SessionConfig::new().with_target_partitions(partitions);
        config = config.with_repartition_file_min_size(1);
        let options = &mut config.options_mut().optimizer;
        options.hash_join_single_partition_threshold = 0;
        options.hash_join_single_partition_threshold_rows = 0;
        config
    };
    Pair { stock: engines::stock(config()), ours: engines::ours(config()) }
}

#[tokio::test]
async fn joins_on_several_partitions_prune_by_the_bounds_of_all_keys() {
    let folder = tempfile::tempdir().unwrap();
    let (big, small) = (folder.path().join("big.parquet"), folder.path().join("small.parquet"));
    write(&big, 12);
    let keys = Int64Array::from_iter_values((0..3000).map(|i| 150_000 + i));
    let batch = RecordBatch::try_from_iter([("k", Arc::new(keys) as ArrayRef)]).unwrap();
    engines::write(&small, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), 1000);
    for partitions in [2, 3, 4] {
        let pair = partitioned(partitions);
        pair.table("big", &big).await;
        pair.table("small", &small).await;
        let sql = "select big.id, big.wild from small join big on small.k = big.id";
        assert_eq!(pair.same(sql).await, 3000);
        let plan = plan(&pair.ours, sql).await;
        collect(plan.clone(), pair.ours.task_ctx()).await.unwrap();
        // The keys are in one row group.
        let (few, all) = (metric(&plan, "bytes_scanned"), std::fs::metadata(&big).unwrap().len());
        assert!(few * 6 < all as usize, "{few} of {all} bytes, {partitions} partitions");
    }
}

#[tokio::test]
async fn keys_of_a_partition_that_are_all_null_take_nothing_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (big, small) = (folder.path().join("big.parquet"), folder.path().join("small.parquet"));
    write(&big, 2);
    for keys in [vec![None, Some(7)], vec![None, Some(7), Some(39_000)], vec![None, None]] {
        let expected = keys.iter().flatten().count();
        let keys: ArrayRef = Arc::new(Int64Array::from(keys));
        let batch = RecordBatch::try_from_iter([("k", keys)]).unwrap();
        engines::write(&small, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), 1000);
        for partitions in [2, 3, 4, 7] {
            let pair = partitioned(partitions);
            pair.table("big", &big).await;
            pair.table("small", &small).await;
            let sql = "select big.id from small join big on small.k = big.id";
            assert_eq!(pair.same(sql).await, expected, "{partitions} partitions");
        }
    }
}

#[tokio::test]
async fn a_learned_filter_that_cannot_be_evaluated_leaves_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = write(&path, 2);
    let id = col("id", &schema).unwrap();
    // Divides by zero in the first row.
    let quotient = BinaryExpr::new(lit(10_i64), Operator::Divide, id.clone());
    let test = BinaryExpr::new(Arc::new(quotient), Operator::GtEq, lit(0_i64));
    let filter = Arc::new(DynamicFilterPhysicalExpr::new(vec![id], lit(true)));
    filter.update(Arc::new(test)).unwrap();
    let source = MarquetrySource::new(schema).with_filter(filter);
    let found = collect(scan_of(&path, source), SessionContext::new().task_ctx()).await.unwrap();
    let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows as i64, 2 * GROUP);
}

#[tokio::test]
async fn joins_on_several_partitions_give_the_same_rows_whatever_their_keys() {
    let seed = 41;
    let mut rng = Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    for case in 0..6 {
        let mut table = |name: &str, rows: usize| {
            let path = folder.path().join(format!("{name}{case}.parquet"));
            let nulls = rng.u8(0..3) * 4;
            let mut some = |max: i64| {
                let value = rng.i64(0..max);
                (rng.u8(0..100) >= nulls).then_some(value)
            };
            let a: Vec<_> = (0..rows).map(|_| some(3000)).collect();
            let b: Vec<_> = (0..rows).map(|_| some(40)).collect();
            let text = a.iter().map(|a| a.map(|a| format!("{}", a * 7 % 1000)));
            let text = StringArray::from_iter(text);
            let n = Int64Array::from_iter_values(0..rows as i64);
            let batch = RecordBatch::try_from_iter([
                ("a", Arc::new(Int64Array::from(a)) as ArrayRef),
                ("b", Arc::new(Int64Array::from(b))),
                ("text", Arc::new(text)),
                ("n", Arc::new(n)),
            ]);
            let batches = [Ok::<_, std::convert::Infallible>(batch.unwrap())].into_iter();
            engines::write(&path, batches, 2000);
            path
        };
        let (big, small) = (table("big", 12_000), table("small", 600));
        let pair = partitioned([2, 3, 5][case % 3]);
        pair.table("big", &big).await;
        pair.table("small", &small).await;
        for on in ["s.a = x.a", "s.text = x.text", "s.a = x.a and s.b = x.b"] {
            for join in ["join", "right join", "left semi join"] {
                let of_big = if join == "left semi join" { "" } else { ", x.n" };
                let sql = format!("select s.n{of_big} from small s {join} big x on {on}");
                pair.same(&format!("{sql} and s.b < {}", rng.i64(1..40))).await;
            }
            pair.same(&format!(
                "select x.n from big x where exists (select 1 from small s where {on})"
            ))
            .await;
        }
    }
}
