//! Offsets into one buffer: the payload is copied.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::layout::{
    BLOCK, Dictionary, Layout, Payload, Place, make_room, no_memory, payload_len, too_long,
};
use super::text::{begins_a_character, is_text_in_one};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{EndToEnd, Span, plain};
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::read::column::values::reader::{no_dictionary, over_memory_limit};
use crate::simd::bitmap::Bitmap;
use crate::simd::strings::Entries;
use crate::simd::{expand, spans as kernels};
use crate::trusted;

/// Offsets into one buffer.
pub(in crate::read::column) struct Offsets<O> {
    spare: FreeLists,
    /// The offsets of the array: 0, then the end of every value.
    offsets: Vec<O>,
    values: Vec<u8>,
    dictionary: Option<Entries>,
    indices: Vec<u32>,
    /// Slots that were reserved: those of the whole batch.
    slots: usize,
}

impl<O: trusted::Offset> Offsets<O> {
    pub(in crate::read::column) fn new() -> Self {
        Self {
            spare: FreeLists::new(0),
            offsets: Vec::new(),
            values: Vec::new(),
            dictionary: None,
            indices: Vec::new(),
            slots: 0,
        }
    }

    fn begin(&mut self) {
        if self.offsets.is_empty() {
            self.offsets.push(O::default());
        }
    }

    /// Appends the entries that indices stand for.
    fn append_entries(&mut self, entries: &Entries, indices: &[u32], room: usize) -> Result<()> {
        let most = room;
        let mut left = indices;
        loop {
            let done = entries.append(left, most, &mut self.values, &mut self.offsets);
            left = left.get(done..).unwrap_or_default();
            if left.is_empty() {
                return Ok(());
            }
            // An index is out of range, or there is no room for all values.
            let highest = left.iter().copied().max().unwrap_or(0);
            if highest as usize >= entries.len() {
                return Err(out_of_range(highest, entries.len()));
            }
            let total = entries.total(left);
            let end = (self.values.len() as u64).saturating_add(total);
            if end > room as u64 {
                return Err(over_memory_limit(total, room.saturating_sub(self.values.len())));
            }
            if end > O::MOST as u64 {
                return Err(too_long());
            }
            let seen = self.offsets.len() - 1 + left.len();
            make_room(&mut self.values, total, room, seen, self.slots, &self.spare)?;
        }
    }

    fn append_spans(
        &mut self,
        source: &[u8],
        spans: &[Span],
        place: Place,
        room: usize,
    ) -> Result<()> {
        self.begin();
        let total = payload_len(spans, room.saturating_sub(self.values.len()))?;
        let seen = self.offsets.len() - 1 + spans.len();
        // Before the offsets, so that none lies beyond the values if there is no memory.
        make_room(&mut self.values, total, room, seen, self.slots, &self.spare)?;
        O::append_offsets(spans, &mut self.offsets).ok_or_else(too_long)?;
        match (place, spans.first(), spans.last()) {
            (Place::EndToEnd, Some(first), Some(last)) => {
                let stretch = first.start as usize..last.start as usize + last.len as usize;
                self.values.extend_from_slice(source.get(stretch).unwrap_or_default());
                Ok(())
            }
            _ => kernels::append_payload(source, spans, &mut self.values).map_err(no_memory),
        }
    }
}

/// For `materialize`: arrays of values that are in memory.
impl<O: trusted::Offset> Offsets<O> {
    /// Appends the entries that indices stand for.
    pub(in crate::read::column) fn look_up(
        &mut self,
        indices: &[u32],
        entries: &Entries,
    ) -> Result<()> {
        self.slots = indices.len();
        self.begin();
        self.append_entries(entries, indices, usize::MAX)
    }

    /// Appends values, of which the lengths are given too.
    pub(in crate::read::column) fn append_all<'a>(
        &mut self,
        lengths: Vec<u32>,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        self.begin();
        let lengths: Vec<i32> = lengths.into_iter().map(u32::cast_signed).collect();
        O::append_ends(&lengths, &mut self.offsets).ok_or_else(too_long)?;
        let total = lengths.iter().map(|len| u64::from(len.cast_unsigned())).sum::<u64>();
        let total = usize::try_from(total).map_err(|_| too_long())?;
        self.values.try_reserve_exact(total).map_err(no_memory)?;
        values.for_each(|value| self.values.extend_from_slice(value));
        Ok(())
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

impl<O: trusted::Offset> Layout for Offsets<O> {
    fn use_free_lists(&mut self, spare: &FreeLists) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        self.spare.reserve(&mut self.offsets, slots.saturating_add(1));
        self.slots = slots;
        self.begin();
    }

    fn dictionary_bytes(entries: usize) -> usize {
        Entries::most_bytes(entries)
    }

    fn set_dictionary(&mut self, dictionary: &Dictionary) -> Result<()> {
        self.dictionary = Some(Entries::new(&dictionary.bytes, &dictionary.spans));
        Ok(())
    }

    fn gather(
        &mut self,
        indices: &mut Indices,
        n: usize,
        _dictionary: &Dictionary,
        room: usize,
    ) -> Result<()> {
        self.begin();
        let entries = self.dictionary.take().ok_or_else(no_dictionary)?;
        let mut block = std::mem::take(&mut self.indices);
        let mut left = n;
        let mut gathered = Ok(());
        while left > 0 && gathered.is_ok() {
            block.clear();
            let n = left.min(BLOCK);
            gathered = indices
                .read(n, &mut block)
                .and_then(|()| self.append_entries(&entries, &block, room));
            left -= n;
        }
        (self.dictionary, self.indices) = (Some(entries), block);
        gathered
    }

    fn gather_indices(
        &mut self,
        indices: &[u32],
        _dictionary: &Dictionary,
        room: usize,
    ) -> Result<()> {
        self.begin();
        let entries = self.dictionary.take().ok_or_else(no_dictionary)?;
        let appended = self.append_entries(&entries, indices, room);
        self.dictionary = Some(entries);
        appended
    }

    fn append(
        &mut self,
        payload: Payload<'_>,
        spans: &[Span],
        place: Place,
        room: usize,
    ) -> Result<()> {
        match payload {
            Payload::Shared(source) => self.append_spans(source, spans, place, room),
            Payload::Borrowed(source) => self.append_spans(source, spans, place, room),
        }
    }

    fn append_lengths(&mut self, values: EndToEnd<'_>, room: usize) -> Result<()> {
        self.begin();
        let left = room.saturating_sub(self.values.len());
        if values.total as usize > left {
            return Err(over_memory_limit(u64::from(values.total), left));
        }
        let (total, seen) =
            (u64::from(values.total), self.offsets.len() - 1 + values.lengths.len());
        make_room(&mut self.values, total, room, seen, self.slots, &self.spare)?;
        O::append_ends(values.lengths, &mut self.offsets).ok_or_else(too_long)?;
        self.values.extend_from_slice(values.stretch());
        Ok(())
    }

    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        text: bool,
        room: usize,
    ) -> usize {
        self.begin();
        let (mark, before, first) = (page.mark(), self.values.len(), self.offsets.len());
        let expected = page.mean().saturating_mul(n);
        let expected = expected.saturating_add(expected / 16).min(room.saturating_sub(before));
        let seen = first - 1 + n;
        let expected = expected as u64;
        if make_room(&mut self.values, expected, room, seen, self.slots, &self.spare).is_err() {
            return 0;
        }
        let done = page.read_strings(n, room, &mut self.values, &mut self.offsets);
        let added = self.values.get(before..).unwrap_or_default();
        let ends = self.offsets.get(first..).unwrap_or_default();
        let begin_characters =
            || ends.iter().all(|end| begins_a_character(added, end.as_usize() - before));
        if text && !is_text_in_one(added, begin_characters) {
            self.values.truncate(before);
            self.offsets.truncate(first);
            page.rewind(mark);
            return 0;
        }
        done
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        self.begin();
        let start = self.offsets.len() - values;
        // A null has no bytes: it ends where the value before it ends.
        expand::spread_ends(&mut self.offsets, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.offsets.capacity() * size_of::<O>() + self.values.capacity()
    }

    fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        _slots: usize,
    ) -> Result<ArrayRef> {
        self.begin();
        let offsets = std::mem::take(&mut self.offsets);
        let mut values = std::mem::take(&mut self.values);
        // The last batch of a chunk may leave most of it unused.
        if values.capacity() > values.len() + values.len() / 4 + (64 << 10) {
            values = self.spare.fitted(values);
        }
        let (offsets, values) = (self.spare.lend(offsets), self.spare.lend(values));
        trusted::byte_array::<O>(data_type, offsets.into(), values, nulls)
    }
}
