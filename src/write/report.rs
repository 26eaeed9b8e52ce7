//! [`WriteReport`] describes the written file. Table formats put it into their manifests, so that
//! readers need not open the file for it.

use crate::format::{CompressionCodec, Encoding, FileMetaData, GeospatialStatistics};
use crate::variant::VariantShape;

/// Describes a finished file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteReport {
    /// Number of rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The row groups, in order.
    pub row_groups: Vec<RowGroupReport>,
    /// The footer as it was written.
    pub metadata: FileMetaData,
    /// The shapes that VARIANT columns were shredded into, by the names of the columns, given or
    /// inferred.
    pub shapes: Vec<(String, VariantShape)>,
}

/// Describes a row group.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RowGroupReport {
    /// Number of rows.
    pub rows: u64,
    /// Offset of its first byte, at which the file can be split.
    pub offset: u64,
    /// Bytes of its pages.
    pub bytes: u64,
    /// Its leaves, depth-first.
    pub columns: Vec<ColumnReport>,
}

/// Describes a column chunk.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ColumnReport {
    /// The dotted path of the leaf.
    pub path: String,
    /// The field id of the leaf.
    pub field_id: Option<i32>,
    /// Level entries: values, nulls and empty lists.
    pub values: u64,
    /// Entries without a value.
    pub nulls: u64,
    /// NaNs, if the type can have some.
    pub nans: Option<u64>,
    /// Distinct values, if a dictionary counted them.
    pub distinct: Option<u64>,
    /// The lower bound as the footer has it: PLAIN, perhaps truncated.
    pub min: Option<Vec<u8>>,
    /// The upper bound.
    pub max: Option<Vec<u8>>,
    /// The box around the values of a GEOMETRY or GEOGRAPHY column, and their types. `None` if
    /// there is no value, or one that is no ISO WKB.
    pub geospatial: Option<GeospatialStatistics>,
    /// Bytes of the pages as stored.
    pub bytes: u64,
    /// Bytes of the pages before compression.
    pub uncompressed_bytes: u64,
    /// Offset of the first page in the file.
    pub offset: u64,
    /// The encodings of the pages.
    pub encodings: Vec<Encoding>,
    /// The codec.
    pub codec: CompressionCodec,
    /// Number of data pages.
    pub pages: usize,
}

impl WriteReport {
    /// The columns of all row groups with this field id, by which table formats key their metrics.
    pub fn by_field_id(&self, field_id: i32) -> impl Iterator<Item = &ColumnReport> {
        let columns = self.row_groups.iter().flat_map(|row_group| &row_group.columns);
        columns.filter(move |column| column.field_id == Some(field_id))
    }

    /// Offsets of the row groups, at which the file can be split.
    pub fn split_offsets(&self) -> Vec<u64> {
        self.row_groups.iter().map(|row_group| row_group.offset).collect()
    }
}
