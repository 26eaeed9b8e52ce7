//! The metadata: one Rust type for every thrift type, with the names of the fields in snake case.
//!
//! Spec: `parquet.thrift`. Read and written by `thrift`, which also defines how bad input is
//! handled; used by all layers above. Optional fields are `Option`. Unknown numbers of enums,
//! members of unions and fields of structs are kept. Trap: only the wire format is checked here; an
//! offset, a count or a size is checked where it is used.
//!
//! Structs that a wide file has in large numbers have a second, borrowed form, which allocates only
//! for rare fields: [`SchemaElementRef`], [`ColumnChunkRef`] and its parts, [`OffsetIndexRef`],
//! [`ColumnIndexRef`].
//!
//! # Coverage
//!
//! *used*: the library acts on it. *kept*: read, shown and written back, but not acted on.
//! *skipped*: passed over.
//!
//! | struct | used | kept | skipped |
//! |---|---|---|---|
//! | [`FileMetaData`] | 2, 4, 5 (`ARROW:schema`), 6, 7, 8 | 1, 3, 9 | |
//! | [`SchemaElement`] | 1 – 8, 10 | 9 | |
//! | [`LogicalType`] | 1 – 8, 10 – 19 | 9 and beyond, as unrecognized | |
//! | [`DecimalType`], [`TimeType`], [`TimestampType`], [`IntType`] | 1, 2 | | |
//! | [`TimeUnit`] | 1 – 3 | beyond | |
//! | [`VariantType`], [`GeometryType`] | 1 | | |
//! | [`GeographyType`] | 1, 2 | | |
//! | [`RowGroup`] | 1, 3 | 2, 4, 5, 6, 7 | |
//! | [`SortingColumn`] | | 1 – 3 | |
//! | [`ColumnChunk`] | 1 (refused), 3 – 8 | 2, 9 | |
//! | [`ColumnMetaData`] | 1, 4, 5, 7, 9, 11 – 16 | 2, 3, 6, 8, 10, 17 | |
//! | [`PageEncodingStats`] | 1 – 3 | | |
//! | [`KeyValue`] | 1, 2 | | |
//! | [`ColumnOrder`] | 1 – 3 | beyond | |
//! | [`Statistics`] | 1 – 3, 5 – 9 | 4 | |
//! | [`SizeStatistics`] | 1 | 2, 3 | |
//! | [`GeospatialStatistics`] | | 1, 2 | |
//! | [`BoundingBox`] | | 1 – 8 | |
//! | [`PageHeader`] | 1 – 5, 7, 8 | 6 | |
//! | [`DataPageHeader`] | 1 – 4 | 5 | |
//! | [`IndexPageHeader`] | | | the page |
//! | [`DictionaryPageHeader`] | 1, 2 | 3 | |
//! | [`DataPageHeaderV2`] | 1 – 7 | 8 | |
//! | [`PageLocation`] | 1 – 3 | | |
//! | [`OffsetIndex`] | 1 | 2 | |
//! | [`ColumnIndex`] | 1 – 5, 8 | 6, 7 | |
//! | [`BloomFilterHeader`] | 1 – 4 | | |
//! | [`BloomFilterAlgorithm`], [`BloomFilterHash`], [`BloomFilterCompression`] | 1 | beyond | |
//! | [`EncryptionAlgorithm`], [`ColumnCryptoMetaData`] | 1, 2 (that there is one) | beyond | |
//! | [`AesGcmV1`], [`AesGcmCtrV1`] | | 1 – 3 | |
//! | [`FileCryptoMetaData`], [`EncryptionWithColumnKey`] | | 1, 2 | |
//! | every struct, the extension field 32767 and all other ids | | kept as bytes: [`Unknown`] | |

mod enums;
mod key_value;
mod crypto;
mod schema;
mod statistics;
mod column;
mod index;
mod file;
mod borrowed;
mod elements;
mod orders;
mod footer;
mod bloom;
mod page;
pub(crate) mod tail;
#[cfg(test)]
mod tests;

pub use crate::thrift::{LazyValue, List, ListIter, Thrift, Unknown};
pub use bloom::{BloomFilterAlgorithm, BloomFilterCompression, BloomFilterHash, BloomFilterHeader};
pub use borrowed::{
    ColumnChunkRef, ColumnIndexRef, ColumnMetaDataRef, OffsetIndexRef, SchemaElementRef,
    SizeStatisticsRef, StatisticsRef,
};
pub use column::{ColumnChunk, ColumnMetaData, PageEncodingStats};
pub use crypto::{
    AesGcmCtrV1, AesGcmV1, ColumnCryptoMetaData, EncryptionAlgorithm, EncryptionWithColumnKey,
    FileCryptoMetaData,
};
pub use elements::ElementHeads;
pub(crate) use elements::{ElementHead, LogicalKind, SchemaElements};
pub use enums::{
    BoundaryOrder, CompressionCodec, ConvertedType, EdgeInterpolationAlgorithm, Encoding,
    FieldRepetitionType, PageType, Type,
};
pub(crate) use file::FILE_VERSION;
pub use file::{ColumnOrder, FileMetaData, RowGroup, SortingColumn};
pub(crate) use footer::IndexPlaces;
pub use footer::{ChunkStarts, ColumnChunks, FileHead, FooterIndex, RowGroupHead};
pub use index::{ColumnIndex, OffsetIndex, PageLocation};
pub use key_value::KeyValue;
pub use orders::ColumnOrders;
pub use page::{
    DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, IndexPageHeader, PageHeader,
};
pub use schema::{
    DecimalType, GeographyType, GeometryType, IntType, LogicalType, SchemaElement, TimeType,
    TimeUnit, TimestampType, VariantType,
};
pub use statistics::{BoundingBox, GeospatialStatistics, SizeStatistics, Statistics};
