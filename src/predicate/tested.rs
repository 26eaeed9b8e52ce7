//! [`Tested`] says what the facts of a leaf prove of one test.
//!
//! Trap: every fact is a number of the file. If two facts exclude each other, neither counts.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};

use super::bound::{Bound, BoundColumn, BoundLeaf, BoundNode, BoundTest, PathStep};
use super::expression::{Op, Quantifier};
use super::facts::ColumnFacts;
use super::ordered_span::OrderedSpan;
use super::possible_results::PossibleResults;
use super::value::{LiteralValue, Probes, Side, compare_floats};
use crate::stats::bounds::StoredBound;

/// A test, and the facts of the rows that it is made of.
pub(super) struct Tested<'a> {
    pub(super) column: &'a BoundColumn,
    pub(super) file: &'a BoundLeaf,
    pub(super) test: &'a BoundTest,
    pub(super) facts: &'a ColumnFacts,
}

impl Tested<'_> {
    /// The results that rows may have.
    pub(super) fn possible_results(&self) -> PossibleResults {
        let of_slots = self.of_slots();
        // From the innermost list outwards.
        let of_rows = self.file.lists.iter().rev().fold(of_slots, |inner, list| {
            let empty = self.occurs(list.present..list.element);
            let null = self.occurs(list.slot..list.present);
            match self.column.elements {
                Some(Quantifier::All) => inner.not().any(empty, null).not(),
                _ => inner.any(empty, null),
            }
        });
        // Facts by which there are no rows are wrong.
        if of_rows == PossibleResults::NOTHING { PossibleResults::ALL } else { of_rows }
    }

    /// Whether entries with these definition levels may occur.
    fn occurs(&self, levels: Range<u64>) -> bool {
        if levels.is_empty() {
            return false;
        }
        let Some(counts) = &self.facts.def_histogram else {
            return true;
        };
        counts.iter().zip(0..).any(|(count, level)| *count > 0 && levels.contains(&level))
    }

    /// Definition level from which on a tested slot exists: within the innermost list.
    fn slot(&self) -> u64 {
        self.file.lists.last().map_or(0, |list| list.element)
    }

    /// One more than the highest definition level.
    fn end(&self) -> u64 {
        u64::from(self.file.leaf.max_def) + 1
    }

    /// The results that slots of the tested column may have: rows, or elements of the innermost
    /// list.
    fn of_slots(&self) -> PossibleResults {
        let (may_be_null, may_be_there) = self.presence();
        match self.test {
            BoundTest::Null => PossibleResults::NULL,
            BoundTest::IsNull => PossibleResults::NOTHING
                .with_if(may_be_null, PossibleResults::TRUE)
                .with_if(may_be_there, PossibleResults::FALSE),
            BoundTest::IsEmpty => {
                let Some(element) = self.file.element else {
                    return PossibleResults::ALL;
                };
                PossibleResults::NOTHING
                    .with_if(may_be_null, PossibleResults::NULL)
                    .with_if(self.occurs(self.file.present..element), PossibleResults::TRUE)
                    .with_if(self.occurs(element..self.end()), PossibleResults::FALSE)
            }
            _ => {
                let of_values =
                    if may_be_there { self.of_values() } else { PossibleResults::NOTHING };
                of_values.with_if(may_be_null, PossibleResults::NULL)
            }
        }
    }

    /// Whether tested slots may be null, and whether they may hold a value.
    fn presence(&self) -> (bool, bool) {
        let may_be_null = self.occurs(self.slot()..self.file.present);
        let may_be_there = self.occurs(self.file.present..self.end());
        let in_list = self.file.leaf.max_rep > 0;
        let is_leaf = self.file.present == u64::from(self.file.leaf.max_def);
        match (self.facts.nulls, self.facts.values()) {
            // SPEC parquet.thrift, Statistics: whether null_count counts empty lists is left open,
            // so that 0 proves nothing about them; but it proves that no value is null.
            (_, Some(0)) if is_leaf => (may_be_null, false),
            // No entry is without a value, so all above the leaf is there.
            (Some(0), _) if !in_list => (false, may_be_there),
            _ => (may_be_null, may_be_there),
        }
    }

    /// The results that values may have, without those of null slots.
    fn of_values(&self) -> PossibleResults {
        match self.test {
            BoundTest::Null => return PossibleResults::NULL,
            BoundTest::Constant(holds) => return PossibleResults::only(Some(*holds)),
            BoundTest::Both(both) => {
                let [first, second] = &**both;
                let of = |test| Tested { test, ..*self }.of_values();
                return of(first).and(of(second));
            }
            _ => {}
        }
        let by_dictionary = self.by_dictionary().unwrap_or(PossibleResults::ALL);
        self.by_bounds().meet(by_dictionary).meet(self.by_bloom())
    }

    /// The results that the bloom filter leaves: a value that is absent equals none.
    fn by_bloom(&self) -> PossibleResults {
        let wanted = looked_for(self.test);
        let might = |value: &LiteralValue| match probe(value, self.file, self.column) {
            Probes::Unknown => true,
            Probes::Hashes(hashes) => hashes.iter().any(|hash| {
                self.facts.bloom.as_ref().is_none_or(|bloom| bloom.might_contain_hash(*hash))
            }),
        };
        match self.test {
            BoundTest::Compare { op, .. } if !wanted.is_empty() && !wanted.iter().any(might) => {
                PossibleResults::only(Some(*op == Op::NotEq))
            }
            BoundTest::In { has_null, .. } if !wanted.iter().any(might) => {
                PossibleResults::only((!has_null).then_some(false))
            }
            _ => PossibleResults::ALL,
        }
    }

    /// The results of the test on all values of the dictionary.
    fn by_dictionary(&self) -> Option<PossibleResults> {
        let entries = self.facts.dictionary.as_ref()?;
        let one = BoundColumn {
            elements: None,
            // Tests the entries of a shredded part.
            part: None,
            path_steps: vec![PathStep::Field(String::new())],
            ..self.column.clone()
        };
        let on = |test: BoundNode| -> Option<u64> {
            let bound = Bound::single(test, one.clone());
            let batch = RecordBatch::try_from_iter([("", ArrayRef::clone(entries))]).ok()?;
            Some(bound.evaluate(&batch).ok()?.true_count() as u64)
        };
        let nulls = entries.logical_nulls().map_or(0, |nulls| nulls.null_count());
        let test = || BoundNode::Test(0, self.test.clone());
        let (trues, falses) = (on(test())?, on(BoundNode::Not(test().into()))?);
        let answered = trues + falses + nulls as u64;
        Some(
            PossibleResults::NOTHING
                .with_if(trues > 0, PossibleResults::TRUE)
                .with_if(falses > 0, PossibleResults::FALSE)
                .with_if(answered < entries.len() as u64, PossibleResults::NULL),
        )
        .filter(|possible| *possible != PossibleResults::NOTHING)
    }

    /// The results that the bounds and the number of NaNs leave.
    fn by_bounds(&self) -> PossibleResults {
        let is_float = self.column.data_type.is_floating();
        let may_be_nan = is_float && self.leaf_has_nan() && self.facts.nans != Some(0);
        let all_nan = is_float
            && self.facts.nans.is_some_and(|nans| self.facts.values() == Some(nans))
            && self.facts.nans != Some(0);
        let numbers = match all_nan {
            true => PossibleResults::NOTHING,
            false => self.between(&self.span()),
        };
        numbers.with_if(may_be_nan, self.of_nan())
    }

    /// Whether the leaf is of a type that has NaN; integers may be read as floats.
    fn leaf_has_nan(&self) -> bool {
        !matches!(
            self.file.conversion,
            Some(crate::schema::convert::ReadConversion::Integer { .. })
        )
    }

    /// The results of the test on NaN.
    fn of_nan(&self) -> PossibleResults {
        match self.test {
            BoundTest::Compare { op, value: LiteralValue::Float(value), .. } => {
                PossibleResults::only(Some(op.holds(compare_floats(f64::NAN, *value))))
            }
            BoundTest::In { values, has_null, .. } => {
                let found = values.iter().any(LiteralValue::is_nan);
                PossibleResults::only(if found || !has_null { Some(found) } else { None })
            }
            _ => PossibleResults::ALL,
        }
    }

    /// The bounds as values of the column's type.
    fn span(&self) -> OrderedSpan {
        let Some(conversion) = self.file.conversion else {
            return OrderedSpan::default();
        };
        let leaf = &self.file.leaf;
        let value = |bound: &Option<StoredBound>, side: Side| {
            let bytes = &bound.as_ref()?.bytes;
            LiteralValue::from_bound(bytes, leaf, conversion, &self.column.data_type, side)
        };
        let exact = |bound: &Option<StoredBound>| bound.as_ref().is_some_and(|bound| bound.exact);
        let (low, high) =
            (value(&self.facts.min, Side::Lower), value(&self.facts.max, Side::Upper));
        // Bounds that exclude every value are ignored. If one is no value of the type, the other is
        // not trusted either; but a float that is NaN does not affect the other bound.
        let is_nan = |bound: &StoredBound| {
            self.column.data_type.is_floating()
                && leaf.physical.byte_width() == Some(bound.bytes.len())
        };
        let lost = |bound: &Option<StoredBound>, value: &Option<LiteralValue>| {
            value.is_none() && bound.as_ref().is_some_and(|bound| !is_nan(bound))
        };
        let lost_one = lost(&self.facts.min, &low) || lost(&self.facts.max, &high);
        let inverted = match (&low, &high) {
            (Some(low), Some(high)) => low.compare(high).is_none_or(Ordering::is_gt),
            _ => false,
        };
        if lost_one || inverted {
            return OrderedSpan::default();
        }
        let exact = exact(&self.facts.min) && exact(&self.facts.max);
        OrderedSpan { low, high, exact }
    }

    /// The results that values between the bounds may have.
    fn between(&self, span: &OrderedSpan) -> PossibleResults {
        match self.test {
            BoundTest::Compare { op, value, .. } => span.compared(*op, value),
            BoundTest::In { values, has_null, .. } => {
                let mut all = PossibleResults::FALSE;
                for value in values {
                    all = all.or(span.compared(Op::Eq, value));
                }
                if *has_null { all.or(PossibleResults::NULL) } else { all }
            }
            BoundTest::StartsWith(prefix) => span.starting_with(prefix),
            BoundTest::Like { prefix, .. } => match span.starting_with(prefix.as_bytes()) {
                PossibleResults::FALSE => PossibleResults::FALSE,
                _ => PossibleResults::EITHER,
            },
            BoundTest::Same { .. } | BoundTest::Lowered(_) => PossibleResults::EITHER,
            BoundTest::Intersects(rectangle) => match &self.facts.rectangle {
                // The box around a value lies within that of all of them; an empty value has none.
                Some(all) if !all.intersects(rectangle) => PossibleResults::FALSE,
                _ => PossibleResults::EITHER,
            },
            BoundTest::Null
            | BoundTest::Constant(_)
            | BoundTest::Both(_)
            | BoundTest::IsNull
            | BoundTest::IsEmpty => PossibleResults::ALL,
        }
    }
}

impl Bound {
    /// A test of one column, by itself.
    fn single(root: BoundNode, column: BoundColumn) -> Self {
        Self::new(root, vec![column])
    }
}

/// The values that a row must have one of, for a test that looks for some.
pub(super) fn looked_for(test: &BoundTest) -> &[LiteralValue] {
    match test {
        BoundTest::Compare { op: Op::Eq | Op::NotEq, value, .. } => std::slice::from_ref(value),
        BoundTest::In { values, .. } => values,
        _ => &[],
    }
}

pub(super) fn probe(value: &LiteralValue, file: &BoundLeaf, column: &BoundColumn) -> Probes {
    match file.conversion {
        Some(conversion) => value.probes(&file.leaf, conversion, &column.data_type),
        None => Probes::Unknown,
    }
}
