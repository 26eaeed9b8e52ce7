//! The layout with views: short values are inside them, long ones in the buffers of pages and
//! dictionaries.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::layout::{Layout, Payload, StringDictionary, reserve_payload};
use crate::encoding::dictionary::Indices;
use crate::encoding::{EndToEnd, ValueSpan, plain};
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::read::column::values::reader::over_memory_limit;
use crate::simd::bitmap::Bitmap;
use crate::simd::lengths::measure;
use crate::trusted::{Home, INLINE, Place, TextCheck, ViewStrings};

/// Views: short values inside them, long ones in the buffers of pages and dictionaries.
pub(in crate::read::column) struct Views {
    free_lists: FreeLists,
    strings: ViewStrings,
    /// Slots that were reserved.
    slots: usize,
}

impl Views {
    pub(super) fn new() -> Self {
        Self { free_lists: FreeLists::none(), strings: ViewStrings::new(), slots: 0 }
    }

    /// Reserves memory for `more` bytes of `values` values, where all that is copied may take
    /// `max_bytes`.
    fn reserve_copied(&mut self, more: u64, values: usize, max_bytes: usize) -> Result<()> {
        let seen = self.strings.len() + values;
        let memory = self.strings.copied_memory();
        let left = max_bytes.saturating_sub(memory.len());
        if more > left as u64 {
            return Err(over_memory_limit(more, left));
        }
        reserve_payload(memory, more, max_bytes, seen, self.slots, &self.free_lists)
    }
}

/// Whether a page is kept for the sake of its long values: at least half of what a block takes of
/// it is theirs.
fn worth_keeping(outside: u64, enclosing: u64) -> bool {
    outside * 2 >= enclosing
}

/// Bytes of the values that do not lie in their views.
fn outside(lengths: impl Iterator<Item = u32>) -> u64 {
    lengths.map(|len| if len > INLINE { u64::from(len) } else { 0 }).sum()
}

impl Layout for Views {
    /// Its buffer is the first, where the views of its entries point.
    const DICTIONARY_FIRST: bool = true;

    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.free_lists = free_lists.clone();
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        self.slots = slots;
        self.strings.reserve(slots, &self.free_lists)
    }

    fn room_for_slots(&mut self, slots: usize) -> Result<()> {
        self.strings.room_for(slots)
    }

    fn dictionary_bytes(entries: usize) -> usize {
        entries.saturating_mul(size_of::<u128>())
    }

    fn leave_page(&mut self) -> bool {
        self.strings.leave_page()
    }

    fn set_dictionary(
        &mut self,
        dictionary: &StringDictionary,
        place: Place,
        check: TextCheck,
    ) -> Result<bool> {
        let StringDictionary { bytes, spans } = dictionary;
        let views = memory::vec_for(spans.len())?;
        Ok(self.strings.set_dictionary(bytes, spans, place, check, views))
    }

    fn gather(&mut self, indices: &mut Indices, n: usize, _max_bytes: usize) -> Result<()> {
        self.strings.room_for(n)?;
        self.strings.append_entries(indices, n)
    }

    fn gather_indices(&mut self, indices: &[u32], _max_bytes: usize) -> Result<()> {
        self.strings.room_for(indices.len())?;
        self.strings.append_entries_at(indices)
    }

    fn append(
        &mut self,
        payload: Payload<'_>,
        spans: &[ValueSpan],
        place: Place,
        check: TextCheck,
        max_bytes: usize,
    ) -> Result<bool> {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return Ok(true);
        };
        self.strings.room_for(spans.len())?;
        let outside = outside(spans.iter().map(|span| span.len));
        let enclosing = u64::from(last.start) + u64::from(last.len) - u64::from(first.start);
        let home = match payload {
            _ if outside == 0 => Home::Inline,
            Payload::Shared(page) if worth_keeping(outside, enclosing) => Home::Page(page),
            _ => {
                self.reserve_copied(outside, spans.len(), max_bytes)?;
                Home::Copied
            }
        };
        self.strings.append(payload.bytes(), spans, place, home, check)
    }

    fn append_lengths(
        &mut self,
        values: EndToEnd<'_>,
        check: TextCheck,
        max_bytes: usize,
    ) -> Result<bool> {
        let EndToEnd { lengths, total, source, page, .. } = values;
        self.strings.room_for(lengths.len())?;
        let outside = match measure(lengths).longest {
            ..=INLINE => 0,
            _ => outside(lengths.iter().map(|len| len.cast_unsigned())),
        };
        let home = match page {
            _ if outside == 0 => Home::Inline,
            _ if !worth_keeping(outside, u64::from(total)) => {
                // One by one, without the short ones.
                self.reserve_copied(outside, lengths.len(), max_bytes)?;
                let spans = memory::collected(values.spans())?;
                return self.strings.append(source, &spans, Place::EndToEnd, Home::Copied, check);
            }
            Some(page) => Home::Page(page),
            None => {
                self.reserve_copied(u64::from(total), lengths.len(), max_bytes)?;
                Home::Copied
            }
        };
        self.strings.append_lengths(values, home, check)
    }

    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        check: TextCheck,
        _max_bytes: usize,
    ) -> usize {
        // Without memory for them, the path by spans reports the error.
        let has_room = self.strings.room_for(n).is_ok();
        if has_room && self.strings.append_plain(page, n, check, worth_keeping) { n } else { 0 }
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        self.strings.spread(validity, first, slots, values);
    }

    fn bytes_held(&self) -> usize {
        // The pages that they point into are counted by those who opened them.
        self.strings.bytes_held()
    }

    fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        _slots: usize,
    ) -> Result<ArrayRef> {
        self.strings.finish(data_type, nulls, &self.free_lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use bytes::Bytes;

    #[test]
    fn pages_that_begin_at_one_address_are_told_apart() {
        let all = Bytes::from(vec![b'x'; 120]);
        let mut views = Views::new();
        for (page, len) in [(all.slice(..40), 40), (all.slice(..120), 120)] {
            let spans = [ValueSpan { start: 0, len }];
            let payload = Payload::Shared(&page);
            views.append(payload, &spans, Place::EndToEnd, TextCheck::Utf8, 1 << 20).unwrap();
        }
        let array = views.finish(&DataType::Utf8View, None, 2).unwrap();
        array.to_data().validate_full().unwrap();
        assert_eq!(array.to_data().buffers().len(), 3, "the views and two pages");
    }
}
