//! The types of expressions: what operands are converted to, and what is not supported.

use arrow_schema::{DataType, TimeUnit};

use crate::predicate::calculation::Arithmetic;
use crate::predicate::type_name::TypeName;
use DataType as D;

/// The type of an operand.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) data_type: DataType,
    /// Digits of a literal that is a whole number: fewer than its type has.
    pub(super) digits: Option<u8>,
}

impl Operand {
    /// As a decimal: its precision and its scale.
    fn as_decimal(&self) -> Option<(u8, i8)> {
        let digits = match self.data_type {
            D::Int8 | D::UInt8 => 3,
            D::Int16 | D::UInt16 => 5,
            D::Int32 | D::UInt32 => 10,
            D::Int64 => 19,
            D::UInt64 => 20,
            D::Decimal128(precision, scale) | D::Decimal256(precision, scale) => {
                return Some((precision, scale));
            }
            _ => return None,
        };
        Some((self.digits.unwrap_or(digits), 0))
    }
}

/// The type in which the values of a column are computed: strings and byte strings as views, and no
/// type that another one covers.
pub(super) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        D::Dictionary(_, values) => plain(values),
        D::RunEndEncoded(_, values) => plain(values.data_type()),
        D::Utf8 | D::LargeUtf8 => D::Utf8View,
        D::Binary | D::LargeBinary | D::FixedSizeBinary(_) => D::BinaryView,
        D::Float16 => D::Float32,
        D::Date64 => D::Timestamp(TimeUnit::Millisecond, None),
        D::Decimal32(precision, scale) | D::Decimal64(precision, scale) => {
            D::Decimal128(*precision, *scale)
        }
        other => other.clone(),
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// The integer that a decimal or a float is not, wide enough not to overflow soon.
fn wide_integer(data_type: &DataType) -> DataType {
    match data_type {
        D::UInt64 => D::Decimal128(20, 0),
        _ => D::Int64,
    }
}

/// The type that the operand of `-` and `abs` is converted to; `None` if it is no number.
pub(super) fn signed(data_type: &DataType) -> Option<DataType> {
    match data_type {
        D::Null => Some(D::Int64),
        other if other.is_integer() => Some(wide_integer(other)),
        other => is_number(other).then(|| other.clone()),
    }
}

/// The types that the operands of an operator are converted to, or why it is not supported.
pub(super) fn operands(
    op: Arithmetic,
    left: &Operand,
    right: &Operand,
) -> Result<(DataType, DataType), String> {
    let (l, r) = (&left.data_type, &right.data_type);
    let is_operand = |data_type: &DataType| is_number(data_type) || *data_type == D::Null;
    if !is_operand(l) || !is_operand(r) {
        return Err(format!(
            "not supported: {} {op} {}; + - * / % are for numbers",
            TypeName(l),
            TypeName(r)
        ));
    }
    let both = |data_type: DataType| Ok((data_type.clone(), data_type));
    if let Some(float) = float_of(l, r) {
        return both(float);
    }
    if op == Arithmetic::Divide {
        return both(D::Float64);
    }
    if *l == D::Null || *r == D::Null {
        return both(D::Int64);
    }
    let is_wide = |data_type: &DataType| data_type.is_decimal() || *data_type == D::UInt64;
    if !is_wide(l) && !is_wide(r) {
        return both(D::Int64);
    }
    let (Some((p1, s1)), Some((p2, s2))) = (left.as_decimal(), right.as_decimal()) else {
        return Err(format!("not supported: {} {op} {}", TypeName(l), TypeName(r)));
    };
    let digits = match op {
        Arithmetic::Multiply => i16::from(p1) + i16::from(p2) + 1,
        _ => {
            let whole = (i16::from(p1) - i16::from(s1)).max(i16::from(p2) - i16::from(s2));
            whole + i16::from(s1.max(s2)) + 1
        }
    };
    let scale = match op {
        Arithmetic::Multiply => i16::from(s1) + i16::from(s2),
        _ => i16::from(s1.max(s2)),
    };
    match digits {
        ..=38 => Ok((D::Decimal128(p1, s1), D::Decimal128(p2, s2))),
        _ if scale <= 76 => Ok((D::Decimal256(p1, s1), D::Decimal256(p2, s2))),
        _ => Err(format!(
            "not supported: {} {op} {}: it has more than 76 digits",
            TypeName(l),
            TypeName(r)
        )),
    }
}

/// The float that both become, if one of them is a float: the narrower one only if none is a
/// double.
fn float_of(l: &DataType, r: &DataType) -> Option<DataType> {
    match (l, r) {
        (D::Float64, _) | (_, D::Float64) => Some(D::Float64),
        (D::Float32, _) | (_, D::Float32) => Some(D::Float32),
        _ => None,
    }
}

/// The type in which two values are compared.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::predicate) enum ComparedAs {
    Type(DataType),
    /// Dates, times and timestamps.
    Nanos,
}

/// The type that the sides of a comparison are converted to, or why they cannot be compared.
pub(super) fn compared(left: &Operand, right: &Operand) -> Result<ComparedAs, String> {
    let (l, r) = (&left.data_type, &right.data_type);
    let refused = |hint: &str| {
        let (l, r) = (TypeName(l), TypeName(r));
        Err(format!("not supported: {l} compared with {r}{hint}"))
    };
    match (l, r) {
        _ if l.is_nested() || r.is_nested() || matches!(l, D::Interval(_)) => refused(""),
        _ if l == r => Ok(ComparedAs::Type(l.clone())),
        (D::Null, other) | (other, D::Null) => Ok(ComparedAs::Type(other.clone())),
        (D::Timestamp(_, None) | D::Date32, D::Timestamp(_, None) | D::Date32)
        | (D::Timestamp(_, Some(_)), D::Timestamp(_, Some(_)))
        | (D::Time32(_) | D::Time64(_), D::Time32(_) | D::Time64(_)) => Ok(ComparedAs::Nanos),
        (D::Timestamp(..) | D::Date32, D::Timestamp(..) | D::Date32) => {
            refused("; cast one of them: cast(x as timestamptz) takes it to be in UTC")
        }
        _ if is_number(l) && is_number(r) => {
            let number = common_number(left, right);
            number.map(ComparedAs::Type).map_or_else(|| refused(""), Ok)
        }
        (D::Utf8View, _) | (_, D::Utf8View) => {
            refused("; cast one of them, as in cast(x as int64)")
        }
        _ => refused(""),
    }
}

/// A type that holds the numbers of both, but that floats round.
fn common_number(left: &Operand, right: &Operand) -> Option<DataType> {
    let (l, r) = (&left.data_type, &right.data_type);
    if let Some(float) = float_of(l, r) {
        return Some(float);
    }
    if l.is_unsigned_integer() && r.is_unsigned_integer() {
        return Some(D::UInt64);
    }
    let is_wide = |data_type: &DataType| data_type.is_decimal() || *data_type == D::UInt64;
    if !is_wide(l) && !is_wide(r) {
        return Some(D::Int64);
    }
    let ((p1, s1), (p2, s2)) = (left.as_decimal()?, right.as_decimal()?);
    let scale = s1.max(s2);
    let whole = (i16::from(p1) - i16::from(s1)).max(i16::from(p2) - i16::from(s2));
    let precision = u8::try_from((whole + i16::from(scale)).max(1)).ok()?;
    match precision {
        ..=38 => Some(D::Decimal128(precision, scale)),
        39..=76 => Some(D::Decimal256(precision, scale)),
        _ => None,
    }
}
