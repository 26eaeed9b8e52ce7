//! [`Expression`]: a value that is computed from the columns of a row, to be compared.
//!
//! An expression is bound to types ([`bound`]), which says what each step is converted to ([`types`]),
//! and then evaluated on batches by the kernels of Arrow. Nothing is known of it beforehand: it
//! prunes nothing.

mod bound;
mod calculate;
mod cast;
mod display;
mod functions;
mod temporal;
mod types;

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::time::SystemTime;

use arrow_array::{Array, ArrayRef, RecordBatch, Scalar};
use arrow_schema::DataType;

pub(super) use bound::{BoundComputed, BoundExpression, Question};
pub(super) use functions::lower;

use super::expression::{Column, Op, Predicate, Term, Test, not};
use super::literal::{Literal, LiteralKind};

/// A value that is computed from the columns of a row: arithmetic, functions and casts of columns
/// and literals. The [module](crate::predicate#expressions) says what they give.
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
/// What it is compared with is compared [by value](Literal::by_value).
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an expression is not a predicate: compare it with something"]
pub struct Expression {
    /// In postfix order, each after its operands.
    pub(super) steps: Vec<Step>,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Column(Column),
    Literal(Literal),
    /// Of the value before it.
    Unary(Unary),
    /// Of the two values before it.
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
        self.steps.push(Step::Unary(function));
        self
    }

    pub(super) fn binary(mut self, op: Arithmetic, right: Self) -> Self {
        self.steps.extend(right.steps);
        self.steps.push(Step::Binary(op));
        self
    }

    /// The text in small letters, one for each character.
    pub fn lower(self) -> Self {
        self.unary(Unary::Lower)
    }

    /// The text in capital letters, one for each character.
    pub fn upper(self) -> Self {
        self.unary(Unary::Upper)
    }

    /// The number of characters of a string, or of bytes of a byte string.
    pub fn length(self) -> Self {
        self.unary(Unary::Length)
    }

    /// The number without its sign.
    pub fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }

    /// The value as one of another type. Where a row has a value that is none, the read fails.
    pub fn cast(self, data_type: DataType) -> Self {
        self.unary(Unary::Cast(types::cast_target(data_type)))
    }

    /// The value is equal to the other.
    pub fn eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::Eq, other.into())
    }

    /// The value differs from the other.
    pub fn not_eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::NotEq, other.into())
    }

    /// The value is less than the other.
    pub fn lt(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::Lt, other.into())
    }

    /// The value is not greater than the other.
    pub fn lt_eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::LtEq, other.into())
    }

    /// The value is greater than the other.
    pub fn gt(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::Gt, other.into())
    }

    /// The value is not less than the other.
    pub fn gt_eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::GtEq, other.into())
    }

    /// The value lies between the two, or is one of them.
    pub fn between(self, low: impl Into<Self>, high: impl Into<Self>) -> Predicate {
        match (low.into().into_literal(), high.into().into_literal()) {
            (Ok(low), Ok(high)) => self.test(Test::Between(low, high)),
            (low, high) => {
                let side =
                    |side: Result<Literal, Self>| side.map_or_else(|other| other, Self::from);
                let low = self.clone().compare(Op::GtEq, side(low));
                low.and(self.compare(Op::LtEq, side(high)))
            }
        }
    }

    /// The value is one of these, as [`Column::is_in`].
    pub fn is_in<L: Into<Literal>>(self, literals: impl IntoIterator<Item = L>) -> Predicate {
        self.test(Test::In(literals.into_iter().map(Into::into).collect()))
    }

    /// There is no value.
    pub fn is_null(self) -> Predicate {
        self.test(Test::IsNull)
    }

    /// There is a value.
    pub fn is_not_null(self) -> Predicate {
        not(self.opposite().is_null())
    }

    /// The string or byte string begins with the literal.
    pub fn starts_with(self, prefix: impl Into<Literal>) -> Predicate {
        self.test(Test::StartsWith(prefix.into()))
    }

    /// The string matches a pattern, as [`Column::like`].
    pub fn like(self, pattern: impl Into<String>) -> Predicate {
        self.test(Test::Like(pattern.into(), Some('\\')))
    }

    /// The string matches a pattern, whether its letters are small or not, as [`Column::ilike`].
    pub fn ilike(self, pattern: impl Into<String>) -> Predicate {
        self.test(Test::ILike(pattern.into(), Some('\\')))
    }

    /// A comparison in the simplest form that says it: with a literal, a test.
    pub(super) fn compare(self, op: Op, other: Self) -> Predicate {
        match (self.into_literal(), other.into_literal()) {
            (Err(left), Ok(literal)) => left.test(Test::Compare(op, literal)),
            (Ok(literal), Err(right)) => right.test(Test::Compare(op.flipped(), literal)),
            (Ok(left), Ok(literal)) => Self::from(left).test(Test::Compare(op, literal)),
            (Err(left), Err(right)) => Predicate::of(Term::Comparison(left, op, right)),
        }
    }

    /// A test of the value: of a column, where it is nothing else.
    pub(super) fn test(self, test: Test) -> Predicate {
        match self.into_column() {
            Ok(column) => Predicate::of(Term::Test(column, test)),
            Err(computed) => Predicate::of(Term::Computed(computed, test.by_value())),
        }
    }

    /// The column of which a test must be false, if this is a column.
    pub(super) fn opposite(self) -> Self {
        match self.into_column() {
            Ok(column) => column.opposite().into(),
            Err(computed) => computed,
        }
    }

    /// The column that this is.
    pub(super) fn into_column(mut self) -> Result<Column, Self> {
        match (self.steps.pop(), self.steps.is_empty()) {
            (Some(Step::Column(column)), true) => Ok(column),
            (last, _) => {
                self.steps.extend(last);
                Err(self)
            }
        }
    }

    /// The literal that this is.
    pub(super) fn into_literal(mut self) -> Result<Literal, Self> {
        match (self.steps.pop(), self.steps.is_empty()) {
            (Some(Step::Literal(literal)), true) => Ok(literal),
            (last, _) => {
                self.steps.extend(last);
                Err(self)
            }
        }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.steps.iter().filter_map(|step| match step {
            Step::Column(column) => Some(column),
            _ => None,
        })
    }

    /// The expression with literals for the columns of `values`, a batch of one row.
    pub(super) fn with_known(&self, values: &RecordBatch) -> Self {
        let known = |step: &Step| match step {
            Step::Column(column) => {
                let found = values.column_by_name(&column.path);
                found.map_or_else(|| step.clone(), |value| Step::Literal(value.into()))
            }
            _ => step.clone(),
        };
        Self { steps: self.steps.iter().map(known).collect() }
    }
}

impl Test {
    /// The test with literals that are compared by value.
    fn by_value(self) -> Self {
        match self {
            Self::Compare(op, literal) => Self::Compare(op, literal.by_value()),
            Self::Between(low, high) => Self::Between(low.by_value(), high.by_value()),
            Self::In(literals) => {
                Self::In(literals.iter().map(|literal| literal.clone().by_value()).collect())
            }
            other => other,
        }
    }
}

impl From<Column> for Expression {
    fn from(column: Column) -> Self {
        Self { steps: vec![Step::Column(column)] }
    }
}

impl From<Literal> for Expression {
    fn from(literal: Literal) -> Self {
        Self { steps: vec![Step::Literal(literal)] }
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

    /// Of a literal that is a number, the number with the other sign.
    fn neg(mut self) -> Self {
        if let [Step::Literal(literal)] = self.steps.as_mut_slice()
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
                Some(value) => Self::of(LiteralKind::Int(value)),
                None => Self::decimal(arrow_buffer::i256::from_i128(*value).wrapping_neg(), 0),
            },
            LiteralKind::Decimal(unscaled, scale) => Self::decimal(unscaled.checked_neg()?, *scale),
            LiteralKind::Float(value) => Self::of(LiteralKind::Float(-value)),
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

#[cfg(test)]
mod tests;
