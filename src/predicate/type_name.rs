//! [`TypeName`]: a type as the text form of predicates and its errors name it.

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

/// Other names of the same types.
const ALIASES: [(&str, &str); 19] = [
    ("bool", "boolean"),
    ("tinyint", "int8"),
    ("smallint", "int16"),
    ("int", "int32"),
    ("integer", "int32"),
    ("bigint", "int64"),
    ("utinyint", "uint8"),
    ("usmallint", "uint16"),
    ("uinteger", "uint32"),
    ("ubigint", "uint64"),
    ("real", "float"),
    ("float32", "float"),
    ("float64", "double"),
    ("varchar", "string"),
    ("text", "string"),
    ("numeric", "decimal"),
    ("dec", "decimal"),
    ("datetime", "timestamp"),
    ("timestamp_us", "timestamp"),
];

/// The type of a name in small letters, with the numbers in brackets after it. Types that nothing
/// can be cast to have no name.
pub(super) fn type_named(name: &str, numbers: &[i128]) -> Option<DataType> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    let decimal = |precision: i128, scale: i128| {
        let (precision, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
        let is_valid = (0..=i8::try_from(precision).ok()?).contains(&scale);
        match precision {
            1..=38 if is_valid => Some(DataType::Decimal128(precision, scale)),
            39..=76 if is_valid => Some(DataType::Decimal256(precision, scale)),
            _ => None,
        }
    };
    let found = match (name, numbers) {
        ("decimal", []) => return decimal(18, 3),
        ("decimal", [precision]) => return decimal(*precision, 0),
        ("decimal", [precision, scale]) => return decimal(*precision, *scale),
        // How long a string may be is not asked.
        ("string", [] | [_]) => DataType::Utf8,
        ("date", []) => DataType::Date32,
        ("time", []) => DataType::Time64(TimeUnit::Microsecond),
        ("timestamp", []) => DataType::Timestamp(TimeUnit::Microsecond, None),
        ("timestamptz", []) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ("null" | "float16", _) => return None,
        (_, []) => NAMES.iter().find(|(known, _)| *known == name)?.1.clone(),
        _ => return None,
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_up_to_76_digits_and_no_more_after_the_point() {
        use DataType::{Decimal128, Decimal256};
        for (numbers, expected) in [
            (&[][..], Some(Decimal128(18, 3))),
            (&[5], Some(Decimal128(5, 0))),
            (&[38, 38], Some(Decimal128(38, 38))),
            (&[39, 0], Some(Decimal256(39, 0))),
            (&[76, 76], Some(Decimal256(76, 76))),
            (&[5, 6], None),
            (&[40, 41], None),
            (&[40, -1], None),
            (&[0, 0], None),
            (&[77, 0], None),
            (&[5, 1, 1], None),
        ] {
            assert_eq!(type_named("decimal", numbers), expected, "{numbers:?}");
        }
    }
}
