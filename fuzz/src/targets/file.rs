//! A whole file through the drivers: they agree, and what they give is valid.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, StructArray,
};
use bytes::Bytes;
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::file_reference::FileColumn;
use marquetry::io::WriteSink;
use marquetry::read::{OnDamage, VariantOutput};
use marquetry::schema::MatchBy;
use marquetry::variant::{VariantArray, VariantBuf, VariantBuilder, VariantPath, VariantShape};
use marquetry::{AsyncReader, ErrorKind, Reader, Result, WriteOptions, Writer, col};
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
const FILTERED: u8 = 64;

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
    if flags & FILTERED > 0 {
        filtered(&reader, &plain, file.len());
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

/// Filters that change values give the rows for which they are true in memory; without statistics,
/// which may be wrong.
fn filtered(reader: &Reader, plain: &Result<Rows>, len: usize) {
    let Ok(schema) = reader.schema() else { return };
    let reader = reader.clone().verify_statistics(true);
    for field in schema.fields().iter().take(3) {
        let column = || col(field.name().as_str());
        for predicate in [
            column().lower().eq("word 4"),
            column().upper().lt("M"),
            column().ilike("%A_%"),
            column().length().gt(3),
            column().cast(DataType::Utf8).gt_eq("1"),
            column().cast(DataType::Int64).lt(7),
            column().is_not_null(),
        ] {
            let bound = predicate.bind_to(&schema);
            let Ok(reader) = reader.clone().try_filter(predicate) else { continue };
            let found = within_memory(len, || rows(&reader));
            let (Ok(found), Ok(plain), Ok(bound)) = (found, plain, bound) else { continue };
            if found.is_all && plain.is_all {
                let trues = |batch| bound.evaluate(batch).map(|rows| rows.true_count());
                let expected = plain.batches.iter().map(trues).sum::<Result<usize>>();
                assert_eq!(found.count(), expected.expect("what can be evaluated"));
            }
        }
    }
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

/// Files of rows that share a long value, which would take more than the memory of a read if each
/// row had its own: as views, in a dictionary, and as the values of a VARIANT.
fn shared() -> Vec<Vec<u8>> {
    const ROWS: usize = 2500;
    let long = "1".repeat(40_000);
    let shared = |bytes: &[u8]| -> ArrayRef {
        let mut views = BinaryViewBuilder::new();
        let block = views.append_block(bytes.to_vec().into());
        let len = u32::try_from(bytes.len()).expect("few");
        (0..ROWS).for_each(|_| views.try_append_view(block, 0, len).expect("a view"));
        Arc::new(views.finish())
    };
    let views = shared(long.as_bytes()).as_binary_view().clone().to_string_view();
    let views: ArrayRef = Arc::new(views.expect("digits"));
    let entries = StringArray::from_iter_values([&long]);
    let keys = Int32Array::from(vec![0; ROWS]);
    let coded: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(entries)));
    let mut value = VariantBuilder::new();
    value.append(long.as_str()).expect("a value");
    let (metadata, value) = value.finish().expect("a value").into_parts();
    let fields = ["metadata", "value"].map(|name| Field::new(name, DataType::BinaryView, false));
    let columns = vec![shared(&metadata), shared(&value)];
    let group: ArrayRef = Arc::new(StructArray::new(fields.to_vec().into(), columns, None));
    let variant = VariantArray::field("v", false).with_data_type(group.data_type().clone());
    let text = |of: &ArrayRef| Field::new("s", of.data_type().clone(), false);
    let columns = [(text(&views), views), (text(&coded), coded), (variant, group)];
    let file = |(field, column): (Field, ArrayRef)| {
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![column]).expect("a batch");
        crate::seeds::written(&batch, WriteOptions::new()).expect("a file")
    };
    columns.map(file).to_vec()
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().chain(crate::seeds::pages()).chain([summary()]);
    let files = files.chain(shared());
    let seed = |(i, file): (u8, Vec<u8>)| {
        // Every second one as views; all else is done with each.
        let all = DAMAGED | VARIANTS | OTHER_FILES | PROJECTED | MISSING | FILTERED;
        Output::default().u8(i).u8(all | i & VIEWS).rest(&file).bytes()
    };
    (0..=u8::MAX).cycle().zip(files).map(seed).collect()
}
