//! [`Guarded`]: the plan of a scan, whose panics end the query and not the process.
//!
//! Trap: a panic that reaches a function of `datafusion-ffi` aborts the process.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, Statistics};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion_physical_plan::metrics::MetricsSet;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs, StatisticsContext,
    displayable,
};
use futures_core::Stream;

/// A plan as one node, named by what it shows of itself: a name is all that DataFusion's `EXPLAIN`
/// has of plans of other libraries.
#[derive(Debug)]
pub(crate) struct Guarded {
    plan: Arc<dyn ExecutionPlan>,
    name: String,
}

impl Guarded {
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>) -> Self {
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let name = shown.lines().map(str::trim).collect::<Vec<_>>().join(" <- ");
        Self { plan, name }
    }
}

/// The result of `work`; an error if it panics.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// The error for a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> DataFusionError {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "it has no message",
    };
    DataFusionError::Internal(format!("marquetry panicked: {text}"))
}

impl DisplayAs for Guarded {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExecutionPlan for Guarded {
    fn name(&self) -> &str {
        &self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn repartitioned(
        &self,
        partitions: usize,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let divided = guarded(|| self.plan.repartitioned(partitions, config))?;
        Ok(divided.map(|plan| Arc::new(Self::new(plan)) as Arc<dyn ExecutionPlan>))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batches = guarded(|| self.plan.execute(partition, context))?;
        Ok(Box::pin(Batches(Some(batches), self.plan.schema())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.plan.metrics()
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        guarded(|| StatisticsContext::new().compute(self.plan.as_ref(), args))
    }
}

/// The batches of a plan; they end with a panic.
struct Batches(Option<SendableRecordBatchStream>, SchemaRef);

impl Stream for Batches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(batches) = &mut self.0 else { return Poll::Ready(None) };
        let polled = catch_unwind(AssertUnwindSafe(|| batches.as_mut().poll_next(cx)));
        polled.unwrap_or_else(|panic| {
            self.0 = None;
            Poll::Ready(Some(Err(panicked(&*panic))))
        })
    }
}

impl RecordBatchStream for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.1)
    }
}
