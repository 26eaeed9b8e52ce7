//! Tests that values which rows share take memory within limits when they are shown or counted.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, ListArray, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;

use crate::support::folder::{Folder, error, limited};

/// Makes `name`, lists of one long text, which they share, and of one of their own.
fn shared(folder: &Folder, name: &str, lengths: impl IntoIterator<Item = usize>) {
    let lengths: Vec<usize> = lengths.into_iter().collect();
    let entries = std::iter::once("x".repeat(1 << 20));
    let entries = entries.chain((0..lengths.len()).map(|list| list.to_string()));
    let entries = StringArray::from_iter_values(entries);
    let keys = lengths.iter().enumerate().flat_map(|(list, len)| {
        let own = i32::try_from(list + 1).expect("few");
        std::iter::repeat_n(0, len - 1).chain([own])
    });
    let values = DictionaryArray::<Int32Type>::new(keys.collect::<Int32Array>(), Arc::new(entries));
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(values), None));
    folder.columns(name, vec![("l", lists)]);
}

#[cfg(target_os = "linux")]
#[test]
fn counted_values_that_are_text_of_long_ones_are_forgotten_in_time() {
    let folder = Folder::new();
    shared(&folder, "a.parquet", [2; 1500]);
    let args = ["stats", "--values", "a.parquet", "--mem", "128MiB", "-j", "1", "-f", "json"];
    let output = limited("ulimit -v 1200000", &folder.command(&args)).output().expect("marq runs");
    assert!(output.status.success(), "{}", error(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["stats"][0]["values"], 1500);
    assert_eq!(found["stats"][0]["exact"], false);
}

#[test]
fn a_row_of_more_than_the_memory_is_refused_where_a_limit_is_given() {
    let folder = Folder::new();
    shared(&folder, "a.parquet", [80]);
    folder.text(&["cat", "a.parquet", "-o", "whole.jsonl"]);
    assert!(folder.content_of("whole.jsonl").len() > 79 << 20);
    folder.text(&["cat", "a.parquet", "-o", "whole.jsonl", "--mem", "128MiB"]);
    for args in [
        &["cat", "a.parquet", "-o", "out.jsonl"][..],
        &["convert", "a.parquet", "-o", "out.csv"],
        &["cat", "a.parquet", "-f", "md", "-o", "out.md"],
        &["stats", "--values", "a.parquet", "-o", "out.json"],
    ] {
        let said = folder.refused(3, &[args, &["--mem", "64MiB"]].concat());
        assert!(said.contains("--mem"), "{args:?}: {said}");
        assert!(!folder.path(args.last().expect("a file")).exists(), "{args:?}");
    }
}
