//! What a copy may cost, and what it may show: chunks that share bytes, permissions while a file is
//! written, many equal names.

use marquetry::format::Thrift;
use marquetry::{ErrorKind, Reader};

use crate::support::{close, testdata};

/// `trips.parquet` with its first row group stated 200 times.
fn shared_row_groups() -> Vec<u8> {
    let path = testdata("trips.parquet");
    let reader = Reader::open(&path).expect("a file");
    let mut meta = reader.metadata().index().to_file_meta_data().expect("metadata");
    let first = meta.row_groups[0].clone();
    meta.num_rows = first.num_rows * 200;
    meta.row_groups = vec![first; 200];
    let mut file = std::fs::read(&path).expect("bytes");
    let footer = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().expect("four"));
    file.truncate(file.len() - 8 - footer as usize);
    close(file, &meta.to_thrift())
}

#[test]
fn chunks_that_share_bytes_are_read_and_not_copied() {
    let reader = Reader::new(bytes::Bytes::from(shared_row_groups())).expect("a file");
    assert_eq!(reader.count().expect("rows"), 50_000);
    let error = reader.metadata().check_shared_bytes().expect_err("refused");
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
    assert_eq!((error.at().row_group, error.at().column.as_deref()), (Some(1), Some("id")));
    let whole = Reader::open(testdata("trips.parquet")).expect("a file");
    whole.metadata().check_shared_bytes().expect("nothing is shared");
}

#[cfg(feature = "encryption")]
#[test]
fn a_copy_of_shared_chunks_is_asked_for() {
    use marquetry::crypt::{Encryption, Key};
    use marquetry::io::WriteSink;
    use marquetry::rewrite::recrypt;

    let file = bytes::Bytes::from(shared_row_groups());
    let encryption = Encryption::new(Key::generate(128).expect("a key"));
    let copy = |shared: bool| {
        let mut out = Vec::new();
        let reader = Reader::new(file.clone()).expect("a file").shared_bytes(shared);
        recrypt(&reader, WriteSink(&mut out), Some(&encryption)).map(|_| out.len())
    };
    let error = copy(false).expect_err("refused");
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
    assert!(copy(true).expect("asked for") > 2_000_000);
}

#[cfg(feature = "cli")]
#[test]
fn the_tool_copies_shared_chunks_where_it_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("shared.parquet"), shared_row_groups()).expect("written");
    let marq = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_marq"));
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

#[cfg(unix)]
#[test]
fn the_temporary_file_shows_no_more_than_the_file_that_it_replaces() {
    use std::os::unix::fs::PermissionsExt;

    use marquetry::io::{PathSink, Sink};

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("private.parquet");
    std::fs::write(&path, "old").expect("written");
    for mode in [0o600, 0o400, 0o640, 0o644] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        let mut sink = PathSink::create(&path).expect("a sink");
        sink.write(bytes::Bytes::from_static(b"new")).expect("written");
        let temporary = sink.temporary().expect("beside").metadata().expect("there");
        let shown = temporary.permissions().mode() & 0o7777;
        assert_eq!(shown & !mode, 0, "{shown:o} beside {mode:o}");
        sink.finish().expect("finished");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o7777, mode);
    }
}
