//! Converts columns as text decoders give them to columns as the schema wants them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, MapArray,
    RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::parse::Parser;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use serde_json::value::RawValue;

use super::datetimes::{Instant, SECONDS_OF_DAY, has_offset, time_of_day};
use super::decimals::decimals;
use super::maps::Maps;
use super::names::Names;
use super::numbers::{has_leading_zero, is_inexact_integer};
use crate::args::BinaryForm;
use crate::cells::bytes_of;
use crate::json::at_column;

/// The type in which the JSON decoder reads a value that becomes this type. Numbers, dates and
/// times stay text, because the decoder drops digits and times of day, and makes infinities, in
/// silence; maps are lists.
pub(super) fn json_type(data_type: &DataType) -> DataType {
    let inside = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::new(field.name(), json_type(field.data_type()), true))
    };
    match data_type {
        other if other.is_numeric() || other.is_binary() => DataType::Utf8,
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => {
            DataType::Utf8
        }
        DataType::Timestamp(..) | DataType::Dictionary(..) => DataType::Utf8,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(inside(item)),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let names = ["key", "value"].iter().zip(pair);
                let pair =
                    names.map(|(name, field)| inside(field).as_ref().clone().with_name(*name));
                let entry = DataType::Struct(pair.collect());
                DataType::List(Arc::new(Field::new_list_field(entry, true)))
            }
            other => other.clone(),
        },
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect()),
        other => other.clone(),
    }
}

/// The schema that a decoder works with: nulls are checked later, where the line is known.
pub(super) fn decoded_as(schema: &SchemaRef, of: impl Fn(&DataType) -> DataType) -> SchemaRef {
    let fields =
        schema.fields().iter().map(|field| Field::new(field.name(), of(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A value that does not fit, and its row in the batch.
pub(super) struct Misfit {
    pub(super) row: Option<usize>,
    pub(super) error: String,
}

/// Converts the columns to the types of the schema, which are inferred, except those of the columns
/// `stated`.
pub(super) fn finish(
    batch: &RecordBatch,
    schema: &SchemaRef,
    binary: Option<BinaryForm>,
    stated: &HashSet<String>,
) -> Result<RecordBatch, Misfit> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        let how = Conversion { binary, is_stated: stated.contains(field.name()) };
        let column = convert(column, field, how).map_err(|error| {
            // The first row that does not fit on its own.
            let row =
                (0..column.len()).find(|i| convert(&column.slice(*i, 1), field, how).is_err());
            Misfit { row, error: format!("column {}: {error}", field.name()) }
        })?;
        if !field.is_nullable() && column.null_count() > 0 {
            let row = (0..column.len()).find(|i| column.is_null(*i));
            let error = format!("column {}: null, and it is declared not null", field.name());
            return Err(Misfit { row, error });
        }
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| Misfit { row: None, error: error.to_string() })
}

/// How the texts of a column become values.
#[derive(Debug, Clone, Copy)]
struct Conversion {
    binary: Option<BinaryForm>,
    /// Whether `--schema` states the type. One that was inferred takes no values that inference
    /// would take for those of another type.
    is_stated: bool,
}

fn convert(column: &ArrayRef, field: &Field, how: Conversion) -> Result<ArrayRef, ArrowError> {
    let (from, to) = (column.data_type(), field.data_type());
    if from == to {
        return Ok(column.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    match (from, to) {
        // Arrow makes no dictionaries of nested values, and says so.
        (DataType::Utf8, to) if to.is_nested() && !matches!(to, DataType::Dictionary(..)) => {
            nested(column, field, how)
        }
        (DataType::Utf8, DataType::Dictionary(_, value)) if !value.is_nested() => {
            let values =
                convert(column, &field.clone().with_data_type(value.as_ref().clone()), how)?;
            cast_with_options(&values, to, &options)
        }
        (DataType::Utf8, to) if to.is_binary() => {
            let cells = column.as_string::<i32>().iter();
            let bytes = cells.map(|cell| cell.map(|cell| bytes(cell, to, how.binary)).transpose());
            let bytes: BinaryArray = bytes.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
            cast_with_options(&bytes, to, &options)
        }
        (DataType::Utf8, DataType::Timestamp(unit, zone)) => {
            let values = integers(column, |text| instant(text, *unit, zone.as_deref(), how))?;
            cast_with_options(&values, to, &options)
        }
        (DataType::Utf8, DataType::Date32) => {
            let texts = column.as_string::<i32>().iter();
            let days = texts.map(|text| text.map(|text| date(text, how)).transpose());
            let days: Int32Array = days.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
            cast_with_options(&days, to, &options)
        }
        (DataType::Utf8, DataType::Date64) => {
            let milliseconds = |text: &str| match days(text) {
                Some(days) => Ok(i64::from(days) * SECONDS_OF_DAY * 1000),
                None => instant(text, TimeUnit::Millisecond, None, how),
            };
            cast_with_options(&integers(column, milliseconds)?, to, &options)
        }
        (DataType::Utf8, DataType::Time32(unit)) => {
            let values = integers(column, |text| time_of_day(text, *unit))?;
            let values = cast_with_options(&values, &DataType::Int32, &options)?;
            cast_with_options(&values, to, &options)
        }
        (DataType::Utf8, DataType::Time64(unit)) => {
            let values = integers(column, |text| time_of_day(text, *unit))?;
            cast_with_options(&values, to, &options)
        }
        (DataType::Utf8, to) if to.is_integer() => {
            if !how.is_stated {
                have_no_leading_zeros(column)?;
            }
            cast_with_options(column, to, &options)
        }
        (DataType::Utf8, to) if to.is_floating() => {
            let floats = cast_with_options(column, to, &options)?;
            are_within_range(column, &floats)?;
            if !how.is_stated {
                are_exact(column)?;
                have_no_leading_zeros(column)?;
            }
            Ok(floats)
        }
        (DataType::Utf8, DataType::Boolean) => {
            let texts = column.as_string::<i32>().iter();
            let booleans = texts.map(|text| text.map(boolean).transpose());
            Ok(Arc::new(booleans.collect::<Result<BooleanArray, _>>()?))
        }
        (
            DataType::Utf8,
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale),
        ) => cast_with_options(&decimals(column.as_string(), *scale)?, to, &options),
        (DataType::List(_), DataType::Map(..)) => map(column, to, how),
        (DataType::List(_), to) => match to {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                let (offsets, values) = items(column);
                let values = convert(&values, item, how)?;
                let nulls = column.nulls().cloned();
                let list: ArrayRef =
                    Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?);
                cast_with_options(&list, to, &options)
            }
            _ => cast_with_options(column, to, &options),
        },
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let group = column.as_struct();
            let columns = group.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| convert(column, field, how));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let (nulls, len) = (group.nulls().cloned(), group.len());
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, len)?))
        }
        _ => cast_with_options(column, to, &options),
    }
}

/// The items of a list and nothing else, with offsets that begin at 0.
fn items(column: &ArrayRef) -> (OffsetBuffer<i32>, ArrayRef) {
    let list = column.as_list::<i32>();
    let offsets = list.value_offsets();
    let first = offsets.first().copied().unwrap_or_default();
    let last = offsets.last().copied().unwrap_or_default();
    let at = |offset: i32| usize::try_from(offset).unwrap_or_default();
    let values = list.values().slice(at(first), at(last - first));
    let offsets: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    (OffsetBuffer::new(offsets.into()), values)
}

/// A map of lists of keys and values.
fn map(column: &ArrayRef, to: &DataType, how: Conversion) -> Result<ArrayRef, ArrowError> {
    let wrong = || ArrowError::SchemaError(format!("{to} has no keys and values"));
    let DataType::Map(entries, ordered) = to else { return Err(wrong()) };
    let DataType::Struct(pair) = entries.data_type() else { return Err(wrong()) };
    let (offsets, values) = items(column);
    let found = values.as_struct();
    if found.null_count() > 0 {
        return Err(ArrowError::JsonError("a map has null in the place of an entry".to_owned()));
    }
    let columns = found.columns().iter().zip(pair);
    let columns = columns.map(|(column, field)| convert(column, field, how));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let found = StructArray::try_new_with_length(pair.clone(), columns, None, found.len())?;
    let nulls = column.nulls().cloned();
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, found, nulls, *ordered)?))
}

/// Refuses numbers that became infinities. The words for these have no digits.
fn are_within_range(texts: &ArrayRef, floats: &ArrayRef) -> Result<(), ArrowError> {
    let doubles = cast(floats, &DataType::Float64)?;
    let mut pairs = texts.as_string::<i32>().iter().zip(doubles.as_primitive::<Float64Type>());
    let beyond = pairs.find_map(|(text, double)| {
        text.filter(|text| {
            double.is_some_and(f64::is_infinite) && text.contains(|c: char| c.is_ascii_digit())
        })
    });
    match beyond {
        None => Ok(()),
        Some(text) => Err(ArrowError::ParseError(format!(
            "{text} is beyond the range of {}; as utf8 in --schema it stays what it is",
            floats.data_type()
        ))),
    }
}

/// Refuses integers whose digits a double does not keep.
fn are_exact(texts: &ArrayRef) -> Result<(), ArrowError> {
    let mut texts = texts.as_string::<i32>().iter().flatten();
    match texts.find(|text| is_inexact_integer(text.trim())) {
        None => Ok(()),
        Some(text) => Err(ArrowError::ParseError(format!(
            "{text}: a double does not keep all digits of this integer, and the column has \
             fractions; say the type with --schema, as utf8 or float64"
        ))),
    }
}

/// Refuses numbers that do not keep the zeros that they begin with.
fn have_no_leading_zeros(texts: &ArrayRef) -> Result<(), ArrowError> {
    let mut texts = texts.as_string::<i32>().iter().flatten();
    match texts.find(|text| has_leading_zero(text)) {
        None => Ok(()),
        Some(text) => Err(ArrowError::ParseError(format!(
            "{text} begins with a zero, which numbers do not keep, and the column is of numbers; \
             utf8 in --schema keeps it"
        ))),
    }
}

fn boolean(text: &str) -> Result<bool, ArrowError> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(ArrowError::ParseError(format!("{text:?} is neither true nor false"))),
    }
}

/// Whether a column of this type that is inferred takes a cell of CSV.
pub(super) fn is_taken(cell: &str, data_type: &DataType) -> bool {
    let how = Conversion { binary: None, is_stated: false };
    match data_type {
        DataType::Int64 | DataType::Float64 => !has_leading_zero(cell),
        DataType::Date32 => date(cell, how).is_ok(),
        DataType::Timestamp(unit, _) => {
            instant(cell, *unit, has_offset(cell).then_some("UTC"), how).is_ok()
        }
        _ => true,
    }
}

/// The integers that stand for texts.
fn integers(
    column: &ArrayRef,
    value: impl Fn(&str) -> Result<i64, ArrowError>,
) -> Result<Int64Array, ArrowError> {
    let texts = column.as_string::<i32>().iter();
    let values = texts.map(|text| text.map(&value).transpose());
    Ok(values.collect::<Result<Vec<_>, _>>()?.into_iter().collect())
}

/// A time as text, or as a number of units after 1970-01-01.
fn instant(
    text: &str,
    unit: TimeUnit,
    zone: Option<&str>,
    how: Conversion,
) -> Result<i64, ArrowError> {
    let wrong = |text: String| Err(ArrowError::ParseError(text));
    if let Ok(value) = text.parse() {
        return match how.is_stated {
            true => Ok(value),
            false => wrong(format!("{text} is a number, and the column is of times")),
        };
    }
    if zone.is_none() && has_offset(text) {
        return wrong(format!(
            "{text} has an offset, and the column is of times without one; timestamp(us, UTC) in \
             --schema makes instants of them"
        ));
    }
    if zone.is_some() && !how.is_stated && !has_offset(text) {
        return wrong(format!(
            "{text} has no offset, and the column is of instants; timestamp(us, UTC) in --schema \
             takes it for UTC"
        ));
    }
    let time = Instant::parse(text, zone.unwrap_or("UTC"))?;
    match time.units(unit) {
        Some(value) if time.is_held(unit, text) => Ok(value),
        Some(_) => wrong(format!(
            "{text} has more digits than {unit:?}s hold; timestamp(ns) in --schema has more"
        )),
        None => wrong(format!("{text} is beyond the years that {unit:?}s hold")),
    }
}

/// A date as text, with no time of day but midnight. Digits without dashes are one if the type is
/// stated.
fn date(text: &str, how: Conversion) -> Result<i32, ArrowError> {
    let wrong = |text: String| Err(ArrowError::ParseError(text));
    let is_number = text.parse::<i64>().is_ok();
    match days(text) {
        Some(days) if how.is_stated || !is_number => return Ok(days),
        _ if is_number => return wrong(format!("{text} is a number, and the column is of dates")),
        _ => {}
    }
    let seconds = instant(text, TimeUnit::Second, None, how)?;
    match i32::try_from(seconds / SECONDS_OF_DAY) {
        Ok(days) if seconds % SECONDS_OF_DAY == 0 => Ok(days),
        _ => wrong(format!(
            "{text} has a time of day, and the column is of dates; timestamp(us) in --schema keeps \
             both"
        )),
    }
}

/// The days after 1970-01-01 of a text that is a date and nothing else.
fn days(text: &str) -> Option<i32> {
    let text = text.trim();
    // Of a longer text the parser takes the day in UTC, and drops the time.
    let is_date = text.len() <= "2024-01-31".len() || text.starts_with(['+', '-']);
    Date32Type::parse(text).filter(|_| is_date)
}

/// Parses bytes as `marq` writes them, in hex after `0x`, or as a UUID for 16 of them; other text
/// is its own bytes, unless `--binary` sets the form.
fn bytes(cell: &str, to: &DataType, binary: Option<BinaryForm>) -> Result<Vec<u8>, ArrowError> {
    let found = match *to == DataType::FixedSizeBinary(16) && is_uuid(cell) {
        true => bytes_of(&format!("0x{}", cell.replace('-', "")), None),
        false => bytes_of(cell, binary),
    };
    found.map_err(ArrowError::ParseError)
}

/// Whether a text is a UUID with its dashes: `123e4567-e89b-12d3-a456-426614174000`.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Nested values in the cells of CSV are JSON.
fn nested(column: &ArrayRef, field: &Field, how: Conversion) -> Result<ArrayRef, ArrowError> {
    let decoded = json_type(field.data_type());
    let mut decoder = arrow_json::ReaderBuilder::new_with_field(Field::new("", decoded, true))
        .with_coerce_primitive(true)
        .with_strict_mode(true)
        .with_batch_size(column.len())
        .build_decoder()?;
    let (names, maps) = (Names::in_type(field.data_type()), Maps::in_type(field.data_type()));
    let mut json = String::new();
    for cell in column.as_string::<i32>() {
        // Two values in a cell would be those of two rows.
        let cell: &RawValue = serde_json::from_str(cell.unwrap_or("null"))
            .map_err(|e| ArrowError::JsonError(at_column(&e)))?;
        let cell = cell.get();
        if let Some(names) = &names {
            names.check(cell).map_err(ArrowError::JsonError)?;
        }
        match &maps {
            Some(maps) => maps.as_pairs(cell, &mut json).map_err(ArrowError::JsonError)?,
            None => json.push_str(cell),
        }
        json.push('\n');
    }
    decoder.decode(json.as_bytes())?;
    match decoder.flush()? {
        Some(batch) if batch.num_rows() == column.len() => convert(batch.column(0), field, how),
        _ => Err(ArrowError::JsonError("not one JSON value in each cell".to_owned())),
    }
}
