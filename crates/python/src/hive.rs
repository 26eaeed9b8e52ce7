//! Partition columns: values that the folders of a file state.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
};
use arrow_cast::parse::Parser;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use marquetry::Result;

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

    /// The values of a file, as one row.
    pub(crate) fn row(&self, file: usize) -> Result<RecordBatch> {
        let values = self.values.get(file).map(Vec::as_slice).unwrap_or_default();
        let columns = self.schema.fields().iter().enumerate().map(|(at, field)| -> ArrayRef {
            let value = values.get(at).and_then(Option::as_deref);
            match field.data_type() {
                DataType::Int64 => {
                    Arc::new(Int64Array::from(vec![value.and_then(|v| v.parse().ok())]))
                }
                DataType::Date32 => {
                    let date = value.and_then(arrow_array::types::Date32Type::parse);
                    Arc::new(Date32Array::from(vec![date]))
                }
                _ => Arc::new(StringArray::from(vec![value])),
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = self.schema.clone();
        Ok(RecordBatch::try_new_with_options(schema, columns.collect(), &options)?)
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
