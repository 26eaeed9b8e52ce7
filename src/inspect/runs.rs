//! Runs as spans: the hybrid of RLE and bit packing, in which levels, dictionary indices and
//! booleans are; and packed bits.
//!
//! Spec: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid", "Bit-packed (Deprecated)".

use std::sync::Arc;

use bytes::Bytes;

use super::metadata::numbers;
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::Shown;
use crate::encoding::legacy::{BitOrder, BitPacked};
use crate::encoding::rle::{BitWidth, Hybrid};
use crate::simd::unpack::unpack_u32;

/// How a level, an index or a flag is shown.
pub(super) type Show = Arc<dyn Fn(u32) -> Shown + Send + Sync>;

/// The runs of `n` numbers of `width` bits.
pub(super) fn hybrid(cutter: Cutter, width: BitWidth, n: usize, show: Show) -> Spans {
    let hybrid = Hybrid::stored(cutter.rest().clone(), width, n);
    Spans::infallible(RunSpans { cutter, hybrid, width, show })
}

struct RunSpans {
    cutter: Cutter,
    hybrid: Hybrid,
    width: BitWidth,
    show: Show,
}

impl Iterator for RunSpans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.cutter.is_empty() {
            return None;
        }
        if self.hybrid.remaining() == 0 {
            return self.cutter.after_values();
        }
        let place = match self.hybrid.begin_run() {
            Ok(place) => place,
            Err(error) => return self.cutter.unparsed(error.message()),
        };
        // They are there: the run is no longer than what is left.
        let _ = self.hybrid.skip(place.n);
        let (header, body) = (place.header.len(), place.body.len());
        if let Some(value) = place.value {
            let span = self.cutter.cut(header + body, SpanKind::RleRun, "run");
            return Some(span.with_count(place.n).showing((self.show)(value)));
        }
        let span = self.cutter.cut(header + body, SpanKind::BitPackedRun, "packed run");
        if self.width.bits() == 0 {
            // There is nothing to unpack: all are 0.
            return Some(span.with_count(place.n).showing((self.show)(0)));
        }
        let (width, n, show) = (self.width, place.n, self.show.clone());
        Some(span.with_count(n).with_parts(move |mut cutter| {
            let head = cutter.cut(header, SpanKind::RunHeader, "run header");
            let bits = width.bits();
            let groups = body.checked_div(bits as usize).unwrap_or_default();
            let unit = if bits == 1 { "bit" } else { "bits" };
            let text = format!("{groups} × 8 numbers of {bits} {unit}");
            let pieces = PackedSpans::new(cutter, width, n, show.clone());
            Spans::infallible(std::iter::once(head.with_text(text)).chain(pieces))
        }))
    }
}

/// Packed numbers, a few groups of eight at a time.
pub(super) struct PackedSpans {
    cutter: Cutter,
    width: BitWidth,
    left: usize,
    show: Show,
    /// From the most significant bit on, if it is the deprecated encoding.
    legacy: Option<BitOrder>,
}

impl PackedSpans {
    fn new(cutter: Cutter, width: BitWidth, n: usize, show: Show) -> Self {
        Self { cutter, width, left: n, show, legacy: None }
    }

    /// Numbers in the deprecated encoding BIT_PACKED.
    pub(super) fn legacy(
        cutter: Cutter,
        order: BitOrder,
        width: BitWidth,
        n: usize,
        show: Show,
    ) -> Self {
        Self { legacy: Some(order), ..Self::new(cutter, width, n, show) }
    }
}

impl Iterator for PackedSpans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.left == 0 {
            let rest = self.cutter.cut_rest(SpanKind::Unused, "padding");
            return rest.map(|span| span.with_text("the last group is padded"));
        }
        let bits = self.width.bits() as usize;
        let groups = 8usize.checked_div(bits)?.clamp(1, 4);
        let span = self.cutter.cut(groups * bits, SpanKind::Packed, "packed");
        let bytes = span.in_memory();
        if bytes.is_empty() {
            return None;
        }
        let n = self.left.min(bytes.len() * 8 / bits).min(groups * 8);
        let mut found = Vec::new();
        match self.legacy {
            Some(order) => {
                let read = BitPacked::new(bytes, order, self.width, n);
                let _ = read.and_then(|mut packed| packed.read(n, &mut found));
            }
            None => unpack_u32(&bytes, self.width.bits(), n, &mut found),
        }
        self.left = if n < groups * 8 { 0 } else { self.left - n };
        Some(several(span, &found, &self.show))
    }
}

/// A span of several numbers.
fn several(span: Span, found: &[u32], show: &Show) -> Span {
    /// Texts that say enough.
    const MAX_TEXTS: usize = 8;
    let (mut values, mut texts) = (Vec::with_capacity(found.len()), Vec::new());
    for &number in found {
        let Shown { value, text } = show(number);
        values.push(value);
        texts.extend(text.filter(|_| texts.len() < MAX_TEXTS));
    }
    let is_cut = texts.len() == MAX_TEXTS && found.len() > MAX_TEXTS;
    texts.extend(is_cut.then(|| "…".to_owned()));
    let span = span.with_count(found.len()).with_value(numbers(values));
    if texts.is_empty() { span } else { span.with_text(texts.join(", ")) }
}

/// Packed flags, PLAIN.
pub(super) fn packed_bits(bytes: Bytes, offset: u64, n: usize, show: Show) -> Spans {
    Spans::infallible(PackedSpans::new(Cutter::new(bytes, offset), BitWidth::for_max(1), n, show))
}
