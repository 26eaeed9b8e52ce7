use std::collections::HashMap;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{IntervalUnit, TimeUnit};

use super::*;
use crate::error::ErrorKind;
use crate::format::{
    ConvertedType, DecimalType, FieldRepetitionType, GeographyType, GeometryType, IntType,
    LogicalType, TimeType, TimestampType, VariantType,
};
use crate::limits::Limits;
use crate::schema::samples::{
    self, Optional, Repeated, Required, Tree, col, drawn, group, list, map, schema,
};
use crate::schema::{MatchBy, Physical};

fn mapped(fields: impl IntoIterator<Item = Tree>) -> Mapping {
    to_arrow(&schema(fields), &[], &Projection::all(), &ArrowOptions::default()).unwrap()
}

/// The one field, drawn.
fn one(field: Tree) -> String {
    let mapping = mapped([field]);
    check(&mapping);
    let [shape] = &mapping.shapes[..] else { panic!("one shape expected") };
    drawn(shape)
}

/// The fields of the shapes and those of the data types must be the same.
fn check(mapping: &Mapping) {
    fn node(shape: &Shape) {
        assert_eq!(with_children(shape.field.data_type(), &shape.kind), *shape.field.data_type());
        match &shape.kind {
            Kind::Struct(children) => children.iter().for_each(node),
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => node(child),
            Kind::Leaf { .. } | Kind::Missing => {}
        }
    }
    assert_eq!(mapping.schema.fields().len(), mapping.shapes.len());
    for (field, shape) in mapping.schema.fields().iter().zip(&mapping.shapes) {
        assert_eq!(*field, shape.field);
        node(shape);
    }
}

fn int(repetition: FieldRepetitionType, name: &str) -> Tree {
    col(repetition, Physical::Int32, name)
}

fn text(repetition: FieldRepetitionType, name: &str) -> Tree {
    col(repetition, Physical::ByteArray, name).logical(LogicalType::String)
}

fn as_list(tree: Tree) -> Tree {
    tree.converted(ConvertedType::List)
}

fn as_map(tree: Tree) -> Tree {
    tree.converted(ConvertedType::Map)
}

#[test]
fn levels_of_flat_and_nested_structs() {
    assert_eq!(one(int(Required, "a")), "a 0/0/0 Int32 #0");
    assert_eq!(one(int(Optional, "a")), "a? 0/1/0 Int32 #0");
    let inner = group(Required, "h", [int(Optional, "a"), int(Required, "b")]);
    assert_eq!(
        one(group(Optional, "g", [inner])),
        "g? 0/1/0 {h 0/1/0 {a? 0/2/0 Int32 #0, b 0/1/0 Int32 #1}}"
    );
}

#[test]
fn levels_of_lists() {
    assert_eq!(
        one(list(Optional, "a", int(Optional, "e"))),
        "a? 0/1/0 list 2@1 <e? 2/3/1 Int32 #0>"
    );
    assert_eq!(one(list(Required, "a", int(Required, "e"))), "a 0/0/0 list 1@1 <e 1/1/1 Int32 #0>");
    let inner = list(Optional, "i", int(Optional, "e"));
    assert_eq!(
        one(list(Optional, "a", inner)),
        "a? 0/1/0 list 2@1 <i? 2/3/1 list 4@2 <e? 4/5/2 Int32 #0>>"
    );
    let pair = group(Optional, "s", [int(Required, "x"), list(Required, "y", int(Optional, "e"))]);
    assert_eq!(
        one(group(Optional, "g", [list(Optional, "a", pair)])),
        "g? 0/1/0 {a? 0/2/0 list 3@1 <s? 3/4/1 {x 3/4/1 Int32 #0, y 3/4/1 list 5@2 <e? 5/6/2 Int32 #1>}>}"
    );
}

#[test]
fn the_five_list_rules() {
    let table = [
        // 1. A repeated leaf.
        (
            as_list(group(Optional, "a", [int(Repeated, "r")])),
            "a? 0/1/0 list 2@1 <r 2/2/1 Int32 #0>",
        ),
        // 2. A repeated group of several fields.
        (
            as_list(group(
                Optional,
                "a",
                [group(Repeated, "r", [int(Required, "x"), int(Optional, "y")])],
            )),
            "a? 0/1/0 list 2@1 <r 2/2/1 {x 2/2/1 Int32 #0, y? 2/3/1 Int32 #1}>",
        ),
        // 3. A repeated group of one repeated field, with LIST on it and without.
        (
            as_list(group(
                Optional,
                "a",
                [as_list(group(Repeated, "array", [int(Repeated, "array")]))],
            )),
            "a? 0/1/0 list 2@1 <array 2/2/1 list 3@2 <array 3/3/2 Int32 #0>>",
        ),
        (
            as_list(group(Optional, "a", [group(Repeated, "r", [int(Repeated, "x")])])),
            "a? 0/1/0 list 2@1 <r 2/2/1 {x 2/2/1 list 3@2 <x 3/3/2 Int32 #0>}>",
        ),
        // 4. The two legacy names.
        (
            as_list(group(Optional, "a", [group(Repeated, "array", [int(Optional, "x")])])),
            "a? 0/1/0 list 2@1 <array 2/2/1 {x? 2/3/1 Int32 #0}>",
        ),
        (
            as_list(group(Optional, "a", [group(Repeated, "a_tuple", [int(Optional, "x")])])),
            "a? 0/1/0 list 2@1 <a_tuple 2/2/1 {x? 2/3/1 Int32 #0}>",
        ),
        // 5. Whatever the names are.
        (
            as_list(group(Optional, "a", [group(Repeated, "b_tuple", [int(Optional, "x")])])),
            "a? 0/1/0 list 2@1 <x? 2/3/1 Int32 #0>",
        ),
        (
            as_list(group(Required, "a", [group(Repeated, "bag", [int(Required, "array")])])),
            "a 0/0/0 list 1@1 <array 1/1/1 Int32 #0>",
        ),
        // A map as the repeated group: rule 3.
        (
            as_list(group(
                Optional,
                "a",
                [as_map(group(
                    Repeated,
                    "m",
                    [group(Repeated, "kv", [text(Required, "k"), int(Optional, "v")])],
                ))],
            )),
            "a? 0/1/0 list 2@1 <m 2/2/1 map 3@2 <kv 3/3/2 {k 3/3/2 Utf8 #0, v? 3/4/2 Int32 #1}>>",
        ),
    ];
    for (tree, expected) in table {
        assert_eq!(one(tree), expected);
    }
}

#[test]
fn lists_that_are_none_are_structs() {
    let table = [
        (as_list(group(Optional, "a", [int(Optional, "x")])), "a? 0/1/0 {x? 0/2/0 Int32 #0}"),
        (
            as_list(group(Optional, "a", [int(Repeated, "x"), int(Required, "y")])),
            "a? 0/1/0 {x 0/1/0 list 2@1 <x 2/2/1 Int32 #0>, y 0/1/0 Int32 #1}",
        ),
        // A logical type other than LIST wins over the converted type.
        (
            as_list(group(Optional, "a", [int(Repeated, "r")])).logical(LogicalType::String),
            "a? 0/1/0 {r 0/1/0 list 2@1 <r 2/2/1 Int32 #0>}",
        ),
    ];
    for (tree, expected) in table {
        assert_eq!(one(tree), expected);
    }
}

#[test]
fn repetition_without_annotation_is_a_list_that_is_never_null() {
    assert_eq!(one(int(Repeated, "a")), "a 0/0/0 list 1@1 <a 1/1/1 Int32 #0>");
    let pair = group(Repeated, "g", [int(Optional, "x"), int(Repeated, "y")]);
    assert_eq!(
        one(group(Optional, "o", [pair])),
        "o? 0/1/0 {g 0/1/0 list 2@1 <g 2/2/1 {x? 2/3/1 Int32 #0, y 2/2/1 list 3@2 <y 3/3/2 Int32 #1>}>}"
    );
    // A LIST group that is itself repeated, outside of another.
    let repeated = list(Repeated, "a", int(Optional, "e"));
    assert_eq!(one(repeated), "a 0/0/0 list 1@1 <a 1/1/1 list 2@2 <e? 2/3/2 Int32 #0>>");
}

#[test]
fn maps_and_their_tolerances() {
    let kv = |key, value| group(Repeated, "kv", [key, value]);
    let table = [
        (
            map(Optional, "m", text(Required, "k"), int(Optional, "v")),
            "m? 0/1/0 map 2@1 <key_value 2/2/1 {k 2/2/1 Utf8 #0, v? 2/3/1 Int32 #1}>",
        ),
        // MAP_KEY_VALUE on the outer group, and on the inner one.
        (
            group(
                Optional,
                "m",
                [kv(int(Required, "a"), int(Required, "b")).converted(ConvertedType::MapKeyValue)],
            )
            .converted(ConvertedType::MapKeyValue),
            "m? 0/1/0 map 2@1 <kv 2/2/1 {a 2/2/1 Int32 #0, b 2/2/1 Int32 #1}>",
        ),
        // An optional key counts for levels, but the field is not nullable.
        (
            as_map(group(Required, "m", [kv(int(Optional, "k"), int(Optional, "v"))])),
            "m 0/0/0 map 1@1 <kv 1/1/1 {k 1/2/1 Int32 #0, v? 1/2/1 Int32 #1}>",
        ),
        // A repeated value is a list.
        (
            as_map(group(Optional, "m", [kv(int(Required, "k"), int(Repeated, "v"))])),
            "m? 0/1/0 map 2@1 <kv 2/2/1 {k 2/2/1 Int32 #0, v 2/2/1 list 3@2 <v 3/3/2 Int32 #1>}>",
        ),
        // Without a value: the list of the keys.
        (
            as_map(group(Optional, "m", [group(Repeated, "kv", [int(Required, "k")])])),
            "m? 0/1/0 list 2@1 <k 2/2/1 Int32 #0>",
        ),
        // No maps: structs.
        (
            as_map(group(
                Optional,
                "m",
                [group(
                    Repeated,
                    "kv",
                    [int(Required, "k"), int(Required, "v"), int(Required, "w")],
                )],
            )),
            "m? 0/1/0 {kv 0/1/0 list 2@1 <kv 2/2/1 {k 2/2/1 Int32 #0, v 2/2/1 Int32 #1, w 2/2/1 Int32 #2}>}",
        ),
        (
            as_map(group(Optional, "m", [kv(int(Repeated, "k"), int(Required, "v"))])),
            "m? 0/1/0 {kv 0/1/0 list 2@1 <kv 2/2/1 {k 2/2/1 list 3@2 <k 3/3/2 Int32 #0>, v 2/2/1 Int32 #1}>}",
        ),
        (as_map(group(Optional, "m", [int(Required, "k")])), "m? 0/1/0 {k 0/1/0 Int32 #0}"),
        (
            as_map(group(Optional, "m", [int(Repeated, "k")])),
            "m? 0/1/0 {k 0/1/0 list 2@1 <k 2/2/1 Int32 #0>}",
        ),
    ];
    for (tree, expected) in table {
        assert_eq!(one(tree), expected);
    }
}

#[test]
fn groups_without_columns_are_left_out() {
    let nothing = |name: &str| group(Optional, name, []);
    let file = schema([
        int(Required, "a"),
        nothing("b"),
        group(Optional, "c", [nothing("d"), group(Repeated, "r", [])]),
        group(Optional, "e", [nothing("f"), int(Optional, "g")]),
        as_list(group(Optional, "h", [group(Repeated, "r", [])])),
        as_map(group(Optional, "m", [group(Repeated, "kv", [int(Required, "k"), nothing("v")])])),
    ]);
    let options = ArrowOptions::default();
    let mapping = to_arrow(&file, &[], &Projection::all(), &options).unwrap();
    let shapes: Vec<_> = mapping.shapes.iter().map(drawn).collect();
    assert_eq!(
        shapes,
        [
            "a 0/0/0 Int32 #0",
            "e? 0/1/0 {g? 0/2/0 Int32 #1}",
            "m? 0/1/0 list 2@1 <kv 2/2/1 {k 2/2/1 Int32 #2}>",
        ]
    );
    for name in ["b", "c", "c.d", "h", "e.f"] {
        let error = to_arrow(&file, &[], &Projection::names([name]), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{name}");
    }
}

#[test]
fn natural_types() {
    use crate::format::TimeUnit as U;
    use DataType as D;
    use LogicalType as L;
    let int = |bit_width, is_signed| Some(L::Integer(IntType { bit_width, is_signed }));
    let decimal = |precision, scale| Some(L::Decimal(DecimalType { scale, precision }));
    let time = |unit| Some(L::Time(TimeType { is_adjusted_to_utc: true, unit }));
    let stamp =
        |is_adjusted_to_utc, unit| Some(L::Timestamp(TimestampType { is_adjusted_to_utc, unit }));
    let utc = || Some(Arc::from("UTC"));
    let fixed = Physical::FixedLenByteArray;
    #[rustfmt::skip]
    let table = [
        (Physical::Boolean,   None,                       D::Boolean),
        (Physical::Int32,     None,                       D::Int32),
        (Physical::Int64,     None,                       D::Int64),
        (Physical::Int96,     None,                       D::Timestamp(TimeUnit::Nanosecond, None)),
        (Physical::Float,     None,                       D::Float32),
        (Physical::Double,    None,                       D::Float64),
        (Physical::ByteArray, None,                       D::Binary),
        (fixed(0),            None,                       D::FixedSizeBinary(0)),
        (fixed(12),           None,                       D::FixedSizeBinary(12)),
        (Physical::Int32,     int(8, true),               D::Int8),
        (Physical::Int32,     int(8, false),              D::UInt8),
        (Physical::Int32,     int(16, true),              D::Int16),
        (Physical::Int32,     int(16, false),             D::UInt16),
        (Physical::Int32,     int(32, true),              D::Int32),
        (Physical::Int32,     int(32, false),             D::UInt32),
        (Physical::Int64,     int(64, true),              D::Int64),
        (Physical::Int64,     int(64, false),             D::UInt64),
        (Physical::Int64,     int(8, true),               D::Int64),
        (Physical::Int32,     decimal(9, 2),              D::Decimal128(9, 2)),
        (Physical::Int32,     decimal(10, 2),             D::Int32),
        (Physical::Int64,     decimal(18, 18),            D::Decimal128(18, 18)),
        (fixed(16),           decimal(38, 0),             D::Decimal128(38, 0)),
        (fixed(17),           decimal(39, 0),             D::Decimal256(39, 0)),
        (Physical::ByteArray, decimal(76, 76),            D::Decimal256(76, 76)),
        (Physical::ByteArray, decimal(5, 6),              D::Binary),
        (Physical::Int32,     Some(L::Date),              D::Date32),
        (Physical::Int32,     time(U::Millis),            D::Time32(TimeUnit::Millisecond)),
        (Physical::Int64,     time(U::Micros),            D::Time64(TimeUnit::Microsecond)),
        (Physical::Int64,     time(U::Nanos),             D::Time64(TimeUnit::Nanosecond)),
        (Physical::Int64,     stamp(false, U::Millis),    D::Timestamp(TimeUnit::Millisecond, None)),
        (Physical::Int64,     stamp(true, U::Micros),     D::Timestamp(TimeUnit::Microsecond, utc())),
        (Physical::Int64,     stamp(true, U::Nanos),      D::Timestamp(TimeUnit::Nanosecond, utc())),
        (Physical::ByteArray, Some(L::String),            D::Utf8),
        (Physical::ByteArray, Some(L::Enum),              D::Utf8),
        (Physical::ByteArray, Some(L::Bson),              D::Binary),
        (fixed(2),            Some(L::Float16),           D::Float16),
        (fixed(2),            Some(L::String),            D::FixedSizeBinary(2)),
        (Physical::Int32,     Some(L::Unknown),           D::Null),
        (Physical::ByteArray, Some(L::Unknown),           D::Null),
        (Physical::Int32,     Some(L::default()),         D::Int32),
        (Physical::Int64,     stamp(true, U::default()),  D::Int64),
        (Physical::Int32,     Some(L::Uuid),              D::Int32),
    ];
    for (physical, logical, expected) in table {
        let mut tree = col(Optional, physical, "a");
        if let Some(logical) = logical.clone() {
            tree = tree.logical(logical);
        }
        let file = schema([tree]);
        let mapping = to_arrow(&file, &[], &Projection::all(), &ArrowOptions::default()).unwrap();
        let field = mapping.schema.field(0);
        assert_eq!(*field.data_type(), expected, "{physical} {logical:?}");
        assert!(field.metadata().is_empty(), "{physical} {logical:?}");
        let leaf = file.leaf(0).unwrap();
        assert!(read_conversion(&leaf, field.data_type()).is_some(), "{physical} {logical:?}");
    }
}

#[test]
fn natural_types_by_converted_type() {
    use ConvertedType as C;
    use DataType as D;
    let utc = || Some(Arc::from("UTC"));
    let fixed = Physical::FixedLenByteArray;
    #[rustfmt::skip]
    let table = [
        (Physical::ByteArray, C::Utf8,            D::Utf8),
        (Physical::ByteArray, C::Enum,            D::Utf8),
        (Physical::ByteArray, C::Bson,            D::Binary),
        (Physical::Int32,     C::Date,            D::Date32),
        (Physical::Int32,     C::TimeMillis,      D::Time32(TimeUnit::Millisecond)),
        (Physical::Int64,     C::TimeMicros,      D::Time64(TimeUnit::Microsecond)),
        (Physical::Int64,     C::TimestampMillis, D::Timestamp(TimeUnit::Millisecond, utc())),
        (Physical::Int64,     C::TimestampMicros, D::Timestamp(TimeUnit::Microsecond, utc())),
        (Physical::Int32,     C::Uint8,           D::UInt8),
        (Physical::Int32,     C::Uint16,          D::UInt16),
        (Physical::Int32,     C::Uint32,          D::UInt32),
        (Physical::Int64,     C::Uint64,          D::UInt64),
        (Physical::Int32,     C::Int8,            D::Int8),
        (Physical::Int32,     C::Int16,           D::Int16),
        (Physical::Int32,     C::Int32,           D::Int32),
        (Physical::Int64,     C::Int64,           D::Int64),
        (fixed(12),           C::Interval,        D::Interval(IntervalUnit::MonthDayNano)),
        (fixed(11),           C::Interval,        D::FixedSizeBinary(11)),
        (Physical::Int32,     C::Decimal,         D::Int32),
        (Physical::Int32,     C::Unknown(24),     D::Null),
        (Physical::Int32,     C::Unknown(99),     D::Int32),
        (Physical::Int32,     C::List,            D::Int32),
    ];
    for (physical, converted, expected) in table {
        let mapping = mapped([col(Required, physical, "a").converted(converted)]);
        assert_eq!(*mapping.schema.field(0).data_type(), expected, "{physical} {converted}");
    }
    let mut elements = samples::elements([int(Required, "a").converted(C::Decimal)]);
    elements[1].precision = Some(5);
    let file = Schema::parse(elements, &Limits::default()).unwrap();
    let mapping = to_arrow(&file, &[], &Projection::all(), &ArrowOptions::default()).unwrap();
    assert_eq!(*mapping.schema.field(0).data_type(), D::Decimal128(5, 0), "no scale is 0");
}

#[test]
fn converted_type_alone_on_a_type_it_may_not_stand_on_is_malformed() {
    use ConvertedType as C;
    for (physical, converted) in [
        (Physical::Int64, C::Uint32),
        (Physical::Int64, C::Date),
        (Physical::Int32, C::TimestampMillis),
        (Physical::Double, C::Utf8),
    ] {
        let file = schema([col(Required, physical, "a").converted(converted)]);
        let error = to_arrow(&file, &[], &Projection::all(), &ArrowOptions::default()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{physical} {converted}");
        assert!(file.leaf(0).is_err());
    }
}

#[test]
fn decimals_beyond_arrow_are_unsupported() {
    let decimal = LogicalType::Decimal(DecimalType { scale: 1, precision: 77 });
    let file =
        schema([col(Required, Physical::ByteArray, "a").logical(decimal), int(Required, "b")]);
    let options = ArrowOptions::default();
    let error = to_arrow(&file, &[], &Projection::all(), &options).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)));
    to_arrow(&file, &[], &Projection::names(["b"]), &options).unwrap();
}

#[test]
fn unknown_physical_types_fail_only_when_projected() {
    let mut elements = samples::elements([int(Required, "a"), int(Required, "b")]);
    elements[1].r#type = Some(crate::format::Type::Unknown(42));
    let file = Schema::parse(elements, &Limits::default()).unwrap();
    let options = ArrowOptions::default();
    let error = to_arrow(&file, &[], &Projection::all(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported("physical type"));
    to_arrow(&file, &[], &Projection::names(["b"]), &options).unwrap();
}

#[test]
fn extension_types() {
    let extension = |tree: Tree| {
        let mapping = mapped([tree]);
        let metadata = mapping.schema.field(0).metadata();
        let get = |key: &str| metadata.get(key).cloned();
        (get(EXTENSION_TYPE_NAME_KEY), get(EXTENSION_TYPE_METADATA_KEY))
    };
    let some = |text: &str| Some(text.to_owned());
    let bytes = |name: &str| col(Optional, Physical::ByteArray, name);
    let uuid = col(Optional, Physical::FixedLenByteArray(16), "a").logical(LogicalType::Uuid);
    assert_eq!(extension(uuid), (some("arrow.uuid"), None));
    let json = bytes("a").logical(LogicalType::Json);
    assert_eq!(extension(json), (some("arrow.json"), some("")));
    let geometry = GeometryType { crs: some("srid:5"), ..GeometryType::default() };
    let geometry = bytes("a").logical(LogicalType::Geometry(geometry));
    let expected = "{\"crs\":\"5\",\"crs_type\":\"srid\"}";
    assert_eq!(extension(geometry), (some("geoarrow.wkb"), some(expected)));
    let geography = bytes("a").logical(LogicalType::Geography(GeographyType::default()));
    let expected =
        "{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\",\"edges\":\"spherical\"}";
    assert_eq!(extension(geography), (some("geoarrow.wkb"), some(expected)));
}

#[test]
fn variants() {
    let bytes = |repetition, name: &str| col(repetition, Physical::ByteArray, name);
    let variant = |version, children: Vec<Tree>| {
        let specification_version = version;
        let variant = VariantType { specification_version, ..VariantType::default() };
        group(Optional, "v", children).logical(LogicalType::Variant(variant))
    };
    let whole = || vec![bytes(Required, "metadata"), bytes(Optional, "value")];
    let typed = || {
        let object = group(
            Optional,
            "typed_value",
            [group(Required, "a", [bytes(Optional, "value"), int(Optional, "typed_value")])],
        );
        vec![bytes(Optional, "value"), bytes(Required, "metadata"), object]
    };
    let is_marked = |tree: Tree, projection: &Projection| {
        let mapping = to_arrow(&schema([tree]), &[], projection, &ArrowOptions::default()).unwrap();
        assert!(matches!(mapping.shapes[0].kind, Kind::Struct(_)));
        let metadata = mapping.schema.field(0).metadata();
        metadata.get(EXTENSION_TYPE_NAME_KEY).is_some_and(|name| name == "arrow.parquet.variant")
    };
    let all = Projection::all();
    assert!(is_marked(variant(None, whole()), &all));
    assert!(is_marked(variant(Some(1), typed()), &all));
    assert!(is_marked(variant(Some(1), vec![bytes(Required, "metadata")]), &all));
    assert!(!is_marked(variant(Some(2), whole()), &all), "a later version is only a struct");
    assert!(!is_marked(variant(None, vec![bytes(Optional, "value")]), &all));
    assert!(!is_marked(variant(None, vec![int(Required, "metadata")]), &all));
    let part = Projection::names(["v.metadata", "v.value"]);
    assert!(!is_marked(variant(None, typed()), &part), "without typed values it says less");
}

#[test]
fn file_references() {
    let marked = |children: Vec<Tree>| {
        let mapping = mapped([group(Optional, "f", children).logical(LogicalType::File)]);
        mapping.schema.field(0).metadata().get(LOGICAL_TYPE_KEY).cloned()
    };
    use crate::schema::LOGICAL_TYPE_KEY;
    let long = |name: &str| col(Optional, Physical::Int64, name);
    let file = Some("FILE".to_owned());
    assert_eq!(marked(vec![text(Optional, "uri"), long("size"), long("offset")]), file);
    assert_eq!(marked(vec![col(Optional, Physical::ByteArray, "inline")]), file);
    assert_eq!(marked(vec![int(Optional, "size")]), None);
    assert_eq!(marked(vec![text(Optional, "uri"), text(Optional, "path")]), None);
    assert_eq!(marked(vec![col(Optional, Physical::ByteArray, "uri")]), None);
}

#[test]
fn field_ids_and_key_values() {
    let entry = |key: &str, value: Option<&str>| KeyValue {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        ..KeyValue::default()
    };
    let file = schema([
        list(Optional, "a", int(Optional, "e").id(-2)).id(1),
        map(Optional, "m", int(Required, "k").id(3), int(Optional, "v").id(4)),
    ]);
    let key_values = [
        entry("x", Some("1")),
        entry("y", None),
        entry("z", Some("")),
        entry("ARROW:schema", Some("?")),
    ];
    let mapping =
        to_arrow(&file, &key_values, &Projection::all(), &ArrowOptions::default()).unwrap();
    let expected = [("x", "1"), ("z", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(*mapping.schema.metadata(), HashMap::from(expected));
    let mut ids = Vec::new();
    let mut id = |shape: &Shape| ids.push(shape.field.metadata().get("PARQUET:field_id").cloned());
    id(&mapping.shapes[0]);
    for shape in &mapping.shapes {
        shape.for_each_leaf(&mut |_, leaf| id(leaf));
    }
    let ids: Vec<_> = ids.iter().map(Option::as_deref).collect();
    assert_eq!(ids, [Some("1"), Some("-2"), Some("3"), Some("4")]);
}

#[test]
fn options_change_types() {
    let bytes = col(Optional, Physical::ByteArray, "b");
    let file = schema([
        text(Optional, "s"),
        bytes,
        col(Optional, Physical::Int96, "t"),
        list(Optional, "l", text(Optional, "e")),
        int(Optional, "i"),
        col(Optional, Physical::ByteArray, "j").logical(LogicalType::Json),
    ]);
    let types = |options: ArrowOptions| {
        let mapping = to_arrow(&file, &[], &Projection::all(), &options).unwrap();
        check(&mapping);
        let json = mapping.schema.field(5).metadata().contains_key(EXTENSION_TYPE_NAME_KEY);
        let types = mapping.schema.fields().iter().map(|field| match field.data_type() {
            DataType::List(item) => format!("[{}]", item.data_type()),
            other => other.to_string(),
        });
        (types.collect::<Vec<_>>().join(" "), json)
    };
    let options = ArrowOptions::new;
    let ns = "Timestamp(ns)";
    assert_eq!(types(options()), (format!("Utf8 Binary {ns} [Utf8] Int32 Utf8"), true));
    assert_eq!(
        types(options().with_views(true).with_int96(TimeUnit::Microsecond)),
        ("Utf8View BinaryView Timestamp(µs) [Utf8View] Int32 Utf8View".to_owned(), true)
    );
    assert_eq!(
        types(options().with_binary_as_string(true)),
        (format!("Utf8 Utf8 {ns} [Utf8] Int32 Utf8"), true)
    );
    let dictionary = |of: &str| format!("Dictionary(Int32, {of})");
    let utf8 = dictionary("Utf8");
    assert_eq!(
        types(options().with_dictionaries(Dictionaries::Strings)),
        (format!("{utf8} Binary {ns} [{utf8}] Int32 {utf8}"), false)
    );
    let named = ["b", "l", "i"].map(str::to_owned).to_vec();
    assert_eq!(
        types(options().with_views(true).with_dictionaries(Dictionaries::Named(named))),
        (
            format!(
                "Utf8View {} {ns} [{utf8}] {} Utf8View",
                dictionary("Binary"),
                dictionary("Int32")
            ),
            true
        )
    );
    let unknown = options().with_dictionaries(Dictionaries::Named(vec!["x".to_owned()]));
    let error = to_arrow(&file, &[], &Projection::all(), &unknown).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn deepest_schema_maps_on_a_small_stack() {
    let work = || {
        for (depth, make) in [
            (127, (|inner| group(Optional, "g", [inner])) as fn(Tree) -> Tree),
            (63, |inner| list(Optional, "l", inner)),
            (63, |inner| map(Optional, "m", int(Required, "k"), inner)),
        ] {
            let mut tree = int(Optional, "x");
            for _ in 0..depth {
                tree = make(tree);
            }
            let file = schema([tree]);
            let options = ArrowOptions::new().with_views(true);
            let leaf = Projection::leaves([file.leaves_len() - 1]);
            for projection in [Projection::all(), leaf] {
                let mapping = to_arrow(&file, &[], &projection, &options).unwrap();
                let target =
                    ArrowOptions::new().with_target(Arc::clone(&mapping.schema), MatchBy::Name);
                let again = to_arrow(&file, &[], &Projection::all(), &target).unwrap();
                assert_eq!(again.schema, mapping.schema);
                assert_eq!(again.leaves(), mapping.leaves());
            }
            assert!(!file.to_string().is_empty());
            assert!(!file.tree().to_string().is_empty());
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap();
    thread.join().unwrap();
}
