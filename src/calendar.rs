//! Converts days to dates and back in the proleptic Gregorian calendar, which repeats every 400
//! years (146,097 days).

/// The year, month (1 to 12) and day of the month of a day, given as days since 1970-01-01.
///
/// Valid for all days that are at least 719,468 below `i64::MAX`.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
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
