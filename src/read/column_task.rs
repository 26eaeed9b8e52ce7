//! A leaf of a row group as a task, and its decoders, one for each share.

use bytes::Bytes;

use super::chunk::Pages;
use super::column::{LeafBatch, LeafReader};
use super::filter_stages::DecodeStep;
use super::page_list::PageList;
use super::page_search::PageSearch;
use super::plan::{ChunkWork, Plan};
use super::supplied::{Step, Stop};
use super::window::{UnselectedRows, Window, max_bytes};
use crate::error::{Error, Result};
use crate::page::PageContext;
use crate::schema::LeafPath;

/// One leaf of one row group: one or more [`ColumnDecoder`]s that decode it.
pub(crate) struct ColumnTask {
    pub(super) chunk: ChunkSource,
    /// Made when they are asked for: in a row group of many small chunks they take more memory than
    /// the chunks.
    pub(super) decoders: Vec<ColumnDecoder>,
    /// While the leaf is being split.
    pub(super) search: Option<PageSearch>,
    /// Whether it may be split.
    pub(super) may_split: bool,
    pub(super) rows_in_group: u64,
    pub(super) work: ChunkWork,
}

/// Decodes windows of one leaf, in ascending order, on one thread at a time.
pub(crate) struct ColumnDecoder {
    reader: LeafReader,
    /// Which of [`Plan::leaves`] it is of.
    column_index: usize,
    /// Whether the leaf is decoded for a stage of the filter.
    is_early: bool,
    drops_rows: bool,
    row_group: usize,
    column: LeafPath,
    /// Bytes that a batch should not exceed.
    batch_bytes: usize,
    /// While a window is decoded: how far.
    position: Option<SpanPosition>,
}

/// A span of a window.
#[derive(Clone, Copy, Default)]
struct SpanPosition {
    /// Which one.
    span: usize,
    /// Rows of those before.
    rows_before: usize,
}

/// The source of a column chunk's bytes.
pub(super) struct ChunkSource {
    pub(super) plan: Plan,
    /// Which of [`Plan::leaves`] it is of.
    pub(super) column_index: usize,
    pub(super) list: PageList,
    pub(super) context: PageContext,
    pub(super) row_group: usize,
}

impl ChunkSource {
    pub(super) fn decoder(&self) -> Result<ColumnDecoder> {
        let Self { plan, column_index, list, context, row_group } = self;
        let pages = Pages::new(list, context.clone(), plan.budget());
        let spec =
            plan.leaves().get(*column_index).ok_or_else(|| Error::internal("no such leaf"))?;
        let pages = pages.keeping(plan.page_cache().dictionary(*row_group, spec.leaf.index));
        let (utf8, quirks) = (plan.options().utf8, plan.footer().quirks());
        let reader = LeafReader::new(spec, pages, utf8, quirks, plan.budget())
            .map_err(|e| e.at_column(spec.leaf.path.dotted()).at_row_group(*row_group))?;
        let is_early = plan.filter().is_some_and(|filter| filter.is_early(*column_index));
        let batch_bytes = plan.batch_bytes();
        Ok(ColumnDecoder {
            reader,
            column_index: *column_index,
            is_early,
            drops_rows: plan.drops_rows(*column_index),
            row_group: *row_group,
            column: spec.leaf.path.clone(),
            batch_bytes,
            position: None,
        })
    }
}

impl ColumnTask {
    pub(super) fn new(chunk: ChunkSource, rows_in_group: u64, work: ChunkWork) -> Self {
        Self { chunk, decoders: Vec::new(), search: None, may_split: true, rows_in_group, work }
    }

    /// Whether the leaf is decoded for a stage of the filter.
    pub(crate) fn is_early(&self) -> bool {
        self.chunk.plan.filter().is_some_and(|filter| filter.is_early(self.chunk.column_index))
    }

    /// Whether the leaf is decoded for this window in this step. A leaf that only the filter needs
    /// is not decoded if the filter is known to be true.
    pub(crate) fn is_wanted(&self, step: DecodeStep, window: &Window) -> bool {
        let ChunkSource { plan, column_index, .. } = &self.chunk;
        let own = match self.is_early() {
            true => DecodeStep::Filter(window.stage_of_leaf(*column_index)),
            false => DecodeStep::Output,
        };
        own == step && (*column_index < plan.output_leaves() || !window.is_proven())
    }

    /// The decoders of the leaf: one, or one for each share.
    ///
    /// # Errors
    /// `Unsupported` if the leaf cannot be read in the wanted type.
    pub(crate) fn decoders(&mut self) -> Result<&mut [ColumnDecoder]> {
        if self.decoders.is_empty() {
            self.decoders = vec![self.chunk.decoder()?];
        }
        Ok(&mut self.decoders)
    }

    /// Drops what has decoded the leaf. If it is decoded again, the window may lie anywhere.
    pub(super) fn restart(&mut self) {
        // The buffers go back to the free lists, for the next leaf.
        self.decoders = Vec::new();
    }

    /// The decoders that have asked for bytes.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &ColumnDecoder> {
        self.decoders.iter().filter(|decoder| decoder.reader.is_waiting())
    }
}

/// Maximum rows of a span whose bits are counted first.
const MAX_ROWS_COUNTED: usize = 64;

impl ColumnDecoder {
    /// Decodes the rows of a window that lies after those decoded so far. With `last`, the chunk
    /// must end there. `given` is what the step before asked for.
    ///
    /// # Errors
    /// Whatever is wrong with the pages; the place is in the error.
    pub(crate) fn decode(
        &mut self,
        window: &Window,
        last: bool,
        given: Option<Bytes>,
    ) -> Result<Step<LeafBatch>> {
        let supplied = given.map_or(Ok(()), |bytes| self.reader.supply(bytes));
        supplied.and_then(|()| Step::from_result(self.decode_rows(window, last))).map_err(|e| {
            self.position = None;
            self.place(e)
        })
    }

    /// Adds to an error the page that it concerns.
    pub(crate) fn place(&self, error: Error) -> Error {
        let error = error.at_page(self.reader.page()).at_column(self.column.dotted());
        error.at_row_group(self.row_group)
    }

    /// Decodes the rows of a window from where it stopped.
    fn decode_rows(&mut self, window: &Window, last: bool) -> Result<LeafBatch, Stop> {
        let unselected = match self.is_early {
            true if window.stage_of_leaf(self.column_index) == 0 => UnselectedRows::Stay,
            false if !self.drops_rows => UnselectedRows::Apart,
            _ => UnselectedRows::DroppedWhileDecoding,
        };
        let row_spans = window.row_spans(unselected);
        let drops_rows = unselected == UnselectedRows::DroppedWhileDecoding;
        let keep = row_spans.keep.as_ref().filter(|_| drops_rows);
        if self.position.is_none() {
            let max = max_bytes(self.batch_bytes, window.rows());
            self.reader.weigh(&window.weight, max);
            self.reader.reserve(if drops_rows { window.rows() } else { row_spans.rows })?;
            self.reader.expect(&row_spans.spans, window.next_wanted_row);
        }
        let position = self.position.get_or_insert_default();
        while let Some(span) = row_spans.spans.get(position.span) {
            let rows = usize::try_from(span.end - span.start)
                .map_err(|_| Error::usage("a window of more rows than memory"))?;
            let first = position.rows_before;
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
            *position = SpanPosition { span: position.span + 1, rows_before: first + rows };
        }
        // If the last rows are not wanted, the end of the chunk is not checked.
        if last && self.reader.next_row() == window.end() {
            self.reader.finish()?;
        }
        self.position = None;
        Ok(self.reader.take()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};

    use super::*;
    use crate::io::WriteSink;
    use crate::read::wiring::GAP;
    use crate::write::WriteOptions;
    use crate::{Compression, Reader, Writer};

    const ROWS: u64 = 120_000;

    /// A file of numbers, some null, of long strings behind a dictionary and of lists; and its
    /// plan.
    fn file(seed: u64) -> (Plan, Bytes) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let numbers = (0..ROWS).map(|_| (rng.u8(..) > 20).then(|| rng.i64(..)));
        let numbers: ArrayRef = Arc::new(numbers.collect::<Int64Array>());
        let texts = (0..ROWS).map(|_| "long".repeat(rng.usize(20..60)) + &rng.u16(..).to_string());
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let lists = (0..ROWS).map(|_| {
            let items = if rng.u8(..) < 3 { 900 } else { rng.usize(0..4) };
            (rng.u8(..) > 20).then(|| (0..items).map(|_| Some(rng.i64(..))).collect::<Vec<_>>())
        });
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let columns = [("n", numbers), ("t", texts), ("l", Arc::new(lists) as ArrayRef)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let options = WriteOptions::new()
            .with_page_rows(7_000)
            .with_column("t", |column| column.with_dictionary(true))
            .with_compression(Compression::Uncompressed);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap().1);
        (Reader::new(file.clone()).unwrap().plan().unwrap(), file)
    }

    /// The chunk of a leaf, whole or in pieces.
    fn task(plan: &Plan, file: &Bytes, leaf: usize, in_pieces: bool) -> ColumnTask {
        let meta = plan.footer().column_chunk(0, leaf).unwrap().meta_data.unwrap();
        let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as u64;
        let range = start..start + meta.total_compressed_size as u64;
        let slots = meta.num_values as u64;
        let list = if in_pieces {
            PageList::in_pieces(range, slots)
        } else {
            PageList::whole(file.slice(range.start as usize..range.end as usize), start, slots)
        };
        let context = plan.page_context(&plan.leaves()[leaf], meta.codec, None);
        let plan = plan.clone();
        let chunk = ChunkSource { plan, column_index: leaf, list, context, row_group: 0 };
        ColumnTask::new(chunk, ROWS, ChunkWork::default())
    }

    /// The array and the levels of a window, and how many bytes it asked for.
    fn decoded(decoder: &mut ColumnDecoder, window: &Window, file: &Bytes) -> (LeafBatch, u64) {
        let (mut given, mut asked) = (None, 0);
        loop {
            match decoder.decode(window, false, given).unwrap() {
                Step::Done(batch) => return (batch, asked),
                Step::NeedsMore(range) => {
                    asked += range.end - range.start;
                    given = Some(file.slice(range.start as usize..range.end as usize));
                }
            }
        }
    }

    #[test]
    fn a_chunk_in_pieces_is_decoded_as_one_that_is_there() {
        let seed = 11;
        let (plan, file) = file(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        for (leaf, split) in (0..9).map(|i| (i % 3, i >= 3)) {
            let (mut whole, mut pieces) =
                (task(&plan, &file, leaf, false), task(&plan, &file, leaf, true));
            if split {
                let mut given = None;
                while let Step::NeedsMore(range) = pieces.split(2, given).unwrap() {
                    given = Some(file.slice(range.start as usize..range.end as usize));
                }
                whole.split(2, None).unwrap().done().unwrap();
            }
            let decoders = pieces.decoders().unwrap().iter_mut().zip(whole.decoders().unwrap());
            for (i, (in_pieces, of_whole)) in decoders.enumerate() {
                let mut at = i as u64 * ROWS / 2;
                while at < ROWS - 100 {
                    let mut runs = Vec::new();
                    let most = [40, 3_000, 30_000][rng.usize(0..3)];
                    for _ in 0..rng.usize(1..30) {
                        let end = (at + rng.u64(1..most)).min(ROWS);
                        runs.extend((at < end).then_some(at..end));
                        // Short gaps are in a span with the rows beside them.
                        let most = if rng.bool() { 10 } else { most };
                        at = end + rng.u64(1..most);
                    }
                    let window = Window::from_runs(runs.into_iter(), u64::MAX, GAP);
                    let (found, _) = decoded(in_pieces, &window, &file);
                    let (expected, asked) = decoded(of_whole, &window, &file);
                    assert_eq!(asked, 0);
                    assert_eq!(&found.array, &expected.array, "seed {seed}, leaf {leaf}, {at}");
                    assert_eq!(found.rep.len(), expected.rep.len());
                }
            }
        }
    }

    #[test]
    fn a_leaf_is_decoded_anew_once_its_decoder_is_dropped() {
        let (plan, file) = file(5);
        for leaf in 0..3 {
            let mut task = task(&plan, &file, leaf, false);
            assert!(task.decoders.is_empty(), "nothing is made before it is asked for");
            let decode = |task: &mut ColumnTask, rows| {
                let window = Window::from_runs(std::iter::once(rows), u64::MAX, GAP);
                decoded(&mut task.decoders().unwrap()[0], &window, &file).0.array
            };
            let first = decode(&mut task, 0..50_000);
            let second = decode(&mut task, 50_000..ROWS);
            task.restart();
            assert!(task.decoders.is_empty() && task.waiting().next().is_none());
            assert_eq!(&decode(&mut task, 50_000..ROWS), &second, "leaf {leaf}");
            task.restart();
            assert_eq!(&decode(&mut task, 0..50_000), &first, "leaf {leaf}");
        }
    }

    #[test]
    fn pages_that_are_skipped_are_not_asked_for() {
        let (plan, file) = file(3);
        let mut task = task(&plan, &file, 0, true);
        let mut window = |rows| {
            let window = Window::from_runs(std::iter::once(rows), u64::MAX, GAP);
            let (batch, asked) = decoded(&mut task.decoders().unwrap()[0], &window, &file);
            assert_eq!(batch.array.as_primitive::<Int64Type>().len(), window.rows());
            asked
        };
        let first = window(0..10);
        let last = window(ROWS - 10..ROWS);
        assert!(first + last < ROWS * 8 / 2, "{first} and {last} bytes");
    }
}
