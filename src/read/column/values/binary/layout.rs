//! [`Layout`] says how byte strings become an array, and where the bytes of a block lie.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::bytes::saturated;
use crate::encoding::dictionary::Indices;
use crate::encoding::{EndToEnd, ValueSpan, plain};
use crate::error::Result;
use crate::free_lists::{FreeLists, round_to_size_class};
use crate::read::column::values::reader::over_memory_limit;
use crate::simd::bitmap::Bitmap;
use crate::simd::strings::SLACK;
use crate::trusted::{Memory, Place, TextCheck};

/// Values found and copied at a time: their spans stay in the first-level cache.
pub(super) const BLOCK: usize = 1024;

/// Where the payload of a block lies.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    /// In a page that views may keep and point into.
    Shared(&'a Bytes),
    /// In the scratch memory of a decoder, which must be copied.
    Borrowed(&'a [u8]),
}

impl<'a> Payload<'a> {
    /// The bytes that the spans lie in.
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Borrowed(bytes) => bytes,
        }
    }
}

/// The dictionary of a chunk of byte strings.
pub(super) struct StringDictionary {
    pub(super) bytes: Bytes,
    pub(super) spans: Vec<ValueSpan>,
}

/// How byte strings become an array.
pub(super) trait Layout: Send {
    /// As [`ValueReader::wants_dictionary_first`].
    const DICTIONARY_FIRST: bool = false;

    fn use_free_lists(&mut self, free_lists: &FreeLists);

    fn reserve(&mut self, slots: usize) -> Result<()>;

    /// Makes room for `slots` more.
    fn room_for_slots(&mut self, slots: usize) -> Result<()>;

    /// Maximum bytes that [`Layout::set_dictionary`] allocates for `entries` entries.
    fn dictionary_bytes(entries: usize) -> usize;

    /// Takes the dictionary of the chunk; false if it should be text and is not.
    fn set_dictionary(
        &mut self,
        dictionary: &StringDictionary,
        place: Place,
        check: TextCheck,
    ) -> Result<bool>;

    /// Appends values of the dictionary.
    fn gather(&mut self, indices: &mut Indices, n: usize, max_bytes: usize) -> Result<()>;

    /// Appends the dictionary entries of these indices.
    fn gather_indices(&mut self, indices: &[u32], max_bytes: usize) -> Result<()>;

    /// Appends values that lie in a page; false, and none is, if they should be text and are not.
    fn append(
        &mut self,
        payload: Payload<'_>,
        spans: &[ValueSpan],
        place: Place,
        check: TextCheck,
        max_bytes: usize,
    ) -> Result<bool>;

    /// Like [`Layout::append`], for values that lie end to end.
    fn append_lengths(
        &mut self,
        values: EndToEnd<'_>,
        check: TextCheck,
        max_bytes: usize,
    ) -> Result<bool>;

    /// The fast path for PLAIN pages: appends up to `n` values in one walk over their lengths, and
    /// returns how many. 0 if they need the other path, like values that should be text and are not
    /// UTF-8.
    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        check: TextCheck,
        max_bytes: usize,
    ) -> usize;

    /// As [`ValueReader::leave_page`].
    fn leave_page(&mut self) -> bool {
        false
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize);

    fn bytes_held(&self) -> usize;

    fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
        slots: usize,
    ) -> Result<ArrayRef>;
}

/// Bytes of the values of the spans; an error if there is no room for them.
pub(super) fn payload_len(spans: &[ValueSpan], max_bytes: usize) -> Result<u64> {
    let wanted = spans.iter().map(|span| u64::from(span.len)).sum();
    if wanted > max_bytes as u64 { Err(over_memory_limit(wanted, max_bytes)) } else { Ok(wanted) }
}

/// Maximum preallocation, as a multiple of the bytes decoded so far: the blocks of a batch of the
/// usual size, and some more.
pub(super) const MAX_TIMES: usize = 80;

/// Reserves memory for `more` bytes. If the vector must grow, it grows to what `slots` values are
/// likely to take, by the `seen` values so far, as far as `max_bytes` allows.
pub(super) fn reserve_payload(
    mut values: Memory<'_>,
    more: u64,
    max_bytes: usize,
    seen: usize,
    slots: usize,
    free_lists: &FreeLists,
) -> Result<()> {
    let more = saturated(more);
    if values.capacity() - values.len() >= more.saturating_add(SLACK) {
        return Ok(());
    }
    let so_far = values.len().saturating_add(more);
    // While it grows, the old values and the new ones are held at once.
    let max_bytes = max_bytes.saturating_sub(values.capacity());
    if so_far > max_bytes && values.capacity() > 0 {
        return Err(over_memory_limit(more as u64, max_bytes.saturating_sub(values.len())));
    }
    let expected = so_far.saturating_mul(slots) / seen.max(1);
    let max = so_far.saturating_mul(MAX_TIMES).min(max_bytes).max(so_far);
    let wanted = round_to_size_class(expected.saturating_add(expected / 16)).clamp(so_far, max);
    values.take_used(wanted.saturating_add(SLACK), free_lists)?;
    values.try_reserve_exact((wanted - values.len()).saturating_add(SLACK)).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_room_is_made_than_there_is() {
        let free_lists = FreeLists::none();
        // One long value, where a million are announced.
        let mut values = Vec::new();
        reserve_payload(Memory::new(&mut values), 1 << 20, 3 << 20, 1, 1 << 20, &free_lists)
            .unwrap();
        assert!((1 << 20..4 << 20).contains(&values.capacity()), "{}", values.capacity());
        // Capacity that exists already is never too much.
        let mut values = Vec::new();
        reserve_payload(Memory::new(&mut values), 1 << 20, 0, 1, 1 << 20, &free_lists).unwrap();
        assert!((1 << 20..2 << 20).contains(&values.capacity()));
        // Where they must move, both places count.
        let held = values.capacity();
        values.resize(1 << 20, 0);
        let mut grow = |max_bytes| {
            reserve_payload(Memory::new(&mut values), 1 << 20, max_bytes, 2, 1 << 20, &free_lists)
        };
        grow(held + (2 << 20) - 1).unwrap_err();
        grow(held + (2 << 20)).unwrap();
        assert!((2 << 20..(2 << 20) + (1 << 10)).contains(&values.capacity()));
    }
}
