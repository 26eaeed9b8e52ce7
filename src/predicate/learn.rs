//! [`Learnt`]: what the batches of a read teach for those that follow.
//!
//! The parts of a conjunction are evaluated in the order of what a row costs them by what they leave out, both as measured so far; where few rows are
//! left, a part sees only those. Verdicts on the entries of a dictionary are kept for the batches that share it.
//! Trap: only at the top does a conjunction care for nothing but *true*; below a `not`, false and null differ.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;

use super::bind::{Bound, BoundTest, Node, Step};
use super::eval::Verdicts;
use crate::error::Result;

/// What was learnt while a predicate was evaluated. Shared by the threads of a read.
#[derive(Debug, Default)]
pub(crate) struct Learnt {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For each part of the conjunction.
    parts: Vec<Cost>,
    entries: Vec<Entries>,
}

/// What a part cost so far, and how many rows it let pass.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    rows: u64,
    passed: u64,
    time: Duration,
}

/// The verdicts on the entries of a dictionary, which is not kept alive.
#[derive(Debug)]
struct Entries {
    /// The address of the test, which lives as long as the predicate.
    test: usize,
    values: Weak<dyn Array>,
    verdicts: Verdicts,
}

/// Dictionaries of which the verdicts are kept: a few columns in the row groups that are decoded at a time.
const MOST_DICTIONARIES: usize = 32;

/// Of so many rows one must be left, or else the others are taken away before the next part is evaluated.
const FEW: usize = 4;

impl Bound {
    /// As [`Bound::evaluate`], with what batches before this one have taught.
    pub(crate) fn evaluate_learning(
        &self,
        batch: &RecordBatch,
        learnt: &Learnt,
    ) -> Result<BooleanArray> {
        let trues = match &*self.root {
            Node::And(parts) => self.conjunction(parts, batch, learnt)?,
            root => self.verdicts(root, batch, learnt)?.trues,
        };
        Ok(BooleanArray::new(trues, None))
    }

    /// The rows for which all parts are true.
    fn conjunction(
        &self,
        parts: &[Arc<Node>],
        batch: &RecordBatch,
        learnt: &Learnt,
    ) -> Result<BooleanBuffer> {
        let rows = batch.num_rows();
        let (mut left, mut count) = (BooleanBuffer::new_set(rows), rows);
        for i in learnt.order(parts) {
            let Some(part) = parts.get(i).filter(|_| count > 0) else { break };
            let few = if count < rows.div_ceil(FEW) { self.few(part, batch, &left)? } else { None };
            let start = Instant::now();
            let seen = few.as_ref().unwrap_or(batch);
            let trues = self.verdicts(part, seen, learnt)?.trues;
            learnt.note(i, seen.num_rows(), trues.count_set_bits(), start.elapsed());
            left = match few {
                Some(_) => within(&left, &trues),
                None => &left & &trues,
            };
            count = left.count_set_bits();
        }
        Ok(left)
    }

    /// Of the columns that a part needs, the rows that are left; `None` if they cannot be taken out.
    fn few(
        &self,
        part: &Node,
        batch: &RecordBatch,
        left: &BooleanBuffer,
    ) -> Result<Option<RecordBatch>> {
        let mut wanted = Vec::new();
        let schema = batch.schema();
        let mut can = true;
        part.for_each_column(&mut |column| {
            let first = self.columns.get(column).and_then(|column| column.way.first());
            let index = match first {
                Some(Step::Field(name)) => schema.index_of(name).ok(),
                _ => None,
            };
            match index {
                Some(index) if !wanted.contains(&index) => wanted.push(index),
                Some(_) => {}
                None => can = false,
            }
        });
        // The kernels make other types of runs.
        let mut types = wanted.iter().filter_map(|i| schema.fields().get(*i));
        if !can || types.any(|field| holds_runs(field.data_type())) {
            return Ok(None);
        }
        let columns = batch.project(&wanted)?;
        Ok(Some(filter_record_batch(&columns, &BooleanArray::new(left.clone(), None))?))
    }
}

fn holds_runs(data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(..) => true,
        DataType::Dictionary(_, values) => holds_runs(values),
        other => other.is_nested(),
    }
}

/// The set bits of `outer` that `inner`, which has a bit for each of them, sets too.
fn within(outer: &BooleanBuffer, inner: &BooleanBuffer) -> BooleanBuffer {
    let mut both = BooleanBufferBuilder::new(outer.len());
    both.append_n(outer.len(), false);
    for (at, _) in outer.set_indices().zip(inner).filter(|(_, is)| *is) {
        both.set_bit(at, true);
    }
    both.finish()
}

impl Learnt {
    /// The parts, cheapest first: what a row costs, by the share of rows that need not be looked at any more.
    fn order(&self, parts: &[Arc<Node>]) -> Vec<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts.resize(parts.len(), Cost::default());
        let ranks = parts.iter().zip(&state.parts).map(|(part, cost)| cost.rank(part));
        let ranks: Vec<f64> = ranks.collect();
        let mut order: Vec<usize> = (0..parts.len()).collect();
        let rank = |i: usize| ranks.get(i).copied().unwrap_or_default();
        order.sort_by(|a, b| rank(*a).total_cmp(&rank(*b)));
        order
    }

    fn note(&self, part: usize, rows: usize, passed: usize, time: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cost) = state.parts.get_mut(part) {
            cost.rows += rows as u64;
            cost.passed += passed as u64;
            cost.time += time;
        }
    }

    /// The verdicts on the entries of a dictionary, if they are known.
    pub(super) fn entries(&self, test: &BoundTest, values: &ArrayRef) -> Option<Verdicts> {
        let test = std::ptr::from_ref(test).addr();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |entries: &&Entries| {
            let alive = entries.values.upgrade();
            entries.test == test && alive.is_some_and(|alive| Arc::ptr_eq(&alive, values))
        };
        state.entries.iter().find(same).map(|entries| entries.verdicts.clone())
    }

    /// Keeps the verdicts on the entries of a dictionary.
    pub(super) fn keep(&self, test: &BoundTest, values: &ArrayRef, verdicts: &Verdicts) {
        let test = std::ptr::from_ref(test).addr();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.retain(|entries| entries.values.strong_count() > 0);
        if state.entries.len() < MOST_DICTIONARIES {
            let (values, verdicts) = (Arc::downgrade(values), verdicts.clone());
            state.entries.push(Entries { test, values, verdicts });
        }
    }
}

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn rank(&self, part: &Node) -> f64 {
        if self.rows == 0 {
            return part.guess();
        }
        let rows = self.rows as f64;
        let left_out = (rows - self.passed as f64) / rows;
        self.time.as_nanos() as f64 / rows / left_out.max(1e-3)
    }
}

impl Node {
    /// The rank, in nanoseconds, of a part of which nothing is known yet.
    fn guess(&self) -> f64 {
        match self {
            Self::Constant(_) => 0.0,
            Self::Test(_, test) => match test {
                BoundTest::Null | BoundTest::IsNull | BoundTest::IsEmpty => 0.2,
                BoundTest::Compare { scalar, .. } | BoundTest::Same { scalar, .. } => {
                    if scalar.data_type().is_primitive() { 1.0 } else { 4.0 }
                }
                BoundTest::Both(_) => 2.0,
                BoundTest::In { .. } | BoundTest::StartsWith(_) => 6.0,
                BoundTest::Like { .. } => 30.0,
            },
            Self::Not(inner) => inner.guess() + 1.0,
            Self::And(parts) | Self::Or(parts) => parts.iter().map(|part| part.guess()).sum(),
            Self::Function(..) => 100.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::{Predicate, col};
    use arrow_array::{Int64Array, StringArray};

    fn batch(n: i64) -> RecordBatch {
        let texts = StringArray::from_iter_values((0..n).map(|i| format!("text {}", i % 7)));
        RecordBatch::try_from_iter([
            ("n", Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef),
            ("text", Arc::new(texts)),
        ])
        .unwrap()
    }

    #[test]
    fn any_order_gives_the_same_rows() {
        let batch = batch(1000);
        let predicate = col("text").like("%3").and(col("n").lt(100)).and(col("n").not_eq(10));
        let bound = predicate.bind_to(&batch.schema()).unwrap();
        let expected = bound.evaluate(&batch).unwrap();
        assert!(expected.true_count() > 0);
        let learnt = Learnt::default();
        for _ in 0..4 {
            assert_eq!(bound.evaluate_learning(&batch, &learnt).unwrap(), expected);
        }
    }

    #[test]
    fn what_leaves_out_more_for_less_comes_first() {
        let Node::And(parts) = &*Predicate::parse("text like '%3' and n < 10")
            .unwrap()
            .bind_to(&batch(1).schema())
            .unwrap()
            .root
        else {
            panic!("two parts");
        };
        let learnt = Learnt::default();
        assert_eq!(learnt.order(parts), [1, 0], "by guess");
        learnt.note(1, 1000, 1000, Duration::from_micros(1));
        learnt.note(0, 1000, 10, Duration::from_micros(10));
        assert_eq!(learnt.order(parts), [0, 1], "what passes all rows is worth nothing");
        learnt.note(0, 1000, 1000, Duration::from_millis(100));
        assert_eq!(learnt.order(parts), [1, 0], "nor is what takes long");
    }

    #[test]
    fn a_part_sees_only_the_rows_that_are_left() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&seen);
        let function = Predicate::function(["text"], move |batch| {
            notes.lock().unwrap().push(batch.num_rows());
            Ok(BooleanArray::new(BooleanBuffer::new_set(batch.num_rows()), None))
        });
        let batch = batch(1000);
        let bound = function.and(col("n").lt(10)).bind_to(&batch.schema()).unwrap();
        let found = bound.evaluate_learning(&batch, &Learnt::default()).unwrap();
        assert_eq!(found.values().set_indices().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!(*seen.lock().unwrap(), [10]);
    }
}
