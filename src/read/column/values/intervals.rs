//! Converts between the 12 bytes of INTERVAL, and the 16 bytes that can hold every Arrow interval.
//!
//! Trap: no Arrow interval type can hold the parts of all others; a value that does not fit is an
//! error.

use super::from_bytes::{FromBytes, wrong_length};
use crate::error::{Error, Result};
use crate::schema::convert::SIGNED_INTERVAL_BYTES;

/// The months, days and milliseconds of an INTERVAL: three unsigned numbers.
fn interval_parts(bytes: &[u8]) -> Result<[u32; 3]> {
    match bytes.as_chunks::<4>() {
        ([months, days, millis], []) => Ok([*months, *days, *millis].map(u32::from_le_bytes)),
        _ => Err(wrong_length("INTERVAL", 12, bytes.len())),
    }
}

#[cold]
fn interval_does_not_fit(parts: [u32; 3], unit: &str) -> Error {
    let [months, days, millis] = parts;
    Error::unsupported(
        "interval out of range",
        format_args!(
            "{months} months, {days} days, {millis} ms do not fit an Arrow interval of {unit}"
        ),
    )
}

/// Months, days and nanoseconds in one: the layout of Arrow's struct, little end first.
pub(super) struct MonthDayNano;

impl FromBytes for MonthDayNano {
    type Out = i128;
    fn convert(&self, bytes: &[u8]) -> Result<i128> {
        let parts @ [months, days, millis] = interval_parts(bytes)?;
        if months > i32::MAX.cast_unsigned() || days > i32::MAX.cast_unsigned() {
            return Err(interval_does_not_fit(parts, "months, days and nanoseconds"));
        }
        let nanos = i128::from(millis) * 1_000_000;
        Ok(nanos << 64 | i128::from(days) << 32 | i128::from(months))
    }
}

/// Days and milliseconds; there must be no months.
pub(super) struct DayTime;

impl FromBytes for DayTime {
    type Out = i64;
    fn convert(&self, bytes: &[u8]) -> Result<i64> {
        let parts @ [months, days, millis] = interval_parts(bytes)?;
        let limit = i32::MAX.cast_unsigned();
        if months != 0 || days > limit || millis > limit {
            return Err(interval_does_not_fit(parts, "days and milliseconds"));
        }
        Ok(i64::from(millis) << 32 | i64::from(days))
    }
}

/// Months; there must be nothing else.
pub(super) struct YearMonth;

impl FromBytes for YearMonth {
    type Out = i32;
    fn convert(&self, bytes: &[u8]) -> Result<i32> {
        let parts @ [months, days, millis] = interval_parts(bytes)?;
        match i32::try_from(months) {
            Ok(months) if days == 0 && millis == 0 => Ok(months),
            _ => Err(interval_does_not_fit(parts, "months")),
        }
    }
}

/// The months, days and nanoseconds of an interval with signs.
fn signed_interval_parts(bytes: &[u8]) -> Result<(i32, i32, i64)> {
    let all = SignedMonthDayNano.convert(bytes)?.cast_unsigned();
    #[expect(clippy::cast_possible_truncation, reason = "each part in its own bits")]
    let (months, days, nanos) = (all as u32, (all >> 32) as u32, (all >> 64) as u64);
    Ok((months.cast_signed(), days.cast_signed(), nanos.cast_signed()))
}

#[cold]
fn signed_interval_does_not_fit(parts: (i32, i32, i64), unit: &str) -> Error {
    let (months, days, nanos) = parts;
    Error::unsupported(
        "interval out of range",
        format_args!(
            "{months} months, {days} days, {nanos} ns do not fit an Arrow interval of {unit}"
        ),
    )
}

/// Like [`MonthDayNano`], with signs: the bytes as they are.
pub(super) struct SignedMonthDayNano;

impl FromBytes for SignedMonthDayNano {
    type Out = i128;
    fn convert(&self, bytes: &[u8]) -> Result<i128> {
        <[u8; SIGNED_INTERVAL_BYTES]>::try_from(bytes)
            .map(i128::from_le_bytes)
            .map_err(|_| wrong_length("an interval with signs", SIGNED_INTERVAL_BYTES, bytes.len()))
    }
}

/// Like [`DayTime`], with signs; nanoseconds must be whole milliseconds.
pub(super) struct SignedDayTime;

impl FromBytes for SignedDayTime {
    type Out = i64;
    fn convert(&self, bytes: &[u8]) -> Result<i64> {
        let parts @ (months, days, nanos) = signed_interval_parts(bytes)?;
        match i32::try_from(nanos / 1_000_000) {
            Ok(millis) if months == 0 && nanos % 1_000_000 == 0 => {
                Ok(i64::from(millis) << 32 | i64::from(days.cast_unsigned()))
            }
            _ => Err(signed_interval_does_not_fit(parts, "days and milliseconds")),
        }
    }
}

/// Like [`YearMonth`], with signs.
pub(super) struct SignedYearMonth;

impl FromBytes for SignedYearMonth {
    type Out = i32;
    fn convert(&self, bytes: &[u8]) -> Result<i32> {
        match signed_interval_parts(bytes)? {
            (months, 0, 0) => Ok(months),
            parts => Err(signed_interval_does_not_fit(parts, "months")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_keeps_months_days_and_milliseconds() {
        let bytes = [1u32, 2, 3].iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<_>>();
        let value = MonthDayNano.convert(&bytes).unwrap();
        assert_eq!(value.to_le_bytes()[..4], 1i32.to_le_bytes());
        assert_eq!(value.to_le_bytes()[4..8], 2i32.to_le_bytes());
        assert_eq!(value.to_le_bytes()[8..], 3_000_000i64.to_le_bytes());
        assert!(DayTime.convert(&bytes).is_err(), "months would be lost");
    }

    #[test]
    fn signs_are_kept_and_what_does_not_fit_is_an_error() {
        let bytes = |months: i32, days: i32, nanos: i64| {
            let parts = [months.to_le_bytes(), days.to_le_bytes()].concat();
            [&parts[..], &nanos.to_le_bytes()].concat()
        };
        let value = SignedMonthDayNano.convert(&bytes(-1, 2, -3)).unwrap();
        assert_eq!(value.to_le_bytes()[..], bytes(-1, 2, -3)[..]);
        let value = SignedDayTime.convert(&bytes(0, -1, -2_000_000)).unwrap();
        assert_eq!(value, -2i64 << 32 | 0xFFFF_FFFF);
        assert_eq!(SignedYearMonth.convert(&bytes(i32::MIN, 0, 0)).unwrap(), i32::MIN);
        for (months, days, nanos) in [(1, 0, 0), (0, 0, 1), (0, 0, i64::MIN)] {
            assert!(SignedDayTime.convert(&bytes(months, days, nanos)).is_err());
        }
        for (months, days, nanos) in [(1, -1, 0), (0, 0, -1)] {
            assert!(SignedYearMonth.convert(&bytes(months, days, nanos)).is_err());
        }
        assert!(SignedMonthDayNano.convert(&[0; 12]).is_err());
    }
}
