//! Decompresses GZIP with libdeflate, about three times as fast as the portable decoder. It takes
//! pages of one member; pages of several members, and sizes that look wrong, go to the portable
//! decoder.

use super::gzip;
use super::output::{clear_with_capacity, first_capacity};
use crate::error::{Error, Result};
use crate::memory;

pub(super) struct Decoder(libdeflater::Decompressor);

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(libdeflater::Decompressor::new()))
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        if first_capacity(input.len(), len) == len {
            if out.capacity() < len {
                clear_with_capacity(out, len)?;
            }
            out.resize(len, 0);
            if self.0.gzip_decompress(input, out) == Ok(len) && ends_with_len(input, len) {
                return Ok(());
            }
        }
        gzip::Decoder.decompress(input, len, out)
    }
}

/// Whether the input ends with the length of this output, as its only member does: libdeflate does
/// not tell what follows the first one. Another member of the same length is not found so.
///
/// Spec: RFC 1952, section 2.3.1, ISIZE (`u32le`).
fn ends_with_len(input: &[u8], len: usize) -> bool {
    let stated = input.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    stated.is_some_and(|stated| u32::try_from(len) == Ok(stated))
}

pub(super) struct Encoder(libdeflater::Compressor);

impl Encoder {
    pub(super) fn new(level: i32) -> Result<Self> {
        let level = libdeflater::CompressionLvl::new(level)
            .map_err(|_| Error::usage(format_args!("GZIP has no level {level}")))?;
        Ok(Self(libdeflater::Compressor::new(level)))
    }

    /// Appends one member.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let max = self.0.gzip_compress_bound(input.len());
        memory::room(out, max)?;
        out.resize(start + max, 0);
        let target = out.get_mut(start..).unwrap_or_default();
        let written = self
            .0
            .gzip_compress(input, target)
            .map_err(|e| Error::usage(format_args!("GZIP refuses: {e}")))?;
        out.truncate(start + written);
        Ok(())
    }
}
