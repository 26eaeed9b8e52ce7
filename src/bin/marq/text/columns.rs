//! Columns as text decoders give them, and as the schema wants them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

/// What the JSON decoder makes of a value that becomes this: integers stay text, because the
/// decoder silently truncates fractions.
pub(super) fn json_type(data_type: &DataType) -> DataType {
    let inside = |field: &FieldRef| -> FieldRef {
        Arc::new(
            field.as_ref().clone().with_data_type(json_type(field.data_type())).with_nullable(true),
        )
    };
    match data_type {
        other if is_whole(other) => DataType::Utf8,
        DataType::List(item) => DataType::List(inside(item)),
        DataType::LargeList(item) => DataType::LargeList(inside(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect()),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Dictionary(..) => DataType::Utf8,
        other => other.clone(),
    }
}

/// The schema that a decoder works with: nulls are checked later, where the line is known.
pub(super) fn decoded_as(schema: &SchemaRef, of: impl Fn(&DataType) -> DataType) -> SchemaRef {
    let fields =
        schema.fields().iter().map(|field| Field::new(field.name(), of(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What does not fit, and in which row of the batch.
pub(super) struct Wrong {
    pub(super) row: Option<usize>,
    pub(super) error: String,
}

/// Converts the columns to the types of the schema.
pub(super) fn finish(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Wrong> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        let column = convert(column, field).map_err(|error| {
            // The first row that does not fit on its own.
            let row = (0..column.len()).find(|i| convert(&column.slice(*i, 1), field).is_err());
            Wrong { row, error: format!("column {}: {error}", field.name()) }
        })?;
        if !field.is_nullable() && column.null_count() > 0 {
            let row = (0..column.len()).find(|i| column.is_null(*i));
            let error = format!("column {}: null, and it is declared not null", field.name());
            return Err(Wrong { row, error });
        }
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| Wrong { row: None, error: error.to_string() })
}

fn convert(column: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let (from, to) = (column.data_type(), field.data_type());
    if from == to {
        return Ok(column.clone());
    }
    whole_only(column, to)?;
    let options = CastOptions { safe: false, ..CastOptions::default() };
    match to {
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
            if *from == DataType::Utf8 =>
        {
            let cells = column.as_string::<i32>().iter();
            let bytes = cells.map(|cell| cell.map(|cell| bytes(cell, to)).transpose());
            let bytes: BinaryArray = bytes.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
            cast_with_options(&bytes, to, &options)
        }
        DataType::Timestamp(_, None) if *from == DataType::Utf8 => {
            let zoned = column.as_string::<i32>().iter().flatten().find(|text| has_offset(text));
            match zoned {
                Some(text) => Err(ArrowError::ParseError(format!(
                    "{text} has an offset, and the column is of times without one; \
                     timestamp(us, UTC) in --schema makes instants of them"
                ))),
                None => cast_with_options(column, to, &options),
            }
        }
        _ if to.is_nested() && *from == DataType::Utf8 => nested(column, field),
        _ => cast_with_options(column, to, &options),
    }
}

/// Integers, and decimals without a fraction.
fn is_whole(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(data_type, DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0))
}

/// Refuses text with a fraction or an exponent where it becomes a decimal without a fraction, which
/// a cast would round.
fn whole_only(column: &ArrayRef, to: &DataType) -> Result<(), ArrowError> {
    match (column.data_type(), to) {
        (DataType::Utf8, DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0)) => {
            let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
            match column.as_string::<i32>().iter().flatten().find(|text| !is_number(text)) {
                Some(text) => Err(ArrowError::ParseError(format!("{text:?} is no integer"))),
                None => Ok(()),
            }
        }
        (DataType::List(_), DataType::List(item)) => {
            whole_only(column.as_list::<i32>().values(), item.data_type())
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let columns = column.as_struct().columns().iter().zip(fields);
            columns
                .into_iter()
                .try_for_each(|(column, field)| whole_only(column, field.data_type()))
        }
        _ => Ok(()),
    }
}

/// Bytes as `marq` writes them, in hex after `0x`, or as a UUID for 16 of them; other text is its
/// own bytes.
fn bytes(cell: &str, to: &DataType) -> Result<Vec<u8>, ArrowError> {
    if *to == DataType::FixedSizeBinary(16) && is_uuid(cell) {
        return bytes(&format!("0x{}", cell.replace('-', "")), to);
    }
    let Some(hex) = cell.strip_prefix("0x") else { return Ok(cell.as_bytes().to_vec()) };
    let wrong = || ArrowError::ParseError(format!("{cell:?} is not hex"));
    let digits = hex.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        u8::from_str_radix(pair, 16).ok().filter(|_| pair.len() == 2).ok_or_else(wrong)
    });
    digits.collect()
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
fn nested(column: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let decoded = json_type(field.data_type());
    let mut decoder = arrow_json::ReaderBuilder::new_with_field(Field::new("", decoded, true))
        .with_coerce_primitive(true)
        .with_strict_mode(true)
        .with_batch_size(column.len())
        .build_decoder()?;
    for cell in column.as_string::<i32>() {
        decoder.decode(cell.unwrap_or("null").as_bytes())?;
        decoder.decode(b"\n")?;
    }
    match decoder.flush()? {
        Some(batch) if batch.num_rows() == column.len() => convert(batch.column(0), field),
        _ => Err(ArrowError::JsonError("not one JSON value in each cell".to_owned())),
    }
}

/// Whether a date with a time says its offset from UTC, or its time zone.
pub(super) fn has_offset(text: &str) -> bool {
    let time = text.get("2000-01-01T".len()..).unwrap_or_default();
    time.contains(|c: char| matches!(c, '+' | '-') || c.is_ascii_alphabetic())
}
