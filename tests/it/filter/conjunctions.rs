//! Tests that the columns of a conjunction are decoded part by part: where one part leaves few
//! rows, those of the others are decoded only for these.

use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::builder::{Int64Builder, ListBuilder};
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Fields};
use marquetry::io::WriteSink;
use marquetry::read::PageIndexUse;
use marquetry::{Predicate, Reader, RowSelection, WriteOptions, Writer, col};

use crate::read::row_selection::{flags, with_threads};
use crate::support::generate::every_case;
use crate::support::read_with;

fn written(batch: &RecordBatch, options: WriteOptions) -> Bytes {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

/// Without page indexes, which would prune.
fn unindexed(file: &Bytes) -> Reader {
    let reader = Reader::new(file.clone()).expect("a file");
    let mut options = reader.read_options().clone();
    options.page_index = PageIndexUse::Never;
    reader.options(options)
}

/// 40,000 rows. `rare` is 1 in 10 of the first hundred rows and of the last, and else 0; `text` has
/// bytes that are no UTF-8 in all pages but the first and the last.
fn broken() -> Bytes {
    let n = 40_000;
    let is_rare = |i: i64| i % 10 == 3 && (i < 100 || i >= n - 100);
    let rare = Int64Array::from_iter_values((0..n).map(|i| i64::from(is_rare(i))));
    let good = |i: i64| i < 1_000 || i >= n - 1_000;
    let text = |i: i64| if good(i) { format!("fine {i:06}") } else { format!("FAULT{i:06}") };
    let text = StringArray::from_iter_values((0..n).map(text));
    let columns = [("rare", Arc::new(rare) as ArrayRef), ("text", Arc::new(text))];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let options = WriteOptions::new()
        .with_page_rows(1_000)
        .with_compression(marquetry::Compression::Uncompressed)
        .with_column("text", |column| {
            column.with_dictionary(false).with_encoding(marquetry::format::Encoding::Plain)
        });
    let mut file = written(&batch, options).to_vec();
    let faults: Vec<usize> =
        file.windows(5).enumerate().filter(|(_, at)| at == b"FAULT").map(|(i, _)| i).collect();
    assert!(faults.len() >= 38_000, "{} faults", faults.len());
    faults.into_iter().for_each(|at| file[at] = 0xFF);
    file.into()
}

#[test]
fn columns_of_later_parts_are_decoded_only_for_the_rows_that_are_left() {
    let file = broken();
    for predicate in [
        col("rare").eq(1).and(col("text").like("%3")),
        col("text").like("%3").and(col("rare").eq(1)),
    ] {
        for threads in [1, 2] {
            let reader = unindexed(&file).threads(threads).batch_rows(200);
            let reader = reader.filter(predicate.clone());
            for reader in [reader.clone(), reader.project(["rare"]).expect("a column")] {
                let rows = read_with(reader).expect("no page between is decoded");
                assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 20);
            }
        }
    }
    // Where one part needs both, all is decoded.
    let both = col("rare").eq(1).or(col("text").eq("no such")).and(col("text").like("%3"));
    let reader = unindexed(&file).threads(1).batch_rows(500).filter(both);
    read_with(reader).expect_err("bytes that are no text");
}

/// A conjunct, and its result for a row.
type Part = (Predicate, Box<dyn Fn(&Row) -> bool>);

/// Parts of a conjunction; about how many of a hundred rows pass.
fn parts(rng: &mut Rng) -> Vec<Part> {
    let few = [1, 5, 30, 90][rng.usize(0..4)];
    let word = format!("w{}", rng.usize(0..9));
    let prefix = word.clone();
    let mut parts: Vec<Part> = vec![
        (col("a").lt(few), Box::new(move |row| row.a.is_some_and(|a| a < few))),
        (col("s").like(format!("{word}%")), {
            Box::new(move |row| row.s.as_ref().is_some_and(|s| s.starts_with(&prefix)))
        }),
        (col("t").not_eq("x3"), Box::new(|row| row.t != "x3")),
        (col("g.x").gt_eq(few), Box::new(move |row| row.g.is_some_and(|(x, _)| x >= few))),
        (col("g.y").lt(50), Box::new(|row| row.g.is_some_and(|(_, y)| y < 50))),
        (col("l").is_not_null(), Box::new(|row| row.l.is_some())),
        (col("b").is_null(), Box::new(|row| row.a.is_none())),
    ];
    rng.shuffle(&mut parts);
    parts.truncate(rng.usize(2..5));
    parts
}

struct Row {
    a: Option<i64>,
    s: Option<String>,
    t: String,
    g: Option<(i64, i64)>,
    l: Option<Vec<i64>>,
}

/// Values come in stretches, so that some windows have none that pass.
fn rows(rng: &mut Rng, n: usize) -> Vec<Row> {
    let (mut rows, mut base) = (Vec::with_capacity(n), 0);
    for _ in 0..n {
        if rng.u16(..) < 300 {
            base = [0, 0, 100][rng.usize(0..3)];
        }
        let number = |rng: &mut Rng| base + rng.i64(0..100);
        rows.push(Row {
            a: (rng.u8(..) > 20).then(|| number(rng)),
            s: (rng.u8(..) > 20).then(|| format!("w{} and a long tail", rng.u8(0..30))),
            t: format!("x{}", rng.u32(0..5)),
            g: (rng.u8(..) > 20).then(|| (number(rng), rng.i64(0..100))),
            l: (rng.u8(..) > 40).then(|| (0..rng.i64(0..4)).collect()),
        });
    }
    rows
}

fn table(rows: &[Row]) -> RecordBatch {
    let a: Int64Array = rows.iter().map(|row| row.a).collect();
    let s: StringArray = rows.iter().map(|row| row.s.as_deref()).collect();
    let t: StringArray = rows.iter().map(|row| Some(&row.t)).collect();
    let b: BooleanArray = rows.iter().map(|row| row.a.map(|a| a > 3)).collect();
    let child = |of: fn((i64, i64)) -> i64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.g.map(of)).collect::<Int64Array>())
    };
    let fields = ["x", "y"].map(|name| Field::new(name, DataType::Int64, true));
    let nulls = rows.iter().map(|row| row.g.is_some()).collect::<Vec<_>>().into();
    let children = vec![child(|(x, _)| x), child(|(_, y)| y)];
    let g = StructArray::new(Fields::from(fields.to_vec()), children, Some(nulls));
    let mut l = ListBuilder::new(Int64Builder::new());
    rows.iter()
        .for_each(|row| l.append_option(row.l.as_ref().map(|l| l.iter().copied().map(Some))));
    let id = Int64Array::from_iter_values(0..rows.len() as i64);
    RecordBatch::try_from_iter([
        ("id", Arc::new(id) as ArrayRef),
        ("a", Arc::new(a)),
        ("s", Arc::new(s)),
        ("t", Arc::new(t)),
        ("g", Arc::new(g)),
        ("l", Arc::new(l.finish())),
        ("b", Arc::new(b)),
    ])
    .expect("columns of one length")
}

#[test]
fn the_rows_of_a_conjunction_are_the_same_however_its_columns_are_decoded() {
    every_case(300, |seed| {
        let mut rng = Rng::with_seed(seed);
        // Now and then chunks are large enough to be split between threads.
        let is_large = rng.u8(..) < 12;
        let n = if is_large { rng.usize(20_000..60_000) } else { rng.usize(1..6_000) };
        let rows = rows(&mut rng, n);
        let batch = table(&rows);
        let dictionary = rng.bool();
        let options = WriteOptions::new()
            .with_page_rows(rng.usize(50..800))
            .with_row_group_rows(rng.u64(500..7_000) * if is_large { 5 } else { 1 })
            .with_column("s", |column| column.with_dictionary(dictionary));
        let file = written(&batch, options);
        for _ in 0..4 {
            let parts = parts(&mut rng);
            let predicate = parts.iter().map(|(part, _)| part.clone()).reduce(Predicate::and);
            let predicate = predicate.expect("two parts or more");
            let reader = match rng.bool() {
                true => unindexed(&file),
                false => Reader::new(file.clone()).expect("a file"),
            };
            let mut reader = reader.batch_rows(rng.usize(20..2_000));
            let mut wanted: Vec<bool> = vec![true; rows.len()];
            if rng.bool() {
                wanted = flags(&mut rng, rows.len());
                let runs = wanted.iter().enumerate().filter(|(_, is)| **is);
                let runs = runs.map(|(i, _)| i as u64..i as u64 + 1);
                let selection = RowSelection::from_ranges(rows.len() as u64, runs).expect("rows");
                reader = reader.select(selection).expect("rows of the file");
            }
            let mut names = vec!["id", "a", "s", "t", "g", "l", "b"];
            rng.shuffle(&mut names);
            names.truncate(rng.usize(1..8));
            reader = reader.project(&names).expect("columns");
            let passes = |i: &u32| {
                let row = &rows[*i as usize];
                wanted[*i as usize] && parts.iter().all(|(_, holds)| holds(row))
            };
            let places: UInt32Array = (0..rows.len() as u32).filter(passes).collect();
            if rng.bool() {
                // Its waves are small at first.
                reader = reader.limit(rows.len() as u64);
            }
            let reader = with_threads(&mut rng, reader.filter(predicate.clone()));
            let found =
                read_with(reader).unwrap_or_else(|e| panic!("seed {seed}, {predicate}: {e}"));
            for name in names {
                let of =
                    |batch: &RecordBatch| batch.column_by_name(name).expect("a column").clone();
                let expected = arrow_select::take::take(&of(&batch), &places, None).expect("rows");
                let found: Vec<ArrayRef> = found.iter().map(of).collect();
                let parts: Vec<&dyn Array> = found.iter().map(|part| &**part).collect();
                if parts.is_empty() {
                    assert_eq!(expected.len(), 0, "seed {seed}, {predicate}");
                    continue;
                }
                let found = arrow_select::concat::concat(&parts).expect("parts of one type");
                assert_eq!(&found, &expected, "seed {seed}, {name}, {predicate}");
            }
        }
    });
}
