//! The metadata: one Rust type for every thrift type, with the same field names.

mod bloom;
mod column;
mod crypto;
mod enums;
mod file;
mod footer;
mod index;
mod page;
mod schema;
mod statistics;
pub mod tail;
#[cfg(test)]
mod tests;

pub use bloom::{BloomFilterAlgorithm, BloomFilterCompression, BloomFilterHash, BloomFilterHeader};
pub use column::{ColumnChunk, ColumnMetaData, PageEncodingStats};
pub use crypto::{
    AesGcmCtrV1, AesGcmV1, ColumnCryptoMetaData, EncryptionAlgorithm, EncryptionWithColumnKey,
    FileCryptoMetaData,
};
pub use enums::{
    BoundaryOrder, CompressionCodec, ConvertedType, EdgeInterpolationAlgorithm, Encoding,
    FieldRepetitionType, PageType, Type,
};
pub use file::{ColumnOrder, FileMetaData, KeyValue, RowGroup, SortingColumn};
pub use footer::{ChunkStarts, FileHead, FooterIndex, RowGroupHead};
pub use index::{ColumnIndex, OffsetIndex, PageLocation};
pub use page::{
    DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, IndexPageHeader, PageHeader,
};
pub use schema::{
    DecimalType, GeographyType, GeometryType, IntType, LogicalType, SchemaElement, TimeType,
    TimeUnit, TimestampType, VariantType,
};
pub use statistics::{BoundingBox, GeospatialStatistics, SizeStatistics, Statistics};
