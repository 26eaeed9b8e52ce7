//! [`unite`] derives one schema for files of different schemas.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Result};

/// The schema that files of all these schemas can be read into: all of their columns, by name, in
/// the order in which they first occur, each with a type that loses nothing.
///
/// Columns that one of the schemas lacks, or that may hold nulls in one, are nullable. Integers,
/// floats and decimals become the smallest type that holds all values of both; dates become
/// timestamps, timestamps get the finer unit; strings, byte strings, dictionaries and views become
/// one layout; structs are united member by member. Metadata of schema and columns are those of the
/// first schema that has them. The result suits [`Reader::target`](crate::Reader::target), with
/// [`MatchBy::Name`](super::MatchBy::Name).
///
/// ```
/// use std::sync::Arc;
/// use marquetry::arrow_schema::{DataType, Field, Schema};
///
/// let old = Arc::new(Schema::new(vec![Field::new("id", DataType::Int32, false)]));
/// let new = Arc::new(Schema::new(vec![
///     Field::new("id", DataType::Int64, false),
///     Field::new("name", DataType::Utf8, false),
/// ]));
/// let both = marquetry::schema::unite([&old, &new])?;
/// assert_eq!(both.field(0), new.field(0));
/// assert_eq!(both.field(1), &Field::new("name", DataType::Utf8, true));
/// # Ok::<(), marquetry::Error>(())
/// ```
///
/// # Errors
/// `Usage`, naming the column and both types, if no type holds the values of both, or if a schema
/// has two columns of one name.
pub fn unite<'a>(schemas: impl IntoIterator<Item = &'a SchemaRef>) -> Result<SchemaRef> {
    let mut united: Option<SchemaRef> = None;
    for schema in schemas {
        united = Some(match united {
            None => Arc::clone(schema),
            Some(before) if before == *schema => before,
            Some(before) => {
                let fields = both(before.fields(), schema.fields(), &mut Vec::new())?;
                let mut metadata = schema.metadata().clone();
                metadata.extend(before.metadata().clone());
                Arc::new(Schema::new_with_metadata(fields, metadata))
            }
        });
    }
    Ok(united.unwrap_or_else(|| Arc::new(Schema::empty())))
}

/// The fields of both groups; `path` leads to them.
fn both(first: &Fields, second: &Fields, path: &mut Vec<String>) -> Result<Fields> {
    let places = places(second, path)?;
    let known = self::places(first, path)?;
    let mut fields = Vec::with_capacity(first.len());
    for field in first {
        let other = places.get(field.name().as_str()).and_then(|at| second.get(*at));
        fields.push(match other {
            Some(other) => field_of(field, other, path)?,
            None => nullable(field),
        });
    }
    let is_new = |field: &&FieldRef| !known.contains_key(field.name().as_str());
    fields.extend(second.iter().filter(is_new).map(nullable));
    Ok(fields.into())
}

fn places<'f>(fields: &'f Fields, path: &[String]) -> Result<HashMap<&'f str, usize>> {
    let mut places = HashMap::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        if places.insert(field.name().as_str(), at).is_some() {
            let path = dotted(path, field.name());
            let text = format_args!(
                "several columns {path} in one schema: they cannot be told apart by name"
            );
            return Err(Error::usage(text));
        }
    }
    Ok(places)
}

fn nullable(field: &FieldRef) -> FieldRef {
    match field.is_nullable() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_nullable(true)),
    }
}

fn dotted(path: &[String], name: &str) -> String {
    path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")
}

fn field_of(first: &FieldRef, second: &FieldRef, path: &mut Vec<String>) -> Result<FieldRef> {
    if first == second {
        return Ok(Arc::clone(first));
    }
    path.push(first.name().clone());
    let data_type = type_of(first.data_type(), second.data_type(), path)?;
    path.pop();
    let mut metadata = second.metadata().clone();
    metadata.extend(first.metadata().clone());
    let is_nullable = first.is_nullable() || second.is_nullable();
    let field = Field::new(first.name(), data_type, is_nullable).with_metadata(metadata);
    Ok(Arc::new(field))
}

/// The least type that holds the values of both.
fn type_of(first: &DataType, second: &DataType, path: &mut Vec<String>) -> Result<DataType> {
    use DataType as D;
    if first == second {
        return Ok(first.clone());
    }
    Ok(match (first, second) {
        (D::Null, other) | (other, D::Null) => other.clone(),
        (D::Dictionary(_, values), other) | (other, D::Dictionary(_, values)) => {
            type_of(values, other, path)?
        }
        (D::RunEndEncoded(_, values), other) | (other, D::RunEndEncoded(_, values)) => {
            type_of(values.data_type(), other, path)?
        }
        (D::Struct(a), D::Struct(b)) => D::Struct(both(a, b, path)?),
        (D::Map(a, sorted), D::Map(b, also)) => D::Map(entries(a, b, path)?, *sorted && *also),
        _ => match (list_item(first), list_item(second)) {
            (Some(a), Some(b)) if is_large(first) || is_large(second) => {
                D::LargeList(field_of(a, b, path)?)
            }
            (Some(a), Some(b)) => D::List(field_of(a, b, path)?),
            _ => plain_type(first, second)
                .or_else(|| plain_type(second, first))
                .ok_or_else(|| no_type(first, second, path))?,
        },
    })
}

/// The entries of two maps: keys and values by position, whatever their names.
fn entries(first: &FieldRef, second: &FieldRef, path: &mut Vec<String>) -> Result<FieldRef> {
    let (DataType::Struct(a), DataType::Struct(b)) = (first.data_type(), second.data_type()) else {
        return field_of(first, second, path);
    };
    let pairs = a.iter().zip(b).map(|(a, b)| field_of(a, b, path));
    let fields: Fields = pairs.collect::<Result<_>>()?;
    Ok(Arc::new(first.as_ref().clone().with_data_type(DataType::Struct(fields))))
}

fn is_large(list: &DataType) -> bool {
    matches!(list, DataType::LargeList(_) | DataType::LargeListView(_))
}

fn list_item(list: &DataType) -> Option<&FieldRef> {
    match list {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

/// The same of types that are not nested, if the first is no wider than the second or neither is.
fn plain_type(first: &DataType, second: &DataType) -> Option<DataType> {
    use DataType as D;
    if let (Some(a), Some(b)) = (digits(first), digits(second)) {
        return number_type(a, b);
    }
    Some(match (first, second) {
        (D::Utf8 | D::Utf8View, D::Utf8 | D::Utf8View) => D::Utf8,
        (D::Utf8 | D::Utf8View | D::LargeUtf8, D::LargeUtf8) => D::LargeUtf8,
        (D::Binary | D::BinaryView, D::Binary | D::BinaryView) => D::Binary,
        (D::Binary | D::BinaryView | D::LargeBinary, D::LargeBinary) => D::LargeBinary,
        (D::FixedSizeBinary(_), D::FixedSizeBinary(_) | D::Binary | D::BinaryView) => D::Binary,
        (D::FixedSizeBinary(_), D::LargeBinary) => D::LargeBinary,
        (D::Float16, D::Float32 | D::Float64) | (D::Float32, D::Float64) => second.clone(),
        (D::Int8 | D::UInt8 | D::Int16 | D::UInt16, D::Float32) => D::Float32,
        (D::Int32 | D::UInt32, D::Float32) => D::Float64,
        (integer, D::Float64) if integer.is_integer() && digits(integer)?.bits <= 32 => D::Float64,
        (D::Date32, D::Date64) => D::Date64,
        (D::Date32, D::Timestamp(..)) if *second == without_zone(second) => second.clone(),
        (D::Time32(a), D::Time32(b)) => D::Time32(finer(*a, *b)),
        (D::Time32(_), D::Time64(_)) => second.clone(),
        (D::Time64(a), D::Time64(b)) => D::Time64(finer(*a, *b)),
        (D::Timestamp(a, zone), D::Timestamp(b, other)) if zone.is_some() == other.is_some() => {
            // Both are points in time; which zone they are shown in is the first one's.
            D::Timestamp(finer(*a, *b), zone.clone())
        }
        _ => return None,
    })
}

fn without_zone(timestamp: &DataType) -> DataType {
    match timestamp {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    a.max(b)
}

/// An integer or decimal type.
#[derive(Clone, Copy)]
struct NumberDigits {
    /// Bits of an integer; 0 of a decimal.
    bits: u32,
    is_unsigned: bool,
    /// Digits before the point, and after it.
    whole: i16,
    scale: i16,
}

fn digits(data_type: &DataType) -> Option<NumberDigits> {
    use DataType as D;
    let integer =
        |bits, is_unsigned, whole| Some(NumberDigits { bits, is_unsigned, whole, scale: 0 });
    match *data_type {
        D::Int8 => integer(8, false, 3),
        D::UInt8 => integer(8, true, 3),
        D::Int16 => integer(16, false, 5),
        D::UInt16 => integer(16, true, 5),
        D::Int32 => integer(32, false, 10),
        D::UInt32 => integer(32, true, 10),
        D::Int64 => integer(64, false, 19),
        D::UInt64 => integer(64, true, 20),
        D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) | D::Decimal256(p, s) => {
            let whole = i16::from(p) - i16::from(s);
            Some(NumberDigits { bits: 0, is_unsigned: false, whole, scale: s.into() })
        }
        _ => None,
    }
}

fn number_type(a: NumberDigits, b: NumberDigits) -> Option<DataType> {
    use DataType as D;
    if a.bits == 0 || b.bits == 0 {
        // No integer of 64 unsigned bits is read as a decimal.
        if [a, b].iter().any(|one| one.is_unsigned && one.bits == 64) {
            return None;
        }
        let (whole, scale) = (a.whole.max(b.whole), a.scale.max(b.scale));
        let precision = u8::try_from(whole + scale).ok()?;
        let scale = i8::try_from(scale).ok()?;
        return match precision {
            1..=38 => Some(D::Decimal128(precision, scale)),
            39..=76 => Some(D::Decimal256(precision, scale)),
            _ => None,
        };
    }
    if a.is_unsigned == b.is_unsigned {
        let bits = a.bits.max(b.bits);
        return Some(match (bits, a.is_unsigned) {
            (8, true) => D::UInt8,
            (16, true) => D::UInt16,
            (32, true) => D::UInt32,
            (_, true) => D::UInt64,
            (8, false) => D::Int8,
            (16, false) => D::Int16,
            (32, false) => D::Int32,
            (_, false) => D::Int64,
        });
    }
    let (signed, unsigned) = if a.is_unsigned { (b, a) } else { (a, b) };
    match signed.bits.max(unsigned.bits * 2) {
        16 => Some(D::Int16),
        32 => Some(D::Int32),
        64 => Some(D::Int64),
        _ => None,
    }
}

#[cold]
fn no_type(first: &DataType, second: &DataType, path: &[String]) -> Error {
    let path = path.join(".");
    Error::usage(format_args!(
        "column {path}: {first} and {second} have no type that holds the values of both"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DataType as D;
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};

    fn unite_types(a: &DataType, b: &DataType) -> Option<DataType> {
        let schema = |data_type: &DataType| {
            Arc::new(Schema::new(vec![Field::new("x", data_type.clone(), false)]))
        };
        let there = unite([&schema(a), &schema(b)]).ok().map(|s| s.field(0).data_type().clone());
        let back = unite([&schema(b), &schema(a)]).ok().map(|s| s.field(0).data_type().clone());
        assert_eq!(there.is_some(), back.is_some(), "{a} and {b}");
        there
    }

    #[test]
    fn the_least_type_that_holds_both() {
        let utc = || Some("UTC".into());
        for (a, b, united) in [
            (D::Int8, D::Int64, Some(D::Int64)),
            (D::UInt8, D::Int8, Some(D::Int16)),
            (D::UInt32, D::Int8, Some(D::Int64)),
            (D::UInt64, D::Int64, None),
            (D::Int16, D::Float32, Some(D::Float32)),
            (D::Int32, D::Float32, Some(D::Float64)),
            (D::Int64, D::Float64, None),
            (D::Float16, D::Float32, Some(D::Float32)),
            (D::Int32, D::Decimal128(9, 2), Some(D::Decimal128(12, 2))),
            (D::Int64, D::Decimal128(38, 37), Some(D::Decimal256(56, 37))),
            (D::Decimal128(9, 2), D::Decimal64(12, 7), Some(D::Decimal128(14, 7))),
            (D::Decimal256(76, 0), D::Decimal256(76, 76), None),
            (D::Utf8, D::LargeUtf8, Some(D::LargeUtf8)),
            (D::Utf8View, D::Utf8, Some(D::Utf8)),
            (D::Utf8, D::Binary, None),
            (D::Utf8, D::Int32, None),
            (D::Dictionary(D::Int32.into(), D::Utf8.into()), D::Utf8, Some(D::Utf8)),
            (D::Date32, D::Timestamp(Microsecond, None), Some(D::Timestamp(Microsecond, None))),
            (D::Date32, D::Timestamp(Microsecond, utc()), None),
            (D::Timestamp(Second, utc()), D::Timestamp(Nanosecond, None), None),
            (
                D::Timestamp(Millisecond, None),
                D::Timestamp(Nanosecond, None),
                Some(D::Timestamp(Nanosecond, None)),
            ),
            (D::Time32(Millisecond), D::Time64(Microsecond), Some(D::Time64(Microsecond))),
            (D::Null, D::Boolean, Some(D::Boolean)),
            (D::FixedSizeBinary(3), D::FixedSizeBinary(4), Some(D::Binary)),
        ] {
            assert_eq!(unite_types(&a, &b), united, "{a} and {b}");
        }
    }

    #[test]
    fn groups_are_united_member_by_member() {
        let group = |fields: Vec<Field>| D::Struct(fields.into());
        let a = group(vec![Field::new("x", D::Int32, false), Field::new("y", D::Utf8, false)]);
        let b = group(vec![Field::new("z", D::Boolean, false), Field::new("x", D::Int64, false)]);
        let both = group(vec![
            Field::new("x", D::Int64, false),
            Field::new("y", D::Utf8, true),
            Field::new("z", D::Boolean, true),
        ]);
        assert_eq!(unite_types(&a, &b), Some(both.clone()));
        let list = |item: &DataType| D::new_list(item.clone(), true);
        assert_eq!(unite_types(&list(&a), &list(&b)), Some(list(&both)));
        assert_eq!(unite_types(&list(&a), &b), None);
        let twice = group(vec![Field::new("x", D::Int32, false), Field::new("x", D::Utf8, false)]);
        assert_eq!(unite_types(&a, &twice), None);
    }

    #[test]
    fn errors_name_the_column_and_both_types() {
        let schema = |data_type| {
            let group = D::Struct(vec![Field::new("y", data_type, true)].into());
            Arc::new(Schema::new(vec![Field::new("x", group, true)]))
        };
        let error = unite([&schema(D::Utf8), &schema(D::Int32)]).unwrap_err().to_string();
        for part in ["x.y", "Utf8", "Int32"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
