//! Calls the crates of the codecs, and codes levels, so that pages are taken apart and put together
//! without the library under test.

use std::io::{Read, Write};

use marquetry::Compression;
use marquetry::format::CompressionCodec;

/// The codec of the bytes of a page.
pub fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Uncompressed => bytes.to_vec(),
        Compression::Snappy => snap::raw::Encoder::new().compress_vec(bytes).expect("a small page"),
        Compression::Gzip(level) => {
            let level = flate2::Compression::new(level.try_into().expect("a level is below 10"));
            let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
            out.write_all(bytes).expect("memory does not fail");
            out.finish().expect("memory does not fail")
        }
        Compression::Brotli(quality) => {
            let params = brotli::enc::BrotliEncoderParams { quality, ..Default::default() };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &*bytes, &mut out, &params).expect("memory does not fail");
            out
        }
        Compression::Zstd(level) => {
            let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
            zstd_safe::compress(&mut out, bytes, level).expect("room enough");
            out
        }
        Compression::Lz4Raw => lz4_flex::block::compress(bytes),
        Compression::Lzo if bytes.is_empty() => Vec::new(),
        Compression::Lzo => {
            let block = lzokay::compress::compress(bytes).expect("memory does not fail");
            let size = |n: usize| u32::try_from(n).expect("a small page").to_be_bytes();
            [&size(bytes.len())[..], &size(block.len()), &block].concat()
        }
        other => panic!("{other:?} is not written here"),
    }
}

/// The `len` bytes that are stored; `None` if they are others, or the codec is not known.
pub fn decompress(codec: CompressionCodec, bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let out = match codec {
        CompressionCodec::Uncompressed => bytes.to_vec(),
        CompressionCodec::Snappy => snap::raw::Decoder::new().decompress_vec(bytes).ok()?,
        CompressionCodec::Gzip => all_of(flate2::read::MultiGzDecoder::new(bytes), len)?,
        CompressionCodec::Brotli => all_of(brotli::Decompressor::new(bytes, 4096), len)?,
        CompressionCodec::Zstd => {
            let mut out = Vec::with_capacity(len);
            zstd_safe::decompress(&mut out, bytes).ok()?;
            out
        }
        CompressionCodec::Lz4Raw => lz4_flex::block::decompress(bytes, len).ok()?,
        CompressionCodec::Lz4 => {
            sections(bytes, |block, len| lz4_flex::block::decompress(block, len).ok())?
        }
        CompressionCodec::Lzo => sections(bytes, |block, len| {
            let mut out = vec![0; len];
            (lzokay::decompress::decompress(block, &mut out).ok()? == len).then_some(out)
        })?,
        _ => return None,
    };
    (out.len() == len).then_some(out)
}

/// Reads a stream, but at most one byte more than `len`.
fn all_of(stream: impl Read, len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    stream.take(len as u64 + 1).read_to_end(&mut out).ok()?;
    Some(out)
}

/// Hadoop's framing, of one block a section: the sizes before and after compression, then the
/// block.
fn sections(bytes: &[u8], block: impl Fn(&[u8], usize) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    const MAX_SECTION: usize = 1 << 22;
    let (mut rest, mut out) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (stored, after) = after.split_first_chunk::<4>()?;
        let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
        let stored = usize::try_from(u32::from_be_bytes(*stored)).ok()?;
        let (body, after) = after.split_at_checked(stored)?;
        out.extend(block(body, len.min(MAX_SECTION))?);
        rest = after;
    }
    Some(out)
}

/// Values that a page has at most: an earlier change may have made up another number.
const MAX_VALUES: usize = 1 << 22;

/// `n` values of a hybrid; `None` if it is broken, has fewer, or they are too many for a page.
pub fn rle_values(bytes: &[u8], width: u32, n: usize) -> Option<Vec<u32>> {
    if n > MAX_VALUES {
        return None;
    }
    let (mut rest, mut out) = (bytes, Vec::new());
    while out.len() < n {
        let header = take_uleb(&mut rest)?;
        let count = usize::try_from(header >> 1).ok()?;
        if header & 1 == 0 {
            let (value, after) = rest.split_at_checked(width.div_ceil(8) as usize)?;
            let mut word = [0; 4];
            word[..value.len()].copy_from_slice(value);
            out.extend(std::iter::repeat_n(u32::from_le_bytes(word), count.min(n - out.len())));
            rest = after;
        } else {
            let (groups, after) = rest.split_at_checked(count.checked_mul(width as usize)?)?;
            let bit = |at: usize| u32::from(groups[at / 8] >> (at % 8) & 1);
            let w = width as usize;
            let values = (0..count.saturating_mul(8).min(n - out.len()))
                .map(|i| (0..w).map(|k| bit(i * w + k) << k).sum());
            out.extend::<Vec<u32>>(values.collect());
            rest = after;
        }
    }
    Some(out)
}

fn take_uleb(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if *byte < 128 {
            return Some(value);
        }
    }
    None
}
