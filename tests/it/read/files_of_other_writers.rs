//! Tests the files of `testdata/` by other writers: every row is read as pyarrow reads it, in every
//! way of reading.

use std::fs;
use std::sync::Arc;

use marquetry::read::VirtualColumn;
use marquetry::schema::Dictionaries;
use marquetry::{ErrorKind, Reader};
use serde_json::Value;

use crate::support::{read_with, rows, testdata};

fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(testdata(""))
        .expect("the folder")
        .filter_map(|entry| {
            Some(entry.ok()?.file_name().to_str()?.strip_suffix(".parquet")?.to_owned())
        })
        .collect();
    names.sort();
    assert!(names.len() >= 25, "only {} files", names.len());
    names
}

fn open(name: &str) -> Reader {
    Reader::open(testdata(&format!("{name}.parquet"))).expect(name).threads(1)
}

fn truth(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(testdata(&format!("{name}.jsonl"))).expect(name);
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// Numbers by value: 1 is 1.0, and integers beyond 64 bits are text on our side.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::String(text), Value::Number(number))
        | (Value::Number(number), Value::String(text)) => *text == number.to_string(),
        _ => a == b,
    }
}

fn assert_same(name: &str, found: &[Value], expected: &[Value]) {
    assert_eq!(found.len(), expected.len(), "{name}: rows");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(same(found, expected), "{name}, row {i}:\n   found {found}\nexpected {expected}");
    }
}

#[test]
fn every_row_of_every_file_is_what_pyarrow_reads() {
    for name in names() {
        let found = rows(&read_with(open(&name)).expect(&name));
        assert_same(&name, &found, &truth(&name));
    }
}

#[test]
fn every_way_of_reading_gives_the_same_rows() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread"));
    for name in names() {
        let expected = truth(&name);
        let ways = [
            ("two threads", open(&name).threads(2)),
            ("a pool of one", open(&name).pool(pool.clone())),
            ("views", open(&name).views(true)),
            ("dictionaries", open(&name).dictionaries(Dictionaries::Strings)),
            ("batches of 7", open(&name).batch_rows(7)),
            ("batches of 7 on two threads", open(&name).batch_rows(7).threads(2)),
            ("no checksums", open(&name).verify_checksums(false)),
            ("lossy", open(&name).lossy_utf8(true)),
        ];
        for (way, reader) in ways {
            let found = rows(&read_with(reader).expect(&name));
            assert_same(&format!("{name} with {way}"), &found, &expected);
        }
    }
}

#[test]
fn projection_offset_and_limit_give_what_a_full_read_has_there() {
    let seed = 125;
    let mut rng = fastrand::Rng::with_seed(seed);
    for name in names() {
        let expected = truth(&name);
        let schema = open(&name).schema().expect("a schema");
        for _ in 0..6 {
            let offset = rng.usize(0..=expected.len());
            let limit = rng.usize(0..=expected.len() + 3);
            let mut columns: Vec<usize> = (0..schema.fields().len()).collect();
            rng.shuffle(&mut columns);
            columns.truncate(rng.usize(1..=columns.len().min(4)));
            let projected = columns.iter().map(|&i| schema.field(i).name().as_str());
            let reader = open(&name)
                .project(projected)
                .expect("columns that are there")
                .offset(offset as u64)
                .limit(limit as u64)
                .threads(rng.usize(1..=2))
                .batch_rows(rng.usize(1..200));
            let found = rows(&read_with(reader.clone()).expect(&name));
            assert_eq!(found.len() as u64, reader.rows().expect("a count"));
            let wanted: Vec<Value> = expected[offset..(offset + limit).min(expected.len())]
                .iter()
                .map(|row| Value::Array(columns.iter().map(|&i| row[i].clone()).collect()))
                .collect();
            assert_same(
                &format!("{name} seed {seed} offset {offset} limit {limit}"),
                &found,
                &wanted,
            );
        }
    }
}

#[test]
fn row_groups_are_read_in_the_order_given() {
    let expected = truth("multi_row_groups");
    let reader = open("multi_row_groups").row_groups([3, 0]).expect("row groups that are there");
    let found = rows(&read_with(reader).expect("rows"));
    assert_same("multi_row_groups", &found, &[&expected[300..400], &expected[0..100]].concat());
    let error = open("multi_row_groups").row_groups([5]).expect_err("there are 5");
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn virtual_columns_say_where_a_row_comes_from() {
    let reader = open("multi_row_groups")
        .project(["i32"])
        .expect("a column")
        .row_groups([4, 1])
        .expect("row groups")
        .offset(90)
        .limit(20)
        .virtual_column(VirtualColumn::RowNumber { name: "row".into() })
        .virtual_column(VirtualColumn::RowGroup { name: "group".into() })
        .virtual_column(VirtualColumn::FileName { name: "file".into() });
    let found = rows(&read_with(reader).expect("rows"));
    let numbers: Vec<i64> = found.iter().filter_map(|row| row[1].as_i64()).collect();
    assert_eq!(numbers, (490..500).chain(100..110).collect::<Vec<_>>());
    assert_eq!((&found[0][2], &found[19][2]), (&4.into(), &1.into()));
    assert!(found[0][3].as_str().is_some_and(|name| name.ends_with("multi_row_groups.parquet")));
}

#[test]
fn dropping_a_read_half_way_ends_its_work() {
    for threads in [1, 2] {
        let mut batches =
            open("multi_row_groups").threads(threads).batch_rows(10).batches().expect("a plan");
        batches.next_batch().expect("a batch").expect("a first one");
        drop(batches);
    }
}

#[test]
fn progress_counts_rows_bytes_and_row_groups() {
    let reader = open("multi_row_groups");
    let progress = reader.progress().clone();
    read_with(reader).expect("rows");
    assert_eq!((progress.rows(), progress.rows_total(), progress.row_groups()), (500, 500, 5));
    assert!(progress.bytes_fetched() > 10_000);
}

#[test]
fn a_budget_too_small_is_a_limit_and_one_large_enough_is_not() {
    let error = read_with(open("plain_types_v1").memory(10_000)).expect_err("too little");
    assert!(matches!(error.kind(), ErrorKind::Limit(_)));
    read_with(open("plain_types_v1").memory(1 << 20).batch_rows(50)).expect("enough");
}

#[test]
fn unknown_columns_are_named_in_the_error() {
    let error = open("trips").project(["id", "vendr"]).expect_err("no such column");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("vendr"));
}
