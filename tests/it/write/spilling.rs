//! Tests rows that go to a temporary file before they are encoded: the file is that of a writer
//! with enough memory, and nothing is left.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::{Int8Type, Int32Type, Int64Type};
use marquetry::arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    RunArray, StringArray,
};
use marquetry::arrow_schema::DataType;
use marquetry::io::{PathSink, TempFolder, WriteSink};
use marquetry::write::{SpillFile, SpillStore};
use marquetry::{
    Error, ErrorKind, Reader, Result, RowGroupEncoder, SortColumn, WriteOptions, Writer,
};

use crate::support::cells::columns;
use crate::support::generate::{case, every_case};

/// Temporary files in memory: their bytes stay for the test, and writing fails beyond a limit.
#[derive(Clone, Debug)]
struct Kept {
    files: Arc<Mutex<Vec<Vec<u8>>>>,
    open: Arc<AtomicUsize>,
    max_bytes: usize,
    /// Whether bytes come back as others.
    lies: bool,
}

impl Kept {
    fn new() -> Self {
        Self { files: Arc::default(), open: Arc::default(), max_bytes: usize::MAX, lies: false }
    }

    fn bytes(&self) -> Vec<u8> {
        self.files.lock().unwrap().concat()
    }
}

struct KeptFile {
    store: Kept,
    at: usize,
}

impl SpillStore for Kept {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        let mut files = self.files.lock().unwrap();
        files.push(Vec::new());
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(KeptFile { store: self.clone(), at: files.len() - 1 }))
    }
}

impl SpillFile for KeptFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut files = self.store.files.lock().unwrap();
        if files.iter().map(Vec::len).sum::<usize>() + bytes.len() > self.store.max_bytes {
            return Err(Error::io("a full disk", std::io::ErrorKind::StorageFull.into()));
        }
        files[self.at].extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let files = self.store.files.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let Some(bytes) = files[self.at].get(start..start + out.len()) else {
            let end = std::io::ErrorKind::UnexpectedEof;
            return Err(Error::io("reading behind the end", end.into()));
        };
        out.copy_from_slice(bytes);
        if self.store.lies && out.len() > 64 {
            let middle = out.len() / 2;
            out[middle] ^= 1;
        }
        Ok(())
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        self.store.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn written(options: WriteOptions, batches: &[RecordBatch], threads: usize) -> Result<Vec<u8>> {
    let encoder = RowGroupEncoder::new(batches[0].schema(), options)?.with_threads(threads)?;
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    Ok(writer.into_inner()?.1)
}

/// 500 rows of numbers, texts and lists, after `first` others.
fn batch(first: i64) -> RecordBatch {
    let rows = first..first + 500;
    let numbers: Int64Array = rows.clone().map(|i| (i % 7 != 0).then_some(i * 3)).collect();
    let texts: StringArray = rows.clone().map(|i| Some(format!("text {}", i % 90))).collect();
    let ids = Int64Array::from_iter_values(rows.clone());
    let lists = marquetry::arrow_array::ListArray::from_iter_primitive::<Int64Type, _, _>(
        rows.map(|i| (i % 5 != 0).then(|| (0..i % 4).map(Some).collect::<Vec<_>>())),
    );
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(ids)),
        ("number", Arc::new(numbers)),
        ("text", Arc::new(texts)),
        ("list", Arc::new(lists)),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, of)| (name, of, !matches!(name, "id" | "text"))),
    )
    .unwrap()
}

/// 20,000 rows of few columns.
fn batches() -> Vec<RecordBatch> {
    (0..40).map(|i| batch(i * 500)).collect()
}

/// 5,000 rows of 48 columns: a writer with 1 MB of memory spills each batch, and may hold all rows
/// of any leaf.
fn wide_batches() -> Vec<RecordBatch> {
    let wide = |batch: RecordBatch| {
        let schema = batch.schema();
        let columns = (0..12).flat_map(|i| {
            let fields = schema.fields().iter().zip(batch.columns());
            fields.map(move |(field, column)| {
                let name =
                    if i == 0 { field.name().clone() } else { format!("{}{i}", field.name()) };
                (name, column.clone(), field.is_nullable())
            })
        });
        RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap()
    };
    (0..10).map(|i| wide(batch(i * 500))).collect()
}

fn spilling(kept: &Kept) -> WriteOptions {
    WriteOptions::new().with_memory(1_000_000).with_spill(kept.clone())
}

#[test]
fn a_file_is_the_same_whether_its_rows_were_spilled_or_not() {
    let batches = wide_batches();
    let whole = written(WriteOptions::new(), &batches, 1).unwrap();
    assert_eq!(Reader::new(bytes::Bytes::from(whole.clone())).unwrap().metadata().row_groups(), 1);
    for (memory, threads) in [(1_000_000, 1), (2_000_000, 2), (6_000_000, 3)] {
        let kept = Kept::new();
        let options = WriteOptions::new().with_memory(memory).with_spill(kept.clone());
        let found = written(options.clone(), &batches, threads).unwrap();
        assert!(found == whole, "{memory} bytes of memory, {threads} threads");
        assert_eq!(kept.files.lock().unwrap().len(), 1);
        assert_eq!(kept.open.load(Ordering::Relaxed), 0);
        let few = written(options.with_row_group_rows(1_501), &batches, threads).unwrap();
        let expected = WriteOptions::new().with_row_group_rows(1_501);
        assert!(few == written(expected, &batches, 1).unwrap(), "{memory}, {threads}");
    }
}

/// 500 rows of texts, numbers and lists of texts that come as keys; some entries are null, or are
/// no row's.
fn keyed_batch(number: usize) -> RecordBatch {
    let rows = || number * 500..number * 500 + 500;
    let entries = (0..90).map(|i| (i % 11 != 0).then(|| format!("text {i} of {number}")));
    let entries: ArrayRef = Arc::new(StringArray::from_iter(entries));
    let keys: Int16Array = rows().map(|i| (i % 7 != 0).then_some((i % 60) as i16)).collect();
    let texts: ArrayRef = Arc::new(DictionaryArray::new(keys, entries));
    let ends = Int32Array::from_iter_values((1..=50).map(|run| run * 10));
    let numbers: Int64Array = (0..50).map(|run| (run % 9 != 0).then_some(run % 8)).collect();
    let runs = RunArray::<Int32Type>::try_new(&ends, &numbers).unwrap();
    let keys = Int8Array::from_iter_values(rows().map(|i| (i % 60) as i8));
    let elements: DictionaryArray<Int8Type> =
        DictionaryArray::new(keys, Arc::new(Int64Array::from_iter_values(1000..1100)));
    let offsets = (0..=500).map(|i| i / 2 * 2).collect::<Vec<i32>>();
    let item = DataType::Dictionary(DataType::Int8.into(), DataType::Int64.into());
    let item = Arc::new(marquetry::arrow_schema::Field::new_list_field(item, true));
    let lists = marquetry::arrow_array::ListArray::new(
        item,
        marquetry::arrow_buffer::OffsetBuffer::new(offsets.into()),
        Arc::new(elements),
        None,
    );
    let columns = (0..12).flat_map(|i| {
        [
            (format!("text {i}"), texts.clone(), true),
            (format!("run {i}"), Arc::new(runs.clone()) as ArrayRef, true),
            (format!("list {i}"), Arc::new(lists.clone()) as ArrayRef, true),
        ]
    });
    RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_file_of_keyed_values_is_the_same_whether_they_were_spilled_or_not() {
    let batches: Vec<_> = (0..20).map(keyed_batch).collect();
    // Values that come as keys are written as a dictionary of any size.
    let options = || WriteOptions::new().with_dictionary_bytes(1);
    let whole = written(options(), &batches, 1).unwrap();
    assert_eq!(Reader::new(bytes::Bytes::from(whole.clone())).unwrap().metadata().row_groups(), 1);
    for threads in [1, 2] {
        let kept = Kept::new();
        let options = options().with_memory(1_200_000).with_spill(kept.clone());
        assert!(written(options, &batches, threads).unwrap() == whole, "{threads} threads");
        assert_eq!(kept.files.lock().unwrap().len(), 1);
    }
    let plain = || options().with_dictionary(false);
    let table = |file: Vec<u8>| {
        let reader = Reader::new(bytes::Bytes::from(file)).unwrap();
        let schema = reader.schema().unwrap();
        let batches: Vec<_> = reader.batches().unwrap().collect::<Result<_, _>>().unwrap();
        (schema.clone(), columns(&schema, &batches))
    };
    let spilled = plain().with_memory(1_200_000).with_spill(Kept::new());
    let spilled = table(written(spilled, &batches, 1).unwrap());
    assert_eq!(spilled, table(written(plain(), &batches, 1).unwrap()));
    assert_eq!(spilled, table(whole));
}

#[test]
fn rows_of_any_type_come_back_from_a_temporary_file() {
    let mut spilled = AtomicUsize::new(0);
    every_case(60, |seed| {
        let case = case(seed);
        let rows: usize = case.batches.iter().map(RecordBatch::num_rows).sum();
        if rows == 0 {
            return;
        }
        let kept = Kept::new();
        let memory = 1 << fastrand::Rng::with_seed(seed).u32(10..18);
        let options = case.options.clone().with_memory(memory).with_spill(kept.clone());
        let file = written(options, &case.batches, 1 + usize::from(seed % 2 == 0));
        let file = file.unwrap_or_else(|e| panic!("{e}: {}", case.name));
        let table = |file: bytes::Bytes| {
            let reader = Reader::new(file).unwrap();
            let schema = reader.schema().unwrap();
            let batches: Vec<_> = reader.batches().unwrap().collect::<Result<_, _>>().unwrap();
            (schema.clone(), columns(&schema, &batches))
        };
        assert_eq!(table(file.into()), table(case.file.clone()), "{}", case.name);
        assert_eq!(kept.open.load(Ordering::Relaxed), 0);
        spilled.fetch_add(kept.files.lock().unwrap().len(), Ordering::Relaxed);
    });
    assert!(*spilled.get_mut() > 20, "{spilled:?} temporary files");
}

#[test]
fn a_row_group_ends_before_one_leaf_takes_too_much_memory() {
    let kept = Kept::new();
    let options = WriteOptions::new().with_memory(200_000).with_spill(kept);
    let file = written(options, &batches(), 1).unwrap();
    let reader = Reader::new(bytes::Bytes::from(file)).unwrap();
    let row_groups = reader.metadata().row_groups();
    assert!((5..40).contains(&row_groups), "{row_groups} row groups");
    assert_eq!(reader.rows().unwrap(), 20_000);
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let batches = wide_batches();
    let mut failed = 0;
    for max_bytes in [0, 1_000, 50_000, 100_000] {
        let kept = Kept { max_bytes, ..Kept::new() };
        let options = spilling(&kept);
        let sink = PathSink::create(&path).unwrap();
        let mut writer = Writer::new(sink, batches[0].schema(), options).unwrap();
        let done = batches.iter().try_for_each(|batch| writer.write(batch));
        let done = done.and_then(|()| writer.finish().map(drop));
        if let Err(error) = done {
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            failed += 1;
        }
        assert_eq!(kept.open.load(Ordering::Relaxed), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{max_bytes} bytes");
    }
    assert_eq!(failed, 4);
}

#[test]
fn a_writer_that_is_dropped_or_fails_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        WriteOptions::new().with_memory(600_000).with_spill(TempFolder::new(folder.path()));
    let mut writer =
        Writer::new(WriteSink(Vec::new()), batch(0).schema(), options.clone()).unwrap();
    batches().iter().for_each(|batch| writer.write(batch).unwrap());
    if cfg!(unix) {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a name while it is open");
    }
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let file = written(options, &batches(), 2).unwrap();
    assert_eq!(Reader::new(bytes::Bytes::from(file)).unwrap().rows().unwrap(), 20_000);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = TempFolder::new(folder.path().join("missing"));
    let options = WriteOptions::new().with_memory(600_000).with_spill(nowhere);
    assert_eq!(written(options, &batches(), 1).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_temporary_file_that_was_changed_is_noticed() {
    let kept = Kept { lies: true, ..Kept::new() };
    assert!(written(spilling(&kept), &wide_batches(), 1).is_err());
}

#[test]
fn an_order_is_checked_from_one_slice_of_rows_to_the_next() {
    let order = || spilling(&Kept::new()).with_sort_order([SortColumn::ascending("id")]);
    written(order(), &wide_batches(), 1).expect("sorted rows");
    for at in 0..9 {
        let mut batches = wide_batches();
        batches.swap(at, at + 1);
        let error = written(order(), &batches, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        let row = (at + 1) * 500;
        assert!(error.to_string().contains(&format!("row {row} ")), "{at}: {error}");
    }
}

#[test]
#[cfg(feature = "encryption")]
fn what_is_spilled_of_an_encrypted_file_is_encrypted() {
    use marquetry::crypt::{Decryption, Encryption, Key};

    let secret = "a text that nobody should find on a disk";
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..2_000).map(|i| format!("{secret} {}", i * 7919 % 1000)),
    ));
    let rows = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    let batches = vec![rows; 10];
    let key = Key::new(b"0123456789abcdef").unwrap();
    let find = |bytes: &[u8]| bytes.windows(secret.len()).any(|at| at == secret.as_bytes());
    for encrypted in [false, true] {
        let kept = Kept::new();
        let options = WriteOptions::new().with_memory(3_000_000).with_spill(kept.clone());
        let options = match encrypted {
            true => options.with_encryption(Encryption::new(key.clone())),
            false => options,
        };
        let file = written(options, &batches, 2).unwrap();
        assert!(kept.bytes().len() > 10_000, "{} bytes are spilled", kept.bytes().len());
        assert_eq!(find(&kept.bytes()), !encrypted);
        let reader = match encrypted {
            true => {
                let keys = Decryption::new().with_footer_key(key.clone());
                let limits = marquetry::Limits::default();
                Reader::with_keys(bytes::Bytes::from(file), limits, &keys)
            }
            false => Reader::new(bytes::Bytes::from(file)),
        };
        assert_eq!(reader.unwrap().rows().unwrap(), 20_000);
        let lying = Kept { lies: true, ..Kept::new() };
        let options = WriteOptions::new().with_memory(3_000_000).with_spill(lying);
        let options = options.with_encryption(Encryption::new(key.clone()));
        assert_eq!(written(options, &batches, 1).unwrap_err().kind(), ErrorKind::Crypto);
    }
}

#[test]
fn dictionary_and_run_end_arrays_are_spilled_as_their_values() {
    use marquetry::arrow_array::DictionaryArray;
    use marquetry::arrow_array::types::Int32Type;

    let texts: DictionaryArray<Int32Type> =
        (0..3_000).map(|i| (i % 11 != 0).then_some(["a", "b", "a longer text"][i % 3])).collect();
    let column: ArrayRef = Arc::new(texts);
    let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
    let kept = Kept::new();
    let options = WriteOptions::new().with_memory(400_000).with_spill(kept.clone());
    let file = written(options, &vec![batch.clone(); 10], 1).unwrap();
    assert!(!kept.bytes().is_empty());
    let reader = Reader::new(bytes::Bytes::from(file)).unwrap();
    let found: Vec<_> = reader.batches().unwrap().collect::<Result<_, _>>().unwrap();
    let schema = reader.schema().unwrap();
    assert!(matches!(schema.field(0).data_type(), DataType::Dictionary(..)));
    assert_eq!(columns(&schema, &found), columns(&batch.schema(), &vec![batch; 10]));
    assert_eq!(found[0].column(0).as_dictionary::<Int32Type>().keys().len(), found[0].num_rows());
}
