//! A page as spans: its header, its levels, its values.
//!
//! Spec: README.md, "Data Pages"; `parquet.thrift`, PageHeader. The body is read, decrypted and
//! decompressed when what is inside it is asked for. Trap: version 2 stores the repetition levels
//! first, and compresses neither these nor the definition levels.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::levels::{self, StoredLevels};
use super::memory::{self, decompress};
use super::metadata::{self, Context};
use super::module::{self, Opener, no_bytes};
use super::span::{Cutter, Slots, Span, SpanKind, Spans, is_of_file};
use super::value::ShownColumn;
use super::values::{self, Dictionary, ValueContext};
use crate::crypt::Module;
use crate::encoding::legacy::BitOrder;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{CompressionCodec, Encoding, PageHeader, PageType};
use crate::io::Source;
use crate::limits::Budget;
use crate::page::{PageContext, PagePosition, StoredHeader};

/// What the pages of a column chunk are explained with.
pub(super) struct ChunkContext {
    pub(super) source: Arc<dyn Source>,
    pub(super) budget: Budget,
    pub(super) column: Arc<ShownColumn>,
    pub(super) row_group: usize,
    /// The bytes of the chunk.
    pub(super) range: Range<u64>,
    pub(super) page: PageContext,
    pub(super) is_encrypted: bool,
    /// Whether the bodies of its pages are encrypted without a tag.
    pub(super) has_ctr_pages: bool,
    /// The dictionary, once a page has asked for it.
    pub(super) dictionary: OnceLock<Option<Arc<Dictionary>>>,
}

impl ChunkContext {
    /// Reads a header and says where it ends. Of what is longer than `bytes`, there is more.
    ///
    /// # Errors
    /// As [`PageContext::read_header`].
    pub(super) fn read_header(&self, bytes: &[u8], position: PagePosition) -> Result<StoredHeader> {
        self.page.read_header(bytes, position)
    }

    /// A span of the chunk.
    pub(super) fn span(
        &self,
        range: Range<u64>,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Span {
        let mut span = Span::in_file(&self.source, range, kind, name);
        span.row_group = Some(self.row_group);
        span.column = Some(self.column.path.clone());
        span.leaf = Some(self.column.leaf.index);
        span
    }

    /// Gives a span of the file children that are cut off its bytes, which are read for it.
    pub(super) fn with_parts(
        self: &Arc<Self>,
        span: Span,
        cut: impl Fn(Cutter) -> Spans + Send + Sync + 'static,
    ) -> Span {
        let (context, range) = (self.clone(), span.offset..span.end());
        span.with_children(move || {
            match memory::read(&*context.source, range.clone(), &context.budget) {
                Ok(bytes) => cut(Cutter::new(bytes, range.start)),
                Err(error) => Spans::unparsed(&context.source, range.clone(), error),
            }
        })
    }

    pub(super) fn opener(&self, module: Module) -> Option<Opener> {
        let decryptor = self.page.decryptor.clone()?;
        Some(Opener { decryptor, module, budget: self.budget.clone() })
    }

    /// The values of the dictionary page.
    fn dictionary(&self) -> Option<Arc<Dictionary>> {
        self.dictionary.get_or_init(|| self.read_dictionary().ok().flatten()).clone()
    }

    fn read_dictionary(&self) -> Result<Option<Arc<Dictionary>>> {
        /// No header of a dictionary page is longer.
        const MAX_HEADER: u64 = 64 << 10;
        let end = self.range.start.saturating_add(MAX_HEADER).min(self.range.end);
        let head = memory::read(&*self.source, self.range.start..end, &self.budget)?;
        let position = PagePosition { is_first: true, data_pages: 0 };
        let StoredHeader { header, len, body: module } = self.read_header(&head, position)?;
        let Some(inner) = &header.dictionary_page_header else { return Ok(None) };
        let start = self.range.start + len as u64;
        let body_len = u64::try_from(header.compressed_page_size).unwrap_or_default();
        let range = start..start.saturating_add(body_len).min(self.range.end);
        let mut body = memory::read(&*self.source, range, &self.budget)?;
        if let Some(opener) = module.and_then(|module| self.opener(module)) {
            body = opener.open(&body)?;
        }
        let bytes = self.whole(&header, &body)?;
        let n = usize::try_from(inner.num_values).unwrap_or_default();
        Ok(Some(Arc::new(Dictionary::new(bytes, n, self.column.clone())?)))
    }

    /// The bytes of a body that is compressed as a whole.
    fn whole(&self, header: &PageHeader, body: &Bytes) -> Result<Bytes> {
        if self.page.codec == CompressionCodec::Uncompressed {
            return Ok(body.clone());
        }
        let len = usize::try_from(header.uncompressed_page_size).unwrap_or_default();
        decompress(self.page.codec, body, len, self.page.page_bytes, &self.budget)
    }
}

/// Where a page lies.
#[derive(Debug, Clone)]
pub(super) struct PageExtent {
    /// Where its header begins.
    pub(super) offset: u64,
    /// The header as it is stored.
    pub(super) header: Bytes,
    /// Where its body ends.
    pub(super) end: u64,
    /// Its index among the data pages, if it is one.
    pub(super) number: Option<usize>,
}

/// Describes a page.
pub(super) fn describe(
    context: &Arc<ChunkContext>,
    place: PageExtent,
    stored: &StoredHeader,
) -> Span {
    let header = Arc::new((*stored.header).clone());
    let (kind, name) = match (header.r#type, place.number) {
        (PageType::DictionaryPage, _) => (SpanKind::DictionaryPage, "dictionary page".into()),
        (PageType::DataPage, Some(number)) => (SpanKind::DataPage, format!("data page {number}")),
        (PageType::DataPageV2, Some(number)) => {
            (SpanKind::DataPageV2, format!("data page {number}"))
        }
        _ => (SpanKind::OtherPage, "page".to_owned()),
    };
    let mut span = context.span(place.offset..place.end, kind, name);
    span.page = place.number;
    span = span.with_page_header((*header).clone(), place.header.len());
    let body = Arc::new(PageBody {
        context: context.clone(),
        header,
        range: place.offset + place.header.len() as u64..place.end,
        module: stored.body,
    });
    let body_of_slots = body.clone();
    let is_data = matches!(kind, SpanKind::DataPage | SpanKind::DataPageV2);
    let has_levels = context.column.leaf.max_def > 0 || context.column.leaf.max_rep > 0;
    if is_data && has_levels {
        span = span.with_slots(move || {
            let slots = body_of_slots.plain().and_then(|bytes| body_of_slots.slots(&bytes));
            slots.unwrap_or_else(|error| match is_of_file(&error) {
                true => Slots::new(std::iter::empty()),
                false => Slots::new(std::iter::once(Err(error))),
            })
        });
    }
    let is_dictionary = kind == SpanKind::DictionaryPage;
    span.with_children(move || {
        let header = header_span(&body, &place, is_dictionary);
        let inside = (!body.range.is_empty()).then(|| PageBody::in_file(&body));
        Spans::list([header].into_iter().chain(inside).collect())
    })
}

fn header_span(body: &Arc<PageBody>, place: &PageExtent, is_dictionary: bool) -> Span {
    let context = Context::of_column(&body.context.column);
    let mut cutter = Cutter::new(place.header.clone(), place.offset);
    let (kind, name) = (SpanKind::PageHeader, "page header");
    if !body.context.is_encrypted {
        return metadata::cut::<PageHeader>(&mut cutter, kind, name, context);
    }
    let len = cutter.rest().len();
    let span = cutter.cut(len, kind, name);
    let module = match place.number {
        Some(number) => Module::DataPageHeader(number),
        None if is_dictionary => Module::DictionaryPageHeader,
        None => Module::DataPageHeader(0),
    };
    let opener = body.context.opener(module);
    module::describe(span, true, opener, move |plain| {
        metadata::decrypted::<PageHeader>(plain, kind, name, context.clone())
    })
}

/// The body of a page.
struct PageBody {
    context: Arc<ChunkContext>,
    header: Arc<PageHeader>,
    range: Range<u64>,
    /// What it is, if it is encrypted.
    module: Option<Module>,
}

impl PageBody {
    /// As it is stored.
    fn stored(&self) -> Result<Bytes> {
        memory::read(&*self.context.source, self.range.clone(), &self.context.budget)
    }

    /// Not encrypted.
    fn plain(&self) -> Result<Bytes> {
        let stored = self.stored()?;
        match self.module.and_then(|module| self.context.opener(module)) {
            Some(opener) => opener.open(&stored),
            None => Ok(stored),
        }
    }

    /// Whether it is compressed as a whole.
    fn is_compressed(&self) -> bool {
        self.header.r#type != PageType::DataPageV2
            && self.context.page.codec != CompressionCodec::Uncompressed
    }

    /// The body in the file.
    fn in_file(this: &Arc<Self>) -> Span {
        let source = &this.context.source;
        let span = Span::in_file(source, this.range.clone(), SpanKind::PageBody, "page body");
        let span = match this.header.crc {
            Some(stated) => {
                let body = this.clone();
                span.with_checksum(move || {
                    Ok((stated.cast_unsigned(), crc32fast::hash(&body.stored()?)))
                })
            }
            None => span,
        };
        if this.context.is_encrypted {
            let has_tag = !this.context.has_ctr_pages;
            let span = this.context.with_parts(span, move |cutter| module::parts(cutter, has_tag));
            let body = this.clone();
            let is_open = body.module.is_some_and(|module| body.context.opener(module).is_some());
            return match is_open {
                false => span.with_text("encrypted; its key is not known"),
                true => span.with_decrypted(move || match body.plain() {
                    Ok(plain) => Spans::list(vec![Self::in_memory(&body, plain)]),
                    Err(error) if error.kind() == ErrorKind::Io => Spans::failed(error),
                    Err(error) => no_bytes(&error),
                }),
            };
        }
        let (body, offset) = (this.clone(), this.range.start);
        let of = this.clone();
        let failed = move |error| Spans::unparsed(&of.context.source, of.range.clone(), error);
        this.with_inside(span, move || body.stored(), offset, failed)
    }

    /// A body that was decrypted.
    fn in_memory(this: &Arc<Self>, plain: Bytes) -> Span {
        let len = plain.len();
        let mut cutter = Cutter::new(plain.clone(), 0);
        let span = cutter.cut(len, SpanKind::PageBody, "page body");
        this.with_inside(span, move || Ok(plain.clone()), 0, |error| no_bytes(&error))
    }

    /// Describes a body that is not encrypted, whose bytes `load` gives.
    fn with_inside(
        self: &Arc<Self>,
        span: Span,
        load: impl Fn() -> Result<Bytes> + Send + Sync + 'static,
        offset: u64,
        failed: impl Fn(Error) -> Spans + Send + Sync + 'static,
    ) -> Span {
        let body = self.clone();
        if !self.is_compressed() {
            return span.with_children(move || match load() {
                Ok(bytes) => Spans::list(body.parts(bytes, offset)),
                Err(error) => failed(error),
            });
        }
        let (codec, len) = (self.context.page.codec, self.header.uncompressed_page_size);
        let text = format!("{codec}: {} bytes become {len}", span.length);
        span.with_text(text).with_decompressed(move || {
            let opened = load().and_then(|stored| body.context.whole(&body.header, &stored));
            match opened {
                Ok(bytes) => Spans::list(body.parts(bytes, 0)),
                Err(error) if error.kind() == ErrorKind::Io => Spans::failed(error),
                Err(error) => no_bytes(&error),
            }
        })
    }

    /// The parts of a body that is neither encrypted nor, as a whole, compressed.
    fn parts(&self, bytes: Bytes, offset: u64) -> Vec<Span> {
        let mut cutter = Cutter::new(bytes, offset);
        let mut out = Vec::new();
        let header = &self.header;
        let values = match header.r#type {
            PageType::DictionaryPage => {
                if let Some(span) = cutter.cut_rest(SpanKind::Values, "values") {
                    out.push(self.dictionary_values(span));
                }
                return out;
            }
            PageType::DataPage => self.cut_levels_v1(&mut cutter, &mut out),
            PageType::DataPageV2 => self.cut_levels_v2(&mut cutter, &mut out),
            _ => Err("a page of this type holds no values that are known".to_owned()),
        };
        match values {
            Err(why) => out.extend(cutter.unparsed(why)),
            Ok(ValueSection { n, encoding, compressed_to }) => {
                let context = ValueContext {
                    column: self.context.column.clone(),
                    dictionary: matches!(
                        encoding,
                        Encoding::PlainDictionary | Encoding::RleDictionary
                    )
                    .then(|| self.context.dictionary())
                    .flatten(),
                };
                match compressed_to {
                    None => {
                        if let Some(span) = cutter.cut_rest(SpanKind::Values, "values") {
                            out.push(values::describe(span, encoding, n, &context));
                        }
                    }
                    Some(len) => {
                        if let Some(span) = cutter.cut_rest(SpanKind::Compressed, "values") {
                            out.push(self.compressed_values(span, encoding, n, len, context));
                        }
                    }
                }
            }
        }
        out
    }

    fn dictionary_values(&self, span: Span) -> Span {
        let inner = self.header.dictionary_page_header.as_ref();
        let n = inner.map_or(0, |inner| usize::try_from(inner.num_values).unwrap_or_default());
        let column = self.context.column.clone();
        let span = span.with_count(n).with_text("PLAIN");
        span.with_parts(move |cutter| values::plain(cutter, n, column.clone(), "entry"))
    }

    fn compressed_values(
        &self,
        span: Span,
        encoding: Encoding,
        n: usize,
        len: usize,
        context: ValueContext,
    ) -> Span {
        let bytes = span.in_memory();
        let (codec, max_len) = (self.context.page.codec, self.context.page.page_bytes);
        let budget = self.context.budget.clone();
        let text = format!("{codec}: {} bytes become {len}", span.length);
        span.with_text(text).with_count(n).with_decompressed(move || {
            if len == 0 {
                // Nothing, or a frame of nothing: the codec need not be asked.
                return Spans::list(Vec::new());
            }
            match decompress(codec, &bytes, len, max_len, &budget) {
                Ok(plain) => {
                    let mut cutter = Cutter::new(plain, 0);
                    let span = cutter.cut_rest(SpanKind::Values, "values");
                    let span = span.map(|span| values::describe(span, encoding, n, &context));
                    Spans::infallible(span.into_iter())
                }
                Err(error) => no_bytes(&error),
            }
        })
    }

    /// Cuts off the levels of a page of version 1.
    fn cut_levels_v1(
        &self,
        cutter: &mut Cutter,
        out: &mut Vec<Span>,
    ) -> Result<ValueSection, String> {
        let inner = self.header.data_page_header.as_ref();
        let inner = inner.ok_or_else(|| "data_page_header is missing".to_owned())?;
        let (rep, def) = self.levels_v1(cutter.rest())?;
        LevelBlock::cut(&rep, &def, cutter, out);
        let n = match self.context.column.leaf.max_def {
            0 => rep.slots,
            _ => def.levels.count_values().map_err(|error| error.message().to_owned())?,
        };
        Ok(ValueSection { n, encoding: inner.encoding, compressed_to: None })
    }

    fn levels_v1(&self, bytes: &Bytes) -> Result<(LevelBlock, LevelBlock), String> {
        let inner = self.header.data_page_header.as_ref();
        let inner = inner.ok_or_else(|| "data_page_header is missing".to_owned())?;
        let leaf = &self.context.column.leaf;
        let slots = count(inner.num_values, "num_values")?;
        let order = self.context.page.bit_order;
        let rep =
            LevelBlock::v1(bytes, inner.repetition_level_encoding, order, leaf.max_rep, slots)?;
        let rest = bytes.slice(rep.len.min(bytes.len())..);
        let def =
            LevelBlock::v1(&rest, inner.definition_level_encoding, order, leaf.max_def, slots)?;
        Ok((rep, def))
    }

    /// Cuts off the levels of a page of version 2.
    fn cut_levels_v2(
        &self,
        cutter: &mut Cutter,
        out: &mut Vec<Span>,
    ) -> Result<ValueSection, String> {
        let inner = self.header.data_page_header_v2.as_ref();
        let inner = inner.ok_or_else(|| "data_page_header_v2 is missing".to_owned())?;
        let (rep, def) = self.levels_v2(cutter.rest())?;
        LevelBlock::cut(&rep, &def, cutter, out);
        let nulls = count(inner.num_nulls, "num_nulls")?;
        let n = match self.context.column.leaf.max_def {
            0 => rep.slots,
            _ => rep.slots.saturating_sub(nulls),
        };
        let is_compressed =
            inner.is_compressed.unwrap_or(true) || self.context.page.ignore_is_compressed;
        let is_compressed =
            is_compressed && self.context.page.codec != CompressionCodec::Uncompressed;
        let len = count(self.header.uncompressed_page_size, "uncompressed_page_size")?;
        let len = len.saturating_sub(rep.len + def.len);
        Ok(ValueSection {
            n,
            encoding: inner.encoding,
            compressed_to: is_compressed.then_some(len),
        })
    }

    fn levels_v2(&self, bytes: &Bytes) -> Result<(LevelBlock, LevelBlock), String> {
        let inner = self.header.data_page_header_v2.as_ref();
        let inner = inner.ok_or_else(|| "data_page_header_v2 is missing".to_owned())?;
        let leaf = &self.context.column.leaf;
        let slots = count(inner.num_values, "num_values")?;
        let rep_len = count(inner.repetition_levels_byte_length, "repetition_levels_byte_length")?;
        let def_len = count(inner.definition_levels_byte_length, "definition_levels_byte_length")?;
        if rep_len.saturating_add(def_len) > bytes.len() {
            return Err(format!(
                "levels of {rep_len} and {def_len} bytes in a page of {}",
                bytes.len()
            ));
        }
        let rep = LevelBlock::v2(bytes.slice(..rep_len), leaf.max_rep, slots);
        let def = LevelBlock::v2(bytes.slice(rep_len..rep_len + def_len), leaf.max_def, slots);
        Ok((rep, def))
    }

    /// The slots of a page whose body, not encrypted, is `plain`.
    fn slots(&self, plain: &Bytes) -> Result<Slots> {
        let bytes = if self.is_compressed() {
            self.context.whole(&self.header, plain)?
        } else {
            plain.clone()
        };
        let blocks = match self.header.r#type {
            PageType::DataPageV2 => self.levels_v2(&bytes),
            _ => self.levels_v1(&bytes),
        };
        let (rep, def) = blocks.map_err(|why| Error::malformed(crate::Spec::Pages, why))?;
        Ok(levels::slots(&rep.levels, &def.levels, &self.context.column))
    }
}

/// What stands after the levels.
struct ValueSection {
    n: usize,
    encoding: Encoding,
    /// The bytes that it decompresses to, if it is compressed.
    compressed_to: Option<usize>,
}

/// The levels of one sort.
struct LevelBlock {
    levels: StoredLevels,
    slots: usize,
    /// Bytes, with the length in front.
    len: usize,
    /// Bytes of the length in front.
    prefix: usize,
}

impl LevelBlock {
    /// Cuts off the spans of both sorts.
    fn cut(rep: &Self, def: &Self, cutter: &mut Cutter, out: &mut Vec<Span>) {
        for (block, kind, name) in [
            (rep, SpanKind::RepetitionLevels, "repetition levels"),
            (def, SpanKind::DefinitionLevels, "definition levels"),
        ] {
            if block.len > 0 {
                let span = cutter.cut(block.len, kind, name);
                out.push(block.levels.describe(span, block.prefix));
            }
        }
    }

    fn v1(
        bytes: &Bytes,
        encoding: Encoding,
        order: BitOrder,
        max: u16,
        slots: usize,
    ) -> Result<Self, String> {
        if max == 0 {
            return Ok(Self { levels: StoredLevels::absent(slots), slots, len: 0, prefix: 0 });
        }
        match encoding {
            Encoding::Rle => {
                let prefix = module::LENGTH_LEN;
                let stated = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
                let stated = stated.and_then(|len| usize::try_from(len).ok());
                let end = stated.and_then(|len| len.checked_add(prefix));
                let Some(end) = end.filter(|end| *end <= bytes.len()) else {
                    return Err("the length of the levels is beyond the end of the page".to_owned());
                };
                let levels = StoredLevels::hybrid(bytes.slice(prefix..end), max, slots);
                Ok(Self { levels, slots, len: end, prefix })
            }
            Encoding::BitPacked => {
                let bits = u64::from(StoredLevels::width(max).bits()).saturating_mul(slots as u64);
                let len = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
                if len > bytes.len() {
                    return Err("the levels end beyond the end of the page".to_owned());
                }
                let levels = StoredLevels::bit_packed(bytes.slice(..len), order, max, slots);
                Ok(Self { levels, slots, len, prefix: 0 })
            }
            other => Err(format!("levels in {other}")),
        }
    }

    fn v2(bytes: Bytes, max: u16, slots: usize) -> Self {
        let len = bytes.len();
        let levels = match max {
            0 => StoredLevels::absent(slots),
            _ => StoredLevels::hybrid(bytes, max, slots),
        };
        Self { levels, slots, len, prefix: 0 }
    }
}

fn count(number: i32, name: &str) -> Result<usize, String> {
    usize::try_from(number).map_err(|_| format!("{name} is {number}"))
}
