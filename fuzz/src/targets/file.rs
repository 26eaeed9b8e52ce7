//! A whole file through the drivers: they agree, and what they give is valid.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch};
use bytes::Bytes;
use marquetry::arrow_schema::DataType;
use marquetry::file_reference::FileColumn;
use marquetry::io::WriteSink;
use marquetry::read::{OnDamage, VariantOutput};
use marquetry::schema::MatchBy;
use marquetry::variant::{VariantArray, VariantBuf, VariantPath, VariantShape};
use marquetry::{AsyncReader, ErrorKind, Reader, Result, WriteOptions, Writer};
use marquetry_testkit::cells::{Cell, cells};
use marquetry_testkit::mutants::paths::block_on;

use super::reading::{
    Rows, assert_agree, assert_same, assert_valid, limits, one, open, rows, rows_of, within_memory,
};
use super::variant::same;
use crate::input::{Input, Output};

// Bits of the input: the other checks that are made.
const VIEWS: u8 = 1;
const DAMAGED: u8 = 2;
const VARIANTS: u8 = 4;
const OTHER_FILES: u8 = 8;
const PROJECTED: u8 = 16;
const MISSING: u8 = 32;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (batch_rows, flags) = (input.u8(), input.u8());
    let views = flags & VIEWS > 0;
    let file = Bytes::copy_from_slice(input.rest());
    let Ok(reader) = within_memory(file.len(), || open(file.clone())) else { return };
    let reader = reader.views(views);
    let plain = within_memory(file.len(), || rows(&reader));
    let small = reader.clone().batch_rows(usize::from(batch_rows) + 1);
    assert_agree(&plain, &within_memory(file.len(), || rows(&small)), "small batches");
    if flags & DAMAGED > 0 {
        damaged(&reader, &plain, file.len());
    }
    if flags & VARIANTS > 0 {
        variants(&reader, &plain, file.len());
    }
    if flags & OTHER_FILES > 0 {
        other_files(reader.clone());
    }
    if flags & MISSING > 0 {
        within_memory(file.len(), || missing(&reader));
    }
    if let Ok(Rows { is_all: false, .. }) = plain {
        return;
    }
    assert_agree(&plain, &rows(&reader.clone().threads(2)), "threads");
    let stream = block_on(async { stream(&file, views).await });
    assert_agree(&plain, &stream, "asynchronous");
    if let Ok(plain) = &plain {
        let count = reader.count().expect("a count");
        assert_eq!(count, plain.count() as u64);
        last_rows(&reader, &plain.batches);
        plain.batches.iter().for_each(references);
        if flags & PROJECTED > 0 {
            projected(&reader, &plain.batches);
        }
    }
}

/// Reads that go on after damage give the same where there is none, and tell what is missing.
fn damaged(reader: &Reader, plain: &Result<Rows>, len: usize) {
    for on_damage in [OnDamage::NullPages, OnDamage::SkipRowGroup] {
        let reader = reader.clone().on_damage(on_damage);
        match (plain, within_memory(len, || with_damage(&reader))) {
            (Ok(plain), Ok((found, damage))) if plain.is_all => {
                assert_same(&plain.batches, &found.batches, "without damage");
                assert_eq!(damage, 0);
            }
            (Ok(plain), Err(error)) => assert!(!plain.is_all, "{error}, only without damage"),
            (Err(error), Ok((found, damage))) if found.is_all => {
                let is_limit = matches!(error.kind(), ErrorKind::Limit(_));
                assert!(damage > 0 || is_limit, "not told: {error}");
            }
            _ => {}
        }
    }
}

/// The rows, and the number of row groups and pages that are missing.
fn with_damage(reader: &Reader) -> Result<(Rows, usize)> {
    let mut batches = reader.batches()?;
    let found = rows_of(&mut batches)?;
    if found.is_all {
        let lost = batches.damage().iter().map(|group| group.rows - group.rows_returned);
        assert_eq!(found.count() as u64 + lost.sum::<u64>(), reader.file_rows()?, "of all rows");
    }
    Ok((found, batches.damage().len() + batches.nulled().len()))
}

/// A VARIANT column in other forms, and parts of it, have its values.
fn variants(reader: &Reader, plain: &Result<Rows>, len: usize) {
    let Ok(schema) = reader.schema() else { return };
    let Some(at) = schema.fields().iter().position(|field| VariantArray::is_variant(field)) else {
        return;
    };
    let plain = plain.as_ref().ok().filter(|plain| plain.is_all);
    let plain = plain.and_then(|plain| one(&plain.batches));
    let plain = plain.and_then(|all| VariantArray::new(all.column(at).as_struct()).ok());
    let values = plain.as_ref().and_then(valid_values);
    // As read; `None` if there is nothing to compare with.
    let found = |reader: Reader, at: usize| -> Option<ArrayRef> {
        let found = within_memory(len, || rows(&reader));
        values.as_ref()?;
        match found {
            Ok(found) => one(&found.batches).map(|all| all.column(at).clone()),
            Err(error) => panic!("{error}, of valid values"),
        }
    };
    let shape = VariantShape::parse("{a: string, d: {e: int8}}").expect("a shape");
    for output in [VariantOutput::Unshredded, VariantOutput::Shape(shape)] {
        let Some(found) = found(reader.clone().variants(output), at) else { continue };
        let found = valid_values(&VariantArray::new(found.as_struct()).expect("a VARIANT"));
        let (a, b) = (found.expect("valid values"), values.as_deref().unwrap_or_default());
        let is_same = a.iter().zip(b).all(|(a, b)| same(a.as_ref(), b.as_ref()));
        assert!(a.len() == b.len() && is_same, "{a:?}, and not {b:?}");
    }
    let json = within_memory(len, || rows(&reader.clone().variants(VariantOutput::Json)));
    if let (Some(values), Ok(json)) = (&values, json)
        && let Some(json) = one(&json.batches)
    {
        let text = |value: &VariantBuf| value.as_variant().to_json().expect("what is JSON");
        let cell = |value: &Option<VariantBuf>| match value {
            Some(value) => Cell::Bytes(text(value).into_bytes()),
            None => Cell::Null,
        };
        assert_eq!(cells(json.column(at)), values.iter().map(cell).collect::<Vec<_>>());
    }
    let name = schema.field(at).name();
    for (path, data_type) in [("a", DataType::Int64), ("c[1]", DataType::Utf8)] {
        let path: VariantPath = path.parse().expect("a path");
        let reader = reader.clone().variant_get(name, path.clone(), data_type.clone(), "part");
        if let Some(part) = found(reader, schema.fields().len())
            && let Some(plain) = &plain
        {
            let expected = plain.get(&path, &data_type).expect("a part of valid values");
            assert_eq!(cells(&part), cells(&expected), "{path} as {data_type}");
        }
    }
}

/// The values of all rows, if all are valid.
fn valid_values(column: &VariantArray) -> Option<Vec<Option<VariantBuf>>> {
    let values = (0..column.len()).map(|row| column.value(row)).collect::<Result<Vec<_>>>().ok()?;
    let is_valid = |value: &VariantBuf| value.as_variant().validate().is_ok();
    values.iter().flatten().all(is_valid).then_some(values)
}

/// A column by itself is that of all columns.
fn projected(reader: &Reader, batches: &[RecordBatch]) {
    let schema = reader.schema().expect("a schema");
    for (at, field) in schema.fields().iter().enumerate().take(4) {
        let name = field.name();
        let other = format!("{name} or another");
        assert!(schema.field_with_name(&other).is_ok() || reader.clone().project([other]).is_err());
        // Names may be those of several columns.
        let Ok(reader) = reader.clone().project([name]) else { continue };
        let found = rows(&reader).expect("a column that was read");
        let only = |batch: &RecordBatch| batch.project(&[at]).expect("this column");
        let expected: Vec<RecordBatch> = batches.iter().map(only).collect();
        assert_same(&found.batches, &expected, "alone");
    }
}

/// References of a batch to files.
fn references(batch: &RecordBatch) {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if FileColumn::is_file(field) {
            let Ok(files) = FileColumn::new(column.as_struct()) else { continue };
            assert_eq!(files.iter().count(), batch.num_rows());
            let checksums = files.iter().filter_map(|file| file.checksum);
            checksums.for_each(|checksum| _ = checksum.verify(b"some bytes"));
            _ = files.check();
        }
    }
}

/// Another file is read with the columns of this one: it has none of them, so all are null.
fn missing(reader: &Reader) {
    static OTHER: LazyLock<Bytes> = LazyLock::new(|| {
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..40));
        let batch = RecordBatch::try_from_iter([("only here\0", column)]).expect("a batch");
        let mut out = Vec::new();
        let sink = WriteSink(&mut out);
        let mut writer = Writer::new(sink, batch.schema(), WriteOptions::new()).expect("a writer");
        writer.write(&batch).expect("rows");
        writer.finish().expect("a footer");
        out.into()
    });
    let Ok(schema) = reader.schema() else { return };
    let other = open(OTHER.clone()).expect("a file").target(schema, MatchBy::Name);
    let Ok(mut batches) = other.and_then(|other| other.batches()) else { return };
    let mut count = 0;
    // A batch at a time: the type may state lists of millions of values.
    while let Ok(Some(batch)) = batches.next_batch() {
        count += batch.num_rows();
        assert!(count <= 40);
        for column in batch.columns() {
            assert_eq!(column.logical_null_count(), batch.num_rows());
        }
    }
}

/// The files that summaries can name.
const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata");

/// Chunks in other files, where the file is a summary.
fn other_files(reader: Reader) {
    let Ok(reader) = reader.files_below(TESTDATA) else { return };
    _ = within_memory(1 << 20, || rows(&reader));
}

/// A summary of two files of the test data.
fn summary() -> Vec<u8> {
    let names = ["codec_snappy.parquet", "codec_zstd.parquet"];
    let of = |name| Reader::open(format!("{TESTDATA}/{name}")).expect("a file");
    let footers = names.map(|name| of(name).metadata().index().to_file_meta_data());
    let footers = footers.map(|footer| footer.expect("a footer"));
    let summary = marquetry::write::summary(names.into_iter().zip(&footers)).expect("a summary");
    let reader = open(summary.clone()).and_then(|reader| reader.files_below(TESTDATA));
    assert!(rows(&reader.expect("two files")).expect("their rows").count() > 0);
    summary
}

/// Rows that are reached by skipping are the same.
fn last_rows(reader: &Reader, batches: &[RecordBatch]) {
    let Some(all) = one(batches) else { return };
    let skipped = all.num_rows() / 2;
    let found = rows(&reader.clone().offset(skipped as u64)).expect("the rows after an offset");
    let expected = all.slice(skipped, all.num_rows() - skipped);
    assert_same(&found.batches, &[expected], "after an offset");
}

async fn stream(file: &Bytes, views: bool) -> Result<Rows> {
    use futures_util::TryStreamExt;
    let reader = AsyncReader::open_async_within(file.clone(), limits()).await?;
    let mut batches = reader.threads(1).views(views).stream()?;
    let mut out = Rows { batches: Vec::new(), is_all: true };
    while let Some(batch) = batches.try_next().await? {
        assert_valid(&batch);
        out.batches.push(batch);
    }
    Ok(out)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().chain(crate::seeds::pages()).chain([summary()]);
    let seed = |(i, file): (u8, Vec<u8>)| {
        // Every second one as views; all else is done with each.
        let all = DAMAGED | VARIANTS | OTHER_FILES | PROJECTED | MISSING;
        Output::default().u8(i).u8(all | i & VIEWS).rest(&file).bytes()
    };
    (0..=u8::MAX).cycle().zip(files).map(seed).collect()
}
