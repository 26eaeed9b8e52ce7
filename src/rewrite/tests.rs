//! Tests files of many writers, through every protection and back.

mod moved_chunks;
#[cfg(feature = "snappy")]
mod recompressed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use bytes::Bytes;

use super::*;
use crate::crypt::{Algorithm, Decryption, Encryption, Key, UnlistedColumns};
use crate::error::{ErrorKind, LimitKind, Result};
use crate::format::{ColumnChunk, FileMetaData};
use crate::io::Sink;
use crate::limits::Limits;
use crate::reader::Reader;
use crate::thrift::{self, Write};
use crate::{BloomOptions, PageVersion, WriteOptions, Writer};

/// Bytes, and whether they are whole.
#[derive(Clone, Default)]
struct Memory(Arc<std::sync::Mutex<Vec<u8>>>, Arc<AtomicBool>);

impl Sink for Memory {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.lock().unwrap().extend_from_slice(&bytes);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.1.store(true, Ordering::Relaxed);
        Ok(())
    }
}

fn recrypted(reader: &Reader, encryption: Option<&Encryption>) -> Result<Bytes> {
    let sink = Memory::default();
    let done = recrypt(reader, sink.clone(), encryption);
    assert_eq!(sink.1.load(Ordering::Relaxed), done.is_ok(), "finished where nothing is wrong");
    let bytes = Bytes::from(sink.0.lock().unwrap().clone());
    assert_eq!(done?.bytes, bytes.len() as u64);
    Ok(bytes)
}

fn key(n: u8, len: usize) -> Key {
    Key::new(&vec![n; len]).unwrap()
}

fn plain(bytes: &Bytes) -> Reader {
    Reader::new(bytes.clone()).unwrap()
}

fn with_keys(bytes: &Bytes, keys: &Decryption) -> Result<Reader> {
    Reader::with_keys(bytes.clone(), Limits::default(), keys)
}

fn testdata() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "parquet")).collect();
    files.sort();
    assert!(files.len() > 20);
    files
}

/// The protections of two files, and the keys to read them.
fn protections(reader: &Reader) -> Vec<(Encryption, Decryption)> {
    let path = reader.metadata().schema().leaf(0).unwrap().path.dotted();
    let mut out = Vec::new();
    for (i, len) in [16, 24, 32, 16, 24, 32, 16, 24].into_iter().enumerate() {
        let (footer, column) = (key(1, len), key(2, len));
        let mut encryption = Encryption::new(footer.clone()).with_plaintext_footer(i & 1 != 0);
        let mut keys = Decryption::new().with_footer_key(footer);
        if i & 2 != 0 {
            encryption = encryption.with_algorithm(Algorithm::AesGcmCtrV1).with_aad_prefix("here");
            keys = keys.with_aad_prefix("here").with_unauthenticated_pages(true);
        }
        if i & 4 != 0 {
            let unlisted =
                if i & 2 != 0 { UnlistedColumns::Plain } else { UnlistedColumns::FooterKey };
            encryption =
                encryption.with_column_key(&path, column.clone()).with_unlisted_columns(unlisted);
            keys = keys.with_column_key(&path, column);
        }
        out.push((encryption, keys));
    }
    out
}

fn rows(reader: &Reader) -> Vec<RecordBatch> {
    let reader = reader.clone().threads(1);
    reader.batches().unwrap().map(|batch| batch.unwrap()).collect()
}

/// All pages of the file as they are stored.
fn pages(reader: &Reader) -> Vec<Vec<Bytes>> {
    let footer = reader.metadata();
    let leaves = footer.schema().leaves_len();
    let chunks = (0..footer.row_groups()).flat_map(|i| (0..leaves).map(move |leaf| (i, leaf)));
    let pages = |(i, leaf)| reader.stored_pages(i, leaf).unwrap().map(|page| page.unwrap().bytes);
    chunks.map(|place| pages(place).collect()).collect()
}

/// Indexes and bloom filters, without places.
fn indexes(reader: &Reader) -> Vec<String> {
    let footer = reader.metadata();
    let mut out = Vec::new();
    for i in 0..footer.row_groups() {
        for leaf in 0..footer.schema().leaves_len() {
            let mut index = reader.page_index(i, leaf).unwrap();
            for location in
                index.offset_index.iter_mut().flat_map(|index| &mut index.page_locations)
            {
                (location.offset, location.compressed_page_size) = (0, 0);
            }
            let meta = footer.column_chunk(i, leaf).unwrap().meta_data.unwrap();
            let bloom = meta.bloom_filter_offset.zip(meta.bloom_filter_length).map(|(at, len)| {
                let at = u64::try_from(at).unwrap();
                reader.source().read(at..at + u64::try_from(len).unwrap()).unwrap()
            });
            out.push(format!("{index:?} {bloom:?}"));
        }
    }
    out
}

/// The footer without places, and without sizes that old writers have wrong.
fn without_places(reader: &Reader) -> FileMetaData {
    let mut metadata = reader.metadata().index().to_file_meta_data().unwrap();
    for row_group in &mut metadata.row_groups {
        (row_group.file_offset, row_group.ordinal) = (None, None);
        row_group.total_compressed_size = None;
        for chunk in &mut row_group.columns {
            let mut meta = chunk.meta_data.take().unwrap();
            meta.data_page_offset = 0;
            meta.dictionary_page_offset = None;
            meta.index_page_offset = None;
            (meta.bloom_filter_offset, meta.bloom_filter_length) = (None, None);
            meta.total_compressed_size = 0;
            *chunk = ColumnChunk { meta_data: Some(meta), ..ColumnChunk::default() };
        }
    }
    // 1 and 2 mean the same.
    metadata.version = 1;
    metadata
}

/// Through every protection but `left_out`, from one to the next, and back.
fn comes_back(original: &Reader, name: &str, left_out: impl Fn(usize) -> bool) {
    let (all_rows, all_pages, all_indexes) = (rows(original), pages(original), indexes(original));
    let mut before = original.clone();
    for (i, (encryption, keys)) in protections(original).into_iter().enumerate() {
        if left_out(i) {
            continue;
        }
        let file =
            recrypted(&before, Some(&encryption)).unwrap_or_else(|e| panic!("{name} {i}: {e}"));
        let encrypted = with_keys(&file, &keys).unwrap();
        assert_eq!(rows(&encrypted), all_rows, "{name} {i}");
        let decrypted = plain(&recrypted(&encrypted, None).unwrap());
        assert!(pages(&decrypted) == all_pages, "{name} {i}");
        assert_eq!(indexes(&decrypted), all_indexes, "{name} {i}");
        assert_eq!(rows(&decrypted), all_rows, "{name} {i}");
        assert_eq!(without_places(&decrypted), without_places(original), "{name} {i}");
        before = encrypted;
    }
}

#[test]
fn files_of_many_writers_come_back_from_other_protection() {
    for (n, path) in testdata().into_iter().enumerate() {
        let name = path.display().to_string();
        // Each has two of them, and each of them many files.
        comes_back(&Reader::open(&path).unwrap(), &name, |i| i % 4 != n % 4);
    }
}

/// Some columns of trips.parquet, in small pages, with bloom filters.
fn small(version: PageVersion, rows: u64) -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/trips.parquet");
    let reader = Reader::open(path).unwrap().limit(rows);
    let mut options = WriteOptions::new()
        .with_page_version(version)
        .with_row_group_rows(rows / 2)
        .with_page_rows(rows as usize / 5);
    for field in reader.schema().unwrap().fields() {
        if !field.data_type().is_nested() {
            let bloom = BloomOptions::default();
            options = options.with_column(field.name(), |of| of.with_bloom(bloom));
        }
    }
    let mut out = Vec::new();
    let sink = crate::io::WriteSink(&mut out);
    let mut writer = Writer::new(sink, reader.schema().unwrap(), options).unwrap();
    for batch in reader.batches().unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.finish().unwrap();
    out.into()
}

#[test]
fn page_indexes_and_bloom_filters_come_back_from_every_protection() {
    for version in [PageVersion::V1, PageVersion::V2] {
        let original = plain(&small(version, 400));
        let found = indexes(&original).concat();
        assert!(found.contains("Some(b\"") && found.contains("PageLocation"), "{found}");
        comes_back(&original, "trips", |_| false);
    }
}

#[test]
fn a_file_that_stays_in_plain_text_is_copied_to_itself() {
    let file = small(PageVersion::V2, 100);
    let once = recrypted(&plain(&file), None).unwrap();
    assert_eq!(recrypted(&plain(&once), None).unwrap(), once);
    assert!(pages(&plain(&once)) == pages(&plain(&file)));
}

#[test]
fn a_map_is_copied_with_key_and_value_whichever_is_chosen() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in 0..3 {
        for entry in 0..row {
            maps.keys().append_value(format!("key {entry}"));
            maps.values().append_value(10 * row + entry);
        }
        maps.append(true).unwrap();
    }
    let batch = RecordBatch::try_from_iter([("m", Arc::new(maps.finish()) as _)]).unwrap();
    let mut out = Vec::new();
    let mut writer =
        Writer::new(crate::io::WriteSink(&mut out), batch.schema(), WriteOptions::new()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let whole = plain(&out.into());
    for leaf in 0..2 {
        let path = whole.metadata().schema().leaf_node(leaf).unwrap().path().dotted();
        let mut out = Vec::new();
        let chosen = whole.clone().project([&path]).unwrap();
        Rewrite::new([chosen]).run(crate::io::WriteSink(&mut out)).unwrap();
        let rows = plain(&out.into()).batches().unwrap().next().unwrap().unwrap();
        assert_eq!(rows.column(0), batch.column(0), "{path}");
    }
}

/// One row group of two columns, encrypted.
fn tiny(encryption: &Encryption) -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/trips.parquet");
    let reader = Reader::open(path).unwrap().project(["id"]).unwrap().limit(20);
    let mut out = Vec::new();
    let options =
        WriteOptions::new().with_column("id", |of| of.with_bloom(BloomOptions::default()));
    let sink = crate::io::WriteSink(&mut out);
    let mut writer = Writer::new(sink, reader.schema().unwrap(), options).unwrap();
    for batch in reader.batches().unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.finish().unwrap();
    recrypted(&plain(&out.into()), Some(encryption)).unwrap()
}

#[test]
fn a_file_that_was_changed_is_never_taken() {
    for has_plaintext_footer in [false, true] {
        let encryption = Encryption::new(key(1, 16)).with_plaintext_footer(has_plaintext_footer);
        let file = tiny(&encryption);
        let keys = Decryption::new().with_footer_key(key(1, 16));
        let again = |file: Bytes| recrypted(&with_keys(&file, &keys)?, None);
        let expected = again(file.clone()).unwrap();
        for i in 0..file.len() {
            for bit in [0, 7] {
                let mut changed = file.to_vec();
                changed[i] ^= 1 << bit;
                // The length of the footer may say that it begins earlier, in what is not read.
                if let Ok(taken) = again(changed.into()) {
                    assert_eq!(taken, expected, "byte {i}, bit {bit}");
                }
            }
        }
        for len in 0..file.len() {
            assert!(again(file.slice(..len)).is_err(), "{len} bytes");
        }
    }
}

#[test]
fn bytes_of_a_plain_file_may_be_anything() {
    let file = small(PageVersion::V1, 10);
    let encryption = Encryption::new(key(1, 16));
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    for i in 0..file.len() {
        let mut changed = file.to_vec();
        changed[i] ^= if i % 2 == 0 { 0x81 } else { 0xff };
        let Ok(reader) = Reader::with_limits(Bytes::from(changed), limits.clone()) else {
            continue;
        };
        let _ = recrypt(&reader, Memory::default(), Some(&encryption));
    }
}

#[test]
fn a_page_whose_checksum_is_wrong_gets_no_other() {
    let file = small(PageVersion::V1, 100);
    let reader = plain(&file);
    let page = reader.stored_pages(0, 0).unwrap().next().unwrap().unwrap();
    assert!(page.header.crc.is_some());
    let mut changed = file.to_vec();
    changed[page.offset as usize + page.header_len] ^= 1;
    for encryption in [None, Some(&Encryption::new(key(1, 16)))] {
        let refused = recrypted(&plain(&changed.clone().into()), encryption).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Malformed(_)), "{refused}");
        assert!(refused.to_string().contains("CRC-32"), "{refused}");
    }
}

#[test]
fn keys_that_are_missing_are_an_error_that_names_the_column() {
    let reader = plain(&small(PageVersion::V1, 100));
    let encryption = Encryption::new(key(1, 16)).with_column_key("id", key(2, 16));
    let file = recrypted(&reader, Some(&encryption)).unwrap();
    let keys = Decryption::new().with_footer_key(key(1, 16));
    let refused = recrypted(&with_keys(&file, &keys).unwrap(), None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("column id"), "{refused}");
    let wrong = keys.with_column_key("id", key(3, 16));
    let refused = with_keys(&file, &wrong).and_then(|reader| recrypted(&reader, None)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
}

#[test]
fn a_footer_whose_signature_was_not_verified_is_not_signed_anew() {
    let reader = plain(&small(PageVersion::V1, 100));
    let encryption =
        Encryption::new(key(1, 16)).with_column_key("id", key(2, 16)).with_plaintext_footer(true);
    let file = recrypted(&reader, Some(&encryption)).unwrap();
    let without = Decryption::new().with_column_key("id", key(2, 16)).with_unverified_footers(true);
    for reader in [with_keys(&file, &without).unwrap(), plain(&file)] {
        let refused = recrypted(&reader, None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Crypto);
        assert!(refused.to_string().contains("signature"), "{refused}");
    }
}

#[test]
fn chunks_beyond_the_memory_are_refused() {
    let file = small(PageVersion::V1, 1_000);
    let metadata = plain(&file).metadata().index().to_file_meta_data().unwrap();
    let chunks = metadata.row_groups.iter().flat_map(|row_group| &row_group.columns);
    let sizes = chunks.map(|chunk| chunk.meta_data.as_ref().unwrap().total_compressed_size);
    let memory_bytes = u64::try_from(sizes.max().unwrap()).unwrap() - 1;
    let limits = Limits { memory_bytes, ..Limits::default() };
    let reader = Reader::with_limits(file, limits).unwrap();
    let refused = recrypted(&reader, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit(LimitKind::Memory));
}

/// The file with another footer.
fn with_footer(file: &Bytes, change: impl FnOnce(&mut FileMetaData)) -> Bytes {
    let reader = plain(file);
    let mut metadata = reader.metadata().index().to_file_meta_data().unwrap();
    change(&mut metadata);
    let end = file.len() - 8 - reader.metadata().index().byte_len();
    let mut out = file[..end].to_vec();
    metadata.write(&mut out).unwrap();
    let len = u32::try_from(out.len() - end).unwrap();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(b"PAR1");
    out.into()
}

#[test]
fn an_offset_index_that_lists_other_pages_is_malformed() {
    let file = small(PageVersion::V1, 400);
    let swapped = with_footer(&file, |metadata| {
        let [first, second, ..] = metadata.row_groups.as_mut_slice() else { panic!() };
        let (a, b) = (&mut first.columns[0], &mut second.columns[0]);
        std::mem::swap(&mut a.offset_index_offset, &mut b.offset_index_offset);
        std::mem::swap(&mut a.offset_index_length, &mut b.offset_index_length);
    });
    let refused = recrypted(&plain(&swapped), None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Malformed(crate::Spec::PageIndex), "{refused}");
}

#[test]
fn fields_of_protected_columns_that_are_not_known_are_not_in_a_plaintext_footer() {
    // A statistic of tomorrow: field 99 of the metadata of the chunk.
    let secret = b"SENTINEL OF TOMORROW";
    let file = with_footer(&small(PageVersion::V1, 100), |metadata| {
        let chunk = &mut metadata.row_groups[0].columns[0];
        let mut bytes = Vec::new();
        chunk.meta_data.as_ref().unwrap().write(&mut bytes).unwrap();
        // Instead of the end: a header with a long id, the bytes, the end.
        bytes.pop();
        bytes.extend_from_slice(&[0x08, 0xc6, 0x01, secret.len() as u8]);
        bytes.extend_from_slice(secret);
        bytes.push(0);
        chunk.meta_data = Some(thrift::Read::read(&mut thrift::ThriftReader::new(&bytes)).unwrap());
    });
    let has_secret = |file: &[u8]| file.windows(secret.len()).any(|window| window == secret);
    assert!(has_secret(&file));
    let encryption = Encryption::new(key(1, 16)).with_plaintext_footer(true);
    let encrypted = recrypted(&plain(&file), Some(&encryption)).unwrap();
    assert!(!has_secret(&encrypted));
    let keys = Decryption::new().with_footer_key(key(1, 16));
    assert!(has_secret(&recrypted(&with_keys(&encrypted, &keys).unwrap(), None).unwrap()));
}

#[test]
fn two_files_of_one_source_share_no_module() {
    let reader = plain(&small(PageVersion::V1, 100));
    let encryption = Encryption::new(key(1, 16));
    let [a, b] = [0, 1].map(|_| recrypted(&reader, Some(&encryption)).unwrap());
    // Both begin with the magic number, and the first module, with its length.
    assert_ne!(a[8..64], b[8..64]);
}
