//! A column chunk is the pages of one leaf in one row group; these structs are its metadata in the
//! footer.
//!
//! Spec: `parquet.thrift`, README.md "Column chunks". Column chunks are the bulk of a wide footer;
//! `read::row_group` decodes them on demand. Offsets count from the beginning of the file and are
//! unchecked here: `read::plan` compares them with the file's length. Trap:
//! `dictionary_page_offset` and `index_page_offset` may be 0, which means absent.

use super::crypto::ColumnCryptoMetaData;
use super::enums::{CompressionCodec, Encoding, PageType, Type};
use super::key_value::KeyValue;
use super::statistics::{GeospatialStatistics, SizeStatistics, Statistics};
use crate::thrift::derive::thrift;

thrift! {
    /// Where a column chunk, its metadata and its indexes are.
    pub struct ColumnChunk {
        /// Another file that holds the chunk; only in `_metadata` summaries.
        1 optional file_path: String,
        /// Deprecated: offset of a copy of the metadata in the file, or any other number.
        2 required file_offset: i64,
        /// The contents of the chunk; absent if they are encrypted with a key of their own.
        3 optional meta_data: ColumnMetaData,
        /// Where the offset index begins.
        4 optional offset_index_offset: i64,
        /// Bytes of the offset index.
        5 optional offset_index_length: i32,
        /// Where the column index begins.
        6 optional column_index_offset: i64,
        /// Bytes of the column index.
        7 optional column_index_length: i32,
        /// How the chunk is encrypted, if it is.
        8 optional crypto_metadata: ColumnCryptoMetaData,
        /// `meta_data`, encrypted with the key of the column.
        9 optional encrypted_column_metadata: Vec<u8>,
    }
}

thrift! {
    /// The contents of a column chunk.
    pub struct ColumnMetaData {
        /// Physical type; that of the leaf.
        1 required r#type: Type,
        /// All encodings in use, those of the levels included. Not to be relied on.
        2 defaulted encodings: Vec<Encoding>,
        /// Names from below the root to the leaf. Some footers leave them out: columns are found
        /// by their order.
        3 omittable path_in_schema: Vec<String>,
        /// How the pages are compressed.
        4 required codec: CompressionCodec,
        /// Level entries: values, nulls and empty lists.
        5 required num_values: i64,
        /// Bytes of all pages uncompressed, headers included.
        6 required total_uncompressed_size: i64,
        /// Bytes of all pages as stored, headers and encryption included.
        7 required total_compressed_size: i64,
        /// Anything that the writer wished to add.
        8 optional key_value_metadata: Vec<KeyValue>,
        /// Where the first data page begins.
        9 required data_page_offset: i64,
        /// Not used by the format.
        10 optional index_page_offset: i64,
        /// Where the dictionary page begins; 0 is absent too.
        11 optional dictionary_page_offset: i64,
        /// Bounds and counts of the chunk.
        12 optional statistics: Statistics,
        /// Which pages use which encoding: the only proof that all data pages use the dictionary.
        13 optional encoding_stats: Vec<PageEncodingStats>,
        /// Where the bloom filter begins.
        14 optional bloom_filter_offset: i64,
        /// Bytes of the bloom filter, its header included.
        15 optional bloom_filter_length: i32,
        /// Sizes in memory.
        16 optional size_statistics: SizeStatistics,
        /// Bounds and kinds of the shapes.
        17 optional geospatial_statistics: GeospatialStatistics,
    }
}

thrift! {
    /// How many pages of one type use one encoding.
    #[derive(Copy, Eq, Hash)]
    pub closed struct PageEncodingStats {
        /// Type of the pages.
        1 required page_type: PageType,
        /// Encoding of their values.
        2 required encoding: Encoding,
        /// Number of them.
        3 required count: i32,
    }
}

impl PageEncodingStats {
    /// `count` pages of `page_type` whose values are in `encoding`.
    pub const fn new(page_type: PageType, encoding: Encoding, count: i32) -> Self {
        Self { page_type, encoding, count }
    }
}
