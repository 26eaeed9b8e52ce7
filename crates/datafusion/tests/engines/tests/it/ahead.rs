//! Tests row groups that are fetched before their turn: their metrics, and the memory that they
//! take.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::physical_expr::expressions::col;
use fastrand::Rng;
use futures::StreamExt;
use marquetry::Limits;
use marquetry_datafusion::{MarquetrySource, ScanSettings};

use crate::contracts::pruning;
use crate::learned::{GROUP, Scan, write};
use crate::metric;

#[tokio::test]
async fn a_row_group_that_is_planned_anew_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = write(&path, 4);
    let wild = col("wild", &schema).unwrap();
    let mut scan = Scan::over(&path, MarquetrySource::new(schema), wild);
    // Nothing is planned ahead before something was learned or given.
    scan.next().await;
    let planned = metric(&scan.plan, "statistics_eval_time");
    let one = scan.fetched();
    for i in 0..12 {
        // Row groups that are fetched ahead are planned by one of these, and read by none of them.
        scan.learn(100 + i);
        scan.next().await;
    }
    assert!(scan.fetched() > one * 18 / 10, "the next row group is there");
    let ahead = metric(&scan.plan, "statistics_eval_time");
    assert!(ahead > planned, "planning ahead takes time: {planned} ns, then {ahead} ns");
    for i in 0.. {
        scan.learn(200 + i);
        if scan.next().await.is_none() {
            break;
        }
    }
    let rows = 4 * GROUP as usize;
    let (pruned, matched) = pruning(&scan.plan, "page_index_rows_pruned");
    assert_eq!((pruned, matched), (0, rows));
    assert_eq!(pruning(&scan.plan, "page_index_pages_pruned"), (0, rows / 2000));
    assert_eq!(pruning(&scan.plan, "row_groups_pruned_bloom_filter"), (0, 4));
    assert_eq!(pruning(&scan.plan, "row_groups_pruned_statistics"), (0, 4));
    let seen = ["pushdown_rows_pruned", "pushdown_rows_matched"];
    assert_eq!(seen.map(|name| metric(&scan.plan, name)).iter().sum::<usize>(), rows);
}

#[tokio::test]
async fn a_row_group_that_is_read_in_parts_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = write(&path, 4);
    for memory in [4 << 30, 1 << 20] {
        let mut limits = Limits::default();
        // Parts of an eighth of it.
        limits.memory_bytes = memory;
        let wild = col("wild", &schema).unwrap();
        let source = MarquetrySource::new(schema.clone())
            .with_settings(ScanSettings::new().with_limits(limits));
        let mut scan = Scan::over(&path, source, wild);
        scan.learn(100);
        while scan.next().await.is_some() {}
        let rows = 4 * GROUP as usize;
        assert_eq!(pruning(&scan.plan, "page_index_rows_pruned"), (0, rows), "{memory}");
        assert_eq!(pruning(&scan.plan, "page_index_pages_pruned"), (0, rows / 2000), "{memory}");
        assert_eq!(pruning(&scan.plan, "row_groups_pruned_bloom_filter"), (0, 4), "{memory}");
    }
}

#[tokio::test]
async fn page_indexes_that_are_not_loaded_count_for_each_row_group_that_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = write(&path, 4);
    let skipped = |scan: &Scan| metric(&scan.plan, "page_index_load_skipped");
    let scan = |name: &str, path: &Path| {
        let column = col(name, &schema).unwrap();
        Scan::over(path, MarquetrySource::new(schema.clone()), column)
    };
    // Nothing was learned before the first row group was opened: there is no filter.
    let mut all = scan("id", &path);
    all.next().await;
    assert_eq!(skipped(&all), 0);
    // Statistics prove it of the other three.
    all.learn(5);
    while all.next().await.is_some() {}
    assert_eq!(skipped(&all), 3);
    // Page indexes are loaded of all.
    let mut none = scan("wild", &path);
    none.learn(100);
    while none.next().await.is_some() {}
    assert_eq!(skipped(&none), 0);
    // A filter that will not change opens all of them at once.
    let mut once = scan("id", &path);
    once.learn(-1);
    once.filter.mark_complete();
    while once.next().await.is_some() {}
    assert_eq!(skipped(&once), 1);
    // Nothing is left.
    let mut empty = scan("id", &path);
    empty.learn(GROUP * 4);
    assert_eq!(empty.next().await, None);
    assert_eq!(skipped(&empty), 0);
    // The file has no page index.
    let path = folder.path().join("bare.parquet");
    let ids = (0..2 * GROUP).map(|i| i * 7919 % GROUP);
    let columns = ["id", "wild"]
        .map(|name| (name, Arc::new(Int64Array::from_iter_values(ids.clone())) as ArrayRef));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP as usize))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build();
    let batch = RecordBatch::try_from_iter(columns);
    engines::write_with(&path, [batch].into_iter(), properties);
    let mut bare = scan("id", &path);
    bare.learn(100);
    while bare.next().await.is_some() {}
    assert_eq!(skipped(&bare), 2);
}

/// A memory pool that knows the most that was reserved.
#[derive(Debug)]
struct Peak {
    inner: GreedyMemoryPool,
    max: AtomicUsize,
}

impl Peak {
    fn new() -> Arc<Self> {
        Arc::new(Self { inner: GreedyMemoryPool::new(1 << 40), max: AtomicUsize::new(0) })
    }

    fn take(&self) -> usize {
        self.max.swap(0, Ordering::Relaxed)
    }
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Peak")
    }
}

impl MemoryPool for Peak {
    fn name(&self) -> &str {
        "Peak"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.inner.grow(reservation, additional);
        self.max.fetch_max(self.inner.reserved(), Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.inner.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.inner.try_grow(reservation, additional)?;
        self.max.fetch_max(self.inner.reserved(), Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.inner.memory_limit()
    }
}

/// Rows of a row group.
const WIDE: usize = 4000;

/// Row groups of texts of 1 KiB, or, in those that are `steep`, of one byte first and then of 12
/// KiB. Noise is as long in the file as in memory; the others take almost nothing in the file.
/// Pages have 1000 rows.
fn wide(path: &Path, steep: &[bool]) -> SchemaRef {
    let mut rng = Rng::with_seed(7);
    let noise: String = (0..1 << 20).map(|_| char::from(rng.u8(32..127))).collect();
    let rows = steep.len() * WIDE;
    let text = (0..rows).map(|row| match (steep[row / WIDE], row % WIDE < 1000) {
        (true, true) => "x".to_owned(),
        (true, false) => "x".repeat(12 << 10),
        (false, _) => {
            let start = rng.usize(..noise.len() - 1024);
            noise[start..start + 1024].to_owned()
        }
    });
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef),
        ("text", Arc::new(StringArray::from_iter_values(text))),
    ]);
    let batch = batch.unwrap();
    let schema = batch.schema();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(WIDE))
        .set_data_page_size_limit(64 << 20)
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(1000)
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .build();
    engines::write_with(path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), properties);
    schema
}

/// Reads all of a file by row groups, within so much memory; returns the most that was reserved,
/// and whether a row group was fetched before its turn.
async fn read_within(path: &Path, schema: &SchemaRef, memory: u64) -> (usize, bool) {
    let pool = Peak::new();
    let mut limits = Limits::default();
    limits.memory_bytes = memory;
    let source =
        MarquetrySource::new(schema.clone()).with_settings(ScanSettings::new().with_limits(limits));
    let source = source.with_memory_pool(pool.clone());
    let mut scan = Scan::over(path, source, col("id", schema).unwrap());
    scan.learn(0);
    let (mut rows, mut fetched) = (0, Vec::new());
    while let Some(batch) = scan.stream.next().await {
        let batch = batch.unwrap();
        let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(ids.value(0), rows, "{memory} bytes");
        rows += batch.num_rows() as i64;
        if rows < WIDE as i64 {
            fetched.push(scan.fetched());
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(rows % WIDE as i64, 0);
    assert_eq!(pool.reserved(), 0, "all is given back");
    (pool.take(), fetched.last() > fetched.first())
}

#[tokio::test]
async fn what_is_fetched_ahead_and_what_is_decoded_share_one_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = wide(&path, &[false; 4]);
    let mut seen = 0;
    // A row group takes 4 MiB as it is fetched, and another quarter when a page is decompressed.
    for memory in (8..32).step_by(6).map(|mib| mib << 20) {
        let (peak, is_ahead) = read_within(&path, &schema, memory).await;
        println!("{memory} bytes: {peak} at most, ahead: {is_ahead}");
        assert!(peak as u64 <= memory, "{peak} of {memory} bytes");
        seen += usize::from(is_ahead);
    }
    assert!(seen > 0, "some row groups were fetched ahead");
}

#[tokio::test]
async fn what_was_fetched_ahead_is_given_up_for_the_row_group_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    // The first takes almost nothing until its second page is decompressed.
    let schema = wide(&path, &[true, false, false]);
    for memory in (18..26).step_by(2).map(|mib| mib << 20) {
        let (peak, _) = read_within(&path, &schema, memory).await;
        println!("{memory} bytes: {peak} at most");
        assert!(peak as u64 <= memory, "{peak} of {memory} bytes");
    }
}
