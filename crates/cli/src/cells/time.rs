//! Formats dates, times and durations in ISO 8601, in the form of Arrow, also beyond its calendar
//! and in time zones that it does not know.

use arrow_array::cast::AsArray;
use arrow_array::{Array, types};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::numbers::integer;
use marquetry::engine::TimeText;

/// Appends a value that is not null.
pub(super) type Append<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Appends the values of dates, times and durations; in UTC where the type has a time zone.
///
/// # Errors
/// If the type is none of dates, times and durations.
pub(super) fn writer(array: &dyn Array) -> Result<Append<'_>, ArrowError> {
    // `write` is given a value, and the digits after the point of the second.
    macro_rules! values {
        ($type:ident, $digits:literal, $write:expr) => {{
            let (values, write) = (array.as_primitive::<types::$type>().values(), $write);
            Box::new(move |i, out: &mut Vec<u8>| write(i64::from(values[i]), $digits, out))
        }};
    }
    macro_rules! of_unit {
        ($unit:expr, $write:expr, $s:ident, $ms:ident, $us:ident, $ns:ident) => {
            match $unit {
                TimeUnit::Second => values!($s, 0, $write),
                TimeUnit::Millisecond => values!($ms, 3, $write),
                TimeUnit::Microsecond => values!($us, 6, $write),
                TimeUnit::Nanosecond => values!($ns, 9, $write),
            }
        };
    }
    Ok(match array.data_type() {
        DataType::Date32 => values!(Date32Type, 0, |value, _, out: &mut _| date(value, out)),
        DataType::Date64 => values!(Date64Type, 3, instant),
        DataType::Timestamp(unit, zone) => {
            let zone: &'static [u8] = if zone.is_some() { b"Z" } else { b"" };
            let write = move |value, digits, out: &mut Vec<u8>| {
                instant(value, digits, out);
                out.extend_from_slice(zone);
            };
            of_unit!(
                unit,
                write,
                TimestampSecondType,
                TimestampMillisecondType,
                TimestampMicrosecondType,
                TimestampNanosecondType
            )
        }
        DataType::Duration(unit) => of_unit!(
            unit,
            duration,
            DurationSecondType,
            DurationMillisecondType,
            DurationMicrosecondType,
            DurationNanosecondType
        ),
        DataType::Time32(TimeUnit::Second) => values!(Time32SecondType, 0, time),
        DataType::Time32(_) => values!(Time32MillisecondType, 3, time),
        DataType::Time64(TimeUnit::Microsecond) => values!(Time64MicrosecondType, 6, time),
        DataType::Time64(_) => values!(Time64NanosecondType, 9, time),
        other => return Err(ArrowError::CastError(format!("{other} is no date and no time"))),
    })
}

/// Whether values are shown in another zone than UTC, which Arrow does.
pub(super) fn is_in_zone(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(zone)) if !matches!(&**zone, "UTC" | "+00:00"))
}

/// Whether an instant is so far away that Arrow may panic when it steps into another time zone.
pub(super) fn is_far(array: &dyn Array, i: usize) -> bool {
    // A year within the calendar of chrono, whose ends are 262 142 years away.
    const SECONDS: u64 = 8_200_000_000_000;
    seconds(array, i).unsigned_abs() > SECONDS
}

/// Whether the local time in this text differs from UTC by whole minutes: the text of an offset has
/// no seconds, which those before 1972 may have.
pub(super) fn has_whole_minutes(array: &dyn Array, i: usize, text: &str) -> bool {
    let (_, time) = text.split_once('T').unwrap_or_default();
    let of_text = time.get("00:00:".len().."00:00:00".len()).and_then(|text| text.parse().ok());
    of_text == Some(seconds(array, i).rem_euclid(60))
}

/// The whole seconds of a timestamp.
fn seconds(array: &dyn Array, i: usize) -> i64 {
    macro_rules! seconds {
        ($type:ident, $units:literal) => {
            array.as_primitive::<types::$type>().value(i).div_euclid($units)
        };
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => seconds!(TimestampSecondType, 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => seconds!(TimestampMillisecondType, 1000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            seconds!(TimestampMicrosecondType, 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            seconds!(TimestampNanosecondType, 1_000_000_000)
        }
        _ => 0,
    }
}

/// Appends a day, counted from 1970-01-01.
fn date(days: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(TimeText::date(days).as_bytes());
}

/// Appends an instant in units of 10^-digits seconds after 1970-01-01.
fn instant(value: i64, digits: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(TimeText::timestamp(value, digits, b'T').as_bytes());
}

/// Appends a time of day; one before or after the day keeps counting.
fn time(value: i64, digits: u32, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(TimeText::time(value.unsigned_abs(), digits).as_bytes());
}

fn duration(value: i64, digits: u32, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let (value, unit) = (value.unsigned_abs(), 10u64.pow(digits));
    let (seconds, fraction) = (value / unit, value % unit);
    out.extend_from_slice(b"PT");
    integer(seconds, out);
    if fraction != 0 {
        out.push(b'.');
        padded(fraction, digits, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'S');
}

/// Appends a number with this number of digits.
fn padded(number: u64, digits: u32, out: &mut Vec<u8>) {
    let mut rest = number;
    let end = out.len() + digits as usize;
    out.resize(end, b'0');
    for digit in out.iter_mut().rev().take(digits as usize) {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;
    use arrow_cast::display::array_value_to_string;

    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

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
                let write = writer(&array).expect("a text");
                assert_eq!(text(|out| write(0, out)), of_arrow, "{}", array.data_type());
            }
        }
    }

    #[test]
    fn extremes_have_a_text() {
        assert_eq!(text(|out| duration(i64::MIN, 0, out)), "-PT9223372036854775808S");
        assert_eq!(text(|out| duration(i64::MAX, 3, out)), "PT9223372036854775.807S");
        assert_eq!(text(|out| time(-1, 6, out)), "-00:00:00.000001");
        assert_eq!(text(|out| time(90_000, 0, out)), "25:00:00");
    }
}
