//! [`Here`]: what this library knows of a session of DataFusion, and the runtime of its own.
//!
//! A session behind the interface of `datafusion-ffi` has no stores and no caches, and the
//! expressions that it plans are opaque. So scans are planned in a session of this library, with
//! the options of that one.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use datafusion_catalog::MemoryCatalogProviderList;
use datafusion_common::config::TableOptions;
use datafusion_common::{DFSchema, Result, not_impl_err};
use datafusion_execution::cache::cache_manager::CacheManagerConfig;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_execution::{TaskContext, TaskContextProvider};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::registry::{ExtensionTypeRegistryRef, MemoryExtensionTypeRegistry};
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::{CatalogProviderList, Session};
use tokio::runtime::Runtime;

/// Threads for what the library does in the background: a thread of DataFusion's runtime is none of
/// this one, because each library has its own.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.thread_name("marq-datafusion").build().expect("the system has threads")
});

/// The local file system, and the metadata of files that queries have read. Lists of files are not
/// kept: each query sees the files that there are.
static ENVIRONMENT: LazyLock<Arc<RuntimeEnv>> = LazyLock::new(|| {
    let caches = CacheManagerConfig::default().with_list_files_cache_limit(0);
    let built = RuntimeEnvBuilder::new().with_cache_manager(caches).build_arc();
    built.unwrap_or_default()
});

/// A session of this library.
pub(crate) struct Here {
    config: SessionConfig,
    tables: TableOptions,
    scalars: HashMap<String, Arc<ScalarUDF>>,
    higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    aggregates: HashMap<String, Arc<AggregateUDF>>,
    windows: HashMap<String, Arc<WindowUDF>>,
    types: ExtensionTypeRegistryRef,
    props: ExecutionProps,
}

impl Here {
    pub(crate) fn new(config: SessionConfig) -> Self {
        Self {
            tables: TableOptions::default_from_session_config(config.options()),
            config,
            scalars: HashMap::new(),
            higher_order: HashMap::new(),
            aggregates: HashMap::new(),
            windows: HashMap::new(),
            types: Arc::new(MemoryExtensionTypeRegistry::new_empty()),
            props: ExecutionProps::new(),
        }
    }
}

#[async_trait]
impl Session for Here {
    fn session_id(&self) -> &str {
        "marq-datafusion"
    }

    fn config(&self) -> &SessionConfig {
        &self.config
    }

    fn catalog_list(&self) -> Arc<dyn CatalogProviderList> {
        Arc::new(MemoryCatalogProviderList::new())
    }

    async fn create_physical_plan(&self, _: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!("marq-datafusion plans scans only")
    }

    fn create_physical_expr(&self, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        create_physical_expr(&expr, schema, &self.props, &PhysicalPlanningContext::default())
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        &self.scalars
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        &self.higher_order
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        &self.aggregates
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        &self.windows
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        &self.types
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        &ENVIRONMENT
    }

    fn execution_props(&self) -> &ExecutionProps {
        &self.props
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_options(&self) -> &TableOptions {
        &self.tables
    }

    fn table_options_mut(&mut self) -> &mut TableOptions {
        &mut self.tables
    }

    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::from(self as &dyn Session))
    }
}

/// A context for tables that are asked for without a session: it knows no functions.
static NO_SESSION: LazyLock<Arc<NoSession>> = LazyLock::new(|| Arc::new(NoSession));

/// That context. DataFusion holds no more than a weak reference to it.
pub(crate) fn no_session() -> Arc<dyn TaskContextProvider> {
    Arc::clone(&*NO_SESSION) as Arc<dyn TaskContextProvider>
}

struct NoSession;

impl TaskContextProvider for NoSession {
    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::default()
    }
}
