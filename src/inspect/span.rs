//! [`Span`]: a range of bytes and what it means.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::value::{Items, Shown, Value};
use crate::error::{Error, ErrorKind, LimitKind, Result};
use crate::format::PageHeader;
use crate::io::Source;

/// A range of bytes, and what it means. What is inside it is made when it is asked for.
///
/// The [`children`](Span::children) of a span lie end to end and are all of it. A span without
/// children is a leaf, which has [`bytes`](Span::bytes).
#[derive(Clone)]
#[non_exhaustive]
pub struct Span {
    /// The first byte: of the file, or of what was decompressed or decrypted.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Its kind.
    pub kind: SpanKind,
    /// What it is called: the name of a field, or a few words.
    pub name: Cow<'static, str>,
    /// The value that the bytes stand for, if they stand for one.
    pub value: Option<Value>,
    /// What it means, in a sentence.
    pub text: Option<Cow<'static, str>>,
    /// How many levels, indices or values the bytes stand for, if they may be several.
    pub count: Option<u64>,
    /// The field of the metadata that it is.
    pub field: Option<FieldOfMetadata>,
    /// Index of the row group that it belongs to.
    pub row_group: Option<usize>,
    /// Dotted path of the column that it belongs to.
    pub column: Option<Arc<str>>,
    /// Index of the leaf that this column is: several may have one dotted path.
    pub leaf: Option<usize>,
    /// Index of the data page that it belongs to, the dictionary page not counted.
    pub page: Option<usize>,
    /// What else claims some of these bytes. The first claim has them; the others are here.
    pub references: Vec<Reference>,
    children: Option<Expand>,
    decompressed: Option<Expand>,
    decrypted: Option<Expand>,
    slots: Option<Arc<dyn Fn() -> Slots + Send + Sync>>,
    checksum: Option<Arc<dyn Fn() -> Result<PageChecksum> + Send + Sync>>,
    page_header: Option<Arc<PageHeaderSpan>>,
    stored: StoredBytes,
}

/// The header of a page, and how many bytes it takes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PageHeaderSpan {
    /// The header, decrypted if it is encrypted.
    pub header: PageHeader,
    /// Number of bytes in front of the body of the page, as they are stored.
    pub length: u64,
}

/// The CRC-32 of the body of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageChecksum {
    /// The checksum that the header states.
    pub stated: u32,
    /// The checksum of the bytes.
    pub found: u32,
}

/// Makes the spans inside another one.
type Expand = Arc<dyn Fn() -> Spans + Send + Sync>;

/// Where the bytes of a span are.
#[derive(Clone)]
enum StoredBytes {
    Memory(Bytes),
    /// They are read when they are asked for.
    File(Arc<dyn Source>),
}

/// The id and the thrift type of a field of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldOfMetadata {
    /// Its id in its struct.
    pub id: i16,
    /// Its type: `i32`, `list`, or the name of a struct or an enum.
    pub thrift_type: &'static str,
}

/// A second claim on bytes that something else has already.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The first byte that is claimed.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// What claims them.
    pub kind: SpanKind,
    /// The row group of what claims them.
    pub row_group: Option<usize>,
    /// The column of what claims them.
    pub column: Option<Arc<str>>,
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $Kind:ident $name:literal,)*) => {
        /// What a span is. A closed list: a version may add to it, and changes nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SpanKind {
            $($(#[$meta])* $Kind,)*
        }

        impl SpanKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$Kind,)*];

            /// Its name, in snake case, as reports have it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Kind => $name,)*
                }
            }
        }
    };
}
kinds! {
    /// `PAR1` or `PARE`, at either end of the file.
    Magic "magic",
    /// The pages of a column in a row group.
    ColumnChunk "column_chunk",
    /// A dictionary page, header and body.
    DictionaryPage "dictionary_page",
    /// A data page of version 1, header and body.
    DataPage "data_page",
    /// A data page of version 2, header and body.
    DataPageV2 "data_page_v2",
    /// A page of a type that holds no values, or of an encrypted column whose key is not known.
    OtherPage "other_page",
    /// The header of a page.
    PageHeader "page_header",
    /// The body of a page.
    PageBody "page_body",
    /// Repetition levels.
    RepetitionLevels "repetition_levels",
    /// Definition levels.
    DefinitionLevels "definition_levels",
    /// The values of a page, in their encoding.
    Values "values",
    /// Bytes that a codec has made of others.
    Compressed "compressed",
    /// A number of bytes or of values, in front of them.
    Length "length",
    /// The number of bits of each packed number.
    BitWidth "bit_width",
    /// A run of one level, index or flag.
    RleRun "rle_run",
    /// A run of packed levels, indices or flags.
    BitPackedRun "bit_packed_run",
    /// The header of a run.
    RunHeader "run_header",
    /// Packed levels, indices, flags or differences.
    Packed "packed",
    /// One value.
    Value "value",
    /// The bytes of a value whose length stands elsewhere.
    ValueBytes "value_bytes",
    /// One byte of each value.
    ByteStream "byte_stream",
    /// Numbers as differences.
    DeltaStream "delta_stream",
    /// A block of differences.
    DeltaBlock "delta_block",
    /// The least difference of a block.
    MinDelta "min_delta",
    /// The differences of a miniblock.
    Miniblock "miniblock",
    /// A number in the header of an encoding.
    EncodingParameter "encoding_parameter",
    /// Floating-point numbers as integers.
    AlpVector "alp_vector",
    /// Integers as differences to a frame of reference.
    PforVector "pfor_vector",
    /// Where something lies.
    Offset "offset",
    /// A field of the metadata that holds one value.
    Field "field",
    /// A struct of the metadata.
    Struct "struct",
    /// A list of the metadata.
    List "list",
    /// What stands in front of a struct or a list: its field header, and its size.
    FieldHeader "field_header",
    /// An element of a list of the metadata.
    Element "element",
    /// The zero byte after the last field of a struct.
    Stop "stop",
    /// A bloom filter, header and bits.
    BloomFilter "bloom_filter",
    /// The header of a bloom filter.
    BloomFilterHeader "bloom_filter_header",
    /// The bits of a bloom filter.
    BloomFilterBits "bloom_filter_bits",
    /// The 256 bits that a value of a bloom filter may set eight of.
    BloomFilterBlock "bloom_filter_block",
    /// Bounds and counts of the pages of a column chunk.
    ColumnIndex "column_index",
    /// Where the pages of a column chunk lie.
    OffsetIndex "offset_index",
    /// The metadata of the file, with all that protects them.
    Footer "footer",
    /// The metadata of the file: `FileMetaData`.
    FileMetaData "file_metadata",
    /// How the file is encrypted: `FileCryptoMetaData`.
    FileCryptoMetaData "file_crypto_metadata",
    /// Nonce and tag that sign a footer in plain text.
    Signature "signature",
    /// The length of the footer.
    FooterLength "footer_length",
    /// A part of the file that is encrypted on its own.
    Module "module",
    /// The number that makes each encryption different.
    Nonce "nonce",
    /// Encrypted bytes.
    Ciphertext "ciphertext",
    /// The tag that authenticates a module.
    Tag "tag",
    /// Bytes that nothing refers to.
    Gap "gap",
    /// Bytes that nothing uses, within something that does not need them: padding.
    Unused "unused",
    /// Bytes that cannot be explained; the text says why.
    Unparsed "unparsed",
}

impl fmt::Display for SpanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span")
            .field("offset", &self.offset)
            .field("length", &self.length)
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("value", &self.value)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl Span {
    fn new(
        offset: u64,
        length: u64,
        kind: SpanKind,
        name: Cow<'static, str>,
        stored: StoredBytes,
    ) -> Self {
        Self {
            offset,
            length,
            kind,
            name,
            value: None,
            text: None,
            count: None,
            field: None,
            row_group: None,
            column: None,
            leaf: None,
            page: None,
            references: Vec::new(),
            children: None,
            decompressed: None,
            decrypted: None,
            slots: None,
            checksum: None,
            page_header: None,
            stored,
        }
    }

    /// A span of a file, whose bytes are read when they are asked for.
    pub(super) fn in_file(
        source: &Arc<dyn Source>,
        range: Range<u64>,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Self {
        let length = range.end.saturating_sub(range.start);
        Self::new(range.start, length, kind, name.into(), StoredBytes::File(source.clone()))
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The spans that it is made of, end to end; `None` for a leaf.
    pub fn children(&self) -> Option<Spans> {
        self.children.as_ref().map(|make| make())
    }

    /// Whether it has no children. Nothing is read to tell, while making the children may read
    /// their bytes.
    pub fn is_leaf(&self) -> bool {
        self.children.is_none()
    }

    /// Whether it is a data page with levels.
    pub fn has_slots(&self) -> bool {
        self.slots.is_some()
    }

    /// What its bytes decompress to, in spans with offsets of their own.
    pub fn decompressed(&self) -> Option<Spans> {
        self.decompressed.as_ref().map(|make| make())
    }

    /// What its bytes decrypt to, in spans with offsets of their own; `None` also where the key is
    /// not known.
    pub fn decrypted(&self) -> Option<Spans> {
        self.decrypted.as_ref().map(|make| make())
    }

    /// The level entries of a data page, and what they mean for the path of the column.
    pub fn slots(&self) -> Option<Slots> {
        self.slots.as_ref().map(|make| make())
    }

    /// The checksum of the body of a page, if its header states one: all its bytes are read.
    pub fn checksum(&self) -> Option<Result<PageChecksum>> {
        self.checksum.as_ref().map(|make| make())
    }

    /// The header of a page; `None` of all else, and where the key of the page is not known.
    /// Nothing is read.
    pub fn page_header(&self) -> Option<&PageHeaderSpan> {
        self.page_header.as_deref()
    }

    /// Its bytes as they are stored, in pieces.
    pub fn bytes(&self) -> SpanBytes {
        SpanBytes { stored: self.stored.clone(), range: self.offset..self.end() }
    }

    #[must_use]
    pub(super) fn with_value(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }

    #[must_use]
    pub(super) fn with_text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// With a text, if there is one; else the text stays.
    #[must_use]
    pub(super) fn with_any_text(self, text: Option<impl Into<Cow<'static, str>>>) -> Self {
        match text {
            Some(text) => self.with_text(text),
            None => self,
        }
    }

    /// With a list of values, if there is one.
    #[must_use]
    pub(super) fn with_list(self, list: Option<Items>) -> Self {
        match list {
            Some(list) => self.with_value(Value::List(list)),
            None => self,
        }
    }

    #[must_use]
    pub(super) fn showing(self, shown: Shown) -> Self {
        self.with_value(shown.value).with_any_text(shown.text)
    }

    #[must_use]
    pub(super) fn with_count(mut self, count: usize) -> Self {
        self.count = Some(count as u64);
        self
    }

    #[must_use]
    pub(super) fn with_children(
        mut self,
        make: impl Fn() -> Spans + Send + Sync + 'static,
    ) -> Self {
        self.children = Some(Arc::new(make));
        self
    }

    /// With children that are cut off its bytes, which must be in memory.
    #[must_use]
    pub(super) fn with_parts(self, cut: impl Fn(Cutter) -> Spans + Send + Sync + 'static) -> Self {
        let cutter = Cutter::new(self.in_memory(), self.offset);
        self.with_children(move || cut(cutter.clone()))
    }

    #[must_use]
    pub(super) fn with_decompressed(
        mut self,
        make: impl Fn() -> Spans + Send + Sync + 'static,
    ) -> Self {
        self.decompressed = Some(Arc::new(make));
        self
    }

    #[must_use]
    pub(super) fn with_decrypted(
        mut self,
        make: impl Fn() -> Spans + Send + Sync + 'static,
    ) -> Self {
        self.decrypted = Some(Arc::new(make));
        self
    }

    #[must_use]
    pub(super) fn with_slots(mut self, make: impl Fn() -> Slots + Send + Sync + 'static) -> Self {
        self.slots = Some(Arc::new(make));
        self
    }

    #[must_use]
    pub(super) fn with_page_header(mut self, header: PageHeader, length: usize) -> Self {
        let length = length as u64;
        self.page_header = Some(Arc::new(PageHeaderSpan { header, length }));
        self
    }

    #[must_use]
    pub(super) fn with_checksum(
        mut self,
        make: impl Fn() -> Result<(u32, u32)> + Send + Sync + 'static,
    ) -> Self {
        self.checksum =
            Some(Arc::new(move || make().map(|(stated, found)| PageChecksum { stated, found })));
        self
    }

    /// All its bytes, which must be in memory; none if they are not.
    pub(super) fn in_memory(&self) -> Bytes {
        match &self.stored {
            StoredBytes::Memory(bytes) => bytes.clone(),
            StoredBytes::File(_) => Bytes::new(),
        }
    }
}

/// Spans, one after the other. An error is one of the source of the file, or `Limit(Memory)` where
/// too many claims share bytes; what is wrong with the file itself is a span of its own
/// ([`SpanKind::Unparsed`]).
pub struct Spans(Box<dyn Iterator<Item = Result<Span>> + Send>);

impl Spans {
    pub(super) fn new(spans: impl Iterator<Item = Result<Span>> + Send + 'static) -> Self {
        Self(Box::new(spans))
    }

    /// Of spans whose bytes are in memory.
    pub(super) fn infallible(spans: impl Iterator<Item = Span> + Send + 'static) -> Self {
        Self::new(spans.map(Ok))
    }

    pub(super) fn list(spans: Vec<Span>) -> Self {
        Self::infallible(spans.into_iter())
    }

    pub(super) fn failed(error: Error) -> Self {
        Self::new(std::iter::once(Err(error)))
    }

    /// A range of the file as what cannot be parsed; the error, if it is one of the source.
    pub(super) fn unparsed(source: &Arc<dyn Source>, range: Range<u64>, error: Error) -> Self {
        if error.kind() == ErrorKind::Io {
            return Self::failed(error);
        }
        let span = Span::in_file(source, range, SpanKind::Unparsed, "unparsed");
        Self::list(vec![span.with_text(error.message().to_owned())])
    }
}

impl Iterator for Spans {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans").finish_non_exhaustive()
    }
}

/// The bytes of a span, in pieces.
pub struct SpanBytes {
    stored: StoredBytes,
    range: Range<u64>,
}

/// Bytes that are read of a file at a time.
const PIECE: u64 = 64 << 10;

impl Iterator for SpanBytes {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.range.is_empty() {
            return None;
        }
        match &self.stored {
            StoredBytes::Memory(bytes) => {
                self.range.start = self.range.end;
                Some(Ok(bytes.clone()))
            }
            StoredBytes::File(source) => {
                let end = self.range.start.saturating_add(PIECE).min(self.range.end);
                let piece = source.read(self.range.start..end);
                self.range.start = if piece.is_ok() { end } else { self.range.end };
                Some(piece)
            }
        }
    }
}

impl fmt::Debug for SpanBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanBytes").field("range", &self.range).finish_non_exhaustive()
    }
}

/// Level entries with the same levels, one after the other, in a data page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// Index of the first of them in the page.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// Their repetition level.
    pub repetition_level: u16,
    /// Their definition level.
    pub definition_level: u16,
    /// What the levels mean for the path of the column.
    pub text: String,
}

/// Whether an error says that the file is wrong: not one of the source, and not that there is no
/// memory.
pub(super) fn is_of_file(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Io | ErrorKind::Limit(LimitKind::Memory))
}

/// The level entries of a data page.
pub struct Slots(Box<dyn Iterator<Item = Result<Slot>> + Send>);

impl Slots {
    pub(super) fn new(slots: impl Iterator<Item = Result<Slot>> + Send + 'static) -> Self {
        Self(Box::new(slots))
    }
}

impl Iterator for Slots {
    type Item = Result<Slot>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

/// Cuts spans off the front of bytes, so that they lie end to end whatever is asked for.
#[derive(Debug, Clone)]
pub(super) struct Cutter {
    rest: Bytes,
    offset: u64,
}

impl Cutter {
    /// Of bytes that begin at this offset.
    pub(super) fn new(bytes: Bytes, offset: u64) -> Self {
        Self { rest: bytes, offset }
    }

    /// What is left.
    pub(super) fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// Where what is left begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Cuts bytes off: no more than there are.
    pub(super) fn take(&mut self, len: usize) -> Bytes {
        let bytes = self.rest.split_to(len.min(self.rest.len()));
        self.offset += bytes.len() as u64;
        bytes
    }

    /// Cuts off a span: of no more bytes than there are.
    pub(super) fn cut(
        &mut self,
        len: usize,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Span {
        let offset = self.offset;
        let bytes = self.take(len);
        Span::new(offset, bytes.len() as u64, kind, name.into(), StoredBytes::Memory(bytes))
    }

    /// All that is left, if there is anything.
    pub(super) fn cut_rest(
        &mut self,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Option<Span> {
        (!self.is_empty()).then(|| self.cut(self.rest.len(), kind, name))
    }

    /// All that is left after the last value.
    pub(super) fn after_values(&mut self) -> Option<Span> {
        let rest = self.cut_rest(SpanKind::Unused, "unused");
        rest.map(|span| span.with_text("all values have been read before these bytes"))
    }

    /// All that is left, as what cannot be parsed.
    pub(super) fn unparsed(&mut self, why: impl ToString) -> Option<Span> {
        let why = why.to_string();
        self.cut_rest(SpanKind::Unparsed, "unparsed").map(|span| span.with_text(why))
    }
}
