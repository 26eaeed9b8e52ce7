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
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use datafusion_common::Result;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion_physical_expr::projection::Projector;
use datafusion_physical_expr::utils::{collect_columns, conjunction};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use futures_core::Stream;

use crate::columns::{Columns, ROW_NUMBERS};
use crate::error::to_datafusion;
use crate::evaluate::evaluate_by_row;
use crate::fallible::can_fail;
use crate::learned::{PassRates, Trust, TrustedPruner, Usage, has_learned, may_change};
use crate::local::LocalSource;
use crate::metadata::IndexKeeper;
use crate::metrics::{FileMetrics, OutputRows};
use crate::pushdown::{self, Filters};
use crate::scan::{OfFile, Prepared, Scan};
use crate::schema::FileSchema;
use crate::statistics::saturated;
use marquetry::engine::{Budget, FilterCounters, KnownFile, ReadWiring};
use marquetry::io::StoreSource;
use marquetry::read::{PageIndexUse, Plan, ReadAhead, ReadOptions, VirtualColumn};
use marquetry::{AsyncReader, BatchStream, ErrorKind, Predicate};

/// The batches of a file.
pub(crate) struct FileStream {
    reader: AsyncReader,
    wiring: ReadWiring,
    filter: FileFilter,
    projector: Projector,
    output: SchemaRef,
    /// Row groups that are not opened yet.
    waiting: VecDeque<usize>,
    current: Option<BatchStream>,
    /// The first of `waiting`, which is fetched while `current` is decoded.
    ahead: Option<Ahead>,
    /// Whether rows were given, from which filters may be learned.
    has_given: bool,
    /// Whether nothing is fetched before its turn, because there is no memory for it.
    is_held_back: bool,
    /// The memory of `current`, of `ahead`, and of the indexes that are kept: together at most that
    /// of a read.
    budget: Budget,
    /// The same, in the memory pool.
    reservation: Option<MemoryReservation>,
    /// Rows that may still be given.
    left: Option<u64>,
    is_ordered: bool,
    is_first: bool,
    /// Bytes that were fetched, as far as they are counted.
    bytes: u64,
    /// The counters of `current`.
    counters: Arc<FilterCounters>,
    metrics: FileMetrics,
    output_rows: Arc<OutputRows>,
    partition: usize,
    pruner: Option<TrustedPruner>,
    /// Keeps the indexes that were fetched, for other queries.
    _indexes: Option<IndexKeeper>,
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

/// A read that was planned, and what it is to count.
struct Planned {
    reader: AsyncReader,
    plan: Plan,
    counts: PlanCounts,
}

/// The counts that a plan adds to the metrics when it is read. A row group may be planned more than
/// once; it counts once, by the plan by which it is read.
#[derive(Default)]
struct PlanCounts {
    /// `None` if the filter could not be looked at.
    row_groups: Option<RowGroupCounts>,
    /// Row groups that a limit needs, and those that it does not.
    limit: Option<(usize, usize)>,
    /// The counters of what the read does for its filter.
    counters: Arc<FilterCounters>,
}

/// The row groups that statistics have left.
#[derive(Clone, Copy, Default)]
struct RowGroupCounts {
    left: usize,
    pruned: usize,
    /// Number of row groups in which all rows pass.
    fully_matched: usize,
    /// Whether page indexes could exclude nothing more.
    skips_page_indexes: bool,
}

impl RowGroupCounts {
    fn new(plan: &Plan, page_index: PageIndexUse, groups: usize) -> Result<Self> {
        let left = row_groups_of(plan).len();
        let fully_matched = plan.claimed_rows().count();
        let skips_page_indexes = page_index != PageIndexUse::Never
            && plan.skips_page_indexes().map_err(to_datafusion)?;
        let pruned = groups.saturating_sub(left);
        Ok(Self { left, pruned, fully_matched: fully_matched.min(left), skips_page_indexes })
    }
}

/// The filters of a scan in one file.
struct FileFilter {
    evaluation: Evaluation,
    /// The predicate of the filters that do not change.
    fixed: Option<Predicate>,
    filters: Filters,
    physical: SchemaRef,
    rates: Arc<PassRates>,
    trust: Arc<Trust>,
    prunes: bool,
    /// About how many nanoseconds a row saves that does not pass.
    saved: f64,
}

/// Where the rows are left out that do not pass.
enum Evaluation {
    /// In the reader, which also prunes.
    Reader,
    /// The filters of batches, conjunct by conjunct: two columns of the file have one name, so that
    /// a predicate cannot name either.
    Batches(Vec<Arc<dyn PhysicalExpr>>),
    /// In a node above the scan, which only prunes.
    Above,
}

/// The cost of decoding a row of the columns that are decoded only for rows that pass.
fn saved_nanos(columns: &Columns, filter_columns: &[usize], physical: &Schema) -> f64 {
    let late = columns.positions.iter().filter(|column| !filter_columns.contains(column));
    let late = late.filter_map(|column| physical.fields().get(*column));
    late.map(|field| pushdown::decode_nanos(field.data_type())).sum()
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

impl FileFilter {
    fn new(scan: &Scan, filters: Filters, physical: &SchemaRef, columns: &[usize]) -> Result<Self> {
        let is_bindable = columns.iter().all(|index| is_unique(physical, *index));
        let fixed = (!filters.fixed.is_empty()).then(|| conjunction(filters.fixed.iter().cloned()));
        let learned = filters.learned.iter().filter(|_| is_bindable).cloned();
        let learned = learned.collect();
        let evaluation = match &fixed {
            Some(_) if scan.filters_rows && !is_bindable => {
                let mut parts = filters.fixed.clone();
                parts.sort_by_key(|part| can_fail(part, physical));
                Evaluation::Batches(parts)
            }
            _ if scan.filters_rows && is_bindable => Evaluation::Reader,
            _ => Evaluation::Above,
        };
        let fixed = fixed.filter(|_| is_bindable);
        let fixed = fixed.map(|fixed| pushdown::predicate(&fixed, physical)).transpose()?;
        let filters = Filters { learned, ..filters };
        let (physical, rates) = (Arc::clone(physical), Arc::clone(&scan.rates));
        let (trust, prunes) = (Arc::clone(&scan.trust), scan.prunes);
        Ok(Self { evaluation, fixed, filters, physical, rates, trust, prunes, saved: 0.0 })
    }

    fn wiring(&self, scan: &Scan, indexes: Option<&IndexKeeper>, budget: &Budget) -> ReadWiring {
        let mut wiring = ReadWiring::default();
        wiring.bloom_filters = scan.uses_bloom_filters;
        wiring.only_prunes = matches!(self.evaluation, Evaluation::Above);
        wiring.loaded_indexes = indexes.map(IndexKeeper::loaded);
        wiring.budget = Some(budget.clone());
        wiring
    }

    /// Whether the reader has anything to evaluate or to prune by.
    fn is_empty(&self) -> bool {
        self.fixed.is_none() && self.filters.learned.is_empty()
    }

    /// Whether a filter may still be learned.
    fn may_change(&self) -> bool {
        self.filters.learned.iter().any(may_change)
    }

    /// Whether anything was learned yet.
    fn has_learned(&self) -> bool {
        self.filters.learned.iter().any(has_learned)
    }

    /// A number that grows whenever more is learned.
    fn generation(&self) -> u64 {
        self.filters.learned.iter().map(|filter| filter.snapshot_generation()).sum()
    }

    /// The filter of the rows, with everything that was learned until now.
    fn now(&self) -> Result<Option<Predicate>> {
        if !self.prunes {
            return self.untyped();
        }
        let mut parts = Vec::from_iter(self.fixed.clone());
        for (place, filter) in self.filters.learned.iter().enumerate() {
            let (rate, trust) = (self.rates.at(place), Arc::clone(&self.trust));
            let usage = Usage { rate, saved: self.saved, trust };
            parts.push(pushdown::learned_predicate(filter, &self.physical, &usage)?);
        }
        Ok((!parts.is_empty()).then(|| Predicate::all_of(parts)))
    }

    /// The filter of the rows as a function that DataFusion evaluates, which prunes nothing.
    fn untyped(&self) -> Result<Option<Predicate>> {
        if self.fixed.is_none() || !matches!(self.evaluation, Evaluation::Reader) {
            return Ok(None);
        }
        let fixed = self.filters.fixed.iter();
        let parts = fixed.map(|filter| pushdown::untyped_predicate(filter, &self.physical));
        Ok(Some(Predicate::all_of(parts.collect::<Result<Vec<_>>>()?)))
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
        Ok(Self {
            reader,
            wiring,
            filter,
            projector,
            output,
            waiting: row_groups.into(),
            current: None,
            ahead: None,
            has_given: false,
            is_held_back: false,
            budget,
            reservation: scan.pool.as_ref().map(|pool| {
                MemoryConsumer::new(format!("MarquetryScan[{}]", scan.partition)).register(pool)
            }),
            left: left.map(|rows| rows as u64),
            is_ordered: scan.is_ordered,
            is_first: true,
            bytes: 0,
            counters: Arc::default(),
            metrics,
            output_rows: Arc::clone(&scan.output_rows),
            partition: scan.partition,
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
            && !self.is_first
        {
            let _timer = self.metrics.statistics_eval_time.timer();
            if pruner.should_prune()? {
                self.metrics.row_groups_pruned_dynamic.add(self.waiting.len());
                self.metrics.row_groups_pruned.add_matched(self.waiting.len());
                self.waiting.clear();
            }
        }
        if self.waiting.is_empty() || self.left == Some(0) {
            self.drop_ahead();
            return Ok(false);
        }
        let ahead = self.ahead.take();
        // Both are asked before the filters are looked at, so that a filter that is learned
        // meanwhile is only applied again.
        let (may_change, generation) = (self.filter.may_change(), self.filter.generation());
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
                    self.metrics.take_times(&counts.counters);
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
        if let Some(Ahead { read: Some(opened), .. }) = self.ahead.take() {
            self.metrics.take_times(&opened.counts.counters);
        }
    }

    /// Makes a read the current one.
    fn begin(&mut self, opened: Opened) {
        let Opened { mut stream, counts } = opened;
        self.count_plan(&counts);
        self.counters = counts.counters;
        if self.left.is_none() && !self.is_held_back {
            stream.fetch_small(SMALL.min(self.reader.read_options().read_ahead.bytes));
        }
        self.is_first = false;
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
        if self.ahead.is_none() && !self.is_held_back && current.is_fetched() {
            let Some(group) = self.waiting.front().copied() else { return };
            if !self.has_given && !self.filter.has_learned() {
                return;
            }
            let generation = self.filter.generation();
            let read = self.opened_ahead(group);
            if let Some(current) = &mut self.current {
                current.share_memory(read.is_some());
            }
            self.ahead = Some(Ahead { generation, read });
        }
        if let Some(Ahead { read: Some(opened), .. }) = &mut self.ahead {
            opened.stream.fetch(cx);
        }
    }

    /// A row group to be fetched beside the memory that is held; `None` if there is no memory for
    /// it.
    fn opened_ahead(&self, group: usize) -> Option<Opened> {
        let Planned { reader, plan, counts } = self.planned(&[group]).ok()?;
        let wanted = plan.wanted_bytes().ok()?.saturating_add(self.budget.used());
        // The other half is for decoding the current row group.
        if wanted > reader.read_options().read_ahead.bytes.min(self.budget.cap() / 2) {
            return None;
        }
        let stream = reader.stream_plan(plan).ok()?;
        stream.keep_fetched(true);
        Some(Opened { stream, counts })
    }

    /// The read of row groups, with what their statistics leave of them.
    fn planned(&self, groups: &[usize]) -> Result<Planned> {
        let _timer = self.metrics.statistics_eval_time.timer();
        let mut counts = PlanCounts::default();
        let mut wiring = self.wiring.clone();
        wiring.counters = Some(Arc::clone(&counts.counters));
        let mut reader = self.reader.clone().wired(wiring);
        reader = reader.row_groups(groups.iter().copied()).map_err(to_datafusion)?;
        if let Some(left) = self.left
            && !matches!(self.filter.evaluation, Evaluation::Batches(_))
        {
            reader = reader.limit(left);
        }
        let Some(filter) = self.filter.now()? else {
            let plan = reader.plan().map_err(to_datafusion)?;
            // Row groups beyond a limit do not count as pruned.
            let all = RowGroupCounts { left: groups.len(), ..RowGroupCounts::default() };
            counts.row_groups = Some(all);
            return Ok(Planned { reader, plan, counts });
        };
        let page_index = reader.read_options().page_index;
        let filtered = reader.clone().filter(filter);
        match filtered.plan() {
            Ok(plan) => {
                counts.row_groups = Some(RowGroupCounts::new(&plan, page_index, groups.len())?);
                let (reader, plan) = self.within_limit(filtered, plan, &mut counts)?;
                Ok(Planned { reader, plan, counts })
            }
            // A literal that the type of the column does not hold, perhaps.
            Err(e) if e.kind() == ErrorKind::Usage => {
                let reader = match self.filter.untyped()? {
                    Some(filter) => reader.filter(filter),
                    None => reader,
                };
                let plan = reader.plan().map_err(to_datafusion)?;
                Ok(Planned { reader, plan, counts })
            }
            Err(e) => Err(to_datafusion(e)),
        }
    }

    /// The read; if the row groups in which all rows pass suffice for the limit, a read of only
    /// those.
    fn within_limit(
        &self,
        reader: AsyncReader,
        plan: Plan,
        counts: &mut PlanCounts,
    ) -> Result<(AsyncReader, Plan)> {
        let Some(left) = self.left.filter(|_| !self.is_ordered) else { return Ok((reader, plan)) };
        let (mut enough, mut rows) = (Vec::new(), 0u64);
        for (row_group, claimed) in plan.claimed_rows() {
            if rows >= left {
                break;
            }
            rows = rows.saturating_add(claimed);
            enough.push(row_group);
        }
        enough.dedup();
        let all = row_groups_of(&plan).len();
        if rows < left || enough.len() == all {
            counts.limit = Some((all, 0));
            return Ok((reader, plan));
        }
        counts.limit = Some((enough.len(), all - enough.len()));
        let reader = reader.row_groups(enough).map_err(to_datafusion)?;
        let plan = reader.plan().map_err(to_datafusion)?;
        Ok((reader, plan))
    }

    /// Counts the row groups that begin to be read.
    fn count_plan(&self, counts: &PlanCounts) {
        if let Some((matched, pruned)) = counts.limit {
            self.metrics.limit_pruned_row_groups.add_matched(matched);
            self.metrics.limit_pruned_row_groups.add_pruned(pruned);
        }
        let Some(counts) = counts.row_groups else {
            self.metrics.predicate_errors.add(1);
            return;
        };
        let RowGroupCounts { left, pruned, fully_matched, skips_page_indexes } = counts;
        if self.is_first || self.filter.filters.learned.is_empty() {
            self.metrics.row_groups_pruned.add_pruned(pruned);
            self.metrics.row_groups_pruned.add_matched(left);
        } else {
            // As in DataFusion's own source: what was known at first has left them.
            self.metrics.row_groups_pruned.add_matched(left + pruned);
            self.metrics.row_groups_pruned_dynamic.add(pruned);
        }
        self.metrics.row_groups_pruned.add_fully_matched(fully_matched);
        if skips_page_indexes {
            self.metrics.skipped_page_indexes();
        }
    }

    /// Counts what was fetched and filtered until now.
    fn count(&mut self, given: usize) {
        let bytes = self.reader.progress().bytes_fetched();
        let fetched = saturated(bytes - self.bytes);
        self.metrics.bytes_scanned.add(fetched);
        self.metrics.scan_efficiency_ratio.add_part(fetched);
        self.bytes = bytes;
        self.metrics.take(&self.counters);
        if matches!(self.filter.evaluation, Evaluation::Reader) && !self.filter.is_empty() {
            self.metrics.rows_matched.add(given);
        }
    }

    /// Reserves the memory that is held now. If the pool has no room, row groups are fetched one at
    /// a time. That is no error: other operators learn that they are to spill when the pool refuses
    /// them, not when it refuses a scan.
    fn reserve(&mut self) {
        if !self.try_reserve() {
            self.hold_back();
            // The rest is refused again at the next batch, if it must be.
            self.try_reserve();
        }
    }

    /// Whether the pool has as much as is held.
    fn try_reserve(&self) -> bool {
        let held = saturated(self.budget.used());
        self.reservation.as_ref().is_none_or(|reservation| reservation.try_resize(held).is_ok())
    }

    /// Fetches row groups one at a time, and none before its turn.
    fn hold_back(&mut self) {
        self.is_held_back = true;
        self.drop_ahead();
        if let Some(current) = &mut self.current {
            current.hold_back();
        }
    }

    /// A batch as the query wants it.
    fn finished(&self, mut batch: RecordBatch) -> Result<RecordBatch> {
        if let Evaluation::Batches(parts) = &self.filter.evaluation {
            for part in parts {
                batch = filter_record_batch(&batch, &evaluate_by_row(part, &batch)?)?;
            }
        }
        let batch = self.projector.project_batch(&batch)?;
        if batch.schema_ref() == &self.output {
            return Ok(batch);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (_, columns, _) = batch.into_parts();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    fn end_current(&mut self) {
        self.current = None;
        // Bytes that were fetched ahead stay, and so do the indexes that are kept.
        self.try_reserve();
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
                    self.count(batch.num_rows());
                    let batch = self.finished(batch)?;
                    if let Some(left) = &mut self.left {
                        *left = left.saturating_sub(batch.num_rows() as u64);
                    }
                    if batch.num_rows() > 0 {
                        self.has_given = true;
                        self.output_rows.add(self.partition, batch.num_rows());
                        return Poll::Ready(Ok(Some(batch)));
                    }
                }
                None => {
                    self.count(0);
                    self.end_current();
                }
            }
        }
    }
}

impl Stream for FileStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let compute = self.metrics.elapsed_compute.clone();
        let timer = compute.timer();
        let polled = ready!(self.poll_batch(cx));
        timer.done();
        if polled.is_err() {
            // After an error there is nothing more.
            self.ahead = None;
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

/// The row groups that a plan reads.
fn row_groups_of(plan: &Plan) -> Vec<usize> {
    let mut out: Vec<usize> = plan.ranges().iter().map(|range| range.row_group).collect();
    out.dedup();
    out
}

/// Whether the column at `index` alone has its name, by which a predicate finds it.
fn is_unique(schema: &Schema, index: usize) -> bool {
    let Some(field) = schema.fields().get(index) else { return false };
    schema.fields().iter().filter(|other| other.name() == field.name()).count() == 1
}
