//! [`LearnedFilter`]: a filter that DataFusion learns while the query runs, whether it may be
//! trusted, and whether it pays.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_ord::cmp::distinct;
use arrow_select::filter::filter_record_batch;
use datafusion_common::Result;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, DynamicFilterPhysicalExpr, DynamicFilterTracking, IsNotNullExpr,
    IsNullExpr, Literal,
};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_expr_common::sort_expr::LexOrdering;
use datafusion_pruning::FilePruner;

use crate::evaluate::evaluate;
use crate::key_set::{KeyRange, KeySet};
use crate::routed::{Routed, bounds_of};
use marquetry::engine::repeated;

/// How much each learned part that costs something has let through so far, by its place among them.
/// Shared by all files and partitions of a scan.
#[derive(Debug, Default)]
pub(crate) struct PassRates(Mutex<Vec<Arc<PassRate>>>);

impl PassRates {
    /// The rate of the learned part at `place`.
    pub(crate) fn at(&self, place: usize) -> Arc<PassRate> {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while rates.len() <= place {
            rates.push(Arc::default());
        }
        rates.get(place).cloned().unwrap_or_default()
    }
}

/// How much one learned part has let through since it last changed, and what that took.
#[derive(Debug, Default)]
pub(crate) struct PassRate {
    generation: AtomicU64,
    rows: AtomicU64,
    passed: AtomicU64,
    nanos: AtomicU64,
}

/// Rows after which it is known whether a learned part is worth evaluating.
const TRIAL_ROWS: u64 = 64 << 10;

impl PassRate {
    /// Counts from 0 if the part has changed: it may remove more rows now.
    pub(crate) fn begin(&self, generation: u64) {
        if self.generation.swap(generation, Ordering::Relaxed) != generation {
            self.rows.store(0, Ordering::Relaxed);
            self.passed.store(0, Ordering::Relaxed);
            self.nanos.store(0, Ordering::Relaxed);
        }
    }

    /// Whether evaluating costs more than it saves: `saved` nanoseconds for a row that need not be
    /// decoded.
    ///
    /// What joins ask of a row they ask again of one that passes: that is the cost. And where half
    /// of the rows pass, picking them costs as much as to decode all.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn is_futile(&self, saved: f64) -> bool {
        let rows = self.rows.load(Ordering::Relaxed);
        if rows < TRIAL_ROWS {
            return false;
        }
        let passed = self.passed.load(Ordering::Relaxed) as f64 / rows as f64;
        let cost = self.nanos.load(Ordering::Relaxed) as f64 / rows as f64;
        saved * (1.0 - 2.0 * passed) < cost * passed
    }

    fn count(&self, tested: &BooleanArray, time: Duration) {
        self.rows.fetch_add(tested.len() as u64, Ordering::Relaxed);
        self.passed.fetch_add(tested.true_count() as u64, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Whether more of a learned filter may still come to be known.
pub(crate) fn may_change(filter: &Arc<dyn PhysicalExpr>) -> bool {
    matches!(DynamicFilterTracking::classify(filter), DynamicFilterTracking::Watching(_))
}

/// Whether anything is known of a learned filter.
pub(crate) fn has_learned(filter: &Arc<dyn PhysicalExpr>) -> bool {
    let dynamic = filter.downcast_ref::<DynamicFilterPhysicalExpr>();
    dynamic.is_some_and(|dynamic| dynamic.current().is_ok_and(|now| !now.is::<Literal>()))
}

/// Which learned filters may be trusted.
///
/// DataFusion 55.2 learns bounds for the bare columns among the arguments of MIN and MAX, and
/// passes over the other arguments, though rows within the bounds may change those:
/// `AggregateExec::init_dynamic_filter`. What it learns there looks like what it learns for
/// `ORDER BY … LIMIT`, nulls last.
#[derive(Debug, Clone)]
pub(crate) enum Trust {
    /// All of them: the session has no filters of aggregates.
    All,
    /// Of filters that are only bounds, only those of the sort that the scan is ordered for.
    Sorted(Option<SortBound>),
}

/// The bound of a sort on its first column.
#[derive(Debug, Clone)]
pub(crate) struct SortBound {
    column: String,
    op: Operator,
}

impl Trust {
    /// In a session without filters of aggregates, or of a scan in this order.
    pub(crate) fn new(has_aggregate_filters: bool, order: Option<&LexOrdering>) -> Self {
        if !has_aggregate_filters {
            return Self::All;
        }
        Self::Sorted(order.map(LexOrdering::first).and_then(|key| {
            let column = key.expr.downcast_ref::<Column>()?.name().to_owned();
            let op = if key.options.descending { Operator::Gt } else { Operator::Lt };
            Some(SortBound { column, op })
        }))
    }

    /// Whether what was learned may leave out rows.
    pub(crate) fn allows(&self, learned: &Arc<dyn PhysicalExpr>) -> bool {
        let Self::Sorted(sorted) = self else { return true };
        let bound = bare_bound(learned).zip(sorted.as_ref());
        !are_bounds(learned)
            || bound
                .is_some_and(|((column, op), sorted)| column == sorted.column && op == sorted.op)
    }

    /// Whether the current state of a learned filter may exclude rows.
    pub(crate) fn allows_now(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let Some(dynamic) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() else {
            return true;
        };
        matches!(self, Self::All) || dynamic.current().is_ok_and(|now| self.allows(&now))
    }
}

/// Whether an expression is `a > 1`, or `a > 1 OR b < 2 OR …`, whatever `a` and `b` have become in
/// the terms of the file.
fn are_bounds(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.downcast_ref::<BinaryExpr>().is_some_and(|test| match test.op() {
        Operator::Or => are_bounds(test.left()) && are_bounds(test.right()),
        Operator::Lt | Operator::Gt => test.right().is::<Literal>(),
        _ => false,
    })
}

/// The name of the column that an expression compares with a literal.
fn bare_bound(expr: &Arc<dyn PhysicalExpr>) -> Option<(&str, Operator)> {
    let test = expr.downcast_ref::<BinaryExpr>()?;
    let mut column = test.left();
    while let Some(cast) = column.downcast_ref::<CastExpr>() {
        column = cast.expr();
    }
    Some((column.downcast_ref::<Column>()?.name(), *test.op()))
}

/// Returns whether the statistics of a file exclude it, by what may be trusted.
pub(crate) struct TrustedPruner {
    pruner: FilePruner,
    learned: Vec<Arc<dyn PhysicalExpr>>,
    trust: Arc<Trust>,
}

impl TrustedPruner {
    /// By `pruner`, whose filter has these learned parts.
    pub(crate) fn new(
        pruner: FilePruner,
        learned: Vec<Arc<dyn PhysicalExpr>>,
        trust: Arc<Trust>,
    ) -> Self {
        Self { pruner, learned, trust }
    }

    /// Whether more may come to be known.
    pub(crate) fn is_watching(&self) -> bool {
        self.pruner.is_watching()
    }

    /// Whether no row of the file can pass.
    ///
    /// # Errors
    /// Those of DataFusion for a filter that it cannot look at.
    pub(crate) fn should_prune(&mut self) -> Result<bool> {
        // Asked afterwards: a filter that is nothing but bounds stays so, whatever more is learned.
        Ok(self.pruner.should_prune()?
            && self.learned.iter().all(|filter| self.trust.allows_now(filter)))
    }
}

/// The measured benefit of a learned filter.
#[derive(Debug, Clone)]
pub(crate) struct Usage {
    /// How much it has let through.
    pub(crate) rate: Arc<PassRate>,
    /// About how many nanoseconds a row saves which does not pass.
    pub(crate) saved: f64,
    pub(crate) trust: Arc<Trust>,
}

/// A learned filter, or a part of one, as the rows of a read are tested by it.
pub(crate) struct LearnedFilter {
    expr: Arc<dyn PhysicalExpr>,
    usage: Usage,
    known: Mutex<Known>,
}

/// The learned filter in faster forms, as far as it has them.
#[derive(Clone, Default)]
struct Known {
    generation: u64,
    routed: Option<Arc<Routed>>,
    /// Whether rows are looked up, and not only compared.
    looks_up: bool,
    /// The keys that pass lie in it.
    range: Option<KeyRange>,
    keys: Option<Arc<KeySet>>,
    /// Rows that were tested without `keys`.
    tested: u64,
}

impl Known {
    fn new(expr: &Arc<dyn PhysicalExpr>, generation: u64, range: Option<KeyRange>) -> Self {
        let routed = Routed::from_case(expr).map(Arc::new);
        let bounds = routed.as_ref().map_or(Some(Arc::clone(expr)), |routed| routed.bounds());
        let range = range.or_else(|| bounds.as_ref().and_then(key_range).map(|it| it.1));
        let looks_up = !is_comparison(expr);
        Self { generation, routed, looks_up, range: range.filter(|_| looks_up), ..Self::default() }
    }
}

/// Whether an expression only compares columns with literals, which takes less than to look for
/// runs of equal rows.
fn is_comparison(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_simple = expr.is::<BinaryExpr>()
        || expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>();
    is_simple && expr.children().into_iter().all(is_comparison)
}

impl LearnedFilter {
    /// `expr`, whose columns are those of the batches. Where a `range` is given, rows with a key
    /// outside it need not pass.
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, range: Option<KeyRange>, usage: Usage) -> Self {
        let known = Mutex::new(Known::new(&expr, 0, range));
        Self { expr, usage, known }
    }

    /// Evaluates the filter: true for the rows that pass. All rows pass if evaluation does not pay,
    /// or fails: the filter only saves work, and a row that it cannot be evaluated for may be one
    /// that another filter rejects.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> BooleanArray {
        self.test(batch).unwrap_or_else(|_| vec![true; batch.num_rows()].into())
    }

    fn test(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let (mut expr, mut generation) = (Arc::clone(&self.expr), 0);
        if let Some(dynamic) = self.expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
            // The generation is read first, so that a newer filter is never taken for an older one.
            generation = dynamic.snapshot_generation();
            self.usage.rate.begin(generation);
            expr = dynamic.current()?;
            if expr.is::<Literal>() {
                // Nothing is learned yet, so nothing can be cached.
                return evaluate(&expr, batch);
            }
            if !self.usage.trust.allows(&expr) {
                return Ok(vec![true; batch.num_rows()].into());
            }
        }
        if self.usage.rate.is_futile(self.usage.saved) {
            return Ok(vec![true; batch.num_rows()].into());
        }
        let start = Instant::now();
        let known = self.known(&expr, generation);
        let test = |batch: &RecordBatch| match &known.routed {
            Some(routed) => routed.evaluate(batch),
            None => evaluate(&expr, batch),
        };
        let keys = self.keys(&known, batch, test);
        let found = match (keys, batch.columns()) {
            (Some(keys), [column]) => keys.find(column),
            _ => None,
        };
        let tested = match found {
            Some(found) => found,
            None => match known.looks_up.then(|| first_of_runs(batch)).flatten() {
                Some(first) => {
                    let rows = filter_record_batch(batch, &first)?;
                    self.lock().tested += rows.num_rows() as u64;
                    of_rows(&test(&rows)?, first.values())
                }
                None => {
                    self.lock().tested += batch.num_rows() as u64;
                    test(batch)?
                }
            },
        };
        self.usage.rate.count(&tested, start.elapsed());
        Ok(tested)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current state of the filter.
    fn known(&self, expr: &Arc<dyn PhysicalExpr>, generation: u64) -> Known {
        let mut known = self.lock();
        if known.generation != generation {
            *known = Known::new(expr, generation, None);
        }
        known.clone()
    }

    /// The keys that pass, once as many rows were tested as there are keys: from then on it pays to
    /// have looked up all of them.
    fn keys(
        &self,
        known: &Known,
        batch: &RecordBatch,
        test: impl Fn(&RecordBatch) -> Result<BooleanArray>,
    ) -> Option<Arc<KeySet>> {
        let range = known.range.filter(|range| known.tested >= range.keys())?;
        if known.keys.is_some() || batch.num_columns() != 1 {
            return known.keys.clone();
        }
        // A key that no row has may be one that cannot be tested.
        let keys = KeySet::new(range, batch.schema_ref(), test).ok().flatten().map(Arc::new);
        let mut now = self.lock();
        if now.generation == known.generation {
            now.keys.clone_from(&keys);
            now.range = now.range.filter(|_| keys.is_some());
        }
        keys
    }
}

/// The only column that `expr` bounds, and the range of its keys that pass.
pub(crate) fn key_range(expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, KeyRange)> {
    match &bounds_of(expr)[..] {
        [bounds] => {
            let column = bounds.column.downcast_ref::<Column>()?.index();
            Some((column, KeyRange::new(&bounds.lower, &bounds.upper)?))
        }
        _ => None,
    }
}

/// The rows that differ from the one before them; `None` if they are two thirds of all or more. The
/// keys of the larger side of a join often come together, and a test is then made once for a run.
fn first_of_runs(batch: &RecordBatch) -> Option<BooleanArray> {
    let rows = batch.num_rows();
    let max = rows / 3 * 2;
    let mut differs: Option<BooleanBuffer> = None;
    for column in batch.columns() {
        if rows < 2 || column.data_type().is_nested() {
            return None;
        }
        let (before, after) = (column.slice(0, rows - 1), column.slice(1, rows - 1));
        let found = distinct(&before, &after).ok()?.into_parts().0;
        let all = match differs {
            Some(differs) => &differs | &found,
            None => found,
        };
        if all.count_set_bits() >= max {
            return None;
        }
        differs = Some(all);
    }
    let differs = differs?;
    let mut first = BooleanBufferBuilder::new(rows);
    first.append(true);
    first.append_buffer(&differs);
    Some(BooleanArray::new(first.finish(), None))
}

/// The answers for runs, given for each of their rows; `first` are the rows that begin one.
fn of_rows(of_runs: &BooleanArray, first: &BooleanBuffer) -> BooleanArray {
    let answers = match of_runs.nulls() {
        Some(valid) => of_runs.values() & valid.inner(),
        None => of_runs.values().clone(),
    };
    BooleanArray::new(repeated(&answers, first), None)
}
