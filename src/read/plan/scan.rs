//! [`Plan`]: the leaves, the row groups, and the rows of them that a read wants.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};

use super::rows::{Pruned, RowRange, prune, row_ranges};
use crate::crypt::ChunkDecryptor;
use crate::error::{Error, LimitKind, Result};
use crate::format::{ColumnChunkRef, ColumnMetaData, CompressionCodec};
use crate::free_lists::BufferPool;
use crate::limits::Budget;
use crate::page::PageContext;
use crate::read::column::{ColumnSpec, column_specs};
use crate::read::filter::{Filter, drops_rows};
use crate::read::footer::Footer;
use crate::read::options::{PageIndexUse, ReadOptions, VirtualColumn};
use crate::read::page_cache::PageCache;
use crate::read::variant::{Output, Outputs};
use crate::read::wiring::ReadWiring;
use crate::schema::{Projection, Shape, schema_like, to_arrow};
use crate::selection::RowSelection;
use crate::stats::bloom::BloomLayout;

/// All decisions of a read, made before the first column chunk is fetched. Cheap to clone.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Reader, col};
///
/// let reader = Reader::open("testdata/trips.parquet")?.filter(col("id").lt(10));
/// let plan = reader.plan()?;
/// // Statistics leave one of four row groups.
/// assert_eq!(plan.ranges().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    shared: Arc<PlanState>,
    page_cache: PageCache,
}

#[derive(Debug)]
struct PlanState {
    footer: Footer,
    options: ReadOptions,
    wiring: ReadWiring,
    schema: SchemaRef,
    shapes: Vec<Shape>,
    /// How the column of each shape is returned.
    outputs: Vec<Output>,
    leaves: Vec<ColumnSpec>,
    /// How many of the leaves the output is made of; the others are for the filter alone.
    output_leaves: usize,
    filter: Option<Filter>,
    /// For each column of the output, whether unwanted rows are dropped while its leaves are
    /// decoded.
    column_drops_rows: Vec<bool>,
    /// The same for each leaf.
    drops_rows: Vec<bool>,
    ranges: Vec<RowRange>,
    /// Number of rows that are read without any leaf.
    bare_rows: u64,
    /// Row groups in which the filter is true of no row, as the footer proves.
    pruned: Vec<usize>,
    budget: Budget,
    file_len: u64,
    file_name: Option<Arc<str>>,
}

impl Footer {
    /// Plans a read of a file of `file_len` bytes.
    ///
    /// # Errors
    /// `Usage` if the options name what the file does not have, `Unsupported` if a column cannot be
    /// mapped to Arrow.
    pub fn plan(
        &self,
        options: &ReadOptions,
        file_len: u64,
        file_name: Option<Arc<str>>,
    ) -> Result<Plan> {
        self.plan_wired(options, &ReadWiring::default(), file_len, file_name)
    }

    /// Like [`Footer::plan`], for a read that is wired to a driver.
    ///
    /// # Errors
    /// As [`Footer::plan`].
    pub(crate) fn plan_wired(
        &self,
        options: &ReadOptions,
        wiring: &ReadWiring,
        file_len: u64,
        file_name: Option<Arc<str>>,
    ) -> Result<Plan> {
        let budget = wiring.budget.clone().unwrap_or_else(|| self.budget(options));
        self.plan_within(options, wiring, file_len, file_name, budget)
    }

    /// The memory budget of a read with these options.
    pub(crate) fn budget(&self, options: &ReadOptions) -> Budget {
        let cap = options.limits.memory_bytes;
        match &options.pool {
            Some(pool) => Budget::with_pool(cap, pool),
            // Plain text of an encrypted file does not outlive its read.
            None if options.limits.may_share_memory() && !self.has_keys() => {
                Budget::with_pool(cap, &BufferPool::global())
            }
            None => Budget::new(cap),
        }
    }

    fn plan_within(
        &self,
        options: &ReadOptions,
        wiring: &ReadWiring,
        file_len: u64,
        file_name: Option<Arc<str>>,
        budget: Budget,
    ) -> Result<Plan> {
        if options.batch_rows == 0 {
            return Err(Error::usage("ReadOptions::batch_rows is 0: a batch has at least one row"));
        }
        let mut mapping =
            to_arrow(self.schema(), self.key_values(), &options.projection, &options.arrow)?;
        let outputs = Outputs::new(self, options, &mut mapping.shapes)?;
        let mut leaves = column_specs(self.schema(), &mapping.shapes)?;
        let output_leaves = leaves.len();
        let filter = match &options.filter {
            Some(filter) => {
                let shapes = &mapping.shapes;
                Some(Filter::new(filter, self, options, wiring, shapes, &mut leaves)?)
            }
            None => None,
        };
        let (column_drops_rows, drops_rows) = drops_rows(&mapping.shapes, filter.as_ref());
        let ranges = row_ranges(self, options, wiring, file_len)?;
        let Pruned { kept: ranges, pruned } = match &filter {
            Some(filter) => prune(self, filter, ranges)?,
            None => Pruned { kept: ranges, pruned: Vec::new() },
        };
        let is_bare =
            |range: &&RowRange| output_leaves == 0 && (leaves.is_empty() || range.is_proven());
        let bare_rows = ranges.iter().filter(is_bare).map(RowRange::count);
        let bare_rows = bare_rows.fold(0u64, u64::saturating_add);
        let schema = schema_like(&mapping.schema, outputs.fields)?;
        let schema = with_virtual_columns(Arc::new(schema), &options.virtual_columns)?;
        Ok(Plan {
            shared: Arc::new(PlanState {
                footer: self.clone(),
                options: options.clone(),
                wiring: wiring.clone(),
                schema,
                shapes: mapping.shapes,
                outputs: outputs.of_shapes,
                leaves,
                output_leaves,
                filter,
                column_drops_rows,
                drops_rows,
                ranges,
                bare_rows,
                pruned,
                budget,
                file_len,
                file_name,
            }),
            page_cache: PageCache::default(),
        })
    }
}

impl Plan {
    /// Shares what other reads of the same file keep: offset indexes and dictionaries.
    #[must_use]
    pub(crate) fn with_page_cache(self, page_cache: &PageCache) -> Self {
        Self { page_cache: page_cache.clone(), ..self }
    }

    /// The cache that reads of the same file share.
    pub(in crate::read) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.shared.schema
    }

    /// The metadata of the file.
    pub(crate) fn footer(&self) -> &Footer {
        &self.shared.footer
    }

    /// The options of the read.
    pub(crate) fn options(&self) -> &ReadOptions {
        &self.shared.options
    }

    /// How the read is wired to its driver.
    pub(crate) fn wiring(&self) -> &ReadWiring {
        &self.shared.wiring
    }

    /// The leaves that are read, depth-first in the order of the output; then those that only the
    /// filter needs.
    pub(crate) fn leaves(&self) -> &[ColumnSpec] {
        &self.shared.leaves
    }

    /// How many of the leaves are read of the rows of `range`: not those of a filter that is known
    /// to be true of them.
    pub(super) fn leaves_of(&self, range: &RowRange) -> usize {
        if range.is_proven() { self.shared.output_leaves } else { self.leaves().len() }
    }

    /// Checks that rows without any leaf are not too many: the file states only their number, and
    /// nothing else ends the read.
    pub(super) fn check_bare_rows(&self, range: &RowRange) -> Result<()> {
        // The page index may have proved more of a row group than the footer.
        let (options, rows) = (self.options(), self.shared.bare_rows.max(range.count()));
        // With a filter, offset and limit are still to come.
        let asked = options.limit.map_or(u64::MAX, |limit| limit.saturating_add(options.offset));
        let max = options.limits.rows_without_columns;
        if rows.min(asked) <= max {
            return Ok(());
        }
        Err(Error::limit(
            LimitKind::Rows,
            format_args!(
                "{rows} rows of no columns; Limits::rows_without_columns allows {max}: raise it, or ask \
                 for fewer rows with a limit, to read on"
            ),
        ))
    }

    /// How many of the leaves the output is made of.
    pub(in crate::read) fn output_leaves(&self) -> usize {
        self.shared.output_leaves
    }

    /// Whether unwanted rows are dropped while a leaf is decoded.
    pub(in crate::read) fn drops_rows(&self, column_index: usize) -> bool {
        self.shared.drops_rows.get(column_index).copied().unwrap_or_default()
    }

    /// Whether they are dropped while all leaves of an output column are decoded.
    pub(in crate::read) fn column_drops_rows(&self, column: usize) -> bool {
        self.shared.column_drops_rows.get(column).copied().unwrap_or_default()
    }

    /// Whether there are columns that are decoded after the filter, and whose rows are not left
    /// out.
    pub(in crate::read) fn has_late_lists(&self) -> bool {
        let early = self.filter().map(Filter::early_columns).unwrap_or_default();
        let mut columns = self.shared.column_drops_rows.iter().enumerate();
        columns.any(|(i, drops_rows)| !drops_rows && early.get(i) != Some(&true))
    }

    pub(in crate::read) fn filter(&self) -> Option<&Filter> {
        self.shared.filter.as_ref()
    }

    pub(in crate::read) fn file_len(&self) -> u64 {
        self.shared.file_len
    }

    /// The row groups that are read, and the rows of them.
    pub fn ranges(&self) -> &[RowRange] {
        &self.shared.ranges
    }

    /// Row groups that are not read, because the footer proves that the filter is true of none of
    /// their rows.
    pub(crate) fn pruned(&self) -> &[usize] {
        &self.shared.pruned
    }

    /// Number of rows that the read returns; with a filter, the number of rows among which it
    /// chooses, without offset and limit.
    pub fn rows(&self) -> u64 {
        self.shared.ranges.iter().map(RowRange::count).fold(0u64, u64::saturating_add)
    }

    /// Estimated cost of reading `rows` rows of a row group: bytes of the leaves that are read,
    /// compressed and uncompressed, and one for each row. What the metadata do not state counts as
    /// 0.
    pub(crate) fn cost(&self, row_group: usize, rows: u64) -> u64 {
        let all = self.footer().row_group_rows(row_group).unwrap_or_default();
        let of_column = |column: &ColumnSpec| {
            let chunk = self.footer().column_chunk_ref(row_group, column.leaf.index).ok()?;
            let meta = chunk.meta_data?;
            let sizes = [meta.total_compressed_size, meta.total_uncompressed_size];
            let sizes = sizes.into_iter().map(|size| u64::try_from(size).unwrap_or_default());
            Some(sizes.fold(0, u64::saturating_add))
        };
        let bytes = self.leaves().iter().filter_map(of_column).fold(0, u64::saturating_add);
        proportion(bytes, rows, all).saturating_add(rows)
    }

    /// Which rows of its row group a range of [`Plan::ranges`] wants.
    pub(crate) fn wanted(&self, range: &RowRange) -> Result<RowSelection> {
        range.to_selection(self.footer().row_group_rows(range.row_group)?)
    }

    /// Target bytes of a batch: [`ReadOptions::batch_bytes`], or a part of the memory, which must
    /// hold several batches.
    pub(crate) fn batch_bytes(&self) -> usize {
        let part = usize::try_from(self.budget().cap() / BATCHES_IN_MEMORY).unwrap_or(usize::MAX);
        self.options().batch_bytes.min(part)
    }

    /// The memory budget of the read.
    pub(crate) fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    pub(in crate::read) fn shapes(&self) -> &[Shape] {
        &self.shared.shapes
    }

    pub(in crate::read) fn outputs(&self) -> &[Output] {
        &self.shared.outputs
    }

    /// The name of the file, if it has one.
    pub(crate) fn file_name(&self) -> Option<&Arc<str>> {
        self.shared.file_name.as_ref()
    }

    /// A plan that reads only what the filter needs, within the same memory, and returns the
    /// numbers in the file of the rows that pass. `None` if there is no filter, or if it needs all
    /// columns.
    ///
    /// # Errors
    /// As [`Footer::plan`].
    pub(crate) fn filter_only_plan(&self) -> Result<Option<Self>> {
        let Some(filter) = self.filter() else { return Ok(None) };
        if (0..self.leaves().len()).all(|leaf| filter.is_early(leaf)) {
            return Ok(None);
        }
        let mut options = self.options().clone();
        options.projection = Projection::names::<String>([]);
        options.variant_columns.clear();
        options.virtual_columns = vec![VirtualColumn::RowNumber { name: "row".into() }];
        let (wiring, budget) = (self.wiring(), self.budget().clone());
        let plan = self.footer().plan_within(&options, wiring, self.file_len(), None, budget)?;
        Ok(Some(plan.with_page_cache(&self.page_cache)))
    }

    /// Compressed bytes of the column chunks that a row group would be read from.
    pub(in crate::read) fn bytes_of(&self, row_group: usize) -> Result<u64> {
        let mut bytes = 0u64;
        for column in self.leaves() {
            let meta = self.footer().column_chunk_ref(row_group, column.leaf.index)?.meta_data;
            let size = meta.map_or(0, |meta| meta.total_compressed_size);
            bytes = bytes.saturating_add(u64::try_from(size).unwrap_or_default());
        }
        Ok(bytes)
    }

    /// Whether the page indexes of the filter's leaves may save more than they cost.
    pub(in crate::read) fn index_may_help(&self, row_group: usize) -> Result<bool> {
        if self.footer().quirks().carries_prefix {
            return Ok(false);
        }
        Ok(match self.options().page_index {
            PageIndexUse::Never => false,
            PageIndexUse::Always => true,
            PageIndexUse::Auto => WORTH_AN_INDEX < self.bytes_of(row_group)?,
        })
    }

    /// The first range to fetch of a bloom filter.
    pub(in crate::read) fn bloom_range(
        &self,
        meta: &ColumnMetaData,
        is_encrypted: bool,
    ) -> Option<Range<u64>> {
        let start = u64::try_from(meta.bloom_filter_offset?).ok()?;
        let len = meta.bloom_filter_length.and_then(|len| u64::try_from(len).ok());
        let max = match len {
            Some(len) if len <= SMALL_FILTER => len,
            // An encrypted one is decrypted as a whole.
            Some(len) if is_encrypted && len <= LARGEST_ENCRYPTED_FILTER => len,
            _ if is_encrypted => return None,
            _ => BloomLayout::HEADER_BYTES as u64,
        };
        let end = start.checked_add(max)?.min(self.file_len());
        (start < end).then_some(start..end)
    }

    /// Range of the dictionary page of a chunk, if the footer states it.
    pub(in crate::read) fn dictionary_range(&self, meta: &ColumnMetaData) -> Option<Range<u64>> {
        let start = u64::try_from(meta.dictionary_page_offset?).ok().filter(|start| *start > 0)?;
        let end = u64::try_from(meta.data_page_offset).ok()?;
        (start < end && end <= self.shared.file_len).then_some(start..end)
    }

    /// Where the column index of a chunk lies; `None` if there is none, or not in the file.
    pub(in crate::read) fn column_index(&self, chunk: &ColumnChunkRef<'_>) -> Option<Range<u64>> {
        self.within_file(chunk.column_index_offset?, chunk.column_index_length?)
    }

    fn within_file(&self, start: i64, len: i32) -> Option<Range<u64>> {
        let start = u64::try_from(start).ok()?;
        let len = u64::try_from(len).ok().filter(|len| *len > 0)?;
        let end = start.checked_add(len).filter(|end| *end <= self.shared.file_len)?;
        Some(start..end)
    }

    /// Where the offset index of a chunk lies; `None` if there is none, or not in the file.
    pub(in crate::read) fn offset_index(&self, chunk: &ColumnChunkRef<'_>) -> Option<Range<u64>> {
        self.within_file(chunk.offset_index_offset?, chunk.offset_index_length?)
    }

    /// The context for opening the pages of a leaf.
    pub(in crate::read) fn page_context(
        &self,
        column: &ColumnSpec,
        codec: CompressionCodec,
        decryptor: Option<&ChunkDecryptor>,
    ) -> PageContext {
        let limits = &self.options().limits;
        let mut context = self.footer().page_context(&column.leaf, codec, limits);
        context.verify_checksums = self.options().verify_checksums;
        context.decryptor = decryptor.cloned();
        context
    }

    /// Adds the place of a leaf to an error.
    pub(super) fn place(&self, error: Error, column_index: usize, range: &RowRange) -> Error {
        let error = error.at_row_group(range.row_group);
        match self.leaves().get(column_index) {
            Some(column) => error.at_column(column.leaf.path.dotted()),
            None => error,
        }
    }
}

fn with_virtual_columns(schema: SchemaRef, columns: &[VirtualColumn]) -> Result<SchemaRef> {
    if columns.is_empty() {
        return Ok(schema);
    }
    let added = columns.iter().map(|column| match column {
        VirtualColumn::RowNumber { name } => Field::new(&**name, DataType::Int64, false),
        VirtualColumn::RowGroup { name } => Field::new(&**name, DataType::Int32, false),
        VirtualColumn::FileName { name } | VirtualColumn::Constant { name, .. } => {
            Field::new(&**name, DataType::Utf8, true)
        }
    });
    let fields = schema.fields().iter().cloned().chain(added.map(Arc::new));
    Ok(Arc::new(schema_like(&schema, fields)?))
}

/// Share of `bytes` that `rows` of `all` rows take, if all rows take the same.
pub(in crate::read) fn proportion(bytes: u64, rows: u64, all: u64) -> u64 {
    let result = u128::from(bytes) * u128::from(rows) / u128::from(all.max(1));
    u64::try_from(result).unwrap_or(u64::MAX)
}

/// Minimum batches that the memory should hold, because two waves share it with the pages that they
/// are decoded from.
const BATCHES_IN_MEMORY: u64 = 8;

/// Maximum bytes of a bloom filter that is fetched whole, in one request; of a larger one, only the
/// probed blocks are fetched.
const SMALL_FILTER: u64 = 64 << 10;

/// An encrypted bloom filter that is larger costs more than it is likely to save.
const LARGEST_ENCRYPTED_FILTER: u64 = 4 << 20;

/// Column chunks of fewer bytes in all are read whole sooner than their indexes are asked for.
pub(super) const WORTH_AN_INDEX: u64 = 64 << 10;
