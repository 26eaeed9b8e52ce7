//! Tests that tables of delta-rs are read through this crate by the rule `ReplaceParquet`: their
//! rows beside those of DataFusion's own source, and changes of a table that scan it.

mod changes;
mod deleted;
mod feed;
mod rows;
mod tables;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use deltalake_core::DeltaTable;
use deltalake_core::delta_datafusion::DeltaSessionConfig;
use deltalake_core::delta_datafusion::planner::DeltaPlanner;
use marquetry_datafusion::{MarquetrySource, ReplaceParquet};

/// Scans of Parquet in a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Scans {
    ours: usize,
    stock: usize,
}

impl Scans {
    fn in_plan(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut found = Self::default();
        if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
            found.ours += usize::from(scan.downcast_to_file_source::<MarquetrySource>().is_some());
            found.stock += usize::from(scan.downcast_to_file_source::<ParquetSource>().is_some());
        }
        for child in plan.children() {
            let of_child = Self::in_plan(child);
            found.ours += of_child.ours;
            found.stock += of_child.stock;
        }
        found
    }
}

/// Counts the scans in plans as the last rule leaves them.
#[derive(Debug, Default)]
struct Counted {
    ours: AtomicUsize,
    stock: AtomicUsize,
}

impl Counted {
    /// The scans since the last call.
    fn take(&self) -> Scans {
        let take = |of: &AtomicUsize| of.swap(0, Ordering::Relaxed);
        Scans { ours: take(&self.ours), stock: take(&self.stock) }
    }
}

#[derive(Debug)]
struct Count(Arc<Counted>);

impl PhysicalOptimizerRule for Count {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let found = Scans::in_plan(&plan);
        self.0.ours.fetch_add(found.ours, Ordering::Relaxed);
        self.0.stock.fetch_add(found.stock, Ordering::Relaxed);
        Ok(plan)
    }

    fn name(&self) -> &str {
        "count_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Which sessions read a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    No,
    First,
    Last,
}

struct Session {
    ctx: SessionContext,
    scans: Arc<Counted>,
}

impl Session {
    /// A session as delta-rs makes one, which divides even small files.
    fn new(rule: Rule) -> Self {
        Self::with_config(rule, DeltaSessionConfig::default().into())
    }

    fn with_config(rule: Rule, config: SessionConfig) -> Self {
        let config = config.with_target_partitions(3).with_repartition_file_min_size(1);
        let runtime = Arc::new(RuntimeEnv::default());
        let replace = ReplaceParquet::new()
            .with_memory_pool(Arc::clone(&runtime.memory_pool))
            .with_metadata_cache(runtime.cache_manager.get_file_metadata_cache());
        let mut rules = PhysicalOptimizer::new().rules;
        match rule {
            Rule::No => {}
            Rule::First => rules.insert(0, Arc::new(replace)),
            Rule::Last => rules.push(Arc::new(replace)),
        }
        let scans = Arc::new(Counted::default());
        rules.push(Arc::new(Count(Arc::clone(&scans))));
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_query_planner(DeltaPlanner::new())
            .with_physical_optimizer_rules(rules);
        Self { ctx: SessionContext::new_with_state(state.build()), scans }
    }

    async fn register(&self, name: &str, table: &DeltaTable) {
        table.update_datafusion_session(&self.ctx.state()).expect("a store");
        let provider = table.table_provider().await.expect("a provider");
        self.ctx.register_table(name, provider).expect("a name");
    }

    async fn plan(&self, sql: &str) -> String {
        let plan = self.ctx.sql(sql).await.expect(sql).create_physical_plan().await.expect(sql);
        displayable(plan.as_ref()).indent(true).to_string()
    }

    /// The rows of a query, in the order of their texts.
    async fn rows(&self, sql: &str) -> Vec<String> {
        let batches = self.ctx.sql(sql).await.expect(sql).collect().await;
        let mut rows = texts(&batches.unwrap_or_else(|error| panic!("{sql}: {error}")));
        rows.sort();
        rows
    }
}

/// Each row as a text.
fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("∅");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("a type"))
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            cells.collect::<Vec<_>>().join(" | ")
        }));
    }
    rows
}
