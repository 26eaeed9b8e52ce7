//! The footer is the metadata of the whole file.
//!
//! Spec: `parquet.thrift`, README.md "Metadata". It is the last part of a file and the first that
//! is read, by `read::footer`. Reading all of it takes time for every column chunk;
//! [`FooterIndex`](super::FooterIndex) decodes only what is asked for. Trap: `num_rows` is wrong in
//! some old files; the row groups are right.

use super::column::ColumnChunk;
use super::crypto::EncryptionAlgorithm;
use super::key_value::KeyValue;
use super::schema::SchemaElement;
use crate::error::Result;
use crate::memory;
use crate::thrift::derive::thrift;
use crate::thrift::{Write, with_elements};

/// The version that writers state, so that every reader takes the file.
pub(crate) const FILE_VERSION: i32 = 1;

thrift! {
    /// The footer.
    pub struct FileMetaData {
        /// 1 or 2, which mean the same.
        1 required version: i32,
        /// The schema tree, depth-first; the first element is the root.
        2 required schema: Vec<SchemaElement>,
        /// Rows in all row groups, if the writer was right.
        3 required num_rows: i64,
        /// The row groups, in the order of their rows.
        4 required row_groups: Vec<RowGroup>,
        /// Anything that the writer wished to add; keys may occur twice.
        5 optional key_value_metadata: Vec<KeyValue>,
        /// The writer: `app version X.Y.Z (build HASH)`, or any other text.
        6 optional created_by: String as text,
        /// The order of the bounds in statistics, one for each leaf.
        7 optional column_orders: Vec<ColumnOrder>,
        /// How columns are encrypted, where the footer is not.
        8 optional encryption_algorithm: EncryptionAlgorithm,
        /// Which key signed the footer, where it is not encrypted.
        9 optional footer_signing_key_metadata: Vec<u8>,
    }
}

thrift! {
    /// A horizontal slice of the file: one column chunk for every leaf.
    pub struct RowGroup {
        /// The column chunks, in the order of the leaves.
        1 required columns: Vec<ColumnChunk>,
        /// Bytes of all column chunks, uncompressed.
        2 required total_byte_size: i64,
        /// Rows in every column chunk.
        3 required num_rows: i64,
        /// How the rows are sorted, by claim of the writer.
        4 optional sorting_columns: Vec<SortingColumn>,
        /// Where the first page begins; wrong in some files, never relied on.
        5 optional file_offset: i64,
        /// Bytes of all column chunks, as stored.
        6 optional total_compressed_size: i64,
        /// Position among the row groups; part of what encryption authenticates.
        7 optional ordinal: i16,
    }
}

impl FileMetaData {
    /// Writes the footer, whose `row_groups` must be empty, with these instead. Each is dropped
    /// once it is written.
    ///
    /// # Errors
    /// That of a row group; `Limit(Memory)` if the system has no memory.
    pub(crate) fn write_with(
        &self,
        mut row_groups: impl ExactSizeIterator<Item = Result<RowGroup>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let n = row_groups.len();
        let elements = |out: &mut Vec<u8>| row_groups.try_for_each(|of| of?.write(out));
        with_elements(self, ROW_GROUPS, n, elements, out)
    }

    /// A copy, allocated fallibly.
    pub(crate) fn copied(&self) -> Result<Self> {
        let pairs = self.key_value_metadata.as_deref();
        Ok(Self {
            version: self.version,
            schema: memory::cloned(&self.schema)?,
            num_rows: self.num_rows,
            row_groups: memory::try_collected(self.row_groups.iter().map(RowGroup::copied))?,
            key_value_metadata: pairs.map(KeyValue::copied_all).transpose()?,
            created_by: self.created_by.as_deref().map(memory::text).transpose()?,
            column_orders: self.column_orders.as_deref().map(memory::cloned).transpose()?,
            encryption_algorithm: self.encryption_algorithm.clone(),
            footer_signing_key_metadata: self.footer_signing_key_metadata.clone(),
            unknown: self.unknown.clone(),
        })
    }
}

/// The id of the field `row_groups`.
const ROW_GROUPS: i16 = 4;

/// The id of the field `columns`.
const COLUMNS: i16 = 1;

impl RowGroup {
    /// Writes the row group, whose `columns` must be empty, with `n` column chunks, which are in
    /// `columns` one after the other.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn write_with(&self, n: usize, columns: &[u8], out: &mut Vec<u8>) -> Result<()> {
        with_elements(self, COLUMNS, n, |out| memory::append(out, columns), out)
    }

    /// A copy, allocated fallibly.
    pub(crate) fn copied(&self) -> Result<Self> {
        Ok(Self {
            columns: memory::cloned(&self.columns)?,
            total_byte_size: self.total_byte_size,
            num_rows: self.num_rows,
            sorting_columns: self.sorting_columns.clone(),
            file_offset: self.file_offset,
            total_compressed_size: self.total_compressed_size,
            ordinal: self.ordinal,
            unknown: self.unknown.clone(),
        })
    }
}

thrift! {
    /// One key of the sort order of a row group.
    pub struct SortingColumn {
        /// Index of the leaf.
        1 required column_idx: i32,
        /// Whether large values come first.
        2 required descending: bool,
        /// Whether nulls come first.
        3 required nulls_first: bool,
    }
}

impl SortingColumn {
    /// Sorted by the leaf at `column_idx`: ascending, nulls last.
    pub fn new(column_idx: i32) -> Self {
        Self { column_idx, ..Self::default() }
    }

    /// Sets whether large values come first.
    #[must_use]
    pub fn with_descending(mut self, descending: bool) -> Self {
        self.descending = descending;
        self
    }

    /// Sets whether nulls come first.
    #[must_use]
    pub fn with_nulls_first(mut self, nulls_first: bool) -> Self {
        self.nulls_first = nulls_first;
        self
    }
}

thrift! {
    /// The order in which `min_value` and `max_value` of a leaf are bounds.
    #[derive(Eq, Hash)]
    pub union ColumnOrder {
        /// The order that belongs to the logical or physical type.
        1 TypeOrder "TYPE_ORDER",
        /// IEEE 754 total order, for floating point.
        2 Ieee754TotalOrder "IEEE_754_TOTAL_ORDER",
        /// The order of time, for INT96 timestamps.
        3 Int96TimestampOrder "INT96_TIMESTAMP_ORDER",
    }
}
