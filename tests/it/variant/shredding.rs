//! Tests shredded VARIANT columns: reconstruction, writing, parts by path, compared with values
//! that were never shredded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use fastrand::Rng;
use marquetry::read::VariantOutput;
use marquetry::variant::{
    Variant, VariantArray, VariantArrayBuilder, VariantBuilder, VariantInference, VariantPath,
    VariantShape, VariantShredding, VariantStep,
};
use marquetry::{ErrorKind, Reader, Result, WriteOptions, WriteReport, Writer};

fn seed() -> u64 {
    let given = std::env::var("MARQUETRY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("MARQUETRY_SEED={seed}");
    seed
}

fn cases(default: usize) -> usize {
    std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

const NAMES: [&str; 7] = ["a", "b", "c", "event", "id", "ä", ""];

fn random_value(rng: &mut Rng, out: &mut VariantBuilder, depth: usize) -> Result<()> {
    let kinds = if depth < 4 { 26 } else { 18 };
    match rng.usize(..kinds) {
        0 => out.append(Variant::Null),
        1 => out.append(rng.bool()),
        2 => out.append(Variant::Int8(rng.i8(..))),
        3 => out.append(Variant::Int16(rng.i16(..))),
        4 => out.append(Variant::Int32(rng.i32(..))),
        5 => out.append(Variant::Int64(rng.i64(..) >> rng.u32(..64))),
        6 => out.append(Variant::Float(rng.f32())),
        7 => out.append(Variant::Double(rng.f64() * 1e9)),
        8 => out.append(Variant::Decimal(i128::from(rng.i64(..)) >> rng.u32(..60), rng.u8(..19))),
        9 => out.append(Variant::Date(rng.i32(-10_000..30_000))),
        10 => out.append(Variant::TimestampMicros(rng.i64(..) >> 12)),
        11 => out.append(Variant::TimestampNtzMicros(rng.i64(..) >> 12)),
        12 => out.append(Variant::TimestampNanos(rng.i64(..))),
        13 => out.append(Variant::TimestampNtzNanos(rng.i64(..) / 1_000 * 1_000)),
        14 => out.append(Variant::TimeMicros(rng.i64(0..86_400_000_000))),
        15 => out.append(Variant::Binary(&rng.u64(..).to_le_bytes()[..rng.usize(..8)])),
        16 => out.append(Variant::Uuid(rng.u128(..).to_be_bytes())),
        17 => {
            let text: String = (0..rng.usize(..90)).map(|_| rng.alphanumeric()).collect();
            out.append(Variant::String(&text))
        }
        18..=22 => {
            out.begin_object()?;
            let mut names = NAMES;
            rng.shuffle(&mut names);
            // Many names in no order are looked up in another way.
            if depth == 0 && rng.u8(..4) == 0 {
                for i in (0..20).rev() {
                    out.name(&format!("name{i}"))?;
                    out.append(i)?;
                }
            }
            for name in &names[..rng.usize(..names.len())] {
                out.name(name)?;
                random_value(rng, out, depth + 1)?;
            }
            out.end_object()
        }
        _ => {
            out.begin_list()?;
            for _ in 0..rng.usize(..5) {
                random_value(rng, out, depth + 1)?;
            }
            out.end_list()
        }
    }
}

fn random_shape(rng: &mut Rng, depth: usize) -> VariantShape {
    let scalars = [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(9, 2),
        DataType::Decimal128(18, 0),
        DataType::Decimal128(38, 18),
        DataType::Date32,
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Binary,
        DataType::Utf8,
        DataType::FixedSizeBinary(16),
    ];
    match rng.usize(..if depth < 3 { 10 } else { 4 }) {
        0 => VariantShape::any(),
        1..=3 => VariantShape::scalar(scalars[rng.usize(..scalars.len())].clone()).unwrap(),
        4..=5 => VariantShape::list(random_shape(rng, depth + 1)).unwrap(),
        _ => {
            let mut names = NAMES;
            rng.shuffle(&mut names);
            let names = &names[..rng.usize(1..names.len())];
            VariantShape::object(names.iter().map(|name| (*name, random_shape(rng, depth + 1))))
                .unwrap()
        }
    }
}

fn random_column(rng: &mut Rng, rows: usize) -> StructArray {
    let mut out = VariantArrayBuilder::new();
    for _ in 0..rows {
        if rng.u8(..10) == 0 {
            out.append_null();
        } else {
            out.append_with(|builder| random_value(rng, builder, 0)).unwrap();
        }
    }
    out.finish().unwrap()
}

/// Panics unless the rows of both are equal, value by value.
fn assert_same(expected: &StructArray, found: &StructArray) {
    assert_eq!(expected.len(), found.len());
    let (expected, found) =
        (VariantArray::new(expected).unwrap(), VariantArray::new(found).unwrap());
    for row in 0..expected.len() {
        let (want, have) = (expected.value(row).unwrap(), found.value(row).unwrap());
        match (&want, &have) {
            (None, None) => {}
            (Some(want), Some(have)) => {
                have.as_variant().validate().unwrap();
                assert_eq!(want.as_variant(), have.as_variant(), "row {row}");
            }
            _ => panic!("row {row}: expected {want:?}, found {have:?}"),
        }
    }
}

#[test]
fn shredding_and_reconstruction_are_the_identity() {
    let seed = seed();
    for case in 0..cases(400) {
        let mut rng = Rng::with_seed(seed.wrapping_add(case as u64));
        let rows = rng.usize(..60);
        let column = random_column(&mut rng, rows);
        let shape = random_shape(&mut rng, 0);
        let shredded = VariantArray::new(&column).unwrap().shred(&shape).unwrap();
        assert_eq!(
            VariantShape::from_data_type(shredded.data_type()).unwrap(),
            shape,
            "case {case}"
        );
        assert_eq!(*shredded.data_type(), shape.data_type());
        let again = VariantArray::new(&shredded).unwrap();
        assert_same(&column, &again.unshred().unwrap());
        // From one shape into another, and of a slice.
        let other = random_shape(&mut rng, 0);
        let reshaped = again.shred(&other).unwrap();
        assert_same(&column, &reshaped);
        let from = rng.usize(..=rows);
        let slice = shredded.slice(from, rows - from);
        assert_same(&column.slice(from, rows - from), &slice);
    }
}

#[test]
fn what_fits_a_column_leaves_nothing_in_value() {
    let mut rows = VariantArrayBuilder::new();
    for text in
        [r#"{"a":1,"t":["x"]}"#, r#"{"a":2,"t":[]}"#, r#"{"t":["y","z"]}"#, r#"{"a":3}"#, "{}"]
    {
        rows.append_json(text).unwrap();
    }
    let column = rows.finish().unwrap();
    let shape = VariantShape::parse("{a: int64, t: [string]}").unwrap();
    let shredded = VariantArray::new(&column).unwrap().shred(&shape).unwrap();
    let value = shredded.column_by_name("value").unwrap();
    assert_eq!(value.null_count(), value.len());
    let typed = shredded.column_by_name("typed_value").unwrap().as_struct();
    assert_eq!(typed.null_count(), 0);
    let a = typed.column_by_name("a").unwrap().as_struct();
    assert_eq!(a.column_by_name("value").unwrap().null_count(), 5);
    let numbers = a.column_by_name("typed_value").unwrap().as_primitive::<Int64Type>();
    assert_eq!(numbers.iter().collect::<Vec<_>>(), [Some(1), Some(2), None, Some(3), None]);
}

#[test]
fn what_does_not_fit_stays_in_value() {
    let mut rows = VariantArrayBuilder::new();
    for text in [r#"{"a":"x","b":1}"#, r#"{"a":null}"#, "[1]", "null", r#"{"a":7}"#] {
        rows.append_json(text).unwrap();
    }
    let column = rows.finish().unwrap();
    let shape = VariantShape::parse("{a: int64}").unwrap();
    let shredded = VariantArray::new(&column).unwrap().shred(&shape).unwrap();
    let value = shredded.column_by_name("value").unwrap();
    // {"b":1}, nothing, [1], null, nothing
    let nulls: Vec<bool> = (0..5).map(|row| value.is_null(row)).collect();
    assert_eq!(nulls, [false, true, false, false, true]);
    let typed = shredded.column_by_name("typed_value").unwrap().as_struct();
    let objects: Vec<bool> = (0..5).map(|row| typed.is_valid(row)).collect();
    assert_eq!(objects, [true, true, false, false, true]);
    assert_same(&column, &shredded);
}

fn paths() -> Vec<VariantPath> {
    let field = |name: &str| VariantStep::Field(name.to_owned());
    vec![
        VariantPath::new([]),
        VariantPath::new([field("a")]),
        VariantPath::new([field("b"), field("c")]),
        VariantPath::new([field("a"), VariantStep::Index(1)]),
        VariantPath::new([VariantStep::Index(0)]),
        VariantPath::new([VariantStep::Index(0), field("event"), VariantStep::Index(0)]),
        VariantPath::new([field("missing")]),
    ]
}

fn types() -> Vec<DataType> {
    vec![
        DataType::Boolean,
        DataType::Int64,
        DataType::UInt8,
        DataType::Float64,
        DataType::Decimal128(20, 3),
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Utf8,
        DataType::Binary,
        DataType::FixedSizeBinary(16),
    ]
}

#[test]
fn parts_of_shredded_values_are_those_of_the_values() {
    let seed = seed();
    for case in 0..cases(200) {
        let mut rng = Rng::with_seed(seed.wrapping_add(case as u64));
        let rows = rng.usize(..40);
        let column = random_column(&mut rng, rows);
        let shape = random_shape(&mut rng, 0);
        let plain = VariantArray::new(&column).unwrap();
        let shredded = plain.shred(&shape).unwrap();
        let shredded = VariantArray::new(&shredded).unwrap();
        for path in paths() {
            for data_type in types() {
                let (want, have) = (plain.get(&path, &data_type), shredded.get(&path, &data_type));
                assert_eq!(
                    &want.unwrap(),
                    &have.unwrap(),
                    "case {case}, {shape}, {path} as {data_type}"
                );
            }
            let variant = VariantArray::unshredded_type();
            let (want, have) = (plain.get(&path, &variant), shredded.get(&path, &variant));
            assert_same(want.unwrap().as_struct(), have.unwrap().as_struct());
            // Row by row, by the value itself.
            let want = plain.get(&path, &variant).unwrap();
            let want = VariantArray::new(want.as_struct()).unwrap();
            for row in 0..rows {
                let value = plain.value(row).unwrap();
                let part = value.as_ref().map(|value| value.as_variant().get_path(&path).unwrap());
                let found = want.value(row).unwrap();
                assert_eq!(part.flatten(), found.as_ref().map(|found| found.as_variant()));
            }
        }
    }
}

fn batch_of(column: StructArray) -> RecordBatch {
    let ids: ArrayRef = Arc::new(arrow_array::Int64Array::from_iter_values(0..column.len() as i64));
    let fields = vec![Field::new("id", DataType::Int64, false), VariantArray::field("v", true)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![ids, Arc::new(column)]).unwrap()
}

/// A file with a VARIANT column of random values, which is shredded into a random shape.
pub fn random_file(seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let rows = rng.usize(1..120);
    let column = random_column(&mut rng, rows);
    let shape = VariantShredding::Shape(random_shape(&mut rng, 0));
    let options = WriteOptions::new().with_shredding("v", shape).with_row_group_rows(50);
    write(&[batch_of(column)], options).1
}

fn write(batches: &[RecordBatch], options: WriteOptions) -> (WriteReport, Vec<u8>) {
    let mut writer =
        Writer::new(marquetry::io::WriteSink(Vec::new()), batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

fn read_column(reader: &Reader) -> Vec<ArrayRef> {
    reader
        .batches()
        .unwrap()
        .map(|batch| batch.unwrap().column_by_name("v").unwrap().clone())
        .collect()
}

fn events(rows: usize, rng: &mut Rng) -> StructArray {
    let mut out = VariantArrayBuilder::new();
    for i in 0..rows {
        match rng.usize(..20) {
            0 => out.append_null(),
            1 => out.append_json(r#"{"event":17}"#).unwrap(),
            2 => out.append_json("null").unwrap(),
            _ => {
                let text = format!(
                    r#"{{"event":"e{}","at":{i},"price":{}.{:02},"user":{{"id":{},"vip":{}}},"tags":["x","y{}"]}}"#,
                    rng.u8(..5),
                    rng.u8(..),
                    rng.u8(..100),
                    rng.u32(..1000),
                    rng.bool(),
                    rng.u8(..3),
                );
                out.append_json(&text).unwrap();
            }
        }
    }
    out.finish().unwrap()
}

#[test]
fn a_shape_is_inferred_from_the_first_row_group_and_reported() {
    let mut rng = Rng::with_seed(7);
    let column = events(5_000, &mut rng);
    let infer = VariantShredding::Infer(VariantInference::new());
    let options = WriteOptions::new().with_shredding("v", infer).with_row_group_rows(2_000);
    let (report, bytes) = write(&[batch_of(column.clone())], options);
    let shape = "{at: int64, event: string, price: decimal(5, 2), tags: [string], user: {id: int64, vip: boolean}}";
    assert_eq!(report.shapes.len(), 1);
    assert_eq!((&*report.shapes[0].0, report.shapes[0].1.to_string()), ("v", shape.to_owned()));
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
    let stored = read_column(&reader);
    let mut first = 0;
    for array in &stored {
        assert_eq!(VariantShape::from_data_type(array.data_type()).unwrap().to_string(), shape);
        assert_same(&column.slice(first, array.len()), array.as_struct());
        first += array.len();
    }
    assert_eq!(first, 5_000);
}

#[test]
fn random_columns_survive_a_file_in_every_output() {
    let seed = seed();
    for case in 0..cases(40) {
        let mut rng = Rng::with_seed(seed.wrapping_add(case as u64));
        let rows = rng.usize(1..80);
        let column = random_column(&mut rng, rows);
        let shape = random_shape(&mut rng, 0);
        let options =
            WriteOptions::new().with_shredding("v", VariantShredding::Shape(shape.clone()));
        let (_, bytes) = write(&[batch_of(column.clone())], options);
        let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
        let stored = &read_column(&reader)[0];
        assert_eq!(VariantShape::from_data_type(stored.data_type()).unwrap(), shape, "case {case}");
        assert_same(&column, stored.as_struct());
        let plain = &read_column(&reader.clone().variants(VariantOutput::Unshredded))[0];
        assert_eq!(*plain.data_type(), VariantArray::unshredded_type());
        assert_same(&column, plain.as_struct());
        let other = random_shape(&mut rng, 0);
        let reader = reader.variants(VariantOutput::Shape(other.clone()));
        let shaped = &read_column(&reader)[0];
        assert_eq!(*shaped.data_type(), other.data_type());
        assert_same(&column, shaped.as_struct());
        let json = &read_column(&reader.variants(VariantOutput::Json))[0];
        let want = VariantArray::new(&column).unwrap().to_json().unwrap();
        assert_eq!(json.len(), want.len());
    }
}

#[test]
fn a_part_is_read_from_the_one_leaf_that_holds_it() {
    let mut rng = Rng::with_seed(3);
    let mut rows = VariantArrayBuilder::new();
    for i in 0..20_000 {
        rows.append_json(&format!(r#"{{"user":{{"id":{i}}},"text":"{:x}"}}"#, rng.u128(..)))
            .unwrap();
    }
    let column = rows.finish().unwrap();
    let shape = VariantShape::parse("{user: {id: int64}, text: string}").unwrap();
    let options = WriteOptions::new().with_shredding("v", VariantShredding::Shape(shape));
    let (_, bytes) = write(&[batch_of(column)], options);
    let len = bytes.len() as u64;
    let path: VariantPath = "$.user.id".parse().unwrap();
    let reader = Reader::new(bytes::Bytes::from(bytes))
        .unwrap()
        .project::<&str>([])
        .unwrap()
        .variant_get("v", path, DataType::Int64, "user");
    let mut next = 0;
    for batch in reader.batches().unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.num_columns(), 1);
        assert_eq!(batch.schema().field(0).name(), "user");
        for id in batch.column(0).as_primitive::<Int64Type>() {
            assert_eq!(id, Some(next));
            next += 1;
        }
    }
    assert_eq!(next, 20_000);
    // The texts take nearly all of the file.
    let read = reader.progress().bytes_fetched();
    assert!(read < len / 4, "{read} of {len} bytes");
}

#[test]
fn parts_of_a_file_are_those_of_its_values() {
    let seed = seed();
    for case in 0..cases(30) {
        let mut rng = Rng::with_seed(seed.wrapping_add(case as u64));
        let rows = rng.usize(1..60);
        let column = random_column(&mut rng, rows);
        let shape = random_shape(&mut rng, 0);
        let options =
            WriteOptions::new().with_shredding("v", VariantShredding::Shape(shape.clone()));
        let (_, bytes) = write(&[batch_of(column.clone())], options);
        let plain = VariantArray::new(&column).unwrap();
        let mut reader = Reader::new(bytes::Bytes::from(bytes)).unwrap().project(["id"]).unwrap();
        let wanted: Vec<_> = paths()
            .into_iter()
            .flat_map(|path| types().into_iter().map(move |of| (path.clone(), of)))
            .collect();
        for (i, (path, data_type)) in wanted.iter().enumerate() {
            reader = reader.variant_get("v", path.clone(), data_type.clone(), format!("c{i}"));
        }
        let batch = reader.batches().unwrap().next().unwrap().unwrap();
        for (i, (path, data_type)) in wanted.iter().enumerate() {
            let want = plain.get(path, data_type).unwrap();
            assert_eq!(&want, batch.column(i + 1), "case {case}, {shape}, {path} as {data_type}");
        }
    }
}

#[test]
fn numbers_of_other_kinds_become_the_type_that_is_asked() {
    let mut rows = VariantArrayBuilder::new();
    for text in ["1", "1.5", "2.0", "1e3", "\"1\"", "300", "null"] {
        rows.append_json(text).unwrap();
    }
    let column = rows.finish().unwrap();
    let column = VariantArray::new(&column).unwrap();
    let whole = VariantPath::new([]);
    let integers = column.get(&whole, &DataType::Int64).unwrap();
    let integers: Vec<_> = integers.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(integers, [Some(1), None, Some(2), Some(1000), None, Some(300), None]);
    let floats = column.get(&whole, &DataType::Float64).unwrap();
    let floats: Vec<_> = floats.as_primitive::<Float64Type>().iter().collect();
    let want = [Some(1.0), Some(1.5), Some(2.0), Some(1000.0), None, Some(300.0), None];
    assert_eq!(floats, want);
}

#[test]
fn numbers_become_floats_of_32_bits_by_one_rounding() {
    // Each lies just beside the middle of two floats, and its nearest double is that middle.
    let texts = [
        "1152921573326323713",
        "-1152921573326323713",
        "1152921573326323711",
        "1.00000005960464477539062500001",
    ];
    let mut rows = VariantArrayBuilder::new();
    for text in texts {
        rows.append_json(text).unwrap();
    }
    let column = rows.finish().unwrap();
    let column = VariantArray::new(&column).unwrap();
    let floats = column.get(&VariantPath::new([]), &DataType::Float32).unwrap();
    let floats: Vec<f32> = floats.as_primitive::<Float32Type>().values().to_vec();
    assert_eq!(floats, texts.map(|text| text.parse::<f32>().unwrap()));
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    let batch = batch_of(events(10, &mut Rng::with_seed(1)));
    let (_, bytes) = write(std::slice::from_ref(&batch), WriteOptions::new());
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
    let get = |column: &str, data_type: DataType| {
        let reader = reader.clone().variant_get(column, VariantPath::new([]), data_type, "x");
        let error = reader.batches().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        error.to_string()
    };
    assert!(get("id", DataType::Int64).contains("id is none"));
    assert!(get("w", DataType::Int64).contains('w'));
    assert!(get("v", DataType::Float16).contains("Float16"));
    let options = WriteOptions::new().with_shredding("id", VariantShredding::Stored);
    let sink = marquetry::io::WriteSink(Vec::new());
    let error = Writer::new(sink, batch.schema(), options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// The rows of `column` that a predicate is true of, by the file of it that is shredded so.
fn rows_where(column: &StructArray, shredding: VariantShredding, text: &str) -> (Vec<i64>, u64) {
    let options = WriteOptions::new().with_shredding("v", shredding).with_row_group_rows(1_000);
    let (_, bytes) = write(&[batch_of(column.clone())], options);
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap().project(["id"]).unwrap();
    let reader = reader.filter(marquetry::Predicate::parse(text).unwrap());
    let mut rows = Vec::new();
    for batch in reader.batches().unwrap() {
        rows.extend(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
    }
    (rows, reader.progress().row_groups())
}

#[test]
fn predicates_on_parts_choose_the_same_rows_shredded_or_not() {
    let column = events(5_000, &mut Rng::with_seed(11));
    for text in [
        "variant_get(v, '$.at', 'int64') between 1200 and 1300",
        "variant_get(v, '$.event', 'string') = 'e3'",
        "variant_get(v, '$.event', 'int64') = 17",
        "not variant_get(v, '$.event', 'string') in ('e1', 'e2')",
        "variant_get(v, '$.user.id', 'int64') < 10 and id > 100",
        "variant_get(v, '$.user.vip', 'boolean') = true or variant_get(v, '$.at', 'int64') is null",
        "variant_get(v, '$.price', 'decimal(5, 2)') >= 250.25",
        "variant_get(v, '$.price', 'double') >= 250.25",
        "variant_get(v, '$.tags[1]', 'string') = 'y2'",
        "variant_get(v, '$.tags[0]', 'variant') is not null",
        "variant_get(v, '$', 'variant') is null",
        "variant_get(v, '$.missing', 'int64') is null",
        "variant_get(v, '$.missing', 'int64') = 1",
    ] {
        let infer = VariantShredding::Infer(VariantInference::new());
        let (stored, _) = rows_where(&column, VariantShredding::Stored, text);
        let (shredded, _) = rows_where(&column, infer, text);
        assert_eq!(stored, shredded, "{text}");
        let shape = VariantShape::parse("{at: string, user: {id: int8}, tags: [int64]}").unwrap();
        let (other, _) = rows_where(&column, VariantShredding::Shape(shape), text);
        assert_eq!(stored, other, "{text}");
    }
}

#[test]
fn statistics_of_a_part_prune_only_where_all_of_it_is_shredded() {
    let mut rows = VariantArrayBuilder::new();
    for i in 0..5_000 {
        // In the last row group, one is of another type.
        match i {
            4_500 => rows.append_json(r#"{"at":"late"}"#).unwrap(),
            _ => rows.append_json(&format!(r#"{{"at":{i}}}"#)).unwrap(),
        }
    }
    let column = rows.finish().unwrap();
    let shape = VariantShredding::Shape(VariantShape::parse("{at: int64}").unwrap());
    let read = |text: &str| rows_where(&column, shape.clone(), text);
    // One of five row groups by its bounds, and the last, which they do not cover.
    assert_eq!(read("variant_get(v, '$.at', 'int64') = 1500"), (vec![1_500], 2));
    assert_eq!(read("variant_get(v, '$.at', 'string') = 'late'").0, [4_500]);
    assert_eq!(read("variant_get(v, '$.at', 'int64') is null").0, [4_500]);
}

#[test]
fn predicates_on_parts_say_what_is_wrong() {
    let batch = batch_of(events(10, &mut Rng::with_seed(1)));
    let (_, bytes) = write(std::slice::from_ref(&batch), WriteOptions::new());
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
    for (text, part) in [
        ("variant_get(id, '$.a', 'int64') = 1", "not a VARIANT"),
        ("variant_get(v, '$.a', 'int64') = 'x'", "'x'"),
    ] {
        let predicate = marquetry::Predicate::parse(text).unwrap();
        let error = reader.clone().try_filter(predicate).err().unwrap().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for (text, part) in [
        ("variant_get(v, '$.a', 'list') = 1", "name of a type"),
        ("variant_get(v, '$.a[', 'int64') = 1", "a path"),
        ("variant_get(v) = 1", "a path"),
    ] {
        let error = marquetry::Predicate::parse(text).err().unwrap().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// A binary column.
fn binary(values: &[Option<&[u8]>]) -> ArrayRef {
    Arc::new(arrow_array::BinaryArray::from_opt_vec(values.to_vec()))
}

fn group(columns: &[(&str, ArrayRef)]) -> StructArray {
    let fields = columns.iter().map(|(name, array)| {
        let nullable = *name != "metadata" && !matches!(array.data_type(), DataType::Struct(_))
            || *name == "typed_value";
        Arc::new(Field::new(*name, array.data_type().clone(), nullable))
    });
    let fields: Vec<_> = fields.collect();
    let columns = columns.iter().map(|(_, array)| array.clone()).collect();
    StructArray::try_new(fields.into(), columns, None).unwrap()
}

/// Metadata of the names `a` and `b`, for `rows` rows.
fn names(rows: usize) -> (&'static str, ArrayRef) {
    ("metadata", binary(&vec![Some(&b"\x11\x02\x00\x01\x02ab"[..]); rows]))
}

/// The result of unshredding a column, as JSON or the kind of the error.
fn outcome(column: &StructArray) -> std::result::Result<Vec<Option<String>>, ErrorKind> {
    let column = VariantArray::new(column).map_err(|e| e.kind())?;
    let unshredded = column.unshred().map_err(|e| e.kind())?;
    let texts = VariantArray::new(&unshredded).unwrap().to_json().unwrap();
    let same = column.to_json().unwrap();
    assert_eq!(texts, same);
    Ok(texts.iter().map(|text| text.map(str::to_owned)).collect())
}

fn malformed<T>() -> std::result::Result<T, ErrorKind> {
    Err(ErrorKind::Malformed(marquetry::Spec::Variant))
}

const TRUE: &[u8] = &[4];
const ONE: &[u8] = &[12, 1];
/// `{"a": 1}` and `{"b": 1}`.
const A: &[u8] = &[2, 1, 0, 0, 2, 12, 1];
const B: &[u8] = &[2, 1, 1, 0, 2, 12, 1];

fn int64(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(arrow_array::Int64Array::from(values.to_vec()))
}

#[test]
fn a_value_beside_a_typed_value_that_is_no_object_is_refused() {
    let column =
        group(&[names(1), ("value", binary(&[Some(TRUE)])), ("typed_value", int64(&[Some(7)]))]);
    assert_eq!(outcome(&column), malformed());
    // Within a list.
    let element = group(&[("value", binary(&[Some(TRUE)])), ("typed_value", int64(&[Some(7)]))]);
    let field = Arc::new(Field::new("element", element.data_type().clone(), false));
    let list: ArrayRef = Arc::new(arrow_array::ListArray::new(
        field,
        arrow_buffer::OffsetBuffer::from_lengths([1]),
        Arc::new(element),
        None,
    ));
    assert_eq!(outcome(&group(&[names(1), ("typed_value", list)])), malformed());
}

/// A shredded object with the one field `a` of int64.
fn object_of(a: (Option<&[u8]>, Option<i64>), value: Option<&[u8]>) -> StructArray {
    let field = group(&[("value", binary(&[a.0])), ("typed_value", int64(&[a.1]))]);
    let object: ArrayRef = Arc::new(group(&[("a", Arc::new(field))]));
    group(&[names(1), ("value", binary(&[value])), ("typed_value", object)])
}

#[test]
fn the_two_parts_of_an_object_are_put_together_or_refused() {
    let some = |text: &str| Ok(vec![Some(text.to_owned())]);
    assert_eq!(outcome(&object_of((None, Some(7)), None)), some(r#"{"a":7}"#));
    assert_eq!(outcome(&object_of((None, Some(7)), Some(B))), some(r#"{"a":7,"b":1}"#));
    assert_eq!(outcome(&object_of((None, None), Some(B))), some(r#"{"b":1}"#));
    assert_eq!(outcome(&object_of((None, None), None)), some("{}"));
    // A field that is there and null, and one that is missing.
    assert_eq!(outcome(&object_of((Some(&[0]), None), None)), some(r#"{"a":null}"#));
    // The value beside the fields is no object.
    assert_eq!(outcome(&object_of((None, Some(7)), Some(ONE))), malformed());
    // The field is in both parts.
    assert_eq!(outcome(&object_of((None, Some(7)), Some(A))), malformed());
    assert_eq!(outcome(&object_of((None, None), Some(A))), malformed());
}

#[test]
fn where_both_columns_are_null_a_value_is_null_and_a_field_missing() {
    let column = group(&[names(1), ("value", binary(&[None])), ("typed_value", int64(&[None]))]);
    assert_eq!(outcome(&column), Ok(vec![Some("null".to_owned())]));
    let element =
        group(&[("value", binary(&[None, None])), ("typed_value", int64(&[None, Some(3)]))]);
    let field = Arc::new(Field::new("element", element.data_type().clone(), false));
    let list: ArrayRef = Arc::new(arrow_array::ListArray::new(
        field,
        arrow_buffer::OffsetBuffer::from_lengths([2]),
        Arc::new(element),
        None,
    ));
    let column = group(&[names(1), ("typed_value", list)]);
    assert_eq!(outcome(&column), Ok(vec![Some("[null,3]".to_owned())]));
}

#[test]
fn a_row_that_is_null_is_other_than_the_null_of_variant() {
    let mut rows = VariantArrayBuilder::new();
    rows.append_null();
    rows.append(Variant::Null).unwrap();
    let column = rows.finish().unwrap();
    let shape = VariantShape::parse("int64").unwrap();
    for column in [column.clone(), VariantArray::new(&column).unwrap().shred(&shape).unwrap()] {
        let texts = outcome(&column).unwrap();
        assert_eq!(texts, [None, Some("null".to_owned())]);
        assert!(column.is_null(0) && column.is_valid(1));
    }
    let (_, bytes) = write(&[batch_of(column)], WriteOptions::new());
    let stored = &read_column(&Reader::new(bytes::Bytes::from(bytes)).unwrap())[0];
    assert!(stored.is_null(0) && stored.is_valid(1));
}

#[test]
fn a_column_without_value_is_read() {
    let column = group(&[names(2), ("typed_value", int64(&[Some(1), None]))]);
    assert_eq!(outcome(&column), Ok(vec![Some("1".to_owned()), Some("null".to_owned())]));
}

#[test]
fn types_that_variant_has_not_are_refused() {
    let uuids = arrow_array::FixedSizeBinaryArray::try_from_iter([[7; 16]].iter()).unwrap();
    let wrong: [ArrayRef; 6] = [
        Arc::new(arrow_array::UInt32Array::from(vec![1])),
        Arc::new(uuids),
        Arc::new(arrow_array::Time32MillisecondArray::from(vec![1])),
        Arc::new(arrow_array::Time64NanosecondArray::from(vec![1])),
        Arc::new(arrow_array::TimestampMillisecondArray::from(vec![1])),
        Arc::new(arrow_array::Float16Array::from(vec![half::f16::ONE])),
    ];
    for typed in wrong {
        let said = typed.data_type().to_string();
        let column = group(&[names(1), ("value", binary(&[None])), ("typed_value", typed)]);
        let error = VariantArray::new(&column).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Malformed(marquetry::Spec::Variant));
        assert!(error.to_string().contains(&said), "{error}");
    }
}

#[test]
fn names_and_bytes_that_are_not_there_are_refused() {
    let other: ArrayRef = binary(&[Some(&b"\x11\x01\x00\x01b"[..])]);
    let field = group(&[("value", binary(&[None])), ("typed_value", int64(&[Some(1)]))]);
    let object: ArrayRef = Arc::new(group(&[("a", Arc::new(field))]));
    let column = group(&[("metadata", other), ("typed_value", object)]);
    assert_eq!(outcome(&column), malformed());
    for (metadata, value, kind) in [
        (&b"\x02\x00\x00"[..], TRUE, ErrorKind::Unsupported("version of VARIANT metadata")),
        (b"\x01", TRUE, ErrorKind::Malformed(marquetry::Spec::Variant)),
        (b"", TRUE, ErrorKind::Malformed(marquetry::Spec::Variant)),
        (b"\x01\x00\x00", &[][..], ErrorKind::Malformed(marquetry::Spec::Variant)),
        (b"\x01\x00\x00", &[12], ErrorKind::Malformed(marquetry::Spec::Variant)),
        (b"\x01\x00\x00", &[4, 4], ErrorKind::Malformed(marquetry::Spec::Variant)),
    ] {
        let column =
            group(&[("metadata", binary(&[Some(metadata)])), ("value", binary(&[Some(value)]))]);
        assert_eq!(outcome(&column).err(), Some(kind), "{metadata:?} {value:?}");
    }
    let column = group(&[("value", binary(&[Some(TRUE)]))]);
    assert_eq!(
        VariantArray::new(&column).err().unwrap().kind(),
        ErrorKind::Malformed(marquetry::Spec::Variant)
    );
}

#[test]
fn shapes_are_read_as_they_are_written() {
    let seed = seed();
    for case in 0..cases(300) {
        let mut rng = Rng::with_seed(seed.wrapping_add(case as u64));
        let shape = random_shape(&mut rng, 0);
        assert_eq!(shape.to_string().parse::<VariantShape>().unwrap(), shape, "case {case}");
        assert_eq!(VariantShape::from_data_type(&shape.data_type()).unwrap(), shape);
    }
    for (text, part) in [
        ("", "byte 0"),
        ("{}", "the name of a field"),
        ("{a int64}", "':'"),
        ("[int64", "']'"),
        ("{a: int64, a: string}", "named twice"),
        ("decimal(39, 0)", "Decimal128(39, 0)"),
        ("uint8", "name of a type"),
        ("int64 x", "the end"),
        (&"[".repeat(100_000), "nests deeper"),
    ] {
        let error = VariantShape::parse(text).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn text_that_is_far_larger_than_its_value_is_refused() {
    // 100 KB of values and names; as JSON, 1 GB.
    let name = "n".repeat(100_000);
    let mut rows = VariantArrayBuilder::new();
    rows.append_with(|builder| {
        builder.begin_list()?;
        for _ in 0..10_000 {
            builder.begin_object()?;
            builder.name(&name)?;
            builder.append(true)?;
            builder.end_object()?;
        }
        builder.end_list()
    })
    .unwrap();
    let column = rows.finish().unwrap();
    let limit = ErrorKind::Limit(marquetry::LimitKind::Memory);
    let variant = VariantArray::new(&column).unwrap();
    let value = variant.value(0).unwrap().unwrap();
    assert_eq!(value.as_variant().to_json().err().unwrap().kind(), limit);
    let mut text = "before".to_owned();
    assert_eq!(variant.write_json(0, &mut text).err().unwrap().kind(), limit);
    assert_eq!(text, "before");
    let (_, bytes) = write(&[batch_of(column)], WriteOptions::new());
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap().memory(64 << 20);
    let mut batches = reader.variants(VariantOutput::Json).batches().unwrap();
    assert_eq!(batches.next_batch().err().unwrap().kind(), limit);
}

/// The array with bytes changed in some binary columns, and other rows null in some columns.
fn mutated(array: &ArrayRef, rng: &mut Rng) -> ArrayRef {
    let nulls = |array: &ArrayRef, rng: &mut Rng| match rng.u8(..6) {
        0 => Some((0..array.len()).map(|_| rng.bool()).collect::<Vec<bool>>().into()),
        1 => None,
        _ => array.nulls().cloned(),
    };
    match array.data_type() {
        DataType::Binary => {
            let (offsets, values, kept) = array.as_binary::<i32>().clone().into_parts();
            let mut values = values.to_vec();
            for _ in 0..rng.usize(..3) {
                if !values.is_empty() {
                    let at = rng.usize(..values.len());
                    values[at] =
                        if rng.bool() { rng.u8(..) } else { values[at] ^ 1 << rng.u8(..8) };
                }
            }
            let changed = if rng.bool() { kept } else { nulls(array, rng) };
            Arc::new(arrow_array::BinaryArray::new(offsets, values.into(), changed))
        }
        DataType::Struct(fields) => {
            let group = array.as_struct();
            let columns: Vec<_> =
                group.columns().iter().map(|column| mutated(column, rng)).collect();
            let fields: Vec<_> = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| {
                    let field = field.as_ref().clone().with_nullable(true);
                    Arc::new(field.with_data_type(column.data_type().clone()))
                })
                .collect();
            let kept = nulls(array, rng);
            Arc::new(
                StructArray::try_new_with_length(fields.into(), columns, kept, group.len())
                    .unwrap(),
            )
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let values = mutated(list.values(), rng);
            let field = Arc::new(Field::new("element", values.data_type().clone(), true));
            let kept = nulls(array, rng);
            Arc::new(arrow_array::ListArray::new(field, list.offsets().clone(), values, kept))
        }
        _ if rng.u8(..4) == 0 => {
            let data = array.to_data().into_builder().nulls(nulls(array, rng)).build().unwrap();
            arrow_array::make_array(data)
        }
        _ => array.clone(),
    }
}

#[test]
fn mutated_columns_are_read_or_refused() {
    let seed = seed();
    let (mut read, mut refused) = (0, 0);
    for case in 0..cases(1_500) {
        let mut rng = Rng::with_seed(seed.wrapping_add(case as u64));
        let rows = rng.usize(1..8);
        let column = random_column(&mut rng, rows);
        let shape = random_shape(&mut rng, 0);
        let shredded: ArrayRef =
            Arc::new(VariantArray::new(&column).unwrap().shred(&shape).unwrap());
        let mutant = mutated(&shredded, &mut rng);
        let Ok(variant) = VariantArray::new(mutant.as_struct()) else {
            refused += 1;
            continue;
        };
        // Whatever comes out is whole: it can be read again as far as it can be read at all.
        let mut check = |found: Result<ArrayRef>| match found {
            Ok(array) => {
                array.to_data().validate_full().unwrap();
                read += 1;
            }
            Err(_) => refused += 1,
        };
        check(variant.unshred().map(|array| Arc::new(array) as ArrayRef));
        check(variant.to_json().map(|array| Arc::new(array) as ArrayRef));
        let other = random_shape(&mut rng, 0);
        check(variant.shred(&other).map(|array| Arc::new(array) as ArrayRef));
        for path in paths() {
            check(variant.get(&path, &types()[rng.usize(..types().len())]));
            check(variant.get(&path, &VariantArray::unshredded_type()));
        }
        for row in 0..rows {
            if let Ok(Some(value)) = variant.value(row) {
                let _ = value.as_variant().validate();
            }
        }
        let _ = VariantInference::new().infer(std::slice::from_ref(&variant));
    }
    println!("{read} read, {refused} refused");
    assert!(read > 0 && refused > 0);
}

#[test]
fn a_target_schema_gives_files_that_are_shredded_in_other_ways_in_its_shape() {
    let column = events(300, &mut Rng::with_seed(5));
    let shapes = ["{event: string, user: {id: int64}}", "{event: string}", "variant", "[int64]"];
    for from in shapes {
        let from = VariantShredding::Shape(VariantShape::parse(from).unwrap());
        let options = WriteOptions::new().with_shredding("v", from);
        let (_, bytes) = write(&[batch_of(column.clone())], options);
        let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
        for to in shapes {
            let wanted = VariantShape::parse(to).unwrap().data_type();
            let field = VariantArray::field("v", true).with_data_type(wanted.clone());
            let target = Arc::new(Schema::new(vec![field]));
            let by_name = marquetry::schema::MatchBy::Name;
            let reader = reader.clone().target(target.clone(), by_name).unwrap();
            assert_eq!(reader.schema().unwrap(), target);
            let text = "variant_get(v, '$.event', 'string') = 'e3'";
            let chosen = reader.clone().filter(marquetry::Predicate::parse(text).unwrap());
            let chosen: usize =
                chosen.batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            assert!(chosen > 20 && chosen < 100);
            let found = &read_column(&reader)[0];
            assert_eq!(*found.data_type(), wanted);
            assert_same(&column, found.as_struct());
        }
    }
}

#[test]
#[cfg(feature = "encryption")]
fn values_do_not_move_into_leaves_without_a_key() {
    use marquetry::crypt::{Encryption, Key, UnlistedColumns};

    let key = || Key::generate(128).unwrap();
    let batch = batch_of(events(10, &mut Rng::with_seed(1)));
    let writer = |encryption: Encryption, shredding: VariantShredding| {
        let encryption = encryption.with_unlisted_columns(UnlistedColumns::Plain);
        let options =
            WriteOptions::new().with_encryption(encryption).with_shredding("v", shredding);
        let sink = marquetry::io::WriteSink(Vec::new());
        let mut writer = Writer::new(sink, batch.schema(), options)?;
        writer.write(&batch)?;
        writer.finish()
    };
    let shape = VariantShredding::Shape(VariantShape::parse("{event: string}").unwrap());
    for shredding in [shape, VariantShredding::Infer(VariantInference::new())] {
        let values = Encryption::new(key()).with_column_key("v.value", key());
        let error = writer(values, shredding.clone()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("\"v\" as a whole"), "{error}");
        writer(Encryption::new(key()).with_column_key("v", key()), shredding).unwrap();
    }
}

#[test]
fn settings_of_leaves_that_shredding_would_make_wrong_are_refused() {
    let batch = batch_of(events(100, &mut Rng::with_seed(1)));
    let shape = VariantShredding::Shape(VariantShape::parse("{at: int64}").unwrap());
    let options = WriteOptions::new()
        .with_shredding("v", shape)
        .with_sort_order([marquetry::SortColumn::ascending("v.value")]);
    let sink = marquetry::io::WriteSink(Vec::new());
    let error = Writer::new(sink, batch.schema(), options).err().unwrap();
    assert!(error.to_string().contains("shredded while it is written"), "{error}");
}

#[test]
fn row_groups_of_another_shape_are_not_appended() {
    let encoder = |shape: &str| {
        let shape = VariantShredding::Shape(VariantShape::parse(shape).unwrap());
        let options = WriteOptions::new().with_shredding("v", shape);
        let schema = batch_of(events(1, &mut Rng::with_seed(1))).schema();
        marquetry::RowGroupEncoder::new(schema, options).unwrap()
    };
    let batch = batch_of(events(100, &mut Rng::with_seed(1)));
    let (a, b) = (encoder("{at: int64}"), encoder("{event: string}"));
    let mut writer = Writer::over(marquetry::io::WriteSink(Vec::new()), a.clone());
    writer.append(a.encode(std::slice::from_ref(&batch)).unwrap()).unwrap();
    let error = writer.append(b.encode(std::slice::from_ref(&batch)).unwrap()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn names_in_no_order_are_found_where_each_row_has_other_metadata() {
    let mut rng = Rng::with_seed(1);
    let mut names: Vec<String> = (0..1_500).map(|i| format!("name{i:05}")).collect();
    let shape = VariantShape::object(
        names.iter().map(|name| (name.as_str(), VariantShape::scalar(DataType::Int64).unwrap())),
    )
    .unwrap();
    let mut rows = VariantArrayBuilder::new();
    for _ in 0..100 {
        // The metadata of each row are others than those of the row before.
        rng.shuffle(&mut names);
        rows.append_with(|builder| {
            builder.begin_object()?;
            for name in &names {
                builder.name(name)?;
                builder.append(Variant::integer(1))?;
            }
            builder.end_object()
        })
        .unwrap();
    }
    let column = rows.finish().unwrap();
    let shredded = VariantArray::new(&column).unwrap().shred(&shape).unwrap();
    assert_same(&column, &shredded);
}

#[test]
fn parts_have_their_names_where_many_are_in_no_order() {
    let mut rows = VariantArrayBuilder::new();
    // Names have the order in which the values have them.
    let others: Vec<String> = (0..20).rev().map(|i| format!(r#""n{i:02}":0"#)).collect();
    let a = r#"{"x":1,"y":2}"#;
    rows.append_json(&format!(r#"{{{},"l":[{a}],"a":{a}}}"#, others.join(","))).unwrap();
    let column = rows.finish().unwrap();
    let plain = VariantArray::new(&column).unwrap();
    let shape = VariantShape::parse("{a: {x: int64, y: int64}, l: [{x: int64, y: int64}]}");
    let shredded = plain.shred(&shape.unwrap()).unwrap();
    let shredded = VariantArray::new(&shredded).unwrap();
    let fields = ["x", "y"].map(|name| Field::new(name, DataType::Int64, true));
    let data_type = DataType::Struct(fields.into_iter().collect());
    for path in ["$.a", "$.l[0]"] {
        let path: VariantPath = path.parse().unwrap();
        let part = shredded.get(&path, &VariantArray::unshredded_type()).unwrap();
        let part = VariantArray::new(part.as_struct()).unwrap().value(0).unwrap().unwrap();
        assert_eq!(part.as_variant().to_json().unwrap(), a);
        let [want, have] = [&plain, &shredded].map(|from| from.get(&path, &data_type).unwrap());
        assert_eq!(&want, &have, "{path}");
    }
}

#[test]
fn parts_of_lists_that_are_null_are_there_and_parts_of_types_unknown_are_refused() {
    let mut rows = VariantArrayBuilder::new();
    rows.append_json("[null, 1]").unwrap();
    let column = rows.finish().unwrap();
    let path = VariantPath::new([VariantStep::Index(0)]);
    // An element whose columns are both null is null.
    let shredded = VariantArray::new(&column)
        .unwrap()
        .shred(&VariantShape::parse("[int64]").unwrap())
        .unwrap();
    let part =
        VariantArray::new(&shredded).unwrap().get(&path, &VariantArray::unshredded_type()).unwrap();
    assert_eq!(part.null_count(), 0);
    let variant = VariantArray::new(&column).unwrap();
    let error = variant.get(&path, &DataType::Decimal128(39, 0)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let infer = VariantInference::new().with_max_depth(usize::MAX).with_min_share(0.0);
    let mut deep = VariantArrayBuilder::new();
    deep.append_json(&format!("{}{}", "[".repeat(190), "]".repeat(190))).unwrap();
    let deep = deep.finish().unwrap();
    let shape = infer.infer(&[VariantArray::new(&deep).unwrap()]).unwrap();
    assert_eq!(VariantShape::parse(&shape.to_string()).unwrap(), shape);
}

#[test]
fn a_part_that_no_dictionary_holds_prunes_the_row_group() {
    let mut rows = VariantArrayBuilder::new();
    let mut rng = Rng::with_seed(2);
    for _ in 0..30_000 {
        let name = ["ant", "bee", "yak", "zebra"][rng.usize(..4)];
        rows.append_json(&format!(r#"{{"animal":"{name}"}}"#)).unwrap();
    }
    let column = rows.finish().unwrap();
    let shape = VariantShredding::Shape(VariantShape::parse("{animal: string}").unwrap());
    let options = WriteOptions::new().with_shredding("v", shape);
    let (_, bytes) = write(&[batch_of(column)], options);
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
    let text = "variant_get(v, '$.animal', 'string') = 'cat'";
    let reader = reader.filter(marquetry::Predicate::parse(text).unwrap());
    assert_eq!(reader.batches().unwrap().count(), 0);
    assert_eq!(reader.progress().row_groups(), 0, "within the bounds, and not in the dictionary");
}

#[test]
fn binary_that_is_read_as_strings_stays_binary_in_a_variant() {
    let column = events(100, &mut Rng::with_seed(1));
    let (_, bytes) = write(&[batch_of(column.clone())], WriteOptions::new());
    let reader = Reader::new(bytes::Bytes::from(bytes)).unwrap();
    let mut options = reader.read_options().clone();
    options.arrow = options.arrow.with_binary_as_string(true).with_hint(false);
    assert_same(&column, read_column(&reader.options(options))[0].as_struct());
}

#[test]
fn a_shape_is_still_inferred_after_a_row_group_was_refused() {
    let mut rng = Rng::with_seed(1);
    let batch = batch_of(events(1_000, &mut rng));
    let infer = VariantShredding::Infer(VariantInference::new());
    let options = WriteOptions::new().with_shredding("v", infer);
    let sink = marquetry::io::WriteSink(Vec::new());
    let mut writer = Writer::new(sink, batch.schema(), options).unwrap();
    let shape = VariantShredding::Shape(VariantShape::parse("{event: string}").unwrap());
    let foreign = WriteOptions::new().with_shredding("v", shape);
    let foreign = marquetry::RowGroupEncoder::new(batch.schema(), foreign).unwrap();
    let foreign = foreign.encode(std::slice::from_ref(&batch)).unwrap();
    assert_eq!(writer.append(foreign).err().unwrap().kind(), ErrorKind::Usage);
    writer.write(&batch).unwrap();
    let (report, _) = writer.into_inner().unwrap();
    assert_eq!(report.shapes.len(), 1, "{:?}", report.shapes);
}

#[test]
fn inferred_shapes_keep_integers_integers_and_digits_as_many() {
    let mut lines: Vec<String> = (0..900).map(|i| format!(r#"{{"p": {}.50}}"#, i + 1)).collect();
    lines.extend(
        ["12.5", "133", "-7", "0.125", "null", "\"text\""].map(|p| format!(r#"{{"p": {p}}}"#)),
    );
    let json = |inference: VariantInference| {
        let mut values = VariantArrayBuilder::new();
        for line in &lines {
            values.append_json(line).expect("JSON");
        }
        let values = VariantArray::new(&values.finish().expect("values")).expect("VARIANT");
        let shape = inference.infer(std::slice::from_ref(&values)).expect("a shape");
        let shredded = values.shred(&shape).expect("shredded");
        let shredded = VariantArray::new(&shredded).expect("VARIANT");
        let text = shredded.to_json().expect("JSON");
        let text: Vec<String> = (0..text.len()).map(|i| text.value(i).replace(':', ": ")).collect();
        (shape.to_string(), text)
    };
    let (shape, text) = json(VariantInference::new());
    assert_eq!(shape, "{p: decimal(5, 2)}");
    assert_eq!(text, lines);
    let (shape, text) = json(VariantInference::new().with_merged_numbers(true));
    assert_eq!(shape, "{p: decimal(6, 3)}");
    assert_eq!(text[901], r#"{"p": 133.000}"#);
}

#[test]
fn no_shape_is_inferred_whose_only_column_has_no_name() {
    let shape = |texts: &[&str]| {
        let mut builder = VariantArrayBuilder::new();
        for text in texts {
            builder.append_json(text).expect("JSON");
        }
        let column = VariantArray::new(&builder.finish().expect("values")).expect("VARIANT");
        VariantInference::new().infer(&[column]).expect("a shape").to_string()
    };
    assert_eq!(shape(&[r#"{"": 1}"#, r#"{"": 2}"#]), "variant");
    assert!(shape(&[r#"{"": 1, "a": 2}"#]).contains("a"));
}
