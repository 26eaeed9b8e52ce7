//! [`AdaptiveStats`]: what the batches of a read teach for those that follow.
//!
//! The parts of a conjunction are evaluated in the order of what a row costs them by what they
//! leave out, both as measured so far; where few rows are left, a part sees only those. Verdicts on
//! the entries of a dictionary are kept for the batches that share it.
//! Trap: only at the top does a conjunction care for nothing but *true*; below a `not`, false and
//! null differ.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arrow_array::{Array, ArrayRef};

use super::bound::{BoundNode, BoundTest};
use super::tri_state::TriState;

/// What was learnt while a predicate was evaluated. Shared by the threads of a read.
#[derive(Debug, Default)]
pub(crate) struct AdaptiveStats {
    state: Mutex<AdaptiveState>,
}

#[derive(Debug, Default)]
struct AdaptiveState {
    /// For each part of the conjunction.
    parts: Vec<Cost>,
    entries: Vec<DictionaryResults>,
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
struct DictionaryResults {
    /// The address of the test, which lives as long as the predicate.
    test: usize,
    values: Weak<dyn Array>,
    tri_state: TriState,
}

/// Dictionaries of which the verdicts are kept: a few columns in the row groups that are decoded at
/// a time.
const MAX_DICTIONARIES: usize = 32;

impl AdaptiveStats {
    /// The parts, cheapest first: what a row costs, by the share of rows that need not be looked at
    /// any more.
    pub(super) fn order(&self, parts: &[Arc<BoundNode>]) -> Vec<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts.resize(parts.len(), Cost::default());
        let ranks = parts.iter().zip(&state.parts).map(|(part, cost)| cost.rank(part));
        let ranks: Vec<f64> = ranks.collect();
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by(|a, b| ranks[*a].total_cmp(&ranks[*b]));
        order
    }

    pub(super) fn note(&self, part: usize, rows: usize, passed: usize, time: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cost) = state.parts.get_mut(part) {
            cost.rows += rows as u64;
            cost.passed += passed as u64;
            cost.time += time;
        }
    }

    /// The verdicts on the entries of a dictionary, if they are known.
    pub(super) fn entries(&self, test: &BoundTest, values: &ArrayRef) -> Option<TriState> {
        let test = std::ptr::from_ref(test).addr();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |entries: &&DictionaryResults| {
            let alive = entries.values.upgrade();
            entries.test == test && alive.is_some_and(|alive| Arc::ptr_eq(&alive, values))
        };
        state.entries.iter().find(same).map(|entries| entries.tri_state.clone())
    }

    /// Keeps the verdicts on the entries of a dictionary.
    pub(super) fn keep(&self, test: &BoundTest, values: &ArrayRef, tri_state: &TriState) {
        let test = std::ptr::from_ref(test).addr();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.retain(|entries| entries.values.strong_count() > 0);
        if state.entries.len() < MAX_DICTIONARIES {
            let (values, tri_state) = (Arc::downgrade(values), tri_state.clone());
            state.entries.push(DictionaryResults { test, values, tri_state });
        }
    }
}

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn rank(&self, part: &BoundNode) -> f64 {
        if self.rows == 0 {
            return part.guess();
        }
        let rows = self.rows as f64;
        let left_out = (rows - self.passed as f64) / rows;
        self.time.as_nanos() as f64 / rows / left_out.max(1e-3)
    }
}

impl BoundNode {
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
                BoundTest::Like { .. } | BoundTest::Intersects(_) => 30.0,
            },
            Self::Not(inner) => inner.guess() + 1.0,
            Self::And(parts) | Self::Or(parts) => parts.iter().map(|part| part.guess()).sum(),
            Self::Function(..) => 100.0,
        }
    }
}
