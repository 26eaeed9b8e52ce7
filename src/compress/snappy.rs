//! SNAPPY: one raw block, its length in front; not the framed format.

use super::exact_room;
use crate::error::{Error, Result, Spec};

/// A copy takes at least 3 bytes for 64.
const RATIO: usize = 22;

pub(super) struct Decoder(snap::raw::Decoder);

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(snap::raw::Decoder::new()))
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let broken = |e| {
            Error::malformed(Spec::Compression("SNAPPY"), format_args!("the block is broken: {e}"))
        };
        let stated = snap::raw::decompress_len(input).map_err(broken)?;
        if stated != len {
            return Err(Error::mismatch(
                Spec::Compression("SNAPPY"),
                "length of the block",
                len,
                stated,
            ));
        }
        exact_room(input, len, RATIO, "SNAPPY", out)?;
        let written = self.0.decompress(input, out).map_err(broken)?;
        out.truncate(written);
        Ok(())
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
