//! Tests what is left unread by dictionaries, by limits and by cached indexes, and that a wrong
//! index never costs a row.

use std::sync::Arc;

use fastrand::Rng;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::*;
use marquetry::format::{BoundaryOrder, ColumnIndex};
use marquetry::io::{Outcome, WriteSink};
use marquetry::read::PageIndexUse;
use marquetry::{
    BloomOptions, Literal, PageVersion, Predicate, Reader, RowSelection, WriteOptions, Writer, col,
};

use crate::read::row_selection::{Counted, flags, lie, with_threads};
use crate::support::cells::{Cell, columns};
use crate::support::generate::every_case;
use crate::support::{read_with, with_index};

fn write(batch: &RecordBatch, options: WriteOptions) -> bytes::Bytes {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

/// Four row groups of 20,000 rows: cities, without a "city 7" in the third row group, and numbers
/// that take most of the bytes.
fn cities() -> RecordBatch {
    let n = 80_000usize;
    let mut rng = Rng::with_seed(1);
    let numbers = Int64Array::from_iter_values((0..n).map(|_| rng.i64(..)));
    let city = |i: usize| match rng.u8(0..50) {
        7 if i / 20_000 == 2 => "city 8".to_owned(),
        c => format!("city {c}"),
    };
    RecordBatch::try_from_iter([
        ("city", Arc::new(StringArray::from_iter_values((0..n).map(city))) as ArrayRef),
        ("number", Arc::new(numbers)),
    ])
    .expect("columns of one length")
}

fn outcomes(reader: &Reader, predicate: &Predicate) -> Vec<Outcome> {
    let plan = reader.clone().filter(predicate.clone()).explain().expect("a plan");
    plan.row_groups.iter().map(|group| group.outcome).collect()
}

#[test]
fn a_dictionary_that_has_all_values_prunes() {
    let options = || WriteOptions::new().with_row_group_rows(20_000);
    let reader = Reader::new(write(&cities(), options())).expect("a file");
    let city = col("city").eq("city 7");
    let (read, pruned) = (Outcome::Evaluated, Outcome::ByDictionary);
    assert_eq!(outcomes(&reader, &city), [read, read, pruned, read]);
    let all = cities();
    let all = all.column(0).as_string::<i32>().iter();
    let wanted = all.filter(|city| *city == Some("city 7")).count() as u64;
    let found = reader.clone().filter(city.clone());
    assert_eq!(found.count().expect("a count"), wanted);
    // Neither first nor last, so that bounds do not decide.
    let like = col("city").like("%y 7");
    assert_eq!(outcomes(&reader, &like), [read, read, pruned, read]);
    // A test that is true of all entries is true of all rows.
    let others = col("city").not_eq("city 17 and no more");
    assert_eq!(outcomes(&reader, &others), [Outcome::AlwaysTrue; 4]);
    // Pages beside the dictionary may hold anything.
    let fallen_back = options().with_dictionary_bytes(200).with_page_rows(1000);
    let fallen_back = Reader::new(write(&cities(), fallen_back)).expect("a file");
    assert_eq!(outcomes(&fallen_back, &city), [read; 4]);
    assert_eq!(fallen_back.filter(city).count().expect("a count"), wanted);
}

#[test]
fn a_dictionary_that_is_most_of_the_bytes_is_not_asked() {
    let words =
        StringArray::from_iter_values((0..20_000).map(|i| format!("word {}", i * 7 % 9999)));
    let batch =
        RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)]).expect("a batch");
    let reader = Reader::new(write(&batch, WriteOptions::new())).expect("a file");
    let plan = reader.clone().filter(col("word").eq("word 7x")).explain().expect("a plan");
    assert!(plan.row_groups.iter().all(|group| group.outcome == Outcome::Evaluated), "{plan}");
    assert_eq!(reader.filter(col("word").eq("word 7x")).count().expect("a count"), 0);
}

#[test]
fn nulls_and_empty_lists_are_counted_by_histograms() {
    let n = 40_000i64;
    let some = Int64Array::from_iter((0..n).map(|i| (i < 20_000).then_some(i)));
    let mut lists = builder::ListBuilder::new(builder::Int64Builder::new());
    for i in 0..n {
        if i < 20_000 {
            lists.values().append_value(i);
        }
        lists.append(true);
    }
    let columns: [(&str, ArrayRef); 2] =
        [("some", Arc::new(some)), ("lists", Arc::new(lists.finish()))];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let options = WriteOptions::new().with_row_group_rows(20_000);
    let reader = Reader::new(write(&batch, options)).expect("a file");
    let (proven, pruned) = (Outcome::AlwaysTrue, Outcome::ByStatistics);
    assert_eq!(outcomes(&reader, &col("some").is_null()), [pruned, proven]);
    assert_eq!(outcomes(&reader, &col("some").is_not_null()), [proven, pruned]);
    assert_eq!(outcomes(&reader, &col("lists").is_empty()), [pruned, proven]);
    // One list that has an element, and nothing is proven of the others.
    let mut lists = builder::ListBuilder::new(builder::Int64Builder::new());
    for i in 0..n {
        if i == 17 {
            lists.values().append_value(i);
        }
        lists.append(i != 18);
    }
    let batch = RecordBatch::try_from_iter([("lists", Arc::new(lists.finish()) as ArrayRef)]);
    let file = write(&batch.expect("a batch"), WriteOptions::new().with_row_group_rows(20_000));
    let reader = Reader::new(file).expect("a file");
    let empty = col("lists").is_empty();
    assert_eq!(outcomes(&reader, &empty), [Outcome::Evaluated, proven]);
    assert_eq!(reader.filter(empty).count().expect("a count"), n as u64 - 2);
}

#[test]
fn a_limit_does_not_read_what_it_does_not_need() {
    let n = 200_000;
    let numbers = Int64Array::from_iter_values(0..n);
    let batch =
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef)]).expect("a batch");
    let options = WriteOptions::new().with_row_group_rows(10_000);
    let source = Counted::new(write(&batch, options));
    for threads in [1, 2] {
        let reader = Reader::new(source.clone()).expect("a file").threads(threads);
        let reader = reader.filter(Predicate::function(["n"], |batch| {
            Ok(batch
                .column(0)
                .as_primitive::<Int64Type>()
                .iter()
                .map(|n| Some(n > Some(3)))
                .collect())
        }));
        let few = reader.clone().limit(5);
        let found = read_with(few.clone()).expect("rows");
        let numbers = found[0].column(0).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!((found.len(), &numbers[..]), (1, &[4, 5, 6, 7, 8][..]));
        let read = few.progress().row_groups();
        assert!(read <= 6, "{read} of 20 row groups, {threads} threads");
    }
}

#[test]
fn an_index_is_read_once() {
    let n = 100_000;
    let numbers = Int64Array::from_iter_values((0..n).map(|i| i * 7919 % n));
    let others = Int64Array::from_iter_values(0..n);
    let columns: [(&str, ArrayRef); 2] =
        [("numbers", Arc::new(numbers)), ("others", Arc::new(others))];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let options = WriteOptions::new().with_dictionary(false).with_page_rows(1000);
    let source = Counted::new(write(&batch, options));
    let open = || {
        let reader = Reader::new(source.clone()).expect("a file").threads(1);
        let mut options = reader.read_options().clone();
        options.page_index = PageIndexUse::Always;
        reader.options(options)
    };
    let reader = open();
    let index = |leaf| {
        let chunk = reader.metadata().column_chunk(0, leaf).expect("a chunk");
        let at = u64::try_from(chunk.offset_index_offset.expect("an index")).expect("a place");
        at..at + u64::try_from(chunk.offset_index_length.expect("an index")).expect("a length")
    };
    let reads = |index: &std::ops::Range<u64>| {
        let read = source.taken();
        read.iter().filter(|read| read.start < index.end && index.start < read.end).count()
    };
    let few = reader.clone().project(["numbers"]).expect("a column");
    source.taken();
    few.take(&[5, 70_000]).expect("rows");
    assert_eq!(reads(&index(0)), 1);
    few.take(&[5, 70_001]).expect("rows");
    assert_eq!(reads(&index(0)), 0, "it is kept");
    // A filter asks for the pages of its leaf once, although it needs them twice.
    let fresh = open();
    source.taken();
    assert_eq!(
        read_with(fresh.filter(col("others").between(500, 600))).expect("rows")[0].num_rows(),
        101
    );
    assert_eq!(reads(&index(1)), 1);
}

/// States wrong bounds: only such as the file can disprove, or that make no difference.
fn lie_about_bounds(rng: &mut Rng, index: &mut ColumnIndex, rows_of_page: i64) {
    let i = rng.usize(0..index.null_pages.len());
    match rng.u8(0..8) {
        // A page of values as one of nulls, with or without the count to go with it.
        kind @ (0 | 1) => {
            if index.null_pages[i] {
                return;
            }
            index.null_pages[i] = true;
            (index.min_values[i], index.max_values[i]) = (Vec::new(), Vec::new());
            if let Some(counts) = index.null_counts.as_mut().filter(|_| kind == 1) {
                counts[i] = rows_of_page;
            }
            index.definition_level_histograms = None;
        }
        2 => {
            if index.null_pages[i] {
                index.null_pages[i] = false;
                (index.min_values[i], index.max_values[i]) = (vec![0; 8], vec![1; 8]);
            }
        }
        3 => {
            let by = [1, -1, 5, i64::MAX, i64::MIN][rng.usize(0..5)];
            if let Some(counts) = &mut index.null_counts {
                counts[i] = counts[i].wrapping_add(by);
            }
        }
        4 => std::mem::swap(&mut index.min_values[i], &mut index.max_values[i]),
        5 => {
            let orders =
                [BoundaryOrder::Ascending, BoundaryOrder::Descending, BoundaryOrder::Unordered];
            index.boundary_order = orders[rng.usize(0..3)];
        }
        6 => drop(index.min_values.pop()),
        // The bounds of all pages but their own.
        _ => {
            index.min_values.rotate_left(1);
            index.max_values.rotate_left(1);
            let outermost = index.min_values.iter().zip(&index.null_pages);
            if outermost.into_iter().all(|(_, null)| !null) {
                // Bounds of other pages are trusted where they could be true: undone.
                index.min_values.rotate_right(1);
                index.max_values.rotate_right(1);
            }
        }
    }
}

#[test]
fn an_index_that_lies_costs_no_row_of_a_filter() {
    let ignored = std::sync::atomic::AtomicU64::new(0);
    let n = every_case(1000, |seed| {
        let rng = &mut Rng::with_seed(seed);
        let rows = rng.i64(2..400);
        let often = rng.u8(0..4);
        // Whole pages of nulls now and then; without nulls, no count of levels tells of a lie.
        let is_nullable = rng.bool();
        let value = |rng: &mut Rng, i: i64| {
            (!is_nullable || i / 60 % 3 != 1 && rng.u8(0..4) >= often)
                .then(|| rng.i64(i - 5..i + 5))
        };
        let values = Int64Array::from_iter((0..rows).map(|i| value(rng, i)));
        let values = Arc::new(values) as ArrayRef;
        let batch = RecordBatch::try_from_iter_with_nullable([("v", values, is_nullable)]);
        let batch = batch.expect("a batch");
        let page_rows = rng.usize(1..60);
        let file = write(
            &batch,
            WriteOptions::new()
                .with_dictionary(rng.bool())
                .with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)])
                .with_page_rows(page_rows),
        );
        let reader = Reader::new(file.clone()).expect("a file");
        let index = reader.page_index(0, 0).expect("an index");
        let (mut bounds, mut pages) =
            (index.column_index.expect("one"), index.offset_index.expect("one").page_locations);
        if rng.bool() {
            let rows_of_page = pages.get(1).map_or(rows, |page| page.first_row_index);
            lie_about_bounds(rng, &mut bounds, rows_of_page);
        } else {
            lie(rng, &mut pages);
        }
        let file = with_index(&file, Some(&bounds), pages);
        let at = rng.i64(-10..rows + 10);
        let predicate = match rng.u8(0..5) {
            0 => col("v").lt(at),
            1 => col("v").gt_eq(at),
            2 => col("v").between(at, at + 20),
            3 => col("v").is_null(),
            _ => col("v").eq(at),
        };
        let bound = predicate.bind_to(&batch.schema()).expect("the column");
        let keep = bound.evaluate(&batch).expect("verdicts");
        let mut wanted: Vec<usize> = keep.values().set_indices().collect();
        let mut reader = Reader::new(file).expect("a file").filter(predicate.clone());
        let mut options = reader.read_options().clone();
        options.page_index = PageIndexUse::Always;
        reader = reader.options(options).batch_rows(rng.usize(1..100));
        reader = with_threads(rng, reader);
        if rng.u8(0..3) == 0 {
            let flags = flags(rng, rows as usize);
            wanted.retain(|row| flags[*row]);
            reader = reader.select(RowSelection::from_bits(flags.into())).expect("of all rows");
        }
        if rng.u8(0..3) == 0 {
            let (offset, limit) = (rng.usize(0..20), rng.usize(0..50));
            wanted = wanted.into_iter().skip(offset).take(limit).collect();
            reader = reader.offset(offset as u64).limit(limit as u64);
        }
        let found = read_with(reader.clone()).unwrap_or_else(|e| panic!("{e}: seed {seed}"));
        let all = columns(&batch.schema(), std::slice::from_ref(&batch));
        let expected: Vec<Cell> = wanted.iter().map(|row| all[0][*row].clone()).collect();
        assert!(columns(&batch.schema(), &found)[0] == expected, "{predicate}: seed {seed}");
        let more = reader.progress().indexes_ignored();
        ignored.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
    });
    let ignored = ignored.into_inner();
    assert!(ignored as usize > n / 4, "{ignored} indexes put aside, of {n}");
}

#[test]
fn a_bloom_filter_prunes_what_is_not_there_and_nothing_that_is() {
    let n = 30_000i64;
    let keys = Int64Array::from_iter_values((0..n).map(|i| i * 7919 % 1_000_003));
    let batch =
        RecordBatch::try_from_iter([("key", Arc::new(keys.clone()) as ArrayRef)]).expect("a batch");
    let options = WriteOptions::new()
        .with_row_group_rows(10_000)
        .with_dictionary(false)
        .with_column("key", |column| column.with_bloom(BloomOptions::default()));
    let reader = Reader::new(write(&batch, options)).expect("a file");
    let mut pruned = 0;
    for i in 0..200 {
        let there: Literal = keys.value(i * 37).into();
        let found = reader.clone().filter(col("key").eq(there));
        assert_eq!(found.count().expect("a count"), 1);
        let not_there =
            col("key").eq(1 + i as i64 * 4999 % 1_000_000).and(col("key").lt(1_000_003));
        let groups = outcomes(&reader, &not_there);
        pruned += groups.iter().filter(|group| **group == Outcome::ByBloomFilter).count();
    }
    assert!(pruned > 450, "{pruned} of 600");
}

#[test]
fn ranges_that_are_left_are_the_rows_that_are_left() {
    let ids = Int64Array::from_iter_values(0..40_000);
    let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef)]).expect("a column");
    let options = WriteOptions::new().with_row_group_rows(10_000).with_page_rows(1000);
    let reader = Reader::new(write(&batch, options)).expect("a file");
    let mut options = reader.read_options().clone();
    options.page_index = PageIndexUse::Always;
    let reader = reader.options(options);
    let left = |predicate: Option<Predicate>| {
        let reader = match predicate {
            Some(predicate) => reader.clone().filter(predicate),
            None => reader.clone(),
        };
        let groups = reader.explain().expect("a plan").row_groups;
        for group in &groups {
            let rows = group.ranges_left.iter().map(|range| range.end - range.start);
            assert_eq!(rows.sum::<u64>(), group.rows_left);
        }
        groups.into_iter().map(|group| group.ranges_left).collect::<Vec<_>>()
    };
    assert_eq!(left(None), vec![vec![0..10_000]; 4]);
    let pages = col("id").eq(12_345).or(col("id").eq(15_000)).or(col("id").gt(38_500));
    assert_eq!(
        left(Some(pages)),
        [vec![], vec![2000..3000, 5000..6000], vec![], std::iter::once(8000..10_000).collect()]
    );
}
