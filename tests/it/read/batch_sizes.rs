//! Tests that batches end where they are large enough, whatever the metadata say of the width of
//! rows.

use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::{Array, ArrayRef, Int16Array, RecordBatch};
use marquetry::arrow_schema::DataType;
use marquetry::format::*;
use marquetry::io::WriteSink;
use marquetry::read::Latency;
use marquetry::{BufferPool, ErrorKind, LimitKind, Reader, WriteOptions, Writer, col};

use crate::support::encode::{bit_width, rle};
use crate::support::*;

/// A file of row groups whose one column of strings has these values, by their number, in a
/// dictionary; no statistics reveal their lengths.
fn coded(values: &[String], groups: &[Vec<u32>]) -> Bytes {
    let entries: Vec<&str> = values.iter().map(String::as_str).collect();
    let groups = groups.iter().map(|indices| {
        let width = bit_width(values.len() as u32);
        let body = [&[width as u8][..], &rle(indices, width)].concat();
        let page = v1(indices.len(), Encoding::RleDictionary, &body);
        let chunk = Chunk::new(Type::ByteArray, indices.len(), &[page]);
        let chunk = chunk.with_dictionary(dictionary(values.len() as i32, &texts(&entries)));
        (indices.len() as i64, vec![chunk])
    });
    let text = filled!(SchemaElement {
        logical_type: Some(LogicalType::String),
        ..required("v", Type::ByteArray)
    });
    file_with(vec![text], groups.collect(), |_| {}).into()
}

/// Bytes and rows of the batches of a read, whose values must be those of `expected`.
fn check(
    reader: &Reader,
    values: &[String],
    mut expected: impl Iterator<Item = u32>,
) -> Vec<(usize, usize)> {
    let mut batches = reader.batches().unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = batches.next_batch().unwrap() {
        for text in texts_of(&batch) {
            let expected = &values[expected.next().expect("no more rows") as usize];
            assert!(text == expected, "{} bytes, where {} should be", text.len(), expected.len());
        }
        sizes.push((batch.get_array_memory_size(), batch.num_rows()));
    }
    assert_eq!(expected.next(), None);
    sizes
}

fn texts_of(batch: &RecordBatch) -> Vec<&str> {
    match batch.column(0).data_type() {
        DataType::Utf8 => batch.column(0).as_string::<i32>().iter().flatten().collect(),
        DataType::LargeUtf8 => batch.column(0).as_string::<i64>().iter().flatten().collect(),
        _ => batch.column(0).as_string_view().iter().flatten().collect(),
    }
}

#[test]
fn batches_of_long_values_in_a_dictionary_end_at_their_real_bytes() {
    let values = ["long ".repeat(2000)];
    let groups = [vec![0; 9000], vec![0; 9000]];
    let file = coded(&values, &groups);
    let options = || Reader::new(file.clone()).unwrap().batch_bytes(1 << 20);
    let readers = [
        options(),
        options().memory(8 << 20),
        options().filter(col("v").like("long%")),
        options().filter(col("v").starts_with("long")).memory(16 << 20),
    ];
    for reader in readers {
        for threads in [1, 2] {
            let sizes =
                check(&reader.clone().threads(threads), &values, groups.concat().into_iter());
            assert!(sizes.iter().all(|(bytes, _)| *bytes < 4 << 20), "{sizes:?}");
            // A hundred rows a batch, or somewhat fewer; not one by one.
            assert!(sizes.len() < 18_000 / 20, "{} batches", sizes.len());
        }
    }
    // Views share the one value.
    let sizes = check(&options().views(true).threads(1), &values, groups.concat().into_iter());
    assert_eq!(sizes.len(), 2);
}

#[test]
fn one_long_value_among_short_ones_makes_few_batches_small() {
    let values = ["a".to_owned(), "long ".repeat(1 << 20)];
    let mut rows = vec![0u32; 60_000];
    rows[30_000] = 1;
    rows[30_003] = 1;
    let file = coded(&values, &[rows.clone()]);
    for threads in [1, 2] {
        let reader = Reader::new(file.clone()).unwrap().batch_bytes(2 << 20).threads(threads);
        let sizes = check(&reader, &values, rows.iter().copied());
        assert!(sizes.iter().all(|(bytes, _)| *bytes < 12 << 20), "{sizes:?}");
        assert!(sizes.len() < 60, "{} batches", sizes.len());
    }
    // One row that does not fit the memory is an error.
    let reader = Reader::new(file).unwrap().memory(9 << 20).threads(1);
    let error = read_with(reader).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory), "{error}");
}

#[test]
fn more_than_two_gibibytes_of_strings_are_read_in_batches() {
    let values = ["long ".repeat(24_000)];
    let two = [vec![0; 9_000], vec![0; 9_000]];
    let one = [two.concat()];
    // The last batch would be more than offsets of 32 bits can say, if the caller did not mind.
    for (groups, threads, batch_bytes) in [(&two[..], 2, 64 << 20), (&one[..], 1, usize::MAX)] {
        let file = coded(&values, groups);
        assert!(file.len() < 300_000);
        let reader = Reader::new(file).unwrap().threads(threads).batch_bytes(batch_bytes);
        let mut batches = reader.batches().unwrap();
        let (mut rows, mut bytes) = (0, 0);
        while let Some(batch) = batches.next_batch().unwrap() {
            rows += batch.num_rows();
            bytes += batch.column(0).as_string::<i32>().value_data().len();
        }
        assert_eq!((rows, bytes), (18_000, 18_000 * 120_000));
    }
}

#[cfg(feature = "object_store")]
#[test]
fn streams_end_their_batches_at_their_real_bytes_too() {
    use futures_util::TryStreamExt;
    let values = ["long ".repeat(2000)];
    let file = coded(&values, &[vec![0; 9000], vec![0; 9000]]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for threads in [1, 2] {
        let batches: Vec<RecordBatch> = runtime.block_on(async {
            let reader = marquetry::AsyncReader::open_async(file.clone()).await.unwrap();
            let reader = reader.batch_bytes(1 << 20).threads(threads);
            reader.stream().unwrap().try_collect().await.unwrap()
        });
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 18_000);
        assert!(batches.iter().all(|batch| batch.get_array_memory_size() < 4 << 20));
        assert!(batches.len() < 18_000 / 20, "{} batches", batches.len());
    }
}

#[test]
fn batches_of_no_rows_are_refused_by_every_way_to_read() {
    let reader = Reader::open(testdata("trips.parquet")).unwrap();
    let mut options = reader.read_options().clone();
    options.batch_rows = 0;
    let reader = reader.options(options);
    let ways: [fn(&Reader) -> marquetry::Result<()>; 4] = [
        |reader| reader.batches().map(drop),
        |reader| reader.parts(3).map(drop),
        |reader| reader.streams(3).map(drop),
        |reader| reader.count().map(drop),
    ];
    for (way, read) in ways.iter().enumerate() {
        let error = read(&reader).expect_err("batches of no rows");
        assert_eq!(error.kind(), ErrorKind::Usage, "way {way}: {error}");
        assert!(error.to_string().contains("batch_rows"), "way {way}: {error}");
    }
}

#[test]
fn a_latency_beyond_all_numbers_is_as_the_longest() {
    let latency = Latency::new(std::time::Duration::MAX, u64::MAX);
    let reader = Reader::open(testdata("trips.parquet")).unwrap().latency(latency);
    assert_eq!(reader.count().unwrap(), 1_000);
    assert_eq!(
        reader.batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        1_000
    );
}

#[test]
fn reads_of_small_batches_use_the_memory_of_each_other() {
    let values = Int16Array::from_iter_values((0..80_000_u64).map(|n| (n * n % 307) as i16));
    let batch = RecordBatch::try_from_iter([("k", Arc::new(values) as ArrayRef)]).unwrap();
    let options = WriteOptions::new().with_page_rows(5_001);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let file = Bytes::from(writer.into_inner().unwrap().1);
    for batch_rows in [1_000, 8_191, 8_192, 16_384] {
        let pool = BufferPool::new(64 << 20);
        let held = [0; 4].map(|_| {
            let reader = Reader::new(file.clone()).unwrap().buffer_pool(&pool);
            let reader = reader.filter(col("k").not_eq(7_i16)).batch_rows(batch_rows);
            reader.batches().unwrap().for_each(|batch| drop(batch.unwrap()));
            pool.held_bytes()
        });
        assert_eq!(held[1..], [held[1]; 3], "batches of {batch_rows} rows: {held:?}");
    }
}
