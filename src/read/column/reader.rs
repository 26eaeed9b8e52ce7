//! [`LeafReader`] decodes the levels and values of one column chunk, row by row, into Arrow arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use bytes::Bytes;

use super::cursor::{PageCursor, misplaced};
use super::memory::ColumnMemory;
use super::rows::{DecodedRows, LevelsAhead, RowOutput};
use super::spec::ColumnSpec;
use super::values::value_reader;
use crate::bytes::saturated;
use crate::error::{Error, Result, Spec};
use crate::levels::{Decoded, Order};
use crate::limits::{Budget, Reservation};
use crate::page::Page;
use crate::read::chunk::Pages;
use crate::read::footer::WriterQuirks;
use crate::read::options::Utf8;
use crate::read::supplied::{Step, Stop};
use crate::read::window::Weight;
use crate::simd::planes::LevelBitPlanes;

/// The decoded rows of a leaf.
#[derive(Debug)]
pub(crate) struct LeafBatch {
    /// One entry for each slot of the leaf: rows outside lists, elements of the innermost list
    /// inside them.
    pub array: ArrayRef,
    /// Definition levels, if they are kept.
    pub def: LevelBitPlanes,
    /// Repetition levels, if they are kept.
    pub rep: LevelBitPlanes,
    /// The highest repetition level.
    pub max_rep: u16,
    /// The memory of array and levels, until the batch is returned to the caller.
    pub memory: Reservation,
    /// The memory of the dictionary, where the array points into it.
    pub dictionary_memory: Option<Arc<Reservation>>,
}

impl LeafBatch {
    /// The same array and levels, whose memory is reserved by this one.
    pub(in crate::read) fn shared(&self) -> Self {
        Self {
            array: self.array.clone(),
            def: self.def.clone(),
            rep: self.rep.clone(),
            max_rep: self.max_rep,
            memory: self.memory.empty(),
            dictionary_memory: None,
        }
    }
}

/// Decodes the rows of one leaf in one row group.
pub(in crate::read) struct LeafReader {
    pub(super) cursor: PageCursor,
    /// Definition level at which the leaf has a slot.
    pub(super) slot: u16,
    pub(super) keep_levels: bool,
    pub(super) order: Order,
    /// Whether the writer pads lists of fixed size that are null.
    pub(super) drops_padding: bool,
    pub(super) ahead: LevelsAhead,
    /// Rows decoded since the last batch.
    pub(super) rows: DecodedRows,
    /// The next row, counted from the first of the row group.
    pub(super) next_row: u64,
    /// Rows of the current step that are decoded or have begun; not 0 between two steps if the
    /// first stopped for bytes.
    pub(super) rows_begun: usize,
    /// Slots that were decoded or skipped so far, if rows repeat; `next_row` is the number of their
    /// rows.
    pub(super) slots_seen: u64,
    pub(super) first_slot_seen: bool,
    /// False if a page depends on the one before it (PARQUET-246).
    pages_stand_alone: bool,
    /// Whether a step failed. Levels and values may then be out of step, so nothing more is read.
    is_broken: bool,
}

impl LeafReader {
    /// A reader of the leaf of `spec` in the chunk of `pages`.
    ///
    /// # Errors
    /// `Unsupported` if the leaf cannot be read as `spec` asks.
    pub(in crate::read) fn new(
        spec: &ColumnSpec,
        pages: Pages,
        utf8: Utf8,
        quirks: WriterQuirks,
        budget: &Budget,
    ) -> Result<Self> {
        let mut values = value_reader(spec, utf8, quirks.carries_prefix)?;
        values.use_free_lists(budget.free_lists());
        let pages =
            if values.wants_dictionary_first() { pages.with_dictionary_first() } else { pages };
        let (max_def, max_rep) = (spec.leaf.max_def, spec.leaf.max_rep);
        Ok(Self {
            cursor: PageCursor {
                physical: spec.leaf.physical,
                max_def,
                max_rep,
                pages,
                values,
                page: None,
                memory: ColumnMemory::new(budget),
                upcoming: (Arc::default(), 0),
            },
            slot: spec.slot,
            keep_levels: spec.keep_levels,
            order: Order::new(&spec.elements),
            drops_padding: quirks.pads_null_arrays,
            ahead: LevelsAhead::new(max_def, max_rep),
            rows: DecodedRows::new(max_def, max_rep),
            next_row: 0,
            rows_begun: 0,
            slots_seen: 0,
            first_slot_seen: false,
            pages_stand_alone: !quirks.carries_prefix,
            is_broken: false,
        })
    }

    /// Runs a step that changes the column. After a step has failed, all later ones are refused. A
    /// step that stopped for bytes must be run again, once they are supplied, and continues.
    pub(super) fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if self.is_broken {
            let refused = Error::usage("a column chunk is not read on after an error in it");
            return Err(refused.into());
        }
        let done = step(self);
        self.is_broken = matches!(done, Err(Stop::Failed(_)));
        done
    }

    /// Takes the bytes that a step asked for.
    ///
    /// # Errors
    /// `Usage` if they are not as many, or none were asked for.
    pub(in crate::read) fn supply(&mut self, bytes: Bytes) -> Result<()> {
        self.cursor.pages.supply(bytes)
    }

    /// Decodes the next `rows` rows.
    ///
    /// # Errors
    /// `Malformed` if the chunk has fewer rows or a page breaks a rule, `Limit` if the arrays would
    /// grow beyond bounds.
    #[cfg(test)]
    pub(in crate::read) fn read(&mut self, rows: usize) -> Result<LeafBatch> {
        self.reserve(rows)?;
        Step::from_result(self.append(rows))?.done()?;
        self.take()
    }

    /// The entries of the dictionary, if the chunk begins with one. Only for a leaf that is read as
    /// a dictionary, and only before the first row.
    ///
    /// # Errors
    /// `Malformed` if the page breaks a rule.
    pub(in crate::read) fn dictionary(&mut self) -> Result<Option<ArrayRef>, Stop> {
        let Some(Page::Dictionary(page, memory)) = self.cursor.pages.next_page()? else {
            return Ok(None);
        };
        self.cursor.set_dictionary(page, memory).map_err(Error::at_dictionary_page)?;
        let array = self.take()?.array;
        Ok(array.as_any_dictionary_opt().map(|dictionary| dictionary.values().clone()))
    }

    /// The memory of what [`LeafReader::dictionary`] gave, which is to be held as long as that.
    pub(in crate::read) fn into_dictionary_memory(self) -> Option<Arc<Reservation>> {
        self.cursor.memory.dictionary
    }

    /// Announces the row ranges that are read next, ascending, and `next_wanted_row`, the next row
    /// that may be wanted after them. A page whose rows are known is decompressed only as far as
    /// these ranges need. Other rows may still be read, at more cost.
    pub(in crate::read) fn expect(&mut self, rows: &Arc<[Range<u64>]>, next_wanted_row: u64) {
        if self.cursor.max_rep == 0 && self.cursor.values.holds(0).is_some() {
            self.cursor.upcoming = (Arc::clone(rows), next_wanted_row);
        }
    }

    /// Starts a batch: values that are decoded next are counted in `weight`. More than `max` bytes
    /// are an error.
    pub(in crate::read) fn weigh(&mut self, weight: &Weight, max: u64) {
        self.cursor.memory.begin_batch(weight, max);
    }

    /// Reserves capacity for the `rows` rows of a batch, before its first row.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(in crate::read) fn reserve(&mut self, rows: usize) -> Result<()> {
        match self.cursor.max_rep {
            0 => self.cursor.values.reserve(rows),
            _ => Ok(()),
        }
    }

    /// Decodes the next `rows` rows, and appends them to the batch that is being made.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub(in crate::read) fn append(&mut self, rows: usize) -> Result<(), Stop> {
        self.guarded(|reader| {
            let mut output = RowOutput::Append(reader.take_rows());
            let decoded = reader.go(rows, &mut output);
            if let RowOutput::Append(kept) = output {
                reader.rows = kept;
            }
            decoded
        })
    }

    pub(super) fn take_rows(&mut self) -> DecodedRows {
        std::mem::replace(
            &mut self.rows,
            DecodedRows::new(self.cursor.max_def, self.cursor.max_rep),
        )
    }

    /// Makes a batch of the rows decoded since the last one.
    ///
    /// # Errors
    /// `Limit` if they do not fit an array, `Usage` if something was wrong with them.
    pub(in crate::read) fn take(&mut self) -> Result<LeafBatch> {
        Step::from_result(self.guarded(|reader| Ok(reader.take_batch()?)))?.done()
    }

    fn take_batch(&mut self) -> Result<LeafBatch> {
        if self.slots_left() == 0
            && self.cursor.page.as_ref().is_some_and(|page| page.in_part.is_none())
        {
            self.cursor.close()?;
        }
        let DecodedRows { validity, def, rep } = self.take_rows();
        let slots = validity.len();
        let cursor = &mut self.cursor;
        let array = cursor.values.finish(validity.into_nulls(), slots)?;
        // The values keep buffers for the next batch, which are not part of this one.
        let memory = cursor.memory.take_array(cursor.values.bytes_held())?;
        let points = points_into_dictionary(array.data_type());
        let dictionary_memory = points.then(|| cursor.memory.dictionary.clone()).flatten();
        Ok(LeafBatch { array, def, rep, max_rep: cursor.max_rep, memory, dictionary_memory })
    }

    /// Decodes or skips rows.
    pub(super) fn go(&mut self, rows: usize, output: &mut RowOutput) -> Result<(), Stop> {
        if self.cursor.max_rep == 0 {
            self.decode_flat(rows, output)?;
        } else {
            self.decode_nested(rows, output)?;
        }
        self.rows_begun = 0;
        self.next_row += rows as u64;
        Ok(self.ends_with_page()?)
    }

    /// Checks that nothing is left of a page that should end with the last row that was read.
    pub(super) fn ends_with_page(&self) -> Result<()> {
        match self.cursor.pages.rows() {
            Some((located, _)) if located.end == self.next_row && self.slots_left() > 0 => {
                Err(misplaced(&located, "has more"))
            }
            _ => Ok(()),
        }
    }

    /// Slots left in the current page.
    pub(super) fn slots_left(&self) -> usize {
        self.ahead.left() + self.cursor.slots_left()
    }

    /// Skips forward to a row, counted from the first of the row group. It must not lie before the
    /// next row.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub(in crate::read) fn seek(&mut self, row: u64) -> Result<(), Stop> {
        self.guarded(|reader| reader.move_to(row))
    }

    fn move_to(&mut self, row: u64) -> Result<(), Stop> {
        if row < self.next_row {
            return Err(Error::internal("rows are decoded in ascending order").into());
        }
        let rows = row.saturating_sub(self.next_row);
        if rows == 0 && self.cursor.page.is_some() {
            return Ok(());
        }
        if self.cursor.pages.rows().is_some_and(|(located, _)| row >= located.end) {
            self.next_row = self.cursor.pages.seek(row)?;
            self.cursor.close()?;
            self.first_slot_seen = false;
            self.ahead.clear();
        }
        self.skip(row.saturating_sub(self.next_row))
    }

    /// Skips the next `rows` rows.
    ///
    /// # Errors
    /// As [`LeafReader::read`].
    pub(in crate::read) fn skip(&mut self, rows: u64) -> Result<(), Stop> {
        let mut left = rows;
        while left > 0 {
            let n = saturated(left).min(SKIP_BLOCK);
            if self.cursor.max_rep == 0 {
                let between_pages =
                    self.cursor.page.as_ref().is_none_or(|page| page.slots_left == 0);
                if between_pages && self.pages_stand_alone && !self.cursor.pages.are_located() {
                    let max = saturated(left);
                    if let Some(slots) = self.cursor.pages.skip_page(max)? {
                        self.first_slot_seen |= slots > 0;
                        self.next_row += slots as u64;
                        left -= slots as u64;
                        continue;
                    }
                }
                let n = self.cursor.page.as_ref().map_or(1, |page| page.slots_left.max(1)).min(n);
                self.go(n, &mut RowOutput::Skip)?;
                left -= n as u64;
            } else {
                self.go(n, &mut RowOutput::Skip)?;
                left -= n as u64;
            }
        }
        Ok(())
    }

    /// Checks that no row is left.
    ///
    /// # Errors
    /// `Malformed` if one is.
    pub(in crate::read) fn finish(&mut self) -> Result<(), Stop> {
        self.guarded(|reader| {
            if reader.ahead.left() > 0 || reader.cursor.open()?.is_some() {
                let more = "the column chunk has more rows than its row group";
                return Err(Error::malformed(Spec::Pages, more).into());
            }
            Ok(())
        })
    }

    /// The next row, counted from the first of the row group.
    pub(in crate::read) fn next_row(&self) -> u64 {
        self.next_row
    }

    /// Whether a step has asked for bytes that are not supplied yet.
    pub(in crate::read) fn is_waiting(&self) -> bool {
        self.cursor.pages.are_waiting()
    }

    /// Index of the page that is being read.
    pub(in crate::read) fn page(&self) -> usize {
        self.cursor.pages.page()
    }

    /// Decodes or skips the values of a run of slots whose validity begins at slot `first`.
    pub(super) fn decode_values(
        &mut self,
        decoded: Decoded,
        first: usize,
        output: &mut RowOutput,
    ) -> Result<()> {
        let Decoded { slots, values } = decoded;
        if let Some(page) = &mut self.cursor.page {
            page.take_values(values)?;
        }
        let Some(kept) = output.rows() else {
            return self.cursor.skip_values(values);
        };
        if values > 0 {
            self.cursor.ensure_decompressed(values)?;
            let max_bytes = self.cursor.memory.capacity();
            self.cursor.values.read(values, max_bytes)?;
        }
        if values < slots
            && let Some(bitmap) = kept.validity.bitmap()
        {
            let max_bytes = self.cursor.memory.capacity();
            self.cursor.values.room_for_nulls(slots - values, max_bytes)?;
            self.cursor.values.spread(bitmap, first, slots, values);
        }
        let bytes = self.cursor.values.bytes_held() + kept.bytes_held();
        self.cursor.memory.set_array_bytes(bytes)
    }
}

/// Whether arrays of a type may hold the dictionary of a chunk.
fn points_into_dictionary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Dictionary(..)
            | DataType::RunEndEncoded(..)
            | DataType::Utf8View
            | DataType::BinaryView
    )
}

/// Rows skipped at a time where levels must be walked.
const SKIP_BLOCK: usize = 64 << 10;

#[cold]
pub(super) fn too_few_rows(found: usize, wanted: usize) -> Error {
    Error::malformed(
        Spec::Pages,
        format_args!(
            "the column chunk has fewer rows than its row group: {wanted} wanted, {found} left"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::bytes::Bytes;
    use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::format::{CompressionCodec, Encoding};
    use crate::io::WriteSink;
    use crate::page::PageContext;
    use crate::read::Plan;
    use crate::read::page_list::{LocatedPage, PageList};
    use crate::read::page_search::PageSearch;
    use crate::schema::Dictionaries;
    use crate::write::WriteOptions;
    use crate::{Compression, ErrorKind, Reader, Writer};

    #[test]
    fn no_array_is_made_behind_what_is_wrong() {
        // Nulls first: their keys are 0, before the dictionary is known to have no entry.
        let values: StringArray = (0..3_000).map(|i| (i >= 2_000).then_some("v")).collect();
        let batch = RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap();
        let options = WriteOptions::new().with_page_rows(1_000);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let (_, file) = writer.into_inner().unwrap();
        let file = Bytes::from(file);
        let reader = Reader::new(file.clone()).unwrap();
        for dictionaries in [Dictionaries::None, Dictionaries::Strings] {
            let plan = reader.clone().dictionaries(dictionaries).plan().unwrap();
            let meta = plan.footer().column_chunk(0, 0).unwrap().meta_data.unwrap();
            let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as usize;
            let end = start + meta.total_compressed_size as usize;
            let leaf = &plan.leaves()[0];
            let context = plan.page_context(leaf, meta.codec, None);
            // Without its last page.
            let list = PageList::whole(file.slice(start..end - 20), start as u64, 3_000);
            let pages = Pages::new(&list, context, plan.budget());
            let utf8 = plan.options().utf8;
            let mut reader =
                LeafReader::new(leaf, pages, utf8, WriterQuirks::default(), plan.budget()).unwrap();
            let mut append =
                |rows| Step::from_result(reader.append(rows)).map(drop).map_err(|e| e.kind());
            append(1_500).unwrap();
            assert!(matches!(append(1_500).unwrap_err(), ErrorKind::Malformed(_)));
            assert_eq!(append(1).unwrap_err(), ErrorKind::Usage);
            assert_eq!(reader.take().unwrap_err().kind(), ErrorKind::Usage);
        }
    }

    #[test]
    fn more_than_was_expected_of_a_page_is_read_all_the_same() {
        // The first half is longer than the second, or has more values: the guess of where to cut
        // goes wrong.
        let text =
            |i: usize| format!("{} {i}", "long".repeat(if i % 1_000 < 500 { 12 } else { 1 }));
        let texts: StringArray = (0..2_000).map(|i| Some(text(i))).collect();
        let some = (0..2_000).map(|i| (i % 1_000 < 500 || i % 50 == 0).then(|| text(i)));
        let numbers = Int64Array::from_iter((0..2_000).map(|i| (i % 1_000 < 500).then_some(i)));
        let columns: [ArrayRef; 3] =
            [Arc::new(texts), Arc::new(some.collect::<StringArray>()), Arc::new(numbers)];
        let mut in_part = 0;
        for column in columns {
            let batch = RecordBatch::try_from_iter([("v", column.clone())]).unwrap();
            let options = WriteOptions::new()
                .with_page_rows(1_000)
                .with_compression(Compression::Snappy)
                .with_column("v", |column| column.with_encoding(Encoding::Plain));
            let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            let file = Bytes::from(writer.into_inner().unwrap().1);
            let plan = Reader::new(file.clone()).unwrap().plan().unwrap();
            let meta = plan.footer().column_chunk(0, 0).unwrap().meta_data.unwrap();
            let start = meta.data_page_offset as usize;
            let bytes = file.slice(start..start + meta.total_compressed_size as usize);
            let leaf = &plan.leaves()[0];
            let context = plan.page_context(leaf, CompressionCodec::Snappy, None);
            let list = PageList::whole(bytes, start as u64, 2_000);
            let list = located(&list, &context, plan.budget());
            for (first, expected) in [(0, 3), (0, 300), (400, 520), (700, 701), (990, 1_010)] {
                let pages = Pages::new(&list, context.clone(), plan.budget());
                let mut reader = LeafReader::new(
                    leaf,
                    pages,
                    Utf8::Strict,
                    WriterQuirks::default(),
                    plan.budget(),
                )
                .unwrap();
                reader.expect(&std::iter::once(first..expected).collect(), u64::MAX);
                reader.seek(first).unwrap();
                let n = expected as usize - first as usize;
                let found = reader.read(n).unwrap().array;
                assert_eq!(*found, *column.slice(first as usize, n));
                in_part +=
                    usize::from(reader.cursor.page.as_ref().is_some_and(|p| p.in_part.is_some()));
                // More of the same page, and of the next.
                let found = reader.read(2_000 - expected as usize).unwrap().array;
                assert_eq!(*found, *column.slice(expected as usize, 2_000 - expected as usize));
            }
        }
        assert!(in_part > 0, "no page was opened in part");
    }

    /// The same pages, with the rows of each.
    fn located(list: &PageList, context: &PageContext, budget: &Budget) -> PageList {
        let step = PageSearch::new(list, 2_000).step(context, budget, None);
        step.done().unwrap().unwrap()
    }

    /// A chunk of long strings, uncompressed: its pages, and the bytes before them.
    fn chunk(name: &str, dictionary: bool) -> (Plan, Bytes, Vec<LocatedPage>) {
        let values = (0..2_000).map(|i| format!("a rather long string {name} {}", i % 9));
        let values = StringArray::from_iter_values(values);
        let batch = RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap();
        let options = WriteOptions::new()
            .with_page_rows(1_000)
            .with_compression(Compression::Uncompressed)
            .with_column("v", |column| match dictionary {
                true => column.with_dictionary(true),
                false => column.with_encoding(Encoding::Plain),
            });
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let (_, file) = writer.into_inner().unwrap();
        let file = Bytes::from(file);
        let plan = Reader::new(file.clone()).unwrap().plan().unwrap();
        let meta = plan.footer().column_chunk(0, 0).unwrap().meta_data.unwrap();
        let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as usize;
        let bytes = file.slice(start..start + meta.total_compressed_size as usize);
        let context = plan.page_context(&plan.leaves()[0], meta.codec, None);
        let list = PageList::whole(bytes.clone(), start as u64, 2_000);
        let list = located(&list, &context, plan.budget());
        let pages = list.pages().unwrap().to_vec();
        (plan, bytes.slice(..pages[0].range.start as usize - start), pages)
    }

    #[test]
    fn pages_without_indices_may_stand_before_those_that_have_them() {
        let (coded, head, mut pages) = chunk("coded", true);
        let (_, none, plain) = chunk("plain", false);
        assert!(!head.is_empty() && none.is_empty());
        assert_eq!((pages.len(), plain.len()), (2, 2));
        pages[0].bytes = plain[0].bytes.clone();
        for (views, dictionaries) in [
            (false, Dictionaries::None),
            (true, Dictionaries::None),
            (false, Dictionaries::Strings),
        ] {
            let mut options = coded.options().clone();
            (options.arrow.views, options.arrow.dictionaries) = (views, dictionaries);
            let plan = coded.footer().plan(&options, coded.file_len(), None).unwrap();
            let leaf = &plan.leaves()[0];
            let context = plan.page_context(leaf, CompressionCodec::Uncompressed, None);
            let (list, _) = PageList::located(head.clone(), 4, pages.clone(), &context).unwrap();
            let pages = Pages::new(&list, context, plan.budget());
            let mut reader =
                LeafReader::new(leaf, pages, Utf8::Strict, WriterQuirks::default(), plan.budget())
                    .unwrap();
            let array = reader.read(2_000).unwrap().array;
            array.to_data().validate_full().unwrap();
            let texts = crate::read::column::materialize(array, &DataType::Utf8).unwrap();
            let expected = |i: usize| {
                let name = if i < 1_000 { "plain" } else { "coded" };
                format!("a rather long string {name} {}", i % 9)
            };
            for (i, text) in texts.as_string::<i32>().iter().enumerate() {
                assert_eq!(text, Some(expected(i).as_str()), "row {i}, views {views}");
            }
        }
    }
}
