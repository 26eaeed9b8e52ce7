//! Predicates of the kernel as predicates of the library.
//!
//! A row that passes the one passes the other: where a part cannot be translated, it is taken to be
//! true of all rows, also below a `NOT`, which is therefore pushed down to the comparisons.
//! Comparisons mean the same in both, with nulls as in SQL, but not those of floats. The kernel
//! compares them by IEEE 754 totalOrder, where −0 is less than +0 and a NaN with a sign less than
//! all numbers; the library has one zero, and one NaN above all numbers.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, TimestampMicrosecondArray};
use arrow_schema::{DataType, TimeUnit};
use delta_kernel::Predicate as KernelPredicate;
use delta_kernel::expressions::{
    BinaryPredicate, BinaryPredicateOp, ColumnName, Expression, JunctionPredicate,
    JunctionPredicateOp, Scalar, UnaryPredicate, UnaryPredicateOp,
};
use marquetry::predicate::Column;
use marquetry::{Literal, Predicate, col, lit};

/// The columns that a file has, as they are returned: their types by their paths. Those that are
/// generated, that the file does not have, or that are cast after they were read are not among
/// them.
#[derive(Debug, Default)]
pub(crate) struct Comparable(pub(crate) HashMap<Vec<String>, DataType>);

impl Comparable {
    /// A predicate that is true of all rows for which `predicate` is; `None` if none but `true` is
    /// known.
    pub(crate) fn translate(&self, predicate: &KernelPredicate) -> Option<Predicate> {
        self.predicate(predicate, false)
    }

    /// `negated`: of all rows for which it is false.
    fn predicate(&self, predicate: &KernelPredicate, negated: bool) -> Option<Predicate> {
        match predicate {
            KernelPredicate::BooleanExpression(Expression::Column(name)) => {
                let (column, data_type) = self.column(name)?;
                (*data_type == DataType::Boolean).then(|| column.eq(!negated))
            }
            KernelPredicate::BooleanExpression(Expression::Predicate(inner)) => {
                self.predicate(inner, negated)
            }
            KernelPredicate::Not(inner) => self.predicate(inner, !negated),
            KernelPredicate::Unary(UnaryPredicate { op: UnaryPredicateOp::IsNull, expr }) => {
                let Expression::Column(name) = &**expr else { return None };
                let (column, _) = self.column(name)?;
                Some(if negated { column.is_not_null() } else { column.is_null() })
            }
            KernelPredicate::Binary(binary) => self.comparison(binary, negated),
            KernelPredicate::Junction(junction) => self.junction(junction, negated),
            // Opaque, unknown, and what later versions add.
            _ => None,
        }
    }

    fn junction(&self, junction: &JunctionPredicate, negated: bool) -> Option<Predicate> {
        let parts = junction.preds.iter().map(|part| self.predicate(part, negated));
        let is_and = (junction.op == JunctionPredicateOp::And) != negated;
        if is_and {
            // Each part that is known is true of the rows, whatever the others are.
            let known: Vec<_> = parts.flatten().collect();
            (!known.is_empty()).then(|| Predicate::all_of(known))
        } else {
            Some(Predicate::any_of(parts.collect::<Option<Vec<_>>>()?))
        }
    }

    fn comparison(&self, binary: &BinaryPredicate, negated: bool) -> Option<Predicate> {
        use BinaryPredicateOp as Op;
        let (name, scalar, op) = match (&*binary.left, &*binary.right, binary.op) {
            (Expression::Column(name), Expression::Literal(scalar), op) => (name, scalar, op),
            (Expression::Literal(scalar), Expression::Column(name), op) => {
                let mirrored = match op {
                    Op::LessThan => Op::GreaterThan,
                    Op::GreaterThan => Op::LessThan,
                    op => op,
                };
                (name, scalar, mirrored)
            }
            _ => return None,
        };
        let (column, data_type) = self.column(name)?;
        let literal = literal(scalar, data_type)?;
        if let Some(value) = float(scalar) {
            return float_comparison(column, op, negated, literal, value);
        }
        Some(match (op, negated) {
            (Op::LessThan, false) => column.lt(literal),
            (Op::LessThan, true) => column.gt_eq(literal),
            (Op::GreaterThan, false) => column.gt(literal),
            (Op::GreaterThan, true) => column.lt_eq(literal),
            (Op::Equal, false) | (Op::Distinct, true) => column.eq(literal),
            (Op::Equal, true) => column.not_eq(literal),
            (Op::Distinct, false) => column.clone().not_eq(literal).or(column.is_null()),
            // The left side of `IN` is a literal, and the right side a list.
            _ => return None,
        })
    }

    fn column(&self, name: &ColumnName) -> Option<(Column, &DataType)> {
        let path = name.path();
        let data_type = self.0.get(path)?;
        let dotted = path.join(".");
        // The library reads dots as steps into structs, unless a name has them.
        let is_clear = match path {
            [_] => true,
            path => {
                !path.iter().any(|step| step.contains('.'))
                    && !self.0.contains_key(&[dotted.clone()][..])
            }
        };
        is_clear.then(|| (col(dotted), data_type))
    }
}

fn float(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Float(value) => Some((*value).into()),
        Scalar::Double(value) => Some(*value),
        _ => None,
    }
}

/// A comparison with `value`, wide enough for the order of the kernel.
fn float_comparison(
    column: Column,
    op: BinaryPredicateOp,
    negated: bool,
    literal: Literal,
    value: f64,
) -> Option<Predicate> {
    use BinaryPredicateOp as Op;
    // Some NaNs are equal to it, others less or greater.
    if value.is_nan() {
        return None;
    }
    let is_zero = value == 0.0;
    let above_all = || column.clone().gt(f64::INFINITY);
    Some(match (op, negated) {
        (Op::LessThan, false) if !is_zero => column.clone().lt(literal).or(above_all()),
        (Op::LessThan, false) | (Op::GreaterThan, true) => {
            column.clone().lt_eq(literal).or(above_all())
        }
        (Op::GreaterThan, false) if !is_zero => column.gt(literal),
        (Op::GreaterThan, false) | (Op::LessThan, true) => column.gt_eq(literal),
        (Op::Equal, false) | (Op::Distinct, true) => column.eq(literal),
        (Op::Equal, true) if !is_zero => column.not_eq(literal),
        // The other zero differs.
        (Op::Equal, true) => column.is_not_null(),
        (Op::Distinct, false) if !is_zero => column.clone().not_eq(literal).or(column.is_null()),
        _ => return None,
    })
}

/// `scalar`, to be compared with columns of this type.
fn literal(scalar: &Scalar, data_type: &DataType) -> Option<Literal> {
    use DataType as D;
    let is_integer = matches!(data_type, D::Int8 | D::Int16 | D::Int32 | D::Int64);
    let micros = |value: i64, zone: Option<&str>| {
        let wanted = D::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let value = TimestampMicrosecondArray::from(vec![value]).with_timezone_opt(zone);
        (*data_type == wanted).then(|| Literal::from(&(Arc::new(value) as ArrayRef)))
    };
    Some(match (scalar, data_type) {
        // By value: no type of integers need hold the literal.
        (Scalar::Byte(value), _) if is_integer => lit(*value).by_value(),
        (Scalar::Short(value), _) if is_integer => lit(*value).by_value(),
        (Scalar::Integer(value), _) if is_integer => lit(*value).by_value(),
        (Scalar::Long(value), _) if is_integer => lit(*value).by_value(),
        (Scalar::Float(value), D::Float32) => lit(*value),
        (Scalar::Double(value), D::Float64) => lit(*value),
        (Scalar::String(value), D::Utf8) => lit(value.as_str()),
        (Scalar::Boolean(value), D::Boolean) => lit(*value),
        (Scalar::Binary(value), D::Binary) => lit(value.as_slice()),
        (Scalar::Date(days), D::Date32) => Literal::date(*days),
        (Scalar::Timestamp(value), _) => micros(*value, Some("UTC"))?,
        (Scalar::TimestampNtz(value), _) => micros(*value, None)?,
        (Scalar::Decimal(value), D::Decimal128(precision, scale)) => {
            let is_same =
                value.precision() == *precision && i8::try_from(value.scale()) == Ok(*scale);
            if !is_same {
                return None;
            }
            let value = Decimal128Array::from(vec![value.bits()]);
            let value = value.with_precision_and_scale(*precision, *scale).ok()?;
            Literal::from(&(Arc::new(value) as ArrayRef))
        }
        _ => return None,
    })
}
