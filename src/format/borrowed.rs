//! Borrowed forms of the structs that a wide file has in large numbers: reading one allocates
//! nothing.
//!
//! Spec: `parquet.thrift`, PageIndex.md. Read by [`FooterIndex`](super::FooterIndex), and where all
//! nodes of a schema, all column chunks or all page indexes are visited. The fields have the names
//! of those in the owning structs. Byte strings are slices; lists and rare structs are decoded when
//! they are asked for ([`List`], [`LazyValue`]). Trap: unknown fields are not kept, so nothing here
//! can be written back.

use super::column::PageEncodingStats;
use super::crypto::ColumnCryptoMetaData;
use super::enums::{
    BoundaryOrder, CompressionCodec, ConvertedType, Encoding, FieldRepetitionType, Type,
};
use super::index::PageLocation;
use super::key_value::KeyValue;
use super::schema::LogicalType;
use super::statistics::GeospatialStatistics;
use crate::error::{Error, Result};
use crate::thrift::derive::thrift;
use crate::thrift::{LazyValue, List};

thrift! {
    /// A [`SchemaElement`](super::SchemaElement), borrowed.
    pub view struct SchemaElementRef<'a> of "SchemaElement" {
        /// Physical type; on leaves only.
        1 optional r#type: Type,
        /// Bytes of a value; only for FIXED_LEN_BYTE_ARRAY.
        2 optional type_length: i32,
        /// Required on all but the root, where it means nothing.
        3 optional repetition_type: FieldRepetitionType,
        /// Name of the node. Any text: it may hold dots, and may be empty.
        4 required name: &'a str,
        /// Number of children; on groups. A leaf may carry 0.
        5 optional num_children: i32,
        /// The older annotation.
        6 optional converted_type: ConvertedType,
        /// Scale of a DECIMAL, for old readers.
        7 optional scale: i32,
        /// Precision of a DECIMAL, for old readers.
        8 optional precision: i32,
        /// Id of the field in the user's schema.
        9 optional field_id: i32,
        /// The annotation; wins over `converted_type`. Owned, because it nearly never allocates.
        10 optional logical_type: LogicalType,
    }
}

thrift! {
    /// A [`ColumnChunk`](super::ColumnChunk), borrowed.
    #[derive(Copy)]
    pub view struct ColumnChunkRef<'a> of "ColumnChunk" {
        /// Another file that holds the chunk; never followed.
        1 optional file_path: &'a str,
        /// Deprecated: offset of a copy of the metadata in the file, or any other number.
        2 required file_offset: i64,
        /// The contents of the chunk; absent if they are encrypted with a key of their own.
        3 optional meta_data: ColumnMetaDataRef<'a>,
        /// Where the offset index begins.
        4 optional offset_index_offset: i64,
        /// Bytes of the offset index.
        5 optional offset_index_length: i32,
        /// Where the column index begins.
        6 optional column_index_offset: i64,
        /// Bytes of the column index.
        7 optional column_index_length: i32,
        /// How the chunk is encrypted, if it is.
        8 optional crypto_metadata: LazyValue<'a, ColumnCryptoMetaData>,
        /// `meta_data`, encrypted with the key of the column.
        9 optional encrypted_column_metadata: &'a [u8],
    }
}

impl ColumnChunkRef<'_> {
    /// Whether its pages and indexes are encrypted, even if the footer is not.
    pub fn is_encrypted(&self) -> bool {
        self.crypto_metadata.is_some() || self.encrypted_column_metadata.is_some()
    }

    /// Checks that its pages lie in the file of its metadata.
    ///
    /// # Errors
    /// `Unsupported` if they lie in another one.
    pub(crate) fn check_is_here(&self) -> Result<()> {
        match self.file_path.filter(|path| !path.is_empty()) {
            Some(path) => Err(Error::unsupported(
                "column chunks in other files",
                format_args!("the data lie in the file {path:?}; read that file instead"),
            )),
            None => Ok(()),
        }
    }
}

thrift! {
    /// A [`ColumnMetaData`](super::ColumnMetaData), borrowed.
    #[derive(Copy)]
    pub view struct ColumnMetaDataRef<'a> of "ColumnMetaData" {
        /// Physical type; that of the leaf.
        1 required r#type: Type,
        /// All encodings in use, those of the levels included. Not to be relied on.
        2 defaulted encodings: List<'a, Encoding>,
        /// Names from below the root to the leaf. Some footers leave them out: columns are found
        /// by their order.
        3 defaulted path_in_schema: List<'a, &'a str>,
        /// How the pages are compressed.
        4 required codec: CompressionCodec,
        /// Level entries: values, nulls and empty lists.
        5 required num_values: i64,
        /// Bytes of all pages uncompressed, headers included.
        6 required total_uncompressed_size: i64,
        /// Bytes of all pages as stored, headers and encryption included.
        7 required total_compressed_size: i64,
        /// Anything that the writer wished to add.
        8 optional key_value_metadata: List<'a, KeyValue>,
        /// Where the first data page begins.
        9 required data_page_offset: i64,
        /// Not used by the format.
        10 optional index_page_offset: i64,
        /// Where the dictionary page begins; 0 is absent too.
        11 optional dictionary_page_offset: i64,
        /// Bounds and counts of the chunk.
        12 optional statistics: StatisticsRef<'a>,
        /// Which pages use which encoding: the only proof that all data pages use the dictionary.
        13 optional encoding_stats: List<'a, PageEncodingStats>,
        /// Where the bloom filter begins.
        14 optional bloom_filter_offset: i64,
        /// Bytes of the bloom filter, its header included.
        15 optional bloom_filter_length: i32,
        /// Sizes in memory.
        16 optional size_statistics: SizeStatisticsRef<'a>,
        /// Bounds and kinds of the shapes.
        17 optional geospatial_statistics: LazyValue<'a, GeospatialStatistics>,
    }
}

thrift! {
    /// [`Statistics`](super::Statistics), borrowed.
    #[derive(Copy)]
    pub view struct StatisticsRef<'a> of "Statistics" {
        /// Deprecated: largest value in signed order.
        1 optional max: &'a [u8],
        /// Deprecated: smallest value in signed order.
        2 optional min: &'a [u8],
        /// Nulls; for leaves in lists also the entries of empty and null lists.
        3 optional null_count: i64,
        /// Distinct values.
        4 optional distinct_count: i64,
        /// Upper bound in the column order.
        5 optional max_value: &'a [u8],
        /// Lower bound in the column order.
        6 optional min_value: &'a [u8],
        /// Whether `max_value` occurs.
        7 optional is_max_value_exact: bool,
        /// Whether `min_value` occurs.
        8 optional is_min_value_exact: bool,
        /// NaNs; absent means that there may be some.
        9 optional nan_count: i64,
    }
}

thrift! {
    /// [`SizeStatistics`](super::SizeStatistics), borrowed.
    #[derive(Copy)]
    pub view struct SizeStatisticsRef<'a> of "SizeStatistics" {
        /// Bytes of all BYTE_ARRAY values, without lengths and with the dictionary expanded.
        1 optional unencoded_byte_array_data_bytes: i64,
        /// How often each repetition level occurs; empty is absent.
        2 optional repetition_level_histogram: List<'a, i64>,
        /// How often each definition level occurs; empty is absent.
        3 optional definition_level_histogram: List<'a, i64>,
    }
}

thrift! {
    /// An [`OffsetIndex`](super::OffsetIndex), borrowed.
    #[derive(Copy)]
    pub view struct OffsetIndexRef<'a> of "OffsetIndex" {
        /// One for each data page, in file order.
        1 required page_locations: List<'a, PageLocation>,
        /// Bytes of the BYTE_ARRAY values of each page.
        2 optional unencoded_byte_array_data_bytes: List<'a, i64>,
    }
}

thrift! {
    /// A [`ColumnIndex`](super::ColumnIndex), borrowed.
    #[derive(Copy)]
    pub view struct ColumnIndexRef<'a> of "ColumnIndex" {
        /// For each page, whether it has no values at all.
        1 required null_pages: List<'a, bool>,
        /// Lower bounds; empty for pages of nulls.
        2 required min_values: List<'a, &'a [u8]>,
        /// Upper bounds; empty for pages of nulls.
        3 required max_values: List<'a, &'a [u8]>,
        /// Whether the bounds are sorted.
        4 required boundary_order: BoundaryOrder,
        /// Nulls in each page.
        5 optional null_counts: List<'a, i64>,
        /// Repetition level histograms of all pages, one after the other.
        6 optional repetition_level_histograms: List<'a, i64>,
        /// Definition level histograms of all pages, one after the other.
        7 optional definition_level_histograms: List<'a, i64>,
        /// NaNs in each page.
        8 optional nan_counts: List<'a, i64>,
    }
}
