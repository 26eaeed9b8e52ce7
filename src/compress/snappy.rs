//! SNAPPY: one raw block, its length in front; not the framed format.

use super::exact_len;
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};

/// A copy takes at least 3 bytes for 64.
const RATIO: usize = 22;

/// The longest that a copy can be.
const LONGEST_COPY: usize = 64;

/// Literals of more bytes than this state their length in further bytes.
const SHORT_LITERAL: u8 = 60;

pub(super) struct Decoder {
    codec: snap::raw::Decoder,
    /// Whether what the codec has written stays when it runs out of room; `None` until that is
    /// tried.
    stops: Option<bool>,
    /// The begin of a block.
    start: Vec<u8>,
}

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { codec: snap::raw::Decoder::new(), stops: None, start: Vec::new() })
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let stated = snap::raw::decompress_len(input).map_err(broken)?;
        if stated != len {
            return Err(Error::mismatch(
                Spec::Compression("SNAPPY"),
                "length of the block",
                len,
                stated,
            ));
        }
        exact_len(input, len, RATIO, "SNAPPY", out)?;
        let written = self.codec.decompress(input, out).map_err(broken)?;
        out.truncate(written);
        Ok(())
    }

    /// Decompresses the first `wanted` of `len` bytes, or some more. Where that is no less work
    /// than to decompress all, or the block is not sound, it says no, and `out` is of no meaning.
    pub(super) fn decompress_start(
        &mut self,
        input: &[u8],
        len: usize,
        wanted: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let max_bytes = wanted.saturating_add(LONGEST_COPY);
        let mut cursor = Cursor::new(input, Spec::Compression("SNAPPY"));
        if max_bytes >= len || !cursor.uleb128().is_ok_and(|stated| stated == len as u64) {
            return false;
        }
        let body = cursor.rest();
        // What cannot be compressed is one literal.
        if let Some(found) = first_literal(body).and_then(|literal| literal.get(..wanted)) {
            out.clear();
            out.extend_from_slice(found);
            return true;
        }
        // Encoders need no more bytes for so many.
        let body = body.get(..snap::raw::max_compress_len(max_bytes)).unwrap_or(body);
        let mut start = std::mem::take(&mut self.start);
        let reached = self.decompress_within(max_bytes, body, &mut start, out);
        self.start = start;
        out.truncate(reached);
        reached >= wanted
    }

    /// Decompresses as far as `max_bytes` bytes reach, and says how far.
    ///
    /// The codec is told that the block ends there; what it says of the first element that does not
    /// fit is where that begins.
    fn decompress_within(
        &mut self,
        max_bytes: usize,
        body: &[u8],
        start: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> usize {
        let stops = self.stops.unwrap_or_else(|| stops_where_told(&mut self.codec));
        self.stops = Some(stops);
        start.clear();
        put_len(max_bytes, start);
        start.extend_from_slice(body);
        if !stops || exact_len(start, max_bytes, RATIO, "SNAPPY", out).is_err() {
            return 0;
        }
        let of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        match self.codec.decompress(start, out) {
            Ok(written) => written,
            Err(snap::Error::HeaderMismatch { got_len, .. }) => of(got_len),
            Err(snap::Error::CopyWrite { dst_len, .. }) => max_bytes.saturating_sub(of(dst_len)),
            Err(snap::Error::Literal { len, src_len, dst_len }) => {
                let at = max_bytes.saturating_sub(of(dst_len));
                // It may be the length of the literal that is not there.
                if len <= 4 {
                    return at;
                }
                let literal = start.get(start.len().saturating_sub(of(src_len))..);
                let literal = literal.unwrap_or_default();
                let n = literal.len().min(of(len)).min(of(dst_len));
                if let (Some(to), Some(from)) = (out.get_mut(at..at + n), literal.get(..n)) {
                    to.copy_from_slice(from);
                }
                at + n
            }
            Err(_) => 0,
        }
    }
}

/// Appends the length that a block begins with, 7 bits a byte.
fn put_len(mut len: usize, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = len.to_le_bytes();
        len >>= 7;
        if len == 0 {
            out.push(low & 0x7F);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cold]
fn broken(error: snap::Error) -> Error {
    Error::malformed(Spec::Compression("SNAPPY"), format_args!("the block is broken: {error}"))
}

/// The literal that a block, without its length, begins with, if that is a long one.
fn first_literal(body: &[u8]) -> Option<&[u8]> {
    let (tag, rest) = body.split_first()?;
    let bytes = usize::from((tag >> 2).checked_sub(SHORT_LITERAL - 1)?);
    if tag & 3 != 0 || bytes == 0 {
        return None;
    }
    let (len, rest) = rest.split_at_checked(bytes)?;
    let len = len.iter().rev().fold(0usize, |len, byte| len << 8 | usize::from(*byte));
    rest.get(..len.checked_add(1)?)
}

/// Tries what the documentation of the codec does not promise: that what it has written is there
/// when it runs out of room, be it for a copy or for a literal, and that it says where it stopped.
fn stops_where_told(codec: &mut snap::raw::Decoder) -> bool {
    // A literal of 6 bytes, a copy of 11, and a literal of 7; and room as far as within each of the
    // last two.
    let block = |max_bytes: u8| {
        [&[max_bytes, 5 << 2][..], b"abcdef", &[0b1_1101, 6, 6 << 2], b"ABCDEFG"].concat()
    };
    let mut out = [0; 24];
    let copy = codec.decompress(&block(14), &mut out);
    let copied = matches!(copy, Err(snap::Error::CopyWrite { dst_len: 8, .. }));
    if !copied || !out.starts_with(b"abcdef") {
        return false;
    }
    out.fill(0);
    let literal = codec.decompress(&block(20), &mut out);
    let expected = snap::Error::Literal { len: 7, src_len: 7, dst_len: 3 };
    literal == Err(expected) && out.starts_with(b"abcdefabcdefabcde")
}

pub(super) struct Encoder(snap::raw::Encoder);

impl Encoder {
    pub(super) fn new(_level: i32) -> Result<Self> {
        Ok(Self(snap::raw::Encoder::new()))
    }

    /// Appends one block.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + snap::raw::max_compress_len(input.len()), 0);
        let target = out.get_mut(start..).unwrap_or_default();
        let written = self
            .0
            .compress(input, target)
            .map_err(|e| Error::usage(format_args!("SNAPPY refuses: {e}")))?;
        out.truncate(start + written);
        Ok(())
    }
}
