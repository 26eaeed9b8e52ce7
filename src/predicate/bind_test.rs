//! Binds one test: its literals become values of the type of its column, once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::DataType;

use super::arrays::array_of_one;
use super::bound::{BoundColumn, BoundTest};
use super::by_value::{Asked, LiteralPlace};
use super::coerce::CoercionError;
use super::computed::lower;
use super::expression::{Op, Test};
use super::like::Pattern;
use super::literal::{Literal, LiteralKind};
use super::set::ValueSet;
use super::type_name::TypeName;
use super::value::LiteralValue;
use crate::error::{Error, Result};

pub(super) fn bind_test(column: &BoundColumn, test: &Test) -> Result<BoundTest> {
    let data_type = &column.data_type;
    match test {
        Test::IsNull => Ok(BoundTest::IsNull),
        Test::IsEmpty => match data_type {
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..)
            | DataType::Map(..) => Ok(BoundTest::IsEmpty),
            _ => Err(misused(column, "is empty", "lists and maps")),
        },
        _ if data_type.is_nested() => Err(Error::usage(format_args!(
            "column {} is {}: of that only \"is null\" and, of lists and maps, \"is empty\" can be asked",
            column.path,
            TypeName(data_type)
        ))),
        // All values are null.
        _ if *data_type == DataType::Null => Ok(BoundTest::Null),
        Test::Compare(op, literal) => {
            if let LiteralKind::Other(scalar) = &literal.kind {
                return same(column, *op, literal, scalar);
            }
            compare(column, *op, literal)
        }
        Test::Between(low, high) => {
            let both = [compare(column, Op::GtEq, low)?, compare(column, Op::LtEq, high)?];
            Ok(BoundTest::Both(Box::new(both)))
        }
        Test::In(literals) => is_in(column, literals),
        Test::StartsWith(prefix) => starts_with(column, prefix),
        Test::Intersects(rectangle) => {
            if !is_bytes(data_type) {
                return Err(misused(column, "intersects", "geometries, byte strings in WKB"));
            }
            rectangle.check().map_err(|e| e.at_column(column.path.as_str()))?;
            Ok(BoundTest::Intersects(*rectangle))
        }
        Test::Like(pattern, escape) => like(column, "like", (pattern, *escape), str::to_owned),
        Test::ILike(pattern, escape) => {
            let small = |text: &str| {
                let text: ArrayRef = Arc::new(StringArray::from_iter_values([text]));
                let small = lower(&text).unwrap_or(text);
                small.as_string_opt::<i32>().map_or("", |small| small.value(0)).to_owned()
            };
            Ok(BoundTest::Lowered(Box::new(like(column, "ilike", (pattern, *escape), small)?)))
        }
    }
}

fn is_in(column: &BoundColumn, literals: &[Literal]) -> Result<BoundTest> {
    let mut values = Vec::with_capacity(literals.len());
    let mut has_null = false;
    for literal in literals {
        match place(column, literal)? {
            Some(LiteralPlace::At(value)) => values.push(value),
            // No value of the column is equal to it.
            Some(_) => {}
            None => has_null = true,
        }
    }
    let set = ValueSet::new(&values, &column.data_type)?;
    Ok(BoundTest::In { values, set, has_null })
}

fn starts_with(column: &BoundColumn, prefix: &Literal) -> Result<BoundTest> {
    let prefix_type = match &column.data_type {
        // A prefix of bytes of one length has another.
        DataType::FixedSizeBinary(_) => &DataType::Binary,
        other if is_text(other) || is_bytes(other) => other,
        _ => return Err(misused(column, "starts_with", "strings and byte strings")),
    };
    match prefix.coerce(prefix_type).map_err(|why| not_coercible(column, prefix, why))? {
        Some(LiteralValue::Bytes(bytes)) => Ok(BoundTest::StartsWith(bytes)),
        _ => Ok(BoundTest::Null),
    }
}

/// A test for a pattern, whose texts are compared as `spelled`.
fn like(
    column: &BoundColumn,
    name: &str,
    (pattern, escape): (&str, Option<char>),
    spelled: impl Fn(&str) -> String,
) -> Result<BoundTest> {
    let data_type = &column.data_type;
    if !is_text(data_type) {
        return Err(misused(column, name, "strings"));
    }
    let parsed = Pattern::parse(pattern, escape).ok_or_else(|| {
        Error::usage(format_args!(
            "column {}: the pattern '{pattern}' ends in its escape character",
            column.path
        ))
    })?;
    Ok(match parsed {
        Pattern::Exact(text) => {
            let value = LiteralValue::Bytes(spelled(&text).into_bytes());
            let scalar = array_of_one(&value, data_type)?;
            BoundTest::Compare { op: Op::Eq, value, scalar }
        }
        Pattern::Prefix(prefix) => BoundTest::StartsWith(spelled(&prefix).into_bytes()),
        Pattern::Other { prefix, whole } => {
            BoundTest::Like { prefix: spelled(&prefix), pattern: spelled(&whole) }
        }
    })
}

fn compare(column: &BoundColumn, op: Op, literal: &Literal) -> Result<BoundTest> {
    match place(column, literal)?.map(|place| place.asked(op)) {
        None => Ok(BoundTest::Null),
        Some(Asked::Constant(holds)) => Ok(BoundTest::Constant(holds)),
        Some(Asked::Compare(op, value)) => {
            let scalar = array_of_one(&value, &column.data_type)?;
            Ok(BoundTest::Compare { op, value, scalar })
        }
    }
}

/// A test for a value of Arrow of exactly the type of the column, for which no order is known here.
fn same(column: &BoundColumn, op: Op, literal: &Literal, scalar: &ArrayRef) -> Result<BoundTest> {
    if scalar.data_type() != &column.data_type {
        return Err(not_coercible(column, literal, CoercionError::Kind));
    }
    match op {
        Op::Eq | Op::NotEq => {
            Ok(BoundTest::Same { scalar: Arc::clone(scalar), negated: op == Op::NotEq })
        }
        _ => Err(not_coercible(column, literal, CoercionError::Incomparable)),
    }
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn place(column: &BoundColumn, literal: &Literal) -> Result<Option<LiteralPlace>> {
    literal.place(&column.data_type).map_err(|why| not_coercible(column, literal, why))
}

#[cold]
fn not_coercible(column: &BoundColumn, literal: &Literal, why: CoercionError) -> Error {
    let BoundColumn { path, data_type, .. } = column;
    let name = TypeName(data_type);
    match why {
        CoercionError::Kind => Error::usage(format_args!(
            "column {path} is {name}, which cannot be compared with {literal}{}",
            hint(data_type, literal)
        )),
        CoercionError::Value => {
            Error::usage(format_args!("column {path} is {name}, and {literal} is no such value"))
        }
        CoercionError::Incomparable => Error::usage(format_args!(
            "column {path} is {name}: its values cannot be compared so with {literal}"
        )),
        CoercionError::Text => Error::usage(format_args!(
            "column {path} is {name}, and {literal} is no such value; write {}",
            example(data_type)
        )),
        CoercionError::Time => Error::usage(format_args!(
            "column {path} is {name}, and {literal} is a number; write {}",
            example(data_type)
        )),
    }
}

/// How a value of a type is written.
fn example(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Date32 | DataType::Date64 => "date '2024-01-31' or '2024-01-31'",
        DataType::Time32(_) | DataType::Time64(_) => "time '12:30:00' or '12:30:00'",
        DataType::Timestamp(_, Some(_)) => {
            "timestamp '2024-01-02 03:04:05Z' or '2024-01-02 03:04:05Z'"
        }
        DataType::Timestamp(_, None) => "timestamp '2024-01-02 03:04:05' or '2024-01-02 03:04:05'",
        DataType::Boolean => "true or false",
        other if other.is_integer() => "a whole number",
        _ => "a number",
    }
}

/// Suggests what may have been meant.
fn hint(data_type: &DataType, literal: &Literal) -> String {
    match (&literal.kind, data_type) {
        (LiteralKind::Int(_) | LiteralKind::Decimal(..) | LiteralKind::Boolean(_), other)
            if is_text(other) =>
        {
            format!("; a text stands in quotes: '{literal}'")
        }
        (LiteralKind::Timestamp(_, true), DataType::Timestamp(_, None) | DataType::Date32) => {
            "; its values are in no zone".to_owned()
        }
        _ => String::new(),
    }
}

#[cold]
fn misused(column: &BoundColumn, test: &str, of: &str) -> Error {
    let BoundColumn { path, data_type, .. } = column;
    let name = TypeName(data_type);
    Error::usage(format_args!("column {path} is {name}: {test} is for {of}"))
}
