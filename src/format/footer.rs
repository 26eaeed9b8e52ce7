//! [`FooterIndex`]: the footer, whose column chunks and schema elements are decoded on demand.
//!
//! Spec: `parquet.thrift`, FileMetaData. Built by `read::footer`; `read::plan` decodes the chunks
//! of the leaves that it wants. A wide footer is nearly all column chunks, and a read wants few of
//! them. One pass decodes the small fields and skips every chunk, keeping 4 bytes for each, so the
//! time to open a file depends on the bytes that are skipped, not on the values in them. The pass
//! reads every element of the schema, and keeps its place (`ElementHeads`). Trap: a chunk that is
//! skipped without an error may still be malformed; that is noticed only when it is decoded.

use bytes::Bytes;

use super::borrowed::ColumnChunkRef;
use super::column::ColumnChunk;
use super::crypto::EncryptionAlgorithm;
use super::elements::{ElementHeads, SchemaElements};
use super::file::{FileMetaData, SortingColumn};
use super::key_value::KeyValue;
use super::orders::ColumnOrders;
use crate::error::{Error, LimitKind, Result};
use crate::memory;
use crate::thrift::derive::thrift;
use crate::thrift::{Read, SimilarStructSkipper, ThriftReader, wire};

/// A footer whose schema elements and column chunks are decoded on demand.
///
/// A clone shares the bytes, and copies everything else.
#[derive(Debug, Clone)]
pub struct FooterIndex {
    bytes: Bytes,
    byte_len: usize,
    head: FileHead,
}

impl FooterIndex {
    /// Reads `bytes`, which begin with a FileMetaData that is not encrypted. What follows it, such
    /// as a signature, is ignored.
    ///
    /// # Errors
    /// `Malformed(Metadata)` if the bytes are no FileMetaData; `Limit(Footer)` beyond 4 GiB. See
    /// also `thrift`.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self> {
        let mut reader = ThriftReader::new(&bytes);
        let head = FileHead::read(&mut reader)?;
        let byte_len = reader.position();
        Ok(Self { bytes, byte_len, head })
    }

    /// Everything but the column chunks and the schema.
    pub fn head(&self) -> &FileHead {
        &self.head
    }

    /// Takes the places of the schema elements out, to make a tree of them, so that those of a wide
    /// schema are not held twice. The bytes are shared.
    pub(crate) fn take_schema(&mut self) -> SchemaElements {
        SchemaElements::new(self.bytes.clone(), std::mem::take(&mut self.head.schema))
    }

    /// Bytes of memory that it holds, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        let head = &self.head;
        let groups = head
            .row_groups
            .iter()
            .map(|group| size_of::<RowGroupHead>() + size_of_val(&*group.columns.starts));
        let pairs = head.key_value_metadata.iter().flatten().map(|pair| {
            size_of::<KeyValue>() + pair.key.len() + pair.value.as_ref().map_or(0, String::len)
        });
        let orders = head.column_orders.as_ref().map_or(0, ColumnOrders::heap_bytes);
        let writer = head.created_by.as_ref().map_or(0, String::len);
        self.bytes.len() + groups.sum::<usize>() + pairs.sum::<usize>() + orders + writer
    }

    /// Length of the FileMetaData in bytes. A signature begins after it.
    pub fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// The bytes that it was read from.
    #[cfg_attr(not(feature = "inspect"), allow(dead_code))]
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Decodes one column chunk.
    ///
    /// # Errors
    /// `Malformed(Metadata)` if it breaks a rule; `Usage` if there is no such row group or column.
    pub(crate) fn column_chunk(&self, row_group: usize, column: usize) -> Result<ColumnChunk> {
        ColumnChunk::read(&mut ThriftReader::new(self.chunk(row_group, column)?))
    }

    /// Decodes one column chunk without copying: nothing is allocated.
    ///
    /// # Errors
    /// As [`FooterIndex::column_chunk`].
    pub(crate) fn column_chunk_ref(
        &self,
        row_group: usize,
        column: usize,
    ) -> Result<ColumnChunkRef<'_>> {
        ColumnChunkRef::read(&mut ThriftReader::new(self.chunk(row_group, column)?))
    }

    /// Decodes the column chunks of a row group one after the other, without copying, in one walk.
    ///
    /// # Errors
    /// `Usage` if there is no such row group. A chunk that breaks a rule is an error in its place.
    pub(crate) fn column_chunks(&self, row_group: usize) -> Result<ColumnChunks<'_>> {
        let Some(group) = self.head.row_groups.get(row_group) else {
            return Err(no_chunk(row_group, 0));
        };
        let mut chunks = ColumnChunks {
            reader: ThriftReader::new(&[]),
            bytes: &self.bytes,
            starts: &group.columns.starts,
        };
        chunks.go_to_next();
        Ok(chunks)
    }

    /// Where the page indexes of these columns are. All other fields are skipped.
    ///
    /// # Errors
    /// As [`FooterIndex::column_chunk`].
    pub(crate) fn index_places(
        &self,
        row_group: usize,
        columns: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<IndexPlaces>> {
        let mut alike = SimilarStructSkipper::default();
        let columns = columns.into_iter();
        memory::try_collected(columns.map(|column| {
            let mut reader = ThriftReader::new(self.chunk(row_group, column)?);
            IndexPlaces::read(&mut reader, &mut alike)
        }))
    }

    /// The bytes from a column chunk on.
    fn chunk(&self, row_group: usize, column: usize) -> Result<&[u8]> {
        let chunk = self.head.row_groups.get(row_group).and_then(|group| {
            // `parse` has skipped the chunk, so its bytes are there.
            let start = usize::try_from(*group.columns.starts.get(column)?).ok()?;
            self.bytes.get(start..)
        });
        chunk.ok_or_else(|| no_chunk(row_group, column))
    }

    /// Decodes the whole footer.
    ///
    /// # Errors
    /// `Malformed(Metadata)` if a column chunk breaks a rule.
    pub fn to_file_meta_data(&self) -> Result<FileMetaData> {
        FileMetaData::read(&mut ThriftReader::new(&self.bytes))
    }
}

/// The column chunks of a row group, decoded one after the other. None is kept, because decoding it
/// again costs no more than fetching it from memory.
#[derive(Debug)]
pub struct ColumnChunks<'a> {
    reader: ThriftReader<'a>,
    bytes: &'a [u8],
    /// Where those begin that are left.
    starts: &'a [u32],
}

impl ColumnChunks<'_> {
    /// Lets the reader begin where the next chunk does: where one that is broken ends, it cannot
    /// tell.
    #[cold]
    fn go_to_next(&mut self) {
        let start = self.starts.first().and_then(|start| usize::try_from(*start).ok());
        let bytes = start.and_then(|start| self.bytes.get(start..));
        self.reader = ThriftReader::new(bytes.unwrap_or_default());
    }
}

impl<'a> Iterator for ColumnChunks<'a> {
    type Item = Result<ColumnChunkRef<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.starts = self.starts.split_first()?.1;
        let chunk = ColumnChunkRef::read(&mut self.reader);
        if chunk.is_err() {
            self.go_to_next();
        }
        Some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.starts.len(), Some(self.starts.len()))
    }
}

/// Where the page index of a column chunk is: the fields of the same names in [`ColumnChunk`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IndexPlaces {
    /// Where the offset index begins.
    pub offset_index_offset: Option<i64>,
    /// Bytes of the offset index.
    pub offset_index_length: Option<i32>,
    /// Where the column index begins.
    pub column_index_offset: Option<i64>,
    /// Bytes of the column index.
    pub column_index_length: Option<i32>,
    /// Whether the column is encrypted, and its indexes with it.
    pub encrypted: bool,
}

impl From<&ColumnChunkRef<'_>> for IndexPlaces {
    fn from(chunk: &ColumnChunkRef<'_>) -> Self {
        Self {
            offset_index_offset: chunk.offset_index_offset,
            offset_index_length: chunk.offset_index_length,
            column_index_offset: chunk.column_index_offset,
            column_index_length: chunk.column_index_length,
            encrypted: chunk.is_encrypted(),
        }
    }
}

impl IndexPlaces {
    /// Reads them from a column chunk. Metadata that are like those that were skipped before are
    /// skipped faster.
    fn read<'a>(
        reader: &mut ThriftReader<'a>,
        alike: &mut SimilarStructSkipper<'a>,
    ) -> Result<Self> {
        let (mut places, mut id) = (Self::default(), 0);
        while let Some(field) = reader.field(id)? {
            id = field.id;
            match (field.id, field.ty) {
                (3, wire::STRUCT) => reader.skip_alike(alike)?,
                (4, wire::I64) => places.offset_index_offset = Some(reader.i64()?),
                (5, wire::I32) => places.offset_index_length = Some(reader.i32()?),
                (6, wire::I64) => places.column_index_offset = Some(reader.i64()?),
                (7, wire::I32) => places.column_index_length = Some(reader.i32()?),
                (8, wire::STRUCT) => {
                    places.encrypted = true;
                    reader.skip(field.ty)?;
                }
                (_, ty) => reader.skip(ty)?,
            }
        }
        Ok(places)
    }
}

#[cold]
fn no_chunk(row_group: usize, column: usize) -> Error {
    Error::usage(format_args!("there is no column chunk {column} in row group {row_group}"))
}

thrift! {
    /// [`FileMetaData`] with places for schema elements and column chunks. The fields are those of
    /// the same names there.
    pub view struct FileHead of "FileMetaData" {
        /// 1 or 2, which mean the same.
        1 required version: i32,
        /// Where the elements of the schema are. The `Schema` of a file takes them: there are none
        /// then.
        2 required schema: ElementHeads,
        /// Rows in all row groups, if the writer was right.
        3 required num_rows: i64,
        /// The row groups, in the order of their rows.
        4 required row_groups: Vec<RowGroupHead>,
        /// Anything that the writer wished to add; keys may occur twice.
        5 optional key_value_metadata: Vec<KeyValue>,
        /// The writer.
        6 optional created_by: String as text,
        /// The order of the bounds in statistics, one for each leaf.
        7 optional column_orders: ColumnOrders,
        /// How columns are encrypted, where the footer is not.
        8 optional encryption_algorithm: EncryptionAlgorithm,
        /// Which key signed the footer, where it is not encrypted.
        9 optional footer_signing_key_metadata: Vec<u8>,
    }
}

thrift! {
    /// [`RowGroup`](super::RowGroup) with places for column chunks. The fields are those of the
    /// same names there.
    pub view struct RowGroupHead of "RowGroup" {
        /// Where the column chunks are.
        1 required columns: ChunkStarts,
        /// Bytes of all column chunks, uncompressed.
        2 required total_byte_size: i64,
        /// Rows in every column chunk.
        3 required num_rows: i64,
        /// How the rows are sorted, by claim of the writer.
        4 optional sorting_columns: Vec<SortingColumn>,
        /// Where the first page begins; never relied on.
        5 optional file_offset: i64,
        /// Bytes of all column chunks, as stored.
        6 optional total_compressed_size: i64,
        /// Position among the row groups.
        7 optional ordinal: i16,
    }
}

/// Where the column chunks of a row group begin in the footer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkStarts {
    starts: Box<[u32]>,
}

impl ChunkStarts {
    /// Number of column chunks.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the row group has no column chunk.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

impl Read<'_> for ChunkStarts {
    const TYPE: u8 = wire::LIST;

    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        Vec::<ColumnChunk>::fits(ty, payload)
    }

    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        let (_, n) = reader.list()?;
        // A chunk takes at least 4 bytes, which bounds their number.
        let mut starts = Vec::with_capacity(n.min(reader.rest().len() / 4));
        let mut alike = SimilarStructSkipper::default();
        for _ in 0..n {
            starts.push(u32::try_from(reader.position()).map_err(|_| too_large())?);
            reader.skip_alike(&mut alike)?;
        }
        Ok(Self { starts: starts.into_boxed_slice() })
    }
}

#[cold]
fn too_large() -> Error {
    Error::limit(LimitKind::Footer, "a footer of more than 4 GiB")
}
