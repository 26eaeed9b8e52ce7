//! The types of CSV and JSON lines: those of `--schema`, and those that are inferred.

use arrow_schema::{DataType, Field};

use crate::args::Convert;
use crate::failure::{Failure, Result};
use crate::types;

/// Records that types are inferred from, where nothing else is asked for.
const INFER_ROWS: usize = 10_000;
/// Rows of a batch.
pub(super) const BATCH_ROWS: usize = 8192;
/// Bytes of text from which on a batch ends early, where memory is not scarce.
pub(super) const BATCH_BYTES: usize = 16 << 20;

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
