//! [`IndexReader`] reads values as indices into the distinct values, from which dictionary arrays
//! and run-end arrays are built.
//!
//! A chunk may fall back to other encodings after some pages, or have no dictionary at all. The
//! values of such pages are appended to the dictionary of the batch; at its end, equal values
//! become one entry, so that few distinct values need few keys, whatever the writer chose.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;

use super::distinct::distinct;
use super::fixed_binary::{joined, taken};
use super::reader::{Count, ValueReader, indices_of_page, no_dictionary};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::error::{Error, LimitKind, Result};
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;
use crate::simd::expand;

/// Makes an array of the indices of its slots, and of the values that they point into.
pub(super) trait FromIndices: Send {
    fn build(
        &self,
        indices: &[u32],
        values: ArrayRef,
        nulls: Option<NullBuffer>,
        free_lists: &FreeLists,
    ) -> Result<ArrayRef>;
}

/// The reader of an array of indices and values.
pub(super) struct IndexReader<A> {
    array: A,
    /// Indices of the slots so far.
    slots: Vec<u32>,
    indices: DictionaryIndices,
    free_lists: FreeLists,
}

impl<A: FromIndices + 'static> IndexReader<A> {
    /// `values` decodes the values, which are of `value_type`.
    pub(super) fn boxed(
        array: A,
        value_type: &DataType,
        values: Box<dyn ValueReader>,
    ) -> Box<dyn ValueReader> {
        let indices = DictionaryIndices::new(value_type, values);
        Box::new(Self { array, slots: Vec::new(), indices, free_lists: FreeLists::none() })
    }
}

impl<A: FromIndices> ValueReader for IndexReader<A> {
    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.free_lists = free_lists.clone();
        self.indices.values.use_free_lists(free_lists);
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        Ok(self.slots.try_reserve_exact(slots)?)
    }

    fn room_for_nulls(&mut self, nulls: usize, _max_bytes: usize) -> Result<()> {
        memory::room(&mut self.slots, nulls)
    }

    fn wants_dictionary_first(&self) -> bool {
        true
    }

    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        self.indices.dictionary_bytes(entries, byte_len)
    }

    fn leave_page(&mut self) -> bool {
        self.indices.leave_page()
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.indices.set_dictionary(page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.indices.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, max_bytes: usize) -> Result<()> {
        self.indices.read(n, max_bytes, &mut self.slots)
    }

    fn read_selected(&mut self, n: usize, selection: &Bitmap, max_bytes: usize) -> Result<()> {
        self.indices.read_selected(n, selection, max_bytes, &mut self.slots)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.indices.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.slots.len() - values;
        expand::spread(&mut self.slots, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.indices.bytes_held()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        // First the values: those that are equal have one index then.
        let values = self.indices.finish(&mut self.slots)?;
        let array = self.array.build(&self.slots, values, nulls, &self.free_lists);
        // The next batch uses the same memory for its indices.
        self.slots.clear();
        array
    }
}

/// Indices into a dictionary that grows with the values of pages that are not dictionary-encoded.
/// Used for dictionary arrays and run-end arrays.
struct DictionaryIndices {
    values: Box<dyn ValueReader>,
    /// The dictionary page as an array.
    dictionary: Option<ArrayRef>,
    /// Values of this batch from pages that are not dictionary-encoded. They follow the dictionary.
    appended: usize,
    /// Indices of the current page; `None` if it is not dictionary-encoded.
    indices: Option<Indices>,
    value_type: DataType,
}

impl DictionaryIndices {
    fn new(value_type: &DataType, values: Box<dyn ValueReader>) -> Self {
        Self {
            values,
            dictionary: None,
            appended: 0,
            indices: None,
            value_type: value_type.clone(),
        }
    }

    /// Maximum bytes of the payload of the array of the entries, of a dictionary page of `byte_len`
    /// bytes: all come from the page, or from the copy that replaces invalid UTF-8, and while the
    /// payload grows, the old and the new one are held.
    fn max_payload(&self, byte_len: usize) -> usize {
        byte_len.saturating_add(self.values.dictionary_bytes(0, byte_len)).saturating_mul(2)
    }

    /// As [`ValueReader::dictionary_bytes`]: what the values make of it, and the array of its
    /// entries.
    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        let array = match self.value_type.primitive_width() {
            Some(width) => entries.saturating_mul(width),
            // The payload, and an offset or a view for each.
            None => {
                let payload = self.max_payload(byte_len);
                entries.saturating_mul(size_of::<u128>()).saturating_add(payload)
            }
        };
        self.values.dictionary_bytes(entries, byte_len).saturating_add(array)
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let (n, byte_len) = (page.values, page.bytes.len());
        let max_bytes = self.max_payload(byte_len);
        self.values.set_dictionary(page)?;
        // Reserved once, so that the array does not grow step by step.
        self.values.reserve(n)?;
        // All entries in order: what pages with the indices 0, 1, 2 … decode to.
        for start in (0..n).step_by(COUNTED) {
            let indices = start..n.min(start + COUNTED);
            let count = indices.len();
            let page = counting_indices(indices)?;
            self.values.set_page(Encoding::RleDictionary, page, Count::Exactly(count))?;
            self.values.read(count, max_bytes)?;
        }
        self.values.leave_page();
        self.dictionary = Some(self.values.finish(None, n)?);
        // Forgets that number, because values of other pages are unlikely to be as many.
        self.values.reserve(0)?;
        Ok(())
    }

    fn leave_page(&mut self) -> bool {
        self.indices = None;
        self.values.leave_page()
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        let Self { indices, values, .. } = self;
        let set_page = |bytes| values.set_page(encoding, bytes, count);
        *indices = indices_of_page(encoding, bytes, count, set_page)?;
        Ok(())
    }

    fn entries(&self) -> usize {
        // A chunk without a dictionary has none.
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len())
    }

    /// Appends the index of each of the next `n` values.
    fn read(&mut self, n: usize, max_bytes: usize, out: &mut Vec<u32>) -> Result<()> {
        match &mut self.indices {
            Some(indices) => {
                let start = out.len();
                let read = indices.read(n, out);
                self.checked(read, start, out)
            }
            None => {
                self.values.read(n, max_bytes)?;
                self.append(n, out)
            }
        }
    }

    /// Like [`DictionaryIndices::read`], for those of the next `n` values whose bits of `selection`
    /// are set.
    fn read_selected(
        &mut self,
        n: usize,
        selection: &Bitmap,
        max_bytes: usize,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let start = out.len();
        match &mut self.indices {
            Some(indices) => {
                let read = indices.read_selected(n, selection, out);
                self.checked(read, start, out)
            }
            None => {
                self.values.read_selected(n, selection, max_bytes)?;
                self.append(selection.count_ones(0..n), out)
            }
        }
    }

    /// Checks that the new indices are those of entries. On an error all of them are removed,
    /// because no key may point beyond the values.
    fn checked(&self, read: Result<()>, start: usize, out: &mut Vec<u32>) -> Result<()> {
        let checked = read.and_then(|()| {
            let entries = self.dictionary.as_ref().ok_or_else(no_dictionary)?.len();
            match out[start..].iter().copied().max() {
                Some(highest) if highest as usize >= entries => Err(out_of_range(highest, entries)),
                _ => Ok(()),
            }
        });
        if checked.is_err() {
            out.truncate(start);
        }
        checked
    }

    /// Assigns indices to `n` values that were appended to the dictionary.
    fn append(&mut self, n: usize, out: &mut Vec<u32>) -> Result<()> {
        let first = self.entries() + self.appended;
        let end = u32::try_from(first + n).map_err(|_| too_many(first + n))?;
        out.extend(end - u32::try_from(n).expect("the end, which is no less, fits")..end);
        self.appended += n;
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.indices {
            Some(indices) => indices.skip(n),
            None => self.values.skip(n),
        }
    }

    fn bytes_held(&self) -> usize {
        self.values.bytes_held()
    }

    /// The values that the indices of this batch point into; the next batch begins with the
    /// dictionary alone. Indices of equal values are made equal where some were appended.
    fn finish(&mut self, indices: &mut [u32]) -> Result<ArrayRef> {
        let appended = std::mem::take(&mut self.appended);
        let more = self.values.finish(None, appended)?;
        let all = match &self.dictionary {
            None if appended == 0 => return Ok(new_empty_array(&self.value_type)),
            Some(dictionary) if appended == 0 => return Ok(dictionary.clone()),
            None => more,
            Some(dictionary) => joined(dictionary, &more)?,
        };
        let (first, place) = distinct(&all, self.entries())?;
        if first.len() == all.len() {
            return Ok(all);
        }
        for index in indices {
            *index = place[*index as usize];
        }
        taken(&all, &UInt32Array::from(first))
    }
}

/// Indices that are made at a time.
const COUNTED: usize = 1 << 16;

/// These indices, as a data page would hold them: 32 bits each, in one packed run.
fn counting_indices(indices: Range<usize>) -> Result<Bytes> {
    let groups = indices.len().div_ceil(8);
    let mut bytes = memory::vec_for(6 + groups * 32)?;
    bytes.push(32);
    let mut header = (groups as u64) << 1 | 1;
    while header >= 0x80 {
        bytes.push((header & 0x7F) as u8 | 0x80);
        header >>= 7;
    }
    bytes.push((header & 0x7F) as u8);
    for index in indices.start..indices.start + groups * 8 {
        // Indices after the last are padding, and wrap.
        #[expect(clippy::cast_possible_truncation, reason = "entries have 32 bits")]
        bytes.extend_from_slice(&(index as u32).to_le_bytes());
    }
    Ok(bytes.into())
}

#[cold]
pub(super) fn too_many(entries: usize) -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        format_args!(
            "a dictionary of {entries} entries does not fit its key type; use a wider one"
        ),
    )
}
