//! Evaluation of expressions, by the kernels of Arrow.
//!
//! Trap: a row that other parts of the predicate leave out must not make an expression fail, so
//! that one that may fail is evaluated only on the rows that are wanted.

use std::sync::Arc;

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, BooleanArray, Datum, RecordBatch,
    Scalar,
};
use arrow_buffer::BooleanBuffer;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::filter;

use super::bound::{BoundComputed, BoundExpression, BoundStep, Question};
use super::cast::cast;
use super::functions::{length, lower, upper};
use super::temporal::comparable;
use super::types::{ComparedAs, plain};
use super::{Arithmetic, Unary};
use crate::error::{Error, Result};
use crate::predicate::bound::Bound;
use crate::predicate::eval::test_values;
use crate::predicate::expression::Op;
use crate::predicate::literal::Literal;
use crate::predicate::nested_bits::within;
use crate::predicate::tri_state::TriState;

/// Values of the rows, or one that stands for all.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) array: ArrayRef,
    is_scalar: bool,
}

impl Value {
    pub(super) fn array(array: ArrayRef) -> Self {
        Self { array, is_scalar: false }
    }

    fn map(self, map: impl FnOnce(ArrayRef) -> Result<ArrayRef>) -> Result<Self> {
        Ok(Self { array: map(self.array)?, ..self })
    }

    /// Calls a kernel of two operands.
    fn with<T>(
        &self,
        right: &Self,
        kernel: impl Fn(&dyn Datum, &dyn Datum) -> Result<T, ArrowError>,
    ) -> Result<T> {
        let scalar = |value: &Self| Scalar::new(Arc::clone(&value.array));
        let done = match (self.is_scalar, right.is_scalar) {
            (true, true) => kernel(&scalar(self), &scalar(right)),
            (true, false) => kernel(&scalar(self), &right.array),
            (false, true) => kernel(&self.array, &scalar(right)),
            (false, false) => kernel(&self.array, &right.array),
        };
        done.map_err(said)
    }
}

/// What a kernel refuses, in words.
#[cold]
fn said(error: ArrowError) -> Error {
    match error {
        ArrowError::ArithmeticOverflow(what) => {
            let what = what.strip_prefix("Overflow happened on: ").unwrap_or(&what);
            Error::usage(format_args!("overflow: {what}"))
        }
        ArrowError::DivideByZero => Error::usage("division by zero"),
        other => other.into(),
    }
}

/// An operator on operands that have the right types.
pub(super) fn calculated(op: Arithmetic, left: &Value, right: &Value) -> Result<Value> {
    let array = left.with(right, |left, right| match op {
        Arithmetic::Add => numeric::add(left, right),
        Arithmetic::Subtract => numeric::sub(left, right),
        Arithmetic::Multiply => numeric::mul(left, right),
        Arithmetic::Divide => numeric::div(left, right),
        Arithmetic::Remainder => numeric::rem(left, right),
    })?;
    Ok(Value { array, is_scalar: left.is_scalar && right.is_scalar })
}

impl Bound {
    /// What an expression is asked, for the rows of a batch; of those that are not `wanted`, null
    /// may be answered.
    pub(in crate::predicate) fn computed(
        &self,
        computed: &BoundComputed,
        batch: &RecordBatch,
        wanted: Option<&BooleanBuffer>,
    ) -> Result<TriState> {
        let wanted =
            wanted.filter(|wanted| computed.may_fail && wanted.count_set_bits() < wanted.len());
        let left_out = wanted.map(|wanted| BooleanArray::new(wanted.clone(), None));
        let mut load = |column: usize| -> Result<ArrayRef> {
            let array = self.values_of(column, batch)?;
            let array = match &left_out {
                Some(wanted) => filter(&array, wanted)?,
                None => array,
            };
            cast(&array, &plain(array.data_type()))
        };
        let answers = computed.answers(&mut load)?;
        Ok(match wanted {
            None => answers,
            Some(wanted) => TriState {
                trues: within(wanted, &answers.trues),
                falses: within(wanted, &answers.falses),
            },
        })
    }
}

/// Gives the values of a column.
type Load<'a> = dyn FnMut(usize) -> Result<ArrayRef> + 'a;

impl BoundComputed {
    fn answers(&self, load: &mut Load<'_>) -> Result<TriState> {
        let named = |e: Error| match e.get_ref() {
            None => Error::usage(format_args!("{}: {}", self.text, e.message())),
            Some(_) => e,
        };
        let value = self.value.evaluate(load).map_err(named)?;
        match &self.question {
            Question::Test(subject, test) => test_values(subject, test, &value.array),
            Question::Compare(op, compared, right) => {
                let right = right.evaluate(load).map_err(named)?;
                compare(*op, compared, value, right).map_err(named)
            }
        }
    }

    /// The answer for no column at all.
    pub(in crate::predicate) fn constant(&self) -> Result<Option<bool>> {
        let answers = self.answers(&mut |_| Err(Error::usage("an expression with columns")))?;
        let is = |bits: &BooleanBuffer| bits.count_set_bits() > 0;
        Ok(if is(&answers.trues) { Some(true) } else { is(&answers.falses).then_some(false) })
    }
}

impl BoundExpression {
    /// The literal that an expression without columns is.
    pub(in crate::predicate) fn constant(&self, text: &str) -> Result<Literal> {
        let value = self.evaluate(&mut |_| Err(Error::usage("an expression with columns")));
        let value = value.map_err(|e| Error::usage(format_args!("{text}: {}", e.message())))?;
        Ok(Literal::from(&value.array).by_value())
    }

    fn evaluate(&self, load: &mut Load<'_>) -> Result<Value> {
        let incomplete = || Error::usage("an expression with a part missing");
        let mut values: Vec<Value> = Vec::new();
        for step in &self.steps {
            let value = match step {
                BoundStep::Column(column) => Value::array(load(*column)?),
                BoundStep::Literal(array) => {
                    let array = cast(array, &plain(array.data_type()))?;
                    Value { array, is_scalar: true }
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

fn applied(function: &Unary, array: &ArrayRef) -> Result<ArrayRef> {
    let done = match function {
        Unary::Negate => return numeric::neg(array).map_err(said),
        Unary::Abs => return absolute(array),
        Unary::Cast(to) => return cast(array, to),
        Unary::Lower => lower(array),
        Unary::Upper => upper(array),
        Unary::Length => length(array),
    };
    done.ok_or_else(|| Error::usage("a function of another type"))
}

fn absolute(array: &ArrayRef) -> Result<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        absolute: impl Fn(T::Native) -> Result<T::Native, ArrowError>,
    ) -> Result<ArrayRef> {
        let values = array.as_primitive::<T>();
        let done = values.try_unary::<_, T, _>(absolute).map_err(said)?;
        Ok(Arc::new(done.with_data_type(array.data_type().clone())))
    }
    match array.data_type() {
        DataType::Int64 => of::<Int64Type>(array, |x| if x < 0 { x.neg_checked() } else { Ok(x) }),
        DataType::Decimal128(..) => {
            of::<Decimal128Type>(array, |x| if x < 0 { x.neg_checked() } else { Ok(x) })
        }
        DataType::Decimal256(..) => {
            of::<Decimal256Type>(array, |x| if x.is_negative() { x.neg_checked() } else { Ok(x) })
        }
        DataType::Float32 => of::<Float32Type>(array, |x| Ok(x.abs())),
        _ => of::<Float64Type>(array, |x| Ok(x.abs())),
    }
}

fn compare(op: Op, compared: &ComparedAs, left: Value, right: Value) -> Result<TriState> {
    let converted = |array: ArrayRef| match compared {
        ComparedAs::Nanos if *array.data_type() != DataType::Null => comparable(&array),
        ComparedAs::Nanos => cast(&array, &DataType::Decimal128(38, 0)),
        ComparedAs::Type(to) => Ok(with_one_zero(cast(&array, to)?)),
    };
    let (left, right) = (left.map(converted)?, right.map(converted)?);
    let answers = left.with(&right, |left, right| match op {
        Op::Eq => cmp::eq(left, right),
        Op::NotEq => cmp::neq(left, right),
        Op::Lt => cmp::lt(left, right),
        Op::LtEq => cmp::lt_eq(left, right),
        Op::Gt => cmp::gt(left, right),
        Op::GtEq => cmp::gt_eq(left, right),
    })?;
    Ok(TriState::of(&answers))
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
