use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{IntervalUnit, UnionFields, UnionMode};

use super::*;
use crate::error::ErrorKind;
use crate::schema::convert::{read_conversion, write_conversion};
use crate::schema::{ArrowOptions, FILE, LOGICAL_TYPE_KEY, Projection, to_arrow};

fn written(fields: Vec<Field>) -> Written {
    from_arrow(&ArrowSchema::new(fields), &FromArrowOptions::default()).unwrap()
}

/// The lines of the fields in the file.
fn lines(field: Field) -> Vec<String> {
    let text = written(vec![field]).schema.to_string();
    let lines: Vec<_> = text.lines().map(|line| line.trim().to_owned()).collect();
    lines[1..lines.len() - 1].to_vec()
}

fn error(field: Field) -> Error {
    from_arrow(&ArrowSchema::new(vec![field]), &FromArrowOptions::default()).unwrap_err()
}

/// Reads the schema that was written for `schema`.
fn there_and_back(schema: &ArrowSchema, options: &FromArrowOptions) -> ArrowSchema {
    let Written { schema, key_values } = from_arrow(schema, options).unwrap();
    let mapping =
        to_arrow(&schema, &key_values, &Projection::all(), &ArrowOptions::default()).unwrap();
    ArrowSchema::clone(&mapping.schema)
}

fn metadata(entries: &[(&str, &str)]) -> HashMap<String, String> {
    entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn extended(field: Field, name: &str, text: Option<&str>) -> Field {
    let mut entries = vec![(EXTENSION_TYPE_NAME_KEY, name)];
    entries.extend(text.map(|text| (EXTENSION_TYPE_METADATA_KEY, text)));
    field.with_metadata(metadata(&entries))
}

/// A struct of nullable fields.
fn struct_of(fields: &[(&str, DataType)]) -> DataType {
    let fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    DataType::Struct(fields.collect())
}

fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("item", data_type, true))
}

fn map_of(key: DataType, value: Field) -> DataType {
    let pair = Fields::from(vec![Field::new("keys", key, false), value]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair), false)), false)
}

fn dictionary(index: DataType, value: DataType) -> DataType {
    DataType::Dictionary(Box::new(index), Box::new(value))
}

fn run_ends(ends: DataType, values: DataType) -> DataType {
    DataType::RunEndEncoded(
        Arc::new(Field::new("run_ends", ends, false)),
        Arc::new(Field::new("values", values, true)),
    )
}

fn zone(name: &str) -> Option<Arc<str>> {
    Some(Arc::from(name))
}

/// Each leaf type with its line and its converted type.
fn table() -> Vec<(DataType, &'static str, Option<ConvertedType>)> {
    use ConvertedType as C;
    use DataType as D;
    vec![
        (D::Null, "int32 a (UNKNOWN)", None),
        (D::Boolean, "boolean a", None),
        (D::Int8, "int32 a (INTEGER(8,true))", Some(C::Int8)),
        (D::Int16, "int32 a (INTEGER(16,true))", Some(C::Int16)),
        (D::Int32, "int32 a", None),
        (D::Int64, "int64 a", None),
        (D::UInt8, "int32 a (INTEGER(8,false))", Some(C::Uint8)),
        (D::UInt16, "int32 a (INTEGER(16,false))", Some(C::Uint16)),
        (D::UInt32, "int32 a (INTEGER(32,false))", Some(C::Uint32)),
        (D::UInt64, "int64 a (INTEGER(64,false))", Some(C::Uint64)),
        (D::Float16, "fixed_len_byte_array(2) a (FLOAT16)", None),
        (D::Float32, "float a", None),
        (D::Float64, "double a", None),
        (D::Decimal32(9, 2), "int32 a (DECIMAL(9,2))", Some(C::Decimal)),
        (D::Decimal64(9, 2), "int32 a (DECIMAL(9,2))", Some(C::Decimal)),
        (D::Decimal64(10, 0), "int64 a (DECIMAL(10,0))", Some(C::Decimal)),
        (D::Decimal128(1, 1), "int32 a (DECIMAL(1,1))", Some(C::Decimal)),
        (D::Decimal128(18, 5), "int64 a (DECIMAL(18,5))", Some(C::Decimal)),
        (D::Decimal128(19, 5), "fixed_len_byte_array(9) a (DECIMAL(19,5))", Some(C::Decimal)),
        (D::Decimal128(38, 38), "fixed_len_byte_array(16) a (DECIMAL(38,38))", Some(C::Decimal)),
        (D::Decimal256(3, 1), "int32 a (DECIMAL(3,1))", Some(C::Decimal)),
        (D::Decimal256(39, 1), "fixed_len_byte_array(17) a (DECIMAL(39,1))", Some(C::Decimal)),
        (D::Decimal256(76, 0), "fixed_len_byte_array(32) a (DECIMAL(76,0))", Some(C::Decimal)),
        (D::Date32, "int32 a (DATE)", Some(C::Date)),
        (D::Date64, "int32 a (DATE)", Some(C::Date)),
        (D::Time32(Unit::Second), "int32 a (TIME(MILLIS,false))", Some(C::TimeMillis)),
        (D::Time32(Unit::Millisecond), "int32 a (TIME(MILLIS,false))", Some(C::TimeMillis)),
        (D::Time64(Unit::Microsecond), "int64 a (TIME(MICROS,false))", Some(C::TimeMicros)),
        (D::Time64(Unit::Nanosecond), "int64 a (TIME(NANOS,false))", None),
        (
            D::Timestamp(Unit::Second, None),
            "int64 a (TIMESTAMP(MILLIS,false))",
            Some(C::TimestampMillis),
        ),
        (
            D::Timestamp(Unit::Second, zone("UTC")),
            "int64 a (TIMESTAMP(MILLIS,true))",
            Some(C::TimestampMillis),
        ),
        (
            D::Timestamp(Unit::Millisecond, zone("+05:30")),
            "int64 a (TIMESTAMP(MILLIS,true))",
            Some(C::TimestampMillis),
        ),
        (
            D::Timestamp(Unit::Microsecond, None),
            "int64 a (TIMESTAMP(MICROS,false))",
            Some(C::TimestampMicros),
        ),
        (
            D::Timestamp(Unit::Microsecond, zone("Europe/Amsterdam")),
            "int64 a (TIMESTAMP(MICROS,true))",
            Some(C::TimestampMicros),
        ),
        (D::Timestamp(Unit::Nanosecond, None), "int64 a (TIMESTAMP(NANOS,false))", None),
        (D::Timestamp(Unit::Nanosecond, zone("UTC")), "int64 a (TIMESTAMP(NANOS,true))", None),
        (D::Duration(Unit::Second), "int64 a", None),
        (D::Duration(Unit::Nanosecond), "int64 a", None),
        (
            D::Interval(IntervalUnit::YearMonth),
            "fixed_len_byte_array(12) a (INTERVAL)",
            Some(C::Interval),
        ),
        (
            D::Interval(IntervalUnit::DayTime),
            "fixed_len_byte_array(12) a (INTERVAL)",
            Some(C::Interval),
        ),
        (
            D::Interval(IntervalUnit::MonthDayNano),
            "fixed_len_byte_array(12) a (INTERVAL)",
            Some(C::Interval),
        ),
        (D::Utf8, "binary a (STRING)", Some(C::Utf8)),
        (D::LargeUtf8, "binary a (STRING)", Some(C::Utf8)),
        (D::Utf8View, "binary a (STRING)", Some(C::Utf8)),
        (D::Binary, "binary a", None),
        (D::LargeBinary, "binary a", None),
        (D::BinaryView, "binary a", None),
        (D::FixedSizeBinary(7), "fixed_len_byte_array(7) a", None),
        (dictionary(D::UInt8, D::LargeUtf8), "binary a (STRING)", Some(C::Utf8)),
        (dictionary(D::Int64, D::Int32), "int32 a", None),
        (run_ends(D::Int16, D::Utf8View), "binary a (STRING)", Some(C::Utf8)),
        (run_ends(D::Int64, D::Date32), "int32 a (DATE)", Some(C::Date)),
        (run_ends(D::Int32, dictionary(D::Int8, D::Binary)), "binary a", None),
    ]
}

#[test]
fn leaves() {
    for (data_type, line, converted) in table() {
        for nullable in [true, false] {
            let written = written(vec![Field::new("a", data_type.clone(), nullable)]);
            let optional = nullable || data_type == DataType::Null;
            let repetition = if optional { "optional" } else { "required" };
            let expected = format!("message schema {{\n  {repetition} {line};\n}}");
            assert_eq!(written.schema.to_string(), expected, "{data_type}");
            let element = written.schema.leaf_node(0).unwrap().element();
            assert_eq!(element.converted_type, converted, "{data_type}");
            let is_decimal = converted == Some(ConvertedType::Decimal);
            assert_eq!(
                (element.precision.is_some(), element.scale.is_some()),
                (is_decimal, is_decimal)
            );
            assert!(written.schema.leaf(0).unwrap().ordered);
        }
    }
}

#[test]
fn what_is_written_can_be_stored_and_read() {
    for (data_type, ..) in table() {
        let schema = written(vec![Field::new("a", data_type.clone(), true)]).schema;
        let leaf = schema.leaf(0).unwrap();
        assert!(write_conversion(&data_type, &leaf).is_some(), "{data_type}");
        assert!(read_conversion(&leaf, &data_type).is_some(), "{data_type}");
    }
}

#[test]
fn every_leaf_type_comes_back_by_the_hint() {
    let fields: Vec<_> = table()
        .into_iter()
        // A dictionary inside of runs is not asked for.
        .filter(|(data_type, ..)| !data_type.to_string().contains("Dictionary(Int8, Binary)"))
        .enumerate()
        .map(|(i, (data_type, ..))| Field::new(format!("f{i}"), data_type, true))
        .collect();
    let schema = ArrowSchema::new(fields);
    assert_eq!(there_and_back(&schema, &FromArrowOptions::default()), schema);
}

/// Types that the format has no column for, and their stand-ins.
fn stand_ins() -> Vec<(DataType, &'static str)> {
    use DataType as D;
    vec![
        (D::Decimal32(3, -6), "int32 a (DECIMAL(9,0))"),
        (D::Decimal32(9, -9), "int64 a (DECIMAL(18,0))"),
        (D::Decimal64(3, -2), "int32 a (DECIMAL(5,0))"),
        (D::Decimal128(38, -38), "fixed_len_byte_array(32) a (DECIMAL(76,0))"),
        (D::Decimal256(1, -75), "fixed_len_byte_array(32) a (DECIMAL(76,0))"),
        (D::FixedSizeBinary(0), "binary a"),
        (dictionary(D::UInt8, D::FixedSizeBinary(0)), "binary a"),
        (run_ends(D::Int16, D::Decimal128(5, -1)), "int32 a (DECIMAL(6,0))"),
        (dictionary(D::UInt8, dictionary(D::Int8, D::Utf8)), "binary a (STRING)"),
        (run_ends(D::Int16, run_ends(D::Int64, D::Decimal128(5, -1))), "int32 a (DECIMAL(6,0))"),
    ]
}

/// Those for which the range is full.
fn full_range() -> Vec<(DataType, &'static str)> {
    use DataType as D;
    let mut all = vec![
        (D::Date64, "int64 a (TIMESTAMP(MILLIS,false))"),
        (dictionary(D::Int32, D::Date64), "int64 a (TIMESTAMP(MILLIS,false))"),
        (D::Date32, "int32 a (DATE)"),
    ];
    for unit in [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano] {
        all.push((D::Interval(unit), "fixed_len_byte_array(16) a"));
        all.push((run_ends(D::Int32, D::Interval(unit)), "fixed_len_byte_array(16) a"));
    }
    all
}

#[test]
fn stand_ins_are_stored_and_come_back_by_the_hint() {
    let full = FromArrowOptions::new().with_full_range(true);
    let mut fields = Vec::new();
    let tables = [(stand_ins(), FromArrowOptions::new()), (full_range(), full.clone())];
    for (table, options) in tables {
        for (data_type, line) in table {
            let field = Field::new("a", data_type.clone(), true);
            let written = from_arrow(&ArrowSchema::new(vec![field]), &options).unwrap();
            let expected = format!("message schema {{\n  optional {line};\n}}");
            assert_eq!(written.schema.to_string(), expected, "{data_type}");
            let leaf = written.schema.leaf(0).unwrap();
            assert!(write_conversion(&data_type, &leaf).is_some(), "{data_type}");
            assert!(read_conversion(&leaf, &data_type).is_some(), "{data_type}");
            // Of keys within keys, the outermost come back.
            if data_type.to_string().matches("Dictionary").count() < 2
                && data_type.to_string().matches("RunEndEncoded").count() < 2
            {
                let own = metadata(&[("k", "v"), ("marquetry:type", "date64")]);
                fields.push(
                    Field::new(format!("f{}", fields.len()), data_type, true).with_metadata(own),
                );
            }
        }
    }
    let empty = DataType::Struct(Fields::empty());
    fields.push(Field::new("s", empty.clone(), false));
    fields.push(Field::new("l", DataType::LargeListView(item(empty.clone())), true));
    fields.push(Field::new("m", map_of(DataType::Date64, Field::new("v", empty, true)), true));
    // What a mark said before is not said of this field.
    let expected: Vec<_> = fields
        .iter()
        .map(|field| {
            let mut metadata = field.metadata().clone();
            metadata.remove("marquetry:type");
            field.clone().with_metadata(metadata)
        })
        .collect();
    assert_eq!(there_and_back(&ArrowSchema::new(fields), &full), ArrowSchema::new(expected));
}

#[test]
fn extension_types_do_not_live_on_stand_ins() {
    let interval = DataType::Interval(IntervalUnit::DayTime);
    let field = extended(Field::new("a", interval, true), "arrow.uuid", None);
    let options = FromArrowOptions::new().with_full_range(true);
    let written = from_arrow(&ArrowSchema::new(vec![field]), &options).unwrap();
    assert_eq!(written.schema.leaf(0).unwrap().logical, None);
    let binary = Field::new("a", DataType::FixedSizeBinary(0), true);
    let lines = lines(extended(binary, "geoarrow.wkb", Some("no JSON")));
    assert_eq!(lines, ["optional binary a;"]);
}

#[test]
fn times_may_be_in_utc() {
    let schema = ArrowSchema::new(vec![Field::new("a", DataType::Time64(Unit::Microsecond), true)]);
    let written = from_arrow(&schema, &FromArrowOptions::new().with_time_is_utc(true)).unwrap();
    assert!(written.schema.to_string().contains("int64 a (TIME(MICROS,true))"));
}

#[test]
fn nested_types() {
    use DataType as D;
    for list in [
        D::List(item(D::Int32)),
        D::LargeList(item(D::Int32)),
        D::ListView(item(D::Int32)),
        D::LargeListView(item(D::Int32)),
        D::FixedSizeList(item(D::Int32), 3),
    ] {
        let expected = [
            "optional group a (LIST) {",
            "repeated group list {",
            "optional int32 element;",
            "}",
            "}",
        ];
        assert_eq!(lines(Field::new("a", list, true)), expected);
    }
    let map = map_of(D::Utf8, Field::new("values", D::Int64, true));
    let expected = [
        "required group a (MAP) {",
        "repeated group key_value {",
        "required binary key (STRING);",
        "optional int64 value;",
        "}",
        "}",
    ];
    assert_eq!(lines(Field::new("a", map.clone(), false)), expected);
    let inner = D::List(Arc::new(Field::new("x", struct_of(&[("y", D::Null)]), false)));
    let expected = [
        "required group a (LIST) {",
        "repeated group list {",
        "required group element {",
        "optional int32 y (UNKNOWN);",
        "}",
        "}",
        "}",
    ];
    assert_eq!(lines(Field::new("a", inner, false)), expected);

    let written = written(vec![
        Field::new("l", D::List(item(D::Int32)), true),
        Field::new("m", map, true),
        Field::new("s", struct_of(&[("y", D::Int8)]), true),
    ]);
    let converted: Vec<_> = written.schema.elements().map(|e| e.converted_type).collect();
    let (list, map) = (Some(ConvertedType::List), Some(ConvertedType::Map));
    let (text, int) = (Some(ConvertedType::Utf8), Some(ConvertedType::Int8));
    assert_eq!(converted, [None, list, None, None, map, None, text, None, None, int]);
    assert_eq!(written.schema.root().element().repetition_type, None);
    assert_eq!(written.schema.root().element().num_children, Some(3));
}

fn with_id(field: Field, id: &str) -> Field {
    field.with_metadata(metadata(&[(FIELD_ID_KEY, id)]))
}

#[test]
fn field_ids_stand_everywhere() {
    use DataType as D;
    let element = with_id(Field::new("item", D::Int32, true), "2");
    let pair = Fields::from(vec![
        with_id(Field::new("k", D::Utf8, false), "4"),
        with_id(Field::new("v", D::Int8, true), "-5"),
    ]);
    let entries = Field::new("entries", D::Struct(pair), false);
    let schema = ArrowSchema::new(vec![
        with_id(Field::new("a", D::List(Arc::new(element)), true), "1"),
        with_id(Field::new("m", D::Map(Arc::new(entries), false), true), "3"),
    ]);
    let written = from_arrow(&schema, &FromArrowOptions::default()).unwrap();
    let ids: Vec<_> = written.schema.elements().map(|element| element.field_id).collect();
    assert_eq!(ids, [None, Some(1), None, Some(2), Some(3), None, Some(4), Some(-5)]);
    assert_eq!(there_and_back(&schema, &FromArrowOptions::default()), schema);
}

/// A schema with something of everything.
fn rich() -> ArrowSchema {
    use DataType as D;
    let field = |name: &str, data_type, nullable| Field::new(name, data_type, nullable);
    let shredded = [("value", D::LargeBinary), ("typed_value", D::Int64)];
    let variant = Fields::from_iter(
        [field("metadata", D::BinaryView, false)]
            .into_iter()
            .chain(shredded.map(|(name, data_type)| field(name, data_type, true))),
    );
    let file = struct_of(&[("uri", D::Utf8), ("size", D::Int64), ("inline", D::Binary)]);
    let text = Field::new("values", dictionary(D::UInt16, D::LargeUtf8), false);
    let wkb = |name, text| extended(field(name, D::LargeBinary, true), "geoarrow.wkb", Some(text));
    let uuid = extended(field("thing", D::FixedSizeBinary(16), false), "arrow.uuid", None);
    let fields = vec![
        field("required", D::Int32, false),
        with_id(field("stamp", D::Timestamp(Unit::Second, zone("Asia/Tokyo")), true), "17"),
        field("dictionary", dictionary(D::Int8, D::Utf8), false),
        field("ordered", dictionary(D::Int8, D::Utf8), true).with_dict_is_ordered(true),
        field("runs", run_ends(D::Int16, D::Float64), true),
        field("views", D::ListView(item(D::LargeListView(item(D::Utf8View)))), true),
        field("fixed", D::FixedSizeList(Arc::new(uuid), 4), false),
        field("map", map_of(D::Int16, text), true),
        field("deep", struct_of(&[("x", D::List(item(struct_of(&[("y", D::Date64)]))))]), false),
        extended(field("json", D::Utf8View, true), "arrow.json", Some("")),
        extended(field("bare json", D::Utf8, true), "arrow.json", None),
        extended(field("bool8", D::Int8, true), "arrow.bool8", Some("")),
        extended(
            field("own", struct_of(&[("z", D::Duration(Unit::Second))]), true),
            "x.own",
            Some("m"),
        ),
        extended(variant_of(variant), "arrow.parquet.variant", Some("")),
        field("file", file, true).with_metadata(metadata(&[(LOGICAL_TYPE_KEY, FILE)])),
        wkb("plane", "{ \"crs\": {\"id\": 1} }"),
        wkb("globe", "{\"edges\":\"karney\"}"),
        field("same", D::Int8, true),
        field("same", D::Decimal64(12, 3), true),
        field("a.b", D::Utf8, true).with_metadata(metadata(&[("k", "v")])),
    ];
    ArrowSchema::new_with_metadata(fields, metadata(&[("z", "1"), ("a", ""), ("é", "ü")]))
}

fn variant_of(fields: Fields) -> Field {
    Field::new("variant", DataType::Struct(fields), true)
}

#[test]
fn all_comes_back_by_the_hint() {
    let schema = rich();
    assert_eq!(there_and_back(&schema, &FromArrowOptions::default()), schema);
}

#[test]
fn without_hint_the_natural_types_come_back() {
    let options = FromArrowOptions::new().with_hint(false);
    let natural = there_and_back(&rich(), &options);
    assert_eq!(natural.fields().len(), rich().fields().len());
    assert_eq!(natural.metadata(), rich().metadata());
    let found = |name: &str| natural.field_with_name(name).unwrap().clone();
    assert_eq!(*found("stamp").data_type(), DataType::Timestamp(Unit::Millisecond, zone("UTC")));
    assert_eq!(found("plane").extension_type_metadata(), Some("{\"crs\":{\"id\": 1}}"));
    assert_eq!(found("globe").extension_type_metadata(), Some("{\"edges\":\"karney\"}"));
    assert_eq!(found("variant").extension_type_name(), Some("arrow.parquet.variant"));
    assert_eq!(found("json").extension_type_name(), Some("arrow.json"));
    // What is natural is a fixed point.
    assert_eq!(there_and_back(&natural, &options), natural);
}

#[test]
fn key_values_are_in_order_and_hints_do_not_nest() {
    let schema = rich();
    let keys = |written: &Written| -> Vec<String> {
        written.key_values.iter().map(|entry| entry.key.clone()).collect()
    };
    let first = from_arrow(&schema, &FromArrowOptions::default()).unwrap();
    assert_eq!(keys(&first), ["a", "z", "é", "ARROW:schema"]);
    let mut nested = schema;
    let hint = first.key_values[3].value.clone().unwrap();
    nested.metadata.insert("ARROW:schema".to_owned(), hint);
    assert_eq!(from_arrow(&nested, &FromArrowOptions::default()).unwrap(), first);
    let without = from_arrow(&nested, &FromArrowOptions::new().with_hint(false)).unwrap();
    assert_eq!(keys(&without), ["a", "z", "é"]);
}

#[test]
fn the_hint_is_framed_and_padded() {
    use base64::Engine;
    let written = from_arrow(&rich(), &FromArrowOptions::default()).unwrap();
    let text = written.key_values[3].value.as_deref().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    assert_eq!(bytes[..4], [0xFF; 4]);
    let length = i32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    assert_eq!((length + 8, length % 8), (bytes.len(), 0));
    let read = arrow_ipc::convert::try_schema_from_ipc_buffer(&bytes).unwrap();
    // Run ends and list views are said in the metadata: see `hint::layout`.
    let marked = [("runs", "run_ends:int16"), ("views", "list_view")];
    for (read, field) in read.fields().iter().zip(rich().fields()) {
        match marked.iter().find(|(name, _)| field.name() == name) {
            Some((_, mark)) => assert_eq!(read.metadata()["marquetry:layout"], *mark),
            None => assert_eq!(read, field),
        }
    }
    assert_eq!((read.fields().len(), &read.metadata), (rich().fields().len(), &rich().metadata));
}

#[test]
fn extension_types() {
    use DataType as D;
    let line = |data_type: D, name, text| {
        lines(extended(Field::new("a", data_type, true), name, text)).remove(0)
    };
    let uuid = "optional fixed_len_byte_array(16) a (UUID);";
    assert_eq!(line(D::FixedSizeBinary(16), "arrow.uuid", None), uuid);
    assert_eq!(line(D::LargeUtf8, "arrow.json", Some("")), "optional binary a (JSON);");
    assert_eq!(line(D::Int8, "arrow.bool8", Some("")), "optional int32 a (INTEGER(8,true));");
    assert_eq!(line(D::Int8, "who.knows", None), "optional int32 a (INTEGER(8,true));");
    // Not where it lives: the storage alone.
    assert_eq!(
        line(D::FixedSizeBinary(8), "arrow.uuid", None),
        "optional fixed_len_byte_array(8) a;"
    );
    assert_eq!(line(D::Binary, "arrow.json", None), "optional binary a;");
    assert_eq!(
        line(dictionary(D::Int8, D::Utf8), "arrow.json", None),
        "optional binary a (STRING);"
    );
    assert_eq!(line(D::Binary, "arrow.parquet.variant", None), "optional binary a;");

    let logical = |text| {
        let field = extended(Field::new("a", D::BinaryView, true), "geoarrow.wkb", text);
        let element = written(vec![field]).schema.elements().nth(1).unwrap();
        assert_eq!(element.converted_type, None);
        element.logical_type.unwrap()
    };
    let LogicalType::Geometry(geometry) = logical(Some("{\"crs\":\"OGC:CRS84\"}")) else {
        panic!()
    };
    assert_eq!(geometry.crs, None);
    let LogicalType::Geometry(geometry) = logical(None) else { panic!() };
    assert_eq!(geometry.crs.as_deref(), Some("srid:0"));
    assert!(matches!(logical(Some("{\"edges\":\"thomas\"}")), LogicalType::Geography(_)));

    // A system that is in the metadata of the schema already is named by its key.
    let json = "{\"type\":\"GeographicCRS\"}";
    let text = format!("{{\"crs\":{json},\"crs_type\":\"projjson\"}}");
    let field = extended(Field::new("a", D::Binary, true), "geoarrow.wkb", Some(&text));
    let schema = ArrowSchema::new_with_metadata(vec![field], metadata(&[("here", json)]));
    let options = FromArrowOptions::new().with_hint(false);
    let Some(LogicalType::Geometry(geometry)) =
        from_arrow(&schema, &options).unwrap().schema.field(0).unwrap().element().logical_type
    else {
        panic!()
    };
    assert_eq!(geometry.crs.as_deref(), Some("projjson:here"));
    assert_eq!(there_and_back(&schema, &options), schema);
}

#[test]
fn variants_and_files() {
    use DataType as D;
    let schema = written(rich().fields().iter().map(|field| Field::clone(field)).collect()).schema;
    let element = |name: &str| schema.fields().find(|node| node.name() == name).unwrap().element();
    let Some(LogicalType::Variant(variant)) = element("variant").logical_type else { panic!() };
    assert_eq!(variant.specification_version, Some(1));
    assert_eq!(element("file").logical_type, Some(LogicalType::File));
    assert_eq!(element("file").converted_type, None);

    let variant = |fields: Vec<Field>| {
        let field = Field::new("v", D::Struct(fields.into()), true);
        let field = extended(field, "arrow.parquet.variant", Some(""));
        error(Field::new("l", D::List(Arc::new(field)), true))
    };
    let bytes = |name: &str, nullable| Field::new(name, D::Binary, nullable);
    for fields in [
        vec![bytes("value", true)],
        vec![bytes("metadata", false), bytes("values", true)],
        vec![Field::new("metadata", D::Utf8, false)],
    ] {
        let error = variant(fields);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.at().column.as_deref(), Some("l.list.element"));
    }
    // Its metadata is REQUIRED in the file, whatever Arrow says.
    for nullable in [false, true] {
        let fields = vec![bytes("metadata", nullable), bytes("value", true)];
        let field = Field::new("v", D::Struct(fields.into()), true);
        let schema = written(vec![extended(field, "arrow.parquet.variant", Some(""))]).schema;
        assert!(schema.to_string().contains("required binary metadata;"), "{schema}");
    }
    for fields in [
        vec![Field::new("uri", D::Utf8, false)],
        vec![Field::new("uri", D::Binary, true)],
        vec![Field::new("size", D::Int32, true)],
        vec![Field::new("offset", D::UInt64, true)],
        vec![Field::new("inline", D::Utf8, true)],
        vec![Field::new("length", D::Int64, true)],
    ] {
        let field = Field::new("f", D::Struct(fields.into()), true);
        let error = error(field.with_metadata(metadata(&[(LOGICAL_TYPE_KEY, FILE)])));
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.at().column.as_deref(), Some("f"));
    }
}

#[test]
fn errors_name_the_column() {
    use DataType as D;
    let nested = |data_type: D| struct_of(&[("b", D::List(item(data_type)))]);
    let union = UnionFields::from_fields(vec![Field::new("x", D::Int32, true)]);
    let one = struct_of(&[("x", D::Int32)]);
    for data_type in [
        D::Union(union, UnionMode::Sparse),
        D::Decimal128(38, -39),
        D::Decimal256(76, -1),
        D::Decimal32(1, -128),
        dictionary(D::Int8, D::Decimal256(70, -7)),
        run_ends(D::Int32, D::Decimal256(70, -7)),
        dictionary(D::Int8, D::Struct(Fields::empty())),
        dictionary(D::Int32, one.clone()),
        run_ends(D::Int32, D::List(item(D::Int32))),
    ] {
        let error = error(Field::new("a", nested(data_type.clone()), true));
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{data_type}: {error}");
        assert_eq!(error.at().column.as_deref(), Some("a.b.list.element"), "{data_type}");
    }
    let map = |entries| D::Map(Arc::new(Field::new("entries", entries, false)), false);
    for data_type in [
        map(D::Int32),
        map(one),
        D::Decimal128(39, 0),
        D::Decimal32(0, 0),
        D::Decimal64(3, 4),
        D::FixedSizeBinary(-1),
        D::FixedSizeList(item(D::Int32), -1),
        D::Time32(Unit::Nanosecond),
        D::Time64(Unit::Second),
    ] {
        let error = error(Field::new("a", nested(data_type.clone()), true));
        assert_eq!(error.kind(), ErrorKind::Usage, "{data_type}: {error}");
        assert_eq!(error.at().column.as_deref(), Some("a.b.list.element"), "{data_type}");
    }
    for id in ["", "x", "1.0", "2147483648"] {
        let error = error(with_id(Field::new("a", D::Int32, true), id));
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.at().column.as_deref(), Some("a"));
    }
    let text = Some("{\"edges\":\"wavy\"}");
    let error_of = error(extended(Field::new("g", D::Binary, true), "geoarrow.wkb", text));
    assert_eq!(error_of.at().column.as_deref(), Some("g"));
    let of_null = map_of(D::Null, Field::new("v", D::Int32, true));
    assert!(matches!(error(Field::new("a", of_null, true)).kind(), ErrorKind::Unsupported(_)));
}

#[test]
fn the_depth_is_limited() {
    let mut data_type = DataType::Int32;
    for _ in 0..300 {
        data_type = DataType::List(item(data_type));
    }
    let error = error(Field::new("a", data_type, true));
    assert!(matches!(error.kind(), ErrorKind::Limit(_)));
}

#[test]
fn a_schema_without_fields() {
    let written = written(Vec::new());
    assert_eq!(written.schema.fields_len(), 0);
    assert_eq!(written.schema.root().element().num_children, Some(0));
}
