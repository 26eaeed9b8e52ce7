//! [`recrypt`] copies a file page by page, from one protection to another.
//!
//! Spec: Encryption.md. The order of the new file is that of [`Writer`](crate::Writer).
//!
//! ```text
//! magic | pages, chunk by chunk | bloom filters | column indexes | offset indexes | footer
//! ```
//!
//! Trap: a checksum covers the stored bytes, and is computed anew where these change. It is
//! verified before that, or a damaged page would get a correct checksum.

use std::ops::Range;

use bytes::Bytes;

use super::page_copier::PageCopier;
use crate::crypt::{ChunkDecryptor, Encryption, FileEncryptor, Module, Signature, opened};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{
    BloomFilterHeader, ColumnChunk, ColumnIndex, ColumnMetaData, FileMetaData, OffsetIndex,
    PageLocation, PageType, RowGroup,
};
use crate::io::{Sink, Source, read_exactly};
use crate::limits::{Budget, Reservation};
use crate::read::{
    ChunkRegions, ChunkWalk, Footer, column_index_range, decode, offset_index_range,
};
use crate::reader::Reader;
use crate::schema::Leaf;
use crate::thrift::{self, Read};
use crate::write::{IndexWriter, ModuleSealer, footer, magic};

/// Describes what [`recrypt`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recrypted {
    /// Number of rows of the file, by its row groups.
    pub rows: u64,
    /// Number of row groups.
    pub row_groups: usize,
    /// Number of pages, dictionary pages included.
    pub pages: u64,
    /// Bytes of the new file.
    pub bytes: u64,
}

/// Copies the file of `reader` to `sink` with another protection: encrypted as `encryption` says,
/// or not encrypted. The reader has the keys of the file, if it is encrypted; its projection, rows
/// and filter are ignored.
///
/// Pages stay compressed as they are; only their encryption, checksums and offsets change. Page
/// indexes and bloom filters are copied, and none are made. The rest of the footer stays: the
/// schema, row groups, statistics, sorting columns, key-values, unknown fields. `created_by` stays
/// too, because readers work around the faults of old writers by it.
///
/// One column chunk at a time is held in memory, and a place for each page, within
/// [`Limits::memory_bytes`](crate::Limits::memory_bytes).
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::Reader;
/// use marquetry::crypt::{Decryption, Encryption, Key};
/// use marquetry::io::WriteSink;
/// use marquetry::rewrite::recrypt;
///
/// let key = Key::new(b"0123456789012345")?;
/// let plain = Reader::open("testdata/trips.parquet")?;
/// let mut encrypted = Vec::new();
/// recrypt(&plain, WriteSink(&mut encrypted), Some(&Encryption::new(key.clone())))?;
///
/// let keys = Decryption::new().with_footer_key(key);
/// let reader = Reader::with_keys(bytes::Bytes::from(encrypted), Default::default(), &keys)?;
/// assert_eq!(reader.rows()?, plain.rows()?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Crypto` if a key is missing, something is not authentic, the signature of a plaintext footer
/// was not verified, or there are too many row groups, columns or pages for encryption; `Malformed`
/// if the file violates the format, as far as it is read, or column chunks share bytes
/// ([`Reader::shared_bytes`] allows it); `Usage` if a key is given for a column that does not
/// exist; `Limit(Memory)`, `Io`.
pub fn recrypt(
    reader: &Reader,
    sink: impl Sink,
    encryption: Option<&Encryption>,
) -> Result<Recrypted> {
    let file = reader.metadata().footer();
    if file.signature() == Signature::Unverified {
        return Err(Error::crypto(
            "the signature of the footer was not verified, and a changed footer would \
             be taken for right: give the key of the footer (marq: --footer-key)",
        ));
    }
    let leaves: Vec<Leaf> =
        (0..file.schema().leaves_len()).map(|i| file.schema().leaf(i)).collect::<Result<_>>()?;
    let encryptor = match encryption {
        Some(of) => Some(FileEncryptor::new(of, &of.protections(&leaves)?)?),
        None => None,
    };
    let budget = Budget::new(reader.read_options().limits.memory_bytes);
    let out = CountingSink { sink, written: 0 };
    let indexes = budget.reservation("the offset indexes of the file");
    let regions = ChunkRegions::default();
    let leaves = &leaves[..];
    let mut copy = Recryptor { reader, leaves, encryptor, budget, out, indexes, pages: 0, regions };
    copy.run().map_err(|e| reader.name(e))
}

/// Where the bytes go, and how many went there.
struct CountingSink<S> {
    sink: S,
    written: u64,
}

impl<S: Sink> CountingSink<S> {
    fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.written += bytes.len() as u64;
        self.sink.write(bytes.into())
    }

    fn here(&self) -> Result<i64> {
        i64::try_from(self.written).map_err(|_| Error::usage("a file beyond 2^63 bytes"))
    }
}

struct Recryptor<'a, S> {
    reader: &'a Reader,
    leaves: &'a [Leaf],
    encryptor: Option<FileEncryptor>,
    budget: Budget,
    out: CountingSink<S>,
    /// The memory of the offset indexes.
    indexes: Reservation,
    pages: u64,
    /// The bytes that were copied.
    regions: ChunkRegions,
}

/// The metadata of a copied chunk, until its indexes are written.
struct CopiedChunk {
    /// Where its bloom filter is in the old file.
    bloom: Option<i64>,
    /// With the places in the new file.
    offset_index: Option<OffsetIndex>,
    /// The growth of its uncompressed size.
    grown: i64,
}

/// A data page in the old file and in the new one.
struct MovedPage {
    from: u64,
    to: i64,
    len: usize,
}

impl<S: Sink> Recryptor<'_, S> {
    fn footer(&self) -> &Footer {
        self.reader.metadata().footer()
    }

    fn run(&mut self) -> Result<Recrypted> {
        let mut metadata = self.footer().index().to_file_meta_data()?;
        let rows = self.footer().rows()?;
        self.out.send(magic(self.encryptor.as_ref()).to_vec())?;
        let mut copied = Vec::with_capacity(metadata.row_groups.len());
        for (i, row_group) in metadata.row_groups.iter_mut().enumerate() {
            copied.push(self.row_group(i, row_group).map_err(|e| e.at_row_group(i))?);
        }
        self.write_indexes(&mut metadata, &copied)?;
        let mut end = Vec::new();
        footer(&mut metadata, self.leaves, self.encryptor.as_ref(), &mut end)?;
        self.out.send(end)?;
        self.out.sink.finish()?;
        let row_groups = metadata.row_groups.len();
        Ok(Recrypted { rows, row_groups, pages: self.pages, bytes: self.out.written })
    }

    /// Copies the pages of a row group, and updates their places in its metadata.
    fn row_group(&mut self, ordinal: usize, row_group: &mut RowGroup) -> Result<Vec<CopiedChunk>> {
        if row_group.columns.len() != self.leaves.len() {
            let (expected, found) = (self.leaves.len(), row_group.columns.len());
            return Err(Error::mismatch(Spec::Metadata("RowGroup"), "columns", expected, found));
        }
        let start = self.out.here()?;
        let mut grown = 0i64;
        let mut copied = Vec::with_capacity(self.leaves.len());
        for (leaf, chunk) in self.leaves.iter().zip(&mut row_group.columns) {
            let place = |e: Error| e.at_column(leaf.path.dotted());
            let (new, done) = self.chunk(ordinal, leaf).map_err(place)?;
            grown = grown.saturating_add(done.grown);
            *chunk = new;
            copied.push(done);
        }
        row_group.total_byte_size = row_group.total_byte_size.saturating_add(grown).max(0);
        row_group.total_compressed_size = Some(self.out.here()? - start);
        row_group.file_offset = Some(start);
        row_group.ordinal = i16::try_from(ordinal).ok();
        Ok(copied)
    }

    /// Copies the pages of a chunk. Returns its metadata with their new places, not encrypted.
    fn chunk(&mut self, row_group: usize, leaf: &Leaf) -> Result<(ColumnChunk, CopiedChunk)> {
        let limits = &self.reader.read_options().limits;
        let file_len = self.reader.file_len();
        let walk = ChunkWalk::new(self.footer(), file_len, row_group, leaf.index, limits)?;
        if !self.reader.read_options().shared_bytes {
            self.regions.add(&walk.range)?;
        }
        // After the key was found, so that the metadata are those that it decrypts.
        let old = self.footer().column_chunk(row_group, leaf.index)?;
        let offset_index = self.offset_index(row_group, leaf.index, walk.decryptor())?;
        let encryptor = self.encryptor.as_ref().map(|file| file.chunk(row_group, leaf.index));
        let start = self.out.here()?;
        let mut pages = PageCopier {
            decryptor: walk.decryptor().cloned(),
            encryptor: encryptor.transpose()?.flatten(),
            sealer: ModuleSealer::default(),
            plain: Vec::new(),
            header_bytes_added: 0,
        };
        let memory = self.reserve("a column chunk", &walk.range)?;
        let bytes = read(self.reader, walk.range.clone())?;
        let mut moved = Vec::new();
        let mut places = self.budget.reservation("the places of pages");
        let (mut first_data, mut dictionary) = (None, None);
        for page in walk.pages(bytes, memory) {
            let page = page?;
            let to = self.out.here()?;
            let place = |e: Error| e.at_offset(page.offset).at_page(moved.len());
            let is_dictionary = page.header.r#type == PageType::DictionaryPage;
            if !page.is_data() && !is_dictionary {
                // It carries no values, and there is no module for it.
                continue;
            }
            // In plain text, encrypted, and with its header.
            let _copies = self.budget.take_for("a page", page.bytes.len().saturating_mul(3))?;
            let new = pages.copy(&page, moved.len()).map_err(place)?;
            self.pages += 1;
            if is_dictionary {
                dictionary = Some(to);
            } else {
                first_data.get_or_insert(to);
                places.grow(size_of::<MovedPage>())?;
                moved.push(MovedPage { from: page.offset, to, len: new.len() });
            }
            self.out.send(new)?;
        }
        let end = self.out.here()?;
        let grown = pages.header_bytes_added;
        let bloom = old.meta_data.as_ref().and_then(|meta| meta.bloom_filter_offset);
        let new = relocated_chunk(old, start..end, first_data, dictionary, grown)?;
        let offset_index = offset_index.map(|index| relocated(index, &moved)).transpose()?;
        Ok((new, CopiedChunk { bloom, offset_index, grown }))
    }

    fn reserve(&self, purpose: &'static str, range: &Range<u64>) -> Result<Reservation> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.budget.take_for(purpose, len)
    }

    /// The offset index of a chunk, whose memory stays reserved.
    fn offset_index(
        &mut self,
        row_group: usize,
        leaf: usize,
        decryptor: Option<&ChunkDecryptor>,
    ) -> Result<Option<OffsetIndex>> {
        let places = self.footer().index().index_places(row_group, [leaf])?;
        let places = places.first().copied().unwrap_or_default();
        let Some(range) = offset_index_range(&places, self.reader.file_len())? else {
            return Ok(None);
        };
        let _stored = self.reserve("an offset index", &range)?;
        let stored = read(self.reader, range)?;
        let plain = opened(decryptor, Module::OffsetIndex, &stored)?;
        // A location takes 4 bytes at least.
        self.indexes.grow((plain.len() / 4).saturating_mul(size_of::<PageLocation>()))?;
        decode(Some(&plain))
    }

    /// Writes bloom filters, column indexes and offset indexes, one by one.
    fn write_indexes(
        &mut self,
        metadata: &mut FileMetaData,
        copied: &[Vec<CopiedChunk>],
    ) -> Result<()> {
        for kind in [IndexKind::Bloom, IndexKind::Column, IndexKind::Offset] {
            for (i, row_group) in metadata.row_groups.iter_mut().enumerate() {
                let chunks = row_group.columns.iter_mut().zip(copied.get(i).into_iter().flatten());
                for ((chunk, of), leaf) in chunks.zip(self.leaves) {
                    let place = |e: Error| e.at_row_group(i).at_column(leaf.path.dotted());
                    self.write_index(kind, chunk, of, (i, leaf.index)).map_err(place)?;
                }
            }
        }
        Ok(())
    }

    fn write_index(
        &mut self,
        kind: IndexKind,
        chunk: &mut ColumnChunk,
        of: &CopiedChunk,
        (row_group, leaf): (usize, usize),
    ) -> Result<()> {
        let encryptor = self.encryptor.as_ref().map(|file| file.chunk(row_group, leaf));
        let encryptor = encryptor.transpose()?.flatten();
        let encryptor = encryptor.as_ref();
        let mut out = Vec::new();
        let mut to = IndexWriter { offset: self.out.written, plain: Vec::new(), out: &mut out };
        match kind {
            IndexKind::Bloom => {
                if let Some(offset) = of.bloom {
                    let decryptor = self.decryptor(row_group, leaf)?;
                    let (filter, _memory) = self.bloom(offset, decryptor.as_ref())?;
                    to.bloom(chunk, &filter, encryptor)?;
                }
            }
            IndexKind::Column => {
                let places = self.footer().index().index_places(row_group, [leaf])?;
                let places = places.first().copied().unwrap_or_default();
                if let Some(range) = column_index_range(&places, self.reader.file_len())? {
                    let decryptor = self.decryptor(row_group, leaf)?;
                    // As it is stored, decoded, and encoded again.
                    let mut memory = self.reserve("a column index", &range)?;
                    memory.grow(usize::try_from(2 * memory.bytes()).unwrap_or(usize::MAX))?;
                    let stored = read(self.reader, range)?;
                    let plain = opened(decryptor.as_ref(), Module::ColumnIndex, &stored)?;
                    let index = ColumnIndex::read(&mut thrift::ThriftReader::new(&plain))?;
                    to.column_index(chunk, &index, encryptor)?;
                }
            }
            IndexKind::Offset => {
                if let Some(index) = &of.offset_index {
                    to.offset_index(chunk, index, encryptor)?;
                }
            }
        }
        match out.is_empty() {
            true => Ok(()),
            false => self.out.send(out),
        }
    }

    fn decryptor(&self, row_group: usize, leaf: usize) -> Result<Option<ChunkDecryptor>> {
        let chunk = self.footer().column_chunk_ref(row_group, leaf)?;
        self.footer().chunk_decryptor(row_group, leaf, &chunk)
    }

    /// The bloom filter of a chunk in plain text, with its header, and its memory.
    fn bloom(
        &self,
        offset: i64,
        decryptor: Option<&ChunkDecryptor>,
    ) -> Result<(Vec<u8>, Reservation)> {
        let end = self.reader.file_len().saturating_sub(TAIL_LEN);
        let start = u64::try_from(offset).ok().filter(|start| *start < end);
        let outside = |what: &str, found: &dyn std::fmt::Display| {
            let expected = format_args!("within the first {end} bytes of the file");
            Error::mismatch(Spec::BloomFilter, what, expected, found)
        };
        let start = start.ok_or_else(|| outside("bloom_filter_offset", &offset))?;
        let head = read(self.reader, start..end.min(start.saturating_add(MAX_BLOOM_HEADER)))?;
        let head_len = match decryptor {
            Some(_) => ChunkDecryptor::module_len(&head)?,
            None => head.len(),
        };
        let head = head.get(..head_len).unwrap_or_default();
        let mut filter = opened(decryptor, Module::BloomFilterHeader, head)?.into_owned();
        let mut reader = thrift::ThriftReader::new(&filter);
        let header = BloomFilterHeader::read(&mut reader)?;
        let header_len = reader.position();
        let bits = usize::try_from(header.num_bytes).map_err(|_| {
            let found = header.num_bytes;
            Error::mismatch(Spec::BloomFilter, "num_bytes", "not negative", found)
        })?;
        let (from, stored) = match decryptor {
            Some(_) => (head_len, ChunkDecryptor::stored_len(bits)),
            None => (header_len, bits),
        };
        let from = start + from as u64;
        let range = from..from.saturating_add(stored as u64);
        if range.end > end {
            return Err(outside("end of the bloom filter", &range.end));
        }
        let memory = self.budget.take_for("a bloom filter", bits.saturating_mul(3))?;
        let stored = read(self.reader, range)?;
        filter.truncate(header_len);
        filter.extend_from_slice(&opened(decryptor, Module::BloomFilterBitset, &stored)?);
        Ok((filter, memory))
    }
}

#[derive(Debug, Clone, Copy)]
enum IndexKind {
    Bloom,
    Column,
    Offset,
}

/// Bytes of the length of the footer and the magic number.
const TAIL_LEN: u64 = 8;

/// More bytes than the header of a bloom filter takes, encrypted or not.
const MAX_BLOOM_HEADER: u64 = 256;

fn read(reader: &Reader, range: Range<u64>) -> Result<Bytes> {
    let source: &dyn Source = &**reader.source();
    read_exactly(source, range)
}

/// The metadata of a column chunk whose pages lie in `place` now, their headers `grown` bytes
/// longer; in plain text, and without its indexes and bloom filter, which are placed later.
///
/// # Errors
/// `Malformed` if it has no `meta_data`, or its size is less than that of its page headers.
fn relocated_chunk(
    old: ColumnChunk,
    place: Range<i64>,
    first_data_page: Option<i64>,
    dictionary_page: Option<i64>,
    grown: i64,
) -> Result<ColumnChunk> {
    let meta = old
        .meta_data
        .ok_or_else(|| Error::malformed(Spec::Metadata("ColumnChunk"), "meta_data is missing"))?;
    let uncompressed = meta.total_uncompressed_size.checked_add(grown);
    let meta = ColumnMetaData {
        total_compressed_size: place.end - place.start,
        total_uncompressed_size: uncompressed.filter(|size| *size >= 0).ok_or_else(|| {
            let spec = Spec::Metadata("ColumnMetaData");
            let expected = "at least the bytes of the page headers";
            let found = meta.total_uncompressed_size;
            Error::mismatch(spec, "total_uncompressed_size", expected, found)
        })?,
        data_page_offset: first_data_page.unwrap_or(place.start),
        dictionary_page_offset: dictionary_page,
        index_page_offset: None,
        bloom_filter_offset: None,
        bloom_filter_length: None,
        ..meta
    };
    Ok(ColumnChunk {
        file_offset: 0,
        meta_data: Some(meta),
        offset_index_offset: None,
        offset_index_length: None,
        column_index_offset: None,
        column_index_length: None,
        crypto_metadata: None,
        encrypted_column_metadata: None,
        ..old
    })
}

/// An offset index with the new places of its pages.
fn relocated(mut index: OffsetIndex, moved: &[MovedPage]) -> Result<OffsetIndex> {
    let (expected, found) = (moved.len(), index.page_locations.len());
    if expected != found {
        return Err(Error::mismatch(Spec::PageIndex, "pages of the offset index", expected, found));
    }
    for (location, page) in index.page_locations.iter_mut().zip(moved) {
        if u64::try_from(location.offset) != Ok(page.from) {
            let (from, found) = (page.from, location.offset);
            return Err(Error::mismatch(Spec::PageIndex, "offset of a page", from, found));
        }
        location.offset = page.to;
        location.compressed_page_size = i32::try_from(page.len)
            .map_err(|_| Error::limit(LimitKind::Page, "a page takes more than 2 GiB"))?;
    }
    Ok(index)
}
