//! Tests reads of few rows of large pages: pages are opened only as far as the last wanted row, and
//! few entries of a dictionary are looked up in its page. The rows are those of a full read,
//! however wrong the guess where a page can be cut off.

use std::sync::Arc;

use fastrand::Rng;
use marquetry::arrow_array::*;
use marquetry::format::Encoding;
use marquetry::io::WriteSink;
use marquetry::{Compression, PageVersion, Reader, RowSelection, WriteOptions, Writer};

use crate::read::row_selection::{only, with_threads};
use crate::support::cells::columns;
use crate::support::generate::every_case;
use crate::support::read_with;

/// A row group of 6,000 rows in pages of thousands, whose values are longer, or more of them there,
/// in some stretches than in others.
fn file(rng: &mut Rng) -> bytes::Bytes {
    let n = 6_000;
    // From one row to the next, how much there is; half of it in one half of the pages.
    let dense: Vec<bool> = {
        let (period, shift) = (rng.usize(1..4_000), rng.usize(0..4_000));
        (0..n).map(|i| (i + shift) / period % 2 == 0).collect()
    };
    let ids = Int64Array::from_iter_values((0..n as i64).map(|i| i * 3));
    let sparse = Int64Array::from_iter(
        dense.iter().map(|dense| (*dense || rng.u8(..) < 9).then(|| rng.i64(0..1 << 40))),
    );
    let small = Int32Array::from_iter(
        dense.iter().map(|dense| (!dense || rng.bool()).then(|| rng.i32(-9..9))),
    );
    let bytes = Int8Array::from_iter_values((0..n).map(|_| rng.i8(..)));
    let floats = Float64Array::from_iter_values((0..n).map(|_| rng.f64()));
    let mut text = |dense: &bool| match dense {
        true => format!("long and longer {} {}", "x".repeat(rng.usize(0..90)), rng.u16(..)),
        false => format!("{}é", rng.u8(..)),
    };
    let texts = StringArray::from_iter_values(dense.iter().map(&mut text));
    let some = StringArray::from_iter(dense.iter().map(|dense| dense.then(|| text(dense))));
    let fixed = FixedSizeBinaryArray::try_from_iter((0..n).map(|_| rng.u64(..).to_le_bytes()));
    let decimals = Decimal128Array::from_iter_values((0..n).map(|_| i128::from(rng.i64(..))));
    let decimals = decimals.with_precision_and_scale(30, 2).expect("digits that fit");
    let bools = BooleanArray::from_iter(dense.iter().map(|dense| dense.then(|| rng.bool())));
    let batch = RecordBatch::try_from_iter([
        ("ids", Arc::new(ids) as ArrayRef),
        ("sparse", Arc::new(sparse)),
        ("small", Arc::new(small)),
        ("bytes", Arc::new(bytes)),
        ("floats", Arc::new(floats)),
        ("texts", Arc::new(texts)),
        ("some", Arc::new(some)),
        ("fixed", Arc::new(fixed.expect("of one width"))),
        ("decimals", Arc::new(decimals)),
        ("bools", Arc::new(bools)),
    ])
    .expect("columns of one length");
    let codecs = [Compression::Snappy, Compression::Snappy, Compression::Zstd(1)];
    let options = WriteOptions::new()
        .with_compression(codecs[rng.usize(0..3)])
        .with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)])
        .with_checksums(rng.bool())
        .with_page_rows(rng.usize(1_000..6_000));
    let options = match rng.u8(0..3) {
        0 => options.with_dictionary(true).with_dictionary_bytes(1 << 14),
        _ => options.with_column("*", |column| column.with_encoding(Encoding::Plain)),
    };
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("options");
    writer.write(&batch).expect("a batch");
    writer.into_inner().expect("a file").1.into()
}

#[test]
fn few_rows_are_those_of_a_full_read() {
    every_case(40, |seed| {
        let rng = &mut Rng::with_seed(seed);
        let file = file(rng);
        let mut reader = Reader::new(file).expect("a file");
        if rng.u8(0..3) == 0 {
            let mut options = reader.read_options().clone();
            options.arrow = options.arrow.with_views(true);
            reader = reader.options(options);
        }
        let schema = reader.schema().expect("a schema");
        let all = columns(&schema, &read_with(reader.clone().threads(1)).expect("rows"));
        for _ in 0..6 {
            // Batch after batch may want more of the page that was opened for the one before.
            let max = [2, 5, 40][rng.usize(0..3)];
            let reader = reader.clone().batch_rows(rng.usize(1..=max));
            let reader = with_threads(rng, reader);
            let mut wanted: Vec<usize> =
                (0..rng.usize(1..=max)).map(|_| rng.usize(0..6_000)).collect();
            if rng.bool() {
                let numbers: Vec<u64> = wanted.iter().map(|&row| row as u64).collect();
                let found = reader.take(&numbers).expect("rows");
                assert_eq!(columns(&schema, &[found]), only(&all, &wanted), "seed {seed}");
                continue;
            }
            wanted.sort_unstable();
            wanted.dedup();
            let mut bits = vec![false; 6_000];
            wanted.iter().for_each(|&row| bits[row] = true);
            let selection = RowSelection::from_bits(bits.into_iter().collect());
            let found = read_with(reader.select(selection).expect("of as many rows"));
            assert_eq!(columns(&schema, &found.expect("rows")), only(&all, &wanted), "seed {seed}");
        }
    });
}

/// An `i64` column of 40,000 rows in pages of 1,000, by a writer that gives up the dictionary, of
/// 128 KiB, after 16,384 values, and continues with PLAIN pages.
fn dictionary_given_up(path: &std::path::Path) {
    use arrow_array_60::{ArrayRef, Int64Array, RecordBatch};
    use parquet::file::properties::WriterProperties;

    let ids = Int64Array::from_iter_values((0..40_000).map(|i| i * 7));
    let batch = RecordBatch::try_from_iter([("ids", Arc::new(ids) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(128 << 10)
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(500)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_large_dictionary_is_fetched_only_if_a_wanted_page_refers_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given_up.parquet");
    dictionary_given_up(&path);
    let dictionary = 128 << 10;
    let ids = |ranges: &[(u64, u64)], threads| {
        let ranges: Vec<_> = ranges.iter().map(|(start, end)| *start..*end).collect();
        let rows = RowSelection::from_ranges(40_000, ranges.iter().cloned()).unwrap();
        let reader = Reader::open(&path).unwrap().threads(threads).select(rows).unwrap();
        let mut found = Vec::new();
        for batch in reader.batches().unwrap() {
            let batch = batch.unwrap();
            let column = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            found.extend(column.values().iter().copied());
        }
        let expected: Vec<i64> =
            ranges.iter().cloned().flatten().map(|row| row as i64 * 7).collect();
        assert_eq!(found, expected, "{ranges:?}");
        assert_eq!(reader.progress().indexes_ignored(), 0);
        reader.progress().bytes_fetched()
    };
    for threads in [1, 2] {
        let plain = ids(&[(39_100, 39_200)], threads);
        assert!(plain < dictionary / 8, "{plain} bytes for one PLAIN page");
        let coded = ids(&[(100, 200)], threads);
        assert!(coded > dictionary && coded < dictionary * 5 / 4, "{coded} bytes, {threads}");
        let both = ids(&[(100, 200), (39_100, 39_200)], threads);
        assert!(both > coded && both < dictionary * 5 / 4, "{both} bytes, {threads}");
    }
}

#[test]
fn an_error_of_a_dictionary_names_it_and_no_data_page() {
    let ids = Int64Array::from_iter_values((0..10_000).map(|i| i % 1_000 * 1_000_003));
    let batch = RecordBatch::try_from_iter([("ids", Arc::new(ids) as ArrayRef)]).unwrap();
    let options = WriteOptions::new()
        .with_compression(Compression::Snappy)
        .with_checksums(true)
        .with_page_rows(1_000)
        .with_column("ids", |column| column.with_encoding(Encoding::RleDictionary));
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let (report, mut file) = writer.into_inner().unwrap();
    let metadata = report.metadata().unwrap();
    let chunk = metadata.row_groups[0].columns[0].meta_data.as_ref().unwrap();
    let dictionary = chunk.dictionary_page_offset.expect("a dictionary");
    file[chunk.data_page_offset as usize - 9] ^= 0x55;
    let reader = Reader::new(bytes::Bytes::from(file)).unwrap().threads(1);
    let rows = RowSelection::from_rows(10_000, [7_500]).unwrap();
    for reader in [reader.clone().select(rows).unwrap(), reader] {
        let error = read_with(reader).expect_err("a dictionary that was changed");
        let at = error.at();
        assert_eq!((at.page, at.is_dictionary_page), (None, true), "{error}");
        assert_eq!(at.offset, Some(dictionary as u64), "{error}");
        assert!(error.to_string().contains("column ids, dictionary page, byte"), "{error}");
    }
}
