//! ALP and PFOR as spans.
//!
//! Spec: AlpEncoding.md, PforEncoding.md. The grammars stand in `encoding::alp` and
//! `encoding::pfor`, whose decoders give the values.

use std::sync::Arc;

use bytes::Bytes;

use super::metadata::numbers;
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::{Items, ShownColumn, Value};
use crate::encoding::alp::Alp;
use crate::encoding::pfor::Pfor;
use crate::encoding::vectors::{Decoder, VectorEncoding};
use crate::format::Encoding;
use crate::schema::Physical;

/// The header, the offsets, and the vectors.
pub(super) fn spans(mut cutter: Cutter, encoding: Encoding, physical: Physical) -> Spans {
    let page = cutter.rest().clone();
    let (modes, size, kind) = match encoding {
        Encoding::Alp => (ALP_MODES, 2, SpanKind::AlpVector),
        _ => (PFOR_MODES, 1, SpanKind::PforVector),
    };
    let modes = modes.map(|(name, text)| {
        number(cutter.cut(1, SpanKind::EncodingParameter, name)).with_text(text)
    });
    let log_vector = modes.get(size).map_or(0, unsigned);
    let count = number(cutter.cut(4, SpanKind::EncodingParameter, "number of values"));
    let n = usize::try_from(unsigned(&count)).unwrap_or(usize::MAX);
    let head = modes.into_iter().chain([count]).filter(|span| span.length > 0);
    // The decoder refuses what is no header.
    let is_sound = match (encoding, physical) {
        (Encoding::Alp, Physical::Float) => Decoder::<Alp<f32>>::new(page, n).map(drop),
        (Encoding::Alp, _) => Decoder::<Alp<f64>>::new(page, n).map(drop),
        (_, Physical::Int32) => Decoder::<Pfor<i32>>::new(page, n).map(drop),
        (_, _) => Decoder::<Pfor<i64>>::new(page, n).map(drop),
    };
    if let Err(error) = is_sound {
        return Spans::infallible(head.chain(cutter.unparsed(error.message())));
    }
    let vector_len = 1usize << log_vector.min(15);
    let vectors = VectorSpans {
        table: cutter.rest().clone(),
        start: cutter.offset(),
        cutter,
        kind,
        n,
        vector_len,
        vectors: n.div_ceil(vector_len),
        next_offset: 0,
        next_vector: 0,
        width: physical.byte_width().unwrap_or(8),
    };
    Spans::infallible(head.chain(vectors))
}

/// The first three bytes of the header, and what they say.
const ALP_MODES: [(&str, &str); 3] = [
    ("mode", "0 is ALP"),
    ("integer encoding", "0 is bit packing"),
    ("vector size", "its logarithm to the base 2"),
];
const PFOR_MODES: [(&str, &str); 3] = [
    ("packing mode", "0 is bit packing"),
    ("vector size", "its logarithm to the base 2"),
    ("value size", "in bytes"),
];

/// The offsets of the vectors, and the vectors.
struct VectorSpans {
    cutter: Cutter,
    kind: SpanKind,
    /// The bytes from the first offset on, and where they begin.
    table: Bytes,
    start: u64,
    /// Number of values.
    n: usize,
    /// Values of a vector.
    vector_len: usize,
    vectors: usize,
    next_offset: usize,
    next_vector: usize,
    /// Bytes of a value.
    width: usize,
}

impl VectorSpans {
    /// Where a vector begins, counted from the first offset.
    fn offset_of(&self, vector: usize) -> Option<u64> {
        let bytes = self.table.get(vector.checked_mul(4)?..)?.first_chunk::<4>()?;
        Some(u64::from(u32::from_le_bytes(*bytes)))
    }
}

impl Iterator for VectorSpans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let vector = self.next_vector;
        if self.cutter.is_empty() {
            return None;
        }
        if self.next_offset < self.vectors {
            let name = format!("offset of vector {}", self.next_offset);
            self.next_offset += 1;
            let span = self.cutter.cut(4, SpanKind::Offset, name);
            return Some(number(span).with_text("from the first offset"));
        }
        if vector == self.vectors {
            return self.cutter.cut_rest(SpanKind::Unused, "unused");
        }
        let at = self.cutter.offset() - self.start;
        if self.offset_of(vector) != Some(at) {
            let why = format!("vector {vector} does not begin where its offset says");
            return self.cutter.unparsed(why);
        }
        let left = self.cutter.rest().len();
        let end = (vector + 1 < self.vectors).then(|| self.offset_of(vector + 1)).flatten();
        let len = match end {
            Some(end) => end.checked_sub(at).and_then(|len| usize::try_from(len).ok()),
            None => Some(left),
        };
        let Some(len) = len.filter(|len| (1..=left).contains(len)) else {
            let why = format!("vector {vector} has an offset that leads elsewhere");
            return self.cutter.unparsed(why);
        };
        let values = self.vector_len.min(self.n - vector * self.vector_len);
        let span = self.cutter.cut(len, self.kind, format!("vector {vector}"));
        self.next_vector += 1;
        let (span, width) = (span.with_count(values), self.width);
        let parts = match self.kind {
            SpanKind::AlpVector => parts_of_alp,
            _ => parts_of_pfor,
        };
        Some(span.with_parts(move |cutter| Spans::list(parts(cutter, values, width))))
    }
}

fn parts_of_alp(mut cutter: Cutter, values: usize, width: usize) -> Vec<Span> {
    let mut out = Vec::new();
    for name in ["exponent", "factor"] {
        out.push(number(cutter.cut(1, SpanKind::EncodingParameter, name)));
    }
    let exceptions = number(cutter.cut(2, SpanKind::EncodingParameter, "number of exceptions"));
    let n = usize::try_from(unsigned(&exceptions)).unwrap_or_default();
    out.push(exceptions);
    out.push(integer(cutter.cut(width, SpanKind::EncodingParameter, "frame of reference")));
    let bits = number(cutter.cut(1, SpanKind::BitWidth, "bit width"));
    let packed = unsigned(&bits);
    out.push(bits);
    rest_of_vector(cutter, values, packed, (n, width), float, out)
}

fn parts_of_pfor(mut cutter: Cutter, values: usize, width: usize) -> Vec<Span> {
    let mut out =
        vec![integer(cutter.cut(width, SpanKind::EncodingParameter, "frame of reference"))];
    let bits = number(cutter.cut(1, SpanKind::BitWidth, "bit width"));
    let stated = unsigned(&bits);
    let (packed, differ) = (stated & 0x7f, stated & 0x80 != 0);
    let bits = bits.with_value(Value::UInt(packed));
    out.push(if differ { bits.with_text("bit 7 is set: differences") } else { bits });
    let exceptions = number(cutter.cut(2, SpanKind::EncodingParameter, "number of exceptions"));
    let n = usize::try_from(unsigned(&exceptions)).unwrap_or_default();
    out.push(exceptions);
    if differ {
        out.push(integer(cutter.cut(width, SpanKind::EncodingParameter, "start value")));
    }
    rest_of_vector(cutter, values, packed, (n, width), integer, out)
}

/// The packed values, and the exceptions: their number and the bytes of each.
fn rest_of_vector(
    mut cutter: Cutter,
    values: usize,
    bit_width: u64,
    (n, width): (usize, usize),
    exception: fn(Span) -> Span,
    mut out: Vec<Span>,
) -> Vec<Span> {
    let packed = usize::try_from(bit_width).unwrap_or_default().saturating_mul(values);
    out.push(
        cutter
            .cut(packed.div_ceil(8), SpanKind::Packed, "packed differences to the frame")
            .with_count(values),
    );
    let positions = cutter.cut(n.saturating_mul(2), SpanKind::Offset, "positions of exceptions");
    let found = positions.in_memory();
    let (words, _) = found.as_chunks::<2>();
    let list = words.iter().map(|word| Value::UInt(u16::from_le_bytes(*word).into())).collect();
    out.push(positions.with_value(numbers(list)).with_count(n));
    for i in 0..n {
        if cutter.is_empty() {
            break;
        }
        out.push(exception(cutter.cut(width, SpanKind::Value, format!("exception {i}"))));
    }
    out.extend(cutter.cut_rest(SpanKind::Unused, "unused"));
    out.retain(|span| span.length > 0);
    out
}

/// A span that is a signed integer of 4 or 8 bytes.
fn integer(span: Span) -> Span {
    let signed = match &span.in_memory()[..] {
        [a, b, c, d] => Some(i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
        bytes => bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)),
    };
    match signed {
        Some(number) => span.with_value(Value::Int(number)),
        None => span,
    }
}

/// A span that is a floating-point number of 4 or 8 bytes.
fn float(span: Span) -> Span {
    let value = match &span.in_memory()[..] {
        [a, b, c, d] => Some(Value::Float(f32::from_le_bytes([*a, *b, *c, *d]))),
        bytes => bytes.first_chunk().map(|bytes| Value::Double(f64::from_le_bytes(*bytes))),
    };
    match value {
        Some(value) => span.with_value(value),
        None => span,
    }
}

/// The values of a page.
pub(super) fn list(
    bytes: &Bytes,
    n: usize,
    encoding: Encoding,
    column: &Arc<ShownColumn>,
) -> Option<Items> {
    let of = column.clone();
    match (encoding, column.leaf.physical) {
        (Encoding::Alp, Physical::Float) => Some(items::<Alp<f32>>(bytes, n, |bits| {
            Value::Float(f32::from_bits(bits.cast_unsigned()))
        })),
        (Encoding::Alp, Physical::Double) => Some(items::<Alp<f64>>(bytes, n, |bits| {
            Value::Double(f64::from_bits(bits.cast_unsigned()))
        })),
        (Encoding::Pfor, Physical::Int32) => Some(items::<Pfor<i32>>(bytes, n, move |number| {
            of.word(i64::from(number).cast_unsigned()).value
        })),
        (Encoding::Pfor, Physical::Int64) => {
            Some(items::<Pfor<i64>>(bytes, n, move |number| of.word(number.cast_unsigned()).value))
        }
        _ => None,
    }
}

fn items<E: VectorEncoding + 'static>(
    bytes: &Bytes,
    n: usize,
    value: impl Fn(E::Word) -> Value + Send + Sync + 'static,
) -> Items {
    let (bytes, value) = (bytes.clone(), Arc::new(value));
    Items::new(n as u64, move || {
        let value = value.clone();
        let mut decoder = Decoder::<E>::new(bytes.clone(), n).ok();
        (0..n).map_while(move |_| {
            let mut words = Vec::new();
            decoder.as_mut()?.read(1, &mut words).ok()?;
            words.pop().map(&*value)
        })
    })
}

/// A span that is a little-endian number of at most 8 bytes.
fn number(span: Span) -> Span {
    let bytes = span.in_memory();
    let mut word = [0; 8];
    word.iter_mut().zip(bytes.iter()).for_each(|(to, from)| *to = *from);
    if bytes.is_empty() { span } else { span.with_value(Value::UInt(u64::from_le_bytes(word))) }
}

fn unsigned(span: &Span) -> u64 {
    match span.value {
        Some(Value::UInt(number)) => number,
        _ => 0,
    }
}
