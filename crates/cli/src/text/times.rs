//! Recognises texts of JSON that are dates, times, or floats that JSON has no numbers for.

use arrow_array::types::Date32Type;
use arrow_cast::parse::Parser;
use arrow_schema::{DataType, TimeUnit};

use super::datetimes::Instant;

/// The properties of the texts of one place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Texts {
    dates: bool,
    /// Times without an offset from UTC, and with one.
    local: bool,
    instants: bool,
    /// Whether times have digits below a microsecond.
    nanoseconds: bool,
    /// Whether there are times that 64 bits of nanoseconds do not hold.
    far: bool,
    floats: bool,
    others: bool,
}

impl Texts {
    pub(super) fn see(&mut self, text: &str) {
        match text {
            _ if self.others => {}
            "NaN" | "Infinity" | "-Infinity" => self.floats = true,
            _ if is_date(text) => self.dates = true,
            _ => match Time::new(text) {
                None => self.others = true,
                Some(time) => {
                    self.local |= !time.has_offset;
                    self.instants |= time.has_offset;
                    self.nanoseconds |= time.digits > 6;
                    self.far |= time.is_far;
                }
            },
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.dates |= other.dates;
        self.local |= other.local;
        self.instants |= other.instants;
        self.nanoseconds |= other.nanoseconds;
        self.far |= other.far;
        self.floats |= other.floats;
        self.others |= other.others;
    }

    /// Whether they are all NaN or infinite.
    pub(super) fn are_floats(&self) -> bool {
        self.floats && !(self.dates || self.local || self.instants || self.others)
    }

    pub(super) fn data_type(&self) -> DataType {
        let unit = match self.nanoseconds {
            true => TimeUnit::Nanosecond,
            false => TimeUnit::Microsecond,
        };
        match (self.dates, self.local, self.instants) {
            _ if self.are_floats() => DataType::Float64,
            _ if self.others || self.floats || (self.nanoseconds && self.far) => DataType::Utf8,
            (true, false, false) => DataType::Date32,
            (_, true, false) => DataType::Timestamp(unit, None),
            (false, false, true) => DataType::Timestamp(unit, Some("UTC".into())),
            _ => DataType::Utf8,
        }
    }
}

/// `2024-01-31`.
fn is_date(text: &str) -> bool {
    text.len() == DATE.len() && has_form(text, DATE) && Date32Type::parse(text).is_some()
}

/// A date and a time of day.
struct Time {
    has_offset: bool,
    /// Digits of the fraction of the second.
    digits: usize,
    /// Whether nanoseconds may not hold it.
    is_far: bool,
}

impl Time {
    /// `2024-01-31T10:00:00`, with a blank in the place of the T, a fraction and an offset, if the
    /// text is one.
    fn new(text: &str) -> Option<Self> {
        if !has_form(text, "0000-00-00T00:00:00") {
            return None;
        }
        let rest = text.get("0000-00-00T00:00:00".len()..)?;
        let (digits, offset) = match rest.strip_prefix('.') {
            None => (0, rest),
            Some(fraction) => {
                let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
                (end, fraction.get(end..)?)
            }
        };
        let is_offset = matches!(offset, "" | "Z")
            || (offset.len() == 6 && (has_form(offset, "+00:00") || has_form(offset, "-00:00")));
        let is_whole = rest.starts_with('.') == (digits > 0) && digits <= 9;
        if !is_offset || !is_whole || Instant::parse(text, "UTC").is_err() {
            return None;
        }
        let year: u32 = text.get(..4)?.parse().ok()?;
        let is_far = !(1678..2262).contains(&year);
        Some(Self { has_offset: !offset.is_empty(), digits, is_far })
    }
}

const DATE: &str = "0000-00-00";

/// Whether a text begins in this form, in which 0 is any digit, and T may be a blank.
fn has_form(text: &str, form: &str) -> bool {
    text.len() >= form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b' '),
            _ => byte == form,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_all_times_are_times() {
        let time = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
        for (texts, wanted) in [
            (&["2024-02-29", "0001-01-01"][..], DataType::Date32),
            (&["2023-02-29"], DataType::Utf8),
            (&["2024-1-1"], DataType::Utf8),
            (&["2024-01-01", "2024-01-01T10:00:00"], time(TimeUnit::Microsecond, None)),
            (&["2024-01-01 10:00:00.123456789"], time(TimeUnit::Nanosecond, None)),
            (&["2024-01-01T10:00:00.123456789", "9999-01-01T00:00:00"], DataType::Utf8),
            (
                &["2024-01-01T10:00:00Z", "2024-01-01T10:00:00.5+02:00"],
                time(TimeUnit::Microsecond, Some("UTC")),
            ),
            (&["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], DataType::Utf8),
            (&["2024-01-01", "2024-01-01T10:00:00Z"], DataType::Utf8),
            (&["2024-01-01T10:00:00 or later"], DataType::Utf8),
            (&["2024-01-01T25:00:00"], DataType::Utf8),
            (&["2024-01-01T10:00:00."], DataType::Utf8),
            (&["2016-12-31T23:59:60Z"], DataType::Utf8),
            (&["NaN", "-Infinity"], DataType::Float64),
            (&["NaN", "2024-01-01"], DataType::Utf8),
            (&["", "2024-01-01"], DataType::Utf8),
        ] {
            let mut seen = Texts::default();
            texts.iter().for_each(|text| seen.see(text));
            assert_eq!(seen.data_type(), wanted, "{texts:?}");
        }
    }
}
