//! [`Scan`] translates a file of a plan to a read of it.
//!
//! ```text
//!  PartitionedFile ─ Prepared ─── KnownFile ─ OfFile ──── FileStream
//!                    constants,   footer      expressions  batches
//!                    pruned file  (pending)   of the file
//! ```
//!
//! The expressions of the query are adapted to the file: partition values, missing columns, types
//! that differ. Planning blocks the thread; only the metadata are awaited.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use datafusion_common::stats::Precision;
use datafusion_common::{Result, ScalarValue, Statistics};
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_execution::cache::cache_manager::FileMetadataCache;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion_physical_expr_adapter::rewrite::rewrite_input_file_name_in_projection;
use datafusion_physical_expr_adapter::{PhysicalExprAdapterFactory, replace_columns_with_literals};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricCategory};
use datafusion_pruning::FilePruner;
use object_store::ObjectStore;

use crate::columns::with_row_numbers;
use crate::extensions;
use crate::learned::{PassRates, Trust, TrustedPruner};
use crate::metadata;
use crate::metrics::{FileMetrics, OutputRows};
use crate::pushdown::{Filters, without_learned};
use crate::row_groups::{self, ReadOrder};
use crate::schema::{FileSchema, TypeOptions, check_nulls};
use marquetry::engine::KnownFile;
use marquetry::engine::rows::bytes_of_nulls;
use marquetry::read::PageIndexUse;
use marquetry::{Limits, Metadata, RowSelection};

/// The operations of a scan on each of its files.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    pub(crate) partition: usize,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) is_local: bool,
    pub(crate) cache: Option<Arc<FileMetadataCache>>,
    pub(crate) pool: Option<Arc<dyn MemoryPool>>,
    pub(crate) metrics: ExecutionPlanMetricsSet,
    pub(crate) table: TableSchema,
    pub(crate) projection: ProjectionExprs,
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    /// Whether rows that do not pass are left out, and not only row groups and pages.
    pub(crate) filters_rows: bool,
    /// Whether filters may exclude row groups and pages.
    pub(crate) prunes: bool,
    pub(crate) uses_bloom_filters: bool,
    pub(crate) adapters: Arc<dyn PhysicalExprAdapterFactory>,
    pub(crate) batch_rows: usize,
    pub(crate) limit: Option<usize>,
    /// Whether the rows must come in their own order.
    pub(crate) is_ordered: bool,
    pub(crate) order: ReadOrder,
    pub(crate) types: TypeOptions,
    pub(crate) limits: Limits,
    pub(crate) size_hint: Option<usize>,
    pub(crate) page_index: PageIndexUse,
    pub(crate) rates: Arc<PassRates>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) output_rows: Arc<OutputRows>,
}

/// A file that may have rows which pass, as far as its statistics in the plan show.
pub(crate) struct Prepared {
    pub(crate) file: PartitionedFile,
    pub(crate) metrics: FileMetrics,
    /// Set if filters that are still learned may exclude the rest of the file.
    pub(crate) pruner: Option<TrustedPruner>,
    projection: ProjectionExprs,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Prepared {
    pub(crate) async fn fetch(&self, scan: &Scan) -> Result<KnownFile> {
        let _timer = self.metrics.metadata_load_time.timer();
        let (object, cache) = (&self.file.object_meta, scan.cache.as_deref());
        let size_hint = self.file.metadata_size_hint.or(scan.size_hint);
        metadata::fetch(&scan.store, object, cache, &scan.limits, size_hint).await
    }
}

/// The read of a file, in terms of the file.
pub(crate) struct OfFile {
    pub(crate) schema: FileSchema,
    pub(crate) projection: ProjectionExprs,
    pub(crate) filters: Filters,
    /// The row groups to read, in this order.
    pub(crate) row_groups: Vec<usize>,
    pub(crate) selection: Option<RowSelection>,
    /// The schema of its batches.
    pub(crate) output: SchemaRef,
}

impl Scan {
    /// Prepares a file before it is opened; `None` if no row of it can pass.
    pub(crate) fn prepare(&self, file: PartitionedFile) -> Result<Option<Prepared>> {
        let name = file.object_meta.location.to_string();
        let metrics = FileMetrics::new(self.partition, &name, &self.metrics);
        let (projection, filter) = self.with_constants(&file, &name)?;
        let mut pruner = filter.as_ref().and_then(|filter| self.pruner(filter, &file));
        if let Some(pruner) = &mut pruner
            && pruner.should_prune()?
        {
            metrics.files_pruned.add_pruned(1);
            return Ok(None);
        }
        metrics.files_pruned.add_matched(1);
        let pruner = pruner.filter(TrustedPruner::is_watching);
        Ok(Some(Prepared { file, metrics, pruner, projection, filter }))
    }

    /// The pruner of a whole file; `None` if its statistics cannot exclude it.
    fn pruner(
        &self,
        filter: &Arc<dyn PhysicalExpr>,
        file: &PartitionedFile,
    ) -> Option<TrustedPruner> {
        let learned = Filters::new(filter).learned;
        let is_trusted = learned.iter().all(|filter| self.trust.allows_now(filter));
        let (filter, learned) = match is_trusted {
            true => (Some(Arc::clone(filter)), learned),
            false => (without_learned(filter), Vec::new()),
        };
        let errors = MetricBuilder::new(&self.metrics)
            .with_category(MetricCategory::Rows)
            .global_counter("num_predicate_creation_errors");
        let filter = filter.filter(|_| self.prunes)?;
        let pruner = FilePruner::try_new(filter, self.table.file_schema(), file, errors)?;
        Some(TrustedPruner::new(pruner, learned, Arc::clone(&self.trust)))
    }

    /// Plans the read of a file whose metadata are known.
    pub(crate) fn of_file(&self, prepared: &Prepared, metadata: &Metadata) -> Result<OfFile> {
        let file = &prepared.file;
        let (given, logical) = (file.arrow_schema.as_deref(), self.table.file_schema());
        let schema = FileSchema::new(metadata, logical, given, &self.types)?;
        let (projection, filters) = self.adapted(&schema.physical, prepared)?;
        let mut row_groups = row_groups::in_range(metadata, file.range.as_ref())?;
        self.order.apply(metadata, &mut row_groups);
        let selection = extensions::selection(file, metadata)?;
        let output = Arc::new(self.projection.project_schema(self.table.table_schema())?);
        Ok(OfFile { schema, projection, filters, row_groups, selection, output })
    }

    /// Projection and filter, with constants in place of the columns that have the same value in
    /// all rows of the file.
    fn with_constants(
        &self,
        file: &PartitionedFile,
        name: &str,
    ) -> Result<(ProjectionExprs, Option<Arc<dyn PhysicalExpr>>)> {
        let names = self.table.table_partition_cols().iter().map(|field| field.name().clone());
        let mut constants: HashMap<String, ScalarValue> =
            names.zip(file.partition_values.iter().cloned()).collect();
        constants.extend(constant_columns(file.statistics.as_deref(), self.table.file_schema()));
        let (mut projection, mut filter) = (self.projection.clone(), self.filter.clone());
        if !constants.is_empty() {
            projection =
                projection.try_map_exprs(|expr| replace_columns_with_literals(expr, &constants))?;
            filter = filter
                .map(|filter| replace_columns_with_literals(filter, &constants))
                .transpose()?;
        }
        Ok((rewrite_input_file_name_in_projection(projection, name)?, filter))
    }

    /// Projection and filters in terms of the columns of the file.
    fn adapted(
        &self,
        physical: &SchemaRef,
        prepared: &Prepared,
    ) -> Result<(ProjectionExprs, Filters)> {
        let mut projection = prepared.projection.clone();
        let mut filters = prepared.filter.as_ref().map(Filters::new).unwrap_or_default();
        let logical = self.table.file_schema();
        if prepared.filter.is_some() || logical != physical {
            let adapter = self.adapters.create(Arc::clone(logical), Arc::clone(physical))?;
            let simplifier = PhysicalExprSimplifier::new(physical);
            let rewrite = |expr| {
                check_nulls(&expr, logical, physical, self.batch_rows)?;
                adapter.rewrite(expr)
            };
            let adapt = |expr| {
                let expr = rewrite(expr)?;
                // One of literals that fails, fails for the rows that it is evaluated for.
                Ok(simplifier.simplify(Arc::clone(&expr)).unwrap_or(expr))
            };
            filters.fixed = filters.fixed.into_iter().map(adapt).collect::<Result<_>>()?;
            // Not simplified: one that has no columns in this file would become what it is now.
            filters.learned = filters.learned.into_iter().map(rewrite).collect::<Result<_>>()?;
            projection = projection.try_map_exprs(adapt)?;
        }
        Ok((with_row_numbers(projection, physical)?, filters))
    }
}

/// Maximum bytes of a null that becomes a constant.
const MAX_CONSTANT: usize = 1 << 10;

/// Columns in which all rows of the file have the same value, as statistics say.
fn constant_columns(
    statistics: Option<&Statistics>,
    schema: &Schema,
) -> HashMap<String, ScalarValue> {
    let mut out = HashMap::new();
    let Some(statistics) = statistics else { return out };
    for (field, column) in schema.fields().iter().zip(&statistics.column_statistics) {
        let (nulls, rows) = (&column.null_count, &statistics.num_rows);
        let value = match (&column.min_value, &column.max_value, nulls, rows) {
            (Precision::Exact(min), Precision::Exact(max), Precision::Exact(0), _)
                // Bounds exclude NaN.
                if min == max && !min.is_null() && !field.data_type().is_floating() =>
            {
                min.cast_to(field.data_type()).ok()
            }
            // A file states how large one null of a type of a fixed size is.
            (_, _, Precision::Exact(nulls), Precision::Exact(rows))
                if nulls == rows && bytes_of_nulls(field.data_type(), 1) <= MAX_CONSTANT =>
            {
                ScalarValue::try_new_null(field.data_type()).ok()
            }
            _ => None,
        };
        out.extend(value.map(|value| (field.name().clone(), value)));
    }
    out
}
