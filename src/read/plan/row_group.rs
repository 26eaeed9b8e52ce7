//! [`PageIndexPlan`] and [`RowGroupPlan`] find the pages of the chunks of a planned row group, and
//! say what to fetch. They decode nothing.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::chunk::{
    ChunkPlan, ChunkToRead, DictionaryFetch, Listed, WantedPages, byte_range, needs, not_negative,
};
use super::rows::RowRange;
use super::scan::{Plan, WORTH_AN_INDEX, proportion};
use crate::crypt::{Module, opened};
use crate::error::{Error, Result};
use crate::format::OffsetIndex;
use crate::limits::Reservation;
use crate::memory;
use crate::page::PageContext;
use crate::read::options::PageIndexUse;
use crate::read::page_list::PageList;
use crate::read::supplied::{Step, check_ranges, same_number};
use crate::selection::PageMap;
use crate::thrift::{self, Read};

/// One row group of a plan whose column chunks are located. It wants the page indexes, if they may
/// help.
#[derive(Debug)]
pub(crate) struct PageIndexPlan {
    pub(super) plan: Plan,
    pub(super) range: RowRange,
    pub(super) rows_in_group: u64,
    pub(super) chunks: Vec<ChunkPlan>,
    pub(super) needs: Vec<Range<u64>>,
    /// For each of the needs, which of [`Plan::leaves`] it is for.
    pub(super) columns: Vec<usize>,
    pub(super) widths: Widths,
}

/// One row group of a plan: wants the bytes of its column chunks, or of some of their pages.
#[derive(Debug)]
pub(crate) struct RowGroupPlan {
    pub(super) plan: Plan,
    pub(super) range: RowRange,
    pub(super) rows_in_group: u64,
    pub(super) chunks: Vec<ChunkPlan>,
    pub(super) needs: Vec<Range<u64>>,
    pub(super) widths: Widths,
    pub(super) ignored: Vec<Error>,
    /// The memory of pages that are here already, while dictionary pages are fetched.
    pub(super) held: Option<Reservation>,
}

/// The column chunks of a row group whose bytes are there.
pub(in crate::read) struct Fetched {
    pub(in crate::read) plan: Plan,
    pub(in crate::read) range: RowRange,
    pub(in crate::read) rows_in_group: u64,
    pub(in crate::read) chunks: Vec<FetchedChunk>,
    /// Rows of a batch.
    pub(in crate::read) batch_rows: usize,
    /// About how many bytes a batch takes.
    pub(in crate::read) batch_bytes: u64,
    /// The memory of the bytes.
    pub(in crate::read) memory: Reservation,
}

/// One of them.
pub(in crate::read) struct FetchedChunk {
    /// Which of [`Plan::leaves`] it is of.
    pub(in crate::read) column_index: usize,
    pub(in crate::read) pages: PageList,
    pub(in crate::read) context: PageContext,
    /// Compressed bytes of the pages wanted.
    pub(in crate::read) compressed: u64,
    pub(in crate::read) work: ChunkWork,
}

/// About how much work it is to decode a column chunk: bytes that are read, and bytes of Arrow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkWork {
    /// Number of wanted rows.
    pub(crate) rows: u64,
    /// To begin in the midst of them: a data page and the dictionary page.
    pub(crate) entry: u64,
}

/// About how many bytes a row takes as Arrow arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widths {
    bytes_per_row: u64,
    /// Bytes for each row of the widest leaf.
    widest_per_row: u64,
}

/// Maximum bytes of an array of a batch, because very wide rows, such as embeddings, are decoded
/// several times as fast a few at a time.
const MAX_ARRAY_BYTES: u64 = 4 << 20;

/// Minimum bytes of a row from which [`MAX_ARRAY_BYTES`] counts, because batches of narrower rows
/// are hardly larger than that.
const WIDE: u64 = 64;

impl Plan {
    /// Plans one row group of [`Plan::ranges`]: decodes the metadata of its chunks.
    ///
    /// # Errors
    /// `Malformed` if a chunk's metadata contradict the schema or the file, `Unsupported` if its
    /// data lie in another file, `Crypto` if it is encrypted; `Limit(Rows)` if no column is read,
    /// of too many rows.
    pub(crate) fn row_group(&self, range: &RowRange) -> Result<PageIndexPlan> {
        if self.leaves_of(range) == 0 && !self.wiring().counting {
            self.check_bare_rows(range).map_err(|e| e.at_row_group(range.row_group))?;
        }
        let footer = self.footer();
        let rows_in_group = footer.row_group_rows(range.row_group)?;
        let mut chunks = memory::vec_for(self.leaves().len())?;
        let mut indexes = Vec::new();
        let (mut bytes_per_row, mut widest_per_row) = (0u64, 0);
        for (i, column) in self.leaves().iter().take(self.leaves_of(range)).enumerate() {
            let ChunkToRead { chunk, offset_index } =
                self.chunk(range.row_group, rows_in_group, column).map_err(|e| {
                    e.at_column(column.leaf.path.dotted()).at_row_group(range.row_group)
                })?;
            let per_row = chunk.arrow_bytes / rows_in_group.max(1);
            bytes_per_row = bytes_per_row.saturating_add(per_row);
            widest_per_row = per_row.max(widest_per_row);
            memory::extend(&mut indexes, offset_index.map(|range| (i, range)))?;
            chunks.push(chunk);
        }
        let helps = match self.options().page_index {
            PageIndexUse::Never => false,
            PageIndexUse::Always => range.count() < rows_in_group,
            PageIndexUse::Auto => {
                let bytes = chunks.iter().map(|chunk| chunk.bytes.end - chunk.bytes.start).sum();
                range.count() < rows_in_group && WORTH_AN_INDEX < bytes
            }
        };
        // Pages of these writers depend on the page before.
        if !helps || footer.quirks().carries_prefix {
            indexes.clear();
        } else {
            let wanted = range.wanted(rows_in_group, self.wiring())?;
            for (column, chunk) in self.leaves().iter().zip(&mut chunks) {
                let known = self.page_cache().find(range.row_group, column.leaf.index);
                chunk.pages = known.map(|map| WantedPages::new(map, &wanted));
            }
            indexes.retain(|(i, _)| chunks.get(*i).is_some_and(|chunk| chunk.pages.is_none()));
        }
        let (columns, needs) = indexes.into_iter().unzip();
        let (plan, range) = (self.clone(), range.clone());
        let widths = Widths { bytes_per_row, widest_per_row };
        Ok(PageIndexPlan { plan, range, rows_in_group, chunks, needs, columns, widths })
    }

    /// Keeps the bytes of an index for a caller that asked for them.
    pub(crate) fn keep_index(&self, start: u64, bytes: &[u8]) {
        if let Some(loaded) = &self.wiring().loaded_indexes {
            loaded.keep(start, bytes, self.budget());
        }
    }

    /// Keeps the pages of a leaf whose offset index was read; nothing of one that is not sound.
    pub(crate) fn keep_pages(&self, row_group: usize, leaf_index: usize, index: &OffsetIndex) {
        let map = || -> Result<Option<PageMap>> {
            let chunk = self.footer().column_chunk_ref(row_group, leaf_index)?;
            let Some(meta) = chunk.meta_data else { return Ok(None) };
            let slots = not_negative(meta.num_values, "num_values")?;
            let rows = self.footer().row_group_rows(row_group)?;
            PageMap::new(index, byte_range(&meta, slots, self.file_len())?, rows).map(Some)
        };
        if let Ok(Some(map)) = map() {
            self.page_cache().keep(row_group, leaf_index, &Arc::new(map));
        }
    }
}

impl PageIndexPlan {
    /// About how many bytes a row takes as Arrow arrays.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.widths.bytes_per_row
    }

    /// The wanted bytes: offset indexes of chunks that are read in part; often none.
    pub(crate) fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// The rows wanted.
    pub(crate) fn range(&self) -> &RowRange {
        &self.range
    }

    /// About how many bytes of the column chunks are wanted.
    pub(crate) fn wanted_bytes(&self) -> u64 {
        proportion(self.chunk_bytes(), self.range.count(), self.rows_in_group)
    }

    /// Bytes of the column chunks, all pages counted.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes.end - chunk.bytes.start).sum()
    }

    /// Without indexes: the column chunks are fetched whole.
    ///
    /// # Errors
    /// As [`PageIndexPlan::supply`].
    pub(crate) fn without_index(mut self) -> Result<RowGroupPlan> {
        self.needs.clear();
        self.chunks.iter_mut().for_each(ChunkPlan::without_index);
        self.supply(&[])
    }

    /// Takes the wanted bytes, in the same order. An index that is invalid, or contradicts the
    /// metadata, is ignored.
    ///
    /// # Errors
    /// `Usage` if their number is wrong.
    pub(crate) fn supply(mut self, bytes: &[Bytes]) -> Result<RowGroupPlan> {
        same_number("PageIndexPlan::supply", self.needs.len(), bytes.len())?;
        let mut ignored = Vec::new();
        for (need, bytes) in self.needs.iter().zip(bytes) {
            self.plan.keep_index(need.start, bytes);
        }
        if !bytes.is_empty() {
            let wanted = self.range.wanted(self.rows_in_group, self.plan.wiring())?;
            for (&i, bytes) in self.columns.iter().zip(bytes) {
                let Some(chunk) = self.chunks.get_mut(i) else { continue };
                let map = || -> Result<Arc<PageMap>> {
                    let bytes = opened(chunk.decryptor.as_ref(), Module::OffsetIndex, bytes)?;
                    let index = OffsetIndex::read(&mut thrift::ThriftReader::new(&bytes))?;
                    PageMap::new(&index, chunk.bytes.clone(), self.rows_in_group).map(Arc::new)
                };
                match map() {
                    // A file that was changed is not read on.
                    Err(e) if e.is_of_encryption() => {
                        return Err(self.plan.place(e, i, &self.range));
                    }
                    Ok(map) => {
                        if let Some(column) = self.plan.leaves().get(i) {
                            let row_group = self.range.row_group;
                            self.plan.page_cache().keep(row_group, column.leaf.index, &map);
                        }
                        chunk.pages = Some(WantedPages::new(map, &wanted));
                    }
                    Err(e) => ignored.push(self.plan.place(e, i, &self.range)),
                }
            }
        }
        let Self { plan, range, rows_in_group, chunks, widths, .. } = self;
        let needs = needs(&chunks)?;
        let held = None;
        Ok(RowGroupPlan { plan, range, rows_in_group, chunks, needs, widths, ignored, held })
    }
}

impl RowGroupPlan {
    /// The bytes wanted: those of each leaf, in the order of [`Plan::schema`]. A driver joins those
    /// that lie close.
    pub(crate) fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// The rows that are wanted.
    pub(in crate::read) fn range(&self) -> &RowRange {
        &self.range
    }

    /// Faults of the page indexes that were ignored.
    pub(crate) fn ignored_indexes(&self) -> &[Error] {
        &self.ignored
    }

    /// Bytes that are fetched.
    pub(crate) fn fetch_bytes(&self) -> u64 {
        self.needs.iter().map(|range| range.end - range.start).sum()
    }

    /// Rows of a batch: as many as wanted, fewer where rows are wide.
    pub(crate) fn batch_rows(&self) -> usize {
        let options = self.plan.options();
        let Widths { bytes_per_row, widest_per_row } = self.widths;
        let by_bytes = self.plan.batch_bytes() as u64 / bytes_per_row.max(1);
        let by_bytes = match widest_per_row {
            ..WIDE => by_bytes,
            _ => by_bytes.min(MAX_ARRAY_BYTES / widest_per_row),
        };
        options.batch_rows.min(usize::try_from(by_bytes).unwrap_or(usize::MAX)).max(1)
    }

    /// Lets large chunks that are wanted whole be read while they are decoded, and large dictionary
    /// pages wait until a page refers to them, so that fewer bytes are fetched first.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn in_pieces(mut self) -> Result<Self> {
        self.chunks.iter_mut().for_each(ChunkPlan::take_pieces);
        self.needs = needs(&self.chunks)?;
        Ok(self)
    }

    /// Checks that there is memory for the bytes wanted, before they are fetched.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget does not suffice for them.
    pub(crate) fn check_memory(&self) -> Result<()> {
        self.reserve().map(drop)
    }

    fn reserve(&self) -> Result<Reservation> {
        let fetched = usize::try_from(self.fetch_bytes()).unwrap_or(usize::MAX);
        let place = |e: Error| e.at_row_group(self.range.row_group);
        self.plan.budget().take_for("the bytes of a row group", fetched).map_err(place)
    }

    /// Takes the bytes wanted, in the same order: the pages of each chunk; or the plan that wants
    /// more, which is the dictionary pages that pages refer to, or, if pages are not where an index
    /// places them, all of that chunk.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted, `Limit(Memory)` if the budget does not suffice
    /// them.
    pub(in crate::read) fn list_pages(mut self, bytes: &[Bytes]) -> Result<Step<Fetched, Self>> {
        check_ranges("RowGroupPlan::supply", &self.needs, bytes)?;
        let mut memory = self.reserve()?;
        if let Some(held) = self.held.take() {
            memory.absorb(held);
        }
        let rows = self.range.count();
        let mut refers = false;
        let mut fetched = memory::vec_for(self.chunks.len())?;
        let mut rest = bytes;
        let ignored_before = self.ignored.len();
        for (column_index, chunk) in self.chunks.iter_mut().enumerate() {
            let (bytes, others) = chunk.split_needs(rest);
            rest = others;
            let Some(column) = self.plan.leaves().get(column_index) else { continue };
            let context = self.plan.page_context(column, chunk.codec, chunk.decryptor.as_ref());
            match chunk.list(bytes, &context) {
                Ok(Listed::Pages(pages)) => {
                    let compressed = match &chunk.pages {
                        Some(_) => pages.bytes(),
                        // For a chunk that is read whole, or in pieces, in proportion to the wanted
                        // rows.
                        None => proportion(
                            chunk.bytes.end - chunk.bytes.start,
                            rows,
                            self.rows_in_group,
                        ),
                    };
                    let per_row = chunk.arrow_bytes / self.rows_in_group.max(1);
                    let work = ChunkWork {
                        rows: compressed.saturating_add(per_row.saturating_mul(rows)),
                        entry: chunk.entry_work,
                    };
                    fetched.push(FetchedChunk { column_index, pages, context, compressed, work });
                }
                Ok(Listed::Referred) => refers = true,
                Err(e) => {
                    self.ignored.push(self.plan.place(e, column_index, &self.range));
                    chunk.without_index();
                }
            }
        }
        if self.ignored.len() > ignored_before {
            self.plan.page_cache().forget(self.range.row_group);
            // Ranges that could wait are fetched with the rest: reads are not saved for a file
            // whose index is wrong.
            for chunk in &mut self.chunks {
                chunk.dictionary = DictionaryFetch::WithPages;
            }
            return self.refetch();
        }
        if refers {
            self.held = Some(memory);
            return self.refetch();
        }
        let batch_rows = self.batch_rows();
        let batch_bytes = self.widths.bytes_per_row.saturating_mul(batch_rows as u64);
        let Self { plan, range, rows_in_group, .. } = self;
        let chunks = fetched;
        let fetched =
            Fetched { plan, range, rows_in_group, chunks, batch_rows, batch_bytes, memory };
        Ok(Step::Done(fetched))
    }

    /// Wants what its chunks want now.
    fn refetch(mut self) -> Result<Step<Fetched, Self>> {
        self.needs = needs(&self.chunks)?;
        Ok(Step::NeedsMore(self))
    }
}
