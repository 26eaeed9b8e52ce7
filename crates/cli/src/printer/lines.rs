//! Writes the rows of a batch as lines of CSV or JSON, in one piece of memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use marquetry::Error;

use super::csv::CsvForm;
use crate::args::Format;
use crate::cells::{Forms, Values, ValuesOf};
use crate::failure::{Failure, Result};

/// How rows become text: the same for all batches of a schema.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pub(super) format: Format,
    pub(super) csv: Arc<CsvForm>,
    pub(super) forms: Arc<Forms>,
    /// The columns with the names that are shown.
    pub(super) schema: SchemaRef,
}

impl Lines {
    /// Appends the rows of a batch. `rows` is the number of rows before them.
    ///
    /// # Errors
    /// If a value has no text.
    pub(super) fn write(&self, batch: &RecordBatch, rows: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut values = ValuesOf::new(&self.forms);
        let columns = batch.columns().iter().zip(self.schema.fields()).map(|(column, field)| {
            values.column(column, field).map_err(|e| wrong(field.name(), rows, e))
        });
        let columns: Vec<Values<'_>> = columns.collect::<Result<_>>()?;
        let at = |column: usize, row: usize, error: ArrowError| {
            wrong(self.schema.field(column).name(), rows + row as u64, error)
        };
        match self.format {
            Format::Csv => {
                for row in 0..batch.num_rows() {
                    self.csv_line(&columns, row, out).map_err(|(i, e)| at(i, row, e))?;
                }
            }
            _ => {
                let names = self.names();
                for row in 0..batch.num_rows() {
                    self.open_object(rows + row as u64, out);
                    object(&columns, &names, row, out).map_err(|(i, e)| at(i, row, e))?;
                    out.extend_from_slice(if self.format == Format::Json { b"" } else { b"\n" });
                }
            }
        }
        Ok(())
    }

    /// The text before each value, with the name of its column.
    fn names(&self) -> Vec<Vec<u8>> {
        let fields = self.schema.fields().iter().enumerate();
        let name = |(i, field): (usize, &arrow_schema::FieldRef)| {
            let name = serde_json::Value::from(field.name().as_str()).to_string();
            format!("{}{name}:", if i == 0 { '{' } else { ',' }).into_bytes()
        };
        fields.map(name).collect()
    }

    /// JSON objects are in one list, JSON lines are not.
    fn open_object(&self, row: u64, out: &mut Vec<u8>) {
        if self.format == Format::Json {
            out.extend_from_slice(if row == 0 { b"[\n" } else { b",\n" });
        }
    }

    fn csv_line(
        &self,
        columns: &[Values<'_>],
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), (usize, ArrowError)> {
        let alone = Some(self.schema.fields()).filter(|fields| fields.len() == 1);
        let alone = alone.and_then(|fields| fields.first());
        let is_alone = alone.is_some();
        for (i, values) in columns.iter().enumerate() {
            if i > 0 {
                self.csv.delimit(out);
            }
            let begin = out.len();
            let is_value = values.cell(row, out).map_err(|e| (i, e))?;
            match is_value {
                true if is_alone || values.may_need_quotes() => {
                    self.csv.end_cell(begin, is_alone, out);
                }
                true if self.csv.is_special => self.csv.end_cell(begin, false, out),
                true => {}
                // An empty line is null only to readers that count it as one; empty quotes are null
                // where no text can be meant.
                false
                    if self.csv.null().is_empty()
                        && alone.is_some_and(|field| is_never_text(field.data_type())) =>
                {
                    out.extend_from_slice(b"\"\"");
                }
                false => out.extend_from_slice(self.csv.null().as_bytes()),
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

/// Whether readers of CSV find the type of the values, so that an empty text is none of them.
fn is_never_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_never_text(value),
        DataType::RunEndEncoded(_, values) => is_never_text(values.data_type()),
        DataType::Boolean | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => true,
        other => other.is_numeric(),
    }
}

fn object(
    columns: &[Values<'_>],
    names: &[Vec<u8>],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), (usize, ArrowError)> {
    for (i, (values, name)) in columns.iter().zip(names).enumerate() {
        out.extend_from_slice(name);
        values.json(row, out).map_err(|e| (i, e))?;
    }
    out.extend_from_slice(if columns.is_empty() { b"{}" } else { b"}" });
    Ok(())
}

/// A value that has no text, or is wrong in the file.
pub(super) fn wrong(column: &str, row: u64, error: ArrowError) -> Failure {
    let error = match error {
        ArrowError::ExternalError(_) => return Failure::File(Error::from(error).at_column(column)),
        error => error,
    };
    let text = format!("row {row} of the output cannot be written as text: {error}");
    Failure::File(Error::unsupported("value without a text", text).at_column(column))
}
