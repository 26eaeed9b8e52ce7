//! [`Routed`]: a filter that a join of several partitions learns.
//!
//! It is a CASE: the hash of a row's keys, modulo the number of partitions, selects the partition
//! in which the row would be joined, and the branch of that partition tells whether its keys are
//! there. DataFusion evaluates such a CASE by comparing and merging arrays for each branch; here
//! rows are distributed to the branches once. A branch that looks keys up need not compare them
//! with their bounds too. The filter may be left out entirely, so the only requirement is that no
//! row is lost.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, BooleanArray, RecordBatch, UInt32Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_select::take::take_record_batch;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, CaseExpr, Column, Literal};
use datafusion_physical_expr::split_conjunction;
use datafusion_physical_expr::utils::conjunction;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use crate::evaluate::evaluate;

/// A filter with a branch for each partition.
#[derive(Debug)]
pub(crate) struct Routed {
    hash: Arc<dyn PhysicalExpr>,
    branches: Vec<Arc<dyn PhysicalExpr>>,
    /// Bounds of single columns that all rows that pass have.
    bounds: Option<Arc<dyn PhysicalExpr>>,
    /// All of it, as DataFusion evaluates it.
    whole: Arc<dyn PhysicalExpr>,
}

/// More partitions than this are left to DataFusion.
const MAX_PARTITIONS: u64 = 1 << 12;

impl Routed {
    /// The branches of `expr`; `None` if it is of another form.
    pub(crate) fn from_case(expr: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let case = expr.downcast_ref::<CaseExpr>()?;
        let route = case.expr()?.downcast_ref::<BinaryExpr>()?;
        if *route.op() != Operator::Modulo {
            return None;
        }
        let partitions = number(route.right())?;
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            return None;
        }
        let otherwise = case.else_expr().filter(|other| boolean(other) == Some(false))?;
        let mut branches: Vec<_> = (0..partitions).map(|_| Arc::clone(otherwise)).collect();
        // If two branches have one partition, the first counts.
        for (when, then) in case.when_then_expr().iter().rev() {
            let place = usize::try_from(number(when)?).ok()?;
            *branches.get_mut(place)? = Arc::clone(then);
        }
        let bounds = common_bounds(&branches);
        let branches = branches.iter().map(without_bounds).collect();
        let (hash, whole) = (Arc::clone(route.left()), Arc::clone(expr));
        Some(Self { hash, branches, bounds, whole })
    }

    /// The lowest and the highest keys of all branches, by which row groups and pages can be left
    /// out.
    pub(crate) fn bounds(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.bounds.clone()
    }

    /// Evaluates the filter: true for the rows that pass, and perhaps for a few more.
    ///
    /// # Errors
    /// Those of the expressions.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let rows = batch.num_rows();
        let hashes = self.hash.evaluate(batch)?.into_array(rows)?;
        let Some(hashes) =
            hashes.as_primitive_opt::<UInt64Type>().filter(|it| it.null_count() == 0)
        else {
            return evaluate(&self.whole, batch);
        };
        let mut of_branches: Vec<Vec<u32>> = self
            .branches
            .iter()
            .map(|_| Vec::with_capacity(rows / self.branches.len() * 5 / 4))
            .collect();
        let partitions = self.branches.len() as u64;
        for (row, hash) in (0..).zip(hashes.values()) {
            // By a mask where that is the same: a division takes as long as all else here.
            let place = match partitions.is_power_of_two() {
                true => hash & (partitions - 1),
                false => hash % partitions,
            };
            if let Some(of_branch) =
                usize::try_from(place).ok().and_then(|i| of_branches.get_mut(i))
            {
                of_branch.push(row);
            }
        }
        let mut found = BooleanBufferBuilder::new(rows);
        found.append_n(rows, false);
        for (branch, of_branch) in self.branches.iter().zip(of_branches) {
            if of_branch.is_empty() || boolean(branch) == Some(false) {
                continue;
            }
            let of_branch = UInt32Array::from(of_branch);
            let tested = evaluate(branch, &take_record_batch(batch, &of_branch)?)?;
            for (row, is_in) in of_branch.values().iter().zip(&tested) {
                if is_in == Some(true) {
                    found.set_bit(*row as usize, true);
                }
            }
        }
        Ok(BooleanArray::new(found.finish(), None))
    }
}

/// A branch without the comparisons with literals, if it tests anything else: what else it tests
/// is whether keys are among those that lie within those bounds.
fn without_bounds(branch: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    let is_test = |part: &&Arc<dyn PhysicalExpr>| match part.downcast_ref::<BinaryExpr>() {
        Some(part) => !matches!(part.op(), Operator::GtEq | Operator::LtEq),
        None => true,
    };
    let tests: Vec<_> = split_conjunction(branch).into_iter().filter(is_test).cloned().collect();
    if tests.is_empty() { Arc::clone(branch) } else { conjunction(tests) }
}

/// The bounds that all branches have in common: for each column that all of them bound, the lowest
/// of the lower bounds and the highest of the upper ones. A branch with a null bound is true for no
/// row, because all keys that it was made from are null.
fn common_bounds(branches: &[Arc<dyn PhysicalExpr>]) -> Option<Arc<dyn PhysicalExpr>> {
    let mut common: Option<Vec<Bounds>> = None;
    for branch in branches.iter().filter(|branch| boolean(branch) != Some(false)) {
        let own = bounds_of(branch);
        if own.iter().any(|bounds| bounds.lower.is_null() || bounds.upper.is_null()) {
            continue;
        }
        common = Some(match common {
            None => own,
            Some(common) => common.into_iter().filter_map(|bounds| bounds.with(&own)).collect(),
        });
    }
    let all: Vec<_> = common?.into_iter().flat_map(Bounds::tests).collect();
    (!all.is_empty()).then(|| conjunction(all))
}

/// The bounds of a column.
pub(crate) struct Bounds {
    pub(crate) column: Arc<dyn PhysicalExpr>,
    pub(crate) lower: ScalarValue,
    pub(crate) upper: ScalarValue,
}

/// The bounds that a conjunction has of columns.
pub(crate) fn bounds_of(branch: &Arc<dyn PhysicalExpr>) -> Vec<Bounds> {
    let tests = split_conjunction(branch).into_iter();
    let tests: Vec<&BinaryExpr> = tests.filter_map(|part| part.downcast_ref()).collect();
    let is = |test: &&&BinaryExpr, op| *test.op() == op && test.left().is::<Column>();
    let lower = tests.iter().filter(|test| is(test, Operator::GtEq));
    let bounds = lower.filter_map(|lower| {
        let mut upper = tests.iter().filter(|test| is(test, Operator::LtEq));
        let upper = upper.find(|upper| upper.left() == lower.left())?;
        let (column, lower) = (Arc::clone(lower.left()), literal(lower.right())?.clone());
        Some(Bounds { column, lower, upper: literal(upper.right())?.clone() })
    });
    bounds.collect()
}

impl Bounds {
    /// The bounds that include these and those of the same column in `others`; `None` if there are
    /// none, or values that have no order.
    fn with(self, others: &[Self]) -> Option<Self> {
        let other = others.iter().find(|other| other.column.eq(&self.column))?;
        let lower = match self.lower.partial_cmp(&other.lower)? {
            Ordering::Greater => other.lower.clone(),
            _ => self.lower,
        };
        let upper = match self.upper.partial_cmp(&other.upper)? {
            Ordering::Less => other.upper.clone(),
            _ => self.upper,
        };
        Some(Self { column: self.column, lower, upper })
    }

    fn tests(self) -> [Arc<dyn PhysicalExpr>; 2] {
        let test = |op, value| {
            let value = Arc::new(Literal::new(value));
            Arc::new(BinaryExpr::new(Arc::clone(&self.column), op, value)) as Arc<dyn PhysicalExpr>
        };
        [test(Operator::GtEq, self.lower), test(Operator::LtEq, self.upper)]
    }
}

fn literal(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expr.downcast_ref::<Literal>().map(Literal::value)
}

fn boolean(expr: &Arc<dyn PhysicalExpr>) -> Option<bool> {
    match literal(expr)? {
        ScalarValue::Boolean(value) => *value,
        _ => None,
    }
}

fn number(expr: &Arc<dyn PhysicalExpr>) -> Option<u64> {
    match literal(expr)? {
        ScalarValue::UInt64(value) => *value,
        _ => None,
    }
}
