//! [`Opener`]: one file, from its metadata to the stream of its batches.
//!
//! The expressions of the query are put into terms of the file (partition values, columns that it
//! has not, types that differ), the filters become a [`Predicate`], and an [`AsyncReader`] reads
//! what is left, decoded where the stream is polled. Filters that are learned while the query runs
//! are taken as they are when a row group is opened.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, ScalarValue, Statistics};
use datafusion_datasource::file_stream::{FileOpenFuture, FileOpener};
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_execution::cache::cache_manager::FileMetadataCache;
use datafusion_physical_expr::expressions::DynamicFilterTracking;
use datafusion_physical_expr::projection::{ProjectionExprs, Projector};
use datafusion_physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion_physical_expr::utils::{collect_columns, conjunction};
use datafusion_physical_expr_adapter::rewrite::rewrite_input_file_name_in_projection;
use datafusion_physical_expr_adapter::{PhysicalExprAdapterFactory, replace_columns_with_literals};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricCategory};
use datafusion_pruning::FilePruner;
use futures_core::Stream;
use object_store::ObjectStore;

use super::local::LocalSource;
use super::metadata;
use super::metrics::FileMetrics;
use super::pushdown::{self, Filters, PassRate};
use super::row_groups::{self, ReadOrder};
use super::schema::{FileSchema, TypeOptions};
use crate::bytes::saturated;
use crate::error::ErrorKind;
use crate::io::StoreSource;
use crate::predicate::Predicate;
use crate::read::{Metadata, PageIndexUse, Plan};
use crate::reader::{AsyncReader, BatchStream};
use crate::schema::Projection;
use crate::selection::RowSelection;

/// What a scan does to each of its files.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    pub(super) partition: usize,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) is_local: bool,
    pub(super) cache: Option<Arc<FileMetadataCache>>,
    pub(super) metrics: ExecutionPlanMetricsSet,
    pub(super) table: TableSchema,
    pub(super) projection: ProjectionExprs,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    /// Whether rows that do not pass are left out, and not only row groups.
    pub(super) filters_rows: bool,
    pub(super) adapters: Arc<dyn PhysicalExprAdapterFactory>,
    pub(super) batch_rows: usize,
    pub(super) limit: Option<usize>,
    pub(super) order: ReadOrder,
    pub(super) types: TypeOptions,
    pub(super) page_index: PageIndexUse,
    pub(super) rate: Arc<PassRate>,
}

/// Opens the files of one partition of a scan.
pub(super) struct Opener(pub(super) Arc<Scan>);

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let scan = Arc::clone(&self.0);
        Ok(Box::pin(async move {
            let opened = scan.open(file).await?;
            Ok(match opened {
                Some(stream) => Box::pin(stream) as Pin<Box<dyn Stream<Item = _> + Send>>,
                None => Box::pin(futures_util::stream::empty()),
            })
        }))
    }
}

/// The expressions of a query, in terms of one file.
struct OfFile {
    schema: FileSchema,
    projection: ProjectionExprs,
    filters: Filters,
}

impl Scan {
    /// The batches of a file; `None` if no row of it can pass.
    async fn open(&self, file: PartitionedFile) -> Result<Option<FileStream>> {
        let name = file.object_meta.location.to_string();
        let metrics = FileMetrics::new(self.partition, &name, &self.metrics);
        let output = self.projection.project_schema(self.table.table_schema())?;
        let (projection, filter) = self.with_constants(&file, &name)?;
        let errors = MetricBuilder::new(&self.metrics)
            .with_category(MetricCategory::Rows)
            .global_counter("num_predicate_creation_errors");
        let mut pruner = filter.as_ref().and_then(|filter| {
            FilePruner::try_new(Arc::clone(filter), self.table.file_schema(), &file, errors)
        });
        if let Some(pruner) = &mut pruner
            && pruner.should_prune()?
        {
            metrics.files_pruned.add_pruned(1);
            return Ok(None);
        }
        metrics.files_pruned.add_matched(1);
        let metadata = {
            let _timer = metrics.metadata_load_time.timer();
            metadata::fetch(&self.store, &file.object_meta, self.cache.as_deref()).await?
        };
        let given = file.arrow_schema.as_deref();
        let logical = self.table.file_schema();
        let schema = FileSchema::new(&metadata, logical, given, &self.types)?;
        let of_file = self.adapted(schema, projection, filter)?;
        let mut groups = row_groups::in_range(&metadata, file.range.as_ref())?;
        self.order.apply(&metadata, &mut groups);
        let selection = file.extension::<RowSelection>().cloned();
        let pruner = pruner.filter(FilePruner::is_watching);
        FileStream::new(self, metadata, &file, of_file, groups, selection, metrics, pruner, output)
            .map(Some)
    }

    /// Projection and filter, with what is known to be the same in all rows of the file in place of
    /// its columns.
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

    /// Projection and filter in terms of the columns of the file.
    fn adapted(
        &self,
        schema: FileSchema,
        projection: ProjectionExprs,
        filter: Option<Arc<dyn PhysicalExpr>>,
    ) -> Result<OfFile> {
        let (logical, physical) = (self.table.file_schema(), &schema.physical);
        if filter.is_none() && logical == physical {
            return Ok(OfFile { schema, projection, filters: Filters::default() });
        }
        let adapter = self.adapters.create(Arc::clone(logical), Arc::clone(physical))?;
        let simplifier = PhysicalExprSimplifier::new(physical);
        let adapt = |expr| simplifier.simplify(adapter.rewrite(expr)?);
        let filter = filter.map(adapt).transpose()?;
        let projection = projection.try_map_exprs(adapt)?;
        let filters = filter.as_ref().map(Filters::new).unwrap_or_default();
        Ok(OfFile { schema, projection, filters })
    }
}

/// Columns of which statistics say that all rows of the file have the same value.
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
                // No bound tells of a NaN.
                if min == max && !min.is_null() && !field.data_type().is_floating() =>
            {
                min.cast_to(field.data_type()).ok()
            }
            (_, _, Precision::Exact(nulls), Precision::Exact(rows)) if nulls == rows => {
                ScalarValue::try_new_null(field.data_type()).ok()
            }
            _ => None,
        };
        out.extend(value.map(|value| (field.name().clone(), value)));
    }
    out
}

/// What is read of a file for expressions over all of its columns.
struct Columns {
    /// Positions among the columns of the file, ascending.
    positions: Vec<usize>,
    projection: Projection,
}

impl Columns {
    /// The columns of these expressions; of a struct, only the fields that they look at.
    fn of<'a>(exprs: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>, physical: &Schema) -> Self {
        let mut wanted: BTreeMap<usize, Vec<Vec<String>>> = BTreeMap::new();
        for expr in exprs {
            note_fields(expr, &mut wanted);
        }
        let positions: Vec<usize> = wanted.keys().copied().collect();
        let is_whole = |paths: &Vec<Vec<String>>| paths.iter().any(Vec::is_empty);
        if wanted.values().all(is_whole) {
            let projection = Projection::fields(positions.iter().copied());
            return Self { positions, projection };
        }
        let mut paths = Vec::new();
        for (position, fields) in &wanted {
            let Some(field) = physical.fields().get(*position) else { continue };
            let name = field.name();
            if is_whole(fields) {
                paths.push(vec![name.clone()]);
                continue;
            }
            for path in fields {
                paths.push(std::iter::once(name.clone()).chain(path.iter().cloned()).collect());
            }
        }
        Self { positions, projection: Projection::paths(paths) }
    }

    /// By name, as a target schema wants it.
    fn by_name(&self, physical: &Schema) -> Projection {
        match &self.projection {
            Projection::Fields(fields) => {
                let names = fields.iter().filter_map(|i| physical.fields().get(*i));
                Projection::paths(names.map(|field| [field.name().clone()]))
            }
            other => other.clone(),
        }
    }
}

/// Notes which columns an expression looks at, and which fields of those: no name for all.
fn note_fields(expr: &Arc<dyn PhysicalExpr>, wanted: &mut BTreeMap<usize, Vec<Vec<String>>>) {
    if let Some((position, names)) = pushdown::field_path(expr) {
        wanted.entry(position).or_default().push(names);
        return;
    }
    for child in expr.children() {
        note_fields(child, wanted);
    }
}

/// The batches of a file.
pub(super) struct FileStream {
    reader: AsyncReader,
    /// The predicate of the filters that do not change.
    fixed: Option<Predicate>,
    filters: Filters,
    /// Whether the filters can name the columns that they look at.
    is_bindable: bool,
    physical: SchemaRef,
    rate: Arc<PassRate>,
    tracking: DynamicFilterTracking,
    /// What the reader cannot evaluate.
    after: Option<Arc<dyn PhysicalExpr>>,
    filters_rows: bool,
    projector: Projector,
    output: SchemaRef,
    /// Row groups that are not opened yet.
    waiting: VecDeque<usize>,
    current: Option<BatchStream>,
    /// Rows that may still be given.
    left: Option<u64>,
    /// Rows of the row groups at hand that the filter is asked about, and those that were given.
    asked: u64,
    given: u64,
    /// Bytes and row groups that were fetched, as far as they are counted.
    bytes: u64,
    opened: u64,
    /// Row groups of those at hand that the footer leaves.
    wanted: usize,
    metrics: FileMetrics,
    pruner: Option<FilePruner>,
    is_first: bool,
}

impl fmt::Debug for FileStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStream").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl FileStream {
    #[expect(clippy::too_many_arguments, reason = "all that is known of the file")]
    fn new(
        scan: &Scan,
        metadata: Metadata,
        file: &PartitionedFile,
        of_file: OfFile,
        groups: Vec<usize>,
        selection: Option<RowSelection>,
        metrics: FileMetrics,
        pruner: Option<FilePruner>,
        output: Schema,
    ) -> Result<Self> {
        let OfFile { schema, projection, filters } = of_file;
        let physical = Arc::clone(&schema.physical);
        let filter_columns: Vec<usize> =
            filters.all().flat_map(collect_columns).map(|column| column.index()).collect();
        let is_bindable = filter_columns.iter().all(|index| is_unique(&physical, *index));
        let after = (!is_bindable).then(|| conjunction(filters.fixed.iter().cloned()));
        let after = after.filter(|_| scan.filters_rows && !filters.fixed.is_empty());
        let outputs: Vec<_> = projection.expr_iter().collect();
        let columns = Columns::of(outputs.iter().chain(&after), &physical);
        let (store, path) = (Arc::clone(&scan.store), file.object_meta.location.clone());
        let reader = match scan.is_local {
            true => AsyncReader::open_async_with(LocalSource::new(store, path), metadata),
            false => AsyncReader::open_async_with(StoreSource::new(store, path), metadata),
        };
        let mut reader = reader.file_name(file.object_meta.location.as_ref());
        let mut options = reader.read_options().clone();
        options.arrow = schema.options(columns.positions.iter().copied().chain(filter_columns));
        options.projection = match &options.arrow.target {
            Some(_) => columns.by_name(&physical),
            None => columns.projection.clone(),
        };
        options.batch_rows = scan.batch_rows.max(1);
        options.page_index = scan.page_index;
        options.selection = selection;
        reader = reader.options(options).threads(1);
        let read = reader.schema()?;
        let mut fixed = None;
        if is_bindable && !filters.fixed.is_empty() {
            let whole = conjunction(filters.fixed.iter().cloned());
            fixed = Some(pushdown::predicate(&whole, &physical)?);
        }
        let at = |expr: Arc<dyn PhysicalExpr>| pushdown::at_positions(&expr, &columns.positions);
        let projector = projection.try_map_exprs(at)?.make_projector(&read)?;
        let after = after.map(at).transpose()?;
        let mut tracking = DynamicFilterTracking::Static;
        if is_bindable && !filters.learned.is_empty() {
            tracking =
                DynamicFilterTracking::classify(&conjunction(filters.learned.iter().cloned()));
        }
        let left = scan.limit.filter(|_| scan.filter.is_none() || scan.filters_rows);
        Ok(Self {
            reader,
            fixed,
            filters,
            is_bindable,
            physical,
            rate: Arc::clone(&scan.rate),
            tracking,
            after,
            filters_rows: scan.filters_rows,
            projector,
            output: Arc::new(output),
            waiting: groups.into(),
            current: None,
            left: left.map(|rows| rows as u64),
            asked: 0,
            given: 0,
            bytes: 0,
            opened: 0,
            wanted: 0,
            metrics,
            pruner,
            is_first: true,
        })
    }

    /// Opens the next row groups: all of them if no filter can change, else one.
    ///
    /// # Errors
    /// Whatever is wrong with the metadata or the filter.
    fn open_next(&mut self) -> Result<bool> {
        if let Some(pruner) = &mut self.pruner
            && !self.is_first
            && pruner.should_prune()?
        {
            self.metrics.row_groups_pruned_dynamic.add(self.waiting.len());
            self.waiting.clear();
        }
        if self.waiting.is_empty() || self.left == Some(0) {
            return Ok(false);
        }
        let n = if self.may_change() { 1 } else { self.waiting.len() };
        let groups: Vec<usize> = self.waiting.drain(..n).collect();
        let mut reader = self.reader.clone().row_groups(groups.iter().copied())?;
        if let (Some(left), None) = (self.left, &self.after) {
            reader = reader.limit(left);
        }
        let plan = self.planned(reader, groups.len())?;
        self.is_first = false;
        let (reader, plan) = plan;
        self.asked = plan.rows();
        self.given = 0;
        self.wanted = row_groups_of(&plan).len();
        self.opened = reader.progress().row_groups();
        self.current = Some(reader.stream_of(plan)?);
        Ok(true)
    }

    /// Whether a filter may still be learned.
    fn may_change(&self) -> bool {
        matches!(self.tracking, DynamicFilterTracking::Watching(_))
    }

    /// The read of `groups` row groups, with what their statistics leave of them.
    fn planned(&mut self, reader: AsyncReader, groups: usize) -> Result<(AsyncReader, Plan)> {
        let Some(filter) = self.filter_now()? else {
            self.metrics.row_groups_pruned.add_matched(groups);
            let plan = reader.plan()?;
            return Ok((reader, plan));
        };
        let filtered = reader.clone().filter(filter);
        let plan = match filtered.plan() {
            Ok(plan) => plan,
            // A literal that the type of the column does not hold, perhaps.
            Err(e) if e.kind() == ErrorKind::Usage => {
                self.metrics.predicate_errors.add(1);
                return self.planned_untyped(reader);
            }
            Err(e) => return Err(e.into()),
        };
        self.count_row_groups(&plan, groups);
        if self.filters_rows {
            return Ok((filtered, plan));
        }
        let reader = reader.row_groups(row_groups_of(&plan))?;
        let plan = reader.plan()?;
        Ok((reader, plan))
    }

    /// The read with the filter as DataFusion evaluates it, and without any pruning.
    fn planned_untyped(&self, reader: AsyncReader) -> Result<(AsyncReader, Plan)> {
        let mut reader = reader;
        if self.filters_rows {
            for filter in &self.filters.fixed {
                reader = reader.filter(pushdown::untyped_predicate(filter, &self.physical)?);
            }
        }
        let plan = reader.plan()?;
        Ok((reader, plan))
    }

    fn count_row_groups(&self, plan: &Plan, groups: usize) {
        let left = row_groups_of(plan);
        let pruned = groups.saturating_sub(left.len());
        if self.is_first || self.filters.learned.is_empty() {
            self.metrics.row_groups_pruned.add_pruned(pruned);
            self.metrics.row_groups_pruned.add_matched(left.len());
            let sure = plan.ranges().iter().filter(|range| range.is_proven()).count();
            self.metrics.row_groups_pruned.add_fully_matched(sure.min(left.len()));
        } else {
            self.metrics.row_groups_pruned_dynamic.add(pruned);
        }
    }

    /// What the rows must pass, with what was learned until now.
    fn filter_now(&self) -> Result<Option<Predicate>> {
        let mut parts = Vec::from_iter(self.fixed.clone());
        if self.is_bindable {
            let may_change = self.may_change();
            for filter in &self.filters.learned {
                let (schema, rate) = (&self.physical, &self.rate);
                parts.push(pushdown::learned_predicate(filter, schema, rate, may_change)?);
            }
        }
        Ok((!parts.is_empty()).then(|| Predicate::all_of(parts)))
    }

    /// Counts what was fetched and filtered until now.
    fn count(&mut self, given: usize, is_end: bool) {
        let bytes = self.reader.progress().bytes_fetched();
        self.metrics.bytes_scanned.add(saturated(bytes - self.bytes));
        self.bytes = bytes;
        self.given += given as u64;
        if self.fixed.is_some() && self.filters_rows {
            self.metrics.rows_matched.add(given);
            if is_end {
                let opened = saturated(self.reader.progress().row_groups() - self.opened);
                let bloom = &self.metrics.row_groups_pruned_bloom;
                bloom.add_pruned(self.wanted.saturating_sub(opened));
                bloom.add_matched(opened.min(self.wanted));
                self.metrics.rows_pruned.add(saturated(self.asked.saturating_sub(self.given)));
            }
        }
    }

    /// A batch as the query wants it.
    fn finished(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.after {
            Some(filter) => filter_record_batch(&batch, &pushdown::evaluate(filter, &batch)?)?,
            None => batch,
        };
        let batch = self.projector.project_batch(&batch)?;
        if batch.schema_ref() == &self.output {
            return Ok(batch);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (_, columns, _) = batch.into_parts();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            let Some(current) = &mut self.current else {
                if !self.open_next()? {
                    return Poll::Ready(Ok(None));
                }
                continue;
            };
            match ready!(Pin::new(current).poll_next(cx)) {
                Some(batch) => {
                    let batch = batch?;
                    self.count(batch.num_rows(), false);
                    let batch = self.finished(batch)?;
                    if let Some(left) = &mut self.left {
                        *left = left.saturating_sub(batch.num_rows() as u64);
                    }
                    if batch.num_rows() > 0 {
                        return Poll::Ready(Ok(Some(batch)));
                    }
                }
                None => {
                    self.count(0, true);
                    self.current = None;
                }
            }
        }
    }
}

impl Stream for FileStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = ready!(self.poll_batch(cx));
        if polled.is_err() {
            // After an error there is nothing more.
            self.current = None;
            self.waiting.clear();
        }
        Poll::Ready(polled.transpose())
    }
}

/// The row groups that a plan reads.
fn row_groups_of(plan: &Plan) -> Vec<usize> {
    let mut out: Vec<usize> = plan.ranges().iter().map(|range| range.row_group).collect();
    out.dedup();
    out
}

/// Whether no other column has the name of this one, so that a predicate can name it.
fn is_unique(schema: &Schema, index: usize) -> bool {
    let Some(field) = schema.fields().get(index) else { return false };
    schema.fields().iter().filter(|other| other.name() == field.name()).count() == 1
}
