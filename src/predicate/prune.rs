//! Prunes: finds what the metadata of a file prove of a predicate, without reading a value.
//!
//! Each node of a predicate becomes a sequence of row ranges with their [`PossibleResults`]: the
//! set of results (true, false, null) that a row of the range may have, never too small. Sets
//! combine as results do, and the final set gives a [`PruneResult`]: a range without *true* cannot
//! match, one with nothing else always does. Pages of different leaves need not end at the same
//! rows, so ranges are cut wherever a page ends.
//! Trap: every fact is a number of the file. If two facts exclude each other, neither counts.

use std::ops::Range;

use arrow_schema::DataType;

use super::bound::{BloomProbe, Bound, BoundColumn, BoundNode, BoundTest, ColumnOrigin, FactsHold};
use super::covering::{Covering, Exclusion};
use super::facts::{ColumnFacts, PageFacts};
use super::possible_results::{PossibleResults, PruneResult};
use super::tested::{Tested, looked_for, probe};
use super::value::Probes;
use crate::geo::Rectangle;

/// The facts of the chunk and of the pages of a column, where there are any.
type FactsOf<'f, 'c> = dyn Fn(usize) -> (Option<&'f ColumnFacts>, Option<&'f PageFacts>) + 'c;

/// Possible results of consecutive ranges, each with the row after its last.
type Segments = Vec<(u64, PossibleResults)>;

impl Bound {
    /// Proves what holds for all rows of a row group of `rows` rows, by the facts of its leaves.
    pub(crate) fn prune_row_group<'f>(
        &self,
        rows: u64,
        facts: impl Fn(usize) -> Option<&'f ColumnFacts>,
    ) -> PruneResult {
        let segments = self.segments(&self.root, rows, &|leaf| (facts(leaf), None));
        let all = segments.iter().fold(PossibleResults::NOTHING, |all, (_, one)| all.with(*one));
        all.prune_result()
    }

    /// Proves what holds for ranges of rows of a row group of `rows` rows, by the pages of its
    /// leaves and, if there are no facts of pages, by those of the chunk. The ranges are in order,
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
        for (end, possible) in segments {
            let result = possible.prune_result();
            match ranges.last_mut() {
                Some((last, same)) if *same == result => last.end = end,
                _ if start < end => ranges.push((start..end, result)),
                _ => {}
            }
            start = end;
        }
        ranges
    }

    /// The probes of the file's bloom filters for the predicate: one entry for each leaf that a
    /// literal is looked for in.
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

    /// The leaves whose values are tested, with the Arrow types that they are tested as; the file's
    /// dictionaries can be asked for these.
    pub(crate) fn tested_leaves(&self) -> Vec<(usize, DataType)> {
        let mut leaves: Vec<(usize, DataType)> = Vec::new();
        self.root.for_each_test(&mut |column, test| {
            if !test.asks_for_values() {
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
            BoundNode::Constant(value) => vec![(rows, PossibleResults::only(*value))],
            BoundNode::Function(..) | BoundNode::Computed(_) => vec![(rows, PossibleResults::ALL)],
            BoundNode::Not(inner) => {
                let mut segments = self.segments(inner, rows, facts);
                segments.iter_mut().for_each(|(_, possible)| *possible = possible.not());
                segments
            }
            BoundNode::And(operands) => {
                self.combined(operands, rows, facts, PossibleResults::TRUE, PossibleResults::and)
            }
            BoundNode::Or(operands) => {
                self.combined(operands, rows, facts, PossibleResults::FALSE, PossibleResults::or)
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
                let whole = Tested { column, file, test, facts: chunk }.possible_results();
                let segments = match pages.filter(|pages| pages.rows() == Some(rows)) {
                    None => vec![(rows, whole)],
                    Some(pages) => {
                        let mut end = 0;
                        let of_page = |page: &ColumnFacts| {
                            end += page.rows;
                            let possible =
                                Tested { column, file, test, facts: page }.possible_results();
                            (end, possible.meet(whole))
                        };
                        pages.pages.iter().map(of_page).collect()
                    }
                };
                match (test, &file.covering) {
                    (BoundTest::Intersects(rectangle), Some(covering)) => {
                        let boxes = covered(covering, rectangle, chunk, rows, facts);
                        merge(&segments, &boxes, PossibleResults::meet)
                    }
                    _ => segments,
                }
            }
        }
    }

    fn combined<'f>(
        &self,
        operands: &[std::sync::Arc<BoundNode>],
        rows: u64,
        facts: &FactsOf<'f, '_>,
        first: PossibleResults,
        combine: fn(PossibleResults, PossibleResults) -> PossibleResults,
    ) -> Segments {
        let mut all = vec![(rows, first)];
        for operand in operands {
            all = merge(&all, &self.segments(operand, rows, facts), combine);
        }
        all
    }
}

/// The possible results of geometries with the facts `geometries` by the boxes that cover them.
fn covered(
    covering: &Covering,
    rectangle: &Rectangle,
    geometries: &ColumnFacts,
    rows: u64,
    facts: &FactsOf<'_, '_>,
) -> Segments {
    let nothing = vec![(rows, PossibleResults::ALL)];
    let is_complete =
        |leaf: &usize| facts(*leaf).0.is_some_and(|leaf| Covering::is_complete(geometries, leaf));
    let wraps = match (facts(covering.xmin).0, facts(covering.xmax).0) {
        (Some(xmin), Some(xmax)) => covering.wraps(xmin, xmax),
        _ => true,
    };
    if wraps || !covering.leaves().iter().all(is_complete) {
        return nothing;
    }
    // Of a row without geometry the result is null.
    let excluded = PossibleResults::FALSE.with(PossibleResults::NULL);
    let by = |exclusion: &Exclusion| {
        let possible = |of: &ColumnFacts| match covering.is_excluded(exclusion, of) {
            true => excluded,
            false => PossibleResults::ALL,
        };
        let (chunk, pages) = facts(exclusion.leaf);
        let whole = chunk.map_or(PossibleResults::ALL, possible);
        let Some(pages) = pages.filter(|pages| pages.rows() == Some(rows)) else {
            return vec![(rows, whole)];
        };
        let mut end = 0;
        let of_page = |page: &ColumnFacts| {
            end += page.rows;
            (end, possible(page).meet(whole))
        };
        pages.pages.iter().map(of_page).collect()
    };
    let [x, y] = covering.exclusions(rectangle);
    // A rectangle that crosses the antimeridian has all x but those between its sides.
    let of_x = match rectangle.xmin > rectangle.xmax {
        true => PossibleResults::with,
        false => PossibleResults::meet,
    };
    let of = |[first, second]: &[Exclusion; 2], combine| merge(&by(first), &by(second), combine);
    merge(&of(&x, of_x), &of(&y, PossibleResults::meet), PossibleResults::meet)
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
        let possible = combine(*of_a, *of_b);
        match merged.last_mut() {
            Some((last, same)) if *same == possible => *last = end,
            _ => merged.push((end, possible)),
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

/// A column that the file does not have is null.
fn of_missing(column: &BoundColumn, test: &BoundTest) -> PossibleResults {
    match test {
        // The list around it may be there, and may be empty.
        _ if column.elements.is_some() => PossibleResults::ALL,
        BoundTest::IsNull => PossibleResults::TRUE,
        _ => PossibleResults::NULL,
    }
}
