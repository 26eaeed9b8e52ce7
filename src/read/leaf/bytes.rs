//! Byte strings: every encoding says where they lie ([`Span`]s), every layout takes them from there.
//!
//! Two phases, block by block: find the spans, then copy the payload (offsets) or point at it (views). Text is checked in bulk: a
//! dictionary once, other pages by the block.

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::column::{Column, Count, illegal, no_dictionary, no_page, no_room};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{EndToEnd, Span, delta_bytes, delta_length, plain};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::read::options::Utf8;
use crate::schema::Physical;
use crate::schema::convert::BytesLayout;
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::simd::gather::gather;
use crate::simd::strings::{Entries, SLACK};
use crate::simd::{expand, spans as kernels};
use crate::spare::Spare;
use crate::trusted;

/// Byte strings of any encoding.
pub(super) struct SpanDecoder {
    physical: Physical,
    carries_prefix: bool,
    decoder: Decoder,
}

enum Decoder {
    Nothing,
    Dictionary(Indices),
    Plain(plain::ByteArrays),
    DeltaLength(delta_length::Decoder),
    DeltaBytes(Box<delta_bytes::Decoder>),
    /// FIXED_LEN_BYTE_ARRAY read as strings of any length.
    Fixed {
        bytes: Bytes,
        width: usize,
        next: usize,
        left: usize,
    },
}

impl SpanDecoder {
    pub(super) fn new(physical: Physical, carries_prefix: bool) -> Self {
        Self { physical, carries_prefix, decoder: Decoder::Nothing }
    }

    pub(super) fn set_page(
        &mut self,
        encoding: Encoding,
        bytes: Bytes,
        count: Count,
    ) -> Result<()> {
        let text = self.physical == Physical::ByteArray;
        self.decoder = match encoding {
            Encoding::RleDictionary | Encoding::PlainDictionary => {
                Decoder::Dictionary(Indices::new(bytes, count.most())?)
            }
            Encoding::Plain => match self.physical {
                Physical::FixedLenByteArray(width) => {
                    let left = match count {
                        Count::Exactly(n) => n,
                        Count::AtMost(n) => n.min(bytes.len().checked_div(width).unwrap_or(n)),
                    };
                    if left.checked_mul(width).is_none_or(|len| len > bytes.len()) {
                        return Err(Error::mismatch(
                            Spec::Encodings("PLAIN"),
                            "bytes of the values",
                            format_args!("{left} times {width}"),
                            bytes.len(),
                        ));
                    }
                    Decoder::Fixed { bytes, width, next: 0, left }
                }
                _ => {
                    let n = match count {
                        Count::Exactly(n) => n,
                        Count::AtMost(n) => n.min(bytes.len() / size_of::<u32>()),
                    };
                    Decoder::Plain(plain::ByteArrays::new(bytes, n)?)
                }
            },
            Encoding::DeltaLengthByteArray if text => {
                let n =
                    count.settle(delta_length::stated_len(&bytes)?, "DELTA_LENGTH_BYTE_ARRAY")?;
                Decoder::DeltaLength(delta_length::Decoder::new(bytes, n)?)
            }
            Encoding::DeltaByteArray => {
                let n = count.settle(delta_bytes::stated_len(&bytes)?, "DELTA_BYTE_ARRAY")?;
                let previous = match &self.decoder {
                    Decoder::DeltaBytes(last) if self.carries_prefix => {
                        Some(last.last_value().to_vec())
                    }
                    _ => None,
                };
                Decoder::DeltaBytes(Box::new(delta_bytes::Decoder::new(bytes, n, previous)?))
            }
            other => return Err(illegal(other, self.physical)),
        };
        Ok(())
    }

    /// The indices, if the page holds some.
    pub(super) fn indices(&mut self) -> Option<&mut Indices> {
        match &mut self.decoder {
            Decoder::Dictionary(indices) => Some(indices),
            _ => None,
        }
    }

    /// Appends where the next `n` values lie in [`SpanDecoder::buffer`], or those of the next block if these are fewer, but at least one; not for
    /// dictionary pages. A decoder that must spell values out takes at most `room` bytes for them.
    pub(super) fn read_spans(&mut self, n: usize, room: usize, out: &mut Vec<Span>) -> Result<()> {
        match &mut self.decoder {
            Decoder::Plain(decoder) => decoder.read_spans(n, out),
            Decoder::DeltaLength(decoder) => decoder.read_spans(n, out),
            Decoder::DeltaBytes(decoder) => {
                out.extend(decoder.read_block(n, room)?.spans());
                Ok(())
            }
            Decoder::Fixed { width, next, left, .. } => {
                *left = left.checked_sub(n).ok_or_else(no_page)?;
                let len = u32::try_from(*width).map_err(|_| no_page())?;
                for _ in 0..n {
                    let start = u32::try_from(*next).map_err(|_| no_page())?;
                    out.push(Span { start, len });
                    *next += *width;
                }
                Ok(())
            }
            Decoder::Dictionary(_) | Decoder::Nothing => Err(no_page()),
        }
    }

    /// What the spans lie in, until the next call that reads.
    pub(super) fn buffer(&self) -> Result<&[u8]> {
        Ok(match self.payload()? {
            Payload::Shared(bytes) => bytes,
            Payload::Borrowed(bytes) => bytes,
        })
    }

    fn payload(&self) -> Result<Payload<'_>> {
        Ok(match &self.decoder {
            Decoder::Plain(decoder) => Payload::Shared(decoder.buffer()),
            Decoder::DeltaLength(decoder) => Payload::Shared(decoder.buffer()),
            Decoder::Fixed { bytes, .. } => Payload::Shared(bytes),
            Decoder::DeltaBytes(decoder) => Payload::Borrowed(decoder.buffer()),
            Decoder::Dictionary(_) | Decoder::Nothing => return Err(no_page()),
        })
    }

    /// How the values lie in the buffer.
    fn place(&self) -> Place {
        match self.decoder {
            Decoder::Plain(_) => Place::BehindLengths,
            _ => Place::EndToEnd,
        }
    }

    pub(super) fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.decoder {
            Decoder::Plain(decoder) => decoder.skip(n),
            Decoder::DeltaLength(decoder) => decoder.skip(n),
            Decoder::DeltaBytes(decoder) => decoder.skip(n),
            Decoder::Dictionary(indices) => indices.skip(n),
            Decoder::Fixed { width, next, left, .. } => {
                *left = left.checked_sub(n).ok_or_else(no_page)?;
                *next += n * *width;
                Ok(())
            }
            Decoder::Nothing if n == 0 => Ok(()),
            Decoder::Nothing => Err(no_page()),
        }
    }
}

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

/// A dictionary page of which few entries are wanted: they are looked up in it.
struct DictionaryOfFew {
    values: plain::ByteArrays,
    /// Entries that the page has.
    entries: usize,
    /// Those that were wanted so far.
    wanted: usize,
    /// Where the first of them lie, as far as was asked.
    spans: Vec<Span>,
}

/// So much of a dictionary may be looked up in its page before all of it is prepared.
const PART_OF_DICTIONARY: usize = 16;

impl DictionaryOfFew {
    /// Where an entry lies.
    fn span(&mut self, index: u32) -> Result<Span> {
        let index_of = index as usize;
        if index_of >= self.entries {
            return Err(out_of_range(index, self.entries));
        }
        if let Some(more) = (index_of + 1).checked_sub(self.spans.len()) {
            self.values.read_spans(more, &mut self.spans)?;
        }
        self.spans.get(index_of).copied().ok_or_else(no_page)
    }
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
    let mut spans = Vec::new();
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

/// Before `more` indices are looked up: prepares the dictionary, unless so few of it are wanted that this is more work.
fn prepare_dictionary<L: Layout>(column: &mut BytesColumn<L>, more: usize) -> Result<()> {
    let Some(few) = &mut column.few else { return Ok(()) };
    few.wanted = few.wanted.saturating_add(more);
    if few.wanted <= few.entries / PART_OF_DICTIONARY {
        return Ok(());
    }
    let page = DictionaryPage { values: few.entries, bytes: few.values.buffer().clone() };
    column.few = None;
    set_whole_dictionary(column, page)
}

/// Appends the entries of `picked`, found in the dictionary page.
fn look_up_few<L: Layout>(column: &mut BytesColumn<L>, room: usize) -> Result<()> {
    let BytesColumn { few, utf8, layout, picked, .. } = column;
    let few = few.as_mut().ok_or_else(no_dictionary)?;
    for &index in &*picked {
        let span = [few.span(index)?];
        let page = few.values.buffer();
        let lossy = match *utf8 {
            None => None,
            Some(utf8) => checked_text(utf8, page, &span, Place::Apart)?,
        };
        match lossy {
            None => layout.append(Payload::Shared(page), &span, Place::Apart, room)?,
            Some(Lossy { bytes, spans }) => {
                layout.append(Payload::Borrowed(&bytes), &spans, Place::Apart, room)?;
            }
        }
    }
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

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        // Views point into the dictionary that stands first among their buffers.
        if !L::DICTIONARY_FIRST && self.values.physical == Physical::ByteArray {
            let (values, entries) = (plain::ByteArrays::new(page.bytes, page.values)?, page.values);
            self.few = Some(DictionaryOfFew { values, entries, wanted: 0, spans: Vec::new() });
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

/// Text whose wrong sequences were replaced.
struct Lossy {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// Checks that the values of a block are UTF-8; gives them anew if they are not and may be mended.
///
/// The values and what lies between them are checked in one go where that proves each of them.
fn checked_text(utf8: Utf8, source: &[u8], spans: &[Span], place: Place) -> Result<Option<Lossy>> {
    let is_text = || is_text(source, spans, place);
    match utf8 {
        Utf8::Trusted(_) => Ok(None),
        Utf8::Strict if is_text() => Ok(None),
        Utf8::Lossy if is_text() => Ok(None),
        Utf8::Strict => {
            let wrong = spans
                .iter()
                .map(|span| span.slice(source))
                .find_map(|value| std::str::from_utf8(value).err().map(|e| (value, e)));
            let detail = wrong.map_or_else(String::new, |(value, error)| {
                let shown = &value[..value.len().min(32)];
                format!(": {error} in \"{}\"", shown.escape_ascii())
            });
            Err(Error::malformed(
                Spec::LogicalTypes("STRING"),
                format_args!("a string is not UTF-8{detail}; read it as bytes, or leniently"),
            ))
        }
        Utf8::Lossy => {
            let mut lossy = Lossy { bytes: Vec::new(), spans: Vec::with_capacity(spans.len()) };
            for span in spans {
                let text = String::from_utf8_lossy(span.slice(source));
                let start = u32::try_from(lossy.bytes.len()).map_err(|_| too_long())?;
                let len = u32::try_from(text.len()).map_err(|_| too_long())?;
                lossy.bytes.extend_from_slice(text.as_bytes());
                lossy.spans.push(Span { start, len });
            }
            Ok(Some(lossy))
        }
    }
}

fn is_text(source: &[u8], spans: &[Span], place: Place) -> bool {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return true;
    };
    let start = first.start as usize;
    let end = last.start as usize + last.len as usize;
    let stretch = source.get(start..end).unwrap_or_default();
    let longest = spans.iter().map(|span| span.len).max().unwrap_or(0);
    match place {
        Place::EndToEnd => is_text_in_one(stretch, || {
            spans.iter().all(|span| begins_a_character(source, span.start as usize))
        }),
        Place::BehindLengths if longest < ASCII && is_text_in_one(stretch, || true) => true,
        // What lies between was not looked at.
        Place::Apart if stretch.is_ascii() => true,
        _ => spans.iter().all(|span| simdutf8::basic::from_utf8(span.slice(source)).is_ok()),
    }
}

/// Lengths below this are ASCII between the values: no character reaches across them.
const ASCII: u32 = 128;

fn is_text_end_to_end(values: EndToEnd<'_>) -> bool {
    is_text_in_one(values.stretch(), || {
        values.spans().all(|span| begins_a_character(values.source, span.start as usize))
    })
}

/// Whether values in one stretch are text: all of them together are, and, if that is not plain to see, none begins inside a character.
fn is_text_in_one(stretch: &[u8], begin_characters: impl FnOnce() -> bool) -> bool {
    stretch.is_ascii() || (simdutf8::basic::from_utf8(stretch).is_ok() && begin_characters())
}

/// Whether the byte at `at`, if there is one, does not continue a UTF-8 sequence.
fn begins_a_character(source: &[u8], at: usize) -> bool {
    source.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)
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
    let most = so_far.saturating_mul(64).min(room).max(so_far);
    let wanted = expected.saturating_add(expected / 16).clamp(so_far, most);
    if values.capacity() == 0 {
        *values = spare.take(wanted.saturating_add(SLACK));
    }
    values.try_reserve_exact((wanted - values.len()).saturating_add(SLACK)).map_err(no_memory)
}

#[cold]
fn no_memory(error: std::collections::TryReserveError) -> Error {
    Error::limit(LimitKind::Memory, format_args!("the values of one batch: {error}"))
}

/// Offsets into one buffer.
pub(super) struct Offsets<O> {
    spare: Spare,
    /// The end of every value, behind the 0 that the first begins at.
    offsets: Vec<O>,
    values: Vec<u8>,
    dictionary: Option<Entries>,
    indices: Vec<u32>,
    /// Slots that were announced.
    slots: usize,
}

impl<O: trusted::Offset> Offsets<O> {
    pub(super) fn new() -> Self {
        Self {
            spare: Spare::new(0),
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
            // Something is wrong, or there is no room for all of them.
            let highest = left.iter().copied().max().unwrap_or(0);
            if highest as usize >= entries.len() {
                return Err(out_of_range(highest, entries.len()));
            }
            let total = entries.total(left);
            let end = (self.values.len() as u64).saturating_add(total);
            if end > room as u64 {
                return Err(no_room(total, room.saturating_sub(self.values.len())));
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
        // First, so that no offset is beyond the values if there is no memory for them.
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

/// Values that are at hand, as an array.
impl<O: trusted::Offset> Offsets<O> {
    /// Appends the entries that indices stand for.
    pub(super) fn look_up(&mut self, indices: &[u32], entries: &Entries) -> Result<()> {
        self.slots = indices.len();
        self.begin();
        self.append_entries(entries, indices, usize::MAX)
    }

    /// Appends values, of which the lengths are given too.
    pub(super) fn append_all<'a>(
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
    pub(super) fn spread_nulls(&mut self, validity: &Bitmap, slots: usize, values: usize) {
        Layout::spread(self, validity, 0, slots, values);
    }

    /// The array of the values.
    pub(super) fn into_array(
        mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        Layout::finish(&mut self, data_type, nulls, 0)
    }
}

impl<O: trusted::Offset> Layout for Offsets<O> {
    fn use_spare(&mut self, spare: &Spare) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        self.spare.reserve(&mut self.offsets, slots.saturating_add(1));
        self.slots = slots;
        self.begin();
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
            return Err(no_room(u64::from(values.total), left));
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
        let expected = expected.saturating_add(expected / 4).min(room.saturating_sub(before));
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
        // Growing by doubling may leave half of it unused.
        if values.capacity() > values.len() + values.len() / 4 + (64 << 10) {
            values.shrink_to_fit();
        }
        let (offsets, values) = (self.spare.lend(offsets), self.spare.lend(values));
        trusted::byte_array::<O>(data_type, offsets.into(), values, nulls)
    }
}

/// Views: short values inside them, long ones in the buffers of pages and dictionaries.
pub(super) struct Views {
    spare: Spare,
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    /// The dictionary of the chunk: views of its entries (into buffer 0), and the buffer.
    dictionary: Option<(Vec<u128>, Buffer)>,
    /// Values copied because their page should not be kept, and the index that their buffer will have.
    side: Vec<u8>,
    side_index: Option<usize>,
    /// The page that the last block adopted, by address, and its index.
    adopted: Option<(usize, u32)>,
    /// Slots that were announced.
    slots: usize,
}

/// The longest value that lies in the view itself.
const INLINE: u32 = 12;

impl Views {
    fn new() -> Self {
        Self {
            spare: Spare::new(0),
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

    /// Where the next copied value begins, if `more` bytes fit behind it.
    fn side_base(&self, more: usize) -> Result<u32> {
        let end = self.side.len().checked_add(more).and_then(|end| i32::try_from(end).ok());
        end.ok_or_else(too_long)?;
        u32::try_from(self.side.len()).map_err(|_| too_long())
    }

    /// Copies the long values of a block one by one.
    fn copy(&mut self, source: &[u8], spans: &[Span], room: usize) -> Result<()> {
        payload_len(spans, room)?;
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
            Some((address, index)) if address == page.as_ptr() as usize => Ok(index),
            _ => u32::try_from(self.buffers.len()).map_err(|_| too_long()),
        }
    }

    /// Adopts a page, so that views may point into it.
    fn adopt(&mut self, page: &Bytes, index: u32) {
        if self.buffers.len() == index as usize {
            self.buffers.push(Buffer::from(page.clone()));
            self.adopted = Some((page.as_ptr() as usize, index));
        }
    }
}

/// Whether a page is kept for the sake of its long values: at least half of what a block takes of it is theirs.
fn worth_adopting(outside: u64, stretch: u64) -> bool {
    outside * 2 >= stretch
}

/// Bytes of the values that do not lie in their views.
fn outside(lengths: impl Iterator<Item = u32>) -> u64 {
    lengths.map(|len| if len > INLINE { u64::from(len) } else { 0 }).sum()
}

impl Layout for Views {
    /// Its buffer is the first, where the views of its entries point.
    const DICTIONARY_FIRST: bool = true;

    fn use_spare(&mut self, spare: &Spare) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        self.spare.reserve(&mut self.views, slots);
        self.slots = slots;
    }

    fn set_dictionary(&mut self, dictionary: &Dictionary) -> Result<()> {
        let mut views = Vec::with_capacity(dictionary.spans.len());
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
                if total as usize > room {
                    return Err(no_room(u64::from(total), room));
                }
                let index = self.side()?;
                let base = self.side_base(total as usize)?.wrapping_sub(start);
                let seen = self.views.len() + lengths.len();
                let more = u64::from(total);
                make_room(&mut self.side, more, room, seen, self.slots, &self.spare)?;
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
        self.views.capacity() * size_of::<u128>()
            + self.side.capacity()
            + self.buffers.iter().map(Buffer::len).sum::<usize>()
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
