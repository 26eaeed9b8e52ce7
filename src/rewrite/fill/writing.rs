//! [`FillWriter`]: copies the pages of a file, and writes what is new around them.
//!
//! ```text
//! magic | pages, chunk by chunk | bloom filters | column indexes | offset indexes | footer
//! ```

use std::ops::Range;

use bytes::Bytes;

use super::additions::ChunkAdditions;
use super::headers::header_with_checksum;
use super::planning::{Planned, PlannedGroup, apply};
use crate::error::{Error, Result, Spec};
use crate::format::{
    BloomFilterHeader, ColumnChunk, ColumnIndex, ColumnOrder, OffsetIndex, PageType, RowGroup,
};
use crate::io::{Sink, Source, read_exactly};
use crate::limits::{Budget, Reservation};
use crate::read::{ChunkRegions, ChunkWalk, column_index_range, decode, offset_index_range};
use crate::reader::Reader;
use crate::rewrite::moved_chunk::{MovedChunk, MovedPage, copy_chunk, relocated, relocated_chunk};
use crate::rewrite::output::CountingSink;
use crate::thrift::{Read, ThriftReader};
use crate::write::{IndexWriter, footer, magic};

/// Writes the filled file.
pub(super) struct FillWriter<'a, S> {
    reader: &'a Reader,
    planned: &'a Planned,
    budget: &'a Budget,
    out: CountingSink<S>,
    regions: ChunkRegions,
}

/// A chunk whose pages were copied.
struct FilledChunk {
    /// Where its bloom filter is in the old file.
    bloom: Option<i64>,
    places: FilledPlaces,
}

/// Where the pages of a chunk are in the new file.
enum FilledPlaces {
    /// All were moved by as many bytes.
    Shifted(i64),
    Listed(Vec<MovedPage>, #[expect(dead_code, reason = "held while the pages are")] Reservation),
}

/// A part of the file after the pages.
#[derive(Clone, Copy)]
enum Trailer {
    Bloom,
    ColumnIndex,
    OffsetIndex,
}

/// More bytes than the header of a bloom filter takes.
const MAX_BLOOM_HEADER: u64 = 256;

impl<'a, S: Sink> FillWriter<'a, S> {
    pub(super) fn new(
        reader: &'a Reader,
        planned: &'a Planned,
        sink: S,
        budget: &'a Budget,
    ) -> Self {
        let (out, regions) = (CountingSink::new(sink), ChunkRegions::default());
        Self { reader, planned, budget, out, regions }
    }

    /// Returns the bytes of the new file.
    pub(super) fn run(mut self) -> Result<u64> {
        let planned = self.planned;
        let index = self.reader.metadata().footer().index();
        let footer_len = index.byte_len().saturating_mul(4);
        let _footer = self.budget.take_for("a footer", footer_len)?;
        let mut metadata = index.to_file_meta_data()?;
        self.out.send(Bytes::from_static(magic(None)))?;
        let mut filled = Vec::with_capacity(planned.row_groups.len());
        let groups = metadata.row_groups.iter_mut().zip(&planned.row_groups);
        for (ordinal, (group, planned)) in groups.enumerate() {
            let done = self.row_group(ordinal, group, planned);
            filled.push(done.map_err(|e| e.at_row_group(ordinal))?);
        }
        if planned.declares_orders {
            let leaves = self.reader.metadata().schema().leaves_len();
            metadata.column_orders = Some(vec![ColumnOrder::TypeOrder; leaves]);
        }
        for trailer in [Trailer::Bloom, Trailer::ColumnIndex, Trailer::OffsetIndex] {
            for (ordinal, filled) in filled.iter().enumerate() {
                let group = metadata.row_groups.get_mut(ordinal);
                let (Some(group), Some(planned)) = (group, planned.row_groups.get(ordinal)) else {
                    continue;
                };
                let chunks = group.columns.iter_mut().zip(filled).zip(&planned.chunks);
                for (leaf, ((chunk, filled), additions)) in chunks.enumerate() {
                    let done = self.trailer(trailer, (ordinal, leaf), chunk, filled, additions);
                    done.map_err(|e| e.at_row_group(ordinal))?;
                }
            }
        }
        let mut end = Vec::new();
        footer(metadata, &[], None, &mut end)?;
        self.out.send(end.into())?;
        self.out.finish()?;
        Ok(self.out.written())
    }

    fn row_group(
        &mut self,
        ordinal: usize,
        group: &mut RowGroup,
        planned: &PlannedGroup,
    ) -> Result<Vec<FilledChunk>> {
        let start = self.out.here()?;
        let mut filled = Vec::with_capacity(planned.chunks.len());
        let mut grown = 0i64;
        for (leaf, (chunk, additions)) in group.columns.iter_mut().zip(&planned.chunks).enumerate()
        {
            let before = std::mem::take(chunk);
            let size = |chunk: &ColumnChunk| {
                chunk.meta_data.as_ref().map_or(0, |meta| meta.total_uncompressed_size)
            };
            let size_before = size(&before);
            let (mut after, done) = self.chunk(ordinal, leaf, before, additions)?;
            if let Some(meta) = &mut after.meta_data {
                apply(meta, additions);
            }
            grown = grown.saturating_add(size(&after).saturating_sub(size_before));
            *chunk = after;
            filled.push(done);
        }
        group.total_byte_size = group.total_byte_size.saturating_add(grown);
        group.total_compressed_size = Some(self.out.here()? - start);
        group.file_offset = Some(start);
        if let Some(sorting) = &planned.sorting {
            group.sorting_columns = Some(sorting.clone());
        }
        Ok(filled)
    }

    fn chunk(
        &mut self,
        row_group: usize,
        leaf: usize,
        old: ColumnChunk,
        additions: &ChunkAdditions,
    ) -> Result<(ColumnChunk, FilledChunk)> {
        let options = self.reader.read_options();
        let footer = self.reader.metadata().footer();
        let file_len = self.reader.file_len();
        let walk = ChunkWalk::new(footer, file_len, row_group, leaf, &options.limits)?;
        if !options.shared_bytes {
            self.regions.add(&walk.range)?;
        }
        // Where the sizes of chunks are short, only their pages tell their ends.
        match additions.checksums || footer.has_short_chunks() {
            true => self.copy_pages(old, walk, additions.checksums),
            false => self.copy_bytes(old, &walk.range),
        }
    }

    fn copy_bytes(
        &mut self,
        old: ColumnChunk,
        range: &Range<u64>,
    ) -> Result<(ColumnChunk, FilledChunk)> {
        let (reader, budget) = (self.reader, self.budget);
        let source: &dyn Source = &**reader.source();
        let some = |range| read(reader, budget, "bytes of a column chunk", range);
        let MovedChunk { chunk, by, bloom } = copy_chunk(&mut self.out, old, range, source, some)?;
        Ok((chunk, FilledChunk { bloom, places: FilledPlaces::Shifted(by) }))
    }

    /// Copies a chunk page by page, and adds the checksums that are missing if they are wanted.
    fn copy_pages(
        &mut self,
        old: ColumnChunk,
        walk: ChunkWalk,
        checksums: bool,
    ) -> Result<(ColumnChunk, FilledChunk)> {
        let start = self.out.here()?;
        let (bytes, memory) = self.read("a column chunk", walk.range.clone())?;
        let mut moved: Vec<MovedPage> = Vec::new();
        let mut places = self.budget.reservation("the places of pages");
        let (mut data, mut dictionary, mut grown) = (None, None, 0i64);
        for page in walk.pages(bytes, memory) {
            let page = page?;
            let is_dictionary = page.header.r#type == PageType::DictionaryPage;
            if !page.is_data() && !is_dictionary {
                // It carries no values.
                continue;
            }
            let to = self.out.here()?;
            let found = crc32fast::hash(page.body());
            if let Some(stated) = page.header.crc.map(i32::cast_unsigned)
                && stated != found
            {
                let (stated, found) = (format!("{stated:#010x}"), format!("{found:#010x}"));
                let wrong = Error::mismatch(Spec::Pages, "CRC-32 of the page", stated, found);
                return Err(wrong.at_offset(page.offset).at_page(moved.len()));
            }
            let mut new = page.bytes.clone();
            if checksums && page.header.crc.is_none() {
                let mut bytes = header_with_checksum(&page.header, page.body())?;
                let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
                grown = grown.saturating_add(signed(bytes.len()) - signed(page.header_len));
                let _copy = self.budget.take_for("a page", page.bytes.len())?;
                bytes.extend_from_slice(page.body());
                new = bytes.into();
            }
            if is_dictionary {
                dictionary = Some(to);
            } else {
                data.get_or_insert(to);
                places.grow(size_of::<MovedPage>())?;
                moved.push(MovedPage { from: page.offset, to, len: new.len() });
            }
            self.out.send(new)?;
        }
        let bloom = old.meta_data.as_ref().and_then(|meta| meta.bloom_filter_offset);
        let end = self.out.here()?;
        let new = relocated_chunk(old, start..end, data, dictionary, grown)?;
        Ok((new, FilledChunk { bloom, places: FilledPlaces::Listed(moved, places) }))
    }

    /// Writes the bloom filter or an index of a chunk: the new one, or that of the old file.
    fn trailer(
        &mut self,
        trailer: Trailer,
        (row_group, leaf): (usize, usize),
        chunk: &mut ColumnChunk,
        filled: &FilledChunk,
        additions: &ChunkAdditions,
    ) -> Result<()> {
        let places = self.reader.metadata().footer().index().index_places(row_group, [leaf])?;
        let places = places.first().copied().unwrap_or_default();
        let file_len = self.reader.file_len();
        let mut out = Vec::new();
        let mut to = IndexWriter::new(self.out.written(), &mut out);
        match trailer {
            Trailer::Bloom => {
                if let Some(bloom) = &additions.bloom {
                    to.bloom(chunk, bloom, None)?;
                } else if let Some(offset) = filled.bloom {
                    let (bloom, _memory) = self.old_bloom(offset)?;
                    to.bloom(chunk, &bloom, None)?;
                }
            }
            Trailer::ColumnIndex => {
                let range = column_index_range(&places, file_len)?;
                if let Some(index) = &additions.column_index {
                    to.column_index(chunk, index, None)?;
                } else if let Some(range) = range.filter(|_| !additions.drops_column_index) {
                    let (stored, mut memory) = self.read("a column index", range)?;
                    memory.grow(stored.len().saturating_mul(8))?;
                    let index = ColumnIndex::read(&mut ThriftReader::new(&stored))?;
                    to.column_index(chunk, &index, None)?;
                }
            }
            Trailer::OffsetIndex => {
                let range = offset_index_range(&places, file_len)?;
                let read = range.map(|range| self.read("an offset index", range)).transpose()?;
                let mut memory = self.budget.reservation("an offset index");
                let index = match (&additions.offset_index, &read) {
                    (Some(index), _) => Some(index.clone()),
                    (None, Some((stored, _))) => {
                        memory.grow(stored.len().saturating_mul(8))?;
                        decode::<OffsetIndex>(Some(stored))?
                    }
                    (None, None) => None,
                };
                if let Some(index) = index {
                    to.offset_index(chunk, &filled.places.relocate(index)?, None)?;
                }
            }
        }
        if out.is_empty() { Ok(()) } else { self.out.send(out.into()) }
    }

    /// The bloom filter of the old file, with its header.
    fn old_bloom(&self, offset: i64) -> Result<(Bytes, Reservation)> {
        let file_len = self.reader.file_len();
        let outside = || Error::malformed(Spec::BloomFilter, "it lies outside of the file");
        let start = u64::try_from(offset).ok().filter(|start| *start < file_len);
        let start = start.ok_or_else(outside)?;
        let head = start..file_len.min(start.saturating_add(MAX_BLOOM_HEADER));
        let (head, _memory) = self.read("the header of a bloom filter", head)?;
        let mut header = ThriftReader::new(&head);
        let bits = BloomFilterHeader::read(&mut header)?.num_bytes;
        let bits = u64::try_from(bits).map_err(|_| outside())?;
        let end = start.saturating_add(header.position() as u64).saturating_add(bits);
        if end > file_len {
            return Err(outside());
        }
        self.read("a bloom filter", start..end)
    }

    fn read(&self, purpose: &'static str, range: Range<u64>) -> Result<(Bytes, Reservation)> {
        read(self.reader, self.budget, purpose, range)
    }
}

/// Some bytes of a file, and their memory.
fn read(
    reader: &Reader,
    budget: &Budget,
    purpose: &'static str,
    range: Range<u64>,
) -> Result<(Bytes, Reservation)> {
    let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let memory = budget.take_for(purpose, len)?;
    let source: &dyn Source = &**reader.source();
    Ok((read_exactly(source, range)?, memory))
}

impl FilledPlaces {
    /// An offset index with the new places of its pages.
    fn relocate(&self, mut index: OffsetIndex) -> Result<OffsetIndex> {
        match self {
            Self::Listed(moved, _) => relocated(index, moved),
            Self::Shifted(by) => {
                for location in &mut index.page_locations {
                    location.offset = location.offset.saturating_add(*by);
                }
                Ok(index)
            }
        }
    }
}
