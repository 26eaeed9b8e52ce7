//! [`ReplaceParquet`] replaces scans of DataFusion's own source by ours.
//!
//! Trap: a scan with a request that is not understood here stays unchanged: unknown extensions of
//! files, readers of the caller's, keys, columns that the reader makes up, filters of rows where
//! ours only prunes.

use std::fmt::{self, Write};
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource_parquet::source::ParquetSource;
use datafusion_execution::cache::cache_manager::FileMetadataCache;
use datafusion_execution::cache::default_cache::DefaultCache;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_session::PhysicalOptimizerRule;

use crate::columns::RowNumberColumns;
use crate::extensions;
use crate::schema::TypeOptions;
use crate::settings::{ScanSettings, check_options};
use crate::source::MarquetrySource;

/// A physical optimizer rule that swaps scans of DataFusion's own `ParquetSource` for scans of this
/// crate: those of tables that `register_parquet` made, and of table formats that build on it.
///
/// A scan stays as it was if it asks for something that is not understood: encryption, virtual
/// columns other than row numbers, a file reader of the caller's, extensions of files other than
/// access plans and row selections. It also stays if a filter of rows was pushed into it and the
/// [settings](Self::with_settings) only prune by filters. So do the scans below a node that refuses
/// another scan than its own, such as a scan of delta-rs of files with deletion vectors. Put the
/// rule in front of the others, so that they push filters and orders into our scan:
///
/// A rule knows no session. What scans hold is reserved from the memory pool that it is given, and
/// footers are kept in the cache that it is given; both are in the runtime of a session:
///
/// ```ignore
/// let runtime = Arc::new(RuntimeEnv::default());
/// let rule = ReplaceParquet::new()
///     .with_memory_pool(Arc::clone(&runtime.memory_pool))
///     .with_metadata_cache(runtime.cache_manager.get_file_metadata_cache());
/// let state = SessionStateBuilder::new_with_default_features().with_runtime_env(runtime);
/// let mut rules = PhysicalOptimizer::new().rules;
/// rules.insert(0, Arc::new(rule));
/// let ctx = SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build());
/// ```
#[derive(Clone)]
pub struct ReplaceParquet {
    settings: ScanSettings,
    cache: Arc<FileMetadataCache>,
    pool: Option<Arc<dyn MemoryPool>>,
}

impl fmt::Debug for ReplaceParquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplaceParquet").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Default for ReplaceParquet {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplaceParquet {
    /// The rule, with a cache of its own for the metadata of files, of 50 MB.
    pub fn new() -> Self {
        let cache = Arc::new(DefaultCache::new(CACHE_BYTES));
        Self { settings: ScanSettings::default(), cache, pool: None }
    }

    /// As [`MarquetrySource::with_memory_pool`]: that of a session is `runtime_env().memory_pool`.
    /// Without it nothing is reserved.
    #[must_use]
    pub fn with_memory_pool(mut self, pool: Arc<dyn MemoryPool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Keeps the metadata of files in this cache: that of a session is
    /// `runtime_env().cache_manager.get_file_metadata_cache()`.
    #[must_use]
    pub fn with_metadata_cache(mut self, cache: Arc<FileMetadataCache>) -> Self {
        self.cache = cache;
        self
    }

    /// Passes these settings to scans, except their options, which are those of the replaced scan.
    #[must_use]
    pub fn with_settings(mut self, settings: ScanSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The plan with scans of ours; `None` if none of its scans is replaced.
    fn replaced(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        if let Some(ours) = self.swapped(plan, config) {
            return Some(ours);
        }
        let old = plan.children();
        let new: Vec<_> = old.iter().map(|child| self.replaced(child, config)).collect();
        if new.iter().all(Option::is_none) {
            return None;
        }
        let children = old.into_iter().zip(new);
        let children = children.map(|(old, new)| new.unwrap_or_else(|| Arc::clone(old))).collect();
        // A node may refuse another scan than that it was planned with, as that of delta-rs does
        // where files have deletion vectors: what is below it then stays.
        replace_children_if_necessary(Arc::clone(plan), children).ok()
    }

    fn swapped(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config_options: &ConfigOptions,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let scan = plan.downcast_ref::<DataSourceExec>()?;
        let (config, source) = scan.downcast_to_file_source::<ParquetSource>()?;
        if !is_understood(config, source) {
            return None;
        }
        let options = source.table_parquet_options();
        // Nothing above it evaluates the filter that it took over.
        let filters_rows = source.filter().is_some() && options.global.pushdown_filters;
        if filters_rows && !self.settings.filters_rows() {
            return None;
        }
        let mut ours = MarquetrySource::new(source.table_schema().clone())
            .with_settings(self.settings.clone().with_options(options.clone()))
            .in_session(config_options)
            .with_metadata_cache(Arc::clone(&self.cache));
        if let Some(pool) = &self.pool {
            ours = ours.with_memory_pool(Arc::clone(pool));
        }
        if let Some(projection) = source.projection() {
            ours = ours.with_projection(projection.clone());
        }
        if let Some(filter) = source.filter() {
            ours = ours.with_filter(filter);
        }
        let config =
            FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(ours)).build();
        Some(DataSourceExec::from_data_source(config))
    }
}

impl PhysicalOptimizerRule for ReplaceParquet {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.replaced(&plan, config).unwrap_or(plan))
    }

    fn name(&self) -> &str {
        "replace_parquet"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Bytes of the cache of a rule, unless the caller has one: as many as a session has by default.
const CACHE_BYTES: usize = 50 << 20;

/// Whether all that a scan asks for is known here.
fn is_understood(config: &FileScanConfig, source: &ParquetSource) -> bool {
    let options = source.table_parquet_options();
    let mut files = config.file_groups.iter().flat_map(|group| group.iter());
    check_options(options).is_ok()
        && TypeOptions::new(&options.global).is_ok()
        && RowNumberColumns::from_table(source.table_schema()).is_ok()
        && source.parquet_file_reader_factory().is_none_or(|factory| is_stock(factory))
        && files.all(extensions::are_known)
}

/// Whether files are read as DataFusion reads them. Its factories have public types, but what a
/// scan holds cannot be asked for its type: the whole name of the type has to do, which their
/// `Debug` begins with.
fn is_stock(factory: &dyn fmt::Debug) -> bool {
    let mut name = Prefix(String::new());
    // It ends with an error once it is long enough: a cache may follow.
    let _ = write!(name, "{factory:?}");
    let name = name.0.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    matches!(name, Some("CachedParquetFileReaderFactory" | "DefaultParquetFileReaderFactory"))
}

/// Takes the beginning of a text.
struct Prefix(String);

impl Write for Prefix {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() < 64 { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use datafusion_common::tree_node::TreeNodeRecursion;
    use datafusion_common::{DataFusionError, internal_err};
    use datafusion_datasource::TableSchema;
    use datafusion_datasource::file_groups::FileGroup;
    use datafusion_execution::object_store::ObjectStoreUrl;
    use datafusion_execution::{SendableRecordBatchStream, TaskContext};
    use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
    use datafusion_physical_plan::union::UnionExec;
    use datafusion_physical_plan::{DisplayAs, DisplayFormatType, PlanProperties};

    use super::*;

    /// A node that takes no other child than its own.
    #[derive(Debug)]
    struct Refusing(Arc<dyn ExecutionPlan>);

    impl DisplayAs for Refusing {
        fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.name())
        }
    }

    impl ExecutionPlan for Refusing {
        fn name(&self) -> &'static str {
            "Refusing"
        }

        fn properties(&self) -> &Arc<PlanProperties> {
            self.0.properties()
        }

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.0]
        }

        fn with_new_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            match children.first() {
                Some(child) if Arc::ptr_eq(child, &self.0) => Ok(self),
                _ => internal_err!("another child"),
            }
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion, DataFusionError>,
        ) -> Result<TreeNodeRecursion, DataFusionError> {
            Ok(TreeNodeRecursion::Continue)
        }

        fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
            internal_err!("it is not run")
        }
    }

    fn scan() -> Arc<dyn ExecutionPlan> {
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
        let source = ParquetSource::new(TableSchema::builder(schema).build());
        let store = ObjectStoreUrl::local_filesystem();
        let config = FileScanConfigBuilder::new(store, Arc::new(source))
            .with_file_groups(vec![FileGroup::new(Vec::new())]);
        DataSourceExec::from_data_source(config.build())
    }

    /// Scans of ours, and all scans.
    fn scans(plan: &Arc<dyn ExecutionPlan>) -> (usize, usize) {
        let here = plan.downcast_ref::<DataSourceExec>().map_or((0, 0), |scan| {
            (scan.downcast_to_file_source::<MarquetrySource>().map_or(0, |_| 1), 1)
        });
        let below = plan.children().into_iter().map(scans);
        below.fold(here, |(ours, all), (more, of_all)| (ours + more, all + of_all))
    }

    #[test]
    fn a_node_that_refuses_another_scan_keeps_its_own() {
        let rule = ReplaceParquet::new();
        let optimized = |plan| rule.optimize(plan, &ConfigOptions::new()).expect("a plan");
        let below = UnionExec::try_new(vec![scan(), scan()]).expect("a union");
        let refusing: Arc<dyn ExecutionPlan> = Arc::new(Refusing(below));
        assert!(Arc::ptr_eq(&optimized(Arc::clone(&refusing)), &refusing));
        let plan = UnionExec::try_new(vec![refusing, scan()]).expect("a union");
        assert_eq!(scans(&optimized(plan)), (1, 3));
    }
}
