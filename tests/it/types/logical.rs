//! Tests logical types through whole files; unit tests of `schema` test the mapping itself.

use marquetry::arrow_schema::{DataType, TimeUnit as ArrowUnit};
use marquetry::format::*;
use marquetry::{ErrorKind, Reader};
use serde_json::{Value, json};

use crate::support::*;

fn with(element: SchemaElement, values: &[u8], n: usize) -> Vec<u8> {
    let r#type = element.r#type.expect("a leaf");
    file(
        vec![element],
        i64::try_from(n).expect("few"),
        vec![Chunk::new(r#type, n, &[v1(n, Encoding::Plain, values)])],
    )
}

fn logical(r#type: Type, logical: LogicalType) -> SchemaElement {
    filled!(SchemaElement { logical_type: Some(logical), ..required("v", r#type) })
}

fn fixed(n: i32) -> SchemaElement {
    filled!(SchemaElement { type_length: Some(n), ..required("v", Type::FixedLenByteArray) })
}

fn data_type(file: &[u8]) -> DataType {
    let reader = Reader::new(bytes::Bytes::copy_from_slice(file)).expect("a footer");
    reader.schema().expect("a schema").field(0).data_type().clone()
}

fn check(element: SchemaElement, values: &[u8], n: usize, expected: DataType, printed: &[Value]) {
    let file = with(element, values, n);
    assert_eq!(data_type(&file), expected);
    assert_eq!(column(&read(file).expect("rows")), printed);
}

fn time(unit: TimeUnit, utc: bool) -> TimeType {
    filled!(TimeType { is_adjusted_to_utc: utc, unit })
}

#[test]
fn logical_and_converted_types() {
    let int = |bits, signed| {
        LogicalType::Integer(filled!(IntType { bit_width: bits, is_signed: signed }))
    };
    let minus = (-1i32).to_le_bytes();
    check(logical(Type::Int32, int(8, true)), &minus, 1, DataType::Int8, &[json!(-1)]);
    check(logical(Type::Int32, int(32, false)), &minus, 1, DataType::UInt32, &[json!(u32::MAX)]);
    check(
        logical(Type::Int64, int(64, false)),
        &[0xFF; 8],
        1,
        DataType::UInt64,
        &[json!(u64::MAX)],
    );
    check(logical(Type::Int32, LogicalType::Date), &minus, 1, DataType::Date32, &[json!(-1)]);
    let millis = time(TimeUnit::Millis, false);
    check(
        logical(Type::Int32, LogicalType::Time(millis)),
        &5i32.to_le_bytes(),
        1,
        DataType::Time32(ArrowUnit::Millisecond),
        &[json!(5_000_000)],
    );
    check(
        logical(Type::ByteArray, LogicalType::Enum),
        &texts(&["A"]),
        1,
        DataType::Utf8,
        &[json!("A")],
    );
    check(
        logical(Type::ByteArray, LogicalType::Json),
        &texts(&["{}"]),
        1,
        DataType::Utf8,
        &[json!("{}")],
    );
    check(
        logical(Type::ByteArray, LogicalType::Bson),
        &texts(&["x"]),
        1,
        DataType::Binary,
        &[json!("0x78")],
    );
    let converted = |r#type, converted| {
        filled!(SchemaElement { converted_type: Some(converted), ..required("v", r#type) })
    };
    check(
        converted(Type::Int32, ConvertedType::Uint16),
        &[0xFF, 0xFF, 0, 0],
        1,
        DataType::UInt16,
        &[json!(65535)],
    );
    check(
        converted(Type::Int64, ConvertedType::TimestampMillis),
        &7i64.to_le_bytes(),
        1,
        DataType::Timestamp(ArrowUnit::Millisecond, Some("UTC".into())),
        &[json!(7_000_000)],
    );
}

#[test]
fn decimals_of_every_physical_type() {
    let decimal = |precision| LogicalType::Decimal(filled!(DecimalType { scale: 2, precision }));
    let text = [json!("-1.23")];
    check(
        logical(Type::Int32, decimal(9)),
        &(-123i32).to_le_bytes(),
        1,
        DataType::Decimal128(9, 2),
        &text,
    );
    check(
        logical(Type::Int64, decimal(18)),
        &(-123i64).to_le_bytes(),
        1,
        DataType::Decimal128(18, 2),
        &text,
    );
    let of = |n: i32, precision| {
        filled!(SchemaElement { logical_type: Some(decimal(precision)), ..fixed(n) })
    };
    check(of(5, 10), &(-123i64).to_be_bytes()[3..], 1, DataType::Decimal128(10, 2), &text);
    check(of(16, 38), &(-123i128).to_be_bytes(), 1, DataType::Decimal128(38, 2), &text);
    let wide = [&[0xFF; 16][..], &(-123i128).to_be_bytes()].concat();
    check(of(32, 76), &wide, 1, DataType::Decimal256(76, 2), &text);
    // Bytes of any length, with more sign bytes than needed.
    let body = [
        &2u32.to_le_bytes()[..],
        &[0xFF, 0x85],
        &9u32.to_le_bytes(),
        &(-123i128).to_be_bytes()[7..],
        &0u32.to_le_bytes(),
    ]
    .concat();
    let printed = [json!("-1.23"), json!("-1.23"), json!("0.00")];
    check(logical(Type::ByteArray, decimal(20)), &body, 3, DataType::Decimal128(20, 2), &printed);
    // More digits than the precision allows.
    assert!(is_malformed(with(of(20, 20), &[0x31; 20], 1)));
    // A precision that the type cannot hold is passed over, with its statistics.
    let file = with(logical(Type::Int32, decimal(12)), &1i32.to_le_bytes(), 1);
    assert_eq!(data_type(&file), DataType::Int32);
}

#[test]
fn uuid_float16_interval_and_times() {
    let uuid = filled!(SchemaElement { logical_type: Some(LogicalType::Uuid), ..fixed(16) });
    check(uuid, &[7; 16], 1, DataType::FixedSizeBinary(16), &[hex(&[7; 16])]);
    let half = filled!(SchemaElement { logical_type: Some(LogicalType::Float16), ..fixed(2) });
    check(half, &[0x00, 0x3E, 0x00, 0xC0], 2, DataType::Float16, &[json!(1.5), json!(-2.0)]);
    let interval =
        filled!(SchemaElement { converted_type: Some(ConvertedType::Interval), ..fixed(12) });
    let body = [1u32, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let unit = marquetry::arrow_schema::IntervalUnit::MonthDayNano;
    check(interval, &body, 1, DataType::Interval(unit), &[json!([1, 2, 3_000_000])]);
    for (unit, arrow, factor) in [
        (TimeUnit::Micros, ArrowUnit::Microsecond, 1_000),
        (TimeUnit::Nanos, ArrowUnit::Nanosecond, 1),
    ] {
        for utc in [false, true] {
            let zone = utc.then(|| "UTC".into());
            let ts = logical(
                Type::Int64,
                LogicalType::Timestamp(filled!(TimestampType {
                    is_adjusted_to_utc: utc,
                    unit: unit.clone(),
                })),
            );
            check(
                ts,
                &(-5i64).to_le_bytes(),
                1,
                DataType::Timestamp(arrow, zone),
                &[json!(-5 * factor)],
            );
            let time = logical(Type::Int64, LogicalType::Time(time(unit.clone(), utc)));
            check(time, &5i64.to_le_bytes(), 1, DataType::Time64(arrow), &[json!(5 * factor)]);
        }
    }
}

fn int96(nanos: i64, days: i32) -> Vec<u8> {
    [&nanos.to_le_bytes()[..], &(2_440_588 + days).to_le_bytes()].concat()
}

#[test]
fn int96_in_the_unit_asked_for_and_overflow_reported() {
    let body = [int96(1_500, 1), int96(0, 2_932_896)].concat();
    let file = bytes::Bytes::from(with(required("v", Type::Int96), &body, 2));
    let reader = Reader::new(file).expect("a footer").threads(1);
    let rows = column(&read_with(reader.clone().int96(ArrowUnit::Microsecond)).expect("rows"));
    assert_eq!(rows[0], json!(86_400_000_001_000i64));
    assert_eq!(rows[1], json!("253402214400000000000"), "the year 9999");
    let error = read_with(reader).expect_err("nanoseconds end in 2262");
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)));
    for help in ["Reader::int96(TimeUnit::Microsecond)", "--int96 us"] {
        assert!(error.to_string().contains(help), "{error}");
    }
}

#[test]
fn int96_in_the_zone_asked_for() {
    use marquetry::arrow_schema::{Field, Schema};
    let file = bytes::Bytes::from(with(required("v", Type::Int96), &int96(1_500_000, 1), 1));
    let utc = DataType::Timestamp(ArrowUnit::Millisecond, Some("UTC".into()));
    let schema = Schema::new(vec![Field::new("v", utc.clone(), false)]);
    let reader = Reader::new(file).expect("a footer").threads(1);
    let reader = reader.target(schema.into(), marquetry::schema::MatchBy::Name).expect("a zone");
    let batches = read_with(reader).expect("rows");
    assert_eq!(batches[0].column(0).data_type(), &utc);
    let stamps = batches[0].column(0).to_data();
    assert_eq!(stamps.buffer::<i64>(0), [86_400_001]);
}

#[test]
fn a_decimal_with_more_digits_than_it_may_have_says_what_reads_it() {
    use marquetry::arrow_schema::{Field, Schema};
    // As Drill wrote them: 20 bytes where 20 digits were declared.
    let element = filled!(SchemaElement {
        type_length: Some(20),
        ..logical(
            Type::FixedLenByteArray,
            LogicalType::Decimal(filled!(DecimalType { scale: 2, precision: 20 })),
        )
    });
    let file = bytes::Bytes::from(with(element, &[b'7'; 20], 1));
    let reader = Reader::new(file).expect("a footer").threads(1);
    let error = read_with(reader.clone()).expect_err("48 digits");
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
    assert!(error.to_string().contains("Reader::target"), "{error}");
    let wide = Schema::new(vec![Field::new("v", DataType::Decimal256(76, 2), true)]);
    let wide = reader.target(wide.into(), marquetry::schema::MatchBy::Name).expect("wider");
    assert_eq!(read_with(wide).expect("rows")[0].num_rows(), 1);
}

#[test]
fn unknown_is_null_whatever_is_stored() {
    for r#type in [Type::Int32, Type::Double, Type::ByteArray] {
        let element = filled!(SchemaElement {
            logical_type: Some(LogicalType::Unknown),
            ..optional("v", r#type)
        });
        let body = levels_v1(&[0, 0], 1);
        let chunk = Chunk::new(r#type, 2, &[v1(2, Encoding::Plain, &body)]);
        let file = file(vec![element], 2, vec![chunk]);
        assert_eq!(data_type(&file), DataType::Null);
        assert_eq!(column(&read(file).expect("rows")), [Value::Null, Value::Null]);
    }
    let stored = with(logical(Type::Int32, LogicalType::Unknown), &ints(&[1, 2]), 2);
    assert_eq!(column(&read(stored).expect("rows")), [Value::Null, Value::Null]);
}

#[test]
fn a_time_unit_that_nobody_knows_leaves_the_integer() {
    let unit = TimeUnit::Unrecognized(Default::default());
    let ts = logical(
        Type::Int64,
        LogicalType::Timestamp(filled!(TimestampType { is_adjusted_to_utc: true, unit })),
    );
    check(ts, &9i64.to_le_bytes(), 1, DataType::Int64, &[json!(9)]);
}

fn list(name: &str) -> SchemaElement {
    filled!(SchemaElement {
        converted_type: Some(ConvertedType::List),
        ..group(name, FieldRepetitionType::Required, 1)
    })
}

fn repeated_leaf(name: &str) -> SchemaElement {
    leaf(name, Type::Int32, FieldRepetitionType::Repeated)
}

/// Rows [1, 2], [], [3] of a leaf with one level of each kind.
fn one_level(schema: Vec<SchemaElement>, columns: usize) -> Value {
    let body =
        [levels_v1(&[0, 1, 0, 0], 1), levels_v1(&[1, 1, 0, 1], 1), ints(&[1, 2, 3])].concat();
    let chunk = Chunk::new(Type::Int32, 4, &[v1(4, Encoding::Plain, &body)]);
    Value::Array(column(&read(file(schema, 3, vec![chunk; columns])).expect("rows")))
}

#[test]
fn lists_by_each_of_the_five_rules() {
    let plain = json!([[1, 2], [], [3]]);
    // 1: the repeated child is the element.
    assert_eq!(one_level(vec![list("v"), repeated_leaf("x")], 1), plain);
    // 2: a repeated group of two is the element.
    let two = vec![
        list("v"),
        group("x", FieldRepetitionType::Repeated, 2),
        required("a", Type::Int32),
        required("b", Type::Int32),
    ];
    assert_eq!(
        one_level(two, 2),
        json!([[{"a": 1, "b": 1}, {"a": 2, "b": 2}], [], [{"a": 3, "b": 3}]])
    );
    // 4: by its name it is the element.
    for name in ["array", "v_tuple"] {
        let named = vec![
            list("v"),
            group(name, FieldRepetitionType::Repeated, 1),
            required("a", Type::Int32),
        ];
        assert_eq!(one_level(named, 1), json!([[{"a": 1}, {"a": 2}], [], [{"a": 3}]]), "{name}");
    }
    // 5: three levels, whatever they are called.
    for name in ["list", "bag", "anything"] {
        let three = vec![
            list("v"),
            group(name, FieldRepetitionType::Repeated, 1),
            required("item", Type::Int32),
        ];
        assert_eq!(one_level(three, 1), plain, "{name}");
    }
    // 3: the repeated group holds a repeated leaf; annotated itself, it is a list, else a struct of
    // one.
    let body =
        [levels_v1(&[0, 2, 1, 0], 3), levels_v1(&[2, 2, 2, 0], 3), ints(&[1, 2, 3])].concat();
    let chunk = Chunk::new(Type::Int32, 4, &[v1(4, Encoding::Plain, &body)]);
    let plain = group("x", FieldRepetitionType::Repeated, 1);
    let annotated =
        filled!(SchemaElement { converted_type: Some(ConvertedType::List), ..plain.clone() });
    for (middle, expected) in
        [(annotated, json!([[1, 2], [3]])), (plain, json!([{"y": [1, 2]}, {"y": [3]}]))]
    {
        let file = file(vec![list("v"), middle, repeated_leaf("y")], 2, vec![chunk.clone()]);
        assert_eq!(column(&read(file).expect("rows")), [expected, json!([])]);
    }
}

#[test]
fn maps_in_their_legacy_forms() {
    let body = |values: &[i32]| {
        [levels_v1(&[0, 1, 0], 1), levels_v1(&[1, 1, 0], 1), ints(values)].concat()
    };
    let chunk =
        |values: &[i32]| Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &body(values))]);
    let expected = [json!([[7, 1], [7, 2]]), json!([])];
    for converted in [ConvertedType::Map, ConvertedType::MapKeyValue] {
        for name in ["key_value", "map", "entries"] {
            let outer = filled!(SchemaElement {
                converted_type: Some(converted),
                ..group("v", FieldRepetitionType::Required, 1)
            });
            let schema = vec![
                outer,
                group(name, FieldRepetitionType::Repeated, 2),
                required("k", Type::Int32),
                required("x", Type::Int32),
            ];
            let rows = read(file(schema, 2, vec![chunk(&[7, 7]), chunk(&[1, 2])])).expect("rows");
            assert!(matches!(rows[0].schema().field(0).data_type(), DataType::Map(..)));
            assert_eq!(column(&rows), expected, "duplicates are kept");
        }
    }
    let outer = filled!(SchemaElement {
        converted_type: Some(ConvertedType::Map),
        ..group("v", FieldRepetitionType::Required, 1)
    });
    // Keys alone.
    let keys = vec![
        outer.clone(),
        group("map", FieldRepetitionType::Repeated, 1),
        required("k", Type::Int32),
    ];
    assert_eq!(
        column(&read(file(keys, 2, vec![chunk(&[7, 8])])).expect("rows")),
        [json!([7, 8]), json!([])]
    );
    // Optional keys, as Presto writes them: fine without nulls.
    let optional_key = |def: &[u32], values: &[i32]| {
        let schema = vec![
            outer.clone(),
            group("map", FieldRepetitionType::Repeated, 2),
            optional("k", Type::Int32),
            required("x", Type::Int32),
        ];
        let body = [levels_v1(&[0, 1, 0], 1), levels_v1(def, 3), ints(values)].concat();
        let key = Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &body)]);
        file(schema, 2, vec![key, chunk(&[1, 2])])
    };
    assert_eq!(column(&read(optional_key(&[2, 2, 0], &[7, 7])).expect("rows")), expected);
    assert!(is_malformed(optional_key(&[2, 1, 0], &[7])), "a null key");
}

#[test]
fn repeated_fields_without_annotation() {
    assert_eq!(one_level(vec![repeated_leaf("v")], 1), json!([[1, 2], [], [3]]));
    let schema = vec![group("v", FieldRepetitionType::Repeated, 1), required("a", Type::Int32)];
    assert_eq!(one_level(schema, 1), json!([[{"a": 1}, {"a": 2}], [], [{"a": 3}]]));
    let schema = vec![group("v", FieldRepetitionType::Required, 1), repeated_leaf("a")];
    assert_eq!(one_level(schema, 1), json!([{"a": [1, 2]}, {"a": []}, {"a": [3]}]));
    // The rows that the footer claims are not trusted.
    let body = [levels_v1(&[0], 1), levels_v1(&[1], 1), ints(&[1])].concat();
    let chunk = Chunk::new(Type::Int32, 1, &[v1(1, Encoding::Plain, &body)]);
    let file =
        file_with(vec![repeated_leaf("v")], vec![(1, vec![chunk])], |meta| meta.num_rows = 0);
    assert_eq!(column(&read(file).expect("rows")), [json!([1])]);
}

#[test]
fn names_with_dots_empty_names_and_case() {
    let names = ["a.b", "", "A", "a"];
    let schema: Vec<_> = names.iter().map(|name| required(name, Type::Int32)).collect();
    let chunk = |n: i32| Chunk::new(Type::Int32, 1, &[v1(1, Encoding::Plain, &ints(&[n]))]);
    let file = bytes::Bytes::from(file(schema, 1, (0..4).map(chunk).collect()));
    for (i, name) in names.iter().enumerate() {
        let reader = Reader::new(file.clone())
            .expect("a footer")
            .project([name])
            .expect("a column")
            .threads(1);
        assert_eq!(column(&read_with(reader).expect("rows")), [json!(i)], "{name:?}");
    }
    let mut options = Reader::new(file.clone()).expect("a footer").read_options().clone();
    options.projection = marquetry::schema::Projection::Leaves(vec![2, 0]);
    let reader = Reader::new(file).expect("a footer").options(options).threads(1);
    assert_eq!(
        rows(&read_with(reader).expect("rows")),
        [json!([0, 2])],
        "leaves come in the order of the file"
    );
}

#[test]
fn nesting_a_hundred_deep_is_legal() {
    let depth = 100u32;
    let mut schema: Vec<_> =
        (0..depth).map(|i| group(&format!("g{i}"), FieldRepetitionType::Optional, 1)).collect();
    schema.push(optional("v", Type::Int32));
    let body = [levels_v1(&[depth + 1, depth, 3, 0], depth + 1), ints(&[5])].concat();
    let chunk = Chunk::new(Type::Int32, 4, &[v1(4, Encoding::Plain, &body)]);
    let rows = column(&read(file(schema, 4, vec![chunk])).expect("rows"));
    assert_eq!(rows[3], Value::Null);
    let mut inner = &rows[0];
    for i in 1..depth {
        inner = &inner[format!("g{i}")];
    }
    assert_eq!(inner["v"], json!(5));
    assert_eq!(rows[2]["g1"]["g2"]["g3"], Value::Null);
}
