//! [`ViewStrings`]: byte strings as views, and the buffers that they point into.

use std::sync::Arc;

use arrow_array::types::ByteArrayType;
use arrow_array::{ArrayRef, BinaryViewArray, GenericByteArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::layout_check::{checked_nulls, not_text, too_long, wrong_type};
use super::offsets::{Memory, wrong_lengths};
use super::text::{self, ASCII, Place, TextCheck, is_text_in_one};
use crate::encoding::dictionary::{Indices, look_up};
use crate::encoding::{EndToEnd, ValueSpan, plain};
use crate::error::{Error, Result};
use crate::free_lists::FreeLists;
use crate::memory;
use crate::simd::bitmap::Bitmap;
use crate::simd::lengths::measure;
use crate::simd::{expand, spans as kernels};

/// The longest value that lies in the view itself.
pub(crate) const INLINE: u32 = 12;

/// Where the long values of a block are to lie.
#[derive(Clone, Copy)]
pub(crate) enum Home<'a> {
    /// There are none.
    Inline,
    /// In their page, which is kept.
    Page(&'a Bytes),
    /// In a buffer that they are copied to.
    Copied,
}

/// Byte strings that are to become an array of views.
///
/// Whatever is called, each view names a place within a buffer that exists, or will exist once the
/// array is made; and `is_text` is true only while every value is UTF-8. That is all that
/// [`ViewStrings::finish`] needs to make an array without looking at the values again.
pub(crate) struct ViewStrings {
    views: Vec<u128>,
    /// The buffers that the views point into. A dictionary, if there is one, is the first.
    buffers: Vec<Buffer>,
    dictionary: Option<ViewEntries>,
    /// Values that were copied, and the index that their buffer will have.
    side: Vec<u8>,
    side_index: Option<usize>,
    /// The page that the last block adopted, by address and length, and its index. Pages that an
    /// index places over one another may begin at one address, and the shorter one has no room for
    /// the views of the longer one.
    adopted: Option<(usize, usize, u32)>,
    is_text: bool,
}

/// Views of the entries of a dictionary, into buffer 0, and that buffer.
struct ViewEntries {
    views: Vec<u128>,
    buffer: Buffer,
    is_text: bool,
}

impl ViewStrings {
    pub(crate) fn new() -> Self {
        Self {
            views: Vec::new(),
            buffers: Vec::new(),
            dictionary: None,
            side: Vec::new(),
            side_index: None,
            adopted: None,
            is_text: true,
        }
    }

    /// Reserves memory for the views of `slots` values.
    pub(crate) fn reserve(&mut self, slots: usize, free_lists: &FreeLists) -> Result<()> {
        free_lists.reserve(&mut self.views, slots)
    }

    /// Makes room for the views of `n` values more.
    pub(crate) fn room_for(&mut self, n: usize) -> Result<()> {
        memory::room(&mut self.views, n)
    }

    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        self.views.len()
    }

    /// Bytes of memory held, without the pages that the views point into.
    pub(crate) fn bytes_held(&self) -> usize {
        self.views.capacity() * size_of::<u128>() + self.side.capacity()
    }

    /// The memory of the values that are copied, to make room in.
    pub(crate) fn copied_memory(&mut self) -> Memory<'_> {
        Memory::new(&mut self.side)
    }

    /// Puts the dictionary first, where its views point.
    fn begin(&mut self) {
        if self.buffers.is_empty()
            && let Some(dictionary) = &self.dictionary
        {
            self.buffers.push(dictionary.buffer.clone());
        }
    }

    /// Takes the dictionary of the values to come; false if it should be text and is not. `views`
    /// is the memory for as many views as there are spans.
    ///
    /// # Panics
    /// If a span reaches beyond `source`.
    pub(crate) fn set_dictionary(
        &mut self,
        source: &Bytes,
        spans: &[ValueSpan],
        place: Place,
        check: TextCheck,
        mut views: Vec<u128>,
    ) -> bool {
        let Some(is_text) = check.passes(|| text::is_text(source, spans, place)) else {
            return false;
        };
        views.clear();
        kernels::make_views(source, spans, 0, 0, &mut views);
        let buffer = Buffer::from(source.clone());
        self.dictionary = Some(ViewEntries { views, buffer, is_text });
        true
    }

    /// The views of the dictionary, if it is the first of the buffers.
    fn entries(&mut self) -> Result<(&[u128], &mut Vec<u128>)> {
        self.begin();
        let first = self.buffers.first().map(|buffer| place(buffer));
        match &self.dictionary {
            Some(entries) if first == Some(place(&entries.buffer)) => {
                self.is_text &= entries.is_text;
                Ok((&entries.views, &mut self.views))
            }
            _ => {
                Err(Error::internal("the dictionary of views must come before their other buffers"))
            }
        }
    }

    /// Appends the entries of the next `n` indices.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or one is beyond the dictionary; `Internal` if the
    /// dictionary came after other values, or there is none.
    pub(crate) fn append_entries(&mut self, indices: &mut Indices, n: usize) -> Result<()> {
        let (entries, views) = self.entries()?;
        indices.gather(n, entries, views)
    }

    /// Appends the entries of these indices.
    ///
    /// # Errors
    /// As [`ViewStrings::append_entries`].
    pub(crate) fn append_entries_at(&mut self, indices: &[u32]) -> Result<()> {
        let (entries, views) = self.entries()?;
        look_up(indices, entries, views)
    }

    /// Appends the values of the spans; false, and nothing appended, if they should be text and are
    /// not.
    ///
    /// # Errors
    /// `Limit` if views cannot point so far; `Internal` if the home is not that of the values.
    ///
    /// # Panics
    /// If a span reaches beyond `source`.
    pub(crate) fn append(
        &mut self,
        source: &[u8],
        spans: &[ValueSpan],
        at: Place,
        home: Home<'_>,
        check: TextCheck,
    ) -> Result<bool> {
        let Some(is_text) = check.passes(|| text::is_text(source, spans, at)) else {
            return Ok(false);
        };
        // Without a branch for each.
        let longest = || spans.iter().fold(0, |longest, span| span.len.max(longest));
        match home {
            Home::Inline if longest() > INLINE => return Err(wrong_home()),
            Home::Inline => kernels::make_views(source, spans, 0, 0, &mut self.views),
            Home::Page(page) => {
                if place(page) != place(source) {
                    return Err(wrong_home());
                }
                let index = self.adopt(page)?;
                kernels::make_views(source, spans, index, 0, &mut self.views);
            }
            Home::Copied => self.copy(source, spans)?,
        }
        self.is_text &= is_text;
        Ok(true)
    }

    /// Appends values that lie end to end; false, and nothing appended, if they should be text and
    /// are not. Where they are copied, all of them are, as they lie.
    ///
    /// # Errors
    /// `Limit` if views cannot point so far; `Internal` if the lengths are not those of what the
    /// values lie in, or the home is not theirs.
    ///
    /// # Panics
    /// As [`ViewStrings::append`].
    pub(crate) fn append_lengths(
        &mut self,
        values: EndToEnd<'_>,
        home: Home<'_>,
        check: TextCheck,
    ) -> Result<bool> {
        let EndToEnd { lengths, total, source, start, .. } = values;
        let found = measure(lengths);
        if !values.is_whole() || found.total != u64::from(total) {
            return Err(wrong_lengths());
        }
        let Some(is_text) = check.passes(|| text::is_text_end_to_end(values)) else {
            return Ok(false);
        };
        let (index, base) = match home {
            Home::Inline if found.longest > INLINE => return Err(wrong_home()),
            Home::Inline => (0, 0),
            Home::Page(page) if place(page) != place(source) => return Err(wrong_home()),
            Home::Page(page) => (self.adopt(page)?, 0),
            Home::Copied => {
                let index = self.side()?;
                let base = self.side_base(total as usize)?.wrapping_sub(start);
                self.side.extend_from_slice(values.all_bytes());
                (index, base)
            }
        };
        kernels::make_views_end_to_end(source, start, lengths, index, base, &mut self.views);
        self.is_text &= is_text;
        Ok(true)
    }

    /// Appends the next `n` values of a PLAIN page, which is kept if a value is long. None, and
    /// nothing is read, if a value is not there, or they should be text and are not seen to be in
    /// one go, or `worth_keeping` says of the bytes of the long values and of all that the page is
    /// not.
    pub(crate) fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        check: TextCheck,
        worth_keeping: impl FnOnce(u64, u64) -> bool,
    ) -> bool {
        let before = self.views.len();
        let Ok(index) = self.page_index(page.buffer()) else {
            return false;
        };
        let Some(block) = page.read_views(n, index, &mut self.views) else {
            return false;
        };
        let (enclosing, walk) = (page.bytes_of(&block), block.walk);
        // The lengths between the values are ASCII, so no character reaches across them.
        let is_text = check.passes(|| walk.longest < ASCII && is_text_in_one(enclosing, || true));
        match is_text {
            Some(is_text) if walk.outside == 0 => self.is_text &= is_text,
            Some(is_text) if worth_keeping(walk.outside, enclosing.len() as u64) => {
                self.push_page(&page.buffer().clone(), index);
                self.is_text &= is_text;
            }
            _ => {
                self.views.truncate(before);
                page.unread(&block);
                return false;
            }
        }
        true
    }

    /// Appends those of the `entries` that the keys name; a key without an entry, as those of nulls
    /// may be, is an empty value. The buffer of the entries is kept if that takes at most twice as
    /// much memory as a copy of the values.
    ///
    /// # Errors
    /// `Limit` if views cannot point so far, or there is no memory.
    pub(crate) fn append_named<T: ByteArrayType<Offset = i32>>(
        &mut self,
        entries: &GenericByteArray<T>,
        keys: &[u32],
    ) -> Result<()> {
        let offsets = entries.value_offsets();
        let span = |key: &u32| match offsets.get(*key as usize..).and_then(<[i32]>::first_chunk) {
            // Offsets of an array are not negative and never fall.
            Some([start, end]) => {
                ValueSpan { start: start.cast_unsigned(), len: (end - start).cast_unsigned() }
            }
            None => ValueSpan::default(),
        };
        let spans: Vec<ValueSpan> = keys.iter().map(span).collect();
        let source: &[u8] = entries.value_data();
        let total: u64 = spans.iter().map(|span| u64::from(span.len)).sum();
        let longest = spans.iter().fold(0, |longest, span| span.len.max(longest));
        self.begin();
        if longest <= INLINE {
            kernels::make_views(source, &spans, 0, 0, &mut self.views);
        } else if total.saturating_mul(2) >= source.len() as u64 {
            let index = u32::try_from(self.buffers.len()).map_err(|_| too_long())?;
            self.buffers.push(entries.values().clone());
            kernels::make_views(source, &spans, index, 0, &mut self.views);
        } else {
            let index = self.side()?;
            let start = self.side_base(usize::try_from(total).map_err(|_| too_long())?)?;
            kernels::append_payload(source, &spans, &mut self.side)?;
            let lengths: Vec<i32> = spans.iter().map(|span| span.len.cast_signed()).collect();
            let (side, views) = (&self.side, &mut self.views);
            kernels::make_views_end_to_end(side, start, &lengths, index, 0, views);
        }
        // The type of the entries decides whether they are text.
        self.is_text &= T::DATA_TYPE == DataType::Utf8;
        Ok(())
    }

    /// Moves the last `values` values to the set bits of `validity[first..first + slots]`; a null
    /// is an empty value.
    ///
    /// # Panics
    /// If there are fewer than `values` values, or not that many bits are set.
    pub(crate) fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.views.len().checked_sub(values).expect("as many values as are there");
        expand::spread(&mut self.views, start, validity, first, slots);
    }

    /// Releases the page; returns whether views point into it.
    pub(crate) fn leave_page(&mut self) -> bool {
        self.adopted.take().is_some()
    }

    /// The array of the values so far; the next one begins empty, with the same dictionary.
    ///
    /// # Errors
    /// `Internal` if the type is none of views, or one of text where not all values are known to
    /// be, or the nulls are not as many as the values.
    pub(crate) fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        free_lists: &FreeLists,
    ) -> Result<ArrayRef> {
        let new = Self { dictionary: self.dictionary.take(), ..Self::new() };
        let Self { views, mut buffers, side, side_index, is_text, .. } =
            std::mem::replace(self, new);
        if let Some(index) = side_index {
            *buffers.get_mut(index).expect("its place was taken") = free_lists.pooled(side);
        }
        let nulls = checked_nulls(nulls, views.len())?;
        let views = ScalarBuffer::<u128>::from(free_lists.pooled(views));
        let buffers: Arc<[Buffer]> = buffers.into();
        Ok(match data_type {
            DataType::Utf8View => {
                if !is_text {
                    return Err(not_text());
                }
                // SAFETY: every view lies within its buffer and is UTF-8, by the invariant of this
                // type. There are as many nulls as views.
                Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) })
            }
            DataType::BinaryView => {
                // SAFETY: every view lies within its buffer, by the invariant of this type. There
                // are as many nulls as views.
                Arc::new(unsafe { BinaryViewArray::new_unchecked(views, buffers, nulls) })
            }
            other => return Err(wrong_type(other)),
        })
    }

    /// The number of the buffer that holds copied values.
    fn side(&mut self) -> Result<u32> {
        self.begin();
        let index = *self.side_index.get_or_insert_with(|| {
            self.buffers.push(Buffer::from_vec(Vec::<u8>::new()));
            self.buffers.len() - 1
        });
        u32::try_from(index).map_err(|_| too_long())
    }

    /// Where the next copied value begins, if `more` bytes fit after it.
    fn side_base(&self, more: usize) -> Result<u32> {
        let end = self.side.len().checked_add(more).and_then(|end| i32::try_from(end).ok());
        end.ok_or_else(too_long)?;
        u32::try_from(self.side.len()).map_err(|_| too_long())
    }

    /// Copies the long values of a block one by one.
    fn copy(&mut self, source: &[u8], spans: &[ValueSpan]) -> Result<()> {
        let index = self.side()?;
        for span in spans {
            let value = span.slice(source);
            let value = if span.len > INLINE { value } else { &[] };
            let base = self.side_base(value.len())?.wrapping_sub(span.start);
            self.side.extend_from_slice(value);
            kernels::make_views(source, std::slice::from_ref(span), index, base, &mut self.views);
        }
        Ok(())
    }

    /// The number that a page has among the buffers, or will have once it is adopted.
    fn page_index(&mut self, page: &Bytes) -> Result<u32> {
        self.begin();
        match self.adopted {
            Some((address, len, index)) if (address, len) == place(page) => Ok(index),
            _ => u32::try_from(self.buffers.len()).map_err(|_| too_long()),
        }
    }

    /// Keeps a page, so that views may point into it: the number of its buffer.
    fn adopt(&mut self, page: &Bytes) -> Result<u32> {
        let index = self.page_index(page)?;
        self.push_page(page, index);
        Ok(index)
    }

    fn push_page(&mut self, page: &Bytes, index: u32) {
        if self.buffers.len() == index as usize {
            self.buffers.push(Buffer::from(page.clone()));
            let (address, len) = place(page);
            self.adopted = Some((address, len, index));
        }
    }
}

/// Where bytes lie. As long as a buffer holds them, no others have that place.
fn place(bytes: &[u8]) -> (usize, usize) {
    (bytes.as_ptr() as usize, bytes.len())
}

#[cold]
fn wrong_home() -> Error {
    Error::internal("the views of byte strings must point into the buffer that holds them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use arrow_array::Array;

    fn span(start: u32, len: u32) -> ValueSpan {
        ValueSpan { start, len }
    }

    fn finish(views: &mut ViewStrings, data_type: &DataType) -> Result<ArrayRef> {
        let array = views.finish(data_type, None, &FreeLists::none())?;
        array.to_data().validate_full().unwrap();
        Ok(array)
    }

    #[test]
    fn views_of_another_buffer_are_refused() {
        let (page, other) = (Bytes::from(vec![b'x'; 40]), Bytes::from(vec![b'y'; 40]));
        let mut views = ViewStrings::new();
        let mut append = |spans: &[ValueSpan], home| {
            views.append(&page, spans, Place::EndToEnd, home, TextCheck::Utf8)
        };
        let shorter = page.slice(..39);
        for wrong in [Home::Page(&other), Home::Page(&shorter), Home::Inline] {
            let error = append(&[span(0, 13)], wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        }
        assert!(append(&[span(0, 13), span(39, 1)], Home::Page(&page)).unwrap());
        assert!(append(&[span(0, 12)], Home::Inline).unwrap());
        assert!(append(&[span(5, 35)], Home::Copied).unwrap());
        assert_eq!(finish(&mut views, &DataType::Utf8View).unwrap().len(), 4);
        assert_eq!(finish(&mut views, &DataType::Utf8View).unwrap().len(), 0);
    }

    #[test]
    #[should_panic(expected = "spans lie within their source")]
    fn views_beyond_their_page_are_never_made() {
        let page = Bytes::from(vec![b'x'; 40]);
        let mut views = ViewStrings::new();
        let spans = [span(30, 13)];
        let _ = views.append(&page, &spans, Place::Apart, Home::Page(&page), TextCheck::Bytes);
    }

    #[test]
    fn lengths_of_another_page_are_refused() {
        let source = Bytes::from("ab–cdefghijklmnopqr");
        let of =
            |lengths, total, start| EndToEnd { lengths, total, source: &source, start, page: None };
        let mut views = ViewStrings::new();
        let mut append = |values| views.append_lengths(values, Home::Copied, TextCheck::Utf8);
        let whole = source.len() as u32;
        for (lengths, total, start) in [
            (&[5][..], 4, 0),
            (&[5], 6, 0),
            (&[-1], whole, 0),
            (&[-1, 1], 0, 0),
            (&[5], 5, whole - 4),
            (&[5], 5, u32::MAX - 2),
        ] {
            let error = append(of(lengths, total, start)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        }
        assert!(!append(of(&[3, 2], 5, 0)).unwrap(), "half a character");
        assert!(append(of(&[5, 14], 19, 0)).unwrap());
        assert_eq!(finish(&mut views, &DataType::Utf8View).unwrap().len(), 2);
    }

    #[test]
    fn bytes_never_become_text() {
        let page = Bytes::from_static(b"\xFF12345678901234");
        let mut views = ViewStrings::new();
        let mut append = |check| {
            views.append(&page, &[span(0, 15)], Place::Apart, Home::Page(&page), check).unwrap()
        };
        assert!(!append(TextCheck::Utf8));
        assert!(append(TextCheck::Bytes));
        let error = finish(&mut views, &DataType::Utf8View).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert_eq!(finish(&mut views, &DataType::Utf8View).unwrap().len(), 0, "it begins anew");
        // Nor do the entries of a dictionary.
        let spans = [span(0, 15)];
        assert!(!views.set_dictionary(&page, &spans, Place::Apart, TextCheck::Utf8, Vec::new()));
        assert!(views.append_entries_at(&[0]).is_err(), "no dictionary");
        assert!(views.set_dictionary(&page, &spans, Place::Apart, TextCheck::Bytes, Vec::new()));
        for data_type in [DataType::Utf8View, DataType::Utf8, DataType::Int32] {
            views.append_entries_at(&[0, 0]).unwrap();
            assert!(finish(&mut views, &data_type).is_err(), "{data_type}");
        }
        views.append_entries_at(&[0, 0]).unwrap();
        assert!(views.append_entries_at(&[0, 1]).is_err(), "no such entry");
        assert_eq!(finish(&mut views, &DataType::BinaryView).unwrap().len(), 2);
    }

    #[test]
    fn a_dictionary_after_other_buffers_is_refused() {
        let (page, entries) = (Bytes::from(vec![b'x'; 40]), Bytes::from(vec![b'y'; 20]));
        let mut views = ViewStrings::new();
        let check = TextCheck::Utf8;
        views.append(&page, &[span(0, 40)], Place::Apart, Home::Page(&page), check).unwrap();
        assert!(views.set_dictionary(&entries, &[span(0, 20)], Place::Apart, check, Vec::new()));
        let error = views.append_entries_at(&[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        finish(&mut views, &DataType::Utf8View).unwrap();
        views.append_entries_at(&[0]).unwrap();
        views.append(&page, &[span(0, 40)], Place::Apart, Home::Page(&page), check).unwrap();
        assert_eq!(finish(&mut views, &DataType::Utf8View).unwrap().len(), 2);
    }

    #[test]
    fn validity_of_other_slots_is_refused() {
        let mut views = ViewStrings::new();
        let nulls = Some(NullBuffer::new_null(1));
        let error = views.finish(&DataType::Utf8View, nulls, &FreeLists::none()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }

    #[test]
    #[should_panic(expected = "as many values as are there")]
    fn no_more_values_are_spread_than_are_there() {
        let mut validity = Bitmap::default();
        validity.append_run(true, 1);
        ViewStrings::new().spread(&validity, 0, 1, 1);
    }
}
