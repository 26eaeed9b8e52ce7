//! ALP as spans.
//!
//! Spec: AlpEncoding.md. The grammar stands in `encoding::alp`, whose decoder gives the values.

use bytes::Bytes;

use super::metadata::numbers;
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::{Items, Value};
use crate::encoding::alp::{Decoder, Float};
use crate::schema::Physical;

/// The header, the offsets, and the vectors.
pub(super) fn spans(mut cutter: Cutter, physical: Physical) -> Spans {
    let page = cutter.rest().clone();
    let byte = |cutter: &mut Cutter, name: &'static str| {
        let span = cutter.cut(1, SpanKind::EncodingParameter, name);
        number(span)
    };
    let mode = byte(&mut cutter, "mode").with_text("0 is ALP");
    let integers = byte(&mut cutter, "integer encoding").with_text("0 is bit packing");
    let log = byte(&mut cutter, "vector size").with_text("its logarithm to the base 2");
    let log_vector = unsigned(&log);
    let count = number(cutter.cut(4, SpanKind::EncodingParameter, "number of values"));
    let n = usize::try_from(unsigned(&count)).unwrap_or(usize::MAX);
    let head = [mode, integers, log, count].into_iter().filter(|span| span.length > 0);
    // The decoder refuses what is no header.
    let is_sound = match physical {
        Physical::Float => Decoder::<f32>::new(page, n).map(drop),
        _ => Decoder::<f64>::new(page, n).map(drop),
    };
    if let Err(error) = is_sound {
        return Spans::infallible(head.chain(cutter.unparsed(error.message())));
    }
    let vector_len = 1usize << log_vector.min(15);
    let vectors = VectorSpans {
        table: cutter.rest().clone(),
        start: cutter.offset(),
        cutter,
        n,
        vector_len,
        vectors: n.div_ceil(vector_len),
        next_offset: 0,
        next_vector: 0,
        width: physical.byte_width().unwrap_or(8),
    };
    Spans::infallible(head.chain(vectors))
}

/// The offsets of the vectors, and the vectors.
struct VectorSpans {
    cutter: Cutter,
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
        let span = self.cutter.cut(len, SpanKind::AlpVector, format!("vector {vector}"));
        self.next_vector += 1;
        let (span, width) = (span.with_count(values), self.width);
        Some(span.with_parts(move |cutter| Spans::list(parts_of_vector(cutter, values, width))))
    }
}

fn parts_of_vector(mut cutter: Cutter, values: usize, width: usize) -> Vec<Span> {
    let mut out = Vec::new();
    let parameter = |cutter: &mut Cutter, len, name: &'static str| {
        number(cutter.cut(len, SpanKind::EncodingParameter, name))
    };
    out.push(parameter(&mut cutter, 1, "exponent"));
    out.push(parameter(&mut cutter, 1, "factor"));
    let exceptions = parameter(&mut cutter, 2, "number of exceptions");
    let n = usize::try_from(unsigned(&exceptions)).unwrap_or_default();
    out.push(exceptions);
    let frame = cutter.cut(width, SpanKind::EncodingParameter, "frame of reference");
    let signed = match &frame.in_memory()[..] {
        [a, b, c, d] => Some(i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
        bytes => bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)),
    };
    out.push(match signed {
        Some(number) => frame.with_value(Value::Int(number)),
        None => frame,
    });
    let bits = number(cutter.cut(1, SpanKind::BitWidth, "bit width"));
    let packed = usize::try_from(unsigned(&bits)).unwrap_or_default().saturating_mul(values);
    out.push(bits);
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
        let mut span = cutter.cut(width, SpanKind::Value, format!("exception {i}"));
        let bytes = span.in_memory();
        span.value = match (width, bytes.first_chunk::<4>(), bytes.first_chunk::<8>()) {
            (4, Some(bits), _) => Some(Value::Float(f32::from_le_bytes(*bits))),
            (_, _, Some(bits)) => Some(Value::Double(f64::from_le_bytes(*bits))),
            _ => None,
        };
        out.push(span);
    }
    out.extend(cutter.cut_rest(SpanKind::Unused, "unused"));
    out.retain(|span| span.length > 0);
    out
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

/// The values of a page.
pub(super) fn list(bytes: &Bytes, n: usize, physical: Physical) -> Option<Items> {
    let float = |bits: i32| Value::Float(f32::from_bits(bits.cast_unsigned()));
    let double = |bits: i64| Value::Double(f64::from_bits(bits.cast_unsigned()));
    match physical {
        Physical::Float => Some(floats::<f32>(bytes.clone(), n, float)),
        Physical::Double => Some(floats::<f64>(bytes.clone(), n, double)),
        _ => None,
    }
}

fn floats<F: Float + 'static>(bytes: Bytes, n: usize, value: fn(F::Int) -> Value) -> Items {
    Items::new(n as u64, move || {
        let mut decoder = Decoder::<F>::new(bytes.clone(), n).ok();
        (0..n).map_while(move |_| {
            let mut bits = Vec::new();
            decoder.as_mut()?.read_bits(1, &mut bits).ok()?;
            bits.pop().map(value)
        })
    })
}
