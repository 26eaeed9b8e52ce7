//! [`OldIndexes`] reads what is around the pages of a chunk in the file that it is copied from.

use std::ops::Range;

use bytes::Bytes;

use super::inputs::Input;
use crate::crypt::{ChunkDecryptor, Module, opened};
use crate::error::{Error, Result, Spec};
use crate::format::{BloomFilterHeader, ColumnIndex, IndexPlaces, OffsetIndex, PageLocation};
use crate::io::{Source, read_exactly};
use crate::limits::{Budget, Reservation};
use crate::memory;
use crate::read::{column_index_range, decode, offset_index_range};
use crate::thrift::{self, Read};

/// A chunk of an old file.
#[derive(Clone, Copy)]
pub(super) struct OldIndexes<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) row_group: usize,
    pub(super) leaf: usize,
    pub(super) budget: &'a Budget,
}

impl OldIndexes<'_> {
    fn places(&self) -> Result<IndexPlaces> {
        let index = self.input.footer().index();
        let places = index.index_places(self.row_group, [self.leaf])?;
        Ok(places.first().copied().unwrap_or_default())
    }

    fn decryptor(&self) -> Result<Option<ChunkDecryptor>> {
        let footer = self.input.footer();
        let chunk = footer.column_chunk_ref(self.row_group, self.leaf)?;
        footer.chunk_decryptor(self.row_group, self.leaf, &chunk)
    }

    fn reserve(&self, purpose: &'static str, range: &Range<u64>) -> Result<Reservation> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.budget.take_for(purpose, len)
    }

    /// The offset index of a chunk; its memory is added to that of others.
    pub(super) fn offset_index(&self, memory: &mut Reservation) -> Result<Option<OffsetIndex>> {
        let Some(range) = offset_index_range(&self.places()?, self.input.reader.file_len())? else {
            return Ok(None);
        };
        let _stored = self.reserve("an offset index", &range)?;
        let stored = read(self.input, range)?;
        let decryptor = self.decryptor()?;
        let plain = opened(decryptor.as_ref(), Module::OffsetIndex, &stored)?;
        // A location takes 4 bytes at least.
        memory.grow((plain.len() / 4).saturating_mul(size_of::<PageLocation>()))?;
        decode(Some(&plain))
    }

    /// The column index of a chunk, and its memory.
    pub(super) fn column_index(&self) -> Result<Option<(ColumnIndex, Reservation)>> {
        let Some(range) = column_index_range(&self.places()?, self.input.reader.file_len())? else {
            return Ok(None);
        };
        let decryptor = self.decryptor()?;
        // As it is stored, decoded, and encoded again.
        let mut memory = self.reserve("a column index", &range)?;
        memory.grow(usize::try_from(2 * memory.bytes()).unwrap_or(usize::MAX))?;
        let stored = read(self.input, range)?;
        let plain = opened(decryptor.as_ref(), Module::ColumnIndex, &stored)?;
        let index = ColumnIndex::read(&mut thrift::ThriftReader::new(&plain))?;
        Ok(Some((index, memory)))
    }

    /// The offset index of a chunk whose pages all moved `by` bytes, and its memory.
    pub(super) fn shifted(
        &self,
        from: &Range<u64>,
        by: i64,
    ) -> Result<Option<(OffsetIndex, Reservation)>> {
        let Some(range) = offset_index_range(&self.places()?, self.input.reader.file_len())? else {
            return Ok(None);
        };
        let mut memory = self.reserve("an offset index", &range)?;
        let stored = read(self.input, range)?;
        // A location takes 4 bytes at least.
        memory.grow((stored.len() / 4).saturating_mul(size_of::<PageLocation>()))?;
        let Some(mut index) = decode::<OffsetIndex>(Some(&stored))? else { return Ok(None) };
        for location in &mut index.page_locations {
            let start = u64::try_from(location.offset).ok();
            if !start.is_some_and(|start| from.contains(&start)) {
                let expected = format_args!("a page of the chunk, at bytes {from:?}");
                let found = location.offset;
                return Err(Error::mismatch(Spec::PageIndex, "offset of a page", expected, found));
            }
            location.offset = location.offset.saturating_add(by);
        }
        Ok(Some((index, memory)))
    }

    /// The bloom filter of a chunk in plain text, with its header, and its memory.
    pub(super) fn bloom(&self, offset: i64) -> Result<(Vec<u8>, Reservation)> {
        let decryptor = self.decryptor()?;
        let decryptor = decryptor.as_ref();
        let end = self.input.reader.file_len().saturating_sub(TAIL_LEN);
        let start = u64::try_from(offset).ok().filter(|start| *start < end);
        let outside = |what: &str, found: &dyn std::fmt::Display| {
            let expected = format_args!("within the first {end} bytes of the file");
            Error::mismatch(Spec::BloomFilter, what, expected, found)
        };
        let start = start.ok_or_else(|| outside("bloom_filter_offset", &offset))?;
        let head = read(self.input, start..end.min(start.saturating_add(MAX_BLOOM_HEADER)))?;
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
        let stored = read(self.input, range)?;
        filter.truncate(header_len);
        memory::append(&mut filter, &opened(decryptor, Module::BloomFilterBitset, &stored)?)?;
        Ok((filter, memory))
    }
}

/// Bytes of the length of the footer and the magic number.
const TAIL_LEN: u64 = 8;

/// More bytes than the header of a bloom filter takes, encrypted or not.
const MAX_BLOOM_HEADER: u64 = 256;

/// Bytes of an old file.
pub(super) fn read(input: &Input<'_>, range: Range<u64>) -> Result<Bytes> {
    let source: &dyn Source = &**input.reader.source();
    read_exactly(source, range)
}
