//! GZIP: members of RFC 1952, one after the other; the portable decoder.

use flate2::read::MultiGzDecoder;

use super::read_stream;
use crate::error::Result;

pub(super) struct Decoder;

impl Decoder {
    #[allow(dead_code, reason = "the faster twin makes do without")]
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        read_stream(MultiGzDecoder::new(input), input.len(), len, "GZIP", out)
    }
}
