//! Rewrites of files that may be broken, by random plans: rows that can be read before can be read
//! after, and are the same; and what is left of a broken file is salvaged.

use bytes::Bytes;
use fastrand::Rng;
use marquetry::io::WriteSink;
use marquetry::rewrite::{Fill, Rewrite, Salvage};
use marquetry::{BloomOptions, Compression, PageVersion, Reader, StatisticsLevel, WriteOptions};

use super::reading::{Rows, assert_same, limits, open, rows, within_memory};
use crate::input::{Input, Output};
use crate::seeds::CODECS;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, mut rng) = (input.u8(), input.rng());
    let file = Bytes::copy_from_slice(input.rest());
    if kind % 4 == 3 {
        return salvage(&file);
    }
    let Ok(reader) = open(file.clone()) else { return };
    let Ok(before) = within_memory(file.len(), || rows(&reader)) else {
        // Copied bytes may hide the damage; reading them must not hurt.
        if let Some(after) = made(&reader, kind, &mut rng) {
            _ = open(after).and_then(|reader| rows(&reader));
        }
        return;
    };
    if !before.is_all {
        return;
    }
    let Some(after) = made(&reader, kind, &mut rng) else { return };
    let reader = open(after).expect("a file that was written");
    let after = rows(&reader).expect("rows that were written");
    assert_eq!(after.count(), before.count());
    let schema = |rows: &Rows| rows.batches.first().map(|batch| batch.schema());
    // A rewritten file has a hint of its types.
    if schema(&before) == schema(&after) {
        assert_same(&before.batches, &after.batches, "rewritten");
    }
}

/// The file that a plan makes; `None` if it is refused.
fn made(reader: &Reader, kind: u8, rng: &mut Rng) -> Option<Bytes> {
    let mut out = Vec::new();
    if kind % 4 == 2 {
        let fill = Fill::new(reader.clone()).decode_values(rng.bool());
        fill.run(WriteSink(&mut out)).ok()?;
        return Some(out.into());
    }
    let mut rewrite = Rewrite::new([reader.clone()]);
    if rng.bool() {
        rewrite = rewrite.codec("*", codec(rng));
    }
    if rng.u8(..3) == 0 {
        rewrite = rewrite.encode("*");
    }
    if rng.bool() {
        rewrite = rewrite.options(options(rng));
    }
    rewrite = rewrite.regroup(rng.u8(..4) == 0).verify_checksums(rng.u8(..4) == 0);
    _ = rewrite.plan();
    rewrite.run(WriteSink(&mut out)).ok()?;
    Some(out.into())
}

fn codec(rng: &mut Rng) -> Compression {
    CODECS[rng.usize(..CODECS.len())]
}

fn options(rng: &mut Rng) -> WriteOptions {
    let mut options = WriteOptions::new().with_page_rows(rng.usize(1..100));
    if rng.bool() {
        options = options.with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(..2)]);
    }
    if rng.u8(..4) == 0 {
        options = options.with_statistics(StatisticsLevel::Chunk);
    }
    if rng.bool() {
        options = options.with_row_group_rows(rng.u64(10..300));
    }
    if rng.bool() {
        options = options.with_column("*", |of| of.with_bloom(BloomOptions::default()));
    }
    options
}

/// Salvages a file, and reads the result.
fn salvage(file: &Bytes) {
    within_memory(file.len() * 4, || {
        let Ok(found) = Salvage::new(file.clone()).limits(limits()).find() else { return };
        let account = found.account();
        let recovered = account.rows_recovered();
        assert_eq!(account.file_bytes, file.len() as u64);
        let mut out = Vec::new();
        if found.write(WriteSink(&mut out)).is_ok() {
            let reader = open(out).expect("what was salvaged");
            assert_eq!(reader.file_rows().expect("rows"), recovered);
            _ = rows(&reader);
        }
    });
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().enumerate();
    let seed = |(i, file): (usize, Vec<u8>)| {
        let head = Output::default().u8((i % 4) as u8).u16(i as u16);
        head.rest(&file).bytes()
    };
    files.map(seed).collect()
}
