//! Parses and formats dates and times of day: the proleptic Gregorian calendar, without leap
//! seconds.
//!
//! Used by literals and by the text form. Years have at least four digits, and a sign where they
//! need one.

use std::fmt;

use arrow_schema::TimeUnit;

use crate::calendar::TimeText;

/// Nanoseconds of a second.
pub(super) const SECOND: i64 = 1_000_000_000;
/// Nanoseconds of a day.
pub(super) const DAY: i64 = 86_400 * SECOND;

/// Nanoseconds of a unit.
pub(super) fn nanos_of(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// A date as days since 1970-01-01, shown as `2024-01-31`.
pub(super) struct Date(pub(super) i64);

/// A time of day as nanoseconds since midnight, shown as `12:34:56` with as many thousandths as it
/// needs.
pub(super) struct Time(pub(super) i64);

/// A point in time as nanoseconds since 1970-01-01 00:00, shown as date and time.
pub(super) struct Timestamp(pub(super) i128);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TimeText::date(self.0).fmt(f)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TimeText::time(self.0.unsigned_abs(), 9).fmt(f)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, nanos) =
            (self.0.div_euclid(i128::from(DAY)), self.0.rem_euclid(i128::from(DAY)));
        // 128 bits of nanoseconds are more days than 64 bits hold; literals have fewer.
        let days = i64::try_from(days).unwrap_or(i64::MAX / 2);
        write!(f, "{} {}", Date(days), Time(i64::try_from(nanos).expect("less than a day")))
    }
}

/// Days since 1970-01-01 of a date like `2024-01-31`.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() < 4 || year.len() > 9 {
        return None;
    }
    let year = if negative { -number(year)? } else { number(year)? };
    let (month, day) = (two(month)?, two(day)?);
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Nanoseconds since midnight of a time like `12:34`, `12:34:56` or `12:34:56.789`.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let (hours, minutes) = (two(parts.next()?)?, two(parts.next()?)?);
    let seconds = match parts.next() {
        Some(seconds) => two(seconds)?,
        None if fraction.is_some() => return None,
        None => 0,
    };
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let nanos = match fraction {
        None => 0,
        Some(digits) if (1..=9).contains(&digits.len()) => {
            let missing = u32::try_from(9 - digits.len()).ok()?;
            number(digits)? * 10i64.pow(missing)
        }
        Some(_) => return None,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * SECOND + nanos)
}

/// A point in time like `2024-01-31 12:34:56.789Z`, with `T` or a blank in the middle: nanoseconds
/// since 1970-01-01 00:00, and whether a zone was named (then they are in UTC). A date alone is its
/// midnight.
pub(super) fn parse_timestamp(text: &str) -> Option<(i128, bool)> {
    let split = text.find(['T', 't', ' ']);
    let Some(at) = split else {
        return Some((i128::from(parse_date(text)?) * i128::from(DAY), false));
    };
    let (date, rest) = (text.get(..at)?, text.get(at + 1..)?);
    let (clock, offset) = match rest.find(['Z', 'z', '+', '-']) {
        None => (rest, None),
        Some(at) => (rest.get(..at)?, rest.get(at..)),
    };
    let minutes = match offset {
        None => 0,
        Some("Z" | "z") => 0,
        Some(offset) => {
            let (hours, minutes) = offset.get(1..)?.split_once(':')?;
            let minutes =
                two(hours).filter(|h| *h < 24)? * 60 + two(minutes).filter(|m| *m < 60)?;
            if offset.starts_with('-') { -minutes } else { minutes }
        }
    };
    let days = i128::from(parse_date(date)?) * i128::from(DAY);
    let nanos = i128::from(parse_time(clock)?) - i128::from(minutes * 60 * SECOND);
    Some((days + nanos, offset.is_some()))
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

fn two(digits: &str) -> Option<i64> {
    if digits.len() == 2 { number(digits) } else { None }
}

fn number(digits: &str) -> Option<i64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_there_and_back() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2024-03-01", 19_783),
            ("0000-01-01", -719_528),
            ("-0001-12-31", -719_529),
        ] {
            assert_eq!(parse_date(text), Some(days), "{text}");
            assert_eq!(Date(days).to_string(), text);
        }
        for days in (-3_000_000..3_000_000).step_by(89) {
            assert_eq!(parse_date(&Date(days).to_string()), Some(days));
        }
        // As many digits as numbers of days have in 32 bits, and two more.
        assert!(parse_date("100000000-01-01") < parse_date("123456789-01-01"));
        for wrong in [
            "1234567890-01-01",
            "2023-02-29",
            "2024-13-01",
            "24-01-01",
            "2024-1-1",
            "2024-01-01x",
            "",
            "2024-00-01",
        ] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_and_zones() {
        assert_eq!(parse_time("12:34:56.789"), Some(45_296_789_000_000));
        assert_eq!(Time(45_296_789_000_000).to_string(), "12:34:56.789");
        for wrong in ["24:00", "12", "12:60", "12:30.5", "12:30:00.", "1:30", "12:30:00.1234567890"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
        assert_eq!(parse_timestamp("1970-01-01T01:00:00+01:00"), Some((0, true)));
        assert_eq!(parse_timestamp("1970-01-02 00:00:00Z"), Some((i128::from(DAY), true)));
        assert_eq!(parse_timestamp("1970-01-02"), Some((i128::from(DAY), false)));
        assert_eq!(parse_timestamp("1969-12-31 23:59:59.999999999"), Some((-1, false)));
        assert_eq!(parse_timestamp("1970-01-01T23:59:00+23:59"), Some((0, true)));
        for wrong in ["+00:60", "+24:00", "+0100", "+01", "+1:00", "Zulu"] {
            assert_eq!(parse_timestamp(&format!("1970-01-01T01:00:00{wrong}")), None, "{wrong}");
        }
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31 23:59:59.999999999");
    }
}
