//! Reads CSV.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_csv::ReaderBuilder;
use arrow_csv::reader::{Decoder, Format};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::columns::{decoded_as, finish, has_offset};
use super::inference::{
    BATCH_BYTES, TextSchema, batch_rows, both, given_fields, infer_rows, late_value, names,
};
use super::nulls::{self, Convention, Rewritten};
use crate::args::{Convert, Global};
use crate::content::{Content, invalid};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::packed::Packing;
use crate::pieces::Batches;

/// The schema of CSV files: inferred from their beginnings, with the fields of --schema.
pub(crate) fn csv_schema(
    files: Vec<&mut Content>,
    command: &Convert,
    global: &Global,
) -> Result<Option<TextSchema>> {
    if files.is_empty() {
        return Ok(None);
    }
    let given = given_fields(command)?;
    let stated = names(given.as_deref().unwrap_or_default());
    if let (Some(given), true) = (&given, command.text.schema_only) {
        return Ok(Some(TextSchema::new(given.clone(), stated)));
    }
    let max = Some(infer_rows(command)).filter(|rows| *rows < usize::MAX);
    let mut fields: Vec<Field> = Vec::new();
    let mut first = None;
    for file in files {
        let (name, found) = (file.name.clone(), inferred(file, command, max)?);
        warn_other_delimiter(&name, &found, command, global);
        match &first {
            None => {
                fields = found.fields().iter().map(|field| (**field).clone()).collect();
                first = Some(name);
            }
            Some(first) => {
                let old = fields.iter().map(Field::name);
                if !old.eq(found.fields().iter().map(|field| field.name())) {
                    let text = format!("{name}: the columns are others than those of {first}");
                    return Err(Failure::Usage(text));
                }
                for (field, other) in fields.iter_mut().zip(found.fields()) {
                    let both = both(field.data_type(), other.data_type());
                    field.set_data_type(both);
                }
            }
        }
    }
    for field in &mut fields {
        match field.data_type() {
            // Nothing was seen: whatever comes later fits.
            DataType::Null => field.set_data_type(DataType::Utf8),
            // Fractions of seconds may come later.
            other => field.set_data_type(in_microseconds(other)),
        }
    }
    set_given(&mut fields, given.unwrap_or_default())?;
    Ok(Some(TextSchema::new(fields, stated)))
}

/// Sets the fields of --schema: where columns have one name, in their order.
fn set_given(fields: &mut [Field], given: Vec<Field>) -> Result<()> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, field) in fields.iter().enumerate().rev() {
        places.entry(field.name().clone()).or_default().push(i);
    }
    let names: Vec<String> = given.iter().map(|field| field.name().clone()).collect();
    for given in given {
        let name = given.name();
        let Some(left) = places.get_mut(name) else {
            return Err(Failure::Usage(format!("--schema: no column {name}")));
        };
        match left.pop().and_then(|i| fields.get_mut(i)) {
            Some(field) => *field = given,
            None => {
                let text = format!("--schema: {name} is there more often than among the columns");
                return Err(Failure::Usage(text));
            }
        }
    }
    Ok(Some(TextSchema::new(fields, stated)))
}

/// The schema of a file by its first `max` records.
fn inferred(file: &mut Content, command: &Convert, max: Option<usize>) -> Result<Schema> {
    let (name, max_bytes) = (file.name.clone(), file.max_record_bytes);
    let format = format_of(&name, command);
    let convention = convention(&name, command, Vec::new(), String::new(), max_bytes);
    let found = file.head(|bytes| format.infer_schema(rewritten(bytes, &convention), max))?;
    let (found, _) = found.map_err(|e| csv_error(&name, e))?;
    let found =
        file.head(|bytes| zones(&found, rewritten(bytes, &convention), max_bytes, &format, max))?;
    let found = found.map_err(|e| csv_error(&name, e))?;
    match found.fields().is_empty() {
        true => Err(Failure::content(&name, None, "no header, and no rows")),
        false => Ok(found),
    }
}

fn delimiter(name: &str, command: &Convert) -> u8 {
    let tsv = Packing::of_name(name).1.to_ascii_lowercase().ends_with(".tsv");
    command.text.delimiter.unwrap_or(if tsv { b'\t' } else { b',' })
}

fn format_of(name: &str, command: &Convert) -> Format {
    Format::default().with_header(!command.text.no_header).with_delimiter(delimiter(name, command))
}

/// Warns if the one column of a file looks like several with another delimiter.
fn warn_other_delimiter(name: &str, found: &Schema, command: &Convert, global: &Global) {
    let [field] = &found.fields()[..] else { return };
    let other = [(';', "';'"), ('\t', "tab"), ('|', "'|'"), (',', "','")];
    let other = other.into_iter().find(|(delimiter, _)| field.name().contains(*delimiter));
    if let (Some((_, flag)), None, false) = (other, command.text.delimiter, global.quiet) {
        let (name, header) = (escape::escape(name), escape::escape(field.name()));
        eprintln!("marq: note: {name} has one column, {header}; is it --delimiter {flag}?");
    }
}

/// The text of null in a file whose columns hold texts or not.
fn convention(
    name: &str,
    command: &Convert,
    texts: Vec<bool>,
    mark: String,
    max_record_bytes: u64,
) -> Convention {
    let nulls = match command.text.null.as_slice() {
        [] => vec![Vec::new()],
        given => given.iter().map(|null| null.as_bytes().to_vec()).collect(),
    };
    let (delimiter, header) = (delimiter(name, command), !command.text.no_header);
    Convention { delimiter, header, nulls, texts, mark, max_record_bytes }
}

fn rewritten<R: Read>(bytes: R, convention: &Convention) -> Rewritten<BufReader<R>> {
    Rewritten::new(BufReader::with_capacity(1 << 18, bytes), convention.clone())
}

/// The rows of CSV in batches, which end early where records are long.
struct CsvBatches<R> {
    decoder: Decoder,
    text: Rewritten<R>,
    /// Bytes of records from which on a batch ends early.
    max_bytes: usize,
}

impl<R: BufRead> CsvBatches<R> {
    /// Batches of as many rows as the builder says.
    fn new(builder: ReaderBuilder, text: Rewritten<R>, max_record_bytes: u64) -> Self {
        let max_bytes = usize::try_from(max_record_bytes).unwrap_or(BATCH_BYTES).min(BATCH_BYTES);
        Self { decoder: builder.build_decoder(), text, max_bytes }
    }
}

impl<R: BufRead> Iterator for CsvBatches<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = 0;
        loop {
            let len = match self.text.fill_buf() {
                Ok(buffer) => buffer.len(),
                Err(error) => return Some(Err(error.into())),
            };
            let whole = self.text.before_last_record();
            let ends = bytes >= self.max_bytes && whole > 0;
            let wanted = if ends { whole } else { len };
            let buffer = self.text.fill_buf().ok().and_then(|buffer| buffer.get(..wanted));
            let taken = match self.decoder.decode(buffer.unwrap_or_default()) {
                Ok(taken) => taken,
                Err(error) => return Some(Err(error)),
            };
            self.text.consume(taken);
            bytes += taken;
            if taken == 0 || self.decoder.capacity() == 0 || (ends && taken == wanted) {
                return self.decoder.flush().transpose();
            }
        }
    }
}

/// The schema in which times that all have an offset are instants in UTC, and times that sometimes
/// have one are text.
fn zones(
    found: &Schema,
    file: Rewritten<impl BufRead>,
    max_record_bytes: u64,
    format: &Format,
    max: Option<usize>,
) -> Result<Schema, ArrowError> {
    let fields = found.fields().iter().enumerate();
    let times: Vec<usize> = fields
        .filter(|(_, field)| matches!(field.data_type(), DataType::Timestamp(_, None)))
        .map(|(i, _)| i)
        .collect();
    let mut fields: Vec<Field> = found.fields().iter().map(|f| f.as_ref().clone()).collect();
    if times.is_empty() {
        return Ok(Schema::new(fields));
    }
    let texts: Vec<Field> =
        fields.iter().map(|field| Field::new(field.name(), DataType::Utf8, true)).collect();
    let texts = Schema::new(texts);
    let rows = batch_rows(&texts);
    let builder = ReaderBuilder::new(Arc::new(texts))
        .with_format(format.clone())
        .with_projection(times.clone())
        .with_batch_size(rows);
    let mut left = max.unwrap_or(usize::MAX);
    // For each column, whether there are times without an offset, and with one.
    let mut seen = vec![[false; 2]; times.len()];
    for batch in CsvBatches::new(builder, file, max_record_bytes) {
        let batch = batch?;
        for (column, seen) in batch.columns().iter().zip(&mut seen) {
            for cell in column.as_string::<i32>().iter().take(left).flatten() {
                seen[usize::from(has_offset(cell))] = true;
            }
        }
        left = left.saturating_sub(batch.num_rows());
        if left == 0 {
            break;
        }
    }
    for (i, seen) in times.into_iter().zip(seen) {
        match (seen, found.field(i).data_type()) {
            ([false, true], DataType::Timestamp(unit, _)) => {
                fields[i].set_data_type(DataType::Timestamp(*unit, Some("UTC".into())));
            }
            ([true, true], _) => fields[i].set_data_type(DataType::Utf8),
            _ => {}
        }
    }
    Ok(Schema::new(fields))
}

/// The rows of a CSV file.
pub(crate) fn csv(
    file: Content,
    read: &Arc<AtomicU64>,
    columns: &TextSchema,
    command: &Convert,
) -> Result<Batches> {
    let TextSchema { schema, stated } = columns;
    let (name, max_bytes) = (file.name.clone(), file.max_record_bytes);
    let name = name.as_str();
    let decoded = decoded_as(schema, csv_type);
    let builder = ReaderBuilder::new(decoded)
        .with_format(format_of(name, command))
        .with_batch_size(batch_rows(schema))
        .with_header_validation(!command.text.no_header && command.text.schema_only);
    let mark = nulls::mark();
    let texts = schema.fields().iter().map(|field| is_text(field.data_type())).collect();
    let convention = convention(name, command, texts, mark.clone(), max_bytes);
    let reader = CsvBatches::new(builder, rewritten(file.into_read(read)?, &convention), max_bytes);
    let (name, schema, stated) = (name.to_owned(), schema.clone(), stated.clone());
    let (binary, hint) = (command.values.binary, late_value(command));
    let mut line = 1 + u64::from(!command.text.no_header);
    Ok(Box::new(reader.map(move |batch| {
        let batch = batch.map_err(|e| csv_error(&name, e).with_hint(hint))?;
        let first = line;
        line += batch.num_rows() as u64;
        let batch = unmarked(&batch, &mark)?;
        finish(&batch, &schema, binary, &stated).map_err(|wrong| {
            let line = wrong.row.map(|row| first + row as u64);
            Failure::content(&name, line, wrong.error).with_hint(hint)
        })
    })))
}

/// Whether an empty text is a value of the type.
fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_text(value),
        other => {
            other.is_string() || other.is_binary() && !matches!(other, DataType::FixedSizeBinary(_))
        }
    }
}

/// The batch with empty texts in place of their marks.
fn unmarked(batch: &RecordBatch, mark: &str) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| {
        let Some(texts) = column.as_string_opt::<i32>() else { return column.clone() };
        if !texts.iter().flatten().any(|text| text == mark) {
            return column.clone();
        }
        let unmarked = |text: Option<_>| text.map(|text| if text == mark { "" } else { text });
        Arc::new(texts.iter().map(unmarked).collect::<StringArray>()) as ArrayRef
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)?)
}

/// Arrow names the line somewhere in the text, and counts from 0 if a value is wrong.
fn csv_error(name: &str, error: ArrowError) -> Failure {
    let text = match &error {
        ArrowError::CsvError(text) | ArrowError::ParseError(text) => text.clone(),
        _ => return invalid(name, error),
    };
    let number = |word: &str| {
        let (_, rest) = text.split_once(word)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end)?.parse::<u64>().ok()
    };
    // Inference names the line itself.
    let from = u64::from(!text.contains("unequal lengths"));
    let line = number("at line ").map(|line| line + from).or_else(|| number("for line "));
    let text = text.split(". Row data").next().unwrap_or_default();
    let text = text.split(" at line ").next().unwrap_or_default();
    Failure::content(name, line, text)
}

/// The type in which the CSV decoder reads a cell that becomes this type.
fn csv_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Boolean => data_type.clone(),
        other if other.is_integer() => other.clone(),
        // Of decimals and times the decoder drops digits, of dates it drops the time of day, and it
        // makes infinities of floats.
        _ => DataType::Utf8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_long_records_end_early_and_at_an_end_of_a_record() {
        let max = 1 << 20;
        for end in ["\n", "\r\n", "\r", "\n\n"] {
            for quote in ["", "\""] {
                let record =
                    |i: usize| format!("{i},{quote}{}{quote}{end}", "x".repeat(100_000 + i));
                let text: String = (0..60).map(record).collect();
                let fields = ["n", "t"].map(|name| Field::new(name, DataType::Utf8, true));
                let schema = Arc::new(Schema::new(fields.to_vec()));
                let convention = Convention {
                    delimiter: b',',
                    header: false,
                    nulls: vec![Vec::new()],
                    texts: vec![true; 2],
                    mark: nulls::mark(),
                    max_record_bytes: max,
                };
                let rewritten = rewritten(text.as_bytes(), &convention);
                let builder = ReaderBuilder::new(schema).with_batch_size(8192);
                let batches = CsvBatches::new(builder, rewritten, max);
                let mut rows = 0;
                for batch in batches {
                    let batch = batch.expect("CSV");
                    assert!(batch.num_rows() <= 13, "{} rows, {end:?}", batch.num_rows());
                    let [n, t] = [0, 1].map(|i| batch.column(i).as_string::<i32>());
                    for (n, t) in n.iter().zip(t) {
                        assert_eq!(n, Some(&*rows.to_string()), "{end:?}");
                        assert_eq!(t.map(str::len), Some(100_000 + rows));
                        rows += 1;
                    }
                }
                assert_eq!(rows, 60, "{end:?}");
            }
        }
    }
}
