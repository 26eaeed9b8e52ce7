//! Random tables of every type, written with random options: the rows are those that were written,
//! the file states nothing false, and it does not depend on the number of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use marquetry::check::{CheckLevel, Checker, Severity};
use marquetry::crypt::{Algorithm, Decryption, Encryption};
use marquetry::io::{AsyncSink, TempFolder, WriteSink};
use marquetry::write::{SpillFile, SpillStore};
use marquetry::{AsyncWriter, Reader, Result, RowGroupEncoder, WriteOptions, Writer};
use marquetry_testkit::cells::{Cell, columns};
use marquetry_testkit::generate::{Case, case_of};
use marquetry_testkit::mutants::paths::block_on;

use super::crypt::key;
use super::reading::{limits, open, rows};
use crate::input::{Input, Output};

// Bits of the input: written once more with little memory or encrypted, and how.
const SMALL: u8 = 1;
const ENCRYPTED: u8 = 2;
const CTR: u8 = 4;
const PLAIN_FOOTER: u8 = 8;
const TWO_THREADS: u8 = 16;

pub fn run(data: &[u8]) {
    _ = spilled(data);
}

/// Runs it, and returns the number of temporary files.
fn spilled(data: &[u8]) -> usize {
    let mut input = Input::new(data);
    let (of_schema, of_options) = (u64::from(input.u16()), u64::from(input.u16()));
    let count = usize::from(input.u8() % 4);
    let batches: Vec<u64> = (0..count).map(|_| input.u64()).collect();
    let flags = input.u8();
    let case = case_of(of_schema, of_options, &batches);
    let reader = open(case.file.clone()).unwrap_or_else(|e| panic!("{e}: {}", case.name));
    let found = rows(&reader).unwrap_or_else(|e| panic!("{e}: {}", case.name));
    let name = &case.name;
    let expected = columns(&case.schema, &case.batches);
    for (i, (found, expected)) in
        columns(&case.schema, &found.batches).iter().zip(&expected).enumerate()
    {
        assert!(found == expected, "column {i}: {name}");
    }
    assert_true(&case.file, name);
    let one = written(&case, &case.options, 1);
    assert!(one == written(&case, &case.options, 2), "two threads write another file: {name}");
    assert!(one == written_asynchronously(&case), "the asynchronous writer's differs: {name}");
    if flags & (SMALL | ENCRYPTED) > 0 { small_or_encrypted(&case, flags, &expected) } else { 0 }
}

/// The number of temporary files that were made.
#[derive(Debug, Clone, Default)]
struct Counted(Arc<AtomicUsize>);

impl SpillStore for Counted {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        TempFolder::of_system().create()
    }
}

/// Writes with little memory or encrypted: the rows are the same. Returns the number of temporary
/// files.
fn small_or_encrypted(case: &Case, flags: u8, expected: &[Vec<Cell>]) -> usize {
    let mut options = case.options.clone();
    let files = Counted::default();
    if flags & SMALL > 0 {
        options = options.with_memory(1 << 12).with_spill(files.clone());
    }
    let is = |flag| flags & flag > 0;
    let (is_encrypted, is_ctr, is_footer_plain) = (is(ENCRYPTED), is(CTR), is(PLAIN_FOOTER));
    if is_encrypted {
        let algorithm = if is_ctr { Algorithm::AesGcmCtrV1 } else { Algorithm::AesGcmV1 };
        let encryption = Encryption::new(key(7)).with_algorithm(algorithm);
        options = options.with_encryption(encryption.with_plaintext_footer(is_footer_plain));
    }
    let file = Bytes::from(written(case, &options, 1 + usize::from(is(TWO_THREADS))));
    let keys = Decryption::new()
        .with_footer_key(key(7))
        .with_unauthenticated_pages(is_ctr)
        .with_plaintext_files(!is_encrypted);
    if is_encrypted && !is_footer_plain {
        assert!(open(file.clone()).is_err(), "a footer without its key");
    }
    let reader = Reader::with_keys(file, limits(), &keys).expect("a file");
    let found = rows(&reader).unwrap_or_else(|e| panic!("{e}: {}", case.name));
    assert!(columns(&case.schema, &found.batches) == expected, "{flags}: {}", case.name);
    files.0.load(Ordering::Relaxed)
}

/// Checks that the file states nothing false.
fn assert_true(file: &Bytes, name: &str) {
    let mut found = Vec::new();
    let checker = Checker::new(file.clone()).level(CheckLevel::Truth);
    checker.run(|finding| found.push(finding)).expect("a check");
    found.retain(|finding| finding.severity() > Severity::Note);
    assert!(found.is_empty(), "{}: {name}", found[0]);
}

fn written(case: &Case, options: &WriteOptions, threads: usize) -> Vec<u8> {
    let encoder = RowGroupEncoder::new(case.schema.clone(), options.clone());
    let encoder = encoder.and_then(|encoder| encoder.with_threads(threads)).expect("an encoder");
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    for batch in &case.batches {
        writer.write(batch).expect("rows");
    }
    writer.into_inner().expect("a file").1
}

/// Keeps what is written.
struct Kept<'a>(&'a mut Vec<u8>);

impl AsyncSink for Kept<'_> {
    fn write(&mut self, bytes: Vec<Bytes>) -> futures_util::future::BoxFuture<'_, Result<()>> {
        bytes.iter().for_each(|piece| self.0.extend_from_slice(piece));
        Box::pin(async { Ok(()) })
    }

    fn finish(&mut self) -> futures_util::future::BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn abort(&mut self) -> futures_util::future::BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

fn written_asynchronously(case: &Case) -> Vec<u8> {
    let mut out = Vec::new();
    let encoder = RowGroupEncoder::new(case.schema.clone(), case.options.clone());
    let encoder = encoder.and_then(|encoder| encoder.with_threads(1)).expect("an encoder");
    let done = block_on(async {
        let mut writer = AsyncWriter::over(Kept(&mut out), encoder);
        for batch in &case.batches {
            writer.write(batch).await?;
        }
        writer.finish().await
    });
    done.expect("a file");
    out
}

pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |i: u16| {
        let head = Output::default().u16(i).u16(i * 7).u8(1 + (i % 3) as u8);
        let numbers = (0..=i % 3).map(|k| u64::from(i + 100 * k));
        let head = numbers.fold(head, Output::u64);
        head.u8((i * 5 % 32) as u8).bytes()
    };
    (0..60).map(seed).collect()
}

#[cfg(test)]
#[test]
fn rows_spill() {
    assert!(seeds().iter().any(|seed| spilled(seed) > 0));
}
