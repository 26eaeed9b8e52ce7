//! The values of arrays as JSON, and as text for tables.
//!
//! Numbers are numbers where JSON can hold them, decimals are strings with all their digits, bytes are hex, dates and times are text in ISO 8601.

use arrow_array::cast::AsArray;
use arrow_array::types;
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use serde_json::{Map, Value};

/// The value of a slot as JSON.
///
/// # Errors
/// If Arrow cannot format the value.
pub(crate) fn json(array: &dyn Array, i: usize) -> Result<Value, ArrowError> {
    if array.is_null(i) {
        return Ok(Value::Null);
    }
    macro_rules! number {
        ($type:ty) => {
            Value::from(array.as_primitive::<$type>().value(i))
        };
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(i)),
        DataType::Int8 => number!(types::Int8Type),
        DataType::Int16 => number!(types::Int16Type),
        DataType::Int32 => number!(types::Int32Type),
        DataType::Int64 => number!(types::Int64Type),
        DataType::UInt8 => number!(types::UInt8Type),
        DataType::UInt16 => number!(types::UInt16Type),
        DataType::UInt32 => number!(types::UInt32Type),
        DataType::UInt64 => number!(types::UInt64Type),
        DataType::Float16 => float(array.as_primitive::<types::Float16Type>().value(i).to_f64()),
        DataType::Float32 => {
            // The shortest text that is this float, not the double that it widens to.
            let value = array.as_primitive::<types::Float32Type>().value(i);
            value.to_string().parse().map_or_else(|_| float(f64::from(value)), float)
        }
        DataType::Float64 => float(array.as_primitive::<types::Float64Type>().value(i)),
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(i)),
        DataType::LargeUtf8 => Value::from(array.as_string::<i64>().value(i)),
        DataType::Utf8View => Value::from(array.as_string_view().value(i)),
        DataType::Binary => hex(array.as_binary::<i32>().value(i)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(i)),
        DataType::BinaryView => hex(array.as_binary_view().value(i)),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(i)),
        DataType::List(_) => items(&array.as_list::<i32>().value(i))?,
        DataType::LargeList(_) => items(&array.as_list::<i64>().value(i))?,
        DataType::ListView(_) => items(&array.as_list_view::<i32>().value(i))?,
        DataType::LargeListView(_) => items(&array.as_list_view::<i64>().value(i))?,
        DataType::FixedSizeList(_, _) => items(&array.as_fixed_size_list().value(i))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(columns) {
                object.insert(field.name().clone(), json(column, i)?);
            }
            Value::Object(object)
        }
        // Keys may be of any type, and may occur twice.
        DataType::Map(_, _) => {
            let entries = array.as_map().value(i);
            let (keys, values) = (entries.column(0), entries.column(1));
            let pair =
                |i| Ok(serde_json::json!({ "key": json(keys, i)?, "value": json(values, i)? }));
            Value::Array((0..entries.len()).map(pair).collect::<Result<_, ArrowError>>()?)
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys().get(i).copied().unwrap_or_default();
            json(dictionary.values(), key)?
        }
        DataType::RunEndEncoded(ends, values) => {
            let plain = arrow_cast::cast(&array.slice(i, 1), values.data_type())?;
            let _ = ends;
            json(&plain, 0)?
        }
        _ => Value::from(text(array, i)?),
    })
}

fn items(array: &ArrayRef) -> Result<Value, ArrowError> {
    Ok(Value::Array((0..array.len()).map(|i| json(array, i)).collect::<Result<_, _>>()?))
}

/// JSON has no word for what is not a number.
fn float(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("NaN"),
        None => Value::from(if value > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

/// Bytes as `0x…`.
pub(crate) fn hex(bytes: &[u8]) -> Value {
    let mut text = String::from("0x");
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    Value::from(text)
}

fn text(array: &dyn Array, i: usize) -> Result<String, ArrowError> {
    let options = FormatOptions::new().with_display_error(false);
    let formatter = ArrayFormatter::try_new(array, &options)?;
    formatter.value(i).try_to_string()
}

/// The value of a slot for a cell of a table or of CSV: text without quotes, nested values as JSON.
///
/// # Errors
/// As [`json`].
pub(crate) fn cell(array: &dyn Array, i: usize, null: &str) -> Result<String, ArrowError> {
    Ok(match json(array, i)? {
        Value::Null => null.to_owned(),
        Value::String(text) => text,
        other => other.to_string(),
    })
}
