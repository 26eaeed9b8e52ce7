//! [`Literal`]: a value that a predicate compares with, before it has the type of a column.
//!
//! The user or the parser makes it. Binding converts it once to a value of the column's Arrow type,
//! or returns an error that names it. Numbers are exact: `0.1` is the decimal, whatever type it
//! came from, and is rounded only where a float column is compared with it.

use std::borrow::Cow;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Datum, Scalar};
use arrow_buffer::i256;
use arrow_schema::DataType;

use super::datetime::{DAY, Date, Time, Timestamp, nanos_of};

/// A value to compare with: from Rust, from Arrow, or from the text form.
///
/// | literal | columns that it may be compared with |
/// |---|---|
/// | boolean | Boolean |
/// | number | integers and decimals that hold it exactly; floats (rounded to the nearest) |
/// | whole number | durations; in Rust also dates, times and timestamps: a count of their unit |
/// | string | strings; byte strings; dates, times, timestamps, UUIDs of 16 bytes, if it is one |
/// | byte string | byte strings; strings, if it is UTF-8 |
/// | date | dates; timestamps, as its midnight |
/// | time | times |
/// | timestamp | timestamps whose unit holds it; dates, if it is a midnight |
/// | null | all: what is compared with it is neither true nor false |
/// | anything else of Arrow | columns of exactly its type |
///
/// A timestamp without a zone is in UTC if the column is. A timestamp with a zone does not fit a
/// local column.
///
/// A literal that the column's type cannot hold is an error, unless it is compared [by
/// value](Literal::by_value), like those of the text form. Equality of literals ignores that
/// setting.
#[derive(Debug, Clone)]
pub struct Literal {
    pub(super) kind: LiteralKind,
    /// Compared by value, not only if the type of the column holds it.
    pub(super) by_value: bool,
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum LiteralKind {
    Null,
    Boolean(bool),
    Int(i128),
    /// Without zeros at the end of the fraction; whole only where an `Int` does not hold it.
    Decimal(i256, u8),
    /// Not finite, or beyond what a decimal holds.
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Nanoseconds since 1970-01-01 00:00, and whether in UTC.
    Timestamp(i128, bool),
    /// One value of another type.
    Other(ArrayRef),
}

/// Makes a [`Literal`].
///
/// ```
/// use marquetry::{col, lit};
///
/// assert_eq!(col("fare").gt(lit(2.5)).to_string(), "fare > 2.5");
/// ```
pub fn lit(value: impl Into<Literal>) -> Literal {
    value.into()
}

impl Literal {
    /// The null literal.
    pub const NULL: Self = Self::new(LiteralKind::Null);

    pub(super) const fn new(kind: LiteralKind) -> Self {
        Self { kind, by_value: false }
    }

    /// Compares by value, as SQL and the text form of predicates do.
    ///
    /// * A number need not be of the column's type: no `int8` is greater than 300, and all that are
    ///   not null are less; a decimal with two digits is at least 10.245 if it is at least 10.25. A
    ///   number still stands for the nearest float.
    /// * A timestamp finer than the column's unit, or one that is not midnight for a column of
    ///   dates, lies between two values of the column in the same way.
    /// * A string is parsed as a value of the column's type, also as a number or a boolean. A
    ///   string that cannot be parsed is an error.
    /// * A number is never a date, a time or a timestamp.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use marquetry::arrow_array::{ArrayRef, Int8Array, RecordBatch};
    /// use marquetry::{col, lit};
    ///
    /// let passengers: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
    /// let batch = RecordBatch::try_from_iter([("passengers", passengers)])?;
    /// let few = col("passengers").lt(lit(300).by_value()).bind_to(batch.schema_ref())?;
    /// assert_eq!(few.evaluate(&batch)?.true_count(), 2);
    /// assert!(col("passengers").lt(300).bind_to(batch.schema_ref()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn by_value(self) -> Self {
        Self { by_value: true, ..self }
    }

    /// The date that lies `days` after 1970-01-01.
    pub fn date(days: i32) -> Self {
        Self::new(LiteralKind::Date(days))
    }

    /// The point in time `nanos` nanoseconds after 1970-01-01 00:00 UTC.
    pub fn timestamp_utc(nanos: i64) -> Self {
        Self::new(LiteralKind::Timestamp(nanos.into(), true))
    }

    /// The clock reading `nanos` nanoseconds after 1970-01-01 00:00, in no particular zone.
    pub fn timestamp_local(nanos: i64) -> Self {
        Self::new(LiteralKind::Timestamp(nanos.into(), false))
    }

    /// The time of day `nanos` nanoseconds after midnight, modulo one day.
    pub fn time(nanos: u64) -> Self {
        Self::new(LiteralKind::Time(
            i64::try_from(nanos % DAY.unsigned_abs()).expect("less than a day"),
        ))
    }

    /// The number `unscaled × 10^-scale`.
    pub fn decimal(unscaled: impl Into<i256>, scale: u8) -> Self {
        let (mut unscaled, mut scale) = (unscaled.into(), scale);
        let ten = i256::from_i128(10);
        while scale > 0 && unscaled.checked_rem(ten) == Some(i256::ZERO) {
            unscaled = unscaled.checked_div(ten).unwrap_or(unscaled);
            scale -= 1;
        }
        match unscaled.to_i128().filter(|_| scale == 0) {
            Some(int) => Self::new(LiteralKind::Int(int)),
            None => Self::new(LiteralKind::Decimal(unscaled, scale)),
        }
    }

    /// The number that a text like `-12`, `1.50` or `2.5e-3` is.
    pub(super) fn number(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (text.get(..at)?, text.get(at + 1..)?.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let exact = || {
            let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
            let (trimmed, scale) = shortened(digits.trim_start_matches(['-', '+', '0']), scale)?;
            let zeros = usize::try_from(-scale.min(0)).ok()?;
            if trimmed.len() + zeros > MAX_DIGITS {
                return None;
            }
            let sign = if digits.starts_with('-') { "-" } else { "" };
            let padded = format!(
                "{sign}{}{}",
                if trimmed.is_empty() { "0" } else { &trimmed },
                "0".repeat(zeros)
            );
            let unscaled = padded.parse::<i256>().ok()?;
            Some(Self::decimal(unscaled, u8::try_from(scale.max(0)).ok()?))
        };
        match exact() {
            Some(exact) => Some(exact),
            None => text.parse::<f64>().ok().map(|value| Self::new(LiteralKind::Float(value))),
        }
    }

    /// The only value of an array.
    fn from_array(array: &dyn Array) -> Self {
        fn first<T: ArrowPrimitiveType>(array: &dyn Array) -> T::Native {
            array.as_primitive::<T>().value(0)
        }
        if array.logical_nulls().is_some_and(|nulls| nulls.null_count() > 0) || array.is_empty() {
            return Self::NULL;
        }
        let scaled = |unscaled: i256, scale: i8| match u8::try_from(scale) {
            Ok(scale) => Self::decimal(unscaled, scale),
            Err(_) => Self::new(LiteralKind::Other(array.slice(0, 1))),
        };
        match array.data_type() {
            DataType::Null => Self::NULL,
            DataType::Boolean => array.as_boolean().value(0).into(),
            DataType::Int8 => first::<Int8Type>(array).into(),
            DataType::Int16 => first::<Int16Type>(array).into(),
            DataType::Int32 => first::<Int32Type>(array).into(),
            DataType::Int64 => first::<Int64Type>(array).into(),
            DataType::UInt8 => first::<UInt8Type>(array).into(),
            DataType::UInt16 => first::<UInt16Type>(array).into(),
            DataType::UInt32 => first::<UInt32Type>(array).into(),
            DataType::UInt64 => first::<UInt64Type>(array).into(),
            DataType::Float16 => first::<Float16Type>(array).to_f64().into(),
            DataType::Float32 => first::<Float32Type>(array).into(),
            DataType::Float64 => first::<Float64Type>(array).into(),
            DataType::Decimal32(_, s) => scaled(i256::from(first::<Decimal32Type>(array)), *s),
            DataType::Decimal64(_, s) => scaled(i256::from(first::<Decimal64Type>(array)), *s),
            DataType::Decimal128(_, s) => {
                scaled(i256::from_i128(first::<Decimal128Type>(array)), *s)
            }
            DataType::Decimal256(_, s) => scaled(first::<Decimal256Type>(array), *s),
            DataType::Utf8 => array.as_string::<i32>().value(0).into(),
            DataType::LargeUtf8 => array.as_string::<i64>().value(0).into(),
            DataType::Utf8View => array.as_string_view().value(0).into(),
            DataType::Binary => array.as_binary::<i32>().value(0).into(),
            DataType::LargeBinary => array.as_binary::<i64>().value(0).into(),
            DataType::BinaryView => array.as_binary_view().value(0).into(),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(0).into(),
            DataType::Date32 => Self::date(first::<Date32Type>(array)),
            DataType::Timestamp(unit, zone) => {
                let count = array.to_data().buffer::<i64>(0)[0];
                let nanos = i128::from(count) * i128::from(nanos_of(*unit));
                Self::new(LiteralKind::Timestamp(
                    nanos,
                    zone.as_ref().is_some_and(|zone| !zone.is_empty()),
                ))
            }
            DataType::Time32(unit) => {
                let count = array.to_data().buffer::<i32>(0)[0];
                Self::new(LiteralKind::Time(i64::from(count).saturating_mul(nanos_of(*unit))))
            }
            DataType::Time64(unit) => {
                let count = array.to_data().buffer::<i64>(0)[0];
                Self::new(LiteralKind::Time(count.saturating_mul(nanos_of(*unit))))
            }
            _ => Self::new(LiteralKind::Other(array.slice(0, 1))),
        }
    }
}

/// Digits of a decimal literal, and its greatest scale.
const MAX_DIGITS: usize = 76;

/// Digits that tell the nearest float: twice as many as it has, and some.
const ENOUGH_DIGITS: usize = 40;

/// The digits of a number, without zeros ahead, and its scale: if they are more than a literal
/// holds, those that it holds. Zeros at the end are left out; of others, the last digit is a 1, so
/// that the number stays between the same integers and decimals, and as near to the same floats.
/// `None` if a literal does not hold enough.
fn shortened(digits: &str, scale: i32) -> Option<(Cow<'_, str>, i32)> {
    if digits.is_empty() {
        return Some((Cow::Borrowed(digits), scale.clamp(0, 76)));
    }
    let after_point = usize::try_from(scale.max(0)).ok()?;
    let excess = digits.len().max(after_point).saturating_sub(MAX_DIGITS);
    if excess == 0 {
        return Some((Cow::Borrowed(digits), scale));
    }
    let scale = scale - i32::try_from(excess).ok().filter(|excess| *excess <= scale)?;
    let (kept, rest) = digits.split_at_checked(digits.len().checked_sub(excess)?)?;
    if rest.bytes().all(|digit| digit == b'0') {
        return Some((Cow::Borrowed(kept), scale));
    }
    let (most, _) = kept.split_at_checked(kept.len().checked_sub(1)?)?;
    let is_enough = kept.len() >= ENOUGH_DIGITS && scale > 0;
    is_enough.then(|| (Cow::Owned(format!("{most}1")), scale))
}

impl fmt::Display for Literal {
    /// The text form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            LiteralKind::Null => f.write_str("null"),
            LiteralKind::Boolean(value) => write!(f, "{value}"),
            LiteralKind::Int(value) => write!(f, "{value}"),
            LiteralKind::Decimal(unscaled, scale) => {
                let digits = unscaled.to_string();
                let (sign, digits) = match digits.strip_prefix('-') {
                    Some(digits) => ("-", digits),
                    None => ("", digits.as_str()),
                };
                let scale = usize::from(*scale);
                if scale == 0 {
                    return write!(f, "{sign}{digits}");
                }
                let padded = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = padded.split_at(padded.len() - scale);
                write!(f, "{sign}{whole}.{fraction}")
            }
            LiteralKind::Float(value) if value.is_nan() => f.write_str("double 'nan'"),
            LiteralKind::Float(value) if value.is_infinite() => {
                write!(f, "double '{}inf'", if *value < 0.0 { "-" } else { "" })
            }
            LiteralKind::Float(value) => write!(f, "{value:e}"),
            LiteralKind::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            LiteralKind::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            LiteralKind::Date(days) => write!(f, "date '{}'", Date((*days).into())),
            LiteralKind::Time(nanos) => write!(f, "time '{}'", Time(*nanos)),
            LiteralKind::Timestamp(nanos, in_utc) => {
                write!(f, "timestamp '{}{}'", Timestamp(*nanos), if *in_utc { "Z" } else { "" })
            }
            LiteralKind::Other(array) => write!(f, "{:?}", array.data_type()),
        }
    }
}

impl From<bool> for Literal {
    fn from(value: bool) -> Self {
        Self::new(LiteralKind::Boolean(value))
    }
}

macro_rules! ints {
    ($($int:ty),*) => {$(
        impl From<$int> for Literal {
            fn from(value: $int) -> Self {
                Self::new(LiteralKind::Int(value.into()))
            }
        }
    )*};
}
ints!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

impl From<usize> for Literal {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl From<f64> for Literal {
    /// The decimal that prints as the value does.
    fn from(value: f64) -> Self {
        let exact = if value.is_finite() { Self::number(&format!("{value:e}")) } else { None };
        exact.unwrap_or_else(|| Self::new(LiteralKind::Float(value)))
    }
}

impl From<f32> for Literal {
    fn from(value: f32) -> Self {
        f64::from(value).into()
    }
}

impl From<&str> for Literal {
    fn from(value: &str) -> Self {
        Self::new(LiteralKind::Text(value.to_owned()))
    }
}

impl From<&String> for Literal {
    fn from(value: &String) -> Self {
        Self::new(LiteralKind::Text(value.clone()))
    }
}

impl From<String> for Literal {
    fn from(value: String) -> Self {
        Self::new(LiteralKind::Text(value))
    }
}

impl From<&[u8]> for Literal {
    fn from(value: &[u8]) -> Self {
        Self::new(LiteralKind::Bytes(value.to_vec()))
    }
}

impl<const N: usize> From<&[u8; N]> for Literal {
    fn from(value: &[u8; N]) -> Self {
        Self::new(LiteralKind::Bytes(value.to_vec()))
    }
}

impl From<Vec<u8>> for Literal {
    fn from(value: Vec<u8>) -> Self {
        Self::new(LiteralKind::Bytes(value))
    }
}

impl From<SystemTime> for Literal {
    /// A point in time in UTC.
    fn from(value: SystemTime) -> Self {
        let nanos = |nanos| i128::try_from(nanos).expect("2^64 seconds are fewer than 2^127 ns");
        let nanos = match value.duration_since(UNIX_EPOCH) {
            Ok(after) => nanos(after.as_nanos()),
            Err(before) => -nanos(before.duration().as_nanos()),
        };
        Self::new(LiteralKind::Timestamp(nanos, true))
    }
}

impl<T: Into<Self>> From<Option<T>> for Literal {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NULL, Into::into)
    }
}

impl<T: Array> From<Scalar<T>> for Literal {
    fn from(value: Scalar<T>) -> Self {
        Self::from_array(value.get().0)
    }
}

impl From<&ArrayRef> for Literal {
    /// The first value of the array; of an empty one, null.
    fn from(value: &ArrayRef) -> Self {
        Self::from_array(value)
    }
}
