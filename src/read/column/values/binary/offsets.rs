//! The layout with offsets into one buffer, to which the bytes are copied.

use arrow_array::ArrayRef;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{GenericByteArray, GenericByteViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::layout::{BLOCK, Layout, Payload, StringDictionary, payload_len, reserve_payload};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{EndToEnd, ValueSpan, plain};
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::read::column::values::reader::{no_dictionary, over_memory_limit};
use crate::simd::bitmap::Bitmap;
use crate::trusted::{Offset, OffsetStrings, Place, StringEntries, TextCheck, too_long};

/// Offsets into one buffer.
pub(in crate::read::column) struct Offsets<O> {
    memory: OffsetsMemory<O>,
    dictionary: Option<StringEntries>,
    indices: Vec<u32>,
}

/// The values so far, and how many are expected.
struct OffsetsMemory<O> {
    free_lists: FreeLists,
    strings: OffsetStrings<O>,
    /// Slots that were reserved.
    slots: usize,
}

impl<O: Offset> OffsetsMemory<O> {
    /// Reserves memory for `total` bytes of `values` values.
    fn make(&mut self, total: u64, values: usize, max_bytes: usize) -> Result<()> {
        let seen = self.strings.len() + values;
        self.strings.room_for(values)?;
        reserve_payload(
            self.strings.payload_memory(),
            total,
            max_bytes,
            seen,
            self.slots,
            &self.free_lists,
        )
    }

    /// Appends the entries of indices.
    fn append_entries(
        &mut self,
        entries: &StringEntries,
        indices: &[u32],
        max_bytes: usize,
    ) -> Result<()> {
        let mut left = indices;
        self.strings.room_for(left.len())?;
        loop {
            let done = self.strings.append_entries(entries, left, max_bytes);
            left = left.get(done..).expect("no more are appended than there are");
            if left.is_empty() {
                return Ok(());
            }
            // Something is wrong, or there is no room for all of them.
            let highest = left.iter().copied().max().expect("some are left");
            if highest as usize >= entries.len() {
                return Err(out_of_range(highest, entries.len()));
            }
            let total = entries.total(left);
            let held = self.strings.payload_len();
            let end = (held as u64).saturating_add(total);
            if end > max_bytes as u64 {
                return Err(over_memory_limit(total, max_bytes.saturating_sub(held)));
            }
            if end > O::MAX as u64 {
                return Err(too_long());
            }
            self.make(total, left.len(), max_bytes)?;
        }
    }
}

/// Builds an array of the values that were appended.
impl<O: Offset> Offsets<O> {
    pub(in crate::read::column) fn new() -> Self {
        let strings = OffsetStrings::new();
        let memory = OffsetsMemory { free_lists: FreeLists::none(), strings, slots: 0 };
        Self { memory, dictionary: None, indices: Vec::new() }
    }

    /// Appends the values of an array at indices.
    pub(in crate::read::column) fn look_up<T: ByteArrayType<Offset = i32>>(
        &mut self,
        indices: &[u32],
        entries: &GenericByteArray<T>,
    ) -> Result<()> {
        self.memory.slots = indices.len();
        self.memory.append_entries(&StringEntries::from_array(entries), indices, usize::MAX)
    }

    /// Appends the values of an array of views.
    pub(in crate::read::column) fn append_views<V: ByteViewType>(
        &mut self,
        array: &GenericByteViewArray<V>,
    ) -> Result<()> {
        self.memory.strings.append_views(array)
    }

    /// Moves the last `values` values to the slots that are valid.
    pub(in crate::read::column) fn spread_nulls(
        &mut self,
        validity: &Bitmap,
        slots: usize,
        values: usize,
    ) {
        Layout::spread(self, validity, 0, slots, values);
    }

    /// The array of the values.
    pub(in crate::read::column) fn into_array(
        mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        Layout::finish(&mut self, data_type, nulls, 0)
    }
}

impl<O: Offset> Layout for Offsets<O> {
    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.memory.free_lists = free_lists.clone();
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        self.memory.slots = slots;
        self.memory.strings.reserve(slots, &self.memory.free_lists)
    }

    fn room_for_slots(&mut self, slots: usize) -> Result<()> {
        self.memory.strings.room_for(slots)
    }

    fn dictionary_bytes(entries: usize) -> usize {
        StringEntries::max_bytes(entries)
    }

    fn set_dictionary(
        &mut self,
        dictionary: &StringDictionary,
        place: Place,
        check: TextCheck,
    ) -> Result<bool> {
        let StringDictionary { bytes, spans } = dictionary;
        self.dictionary = StringEntries::new(bytes, spans, place, check);
        Ok(self.dictionary.is_some())
    }

    fn gather(&mut self, indices: &mut Indices, n: usize, max_bytes: usize) -> Result<()> {
        let entries = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
        let mut left = n;
        while left > 0 {
            self.indices.clear();
            let n = left.min(BLOCK);
            indices.read(n, &mut self.indices)?;
            self.memory.append_entries(entries, &self.indices, max_bytes)?;
            left -= n;
        }
        Ok(())
    }

    fn gather_indices(&mut self, indices: &[u32], max_bytes: usize) -> Result<()> {
        let entries = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
        self.memory.append_entries(entries, indices, max_bytes)
    }

    fn append(
        &mut self,
        payload: Payload<'_>,
        spans: &[ValueSpan],
        place: Place,
        check: TextCheck,
        max_bytes: usize,
    ) -> Result<bool> {
        let left = max_bytes.saturating_sub(self.memory.strings.payload_len());
        let total = payload_len(spans, left)?;
        self.memory.make(total, spans.len(), max_bytes)?;
        self.memory.strings.append(payload.bytes(), spans, place, check)
    }

    fn append_lengths(
        &mut self,
        values: EndToEnd<'_>,
        check: TextCheck,
        max_bytes: usize,
    ) -> Result<bool> {
        let left = max_bytes.saturating_sub(self.memory.strings.payload_len());
        let total = u64::from(values.total);
        if total > left as u64 {
            return Err(over_memory_limit(total, left));
        }
        self.memory.make(total, values.lengths.len(), max_bytes)?;
        self.memory.strings.append_lengths(values, check)
    }

    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        check: TextCheck,
        max_bytes: usize,
    ) -> usize {
        let before = self.memory.strings.payload_len();
        let expected = page.mean().saturating_mul(n);
        let expected = expected.saturating_add(expected / 16).min(max_bytes.saturating_sub(before));
        // Without memory for them, the path by spans reports the error.
        if self.memory.make(expected as u64, n, max_bytes).is_err() {
            return 0;
        }
        self.memory.strings.append_plain(page, n, max_bytes, check)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        self.memory.strings.spread(validity, first, slots, values);
    }

    fn bytes_held(&self) -> usize {
        self.memory.strings.bytes_held()
    }

    fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        _slots: usize,
    ) -> Result<ArrayRef> {
        self.memory.strings.finish(data_type, nulls, &self.memory.free_lists)
    }
}
