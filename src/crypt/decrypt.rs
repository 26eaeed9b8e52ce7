//! Decrypts files: [`Decryption`] has the keys of a reader, [`FileDecryptor`] those of one file.
//!
//! Spec: Encryption.md. Used by `read::footer`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::aad::{ChunkOrdinals, Module};
use super::chunk_decryptor::{ChunkDecryptor, not_authentic, open};
use super::cipher::{NONCE_LEN, TAG_LEN, check_enabled};
use super::encrypt::UNIQUE_LEN;
use super::key::{AsyncKeyRetriever, Key, KeyRequest, KeyRetriever};
use super::signature::Signature;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::{ColumnCryptoMetaData, EncryptionAlgorithm};
use crate::schema::LeafPath;

/// The keys of a reader, and what it expects of encrypted files. Cheap to clone.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::crypt::{Decryption, Key};
///
/// let keys = Decryption::new()
///     .with_footer_key(Key::new(b"0123456789012345")?)
///     .with_column_key("customer.iban", Key::new(b"1234567890123450")?);
/// # let _ = keys;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Decryption {
    footer_key: Option<Key>,
    column_keys: HashMap<String, Key>,
    pub(super) retriever: Option<Arc<dyn KeyRetriever>>,
    pub(super) async_retriever: Option<Arc<dyn AsyncKeyRetriever>>,
    aad_prefix: Option<Vec<u8>>,
    plaintext_files: bool,
    unverified_footers: bool,
    unauthenticated_pages: bool,
}

impl Decryption {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key of the footer, and of columns that have none of their own. With it, the signature of
    /// a plaintext footer is verified.
    #[must_use]
    pub fn with_footer_key(mut self, key: Key) -> Self {
        self.footer_key = Some(key);
        self
    }

    /// The key of a column. `path` is the dotted path of the column, or of a field, for all columns
    /// below it.
    #[must_use]
    pub fn with_column_key(mut self, path: impl Into<String>, key: Key) -> Self {
        self.column_keys.insert(path.into(), key);
        self
    }

    /// Sets the retriever of keys that are not given here.
    #[must_use]
    pub fn with_retriever(mut self, retriever: impl KeyRetriever + 'static) -> Self {
        self.retriever = Some(Arc::new(retriever));
        self
    }

    /// The AAD prefix, which identifies the file. Needed if the file does not store it; if it does,
    /// the two must be equal. With a prefix, a file is refused if its `aad_file_unique` does not
    /// have 8 bytes, as all known writers write it: prefix and `aad_file_unique` are authenticated
    /// as one string, so that bytes could be moved from one to the other.
    #[must_use]
    pub fn with_aad_prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.aad_prefix = Some(prefix.into());
        self
    }

    /// Whether to read files that are not encrypted, and columns in plain text for which a key is
    /// given. Default: they are an error, because they may have replaced encrypted ones.
    #[must_use]
    pub fn with_plaintext_files(mut self, allowed: bool) -> Self {
        self.plaintext_files = allowed;
        self
    }

    /// Whether to read files with a plaintext footer whose signature cannot be verified, because
    /// its key is not given or is denied. Default: they are an error.
    #[must_use]
    pub fn with_unverified_footers(mut self, allowed: bool) -> Self {
        self.unverified_footers = allowed;
        self
    }

    /// Whether to read files of AES_GCM_CTR_V1 with an encrypted footer, and encrypted columns of
    /// those whose footer is not verified. Their pages are not authenticated: values can be changed
    /// without the reader noticing. Default: they are an error, because the algorithm is stated in
    /// plain text that nothing protects, so that a file of AES_GCM_V1 could be changed to state
    /// this one.
    #[must_use]
    pub fn with_unauthenticated_pages(mut self, allowed: bool) -> Self {
        self.unauthenticated_pages = allowed;
        self
    }

    /// Refuses a file that is not encrypted, unless such files are allowed.
    pub(crate) fn check_plaintext_file(&self) -> Result<()> {
        if self.plaintext_files {
            return Ok(());
        }
        Err(Error::crypto(
            "the file is not encrypted, but an encrypted one was expected, which it may have \
             replaced; Decryption::with_plaintext_files(true) (marq: --allow-plain) reads it",
        ))
    }

    pub(super) fn explicit_key(&self, column: &LeafPath) -> Option<&Key> {
        let names = column.names();
        (1..=names.len()).rev().find_map(|n| self.column_keys.get(&names.get(..n)?.join(".")))
    }
}

impl fmt::Debug for Decryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns: Vec<_> = self.column_keys.keys().collect();
        columns.sort();
        f.debug_struct("Decryption")
            .field("footer_key", &self.footer_key)
            .field("column_keys", &columns)
            .field("retriever", &self.retriever.is_some())
            .field("async_retriever", &self.async_retriever.is_some())
            .finish_non_exhaustive()
    }
}

/// The keys of one file, as far as they were found. Cheap to share.
pub(crate) struct FileDecryptor {
    pub(super) decryption: Decryption,
    /// Prefix of the additional authenticated data of all modules.
    aad: Arc<[u8]>,
    /// Whether the bodies of pages are encrypted by CTR.
    has_ctr_pages: bool,
    /// Whether the footer is encrypted.
    has_encrypted_footer: bool,
    /// The key of the footer, or why there is none.
    pub(super) footer_key: Result<Key, String>,
    /// Keys that were retrieved, and those that were denied, with the reason.
    pub(super) retrieved: Mutex<HashMap<KeyName, Result<Key, String>>>,
}

/// Nothing says that the writer, and no one else, chose to leave pages without authentication.
#[cold]
fn unprotected_algorithm() -> Error {
    Error::crypto(
        "the file states the algorithm AES_GCM_CTR_V1, whose pages are not authenticated, and the \
         statement is not protected: if the writer chose it, \
         Decryption::with_unauthenticated_pages(true) reads it",
    )
}

/// The key under which a key is cached: the column, or `None` for the footer, and the key metadata.
pub(super) type KeyName = (Option<String>, Option<Vec<u8>>);

impl fmt::Debug for FileDecryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDecryptor").field("has_ctr_pages", &self.has_ctr_pages).finish()
    }
}

/// The AAD prefix of a file, stored in it or supplied by the reader.
///
/// # Errors
/// `Crypto` if the two differ, or the one that is needed is missing.
fn aad_prefix<'a>(
    stored: Option<&'a [u8]>,
    supplied: Option<&'a [u8]>,
    must_be_supplied: bool,
) -> Result<&'a [u8]> {
    match (stored, supplied) {
        (Some(stored), Some(supplied)) if stored != supplied => Err(Error::crypto(
            "the AAD prefix of the file differs from the one that was given: this may be another \
             file",
        )),
        (None, None) if must_be_supplied => Err(Error::crypto(
            "the file needs its AAD prefix, which it does not store: give it with \
             Decryption::with_aad_prefix (marq: --aad-prefix)",
        )),
        (None, Some(_)) if !must_be_supplied => {
            Err(Error::crypto("an AAD prefix was given, but the file was written without one"))
        }
        (stored, supplied) => Ok(supplied.or(stored).unwrap_or_default()),
    }
}

impl FileDecryptor {
    /// For a file of this algorithm, whose footer key has this metadata.
    ///
    /// # Errors
    /// `Crypto` if the AAD prefix is missing or another, or the algorithm is not allowed; any error
    /// of a retriever that cannot be reached.
    pub(crate) fn new(
        decryption: &Decryption,
        algorithm: &EncryptionAlgorithm,
        key_metadata: Option<&[u8]>,
        has_encrypted_footer: bool,
    ) -> Result<Self> {
        let (stored, unique, must_supply, has_ctr_pages) = match algorithm {
            EncryptionAlgorithm::AesGcmV1(gcm) => {
                (&gcm.aad_prefix, &gcm.aad_file_unique, gcm.supply_aad_prefix, false)
            }
            EncryptionAlgorithm::AesGcmCtrV1(ctr) => {
                (&ctr.aad_prefix, &ctr.aad_file_unique, ctr.supply_aad_prefix, true)
            }
            EncryptionAlgorithm::Unrecognized(_) => {
                return Err(Error::unsupported(
                    "encryption algorithm",
                    "the file is encrypted by neither AES_GCM_V1 nor AES_GCM_CTR_V1",
                ));
            }
        };
        // A signed footer authenticates the algorithm, once its signature is verified.
        if has_ctr_pages && has_encrypted_footer && !decryption.unauthenticated_pages {
            return Err(unprotected_algorithm());
        }
        let supplied = decryption.aad_prefix.as_deref();
        let unique_len = unique.as_ref().map_or(0, Vec::len);
        if supplied.is_some() && unique_len != UNIQUE_LEN {
            return Err(Error::crypto(format_args!(
                "aad_file_unique has {unique_len} bytes, expected {UNIQUE_LEN} with an AAD prefix: \
                 bytes may have been moved between the two"
            )));
        }
        let prefix = aad_prefix(stored.as_deref(), supplied, must_supply == Some(true))?;
        let aad = [prefix, unique.as_deref().unwrap_or_default()].concat().into();
        let retrieved = Mutex::default();
        let footer_key = Err(String::new());
        let decryption = decryption.clone();
        let mut file =
            Self { decryption, aad, has_ctr_pages, has_encrypted_footer, footer_key, retrieved };
        file.footer_key = match &file.decryption.footer_key {
            Some(key) => Ok(key.clone()),
            None => file.retrieve(&KeyRequest::new(None, key_metadata))?,
        };
        Ok(file)
    }

    /// Whether the bodies of pages are not authenticated.
    pub(crate) fn has_ctr_pages(&self) -> bool {
        self.has_ctr_pages
    }

    /// `what` is encrypted, and no keys were given at all; or `FeatureDisabled` if none can be.
    #[cold]
    pub(crate) fn needed(what: &str) -> Error {
        missing(what, "")
    }

    /// Decrypts the footer: a module of its own.
    ///
    /// # Errors
    /// `Crypto` if the key is missing or wrong, or the footer was changed.
    pub(crate) fn footer(&self, module: &[u8]) -> Result<Vec<u8>> {
        let key = self.footer_key.as_ref().map_err(|why| missing("the footer", why))?;
        let mut out = Vec::new();
        let aad = Module::Footer.aad(&self.aad, ChunkOrdinals::default())?;
        open(key, Module::Footer, &aad, false, module, &mut out)?;
        Ok(out)
    }

    /// Verifies the signature after a plaintext footer: a nonce and a tag. `Unverified` without the
    /// key, where that is allowed.
    ///
    /// # Errors
    /// `Crypto` if the signature is wrong, or its key is not given or denied.
    pub(crate) fn verify(&self, footer: &[u8], signature: &[u8]) -> Result<Signature> {
        let key = match &self.footer_key {
            Ok(key) => key,
            Err(_) if self.decryption.unverified_footers => return Ok(Signature::Unverified),
            Err(why) => return Err(unverified(why)),
        };
        let parts = signature.split_first_chunk::<NONCE_LEN>();
        let parts =
            parts.and_then(|(nonce, tag)| Some((*nonce, <[u8; TAG_LEN]>::try_from(tag).ok()?)));
        let Some((nonce, tag)) = parts else {
            return Err(Error::mismatch(
                Spec::Encryption,
                "bytes of the signature after the footer",
                NONCE_LEN + TAG_LEN,
                signature.len(),
            ));
        };
        let aad = Module::Footer.aad(&self.aad, ChunkOrdinals::default())?;
        // The signature is the tag of the encrypted footer, which is thrown away. Encrypted again,
        // it is opened with the stored tag, so that the library compares the tags.
        let mut data = footer.to_vec();
        key.tag(nonce, &aad, &mut data)?;
        match key.open(nonce, &aad, &mut data, tag) {
            Some(()) => Ok(Signature::Verified),
            None => Err(not_authentic(Module::Footer)),
        }
    }

    /// The key of a column.
    ///
    /// # Errors
    /// `Crypto` if it is not given, not found or denied.
    pub(crate) fn column_key(
        &self,
        column: &LeafPath,
        crypto: &ColumnCryptoMetaData,
    ) -> Result<Key> {
        let what = format!("the column {}", column.dotted());
        match crypto {
            ColumnCryptoMetaData::EncryptionWithFooterKey => {
                self.footer_key.clone().map_err(|why| missing(&what, &why))
            }
            ColumnCryptoMetaData::EncryptionWithColumnKey(of) => {
                if let Some(key) = self.decryption.explicit_key(column) {
                    return Ok(key.clone());
                }
                let request = KeyRequest::new(Some(column), of.key_metadata.as_deref());
                self.retrieve(&request)?.map_err(|why| missing(&what, &why))
            }
            ColumnCryptoMetaData::Unrecognized(_) => Err(Error::unsupported(
                "column encryption",
                format_args!("{what} is encrypted with neither the footer's key nor its own"),
            )),
        }
    }

    /// Refuses a column in plain text for which a key is given: it may have replaced an encrypted
    /// one.
    ///
    /// # Errors
    /// `Crypto`.
    pub(crate) fn check_plaintext_column(&self, column: &LeafPath) -> Result<()> {
        if self.decryption.plaintext_files || self.decryption.explicit_key(column).is_none() {
            return Ok(());
        }
        Err(Error::crypto(format_args!(
            "a key was given for the column {}, but it is not encrypted and may have replaced an \
             encrypted one; Decryption::with_plaintext_files(true) (marq: --allow-plain) reads it",
            column.dotted()
        )))
    }

    /// Whether a chunk with this crypto metadata has its metadata in a separate module.
    pub(crate) fn has_encrypted_metadata(&self, crypto: &ColumnCryptoMetaData) -> bool {
        !self.has_encrypted_footer
            || matches!(crypto, ColumnCryptoMetaData::EncryptionWithColumnKey(_))
    }

    /// Asks the retriever, for each column and key metadata once. A key that is denied is
    /// remembered too; a service that cannot be reached is asked again.
    ///
    /// # Errors
    /// The error of the retriever, if its kind is not `Crypto`.
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Result<Key, String>> {
        let name = key_name(request);
        let retrieved = || self.retrieved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = retrieved().get(&name) {
            return Ok(known.clone());
        }
        // Without the lock: a service may take its time.
        let found = match &self.decryption.retriever {
            Some(retriever) => denied(retriever.retrieve(request))?,
            None => Err(String::new()),
        };
        Ok(retrieved().entry(name).or_insert(found).clone())
    }

    /// Makes the decryptor of the modules of a column chunk.
    ///
    /// # Errors
    /// `Crypto` if the file has too many row groups or columns for encryption.
    pub(crate) fn chunk(
        &self,
        key: Key,
        row_group: usize,
        column: usize,
    ) -> Result<ChunkDecryptor> {
        let place = ChunkOrdinals::new(row_group, column)?;
        // Without its key, a footer is not verified.
        let is_protected = self.footer_key.is_ok() || self.decryption.unauthenticated_pages;
        if self.has_ctr_pages && !is_protected {
            return Err(unprotected_algorithm());
        }
        Ok(ChunkDecryptor { key, aad: self.aad.clone(), has_ctr_pages: self.has_ctr_pages, place })
    }
}

pub(super) fn key_name(request: &KeyRequest<'_>) -> KeyName {
    (request.column.map(LeafPath::dotted), request.key_metadata.map(<[u8]>::to_vec))
}

/// A key, or why it is denied; other errors stay errors.
pub(super) fn denied(found: Result<Key>) -> Result<Result<Key, String>> {
    match found {
        Ok(key) => Ok(Ok(key)),
        Err(e) if e.kind() == ErrorKind::Crypto => Ok(Err(e.to_string())),
        Err(e) => Err(e),
    }
}

#[cold]
fn unverified(why: &str) -> Error {
    let why = if why.is_empty() { "its key was not given" } else { why };
    Error::crypto(format_args!(
        "the footer is signed, and the signature cannot be verified: {why}; \
         Decryption::with_unverified_footers(true) reads the file without verifying it"
    ))
}

#[cold]
fn missing(what: &str, why: &str) -> Error {
    if let Err(e) = check_enabled(format_args!("{what} is encrypted, and reading it")) {
        return e;
    }
    match why {
        "" => Error::crypto(format_args!(
            "{what} is encrypted, and its key was not given (Decryption; marq: --footer-key, \
             --column-key, --key-file)"
        )),
        why => Error::crypto(format_args!(
            "{what} is encrypted, and its key cannot be obtained: {why}"
        )),
    }
}
