//! GZIP: a page is one or more members of RFC 1952. This is the portable decoder.

use std::io::Write;

use flate2::read::MultiGzDecoder;

use super::output::read_stream;
use crate::error::{Error, Result};

pub(super) struct Decoder;

impl Decoder {
    #[allow(dead_code, reason = "the faster twin makes do without")]
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        read_stream(|| MultiGzDecoder::new(input), input.len(), len, "GZIP", out)
    }
}

#[allow(dead_code, reason = "the faster twin makes do without")]
pub(super) struct Encoder(flate2::Compression);

#[allow(dead_code, reason = "the faster twin makes do without")]
impl Encoder {
    pub(super) fn new(level: i32) -> Result<Self> {
        Ok(Self(flate2::Compression::new(u32::try_from(level).unwrap_or(6).min(9))))
    }

    /// Appends one member.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut stream = flate2::write::GzEncoder::new(out, self.0);
        let written = stream.write_all(input).and_then(|()| stream.finish().map(drop));
        written.map_err(|e| Error::io("compressing with GZIP", e))
    }
}
