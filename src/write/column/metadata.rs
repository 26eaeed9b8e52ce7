//! [`EncodedChunk`]: the bytes of a column chunk, with its metadata for the footer and the indexes.

use bytes::Bytes;

use super::sorted::SortDirection;
use super::statistics::ChunkSummary;
use crate::compress::Compression;
use crate::error::{Error, Result};
use crate::format::{
    ColumnIndex, ColumnMetaData, Encoding, OffsetIndex, PageEncodingStats, PageLocation, PageType,
    SizeStatistics,
};
use crate::page::{PageVersion, SealedPage};
use crate::schema::{Leaf, Physical};
use crate::write::column_options::LeafSettings;

/// A column chunk that is ready to be written. All offsets count from its first byte.
pub(crate) struct EncodedChunk {
    /// The pages, in pieces.
    pub(crate) bytes: Vec<Bytes>,
    /// Its metadata for the footer.
    pub(crate) meta_data: ColumnMetaData,
    /// Where the pages are.
    pub(crate) offset_index: OffsetIndex,
    /// The bounds of its pages.
    pub(crate) column_index: Option<ColumnIndex>,
    /// The bloom filter, with its header.
    pub(crate) bloom: Option<Vec<u8>>,
    /// Whether the values of the leaf rise or fall from row to row, where there are no nulls or
    /// lists.
    pub(crate) sorted: Option<SortDirection>,
    /// Whether the pages are encrypted.
    pub(crate) is_encrypted: bool,
}

/// The pages of a chunk as they are written, one after the other.
pub(super) struct WrittenPages {
    encoding: Encoding,
    codec: Compression,
    pub(super) dictionary: Option<SealedPage>,
    /// The data pages, and the rows that they begin with.
    pages: Vec<(SealedPage, usize)>,
    /// Bytes of the byte strings of each, without lengths.
    byte_array_bytes: Vec<i64>,
    /// The pages, in pieces.
    pub(super) bytes: Vec<Bytes>,
    /// Bytes of the pieces.
    pub(super) len: usize,
}

impl WrittenPages {
    /// No page yet, and `n` data pages to come.
    pub(super) fn new(encoding: Encoding, codec: Compression, n: usize) -> Self {
        Self {
            encoding,
            codec,
            dictionary: None,
            pages: Vec::with_capacity(n),
            byte_array_bytes: Vec::with_capacity(n),
            bytes: Vec::new(),
            len: 0,
        }
    }

    /// Notes a data page that begins with this row.
    pub(super) fn push(&mut self, page: SealedPage, row: usize, byte_array_bytes: i64) {
        self.pages.push((page, row));
        self.byte_array_bytes.push(byte_array_bytes);
    }

    /// Finishes the chunk; `summary` describes its values, and `entries` is its number of level
    /// entries.
    pub(super) fn finish(
        self,
        leaf: &Leaf,
        settings: &LeafSettings,
        entries: usize,
        summary: ChunkSummary,
        bloom: Option<Vec<u8>>,
        sorted: Option<SortDirection>,
    ) -> Result<EncodedChunk> {
        let meta_data = self.meta_data(leaf, settings.page_version, entries, &summary);
        let page_locations = self.page_locations()?;
        let is_bytes = leaf.physical == Physical::ByteArray;
        Ok(EncodedChunk {
            bytes: self.bytes,
            meta_data,
            offset_index: OffsetIndex {
                page_locations,
                unencoded_byte_array_data_bytes: is_bytes.then_some(self.byte_array_bytes),
                ..OffsetIndex::default()
            },
            column_index: summary.column_index,
            bloom,
            sorted,
            is_encrypted: false,
        })
    }

    fn uncompressed(&self) -> usize {
        let pages = self.pages.iter().map(|(page, _)| page).chain(&self.dictionary);
        pages.map(|page| page.raw).sum()
    }

    fn meta_data(
        &self,
        leaf: &Leaf,
        version: PageVersion,
        entries: usize,
        summary: &ChunkSummary,
    ) -> ColumnMetaData {
        let page_type = match version {
            PageVersion::V1 => PageType::DataPage,
            PageVersion::V2 => PageType::DataPageV2,
        };
        let mut encoding_stats = Vec::new();
        let mut encodings = Vec::new();
        if self.dictionary.is_some() {
            encoding_stats.push(pages_of(PageType::DictionaryPage, Encoding::Plain, 1));
            encodings.push(Encoding::Plain);
        }
        encoding_stats.push(pages_of(page_type, self.encoding, self.pages.len()));
        for encoding in [Encoding::Rle, self.encoding] {
            if !encodings.contains(&encoding) {
                encodings.push(encoding);
            }
        }
        let is_bytes = leaf.physical == Physical::ByteArray;
        let unencoded: i64 = self.byte_array_bytes.iter().sum();
        ColumnMetaData {
            r#type: leaf.physical.format_type(),
            encodings,
            path_in_schema: leaf.path.names().iter().map(|name| name.to_string()).collect(),
            codec: self.codec.codec(),
            num_values: wide(entries),
            total_uncompressed_size: wide(self.uncompressed()),
            total_compressed_size: wide(self.len),
            data_page_offset: wide(self.pages.first().map_or(self.len, |(page, _)| page.offset)),
            dictionary_page_offset: self.dictionary.as_ref().map(|page| wide(page.offset)),
            statistics: Some(summary.statistics.clone()),
            encoding_stats: Some(encoding_stats),
            size_statistics: Some(SizeStatistics {
                unencoded_byte_array_data_bytes: is_bytes.then_some(unencoded),
                repetition_level_histogram: summary.rep_histogram.clone(),
                definition_level_histogram: summary.def_histogram.clone(),
                ..SizeStatistics::default()
            }),
            geospatial_statistics: summary.geospatial.clone(),
            ..ColumnMetaData::default()
        }
    }

    fn page_locations(&self) -> Result<Vec<PageLocation>> {
        let location = |(page, row): &(SealedPage, usize)| {
            Ok(PageLocation {
                offset: wide(page.offset),
                compressed_page_size: i32::try_from(page.stored)
                    .map_err(|_| Error::usage("a page of more than 2 GiB"))?,
                first_row_index: wide(*row),
            })
        };
        self.pages.iter().map(location).collect()
    }
}

fn pages_of(page_type: PageType, encoding: Encoding, count: usize) -> PageEncodingStats {
    let count = i32::try_from(count).expect("the pages of a chunk in memory are fewer than 2^31");
    PageEncodingStats { page_type, encoding, count }
}

/// A size as the format has it.
fn wide(n: usize) -> i64 {
    i64::try_from(n).expect("a chunk in memory has less than 2^63 bytes")
}
