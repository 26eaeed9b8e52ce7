//! Converts numbers and timestamps of VARIANT values to those of a column, exactly or to the
//! nearest.

use std::str::FromStr;

use super::value::Variant;

/// A whole number that the type can hold.
pub(super) fn integer<T: TryFrom<i128>>(value: &Variant<'_>) -> Option<T> {
    let digits = match value {
        Variant::Double(v) => whole(*v)?,
        Variant::Float(v) => whole(f64::from(*v))?,
        value => {
            let (digits, scale) = value.exact_number()?;
            rescale(digits, scale, 38, 0)?
        }
    };
    T::try_from(digits).ok()
}

/// A float that is a whole number.
fn whole(v: f64) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "of whole numbers below 2^63")]
    let found = (v.fract() == 0.0 && v.abs() < 9.3e18).then_some(v as i128);
    found
}

/// A number as a float of 64 bits: the nearest.
pub(super) fn double(value: &Variant<'_>) -> Option<f64> {
    match *value {
        Variant::Double(v) => Some(v),
        Variant::Float(v) => Some(v.into()),
        #[expect(clippy::cast_precision_loss, reason = "the nearest is meant")]
        _ => exact_as(value, |digits| digits as f64),
    }
}

/// A number as a float of 32 bits: the nearest. Rounded once: the nearest of the nearest of 64 bits
/// may be another.
pub(super) fn float(value: &Variant<'_>) -> Option<f32> {
    match *value {
        Variant::Float(v) => Some(v),
        #[expect(clippy::cast_possible_truncation, reason = "the nearest is meant")]
        Variant::Double(v) => Some(v as f32),
        #[expect(clippy::cast_precision_loss, reason = "the nearest is meant")]
        _ => exact_as(value, |digits| digits as f32),
    }
}

/// An integer or decimal as a float.
fn exact_as<T: FromStr>(value: &Variant<'_>, whole: impl FnOnce(i128) -> T) -> Option<T> {
    match value.exact_number()? {
        (digits, 0) => Some(whole(digits)),
        // The parser rounds correctly where a division of rounded parts would not.
        (digits, scale) => format!("{digits}e-{scale}").parse().ok(),
    }
}

/// The digits of a decimal at another scale, if they are as many as the precision allows, and
/// nothing is lost.
pub(super) fn rescale(digits: i128, from: u8, precision: u8, to: u8) -> Option<i128> {
    let digits = if from <= to {
        digits.checked_mul(10i128.checked_pow(u32::from(to - from))?)?
    } else {
        let factor = 10i128.checked_pow(u32::from(from - to))?;
        (digits % factor == 0).then_some(digits / factor)?
    };
    // 10^38 fits, and precisions are at most 38.
    (digits.unsigned_abs() < 10u128.pow(u32::from(precision))).then_some(digits)
}

/// Microseconds, if the value is a timestamp of the same kind that has them exactly.
pub(super) fn micros(value: &Variant<'_>, is_utc: bool) -> Option<i64> {
    let nanos = match *value {
        Variant::TimestampMicros(v) if is_utc => return Some(v),
        Variant::TimestampNtzMicros(v) if !is_utc => return Some(v),
        Variant::TimestampNanos(v) if is_utc => v,
        Variant::TimestampNtzNanos(v) if !is_utc => v,
        _ => return None,
    };
    (nanos % 1_000 == 0).then_some(nanos / 1_000)
}

/// The same for nanoseconds.
pub(super) fn nanos(value: &Variant<'_>, is_utc: bool) -> Option<i64> {
    match *value {
        Variant::TimestampNanos(v) if is_utc => Some(v),
        Variant::TimestampNtzNanos(v) if !is_utc => Some(v),
        Variant::TimestampMicros(v) if is_utc => v.checked_mul(1_000),
        Variant::TimestampNtzMicros(v) if !is_utc => v.checked_mul(1_000),
        _ => None,
    }
}
