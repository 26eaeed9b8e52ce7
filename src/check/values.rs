//! Decodes the values of a page, block by block, as they are stored.
//!
//! Spec: Encodings.md. Used by `column`. Nothing is converted: a block holds physical values. Trap:
//! a page may stand for any number of values, so a block has at most [`BLOCK`].

use bytes::{Buf, Bytes};

use crate::encoding::rle::{BitWidth, Hybrid};
use crate::encoding::{
    ValueSpan, alp, delta_binary, delta_bytes, delta_length, pfor, plain, split,
};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::limits::{Budget, Reservation};
use crate::memory;
use crate::schema::Physical;
use crate::simd::bitmap::Bitmap;

/// Values of a block, at most.
pub(super) const BLOCK: usize = 4096;

/// Some values.
#[derive(Clone, Copy)]
pub(super) enum ValueBlock<'a> {
    /// INT32, and the bits of FLOAT.
    Words32(&'a [i32]),
    /// INT64, and the bits of DOUBLE.
    Words64(&'a [i64]),
    /// Values of `width` bytes each; BOOLEAN has one, 0 or 1.
    Fixed { width: usize, n: usize, bytes: &'a [u8] },
    /// BYTE_ARRAY.
    Strings { spans: &'a [ValueSpan], buffer: &'a [u8] },
}

impl<'a> ValueBlock<'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Words32(words) => words.len(),
            Self::Words64(words) => words.len(),
            Self::Fixed { n, .. } => n,
            Self::Strings { spans, .. } => spans.len(),
        }
    }

    /// Calls `visit` with each value as PLAIN has it, without a length.
    pub(super) fn each(self, mut visit: impl FnMut(&[u8])) {
        match self {
            Self::Words32(words) => words.iter().for_each(|word| visit(&word.to_le_bytes())),
            Self::Words64(words) => words.iter().for_each(|word| visit(&word.to_le_bytes())),
            Self::Fixed { .. } | Self::Strings { .. } => self.slices().for_each(visit),
        }
    }

    /// The values that are bytes; none of those that are words.
    pub(super) fn slices(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        let (fixed, strings) = match self {
            Self::Fixed { width, n, bytes } => {
                let fixed = (0..n).map(move |i| bytes.get(i * width..(i + 1) * width));
                (Some(fixed.map(Option::unwrap_or_default)), None)
            }
            Self::Strings { spans, buffer } => {
                (None, Some(spans.iter().map(move |span| span.slice(buffer))))
            }
            _ => (None, None),
        };
        fixed.into_iter().flatten().chain(strings.into_iter().flatten())
    }

    /// The value at `i`, if there is one.
    pub(super) fn get(self, i: usize, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Self::Words32(words) => {
                out.extend(words.get(i).map(|word| word.to_le_bytes()).into_iter().flatten());
            }
            Self::Words64(words) => {
                out.extend(words.get(i).map(|word| word.to_le_bytes()).into_iter().flatten());
            }
            Self::Fixed { width, bytes, .. } => {
                out.extend(bytes.get(i * width..(i + 1) * width).unwrap_or_default());
            }
            Self::Strings { spans, buffer } => {
                out.extend(spans.get(i).map(|span| span.slice(buffer)).unwrap_or_default());
            }
        }
    }

    /// Bytes of the values, without lengths.
    pub(super) fn byte_len(self) -> u64 {
        match self {
            Self::Strings { spans, .. } => spans.iter().map(|span| u64::from(span.len)).sum(),
            Self::Words32(words) => 4 * words.len() as u64,
            Self::Words64(words) => 8 * words.len() as u64,
            Self::Fixed { width, n, .. } => (width as u64).saturating_mul(n as u64),
        }
    }
}

/// Decodes the values of a page that are not indices.
pub(super) struct ValueDecoder {
    decoder: PageDecoder,
    physical: Physical,
    words32: Vec<i32>,
    words64: Vec<i64>,
    bytes: Vec<u8>,
    spans: Vec<ValueSpan>,
    /// Bytes of a block of strings that share prefixes, which are repeated in memory.
    max_block_bytes: usize,
    memory: Reservation,
}

/// A decoder for each encoding and type.
enum PageDecoder {
    Bits(plain::PlainBooleans),
    BitRuns(Hybrid),
    Plain32(plain::Fixed<i32>),
    Plain64(plain::Fixed<i64>),
    PlainFixed(plain::FixedBytes),
    PlainStrings(plain::ByteArrays),
    Delta32(delta_binary::Decoder<i32>),
    Delta64(delta_binary::Decoder<i64>),
    DeltaLength(delta_length::Decoder),
    DeltaBytes(Box<delta_bytes::Decoder>),
    Split(split::Decoder),
    Alp32(alp::Decoder<f32>),
    Alp64(alp::Decoder<f64>),
    Pfor32(pfor::Decoder<i32>),
    Pfor64(pfor::Decoder<i64>),
}

impl ValueDecoder {
    /// A decoder of `n` values. `previous` is the last value of the page before, where a page of
    /// DELTA_BYTE_ARRAY refers to it.
    ///
    /// # Errors
    /// `Malformed` if the bytes cannot be that many values; `Unsupported` if the type cannot be in
    /// this encoding.
    pub(super) fn new(
        physical: Physical,
        encoding: Encoding,
        bytes: Bytes,
        n: usize,
        previous: Option<Vec<u8>>,
        budget: &Budget,
    ) -> Result<Self> {
        use PageDecoder as D;
        use Physical as P;
        let width = physical.byte_width();
        let decoder = match (encoding, physical) {
            (Encoding::Plain, P::Boolean) => D::Bits(plain::PlainBooleans::new(bytes, n)?),
            (Encoding::Plain, P::Int32 | P::Float) => D::Plain32(plain::Fixed::new(bytes, n)?),
            (Encoding::Plain, P::Int64 | P::Double) => D::Plain64(plain::Fixed::new(bytes, n)?),
            (Encoding::Plain, P::ByteArray) => D::PlainStrings(plain::ByteArrays::new(bytes, n)?),
            (Encoding::Plain, P::Int96 | P::FixedLenByteArray(_)) => {
                D::PlainFixed(plain::FixedBytes::new(bytes, width.unwrap_or(0), n)?)
            }
            (Encoding::Rle, P::Boolean) => D::BitRuns(bit_runs(bytes, n)?),
            (Encoding::DeltaBinaryPacked, P::Int32) => {
                D::Delta32(delta_binary::Decoder::new(bytes, n)?)
            }
            (Encoding::DeltaBinaryPacked, P::Int64) => {
                D::Delta64(delta_binary::Decoder::new(bytes, n)?)
            }
            (Encoding::DeltaLengthByteArray, P::ByteArray) => {
                D::DeltaLength(delta_length::Decoder::new(bytes, n)?)
            }
            (Encoding::DeltaByteArray, P::ByteArray | P::FixedLenByteArray(_)) => {
                D::DeltaBytes(Box::new(delta_bytes::Decoder::new(bytes, n, previous)?))
            }
            (Encoding::ByteStreamSplit, _) if is_split(physical) => {
                D::Split(split::Decoder::new(bytes, width.unwrap_or(0), n)?)
            }
            (Encoding::Alp, P::Float) => D::Alp32(alp::Decoder::new(bytes, n)?),
            (Encoding::Alp, P::Double) => D::Alp64(alp::Decoder::new(bytes, n)?),
            (Encoding::Pfor, P::Int32) => D::Pfor32(pfor::Decoder::new(bytes, n)?),
            (Encoding::Pfor, P::Int64) => D::Pfor64(pfor::Decoder::new(bytes, n)?),
            _ => {
                let text = format_args!("{physical} in {encoding}");
                return Err(Error::unsupported("encoding of the type", text));
            }
        };
        let memory = budget.reservation("decoded values");
        let (words32, words64) = (Vec::new(), Vec::new());
        let (bytes, spans) = (Vec::new(), Vec::new());
        let max_block_bytes = usize::try_from(budget.cap() / 4).unwrap_or(usize::MAX);
        Ok(Self { decoder, physical, words32, words64, bytes, spans, max_block_bytes, memory })
    }

    /// The next values, as many as there are up to `max`, but at most [`BLOCK`].
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or they break a rule of the encoding; `Limit(Memory)`.
    pub(super) fn next_block(&mut self, max: usize) -> Result<ValueBlock<'_>> {
        use PageDecoder as D;
        let n = max.min(BLOCK);
        self.words32.clear();
        self.words64.clear();
        self.bytes.clear();
        self.spans.clear();
        let width = self.physical.byte_width().unwrap_or(1);
        match &mut self.decoder {
            D::Plain32(decoder) => decoder.read(n, &mut self.words32)?,
            D::Delta32(decoder) => decoder.read(n, &mut self.words32)?,
            D::Alp32(decoder) => decoder.read(n, &mut self.words32)?,
            D::Pfor32(decoder) => decoder.read(n, &mut self.words32)?,
            D::Plain64(decoder) => decoder.read(n, &mut self.words64)?,
            D::Delta64(decoder) => decoder.read(n, &mut self.words64)?,
            D::Alp64(decoder) => decoder.read(n, &mut self.words64)?,
            D::Pfor64(decoder) => decoder.read(n, &mut self.words64)?,
            D::Split(decoder) => match self.physical {
                Physical::Int32 | Physical::Float => decoder.read_into(n, &mut self.words32)?,
                Physical::Int64 | Physical::Double => decoder.read_into(n, &mut self.words64)?,
                _ => {
                    self.memory.resize(width.saturating_mul(n))?;
                    decoder.read(n, &mut self.bytes)?;
                }
            },
            D::PlainFixed(decoder) => {
                self.memory.resize(width.saturating_mul(n))?;
                decoder.read(n, &mut self.bytes)?;
            }
            D::Bits(decoder) => {
                let mut bits = Bitmap::default();
                decoder.read(n, &mut bits)?;
                memory::extend(&mut self.bytes, (0..n).map(|i| u8::from(bits.get(i))))?;
            }
            D::BitRuns(decoder) => {
                let mut bits = Bitmap::default();
                decoder.read_bits(n, &mut bits)?;
                memory::extend(&mut self.bytes, (0..n).map(|i| u8::from(bits.get(i))))?;
            }
            D::PlainStrings(decoder) => decoder.read_spans(n, &mut self.spans)?,
            D::DeltaLength(decoder) => decoder.read_spans(n, &mut self.spans)?,
            D::DeltaBytes(decoder) => {
                let block = decoder.read_block(n, self.max_block_bytes)?;
                memory::extend(&mut self.spans, block.spans())?;
                self.memory.resize(decoder.buffer().len().saturating_mul(2))?;
                if let Some(width) = self.physical.byte_width() {
                    check_widths(&self.spans, width)?;
                }
            }
        }
        Ok(self.block(n))
    }

    fn block(&self, n: usize) -> ValueBlock<'_> {
        use PageDecoder as D;
        let strings = |buffer| ValueBlock::Strings { spans: &self.spans, buffer };
        match &self.decoder {
            D::Plain32(_) | D::Delta32(_) | D::Alp32(_) | D::Pfor32(_) => {
                ValueBlock::Words32(&self.words32)
            }
            D::Plain64(_) | D::Delta64(_) | D::Alp64(_) | D::Pfor64(_) => {
                ValueBlock::Words64(&self.words64)
            }
            D::Split(_) if !self.words32.is_empty() => ValueBlock::Words32(&self.words32),
            D::Split(_) if !self.words64.is_empty() => ValueBlock::Words64(&self.words64),
            D::PlainStrings(decoder) => strings(decoder.buffer()),
            D::DeltaLength(decoder) => strings(decoder.buffer()),
            D::DeltaBytes(decoder) => match (self.physical.byte_width(), self.spans.first()) {
                // They lie end to end.
                (Some(width), Some(first)) => {
                    let (start, n) = (first.start as usize, self.spans.len());
                    let end = start.saturating_add(n.saturating_mul(width));
                    let bytes = decoder.buffer().get(start..end).unwrap_or_default();
                    ValueBlock::Fixed { width, n, bytes }
                }
                _ => strings(decoder.buffer()),
            },
            D::Split(_) | D::PlainFixed(_) | D::Bits(_) | D::BitRuns(_) => {
                let width = self.physical.byte_width().unwrap_or(1);
                ValueBlock::Fixed { width, n, bytes: &self.bytes }
            }
        }
    }

    /// The last value, for the page after this one.
    pub(super) fn last_value(&self) -> Option<Vec<u8>> {
        match &self.decoder {
            PageDecoder::DeltaBytes(decoder) => Some(decoder.last_value().to_vec()),
            _ => None,
        }
    }
}

fn is_split(physical: Physical) -> bool {
    !matches!(physical, Physical::Boolean | Physical::Int96 | Physical::ByteArray)
}

fn check_widths(spans: &[ValueSpan], width: usize) -> Result<()> {
    match spans.iter().find(|span| span.len as usize != width) {
        None => Ok(()),
        Some(span) => {
            let spec = Spec::Encodings("DELTA_BYTE_ARRAY");
            Err(Error::mismatch(spec, "bytes of a value", width, span.len))
        }
    }
}

/// Booleans in RLE, which have their length in front.
fn bit_runs(mut bytes: Bytes, n: usize) -> Result<Hybrid> {
    let spec = Spec::Encodings("RLE");
    let missing = || Error::malformed(spec, "the length of the runs is missing");
    let len = *bytes.first_chunk::<4>().ok_or_else(missing)?;
    bytes.advance(4);
    let len = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
    if len > bytes.len() {
        return Err(Error::mismatch(spec, "bytes of the runs", len, bytes.len()));
    }
    Hybrid::new(bytes.slice(..len), BitWidth::for_max(1), n)
}

/// The values of a dictionary page.
pub(super) struct DictionaryValues {
    words32: Vec<i32>,
    words64: Vec<i64>,
    bytes: Bytes,
    spans: Vec<ValueSpan>,
    n: usize,
    physical: Physical,
    memory: Reservation,
}

impl DictionaryValues {
    /// The `n` PLAIN values of `bytes`.
    ///
    /// # Errors
    /// `Malformed` if they are not as many; `Limit(Memory)`.
    pub(super) fn new(physical: Physical, bytes: Bytes, n: usize, budget: &Budget) -> Result<Self> {
        let (mut words32, mut words64, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut memory = budget.reservation("the values of a dictionary");
        // Words are no longer in their bytes.
        let mut kept = Bytes::new();
        match physical {
            Physical::Int32 | Physical::Float => {
                let mut decoder = plain::Fixed::new(bytes, n)?;
                memory.grow(n.saturating_mul(4))?;
                decoder.read(n, &mut words32)?;
            }
            Physical::Int64 | Physical::Double => {
                let mut decoder = plain::Fixed::new(bytes, n)?;
                memory.grow(n.saturating_mul(8))?;
                decoder.read(n, &mut words64)?;
            }
            Physical::ByteArray => {
                let mut decoder = plain::ByteArrays::new(bytes.clone(), n)?;
                memory.grow(n.saturating_mul(size_of::<ValueSpan>()))?;
                decoder.read_spans(n, &mut spans)?;
                kept = bytes;
            }
            Physical::Boolean => {
                let mut decoder = plain::PlainBooleans::new(bytes, n)?;
                memory.grow(n)?;
                let mut bits = Bitmap::default();
                decoder.read(n, &mut bits)?;
                kept = memory::collected((0..n).map(|i| u8::from(bits.get(i))))?.into();
            }
            Physical::Int96 | Physical::FixedLenByteArray(_) => {
                plain::FixedBytes::new(bytes.clone(), physical.byte_width().unwrap_or(0), n)?;
                kept = bytes;
            }
        }
        Ok(Self { words32, words64, bytes: kept, spans, n, physical, memory })
    }

    /// Copies the bytes, so that those that were read with them are not held as long.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(super) fn copy_bytes(&mut self) -> Result<()> {
        self.memory.grow(self.bytes.len())?;
        self.bytes = memory::copied(&self.bytes)?.into();
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.n
    }

    pub(super) fn block(&self) -> ValueBlock<'_> {
        match self.physical {
            Physical::Int32 | Physical::Float => ValueBlock::Words32(&self.words32),
            Physical::Int64 | Physical::Double => ValueBlock::Words64(&self.words64),
            Physical::ByteArray => ValueBlock::Strings { spans: &self.spans, buffer: &self.bytes },
            _ => {
                let width = self.physical.byte_width().unwrap_or(1);
                ValueBlock::Fixed { width, n: self.n, bytes: &self.bytes }
            }
        }
    }

    /// Calls `visit` with the entries at `indices`, as a block.
    pub(super) fn with_entries<T>(
        &self,
        indices: &[u32],
        visit: impl FnOnce(ValueBlock<'_>) -> Result<T>,
    ) -> Result<T> {
        let at = |index: &u32| *index as usize;
        match self.block() {
            ValueBlock::Words32(words) => {
                let some: Vec<i32> = memory::collected(
                    indices.iter().filter_map(|index| words.get(at(index)).copied()),
                )?;
                visit(ValueBlock::Words32(&some))
            }
            ValueBlock::Words64(words) => {
                let some: Vec<i64> = memory::collected(
                    indices.iter().filter_map(|index| words.get(at(index)).copied()),
                )?;
                visit(ValueBlock::Words64(&some))
            }
            ValueBlock::Strings { spans, buffer } => {
                let spans: Vec<ValueSpan> = memory::collected(
                    indices.iter().filter_map(|index| spans.get(at(index)).copied()),
                )?;
                visit(ValueBlock::Strings { spans: &spans, buffer })
            }
            ValueBlock::Fixed { width, bytes, .. } => {
                let ranges = indices.iter().map(|index| at(index) * width..(at(index) + 1) * width);
                let mut some: Vec<u8> = memory::vec_for(width.saturating_mul(indices.len()))?;
                ranges.filter_map(|range| bytes.get(range)).for_each(|value| some.extend(value));
                visit(ValueBlock::Fixed { width, n: indices.len(), bytes: &some })
            }
        }
    }

    /// Bytes of the value at `index`.
    pub(super) fn byte_len_of(&self, index: u32) -> u64 {
        match self.physical.byte_width() {
            Some(width) => width as u64,
            None => self.spans.get(index as usize).map_or(0, |span| u64::from(span.len)),
        }
    }
}

/// The indices of a page: a byte that says how wide they are, and then runs.
///
/// # Errors
/// `Malformed` if the width is over 32.
pub(super) fn indices(mut bytes: Bytes, n: usize) -> Result<Hybrid> {
    if bytes.is_empty() {
        return Hybrid::new(bytes, BitWidth::for_max(1), n);
    }
    let width = BitWidth::new(bytes.get_u8())?;
    Hybrid::new(bytes, width, n)
}
