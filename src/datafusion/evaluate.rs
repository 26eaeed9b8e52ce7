//! Evaluation of the expressions of DataFusion.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use datafusion_common::Result;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

/// Of which rows a filter is true.
///
/// # Errors
/// Those of the expression.
pub(super) fn evaluate(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let tested = expr.evaluate(batch)?.into_array(batch.num_rows())?;
    match tested.as_boolean_opt() {
        Some(tested) => Ok(tested.clone()),
        None => datafusion_common::internal_err!(
            "the filter {expr} gives {}, not Boolean",
            tested.data_type()
        ),
    }
}
