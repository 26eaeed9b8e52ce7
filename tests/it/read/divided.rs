//! Tests that a divided read returns what the whole one does: of one file or many, whatever is
//! selected, on as many threads as there are parts.

use std::sync::Arc;

#[cfg(feature = "async")]
use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::{Int64Array, RecordBatch, StringArray};
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::format::Encoding;
use marquetry::read::VirtualColumn;
use marquetry::schema::MatchBy;
use marquetry::{
    Batches, Dataset, DatasetBatches, ErrorKind, Reader, Result, RowSelection, WriteOptions, col,
};

use crate::read::row_selection::{flags, write};
use crate::support::cells::{Cell, columns};
use crate::support::generate::{case, every_case};
use crate::support::predicates::{comparable, random};
use crate::support::{read_with, testdata};

/// A reader with random wishes; none of rows by a filter and by their number at once.
fn wishes(rng: &mut Rng, mut reader: Reader, all: &[Vec<Cell>]) -> Reader {
    let rows = reader.file_rows().unwrap();
    let row_groups = reader.metadata().row_groups();
    if row_groups > 0 && rng.bool() {
        let chosen: Vec<_> = (0..rng.usize(0..6)).map(|_| rng.usize(0..row_groups)).collect();
        reader = reader.row_groups(chosen).unwrap();
    }
    if rng.bool() {
        let flags = flags(rng, usize::try_from(rows).unwrap());
        reader = reader.select(RowSelection::from_bits(flags.into())).unwrap();
    }
    let targets = comparable(&reader.schema().unwrap());
    if !targets.is_empty() && rng.bool() {
        reader = reader.filter(random(rng, &targets, all, 2).0);
    } else {
        if rng.bool() {
            reader = reader.offset(rng.u64(0..rows + 2));
        }
        if rng.bool() {
            reader = reader.limit(rng.u64(0..rows + 2));
        }
    }
    reader.batch_rows(rng.usize(1..400))
}

/// The batches of every stream, each read on a thread of its own, in the order of the streams.
fn on_threads<I>(streams: Vec<I>) -> Result<Vec<RecordBatch>>
where
    I: Iterator<Item = std::result::Result<RecordBatch, marquetry::arrow_schema::ArrowError>>
        + Send,
{
    let parts: Vec<Result<Vec<RecordBatch>>> = std::thread::scope(|scope| {
        let threads = streams.into_iter().map(|stream| {
            scope.spawn(move || stream.map(|batch| Ok(batch?)).collect::<Result<Vec<_>>>())
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

#[test]
fn the_parts_of_a_read_are_the_whole_in_order() {
    let checked = every_case(600, |seed| {
        let case = case(seed);
        let rng = &mut Rng::with_seed(seed);
        let reader = Reader::new(case.file.clone()).unwrap();
        let all = columns(&case.schema, &read_with(reader.clone().threads(1)).unwrap());
        let row = VirtualColumn::RowNumber { name: "the row".into() };
        let reader = wishes(rng, reader, &all).virtual_column(row);
        let n = rng.usize(1..9);
        let whole = read_with(reader.clone().threads(1)).unwrap();
        let schema = reader.schema().unwrap();
        let parts = reader.parts(n).unwrap();
        assert!((1..=n).contains(&parts.len()), "seed {seed}");
        let planned: u64 = parts.iter().map(|part| part.rows().unwrap()).sum();
        assert_eq!(planned, reader.rows().unwrap(), "seed {seed}");
        let counted: u64 = parts.iter().map(|part| part.count().unwrap()).sum();
        assert_eq!(counted, reader.count().unwrap(), "seed {seed}");
        let found = on_threads(reader.streams(n).unwrap()).unwrap();
        assert!(found.iter().all(|batch| batch.schema() == schema), "seed {seed}");
        assert_eq!(columns(&schema, &found), columns(&schema, &whole), "seed {seed}, {n} parts");
    });
    println!("{checked} cases");
}

#[test]
fn the_parts_of_a_dataset_are_the_rows_of_its_files_in_order() {
    every_case(300, |seed| {
        let rng = &mut Rng::with_seed(seed ^ 0xDA7A);
        let case = case(seed);
        let reader = Reader::new(case.file.clone()).unwrap();
        let all = columns(&case.schema, &read_with(reader.clone().threads(1)).unwrap());
        let is_filtered = rng.bool();
        let readers: Vec<Reader> = (0..rng.usize(1..5))
            .map(|_| {
                loop {
                    let with = wishes(rng, reader.clone(), &all);
                    if is_filtered || with.read_options().filter.is_none() {
                        break with;
                    }
                }
            })
            .collect();
        let any_filter = readers.iter().any(|reader| reader.read_options().filter.is_some());
        let whole: Vec<_> =
            readers.iter().flat_map(|reader| read_with(reader.clone()).unwrap()).collect();
        let rows: usize = whole.iter().map(RecordBatch::num_rows).sum();
        let mut dataset = Dataset::new(readers);
        let (mut skip, mut left) = (0, rows);
        let limited = rng.bool();
        if limited {
            (skip, left) = (rng.usize(0..rows + 2), rng.usize(0..rows + 2));
            dataset = dataset.offset(skip as u64).limit(left as u64);
        }
        let schema = dataset.schema().unwrap();
        let expected: Vec<Vec<Cell>> = columns(&schema, &whole)
            .into_iter()
            .map(|cells| cells.into_iter().skip(skip).take(left).collect())
            .collect();
        let in_order = dataset.batches().unwrap().collect::<std::result::Result<Vec<_>, _>>();
        assert_eq!(columns(&schema, &in_order.unwrap()), expected, "seed {seed}");
        let n = rng.usize(1..9);
        match dataset.streams(n) {
            Ok(streams) => {
                assert!((1..=n).contains(&streams.len()), "seed {seed}");
                let found = on_threads(streams).unwrap();
                assert_eq!(columns(&schema, &found), expected, "seed {seed}, {n} parts");
            }
            Err(e) => {
                assert!(any_filter && n > 1, "seed {seed}: {e}");
                assert!(limited, "seed {seed}: {e}");
                assert_eq!(e.kind(), ErrorKind::Usage, "seed {seed}: {e}");
            }
        }
    });
}

/// Rows of two columns; one of them takes more and more bytes.
fn growing(rows: usize) -> RecordBatch {
    let ids = Int64Array::from_iter_values((0..rows).map(|i| (i as i64).wrapping_mul(0x9E37_79B9)));
    let texts = StringArray::from_iter_values((0..rows).map(|i| "x".repeat(i * 64 / rows)));
    let fields =
        vec![Field::new("id", DataType::Int64, false), Field::new("text", DataType::Utf8, false)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(ids), Arc::new(texts)])
        .unwrap()
}

#[test]
fn no_part_costs_more_than_5_4_of_the_mean() {
    let batch = growing(200_000);
    for row_group_rows in [200_000, 70_000, 9_000] {
        let options = WriteOptions::new().with_row_group_rows(row_group_rows);
        let file = write(&batch, options);
        let reader = Reader::new(file.clone()).unwrap();
        let dataset =
            Dataset::new([reader.clone(), reader.clone().project(["id", "text"]).unwrap()]);
        for n in [1, 2, 3, 4, 7, 16, 64] {
            let parts = reader.parts(n).unwrap();
            assert_eq!(parts.len(), n);
            let costs = parts.iter().map(|part| part.estimated_cost().unwrap());
            let most = costs.clone().max().unwrap() as f64;
            let mean = reader.estimated_cost().unwrap() as f64 / n as f64;
            assert!(most <= mean * 1.25 + 64.0, "{n} parts of {row_group_rows}: {most} of {mean}");
            let parts = dataset.parts(n).unwrap();
            let costs = parts.iter().map(|part| part.estimated_cost().unwrap());
            let most = costs.max().unwrap() as f64;
            let mean = dataset.estimated_cost().unwrap() as f64 / n as f64;
            assert!(most <= mean * 1.25 + 64.0, "{n} parts of two files: {most} of {mean}");
        }
    }
}

#[test]
fn columns_that_are_not_read_do_not_count() {
    let options = WriteOptions::new()
        .with_row_group_rows(10_000)
        .with_column("text", |column| column.with_encoding(Encoding::Plain));
    let file = write(&growing(100_000), options);
    let reader = Reader::new(file).unwrap();
    let first_rows = |reader: &Reader| reader.parts(2).unwrap()[0].rows().unwrap();
    // The texts get longer and longer, the numbers do not.
    assert!(first_rows(&reader) > 60_000);
    assert_eq!(first_rows(&reader.clone().project(["id"]).unwrap()), 50_000);
    let none = reader.project::<&str>([]).unwrap();
    assert_eq!(first_rows(&none), 50_000, "rows of no columns are divided too");
}

#[test]
fn parts_of_pruned_row_groups_are_not_made() {
    let ids = Int64Array::from_iter_values(0..100_000);
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(ids)]).unwrap();
    let file = write(&batch, WriteOptions::new().with_row_group_rows(10_000));
    let reader = Reader::new(file).unwrap().filter(col("id").gt_eq(80_000));
    let parts = reader.parts(2).unwrap();
    let rows: Vec<u64> = parts.iter().map(|part| part.count().unwrap()).collect();
    assert_eq!(rows, [10_000, 10_000]);
    let none = reader.filter(col("id").lt(0)).streams(4).unwrap();
    assert_eq!(none.len(), 1, "an empty read is one empty part");
    assert_eq!(on_threads(none).unwrap().len(), 0);
}

#[test]
fn memory_and_threads_are_divided_and_progress_is_summed_up() {
    let file = write(&growing(50_000), WriteOptions::new().with_row_group_rows(5_000));
    let reader = Reader::new(file).unwrap().memory(64 << 20);
    let parts = reader.parts(4).unwrap();
    let memory: u64 = parts.iter().map(|part| part.read_options().limits.memory_bytes).sum();
    assert_eq!(memory, 64 << 20);
    on_threads(reader.streams(4).unwrap()).unwrap();
    assert_eq!(reader.progress().rows(), 50_000);
    assert_eq!(reader.progress().rows_total(), 50_000);
    let dataset = Dataset::new([reader.clone(), reader]);
    on_threads(dataset.streams(3).unwrap()).unwrap();
    assert_eq!((dataset.progress().rows(), dataset.progress().rows_total()), (100_000, 100_000));
}

#[test]
fn what_cannot_be_divided_is_refused() {
    fn is_send<T: Send + 'static>() {}
    is_send::<Batches>();
    is_send::<DatasetBatches>();
    is_send::<Dataset>();
    let reader = Reader::open(testdata("trips.parquet")).unwrap();
    let kind = |reader: &Reader, n| reader.parts(n).map(|_| ()).unwrap_err().kind();
    assert_eq!(kind(&reader, 0), ErrorKind::Usage);
    let filtered = reader.clone().filter(col("id").gt(10));
    assert_eq!(kind(&filtered.clone().limit(5), 2), ErrorKind::Usage);
    assert_eq!(kind(&filtered.clone().offset(5), 2), ErrorKind::Usage);
    assert_eq!(filtered.clone().limit(5).parts(1).unwrap()[0].count().unwrap(), 5);
    let dataset = Dataset::new([reader.clone(), filtered]).limit(3);
    assert_eq!(dataset.parts(2).unwrap_err().kind(), ErrorKind::Usage);
    let two = dataset.parts(1).unwrap();
    let rows: usize = two[0].batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 3);

    let none = Dataset::new(Vec::<Reader>::new());
    assert_eq!(none.schema().unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(none.parts(2).unwrap_err().kind(), ErrorKind::Usage);
    let other = reader.clone().project(["fare", "id"]).unwrap().file_name("other.parquet");
    let first = reader.project(["id", "fare"]).unwrap();
    let error = Dataset::new([first.clone(), other.clone()]).batches().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().starts_with("other.parquet: column \"fare\""), "{error}");
    let target = first.schema().unwrap();
    let one = Dataset::new([first, other]).target(target, MatchBy::Name).unwrap();
    assert_eq!(one.rows().unwrap(), 2_000);
}

#[test]
fn a_dataset_of_paths_keeps_no_file_open_and_notices_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3).map(|i| folder.path().join(format!("{i}.parquet"))).collect();
    let bytes = std::fs::read(testdata("trips.parquet")).unwrap();
    paths.iter().for_each(|path| std::fs::write(path, &bytes).unwrap());
    let dataset = Dataset::open(&paths).unwrap();
    let open = || {
        std::fs::read_dir("/proc/self/fd").map(|files| {
            let targets = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
            targets.filter(|target| target.starts_with(folder.path())).count()
        })
    };
    assert_eq!(open().unwrap_or(0), 0);
    assert_eq!(
        on_threads(dataset.streams(5).unwrap())
            .unwrap()
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>(),
        3_000
    );
    std::fs::write(&paths[1], [&bytes[..], b"PAR1"].concat()).unwrap();
    let mut batches = dataset.batches().unwrap();
    let error = loop {
        match batches.next_batch() {
            Ok(batch) => assert!(batch.is_some(), "the change was not noticed"),
            Err(e) => break e,
        }
    };
    assert!(error.to_string().contains("1.parquet: row group 0: the file was changed"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(batches.next_batch().unwrap().is_none(), "after an error there is no more");
}

#[cfg(feature = "async")]
#[test]
fn asynchronous_streams_give_the_same_parts() {
    use futures_util::TryStreamExt;
    use marquetry::AsyncReader;
    let file: Bytes = std::fs::read(testdata("trips.parquet")).unwrap().into();
    let blocking = Reader::new(file.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let reader = AsyncReader::open_async(file).await.unwrap();
        let schema = reader.schema().unwrap();
        let expected = columns(&schema, &read_with(blocking).unwrap());
        let tasks = reader.streams(3).unwrap();
        let tasks = tasks.into_iter().map(|part| tokio::spawn(part.try_collect::<Vec<_>>()));
        let mut found = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            found.extend(task.await.unwrap().unwrap());
        }
        assert_eq!(columns(&schema, &found), expected);
        let dataset = Dataset::new([reader.clone(), reader.limit(7)]).offset(990);
        let mut rows = 0;
        for stream in dataset.streams(3).unwrap() {
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        }
        assert_eq!(rows, 17);
    });
}
