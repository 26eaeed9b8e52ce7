//! Tests that the rows that pass a filter are those of a full read for which a naive twin is true,
//! whatever the file, the predicate, the driver and the limits.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Schema};
use marquetry::io::{Outcome, Source, WriteSink};
use marquetry::read::{Latency, PageIndexUse, VirtualColumn};
use marquetry::{
    BloomOptions, ErrorKind, Predicate, Reader, Result, RowSelection, WriteOptions, Writer, col,
};

use crate::support::cells::{Cell, columns};
use crate::support::generate::{case, every_case};
use crate::support::predicates::{comparable, random};
use crate::support::read_with;

#[test]
fn filtered_rows_are_those_of_a_full_read() {
    every_case(1500, |seed| {
        let case = case(seed);
        let rng = &mut Rng::with_seed(seed);
        let reader = Reader::new(case.file.clone()).expect("a file").threads(1);
        let all = columns(&case.schema, &read_with(reader.clone()).expect("rows"));
        let n = usize::try_from(reader.file_rows().expect("a count")).expect("few rows");
        let targets = comparable(&case.schema);
        if targets.is_empty() {
            return;
        }
        let (predicate, twin) = random(rng, &targets, &all, 3);
        let name = format!("{predicate}: {}", case.name);
        let mut wanted: Vec<usize> =
            (0..n).filter(|row| twin.evaluate(&all, *row) == Some(true)).collect();
        let max = [5, 50, 500][rng.usize(0..3)];
        // From far away, what the filter needs is fetched first.
        let reader =
            if rng.bool() { Reader::new(Far::new(case.file)).expect("a file") } else { reader };
        let mut reader = reader
            .filter(predicate)
            .virtual_column(VirtualColumn::RowNumber { name: "number".into() })
            .batch_rows(rng.usize(1..=max))
            .threads(rng.usize(1..=2));
        let mut options = reader.read_options().clone();
        options.page_index =
            [PageIndexUse::Always, PageIndexUse::Auto, PageIndexUse::Never][rng.usize(0..3)];
        reader = reader.options(options);
        if rng.u8(0..4) == 0 {
            let flags: Vec<bool> = (0..n).map(|_| rng.bool()).collect();
            wanted.retain(|row| flags[*row]);
            reader = reader.select(RowSelection::from_bits(flags.into())).expect("all rows");
        }
        if rng.u8(0..4) == 0 {
            let (offset, limit) = (rng.usize(0..=n / 4), rng.usize(0..=n));
            wanted = wanted.into_iter().skip(offset).take(limit).collect();
            reader = reader.offset(offset as u64).limit(limit as u64);
        }
        assert_eq!(reader.count().expect("a count"), wanted.len() as u64, "{name}");
        let found = read_with(reader).unwrap_or_else(|e| panic!("{e}: {name}"));
        let numbers: Vec<usize> = found
            .iter()
            .flat_map(|batch| {
                let numbers = batch.column(batch.num_columns() - 1);
                numbers.as_primitive::<Int64Type>().values().to_vec()
            })
            .map(|number| number as usize)
            .collect();
        assert_eq!(numbers, wanted, "{name}");
        for (i, (found, all)) in columns(&case.schema, &found).iter().zip(&all).enumerate() {
            let expected: Vec<Cell> = wanted.iter().map(|row| all[*row].clone()).collect();
            assert!(*found == expected, "column {i}: {name}");
        }
    });
}

/// A source that is neither memory nor a local file.
struct Far {
    file: Bytes,
    read: Arc<Mutex<Vec<Range<u64>>>>,
}

impl Far {
    fn new(file: Bytes) -> Self {
        Self { file, read: Arc::default() }
    }
}

impl Source for Far {
    fn len(&self) -> Result<u64> {
        Source::len(&self.file)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.read.lock().expect("a lock").push(range.clone());
        self.file.read(range)
    }

    fn latency(&self) -> Latency {
        // Nothing is read for the sake of fewer requests.
        Latency::new(Duration::ZERO, Latency::STORE.bytes_per_second)
    }
}

/// 40,000 sorted keys in pages of 500 rows, four row groups; a word that is looked up by a bloom
/// filter; a wide column.
pub fn table() -> bytes::Bytes {
    let n = 40_000;
    let keys = Int64Array::from_iter_values(0..n);
    let words = StringArray::from_iter_values((0..n).map(|i| format!("word {}", i * 7919 % n)));
    let mut rng = Rng::with_seed(1);
    let texts = StringArray::from_iter_values((0..n).map(|_| format!("{:032x}", rng.u128(..))));
    let batch = RecordBatch::try_from_iter([
        ("key", Arc::new(keys) as ArrayRef),
        ("word", Arc::new(words)),
        ("text", Arc::new(texts)),
    ])
    .expect("columns of one length");
    let options = WriteOptions::new()
        .with_page_rows(500)
        .with_row_group_rows(10_000)
        .with_column("word", |column| column.with_bloom(BloomOptions::default()));
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

#[test]
fn what_cannot_match_is_not_fetched() {
    let reader = Reader::new(table()).expect("a file");
    let keys = reader.clone().filter(col("key").between(12_100, 12_200));
    let plan = keys.explain().expect("a plan");
    let outcomes: Vec<Outcome> = plan.row_groups.iter().map(|group| group.outcome).collect();
    let pruned = Outcome::ByStatistics;
    assert_eq!(outcomes, [pruned, Outcome::Evaluated, pruned, pruned]);
    let read = &plan.row_groups[1];
    assert_eq!((read.rows_left, read.pages, read.pages_pruned), (500, 20, 19));
    assert!(read.fetch_bytes * 10 < read.chunk_bytes, "{plan}");
    let found = read_with(keys.clone()).expect("rows");
    assert_eq!(found.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [101]);
    assert_eq!(keys.progress().bytes_fetched(), plan.bytes());
    // Every row group has words on both sides of it.
    let word = reader.filter(col("word").eq("word 1234 and no more"));
    let plan = word.explain().expect("a plan");
    assert!(plan.row_groups.iter().all(|group| group.outcome == Outcome::ByBloomFilter), "{plan}");
    assert_eq!(word.count().expect("a count"), 0);
    // Rows that surely pass are counted without their pages.
    let proven = Reader::new(table()).expect("a file");
    let proven = proven.filter(col("key").gt_eq(10_000).and(col("word").is_not_null()));
    assert_eq!(proven.count().expect("a count"), 30_000);
    assert_eq!(proven.progress().bytes_fetched(), 0);
}

#[test]
fn of_columns_that_the_filter_does_not_need_only_pages_that_pass_are_fetched() {
    // No index shows how a string ends.
    let predicate = col("word").like("%word 12345");
    let expected = read_with(Reader::new(table()).expect("a file").filter(predicate.clone()));
    let expected = expected.expect("rows");
    assert_eq!(expected.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    for threads in [1, 2] {
        let source = Far::new(table());
        let read = source.read.clone();
        let reader = Reader::new(source).expect("a file").threads(threads);
        let text = reader.metadata().schema().leaves_len() - 1;
        let places: Vec<Range<u64>> = (0..4)
            .map(|row_group| {
                let chunk = reader.metadata().column_chunk(row_group, text).expect("a chunk");
                let meta = chunk.meta_data.expect("metadata");
                let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as u64;
                start..start + meta.total_compressed_size as u64
            })
            .collect();
        let reader = reader.filter(predicate.clone());
        assert_eq!(read_with(reader.clone()).expect("rows"), expected);
        let within = |range: &Range<u64>| -> u64 {
            let part = |place: &Range<u64>| {
                range.end.min(place.end).saturating_sub(range.start.max(place.start))
            };
            places.iter().map(part).sum()
        };
        let read: u64 = read.lock().expect("a lock").iter().map(within).sum();
        let all: u64 = places.iter().map(|place| place.end - place.start).sum();
        // One page of eighty, and the bytes before the pages.
        assert!(read > 0 && read < all / 20, "{read} of {all}, {threads} threads");
    }
}

#[test]
fn what_does_not_fit_is_said_before_anything_is_read() {
    let reader = Reader::new(table()).expect("a file");
    for text in ["nothing = 1", "key = 'a'", "key = '1.5'", "text > 3", "any(key) = 1"] {
        let predicate = Predicate::parse(text).expect("a predicate");
        let error = reader.clone().filter(predicate).batches().expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
    }
}

#[test]
fn a_typo_in_a_filter_is_said_at_once_with_the_names_that_are_near() {
    let path = crate::support::testdata("nested.parquet");
    let reader = Reader::open(path).expect("a file");
    for (text, near) in [
        ("strukt.x is null", None),
        ("struct.xx is null", Some("struct.x\"?")),
        ("structt is null", Some("struct")),
    ] {
        let predicate = Predicate::parse(text).expect("a predicate");
        let error = reader.clone().try_filter(predicate.clone()).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains("there is no field"), "{error}");
        if let Some(near) = near {
            assert!(error.to_string().contains(&format!("did you mean \"{near}")), "{error}");
        }
        // Planning the read returns the same error.
        let later = reader.clone().filter(predicate).schema().expect_err(text);
        assert_eq!(later.to_string(), error.to_string());
    }
    // A column that only the target has is one where the target is known.
    let zz = marquetry::arrow_schema::Field::new("zz", DataType::Int32, true);
    let target = Arc::new(Schema::new(vec![zz]));
    let wanted = col("zz").is_null();
    assert!(reader.clone().try_filter(wanted.clone()).is_err());
    let reader = reader.target(target, marquetry::schema::MatchBy::Name).expect("reachable");
    let rows = reader.file_rows().expect("rows");
    assert_eq!(reader.try_filter(wanted).expect("a filter").count().expect("rows"), rows);
}
