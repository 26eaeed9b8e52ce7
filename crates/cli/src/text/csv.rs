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

use super::columns::{decoded_as, finish, is_taken};
use super::datetimes::has_offset;
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
    match names.iter().find(|name| places.get(*name).is_some_and(|left| !left.is_empty())) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "--schema: several columns are called {name}; name it as often, in their order"
        ))),
    }
}

/// The schema of a file by its first `max` records.
fn inferred(file: &mut Content, command: &Convert, max: Option<usize>) -> Result<Schema> {
    let (name, max_bytes) = (file.name.clone(), file.max_record_bytes);
    let format = format_of(&name, command);
    let convention = convention(&name, command, Vec::new(), String::new(), max_bytes);
    let look = Look { name: &name, format: &format, max };
    let found = match file.head(|bytes| format.infer_schema(rewritten(bytes, &convention), max))? {
        Ok((found, _)) => found,
        Err(error) => {
            // The second look says the line, also after empty lines.
            let names =
                file.head(|bytes| format.infer_schema(rewritten(bytes, &convention), Some(0)))?;
            if let Ok((names, _)) = names {
                let all: Vec<usize> = (0..names.fields().len()).collect();
                file.head(|bytes| look.cells(&names, &all, rewritten(bytes, &convention)))??;
            }
            return Err(inference_error(&name, error));
        }
    };
    let found = file.head(|bytes| look.refined(&found, rewritten(bytes, &convention)))??;
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
    name: String,
    decoder: Decoder,
    text: Rewritten<R>,
    /// Bytes of records from which on a batch ends early.
    max_bytes: usize,
    /// Whether the header is still among the records of `text`.
    header: bool,
    /// Records whose lines were taken from `text`.
    records: usize,
}

/// Rows, whose cells are texts, and the lines that they begin in.
struct CsvRows {
    batch: RecordBatch,
    lines: Vec<u64>,
}

impl<R: BufRead> CsvBatches<R> {
    /// Batches of as many rows as the builder says.
    fn new(name: &str, builder: ReaderBuilder, text: Rewritten<R>) -> Self {
        let Convention { header, max_record_bytes, .. } = text.convention();
        let max_bytes = usize::try_from(*max_record_bytes).unwrap_or(BATCH_BYTES).min(BATCH_BYTES);
        let (decoder, header) = (builder.build_decoder(), *header);
        let text = text.with_lines();
        Self { name: name.to_owned(), decoder, text, max_bytes, header, records: 0 }
    }

    fn flush(&mut self) -> Result<Option<CsvRows>> {
        let Some(batch) = self.decoder.flush().map_err(|e| self.failure(e))? else {
            return Ok(None);
        };
        if std::mem::take(&mut self.header) {
            self.records += self.text.take_lines(1).len();
        }
        let lines = self.text.take_lines(batch.num_rows());
        self.records += lines.len();
        Ok(Some(CsvRows { batch, lines }))
    }

    /// An error of the decoder, which counts records, the header among them, and calls them lines.
    fn failure(&self, error: ArrowError) -> Failure {
        let ArrowError::CsvError(text) = error else { return invalid(&self.name, error) };
        let Some((before, after)) = text.split_once(" for line ") else {
            return Failure::content(&self.name, None, text);
        };
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = after.strip_suffix(rest).and_then(|number| number.parse::<usize>().ok());
        let record = number.and_then(|number| number.checked_sub(1 + self.records));
        let line = record.map(|record| self.text.line_of(record));
        let rest = rest.replacen(" and field ", " in field ", 1);
        Failure::content(&self.name, line, format!("{before}{rest}"))
    }
}

impl<R: BufRead> Iterator for CsvBatches<R> {
    type Item = Result<CsvRows>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = 0;
        loop {
            let len = match self.text.fill_buf() {
                Ok(buffer) => buffer.len(),
                Err(error) => return Some(Err(invalid(&self.name, error.into()))),
            };
            let whole = self.text.before_last_record();
            let ends = bytes >= self.max_bytes && whole > 0;
            let wanted = if ends { whole } else { len };
            let buffer = self.text.fill_buf().ok().and_then(|buffer| buffer.get(..wanted));
            let taken = match self.decoder.decode(buffer.unwrap_or_default()) {
                Ok(taken) => taken,
                Err(error) => return Some(Err(self.failure(error))),
            };
            self.text.consume(taken);
            bytes += taken;
            if taken == 0 || self.decoder.capacity() == 0 || (ends && taken == wanted) {
                return self.flush().transpose();
            }
        }
    }
}

/// A second look at the records that types are inferred from.
struct Look<'a> {
    name: &'a str,
    format: &'a Format,
    max: Option<usize>,
}

/// The cells of a column, in the type that was found at first.
#[derive(Clone, Copy, Default)]
struct Cells {
    /// Whether there are times without an offset, and with one.
    local: bool,
    instants: bool,
    /// Whether the type would change or refuse one.
    others: bool,
}

impl Look<'_> {
    /// The schema in which times that all have an offset are instants in UTC, and columns are text
    /// where times sometimes have one, or numbers begin with zeros, or no value of the type is what
    /// the text says.
    fn refined(&self, found: &Schema, file: Rewritten<impl BufRead>) -> Result<Schema> {
        let fields = found.fields().iter().enumerate();
        let may_change = |data_type: &DataType| {
            use DataType::{Date32, Float64, Int64, Timestamp};
            matches!(data_type, Int64 | Float64 | Date32 | Timestamp(..))
        };
        let columns: Vec<usize> =
            fields.filter(|(_, field)| may_change(field.data_type())).map(|(i, _)| i).collect();
        let mut fields: Vec<Field> = found.fields().iter().map(|f| f.as_ref().clone()).collect();
        if columns.is_empty() {
            return Ok(Schema::new(fields));
        }
        for (i, cells) in columns.iter().zip(self.cells(found, &columns, file)?) {
            let Some(field) = fields.get_mut(*i) else { continue };
            match (cells, field.data_type()) {
                (Cells { others: true, .. } | Cells { local: true, instants: true, .. }, _) => {
                    field.set_data_type(DataType::Utf8);
                }
                (Cells { instants: true, .. }, DataType::Timestamp(unit, _)) => {
                    let unit = *unit;
                    field.set_data_type(DataType::Timestamp(unit, Some("UTC".into())));
                }
                _ => {}
            }
        }
        Ok(Schema::new(fields))
    }

    /// Looks at the cells of these columns.
    ///
    /// # Errors
    /// If a record is malformed.
    fn cells(
        &self,
        found: &Schema,
        columns: &[usize],
        file: Rewritten<impl BufRead>,
    ) -> Result<Vec<Cells>> {
        let texts =
            found.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
        let texts = Schema::new(texts.collect::<Vec<_>>());
        // No more than are looked at, because those of a pipe are kept.
        let rows = batch_rows(&texts);
        let rows = self.max.map_or(rows, |max| max.div_ceil(max.div_ceil(rows).max(1)).max(1));
        let builder = ReaderBuilder::new(Arc::new(texts))
            .with_format(self.format.clone())
            .with_projection(columns.to_vec())
            .with_batch_size(rows);
        let mut left = self.max.unwrap_or(usize::MAX);
        let mut seen = vec![Cells::default(); columns.len()];
        for rows in CsvBatches::new(self.name, builder, file) {
            let batch = rows?.batch;
            for ((i, column), seen) in columns.iter().zip(batch.columns()).zip(&mut seen) {
                let data_type = in_microseconds(found.field(*i).data_type());
                let is_time = matches!(data_type, DataType::Timestamp(..));
                for cell in column.as_string::<i32>().iter().take(left).flatten() {
                    let has_offset = is_time && has_offset(cell);
                    seen.local |= is_time && !has_offset;
                    seen.instants |= has_offset;
                    seen.others |= !is_taken(cell, &data_type);
                }
            }
            left = left.saturating_sub(batch.num_rows());
            if left == 0 {
                break;
            }
        }
        Ok(seen)
    }
}

/// A type of times has microseconds at least.
fn in_microseconds(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        other => other.clone(),
    }
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
    // Texts, because of decimals and times the decoder drops digits, of dates it drops the time of
    // day, it makes infinities of floats, and does not say the line of a value that is wrong.
    let builder = ReaderBuilder::new(decoded_as(schema, |_| DataType::Utf8))
        .with_format(format_of(&name, command))
        .with_batch_size(batch_rows(schema))
        .with_header_validation(!command.text.no_header && command.text.schema_only);
    let mark = nulls::mark();
    let texts = schema.fields().iter().map(|field| is_text(field.data_type())).collect();
    let convention = convention(&name, command, texts, mark.clone(), max_bytes);
    let rows = CsvBatches::new(&name, builder, rewritten(file.into_read(read)?, &convention));
    let (schema, stated) = (schema.clone(), stated.clone());
    let (binary, hint) = (command.values.binary, late_value(command));
    Ok(Box::new(rows.map(move |rows| {
        let CsvRows { batch, lines } = rows?;
        let batch = unmarked(&batch, &mark)?;
        finish(&batch, &schema, binary, &stated).map_err(|wrong| {
            let line = wrong.row.and_then(|row| lines.get(row).copied());
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

/// An error of the first look, which may say the line.
fn inference_error(name: &str, error: ArrowError) -> Failure {
    let ArrowError::CsvError(text) = error else { return invalid(name, error) };
    match text.split_once(" at line ") {
        Some((text, line)) => Failure::content(name, line.parse().ok(), text),
        None => Failure::content(name, None, text),
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
                let batches = CsvBatches::new("a", builder, rewritten);
                let mut rows = 0;
                for batch in batches {
                    let CsvRows { batch, lines } = batch.expect("CSV");
                    let step = if end == "\n\n" { 2 } else { 1 };
                    assert_eq!(lines[0], 1 + step * rows as u64, "{end:?}");
                    assert_eq!(lines.len(), batch.num_rows(), "{end:?}");
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
