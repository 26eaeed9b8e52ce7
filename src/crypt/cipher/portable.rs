//! Implements the ciphers with the crates `aes-gcm` and `ctr`, which use the AES instructions of
//! the processor if it has them. The key schedule is zeroized when it is dropped.

use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::consts::U12;
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{AesGcm, KeyInit};
use ctr::Ctr32BE;
use ctr::cipher::{InnerIvInit, StreamCipher, StreamCipherCoreWrapper};

use super::backend::{Cipher, NONCE_LEN, TAG_LEN, first_block};

/// AES with a key of 128, 192 or 256 bits.
pub(in crate::crypt) enum RustCryptoAes {
    Bits128(Box<Modes<Aes128>>),
    Bits192(Box<Modes<Aes192>>),
    Bits256(Box<Modes<Aes256>>),
}

/// The two modes of a block cipher, whose key is scheduled once.
pub(in crate::crypt) struct Modes<B> {
    gcm: AesGcm<B, U12>,
    block: B,
}

impl<B: KeyInit + Clone> Modes<B>
where
    AesGcm<B, U12>: From<B>,
{
    fn new(key: &[u8]) -> Option<Box<Self>> {
        let block = B::new_from_slice(key).ok()?;
        Some(Box::new(Self { gcm: block.clone().into(), block }))
    }
}

/// Calls the same of whichever size the key has.
macro_rules! of_any_size {
    ($aes:expr, $modes:ident => $do:expr) => {
        match $aes {
            RustCryptoAes::Bits128($modes) => $do,
            RustCryptoAes::Bits192($modes) => $do,
            RustCryptoAes::Bits256($modes) => $do,
        }
    };
}

impl Cipher for RustCryptoAes {
    fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Modes::new(key).map(Self::Bits128),
            24 => Modes::new(key).map(Self::Bits192),
            32 => Modes::new(key).map(Self::Bits256),
            _ => None,
        }
    }

    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        of_any_size!(self, modes => {
            modes.gcm.encrypt_inout_detached(&nonce.into(), aad, data.into()).ok().map(Into::into)
        })
    }

    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()> {
        let (nonce, tag) = (nonce.into(), tag.into());
        of_any_size!(self, modes => {
            modes.gcm.decrypt_inout_detached(&nonce, aad, data.into(), &tag).ok()
        })
    }

    fn ctr(&self, nonce: [u8; NONCE_LEN], data: &mut [u8]) -> Option<()> {
        let start = first_block(nonce).into();
        of_any_size!(self, modes => {
            let core = InnerIvInit::inner_iv_init(&modes.block, &start);
            let mut stream: Ctr32BE<_> = StreamCipherCoreWrapper::from_core(core);
            stream.try_apply_keystream(data).ok()
        })
    }
}
