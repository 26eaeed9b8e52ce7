//! The structs of encryption name the algorithm and the keys. `crypt` handles the modules
//! themselves.
//!
//! Spec: Encryption.md, `parquet.thrift`. Read by `read::footer`. `FileCryptoMetaData` precedes an
//! encrypted footer and is itself not encrypted; the other structs are part of the footer. Trap:
//! the key metadata are opaque to the format; only the key retriever knows their meaning.

use crate::thrift::derive::thrift;

thrift! {
    /// Parameters of AES_GCM_V1: all modules in GCM.
    #[derive(Eq, Hash)]
    pub struct AesGcmV1 {
        /// Prefix of everything that is authenticated.
        1 optional aad_prefix: Vec<u8>,
        /// Bytes that are unique to this file.
        2 optional aad_file_unique: Vec<u8>,
        /// Whether the reader must bring the prefix, which is not in the file.
        3 optional supply_aad_prefix: bool,
    }
}

thrift! {
    /// Parameters of AES_GCM_CTR_V1: page bodies in CTR, all other modules in GCM.
    #[derive(Eq, Hash)]
    pub struct AesGcmCtrV1 {
        /// Prefix of everything that is authenticated.
        1 optional aad_prefix: Vec<u8>,
        /// Bytes that are unique to this file.
        2 optional aad_file_unique: Vec<u8>,
        /// Whether the reader must bring the prefix, which is not in the file.
        3 optional supply_aad_prefix: bool,
    }
}

thrift! {
    /// How a file is encrypted.
    #[derive(Eq, Hash)]
    pub union EncryptionAlgorithm {
        /// All modules in GCM.
        1 AesGcmV1(AesGcmV1) "AES_GCM_V1",
        /// Pages in CTR, all else in GCM.
        2 AesGcmCtrV1(AesGcmCtrV1) "AES_GCM_CTR_V1",
    }
}

thrift! {
    /// The metadata before an encrypted footer.
    #[derive(Eq, Hash)]
    pub struct FileCryptoMetaData {
        /// How the file is encrypted.
        1 required encryption_algorithm: EncryptionAlgorithm,
        /// Which key the footer is encrypted with.
        2 optional key_metadata: Vec<u8>,
    }
}

thrift! {
    /// How a column chunk is encrypted.
    #[derive(Eq, Hash)]
    pub union ColumnCryptoMetaData {
        /// With the key of the footer.
        1 EncryptionWithFooterKey "ENCRYPTION_WITH_FOOTER_KEY",
        /// With a key of its own.
        2 EncryptionWithColumnKey(EncryptionWithColumnKey) "ENCRYPTION_WITH_COLUMN_KEY",
    }
}

thrift! {
    /// A column chunk with a key of its own.
    #[derive(Eq, Hash)]
    pub struct EncryptionWithColumnKey {
        /// Names from below the root to the leaf.
        1 required path_in_schema: Vec<String>,
        /// Which key.
        2 optional key_metadata: Vec<u8>,
    }
}
