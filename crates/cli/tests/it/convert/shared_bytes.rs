//! Tests that a file whose column chunks share bytes is not copied unless the user says so.

use std::process::Command;

use crate::support::shared_row_groups;

#[test]
fn the_tool_copies_shared_chunks_where_it_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("shared.parquet"), shared_row_groups()).expect("written");
    let marq = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marq"));
        let output = command.current_dir(folder.path()).args(args).output().expect("marq runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let key = "00112233445566778899aabbccddeeff";
    for args in [
        &["convert", "shared.parquet", "-o", "out.parquet"][..],
        &["crypt", "encrypt", "shared.parquet", "-o", "out.parquet", "--encrypt-footer-key", key],
    ] {
        let (code, text) = marq(args);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("--shared-bytes") && !text.contains("Reader::"), "{text}");
        assert!(!folder.path().join("out.parquet").exists());
        assert_eq!(marq(&[args, &["--shared-bytes"]].concat()).0, Some(0));
        std::fs::remove_file(folder.path().join("out.parquet")).expect("written");
    }
    assert_eq!(marq(&["convert", "shared.parquet", "-o", "out.csv"]).0, Some(0), "rows are rows");
}
