//! Tests what a copy may cost, and what it may show: chunks that share bytes, permissions while a
//! file is written, many equal names.

use marquetry::{ErrorKind, Reader};

use crate::support::{shared_row_groups, testdata};

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
