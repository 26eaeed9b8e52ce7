//! The metadata of column chunks and row groups, made of the headers of their pages.
//!
//! They state what the headers tell, and no statistics.

use std::ops::Range;
use std::sync::Arc;

use super::overlay::WithFooter;
use super::pages::SalvagedPage;
use crate::check::ChunkVerifier;
use crate::error::Result;
use crate::format::{
    ColumnChunk, ColumnMetaData, CompressionCodec, Encoding, FileMetaData, PageEncodingStats,
    RowGroup,
};
use crate::io::{Source, open_footer};
use crate::limits::Limits;
use crate::read::Footer;
use crate::schema::{Leaf, Schema};

/// The schema of the rows, and what else is the same for all row groups.
pub(super) struct KnownSchema {
    /// Without row groups.
    pub(super) metadata: FileMetaData,
    pub(super) leaves: Vec<Leaf>,
    /// By leaf, the codec of a file that has the same schema.
    pub(super) codecs: Vec<Option<CompressionCodec>>,
    /// By leaf, the encodings of that file.
    encodings: Vec<Vec<Encoding>>,
}

impl KnownSchema {
    /// Of a footer.
    ///
    /// # Errors
    /// `Malformed` if its schema is broken.
    pub(super) fn new(mut metadata: FileMetaData, limits: &Limits) -> Result<Self> {
        let schema = Schema::parse(metadata.schema.clone(), limits)?;
        let leaves = (0..schema.leaves_len()).map(|leaf| schema.leaf(leaf));
        let leaves = leaves.collect::<Result<Vec<Leaf>>>()?;
        let first = metadata.row_groups.first();
        let codec = |leaf: &Leaf| {
            let chunk = first.and_then(|group| group.columns.get(leaf.index));
            chunk.and_then(|chunk| chunk.meta_data.as_ref()).map(|meta| meta.codec)
        };
        let codecs = leaves.iter().map(codec).collect();
        let chunks = |leaf: usize| {
            let chunks = metadata.row_groups.iter().filter_map(move |of| of.columns.get(leaf));
            chunks.filter_map(|chunk| chunk.meta_data.as_ref())
        };
        let encodings = |leaf: &Leaf| {
            let mut all: Vec<Encoding> =
                chunks(leaf.index).flat_map(|meta| meta.encodings.iter().copied()).collect();
            all.dedup();
            all
        };
        let encodings = leaves.iter().map(encodings).collect();
        (metadata.row_groups, metadata.num_rows) = (Vec::new(), 0);
        Ok(Self { metadata, leaves, codecs, encodings })
    }

    /// Whether pages may be in other encodings than their headers say: no checksum is of a header,
    /// and values of one width decode in PLAIN and in BYTE_STREAM_SPLIT alike. The pages of a
    /// chunk are to agree, and with those of the file with the same schema.
    pub(super) fn is_doubtful(&self, pages: &[SalvagedPage], leaf: usize) -> bool {
        let alike = [Encoding::Plain, Encoding::ByteStreamSplit];
        let has = |encoding: Encoding| {
            pages.iter().any(|page| !page.is_dictionary() && page.encoding == encoding)
        };
        let known = self.encodings.get(leaf).map_or(&[][..], Vec::as_slice);
        let [plain, split] = alike.map(has);
        let [known_plain, known_split] = alike.map(|encoding| known.contains(&encoding));
        let differs = (split && !known_split) || (plain && !known_plain && known_split);
        (plain && split) || (!known.is_empty() && differs)
    }

    /// A footer of this schema with these row groups.
    pub(super) fn with(&self, row_groups: Vec<RowGroup>) -> FileMetaData {
        let rows = row_groups.iter().fold(0i64, |sum, group| sum.saturating_add(group.num_rows));
        FileMetaData { row_groups, num_rows: rows, ..self.metadata.clone() }
    }
}

/// The file with this footer.
pub(super) struct Described {
    pub(super) source: Arc<dyn Source>,
    pub(super) footer: Footer,
    pub(super) file_len: u64,
}

impl Described {
    /// # Errors
    /// As [`Footer::parse`]; `Io`.
    pub(super) fn new(
        inner: &Arc<dyn Source>,
        metadata: &FileMetaData,
        limits: &Limits,
    ) -> Result<Self> {
        let source: Arc<dyn Source> =
            Arc::new(WithFooter::new(inner.clone(), inner.len()?, metadata)?);
        let (footer, file_len) = open_footer(&*source, limits, None)?;
        Ok(Self { source, footer, file_len })
    }

    /// A verifier of its chunks. There is one, because it bounds what all of them expand to.
    pub(super) fn verifier<'v>(
        &self,
        verifier: &'v mut Option<ChunkVerifier>,
        limits: &Limits,
    ) -> &'v ChunkVerifier {
        let (source, footer) = (self.source.clone(), self.footer.clone());
        let is_new = verifier.is_none();
        let new = || ChunkVerifier::new(source.clone(), footer.clone(), self.file_len, limits);
        let verifier = verifier.get_or_insert_with(new);
        if !is_new {
            verifier.describe(source, footer, self.file_len);
        }
        verifier
    }
}

/// The chunk of these pages.
pub(super) fn chunk(pages: &[SalvagedPage], leaf: &Leaf, codec: CompressionCodec) -> ColumnChunk {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let data = || pages.iter().filter(|page| !page.is_dictionary());
    let sum = |of: fn(&SalvagedPage) -> u64| pages.iter().map(of).fold(0u64, u64::saturating_add);
    let dictionary = pages.first().filter(|page| page.is_dictionary());
    let mut encodings: Vec<Encoding> = Vec::new();
    let mut stats: Vec<PageEncodingStats> = Vec::new();
    for page in pages {
        if !encodings.contains(&page.encoding) {
            encodings.push(page.encoding);
        }
        let is_it = |known: &&mut PageEncodingStats| {
            (known.page_type, known.encoding) == (page.r#type, page.encoding)
        };
        match stats.iter_mut().find(is_it) {
            Some(known) => known.count = known.count.saturating_add(1),
            None => stats.push(PageEncodingStats::new(page.r#type, page.encoding, 1)),
        }
    }
    if leaf.max_def + leaf.max_rep > 0 && !encodings.contains(&Encoding::Rle) {
        encodings.push(Encoding::Rle);
    }
    let meta = ColumnMetaData {
        r#type: leaf.physical.format_type(),
        encodings,
        path_in_schema: leaf.path.names().iter().map(|name| name.to_string()).collect(),
        codec,
        num_values: signed(data().map(|page| page.slots).fold(0, u64::saturating_add)),
        total_uncompressed_size: signed(sum(|page| page.body - page.start + page.uncompressed)),
        total_compressed_size: signed(sum(|page| page.end - page.start)),
        data_page_offset: signed(data().next().map_or(0, |page| page.start)),
        dictionary_page_offset: dictionary.map(|page| signed(page.start)),
        encoding_stats: Some(stats),
        ..ColumnMetaData::default()
    };
    ColumnChunk { meta_data: Some(meta), ..ColumnChunk::default() }
}

/// The row group of these chunks.
pub(super) fn row_group(columns: Vec<ColumnChunk>, rows: u64) -> RowGroup {
    let meta = || columns.iter().filter_map(|chunk| chunk.meta_data.as_ref());
    let total = |of: fn(&ColumnMetaData) -> i64| meta().map(of).fold(0, i64::saturating_add);
    RowGroup {
        num_rows: i64::try_from(rows).unwrap_or(i64::MAX),
        total_byte_size: total(|meta| meta.total_uncompressed_size),
        total_compressed_size: Some(total(|meta| meta.total_compressed_size)),
        columns,
        ..RowGroup::default()
    }
}

/// The bytes of the chunks of a row group, by the footer.
pub(super) fn chunk_ranges(group: &RowGroup) -> Vec<Range<u64>> {
    let range = |chunk: &ColumnChunk| {
        let meta = chunk.meta_data.as_ref()?;
        let dictionary = meta.dictionary_page_offset.filter(|offset| *offset > 0);
        let start = dictionary.map_or(meta.data_page_offset, |at| at.min(meta.data_page_offset));
        let start = u64::try_from(start).ok()?;
        let len = u64::try_from(meta.total_compressed_size).ok()?;
        Some(start..start.checked_add(len)?)
    };
    group.columns.iter().filter_map(range).filter(|range| !range.is_empty()).collect()
}

/// The bytes from the first page of a row group to its last.
pub(super) fn extent(group: &RowGroup) -> Range<u64> {
    let ranges = chunk_ranges(group);
    let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    start..ranges.iter().map(|range| range.end).max().unwrap_or(start)
}
