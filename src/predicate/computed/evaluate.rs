//! Evaluates expressions on batches, and compares their values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_ord::cmp;
use arrow_schema::DataType;

use super::bound::{BoundExpression, BoundStep};
use super::calculate::{ColumnarValue, applied, calculated};
use super::cast::cast;
use super::temporal::comparable;
use super::types::{ComparedAs, plain};
use crate::error::{Error, Result};
use crate::predicate::column::Op;
use crate::predicate::literal::Literal;
use crate::predicate::tri_state::TriState;

/// Loads the values of a column.
pub(in crate::predicate) type Load<'a> = dyn FnMut(usize) -> Result<ArrayRef> + 'a;

/// The values of a column in the form that expressions take them.
pub(in crate::predicate) fn column_values(array: &ArrayRef) -> Result<ArrayRef> {
    cast(array, &plain(array.data_type()))
}

impl BoundExpression {
    /// The literal that an expression without columns is.
    pub(in crate::predicate) fn constant(&self, text: &str) -> Result<Literal> {
        let value = self.evaluate(&mut |_| Err(Error::usage("an expression with columns")));
        let value = value.map_err(|e| Error::usage(format_args!("{text}: {}", e.message())))?;
        Ok(Literal::from(&value.array).by_value())
    }

    pub(in crate::predicate) fn evaluate(&self, load: &mut Load<'_>) -> Result<ColumnarValue> {
        let incomplete = || Error::usage("an expression with a part missing");
        let mut values: Vec<ColumnarValue> = Vec::new();
        for step in &self.steps {
            let value = match step {
                BoundStep::Column(column) => ColumnarValue::array(load(*column)?),
                BoundStep::Literal(array) => {
                    let array = cast(array, &plain(array.data_type()))?;
                    ColumnarValue { array, is_scalar: true }
                }
                BoundStep::Unary(function, of) => {
                    let value = values.pop().ok_or_else(incomplete)?;
                    value.map(|array| applied(function, &cast(&array, of)?))?
                }
                BoundStep::Binary(op, left_type, right_type) => {
                    let right = values.pop().ok_or_else(incomplete)?;
                    let left = values.pop().ok_or_else(incomplete)?;
                    let left = left.map(|array| cast(&array, left_type))?;
                    let right = right.map(|array| cast(&array, right_type))?;
                    calculated(*op, &left, &right)?
                }
            };
            values.push(value);
        }
        values.pop().ok_or_else(incomplete)
    }
}

/// Compares two values, row by row.
pub(in crate::predicate) fn compare(
    op: Op,
    compared: &ComparedAs,
    left: ColumnarValue,
    right: ColumnarValue,
) -> Result<TriState> {
    let converted = |array: ArrayRef| match compared {
        ComparedAs::Nanos if *array.data_type() != DataType::Null => comparable(&array),
        ComparedAs::Nanos => cast(&array, &DataType::Decimal128(38, 0)),
        ComparedAs::Type(to) => Ok(with_one_zero(cast(&array, to)?)),
    };
    let (left, right) = (left.map(converted)?, right.map(converted)?);
    let results = left.with(&right, |left, right| match op {
        Op::Eq => cmp::eq(left, right),
        Op::NotEq => cmp::neq(left, right),
        Op::Lt => cmp::lt(left, right),
        Op::LtEq => cmp::lt_eq(left, right),
        Op::Gt => cmp::gt(left, right),
        Op::GtEq => cmp::gt_eq(left, right),
    })?;
    Ok(TriState::from_array(&results))
}

/// Floats with one zero and one NaN, as which the kernels of Arrow have several.
fn with_one_zero(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let one = |x: f32| if x.is_nan() { f32::NAN } else { x + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let one = |x: f64| if x.is_nan() { f64::NAN } else { x + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        _ => array,
    }
}
