//! Small files, and what is done with them while the allocator refuses.

use std::sync::Arc;

use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use bytes::Bytes;
use marquetry::arrow_array::types::Int32Type;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Schema, SchemaRef};
use marquetry::check::{CheckLevel, Checker, FindingKind};
use marquetry::crypt::{Decryption, Encryption, Key};
use marquetry::format::Encoding;
use marquetry::inspect::{Inspector, SpanKind, Spans};
use marquetry::io::WriteSink;
use marquetry::rewrite::Rewrite;
use marquetry::schema::Dictionaries;
use marquetry::{
    BloomOptions, BufferPool, Compression, Error, Limits, PageVersion, Reader, Result,
    RowGroupEncoder, RowSelection, SortColumn, Threads, WriteOptions, Writer, col,
};

/// A table that is written, and the options.
struct Table {
    batch: RecordBatch,
    options: WriteOptions,
}

/// A file, and the keys that open it.
pub struct File {
    pub name: &'static str,
    bytes: Bytes,
    table: Table,
    keys: Option<Decryption>,
}

/// The name of a job, and the job: its outcome is compared with that of a run without refusals.
pub type Job = (&'static str, fn(&File) -> Result<Outcome>);

#[derive(Debug)]
pub enum Outcome {
    Rows(Vec<RecordBatch>),
    File(Vec<u8>),
    Count(u64),
    Findings(Vec<String>),
}

impl Outcome {
    /// Whether it says the same as another: the same rows, in batches and pages of any size.
    pub fn says_the_same_as(&self, other: &Self, file: &File) -> bool {
        match (self, other) {
            (Self::Rows(a), Self::Rows(b)) => whole(a) == whole(b),
            (Self::File(a), Self::File(b)) => a == b || read_back(a, file) == read_back(b, file),
            (Self::Count(a), Self::Count(b)) => a == b,
            (Self::Findings(a), Self::Findings(b)) => a == b,
            _ => false,
        }
    }
}

fn whole(batches: &[RecordBatch]) -> RecordBatch {
    let schema = batches.first().map_or_else(|| Schema::empty().into(), RecordBatch::schema);
    arrow_select::concat::concat_batches(&schema, batches).expect("batches of one schema")
}

fn read_back(bytes: &[u8], file: &File) -> RecordBatch {
    let bytes = Bytes::copy_from_slice(bytes);
    let reader = match &file.keys {
        Some(keys) => {
            let keys = keys.clone().with_plaintext_files(true);
            Reader::with_keys(bytes, Limits::default(), &keys)
        }
        None => Reader::new(bytes),
    };
    match rows(reader.expect("a file").threads(1)) {
        Ok(Outcome::Rows(batches)) => whole(&batches),
        other => panic!("{other:?}"),
    }
}

pub const JOBS: &[Job] = &[
    ("read", |file| rows(file.open()?)),
    ("read as views", |file| rows(file.open()?.views(true))),
    ("read dictionaries", |file| rows(file.open()?.dictionaries(Dictionaries::Strings))),
    ("filter", filter),
    ("select", |file| {
        let rows_of = file.open()?.rows()?;
        let ranges = (0..rows_of).step_by(97).map(|row| row..(row + 5).min(rows_of));
        rows(file.open()?.select(RowSelection::from_ranges(rows_of, ranges)?)?)
    }),
    ("take", |file| {
        let reader = file.open()?;
        let rows: Vec<u64> = (0..reader.rows()?).rev().step_by(301).collect();
        Ok(Outcome::Rows(vec![reader.take(&rows)?]))
    }),
    ("page indexes", |file| {
        let mut reader = file.open()?;
        reader.load_page_indexes()?;
        Ok(Outcome::Count(reader.count()?))
    }),
    ("write", |file| Ok(Outcome::File(write(&file.table)?))),
    ("copy", |file| rewrite(Rewrite::new([file.open()?]))),
    ("encode anew", |file| rewrite(Rewrite::new([file.open()?]).encode("**"))),
    ("other codec", |file| rewrite(Rewrite::new([file.open()?]).codec("**", Compression::Snappy))),
    ("regroup", |file| rewrite(Rewrite::new([file.open()?, file.open()?]).regroup(true))),
    ("sort", |file| {
        let first = file.table.batch.schema().field(0).name().clone();
        rewrite(Rewrite::new([file.open()?]).sort_by([SortColumn::ascending(first)]))
    }),
    ("inspect", inspect),
    ("check", check),
];

impl File {
    /// Whether the job can be done with the file.
    pub fn has(&self, job: &str) -> bool {
        job != "sort" || self.name != "nested"
    }

    fn open(&self) -> Result<Reader> {
        let source = self.bytes.clone();
        let reader = match &self.keys {
            Some(keys) => Reader::with_keys(source, Limits::default(), keys)?,
            None => Reader::new(source)?,
        };
        // What other reads have left would be taken in place of new memory.
        Ok(reader.threads(1).batch_rows(2_500).buffer_pool(&BufferPool::new(0)))
    }
}

fn rows(reader: Reader) -> Result<Outcome> {
    let mut out = Vec::with_capacity(32);
    let mut batches = reader.batches()?;
    while let Some(batch) = batches.next_batch()? {
        out.push(batch);
    }
    Ok(Outcome::Rows(out))
}

fn filter(file: &File) -> Result<Outcome> {
    let schema = file.table.batch.schema();
    let first = schema.field(0);
    let predicate = match first.data_type() {
        DataType::Int64 => col(first.name().as_str()).gt(1_000i64),
        _ => col(first.name().as_str()).is_not_null(),
    };
    rows(file.open()?.filter(predicate))
}

fn rewrite(rewrite: Rewrite) -> Result<Outcome> {
    let mut out = Vec::with_capacity(8 << 20);
    rewrite.run(WriteSink(&mut out))?;
    Ok(Outcome::File(out))
}

fn inspect(file: &File) -> Result<Outcome> {
    fn walk(spans: Spans, bytes: &mut u64) -> Result<()> {
        for span in spans {
            let span = span?;
            // What could not be read is a span that says why.
            if span.kind == SpanKind::Unparsed {
                return Err(Error::internal(format_args!("{span:?}")));
            }
            *bytes +=
                span.bytes().map(|piece| piece.map(|p| p.len() as u64)).sum::<Result<u64>>()?;
            if let Some(slots) = span.slots() {
                // Their texts may lack what a dictionary without memory would tell.
                for slot in slots {
                    *bytes += slot?.count;
                }
            }
            for inside in [span.children(), span.decompressed(), span.decrypted()] {
                inside.map_or(Ok(()), |inside| walk(inside, bytes))?;
            }
        }
        Ok(())
    }
    let source = file.bytes.clone();
    let inspector = Inspector::with_keys(source, Limits::default(), file.keys.as_ref())?;
    let mut bytes = 0;
    walk(inspector.spans(), &mut bytes)?;
    Ok(Outcome::Count(bytes))
}

fn check(file: &File) -> Result<Outcome> {
    let mut checker = Checker::new(file.bytes.clone()).level(CheckLevel::Truth);
    if let Some(keys) = &file.keys {
        checker = checker.keys(keys.clone());
    }
    let (mut findings, mut left_out) = (Vec::with_capacity(1_000), Ok(()));
    let report = checker.threads(Threads::Exactly(1)).run(|finding| {
        // A chunk without memory is a finding that says so.
        if finding.kind == FindingKind::NotChecked {
            left_out = Err(Error::internal(&finding));
        }
        findings.push(format!("{:?}: {finding}", finding.at));
    })?;
    left_out?;
    findings.push(format!("{} rows, {} chunks", report.rows, report.chunks));
    Ok(Outcome::Findings(findings))
}

fn write(table: &Table) -> Result<Vec<u8>> {
    // The sink is not ours.
    let mut out = Vec::with_capacity(8 << 20);
    let schema = table.batch.schema();
    let encoder = RowGroupEncoder::new(schema, table.options.clone())?.with_threads(1)?;
    let mut writer = Writer::over(WriteSink(&mut out), encoder);
    for start in (0..table.batch.num_rows()).step_by(4_000) {
        let len = (table.batch.num_rows() - start).min(4_000);
        writer.write(&table.batch.slice(start, len))?;
    }
    writer.finish()?;
    Ok(out)
}

/// The names of the files.
pub const NAMES: [&str; 7] =
    ["flat", "nested", "wide", "encodings", "plain", "snappy", "encrypted"];

/// Whether a job is tried in every run of the tests.
pub fn is_usual(job: &str) -> bool {
    ["read", "read dictionaries", "filter", "write", "other codec", "inspect", "check"]
        .contains(&job)
}

/// The file of this name.
pub fn file(name: &str) -> Option<File> {
    let name = *NAMES.iter().find(|of| **of == name)?;
    let options = WriteOptions::new;
    let plain = |codec| options().with_dictionary(false).with_compression(codec);
    let key = || Key::new(&[7; 16]).expect("a key");
    Some(match name {
        "flat" => written(name, flat(ROWS), options(), None),
        "nested" => written(name, nested(ROWS), options().with_page_version(PageVersion::V1), None),
        "wide" => written(name, wide(600), options(), None),
        "plain" => written(name, flat(ROWS), plain(Compression::Uncompressed), None),
        "snappy" => written(name, flat(ROWS), plain(Compression::Snappy), None),
        "encrypted" => {
            let options = options().with_encryption(Encryption::new(key()));
            let keys = Decryption::new().with_footer_key(key());
            written(name, flat(ROWS), options, Some(keys))
        }
        _ => {
            let encodings = plain(Compression::Gzip(6))
                .with_column("id", |c| c.with_encoding(Encoding::DeltaBinaryPacked))
                .with_column("text", |c| c.with_encoding(Encoding::DeltaByteArray))
                .with_column("binary", |c| c.with_encoding(Encoding::DeltaLengthByteArray))
                .with_column("float", |c| c.with_encoding(Encoding::ByteStreamSplit))
                .with_column("flag", |c| c.with_encoding(Encoding::Rle));
            written(name, flat(ROWS), encodings, None)
        }
    })
}

/// Rows of a file.
const ROWS: usize = 6_000;

fn written(
    name: &'static str,
    batch: RecordBatch,
    options: WriteOptions,
    keys: Option<Decryption>,
) -> File {
    let first = batch.schema().field(0).name().clone();
    let options = options
        .with_page_rows(1_500)
        .with_row_group_rows(4_000)
        .with_column(first, |column| column.with_bloom(BloomOptions::default()));
    let table = Table { batch, options };
    let bytes = write(&table).expect("a file").into();
    File { name, bytes, table, keys }
}

fn flat(n: usize) -> RecordBatch {
    let mut rng = fastrand::Rng::with_seed(1);
    let id = Int64Array::from_iter((0..n).map(|i| (i % 9 > 0).then_some(i as i64)));
    let random = Int32Array::from_iter_values((0..n).map(|_| rng.i32(..)));
    let float = Float64Array::from_iter_values((0..n).map(|i| i as f64 / 7.0));
    let flag = BooleanArray::from_iter((0..n).map(|i| (i % 5 > 0).then_some(i % 3 == 0)));
    let text = (0..n).map(|i| (i % 11 > 0).then(|| format!("text {}", rng.u32(..))));
    let few = StringArray::from_iter_values((0..n).map(|i| format!("one of few {}", i % 50)));
    let binary = (0..n).map(|i| vec![i as u8; i % 40]);
    let views = StringViewArray::from_iter_values((0..n).map(|i| format!("a longer text {i}")));
    let fixed = (0..n).map(|i| [i as u8; 12]);
    let fixed = FixedSizeBinaryArray::try_from_iter(fixed).expect("of one size");
    let decimal = Decimal128Array::from_iter_values((0..n).map(|i| i as i128 * 1_000_003));
    let keyed: DictionaryArray<Int32Type> =
        (0..n).map(|i| ["red", "green", "blue"][i % 3]).collect();
    batch(vec![
        ("id", Arc::new(id)),
        ("random", Arc::new(random)),
        ("float", Arc::new(float)),
        ("flag", Arc::new(flag)),
        ("text", Arc::new(StringArray::from_iter(text))),
        ("few", Arc::new(few)),
        ("binary", Arc::new(BinaryArray::from_iter_values(binary))),
        ("views", Arc::new(views)),
        ("fixed", Arc::new(fixed)),
        ("decimal", Arc::new(decimal)),
        ("keyed", Arc::new(keyed)),
    ])
}

fn nested(n: usize) -> RecordBatch {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..n).map(|i| (i % 5 > 0).then(|| (0..i % 4).map(move |j| Some((i * j) as i32)))),
    );
    let ends = OffsetBuffer::from_lengths((0..n).map(|i| i % 3));
    let inner = ends.last().map_or(0, |end| *end as usize);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..inner).map(|i| Some(i as i64))));
    let texts = (0..inner).map(|i| (i % 4 > 0).then(|| format!("inner {i}")));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("n", DataType::Int64, true)), numbers),
        (Arc::new(Field::new("t", DataType::Utf8, true)), texts),
    ]);
    let item = Arc::new(Field::new("item", structs.data_type().clone(), true));
    let of_structs = ListArray::new(item, ends, Arc::new(structs), None);
    let items = ScalarBuffer::from((0..n as i32 * 2).collect::<Vec<_>>());
    let pairs = FixedSizeListArray::new(
        Arc::new(Field::new("item", DataType::Int32, false)),
        2,
        Arc::new(Int32Array::new(items, None)),
        None,
    );
    batch(vec![
        ("lists", Arc::new(lists)),
        ("structs", Arc::new(of_structs)),
        ("pairs", Arc::new(pairs)),
    ])
}

/// Many columns of few rows, with long names and long texts in the footer.
fn wide(columns: usize) -> RecordBatch {
    let name = |i: usize| format!("{i} {}", "a long name ".repeat(100));
    let fields: Vec<Field> =
        (0..columns).map(|i| Field::new(name(i), DataType::Int64, true)).collect();
    let metadata = [("key".to_owned(), "value ".repeat(10_000))].into();
    let schema: SchemaRef = Arc::new(Schema::new_with_metadata(fields, metadata));
    let column: ArrayRef = Arc::new(Int64Array::from_iter((0..20).map(Some)));
    RecordBatch::try_new(schema, vec![column; columns]).expect("columns that fit")
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns that fit")
}
