//! VARIANT beside the `parquet-variant` crates 60.1: JSON events become values, are shredded and
//! written, and one path of them is read. Both in turns, in one process, on one thread.
//!
//! `cargo run --release --manifest-path benches/variant/Cargo.toml [EVENTS]` prints a Markdown
//! table; a ratio is rival / ours, the median over the rounds of what was measured side by side.
//! The last rows compare us with ourselves: a path of shredded and of unshredded files.

#![allow(clippy::unwrap_used, reason = "a bench makes its own data")]

mod with_serde;

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Schema};
use arrow_schema_60 as rival_schema;
use bytes::Bytes;
use marquetry::variant::{
    Variant, VariantArray, VariantArrayBuilder, VariantBuilder, VariantInference, VariantShape,
    VariantShredding,
};
use marquetry::{Compression, Reader, RowGroupEncoder, WriteOptions, Writer};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression as RivalCompression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet_variant_compute::{GetOptions, json_to_variant, shred_variant, variant_get};

const ROUNDS: usize = 7;
const BATCH: usize = 65_536;

const SHAPE: &str = "{at: int64, device: {os: string, version: int64}, event: string, \
                     price: double, session: string, user: {id: int64, name: string}}";

/// Shapes into which the events are shredded, whether they fit or not: the rival must read the same
/// from each.
const SHAPES: [&str; 6] = [
    SHAPE,
    "variant",
    "{event: int64, user: {id: string}}",
    "{device: [int64], price: decimal(9, 2), user: variant}",
    "[string]",
    "{extra: {k1: [variant], k2: [int64]}, at: int64}",
];

fn main() {
    let rows = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let events = events(rows);
    for shape in SHAPES {
        check(&events[..rows.min(20_000)], shape);
    }
    println!("| {rows} JSON events | rival, ms | ours, ms | ratio |\n|---|--:|--:|--:|");
    compare(
        "JSON to values",
        || drop(black_box(rival_values(&events))),
        || drop(black_box(our_values(&events))),
    );
    compare(
        "JSON to values, by serde_json with decimals as doubles",
        || {
            drop(black_box(values_by(&events, |builder, text| {
                with_serde::append(builder, text).unwrap();
            })))
        },
        || drop(black_box(our_values(&events))),
    );
    let (theirs, ours) = (rival_values(&events), our_values(&events));
    drop(events);
    compare(
        "values to JSON, by serde_json",
        || {
            let mut out = Vec::new();
            each_value(&ours, |value| {
                out.clear();
                with_serde::write(value, &mut out).unwrap();
            });
        },
        || {
            let mut out = String::new();
            each_value(&ours, |value| {
                out.clear();
                value.write_json(&mut out).unwrap();
            });
        },
    );
    let shape = VariantShape::parse(SHAPE).unwrap();
    let given = VariantShredding::Shape(shape);
    compare(
        "shred into a given shape and write, ZSTD 1",
        || drop(black_box(rival_write(&theirs, true))),
        || drop(black_box(our_write(&ours, given.clone()))),
    );
    compare(
        "the same with an inferred shape",
        || drop(black_box(rival_write(&theirs, true))),
        || drop(black_box(our_write(&ours, VariantShredding::Infer(VariantInference::new())))),
    );
    compare(
        "write as it is, ZSTD 1",
        || drop(black_box(rival_write(&theirs, false))),
        || drop(black_box(our_write(&ours, VariantShredding::Stored))),
    );
    let shredded = our_write(&ours, given);
    let stored = our_write(&ours, VariantShredding::Stored);
    println!(
        "| bytes of our files, shredded and as it is | {} | {} | |",
        shredded.len(),
        stored.len()
    );
    for (path, leaf) in [("user.id", "user"), ("event", "event")] {
        let data_type = if path == "event" { DataType::Utf8 } else { DataType::Int64 };
        compare(
            &format!("read {path} of the shredded file, the rival the whole column"),
            || _ = black_box(rival_path(&shredded, path, None)),
            || _ = black_box(our_path(&shredded, path, &data_type)),
        );
        compare(
            &format!("read {path} of the shredded file, the rival told which leaves"),
            || _ = black_box(rival_path(&shredded, path, Some(leaf))),
            || _ = black_box(our_path(&shredded, path, &data_type)),
        );
        compare(
            &format!("read {path} of the file as it is"),
            || _ = black_box(rival_path(&stored, path, None)),
            || _ = black_box(our_path(&stored, path, &data_type)),
        );
        compare(
            &format!("ours, {path}: as it is / shredded"),
            || _ = black_box(our_path(&stored, path, &data_type)),
            || _ = black_box(our_path(&shredded, path, &data_type)),
        );
    }
    compare(
        "read and put together the shredded file",
        || _ = black_box(rival_unshred(&shredded)),
        || _ = black_box(our_unshred(&shredded)),
    );
}

/// Panics unless the rival reconstructs the JSON that we shredded, and we the JSON that it
/// shredded.
fn check(events: &[String], shape: &str) {
    let same = |ours: &str, theirs: &str| {
        let value = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(ours), value(theirs), "{shape}");
    };
    let ours = our_values(events);
    let given = VariantShredding::Shape(VariantShape::parse(shape).unwrap());
    let mut row = 0;
    for column in rival_batches(&our_write(&ours, given), None) {
        let column = parquet_variant_compute::VariantArray::try_new(&column).unwrap();
        let whole = parquet_variant_compute::unshred_variant(&column).unwrap();
        let whole: arrow_array_60::ArrayRef = Arc::new(whole.into_inner());
        let texts = parquet_variant_compute::variant_to_json(&whole).unwrap();
        for text in texts.iter() {
            same(&events[row], text.unwrap());
            row += 1;
        }
    }
    assert_eq!(row, events.len());
    let theirs: Bytes = rival_write(&rival_values(events), true).into();
    let reader = Reader::new(theirs).unwrap();
    let mut row = 0;
    for batch in reader.batches().unwrap() {
        let column = VariantArray::try_from(batch.unwrap().column(0)).unwrap();
        for text in column.to_json().unwrap().iter() {
            same(&events[row], text.unwrap());
            row += 1;
        }
    }
    assert_eq!(row, events.len());
}

/// Measures both in turns, and prints a row.
fn compare(what: &str, mut rival: impl FnMut(), mut ours: impl FnMut()) {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        rival();
        let middle = Instant::now();
        ours();
        times.push(((middle - begin).as_secs_f64(), middle.elapsed().as_secs_f64()));
    }
    let median = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        of[of.len() / 2]
    };
    let of_rival = median(times.iter().map(|of| of.0 * 1e3).collect());
    let of_ours = median(times.iter().map(|of| of.1 * 1e3).collect());
    let ratio = median(times.iter().map(|of| of.0 / of.1).collect());
    println!("| {what} | {of_rival:.1} | {of_ours:.1} | {ratio:.2} |");
}

fn events(rows: usize) -> Vec<String> {
    let mut rng = fastrand::Rng::with_seed(16);
    let names = ["ann", "bob", "carla", "dmitri", "eve", "farid", "grace", "heidi"];
    (0..rows)
        .map(|i| {
            let user = rng.u32(..100_000);
            let mut text = format!(
                r#"{{"event":"{}","at":{},"user":{{"id":{user},"name":"{}{}"}},"session":"{:016x}","device":{{"os":"{}","version":{}}}"#,
                ["view", "click", "buy", "login"][rng.usize(..4)],
                1_700_000_000_000_000u64 + i as u64 * 1_000,
                names[rng.usize(..8)],
                user % 1_000,
                rng.u64(..),
                ["linux", "android", "ios", "windows"][rng.usize(..4)],
                rng.u8(..30),
            );
            if rng.u8(..4) == 0 {
                write!(text, r#","price":{}e0"#, rng.f64() * 100.0).unwrap();
            }
            if rng.u8(..10) == 0 {
                write!(text, r#","extra":{{"k{}":[1,2,"x"]}}"#, rng.u8(..20)).unwrap();
            }
            text.push('}');
            text
        })
        .collect()
}

fn our_values(events: &[String]) -> Vec<RecordBatch> {
    values_by(events, |builder, text| builder.append_json(text).unwrap())
}

fn values_by(events: &[String], append: impl Fn(&mut VariantBuilder, &str)) -> Vec<RecordBatch> {
    let schema = Arc::new(Schema::new(vec![VariantArray::field("v", false)]));
    let mut rows = VariantArrayBuilder::new();
    events
        .chunks(BATCH)
        .map(|chunk| {
            for text in chunk {
                rows.append_with(|builder| {
                    append(builder, text);
                    Ok(())
                })
                .unwrap();
            }
            let column = rows.finish().unwrap();
            RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]).unwrap()
        })
        .collect()
}

/// Does something with each value of the column `v`.
fn each_value(batches: &[RecordBatch], mut work: impl FnMut(&Variant<'_>)) {
    for batch in batches {
        let column = VariantArray::new(batch.column(0).as_struct()).unwrap();
        for row in 0..batch.num_rows() {
            work(&column.value(row).unwrap().unwrap().as_variant());
        }
    }
}

fn rival_values(events: &[String]) -> Vec<parquet_variant_compute::VariantArray> {
    events
        .chunks(BATCH)
        .map(|chunk| {
            let texts: arrow_array_60::ArrayRef =
                Arc::new(arrow_array_60::StringArray::from_iter_values(chunk));
            json_to_variant(&texts).unwrap()
        })
        .collect()
}

fn our_write(batches: &[RecordBatch], shredding: VariantShredding) -> Bytes {
    let options =
        WriteOptions::new().with_compression(Compression::Zstd(1)).with_shredding("v", shredding);
    let encoder = RowGroupEncoder::new(batches[0].schema(), options).unwrap();
    let encoder = encoder.with_threads(1).unwrap();
    let mut writer = Writer::over(marquetry::io::WriteSink(Vec::new()), encoder);
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap().1.into()
}

fn rival_shape() -> rival_schema::DataType {
    use rival_schema::{DataType, Field};
    let object = |fields: Vec<(&str, DataType)>| {
        DataType::Struct(fields.into_iter().map(|(name, of)| Field::new(name, of, true)).collect())
    };
    object(vec![
        ("at", DataType::Int64),
        ("device", object(vec![("os", DataType::Utf8), ("version", DataType::Int64)])),
        ("event", DataType::Utf8),
        ("price", DataType::Float64),
        ("session", DataType::Utf8),
        ("user", object(vec![("id", DataType::Int64), ("name", DataType::Utf8)])),
    ])
}

fn rival_write(batches: &[parquet_variant_compute::VariantArray], shred: bool) -> Vec<u8> {
    let compression = RivalCompression::ZSTD(ZstdLevel::try_new(1).unwrap());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
    let shape = rival_shape();
    for batch in batches {
        let column = if shred { &shred_variant(batch, &shape).unwrap() } else { batch };
        let column: arrow_array_60::ArrayRef = Arc::new(column.inner().clone());
        let field = rival_schema::Field::new("v", column.data_type().clone(), false);
        let schema = Arc::new(rival_schema::Schema::new(vec![field]));
        let batch = arrow_array_60::RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
        let writer = writer.get_or_insert_with(|| {
            ArrowWriter::try_new(Vec::new(), schema, Some(properties.clone())).unwrap()
        });
        writer.write(&batch).unwrap();
    }
    writer.unwrap().into_inner().unwrap()
}

fn our_path(file: &Bytes, path: &str, data_type: &DataType) -> usize {
    let reader = Reader::new(file.clone()).unwrap().batch_rows(BATCH).threads(1);
    let reader = reader.project::<&str>([]).unwrap();
    let reader = reader.variant_get("v", path.parse().unwrap(), data_type.clone(), "part");
    let count = |batch: marquetry::Result<RecordBatch>| {
        let batch = batch.unwrap();
        batch.num_rows() - arrow_array::Array::null_count(batch.column(0))
    };
    let mut batches = reader.batches().unwrap();
    let mut rows = 0;
    while let Some(batch) = batches.next_batch().transpose() {
        rows += count(batch);
    }
    rows
}

fn rival_batches(
    file: &Bytes,
    leaf: Option<&str>,
) -> impl Iterator<Item = arrow_array_60::ArrayRef> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    let mask = match leaf {
        None => ProjectionMask::all(),
        Some(leaf) => {
            let field = format!("v.typed_value.{leaf}");
            let schema = builder.parquet_schema();
            ProjectionMask::columns(schema, ["v.metadata", "v.value", &field])
        }
    };
    let reader = builder.with_projection(mask).with_batch_size(BATCH).build().unwrap();
    reader.map(|batch| batch.unwrap().column(0).clone())
}

fn rival_path(file: &Bytes, path: &str, leaf: Option<&str>) -> usize {
    let of_type =
        if path == "event" { rival_schema::DataType::Utf8 } else { rival_schema::DataType::Int64 };
    let field = Arc::new(rival_schema::Field::new("part", of_type, true));
    let path = parquet_variant::VariantPath::try_from(path).unwrap();
    let mut rows = 0;
    for column in rival_batches(file, leaf) {
        let options = GetOptions::new_with_path(path.clone()).with_as_type(Some(field.clone()));
        let part = variant_get(&column, options).unwrap();
        rows += part.len() - part.null_count();
    }
    rows
}

fn rival_unshred(file: &Bytes) -> usize {
    rival_batches(file, None)
        .map(|column| {
            let column = parquet_variant_compute::VariantArray::try_new(&column).unwrap();
            parquet_variant_compute::unshred_variant(&column).unwrap().len()
        })
        .sum()
}

fn our_unshred(file: &Bytes) -> usize {
    let reader = Reader::new(file.clone()).unwrap().batch_rows(BATCH).threads(1);
    let reader = reader.variants(marquetry::read::VariantOutput::Unshredded);
    let mut batches = reader.batches().unwrap();
    let mut rows = 0;
    while let Some(batch) = batches.next_batch().unwrap() {
        rows += batch.num_rows();
    }
    rows
}
