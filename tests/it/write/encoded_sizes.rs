//! Tests that single columns take no more bytes than other writers need.

use std::sync::Arc;

use marquetry::arrow_array::*;
use marquetry::format::{ColumnMetaData, CompressionCodec, Encoding};
use marquetry::io::WriteSink;
use marquetry::{Compression, Reader, WriteOptions, Writer};

use crate::support::read;

/// A file of one column without nulls.
struct File {
    meta: ColumnMetaData,
    /// The first rows of its data pages.
    pages: Vec<i64>,
}

impl File {
    fn bytes(&self) -> i64 {
        self.meta.total_compressed_size
    }

    fn has(&self, encoding: Encoding) -> bool {
        self.meta.encodings.contains(&encoding)
    }
}

/// Writes a column in one row group, and looks whether it comes back.
fn written(array: impl Array + 'static, options: WriteOptions) -> File {
    let batch = RecordBatch::try_from_iter([("c", Arc::new(array) as ArrayRef)]).expect("a batch");
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    let file = bytes::Bytes::from(writer.into_inner().expect("a file").1);
    let reader = Reader::new(file.clone()).expect("a file");
    let footer = reader.metadata().index().to_file_meta_data().expect("a footer");
    assert_eq!(footer.row_groups.len(), 1);
    let meta = footer.row_groups[0].columns[0].meta_data.clone().expect("metadata");
    let index = reader.page_index(0, 0).expect("an index").offset_index.expect("an offset index");
    let mut at = 0;
    for rows in read(file).expect("rows") {
        assert_eq!(rows.column(0), batch.slice(at, rows.num_rows()).column(0), "from {at} on");
        at += rows.num_rows();
    }
    assert_eq!(at, batch.num_rows());
    File { meta, pages: index.page_locations.iter().map(|page| page.first_row_index).collect() }
}

/// A number below 2^31 without a pattern.
fn scattered(i: usize) -> usize {
    fastrand::Rng::with_seed(i as u64).usize(0..1 << 31)
}

/// Indices of 11 bits hide that a list of names comes again, unless it does after a multiple of 8
/// rows.
#[test]
fn indices_are_whole_bytes_where_a_long_list_comes_again() {
    let rows = 120_000;
    let name = |i: usize| format!("county {}", scattered(i));
    let daily: StringArray = (0..rows).map(|row| Some(name(row % 1_923))).collect();
    let daily = written(daily, WriteOptions::new());
    assert!(daily.has(Encoding::RleDictionary));
    let bits = (rows * 11 / 8) as i64;
    assert!(daily.meta.total_uncompressed_size > 2 * rows as i64, "16 bits a row");
    assert!(daily.bytes() < bits / 5, "{} bytes", daily.bytes());
    // Where nothing repeats, they are as short as can be.
    let any: StringArray = (0..rows).map(|row| Some(name(scattered(row) % 1_923))).collect();
    let any = written(any, WriteOptions::new());
    assert!(any.has(Encoding::RleDictionary));
    assert!(any.meta.total_uncompressed_size < bits + 60_000, "11 bits a row");
}

/// Frequent numbers take fewer bits than others once each is a byte: a codec counts bytes.
#[test]
fn indices_are_whole_bytes_where_few_are_frequent() {
    let rows = 120_000;
    let skewed = |row: usize| {
        let share = (scattered(row) % 10_000) as f64 / 10_000.0;
        (share.powi(3) * 100.0) as i32 * 1_001
    };
    let file = written(Int32Array::from_iter_values((0..rows).map(skewed)), WriteOptions::new());
    let none = WriteOptions::new().with_compression(Compression::Uncompressed);
    let as_bits = written(Int32Array::from_iter_values((0..rows).map(skewed)), none);
    assert!(file.has(Encoding::RleDictionary) && as_bits.has(Encoding::RleDictionary));
    assert!(file.bytes() * 100 < as_bits.bytes() * 88, "{} {}", file.bytes(), as_bits.bytes());
}

/// Without a codec runs make the chunk smaller; with one, they are in its way.
#[test]
fn runs_are_left_out_where_a_codec_does_better_without() {
    let rows = 240_000;
    let rare = |row: usize| i32::from(scattered(row).is_multiple_of(50)) * 7_919;
    let file = written(Int32Array::from_iter_values((0..rows).map(rare)), WriteOptions::new());
    let none = WriteOptions::new().with_compression(Compression::Uncompressed);
    let in_runs = written(Int32Array::from_iter_values((0..rows).map(rare)), none);
    assert!(file.has(Encoding::RleDictionary) && in_runs.has(Encoding::RleDictionary));
    let bits = (rows / 8) as i64;
    assert!(in_runs.meta.total_uncompressed_size < bits * 9 / 10, "runs");
    assert!(file.meta.total_uncompressed_size >= bits, "no runs");
}

#[test]
fn a_codec_that_saves_a_twentieth_is_used_and_one_that_saves_nothing_is_not() {
    let mut rng = fastrand::Rng::with_seed(31);
    // Bytes with some zeros, besides those that happen to be zero.
    let mut codec_of = |zeros: u8| {
        let keys = (0..40_000).map(|_| -> [u8; 20] {
            std::array::from_fn(|_| if rng.u8(..) < zeros { 0 } else { rng.u8(..) })
        });
        let keys = FixedSizeBinaryArray::try_from_iter(keys).expect("20 bytes each");
        let file = written(keys, WriteOptions::new());
        (file.meta.codec, file.bytes())
    };
    let (codec, bytes) = codec_of(31);
    assert_eq!(codec, CompressionCodec::Zstd, "{bytes} bytes");
    assert!(bytes < 20 * 40_000 * 97 / 100, "{bytes} bytes");
    assert_eq!(codec_of(0).0, CompressionCodec::Uncompressed);
}

/// Blocks of 128 differences take 5 bytes each beside the differences.
#[test]
fn keys_with_gaps_are_in_long_delta_blocks() {
    let rows = 150_000;
    let mut key = 0;
    let gaps = (0..rows).map(|row| {
        key += 1 + (scattered(row) % 16) as i64;
        key
    });
    let gaps = Int64Array::from_iter_values(gaps);
    let none = WriteOptions::new().with_compression(Compression::Uncompressed);
    let file = written(gaps, none.clone());
    assert!(file.has(Encoding::DeltaBinaryPacked));
    assert!(file.bytes() < rows as i64 / 2 * 102 / 100, "4 bits a key: {} bytes", file.bytes());

    // Where some 32 differences are of another size, short blocks follow them.
    let mut key = 0;
    let uneven = (0..rows).map(|row| {
        key += if (row + 255) / 32 % 8 == 7 {
            scattered(row) as i64
        } else {
            (scattered(row) % 4) as i64
        };
        key
    });
    let file = written(Int64Array::from_iter_values(uneven), none);
    assert!(file.has(Encoding::DeltaBinaryPacked));
    let of_32 = (32 * 31 + 7 * 32 * 2) / 8;
    let expected = rows as i64 / 256 * (of_32 + 12);
    assert!(file.bytes() < expected * 102 / 100, "{} bytes, not {expected}", file.bytes());
}

/// Each page takes some 60 bytes by itself, which is more than a constant does.
#[test]
fn pages_that_nothing_is_left_of_are_joined() {
    let rows = 300_000;
    let constant = || StringArray::from_iter_values((0..rows).map(|_| "constant"));
    let file = written(constant(), WriteOptions::new());
    assert_eq!(file.pages, [0, 1 << 18]);
    assert!(file.bytes() < 150, "{} bytes", file.bytes());
    // Bounds of pages show where a key is.
    let keys = || Int64Array::from_iter_values(0..rows);
    let file = written(keys(), WriteOptions::new());
    assert_eq!(file.pages, [0, 1 << 17, 2 << 17]);
    assert!(file.bytes() < 240, "{} bytes", file.bytes());
    let falling = Int64Array::from_iter_values((0..rows).map(|row| -row));
    assert_eq!(written(falling, WriteOptions::new()).pages, [0, 1 << 17, 2 << 17]);
    // As they were asked for.
    let asked = WriteOptions::new().with_page_rows(1 << 16);
    let expected: Vec<i64> = (0..5).map(|page| page << 16).collect();
    assert_eq!(written(constant(), asked.clone()).pages, expected);
    assert_eq!(written(keys(), asked).pages, expected);
    let of_column = WriteOptions::new().with_column("c", |c| c.with_page_rows(1 << 16));
    assert_eq!(written(constant(), of_column).pages, expected);
    // Values that compress to more than almost nothing.
    let any = Float64Array::from_iter_values((0..rows).map(|row| scattered(row as usize) as f64));
    assert!(written(any, WriteOptions::new()).pages.len() >= 5);
}

/// The level of a codec is the most that it may do, and ZSTD does worse at hexadecimal digits by
/// its default than by its first.
#[test]
fn dictionaries_of_hashes_take_no_more_than_by_the_first_level() {
    let mut rng = fastrand::Rng::with_seed(32);
    let hashes: Vec<String> =
        (0..1_500).map(|_| (0..8).map(|_| format!("{:016x}", rng.u64(..))).collect()).collect();
    let rides = || -> StringArray {
        (0..10_000).map(|row| Some(hashes[scattered(row) % 1_500].as_str())).collect()
    };
    let file = written(rides(), WriteOptions::new());
    let first = written(rides(), WriteOptions::new().with_compression(Compression::Zstd(1)));
    assert!(file.has(Encoding::RleDictionary) && first.has(Encoding::RleDictionary));
    assert!(file.bytes() * 100 <= first.bytes() * 101, "{} {}", file.bytes(), first.bytes());
}

/// A sample of almost nothing takes mostly what a page takes by itself: a dictionary of
/// one entry is not seen to be the best.
#[test]
fn constants_are_dictionaries_of_one_entry() {
    let rows = 131_072;
    let file = written(
        StringArray::from_iter_values((0..rows).map(|_| "what is said again and again")),
        WriteOptions::new(),
    );
    assert!(file.has(Encoding::RleDictionary), "{:?}", file.meta.encodings);
    assert!(file.bytes() < 130, "{} bytes", file.bytes());
}
