//! Modular encryption: keys, and the modules of a file that they protect.
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
//! parquet-java and pyarrow write ([`kms`]).
//!
//! Trap: AES_GCM_CTR_V1 does not authenticate the bodies of pages. Values there can be changed
//! without a reader noticing; headers, metadata and indexes are authenticated.

#[cfg_attr(
    not(feature = "encryption"),
    allow(dead_code, reason = "modules are named where none is encrypted")
)]
mod aad;
#[cfg_attr(not(feature = "encryption"), allow(unreachable_pub, reason = "public where keys are"))]
mod signature;
#[cfg(feature = "encryption")]
mod cipher;
#[cfg(feature = "encryption")]
mod key;
#[cfg(feature = "encryption")]
mod chunk_decryptor;
#[cfg(feature = "encryption")]
mod encrypt;
#[cfg(feature = "encryption")]
mod decrypt;
#[cfg(feature = "encryption")]
pub mod kms;

pub(crate) use aad::Module;
#[cfg(feature = "encryption")]
pub use signature::Signature;
#[cfg(not(feature = "encryption"))]
pub(crate) use signature::Signature;

#[cfg(feature = "encryption")]
pub(crate) use self::{
    chunk_decryptor::{ChunkDecryptor, opened},
    decrypt::FileDecryptor,
    encrypt::{ChunkEncryptor, FileEncryptor, LeafProtection},
};
#[cfg(feature = "encryption")]
pub use self::{
    decrypt::Decryption,
    encrypt::{Algorithm, Encryption, UnlistedColumns},
    key::{Key, KeyRequest, KeyRetriever},
};
#[cfg(all(feature = "encryption", feature = "async"))]
pub use key::AsyncKeyRetriever;

#[cfg(not(feature = "encryption"))]
mod disabled;
#[cfg(not(feature = "encryption"))]
pub(crate) use disabled::{
    ChunkDecryptor, ChunkEncryptor, Decryption, Encryption, FileDecryptor, FileEncryptor,
    LeafProtection, opened,
};
