//! Tests that the heap of an export, and of a writer, stays within its memory limit, for any number
//! of rows or columns. `MARQUETRY_EXPORT_BYTES` raises the amount.

use std::sync::Arc;

use marquetry::arrow_array::types::Int32Type;
use marquetry::arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int8Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray,
};
use marquetry::arrow_schema::DataType;
use marquetry::io::WriteSink;
use marquetry::variant::{VariantShape, VariantShredding};
use marquetry::{Export, RowGroupEncoder, WriteOptions, Writer};

use crate::alone;
use crate::support::heap;

const MEMORY: usize = 64 << 20;

const STREAMS: u64 = 4;

/// The kind of the rows.
#[derive(Clone, Copy, Debug)]
enum Rows {
    /// Numbers and texts that differ, and some that repeat.
    Mixed,
    /// A bit a row.
    Flags,
    /// A byte a row, the key of a long text.
    Dictionary,
    /// Lists of numbers, some empty, some null.
    Lists,
}

/// About 1 MiB as stored, or once decoded.
fn batch(kind: Rows, rng: &mut fastrand::Rng) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = match kind {
        Rows::Mixed => {
            let random = (0..25_000).map(|i| (i % 9 != 0).then(|| rng.i64(..)));
            let random = Int64Array::from_iter(random);
            let few = Float64Array::from_iter_values((0..25_000).map(|i| f64::from(i % 100)));
            let text = (0..25_000).map(|_| format!("text {:x}", rng.u64(..)));
            let text = StringArray::from_iter_values(text);
            vec![("random", Arc::new(random)), ("few", Arc::new(few)), ("text", Arc::new(text))]
        }
        Rows::Flags => {
            let flags = |rng: &mut fastrand::Rng| -> ArrayRef {
                Arc::new(BooleanArray::from_iter((0..1 << 20).map(|_| Some(rng.bool()))))
            };
            ["a", "b", "c", "d"].map(|name| (name, flags(rng))).to_vec()
        }
        Rows::Dictionary => {
            let keys = Int8Array::from_iter_values((0..20_000).map(|_| rng.i8(0..100)));
            let values = (0..100).map(|i| format!("{i} is a text of some length").repeat(3));
            let values = StringArray::from_iter_values(values);
            vec![("text", Arc::new(DictionaryArray::new(keys, Arc::new(values))))]
        }
        Rows::Lists => {
            let list = |_| {
                let len = rng.usize(0..12);
                (len < 11).then(|| (0..len).map(|_| Some(rng.i32(..))).collect::<Vec<_>>())
            };
            let lists = (0..30_000).map(list).collect::<Vec<_>>();
            let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
            vec![("list", Arc::new(lists))]
        }
    };
    RecordBatch::try_from_iter(columns).expect("a batch")
}

/// The peak heap of an export of `bytes` bytes.
fn peak(kind: Rows, threads: usize, bytes: u64, seed: u64) -> usize {
    let of_one = batch(kind, &mut fastrand::Rng::with_seed(0));
    let batches = bytes / STREAMS / of_one.get_array_memory_size() as u64 + 1;
    let folder = tempfile::tempdir().expect("a folder");
    let streams = (0..STREAMS).map(|stream| {
        let mut rng = fastrand::Rng::with_seed(seed + stream);
        (0..batches).map(move |_| Ok::<_, marquetry::Error>(batch(kind, &mut rng)))
    });
    let before = heap::start();
    let export = Export::to(folder.path(), of_one.schema()).expect("a folder");
    let export = export.file_bytes(40 << 20).threads(threads).memory(MEMORY as u64);
    let files = export.run(streams).expect("files");
    let peak = heap::peak() - before;
    let rows: u64 = files.iter().map(|file| file.report.rows).sum();
    let written: u64 = files.iter().map(|file| file.report.bytes).sum();
    println!(
        "{kind:?}, {threads} threads: {} bytes of batches into {} files of {written} bytes, peak {peak}",
        STREAMS * batches * of_one.get_array_memory_size() as u64,
        files.len()
    );
    assert_eq!(rows, STREAMS * batches * of_one.num_rows() as u64);
    peak
}

#[test]
fn an_export_stays_within_its_memory() {
    let _alone = alone();
    let bytes: u64 = std::env::var("MARQUETRY_EXPORT_BYTES")
        .map_or(320 << 20, |bytes| bytes.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut beyond = Vec::new();
    for (kind, bytes) in [
        (Rows::Mixed, bytes),
        (Rows::Flags, bytes / 20),
        (Rows::Dictionary, bytes / 20),
        (Rows::Lists, bytes / 2),
    ] {
        for threads in [1, 4] {
            let peak = peak(kind, threads, bytes, seed);
            if peak > MEMORY {
                beyond.push(format!("{kind:?}, {threads} threads: {peak} bytes"));
            }
        }
    }
    assert!(beyond.is_empty(), "beyond {MEMORY} bytes: {}", beyond.join("; "));
}

/// How the rows of a partitioned export come.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// In no order.
    Shuffled { values: i32 },
    /// Sorted: those of one batch have but a few.
    Sorted { values: i32 },
}

/// Batch `number` of `of` batches: mixed rows beside the column that they are partitioned by.
fn keyed_batch(keys: Keys, number: u64, of: u64, rng: &mut fastrand::Rng) -> RecordBatch {
    let rows = batch(Rows::Mixed, rng);
    let n = rows.num_rows();
    let key: Int32Array = match keys {
        Keys::Shuffled { values } => (0..n).map(|_| rng.i32(0..values)).collect(),
        Keys::Sorted { values } => {
            let first = i32::try_from(number * u64::from(values.unsigned_abs()) / of);
            let first = first.expect("one of the values");
            (0..n).map(|i| first + i32::from(i > n / 2)).collect()
        }
    };
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = names.zip(rows.columns().iter().cloned());
    RecordBatch::try_from_iter(columns.chain([("key", Arc::new(key) as ArrayRef)]))
        .expect("a batch")
}

/// The peak heap of a partitioned export beside the reports that it returns.
fn partitioned_peak(keys: Keys, open_files: usize, threads: usize, bytes: u64, seed: u64) -> usize {
    let of_one = keyed_batch(keys, 0, 1, &mut fastrand::Rng::with_seed(0));
    let batches = bytes / STREAMS / of_one.get_array_memory_size() as u64 + 1;
    let folder = tempfile::tempdir().expect("a folder");
    let streams = (0..STREAMS).map(|stream| {
        let mut rng = fastrand::Rng::with_seed(seed + stream);
        (0..batches)
            .map(move |i| Ok::<_, marquetry::Error>(keyed_batch(keys, i, batches, &mut rng)))
    });
    let before = heap::start();
    let export = Export::to(folder.path(), of_one.schema()).expect("a folder");
    let export = export.partition_by(["key"]).open_files(open_files).file_bytes(40 << 20);
    let files = export.threads(threads).memory(MEMORY as u64).run(streams).expect("files");
    let peak = heap::peak() - before;
    let reports = heap::now() - before;
    let rows: u64 = files.iter().map(|file| file.report.rows).sum();
    println!(
        "{keys:?}, {open_files} open files, {threads} threads: {} bytes of batches into {} files, \
         peak {peak}, of which reports {reports}",
        STREAMS * batches * of_one.get_array_memory_size() as u64,
        files.len()
    );
    assert_eq!(rows, STREAMS * batches * of_one.num_rows() as u64);
    peak.saturating_sub(reports)
}

#[test]
fn a_partitioned_export_stays_within_its_memory() {
    let _alone = alone();
    let bytes: u64 = std::env::var("MARQUETRY_EXPORT_BYTES")
        .map_or(80 << 20, |bytes| bytes.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut beyond = Vec::new();
    for (keys, open_files, bytes) in [
        (Keys::Shuffled { values: 60 }, 240, bytes),
        (Keys::Shuffled { values: 150 }, 600, bytes / 2),
        (Keys::Sorted { values: 300 }, 16, bytes),
        // More values than open files: each batch makes files of its own.
        (Keys::Shuffled { values: 100 }, 16, bytes / 8),
    ] {
        for threads in [1, 4] {
            let peak = partitioned_peak(keys, open_files, threads, bytes, seed);
            if peak > MEMORY {
                beyond.push(format!("{keys:?}, {threads} threads: {peak} bytes"));
            }
        }
    }
    assert!(beyond.is_empty(), "beyond {MEMORY} bytes: {}", beyond.join("; "));
}

/// An object store that forgets what it is given, after a while.
#[cfg(feature = "object_store")]
mod store {
    use std::fmt;
    use std::time::Duration;

    use futures_util::stream::BoxStream;
    use futures_util::{FutureExt, StreamExt};
    use object_store::path::Path;
    use object_store::*;

    #[derive(Debug)]
    pub(crate) struct Forgetful;

    #[derive(Debug)]
    struct ForgetfulUpload;

    const DONE: PutResult = PutResult { e_tag: None, version: None };

    fn nothing<T>() -> Result<T> {
        let (path, source) = (String::new(), "nothing is kept".into());
        Err(Error::NotFound { path, source })
    }

    impl fmt::Display for Forgetful {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Forgetful")
        }
    }

    #[async_trait::async_trait]
    impl MultipartUpload for ForgetfulUpload {
        fn put_part(&mut self, data: PutPayload) -> UploadPart {
            async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                drop(data);
                Ok(())
            }
            .boxed()
        }

        async fn complete(&mut self) -> Result<PutResult> {
            Ok(DONE)
        }

        async fn abort(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[async_trait::async_trait]
    impl ObjectStore for Forgetful {
        async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
            Ok(DONE)
        }

        async fn put_multipart_opts(
            &self,
            _: &Path,
            _: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            Ok(Box::new(ForgetfulUpload))
        }

        async fn get_opts(&self, _: &Path, _: GetOptions) -> Result<GetResult> {
            nothing()
        }

        fn delete_stream(
            &self,
            paths: BoxStream<'static, Result<Path>>,
        ) -> BoxStream<'static, Result<Path>> {
            paths
        }

        fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            futures_util::stream::empty().boxed()
        }

        async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
            nothing()
        }

        async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
            nothing()
        }
    }
}

#[cfg(feature = "object_store")]
#[test]
fn an_export_to_a_slow_store_stays_within_its_memory() {
    use marquetry::Compression;
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let mut rng = fastrand::Rng::with_seed(5);
    let mut batch = |of: i32| {
        let numbers = (0..4).map(|i| {
            let column = Int64Array::from_iter_values((0..25_000).map(|_| rng.i64(..)));
            (format!("n{i}"), Arc::new(column) as ArrayRef)
        });
        let key = Int32Array::from_iter_values((0..25_000).map(|i| i % of));
        let key = [("key".to_owned(), Arc::new(key) as ArrayRef)];
        RecordBatch::try_from_iter(numbers.chain(key)).expect("a batch")
    };
    let (one, three) = (batch(1), batch(3));
    for (rows, open_files, memory) in
        [(&one, 1, 32usize << 20), (&three, 3, 96 << 20), (&three, 16, 64 << 20)]
    {
        let before = heap::start();
        let store = Arc::new(store::Forgetful);
        let options = WriteOptions::new().with_compression(Compression::Uncompressed);
        let export = Export::to_store(store, "exported", rows.schema()).options(options);
        let export = export.partition_by(["key"]).open_files(open_files).file_bytes(1 << 30);
        // 100 MB that do not become less.
        let stream =
            futures_util::stream::iter((0..120).map(|_| Ok::<_, marquetry::Error>(rows.clone())));
        let export = export.memory(memory as u64).run_async([stream]);
        let files = runtime.block_on(export).expect("objects");
        let peak = heap::peak() - before;
        println!("{} objects of {open_files} at a time, peak {peak} of {memory}", files.len());
        assert!(peak <= memory, "{peak} bytes, beyond {memory}");
    }
}

/// 256 rows of `columns` columns: numbers that differ, and texts that partly repeat.
fn wide_batch(columns: usize, rng: &mut fastrand::Rng) -> RecordBatch {
    let column = |i: usize| -> (String, ArrayRef) {
        let array: ArrayRef = match i % 4 {
            0 => Arc::new(StringArray::from_iter_values(
                (0..256).map(|_| format!("text {}", rng.u32(0..5_000))),
            )),
            1 => Arc::new(Float64Array::from_iter_values((0..256).map(|_| rng.f64()))),
            _ => Arc::new(Int64Array::from_iter_values((0..256).map(|_| rng.i64(..)))),
        };
        (format!("column_{i}"), array)
    };
    let columns: Vec<_> = (0..columns).map(column).collect();
    RecordBatch::try_from_iter(columns).expect("a batch")
}

#[test]
fn a_table_of_1600_columns_stays_within_the_memory_of_its_writer() {
    let _alone = alone();
    let (columns, memory) = (1_600, 128usize << 20);
    for threads in [1, 2] {
        let mut rng = fastrand::Rng::with_seed(7);
        let schema = wide_batch(columns, &mut rng).schema();
        let before = heap::start();
        let options = WriteOptions::new().with_memory(memory as u64);
        let encoder = RowGroupEncoder::new(schema, options).expect("a schema");
        let encoder = encoder.with_threads(threads).expect("threads");
        let mut writer = Writer::over(WriteSink(std::io::sink()), encoder);
        let mut bytes = 0;
        for _ in 0..60 {
            let batch = wide_batch(columns, &mut rng);
            bytes += batch.get_array_memory_size();
            writer.write(&batch).expect("rows");
        }
        let report = writer.finish().expect("a file");
        let peak = heap::peak() - before;
        println!(
            "{columns} columns, {threads} threads: {bytes} bytes of batches, {} row groups, peak {peak}",
            report.row_groups()
        );
        assert!(report.row_groups() > 1, "more than the memory holds at a time");
        assert!(peak <= memory, "{threads} threads: {peak} bytes, beyond {memory}");
    }
}

#[test]
fn finished_row_groups_of_many_columns_take_little_memory() {
    let _alone = alone();
    let (columns, row_groups) = (1_000, 60);
    let mut rng = fastrand::Rng::with_seed(7);
    let batch = wide_batch(columns, &mut rng).slice(0, 16);
    let before = heap::start();
    let mut writer = Writer::to(std::io::sink(), batch.schema()).expect("a schema");
    let mut after_first = 0;
    for i in 0..row_groups {
        writer.write(&batch).expect("rows");
        writer.flush().expect("a row group");
        if i == 0 {
            after_first = heap::now();
        }
    }
    let chunks = columns * (row_groups - 1);
    let per_chunk = (heap::now() - after_first) / chunks;
    let held = writer.metadata_bytes() / (columns * row_groups);
    let before_end = heap::now();
    let at_end = heap::start();
    assert_eq!(at_end, before_end);
    let report = writer.finish().expect("a file");
    let (end, report_bytes) = ((heap::peak() - at_end) / chunks, heap::now() - before);
    println!(
        "a chunk of a finished row group takes {per_chunk} bytes, says {held}; {end} more at the \
         end; the report has {report_bytes} bytes"
    );
    assert!(per_chunk <= 400, "{per_chunk} bytes of memory for each chunk");
    assert!(per_chunk.abs_diff(held) <= 40, "{per_chunk} bytes, and {held} are stated");
    assert!(end <= 700, "{end} bytes more for each chunk at the end");
    let last = report.row_group(row_groups - 1).expect("a row group");
    assert_eq!((last.columns.len(), last.rows), (columns, 16));
    let all = report.metadata().expect("a footer").row_groups.len();
    assert_eq!((all, report.row_groups()), (row_groups, row_groups));
}

#[test]
fn long_values_that_rows_share_are_written_with_little_memory() {
    let _alone = alone();
    // One by one they take 2.5 GB.
    let entries: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(500_000)]));
    let keys = Int32Array::from(vec![0; 5000]);
    let texts: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, entries));
    let batch = RecordBatch::try_from_iter([("text", texts)]).expect("a batch");
    let mut file = Vec::new();
    let before = heap::start();
    let mut writer = Writer::new(WriteSink(&mut file), batch.schema(), WriteOptions::default())
        .expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a footer");
    let peak = heap::peak() - before;
    println!("{} MiB", peak >> 20);
    assert!(file.len() < 100_000, "{} bytes", file.len());
    assert!(peak <= MEMORY, "{} MiB", peak >> 20);
}

#[test]
fn variants_that_rows_share_are_shredded_within_the_memory() {
    let _alone = alone();
    // One by one they take 400 MB.
    let batch = crate::variants_of_one_string(8000, 50_000);
    let shape = VariantShape::scalar(DataType::Utf8).expect("a type of VARIANT");
    let options = WriteOptions::default().with_memory(MEMORY as u64);
    let options = options.with_shredding("v", VariantShredding::Shape(shape));
    let mut file = Vec::new();
    let before = heap::start();
    let mut writer = Writer::new(WriteSink(&mut file), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    let report = writer.finish().expect("a footer");
    let peak = heap::peak() - before;
    println!("{} MiB, {} row groups", peak >> 20, report.row_groups());
    assert_eq!(report.rows, 8000);
    assert!(peak <= MEMORY + (16 << 20), "{} MiB", peak >> 20);
}
