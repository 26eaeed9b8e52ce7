//! Where a copied chunk is in the new file: its bytes, its metadata, and the places of its pages.

use std::ops::Range;

use bytes::Bytes;

use super::output::CountingSink;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{ColumnChunk, ColumnMetaData, OffsetIndex};
use crate::io::{Sink, Source};
use crate::limits::Reservation;

/// A data page in the old file and in the new one.
pub(super) struct MovedPage {
    pub(super) from: u64,
    pub(super) to: i64,
    pub(super) len: usize,
}

/// A chunk whose bytes were copied as they are.
pub(super) struct MovedChunk {
    /// Its metadata, with its new place.
    pub(super) chunk: ColumnChunk,
    /// By how many bytes its pages moved.
    pub(super) by: i64,
    /// Where its bloom filter is in the old file.
    pub(super) bloom: Option<i64>,
}

/// Copies the bytes of a chunk; `read` returns some of them from `source`, with their memory.
///
/// # Errors
/// Of `read` and of the sink; as [`relocated_chunk`].
pub(super) fn copy_chunk<S: Sink>(
    out: &mut CountingSink<S>,
    old: ColumnChunk,
    range: &Range<u64>,
    source: &dyn Source,
    read: impl Fn(Range<u64>) -> Result<(Bytes, Reservation)>,
) -> Result<MovedChunk> {
    let start = out.here()?;
    let window = if source.is_local() { LOCAL_WINDOW } else { WINDOW };
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at.saturating_add(window));
        let (bytes, _memory) = read(at..end)?;
        out.send(bytes)?;
        at = end;
    }
    let by = start - i64::try_from(range.start).unwrap_or(i64::MAX);
    let moved = |offset: i64| {
        let is_inside = u64::try_from(offset).is_ok_and(|offset| range.contains(&offset));
        is_inside.then_some(offset.saturating_add(by))
    };
    let meta = old.meta_data.as_ref();
    let first_data_page = meta.and_then(|meta| moved(meta.data_page_offset));
    let dictionary_page = meta.and_then(|meta| moved(meta.dictionary_page_offset?));
    let bloom = meta.and_then(|meta| meta.bloom_filter_offset);
    let place = start..out.here()?;
    let chunk = relocated_chunk(old, place, first_data_page, dictionary_page, 0)?;
    Ok(MovedChunk { chunk, by, bloom })
}

/// Bytes that are copied at a time.
const WINDOW: u64 = 4 << 20;
/// The same of local files: they stay in the cache of the processor between the read and the write,
/// which takes three fifths of the time of 4 MiB.
const LOCAL_WINDOW: u64 = 256 << 10;

/// Leaves out bounds whose order the new footer does not state. The deprecated ones stay: their
/// order is always that of signed numbers.
pub(super) fn forget_bounds(chunk: &mut ColumnChunk) {
    let Some(meta) = &mut chunk.meta_data else { return };
    let Some(statistics) = &mut meta.statistics else { return };
    (statistics.min_value, statistics.max_value) = (None, None);
    (statistics.is_min_value_exact, statistics.is_max_value_exact) = (None, None);
}

/// The metadata of a column chunk whose pages lie in `place` now, their headers `grown` bytes
/// longer; in plain text, and without its indexes and bloom filter, which are placed later.
///
/// # Errors
/// `Malformed` if it has no `meta_data`, or its size is less than that of its page headers.
pub(super) fn relocated_chunk(
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
pub(super) fn relocated(mut index: OffsetIndex, moved: &[MovedPage]) -> Result<OffsetIndex> {
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
