//! The predicate of a read: which columns it needs decoded, what the footer proves of a row group,
//! and which rows of a window pass.
//!
//! Columns that hold a leaf of the predicate are *early*: decoded before it is evaluated, and kept
//! if they are wanted. The others are *late*: only the rows that pass are decoded, where that costs
//! less. Trap: a struct is early as a whole if the predicate needs one of its leaves, because its
//! children must have the same rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::DataType;

use super::assemble::{Leaves, assemble};
use super::column::{ColumnSpec, LeafBatch, column_specs};
use super::counters::FilterCounters;
use super::filter_stages::{EarlyColumn, FilterColumns, FilterGroups, FilterStage, FilterStages};
use super::footer::Footer;
use super::options::{ReadOptions, Utf8};
use super::wiring::ReadWiring;

use crate::clock::Instant;
use crate::crypt::ChunkDecryptor;
use crate::error::{Error, Result};
use crate::format::ColumnMetaData;
use crate::limits::Budget;
use crate::memory;
use crate::predicate::{
    AdaptiveStats, Bound, ColumnFacts, Evaluation, Predicate, PruneResult, dictionary_is_complete,
};
use crate::schema::{ArrowOptions, Dictionaries, Kind, Mapping, Shape, schema_like, to_arrow};

/// A predicate that was bound to a file, and where its columns are among those that are decoded.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) bound: Bound,
    /// The measured costs of its conjuncts.
    adaptive: AdaptiveStats,
    /// The shapes of the columns that it is evaluated on.
    shapes: Vec<Shape>,
    /// Which of its conjuncts can be decoded and evaluated apart.
    groups: FilterGroups,
    /// For each leaf of the plan, whether it is decoded before the predicate is evaluated.
    early_leaves: Vec<bool>,
    /// The same for each column of the output.
    early_columns: Vec<bool>,
    /// Whether rows are given without its evaluation where the metadata claim that it is true.
    trusts_claims: bool,
    /// Whether statistics, indexes and dictionaries are asked.
    asks_metadata: bool,
    counters: Option<Arc<FilterCounters>>,
}

impl Filter {
    /// Binds `predicate`, and appends to `leaves`, which are those of the output `shapes`, what
    /// only the predicate needs.
    ///
    /// # Errors
    /// `Usage` if it does not fit the file.
    pub(super) fn new(
        predicate: &Predicate,
        footer: &Footer,
        options: &ReadOptions,
        wiring: &ReadWiring,
        shapes: &[Shape],
        leaves: &mut Vec<ColumnSpec>,
    ) -> Result<Self> {
        let is_all_null = |leaf: usize| !options.verify_statistics && footer.is_all_null(leaf);
        let (schema, key_values) = (footer.schema(), footer.key_values());
        let bound = predicate.bind_with(schema, key_values, &options.arrow, &is_all_null)?;
        let bound = match options.utf8 {
            Utf8::Lossy => bound.without_bounds_of_strings(),
            _ => bound,
        };
        let mapping =
            to_arrow(footer.schema(), footer.key_values(), &bound.projection(), &options.arrow)?;
        let (mapping, before) = cheap_strings(mapping, &bound, footer, options, shapes)?;
        // A column that is decoded anyway is tested: statistics may be wrong, values are not.
        let mut output: HashSet<usize> = HashSet::new();
        output.try_reserve(leaves.len())?;
        output.extend(leaves.iter().map(|column| column.leaf.index));
        let mut tested = bound.columns().into_iter();
        let trusts_claims = wiring.only_prunes
            || !(options.verify_statistics || tested.any(|leaf| output.contains(&leaf)));
        let mut early_leaves = memory::filled(false, leaves.len())?;
        let wanted = column_specs(footer.schema(), &mapping.shapes)?;
        let indices = add_leaves(wanted, &before, leaves, &mut early_leaves)?;
        let (mut early_columns, mut output) = (memory::vec_for(shapes.len())?, Vec::new());
        let mut output_leaves = 0;
        for (column, shape) in shapes.iter().enumerate() {
            let first = output_leaves;
            shape.for_each_leaf(&mut |_, _| output_leaves += 1);
            let leaves = first..output_leaves;
            let of_column = &mut early_leaves[leaves.clone()];
            let early = of_column.contains(&true);
            of_column.fill(early);
            early_columns.push(early);
            if early {
                let leaves = memory::collected(leaves)?;
                let has_list = has_list(shape);
                memory::push(&mut output, EarlyColumn { column, leaves, has_list })?;
            }
        }
        let mut indices = indices.into_iter();
        let of_filter = mapping.shapes.iter().enumerate().map(|(column, shape)| {
            let mut leaves = Vec::new();
            shape.for_each_leaf(&mut |_, _| leaves.extend(indices.next()));
            EarlyColumn { column, leaves, has_list: has_list(shape) }
        });
        let columns = FilterColumns {
            shapes: memory::collected(of_filter)?,
            schema: mapping.schema,
            output,
            output_leaves,
        };
        Ok(Self {
            groups: FilterGroups::new(&bound, columns),
            bound,
            adaptive: AdaptiveStats::default(),
            shapes: mapping.shapes,
            early_leaves,
            early_columns,
            trusts_claims,
            asks_metadata: !options.verify_statistics,
            counters: wiring.counters.clone(),
        })
    }

    /// Whether a leaf of the plan is decoded before the predicate is evaluated.
    pub(super) fn is_early(&self, leaf: usize) -> bool {
        self.early_leaves[leaf]
    }

    /// Whether each column of the output is decoded before the predicate is evaluated.
    pub(super) fn early_columns(&self) -> &[bool] {
        &self.early_columns
    }

    /// Whether conjuncts of the predicate can be evaluated before the columns of others are
    /// decoded.
    pub(super) fn has_groups(&self) -> bool {
        self.groups.are_many()
    }

    /// Whether the next windows should wait until the current one has been measured.
    pub(super) fn is_to_learn(&self) -> bool {
        self.has_groups() && self.adaptive.conjuncts().iter().all(Option::is_none)
    }

    /// Counts the rows that passed all stages.
    pub(super) fn count_kept(&self, stages: &FilterStages, rows: usize) {
        if let Some(counters) = &self.counters {
            counters.shared_kept.add((rows * stages.shared_leaves()) as u64);
        }
    }

    /// The stages in which the next windows are decoded; `bytes` returns the compressed bytes of a
    /// row of a leaf of the plan.
    pub(super) fn stages(&self, bytes: impl Fn(usize) -> f64) -> Arc<FilterStages> {
        self.groups.stages(&self.adaptive, bytes)
    }

    /// Evaluates a stage of the predicate on `rows` decoded rows; `leaves` are those of the stage,
    /// in the order of the plan.
    pub(super) fn evaluate(
        &self,
        stage: &FilterStage,
        leaves: &[LeafBatch],
        rows: usize,
        budget: &Budget,
    ) -> Result<BooleanArray> {
        let of = |place: &usize| leaves.get(*place).map(LeafBatch::shared).ok_or_else(missing);
        let leaves = stage.places.iter().map(of).collect::<Result<_>>()?;
        let mut leaves = Leaves::new(leaves, budget);
        let mut columns = memory::vec_for(stage.shapes.len())?;
        for shape in stage.shapes.iter().filter_map(|shape| self.shapes.get(*shape)) {
            let column = assemble(shape, &mut leaves, rows)
                .map_err(|e| e.at_column(shape.field.name().as_str()))?;
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(stage.schema.clone(), columns, &options)?;
        let evaluation = Evaluation::new(&self.adaptive, Some(budget));
        let evaluate = || match &stage.conjuncts {
            None => self.bound.evaluate_adaptively(&batch, evaluation),
            Some(conjuncts) => self.bound.evaluate_conjuncts(conjuncts, &batch, evaluation),
        };
        let Some(counters) = &self.counters else {
            return evaluate();
        };
        let start = Instant::now();
        let passed = evaluate()?;
        counters.row_nanos.add_since(start);
        counters.rows_removed.add((rows - passed.true_count()) as u64);
        counters.shared_decoded.add((rows * stage.shared_leaves) as u64);
        Ok(passed)
    }

    /// Whether rows are given without evaluation of the filter where the metadata claim that it is
    /// true: not if one of its columns is decoded for the output.
    pub(super) fn trusts_claims(&self) -> bool {
        self.trusts_claims
    }

    /// Whether statistics, indexes, bloom filters and dictionaries are asked.
    pub(super) fn asks_metadata(&self) -> bool {
        self.asks_metadata
    }

    /// The facts of the predicate's leaves in a row group, from the footer. Metadata that cannot be
    /// read provide none.
    pub(super) fn facts(&self, footer: &Footer, row_group: usize, rows: u64) -> Vec<LeafFacts> {
        let facts = |leaf: usize| {
            let meta = footer.column_chunk(row_group, leaf).ok()?.meta_data?;
            // Without its key nothing is known: where the column is read, that is an error.
            let chunk = footer.column_chunk_ref(row_group, leaf).ok()?;
            let decryptor = footer.chunk_decryptor(row_group, leaf, &chunk).ok()?;
            let described = footer.schema().leaf(leaf).ok()?;
            let facts = ColumnFacts::of_chunk(&described, footer.column_order(leaf), &meta, rows);
            Some(LeafFacts { leaf, facts, meta, decryptor })
        };
        let asked = self.bound.leaves_with_facts().into_iter().filter(|_| self.asks_metadata);
        asked.filter_map(facts).collect()
    }

    /// Proves what holds for all rows of a row group.
    pub(super) fn prune_result(&self, rows: u64, facts: &[LeafFacts]) -> PruneResult {
        self.bound.prune_row_group(rows, |leaf| find(facts, leaf).map(|found| &found.facts))
    }
}

/// Appends to `leaves`, those of the output, what a filter needs beside them, and marks in
/// `early_leaves` all that it needs. Where both need a leaf it is decoded once, in the type of the
/// filter, if its type was that of `before`. Gives the index of each wanted leaf.
fn add_leaves(
    wanted: Vec<ColumnSpec>,
    before: &HashMap<usize, DataType>,
    leaves: &mut Vec<ColumnSpec>,
    early_leaves: &mut Vec<bool>,
) -> Result<Vec<usize>> {
    // By leaf: a predicate may look at thousands, as may the output.
    let mut of_output: HashMap<usize, Vec<usize>> = HashMap::new();
    of_output.try_reserve(leaves.len())?;
    for (index, column) in leaves.iter().enumerate() {
        memory::push(of_output.entry(column.leaf.index).or_default(), index)?;
    }
    let mut indices = memory::vec_for(wanted.len())?;
    for wanted in wanted {
        let data_type = before.get(&wanted.leaf.index).unwrap_or(&wanted.data_type);
        let same = |index: &&usize| {
            leaves
                .get(**index)
                .is_some_and(|leaf| leaf.data_type == *data_type && leaf.slot == wanted.slot)
        };
        let candidates = of_output.get(&wanted.leaf.index);
        let found = candidates.and_then(|all| all.iter().find(same)).copied();
        if let Some((index, leaf)) = found.and_then(|at| Some((at, leaves.get_mut(at)?))) {
            leaf.keep_levels |= wanted.keep_levels;
            // Converted to the type of the output after the filter, by `materialize`.
            (leaf.data_type, leaf.conversion) = (wanted.data_type, wanted.conversion);
            early_leaves[index] = true;
            indices.push(index);
        } else {
            indices.push(leaves.len());
            memory::push(early_leaves, true)?;
            memory::push(leaves, wanted)?;
        }
    }
    Ok(indices)
}

/// Strings are read with their dictionaries, if all of their pages use one, so that an entry is
/// tested once; else as views, so that no value is copied that does not pass. Returns those leaves
/// too, with their original types.
fn cheap_strings(
    mut mapping: Mapping,
    bound: &Bound,
    footer: &Footer,
    options: &ReadOptions,
    output: &[Shape],
) -> Result<(Mapping, HashMap<usize, DataType>)> {
    let mut before = HashMap::new();
    let asked = options.arrow.target.is_some() || options.arrow.dictionaries != Dictionaries::None;
    if asked {
        return Ok((mapping, before));
    }
    // A function of the user is to see the types that it expects.
    let of_functions = bound.function_leaves();
    let read_as = |arrow: &ArrowOptions| {
        to_arrow(footer.schema(), footer.key_values(), &bound.projection(), arrow)
    };
    let dictionaries = options.arrow.clone().with_dictionaries(Dictionaries::Strings);
    let dictionaries = read_as(&dictionaries)?.shapes;
    let views = read_as(&ArrowOptions { views: true, ..options.arrow.clone() })?.shapes;
    for (shape, (dictionary, view)) in
        mapping.shapes.iter_mut().zip(dictionaries.iter().zip(&views))
    {
        let Kind::Leaf { leaf } = shape.kind else { continue };
        if of_functions.contains(&leaf) {
            continue;
        }
        let data_type = shape.field.data_type().clone();
        // If the output has the leaf, it must be a column by itself, and of the same type.
        let fits = |column: &Shape| {
            let mut has_leaf = false;
            column.for_each_leaf(&mut |index, _| has_leaf |= index == leaf);
            let is_leaf = matches!(column.kind, Kind::Leaf { .. });
            !has_leaf || (is_leaf && *column.field.data_type() == data_type)
        };
        if !output.iter().all(fits) {
            continue;
        }
        let complete = |row_group| {
            let meta = footer.column_chunk(row_group, leaf).ok()?.meta_data?;
            Some(dictionary_is_complete(&meta))
        };
        let complete = (0..footer.row_groups()).all(|i| complete(i) == Some(true));
        *shape = match (dictionary.field.data_type(), &data_type) {
            (DataType::Dictionary(_, values), _)
                if complete && (**values == data_type || is_view_of(&data_type, values)) =>
            {
                dictionary.clone()
            }
            (
                _,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary,
            ) => view.clone(),
            _ => continue,
        };
        before.try_reserve(1)?;
        before.insert(leaf, data_type);
    }
    let fields = mapping.shapes.iter().map(|shape| shape.field.clone());
    mapping.schema = schema_like(&mapping.schema, fields)?.into();
    Ok((mapping, before))
}

/// Whether a type holds views of the values of another.
fn is_view_of(views: &DataType, values: &DataType) -> bool {
    use DataType as D;
    matches!((views, values), (D::Utf8View, D::Utf8) | (D::BinaryView, D::Binary))
}

#[cold]
fn missing() -> Error {
    Error::internal("fewer leaves were decoded than the predicate needs")
}

/// The facts of a leaf in a row group.
#[derive(Debug)]
pub(super) struct LeafFacts {
    pub(super) leaf: usize,
    pub(super) facts: ColumnFacts,
    pub(super) meta: ColumnMetaData,
    /// The decryptor of its indexes and its dictionary, if they are encrypted.
    pub(super) decryptor: Option<ChunkDecryptor>,
}

/// The facts of a leaf.
pub(super) fn find(facts: &[LeafFacts], leaf: usize) -> Option<&LeafFacts> {
    facts.iter().find(|found| found.leaf == leaf)
}

/// For each column and for each leaf, whether unwanted rows are dropped while it is decoded. They
/// are if the column has no lists and the filter does not need it.
pub(super) fn drops_rows(shapes: &[Shape], filter: Option<&Filter>) -> (Vec<bool>, Vec<bool>) {
    // Without a filter no column is early.
    let early = filter.map_or(&[][..], Filter::early_columns);
    let (mut columns, mut leaves) = (Vec::with_capacity(shapes.len()), Vec::new());
    for (i, shape) in shapes.iter().enumerate() {
        let first = leaves.len();
        shape.for_each_leaf(&mut |_, _| leaves.push(false));
        let drops_rows = early.get(i) != Some(&true) && !has_list(shape);
        leaves.iter_mut().skip(first).for_each(|leaf| *leaf = drops_rows);
        columns.push(drops_rows);
    }
    (columns, leaves)
}

fn has_list(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::List { .. } | Kind::Map { .. } => true,
        Kind::Struct(children) => children.iter().any(has_list),
        Kind::Leaf { .. } | Kind::Missing => false,
    }
}
