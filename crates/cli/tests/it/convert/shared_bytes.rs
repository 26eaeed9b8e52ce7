//! Tests that a file whose column chunks share bytes is not copied unless the user says so.

use crate::support::folder::{Folder, error};
use crate::support::shared_row_groups;

#[test]
fn the_tool_copies_shared_chunks_where_it_is_asked() {
    let folder = Folder::new();
    folder.put("shared.parquet", shared_row_groups());
    let marq = |args: &[&str]| {
        let output = folder.run(args);
        (output.status.code(), error(&output))
    };
    let key = "00112233445566778899aabbccddeeff";
    for args in [
        &["convert", "shared.parquet", "-o", "out.parquet"][..],
        &["concat", "shared.parquet", "-o", "out.parquet"],
        &["rewrite", "shared.parquet", "-o", "out.parquet"],
        &["rewrite", "shared.parquet", "-o", "out.parquet", "--page-rows", "7"],
        &["rewrite", "shared.parquet", "-o", "out.parquet", "--row-group-rows", "7"],
        &["crypt", "encrypt", "shared.parquet", "-o", "out.parquet", "--encrypt-footer-key", key],
    ] {
        let (code, text) = marq(args);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("--shared-bytes") && !text.contains("Reader::"), "{text}");
        assert!(!folder.path("out.parquet").exists());
        assert_eq!(marq(&[args, &["--shared-bytes"]].concat()).0, Some(0));
        std::fs::remove_file(folder.path("out.parquet")).expect("written");
    }
    folder.put("data/a.parquet", shared_row_groups());
    folder.put("data/b.parquet", shared_row_groups());
    assert_eq!(marq(&["compact", "data"]).0, Some(3));
    assert_eq!(marq(&["convert", "shared.parquet", "-o", "out.csv"]).0, Some(0), "rows are rows");
}
