//! Stand-ins for the types of the cargo feature `encryption`. None can be constructed, so that the
//! stages that hold them compile without the feature.

use std::borrow::Cow;

use super::aad::Module;
use super::signature::Signature;
use crate::error::{Error, Result};
use crate::format::{ColumnCryptoMetaData, EncryptionAlgorithm, FileCryptoMetaData};
use crate::schema::{Leaf, LeafPath};

macro_rules! never {
    ($($name:ident)*) => {$(
        /// Cannot be constructed.
        #[derive(Debug, Clone)]
        pub(crate) enum $name {}
    )*};
}

never!(Decryption FileDecryptor ChunkDecryptor Encryption FileEncryptor ChunkEncryptor LeafProtection Key);

impl Decryption {
    pub(crate) fn check_plaintext_file(&self) -> Result<()> {
        match *self {}
    }
}

impl FileDecryptor {
    pub(crate) fn new(
        keys: &Decryption,
        _: &EncryptionAlgorithm,
        _: Option<&[u8]>,
        _: bool,
    ) -> Result<Self> {
        match *keys {}
    }

    #[cold]
    pub(crate) fn needed(what: &str) -> Error {
        Error::feature_disabled("encryption", format_args!("{what} is encrypted, and reading it"))
    }

    pub(crate) fn footer(&self, _: &[u8]) -> Result<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn verify(&self, _: &[u8], _: &[u8]) -> Result<Signature> {
        match *self {}
    }

    pub(crate) fn column_key(&self, _: &LeafPath, _: &ColumnCryptoMetaData) -> Result<Key> {
        match *self {}
    }

    pub(crate) fn has_ctr_pages(&self) -> bool {
        match *self {}
    }

    pub(crate) fn check_plaintext_column(&self, _: &LeafPath) -> Result<()> {
        match *self {}
    }

    pub(crate) fn has_encrypted_metadata(&self, _: &ColumnCryptoMetaData) -> bool {
        match *self {}
    }

    pub(crate) fn chunk(&self, _: Key, _: usize, _: usize) -> Result<ChunkDecryptor> {
        match *self {}
    }
}

impl ChunkDecryptor {
    pub(crate) fn module_len(bytes: &[u8]) -> Result<usize> {
        Ok(bytes.len())
    }

    pub(crate) fn open(&self, _: Module, _: &[u8]) -> Result<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn open_into(&self, _: Module, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn authenticates(&self, _: Module) -> bool {
        match *self {}
    }

    pub(crate) fn plain_len(len: usize) -> usize {
        len
    }
}

pub(crate) fn opened<'a>(
    decryptor: Option<&ChunkDecryptor>,
    _: Module,
    stored: &'a [u8],
) -> Result<Cow<'a, [u8]>> {
    match decryptor {
        Some(decryptor) => match *decryptor {},
        None => Ok(Cow::Borrowed(stored)),
    }
}

impl Encryption {
    pub(crate) fn protections(&self, _: &[Leaf]) -> Result<Vec<LeafProtection>> {
        match *self {}
    }
}

impl LeafProtection {
    pub(crate) fn is_plain(&self) -> bool {
        match *self {}
    }

    pub(crate) fn has_own_key(&self) -> bool {
        match *self {}
    }

    pub(crate) fn crypto_metadata(&self, _: &LeafPath) -> Option<ColumnCryptoMetaData> {
        match *self {}
    }
}

impl FileEncryptor {
    pub(crate) fn new(encryption: &Encryption, _: &[LeafProtection]) -> Result<Self> {
        match *encryption {}
    }

    pub(crate) fn has_plaintext_footer(&self) -> bool {
        match *self {}
    }

    pub(crate) fn algorithm(&self) -> EncryptionAlgorithm {
        match *self {}
    }

    pub(crate) fn footer_key_metadata(&self) -> Option<&Vec<u8>> {
        match *self {}
    }

    pub(crate) fn crypto_metadata(&self) -> FileCryptoMetaData {
        match *self {}
    }

    pub(crate) fn footer(&self, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn sign(&self, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn protection(&self, _: usize) -> &LeafProtection {
        match *self {}
    }

    pub(crate) fn chunk(&self, _: usize, _: usize) -> Result<Option<ChunkEncryptor>> {
        match *self {}
    }
}

impl ChunkEncryptor {
    pub(crate) fn seal(&self, _: Module, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        match *self {}
    }
}
