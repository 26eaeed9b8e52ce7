//! Whether byte strings are UTF-8: the values of a block and what lies between them are checked in
//! one go, where that proves each of them.

use crate::encoding::{EndToEnd, Span};
use crate::error::{Error, Result, Spec};
use crate::read::options::Utf8;

use super::layout::{Place, too_long};

/// Text whose wrong sequences were replaced.
pub(super) struct Lossy {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Span>,
}

/// Checks that the values of a block are UTF-8. If they are not and `utf8` is lossy, gives copies
/// with replacement characters.
///
/// The values and what lies between them are checked in one go where that proves each of them.
pub(super) fn checked_text(
    utf8: Utf8,
    source: &[u8],
    spans: &[Span],
    place: Place,
) -> Result<Option<Lossy>> {
    let is_text = || is_text(source, spans, place);
    match utf8 {
        Utf8::Trusted(_) => Ok(None),
        Utf8::Strict if is_text() => Ok(None),
        Utf8::Lossy if is_text() => Ok(None),
        Utf8::Strict => {
            let wrong = spans
                .iter()
                .map(|span| span.slice(source))
                .find_map(|value| std::str::from_utf8(value).err().map(|e| (value, e)));
            let detail = wrong.map_or_else(String::new, |(value, error)| {
                let shown = &value[..value.len().min(32)];
                format!(": {error} in \"{}\"", shown.escape_ascii())
            });
            Err(Error::malformed(
                Spec::LogicalTypes("STRING"),
                format_args!("a string is not UTF-8{detail}; read it as bytes, or leniently"),
            ))
        }
        Utf8::Lossy => {
            let mut lossy = Lossy { bytes: Vec::new(), spans: Vec::with_capacity(spans.len()) };
            for span in spans {
                let text = String::from_utf8_lossy(span.slice(source));
                let start = u32::try_from(lossy.bytes.len()).map_err(|_| too_long())?;
                let len = u32::try_from(text.len()).map_err(|_| too_long())?;
                lossy.bytes.extend_from_slice(text.as_bytes());
                lossy.spans.push(Span { start, len });
            }
            Ok(Some(lossy))
        }
    }
}

fn is_text(source: &[u8], spans: &[Span], place: Place) -> bool {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return true;
    };
    let start = first.start as usize;
    let end = last.start as usize + last.len as usize;
    let stretch = source.get(start..end).unwrap_or_default();
    let longest = spans.iter().map(|span| span.len).max().unwrap_or(0);
    match place {
        Place::EndToEnd => is_text_in_one(stretch, || {
            spans.iter().all(|span| begins_a_character(source, span.start as usize))
        }),
        Place::BehindLengths if longest < ASCII && is_text_in_one(stretch, || true) => true,
        // Bytes between the values may be anything; if all are ASCII, so are the values.
        Place::Apart if stretch.is_ascii() => true,
        _ => spans.iter().all(|span| simdutf8::basic::from_utf8(span.slice(source)).is_ok()),
    }
}

/// Lengths below this are ASCII bytes, so that no character reaches from one value to the next.
pub(super) const ASCII: u32 = 128;

pub(super) fn is_text_end_to_end(values: EndToEnd<'_>) -> bool {
    is_text_in_one(values.stretch(), || {
        values.spans().all(|span| begins_a_character(values.source, span.start as usize))
    })
}

/// Whether values that lie in one stretch are text: the stretch is UTF-8, and no value begins
/// inside a character, which ASCII rules out by itself.
pub(super) fn is_text_in_one(stretch: &[u8], begin_characters: impl FnOnce() -> bool) -> bool {
    stretch.is_ascii() || (simdutf8::basic::from_utf8(stretch).is_ok() && begin_characters())
}

/// Whether the byte at `at`, if there is one, does not continue a UTF-8 sequence.
pub(super) fn begins_a_character(source: &[u8], at: usize) -> bool {
    source.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)
}
