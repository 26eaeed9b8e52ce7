//! Opens a page: verifies its checksum, decompresses it, and separates repetition levels,
//! definition levels and values.
//!
//! ```text
//! V1   [ u32le n | rep levels ][ u32le n | def levels ][ values ]   compressed as a whole
//! V2   [ rep levels ][ def levels ][ values ]                       only the values are compressed
//! ```

use bytes::Bytes;

use crate::bytes::Cursor;
use crate::compress::{self, Decompressor, first_capacity};
use crate::crypt::{ChunkDecryptor, Module};
use crate::encoding::legacy::BitOrder;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{
    CompressionCodec, DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, Encoding, PageHeader,
    PageType,
};
use crate::levels::LevelDecoder;
use crate::limits::{Budget, Limits, Reservation};
use crate::schema::Leaf;
use crate::thrift::{self, Read};

/// A page that is opened.
#[derive(Debug)]
pub(crate) enum Page {
    /// The dictionary of the chunk.
    Dictionary(DictionaryPage, PageMemory),
    /// Levels and values.
    Data(Box<DataPage>),
}

/// The dictionary page of a chunk: PLAIN values.
#[derive(Debug, Clone)]
pub(crate) struct DictionaryPage {
    /// Number of values.
    pub values: usize,
    /// The values, PLAIN.
    pub bytes: Bytes,
}

/// The memory of a page that was decompressed, for as long as the page is read; none for a page
/// that is stored as it is.
pub(crate) type PageMemory = Option<Reservation>;

/// A data page of either version.
#[derive(Debug)]
pub(crate) struct DataPage {
    /// Level entries: values and nulls and empty lists. The format calls it `num_values`.
    pub slots: usize,
    /// Level entries after them that were not opened.
    pub slots_left_out: usize,
    /// Number of stored values, if the page states it without counting levels: required columns,
    /// and version 2.
    pub values: Option<usize>,
    /// Repetition levels.
    pub rep: LevelDecoder,
    /// Definition levels.
    pub def: LevelDecoder,
    /// Encoding of the values.
    pub encoding: Encoding,
    /// The values.
    pub bytes: Bytes,
    /// The memory of levels and values.
    pub memory: PageMemory,
}

/// The properties of a column chunk that are needed to open its pages.
#[derive(Debug, Clone)]
pub(crate) struct PageContext {
    /// Codec of the chunk.
    pub codec: CompressionCodec,
    /// Highest definition level of the leaf.
    pub max_def: u16,
    /// Highest repetition level of the leaf.
    pub max_rep: u16,
    /// Whether checksums are verified.
    pub verify_checksums: bool,
    /// Arrow C++ before 3.0 wrote `is_compressed = false` over compressed values (it called itself
    /// `parquet-cpp`).
    pub ignore_is_compressed: bool,
    /// How BIT_PACKED levels are packed.
    pub bit_order: BitOrder,
    /// Cap on the uncompressed size, in bytes.
    pub page_bytes: u64,
    /// The decryptor of headers and bodies, if the chunk is encrypted.
    pub decryptor: Option<ChunkDecryptor>,
}

/// Where a page is in its chunk: what an encrypted page is authenticated by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagePosition {
    /// Whether it is the first page, and may be the dictionary page.
    pub is_first: bool,
    /// Data pages before it.
    pub data_pages: usize,
}

/// The header of a page.
#[derive(Debug)]
pub(crate) struct StoredHeader {
    /// On the heap, because it is large and moves from stage to stage.
    pub header: Box<PageHeader>,
    /// Bytes that it takes.
    pub len: usize,
    /// The module of the body, if it is encrypted.
    pub body: Option<Module>,
}

impl PageContext {
    /// The context of the chunk of `leaf`, compressed with `codec`.
    pub(crate) fn new(leaf: &Leaf, codec: CompressionCodec, limits: &Limits) -> Self {
        Self {
            codec,
            max_def: leaf.max_def,
            max_rep: leaf.max_rep,
            verify_checksums: true,
            ignore_is_compressed: false,
            bit_order: BitOrder::default(),
            page_bytes: limits.page_bytes,
            decryptor: None,
        }
    }

    /// Reads the header at the start of `bytes`, which go on; decrypts it if it is encrypted.
    ///
    /// # Errors
    /// `Malformed` if it is none, or `bytes` end before it does; `Crypto` if it is not authentic.
    pub(crate) fn read_header(&self, bytes: &[u8], position: PagePosition) -> Result<StoredHeader> {
        let Some(decryptor) = &self.decryptor else {
            let mut reader = thrift::ThriftReader::new(bytes);
            let mut header = Box::<PageHeader>::default();
            header.read_over(&mut reader)?;
            return Ok(StoredHeader { header, len: reader.position(), body: None });
        };
        let len = ChunkDecryptor::module_len(bytes)?;
        if len > MAX_HEADER_BYTES {
            return Err(Error::mismatch(
                Spec::Encryption,
                "bytes of the header of a page",
                format_args!("at most {MAX_HEADER_BYTES}"),
                len,
            ));
        }
        let module = bytes.get(..len).unwrap_or_default();
        let page = position.data_pages;
        let data = (Module::DataPageHeader(page), Module::DataPage(page));
        let dictionary = (Module::DictionaryPageHeader, Module::DictionaryPage);
        // Authentication reveals which of the two the first page is.
        let as_dictionary =
            position.is_first.then(|| decryptor.open(dictionary.0, module).ok()).flatten();
        let (plain, body, is_dictionary) = match as_dictionary {
            Some(plain) => (plain, dictionary.1, true),
            None => (decryptor.open(data.0, module)?, data.1, false),
        };
        let mut header = Box::<PageHeader>::default();
        header.read_over(&mut thrift::ThriftReader::new(&plain))?;
        if (header.r#type == PageType::DictionaryPage) != is_dictionary {
            return Err(Error::mismatch(
                Spec::Encryption,
                "type of the page, as it is authenticated",
                if is_dictionary { "DICTIONARY_PAGE" } else { "a data page" },
                header.r#type,
            ));
        }
        Ok(StoredHeader { header, len, body: Some(body) })
    }
}

/// The body of a page, decrypted if it was encrypted.
struct Body {
    bytes: Bytes,
    /// The memory that it was decrypted into.
    memory: PageMemory,
}

/// Layout of a page of PLAIN values that is opened only as far as its first slots.
struct PartialLayout {
    /// Length of the compressed bytes.
    len: usize,
    /// How many of them are decompressed.
    wanted: usize,
    /// Slots after those that are wanted.
    left_out: usize,
    /// Bytes of the definition levels before it, in a page of version 2.
    levels_v2: Option<usize>,
}

/// Opens the pages of one column chunk, one after the other.
pub(crate) struct PageOpener {
    context: PageContext,
    /// Made at the first compressed page.
    decompressor: Option<Decompressor>,
    /// The budget for the memory of decompressed pages.
    budget: Budget,
}

impl PageOpener {
    /// An opener for the pages of a chunk; what it decompresses is counted by `budget`.
    pub(crate) fn new(context: PageContext, budget: &Budget) -> Self {
        Self { context, decompressor: None, budget: budget.clone() }
    }

    /// The properties of the column chunk.
    pub(crate) fn context(&self) -> &PageContext {
        &self.context
    }

    /// The most memory that the read may take, in bytes.
    pub(crate) fn memory_cap(&self) -> u64 {
        self.budget.cap()
    }

    /// The one place where the memory of a page is reserved, before anything is decompressed.
    fn reserve(&self, byte_len: usize) -> Result<PageMemory> {
        self.budget.take_for("a decompressed page", byte_len).map(Some)
    }

    /// Reserves a page that another read has decompressed, which this one holds too.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(crate) fn share(&self, page: &DictionaryPage) -> Result<PageMemory> {
        self.reserve(page.bytes.len())
    }

    /// Opens the page with this header and body. Pages of a type that carries no values (index
    /// pages, and types that this crate does not know) are `None`, as the format wants them
    /// skipped.
    ///
    /// # Errors
    /// `Malformed` if the checksum does not match, the body does not decompress to the size that
    /// the header states, or the levels do not fit into it; `Limit(Memory)` if the budget has no
    /// room for what it decompresses to.
    pub(crate) fn open(
        &mut self,
        header: &PageHeader,
        body: Bytes,
        module: Option<Module>,
    ) -> Result<Option<Page>> {
        // Authenticated bytes need no checksum, which could be made without a key.
        if !self.is_authenticated(module) {
            self.verify_checksum(header, &body)?;
        }
        self.open_verified(header, body, module)
    }

    /// Like [`PageOpener::open`], for a page whose checksum is known to be right, or not to matter.
    ///
    /// # Errors
    /// As [`PageOpener::open`].
    pub(crate) fn open_verified(
        &mut self,
        header: &PageHeader,
        body: Bytes,
        module: Option<Module>,
    ) -> Result<Option<Page>> {
        let body = self.decrypt(body, module)?;
        match header.r#type {
            PageType::DictionaryPage => {
                let inner =
                    required(header.dictionary_page_header.as_ref(), "dictionary_page_header")?;
                let (page, memory) = self.dictionary(header, inner, body)?;
                Ok(Some(Page::Dictionary(page, memory)))
            }
            PageType::DataPage => {
                let inner = required(header.data_page_header.as_ref(), "data_page_header")?;
                self.data_v1(header, inner, body).map(|page| Some(Page::Data(Box::new(page))))
            }
            PageType::DataPageV2 => {
                let inner = required(header.data_page_header_v2.as_ref(), "data_page_header_v2")?;
                self.data_v2(header, inner, body).map(|page| Some(Page::Data(Box::new(page))))
            }
            PageType::IndexPage | PageType::Unknown(_) => Ok(None),
        }
    }

    /// Opens only the first `slots` slots of a data page in which a slot is a row; values after
    /// them may be cut off. Returns `None` if that saves nothing, or if something is wrong with the
    /// page, which must then be opened as a whole.
    pub(crate) fn open_start(
        &mut self,
        header: &PageHeader,
        body: &Bytes,
        slots: usize,
    ) -> Option<DataPage> {
        let layout = self.partial_layout(header, slots)?;
        let PartialLayout { len, wanted, left_out, levels_v2 } = layout;
        let PageContext { max_def, bit_order, .. } = self.context;
        let (levels, packed) = body.split_at_checked(levels_v2.unwrap_or(0))?;
        self.verify_checksum(header, body).ok()?;
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            empty => empty.insert(Decompressor::new(self.context.codec).ok()?),
        };
        let free_lists = self.budget.free_lists();
        let capacity = first_capacity(packed.len(), len);
        let memory = self.budget.take_for("the start of a page", capacity).ok()?;
        let mut out = free_lists.take_used(capacity).ok()?;
        if !decompressor.decompress_start(packed, len, wanted, &mut out) {
            free_lists.put_back(out);
            return None;
        }
        let bytes = free_lists.pooled_bytes(out);
        let mut cursor = Cursor::new(&bytes, Spec::Pages);
        let def = match (levels_v2, header.data_page_header.as_ref()) {
            (Some(_), _) => LevelDecoder::hybrid(body.slice_ref(levels), max_def, slots).ok()?,
            (None, inner) => {
                let encoding = inner?.definition_level_encoding;
                levels_v1(&mut cursor, &bytes, encoding, bit_order, max_def, slots).ok()?
            }
        };
        Some(DataPage {
            slots,
            slots_left_out: left_out,
            values: (max_def == 0).then_some(slots),
            rep: LevelDecoder::absent(),
            def,
            encoding: Encoding::Plain,
            bytes: bytes.slice_ref(cursor.rest()),
            memory: Some(memory),
        })
    }

    /// How the start of a page is opened; `None` where that saves nothing, or it cannot be.
    fn partial_layout(&self, header: &PageHeader, slots: usize) -> Option<PartialLayout> {
        let PageContext { max_rep, max_def, codec, .. } = self.context;
        if codec != CompressionCodec::Snappy || self.context.decryptor.is_some() {
            return None;
        }
        let mut len = self.uncompressed_len(header).ok()?;
        let (all, encoding, levels_v2) = match header.r#type {
            PageType::DataPage => {
                let inner = header.data_page_header.as_ref()?;
                // How long levels of the other encoding are depends on how many there are.
                if max_def > 0 && inner.definition_level_encoding != Encoding::Rle {
                    return None;
                }
                (inner.num_values, inner.encoding, None)
            }
            PageType::DataPageV2 => {
                let inner = header.data_page_header_v2.as_ref()?;
                let compressed = inner.is_compressed.unwrap_or(true);
                let levels = usize::try_from(inner.definition_levels_byte_length).ok()?;
                if inner.repetition_levels_byte_length != 0
                    || !(compressed || self.context.ignore_is_compressed)
                {
                    return None;
                }
                len = len.checked_sub(levels)?;
                (inner.num_values, inner.encoding, Some(levels))
            }
            _ => return None,
        };
        let all = usize::try_from(all).ok()?;
        let left_out = all.checked_sub(slots).filter(|left_out| *left_out > 0)?;
        if max_rep > 0 || encoding != Encoding::Plain {
            return None;
        }
        // As if all values were of one length, and some more; levels come first.
        let share = len as u64 * slots as u64 / all as u64;
        let margin = MARGIN_BYTES + len / 32 + if max_def > 0 { all / 8 } else { 0 };
        let wanted = usize::try_from(share).ok()?.saturating_add(margin);
        let saves = wanted <= len - len / 8;
        saves.then_some(PartialLayout { len, wanted, left_out, levels_v2 })
    }

    fn is_authenticated(&self, module: Option<Module>) -> bool {
        let decryptor = self.context.decryptor.as_ref();
        decryptor.zip(module).is_some_and(|(of, module)| of.authenticates(module))
    }

    /// Decrypts a body, if it is encrypted, as `module`.
    fn decrypt(&self, body: Bytes, module: Option<Module>) -> Result<Body> {
        let (Some(decryptor), Some(module)) = (&self.context.decryptor, module) else {
            return Ok(Body { bytes: body, memory: None });
        };
        let len = ChunkDecryptor::plain_len(body.len());
        let memory = self.budget.take_for("a decrypted page", len)?;
        let free_lists = self.budget.free_lists();
        let mut out = free_lists.take_used(len)?;
        decryptor.open_into(module, &body, &mut out)?;
        Ok(Body { bytes: free_lists.pooled_bytes(out), memory: Some(memory) })
    }

    fn verify_checksum(&self, header: &PageHeader, body: &[u8]) -> Result<()> {
        let Some(stated) = header.crc.filter(|_| self.context.verify_checksums) else {
            return Ok(());
        };
        let found = crc32fast::hash(body);
        if stated.cast_unsigned() == found {
            return Ok(());
        }
        Err(Error::mismatch(
            Spec::Pages,
            "CRC-32 of the page",
            format_args!("{:#010x}", stated.cast_unsigned()),
            format_args!("{found:#010x}"),
        ))
    }

    fn dictionary(
        &mut self,
        header: &PageHeader,
        inner: &DictionaryPageHeader,
        body: Body,
    ) -> Result<(DictionaryPage, PageMemory)> {
        match inner.encoding {
            // PLAIN_DICTIONARY is what old writers call PLAIN here.
            Encoding::Plain | Encoding::PlainDictionary => {}
            other => {
                return Err(Error::unsupported(
                    "dictionary page encoding",
                    format_args!("a dictionary page in {other}"),
                ));
            }
        }
        let values = count(inner.num_values, "DictionaryPageHeader.num_values")?;
        let (bytes, memory) = self.whole(header, body)?;
        Ok((DictionaryPage { values, bytes }, memory))
    }

    fn data_v1(
        &mut self,
        header: &PageHeader,
        inner: &DataPageHeader,
        body: Body,
    ) -> Result<DataPage> {
        let slots = count(inner.num_values, "DataPageHeader.num_values")?;
        let (bytes, memory) = self.whole(header, body)?;
        let mut cursor = Cursor::new(&bytes, Spec::Pages);
        let PageContext { max_rep, max_def, bit_order, .. } = self.context;
        let encoding = inner.repetition_level_encoding;
        let rep = levels_v1(&mut cursor, &bytes, encoding, bit_order, max_rep, slots)?;
        let def = levels_v1(
            &mut cursor,
            &bytes,
            inner.definition_level_encoding,
            bit_order,
            max_def,
            slots,
        )?;
        let values = bytes.slice_ref(cursor.rest());
        Ok(DataPage {
            slots,
            slots_left_out: 0,
            values: (max_def == 0).then_some(slots),
            rep,
            def,
            encoding: inner.encoding,
            bytes: values,
            memory,
        })
    }

    fn data_v2(
        &mut self,
        header: &PageHeader,
        inner: &DataPageHeaderV2,
        body: Body,
    ) -> Result<DataPage> {
        let slots = count(inner.num_values, "DataPageHeaderV2.num_values")?;
        let nulls = count(inner.num_nulls, "DataPageHeaderV2.num_nulls")?;
        let values = slots.checked_sub(nulls).ok_or_else(|| {
            Error::mismatch(Spec::Pages, "num_nulls", format_args!("at most {slots}"), nulls)
        })?;
        let rep_len = count(inner.repetition_levels_byte_length, "repetition_levels_byte_length")?;
        let def_len = count(inner.definition_levels_byte_length, "definition_levels_byte_length")?;
        let PageContext { max_rep, max_def, .. } = self.context;
        let Body { bytes: body, memory: decrypted } = body;
        let mut cursor = Cursor::new(&body, Spec::Pages);
        let rep = body.slice_ref(cursor.take(rep_len)?);
        let def = body.slice_ref(cursor.take(def_len)?);
        let packed = body.slice_ref(cursor.rest());
        let uncompressed_len =
            self.uncompressed_len(header)?.checked_sub(rep_len + def_len).ok_or_else(|| {
                Error::mismatch(
                    Spec::Pages,
                    "uncompressed_page_size",
                    format_args!("at least the {} bytes of levels", rep_len + def_len),
                    header.uncompressed_page_size,
                )
            })?;
        let compressed = inner.is_compressed.unwrap_or(true) || self.context.ignore_is_compressed;
        let (bytes, decompressed) = if uncompressed_len == 0 {
            // Nothing, or a non-empty frame of nothing: the codec need not be asked.
            (Bytes::new(), None)
        } else if compressed {
            self.decompress(packed, uncompressed_len)?
        } else {
            (check_len(packed, uncompressed_len)?, None)
        };
        // Levels stay where they are.
        let memory = match (decrypted, decompressed) {
            (Some(mut decrypted), Some(decompressed)) => {
                decrypted.absorb(decompressed);
                Some(decrypted)
            }
            (decrypted, decompressed) => decrypted.or(decompressed),
        };
        Ok(DataPage {
            slots,
            slots_left_out: 0,
            values: Some(if max_def == 0 { slots } else { values }),
            rep: LevelDecoder::hybrid(rep, max_rep, slots)?,
            def: LevelDecoder::hybrid(def, max_def, slots)?,
            encoding: inner.encoding,
            bytes,
            memory,
        })
    }

    /// The body of a page that is compressed as a whole.
    fn whole(&mut self, header: &PageHeader, body: Body) -> Result<(Bytes, PageMemory)> {
        let uncompressed_len = self.uncompressed_len(header)?;
        if self.context.codec == CompressionCodec::Uncompressed {
            return Ok((check_len(body.bytes, uncompressed_len)?, body.memory));
        }
        if uncompressed_len == 0 && body.bytes.is_empty() {
            // Some writers do not ask the codec for nothing.
            return Ok((body.bytes, body.memory));
        }
        self.decompress(body.bytes, uncompressed_len)
    }

    fn uncompressed_len(&self, header: &PageHeader) -> Result<usize> {
        let len = count(header.uncompressed_page_size, "PageHeader.uncompressed_page_size")?;
        if len as u64 > self.context.page_bytes {
            return Err(Error::limit(
                LimitKind::Page,
                format_args!(
                    "a page of {len} bytes; Limits::page_bytes allows {}: raise it to read on",
                    self.context.page_bytes
                ),
            ));
        }
        Ok(len)
    }

    fn decompress(&mut self, body: Bytes, uncompressed_len: usize) -> Result<(Bytes, PageMemory)> {
        if self.context.codec == CompressionCodec::Uncompressed {
            return Ok((check_len(body, uncompressed_len)?, None));
        }
        let memory = self.reserve(uncompressed_len)?;
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            empty => empty.insert(Decompressor::new(self.context.codec)?),
        };
        let working = decompressor.working_bytes(&body);
        let _working = self.budget.take_for("the window of the codec", working)?;
        let free_lists = self.budget.free_lists();
        let capacity = first_capacity(body.len(), uncompressed_len);
        let mut out = free_lists.take_used(capacity.saturating_add(compress::SLACK))?;
        decompressor.decompress(&body, uncompressed_len, &mut out)?;
        Ok((free_lists.pooled_bytes(out), memory))
    }
}

/// Maximum bytes of the header of an encrypted page, because the decrypted bytes are not counted.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Bytes of a page that are opened beyond those that are thought to do.
const MARGIN_BYTES: usize = 256;

fn levels_v1(
    cursor: &mut Cursor<'_>,
    page: &Bytes,
    encoding: Encoding,
    order: BitOrder,
    max: u16,
    slots: usize,
) -> Result<LevelDecoder> {
    if max == 0 {
        return Ok(LevelDecoder::absent());
    }
    match encoding {
        Encoding::Rle => {
            let bytes = page.slice_ref(cursor.prefixed()?);
            LevelDecoder::hybrid(bytes, max, slots)
        }
        Encoding::BitPacked => {
            let width = u64::from(u16::BITS - max.leading_zeros());
            let byte_len = (slots as u64 * width).div_ceil(8);
            let byte_len = usize::try_from(byte_len).unwrap_or(usize::MAX);
            LevelDecoder::bit_packed(page.slice_ref(cursor.take(byte_len)?), order, max, slots)
        }
        other => Err(Error::unsupported("level encoding", format_args!("levels in {other}"))),
    }
}

/// Values that are stored as they are.
fn check_len(body: Bytes, len: usize) -> Result<Bytes> {
    if body.len() == len {
        return Ok(body);
    }
    Err(Error::mismatch(Spec::Pages, "uncompressed page, bytes", len, body.len()))
}

fn required<'a, T>(header: Option<&'a T>, name: &'static str) -> Result<&'a T> {
    header.ok_or_else(|| {
        Error::malformed(Spec::Metadata("PageHeader"), format_args!("{name} is missing"))
    })
}

/// A count or a size of the header: not negative.
pub(crate) fn count(value: i32, name: &str) -> Result<usize> {
    usize::try_from(value)
        .map_err(|_| Error::mismatch(Spec::Metadata("PageHeader"), name, "not negative", value))
}

#[cfg(all(test, feature = "snappy"))]
mod tests;
