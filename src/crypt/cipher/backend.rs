//! [`Cipher`]: the operations that each cryptographic library provides.

use std::fmt;

use crate::error::{Error, Result};

/// Bytes of a nonce.
pub(in crate::crypt) const NONCE_LEN: usize = 12;

/// Bytes of a tag.
pub(in crate::crypt) const TAG_LEN: usize = 16;

/// A cipher with its key. `Sized`, as there is one backend in a build.
pub(in crate::crypt) trait Cipher: Sized {
    /// For a key of 16, 24 or 32 bytes; `None` if it has another length.
    fn new(key: &[u8]) -> Option<Self>;

    /// Encrypts in place by GCM, and returns the tag; `None` if the library refuses, as it does
    /// beyond 64 GiB.
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> Option<[u8; TAG_LEN]>;

    /// Decrypts in place by GCM; `None` if the tag is wrong; `data` are then undefined.
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()>;

    /// Encrypts or decrypts in place by CTR, the counter beginning with 1; `None` if the library
    /// refuses.
    fn ctr(&self, nonce: [u8; NONCE_LEN], data: &mut [u8]) -> Option<()>;
}

/// # Errors
/// `FeatureDisabled` if this build has no cipher.
pub(in crate::crypt) fn check_enabled(what: impl fmt::Display) -> Result<()> {
    match cfg!(feature = "encryption") {
        true => Ok(()),
        false => Err(Error::feature_disabled("encryption", what)),
    }
}

/// The first block of the counter: the nonce, then 1.
#[cfg_attr(not(feature = "encryption"), allow(dead_code))]
pub(super) fn first_block(nonce: [u8; NONCE_LEN]) -> [u8; 16] {
    let mut block = [0; 16];
    let (start, counter) = block.split_at_mut(NONCE_LEN);
    start.copy_from_slice(&nonce);
    counter.copy_from_slice(&1u32.to_be_bytes());
    block
}
