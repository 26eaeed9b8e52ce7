//! Reads JSON lines.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_array::RecordBatch;
use arrow_json::reader::Decoder;
use arrow_schema::{ArrowError, Field, Fields, Schema, SchemaRef};
use marquetry::variant::VariantArray;

use super::columns::{decoded_as, finish, json_type};
use super::infer::Members;
use super::inference::{
    BATCH_BYTES, TextSchema, batch_rows, given_fields, infer_rows, late_value, names,
};
use super::lines::JsonTexts;
use super::maps::Maps;
use super::names::Names;
use super::place::Place;
use crate::args::{BinaryForm, Convert};
use crate::content::{Content, invalid};
use crate::failure::{Failure, Result};
use crate::pieces::Batches;
use crate::variants::{self, LinesAsVariant};

/// The schema of JSON lines files: inferred from their beginnings, with the
/// fields of --schema.
pub(crate) fn json_schema(
    files: Vec<&mut Content>,
    command: &Convert,
    variants: Option<&LinesAsVariant>,
) -> Result<Option<TextSchema>> {
    if files.is_empty() {
        return Ok(None);
    }
    let given = given_fields(command)?;
    if let Some(LinesAsVariant::Whole) = variants {
        let taken = given.map(|_| {
            Failure::Usage("--schema is for columns, and --variant all leaves none".to_owned())
        });
        let whole =
            || TextSchema { schema: LinesAsVariant::whole_schema(), stated: HashSet::new() };
        return taken.map_or_else(|| Ok(Some(whole())), Err);
    }
    let stated = names(given.as_deref().unwrap_or_default());
    let of_variants = variants.map_or(&[][..], LinesAsVariant::names);
    if let Some(twice) = given.iter().flatten().find(|field| of_variants.contains(field.name())) {
        let text = format!("--schema: column {} becomes VARIANT by --variant", twice.name());
        return Err(Failure::Usage(text));
    }
    let variant_fields = of_variants.iter().map(|name| VariantArray::field(name, true));
    if let (Some(given), true) = (&given, command.text.schema_only) {
        let fields: Vec<Field> = given.iter().cloned().chain(variant_fields).collect();
        return Ok(Some(TextSchema::new(fields, stated)));
    }
    let without = of_variants.iter().chain(&stated).map(String::as_str).collect();
    let mut columns = Members::default();
    let mut left = files.first().map_or(0, |file| file.max_record_bytes * RECORDS_OF_NAMES);
    for file in files {
        look(&mut columns, file, &without, infer_rows(command), &mut left)?;
    }
    let mut given = given.unwrap_or_default();
    let mut fields =
        columns.fields("", &mut |name| match of_variants.iter().any(|known| known == name) {
            true => Some(VariantArray::field(name, true)),
            false => {
                let i = given.iter().position(|field| field.name() == name)?;
                Some(given.remove(i))
            }
        })?;
    // They may come later.
    fields.extend(given);
    let is_missing = |name: &&String| fields.iter().all(|field| field.name() != *name);
    let missing = of_variants.iter().filter(is_missing);
    let missing: Vec<Field> = missing.map(|name| VariantArray::field(name, true)).collect();
    fields.extend(missing);
    Ok(Some(TextSchema::new(fields, stated)))
}

/// Memory for the names that inference sees, in records of the greatest size.
const RECORDS_OF_NAMES: u64 = 4;

/// Looks at the first `max` lines of a file, but not at the fields `without`; names may take as
/// many bytes as are `left`.
fn look(
    columns: &mut Members,
    file: &mut Content,
    without: &HashSet<&str>,
    max: usize,
    left: &mut u64,
) -> Result<()> {
    let name = file.name.clone();
    let shared: Arc<str> = name.as_str().into();
    let max_bytes = file.max_record_bytes;
    file.head(|bytes| {
        let mut lines = JsonTexts::new(BufReader::new(bytes), max_bytes);
        for _ in 0..max {
            let Some((line, text)) = lines.next(&name)? else { break };
            columns.see_line(text, &Place { file: shared.clone(), line }, without, left)?;
        }
        Ok(())
    })?
}

/// The rows of a JSON lines file.
pub(crate) fn json(
    file: Content,
    read: &Arc<AtomicU64>,
    columns: &TextSchema,
    command: &Convert,
    variants: Option<&LinesAsVariant>,
) -> Result<Batches> {
    let TextSchema { schema, stated } = columns;
    let (name, max_bytes) = (file.name.clone(), file.max_record_bytes);
    let decoded = schema.fields().iter().filter(|field| {
        variants.is_none_or(|variants| {
            *variants != LinesAsVariant::Whole && !variants.has(field.name())
        })
    });
    let decoded = Arc::new(Schema::new(decoded.cloned().collect::<Fields>()));
    // The value of a key that inference has not seen must not be dropped.
    let is_strict = !command.text.schema_only;
    let decoder =
        decoder(&decoded, is_strict).map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
    let mut batches = JsonBatches {
        lines: JsonTexts::new(BufReader::with_capacity(1 << 18, file.into_read(read)?), max_bytes),
        name,
        batch_bytes: usize::try_from(max_bytes).unwrap_or(BATCH_BYTES).min(BATCH_BYTES),
        batch_rows: batch_rows(&decoded),
        decoder,
        is_strict,
        names: Names::new(&decoded, stated),
        maps: Maps::new(&decoded),
        binary: command.values.binary,
        hint: late_value(command),
        decoded,
        stated: stated.clone(),
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
        .with_batch_size(batch_rows(schema))
        .build_decoder()
}

/// The rows of JSON lines.
struct JsonBatches<R> {
    name: String,
    lines: JsonTexts<R>,
    /// Bytes of JSON from which on a batch ends early.
    batch_bytes: usize,
    batch_rows: usize,
    decoder: Decoder,
    is_strict: bool,
    /// The names of fields.
    names: Option<Names>,
    /// Where maps are.
    maps: Option<Maps>,
    binary: Option<BinaryForm>,
    /// Advice for a value that does not fit.
    hint: Option<&'static str>,
    /// The columns of the decoder.
    decoded: SchemaRef,
    /// Columns whose types are stated.
    stated: HashSet<String>,
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
        while self.numbers.len() < self.batch_rows && bytes < self.batch_bytes {
            let Some((number, line)) = self.lines.next(&self.name)? else { break };
            bytes += line.len();
            let begin = self.text.len();
            let taken = match (&mut self.variants, &self.maps) {
                (None, None) => {
                    self.text.push_str(line);
                    Ok(())
                }
                (None, Some(maps)) => maps.as_pairs(line, &mut self.text),
                (Some(variants), None) => variants.take(line, &mut self.text),
                (Some(variants), Some(maps)) => {
                    let taken = variants.take(line, &mut self.text);
                    let rest = self.text.split_off(begin);
                    taken.and_then(|()| maps.as_pairs(&rest, &mut self.text))
                }
            };
            let once = || self.names.as_ref().map_or(Ok(()), |names| names.check(line));
            taken
                .and_then(|()| once())
                .map_err(|wrong| Failure::content(&self.name, Some(number), wrong))?;
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
        finish(&batch, &self.decoded, self.binary, &self.stated).map_err(|wrong| {
            let line = wrong.row.and_then(|row| self.numbers.get(row)).copied();
            Failure::content(&self.name, line, wrong.error).with_hint(self.hint)
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
            return Failure::content(&self.name, Some(*number), wrong).with_hint(self.hint);
        }
        let text = error.map_or_else(|| "not one object a line".to_owned(), |e| e.to_string());
        Failure::content(&self.name, numbers.first().copied(), text)
    }
}
