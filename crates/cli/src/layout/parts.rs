//! [`BytesUse`]: what bytes of a file are for, and [`pieces`], which divides all bytes among them.
//!
//! The pieces are those of `marquetry::inspect`: they lie end to end, so that they add up to the
//! file. Trap: a page of version 1 compresses levels and values together.

use std::sync::Arc;

use marquetry::format::Encoding;
use marquetry::inspect::{Inspector, Span, SpanKind};

/// The use of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BytesUse {
    /// A column chunk whose pages were not told apart.
    Pages,
    PageHeaders,
    DictionaryPages,
    Levels,
    Values,
    /// Of a data page of version 1, which compresses both together.
    LevelsAndValues,
    /// Pages whose key is not known, and pages of other types.
    OtherPages,
    /// Of a file whose footer is encrypted, and its key not known.
    Modules,
    ColumnIndexes,
    OffsetIndexes,
    BloomFilters,
    /// With its length, and the magic numbers.
    Footer,
    MetadataCopies,
    Gaps,
    Unparsed,
}

impl BytesUse {
    /// All of them, in the order in which pictures show them.
    pub(crate) const ALL: [Self; 15] = [
        Self::Values,
        Self::LevelsAndValues,
        Self::Levels,
        Self::DictionaryPages,
        Self::PageHeaders,
        Self::Pages,
        Self::OtherPages,
        Self::Modules,
        Self::ColumnIndexes,
        Self::OffsetIndexes,
        Self::BloomFilters,
        Self::Footer,
        Self::MetadataCopies,
        Self::Gaps,
        Self::Unparsed,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::PageHeaders => "page headers",
            Self::DictionaryPages => "dictionary pages",
            Self::Levels => "levels",
            Self::Values => "values",
            Self::LevelsAndValues => "values with levels",
            Self::OtherPages => "pages without key",
            Self::Modules => "modules without key",
            Self::ColumnIndexes => "column indexes",
            Self::OffsetIndexes => "offset indexes",
            Self::BloomFilters => "bloom filters",
            Self::Footer => "footer",
            Self::MetadataCopies => "copies of metadata",
            Self::Gaps => "gaps",
            Self::Unparsed => "unparsed",
        }
    }

    /// The part that a span of a whole file is.
    pub(crate) fn of_span(kind: SpanKind) -> Self {
        match kind {
            SpanKind::ColumnChunk | SpanKind::OtherPage => Self::Pages,
            SpanKind::Module => Self::Modules,
            SpanKind::BloomFilter => Self::BloomFilters,
            SpanKind::ColumnIndex => Self::ColumnIndexes,
            SpanKind::OffsetIndex => Self::OffsetIndexes,
            SpanKind::Magic | SpanKind::Footer | SpanKind::FooterLength => Self::Footer,
            SpanKind::Struct => Self::MetadataCopies,
            SpanKind::Gap => Self::Gaps,
            _ => Self::Unparsed,
        }
    }
}

/// Bytes that are for one thing.
pub(crate) struct Piece<'a> {
    pub(crate) part: BytesUse,
    pub(crate) bytes: u64,
    /// The encoding of the values, of pages.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) row_group: Option<usize>,
    /// Dotted path of the column that they belong to.
    pub(crate) column: Option<&'a Arc<str>>,
    /// The index of its leaf: several may have one path.
    pub(crate) leaf: Option<usize>,
}

/// How far column chunks are taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Chunks,
    /// The headers of all pages are read.
    Pages,
}

/// Calls `each` with pieces that are all bytes of the file.
///
/// # Errors
/// `Io`.
pub(crate) fn pieces(
    inspector: &Inspector,
    detail: Detail,
    mut each: impl FnMut(&Piece<'_>),
) -> marquetry::Result<()> {
    for span in inspector.spans() {
        let span = span?;
        // The children of other spans are made of their bytes, which would be read.
        let is_opened = detail == Detail::Pages && span.kind == SpanKind::ColumnChunk;
        match is_opened.then(|| span.children()).flatten() {
            Some(pages) => {
                for page in pages {
                    let page = page?;
                    page_pieces(&page, &span, &mut each);
                }
            }
            None => {
                let part = BytesUse::of_span(span.kind);
                each(&piece(&span, part, span.length, None));
            }
        }
    }
    Ok(())
}

fn piece<'a>(chunk: &'a Span, part: BytesUse, bytes: u64, encoding: Option<Encoding>) -> Piece<'a> {
    let Span { row_group, leaf, .. } = *chunk;
    Piece { part, bytes, encoding, row_group, column: chunk.column.as_ref(), leaf }
}

/// The pieces of what a column chunk is made of: a page, mostly.
fn page_pieces(page: &Span, chunk: &Span, each: &mut impl FnMut(&Piece<'_>)) {
    let mut add = |part, bytes, encoding| {
        if bytes > 0 {
            each(&piece(chunk, part, bytes, encoding));
        }
    };
    let Some(stored) = page.page_header() else {
        let part = match page.kind {
            SpanKind::OtherPage => BytesUse::OtherPages,
            kind => BytesUse::of_span(kind),
        };
        return add(part, page.length, None);
    };
    let header = &stored.header;
    let head = stored.length.min(page.length);
    let body = page.length - head;
    add(BytesUse::PageHeaders, head, None);
    if let Some(v2) = header.data_page_header_v2.as_ref().filter(|_| is_v2(page)) {
        let [repetition, definition] =
            [v2.repetition_levels_byte_length, v2.definition_levels_byte_length];
        let levels = size(repetition).saturating_add(size(definition)).min(body);
        add(BytesUse::Levels, levels, Some(v2.encoding));
        add(BytesUse::Values, body - levels, Some(v2.encoding));
    } else if let Some(v1) = header.data_page_header.as_ref().filter(|_| is_v1(page)) {
        let part = if page.has_slots() { BytesUse::LevelsAndValues } else { BytesUse::Values };
        add(part, body, Some(v1.encoding));
    } else if page.kind == SpanKind::DictionaryPage {
        let encoding = header.dictionary_page_header.as_ref().map(|of| of.encoding);
        add(BytesUse::DictionaryPages, body, encoding);
    } else {
        add(BytesUse::OtherPages, body, None);
    }
}

fn is_v1(page: &Span) -> bool {
    page.kind == SpanKind::DataPage
}

fn is_v2(page: &Span) -> bool {
    page.kind == SpanKind::DataPageV2
}

fn size(n: i32) -> u64 {
    u64::try_from(n).unwrap_or_default()
}
