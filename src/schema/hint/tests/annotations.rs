//! Annotations, and our own marks, beside a hint: which of them says what a column is.

use super::*;

/// What a value of the type means, how it is laid out aside: an annotation gives it, and no hint
/// takes it away.
fn meaning(data_type: &DataType) -> String {
    use DataType as D;
    match data_type {
        D::Utf8 | D::LargeUtf8 | D::Utf8View => "text".to_owned(),
        D::Binary | D::LargeBinary | D::BinaryView => "bytes".to_owned(),
        D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) | D::Decimal256(p, s) => {
            format!("{p} digits, {s} after the point")
        }
        D::Date32 | D::Date64 => "a day".to_owned(),
        D::Interval(_) => "an interval".to_owned(),
        // The format has no seconds: writers store milliseconds.
        D::Time32(_) => "milliseconds of a day".to_owned(),
        D::Timestamp(unit, zone) => {
            let unit = if *unit == TimeUnit::Second { TimeUnit::Millisecond } else { *unit };
            format!("{unit:?}, instant: {}", zone.is_some())
        }
        other => other.to_string(),
    }
}

/// Columns with every annotation, and the types that they are without a hint.
fn annotated() -> Vec<(Tree, DataType)> {
    use crate::format::ConvertedType as C;
    use crate::format::{GeographyType, GeometryType, TimeType, TimeUnit as Unit};
    use DataType as D;
    use Physical as P;
    let of = |physical: P, logical: LogicalType| col(Optional, physical, "a").logical(logical);
    let int = |physical: P, bit_width, is_signed| {
        of(physical, LogicalType::Integer(IntType { bit_width, is_signed }))
    };
    let decimal = |physical: P, precision| {
        of(physical, LogicalType::Decimal(DecimalType { scale: 2, precision }))
    };
    let time = |physical: P, unit| {
        of(physical, LogicalType::Time(TimeType { is_adjusted_to_utc: true, unit }))
    };
    let stamp = |is_adjusted_to_utc, unit| {
        of(P::Int64, LogicalType::Timestamp(TimestampType { is_adjusted_to_utc, unit }))
    };
    let old = |physical: P, converted: C| col(Optional, physical, "a").converted(converted);
    let utc = || Some(Arc::from("UTC"));
    let mut columns = vec![
        (of(P::ByteArray, LogicalType::String), D::Utf8),
        (of(P::ByteArray, LogicalType::Enum), D::Utf8),
        (of(P::ByteArray, LogicalType::Json), D::Utf8),
        (of(P::ByteArray, LogicalType::Bson), D::Binary),
        (of(P::ByteArray, LogicalType::Geometry(GeometryType::default())), D::Binary),
        (of(P::ByteArray, LogicalType::Geography(GeographyType::default())), D::Binary),
        (of(P::FixedLenByteArray(16), LogicalType::Uuid), D::FixedSizeBinary(16)),
        (of(P::FixedLenByteArray(2), LogicalType::Float16), D::Float16),
        (of(P::Int32, LogicalType::Date), D::Date32),
        (of(P::Int32, LogicalType::Unknown), D::Null),
        (int(P::Int32, 8, true), D::Int8),
        (int(P::Int32, 16, true), D::Int16),
        (int(P::Int32, 32, true), D::Int32),
        (int(P::Int64, 64, true), D::Int64),
        (int(P::Int32, 8, false), D::UInt8),
        (int(P::Int32, 16, false), D::UInt16),
        (int(P::Int32, 32, false), D::UInt32),
        (int(P::Int64, 64, false), D::UInt64),
        (time(P::Int32, Unit::Millis), D::Time32(TimeUnit::Millisecond)),
        (time(P::Int64, Unit::Micros), D::Time64(TimeUnit::Microsecond)),
        (time(P::Int64, Unit::Nanos), D::Time64(TimeUnit::Nanosecond)),
        (old(P::ByteArray, C::Utf8), D::Utf8),
        (old(P::Int32, C::Int8), D::Int8),
        (old(P::Int32, C::Uint16), D::UInt16),
        (old(P::Int32, C::Date), D::Date32),
        (old(P::FixedLenByteArray(12), C::Interval), D::Interval(IntervalUnit::MonthDayNano)),
    ];
    for (unit, arrow) in [
        (Unit::Millis, TimeUnit::Millisecond),
        (Unit::Micros, TimeUnit::Microsecond),
        (Unit::Nanos, TimeUnit::Nanosecond),
    ] {
        columns.push((stamp(true, unit.clone()), D::Timestamp(arrow, utc())));
        columns.push((stamp(false, unit), D::Timestamp(arrow, None)));
    }
    for physical in [P::Int32, P::Int64, P::ByteArray, P::FixedLenByteArray(7)] {
        columns.push((decimal(physical, 9), D::Decimal128(9, 2)));
    }
    columns.push((decimal(P::FixedLenByteArray(32), 76), D::Decimal256(76, 2)));
    columns
}

/// Types that a hint may name.
fn hints() -> Vec<DataType> {
    use DataType as D;
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let mut all = vec![D::Boolean, D::Float16, D::Float32, D::Float64];
    all.extend([D::Int8, D::Int16, D::Int32, D::Int64]);
    all.extend([D::UInt8, D::UInt16, D::UInt32, D::UInt64]);
    all.extend([D::Utf8, D::LargeUtf8, D::Utf8View]);
    all.extend([D::Binary, D::LargeBinary, D::BinaryView]);
    all.extend([2, 4, 7, 12, 16, 32].map(D::FixedSizeBinary));
    all.extend([D::Date32, D::Date64]);
    all.extend([D::Time32(Second), D::Time32(Millisecond)]);
    all.extend([D::Time64(Microsecond), D::Time64(Nanosecond)]);
    for unit in [Second, Millisecond, Microsecond, Nanosecond] {
        all.push(D::Duration(unit));
        for zone in [None, Some("UTC"), Some("Europe/Amsterdam")] {
            all.push(D::Timestamp(unit, zone.map(Arc::from)));
        }
    }
    use IntervalUnit::{DayTime, MonthDayNano, YearMonth};
    all.extend([YearMonth, DayTime, MonthDayNano].map(D::Interval));
    for (precision, scale) in [(9, 2), (9, 3), (8, 2), (18, 2), (38, 2), (76, 2)] {
        all.push(D::Decimal256(precision, scale));
        all.extend((precision <= 38).then_some(D::Decimal128(precision, scale)));
        all.extend((precision <= 18).then_some(D::Decimal64(precision, scale)));
        all.extend((precision <= 9).then_some(D::Decimal32(precision, scale)));
    }
    all
}

#[test]
fn no_hint_takes_the_meaning_of_an_annotation_away() {
    use DataType as D;
    let item = |data_type| Arc::new(Field::new("element", data_type, true));
    let entries = |value| {
        let pair = vec![Field::new("key", D::Utf8, false), Field::new("a", value, true)];
        D::Map(Arc::new(Field::new("key_value", D::Struct(pair.into()), false)), false)
    };
    fn without_metadata(data_type: &D) -> D {
        let bare = |field: &FieldRef| {
            Arc::new(Field::new(
                field.name(),
                without_metadata(field.data_type()),
                field.is_nullable(),
            ))
        };
        match data_type {
            D::Struct(fields) => D::Struct(fields.iter().map(bare).collect()),
            D::LargeList(item) => D::LargeList(bare(item)),
            D::Map(entries, sorted) => D::Map(bare(entries), *sorted),
            other => other.clone(),
        }
    }
    for (column, natural) in annotated() {
        for hint in hints() {
            let fits = meaning(&hint) == meaning(&natural);
            for form in [hint.clone(), dictionary(D::Int32, hint.clone()), run_ends(D::Int32, hint)]
            {
                let expected = if fits { &form } else { &natural };
                let case = format!("{natural} with the hint {form}");
                assert_eq!(hinted_type(column.clone(), form.clone()), *expected, "{case}");
                let group = || group(Optional, "a", [column.clone()]);
                let inside = |data_type: &D| {
                    D::Struct(vec![Field::new("a", data_type.clone(), true)].into())
                };
                let found = without_metadata(&hinted_type(group(), inside(&form)));
                assert_eq!(found, inside(expected), "{case}");
                let list = list(Optional, "a", column.clone());
                let hint = D::LargeList(item(form.clone()));
                let found = without_metadata(&hinted_type(list, hint));
                assert_eq!(found, D::LargeList(item(expected.clone())), "{case}");
                let key = col(Required, Physical::ByteArray, "key").logical(LogicalType::String);
                let map = map(Optional, "a", key, column.clone());
                let found = without_metadata(&hinted_type(map, entries(form.clone())));
                assert_eq!(found, entries(expected.clone()), "{case}");
            }
        }
    }
}

#[test]
fn without_annotation_a_hint_says_what_the_format_has_no_annotation_for() {
    use DataType as D;
    use Physical as P;
    let bare = |physical: P| col(Optional, physical, "a");
    let stamp = |zone: Option<&str>| D::Timestamp(TimeUnit::Second, zone.map(Arc::from));
    let durations =
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
            .map(D::Duration);
    let strings = [D::Utf8, D::LargeUtf8, D::Utf8View, D::Binary, D::LargeBinary, D::BinaryView];
    let mut of_int64 = vec![D::Int64, D::Date64];
    of_int64.extend(durations);
    of_int64.extend([None, Some("UTC"), Some("Europe/Amsterdam")].map(stamp));
    let mut of_fixed = vec![D::FixedSizeBinary(7)];
    of_fixed.extend([D::Binary, D::LargeBinary, D::BinaryView]);
    let nanos = D::Timestamp(TimeUnit::Nanosecond, None);
    for (physical, natural, open) in [
        (P::Boolean, D::Boolean, vec![D::Boolean]),
        (P::Int32, D::Int32, vec![D::Int32, D::Time32(TimeUnit::Second)]),
        (P::Int64, D::Int64, of_int64),
        (P::Int96, nanos.clone(), vec![nanos]),
        (P::Float, D::Float32, vec![D::Float32]),
        (P::Double, D::Float64, vec![D::Float64]),
        (P::ByteArray, D::Binary, strings.to_vec()),
        (P::FixedLenByteArray(7), D::FixedSizeBinary(7), of_fixed),
    ] {
        for hint in hints() {
            let expected = if open.contains(&hint) { &hint } else { &natural };
            assert_eq!(hinted_type(bare(physical), hint.clone()), *expected, "{physical:?} {hint}");
        }
    }
}

#[test]
fn annotations_keep_their_extension_types_and_their_crs() {
    let named = |name: &str, metadata: &str| {
        HashMap::from([
            (EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned()),
            (EXTENSION_TYPE_METADATA_KEY.to_owned(), metadata.to_owned()),
        ])
    };
    let uuid = col(Optional, Physical::FixedLenByteArray(16), "a").logical(LogicalType::Uuid);
    let hint = Field::new("a", DataType::FixedSizeBinary(16), true);
    let hint = ArrowSchema::new(vec![hint.with_metadata(named("my.own", "x"))]);
    let found = hinted([uuid], &hint);
    assert_eq!(found.field(0).extension_type_name(), Some("arrow.uuid"));
    assert_ne!(found.field(0).extension_type_metadata(), Some("x"));
    // Where the annotation has none, it is the writer's.
    let bare = col(Optional, Physical::FixedLenByteArray(16), "a");
    assert_eq!(hinted([bare], &hint).field(0).extension_type_name(), Some("my.own"));
}

/// Reads a nullable column `a` that the hint says is `plain` and stands for what `mark` says.
fn marked(column: Tree, plain: DataType, mark: &str) -> Field {
    let metadata = HashMap::from([("marquetry:type".to_owned(), mark.to_owned())]);
    let hint = ArrowSchema::new(vec![Field::new("a", plain, true).with_metadata(metadata)]);
    hinted([column], &hint).field(0).clone()
}

#[test]
fn marks_are_believed_only_where_the_column_is_what_we_make_of_them() {
    use DataType as D;
    use Physical as P;
    let of = |physical: P| col(Optional, physical, "a");
    let decimal = |physical: P, precision, scale| {
        of(physical).logical(LogicalType::Decimal(DecimalType { scale, precision }))
    };
    let stamp = |is_adjusted_to_utc, unit| {
        let stamp = TimestampType { is_adjusted_to_utc, unit };
        of(P::Int64).logical(LogicalType::Timestamp(stamp))
    };
    use crate::format::TimeUnit::{Micros, Millis};
    let uuid = || of(P::FixedLenByteArray(16)).logical(LogicalType::Uuid);
    let digits = |precision| D::Decimal128(precision, 0);
    let local = |unit| D::Timestamp(unit, None);
    let millis = TimeUnit::Millisecond;
    let sixteen = D::FixedSizeBinary(16);
    // The column, its own type, the mark, and what it is then; `None` is its own.
    let table = [
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:3:-2", Some(D::Decimal32(3, -2))),
        (decimal(P::Int64, 5, 0), digits(5), "decimal256:4:-1", Some(D::Decimal256(4, -1))),
        (decimal(P::ByteArray, 5, 0), digits(5), "decimal64:4:-1", Some(D::Decimal64(4, -1))),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:3:-1", None),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:5:0", None),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:0:-5", None),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:3:-2:1", None),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:3", None),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:1:-128", None),
        (decimal(P::Int32, 5, 0), digits(5), "decimal32:261:-256", None),
        (decimal(P::Int64, 12, 0), digits(12), "decimal32:10:-2", None),
        (decimal(P::Int32, 5, 1), D::Decimal128(5, 1), "decimal32:3:-2", None),
        (of(P::Int32), D::Int32, "decimal32:3:-2", None),
        (of(P::ByteArray), D::Binary, "fixed_size_binary:0", Some(D::FixedSizeBinary(0))),
        (text("a"), D::Utf8, "fixed_size_binary:0", None),
        (of(P::ByteArray).logical(LogicalType::Bson), D::Binary, "fixed_size_binary:0", None),
        (of(P::FixedLenByteArray(1)), D::FixedSizeBinary(1), "fixed_size_binary:0", None),
        (of(P::ByteArray), D::Binary, "fixed_size_binary:1", None),
        (stamp(false, Millis), local(millis), "date64", Some(D::Date64)),
        (stamp(false, Micros), local(TimeUnit::Microsecond), "date64", None),
        (stamp(true, Millis), D::Timestamp(millis, Some("UTC".into())), "date64", None),
        (of(P::Int64), D::Int64, "date64", None),
        (
            of(P::FixedLenByteArray(16)),
            sixteen.clone(),
            "interval:day_time",
            Some(D::Interval(IntervalUnit::DayTime)),
        ),
        (of(P::FixedLenByteArray(12)), D::FixedSizeBinary(12), "interval:day_time", None),
        (uuid(), sixteen.clone(), "interval:day_time", None),
        (of(P::FixedLenByteArray(16)), sixteen.clone(), "interval", None),
        (of(P::FixedLenByteArray(16)), sixteen, "struct", None),
        (of(P::Boolean), D::Boolean, "struct", None),
        (of(P::Boolean), D::Boolean, "", None),
    ];
    for (column, natural, mark, expected) in table {
        for keyed in [false, true] {
            let form = |of: D| if keyed { dictionary(D::Int16, of) } else { of };
            let found = marked(column.clone(), form(natural.clone()), mark);
            let expected = form(expected.clone().unwrap_or_else(|| natural.clone()));
            assert_eq!(*found.data_type(), expected, "{natural} marked {mark}");
            assert!(!found.metadata().contains_key("marquetry:type"), "{natural} marked {mark}");
        }
    }
}

#[test]
fn only_the_group_that_we_make_is_a_struct_without_fields() {
    use DataType as D;
    let flag = |name: &str| col(Optional, Physical::Boolean, name);
    let said = |fields: Vec<Field>| D::Struct(fields.into());
    let own = |name: &str, nullable| said(vec![Field::new(name, D::Boolean, nullable)]);
    let none = said(Vec::new());
    let number = said(vec![Field::new("_empty", D::Int32, true)]);
    let two = said(vec![Field::new("_empty", D::Boolean, true), Field::new("b", D::Boolean, true)]);
    for (fields, plain, mark, expected) in [
        (vec![flag("_empty")], own("_empty", true), "struct", &none),
        (vec![flag("_empty")], own("_empty", true), "date64", &own("_empty", true)),
        (vec![flag("b")], own("b", true), "struct", &own("b", true)),
        (
            vec![col(Required, Physical::Boolean, "_empty")],
            own("_empty", false),
            "struct",
            &own("_empty", false),
        ),
        (vec![int("_empty")], number.clone(), "struct", &number),
        (vec![flag("_empty"), flag("b")], two.clone(), "struct", &two),
    ] {
        let found = marked(group(Optional, "a", fields), plain, mark);
        assert_eq!(found.data_type(), expected, "{mark}");
    }
    // Without the hint, it is what it is in the file.
    let file = samples::schema([group(Optional, "a", vec![flag("_empty")])]);
    let plain = to_arrow(&file, &[], &Projection::all(), &ArrowOptions::default()).unwrap();
    assert_eq!(*plain.schema.field(0).data_type(), own("_empty", true));
}
