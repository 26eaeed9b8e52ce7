//! Finds the type that keeps all digits of the numbers of JSON.

use arrow_schema::DataType;

use super::place::Place;
use crate::failure::Result;

/// The properties of the numbers of one place.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    /// The most digits before the point, and after it.
    whole: usize,
    fraction: usize,
    is_negative: bool,
    /// Whether an integer is beyond `i64`.
    is_large: bool,
    /// Whether one is beyond `u64` too, or below `i64`.
    is_huge: bool,
    /// Whether a number has a point or an exponent.
    has_point: bool,
    has_exponent: bool,
    /// The first integer, and whether there is any number, whose digits a double does not keep.
    inexact_integer: Option<(Place, String)>,
    is_inexact: bool,
}

impl Numbers {
    pub(super) fn see(&mut self, text: &str, at: &Place) {
        let digits = text.strip_prefix('-').unwrap_or(text);
        self.is_negative |= digits.len() < text.len();
        if digits.contains(['e', 'E']) {
            (self.has_point, self.has_exponent) = (true, true);
            return;
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_integer = whole.len() == digits.len();
        self.has_point |= !is_integer;
        self.whole = self.whole.max(whole.len());
        self.fraction = self.fraction.max(fraction.len());
        if is_integer && text.parse::<i64>().is_err() {
            self.is_large = true;
            self.is_huge |= text.parse::<u64>().is_err();
        }
        if digits.len() > EXACT_DIGITS && !is_double(text) {
            self.is_inexact = true;
            if is_integer {
                let shown = || (at.clone(), text.chars().take(MAX_SHOWN).collect());
                self.inexact_integer.get_or_insert_with(shown);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.whole = self.whole.max(other.whole);
        self.fraction = self.fraction.max(other.fraction);
        self.is_negative |= other.is_negative;
        self.is_large |= other.is_large;
        self.is_huge |= other.is_huge;
        self.has_point |= other.has_point;
        self.has_exponent |= other.has_exponent;
        self.is_inexact |= other.is_inexact;
        self.inexact_integer =
            self.inexact_integer.take().or_else(|| other.inexact_integer.clone());
    }

    /// Whether a double keeps all of them.
    pub(super) fn are_floats(&self) -> bool {
        !self.is_inexact
    }

    /// # Errors
    /// If no type keeps all of them.
    pub(super) fn data_type(&self, path: &str) -> Result<DataType> {
        match (self.has_point, self.is_large) {
            (true, _) if !self.is_inexact => return Ok(DataType::Float64),
            (false, false) => return Ok(DataType::Int64),
            (false, true) if !self.is_huge && !self.is_negative => return Ok(DataType::UInt64),
            _ => {}
        }
        let scale = i8::try_from(self.fraction).unwrap_or(i8::MAX);
        match (self.whole + self.fraction, &self.inexact_integer) {
            (..=DIGITS_128, _) if !self.has_exponent => Ok(DataType::Decimal128(38, scale)),
            (..=DIGITS_256, _) if !self.has_exponent => Ok(DataType::Decimal256(76, scale)),
            // Longer than an exact double ever is, or beside exponents: these are doubles.
            (_, None) => Ok(DataType::Float64),
            (_, Some((place, digits))) if self.has_point => Err(place.failure(
                path,
                format!(
                    "{digits}: other values have an exponent or many digits, and a double does not \
                     keep all digits of this one; say the type with --schema, as utf8"
                ),
            )),
            (_, Some((place, digits))) => Err(place.failure(
                path,
                format!(
                    "{digits}: no integer type holds it; say the type with --schema, as utf8 or \
                     float64"
                ),
            )),
        }
    }
}

/// Whether a text is an integer whose digits a double does not keep.
pub(super) fn is_inexact_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > EXACT_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !is_double(text)
        // All digits of the double, as some writers print it.
        && !digits.parse::<f64>().is_ok_and(|double| format!("{double:.0}") == digits)
}

/// Whether a text is a number that begins with a zero before another digit, as codes do.
pub(super) fn has_leading_zero(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(digits.as_bytes(), [b'0', b'0'..=b'9', ..])
}

/// Digits that every double keeps.
const EXACT_DIGITS: usize = 15;
/// Digits of a Decimal128 and a Decimal256.
const DIGITS_128: usize = 38;
const DIGITS_256: usize = 76;
/// Digits of a number that an error shows.
const MAX_SHOWN: usize = 80;

/// Whether the text has the digits of a double: the fewest, or the 17 that others print.
fn is_double(text: &str) -> bool {
    let Ok(double) = text.parse::<f64>() else { return false };
    let digits = significant(text);
    digits == significant(&format!("{double}"))
        || (digits.len() <= 17 && digits == significant(&format!("{double:.16e}")))
}

/// The digits without zeros at their ends, point and exponent.
fn significant(text: &str) -> String {
    let mantissa = text.split('e').next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_keeps_all_digits() {
        let at = Place { file: "a".into(), line: 1 };
        let long = "9".repeat(77);
        for (texts, wanted) in [
            (&["1", "-2"][..], Some(DataType::Int64)),
            (&["18446744073709551615", "1"], Some(DataType::UInt64)),
            (&["18446744073709551615", "-1"], Some(DataType::Decimal128(38, 0))),
            (&["18446744073709552000", "0.5"], Some(DataType::Float64)),
            (&["18446744073709551617", "0.5"], Some(DataType::Decimal128(38, 1))),
            (&["0.1", "1e300"], Some(DataType::Float64)),
            (&["12.50", "0.30000000000000004"], Some(DataType::Float64)),
            (&["0.10000000000000001"], Some(DataType::Float64)),
            (&["1234567890123456.78"], Some(DataType::Decimal128(38, 2))),
            (&["12345678901234567890123456789012345678.5"], Some(DataType::Decimal256(76, 1))),
            (&["9007199254740993", "1e5"], None),
            (&[&long], None),
        ] {
            let mut numbers = Numbers::default();
            texts.iter().for_each(|text| numbers.see(text, &at));
            assert_eq!(numbers.data_type("a").ok(), wanted, "{texts:?}");
        }
    }

    #[test]
    fn integers_that_a_double_keeps_have_its_digits() {
        for (text, wanted) in [
            ("9007199254740992", false),
            ("9007199254740993", true),
            ("-9007199254740993", true),
            ("+12345678901234567891", true),
            // The fewest digits of a double, the 17 that others print, and all of them.
            ("12345678901234567000", false),
            ("12345678901234560000000", false),
            ("12345678901234567168", false),
            ("12345678901234567.891", false),
            ("1.2345678901234567891e19", false),
            ("", false),
        ] {
            assert_eq!(is_inexact_integer(text), wanted, "{text}");
        }
    }
}
