//! Writes numbers and text to a buffer, without a string in between.

use arrow_buffer::i256;
use arrow_schema::ArrowError;
use itoa::Integer;

/// Appends an integer.
pub(super) fn integer(value: impl Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a float: the fewest digits that are this one. False for NaN and infinities, which JSON
/// has no numbers for; they are words.
pub(super) fn float64(value: f64, out: &mut Vec<u8>) -> bool {
    if value.is_finite() {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        return true;
    }
    let word = match value.is_nan() {
        true => "NaN",
        false if value > 0.0 => "Infinity",
        false => "-Infinity",
    };
    out.extend_from_slice(word.as_bytes());
    false
}

/// The same for a float of 32 bits, not for the double that it widens to.
pub(super) fn float32(value: f32, out: &mut Vec<u8>) -> bool {
    // Beyond these, exponents would begin elsewhere than in doubles.
    if value == 0.0 || (1e-4..1e13).contains(&value.abs()) {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        return true;
    }
    float64(value.to_string().parse().unwrap_or_else(|_| f64::from(value)), out)
}

/// Appends a decimal with all its digits, also those beyond the precision of its type.
pub(super) fn decimal(value: i128, scale: i8, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = match i64::try_from(value.unsigned_abs()) {
        Ok(short) => buffer.format(short),
        Err(_) => buffer.format(value.unsigned_abs()),
    };
    if value < 0 {
        out.push(b'-');
    }
    with_point(digits, scale, out);
}

/// The same for 256 bits.
pub(super) fn decimal256(value: i256, scale: i8, out: &mut Vec<u8>) {
    if let Some(value) = value.to_i128() {
        return decimal(value, scale, out);
    }
    let text = value.to_string();
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if digits.len() < text.len() {
        out.push(b'-');
    }
    with_point(digits, scale, out);
}

/// Appends the digits of an integer with the point of a decimal.
fn with_point(digits: &str, scale: i8, out: &mut Vec<u8>) {
    let Ok(scale) = usize::try_from(scale) else {
        out.extend_from_slice(digits.as_bytes());
        // JSON has no number with two zeros in front.
        if digits != "0" {
            out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
        }
        return;
    };
    match digits.len().checked_sub(scale) {
        _ if scale == 0 => out.extend_from_slice(digits.as_bytes()),
        Some(whole @ 1..) => {
            let (whole, fraction) = digits.as_bytes().split_at(whole);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits.as_bytes());
        }
    }
}

/// Appends a text as JSON.
///
/// # Errors
/// None that memory does not give.
pub(super) fn json_text(text: &str, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let escapes = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, |any, byte| any | escapes(byte)) {
        return serde_json::to_writer(out, text).map_err(|e| ArrowError::JsonError(e.to_string()));
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn floats_are_as_serde_json_writes_them() {
        let number = |value: f64| {
            let number = serde_json::Number::from_f64(value).expect("finite").to_string();
            number.replace("e+", "e")
        };
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..100_000 {
            let (wide, narrow) = (f64::from_bits(rng.u64(..)), f32::from_bits(rng.u32(..)));
            if wide.is_finite() {
                assert_eq!(text(|out| _ = float64(wide, out)), number(wide));
            }
            if narrow.is_finite() {
                let shortest: f64 = narrow.to_string().parse().expect("a number");
                // If two texts are equally short, either is right.
                let text = text(|out| _ = float32(narrow, out));
                assert_eq!(text.len(), number(shortest).len(), "{text}");
                assert_eq!(text.parse::<f32>(), Ok(narrow));
            }
        }
        for (value, word) in [(f64::NAN, "NaN"), (f64::NEG_INFINITY, "-Infinity"), (-0.0, "-0.0")] {
            assert_eq!(text(|out| _ = float64(value, out)), word);
        }
    }

    #[test]
    fn decimals_keep_the_digits_of_their_scale() {
        for (value, scale, wanted) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 3, "-0.005"),
            (1250, 2, "12.50"),
            (-100, 2, "-1.00"),
            (i128::MAX, 10, "17014118346046923173168730371.5884105727"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
            (0, -2, "0"),
            (-7, -2, "-700"),
        ] {
            assert_eq!(text(|out| decimal(value, scale, out)), wanted);
            assert_eq!(text(|out| decimal256(value.into(), scale, out)), wanted);
        }
        let long = i256::MAX.to_string();
        let (whole, fraction) = long.split_at(long.len() - 10);
        let wanted = format!("{whole}.{fraction}");
        assert_eq!(text(|out| decimal256(i256::MAX, 10, out)), wanted);
        assert_eq!(text(|out| decimal256(-i256::MAX, 10, out)), format!("-{wanted}"));
        assert_eq!(text(|out| decimal256(i256::MIN, 0, out)), i256::MIN.to_string());
    }

    #[test]
    fn text_is_escaped_as_json_wants_it() {
        for plain in ["", "a b", "é€", "\"", "a\\b", "\u{1}\n", "\u{7f}"] {
            let json = serde_json::to_string(plain).expect("JSON");
            assert_eq!(text(|out| json_text(plain, out).expect("memory")), json);
        }
    }
}
