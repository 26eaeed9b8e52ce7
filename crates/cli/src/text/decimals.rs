//! Parses texts of decimals, and refuses those that would lose digits.

use arrow_array::{Decimal256Array, StringArray};
use arrow_buffer::i256;
use arrow_schema::{ArrowError, DECIMAL256_MAX_PRECISION};

/// Texts as decimals of this scale, in the widest type.
///
/// # Errors
/// If a text is no number, has digits below those of the scale, or too many above.
pub(super) fn decimals(texts: &StringArray, scale: i8) -> Result<Decimal256Array, ArrowError> {
    let mut digits = String::new();
    let mut value = |text: &str| {
        value(text, scale, &mut digits)
            .map_err(|wrong| ArrowError::ParseError(format!("{text:?} {wrong}")))
    };
    let values = texts.iter().map(|text| text.map(&mut value).transpose());
    let values: Decimal256Array = values.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
    values.with_precision_and_scale(DECIMAL256_MAX_PRECISION, scale)
}

/// The integer that stands for a number in decimals of this scale; `digits` is a buffer.
fn value(text: &str, scale: i8, digits: &mut String) -> Result<i256, String> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = || "is no number".to_owned();
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().map_err(|_| wrong())?),
        None => (text, 0),
    };
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return Err(wrong());
    }
    digits.clear();
    digits.extend([whole.trim_start_matches('0'), fraction]);
    let len = digits.trim_end_matches('0').len();
    if len == 0 {
        return Ok(i256::ZERO);
    }
    // The power of ten that the number has beside these digits, and the one that the scale takes.
    let zeros = (digits.len() - len) as i64 - fraction.len() as i64 + i64::from(exponent);
    let zeros = usize::try_from(zeros + i64::from(scale)).map_err(|_| match scale {
        ..=0 => format!("is no multiple of 1{}", "0".repeat(usize::from(scale.unsigned_abs()))),
        _ => format!("has more than {scale} digits after the point"),
    })?;
    digits.truncate(len);
    let significant = digits.trim_start_matches('0').len();
    if significant.saturating_add(zeros) > usize::from(DECIMAL256_MAX_PRECISION) {
        return Err(format!("has more than {DECIMAL256_MAX_PRECISION} digits"));
    }
    digits.extend(std::iter::repeat_n('0', zeros));
    let value = i256::from_string(digits).ok_or_else(wrong)?;
    Ok(if number.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_all_their_digits_or_are_refused() {
        let long = "9".repeat(76);
        let tiny = format!("0.{}1", "0".repeat(1000));
        let padded = format!("{}1.5{}", "0".repeat(100), "0".repeat(100));
        for (text, scale, wanted) in [
            ("1.23", 2, Some("123")),
            ("-1.2", 2, Some("-120")),
            ("+.5", 1, Some("5")),
            ("5.", 0, Some("5")),
            ("-0.0", 0, Some("0")),
            ("1.500", 1, Some("15")),
            ("1.239", 2, None),
            ("0.999", 0, None),
            ("1e3", 2, Some("100000")),
            ("12.5E-1", 2, Some("125")),
            ("12.5E-2", 2, None),
            ("1e70000", 2, None),
            ("0e70000", 2, Some("0")),
            ("1e-99999999999", 2, None),
            ("1200", -2, Some("12")),
            ("1250", -2, None),
            (&long, 0, Some(&long)),
            (&long, 1, None),
            (&tiny, 70, None),
            (&padded, 1, Some("15")),
            ("", 0, None),
            ("-", 0, None),
            ("-.", 0, None),
            ("1 ", 0, None),
            ("1.+5", 1, None),
            ("1e", 1, None),
            ("0x10", 1, None),
            ("NaN", 1, None),
        ] {
            let texts = StringArray::from(vec![text]);
            let found = decimals(&texts, scale).ok().map(|found| found.value(0).to_string());
            assert_eq!(found.as_deref(), wanted, "{text}, {scale}");
        }
        // Digits that are read by recursion would end the stack.
        assert!(decimals(&StringArray::from(vec!["9".repeat(10_000_000)]), 0).is_err());
    }
}
