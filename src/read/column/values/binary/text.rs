//! Handles byte strings that should be text and are not UTF-8.

use crate::encoding::ValueSpan;
use crate::error::{Error, Result, Spec};
use crate::read::options::Utf8;
use crate::trusted::{TextCheck, too_long};

/// How the values of a leaf are checked; `utf8` is `None` for bytes.
pub(super) fn text_check(utf8: Option<Utf8>) -> TextCheck {
    match utf8 {
        None => TextCheck::Bytes,
        Some(Utf8::Trusted(promise)) => TextCheck::Promised(promise),
        Some(Utf8::Strict | Utf8::Lossy) => TextCheck::Utf8,
    }
}

/// Text whose wrong sequences were replaced; its values lie end to end.
pub(super) struct Lossy {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<ValueSpan>,
}

/// Replaces or refuses values if one of them is not UTF-8.
///
/// # Errors
/// `Malformed`, with the first invalid value, unless the caller accepts replacement characters.
pub(super) fn mended(utf8: Option<Utf8>, source: &[u8], spans: &[ValueSpan]) -> Result<Lossy> {
    if utf8 != Some(Utf8::Lossy) {
        let wrong = spans
            .iter()
            .map(|span| span.slice(source))
            .find_map(|value| std::str::from_utf8(value).err().map(|e| (value, e)));
        let detail = wrong.map_or_else(String::new, |(value, error)| {
            let shown = &value[..value.len().min(32)];
            format!(": {error} in \"{}\"", shown.escape_ascii())
        });
        return Err(Error::malformed(
            Spec::LogicalTypes("STRING"),
            format_args!("a string is not UTF-8{detail}; read it as bytes, or leniently"),
        ));
    }
    let mut lossy = Lossy { bytes: Vec::new(), spans: Vec::with_capacity(spans.len()) };
    for span in spans {
        let text = String::from_utf8_lossy(span.slice(source));
        let start = u32::try_from(lossy.bytes.len()).map_err(|_| too_long())?;
        let len = u32::try_from(text.len()).map_err(|_| too_long())?;
        lossy.bytes.extend_from_slice(text.as_bytes());
        lossy.spans.push(ValueSpan { start, len });
    }
    Ok(lossy)
}
