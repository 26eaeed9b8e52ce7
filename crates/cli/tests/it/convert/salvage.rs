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
