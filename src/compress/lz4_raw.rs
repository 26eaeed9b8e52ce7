//! LZ4_RAW: one block without any framing.

use super::exact_room;
use crate::error::{Error, Result, Spec};

/// A match of any length takes a byte for 255.
pub(super) const RATIO: usize = 255;

pub(super) struct Decoder;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        exact_room(input, len, RATIO, "LZ4_RAW", out)?;
        let written = lz4_flex::block::decompress_into(input, out).map_err(|e| {
            Error::malformed(Spec::Compression("LZ4_RAW"), format_args!("the block is broken: {e}"))
        })?;
        out.truncate(written);
        Ok(())
    }
}
