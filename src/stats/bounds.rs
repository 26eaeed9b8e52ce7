//! Makes bounds for storage: long ones are truncated, and remain true bounds.
//!
//! Spec: `parquet.thrift`, Statistics.

use crate::format::LogicalType;
use crate::schema::{Leaf, Physical};

/// A bound as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBound {
    /// PLAIN, without a length.
    pub bytes: Vec<u8>,
    /// Whether a value is equal to it.
    pub exact: bool,
}

/// How a bound may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundCut {
    /// At a character boundary, so that it stays text.
    Text,
    /// Anywhere.
    Bytes,
    /// Not at all: a part of it would be no value of the type.
    Never,
}

impl BoundCut {
    /// How bounds of a leaf may be cut.
    pub(crate) fn for_leaf(leaf: &Leaf) -> Self {
        match (&leaf.logical, leaf.physical) {
            (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _) => Self::Text,
            (None | Some(LogicalType::Bson), Physical::ByteArray) => Self::Bytes,
            _ => Self::Never,
        }
    }
}

/// A lower bound of at most `max` bytes, if the value may be cut.
pub(crate) fn lower(value: &[u8], cut: BoundCut, max: usize) -> StoredBound {
    match cut_to(value, cut, max) {
        Some(bytes) => StoredBound { bytes: bytes.to_vec(), exact: false },
        None => StoredBound { bytes: value.to_vec(), exact: true },
    }
}

/// An upper bound of at most `max` bytes, if the value may be truncated and the rest can be
/// increased.
pub(crate) fn upper(value: &[u8], cut: BoundCut, max: usize) -> StoredBound {
    let greater = cut_to(value, cut, max).and_then(|bytes| match cut {
        BoundCut::Text => std::str::from_utf8(bytes).ok().and_then(next_text),
        _ => next_bytes(bytes),
    });
    match greater {
        Some(bytes) => StoredBound { bytes, exact: false },
        None => StoredBound { bytes: value.to_vec(), exact: true },
    }
}

/// The front of a value that is too long.
fn cut_to(value: &[u8], cut: BoundCut, max: usize) -> Option<&[u8]> {
    if value.len() <= max || cut == BoundCut::Never {
        return None;
    }
    let front = value.get(..max)?;
    if cut == BoundCut::Bytes {
        return Some(front);
    }
    let text = std::str::from_utf8(value).ok()?;
    let end = (0..=max).rev().find(|&at| text.is_char_boundary(at))?;
    (end > 0).then(|| value.get(..end))?
}

/// The least string that is greater than all that begin with these bytes.
fn next_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = bytes.get(..=last)?.to_vec();
    *next.last_mut()? += 1;
    Some(next)
}

/// Like [`next_bytes`], by characters.
fn next_text(text: &str) -> Option<Vec<u8>> {
    for (at, c) in text.char_indices().rev() {
        let next = match u32::from(c) + 1 {
            0xD800 => '\u{E000}',
            code => match char::from_u32(code) {
                Some(next) => next,
                None => continue,
            },
        };
        let mut out = text.get(..at)?.to_owned();
        out.push(next);
        return Some(out.into_bytes());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        // "é" takes two bytes: a cut at 3 falls into the second one.
        assert_eq!(lower("aéé".as_bytes(), BoundCut::Text, 4).bytes, "aé".as_bytes());
        assert_eq!(upper("aéé".as_bytes(), BoundCut::Text, 4).bytes, "aê".as_bytes());
        assert!(lower(b"abc", BoundCut::Text, 3).exact);
        assert_eq!(upper("\u{D7FF}x".as_bytes(), BoundCut::Text, 3).bytes, "\u{E000}".as_bytes());
        // The last character cannot grow: the one before does.
        assert_eq!(upper("a\u{10FFFF}x".as_bytes(), BoundCut::Text, 5).bytes, b"b");
        let max = "\u{10FFFF}\u{10FFFF}";
        assert_eq!(
            upper(max.as_bytes(), BoundCut::Text, 4),
            StoredBound { bytes: max.into(), exact: true }
        );
        // Nothing is left of a character that is longer than the cut.
        assert!(lower("\u{10FFFF}x".as_bytes(), BoundCut::Text, 2).exact);
    }

    #[test]
    fn bytes_carry() {
        assert_eq!(upper(&[1, 0xFF, 0xFF, 7], BoundCut::Bytes, 3).bytes, [2]);
        assert_eq!(
            upper(&[0xFF; 9], BoundCut::Bytes, 3),
            StoredBound { bytes: vec![0xFF; 9], exact: true }
        );
        assert_eq!(
            lower(&[1, 2, 3], BoundCut::Bytes, 2),
            StoredBound { bytes: vec![1, 2], exact: false }
        );
        assert!(upper(&[1; 40], BoundCut::Never, 8).exact);
    }
}
