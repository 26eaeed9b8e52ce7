//! Tests of `marq salvage`: what is recovered, what is said, and the exit codes.

use serde_json::json;

use crate::support::folder::{Folder, error};

#[test]
fn a_file_without_a_footer_comes_back_by_the_schema_of_another() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let (len, _) = folder.copy_with_broken_footer("trips.parquet", "broken.parquet");
    let refused = folder.run(&["salvage", "broken.parquet", "-o", "whole.parquet"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(error(&refused).contains("--schema-from"), "{}", error(&refused));
    assert!(!folder.path("whole.parquet").exists());
    let args = ["salvage", "broken.parquet", "--schema-from", "trips.parquet"];
    let done = folder.run(&[&args[..], &["-o", "whole.parquet"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", error(&done));
    let same = folder.run(&["diff", "trips.parquet", "whole.parquet"]);
    assert_eq!(same.status.code(), Some(0), "{}", error(&same));
    let bytes = std::fs::read(folder.path("broken.parquet")).expect("a file");
    folder.put("cut.parquet", &bytes[..len / 2]);
    let args = ["salvage", "cut.parquet", "--schema-from", "trips.parquet", "-o", "half.parquet"];
    let half = folder.run(&[&args[..], &["--report", "-f", "json"]].concat());
    assert_eq!(half.status.code(), Some(5), "{}", error(&half));
    let report: serde_json::Value = serde_json::from_slice(&half.stdout).expect("JSON");
    assert_eq!(report["rows_recovered"], json!(500), "{report}");
    assert_eq!(folder.text(&["count", "half.parquet"]).trim(), "500");
    folder.put("nothing.parquet", b"PAR1");
    let args = ["salvage", "nothing.parquet", "--schema-from", "trips.parquet"];
    assert_eq!(folder.run(&args).status.code(), Some(3));
}

#[test]
fn a_damaged_page_costs_its_row_group_and_is_named() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let mut bytes = std::fs::read(folder.path("trips.parquet")).expect("a file");
    bytes[200..260].fill(0x5A);
    folder.put("damaged.parquet", &bytes);
    let output = folder.run(&["salvage", "damaged.parquet", "-o", "rest.parquet"]);
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    let said = error(&output);
    assert!(said.contains("row group 0 of 250 rows") && said.contains("column id"), "{said}");
    assert_eq!(folder.text(&["count", "rest.parquet"]).trim(), "750");
}

#[test]
fn an_encrypted_file_is_recovered_with_its_key() {
    const KEY: &str = "00112233445566778899aabbccddeeff";
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let args = ["convert", "trips.parquet", "-o", "e.parquet", "--row-group-rows", "250"];
    folder.text(&[&args[..], &["--encrypt-footer-key", KEY, "--side-footer", "1"]].concat());
    assert_eq!(folder.names(""), ["e.parquet", "trips.parquet"]);
    let mut bytes = std::fs::read(folder.path("e.parquet")).expect("a file");
    bytes[200] ^= 1;
    folder.put("damaged.parquet", &bytes);
    let salvage = |flags: &[&str]| {
        let args = ["salvage", "damaged.parquet", "-o", "out.parquet", "-f", "json"];
        folder.run(&[&args[..], flags].concat())
    };
    assert_eq!(salvage(&[]).status.code(), Some(6));
    let done = salvage(&["--footer-key", KEY]);
    assert_eq!(done.status.code(), Some(5), "{}", error(&done));
    assert!(error(&done).contains("--encrypt-footer-key"), "{}", error(&done));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((&report["rows_recovered"], &report["rows_lost"]), (&json!(750), &json!(250)));
    assert_eq!(folder.text(&["count", "out.parquet"]).trim(), "750");
    let done = salvage(&["--footer-key", KEY, "--encrypt-footer-key", KEY]);
    assert_eq!(done.status.code(), Some(5), "{}", error(&done));
    assert_eq!(folder.text(&["count", "out.parquet", "--footer-key", KEY]).trim(), "750");
    // Without a footer, nothing tells the number that the pages are authenticated with.
    folder.put("damaged.parquet", &bytes[..bytes.len() - 9]);
    let refused = salvage(&["--footer-key", KEY]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(error(&refused).contains("aad_file_unique"), "{}", error(&refused));
}

#[test]
fn a_whole_file_without_row_groups_goes_where_the_output_is() {
    let folder = Folder::new();
    folder.put("empty.csv", "a,b\n");
    folder.text(&["convert", "empty.csv", "-o", "empty.parquet"]);
    assert_eq!(folder.json(&["info", "empty.parquet"])["row_groups"], json!(0));
    let output = folder.run(&["salvage", "empty.parquet", "-o", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"));
    assert_eq!(folder.names(""), ["empty.csv", "empty.parquet"]);
}
