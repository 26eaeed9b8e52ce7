//! Metrics of the scan of one file, under the names that DataFusion's own source gives them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion_physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Gauge, Label, Metric, MetricBuilder, MetricCategory,
    MetricType, MetricValue, PruningMetrics, RatioMergeStrategy, RatioMetrics, Time,
};

use crate::statistics::saturated;
use marquetry::engine::FilterCounters;

/// Metrics of one file, or of a part of it.
#[derive(Debug, Clone)]
pub(crate) struct FileMetrics {
    set: ExecutionPlanMetricsSet,
    file: Label,
    partition: usize,
    /// Files, or parts of them, that statistics of the whole file excluded.
    pub(crate) files_pruned: PruningMetrics,
    /// Row groups that the statistics of the footer excluded.
    pub(crate) row_groups_pruned: PruningMetrics,
    /// Row groups that bloom filters or dictionaries excluded as a whole.
    pub(crate) row_groups_pruned_bloom: PruningMetrics,
    /// Row groups that a filter excluded which was learnt while the query ran.
    pub(crate) row_groups_pruned_dynamic: Count,
    /// Row groups that are not needed for a limit, because others are enough.
    pub(crate) limit_pruned_row_groups: PruningMetrics,
    /// Pages of the columns of the filter that page indexes excluded.
    pub(crate) pages_pruned: PruningMetrics,
    /// Rows that page indexes excluded.
    pub(crate) page_rows_pruned: PruningMetrics,
    /// Bytes that were fetched, of those of the file.
    pub(crate) scan_efficiency_ratio: RatioMetrics,
    /// Time for decoding, filters and expressions, in all.
    pub(crate) elapsed_compute: Time,
    /// Time for evaluating filters on rows.
    pub(crate) row_eval_time: Time,
    /// Time for deciding by statistics of row groups.
    pub(crate) statistics_eval_time: Time,
    /// Time for deciding by bloom filters and dictionaries.
    pub(crate) bloom_eval_time: Time,
    /// Time for deciding by page indexes.
    pub(crate) page_index_eval_time: Time,
    /// Bytes of pages and indexes that were fetched.
    pub(crate) bytes_scanned: Count,
    /// Rows that filters removed.
    pub(crate) rows_pruned: Count,
    /// Rows that filters let through.
    pub(crate) rows_matched: Count,
    /// Time for the metadata.
    pub(crate) metadata_load_time: Time,
    /// Filters that could not be looked at in the file.
    pub(crate) predicate_errors: Count,
    /// Values that were decoded for the filter, of columns that the query also returns.
    pub(crate) predicate_cache_inner: Gauge,
    /// Values of these that were returned, and not decoded again.
    pub(crate) predicate_cache: Gauge,
}

impl FileMetrics {
    /// Metrics of `file` in a partition.
    pub(crate) fn new(partition: usize, file: &str, metrics: &ExecutionPlanMetricsSet) -> Self {
        let label = Label::new("filename", Arc::<str>::from(file));
        let builder = MetricBuilder::new(metrics).with_label(label.clone());
        let summary = || builder.clone().with_type(MetricType::Summary);
        let time = |name| builder.clone().subset_time(name, partition);
        let rows = || builder.clone().with_category(MetricCategory::Rows);
        Self {
            set: metrics.clone(),
            file: label,
            partition,
            files_pruned: MetricBuilder::new(metrics)
                .with_type(MetricType::Summary)
                .pruning_metrics("files_ranges_pruned_statistics", partition),
            row_groups_pruned: summary().pruning_metrics("row_groups_pruned_statistics", partition),
            row_groups_pruned_bloom: summary()
                .pruning_metrics("row_groups_pruned_bloom_filter", partition),
            row_groups_pruned_dynamic: summary()
                .counter("row_groups_pruned_dynamic_filter", partition),
            limit_pruned_row_groups: summary()
                .pruning_metrics("limit_pruned_row_groups", partition),
            pages_pruned: summary().pruning_metrics("page_index_pages_pruned", partition),
            page_rows_pruned: builder.clone().pruning_metrics("page_index_rows_pruned", partition),
            scan_efficiency_ratio: summary().ratio_metrics_with_strategy(
                "scan_efficiency_ratio",
                partition,
                RatioMergeStrategy::AddPartSetTotal,
            ),
            elapsed_compute: MetricBuilder::new(metrics).elapsed_compute(partition),
            row_eval_time: time("row_pushdown_eval_time"),
            statistics_eval_time: time("statistics_eval_time"),
            bloom_eval_time: time("bloom_filter_eval_time"),
            page_index_eval_time: time("page_index_eval_time"),
            bytes_scanned: summary()
                .with_category(MetricCategory::Bytes)
                .counter("bytes_scanned", partition),
            rows_pruned: rows().counter("pushdown_rows_pruned", partition),
            rows_matched: rows().counter("pushdown_rows_matched", partition),
            metadata_load_time: summary().subset_time("metadata_load_time", partition),
            predicate_errors: rows().counter("predicate_evaluation_errors", partition),
            predicate_cache_inner: rows().gauge("predicate_cache_inner_records", partition),
            predicate_cache: rows().gauge("predicate_cache_records", partition),
        }
    }

    /// Counts that row groups were opened without page indexes, because those could exclude none of
    /// their rows. As in DataFusion's own source, the metric is there if that was so.
    pub(crate) fn skipped_page_indexes(&self) {
        let builder = MetricBuilder::new(&self.set).with_label(self.file.clone());
        let builder = builder.with_type(MetricType::Summary);
        builder.counter("page_index_load_skipped", self.partition).add(1);
    }

    /// Adds what was counted since the last time.
    pub(crate) fn take(&self, counters: &FilterCounters) {
        self.take_times(counters);
        self.rows_pruned.add(saturated(counters.rows_removed.take()));
        self.predicate_cache_inner.add(saturated(counters.shared_decoded.take()));
        self.predicate_cache.add(saturated(counters.shared_kept.take()));
        self.row_groups_pruned_bloom.add_pruned(saturated(counters.bloom_pruned.take()));
        self.row_groups_pruned_bloom.add_matched(saturated(counters.bloom_matched.take()));
        self.pages_pruned.add_pruned(saturated(counters.pages_pruned.take()));
        self.pages_pruned.add_matched(saturated(counters.pages_matched.take()));
        self.page_rows_pruned.add_pruned(saturated(counters.page_rows_pruned.take()));
        self.page_rows_pruned.add_matched(saturated(counters.page_rows_matched.take()));
    }

    /// Adds only the times, of a read whose row groups are read by another one.
    pub(crate) fn take_times(&self, counters: &FilterCounters) {
        self.row_eval_time.add_duration(Duration::from_nanos(counters.row_nanos.take()));
        self.bloom_eval_time.add_duration(Duration::from_nanos(counters.bloom_nanos.take()));
        self.page_index_eval_time.add_duration(Duration::from_nanos(counters.page_nanos.take()));
    }
}

/// Rows that each partition of a scan has given, and how unevenly: the metric `output_rows_skew`,
/// which DataFusion derives itself only for its own source.
#[derive(Debug, Default)]
pub(crate) struct OutputRows(Mutex<Partitions>);

#[derive(Debug, Default)]
struct Partitions {
    rows: BTreeMap<usize, u128>,
    total: u128,
    sum_of_squares: u128,
    /// The metric, once there is a partition.
    skew: Option<RatioMetrics>,
}

impl Partitions {
    /// Sets the metric to `1 - (total² / sum_of_squares - 1) / (partitions - 1)`, the formula of
    /// DataFusion. Its own function takes all partitions, which is too long for each batch.
    fn set_skew(&self) {
        let Some(skew) = &self.skew else { return };
        let partitions = self.rows.len() as u128;
        let all = self.sum_of_squares.saturating_mul(partitions - 1).max(1);
        let uneven = self.sum_of_squares.saturating_mul(partitions);
        let uneven = uneven.saturating_sub(self.total.saturating_mul(self.total));
        let part = uneven.saturating_mul(ALL_SKEW as u128).saturating_add(all / 2) / all;
        skew.set_part(usize::try_from(part).unwrap_or(ALL_SKEW));
        // Several partitions without rows have no skew.
        skew.set_total(if self.total > 0 || partitions == 1 { ALL_SKEW } else { 0 });
    }
}

/// The skew if one partition has all rows.
const ALL_SKEW: usize = 10_000;

impl OutputRows {
    /// Counts a partition that begins.
    pub(crate) fn begin(&self, partition: usize, metrics: &ExecutionPlanMetricsSet) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.rows.entry(partition).or_default();
        all.skew.get_or_insert_with(|| {
            let skew = RatioMetrics::new().with_display_raw_values(false);
            let name = "output_rows_skew".into();
            let value = MetricValue::Ratio { name, ratio_metrics: skew.clone() };
            metrics.register(Arc::new(Metric::new(value, None).with_type(MetricType::Dev)));
            skew
        });
        all.set_skew();
    }

    /// Adds rows of a partition.
    pub(crate) fn add(&self, partition: usize, rows: usize) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = rows as u128;
        let of_partition = all.rows.entry(partition).or_default();
        let squares = rows * (2 * *of_partition + rows);
        *of_partition += rows;
        all.total += rows;
        all.sum_of_squares += squares;
        all.set_skew();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_physical_plan::metrics::{BaselineMetrics, MetricsSet};

    /// The score, and of how many.
    fn skew(metrics: &MetricsSet) -> Option<(usize, usize)> {
        metrics.iter().find_map(|metric| match metric.value() {
            MetricValue::Ratio { name, ratio_metrics } if name == "output_rows_skew" => {
                Some((ratio_metrics.part(), ratio_metrics.total()))
            }
            _ => None,
        })
    }

    /// The skew that DataFusion derives from the rows of partitions.
    fn derived_skew(rows: &[usize]) -> Option<(usize, usize)> {
        let mut set = MetricsSet::new();
        for (partition, rows) in rows.iter().enumerate() {
            let count = Count::new();
            count.add(*rows);
            set.push(Arc::new(Metric::new(MetricValue::OutputRows(count), Some(partition))));
        }
        let mut derived = MetricsSet::new();
        derived.push(BaselineMetrics::output_rows_skew_metric(&set)?);
        skew(&derived)
    }

    #[test]
    fn the_skew_is_the_one_that_datafusion_derives() {
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut rows = vec![0; rng.usize(1..6)];
            let (metrics, output) = (ExecutionPlanMetricsSet::new(), OutputRows::default());
            for begun in 0..rows.len() {
                // Perhaps after the others have given all of their rows.
                output.begin(begun, &metrics);
                for _ in 0..rng.usize(0..3) {
                    let (partition, n) = (rng.usize(0..=begun), rng.usize(0..10_000));
                    output.add(partition, n);
                    rows[partition] += n;
                }
            }
            let found = skew(&metrics.clone_inner());
            assert_eq!(found, derived_skew(&rows), "seed {seed}: {rows:?}");
        }
    }
}
