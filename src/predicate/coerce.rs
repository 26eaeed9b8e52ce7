//! Coercion converts a [`Literal`] to a value of a column's type, exactly or not at all.

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

use super::datetime::{self, DAY, nanos_of};
use super::literal::{Literal, LiteralKind};
use super::value::{LiteralValue, precision_of};

impl Literal {
    /// The value of `data_type` that the literal is; `Ok(None)` for null.
    pub(super) fn coerce(&self, data_type: &DataType) -> Coerced<Option<LiteralValue>> {
        if self.kind == LiteralKind::Null {
            return Ok(None);
        }
        coerce(&self.kind, data_type).map(Some)
    }
}

/// Why a literal is no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoercionError {
    /// It is of another kind.
    Kind,
    /// The type has no such value.
    Value,
    /// Values of the type cannot be compared.
    Incomparable,
    /// A text that is no value of the type.
    Text,
    /// A number where a date or a time belongs.
    Time,
}

/// A value, or why there is none.
type Coerced<T = LiteralValue> = std::result::Result<T, CoercionError>;

fn coerce(kind: &LiteralKind, data_type: &DataType) -> Coerced {
    use DataType as D;
    match data_type {
        D::Boolean => match kind {
            LiteralKind::Boolean(value) => Ok(LiteralValue::Int((*value).into())),
            _ => Err(CoercionError::Kind),
        },
        D::Int8 => coerce_int(kind, i8::MIN, i8::MAX),
        D::Int16 => coerce_int(kind, i16::MIN, i16::MAX),
        D::Int32 => coerce_int(kind, i32::MIN, i32::MAX),
        D::Int64 | D::Duration(_) => coerce_int(kind, i64::MIN, i64::MAX),
        D::UInt8 => coerce_int(kind, 0, u8::MAX),
        D::UInt16 => coerce_int(kind, 0, u16::MAX),
        D::UInt32 => coerce_int(kind, 0, u32::MAX),
        D::UInt64 => coerce_int(kind, 0, u64::MAX),
        D::Float16 | D::Float32 | D::Float64 => {
            coerce_float(kind, data_type).map(LiteralValue::Float)
        }
        D::Decimal32(_, scale)
        | D::Decimal64(_, scale)
        | D::Decimal128(_, scale)
        | D::Decimal256(_, scale) => {
            coerce_decimal(kind, data_type, *scale).map(LiteralValue::Wide)
        }
        D::Date32 => match coerce_days(kind)? {
            Some(days) => i32::try_from(days)
                .map(|days| LiteralValue::Int(days.into()))
                .map_err(|_| CoercionError::Value),
            None => coerce_int(kind, i32::MIN, i32::MAX),
        },
        D::Date64 => match coerce_days(kind)? {
            Some(days) => Ok(LiteralValue::Int(i128::from(days) * 86_400_000)),
            None => coerce_int(kind, i64::MIN, i64::MAX),
        },
        D::Time32(unit) | D::Time64(unit) => match kind {
            LiteralKind::Time(nanos) => in_unit((*nanos).into(), *unit),
            LiteralKind::Text(text) => {
                in_unit(datetime::parse_time(text).ok_or(CoercionError::Kind)?.into(), *unit)
            }
            _ if matches!(data_type, D::Time32(_)) => coerce_int(kind, i32::MIN, i32::MAX),
            _ => coerce_int(kind, i64::MIN, i64::MAX),
        },
        D::Timestamp(unit, zone) => {
            let in_utc = zone.as_ref().is_some_and(|zone| !zone.is_empty());
            coerce_timestamp(kind, *unit, in_utc)
        }
        _ => coerce_bytes(kind, data_type).map(LiteralValue::Bytes),
    }
}

/// A whole number within a range.
fn coerce_int(kind: &LiteralKind, min: impl Into<i128>, max: impl Into<i128>) -> Coerced {
    match kind {
        LiteralKind::Int(value) if (min.into()..=max.into()).contains(value) => {
            Ok(LiteralValue::Int(*value))
        }
        LiteralKind::Int(_) | LiteralKind::Decimal(..) | LiteralKind::Float(_) => {
            Err(CoercionError::Value)
        }
        _ => Err(CoercionError::Kind),
    }
}

/// Days since 1970-01-01; `None` if the literal may be a count.
fn coerce_days(kind: &LiteralKind) -> Coerced<Option<i64>> {
    Ok(Some(match kind {
        LiteralKind::Date(days) => i64::from(*days),
        LiteralKind::Timestamp(nanos, false) if nanos % i128::from(DAY) == 0 => {
            i64::try_from(nanos / i128::from(DAY)).map_err(|_| CoercionError::Value)?
        }
        LiteralKind::Timestamp(..) => return Err(CoercionError::Value),
        LiteralKind::Text(text) => datetime::parse_date(text).ok_or(CoercionError::Kind)?,
        _ => return Ok(None),
    }))
}

fn coerce_timestamp(kind: &LiteralKind, unit: TimeUnit, column_in_utc: bool) -> Coerced {
    let (nanos, in_utc) = match kind {
        LiteralKind::Timestamp(nanos, in_utc) => (*nanos, *in_utc),
        LiteralKind::Date(days) => (i128::from(*days) * i128::from(DAY), false),
        LiteralKind::Text(text) => datetime::parse_timestamp(text).ok_or(CoercionError::Kind)?,
        _ => return coerce_int(kind, i64::MIN, i64::MAX),
    };
    if in_utc && !column_in_utc {
        return Err(CoercionError::Kind);
    }
    in_unit(nanos, unit)
}

/// The bytes of a string or byte string.
fn coerce_bytes(kind: &LiteralKind, data_type: &DataType) -> Coerced<Vec<u8>> {
    use DataType as D;
    let bytes = match kind {
        LiteralKind::Text(text) => text.as_bytes(),
        LiteralKind::Bytes(bytes) => bytes.as_slice(),
        _ => &[],
    };
    let is_bytes = matches!(kind, LiteralKind::Text(_) | LiteralKind::Bytes(_));
    match (data_type, kind) {
        (D::Utf8 | D::LargeUtf8 | D::Utf8View, _) if is_bytes => {
            std::str::from_utf8(bytes).map_err(|_| CoercionError::Value)?;
            Ok(bytes.to_vec())
        }
        (D::Binary | D::LargeBinary | D::BinaryView, _) if is_bytes => Ok(bytes.to_vec()),
        (D::FixedSizeBinary(16), LiteralKind::Text(text)) if text.len() == 36 => {
            uuid(text).ok_or(CoercionError::Value)
        }
        (D::FixedSizeBinary(length), _) if is_bytes => {
            let fits = usize::try_from(*length) == Ok(bytes.len());
            fits.then(|| bytes.to_vec()).ok_or(CoercionError::Value)
        }
        (
            D::Utf8
            | D::LargeUtf8
            | D::Utf8View
            | D::Binary
            | D::LargeBinary
            | D::BinaryView
            | D::FixedSizeBinary(_),
            _,
        ) => Err(CoercionError::Kind),
        _ => Err(CoercionError::Incomparable),
    }
}

/// The nearest float.
fn coerce_float(kind: &LiteralKind, data_type: &DataType) -> Coerced<f64> {
    let text = match kind {
        LiteralKind::Int(value) => value.to_string(),
        LiteralKind::Decimal(unscaled, scale) => format!("{unscaled}e-{scale}"),
        LiteralKind::Float(value) if value.is_finite() => format!("{value:e}"),
        LiteralKind::Float(value) => return Ok(*value),
        _ => return Err(CoercionError::Kind),
    };
    // Rounded once, from the decimal.
    let nearest = match data_type {
        DataType::Float32 => text.parse::<f32>().map(f64::from),
        DataType::Float16 => nearest_half(&text),
        _ => text.parse::<f64>(),
    };
    nearest.ok().filter(|value| value.is_finite()).ok_or(CoercionError::Value)
}

/// The float of 16 bits that is nearest to a number: by way of 32 bits rounded to odd, which keeps
/// the number on its side of the middle between two floats of 16 bits.
fn nearest_half(text: &str) -> Result<f64, std::num::ParseFloatError> {
    let (double, single) = (text.parse::<f64>()?, text.parse::<f32>()?);
    let is_exact = f64::from(single) == double;
    let is_away_from_zero = f64::from(single).abs() > double.abs();
    let truncated = single.to_bits() - u32::from(is_away_from_zero);
    let odd = f32::from_bits(truncated | u32::from(!is_exact));
    Ok(half::f16::from_f32(odd).to_f64())
}

/// The unscaled number of a decimal type.
fn coerce_decimal(kind: &LiteralKind, to: &DataType, scale: i8) -> Coerced<i256> {
    let (unscaled, from) = match kind {
        LiteralKind::Int(value) => (i256::from_i128(*value), 0),
        LiteralKind::Decimal(unscaled, scale) => (*unscaled, i32::from(*scale)),
        LiteralKind::Float(_) => return Err(CoercionError::Value),
        _ => return Err(CoercionError::Kind),
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
    let max = ten(precision).ok_or(CoercionError::Value)?;
    number.filter(|n| *n < max && *n > max.wrapping_neg()).ok_or(CoercionError::Value)
}

/// Nanoseconds as a count of a unit, if it is whole and fits 64 bits.
fn in_unit(nanos: i128, unit: TimeUnit) -> Coerced {
    let per_unit = i128::from(nanos_of(unit));
    let count = (nanos % per_unit == 0).then_some(nanos / per_unit);
    match count.filter(|count| i64::try_from(*count).is_ok()) {
        Some(count) => Ok(LiteralValue::Int(count)),
        None => Err(CoercionError::Value),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array};

    use super::super::arrays::array_of_one;
    use super::*;
    use crate::lit;

    fn fits(literal: impl Into<Literal>, data_type: &DataType) -> Option<LiteralValue> {
        literal.into().coerce(data_type).ok().flatten()
    }

    #[test]
    fn the_digits_of_a_decimal_are_bounded() {
        let wide = |value| Some(LiteralValue::Wide(i256::from_i128(value)));
        let to = DataType::Decimal128(3, 1);
        for (text, expected) in
            [("99.9", wide(999)), ("-99.9", wide(-999)), ("100", None), ("-100", None)]
        {
            assert_eq!(fits(Literal::number(text).unwrap(), &to), expected, "{text}");
        }
    }

    #[test]
    fn a_uuid_is_16_bytes() {
        let to = DataType::FixedSizeBinary(16);
        let bytes: Vec<u8> = (0x10..0x20).collect();
        let text = "10111213-1415-1617-1819-1a1b1c1d1e1F";
        assert_eq!(fits(text, &to), Some(LiteralValue::Bytes(bytes)));
        assert_eq!(fits("101112131415-1617-1819-1a1b1c1d1e1F-", &to), None);
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
        // The middle of 1 and the next float of 16 bits, and numbers beside it that round to it.
        let half = |text: &str| fits(Literal::number(text).unwrap(), &DataType::Float16);
        for (text, nearest) in [
            ("1.00048828125", 1.0),
            ("1.000488281250001", 1.0009765625),
            ("1.00048828133", 1.0009765625),
            ("1.000488281249999", 1.0),
            ("-1.000488281250001", -1.0009765625),
            ("1.001464843749999", 1.0009765625),
            ("1.00146484374", 1.0009765625),
            ("0.1", 0.0999755859375),
            ("0", 0.0),
            ("65519.999999999", 65504.0),
            ("1e-30", 0.0),
            ("1e-60", 0.0),
        ] {
            assert_eq!(half(text), Some(LiteralValue::Float(nearest)), "{text}");
        }
        assert_eq!(half("65520"), None);
        assert_eq!(fits(0.1, &DataType::Float64), Some(LiteralValue::Float(0.1)));
        assert_eq!(fits(0.1f32, &DataType::Float32), Some(LiteralValue::Float(f64::from(0.1f32))));
        assert_eq!(fits(0.1, &DataType::Float32), Some(LiteralValue::Float(f64::from(0.1f32))));
        for value in [f64::MAX, f64::MIN_POSITIVE, 5e-324, -1.0 / 3.0, 1e22] {
            assert_eq!(fits(value, &DataType::Float64), Some(LiteralValue::Float(value)));
        }
    }

    #[test]
    fn literals_fit_or_do_not() {
        use DataType as D;
        let misfits: &[(Literal, D, CoercionError)] = &[
            (lit(128), D::Int8, CoercionError::Value),
            (lit(-1), D::UInt64, CoercionError::Value),
            (lit(0.5), D::Int32, CoercionError::Value),
            (lit("x"), D::Int32, CoercionError::Kind),
            (lit(1e39), D::Float32, CoercionError::Value),
            (lit(0.001), D::Decimal128(5, 2), CoercionError::Value),
            (lit(1000), D::Decimal128(5, 2), CoercionError::Value),
            (lit(1), D::Utf8, CoercionError::Kind),
            (lit(true), D::Int8, CoercionError::Kind),
            (lit(&[0xFFu8]), D::Utf8, CoercionError::Value),
            (lit(&[0u8; 3]), D::FixedSizeBinary(4), CoercionError::Value),
            (Literal::timestamp_utc(0), D::Timestamp(TimeUnit::Second, None), CoercionError::Kind),
            (
                Literal::timestamp_local(1),
                D::Timestamp(TimeUnit::Microsecond, None),
                CoercionError::Value,
            ),
            (lit("today"), D::Date32, CoercionError::Kind),
            (lit(1), D::Interval(arrow_schema::IntervalUnit::DayTime), CoercionError::Incomparable),
        ];
        for (literal, data_type, not_coercible) in misfits {
            assert_eq!(literal.coerce(data_type), Err(*not_coercible), "{literal} as {data_type}");
        }
        assert_eq!(fits(127, &D::Int8), Some(LiteralValue::Int(127)));
        assert_eq!(
            fits(999.99, &D::Decimal128(5, 2)),
            Some(LiteralValue::Wide(i256::from_i128(99_999)))
        );
        assert_eq!(fits("2024-03-01", &D::Date32), Some(LiteralValue::Int(19_783)));
        assert_eq!(
            fits(Literal::date(1), &D::Timestamp(TimeUnit::Millisecond, None)),
            Some(LiteralValue::Int(86_400_000))
        );
        let day = 86_400_000_000_000;
        let midnight = |days: i64| Literal::timestamp_local(days * day);
        for days in [-2, 0, 3] {
            assert_eq!(fits(midnight(days), &D::Date32), Some(LiteralValue::Int(days.into())));
        }
        for nanos in [1, day - 1, 1 - day] {
            assert_eq!(fits(Literal::timestamp_local(nanos), &D::Date32), None, "{nanos}");
        }
        assert_eq!(lit(None::<i32>).coerce(&D::Int8), Ok(None));
    }

    #[test]
    fn scalars_of_arrow_are_what_they_say() {
        let scalar = |array: ArrayRef| Literal::from(&array);
        assert_eq!(scalar(Arc::new(Int32Array::from(vec![7]))), lit(7));
        assert_eq!(Literal::from(Int32Array::new_scalar(7)), lit(7));
        assert_eq!(scalar(Arc::new(Int32Array::from(vec![None]))), Literal::NULL);
        for (value, data_type) in [
            (LiteralValue::Int(5), DataType::Date64),
            (LiteralValue::Int(5), DataType::Time32(TimeUnit::Second)),
            (LiteralValue::Int(5), DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))),
            (LiteralValue::Wide(i256::from_i128(5)), DataType::Decimal64(5, 2)),
            (LiteralValue::Wide(i256::from_i128(5)), DataType::Decimal256(5, 2)),
            (LiteralValue::Float(0.5), DataType::Float16),
            (LiteralValue::Bytes(vec![1, 2]), DataType::FixedSizeBinary(2)),
        ] {
            let array = array_of_one(&value, &data_type).unwrap();
            assert_eq!(array.data_type(), &data_type);
            if data_type != DataType::Date64 {
                assert_eq!(scalar(array).coerce(&data_type), Ok(Some(value)));
            }
        }
    }
}
