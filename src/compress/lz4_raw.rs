//! LZ4_RAW: a page is one LZ4 block without framing.

use super::output::exact_len;
use crate::error::{Error, Result, Spec};

/// A match of any length takes a byte for 255.
pub(super) const RATIO: usize = 255;

pub(super) struct Decoder;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        exact_len(input, len, RATIO, "LZ4_RAW", out)?;
        let written = lz4_flex::block::decompress_into(input, out).map_err(|e| {
            Error::malformed(Spec::Compression("LZ4_RAW"), format_args!("the block is broken: {e}"))
        })?;
        out.truncate(written);
        Ok(())
    }
}

pub(super) struct Encoder;

impl Encoder {
    pub(super) fn new(_level: i32) -> Result<Self> {
        Ok(Self)
    }

    /// Appends one block.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + lz4_flex::block::get_maximum_output_size(input.len()), 0);
        let target = out.get_mut(start..).unwrap_or_default();
        let written = lz4_flex::block::compress_into(input, target)
            .map_err(|e| Error::usage(format_args!("LZ4_RAW refuses: {e}")))?;
        out.truncate(start + written);
        Ok(())
    }
}
