//! Tests filters that narrow while a scan runs, at any moment: no row that passes is skipped, and
//! no row is returned that a filter of the query itself excludes.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use datafusion::arrow::array::*;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfigBuilder;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr, col, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use fastrand::Rng;
use futures::StreamExt;
use marquetry::Limits;
use marquetry_datafusion::{MarquetrySource, ScanSettings};

use crate::metric;
use crate::store::CountingStore;

/// A table in row groups of random sizes, each with keys of a random range, and its file.
fn table(rng: &mut Rng) -> (Vec<Option<i64>>, RecordBatch, Vec<u8>) {
    let mut properties = WriterProperties::builder()
        .set_data_page_row_count_limit(rng.usize(50..800))
        .set_write_batch_size(50)
        .set_dictionary_enabled(rng.bool());
    if rng.bool() {
        properties = properties.set_column_bloom_filter_enabled("k".into(), true);
    }
    let mut keys = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..rng.usize(2..9) {
        let (base, spread) = (rng.i64(0..1000), rng.choice([1, 30, 1000]).unwrap());
        let nulls = rng.choice([0, 0, 20, 100]).unwrap();
        let rows = rng.usize(1..2500);
        sizes.push(rows);
        keys.extend((0..rows).map(|_| {
            let key = base + rng.i64(0..spread);
            (rng.u8(0..100) >= nulls).then_some(key)
        }));
    }
    let text = (0..keys.len()).map(|i| format!("{:032}", i * 7919));
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..keys.len() as i64)) as ArrayRef),
        ("k", Arc::new(Int64Array::from(keys.clone()))),
        ("text", Arc::new(StringArray::from_iter_values(text))),
    ]);
    let batch = batch.unwrap();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    let mut start = 0;
    for rows in sizes {
        writer.write(&batch.slice(start, rows)).unwrap();
        writer.flush().unwrap();
        start += rows;
    }
    (keys, batch, writer.into_inner().unwrap())
}

fn test(left: &Arc<dyn PhysicalExpr>, op: Operator, right: i64) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(Arc::clone(left), op, lit(right)))
}

fn and(a: Arc<dyn PhysicalExpr>, b: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(a, Operator::And, b))
}

/// One scan, and what was pruned of it by what it learned.
async fn case(seed: u64) -> usize {
    let mut rng = Rng::with_seed(seed);
    let (keys, batch, file) = table(&mut rng);
    let schema = batch.schema();
    let (id, k) = (col("id", &schema).unwrap(), col("k", &schema).unwrap());
    // From a far store, columns of filters may be fetched first.
    let is_far = rng.bool();
    let session =
        SessionContext::new_with_config(SessionConfig::new().with_batch_size(rng.usize(20..1000)));
    let folder = tempfile::tempdir().unwrap();
    let (url, name) = match is_far {
        true => {
            CountingStore::with(&session, &[("t.parquet", file.clone())]).await;
            (ObjectStoreUrl::parse("count://files").unwrap(), "t.parquet".to_owned())
        }
        false => {
            let path = folder.path().join("t.parquet");
            std::fs::write(&path, &file).unwrap();
            (ObjectStoreUrl::local_filesystem(), path.to_str().unwrap().to_owned())
        }
    };
    let dynamic = Arc::new(DynamicFilterPhysicalExpr::new(vec![Arc::clone(&k)], lit(true)));
    // Nothing is learned at first.
    let mut learned: Option<(i64, i64)> = None;
    // A filter of the query itself: of another column, of the same one, or none.
    let fixed: (Option<Arc<dyn PhysicalExpr>>, Box<dyn Fn(usize) -> bool>) = match rng.u8(0..3) {
        0 => (None, Box::new(|_| true)),
        1 => {
            let max = rng.i64(0..keys.len() as i64 + 1);
            let filter = test(&id, Operator::LtEq, max);
            (Some(filter), Box::new(move |row| row as i64 <= max))
        }
        _ => {
            let (of, max) = (keys.clone(), rng.i64(100..1500));
            let filter = test(&k, Operator::Lt, max);
            (Some(filter), Box::new(move |row| of[row].is_some_and(|key| key < max)))
        }
    };
    let (filter, passes) = fixed;
    let filter = match filter {
        Some(filter) => and(filter, dynamic.clone()),
        None => dynamic.clone(),
    };
    let mut limits = Limits::default();
    limits.memory_bytes = rng.choice([4 << 30, 2 << 20]).unwrap();
    let source = MarquetrySource::new(schema)
        .with_settings(ScanSettings::new().with_limits(limits))
        .with_filter(filter);
    let listed = PartitionedFile::new(name, file.len() as u64);
    let config = FileScanConfigBuilder::new(url, Arc::new(source)).with_file(listed).build();
    let plan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
    let mut stream = plan.execute(0, session.task_ctx()).unwrap();
    let (often, ends) = (rng.u8(1..60), rng.bool());
    let mut is_complete = false;
    let mut found = Vec::new();
    loop {
        // Between two polls, wherever the scan is.
        if !is_complete && rng.u8(0..100) < often {
            let (low, high) = learned.unwrap_or((0, 2000));
            let (low, high) = (low + rng.i64(0..60), high - rng.i64(0..60));
            learned = Some((low, high));
            let bounds = and(test(&k, Operator::GtEq, low), test(&k, Operator::LtEq, high));
            dynamic.update(bounds).unwrap();
            if ends && rng.u8(0..4) == 0 {
                dynamic.mark_complete();
                is_complete = true;
            }
        }
        let next = match rng.bool() {
            true => futures::poll!(stream.next()),
            false => {
                tokio::time::sleep(Duration::from_micros(rng.u64(0..1500))).await;
                Poll::Ready(stream.next().await)
            }
        };
        match next {
            Poll::Ready(Some(batch)) => found.push(batch.unwrap()),
            Poll::Ready(None) => break,
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    let mut last = -1;
    let mut given = Vec::new();
    for batch in &found {
        let column = |i: usize| batch.column(i).as_any().downcast_ref::<Int64Array>().unwrap();
        let text = batch.column(2).as_any().downcast_ref::<StringArray>().unwrap();
        for (row, id) in column(0).values().iter().enumerate() {
            assert!(*id > last, "seed {seed}: row {id} after {last}");
            last = *id;
            let key = column(1).is_valid(row).then(|| column(1).value(row));
            assert_eq!(key, keys[*id as usize], "seed {seed}, row {id}");
            assert_eq!(text.value(row), format!("{:032}", *id as usize * 7919), "seed {seed}");
            assert!(passes(*id as usize), "seed {seed}: row {id} is excluded by the query");
            given.push(*id as usize);
        }
    }
    // By the last filter, which lets through the least.
    let wanted = |row: &usize| {
        let is_within =
            |(low, high): (i64, i64)| keys[*row].is_some_and(|key| (low..=high).contains(&key));
        passes(*row) && learned.is_none_or(is_within)
    };
    let expected: Vec<usize> = (0..keys.len()).filter(wanted).collect();
    given.retain(wanted);
    assert_eq!(given, expected, "seed {seed}");
    metric(&plan, "row_groups_pruned_dynamic_filter")
}

#[tokio::test]
async fn a_filter_that_narrows_at_any_moment_skips_no_row_that_passes() {
    let mut pruned = 0;
    for seed in 0..60 {
        println!("seed {seed}");
        pruned += case(seed).await;
    }
    println!("{pruned} row groups were pruned by what was learned");
    assert!(pruned > 40, "{pruned} row groups were pruned by what was learned");
}
