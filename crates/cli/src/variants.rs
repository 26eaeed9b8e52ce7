//! Chooses which fields of JSON lines become VARIANT, how they are shredded, and which part of them
//! is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{FieldRef, Fields, Schema, SchemaRef};
use marquetry::variant::{
    VariantArray, VariantArrayBuilder, VariantInference, VariantPath, VariantShape,
    VariantShredding,
};
use marquetry::{Error, ErrorKind, Reader, WriteOptions};

use crate::args::{Convert, Global, TargetForm};
use crate::failure::{Failure, Result};
use crate::json;
use crate::pieces::{Batches, max_row_bytes, pieces};

/// The column that whole lines become.
const WHOLE: &str = "json";

/// The fields of JSON lines that become VARIANT columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LinesAsVariant {
    /// Each line is one value of one column.
    Whole,
    /// Fields of the lines are columns of this name.
    Fields(Vec<String>),
}

impl LinesAsVariant {
    /// Parses `--variant`; `None` if nothing changes for these inputs.
    ///
    /// # Errors
    /// `Usage` if there is nothing that it could be for.
    pub(crate) fn new(
        command: &Convert,
        reads_lines: bool,
        target: TargetForm,
    ) -> Result<Option<Self>> {
        let flag = match command.variant.as_deref() {
            None => return Ok(None),
            // Which is how text has them in any case.
            Some("json")
                if matches!(target, TargetForm::Json | TargetForm::Jsonl | TargetForm::Csv) =>
            {
                return Ok(None);
            }
            Some(flag) => flag,
        };
        if !reads_lines {
            return Err(Failure::Usage(format!(
                "--variant {flag} is for JSON lines as an input; VARIANT columns of other files \
                 stay what they are, and are JSON in JSON lines and CSV"
            )));
        }
        if flag == "all" {
            return Ok(Some(Self::Whole));
        }
        let names: Vec<String> = flag.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(Failure::Usage(format!(
                "--variant {flag}: names, separated by commas, or all"
            )));
        }
        Ok(Some(Self::Fields(names)))
    }

    /// Whether a field becomes VARIANT.
    pub(crate) fn has(&self, name: &str) -> bool {
        matches!(self, Self::Fields(names) if names.iter().any(|known| known == name))
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Whole => &[],
            Self::Fields(names) => names,
        }
    }

    /// The schema where lines become nothing else.
    pub(crate) fn whole_schema() -> SchemaRef {
        Arc::new(Schema::new(vec![VariantArray::field(WHOLE, false)]))
    }
}

/// The VARIANT columns of a batch of lines.
pub(crate) struct VariantColumns {
    variants: LinesAsVariant,
    builders: Vec<VariantArrayBuilder>,
}

impl VariantColumns {
    pub(crate) fn new(variants: &LinesAsVariant) -> Self {
        let len = variants.names().len().max(1);
        let builders = (0..len).map(|_| VariantArrayBuilder::new()).collect();
        Self { variants: variants.clone(), builders }
    }

    /// Takes a line, and appends its other fields to `rest`.
    ///
    /// # Errors
    /// The fault of the line.
    pub(crate) fn take(&mut self, line: &str, rest: &mut String) -> Result<(), String> {
        let names = match &self.variants {
            LinesAsVariant::Whole => {
                let whole = &mut self.builders[0];
                return whole.append_json(line).map_err(|e| e.message().to_owned());
            }
            LinesAsVariant::Fields(names) => names,
        };
        let mut members = json::members(line).map_err(|e| json::at_column(&e))?;
        for (name, builder) in names.iter().zip(&mut self.builders) {
            let mut found = members.extract_if(.., |(known, _)| known == name);
            match found.next() {
                Some((_, value)) => builder
                    .append_json(value.get())
                    .map_err(|e| format!("column {name}: {}", e.message()))?,
                None => builder.append_null(),
            }
            if found.next().is_some() {
                return Err(format!("column {name}: the line has two fields of this name"));
            }
        }
        json::write_members(members, rest).map_err(|e| e.to_string())
    }

    /// The batch with the columns in their places.
    pub(crate) fn finish(
        &mut self,
        others: Option<&RecordBatch>,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let rows = self.builders.first().map_or(0, VariantArrayBuilder::len);
        let mut made = Vec::new();
        for builder in &mut self.builders {
            made.push(Arc::new(builder.finish()?) as ArrayRef);
        }
        let mut others = others.into_iter().flat_map(RecordBatch::columns);
        let columns = schema.fields().iter().map(|field| match &self.variants {
            LinesAsVariant::Whole => made.first(),
            LinesAsVariant::Fields(names) => {
                match names.iter().position(|name| name == field.name()) {
                    Some(i) => made.get(i),
                    None => others.next(),
                }
            }
        });
        let columns: Vec<ArrayRef> = columns.flatten().cloned().collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }
}

/// Adds the shredding of VARIANT columns that `--shred` asks for.
///
/// # Errors
/// `Usage` if a shape is none, or there is nothing to shred.
pub(crate) fn shredding(
    mut options: WriteOptions,
    flags: &[String],
    schema: &Schema,
) -> Result<WriteOptions> {
    if !flags.is_empty() && !schema.fields().iter().any(|field| VariantArray::is_variant(field)) {
        return Err(Failure::Usage(
            "--shred: there is no VARIANT column; --variant makes them of JSON lines".to_owned(),
        ));
    }
    for flag in flags {
        // A shape has no `=`, and begins with no name where it is an object.
        let (column, how) = match flag.split_once('=') {
            Some((column, how)) if !flag.starts_with(['{', '[']) => (column, how),
            _ => ("*", flag.as_str()),
        };
        let how = match how.trim() {
            "infer" => VariantShredding::Infer(VariantInference::new()),
            "none" => VariantShredding::Shape(VariantShape::any()),
            shape => VariantShredding::Shape(VariantShape::parse(shape)?),
        };
        options = options.with_shredding(column, how);
    }
    Ok(options)
}

/// Looks for invalid values in VARIANT columns whose values are stored as they come.
pub(crate) struct VariantCheck {
    /// Those in which none was found yet.
    columns: Vec<usize>,
    /// Rows that were checked.
    rows: u64,
}

impl VariantCheck {
    pub(crate) fn new(schema: &Schema) -> Self {
        let fields = schema.fields().iter().enumerate();
        let columns = fields.filter(|(_, field)| VariantArray::is_variant(field));
        Self { columns: columns.map(|(column, _)| column).collect(), rows: 0 }
    }

    /// Looks at the next rows; returns a sentence about the first invalid value of each column.
    ///
    /// # Errors
    /// Those that are no fault of a value.
    pub(crate) fn check(&mut self, batch: &RecordBatch) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for column in std::mem::take(&mut self.columns) {
            let schema = batch.schema();
            let name = schema.field(column).name();
            match VariantArray::try_from(batch.column(column)) {
                Ok(array) => match invalid_value(&array)? {
                    None => self.columns.push(column),
                    Some((row, error)) => {
                        let row = self.rows + row;
                        found.push(format!("column {name}, row {row}: {}", error.message()));
                    }
                },
                Err(error) if is_fault(&error) => {
                    found.push(format!("column {name}: {}", error.message()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(found)
    }
}

/// Whether an error is a fault of the file.
fn is_fault(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Malformed(_))
}

/// The first value that is invalid, by its row.
///
/// # Errors
/// Those that are no fault of a value.
fn invalid_value(array: &VariantArray) -> Result<Option<(u64, Error)>> {
    for row in 0..array.len() {
        let checked = array.value(row).and_then(|value| match value {
            Some(value) => value.as_variant().validate(),
            None => Ok(()),
        });
        match checked {
            Ok(()) => {}
            Err(error) if is_fault(&error) => return Ok(Some((row as u64, error))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Shows a part of each VARIANT column in its place.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    path: VariantPath,
    max_row_bytes: u64,
}

impl Part {
    /// Parses `--variant-path`.
    ///
    /// # Errors
    /// `Usage` if the text is no path, or there is no VARIANT column.
    pub(crate) fn new(
        flag: Option<&str>,
        schema: &Schema,
        global: &Global,
    ) -> Result<Option<Self>> {
        let Some(flag) = flag else { return Ok(None) };
        if !schema.fields().iter().any(|field| VariantArray::is_variant(field)) {
            return Err(Failure::Usage("--variant-path: there is no VARIANT column".to_owned()));
        }
        Ok(Some(Self { path: flag.parse()?, max_row_bytes: max_row_bytes(global) }))
    }

    /// The schema of the parts.
    pub(crate) fn schema(&self, schema: &Schema) -> SchemaRef {
        let fields: Fields = schema.fields().iter().map(Self::field).collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    fn field(field: &FieldRef) -> FieldRef {
        if !VariantArray::is_variant(field) {
            return field.clone();
        }
        let field = field.as_ref().clone().with_data_type(VariantArray::unshredded_type());
        Arc::new(field.with_nullable(true))
    }

    /// A reader that extracts the parts, within its memory, and where it gives each column; `None`
    /// if it cannot name all of them, or would give parts of structs as the whole.
    ///
    /// # Errors
    /// Those of the schema.
    pub(crate) fn read_by(&self, reader: &Reader) -> Result<Option<(Reader, Vec<usize>)>> {
        let schema = reader.schema()?;
        let names = || schema.fields().iter().map(|field| field.name());
        if names().collect::<BTreeSet<_>>().len() < schema.fields().len() {
            return Ok(None);
        }
        let (parts, others): (Vec<&FieldRef>, Vec<&FieldRef>) =
            schema.fields().iter().partition(|field| VariantArray::is_variant(field));
        let read = reader.clone().project(others.iter().map(|field| field.name()));
        let Ok(mut read) = read else { return Ok(None) };
        for part in &parts {
            let (name, path) = (part.name(), self.path.clone());
            read = read.variant_get(name, path, VariantArray::unshredded_type(), name);
        }
        let Ok(found) = read.schema() else { return Ok(None) };
        let order = names().map(|name| found.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let is_same = |(field, at): (&FieldRef, &usize)| {
            VariantArray::is_variant(field) || field.data_type() == found.field(*at).data_type()
        };
        let all_are = schema.fields().iter().zip(&order).all(is_same);
        Ok(all_are.then_some((read, order)))
    }

    /// The parts of a batch, in pieces: a part may be a copy for each row of a long value that rows
    /// share.
    pub(crate) fn extract(&self, batch: &RecordBatch) -> Result<Batches> {
        let part = self.clone();
        Ok(Box::new(pieces(batch, 0, self.max_row_bytes)?.map(move |piece| part.of_piece(&piece?))))
    }

    fn of_piece(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let schema = batch.schema_ref();
        let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
            if !VariantArray::is_variant(field) {
                return Ok(column.clone());
            }
            let part = VariantArray::new(column.as_struct())
                .and_then(|column| column.get(&self.path, &VariantArray::unshredded_type()))
                .map_err(|e| e.at_column(field.name().as_str()))?;
            // Its metadata are in whichever layout they were read in.
            Ok(cast(&part, &VariantArray::unshredded_type())?)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema(schema), columns, &options)?)
    }
}
