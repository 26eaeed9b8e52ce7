//! Small files of types that the random tables have not: VARIANT, geometries with the boxes around
//! them and the key `geo`, and references to files; and a table for predicates.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, UInt64Array,
};
use marquetry::arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::geo::{BoxSides, CoveringColumns, GeoOptions};
use marquetry::schema::{FILE, LOGICAL_TYPE_KEY};
use marquetry::variant::{
    VariantArray, VariantArrayBuilder, VariantInference, VariantShape, VariantShredding,
};
use marquetry::{BloomOptions, ColumnOptions, Compression, WriteOptions};

const ROWS: i32 = 40;

/// Files of VARIANT, geometries and references, for the seeds of all targets of files.
#[must_use]
pub fn files() -> Vec<Vec<u8>> {
    [variants(), geometries(), references()].concat()
}

fn options() -> WriteOptions {
    WriteOptions::new()
        .with_checksums(false)
        .with_compression(Compression::Uncompressed)
        .with_page_rows(15)
        .with_row_group_rows(25)
}

/// A file of a column for each type that predicates compare, with nulls.
#[must_use]
pub fn typed() -> Vec<u8> {
    let some = |every: i32| (0..ROWS).map(move |i| (i % every != 2).then_some(i));
    let words = some(5).map(|i| i.map(|i| format!("word {}", i * i % 11)));
    let floats = some(6).map(|i| i.map(|i| if i % 8 == 1 { f64::NAN } else { f64::from(i) / 4.0 }));
    let lists = some(7).map(|i| i.map(|i| (0..i % 4).map(move |k| Some(i + k))));
    let binary: BinaryArray = some(4).map(|i| i.map(i32::to_le_bytes)).collect();
    let decimals: Decimal128Array = some(9).map(|i| i.map(|i| i128::from(i) * 37)).collect();
    let (geom, points) = points("{}");
    let columns: Vec<(Field, ArrayRef)> = vec![
        column("i", Int32Array::from_iter(some(4))),
        column("l", Int64Array::from_iter(some(5).map(|i| i.map(|i| i64::from(i) << (i % 41))))),
        column("u", UInt64Array::from_iter(some(6).map(|i| i.map(|i| u64::MAX - i as u64)))),
        column("f", Float32Array::from_iter(some(7).map(|i| i.map(|i| i as f32 - 20.0)))),
        column("d", Float64Array::from_iter(floats)),
        column("n", decimals.with_precision_and_scale(10, 2).expect("digits")),
        column("s", StringArray::from_iter(words)),
        column("x", binary),
        column("flag", BooleanArray::from_iter(some(3).map(|i| i.map(|i| i % 4 == 0)))),
        column("day", Date32Array::from_iter(some(8))),
        column(
            "t",
            TimestampMicrosecondArray::from_iter(
                some(5).map(|i| i.map(|i| i64::from(i) * 7_200_000_000)),
            ),
        ),
        column("list", ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        (VariantArray::field("v", true), values()),
        (geom, points),
    ];
    let (mut fields, mut arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    fields.push(Field::new("row", DataType::Int32, false));
    arrays.push(Arc::new(Int32Array::from_iter_values(0..ROWS)));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a table");
    let infer = VariantShredding::Infer(VariantInference::new());
    let blooms = |of: ColumnOptions| of.with_bloom(BloomOptions::default());
    let options = options().with_shredding("v", infer).with_column("*", blooms);
    written(&batch, options.with_geo(GeoOptions::new()))
}

fn column(name: &str, array: impl Array + 'static) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), Arc::new(array))
}

fn table(field: Field, column: ArrayRef) -> RecordBatch {
    let fields = vec![Field::new("row", DataType::Int32, false), field];
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from_iter_values(0..ROWS)), column];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a table")
}

fn written(batch: &RecordBatch, options: WriteOptions) -> Vec<u8> {
    crate::seeds::written(batch, options).expect("a file")
}

/// VARIANT values.
fn values() -> ArrayRef {
    let mut rows = VariantArrayBuilder::new();
    for i in 0..ROWS {
        let text = match i % 6 {
            0 => format!("{{\"a\":{i},\"b\":\"text {i}\"}}"),
            1 => format!("{{\"a\":\"{i}\",\"c\":[{i},{i}.5,null]}}"),
            2 => "{\"a\":null,\"d\":{\"e\":true}}".to_owned(),
            3 => format!("[{i},\"x\"]"),
            4 => format!("{i}.25"),
            _ => {
                rows.append_null();
                continue;
            }
        };
        rows.append_json(&text).expect("JSON");
    }
    Arc::new(rows.finish().expect("values"))
}

fn variants() -> Vec<Vec<u8>> {
    let batch = table(VariantArray::field("v", true), values());
    let shape = "{a: int64, b: string, c: [int32], d: {e: boolean}}";
    let shape = VariantShape::parse(shape).expect("a shape");
    let shreddings = [
        VariantShredding::Stored,
        VariantShredding::Infer(VariantInference::new()),
        VariantShredding::Shape(shape),
    ];
    let file = |shredding| written(&batch, options().with_shredding("v", shredding));
    shreddings.map(file).into()
}

/// Points, and a field of this metadata.
fn points(metadata: &str) -> (Field, ArrayRef) {
    let point = |i: i32| {
        let mut wkb = vec![1, 1, 0, 0, 0];
        wkb.extend(f64::from(i).to_le_bytes());
        wkb.extend((-f64::from(i) / 2.0).to_le_bytes());
        wkb
    };
    let column: BinaryArray = (0..ROWS).map(|i| (i % 7 != 3).then(|| point(i))).collect();
    let metadata = [
        ("ARROW:extension:name".to_owned(), "geoarrow.wkb".to_owned()),
        ("ARROW:extension:metadata".to_owned(), metadata.to_owned()),
    ];
    let field = Field::new("geom", DataType::Binary, true).with_metadata(metadata.into());
    (field, Arc::new(column))
}

fn geometries() -> Vec<Vec<u8>> {
    let file = |metadata: &str| {
        let (field, column) = points(metadata);
        let batch = table(field, column);
        // Boxes are for planar edges.
        let batch = match CoveringColumns::new(batch.schema_ref(), BoxSides::Float64) {
            Ok(boxes) => boxes.add_to(&batch).expect("WKB"),
            Err(_) => batch,
        };
        written(&batch, options().with_geo(GeoOptions::new()))
    };
    ["{}", "{\"edges\":\"spherical\"}"].map(file).into()
}

fn references() -> Vec<Vec<u8>> {
    let some = |i: i32, every: i32| i % every != 1;
    let texts = |text: fn(i32) -> String, every| -> ArrayRef {
        Arc::new(StringArray::from_iter((0..ROWS).map(|i| some(i, every).then(|| text(i)))))
    };
    let checksum = |i: i32| match i % 3 {
        0 => format!("CRC32:{i:08x}"),
        1 => format!("MD5:{i:032x}"),
        _ => format!("ETAG:{i}"),
    };
    let inline = |i: i32| (i % 4 == 0).then(|| i.to_le_bytes());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("uri", texts(|i| format!("file:///x/{i}"), 4)),
        ("offset", Arc::new(Int64Array::from_iter((0..ROWS).map(|i| some(i, 3).then_some(7))))),
        ("size", Arc::new(Int64Array::from_iter((0..ROWS).map(|i| some(i, 5).then_some(9))))),
        ("content_type", texts(|_| "text/plain".to_owned(), 6)),
        ("checksum", texts(checksum, 7)),
        ("inline", Arc::new(BinaryArray::from_iter((0..ROWS).map(inline)))),
    ];
    let fields: Fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let column = StructArray::try_new(fields.clone(), columns, None).expect("a struct");
    let metadata = HashMap::from([(LOGICAL_TYPE_KEY.to_owned(), FILE.to_owned())]);
    let field = Field::new("file", DataType::Struct(fields), true).with_metadata(metadata);
    vec![written(&table(field, Arc::new(column)), options())]
}
