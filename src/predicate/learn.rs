//! [`AdaptiveStats`]: measurements of earlier batches of a read, by which later ones are evaluated.
//!
//! The conjuncts are evaluated by ascending cost per row that they reject, as measured
//! so far; where few rows are left, a conjunct sees only those. The results of testing the entries
//! of a dictionary are kept for the batches that share it.
//! Trap: only at the top of a conjunction are false and null equivalent; below a `not` they differ.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arrow_array::{Array, ArrayRef};

use super::bound::{BoundNode, BoundTest};
use super::tri_state::TriState;

/// Measurements of the evaluation of a predicate. The threads of a read share them.
#[derive(Debug, Default)]
pub(crate) struct AdaptiveStats {
    state: Mutex<AdaptiveState>,
}

#[derive(Debug, Default)]
struct AdaptiveState {
    /// For each conjunct.
    conjuncts: Vec<Cost>,
    entries: Vec<DictionaryResults>,
}

/// The cost of a conjunct so far, and how many rows passed it.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    rows: u64,
    passed: u64,
    time: Duration,
}

/// The cost of a conjunct for each row that it was evaluated on, and the fraction of these rows
/// that passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConjunctCost {
    pub(crate) nanos: f64,
    /// As a share, from 0 to 1.
    pub(crate) passed: f64,
}

/// The results on the entries of a dictionary, which is not kept alive.
#[derive(Debug)]
struct DictionaryResults {
    /// The address of the test, which lives as long as the predicate.
    test: usize,
    values: Weak<dyn Array>,
    /// Rows whose entries were tested one by one, because that was less.
    rows: usize,
    /// The results, once it was better to test every entry.
    tri_state: Option<TriState>,
}

/// Maximum number of dictionaries whose results are kept: a few columns in the row groups that are
/// decoded at a time.
const MAX_DICTIONARIES: usize = 32;

impl AdaptiveStats {
    /// The conjuncts, cheapest first: what a row costs, by the share of rows that need not be
    /// looked at any more. Those that must come last do, as they are ordered.
    pub(super) fn order(&self, conjuncts: &[Arc<BoundNode>]) -> Vec<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.conjuncts.resize(conjuncts.len(), Cost::default());
        let rank = |(conjunct, cost): (&Arc<BoundNode>, &Cost)| match conjunct.is_last() {
            true => f64::INFINITY,
            false => cost.rank(conjunct).min(f64::MAX),
        };
        let ranks: Vec<f64> = conjuncts.iter().zip(&state.conjuncts).map(rank).collect();
        let mut order: Vec<usize> = (0..conjuncts.len()).collect();
        order.sort_by(|a, b| ranks[*a].total_cmp(&ranks[*b]));
        order
    }

    pub(super) fn note(&self, conjunct: usize, rows: usize, passed: usize, time: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cost) = state.conjuncts.get_mut(conjunct) {
            cost.rows += rows as u64;
            cost.passed += passed as u64;
            cost.time += time;
        }
    }

    /// About how many nanoseconds a conjunct takes for a row.
    pub(super) fn nanos(&self, conjunct: usize, node: &BoundNode) -> f64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .conjuncts
            .get(conjunct)
            .filter(|cost| cost.rows > 0)
            .map_or_else(|| node.guess(), Cost::nanos)
    }

    /// The costs of the conjuncts that were measured.
    pub(crate) fn conjuncts(&self) -> Vec<Option<ConjunctCost>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.conjuncts.iter().map(Cost::known).collect()
    }

    /// The results on the entries of a dictionary, if they are known.
    pub(super) fn entries(&self, test: &BoundTest, values: &ArrayRef) -> Option<TriState> {
        let test = std::ptr::from_ref(test).addr();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = state.entries.iter().find(|entries| entries.are_of(test, values));
        found.and_then(|entries| entries.tri_state.clone())
    }

    /// Whether to test every entry of a dictionary, given that `rows` more of its rows are to be
    /// tested: once testing row by row has cost half as much.
    pub(super) fn pays(&self, test: &BoundTest, values: &ArrayRef, rows: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match state.entry(test, values) {
            Some(entries) => {
                let before = entries.rows;
                entries.rows = before.saturating_add(rows);
                before
            }
            None => 0,
        };
        before.saturating_add(rows) >= values.len() / 2
    }

    /// Keeps the results on the entries of a dictionary.
    pub(super) fn keep(&self, test: &BoundTest, values: &ArrayRef, tri_state: &TriState) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = state.entry(test, values) {
            entries.tri_state = Some(tri_state.clone());
        }
    }
}

impl AdaptiveState {
    /// The cached results of a dictionary; `None` if there are too many.
    fn entry(&mut self, test: &BoundTest, values: &ArrayRef) -> Option<&mut DictionaryResults> {
        let test = std::ptr::from_ref(test).addr();
        let found = self.entries.iter().position(|entries| entries.are_of(test, values));
        let at = match found {
            Some(at) => at,
            None => {
                self.entries.retain(|entries| entries.values.strong_count() > 0);
                if self.entries.len() == MAX_DICTIONARIES {
                    return None;
                }
                let values = Arc::downgrade(values);
                self.entries.push(DictionaryResults { test, values, rows: 0, tri_state: None });
                self.entries.len() - 1
            }
        };
        self.entries.get_mut(at)
    }
}

impl DictionaryResults {
    fn are_of(&self, test: usize, values: &ArrayRef) -> bool {
        let alive = self.values.upgrade();
        self.test == test && alive.is_some_and(|alive| Arc::ptr_eq(&alive, values))
    }
}

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn known(&self) -> Option<ConjunctCost> {
        let passed = self.passed as f64 / self.rows as f64;
        (self.rows > 0).then(|| ConjunctCost { nanos: self.nanos(), passed })
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn rank(&self, conjunct: &BoundNode) -> f64 {
        if self.rows == 0 {
            return conjunct.guess();
        }
        let rows = self.rows as f64;
        let left_out = (rows - self.passed as f64) / rows;
        self.nanos() / left_out.max(1e-3)
    }

    /// Nanoseconds for each row.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn nanos(&self) -> f64 {
        self.time.as_nanos() as f64 / self.rows as f64
    }
}

impl BoundNode {
    /// The estimated rank, in nanoseconds, of a conjunct that was not measured yet.
    fn guess(&self) -> f64 {
        match self {
            Self::Constant(_) => 0.0,
            Self::Test(_, test) => match test {
                BoundTest::Null
                | BoundTest::Constant(_)
                | BoundTest::IsNull
                | BoundTest::IsEmpty => 0.2,
                BoundTest::Compare { scalar, .. } | BoundTest::Same { scalar, .. } => {
                    if scalar.data_type().is_primitive() { 1.0 } else { 4.0 }
                }
                BoundTest::Both(_) => 2.0,
                BoundTest::In { .. } | BoundTest::StartsWith(_) => 6.0,
                BoundTest::Like { .. } | BoundTest::Intersects(_) => 30.0,
                BoundTest::Lowered(_) => 60.0,
            },
            Self::Not(inner) => inner.guess() + 1.0,
            Self::And(conjuncts) | Self::Or(conjuncts) => {
                conjuncts.iter().map(|conjunct| conjunct.guess()).sum()
            }
            Self::Function(..) | Self::Computed(_) => 100.0,
        }
    }
}
