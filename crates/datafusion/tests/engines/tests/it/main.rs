//! Tests DataFusion with marquetry in place of its own Parquet source, against DataFusion as it is.

mod aggregates;
mod ahead;
mod bounds;
mod caches;
mod codec;
mod contracts;
mod distributed;
mod failing;
mod files;
mod filters;
mod learned;
mod narrowing;
mod plans;
mod random;
mod replace;
mod store;
mod tpch;
mod virtual_columns;
mod write;

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use engines::{ours, register, rows, stock};

/// The same tables in both engines.
pub struct Pair {
    pub stock: SessionContext,
    pub ours: SessionContext,
}

impl Pair {
    /// An engine with `partitions` partitions, which splits even the smallest files.
    pub fn new(partitions: usize) -> Self {
        let mut config = SessionConfig::new().with_target_partitions(partitions);
        config = config.with_repartition_file_min_size(1);
        Self { stock: stock(config.clone()), ours: ours(config) }
    }

    pub async fn table(&self, name: &str, path: &Path) {
        register(&self.stock, name, path).await.expect("a table of DataFusion");
        register(&self.ours, name, path).await.expect("a table of marquetry");
    }

    /// Runs a statement in both.
    pub async fn run(&self, sql: &str) {
        query(&self.stock, sql).await;
        query(&self.ours, sql).await;
    }

    /// Compares the rows of a query, in any order; returns how many there are.
    pub async fn same(&self, sql: &str) -> usize {
        let (mut expected, mut found) =
            (rows(&query(&self.stock, sql).await), rows(&query(&self.ours, sql).await));
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{sql}");
        found.len()
    }

    /// The same, in the order of the answer.
    pub async fn same_order(&self, sql: &str) {
        let (expected, found) = (query(&self.stock, sql).await, query(&self.ours, sql).await);
        assert_eq!(rows(&found), rows(&expected), "{sql}");
    }
}

/// The answer of a query.
pub async fn query(session: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = session.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    frame.collect().await.unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The plan of a query.
pub async fn plan(session: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    let frame = session.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    frame.create_physical_plan().await.unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// A plan as text.
pub fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string()
}

/// A metric of a plan that was run, over all of its nodes.
pub fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| {
        let found = metrics.iter().filter(|metric| metric.value().name() == name);
        Some(found.map(|metric| metric.value().as_usize()).sum::<usize>())
    });
    own.unwrap_or(0) + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}
