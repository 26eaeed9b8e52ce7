//! [`MarquetrySource`]: the scan of files, as DataFusion plans it.

use std::fmt;
use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_datasource::file_stream::FileOpener;
use datafusion_datasource::morsel::Morselizer;
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_execution::cache::cache_manager::FileMetadataCache;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr::utils::{collect_columns, conjunction};
use datafusion_physical_expr_adapter::DefaultPhysicalExprAdapterFactory;
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, is_volatile};
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion_physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use datafusion_physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_pruning::build_pruning_predicate;
use object_store::ObjectStore;

use crate::columns::RowNumberColumns;
use crate::files::Files;
use crate::learned::{PassRates, Trust};
use crate::metrics::OutputRows;
use crate::pushdown;
use crate::row_groups::{ReadOrder, sort_by_bound};
use crate::scan::Scan;
use crate::schema::TypeOptions;
use crate::settings::{ScanSettings, check_options};
use marquetry::read::PageIndexUse;

/// Scans Parquet files for DataFusion.
///
/// Filters are evaluated in the scan unless [`ScanSettings::with_pushdown`] says otherwise; row
/// groups and pages that they exclude are not read in any case. These options of DataFusion have an
/// effect, because they decide what is read and what prunes it: `binary_as_string`, `coerce_int96`,
/// `coerce_int96_tz`, `enable_page_index`, `pruning`, `bloom_filter_on_read` and
/// `metadata_size_hint`. Options that only tune DataFusion's own source have none.
///
/// Footers, and the page indexes and bloom filters that queries have fetched, are kept in the file
/// metadata cache of the session. The indexes of one file take at most an eighth of it. All of it
/// counts against the limit of that cache, which is the option
/// `datafusion.runtime.metadata_cache_limit`, indexes included, and not against the memory pool.
/// Indexes that a scan has fetched for the cache are reserved from the pool until the scan of the
/// file ends.
///
/// Filters that a query learns are used while they pay. Those that may be bounds which DataFusion
/// 55.2 learns for MIN and MAX are not, because it forgets other aggregates of the same query that
/// need more rows: bounds without anything else, if the option
/// `datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown` is on, unless the rows are asked
/// for in the order of that very column. [`install!`](crate::install) turns the option off.
///
/// Virtual columns of the table are supported that have the type `Int64` and the extension type
/// `parquet.virtual.row_number`: the number of each row in its file, from 0. Of other kinds they
/// are an error when the scan begins.
///
/// # Metrics
/// They have the names and the meanings of DataFusion's own source. In detail:
///
/// * `predicate_cache_inner_records`: values that were decoded for the filter, of columns that the
///   scan also returns: one for each row and leaf. `predicate_cache_records`: those of them that
///   were returned, and so not decoded a second time. From far stores the columns of the filter may
///   be fetched and decoded first, and decoded again: both are then 0.
/// * `page_index_load_skipped`: how often no page index was fetched, because statistics prove that
///   all rows of the remaining row groups pass, or no tested column has one. It counts once for a
///   file, and once for each row group if those are opened one by one, because a filter may still
///   change.
/// * `page_index_pages_skipped_by_fully_matched` is always 0, and so never shown: the page indexes
///   of such row groups are not fetched, so that their number of pages is unknown.
#[derive(Clone)]
pub struct MarquetrySource {
    table: TableSchema,
    settings: ScanSettings,
    projection: ProjectionExprs,
    filter: Option<Arc<dyn PhysicalExpr>>,
    batch_rows: Option<usize>,
    order: ReadOrder,
    cache: Option<Arc<FileMetadataCache>>,
    pool: Option<Arc<dyn MemoryPool>>,
    metrics: ExecutionPlanMetricsSet,
    rates: Arc<PassRates>,
    output_rows: Arc<OutputRows>,
    /// Whether a learned filter may be one of aggregates. Nothing is known of filters that were not
    /// pushed down by an optimizer.
    has_aggregate_filters: bool,
}

impl fmt::Debug for MarquetrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarquetrySource")
            .field("table", &self.table)
            .field("projection", &self.projection)
            .field("filter", &self.filter)
            .field("settings", &self.settings)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

impl MarquetrySource {
    /// A scan of all columns of a table.
    pub fn new(table: impl Into<TableSchema>) -> Self {
        let table = table.into();
        let schema = table.table_schema();
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        Self {
            projection: ProjectionExprs::from_indices(&all, schema),
            table,
            settings: ScanSettings::default(),
            filter: None,
            batch_rows: None,
            order: ReadOrder::default(),
            cache: None,
            pool: None,
            metrics: ExecutionPlanMetricsSet::new(),
            rates: Arc::default(),
            output_rows: Arc::default(),
            has_aggregate_filters: true,
        }
    }

    /// Goes by these settings.
    #[must_use]
    pub fn with_settings(mut self, settings: ScanSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The settings that it goes by.
    pub fn settings(&self) -> &ScanSettings {
        &self.settings
    }

    /// Keeps the metadata of files in this cache.
    #[must_use]
    pub fn with_metadata_cache(mut self, cache: Arc<FileMetadataCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Reserves fetched and decoded bytes from this pool. At most an eighth of it is fetched ahead;
    /// if it is exhausted, row groups are fetched one at a time.
    #[must_use]
    pub fn with_memory_pool(mut self, pool: Arc<dyn MemoryPool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// The rows for which `filter`, over the columns of the table, is true.
    #[must_use]
    pub fn with_filter(mut self, filter: Arc<dyn PhysicalExpr>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Trusts learned filters as far as these options of the session say where they come from.
    pub(crate) fn in_session(mut self, config: &ConfigOptions) -> Self {
        self.has_aggregate_filters = config.optimizer.enable_aggregate_dynamic_filter_pushdown;
        self
    }

    pub(crate) fn with_projection(mut self, projection: ProjectionExprs) -> Self {
        self.projection = projection;
        self
    }

    /// The order in which row groups are read.
    #[cfg(feature = "proto")]
    pub(crate) fn read_order(&self) -> &ReadOrder {
        &self.order
    }

    #[cfg(feature = "proto")]
    pub(crate) fn with_read_order(mut self, order: ReadOrder) -> Self {
        self.order = order;
        self
    }

    /// The files of a partition of a scan.
    ///
    /// # Errors
    /// `NotImplemented` for options and columns that are not supported.
    fn files(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Files> {
        check_options(self.settings.options())?;
        let row_numbers = RowNumberColumns::from_table(&self.table)?;
        if self.filter.as_ref().is_some_and(|filter| row_numbers.are_in(filter)) {
            return Err(DataFusionError::NotImplemented(
                "marquetry: a filter by a virtual column in a scan: put it above the scan"
                    .to_owned(),
            ));
        }
        self.output_rows.begin(partition, &self.metrics);
        let projection = self.projection.clone();
        let projection = projection.try_map_exprs(|expr| row_numbers.replaced(expr))?;
        let default_adapters = || Arc::new(DefaultPhysicalExprAdapterFactory) as Arc<_>;
        let adapters = config.expr_adapter_factory.clone().unwrap_or_else(default_adapters);
        let global = &self.settings.options().global;
        Ok(Files(Arc::new(Scan {
            partition,
            store,
            is_local: config.object_store_url.as_str().starts_with("file:"),
            cache: self.cache.clone(),
            pool: self.pool.clone(),
            metrics: self.metrics.clone(),
            table: self.table.clone(),
            projection,
            filter: match (&self.filter, config.limit) {
                // The rows up to the limit are those of the fixed filters: with fewer of them,
                // rows beyond it would come in.
                (Some(filter), Some(_)) => pushdown::without_learned(filter),
                (filter, _) => filter.clone(),
            },
            filters_rows: self.settings.filters_rows(),
            prunes: global.pruning,
            uses_bloom_filters: global.bloom_filter_on_read,
            adapters,
            batch_rows: self.batch_rows.or(config.batch_size).unwrap_or(DEFAULT_BATCH_ROWS),
            limit: config.limit,
            is_ordered: config.preserve_order || !config.output_ordering.is_empty(),
            // A limit counts the rows in their own order, which a sort above it does not change.
            order: match config.limit {
                Some(_) => ReadOrder::default(),
                None => self.order.clone(),
            },
            types: TypeOptions::new(global)?,
            limits: self.settings.limits().clone(),
            size_hint: self.settings.size_hint(),
            page_index: if global.enable_page_index {
                PageIndexUse::Auto
            } else {
                PageIndexUse::Never
            },
            rates: Arc::clone(&self.rates),
            output_rows: Arc::clone(&self.output_rows),
            trust: Arc::new(Trust::new(self.has_aggregate_filters, self.order.by_bounds.as_ref())),
        })))
    }

    /// The part of a filter that the statistics of row groups can decide, as DataFusion's own
    /// source shows it. The predicate by which files are pruned may include more.
    fn fmt_pruning(
        &self,
        filter: &Arc<dyn PhysicalExpr>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let schema = self.table.table_schema();
        let pruned = match self.settings.options().global.pruning {
            true => build_pruning_predicate(Arc::clone(filter), schema, &Count::new()),
            false => None,
        };
        let Some(pruned) = pruned else { return Ok(()) };
        let guarantees = pruned.literal_guarantees().iter();
        let mut guarantees: Vec<String> = guarantees.map(ToString::to_string).collect();
        guarantees.sort();
        write!(f, ", pruning_predicate={}", pruned.predicate_expr())?;
        write!(f, ", required_guarantees=[{}]", guarantees.join(", "))
    }

    /// Whether a filter can be evaluated in the scan.
    fn can_evaluate(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let schema = self.table.schema_without_virtual_columns();
        let is_of_file = |column: Column| {
            schema.fields().get(column.index()).is_some_and(|field| field.name() == column.name())
        };
        !is_volatile(filter) && collect_columns(filter).into_iter().all(is_of_file)
    }
}

impl From<MarquetrySource> for Arc<dyn FileSource> {
    fn from(source: MarquetrySource) -> Self {
        Arc::new(source)
    }
}

impl FileSource for MarquetrySource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(self.files(store, config, partition)?))
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        Ok(Box::new(self.files(store, config, partition)?))
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows: Some(batch_size), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.filter.clone()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "marquetry"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if t == DisplayFormatType::TreeRender {
            return match &self.filter {
                Some(filter) => writeln!(f, "predicate={filter}"),
                None => Ok(()),
            };
        }
        if let Some(filter) = &self.filter {
            write!(f, ", predicate={filter}")?;
            let rows = if self.settings.filters_rows() { "rows" } else { "row groups" };
            write!(f, ", filters={rows}")?;
            if DynamicFilterTracking::classify(filter).contains_dynamic_filter() {
                write!(f, ", dynamic_rg_pruning=eligible")?;
            }
            self.fmt_pruning(filter, f)?;
        }
        if let Some(order) = &self.order.by_bounds {
            write!(f, ", sort_order_for_reorder=[{order}]")?;
        }
        if self.order.is_reversed {
            write!(f, ", reverse_row_groups=true")?;
        }
        Ok(())
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let can: Vec<bool> = filters.iter().map(|filter| self.can_evaluate(filter)).collect();
        let taken = filters.iter().zip(&can).filter(|(_, can)| **can).map(|(filter, _)| filter);
        let taken: Vec<_> = self.filter.iter().chain(taken).cloned().collect();
        let answers = can.iter().map(|can| match *can && self.settings.filters_rows() {
            true => PushedDown::Yes,
            false => PushedDown::No,
        });
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers.collect());
        if !can.contains(&true) {
            return Ok(answer);
        }
        let source = Self { filter: Some(conjunction(taken)), ..self.clone() }.in_session(config);
        Ok(answer.with_updated_node(Arc::new(source) as Arc<dyn FileSource>))
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.try_merge(projection)?;
        Ok(Some(Arc::new(self.clone().with_projection(projection))))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        let Some(wanted) = LexOrdering::new(order.iter().cloned()) else {
            return Ok(SortOrderPushdownResult::Unsupported);
        };
        if properties.ordering_satisfy(order.iter().cloned())? {
            return Ok(SortOrderPushdownResult::Exact { inner: Arc::new(self.clone()) });
        }
        for len in 1..order.len() {
            // A sort that knows the first keys to be in order ends sooner than one of a scan whose
            // order was changed.
            if properties.ordering_satisfy(order.iter().take(len).cloned())? {
                return Ok(SortOrderPushdownResult::Unsupported);
            }
        }
        let first = wanted.first();
        let is_column = first
            .expr
            .downcast_ref::<Column>()
            .is_some_and(|column| self.table.file_schema().field_with_name(column.name()).is_ok());
        if !is_column && !reversed(properties).ordering_satisfy(order.iter().cloned())? {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let is_reversed = !is_column || first.options.descending;
        let by_bounds = Some(wanted);
        let source = Self { order: ReadOrder { by_bounds, is_reversed }, ..self.clone() };
        Ok(SortOrderPushdownResult::Inexact { inner: Arc::new(source) })
    }

    fn reorder_files(&self, mut files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        let column = self.order.by_bounds.as_ref().and_then(|order| {
            let column = order.first().expr.downcast_ref::<Column>()?;
            self.table.table_schema().index_of(column.name()).ok()
        });
        let Some(column) = column else { return files };
        sort_by_bound(&mut files, self.order.is_reversed, |file| lower_bound(file, column));
        files
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let outputs = self.projection.iter().map(|output| &output.expr);
        datafusion_physical_plan::apply_expression_roots(self.filter.iter().chain(outputs), f)
    }

    #[cfg(feature = "proto")]
    fn try_to_proto(
        &self,
        base: &FileScanConfig,
        context: &datafusion_physical_plan::proto::ExecutionPlanEncodeCtx<'_>,
    ) -> Result<Option<datafusion_proto::protobuf::PhysicalPlanNode>> {
        use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
        use datafusion_proto::protobuf::{ParquetScanExecNode, PhysicalPlanNode};

        if !self.settings.is_portable() {
            // Our codec is asked then.
            return Ok(None);
        }
        check_travel(base)?;
        let scan = ParquetScanExecNode {
            base_conf: Some(base.try_to_proto(context)?),
            predicate: self
                .filter
                .as_ref()
                .map(|filter| context.encode_expr(filter))
                .transpose()?,
            parquet_options: Some(self.settings.options().try_into()?),
        };
        Ok(Some(PhysicalPlanNode { physical_plan_type: Some(PhysicalPlanType::ParquetScan(scan)) }))
    }
}

/// Rows of a batch, where the session does not say: what DataFusion has by default.
const DEFAULT_BATCH_ROWS: usize = 8192;

/// Checks that a message can hold the whole scan, so that a worker does not read other rows.
///
/// # Errors
/// `NotImplemented`.
#[cfg(feature = "proto")]
pub(crate) fn check_travel(config: &FileScanConfig) -> Result<()> {
    let mut files = config.file_groups.iter().flat_map(|group| group.iter());
    let lost = match files.find(|file| !file.extensions.is_empty()) {
        Some(file) => format!("the extensions of the file {}", file.object_meta.location),
        None if config.expr_adapter_factory.is_some() => "an expression adapter".to_owned(),
        None if !config.file_source().table_schema().virtual_columns().is_empty() => {
            "virtual columns".to_owned()
        }
        None => return Ok(()),
    };
    Err(DataFusionError::NotImplemented(format!(
        "marquetry: a scan with {lost} cannot be sent to a worker: run it in this process"
    )))
}

/// The properties of the same rows from the last to the first.
fn reversed(properties: &EquivalenceProperties) -> EquivalenceProperties {
    let mut out = properties.clone();
    out.clear_orderings();
    let orders = properties.oeq_class().iter();
    out.add_orderings(
        orders.map(|order| order.iter().map(|key| key.reverse()).collect::<Vec<_>>()),
    );
    out
}

/// The lower bound of a column in a file.
fn lower_bound(file: &PartitionedFile, column: usize) -> Option<ScalarValue> {
    let statistics = file.statistics.as_ref()?;
    let bound = statistics.column_statistics.get(column)?.min_value.get_value();
    bound.filter(|bound| !bound.is_null() && !bound.data_type().is_nested()).cloned()
}
