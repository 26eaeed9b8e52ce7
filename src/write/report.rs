//! [`WriteReport`] describes the written file. Table formats put it into their manifests, so that
//! readers need not open the file for it.

use std::fmt;

use bytes::Bytes;

use super::placed::PlacedRowGroup;
use crate::error::{Error, Result};
use crate::format::{
    ColumnMetaData, CompressionCodec, Encoding, FileMetaData, GeospatialStatistics, PageType, Type,
};
use crate::memory;
use crate::thrift::{Read, ThriftReader};
use crate::variant::VariantShape;

/// Describes a finished file.
///
/// Row groups and columns are decoded when they are asked for: a file may have a million column
/// chunks.
#[derive(Clone)]
#[non_exhaustive]
pub struct WriteReport {
    /// Number of rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The shapes that VARIANT columns were shredded into, by the names of the columns, given or
    /// inferred.
    pub shapes: Vec<(String, VariantShape)>,
    pub(super) row_groups: Vec<PlacedRowGroup>,
    /// The field id of each leaf.
    pub(super) field_ids: Vec<Option<i32>>,
    /// The FileMetaData, not encrypted.
    pub(super) footer: Bytes,
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
    /// The physical type of the leaf, as the footer has it.
    pub physical: Type,
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

impl fmt::Debug for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteReport")
            .field("rows", &self.rows)
            .field("bytes", &self.bytes)
            .field("row_groups", &self.row_groups.len())
            .field("shapes", &self.shapes)
            .finish_non_exhaustive()
    }
}

impl WriteReport {
    /// Number of row groups.
    pub fn row_groups(&self) -> usize {
        self.row_groups.len()
    }

    /// Describes a row group, and each of its columns.
    ///
    /// # Errors
    /// `Usage` if there is none with this number; `Limit(Memory)` if the system has no memory.
    pub fn row_group(&self, row_group: usize) -> Result<RowGroupReport> {
        let Some(placed) = self.row_groups.get(row_group) else {
            return Err(Error::usage(format_args!(
                "there is no row group {row_group} among the {} of the file",
                self.row_groups.len()
            )));
        };
        let decoded = placed.metadata()?;
        let chunks = decoded.columns.into_iter().zip(&self.field_ids);
        let columns = chunks.map(|(chunk, field_id)| {
            ColumnReport::new(chunk.meta_data.unwrap_or_default(), *field_id)
        });
        Ok(RowGroupReport {
            rows: placed.rows,
            offset: placed.offset,
            bytes: placed.bytes,
            columns: memory::collected(columns)?,
        })
    }

    /// The columns of all row groups with this field id, by which table formats key their metrics.
    ///
    /// # Errors
    /// As [`WriteReport::row_group`].
    pub fn by_field_id(&self, field_id: i32) -> Result<Vec<ColumnReport>> {
        let mut found = Vec::new();
        for i in 0..self.row_groups() {
            let columns = self.row_group(i)?.columns.into_iter();
            memory::extend(&mut found, columns.filter(|of| of.field_id == Some(field_id)))?;
        }
        Ok(found)
    }

    /// Offsets of the row groups, at which the file can be split.
    pub fn split_offsets(&self) -> Vec<u64> {
        self.row_groups.iter().map(|row_group| row_group.offset).collect()
    }

    /// The footer as it was written.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub fn metadata(&self) -> Result<FileMetaData> {
        FileMetaData::read(&mut ThriftReader::new(&self.footer))
    }
}

impl ColumnReport {
    /// Takes it from the metadata of a chunk, before anything of them is encrypted.
    fn new(meta: ColumnMetaData, field_id: Option<i32>) -> Self {
        let count = |n: i64| u64::try_from(n).unwrap_or_default();
        let first = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset);
        let statistics = meta.statistics.unwrap_or_default();
        let pages = meta.encoding_stats.iter().flatten();
        let data_pages = pages.filter(|of| of.page_type != PageType::DictionaryPage);
        Self {
            path: meta.path_in_schema.join("."),
            field_id,
            physical: meta.r#type,
            values: count(meta.num_values),
            nulls: count(statistics.null_count.unwrap_or_default()),
            nans: statistics.nan_count.map(count),
            distinct: statistics.distinct_count.map(count),
            min: statistics.min_value,
            max: statistics.max_value,
            geospatial: meta.geospatial_statistics,
            bytes: count(meta.total_compressed_size),
            uncompressed_bytes: count(meta.total_uncompressed_size),
            offset: count(first),
            pages: data_pages.map(|of| usize::try_from(of.count).unwrap_or_default()).sum(),
            encodings: meta.encodings,
            codec: meta.codec,
        }
    }
}
