//! Evaluates a conjunction conjunct by conjunct, the cheapest first as measured so far.
//!
//! A conjunct is evaluated only on the rows that passed the conjuncts before it, if these rows are
//! few, if the conjunct is slow, or if it can fail for other rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema as ArrowSchema};

use super::bound::{Bound, BoundNode, PathStep, ReadOf};
use super::evaluation::{Copies, Evaluation};
use super::nested_bits::within;
use crate::clock::Instant;
use crate::error::Result;
use crate::rows::{self, copied_bytes};

/// Rows that passed are copied to a smaller batch if they are fewer than one in this many, before
/// the next conjunct is evaluated.
const COPY_DIVISOR: usize = 4;

/// Maximum bytes of the columns whose rows are copied if many passed, because no budget counts the
/// copies.
const MAX_COPIED: usize = 4 << 20;

/// About how many nanoseconds it takes, for each row, to take away those that are not left, and to
/// put the results back in their places.
const NANOS_TO_TAKE: f64 = 3.0;

impl Bound {
    /// Like [`Bound::evaluate`], with what batches before this one have taught.
    pub(crate) fn evaluate_adaptively(
        &self,
        batch: &RecordBatch,
        evaluation: Evaluation<'_>,
    ) -> Result<BooleanArray> {
        let trues = match &*self.root {
            BoundNode::And(conjuncts) => {
                self.conjunction(conjuncts, |_| true, batch, evaluation)?
            }
            root => self.tri_state(root, batch, None, evaluation)?.trues,
        };
        Ok(BooleanArray::new(trues, None))
    }

    /// Like [`Bound::evaluate_adaptively`], for some `conjuncts`, ascending; the batch
    /// need not have the columns of the others.
    pub(crate) fn evaluate_conjuncts(
        &self,
        conjuncts: &[usize],
        batch: &RecordBatch,
        evaluation: Evaluation<'_>,
    ) -> Result<BooleanArray> {
        let BoundNode::And(all) = &*self.root else {
            return self.evaluate_adaptively(batch, evaluation);
        };
        let wanted = |conjunct: usize| conjuncts.binary_search(&conjunct).is_ok();
        Ok(BooleanArray::new(self.conjunction(all, wanted, batch, evaluation)?, None))
    }

    /// Which conjuncts are evaluated only for rows that pass all others.
    pub(crate) fn last_conjuncts(&self) -> Vec<usize> {
        let BoundNode::And(conjuncts) = &*self.root else { return Vec::new() };
        let conjuncts = conjuncts.iter().enumerate().filter(|(_, conjunct)| conjunct.is_last());
        conjuncts.map(|(i, _)| i).collect()
    }

    /// For each conjunct, which columns of `schema` it is evaluated on. `None` if the
    /// predicate is no conjunction, or a column is none of the schema.
    pub(crate) fn columns_of_conjuncts(&self, schema: &ArrowSchema) -> Option<Vec<Vec<usize>>> {
        let BoundNode::And(conjuncts) = &*self.root else { return None };
        let names = schema.fields().iter().map(|field| field.name().as_str());
        // The first of a name, as where it is looked up.
        let by_name: HashMap<&str, usize> =
            names.enumerate().map(|(i, name)| (name, i)).rev().collect();
        conjuncts
            .iter()
            .map(|conjunct| self.columns_of(conjunct, |name| by_name.get(name).copied()))
            .collect()
    }

    /// The top-level columns that a conjunct needs; `None` if one is not found.
    fn columns_of(
        &self,
        conjunct: &BoundNode,
        find: impl Fn(&str) -> Option<usize>,
    ) -> Option<Vec<usize>> {
        let (mut found, mut are_all) = (Vec::new(), true);
        conjunct.for_each_column(&mut |column| {
            let column = self.columns.get(column);
            // A column that the file does not have is null, and needs none of the schema.
            if column.is_some_and(|column| column.read == ReadOf::Nothing) {
                return;
            }
            let first = column.and_then(|column| column.path_steps.first());
            let index = match first {
                Some(PathStep::Field(name)) => find(name),
                _ => None,
            };
            match index {
                Some(index) if !found.contains(&index) => found.push(index),
                Some(_) => {}
                None => are_all = false,
            }
        });
        are_all.then_some(found)
    }

    /// The rows for which all wanted conjuncts are true.
    fn conjunction(
        &self,
        conjuncts: &[Arc<BoundNode>],
        is_wanted: impl Fn(usize) -> bool,
        batch: &RecordBatch,
        evaluation: Evaluation<'_>,
    ) -> Result<BooleanBuffer> {
        let rows = batch.num_rows();
        let adaptive = evaluation.adaptive;
        let (mut left, mut count) = (BooleanBuffer::new_set(rows), rows);
        for i in adaptive.order(conjuncts).into_iter().filter(|conjunct| is_wanted(*conjunct)) {
            let Some(conjunct) = conjuncts.get(i).filter(|_| count > 0) else { break };
            // Many rows are copied only where that takes little memory.
            let is_small = batch.get_array_memory_size() <= MAX_COPIED;
            let must = conjunct.is_last() && count < rows;
            let pays = must
                || count < rows.div_ceil(COPY_DIVISOR)
                || (is_small && pays(rows, count, adaptive.nanos(i, conjunct)));
            let mut copies = evaluation.copies();
            let few =
                if pays { self.few(conjunct, batch, &left, &mut copies, must)? } else { None };
            let start = Instant::now();
            let seen = few.as_ref().unwrap_or(batch);
            let wanted = few.is_none().then_some(&left);
            let trues = self.tri_state(conjunct, seen, wanted, evaluation)?.trues;
            adaptive.note(i, seen.num_rows(), trues.count_set_bits(), start.elapsed());
            left = match few {
                Some(_) => within(&left, &trues),
                None => &left & &trues,
            };
            count = left.count_set_bits();
        }
        Ok(left)
    }

    /// The remaining rows of the columns that a conjunct needs, which `copies` holds; `None` if
    /// they cannot be filtered, or have no room and need not be.
    fn few(
        &self,
        conjunct: &BoundNode,
        batch: &RecordBatch,
        left: &BooleanBuffer,
        copies: &mut Copies,
        must: bool,
    ) -> Result<Option<RecordBatch>> {
        let schema = batch.schema();
        let Some(wanted) = self.columns_of(conjunct, |name| schema.index_of(name).ok()) else {
            return Ok(None);
        };
        let all = batch.project(&wanted)?;
        // Rows of other types are only taken out where they must be.
        if !conjunct.is_last() && all.columns().iter().any(|column| is_nested(column.data_type())) {
            return Ok(None);
        }
        match copies.hold(all.columns().iter().map(copied_bytes).sum()) {
            Err(_) if !must => return Ok(None),
            held => held?,
        }
        rows::filter(&all, &BooleanArray::new(left.clone(), None)).map(Some)
    }
}

/// Whether a conjunct that takes `nanos` nanoseconds for each row should be evaluated only on the
/// `left` rows that passed, rather than on all `rows`.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn pays(rows: usize, left: usize, nanos: f64) -> bool {
    nanos * (rows - left) as f64 > NANOS_TO_TAKE * rows as f64
}

fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested() || matches!(data_type, DataType::RunEndEncoded(..))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::predicate::learn::AdaptiveStats;
    use crate::predicate::tri_state::TriState;
    use crate::{Predicate, col};
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, StringArray};

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
        let adaptive = AdaptiveStats::default();
        for _ in 0..4 {
            assert_eq!(
                bound.evaluate_adaptively(&batch, Evaluation::new(&adaptive, None)).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn what_leaves_out_more_for_less_comes_first() {
        let BoundNode::And(conjuncts) = &*Predicate::parse("text like '%3' and n < 10")
            .unwrap()
            .bind_to(&batch(1).schema())
            .unwrap()
            .root
        else {
            panic!("two conjuncts");
        };
        let adaptive = AdaptiveStats::default();
        assert_eq!(adaptive.order(conjuncts), [1, 0], "by guess");
        adaptive.note(1, 1000, 1000, Duration::from_micros(1));
        adaptive.note(0, 1000, 10, Duration::from_micros(10));
        assert_eq!(adaptive.order(conjuncts), [0, 1], "what passes all rows is worth nothing");
        adaptive.note(0, 1000, 1000, Duration::from_millis(100));
        assert_eq!(adaptive.order(conjuncts), [1, 0], "nor is what takes long");
    }

    #[test]
    fn a_conjunct_costs_what_was_measured_or_else_what_is_guessed() {
        let bound = Predicate::parse("n < 10").unwrap().bind_to(&batch(1).schema()).unwrap();
        let adaptive = AdaptiveStats::default();
        let conjuncts = [Arc::clone(&bound.root)];
        adaptive.order(&conjuncts);
        assert_eq!(adaptive.nanos(0, &bound.root), 1.0, "a guess");
        adaptive.note(0, 1000, 10, Duration::from_micros(250));
        assert_eq!(adaptive.nanos(0, &bound.root), 250.0);
    }

    #[test]
    fn what_can_fail_is_a_last_conjunct() {
        let schema = batch(1).schema();
        let last =
            |text: &str| Predicate::parse(text).unwrap().bind_to(&schema).unwrap().last_conjuncts();
        assert_eq!(last("n < 10 and cast(text as int) = 1 and n > 2"), [1]);
        assert!(last("n < 10 and text = 'a'").is_empty());
        assert!(last("cast(text as int) = 1").is_empty());
    }

    #[test]
    fn each_conjunct_names_its_columns_once() {
        let schema = batch(1).schema();
        let text = "(n < 3 or n > 7) and text = 'a' and (text = 'b' or n = 1 or text = 'c')";
        let bound = Predicate::parse(text).unwrap().bind_to(&schema).unwrap();
        let expected = vec![vec![0], vec![1], vec![1, 0]];
        assert_eq!(bound.columns_of_conjuncts(&schema), Some(expected));
        assert_eq!(bound.columns_of_conjuncts(&schema.project(&[0]).unwrap()), None);
    }

    #[test]
    fn results_of_dictionaries_that_are_gone_make_way() {
        let bound = Predicate::parse("text = 'a'").unwrap().bind_to(&batch(1).schema()).unwrap();
        let BoundNode::Test(_, test) = &*bound.root else { panic!("a test") };
        let adaptive = AdaptiveStats::default();
        for i in 0..100 {
            let entries: ArrayRef = Arc::new(StringArray::from_iter_values(["a", "b"]));
            adaptive.keep(test, &entries, &TriState::constant(Some(true), 2));
            assert!(adaptive.entries(test, &entries).is_some(), "{i}");
        }
    }

    #[test]
    fn a_part_that_takes_long_sees_only_the_rows_that_are_left_even_if_they_are_many() {
        assert!(pays(1000, 500, 20.0));
        assert!(!pays(1000, 500, 1.0));
        assert!(!pays(1000, 990, 20.0));
        assert!(pays(1000, 990, 1000.0));
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
        let found = bound
            .evaluate_adaptively(&batch, Evaluation::new(&AdaptiveStats::default(), None))
            .unwrap();
        assert_eq!(found.values().set_indices().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!(*seen.lock().unwrap(), [10]);
    }

    #[test]
    fn the_entries_of_a_dictionary_are_tested_once_however_few_rows_a_batch_has_left() {
        let texts = |i: i32| format!("text {:03}", i);
        let entries: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(texts)));
        let batch = |first: i32| {
            let keys = Int32Array::from_iter_values((0..40).map(|i| (first + i) % 100));
            let text = DictionaryArray::<Int32Type>::new(keys, Arc::clone(&entries));
            let n = Int64Array::from_iter_values(0..40);
            RecordBatch::try_from_iter([
                ("n", Arc::new(n) as ArrayRef),
                ("text", Arc::new(text) as ArrayRef),
            ])
            .unwrap()
        };
        let predicate = col("n").lt(8).and(col("text").lt("text 050"));
        let bound = predicate.bind_to(&batch(0).schema()).unwrap();
        let BoundNode::And(conjuncts) = &*bound.root else { panic!("two conjuncts") };
        let BoundNode::Test(_, test) = &*conjuncts[1] else { panic!("a test") };
        let adaptive = AdaptiveStats::default();
        let mut known = Vec::new();
        for i in 0..10 {
            let found = bound
                .evaluate_adaptively(&batch(i * 10), Evaluation::new(&adaptive, None))
                .unwrap();
            assert_eq!(found, bound.evaluate(&batch(i * 10)).unwrap(), "{i}");
            known.push(adaptive.entries(test, &entries).is_some());
        }
        // Eight rows a batch, of a hundred entries.
        assert_eq!(known.iter().position(|known| *known), Some(6), "{known:?}");
    }
}
