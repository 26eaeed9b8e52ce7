//! Evaluates expressions of DataFusion.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_select::concat::concat;
use datafusion_common::Result;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

/// Evaluates a filter: the result is true for the rows that pass.
///
/// # Errors
/// Those of the expression.
pub(crate) fn evaluate(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let tested = expr.evaluate(batch)?.into_array(batch.num_rows())?;
    match tested.as_boolean_opt() {
        Some(tested) => Ok(tested.clone()),
        None => datafusion_common::internal_err!(
            "the filter {expr} gives {}, not Boolean",
            tested.data_type()
        ),
    }
}

/// Like [`evaluate`], for an expression that can fail. It fails if it does for a row alone: whether
/// `a = 0 OR 1 / a > 2` fails for a batch depends on which rows are in it.
///
/// # Errors
/// Those of the expression.
pub(crate) fn evaluate_by_row(
    expr: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
) -> Result<BooleanArray> {
    let rows = batch.num_rows();
    match evaluate(expr, batch) {
        Err(_) if rows > 1 => {
            let half = rows / 2;
            let first = evaluate_by_row(expr, &batch.slice(0, half))?;
            let last = evaluate_by_row(expr, &batch.slice(half, rows - half))?;
            Ok(concat(&[&first, &last])?.as_boolean().clone())
        }
        tested => tested,
    }
}
