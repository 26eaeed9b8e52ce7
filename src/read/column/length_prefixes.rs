//! Removes the lengths that some files have before FIXED_LEN_BYTE_ARRAY values, against the format.
//!
//! arrow-rs before 60.1 writes `Dictionary(_, FixedSizeBinary)` as if it were BYTE_ARRAY
//! (apache/arrow-rs#11261): each entry of the dictionary page, and each PLAIN value, follows its
//! length as `u32le`. `created_by` does not tell these files, because other writers copy pages, so
//! the bytes decide: `n` values take `n * width` bytes, or `n * (width + 4)` with lengths. Trap: a
//! page of another number of values may have either length, so `n` must be known.

use bytes::Bytes;

use crate::error::{Error, Result, Spec};
use crate::limits::{Budget, Reservation};
use crate::memory;

/// Whether there may be lengths before values of `width` bytes, by the first bytes of a page.
pub(super) fn may_be_there(start: &[u8], width: usize) -> bool {
    let mut first = start.chunks(stride(width)).take(PROBED);
    !start.is_empty() && first.all(|value| has_length(value, width))
}

/// Whether the bytes of a page may be other than at most `max` values of `width` bytes, one after
/// the other; where this is false, they are, however many there are.
pub(super) fn are_in_doubt(bytes: &[u8], width: usize, max: usize) -> bool {
    !bytes.len().is_multiple_of(width.max(1))
        || bytes.len() > max.saturating_mul(width)
        || may_be_there(bytes, width)
}

/// The bytes of `n` values of `width` bytes, without lengths before them; with the memory that they
/// were copied into, if there were some.
///
/// # Errors
/// `Malformed` if the bytes are of another number of values, or more than the values;
/// `Limit(Memory)` if there is no memory for the copy.
pub(super) fn without(
    bytes: Bytes,
    width: usize,
    n: usize,
    budget: &Budget,
) -> Result<(Bytes, Option<Reservation>)> {
    let len = n.checked_mul(width);
    if len == Some(bytes.len()) {
        return Ok((bytes, None));
    }
    let values = bytes.chunks(stride(width));
    let has_lengths = n.checked_mul(stride(width)) == Some(bytes.len())
        && values.clone().all(|value| has_length(value, width));
    let Some(len) = len.filter(|_| has_lengths) else {
        let expected = format_args!("{n} times {width}");
        let spec = Spec::Encodings("PLAIN");
        return Err(Error::mismatch(spec, "bytes of the values", expected, bytes.len()));
    };
    let memory = budget.take_for("fixed-length values without their lengths", len)?;
    let mut out = memory::vec_for(len)?;
    for value in values {
        out.extend_from_slice(value.get(size_of::<u32>()..).unwrap_or_default());
    }
    Ok((out.into(), Some(memory)))
}

/// Values that are looked at before all values of a page are counted.
const PROBED: usize = 5;

/// Bytes of a value and its length.
fn stride(width: usize) -> usize {
    width.saturating_add(size_of::<u32>())
}

fn has_length(value: &[u8], width: usize) -> bool {
    value.first_chunk().is_none_or(|len| u32::from_le_bytes(*len) as usize == width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, LimitKind};

    fn with_lengths(values: &[&[u8]]) -> Vec<u8> {
        let with_length = |value: &&[u8]| [&(value.len() as u32).to_le_bytes(), *value].concat();
        values.iter().flat_map(with_length).collect()
    }

    #[test]
    fn lengths_are_removed_and_values_that_look_like_lengths_stay() {
        let budget = Budget::new(1 << 20);
        let values: [&[u8]; 3] = [b"ABCD", b"wxyz", &[4, 0, 0, 0]];
        let prefixed = with_lengths(&values);
        assert!(are_in_doubt(&prefixed, 4, 9));
        let (bytes, memory) = without(prefixed.clone().into(), 4, 3, &budget).unwrap();
        assert_eq!(bytes, values.concat());
        assert_eq!(memory.unwrap().bytes(), 12);
        // As many bytes, of twice as many values.
        let (bytes, memory) = without(prefixed.clone().into(), 4, 6, &budget).unwrap();
        assert_eq!(bytes, prefixed);
        assert!(memory.is_none());
        assert!(!are_in_doubt(b"ABCDwxyz", 4, 2));
        assert!(are_in_doubt(b"ABCDwxy", 4, 2) && are_in_doubt(b"ABCDwxyz", 4, 1));
        assert!(are_in_doubt(&with_lengths(&[b"", b""]), 0, 2));
        assert!(without(vec![0; 8].into(), 0, 2, &budget).unwrap().0.is_empty());
    }

    #[test]
    fn other_lengths_are_malformed_and_the_copy_is_counted() {
        let budget = Budget::new(11);
        let malformed = ErrorKind::Malformed(Spec::Encodings("PLAIN"));
        for values in [[&b"ABC"[..], b"vwxyz"], [b"ABCD", b"wxy"], [b"ABCD", b"vwxyz"]] {
            let error = without(with_lengths(&values).into(), 4, 2, &budget).unwrap_err();
            assert_eq!(error.kind(), malformed, "{values:?}");
        }
        for (n, width) in [(1, 4), (3, 4), (usize::MAX, 4), (2, usize::MAX)] {
            let error = without(vec![0; 8].into(), width, n, &budget).unwrap_err();
            assert_eq!(error.kind(), malformed, "{n} times {width}");
        }
        let three = with_lengths(&[&b"ABCD"[..]; 3]);
        let error = without(three.into(), 4, 3, &budget).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
    }
}
