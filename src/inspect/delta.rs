//! The delta encodings as spans.
//!
//! Spec: Encodings.md, "Delta Encoding", "Delta-length byte array", "Delta Strings". The parts of a
//! stream are located by `encoding::delta_binary`; the values of a miniblock are summed up here,
//! one by one. Trap: a miniblock of no bits takes no byte, and may stand for millions of values.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::metadata::numbers;
use super::span::{Cutter, Span, SpanKind, Spans};
use super::value::{Items, ShownColumn, Value};
use crate::encoding::delta_binary::{self, Decoder, Part, StreamHeader, StreamLayout};
use crate::encoding::{delta_bytes, delta_length};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::schema::Physical;
use crate::simd::unpack::unpack_u64;

const SPEC: Spec = Spec::Encodings("DELTA_BINARY_PACKED");

/// How the numbers of a stream are shown.
type ShowNumber = Arc<dyn Fn(i64) -> Value + Send + Sync>;

fn show_number() -> ShowNumber {
    Arc::new(Value::Int)
}

/// DELTA_BINARY_PACKED.
pub(super) fn integers(cutter: Cutter, column: &Arc<ShownColumn>) -> Spans {
    let is_narrow = column.leaf.physical == Physical::Int32;
    let of = column.clone();
    let show: ShowNumber = Arc::new(move |number| of.word(number.cast_unsigned()).value);
    parts(cutter, is_narrow, show)
}

/// A stream of lengths at the start of `cutter`.
fn lengths(cutter: &mut Cutter, name: &'static str) -> Span {
    let rest = cutter.rest();
    let len = delta_binary::end_offset(rest).unwrap_or(rest.len());
    let n = delta_binary::stated_len(rest).unwrap_or_default();
    let span = cutter.cut(len, SpanKind::DeltaStream, name);
    let list = integer_list(&span.in_memory(), n, true, show_number());
    span.with_list(list)
        .with_text("DELTA_BINARY_PACKED")
        .with_count(n)
        .with_parts(|cutter| parts(cutter, true, show_number()))
}

/// DELTA_LENGTH_BYTE_ARRAY.
pub(super) fn lengths_and_bytes(mut cutter: Cutter, n: usize, column: &Arc<ShownColumn>) -> Spans {
    let bytes = cutter.rest().clone();
    let head = lengths(&mut cutter, "lengths");
    let values = ByteStringSpans::new(cutter, bytes, n, Some(column.clone()));
    Spans::infallible(std::iter::once(head).chain(values))
}

/// DELTA_BYTE_ARRAY.
pub(super) fn prefixes_and_bytes(mut cutter: Cutter, n: usize) -> Spans {
    let prefixes = lengths(&mut cutter, "prefix lengths");
    let bytes = cutter.rest().clone();
    let suffixes = lengths(&mut cutter, "suffix lengths");
    let values = ByteStringSpans::new(cutter, bytes, n, None);
    Spans::infallible([prefixes, suffixes].into_iter().chain(values))
}

/// The bytes of values whose lengths stand in front of all of them.
struct ByteStringSpans {
    cutter: Cutter,
    lengths: Result<Decoder<i32>>,
    block: Vec<i32>,
    used: usize,
    next: usize,
    n: usize,
    /// The column, if the bytes are whole values.
    column: Option<Arc<ShownColumn>>,
}

impl ByteStringSpans {
    /// Of `n` values, whose `lengths` are a stream.
    fn new(cutter: Cutter, lengths: Bytes, n: usize, column: Option<Arc<ShownColumn>>) -> Self {
        let (block, used, next) = (Vec::new(), 0, 0);
        Self { cutter, lengths: Decoder::new(lengths, n), block, used, next, n, column }
    }
}

/// Numbers that are decoded at a time.
const BLOCK: usize = 1024;

impl Iterator for ByteStringSpans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        loop {
            if self.cutter.is_empty() {
                return None;
            }
            if self.next == self.n {
                return self.cutter.cut_rest(SpanKind::Unused, "unused");
            }
            if self.used == self.block.len() {
                self.block.clear();
                self.used = 0;
                let wanted = BLOCK.min(self.n - self.next);
                let read = match &mut self.lengths {
                    Ok(lengths) => lengths.read(wanted, &mut self.block),
                    Err(error) => {
                        let why = error.message().to_owned();
                        return self.cutter.unparsed(why);
                    }
                };
                if let Err(error) = read {
                    return self.cutter.unparsed(error.message());
                }
            }
            let len = self.block.get(self.used).copied().unwrap_or_default();
            let index = self.next;
            self.used += 1;
            self.next += 1;
            let len = usize::try_from(len).ok().filter(|len| *len <= self.cutter.rest().len());
            let Some(len) = len else {
                return self.cutter.unparsed(format!("value {index} is longer than what is left"));
            };
            if len == 0 {
                continue;
            }
            let end_of = if self.column.is_some() { "" } else { "end of " };
            let name = format!("{end_of}value {index}");
            let span = self.cutter.cut(len, SpanKind::ValueBytes, name);
            let bytes = span.in_memory();
            return Some(match &self.column {
                Some(column) => span.showing(column.byte_string(bytes)),
                None => span.with_value(Value::Bytes(bytes)),
            });
        }
    }
}

/// The parts of a stream.
fn parts(mut cutter: Cutter, is_narrow: bool, show: ShowNumber) -> Spans {
    let bytes = cutter.rest().clone();
    let layout = match StreamLayout::new(&bytes) {
        Ok(layout) => layout,
        Err(error) => return Spans::infallible(cutter.unparsed(error.message()).into_iter()),
    };
    let header = layout.header();
    let position = layout.position();
    let head = stream_header(&mut cutter, show(wrap(header.first, is_narrow)));
    let left = header.count.saturating_sub(1);
    let start = position;
    let blocks =
        BlockSpans { cutter, bytes, header, start, left, last: header.first, is_narrow, show };
    Spans::infallible(head.into_iter().chain(blocks))
}

/// The four numbers in front of the blocks.
fn stream_header(cutter: &mut Cutter, first: Value) -> Vec<Span> {
    let names = ["block size", "miniblocks in a block", "number of values", "first value"];
    let mut out = Vec::with_capacity(names.len());
    for name in names {
        let rest = cutter.rest();
        let len = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
        let number = crate::bytes::Cursor::new(rest, SPEC).uleb128().unwrap_or_default();
        out.push(match name {
            "first value" => cutter.cut(len, SpanKind::Value, name).with_value(first.clone()),
            _ => {
                let span = cutter.cut(len, SpanKind::EncodingParameter, name);
                span.with_value(Value::UInt(number))
            }
        });
    }
    out
}

/// A number of the stream in the width of its type.
fn wrap(number: i64, is_narrow: bool) -> i64 {
    if is_narrow { number << 32 >> 32 } else { number }
}

/// The blocks of a stream.
struct BlockSpans {
    cutter: Cutter,
    /// The stream, its header, and where its next block begins.
    bytes: Bytes,
    header: StreamHeader,
    start: usize,
    /// Values that are to come.
    left: usize,
    /// The last value of the block before.
    last: i64,
    is_narrow: bool,
    show: ShowNumber,
}

/// A block as it is stored.
struct StoredBlock {
    min_delta: i64,
    /// Bytes of the least difference.
    min_delta_len: usize,
    /// Bytes of the widths of the miniblocks.
    widths_len: usize,
    miniblocks: Vec<StoredMiniblock>,
    /// The last value.
    last: i64,
}

/// A miniblock, and what its differences are added to.
#[derive(Clone, Copy)]
struct StoredMiniblock {
    len: usize,
    width: u32,
    values: usize,
    min_delta: i64,
    /// The value before its first.
    before: i64,
    is_narrow: bool,
}

/// Miniblocks of a block that are shown: known writers have at most 32.
const MAX_MINIBLOCKS: usize = 1 << 16;

impl BlockSpans {
    fn next_block(&mut self) -> Result<Span> {
        let block = Arc::new(self.read_block()?);
        let values = block.miniblocks.iter().map(|of| of.values).sum();
        let len = block.len();
        self.start += len;
        self.left -= values;
        self.last = block.last;
        let span = self.cutter.cut(len, SpanKind::DeltaBlock, "block");
        let (bytes, show) = (span.in_memory(), self.show.clone());
        let list = {
            let (block, show) = (block.clone(), show.clone());
            Items::new(values as u64, move || block.values(bytes.clone(), show.clone()))
        };
        let span = span.with_count(values).with_value(Value::List(list));
        Ok(span.with_parts(move |cutter| block.parts(cutter, show.clone())))
    }

    /// Reads the next block, to its last value.
    fn read_block(&self) -> Result<StoredBlock> {
        let malformed = |what: fmt::Arguments<'_>| Error::malformed(SPEC, what);
        let mut layout = StreamLayout::at(&self.bytes, self.header, self.start, self.left)?;
        let mut block = StoredBlock {
            min_delta: 0,
            min_delta_len: 0,
            widths_len: 0,
            miniblocks: Vec::new(),
            last: self.last,
        };
        loop {
            let at = layout.position();
            match layout.next_part()? {
                Some(Part::MinDelta(delta)) if block.min_delta_len == 0 => {
                    (block.min_delta, block.min_delta_len) = (delta, layout.position() - at);
                }
                Some(Part::Widths(widths)) => {
                    block.widths_len = widths.len();
                    if widths.len() > MAX_MINIBLOCKS {
                        let n = widths.len();
                        return Err(malformed(format_args!(
                            "a block of {n} miniblocks is not shown"
                        )));
                    }
                }
                Some(Part::Miniblock { width, .. }) if width > 64 => {
                    return Err(malformed(format_args!("differences of {width} bits")));
                }
                Some(Part::Miniblock { width, values, .. }) => {
                    let packed = self.bytes.slice(at..layout.position());
                    let miniblock = StoredMiniblock {
                        len: packed.len(),
                        width,
                        values,
                        min_delta: block.min_delta,
                        before: block.last,
                        is_narrow: self.is_narrow,
                    };
                    block.last = miniblock.numbers(packed).skip_all();
                    block.miniblocks.push(miniblock);
                    if block.miniblocks.len() == block.widths_len {
                        break;
                    }
                }
                Some(Part::MinDelta(_)) | None => break,
            }
        }
        Ok(block)
    }
}

impl StoredBlock {
    /// Bytes of all its parts.
    fn len(&self) -> usize {
        let miniblocks = self.miniblocks.iter().map(|of| of.len);
        self.min_delta_len + self.widths_len + miniblocks.sum::<usize>()
    }

    /// The values of the block, whose bytes are `bytes`.
    fn values(&self, bytes: Bytes, show: ShowNumber) -> impl Iterator<Item = Value> + Send + use<> {
        let mut at = self.min_delta_len + self.widths_len;
        self.miniblocks.clone().into_iter().flat_map(move |of| {
            let packed = bytes.slice(at.min(bytes.len())..(at + of.len).min(bytes.len()));
            at += of.len;
            of.values(packed, show.clone())
        })
    }

    fn parts(&self, mut cutter: Cutter, show: ShowNumber) -> Spans {
        let least = cutter
            .cut(self.min_delta_len, SpanKind::MinDelta, "least difference")
            .with_value(Value::Int(self.min_delta));
        let name = "bit widths of the miniblocks";
        let widths = cutter.cut(self.widths_len, SpanKind::BitWidth, name);
        let bits = widths.in_memory().iter().map(|bits| Value::UInt((*bits).into())).collect();
        let widths = widths.with_value(numbers(bits));
        let miniblocks = self.miniblocks.clone().into_iter().enumerate();
        let rest = miniblocks.filter(|(_, of)| of.len > 0).map(move |(i, of)| {
            let span = cutter.cut(of.len, SpanKind::Miniblock, format!("miniblock {i}"));
            let (packed, show) = (span.in_memory(), show.clone());
            let list =
                Items::new(of.values as u64, move || of.values(packed.clone(), show.clone()));
            let unit = if of.width == 1 { "bit" } else { "bits" };
            let text = format!("differences of {} {unit}", of.width);
            span.with_count(of.values).with_value(Value::List(list)).with_text(text)
        });
        Spans::infallible([least, widths].into_iter().chain(rest))
    }
}

impl StoredMiniblock {
    /// Its values, whose differences are `packed`.
    fn numbers(self, packed: Bytes) -> MiniblockNumbers {
        let (block, used) = (Vec::new(), 0);
        MiniblockNumbers { packed, left: self.values, last: self.before, of: self, block, used }
    }

    fn values(self, packed: Bytes, show: ShowNumber) -> impl Iterator<Item = Value> + Send {
        self.numbers(packed).map(move |number| show(number))
    }
}

impl Iterator for BlockSpans {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.cutter.is_empty() {
            return None;
        }
        if self.left == 0 {
            return self.cutter.after_values();
        }
        match self.next_block() {
            Ok(span) => Some(span),
            Err(error) => self.cutter.unparsed(error.message()),
        }
    }
}

/// The values of a miniblock: packed differences, each added to the value before.
struct MiniblockNumbers {
    of: StoredMiniblock,
    packed: Bytes,
    left: usize,
    last: i64,
    /// Differences that were unpacked, and how many of them are used.
    block: Vec<u64>,
    used: usize,
}

impl MiniblockNumbers {
    /// The last value.
    fn skip_all(&mut self) -> i64 {
        if self.of.width == 0 {
            let n = std::mem::take(&mut self.left) as u64;
            let all = self.of.min_delta.wrapping_mul(n.cast_signed());
            self.last = wrap(self.last.wrapping_add(all), self.of.is_narrow);
            return self.last;
        }
        self.by_ref().last().unwrap_or(self.last)
    }
}

impl Iterator for MiniblockNumbers {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        if self.used == self.block.len() {
            self.block.clear();
            self.used = 0;
            // Whole groups of 32, so that the next one begins at a byte.
            let n = BLOCK.min(self.left + 1);
            unpack_u64(&self.packed, self.of.width, n, &mut self.block);
            let bytes = BLOCK / 8 * self.of.width as usize;
            let _ = self.packed.split_to(bytes.min(self.packed.len()));
        }
        let delta = self.block.get(self.used).copied().unwrap_or_default();
        self.used += 1;
        let step = self.of.min_delta.wrapping_add(delta.cast_signed());
        self.last = wrap(self.last.wrapping_add(step), self.of.is_narrow);
        Some(self.last)
    }
}

/// The numbers of a stream.
fn integer_list(bytes: &Bytes, n: usize, is_narrow: bool, show: ShowNumber) -> Option<Items> {
    // Beyond that, the count is no count of values that are there.
    StreamLayout::new(bytes).ok()?;
    let bytes = bytes.clone();
    Some(Items::new(n as u64, move || {
        let show = show.clone();
        DecodedNumbers::new(bytes.clone(), n, is_narrow).map(move |number| show(number))
    }))
}

/// The numbers of a stream by its decoder, some at a time.
struct DecodedNumbers {
    narrow: Option<Decoder<i32>>,
    wide: Option<Decoder<i64>>,
    left: usize,
    block: std::vec::IntoIter<i64>,
}

impl DecodedNumbers {
    fn new(bytes: Bytes, n: usize, is_narrow: bool) -> Self {
        let narrow = is_narrow.then(|| Decoder::new(bytes.clone(), n).ok()).flatten();
        let wide = (!is_narrow).then(|| Decoder::new(bytes, n).ok()).flatten();
        Self { narrow, wide, left: n, block: Vec::new().into_iter() }
    }
}

impl Iterator for DecodedNumbers {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if let Some(number) = self.block.next() {
            return Some(number);
        }
        let n = self.left.min(BLOCK);
        self.left -= n;
        let mut block: Vec<i64> = Vec::new();
        if let Some(decoder) = &mut self.narrow {
            let mut narrow = Vec::new();
            decoder.read(n, &mut narrow).ok()?;
            block.extend(narrow.into_iter().map(i64::from));
        } else {
            self.wide.as_mut()?.read(n, &mut block).ok()?;
        }
        self.block = block.into_iter();
        self.block.next()
    }
}

/// The values of a page in one of the delta encodings.
pub(super) fn list(
    bytes: &Bytes,
    encoding: Encoding,
    n: usize,
    column: &Arc<ShownColumn>,
) -> Option<Items> {
    let (bytes, column) = (bytes.clone(), column.clone());
    match encoding {
        Encoding::DeltaBinaryPacked => {
            let is_narrow = column.leaf.physical == Physical::Int32;
            let show: ShowNumber =
                Arc::new(move |number| column.word(number.cast_unsigned()).value);
            integer_list(&bytes, n, is_narrow, show)
        }
        Encoding::DeltaLengthByteArray => Some(Items::new(n as u64, move || {
            let column = column.clone();
            let mut decoder = delta_length::Decoder::new(bytes.clone(), n).ok();
            by_block(n, move |left| {
                let decoder = decoder.as_mut()?;
                let page = decoder.buffer().clone();
                let mut spans = Vec::new();
                decoder.read_spans(left.min(BLOCK), &mut spans).ok()?;
                let value = |span: &crate::encoding::ValueSpan| {
                    column.byte_string(page.slice_ref(span.slice(&page))).value
                };
                Some(spans.iter().map(value).collect())
            })
        })),
        Encoding::DeltaByteArray => Some(Items::new(n as u64, move || {
            let column = column.clone();
            let mut decoder = delta_bytes::Decoder::new(bytes.clone(), n, None).ok();
            by_block(n, move |left| {
                let block = decoder.as_mut()?.read_block(left, MAX_REPEATED).ok()?;
                let value = |span: crate::encoding::ValueSpan| {
                    let bytes = Bytes::copy_from_slice(span.slice(block.source));
                    column.byte_string(bytes).value
                };
                Some(block.spans().map(value).collect())
            })
        })),
        _ => None,
    }
}

/// Maximum bytes of the repeated values that are held at a time.
const MAX_REPEATED: usize = 16 << 20;

/// Values block by block; `read` takes the number of values that are left.
fn by_block(
    n: usize,
    mut read: impl FnMut(usize) -> Option<Vec<Value>> + Send,
) -> impl Iterator<Item = Value> + Send {
    let mut left = n;
    let blocks = std::iter::from_fn(move || {
        let block = if left == 0 { None } else { read(left) }?;
        left = left.checked_sub(block.len()).filter(|_| !block.is_empty())?;
        Some(block)
    });
    blocks.flatten()
}
