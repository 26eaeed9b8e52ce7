//! Converts intervals to INTERVAL, or to the 16 bytes that can hold every Arrow interval.

use arrow_schema::IntervalUnit;

use super::arrays::WantedSlots;
use crate::error::Result;

impl WantedSlots<'_, '_> {
    /// Appends the 12 bytes of INTERVAL: months, days and milliseconds, all unsigned.
    pub(super) fn intervals(&self, unit: IntervalUnit, out: &mut Vec<u8>) -> Result<()> {
        let unsigned = |v: i32| u32::try_from(v).ok();
        let mut values: Vec<[u32; 3]> = Vec::new();
        match unit {
            IntervalUnit::YearMonth => {
                self.checked(&mut values, |months: i32| Some([unsigned(months)?, 0, 0]))?;
            }
            IntervalUnit::DayTime => {
                self.checked(&mut values, |v: arrow_buffer::IntervalDayTime| {
                    Some([0, unsigned(v.days)?, unsigned(v.milliseconds)?])
                })?;
            }
            IntervalUnit::MonthDayNano => {
                self.checked(&mut values, |v: arrow_buffer::IntervalMonthDayNano| {
                    let whole = v.nanoseconds % 1_000_000 == 0;
                    let millis = u32::try_from(v.nanoseconds / 1_000_000).ok()?;
                    whole.then_some([unsigned(v.months)?, unsigned(v.days)?, millis])
                })?;
            }
        }
        out.extend(values.iter().flatten().flat_map(|part| part.to_le_bytes()));
        Ok(())
    }

    /// Intervals as 16 bytes: months, days, nanoseconds, each with its sign.
    pub(super) fn signed_intervals(&self, unit: IntervalUnit, out: &mut Vec<u8>) {
        let mut push = |months: i32, days: i32, nanos: i64| {
            out.extend_from_slice(&months.to_le_bytes());
            out.extend_from_slice(&days.to_le_bytes());
            out.extend_from_slice(&nanos.to_le_bytes());
        };
        match unit {
            IntervalUnit::YearMonth => self.each(|months: i32| push(months, 0, 0)),
            IntervalUnit::DayTime => self.each(|v: arrow_buffer::IntervalDayTime| {
                push(0, v.days, i64::from(v.milliseconds) * 1_000_000);
            }),
            IntervalUnit::MonthDayNano => self.each(|v: arrow_buffer::IntervalMonthDayNano| {
                push(v.months, v.days, v.nanoseconds);
            }),
        }
    }
}
