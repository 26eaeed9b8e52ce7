//! Modular encryption: the keys of a file, and the modules that they protect.
//!
//! Spec: Encryption.md. Each part of a file that is encrypted is a module: the footer, the metadata
//! of a column chunk, the header of a page, its body, an index, a bloom filter. A module is
//! authenticated together with its place in the file, so that modules cannot be exchanged.
//!
//! ```text
//! module, AES-GCM   u32le length of the rest | nonce, 12 bytes | ciphertext | tag, 16 bytes
//! module, AES-CTR   u32le length of the rest | nonce, 12 bytes | ciphertext
//! authenticated     AAD prefix | aad_file_unique | type | row group | column | page
//! ```
//!
//! [`Decryption`] has the keys of a reader, [`Encryption`] those of a writer. Keys come as bytes
//! ([`Key`]), from a service of the caller's ([`KeyRetriever`]), or by the key material that
//! parquet-java and pyarrow write ([`kms`]). Without the cargo feature `encryption` no key can be
//! made: [`Key::new`] and whatever needs one fail with `FeatureDisabled`.
//!
//! Trap: AES_GCM_CTR_V1 does not authenticate the bodies of pages. Values there can be changed
//! without a reader noticing; headers, metadata and indexes are authenticated.

mod aad;
mod signature;
mod cipher;
mod key;
mod temporary;
mod chunk_decryptor;
mod encrypt;
mod decrypt;
#[cfg(feature = "async")]
mod async_keys;
pub mod kms;

pub(crate) use self::{
    aad::Module,
    chunk_decryptor::{ChunkDecryptor, opened},
    decrypt::FileDecryptor,
    encrypt::{ChunkEncryptor, FileEncryptor, LeafProtection},
    temporary::TemporaryKey,
};
pub use self::{
    decrypt::Decryption,
    encrypt::{Algorithm, Encryption, UnlistedColumns},
    key::{AsyncKeyRetriever, Key, KeyRequest, KeyRetriever},
    signature::Signature,
};
