//! [`Literal`]: a value that a predicate compares with, not yet of the type of a column.
//!
//! Made by the user or by the parser; when a predicate is bound, it becomes a value of the column's Arrow type once, or an error that names it.
//! Numbers are exact: `0.1` is the decimal, whatever type it came from, and is rounded only where a float column is compared with it.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Datum, FixedSizeBinaryArray,
    Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, PrimitiveArray, Scalar,
    StringArray, StringViewArray, make_array,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

use super::calendar::{self, DAY, Date, SECOND, Time, Timestamp};
use super::value::{Value, precision_of};
use crate::error::Result;

/// A value to compare with: of Rust, of Arrow, or of the text form.
///
/// | literal | columns that it may be compared with |
/// |---|---|
/// | boolean | Boolean |
/// | number | integers and decimals that hold it exactly, floats (rounded to the nearest), dates, times, timestamps and durations (whole, as a count of their unit) |
/// | string | strings; byte strings; dates, times and timestamps, if it is one; a UUID in 16 bytes |
/// | byte string | byte strings; strings, if it is UTF-8 |
/// | date | dates; timestamps, as its midnight |
/// | time | times |
/// | timestamp | timestamps whose unit holds it; dates, if it is a midnight. One without a zone is in UTC where the column is; one with a zone does not fit a local column |
/// | null | all: what is compared with it is neither true nor false |
/// | anything else of Arrow | columns of exactly its type |
#[derive(Debug, Clone, PartialEq)]
pub struct Literal(pub(super) Kind);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
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

/// A [`Literal`] of a value.
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
    /// No value.
    pub const NULL: Self = Self(Kind::Null);

    /// The date that lies `days` after 1970-01-01.
    pub fn date(days: i32) -> Self {
        Self(Kind::Date(days))
    }

    /// The point in time `nanos` nanoseconds after 1970-01-01 00:00 UTC.
    pub fn timestamp_utc(nanos: i64) -> Self {
        Self(Kind::Timestamp(nanos.into(), true))
    }

    /// The clock reading `nanos` nanoseconds after 1970-01-01 00:00, in no particular zone.
    pub fn timestamp_local(nanos: i64) -> Self {
        Self(Kind::Timestamp(nanos.into(), false))
    }

    /// The time of day `nanos` nanoseconds after midnight. More than a day has is taken modulo a day.
    pub fn time(nanos: u64) -> Self {
        Self(Kind::Time(i64::try_from(nanos % DAY.unsigned_abs()).unwrap_or_default()))
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
            Some(int) => Self(Kind::Int(int)),
            None => Self(Kind::Decimal(unscaled, scale)),
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
            let trimmed = digits.trim_start_matches(['-', '+', '0']);
            let zeros = usize::try_from(-scale.min(0)).ok()?;
            if trimmed.len() + zeros > MOST_DIGITS || scale > 76 {
                return None;
            }
            let sign = if digits.starts_with('-') { "-" } else { "" };
            let padded = format!(
                "{sign}{}{}",
                if trimmed.is_empty() { "0" } else { trimmed },
                "0".repeat(zeros)
            );
            let unscaled = padded.parse::<i256>().ok()?;
            Some(Self::decimal(unscaled, u8::try_from(scale.max(0)).ok()?))
        };
        match exact() {
            Some(exact) => Some(exact),
            None => text.parse::<f64>().ok().map(|value| Self(Kind::Float(value))),
        }
    }

    /// The only value of an array.
    fn of_array(array: &dyn Array) -> Self {
        fn first<T: ArrowPrimitiveType>(array: &dyn Array) -> T::Native {
            array.as_primitive::<T>().value(0)
        }
        if array.logical_nulls().is_some_and(|nulls| nulls.null_count() > 0) || array.is_empty() {
            return Self::NULL;
        }
        let scaled = |unscaled: i256, scale: i8| match u8::try_from(scale) {
            Ok(scale) => Self::decimal(unscaled, scale),
            Err(_) => Self(Kind::Other(array.slice(0, 1))),
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
                let count = array.to_data().buffer::<i64>(0).first().copied().unwrap_or_default();
                let nanos = i128::from(count) * i128::from(nanos_of(*unit));
                Self(Kind::Timestamp(nanos, zone.as_ref().is_some_and(|zone| !zone.is_empty())))
            }
            DataType::Time32(unit) => {
                let count = array.to_data().buffer::<i32>(0).first().copied().unwrap_or_default();
                Self(Kind::Time(i64::from(count).saturating_mul(nanos_of(*unit))))
            }
            DataType::Time64(unit) => {
                let count = array.to_data().buffer::<i64>(0).first().copied().unwrap_or_default();
                Self(Kind::Time(count.saturating_mul(nanos_of(*unit))))
            }
            _ => Self(Kind::Other(array.slice(0, 1))),
        }
    }

    /// The value of `data_type` that the literal is; `Ok(None)` for null.
    pub(super) fn fit(&self, data_type: &DataType) -> std::result::Result<Option<Value>, Misfit> {
        if self.0 == Kind::Null {
            return Ok(None);
        }
        fit(&self.0, data_type).map(Some)
    }
}

/// Digits of a decimal literal.
const MOST_DIGITS: usize = 76;

/// Why a literal is no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It is of another kind.
    Kind,
    /// The type has no such value.
    Value,
    /// Values of the type cannot be compared.
    Incomparable,
}

fn fit(kind: &Kind, data_type: &DataType) -> std::result::Result<Value, Misfit> {
    use DataType as D;
    let whole = |least: i128, most: i128| match kind {
        Kind::Int(value) if (least..=most).contains(value) => Ok(Value::Int(*value)),
        Kind::Int(_) | Kind::Decimal(..) | Kind::Float(_) => Err(Misfit::Value),
        _ => Err(Misfit::Kind),
    };
    let signed32 = || whole(i32::MIN.into(), i32::MAX.into());
    let signed64 = || whole(i64::MIN.into(), i64::MAX.into());
    match data_type {
        D::Boolean => match kind {
            Kind::Boolean(value) => Ok(Value::Int((*value).into())),
            _ => Err(Misfit::Kind),
        },
        D::Int8 => whole(i8::MIN.into(), i8::MAX.into()),
        D::Int16 => whole(i16::MIN.into(), i16::MAX.into()),
        D::Int32 => signed32(),
        D::UInt8 => whole(0, u8::MAX.into()),
        D::UInt16 => whole(0, u16::MAX.into()),
        D::UInt32 => whole(0, u32::MAX.into()),
        D::UInt64 => whole(0, u64::MAX.into()),
        D::Int64 | D::Duration(_) => signed64(),
        D::Float16 | D::Float32 | D::Float64 => fit_float(kind, data_type).map(Value::Float),
        D::Decimal32(_, scale)
        | D::Decimal64(_, scale)
        | D::Decimal128(_, scale)
        | D::Decimal256(_, scale) => fit_decimal(kind, data_type, *scale).map(Value::Wide),
        D::Date32 | D::Date64 => {
            let days = match kind {
                Kind::Date(days) => i64::from(*days),
                Kind::Timestamp(nanos, false) if nanos % i128::from(DAY) == 0 => {
                    i64::try_from(nanos / i128::from(DAY)).map_err(|_| Misfit::Value)?
                }
                Kind::Timestamp(..) => return Err(Misfit::Value),
                Kind::Text(text) => calendar::parse_date(text).ok_or(Misfit::Kind)?,
                _ if *data_type == D::Date32 => return signed32(),
                _ => return signed64(),
            };
            match data_type {
                D::Date32 => i32::try_from(days)
                    .map(|days| Value::Int(days.into()))
                    .map_err(|_| Misfit::Value),
                _ => Ok(Value::Int(i128::from(days) * 86_400_000)),
            }
        }
        D::Time32(unit) | D::Time64(unit) => {
            let nanos = match kind {
                Kind::Time(nanos) => *nanos,
                Kind::Text(text) => calendar::parse_time(text).ok_or(Misfit::Kind)?,
                _ if matches!(data_type, D::Time32(_)) => return signed32(),
                _ => return signed64(),
            };
            in_unit(nanos.into(), *unit)
        }
        D::Timestamp(unit, zone) => {
            let column_in_utc = zone.as_ref().is_some_and(|zone| !zone.is_empty());
            let (nanos, in_utc) = match kind {
                Kind::Timestamp(nanos, in_utc) => (*nanos, *in_utc),
                Kind::Date(days) => (i128::from(*days) * i128::from(DAY), false),
                Kind::Text(text) => calendar::parse_timestamp(text).ok_or(Misfit::Kind)?,
                _ => return signed64(),
            };
            if in_utc && !column_in_utc {
                return Err(Misfit::Kind);
            }
            in_unit(nanos, *unit)
        }
        D::Utf8 | D::LargeUtf8 | D::Utf8View => match kind {
            Kind::Text(text) => Ok(Value::Bytes(text.clone().into_bytes())),
            Kind::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => {
                Ok(Value::Bytes(bytes.clone()))
            }
            Kind::Bytes(_) => Err(Misfit::Value),
            _ => Err(Misfit::Kind),
        },
        D::Binary | D::LargeBinary | D::BinaryView => match kind {
            Kind::Text(text) => Ok(Value::Bytes(text.clone().into_bytes())),
            Kind::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
            _ => Err(Misfit::Kind),
        },
        D::FixedSizeBinary(length) => {
            let bytes = match kind {
                Kind::Bytes(bytes) => bytes.clone(),
                Kind::Text(text) if *length == 16 && text.len() == 36 => {
                    uuid(text).ok_or(Misfit::Value)?
                }
                Kind::Text(text) => text.clone().into_bytes(),
                _ => return Err(Misfit::Kind),
            };
            if usize::try_from(*length) != Ok(bytes.len()) {
                return Err(Misfit::Value);
            }
            Ok(Value::Bytes(bytes))
        }
        _ => Err(Misfit::Incomparable),
    }
}

/// The nearest float.
fn fit_float(kind: &Kind, data_type: &DataType) -> std::result::Result<f64, Misfit> {
    let text = match kind {
        Kind::Int(value) => value.to_string(),
        Kind::Decimal(unscaled, scale) => format!("{unscaled}e-{scale}"),
        Kind::Float(value) if value.is_finite() => format!("{value:e}"),
        Kind::Float(value) => return Ok(*value),
        _ => return Err(Misfit::Kind),
    };
    // Rounded once, from the decimal.
    let nearest = match data_type {
        DataType::Float32 => text.parse::<f32>().map(f64::from),
        DataType::Float16 => text.parse().map(|value| half::f16::from_f64(value).to_f64()),
        _ => text.parse::<f64>(),
    };
    nearest.ok().filter(|value| value.is_finite()).ok_or(Misfit::Value)
}

/// The unscaled number of a decimal type.
fn fit_decimal(kind: &Kind, to: &DataType, scale: i8) -> std::result::Result<i256, Misfit> {
    let (unscaled, from) = match kind {
        Kind::Int(value) => (i256::from_i128(*value), 0),
        Kind::Decimal(unscaled, scale) => (*unscaled, i32::from(*scale)),
        Kind::Float(_) => return Err(Misfit::Value),
        _ => return Err(Misfit::Kind),
    };
    let ten = |n: i32| u32::try_from(n).ok().and_then(|n| i256::from_i128(10).checked_pow(n));
    let by = i32::from(scale) - from;
    let number = if by >= 0 {
        ten(by).and_then(|factor| unscaled.checked_mul(factor))
    } else {
        // A negative scale: the type has tens, hundreds and so on only.
        ten(-by)
            .filter(|factor| unscaled.checked_rem(*factor) == Some(i256::ZERO))
            .and_then(|factor| unscaled.checked_div(factor))
    };
    let precision = precision_of(to).map_or(0, i32::from);
    let most = ten(precision).ok_or(Misfit::Value)?;
    number.filter(|n| *n < most && *n > most.wrapping_neg()).ok_or(Misfit::Value)
}

/// Nanoseconds as a count of a unit, if it is whole and fits 64 bits.
fn in_unit(nanos: i128, unit: TimeUnit) -> std::result::Result<Value, Misfit> {
    let per_unit = i128::from(nanos_of(unit));
    let count = (nanos % per_unit == 0).then_some(nanos / per_unit);
    match count.filter(|count| i64::try_from(*count).is_ok()) {
        Some(count) => Ok(Value::Int(count)),
        None => Err(Misfit::Value),
    }
}

fn nanos_of(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The bytes of a UUID: `8-4-4-4-12` hexadecimal digits.
fn uuid(text: &str) -> Option<Vec<u8>> {
    let dashes = text.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at);
    if !dashes.eq([8, 13, 18, 23]) {
        return None;
    }
    from_hex(&text.replace('-', ""))
}

/// The bytes of pairs of hexadecimal digits.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// One value of `data_type` as an array.
///
/// # Errors
/// `Arrow` if the value is none of the type, which [`Literal::fit`] never gives.
pub(super) fn array_of(value: &Value, data_type: &DataType) -> Result<ArrayRef> {
    use DataType as D;
    fn int<T: ArrowPrimitiveType>(value: i128) -> Option<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let value = T::Native::try_from(value).ok()?;
        Some(Arc::new(PrimitiveArray::<T>::from_iter_values([value])))
    }
    let made: Option<ArrayRef> = match (value, data_type) {
        (Value::Int(v), D::Boolean) => Some(Arc::new(BooleanArray::from(vec![*v != 0]))),
        (Value::Int(v), D::Int8) => int::<Int8Type>(*v),
        (Value::Int(v), D::Int16) => int::<Int16Type>(*v),
        (Value::Int(v), D::Int32) => int::<Int32Type>(*v),
        (Value::Int(v), D::Int64) => int::<Int64Type>(*v),
        (Value::Int(v), D::UInt8) => int::<UInt8Type>(*v),
        (Value::Int(v), D::UInt16) => int::<UInt16Type>(*v),
        (Value::Int(v), D::UInt32) => int::<UInt32Type>(*v),
        (Value::Int(v), D::UInt64) => int::<UInt64Type>(*v),
        (Value::Int(v), D::Date32 | D::Time32(_)) => {
            let word = i32::try_from(*v).ok().map(|v| Int32Array::from(vec![v]));
            word.map(|word| retyped(&word, data_type)).transpose()?
        }
        (Value::Int(v), _) => {
            let word = i64::try_from(*v).ok().map(|v| Int64Array::from(vec![v]));
            word.map(|word| retyped(&word, data_type)).transpose()?
        }
        #[expect(clippy::cast_possible_truncation, reason = "it was rounded to the type before")]
        (Value::Float(v), D::Float32) => {
            Some(Arc::new(PrimitiveArray::<Float32Type>::from_iter_values([*v as f32])))
        }
        (Value::Float(v), D::Float16) => {
            let v = half::f16::from_f64(*v);
            Some(Arc::new(PrimitiveArray::<Float16Type>::from_iter_values([v])))
        }
        (Value::Float(v), _) => {
            Some(Arc::new(PrimitiveArray::<Float64Type>::from_iter_values([*v])))
        }
        (Value::Wide(v), _) => {
            let small = || v.to_i128();
            let plain: Option<ArrayRef> = match data_type {
                D::Decimal32(..) => small().and_then(int::<Decimal32Type>),
                D::Decimal64(..) => small().and_then(int::<Decimal64Type>),
                D::Decimal128(..) => small().and_then(int::<Decimal128Type>),
                _ => Some(Arc::new(PrimitiveArray::<Decimal256Type>::from_iter_values([*v]))),
            };
            plain.map(|plain| retyped(&plain, data_type)).transpose()?
        }
        (Value::Bytes(v), D::Binary) => Some(Arc::new(BinaryArray::from_iter_values([v]))),
        (Value::Bytes(v), D::LargeBinary) => {
            Some(Arc::new(LargeBinaryArray::from_iter_values([v])))
        }
        (Value::Bytes(v), D::BinaryView) => Some(Arc::new(BinaryViewArray::from_iter_values([v]))),
        (Value::Bytes(v), D::FixedSizeBinary(_)) => {
            Some(Arc::new(FixedSizeBinaryArray::try_from_iter([v].into_iter())?))
        }
        (Value::Bytes(v), _) => {
            let text = std::str::from_utf8(v).ok();
            text.map(|text| -> ArrayRef {
                match data_type {
                    D::LargeUtf8 => Arc::new(LargeStringArray::from_iter_values([text])),
                    D::Utf8View => Arc::new(StringViewArray::from_iter_values([text])),
                    _ => Arc::new(StringArray::from_iter_values([text])),
                }
            })
        }
    };
    made.ok_or_else(|| {
        arrow_schema::ArrowError::CastError(format!("{value:?} is no {data_type}")).into()
    })
}

/// The same buffers under another type of the same layout.
pub(super) fn retyped(array: &dyn Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(make_array(array.to_data().into_builder().data_type(data_type.clone()).build()?))
}

impl fmt::Display for Literal {
    /// The text form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Null => f.write_str("null"),
            Kind::Boolean(value) => write!(f, "{value}"),
            Kind::Int(value) => write!(f, "{value}"),
            Kind::Decimal(unscaled, scale) => {
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
            Kind::Float(value) if value.is_nan() => f.write_str("double 'nan'"),
            Kind::Float(value) if value.is_infinite() => {
                write!(f, "double '{}inf'", if *value < 0.0 { "-" } else { "" })
            }
            Kind::Float(value) => write!(f, "{value:e}"),
            Kind::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Kind::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Kind::Date(days) => write!(f, "date '{}'", Date((*days).into())),
            Kind::Time(nanos) => write!(f, "time '{}'", Time(*nanos)),
            Kind::Timestamp(nanos, in_utc) => {
                write!(f, "timestamp '{}{}'", Timestamp(*nanos), if *in_utc { "Z" } else { "" })
            }
            Kind::Other(array) => write!(f, "{:?}", array.data_type()),
        }
    }
}

impl From<bool> for Literal {
    fn from(value: bool) -> Self {
        Self(Kind::Boolean(value))
    }
}

macro_rules! ints {
    ($($int:ty),*) => {$(
        impl From<$int> for Literal {
            fn from(value: $int) -> Self {
                Self(Kind::Int(value.into()))
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
        exact.unwrap_or(Self(Kind::Float(value)))
    }
}

impl From<f32> for Literal {
    fn from(value: f32) -> Self {
        f64::from(value).into()
    }
}

impl From<&str> for Literal {
    fn from(value: &str) -> Self {
        Self(Kind::Text(value.to_owned()))
    }
}

impl From<&String> for Literal {
    fn from(value: &String) -> Self {
        Self(Kind::Text(value.clone()))
    }
}

impl From<String> for Literal {
    fn from(value: String) -> Self {
        Self(Kind::Text(value))
    }
}

impl From<&[u8]> for Literal {
    fn from(value: &[u8]) -> Self {
        Self(Kind::Bytes(value.to_vec()))
    }
}

impl<const N: usize> From<&[u8; N]> for Literal {
    fn from(value: &[u8; N]) -> Self {
        Self(Kind::Bytes(value.to_vec()))
    }
}

impl From<Vec<u8>> for Literal {
    fn from(value: Vec<u8>) -> Self {
        Self(Kind::Bytes(value))
    }
}

impl From<SystemTime> for Literal {
    /// A point in time in UTC.
    fn from(value: SystemTime) -> Self {
        let nanos = |nanos: u128| i128::try_from(nanos).unwrap_or(i128::MAX);
        let nanos = match value.duration_since(UNIX_EPOCH) {
            Ok(after) => nanos(after.as_nanos()),
            Err(before) => -nanos(before.duration().as_nanos()),
        };
        Self(Kind::Timestamp(nanos, true))
    }
}

impl<T: Into<Self>> From<Option<T>> for Literal {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NULL, Into::into)
    }
}

impl<T: Array> From<Scalar<T>> for Literal {
    fn from(value: Scalar<T>) -> Self {
        Self::of_array(value.get().0)
    }
}

impl From<&ArrayRef> for Literal {
    /// The first value of the array; of an empty one, null.
    fn from(value: &ArrayRef) -> Self {
        Self::of_array(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(literal: impl Into<Literal>, data_type: &DataType) -> Option<Value> {
        literal.into().fit(data_type).ok().flatten()
    }

    #[test]
    fn numbers_are_exact() {
        for (text, expected) in [
            ("1.50", "1.5"),
            ("-0.050", "-0.05"),
            ("1e3", "1000"),
            ("25e-1", "2.5"),
            ("-0", "0"),
            ("007", "7"),
            ("1e300", "1e300"),
            ("1e-100", "1e-100"),
            (
                "99999999999999999999999999999999999999999999",
                "99999999999999999999999999999999999999999999",
            ),
        ] {
            let number = Literal::number(text).unwrap();
            assert_eq!(number.to_string(), expected);
            assert_eq!(Literal::number(expected).unwrap(), number);
        }
        assert_eq!(lit(0.1), Literal::decimal(i256::from_i128(1), 1));
        assert_eq!(fits(0.1, &DataType::Float64), Some(Value::Float(0.1)));
        assert_eq!(fits(0.1f32, &DataType::Float32), Some(Value::Float(f64::from(0.1f32))));
        assert_eq!(fits(0.1, &DataType::Float32), Some(Value::Float(f64::from(0.1f32))));
        for value in [f64::MAX, f64::MIN_POSITIVE, 5e-324, -1.0 / 3.0, 1e22] {
            assert_eq!(fits(value, &DataType::Float64), Some(Value::Float(value)));
        }
    }

    #[test]
    fn literals_fit_or_do_not() {
        use DataType as D;
        let misfits: &[(Literal, D, Misfit)] = &[
            (lit(128), D::Int8, Misfit::Value),
            (lit(-1), D::UInt64, Misfit::Value),
            (lit(0.5), D::Int32, Misfit::Value),
            (lit("x"), D::Int32, Misfit::Kind),
            (lit(1e39), D::Float32, Misfit::Value),
            (lit(0.001), D::Decimal128(5, 2), Misfit::Value),
            (lit(1000), D::Decimal128(5, 2), Misfit::Value),
            (lit(1), D::Utf8, Misfit::Kind),
            (lit(true), D::Int8, Misfit::Kind),
            (lit(&[0xFFu8]), D::Utf8, Misfit::Value),
            (lit(&[0u8; 3]), D::FixedSizeBinary(4), Misfit::Value),
            (Literal::timestamp_utc(0), D::Timestamp(TimeUnit::Second, None), Misfit::Kind),
            (Literal::timestamp_local(1), D::Timestamp(TimeUnit::Microsecond, None), Misfit::Value),
            (lit("today"), D::Date32, Misfit::Kind),
            (lit(1), D::Interval(arrow_schema::IntervalUnit::DayTime), Misfit::Incomparable),
        ];
        for (literal, data_type, misfit) in misfits {
            assert_eq!(literal.fit(data_type), Err(*misfit), "{literal} as {data_type}");
        }
        assert_eq!(fits(127, &D::Int8), Some(Value::Int(127)));
        assert_eq!(fits(999.99, &D::Decimal128(5, 2)), Some(Value::Wide(i256::from_i128(99_999))));
        assert_eq!(fits("2024-03-01", &D::Date32), Some(Value::Int(19_783)));
        assert_eq!(
            fits(Literal::date(1), &D::Timestamp(TimeUnit::Millisecond, None)),
            Some(Value::Int(86_400_000))
        );
        assert_eq!(lit(None::<i32>).fit(&D::Int8), Ok(None));
    }

    #[test]
    fn scalars_of_arrow_are_what_they_say() {
        let scalar = |array: ArrayRef| Literal::from(&array);
        assert_eq!(scalar(Arc::new(Int32Array::from(vec![7]))), lit(7));
        assert_eq!(Literal::from(Int32Array::new_scalar(7)), lit(7));
        assert_eq!(scalar(Arc::new(Int32Array::from(vec![None]))), Literal::NULL);
        for (value, data_type) in [
            (Value::Int(5), DataType::Date64),
            (Value::Int(5), DataType::Time32(TimeUnit::Second)),
            (Value::Int(5), DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))),
            (Value::Wide(i256::from_i128(5)), DataType::Decimal64(5, 2)),
            (Value::Wide(i256::from_i128(5)), DataType::Decimal256(5, 2)),
            (Value::Float(0.5), DataType::Float16),
            (Value::Bytes(vec![1, 2]), DataType::FixedSizeBinary(2)),
        ] {
            let array = array_of(&value, &data_type).unwrap();
            assert_eq!(array.data_type(), &data_type);
            if data_type != DataType::Date64 {
                assert_eq!(scalar(array).fit(&data_type), Ok(Some(value)));
            }
        }
    }
}
