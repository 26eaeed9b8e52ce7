//! Encrypts files: [`Encryption`] says what is protected and by which keys, [`FileEncryptor`]
//! encrypts the modules of one file, [`ChunkEncryptor`] those of a column chunk.
//!
//! Spec: Encryption.md. Used by `write::encrypt` and `write::footer`.

use std::fmt;
use std::sync::Arc;

use super::aad::{ChunkOrdinals, Module};
use super::cipher::random;
use super::key::Key;
use crate::error::{Error, Result};
use crate::format::{
    AesGcmCtrV1, AesGcmV1, ColumnCryptoMetaData, EncryptionAlgorithm, EncryptionWithColumnKey,
    FileCryptoMetaData,
};
use crate::memory;
use crate::schema::{Leaf, LeafPath};

/// The encryption algorithm of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// AES_GCM_V1: everything is authenticated.
    #[default]
    AesGcmV1,
    /// AES_GCM_CTR_V1: the bodies of pages are encrypted and **not authenticated**. Values there
    /// can be changed without a reader noticing.
    AesGcmCtrV1,
}

/// How columns without a key of their own are protected, where other columns have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UnlistedColumns {
    /// They are in plain text.
    #[default]
    Plain,
    /// They are encrypted with the key of the footer.
    FooterKey,
}

/// The parts that a writer encrypts, and their keys. Cheap to clone.
///
/// With a footer key alone, everything is encrypted with it. With keys of columns, those columns
/// are, and the others are as [`Encryption::with_unlisted_columns`] says.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::WriteOptions;
/// use marquetry::crypt::{Encryption, Key};
///
/// let encryption = Encryption::new(Key::new(b"0123456789012345")?)
///     .with_column_key("customer.iban", Key::new(b"1234567890123450")?);
/// let options = WriteOptions::new().with_encryption(encryption);
/// # let _ = options;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Encryption {
    algorithm: Algorithm,
    footer: KeyWithMetadata,
    columns: Vec<(String, KeyWithMetadata)>,
    unlisted: UnlistedColumns,
    has_plaintext_footer: bool,
    aad_prefix: Option<Vec<u8>>,
    stores_aad_prefix: bool,
}

/// A key, and the key metadata that the file stores to identify it.
#[derive(Debug, Clone)]
struct KeyWithMetadata {
    key: Key,
    metadata: Option<Vec<u8>>,
}

impl Encryption {
    /// Encrypts everything with the key of the footer.
    pub fn new(footer_key: Key) -> Self {
        Self {
            algorithm: Algorithm::default(),
            footer: KeyWithMetadata { key: footer_key, metadata: None },
            columns: Vec::new(),
            unlisted: UnlistedColumns::default(),
            has_plaintext_footer: false,
            aad_prefix: None,
            stores_aad_prefix: false,
        }
    }

    /// Key metadata, which the file stores so that readers can find the key of the footer; opaque
    /// to the format, and not secret.
    #[must_use]
    pub fn with_footer_key_metadata(mut self, metadata: impl Into<Vec<u8>>) -> Self {
        self.footer.metadata = Some(metadata.into());
        self
    }

    /// Encrypts a column with a key of its own. `path` is the dotted path of the column, or of a
    /// field, for all columns below it; the longest path that matches a column counts.
    #[must_use]
    pub fn with_column_key(mut self, path: impl Into<String>, key: Key) -> Self {
        let path = path.into();
        self.columns.retain(|(old, _)| *old != path);
        self.columns.push((path, KeyWithMetadata { key, metadata: None }));
        self
    }

    /// Like [`Encryption::with_column_key`], with key metadata, which the file stores so that
    /// readers can find the key.
    #[must_use]
    pub fn with_column_key_and_metadata(
        self,
        path: impl Into<String>,
        key: Key,
        metadata: impl Into<Vec<u8>>,
    ) -> Self {
        let mut this = self.with_column_key(path, key);
        if let Some((_, of)) = this.columns.last_mut() {
            of.metadata = Some(metadata.into());
        }
        this
    }

    /// How columns without a key of their own are protected, where other columns have one. Default:
    /// not at all.
    #[must_use]
    pub fn with_unlisted_columns(mut self, unlisted: UnlistedColumns) -> Self {
        self.unlisted = unlisted;
        self
    }

    /// Sets the algorithm. Default: AES_GCM_V1.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Leaves the footer in plain text, and signs it: readers without keys can read columns that
    /// are not encrypted. The schema, the names of columns, the numbers of rows, the sizes of
    /// column chunks, a sort order that the caller states and the key-value metadata can then be
    /// read without keys; statistics of encrypted columns cannot, nor a sort order that was found
    /// in the data.
    #[must_use]
    pub fn with_plaintext_footer(mut self, plaintext: bool) -> Self {
        self.has_plaintext_footer = plaintext;
        self
    }

    /// An AAD prefix that identifies the file, such as its name in a table: a reader that is given
    /// another prefix refuses the file. It is not stored; readers must be given it.
    #[must_use]
    pub fn with_aad_prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.aad_prefix = Some(prefix.into());
        self.stores_aad_prefix = false;
        self
    }

    /// Like [`Encryption::with_aad_prefix`], but the file stores the prefix, so that readers need
    /// not be given it.
    #[must_use]
    pub fn with_stored_aad_prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.aad_prefix = Some(prefix.into());
        self.stores_aad_prefix = true;
        self
    }

    /// How each of the leaves is protected.
    ///
    /// # Errors
    /// `Usage` if a path names no column; `Crypto` if there are too many columns.
    pub(crate) fn protections(&self, leaves: &[Leaf]) -> Result<Vec<LeafProtection>> {
        for (path, _) in &self.columns {
            if !leaves.iter().any(|leaf| fit(path, &leaf.path).is_some()) {
                return Err(Error::usage(format_args!(
                    "a key was given for the column \"{path}\", and there is no such column"
                )));
            }
        }
        let protection = |leaf: &Leaf| {
            ChunkOrdinals::new(0, leaf.index)?;
            let fits =
                self.columns.iter().filter_map(|(path, of)| Some((fit(path, &leaf.path)?, of)));
            Ok(match fits.max_by_key(|(len, _)| *len) {
                Some((_, of)) => {
                    LeafProtection::Own { key: of.key.clone(), metadata: of.metadata.clone() }
                }
                None if self.columns.is_empty() || self.unlisted == UnlistedColumns::FooterKey => {
                    LeafProtection::FooterKey(self.footer.key.clone())
                }
                None => LeafProtection::Plain,
            })
        };
        leaves.iter().map(protection).collect()
    }
}

/// The number of names in `path`, if it is the path of the column or of a field around it.
fn fit(path: &str, column: &LeafPath) -> Option<usize> {
    let names = column.names();
    (1..=names.len()).find(|&n| names.get(..n).is_some_and(|names| names.join(".") == path))
}

/// How a column is protected.
#[derive(Debug, Clone)]
pub(crate) enum LeafProtection {
    /// Not at all.
    Plain,
    /// With the key of the footer.
    FooterKey(Key),
    /// With a key of its own.
    Own { key: Key, metadata: Option<Vec<u8>> },
}

impl LeafProtection {
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    pub(crate) fn has_own_key(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// The crypto metadata of its chunks in the footer.
    pub(crate) fn crypto_metadata(&self, path: &LeafPath) -> Option<ColumnCryptoMetaData> {
        match self {
            Self::Plain => None,
            Self::FooterKey(_) => Some(ColumnCryptoMetaData::EncryptionWithFooterKey),
            Self::Own { metadata, .. } => {
                Some(ColumnCryptoMetaData::EncryptionWithColumnKey(EncryptionWithColumnKey {
                    path_in_schema: path.names().iter().map(ToString::to_string).collect(),
                    key_metadata: metadata.clone(),
                    ..EncryptionWithColumnKey::default()
                }))
            }
        }
    }
}

/// Seals the modules of one file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FileEncryptor(Arc<FileEncryptorState>);

struct FileEncryptorState {
    encryption: Encryption,
    protections: Vec<LeafProtection>,
    unique: [u8; UNIQUE_LEN],
    /// Prefix of the additional authenticated data of all modules.
    aad: Arc<[u8]>,
}

/// Bytes of `aad_file_unique`, as many as other writers have.
pub(super) const UNIQUE_LEN: usize = 8;

impl fmt::Debug for FileEncryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileEncryptor").field("encryption", &self.0.encryption).finish()
    }
}

impl FileEncryptor {
    /// For a new file, with an `aad_file_unique` of its own.
    ///
    /// # Errors
    /// `Crypto` if the generator of the operating system fails.
    pub(crate) fn new(encryption: &Encryption, protections: &[LeafProtection]) -> Result<Self> {
        let mut unique = [0; UNIQUE_LEN];
        random(&mut unique)?;
        let prefix = encryption.aad_prefix.as_deref().unwrap_or_default();
        let aad = [prefix, &unique].concat().into();
        let (encryption, protections) = (encryption.clone(), protections.to_vec());
        Ok(Self(Arc::new(FileEncryptorState { encryption, protections, unique, aad })))
    }

    /// Whether the footer stays in plain text.
    pub(crate) fn has_plaintext_footer(&self) -> bool {
        self.0.encryption.has_plaintext_footer
    }

    /// The algorithm, as the file states it.
    pub(crate) fn algorithm(&self) -> EncryptionAlgorithm {
        let of = &self.0.encryption;
        let aad_prefix = of.aad_prefix.clone().filter(|_| of.stores_aad_prefix);
        let aad_file_unique = Some(self.0.unique.to_vec());
        let must_supply = of.aad_prefix.is_some() && !of.stores_aad_prefix;
        let supply_aad_prefix = must_supply.then_some(true);
        match of.algorithm {
            Algorithm::AesGcmV1 => EncryptionAlgorithm::AesGcmV1(AesGcmV1 {
                aad_prefix,
                aad_file_unique,
                supply_aad_prefix,
                ..AesGcmV1::default()
            }),
            Algorithm::AesGcmCtrV1 => EncryptionAlgorithm::AesGcmCtrV1(AesGcmCtrV1 {
                aad_prefix,
                aad_file_unique,
                supply_aad_prefix,
                ..AesGcmCtrV1::default()
            }),
        }
    }

    /// The key metadata of the footer key.
    pub(crate) fn footer_key_metadata(&self) -> Option<&Vec<u8>> {
        self.0.encryption.footer.metadata.as_ref()
    }

    /// The metadata in plain text before an encrypted footer.
    pub(crate) fn crypto_metadata(&self) -> FileCryptoMetaData {
        FileCryptoMetaData {
            encryption_algorithm: self.algorithm(),
            key_metadata: self.footer_key_metadata().cloned(),
            ..FileCryptoMetaData::default()
        }
    }

    /// Appends the encrypted footer: a module of its own.
    ///
    /// # Errors
    /// `Crypto` if the key was used too often, or the generator fails.
    pub(crate) fn footer(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let aad = Module::Footer.aad(&self.0.aad, ChunkOrdinals::default())?;
        seal(&self.0.encryption.footer.key, &aad, false, plain, out)
    }

    /// Appends the signature of a plaintext footer: a nonce and a tag.
    ///
    /// # Errors
    /// As [`FileEncryptor::footer`].
    pub(crate) fn sign(&self, footer: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let aad = Module::Footer.aad(&self.0.aad, ChunkOrdinals::default())?;
        let (nonce, tag) = self.0.encryption.footer.key.seal(&aad, &mut footer.to_vec())?;
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&tag);
        Ok(())
    }

    /// How a column is protected.
    pub(crate) fn protection(&self, column: usize) -> &LeafProtection {
        self.0.protections.get(column).unwrap_or(&LeafProtection::Plain)
    }

    /// The encryptor of a column chunk; `None` if the chunk is in plain text.
    ///
    /// # Errors
    /// `Crypto` if there are too many row groups for encryption.
    pub(crate) fn chunk(&self, row_group: usize, column: usize) -> Result<Option<ChunkEncryptor>> {
        let key = match self.protection(column) {
            LeafProtection::Plain => return Ok(None),
            LeafProtection::FooterKey(key) | LeafProtection::Own { key, .. } => key.clone(),
        };
        let place = ChunkOrdinals::new(row_group, column)?;
        let has_ctr_pages = self.0.encryption.algorithm == Algorithm::AesGcmCtrV1;
        Ok(Some(ChunkEncryptor { key, aad: self.0.aad.clone(), has_ctr_pages, place }))
    }
}

/// Seals the modules of a column chunk.
pub(crate) struct ChunkEncryptor {
    key: Key,
    aad: Arc<[u8]>,
    has_ctr_pages: bool,
    place: ChunkOrdinals,
}

impl ChunkEncryptor {
    /// Appends a module with these contents.
    ///
    /// # Errors
    /// `Crypto` if the key was used too often, the generator fails, or the chunk has too many pages
    /// for encryption.
    pub(crate) fn seal(&self, module: Module, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let aad = module.aad(&self.aad, self.place)?;
        let is_ctr = self.has_ctr_pages && module.is_page_body();
        seal(&self.key, &aad, is_ctr, plain, out)
    }
}

fn seal(key: &Key, aad: &[u8], is_ctr: bool, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
    use super::cipher::{NONCE_LEN, TAG_LEN};
    let len = NONCE_LEN + plain.len() + if is_ctr { 0 } else { TAG_LEN };
    let stated = u32::try_from(len)
        .map_err(|_| Error::crypto("a module of more than 4 GiB cannot be encrypted"))?;
    memory::room(out, size_of::<u32>() + len)?;
    out.extend_from_slice(&stated.to_le_bytes());
    let start = out.len();
    out.extend_from_slice(&[0; NONCE_LEN]);
    out.extend_from_slice(plain);
    let (head, data) = out.split_at_mut(start + NONCE_LEN);
    let (nonce, tag) = match is_ctr {
        true => (key.encrypt_ctr(data)?, None),
        false => {
            let (nonce, tag) = key.seal(aad, data)?;
            (nonce, Some(tag))
        }
    };
    head[start..].copy_from_slice(&nonce);
    out.extend_from_slice(tag.as_ref().map_or(&[], |tag| tag));
    Ok(())
}
