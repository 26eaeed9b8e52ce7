//! [`FilterStages`]: the steps in which the columns of a filter are decoded, and what is evaluated
//! after each.
//!
//! The columns of a conjunction need not be decoded for all rows: where one conjunct leaves few
//! rows, the columns of the others are decoded only for those. Conjuncts that share a column form a
//! *group*, and so do the conjuncts that must come last. The order of the groups is decided for
//! some windows at a time, from measurements of earlier ones; until then all groups are decoded at
//! once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Fields, Schema as ArrowSchema, SchemaRef};

use crate::predicate::{AdaptiveStats, Bound};

/// When a leaf of a window is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeStep {
    /// Before this stage of the filter is evaluated.
    Filter(usize),
    /// After the filter, only for the rows that pass.
    Output,
}

/// Maximum share of the rows of a stage that may be left for the next group to get a stage of its
/// own. Above it, its columns are decoded together with those before: to take many single rows out
/// of a page is not much less work than to decode all.
const MAX_STAGE_SHARE: f64 = 1.0 / 8.0;

/// Maximum stages of a filter, because all threads wait for each other between them.
const MAX_STAGES: usize = 4;

/// About how many nanoseconds it takes to decode a value, besides those for each of its compressed
/// bytes, which are one.
const NANOS_PER_VALUE: f64 = 1.0;

/// The conjuncts, in groups that share no column.
#[derive(Debug)]
pub(super) struct FilterGroups {
    columns: FilterColumns,
    groups: Vec<ConjunctGroup>,
    /// The last stages made. Most windows have those of the window before.
    last: Mutex<Option<MadeStages>>,
}

/// The groups of each stage, and what was made of them.
type MadeStages = (Vec<Vec<usize>>, Arc<FilterStages>);

#[derive(Debug, Default)]
struct ConjunctGroup {
    /// Indices in the conjunction; none if the predicate is none.
    conjuncts: Vec<usize>,
    /// The columns that it is evaluated on, of those of the filter, ascending.
    shapes: Vec<usize>,
    /// Leaves of the plan that are decoded for it, ascending.
    leaves: Vec<usize>,
    /// Columns of the output that are decoded for it.
    columns: Vec<usize>,
    /// Whether it has lists: then unwanted rows cannot be dropped while its leaves are decoded.
    has_list: bool,
    /// Whether it has conjuncts that are evaluated only for rows that pass all others.
    is_last: bool,
}

/// The columns that a filter is evaluated on, and the leaves of the plan that are decoded for it.
#[derive(Debug)]
pub(super) struct FilterColumns {
    pub(super) schema: SchemaRef,
    /// The columns of `schema`.
    pub(super) shapes: Vec<EarlyColumn>,
    /// The columns of the output that are decoded before the filter.
    pub(super) output: Vec<EarlyColumn>,
    /// Number of the leaves of the plan that are of the output.
    pub(super) output_leaves: usize,
}

impl FilterColumns {
    /// The shapes that each leaf is of.
    fn shapes_of_leaf(&self) -> HashMap<usize, Vec<usize>> {
        let mut shapes: HashMap<usize, Vec<usize>> = HashMap::new();
        for shape in &self.shapes {
            for leaf in &shape.leaves {
                shapes.entry(*leaf).or_default().push(shape.column);
            }
        }
        shapes
    }
}

/// A column that is decoded before the filter.
#[derive(Debug)]
pub(super) struct EarlyColumn {
    /// Its number.
    pub(super) column: usize,
    /// Its leaves, among those of the plan.
    pub(super) leaves: Vec<usize>,
    pub(super) has_list: bool,
}

/// In which steps the columns of a filter are decoded, for one window.
#[derive(Debug)]
pub(super) struct FilterStages {
    stages: Vec<FilterStage>,
    /// For each early leaf of the plan and each early column of the output, its stage; 0 for all
    /// others.
    of_leaf: Vec<usize>,
    of_column: Vec<usize>,
}

/// The conjuncts that are evaluated at a time.
#[derive(Debug)]
pub(super) struct FilterStage {
    /// The conjuncts; `None` for all of the predicate.
    pub(super) conjuncts: Option<Vec<usize>>,
    /// The columns that they are evaluated on, of those of the filter.
    pub(super) shapes: Vec<usize>,
    pub(super) schema: SchemaRef,
    /// For each leaf of the shapes, which of the leaves of the stage it is.
    pub(super) places: Vec<usize>,
    /// Leaves of the stage that are in the output too.
    pub(super) shared_leaves: usize,
}

impl FilterGroups {
    /// The groups of a predicate. One if it is no conjunction, or its conjuncts share their
    /// columns.
    pub(super) fn new(bound: &Bound, columns: FilterColumns) -> Self {
        let n = columns.shapes.len();
        let conjuncts = bound.columns_of_conjuncts(&columns.schema);
        let shapes_of_leaf = columns.shapes_of_leaf();
        let shapes_of = |output: &EarlyColumn| -> Vec<usize> {
            let shapes = output.leaves.iter().filter_map(|leaf| shapes_of_leaf.get(leaf));
            shapes.flatten().copied().collect()
        };
        let mut together = DisjointSets::new(n);
        match &conjuncts {
            Some(conjuncts) => conjuncts.iter().for_each(|of_conjunct| together.join(of_conjunct)),
            None => together.join(&(0..n).collect::<Vec<_>>()),
        }
        let last_conjuncts = bound.last_conjuncts();
        let of_last =
            last_conjuncts.iter().filter_map(|conjunct| conjuncts.as_ref()?.get(*conjunct));
        let of_last: Vec<usize> = of_last.flatten().copied().collect();
        together.join(&of_last);
        columns.output.iter().for_each(|output| together.join(&shapes_of(output)));
        together.shorten();
        let (mut groups, mut of_first) = (Vec::<ConjunctGroup>::new(), HashMap::new());
        for shape in &columns.shapes {
            let group = *of_first.entry(together.first(shape.column)).or_insert_with(|| {
                groups.push(ConjunctGroup::default());
                groups.len() - 1
            });
            let group = &mut groups[group];
            group.shapes.push(shape.column);
            group.leaves.extend(&shape.leaves);
            group.has_list |= shape.has_list;
        }
        if groups.is_empty() {
            groups.push(ConjunctGroup::default());
        }
        let group_of = |shapes: &[usize]| {
            let of_shape = |shape: &usize| of_first.get(&together.first(*shape)).copied();
            shapes.first().and_then(of_shape).unwrap_or_default()
        };
        for (conjunct, of_conjunct) in conjuncts.iter().flatten().enumerate() {
            let is_last = last_conjuncts.contains(&conjunct);
            // One that looks at no column goes with the others.
            let group = &mut groups[group_of(if is_last { &of_last } else { of_conjunct })];
            group.conjuncts.push(conjunct);
            group.is_last |= is_last;
        }
        for output in &columns.output {
            let group = &mut groups[group_of(&shapes_of(output))];
            group.columns.push(output.column);
            group.leaves.extend(&output.leaves);
            group.has_list |= output.has_list;
        }
        for group in &mut groups {
            group.leaves.sort_unstable();
            group.leaves.dedup();
        }
        Self { columns, groups, last: Mutex::default() }
    }

    /// Whether there is something to decide.
    pub(super) fn are_many(&self) -> bool {
        self.groups.len() > 1
    }

    /// The stages of the next windows, by the measurements so far; `bytes` returns the compressed
    /// bytes of a row of a leaf of the plan.
    pub(super) fn stages(
        &self,
        adaptive: &AdaptiveStats,
        bytes: impl Fn(usize) -> f64,
    ) -> Arc<FilterStages> {
        let order = if self.are_many() { self.ordered(adaptive, bytes) } else { vec![vec![0]] };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((made, stages)) if *made == order => Arc::clone(stages),
            _ => {
                let stages = Arc::new(self.staged(&order));
                *last = Some((order, Arc::clone(&stages)));
                stages
            }
        }
    }

    /// The groups of each stage.
    fn ordered(&self, adaptive: &AdaptiveStats, bytes: impl Fn(usize) -> f64) -> Vec<Vec<usize>> {
        let learnt = adaptive.conjuncts();
        // The cost of a row, and the fraction of rows that pass.
        let of_group = |group: &ConjunctGroup| {
            let decoded = group.leaves.iter().map(|leaf| bytes(*leaf) + NANOS_PER_VALUE);
            let conjuncts =
                group.conjuncts.iter().filter_map(|conjunct| learnt.get(*conjunct)?.as_ref());
            let (nanos, passed) = conjuncts.fold((0.0, 1.0), |(nanos, passed), conjunct| {
                (nanos + conjunct.nanos, passed * conjunct.passed)
            });
            (decoded.sum::<f64>() + nanos, passed)
        };
        let costs: Vec<(f64, f64)> = self.groups.iter().map(of_group).collect();
        let rank = |group: usize| {
            let (nanos, passed) = costs[group];
            nanos / (1.0 - passed).max(1e-3)
        };
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        // Columns with lists cannot be decoded for single rows, so their group comes first. If it
        // must come last too, all groups are decoded at once.
        if self.groups.iter().any(|group| group.is_last && group.has_list) {
            return vec![order];
        }
        order.sort_by(|a, b| {
            let (a_group, b_group) = (&self.groups[*a], &self.groups[*b]);
            let lists_first = b_group.has_list.cmp(&a_group.has_list);
            let lists_first = a_group.is_last.cmp(&b_group.is_last).then(lists_first);
            lists_first.then(rank(*a).total_cmp(&rank(*b)))
        });
        let mut stages: Vec<Vec<usize>> = Vec::new();
        let mut left = 1.0;
        for group in order {
            let is_full = stages.len() == MAX_STAGES;
            match stages.last_mut() {
                Some(last) if left > MAX_STAGE_SHARE || self.groups[group].has_list || is_full => {
                    last.push(group);
                }
                _ => {
                    stages.push(vec![group]);
                    left = 1.0;
                }
            }
            left *= costs[group].1;
        }
        for stage in &mut stages {
            stage.sort_unstable();
        }
        stages
    }

    fn staged(&self, order: &[Vec<usize>]) -> FilterStages {
        let mut out =
            FilterStages { stages: Vec::new(), of_leaf: Vec::new(), of_column: Vec::new() };
        let put = |at: usize, stage: usize, list: &mut Vec<usize>| {
            list.resize(list.len().max(at + 1), 0);
            list[at] = stage;
        };
        for (number, groups) in order.iter().enumerate() {
            let all = |of: fn(&ConjunctGroup) -> &Vec<usize>| {
                let groups = groups.iter().map(|group| of(&self.groups[*group]));
                let mut all: Vec<usize> = groups.flatten().copied().collect();
                all.sort_unstable();
                all
            };
            let leaves = all(|group| &group.leaves);
            leaves.iter().for_each(|leaf| put(*leaf, number, &mut out.of_leaf));
            let columns = all(|group| &group.columns);
            columns.iter().for_each(|column| put(*column, number, &mut out.of_column));
            let shapes = all(|group| &group.shapes);
            let place = |leaf: &usize| leaves.binary_search(leaf).unwrap_or(usize::MAX);
            let of_shapes = shapes.iter().flat_map(|shape| &self.columns.shapes[*shape].leaves);
            out.stages.push(FilterStage {
                conjuncts: (order.len() > 1).then(|| all(|group| &group.conjuncts)),
                places: of_shapes.map(place).collect(),
                schema: projected(&self.columns.schema, &shapes),
                shared_leaves: leaves.partition_point(|leaf| *leaf < self.columns.output_leaves),
                shapes,
            });
        }
        out
    }
}

/// The schema of some of the columns.
fn projected(schema: &SchemaRef, columns: &[usize]) -> SchemaRef {
    if columns.len() == schema.fields().len() {
        return schema.clone();
    }
    let fields = columns.iter().filter_map(|column| schema.fields().get(*column)).cloned();
    let metadata = schema.metadata().clone();
    ArrowSchema::new_with_metadata(fields.collect::<Fields>(), metadata).into()
}

impl FilterStages {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.stages.len()
    }

    pub(super) fn get(&self, stage: usize) -> Option<&FilterStage> {
        self.stages.get(stage)
    }

    /// Leaves of all stages that are in the output too.
    pub(super) fn shared_leaves(&self) -> usize {
        self.stages.iter().map(|stage| stage.shared_leaves).sum()
    }

    /// When an early leaf is decoded.
    pub(super) fn of_leaf(&self, leaf: usize) -> usize {
        self.of_leaf.get(leaf).copied().unwrap_or_default()
    }

    /// With which stage an early column of the output is decoded.
    pub(super) fn of_column(&self, column: usize) -> usize {
        self.of_column.get(column).copied().unwrap_or_default()
    }
}

/// Which numbers belong together: each points to a smaller one of its set, the least to itself.
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    fn first(&self, mut of: usize) -> usize {
        while self.0[of] != of {
            of = self.0[of];
        }
        of
    }

    fn join(&mut self, all: &[usize]) {
        let Some(first) = all.iter().map(|one| self.first(*one)).min() else { return };
        for one in all {
            let mut at = *one;
            // Every way to a first one is made short.
            while self.0[at] != at || at != first {
                let next = self.0[at];
                self.0[at] = first;
                if at == next {
                    break;
                }
                at = next;
            }
        }
    }

    /// Makes every number point to the least of its set.
    fn shorten(&mut self) {
        for at in 0..self.0.len() {
            // The path of a smaller number is short.
            self.0[at] = self.0[self.0[at]];
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use bytes::Bytes;

    use super::*;
    use crate::io::WriteSink;
    use crate::read::counters::FilterCounters;
    use crate::read::{PageIndexUse, ReadWiring};
    use crate::write::WriteOptions;
    use crate::{Reader, Writer, col};

    #[test]
    fn values_are_counted_for_the_stages_that_they_are_decoded_for_and_once_when_given() {
        let column = |n: i64| Int64Array::from_iter_values((0..20_000).map(move |i| i * 7919 % n));
        let columns = [("a", column(1000)), ("b", column(30)), ("c", column(7))];
        let columns = columns.map(|(name, values)| (name, Arc::new(values) as ArrayRef));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let sink = WriteSink(Vec::new());
        let mut writer = Writer::new(sink, batch.schema(), WriteOptions::new()).unwrap();
        writer.write(&batch).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap().1);
        for (threads, first_windows) in [(1, 1), (2, 4)] {
            let counters = Arc::new(FilterCounters::default());
            let reader = Reader::new(file.clone()).unwrap().threads(threads).batch_rows(500);
            let mut options = reader.read_options().clone();
            options.page_index = PageIndexUse::Never;
            let counters_too = Some(Arc::clone(&counters));
            let wiring = ReadWiring { counters: counters_too, ..ReadWiring::default() };
            let reader = reader.options(options).wired(wiring).project(["a", "c"]).unwrap();
            let reader = reader.filter(col("a").lt(20).and(col("b").lt(27)).and(col("c").gt_eq(0)));
            let rows: usize =
                reader.batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, 360);
            assert_eq!(counters.rows_removed.take(), 20_000 - 360);
            assert_eq!(counters.shared_kept.take(), 2 * 360);
            // All of c in the first windows, then only where a is less than 20.
            let first = 500 * first_windows;
            let left = (first..20_000).filter(|i| i * 7919 % 1000 < 20).count() as u64;
            let decoded = 20_000 + first + left;
            assert_eq!(counters.shared_decoded.take(), decoded, "{threads} threads");
        }
    }
}
