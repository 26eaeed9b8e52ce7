//! Derives partition columns from the folders named `KEY=VALUE` in the path of a file.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow_array::UInt32Array;
use arrow_array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::take::take;
use marquetry::{Predicate, Reader};

use crate::args::HiveTypes;
use crate::failure::{Failure, Result};
use crate::files;
use crate::named_columns;

/// The value of null in the name of a folder.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The keys and values in the names of folders, in their order; `None` is null.
fn pairs(folders: &[String]) -> Vec<(String, Option<String>)> {
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    for name in folders {
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

/// Decodes percent encoding; a result that is not UTF-8 stays encoded.
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

/// The partition columns of a file: names and types are those of all files, values its own.
#[derive(Clone)]
pub(crate) struct Partitions {
    schema: SchemaRef,
    /// Positions of the names in the schema.
    places: Arc<HashMap<String, usize>>,
    /// The columns that have a value here.
    values: Vec<(usize, String)>,
    /// The columns that the filter of the command may be about, looked for once for all files.
    in_filter: Arc<OnceLock<Vec<usize>>>,
}

impl Partitions {
    /// Position of the column with this name among the partition columns.
    fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The columns.
    pub(crate) fn fields(&self) -> &Fields {
        self.schema.fields()
    }

    /// The values, as one row.
    pub(crate) fn row(&self) -> Result<RecordBatch> {
        self.row_of(&(0..self.fields().len()).collect::<Vec<_>>())
    }

    /// The values of these columns, as one row.
    fn row_of(&self, places: &[usize]) -> Result<RecordBatch> {
        let schema = Arc::new(self.schema.project(places)?);
        let values: HashMap<usize, &str> =
            self.values.iter().map(|(i, value)| (*i, value.as_str())).collect();
        let columns = schema.fields().iter().zip(places).map(|(field, i)| -> ArrayRef {
            let value = values.get(i).copied();
            match field.data_type() {
                DataType::Int64 => Arc::new(Int64Array::from(vec![value.and_then(integer)])),
                DataType::Date32 => Arc::new(Date32Array::from(vec![value.and_then(date)])),
                _ => Arc::new(StringArray::from(vec![value])),
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns.collect(), &options)?)
    }

    /// The values that a filter may be about: of columns whose names are somewhere in its text.
    fn row_for(&self, filter: &str) -> Result<RecordBatch> {
        let is_named = |field: &FieldRef| {
            // As it is quoted: a quote in a name is doubled.
            let quoted = field.name().replace('"', "\"\"");
            filter.contains(field.name()) || filter.contains(&quoted)
        };
        let places = self.in_filter.get_or_init(|| {
            let fields = self.fields().iter().enumerate();
            fields.filter(|(_, field)| is_named(field)).map(|(i, _)| i).collect()
        });
        self.row_of(places)
    }
}

/// The types that the values of a key fit, as far as they were seen.
struct Seen {
    place: usize,
    some: bool,
    integers: bool,
    dates: bool,
    /// The length of all texts; `None` if they differ, or none was seen.
    len: Option<usize>,
    /// Whether a number is not as it is written: it begins with a zero.
    padded: bool,
}

impl Seen {
    fn see(&mut self, value: &str) {
        let number = integer(value);
        self.integers = self.integers && number.is_some();
        self.padded |= number.is_some_and(|number| number.to_string() != value);
        self.dates = self.dates && date(value).is_some();
        let is_alike = !self.some || self.len == Some(value.len());
        self.len = Some(value.len()).filter(|_| is_alike);
        self.some = true;
    }

    /// Integers if all are, or dates if all are, else text. Numbers with zeros in front are text
    /// where their lengths differ: 1 and 01 are two values.
    fn data_type(&self) -> DataType {
        match self {
            Self { some: false, .. } => DataType::Utf8,
            Self { integers: true, padded, len, .. } if !padded || len.is_some() => DataType::Int64,
            Self { dates: true, .. } => DataType::Date32,
            _ => DataType::Utf8,
        }
    }
}

/// The partition columns of files, by the names of their folders below `common`; `None` for all if
/// there are none.
pub(crate) fn partitions(
    paths: &[String],
    common: &Path,
    types: HiveTypes,
) -> Vec<Option<Partitions>> {
    let pairs: Vec<_> =
        paths.iter().map(|path| pairs(&files::folders_below(path, common))).collect();
    let mut keys: Vec<&str> = Vec::new();
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for (key, value) in pairs.iter().flatten() {
        let of_key = seen.entry(key).or_insert_with(|| {
            keys.push(key);
            let place = keys.len() - 1;
            Seen { place, some: false, integers: true, dates: true, len: None, padded: false }
        });
        if let Some(value) = value {
            of_key.see(value);
        }
    }
    if keys.is_empty() {
        return vec![None; paths.len()];
    }
    let infer = types == HiveTypes::Infer;
    let field = |key: &&str| {
        let data_type = seen.get(key).filter(|_| infer).map_or(DataType::Utf8, Seen::data_type);
        Field::new(*key, data_type, true)
    };
    let schema: SchemaRef = Arc::new(Schema::new(keys.iter().map(field).collect::<Vec<_>>()));
    let in_filter = Arc::new(OnceLock::new());
    let places = keys.iter().enumerate().map(|(place, key)| ((*key).to_owned(), place));
    let places: Arc<HashMap<String, usize>> = Arc::new(places.collect());
    let known = |pairs: &Vec<(String, Option<String>)>| {
        let values = pairs.iter().filter_map(|(key, value)| {
            let place = seen.get(key.as_str())?.place;
            Some((place, value.clone()?))
        });
        let (schema, places, in_filter) = (schema.clone(), places.clone(), in_filter.clone());
        Some(Partitions { schema, places, values: values.collect(), in_filter })
    };
    pairs.iter().map(known).collect()
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
    /// The partition columns.
    pub(crate) partitions: Option<Partitions>,
    /// The columns of all files of the command, where they are united.
    pub(crate) target: Option<SchemaRef>,
}

impl Input {
    /// The filter for the rows of the file, with the partition columns replaced by their values.
    pub(crate) fn filter(&self, text: &str) -> Result<Predicate> {
        let filter = Predicate::parse(text)?;
        match &self.partitions {
            Some(known) => Ok(filter.with_known(&known.row_for(text)?)?),
            None => Ok(filter),
        }
    }

    /// Whether the folders alone say that no row meets the filter.
    pub(crate) fn is_pruned(&self, filter: Option<&str>) -> Result<bool> {
        match filter {
            Some(text) if self.partitions.is_some() => Ok(self.filter(text)? == Predicate::FALSE),
            _ => Ok(false),
        }
    }
}

/// The columns that each name adds to a projection, with their places: one, or none where it is
/// another member of a struct that is there.
fn columns_of_names(reader: &Reader, names: &[&str]) -> Result<Vec<Vec<(usize, FieldRef)>>> {
    let fields_of = |names: &[&str]| -> Result<Fields> {
        Ok(reader.clone().project(names)?.schema()?.fields().clone())
    };
    let all = fields_of(names)?;
    if all.len() == names.len() {
        return Ok(all.iter().cloned().enumerate().map(|column| vec![column]).collect());
    }
    let mut columns = Vec::new();
    let mut taken = 0;
    for n in 1..=names.len() {
        let fields = fields_of(&names[..n])?;
        columns.push(fields.iter().cloned().enumerate().skip(taken).collect());
        taken = fields.len();
    }
    Ok(columns)
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
    Partition(usize),
}

impl Completed {
    /// Narrows `reader` to the wanted columns (all by default), and returns how its batches are
    /// completed. Partition columns follow the others, and replace columns with their names.
    pub(crate) fn new(
        reader: Reader,
        known: &Partitions,
        wanted: &[String],
    ) -> Result<(Reader, Self)> {
        let schema = reader.schema()?;
        let of_file = schema.fields().iter().map(|field| field.name());
        let of_file = of_file.filter(|name| known.place(name).is_none());
        let mut names: Vec<String> = of_file.cloned().collect();
        names.extend(known.fields().iter().map(|field| field.name().clone()));
        let wanted = match wanted {
            [] => names,
            _ => named_columns::columns(&names, wanted)?,
        };
        let before: Vec<&str> =
            wanted.iter().map(String::as_str).filter(|name| known.place(name).is_none()).collect();
        let mut of_file = columns_of_names(&reader, &before)?.into_iter();
        let (mut columns, mut fields) = (Vec::new(), Vec::<FieldRef>::new());
        for name in &wanted {
            match known.place(name) {
                Some(i) => {
                    columns.push(From::Partition(i));
                    fields.push(known.fields()[i].clone());
                }
                None => {
                    for (i, field) in of_file.next().into_iter().flatten() {
                        columns.push(From::Batch(i));
                        fields.push(field);
                    }
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
        Ok((reader, Self { schema, columns, known: known.row()? }))
    }

    /// The same for whole batches of a schema.
    pub(crate) fn of_schema(schema: &SchemaRef, known: &Partitions) -> Result<Self> {
        let of_file = schema.fields().iter().enumerate();
        let of_file = of_file.filter(|(_, field)| known.place(field.name()).is_none());
        let (mut columns, mut fields): (Vec<From>, Vec<FieldRef>) =
            of_file.map(|(i, field)| (From::Batch(i), field.clone())).unzip();
        columns.extend((0..known.fields().len()).map(From::Partition));
        fields.extend(known.fields().iter().cloned());
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Self { schema, columns, known: known.row()? })
    }

    /// The batch with its partition columns.
    pub(crate) fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let zeros = UInt32Array::from(vec![0; rows]);
        let column = |from: &From| match from {
            From::Batch(i) => Ok(batch.column(*i).clone()),
            From::Partition(i) => Ok(take(self.known.column(*i), &zeros, None)?),
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.schema.clone();
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(Failure::from)
    }
}
