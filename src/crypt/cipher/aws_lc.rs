//! Implements the ciphers with AWS-LC, which is several times as fast as `portable` where the
//! processor has vector instructions for AES.

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use super::backend::{Cipher, NONCE_LEN, TAG_LEN, first_block};

/// AES with a key of 128, 192 or 256 bits.
pub(in crate::crypt) struct AwsLcAes {
    gcm: LessSafeKey,
    /// Decrypting is encrypting, by CTR.
    ctr: DecryptingKey,
}

impl Cipher for AwsLcAes {
    fn new(key: &[u8]) -> Option<Self> {
        let (gcm, block) = match key.len() {
            16 => (&AES_128_GCM, &AES_128),
            24 => (&AES_192_GCM, &AES_192),
            32 => (&AES_256_GCM, &AES_256),
            _ => return None,
        };
        let gcm = LessSafeKey::new(UnboundKey::new(gcm, key).ok()?);
        let ctr = DecryptingKey::ctr(UnboundCipherKey::new(block, key).ok()?).ok()?;
        Some(Self { gcm, ctr })
    }

    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.gcm.seal_in_place_separate_tag(nonce, Aad::from(aad), data).ok()?;
        tag.as_ref().try_into().ok()
    }

    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.gcm.open_in_place_separate_tag(nonce, Aad::from(aad), &tag, data).ok().map(drop)
    }

    fn ctr(&self, nonce: [u8; NONCE_LEN], data: &mut [u8]) -> Option<()> {
        let start = DecryptionContext::Iv128(FixedLength::from(&first_block(nonce)));
        self.ctr.decrypt(data, start).ok().map(drop)
    }
}
