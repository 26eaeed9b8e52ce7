//! Counts the values of a column in a [`Tally`]: numbers and times as words, texts and bytes as
//! they are, all others as JSON. Only the values that are shown become text.
//!
//! Trap: one JSON text may stand for several values, as that of bytes that are text and of bytes
//! that are not.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float64Array, StringArray,
    make_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use marquetry::engine::rows::dictionary_keys;
use marquetry::variant::VariantArray;
use serde_json::value::RawValue;

use super::tally::{Tally, Value};
use crate::args::{BinaryForm, DecimalForm, ValueForms};
use crate::cells::{Forms, ValuesOf, bytes_of, text_of};
use crate::json::{Json, Members};

/// How often the values of a column are there.
pub(super) struct ValueCounts {
    pub(super) tally: Tally,
    /// The type of the values; dictionaries count as their values.
    field: FieldRef,
    keys: Keys,
    forms: Forms,
    /// Counts by the keys of a dictionary, as long as the batches have the same.
    pending: Option<(ArrayRef, Vec<u64>)>,
}

/// How values are keys of the tally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Boolean,
    /// Integers and times with a sign, with this number of bytes.
    Signed(usize),
    Unsigned(usize),
    Float,
    Text,
    Bytes,
    /// Nested values with bytes inside, as JSON with these in hex: in other forms, bytes that
    /// differ may look alike.
    Json,
    /// As the JSON that is shown: other nested values, and where files have other types.
    Shown,
}

impl Keys {
    fn new(field: &Field) -> Self {
        match (field.data_type(), field.data_type().primitive_width()) {
            (DataType::Boolean, _) => Self::Boolean,
            (DataType::Interval(_), _) => Self::Shown,
            (other, Some(_)) if other.is_floating() => Self::Float,
            (other, Some(width)) if other.is_unsigned_integer() => Self::Unsigned(width),
            (_, Some(width @ ..=8)) => Self::Signed(width),
            (other, _) if other.is_string() => Self::Text,
            (other, _) if other.is_binary() => Self::Bytes,
            _ if holds_bytes(field) => Self::Json,
            _ => Self::Shown,
        }
    }
}

/// Whether bytes are in the values that have more than one form.
fn holds_bytes(field: &Field) -> bool {
    match field.data_type() {
        _ if has_one_form(field) => false,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::List(inside)
        | DataType::LargeList(inside)
        | DataType::ListView(inside)
        | DataType::LargeListView(inside)
        | DataType::FixedSizeList(inside, _)
        | DataType::Map(inside, _)
        | DataType::RunEndEncoded(_, inside) => holds_bytes(inside),
        DataType::Struct(fields) => fields.iter().any(|field| holds_bytes(field)),
        DataType::Dictionary(..) => holds_bytes(&values_field(field)),
        _ => false,
    }
}

/// Whether bytes have the same form everywhere: those of VARIANT values, and geometries.
fn has_one_form(field: &Field) -> bool {
    VariantArray::is_variant(field) || field.extension_type_name() == Some("geoarrow.wkb")
}

impl ValueCounts {
    pub(super) fn new(field: FieldRef) -> Self {
        let field = plain(&field);
        // As in all reports, decimals keep their digits.
        let forms = ValueForms { decimals: Some(DecimalForm::Text), ..ValueForms::default() };
        let keys = Keys::new(&field);
        Self { tally: Tally::default(), field, keys, forms: Forms::new(forms), pending: None }
    }

    /// Counts the values of a column; a value is null if it is, or if `nulls` says so.
    pub(super) fn add(
        &mut self,
        field: &FieldRef,
        column: &ArrayRef,
        nulls: Option<&NullBuffer>,
    ) -> Result<(), ArrowError> {
        let field = plain(field);
        if field.data_type() != self.field.data_type() && self.keys != Keys::Shown {
            // Values of two types are the same if they look so.
            self.flush()?;
            let forms = &self.forms;
            let (old, keys) = (&self.field, self.keys);
            self.tally.map(|value| {
                let as_text = is_text(value, old, keys)?;
                let text = json(value, old, keys, forms, as_text)?;
                Ok::<_, ArrowError>(Box::from(text.get().as_bytes()))
            })?;
            self.keys = Keys::Shown;
        }
        self.field = field;
        self.forms.look_at_column(column, &self.field);
        let nulls = NullBuffer::union(nulls, column.logical_nulls().as_ref());
        self.tally.nulls += nulls.as_ref().map_or(0, |nulls| nulls.null_count() as u64);
        let is_value = |i: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*i));
        let rows = (0..column.len()).filter(is_value);
        let Some(dictionary) = column.as_any_dictionary_opt() else {
            return self.count(column, rows.map(|i| (i, 1)));
        };
        let values = dictionary.values();
        if self.pending.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, values)) {
            self.flush()?;
            self.pending = Some((values.clone(), vec![0; values.len()]));
        }
        if let Some((_, counts)) = &mut self.pending {
            let keys = dictionary_keys(dictionary);
            rows.for_each(|i| counts[keys[i]] += 1);
        }
        Ok(())
    }

    /// Counts what was counted by the keys of a dictionary.
    pub(super) fn flush(&mut self) -> Result<(), ArrowError> {
        let Some((values, counts)) = self.pending.take() else { return Ok(()) };
        self.count(&values, counts.into_iter().enumerate().filter(|(_, times)| *times > 0))
    }

    /// Counts some values, none of them null, each with its number of occurrences.
    fn count(
        &mut self,
        values: &ArrayRef,
        rows: impl Iterator<Item = (usize, u64)>,
    ) -> Result<(), ArrowError> {
        let (tally, data) = (&mut self.tally, values.to_data());
        macro_rules! words {
            ($type:ty, $word:expr) => {{
                let (values, word) = (data.buffer::<$type>(0), $word);
                rows.for_each(|(i, times)| tally.add_word(word(values[i].into()), times));
            }};
        }
        macro_rules! bytes {
            ($array:expr) => {{
                let values = $array;
                rows.for_each(|(i, times)| tally.add_bytes(values.value(i).as_ref(), times));
            }};
        }
        let signed = |value: i64| value.cast_unsigned() ^ SIGN;
        let unsigned = |value: u64| value;
        match (self.keys, values.data_type()) {
            (Keys::Boolean, _) => {
                let values = values.as_boolean();
                rows.for_each(|(i, times)| tally.add_word(values.value(i).into(), times));
            }
            (Keys::Signed(1), _) => words!(i8, signed),
            (Keys::Signed(2), _) => words!(i16, signed),
            (Keys::Signed(4), _) => words!(i32, signed),
            (Keys::Signed(_), _) => words!(i64, signed),
            (Keys::Unsigned(1), _) => words!(u8, unsigned),
            (Keys::Unsigned(2), _) => words!(u16, unsigned),
            (Keys::Unsigned(4), _) => words!(u32, unsigned),
            (Keys::Unsigned(_), _) => words!(u64, unsigned),
            (Keys::Float, DataType::Float16) => words!(half::f16, word_of_float),
            (Keys::Float, DataType::Float32) => words!(f32, word_of_float),
            (Keys::Float, _) => words!(f64, word_of_float),
            (Keys::Text, DataType::Utf8) => bytes!(values.as_string::<i32>()),
            (Keys::Text, DataType::LargeUtf8) => bytes!(values.as_string::<i64>()),
            (Keys::Text, _) => bytes!(values.as_string_view()),
            (Keys::Bytes, DataType::Binary) => bytes!(values.as_binary::<i32>()),
            (Keys::Bytes, DataType::LargeBinary) => bytes!(values.as_binary::<i64>()),
            (Keys::Bytes, DataType::BinaryView) => bytes!(values.as_binary_view()),
            (Keys::Bytes, _) => bytes!(values.as_fixed_size_binary()),
            (Keys::Json | Keys::Shown, _) => {
                let hex = (self.keys == Keys::Json).then(|| {
                    let binary = Some(BinaryForm::Hex);
                    Forms::new(ValueForms { binary, ..self.forms.values })
                });
                let forms = hex.as_ref().unwrap_or(&self.forms);
                let values = ValuesOf::new(forms).column(values, &self.field)?;
                let mut text = Vec::new();
                for (i, times) in rows {
                    text.clear();
                    values.json(i, &mut text)?;
                    tally.add_bytes(&text, times);
                }
            }
        }
        Ok(())
    }

    /// The most frequent values as JSON, with their counts. Bytes in nested values are text where
    /// all that are shown are.
    pub(super) fn most_frequent(&self, n: usize) -> Result<Vec<(Box<RawValue>, u64)>, ArrowError> {
        let found = self.tally.most_frequent(n);
        let mut as_text = true;
        for (value, _) in &found {
            as_text &= is_text(value, &self.field, self.keys)?;
        }
        let json = |value| json(value, &self.field, self.keys, &self.forms, as_text);
        found.into_iter().map(|(value, count)| Ok((json(value)?, count))).collect()
    }
}

/// Whether all bytes in a nested value are text, and none looks like hex.
fn is_text(value: &Value, field: &Field, keys: Keys) -> Result<bool, ArrowError> {
    let (Keys::Json, Value::Bytes(key)) = (keys, value) else { return Ok(true) };
    let mut is_text = true;
    let mut look = |bytes: &[u8]| {
        is_text &= text_of(bytes).is_some_and(|text| !text.starts_with("0x"));
        None
    };
    write_with_bytes(&raw(key)?, field, &mut look, &mut String::new())?;
    Ok(is_text)
}

fn raw(json: &[u8]) -> Result<Box<RawValue>, ArrowError> {
    RawValue::from_string(String::from_utf8_lossy(json).into_owned()).map_err(failed)
}

fn failed(error: serde_json::Error) -> ArrowError {
    ArrowError::JsonError(error.to_string())
}

/// Appends a value, in whose JSON bytes are hex, with the text that `shown` returns in their place;
/// as they are if it returns none.
fn write_with_bytes(
    value: &RawValue,
    field: &Field,
    shown: &mut dyn FnMut(&[u8]) -> Option<String>,
    out: &mut String,
) -> Result<(), ArrowError> {
    match (field.data_type(), Json::new(value).map_err(failed)?) {
        _ if has_one_form(field) => out.push_str(value.get()),
        (DataType::Dictionary(..), _) => {
            write_with_bytes(value, &values_field(field), shown, out)?;
        }
        (DataType::RunEndEncoded(_, values), _) => write_with_bytes(value, values, shown, out)?,
        (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, Json::Text(hex)) => {
            let bytes = bytes_of(&hex, Some(BinaryForm::Hex)).map_err(ArrowError::JsonError)?;
            match shown(&bytes) {
                Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
                None => out.push_str(value.get()),
            }
        }
        (
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _),
            Json::Array(items),
        ) => {
            out.push('[');
            for (i, value) in items.into_iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_with_bytes(value, item, shown, out)?;
            }
            out.push(']');
        }
        (DataType::Map(entries, _), Json::Array(pairs)) => {
            out.push('[');
            for (i, pair) in pairs.into_iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_with_bytes(pair, entries, shown, out)?;
            }
            out.push(']');
        }
        (DataType::Map(entries, _), Json::Object(members)) => {
            let DataType::Struct(pair) = entries.data_type() else { return Ok(()) };
            let values = pair.get(1).into_iter().cycle();
            write_object(members, values, shown, out)?;
        }
        (DataType::Struct(fields), Json::Object(members)) => {
            write_object(members, fields.iter(), shown, out)?;
        }
        _ => out.push_str(value.get()),
    }
    Ok(())
}

/// Appends an object of these members, each with its field.
fn write_object<'a>(
    members: Members<'_>,
    fields: impl Iterator<Item = &'a FieldRef>,
    shown: &mut dyn FnMut(&[u8]) -> Option<String>,
    out: &mut String,
) -> Result<(), ArrowError> {
    out.push('{');
    for (i, ((name, value), field)) in members.into_iter().zip(fields).enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        out.push_str(&serde_json::Value::from(name).to_string());
        out.push(':');
        write_with_bytes(value, field, shown, out)?;
    }
    out.push('}');
    Ok(())
}

/// A value of the tally as JSON; `as_text` says whether bytes in a nested value are text.
fn json(
    value: &Value,
    field: &Field,
    keys: Keys,
    forms: &Forms,
    as_text: bool,
) -> Result<Box<RawValue>, ArrowError> {
    let of_width = |width: usize, word: u64| -> Result<ArrayRef, ArrowError> {
        #[expect(clippy::cast_possible_truncation, reason = "the low bytes of the word are meant")]
        let bytes = match width {
            1 => Buffer::from_vec(vec![word as u8]),
            2 => Buffer::from_vec(vec![word as u16]),
            4 => Buffer::from_vec(vec![word as u32]),
            _ => Buffer::from_vec(vec![word]),
        };
        let data = ArrayData::builder(field.data_type().clone()).len(1).add_buffer(bytes);
        Ok(make_array(data.build()?))
    };
    let array: ArrayRef = match (keys, value) {
        (Keys::Boolean, Value::Word(word)) => Arc::new(BooleanArray::from(vec![*word != 0])),
        (Keys::Signed(width), Value::Word(word)) => of_width(width, word ^ SIGN)?,
        (Keys::Unsigned(width), Value::Word(word)) => of_width(width, *word)?,
        (_, Value::Word(word)) => {
            cast(&Float64Array::from(vec![float_of_word(*word)]), field.data_type())?
        }
        (Keys::Text, Value::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            cast(&StringArray::from(vec![text]), field.data_type())?
        }
        (Keys::Bytes, Value::Bytes(bytes)) => match field.data_type() {
            DataType::FixedSizeBinary(_) => {
                Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter())?)
            }
            other => cast(&BinaryArray::from_iter_values([bytes]), other)?,
        },
        (Keys::Json, Value::Bytes(bytes)) if as_text => {
            let mut out = String::new();
            let mut shown = |bytes: &[u8]| text_of(bytes).map(str::to_owned);
            write_with_bytes(&raw(bytes)?, field, &mut shown, &mut out)?;
            return RawValue::from_string(out).map_err(failed);
        }
        (_, Value::Bytes(bytes)) => return raw(bytes),
    };
    ValuesOf::new(forms).column(&array, field)?.raw_json(0)
}

/// The field of the values of a dictionary; of other values the same.
fn values_field(field: &Field) -> Field {
    match field.data_type() {
        DataType::Dictionary(_, value) => field.clone().with_data_type((**value).clone()),
        _ => field.clone(),
    }
}

fn plain(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Dictionary(..) => Arc::new(values_field(field)),
        _ => field.clone(),
    }
}

/// The highest bit: turned over, words are in the order of numbers with a sign.
const SIGN: u64 = 1 << 63;

/// A word in the order of the floats; all NaN are one.
fn word_of_float(value: f64) -> u64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn float_of_word(word: u64) -> f64 {
    f64::from_bits(if word & SIGN == 0 { !word } else { word ^ SIGN })
}
