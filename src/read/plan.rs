//! The plan of a read: which leaves, which row groups, which rows of them, and the bytes that each row group needs.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use bytes::Bytes;

use super::chunk::{PageList, PlacedPage, Pull};
use super::filter::Filter;
use super::footer::Footer;
use super::options::{PageIndexUse, ReadOptions, VirtualColumn};
use super::page_maps::PageMaps;
use super::row_group::RowGroup;
use super::sieve::{Sieve, first_of_bloom};
use super::unit::{Chunk, Unit};
use super::window::GAP;
use crate::error::{Error, Result, Spec};
use crate::format::{
    ColumnChunkRef, ColumnMetaData, ColumnMetaDataRef, CompressionCodec, OffsetIndex,
};
use crate::limits::Budget;
use crate::page::PageContext;
use crate::predicate::Answer;
use crate::schema::convert::{Conversion, conversion};
use crate::schema::{Kind, Leaf, Projection, Shape, to_arrow};
use crate::selection::{PageMap, RowSelection};
use crate::thrift::{self, Read};

/// Everything that a read does, decided before the first column chunk is fetched. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plan {
    shared: Arc<Shared>,
    page_maps: PageMaps,
}

#[derive(Debug)]
struct Shared {
    footer: Footer,
    options: ReadOptions,
    schema: SchemaRef,
    shapes: Vec<Shape>,
    leaves: Vec<LeafPlan>,
    /// How many of the leaves the output is made of; the others are for the filter alone.
    output_leaves: usize,
    filter: Option<Filter>,
    /// For each column of the output, whether unwanted rows are left out while its leaves are decoded.
    column_picks: Vec<bool>,
    /// The same for each leaf.
    picks: Vec<bool>,
    ranges: Vec<RowRange>,
    /// Row groups of which the footer proves that the filter is true of no row.
    pruned: Vec<usize>,
    budget: Budget,
    file_len: u64,
    file_name: Option<Arc<str>>,
}

/// A leaf that is read, and what it becomes.
#[derive(Debug, Clone)]
pub struct LeafPlan {
    /// The leaf.
    pub leaf: Leaf,
    /// The Arrow type that it is read as.
    pub data_type: DataType,
    /// The way there.
    pub conversion: Conversion,
    /// Whether its levels are kept for `assemble`, because it is the first leaf below a list or a struct that may be null.
    pub keep_levels: bool,
    /// Definition level at which the leaf has a slot: that of the elements of the innermost list around it.
    pub slot: u16,
}

/// Rows of one row group that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRange {
    /// Index of the row group.
    pub row_group: usize,
    /// From the first row of it that is wanted to behind the last, counted from its first.
    pub rows: Range<u64>,
    /// Which of its rows, all counted; `None` if they are all of `rows`.
    pub selection: Option<RowSelection>,
    /// Rows, counted the same way, for which the filter is known to be true: it is not evaluated for them. `None` if that is known of none.
    pub sure: Option<RowSelection>,
    /// Number of its first row in the file.
    pub first_row: u64,
    /// The rows of the row group that it was chosen from: all, unless it is read in [parts](Plan::parts).
    pub part: Range<u64>,
}

/// One row group of a plan, of which it is known where the column chunks are: wants the indexes of their pages, if they may help.
#[derive(Debug)]
pub struct PageIndexPlan {
    plan: Plan,
    range: RowRange,
    rows_in_group: u64,
    chunks: Vec<ChunkPlan>,
    needs: Vec<Range<u64>>,
    /// The leaf of each of the needs.
    leaves: Vec<usize>,
    bytes_per_row: u64,
}

/// One row group of a plan: wants the bytes of its column chunks, or of some of their pages.
#[derive(Debug)]
pub struct RowGroupPlan {
    plan: Plan,
    range: RowRange,
    rows_in_group: u64,
    chunks: Vec<ChunkPlan>,
    needs: Vec<Range<u64>>,
    bytes_per_row: u64,
    ignored: Vec<Error>,
}

/// What comes of the bytes of a row group.
pub enum Supplied {
    /// The row group, ready to be decoded.
    Ready(Box<RowGroup>),
    /// Pages were not where the index says: it is put aside, and more bytes are wanted.
    Again(Box<RowGroupPlan>),
}

#[derive(Debug)]
struct ChunkPlan {
    slots: u64,
    codec: CompressionCodec,
    bytes: Range<u64>,
    pages: Option<WantedPages>,
    /// Where the bytes come from while they are decoded, if they are not fetched.
    pull: Option<Arc<dyn Pull>>,
}

/// The pages that are wanted of a chunk.
#[derive(Debug)]
struct WantedPages {
    map: Arc<PageMap>,
    /// Indices of them, in stretches that follow each other without a gap.
    stretches: Vec<Range<usize>>,
}

impl Footer {
    /// Plans a read of a file of `file_len` bytes.
    ///
    /// # Errors
    /// `Usage` if the options name what the file does not have, `Unsupported` if a column cannot be mapped to Arrow.
    pub fn plan(
        &self,
        options: &ReadOptions,
        file_len: u64,
        file_name: Option<Arc<str>>,
    ) -> Result<Plan> {
        let budget = Budget::new(options.limits.memory_bytes);
        self.plan_within(options, file_len, file_name, budget)
    }

    fn plan_within(
        &self,
        options: &ReadOptions,
        file_len: u64,
        file_name: Option<Arc<str>>,
        budget: Budget,
    ) -> Result<Plan> {
        let mapping =
            to_arrow(self.schema(), self.key_values(), &options.projection, &options.arrow)?;
        let mut leaves = leaf_plans(self, &mapping.shapes)?;
        let output_leaves = leaves.len();
        let filter = match &options.filter {
            Some(filter) => Some(Filter::new(filter, self, options, &mapping.shapes, &mut leaves)?),
            None => None,
        };
        let (column_picks, picks) = picks(&mapping.shapes, filter.as_ref());
        let mut ranges = row_ranges(self, options)?;
        let mut pruned = Vec::new();
        if let Some(filter) = &filter {
            ranges = prune(self, filter, ranges, &mut pruned)?;
        }
        let schema = with_virtual_columns(mapping.schema, &options.virtual_columns);
        Ok(Plan {
            shared: Arc::new(Shared {
                footer: self.clone(),
                options: options.clone(),
                schema,
                shapes: mapping.shapes,
                leaves,
                output_leaves,
                filter,
                column_picks,
                picks,
                ranges,
                pruned,
                budget,
                file_len,
                file_name,
            }),
            page_maps: PageMaps::default(),
        })
    }
}

impl Plan {
    /// With the offset indexes that other reads of the same file have read, and will read.
    #[must_use]
    pub fn with_page_maps(self, page_maps: &PageMaps) -> Self {
        Self { page_maps: page_maps.clone(), ..self }
    }

    /// What other reads of the same file have left.
    pub(super) fn page_maps(&self) -> &PageMaps {
        &self.page_maps
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.shared.schema
    }

    /// The metadata of the file.
    pub fn footer(&self) -> &Footer {
        &self.shared.footer
    }

    /// The options of the read.
    pub fn options(&self) -> &ReadOptions {
        &self.shared.options
    }

    /// The leaves that are read, depth-first in the order of the output; then those that only the filter needs.
    pub fn leaves(&self) -> &[LeafPlan] {
        &self.shared.leaves
    }

    /// How many of the leaves are read of the rows of `range`: not those of a filter that is known to be true of them.
    fn leaves_of(&self, range: &RowRange) -> usize {
        if range.is_sure() { self.shared.output_leaves } else { self.leaves().len() }
    }

    /// How many of the leaves the output is made of.
    pub(super) fn output_leaves(&self) -> usize {
        self.shared.output_leaves
    }

    /// Whether unwanted rows are left out of a leaf while it is decoded.
    pub(super) fn picks(&self, leaf: usize) -> bool {
        self.shared.picks.get(leaf).copied().unwrap_or_default()
    }

    /// Whether they are left out of all leaves of a column.
    pub(super) fn column_picks(&self, column: usize) -> bool {
        self.shared.column_picks.get(column).copied().unwrap_or_default()
    }

    /// Whether there are columns that are decoded after the filter, of which rows are not left out.
    pub(super) fn has_late_lists(&self) -> bool {
        let early = self.filter().map(Filter::early_columns).unwrap_or_default();
        let picks = self.shared.column_picks.iter().enumerate();
        picks.into_iter().any(|(i, picks)| !picks && early.get(i) != Some(&true))
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.shared.filter.as_ref()
    }

    pub(super) fn file_len(&self) -> u64 {
        self.shared.file_len
    }

    /// The row groups that are read, and which rows of them.
    pub fn ranges(&self) -> &[RowRange] {
        &self.shared.ranges
    }

    /// Row groups that are not read, because the footer proves that the filter is true of none of their rows.
    pub fn pruned(&self) -> &[usize] {
        &self.shared.pruned
    }

    /// Rows that the read gives; with a filter, those among which it chooses, offset and limit left out.
    pub fn rows(&self) -> u64 {
        self.shared.ranges.iter().map(RowRange::count).sum()
    }

    /// What the read may hold in memory.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    pub(super) fn shapes(&self) -> &[Shape] {
        &self.shared.shapes
    }

    pub(super) fn file_name(&self) -> Option<&Arc<str>> {
        self.shared.file_name.as_ref()
    }

    /// A plan that reads of the same file, within the same memory, only what the filter needs, and gives the numbers of the rows that pass, in the file;
    /// `None` if there is no filter, or nothing else to read.
    ///
    /// # Errors
    /// As [`Footer::plan`].
    pub fn scout(&self) -> Result<Option<Self>> {
        let Some(filter) = self.filter() else { return Ok(None) };
        if (0..self.leaves().len()).all(|leaf| filter.is_early(leaf)) {
            return Ok(None);
        }
        let mut options = self.options().clone();
        options.projection = Projection::names::<String>([]);
        options.virtual_columns = vec![VirtualColumn::RowNumber { name: "row".into() }];
        let budget = self.budget().clone();
        let plan = self.footer().plan_within(&options, self.file_len(), None, budget)?;
        Ok(Some(plan.with_page_maps(&self.page_maps)))
    }

    /// The indexes of a row group of [`Plan::ranges`] that may be asked for, so that they can be fetched together with those of others.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub fn index_ranges(&self, range: &RowRange) -> Result<Vec<Range<u64>>> {
        let mut ranges = self.sieve(range)?.needs().to_vec();
        if self.filter().is_none() || range.is_sure() {
            ranges.extend_from_slice(self.row_group(range)?.needs());
        } else if self.index_may_help(range.row_group)? {
            for leaf in self.leaves() {
                let chunk = self.footer().column_chunk_ref(range.row_group, leaf.leaf.index)?;
                ranges.extend(self.offset_index(&chunk));
            }
        }
        Ok(ranges)
    }

    /// Asks more of a row group of [`Plan::ranges`] before it is read for the filter. Without one there is nothing to ask.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub fn sieve(&self, range: &RowRange) -> Result<Sieve> {
        Sieve::new(self, range)
    }

    /// The rows of a row group as they were before indexes were asked, from those of `rest` on: for one whose indexes were found to be wrong.
    pub fn unsieved(&self, rest: &RowRange) -> RowRange {
        self.page_maps.forget(rest.row_group);
        let mut ranges = self.ranges().iter();
        match ranges.find(|range| range.row_group == rest.row_group) {
            Some(range) if self.filter().is_some() => {
                let end = range.rows.end.min(rest.part.end);
                let start = rest.rows.start.min(end);
                let (rows, part) = (start..end, rest.part.clone());
                let of_part = |all: &RowSelection| {
                    all.and(&RowSelection::from_ranges(all.len(), [rows.clone()])?)
                };
                match range.selection.as_ref().map(of_part).transpose() {
                    Ok(selection) => RowRange { rows, selection, part, ..range.clone() },
                    Err(_) => rest.clone(),
                }
            }
            _ => rest.clone(),
        }
    }

    /// A row group of [`Plan::ranges`] in parts for which about `bytes` bytes are fetched each, where page indexes tell the pages of each; whole where they
    /// do not, or where it is hardly larger.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub fn parts(&self, range: &RowRange, bytes: u64) -> Result<Vec<RowRange>> {
        let row_group = self.row_group(range)?;
        let rows = row_group.rows_in_group;
        let wanted = share(row_group.chunk_bytes(), range.rows.end - range.rows.start, rows);
        let n = wanted / bytes.max(1);
        let never = self.options().page_index == PageIndexUse::Never;
        if n < 2 || never || self.footer().writer().carries_prefix {
            return Ok(vec![range.clone()]);
        }
        for (leaf, chunk) in self.leaves().iter().zip(&row_group.chunks) {
            let meta = self.footer().column_chunk_ref(range.row_group, leaf.leaf.index)?;
            if chunk.slots > 0 && self.offset_index(&meta).is_none() {
                return Ok(vec![range.clone()]);
            }
        }
        let wanted = range.to_selection(rows)?;
        // Whole batches, where they are not large themselves.
        let len = (range.rows.end - range.rows.start).div_ceil(n);
        let batch = self.options().batch_rows as u64;
        let len = if batch < len { len - len % batch } else { len };
        let mut parts = Vec::new();
        let mut start = range.rows.start;
        while start < range.rows.end {
            let part = start..range.rows.end.min(start.saturating_add(len));
            start = part.end;
            let of_part = wanted.and(&RowSelection::from_ranges(rows, [part.clone()])?)?;
            let of_part = range.with_selection(of_part);
            parts.extend(of_part.map(|range| RowRange { part, ..range }));
        }
        Ok(parts)
    }

    /// Compressed bytes of the column chunks that a row group would be read from.
    pub(super) fn bytes_of(&self, row_group: usize) -> Result<u64> {
        let mut bytes = 0u64;
        for leaf in self.leaves() {
            let meta = self.footer().column_chunk_ref(row_group, leaf.leaf.index)?.meta_data;
            let size = meta.map_or(0, |meta| meta.total_compressed_size);
            bytes = bytes.saturating_add(u64::try_from(size).unwrap_or_default());
        }
        Ok(bytes)
    }

    /// Whether the page indexes of the filter's leaves may save more than they cost.
    pub(super) fn index_may_help(&self, row_group: usize) -> Result<bool> {
        if self.footer().writer().carries_prefix {
            return Ok(false);
        }
        Ok(match self.options().page_index {
            PageIndexUse::Never => false,
            PageIndexUse::Always => true,
            PageIndexUse::Auto => WORTH_AN_INDEX < self.bytes_of(row_group)?,
        })
    }

    /// What is fetched first of a bloom filter.
    pub(super) fn bloom_range(&self, meta: &ColumnMetaData) -> Option<Range<u64>> {
        let start = u64::try_from(meta.bloom_filter_offset?).ok()?;
        let len = meta.bloom_filter_length.and_then(|len| u64::try_from(len).ok());
        first_of_bloom(start, len, self.shared.file_len)
    }

    /// Where the dictionary page of a chunk lies, if the footer says so.
    pub(super) fn dictionary_range(&self, meta: &ColumnMetaData) -> Option<Range<u64>> {
        let start = u64::try_from(meta.dictionary_page_offset?).ok().filter(|start| *start > 0)?;
        let end = u64::try_from(meta.data_page_offset).ok()?;
        (start < end && end <= self.shared.file_len).then_some(start..end)
    }

    /// Where the column index of a chunk lies; `None` if there is none, or not in the file.
    pub(super) fn column_index(&self, chunk: &ColumnChunkRef<'_>) -> Option<Range<u64>> {
        self.within_file(chunk.column_index_offset?, chunk.column_index_length?)
    }

    fn within_file(&self, start: i64, len: i32) -> Option<Range<u64>> {
        let start = u64::try_from(start).ok()?;
        let len = u64::try_from(len).ok().filter(|len| *len > 0)?;
        let end = start.checked_add(len).filter(|end| *end <= self.shared.file_len)?;
        Some(start..end)
    }

    /// Plans one row group of [`Plan::ranges`]: decodes the metadata of its chunks.
    ///
    /// # Errors
    /// `Malformed` if a chunk's metadata contradict the schema or the file, `Unsupported` if its data lie in another file,
    /// `Crypto` if it is encrypted.
    pub fn row_group(&self, range: &RowRange) -> Result<PageIndexPlan> {
        let footer = self.footer();
        let rows_in_group = footer.row_group_rows(range.row_group)?;
        let mut chunks = Vec::with_capacity(self.leaves().len());
        let mut indexes = Vec::new();
        let mut bytes_per_row = 0u64;
        for (i, leaf) in self.leaves().iter().take(self.leaves_of(range)).enumerate() {
            let (chunk, width, index) = self
                .chunk(range.row_group, leaf)
                .map_err(|e| e.at_column(leaf.leaf.path.dotted()).at_row_group(range.row_group))?;
            bytes_per_row = bytes_per_row.saturating_add(width / rows_in_group.max(1));
            indexes.extend(index.map(|index| (i, index)));
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
        // Pages of these writers need those in front of them.
        if !helps || footer.writer().carries_prefix {
            indexes.clear();
        }
        let wanted = range.wanted(rows_in_group)?;
        indexes.retain(|(i, _)| {
            let leaf = self.leaves().get(*i).map_or(usize::MAX, |leaf| leaf.leaf.index);
            let known = self.page_maps.find(range.row_group, leaf);
            match (known, chunks.get_mut(*i)) {
                (Some(map), Some(chunk)) => chunk.pages = Some(WantedPages::new(map, &wanted)),
                _ => return true,
            }
            false
        });
        let (leaves, needs) = indexes.into_iter().unzip();
        let (plan, range) = (self.clone(), range.clone());
        Ok(PageIndexPlan { plan, range, rows_in_group, chunks, needs, leaves, bytes_per_row })
    }

    /// Keeps the pages of a leaf whose offset index was read; nothing of one that is not sound.
    pub(super) fn keep_pages(&self, row_group: usize, leaf: usize, index: &OffsetIndex) {
        let map = || -> Result<Option<PageMap>> {
            let chunk = self.footer().column_chunk_ref(row_group, leaf)?;
            let Some(meta) = chunk.meta_data else { return Ok(None) };
            let slots = not_negative(meta.num_values, "num_values")?;
            let rows = self.footer().row_group_rows(row_group)?;
            PageMap::new(index, self.byte_range(&meta, slots)?, rows).map(Some)
        };
        if let Ok(Some(map)) = map() {
            self.page_maps.keep(row_group, leaf, &Arc::new(map));
        }
    }

    /// The chunk of a leaf: what and where it is, about how many bytes it takes in memory, and where its offset index is.
    fn chunk(
        &self,
        row_group: usize,
        plan: &LeafPlan,
    ) -> Result<(ChunkPlan, u64, Option<Range<u64>>)> {
        let chunk = self.footer().column_chunk_ref(row_group, plan.leaf.index)?;
        if let Some(path) = chunk.file_path.filter(|path| !path.is_empty()) {
            return Err(Error::unsupported(
                "column chunks in other files",
                format_args!(
                    "the data lie in the file {path:?}, as in a _metadata summary; read that file instead"
                ),
            ));
        }
        let index = self.offset_index(&chunk);
        let Some(meta) = chunk.meta_data else {
            return Err(Error::crypto(
                "the column is encrypted, and reading encrypted columns is not supported yet",
            ));
        };
        let found = meta.r#type;
        let expected = plan.leaf.physical.format_type();
        if found != expected {
            return Err(Error::mismatch(Spec::Metadata("ColumnMetaData"), "type", expected, found));
        }
        let slots = not_negative(meta.num_values, "num_values")?;
        let bytes = self.byte_range(&meta, slots)?;
        let width = memory_of(&meta, slots, &plan.data_type);
        let index = index.filter(|_| slots > 0);
        Ok((ChunkPlan { slots, codec: meta.codec, bytes, pages: None, pull: None }, width, index))
    }

    /// Where the offset index of a chunk lies; `None` if there is none, or not in the file.
    pub(super) fn offset_index(&self, chunk: &ColumnChunkRef<'_>) -> Option<Range<u64>> {
        self.within_file(chunk.offset_index_offset?, chunk.offset_index_length?)
    }

    /// What opening the pages of a leaf needs to know.
    pub(super) fn page_context(&self, leaf: &LeafPlan, codec: CompressionCodec) -> PageContext {
        let writer = self.footer().writer();
        let mut context = PageContext::new(&leaf.leaf, codec, &self.options().limits);
        context.verify_checksums = self.options().verify_checksums;
        context.ignore_is_compressed = writer.ignores_is_compressed;
        context.bit_order = writer.bit_order;
        context
    }

    /// Adds the place of a leaf to an error.
    fn place(&self, error: Error, leaf: usize, range: &RowRange) -> Error {
        let error = error.at_row_group(range.row_group);
        match self.leaves().get(leaf) {
            Some(leaf) => error.at_column(leaf.leaf.path.dotted()),
            None => error,
        }
    }

    /// Where the chunk lies (FORMAT.md section 1): from its dictionary page, if it has one, else from its first data page.
    fn byte_range(&self, meta: &ColumnMetaDataRef<'_>, slots: u64) -> Result<Range<u64>> {
        // Without values there is nothing to read, and the offsets may be meaningless.
        if slots == 0 {
            return Ok(0..0);
        }
        let data = not_negative(meta.data_page_offset, "data_page_offset")?;
        let dictionary = meta.dictionary_page_offset.unwrap_or(0);
        let dictionary = not_negative(dictionary, "dictionary_page_offset")?;
        // 0 means that there is none.
        let start =
            if dictionary > 0 && (data == 0 || dictionary <= data) { dictionary } else { data };
        let mut len = not_negative(meta.total_compressed_size, "total_compressed_size")?;
        let end_of_data = self.shared.file_len.saturating_sub(8);
        if self.footer().writer().short_chunks {
            len = len.saturating_add(100).min(end_of_data.saturating_sub(start));
        }
        match start.checked_add(len).filter(|end| *end <= end_of_data) {
            Some(end) => Ok(start..end),
            None => Err(Error::mismatch(
                Spec::Container,
                "byte range of the column chunk",
                format_args!("within the first {end_of_data} bytes of the file"),
                format_args!("{len} bytes at {start}"),
            )),
        }
    }
}

impl RowRange {
    /// Rows that are wanted.
    pub fn count(&self) -> u64 {
        match &self.selection {
            Some(selection) => selection.count(),
            None => self.rows.end - self.rows.start,
        }
    }

    /// Of all rows of its row group those of `selection`; `None` if that is none.
    pub fn with_selection(&self, selection: RowSelection) -> Option<Self> {
        let rows = selection.hull();
        let is_run = selection.count() == rows.end - rows.start;
        let selection = if is_run { None } else { Some(selection) };
        (!rows.is_empty()).then(|| Self { rows, selection, ..self.clone() })
    }

    /// Whether the filter is known to be true of all rows that are wanted.
    pub fn is_sure(&self) -> bool {
        self.sure.as_ref().is_some_and(RowSelection::is_all)
    }

    /// Of all rows of its row group those of `passed`, which are known to pass the filter; `None` if that is none.
    pub fn passed(&self, passed: RowSelection) -> Option<Self> {
        let sure = Some(RowSelection::all(passed.len()));
        self.with_selection(passed).map(|range| Self { sure, ..range })
    }

    /// The filter is known to be true of the rows of `sure`.
    #[must_use]
    pub(super) fn with_sure(self, sure: RowSelection) -> Self {
        let wanted = match &self.selection {
            Some(wanted) => wanted.and(&sure).map(|both| both.count()),
            None => Ok(sure.slice(self.rows.clone()).count()),
        };
        let sure = if wanted.is_ok_and(|of| of == self.count()) {
            RowSelection::all(sure.len())
        } else {
            sure
        };
        Self { sure: Some(sure).filter(|sure| !sure.is_none()), ..self }
    }

    /// The rows whose pages are wanted: short gaps are decoded too.
    fn wanted(&self, rows_in_group: u64) -> Result<RowSelection> {
        Ok(self.to_selection(rows_in_group)?.without_gaps(GAP))
    }

    /// The rows that are wanted, of all `rows_in_group`.
    pub(super) fn to_selection(&self, rows_in_group: u64) -> Result<RowSelection> {
        match &self.selection {
            Some(selection) => Ok(selection.clone()),
            None => RowSelection::from_ranges(rows_in_group, [self.rows.clone()]),
        }
    }
}

/// What `rows` of `all` rows take of so many bytes, if they are all alike.
fn share(bytes: u64, rows: u64, all: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(rows) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Column chunks of fewer bytes in all are read whole sooner than their indexes are asked for.
const WORTH_AN_INDEX: u64 = 64 << 10;

impl PageIndexPlan {
    /// The bytes wanted: offset indexes of chunks of which not all rows are wanted; often none.
    pub fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// The rows wanted.
    pub fn range(&self) -> &RowRange {
        &self.range
    }

    /// About how many bytes of the column chunks are wanted.
    pub fn wanted_bytes(&self) -> u64 {
        share(self.chunk_bytes(), self.range.count(), self.rows_in_group)
    }

    /// Bytes of the column chunks, all pages counted.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes.end - chunk.bytes.start).sum()
    }

    /// Without indexes: the column chunks are fetched whole.
    ///
    /// # Errors
    /// As [`PageIndexPlan::supply`].
    pub fn without_index(mut self) -> Result<RowGroupPlan> {
        self.needs.clear();
        self.chunks.iter_mut().for_each(|chunk| chunk.pages = None);
        self.supply(&[])
    }

    /// Takes the bytes wanted, in the same order. An index that is not sound, or contradicts the metadata, is put aside.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted.
    pub fn supply(mut self, bytes: &[Bytes]) -> Result<RowGroupPlan> {
        same_number("PageIndexPlan::supply", self.needs.len(), bytes.len())?;
        let mut ignored = Vec::new();
        if !bytes.is_empty() {
            let wanted = self.range.wanted(self.rows_in_group)?;
            for (&leaf, bytes) in self.leaves.iter().zip(bytes) {
                let Some(chunk) = self.chunks.get_mut(leaf) else { continue };
                let map = OffsetIndex::read(&mut thrift::Reader::new(bytes)).and_then(|index| {
                    PageMap::new(&index, chunk.bytes.clone(), self.rows_in_group).map(Arc::new)
                });
                match map {
                    Ok(map) => {
                        if let Some(leaf) = self.plan.leaves().get(leaf) {
                            let row_group = self.range.row_group;
                            self.plan.page_maps.keep(row_group, leaf.leaf.index, &map);
                        }
                        chunk.pages = Some(WantedPages::new(map, &wanted));
                    }
                    Err(e) => ignored.push(self.plan.place(e, leaf, &self.range)),
                }
            }
        }
        let Self { plan, range, rows_in_group, chunks, bytes_per_row, .. } = self;
        let needs = chunks.iter().flat_map(ChunkPlan::needs).collect();
        Ok(RowGroupPlan { plan, range, rows_in_group, chunks, needs, bytes_per_row, ignored })
    }
}

impl WantedPages {
    fn new(map: Arc<PageMap>, selection: &RowSelection) -> Self {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for page in map.needed(selection) {
            match stretches.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => stretches.push(page..page + 1),
            }
        }
        Self { map, stretches }
    }
}

/// Bytes of a chunk that is pulled rather than fetched.
const LARGE: u64 = 512 << 10;

impl ChunkPlan {
    fn is_pulled(&self) -> bool {
        self.pull.is_some() && self.pages.is_none()
    }

    /// The bytes wanted of the chunk: all of it, or what stands before its first data page and then the stretches of pages.
    fn needs(&self) -> Vec<Range<u64>> {
        let Some(WantedPages { map, stretches }) = &self.pages else {
            return if self.pull.is_some() { Vec::new() } else { vec![self.bytes.clone()] };
        };
        let bytes_of = |stretch: &Range<usize>| {
            let pages = map.pages().get(stretch.clone()).unwrap_or_default();
            let ends = pages.first().zip(pages.last());
            ends.map_or(0..0, |(first, last)| first.bytes.start..last.bytes.end)
        };
        std::iter::once(map.head()).chain(stretches.iter().map(bytes_of)).collect()
    }

    /// The pages of what was fetched for [`ChunkPlan::needs`].
    fn list(&self, bytes: &[Bytes], context: &PageContext) -> Result<PageList> {
        let mut bytes = bytes.iter().cloned();
        let head = bytes.next().unwrap_or_default();
        let Some(WantedPages { map, stretches }) = &self.pages else {
            return Ok(match &self.pull {
                Some(pull) => PageList::pulled(pull.clone(), self.bytes.clone(), self.slots),
                None => PageList::whole(head, self.bytes.start, self.slots),
            });
        };
        let mut pages = Vec::new();
        for (stretch, mut bytes) in stretches.iter().zip(bytes) {
            for index in stretch.clone() {
                let Some(place) = map.pages().get(index) else { continue };
                let len = usize::try_from(place.bytes.end - place.bytes.start);
                let bytes = bytes.split_to(len.unwrap_or(usize::MAX).min(bytes.len()));
                let (range, rows) = (place.bytes.clone(), place.rows.clone());
                pages.push(PlacedPage { bytes, range, rows, index });
            }
        }
        PageList::placed(head, map.head().start, pages, context)
    }
}

impl RowGroupPlan {
    /// The bytes wanted: those of each leaf, in the order of [`Plan::leaves`]. A driver joins those that lie close.
    pub fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// The rows wanted.
    pub fn range(&self) -> &RowRange {
        &self.range
    }

    /// What was wrong with the page indexes that were put aside.
    pub fn ignored_indexes(&self) -> &[Error] {
        &self.ignored
    }

    /// About how many bytes the rows wanted take as Arrow arrays, by what the metadata say.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes_per_row.saturating_mul(self.range.count())
    }

    /// Bytes that are fetched.
    pub fn fetch_bytes(&self) -> u64 {
        self.needs.iter().map(|range| range.end - range.start).sum()
    }

    /// Rows of a batch: as many as wanted, fewer where rows are wide.
    pub fn batch_rows(&self) -> usize {
        let options = self.plan.options();
        let by_bytes = options.batch_bytes as u64 / self.bytes_per_row.max(1);
        options.batch_rows.min(usize::try_from(by_bytes).unwrap_or(usize::MAX)).max(1)
    }

    /// Lets large chunks that are wanted whole be pulled while they are decoded; what is wanted before that becomes less.
    #[must_use]
    pub fn with_pull(mut self, pull: &Arc<dyn Pull>) -> Self {
        for chunk in &mut self.chunks {
            if chunk.pages.is_none() && chunk.bytes.end - chunk.bytes.start >= LARGE {
                chunk.pull = Some(pull.clone());
            }
        }
        self.needs = self.chunks.iter().flat_map(ChunkPlan::needs).collect();
        self
    }

    /// Takes the bytes wanted, in the same order.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted, `Limit(Memory)` if the budget has no room for them.
    pub fn supply(mut self, bytes: Vec<Bytes>) -> Result<Supplied> {
        same_number("RowGroupPlan::supply", self.needs.len(), bytes.len())?;
        for (need, bytes) in self.needs.iter().zip(&bytes) {
            if bytes.len() as u64 != need.end - need.start {
                return Err(Error::usage(format_args!(
                    "RowGroupPlan::supply was given {} bytes for a range of {}",
                    bytes.len(),
                    need.end - need.start
                )));
            }
        }
        let fetched = usize::try_from(self.fetch_bytes()).unwrap_or(usize::MAX);
        let reservation = self.plan.budget().take(fetched)?;
        let mut units = Vec::with_capacity(self.chunks.len());
        let mut rest = &bytes[..];
        let ignored_before = self.ignored.len();
        for (i, chunk) in self.chunks.iter_mut().enumerate() {
            let (bytes, others) = rest.split_at(chunk.needs().len().min(rest.len()));
            rest = others;
            let Some(leaf) = self.plan.leaves().get(i) else { continue };
            let context = self.plan.page_context(leaf, chunk.codec);
            match chunk.list(bytes, &context) {
                Ok(list) => {
                    let cost = match chunk.is_pulled() {
                        true => usize::try_from(chunk.bytes.end - chunk.bytes.start),
                        false => Ok(bytes.iter().map(Bytes::len).sum()),
                    };
                    let cost = cost.unwrap_or(usize::MAX);
                    let column = leaf.leaf.path.dotted().into();
                    let row_group = self.range.row_group;
                    let plan = self.plan.clone();
                    let chunk = Chunk { plan, leaf: i, list, context, row_group, column };
                    units.push(Unit::new(chunk, self.rows_in_group, cost)?);
                }
                Err(e) => {
                    self.ignored.push(self.plan.place(e, i, &self.range));
                    chunk.pages = None;
                }
            }
        }
        if self.ignored.len() > ignored_before {
            self.plan.page_maps.forget(self.range.row_group);
            self.needs = self.chunks.iter().flat_map(ChunkPlan::needs).collect();
            return Ok(Supplied::Again(Box::new(self)));
        }
        let batch_rows = self.batch_rows();
        let batch_bytes = self.bytes_per_row.saturating_mul(batch_rows as u64);
        let Self { plan, range, rows_in_group, .. } = self;
        Ok(Supplied::Ready(Box::new(RowGroup::new(
            plan,
            range,
            rows_in_group,
            units,
            batch_rows,
            batch_bytes,
            reservation,
        ))))
    }
}

pub(super) fn same_number(stage: &str, wanted: usize, given: usize) -> Result<()> {
    if wanted == given {
        return Ok(());
    }
    Err(Error::usage(format_args!("{stage} wants {wanted} ranges, and was given {given}")))
}

/// About how many bytes a chunk takes as an Arrow array.
fn memory_of(meta: &ColumnMetaDataRef<'_>, slots: u64, data_type: &DataType) -> u64 {
    let fixed = match data_type {
        DataType::Dictionary(key, _) => key.primitive_width(),
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    };
    if let Some(width) = fixed {
        return slots.saturating_mul(width as u64);
    }
    let exact = meta
        .size_statistics
        .as_ref()
        .and_then(|sizes| sizes.unencoded_byte_array_data_bytes)
        .and_then(|bytes| u64::try_from(bytes).ok());
    let stated = u64::try_from(meta.total_uncompressed_size).unwrap_or_default();
    exact.unwrap_or(stated).saturating_add(slots.saturating_mul(4))
}

fn not_negative(value: i64, name: &str) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::mismatch(Spec::Metadata("ColumnMetaData"), name, "not negative", value))
}

/// The leaves of the shapes, in output order, and which of them must keep their levels.
pub(super) fn leaf_plans(footer: &Footer, shapes: &[Shape]) -> Result<Vec<LeafPlan>> {
    fn walk(footer: &Footer, shape: &Shape, keep: bool, out: &mut Vec<LeafPlan>) -> Result<()> {
        match &shape.kind {
            Kind::Leaf { leaf } => {
                let leaf = footer.schema().leaf(*leaf)?;
                let data_type = shape.field.data_type().clone();
                let conversion = conversion(&leaf, &data_type).ok_or_else(|| {
                    Error::usage(format_args!(
                        "{} cannot be read as {data_type} without loss",
                        leaf.physical
                    ))
                    .at_column(leaf.path.dotted())
                })?;
                let slot = shape.levels.slot;
                out.push(LeafPlan { leaf, data_type, conversion, keep_levels: keep, slot });
                Ok(())
            }
            Kind::Struct(children) => {
                let mut keep = keep || shape.levels.may_be_null();
                for child in children {
                    let before = out.len();
                    walk(footer, child, keep, out)?;
                    // The first leaf speaks for the struct; the others need not.
                    keep &= out.len() == before;
                }
                Ok(())
            }
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
                walk(footer, child, true, out)
            }
            Kind::Missing => Ok(()),
        }
    }
    let mut leaves = Vec::new();
    for shape in shapes {
        walk(footer, shape, false, &mut leaves)?;
    }
    Ok(leaves)
}

/// For each column and for each leaf of it whether unwanted rows are left out while it is decoded: where a row is a slot, and the filter does not need
/// all of them.
fn picks(shapes: &[Shape], filter: Option<&Filter>) -> (Vec<bool>, Vec<bool>) {
    let early = filter.map(Filter::early_columns).unwrap_or_default();
    let (mut columns, mut leaves) = (Vec::with_capacity(shapes.len()), Vec::new());
    for (i, shape) in shapes.iter().enumerate() {
        let first = leaves.len();
        shape.for_each_leaf(&mut |_, _| leaves.push(false));
        let picks = early.get(i) != Some(&true) && !has_list(shape);
        leaves.iter_mut().skip(first).for_each(|leaf| *leaf = picks);
        columns.push(picks);
    }
    (columns, leaves)
}

fn has_list(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::List { .. } | Kind::Map { .. } => true,
        Kind::Struct(children) => children.iter().any(has_list),
        Kind::Leaf { .. } | Kind::Missing => false,
    }
}

/// The ranges without the row groups that cannot hold a match; those become `pruned`.
fn prune(
    footer: &Footer,
    filter: &Filter,
    ranges: Vec<RowRange>,
    pruned: &mut Vec<usize>,
) -> Result<Vec<RowRange>> {
    let mut kept = Vec::with_capacity(ranges.len());
    for range in ranges {
        let rows = footer.row_group_rows(range.row_group)?;
        let facts = filter.facts(footer, range.row_group, rows);
        match filter.answer(rows, &facts) {
            Answer::Cannot => pruned.push(range.row_group),
            Answer::Might => kept.push(range),
            Answer::Always => kept.push(range.with_sure(RowSelection::all(rows))),
        }
    }
    Ok(kept)
}

/// Which rows of which row groups: offset and limit count over the chosen row groups, unless a filter is to choose first.
fn row_ranges(footer: &Footer, options: &ReadOptions) -> Result<Vec<RowRange>> {
    let mut first_rows = Vec::with_capacity(footer.row_groups());
    let mut first = 0u64;
    for i in 0..footer.row_groups() {
        first_rows.push(first);
        first = first.saturating_add(footer.row_group_rows(i)?);
    }
    let chosen: Vec<usize> = match &options.row_groups {
        Some(chosen) => chosen.clone(),
        None => (0..footer.row_groups()).collect(),
    };
    if let Some(selection) = options.selection.as_ref().filter(|wanted| wanted.len() != first) {
        return Err(Error::usage(format_args!(
            "a selection of {} rows, and the file has {first}",
            selection.len()
        )));
    }
    let (mut skip, mut left) = match options.filter {
        Some(_) => (0, u64::MAX),
        None => (options.offset, options.limit.unwrap_or(u64::MAX)),
    };
    let mut ranges = Vec::new();
    for row_group in chosen {
        let rows = footer.row_group_rows(row_group)?;
        let first_row = first_rows.get(row_group).copied().unwrap_or_default();
        let (all, selection, sure) = (0..rows, None, None);
        let whole =
            RowRange { row_group, rows: all.clone(), selection, sure, first_row, part: all };
        let wanted = match &options.selection {
            Some(wanted) => wanted.slice(first_row..first_row.saturating_add(rows)),
            None => RowSelection::all(rows),
        };
        let skipped = skip.min(wanted.count());
        skip -= skipped;
        let wanted = wanted.offset(skipped).limit(left);
        left -= wanted.count();
        ranges.extend(whole.with_selection(wanted));
    }
    Ok(ranges)
}

fn with_virtual_columns(schema: SchemaRef, columns: &[VirtualColumn]) -> SchemaRef {
    if columns.is_empty() {
        return schema;
    }
    let added = columns.iter().map(|column| match column {
        VirtualColumn::RowNumber { name } => Field::new(&**name, DataType::Int64, false),
        VirtualColumn::RowGroup { name } => Field::new(&**name, DataType::Int32, false),
        VirtualColumn::FileName { name } => Field::new(&**name, DataType::Utf8, true),
    });
    let fields = schema.fields().iter().cloned().chain(added.map(Arc::new)).collect::<Vec<_>>();
    Arc::new(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()))
}
