//! A whole file through the drivers: they agree, and what they give is valid.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use bytes::Bytes;
use marquetry::arrow_schema::DataType;
use marquetry::file_reference::FileColumn;
use marquetry::read::{OnDamage, VariantOutput};
use marquetry::variant::{VariantArray, VariantShape};
use marquetry::{AsyncReader, Reader, Result};
use marquetry_testkit::mutants::paths::block_on;

use super::reading::{
    Rows, assert_agree, assert_same, assert_valid, limits, open, rows, within_memory,
};
use crate::input::{Input, Output};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (batch_rows, flags) = (input.u8(), input.u8());
    let views = flags & 1 > 0;
    let file = Bytes::copy_from_slice(input.rest());
    let Ok(reader) = within_memory(file.len(), || open(file.clone())) else { return };
    let reader = reader.views(views);
    let plain = within_memory(file.len(), || rows(&reader));
    let small = reader.clone().batch_rows(usize::from(batch_rows) + 1);
    assert_agree(&plain, &within_memory(file.len(), || rows(&small)), "small batches");
    if flags & 2 > 0 {
        damaged(&reader, &plain, file.len());
    }
    if flags & 4 > 0 {
        variants(&reader, file.len());
    }
    if flags & 8 > 0 {
        other_files(reader.clone());
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
        if flags & 16 > 0 {
            projected(&reader, &plain.batches);
        }
    }
}

/// Reads that go on after damage give the same where there is none.
fn damaged(reader: &Reader, plain: &Result<Rows>, len: usize) {
    for on_damage in [OnDamage::NullPages, OnDamage::SkipRowGroup] {
        let found = within_memory(len, || rows(&reader.clone().on_damage(on_damage)));
        match (plain, found) {
            (Ok(plain), Ok(found)) if plain.is_all => {
                assert_same(&plain.batches, &found.batches, "without damage");
            }
            (Ok(plain), Err(error)) => assert!(!plain.is_all, "{error}, only without damage"),
            _ => {}
        }
    }
}

/// VARIANT columns in other forms, and parts of them.
fn variants(reader: &Reader, len: usize) {
    let Ok(schema) = reader.schema() else { return };
    let Some(field) = schema.fields().iter().find(|field| VariantArray::is_variant(field)) else {
        return;
    };
    let shape = VariantShape::parse("{a: string, d: {e: int8}}").expect("a shape");
    for output in [VariantOutput::Unshredded, VariantOutput::Json, VariantOutput::Shape(shape)] {
        _ = within_memory(len, || rows(&reader.clone().variants(output)));
    }
    for (path, data_type) in [("a", DataType::Int64), ("c[1]", DataType::Utf8)] {
        let path = path.parse().expect("a path");
        let reader = reader.clone().variant_get(field.name(), path, data_type, "part");
        _ = within_memory(len, || rows(&reader));
    }
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
    let Some(all) = super::reading::one(batches) else { return };
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
        Output::default().u8(i).u8(30 | i & 1).rest(&file).bytes()
    };
    (0..=u8::MAX).cycle().zip(files).map(seed).collect()
}
