//! Tests `--on-damage`: rows that are not damaged come, what is lost is told, and the exit code
//! says that not all came.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use marquetry::Reader;
use serde_json::{Value, json};

use crate::support::folder::{Folder, error};

/// `damaged.parquet`, with five row groups of 100 rows; the second has a damaged column, `text`.
fn damaged() -> Folder {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
    let texts = (0..500).map(|row| Some(format!("text {}", row * row)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
    folder.columns("in.parquet", vec![("n", numbers), ("text", texts)]);
    let args = ["convert", "in.parquet", "-o", "whole.parquet", "--row-group-rows", "100"];
    folder.text(&args);
    let reader = Reader::open(folder.path("whole.parquet")).expect("a file");
    let chunk = reader.metadata().column_chunk(1, 1).expect("a chunk");
    let chunk = chunk.meta_data.expect("metadata");
    let start = chunk.dictionary_page_offset.unwrap_or(chunk.data_page_offset);
    let end = usize::try_from(start + chunk.total_compressed_size).expect("an offset");
    let mut bytes = folder.content_of("whole.parquet");
    bytes[end - 1] ^= 0x55;
    folder.put("damaged.parquet", bytes);
    folder
}

#[test]
fn rows_of_other_row_groups_come_and_the_lost_ones_are_told() {
    let folder = damaged();
    let fails = folder.run(&["cat", "damaged.parquet", "-f", "csv"]);
    assert_eq!(fails.status.code(), Some(3), "{}", error(&fails));
    let skip = ["--on-damage", "skip-row-group"];
    let output = folder.run(&[&["cat", "damaged.parquet", "-f", "csv"], &skip[..]].concat());
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    let rows = String::from_utf8(output.stdout.clone()).expect("text");
    let numbers = rows.lines().skip(1).map(|line| line.split(',').next().expect("a number"));
    assert!(numbers.eq((0..100).chain(200..500).map(|n: i32| n.to_string())));
    let told = error(&output);
    assert!(told.contains("row group 1: 100 of 100 rows are left out"), "{told}");
    assert!(told.contains("column text"), "{told}");
    // The first rows lie before the damage, or on both sides of it.
    let head = |n: &str| {
        folder.run(&[&["head", "damaged.parquet", "-f", "csv", "-n", n], &skip[..]].concat())
    };
    assert_eq!(head("100").status.code(), Some(0));
    let both = head("150");
    assert_eq!(both.status.code(), Some(5));
    assert_eq!(String::from_utf8_lossy(&both.stdout).lines().count(), 151);
    // Rows by their numbers in the file.
    let args = ["cat", "damaged.parquet", "-f", "csv", "--rows", "50:210", "-c", "n,text"];
    let output = folder.run(&[&args[..], &skip].concat());
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    let rows = String::from_utf8(output.stdout).expect("text");
    let numbers = rows.lines().skip(1).map(|line| line.split(',').next().expect("a number"));
    assert!(numbers.eq((50..100).chain(200..210).map(|n: i32| n.to_string())));
    // Of columns that are not damaged, nothing is lost.
    let args = ["cat", "damaged.parquet", "-f", "csv", "-c", "n"];
    let output = folder.run(&[&args[..], &skip].concat());
    assert_eq!((output.status.code(), error(&output)), (Some(0), String::new()));
}

#[test]
fn rows_of_a_damaged_page_are_null_in_its_column() {
    let folder = damaged();
    let nulls = ["--on-damage", "null-pages", "-f", "json"];
    let args = ["convert", "damaged.parquet", "-o", "rest.parquet"];
    let output = folder.run(&[&args[..], &nulls].concat());
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    let told: Vec<Value> =
        error(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let lost = &told[0];
    assert_eq!(lost["schema"], json!("marq/1/damage"));
    assert_eq!((&lost["code"], &lost["row_group"]), (&json!(5), &json!(1)));
    assert_eq!((&lost["column"], &lost["rows_null"]), (&json!("text"), &json!(100)));
    let count = |filter: &str| folder.text(&["count", "rest.parquet", "--where", filter]);
    assert_eq!(count("n >= 0").trim(), "500");
    assert_eq!(count("text is null").trim(), "100");
    assert_eq!(count("text is null and n >= 100 and n < 200").trim(), "100");
}

#[test]
fn counts_and_folders_go_on_after_damage_too() {
    let folder = damaged();
    let skip = ["--on-damage", "skip-row-group"];
    let args = ["count", "damaged.parquet", "--where", "text != 'text 20736'"];
    assert_eq!(folder.run(&args).status.code(), Some(3));
    let output = folder.run(&[&args[..], &skip].concat());
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "400");
    // The file that is made of two is whole, without the rows that are lost.
    let args = ["convert", "damaged.parquet", "in.parquet", "-o", "both.parquet"];
    let output = folder.run(&[&args[..], &skip].concat());
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    assert_eq!(folder.text(&["count", "both.parquet"]).trim(), "900");
    folder.text(&["check", "both.parquet", "--level", "truth"]);
}

#[test]
fn flags_that_do_not_go_with_damage_are_refused() {
    let folder = damaged();
    for args in [
        &["tail", "damaged.parquet"][..],
        &["sample", "damaged.parquet"],
        &["stats", "damaged.parquet"],
        &["count", "damaged.parquet"],
        &["head", "damaged.parquet", "--skip", "3"],
        &["convert", "damaged.parquet", "--in-place"],
    ] {
        folder.refused(2, &[args, &["--on-damage", "skip-row-group"]].concat());
    }
}
