//! Byte strings: every encoding says where they lie ([`Span`]s), every layout takes them from there.
//!
//! Two phases, block by block: find the spans, then copy the payload (offsets) or point at it (views). Text is checked in bulk: a
//! dictionary once, other pages by the block.

mod few;
mod find;
mod offsets;
mod text;
mod views;

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;

use self::few::{DictionaryOfFew, look_up_few, prepare_dictionary};
use self::find::Decoder;
pub(super) use self::find::SpanDecoder;
pub(super) use self::offsets::Offsets;
use self::text::{checked_text, is_text_end_to_end};
pub(super) use self::views::Views;
use super::column::{Column, Count, no_dictionary, no_page, no_room, vec_for};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{EndToEnd, Span, plain};
use crate::error::{Error, LimitKind, Result};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::read::options::Utf8;
use crate::schema::Physical;
use crate::schema::convert::BytesLayout;
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::simd::gather::gather;
use crate::simd::strings::SLACK;
use crate::spare::{Spare, roughly};

/// How the values of a block lie in their buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Each behind the four bytes of its length.
    BehindLengths,
    /// One begins where the other ends.
    EndToEnd,
    /// In order, with others between them.
    Apart,
}

/// Where the payload of a block lies.
#[derive(Clone, Copy)]
enum Payload<'a> {
    /// In a page that views may adopt.
    Shared(&'a Bytes),
    /// In the scratch of a decoder.
    Borrowed(&'a [u8]),
}

/// The dictionary of a chunk of byte strings.
struct Dictionary {
    bytes: Bytes,
    spans: Vec<Span>,
}

/// How byte strings become an array.
trait Layout: Send {
    /// As [`Column::wants_dictionary_first`].
    const DICTIONARY_FIRST: bool = false;

    fn use_spare(&mut self, spare: &Spare);

    fn reserve(&mut self, slots: usize);

    /// Bytes, at most, of what [`Layout::set_dictionary`] makes of so many entries.
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

    /// Appends up to `n` next values of a PLAIN page while it walks from length to length, as far as this is possible and they are `text` where that is
    /// wanted; says how many it were.
    fn append_plain(
        &mut self,
        page: &mut plain::ByteArrays,
        n: usize,
        text: bool,
        room: usize,
    ) -> usize;

    /// As [`Column::leave_page`].
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

/// The column of a leaf of byte strings.
pub(super) struct BytesColumn<L> {
    values: SpanDecoder,
    /// How text is checked; `None` for bytes.
    utf8: Option<Utf8>,
    dictionary: Option<Dictionary>,
    /// Instead of the dictionary, until more of it is wanted.
    few: Option<DictionaryOfFew>,
    layout: L,
    spans: Vec<Span>,
    /// Indices that were picked.
    picked: Vec<u32>,
    data_type: DataType,
}

/// Values found and copied at a time: their spans stay in the first-level cache.
const BLOCK: usize = 1024;

impl BytesColumn<Views> {
    /// The column for a layout.
    pub(super) fn boxed(
        physical: Physical,
        layout: BytesLayout,
        data_type: &DataType,
        utf8: Option<Utf8>,
        carries_prefix: bool,
    ) -> Box<dyn Column> {
        fn of<L: Layout + 'static>(
            values: SpanDecoder,
            utf8: Option<Utf8>,
            layout: L,
            data_type: &DataType,
        ) -> Box<dyn Column> {
            let data_type = data_type.clone();
            Box::new(BytesColumn {
                values,
                utf8,
                dictionary: None,
                few: None,
                layout,
                spans: Vec::new(),
                picked: Vec::new(),
                data_type,
            })
        }
        let values = SpanDecoder::new(physical, carries_prefix);
        match layout {
            BytesLayout::Offsets32 => of(values, utf8, Offsets::<i32>::new(), data_type),
            BytesLayout::Offsets64 => of(values, utf8, Offsets::<i64>::new(), data_type),
            BytesLayout::Views => of(values, utf8, Views::new(), data_type),
        }
    }
}

fn set_whole_dictionary<L: Layout>(
    column: &mut BytesColumn<L>,
    page: DictionaryPage,
) -> Result<()> {
    let mut decoder = SpanDecoder::new(column.values.physical, false);
    decoder.set_page(Encoding::Plain, page.bytes, Count::Exactly(page.values))?;
    let mut spans = vec_for(page.values)?;
    decoder.read_spans(page.values, usize::MAX, &mut spans)?;
    let Payload::Shared(bytes) = decoder.payload()? else {
        return Err(no_page());
    };
    let mut dictionary = Dictionary { bytes: bytes.clone(), spans };
    if let Some(utf8) = column.utf8
        && let Some(lossy) =
            checked_text(utf8, &dictionary.bytes, &dictionary.spans, decoder.place())?
    {
        dictionary = Dictionary { bytes: lossy.bytes.into(), spans: lossy.spans };
    }
    column.layout.set_dictionary(&dictionary)?;
    column.dictionary = Some(dictionary);
    Ok(())
}

impl<L: Layout> Column for BytesColumn<L> {
    fn use_spare(&mut self, spare: &Spare) {
        self.layout.use_spare(spare);
    }

    fn reserve(&mut self, slots: usize) {
        self.layout.reserve(slots);
    }

    fn wants_dictionary_first(&self) -> bool {
        L::DICTIONARY_FIRST
    }

    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        let spans = entries.saturating_mul(size_of::<Span>());
        // What is mended can take three bytes where one was wrong.
        let mended = match self.utf8 {
            Some(Utf8::Lossy) => byte_len.saturating_mul(3).saturating_add(spans),
            _ => 0,
        };
        L::dictionary_bytes(entries).saturating_add(spans).saturating_add(mended)
    }

    fn leave_page(&mut self) -> bool {
        self.values.leave_page();
        self.layout.leave_page()
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        // Views point into the dictionary that stands first among their buffers.
        if !L::DICTIONARY_FIRST && self.values.physical == Physical::ByteArray {
            self.few = Some(DictionaryOfFew::new(page)?);
            return Ok(());
        }
        set_whole_dictionary(self, page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.values.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        if self.values.indices().is_some() {
            prepare_dictionary(self, n)?;
        }
        if let Some(indices) = self.values.indices() {
            if self.few.is_some() {
                self.picked.clear();
                indices.read(n, &mut self.picked)?;
                return look_up_few(self, room);
            }
            let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
            return self.layout.gather(indices, n, dictionary, room);
        }
        let check = self.utf8.filter(|utf8| !matches!(utf8, Utf8::Trusted(_)));
        let mut left = n;
        while left > 0 {
            let mut block = left.min(BLOCK);
            self.spans.clear();
            // The two straight ways: no span is written where lengths or the page itself will do.
            match &mut self.values.decoder {
                decoder @ (Decoder::DeltaLength(_) | Decoder::DeltaBytes(_)) => {
                    let values = match decoder {
                        Decoder::DeltaLength(decoder) => decoder.read_block(block)?,
                        Decoder::DeltaBytes(decoder) => decoder.read_block(block, room)?,
                        _ => return Err(no_page()),
                    };
                    if check.is_none() || is_text_end_to_end(values) {
                        self.layout.append_lengths(values, room)?;
                        left -= values.lengths.len();
                        continue;
                    }
                    self.spans.extend(values.spans());
                    block = self.spans.len();
                }
                Decoder::Plain(decoder) => {
                    let n = self.layout.append_plain(decoder, block, check.is_some(), room);
                    if n > 0 {
                        left -= n;
                        continue;
                    }
                    decoder.read_spans(block, &mut self.spans)?;
                }
                _ => self.values.read_spans(block, room, &mut self.spans)?,
            }
            let place = self.values.place();
            append_spans(self, place, room)?;
            left -= block;
        }
        Ok(())
    }

    fn read_picked(&mut self, n: usize, picks: &Bitmap, room: usize) -> Result<()> {
        if self.values.indices().is_some() {
            prepare_dictionary(self, picks.count_ones(0..n))?;
        }
        if let Some(indices) = self.values.indices() {
            self.picked.clear();
            indices.read_picked(n, picks, &mut self.picked)?;
            if self.few.is_some() {
                return look_up_few(self, room);
            }
            let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
            return self.layout.gather_indices(&self.picked, dictionary, room);
        }
        let mut at = 0;
        while at < n {
            self.spans.clear();
            self.values.read_spans((n - at).min(BLOCK), room, &mut self.spans)?;
            let found = self.spans.len();
            compact(&mut self.spans, 0, picks, at);
            let place = match self.spans.len() {
                kept if kept == found => self.values.place(),
                _ => Place::Apart,
            };
            append_spans(self, place, room)?;
            at += found;
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.values.skip(n)
    }

    fn holds(&self, n: usize) -> Option<bool> {
        match &self.values.decoder {
            Decoder::Plain(decoder) => Some(decoder.holds(n)),
            Decoder::Fixed { left, .. } => Some(n <= *left),
            _ => Some(n == 0),
        }
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        self.layout.spread(validity, first, slots, values);
    }

    fn bytes_held(&self) -> usize {
        self.layout.bytes_held()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef> {
        self.layout.finish(&self.data_type, nulls, slots)
    }
}

/// Appends the values of the spans that a column has found.
fn append_spans<L: Layout>(column: &mut BytesColumn<L>, place: Place, room: usize) -> Result<()> {
    let BytesColumn { values, utf8, layout, spans, .. } = column;
    let lossy = match *utf8 {
        None => None,
        Some(utf8) => checked_text(utf8, values.buffer()?, spans, place)?,
    };
    match lossy {
        None => layout.append(values.payload()?, spans, place, room),
        Some(lossy) => {
            let payload = Payload::Borrowed(&lossy.bytes);
            layout.append(payload, &lossy.spans, Place::EndToEnd, room)
        }
    }
}

/// Appends the entry of each index.
fn look_up<T: Copy>(indices: &[u32], entries: &[T], out: &mut Vec<T>) -> Result<()> {
    if gather(indices, entries, out) {
        return Ok(());
    }
    let highest = indices.iter().copied().max().unwrap_or(0);
    Err(out_of_range(highest, entries.len()))
}

#[cold]
fn too_long() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "more than 2 GiB of strings in one batch; read fewer rows per batch, or with 64-bit offsets",
    )
}

/// The payload of the spans, in bytes, if there is room for it.
fn payload_len(spans: &[Span], room: usize) -> Result<u64> {
    let wanted = spans.iter().map(|span| u64::from(span.len)).sum();
    if wanted > room as u64 { Err(no_room(wanted, room)) } else { Ok(wanted) }
}

/// Room is made for no more than so many times the bytes that were seen: those of a block of a batch of usual size, and what is added to them.
const MOST_TIMES: usize = 80;

/// Makes room for `more` bytes: where there is none, for as many as `slots` values take if they are like the `seen` ones so far, and `room` allows.
fn make_room(
    values: &mut Vec<u8>,
    more: u64,
    room: usize,
    seen: usize,
    slots: usize,
    spare: &Spare,
) -> Result<()> {
    let more = usize::try_from(more).unwrap_or(usize::MAX);
    if values.capacity() - values.len() >= more.saturating_add(SLACK) {
        return Ok(());
    }
    let so_far = values.len().saturating_add(more);
    let expected = so_far.saturating_mul(slots) / seen.max(1);
    let most = so_far.saturating_mul(MOST_TIMES).min(room).max(so_far);
    let wanted = roughly(expected.saturating_add(expected / 16)).clamp(so_far, most);
    if values.capacity() == 0 {
        *values = spare.take(wanted.saturating_add(SLACK));
    }
    values.try_reserve_exact((wanted - values.len()).saturating_add(SLACK)).map_err(no_memory)
}

#[cold]
fn no_memory(error: std::collections::TryReserveError) -> Error {
    Error::limit(LimitKind::Memory, format_args!("the values of one batch: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_room_is_made_than_there_is() {
        let spare = Spare::new(0);
        // One long value, where a million are announced.
        let mut values = Vec::new();
        make_room(&mut values, 1 << 20, 3 << 20, 1, 1 << 20, &spare).unwrap();
        assert!((1 << 20..4 << 20).contains(&values.capacity()), "{}", values.capacity());
        // What is there already is never too much.
        let mut values = Vec::new();
        make_room(&mut values, 1 << 20, 0, 1, 1 << 20, &spare).unwrap();
        assert!((1 << 20..2 << 20).contains(&values.capacity()));
    }
}
