//! Tests random predicates on random files against a naive twin: row by row when they are
//! evaluated, and range by range when row groups and pages are pruned, by the metadata as written
//! and by any other that would be legal.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray, make_array};
use arrow_schema::DataType;
use fastrand::Rng;

use super::super::expression::*;
use super::super::facts::{ColumnFacts, PageFacts};
use super::super::*;
use super::tables::*;
use super::twin::*;
use crate::read::{PageIndexUse, VirtualColumn};
use crate::reader::Reader;
use crate::schema::ArrowOptions;
use crate::selection::RowSelection;
use crate::stats::bloom::{Blocks, Bloom, BloomLayout};
use crate::stats::bounds::{BoundCut, StoredBound, lower, upper};

/// Number of random cases: `default`, or MARQUETRY_CASES if it is set.
pub(in crate::predicate) fn cases(default: u64) -> u64 {
    std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Facts that are true too: some are missing, bounds are looser.
fn lawful(rng: &mut Rng, facts: &ColumnFacts, leaf: &crate::schema::Leaf) -> ColumnFacts {
    let mut facts = facts.clone();
    let often = rng.u8(0..3);
    let mut drop = |n: u8| rng.u8(0..3) < often && n > 0;
    if drop(1) {
        facts.nulls = None;
    }
    if drop(1) {
        facts.nans = None;
    }
    if drop(1) {
        facts.min = None;
    }
    if drop(1) {
        facts.max = None;
    }
    if drop(1) {
        facts.def_histogram = None;
    }
    if drop(1) {
        facts.bloom = None;
    }
    let max = rng.usize(1..6);
    let cut = match BoundCut::for_leaf(leaf) {
        BoundCut::Never => None,
        cut => Some(cut),
    };
    let zero = |bytes: &[u8]| {
        bytes.iter().rev().skip(1).all(|b| *b == 0) && bytes.last().is_some_and(|b| b & 0x7F == 0)
    };
    for (bound, is_min) in [(&mut facts.min, true), (&mut facts.max, false)] {
        let Some(found) = bound else { continue };
        if rng.bool() {
            // It may be said of any bound that it is not exact.
            found.exact = false;
        }
        if let Some(cut) = cut.filter(|_| rng.bool()) {
            let shorter =
                if is_min { lower(&found.bytes, cut, max) } else { upper(&found.bytes, cut, max) };
            *found = StoredBound { exact: shorter.exact && found.exact, ..shorter };
        }
        let is_float = matches!(
            leaf.physical,
            crate::schema::Physical::Float | crate::schema::Physical::Double
        );
        if is_float && zero(&found.bytes) && rng.bool() {
            // Writers of the older order may store either zero.
            *found.bytes.last_mut().unwrap() ^= 0x80;
        }
    }
    facts
}

fn check(
    results: &[(Range<u64>, PruneResult)],
    tri_state: &[Option<bool>],
    context: &dyn Fn() -> String,
) -> [u64; 2] {
    let mut proven = [0; 2];
    let mut at = 0;
    for (range, result) in results {
        assert_eq!(range.start, at, "{}", context());
        at = range.end;
        let rows = &tri_state[range.start as usize..range.end as usize];
        match result {
            PruneResult::Cannot => {
                assert!(!rows.contains(&Some(true)), "cannot {range:?}: {rows:?} {}", context());
                proven[0] += rows.len() as u64;
            }
            PruneResult::Always => {
                assert!(
                    rows.iter().all(|row| *row == Some(true)),
                    "always {range:?}: {rows:?} {}",
                    context()
                );
                proven[1] += rows.len() as u64;
            }
            PruneResult::Might => {}
        }
    }
    assert_eq!(at, tri_state.len() as u64, "{}", context());
    assert!(results.windows(2).all(|pair| pair[0].1 != pair[1].1), "{}", context());
    proven
}

/// Counts of the rows of a case, over all predicates.
#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    cannot: u64,
    always: u64,
    pages: u64,
}

/// A read with the predicate as its filter gives the rows for which the twin says true, whatever
/// else is asked of it.
fn filtered(
    rng: &mut Rng,
    reader: &Reader,
    predicate: &Predicate,
    tri_state: &[Option<bool>],
    context: &impl Fn() -> String,
) {
    let mut wanted: Vec<i64> = Vec::new();
    let trues = (0..).zip(tri_state).filter(|(_, result)| **result == Some(true));
    wanted.extend(trues.map(|(row, _)| row));
    let names: Vec<String> =
        reader.schema().unwrap().fields().iter().map(|f| f.name().clone()).collect();
    let names: Vec<&String> = names.iter().filter(|_| rng.bool()).collect();
    let mut reader = reader
        .clone()
        .project(&names)
        .unwrap()
        .filter(predicate.clone())
        .virtual_column(VirtualColumn::RowNumber { name: "number".into() })
        .batch_rows(rng.usize(1..60))
        .threads(rng.usize(1..3));
    let mut options = reader.read_options().clone();
    options.page_index =
        [PageIndexUse::Always, PageIndexUse::Auto, PageIndexUse::Never][rng.usize(0..3)];
    reader = reader.options(options);
    if rng.u8(0..4) == 0 {
        let rows = tri_state.len();
        let selection = RowSelection::from_bits((0..rows).map(|_| rng.u8(0..3) > 0).collect());
        let bits = selection.to_bits().unwrap();
        wanted.retain(|row| bits.value(*row as usize));
        reader = reader.select(selection).unwrap();
    }
    if rng.u8(0..4) == 0 {
        let (offset, limit) = (rng.usize(0..20), rng.usize(0..50));
        wanted = wanted.into_iter().skip(offset).take(limit).collect();
        reader = reader.offset(offset as u64).limit(limit as u64);
    }
    let mut found: Vec<i64> = Vec::new();
    let batches = reader.batches().unwrap_or_else(|e| panic!("{e}: {}", context()));
    let mut batches: Vec<RecordBatch> =
        batches.map(|batch| batch.unwrap_or_else(|e| panic!("{e}: {}", context()))).collect();
    for batch in &batches {
        let max = reader.read_options().batch_rows;
        assert!((1..=max).contains(&batch.num_rows()), "{}", context());
        let numbers = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        found.extend_from_slice(numbers.values());
    }
    assert_eq!(found, wanted, "{}", context());
    assert_eq!(reader.progress().indexes_ignored(), 0, "{}", context());
    assert_eq!(reader.count().unwrap(), wanted.len() as u64, "{}", context());
    // The values are those of the rows.
    let expected: Vec<Cell> = {
        let rows: Vec<u64> = wanted.iter().map(|row| *row as u64).collect();
        // What else was asked does not count.
        let taken = reader.threads(1).take(&rows).unwrap();
        let taken: ArrayRef = Arc::new(StructArray::from(taken));
        (0..taken.len()).map(|i| cell(&taken, i)).collect()
    };
    let of_rows = batches.drain(..).flat_map(|batch| {
        let batch: ArrayRef = Arc::new(StructArray::from(batch));
        (0..batch.len()).map(move |i| cell(&batch, i)).collect::<Vec<_>>()
    });
    for (found, expected) in of_rows.zip(expected) {
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", context());
    }
}

fn one_case(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed);
    let (batch, targets) = table(&mut rng);
    let bytes = file(&mut rng, &batch);
    let reader = Reader::new(bytes.clone()).unwrap().threads(1);
    let footer = reader.metadata().clone();
    let whole: ArrayRef = Arc::new(StructArray::from(batch.clone()));
    for _ in 0..6 {
        let twin = random_twin(&mut rng, &targets, 3);
        let predicate = twin.predicate();
        let context = || format!("seed {seed}: {predicate} on {}", batch.schema());
        let tri_state: Vec<Option<bool>> =
            (0..batch.num_rows()).map(|i| twin.evaluate(&cell(&whole, i))).collect();
        let bound = predicate.bind(footer.schema(), footer.key_values(), &ArrowOptions::default());
        let bound = bound.unwrap_or_else(|e| panic!("{e}: {}", context()));
        // As it is in memory.
        if !predicate.to_string().contains("list.element") {
            let in_memory = predicate.bind_to(&batch.schema()).unwrap().evaluate(&batch).unwrap();
            let expected: Vec<bool> = tri_state.iter().map(|v| *v == Some(true)).collect();
            assert_eq!(in_memory, BooleanArray::from(expected), "{}", context());
        }
        filtered(&mut rng, &reader, &predicate, &tri_state, &context);
        let mut first = 0;
        for group in 0..footer.row_groups() {
            let rows = footer.row_group_rows(group).unwrap();
            let tri_state = &tri_state[first..first + rows as usize];
            first += rows as usize;
            // Read back.
            let mut options = reader.read_options().clone();
            options.projection = bound.projection();
            options.row_groups = Some(vec![group]);
            let read: Vec<RecordBatch> =
                reader.clone().options(options).batches().unwrap().map(Result::unwrap).collect();
            let kept: Vec<bool> = read
                .iter()
                .flat_map(|batch| {
                    bound
                        .evaluate(batch)
                        .unwrap_or_else(|e| panic!("{e}: {}", context()))
                        .iter()
                        .map(Option::unwrap)
                        .collect::<Vec<_>>()
                })
                .collect();
            let expected: Vec<bool> = tri_state.iter().map(|v| *v == Some(true)).collect();
            assert_eq!(kept, expected, "{}", context());
            let mut by_parts = vec![true; kept.len()];
            for part in bound.conjuncts() {
                let mut at = 0;
                for batch in &read {
                    for row in part.evaluate(batch).unwrap().values() {
                        by_parts[at] &= row;
                        at += 1;
                    }
                }
            }
            assert_eq!(by_parts, expected, "{}", context());
            // What is known.
            let orders = footer.index().head().column_orders.clone();
            let probes = bound.bloom_probes();
            let mut facts: Vec<ColumnFacts> = Vec::new();
            let mut pages: Vec<Option<PageFacts>> = Vec::new();
            for index in 0..footer.schema().leaves_len() {
                let leaf = footer.schema().leaf(index).unwrap();
                let order = orders.as_ref().and_then(|orders| orders.get(index));
                let chunk = footer.column_chunk(group, index).unwrap();
                let meta = chunk.meta_data.unwrap();
                let mut known = ColumnFacts::of_chunk(&leaf, order, &meta, rows);
                if let (Some(at), Some(len)) = (meta.bloom_filter_offset, meta.bloom_filter_length)
                {
                    let stored = &bytes[at as usize..][..len as usize];
                    let probe = probes.iter().find(|probe| probe.leaf == index);
                    known.bloom = Some(match probe {
                        Some(probe) if rng.bool() => {
                            let layout = BloomLayout::parse(stored).unwrap().unwrap();
                            let ranges = layout.ranges(&probe.hashes);
                            let parts = ranges
                                .iter()
                                .map(|range| &stored[range.start as usize..range.end as usize]);
                            layout.blocks(&ranges, parts)
                        }
                        _ => Blocks::from(Bloom::parse(stored).unwrap().unwrap()),
                    });
                }
                if leaf.max_rep == 0 && leaf.path.names().len() == 1 && rng.bool() {
                    // The values of the row group stand for a dictionary that has them all.
                    let column = batch.column_by_name(&leaf.path.dotted()).unwrap();
                    if !matches!(column.data_type(), DataType::Null | DataType::Dictionary(..)) {
                        known.dictionary = Some(column.slice(first - rows as usize, rows as usize))
                            .filter(|a| a.null_count() < a.len());
                        known.dictionary = known.dictionary.map(|array| {
                            let some = arrow_select::filter::filter(
                                &array,
                                &arrow_array_is_not_null(&array),
                            )
                            .unwrap();
                            make_array(some.to_data())
                        });
                    }
                }
                let index = reader.page_index(group, index).unwrap();
                pages.push(index.offset_index.zip(index.column_index).map(|(offsets, columns)| {
                    PageFacts::of_indexes(&leaf, order, &offsets, &columns, rows)
                        .unwrap_or_else(|e| panic!("{e}: {}", context()))
                }));
                facts.push(known);
            }
            let result = bound.prune_row_group(rows, |leaf| facts.get(leaf));
            let one = check(&[(0..rows, result)], tri_state, &context);
            let ranges = bound.prune_pages(
                rows,
                |leaf| facts.get(leaf),
                |leaf| pages.get(leaf).and_then(Option::as_ref),
            );
            let [cannot, always] = check(&ranges, tri_state, &context);
            assert!(
                cannot >= one[0] && always >= one[1],
                "pages know less than the row group: {}",
                context()
            );
            tally.rows += rows;
            tally.cannot += cannot;
            tally.always += always;
            tally.pages += cannot + always - one[0] - one[1];
            // As true as before, but less.
            for _ in 0..2 {
                let mut of = |index: usize, facts: &ColumnFacts| {
                    lawful(&mut rng, facts, &footer.schema().leaf(index).unwrap())
                };
                let facts: Vec<ColumnFacts> =
                    facts.iter().enumerate().map(|(i, facts)| of(i, facts)).collect();
                let pages: Vec<Option<PageFacts>> = pages
                    .iter()
                    .enumerate()
                    .map(|(i, pages)| {
                        let pages = pages.as_ref()?;
                        Some(PageFacts {
                            pages: pages.pages.iter().map(|page| of(i, page)).collect(),
                        })
                    })
                    .collect();
                let result = bound.prune_row_group(rows, |leaf| facts.get(leaf));
                check(&[(0..rows, result)], tri_state, &context);
                let ranges = bound.prune_pages(
                    rows,
                    |leaf| facts.get(leaf),
                    |leaf| pages.get(leaf).and_then(Option::as_ref),
                );
                check(&ranges, tri_state, &context);
            }
        }
    }
}

fn arrow_array_is_not_null(array: &ArrayRef) -> BooleanArray {
    BooleanArray::from((0..array.len()).map(|i| array.is_valid(i)).collect::<Vec<_>>())
}

#[test]
fn predicates_as_the_naive_twin() {
    let n = cases(400);
    let mut tally = Tally::default();
    (0..n).for_each(|seed| one_case(seed, &mut tally));
    println!("{n} cases: {tally:?}");
    // A test that prunes nothing would prove nothing.
    if n >= 100 {
        assert!(
            tally.cannot * 8 > tally.rows
                && tally.always * 30 > tally.rows
                && tally.pages * 30 > tally.rows,
            "{tally:?}"
        );
    }
}
