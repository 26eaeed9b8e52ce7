//! Errors of the library as those of JavaScript.

use js_sys::{Error as JsError, Reflect};
use marquetry::{Error, ErrorKind};
use wasm_bindgen::JsValue;

/// An error with `kind`, and the place in the file as far as it is known: `rowGroup`, `column`,
/// `page`, `offset`.
pub(crate) fn to_js(error: Error) -> JsValue {
    let out = JsError::new(&error.to_string());
    let at = error.at();
    let number = |n: usize| JsValue::from_f64(n as f64);
    let places = [
        ("kind", Some(JsValue::from_str(kind(error.kind())))),
        ("rowGroup", at.row_group.map(number)),
        ("column", at.column.as_deref().map(JsValue::from_str)),
        ("page", at.page.map(number)),
        ("offset", at.offset.map(|offset| JsValue::from_f64(offset as f64))),
    ];
    for (name, value) in places {
        if let Some(value) = value {
            // A new error takes every property.
            let _ = Reflect::set(&out, &name.into(), &value);
        }
    }
    out.into()
}

fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Io => "Io",
        ErrorKind::Malformed(_) => "Malformed",
        ErrorKind::Unsupported(_) => "Unsupported",
        ErrorKind::Limit(_) => "Limit",
        ErrorKind::FeatureDisabled(_) => "FeatureDisabled",
        ErrorKind::Crypto => "Crypto",
        ErrorKind::Arrow => "Arrow",
        ErrorKind::Usage => "Usage",
        ErrorKind::Cancelled => "Cancelled",
        _ => "Internal",
    }
}

/// The text of whatever JavaScript threw.
pub(crate) fn thrown(value: &JsValue) -> String {
    let message = Reflect::get(value, &"message".into()).ok().and_then(|text| text.as_string());
    let text = message.or_else(|| value.as_string());
    text.unwrap_or_else(|| "JavaScript threw something without a message".to_owned())
}

/// A number of JavaScript that counts something.
///
/// # Errors
/// `Usage` if it is no integer from 0 to 2^53 - 1.
pub(crate) fn count(name: &str, n: f64) -> marquetry::Result<u64> {
    if n.fract() != 0.0 || !(0.0..=MAX_SAFE).contains(&n) {
        let text = format_args!("{name} is a number of rows or bytes, not {n}");
        return Err(Error::usage(text));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    Ok(n as u64)
}

/// The largest integer that a number of JavaScript holds, as do all below it.
pub(crate) const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_are_counts() {
        assert_eq!(count("limit", 7.0).unwrap(), 7);
        assert_eq!(count("limit", MAX_SAFE).unwrap(), (1 << 53) - 1);
        for bad in [-1.0, 0.5, f64::NAN, f64::INFINITY, MAX_SAFE + 1.0] {
            assert_eq!(count("limit", bad).unwrap_err().kind(), ErrorKind::Usage, "{bad}");
        }
    }
}
