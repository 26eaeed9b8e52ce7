//! Tests that an export writes all rows of all streams, in order, in whole files of the requested
//! size, or nothing.

use std::collections::BTreeMap;

use marquetry::arrow_array::RecordBatch;
use marquetry::arrow_schema::ArrowError;
use marquetry::{ErrorKind, Export, ExportedFile, Reader, WriteOptions};

use crate::support::numbered::{names, numbers, rows};
use crate::support::testdata;

type Stream = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// A stream of batches whose numbers begin at a million times the stream's.
fn stream(number: i64, batches: i64, size: i64) -> Stream {
    Box::new((0..batches).map(move |i| Ok(rows(number * 1_000_000 + i * size, size))))
}

/// The numbers of every stream, file after file.
fn by_stream(files: &[ExportedFile]) -> BTreeMap<usize, Vec<i64>> {
    let mut out: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for file in files {
        let reader = Reader::open(&file.path).unwrap();
        assert_eq!(reader.rows().unwrap(), file.report.rows);
        assert_eq!(std::fs::metadata(&file.path).unwrap().len(), file.report.bytes);
        out.entry(file.stream).or_default().extend(numbers(&reader).unwrap());
    }
    out
}

#[test]
fn rows_are_all_there_in_order_in_files_of_the_size() {
    const TARGET: u64 = 200_000;
    let sizes = [(40, 2500), (1, 90_000), (0, 1), (90, 1000), (30, 0), (7, 10)];
    for threads in [1, 2, 5] {
        let folder = tempfile::tempdir().unwrap();
        let export = Export::to(folder.path().join("a/b"), rows(0, 1).schema())
            .unwrap()
            .file_bytes(TARGET)
            .file_name(|n| format!("x{n}.parquet"))
            .threads(threads);
        let progress = export.progress();
        let streams = (0i64..).zip(sizes).map(|(i, (batches, size))| stream(i, batches, size));
        let files = export.run(streams).unwrap();
        let mut expected_names: Vec<_> =
            (0..files.len()).map(|n| format!("x{n}.parquet")).collect();
        for (n, file) in files.iter().enumerate() {
            assert!(file.path.ends_with(&expected_names[n]));
        }
        expected_names.sort();
        assert_eq!(names(&folder.path().join("a/b")), expected_names);
        let found = by_stream(&files);
        for (i, (batches, size)) in sizes.into_iter().enumerate() {
            let from = i as i64 * 1_000_000;
            let expected: Vec<_> = (from..from + batches * size).collect();
            assert!(found.get(&i).map_or(&[][..], |rows| rows) == expected, "stream {i}");
        }
        let total: u64 = files.iter().map(|file| file.report.bytes).sum();
        assert_eq!(progress.files(), files.len() as u64);
        assert_eq!(progress.bytes(), total);
        assert_eq!(progress.rows(), files.iter().map(|file| file.report.rows).sum::<u64>());
        let mut last_of_stream = BTreeMap::new();
        for file in &files {
            if let Some(bytes) = last_of_stream.insert(file.stream, file.report.bytes) {
                assert!((TARGET * 8 / 10..TARGET * 12 / 10).contains(&bytes), "{bytes} bytes");
            }
        }
        let sizes: Vec<_> = files.iter().map(|file| file.report.bytes).collect();
        println!("{threads} threads: files of {sizes:?} bytes");
        assert!(files.len() > 8);
    }
}

#[test]
fn readers_are_streams() {
    let folder = tempfile::tempdir().unwrap();
    let readers: Vec<_> = (0..3)
        .map(|_| Reader::open(testdata("trips.parquet")).unwrap().batches().unwrap())
        .collect();
    let export = Export::to(folder.path(), readers[0].schema()).unwrap();
    let files = export.options(WriteOptions::new().with_row_group_rows(100)).run(readers).unwrap();
    assert_eq!(
        names(folder.path()),
        ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    );
    assert!(files.iter().all(|f| f.report.rows == 1000 && f.report.row_groups() == 10));
    let empty: Vec<Stream> = Vec::new();
    let export = Export::to(folder.path(), rows(0, 1).schema()).unwrap();
    assert!(export.run(empty).unwrap().is_empty());
}

#[test]
fn an_error_of_a_stream_ends_all_and_leaves_nothing() {
    for threads in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("old"), "stays").unwrap();
        let bad = stream(2, 30, 2500)
            .chain(std::iter::once(Err(ArrowError::ComputeError("the stream broke".into()))));
        let streams: Vec<Stream> = vec![
            stream(0, 40, 2500),
            stream(1, 40, 2500),
            Box::new(bad),
            // Never ends by itself.
            Box::new((0..).map(|i| Ok(rows(i * 100, 100)))),
        ];
        let export = Export::to(folder.path(), rows(0, 1).schema()).unwrap();
        let export = export.file_bytes(100_000).threads(threads);
        let progress = export.progress();
        let error = export.run(streams).expect_err("a stream is bad");
        assert_eq!((error.kind(), error.at().stream), (ErrorKind::Arrow, Some(2)));
        assert!(error.to_string().contains("stream 2: "), "{error}");
        assert!(error.to_string().contains("the stream broke"), "{error}");
        assert!(progress.files() > 1, "some were finished");
        assert_eq!(names(folder.path()), ["old"]);
    }
}

#[test]
fn a_batch_of_another_schema_and_a_panic_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let export = || Export::to(folder.path(), rows(0, 1).schema()).unwrap().file_bytes(100_000);
    let other = RecordBatch::try_from_iter([("x", rows(0, 1).column(0).clone())]).unwrap();
    let streams = vec![stream(0, 30, 2500), Box::new(std::iter::once(Ok(other))) as Stream];
    let error = export().threads(1).run(streams).expect_err("another schema");
    assert_eq!((error.kind(), error.at().stream), (ErrorKind::Usage, Some(1)));
    let panic = std::panic::catch_unwind(|| {
        let bad = stream(1, 1, 10).chain(std::iter::from_fn(|| panic!("a stream panics")));
        export().threads(2).run(vec![stream(0, 60, 2500), Box::new(bad) as Stream])
    });
    assert_eq!(panic.expect_err("it goes on").downcast_ref(), Some(&"a stream panics"));
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let export = || Export::to(folder.path(), rows(0, 1).schema()).unwrap().file_bytes(100_000);
    let run = |export: Export| {
        let error = export.threads(1).run([stream(0, 40, 2500)]).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        println!("{error}");
    };
    run(export().file_name(|_| "same".into()));
    for name in ["", "..", "a/b", "/a", "a/"] {
        run(export().file_name(move |_| name.into()));
    }
    run(export().file_bytes(0));
    run(export().memory(0));
    assert!(names(folder.path()).is_empty());
    // The existing file must not be replaced.
    std::fs::write(folder.path().join("part-00001.parquet"), "precious").unwrap();
    run(export());
    assert_eq!(names(folder.path()), ["part-00001.parquet"]);
    assert_eq!(std::fs::read(folder.path().join("part-00001.parquet")).unwrap(), b"precious");
    std::fs::write(folder.path().join("file"), "text").unwrap();
    assert!(Export::to(folder.path().join("file"), rows(0, 1).schema()).is_err());
}
