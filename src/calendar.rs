//! Converts days to dates in the proleptic Gregorian calendar, which repeats every 400 years
//! (146,097 days), and shows dates and times in ISO 8601, without leap seconds.

/// The year, month (1 to 12) and day of the month of a day, given as days since 1970-01-01.
///
/// Valid for all days that are at least 719,468 below `i64::MAX`.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01: years begin in March, so that the leap day is the last one.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * era + year + i64::from(month <= 2), month, day)
}

/// The text of a date or a time.
#[derive(Debug, Clone, Copy)]
pub struct TimeText {
    bytes: [u8; Self::MAX_LEN],
    len: usize,
}

impl TimeText {
    /// A sign, a year of 12 digits, and the rest of a timestamp in nanoseconds take 39 bytes.
    const MAX_LEN: usize = 40;

    /// A day, counted from 1970-01-01, as `2024-01-31`. A year of other than four digits has a
    /// sign.
    pub fn date(days: i64) -> Self {
        let mut text = Self { bytes: [0; Self::MAX_LEN], len: 0 };
        let (year, month, day) = civil_from_days(days);
        match year {
            0..=9999 => {}
            10_000.. => text.push(b'+'),
            _ => text.push(b'-'),
        }
        text.number(year.unsigned_abs(), 4);
        text.push(b'-');
        text.number(month.unsigned_abs(), 2);
        text.push(b'-');
        text.number(day.unsigned_abs(), 2);
        text
    }

    /// A time of day in units of 10^-`digits` seconds (0, 3, 6 or 9), as `12:34:56.789`, with as
    /// many thousandths as it needs. Hours may exceed 23.
    pub fn time(units: u64, digits: u32) -> Self {
        let mut text = Self { bytes: [0; Self::MAX_LEN], len: 0 };
        text.clock(units, digits);
        text
    }

    /// A point in time in units of 10^-`digits` seconds after 1970-01-01 00:00; `separator` stands
    /// between its date and its time of day.
    pub fn timestamp(units: i64, digits: u32, separator: u8) -> Self {
        let day = 86_400 * 10_i64.pow(digits);
        let mut text = Self::date(units.div_euclid(day));
        text.push(separator);
        text.clock(units.rem_euclid(day).unsigned_abs(), digits);
        text
    }

    /// The text in ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    fn clock(&mut self, units: u64, digits: u32) {
        let second = 10_u64.pow(digits);
        let (seconds, mut fraction, mut width) = (units / second, units % second, digits as usize);
        self.number(seconds / 3600, 2);
        self.push(b':');
        self.number(seconds / 60 % 60, 2);
        self.push(b':');
        self.number(seconds % 60, 2);
        if fraction == 0 {
            return;
        }
        while fraction.is_multiple_of(1000) {
            (fraction, width) = (fraction / 1000, width - 3);
        }
        self.push(b'.');
        self.number(fraction, width);
    }

    fn push(&mut self, byte: u8) {
        if let Some(next) = self.bytes.get_mut(self.len) {
            *next = byte;
            self.len += 1;
        }
    }

    /// Appends a number of at least `width` digits.
    fn number(&mut self, number: u64, width: usize) {
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let end = (self.len + digits.max(width)).min(Self::MAX_LEN);
        let mut rest = number;
        for digit in self.bytes.get_mut(self.len..end).into_iter().flatten().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
        self.len = end;
    }
}

impl std::fmt::Display for TimeText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_leap_days_and_turns_of_eras() {
        for (days, civil) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
            (-719_468, (0, 3, 1)),
            (-719_469, (0, 2, 29)),
            (-719_529, (-1, 12, 31)),
            (i64::from(i32::MAX), (5_881_580, 7, 11)),
            (i64::from(i32::MIN), (-5_877_641, 6, 23)),
        ] {
            assert_eq!(civil_from_days(days), civil, "{days}");
        }
    }

    #[test]
    fn extremes_have_a_text() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(TimeText::date(days).as_str(), wanted);
        }
        for (units, digits, wanted) in [
            (i64::MAX, 6, "+294247-01-10T04:00:54.775807"),
            (i64::MIN, 0, "-292277022657-01-27T08:29:52"),
            (-1, 9, "1969-12-31T23:59:59.999999999"),
            (1_000, 9, "1970-01-01T00:00:00.000001"),
        ] {
            assert_eq!(TimeText::timestamp(units, digits, b'T').as_str(), wanted);
        }
        assert_eq!(TimeText::time(90_000_500, 3).as_str(), "25:00:00.500");
        assert_eq!(TimeText::time(u64::MAX, 0).as_str(), "5124095576030431:00:15");
    }

    #[test]
    fn a_day_later_is_the_next_day_or_the_first_of_a_month() {
        let mut before = civil_from_days(-800_001);
        for days in -800_000..100_000 {
            let (year, month, day) = civil_from_days(days);
            let next_month = (before.0 + before.1 / 12, before.1 % 12 + 1);
            let follows = (year, month) == (before.0, before.1) && day == before.2 + 1
                || (year, month) == next_month && day == 1 && before.2 >= 28;
            assert!(follows, "{before:?} before {:?}", (year, month, day));
            before = (year, month, day);
        }
    }
}
