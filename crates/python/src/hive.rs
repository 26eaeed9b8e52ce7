//! Partition columns: values that the folders of a file state.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use marquetry::{Error, Result};

/// The partition columns of all files, and their values in each.
#[derive(Clone)]
pub(crate) struct Partitions {
    schema: SchemaRef,
    values: Arc<Vec<Vec<Option<String>>>>,
}

impl Partitions {
    /// `fields` are names and types: `int64`, `date32`, or text.
    pub(crate) fn new(fields: &[(String, String)], values: Vec<Vec<Option<String>>>) -> Self {
        let field = |(name, of): &(String, String)| {
            let data_type = match of.as_str() {
                "int64" => DataType::Int64,
                "date32" => DataType::Date32,
                _ => DataType::Utf8,
            };
            Field::new(name, data_type, true)
        };
        let schema = Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()));
        Self { schema, values: Arc::new(values) }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema.index_of(name).is_ok()
    }

    /// The same columns, in the types that a schema states for them.
    pub(crate) fn in_types_of(&self, target: &Schema) -> Self {
        let field = |field: &FieldRef| match target.fields().find(field.name()) {
            Some((_, wanted)) => wanted.clone(),
            None => field.clone(),
        };
        let fields: Vec<FieldRef> = self.schema.fields().iter().map(field).collect();
        Self { schema: Arc::new(Schema::new(fields)), values: self.values.clone() }
    }

    /// The values of a file, as one row.
    pub(crate) fn row(&self, file: usize) -> Result<RecordBatch> {
        let values = self.values.get(file).map(Vec::as_slice).unwrap_or_default();
        let column = |(at, field): (usize, &FieldRef)| -> Result<ArrayRef> {
            let value = values.get(at).and_then(Option::as_deref);
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let text = StringArray::from(vec![value]);
            cast_with_options(&text, field.data_type(), &options).map_err(|e| {
                Error::usage(format_args!(
                    "partition column {:?}: {:?} is no {}: {e}",
                    field.name(),
                    value.unwrap_or_default(),
                    field.data_type()
                ))
            })
        };
        let columns = self.schema.fields().iter().enumerate().map(column);
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let (schema, columns) = (self.schema.clone(), columns.collect::<Result<_>>()?);
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

#[derive(Clone, Copy)]
enum Place {
    File(usize),
    Partition(usize),
}

/// How the batches of a file are completed with its partition values.
#[derive(Clone)]
pub(crate) struct Completion {
    fields: Vec<(Place, FieldRef)>,
    known: RecordBatch,
}

impl Completion {
    /// For a file whose batches have `schema`: the columns of `wanted` in order, or those of the
    /// file and then the partition columns.
    pub(crate) fn new(
        schema: &SchemaRef,
        partitions: &Partitions,
        file: usize,
        wanted: Option<&[String]>,
    ) -> Result<Self> {
        let mut left: Vec<usize> = (0..schema.fields().len()).collect();
        let mut fields = Vec::new();
        let partition = |at: usize| (Place::Partition(at), partitions.schema.fields()[at].clone());
        let of_file = |at: usize| (Place::File(at), schema.fields()[at].clone());
        for name in wanted.unwrap_or_default() {
            if let Ok(at) = partitions.schema.index_of(name) {
                fields.push(partition(at));
                continue;
            }
            // A path into a struct gives the column of its first step, once.
            let found = left.iter().position(|at| {
                let field = schema.field(*at).name();
                field == name
                    || name.strip_prefix(field.as_str()).is_some_and(|r| r.starts_with('.'))
            });
            if let Some(found) = found {
                fields.push(of_file(left.remove(found)));
            }
        }
        fields.extend(left.into_iter().map(of_file));
        if wanted.is_none() {
            fields.extend((0..partitions.schema.fields().len()).map(partition));
        }
        Ok(Self { fields, known: partitions.row(file)? })
    }

    /// The schema of the completed batches, where those of the files have `schema`.
    pub(crate) fn schema(&self, schema: &SchemaRef) -> SchemaRef {
        let fields = self.fields.iter().map(|(place, field)| match place {
            Place::File(at) => schema.fields()[*at].clone(),
            Place::Partition(_) => field.clone(),
        });
        let fields: Vec<FieldRef> = fields.collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    /// The columns of a batch with the partition columns.
    pub(crate) fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let first = UInt32Array::from(vec![0; batch.num_rows()]);
        let column = |(place, _): &(Place, FieldRef)| match place {
            Place::File(at) => Ok(batch.column(*at).clone()),
            Place::Partition(at) => {
                Ok(arrow_select::take::take(self.known.column(*at), &first, None)?)
            }
        };
        self.fields.iter().map(column).collect()
    }
}
