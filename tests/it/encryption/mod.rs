//! Tests of modular encryption (Encryption.md): files of pyarrow, our own in every mode, keys, and
//! tampering.

pub mod keys;
mod tampering;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use marquetry::crypt::{Algorithm, Decryption, Encryption, Key, UnlistedColumns};
use marquetry::io::WriteSink;
use marquetry::{
    Compression, ErrorKind, Limits, PageVersion, Reader, Result, WriteOptions, Writer, col,
};

use crate::support::{read_with, rows};

pub const FOOTER_KEY: &[u8; 16] = b"0123456789012345";
pub const COLUMN_KEY: &[u8; 16] = b"1234567890123450";

/// A text that must not be found in a file that protects it.
pub const SENTINEL: &str = "sentinel-of-a-secret";

pub fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).unwrap()
}

pub fn keys() -> Decryption {
    Decryption::new()
        .with_footer_key(key(FOOTER_KEY))
        .with_column_key("secret", key(COLUMN_KEY))
        .with_column_key("nested.text", key(COLUMN_KEY))
        .with_unauthenticated_pages(true)
}

/// Rows of a number, a secret, floats, a list and a struct.
pub fn batch(from: i64, n: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + n));
    let secret = (from..from + n).map(|i| (i % 5 != 2).then(|| format!("{SENTINEL} {}", i % 40)));
    let secret: ArrayRef = Arc::new(StringArray::from_iter(secret));
    let floats: ArrayRef =
        Arc::new(Float64Array::from_iter_values((from..from + n).map(|i| i as f64 / 7.0)));
    let lens: Vec<usize> = (0..n as usize).map(|i| i % 3).collect();
    let items: Vec<i64> = lens.iter().flat_map(|len| 0..*len as i64).collect();
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let list: ArrayRef = Arc::new(ListArray::new(
        item,
        OffsetBuffer::from_lengths(lens),
        Arc::new(Int64Array::from(items)),
        None,
    ));
    let text = StringArray::from_iter_values((from..from + n).map(|i| format!("text {i}")));
    let fields = Fields::from(vec![Field::new("text", DataType::Utf8, false)]);
    let nested: ArrayRef = Arc::new(StructArray::new(fields, vec![Arc::new(text)], None));
    RecordBatch::try_from_iter([
        ("id", numbers),
        ("secret", secret),
        ("amount", floats),
        ("list", list),
        ("nested", nested),
    ])
    .unwrap()
}

/// Small pages and row groups of 100 rows, with all that can be encrypted.
pub fn options(encryption: Option<Encryption>) -> WriteOptions {
    let mut options = WriteOptions::new().with_page_rows(20).with_row_group_rows(100);
    options = options.with_column("secret", |of| of.with_bloom(Default::default()));
    options = options.with_column("id", |of| of.with_bloom(Default::default()));
    match encryption {
        Some(encryption) => options.with_encryption(encryption),
        None => options,
    }
}

pub fn write(options: WriteOptions, batches: &[RecordBatch]) -> Result<Bytes> {
    let mut writer = Writer::new(WriteSink(Vec::new()), batches[0].schema(), options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?.1.into())
}

pub fn open(file: &Bytes, keys: &Decryption) -> Result<Reader> {
    Reader::with_keys(file.clone(), Limits::default(), keys)
}

/// Every mode: its name, the encryption, and the keys to read it.
pub fn modes() -> Vec<(String, Encryption)> {
    let mut modes = Vec::new();
    for algorithm in [Algorithm::AesGcmV1, Algorithm::AesGcmCtrV1] {
        for plaintext_footer in [false, true] {
            let footer = Encryption::new(key(FOOTER_KEY))
                .with_algorithm(algorithm)
                .with_plaintext_footer(plaintext_footer)
                .with_footer_key_metadata("kf");
            let columns = footer
                .clone()
                .with_column_key_and_metadata("secret", key(COLUMN_KEY), "kc")
                .with_column_key("nested.text", key(COLUMN_KEY));
            let all = columns.clone().with_unlisted_columns(UnlistedColumns::FooterKey);
            for (name, of) in [("uniform", footer), ("columns", columns), ("all", all)] {
                let form = if plaintext_footer { "signed" } else { "encrypted" };
                modes.push((format!("{algorithm:?} {form} {name}"), of));
            }
        }
    }
    modes
}

#[test]
fn every_mode_reads_as_it_was_written_whole_in_part_and_filtered() {
    let batches = [batch(0, 150), batch(150, 150)];
    for version in [PageVersion::V1, PageVersion::V2] {
        for codec in [Compression::Uncompressed, Compression::Zstd(1), Compression::Snappy] {
            let plain = options(None).with_page_version(version).with_compression(codec);
            let plain = Reader::new(write(plain, &batches).unwrap()).unwrap();
            for (name, encryption) in modes() {
                let of = options(Some(encryption)).with_page_version(version);
                let file = write(of.with_compression(codec), &batches).unwrap();
                let encrypted = open(&file, &keys()).unwrap();
                let same = |read: &dyn Fn(Reader) -> Reader| {
                    for threads in [1, 2] {
                        let of = |reader: &Reader| read(reader.clone()).threads(threads);
                        let found = rows(&read_with(of(&encrypted)).unwrap());
                        let expected = rows(&read_with(of(&plain)).unwrap());
                        assert_eq!(found, expected, "{name} {version:?} {codec:?} {threads}");
                    }
                };
                same(&|reader| reader);
                same(&|reader| reader.project(["nested", "secret"]).unwrap());
                same(&|reader| reader.filter(col("id").gt(137).and(col("id").lt(160))));
                same(&|reader| reader.filter(col("secret").eq(format!("{SENTINEL} 13").as_str())));
                same(&|reader| reader.offset(95).limit(10).views(true));
                let wanted = [299, 3, 100, 99, 0];
                assert_eq!(
                    rows(&[encrypted.take(&wanted).unwrap()]),
                    rows(&[plain.take(&wanted).unwrap()]),
                    "{name}"
                );
                let missing = encrypted.clone().filter(col("id").eq(1_000));
                assert_eq!(missing.count().unwrap(), 0, "{name}");
            }
        }
    }
}

#[test]
fn filters_prune_encrypted_columns_by_statistics_bloom_filters_and_page_indexes() {
    let batches = [batch(0, 300)];
    let plain = Reader::new(write(options(None), &batches).unwrap()).unwrap();
    let absent = format!("{SENTINEL} 1x");
    let filters = [
        (col("id").eq(250), 20),
        (col("id").gt(90).and(col("id").lt(110)), 40),
        (col("secret").eq(absent.as_str()), 0),
        (col("id").gt(1_000), 0),
    ];
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &batches).unwrap();
        let reader = open(&file, &keys()).unwrap();
        for (filter, rows) in &filters {
            let left = |reader: &Reader| {
                let options = marquetry::read::PageIndexUse::Always;
                let mut of = reader.read_options().clone();
                of.page_index = options;
                let reader = reader.clone().options(of).filter(filter.clone());
                let progress = reader.progress().clone();
                let left = reader.explain().unwrap().rows_left();
                read_with(reader).unwrap();
                assert_eq!(progress.indexes_ignored(), 0, "{name} {filter}");
                left
            };
            assert_eq!(left(&reader), left(&plain), "{name} {filter}");
            assert_eq!(left(&reader), *rows, "{name} {filter}");
        }
    }
}

#[test]
fn page_indexes_and_statistics_of_encrypted_columns_are_read_with_keys_and_refused_without() {
    let batches = [batch(0, 200)];
    let plain = Reader::new(write(options(None), &batches).unwrap()).unwrap();
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &batches).unwrap();
        let mut reader = open(&file, &keys()).unwrap();
        let expected = plain.page_statistics("secret").unwrap();
        let found = reader.page_statistics("secret").unwrap();
        assert_eq!(&found.min, &expected.min, "{name}");
        let found = reader.column_statistics("secret").unwrap();
        let expected = plain.column_statistics("secret").unwrap();
        assert_eq!(&found.max, &expected.max, "{name}");
        let apart = reader.page_index(1, 1).unwrap();
        reader.load_page_indexes().unwrap();
        let loaded = reader.metadata().page_index(1, 1).unwrap();
        let first = loaded.offset_index.unwrap().page_locations.into_iter().next().unwrap();
        assert_eq!(apart.offset_index.unwrap().page_locations[0].offset, first.offset, "{name}");
        assert_eq!(rows(&read_with(reader).unwrap()), rows(&batches), "{name}");
    }
}

#[test]
fn a_large_column_chunk_of_a_local_file_is_decrypted_while_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let values: Vec<i64> = (0..300_000).map(|_| random.i64(..)).collect();
    let column: ArrayRef = Arc::new(Int64Array::from(values));
    let batch = RecordBatch::try_from_iter([("secret", column)]).unwrap();
    for (name, encryption) in modes().into_iter().filter(|(name, _)| name.ends_with("uniform")) {
        for codec in [Compression::Uncompressed, Compression::Zstd(1)] {
            let path = folder.path().join("large.parquet");
            let options = WriteOptions::new().with_encryption(encryption.clone());
            let options = options.with_compression(codec);
            let mut writer = Writer::create_with(&path, batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            for threads in [1, 2] {
                let reader = Reader::open_encrypted(&path, &keys()).unwrap().threads(threads);
                let found = read_with(reader.clone()).unwrap();
                let found = arrow_select::concat::concat_batches(&batch.schema(), &found).unwrap();
                assert!(found.column(0) == batch.column(0), "{name} {threads} seed {seed}");
                let some = reader.take(&[7, 250_000]).unwrap();
                assert!(
                    some.column(0).slice(1, 1).as_ref()
                        == batch.column(0).slice(250_000, 1).as_ref()
                );
            }
        }
    }
}

#[cfg(feature = "object_store")]
#[test]
fn encrypted_files_stream_from_a_store() {
    use futures_util::TryStreamExt;
    use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let batches = [batch(0, 300)];
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &batches).unwrap();
        runtime.block_on(async {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let path = object_store::path::Path::from("file.parquet");
            store.put(&path, file.into()).await.unwrap();
            let reader = Reader::open_store_encrypted(store, path, &keys()).await.unwrap();
            let all: Vec<_> = reader.stream().unwrap().try_collect().await.unwrap();
            assert_eq!(rows(&all), rows(&batches), "{name}");
            let some = reader.filter(col("id").eq(123)).stream().unwrap();
            let some: Vec<_> = some.try_collect().await.unwrap();
            assert_eq!(rows(&some), rows(&[batches[0].slice(123, 1)]), "{name}");
        });
    }
}

#[test]
fn row_groups_that_were_encoded_apart_are_encrypted_when_they_are_appended() {
    let batches = [batch(0, 40), batch(40, 40), batch(80, 40)];
    let of = options(Some(modes().remove(1).1));
    let mut writer = Writer::new(WriteSink(Vec::new()), batches[0].schema(), of).unwrap();
    let encoder = writer.encoder().clone();
    // Encoded in another order than they are appended.
    let mut encoded: Vec<_> = batches
        .iter()
        .rev()
        .map(|batch| encoder.encode(std::slice::from_ref(batch)).unwrap())
        .collect();
    while let Some(row_group) = encoded.pop() {
        writer.append(row_group).unwrap();
    }
    let file: Bytes = writer.into_inner().unwrap().1.into();
    let found = read_with(open(&file, &keys()).unwrap()).unwrap();
    assert_eq!(rows(&found), rows(&batches));
}

#[test]
fn one_encoder_writes_two_files_that_cannot_be_mixed() {
    let of = options(Some(modes().remove(0).1));
    let schema = batch(0, 10).schema();
    let encoder = marquetry::RowGroupEncoder::new(schema, of).unwrap();
    let unique = |bytes: &[u8]| {
        // FileCryptoMetaData precedes the footer, not encrypted.
        let len = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk::<4>().unwrap()) as usize;
        bytes[bytes.len() - 8 - len..][..20].to_vec()
    };
    let mut files = Vec::new();
    for _ in 0..2 {
        let mut writer = Writer::over(WriteSink(Vec::new()), encoder.clone());
        writer.write(&batch(0, 10)).unwrap();
        files.push(writer.into_inner().unwrap().1);
    }
    assert_ne!(unique(&files[0]), unique(&files[1]));
}

#[test]
fn files_without_rows_and_row_groups_without_rows_are_encrypted_too() {
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &[batch(0, 0)]).unwrap();
        assert_eq!(open(&file, &keys()).unwrap().rows().unwrap(), 0, "{name}");
        assert!(read_with(open(&file, &keys()).unwrap()).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn no_value_of_a_protected_column_is_in_the_bytes_of_the_file() {
    let contains =
        |file: &[u8], text: &str| file.windows(text.len()).any(|at| at == text.as_bytes());
    let batches = [batch(0, 300)];
    for codec in [Compression::Uncompressed, Compression::Zstd(1)] {
        let plain = write(options(None).with_compression(codec), &batches).unwrap();
        assert!(contains(&plain, SENTINEL), "the test sees it where nothing is encrypted");
        for (name, encryption) in modes() {
            let of = options(Some(encryption)).with_compression(codec);
            let file = write(of, &batches).unwrap();
            assert!(!contains(&file, SENTINEL), "{name}");
            // Names of columns are as the footer is.
            let has_names = contains(&file, "amount");
            assert_eq!(has_names, name.contains("signed"), "{name}");
        }
    }
}

#[test]
fn a_plaintext_footer_says_nothing_about_the_values_of_protected_columns() {
    for (name, encryption) in modes().into_iter().filter(|(name, _)| name.contains("signed")) {
        let file = write(options(Some(encryption)), &[batch(0, 300)]).unwrap();
        // Without keys, the footer is read in plain text.
        let reader = Reader::new(file.clone()).unwrap();
        let mut protected = 0;
        for group in 0..reader.metadata().row_groups() {
            for leaf in 0..reader.metadata().schema().leaves_len() {
                let chunk = reader.metadata().column_chunk(group, leaf).unwrap();
                let meta = chunk.meta_data.unwrap();
                if chunk.crypto_metadata.is_some() {
                    protected += 1;
                    assert_eq!(meta.statistics, None, "{name}");
                    assert_eq!(meta.size_statistics, None, "{name}");
                    assert_eq!(meta.encoding_stats, None, "{name}");
                    assert!(chunk.encrypted_column_metadata.is_some(), "{name}");
                } else {
                    assert!(meta.statistics.is_some(), "{name}");
                }
            }
        }
        let of_five = if name.ends_with("columns") { 2 } else { 5 };
        assert_eq!(protected, 3 * of_five, "{name}");
    }
}

#[test]
fn pages_keep_their_checksums_of_what_is_stored() {
    for (name, encryption) in modes() {
        for checksums in [true, false] {
            let of = options(Some(encryption.clone())).with_checksums(checksums);
            let file = write(of, &[batch(0, 100)]).unwrap();
            let reader = open(&file, &keys()).unwrap();
            assert_eq!(rows(&read_with(reader).unwrap()), rows(&[batch(0, 100)]), "{name}");
            if !name.contains("Ctr") || !checksums {
                continue;
            }
            // In a CTR page nothing but the checksum sees a flipped bit.
            let reader = open(&file, &keys()).unwrap();
            let index = reader.page_index(0, 1).unwrap().offset_index.unwrap();
            let page = &index.page_locations[0];
            let last = (page.offset + i64::from(page.compressed_page_size) - 1) as usize;
            let mut changed = file.to_vec();
            changed[last] ^= 1;
            let refused = read_with(open(&changed.into(), &keys()).unwrap()).unwrap_err();
            assert!(refused.to_string().contains("CRC-32"), "{name}: {refused}");
        }
    }
}

#[test]
fn more_row_groups_than_their_numbers_can_say_are_refused_when_written() {
    // A row group a row.
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..32_769));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let options = WriteOptions::new()
        .with_row_group_rows(1)
        .with_encryption(Encryption::new(key(FOOTER_KEY)));
    assert!(write(options.clone(), &[batch.slice(0, 32_768)]).is_ok());
    let refused = write(options, &[batch]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("at most 32,768 row groups"), "{refused}");
}

#[test]
fn more_pages_in_a_chunk_than_their_numbers_can_say_are_refused_when_written() {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..32_769));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let options =
        WriteOptions::new().with_page_rows(1).with_encryption(Encryption::new(key(FOOTER_KEY)));
    let file = write(options.clone(), &[batch.slice(0, 32_768)]).unwrap();
    assert_eq!(open(&file, &keys()).unwrap().rows().unwrap(), 32_768);
    let refused = write(options, &[batch]).unwrap_err();
    assert!(refused.to_string().contains("at most 32,768 pages"), "{refused}");
    assert!(refused.to_string().contains("row group 0"), "{refused}");
}

/// The `parquet` crate knows AES_GCM_V1 alone, with keys of 128 and 256 bits.
#[test]
fn the_parquet_crate_reads_what_we_encrypt_and_we_what_it_encrypts() {
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ArrowReaderOptions;
    use parquet::encryption::decrypt::FileDecryptionProperties;
    use parquet::encryption::encrypt::FileEncryptionProperties;
    use parquet::file::properties::WriterProperties;

    for footer_key in [FOOTER_KEY.to_vec(), FOOTER_KEY.repeat(2)] {
        for plaintext_footer in [false, true] {
            for has_prefix in [false, true] {
                let mut encryption = Encryption::new(key(&footer_key))
                    .with_plaintext_footer(plaintext_footer)
                    .with_column_key("secret", key(COLUMN_KEY))
                    .with_column_key("nested.text", key(COLUMN_KEY))
                    .with_unlisted_columns(UnlistedColumns::FooterKey);
                let mut theirs = FileDecryptionProperties::builder(footer_key.clone())
                    .with_column_key("secret", COLUMN_KEY.to_vec())
                    .with_column_key("nested.text", COLUMN_KEY.to_vec());
                if has_prefix {
                    encryption = encryption.with_aad_prefix("prefix");
                    theirs = theirs.with_aad_prefix(b"prefix".to_vec());
                }
                // That crate asks for bloom filters and indexes only where it is told to.
                let file = write(options(Some(encryption)), &[batch(0, 250)]).unwrap();
                let of = ArrowReaderOptions::new()
                    .with_file_decryption_properties(theirs.build().unwrap())
                    .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required);
                let found = crate::write::round_trip::theirs_with(&file, of).unwrap();
                assert_eq!(rows(&found), rows(&[batch(0, 250)]), "{plaintext_footer} {has_prefix}");

                let mut encryption = FileEncryptionProperties::builder(footer_key.clone())
                    .with_plaintext_footer(plaintext_footer);
                let mut keys = Decryption::new().with_footer_key(key(&footer_key));
                if has_prefix {
                    encryption = encryption.with_aad_prefix(b"prefix".to_vec());
                    encryption = encryption.with_aad_prefix_storage(!plaintext_footer);
                    keys = keys.with_aad_prefix("prefix");
                }
                let ids = arrow_array_60::Int64Array::from_iter_values(0..1_000);
                let ids: arrow_array_60::ArrayRef = Arc::new(ids);
                let theirs = arrow_array_60::RecordBatch::try_from_iter([("id", ids)]).unwrap();
                let properties = WriterProperties::builder()
                    .set_bloom_filter_enabled(true)
                    .set_data_page_row_count_limit(100)
                    .set_write_batch_size(100)
                    .with_file_encryption_properties(encryption.build().unwrap())
                    .build();
                let mut out = Vec::new();
                let mut writer =
                    ArrowWriter::try_new(&mut out, theirs.schema(), Some(properties)).unwrap();
                writer.write(&theirs).unwrap();
                writer.close().unwrap();
                let reader = open(&out.into(), &keys).unwrap();
                let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
                let ids = RecordBatch::try_from_iter([("id", ids)]).unwrap();
                assert_eq!(
                    rows(&read_with(reader.clone()).unwrap()),
                    rows(std::slice::from_ref(&ids))
                );
                let one = reader.filter(col("id").eq(777));
                let progress = one.progress().clone();
                assert_eq!(rows(&read_with(one).unwrap()), rows(&[ids.slice(777, 1)]));
                // It leaves bloom filters in plain text, which are not trusted.
                assert_eq!(progress.indexes_ignored(), 1);
            }
        }
    }
}
