//! [`PageGround`]: pages whose columns are not known, and what their bytes tell of them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::pages::{FoundPages, SalvagedPage};
use super::rebuilt::{self, Described, KnownSchema};
use crate::check::{ChunkVerdict, ChunkVerifier, encoding_fits};
use crate::compress::Decompressor;
use crate::error::Result;
use crate::format::{ColumnChunk, CompressionCodec, Encoding, PageType, RowGroup};
use crate::io::{Source, read_exactly};
use crate::levels::LevelDecoder;
use crate::limits::{Budget, Limits};
use crate::page::{Page, PageContext, PageOpener, PagePosition};
use crate::schema::{Leaf, Physical};

/// The pages of a range, and tests of what they may be.
pub(super) struct PageGround<'a> {
    pub(super) source: &'a Arc<dyn Source>,
    pub(super) known: &'a KnownSchema,
    pub(super) limits: &'a Limits,
    pub(super) budget: &'a Budget,
    pub(super) found: FoundPages,
    verifier: &'a mut Option<ChunkVerifier>,
    /// By page and leaf, how many rows begin in it.
    rows: HashMap<(usize, usize), Option<PageRows>>,
    /// By first page, page after the last, and leaf: what is wrong with such a chunk.
    verdicts: HashMap<(usize, usize, usize), Option<ChunkVerdict>>,
    /// How many more pages are looked at.
    steps: u64,
}

/// The rows that begin in a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRows {
    pub(super) rows: u64,
    /// Whether its first slot begins a row.
    pub(super) starts_row: bool,
}

/// Looks at pages of an undecided place, at most: more would take too long.
const MAX_STEPS: u64 = 1 << 22;
/// Looks that are allowed again for each page that was decided on.
const STEPS_PER_PAGE: u64 = 1 << 10;
/// Looks that decoding a chunk counts as.
const STEPS_PER_CHUNK: u64 = 1 << 8;

impl<'a> PageGround<'a> {
    pub(super) fn new(
        source: &'a Arc<dyn Source>,
        known: &'a KnownSchema,
        (limits, budget): (&'a Limits, &'a Budget),
        found: FoundPages,
        verifier: &'a mut Option<ChunkVerifier>,
    ) -> Self {
        let (rows, verdicts) = (HashMap::new(), HashMap::new());
        Self { source, known, limits, budget, found, verifier, rows, verdicts, steps: MAX_STEPS }
    }

    pub(super) fn page(&self, at: usize) -> Option<&SalvagedPage> {
        self.found.pages.get(at)
    }

    /// The page at `at`, if it may be of a chunk that begins at `first`.
    pub(super) fn page_of_chunk(&self, first: usize, at: usize) -> Option<&SalvagedPage> {
        self.page(at).filter(|page| at == first || !page.begins_chunk)
    }

    fn pages(&self, range: &Range<usize>) -> &[SalvagedPage] {
        self.found.pages.get(range.clone()).unwrap_or_default()
    }

    /// Whether all of these pages have checksums.
    pub(super) fn have_checksums(&self, range: Range<usize>) -> bool {
        self.pages(&range).iter().all(|page| page.has_checksum)
    }

    pub(super) fn leaf(&self, leaf: usize) -> Option<&'a Leaf> {
        let known: &'a KnownSchema = self.known;
        known.leaves.get(leaf)
    }

    /// Counts a look at a page; false if there were too many.
    pub(super) fn step(&mut self) -> bool {
        self.charge(1)
    }

    /// Counts several looks.
    pub(super) fn charge(&mut self, steps: u64) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    /// Pages were decided on, so that others may be looked at.
    pub(super) fn refill(&mut self, pages: usize) {
        let more = (pages as u64).saturating_mul(STEPS_PER_PAGE);
        self.steps = self.steps.saturating_add(more).min(MAX_STEPS);
    }

    /// Whether a page can be one of a leaf, by its header alone.
    pub(super) fn fits(&self, page: &SalvagedPage, leaf: &Leaf, has_dictionary: bool) -> bool {
        if page.is_dictionary() {
            return matches!(page.encoding, Encoding::Plain | Encoding::PlainDictionary);
        }
        if matches!(page.encoding, Encoding::Unknown(_))
            || !encoding_fits(page.encoding, leaf.physical)
            || (page.has_indices() && !has_dictionary)
        {
            return false;
        }
        let (is_flat, is_required) = (leaf.max_rep == 0, leaf.max_def == 0);
        let values = match &page.v2 {
            Some(levels) => {
                let fits = (!is_flat || levels.rows == page.slots)
                    && levels.rows <= page.slots
                    && levels.nulls <= page.slots
                    && (is_flat == (levels.rep_bytes == 0) || page.slots == 0)
                    && (is_required == (levels.def_bytes == 0) || page.slots == 0)
                    && !(is_required && levels.nulls > 0);
                if !fits {
                    return false;
                }
                page.slots - levels.nulls
            }
            None if is_flat && is_required => page.slots,
            None => return true,
        };
        let levels = page.v2.map_or(0, |levels| levels.rep_bytes + levels.def_bytes);
        let bytes = page.uncompressed - levels.min(page.uncompressed);
        let width = match leaf.physical {
            _ if page.encoding != Encoding::Plain => return true,
            Physical::Boolean => return bytes >= values.div_ceil(8),
            Physical::Int32 | Physical::Float => 4,
            Physical::Int64 | Physical::Double => 8,
            Physical::Int96 => 12,
            Physical::FixedLenByteArray(width) => width as u64,
            Physical::ByteArray => return bytes >= values.saturating_mul(4),
        };
        values.checked_mul(width) == Some(bytes)
    }

    /// The rows that begin in a page of a leaf; `None` if its bytes do not tell.
    pub(super) fn rows(&mut self, at: usize, leaf: usize) -> Result<Option<PageRows>> {
        if let Some(known) = self.rows.get(&(at, leaf)) {
            return Ok(*known);
        }
        let (Some(page), Some(of)) = (self.page(at).cloned(), self.leaf(leaf)) else {
            return Ok(None);
        };
        match page.v2 {
            Some(levels) => return Ok(Some(PageRows { rows: levels.rows, starts_row: true })),
            None if of.max_rep == 0 => {
                return Ok(Some(PageRows { rows: page.slots, starts_row: true }));
            }
            None => {}
        }
        let rows = self.counted_rows(at, &page, of)?;
        self.rows.insert((at, leaf), rows);
        Ok(rows)
    }

    /// The rows that begin in a page of version 1 within lists, by its levels.
    fn counted_rows(
        &mut self,
        at: usize,
        page: &SalvagedPage,
        leaf: &Leaf,
    ) -> Result<Option<PageRows>> {
        let Some(codec) = self.codec(&(at..at + 1), leaf.index)? else { return Ok(None) };
        let Some((header, body, _memory)) = self.read_page(page, leaf, codec)? else {
            return Ok(None);
        };
        let context = PageContext::new(leaf, codec, self.limits);
        let mut opener = PageOpener::new(context, self.budget);
        let Ok(Some(Page::Data(data))) = opener.open(&header, body, None) else { return Ok(None) };
        Ok(row_starts(data.rep, data.slots, leaf.max_rep))
    }

    fn read_page(
        &self,
        page: &SalvagedPage,
        leaf: &Leaf,
        codec: CompressionCodec,
    ) -> Result<Option<(Box<crate::format::PageHeader>, Bytes, crate::limits::Reservation)>> {
        let len = usize::try_from(page.end - page.start).unwrap_or(usize::MAX);
        let memory = self.budget.take_for("a page", len)?;
        let bytes = read_exactly(&**self.source, page.start..page.end)?;
        let context = PageContext::new(leaf, codec, self.limits);
        let position = PagePosition { is_first: false, data_pages: 0 };
        let Ok(header) = context.read_header(&bytes, position) else { return Ok(None) };
        let body = bytes.slice(header.len.min(bytes.len())..);
        Ok(Some((header.header, body, memory)))
    }

    /// The codec of a chunk: that of the file with the same schema, if its first page is of it, or
    /// the first that the page decompresses with to the size in its header.
    pub(super) fn codec(
        &self,
        pages: &Range<usize>,
        leaf: usize,
    ) -> Result<Option<CompressionCodec>> {
        let known = self.known.codecs.get(leaf).copied().flatten();
        let packed = |page: &SalvagedPage| {
            let levels = match page.v2 {
                Some(levels) if !levels.is_compressed => return None,
                Some(levels) => levels.rep_bytes + levels.def_bytes,
                None => 0,
            };
            let len = page.uncompressed.checked_sub(levels).filter(|len| *len > 0)?;
            let range = page.body.checked_add(levels)?..page.end;
            (len <= self.limits.page_bytes && !range.is_empty()).then_some((range, len))
        };
        let Some((range, len)) = self.pages(pages).iter().find_map(packed) else {
            return Ok(Some(known.unwrap_or(CompressionCodec::Uncompressed)));
        };
        let stored = range.end - range.start;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let both = usize::try_from(stored).unwrap_or(usize::MAX).saturating_add(len);
        let _memory = self.budget.take_for("a page", both)?;
        let body = read_exactly(&**self.source, range)?;
        for codec in known.into_iter().chain(CODECS) {
            let is_it = match codec {
                CompressionCodec::Uncompressed => stored == len as u64,
                codec => is_of(codec, &body, len),
            };
            if is_it {
                return Ok(Some(codec));
            }
        }
        Ok(None)
    }

    /// Checks the chunk of these pages, as one of the leaf that has `rows` rows; `None` if its
    /// codec is not known.
    pub(super) fn verdict(
        &mut self,
        pages: &Range<usize>,
        leaf: usize,
        rows: u64,
    ) -> Result<Option<&ChunkVerdict>> {
        let key = (pages.start, pages.end, leaf);
        if !self.verdicts.contains_key(&key) {
            if !self.charge(STEPS_PER_CHUNK) {
                return Ok(None);
            }
            let verdict = self.checked(pages, leaf, rows)?;
            self.verdicts.insert(key, verdict);
        }
        Ok(self.verdicts.get(&key).and_then(Option::as_ref))
    }

    fn checked(
        &mut self,
        pages: &Range<usize>,
        leaf: usize,
        rows: u64,
    ) -> Result<Option<ChunkVerdict>> {
        let Some(chunk) = self.chunk(pages, leaf)? else { return Ok(None) };
        // The other chunks are not looked at.
        let mut columns = vec![ColumnChunk::default(); self.known.leaves.len()];
        if let Some(place) = columns.get_mut(leaf) {
            *place = chunk;
        }
        let metadata = self.known.with(vec![rebuilt::row_group(columns, rows)]);
        let described = Described::new(self.source, &metadata, self.limits)?;
        described.verifier(self.verifier, self.limits).chunk(0, leaf).map(Some)
    }

    /// The metadata of a chunk.
    fn chunk(&self, pages: &Range<usize>, leaf: usize) -> Result<Option<ColumnChunk>> {
        let Some(of) = self.leaf(leaf) else { return Ok(None) };
        let codec = self.codec(pages, leaf)?;
        Ok(codec.map(|codec| rebuilt::chunk(self.pages(pages), of, codec)))
    }

    /// Checks the chunks of a row group; `None` if a codec is not known.
    pub(super) fn verdicts(
        &mut self,
        chunks: &[Range<usize>],
        rows: u64,
    ) -> Result<Option<(RowGroup, Vec<ChunkVerdict>)>> {
        let Some(row_group) = self.row_group(chunks, rows)? else { return Ok(None) };
        let metadata = self.known.with(vec![row_group.clone()]);
        let described = Described::new(self.source, &metadata, self.limits)?;
        let verdicts = described.verifier(self.verifier, self.limits).row_group(0)?;
        Ok(Some((row_group, verdicts)))
    }

    /// The first leaf whose headers may state another encoding than its pages have.
    pub(super) fn doubtful(&self, chunks: &[Range<usize>]) -> Option<&'a Leaf> {
        let is_doubtful = |(leaf, pages): &(usize, &Range<usize>)| {
            self.known.is_doubtful(self.pages(pages), *leaf)
        };
        let (leaf, _) = chunks.iter().enumerate().find(is_doubtful)?;
        self.leaf(leaf)
    }

    /// The metadata of a row group.
    fn row_group(&self, chunks: &[Range<usize>], rows: u64) -> Result<Option<RowGroup>> {
        let mut columns = Vec::with_capacity(chunks.len());
        for (leaf, pages) in chunks.iter().enumerate() {
            let Some(chunk) = self.chunk(pages, leaf)? else { return Ok(None) };
            columns.push(chunk);
        }
        Ok(Some(rebuilt::row_group(columns, rows)))
    }
}

/// Codecs in the order in which they are tried.
const CODECS: [CompressionCodec; 8] = [
    CompressionCodec::Uncompressed,
    CompressionCodec::Snappy,
    CompressionCodec::Zstd,
    CompressionCodec::Gzip,
    CompressionCodec::Lz4Raw,
    CompressionCodec::Brotli,
    CompressionCodec::Lz4,
    CompressionCodec::Lzo,
];

/// Whether bytes decompress to this length.
fn is_of(codec: CompressionCodec, body: &[u8], len: usize) -> bool {
    let Ok(mut decompressor) = Decompressor::new(codec) else { return false };
    let mut out = Vec::new();
    decompressor.decompress(body, len, &mut out).is_ok() && out.len() == len
}

/// The rows that begin in `slots` slots.
fn row_starts(mut rep: LevelDecoder, slots: usize, max_rep: u16) -> Option<PageRows> {
    const BLOCK: usize = 1 << 14;
    let mut found = PageRows { rows: 0, starts_row: true };
    let mut levels = LevelDecoder::planes(max_rep);
    let mut at = 0;
    while at < slots {
        let block = BLOCK.min(slots - at);
        levels.clear();
        rep.read(block, &mut levels).ok()?;
        let starts = (0..block).filter(|i| levels.get(*i) == 0).count();
        if at == 0 {
            found.starts_row = levels.get(0) == 0;
        }
        found.rows += starts as u64;
        at += block;
    }
    Some(found)
}

impl SalvagedPage {
    /// Whether it may end within a row: pages of version 1 may, in columns of lists.
    pub(super) fn may_end_in_row(&self, leaf: &Leaf) -> bool {
        leaf.max_rep > 0 && self.r#type == PageType::DataPage
    }
}
