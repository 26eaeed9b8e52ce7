//! Tests `marq convert` into a folder, and with its rows sorted.

use std::process::Output;

use marquetry::Reader;

use crate::support::folder::{Folder, error};

const LINES: &str = "\
{\"day\":\"b\",\"n\":3,\"x\":1}
{\"day\":\"a\",\"n\":2,\"x\":2}
{\"day\":null,\"n\":9,\"x\":3}
{\"day\":\"b\",\"n\":1,\"x\":4}
{\"day\":\"a\",\"n\":null,\"x\":5}
";

fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", error(output));
    error(output)
}

/// A file of numbers in no order, each with a text.
fn put_shuffled(folder: &Folder, rows: u64) {
    let line = |row: u64| {
        let number = row * 7_919 % rows;
        format!("{{\"number\":{number},\"text\":\"text of {number}, which is long enough\"}}\n")
    };
    folder.put("shuffled.jsonl", (0..rows).map(line).collect::<String>());
}

#[test]
fn partitions_are_folders_that_are_read_as_the_same_rows() {
    let folder = Folder::new();
    folder.put("a.jsonl", LINES);
    folder.text(&["convert", "a.jsonl", "--partition-by", "day", "--sort", "n", "-o", "out"]);
    assert_eq!(folder.names("out"), ["day=__HIVE_DEFAULT_PARTITION__", "day=a", "day=b"]);
    let lines = folder.text(&["cat", "out", "-f", "jsonl", "-c", "day,n,x"]);
    let mut lines: Vec<&str> = lines.lines().collect();
    // Within each partition by n, nulls last.
    let of_b: Vec<&&str> = lines.iter().filter(|line| line.contains("\"b\"")).collect();
    let b = ["{\"day\":\"b\",\"n\":1,\"x\":4}", "{\"day\":\"b\",\"n\":3,\"x\":1}"];
    assert!(of_b.into_iter().copied().eq(b));
    lines.sort_unstable();
    let mut expected: Vec<&str> = LINES.lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    // The files say how they are sorted, and leave the column of the folders out.
    let name = folder.names("out/day=a").pop().expect("a file");
    let reader = Reader::open(folder.path("out/day=a").join(name)).expect("a file");
    let footer = reader.metadata().index().to_file_meta_data().expect("a footer");
    let sorted = footer.row_groups[0].sorting_columns.as_ref().expect("an order");
    assert_eq!(sorted[0].column_idx, 0);
    assert_eq!(reader.schema().expect("a schema").fields().len(), 2);
    assert_eq!(folder.names(""), ["a.jsonl", "out"]);
}

#[test]
fn files_of_a_folder_have_about_the_size_that_is_asked_for() {
    let folder = Folder::new();
    put_shuffled(&folder, 20_000);
    let args = ["--codec", "none", "--dictionary", "off", "--file-size", "200KiB", "-o", "out"];
    folder.text(&[&["convert", "shuffled.jsonl"], &args[..]].concat());
    let names = folder.names("out");
    assert!((3..20).contains(&names.len()), "{names:?}");
    assert_eq!(folder.text(&["count", "out"]).trim(), "20000");
}

#[test]
fn rows_are_sorted_in_every_form_and_beyond_memory() {
    let folder = Folder::new();
    put_shuffled(&folder, 30_000);
    std::fs::create_dir(folder.path("temp")).expect("a folder");
    let sort = ["--sort", "number:desc", "--mem", "1MiB", "--temp", "temp"];
    for out in ["out.parquet", "out.arrow", "out.csv"] {
        folder.text(&[&["convert", "shuffled.jsonl", "-o", out], &sort[..]].concat());
        folder.text(&["convert", out, "-c", "number", "-o", "numbers.csv"]);
        let text = folder.content("numbers.csv");
        let numbers = text.lines().skip(1).map(|line| line.parse::<u64>().expect("a number"));
        assert!(numbers.eq((0..30_000).rev()), "{out}");
    }
    assert!(folder.names("temp").is_empty());
    // It is the folder that is used.
    let output = folder
        .run(&[&["convert", "shuffled.jsonl", "-o", "b.csv"], &sort[..5], &["missing"]].concat());
    refused(&output, 1);
    assert!(!folder.path("b.csv").exists());
}

#[test]
fn a_folder_that_is_not_empty_stays_as_it_is_and_what_fails_leaves_none() {
    let folder = Folder::new();
    folder.put("a.jsonl", LINES);
    folder.put("full/mine", "mine");
    let by_day = |out| ["convert", "a.jsonl", "--partition-by", "day", "-o", out];
    refused(&folder.run(&by_day("full")), 2);
    assert_eq!(folder.names("full"), ["mine"]);
    refused(&folder.run(&by_day("a.jsonl")), 2);
    // An empty one is taken, also under a folder that is not there yet.
    std::fs::create_dir(folder.path("empty")).expect("a folder");
    folder.text(&by_day("empty"));
    folder.text(&by_day("new/one"));
    assert_eq!(folder.names("empty"), folder.names("new/one"));
    let before = folder.names("");
    let line = "{\"day\":\"c\",\"n\":";
    folder.put("a.jsonl", format!("{}{line}", LINES.repeat(3_000)));
    refused(&folder.run(&by_day("broken")), 3);
    folder.put("a.jsonl", LINES);
    let args = ["convert", "a.jsonl", "--partition-by", "absent", "-o", "broken"];
    refused(&folder.run(&args), 2);
    assert_eq!(folder.names(""), before);
}

#[test]
fn flags_that_do_not_go_with_a_folder_are_refused() {
    let folder = Folder::new();
    folder.put("a.jsonl", LINES);
    for args in [
        &["--file-size", "1MiB"][..],
        &["--file-size", "1MiB", "-o", "-"],
        &["--file-size", "1MiB", "-o", "out", "--to", "csv"],
        &["--file-size", "1MiB", "-o", "out", "--side-footer", "1"],
        &["--partition-by", "day", "--in-place"],
        &["--temp", "t", "-o", "out.csv"],
        &["--sort", "absent", "-o", "out.csv"],
    ] {
        refused(&folder.run(&[&["convert", "a.jsonl"], args].concat()), 2);
    }
    assert_eq!(folder.names(""), ["a.jsonl"]);
}
