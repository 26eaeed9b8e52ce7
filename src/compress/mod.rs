//! Codecs compress and decompress the body of a page.
//!
//! Spec: Compression.md. Used by `page::open` and `page::seal`. There is one file for each codec; a
//! codec whose cargo feature is off comes from `disabled`. Trap: a page header states the
//! uncompressed size, and may lie, so memory is allocated as data arrive, or within what the codec
//! can expand to.

#[cfg_attr(not(feature = "default"), allow(dead_code))]
mod output;
mod disabled;
#[cfg(feature = "brotli")]
mod brotli;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "libdeflate")]
#[path = "gzip_libdeflate.rs"]
mod gzip_fast;
#[cfg(feature = "lz4")]
mod lz4_raw;
/// Hadoop's framing, which LZ4 and LZO share.
#[cfg_attr(not(feature = "default"), allow(dead_code))]
mod hadoop;
#[cfg(feature = "lz4")]
mod lz4_hadoop;
#[cfg(feature = "lzo")]
mod lzo;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

// A module here stands before one of the same name there.
#[allow(unused_imports, reason = "no codec may be disabled")]
use disabled::*;
#[cfg(all(feature = "gzip", not(feature = "libdeflate")))]
use gzip as gzip_fast;

pub(crate) use output::{SLACK, first_capacity};

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::{Error, Result, Spec};
use crate::format::CompressionCodec;
use crate::memory;
use output::clear_with_capacity;

/// Decompresses the pages of one codec; keeps its tables from page to page.
pub(crate) struct Decompressor(Codec);

enum Codec {
    Uncompressed,
    Snappy(snappy::Decoder),
    Gzip(gzip_fast::Decoder),
    Lzo(lzo::Decoder),
    Brotli(brotli::Decoder),
    Lz4Hadoop(lz4_hadoop::Decoder),
    Zstd(zstd::Decoder),
    Lz4Raw(lz4_raw::Decoder),
}

impl Decompressor {
    /// A decompressor of `codec`.
    ///
    /// # Errors
    /// `FeatureDisabled` if this build lacks it, `Unsupported` if the codec is unknown.
    pub(crate) fn new(codec: CompressionCodec) -> Result<Self> {
        Ok(Self(match codec {
            CompressionCodec::Uncompressed => Codec::Uncompressed,
            CompressionCodec::Snappy => Codec::Snappy(snappy::Decoder::new()?),
            CompressionCodec::Gzip => Codec::Gzip(gzip_fast::Decoder::new()?),
            CompressionCodec::Lzo => Codec::Lzo(lzo::Decoder::new()?),
            CompressionCodec::Brotli => Codec::Brotli(brotli::Decoder::new()?),
            CompressionCodec::Lz4 => Codec::Lz4Hadoop(lz4_hadoop::Decoder::new()?),
            CompressionCodec::Zstd => Codec::Zstd(zstd::Decoder::new()?),
            CompressionCodec::Lz4Raw => Codec::Lz4Raw(lz4_raw::Decoder::new()?),
            CompressionCodec::Unknown(number) => {
                return Err(Error::unsupported(
                    "compression codec",
                    format_args!("codec {number}"),
                ));
            }
        }))
    }

    /// Bytes of scratch memory for decompressing `input`, such as windows whose size the input
    /// states. Small sizes that do not depend on the input are not counted.
    pub(crate) fn working_bytes(&self, input: &[u8]) -> usize {
        match &self.0 {
            Codec::Brotli(codec) => codec.working_bytes(input),
            Codec::Lz4Hadoop(codec) => codec.working_bytes(input),
            Codec::Zstd(codec) => codec.working_bytes(input),
            _ => 0,
        }
    }

    /// Decompresses `input` to exactly `len` bytes, which replace those of `out`.
    ///
    /// The previous contents of `out` only save the allocation.
    ///
    /// # Errors
    /// `Malformed` if the input is broken, or becomes more or fewer bytes.
    pub(crate) fn decompress(&mut self, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        match &mut self.0 {
            Codec::Uncompressed => {
                clear_with_capacity(out, input.len())?;
                out.extend_from_slice(input);
            }
            Codec::Snappy(codec) => codec.decompress(input, len, out)?,
            Codec::Gzip(codec) => codec.decompress(input, len, out)?,
            Codec::Lzo(codec) => codec.decompress(input, len, out)?,
            Codec::Brotli(codec) => codec.decompress(input, len, out)?,
            Codec::Lz4Hadoop(codec) => codec.decompress(input, len, out)?,
            Codec::Zstd(codec) => codec.decompress(input, len, out)?,
            Codec::Lz4Raw(codec) => codec.decompress(input, len, out)?,
        }
        if out.len() == len {
            return Ok(());
        }
        Err(Error::mismatch(Spec::Compression("page"), "bytes that come out", len, out.len()))
    }

    /// Decompresses at least the first `wanted` of the `len` bytes of `input`, in place of the
    /// contents of `out`.
    ///
    /// Returns false, and leaves anything in `out`, if that is no less work than to decompress all
    /// of them, or if `input` is broken.
    pub(crate) fn decompress_start(
        &mut self,
        input: &[u8],
        len: usize,
        wanted: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        match &mut self.0 {
            Codec::Snappy(codec) => codec.decompress_start(input, len, wanted, out),
            _ => false,
        }
    }
}

/// A codec to write with, and its level.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Compression, WriteOptions};
///
/// let options = WriteOptions::default()
///     .with_compression(Compression::Zstd(3))
///     .with_column("payload", |column| column.with_compression(Compression::Uncompressed));
/// # let _ = options;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// None.
    Uncompressed,
    /// SNAPPY: fast, known to every reader.
    Snappy,
    /// GZIP, level 0 to 9 (12 with the feature `libdeflate`).
    Gzip(i32),
    /// BROTLI, level 0 to 11.
    Brotli(i32),
    /// ZSTD, level -7 to 22.
    Zstd(i32),
    /// LZ4_RAW: the fastest to read.
    Lz4Raw,
    /// LZO (feature `lzo`), which few readers know.
    Lzo,
}

impl Compression {
    /// The codec as the metadata name it.
    pub fn codec(self) -> CompressionCodec {
        match self {
            Self::Uncompressed => CompressionCodec::Uncompressed,
            Self::Snappy => CompressionCodec::Snappy,
            Self::Gzip(_) => CompressionCodec::Gzip,
            Self::Brotli(_) => CompressionCodec::Brotli,
            Self::Zstd(_) => CompressionCodec::Zstd,
            Self::Lz4Raw => CompressionCodec::Lz4Raw,
            Self::Lzo => CompressionCodec::Lzo,
        }
    }

    /// Its level, and those that there are.
    fn level(self) -> Option<(i32, RangeInclusive<i32>)> {
        match self {
            Self::Gzip(level) => Some((level, GZIP_LEVELS)),
            Self::Brotli(level) => Some((level, BROTLI_LEVELS)),
            Self::Zstd(level) => Some((level, ZSTD_LEVELS)),
            Self::Uncompressed | Self::Snappy | Self::Lz4Raw | Self::Lzo => None,
        }
    }

    /// Whether this build has the codec.
    pub(crate) fn is_built(self) -> bool {
        match self {
            Self::Uncompressed => true,
            Self::Snappy => cfg!(feature = "snappy"),
            Self::Gzip(_) => cfg!(feature = "gzip"),
            Self::Brotli(_) => cfg!(feature = "brotli"),
            // Without C, it is only decompressed.
            Self::Zstd(_) => cfg!(all(feature = "zstd", not(target_family = "wasm"))),
            Self::Lz4Raw => cfg!(feature = "lz4"),
            Self::Lzo => cfg!(feature = "lzo"),
        }
    }
}

impl std::str::FromStr for Compression {
    type Err = Error;

    /// `none`, `snappy`, `gzip`, `brotli`, `zstd`, `lz4_raw`, `lzo`; with a level: `zstd:3`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let name = name.to_ascii_lowercase();
        let level_in = |levels: RangeInclusive<i32>, default: i32| match level {
            None => Ok(default),
            Some(text) => {
                let level = text.parse().ok().filter(|level| levels.contains(level));
                level.ok_or_else(|| no_level(&name, &levels, text))
            }
        };
        let without_level = |codec| match level {
            None => Ok(codec),
            Some(_) => Err(Error::usage(format_args!("{name} has no levels"))),
        };
        match &*name {
            "none" | "uncompressed" => without_level(Self::Uncompressed),
            "snappy" => without_level(Self::Snappy),
            "gzip" => level_in(GZIP_LEVELS, 6).map(Self::Gzip),
            "brotli" => level_in(BROTLI_LEVELS, 4).map(Self::Brotli),
            "zstd" => level_in(ZSTD_LEVELS, 3).map(Self::Zstd),
            "lz4_raw" | "lz4" => without_level(Self::Lz4Raw),
            "lzo" => without_level(Self::Lzo),
            _ => Err(Error::usage(format_args!(
                "no codec \"{name}\"; there are none, snappy, gzip, brotli, zstd, lz4_raw and lzo"
            ))),
        }
    }
}

const GZIP_LEVELS: RangeInclusive<i32> = 0..=if cfg!(feature = "libdeflate") { 12 } else { 9 };
const BROTLI_LEVELS: RangeInclusive<i32> = 0..=11;
const ZSTD_LEVELS: RangeInclusive<i32> = -7..=22;

#[cold]
fn no_level(codec: &str, levels: &RangeInclusive<i32>, found: impl fmt::Display) -> Error {
    let (first, last) = (levels.start(), levels.end());
    Error::usage(format_args!("{codec} has levels {first} to {last}, not \"{found}\""))
}

/// Compresses the pages of one codec; keeps its tables from page to page.
pub(crate) struct Compressor(Encoder);

enum Encoder {
    Uncompressed,
    Snappy(Box<snappy::Encoder>),
    Gzip(gzip_fast::Encoder),
    Lzo(lzo::Encoder),
    Brotli(brotli::Encoder),
    Zstd(zstd::Encoder),
    Lz4Raw(lz4_raw::Encoder),
}

impl Compressor {
    /// A compressor.
    ///
    /// # Errors
    /// `FeatureDisabled` if this build lacks the codec, `Usage` if it has no such level.
    pub(crate) fn new(compression: Compression) -> Result<Self> {
        if let Some((level, levels)) = compression.level()
            && !levels.contains(&level)
        {
            return Err(no_level(&compression.codec().to_string(), &levels, level));
        }
        Ok(Self(match compression {
            Compression::Uncompressed => Encoder::Uncompressed,
            Compression::Snappy => Encoder::Snappy(Box::new(snappy::Encoder::new(0)?)),
            Compression::Gzip(level) => Encoder::Gzip(gzip_fast::Encoder::new(level)?),
            Compression::Lzo => Encoder::Lzo(lzo::Encoder::new(0)?),
            Compression::Brotli(level) => Encoder::Brotli(brotli::Encoder::new(level)?),
            Compression::Zstd(level) => Encoder::Zstd(zstd::Encoder::new(level)?),
            Compression::Lz4Raw => Encoder::Lz4Raw(lz4_raw::Encoder::new(0)?),
        }))
    }

    /// Appends `input`, compressed.
    ///
    /// # Errors
    /// `Usage` if `input` is longer than the codec can compress.
    pub(crate) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &mut self.0 {
            Encoder::Uncompressed => memory::append(out, input),
            Encoder::Snappy(codec) => codec.compress(input, out),
            Encoder::Gzip(codec) => codec.compress(input, out),
            Encoder::Lzo(codec) => codec.compress(input, out),
            Encoder::Brotli(codec) => codec.compress(input, out),
            Encoder::Zstd(codec) => codec.compress(input, out),
            Encoder::Lz4Raw(codec) => codec.compress(input, out),
        }
    }

    /// Like [`Compressor::compress`], if the bytes before and after each of `cuts`, which rise, are
    /// of other kinds: levels before values, the first bytes of numbers before the second. ZSTD
    /// then gives each kind a table of its own, and stores those without a pattern as they are.
    ///
    /// # Errors
    /// As [`Compressor::compress`].
    pub(crate) fn compress_apart(
        &mut self,
        input: &[u8],
        cuts: &[usize],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match &mut self.0 {
            Encoder::Zstd(codec) => codec.compress_apart(input, cuts, out),
            _ => self.compress(input, out),
        }
    }
}

#[cfg(all(
    test,
    feature = "snappy",
    feature = "gzip",
    feature = "zstd",
    feature = "brotli",
    feature = "lz4"
))]
mod tests;
