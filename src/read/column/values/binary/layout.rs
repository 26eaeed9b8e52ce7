//! [`Layout`]: how byte strings become an array; and where the bytes of a block lie.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{EndToEnd, Span, plain};
use crate::error::{Error, LimitKind, Result};
use crate::free_lists::{FreeLists, round_to_size_class};
use crate::read::column::values::reader::over_memory_limit;
use crate::simd::bitmap::Bitmap;
use crate::simd::gather::gather;
use crate::simd::strings::SLACK;

/// Values found and copied at a time: their spans stay in the first-level cache.
pub(super) const BLOCK: usize = 1024;

/// How the values of a block lie in their buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Each after the four bytes of its length.
    BehindLengths,
    /// Each begins where the one before it ends.
    EndToEnd,
    /// In order, with other bytes between them.
    Apart,
}

/// Where the payload of a block lies.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    /// In a page that views may keep and point into.
    Shared(&'a Bytes),
    /// In the scratch memory of a decoder, which must be copied.
    Borrowed(&'a [u8]),
}

/// The dictionary of a chunk of byte strings.
pub(super) struct Dictionary {
    pub(super) bytes: Bytes,
    pub(super) spans: Vec<Span>,
}

/// How byte strings become an array.
pub(super) trait Layout: Send {
    /// As [`ValueReader::wants_dictionary_first`].
    const DICTIONARY_FIRST: bool = false;

    fn use_free_lists(&mut self, spare: &FreeLists);

    fn reserve(&mut self, slots: usize);

    /// Maximum bytes of what [`Layout::set_dictionary`] builds from so many entries.
    fn dictionary_bytes(entries: usize) -> usize;

    /// Takes the dictionary of the chunk, checked to be text where that is wanted.
    fn set_dictionary(&mut self, dictionary: &Dictionary) -> Result<()>;

    /// Appends values of the dictionary.
    fn gather(
        &mut self,
        indices: &mut Indices,
        n: usize,
        dictionary: &Dictionary,
        room: usize,
    ) -> Result<()>;

    /// Appends the values of the dictionary that these indices stand for.
    fn gather_indices(
        &mut self,
        indices: &[u32],
        dictionary: &Dictionary,
        room: usize,
    ) -> Result<()>;

    /// Appends values that lie in a page, checked to be text where that is wanted.
    fn append(
        &mut self,
        payload: Payload<'_>,
        spans: &[Span],
        place: Place,
        room: usize,
    ) -> Result<()>;

    /// Appends values that lie end to end in a page, checked to be text where that is wanted.
    fn append_lengths(&mut self, values: EndToEnd<'_>, room: usize) -> Result<()>;

    /// The fast path for PLAIN pages: appends up to `n` values in one walk over their lengths, and
    /// says how many. 0 if they need the other path, as values that are not UTF-8 do where they
    /// should be `text`.
    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        text: bool,
        room: usize,
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

/// Appends the entry of each index.
pub(super) fn look_up<T: Copy>(indices: &[u32], entries: &[T], out: &mut Vec<T>) -> Result<()> {
    if gather(indices, entries, out) {
        return Ok(());
    }
    let highest = indices.iter().copied().max().unwrap_or(0);
    Err(out_of_range(highest, entries.len()))
}

#[cold]
pub(super) fn too_long() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "more than 2 GiB of strings in one batch; read fewer rows per batch, or with 64-bit offsets",
    )
}

/// Bytes of the values of the spans; an error if there is no room for them.
pub(super) fn payload_len(spans: &[Span], room: usize) -> Result<u64> {
    let wanted = spans.iter().map(|span| u64::from(span.len)).sum();
    if wanted > room as u64 { Err(over_memory_limit(wanted, room)) } else { Ok(wanted) }
}

/// Maximum preallocation, as a multiple of the bytes decoded so far: the blocks of a batch of the
/// usual size, and some more.
pub(super) const MOST_TIMES: usize = 80;

/// Makes room for `more` bytes. If the vector must grow, it grows to what `slots` values are likely
/// to take, by the `seen` values so far, as far as `room` allows.
pub(super) fn make_room(
    values: &mut Vec<u8>,
    more: u64,
    room: usize,
    seen: usize,
    slots: usize,
    spare: &FreeLists,
) -> Result<()> {
    let more = usize::try_from(more).unwrap_or(usize::MAX);
    if values.capacity() - values.len() >= more.saturating_add(SLACK) {
        return Ok(());
    }
    let so_far = values.len().saturating_add(more);
    // While it grows, the old values and the new ones are held at once.
    let room = room.saturating_sub(values.capacity());
    if so_far > room && values.capacity() > 0 {
        return Err(over_memory_limit(more as u64, room.saturating_sub(values.len())));
    }
    let expected = so_far.saturating_mul(slots) / seen.max(1);
    let most = so_far.saturating_mul(MOST_TIMES).min(room).max(so_far);
    let wanted = round_to_size_class(expected.saturating_add(expected / 16)).clamp(so_far, most);
    if values.capacity() == 0 {
        *values = spare.take(wanted.saturating_add(SLACK));
    }
    values.try_reserve_exact((wanted - values.len()).saturating_add(SLACK)).map_err(no_memory)
}

#[cold]
pub(super) fn no_memory(error: std::collections::TryReserveError) -> Error {
    Error::limit(LimitKind::Memory, format_args!("the values of one batch: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_room_is_made_than_there_is() {
        let spare = FreeLists::new(0);
        // One long value, where a million are announced.
        let mut values = Vec::new();
        make_room(&mut values, 1 << 20, 3 << 20, 1, 1 << 20, &spare).unwrap();
        assert!((1 << 20..4 << 20).contains(&values.capacity()), "{}", values.capacity());
        // What is there already is never too much.
        let mut values = Vec::new();
        make_room(&mut values, 1 << 20, 0, 1, 1 << 20, &spare).unwrap();
        assert!((1 << 20..2 << 20).contains(&values.capacity()));
        // Where they must move, both places count.
        let held = values.capacity();
        values.resize(1 << 20, 0);
        let mut grow = |room| make_room(&mut values, 1 << 20, room, 2, 1 << 20, &spare);
        grow(held + (2 << 20) - 1).unwrap_err();
        grow(held + (2 << 20)).unwrap();
        assert!((2 << 20..(2 << 20) + (1 << 10)).contains(&values.capacity()));
    }
}
