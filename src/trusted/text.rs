//! Checks whether byte strings are UTF-8: the values of a block and the bytes between them in one
//! call, if that proves each of them.

use crate::encoding::{EndToEnd, ValueSpan};

/// The promise that the strings of a file are UTF-8, so that they are not checked.
///
/// It can only be made by an unsafe function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedUtf8(());

impl TrustedUtf8 {
    /// Promises that every value of every string column that is read is UTF-8.
    ///
    /// # Safety
    /// They must be: a `str` with other bytes is undefined behaviour wherever it is used.
    #[must_use]
    pub unsafe fn promise() -> Self {
        Self(())
    }
}

/// How the strings of a builder are known to be UTF-8.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextCheck {
    /// They are not: they become an array of bytes.
    Bytes,
    /// They are checked.
    Utf8,
    /// The caller has promised it.
    Promised(TrustedUtf8),
}

impl TextCheck {
    /// Whether the values become text; `None` if they should and are not UTF-8, which `is_text`
    /// decides if they are checked.
    #[inline]
    pub(super) fn passes(self, is_text: impl FnOnce() -> bool) -> Option<bool> {
        match self {
            Self::Bytes => Some(false),
            Self::Utf8 => is_text().then_some(true),
            Self::Promised(_) => Some(true),
        }
    }
}

/// How the values of a block lie in their buffer: which check of them is worth a try. No check goes
/// by it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Each after the four bytes of its length.
    BehindLengths,
    /// Each begins where the one before it ends.
    EndToEnd,
    /// In order, with other bytes between them.
    Apart,
}

/// Lengths below this are ASCII between the values: no character reaches across them.
pub(super) const ASCII: u32 = 128;

/// Whether each of the spans is UTF-8, wherever they lie.
pub(super) fn is_text(source: &[u8], spans: &[ValueSpan], place: Place) -> bool {
    all_in_one(source, spans, place).unwrap_or(false)
        || spans.iter().all(|span| simdutf8::basic::from_utf8(span.slice(source)).is_ok())
}

/// Whether the spans are UTF-8 because all from the first to the last of them is; `None` if they do
/// not lie so.
fn all_in_one(source: &[u8], spans: &[ValueSpan], place: Place) -> Option<bool> {
    let (first, last) = (spans.first()?, spans.last()?);
    let end = |span: &ValueSpan| u64::from(span.start) + u64::from(span.len);
    let (low, high) = (first.start, end(last));
    let within =
        spans.iter().fold(true, |all, span| all & (span.start >= low && end(span) <= high));
    let start = first.start as usize;
    let enclosing = source.get(start..usize::try_from(high).ok()?).filter(|_| within)?;
    let longest = spans.iter().map(|span| span.len).max()?;
    Some(match place {
        // The bytes in between were not checked, or are no text.
        Place::Apart => enclosing.is_ascii(),
        Place::BehindLengths if longest >= ASCII => false,
        Place::EndToEnd | Place::BehindLengths => is_text_in_one(enclosing, || {
            spans.iter().all(|span| {
                let start = (span.start - low) as usize;
                begins_a_character(enclosing, start)
                    && begins_a_character(enclosing, start + span.len as usize)
            })
        }),
    })
}

/// Whether values that lie end to end are UTF-8. Their lengths must add up to their total.
pub(super) fn is_text_end_to_end(values: EndToEnd<'_>) -> bool {
    is_text_in_one(values.all_bytes(), || {
        values.spans().all(|span| begins_a_character(values.source, span.start as usize))
    })
}

/// Whether values in one stretch are text: all of them together are, and, if that is not plain to
/// see, none begins or ends inside a character.
pub(super) fn is_text_in_one(enclosing: &[u8], begin_characters: impl FnOnce() -> bool) -> bool {
    enclosing.is_ascii() || (simdutf8::basic::from_utf8(enclosing).is_ok() && begin_characters())
}

/// Whether the byte at `at`, if there is one, does not continue a UTF-8 sequence.
pub(super) fn begins_a_character(source: &[u8], at: usize) -> bool {
    source.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u32, len: u32) -> ValueSpan {
        ValueSpan { start, len }
    }

    #[test]
    fn no_place_makes_half_a_character_text() {
        let source = "aé–z".as_bytes();
        for place in [Place::BehindLengths, Place::EndToEnd, Place::Apart] {
            let is_text = |spans: &[ValueSpan]| is_text(source, spans, place);
            assert!(is_text(&[]));
            assert!(is_text(&[span(0, 1), span(1, 2), span(3, 3), span(6, 1)]));
            // Each lies between the first and the last, which are whole.
            assert!(!is_text(&[span(0, 1), span(1, 1), span(6, 1)]), "{place:?}");
            assert!(!is_text(&[span(0, 1), span(2, 1), span(6, 1)]), "{place:?}");
            assert!(!is_text(&[span(0, 1), span(4, 2), span(6, 1)]), "{place:?}");
            // Neither the first nor the last is the outermost.
            assert!(!is_text(&[span(6, 1), span(4, 1), span(6, 1)]), "{place:?}");
            assert!(!is_text(&[span(3, 3), span(0, 2), span(3, 3)]), "{place:?}");
            assert!(is_text(&[span(3, 3), span(0, 3), span(1, 2)]), "{place:?}");
        }
    }

    #[test]
    fn what_lies_between_is_no_value() {
        let source = b"ab\xFF\xFEcd";
        for place in [Place::BehindLengths, Place::EndToEnd, Place::Apart] {
            assert!(is_text(source, &[span(0, 2), span(4, 2)], place));
            assert!(!is_text(source, &[span(0, 3), span(4, 2)], place));
        }
        // A value that ends where its text does, whatever byte is next to it.
        assert!(is_text(b"ab\x80", &[span(0, 2)], Place::EndToEnd));
    }
}
