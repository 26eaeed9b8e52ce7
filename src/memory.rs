//! Allocates what a file or a batch sizes: where the system has no memory, that is an error, and
//! not the end of the process.
//!
//! Memory within a [`Budget`](crate::limits::Budget) may still be more than there is.

use std::collections::{HashMap, TryReserveError};

use arrow_schema::DataType;
use bytes::Bytes;

use crate::error::{Error, LimitKind, Result};

/// The system has no memory.
impl From<TryReserveError> for Error {
    #[cold]
    fn from(error: TryReserveError) -> Self {
        Self::limit(LimitKind::Memory, format_args!("the system has no memory left: {error}"))
    }
}

/// Bytes of an array of nulls: of its slots and their validity, at most. A type that a file states
/// can be large.
pub fn bytes_of_nulls(data_type: &DataType, slots: usize) -> usize {
    let bits = bits_of_null(data_type).saturating_mul(slots as u64);
    usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX)
}

fn bits_of_null(data_type: &DataType) -> u64 {
    use DataType as D;
    let bits = |bytes: usize| 8 * bytes as u64;
    let own = match data_type {
        D::Null => 0,
        D::Boolean => 1,
        D::FixedSizeBinary(size) => bits(usize::try_from(*size).unwrap_or(0)),
        D::FixedSizeList(field, size) => {
            bits_of_null(field.data_type()).saturating_mul(u64::try_from(*size).unwrap_or(0))
        }
        D::Struct(fields) => {
            let fields = fields.iter().map(|field| bits_of_null(field.data_type()));
            fields.fold(0, u64::saturating_add)
        }
        D::Dictionary(keys, _) => bits_of_null(keys),
        D::RunEndEncoded(ends, values) => {
            bits_of_null(ends.data_type()).saturating_add(bits_of_null(values.data_type()))
        }
        // Offsets.
        D::Utf8 | D::Binary | D::List(_) | D::Map(..) => bits(4),
        // Those of 64 bits, and of 32 bits with sizes.
        D::LargeUtf8 | D::LargeBinary | D::LargeList(_) | D::ListView(_) => bits(8),
        // Views, and offsets of 64 bits with sizes.
        other => bits(other.primitive_width().unwrap_or(16)),
    };
    own.saturating_add(1)
}

/// The slots for which Arrow's `MutableArrayData` may allocate memory beforehand: none if there are
/// lists below, because it allocates as many elements of each, whatever their size and number.
pub(crate) fn slots_beforehand(data_type: &DataType, slots: usize) -> usize {
    if has_lists(data_type) { 0 } else { slots }
}

fn has_lists(data_type: &DataType) -> bool {
    use DataType as D;
    match data_type {
        D::List(_) | D::LargeList(_) | D::ListView(_) | D::LargeListView(_) | D::Map(..) => true,
        D::FixedSizeList(field, _) => has_lists(field.data_type()),
        D::Struct(fields) => fields.iter().any(|field| has_lists(field.data_type())),
        D::RunEndEncoded(_, values) => has_lists(values.data_type()),
        _ => false,
    }
}

/// The system has no memory for something.
#[cold]
pub(crate) fn none_for(what: &str) -> Error {
    Error::limit(LimitKind::Memory, format_args!("the system has no memory left for {what}"))
}

/// An empty vector with capacity for exactly `n` values.
///
/// # Errors
/// `Limit(Memory)` if the system has no memory; so for all of this module.
#[inline]
pub(crate) fn vec_for<T>(n: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(n)?;
    Ok(out)
}

/// `n` times the same value.
pub(crate) fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut out = vec_for(n)?;
    out.resize(n, value);
    Ok(out)
}

/// The values of a slice.
pub(crate) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut out = vec_for(values.len())?;
    out.extend_from_slice(values);
    Ok(out)
}

/// Bytes that will not grow, and take no more memory than they are.
pub(crate) fn frozen(bytes: Vec<u8>) -> Result<Bytes> {
    Ok(match bytes.len() == bytes.capacity() {
        true => bytes.into(),
        false => copied(&bytes)?.into(),
    })
}

/// Clones of the values of a slice. What a clone allocates itself is not asked for.
pub(crate) fn cloned<T: Clone>(values: &[T]) -> Result<Vec<T>> {
    let mut out = vec_for(values.len())?;
    out.extend_from_slice(values);
    Ok(out)
}

/// A copy of a text.
pub(crate) fn text(text: &str) -> Result<String> {
    let mut out = String::new();
    out.try_reserve_exact(text.len())?;
    out.push_str(text);
    Ok(out)
}

/// Copies of texts, by their keys.
pub(crate) fn texts<'a>(
    pairs: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<HashMap<String, String>> {
    let mut out = HashMap::new();
    for (key, value) in pairs {
        out.try_reserve(1)?;
        out.insert(text(key)?, text(value)?);
    }
    Ok(out)
}

/// The text of bytes; a replacement character stands for what is not UTF-8.
pub(crate) fn lossy_text(bytes: &[u8]) -> Result<String> {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.try_reserve(chunk.valid().len() + char::REPLACEMENT_CHARACTER.len_utf8())?;
        out.push_str(chunk.valid());
        out.extend((!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER));
    }
    Ok(out)
}

/// The values of an iterator.
pub(crate) fn collected<T>(values: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut out = Vec::new();
    extend(&mut out, values)?;
    Ok(out)
}

/// The values of an iterator, or its first error.
pub(crate) fn try_collected<T, E: From<Error>>(
    values: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    let values = values.into_iter();
    let mut out = vec_for(values.size_hint().0)?;
    for value in values {
        push(&mut out, value?)?;
    }
    Ok(out)
}

/// Makes room for `n` values more, so that what appends them takes no memory.
#[inline]
pub(crate) fn room<T>(out: &mut Vec<T>, n: usize) -> Result<()> {
    if out.capacity() - out.len() < n {
        return grow(out, n);
    }
    Ok(())
}

/// Apart from the loops that hardly ever come here.
#[cold]
#[inline(never)]
fn grow<T>(out: &mut Vec<T>, n: usize) -> Result<()> {
    Ok(out.try_reserve(n)?)
}

/// As [`room`], where a kernel writes whole vectors.
#[inline]
pub(crate) fn room_for_vectors<T>(out: &mut Vec<T>, n: usize) -> Result<()> {
    const { assert!(size_of::<T>() > 0) };
    room(out, n.saturating_add(MAX_VECTOR / size_of::<T>()))
}

/// Bytes of the largest vector register.
const MAX_VECTOR: usize = 64;

/// Appends a value.
#[inline]
pub(crate) fn push<T>(out: &mut Vec<T>, value: T) -> Result<()> {
    room(out, 1)?;
    out.push(value);
    Ok(())
}

/// Appends the values of an iterator; those before an error stay.
pub(crate) fn extend<T>(out: &mut Vec<T>, values: impl IntoIterator<Item = T>) -> Result<()> {
    let values = values.into_iter();
    let (least, most) = values.size_hint();
    out.try_reserve(least)?;
    if most == Some(least) {
        // Without a look at the capacity before each value.
        out.extend(values);
        return Ok(());
    }
    for value in values {
        push(out, value)?;
    }
    Ok(())
}

/// Appends the values of a slice.
pub(crate) fn append<T: Copy>(out: &mut Vec<T>, values: &[T]) -> Result<()> {
    out.try_reserve(values.len())?;
    out.extend_from_slice(values);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn more_than_all_memory_is_an_error() {
        let endless = || std::iter::repeat_n(0u64, usize::MAX / 8);
        let results = [
            vec_for::<u64>(usize::MAX / 8).map(drop),
            filled(7u64, usize::MAX / 8).map(drop),
            collected(endless()).map(drop),
            try_collected(endless().map(Ok::<_, Error>)).map(drop),
            extend(&mut vec![1], endless()),
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Limit(LimitKind::Memory));
        }
    }

    #[test]
    fn values_come_in_order_and_an_error_ends_them() {
        assert_eq!(filled('a', 3).unwrap(), ['a'; 3]);
        assert_eq!(copied(&[1, 2, 3]).unwrap(), [1, 2, 3]);
        let named = HashMap::from([("a".to_owned(), "b".to_owned()), ("c".into(), "".into())]);
        assert_eq!(texts(named.iter()).unwrap(), named);
        let keys: Vec<String> = named.into_keys().collect();
        assert_eq!(cloned(&keys).unwrap(), keys);
        assert_eq!(collected((0..9).filter(|i| i % 2 == 0)).unwrap(), [0, 2, 4, 6, 8]);
        let mut out = vec![1];
        push(&mut out, 2).unwrap();
        append(&mut out, &[3, 4]).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        let odd = |i| if i < 3 { Ok(i) } else { Err(Error::internal("3")) };
        assert_eq!(try_collected((0..3).map(odd)).unwrap(), [0, 1, 2]);
        assert_eq!(try_collected((0..9).map(odd)).unwrap_err().kind(), ErrorKind::Internal);
    }
}
