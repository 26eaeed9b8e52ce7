//! A page header precedes its page in the column chunk.
//!
//! Spec: `parquet.thrift`, README.md "Data Pages". Read by `page::open`, which checks every number.
//! The length of a header is not stored: it ends where its struct ends. Trap: version 2 lists the
//! length of the definition levels first, but the repetition levels come first in the page.

use super::enums::{Encoding, PageType};
use super::statistics::Statistics;
use crate::thrift::derive::thrift;

thrift! {
    /// The header of a page: sizes, checksum, and the header that belongs to its type.
    pub struct PageHeader {
        /// The kind of the page, which decides which of the four headers is present.
        1 required r#type: PageType,
        /// Bytes of the page uncompressed, without this header, with the levels.
        2 required uncompressed_page_size: i32,
        /// Bytes that follow this header.
        3 required compressed_page_size: i32,
        /// CRC-32 of the bytes that follow, as a signed number.
        4 optional crc: i32,
        /// For DATA_PAGE.
        5 optional data_page_header: DataPageHeader,
        /// For INDEX_PAGE.
        6 optional index_page_header: IndexPageHeader,
        /// For DICTIONARY_PAGE.
        7 optional dictionary_page_header: DictionaryPageHeader,
        /// For DATA_PAGE_V2.
        8 optional data_page_header_v2: DataPageHeaderV2,
    }
}

thrift! {
    /// The part of the header for a data page of version 1.
    pub struct DataPageHeader {
        /// Level entries: values, nulls and empty lists.
        1 required num_values: i32,
        /// Encoding of the values.
        2 required encoding: Encoding,
        /// Encoding of the definition levels.
        3 required definition_level_encoding: Encoding,
        /// Encoding of the repetition levels.
        4 required repetition_level_encoding: Encoding,
        /// Bounds and counts of the page.
        5 optional statistics: Statistics,
    }
}

thrift! {
    /// The part of the header for an index page, which has no fields and was never used.
    pub struct IndexPageHeader {}
}

thrift! {
    /// The part of the header for a dictionary page.
    pub struct DictionaryPageHeader {
        /// Values in the dictionary.
        1 required num_values: i32,
        /// Encoding of the values: PLAIN, or PLAIN_DICTIONARY for the same.
        2 required encoding: Encoding,
        /// Whether the values are in ascending order.
        3 optional is_sorted: bool,
    }
}

thrift! {
    /// The part of the header for a data page of version 2.
    pub struct DataPageHeaderV2 {
        /// Level entries: values, nulls and empty lists.
        1 required num_values: i32,
        /// Level entries without a value.
        2 required num_nulls: i32,
        /// Rows; a page of version 2 begins with a row.
        3 required num_rows: i32,
        /// Encoding of the values.
        4 required encoding: Encoding,
        /// Bytes of the definition levels, which come second.
        5 required definition_levels_byte_length: i32,
        /// Bytes of the repetition levels, which come first.
        6 required repetition_levels_byte_length: i32,
        /// Whether the values are compressed; true if absent.
        7 optional is_compressed: bool,
        /// Bounds and counts of the page.
        8 optional statistics: Statistics,
    }
}
