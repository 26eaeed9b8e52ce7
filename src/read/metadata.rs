//! [`Metadata`]: all that is known of a file before its pages are read, kept for later reads.
//!
//! The drivers make it when a file is opened; spec: `parquet.thrift`, PageIndex.md. It suits a
//! cache of metadata: it is cheap to clone, it says how much memory it holds, and it can be
//! serialised and read back.
//!
//! ```text
//! MQMETA1 0        8 bytes
//! file length      u64
//! flags, version   u8, bytes
//! footer           bytes
//! regions          number, then start and bytes of each
//! CRC-32           of all before it
//!
//! Numbers are u64, and bytes have a u64 length before them.
//! ```
//!
//! Trap: bytes that are read back are as untrusted as a file; the checksum only protects against
//! accidents.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use arrow_schema::DataType;
use bytes::Bytes;

use super::footer::{Footer, SealedFooter};
use crate::bytes::Cursor;
use crate::crypt::{Decryption, Module};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{
    ColumnChunkRef, ColumnIndex, ColumnIndexRef, IndexPlaces, OffsetIndex, OffsetIndexRef,
};
use crate::limits::Limits;
use crate::predicate::{ColumnFacts, ColumnStatistics, PageFacts, StatisticsRow};
use crate::range_cache::RangeCache;
use crate::schema::{ArrowOptions, Leaf, Projection, to_arrow};
use crate::thrift::{self, Read};

/// The metadata of a file: its footer, its length, and the page indexes that were loaded. Cheap to
/// clone.
///
/// A file is opened with it without reading the footer again. It dereferences to its [`Footer`].
///
/// Trap: the metadata of an encrypted file hold the keys that it was opened with, and what they
/// decrypted, and give access to all of it. A cache that serves several users must keep the
/// metadata of each user apart, or keep [`Metadata::to_bytes`], which holds no key and nothing
/// decrypted.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
///
/// let metadata = Reader::open("testdata/trips.parquet")?.metadata().clone();
/// assert_eq!((metadata.rows()?, metadata.row_groups()), (1_000, 4));
/// // Without reading the footer again.
/// let reader = Reader::open_with("testdata/trips.parquet", metadata)?;
/// # let _ = reader;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Metadata {
    footer: Footer,
    file_len: u64,
    version: Option<Arc<str>>,
    indexes: Arc<RangeCache>,
}

/// The page index of a column chunk, borrowed: each half is `None` if the file does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct PageIndexRef<'a> {
    /// Where the data pages are.
    pub offset_index: Option<OffsetIndexRef<'a>>,
    /// The bounds of the data pages.
    pub column_index: Option<ColumnIndexRef<'a>>,
}

/// The page index of a column chunk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PageIndex {
    /// Where the data pages are.
    pub offset_index: Option<OffsetIndex>,
    /// The bounds of the data pages.
    pub column_index: Option<ColumnIndex>,
}

impl Metadata {
    /// The metadata of a file of `file_len` bytes, without page indexes.
    pub fn new(footer: Footer, file_len: u64) -> Self {
        Self { footer, file_len, version: None, indexes: Arc::default() }
    }

    /// Sets what distinguishes this version of the file from others: an ETag, or whatever the cache
    /// uses. It is kept, and not interpreted.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The version that was given.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Bytes of memory that the metadata hold; clones share them.
    pub fn heap_bytes(&self) -> usize {
        let version = self.version.as_ref().map_or(0, |version| version.len());
        self.footer.heap_bytes() + self.indexes.heap_bytes() + version
    }

    /// Bytes of page indexes that are loaded.
    pub fn index_bytes(&self) -> usize {
        self.indexes.byte_len()
    }

    /// The page index of a column chunk, if it was loaded. Nothing is copied.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, or its index was not loaded; `Malformed` if an index lies
    /// outside the file or violates the format.
    pub fn page_index(&self, row_group: usize, leaf: usize) -> Result<PageIndexRef<'_>> {
        let (offset_index, column_index) =
            self.index_at(row_group, leaf).map_err(|e| e.at_row_group(row_group))?;
        Ok(PageIndexRef { offset_index, column_index })
    }

    /// Like [`Metadata::page_index`], for a column chunk that is decoded already: for callers that
    /// visit all of them.
    ///
    /// # Errors
    /// As [`Metadata::page_index`]; `Usage` if the chunk is encrypted, because its position is
    /// needed to decrypt it.
    pub fn page_index_of(&self, chunk: &ColumnChunkRef<'_>) -> Result<PageIndexRef<'_>> {
        let places = IndexPlaces::from(chunk);
        if places.encrypted {
            return Err(Error::usage(
                "the page index of an encrypted chunk is found by its numbers: Metadata::page_index",
            ));
        }
        let (offsets, columns) = self.index_bytes_at(&places)?;
        Ok(PageIndexRef { offset_index: decode(offsets)?, column_index: decode(columns)? })
    }

    /// The statistics of a column, by the index of its leaf: one row for each row group. `options`
    /// decide the Arrow type of the bounds; a target schema in them is ignored.
    ///
    /// # Errors
    /// `Usage` if there is no such column, `Unsupported` if it has no Arrow type, `Malformed` if
    /// the metadata contradict themselves.
    pub fn column_statistics(
        &self,
        leaf: usize,
        options: &ArrowOptions,
    ) -> Result<ColumnStatistics> {
        let described = self.footer.schema().leaf(leaf)?;
        let groups = 0..self.footer.row_groups();
        let rows = groups.map(|group| self.chunk_statistics(group, &described));
        self.statistics_of(&described, options, &rows.collect::<Result<Vec<_>>>()?)
    }

    /// The statistics of the pages of a column, by the index of its leaf: one row for each data
    /// page of the page index, which must be loaded. A column chunk without page index, or with one
    /// that contradicts itself, counts as one page.
    ///
    /// # Errors
    /// As [`Metadata::column_statistics`]; `Usage` if a page index was not loaded.
    pub fn page_statistics(&self, leaf: usize, options: &ArrowOptions) -> Result<ColumnStatistics> {
        let described = self.footer.schema().leaf(leaf)?;
        let order = self.footer.column_order(leaf);
        let mut rows = Vec::new();
        for row_group in 0..self.footer.row_groups() {
            let chunk = self.chunk_statistics(row_group, &described)?;
            let index: (Option<OffsetIndex>, Option<ColumnIndex>) =
                self.index_at(row_group, leaf).map_err(|e| e.at_row_group(row_group))?;
            // A contradiction is no error here: the index is ignored.
            let pages = match index {
                (Some(offsets), Some(columns)) => {
                    let count = chunk.facts.rows;
                    PageFacts::of_indexes(&described, order, &offsets, &columns, count)
                        .and_then(|pages| {
                            pages.check_against(&described, &chunk.facts).map(|()| pages)
                        })
                        .ok()
                }
                _ => None,
            };
            match pages {
                None => rows.push(chunk),
                Some(pages) => rows.extend(pages.pages.into_iter().map(|facts| StatisticsRow {
                    row_group,
                    facts,
                    exact: (None, None),
                })),
            }
        }
        self.statistics_of(&described, options, &rows)
    }

    /// The statistics of a column chunk in the footer.
    fn chunk_statistics(&self, row_group: usize, leaf: &Leaf) -> Result<StatisticsRow> {
        let count = self.footer.row_group_rows(row_group)?;
        let meta = self.footer.column_chunk(row_group, leaf.index)?.meta_data;
        let order = self.footer.column_order(leaf.index);
        let facts = match &meta {
            Some(meta) => ColumnFacts::of_chunk(leaf, order, meta, count),
            None => ColumnFacts::unknown(count),
        };
        let statistics = meta.as_ref().and_then(|meta| meta.statistics.as_ref());
        let exact = statistics.map_or((None, None), |statistics| {
            (statistics.is_min_value_exact, statistics.is_max_value_exact)
        });
        Ok(StatisticsRow { row_group, facts, exact })
    }

    fn statistics_of(
        &self,
        leaf: &Leaf,
        options: &ArrowOptions,
        rows: &[StatisticsRow],
    ) -> Result<ColumnStatistics> {
        let data_type = self.leaf_type(leaf, options)?;
        ColumnStatistics::new(leaf, &data_type, self.footer.column_order(leaf.index), rows)
    }

    /// The Arrow type that a leaf is read as; a target schema in the options is ignored.
    ///
    /// # Errors
    /// `Unsupported` if it has none.
    pub(super) fn leaf_type(&self, leaf: &Leaf, options: &ArrowOptions) -> Result<DataType> {
        let options = ArrowOptions { target: None, ..options.clone() };
        let (schema, projection) = (self.footer.schema(), Projection::leaves([leaf.index]));
        let mapping = to_arrow(schema, self.footer.key_values(), &projection, &options)?;
        let mut data_type = DataType::Null;
        for shape in &mapping.shapes {
            shape.for_each_leaf(&mut |index, shape| {
                if index == leaf.index {
                    data_type = shape.field.data_type().clone();
                }
            });
        }
        Ok(data_type)
    }

    /// Decodes the indexes of a chunk, decrypted if they are encrypted.
    fn index_at<'a, O: Read<'a>, C: Read<'a>>(
        &'a self,
        row_group: usize,
        leaf: usize,
    ) -> Result<(Option<O>, Option<C>)> {
        let places = self.footer.index().index_places(row_group, [leaf])?;
        let places = places.first().copied().unwrap_or_default();
        let (offsets, columns) = self.index_bytes_at(&places)?;
        let plain = |kind, stored: Option<&'a [u8]>| match stored {
            Some(module) if places.encrypted => {
                self.footer.decrypted_index(row_group, leaf, kind, module).map(Some)
            }
            stored => Ok(stored),
        };
        let offsets = plain(Module::OffsetIndex, offsets)?;
        let columns = plain(Module::ColumnIndex, columns)?;
        Ok((decode(offsets)?, decode(columns)?))
    }

    /// The bytes of the offset index and of the column index, as they are in the file.
    fn index_bytes_at(&self, places: &IndexPlaces) -> Result<StoredIndexes<'_>> {
        let bytes = |range: Option<Range<u64>>| match range {
            None => Ok(None),
            Some(range) => match self.indexes.get_slice(&range) {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(not_loaded()),
            },
        };
        let offsets = bytes(offset_index_range(places, self.file_len)?)?;
        let columns = bytes(column_index_range(places, self.file_len)?)?;
        Ok((offsets, columns))
    }

    /// Where the page indexes of these leaves lie that are not loaded yet: ranges in file order,
    /// each more than `gap` bytes from the next.
    ///
    /// Indexes that would lie outside the file are left out.
    ///
    /// # Errors
    /// `Usage` if the file has no such row group or leaf, `Malformed` if a column chunk is broken,
    /// `Limit(Memory)` if they are too long.
    pub(crate) fn index_needs(
        &self,
        row_groups: impl IntoIterator<Item = usize>,
        leaves: impl IntoIterator<Item = usize> + Clone,
        gap: u64,
        limits: &Limits,
    ) -> Result<Vec<Range<u64>>> {
        let mut needs: Vec<Range<u64>> = Vec::new();
        for row_group in row_groups {
            let places = self.footer.index().index_places(row_group, leaves.clone())?;
            let wanted = |range: &Range<u64>| self.indexes.get_slice(range).is_none();
            // One kind after the other: so they lie in the file, side by side.
            let offsets = places.iter().map(|places| offset_index_range(places, self.file_len));
            let columns = places.iter().map(|places| column_index_range(places, self.file_len));
            let found = offsets.chain(columns).filter_map(|range| range.ok().flatten());
            found.filter(wanted).for_each(|range| join(&mut needs, range, 0));
        }
        needs.sort_by_key(|range| range.start);
        let all = std::mem::take(&mut needs);
        all.into_iter().for_each(|range| join(&mut needs, range, gap));
        let bytes = needs.iter().fold(0u64, |sum, need| sum.saturating_add(need.end - need.start));
        if bytes > limits.memory_bytes {
            return Err(Error::limit(
                LimitKind::Memory,
                format_args!(
                    "page indexes of {bytes} bytes; Limits::memory_bytes allows {}: raise it to read on",
                    limits.memory_bytes
                ),
            ));
        }
        Ok(needs)
    }

    /// Takes the bytes of [`Metadata::index_needs`], in the same order, beside those that it has.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted.
    pub(crate) fn supply_indexes(&mut self, needs: &[Range<u64>], bytes: Vec<Bytes>) -> Result<()> {
        super::supplied::same_number("Metadata::supply_indexes", needs.len(), bytes.len())?;
        let mut indexes = (*self.indexes).clone();
        for (need, bytes) in needs.iter().zip(bytes) {
            if bytes.len() as u64 != need.end - need.start {
                return Err(Error::usage("Metadata::supply_indexes was given a range cut short"));
            }
            indexes.insert(need.start, bytes);
        }
        self.indexes = Arc::new(indexes);
        Ok(())
    }

    /// The same with more indexes, which are of this file; `None` if it has all of them.
    #[cfg_attr(not(feature = "engine"), allow(dead_code))]
    pub(super) fn with_indexes(&self, more: &RangeCache) -> Option<Self> {
        let mut indexes = (*self.indexes).clone();
        let before = indexes.byte_len();
        more.iter().for_each(|(start, bytes)| indexes.insert(start, bytes.clone()));
        let is_new = indexes.byte_len() > before;
        is_new.then(|| Self { indexes: Arc::new(indexes), ..self.clone() })
    }

    /// The bytes of a range of the file, if a page index was loaded that has them.
    pub(crate) fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        self.indexes.get(range)
    }

    /// Serialises the metadata, for a cache that outlives the process. Parts that are encrypted in
    /// the file stay encrypted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let footer = self.footer.stored_bytes();
        let mut out = Vec::with_capacity(64 + footer.len() + self.index_bytes());
        let prefixed = |bytes: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.file_len.to_le_bytes());
        let flags =
            [(self.version.is_some(), HAS_VERSION), (self.footer.is_encrypted(), IS_ENCRYPTED)];
        out.push(flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum());
        prefixed(self.version.as_deref().unwrap_or_default().as_bytes(), &mut out);
        prefixed(footer, &mut out);
        out.extend_from_slice(&(self.indexes.iter().len() as u64).to_le_bytes());
        for (start, bytes) in self.indexes.iter() {
            out.extend_from_slice(&start.to_le_bytes());
            prefixed(bytes, &mut out);
        }
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Deserialises what [`Metadata::to_bytes`] wrote; the bytes stay shared.
    ///
    /// # Errors
    /// `Malformed` if they are something else, or are damaged; `Crypto` if the footer is encrypted;
    /// as [`Footer::parse`].
    pub fn from_bytes(bytes: &Bytes, limits: &Limits) -> Result<Self> {
        Self::read_back(bytes, limits, None)
    }

    /// Like [`Metadata::from_bytes`], for a file that may be encrypted.
    ///
    /// # Errors
    /// As [`Metadata::from_bytes`] and
    /// [`FooterTail::supply_encrypted`](super::FooterTail::supply_encrypted).
    pub fn from_bytes_encrypted(bytes: &Bytes, limits: &Limits, keys: &Decryption) -> Result<Self> {
        Self::read_back(bytes, limits, Some(keys))
    }

    fn read_back(bytes: &Bytes, limits: &Limits, keys: Option<&Decryption>) -> Result<Self> {
        let damaged = || Error::malformed(SPEC, "the bytes are damaged, or no metadata");
        let (body, checksum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if !body.starts_with(MAGIC) || crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
            return Err(damaged());
        }
        let mut cursor = Cursor::new(body, SPEC);
        cursor.skip(MAGIC.len())?;
        let file_len = cursor.u64()?;
        let prefixed = |cursor: &mut Cursor<'_>| -> Result<Bytes> {
            let len = usize::try_from(cursor.u64()?).map_err(|_| damaged())?;
            let start = cursor.position();
            cursor.skip(len)?;
            Ok(bytes.slice(start..cursor.position()))
        };
        let flags = cursor.u8()?;
        let version = prefixed(&mut cursor)?;
        let version = str::from_utf8(&version).map_err(|_| damaged())?;
        let footer = prefixed(&mut cursor)?;
        if footer.len() as u64 > limits.footer_bytes {
            return Err(Error::limit(
                LimitKind::Footer,
                format_args!(
                    "a footer of {} bytes; Limits::footer_bytes allows {}: raise it to read on",
                    footer.len(),
                    limits.footer_bytes
                ),
            ));
        }
        let mut indexes = RangeCache::default();
        for _ in 0..cursor.u64()? {
            // Each takes at least 16 of the remaining bytes, so the list is bounded.
            let start = cursor.u64()?;
            let bytes = prefixed(&mut cursor)?;
            let end = start.checked_add(bytes.len() as u64).filter(|end| *end <= file_len);
            end.ok_or_else(damaged)?;
            indexes.insert(start, bytes);
        }
        if !cursor.is_empty() {
            return Err(damaged());
        }
        Ok(Self {
            footer: SealedFooter::new(footer, flags & IS_ENCRYPTED != 0, keys)?.open(limits)?,
            file_len,
            version: (flags & HAS_VERSION != 0).then(|| version.into()),
            indexes: Arc::new(indexes),
        })
    }
}

/// The offset index and the column index of a chunk, as far as it has them.
type StoredIndexes<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Marks the bytes, and their first version.
const MAGIC: &[u8; 8] = b"MQMETA1\0";

const SPEC: Spec = Spec::Metadata("cached metadata");

/// Flags of what follows.
const HAS_VERSION: u8 = 1;
const IS_ENCRYPTED: u8 = 2;

impl Deref for Metadata {
    type Target = Footer;

    fn deref(&self) -> &Footer {
        &self.footer
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("footer", &self.footer)
            .field("file_len", &self.file_len)
            .field("version", &self.version)
            .field("index_bytes", &self.index_bytes())
            .finish()
    }
}

/// Where the offset index of a chunk lies; `None` if it has none.
///
/// # Errors
/// `Malformed(PageIndex)` if that is outside the file.
pub(crate) fn offset_index_range(
    places: &IndexPlaces,
    file_len: u64,
) -> Result<Option<Range<u64>>> {
    within(places.offset_index_offset, places.offset_index_length, file_len)
}

/// Like [`offset_index_range`], for the column index.
pub(crate) fn column_index_range(
    places: &IndexPlaces,
    file_len: u64,
) -> Result<Option<Range<u64>>> {
    within(places.column_index_offset, places.column_index_length, file_len)
}

fn within(offset: Option<i64>, len: Option<i32>, file_len: u64) -> Result<Option<Range<u64>>> {
    let (Some(offset), Some(len)) = (offset, len) else { return Ok(None) };
    let range = u64::try_from(offset).ok().zip(u64::try_from(len).ok());
    let range = range.and_then(|(at, len)| Some(at..at.checked_add(len)?));
    match range.filter(|range| range.end <= file_len) {
        Some(range) => Ok(Some(range).filter(|range| !range.is_empty())),
        None => Err(Error::mismatch(
            Spec::PageIndex,
            "range of the index",
            format_args!("within the {file_len} bytes of the file"),
            format_args!("{len} bytes at {offset}"),
        )),
    }
}

/// Decodes an index, if there is one.
pub(crate) fn decode<'a, T: Read<'a>>(bytes: Option<&'a [u8]>) -> Result<Option<T>> {
    bytes.map(|bytes| T::read(&mut thrift::ThriftReader::new(bytes))).transpose()
}

/// Adds a range that does not begin before the last one, or touches none: joined with the last one
/// if the gap is short.
fn join(ranges: &mut Vec<Range<u64>>, range: Range<u64>, gap: u64) {
    match ranges.last_mut() {
        Some(last) if last.start <= range.start && range.start <= last.end.saturating_add(gap) => {
            last.end = last.end.max(range.end);
        }
        _ => ranges.push(range),
    }
}

#[cold]
fn not_loaded() -> Error {
    Error::usage("the page index of this column chunk was not loaded")
}
