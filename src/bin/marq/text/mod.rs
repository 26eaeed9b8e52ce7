//! CSV and JSON lines as inputs: the schema, inferred and said, and the rows.

mod nulls;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_csv::reader::Format;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use marquetry::variant::VariantArray;
use serde_json::Value;

use crate::args::Convert;
use crate::failure::{Failure, Result};
use crate::integers::Integers;
use crate::source::{Batches, Content, invalid};
use crate::types;
use crate::variants::{self, OfLines};
use nulls::{Convention, Rewritten};

/// Records that types are inferred from, where nothing else is asked for.
const INFER_ROWS: usize = 10_000;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Bytes of JSON from which on a batch ends early.
const BATCH_BYTES: usize = 16 << 20;
/// The longest line of JSON.
const LINE_BYTES: u64 = 1 << 30;

/// The schema of CSV files: what all of them look like at their beginnings, and what --schema says.
pub(crate) fn csv_schema(files: Vec<&mut Content>, command: &Convert) -> Result<Option<SchemaRef>> {
    if files.is_empty() {
        return Ok(None);
    }
    let said = said(command)?;
    if let (Some(said), true) = (&said, command.text.schema_only) {
        return Ok(Some(Arc::new(Schema::new(said.clone()))));
    }
    let max = Some(infer_rows(command)).filter(|rows| *rows < usize::MAX);
    let mut fields: Vec<Field> = Vec::new();
    let mut first = None;
    for file in files {
        let name = file.name.clone();
        let format = format_of(&name, command);
        let convention = convention(&name, command, Vec::new(), String::new());
        let found = file.head(|bytes| format.infer_schema(rewritten(bytes, &convention), max))?;
        let (found, _) = found.map_err(|e| csv_error(&name, e))?;
        let found =
            file.head(|bytes| zones(&found, rewritten(bytes, &convention), &format, max))?;
        let found = found.map_err(|e| csv_error(&name, e))?;
        if found.fields().is_empty() {
            return Err(Failure::content(&name, None, "no header, and no rows"));
        }
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
            DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
                field.set_data_type(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
            }
            _ => {}
        }
    }
    for said in said.unwrap_or_default() {
        match fields.iter_mut().find(|field| field.name() == said.name()) {
            Some(field) => *field = said,
            None => {
                return Err(Failure::Usage(format!("--schema: no column {}", said.name())));
            }
        }
    }
    Ok(Some(Arc::new(Schema::new(fields))))
}

/// The type that holds the values of both, as inference would have had it.
fn both(a: &DataType, b: &DataType) -> DataType {
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

fn said(command: &Convert) -> Result<Option<Vec<Field>>> {
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
fn infer_rows(command: &Convert) -> usize {
    match command.text.infer_rows.unwrap_or(INFER_ROWS) {
        0 => usize::MAX,
        rows => rows,
    }
}

fn delimiter(name: &str, command: &Convert) -> u8 {
    let tsv = name.to_ascii_lowercase().ends_with(".tsv");
    command.text.delimiter.unwrap_or(if tsv { b'\t' } else { b',' })
}

fn format_of(name: &str, command: &Convert) -> Format {
    Format::default().with_header(!command.text.no_header).with_delimiter(delimiter(name, command))
}

/// What is null in a file whose columns hold texts or not.
fn convention(name: &str, command: &Convert, texts: Vec<bool>, mark: String) -> Convention {
    let nulls = match command.text.null.as_slice() {
        [] => vec![Vec::new()],
        said => said.iter().map(|null| null.as_bytes().to_vec()).collect(),
    };
    let (delimiter, header) = (delimiter(name, command), !command.text.no_header);
    Convention { delimiter, header, nulls, texts, mark }
}

fn rewritten<R: Read>(bytes: R, convention: &Convention) -> Rewritten<BufReader<R>> {
    Rewritten::new(BufReader::new(bytes), convention.clone())
}

/// The schema with times that all have an offset as instants in UTC, and times of which some have
/// one as text.
fn zones(
    found: &Schema,
    file: impl BufRead,
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
    let reader = arrow_csv::ReaderBuilder::new(Arc::new(Schema::new(texts)))
        .with_format(format.clone())
        .with_projection(times.clone())
        .with_batch_size(BATCH_ROWS)
        .build_buffered(file)?;
    let mut left = max.unwrap_or(usize::MAX);
    // For each column, whether there are times without an offset, and with one.
    let mut seen = vec![[false; 2]; times.len()];
    for batch in reader {
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

/// Whether a date with a time says its offset from UTC, or its time zone.
fn has_offset(text: &str) -> bool {
    let time = text.get("2000-01-01T".len()..).unwrap_or_default();
    time.contains(|c: char| matches!(c, '+' | '-') || c.is_ascii_alphabetic())
}

/// The rows of a CSV file.
pub(crate) fn csv(
    name: &str,
    file: Box<dyn Read>,
    schema: &SchemaRef,
    command: &Convert,
) -> Result<Batches> {
    let decoded = decoded_as(schema, csv_type);
    let builder = arrow_csv::ReaderBuilder::new(decoded)
        .with_format(format_of(name, command))
        .with_header_validation(!command.text.no_header && command.text.schema_only)
        .with_batch_size(BATCH_ROWS);
    let mark = nulls::mark();
    let texts = schema.fields().iter().map(|field| is_text(field.data_type())).collect();
    let convention = convention(name, command, texts, mark.clone());
    let reader = builder
        .build_buffered(Rewritten::new(BufReader::with_capacity(1 << 18, file), convention))
        .map_err(|e| invalid(name, e))?;
    let (name, schema) = (name.to_owned(), schema.clone());
    let mut line = 1 + u64::from(!command.text.no_header);
    Ok(Box::new(reader.map(move |batch| {
        let batch = batch.map_err(|e| csv_error(&name, e))?;
        let first = line;
        line += batch.num_rows() as u64;
        let batch = unmarked(&batch, &mark)?;
        finish(&batch, &schema).map_err(|wrong| {
            Failure::content(&name, wrong.row.map(|row| first + row as u64), wrong.error)
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

/// Arrow says the line somewhere in the text, and counts from 0 where a value is wrong.
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
    // Inference says the line itself.
    let from = u64::from(!text.contains("unequal lengths"));
    let line = number("at line ").map(|line| line + from).or_else(|| number("for line "));
    let text = text.split(". Row data").next().unwrap_or_default();
    let text = text.split(" at line ").next().unwrap_or_default();
    Failure::content(name, line, text)
}

/// What the CSV decoder makes of a cell that becomes this.
fn csv_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Boolean | DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            data_type.clone()
        }
        DataType::Date32 | DataType::Utf8 => data_type.clone(),
        other if other.is_integer() => other.clone(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => data_type.clone(),
        _ => DataType::Utf8,
    }
}

/// The schema of JSON lines files: what all of them look like at their beginnings, and what
/// --schema says.
pub(crate) fn json_schema(
    files: Vec<&mut Content>,
    command: &Convert,
    variants: Option<&OfLines>,
) -> Result<Option<SchemaRef>> {
    if files.is_empty() {
        return Ok(None);
    }
    let said = said(command)?;
    if let Some(OfLines::Whole) = variants {
        let taken = said.map(|_| {
            Failure::Usage("--schema is for columns, and --variant all leaves none".to_owned())
        });
        return taken.map_or_else(|| Ok(Some(OfLines::whole_schema())), Err);
    }
    let names = variants.map_or(&[][..], OfLines::names);
    if let Some(twice) = said.iter().flatten().find(|field| names.contains(field.name())) {
        let text = format!("--schema: column {} becomes VARIANT by --variant", twice.name());
        return Err(Failure::Usage(text));
    }
    let variant_fields = names.iter().map(|name| VariantArray::field(name, true));
    if let (Some(said), true) = (&said, command.text.schema_only) {
        let fields: Vec<Field> = said.iter().cloned().chain(variant_fields).collect();
        return Ok(Some(Arc::new(Schema::new(fields))));
    }
    let max = infer_rows(command);
    let mut keys = Keys::default();
    let mut large = Integers::default();
    let mut merged: Option<Schema> = None;
    for file in files {
        let name = file.name.clone();
        let mut failed = None;
        let found = file.head(|bytes| {
            let mut lines = Lines::new(BufReader::new(bytes));
            let objects = std::iter::from_fn(|| match lines.next(&name) {
                Ok(None) => None,
                Ok(Some((line, text))) => {
                    let object = object(text, &name, line).and_then(|object| {
                        keys.see(&object);
                        large.see(&object, text, &name, line).map(|()| object)
                    });
                    match object {
                        Ok(object) => Some(Ok(without(object, names))),
                        Err(error) => {
                            failed = Some(error);
                            None
                        }
                    }
                }
                Err(error) => {
                    failed = Some(error);
                    None
                }
            });
            arrow_json::reader::infer_json_schema_from_iterator(objects.take(max))
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let found = found.map_err(|e| invalid(&name, e))?;
        merged = Some(match merged {
            None => found,
            Some(schema) => Schema::new(both_fields(schema.fields(), found.fields())),
        });
    }
    let fields = merged.map(|schema| keys.sort(schema.fields())).unwrap_or_default();
    let said = said.unwrap_or_default();
    let is_said = |name: &str| said.iter().any(|field| field.name() == name);
    let fields = large.apply(&fields, &is_said)?;
    let mut fields: Vec<Field> = fields.iter().map(|field| (**field).clone()).collect();
    for said in said {
        match fields.iter_mut().find(|field| field.name() == said.name()) {
            Some(field) => *field = said,
            // It may come later.
            None => fields.push(said),
        }
    }
    if !names.is_empty() {
        fields.extend(variant_fields);
        fields.sort_by_key(|field| keys.place(field.name()));
    }
    Ok(Some(Arc::new(Schema::new(fields))))
}

/// The object of a line.
fn object(text: &str, name: &str, line: u64) -> Result<Value> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(Failure::content(name, Some(line), "not an object")),
        Err(error) => Err(Failure::content(name, Some(line), at_column(&error))),
    }
}

/// What is wrong with a line, and where in it: the number of the line is another one.
pub(crate) fn at_column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("{text} at column {}", error.column())
}

/// The object without fields of these names.
fn without(mut value: Value, names: &[String]) -> Value {
    if let (Value::Object(object), false) = (&mut value, names.is_empty()) {
        object.retain(|name, _| !names.contains(name));
    }
    value
}

fn both_fields(a: &Fields, b: &Fields) -> Fields {
    let mut out: Vec<FieldRef> = a.iter().cloned().collect();
    for field in b {
        match out.iter_mut().find(|old| old.name() == field.name()) {
            Some(old) => *old = both_field(old, field),
            None => out.push(field.clone()),
        }
    }
    out.into()
}

fn both_field(a: &FieldRef, b: &FieldRef) -> FieldRef {
    let data_type = match (a.data_type(), b.data_type()) {
        (DataType::Struct(a), DataType::Struct(b)) => DataType::Struct(both_fields(a, b)),
        (DataType::List(a), DataType::List(b)) => DataType::List(both_field(a, b)),
        (a, b) => both(a, b),
    };
    Arc::new(Field::new(a.name(), data_type, true))
}

/// The keys of objects in the order in which they were first seen, which inference forgets.
#[derive(Default)]
struct Keys(HashMap<String, (usize, Self)>);

impl Keys {
    fn see(&mut self, value: &Value) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let next = self.0.len();
                    if !self.0.contains_key(key) {
                        self.0.insert(key.clone(), (next, Self::default()));
                    }
                    if let Some((_, below)) = self.0.get_mut(key) {
                        below.see(value);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.see(item)),
            _ => {}
        }
    }

    /// Where a key was first seen.
    fn place(&self, name: &str) -> usize {
        self.0.get(name).map_or(usize::MAX, |(i, _)| *i)
    }

    fn sort(&self, fields: &Fields) -> Fields {
        let place = |field: &FieldRef| self.place(field.name());
        let none = Self::default();
        let mut out: Vec<FieldRef> = fields
            .iter()
            .map(|field| self.0.get(field.name()).map_or(&none, |(_, keys)| keys).field(field))
            .collect();
        out.sort_by_key(place);
        out.into()
    }

    fn field(&self, field: &FieldRef) -> FieldRef {
        let data_type = match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(self.sort(fields)),
            DataType::List(item) => DataType::List(self.field(item)),
            other => other.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
}

/// The lines of a file that are not empty, with their numbers.
struct Lines<R> {
    inner: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(inner: R) -> Self {
        Self { inner, line: Vec::new(), number: 0 }
    }

    fn next(&mut self, name: &str) -> Result<Option<(u64, &str)>> {
        loop {
            self.line.clear();
            let read = (&mut self.inner).take(LINE_BYTES).read_until(b'\n', &mut self.line);
            let read =
                read.map_err(|e| marquetry::Error::io("reading", e).at_file(name.to_owned()))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 == LINE_BYTES {
                return Err(Failure::content(name, Some(self.number), "a line of 1 GiB"));
            }
            if self.number == 1 && self.line.starts_with("\u{feff}".as_bytes()) {
                self.line.drain(..3);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        match std::str::from_utf8(&self.line) {
            Ok(text) => Ok(Some((self.number, text.trim()))),
            Err(error) => Err(Failure::content(name, Some(self.number), error)),
        }
    }
}

/// The rows of a JSON lines file.
pub(crate) fn json(
    name: &str,
    file: Box<dyn Read>,
    schema: &SchemaRef,
    command: &Convert,
    variants: Option<&OfLines>,
) -> Result<Batches> {
    let whole = schema;
    let others = schema.fields().iter().filter(|field| {
        variants.is_none_or(|variants| *variants != OfLines::Whole && !variants.has(field.name()))
    });
    let schema: &SchemaRef = &Arc::new(Schema::new(others.cloned().collect::<Fields>()));
    let mut variants = variants.map(variants::Columns::new);
    // A key that inference has not seen is no value to be lost.
    let strict = !command.text.schema_only;
    // Nothing is left of a line then.
    let only_variants = variants.is_some() && schema.fields().is_empty() && strict;
    let builder = {
        let decoded = decoded_as(schema, json_type);
        move || {
            arrow_json::ReaderBuilder::new(decoded.clone())
                .with_coerce_primitive(true)
                .with_strict_mode(strict)
                .with_batch_size(BATCH_ROWS)
                .build_decoder()
        }
    };
    let (name, schema, whole) = (name.to_owned(), schema.clone(), whole.clone());
    let mut decoder = builder().map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
    let mut lines = Lines::new(BufReader::with_capacity(1 << 18, file));
    let mut text = String::new();
    let mut numbers = Vec::new();
    let mut next = move || -> Result<Option<RecordBatch>> {
        text.clear();
        numbers.clear();
        let mut bytes = 0;
        while numbers.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some((number, line)) = lines.next(&name)? else { break };
            bytes += line.len();
            match &mut variants {
                None => text.push_str(line),
                Some(variants) => variants
                    .take(line, &mut text)
                    .map_err(|wrong| Failure::content(&name, Some(number), wrong))?,
            }
            text.push('\n');
            numbers.push(number);
            if only_variants && !matches!(text.trim_ascii_end(), "" | "{}") {
                return Err(wrong_line(&name, &text, &[number], None, &builder));
            }
            if only_variants {
                text.clear();
            }
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        if let (Some(variants), true) = (&mut variants, schema.fields().is_empty()) {
            return variants.finish(None, &whole).map(Some);
        }
        let mut decode = |text: &str| {
            decoder.decode(text.as_bytes())?;
            decoder.flush()
        };
        let batch = match decode(&text) {
            Ok(Some(batch)) if batch.num_rows() == numbers.len() => batch,
            other => {
                let error = other.err();
                return Err(wrong_line(&name, &text, &numbers, error, &builder));
            }
        };
        let batch = finish(&batch, &schema).map_err(|wrong| {
            let line = wrong.row.and_then(|row| numbers.get(row)).copied();
            Failure::content(&name, line, wrong.error)
        })?;
        match &mut variants {
            None => Ok(Some(batch)),
            Some(variants) => variants.finish(Some(&batch), &whole).map(Some),
        }
    };
    let mut ended = false;
    Ok(Box::new(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let batch = next().transpose();
        ended = !matches!(batch, Some(Ok(_)));
        batch
    })))
}

/// Which of the lines of a batch is wrong, and how: each on its own tells.
fn wrong_line(
    name: &str,
    text: &str,
    numbers: &[u64],
    error: Option<ArrowError>,
    builder: &dyn Fn() -> Result<arrow_json::reader::Decoder, ArrowError>,
) -> Failure {
    for (line, number) in text.lines().zip(numbers) {
        let mut alone = match builder() {
            Ok(alone) => alone,
            Err(error) => return invalid(name, error),
        };
        let wrong = match alone.decode(line.as_bytes()).and_then(|_| alone.flush()) {
            Ok(Some(batch)) if batch.num_rows() == 1 => continue,
            Ok(_) => "not one object".to_owned(),
            Err(ArrowError::JsonError(text)) => text,
            Err(error) => error.to_string(),
        };
        return Failure::content(name, Some(*number), wrong);
    }
    let text = error.map_or_else(|| "not one object a line".to_owned(), |e| e.to_string());
    Failure::content(name, numbers.first().copied(), text)
}

/// What the JSON decoder makes of a value that becomes this: integers stay text, because that
/// decoder cuts fractions off without a word.
fn json_type(data_type: &DataType) -> DataType {
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
fn decoded_as(schema: &SchemaRef, of: impl Fn(&DataType) -> DataType) -> SchemaRef {
    let fields =
        schema.fields().iter().map(|field| Field::new(field.name(), of(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What does not fit, and in which row of the batch.
struct Wrong {
    row: Option<usize>,
    error: String,
}

/// Makes the columns what the schema says.
fn finish(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Wrong> {
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
