//! Computes the digests of checksums.

use md5::{Digest, Md5};
use sha2::Sha256;

use crate::error::Result;

#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
pub(super) fn md5(bytes: &[u8]) -> Result<[u8; 16]> {
    Ok(Md5::digest(bytes).into())
}

#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
pub(super) fn sha256(bytes: &[u8]) -> Result<[u8; 32]> {
    Ok(Sha256::digest(bytes).into())
}

#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
pub(super) fn crc32c(bytes: &[u8]) -> Result<u32> {
    Ok(crc32c::crc32c(bytes))
}
