//! ALP as spans.
//!
//! Spec: AlpEncoding.md. The grammar stands in `encoding::alp`, whose decoder gives the values.

use bytes::Bytes;

use super::metadata::numbers;
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::{Items, Value};
use crate::encoding::alp::Decoder;
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
    let vectors = n.div_ceil(vector_len);
    let table = cutter.rest().clone();
    let start = cutter.offset();
    let mut next = 0;
    let mut vector = 0;
    let width = physical.byte_width().unwrap_or(8);
    let rest = std::iter::from_fn(move || {
        if cutter.is_empty() {
            return None;
        }
        if next < vectors {
            next += 1;
            let span = cutter.cut(4, SpanKind::Offset, format!("offset of vector {}", next - 1));
            return Some(number(span).with_text("from the first offset"));
        }
        if vector == vectors {
            return cutter.cut_rest(SpanKind::Unused, "unused");
        }
        let offset_of = |k: usize| {
            let bytes = table.get(k.checked_mul(4)?..)?.first_chunk::<4>()?;
            Some(u64::from(u32::from_le_bytes(*bytes)))
        };
        let at = cutter.offset() - start;
        if offset_of(vector) != Some(at) {
            return cutter
                .unparsed(format!("vector {vector} does not begin where its offset says"));
        }
        let end = if vector + 1 < vectors { offset_of(vector + 1) } else { None };
        let len = match end {
            Some(end) => end.checked_sub(at).and_then(|len| usize::try_from(len).ok()),
            None => Some(cutter.rest().len()),
        };
        let Some(len) = len.filter(|len| (1..=cutter.rest().len()).contains(len)) else {
            return cutter.unparsed(format!("vector {vector} has an offset that leads elsewhere"));
        };
        let values = vector_len.min(n - vector * vector_len);
        let span = cutter.cut(len, SpanKind::AlpVector, format!("vector {vector}"));
        vector += 1;
        let (bytes, offset) = (span.in_memory(), span.offset);
        Some(span.with_count(values).with_children(move || {
            Spans::list(parts_of_vector(Cutter::new(bytes.clone(), offset), values, width))
        }))
    });
    Spans::infallible(head.chain(rest))
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
    let bytes = bytes.clone();
    Some(match physical {
        Physical::Float => Items::new(n as u64, move || {
            let mut decoder = Decoder::<f32>::new(bytes.clone(), n).ok();
            (0..n).map_while(move |_| {
                let mut bits = Vec::new();
                decoder.as_mut()?.read_bits(1, &mut bits).ok()?;
                bits.first().map(|bits| Value::Float(f32::from_bits(bits.cast_unsigned())))
            })
        }),
        Physical::Double => Items::new(n as u64, move || {
            let mut decoder = Decoder::<f64>::new(bytes.clone(), n).ok();
            (0..n).map_while(move |_| {
                let mut bits = Vec::new();
                decoder.as_mut()?.read_bits(1, &mut bits).ok()?;
                bits.first().map(|bits| Value::Double(f64::from_bits(bits.cast_unsigned())))
            })
        }),
        _ => return None,
    })
}
