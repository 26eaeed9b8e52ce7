use std::collections::HashMap;

use arrow_schema::{Schema as ArrowSchema, TimeUnit};

use super::*;
use crate::error::ErrorKind;
use crate::format::{DecimalType, FieldRepetitionType, LogicalType, TimestampType};
use crate::schema::samples::{
    Optional, Required, Tree as Sample, col, drawn, group, list, map, schema,
};
use crate::schema::{ArrowOptions, FIELD_ID_KEY, Physical, to_arrow};

fn int(name: &str) -> Sample {
    col(Optional, Physical::Int32, name)
}

fn text(repetition: FieldRepetitionType, name: &str) -> Sample {
    col(repetition, Physical::ByteArray, name).logical(LogicalType::String)
}

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn fields(fields: impl IntoIterator<Item = Field>) -> Fields {
    fields.into_iter().collect()
}

fn read(
    file: &Schema,
    wanted: Vec<Field>,
    by: MatchBy,
    projection: &Projection,
) -> Result<Mapping> {
    let target = Arc::new(ArrowSchema::new(wanted));
    to_arrow(file, &[], projection, &ArrowOptions::default().with_target(target, by))
}

/// Reads all of `target` from a file of `columns`, and draws the shapes.
fn by_name(columns: impl IntoIterator<Item = Sample>, target: Vec<Field>) -> Result<String> {
    let file = schema(columns);
    let mapping = read(&file, target.clone(), MatchBy::Name, &Projection::all())?;
    assert_eq!(*mapping.schema, ArrowSchema::new(target), "the rows have the wanted schema");
    for (field, shape) in mapping.schema.fields().iter().zip(&mapping.shapes) {
        assert_eq!(*field, shape.field);
    }
    let shapes: Vec<_> = mapping.shapes.iter().map(drawn).collect();
    Ok(shapes.join(" | "))
}

#[test]
fn wider_types() {
    use DataType as D;
    let long = || col(Optional, Physical::Int64, "a");
    let bytes = || col(Optional, Physical::ByteArray, "a");
    let decimal =
        |precision, scale| int("a").logical(LogicalType::Decimal(DecimalType { scale, precision }));
    let stamp = || {
        let unit = crate::format::TimeUnit::Millis;
        let stamp = TimestampType { is_adjusted_to_utc: false, unit };
        long().logical(LogicalType::Timestamp(stamp))
    };
    let dictionary = |value| D::Dictionary(Box::new(D::Int32), Box::new(value));
    for (column, wanted) in [
        (int("a"), D::Int64),
        (int("a"), D::Float64),
        (col(Optional, Physical::Float, "a"), D::Float64),
        (decimal(5, 2), D::Decimal128(10, 4)),
        (decimal(5, 2), D::Decimal256(76, 2)),
        (stamp(), D::Timestamp(TimeUnit::Nanosecond, None)),
        (bytes(), D::Utf8View),
        (text(Optional, "a"), D::BinaryView),
        (text(Optional, "a"), dictionary(D::LargeUtf8)),
        (col(Optional, Physical::Int96, "a"), D::Timestamp(TimeUnit::Microsecond, None)),
        (
            col(Optional, Physical::Int96, "a"),
            D::Timestamp(TimeUnit::Millisecond, Some(Arc::from("UTC"))),
        ),
    ] {
        let expected = format!("a? 0/1/0 {wanted} #0");
        assert_eq!(by_name([column], vec![field("a", wanted)]).unwrap(), expected);
    }
    for (column, wanted) in [
        (long(), D::Int32),
        (long(), D::Utf8),
        (int("a"), D::Boolean),
        (col(Optional, Physical::Double, "a"), D::Float32),
        (decimal(5, 2), D::Decimal128(5, 1)),
        (decimal(5, 2), D::Decimal128(5, 3)),
        (stamp(), D::Timestamp(TimeUnit::Millisecond, Some(Arc::from("UTC")))),
        (int("a"), D::List(Arc::new(field("item", D::Int32)))),
        (int("a"), D::Struct(fields([field("a", D::Int32)]))),
        (group(Optional, "a", [int("x")]), D::Int32),
        (list(Optional, "a", int("x")), D::Struct(fields([field("x", D::Int32)]))),
    ] {
        let error = by_name([column], vec![field("a", wanted.clone())]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{wanted}");
        assert!(error.message().contains(&wanted.to_string()), "{error}");
    }
}

#[test]
fn order_absence_and_nullability() {
    use DataType as D;
    let file = || [int("a"), col(Required, Physical::Int64, "b"), int("c")];
    assert_eq!(
        by_name(
            file(),
            vec![Field::new("b", D::Int64, false), field("new", D::Utf8), field("a", D::Int32),]
        )
        .unwrap(),
        "b 0/0/0 Int64 #1 | new? 0/0/0 Utf8 missing | a? 0/1/0 Int32 #0"
    );
    // A required column into a nullable field, but not the other way round.
    assert_eq!(by_name(file(), vec![field("b", D::Int64)]).unwrap(), "b? 0/0/0 Int64 #1");
    for wanted in [Field::new("a", D::Int32, false), Field::new("new", D::Int32, false)] {
        let error = by_name(file(), vec![wanted.clone()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{wanted}");
    }
    assert_eq!(by_name(file(), vec![]).unwrap(), "");
}

#[test]
fn nested_fields() {
    use DataType as D;
    let file = || {
        group(
            Optional,
            "s",
            [
                int("x"),
                list(Optional, "l", group(Required, "e", [int("p"), int("q")])),
                map(Optional, "m", text(Required, "k"), int("v")),
            ],
        )
    };
    let item = field("item", D::Struct(fields([field("q", D::Int64), field("r", D::Utf8)])));
    let pair = fields([Field::new("key", D::LargeUtf8, false), field("value", D::Int64)]);
    let entries = Field::new("entries", D::Struct(pair), false);
    let wanted = D::Struct(fields([
        field("m", D::Map(Arc::new(entries), false)),
        field("new", D::Date32),
        field("l", D::LargeList(Arc::new(item))),
    ]));
    assert_eq!(
        by_name([file()], vec![field("s", wanted)]).unwrap(),
        "s? 0/1/0 {m? 0/2/0 map 3@1 <entries 3/3/1 {key 3/3/1 LargeUtf8 #3, value? 3/4/1 Int64 #4}>, \
         new? 0/1/0 Date32 missing, \
         l? 0/2/0 list 3@1 <item? 3/3/1 {q? 3/4/1 Int64 #2, r? 3/3/1 Utf8 missing}>}"
    );
    // The error says where.
    let wanted = D::List(Arc::new(field("e", D::Struct(fields([field("p", D::Utf8)])))));
    let wanted = D::Struct(fields([field("l", wanted)]));
    let error = by_name([file()], vec![field("s", wanted)]).unwrap_err();
    assert!(error.message().contains("s.l.e.p"), "{error}");
}

#[test]
fn groups_without_any_wanted_column() {
    use DataType as D;
    let only_new = || fields([field("new", D::Int32)]);
    let optional =
        by_name([group(Optional, "s", [int("x")])], vec![field("s", D::Struct(only_new()))]);
    assert!(matches!(optional.unwrap_err().kind(), ErrorKind::Unsupported(_)));
    // A struct that is never null needs no column.
    let required =
        by_name([group(Required, "s", [int("x")])], vec![field("s", D::Struct(only_new()))]);
    assert_eq!(required.unwrap(), "s? 0/0/0 {new? 0/0/0 Int32 missing}");
    let item = Arc::new(field("e", D::Struct(only_new())));
    let file = list(Required, "l", group(Required, "e", [int("x")]));
    let error = by_name([file], vec![field("l", D::List(item))]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)));
}

#[test]
fn columns_of_nulls_are_of_any_type() {
    let nulls = |name: &str| int(name).logical(LogicalType::Unknown);
    let wanted = vec![field("a", DataType::Null), field("b", DataType::Utf8)];
    assert_eq!(
        by_name([nulls("a"), nulls("b")], wanted).unwrap(),
        "a? 0/1/0 Null #0 | b? 0/1/0 Utf8 missing"
    );
}

#[test]
fn by_field_id() {
    use DataType as D;
    let with_id = |field: Field, id: i32| {
        let metadata = [(FIELD_ID_KEY.to_owned(), id.to_string())];
        field.with_metadata(HashMap::from(metadata))
    };
    let file = schema([
        int("old").id(1),
        group(Optional, "s", [int("x").id(3), int("y").id(4)]).id(2),
        int("plain"),
        int("twice").id(9),
        int("again").id(9),
    ]);
    let inner = fields([with_id(field("why", D::Int32), 4), with_id(field("x", D::Int32), 5)]);
    let wanted = vec![
        with_id(field("struct", D::Struct(inner)), 2),
        with_id(field("new", D::Int64), 1),
        with_id(field("old", D::Int32), 7),
        field("plain", D::Int32),
    ];
    let mapping = read(&file, wanted, MatchBy::FieldId, &Projection::all()).unwrap();
    let shapes: Vec<_> = mapping.shapes.iter().map(drawn).collect();
    assert_eq!(
        shapes,
        [
            "struct? 0/1/0 {why? 0/2/0 Int32 #2, x? 0/1/0 Int32 missing}",
            "new? 0/1/0 Int64 #0",
            "old? 0/0/0 Int32 missing",
            "plain? 0/1/0 Int32 #3",
        ]
    );
    let twice = vec![with_id(field("twice", D::Int32), 9)];
    let error = read(&file, twice, MatchBy::FieldId, &Projection::all()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn by_field_id_and_else_by_name() {
    use DataType as D;
    let with_id = |field: Field, id: i32| {
        let metadata = [(FIELD_ID_KEY.to_owned(), id.to_string())];
        field.with_metadata(HashMap::from(metadata))
    };
    let file = schema([
        int("a").id(1),
        group(Optional, "s", [int("x").id(4), int("y").id(5), int("z")]).id(2),
        int("b"),
    ]);
    // No field of the file has the id 9; `x` is the field with the id 4, which `y` has.
    let inner = [("y", 4), ("x", 9), ("z", 9)];
    let inner = fields(inner.map(|(name, id)| with_id(field(name, D::Int32), id)));
    let wanted = vec![
        with_id(field("s", D::Struct(inner)), 8),
        with_id(field("b", D::Int32), 1),
        field("a", D::Int32),
        with_id(field("A", D::Int32), 3),
    ];
    let mapping = read(&file, wanted, MatchBy::FieldIdOrName, &Projection::all()).unwrap();
    let shapes: Vec<_> = mapping.shapes.iter().map(drawn).collect();
    assert_eq!(
        shapes,
        [
            "s? 0/1/0 {y? 0/2/0 Int32 #1, x? 0/1/0 Int32 missing, z? 0/2/0 Int32 #3}",
            "b? 0/1/0 Int32 #0",
            "a? 0/0/0 Int32 missing",
            "A? 0/0/0 Int32 missing",
        ]
    );
}

#[test]
fn projections_choose_among_the_target() {
    use DataType as D;
    let file = schema([
        int("a"),
        group(Optional, "s", [int("x"), int("y")]),
        list(Optional, "l", group(Optional, "element", [int("p"), int("q")])),
        map(Optional, "m", text(Required, "k"), group(Optional, "v", [int("p"), int("q")])),
    ]);
    let pq = || D::Struct(fields([field("p", D::Int32), field("q", D::Int64)]));
    let pair = fields([Field::new("k", D::Utf8, false), field("v", pq())]);
    let wanted = || {
        vec![
            field("new", D::Utf8),
            field("s", D::Struct(fields([field("y", D::Int32), field("x", D::Int32)]))),
            field("l", D::List(Arc::new(field("item", pq())))),
            field(
                "m",
                D::Map(Arc::new(Field::new("entries", D::Struct(pair.clone()), false)), false),
            ),
        ]
    };
    for (names, expected) in [
        (
            &["l.q", "new"][..],
            "l? 0/1/0 list 2@1 <item? 2/3/1 {q? 2/4/1 Int64 #4}> | new? 0/0/0 Utf8 missing",
        ),
        (&["s.x"], "s? 0/1/0 {x? 0/2/0 Int32 #1}"),
        (&["l.item.p"], "l? 0/1/0 list 2@1 <item? 2/3/1 {p? 2/4/1 Int32 #3}>"),
        (
            &["m.v.p"],
            "m? 0/1/0 map 2@1 <entries 2/2/1 {k 2/2/1 Utf8 #5, v? 2/3/1 {p? 2/4/1 Int32 #6}}>",
        ),
    ] {
        let projection = Projection::names(names.iter().copied());
        let mapping = read(&file, wanted(), MatchBy::Name, &projection).unwrap();
        let shapes: Vec<_> = mapping.shapes.iter().map(drawn).collect();
        assert_eq!(shapes.join(" | "), expected, "{names:?}");
        for (field, shape) in mapping.schema.fields().iter().zip(&mapping.shapes) {
            assert_eq!(*field, shape.field);
        }
    }
    for projection in [Projection::names(["a"]), Projection::leaves([0]), Projection::fields([4])] {
        let error = read(&file, wanted(), MatchBy::Name, &projection).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{projection:?}");
    }
}
