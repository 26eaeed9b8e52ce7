//! Converts columns as text decoders give them to columns as the schema wants them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::parse::string_to_datetime;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use serde_json::value::RawValue;

use super::decimals::decimals;
use super::maps::Maps;
use super::names::Names;
use crate::args::BinaryForm;
use crate::cells::bytes_of;
use crate::json::at_column;

/// The type in which the JSON decoder reads a value that becomes this type. Numbers and times stay
/// text, because the decoder drops digits and makes infinities in silence; maps are lists.
pub(super) fn json_type(data_type: &DataType) -> DataType {
    let inside = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::new(field.name(), json_type(field.data_type()), true))
    };
    match data_type {
        other if other.is_numeric() || other.is_binary() => DataType::Utf8,
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

/// Converts the columns to the types of the schema.
pub(super) fn finish(
    batch: &RecordBatch,
    schema: &SchemaRef,
    binary: Option<BinaryForm>,
) -> Result<RecordBatch, Misfit> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        let column = convert(column, field, binary).map_err(|error| {
            // The first row that does not fit on its own.
            let row =
                (0..column.len()).find(|i| convert(&column.slice(*i, 1), field, binary).is_err());
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

fn convert(
    column: &ArrayRef,
    field: &Field,
    binary: Option<BinaryForm>,
) -> Result<ArrayRef, ArrowError> {
    let (from, to) = (column.data_type(), field.data_type());
    if from == to {
        return Ok(column.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    match (from, to) {
        // Arrow makes no dictionaries of nested values, and says so.
        (DataType::Utf8, to) if to.is_nested() && !matches!(to, DataType::Dictionary(..)) => {
            nested(column, field, binary)
        }
        (DataType::Utf8, to) if to.is_binary() => {
            let cells = column.as_string::<i32>().iter();
            let bytes = cells.map(|cell| cell.map(|cell| bytes(cell, to, binary)).transpose());
            let bytes: BinaryArray = bytes.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
            cast_with_options(&bytes, to, &options)
        }
        (DataType::Utf8, DataType::Timestamp(unit, zone)) => {
            let texts = column.as_string::<i32>().iter();
            let zone = zone.as_deref();
            let values = texts.map(|text| text.map(|text| instant(text, *unit, zone)).transpose());
            let values: Int64Array = values.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
            cast_with_options(&values, to, &options)
        }
        (DataType::Utf8, to) if to.is_floating() => {
            let floats = cast_with_options(column, to, &options)?;
            are_within_range(column, &floats)?;
            Ok(floats)
        }
        (
            DataType::Utf8,
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale),
        ) => cast_with_options(&decimals(column.as_string(), *scale)?, to, &options),
        (DataType::List(_), DataType::Map(..)) => map(column, to, binary),
        (DataType::List(_), to) => match to {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                let (offsets, values) = items(column);
                let values = convert(&values, item, binary)?;
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
            let columns = columns.map(|(column, field)| convert(column, field, binary));
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
fn map(
    column: &ArrayRef,
    to: &DataType,
    binary: Option<BinaryForm>,
) -> Result<ArrayRef, ArrowError> {
    let wrong = || ArrowError::SchemaError(format!("{to} has no keys and values"));
    let DataType::Map(entries, ordered) = to else { return Err(wrong()) };
    let DataType::Struct(pair) = entries.data_type() else { return Err(wrong()) };
    let (offsets, values) = items(column);
    let found = values.as_struct();
    if found.null_count() > 0 {
        return Err(ArrowError::JsonError("a map has null in the place of an entry".to_owned()));
    }
    let columns = found.columns().iter().zip(pair);
    let columns = columns.map(|(column, field)| convert(column, field, binary));
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

/// A time as text, or as a number of units after 1970-01-01.
fn instant(text: &str, unit: TimeUnit, zone: Option<&str>) -> Result<i64, ArrowError> {
    if let Ok(value) = text.parse() {
        return Ok(value);
    }
    if zone.is_none() && has_offset(text) {
        return Err(ArrowError::ParseError(format!(
            "{text} has an offset, and the column is of times without one; timestamp(us, UTC) in \
             --schema makes instants of them"
        )));
    }
    let time = string_to_datetime(&zone.unwrap_or("UTC").parse::<Tz>()?, text)?;
    let (value, nanos) = match unit {
        TimeUnit::Second => (Some(time.timestamp()), 1_000_000_000),
        TimeUnit::Millisecond => (Some(time.timestamp_millis()), 1_000_000),
        TimeUnit::Microsecond => (Some(time.timestamp_micros()), 1000),
        TimeUnit::Nanosecond => (time.timestamp_nanos_opt(), 1),
    };
    let fits = time.timestamp_subsec_nanos().is_multiple_of(nanos);
    let wrong = |text: String| ArrowError::ParseError(text);
    match value {
        Some(value) if fits => Ok(value),
        Some(_) => Err(wrong(format!(
            "{text} has more digits than {unit:?}s hold; timestamp(ns) in --schema has more"
        ))),
        None => Err(wrong(format!("{text} is beyond the years that nanoseconds hold"))),
    }
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
fn nested(
    column: &ArrayRef,
    field: &Field,
    binary: Option<BinaryForm>,
) -> Result<ArrayRef, ArrowError> {
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
        Some(batch) if batch.num_rows() == column.len() => convert(batch.column(0), field, binary),
        _ => Err(ArrowError::JsonError("not one JSON value in each cell".to_owned())),
    }
}

/// Whether a date with a time has an offset from UTC, or a time zone.
pub(super) fn has_offset(text: &str) -> bool {
    let time = text.get("2000-01-01T".len()..).unwrap_or_default();
    time.contains(|c: char| matches!(c, '+' | '-') || c.is_ascii_alphabetic())
}
