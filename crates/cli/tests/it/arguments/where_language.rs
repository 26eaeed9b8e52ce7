//! Tests the language of `--where`: its help, its errors, and its results for a file with
//! statistics beside those for the rows themselves.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array,
    RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array,
};
use fastrand::Rng;
use marquetry::io::WriteSink;
use marquetry::{Predicate, Reader, WriteOptions, Writer};

use crate::support::folder::{Folder, error, marq};
use crate::support::testdata;

fn count(file: &Path, filter: &str) -> Output {
    let args = ["count", file.to_str().expect("a path"), "--where", filter];
    marq(&args).output().expect("marq runs")
}

#[test]
fn the_examples_of_the_help_are_true_of_some_rows() {
    let help = Folder::new().text(&["help", "where"]);
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    let (_, examples) = help.split_once("Examples").expect("examples");
    let mut run = 0;
    for line in examples.lines().skip(1) {
        let filter = line.split("--").next().unwrap_or_default().trim();
        let output = count(&testdata("trips.parquet"), filter);
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{filter}: {}", error(&output));
        assert_ne!(found.trim(), "0", "{filter}");
        run += 1;
    }
    assert!(run >= 20, "{run} examples");
}

#[test]
fn errors_name_types_as_people_do_and_point_at_the_place() {
    for (filter, said) in [
        ("pickup > 5", "write timestamp '2024-01-02 03:04:05Z'"),
        ("passengers = 'x'", "passengers is int8, and 'x' is no such value; write a whole number"),
        ("payment = 3", "payment is string, which cannot be compared with 3; a text stands in"),
        ("fare = true", "fare is decimal(9, 2)"),
        ("nearly(fare) = 3", "not supported: function `nearly`; there are abs, all, any, cast"),
        ("fare + payment > 3", "not supported: decimal(9, 2) + string"),
        ("stops = 3", "stops is a list"),
        ("id > ", "\n  id > \n       ^"),
        ("passengers % 0 = 1", "passengers % 0 = 1: division by zero"),
        ("cast(payment as int) = 1", "is no int32"),
        (
            "payment = \"cash on hand\"",
            "hint: marq schema lists the fields; in --where, text stands in",
        ),
    ] {
        let output = count(&testdata("trips.parquet"), filter);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{filter}: {error}");
        assert!(error.contains(said), "{filter}: {error}");
        for name in ["Int8", "Int64", "Utf8", "Decimal128", "Timestamp(", "List("] {
            assert!(!error.contains(name), "{filter}: {error}");
        }
    }
}

fn table(rng: &mut Rng, rows: usize) -> RecordBatch {
    fn values<T>(rng: &mut Rng, rows: usize, make: impl Fn(&mut Rng) -> T) -> Vec<Option<T>> {
        (0..rows).map(|_| (rng.u8(0..7) > 0).then(|| make(rng))).collect()
    }
    let words =
        values(rng, rows, |rng| *rng.choice(&["", "ab", "AB", "É", "-3", "7"]).expect("one"));
    let floats = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -2.25];
    let decimals = Decimal128Array::from(values(rng, rows, |rng| rng.i128(-99_999..99_999)));
    // In order, so that row groups and pages are left out.
    let ids = Int64Array::from_iter_values((0..rows).map(|row| row as i64));
    let columns: [(&str, ArrayRef); 9] = [
        ("id", Arc::new(ids)),
        ("n", Arc::new(Int8Array::from(values(rng, rows, |rng| rng.i8(..))))),
        ("u", Arc::new(UInt64Array::from(values(rng, rows, |rng| rng.u64(..) >> rng.u8(0..64))))),
        ("d", Arc::new(decimals.with_precision_and_scale(9, 2).expect("decimals"))),
        (
            "f",
            Arc::new(Float64Array::from(values(rng, rows, |rng| rng.choice(floats).expect("one")))),
        ),
        ("g", Arc::new(Float32Array::from(values(rng, rows, |rng| rng.f32() * 4.0 - 2.0)))),
        ("s", Arc::new(StringArray::from(words))),
        ("day", Arc::new(Date32Array::from(values(rng, rows, |rng| rng.i32(0..40))))),
        ("at", {
            let times = values(rng, rows, |rng| rng.i64(0..4_000_000) * 1000 + rng.i64(0..2));
            Arc::new(TimestampMillisecondArray::from(times))
        }),
    ];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn value(rng: &mut Rng) -> String {
    let column = *rng.choice(&["id", "n", "u", "d", "f", "g"]).expect("one");
    let number =
        *rng.choice(&["0", "1.5", "300", "-129", "10.245", "1e3", "99999.999"]).expect("one");
    match rng.u8(0..7) {
        0 => format!("{column} + {number}"),
        1 => format!("({column} - n) * 2"),
        2 => format!("abs({column} / 3)"),
        3 => format!("cast(cast({column} as double) as string)"),
        _ => column.to_owned(),
    }
}

fn filter(rng: &mut Rng, depth: u8) -> String {
    let op = *rng.choice(&["=", "<>", "<", "<=", ">", ">="]).expect("one");
    let number = *rng.choice(&["0", "-1.5", "300", "1500", "10.245", "1e300", "'7'"]).expect("one");
    match rng.u8(0..if depth == 0 { 9 } else { 13 }) {
        0 => format!("id {op} {}", rng.u16(0..4000)),
        1 | 2 => format!("{} {op} {number}", rng.choice(&["n", "u", "d", "f", "g"]).expect("one")),
        3 => format!("{} {op} {}", value(rng), value(rng)),
        4 => format!("lower(s) {op} 'ab' or s ilike '{}'", rng.choice(&["A%", "é"]).expect("one")),
        5 => format!("day {op} timestamp '1970-01-{:02} 12:00:00'", rng.u8(1..29)),
        6 => format!("at {op} '1970-01-{:02} 00:00:00.0005'", rng.u8(1..29)),
        7 => format!("at {op} day"),
        8 => format!("n between {} and {number} and length(s) {op} 1", rng.i16(-400..400)),
        9 => format!("not ({})", filter(rng, depth - 1)),
        10 => format!("({}) or ({})", filter(rng, depth - 1), filter(rng, depth - 1)),
        _ => format!("({}) and ({})", filter(rng, depth - 1), filter(rng, depth - 1)),
    }
}

/// Statistics, pages, dictionaries and the order of the parts must not change an answer.
#[test]
fn a_file_answers_as_its_rows_do() {
    let cases = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let seed = 30;
    let mut rng = Rng::with_seed(seed);
    let table = table(&mut rng, 4000);
    let options = WriteOptions::new().with_row_group_rows(1000).with_page_rows(100);
    let mut writer = Writer::new(WriteSink(Vec::new()), table.schema(), options).expect("a writer");
    writer.write(&table).expect("rows");
    let file = bytes::Bytes::from(writer.into_inner().expect("a file").1);
    let mut compared = 0;
    for case in 0..cases {
        let text = filter(&mut rng, 2);
        let said = format!("seed {seed}, {case}: {text}");
        let predicate = Predicate::parse(&text).unwrap_or_else(|e| panic!("{said}: {e}"));
        let reader = Reader::new(file.clone()).expect("a file").filter(predicate.clone());
        let expected = predicate.bind_to(&table.schema()).and_then(|bound| bound.evaluate(&table));
        match (expected, reader.count()) {
            (Ok(expected), found) => {
                let found = found.unwrap_or_else(|e| panic!("{said}: {e}"));
                assert_eq!(found, expected.true_count() as u64, "{said}");
                compared += 1;
            }
            // Rows that fail may be in row groups that are left out.
            (Err(_), _) => {}
        }
    }
    assert!(compared > cases / 2, "{compared} of {cases}");
}
