//! [`Expression`]: a value that is computed from the columns of a row, and then compared.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::time::SystemTime;

use arrow_array::{Array, ArrayRef, RecordBatch, Scalar};
use arrow_schema::DataType;

use super::column::Column;
use super::literal::{Literal, LiteralKind};

/// A value that is computed from the columns of a row: arithmetic, functions and casts of columns
/// and literals. The [module](crate::predicate#expressions) defines the values.
///
/// ```
/// use marquetry::arrow_schema::DataType;
/// use marquetry::{Predicate, col, lit};
///
/// let wanted = (col("fare") / col("passengers")).gt(20)
///     .and(col("dropoff").gt(col("pickup")))
///     .and(col("name").lower().eq("anna"))
///     .and((lit(2) * col("id").abs()).lt(col("zone").cast(DataType::Int32)));
/// let text = "fare / passengers > 20 and dropoff > pickup and lower(name) = 'anna' \
///             and 2 * abs(id) < cast(zone as int32)";
/// assert_eq!(wanted.to_string(), text);
/// assert_eq!(Predicate::parse(text)?, wanted);
/// # Ok::<(), marquetry::Error>(())
/// ```
///
/// Comparisons with it are [by value](Literal::by_value).
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an expression is not a predicate: compare it with something"]
pub struct Expression {
    /// In postfix order, each after its operands.
    pub(super) steps: Vec<ExpressionStep>,
}

/// A step of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpressionStep {
    Column(Column),
    Literal(Literal),
    /// Applies to the previous value.
    Unary(Unary),
    /// Applies to the two previous values.
    Binary(Arithmetic),
}

/// A function of one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unary {
    Negate,
    Abs,
    Lower,
    Upper,
    Length,
    Cast(DataType),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Expression {
    fn unary(mut self, function: Unary) -> Self {
        self.steps.push(ExpressionStep::Unary(function));
        self
    }

    pub(super) fn binary(mut self, op: Arithmetic, right: Self) -> Self {
        self.steps.extend(right.steps);
        self.steps.push(ExpressionStep::Binary(op));
        self
    }

    /// The string in lowercase, character by character.
    pub fn lower(self) -> Self {
        self.unary(Unary::Lower)
    }

    /// The string in uppercase, character by character.
    pub fn upper(self) -> Self {
        self.unary(Unary::Upper)
    }

    /// Number of characters of a string, or of bytes of a byte string.
    pub fn length(self) -> Self {
        self.unary(Unary::Length)
    }

    /// The absolute value of a number.
    pub fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }

    /// The value converted to another type. The read fails if a value cannot be converted.
    pub fn cast(self, data_type: DataType) -> Self {
        self.unary(Unary::Cast(cast_target(data_type)))
    }

    /// The column that this is.
    pub(super) fn into_column(mut self) -> Result<Column, Self> {
        match (self.steps.pop(), self.steps.is_empty()) {
            (Some(ExpressionStep::Column(column)), true) => Ok(column),
            (last, _) => {
                self.steps.extend(last);
                Err(self)
            }
        }
    }

    /// The literal that this is.
    pub(super) fn into_literal(mut self) -> Result<Literal, Self> {
        match (self.steps.pop(), self.steps.is_empty()) {
            (Some(ExpressionStep::Literal(literal)), true) => Ok(literal),
            (last, _) => {
                self.steps.extend(last);
                Err(self)
            }
        }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.steps.iter().filter_map(|step| match step {
            ExpressionStep::Column(column) => Some(column),
            _ => None,
        })
    }

    /// The expression with literals for the columns of `values`, a batch of one row.
    pub(super) fn with_known(&self, values: &RecordBatch) -> Self {
        let known = |step: &ExpressionStep| match step {
            ExpressionStep::Column(column) => {
                let found = values.column_by_name(&column.path);
                found.map_or_else(|| step.clone(), |value| ExpressionStep::Literal(value.into()))
            }
            _ => step.clone(),
        };
        Self { steps: self.steps.iter().map(known).collect() }
    }
}

/// The types that can be cast to, each in one form.
fn cast_target(data_type: DataType) -> DataType {
    use DataType as D;
    match data_type {
        D::Utf8 | D::LargeUtf8 | D::Utf8View => D::Utf8,
        D::Decimal32(precision, scale) | D::Decimal64(precision, scale) => {
            D::Decimal128(precision, scale)
        }
        D::Timestamp(unit, Some(_)) => D::Timestamp(unit, Some("UTC".into())),
        other => other,
    }
}

impl From<Column> for Expression {
    fn from(column: Column) -> Self {
        Self { steps: vec![ExpressionStep::Column(column)] }
    }
}

impl From<Literal> for Expression {
    fn from(literal: Literal) -> Self {
        Self { steps: vec![ExpressionStep::Literal(literal)] }
    }
}

macro_rules! of_literals {
    ($($value:ty),*) => {$(
        impl From<$value> for Expression {
            fn from(value: $value) -> Self {
                Literal::from(value).into()
            }
        }
    )*};
}
of_literals!(bool, i8, i16, i32, i64, i128, u8, u16, u32, u64, usize, f32, f64);
of_literals!(&str, &String, String, &[u8], Vec<u8>, SystemTime, &ArrayRef);

impl<const N: usize> From<&[u8; N]> for Expression {
    fn from(value: &[u8; N]) -> Self {
        Literal::from(value).into()
    }
}

impl<T: Into<Literal>> From<Option<T>> for Expression {
    fn from(value: Option<T>) -> Self {
        Literal::from(value).into()
    }
}

impl<T: Array> From<Scalar<T>> for Expression {
    fn from(value: Scalar<T>) -> Self {
        Literal::from(value).into()
    }
}

impl Neg for Expression {
    type Output = Self;

    /// Negates a literal number.
    fn neg(mut self) -> Self {
        if let [ExpressionStep::Literal(literal)] = self.steps.as_mut_slice()
            && let Some(negated) = literal.negated()
        {
            *literal = negated;
            return self;
        }
        self.unary(Unary::Negate)
    }
}

impl Literal {
    /// The number with the other sign; `None` if it is none.
    fn negated(&self) -> Option<Self> {
        let negated = match &self.kind {
            LiteralKind::Int(value) => match value.checked_neg() {
                Some(value) => Self::new(LiteralKind::Int(value)),
                None => Self::decimal(arrow_buffer::i256::from_i128(*value).wrapping_neg(), 0),
            },
            LiteralKind::Decimal(unscaled, scale) => Self::decimal(unscaled.checked_neg()?, *scale),
            LiteralKind::Float(value) => Self::new(LiteralKind::Float(-value)),
            _ => return None,
        };
        Some(Self { by_value: self.by_value, ..negated })
    }
}

impl Neg for Column {
    type Output = Expression;

    fn neg(self) -> Expression {
        -Expression::from(self)
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $of:ident),*) => {$(
        impl<R: Into<Self>> $operator<R> for Expression {
            type Output = Self;

            fn $method(self, right: R) -> Self {
                self.binary(Arithmetic::$of, right.into())
            }
        }

        impl<R: Into<Expression>> $operator<R> for Column {
            type Output = Expression;

            fn $method(self, right: R) -> Expression {
                Expression::from(self).binary(Arithmetic::$of, right.into())
            }
        }

        impl<R: Into<Expression>> $operator<R> for Literal {
            type Output = Expression;

            fn $method(self, right: R) -> Expression {
                Expression::from(self).binary(Arithmetic::$of, right.into())
            }
        }
    )*};
}
operators!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide, Rem rem Remainder);
