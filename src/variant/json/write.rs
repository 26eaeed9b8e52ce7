//! [`Variant::to_json`] formats a value as JSON text, by serde_json.

use std::cell::Cell;
use std::io;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Error as _, SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::value::RawValue;

use crate::calendar::TimeText;
use crate::error::{Error, LimitKind, Result};
use crate::limits::Growth;
use crate::variant::Variant;

/// Maximum bytes of the text of one value.
const MAX_BYTES: usize = 256 << 20;

impl Variant<'_> {
    /// The value as JSON text, without blanks.
    ///
    /// Integers and decimals are numbers with all their digits. Floats and doubles are the shortest
    /// numbers that parse to the same value; `"NaN"`, `"Infinity"` and `"-Infinity"` are texts.
    /// Dates are `"2024-01-31"`, times `"12:34:56.789"`, timestamps `"2024-01-31T12:34:56.789Z"`,
    /// without `Z` where they have no time zone; fractions of seconds have 3, 6 or 9 digits, or are
    /// left out. Bytes are base64, UUIDs their usual text. The fields of an object are in the order
    /// of their names.
    ///
    /// # Errors
    /// As [`Variant::new`], for values inside objects and arrays. `Limit(Memory)` if the text takes
    /// more than 256 MiB: a small value can have such a text, because a name is stored once and
    /// written at each reference.
    pub fn to_json(&self) -> Result<String> {
        let mut out = String::new();
        self.write_json(&mut out)?;
        Ok(out)
    }

    /// Like [`to_json`](Self::to_json), with a line for each value, indented by two spaces per
    /// level.
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json).
    pub fn to_json_pretty(&self) -> Result<String> {
        let mut out = String::new();
        write(self, &mut out, PrettyFormatter::new(), (MAX_BYTES, Growth::UNLIMITED))?;
        Ok(out)
    }

    /// Appends the text of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json); `out` is then unchanged.
    pub fn write_json(&self, out: &mut String) -> Result<()> {
        let max = out.len().saturating_add(MAX_BYTES);
        self.write_json_within(out, max, Growth::UNLIMITED)
    }

    /// The same, as long as `out` has no more than `max` bytes; `growth` counts them.
    pub(in crate::variant) fn write_json_within(
        &self,
        out: &mut String,
        max: usize,
        growth: &Growth,
    ) -> Result<()> {
        let len = out.len();
        let written = write(self, out, CompactFormatter, (max, growth));
        if written.is_err() {
            out.truncate(len);
        }
        written
    }
}

/// Appends the text of a value, as long as `out` has no more than `max` bytes.
fn write(
    value: &Variant<'_>,
    out: &mut String,
    layout: impl Formatter,
    (max, growth): (usize, &Growth),
) -> Result<()> {
    let error = Cell::new(None);
    let target = JsonTarget { out, max, growth };
    let mut json = serde_json::Serializer::with_formatter(target, layout);
    // Without an error of a value, it is the target that refused to grow.
    JsonValue { value, error: &error }
        .serialize(&mut json)
        .map_err(|_| error.take().unwrap_or_else(too_long))
}

#[cold]
fn too_long() -> Error {
    Error::limit(
        LimitKind::Memory,
        "the JSON text of VARIANT values takes more memory than it may: read fewer rows at a time, \
         or the values as they are",
    )
}

/// A string that the output of serde_json is appended to.
struct JsonTarget<'a> {
    out: &'a mut String,
    /// Maximum bytes of the string.
    max: usize,
    growth: &'a Growth,
}

impl io::Write for JsonTarget<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let has_room = self.max.saturating_sub(self.out.len()) >= bytes.len();
        if !has_room || self.growth.room_for_text(self.out, bytes.len()).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.out.push_str(str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A value, as serde_json takes it.
struct JsonValue<'a, 'v> {
    value: &'a Variant<'v>,
    /// Why a value inside could not be read: serde's errors are texts.
    error: &'a Cell<Option<Error>>,
}

impl JsonValue<'_, '_> {
    /// Keeps the error of a value inside.
    fn unreadable<E: serde::ser::Error>(&self, error: Error) -> E {
        self.error.set(Some(error));
        E::custom("a value cannot be read")
    }
}

impl Serialize for JsonValue<'_, '_> {
    fn serialize<S: Serializer>(&self, json: S) -> std::result::Result<S::Ok, S::Error> {
        match self.value {
            Variant::Object(object) => {
                let mut map = json.serialize_map(Some(object.len()))?;
                for field in object.iter() {
                    let (name, value) = field.map_err(|error| self.unreadable(error))?;
                    map.serialize_entry(name, &JsonValue { value: &value, error: self.error })?;
                }
                map.end()
            }
            Variant::List(list) => {
                let mut seq = json.serialize_seq(Some(list.len()))?;
                for value in list.iter() {
                    let value = value.map_err(|error| self.unreadable(error))?;
                    seq.serialize_element(&JsonValue { value: &value, error: self.error })?;
                }
                seq.end()
            }
            scalar => serialize_scalar(scalar, json),
        }
    }
}

fn serialize_scalar<S: Serializer>(
    value: &Variant<'_>,
    json: S,
) -> std::result::Result<S::Ok, S::Error> {
    match *value {
        Variant::Boolean(v) => json.serialize_bool(v),
        Variant::Int8(v) => json.serialize_i8(v),
        Variant::Int16(v) => json.serialize_i16(v),
        Variant::Int32(v) => json.serialize_i32(v),
        Variant::Int64(v) => json.serialize_i64(v),
        Variant::Float(v) if v.is_finite() => json.serialize_f32(v),
        Variant::Float(v) => json.serialize_str(not_finite(v.into())),
        Variant::Double(v) if v.is_finite() => json.serialize_f64(v),
        Variant::Double(v) => json.serialize_str(not_finite(v)),
        Variant::Decimal(digits, scale) => {
            RawValue::from_string(decimal(digits, scale)).map_err(S::Error::custom)?.serialize(json)
        }
        Variant::Date(days) => json.serialize_str(TimeText::date(days.into()).as_str()),
        Variant::TimestampMicros(v) => timestamp(v, 6, "Z", json),
        Variant::TimestampNtzMicros(v) => timestamp(v, 6, "", json),
        Variant::TimestampNanos(v) => timestamp(v, 9, "Z", json),
        Variant::TimestampNtzNanos(v) => timestamp(v, 9, "", json),
        Variant::TimeMicros(v) => {
            let time = TimeText::time(v.unsigned_abs(), 6);
            let sign = if v < 0 { "-" } else { "" };
            json.collect_str(&format_args!("{sign}{}", time.as_str()))
        }
        Variant::Binary(bytes) => json.collect_str(&Base64Display::new(bytes, &STANDARD)),
        Variant::String(value) => json.serialize_str(value),
        Variant::Uuid(bytes) => json.serialize_str(&uuid(bytes)),
        // The others are not scalars.
        Variant::Null | Variant::Object(_) | Variant::List(_) => json.serialize_unit(),
    }
}

fn not_finite(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "NaN",
        v if v > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

/// All digits of a decimal, with a zero in front of the point at least.
fn decimal(digits: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if digits < 0 { "-" } else { "" };
    let mut text = format!("{sign}{:0width$}", digits.unsigned_abs(), width = scale + 1);
    if scale > 0 {
        text.insert(text.len() - scale, '.');
    }
    text
}

fn timestamp<S: Serializer>(
    units: i64,
    digits: u32,
    zone: &str,
    json: S,
) -> std::result::Result<S::Ok, S::Error> {
    let time = TimeText::timestamp(units, digits, b'T');
    json.collect_str(&format_args!("{}{zone}", time.as_str()))
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut text = format!("{:032x}", u128::from_be_bytes(bytes));
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}
