//! Wraps keys with other keys: nonce, ciphertext and tag of AES-GCM, encoded as Base64.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::crypt::cipher::{NONCE_LEN, Secret, TAG_LEN};
use crate::crypt::key::Key;
use crate::error::{Error, Result, Spec};

/// Encrypts a key by AES-GCM: nonce, ciphertext and tag as Base64.
pub(super) fn wrap_locally(key: &Key, with: &Key, aad: &[u8]) -> Result<String> {
    let mut data = Secret::from(key.expose_bytes().to_vec());
    let (nonce, tag) = with.seal(aad, &mut data)?;
    Ok(BASE64.encode([&nonce[..], &data, &tag].concat()))
}

pub(super) fn unwrap_locally(wrapped: &str, with: &Key, aad: &[u8]) -> Result<Key> {
    let bytes = BASE64.decode(wrapped).map_err(|_| malformed("a wrapped key is no Base64"))?;
    let parts = bytes.split_first_chunk::<NONCE_LEN>();
    let parts = parts.and_then(|(nonce, rest)| Some((*nonce, rest.split_last_chunk::<TAG_LEN>()?)));
    let Some((nonce, (data, tag))) = parts else {
        return Err(malformed("a wrapped key is too short"));
    };
    let mut data = Secret::from(data.to_vec());
    with.open(nonce, aad, &mut data, *tag).ok_or_else(|| {
        Error::crypto(
            "a wrapped key is not authentic: the master key is another, or it was changed",
        )
    })?;
    Key::new(&data).map_err(|_| malformed("a wrapped key has another length than keys of AES have"))
}

#[cold]
pub(super) fn malformed(message: impl fmt::Display) -> Error {
    Error::malformed(Spec::Encryption, format_args!("key material: {message}"))
}
