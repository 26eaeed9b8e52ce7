//! [`TemporaryKey`]: encrypts bytes in temporary files, with a key that only this process has.

use super::cipher::{NONCE_LEN, TAG_LEN};
use super::key::Key;
use crate::error::{Error, Result};

/// A key that is generated, never leaves the memory of the process, and goes with it. Cheap to
/// clone.
///
/// ```text
/// nonce, 12 bytes | tag, 16 bytes | ciphertext, AES-GCM with 128 bits
/// ```
#[derive(Debug, Clone)]
pub(crate) struct TemporaryKey(Key);

impl TemporaryKey {
    /// # Errors
    /// `FeatureDisabled` without the feature `encryption`, `Crypto` if the generator fails.
    pub(crate) fn generate() -> Result<Self> {
        Key::generate(128).map(Self)
    }

    /// Encrypts bytes, which are authenticated together with their number.
    ///
    /// # Errors
    /// `Crypto` if the key was used too often, or the generator fails.
    pub(crate) fn seal(&self, number: u64, bytes: &mut Vec<u8>) -> Result<()> {
        let (nonce, tag) = self.0.seal(&number.to_le_bytes(), bytes)?;
        bytes.splice(0..0, nonce.into_iter().chain(tag));
        Ok(())
    }

    /// Decrypts bytes that were encrypted with this number.
    ///
    /// # Errors
    /// `Crypto` if they are others.
    pub(crate) fn open(&self, number: u64, sealed: &[u8]) -> Result<Vec<u8>> {
        let changed = || Error::crypto("a temporary file is not as it was written");
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(changed)?;
        let (tag, body) = rest.split_first_chunk::<TAG_LEN>().ok_or_else(changed)?;
        let mut bytes = body.to_vec();
        self.0.open(*nonce, &number.to_le_bytes(), &mut bytes, *tag).ok_or_else(changed)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::check_enabled;
    use super::*;

    #[test]
    fn only_the_bytes_that_were_sealed_are_opened() {
        if check_enabled("a key").is_err() {
            assert!(TemporaryKey::generate().is_err());
            return;
        }
        let key = TemporaryKey::generate().unwrap();
        for plain in [&b""[..], b"values", &[7; 1000]] {
            let mut sealed = plain.to_vec();
            key.seal(3, &mut sealed).unwrap();
            assert_eq!(key.open(3, &sealed).unwrap(), plain);
            assert!(key.open(4, &sealed).is_err());
            assert!(TemporaryKey::generate().unwrap().open(3, &sealed).is_err());
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert!(key.open(3, &changed).is_err());
                assert!(key.open(3, &sealed[..at]).is_err());
            }
        }
    }
}
