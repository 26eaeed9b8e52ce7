//! BROTLI: one stream of RFC 7932.

use super::read_stream;
use crate::error::Result;

pub(super) struct Decoder;

/// Bytes of input that the decoder looks at at a time.
const BUFFER: usize = 64 << 10;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        let stream = brotli::Decompressor::new(input, BUFFER.min(input.len().max(1)));
        read_stream(stream, input.len(), len, "BROTLI", out)
    }
}
