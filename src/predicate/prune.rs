//! Pruning: what the metadata of a file prove of a predicate, without reading a value.
//!
//! Each part of a predicate becomes a run of row ranges with its [`PossibleResults`]: the set of
//! verdicts (true, false, null) that rows of the range may get, never too small. Sets combine as
//! verdicts do, and at the end [`PruneResult`] is read off: a range without *true* cannot match,
//! one with nothing else always does. Pages of different leaves need not end at the same rows:
//! ranges are cut where any of them ends.
//! Trap: every fact is a number of the file. Where two facts exclude each other, neither counts.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use super::bound::{
    BloomProbe, Bound, BoundColumn, BoundLeaf, BoundNode, BoundTest, ColumnOrigin, FactsHold,
    PathStep,
};
use super::expression::{Op, Quantifier};
use super::facts::{ColumnFacts, PageFacts};
use super::value::{LiteralValue, Probes, Side, compare_floats};
use crate::stats::bounds::StoredBound;

/// What is proven of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PruneResult {
    /// The predicate is true of none of them: they need not be read.
    Cannot,
    /// Nothing is proven.
    Might,
    /// The predicate is true of all of them: it need not be evaluated.
    Always,
}

/// Which verdicts may occur. Nothing but these does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PossibleResults(u8);

impl PossibleResults {
    const NOTHING: Self = Self(0);
    const TRUE: Self = Self(1);
    const FALSE: Self = Self(2);
    const NULL: Self = Self(4);
    const EITHER: Self = Self(3);
    const ALL: Self = Self(7);

    fn of(verdict: Option<bool>) -> Self {
        match verdict {
            Some(true) => Self::TRUE,
            Some(false) => Self::FALSE,
            None => Self::NULL,
        }
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn with_if(self, condition: bool, other: Self) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// What two proofs leave over. Both may not be true: then neither is believed.
    fn meet(self, other: Self) -> Self {
        match Self(self.0 & other.0) {
            Self::NOTHING if self != Self::NOTHING && other != Self::NOTHING => Self::ALL,
            meet => meet,
        }
    }

    fn not(self) -> Self {
        Self::NOTHING
            .with_if(self.has(Self::TRUE), Self::FALSE)
            .with_if(self.has(Self::FALSE), Self::TRUE)
            .with_if(self.has(Self::NULL), Self::NULL)
    }

    fn and(self, other: Self) -> Self {
        let either_null = self.has(Self::NULL) || other.has(Self::NULL);
        let no_false = |side: Self| side.has(Self::TRUE) || side.has(Self::NULL);
        Self::NOTHING
            .with_if(self.has(Self::TRUE) && other.has(Self::TRUE), Self::TRUE)
            .with_if(self.has(Self::FALSE) || other.has(Self::FALSE), Self::FALSE)
            .with_if(either_null && no_false(self) && no_false(other), Self::NULL)
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    /// Of lists of which the elements may get these: true if one is, false if all are. `empty` and
    /// `null` say whether lists may be so.
    fn any(self, empty: bool, null: bool) -> Self {
        self.with_if(empty, Self::FALSE).with_if(null, Self::NULL)
    }

    fn answer(self) -> PruneResult {
        if !self.has(Self::TRUE) {
            PruneResult::Cannot
        } else if self == Self::TRUE {
            PruneResult::Always
        } else {
            PruneResult::Might
        }
    }
}

/// The facts of the chunk and of the pages of a column, where there are any.
type FactsOf<'f, 'c> = dyn Fn(usize) -> (Option<&'f ColumnFacts>, Option<&'f PageFacts>) + 'c;

/// Outcomes of ranges that follow one another: each with the row after its last.
type Segments = Vec<(u64, PossibleResults)>;

impl Bound {
    /// What is proven of all rows of a row group of `rows` rows, by the facts of its leaves.
    pub(crate) fn prune_row_group<'f>(
        &self,
        rows: u64,
        facts: impl Fn(usize) -> Option<&'f ColumnFacts>,
    ) -> PruneResult {
        let segments = self.segments(&self.root, rows, &|leaf| (facts(leaf), None));
        let all = segments.iter().fold(PossibleResults::NOTHING, |all, (_, one)| all.with(*one));
        all.answer()
    }

    /// What is proven of ranges of rows of a row group of `rows` rows, by the pages of its leaves
    /// and, where there are no facts of pages, by those of the chunk. The ranges are in order,
    /// without gaps, cover all rows, and neighbours differ.
    pub(crate) fn prune_pages<'f>(
        &self,
        rows: u64,
        chunks: impl Fn(usize) -> Option<&'f ColumnFacts>,
        pages: impl Fn(usize) -> Option<&'f PageFacts>,
    ) -> Vec<(Range<u64>, PruneResult)> {
        let segments = self.segments(&self.root, rows, &|leaf| (chunks(leaf), pages(leaf)));
        let mut ranges: Vec<(Range<u64>, PruneResult)> = Vec::new();
        let mut start = 0;
        for (end, outcomes) in segments {
            let answer = outcomes.answer();
            match ranges.last_mut() {
                Some((last, same)) if *same == answer => last.end = end,
                _ if start < end => ranges.push((start..end, answer)),
                _ => {}
            }
            start = end;
        }
        ranges
    }

    /// What the bloom filters of the file can be asked for the predicate: one entry for each leaf
    /// that a literal is looked for in.
    pub(crate) fn bloom_probes(&self) -> Vec<BloomProbe> {
        let mut probes: Vec<BloomProbe> = Vec::new();
        self.root.for_each_test(&mut |column, test| {
            let Some(column) = self.columns.get(column) else {
                return;
            };
            let ColumnOrigin::File(file) = &column.origin else {
                return;
            };
            if file.facts == FactsHold::Never {
                return;
            }
            let mut hashes: Vec<u64> = looked_for(test)
                .iter()
                .filter_map(|value| match probe(value, file, column) {
                    Probes::Hashes(hashes) => Some(hashes),
                    Probes::Unknown => None,
                })
                .flatten()
                .collect();
            if hashes.is_empty() {
                return;
            }
            let leaf = file.leaf.index;
            match probes.iter_mut().find(|probe| probe.leaf == leaf) {
                Some(probe) => probe.hashes.append(&mut hashes),
                None => probes.push(BloomProbe { leaf, hashes }),
            }
        });
        for probe in &mut probes {
            probe.hashes.sort_unstable();
            probe.hashes.dedup();
        }
        probes
    }

    /// The leaves of which the values are tested, and the Arrow types that they are tested as: what
    /// the dictionaries of the file can be asked for.
    pub(crate) fn tested_leaves(&self) -> Vec<(usize, DataType)> {
        let mut leaves: Vec<(usize, DataType)> = Vec::new();
        self.root.for_each_test(&mut |column, test| {
            if matches!(test, BoundTest::Null | BoundTest::IsNull | BoundTest::IsEmpty) {
                return;
            }
            let Some(column) = self.columns.get(column) else { return };
            if let ColumnOrigin::File(file) = &column.origin
                && file.facts != FactsHold::Never
                && leaves.iter().all(|(leaf, _)| *leaf != file.leaf.index)
            {
                leaves.push((file.leaf.index, column.data_type.clone()));
            }
        });
        leaves
    }

    fn segments<'f>(&self, node: &BoundNode, rows: u64, facts: &FactsOf<'f, '_>) -> Segments {
        match node {
            BoundNode::Constant(value) => vec![(rows, PossibleResults::of(*value))],
            BoundNode::Function(..) => vec![(rows, PossibleResults::ALL)],
            BoundNode::Not(inner) => {
                let mut segments = self.segments(inner, rows, facts);
                segments.iter_mut().for_each(|(_, outcomes)| *outcomes = outcomes.not());
                segments
            }
            BoundNode::And(parts) => {
                self.combined(parts, rows, facts, PossibleResults::TRUE, PossibleResults::and)
            }
            BoundNode::Or(parts) => {
                self.combined(parts, rows, facts, PossibleResults::FALSE, PossibleResults::or)
            }
            BoundNode::Test(column, test) => {
                let Some(column) = self.columns.get(*column) else {
                    return vec![(rows, PossibleResults::ALL)];
                };
                let file = match &column.origin {
                    ColumnOrigin::Unknown => return vec![(rows, PossibleResults::ALL)],
                    ColumnOrigin::Missing => return vec![(rows, of_missing(column, test))],
                    ColumnOrigin::File(file) => file,
                };
                let holds = match file.facts {
                    FactsHold::Always => true,
                    FactsHold::WhereNull(leaf) => facts(leaf).0.is_some_and(ColumnFacts::all_null),
                    FactsHold::Never => false,
                };
                if !holds {
                    return vec![(rows, PossibleResults::ALL)];
                }
                let (chunk, pages) = facts(file.leaf.index);
                let unknown = ColumnFacts::unknown(rows);
                let chunk = chunk.filter(|chunk| chunk.rows == rows).unwrap_or(&unknown);
                let whole = Tested { column, file, test, facts: chunk }.outcomes();
                let sum = |pages: &PageFacts| {
                    pages.pages.iter().try_fold(0u64, |sum, page| sum.checked_add(page.rows))
                };
                match pages.filter(|pages| sum(pages) == Some(rows)) {
                    None => vec![(rows, whole)],
                    Some(pages) => {
                        let mut end = 0;
                        let of_page = |page: &ColumnFacts| {
                            end += page.rows;
                            let outcomes = Tested { column, file, test, facts: page }.outcomes();
                            (end, outcomes.meet(whole))
                        };
                        pages.pages.iter().map(of_page).collect()
                    }
                }
            }
        }
    }

    fn combined<'f>(
        &self,
        parts: &[std::sync::Arc<BoundNode>],
        rows: u64,
        facts: &FactsOf<'f, '_>,
        first: PossibleResults,
        combine: fn(PossibleResults, PossibleResults) -> PossibleResults,
    ) -> Segments {
        let mut all = vec![(rows, first)];
        for part in parts {
            all = merge(&all, &self.segments(part, rows, facts), combine);
        }
        all
    }
}

/// Combines two runs of ranges over the same rows, cut where either is.
fn merge(
    a: &Segments,
    b: &Segments,
    combine: fn(PossibleResults, PossibleResults) -> PossibleResults,
) -> Segments {
    let mut merged = Segments::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some((a_end, of_a)), Some((b_end, of_b))) = (a.peek(), b.peek()) {
        let end = *a_end.min(b_end);
        let outcomes = combine(*of_a, *of_b);
        match merged.last_mut() {
            Some((last, same)) if *same == outcomes => *last = end,
            _ => merged.push((end, outcomes)),
        }
        if *a_end == end {
            a.next();
        }
        if b.peek().is_some_and(|(b_end, _)| *b_end == end) {
            b.next();
        }
    }
    merged
}

/// Of a column that the file does not have, all is null.
fn of_missing(column: &BoundColumn, test: &BoundTest) -> PossibleResults {
    match test {
        // The list around it may be there, and may be empty.
        _ if column.elements.is_some() => PossibleResults::ALL,
        BoundTest::IsNull => PossibleResults::TRUE,
        _ => PossibleResults::NULL,
    }
}

/// The values that a row must have one of, for a test that looks for some.
fn looked_for(test: &BoundTest) -> &[LiteralValue] {
    match test {
        BoundTest::Compare { op: Op::Eq | Op::NotEq, value, .. } => std::slice::from_ref(value),
        BoundTest::In { values, .. } => values,
        _ => &[],
    }
}

fn probe(value: &LiteralValue, file: &BoundLeaf, column: &BoundColumn) -> Probes {
    match file.conversion {
        Some(conversion) => value.probes(&file.leaf, conversion, &column.data_type),
        None => Probes::Unknown,
    }
}

/// A test, and the facts of the rows that it is made of.
struct Tested<'a> {
    column: &'a BoundColumn,
    file: &'a BoundLeaf,
    test: &'a BoundTest,
    facts: &'a ColumnFacts,
}

impl Tested<'_> {
    /// The verdicts that rows may get.
    fn outcomes(&self) -> PossibleResults {
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

    /// Definition level from which on there is a slot of what is tested: within the innermost list.
    fn slot(&self) -> u64 {
        self.file.lists.last().map_or(0, |list| list.element)
    }

    /// One more than the highest definition level.
    fn end(&self) -> u64 {
        u64::from(self.file.leaf.max_def) + 1
    }

    /// The verdicts that slots of the tested column may get: rows, or elements of the innermost
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

    /// Whether slots of what is tested may be null, and whether they may be there.
    fn presence(&self) -> (bool, bool) {
        let may_be_null = self.occurs(self.slot()..self.file.present);
        let may_be_there = self.occurs(self.file.present..self.end());
        let in_list = self.file.leaf.max_rep > 0;
        let is_leaf = self.file.present == u64::from(self.file.leaf.max_def);
        match (self.facts.nulls, self.facts.values()) {
            // SPEC parquet.thrift, Statistics: whether null_count counts empty lists is not said,
            // so that 0 proves nothing of them; that there are no values it does prove.
            (_, Some(0)) if is_leaf => (may_be_null, false),
            // No entry is without a value, so all above the leaf is there.
            (Some(0), _) if !in_list => (false, may_be_there),
            _ => (may_be_null, may_be_there),
        }
    }

    /// The verdicts that values may get; of what is null nothing is said.
    fn of_values(&self) -> PossibleResults {
        match self.test {
            BoundTest::Null => return PossibleResults::NULL,
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

    /// What the bloom filter leaves over: a value that is not there is equal to none.
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
                PossibleResults::of(Some(*op == Op::NotEq))
            }
            BoundTest::In { has_null, .. } if !wanted.iter().any(might) => {
                PossibleResults::of((!has_null).then_some(false))
            }
            _ => PossibleResults::ALL,
        }
    }

    /// What the test says of all values that there may be.
    fn by_dictionary(&self) -> Option<PossibleResults> {
        let entries = self.facts.dictionary.as_ref()?;
        let one = BoundColumn {
            elements: None,
            // The entries of a shredded part are what is tested.
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
        .filter(|outcomes| *outcomes != PossibleResults::NOTHING)
    }

    /// What the bounds and the number of NaNs say of the test.
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
        !matches!(self.file.conversion, Some(crate::schema::convert::Conversion::Integer { .. }))
    }

    /// What the test says of NaN.
    fn of_nan(&self) -> PossibleResults {
        match self.test {
            BoundTest::Compare { op, value: LiteralValue::Float(value), .. } => {
                PossibleResults::of(Some(op.holds(compare_floats(f64::NAN, *value))))
            }
            BoundTest::In { values, has_null, .. } => {
                let found = values.iter().any(LiteralValue::is_nan);
                PossibleResults::of(if found || !has_null { Some(found) } else { None })
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
            LiteralValue::of_bound(bytes, leaf, conversion, &self.column.data_type, side)
        };
        let exact = |bound: &Option<StoredBound>| bound.as_ref().is_some_and(|bound| bound.exact);
        let (low, high) =
            (value(&self.facts.min, Side::Lower), value(&self.facts.max, Side::Upper));
        // Bounds that exclude every value are none. Where one is no value of the type, the other is
        // not believed either; but a float that is NaN says nothing of the other bound.
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

    /// The verdicts that values between the bounds may get.
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
            BoundTest::Same { .. } => PossibleResults::EITHER,
            BoundTest::Intersects(rectangle) => match &self.facts.rectangle {
                // The box around a value lies within that of all of them; an empty value has none.
                Some(all) if !all.intersects(rectangle) => PossibleResults::FALSE,
                _ => PossibleResults::EITHER,
            },
            BoundTest::Null | BoundTest::Both(_) | BoundTest::IsNull | BoundTest::IsEmpty => {
                PossibleResults::ALL
            }
        }
    }
}

impl Bound {
    /// A test of one column, by itself.
    fn single(root: BoundNode, column: BoundColumn) -> Self {
        Self::new(root, vec![column])
    }
}

/// Bounds of values that are neither null nor NaN.
#[derive(Debug, Default)]
struct OrderedSpan {
    low: Option<LiteralValue>,
    high: Option<LiteralValue>,
    /// Whether neither bound is said to be cut.
    exact: bool,
}

impl OrderedSpan {
    /// What values between the bounds may be, compared with `to`.
    fn compared(&self, op: Op, to: &LiteralValue) -> PossibleResults {
        let order =
            |bound: &Option<LiteralValue>| bound.as_ref().and_then(|bound| bound.compare(to));
        // How the least and the greatest value compare; the others lie between. Without a bound,
        // they may do so in any way.
        let (low, high) = (
            order(&self.low).unwrap_or(Ordering::Less),
            order(&self.high).unwrap_or(Ordering::Greater),
        );
        let mut may = PossibleResults::NOTHING;
        for between in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
            if low <= between && between <= high {
                may = may.with(PossibleResults::of(Some(op.holds(between))));
            }
        }
        // Numbers are less than NaN, if that is what they are compared with.
        if to.is_nan() {
            return PossibleResults::of(Some(op.holds(Ordering::Less)));
        }
        // A cut bound is not a value: it does not prove what all are equal to.
        if low == Ordering::Equal && high == Ordering::Equal && !self.exact {
            return PossibleResults::EITHER;
        }
        may
    }

    /// Whether values between the bounds begin with a prefix: those that do lie side by side.
    fn starting_with(&self, prefix: &[u8]) -> PossibleResults {
        let side = |bound: &Option<LiteralValue>, unknown: Ordering| match bound {
            Some(LiteralValue::Bytes(bytes)) if bytes.starts_with(prefix) => Ordering::Equal,
            Some(LiteralValue::Bytes(bytes)) => bytes.as_slice().cmp(prefix),
            _ => unknown,
        };
        let (low, high) = (side(&self.low, Ordering::Less), side(&self.high, Ordering::Greater));
        if prefix.is_empty() {
            return PossibleResults::TRUE;
        }
        match (low, high) {
            (Ordering::Equal, Ordering::Equal) => PossibleResults::TRUE,
            (Ordering::Greater, _) | (_, Ordering::Less) => PossibleResults::FALSE,
            _ => PossibleResults::EITHER,
        }
    }
}
