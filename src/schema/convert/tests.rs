use std::sync::Arc;

use super::*;
use crate::format::{DecimalType, GeometryType, IntType, TimeType, TimestampType};
use crate::schema::Schema;
use crate::schema::samples::{self, Optional, Tree, col};

fn leaf(tree: Tree) -> Leaf {
    let schema: Schema = samples::schema([tree]);
    schema.leaf(0).unwrap()
}

fn plain(physical: Physical) -> Leaf {
    leaf(col(Optional, physical, "a"))
}

fn annotated(physical: Physical, logical: LogicalType) -> Leaf {
    leaf(col(Optional, physical, "a").logical(logical))
}

fn integer(physical: Physical, bit_width: i8, is_signed: bool) -> Leaf {
    annotated(physical, LogicalType::Integer(IntType { bit_width, is_signed }))
}

fn decimal_of(physical: Physical, precision: i32, scale: i32) -> Leaf {
    annotated(physical, LogicalType::Decimal(DecimalType { scale, precision }))
}

fn way(from: Storage, unsigned: bool, scale: Scale) -> Option<WriteConversion> {
    Some(WriteConversion::Integer { from, unsigned, scale })
}

#[test]
fn integers_into_leaves() {
    use DataType as D;
    use Scale::{Keep, Narrow};
    use Storage::{I8, I16, I32, I64};
    let (int, long) = (Physical::Int32, Physical::Int64);
    let table = [
        (D::Int8, plain(int), way(I8, false, Keep)),
        (D::UInt8, plain(int), way(I8, true, Keep)),
        (D::UInt16, integer(int, 16, true), way(I16, true, Narrow)),
        (D::UInt16, integer(int, 16, false), way(I16, true, Keep)),
        (D::UInt8, integer(int, 16, true), way(I8, true, Keep)),
        (D::Int8, integer(int, 8, false), way(I8, false, Narrow)),
        (D::Int32, integer(int, 8, true), way(I32, false, Narrow)),
        (D::UInt32, plain(int), way(I32, true, Narrow)),
        (D::UInt32, integer(int, 32, false), way(I32, true, Keep)),
        (D::UInt32, plain(long), way(I32, true, Keep)),
        (D::Int64, plain(int), way(I64, false, Narrow)),
        (D::Int64, integer(long, 64, true), way(I64, false, Keep)),
        (D::UInt64, plain(long), way(I64, true, Narrow)),
        (D::UInt64, integer(long, 64, false), way(I64, true, Keep)),
        (D::Int32, annotated(int, LogicalType::Date), None),
        (D::Int32, plain(Physical::Double), None),
        (D::Int32, annotated(int, LogicalType::Unknown), None),
        (D::Boolean, plain(int), None),
        (D::Duration(ArrowUnit::Second), plain(long), way(I64, false, Keep)),
        (D::Duration(ArrowUnit::Second), integer(long, 64, true), None),
        (D::Duration(ArrowUnit::Second), plain(int), None),
    ];
    for (from, leaf, expected) in table {
        assert_eq!(write_conversion(&from, &leaf), expected, "{from} into {leaf:?}");
        let dictionary = D::Dictionary(Box::new(D::Int8), Box::new(from));
        assert_eq!(write_conversion(&dictionary, &leaf), expected);
    }
}

#[test]
fn times_into_leaves() {
    use ArrowUnit as U;
    use DataType as D;
    use Scale::{Divide, Keep, Multiply};
    use Storage::{I32, I64};
    let (int, long) = (Physical::Int32, Physical::Int64);
    let date = || annotated(int, LogicalType::Date);
    let time = |physical, unit| {
        annotated(physical, LogicalType::Time(TimeType { is_adjusted_to_utc: true, unit }))
    };
    let stamp = |is_adjusted_to_utc, unit| {
        annotated(long, LogicalType::Timestamp(TimestampType { is_adjusted_to_utc, unit }))
    };
    let zone = |name: &str| Some(Arc::from(name));
    let table = [
        (D::Date32, date(), way(I32, false, Keep)),
        (D::Date64, date(), way(I64, false, Divide(86_400_000))),
        (D::Date64, plain(long), way(I64, false, Keep)),
        (D::Date64, stamp(false, TimeUnit::Millis), way(I64, false, Keep)),
        (D::Date64, stamp(false, TimeUnit::Nanos), way(I64, false, Multiply(1_000_000))),
        (D::Date64, stamp(true, TimeUnit::Millis), None),
        (D::Date32, plain(int), None),
        (D::Time32(U::Second), time(int, TimeUnit::Millis), way(I32, false, Multiply(1_000))),
        (D::Time32(U::Second), plain(int), way(I32, false, Keep)),
        (D::Time32(U::Millisecond), time(int, TimeUnit::Millis), way(I32, false, Keep)),
        (
            D::Time32(U::Millisecond),
            time(long, TimeUnit::Nanos),
            way(I32, false, Multiply(1_000_000)),
        ),
        (D::Time64(U::Nanosecond), time(int, TimeUnit::Millis), way(I64, false, Divide(1_000_000))),
        (D::Time64(U::Second), time(int, TimeUnit::Millis), None),
        (D::Time64(U::Microsecond), plain(long), None),
        (
            D::Timestamp(U::Second, None),
            stamp(false, TimeUnit::Millis),
            way(I64, false, Multiply(1_000)),
        ),
        (
            D::Timestamp(U::Second, zone("")),
            stamp(false, TimeUnit::Millis),
            way(I64, false, Multiply(1_000)),
        ),
        (
            D::Timestamp(U::Microsecond, zone("x")),
            stamp(true, TimeUnit::Micros),
            way(I64, false, Keep),
        ),
        (
            D::Timestamp(U::Microsecond, zone("x")),
            stamp(true, TimeUnit::Nanos),
            way(I64, false, Multiply(1_000)),
        ),
        (
            D::Timestamp(U::Nanosecond, zone("x")),
            stamp(true, TimeUnit::Millis),
            way(I64, false, Divide(1_000_000)),
        ),
        (D::Timestamp(U::Nanosecond, None), stamp(true, TimeUnit::Nanos), None),
        (D::Timestamp(U::Nanosecond, zone("x")), stamp(false, TimeUnit::Nanos), None),
        (D::Timestamp(U::Nanosecond, None), plain(Physical::Int96), None),
        (D::Timestamp(U::Second, None), plain(long), way(I64, false, Keep)),
        (D::Timestamp(U::Nanosecond, None), plain(long), None),
    ];
    for (from, leaf, expected) in table {
        assert_eq!(write_conversion(&from, &leaf), expected, "{from} into {leaf:?}");
    }
}

#[test]
fn decimals_into_leaves() {
    use DataType as D;
    use Storage::{I32, I64, I128, I256};
    let way = |from, exponent| Some(WriteConversion::Decimal { from, exponent });
    let fixed = Physical::FixedLenByteArray;
    let table = [
        (D::Decimal32(9, 2), decimal_of(Physical::Int32, 9, 2), way(I32, 0)),
        (D::Decimal256(9, 2), decimal_of(Physical::Int32, 9, 2), way(I256, 0)),
        (D::Decimal64(9, 2), decimal_of(Physical::Int64, 18, 11), way(I64, 9)),
        (D::Decimal64(9, 2), decimal_of(Physical::Int64, 17, 11), None),
        (D::Decimal128(20, 2), decimal_of(fixed(16), 38, 2), way(I128, 0)),
        (D::Decimal128(20, 2), decimal_of(fixed(16), 38, 1), None),
        (D::Decimal128(20, 2), decimal_of(Physical::Int64, 18, 2), None),
        (D::Decimal128(20, -2), decimal_of(fixed(16), 22, 0), way(I128, 2)),
        (D::Decimal32(1, 0), decimal_of(Physical::ByteArray, 500, 76), way(I32, 76)),
        (D::Decimal32(1, 0), decimal_of(Physical::ByteArray, 500, 77), None),
        (D::Decimal32(1, 0), plain(Physical::Int32), None),
        (D::Int32, decimal_of(Physical::Int32, 9, 0), None),
        (D::Binary, decimal_of(Physical::ByteArray, 9, 0), None),
        (D::FixedSizeBinary(4), decimal_of(fixed(4), 9, 0), None),
    ];
    for (from, leaf, expected) in table {
        assert_eq!(write_conversion(&from, &leaf), expected, "{from} into {leaf:?}");
    }
}

#[test]
fn the_rest_into_leaves() {
    use BytesLayout::{Offsets32, Offsets64, Views};
    use DataType as D;
    let bytes = |layout| Some(WriteConversion::Bytes { layout });
    let string = |logical| annotated(Physical::ByteArray, logical);
    let fixed = Physical::FixedLenByteArray;
    let interval = || leaf(col(Optional, fixed(12), "a").converted(ConvertedType::Interval));
    let half = || annotated(fixed(2), LogicalType::Float16);
    let unit = IntervalUnit::DayTime;
    let table = [
        (D::Null, plain(Physical::Int96), Some(WriteConversion::Null)),
        (D::Null, annotated(Physical::Int32, LogicalType::Unknown), Some(WriteConversion::Null)),
        (D::Boolean, plain(Physical::Boolean), Some(WriteConversion::Boolean)),
        (D::Float32, plain(Physical::Float), Some(WriteConversion::Float)),
        (D::Float64, plain(Physical::Double), Some(WriteConversion::Float)),
        (D::Float32, plain(Physical::Double), None),
        (D::Float64, plain(Physical::Float), None),
        (D::Float16, half(), Some(WriteConversion::Float16)),
        (D::Float16, plain(fixed(2)), None),
        (D::Float32, half(), None),
        (D::Utf8, string(LogicalType::String), bytes(Offsets32)),
        (D::LargeUtf8, string(LogicalType::Enum), bytes(Offsets64)),
        (D::Utf8View, string(LogicalType::Json), bytes(Views)),
        (D::Utf8, plain(Physical::ByteArray), bytes(Offsets32)),
        (D::Utf8, string(LogicalType::Bson), None),
        (D::Utf8, plain(fixed(3)), None),
        (D::Binary, string(LogicalType::String), None),
        (D::Binary, string(LogicalType::Json), None),
        (D::Binary, string(LogicalType::Bson), bytes(Offsets32)),
        (D::BinaryView, string(LogicalType::Geometry(GeometryType::default())), bytes(Views)),
        (D::LargeBinary, plain(Physical::ByteArray), bytes(Offsets64)),
        (D::Binary, annotated(fixed(16), LogicalType::Uuid), bytes(Offsets32)),
        (
            D::FixedSizeBinary(16),
            annotated(fixed(16), LogicalType::Uuid),
            Some(WriteConversion::FixedBytes(16)),
        ),
        (D::FixedSizeBinary(0), plain(fixed(0)), Some(WriteConversion::FixedBytes(0))),
        (D::FixedSizeBinary(3), plain(fixed(4)), None),
        (D::FixedSizeBinary(-1), plain(fixed(4)), None),
        (D::FixedSizeBinary(4), plain(Physical::ByteArray), None),
        (D::FixedSizeBinary(0), plain(Physical::ByteArray), Some(WriteConversion::FixedBytes(0))),
        (D::FixedSizeBinary(0), string(LogicalType::Bson), None),
        (D::Interval(unit), interval(), Some(WriteConversion::Interval(unit))),
        (D::Interval(unit), plain(fixed(12)), None),
        (D::Interval(unit), plain(fixed(16)), Some(WriteConversion::Interval(unit))),
        (D::Interval(unit), annotated(fixed(16), LogicalType::Uuid), None),
        (D::Struct(Default::default()), plain(Physical::Int32), None),
    ];
    for (from, leaf, expected) in table {
        assert_eq!(write_conversion(&from, &leaf), expected, "{from} into {leaf:?}");
    }
}

#[test]
fn stand_ins_are_read_as_what_they_stand_for() {
    use DataType as D;
    use Storage::{I32, I64, I128, I256};
    let fixed = Physical::FixedLenByteArray;
    let by = |exponent, to| {
        let scale = Scale::Divide(10i64.pow(exponent));
        Some(ReadConversion::Integer { unsigned: false, scale, to })
    };
    let quotient = |exponent, to| Some(ReadConversion::DecimalQuotient { exponent, to });
    let decimal = decimal_of;
    let stamp = |is_adjusted_to_utc, unit| {
        let stamp = TimestampType { is_adjusted_to_utc, unit };
        annotated(Physical::Int64, LogicalType::Timestamp(stamp))
    };
    let keep = Some(ReadConversion::Integer { unsigned: false, scale: Scale::Keep, to: I64 });
    let unit = IntervalUnit::YearMonth;
    let table = [
        (decimal(Physical::Int32, 5, 0), D::Decimal32(3, -2), by(2, I32)),
        (decimal(Physical::Int64, 18, 0), D::Decimal64(1, -17), by(17, I64)),
        (decimal(Physical::Int64, 18, 0), D::Decimal128(38, -38), None),
        (decimal(fixed(16), 38, 0), D::Decimal128(38, -38), quotient(38, I128)),
        (decimal(Physical::ByteArray, 76, 0), D::Decimal256(1, -75), quotient(75, I256)),
        // Not enough digits.
        (decimal(Physical::Int32, 5, 0), D::Decimal32(2, -2), None),
        (decimal(fixed(16), 38, 0), D::Decimal128(1, -36), None),
        // A scale of the file is never divided away.
        (decimal(Physical::Int32, 5, 2), D::Decimal32(5, 0), None),
        (decimal(Physical::Int32, 5, 2), D::Decimal32(5, -1), None),
        (stamp(false, TimeUnit::Millis), D::Date64, keep),
        (stamp(false, TimeUnit::Micros), D::Date64, None),
        (stamp(true, TimeUnit::Millis), D::Date64, None),
        (plain(fixed(16)), D::Interval(unit), Some(ReadConversion::Interval(unit))),
        (plain(fixed(15)), D::Interval(unit), None),
        (annotated(fixed(16), LogicalType::Uuid), D::Interval(unit), None),
        (plain(Physical::ByteArray), D::FixedSizeBinary(0), Some(ReadConversion::FixedBytes(0))),
        (plain(Physical::ByteArray), D::FixedSizeBinary(1), None),
        (annotated(Physical::ByteArray, LogicalType::Bson), D::FixedSizeBinary(0), None),
    ];
    for (leaf, to, expected) in table {
        assert_eq!(read_conversion(&leaf, &to), expected, "{to} from {leaf:?}");
    }
}
