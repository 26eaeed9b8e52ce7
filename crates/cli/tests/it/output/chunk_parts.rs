//! `dict` and `bloom`: dictionaries and bloom filters of column chunks.

use marquetry::format::{ConvertedType, Encoding, Type};
use serde_json::{Value, json};

use crate::support::folder::Folder;
use crate::support::{Chunk, dictionary, file, ints, required, v1};

/// Two row groups of words and numbers, with bloom filters.
fn folder() -> Folder {
    let folder = Folder::new();
    let rows = ["red,1", "green,2", "red,3", "blue,4", "blue,5", "blue,6"].join("\n");
    folder.put("in.csv", format!("colour,n\n{rows}\n"));
    let flags = ["--row-group-rows", "3", "--bloom", "n", "--bloom", "colour"];
    folder.text(
        &[&["convert", "in.csv", "-o", "a.parquet", "--dictionary", "on"], &flags[..]].concat(),
    );
    folder
}

#[test]
fn dictionary_entries_are_rows_with_their_sizes() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let lines =
        folder.text(&["dict", "trips.parquet", "payment", "--row-group", "1", "-f", "jsonl"]);
    let entries: Vec<Value> = lines.lines().map(|line| line.parse().unwrap()).collect();
    assert!(entries.len() > 1, "{lines}");
    for (i, entry) in entries.iter().enumerate() {
        let value = entry["value"].as_str().unwrap();
        let expected = json!({"row_group": 1, "entry": i, "value": value, "bytes": value.len()});
        assert_eq!(*entry, expected);
    }
    let first = folder.text(&["dict", "trips.parquet", "payment", "-n", "1", "-f", "csv"]);
    assert_eq!(first.lines().next(), Some("row_group,entry,value,bytes"));
    assert_eq!(first.lines().count(), 2);
}

#[test]
fn a_column_without_dictionary_is_a_usage_error() {
    let folder = folder();
    folder.text(&["convert", "in.csv", "-o", "plain.parquet", "--dictionary", "off"]);
    let error = folder.refused(2, &["dict", "plain.parquet", "n"]);
    assert!(error.contains("column n has no dictionary"), "{error}");
    let error = folder.refused(2, &["dict", "plain.parquet", "n", "--row-group", "7"]);
    assert!(error.contains("no row group 7"), "{error}");
}

#[test]
fn a_bloom_filter_says_no_or_maybe() {
    let folder = folder();
    let found = folder.json(&["bloom", "a.parquet", "n", "2", "5", "-7"]);
    let answers = |group: usize| -> Vec<&str> {
        let values = found["row_groups"][group]["values"].as_array().unwrap();
        values.iter().map(|value| value["answer"].as_str().unwrap()).collect()
    };
    assert_eq!((answers(0), answers(1)), (vec!["maybe", "no", "no"], vec!["no", "maybe", "no"]));
    let filter = &found["row_groups"][0]["filter"];
    // Three values set eight bits each, some of them the same.
    let bits = filter["set_bits"].as_u64().unwrap();
    assert!((16..=24).contains(&bits), "{filter}");
    assert!(filter["false_positive_rate"].as_f64().unwrap() < 0.01, "{filter}");
    let table = folder.text(&["bloom", "a.parquet", "colour", "red", "-f", "table"]);
    assert!(table.contains("maybe") && table.contains("no") && table.contains("false positives"));
    let fill = folder.text(&["bloom", "a.parquet", "colour", "-f", "csv"]);
    assert_eq!(fill.lines().count(), 3, "{fill}");
}

#[test]
fn a_value_of_another_type_is_refused_and_no_filter_is_said() {
    let folder = folder();
    let error = folder.refused(2, &["bloom", "a.parquet", "n", "red"]);
    assert!(error.contains("column n is"), "{error}");
    folder.text(&["convert", "in.csv", "-o", "without.parquet"]);
    let found = folder.json(&["bloom", "without.parquet", "n", "1"]);
    assert_eq!(found["row_groups"][0]["filter"], Value::Null);
    assert_eq!(found["row_groups"][0]["values"][0]["answer"], "no filter");
}

/// A page of indexes into a dictionary of two values, all of them 0.
fn coded(values: u8) -> Vec<u8> {
    v1(values.into(), Encoding::RleDictionary, &[1, values << 1, 0])
}

#[test]
fn the_size_of_an_entry_that_its_value_does_not_tell_is_null() {
    let folder = Folder::new();
    let mut element = required("v", Type::ByteArray);
    (element.converted_type, element.precision, element.scale) =
        (Some(ConvertedType::Decimal), Some(20), Some(2));
    let entries = [&[2, 0, 0, 0, 1, 0][..], &[1, 0, 0, 0, 7]].concat();
    let chunk =
        Chunk::new(Type::ByteArray, 3, &[coded(3)]).with_dictionary(dictionary(2, &entries));
    folder.put("a.parquet", file(vec![element], 3, vec![chunk]));
    let lines = folder.text(&["dict", "a.parquet", "v", "-f", "jsonl"]);
    let entry =
        |i: u64, value: f64| json!({"row_group": 0, "entry": i, "value": value, "bytes": null});
    let found: Vec<Value> = lines.lines().map(|line| line.parse().expect("JSON")).collect();
    assert_eq!(found, [entry(0, 2.56), entry(1, 0.07)]);
}

#[test]
fn a_dictionary_is_given_up_after_pages_that_use_it() {
    let folder = Folder::new();
    let plain = || v1(1, Encoding::Plain, &ints(&[7]));
    for (name, pages, given_up) in [
        ("never.parquet", vec![plain(), plain()], Value::Null),
        ("last.parquet", vec![coded(1), coded(1), plain()], json!(2)),
        ("between.parquet", vec![plain(), coded(1), plain()], json!(2)),
    ] {
        let chunk = Chunk::new(Type::Int32, pages.len(), &pages);
        let chunk = chunk.with_dictionary(dictionary(2, &ints(&[7, 8])));
        let rows = i64::try_from(pages.len()).expect("few");
        folder.put(name, file(vec![required("v", Type::Int32)], rows, vec![chunk]));
        let found = folder.json(&["pages", name]);
        assert_eq!(found["chunks"][0]["dictionary_fallback_page"], given_up, "{name}");
    }
}

#[test]
fn only_hexadecimal_digits_are_bytes() {
    let folder = folder();
    for value in ["x'+f'", "x'0'", "x'0g'", "x'é'"] {
        let error = folder.refused(2, &["bloom", "a.parquet", "colour", value]);
        assert!(error.contains("hexadecimal"), "{error}");
    }
    folder.text(&["bloom", "a.parquet", "colour", "x'726564'"]);
}
