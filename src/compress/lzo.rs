//! LZO: the specification defines no framing. parquet-java writes Hadoop's sections around LZO1X
//! blocks; fastparquet writes one block after the header of python-lzo, which is a byte `F0` or
//! `F1` and the uncompressed size.

use super::hadoop;
use super::output::exact_len;
use crate::error::{Error, Result, Spec};

/// A match of any length takes a byte for 255.
const RATIO: usize = 255;

pub(super) struct Decoder;

impl Decoder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        exact_len(input, len, RATIO, "LZO", out)?;
        let block =
            |bytes: &[u8], target: &mut [u8]| lzokay::decompress::decompress(bytes, target).ok();
        if hadoop::sections(input, out, block).is_some() {
            return Ok(());
        }
        if let Some(([0xF0 | 0xF1, size @ ..], bytes)) = input.split_first_chunk::<5>()
            && usize::try_from(u32::from_be_bytes(*size)) == Ok(len)
            && block(bytes, out) == Some(len)
        {
            return Ok(());
        }
        if block(input, out) == Some(len) {
            return Ok(());
        }
        Err(Error::malformed(
            Spec::Compression("LZO"),
            "neither Hadoop blocks, nor a block of python-lzo, nor a raw block",
        ))
    }
}

pub(super) struct Encoder;

impl Encoder {
    pub(super) fn new(_level: i32) -> Result<Self> {
        Ok(Self)
    }

    /// Appends one section of Hadoop's framing: what parquet-java writes, and most readers of LZO
    /// know.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if input.is_empty() {
            // No section: one of no bytes would have no block.
            return Ok(());
        }
        let refused =
            |what: &dyn std::fmt::Display| Error::usage(format_args!("LZO refuses: {what}"));
        let block = lzokay::compress::compress(input).map_err(|e| refused(&e))?;
        let size = |n: usize| u32::try_from(n).map_err(|e| refused(&e));
        out.extend(size(input.len())?.to_be_bytes());
        out.extend(size(block.len())?.to_be_bytes());
        out.extend(block);
        Ok(())
    }
}
