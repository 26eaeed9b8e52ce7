//! [`BinaryReader`] reads block by block, in two phases: it finds the spans, then copies the bytes
//! (offsets) or refers to them (views).

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;

use super::find::{SpanDecoder, StringDecoder};
use super::layout::{BLOCK, Layout, Payload, StringDictionary};
use super::offsets::Offsets;
use super::text::{Lossy, mended, text_check};
use super::views::Views;
use crate::encoding::ValueSpan;
use crate::error::Result;
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::page::DictionaryPage;
use crate::read::column::values::reader::{Count, ValueReader, no_dictionary, no_page};
use crate::read::column::values::sparse::SparseDictionary;
use crate::read::options::Utf8;
use crate::schema::Physical;
use crate::schema::convert::BytesLayout;
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::trusted::Place;

/// Decodes a leaf of byte strings into a layout.
pub(in crate::read::column::values) struct BinaryReader<L> {
    values: SpanDecoder,
    /// How text is checked; `None` for bytes.
    utf8: Option<Utf8>,
    /// Used instead of the dictionary while few entries are wanted.
    sparse: Option<SparseDictionary>,
    layout: L,
    spans: Vec<ValueSpan>,
    /// Indices of the entries to look up.
    selected: Vec<u32>,
    data_type: DataType,
}

impl BinaryReader<Views> {
    /// The reader for `layout`, whatever `L` is here.
    pub(in crate::read::column::values) fn boxed(
        physical: Physical,
        layout: BytesLayout,
        data_type: &DataType,
        utf8: Option<Utf8>,
        carries_prefix: bool,
    ) -> Box<dyn ValueReader> {
        fn boxed<L: Layout + 'static>(
            values: SpanDecoder,
            utf8: Option<Utf8>,
            layout: L,
            data_type: &DataType,
        ) -> Box<dyn ValueReader> {
            let data_type = data_type.clone();
            Box::new(BinaryReader {
                values,
                utf8,
                sparse: None,
                layout,
                spans: Vec::new(),
                selected: Vec::new(),
                data_type,
            })
        }
        let values = SpanDecoder::new(physical, carries_prefix);
        match layout {
            BytesLayout::Offsets32 => boxed(values, utf8, Offsets::<i32>::new(), data_type),
            BytesLayout::Offsets64 => boxed(values, utf8, Offsets::<i64>::new(), data_type),
            BytesLayout::Views => boxed(values, utf8, Views::new(), data_type),
        }
    }
}

fn set_whole_dictionary<L: Layout>(
    column: &mut BinaryReader<L>,
    page: DictionaryPage,
) -> Result<()> {
    let mut decoder = SpanDecoder::new(column.values.physical, false);
    decoder.set_page(Encoding::Plain, page.bytes, Count::Exactly(page.values))?;
    let mut spans = memory::vec_for(page.values)?;
    decoder.read_spans(page.values, usize::MAX, &mut spans)?;
    let Payload::Shared(bytes) = decoder.payload()? else {
        return Err(no_page());
    };
    let dictionary = StringDictionary { bytes: bytes.clone(), spans };
    let check = text_check(column.utf8);
    if !column.layout.set_dictionary(&dictionary, decoder.place(), check)? {
        let Lossy { bytes, spans } = mended(column.utf8, &dictionary.bytes, &dictionary.spans)?;
        let dictionary = StringDictionary { bytes: bytes.into(), spans };
        column.layout.set_dictionary(&dictionary, Place::EndToEnd, check)?;
    }
    Ok(())
}

impl<L: Layout> ValueReader for BinaryReader<L> {
    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.layout.use_free_lists(free_lists);
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        self.layout.reserve(slots)
    }

    fn room_for_nulls(&mut self, nulls: usize, _max_bytes: usize) -> Result<()> {
        self.layout.room_for_slots(nulls)
    }

    fn wants_dictionary_first(&self) -> bool {
        L::DICTIONARY_FIRST
    }

    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        let spans = entries.saturating_mul(size_of::<ValueSpan>());
        // A replacement character takes three bytes, and may replace one invalid byte.
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
        // Views point into the whole dictionary. Offsets copy, and can look up single entries.
        if !L::DICTIONARY_FIRST && self.values.physical == Physical::ByteArray {
            self.sparse = Some(SparseDictionary::of_byte_strings(page)?);
            return Ok(());
        }
        set_whole_dictionary(self, page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.values.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, max_bytes: usize) -> Result<()> {
        if self.values.indices().is_some() {
            prepare_dictionary(self, n)?;
        }
        if let Some(indices) = self.values.indices() {
            if self.sparse.is_some() {
                self.selected.clear();
                indices.read(n, &mut self.selected)?;
                return look_up_sparse(self, max_bytes);
            }
            return self.layout.gather(indices, n, max_bytes);
        }
        let check = text_check(self.utf8);
        let mut left = n;
        while left > 0 {
            let mut block = left.min(BLOCK);
            self.spans.clear();
            // The fast paths write no spans where lengths, or the page itself, are enough.
            match &mut self.values.decoder {
                decoder @ (StringDecoder::DeltaLength(_) | StringDecoder::DeltaBytes(_)) => {
                    let values = match decoder {
                        StringDecoder::DeltaLength(decoder) => decoder.read_block(block)?,
                        StringDecoder::DeltaBytes(decoder) => {
                            decoder.read_block(block, max_bytes)?
                        }
                        _ => return Err(no_page()),
                    };
                    if self.layout.append_lengths(values, check, max_bytes)? {
                        left -= values.lengths.len();
                        continue;
                    }
                    memory::extend(&mut self.spans, values.spans())?;
                    block = self.spans.len();
                }
                StringDecoder::Plain(decoder) => {
                    let n = self.layout.append_plain(decoder, block, check, max_bytes);
                    if n > 0 {
                        left -= n;
                        continue;
                    }
                    decoder.read_spans(block, &mut self.spans)?;
                }
                _ => self.values.read_spans(block, max_bytes, &mut self.spans)?,
            }
            let place = self.values.place();
            append_spans(self, place, max_bytes)?;
            left -= block;
        }
        Ok(())
    }

    fn read_selected(&mut self, n: usize, selection: &Bitmap, max_bytes: usize) -> Result<()> {
        if self.values.indices().is_some() {
            prepare_dictionary(self, selection.count_ones(0..n))?;
        }
        if let Some(indices) = self.values.indices() {
            self.selected.clear();
            indices.read_selected(n, selection, &mut self.selected)?;
            if self.sparse.is_some() {
                return look_up_sparse(self, max_bytes);
            }
            return self.layout.gather_indices(&self.selected, max_bytes);
        }
        let mut at = 0;
        while at < n {
            // Values that share prefixes are only joined where one of a block is wanted.
            let unwanted = (at..n).take_while(|i| !selection.get(*i)).count();
            if unwanted > 0 {
                self.values.skip(unwanted)?;
                at += unwanted;
                continue;
            }
            self.spans.clear();
            self.values.read_spans((n - at).min(BLOCK), max_bytes, &mut self.spans)?;
            let found = self.spans.len();
            compact(&mut self.spans, 0, selection, at);
            let place = match self.spans.len() {
                kept if kept == found => self.values.place(),
                _ => Place::Apart,
            };
            append_spans(self, place, max_bytes)?;
            at += found;
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.values.skip(n)
    }

    fn holds(&self, n: usize) -> Option<bool> {
        match &self.values.decoder {
            StringDecoder::Plain(decoder) => Some(decoder.holds(n)),
            StringDecoder::Fixed { left, .. } => Some(n <= *left),
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

/// Appends the values of `column.spans`.
fn append_spans<L: Layout>(
    column: &mut BinaryReader<L>,
    place: Place,
    max_bytes: usize,
) -> Result<()> {
    let BinaryReader { values, utf8, layout, spans, .. } = column;
    append_mended(layout, values.payload()?, spans, place, *utf8, max_bytes)
}

/// Appends values, mended if they are no text and may be.
fn append_mended<L: Layout>(
    layout: &mut L,
    payload: Payload<'_>,
    spans: &[ValueSpan],
    place: Place,
    utf8: Option<Utf8>,
    max_bytes: usize,
) -> Result<()> {
    let check = text_check(utf8);
    if layout.append(payload, spans, place, check, max_bytes)? {
        return Ok(());
    }
    let Lossy { bytes, spans } = mended(utf8, payload.bytes(), spans)?;
    layout.append(Payload::Borrowed(&bytes), &spans, Place::EndToEnd, check, max_bytes).map(drop)
}

/// Called before `more` indices are looked up. Builds the whole dictionary, unless few of its
/// entries were wanted so far.
fn prepare_dictionary<L: Layout>(column: &mut BinaryReader<L>, more: usize) -> Result<()> {
    let Some(sparse) = &mut column.sparse else { return Ok(()) };
    if sparse.stays_sparse(more) {
        return Ok(());
    }
    let page = sparse.page().clone();
    column.sparse = None;
    set_whole_dictionary(column, page)
}

/// Looks up the entries of `column.selected` in the dictionary page, one by one.
fn look_up_sparse<L: Layout>(column: &mut BinaryReader<L>, max_bytes: usize) -> Result<()> {
    let BinaryReader { sparse, utf8, layout, selected, .. } = column;
    let sparse = sparse.as_mut().ok_or_else(no_dictionary)?;
    for &index in &*selected {
        let span = [sparse.span(index)?];
        let page = Payload::Shared(&sparse.page().bytes);
        append_mended(layout, page, &span, Place::Apart, *utf8, max_bytes)?;
    }
    Ok(())
}
