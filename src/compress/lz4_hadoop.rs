//! LZ4: the deprecated codec, whose framing the specification leaves undefined. Writers use three
//! framings, which are tried in this order:
//!
//! 1. LZ4 frames, by their magic number: old parquet-rs.
//! 2. Hadoop's sections: parquet-java.
//! 3. One raw block: old parquet-cpp.

use std::io::Read;

use super::output::exact_len;
use super::{hadoop, lz4_raw};
use crate::error::{Error, Result, Spec};

pub(super) struct Decoder;

const FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4D, 0x18];

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        exact_len(input, len, lz4_raw::RATIO, "LZ4", out)?;
        if input.starts_with(&FRAME_MAGIC) && frames(input, out).is_some() {
            return Ok(());
        }
        let block =
            |bytes: &[u8], target: &mut [u8]| lz4_flex::block::decompress_into(bytes, target).ok();
        if hadoop::sections(input, out, block).is_some() {
            return Ok(());
        }
        let written = lz4_flex::block::decompress_into(input, out).map_err(|e| {
            Error::malformed(
                Spec::Compression("LZ4"),
                format_args!("neither a frame, nor Hadoop blocks, nor a raw block: {e}"),
            )
        })?;
        out.truncate(written);
        Ok(())
    }

    /// Bytes that a decoder of frames takes, if it may be asked.
    pub(super) fn working_bytes(&self, input: &[u8]) -> usize {
        if input.starts_with(&FRAME_MAGIC) { 2 * FRAME_BLOCK + (64 << 10) } else { 0 }
    }
}

/// Bytes of a block of a frame, at most: its decoder allocates a packed and an unpacked one,
/// and for a window of 64 KiB.
const FRAME_BLOCK: usize = 8 << 20;

/// Reads frames to exactly the length of `out`.
fn frames(input: &[u8], out: &mut [u8]) -> Option<()> {
    let mut decoder = lz4_flex::frame::FrameDecoder::new(input);
    decoder.read_exact(out).ok()?;
    (decoder.read(&mut [0]).ok()? == 0).then_some(())
}
