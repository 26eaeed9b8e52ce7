//! Views: short values inside them, long ones in the buffers of pages and dictionaries.

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::layout::{Dictionary, Layout, Payload, Place, look_up, make_room, too_long};
use super::text::{ASCII, is_text_in_one};
use crate::encoding::dictionary::Indices;
use crate::encoding::{EndToEnd, Span, plain};
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::read::column::values::reader::{no_dictionary, over_memory_limit, vec_for};
use crate::simd::bitmap::Bitmap;
use crate::simd::{expand, spans as kernels};
use crate::trusted;

/// Views: short values inside them, long ones in the buffers of pages and dictionaries.
pub(in crate::read::column) struct Views {
    spare: FreeLists,
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    /// The dictionary of the chunk: views of its entries (into buffer 0), and the buffer.
    dictionary: Option<(Vec<u128>, Buffer)>,
    /// Values that are copied because keeping their page would waste memory, and the index that
    /// their buffer will have.
    side: Vec<u8>,
    side_index: Option<usize>,
    /// The page that the last block points into, by address and length, and its index. The length
    /// is compared because a wrong page index can place two pages at one address, and views of the
    /// longer one do not fit the shorter one.
    adopted: Option<(usize, usize, u32)>,
    /// Slots that were announced.
    slots: usize,
}

/// Maximum length of a value that lies in the view itself.
const INLINE: u32 = 12;

impl Views {
    pub(super) fn new() -> Self {
        Self {
            spare: FreeLists::new(0),
            views: Vec::new(),
            buffers: Vec::new(),
            dictionary: None,
            side: Vec::new(),
            side_index: None,
            adopted: None,
            slots: 0,
        }
    }

    /// Puts the dictionary first, where its views point.
    fn begin(&mut self) {
        if self.buffers.is_empty()
            && let Some((_, buffer)) = &self.dictionary
        {
            self.buffers.push(buffer.clone());
        }
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

    /// Makes room for `more` bytes of `values` values. All that is copied may take `room` bytes.
    fn make_side_room(&mut self, more: u64, values: usize, room: usize) -> Result<()> {
        let left = room.saturating_sub(self.side.len());
        if more > left as u64 {
            return Err(over_memory_limit(more, left));
        }
        let seen = self.views.len() + values;
        make_room(&mut self.side, more, room, seen, self.slots, &self.spare)
    }

    /// Copies the long values of a block one by one.
    fn copy(&mut self, source: &[u8], spans: &[Span], room: usize) -> Result<()> {
        let outside = outside(spans.iter().map(|span| span.len));
        self.make_side_room(outside, spans.len(), room)?;
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

    /// Adopts a page, so that views may point into it.
    fn adopt(&mut self, page: &Bytes, index: u32) {
        if self.buffers.len() == index as usize {
            self.buffers.push(Buffer::from(page.clone()));
            let (address, len) = place(page);
            self.adopted = Some((address, len, index));
        }
    }
}

/// Where bytes lie.
fn place(page: &Bytes) -> (usize, usize) {
    (page.as_ptr() as usize, page.len())
}

/// Whether to keep a page for its long values: they must be at least half of the bytes that a block
/// takes of it.
fn worth_adopting(outside: u64, stretch: u64) -> bool {
    outside * 2 >= stretch
}

/// Bytes of the values that do not lie in their views.
fn outside(lengths: impl Iterator<Item = u32>) -> u64 {
    lengths.map(|len| if len > INLINE { u64::from(len) } else { 0 }).sum()
}

impl Layout for Views {
    /// The dictionary is buffer 0, which the views of its entries point into.
    const DICTIONARY_FIRST: bool = true;

    fn use_free_lists(&mut self, spare: &FreeLists) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        self.spare.reserve(&mut self.views, slots);
        self.slots = slots;
    }

    fn dictionary_bytes(entries: usize) -> usize {
        entries.saturating_mul(size_of::<u128>())
    }

    fn leave_page(&mut self) -> bool {
        self.adopted.take().is_some()
    }

    fn set_dictionary(&mut self, dictionary: &Dictionary) -> Result<()> {
        let mut views = vec_for(dictionary.spans.len())?;
        kernels::make_views(&dictionary.bytes, &dictionary.spans, 0, 0, &mut views);
        self.dictionary = Some((views, Buffer::from(dictionary.bytes.clone())));
        Ok(())
    }

    fn gather(
        &mut self,
        indices: &mut Indices,
        n: usize,
        _dictionary: &Dictionary,
        _room: usize,
    ) -> Result<()> {
        self.begin();
        let (views, _) = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
        indices.gather(n, views, &mut self.views)
    }

    fn gather_indices(
        &mut self,
        indices: &[u32],
        _dictionary: &Dictionary,
        _room: usize,
    ) -> Result<()> {
        self.begin();
        let (views, _) = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
        look_up(indices, views, &mut self.views)
    }

    fn append(
        &mut self,
        payload: Payload<'_>,
        spans: &[Span],
        _place: Place,
        room: usize,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return Ok(());
        };
        let outside = outside(spans.iter().map(|span| span.len));
        if outside == 0 {
            match payload {
                Payload::Shared(page) => kernels::make_views(page, spans, 0, 0, &mut self.views),
                Payload::Borrowed(bytes) => {
                    kernels::make_views(bytes, spans, 0, 0, &mut self.views);
                }
            }
            return Ok(());
        }
        let stretch = u64::from(last.start) + u64::from(last.len) - u64::from(first.start);
        let worth_it = worth_adopting(outside, stretch);
        match payload {
            Payload::Shared(page) if worth_it => {
                let index = self.page_index(page)?;
                kernels::make_views(page, spans, index, 0, &mut self.views);
                self.adopt(page, index);
                Ok(())
            }
            Payload::Shared(page) => self.copy(page, spans, room),
            Payload::Borrowed(source) => self.copy(source, spans, room),
        }
    }

    fn append_lengths(&mut self, values: EndToEnd<'_>, room: usize) -> Result<()> {
        let EndToEnd { lengths, total, source, start, page } = values;
        let outside = outside(lengths.iter().map(|len| len.cast_unsigned()));
        let (index, base) = match page {
            _ if outside == 0 => (0, 0),
            _ if !worth_adopting(outside, u64::from(total)) => {
                let spans: Vec<Span> = values.spans().collect();
                return self.copy(source, &spans, room);
            }
            Some(page) => {
                let index = self.page_index(page)?;
                self.adopt(page, index);
                (index, 0)
            }
            None => {
                self.make_side_room(u64::from(total), lengths.len(), room)?;
                let index = self.side()?;
                let base = self.side_base(total as usize)?.wrapping_sub(start);
                self.side.extend_from_slice(values.stretch());
                (index, base)
            }
        };
        kernels::make_views_end_to_end(source, start, lengths, index, base, &mut self.views);
        Ok(())
    }

    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        text: bool,
        _room: usize,
    ) -> usize {
        let before = self.views.len();
        let Ok(index) = self.page_index(page.buffer()) else {
            return 0;
        };
        let Some(block) = page.read_views(n, index, &mut self.views) else {
            return 0;
        };
        let stretch = page.stretch(&block);
        let walk = block.walk;
        let is_text = !text || (walk.longest < ASCII && is_text_in_one(stretch, || true));
        if !is_text || (walk.outside > 0 && !worth_adopting(walk.outside, stretch.len() as u64)) {
            self.views.truncate(before);
            page.unread(&block);
            return 0;
        }
        if walk.outside > 0 {
            let page = page.buffer().clone();
            self.adopt(&page, index);
        }
        n
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.views.len() - values;
        expand::spread(&mut self.views, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        // Pages that the views point into are counted by `PageCursor`.
        self.views.capacity() * size_of::<u128>() + self.side.capacity()
    }

    fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        _slots: usize,
    ) -> Result<ArrayRef> {
        let views = self.spare.lend(std::mem::take(&mut self.views));
        let mut buffers = std::mem::take(&mut self.buffers);
        if let Some(index) = self.side_index.take()
            && let Some(buffer) = buffers.get_mut(index)
        {
            *buffer = self.spare.lend(std::mem::take(&mut self.side));
        }
        self.adopted = None;
        trusted::view_array(data_type, views.into(), buffers, nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn pages_that_begin_at_one_address_are_told_apart() {
        let all = Bytes::from(vec![b'x'; 120]);
        let mut views = Views::new();
        for (page, len) in [(all.slice(..40), 40), (all.slice(..120), 120)] {
            let spans = [Span { start: 0, len }];
            views.append(Payload::Shared(&page), &spans, Place::EndToEnd, 1 << 20).unwrap();
        }
        let array = views.finish(&DataType::Utf8View, None, 2).unwrap();
        array.to_data().validate_full().unwrap();
        assert_eq!(array.to_data().buffers().len(), 3, "the views and two pages");
    }
}
