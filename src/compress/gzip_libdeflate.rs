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
            if self.0.gzip_decompress(input, out) == Ok(len) && ends_with_trailer(input, out) {
                return Ok(());
            }
        }
        gzip::Decoder.decompress(input, len, out)
    }
}

/// Whether the input ends as the member of this output ends: libdeflate does not tell what follows
/// the first member. RFC 1952: CRC-32 and length, both `u32le`.
fn ends_with_trailer(input: &[u8], out: &[u8]) -> bool {
    let Some((_, trailer)) = input.split_last_chunk::<8>() else { return false };
    let (crc, len) = (u64::from(crc32fast::hash(out)), out.len() as u64);
    u64::from_le_bytes(*trailer) == crc | len << 32
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
