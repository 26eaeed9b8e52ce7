//! `readers`: which readers open a file, and the exit code.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeBinaryArray, Float64Array, Int32Array};
use serde_json::Value;

use crate::support::folder::Folder;

/// A file of numbers, floats and 5 bytes, in an encoding for one of them.
fn file(encoding: &str) -> Folder {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..20));
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..20).map(f64::from)));
    let bytes: Vec<[u8; 5]> = (0..20u8).map(|i| [i; 5]).collect();
    let bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap());
    folder.columns("plain.parquet", vec![("n", numbers), ("f", floats), ("b", bytes)]);
    folder.text(&["convert", "plain.parquet", "-o", "a.parquet", "--encoding", encoding]);
    folder
}

fn answer_of<'a>(report: &'a Value, reader: &str) -> &'a Value {
    let readers = report["files"][0]["readers"].as_array().unwrap();
    readers.iter().find(|of| of["reader"] == reader).expect("a reader")
}

#[test]
fn a_column_that_stands_in_the_way_is_named_with_its_reason() {
    let folder = file("b=DELTA_BYTE_ARRAY");
    let report = folder.json(&["readers", "a.parquet"]);
    let polars = answer_of(&report, "polars");
    assert_eq!(polars["reads_all"], false);
    assert_eq!(polars["columns"][0]["verdict"], "reads");
    assert_eq!(polars["columns"][2]["verdict"], "refuses");
    let reason = "DELTA_BYTE_ARRAY of FIXED_LEN_BYTE_ARRAY";
    assert_eq!(polars["columns"][2]["detail"], reason);
    for reader in ["duckdb", "pyarrow", "parquet-java", "spark", "arrow-rs", "marquetry"] {
        assert_eq!(answer_of(&report, reader)["reads_all"], true, "{reader}");
    }
    let table = folder.text(&["readers", "a.parquet", "--wide"]);
    assert!(table.contains("2 of 3 columns") && table.contains(reason), "{table}");
    let by_column = folder.text(&["readers", "a.parquet", "--wide", "-v"]);
    assert!(by_column.contains("no: DELTA_BYTE_ARRAY"), "{by_column}");
    let lines = folder.text(&["readers", "a.parquet", "-f", "csv"]);
    assert_eq!(lines.lines().count(), 1 + 8 * 3, "{lines}");
}

#[test]
fn the_exit_code_is_4_if_a_wanted_reader_does_not_read_all() {
    let folder = file("b=DELTA_BYTE_ARRAY");
    let error = folder.refused(4, &["readers", "a.parquet", "--for", "duckdb,polars"]);
    assert!(error.contains("polars 2.1 does not read it: column b"), "{error}");
    let report = folder.json(&["readers", "a.parquet", "--for", "duckdb,spark-rows"]);
    assert_eq!(report["files"][0]["readers"].as_array().unwrap().len(), 2);
    let error = folder.refused(2, &["readers", "a.parquet", "--for", "excel"]);
    assert!(error.contains("no reader \"excel\" is known"), "{error}");
}

#[test]
fn a_file_that_is_not_opened_at_all_is_said_to_be_so() {
    let folder = file("f=ALP");
    let report = folder.json(&["readers", "a.parquet"]);
    assert_eq!(answer_of(&report, "duckdb")["refuses_file"]["column"], "f");
    assert!(answer_of(&report, "polars")["refuses_file"].is_null());
    assert_eq!(answer_of(&report, "marquetry")["reads_all"], true);
    let table = folder.text(&["readers", "a.parquet", "--wide"]);
    assert!(table.contains("not at all") && table.contains("the encoding ALP"), "{table}");
    // A proposal is written where it is asked for, and shown.
    let folder = file("n=PFOR");
    let report = folder.json(&["readers", "a.parquet"]);
    assert_eq!(answer_of(&report, "pyarrow")["reads_all"], false);
    assert_eq!(answer_of(&report, "marquetry")["reads_all"], true);
    let map = folder.text(&["map", "a.parquet", "--color-by", "encoding"]);
    assert!(map.contains("PFOR"), "{map}");
}
