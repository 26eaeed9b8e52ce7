//! SNAPPY: a page is one raw block that begins with its uncompressed length, not the framed format.
//!
//! The decoder is our own ([`crate::simd::snappy`]), because pages of short strings spend most of
//! their time here, and because a read that wants the first rows of a page can stop early.

use super::output::{self, check_ratio, set_len};
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::memory;
use crate::simd::snappy::{MAX_SHORT, SLACK, SnappyFault, decompress};

/// A copy takes at least 3 bytes for 64.
const RATIO: usize = 22;

const SPEC: Spec = Spec::Compression("SNAPPY");

pub(super) struct Decoder;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut cursor = Cursor::new(input, SPEC);
        let stated = cursor.uleb128()?;
        if stated != len as u64 {
            return Err(Error::mismatch(SPEC, "length of the block", len, stated));
        }
        check_ratio(input, len, RATIO, "SNAPPY")?;
        let elements = cursor.rest();
        const { assert!(SLACK <= output::SLACK, "callers give as much") };
        set_len(out, len.saturating_add(SLACK))?;
        let done = decompress(elements, len, out).map_err(|fault| broken(fault, len))?;
        out.truncate(done.written);
        // Elements that follow would be bytes too many, but there is none of no bytes.
        if done.read < elements.len() {
            return Err(broken(SnappyFault::Long(done.read), len));
        }
        if done.written < len {
            return Err(Error::mismatch(SPEC, "bytes that come out", len, done.written));
        }
        Ok(())
    }

    /// Decompresses at least the first `wanted` of `len` bytes. Returns false, and leaves anything
    /// in `out`, if that is no less work than to decompress all, or if the block is malformed so
    /// far.
    pub(super) fn decompress_start(
        &mut self,
        input: &[u8],
        len: usize,
        wanted: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut cursor = Cursor::new(input, SPEC);
        // A copy may write more than is wanted.
        let max = wanted.saturating_add(MAX_SHORT);
        let is_less = max < len && cursor.uleb128().is_ok_and(|stated| stated == len as u64);
        if !is_less || check_ratio(input, max, RATIO, "SNAPPY").is_err() {
            return false;
        }
        if set_len(out, max + SLACK).is_err() {
            return false;
        }
        let done = decompress(cursor.rest(), wanted, out).map_or(0, |done| done.written);
        out.truncate(done);
        done >= wanted
    }
}

#[cold]
fn broken(fault: SnappyFault, len: usize) -> Error {
    match fault {
        SnappyFault::Cut(at) => Error::malformed(
            SPEC,
            format_args!("the block ends within the element at its byte {at}"),
        ),
        SnappyFault::Offset { at, offset, written } => Error::mismatch(
            SPEC,
            "offset of a copy",
            format_args!("1 to the {written} bytes that came out before"),
            format_args!("{offset}, in the element at byte {at} of the block"),
        ),
        SnappyFault::Long(at) => Error::malformed(
            SPEC,
            format_args!(
                "more than {len} bytes come out, with the element at byte {at} of the block"
            ),
        ),
    }
}

pub(super) struct Encoder(snap::raw::Encoder);

impl Encoder {
    pub(super) fn new(_level: i32) -> Result<Self> {
        Ok(Self(snap::raw::Encoder::new()))
    }

    /// Appends one block.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let max = snap::raw::max_compress_len(input.len());
        memory::room(out, max)?;
        out.resize(start + max, 0);
        let target = out.get_mut(start..).unwrap_or_default();
        let written = self
            .0
            .compress(input, target)
            .map_err(|e| Error::usage(format_args!("SNAPPY refuses: {e}")))?;
        out.truncate(start + written);
        Ok(())
    }
}
