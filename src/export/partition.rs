//! [`Partitioning`] divides rows by the values of some columns, and names the folders after these.
//!
//! The folder names are those of Hive, `key=value`, which engines parse. In values, the characters
//! that Hive escapes are percent-encoded; in keys, which not all readers decode, only those that no
//! folder name can hold or that would be misread.

use std::fmt::Write;
use std::ops::Range;
use std::slice;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_cast::cast;
use arrow_ord::partition::partition;
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use arrow_select::take::take;

use crate::error::{Error, Result};
use crate::rows;

/// The columns by which rows are divided.
#[derive(Debug)]
pub(super) struct Partitioning {
    /// Their names and places.
    keys: Vec<(String, usize)>,
    /// The places of the others.
    others: Vec<usize>,
    /// The schema of the others.
    pub(super) schema: SchemaRef,
}

/// The values that rows have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PartitionKey {
    /// Names of columns, and values as text.
    pub(super) values: Vec<(String, Option<String>)>,
    /// The folder: empty, or ends with `/`.
    pub(super) folder: String,
}

/// The value of a folder for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

impl Partitioning {
    /// By these columns of a schema.
    ///
    /// # Errors
    /// `Usage` if there is no such column, one is named twice, or no other is left; `Unsupported`
    /// if a value of its type is no name of a folder.
    pub(super) fn new(schema: &SchemaRef, names: &[String]) -> Result<Self> {
        let mut keys: Vec<(String, usize)> = Vec::new();
        for name in names {
            let place = schema.index_of(name).map_err(|_| {
                Error::usage(format_args!("there is no column {name:?} to partition by"))
            })?;
            if keys.iter().any(|(_, other)| *other == place) {
                return Err(
                    Error::usage("a column to partition by is named twice").at_column(&**name)
                );
            }
            check_type(schema.field(place).data_type()).map_err(|e| e.at_column(&**name))?;
            keys.push((name.clone(), place));
        }
        let is_key = |place: &usize| keys.iter().any(|(_, key)| key == place);
        let others: Vec<usize> = (0..schema.fields().len()).filter(|i| !is_key(i)).collect();
        if others.is_empty() {
            return Err(Error::usage("at least one column must not be partitioned by"));
        }
        let schema = SchemaRef::new(schema.project(&others)?);
        Ok(Self { keys, others, schema })
    }

    /// The rows of a batch by their key, each in their order.
    pub(super) fn split(&self, batch: &RecordBatch) -> Result<SplitBatch<'_>> {
        let rest = batch.project(&self.others)?;
        let mut keys = Vec::with_capacity(self.keys.len());
        for (_, place) in &self.keys {
            let column = batch.column(*place);
            keys.push(plain(column)?);
        }
        if batch.num_rows() == 0 {
            let runs = Vec::new().into_iter();
            return Ok(SplitBatch { partitioning: self, rest, keys, order: None, runs });
        }
        let mut runs = partition(&keys)?.ranges();
        let mut order = None;
        if runs.len() > 1 {
            let by = keys.iter().map(|values| SortColumn { values: values.clone(), options: None });
            let sorted = lexsort_to_indices(&by.collect::<Vec<_>>(), None)?;
            let taken = keys.iter().map(|column| take(column, &sorted, None));
            keys = taken.collect::<Result<Vec<_>, _>>()?;
            runs = partition(&keys)?.ranges();
            order = Some(sorted);
        }
        Ok(SplitBatch { partitioning: self, rest, keys, order, runs: runs.into_iter() })
    }

    fn key(&self, columns: &[ArrayRef], row: usize) -> Result<PartitionKey> {
        let mut key = PartitionKey::default();
        for ((name, _), column) in self.keys.iter().zip(columns) {
            let value = value(column, row).map_err(|e| e.at_column(&**name))?;
            escape(name, is_misread_in_key, &mut key.folder);
            key.folder.push('=');
            match &value {
                Some(text) => escape(text, is_escaped_by_hive, &mut key.folder),
                None => key.folder.push_str(NULL),
            }
            key.folder.push('/');
            key.values.push((name.clone(), value));
        }
        Ok(key)
    }
}

/// The rows of a batch by their key. Those of a key are copied when they are asked for, so that the
/// batch is not there twice.
pub(super) struct SplitBatch<'a> {
    partitioning: &'a Partitioning,
    /// The other columns.
    rest: RecordBatch,
    /// The values that it is split by, sorted.
    keys: Vec<ArrayRef>,
    /// Which row of the batch each of them is of; `None` if all rows have the same.
    order: Option<UInt32Array>,
    runs: std::vec::IntoIter<Range<usize>>,
}

impl SplitBatch<'_> {
    fn piece(&self, run: Range<usize>) -> Result<(PartitionKey, RecordBatch)> {
        let key = self.partitioning.key(&self.keys, run.start)?;
        let Some(order) = &self.order else { return Ok((key, self.rest.clone())) };
        // Sorting may have moved rows of equal keys.
        let rows = order.values().slice(run.start, run.len());
        let mut rows: Vec<u64> = rows.iter().map(|row| u64::from(*row)).collect();
        rows.sort_unstable();
        let taken = rows::take(self.rest.schema_ref(), slice::from_ref(&self.rest), &rows)?;
        Ok((key, taken))
    }
}

impl Iterator for SplitBatch<'_> {
    type Item = Result<(PartitionKey, RecordBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.runs.next().map(|run| self.piece(run))
    }
}

fn check_type(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Dictionary(_, values) => check_type(values),
        DataType::RunEndEncoded(_, values) => check_type(values.data_type()),
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..) => Ok(()),
        other if other.is_integer() || other.is_floating() || other.is_decimal() => Ok(()),
        other => Err(Error::unsupported(
            "partitions by this type",
            format_args!(
                "values of {other} are no names of folders; numbers, texts, booleans, dates, times \
                 and timestamps are"
            ),
        )),
    }
}

/// The values of dictionaries and runs, row by row; strings as views, because rows may share long
/// ones.
fn plain(column: &ArrayRef) -> Result<ArrayRef> {
    let viewed = |values: &ArrayRef| match values.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => cast(values, &DataType::Utf8View),
        _ => Ok(values.clone()),
    };
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        return plain(&take(&viewed(dictionary.values())?, dictionary.keys(), None)?);
    }
    macro_rules! of_runs {
        ($($type:ty),*) => {$(
            if let Some(runs) = column.as_run_opt::<$type>() {
                let places = (0..runs.len()).map(|row| runs.get_physical_index(row) as u64);
                let places = UInt64Array::from_iter_values(places);
                return plain(&take(&viewed(runs.values())?, &places, None)?);
            }
        )*};
    }
    of_runs!(Int16Type, Int32Type, Int64Type);
    Ok(column.clone())
}

/// A value as text; `None` for null.
fn value(column: &dyn Array, row: usize) -> Result<Option<String>> {
    if column.is_null(row) {
        return Ok(None);
    }
    macro_rules! number {
        ($type:ty) => {
            column.as_primitive::<$type>().value(row).to_string()
        };
    }
    macro_rules! temporal {
        ($type:ty, $value:ident) => {{
            let values = column.as_primitive::<$type>();
            let text = values.$value(row).map(|value| value.to_string());
            text.ok_or_else(|| no_name(&values.value(row)))?
        }};
    }
    macro_rules! decimal {
        ($type:ty) => {
            column.as_primitive::<$type>().value_as_string(row)
        };
    }
    let text = match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => column.as_string_view().value(row).to_owned(),
        DataType::Date32 => temporal!(Date32Type, value_as_date),
        DataType::Date64 => temporal!(Date64Type, value_as_date),
        // In UTC, as Spark writes them in a session of that zone.
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => temporal!(TimestampSecondType, value_as_datetime),
            TimeUnit::Millisecond => temporal!(TimestampMillisecondType, value_as_datetime),
            TimeUnit::Microsecond => temporal!(TimestampMicrosecondType, value_as_datetime),
            TimeUnit::Nanosecond => temporal!(TimestampNanosecondType, value_as_datetime),
        },
        DataType::Time32(TimeUnit::Second) => temporal!(Time32SecondType, value_as_time),
        DataType::Time32(_) => temporal!(Time32MillisecondType, value_as_time),
        DataType::Time64(TimeUnit::Microsecond) => temporal!(Time64MicrosecondType, value_as_time),
        DataType::Time64(_) => temporal!(Time64NanosecondType, value_as_time),
        DataType::Float16 => float(column.as_primitive::<Float16Type>().value(row).to_f32()),
        DataType::Float32 => float(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        other => return check_type(other).map(|()| None),
    };
    // Readers take both for null.
    if text.is_empty() || text == NULL {
        return Err(no_name(&text));
    }
    Ok(Some(text))
}

#[cold]
fn no_name(value: &dyn std::fmt::Debug) -> Error {
    Error::unsupported(
        "partitions by this value",
        format_args!("{value:?} is no name of a folder that can be read back"),
    )
}

/// A float as Java writes it, and others read it: with a point, an exponent where it is long, and
/// `Infinity`.
fn float<F: std::fmt::Debug + Copy + Into<f64>>(value: F) -> String {
    let wide: f64 = value.into();
    match wide.is_infinite() {
        true if wide > 0.0 => "Infinity".to_owned(),
        true => "-Infinity".to_owned(),
        false => format!("{value:?}"),
    }
}

/// Appends a text, with these of its characters percent-encoded.
fn escape(text: &str, is_escaped: fn(&str) -> bool, out: &mut String) {
    for (at, c) in text.char_indices() {
        if is_escaped(&text[at..]) {
            // Writing to a text cannot fail.
            let _ = write!(out, "%{:02X}", u32::from(c));
        } else {
            out.push(c);
        }
    }
}

/// Whether the beginning of the text cannot be part of a folder's name, or would be misread there
/// as the end of the name, or as an encoded character.
fn is_misread_in_key(text: &str) -> bool {
    match text.as_bytes() {
        [b'%', high, low, ..] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        [b'/' | b'\\' | b'=', ..] => true,
        [byte, ..] => byte.is_ascii_control(),
        [] => false,
    }
}

/// Whether Hive escapes the first character of a value.
fn is_escaped_by_hive(text: &str) -> bool {
    text.starts_with(|c: char| {
        let is_special = matches!(
            c,
            '"' | '#'
                | '%'
                | '\''
                | '*'
                | '/'
                | ':'
                | '='
                | '?'
                | '\\'
                | '{'
                | '['
                | ']'
                | '^'
                | '<'
                | '>'
                | '|'
                | '~'
                | '`'
                | '}'
        );
        c.is_ascii_control() || is_special
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hive() {
        let mut out = String::new();
        escape("a/b=c%d é:\u{1}..", is_escaped_by_hive, &mut out);
        assert_eq!(out, "a%2Fb%3Dc%25d é%3A%01..");
        out.clear();
        escape("a/b=c%d %20 é:\u{1}..", is_misread_in_key, &mut out);
        assert_eq!(out, "a%2Fb%3Dc%d %2520 é:%01..");
    }
}
