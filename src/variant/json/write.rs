//! [`Variant::to_json`] formats a value as JSON text.

use std::fmt::Write as _;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::plain::plain_end;
use crate::calendar::TimeText;
use crate::error::{Error, LimitKind, Result};
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
        write(&mut out, self, &mut Indentation::Lines { depth: 0 }, MAX_BYTES)?;
        Ok(out)
    }

    /// Appends the text of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json); `out` is then unchanged.
    pub fn write_json(&self, out: &mut String) -> Result<()> {
        self.write_json_within(out, out.len().saturating_add(MAX_BYTES))
    }

    /// The same, as long as `out` has no more than `max` bytes.
    pub(in crate::variant) fn write_json_within(&self, out: &mut String, max: usize) -> Result<()> {
        let len = out.len();
        let written = write(out, self, &mut Indentation::Compact, max);
        if written.is_err() {
            out.truncate(len);
        }
        written
    }
}

/// Appends a finite number. serde_json finds the shortest that is read back as it is.
macro_rules! number {
    ($out:expr, $value:expr) => {
        serde_json::to_writer(JsonTarget($out), $value).expect("a finite number is JSON")
    };
}

/// White space between values.
enum Indentation {
    Compact,
    Lines { depth: usize },
}

impl Indentation {
    fn begin(&mut self, out: &mut String, bracket: char) {
        out.push(bracket);
        if let Self::Lines { depth } = self {
            *depth += 1;
        }
    }

    fn element(&self, out: &mut String, is_first: bool) {
        if !is_first {
            out.push(',');
        }
        self.line(out);
    }

    fn line(&self, out: &mut String) {
        if let Self::Lines { depth } = self {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", *depth));
        }
    }

    fn end(&mut self, out: &mut String, bracket: char, is_empty: bool) {
        if let Self::Lines { depth } = self {
            *depth -= 1;
        }
        if !is_empty {
            self.line(out);
        }
        out.push(bracket);
    }
}

fn write(
    out: &mut String,
    value: &Variant<'_>,
    layout: &mut Indentation,
    max: usize,
) -> Result<()> {
    match value {
        Variant::Object(object) => {
            layout.begin(out, '{');
            for (i, field) in object.iter().enumerate() {
                let (name, value) = field?;
                layout.element(out, i == 0);
                text(out, name);
                out.push_str(if matches!(layout, Indentation::Compact) { ":" } else { ": " });
                write(out, &value, layout, max)?;
            }
            layout.end(out, '}', object.is_empty());
        }
        Variant::List(list) => {
            layout.begin(out, '[');
            for (i, value) in list.iter().enumerate() {
                let value = value?;
                layout.element(out, i == 0);
                write(out, &value, layout, max)?;
            }
            layout.end(out, ']', list.is_empty());
        }
        scalar => write_scalar(out, scalar),
    }
    if out.len() > max { Err(too_long()) } else { Ok(()) }
}

#[cold]
fn too_long() -> Error {
    Error::limit(
        LimitKind::Memory,
        "the JSON text of VARIANT values takes more memory than it may: read fewer rows at a time, \
         or the values as they are",
    )
}

fn write_scalar(out: &mut String, value: &Variant<'_>) {
    match *value {
        Variant::Boolean(true) => out.push_str("true"),
        Variant::Boolean(false) => out.push_str("false"),
        Variant::Int8(v) => integer(out, v.into()),
        Variant::Int16(v) => integer(out, v.into()),
        Variant::Int32(v) => integer(out, v.into()),
        Variant::Int64(v) => integer(out, v),
        Variant::Float(v) if v.is_finite() => number!(out, &v),
        Variant::Float(v) => not_finite(out, v.into()),
        Variant::Double(v) if v.is_finite() => number!(out, &v),
        Variant::Double(v) => not_finite(out, v),
        Variant::Decimal(digits, scale) => decimal(out, digits, scale),
        Variant::Date(days) => {
            quoted(out, |out| out.push_str(TimeText::date(days.into()).as_str()))
        }
        Variant::TimestampMicros(v) => timestamp(out, v, 6, "Z"),
        Variant::TimestampNtzMicros(v) => timestamp(out, v, 6, ""),
        Variant::TimestampNanos(v) => timestamp(out, v, 9, "Z"),
        Variant::TimestampNtzNanos(v) => timestamp(out, v, 9, ""),
        Variant::TimeMicros(v) => quoted(out, |out| {
            if v < 0 {
                out.push('-');
            }
            out.push_str(TimeText::time(v.unsigned_abs(), 6).as_str());
        }),
        Variant::Binary(bytes) => quoted(out, |out| STANDARD.encode_string(bytes, out)),
        Variant::String(value) => text(out, value),
        Variant::Uuid(bytes) => quoted(out, |out| uuid(out, bytes)),
        // The others are not scalars.
        Variant::Null | Variant::Object(_) | Variant::List(_) => out.push_str("null"),
    }
}

fn quoted(out: &mut String, write: impl FnOnce(&mut String)) {
    out.push('"');
    write(out);
    out.push('"');
}

/// Appends the output of serde_json to a string.
struct JsonTarget<'a>(&'a mut String);

impl io::Write for JsonTarget<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_str(str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn integer(out: &mut String, value: i64) {
    write!(out, "{value}").expect("a String takes all");
}

fn not_finite(out: &mut String, value: f64) {
    out.push_str(match value {
        v if v.is_nan() => "\"NaN\"",
        v if v > 0.0 => "\"Infinity\"",
        _ => "\"-Infinity\"",
    });
}

/// All digits of a decimal, with a zero in front of the point at least.
fn decimal(out: &mut String, digits: i128, scale: u8) {
    let scale = usize::from(scale);
    if digits < 0 {
        out.push('-');
    }
    let start = out.len();
    let width = scale + 1;
    write!(out, "{:0width$}", digits.unsigned_abs()).expect("a String takes all");
    if scale > 0 {
        out.insert(out.len().max(start + width) - scale, '.');
    }
}

/// A text in quotes.
fn text(out: &mut String, text: &str) {
    out.push('"');
    let mut start = 0;
    loop {
        let end = plain_end(text.as_bytes(), start);
        out.push_str(&text[start..end]);
        let Some(byte) = text.as_bytes().get(end) else { break };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => write!(out, "\\u{byte:04x}").expect("a String takes all"),
        }
        start = end + 1;
    }
    out.push('"');
}

fn timestamp(out: &mut String, units: i64, digits: u32, zone: &str) {
    quoted(out, |out| {
        out.push_str(TimeText::timestamp(units, digits, b'T').as_str());
        out.push_str(zone);
    });
}

fn uuid(out: &mut String, bytes: [u8; 16]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (i, byte) in bytes.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}
