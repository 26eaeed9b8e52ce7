//! Stands in for the ciphers without the feature `encryption`: no key can be made.

use super::backend::{Cipher, NONCE_LEN, TAG_LEN, check_enabled};
use crate::error::Result;

/// Cannot be made.
pub(in crate::crypt) enum Aes {}

impl Cipher for Aes {
    fn new(_: &[u8]) -> Option<Self> {
        None
    }

    fn seal(&self, _: [u8; NONCE_LEN], _: &[u8], _: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        match *self {}
    }

    fn open(&self, _: [u8; NONCE_LEN], _: &[u8], _: &mut [u8], _: [u8; TAG_LEN]) -> Option<()> {
        match *self {}
    }

    fn ctr(&self, _: [u8; NONCE_LEN], _: &mut [u8]) -> Option<()> {
        match *self {}
    }
}

/// Bytes of a key that cannot be made.
pub(in crate::crypt) type Secret = Vec<u8>;

pub(in crate::crypt) fn random(_: &mut [u8]) -> Result<()> {
    check_enabled("a random key")
}
