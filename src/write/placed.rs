//! [`PlacedRowGroup`]: a row group that has its place in the file, as far as the footer and the
//! report need it.
//!
//! A file can have a million column chunks, and the structs of one take some kilobytes. So their
//! metadata and indexes are kept as the bytes that they are in the file, which are a tenth of that.

use bytes::Bytes;

use super::column::EncodedChunk;
use super::footer::IndexWriter;
use crate::crypt::ChunkEncryptor;
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, RowGroup, SortingColumn};
use crate::memory;
use crate::thrift::{Read, ThriftReader, Write};

/// A row group whose pages are in the file.
#[derive(Debug, Clone)]
pub(super) struct PlacedRowGroup {
    pub(super) rows: u64,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// Bytes of its pages.
    pub(super) bytes: u64,
    /// Its RowGroup, not encrypted. The places of filters and indexes in it count from the first
    /// one of their kind in this row group.
    metadata: Bytes,
}

/// The bloom filters and the page index of a row group, encrypted if they are to be.
pub(super) struct PlacedIndexes {
    pub(super) blooms: Vec<Bytes>,
    pub(super) bloom_bytes: u64,
    pub(super) column_indexes: Bytes,
    pub(super) offset_indexes: Bytes,
}

/// Where the filters and the indexes of a row group begin in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexOffsets {
    pub(super) blooms: u64,
    pub(super) column_indexes: u64,
    pub(super) offset_indexes: u64,
}

impl PlacedRowGroup {
    /// The row group as the footer has it, before anything of it is encrypted, without the places
    /// of its indexes.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory; so for all of this module.
    pub(super) fn metadata(&self) -> Result<RowGroup> {
        let mut row_group = self.decoded()?;
        for chunk in &mut row_group.columns {
            (chunk.offset_index_offset, chunk.offset_index_length) = (None, None);
            (chunk.column_index_offset, chunk.column_index_length) = (None, None);
            if let Some(meta) = &mut chunk.meta_data {
                (meta.bloom_filter_offset, meta.bloom_filter_length) = (None, None);
            }
        }
        Ok(row_group)
    }

    /// The row group as the footer has it, before anything of it is encrypted, with its indexes at
    /// these offsets.
    ///
    /// # Errors
    /// `Usage` if the file becomes too large for the format.
    pub(super) fn metadata_with(&self, offsets: IndexOffsets) -> Result<RowGroup> {
        let mut row_group = self.decoded()?;
        for chunk in &mut row_group.columns {
            let bloom = chunk.meta_data.as_mut().and_then(|meta| meta.bloom_filter_offset.as_mut());
            for (place, start) in [
                (bloom, offsets.blooms),
                (chunk.column_index_offset.as_mut(), offsets.column_indexes),
                (chunk.offset_index_offset.as_mut(), offsets.offset_indexes),
            ] {
                if let Some(place) = place {
                    *place = signed(start)?.checked_add(*place).ok_or_else(too_large)?;
                }
            }
        }
        Ok(row_group)
    }

    fn decoded(&self) -> Result<RowGroup> {
        RowGroup::read(&mut ThriftReader::new(&self.metadata))
    }

    /// Bytes of memory held, about.
    pub(super) fn bytes_held(&self) -> usize {
        size_of::<Self>() + self.metadata.len()
    }
}

impl PlacedIndexes {
    /// Bytes of memory held, about.
    pub(super) fn bytes_held(&self) -> usize {
        held(&self.blooms, self.column_indexes.len() + self.offset_indexes.len())
    }
}

/// The filters and the page index of the chunks that have a place.
#[derive(Default)]
struct OpenIndexes {
    blooms: Vec<Bytes>,
    bloom_bytes: u64,
    column_indexes: Vec<u8>,
    offset_indexes: Vec<u8>,
}

impl OpenIndexes {
    /// Takes those of a chunk whose pages have their place.
    fn take(
        &mut self,
        of: &mut EncodedChunk,
        chunk: &mut ColumnChunk,
        encryptor: Option<&ChunkEncryptor>,
    ) -> Result<()> {
        if let Some(filter) = of.bloom.take() {
            let mut bloom = Vec::new();
            IndexWriter::new(self.bloom_bytes, &mut bloom).bloom(chunk, &filter, encryptor)?;
            self.bloom_bytes += bloom.len() as u64;
            memory::push(&mut self.blooms, memory::frozen(bloom)?)?;
        }
        if let Some(index) = of.column_index.take() {
            let mut to = IndexWriter::new(0, &mut self.column_indexes);
            to.column_index(chunk, &index, encryptor)?;
        }
        let index = std::mem::take(&mut of.offset_index);
        IndexWriter::new(0, &mut self.offset_indexes).offset_index(chunk, &index, encryptor)
    }

    fn end(self) -> Result<PlacedIndexes> {
        let Self { blooms, bloom_bytes, column_indexes, offset_indexes } = self;
        let column_indexes = memory::frozen(column_indexes)?;
        let offset_indexes = memory::frozen(offset_indexes)?;
        Ok(PlacedIndexes { blooms, bloom_bytes, column_indexes, offset_indexes })
    }

    /// Bytes of memory held, about.
    fn bytes_held(&self) -> usize {
        held(&self.blooms, self.column_indexes.capacity() + self.offset_indexes.capacity())
    }
}

/// A row group as far as its chunks have a place in the file.
pub(super) struct OpenRowGroup {
    rows: u64,
    offset: u64,
    /// Number of chunks that have a place.
    chunks: usize,
    /// Their ColumnChunks, one after the other.
    columns: Vec<u8>,
    indexes: OpenIndexes,
    uncompressed: i64,
    compressed: i64,
    /// The first column whose values are in order.
    sorted: Option<SortingColumn>,
}

impl OpenRowGroup {
    /// A row group of `rows` rows, which begins at `offset` of the file.
    pub(super) fn new(rows: usize, offset: u64) -> Self {
        let (rows, chunks, columns) = (rows as u64, 0, Vec::new());
        let (indexes, uncompressed, compressed, sorted) = (OpenIndexes::default(), 0, 0, None);
        Self { rows, offset, chunks, columns, indexes, uncompressed, compressed, sorted }
    }

    /// Number of chunks that have a place.
    pub(super) fn chunks(&self) -> usize {
        self.chunks
    }

    /// Bytes of memory held, about.
    pub(super) fn bytes_held(&self) -> usize {
        self.columns.capacity() + self.indexes.bytes_held()
    }

    /// Notes the next chunk, whose first byte is at `at` of the file, and returns its bytes.
    ///
    /// # Errors
    /// `Usage` if the file becomes too large for the format; `Crypto` if an index cannot be
    /// encrypted.
    pub(super) fn place(
        &mut self,
        of: &mut EncodedChunk,
        at: u64,
        encryptor: Option<&ChunkEncryptor>,
    ) -> Result<Vec<Bytes>> {
        self.uncompressed += of.meta_data.total_uncompressed_size;
        self.compressed += of.meta_data.total_compressed_size;
        if let (None, Some(sorted), Ok(column_idx)) =
            (&self.sorted, of.sorted, i32::try_from(self.chunks))
        {
            let (descending, nulls_first) = (sorted.descending, false);
            self.sorted = Some(SortingColumn {
                column_idx,
                descending,
                nulls_first,
                ..SortingColumn::default()
            });
        }
        let mut chunk = of.place(signed(at)?);
        self.indexes.take(of, &mut chunk, encryptor)?;
        chunk.write(&mut self.columns)?;
        self.chunks += 1;
        Ok(std::mem::take(&mut of.bytes))
    }

    /// The row group with the number `ordinal`, all of whose chunks have a place.
    ///
    /// # Errors
    /// `Usage` if the file becomes too large for the format.
    pub(super) fn end(
        self,
        ordinal: usize,
        sorting: Option<Vec<SortingColumn>>,
    ) -> Result<(PlacedRowGroup, PlacedIndexes)> {
        let row_group = RowGroup {
            total_byte_size: self.uncompressed,
            num_rows: signed(self.rows)?,
            // By one column only, because the order of rows that are equal in it was not checked.
            sorting_columns: sorting.or_else(|| self.sorted.map(|sorted| vec![sorted])),
            file_offset: Some(signed(self.offset)?),
            total_compressed_size: Some(self.compressed),
            ordinal: i16::try_from(ordinal).ok(),
            ..RowGroup::default()
        };
        let mut metadata = memory::vec_for(self.columns.len() + ROW_GROUP_BYTES)?;
        row_group.write_with(self.chunks, &self.columns, &mut metadata)?;
        let bytes = u64::try_from(self.compressed).unwrap_or_default();
        let (rows, offset, metadata) = (self.rows, self.offset, memory::frozen(metadata)?);
        Ok((PlacedRowGroup { rows, offset, bytes, metadata }, self.indexes.end()?))
    }
}

/// Bytes of memory, about, that these filters and a page index of `page_index` bytes take.
fn held(blooms: &[Bytes], page_index: usize) -> usize {
    let blooms: usize = blooms.iter().map(|bloom| size_of::<Bytes>() + bloom.len()).sum();
    size_of::<PlacedIndexes>() + blooms + page_index
}

/// More than a RowGroup takes without its columns, if it states a sort order of few columns.
const ROW_GROUP_BYTES: usize = 96;

fn signed(n: u64) -> Result<i64> {
    i64::try_from(n).map_err(|_| too_large())
}

#[cold]
fn too_large() -> Error {
    Error::usage("a file beyond 2^63 bytes")
}
