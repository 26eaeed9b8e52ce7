//! [`TypeName`]: types as the text form of predicates and its errors name them.

use std::fmt;

use arrow_schema::{DataType, TimeUnit};

/// Shows a type by the name that people of SQL and of Parquet know.
pub(super) struct TypeName<'a>(pub(super) &'a DataType);

impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DataType as D;
        if let Some((name, _)) = NAMES.iter().find(|(_, data_type)| data_type == self.0) {
            return f.write_str(name);
        }
        match self.0 {
            D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) | D::Decimal256(p, s) => {
                write!(f, "decimal({p}, {s})")
            }
            D::Utf8 | D::LargeUtf8 | D::Utf8View => f.write_str("string"),
            D::Binary | D::LargeBinary | D::BinaryView => f.write_str("binary"),
            D::FixedSizeBinary(length) => write!(f, "binary of {length} bytes"),
            D::Date32 | D::Date64 => f.write_str("date"),
            D::Time32(_) | D::Time64(_) => f.write_str("time"),
            D::Timestamp(_, None) => f.write_str("timestamp"),
            D::Timestamp(_, Some(_)) => f.write_str("timestamptz"),
            D::Duration(_) => f.write_str("duration"),
            D::Interval(_) => f.write_str("interval"),
            D::Struct(_) => f.write_str("a struct"),
            D::List(_)
            | D::LargeList(_)
            | D::ListView(_)
            | D::LargeListView(_)
            | D::FixedSizeList(..) => f.write_str("a list"),
            D::Map(..) => f.write_str("a map"),
            D::Union(..) => f.write_str("a union"),
            D::Dictionary(_, values) => Self(values).fmt(f),
            D::RunEndEncoded(_, values) => Self(values.data_type()).fmt(f),
            other => write!(f, "{other}"),
        }
    }
}

/// The names of types without parameters, that of the text form first.
const NAMES: [(&str, DataType); 16] = [
    ("boolean", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("float16", DataType::Float16),
    ("float", DataType::Float32),
    ("double", DataType::Float64),
    ("timestamp_s", DataType::Timestamp(TimeUnit::Second, None)),
    ("timestamp_ms", DataType::Timestamp(TimeUnit::Millisecond, None)),
    ("timestamp_ns", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("null", DataType::Null),
];
