//! The types of CSV and JSON lines: those of `--schema`, and those that are inferred.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use marquetry::engine::rows::bytes_of_nulls;

use crate::args::Convert;
use crate::failure::{Failure, Result};
use crate::types::{self, MAX_NULL_BYTES};

/// The columns of text files.
pub(crate) struct TextSchema {
    pub(crate) schema: SchemaRef,
    /// Columns whose types `--schema` states; those of the others are inferred.
    pub(super) stated: HashSet<String>,
}

impl TextSchema {
    pub(super) fn new(fields: Vec<Field>, stated: HashSet<String>) -> Self {
        Self { schema: Arc::new(Schema::new(fields)), stated }
    }
}

/// The names of fields.
pub(super) fn names(fields: &[Field]) -> HashSet<String> {
    fields.iter().map(|field| field.name().clone()).collect()
}

/// Records that types are inferred from, where nothing else is asked for.
const INFER_ROWS: usize = 10_000;
/// Rows of a batch, at most.
pub(super) const BATCH_ROWS: usize = 8192;
/// Bytes of text from which on a batch ends early, where memory is not scarce.
pub(super) const BATCH_BYTES: usize = 16 << 20;

/// Rows of a batch of these columns: fewer where a null takes much memory, because a text of a few
/// bytes has many of them, and where there are many columns, because Arrow makes the places of all
/// cells before it knows how many rows come.
pub(super) fn batch_rows(schema: &Schema) -> usize {
    let places = schema.flattened_fields().len().saturating_mul(PLACE_BYTES);
    let row_bytes = bytes_of_nulls(&DataType::Struct(schema.fields().clone()), 1);
    (MAX_NULL_BYTES / row_bytes.saturating_add(places).max(1)).clamp(1, BATCH_ROWS)
}

/// Bytes that Arrow takes for a cell, its value not counted.
const PLACE_BYTES: usize = 16;

/// The type that inference returns for values of both types.
pub(super) fn both(a: &DataType, b: &DataType) -> DataType {
    use DataType::{Date32, Float64, Int64, Null, Timestamp, Utf8};
    match (a, b) {
        _ if a == b => a.clone(),
        (Null, other) | (other, Null) => other.clone(),
        (Int64, Float64) | (Float64, Int64) => Float64,
        (Date32, Timestamp(_, None)) => b.clone(),
        (Timestamp(_, None), Date32) => a.clone(),
        (Timestamp(a, zone), Timestamp(b, other)) if zone == other => {
            Timestamp((*a).max(*b), zone.clone())
        }
        _ => Utf8,
    }
}

/// The fields of `--schema`.
pub(super) fn given_fields(command: &Convert) -> Result<Option<Vec<Field>>> {
    let Some(text) = &command.text.schema else { return Ok(None) };
    let of_file;
    let text = match text.strip_prefix('@') {
        Some(path) => {
            let failed = |e| marquetry::Error::io("reading --schema", e).at_file(path);
            of_file = std::fs::read_to_string(path).map_err(failed)?.replace('\n', " ");
            &of_file
        }
        None => text,
    };
    let fields = types::fields(text).map_err(|e| Failure::Usage(format!("--schema: {e}")))?;
    Ok(Some(fields))
}

/// Records that types are inferred from.
pub(super) fn infer_rows(command: &Convert) -> usize {
    match command.text.infer_rows.unwrap_or(INFER_ROWS) {
        0 => usize::MAX,
        rows => rows,
    }
}

/// Advice for a value that does not fit the type of its column; none, if the type was given.
pub(super) fn late_value(command: &Convert) -> Option<&'static str> {
    let is_inferred = !command.text.schema_only && command.text.infer_rows != Some(0);
    is_inferred.then_some(
        "types are inferred from the first records (10000, or --infer-rows); --infer-rows 0 looks \
         at all, and --schema says them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_large_nulls_have_few_rows() {
        for (data_type, wanted) in [
            (DataType::Int64, BATCH_ROWS),
            (DataType::FixedSizeBinary(1 << 20), 63),
            (DataType::FixedSizeBinary(i32::MAX), 1),
            (DataType::Null, BATCH_ROWS),
        ] {
            let schema = Schema::new(vec![Field::new("a", data_type.clone(), true)]);
            assert_eq!(batch_rows(&schema), wanted, "{data_type}");
        }
    }

    #[test]
    fn batches_of_many_columns_have_few_rows() {
        for (columns, wanted) in [(1, 8192..=8192), (300, 8192..=8192), (200_000, 10..=20)] {
            let field = |i| Field::new(format!("c{i}"), DataType::Int64, true);
            let schema = Schema::new((0..columns).map(field).collect::<Vec<_>>());
            let rows = batch_rows(&schema);
            assert!(wanted.contains(&rows), "{columns} columns: {rows}");
        }
    }
}
