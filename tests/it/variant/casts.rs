//! Tests arrays that are cast to VARIANT, and parts that are extracted as lists and structs.

use std::sync::Arc;

use fastrand::Rng;
use marquetry::arrow_array::builder::{MapBuilder, StringBuilder};
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::*;
use marquetry::arrow_array::*;
use marquetry::arrow_buffer::{IntervalMonthDayNano, ScalarBuffer, i256};
use marquetry::arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit, UnionFields};
use marquetry::io::WriteSink;
use marquetry::variant::{
    Variant, VariantArray, VariantPath, VariantShape, VariantShredding, cast_to_variant,
};
use marquetry::{ErrorKind, Reader, WriteOptions, Writer};

use crate::support::generate::{array, every_case};
use crate::support::read_with;

fn cast(array: &ArrayRef) -> marquetry::Result<StructArray> {
    cast_to_variant(&Field::new("x", array.data_type().clone(), true), array)
}

/// The values as JSON; those of nulls are empty.
fn json(array: ArrayRef) -> Vec<String> {
    let cast = cast(&array).expect("a cast");
    let texts = VariantArray::new(&cast).expect("a column").to_json().expect("texts");
    texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect()
}

#[test]
fn scalars_become_the_values_that_hold_them() {
    let first = |array: ArrayRef| {
        let cast = cast(&array).expect("a cast");
        let value = VariantArray::new(&cast).expect("a column").value(0).expect("a value");
        format!("{:?}", value.expect("no null").as_variant())
    };
    let utc = || Some(Arc::<str>::from("UTC"));
    #[rustfmt::skip]
    let table: Vec<(ArrayRef, Variant<'_>)> = vec![
        (Arc::new(BooleanArray::from(vec![true])), true.into()),
        (Arc::new(Int8Array::from(vec![-8])), Variant::Int8(-8)),
        (Arc::new(Int64Array::from(vec![8])), Variant::Int64(8)),
        (Arc::new(UInt8Array::from(vec![255])), Variant::Int16(255)),
        (Arc::new(UInt16Array::from(vec![65_535])), Variant::Int32(65_535)),
        (Arc::new(UInt32Array::from(vec![u32::MAX])), Variant::Int64(u32::MAX.into())),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), Variant::Decimal(u64::MAX.into(), 0)),
        (Arc::new(Float64Array::from(vec![0.5])), Variant::Double(0.5)),
        (Arc::new(Date32Array::from(vec![7])), Variant::Date(7)),
        (Arc::new(Date64Array::from(vec![86_400_000])), Variant::Date(1)),
        (Arc::new(Date64Array::from(vec![1])), Variant::TimestampNtzMicros(1_000)),
        (Arc::new(Time32SecondArray::from(vec![2])), Variant::TimeMicros(2_000_000)),
        (Arc::new(Time64NanosecondArray::from(vec![3_000])), Variant::TimeMicros(3)),
        (Arc::new(TimestampSecondArray::from(vec![4])), Variant::TimestampNtzMicros(4_000_000)),
        (Arc::new(TimestampMillisecondArray::from(vec![5]).with_timezone_opt(utc())),
         Variant::TimestampMicros(5_000)),
        (Arc::new(TimestampNanosecondArray::from(vec![6]).with_timezone_opt(utc())),
         Variant::TimestampNanos(6)),
        (Arc::new(Decimal32Array::from(vec![75]).with_precision_and_scale(4, 1).expect("fits")),
         Variant::Decimal(75, 1)),
        (Arc::new(Decimal128Array::from(vec![75]).with_precision_and_scale(4, -2).expect("fits")),
         Variant::Decimal(7_500, 0)),
        (Arc::new(Decimal256Array::from(vec![i256::from(9)]).with_precision_and_scale(70, 2)
            .expect("fits")), Variant::Decimal(9, 2)),
        (Arc::new(LargeStringArray::from(vec!["text"])), Variant::String("text")),
        (Arc::new(BinaryViewArray::from(vec![&b"\x01"[..]])), Variant::Binary(b"\x01")),
        (Arc::new(FixedSizeBinaryArray::try_from(vec![&[9; 16]]).expect("bytes")),
         Variant::Binary(&[9; 16])),
    ];
    for (array, expected) in table {
        let data_type = array.data_type().clone();
        assert_eq!(first(array), format!("{expected:?}"), "{data_type}");
    }
    let uuids: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from(vec![&[9; 16]]).expect("bytes"));
    let field = Field::new("id", DataType::FixedSizeBinary(16), false)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into());
    let cast = cast_to_variant(&field, &uuids).expect("a cast");
    let value = VariantArray::new(&cast).expect("a column").value(0).expect("a value");
    assert!(matches!(value.expect("no null").as_variant(), Variant::Uuid(_)));
}

#[test]
fn nested_arrays_become_objects_and_arrays() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    assert_eq!(json(Arc::new(lists.clone())), ["[1,null]", "", "[]"]);
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        [Some(vec![Some(1), Some(2)]), None, Some(vec![Some(3), Some(4)])],
        2,
    );
    assert_eq!(json(Arc::new(fixed.slice(1, 2))), ["", "[3,4]"]);
    let names: DictionaryArray<Int32Type> = [Some("a"), None, Some("a")].into_iter().collect();
    let runs: RunArray<Int32Type> = [Some("r"), Some("r"), None].into_iter().collect();
    let fields: Fields = vec![
        Field::new("list", lists.data_type().clone(), true),
        Field::new("name", names.data_type().clone(), true),
        Field::new("run", runs.data_type().clone(), true),
        Field::new("nothing", DataType::Null, true),
    ]
    .into();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(lists), Arc::new(names), Arc::new(runs), Arc::new(NullArray::new(3))];
    let table = StructArray::new(fields, columns, None);
    assert_eq!(
        json(Arc::new(table)),
        [
            r#"{"list":[1,null],"name":"a","nothing":null,"run":"r"}"#,
            r#"{"list":null,"name":null,"nothing":null,"run":"r"}"#,
            r#"{"list":[],"name":"a","nothing":null,"run":null}"#,
        ]
    );
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).expect("an entry");
    map.append(false).expect("a null");
    assert_eq!(json(Arc::new(map.finish())), [r#"{"k":null}"#, ""]);
    let children = UnionFields::try_new(
        [3, 5],
        [Field::new("n", DataType::Int32, true), Field::new("s", DataType::Utf8, true)],
    )
    .expect("two fields");
    let union = UnionArray::try_new(
        children,
        ScalarBuffer::from(vec![5i8, 3, 3]),
        Some(ScalarBuffer::from(vec![0i32, 1, 0])),
        vec![
            Arc::new(Int32Array::from(vec![Some(1), None])),
            Arc::new(StringArray::from(vec!["s"])),
        ],
    )
    .expect("a union");
    assert_eq!(json(Arc::new(union)), ["\"s\"", "", "1"]);
    // A VARIANT stays what it is.
    let inner = cast(&(Arc::new(Int32Array::from(vec![7])) as ArrayRef)).expect("a cast");
    let fields: Fields = vec![VariantArray::field("v", false)].into();
    let outer = StructArray::new(fields, vec![Arc::new(inner)], None);
    assert_eq!(json(Arc::new(outer)), [r#"{"v":7}"#]);
}

#[test]
fn what_variant_cannot_hold_is_an_error() {
    let kind = |array: ArrayRef| cast(&array).unwrap_err().kind();
    let unsupported = |array| assert!(matches!(kind(array), ErrorKind::Unsupported(_)));
    unsupported(Arc::new(DurationSecondArray::from(vec![1])));
    unsupported(Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::ZERO])));
    let usage = |array| assert_eq!(kind(array), ErrorKind::Usage);
    usage(Arc::new(Time64NanosecondArray::from(vec![1])));
    usage(Arc::new(TimestampSecondArray::from(vec![i64::MAX])));
    let large = Decimal256Array::from(vec![i256::MAX]).with_precision_and_scale(76, 0);
    usage(Arc::new(large.expect("a type")));
    let twice: Fields =
        vec![Field::new("a", DataType::Int32, true), Field::new("a", DataType::Int32, true)].into();
    let one = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    usage(Arc::new(StructArray::new(twice, vec![one(), one()], None)));
}

/// A type that is the same after a cast to VARIANT and back.
fn some_type(rng: &mut Rng, depth: usize) -> DataType {
    let utc = |unit, rng: &mut Rng| DataType::Timestamp(unit, rng.bool().then(|| "UTC".into()));
    let field = |name: String, rng: &mut Rng| Field::new(name, some_type(rng, depth + 1), true);
    match rng.u8(0..if depth < 3 { 26 } else { 18 }) {
        0 => DataType::Boolean,
        1 => DataType::Int8,
        2 => DataType::Int16,
        3 => DataType::Int32,
        4 => DataType::Int64,
        5 => DataType::UInt8,
        6 => DataType::UInt16,
        7 => DataType::UInt32,
        8 => DataType::UInt64,
        9 => DataType::Float32,
        10 => DataType::Float64,
        11 => DataType::Decimal128(37, 5),
        12 => DataType::Date32,
        13 => DataType::Time64(TimeUnit::Microsecond),
        14 => utc(TimeUnit::Microsecond, rng),
        15 => utc(TimeUnit::Nanosecond, rng),
        16 => DataType::Binary,
        17 => DataType::Utf8,
        18..=21 => DataType::List(Arc::new(field("item".to_owned(), rng))),
        22 => DataType::LargeList(Arc::new(field("element".to_owned(), rng))),
        _ => {
            let fields = (0..rng.usize(1..4)).map(|i| field(format!("f{i}"), rng));
            DataType::Struct(fields.collect::<Vec<_>>().into())
        }
    }
}

#[test]
fn random_arrays_are_the_same_after_a_cast_and_back() {
    every_case(300, |seed| {
        let mut rng = Rng::with_seed(seed);
        let field = Field::new("x", some_type(&mut rng, 0), true);
        let rows = rng.usize(0..60);
        let before = array(&mut rng, &field, rows, None);
        let cast = cast_to_variant(&field, &before).expect("a cast");
        let column = VariantArray::new(&cast).expect("a column");
        let after = column.get(&VariantPath::new([]), field.data_type()).expect("parts");
        assert_eq!(&after, &before, "seed {seed}: {}", field.data_type());
    });
}

#[test]
fn parts_of_a_file_are_lists_and_structs_whether_shredded_or_not() {
    let texts = [
        r#"{"user": {"id": 7, "tags": ["a", "b"], "more": 1}, "x": 1}"#,
        r#"{"user": {"id": "seven", "tags": "a"}}"#,
        r#"{"user": {"tags": ["c", 4, null, {"d": 1}]}}"#,
        r#"{"user": [1, 2]}"#,
        "3",
    ];
    let mut rows = marquetry::variant::VariantArrayBuilder::new();
    texts.iter().for_each(|text| rows.append_json(text).expect("JSON"));
    rows.append_null();
    let column: ArrayRef = Arc::new(rows.finish().expect("a column"));
    let schema = marquetry::arrow_schema::Schema::new(vec![VariantArray::field("v", true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![column]).expect("a batch");
    let tags: FieldRef = Arc::new(Field::new("item", DataType::Utf8, true));
    let user = DataType::Struct(
        vec![
            Field::new("id", DataType::Int64, true),
            Field::new("tags", DataType::List(tags.clone()), true),
            Field::new("lacking", DataType::Boolean, true),
        ]
        .into(),
    );
    let shapes = ["{}", "{user: {id: int64, tags: [string]}}", "{user: {tags: [string]}, x: int8}"];
    let mut seen = Vec::new();
    for shape in shapes {
        let shape = match shape {
            "{}" => VariantShredding::Stored,
            shape => VariantShredding::Shape(VariantShape::parse(shape).expect("a shape")),
        };
        let options = WriteOptions::new().with_shredding("v", shape);
        let mut writer =
            Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
        writer.write(&batch).expect("rows");
        let file: Vec<u8> = writer.into_inner().expect("a file").1;
        let reader = Reader::new(bytes::Bytes::from(file)).expect("a file");
        let reader = reader
            .project([] as [&str; 0])
            .expect("no column")
            .variant_get("v", "$.user".parse().expect("a path"), user.clone(), "user")
            .variant_get(
                "v",
                "$.user.tags".parse().expect("a path"),
                DataType::List(tags.clone()),
                "tags",
            );
        let batches = read_with(reader).expect("rows");
        assert_eq!(batches.len(), 1);
        seen.push(batches[0].clone());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    let users = seen[0].column(0).as_struct();
    let valid: Vec<bool> = (0..6).map(|row| users.is_valid(row)).collect();
    assert_eq!(valid, [true, true, true, false, false, false]);
    let ids = users.column(0).as_primitive::<Int64Type>();
    assert_eq!(ids.iter().take(3).collect::<Vec<_>>(), [Some(7), None, None]);
    let tags = seen[0].column(1).as_list::<i32>();
    assert!(tags.is_null(1) && tags.is_null(3));
    let third = tags.value(2);
    let third: Vec<Option<&str>> = third.as_string::<i32>().iter().collect();
    assert_eq!(third, [Some("c"), None, None, None]);
    // Fields that are not nullable could not hold what a value lacks.
    let required = Arc::new(Field::new("item", DataType::Utf8, false));
    let column = VariantArray::try_from(batch.column(0)).expect("a column");
    let error = column.get(&VariantPath::new([]), &DataType::List(required)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}
