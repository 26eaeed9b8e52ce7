//! Stands in for the digests of checksums where their feature is off.

use crate::error::{Error, Result};

pub(super) fn md5(_: &[u8]) -> Result<[u8; 16]> {
    Err(disabled("MD5"))
}

pub(super) fn sha256(_: &[u8]) -> Result<[u8; 32]> {
    Err(disabled("SHA-256"))
}

pub(super) fn crc32c(_: &[u8]) -> Result<u32> {
    Err(disabled("CRC32C"))
}

#[cold]
fn disabled(algorithm: &str) -> Error {
    Error::feature_disabled(
        "file-references",
        format_args!("the checksum of a file reference by {algorithm}"),
    )
}
