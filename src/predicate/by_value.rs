//! Compares by value: finds where a [`Literal`] lies among the values of a column's type, even if
//! that type cannot represent it.

use arrow_buffer::i256;
use arrow_schema::DataType;

use super::coerce::CoercionError;
use super::column::Op;
use super::datetime::{self, DAY, nanos_of};
use super::literal::{Literal, LiteralKind};
use super::value::{LiteralValue, precision_of};

/// Where a literal lies among the values of a type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LiteralPlace {
    /// It is this value.
    At(LiteralValue),
    /// It is greater than this value, and less than the next.
    After(LiteralValue),
    BeforeAll,
    AfterAll,
}

type Placed<T = LiteralPlace> = std::result::Result<T, CoercionError>;

impl Literal {
    /// Where the literal lies among the values of `data_type`; `Ok(None)` for null.
    pub(super) fn place(&self, data_type: &DataType) -> Placed<Option<LiteralPlace>> {
        let is_number = matches!(
            self.kind,
            LiteralKind::Int(_) | LiteralKind::Decimal(..) | LiteralKind::Float(_)
        );
        if !self.by_value || matches!(self.kind, LiteralKind::Null | LiteralKind::Other(_)) {
            return Ok(self.coerce(data_type)?.map(LiteralPlace::At));
        }
        match (&self.kind, data_type) {
            (LiteralKind::Text(text), _) => match read_as(text.trim(), data_type)? {
                Some(read) => return Ok(read.coerce(data_type)?.map(LiteralPlace::At)),
                None => place_text(text, data_type),
            },
            (_, D::Date32 | D::Date64 | D::Time32(_) | D::Time64(_) | D::Timestamp(..))
                if is_number =>
            {
                Err(CoercionError::Time)
            }
            (_, D::Float16 | D::Float32 | D::Float64) if is_number => self.place_float(data_type),
            (kind, _) if is_number => place_number(kind, data_type),
            (LiteralKind::Timestamp(nanos, in_utc), _) => {
                place_timestamp(*nanos, *in_utc, data_type)
            }
            (LiteralKind::Date(days), D::Timestamp(..)) => {
                place_timestamp(i128::from(*days) * i128::from(DAY), false, data_type)
            }
            (LiteralKind::Time(nanos), D::Time32(unit) | D::Time64(unit)) => {
                Ok(floor(i128::from(*nanos), nanos_of(*unit).into(), whole_range(data_type)))
            }
            _ => Ok(self.coerce(data_type)?.map_or(LiteralPlace::AfterAll, LiteralPlace::At)),
        }
        .map(Some)
    }

    /// The nearest float; a number beyond all floats lies between them and infinity.
    fn place_float(&self, data_type: &DataType) -> Placed {
        match (self.coerce(data_type), &self.kind) {
            (Err(CoercionError::Value), LiteralKind::Float(value)) => Ok(beyond(*value, data_type)),
            (Err(CoercionError::Value), LiteralKind::Int(value)) => {
                Ok(beyond(if *value < 0 { -1.0 } else { 1.0 }, data_type))
            }
            (Err(CoercionError::Value), LiteralKind::Decimal(value, _)) => {
                Ok(beyond(if value.is_negative() { -1.0 } else { 1.0 }, data_type))
            }
            (found, _) => Ok(found?.map_or(LiteralPlace::AfterAll, LiteralPlace::At)),
        }
    }
}

use DataType as D;

/// After the greatest number, or after negative infinity.
fn beyond(value: f64, data_type: &DataType) -> LiteralPlace {
    let greatest = match data_type {
        D::Float16 => half::f16::MAX.to_f64(),
        D::Float32 => f32::MAX.into(),
        _ => f64::MAX,
    };
    LiteralPlace::After(LiteralValue::Float(if value < 0.0 { f64::NEG_INFINITY } else { greatest }))
}

/// The number or the boolean that a text is, where the column has such; `None` for other columns.
fn read_as(text: &str, data_type: &DataType) -> Placed<Option<Literal>> {
    let read = match data_type {
        D::Boolean if text.eq_ignore_ascii_case("true") => Some(true.into()),
        D::Boolean if text.eq_ignore_ascii_case("false") => Some(false.into()),
        D::Boolean => None,
        D::Float16 | D::Float32 | D::Float64 => number(text).or_else(|| {
            text.parse::<f64>().ok().map(|value| Literal::new(LiteralKind::Float(value)))
        }),
        other if other.is_integer() || other.is_decimal() => number(text),
        _ => return Ok(None),
    };
    read.map(Some).ok_or(CoercionError::Text)
}

/// The number that all of a text is.
pub(super) fn number(text: &str) -> Option<Literal> {
    let (length, number) = super::tokens::number(text)?;
    (length == text.len()).then(|| Literal::number(number)).flatten()
}

/// A text that is compared with strings, byte strings or points in time.
fn place_text(text: &str, data_type: &DataType) -> Placed {
    match data_type {
        D::Timestamp(..) => {
            let (nanos, in_utc) =
                datetime::parse_timestamp(text.trim()).ok_or(CoercionError::Text)?;
            place_timestamp(nanos, in_utc, data_type)
        }
        D::Time32(unit) | D::Time64(unit) => {
            let nanos = datetime::parse_time(text.trim()).ok_or(CoercionError::Text)?;
            Ok(floor(nanos.into(), nanos_of(*unit).into(), whole_range(data_type)))
        }
        D::Date32 | D::Date64 => {
            let found = Literal::from(text.trim()).coerce(data_type);
            let found = found.map_err(|_| CoercionError::Text)?;
            Ok(found.map_or(LiteralPlace::AfterAll, LiteralPlace::At))
        }
        _ => Ok(Literal::from(text)
            .coerce(data_type)?
            .map_or(LiteralPlace::AfterAll, LiteralPlace::At)),
    }
}

/// A number among integers, durations or decimals.
fn place_number(kind: &LiteralKind, data_type: &DataType) -> Placed {
    let (unscaled, scale) = match kind {
        LiteralKind::Int(value) => (i256::from_i128(*value), 0),
        LiteralKind::Decimal(unscaled, scale) => (*unscaled, i32::from(*scale)),
        // With more digits than a decimal literal has, or not finite.
        LiteralKind::Float(value) => match shortest_decimal(*value) {
            Some(found) => found,
            None => return Ok(past(*value < 0.0)),
        },
        _ => return Err(CoercionError::Kind),
    };
    match data_type {
        D::Decimal32(_, to) | D::Decimal64(_, to) | D::Decimal128(_, to) | D::Decimal256(_, to) => {
            let precision = precision_of(data_type).map_or(0, u32::from);
            let max = ten(precision).ok_or(CoercionError::Value)?.wrapping_sub(i256::ONE);
            let range = (max.wrapping_neg(), max);
            Ok(match scaled(unscaled, scale, i32::from(*to)) {
                Some((floor, is_exact)) => within(floor, is_exact, range, LiteralValue::Wide),
                None => past(unscaled.is_negative()),
            })
        }
        D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::Duration(_) => {
            Ok(place_int(unscaled, scale, whole_range(data_type)))
        }
        D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => {
            Ok(place_int(unscaled, scale, whole_range(data_type)))
        }
        _ => Err(CoercionError::Kind),
    }
}

fn place_int(unscaled: i256, scale: i32, (min, max): (i128, i128)) -> LiteralPlace {
    let range = (i256::from_i128(min), i256::from_i128(max));
    // The range holds no more than 128 bits do.
    let value = |value: i256| LiteralValue::Int(value.to_i128().unwrap_or(max));
    match scaled(unscaled, scale, 0) {
        Some((floor, is_exact)) => within(floor, is_exact, range, value),
        None => past(unscaled.is_negative()),
    }
}

/// The shortest decimal that is nearest to a float, as an unscaled number and its scale; `None` if
/// the float is not finite.
fn shortest_decimal(value: f64) -> Option<(i256, i32)> {
    let text = Some(value).filter(|value| value.is_finite()).map(|value| format!("{value:e}"))?;
    let (mantissa, exponent) = text.split_once('e')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unscaled = format!("{whole}{fraction}").parse::<i256>().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
    Some((unscaled, scale))
}

fn place_timestamp(nanos: i128, in_utc: bool, data_type: &DataType) -> Placed {
    match data_type {
        D::Timestamp(unit, zone) => {
            if in_utc && zone.as_ref().is_none_or(|zone| zone.is_empty()) {
                return Err(CoercionError::Kind);
            }
            Ok(floor(nanos, nanos_of(*unit).into(), whole_range(data_type)))
        }
        D::Date32 if !in_utc => Ok(floor(nanos, DAY.into(), whole_range(data_type))),
        D::Date64 if !in_utc => {
            let per_day = 86_400_000;
            Ok(match floor(nanos, DAY.into(), whole_range(data_type)) {
                LiteralPlace::At(LiteralValue::Int(days)) => {
                    LiteralPlace::At(LiteralValue::Int(days * per_day))
                }
                // A value within a day, which no date is, may be in the file.
                LiteralPlace::After(LiteralValue::Int(_)) => {
                    floor(nanos, 1_000_000, whole_range(data_type))
                }
                other => other,
            })
        }
        _ => Err(CoercionError::Kind),
    }
}

/// How many whole units a number of nanoseconds is.
fn floor(nanos: i128, per_unit: i128, (min, max): (i128, i128)) -> LiteralPlace {
    let count = nanos.div_euclid(per_unit);
    let is_exact = nanos.rem_euclid(per_unit) == 0;
    let range = (i256::from_i128(min), i256::from_i128(max));
    let value = |value: i256| LiteralValue::Int(value.to_i128().unwrap_or(max));
    within(i256::from_i128(count), is_exact, range, value)
}

/// Where a number whose floor this is lies in a range.
fn within(
    floor: i256,
    is_exact: bool,
    (min, max): (i256, i256),
    value: impl Fn(i256) -> LiteralValue,
) -> LiteralPlace {
    match () {
        () if floor < min => LiteralPlace::BeforeAll,
        () if floor > max => LiteralPlace::AfterAll,
        () if is_exact => LiteralPlace::At(value(floor)),
        () => LiteralPlace::After(value(floor)),
    }
}

fn past(is_negative: bool) -> LiteralPlace {
    if is_negative { LiteralPlace::BeforeAll } else { LiteralPlace::AfterAll }
}

/// The number `unscaled × 10^-from` as a multiple of `10^-to`, rounded down, and whether it is one;
/// `None` if that takes more than 256 bits.
fn scaled(unscaled: i256, from: i32, to: i32) -> Option<(i256, bool)> {
    let by = to - from;
    if by >= 0 {
        if unscaled == i256::ZERO {
            return Some((unscaled, true));
        }
        return Some((unscaled.checked_mul(ten(by.unsigned_abs())?)?, true));
    }
    let Some(factor) = ten(by.unsigned_abs()) else {
        let floor = if unscaled.is_negative() { i256::MINUS_ONE } else { i256::ZERO };
        return Some((floor, unscaled == i256::ZERO));
    };
    let (quotient, rest) = (unscaled.checked_div(factor)?, unscaled.checked_rem(factor)?);
    let floor = if rest.is_negative() { quotient.checked_sub(i256::ONE)? } else { quotient };
    Some((floor, rest == i256::ZERO))
}

fn ten(exponent: u32) -> Option<i256> {
    i256::from_i128(10).checked_pow(exponent)
}

/// The least and the greatest value of a type that is counted.
fn whole_range(data_type: &DataType) -> (i128, i128) {
    match data_type {
        D::Int8 => (i8::MIN.into(), i8::MAX.into()),
        D::Int16 => (i16::MIN.into(), i16::MAX.into()),
        D::Int32 | D::Date32 | D::Time32(_) => (i32::MIN.into(), i32::MAX.into()),
        D::UInt8 => (0, u8::MAX.into()),
        D::UInt16 => (0, u16::MAX.into()),
        D::UInt32 => (0, u32::MAX.into()),
        D::UInt64 => (0, u64::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// The question that a comparison with a literal asks of the values.
pub(super) enum Asked {
    Compare(Op, LiteralValue),
    /// The same of every value.
    Constant(bool),
}

impl LiteralPlace {
    /// Turns a comparison of the values with the literal into a question.
    pub(super) fn asked(self, op: Op) -> Asked {
        let is_less = matches!(op, Op::Lt | Op::LtEq);
        let is_greater = matches!(op, Op::Gt | Op::GtEq);
        match self {
            Self::At(value) => Asked::Compare(op, value),
            Self::After(value) if is_less => Asked::Compare(Op::LtEq, value),
            Self::After(value) if is_greater => Asked::Compare(Op::Gt, value),
            Self::After(_) => Asked::Constant(op == Op::NotEq),
            Self::BeforeAll => Asked::Constant(is_greater || op == Op::NotEq),
            Self::AfterAll => Asked::Constant(is_less || op == Op::NotEq),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    fn place(text: &str, data_type: &DataType) -> Placed {
        let number = number(text).unwrap().by_value();
        number.place(data_type).map(Option::unwrap)
    }

    #[test]
    fn numbers_lie_among_the_values_of_a_type() {
        let int = |value| LiteralValue::Int(value);
        let wide = |value| LiteralValue::Wide(i256::from_i128(value));
        let decimal = DataType::Decimal128(9, 2);
        for (text, data_type, expected) in [
            ("127", DataType::Int8, LiteralPlace::At(int(127))),
            ("127.5", DataType::Int8, LiteralPlace::After(int(127))),
            ("300", DataType::Int8, LiteralPlace::AfterAll),
            ("-128.5", DataType::Int8, LiteralPlace::BeforeAll),
            ("-1.5", DataType::Int8, LiteralPlace::After(int(-2))),
            ("-0.5", DataType::UInt8, LiteralPlace::BeforeAll),
            ("1e300", DataType::Int64, LiteralPlace::AfterAll),
            ("-1e300", DataType::Int64, LiteralPlace::BeforeAll),
            ("1e-300", DataType::Int64, LiteralPlace::After(int(0))),
            ("-1e-300", DataType::Int64, LiteralPlace::After(int(-1))),
            ("-1e-300", DataType::UInt64, LiteralPlace::BeforeAll),
            ("1e75", DataType::UInt64, LiteralPlace::AfterAll),
            ("1.23456789e-75", DataType::Int64, LiteralPlace::After(int(0))),
            ("-1.23456789e-75", decimal.clone(), LiteralPlace::After(wide(-1))),
            (&format!("1.{}", "0".repeat(80)), DataType::Int64, LiteralPlace::At(int(1))),
            (&format!("-1.{}1", "0".repeat(80)), DataType::Int64, LiteralPlace::After(int(-2))),
            (&format!("{}.5", "9".repeat(76)), DataType::Decimal256(76, 0), LiteralPlace::AfterAll),
            (&format!("0.{}", "0".repeat(90)), decimal.clone(), LiteralPlace::At(wide(0))),
            (&format!("2.5{}7", "0".repeat(80)), decimal.clone(), LiteralPlace::After(wide(250))),
            (
                &format!("0.5{}7", "0".repeat(80)),
                DataType::Float64,
                LiteralPlace::At(LiteralValue::Float(0.5)),
            ),
            ("10.245", decimal.clone(), LiteralPlace::After(wide(1024))),
            ("-10.245", decimal.clone(), LiteralPlace::After(wide(-1025))),
            ("10.24", decimal.clone(), LiteralPlace::At(wide(1024))),
            ("9999999.99", decimal.clone(), LiteralPlace::At(wide(999_999_999))),
            ("9999999.991", decimal.clone(), LiteralPlace::After(wide(999_999_999))),
            ("1e7", decimal.clone(), LiteralPlace::AfterAll),
            ("-1e7", decimal.clone(), LiteralPlace::BeforeAll),
            ("1e76", decimal, LiteralPlace::AfterAll),
            ("1550", DataType::Decimal128(9, -2), LiteralPlace::After(wide(15))),
            ("1e77", DataType::Decimal128(9, -70), LiteralPlace::At(wide(10_000_000))),
            ("-1e79", DataType::Decimal128(9, -70), LiteralPlace::BeforeAll),
            ("0.1", DataType::Float32, LiteralPlace::At(LiteralValue::Float(f64::from(0.1f32)))),
            ("1e300", DataType::Float32, LiteralPlace::After(LiteralValue::Float(f32::MAX.into()))),
            (
                "-70000",
                DataType::Float16,
                LiteralPlace::After(LiteralValue::Float(f64::NEG_INFINITY)),
            ),
        ] {
            assert_eq!(place(text, &data_type), Ok(expected), "{text} among {data_type}");
        }
        for data_type in [DataType::Date32, DataType::Timestamp(TimeUnit::Second, None)] {
            assert_eq!(place("5", &data_type), Err(CoercionError::Time));
        }
    }

    #[test]
    fn points_in_time_lie_between_those_of_a_coarser_unit() {
        let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
        let place = |nanos, data_type: &DataType| {
            Literal::timestamp_local(nanos).by_value().place(data_type).map(Option::unwrap)
        };
        assert_eq!(place(1_500_000, &millis), Ok(LiteralPlace::After(LiteralValue::Int(1))));
        assert_eq!(place(-1, &millis), Ok(LiteralPlace::After(LiteralValue::Int(-1))));
        assert_eq!(place(2_000_000, &millis), Ok(LiteralPlace::At(LiteralValue::Int(2))));
        assert_eq!(
            place(DAY + 1, &DataType::Date32),
            Ok(LiteralPlace::After(LiteralValue::Int(1)))
        );
        assert_eq!(place(DAY, &DataType::Date32), Ok(LiteralPlace::At(LiteralValue::Int(1))));
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let day = |days, data_type: &DataType| {
            Literal::date(days).by_value().place(data_type).map(Option::unwrap)
        };
        assert_eq!(day(2, &seconds), Ok(LiteralPlace::At(LiteralValue::Int(2 * 86_400))));
        assert_eq!(day(i32::MAX, &nanos), Ok(LiteralPlace::AfterAll));
        assert_eq!(day(i32::MIN, &nanos), Ok(LiteralPlace::BeforeAll));
        assert_eq!(place(2 * DAY, &DataType::Date64), day(2, &DataType::Date64));
        let in_utc = Literal::timestamp_utc(DAY).by_value();
        for data_type in [DataType::Date32, DataType::Date64, seconds] {
            assert_eq!(in_utc.place(&data_type), Err(CoercionError::Kind), "{data_type}");
        }
    }
}
