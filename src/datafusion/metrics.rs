//! Metrics of a scan of one file, under the names that DataFusion's own source gives them.

use std::sync::Arc;

use datafusion_physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Label, MetricBuilder, MetricCategory, MetricType,
    PruningMetrics, Time,
};

/// Metrics of one file, or of a part of it.
#[derive(Debug, Clone)]
pub(super) struct FileMetrics {
    /// Files, or parts of them, that statistics of the whole file excluded.
    pub(super) files_pruned: PruningMetrics,
    /// Row groups that the statistics of the footer excluded.
    pub(super) row_groups_pruned: PruningMetrics,
    /// Row groups that bloom filters, dictionaries or page indexes excluded as a whole.
    pub(super) row_groups_pruned_bloom: PruningMetrics,
    /// Row groups that a filter excluded which was learnt while the query ran.
    pub(super) row_groups_pruned_dynamic: Count,
    /// Bytes of pages and indexes that were fetched.
    pub(super) bytes_scanned: Count,
    /// Rows that filters removed.
    pub(super) rows_pruned: Count,
    /// Rows that filters let through.
    pub(super) rows_matched: Count,
    /// Time for the metadata.
    pub(super) metadata_load_time: Time,
    /// Filters that could not be looked at in the file.
    pub(super) predicate_errors: Count,
}

impl FileMetrics {
    /// Metrics of `file` in a partition.
    pub(super) fn new(partition: usize, file: &str, metrics: &ExecutionPlanMetricsSet) -> Self {
        let label = Label::new("filename", Arc::<str>::from(file));
        let builder = MetricBuilder::new(metrics).with_label(label);
        let summary = || builder.clone().with_type(MetricType::Summary);
        let rows = || builder.clone().with_category(MetricCategory::Rows);
        Self {
            files_pruned: MetricBuilder::new(metrics)
                .with_type(MetricType::Summary)
                .pruning_metrics("files_ranges_pruned_statistics", partition),
            row_groups_pruned: summary().pruning_metrics("row_groups_pruned_statistics", partition),
            row_groups_pruned_bloom: summary()
                .pruning_metrics("row_groups_pruned_bloom_filter", partition),
            row_groups_pruned_dynamic: summary()
                .counter("row_groups_pruned_dynamic_filter", partition),
            bytes_scanned: summary()
                .with_category(MetricCategory::Bytes)
                .counter("bytes_scanned", partition),
            rows_pruned: rows().counter("pushdown_rows_pruned", partition),
            rows_matched: rows().counter("pushdown_rows_matched", partition),
            metadata_load_time: summary().subset_time("metadata_load_time", partition),
            predicate_errors: rows().counter("predicate_evaluation_errors", partition),
        }
    }
}
