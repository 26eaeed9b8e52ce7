//! [`ChunkDecryptor`] decrypts the modules of a column chunk.
//!
//! Spec: Encryption.md. Used by `read::footer` and `page::open`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::aad::{ChunkOrdinals, Module};
use super::cipher::{NONCE_LEN, TAG_LEN};
use super::key::Key;
use crate::error::{Error, Result, Spec};
use crate::memory;

/// Opens the modules of a column chunk. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ChunkDecryptor {
    pub(super) key: Key,
    pub(super) aad: Arc<[u8]>,
    pub(super) has_ctr_pages: bool,
    pub(super) place: ChunkOrdinals,
}

impl fmt::Debug for ChunkDecryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkDecryptor").field("place", &self.place).finish_non_exhaustive()
    }
}

impl ChunkDecryptor {
    /// Bytes of the module at the start of `bytes`; more may follow it.
    ///
    /// # Errors
    /// `Malformed(Encryption)` if they end before it does.
    pub(crate) fn module_len(bytes: &[u8]) -> Result<usize> {
        let len = bytes.first_chunk::<LENGTH_LEN>().map(|len| u32::from_le_bytes(*len));
        let len = len.and_then(|len| usize::try_from(len).ok()?.checked_add(LENGTH_LEN));
        len.filter(|len| *len <= bytes.len()).ok_or_else(|| {
            Error::mismatch(
                Spec::Encryption,
                "length of the module",
                format_args!("at most the {} bytes that are left", bytes.len()),
                len.map_or_else(|| "no length".to_owned(), |len| len.to_string()),
            )
        })
    }

    /// Decrypts a module.
    ///
    /// # Errors
    /// `Crypto` if it is not authentic, `Malformed(Encryption)` if its length is not the one that
    /// it states.
    pub(crate) fn open(&self, module: Module, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.open_into(module, bytes, &mut out)?;
        Ok(out)
    }

    /// Like [`ChunkDecryptor::open`], into a buffer that is reused.
    ///
    /// # Errors
    /// As [`ChunkDecryptor::open`].
    pub(crate) fn open_into(&self, module: Module, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let aad = module.aad(&self.aad, self.place)?;
        open(&self.key, module, &aad, !self.authenticates(module), bytes, out)
    }

    /// Whether the contents of a module are authenticated.
    pub(crate) fn authenticates(&self, module: Module) -> bool {
        !(self.has_ctr_pages && module.is_page_body())
    }

    /// Encrypted length, in bytes, of a GCM module whose plaintext has `plain_len` bytes.
    pub(crate) fn stored_len(plain_len: usize) -> usize {
        plain_len.saturating_add(LENGTH_LEN + NONCE_LEN + TAG_LEN)
    }

    /// Bytes that a module of `len` bytes decrypts to, at most.
    pub(crate) fn plain_len(len: usize) -> usize {
        len.saturating_sub(LENGTH_LEN + NONCE_LEN)
    }
}

/// The contents of a module, or `stored` as it is where nothing is encrypted.
///
/// # Errors
/// As [`ChunkDecryptor::open`].
pub(crate) fn opened<'a>(
    decryptor: Option<&ChunkDecryptor>,
    module: Module,
    stored: &'a [u8],
) -> Result<Cow<'a, [u8]>> {
    match decryptor {
        Some(decryptor) => decryptor.open(module, stored).map(Cow::Owned),
        None => Ok(Cow::Borrowed(stored)),
    }
}

/// Bytes of the length before a module.
const LENGTH_LEN: usize = 4;

/// Decrypts a module into `out`.
pub(super) fn open(
    key: &Key,
    module: Module,
    aad: &[u8],
    is_ctr: bool,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let len = ChunkDecryptor::module_len(bytes)?;
    let wrong_len = |expected: &dyn fmt::Display| {
        Error::mismatch(Spec::Encryption, "bytes of the module", expected, bytes.len())
    };
    if len != bytes.len() {
        return Err(wrong_len(&len));
    }
    let body = bytes.get(LENGTH_LEN..).and_then(|rest| rest.split_first_chunk::<NONCE_LEN>());
    let Some((&nonce, sealed)) = body else {
        return Err(wrong_len(&format_args!("at least {}", LENGTH_LEN + NONCE_LEN)));
    };
    out.clear();
    if is_ctr {
        memory::append(out, sealed)?;
        return key.decrypt_ctr(nonce, out).ok_or_else(|| not_authentic(module));
    }
    let Some((data, &tag)) = sealed.split_last_chunk::<TAG_LEN>() else {
        return Err(wrong_len(&format_args!("at least {}", LENGTH_LEN + NONCE_LEN + TAG_LEN)));
    };
    memory::append(out, data)?;
    match key.open(nonce, aad, out, tag) {
        Some(()) => Ok(()),
        None => {
            // Data that are not authentic are not returned.
            out.clear();
            Err(not_authentic(module))
        }
    }
}

#[cold]
pub(super) fn not_authentic(module: Module) -> Error {
    Error::crypto(format_args!(
        "{} is not authentic: the key or the AAD prefix is wrong, or the file was changed",
        module.name()
    ))
}
