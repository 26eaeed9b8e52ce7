//! Writes the values of arrays as JSON, and as text for tables and CSV.
//!
//! Numbers are numbers where JSON can hold them, decimals too, with all their digits; NaN and
//! infinities are words. Maps with text as keys are objects. Bytes are text where all values seen
//! are, else hex; UUIDs have their dashes, dates and times are text in ISO 8601. VARIANT values are
//! shown as JSON. [`ValueForms`](crate::args::ValueForms) says otherwise.

mod forms;
mod numbers;
mod time;

use std::collections::HashSet;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, types};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field};
use marquetry::engine::rows::dictionary_keys;
use marquetry::geo::to_wkt;
use marquetry::variant::VariantArray;
use serde_json::value::RawValue;

use crate::args::{BinaryForm, DecimalForm, MapForm};

use forms::is_shown_as_variant;
pub(crate) use forms::{Forms, bytes_of, text_of};
use time::Append;

/// The values of an array, each as text on demand.
pub(crate) struct Values<'a> {
    nulls: Option<&'a NullBuffer>,
    kind: CellKind<'a>,
}

/// The same for values with several forms, or with none.
type Write<'a> = Box<dyn Fn(usize, TextForm, &mut Vec<u8>) -> Result<(), ArrowError> + 'a>;

/// The elements of a list, by its row.
type RangeOf<'a> = Box<dyn Fn(usize) -> Range<usize> + 'a>;

enum CellKind<'a> {
    Null,
    /// Values that JSON writes without quotes: booleans, integers, decimals.
    Bare(Append<'a>),
    /// Values that JSON writes in quotes and that need no escapes: dates, times, UUIDs, hex.
    Quoted(Append<'a>),
    Text(Box<dyn Fn(usize) -> &'a str + 'a>),
    /// Floats, and what else Arrow has a text for.
    Other(Write<'a>),
    Bytes(Box<dyn Fn(usize) -> &'a [u8] + 'a>, BytesAs),
    List(RangeOf<'a>, Box<Values<'a>>),
    Map(&'a [i32], MapForm, Box<[Values<'a>; 2]>),
    /// The names as JSON, and the values.
    Struct(Vec<(String, Values<'a>)>),
    Variant(Box<VariantArray>),
    /// Values that are looked up by an index: dictionaries and run ends.
    Indirect(Box<dyn Fn(usize) -> usize + 'a>, Box<Values<'a>>),
}

/// Makes the values of columns in the forms that are asked for.
pub(crate) struct ValuesOf<'f> {
    forms: &'f Forms,
    /// Leaves of bytes so far, which have forms of their own.
    leaves: usize,
}

impl<'f> ValuesOf<'f> {
    /// For the columns of a batch, in their order.
    pub(crate) fn new(forms: &'f Forms) -> Self {
        Self { forms, leaves: 0 }
    }

    /// The values of `array`, which `field` describes.
    ///
    /// # Errors
    /// If Arrow cannot format the type, or a VARIANT column is malformed.
    pub(crate) fn column<'a>(
        &mut self,
        array: &'a dyn Array,
        field: &Field,
    ) -> Result<Values<'a>, ArrowError> {
        if is_shown_as_variant(array, field) {
            let kind = CellKind::Variant(Box::new(VariantArray::new(array.as_struct())?));
            return Ok(Values { nulls: array.nulls(), kind });
        }
        self.values(array, field.data_type(), field.extension_type_name())
    }

    fn values<'a>(
        &mut self,
        array: &'a dyn Array,
        shown: &DataType,
        extension: Option<&str>,
    ) -> Result<Values<'a>, ArrowError> {
        let kind = match array.data_type() {
            DataType::Null => CellKind::Null,
            DataType::Utf8 => text(array.as_string::<i32>(), |array, i| array.value(i)),
            DataType::LargeUtf8 => text(array.as_string::<i64>(), |array, i| array.value(i)),
            DataType::Utf8View => text(array.as_string_view(), |array, i| array.value(i)),
            bytes if bytes.is_binary() => self.bytes(array, extension),
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..) => self.list(array, shown)?,
            DataType::Map(..) => self.map(array, shown)?,
            DataType::Struct(_) => {
                let DataType::Struct(fields) = shown else {
                    return Err(ArrowError::SchemaError(format!("a struct shown as {shown}")));
                };
                let columns = fields.iter().zip(array.as_struct().columns());
                let child = |(field, column): (&'_ arrow_schema::FieldRef, &'a ArrayRef)| {
                    let name = serde_json::Value::from(field.name().as_str()).to_string();
                    Ok::<_, ArrowError>((name, self.column(column, field)?))
                };
                CellKind::Struct(columns.map(child).collect::<Result<_, _>>()?)
            }
            DataType::Dictionary(_, value) => {
                let dictionary = array.as_any_dictionary();
                let of = match shown {
                    DataType::Dictionary(_, of) => of,
                    _ => value,
                };
                let keys = dictionary_keys(dictionary);
                let values = self.values(dictionary.values(), of, extension)?;
                CellKind::Indirect(Box::new(move |i| keys[i]), Box::new(values))
            }
            DataType::RunEndEncoded(ends, values) => {
                macro_rules! runs {
                    ($type:ty) => {{
                        let runs = array.as_run::<$type>();
                        let values = self.values(runs.values(), values.data_type(), extension)?;
                        let at = Box::new(move |i| runs.get_physical_index(i));
                        CellKind::Indirect(at, Box::new(values))
                    }};
                }
                match ends.data_type() {
                    DataType::Int16 => runs!(types::Int16Type),
                    DataType::Int32 => runs!(types::Int32Type),
                    _ => runs!(types::Int64Type),
                }
            }
            _ => scalar(array, self.forms.values.decimals.unwrap_or_default())?,
        };
        Ok(Values { nulls: array.nulls(), kind })
    }

    fn bytes<'a>(&mut self, array: &'a dyn Array, extension: Option<&str>) -> CellKind<'a> {
        let values: Box<dyn Fn(usize) -> &'a [u8] + 'a> = match array.data_type() {
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                Box::new(|i| array.value(i))
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                Box::new(|i| array.value(i))
            }
            DataType::BinaryView => {
                let array = array.as_binary_view();
                Box::new(|i| array.value(i))
            }
            _ => {
                let array = array.as_fixed_size_binary();
                Box::new(|i| array.value(i))
            }
        };
        let given = self.forms.values.binary;
        let form = match array.data_type() {
            DataType::FixedSizeBinary(16) if extension == Some("arrow.uuid") => {
                return CellKind::Quoted(Box::new(move |i, out| {
                    out.extend_from_slice(uuid(values(i)).as_bytes());
                }));
            }
            DataType::FixedSizeBinary(_) => given.unwrap_or(BinaryForm::Hex),
            _ => {
                let form = self.forms.of_leaf(self.leaves);
                self.leaves += 1;
                form
            }
        };
        let is_wkb = extension == Some("geoarrow.wkb");
        // Geometries are no text.
        let form = if is_wkb && form == BinaryForm::Text { BinaryForm::Hex } else { form };
        CellKind::Bytes(values, BytesAs { form, is_given: given.is_some(), is_wkb })
    }

    fn list<'a>(
        &mut self,
        array: &'a dyn Array,
        shown: &DataType,
    ) -> Result<CellKind<'a>, ArrowError> {
        let item = match shown {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => item,
            other => return Err(ArrowError::SchemaError(format!("a list shown as {other}"))),
        };
        let (range, values): (RangeOf<'a>, &ArrayRef) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                (Box::new(|i| span(offsets[i], offsets[i + 1])), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                (Box::new(|i| span(offsets[i], offsets[i + 1])), list.values())
            }
            DataType::ListView(_) => {
                let list = array.as_list_view::<i32>();
                let (starts, sizes) = (list.value_offsets(), list.value_sizes());
                (Box::new(|i| span(starts[i], starts[i] + sizes[i])), list.values())
            }
            DataType::LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                let (starts, sizes) = (list.value_offsets(), list.value_sizes());
                (Box::new(|i| span(starts[i], starts[i] + sizes[i])), list.values())
            }
            _ => {
                let list = array.as_fixed_size_list();
                let size = usize::try_from(list.value_length()).unwrap_or_default();
                (Box::new(move |i| i * size..(i + 1) * size), list.values())
            }
        };
        Ok(CellKind::List(range, Box::new(self.column(values, item)?)))
    }

    fn map<'a>(
        &mut self,
        array: &'a dyn Array,
        shown: &DataType,
    ) -> Result<CellKind<'a>, ArrowError> {
        let map = array.as_map();
        let of_entries = match shown {
            DataType::Map(entries, _) => entries.data_type(),
            _ => map.entries().data_type(),
        };
        let DataType::Struct(fields) = of_entries else {
            return Err(ArrowError::SchemaError(format!("a map shown as {shown}")));
        };
        let columns = fields.iter().zip(map.entries().columns());
        let mut pair = columns.map(|(field, column)| self.column(column, field));
        let (Some(key), Some(value)) = (pair.next(), pair.next()) else {
            return Err(ArrowError::SchemaError("a map without keys and values".to_owned()));
        };
        let (pair, form) = ([key?, value?], self.forms.values.maps.unwrap_or_default());
        Ok(CellKind::Map(map.value_offsets(), form, Box::new(pair)))
    }
}

fn text<'a, A>(array: &'a A, value: impl Fn(&'a A, usize) -> &'a str + 'a) -> CellKind<'a> {
    CellKind::Text(Box::new(move |i| value(array, i)))
}

/// Values that are not nested, and no text.
fn scalar<'a>(array: &'a dyn Array, decimals: DecimalForm) -> Result<CellKind<'a>, ArrowError> {
    macro_rules! integers {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values();
            CellKind::Bare(Box::new(move |i, out| numbers::integer(values[i], out)))
        }};
    }
    macro_rules! floats {
        ($type:ty, $write:expr) => {{
            let (values, write) = (array.as_primitive::<$type>().values(), $write);
            CellKind::Other(Box::new(move |i, of, out| of.float(out, |out| write(values[i], out))))
        }};
    }
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            CellKind::Bare(Box::new(|i, out| {
                out.extend_from_slice(if values.value(i) { b"true" } else { b"false" });
            }))
        }
        DataType::Int8 => integers!(types::Int8Type),
        DataType::Int16 => integers!(types::Int16Type),
        DataType::Int32 => integers!(types::Int32Type),
        DataType::Int64 => integers!(types::Int64Type),
        DataType::UInt8 => integers!(types::UInt8Type),
        DataType::UInt16 => integers!(types::UInt16Type),
        DataType::UInt32 => integers!(types::UInt32Type),
        DataType::UInt64 => integers!(types::UInt64Type),
        DataType::Float16 => floats!(types::Float16Type, |value: half::f16, out: &mut _| {
            numbers::float64(value.to_f64(), out)
        }),
        DataType::Float32 => floats!(types::Float32Type, numbers::float32),
        DataType::Float64 => floats!(types::Float64Type, numbers::float64),
        other if other.is_decimal() => decimal(array, decimals)?,
        zoned if time::is_in_zone(zoned) => in_zone(array)?,
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => CellKind::Quoted(time::writer(array)?),
        _ => {
            let values = formatter(array)?;
            CellKind::Other(Box::new(move |i, of, out| {
                of.text(&values.value(i).try_to_string()?, out)
            }))
        }
    })
}

fn decimal<'a>(array: &'a dyn Array, form: DecimalForm) -> Result<CellKind<'a>, ArrowError> {
    macro_rules! decimals {
        ($type:ty, $scale:expr, $write:expr) => {{
            let (values, scale) = (array.as_primitive::<$type>().values(), *$scale);
            let write: Append<'a> = Box::new(move |i, out| $write(values[i].into(), scale, out));
            match form {
                DecimalForm::Number => CellKind::Bare(write),
                DecimalForm::Text => CellKind::Quoted(write),
            }
        }};
    }
    Ok(match array.data_type() {
        DataType::Decimal32(_, scale) => decimals!(types::Decimal32Type, scale, numbers::decimal),
        DataType::Decimal64(_, scale) => decimals!(types::Decimal64Type, scale, numbers::decimal),
        DataType::Decimal128(_, scale) => decimals!(types::Decimal128Type, scale, numbers::decimal),
        // The formatter of Arrow cuts values at the precision of the type.
        DataType::Decimal256(_, scale) => {
            decimals!(types::Decimal256Type, scale, numbers::decimal256)
        }
        other => return Err(ArrowError::CastError(format!("{other} is no decimal"))),
    })
}

/// Instants in the zone of the column; in UTC where Arrow knows no such zone, or has no text, or
/// the offset has seconds, which its text has not.
fn in_zone(array: &dyn Array) -> Result<CellKind<'_>, ArrowError> {
    let (zoned, in_utc) = (formatter(array).ok(), time::writer(array)?);
    Ok(CellKind::Quoted(Box::new(move |i, out| {
        let zoned = zoned.as_ref().filter(|_| !time::is_far(array, i));
        let text = zoned.and_then(|zoned| zoned.value(i).try_to_string().ok());
        match text.filter(|text| time::has_whole_minutes(array, i, text)) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => in_utc(i, out),
        }
    })))
}

/// How bytes are written.
#[derive(Debug, Clone, Copy)]
struct BytesAs {
    form: BinaryForm,
    /// Whether `--binary` sets the form. Where it does not, text that begins with `0x` is written
    /// as hex, because it is read as hex.
    is_given: bool,
    /// Whether they are geometries, which tables show as well-known text.
    is_wkb: bool,
}

impl BytesAs {
    /// # Errors
    /// If they are asked for as text, and are none.
    fn write(self, bytes: &[u8], of: TextForm, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match (self.form, std::str::from_utf8(bytes)) {
            (BinaryForm::Base64, _) => of.text(&forms::base64(bytes), out),
            (BinaryForm::Text, Ok(text)) if self.is_given || !text.starts_with("0x") => {
                of.text(text, out)
            }
            (BinaryForm::Text, Err(_)) if self.is_given => {
                let text = format!("{} is not UTF-8, and --binary says text", hex(bytes));
                Err(ArrowError::CastError(text))
            }
            _ => of.text(&hex(bytes), out),
        }
    }
}

impl Values<'_> {
    /// Whether the value is null, itself or where it is found.
    pub(crate) fn is_null(&self, i: usize) -> bool {
        match &self.kind {
            _ if self.nulls.is_some_and(|nulls| nulls.is_null(i)) => true,
            CellKind::Null => true,
            CellKind::Indirect(to, values) => values.is_null(to(i)),
            _ => false,
        }
    }

    /// Whether values are texts, which may look like anything.
    pub(crate) fn are_texts(&self) -> bool {
        match &self.kind {
            CellKind::Text(_) => true,
            CellKind::Bytes(_, of) => of.form == BinaryForm::Text,
            CellKind::Indirect(_, values) => values.are_texts(),
            _ => false,
        }
    }

    /// Whether the text of a value may need quotes in CSV.
    pub(crate) fn may_need_quotes(&self) -> bool {
        !matches!(self.kind, CellKind::Bare(_) | CellKind::Quoted(_))
    }

    /// Appends the value as JSON.
    ///
    /// # Errors
    /// If Arrow cannot format the value.
    pub(crate) fn json(&self, i: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self.is_null(i) {
            true => out.extend_from_slice(b"null"),
            false => self.write(i, TextForm::Json, out)?,
        }
        Ok(())
    }

    /// The value as JSON.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) fn raw_json(&self, i: usize) -> Result<Box<RawValue>, ArrowError> {
        let mut out = Vec::new();
        self.json(i, &mut out)?;
        let text = String::from_utf8(out).map_err(|e| ArrowError::CastError(e.to_string()))?;
        RawValue::from_string(text).map_err(|e| ArrowError::JsonError(e.to_string()))
    }

    /// Appends the value for a cell: text without quotes, nested values as JSON. False for null,
    /// for which nothing is appended.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) fn cell(&self, i: usize, out: &mut Vec<u8>) -> Result<bool, ArrowError> {
        let is_value = !self.is_null(i);
        if is_value {
            self.write(i, TextForm::Cell, out)?;
        }
        Ok(is_value)
    }

    /// The value for a cell; nothing for null.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) fn text(&self, i: usize) -> Result<Option<String>, ArrowError> {
        let mut out = Vec::new();
        let is_value = self.cell(i, &mut out)?;
        let text = String::from_utf8(out).map_err(|e| ArrowError::CastError(e.to_string()))?;
        Ok(is_value.then_some(text))
    }

    /// The same for a table: geometries as well-known text.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) fn shown(&self, i: usize) -> Result<Option<String>, ArrowError> {
        match &self.kind {
            _ if self.is_null(i) => Ok(None),
            CellKind::Bytes(values, of) if of.is_wkb => match to_wkt(values(i), MAX_WKT) {
                Ok(text) => Ok(Some(text)),
                Err(_) => self.text(i),
            },
            CellKind::Indirect(to, values) => values.shown(to(i)),
            _ => self.text(i),
        }
    }

    /// Appends a value that is not null.
    fn write(&self, i: usize, form: TextForm, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match &self.kind {
            CellKind::Null => out.extend_from_slice(b"null"),
            CellKind::Bare(write) => write(i, out),
            CellKind::Quoted(write) => match form {
                TextForm::Cell => write(i, out),
                TextForm::Json => {
                    out.push(b'"');
                    write(i, out);
                    out.push(b'"');
                }
            },
            CellKind::Text(values) => form.text(values(i), out)?,
            CellKind::Other(write) => write(i, form, out)?,
            CellKind::Bytes(values, of) => of.write(values(i), form, out)?,
            CellKind::List(range, values) => {
                out.push(b'[');
                for (n, i) in range(i).enumerate() {
                    if n > 0 {
                        out.push(b',');
                    }
                    values.json(i, out)?;
                }
                out.push(b']');
            }
            CellKind::Map(offsets, form, pair) => {
                let entries = span(offsets[i], offsets[i + 1]);
                match form {
                    MapForm::Object if pair[0].are_names(entries.clone()) => {
                        write_object(entries, pair, out)?;
                    }
                    _ => write_pairs(entries, pair, out)?,
                }
            }
            CellKind::Struct(columns) => {
                out.push(b'{');
                for (n, (name, values)) in columns.iter().enumerate() {
                    if n > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(name.as_bytes());
                    out.push(b':');
                    values.json(i, out)?;
                }
                out.push(b'}');
            }
            CellKind::Variant(values) => {
                let mut text = String::new();
                values.write_json(i, &mut text)?;
                out.extend_from_slice(text.as_bytes());
            }
            CellKind::Indirect(to, values) => values.write(to(i), form, out)?,
        }
        Ok(())
    }

    /// The value, if it is a text.
    fn name(&self, i: usize) -> Option<&str> {
        match &self.kind {
            _ if self.is_null(i) => None,
            CellKind::Text(values) => Some(values(i)),
            CellKind::Indirect(to, values) => values.name(to(i)),
            _ => None,
        }
    }

    /// Whether these values can name the members of one object: texts, each once.
    fn are_names(&self, range: Range<usize>) -> bool {
        if !matches!(self.kind, CellKind::Text(_) | CellKind::Indirect(..)) {
            return false;
        }
        let mut seen = HashSet::new();
        range.into_iter().all(|i| self.name(i).is_some_and(|name| seen.insert(name)))
    }
}

fn write_object(
    entries: Range<usize>,
    [keys, values]: &[Values<'_>; 2],
    out: &mut Vec<u8>,
) -> Result<(), ArrowError> {
    out.push(b'{');
    for (n, i) in entries.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        keys.json(i, out)?;
        out.push(b':');
        values.json(i, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Keys of any type, also those that are there twice.
fn write_pairs(
    entries: Range<usize>,
    [keys, values]: &[Values<'_>; 2],
    out: &mut Vec<u8>,
) -> Result<(), ArrowError> {
    out.push(b'[');
    for (n, i) in entries.enumerate() {
        out.extend_from_slice(if n > 0 { b",{\"key\":" } else { b"{\"key\":" });
        keys.json(i, out)?;
        out.extend_from_slice(b",\"value\":");
        values.json(i, out)?;
        out.push(b'}');
    }
    out.push(b']');
    Ok(())
}

/// Maximum characters of the text of a geometry, because many have thousands.
const MAX_WKT: usize = 100;

/// The purpose of the text of a value.
#[derive(Clone, Copy)]
enum TextForm {
    Json,
    Cell,
}

impl TextForm {
    fn text(self, text: &str, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::Json => numbers::json_text(text, out),
            Self::Cell => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }

    /// Writes a float, or in quotes the word for a value that JSON has no number for; `write`
    /// decides which.
    fn float(
        self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<(), ArrowError> {
        let at = out.len();
        if !write(out) && matches!(self, Self::Json) {
            out.insert(at, b'"');
            out.push(b'"');
        }
        Ok(())
    }
}

fn formatter(array: &dyn Array) -> Result<ArrayFormatter<'_>, ArrowError> {
    ArrayFormatter::try_new(array, &FormatOptions::new().with_display_error(false))
}

/// Offsets of Arrow are not negative.
fn span<O: TryInto<usize>>(from: O, to: O) -> Range<usize> {
    from.try_into().unwrap_or_default()..to.try_into().unwrap_or_default()
}

/// Bytes as `0x…`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.map(|digit| char::from(DIGITS[usize::from(digit)]));
    ['0', 'x'].into_iter().chain(digits).collect()
}

/// The 16 bytes of a UUID with its dashes; other bytes as hex.
pub(crate) fn uuid(bytes: &[u8]) -> String {
    let hex = hex(bytes);
    let parts = [2..10, 10..14, 14..18, 18..22, 22..34].map(|part| hex.get(part));
    match parts {
        [Some(a), Some(b), Some(c), Some(d), Some(e)] if bytes.len() == 16 => {
            [a, b, c, d, e].join("-")
        }
        _ => hex,
    }
}
