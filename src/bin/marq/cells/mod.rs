//! The values of arrays as JSON, and as text for tables and CSV.
//!
//! Numbers are numbers where JSON can hold them, decimals are strings with all their digits, bytes
//! are hex, UUIDs have their dashes, dates and times are text in ISO 8601. VARIANT values are shown
//! as JSON.

mod time;

use std::io::Write;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, types};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field};
use marquetry::geo::to_wkt;
use marquetry::variant::VariantArray;

/// The values of an array, each as text on demand.
pub(crate) struct Values<'a> {
    array: &'a dyn Array,
    kind: CellKind<'a>,
}

enum CellKind<'a> {
    Null,
    /// What JSON writes without quotes: booleans and integers.
    Bare(ArrayFormatter<'a>),
    Float(Box<dyn Fn(usize) -> String + 'a>),
    Text(Box<dyn Fn(usize) -> &'a str + 'a>),
    Bytes(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    Uuid(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    /// Geometries.
    Wkb(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    /// Dates, times, durations; none where Arrow knows no such time zone.
    Time(Option<ArrayFormatter<'a>>),
    /// Decimals, intervals, and what else Arrow has a text for.
    Other(ArrayFormatter<'a>),
    List(Box<dyn Fn(usize) -> Range<usize> + 'a>, Box<Values<'a>>),
    Map(&'a [i32], Box<[Values<'a>; 2]>),
    /// The names as JSON, and the values.
    Struct(Vec<(String, Values<'a>)>),
    Variant(Box<VariantArray>),
    /// Values that are looked up by an index: dictionaries and run ends.
    Indirect(Box<dyn Fn(usize) -> usize + 'a>, Box<Values<'a>>),
}

impl<'a> Values<'a> {
    /// The values of `array`, which `field` describes.
    ///
    /// # Errors
    /// If Arrow cannot format the type, or a VARIANT column is malformed.
    pub(crate) fn new(array: &'a dyn Array, field: &Field) -> Result<Self, ArrowError> {
        if let Some(group) = array.as_struct_opt()
            && VariantArray::is_variant(field)
            // Of which only other columns are read, it is shown as they are.
            && group.column_by_name("metadata").is_some()
        {
            let kind = CellKind::Variant(Box::new(VariantArray::new(group)?));
            return Ok(Self { array, kind });
        }
        Self::of(array, field.data_type(), field.extension_type_name())
    }

    fn of(
        array: &'a dyn Array,
        shown: &DataType,
        extension: Option<&str>,
    ) -> Result<Self, ArrowError> {
        let uuid = extension == Some("arrow.uuid");
        let wkb = extension == Some("geoarrow.wkb");
        macro_rules! floats {
            ($type:ty, $to:expr) => {{
                let values = array.as_primitive::<$type>().values();
                CellKind::Float(Box::new(move |i| $to(values[i])))
            }};
        }
        macro_rules! texts {
            ($kind:ident, $array:expr) => {{
                let array = $array;
                CellKind::$kind(Box::new(move |i| array.value(i)))
            }};
        }
        macro_rules! runs {
            ($type:ty, $values:expr) => {{
                let runs = array.as_run::<$type>();
                let values = Self::of(runs.values(), $values.data_type(), extension)?;
                CellKind::Indirect(Box::new(move |i| runs.get_physical_index(i)), Box::new(values))
            }};
        }
        let kind = match array.data_type() {
            DataType::Null => CellKind::Null,
            DataType::Boolean => CellKind::Bare(formatter(array)?),
            integer if integer.is_integer() => CellKind::Bare(formatter(array)?),
            DataType::Float16 => floats!(types::Float16Type, |v: half::f16| float(v.to_f64())),
            DataType::Float32 => floats!(types::Float32Type, float32),
            DataType::Float64 => floats!(types::Float64Type, float),
            DataType::Utf8 => texts!(Text, array.as_string::<i32>()),
            DataType::LargeUtf8 => texts!(Text, array.as_string::<i64>()),
            DataType::Utf8View => texts!(Text, array.as_string_view()),
            DataType::Binary if wkb => texts!(Wkb, array.as_binary::<i32>()),
            DataType::LargeBinary if wkb => texts!(Wkb, array.as_binary::<i64>()),
            DataType::BinaryView if wkb => texts!(Wkb, array.as_binary_view()),
            DataType::Binary => texts!(Bytes, array.as_binary::<i32>()),
            DataType::LargeBinary => texts!(Bytes, array.as_binary::<i64>()),
            DataType::BinaryView => texts!(Bytes, array.as_binary_view()),
            DataType::FixedSizeBinary(16) if uuid => texts!(Uuid, array.as_fixed_size_binary()),
            DataType::FixedSizeBinary(_) => texts!(Bytes, array.as_fixed_size_binary()),
            DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => CellKind::Time(formatter(array).ok()),
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..) => list(array, shown)?,
            DataType::Map(..) => map(array, shown)?,
            DataType::Struct(_) => {
                let DataType::Struct(fields) = shown else {
                    return Err(ArrowError::SchemaError(format!("a struct shown as {shown}")));
                };
                let columns = fields.iter().zip(array.as_struct().columns());
                let child = |(field, column): (&'_ arrow_schema::FieldRef, &'a ArrayRef)| {
                    let name = serde_json::Value::from(field.name().as_str()).to_string();
                    Ok::<_, ArrowError>((name, Self::new(column, field)?))
                };
                CellKind::Struct(columns.map(child).collect::<Result<_, _>>()?)
            }
            DataType::Dictionary(_, value) => {
                let dictionary = array.as_any_dictionary();
                let of = match shown {
                    DataType::Dictionary(_, of) => of,
                    _ => value,
                };
                let keys = dictionary.normalized_keys();
                let values = Self::of(dictionary.values(), of, extension)?;
                CellKind::Indirect(Box::new(move |i| keys[i]), Box::new(values))
            }
            DataType::RunEndEncoded(ends, values) => match ends.data_type() {
                DataType::Int16 => runs!(types::Int16Type, values),
                DataType::Int32 => runs!(types::Int32Type, values),
                _ => runs!(types::Int64Type, values),
            },
            _ => CellKind::Other(formatter(array)?),
        };
        Ok(Self { array, kind })
    }

    /// Whether the value is null, itself or where it is found.
    pub(crate) fn is_null(&self, i: usize) -> bool {
        match &self.kind {
            _ if self.array.is_null(i) => true,
            CellKind::Null => true,
            CellKind::Indirect(to, values) => values.is_null(to(i)),
            _ => false,
        }
    }

    /// Whether values are texts, which may look like anything.
    pub(crate) fn are_texts(&self) -> bool {
        match &self.kind {
            CellKind::Text(_) => true,
            CellKind::Indirect(_, values) => values.are_texts(),
            _ => false,
        }
    }

    /// Writes the value as JSON.
    ///
    /// # Errors
    /// If Arrow cannot format the value.
    pub(crate) fn json(&self, i: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        self.write(i, TextForm::Json, out)
    }

    /// The value for a cell: text without quotes, nested values as JSON; nothing for null.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) fn text(&self, i: usize) -> Result<Option<String>, ArrowError> {
        if self.is_null(i) {
            return Ok(None);
        }
        let mut out = Vec::new();
        self.write(i, TextForm::Cell, &mut out)?;
        Ok(Some(String::from_utf8(out).map_err(|e| ArrowError::CastError(e.to_string()))?))
    }

    /// The same for a table: geometries as well-known text.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) fn shown(&self, i: usize) -> Result<Option<String>, ArrowError> {
        match &self.kind {
            _ if self.is_null(i) => Ok(None),
            CellKind::Wkb(values) => match to_wkt(values(i), MAX_WKT) {
                Ok(text) => Ok(Some(text)),
                Err(_) => self.text(i),
            },
            CellKind::Indirect(to, values) => values.shown(to(i)),
            _ => self.text(i),
        }
    }

    fn write(&self, i: usize, form: TextForm, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.is_null(i) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.kind {
            CellKind::Null => out.extend_from_slice(b"null"),
            CellKind::Bare(values) => write!(out, "{}", values.value(i))?,
            CellKind::Float(values) => {
                let text = values(i);
                // JSON has no NaN and no infinities.
                let word = !text.ends_with(|c: char| c.is_ascii_digit());
                if word { form.text(&text, out)? } else { out.extend_from_slice(text.as_bytes()) }
            }
            CellKind::Text(values) => form.text(values(i), out)?,
            CellKind::Bytes(values) | CellKind::Wkb(values) => form.text(&hex(values(i)), out)?,
            CellKind::Uuid(values) => form.text(&uuid(values(i)), out)?,
            CellKind::Time(values) => {
                let text = match values {
                    Some(values) if !time::is_far(self.array, i) => {
                        values.value(i).try_to_string().ok()
                    }
                    _ => None,
                };
                match text.filter(|text| !text.starts_with('<')) {
                    Some(text) => form.text(&text, out)?,
                    None => form.text(&time::text(self.array, i)?, out)?,
                }
            }
            CellKind::Other(values) => form.text(&values.value(i).try_to_string()?, out)?,
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
            // Keys may be of any type, and may occur twice.
            CellKind::Map(offsets, pair) => {
                out.push(b'[');
                let entries = span(offsets[i], offsets[i + 1]);
                for (n, i) in entries.enumerate() {
                    out.extend_from_slice(if n > 0 { b",{\"key\":" } else { b"{\"key\":" });
                    pair[0].json(i, out)?;
                    out.extend_from_slice(b",\"value\":");
                    pair[1].json(i, out)?;
                    out.push(b'}');
                }
                out.push(b']');
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
}

/// Characters of the text of a geometry: enough to tell it from others, and many have thousands.
const MAX_WKT: usize = 100;

/// What the text of a value is for.
#[derive(Clone, Copy)]
enum TextForm {
    Json,
    Cell,
}

impl TextForm {
    fn text(self, text: &str, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::Json => {
                serde_json::to_writer(out, text).map_err(|e| ArrowError::JsonError(e.to_string()))
            }
            Self::Cell => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }
}

fn list<'a>(array: &'a dyn Array, shown: &DataType) -> Result<CellKind<'a>, ArrowError> {
    let child = |values: &'a ArrayRef| -> Result<Box<Values<'a>>, ArrowError> {
        let field = match shown {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => item,
            other => return Err(ArrowError::SchemaError(format!("a list shown as {other}"))),
        };
        Ok(Box::new(Values::new(values, field)?))
    };
    Ok(match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            CellKind::List(Box::new(|i| span(offsets[i], offsets[i + 1])), child(list.values())?)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets();
            CellKind::List(Box::new(|i| span(offsets[i], offsets[i + 1])), child(list.values())?)
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let (starts, sizes) = (list.value_offsets(), list.value_sizes());
            let range = |i| span(starts[i], starts[i] + sizes[i]);
            CellKind::List(Box::new(range), child(list.values())?)
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let (starts, sizes) = (list.value_offsets(), list.value_sizes());
            let range = |i| span(starts[i], starts[i] + sizes[i]);
            CellKind::List(Box::new(range), child(list.values())?)
        }
        _ => {
            let list = array.as_fixed_size_list();
            let size = usize::try_from(list.value_length()).unwrap_or_default();
            CellKind::List(Box::new(move |i| i * size..(i + 1) * size), child(list.values())?)
        }
    })
}

fn map<'a>(array: &'a dyn Array, shown: &DataType) -> Result<CellKind<'a>, ArrowError> {
    let map = array.as_map();
    let of_entries = match shown {
        DataType::Map(entries, _) => entries.data_type(),
        _ => map.entries().data_type(),
    };
    let DataType::Struct(fields) = of_entries else {
        return Err(ArrowError::SchemaError(format!("a map shown as {shown}")));
    };
    let mut pair = fields.iter().zip(map.entries().columns()).map(|(f, c)| Values::new(c, f));
    let (Some(key), Some(value)) = (pair.next(), pair.next()) else {
        return Err(ArrowError::SchemaError("a map without keys and values".to_owned()));
    };
    Ok(CellKind::Map(map.value_offsets(), Box::new([key?, value?])))
}

fn formatter(array: &dyn Array) -> Result<ArrayFormatter<'_>, ArrowError> {
    ArrayFormatter::try_new(array, &FormatOptions::new().with_display_error(false))
}

/// Offsets of Arrow are not negative.
fn span<O: TryInto<usize>>(from: O, to: O) -> Range<usize> {
    from.try_into().unwrap_or_default()..to.try_into().unwrap_or_default()
}

fn float(value: f64) -> String {
    match serde_json::Number::from_f64(value) {
        Some(number) => number.to_string(),
        None if value.is_nan() => "NaN".to_owned(),
        None => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
    }
}

/// The shortest text that is this float, not the double that it widens to.
fn float32(value: f32) -> String {
    value.to_string().parse().map_or_else(|_| float(f64::from(value)), float)
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
