//! Reading: [`Decryption`] has the keys, [`FileDecryptor`] those of one file, and
//! [`ChunkDecryptor`] opens the modules of a column chunk.
//!
//! Spec: Encryption.md. Used by `read::footer` and `page::open`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::aad::{ChunkOrdinals, Module};
use super::cipher::{NONCE_LEN, TAG_LEN};
#[cfg(feature = "async")]
use super::key::AsyncKeyRetriever;
use super::key::{Key, KeyRequest, KeyRetriever};
use super::signature::Signature;
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnCryptoMetaData, EncryptionAlgorithm};
use crate::schema::LeafPath;

/// The keys of a reader, and what it expects of encrypted files. Cheap to clone.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
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
    retriever: Option<Arc<dyn KeyRetriever>>,
    #[cfg(feature = "async")]
    async_retriever: Option<Arc<dyn AsyncKeyRetriever>>,
    aad_prefix: Option<Vec<u8>>,
    plaintext_files: bool,
    unverified_footers: bool,
}

impl Decryption {
    /// Without keys.
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

    /// The key of a column: its dotted path, or that of a field around it, for all columns in that.
    #[must_use]
    pub fn with_column_key(mut self, path: impl Into<String>, key: Key) -> Self {
        self.column_keys.insert(path.into(), key);
        self
    }

    /// Where keys are looked for that are not given.
    #[must_use]
    pub fn with_retriever(mut self, retriever: impl KeyRetriever + 'static) -> Self {
        self.retriever = Some(Arc::new(retriever));
        self
    }

    /// As [`Decryption::with_retriever`], for readers whose bytes come asynchronously too.
    #[cfg(feature = "async")]
    #[must_use]
    pub fn with_async_retriever(mut self, retriever: impl AsyncKeyRetriever + 'static) -> Self {
        self.async_retriever = Some(Arc::new(retriever));
        self
    }

    /// The AAD prefix that the writer authenticated: it says which file this is. Needed where the
    /// file does not store it; where it does, the two must be equal.
    #[must_use]
    pub fn with_aad_prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.aad_prefix = Some(prefix.into());
        self
    }

    /// Whether files that are not encrypted at all are read too. Default: they are an error, as one
    /// may have been put in place of an encrypted one.
    #[must_use]
    pub fn with_plaintext_files(mut self, allowed: bool) -> Self {
        self.plaintext_files = allowed;
        self
    }

    /// Whether a plaintext footer is believed although its key is denied, and its signature not
    /// verified. Default: that is an error, if a footer key or a retriever is given at all.
    #[must_use]
    pub fn with_unverified_footers(mut self, allowed: bool) -> Self {
        self.unverified_footers = allowed;
        self
    }

    /// Refuses a file that is not encrypted, unless such files are allowed.
    pub(crate) fn check_plaintext_file(&self) -> Result<()> {
        if self.plaintext_files {
            return Ok(());
        }
        Err(Error::crypto(
            "keys were given, and the file is not encrypted: another may have been put in its \
             place; Decryption::with_plaintext_files(true) reads it",
        ))
    }

    #[cfg(feature = "async")]
    pub(crate) fn async_retriever(&self) -> Option<&Arc<dyn AsyncKeyRetriever>> {
        self.async_retriever.as_ref()
    }

    fn may_find_footer_key(&self) -> bool {
        #[cfg(feature = "async")]
        if self.async_retriever.is_some() {
            return true;
        }
        self.footer_key.is_some() || self.retriever.is_some()
    }

    fn explicit_key(&self, column: &LeafPath) -> Option<&Key> {
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
            .finish_non_exhaustive()
    }
}

/// The keys of one file, as far as they were found. Cheap to share.
pub(crate) struct FileDecryptor {
    decryption: Decryption,
    /// What the additional authenticated data of all modules begin with.
    aad: Arc<[u8]>,
    /// Whether the bodies of pages are encrypted by CTR.
    has_ctr_pages: bool,
    /// The key of the footer, or why there is none.
    footer_key: Result<Key, String>,
    /// Keys that were retrieved, and those that were not, with the reason.
    retrieved: Mutex<HashMap<Vec<u8>, Result<Key, String>>>,
}

impl fmt::Debug for FileDecryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDecryptor").field("has_ctr_pages", &self.has_ctr_pages).finish()
    }
}

impl FileDecryptor {
    /// For a file of this algorithm, whose footer key has this metadata.
    ///
    /// # Errors
    /// `Crypto` if the AAD prefix is missing or another.
    pub(crate) fn new(
        decryption: &Decryption,
        algorithm: &EncryptionAlgorithm,
        key_metadata: Option<&[u8]>,
    ) -> Result<Self> {
        let (stored, unique, must_supply, has_ctr_pages) = match algorithm {
            EncryptionAlgorithm::AesGcmV1(gcm) => {
                (&gcm.aad_prefix, &gcm.aad_file_unique, gcm.supply_aad_prefix, false)
            }
            EncryptionAlgorithm::AesGcmCtrV1(ctr) => {
                (&ctr.aad_prefix, &ctr.aad_file_unique, ctr.supply_aad_prefix, true)
            }
            other => {
                return Err(Error::unsupported(
                    "encryption algorithm",
                    format_args!("the file is encrypted by {other:?}"),
                ));
            }
        };
        let supplied = decryption.aad_prefix.as_deref();
        let prefix = match (stored.as_deref(), supplied) {
            (Some(stored), Some(supplied)) if stored != supplied => {
                return Err(Error::crypto(
                    "the AAD prefix of the file is another than the one that was given: this is \
                     not the file that it is taken for",
                ));
            }
            (None, None) if must_supply == Some(true) => {
                return Err(Error::crypto(
                    "the file needs its AAD prefix, which it does not store: give it with \
                     Decryption::with_aad_prefix (marq: --aad-prefix)",
                ));
            }
            (None, Some(_)) if must_supply != Some(true) => {
                return Err(Error::crypto(
                    "an AAD prefix was given, and the file was written without one",
                ));
            }
            (stored, supplied) => supplied.or(stored).unwrap_or_default(),
        };
        let aad = [prefix, unique.as_deref().unwrap_or_default()].concat().into();
        let retrieved = Mutex::default();
        let footer_key = Err(String::new());
        let decryption = decryption.clone();
        let mut file = Self { decryption, aad, has_ctr_pages, footer_key, retrieved };
        file.footer_key = match &file.decryption.footer_key {
            Some(key) => Ok(key.clone()),
            None => file.retrieve(&KeyRequest::new(None, key_metadata)),
        };
        Ok(file)
    }

    /// Gives it the key of the footer that came asynchronously.
    #[cfg(feature = "async")]
    pub(crate) fn set_footer_key(&mut self, found: Result<Key>) {
        self.footer_key = found.map_err(|e| e.to_string());
    }

    /// Gives it keys that came asynchronously.
    #[cfg(feature = "async")]
    pub(crate) fn remember(
        &self,
        column: &LeafPath,
        key_metadata: Option<&[u8]>,
        found: Result<Key>,
    ) {
        let request = KeyRequest::new(Some(column), key_metadata);
        let mut retrieved = self.retrieved.lock().unwrap_or_else(PoisonError::into_inner);
        retrieved.insert(memory_of(&request), found.map_err(|e| e.to_string()));
    }

    /// Whether a column key would have to come asynchronously.
    #[cfg(feature = "async")]
    pub(crate) fn waits_for(&self, column: &LeafPath, key_metadata: Option<&[u8]>) -> bool {
        let request = KeyRequest::new(Some(column), key_metadata);
        self.decryption.explicit_key(column).is_none()
            && self.decryption.retriever.is_none()
            && self.decryption.async_retriever.is_some()
            && !self
                .retrieved
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains_key(&memory_of(&request))
    }

    /// `what` is encrypted, and no keys were given at all.
    #[cold]
    pub(crate) fn needed(what: &str) -> Error {
        missing(what, "")
    }

    #[cfg(feature = "async")]
    pub(crate) fn has_footer_key(&self) -> bool {
        self.footer_key.is_ok()
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

    /// Verifies the signature behind a plaintext footer: a nonce and a tag. `Unverified` without
    /// the key.
    ///
    /// # Errors
    /// `Crypto` if the signature is wrong; or if a key was to be found for it, and was denied.
    pub(crate) fn verify(&self, footer: &[u8], signature: &[u8]) -> Result<Signature> {
        let key = match &self.footer_key {
            Ok(key) => key,
            Err(why)
                if self.decryption.may_find_footer_key() && !self.decryption.unverified_footers =>
            {
                return Err(missing("the signature of the footer", why));
            }
            Err(_) => return Ok(Signature::Unverified),
        };
        let parts = signature.split_first_chunk::<NONCE_LEN>();
        let parts =
            parts.and_then(|(nonce, tag)| Some((*nonce, <[u8; TAG_LEN]>::try_from(tag).ok()?)));
        let Some((nonce, tag)) = parts else {
            return Err(Error::mismatch(
                Spec::Encryption,
                "bytes of the signature behind the footer",
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
                self.retrieve(&request).map_err(|why| missing(&what, &why))
            }
            other => Err(Error::unsupported(
                "column encryption",
                format_args!("{what} is encrypted by {other:?}"),
            )),
        }
    }

    /// Asks the retriever, for each key metadata once.
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Key, String> {
        let mut retrieved = self.retrieved.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = retrieved.entry(memory_of(request));
        entry
            .or_insert_with(|| match &self.decryption.retriever {
                Some(retriever) => retriever.retrieve(request).map_err(|e| e.to_string()),
                None => Err(String::new()),
            })
            .clone()
    }

    /// What opens the modules of a column chunk.
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
        Ok(ChunkDecryptor { key, aad: self.aad.clone(), has_ctr_pages: self.has_ctr_pages, place })
    }
}

/// What keys are remembered by: their metadata, or their column where they have none.
fn memory_of(request: &KeyRequest<'_>) -> Vec<u8> {
    match (request.key_metadata, request.column) {
        (Some(metadata), _) => [b"m", metadata].concat(),
        (None, Some(column)) => [b"c", column.dotted().as_bytes()].concat(),
        (None, None) => Vec::new(),
    }
}

#[cold]
fn missing(what: &str, why: &str) -> Error {
    match why {
        "" => Error::crypto(format_args!(
            "{what} is encrypted, and its key was not given (Decryption; marq: --footer-key, \
             --column-key, --key-file)"
        )),
        why => {
            Error::crypto(format_args!("{what} is encrypted, and its key is not to be had: {why}"))
        }
    }
}

#[cold]
fn not_authentic(module: Module) -> Error {
    Error::crypto(format_args!(
        "{} is not authentic: the key or the AAD prefix is wrong, or the file was changed",
        module.name()
    ))
}

/// Opens the modules of a column chunk. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ChunkDecryptor {
    key: Key,
    aad: Arc<[u8]>,
    has_ctr_pages: bool,
    place: ChunkOrdinals,
}

impl fmt::Debug for ChunkDecryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkDecryptor").field("place", &self.place).finish_non_exhaustive()
    }
}

impl ChunkDecryptor {
    /// Bytes of the module at the start of `bytes`, which may go on.
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
    /// `Crypto` if it is not authentic, `Malformed(Encryption)` if its length is not what it says.
    pub(crate) fn open(&self, module: Module, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.open_into(module, bytes, &mut out)?;
        Ok(out)
    }

    /// As [`ChunkDecryptor::open`], into memory that is there.
    ///
    /// # Errors
    /// As [`ChunkDecryptor::open`].
    pub(crate) fn open_into(&self, module: Module, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let aad = module.aad(&self.aad, self.place)?;
        let is_ctr = self.has_ctr_pages && module.is_page_body();
        open(&self.key, module, &aad, is_ctr, bytes, out)
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
fn open(
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
        out.extend_from_slice(sealed);
        return key.decrypt_ctr(nonce, out).ok_or_else(|| not_authentic(module));
    }
    let Some((data, &tag)) = sealed.split_last_chunk::<TAG_LEN>() else {
        return Err(wrong_len(&format_args!("at least {}", LENGTH_LEN + NONCE_LEN + TAG_LEN)));
    };
    out.extend_from_slice(data);
    match key.open(nonce, aad, out, tag) {
        Some(()) => Ok(()),
        None => {
            // What is not authentic is given to nobody.
            out.clear();
            Err(not_authentic(module))
        }
    }
}
