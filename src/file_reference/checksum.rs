//! [`Checksum`]: the checksum of the bytes that a FILE value refers to.
//!
//! Spec: LogicalTypes.md, FILE, "checksum".
//! Trap: an ETAG belongs to the whole resource, even if the value refers to a part of it, and its
//! algorithm is unknown.

use std::fmt;

use super::digest;
use crate::error::{Error, Result, Spec, quoted};

/// A checksum: `algorithm:digest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Checksum<'a> {
    /// The ETag of the whole resource. It can be compared with that of the store, but not computed.
    Etag(&'a str),
    /// MD5.
    Md5([u8; 16]),
    /// CRC-32, as in gzip.
    Crc32(u32),
    /// CRC-32C.
    Crc32c(u32),
    /// SHA-256.
    Sha256([u8; 32]),
    /// A checksum of a known algorithm whose digest is not lowercase hexadecimal of the right
    /// length; the whole text.
    Malformed(&'a str),
    /// A checksum of an unknown algorithm, which is not verified; the whole text.
    Unknown(&'a str),
}

impl<'a> Checksum<'a> {
    /// Parses `algorithm:digest`.
    pub fn parse(text: &'a str) -> Self {
        let Some((algorithm, digest)) = text.split_once(':') else {
            return Self::Unknown(text);
        };
        let known = match algorithm {
            "ETAG" => Some(Self::Etag(digest)),
            "MD5" => hex(digest).map(Self::Md5),
            "CRC32" => hex(digest).map(u32::from_be_bytes).map(Self::Crc32),
            "CRC32C" => hex(digest).map(u32::from_be_bytes).map(Self::Crc32c),
            "SHA-256" => hex(digest).map(Self::Sha256),
            _ => return Self::Unknown(text),
        };
        known.unwrap_or(Self::Malformed(text))
    }

    /// Compares it with the checksum of the bytes that a value refers to. An ETAG, and a checksum
    /// of an unknown algorithm, are not verified.
    ///
    /// # Errors
    /// `Malformed(LogicalTypes("FILE"))` if the bytes have another checksum, or it is malformed
    /// itself; `FeatureDisabled` if its algorithm needs the feature `file-references`.
    pub fn verify(&self, bytes: &[u8]) -> Result<()> {
        let found = match self {
            Self::Etag(_) | Self::Unknown(_) => return Ok(()),
            Self::Malformed(text) => {
                return Err(Error::malformed(
                    Spec::LogicalTypes("FILE"),
                    format_args!(
                        "checksum {}: expected lowercase hexadecimal digits, 32 for MD5, 8 for CRC32 \
                         and CRC32C, 64 for SHA-256",
                        quoted(text)
                    ),
                ));
            }
            Self::Md5(_) => Self::Md5(digest::md5(bytes)?),
            Self::Crc32(_) => Self::Crc32(crc32fast::hash(bytes)),
            Self::Crc32c(_) => Self::Crc32c(digest::crc32c(bytes)?),
            Self::Sha256(_) => Self::Sha256(digest::sha256(bytes)?),
        };
        if found == *self {
            return Ok(());
        }
        Err(Error::mismatch(
            Spec::LogicalTypes("FILE"),
            "checksum of the bytes referred to",
            self,
            found,
        ))
    }
}

/// The text of the FILE value.
impl fmt::Display for Checksum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        match self {
            Self::Etag(tag) => write!(f, "ETAG:{tag}"),
            Self::Md5(digest) => {
                f.write_str("MD5:")?;
                digits(f, digest)
            }
            Self::Crc32(digest) => write!(f, "CRC32:{digest:08x}"),
            Self::Crc32c(digest) => write!(f, "CRC32C:{digest:08x}"),
            Self::Sha256(digest) => {
                f.write_str("SHA-256:")?;
                digits(f, digest)
            }
            Self::Malformed(text) | Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// Parses exactly `2 * N` lowercase hexadecimal digits.
fn hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}
