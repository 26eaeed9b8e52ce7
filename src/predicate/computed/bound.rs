//! Binds expressions: columns become numbers, and each step knows the types that its operands are
//! converted to.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    Float64Array, Int64Array, NullArray, StringViewArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, new_empty_array,
};
use arrow_schema::{ArrowError, DataType};

use super::calculate::{ColumnarValue, calculated};
use super::cast;
use super::types::{self, ComparedAs, Operand};
use crate::error::{Error, Result};
use crate::predicate::bound_column::{BoundColumn, BoundTest};
use crate::predicate::calculation::{Arithmetic, Expression, ExpressionStep, Unary};
use crate::predicate::column::{Column, Op};
use crate::predicate::datetime::nanos_of;
use crate::predicate::literal::{Literal, LiteralKind};
use crate::predicate::type_name::TypeName;

/// The test of a computed value.
#[derive(Debug, Clone)]
pub(in crate::predicate) struct BoundComputed {
    pub(in crate::predicate) value: BoundExpression,
    pub(in crate::predicate) question: Question,
    /// The columns that are looked at.
    pub(in crate::predicate) columns: Vec<usize>,
    /// Whether a row can make the evaluation fail.
    pub(in crate::predicate) may_fail: bool,
    /// Whether strings are copied, or converted.
    pub(in crate::predicate) copies_text: bool,
    /// The text form, for errors.
    pub(in crate::predicate) text: String,
}

#[derive(Debug, Clone)]
pub(in crate::predicate) enum Question {
    /// A test of a column.
    Test(Box<BoundColumn>, BoundTest),
    Compare(Op, ComparedAs, BoundExpression),
}

/// An expression with the types of all its steps.
#[derive(Debug, Clone)]
pub(in crate::predicate) struct BoundExpression {
    pub(super) steps: Vec<BoundStep>,
    operand: Operand,
    may_fail: bool,
}

#[derive(Debug, Clone)]
pub(super) enum BoundStep {
    Column(usize),
    /// An array of one value.
    Literal(ArrayRef),
    /// Converts the operand to a type first; a cast converts by itself.
    Unary(Unary, DataType),
    /// Converts the operands to these types first.
    Binary(Arithmetic, DataType, DataType),
}

impl BoundComputed {
    pub(in crate::predicate) fn new(
        value: BoundExpression,
        question: Question,
        text: String,
    ) -> Self {
        let right = match &question {
            Question::Compare(_, _, right) => Some(right),
            Question::Test(..) => None,
        };
        let columns = value.columns().chain(right.into_iter().flat_map(BoundExpression::columns));
        let converts = match &question {
            Question::Compare(_, ComparedAs::Type(to), right) => {
                to.is_decimal() && [&value, right].iter().any(|side| side.data_type() != to)
            }
            _ => false,
        };
        let columns = columns.collect();
        let may_fail = value.may_fail || right.is_some_and(|right| right.may_fail) || converts;
        let copies_text = value.copies_text() || right.is_some_and(BoundExpression::copies_text);
        Self { value, question, columns, may_fail, copies_text, text }
    }
}

impl BoundExpression {
    /// Binds an expression; `find` returns the number and the type of a column.
    ///
    /// # Errors
    /// `Usage` if it is not supported, by name; and the errors of `find`.
    pub(in crate::predicate) fn bind(
        expression: &Expression,
        mut find: impl FnMut(&Column) -> Result<(usize, DataType)>,
    ) -> Result<Self> {
        let (mut steps, mut operands) = (Vec::new(), Vec::<Operand>::new());
        let mut may_fail = false;
        let refused = |why: String| Error::usage(format_args!("{expression}: {why}"));
        for step in &expression.steps {
            let (step, operand) = match step {
                ExpressionStep::Column(column) => {
                    let (number, data_type) = find(column)?;
                    let data_type = types::plain(&data_type);
                    (BoundStep::Column(number), Operand { data_type, digits: None })
                }
                ExpressionStep::Literal(literal) => {
                    let (array, digits) = array_of(literal)?;
                    let data_type = types::plain(array.data_type());
                    (BoundStep::Literal(array), Operand { data_type, digits })
                }
                ExpressionStep::Unary(function) => {
                    let of = operands.pop().ok_or_else(incomplete)?;
                    let (from, to) = unary(function, &of.data_type).map_err(refused)?;
                    may_fail |= match function {
                        Unary::Negate | Unary::Abs => !to.is_floating(),
                        Unary::Cast(to) => {
                            of.data_type != types::plain(to) && *to != DataType::Utf8
                        }
                        Unary::Lower | Unary::Upper | Unary::Length => false,
                    };
                    let operand = Operand { data_type: to, digits: None };
                    (BoundStep::Unary(function.clone(), from), operand)
                }
                ExpressionStep::Binary(op) => {
                    let right = operands.pop().ok_or_else(incomplete)?;
                    let left = operands.pop().ok_or_else(incomplete)?;
                    let (l, r) = types::operands(*op, &left, &right).map_err(refused)?;
                    let empty = [new_empty_array(&l), new_empty_array(&r)];
                    let [left, right] = empty.map(ColumnarValue::array);
                    let result = calculated(*op, &left, &right);
                    let result = result.map_err(|e| refused(e.message().to_owned()))?;
                    let data_type = result.array.data_type().clone();
                    may_fail |= !data_type.is_floating();
                    (BoundStep::Binary(*op, l, r), Operand { data_type, digits: None })
                }
            };
            steps.push(step);
            operands.push(operand);
        }
        let operand = operands.pop().filter(|_| operands.is_empty()).ok_or_else(incomplete)?;
        Ok(Self { steps, operand, may_fail })
    }

    pub(in crate::predicate) fn data_type(&self) -> &DataType {
        &self.operand.data_type
    }

    fn columns(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().filter_map(|step| match step {
            BoundStep::Column(column) => Some(*column),
            _ => None,
        })
    }

    fn copies_text(&self) -> bool {
        let copies =
            |function: &Unary| matches!(function, Unary::Lower | Unary::Upper | Unary::Cast(_));
        self.steps.iter().any(|step| matches!(step, BoundStep::Unary(of, _) if copies(of)))
    }

    /// How this is compared with another.
    pub(in crate::predicate) fn compared(
        self,
        op: Op,
        right: Self,
        text: String,
    ) -> Result<BoundComputed> {
        let compared = types::compared(&self.operand, &right.operand);
        let compared = compared.map_err(|why| Error::usage(format_args!("{text}: {why}")))?;
        Ok(BoundComputed::new(self, Question::Compare(op, compared, right), text))
    }
}

#[cold]
fn incomplete() -> Error {
    Error::usage("an expression with a part missing")
}

/// The type that the operand of a function is converted to, and the type of its result.
fn unary(function: &Unary, of: &DataType) -> Result<(DataType, DataType), String> {
    use DataType as D;
    let refused = |what: &str| {
        Err(format!("not supported: {} of {}; it is for {what}", function.name(), TypeName(of)))
    };
    match function {
        Unary::Negate | Unary::Abs => match types::signed(of) {
            Some(to) => Ok((to.clone(), to)),
            None => refused("numbers"),
        },
        Unary::Lower | Unary::Upper => match of {
            D::Utf8View | D::Null => Ok((D::Utf8View, D::Utf8View)),
            _ => refused("strings"),
        },
        Unary::Length => match of {
            D::Utf8View | D::BinaryView => Ok((of.clone(), D::Int64)),
            D::Null => Ok((D::Utf8View, D::Int64)),
            _ => refused("strings and byte strings"),
        },
        Unary::Cast(to) if cast::is_supported(of, to) => Ok((of.clone(), types::plain(to))),
        Unary::Cast(to) => {
            Err(format!("not supported: cast of {} as {}", TypeName(of), TypeName(to)))
        }
    }
}

/// A literal as an array of one value, and how many digits it has if it is a whole number.
fn array_of(literal: &Literal) -> Result<(ArrayRef, Option<u8>)> {
    let digits = |unscaled: &str| {
        u8::try_from(unscaled.trim_start_matches('-').len()).unwrap_or(u8::MAX).clamp(1, 76)
    };
    let array: ArrayRef = match &literal.kind {
        LiteralKind::Null => Arc::new(NullArray::new(1)),
        LiteralKind::Boolean(value) => Arc::new(BooleanArray::from(vec![*value])),
        LiteralKind::Int(value) => {
            let digits = digits(&value.to_string());
            let array: ArrayRef = match i64::try_from(*value) {
                Ok(value) => Arc::new(Int64Array::from(vec![value])),
                Err(_) => decimal((*value).into(), digits, 0)?,
            };
            return Ok((array, Some(digits)));
        }
        LiteralKind::Decimal(unscaled, scale) => {
            let digits = digits(&unscaled.to_string()).max(*scale);
            decimal(*unscaled, digits, i8::try_from(*scale).unwrap_or(i8::MAX))?
        }
        LiteralKind::Float(value) => Arc::new(Float64Array::from(vec![*value])),
        LiteralKind::Text(text) => Arc::new(StringViewArray::from_iter_values([text])),
        LiteralKind::Bytes(bytes) => Arc::new(BinaryViewArray::from_iter_values([bytes])),
        LiteralKind::Date(days) => Arc::new(Date32Array::from(vec![*days])),
        LiteralKind::Time(nanos) => Arc::new(Time64NanosecondArray::from(vec![*nanos])),
        LiteralKind::Timestamp(nanos, in_utc) => timestamp(*nanos, *in_utc),
        LiteralKind::Other(array) => Arc::clone(array),
    };
    Ok((array, None))
}

fn decimal(unscaled: arrow_buffer::i256, digits: u8, scale: i8) -> Result<ArrayRef, ArrowError> {
    Ok(match unscaled.to_i128().filter(|_| digits <= 38) {
        Some(value) => {
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(digits, scale)?)
        }
        None => {
            Arc::new(Decimal256Array::from(vec![unscaled]).with_precision_and_scale(digits, scale)?)
        }
    })
}

/// In nanoseconds, or in the finest unit that holds it.
fn timestamp(nanos: i128, in_utc: bool) -> ArrayRef {
    use arrow_schema::TimeUnit as U;
    let count = |unit: U| i64::try_from(nanos.div_euclid(nanos_of(unit).into()));
    let zone = in_utc.then_some("UTC");
    match (count(U::Nanosecond), count(U::Microsecond)) {
        (Ok(count), _) => {
            Arc::new(TimestampNanosecondArray::from(vec![count]).with_timezone_opt(zone))
        }
        (_, Ok(count)) => {
            Arc::new(TimestampMicrosecondArray::from(vec![count]).with_timezone_opt(zone))
        }
        _ => {
            let seconds = count(U::Second).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX });
            Arc::new(TimestampSecondArray::from(vec![seconds]).with_timezone_opt(zone))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_narrowest_type_that_holds_them() {
        use arrow_buffer::i256;
        use arrow_schema::TimeUnit as U;
        let of = |unscaled: i128, digits| {
            let array = decimal(i256::from_i128(unscaled), digits, 2).unwrap();
            array.data_type().clone()
        };
        assert_eq!(of(5, 9), DataType::Decimal128(9, 2));
        assert_eq!(of(10i128.pow(37), 38), DataType::Decimal128(38, 2));
        assert_eq!(of(10i128.pow(38), 39), DataType::Decimal256(39, 2));
        let second = 1_000_000_000;
        for (nanos, unit, count) in [
            (7, U::Nanosecond, 7),
            (i128::from(i64::MAX) + 1, U::Microsecond, i64::MAX / 1_000),
            (i128::from(i64::MIN) * second, U::Second, i64::MIN),
            (i128::MIN, U::Second, i64::MIN),
            (i128::MAX, U::Second, i64::MAX),
        ] {
            let array = timestamp(nanos, false);
            assert_eq!(array.data_type(), &DataType::Timestamp(unit, None), "{nanos}");
            let found = crate::predicate::computed::temporal::nanos(&array).unwrap();
            let per_unit = i128::from(nanos_of(unit));
            assert_eq!(found, [Some(i128::from(count) * per_unit)], "{nanos}");
        }
    }
}
