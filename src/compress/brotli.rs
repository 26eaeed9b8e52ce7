//! BROTLI: a page is one stream of RFC 7932.

use super::output::read_stream;
use crate::error::{Error, Result, Spec};

pub(super) struct Decoder;

/// Bytes of input that the decoder looks at at a time.
const BUFFER: usize = 64 << 10;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        if window_bits(input).is_none() {
            return Err(Error::malformed(
                Spec::Compression("BROTLI"),
                "the stream begins with no window size of RFC 7932",
            ));
        }
        let stream = || brotli::Decompressor::new(input, BUFFER.min(input.len().max(1)));
        read_stream(stream, input.len(), len, "BROTLI", out)
    }

    /// Bytes of the window and the buffer of the stream.
    pub(super) fn working_bytes(&self, input: &[u8]) -> usize {
        window_bits(input).map_or(0, |bits| (1 << bits) + BUFFER.min(input.len()))
    }
}

/// The binary logarithm of the window size in the first bits of a stream: 10 to 24. `None` if they
/// violate RFC 7932; the decoder would accept an extension with windows of up to 1 GiB.
fn window_bits(input: &[u8]) -> Option<u32> {
    let first = u32::from(*input.first()?);
    match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, ..) => Some(16),
        (_, 0, 0) => Some(17),
        (_, 0, 1) => None,
        (_, 0, bits) => Some(8 + bits),
        (_, bits, _) => Some(17 + bits),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_encoder_chose() {
        for lgwin in 10..=24 {
            let params = brotli::enc::BrotliEncoderParams { lgwin, ..Default::default() };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &[7u8; 5000][..], &mut out, &params).unwrap();
            let bits = window_bits(&out).unwrap();
            assert!((10..=lgwin.unsigned_abs()).contains(&bits), "{lgwin}: {bits}");
        }
        assert_eq!(window_bits(&[0b0001_0001]), None, "a window of the extension");
        assert_eq!(window_bits(&[]), None);
        assert_eq!(
            [0x00, 0x01, 0x0F, 0x21, 0x71].map(|b| window_bits(&[b])),
            [16, 17, 24, 10, 15].map(Some)
        );
    }
}
