//! Tests that numbers which a footer states, however large, are shown or refused: no sum of them
//! goes round.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use marquetry::format::FileMetaData;

use crate::support::folder::Folder;

/// Makes `name`, a file of three columns with its footer changed.
fn forged(folder: &Folder, name: &str, change: impl FnOnce(&mut FileMetaData)) {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
    let columns = ["a", "b", "c"].map(|column| (column, numbers.clone()));
    folder.columns(name, columns.into());
    folder.change_footer(name, change);
}

/// The same of no columns, with row groups that state these numbers of rows.
fn rows_alone(folder: &Folder, name: &str, rows: &[i64]) {
    forged(folder, name, |footer| {
        footer.schema.truncate(1);
        footer.schema[0].num_children = Some(0);
        footer.num_rows = rows.iter().fold(0i64, |sum, rows| sum.wrapping_add(*rows));
        let mut group = footer.row_groups[0].clone();
        group.columns.clear();
        footer.row_groups = vec![group; rows.len()];
        for (group, rows) in footer.row_groups.iter_mut().zip(rows) {
            group.num_rows = *rows;
        }
        (footer.column_orders, footer.key_value_metadata) = (None, None);
    });
}

#[test]
fn sizes_of_column_chunks_are_added_up_to_the_largest_number() {
    let folder = Folder::new();
    for (name, offset, compressed, raw) in [
        ("compressed.parquet", None, Some(i64::MAX), None),
        ("raw.parquet", None, None, Some(i64::MAX)),
        ("offset.parquet", Some(i64::MIN), None, None),
        ("all.parquet", Some(i64::MIN), Some(i64::MAX), Some(i64::MAX)),
    ] {
        forged(&folder, name, |footer| {
            for chunk in &mut footer.row_groups[0].columns {
                let meta = chunk.meta_data.as_mut().expect("metadata");
                meta.dictionary_page_offset = Some(5);
                meta.data_page_offset = offset.unwrap_or(meta.data_page_offset);
                meta.total_compressed_size = compressed.unwrap_or(meta.total_compressed_size);
                meta.total_uncompressed_size = raw.unwrap_or(meta.total_uncompressed_size);
            }
        });
        let info = folder.json(&["info", name]);
        assert_eq!(info["uncompressed_bytes"] == u64::MAX, raw.is_some(), "{name}");
        folder.text(&["info", name, "-f", "table"]);
        folder.text(&["report", name, "--sections", "summary", "-f", "json"]);
        let by_group = folder.json(&["stats", name, "--by", "rowgroup", "-c", "a,b,c"]);
        let stats = &by_group["stats"][0];
        assert_eq!(stats["uncompressed_bytes"] == u64::MAX, raw.is_some(), "{name}");
        assert_eq!(stats["compressed_bytes"] == u64::MAX, compressed.is_some(), "{name}");
    }
}

#[test]
fn rows_of_several_files_are_never_more_than_there_are_numbers_for() {
    let folder = Folder::new();
    let names = ["a.parquet", "b.parquet", "c.parquet"];
    names.iter().for_each(|name| rows_alone(&folder, name, &[i64::MAX]));
    for command in [
        &["count"][..],
        &["info"],
        &["tail", "-n", "0"],
        &["tail"],
        &["sample"],
        &["head", "--skip", "2"],
        &["cat", "--skip", "2", "-n", "1"],
    ] {
        let two = [command, &names[..2]].concat();
        folder.text(&two);
        let three = [command, &names].concat();
        if matches!(command, ["tail", ..]) {
            // The last rows are all in the last file.
            folder.text(&three);
            continue;
        }
        let said = folder.refused(3, &three);
        assert!(said.contains("2^64 rows"), "{three:?}: {said}");
    }
    // Progress is shown, or not, by their sum.
    let args = ["head", "-n", "1", "--progress", "always", "-o", "out.jsonl"];
    folder.text(&[&args[..], &names].concat());
}

#[test]
fn row_groups_of_more_rows_than_a_file_can_have_are_refused() {
    let folder = Folder::new();
    rows_alone(&folder, "a.parquet", &[i64::MAX; 3]);
    for command in [
        &["count"][..],
        &["info"],
        &["doctor"],
        &["cat", "--rows", "1:2", "--on-damage", "skip-row-group"],
    ] {
        folder.refused(3, &[command, &["a.parquet"]].concat());
    }
}
