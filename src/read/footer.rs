//! The footer: the schema, and an index of the column chunks that are decoded when somebody asks.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::encoding::legacy::BitOrder;
use crate::error::{Error, Result, Spec};
use crate::format::{
    ColumnChunk, ColumnChunkRef, ColumnChunks, ColumnOrder, FooterIndex, KeyValue,
};
use crate::limits::Limits;
use crate::schema::Schema;

/// The metadata of a file. Cheap to clone.
#[derive(Clone)]
pub struct Footer {
    shared: Arc<Shared>,
}

struct Shared {
    index: FooterIndex,
    schema: Schema,
    writer: Writer,
}

impl Footer {
    /// Parses the thrift bytes of a footer.
    ///
    /// # Errors
    /// `Malformed` if they are not a FileMetaData with a sound schema.
    pub fn parse(bytes: Bytes, limits: &Limits) -> Result<Self> {
        let mut index = FooterIndex::parse(bytes)?;
        let schema = Schema::parse(index.take_schema(), limits)?;
        let writer = Writer::parse(index.head().created_by.as_deref().unwrap_or_default());
        Ok(Self { shared: Arc::new(Shared { index, schema, writer }) })
    }

    /// The order of the bounds of a leaf, if the footer has one for every leaf.
    pub(in crate::read) fn column_order(&self, leaf: usize) -> Option<&ColumnOrder> {
        let orders = self.index().head().column_orders.as_ref()?;
        // A list that is shorter than the leaves is none.
        (orders.len() >= self.schema().leaves_len()).then(|| orders.get(leaf)).flatten()
    }

    /// The Parquet schema.
    pub fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    /// The thrift metadata: everything but the chunks decoded, those on demand.
    pub fn index(&self) -> &FooterIndex {
        &self.shared.index
    }

    /// Key-value metadata of the file, in the order written.
    pub fn key_values(&self) -> &[KeyValue] {
        self.shared.index.head().key_value_metadata.as_deref().unwrap_or_default()
    }

    /// Number of row groups.
    pub fn row_groups(&self) -> usize {
        self.shared.index.head().row_groups.len()
    }

    /// Rows of a row group.
    ///
    /// # Errors
    /// `Usage` if there is no such row group, `Malformed` if it says a negative number.
    pub fn row_group_rows(&self, row_group: usize) -> Result<u64> {
        let group = self.shared.index.head().row_groups.get(row_group).ok_or_else(|| {
            Error::usage(format_args!(
                "row group {row_group} of {}: the file has no such",
                self.row_groups()
            ))
        })?;
        u64::try_from(group.num_rows).map_err(|_| {
            Error::mismatch(Spec::Metadata("RowGroup"), "num_rows", "not negative", group.num_rows)
                .at_row_group(row_group)
        })
    }

    /// Rows of the file: the sum over its row groups, as the number in the footer is known to be
    /// wrong in old files.
    ///
    /// # Errors
    /// `Malformed` if a row group says a negative number, or the sum overflows.
    pub fn rows(&self) -> Result<u64> {
        (0..self.row_groups()).try_fold(0u64, |sum, i| {
            sum.checked_add(self.row_group_rows(i)?).ok_or_else(|| {
                Error::malformed(
                    Spec::Metadata("RowGroup"),
                    "the rows of the row groups overflow 64 bits",
                )
            })
        })
    }

    /// Decodes the metadata of a column chunk.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken.
    pub fn column_chunk(&self, row_group: usize, leaf: usize) -> Result<ColumnChunk> {
        self.shared.index.column_chunk(row_group, leaf).map_err(|e| e.at_row_group(row_group))
    }

    /// As [`Footer::column_chunk`], without copying: nothing is allocated.
    ///
    /// # Errors
    /// As [`Footer::column_chunk`].
    pub(crate) fn column_chunk_ref(
        &self,
        row_group: usize,
        leaf: usize,
    ) -> Result<ColumnChunkRef<'_>> {
        self.shared.index.column_chunk_ref(row_group, leaf).map_err(|e| e.at_row_group(row_group))
    }

    /// Decodes the metadata of all column chunks of a row group, one after the other and without
    /// copying: the fast way to look at all of a wide file.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// for row_group in 0..reader.metadata().row_groups() {
    ///     for chunk in reader.metadata().column_chunks(row_group)? {
    ///         let Some(meta) = chunk?.meta_data else { continue };
    ///         println!("{:?}: {} bytes", meta.path_in_schema, meta.total_compressed_size);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such row group.
    pub fn column_chunks(&self, row_group: usize) -> Result<ColumnChunks<'_>> {
        self.shared.index.column_chunks(row_group).map_err(|e| e.at_row_group(row_group))
    }

    /// Bytes of memory that it holds, about; clones share them.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Shared>() + self.shared.index.heap_bytes() + self.shared.schema.heap_bytes()
    }

    /// Bytes of the FileMetaData.
    pub(super) fn byte_len(&self) -> usize {
        self.shared.index.byte_len()
    }

    /// The FileMetaData as it is in the file.
    pub(super) fn thrift_bytes(&self) -> &[u8] {
        let index = &self.shared.index;
        index.bytes().get(..index.byte_len()).unwrap_or_default()
    }

    pub(super) fn writer(&self) -> Writer {
        self.shared.writer
    }
}

impl fmt::Debug for Footer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Footer")
            .field("leaves", &self.schema().leaves_len())
            .field("row_groups", &self.row_groups())
            .field("created_by", &self.shared.index.head().created_by)
            .finish()
    }
}

/// The writer of a file, as far as it has faults that we read past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Writer {
    /// Arrow C++ before 3.0 (`parquet-cpp` before 2.0.0): V2 pages say `is_compressed = false` over
    /// compressed values.
    pub(super) ignores_is_compressed: bool,
    /// parquet-mr before 1.8.0 (PARQUET-246): a DELTA_BYTE_ARRAY page begins with a prefix of the
    /// previous page's last value.
    pub(super) carries_prefix: bool,
    /// Impala packs BIT_PACKED levels from the least significant bit
    /// (testdata/bit_packed_levels_impala.parquet).
    pub(super) bit_order: BitOrder,
    /// parquet-mr up to 1.2.8 (PARQUET-816), and one that names no version: total_compressed_size
    /// leaves out the header of the dictionary page.
    pub(super) short_chunks: bool,
}

impl Writer {
    /// Reads `application version X.Y.Z (build HASH)`, as leniently as the field is written.
    fn parse(created_by: &str) -> Self {
        let mut words = created_by.split_whitespace();
        let application = words.next().unwrap_or_default();
        let version = words.skip_while(|word| *word != "version").nth(1);
        let mut numbers = version
            .unwrap_or("0")
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
        let mut number = || numbers.next().unwrap_or_default();
        let version = (number(), number(), number());
        Self {
            ignores_is_compressed: application == "parquet-cpp" && version < (2, 0, 0),
            carries_prefix: application == "parquet-mr" && version < (1, 8, 0),
            bit_order: if application == "impala" {
                BitOrder::LeastSignificantFirst
            } else {
                BitOrder::MostSignificantFirst
            },
            short_chunks: application == "parquet-mr" && version <= (1, 2, 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_with_known_faults_are_told_from_their_heirs() {
        let old_cpp = Writer::parse("parquet-cpp version 1.5.1-SNAPSHOT");
        assert!(old_cpp.ignores_is_compressed);
        assert!(!Writer::parse("parquet-cpp-arrow version 2.0.0").ignores_is_compressed);
        let old_mr = Writer::parse("parquet-mr version 1.2.8 (build abc)");
        assert!(old_mr.carries_prefix && old_mr.short_chunks);
        let unversioned = Writer::parse("parquet-mr");
        assert!(unversioned.carries_prefix && unversioned.short_chunks);
        let newer_mr = Writer::parse("parquet-mr version 1.8.0 (build abc)");
        assert!(!newer_mr.carries_prefix && !newer_mr.short_chunks);
        for text in ["", "parquet-mr", "version", "parquet-mr version", "parquet-cpp version x.y"] {
            Writer::parse(text);
        }
    }
}
