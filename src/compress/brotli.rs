//! BROTLI: one stream of RFC 7932.

use super::read_stream;
use crate::error::{Error, Result};

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

pub(super) struct Encoder(brotli::enc::BrotliEncoderParams);

impl Encoder {
    pub(super) fn new(level: i32) -> Result<Self> {
        Ok(Self(brotli::enc::BrotliEncoderParams {
            quality: level,
            lgwin: 22,
            ..Default::default()
        }))
    }

    /// Appends one stream.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut source = input;
        brotli::BrotliCompress(&mut source, out, &self.0)
            .map(drop)
            .map_err(|e| Error::io("compressing with BROTLI", e))
    }
}
