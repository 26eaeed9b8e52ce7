//! A leaf of a row group, and the parts of it that threads decode.

use std::sync::Arc;

use super::chunk::Pages;
use super::column::{LeafBatch, LeafReader};
use super::page_list::PageList;
use super::plan::Plan;
use super::window::{UnselectedRows, Window, max_bytes};
use crate::error::{Error, Result};
use crate::page::PageContext;

/// One leaf of one row group: one or more [`ColumnDecoder`]s that decode it.
pub(crate) struct ColumnTask {
    chunk: ChunkSource,
    parts: Vec<ColumnDecoder>,
    rows_in_group: u64,
    /// Compressed bytes, as an estimate of the work.
    cost: usize,
}

/// What a thread decodes at a time: windows of one leaf, in ascending order.
pub(crate) struct ColumnDecoder {
    reader: LeafReader,
    unselected: UnselectedRows,
    row_group: usize,
    column: Arc<str>,
    /// Bytes that a batch should not exceed.
    batch_bytes: usize,
}

/// What a column chunk is read from.
pub(super) struct ChunkSource {
    pub(super) plan: Plan,
    /// Which of [`Plan::leaves`] it is of.
    pub(super) column_index: usize,
    pub(super) list: PageList,
    pub(super) context: PageContext,
    pub(super) row_group: usize,
    /// Dotted path of the leaf.
    pub(super) column: Arc<str>,
}

impl ChunkSource {
    fn part(&self) -> Result<ColumnDecoder> {
        let Self { plan, column_index, list, context, row_group, column } = self;
        let pages = Pages::new(list, context.clone(), plan.budget());
        let spec = plan.leaves().get(*column_index).ok_or_else(|| Error::usage("no such leaf"))?;
        let pages = pages.keeping(plan.page_cache().dictionary(*row_group, spec.leaf.index));
        let carries_prefix = plan.footer().quirks().carries_prefix;
        let utf8 = plan.options().utf8;
        let reader = LeafReader::new(spec, pages, utf8, carries_prefix, plan.budget())
            .map_err(|e| e.at_column(column.clone()).at_row_group(*row_group))?;
        let is_early = plan.filter().is_some_and(|filter| filter.is_early(*column_index));
        let unselected = match plan.drops_rows(*column_index) {
            _ if is_early => UnselectedRows::Stay,
            true => UnselectedRows::DroppedWhileDecoding,
            false => UnselectedRows::Apart,
        };
        let batch_bytes = plan.batch_bytes();
        Ok(ColumnDecoder {
            reader,
            unselected,
            row_group: *row_group,
            column: column.clone(),
            batch_bytes,
        })
    }
}

impl ColumnTask {
    pub(super) fn new(chunk: ChunkSource, rows_in_group: u64, cost: usize) -> Result<Self> {
        let parts = vec![chunk.part()?];
        Ok(Self { chunk, parts, rows_in_group, cost })
    }

    /// Whether the leaf is decoded before the filter is evaluated.
    pub(crate) fn is_early(&self) -> bool {
        self.chunk.plan.filter().is_some_and(|filter| filter.is_early(self.chunk.column_index))
    }

    /// Whether the leaf is decoded for this window in this step: before the filter (`early`), or
    /// after it. A leaf that only the filter needs is not decoded if the filter is known to be
    /// true.
    pub(crate) fn is_wanted(&self, early: bool, window: &Window) -> bool {
        let ChunkSource { plan, column_index, .. } = &self.chunk;
        self.is_early() == early && (*column_index < plan.output_leaves() || !window.is_proven())
    }

    /// About how much work the chunk is, in compressed bytes.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// What decodes the leaf: one part, or as many as it was split into.
    pub(crate) fn parts(&mut self) -> &mut [ColumnDecoder] {
        &mut self.parts
    }

    /// Starts again with one new decoder: the next window may lie anywhere.
    ///
    /// # Errors
    /// As for the first part.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.parts.clear();
        self.parts.push(self.chunk.part()?);
        Ok(())
    }

    /// Lets `parts` threads decode the leaf, each its own pages, if the rows of its pages are
    /// known. Must be called before anything is decoded.
    ///
    /// # Errors
    /// As for the first part; `Io` if the headers of the pages cannot be read.
    pub(crate) fn split(&mut self, parts: usize) -> Result<()> {
        let ChunkSource { plan, list, context, .. } = &mut self.chunk;
        // Pages of these writers depend on the page before.
        if plan.footer().quirks().carries_prefix {
            return Ok(());
        }
        let Some(found) = list.find_pages(self.rows_in_group, context)? else {
            return Ok(());
        };
        let max = found.pages().map_or(1, <[_]>::len);
        if parts < 2 || max < 2 {
            return Ok(());
        }
        *list = found;
        self.parts.clear();
        for _ in 0..parts.min(max) {
            self.parts.push(self.chunk.part()?);
        }
        Ok(())
    }
}

/// Maximum rows of a span whose bits are counted first.
const MAX_ROWS_COUNTED: usize = 64;

impl ColumnDecoder {
    /// Decodes the rows of a window that lies after those decoded so far. With `last`, the chunk
    /// must end there.
    ///
    /// # Errors
    /// Whatever is wrong with the pages; the place is in the error.
    pub(crate) fn decode(&mut self, window: &Window, last: bool) -> Result<LeafBatch> {
        let mut decode = || {
            let row_spans = window.row_spans(self.unselected);
            let drops_rows = self.unselected == UnselectedRows::DroppedWhileDecoding;
            let keep = row_spans.keep.as_ref().filter(|_| drops_rows);
            let max = max_bytes(self.batch_bytes, window.rows());
            self.reader.weigh(&window.weight, max);
            self.reader.reserve(if drops_rows { window.rows() } else { row_spans.rows });
            self.reader.expect(&row_spans.spans, window.next_wanted_row);
            let mut first = 0;
            for span in &*row_spans.spans {
                let rows = usize::try_from(span.end - span.start)
                    .map_err(|_| Error::usage("a window of more rows than memory"))?;
                // Short spans may have no unwanted rows, even if others have.
                let keep = keep.filter(|keep| {
                    rows > MAX_ROWS_COUNTED || keep.slice(first, rows).count_set_bits() < rows
                });
                match keep {
                    Some(keep) => {
                        self.reader.append_selected(span.start, keep, first..first + rows)?;
                    }
                    None => {
                        self.reader.seek(span.start)?;
                        self.reader.append(rows)?;
                    }
                }
                first += rows;
            }
            // If the last rows are not wanted, the end of the chunk is not checked.
            if last && self.reader.next_row() == window.end() {
                self.reader.finish()?;
            }
            self.reader.take()
        };
        decode().map_err(|e| {
            e.at_page(self.reader.page())
                .at_column(self.column.clone())
                .at_row_group(self.row_group)
        })
    }
}
