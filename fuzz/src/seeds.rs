//! Small files of our own writer that the seeds of the targets are made of.

use std::sync::{Arc, OnceLock};

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringArray,
};
use marquetry::format::Encoding;
use marquetry::io::WriteSink;
use marquetry::{BloomOptions, Compression, PageVersion, Result, WriteOptions, Writer};
use marquetry_testkit::generate::case;

/// All encodings that are written.
pub const ENCODINGS: [Encoding; 9] = [
    Encoding::Plain,
    Encoding::RleDictionary,
    Encoding::Rle,
    Encoding::DeltaBinaryPacked,
    Encoding::DeltaLengthByteArray,
    Encoding::DeltaByteArray,
    Encoding::ByteStreamSplit,
    Encoding::Alp,
    Encoding::Pfor,
];

/// All codecs that are written.
pub const CODECS: [Compression; 7] = [
    Compression::Uncompressed,
    Compression::Snappy,
    Compression::Gzip(1),
    Compression::Brotli(1),
    Compression::Zstd(1),
    Compression::Lz4Raw,
    Compression::Lzo,
];

const ROWS: i32 = 70;

/// A column of each physical type, without nulls and with some.
fn columns() -> Vec<ArrayRef> {
    let words = |i: i32| format!("word {}", i * i % 23);
    let fixed = |i: i32| [7, 3, (i % 5) as u8, (i % 11) as u8];
    let all = 0..ROWS;
    let some = || (0..ROWS).map(|i| (i % 6 != 1).then_some(i));
    let fixed_size = |values: Vec<Option<[u8; 4]>>| {
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 4).expect("values")
    };
    vec![
        Arc::new(BooleanArray::from_iter(all.clone().map(|i| Some(i % 3 == 0)))),
        Arc::new(BooleanArray::from_iter(some().map(|i| i.map(|i| i > 30)))),
        Arc::new(Int32Array::from_iter_values(all.clone().map(|i| i * 3 - 50))),
        Arc::new(Int32Array::from_iter(some())),
        Arc::new(Int64Array::from_iter_values(all.clone().map(|i| i64::from(i) << (i % 40)))),
        Arc::new(Int64Array::from_iter(some().map(|i| i.map(|i| i64::from(i / 9))))),
        Arc::new(Float32Array::from_iter_values(all.clone().map(|i| i as f32 / 4.0))),
        Arc::new(Float32Array::from_iter(some().map(|i| i.map(|i| i as f32 * 0.1)))),
        Arc::new(Float64Array::from_iter_values(all.clone().map(|i| f64::from(i) / 100.0))),
        Arc::new(Float64Array::from_iter(some().map(|i| i.map(|i| f64::from(i).sqrt())))),
        Arc::new(StringArray::from_iter_values(all.clone().map(words))),
        Arc::new(StringArray::from_iter(some().map(|i| i.map(words)))),
        Arc::new(BinaryArray::from_iter_values(all.clone().map(|i| words(i).into_bytes()))),
        Arc::new(fixed_size(all.map(|i| Some(fixed(i))).collect())),
        Arc::new(fixed_size(some().map(|i| i.map(fixed)).collect())),
    ]
}

fn of_column(column: &ArrayRef, options: WriteOptions) -> Option<Vec<u8>> {
    let nullable = column.null_count() > 0;
    let fields = [("v", column.clone(), nullable)];
    let batch = RecordBatch::try_from_iter_with_nullable(fields).expect("a batch");
    // Not every encoding is legal for every type.
    written(&batch, options).ok()
}

/// A file of a batch.
pub(crate) fn written(batch: &RecordBatch, options: WriteOptions) -> Result<Vec<u8>> {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options)?;
    writer.write(batch)?;
    Ok(writer.into_inner()?.1)
}

/// A file for each type, encoding, codec and page version; without checksums, which a fuzzer does
/// not fit.
#[must_use]
pub fn matrix() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = Vec::new();
        for column in columns() {
            for encoding in ENCODINGS {
                for version in [PageVersion::V1, PageVersion::V2] {
                    for codec in CODECS {
                        let options = WriteOptions::new()
                            .with_checksums(false)
                            .with_hint(false)
                            .with_page_version(version)
                            .with_compression(codec)
                            .with_column("v", |of| of.with_encoding(encoding));
                        files.extend(of_column(&column, options));
                    }
                }
            }
        }
        files
    })
}

/// One in several files of the matrix, and tables of several columns: nested ones, bloom filters,
/// indexes, several row groups; and files of types that these have not.
#[must_use]
pub fn files() -> Vec<Vec<u8>> {
    const CASES: u64 = 40;
    // Prime to the number of codecs, so that each occurs.
    let mut files: Vec<Vec<u8>> = matrix().iter().step_by(13).cloned().collect();
    for seed in 0..CASES {
        let file = case(seed).file;
        if file.len() < 8 << 10 {
            files.push(file.to_vec());
        }
    }
    for column in columns() {
        let options = WriteOptions::new()
            .with_checksums(false)
            .with_compression(Compression::Uncompressed)
            .with_page_rows(20)
            .with_row_group_rows(40)
            .with_column("v", |of| of.with_bloom(BloomOptions::default()));
        files.extend(of_column(&column, options));
    }
    files.extend(crate::logical::files());
    files
}

/// Files of one page each.
#[must_use]
pub fn pages() -> Vec<Vec<u8>> {
    crate::targets::page::files().into_iter().step_by(7).collect()
}
