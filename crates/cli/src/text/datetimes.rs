//! Parses texts of times, also of years that have a sign, as ISO 8601 has them before year 0 and
//! after 9999.

use arrow_array::timezone::Tz;
use arrow_cast::parse::{string_to_datetime, string_to_time_nanoseconds};
use arrow_schema::{ArrowError, TimeUnit};

/// A time as text has it.
pub(super) struct Instant {
    /// Seconds after 1970-01-01, and the fraction of the second.
    seconds: i128,
    nanos: u32,
}

impl Instant {
    /// Parses a date, or a date and a time; one without an offset is in this zone.
    ///
    /// # Errors
    /// If the text is none, or has a second 60, which no type has a place for.
    pub(super) fn parse(text: &str, zone: &str) -> Result<Self, ArrowError> {
        let wrong = |why: &str| Err(ArrowError::ParseError(format!("{text} {why}")));
        let zone_of_text = zone.parse::<Tz>()?;
        let (time, cycles) = match text.starts_with(['+', '-']) {
            false => (string_to_datetime(&zone_of_text, text)?, 0),
            true => {
                let (year, rest) = split_year(text);
                let digits = year.len() - 1;
                let Some(number) = year.parse::<i64>().ok().filter(|_| digits >= 4) else {
                    return wrong("has no year of four digits or more");
                };
                if !matches!(zone, "UTC" | "+00:00") && !has_offset(text) {
                    return wrong("has no offset, which the time of such a year needs");
                }
                // The calendar is the same after each 400 years.
                let alike = 2000 + number.rem_euclid(400);
                match string_to_datetime(&zone_of_text, &format!("{alike}{rest}")) {
                    Ok(time) => (time, (i128::from(number) - i128::from(alike)) / 400),
                    Err(_) => return wrong("is no time"),
                }
            }
        };
        let nanos = time.timestamp_subsec_nanos();
        if nanos >= nanoseconds(TimeUnit::Second) {
            return wrong("has a second 60, which the type has no place for");
        }
        let seconds = i128::from(time.timestamp()) + cycles * SECONDS_OF_400_YEARS;
        Ok(Self { seconds, nanos })
    }

    /// The units after 1970-01-01, as far as 64 bits go; the rest below a unit is dropped.
    pub(super) fn units(&self, unit: TimeUnit) -> Option<i64> {
        let nanos = nanoseconds(unit);
        let of_seconds = self.seconds * i128::from(nanoseconds(TimeUnit::Second) / nanos);
        i64::try_from(of_seconds + i128::from(self.nanos / nanos)).ok()
    }

    /// Whether a unit holds all digits of the text that this was parsed from.
    pub(super) fn is_held(&self, unit: TimeUnit, text: &str) -> bool {
        holds(unit, text, self.nanos)
    }
}

/// Whether a unit holds all digits of the seconds of a time, whose fraction was read as `nanos`.
fn holds(unit: TimeUnit, text: &str, nanos: u32) -> bool {
    // The parsers drop digits after the ninth.
    let (_, fraction) = text.split_once('.').unwrap_or_default();
    let mut dropped = fraction.bytes().take_while(u8::is_ascii_digit).skip(9);
    nanos.is_multiple_of(nanoseconds(unit)) && dropped.all(|digit| digit == b'0')
}

fn nanoseconds(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Whether a date with a time has an offset from UTC, or a time zone.
pub(super) fn has_offset(text: &str) -> bool {
    let (_, rest) = split_year(text);
    let time = rest.get("-01-01T".len()..).unwrap_or_default();
    time.contains(|c: char| matches!(c, '+' | '-') || c.is_ascii_alphabetic())
}

/// The year with its sign, and what follows.
fn split_year(text: &str) -> (&str, &str) {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    text.split_at(text.len() - after.len())
}

/// A time of day as text, or as a number of units after midnight.
///
/// # Errors
/// If the text is none, or the unit does not hold its digits.
pub(super) fn time_of_day(text: &str, unit: TimeUnit) -> Result<i64, ArrowError> {
    let wrong = |why: String| Err(ArrowError::ParseError(format!("{text} {why}")));
    let value = match text.parse() {
        Ok(value) => value,
        Err(_) => {
            let value = string_to_time_nanoseconds(text)?;
            if text.split(':').nth(2).is_some_and(|seconds| seconds.starts_with("60")) {
                return wrong("has a second 60, which the type has no place for".to_owned());
            }
            let nanos = u32::try_from(value % 1_000_000_000).unwrap_or_default();
            if !holds(unit, text, nanos) {
                return wrong(format!(
                    "has more digits than {unit:?}s hold; time64(ns) in --schema has more"
                ));
            }
            value / i64::from(nanoseconds(unit))
        }
    };
    let of_day = SECONDS_OF_DAY * i64::from(nanoseconds(TimeUnit::Second) / nanoseconds(unit));
    match (0..of_day).contains(&value) {
        true => Ok(value),
        false => wrong(format!("is no time of day: one has from 0 to {} {unit:?}s", of_day - 1)),
    }
}

pub(super) const SECONDS_OF_DAY: i64 = 24 * 60 * 60;
/// Days of 400 years are the same wherever they begin.
const SECONDS_OF_400_YEARS: i128 = 146_097 * SECONDS_OF_DAY as i128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_of_any_length_are_parsed() {
        for (text, wanted) in [
            ("1970-01-01T00:00:01", Some(1)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799)),
            ("+10000-01-01T00:00:00", Some(253_402_300_800)),
            ("+10000-01-01T01:00:00+01:00", Some(253_402_300_800)),
            ("0000-01-01T00:00:00", Some(-62_167_219_200)),
            ("-0001-12-31T23:59:59", Some(-62_167_219_201)),
            ("-0001-12-31", Some(-62_167_305_600)),
            ("+292277026596-12-04T15:30:07", Some(i64::MAX)),
            ("+292277026596-12-04T15:30:08", None),
            ("-292277022657-01-27T08:29:52Z", Some(i64::MIN)),
            ("+99999999999999999999-01-01T00:00:00", None),
            ("+100-01-01T00:00:00", None),
            ("10000-01-01T00:00:00", None),
            ("+10001-02-29T00:00:00", None),
            ("-", None),
            ("2016-12-31T23:59:60Z", None),
        ] {
            let found = Instant::parse(text, "UTC").ok();
            assert_eq!(found.and_then(|time| time.units(TimeUnit::Second)), wanted, "{text}");
        }
        assert!(Instant::parse("-0001-01-01T00:00:00", "Europe/Paris").is_err());
    }

    #[test]
    fn an_offset_follows_the_time() {
        for (text, wanted) in [
            ("2024-01-01T00:00:00", false),
            ("2024-01-01T00:00:00Z", true),
            ("2024-01-01 00:00:00-05", true),
            ("+10000-01-01T00:00:00", false),
            ("-2024-01-01T01:00:00", false),
            ("+10000-01-01T00:00:00+01:00", true),
            ("-2024-01-01T01:00:00Z", true),
            ("2024-01-01", false),
            ("", false),
        ] {
            assert_eq!(has_offset(text), wanted, "{text}");
        }
    }

    #[test]
    fn times_of_day_are_within_the_day() {
        for (text, unit, wanted) in [
            ("00:00", TimeUnit::Second, Some(0)),
            ("23:59:59.999999", TimeUnit::Microsecond, Some(86_399_999_999)),
            ("86399999999", TimeUnit::Microsecond, Some(86_399_999_999)),
            ("86400000000", TimeUnit::Microsecond, None),
            ("-5", TimeUnit::Microsecond, None),
            ("23:59:60", TimeUnit::Microsecond, None),
            ("10:00:60", TimeUnit::Second, None),
            ("24:00:00", TimeUnit::Second, None),
            ("10:00:00.5", TimeUnit::Second, None),
        ] {
            assert_eq!(time_of_day(text, unit).ok(), wanted, "{text}");
        }
    }
}
