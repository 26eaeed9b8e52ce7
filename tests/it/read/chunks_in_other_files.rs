//! Tests chunks in other files: a `_metadata` summary reads as its files do, and no path leads out
//! of the folder that the caller trusts.

use std::path::Path;

use marquetry::arrow_array::RecordBatch;
use marquetry::format::{FileMetaData, Thrift};
use marquetry::write::summary;
use marquetry::{Dataset, ErrorKind, Export, Reader, WriteOptions, col};

use crate::support::cells::columns;
use crate::support::generate::{case, every_case};
use crate::support::numbered::{names, rows};
use crate::support::{close, read_with, testdata};

fn metadata(file: &Path) -> FileMetaData {
    Reader::open(file).unwrap().metadata().index().to_file_meta_data().unwrap()
}

/// Writes a summary of files below a folder, and opens it.
fn open(folder: &Path, files: &[&str]) -> Reader {
    let found: Vec<_> = files.iter().map(|file| metadata(&folder.join(file))).collect();
    let bytes = summary(files.iter().copied().zip(&found)).unwrap();
    std::fs::write(folder.join("_metadata"), bytes).unwrap();
    Reader::open(folder.join("_metadata")).unwrap()
}

#[test]
fn a_summary_reads_as_its_files_do() {
    let checked = every_case(100, |seed| {
        let folder = tempfile::tempdir().unwrap();
        let case = case(seed);
        std::fs::create_dir(folder.path().join("a=1")).unwrap();
        let files = ["one.parquet", "a=1/two.parquet", "a=1/three.parquet"];
        files.iter().for_each(|file| std::fs::write(folder.path().join(file), &case.file).unwrap());
        let reader = open(folder.path(), &files);
        if reader.metadata().row_groups() > 0 && !reader.schema().unwrap().fields().is_empty() {
            let error = read_with(reader.clone()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "seed {seed}: {error}");
            assert!(error.to_string().contains("files_below"), "seed {seed}: {error}");
        }
        let reader = reader.files_below(folder.path()).unwrap();
        let schema = reader.schema().unwrap();
        let dataset = Dataset::open(files.map(|file| folder.path().join(file))).unwrap();
        let expected: Vec<RecordBatch> =
            dataset.batches().unwrap().collect::<Result<_, _>>().unwrap();
        let expected = columns(&schema, &expected);
        assert_eq!(columns(&schema, &read_with(reader.clone()).unwrap()), expected, "seed {seed}");
        let mut found = Vec::new();
        for stream in reader.threads(2).streams(4).unwrap() {
            found.extend(stream.map(|batch| batch.unwrap()));
        }
        assert_eq!(columns(&schema, &found), expected, "seed {seed}");
    });
    println!("{checked} cases");
}

#[test]
fn filters_page_indexes_and_points_find_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions::new().with_row_group_rows(10_000);
    let export = Export::to(folder.path(), rows(0, 1).schema()).unwrap().options(options);
    let streams = (0..3).map(|i| [Ok::<_, marquetry::Error>(rows(i * 50_000, 50_000))]);
    let export = export.threads(1).summary(true);
    let files = export.run(streams.map(IntoIterator::into_iter)).unwrap();
    assert_eq!(files.len(), 3);
    assert_eq!(names(folder.path())[0], "_metadata");
    let reader = Reader::open(folder.path().join("_metadata")).unwrap();
    let mut reader = reader.files_below(folder.path()).unwrap();
    assert_eq!((reader.rows().unwrap(), reader.metadata().row_groups()), (150_000, 15));
    let found = reader.clone().filter(col("n").eq(123_456));
    assert_eq!(found.plan().unwrap().ranges().len(), 1, "pruned by the statistics of the summary");
    let batches = read_with(found.clone()).unwrap();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].columns(), rows(123_456, 1).columns());
    assert_eq!(found.explain().unwrap().row_groups.len(), 15);
    let taken = reader.take(&[149_999, 0, 50_000]).unwrap();
    let expected = [rows(149_999, 1), rows(0, 1), rows(50_000, 1)];
    for (i, expected) in expected.iter().enumerate() {
        assert_eq!(taken.slice(i, 1).columns(), expected.columns());
    }
    reader.load_page_indexes().unwrap();
    assert!(reader.metadata().page_index(14, 0).unwrap().offset_index.is_some());
    assert_eq!(reader.page_index(14, 0).unwrap(), reader.page_index(14, 0).unwrap());
    assert!(reader.stored_pages(14, 1).unwrap().all(|page| page.is_ok()));
}

/// The summary of one file, whose chunks are stated to lie at `path`.
fn with_path(folder: &Path, path: &str) -> marquetry::Result<Reader> {
    let found = metadata(&testdata("trips.parquet"));
    let bytes = summary([(path, &found)]).unwrap();
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
    reader.file_name("_metadata").files_below(folder)
}

#[test]
fn a_file_is_one_however_its_path_is_spelled() {
    let base = tempfile::tempdir().unwrap();
    std::fs::copy(testdata("trips.parquet"), base.path().join("file.parquet")).unwrap();
    let found = metadata(&testdata("trips.parquet"));
    let open = |paths: [&str; 3]| {
        let bytes = summary(paths.map(|path| (path, &found))).unwrap();
        let own = bytes.len() as u64;
        let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
        let reader = reader.files_below(base.path()).unwrap();
        (reader.file_len() - own, reader.count().unwrap())
    };
    let once = open(["file.parquet"; 3]);
    assert_eq!(once.1, 3000);
    assert_eq!(open(["file.parquet", "./file.parquet", ".//file.parquet"]), once);
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_opened() {
    let base = tempfile::tempdir().unwrap();
    let pipe = base.path().join("pipe.parquet");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    std::fs::create_dir(base.path().join("folder.parquet")).unwrap();
    // Opening a pipe without a writer would wait forever.
    for path in ["pipe.parquet", "folder.parquet"] {
        let error = with_path(base.path(), path).expect_err(path);
        assert_eq!(error.kind(), ErrorKind::Io, "{path}: {error}");
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[test]
fn no_path_leads_out_of_the_base() {
    let outer = tempfile::tempdir().unwrap();
    let base = outer.path().join("base");
    std::fs::create_dir_all(base.join("inside")).unwrap();
    let trips = std::fs::read(testdata("trips.parquet")).unwrap();
    for place in ["secret.parquet", "base/inside/file.parquet", "base/..file"] {
        std::fs::write(outer.path().join(place), &trips).unwrap();
    }
    let absolute = outer.path().join("secret.parquet");
    let absolute_inside = base.join("inside/file.parquet");
    let mut refused = vec![
        absolute.to_str().unwrap().to_owned(),
        absolute_inside.to_str().unwrap().to_owned(),
        "../secret.parquet".to_owned(),
        "inside/../../secret.parquet".to_owned(),
        "inside/../inside/file.parquet".to_owned(),
        "..".to_owned(),
        "/".to_owned(),
        "//secret.parquet".to_owned(),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(outer.path().join("secret.parquet"), base.join("link.parquet")).unwrap();
        symlink(outer.path(), base.join("up")).unwrap();
        symlink("../../secret.parquet", base.join("inside/relative")).unwrap();
        symlink("inside", base.join("fine")).unwrap();
        refused.extend(["link.parquet", "up/secret.parquet", "inside/relative"].map(str::to_owned));
        assert_eq!(with_path(&base, "fine/file.parquet").unwrap().count().unwrap(), 1_000);
    }
    for path in refused {
        let error = with_path(&base, &path).expect_err(&path);
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{path}: {error}");
        assert!(error.to_string().starts_with("_metadata: column chunks in "), "{error}");
    }
    for path in ["./inside//file.parquet", "..file", "inside/file.parquet"] {
        let found = with_path(&base, path).unwrap();
        assert_eq!(read_with(found).unwrap().len(), 4, "{path}: a batch of each row group");
    }
    for path in ["inside/missing.parquet", "inside", "a\0b"] {
        let found = with_path(&base, path).and_then(read_with);
        let error = found.expect_err(path);
        let refused = matches!(error.kind(), ErrorKind::Io | ErrorKind::Malformed(_));
        assert!(refused, "{path}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_becomes_a_link_out_of_the_base_is_refused() {
    let outer = tempfile::tempdir().unwrap();
    let base = outer.path().join("base");
    std::fs::create_dir(&base).unwrap();
    let trips = testdata("trips.parquet");
    std::fs::copy(&trips, base.join("file")).unwrap();
    std::fs::rename(base.join("file"), outer.path().join("secret")).unwrap();
    std::fs::copy(outer.path().join("secret"), base.join("file")).unwrap();
    let reader = with_path(&base, "file").unwrap();
    std::fs::remove_file(base.join("file")).unwrap();
    std::os::unix::fs::symlink(outer.path().join("secret"), base.join("file")).unwrap();
    let error = read_with(reader).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
}

#[test]
fn offsets_beyond_their_file_are_malformed() {
    let folder = tempfile::tempdir().unwrap();
    let trips = testdata("trips.parquet");
    std::fs::copy(&trips, folder.path().join("a")).unwrap();
    std::fs::copy(&trips, folder.path().join("b")).unwrap();
    let len = std::fs::metadata(&trips).unwrap().len() as i64;
    let found = metadata(&trips);
    for offset in [-1, len, len + (1 << 30), i64::MAX, i64::MIN, i64::MAX - 5] {
        for part in 0..5 {
            let mut broken = found.clone();
            let chunk = &mut broken.row_groups[0].columns[0];
            match part {
                0 => chunk.offset_index_offset = Some(offset),
                1 => chunk.column_index_offset = Some(offset),
                2 => chunk.meta_data.as_mut().unwrap().data_page_offset = offset,
                3 => chunk.meta_data.as_mut().unwrap().total_compressed_size = offset,
                _ => chunk.meta_data.as_mut().unwrap().bloom_filter_offset = Some(offset),
            }
            let bytes = summary([("a", &broken), ("b", &found)]).unwrap();
            let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
            // An index cannot lie at the very end, and the offset of the data pages does not matter
            // if a dictionary precedes them.
            let read = reader.files_below(folder.path()).and_then(|reader| {
                read_with(reader.clone())?;
                read_with(reader.filter(col("id").gt(5)))
            });
            match read {
                Err(e) => assert!(matches!(e.kind(), ErrorKind::Malformed(_)), "{part}: {e}"),
                Ok(_) => assert!(offset == len && part != 3, "{part}: {offset}"),
            }
        }
    }
}

#[test]
fn a_file_without_chunks_elsewhere_stays_as_it_is() {
    let reader = Reader::open(testdata("trips.parquet")).unwrap();
    let below = reader.clone().files_below("no such folder").unwrap();
    assert_eq!(below.file_len(), reader.file_len());
    // Own chunks and those of another file, side by side.
    let folder = tempfile::tempdir().unwrap();
    let trips = std::fs::read(testdata("trips.parquet")).unwrap();
    std::fs::write(folder.path().join("other"), &trips).unwrap();
    let mut both = metadata(&testdata("trips.parquet"));
    let mut others = both.row_groups.clone();
    let chunks = others.iter_mut().flat_map(|row_group| &mut row_group.columns);
    chunks.for_each(|chunk| chunk.file_path = Some("other".into()));
    both.row_groups.extend(others);
    both.num_rows *= 2;
    let file = close(trips, &both.to_thrift());
    let reader = Reader::new(bytes::Bytes::from(file)).unwrap();
    let reader = reader.files_below(folder.path()).unwrap();
    assert_eq!(reader.rows().unwrap(), 2_000);
    let found: usize = read_with(reader).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(found, 2_000);
}

#[cfg(feature = "object_store")]
#[test]
fn objects_below_a_prefix_are_read_as_one_file() {
    use futures_util::TryStreamExt;
    use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};
    use std::sync::Arc;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let trips = std::fs::read(testdata("trips.parquet")).unwrap();
        let found = metadata(&testdata("trips.parquet"));
        for name in ["table/a.parquet", "table/x=1/b.parquet", "secret"] {
            store.put(&name.into(), trips.clone().into()).await.unwrap();
        }
        let put = async |paths: &[&str]| {
            let bytes = summary(paths.iter().map(|path| (*path, &found))).unwrap();
            store.put(&"table/_metadata".into(), bytes.into()).await.unwrap();
            let reader = Reader::open_store(store.clone(), "table/_metadata").await.unwrap();
            reader.objects_below(store.clone(), "table").await
        };
        let reader = put(&["a.parquet", "x=1/b.parquet"]).await.unwrap();
        let mut rows = 0;
        for stream in reader.streams(3).unwrap() {
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        }
        assert_eq!(rows, 2_000);
        for path in ["../secret", "/secret", "x/../../secret"] {
            let error = put(&[path]).await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
        }
        assert_eq!(put(&["missing"]).await.unwrap_err().kind(), ErrorKind::Io);
    });
}
