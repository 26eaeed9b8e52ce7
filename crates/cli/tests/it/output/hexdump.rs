//! `marq hexdump`: the leaves are the file, and lines say what bytes mean.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StringArray, types::Int32Type};
use serde_json::Value;

use crate::support::close;
use crate::support::folder::Folder;
use crate::support::testdata;

/// Holds spans to lie end to end from `start`; appends what their leaves are.
fn leaves(spans: &Value, start: u64, out: &mut Vec<u8>) {
    let mut at = start;
    for span in spans.as_array().expect("a list of spans") {
        let number = |name: &str| span[name].as_u64().expect("a number");
        assert_eq!(number("offset"), at, "{span}");
        at += number("length");
        let before = out.len();
        match &span["children"] {
            Value::Null => {
                let hex = span["hex"].as_str().expect("a leaf has its bytes");
                let bytes =
                    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16));
                out.extend(bytes.map(|byte| byte.expect("two digits")));
            }
            children => leaves(children, number("offset"), out),
        }
        assert_eq!((out.len() - before) as u64, number("length"), "{span}");
        for inside in ["decompressed", "decrypted"] {
            if !span[inside].is_null() {
                leaves(&span[inside], 0, &mut Vec::new());
            }
        }
    }
}

#[test]
fn leaves_of_every_depth_are_the_file() {
    let folder = Folder::new();
    for name in ["trips.parquet", "nested_v2.parquet", "codec_gzip.parquet"] {
        folder.copy(name);
        let bytes = std::fs::read(folder.path(name)).expect("a file");
        for depth in ["header", "levels", "values"] {
            let found = folder.json(&["hexdump", name, "--depth", depth]);
            assert_eq!(found["schema"], "marq/1/hexdump");
            assert_eq!(found["file"], name);
            assert_eq!(found["file_bytes"].as_u64(), Some(bytes.len() as u64));
            let mut out = Vec::new();
            leaves(&found["spans"], 0, &mut out);
            assert!(out == bytes, "{name} {depth}");
        }
    }
}

#[test]
fn lines_fit_80_columns_and_say_what_levels_mean() {
    let folder = Folder::new();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(7), None]),
        None,
        Some(vec![]),
    ]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("text1"), None, Some("t2")]));
    folder.columns("a.parquet", vec![("lists", Arc::new(lists)), ("texts", texts)]);
    let output = folder
        .command(&["hexdump", "a.parquet", "-f", "table"])
        .env("COLUMNS", "80")
        .output()
        .expect("marq runs");
    let text = String::from_utf8(output.stdout).expect("text");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for wanted in [
        "magic: \"PAR1\"",
        "column chunk texts of row group 0",
        "slot 2: r=0, d=0 of 3: `lists` is null",
        "slot 3: r=0, d=1 of 3: `lists` is there, `",
        "definition levels",
        "\"text1\"",
        "its checksum is right",
        "footer length",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn parts_of_a_file_are_shown_alone() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let kinds = |args: &[&str]| -> Vec<String> {
        let found = folder.json(&[&["hexdump", "trips.parquet"], args].concat());
        let spans = found["spans"].as_array().expect("spans");
        spans.iter().map(|span| span["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    assert_eq!(kinds(&["--footer"]), ["footer", "footer_length", "magic"]);
    assert_eq!(kinds(&["--at", "0"]), ["magic"]);
    assert_eq!(kinds(&["--at", "0x2:3"]), ["magic", "column_chunk"]);
    assert_eq!(kinds(&["--page", "0/id/0"]), ["data_page"]);
    assert_eq!(kinds(&["--page", "1/0/0"]), ["data_page"]);
    for (args, says) in [
        (&["--at", "99999999"][..], "the file has"),
        (&["--page", "9/id/0"], "row groups"),
        (&["--page", "0/nothing/0"], "no column"),
        (&["--page", "0/id/77"], "trips.parquet: --page: there is no page 77"),
        (&["--page", "0"], "not a page"),
        (&["--at", "x"], "not an offset"),
        (&["--width", "0"], "1 to 256"),
    ] {
        let error = folder.refused(2, &[&["hexdump", "trips.parquet"], args].concat());
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_page_of_an_unreadable_footer_is_an_error_of_the_file() {
    let folder = Folder::new();
    folder.copy_with_broken_footer("trips.parquet", "broken.parquet");
    folder.put("a.txt", "no Parquet file");
    for file in ["broken.parquet", "a.txt"] {
        let error = folder.refused(3, &["hexdump", file, "--page", "0/id/0"]);
        assert!(error.contains(file), "{error}");
    }
    let encrypted = testdata("encrypted/ctr_128_encrypted_uniform.parquet");
    let file = encrypted.to_str().expect("text");
    let error = folder.refused(6, &["hexdump", file, "--page", "0/id/0"]);
    assert!(error.contains(file), "{error}");
}

#[test]
fn what_is_no_parquet_file_is_shown_as_what_cannot_be_parsed() {
    let folder = Folder::new();
    folder.put("a.txt", "no Parquet file, and \u{1b}[31m red");
    let found = folder.json(&["hexdump", "a.txt"]);
    let kinds: Vec<&str> = found["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .map(|span| span["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["unparsed", "unparsed", "footer_length", "unparsed"]);
    let text = folder.text(&["hexdump", "a.txt", "-f", "table"]);
    assert!(!text.contains('\u{1b}'));
    folder.put("empty", "");
    assert_eq!(folder.json(&["hexdump", "empty"])["spans"].as_array().map(Vec::len), Some(0));
}

#[test]
fn lines_of_csv_are_the_file_and_long_leaves_have_several() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.put("junk", "x".repeat((5 << 19) + 3));
    for (name, wanted) in [("trips.parquet", None), ("junk", Some(3))] {
        let bytes = folder.content_of(name);
        let text = folder.text(&["hexdump", name, "-f", "csv"]);
        let (mut at, mut lines_of_junk) = (0, 0);
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |cell: usize| cells[cell].parse::<usize>().expect("a number");
            assert_eq!(number(0), at, "{}", &line[..line.len().min(200)]);
            let part = &bytes[at..at + number(1)];
            let hex: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(cells.last() == Some(&hex.as_str()) && hex.len() <= 2 << 20);
            at += part.len();
            lines_of_junk += usize::from(part.len() > 8 && cells[2] == "unparsed");
        }
        assert_eq!(at, bytes.len(), "{name}");
        assert!(wanted.is_none_or(|wanted| wanted == lines_of_junk), "{lines_of_junk} lines");
    }
}

#[test]
fn a_footer_of_nothing_but_nested_structs_is_shown_as_deep_as_footers_are_read() {
    let folder = Folder::new();
    folder.put("a.parquet", close(b"PAR1".to_vec(), &[0x1C; 100_000]));
    let text = folder.text(&["hexdump", "a.parquet", "-f", "table"]);
    assert!(text.contains("nested more than 64 deep"), "{}", text.len());
    // JSON is not parsed here: it is nested deeper than the parser goes.
    let text = folder.text(&["hexdump", "a.parquet", "-f", "json"]);
    assert_eq!(text.matches("nested more than 64 deep").count(), 1);
}
