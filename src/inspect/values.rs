//! The values of a page as spans, by their encoding.
//!
//! Spec: Encodings.md. Values that lie one after the other are spans of their own. Where the bytes
//! of a value are spread, or stand for a difference, the span of all values has the list of them.

use std::sync::Arc;

use bytes::Bytes;

use super::delta;
use super::levels::length;
use super::runs::{self, Show};
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::{Items, Shown, ShownColumn, Value};
use super::vectors;
use crate::bytes::Cursor;
use crate::encoding::rle::BitWidth;
use crate::error::{Result, Spec};
use crate::format::Encoding;
use crate::schema::Physical;

/// What values are explained with.
#[derive(Clone)]
pub(super) struct ValueContext {
    pub(super) column: Arc<ShownColumn>,
    /// The values of the dictionary page, if there is one.
    pub(super) dictionary: Option<Arc<Dictionary>>,
}

/// Explains `n` values in `encoding`, whose bytes `span` is.
pub(super) fn describe(span: Span, encoding: Encoding, n: usize, context: &ValueContext) -> Span {
    let list = list(&span.in_memory(), encoding, n, &context.column);
    let span = span.with_count(n).with_text(format!("{encoding}")).with_list(list);
    let context = context.clone();
    span.with_parts(move |mut cutter| {
        let column = context.column.clone();
        match (encoding, column.leaf.physical) {
            (Encoding::Plain, _) => plain(cutter, n, column, "value"),
            (Encoding::PlainDictionary | Encoding::RleDictionary, _) => {
                indices(cutter, n, context.dictionary.clone())
            }
            (Encoding::Rle, Physical::Boolean) => {
                let head = length(&mut cutter);
                let show: Show = Arc::new(|bit| Value::Bool(bit == 1).into());
                let runs = runs::hybrid(cutter, BitWidth::for_max(1), n, show);
                Spans::new(std::iter::once(Ok(head)).chain(runs))
            }
            (Encoding::DeltaBinaryPacked, Physical::Int32 | Physical::Int64) => {
                delta::integers(cutter, &column)
            }
            (Encoding::DeltaLengthByteArray, Physical::ByteArray) => {
                delta::lengths_and_bytes(cutter, n, &column)
            }
            (Encoding::DeltaByteArray, Physical::ByteArray | Physical::FixedLenByteArray(_)) => {
                delta::prefixes_and_bytes(cutter, n)
            }
            (Encoding::ByteStreamSplit, physical) => match physical.byte_width() {
                Some(width) => streams(cutter, width, n),
                None => unknown(cutter, encoding, physical),
            },
            (Encoding::Alp, Physical::Float | Physical::Double)
            | (Encoding::Pfor, Physical::Int32 | Physical::Int64) => {
                vectors::spans(cutter, encoding, column.leaf.physical)
            }
            (_, physical) => unknown(cutter, encoding, physical),
        }
    })
}

fn unknown(mut cutter: Cutter, encoding: Encoding, physical: Physical) -> Spans {
    let why = format!("values of {physical} in {encoding}");
    Spans::infallible(cutter.unparsed(why).into_iter())
}

/// The values that do not lie in spans of their own.
fn list(bytes: &Bytes, encoding: Encoding, n: usize, column: &Arc<ShownColumn>) -> Option<Items> {
    let physical = column.leaf.physical;
    match encoding {
        Encoding::ByteStreamSplit => {
            let width = physical.byte_width().filter(|width| *width > 0)?;
            let (bytes, column) = (bytes.clone(), column.clone());
            Some(Items::new(n as u64, move || {
                let (bytes, column) = (bytes.clone(), column.clone());
                (0..n).map_while(move |i| {
                    let value: Option<Vec<u8>> =
                        (0..width).map(|j| bytes.get(j * n + i).copied()).collect();
                    Some(column.plain(value?.into()).value)
                })
            }))
        }
        Encoding::DeltaBinaryPacked | Encoding::DeltaLengthByteArray | Encoding::DeltaByteArray => {
            delta::list(bytes, encoding, n, column)
        }
        Encoding::Alp | Encoding::Pfor => vectors::list(bytes, n, encoding, column),
        _ => None,
    }
}

/// Values in PLAIN, each a span.
pub(super) fn plain(
    cutter: Cutter,
    n: usize,
    column: Arc<ShownColumn>,
    what: &'static str,
) -> Spans {
    if column.leaf.physical == Physical::Boolean {
        let show: Show = Arc::new(|bit| Value::Bool(bit == 1).into());
        let offset = cutter.offset();
        return runs::packed_bits(cutter.rest().clone(), offset, n, show);
    }
    Spans::infallible(PlainValues { cutter, column, next: 0, n, what })
}

struct PlainValues {
    cutter: Cutter,
    column: Arc<ShownColumn>,
    next: usize,
    n: usize,
    what: &'static str,
}

impl Iterator for PlainValues {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.cutter.is_empty() {
            return None;
        }
        if self.next >= self.n {
            return self.cutter.after_values();
        }
        let left = self.cutter.rest().len();
        let name = format!("{} {}", self.what, self.next);
        let Some(width) = self.column.leaf.physical.byte_width() else {
            let rest = self.cutter.rest().clone();
            let mut cursor = Cursor::new(&rest, Spec::Encodings("PLAIN"));
            let Ok(value) = cursor.prefixed() else {
                return self.cutter.unparsed(format!("{name} is longer than the bytes left"));
            };
            self.next += 1;
            let shown = self.column.byte_string(rest.slice_ref(value));
            let len = cursor.position();
            return Some(prefixed_value(self.cutter.cut(len, SpanKind::Value, name), shown));
        };
        if width == 0 {
            self.next = self.n;
            return self.next();
        }
        if left < width {
            return self.cutter.unparsed(format!("{name} takes {width} bytes"));
        }
        self.next += 1;
        let span = self.cutter.cut(width, SpanKind::Value, name);
        let shown = self.column.plain(span.in_memory());
        Some(span.showing(shown))
    }
}

/// A value with its length in front.
fn prefixed_value(span: Span, shown: Shown) -> Span {
    span.showing(shown).with_parts(|mut cutter| {
        let head = length(&mut cutter);
        let body = cutter.cut_rest(SpanKind::ValueBytes, "bytes");
        Spans::infallible(std::iter::once(head).chain(body))
    })
}

/// Dictionary indices: their width, and runs.
fn indices(mut cutter: Cutter, n: usize, dictionary: Option<Arc<Dictionary>>) -> Spans {
    let head = cutter.cut(1, SpanKind::BitWidth, "bit width");
    let bits = head.in_memory().first().copied();
    let Some(bits) = bits else { return Spans::list(Vec::new()) };
    let head = head.with_value(Value::UInt(bits.into()));
    if bits == 0 && cutter.is_empty() && n > 0 {
        // Runs of numbers of no bits may be left out.
        return Spans::list(vec![head.with_count(n).with_text("all indices are 0")]);
    }
    let rest = match BitWidth::new(bits) {
        Ok(width) => {
            let show: Show = Arc::new(move |index| Shown {
                value: Value::UInt(index.into()),
                text: dictionary.as_ref().and_then(|of| of.text(index)),
            });
            runs::hybrid(cutter, width, n, show)
        }
        Err(error) => Spans::infallible(cutter.unparsed(error.message()).into_iter()),
    };
    Spans::new(std::iter::once(Ok(head)).chain(rest))
}

/// One stream for each byte of a value.
fn streams(mut cutter: Cutter, width: usize, n: usize) -> Spans {
    let mut next = 0;
    Spans::infallible(std::iter::from_fn(move || {
        if cutter.is_empty() {
            return None;
        }
        if next == width || n == 0 {
            return cutter.cut_rest(SpanKind::Unused, "unused");
        }
        let span = cutter.cut(n, SpanKind::ByteStream, format!("byte {next} of each value"));
        next += 1;
        Some(span.with_count(n))
    }))
}

/// The values of a dictionary page, for those who meet an index.
pub(super) struct Dictionary {
    column: Arc<ShownColumn>,
    bytes: Bytes,
    /// Where each value begins, where they are of different lengths.
    starts: Vec<u32>,
}

/// Values of different lengths that are remembered: of more, indices are shown as numbers.
const MAX_STARTS: usize = 1 << 20;

impl Dictionary {
    /// Of `n` PLAIN values.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory for where they begin.
    pub(super) fn new(bytes: Bytes, n: usize, column: Arc<ShownColumn>) -> Result<Self> {
        let mut starts = Vec::new();
        if column.leaf.physical == Physical::ByteArray {
            let mut cursor = Cursor::new(&bytes, Spec::Encodings("PLAIN"));
            while starts.len() < n.min(MAX_STARTS) {
                let Ok(start) = u32::try_from(cursor.position()) else { break };
                if cursor.prefixed().is_err() {
                    break;
                }
                crate::memory::push(&mut starts, start)?;
            }
        }
        Ok(Self { column, bytes, starts })
    }

    /// The value at `index`, as text.
    fn text(&self, index: u32) -> Option<String> {
        let index = usize::try_from(index).ok()?;
        let shown = match self.column.leaf.physical.byte_width() {
            Some(width) => {
                let start = index.checked_mul(width)?;
                let end = start.checked_add(width).filter(|end| *end <= self.bytes.len())?;
                self.column.plain(self.bytes.slice(start..end))
            }
            None => {
                let start = usize::try_from(*self.starts.get(index)?).ok()?;
                let rest = self.bytes.get(start..)?;
                let value = Cursor::new(rest, Spec::Encodings("PLAIN")).prefixed().ok()?;
                self.column.byte_string(self.bytes.slice_ref(value))
            }
        };
        Some(shown.text.unwrap_or_else(|| short(&shown.value)))
    }
}

/// A value as a short text.
fn short(value: &Value) -> String {
    /// Characters that tell a value from others, mostly.
    const MAX: usize = 40;
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Text(text) => match text.char_indices().nth(MAX) {
            Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
            None => format!("{:?}", &**text),
        },
        Value::Bytes(bytes) => {
            let hex = bytes.iter().take(MAX / 2).map(|byte| format!("{byte:02x}"));
            format!("0x{}", hex.collect::<String>())
        }
        Value::List(_) => String::new(),
    }
}
