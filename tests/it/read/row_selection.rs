//! Tests that selected rows are those rows of the whole file, however they are selected, on any
//! number of threads.

use std::sync::{Arc, OnceLock};

use fastrand::Rng;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{Field, Schema};
use marquetry::format::PageLocation;
use marquetry::io::{Source, WriteSink};
use marquetry::read::{PageIndexUse, VirtualColumn};
use marquetry::{
    Compression, ErrorKind, PageVersion, Reader, Result, RowSelection, WriteOptions, Writer,
};

use crate::support::cells::{Cell, columns};
use crate::support::generate::{case, every_case};
use crate::support::{read_with, with_index};

/// Flags in stretches of all lengths.
pub fn flags(rng: &mut Rng, len: usize) -> Vec<bool> {
    let max = [1, 2, 20, 200][rng.usize(0..4)];
    let often = rng.u8(1..10);
    let mut flags = Vec::new();
    while flags.len() < len {
        let (flag, n) = (rng.u8(0..10) < often, rng.usize(1..=max));
        flags.extend(std::iter::repeat_n(flag, n.min(len - flags.len())));
    }
    flags
}

/// Two threads, whatever the machine has.
fn pool() -> Arc<rayon::ThreadPool> {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let build = || rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    POOL.get_or_init(|| Arc::new(build())).clone()
}

pub fn with_threads(rng: &mut Rng, reader: Reader) -> Reader {
    if rng.bool() { reader.threads(1) } else { reader.pool(pool()) }
}

fn with_index_use(rng: &mut Rng, reader: Reader) -> Reader {
    let mut options = reader.read_options().clone();
    options.page_index =
        [PageIndexUse::Always, PageIndexUse::Always, PageIndexUse::Never][rng.usize(0..3)];
    reader.options(options)
}

/// The rows of these numbers.
pub fn only(all: &[Vec<Cell>], rows: &[usize]) -> Vec<Vec<Cell>> {
    all.iter().map(|column| rows.iter().map(|&i| column[i].clone()).collect()).collect()
}

#[test]
fn selected_rows_are_those_of_a_full_read() {
    every_case(3000, |seed| {
        let case = case(seed);
        let rng = &mut Rng::with_seed(seed);
        let reader = Reader::new(case.file.clone()).expect("a file").threads(1);
        let all = columns(&case.schema, &read_with(reader.clone()).expect("rows"));
        let n = usize::try_from(reader.file_rows().expect("a count")).expect("few rows");
        let flags = flags(rng, n);
        let max = [5, 50, 500][rng.usize(0..3)];
        let selection = RowSelection::from_bits(flags.iter().copied().collect());
        let mut wanted: Vec<usize> = (0..n).filter(|&i| flags[i]).collect();
        let mut reader = reader
            .select(selection)
            .expect("of as many rows")
            .virtual_column(VirtualColumn::RowNumber { name: "number".into() })
            .batch_rows(rng.usize(1..=max));
        if rng.u8(0..4) == 0 {
            let (offset, limit) = (rng.usize(0..=n), rng.usize(0..=n));
            wanted = wanted.into_iter().skip(offset).take(limit).collect();
            reader = reader.offset(offset as u64).limit(limit as u64);
        }
        let reader = with_threads(rng, reader);
        let reader = with_index_use(rng, reader);
        assert_eq!(reader.rows().expect("a count"), wanted.len() as u64, "{}", case.name);
        let found = read_with(reader.clone()).unwrap_or_else(|e| panic!("{e}: {}", case.name));
        assert_eq!(reader.progress().indexes_ignored(), 0, "{}", case.name);
        let numbers: Vec<usize> = found
            .iter()
            .flat_map(|batch| {
                batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>().values().to_vec()
            })
            .map(|number| number as usize)
            .collect();
        assert_eq!(numbers, wanted, "{}", case.name);
        let found = columns(&case.schema, &found);
        let expected = only(&all, &wanted);
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let differ = found.iter().zip(expected).position(|(a, b)| a != b);
            assert_eq!(differ, None, "row, of those selected, of column {i}: {}", case.name);
            assert_eq!(found.len(), expected.len());
        }
    });
}

/// Runs of selected rows, so long that they are decoded whole, and the rows between.
#[test]
fn almost_all_rows_are_those_of_a_full_read() {
    every_case(150, |seed| {
        let case = case(seed);
        let rng = &mut Rng::with_seed(seed);
        let few = arrow_select::concat::concat_batches(&case.schema, &case.batches).expect("rows");
        if few.num_rows() == 0 {
            return;
        }
        let n = rng.usize(600..5_000);
        let rows = UInt64Array::from_iter_values((0..n).map(|_| rng.u64(0..few.num_rows() as u64)));
        let rows = arrow_select::take::take_record_batch(&few, &rows).expect("more rows");
        let file = write(&rows, case.options.clone().with_page_rows(rng.usize(300..4_000)));
        let reader = Reader::new(file).expect("a file").threads(1);
        let all = columns(&case.schema, &read_with(reader.clone()).expect("rows"));
        let one_in = [150, 400, 1_500][rng.usize(0..3)];
        let flags: Vec<bool> = (0..n).map(|_| rng.usize(0..one_in) > 0).collect();
        let wanted: Vec<usize> = (0..n).filter(|&i| flags[i]).collect();
        let reader = reader.select(RowSelection::from_bits(flags.into())).expect("of as many rows");
        let reader = reader.batch_rows(rng.usize(300..=5_000));
        let reader = with_threads(rng, reader);
        let reader = with_index_use(rng, reader);
        let found = read_with(reader).unwrap_or_else(|e| panic!("{e}: {}", case.name));
        assert!(columns(&case.schema, &found) == only(&all, &wanted), "{}", case.name);
    });
}

#[test]
fn rows_are_taken_in_any_order() {
    every_case(1000, |seed| {
        let case = case(seed);
        let rng = &mut Rng::with_seed(seed);
        let reader = Reader::new(case.file.clone()).expect("a file").threads(1);
        let all = columns(&case.schema, &read_with(reader.clone()).expect("rows"));
        let n = usize::try_from(reader.file_rows().expect("a count")).expect("few rows");
        let m = if n == 0 { 0 } else { rng.usize(0..40) };
        let wanted: Vec<usize> = (0..m).map(|_| rng.usize(0..n)).collect();
        let numbers: Vec<u64> = wanted.iter().map(|&row| row as u64).collect();
        // Other options of the reader are ignored.
        let reader = with_threads(rng, reader).offset(3).limit(1);
        let reader = with_index_use(rng, reader);
        let found = reader.take(&numbers).unwrap_or_else(|e| panic!("{e}: {}", case.name));
        assert_eq!(columns(&case.schema, &[found]), only(&all, &wanted), "{}", case.name);
        assert_eq!(reader.take(&[n as u64]).expect_err("no row").kind(), ErrorKind::Usage);
    });
}

/// Two threads that share a column chunk read what one reads.
#[test]
fn parts_of_chunks_are_the_chunk() {
    for seed in 0..60 {
        let rng = &mut Rng::with_seed(seed);
        let file = large(rng);
        let reader = Reader::new(file).expect("a file").batch_rows(rng.usize(1000..20_000));
        let one = read_with(reader.clone().threads(1)).expect("rows");
        let two = read_with(reader.pool(pool())).unwrap_or_else(|e| panic!("{e}: seed {seed}"));
        assert_eq!(one, two, "seed {seed}");
    }
}

/// One row group of 40,000 rows in pages of some hundred: numbers with and without nulls, texts,
/// lists.
fn large(rng: &mut Rng) -> bytes::Bytes {
    let n = 40_000;
    let numbers = Int64Array::from_iter_values((0..n).map(|_| rng.i64(..)));
    let some = Int32Array::from_iter((0..n).map(|i| (i % 7 != 0).then(|| rng.i32(0..50))));
    let texts = StringArray::from_iter_values((0..n).map(|_| format!("text {}", rng.u32(..))));
    let mut lists = builder::ListBuilder::new(builder::Int64Builder::new());
    for _ in 0..n {
        for _ in 0..rng.usize(0..4) {
            lists.values().append_option(rng.bool().then(|| rng.i64(..)));
        }
        lists.append(rng.u8(0..9) > 0);
    }
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("numbers", Arc::new(numbers) as ArrayRef, false),
        ("some", Arc::new(some), true),
        ("texts", Arc::new(texts), false),
        ("lists", Arc::new(lists.finish()), true),
    ])
    .expect("a batch");
    let batch = if rng.bool() { batch } else { batch.project(&[rng.usize(0..4)]).expect("one") };
    let options = WriteOptions::new()
        .with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)])
        .with_dictionary(rng.bool())
        .with_page_rows(rng.usize(100..3000))
        .with_compression([Compression::Uncompressed, Compression::Snappy][rng.usize(0..2)]);
    write(&batch, options)
}

pub fn write(batch: &RecordBatch, options: WriteOptions) -> bytes::Bytes {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    let (_, file) = writer.into_inner().expect("a file");
    file.into()
}

/// A source that counts.
pub struct Counted {
    bytes: bytes::Bytes,
    read: std::sync::Mutex<Vec<std::ops::Range<u64>>>,
}

impl Counted {
    pub fn new(bytes: bytes::Bytes) -> Arc<Self> {
        Arc::new(Self { bytes, read: Default::default() })
    }

    /// The ranges that were read since this was asked last.
    pub fn taken(&self) -> Vec<std::ops::Range<u64>> {
        std::mem::take(&mut self.read.lock().expect("a lock"))
    }
}

impl Source for Counted {
    fn len(&self) -> Result<u64> {
        Source::len(&self.bytes)
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<bytes::Bytes> {
        self.read.lock().expect("a lock").push(range.clone());
        self.bytes.read(range)
    }
}

#[test]
fn pages_without_a_selected_row_are_not_fetched() {
    let n = 1_000_000i64;
    let rng = &mut Rng::with_seed(1);
    let numbers = Arc::new(Int64Array::from_iter_values((0..n).map(|_| rng.i64(..))));
    let others = Arc::new(Int64Array::from_iter_values((0..n).map(|_| rng.i64(..))));
    let columns: [(&str, ArrayRef); 2] = [("numbers", numbers.clone()), ("others", others)];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let options = WriteOptions::new()
        .with_dictionary(false)
        .with_page_rows(10_000)
        .with_compression(Compression::Uncompressed);
    let bytes = write(&batch, options);
    let pages_of_numbers = Reader::new(bytes.clone()).expect("a file");
    let index = pages_of_numbers.page_index(0, 0).expect("an index").offset_index.expect("one");
    let len = bytes.len() as u64;
    let source = Counted::new(bytes);
    let reader = Reader::new(source.clone()).expect("a file").threads(1);
    source.taken();
    let rows: Vec<u64> = vec![n as u64 - 1, 5, 500_000, 7];
    let found = reader.project(["numbers"]).expect("a column").take(&rows).expect("rows");
    let expected: Vec<i64> = rows.iter().map(|&row| numbers.value(row as usize)).collect();
    assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), &expected[..]);
    let read = source.taken();
    let bytes: u64 = read.iter().map(|range| range.end - range.start).sum();
    let of_pages: u64 = [0usize, 50, 99]
        .iter()
        .map(|&page| {
            u64::try_from(index.page_locations[page].compressed_page_size).expect("a size")
        })
        .sum();
    assert_eq!(read.len(), 4, "an index and three pages: {read:?}");
    assert!(bytes < of_pages * 12 / 10 && of_pages < len / 20, "{bytes} of {of_pages}");
}

/// Changes a number of one page, or the pages themselves.
pub fn lie(rng: &mut Rng, pages: &mut Vec<PageLocation>) {
    let i = rng.usize(0..pages.len());
    let by = [1, -1, 7, -7, 100, i64::MAX, i64::MIN, -1_000_000][rng.usize(0..8)];
    let page = &mut pages[i];
    match rng.u8(0..8) {
        0 => page.offset = page.offset.wrapping_add(by),
        1 => page.compressed_page_size = page.compressed_page_size.wrapping_add(by as i32),
        2 | 3 => page.first_row_index = page.first_row_index.wrapping_add(by),
        4 => drop(pages.remove(i)),
        5 => {
            let again = *page;
            pages.insert(i, again);
        }
        6 => {
            let j = rng.usize(0..pages.len());
            pages.swap(i, j);
        }
        _ => {
            // Two pages as one.
            if i + 1 < pages.len() {
                let next = pages.remove(i + 1);
                pages[i].compressed_page_size += next.compressed_page_size;
            }
        }
    }
}

#[test]
fn an_index_that_lies_is_put_aside() {
    let mut ignored = 0;
    let n = every_case_once(2000, |seed| {
        let rng = &mut Rng::with_seed(seed);
        let file = {
            let batch = one_column(rng);
            let options = WriteOptions::new()
                .with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)])
                .with_page_rows(rng.usize(1..60));
            write(&batch, options)
        };
        let reader = Reader::new(file.clone()).expect("a file").threads(1);
        let all = read_with(reader.clone()).expect("rows");
        let schema = reader.schema().expect("a schema");
        let all = columns(&schema, &all);
        let index = reader.page_index(0, 0).expect("an index").offset_index.expect("one");
        let mut pages = index.page_locations;
        lie(rng, &mut pages);
        let file = with_index(&file, None, pages);
        let rows = all[0].len();
        let flags = flags(rng, rows);
        let wanted: Vec<usize> = (0..rows).filter(|&i| flags[i]).collect();
        let selection = RowSelection::from_bits(flags.iter().copied().collect());
        let reader = Reader::new(file).expect("a file").select(selection).expect("of all rows");
        let mut options = reader.read_options().clone();
        options.page_index = PageIndexUse::Always;
        let reader = reader.options(options).batch_rows(rng.usize(1..100));
        let reader = with_threads(rng, reader);
        let found = read_with(reader.clone()).unwrap_or_else(|e| panic!("{e}: seed {seed}"));
        assert_eq!(columns(&schema, &found), only(&all, &wanted), "seed {seed}");
        ignored += reader.progress().indexes_ignored();
    });
    assert!(ignored > n / 2, "{ignored} indexes put aside, of {n}");
}

fn every_case_once(n: u64, mut check: impl FnMut(u64)) -> u64 {
    (0..n).for_each(&mut check);
    n
}

/// Some hundred rows of one column: numbers, texts, or lists.
pub fn one_column(rng: &mut Rng) -> RecordBatch {
    let n = rng.i64(2..400);
    let column: ArrayRef = match rng.u8(0..3) {
        0 => Arc::new(Int64Array::from_iter((0..n).map(|i| rng.bool().then_some(i)))),
        1 => Arc::new(StringArray::from_iter_values((0..n).map(|i| (i % 40).to_string()))),
        _ => {
            let mut lists = builder::ListBuilder::new(builder::Int64Builder::new());
            for i in 0..n {
                (0..rng.i64(0..4)).for_each(|j| lists.values().append_value(4 * i + j));
                lists.append(rng.u8(0..9) > 0);
            }
            Arc::new(lists.finish())
        }
    };
    let field = Field::new("v", column.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).expect("a batch")
}

#[test]
fn a_selection_must_speak_of_all_rows() {
    let rng = &mut Rng::with_seed(2);
    let file = write(&one_column(rng), WriteOptions::new());
    let reader = Reader::new(file).expect("a file");
    let rows = reader.file_rows().expect("a count");
    let of = |n| reader.clone().select(RowSelection::all(n)).map(drop);
    assert!(of(rows).is_ok());
    for n in [0, rows - 1, rows + 1, u64::MAX] {
        assert_eq!(of(n).expect_err("of other rows").kind(), ErrorKind::Usage);
    }
    let mut options = reader.read_options().clone();
    options.selection = Some(RowSelection::all(rows + 1));
    let found = reader.options(options).batches().map(drop);
    assert_eq!(found.expect_err("of other rows").kind(), ErrorKind::Usage);
}
