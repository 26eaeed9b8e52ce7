//! Partition columns: folders named `KEY=VALUE` on the way to a file.

use std::path::{Component, Path};
use std::sync::Arc;

use arrow_array::{Array, UInt32Array};
use arrow_array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use marquetry::{Predicate, Reader};

use crate::failure::{Failure, Result};

/// The value of null in the name of a folder.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The keys and values in the folders of a path, in their order; `None` is null.
pub(crate) fn pairs(path: &str) -> Vec<(String, Option<String>)> {
    let folders = Path::new(path).parent().map(Path::components);
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    for folder in folders.into_iter().flatten() {
        let Component::Normal(name) = folder else { continue };
        let name = name.to_string_lossy();
        let Some((key, value)) = name.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            continue;
        };
        let (key, value) = (decode(key), decode(value));
        let value = (value != NULL && !value.is_empty()).then_some(value);
        // The innermost folder of a name counts.
        pairs.retain(|(before, _)| *before != key);
        pairs.push((key, value));
    }
    pairs
}

/// Percent-decoded; what is no UTF-8 then stays as it is.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if *byte == b'%' => {
                out.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The partition columns of some files: names and types are those of all of them, values of each.
pub(crate) fn partitions(paths: &[Option<&str>]) -> Result<Vec<Option<RecordBatch>>> {
    let pairs: Vec<_> = paths.iter().map(|path| path.map(pairs).unwrap_or_default()).collect();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in pairs.iter().flatten() {
        if !keys.contains(&&**key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return Ok(vec![None; paths.len()]);
    }
    let value = |pairs: &Vec<(String, Option<String>)>, key: &str| -> Option<String> {
        pairs.iter().find(|(found, _)| found == key).and_then(|(_, value)| value.clone())
    };
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    for key in keys {
        let values: Vec<Option<String>> = pairs.iter().map(|pairs| value(pairs, key)).collect();
        columns.push((key, typed(&values)));
    }
    let fields =
        columns.iter().map(|(key, column)| Field::new(*key, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let all = RecordBatch::try_new(schema, columns)?;
    Ok((0..paths.len()).map(|i| Some(all.slice(i, 1))).collect())
}

/// Integers if all are, or dates if all are, else text.
fn typed(values: &[Option<String>]) -> ArrayRef {
    let known = || values.iter().map(Option::as_deref);
    let some = known().flatten().next().is_some();
    let all = |fits: &dyn Fn(&str) -> bool| some && known().flatten().all(fits);
    if all(&|text| integer(text).is_some()) {
        return Arc::new(Int64Array::from_iter(known().map(|text| text.and_then(integer))));
    }
    if all(&|text| date(text).is_some()) {
        return Arc::new(Date32Array::from_iter(known().map(|text| text.and_then(date))));
    }
    Arc::new(StringArray::from_iter(known()))
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Days since 1970, of `2024-01-31` alone.
fn date(text: &str) -> Option<i32> {
    use arrow_cast::parse::Parser;
    let shape = text.bytes().enumerate().all(|(i, b)| match i {
        4 | 7 => b == b'-',
        _ => b.is_ascii_digit(),
    });
    (shape && text.len() == 10).then(|| arrow_array::types::Date32Type::parse(text)).flatten()
}

/// A file, and the partition values of its folders.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) path: String,
    /// One row: the partition columns.
    pub(crate) known: Option<RecordBatch>,
}

impl Input {
    /// What is left of a filter for the rows of the file.
    pub(crate) fn filter(&self, text: &str) -> Result<Predicate> {
        let filter = Predicate::parse(text)?;
        match &self.known {
            Some(known) => Ok(filter.with_known(known)?),
            None => Ok(filter),
        }
    }

    /// Whether the folders alone say that no row meets the filter.
    pub(crate) fn is_pruned(&self, filter: Option<&str>) -> Result<bool> {
        match filter {
            Some(text) if self.known.is_some() => Ok(self.filter(text)? == Predicate::FALSE),
            _ => Ok(false),
        }
    }
}

/// Adds partition columns to the batches of a reader.
#[derive(Clone)]
pub(crate) struct Completed {
    pub(crate) schema: SchemaRef,
    /// Where each column comes from: the batch, or a partition value.
    columns: Vec<From>,
    known: RecordBatch,
}

#[derive(Clone, Copy)]
enum From {
    Batch(usize),
    Known(usize),
}

impl Completed {
    /// Narrows `reader` to the columns that are asked for (all if none is), and tells how its
    /// batches are completed. Partition columns follow the others, and take the place of columns
    /// with their names.
    pub(crate) fn new(
        reader: Reader,
        known: &RecordBatch,
        wanted: &[String],
    ) -> Result<(Reader, Self)> {
        let schema = reader.schema()?;
        let is_known = |name: &str| known.schema_ref().index_of(name).ok();
        let of_file: Vec<String> =
            schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut names: Vec<String> =
            of_file.into_iter().filter(|name| is_known(name).is_none()).collect();
        names.extend(known.schema_ref().fields().iter().map(|field| field.name().clone()));
        let wanted = match wanted {
            [] => names,
            _ => crate::input::columns(&names, wanted)?,
        };
        let (mut before, mut columns, mut fields) =
            (Vec::new(), Vec::new(), Vec::<FieldRef>::new());
        let mut taken = 0;
        for name in &wanted {
            match is_known(name) {
                Some(i) => {
                    columns.push(From::Known(i));
                    fields.push(known.schema_ref().fields()[i].clone());
                }
                None => {
                    before.push(name.as_str());
                    let schema = reader.clone().project(&before)?.schema()?;
                    // Members of one struct are one column.
                    for (i, field) in schema.fields().iter().enumerate().skip(taken) {
                        columns.push(From::Batch(i));
                        fields.push(field.clone());
                    }
                    taken = schema.fields().len();
                }
            }
        }
        let reader = reader.project(&before)?;
        let projected = reader.schema()?;
        for (column, field) in columns.iter().zip(&mut fields) {
            if let From::Batch(i) = column
                && let Some(whole) = projected.fields().get(*i)
            {
                *field = whole.clone();
            }
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, projected.metadata().clone()));
        Ok((reader, Self { schema, columns, known: known.clone() }))
    }

    /// The same for whole batches of a schema.
    pub(crate) fn of_schema(schema: &SchemaRef, known: &RecordBatch) -> Self {
        let is_known = |name: &str| known.schema_ref().index_of(name).is_ok();
        let of_file = schema.fields().iter().enumerate();
        let of_file = of_file.filter(|(_, field)| !is_known(field.name()));
        let (mut columns, mut fields): (Vec<From>, Vec<FieldRef>) =
            of_file.map(|(i, field)| (From::Batch(i), field.clone())).unzip();
        columns.extend((0..known.num_columns()).map(From::Known));
        fields.extend(known.schema_ref().fields().iter().cloned());
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Self { schema, columns, known: known.clone() }
    }

    /// The batch with its partition columns.
    pub(crate) fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let zeros = UInt32Array::from(vec![0; rows]);
        let column = |from: &From| match from {
            From::Batch(i) => Ok(batch.column(*i).clone()),
            From::Known(i) => Ok(take(self.known.column(*i), &zeros, None)?),
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.schema.clone();
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(Failure::from)
    }
}
