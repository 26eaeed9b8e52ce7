//! The twins of what the cargo feature `encryption` adds: none of them can be made, so that the
//! stages that carry them need not ask for the feature.

use crate::error::{Error, Result};
use crate::format::{ColumnCryptoMetaData, EncryptionAlgorithm, FileCryptoMetaData};
use crate::schema::{Leaf, LeafPath};

macro_rules! never {
    ($($name:ident)*) => {$(
        #[derive(Debug, Clone)]
        pub(crate) enum $name {}
    )*};
}

never!(Decryption Encryption FileDecryptor ChunkDecryptor FileEncryptor ChunkEncryptor LeafProtection Key);
