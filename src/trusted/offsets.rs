//! [`OffsetStrings`]: byte strings end to end in one buffer, and where each ends.

use std::collections::TryReserveError;
use std::sync::Arc;

use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{
    Array, ArrayRef, GenericBinaryArray, GenericByteArray, GenericByteViewArray,
    GenericStringArray, OffsetSizeTrait,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::layout_check::{checked_nulls, not_text, too_long, wrong_type};
use super::text::{self, Place, TextCheck, begins_a_character, is_text_in_one};
use crate::encoding::{EndToEnd, ValueSpan, plain};
use crate::error::{Error, Result};
use crate::free_lists::FreeLists;
use crate::memory;
use crate::simd::bitmap::Bitmap;
use crate::simd::native::PlainOldData;
use crate::simd::strings::{Entries, OffsetInt};
use crate::simd::{expand, spans as kernels};

/// An offset of the byte arrays.
pub(crate) trait Offset: OffsetSizeTrait + Default + PlainOldData + OffsetInt {
    /// Appends the ends of values of these lengths after the last offset; `None`, and nothing
    /// appended, on overflow.
    fn append_offsets(spans: &[ValueSpan], offsets: &mut Vec<Self>) -> Option<()>;

    /// As [`Offset::append_offsets`], from the lengths alone; none is negative.
    fn append_ends(lengths: &[i32], offsets: &mut Vec<Self>) -> Option<()>;
}

impl Offset for i32 {
    fn append_offsets(spans: &[ValueSpan], offsets: &mut Vec<Self>) -> Option<()> {
        kernels::append_offsets_i32(spans, offsets)
    }

    fn append_ends(lengths: &[i32], offsets: &mut Vec<Self>) -> Option<()> {
        kernels::append_ends_i32(lengths, offsets)
    }
}

impl Offset for i64 {
    fn append_offsets(spans: &[ValueSpan], offsets: &mut Vec<Self>) -> Option<()> {
        kernels::append_offsets_i64(spans, offsets)
    }

    fn append_ends(lengths: &[i32], offsets: &mut Vec<Self>) -> Option<()> {
        kernels::append_ends_i64(lengths, offsets)
    }
}

/// Byte strings that are to become an array with offsets.
///
/// Whatever is called, the offsets begin with 0, never fall, and end at the length of the payload;
/// and `is_text` is true only while every value is UTF-8. That is all that
/// [`OffsetStrings::finish`] needs to make an array without looking at the values again.
pub(crate) struct OffsetStrings<O> {
    /// The end of every value, after the 0 that the first begins at; empty before the first.
    offsets: Vec<O>,
    payload: Vec<u8>,
    is_text: bool,
}

impl<O: Offset> OffsetStrings<O> {
    pub(crate) fn new() -> Self {
        Self { offsets: Vec::new(), payload: Vec::new(), is_text: true }
    }

    fn begin(&mut self) {
        if self.offsets.is_empty() {
            self.offsets.push(O::default());
        }
    }

    /// Reserves memory for the ends of `slots` values.
    pub(crate) fn reserve(&mut self, slots: usize, free_lists: &FreeLists) -> Result<()> {
        free_lists.reserve(&mut self.offsets, slots.saturating_add(1))?;
        self.begin();
        Ok(())
    }

    /// Makes room for the ends of `n` values more.
    pub(crate) fn room_for(&mut self, n: usize) -> Result<()> {
        memory::room(&mut self.offsets, n.saturating_add(1))
    }

    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Bytes of the values so far.
    pub(crate) fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Bytes of memory held.
    pub(crate) fn bytes_held(&self) -> usize {
        self.offsets.capacity() * size_of::<O>() + self.payload.capacity()
    }

    /// The memory of the payload, to make room in.
    pub(crate) fn payload_memory(&mut self) -> Memory<'_> {
        Memory(&mut self.payload)
    }

    /// Appends the values of the spans; false, and nothing appended, if they should be text and are
    /// not.
    ///
    /// # Errors
    /// `Limit` if an end does not fit the offsets, or there is no memory.
    ///
    /// # Panics
    /// If a span reaches beyond `source`.
    pub(crate) fn append(
        &mut self,
        source: &[u8],
        spans: &[ValueSpan],
        place: Place,
        check: TextCheck,
    ) -> Result<bool> {
        let Some(is_text) = check.passes(|| text::is_text(source, spans, place)) else {
            return Ok(false);
        };
        self.begin();
        let before = self.payload.len();
        match end_to_end(source, spans, place) {
            Some(enclosing) => self.payload.extend_from_slice(enclosing),
            None => {
                kernels::append_payload(source, spans, &mut self.payload)?;
            }
        }
        if O::append_offsets(spans, &mut self.offsets).is_none() {
            self.payload.truncate(before);
            return Err(too_long());
        }
        self.is_text &= is_text;
        Ok(true)
    }

    /// Appends values that lie end to end; false, and nothing appended, if they should be text and
    /// are not.
    ///
    /// # Errors
    /// `Limit` if an end does not fit the offsets; `Internal` if the lengths are not those of what
    /// they lie in.
    pub(crate) fn append_lengths(
        &mut self,
        values: EndToEnd<'_>,
        check: TextCheck,
    ) -> Result<bool> {
        self.begin();
        let (first, enclosing) = (self.offsets.len(), values.all_bytes());
        O::append_ends(values.lengths, &mut self.offsets).ok_or_else(too_long)?;
        let end = self.offsets.last().map_or(0, |end| end.as_usize());
        if !values.is_whole() || end != self.payload.len() + enclosing.len() {
            self.offsets.truncate(first);
            return Err(wrong_lengths());
        }
        let Some(is_text) = check.passes(|| text::is_text_end_to_end(values)) else {
            self.offsets.truncate(first);
            return Ok(false);
        };
        self.payload.extend_from_slice(enclosing);
        self.is_text &= is_text;
        Ok(true)
    }

    /// Appends up to `n` next values of a PLAIN page, and returns how many: up to the first that is
    /// not there, does not fit into the memory of the payload, or would end after `max` bytes of
    /// it. None if they should be text and are not.
    pub(crate) fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        max: usize,
        check: TextCheck,
    ) -> usize {
        self.begin();
        let (mark, before, first) = (page.mark(), self.payload.len(), self.offsets.len());
        let done = page.read_strings(n, max, &mut self.payload, &mut self.offsets);
        let added = self.payload.get(before..).unwrap_or_default();
        let ends = self.offsets.get(first..).unwrap_or_default();
        let begin_characters =
            || ends.iter().all(|end| begins_a_character(added, end.as_usize() - before));
        match check.passes(|| is_text_in_one(added, begin_characters)) {
            Some(is_text) => {
                self.is_text &= is_text;
                done
            }
            None => {
                self.payload.truncate(before);
                self.offsets.truncate(first);
                page.restart_carefully(mark);
                0
            }
        }
    }

    /// Appends the entries of indices, and returns how many: up to the first that does not fit into
    /// the memory of the payload, would end after `max` bytes of it, or is no entry.
    pub(crate) fn append_entries(
        &mut self,
        entries: &StringEntries,
        indices: &[u32],
        max: usize,
    ) -> usize {
        self.begin();
        self.is_text &= entries.is_text;
        entries.entries.append(indices, max, &mut self.payload, &mut self.offsets)
    }

    /// Appends the values of an array of views, those of nulls too.
    ///
    /// # Errors
    /// `Limit` if an end does not fit the offsets, or there is no memory.
    pub(crate) fn append_views<V: ByteViewType>(
        &mut self,
        array: &GenericByteViewArray<V>,
    ) -> Result<()> {
        self.begin();
        let (first, before) = (self.offsets.len(), self.payload.len());
        let lengths = memory::collected(array.lengths().map(u32::cast_signed))?;
        memory::room(&mut self.offsets, lengths.len())?;
        O::append_ends(&lengths, &mut self.offsets).ok_or_else(too_long)?;
        let end = self.offsets.last().map_or(0, |end| end.as_usize());
        if let Err(error) = self.payload.try_reserve_exact(end - before) {
            self.offsets.truncate(first);
            return Err(error.into());
        }
        for i in 0..array.len() {
            self.payload.extend_from_slice(array.value(i).as_ref());
        }
        // The type of the array decides whether it holds text.
        self.is_text &= V::IS_UTF8;
        Ok(())
    }

    /// Moves the last `values` values to the set bits of `validity[first..first + slots]`; a null
    /// has no bytes.
    ///
    /// # Panics
    /// If there are fewer than `values` values, or not that many bits are set.
    pub(crate) fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        self.begin();
        let valid = validity.count_ones(first..first + slots);
        assert!(values == valid && values <= self.len(), "as many values as slots are valid");
        let start = self.offsets.len() - values;
        // A null ends where the value before it ends.
        expand::spread_ends(&mut self.offsets, start, validity, first, slots);
    }

    /// The array of the values so far; the next one begins empty.
    ///
    /// # Errors
    /// `Internal` if the type is none of strings or bytes with these offsets, or one of text where
    /// not all values are known to be, or the nulls are not as many as the values.
    pub(crate) fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        free_lists: &FreeLists,
    ) -> Result<ArrayRef> {
        self.begin();
        let Self { offsets, mut payload, is_text } = std::mem::replace(self, Self::new());
        // The last batch of a chunk may leave most of it unused.
        if payload.capacity() > payload.len() + payload.len() / 4 + (64 << 10) {
            payload = free_lists.fitted(payload);
        }
        let nulls = checked_nulls(nulls, offsets.len() - 1)?;
        assert!(
            offsets.last().is_some_and(|end| end.as_usize() == payload.len()),
            "the offsets end with the payload"
        );
        let (offsets, payload) = (free_lists.pooled(offsets), free_lists.pooled(payload));
        // SAFETY: the offsets begin with 0 and never fall, by the invariant of this type.
        let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::<O>::from(offsets)) };
        let is_large = matches!(data_type, DataType::LargeUtf8 | DataType::LargeBinary);
        Ok(match data_type {
            DataType::Utf8 | DataType::LargeUtf8 if is_large == O::IS_LARGE => {
                if !is_text {
                    return Err(not_text());
                }
                // SAFETY: the offsets lie within the payload, which they end with, and every value
                // is UTF-8, by the invariant of this type. There are as many nulls as values.
                Arc::new(unsafe { GenericStringArray::<O>::new_unchecked(offsets, payload, nulls) })
            }
            DataType::Binary | DataType::LargeBinary if is_large == O::IS_LARGE => {
                // SAFETY: the offsets lie within the payload, which they end with. There are as
                // many nulls as values.
                Arc::new(unsafe { GenericBinaryArray::<O>::new_unchecked(offsets, payload, nulls) })
            }
            other => return Err(wrong_type(other)),
        })
    }
}

/// The one stretch of `source` that spans are, if they are.
fn end_to_end<'a>(source: &'a [u8], spans: &[ValueSpan], place: Place) -> Option<&'a [u8]> {
    let (Place::EndToEnd, Some(first), Some(last)) = (place, spans.first(), spans.last()) else {
        return None;
    };
    let end = |span: &ValueSpan| u64::from(span.start) + u64::from(span.len);
    // One after the other, without a branch for each.
    let joined = spans
        .iter()
        .zip(spans.iter().skip(1))
        .fold(true, |all, (span, next)| all & (end(span) == u64::from(next.start)));
    let enclosing = source.get(first.start as usize..usize::try_from(end(last)).ok()?);
    enclosing.filter(|_| joined)
}

/// The memory of a buffer, whose values cannot be changed through it.
pub(crate) struct Memory<'a>(&'a mut Vec<u8>);

impl<'a> Memory<'a> {
    /// The memory of a vector.
    pub(crate) fn new(values: &'a mut Vec<u8>) -> Self {
        Self(values)
    }

    /// Bytes that are values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes that are held.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Takes memory for `n` bytes that was used before, if there is none yet.
    pub(crate) fn take_used(&mut self, n: usize, free_lists: &FreeLists) -> Result<()> {
        if self.0.capacity() == 0 {
            *self.0 = free_lists.take(n)?;
        }
        Ok(())
    }

    /// Reserves memory for `n` bytes more.
    pub(crate) fn try_reserve_exact(&mut self, n: usize) -> Result<(), TryReserveError> {
        self.0.try_reserve_exact(n)
    }
}

/// The entries of a dictionary of byte strings, and whether all are UTF-8.
pub(crate) struct StringEntries {
    entries: Entries,
    is_text: bool,
}

impl StringEntries {
    /// The values of the spans; `None` if they should be text and are not.
    ///
    /// # Panics
    /// If a span reaches beyond `source`.
    pub(crate) fn new(
        source: &Bytes,
        spans: &[ValueSpan],
        place: Place,
        check: TextCheck,
    ) -> Option<Self> {
        let is_text = check.passes(|| text::is_text(source, spans, place))?;
        Some(Self { entries: Entries::new(source, spans), is_text })
    }

    /// The values of an array, those of nulls too.
    pub(crate) fn from_array<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> Self {
        let span = |ends: &[i32]| match *ends {
            // Offsets of an array are not negative and never fall.
            [start, end] => {
                ValueSpan { start: start.cast_unsigned(), len: (end - start).cast_unsigned() }
            }
            _ => ValueSpan::default(),
        };
        let spans: Vec<ValueSpan> = array.value_offsets().windows(2).map(span).collect();
        let source = Bytes::from_owner(ScalarBuffer::<u8>::from(array.values().clone()));
        let is_text = matches!(T::DATA_TYPE, DataType::Utf8 | DataType::LargeUtf8);
        Self { entries: Entries::new(&source, &spans), is_text }
    }

    /// Bytes that `n` entries take at most, besides those that they share with their source.
    pub(crate) fn max_bytes(n: usize) -> usize {
        Entries::max_bytes(n)
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the entries of `indices`; indices beyond the entries count as none.
    pub(crate) fn total(&self, indices: &[u32]) -> u64 {
        self.entries.total(indices)
    }
}

#[cold]
pub(super) fn wrong_lengths() -> Error {
    Error::internal("the lengths of byte strings must add up to the bytes that they lie in")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use arrow_array::{BinaryArray, StringArray};

    fn span(start: u32, len: u32) -> ValueSpan {
        ValueSpan { start, len }
    }

    fn finish(strings: &mut OffsetStrings<i32>, data_type: &DataType) -> Result<ArrayRef> {
        let array = strings.finish(data_type, None, &FreeLists::none())?;
        array.to_data().validate_full().unwrap();
        Ok(array)
    }

    #[test]
    fn spans_are_copied_wherever_they_are_said_to_lie() {
        let source = b"abcdefgh";
        for place in [Place::BehindLengths, Place::EndToEnd, Place::Apart] {
            for spans in
                [&[span(1, 2), span(3, 2)][..], &[span(5, 3), span(1, 2)], &[], &[span(2, 9)]]
            {
                let mut strings = OffsetStrings::<i32>::new();
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    strings.append(source, spans, place, TextCheck::Utf8).unwrap()
                }));
                assert_eq!(done.is_err(), spans == [span(2, 9)], "{place:?} {spans:?}");
                let array = finish(&mut strings, &DataType::Utf8).unwrap();
                if done.is_ok() {
                    let expected: Vec<&[u8]> =
                        spans.iter().map(|span| span.slice(source)).collect();
                    let values: Vec<&[u8]> = (0..array.len())
                        .map(|i| {
                            let array = array.as_any().downcast_ref::<StringArray>().unwrap();
                            array.value(i).as_bytes()
                        })
                        .collect();
                    assert_eq!(values, expected, "{place:?}");
                }
            }
        }
    }

    #[test]
    fn lengths_that_do_not_add_up_are_refused() {
        let source = Bytes::from("ab–cdefghijklmnopqr");
        let mut strings = OffsetStrings::<i32>::new();
        let mut append = |lengths: &[i32], total, start| {
            let values = EndToEnd { lengths, total, source: &source, start, page: None };
            strings.append_lengths(values, TextCheck::Utf8)
        };
        let whole = source.len() as u32;
        for (lengths, total, start) in
            [(&[5][..], 4, 0), (&[5], 6, 0), (&[5], 5, whole - 4), (&[5], 5, u32::MAX - 2)]
        {
            let error = append(lengths, total, start).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        }
        assert!(append(&[-1], whole, 0).is_err(), "too long for the offsets");
        assert!(append(&[-1, 1], 0, 0).is_err(), "too long for the offsets");
        assert!(!append(&[3, 2], 5, 0).unwrap(), "half a character");
        assert!(append(&[5, 16], 21, 0).unwrap());
        assert!(append(&[], 0, whole).unwrap());
        let array = finish(&mut strings, &DataType::Utf8).unwrap();
        assert_eq!(
            array.as_ref(),
            &StringArray::from(vec!["ab–", "cdefghijklmnopqr"]) as &dyn Array
        );
    }

    #[test]
    fn bytes_never_become_text() {
        let mut strings = OffsetStrings::<i32>::new();
        let append = |strings: &mut OffsetStrings<i32>, check| {
            strings.append(b"\xFFab", &[span(0, 1)], Place::Apart, check).unwrap()
        };
        assert!(!append(&mut strings, TextCheck::Utf8));
        assert!(append(&mut strings, TextCheck::Bytes));
        let error = finish(&mut strings, &DataType::Utf8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert_eq!(finish(&mut strings, &DataType::Utf8).unwrap().len(), 0, "it begins anew");
        // Nor do those of arrays of bytes.
        let array = BinaryArray::from(vec![&b"\xFF"[..]]);
        strings.payload_memory().try_reserve_exact(1000).unwrap();
        assert_eq!(strings.append_entries(&StringEntries::from_array(&array), &[0, 0, 1], 1000), 2);
        assert!(finish(&mut strings, &DataType::Utf8).is_err());
        let views = arrow_array::BinaryViewArray::from(vec![&b"\xFF"[..]]);
        strings.append_views(&views).unwrap();
        assert!(finish(&mut strings, &DataType::Utf8).is_err());
        strings.append_views(&views).unwrap();
        assert_eq!(finish(&mut strings, &DataType::Binary).unwrap().len(), 1);
        // Nor an array of other offsets.
        for wrong in [DataType::LargeUtf8, DataType::LargeBinary, DataType::Utf8View] {
            assert!(finish(&mut strings, &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_spread_only_to_as_many_slots() {
        let mut validity = Bitmap::default();
        validity.append_run(true, 2);
        validity.append_run(false, 2);
        for (first, slots, values) in [(0, 4, 1), (0, 4, 3), (1, 3, 2), (2, 2, 1)] {
            let mut strings = OffsetStrings::<i32>::new();
            strings.append(b"ab", &[span(0, 1); 2], Place::Apart, TextCheck::Utf8).unwrap();
            let spread = std::panic::AssertUnwindSafe(|| {
                strings.spread(&validity, first, slots, values);
            });
            assert!(std::panic::catch_unwind(spread).is_err(), "{first} {slots} {values}");
            assert_eq!(finish(&mut strings, &DataType::Utf8).unwrap().len(), 2, "as it was");
        }
        let mut strings = OffsetStrings::<i32>::new();
        strings.append(b"ab", &[span(0, 1); 2], Place::Apart, TextCheck::Utf8).unwrap();
        strings.spread(&validity, 0, 4, 2);
        let nulls = Some(NullBuffer::from(vec![true, true, false]));
        let wrong = strings.finish(&DataType::Utf8, nulls, &FreeLists::none()).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Internal, "{wrong}");
    }
}
