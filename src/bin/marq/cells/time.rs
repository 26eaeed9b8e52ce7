//! Dates, times and durations as text where Arrow has none: beyond its calendar, and in time zones
//! that it does not know.

use arrow_array::cast::AsArray;
use arrow_array::{Array, types};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use crate::calendar::civil_from_days;

/// The text of a value, in the form that Arrow gives to others of its type; in UTC where the type
/// has a time zone.
///
/// # Errors
/// If the type is none of dates, times and durations.
pub(super) fn text(array: &dyn Array, i: usize) -> Result<String, ArrowError> {
    macro_rules! value {
        ($type:ty) => {
            i64::from(array.as_primitive::<$type>().value(i))
        };
    }
    macro_rules! of_unit {
        ($unit:expr, $s:ident, $ms:ident, $us:ident, $ns:ident) => {
            match $unit {
                TimeUnit::Second => (value!(types::$s), 0),
                TimeUnit::Millisecond => (value!(types::$ms), 3),
                TimeUnit::Microsecond => (value!(types::$us), 6),
                TimeUnit::Nanosecond => (value!(types::$ns), 9),
            }
        };
    }
    Ok(match array.data_type() {
        DataType::Date32 => date(value!(types::Date32Type)),
        DataType::Date64 => instant(value!(types::Date64Type), 3),
        DataType::Timestamp(unit, zone) => {
            let (value, digits) = of_unit!(
                unit,
                TimestampSecondType,
                TimestampMillisecondType,
                TimestampMicrosecondType,
                TimestampNanosecondType
            );
            let zone = if zone.is_some() { "Z" } else { "" };
            format!("{}{zone}", instant(value, digits))
        }
        DataType::Duration(unit) => {
            let (value, digits) = of_unit!(
                unit,
                DurationSecondType,
                DurationMillisecondType,
                DurationMicrosecondType,
                DurationNanosecondType
            );
            duration(value, digits)
        }
        DataType::Time32(TimeUnit::Second) => time(value!(types::Time32SecondType), 0),
        DataType::Time32(_) => time(value!(types::Time32MillisecondType), 3),
        DataType::Time64(TimeUnit::Microsecond) => time(value!(types::Time64MicrosecondType), 6),
        DataType::Time64(_) => time(value!(types::Time64NanosecondType), 9),
        other => return Err(ArrowError::CastError(format!("{other} is no date and no time"))),
    })
}

/// Whether an instant is so far away that Arrow may panic when it steps into another time zone.
pub(super) fn is_far(array: &dyn Array, i: usize) -> bool {
    // A year within the calendar of chrono, whose ends are 262 142 years away.
    const SECONDS: i64 = 8_200_000_000_000;
    macro_rules! value {
        ($type:ty) => {
            array.as_primitive::<$type>().value(i).unsigned_abs()
        };
    }
    let seconds = match array.data_type() {
        DataType::Timestamp(_, None) => return false,
        DataType::Timestamp(TimeUnit::Second, _) => value!(types::TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            value!(types::TimestampMillisecondType) / 1000
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            value!(types::TimestampMicrosecondType) / 1_000_000
        }
        // 292 years at the most.
        _ => return false,
    };
    seconds > SECONDS.unsigned_abs()
}

/// The day that is so many after 1970-01-01.
fn date(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        // ISO 8601 wants a sign where years have other than four digits.
        _ => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

/// An instant in units of 10^-digits seconds after 1970-01-01.
fn instant(value: i64, digits: u32) -> String {
    let unit = 10i64.pow(digits);
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    format!("{}T{}", date(day), clock(second.unsigned_abs(), fraction.unsigned_abs(), digits))
}

/// A time of day; one before or after the day keeps counting.
fn time(value: i64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    format!("{sign}{}", clock(value / unit, value % unit, digits))
}

fn clock(seconds: u64, fraction: u64, digits: u32) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let nanos = fraction * 10u64.pow(9 - digits);
    let fraction = match nanos {
        0 => String::new(),
        n if n.is_multiple_of(1_000_000) => format!(".{:03}", n / 1_000_000),
        n if n.is_multiple_of(1000) => format!(".{:06}", n / 1000),
        n => format!(".{n:09}"),
    };
    format!("{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

fn duration(value: i64, digits: u32) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let (value, unit) = (value.unsigned_abs(), 10u64.pow(digits));
    let (seconds, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return format!("{sign}PT{seconds}S");
    }
    let fraction = format!("{fraction:0width$}", width = digits as usize);
    format!("{sign}PT{seconds}.{}S", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;
    use arrow_cast::display::array_value_to_string;

    use super::*;

    #[test]
    fn where_arrow_has_a_text_it_is_the_same() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let day = rng.i32(-90_000_000..90_000_000);
            let micros = rng.i64(-8_000_000_000_000_000_000..8_000_000_000_000_000_000);
            let arrays: [ArrayRef; 9] = [
                Arc::new(Date32Array::from(vec![day])),
                Arc::new(Date64Array::from(vec![i64::from(day) * 86_400_000])),
                Arc::new(TimestampSecondArray::from(vec![i64::from(day) * 86_399])),
                Arc::new(TimestampMillisecondArray::from(vec![micros / 1_000_000])),
                Arc::new(TimestampMicrosecondArray::from(vec![micros])),
                Arc::new(TimestampNanosecondArray::from(vec![micros]).with_timezone("UTC")),
                Arc::new(DurationMillisecondArray::from(vec![micros])),
                Arc::new(DurationNanosecondArray::from(vec![micros])),
                Arc::new(Time64MicrosecondArray::from(vec![micros.rem_euclid(86_400_000_000)])),
            ];
            for array in arrays {
                let of_arrow = array_value_to_string(&array, 0).expect("a text");
                assert_eq!(text(&array, 0).expect("a text"), of_arrow, "{}", array.data_type());
            }
        }
    }

    #[test]
    fn extremes_have_a_text() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(date(days), text);
        }
        assert_eq!(instant(i64::MAX, 6), "+294247-01-10T04:00:54.775807");
        assert_eq!(instant(i64::MIN, 0), "-292277022657-01-27T08:29:52");
        assert_eq!(duration(i64::MIN, 0), "-PT9223372036854775808S");
        assert_eq!(duration(i64::MAX, 3), "PT9223372036854775.807S");
        assert_eq!(time(-1, 6), "-00:00:00.000001");
        assert_eq!(time(90_000, 0), "25:00:00");
    }
}
