//! [`FileStream`] streams the batches of one file.
//!
//! The filters become a [`Predicate`], and an [`AsyncReader`] reads the rows that are left, decoded
//! where the stream is polled. Filters that are learned while the query runs are used in their
//! state when a row group is opened. Memory is reserved from the memory pool of DataFusion, which
//! also limits how much is fetched ahead.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion_physical_expr::projection::Projector;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use futures_core::Stream;

use crate::columns::{Columns, ROW_NUMBERS};
use crate::error::to_datafusion;
use crate::evaluate::evaluate_by_row;
use crate::file_filter::{Evaluation, FileFilter, saved_nanos};
use crate::file_plan::{PlanCounts, Planned, RowGroupCounts, RowGroupPlanner};
use crate::learned::TrustedPruner;
use crate::local::LocalSource;
use crate::metadata::IndexKeeper;
use crate::metrics::{FileMetrics, OutputRows};
use crate::pushdown;
use crate::scan::{OfFile, Prepared, Scan};
use crate::schema::FileSchema;
use crate::statistics::saturated;
use marquetry::engine::{Budget, FilterCounters, KnownFile, rows};
use marquetry::io::StoreSource;
use marquetry::read::{ReadAhead, ReadOptions, VirtualColumn};
use marquetry::{AsyncReader, BatchStream};

/// The batches of a file.
pub(crate) struct FileStream {
    planner: RowGroupPlanner,
    output: FileOutput,
    memory: FileMemory,
    /// Row groups that are not opened yet.
    waiting: VecDeque<usize>,
    current: Option<BatchStream>,
    next: NextRead,
    stage: Stage,
    counts: FileCounts,
    pruner: Option<TrustedPruner>,
    /// Keeps the indexes that were fetched, for other queries.
    _indexes: Option<IndexKeeper>,
}

/// How far the stream of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// No row group is opened.
    Unopened,
    /// Row groups were opened, and no row of them has passed.
    Opened,
    /// Rows were given, from which filters may be learned.
    Given,
}

/// The read of the first row group that waits.
enum NextRead {
    /// It is not begun.
    Waiting,
    /// It is fetched while the current row group is decoded.
    Ahead(Box<Ahead>),
    /// Nothing is fetched before its turn, because there is no memory for it.
    HeldBack,
}

impl NextRead {
    fn take(&mut self) -> Option<Ahead> {
        match std::mem::replace(self, Self::Waiting) {
            Self::Ahead(ahead) => return Some(*ahead),
            Self::HeldBack => *self = Self::HeldBack,
            Self::Waiting => {}
        }
        None
    }
}

impl fmt::Debug for FileStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStream").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

/// A row group that is fetched before its turn, while filters may still change.
struct Ahead {
    /// The generation of the filters by which it was planned.
    generation: u64,
    /// `None` if something is wrong with it, which comes to light in its turn.
    read: Option<Opened>,
}

/// A read of row groups, and what it is to count.
struct Opened {
    stream: BatchStream,
    counts: PlanCounts,
}

/// What becomes of the batches of a file.
struct FileOutput {
    projector: Projector,
    schema: SchemaRef,
    /// Rows that may still be given.
    left: Option<u64>,
    rows: Arc<OutputRows>,
    partition: usize,
}

impl FileOutput {
    /// A batch as the query wants it.
    fn finished(&self, evaluation: &Evaluation, mut batch: RecordBatch) -> Result<RecordBatch> {
        if let Evaluation::Batches(parts) = evaluation {
            for part in parts {
                let is_true = evaluate_by_row(part, &batch)?;
                batch = rows::filter(&batch, &is_true).map_err(to_datafusion)?;
            }
        }
        let batch = self.projector.project_batch(&batch)?;
        if batch.schema_ref() == &self.schema {
            return Ok(batch);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (_, columns, _) = batch.into_parts();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Counts rows that are given.
    fn gave(&mut self, rows: usize) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(rows as u64);
        }
        if rows > 0 {
            self.rows.add(self.partition, rows);
        }
    }
}

/// The memory of the reads of a file, and of the indexes that are kept.
struct FileMemory {
    /// Together they take at most what one read may.
    budget: Budget,
    /// The same, in the memory pool.
    reservation: Option<MemoryReservation>,
}

impl FileMemory {
    /// Whether the pool has as much as is held.
    fn try_reserve(&self) -> bool {
        let held = saturated(self.budget.used());
        self.reservation.as_ref().is_none_or(|reservation| reservation.try_resize(held).is_ok())
    }
}

/// What is counted in the metrics.
struct FileCounts {
    metrics: FileMetrics,
    /// The counters of the current read.
    counters: Arc<FilterCounters>,
    /// Bytes that were fetched, as far as they are counted.
    bytes: u64,
}

impl FileCounts {
    /// Counts the row groups that begin to be read. `is_learned` if filters that were learned since
    /// the first ones may have excluded some.
    fn count_plan(&self, counts: &PlanCounts, is_learned: bool) {
        let metrics = &self.metrics;
        if let Some((matched, pruned)) = counts.limit {
            metrics.limit_pruned_row_groups.add_matched(matched);
            metrics.limit_pruned_row_groups.add_pruned(pruned);
        }
        let Some(counts) = counts.row_groups else {
            metrics.predicate_errors.add(1);
            return;
        };
        let RowGroupCounts { left, pruned, fully_matched, skips_page_indexes } = counts;
        if is_learned {
            // As in DataFusion's own source: what was known at first has left them.
            metrics.row_groups_pruned.add_matched(left + pruned);
            metrics.row_groups_pruned_dynamic.add(pruned);
        } else {
            metrics.row_groups_pruned.add_pruned(pruned);
            metrics.row_groups_pruned.add_matched(left);
        }
        metrics.row_groups_pruned.add_fully_matched(fully_matched);
        if skips_page_indexes {
            metrics.skipped_page_indexes();
        }
    }

    /// Counts what was fetched until now, and what the current read has filtered.
    fn count(&mut self, planner: &RowGroupPlanner, given: usize) {
        let bytes = planner.reader.progress().bytes_fetched();
        let fetched = saturated(bytes - self.bytes);
        self.metrics.bytes_scanned.add(fetched);
        self.metrics.scan_efficiency_ratio.add_part(fetched);
        self.bytes = bytes;
        self.metrics.take(&self.counters);
        let filter = &planner.filter;
        if matches!(filter.evaluation, Evaluation::Reader) && !filter.is_empty() {
            self.metrics.rows_matched.add(given);
        }
    }
}

/// Sets which columns are read, and as which types.
fn set_columns(
    options: &mut ReadOptions,
    columns: &Columns,
    filter_columns: &[usize],
    schema: &FileSchema,
) {
    let n = schema.physical.fields().len();
    let of_file = columns.positions.iter().copied().filter(|position| *position < n);
    let target = schema.target(of_file.chain(filter_columns.iter().copied()));
    options.projection = match target {
        Some(_) => columns.by_name(&schema.physical),
        None => columns.projection.clone(),
    };
    options.arrow = schema.options(target);
    if columns.positions.last() == Some(&n) {
        options.virtual_columns = vec![VirtualColumn::RowNumber { name: ROW_NUMBERS.into() }];
    }
}

impl FileStream {
    pub(crate) fn new(
        scan: &Scan,
        prepared: Prepared,
        known: KnownFile,
        of_file: OfFile,
    ) -> Result<Self> {
        let OfFile { schema, projection, filters, row_groups, selection, output } = of_file;
        let physical = Arc::clone(&schema.physical);
        let filter_columns: Vec<usize> =
            filters.all().flat_map(collect_columns).map(|column| column.index()).collect();
        let mut filter = FileFilter::new(scan, filters, &physical, &filter_columns)?;
        let outputs: Vec<_> = projection.expr_iter().collect();
        let in_batches = match &filter.evaluation {
            Evaluation::Batches(parts) => parts.clone(),
            Evaluation::Reader | Evaluation::Above => Vec::new(),
        };
        let columns = Columns::for_expressions(outputs.iter().chain(&in_batches), &physical);
        filter.saved = saved_nanos(&columns, &filter_columns, &physical);
        let reader = open(scan, &prepared, known);
        let mut options = read_options(scan, reader.read_options());
        options.selection = selection;
        let keeper = |cache| IndexKeeper::new(cache, &prepared.file.object_meta, reader.metadata());
        let indexes = scan.cache.as_ref().map(keeper);
        set_columns(&mut options, &columns, &filter_columns, &schema);
        let reader = reader.options(options).threads(1);
        let budget = reader.new_budget();
        let wiring = filter.wiring(scan, indexes.as_ref(), &budget);
        let read = reader.schema().map_err(to_datafusion)?;
        let at = |expr: Arc<dyn PhysicalExpr>| pushdown::at_positions(&expr, &columns.positions);
        let projector = projection.try_map_exprs(at)?.make_projector(&read)?;
        if !in_batches.is_empty() {
            let parts = in_batches.into_iter().map(at).collect::<Result<_>>()?;
            filter.evaluation = Evaluation::Batches(parts);
        }
        let left = scan.limit.filter(|_| scan.filter.is_none() || scan.filters_rows);
        let Prepared { metrics, pruner, file, .. } = prepared;
        metrics.scan_efficiency_ratio.set_total(saturated(file.object_meta.size));
        let reservation = scan.pool.as_ref().map(|pool| {
            MemoryConsumer::new(format!("MarquetryScan[{}]", scan.partition)).register(pool)
        });
        let rows = Arc::clone(&scan.output_rows);
        let left = left.map(|rows| rows as u64);
        Ok(Self {
            planner: RowGroupPlanner { reader, wiring, filter, is_ordered: scan.is_ordered },
            output: FileOutput { projector, schema: output, left, rows, partition: scan.partition },
            memory: FileMemory { budget, reservation },
            waiting: row_groups.into(),
            current: None,
            next: NextRead::Waiting,
            stage: Stage::Unopened,
            counts: FileCounts { metrics, counters: Arc::default(), bytes: 0 },
            pruner,
            _indexes: indexes,
        })
    }

    /// Opens the next row groups: all of them if no filter can change, else one.
    ///
    /// # Errors
    /// Whatever is wrong with the metadata or the filter.
    fn open_next(&mut self) -> Result<bool> {
        if let Some(pruner) = &mut self.pruner
            && self.stage != Stage::Unopened
        {
            let _timer = self.counts.metrics.statistics_eval_time.timer();
            if pruner.should_prune()? {
                self.counts.metrics.row_groups_pruned_dynamic.add(self.waiting.len());
                self.counts.metrics.row_groups_pruned.add_matched(self.waiting.len());
                self.waiting.clear();
            }
        }
        if self.waiting.is_empty() || self.output.left == Some(0) {
            self.drop_ahead();
            return Ok(false);
        }
        let ahead = self.next.take();
        // Both are asked before the filters are looked at, so that a filter that is learned
        // meanwhile is only applied again.
        let (may_change, generation) =
            (self.planner.filter.may_change(), self.planner.filter.generation());
        let ahead = match ahead {
            Some(Ahead { read: Some(opened), generation: of })
                if may_change && of == generation =>
            {
                self.waiting.pop_front();
                opened.stream.keep_fetched(false);
                self.begin(opened);
                return Ok(true);
            }
            ahead => ahead.and_then(|ahead| ahead.read),
        };
        let is_on_its_way = ahead.as_ref().is_some_and(|ahead| !ahead.stream.is_fetched());
        let n = if may_change || is_on_its_way { 1 } else { self.waiting.len() };
        let groups: Vec<usize> = self.waiting.drain(..n).collect();
        let Planned { reader, plan, counts } = self.planned(&groups)?;
        match ahead {
            // Its rows are those of filters that let more through.
            Some(ahead) if is_on_its_way && !plan.ranges().is_empty() => {
                ahead.stream.keep_fetched(false);
                self.begin(ahead);
            }
            ahead => {
                let mut stream = reader.stream_plan(plan).map_err(to_datafusion)?;
                if let Some(Opened { stream: ahead, counts }) = ahead {
                    stream.take_over(ahead);
                    self.counts.metrics.take_times(&counts.counters);
                }
                self.begin(Opened { stream, counts });
            }
        }
        Ok(true)
    }

    /// Drops the row group that was opened ahead. Its turn may still come.
    fn drop_ahead(&mut self) {
        if let Some(current) = &mut self.current {
            current.share_memory(false);
        }
        if let Some(Ahead { read: Some(opened), .. }) = self.next.take() {
            self.counts.metrics.take_times(&opened.counts.counters);
        }
    }

    /// Makes a read the current one.
    fn begin(&mut self, opened: Opened) {
        let Opened { mut stream, counts } = opened;
        let has_learned = !self.planner.filter.filters.learned.is_empty();
        self.counts.count_plan(&counts, self.stage != Stage::Unopened && has_learned);
        self.counts.counters = counts.counters;
        if self.output.left.is_none() && !matches!(self.next, NextRead::HeldBack) {
            stream.fetch_small(SMALL.min(self.planner.reader.read_options().read_ahead.bytes));
        }
        self.stage = self.stage.max(Stage::Opened);
        self.current = Some(stream);
    }

    /// Fetches the current row group, and then the next one. It is not fetched before anything is
    /// learned, if the first rows may show that it is not needed.
    fn fetch(&mut self, cx: &mut Context<'_>) {
        let Some(current) = &mut self.current else { return };
        if self.waiting.is_empty() {
            return;
        }
        current.fetch(cx);
        if matches!(self.next, NextRead::Waiting) && current.is_fetched() {
            let Some(group) = self.waiting.front().copied() else { return };
            if self.stage != Stage::Given && !self.planner.filter.has_learned() {
                return;
            }
            let generation = self.planner.filter.generation();
            let read = self.opened_ahead(group);
            if let Some(current) = &mut self.current {
                current.share_memory(read.is_some());
            }
            self.next = NextRead::Ahead(Box::new(Ahead { generation, read }));
        }
        if let NextRead::Ahead(ahead) = &mut self.next
            && let Some(opened) = &mut ahead.read
        {
            opened.stream.fetch(cx);
        }
    }

    /// The read of row groups, with what their statistics leave of them.
    fn planned(&self, groups: &[usize]) -> Result<Planned> {
        let _timer = self.counts.metrics.statistics_eval_time.timer();
        self.planner.planned(groups, self.output.left)
    }

    /// A row group to be fetched beside the memory that is held; `None` if there is no memory for
    /// it.
    fn opened_ahead(&self, group: usize) -> Option<Opened> {
        let Planned { reader, plan, counts } = self.planned(&[group]).ok()?;
        let wanted = plan.wanted_bytes().ok()?.saturating_add(self.memory.budget.used());
        // The other half is for decoding the current row group.
        if wanted > reader.read_options().read_ahead.bytes.min(self.memory.budget.cap() / 2) {
            return None;
        }
        let stream = reader.stream_plan(plan).ok()?;
        stream.keep_fetched(true);
        Some(Opened { stream, counts })
    }

    /// Reserves the memory that is held now. If the pool has no room, row groups are fetched one at
    /// a time. That is no error: other operators learn that they are to spill when the pool refuses
    /// them, not when it refuses a scan.
    fn reserve(&mut self) {
        if !self.memory.try_reserve() {
            self.hold_back();
            // The rest is refused again at the next batch, if it must be.
            self.memory.try_reserve();
        }
    }

    /// Fetches row groups one at a time, and none before its turn.
    fn hold_back(&mut self) {
        self.drop_ahead();
        self.next = NextRead::HeldBack;
        if let Some(current) = &mut self.current {
            current.hold_back();
        }
    }

    fn end_current(&mut self) {
        self.current = None;
        // Bytes that were fetched ahead stay, and so do the indexes that are kept.
        self.memory.try_reserve();
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            self.fetch(cx);
            let Some(current) = &mut self.current else {
                if !self.open_next()? {
                    return Poll::Ready(Ok(None));
                }
                continue;
            };
            let polled = Pin::new(&mut *current).poll_next(cx);
            if polled.is_pending() && current.lacks_memory() {
                self.hold_back();
                continue;
            }
            self.reserve();
            match ready!(polled) {
                Some(batch) => {
                    let batch = batch.map_err(to_datafusion)?;
                    self.counts.count(&self.planner, batch.num_rows());
                    let evaluation = &self.planner.filter.evaluation;
                    let batch = self.output.finished(evaluation, batch)?;
                    self.output.gave(batch.num_rows());
                    if batch.num_rows() > 0 {
                        self.stage = Stage::Given;
                        return Poll::Ready(Ok(Some(batch)));
                    }
                }
                None => {
                    self.counts.count(&self.planner, 0);
                    self.end_current();
                }
            }
        }
    }
}

impl Stream for FileStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let compute = self.counts.metrics.elapsed_compute.clone();
        let timer = compute.timer();
        let polled = ready!(self.poll_batch(cx));
        timer.done();
        if polled.is_err() {
            // After an error there is nothing more.
            self.next.take();
            self.end_current();
            self.waiting.clear();
        }
        Poll::Ready(polled.transpose())
    }
}

/// A reader of the file, whose metadata are there.
fn open(scan: &Scan, prepared: &Prepared, known: KnownFile) -> AsyncReader {
    let (store, object) = (Arc::clone(&scan.store), &prepared.file.object_meta);
    let reader = if scan.is_local {
        AsyncReader::open_known(LocalSource::new(store, object.clone()), known)
    } else {
        AsyncReader::open_known(StoreSource::listed(store, object.clone()), known)
    };
    reader.file_name(object.location.as_ref())
}

/// The options of the read, from those of the scan.
fn read_options(scan: &Scan, default: &ReadOptions) -> ReadOptions {
    let mut options = default.clone();
    options.batch_rows = scan.batch_rows.max(1);
    options.page_index = scan.page_index;
    options.limits = scan.limits.clone();
    options.read_ahead = READ_AHEAD;
    if let Some(MemoryLimit::Finite(bytes)) = scan.pool.as_ref().map(|pool| pool.memory_limit()) {
        // Others want memory of a small pool too.
        options.read_ahead.bytes = READ_AHEAD.bytes.min(bytes as u64 / POOL_PART);
    }
    options
}

/// Limits of what one stream fetches ahead: there is one for each partition of each scan of a
/// query.
const READ_AHEAD: ReadAhead = ReadAhead::new(2, 64 << 20);

/// Row groups that take no more bytes than these are fetched at once: to wait for each would take
/// longer than to decode it.
const SMALL: u64 = 1 << 20;

/// Maximum part of a memory pool (one in this many) that one stream fetches ahead.
const POOL_PART: u64 = 8;
