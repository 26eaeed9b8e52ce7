//! Encrypted files that are changed: of columns whose pages are authenticated come their own
//! values, or an error; no other ones.

use std::sync::OnceLock;

use arrow_array::RecordBatch;
use bytes::Bytes;
use marquetry::crypt::{Algorithm, Decryption, Encryption, Key};
use marquetry::io::WriteSink;
use marquetry::{Compression, Reader, Result, RowGroupEncoder, WriteOptions, Writer};
use marquetry_testkit::numbered;

use super::reading::{Rows, assert_same, limits, rows, within_memory};
use crate::input::{Input, Output};

struct Original {
    file: Vec<u8>,
    rows: RecordBatch,
    /// Columns whose pages are authenticated: those of another file are refused.
    authenticated: &'static [usize],
}

pub(super) fn key(byte: u8) -> Key {
    Key::new(&[byte; 16]).expect("a key")
}

/// The keys of the files of this target.
pub(super) fn keys() -> Decryption {
    Decryption::new()
        .with_footer_key(key(1))
        .with_column_key("t", key(2))
        .with_unauthenticated_pages(true)
}

/// Files of every mode.
fn originals() -> &'static [Original] {
    static ALL: OnceLock<Vec<Original>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for algorithm in [Algorithm::AesGcmV1, Algorithm::AesGcmCtrV1] {
            for is_plaintext in [false, true] {
                for has_column_key in [false, true] {
                    let mut encryption = Encryption::new(key(1))
                        .with_algorithm(algorithm)
                        .with_plaintext_footer(is_plaintext);
                    if has_column_key {
                        encryption = encryption.with_column_key("t", key(2));
                    }
                    all.push(original(
                        encryption,
                        match (algorithm, has_column_key) {
                            (Algorithm::AesGcmV1, false) => &[0, 1],
                            // A column without a key of its own is in plain text then.
                            (Algorithm::AesGcmV1, true) => &[1],
                            _ => &[],
                        },
                    ));
                }
            }
        }
        all
    })
}

/// The files, as they are written.
pub(super) fn files() -> impl Iterator<Item = Vec<u8>> {
    originals().iter().map(|original| original.file.clone())
}

fn original(encryption: Encryption, authenticated: &'static [usize]) -> Original {
    let rows = numbered::rows(0, 60);
    let options = WriteOptions::new()
        .with_encryption(encryption)
        .with_checksums(false)
        .with_compression(Compression::Uncompressed)
        .with_row_group_rows(25)
        .with_page_rows(10);
    let encoder = RowGroupEncoder::new(rows.schema(), options).expect("an encoder");
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    writer.write(&rows).expect("rows");
    Original { file: writer.into_inner().expect("a file").1, rows, authenticated }
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let of = &originals()[usize::from(input.u8()) % originals().len()];
    let mut file = of.file.clone();
    for _ in 0..1 + input.u8() % 4 {
        change(&mut file, &mut input);
    }
    let is_changed = file != of.file;
    let file = Bytes::from(file);
    let found = within_memory(file.len(), || read(&file, 1));
    match found {
        Err(error) => {
            _ = error.to_string();
            assert!(is_changed, "{error}");
        }
        Ok(found) if of.authenticated.is_empty() => {
            _ = (found, read(&file, 2));
        }
        Ok(found) => {
            let only = |rows: &RecordBatch| rows.project(of.authenticated).expect("these columns");
            let found: Vec<_> = found.batches.iter().map(only).collect();
            assert_same(&found, &[only(&of.rows)], "of another file");
        }
    }
}

fn read(file: &Bytes, threads: usize) -> Result<Rows> {
    let mut reader = Reader::with_keys(file.clone(), limits(), &keys())?.threads(threads);
    // A broken index is a report, never a reason not to read.
    _ = reader.load_page_indexes();
    rows(&reader)
}

/// One change: bytes, a copy of others, a swap, a cut.
fn change(file: &mut Vec<u8>, input: &mut Input<'_>) {
    let (kind, at, from) = (input.u8(), usize::from(input.u16()), usize::from(input.u16()));
    let bytes = input.part();
    if file.is_empty() {
        return;
    }
    // Near the end too, whatever the length.
    let at = if kind & 8 > 0 { file.len() - 1 - at % file.len() } else { at % file.len() };
    let from = from % file.len();
    match kind % 5 {
        0 => file[at..].iter_mut().zip(bytes).for_each(|(byte, new)| *byte ^= new),
        1 => file[at..].iter_mut().zip(bytes).for_each(|(byte, new)| *byte = *new),
        2 => {
            let len = bytes.len().min(file.len() - at.max(from));
            file.copy_within(from..from + len, at);
        }
        3 => file.truncate(at),
        _ => {
            let len = bytes.len().min(at.abs_diff(from)).min(file.len() - at.max(from));
            for i in 0..len {
                file.swap(at + i, from + i);
            }
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut seeds = Vec::new();
    for of in 0..8 {
        for kind in 0..10 {
            let len = rng.usize(1..60);
            let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
            let head = Output::default().u8(of).u8(0).u8(kind);
            seeds.push(head.u16(rng.u16(..3000)).u16(rng.u16(..3000)).part(&bytes).bytes());
        }
        // No change.
        seeds.push(Output::default().u8(of).bytes());
    }
    seeds
}
