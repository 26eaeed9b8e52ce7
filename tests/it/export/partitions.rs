//! Tests partitioned exports: every row is in the folder of its values, whatever the order, with a
//! limited number of open files, in a folder or in an object store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use marquetry::arrow_array::types::Int32Type;
use marquetry::arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array,
    DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, RunArray, StringArray,
    StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::{Error, ErrorKind, Export, ExportedFile, Reader, WriteOptions};

use crate::support::numbered::names;
use crate::support::{read_with, value};

type Rows = BTreeMap<(Option<String>, Option<i64>), Vec<i64>>;

/// Batches of rows in random order: a text and a number to partition by, and a number of its own.
fn batches(rng: &mut Rng, first: i64) -> Vec<Result<RecordBatch, Error>> {
    let texts = [None, Some("a"), Some("b/c=d"), Some("é 100%"), Some("..")];
    let mut next = first;
    let batches = (0..rng.usize(0..5)).map(|_| {
        let len = rng.usize(0..200);
        let text: StringArray = (0..len).map(|_| texts[rng.usize(0..texts.len())]).collect();
        let number: Int64Array =
            (0..len).map(|_| (rng.u8(0..9) > 0).then(|| rng.i64(-1..2))).collect();
        let row = Int64Array::from_iter_values(next..next + len as i64);
        next += len as i64;
        Ok(RecordBatch::try_from_iter_with_nullable([
            ("text", Arc::new(text) as ArrayRef, true),
            ("row", Arc::new(row), false),
            ("number", Arc::new(number), true),
        ])
        .unwrap())
    });
    batches.collect()
}

/// The rows by what they are partitioned by, in their order.
fn expected(streams: &[Vec<Result<RecordBatch, Error>>]) -> Rows {
    let mut out = Rows::new();
    for batch in streams.iter().flatten() {
        let batch = batch.as_ref().unwrap();
        for i in 0..batch.num_rows() {
            let text = value(batch.column(0), i).as_str().map(str::to_owned);
            let row = value(batch.column(1), i).as_i64().unwrap();
            out.entry((text, value(batch.column(2), i).as_i64())).or_default().push(row);
        }
    }
    out
}

/// The same, of what was written.
fn found(files: &[ExportedFile]) -> Rows {
    let mut out = Rows::new();
    for file in files {
        let [(text_name, text), (number_name, number)] = &file.partition[..] else {
            panic!("{:?}", file.partition)
        };
        assert_eq!((&**text_name, &**number_name), ("text", "number"));
        let number = number.as_ref().map(|number| number.parse().unwrap());
        let reader = Reader::open(&file.path).unwrap();
        assert_eq!(reader.schema().unwrap().fields().len(), 1, "the columns are left out");
        let rows = out.entry((text.clone(), number)).or_default();
        for batch in read_with(reader).unwrap() {
            rows.extend((0..batch.num_rows()).map(|i| value(batch.column(0), i).as_i64().unwrap()));
        }
    }
    out
}

#[test]
fn every_row_is_in_the_folder_of_its_values() {
    // Each file is synced, which takes its time.
    for seed in 0..10 {
        let rng = &mut Rng::with_seed(seed);
        let streams: Vec<_> = (0..rng.i64(1..4)).map(|i| batches(rng, i * 1_000_000)).collect();
        let rows = expected(&streams);
        let Some(first) = streams.iter().flatten().next() else { continue };
        let schema = first.as_ref().unwrap().schema();
        let folder = tempfile::tempdir().unwrap();
        let (open_files, threads) = (rng.usize(1..20), rng.usize(1..4));
        let export = Export::to(folder.path(), schema)
            .unwrap()
            .partition_by(["text", "number"])
            .options(WriteOptions::new().with_row_group_rows(100))
            .open_files(open_files)
            .threads(threads)
            .summary(true);
        let progress = export.progress();
        let all: usize = rows.values().map(Vec::len).sum();
        let files = export.run(streams.into_iter().map(IntoIterator::into_iter)).unwrap();
        let mut got = found(&files);
        // Streams that are worked on side by side may take turns.
        got.values_mut().for_each(|rows| rows.sort_unstable());
        assert_eq!(got, rows, "seed {seed}");
        assert_eq!(progress.rows(), all as u64);
        assert_eq!(progress.files(), files.len() as u64);
        let folders: BTreeSet<_> = files.iter().map(|file| file.path.parent().unwrap()).collect();
        assert_eq!(folders.len(), rows.len(), "seed {seed}: one folder for each");
        if open_files >= 20 * threads {
            assert!(files.len() <= rows.len() * threads);
        }
        if all > 0 {
            let reader = Reader::open(folder.path().join("_metadata")).unwrap();
            let reader = reader.files_below(folder.path()).unwrap();
            assert_eq!(reader.rows().unwrap(), all as u64);
            assert_eq!(
                read_with(reader).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(),
                all
            );
        }
    }
}

#[test]
fn folders_are_named_as_hive_names_them() {
    let text = StringArray::from(vec![Some("a/b=c"), None, Some("x y")]);
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("p:q"), Some("r"), None].into_iter().collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("the key", Arc::new(text)),
        ("d", Arc::new(dictionary)),
        ("day", Arc::new(Date32Array::from(vec![0, 20_779, -1]))),
        ("at", Arc::new(TimestampMillisecondArray::from(vec![0, 1_500, -1]))),
        ("is", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("row", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |by: &str| {
        let export = Export::to(folder.path().join(by), batch.schema()).unwrap();
        export.partition_by([by]).run([vec![Ok::<_, Error>(batch.clone())].into_iter()]).unwrap();
        names(&folder.path().join(by))
    };
    let null = "__HIVE_DEFAULT_PARTITION__";
    assert_eq!(run("the key"), [&*format!("the key={null}"), "the key=a%2Fb%3Dc", "the key=x y"]);
    assert_eq!(run("d"), [&*format!("d={null}"), "d=p%3Aq", "d=r"]);
    assert_eq!(run("day"), ["day=1969-12-31", "day=1970-01-01", "day=2026-11-22"]);
    let at = [
        "at=1969-12-31 23%3A59%3A59.999",
        "at=1970-01-01 00%3A00%3A00",
        "at=1970-01-01 00%3A00%3A01.500",
    ];
    assert_eq!(run("at"), at);
    assert_eq!(run("is"), [&*format!("is={null}"), "is=false", "is=true"]);
    assert_eq!(run("row"), ["row=1", "row=2", "row=3"]);
}

#[test]
fn numbers_times_and_runs_are_named_as_spark_names_them() {
    let fare = Decimal128Array::from(vec![1250, -5, 1250]).with_precision_and_scale(9, 2).unwrap();
    let zoned = TimestampMicrosecondArray::from(vec![0, 1, -1]).with_timezone("Europe/Berlin");
    let runs: RunArray<Int32Type> = ["x", "x", "y"].into_iter().collect();
    let columns: [(&str, ArrayRef); 9] = [
        ("fare", Arc::new(fare)),
        ("double", Arc::new(Float64Array::from(vec![1.0, 1e300, f64::NEG_INFINITY]))),
        ("float", Arc::new(Float32Array::from(vec![0.1, f32::NAN, -0.0]))),
        ("zoned", Arc::new(zoned)),
        ("time", Arc::new(Time64MicrosecondArray::from(vec![0, 1, 86_399_000_000]))),
        ("day", Arc::new(Date64Array::from(vec![0, 86_400_000, -86_400_000]))),
        ("runs", Arc::new(runs)),
        ("a b:c%20d=e", Arc::new(Int64Array::from(vec![1, 2, 2]))),
        ("row", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |n: usize, by: &str| {
        let to = folder.path().join(n.to_string());
        let export = Export::to(&to, batch.schema()).unwrap();
        let batches = vec![Ok::<_, Error>(batch.clone())].into_iter();
        let files = export.partition_by([by]).run([batches]).unwrap();
        let rows: Vec<u64> = files.iter().map(|file| file.report.rows).collect();
        assert_eq!(rows.iter().sum::<u64>(), 3, "{by}: {rows:?}");
        names(&to)
    };
    assert_eq!(run(0, "fare"), ["fare=-0.05", "fare=12.50"]);
    assert_eq!(run(1, "double"), ["double=-Infinity", "double=1.0", "double=1e300"]);
    assert_eq!(run(2, "float"), ["float=-0.0", "float=0.1", "float=NaN"]);
    let zoned = ["1969-12-31 23%3A59%3A59.999999", "1970-01-01 00%3A00%3A00"];
    assert_eq!(run(3, "zoned")[..2], zoned.map(|name| format!("zoned={name}")));
    let times = ["00%3A00%3A00", "00%3A00%3A00.000001", "23%3A59%3A59"];
    assert_eq!(run(4, "time"), times.map(|name| format!("time={name}")));
    assert_eq!(run(5, "day"), ["day=1969-12-31", "day=1970-01-01", "day=1970-01-02"]);
    assert_eq!(run(6, "runs"), ["runs=x", "runs=y"]);
    assert_eq!(run(7, "a b:c%20d=e"), ["a b:c%2520d%3De=1", "a b:c%2520d%3De=2"]);
}

#[test]
fn what_cannot_be_partitioned_by_is_refused_and_leaves_nothing() {
    let columns: [(&str, ArrayRef); 3] = [
        ("text", Arc::new(StringArray::from_iter_values((0..100).map(|i| i.to_string())))),
        ("bytes", Arc::new(BinaryArray::from_iter_values(vec![b"x"; 100]))),
        (
            "odd",
            Arc::new(StringArray::from_iter_values(
                (0..100).map(|i| if i < 99 { "x" } else { "" }),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = |with: &dyn Fn(Export) -> Export| {
        let export = with(Export::to(folder.path(), batch.schema()).unwrap());
        let error = export.run([vec![Ok::<_, Error>(batch.clone())].into_iter()]).unwrap_err();
        assert!(names(folder.path()).is_empty(), "{error}: {:?}", names(folder.path()));
        error.kind()
    };
    assert_eq!(error(&|export| export.partition_by(["none"])), ErrorKind::Usage);
    assert_eq!(error(&|export| export.partition_by(["text", "text"])), ErrorKind::Usage);
    assert_eq!(
        error(&|export| export.partition_by(["text", "bytes", "odd"])),
        ErrorKind::Unsupported("partitions by this type")
    );
    assert_eq!(
        error(&|export| export.partition_by(["odd"])),
        ErrorKind::Unsupported("partitions by this value")
    );
    assert_eq!(error(&|export| export.partition_by(["text"]).max_partitions(99)), ErrorKind::Usage);
    assert_eq!(
        error(&|export| export.summary(true).file_name(|_| "_metadata".into())),
        ErrorKind::Usage
    );
}

#[test]
fn a_summary_of_files_that_may_differ_is_refused_before_any_is_written() {
    use marquetry::variant::{VariantArray, VariantBuilder, VariantInference, VariantShredding};
    let variants = |append: &dyn Fn(&mut VariantBuilder)| {
        let mut builder = VariantBuilder::new();
        append(&mut builder);
        let (metadata, value) = builder.finish().unwrap().into_parts();
        let parts = [metadata, value].map(|part| {
            Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(part, 50))) as ArrayRef
        });
        let fields = ["metadata", "value"].map(|name| Field::new(name, DataType::Binary, false));
        let group = StructArray::new(fields.to_vec().into(), parts.to_vec(), None);
        let field = VariantArray::field("v", false).with_data_type(group.data_type().clone());
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(group)]).unwrap()
    };
    let numbers = variants(&|builder| builder.append(7i64).unwrap());
    let texts = variants(&|builder| builder.append("seven").unwrap());
    let run = |pattern: &str, summary: bool| {
        let infer = VariantShredding::Infer(VariantInference::new());
        let folder = tempfile::tempdir().unwrap();
        let export = Export::to(folder.path(), numbers.schema()).unwrap().summary(summary);
        let export = export.options(WriteOptions::new().with_shredding(pattern, infer)).threads(1);
        let streams = [&numbers, &texts].map(|batch| [Ok::<_, Error>(batch.clone())].into_iter());
        let progress = export.progress();
        let done = export.run(streams).map(|files| files.len()).map_err(|error| error.kind());
        (done, progress.rows())
    };
    let (refused, rows) = run("v", true);
    assert!(matches!(refused, Err(ErrorKind::Unsupported(_))), "{refused:?}");
    assert_eq!(rows, 0);
    assert_eq!(run("v", false), (Ok(2), 100));
}

#[test]
fn a_summary_that_stands_there_already_stays() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("_metadata"), "old").unwrap();
    let reader = Reader::open(crate::support::testdata("trips.parquet")).unwrap();
    let export = Export::to(folder.path(), reader.schema().unwrap()).unwrap().summary(true);
    assert_eq!(export.run(reader.streams(2).unwrap()).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(names(folder.path()), ["_metadata"], "and nothing else is left");
    assert_eq!(std::fs::read(folder.path().join("_metadata")).unwrap(), b"old");
}

#[test]
fn a_file_that_another_writer_finishes_first_stays() {
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::open(crate::support::testdata("trips.parquet")).unwrap();
    let (schema, path) = (reader.schema().unwrap(), folder.path().join("part-00000.parquet"));
    // The file is begun by then.
    let other = std::iter::once_with(|| std::fs::write(&path, "other").unwrap());
    let rows = reader.batches().unwrap().chain(other.filter_map(|()| None));
    let export = Export::to(folder.path(), schema).unwrap();
    assert_eq!(export.run([rows]).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(names(folder.path()), ["part-00000.parquet"], "and nothing else is left");
    assert_eq!(std::fs::read(&path).unwrap(), b"other");
}

#[cfg(feature = "object_store")]
#[test]
fn an_object_store_gets_the_same_files() {
    use futures_util::{StreamExt, TryStreamExt, stream};
    use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory};
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), Arc::new(local)];
        for (i, store) in stores.into_iter().enumerate() {
            let streams: Vec<_> =
                (0..3).map(|i| batches(&mut Rng::with_seed(7 + i), i as i64 * 1_000_000)).collect();
            let rows = expected(&streams);
            let schema = streams[0][0].as_ref().unwrap().schema();
            let export = || {
                Export::to_store(store.clone(), "out/table", schema.clone())
                    .partition_by(["text", "number"])
                    .threads(2)
                    .summary(true)
            };
            let streams = streams.into_iter().map(stream::iter);
            let files = export().run_async(streams).await.unwrap();
            let mut got: u64 = 0;
            for file in &files {
                let path = object_store::path::Path::parse(file.path.to_str().unwrap()).unwrap();
                let reader = Reader::open_store(store.clone(), path).await.unwrap();
                got += reader
                    .stream()
                    .unwrap()
                    .map_ok(|batch| batch.num_rows() as u64)
                    .try_fold(0, async |a, b| Ok(a + b))
                    .await
                    .unwrap();
            }
            assert_eq!(got, rows.values().map(|rows| rows.len() as u64).sum::<u64>());
            let summary = Reader::open_store(store.clone(), "out/table/_metadata").await.unwrap();
            let summary = summary.objects_below(store.clone(), "out/table").await.unwrap();
            assert_eq!(summary.count().await.unwrap(), got);
            if i == 1 {
                let text: Vec<_> = names(&folder.path().join("out/table"));
                assert!(text.contains(&"text=b%2Fc%3Dd".to_owned()), "{text:?}");
            }
            // Nothing is replaced, and what was begun is removed again.
            let count = async || store.list(None).count().await;
            let before = count().await;
            let again = export().run_async([stream::iter(batches(&mut Rng::with_seed(9), 0))]);
            assert_eq!(again.await.unwrap_err().kind(), ErrorKind::Usage);
            let bad = stream::iter(batches(&mut Rng::with_seed(7), 0))
                .chain(stream::iter([Err(std::io::Error::other("broke").into())]));
            let export = Export::to_store(store.clone(), "other", schema.clone())
                .partition_by(["text"])
                .open_files(2);
            let error = export.run_async([bad]).await.unwrap_err();
            assert_eq!((error.kind(), error.at().stream), (ErrorKind::Io, Some(0)));
            assert_eq!(count().await, before);
            let blocking = Export::to_store(store.clone(), "x", schema.clone());
            let error = blocking.run(Vec::<std::vec::IntoIter<Result<RecordBatch, Error>>>::new());
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Usage);
            drop(store.get(&"out/table/_metadata".into()).await.unwrap());
        }
    });
}
