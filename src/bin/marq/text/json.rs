//! JSON lines as input.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::reader::Decoder;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use marquetry::variant::VariantArray;
use serde_json::Value;

use super::columns::{decoded_as, finish, json_type};
use super::{BATCH_ROWS, both, given_fields, infer_rows};
use crate::args::Convert;
use crate::failure::{Failure, Result};
use crate::integers::Integers;
use crate::source::{Batches, Content, invalid};
use crate::variants::{self, OfLines};

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
    let given = given_fields(command)?;
    if let Some(OfLines::Whole) = variants {
        let taken = given.map(|_| {
            Failure::Usage("--schema is for columns, and --variant all leaves none".to_owned())
        });
        return taken.map_or_else(|| Ok(Some(OfLines::whole_schema())), Err);
    }
    let names = variants.map_or(&[][..], OfLines::names);
    if let Some(twice) = given.iter().flatten().find(|field| names.contains(field.name())) {
        let text = format!("--schema: column {} becomes VARIANT by --variant", twice.name());
        return Err(Failure::Usage(text));
    }
    let variant_fields = names.iter().map(|name| VariantArray::field(name, true));
    if let (Some(given), true) = (&given, command.text.schema_only) {
        let fields: Vec<Field> = given.iter().cloned().chain(variant_fields).collect();
        return Ok(Some(Arc::new(Schema::new(fields))));
    }
    let mut inference = Inference::default();
    for file in files {
        inference.add(file, names, infer_rows(command))?;
    }
    let mut fields = inference.fields(given.unwrap_or_default())?;
    if !names.is_empty() {
        fields.extend(variant_fields);
        fields.sort_by_key(|field| inference.keys.place(field.name()));
    }
    Ok(Some(Arc::new(Schema::new(fields))))
}

/// Infers a schema from the first lines of files.
#[derive(Default)]
struct Inference {
    keys: Keys,
    integers: Integers,
    schema: Option<Schema>,
}

impl Inference {
    /// Looks at the first `max` lines of a file, but not at the fields `without`.
    fn add(&mut self, file: &mut Content, without: &[String], max: usize) -> Result<()> {
        let Self { keys, integers, .. } = self;
        let name = file.name.clone();
        let mut failed = None;
        let found = file.head(|bytes| {
            let mut lines = Lines::new(BufReader::new(bytes));
            let mut next = || -> Result<Option<Value>> {
                let Some((line, text)) = lines.next(&name)? else { return Ok(None) };
                let value = object(text, &name, line)?;
                keys.see(&value);
                integers.see(&value, text, &name, line)?;
                Ok(Some(remove_fields(value, without)))
            };
            let objects = std::iter::from_fn(|| match next() {
                Ok(object) => object.map(Ok),
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
        self.schema = Some(match self.schema.take() {
            None => found,
            Some(schema) => Schema::new(both_fields(schema.fields(), found.fields())),
        });
        Ok(())
    }

    /// The fields that were found, with `given` in place of those of the same names.
    fn fields(&self, given: Vec<Field>) -> Result<Vec<Field>> {
        let fields = self.schema.as_ref().map(|schema| self.keys.sort(schema.fields()));
        let is_given = |name: &str| given.iter().any(|field| field.name() == name);
        let fields = self.integers.apply(&fields.unwrap_or_default(), &is_given)?;
        let mut fields: Vec<Field> = fields.iter().map(|field| (**field).clone()).collect();
        for given in given {
            match fields.iter_mut().find(|field| field.name() == given.name()) {
                Some(field) => *field = given,
                // It may come later.
                None => fields.push(given),
            }
        }
        Ok(fields)
    }
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
fn remove_fields(mut value: Value, names: &[String]) -> Value {
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
    let decoded = schema.fields().iter().filter(|field| {
        variants.is_none_or(|variants| *variants != OfLines::Whole && !variants.has(field.name()))
    });
    let decoded = Arc::new(Schema::new(decoded.cloned().collect::<Fields>()));
    // The value of a key that inference has not seen must not be dropped.
    let is_strict = !command.text.schema_only;
    let decoder =
        decoder(&decoded, is_strict).map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
    let mut batches = JsonBatches {
        name: name.to_owned(),
        lines: Lines::new(BufReader::with_capacity(1 << 18, file)),
        decoder,
        is_strict,
        decoded,
        schema: schema.clone(),
        variants: variants.map(variants::VariantColumns::new),
        text: String::new(),
        numbers: Vec::new(),
    };
    let mut has_ended = false;
    Ok(Box::new(std::iter::from_fn(move || {
        if has_ended {
            return None;
        }
        let batch = batches.next().transpose();
        has_ended = !matches!(batch, Some(Ok(_)));
        batch
    })))
}

/// The decoder of lines into columns of these fields.
fn decoder(schema: &SchemaRef, is_strict: bool) -> Result<Decoder, ArrowError> {
    arrow_json::ReaderBuilder::new(decoded_as(schema, json_type))
        .with_coerce_primitive(true)
        .with_strict_mode(is_strict)
        .with_batch_size(BATCH_ROWS)
        .build_decoder()
}

/// The rows of JSON lines.
struct JsonBatches<R> {
    name: String,
    lines: Lines<R>,
    decoder: Decoder,
    is_strict: bool,
    /// The columns of the decoder.
    decoded: SchemaRef,
    /// All columns: those of the decoder, and those that become VARIANT.
    schema: SchemaRef,
    variants: Option<variants::VariantColumns>,
    /// The lines of a batch, without what becomes VARIANT, and their numbers.
    text: String,
    numbers: Vec<u64>,
}

impl<R: BufRead> JsonBatches<R> {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.read_lines()?;
        if self.numbers.is_empty() {
            return Ok(None);
        }
        let batch = match &self.variants {
            Some(_) if self.decoded.fields().is_empty() => None,
            _ => Some(self.decode()?),
        };
        match &mut self.variants {
            None => Ok(batch),
            Some(variants) => variants.finish(batch.as_ref(), &self.schema).map(Some),
        }
    }

    /// Reads the lines of the next batch.
    fn read_lines(&mut self) -> Result<()> {
        self.text.clear();
        self.numbers.clear();
        // Nothing is left of a line then.
        let has_only_variants =
            self.variants.is_some() && self.decoded.fields().is_empty() && self.is_strict;
        let mut bytes = 0;
        while self.numbers.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some((number, line)) = self.lines.next(&self.name)? else { break };
            bytes += line.len();
            match &mut self.variants {
                None => self.text.push_str(line),
                Some(variants) => variants
                    .take(line, &mut self.text)
                    .map_err(|wrong| Failure::content(&self.name, Some(number), wrong))?,
            }
            self.text.push('\n');
            self.numbers.push(number);
            if has_only_variants && !matches!(self.text.trim_ascii_end(), "" | "{}") {
                return Err(self.wrong_line(&[number], None));
            }
            if has_only_variants {
                self.text.clear();
            }
        }
        Ok(())
    }

    fn decode(&mut self) -> Result<RecordBatch> {
        let decoded = self.decoder.decode(self.text.as_bytes());
        let batch = match decoded.and_then(|_| self.decoder.flush()) {
            Ok(Some(batch)) if batch.num_rows() == self.numbers.len() => batch,
            other => return Err(self.wrong_line(&self.numbers, other.err())),
        };
        finish(&batch, &self.decoded).map_err(|wrong| {
            let line = wrong.row.and_then(|row| self.numbers.get(row)).copied();
            Failure::content(&self.name, line, wrong.error)
        })
    }

    /// Finds the line that cannot be decoded by decoding each of them alone.
    fn wrong_line(&self, numbers: &[u64], error: Option<ArrowError>) -> Failure {
        for (line, number) in self.text.lines().zip(numbers) {
            let mut alone = match decoder(&self.decoded, self.is_strict) {
                Ok(alone) => alone,
                Err(error) => return invalid(&self.name, error),
            };
            let wrong = match alone.decode(line.as_bytes()).and_then(|_| alone.flush()) {
                Ok(Some(batch)) if batch.num_rows() == 1 => continue,
                Ok(_) => "not one object".to_owned(),
                Err(ArrowError::JsonError(text)) => text,
                Err(error) => error.to_string(),
            };
            return Failure::content(&self.name, Some(*number), wrong);
        }
        let text = error.map_or_else(|| "not one object a line".to_owned(), |e| e.to_string());
        Failure::content(&self.name, numbers.first().copied(), text)
    }
}

/// Bytes of JSON from which on a batch ends early.
const BATCH_BYTES: usize = 16 << 20;

/// The longest line of JSON.
const LINE_BYTES: u64 = 1 << 30;
