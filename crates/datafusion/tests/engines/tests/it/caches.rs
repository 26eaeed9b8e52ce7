//! Tests what is kept between queries: footers, page indexes and bloom filters.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use marquetry_datafusion::MarquetrySource;

use crate::learned::Scan;
use crate::store::CountingStore;
use crate::{Pair, metric, plan, query};

const ROWS: i64 = 400_000;

/// Large enough that its end does not hold it all; `key` has a bloom filter, and is in no order.
fn file(folder: &Path) -> Vec<u8> {
    let id = Int64Array::from_iter_values(0..ROWS);
    let key = Int64Array::from_iter_values((0..ROWS).map(|i| i * 7919 % ROWS * 2));
    let noise = |i: i64| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = (0..ROWS).map(|i| format!("{:016x}{:016x}", noise(i), noise(i + 1)));
    let text = StringArray::from_iter_values(text);
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(id) as ArrayRef),
        ("key", Arc::new(key)),
        ("text", Arc::new(text)),
    ]);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100_000))
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(1000)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_bloom_filter_enabled("key".into(), true);
    let path = folder.join("t.parquet");
    let batches = [Ok::<_, std::convert::Infallible>(batch.unwrap())].into_iter();
    engines::write_with(&path, batches, properties.build());
    std::fs::read(path).unwrap()
}

async fn table(session: &SessionContext, bytes: Vec<u8>) -> Arc<CountingStore> {
    let store = CountingStore::with(session, &[("t.parquet", bytes)]).await;
    let sql = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'count://files/t.parquet'";
    query(session, sql).await;
    store
}

fn cached(session: &SessionContext) -> (usize, usize) {
    let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
    let entries = cache.list_entries();
    assert_eq!(entries.len(), 1, "one file");
    let entry = entries.into_values().next().unwrap();
    (entry.size_bytes, entry.value.file_metadata.memory_size())
}

#[tokio::test]
async fn a_second_query_fetches_no_page_index_and_no_bloom_filter() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(folder.path());
    let session = engines::ours(SessionConfig::new().with_target_partitions(1));
    let store = table(&session, bytes.clone()).await;
    let (footer, _) = cached(&session);
    for (sql, expected) in [
        ("select text from t where id = 123456", 1),
        ("select id from t where key = 123456", 1),
        // No bloom filter has it.
        ("select id from t where key = 123457", 0),
    ] {
        store.take();
        let first = query(&session, sql).await;
        let (of_first, asked_first) = store.take();
        let second = query(&session, sql).await;
        let (of_second, asked) = store.take();
        assert_eq!(engines::rows(&first), engines::rows(&second));
        assert_eq!(first.iter().map(RecordBatch::num_rows).sum::<usize>(), expected);
        println!("{sql}: {of_first} requests, then {of_second}: {asked_first:?} {asked:?}");
        assert!(of_second < of_first, "{sql}: {of_first} requests, then {of_second}: {asked:?}");
        if expected == 0 {
            assert_eq!(of_second, 0, "{asked:?}");
        }
    }
    let (charged, held) = cached(&session);
    println!("{footer} bytes of a footer, {charged} with indexes");
    assert!(charged > footer + 1000, "{footer} bytes of a footer, {charged} with indexes");
    assert_eq!(charged, held, "the cache is told what it holds");
    // Another object of the same name has other indexes.
    let mut other = bytes;
    let at = other.len() - 8;
    let footer = u32::from_le_bytes(other[at..at + 4].try_into().unwrap());
    let pad = vec![0u8; 64];
    let start = at - footer as usize;
    other.splice(start..start, pad);
    store.replace("t.parquet", other).await;
    let found = query(&session, "select id from t where key = 123456").await;
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
}

#[tokio::test]
async fn indexes_take_no_more_of_a_cache_than_their_part() {
    let folder = tempfile::tempdir().unwrap();
    let session = engines::ours(SessionConfig::new().with_target_partitions(1));
    let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
    let store = table(&session, file(folder.path())).await;
    let (footer, _) = cached(&session);
    // As much as two footers and a little.
    cache.update_cache_limit(footer * 2 + 2000);
    for id in (0..ROWS).step_by(50_001) {
        let sql = format!("select text from t where id = {id} or key = {id}");
        assert!(query(&session, &sql).await.iter().map(RecordBatch::num_rows).sum::<usize>() > 0);
        let (charged, held) = cached(&session);
        assert_eq!(charged, held);
        assert!(charged <= footer + cache.cache_limit() / 8 + 2000, "{charged}, footer {footer}");
    }
    drop(store);
}

#[tokio::test]
async fn indexes_are_reserved_from_the_pool_until_the_cache_counts_them() {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = crate::learned::write(&path, 12);
    let cache = SessionContext::new().runtime_env().cache_manager.get_file_metadata_cache();
    let charged =
        || cache.list_entries().into_values().map(|entry| entry.size_bytes).sum::<usize>();
    // The reserved bytes when the last batch arrives.
    let read = async |source: MarquetrySource| {
        let pool = Arc::new(GreedyMemoryPool::new(1 << 30));
        let wild = col("wild", &schema).unwrap();
        let mut scan = Scan::over(&path, source.with_memory_pool(pool.clone()), wild);
        scan.learn(100);
        let (mut last, mut footer) = (0, 0);
        while scan.next().await.is_some() {
            (last, footer) = (pool.reserved(), charged());
        }
        drop(scan);
        assert_eq!(pool.reserved(), 0);
        (last, footer)
    };
    let (without, _) = read(MarquetrySource::new(schema.clone())).await;
    let source = MarquetrySource::new(schema.clone()).with_metadata_cache(cache.clone());
    let (with, footer) = read(source).await;
    let indexes = charged() - footer;
    println!("{without} bytes without a cache, {with} with one, {indexes} bytes of indexes in it");
    assert!(indexes > 5000, "{indexes} bytes of indexes in the cache");
    // The cache counts a few bytes for each range beside those of the file.
    let reserved = with - without;
    assert!(reserved <= indexes && reserved > indexes / 2, "{reserved} of {indexes} bytes");
}

#[tokio::test]
async fn values_that_filter_and_output_share_are_decoded_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let rows = Int64Array::from_iter_values((0..10_000).map(|i| i * 7919 % 10_000));
    let other = Int64Array::from_iter_values(0..10_000);
    let columns = [("wild", Arc::new(rows) as ArrayRef), ("other", Arc::new(other))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    engines::write(&path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), 5000);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let counts = async |sql: &str| {
        let plan = plan(&pair.ours, sql).await;
        collect(plan.clone(), pair.ours.task_ctx()).await.unwrap();
        ["predicate_cache_inner_records", "predicate_cache_records", "page_index_load_skipped"]
            .map(|name| metric(&plan, name))
    };
    // 100 rows pass, of all.
    assert_eq!(counts("select wild, other from t where wild < 100").await, [10_000, 100, 0]);
    // The filter's column is not given.
    assert_eq!(counts("select other from t where wild < 100").await, [0, 0, 0]);
    // No filter, and one that statistics prove: it is evaluated where its column is decoded anyway.
    assert_eq!(counts("select wild from t").await, [0, 0, 0]);
    assert_eq!(counts("select wild, other from t where wild >= 0").await, [10_000, 10_000, 1]);
    assert_eq!(counts("select wild, other from t where other >= 5000").await, [5000, 5000, 1]);
    assert_eq!(counts("select other from t where wild >= 0").await, [0, 0, 1]);
}
