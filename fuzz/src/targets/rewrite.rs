//! Rewrites of files that may be broken, by random plans: rows that can be read before can be read
//! after, and are the same; and what is left of a broken file is salvaged.

use std::sync::{Arc, LazyLock};

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_schema::{FieldRef, Schema, SchemaRef};
use marquetry::crypt::{Decryption, Encryption};
use marquetry::io::WriteSink;
use marquetry::rewrite::{Fill, Rewrite, RowSorter, Salvage, SplitBy};
use marquetry::{
    BloomOptions, Compression, ErrorKind, PageVersion, Reader, Result, SortColumn, StatisticsLevel,
    WriteOptions,
};
use marquetry_testkit::cells::{Cell, cells};

use super::crypt::key;
use super::reading::{Rows, assert_same, limits, one, open, rows, within_memory};
use crate::input::{Input, Output};
use crate::seeds::CODECS;

/// Rows that are compared as text, and their bytes.
const MAX_SORTED: usize = 2000;
const MAX_SORTED_BYTES: usize = 4 << 20;

// The first byte of the input: a rewrite, or one of these.
const WAYS: u8 = 4;
const FILL: u8 = 2;
const SALVAGE: u8 = 3;
/// Beside the number of a rewrite: it changes the order of the rows, or the columns.
const REARRANGE: u8 = 8;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, mut rng) = (input.u8(), input.rng());
    let file = Bytes::copy_from_slice(input.rest());
    if kind % WAYS == SALVAGE {
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
    if kind & REARRANGE > 0 && kind % WAYS < FILL {
        return rearranged(&reader, &before, &mut rng);
    }
    let Some(after) = made(&reader, kind, &mut rng) else { return };
    let reader = open(after).expect("a file that was written");
    let after = rows(&reader).expect("rows that were written");
    assert_eq!(after.count(), before.count());
    assert_same_columns(&before, &after);
    if schema(&before) == schema(&after) {
        assert_same(&before.batches, &after.batches, "rewritten");
    }
}

fn schema(rows: &Rows) -> Option<SchemaRef> {
    rows.batches.first().map(RecordBatch::schema)
}

/// Checks that columns have their names and types, whatever their metadata.
fn assert_same_columns(before: &Rows, after: &Rows) {
    let (Some(before), Some(after)) = (schema(before), schema(after)) else { return };
    let is_same = |(a, b): (&FieldRef, &FieldRef)| {
        a.name() == b.name() && a.data_type().equals_datatype(b.data_type())
    };
    let (a, b) = (before.fields(), after.fields());
    assert!(a.len() == b.len() && a.iter().zip(b).all(is_same), "{b:?}, and not {a:?}");
}

/// Rows of a file once or twice, in another order or encrypted: none is lost, and none is new.
fn rearranged(reader: &Reader, before: &Rows, rng: &mut Rng) {
    let bytes: usize = before.batches.iter().map(RecordBatch::get_array_memory_size).sum();
    if before.count() > MAX_SORTED || bytes > MAX_SORTED_BYTES {
        return;
    }
    let schema = reader.metadata().schema();
    let path = |leaf| schema.leaf_node(leaf).expect("a leaf").path().dotted();
    let mut paths: Vec<String> = (0..schema.leaves_len()).map(path).collect();
    let Some(first) = before.batches.first() else { return };
    paths.retain(|path| RowSorter::new(first.schema(), [SortColumn::ascending(path)]).is_ok());
    rng.shuffle(&mut paths);
    let mut order = |path: &String| {
        let order = if rng.bool() { SortColumn::ascending } else { SortColumn::descending }(path);
        if rng.bool() { order.nulls_first() } else { order }
    };
    let by: Vec<SortColumn> = paths.iter().take(2).map(&mut order).collect();
    sorted_twice(&before.batches, &by);
    united(reader, before, rng);
    parts(reader, before, rng);
    let copies = rng.usize(1..3);
    let rewrite = |of: &Reader| Rewrite::new(vec![of.clone(); copies]);
    let way = rng.u8(..5);
    let rewrite = match way {
        0 => rewrite(reader).sort_by(by.clone()),
        1 => {
            let mut sorted = Vec::new();
            let sort = Rewrite::new([reader.clone()]).sort_by(by.clone());
            if sort.run(WriteSink(&mut sorted)).is_err() {
                return;
            }
            rewrite(&open(sorted).expect("what was sorted")).merge_by(by.clone())
        }
        2 => rewrite(reader).sort_row_groups_by(by.clone()),
        3 => rewrite(reader).encryption(Encryption::new(key(7))),
        _ => rewrite(reader).number_fields().set_key_value("k", "v").forget_order(true),
    };
    let rewrite = rewrite.by_name(rng.bool()).options(options(rng));
    _ = rewrite.plan();
    let mut out = Vec::new();
    // Some types are read and not written.
    if rewrite.run(WriteSink(&mut out)).is_err() {
        return;
    }
    let keys = Decryption::new().with_footer_key(key(7)).with_plaintext_files(way != 3);
    let reader = Reader::with_keys(Bytes::from(out), limits(), &keys).expect("what was written");
    let after = rows(&reader.threads(1)).expect("rows that were written");
    assert_eq!(after.count(), before.count() * copies, "of way {way}");
    assert_same_columns(before, &after);
    let all = vec![before.batches.clone(); copies].concat();
    let (mut found, mut expected) = (lines(&after.batches), lines(&all));
    if way < 2 && !by.is_empty() {
        expected = sorted(&all, &by, 64 << 20).expect("rows that were sorted").0;
    } else {
        found.sort_unstable();
        expected.sort_unstable();
    }
    let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    assert!(found == expected, "of way {way}: {differs:?}");
}

/// Rows of the file and of another one, which may have columns of the same names.
fn united(reader: &Reader, before: &Rows, rng: &mut Rng) {
    static OTHERS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(crate::seeds::files);
    let other = open(OTHERS[rng.usize(..OTHERS.len())].clone()).expect("a file");
    let mut out = Vec::new();
    let rewrite = Rewrite::new([reader.clone(), other.clone()]).by_name(true);
    if rewrite.options(options(rng)).run(WriteSink(&mut out)).is_ok() {
        let after = rows(&open(out).expect("what was written")).expect("rows that were written");
        let other = rows(&other).expect("rows of a seed");
        assert_eq!(after.count(), before.count() + other.count());
        let (Some(after), Some(before), Some(other)) =
            (one(&after.batches), one(&before.batches), one(&other.batches))
        else {
            return;
        };
        let (first, second) = (0..before.num_rows(), before.num_rows()..after.num_rows());
        for (rows, of) in [(first, before), (second, other)] {
            assert_named(&after.slice(rows.start, rows.len()), &of);
        }
    }
}

/// Checks that columns have the values of those of their names, and that others are null.
fn assert_named(found: &RecordBatch, of: &RecordBatch) {
    for (field, column) in found.schema().fields().iter().zip(found.columns()) {
        let fields = of.schema();
        let named = fields.fields().iter().zip(of.columns());
        let mut named = named.filter(|(of, _)| of.name() == field.name());
        match (named.next(), named.next()) {
            (None, _) => assert_eq!(column.logical_null_count(), column.len(), "{field}"),
            (Some((of, expected)), None) if of.data_type().equals_datatype(field.data_type()) => {
                assert!(cells(column) == cells(expected), "{field} has other values");
            }
            // Widened, or one of several.
            _ => {}
        }
    }
}

/// Files of some columns, and of some rows each, have these columns and rows.
fn parts(reader: &Reader, before: &Rows, rng: &mut Rng) {
    let schema = reader.metadata().schema();
    let path = |leaf| schema.leaf_node(leaf).expect("a leaf").path().dotted();
    let chosen = (0..schema.leaves_len()).filter(|_| rng.bool()).map(path);
    if let Ok(chosen) = reader.clone().project(chosen.collect::<Vec<_>>()) {
        let expected = rows(&chosen).expect("columns that were read");
        if let Some(found) = of_parts(&[Rewrite::new([chosen]).options(options(rng))]) {
            assert_same_columns(&expected, &found);
            assert!(lines(&found.batches) == lines(&expected.batches), "of some columns");
        }
    }
    let by = match rng.u8(..3) {
        0 => SplitBy::Rows(rng.u64(1..100)),
        1 => SplitBy::Bytes(rng.u64(1..2000)),
        _ => SplitBy::Files(rng.u64(1..5)),
    };
    if let Ok(files) = Rewrite::new([reader.clone()]).split(by)
        && let Some(found) = of_parts(&files)
    {
        assert_same_columns(before, &found);
        assert!(lines(&found.batches) == lines(&before.batches), "split");
    }
}

/// The rows of these files; `None` if one cannot be written.
fn of_parts(files: &[Rewrite]) -> Option<Rows> {
    let mut all = Rows { batches: Vec::new(), is_all: true };
    for file in files {
        let mut out = Vec::new();
        file.run(WriteSink(&mut out)).ok()?;
        let rows = open(out).and_then(|reader| rows(&reader)).expect("rows that were written");
        all.batches.extend(rows.batches);
    }
    Some(all)
}

/// Rows sorted in memory are those that are sorted by way of temporary files; the bytes of these.
fn sorted_twice(batches: &[RecordBatch], by: &[SortColumn]) -> u64 {
    let Ok((in_memory, _)) = sorted(batches, by, 64 << 20) else { return 0 };
    match sorted(batches, by, 1 << 10) {
        Ok((spilled, bytes)) => {
            assert!(in_memory == spilled, "sorted by way of files: {} rows", spilled.len());
            bytes
        }
        // Arrow's IPC stores fewer types.
        Err(error) => {
            assert!(
                matches!(error.kind(), ErrorKind::Arrow | ErrorKind::Unsupported(_)),
                "{error}"
            );
            0
        }
    }
}

/// Sorted rows as text, and the bytes of temporary files.
fn sorted(batches: &[RecordBatch], by: &[SortColumn], memory: u64) -> Result<(Vec<String>, u64)> {
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let mut sorter = RowSorter::new(schema, by.iter().cloned())?.memory(memory);
    for batch in batches {
        // A batch is held whole.
        for start in (0..batch.num_rows()).step_by(20) {
            sorter.push(&batch.slice(start, 20.min(batch.num_rows() - start)))?;
        }
    }
    let rows = sorter.finish()?;
    let bytes = rows.spilled_bytes();
    Ok((lines(&rows.collect::<Result<Vec<_>>>()?), bytes))
}

/// Each row as text.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<Cell>> = batch.columns().iter().map(|of| cells(of)).collect();
        for row in 0..batch.num_rows() {
            let row: Vec<&Cell> = columns.iter().map(|column| &column[row]).collect();
            lines.push(format!("{row:?}"));
        }
    }
    lines
}

/// The file that a plan makes; `None` if it is refused.
fn made(reader: &Reader, kind: u8, rng: &mut Rng) -> Option<Bytes> {
    let mut out = Vec::new();
    if kind % WAYS == FILL {
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
        let head = Output::default().u8((i % 16) as u8).u16(i as u16);
        head.rest(&file).bytes()
    };
    files.map(seed).collect()
}

#[cfg(test)]
#[test]
fn rows_are_sorted_by_way_of_files() {
    let file = open(crate::logical::typed()).expect("a file");
    let batches = rows(&file).expect("rows").batches;
    assert!(sorted_twice(&batches, &[SortColumn::ascending("s")]) > 0);
}
