//! Encodes the pages of a chunk, on one thread or in runs on several. The bytes are the same,
//! because no page depends on another.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::bloom::BloomBuilder;
use super::byte_arrays::ByteArrayValues;
use super::dictionary::ValueDictionary;
use super::encode::{CodeLayout, as_plain, encode, encode_codes, max_len};
use super::encoder::{ChosenForm, ChunkEncoder, ChunkForm};
use super::sorted::SortDetector;
use super::source::{ValueCursor, ValueSource};
use super::statistics::{PageValues, StatisticsCollector};
use super::values::LeafValues;
use crate::compress::Compression;
use crate::encoding::delta_binary::DeltaBlocks;
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::page::{PageParts, SealedPage};
use crate::stats::page_index::PageStatistics;

/// Where pages begin.
pub(super) struct PagePlan {
    /// Their first rows; and the end.
    pub(super) rows: Vec<usize>,
    /// Their first level entries; and the end.
    pub(super) entries: Vec<usize>,
    /// Their first values; and the end.
    pub(super) values: Vec<usize>,
    /// Whether the values of most pages become pieces of the file by themselves: see
    /// [`ChunkEncoder::in_pieces`].
    pub(super) in_pieces: bool,
}

impl PagePlan {
    pub(super) fn len(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// The rows, level entries and values of a page.
    fn page(&self, page: usize) -> Option<[Range<usize>; 3]> {
        let of = |starts: &[usize]| Some(*starts.get(page)?..*starts.get(page + 1)?);
        Some([of(&self.rows)?, of(&self.entries)?, of(&self.values)?])
    }
}

/// Consecutive pages.
pub(super) struct PageRun<'a> {
    /// Their bytes in pieces, after the bytes that the run began with.
    pub(super) bytes: Vec<Bytes>,
    pub(super) pages: Vec<EncodedPage>,
    pub(super) sort_detector: Option<SortDetector<'a>>,
    pub(super) bloom: Option<BloomBuilder>,
}

/// A page that is made.
pub(super) struct EncodedPage {
    /// Its place in the run.
    pub(super) sealed: SealedPage,
    /// The row that it begins with.
    pub(super) row: usize,
    /// Bytes of its byte strings, without lengths.
    pub(super) payload: i64,
    pub(super) statistics: PageStatistics,
}

/// Minimum bytes of a chunk that several threads encode.
const MIN_SHARED_BYTES: usize = 1 << 20;

/// Minimum bytes of the values of a page that become a piece of the file without another copy.
const MIN_PIECE_BYTES: usize = 32 << 10;

/// Runs of pages for each thread, because some take longer than others.
const RUNS_PER_THREAD: usize = 3;

impl<'a> ChunkEncoder<'a> {
    /// Makes all pages. `first` is what the chunk begins with, and the first run appends to it.
    ///
    /// # Errors
    /// `Usage` if a value does not fit its leaf, or the encoding.
    pub(super) fn pages(
        &self,
        chosen: &ChosenForm<'a>,
        plan: &PagePlan,
        first: Vec<u8>,
        collector: &StatisticsCollector<'_, 'a>,
    ) -> Result<Vec<PageRun<'a>>> {
        let likely_bytes = chosen.likely_bytes;
        let threads = self.parallelism.threads();
        let is_plain = matches!(chosen.form, ChunkForm::Plain { .. });
        let in_one = threads < 2
            || likely_bytes < MIN_SHARED_BYTES
            || (self.settings.bloom.is_some() && is_plain);
        let n = if in_one { 1 } else { (threads * RUNS_PER_THREAD).min(plan.len()).max(1) };
        let pages = |i: usize| plan.len() * i / n;
        let first = Mutex::new(Some(first));
        let made = Mutex::new(Vec::with_capacity(n));
        let make = |i: usize| {
            let lock = |first: &Mutex<Option<Vec<u8>>>| {
                first.lock().unwrap_or_else(PoisonError::into_inner).take()
            };
            let start = if i == 0 { lock(&first) } else { None };
            let new = if plan.in_pieces { 0 } else { likely_bytes / n };
            let start = start.map_or_else(|| self.context.free_lists.take(new), Ok);
            let run = start.and_then(|start| {
                self.encode_run(chosen, plan, pages(i)..pages(i + 1), start, collector)
            });
            made.lock().unwrap_or_else(PoisonError::into_inner).push((i, run));
        };
        match n {
            1 => make(0),
            n => self.parallelism.for_each(n, &make),
        }
        let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.sort_by_key(|(i, _)| *i);
        made.into_iter().map(|(_, run)| run).collect()
    }

    /// Whether the values of most pages will be pieces of the file by themselves: large ones,
    /// stored as they are.
    pub(super) fn in_pieces(&self, chosen: &ChosenForm<'a>, pages: usize) -> bool {
        let ChosenForm { form, codec, likely_bytes, .. } = chosen;
        let plain_bytes = match form {
            ChunkForm::Plain { values, .. } if *codec == Compression::Uncompressed => {
                values.plain_len(self.leaf)
            }
            _ => return false,
        };
        likely_bytes / pages.max(1) >= MIN_PIECE_BYTES && *likely_bytes >= plain_bytes / 2
    }

    fn encode_run(
        &self,
        chosen: &ChosenForm<'a>,
        plan: &PagePlan,
        pages: Range<usize>,
        mut bytes: Vec<u8>,
        collector: &StatisticsCollector<'_, 'a>,
    ) -> Result<PageRun<'a>> {
        let ChosenForm { form, codec, .. } = chosen;
        let (settings, free_lists, levels) =
            (self.settings, &self.context.free_lists, &self.column.levels);
        let mut sealer = self.context.sealer(*codec, settings.page_version, settings.checksums)?;
        let mut encoder = ValuesEncoder::new(self, form, plan, pages.clone(), collector)?;
        let mut made = Vec::with_capacity(pages.len());
        let (mut pieces, mut before) = (Vec::new(), 0);
        for [rows, entries, values] in pages.filter_map(|page| plan.page(page)) {
            let count = values.len();
            let page = encoder.encode(values)?;
            let parts = PageParts {
                nulls: entries.len() - count,
                rows: rows.len(),
                levels,
                entries: entries.clone(),
                encoding: form.encoding(),
                values: page.bytes,
            };
            let values_by_caller =
                plan.in_pieces && page.can_be_taken && parts.values.len() >= MIN_PIECE_BYTES;
            let sealed = sealer.data(&parts, values_by_caller, &mut bytes)?;
            let sealed = SealedPage { offset: before + sealed.offset, ..sealed };
            let statistics = collector.page(levels, entries, count, page.values)?;
            made.push(EncodedPage { sealed, row: rows.start, payload: page.payload, statistics });
            if sealed.bytes_left_to_caller > 0 {
                let is_ready = page.is_ready;
                let values = encoder.take_bytes(is_ready, sealed.bytes_left_to_caller)?;
                before += bytes.len() + values.len();
                pieces.push(free_lists.pooled_bytes(std::mem::take(&mut bytes)));
                pieces.push(values);
            }
        }
        if !bytes.is_empty() {
            pieces.push(free_lists.pooled_bytes(bytes));
        }
        self.context.return_sealer(sealer);
        let (sort_detector, bloom) = encoder.finish();
        Ok(PageRun { bytes: pieces, pages: made, sort_detector, bloom })
    }
}

/// Encodes the values of consecutive pages.
struct ValuesEncoder<'w, 'a> {
    encoder: &'w ChunkEncoder<'a>,
    form: &'w ChunkForm<'a>,
    collector: &'w StatisticsCollector<'w, 'a>,
    in_pieces: bool,
    /// The values, where they are no indices into a dictionary.
    cursor: Option<ValueCursor<'w, 'a>>,
    /// The encoded values of a page, where they are not stored as they lie.
    buffer: Vec<u8>,
    sort_detector: Option<SortDetector<'a>>,
    bloom: Option<BloomBuilder>,
}

/// The encoded values of a page.
struct EncodedValues<'p, 'a> {
    bytes: &'p [u8],
    /// Whether they are stored as they lie, and nothing was encoded.
    is_ready: bool,
    /// Whether the memory that they lie in can become a piece of the file.
    can_be_taken: bool,
    /// Bytes of its byte strings, without lengths.
    payload: i64,
    values: PageValues<'p, 'a>,
}

impl<'w, 'a> ValuesEncoder<'w, 'a> {
    fn new(
        encoder: &'w ChunkEncoder<'a>,
        form: &'w ChunkForm<'a>,
        plan: &PagePlan,
        pages: Range<usize>,
        collector: &'w StatisticsCollector<'w, 'a>,
    ) -> Result<Self> {
        let ChunkEncoder { leaf, settings, .. } = *encoder;
        let levels = &encoder.column.levels;
        let n = *plan.values.last().expect("a plan has an end");
        let begin =
            *plan.values.get(pages.start).expect("a plan has as many places as pages, and an end");
        let of_pages = pages.filter_map(|page| plan.page(page));
        let max = of_pages.map(|[_, _, values]| values.len()).max().unwrap_or(0);
        let (cursor, bloom) = match form {
            ChunkForm::Plain { values, .. } => {
                let n = if let ValueSource::Whole(values) = values { values.len() } else { n };
                (Some(values.read(leaf, begin, max)?), BloomBuilder::new(leaf, settings, n)?)
            }
            ChunkForm::Dictionary { .. } => (None, None),
        };
        // Rows have an order by a column in which each has a value.
        let in_order = levels.max_rep() == 0 && n == levels.len();
        Ok(Self {
            encoder,
            form,
            collector,
            in_pieces: plan.in_pieces,
            cursor,
            buffer: Vec::new(),
            sort_detector: in_order.then(|| SortDetector::new(collector.order())),
            bloom,
        })
    }

    /// The values of the next page, which have these numbers.
    fn encode(&mut self, values: Range<usize>) -> Result<EncodedValues<'_, 'a>> {
        self.buffer.clear();
        match self.form {
            ChunkForm::Plain { encoding, blocks, .. } => {
                self.encode_plain(*encoding, *blocks, values.len())
            }
            ChunkForm::Dictionary { dictionary, layout, values: all } => {
                self.encode_codes(dictionary, *layout, all.as_ref(), values)
            }
        }
    }

    fn encode_plain(
        &mut self,
        encoding: Encoding,
        blocks: DeltaBlocks,
        n: usize,
    ) -> Result<EncodedValues<'_, 'a>> {
        let free_lists = &self.encoder.context.free_lists;
        let cursor = self.cursor.as_mut().expect("values that are no indices have a cursor");
        let has_own = cursor.has_own();
        let (some, range) = cursor.next(n, free_lists)?;
        let ready = match encoding {
            Encoding::Plain => as_plain(some, range.clone()),
            _ => None,
        };
        if ready.is_none() {
            let capacity = max_len(some, range.clone(), encoding);
            // A page that is to be a piece of the file by itself fills most of its memory.
            match self.in_pieces && self.buffer.capacity() == 0 {
                true => self.buffer = free_lists.take_fitting(capacity)?,
                false => free_lists.grow(&mut self.buffer, capacity)?,
            }
            let physical = self.encoder.leaf.physical;
            encode(some, range.clone(), physical, encoding, blocks, free_lists, &mut self.buffer)?;
        }
        if let Some(sort_detector) = &mut self.sort_detector {
            sort_detector.push(some, range.clone())?;
        }
        if let Some(bloom) = &mut self.bloom {
            bloom.push(some, range.clone())?;
        }
        let rises = self.sort_detector.as_ref().is_some_and(SortDetector::rises);
        let rising = match some {
            LeafValues::Bytes(byte_arrays) if rises => rising(byte_arrays, range.clone()),
            _ => None,
        };
        Ok(EncodedValues {
            bytes: ready.unwrap_or(&self.buffer),
            is_ready: ready.is_some(),
            can_be_taken: match ready {
                Some(_) => has_own,
                None => self.buffer.len() >= self.buffer.capacity() / 2,
            },
            payload: payload(some, range.clone()),
            values: rising.unwrap_or(PageValues::Plain(some, range)),
        })
    }

    fn encode_codes(
        &mut self,
        dictionary: &'w ValueDictionary<'a>,
        layout: CodeLayout,
        all: Option<&'w LeafValues<'a>>,
        values: Range<usize>,
    ) -> Result<EncodedValues<'_, 'a>> {
        let codes = &dictionary.codes[values.clone()];
        self.encoder.context.free_lists.grow(&mut self.buffer, codes.len())?;
        encode_codes(codes, layout, &mut self.buffer)?;
        // By the ranks of the entries where there are few of them, else by the values themselves.
        let of_page = match all {
            Some(all) if !self.collector.by_codes() => {
                if let Some(sort_detector) = &mut self.sort_detector {
                    sort_detector.push(all, values.clone())?;
                }
                PageValues::Plain(all, values)
            }
            _ => PageValues::Codes(codes),
        };
        Ok(EncodedValues {
            bytes: &self.buffer,
            is_ready: false,
            can_be_taken: self.buffer.len() >= self.buffer.capacity() / 2,
            payload: self.collector.payload_of_codes(codes),
            values: of_page,
        })
    }

    /// The bytes of the last page, in memory of their own.
    fn take_bytes(&mut self, is_ready: bool, len: usize) -> Result<Bytes> {
        let free_lists = &self.encoder.context.free_lists;
        let bytes = match &mut self.cursor {
            Some(cursor) if is_ready => cursor.take_bytes(free_lists),
            _ => Some(free_lists.pooled_bytes(std::mem::take(&mut self.buffer))),
        };
        bytes
            .filter(|bytes| bytes.len() == len)
            .ok_or_else(|| Error::internal("values that are not there"))
    }

    /// Returns the findings over all pages, and the memory to its pool.
    fn finish(self) -> (Option<SortDetector<'a>>, Option<BloomBuilder>) {
        let free_lists = &self.encoder.context.free_lists;
        free_lists.put_back(self.buffer);
        self.cursor.into_iter().for_each(|cursor| cursor.put_back(free_lists));
        (self.sort_detector, self.bloom)
    }
}

/// The statistics of byte strings that rise: the first and the last.
fn rising<'p>(
    byte_arrays: &ByteArrayValues<'p>,
    range: Range<usize>,
) -> Option<PageValues<'p, 'p>> {
    let last = range.end.checked_sub(1)?;
    Some(PageValues::Rising(byte_arrays.get(range.start)?, byte_arrays.get(last)?))
}

/// Bytes of byte strings, without lengths.
fn payload(values: &LeafValues<'_>, range: Range<usize>) -> i64 {
    match values {
        LeafValues::Bytes(byte_arrays) => i64::try_from(byte_arrays.payload(range))
            .expect("values in memory have less than 2^63 bytes"),
        _ => 0,
    }
}
