//! [`Key`] holds the bytes of a key, its cipher, and how often it was used; a [`KeyRetriever`]
//! finds keys.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cipher::{Aes, Cipher, NONCE_LEN, Secret, TAG_LEN, check_enabled, random};
use crate::error::{Error, Result};
use crate::schema::LeafPath;

/// A key of AES: 128, 192 or 256 bits. Cheap to clone; clones count their use together.
///
/// The bytes are zeroized when the last clone is dropped, and no error, log or `Debug` shows them.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::crypt::Key;
///
/// let key = Key::new(b"0123456789012345")?;
/// assert_eq!(format!("{key:?}"), "Key(128 bits)");
/// assert!(Key::new(b"too short").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Key(Arc<ScheduledKey>);

struct ScheduledKey {
    bytes: Secret,
    cipher: Aes,
    /// Modules encrypted so far.
    invocations: AtomicU64,
}

impl Key {
    /// Maximum number of modules that a key may encrypt. Beyond it, the chance that two modules
    /// have the same nonce, which would break their encryption, is no longer negligible (NIST SP
    /// 800-38D, section 8.3).
    pub const MAX_INVOCATIONS: u64 = 1 << 32;

    /// Makes a key of these bytes.
    ///
    /// # Errors
    /// `Usage` if they are not 16, 24 or 32; `FeatureDisabled` without the feature `encryption`.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        check_enabled("a key")?;
        let cipher = Aes::new(bytes).ok_or_else(|| {
            Error::usage(format_args!(
                "a key has 16, 24 or 32 bytes (AES-128, AES-192, AES-256), found {}",
                bytes.len()
            ))
        })?;
        let bytes = Secret::from(bytes.to_vec());
        Ok(Self(Arc::new(ScheduledKey { bytes, cipher, invocations: AtomicU64::new(0) })))
    }

    /// Parses a key in hexadecimal digits.
    ///
    /// # Errors
    /// `Usage` unless `digits` are 32, 48 or 64 hexadecimal digits.
    pub fn from_hex(digits: &str) -> Result<Self> {
        let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let mut bytes = Secret::from(Vec::with_capacity(digits.len() / 2));
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        for &[high, low] in pairs {
            let (Some(high), Some(low)) = (digit(high), digit(low)) else {
                return Err(Error::usage("a key as text consists of hexadecimal digits"));
            };
            bytes.push(high << 4 | low);
        }
        if !rest.is_empty() {
            return Err(Error::usage("a key as text has two hexadecimal digits a byte"));
        }
        Self::new(&bytes)
    }

    /// Generates a key of `bits` bits with the random generator of the operating system.
    ///
    /// # Errors
    /// `Usage` unless `bits` is 128, 192 or 256; `Crypto` if the generator fails.
    pub fn generate(bits: usize) -> Result<Self> {
        if !matches!(bits, 128 | 192 | 256) {
            return Err(Error::usage(format_args!("a key has 128, 192 or 256 bits, not {bits}")));
        }
        let mut bytes = Secret::from(vec![0; bits / 8]);
        random(&mut bytes)?;
        Self::new(&bytes)
    }

    /// Adds to the count of encrypted modules those that the key has encrypted before, in other
    /// processes or as another `Key` of the same bytes: writing fails once the total exceeds
    /// [`Key::MAX_INVOCATIONS`]. Each page takes two modules. Clones share the count; two keys made
    /// from the same bytes do not.
    #[must_use]
    pub fn with_invocations(self, modules: u64) -> Self {
        let add = |used: u64| Some(used.saturating_add(modules).min(Self::MAX_INVOCATIONS));
        let counter = &self.0.invocations;
        // The update always has a next value.
        let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        self
    }

    /// Number of modules encrypted so far.
    pub fn invocations(&self) -> u64 {
        self.0.invocations.load(Ordering::Relaxed)
    }

    /// Length in bits.
    pub fn bits(&self) -> usize {
        self.0.bytes.len() * 8
    }

    /// The secret bytes, for a key management service that wraps them.
    pub fn expose_bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Counts a module that is encrypted.
    fn count(&self) -> Result<()> {
        let next = |used| (used < Self::MAX_INVOCATIONS).then_some(used + 1);
        let counter = &self.0.invocations;
        match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::crypto(
                "the key has encrypted 2^32 modules, and more would not be safe: write with a new key",
            )),
        }
    }

    /// Encrypts in place by GCM, with a nonce of its own.
    ///
    /// # Errors
    /// `Crypto` if the key was used too often, or the generator fails.
    pub(super) fn seal(
        &self,
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<([u8; NONCE_LEN], [u8; TAG_LEN])> {
        self.count()?;
        let nonce = nonce()?;
        let tag = self.0.cipher.seal(nonce, aad, data).ok_or_else(too_long)?;
        Ok((nonce, tag))
    }

    /// The tag that data would have, if they were encrypted by GCM with this nonce: `data` are
    /// encrypted on the way. For signatures that are checked.
    pub(super) fn tag(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; TAG_LEN]> {
        self.0.cipher.seal(nonce, aad, data).ok_or_else(too_long)
    }

    /// Encrypts in place by CTR, with a nonce of its own.
    ///
    /// # Errors
    /// As [`Key::seal`].
    pub(super) fn encrypt_ctr(&self, data: &mut [u8]) -> Result<[u8; NONCE_LEN]> {
        self.count()?;
        let nonce = nonce()?;
        self.0.cipher.ctr(nonce, data).ok_or_else(too_long)?;
        Ok(nonce)
    }

    /// Decrypts in place by GCM; `None` if the data are not authentic.
    pub(super) fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()> {
        self.0.cipher.open(nonce, aad, data, tag)
    }

    /// Decrypts in place by CTR.
    pub(super) fn decrypt_ctr(&self, nonce: [u8; NONCE_LEN], data: &mut [u8]) -> Option<()> {
        self.0.cipher.ctr(nonce, data)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bits)", self.bits())
    }
}

#[cold]
fn too_long() -> Error {
    Error::crypto("the module is too long for its cipher")
}

fn nonce() -> Result<[u8; NONCE_LEN]> {
    let mut nonce = [0; NONCE_LEN];
    random(&mut nonce)?;
    Ok(nonce)
}

/// The key that a file asks for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct KeyRequest<'a> {
    /// The column, or `None` for the key of the footer.
    pub column: Option<&'a LeafPath>,
    /// Key metadata, which the writer stored to identify the key; opaque to the format.
    pub key_metadata: Option<&'a [u8]>,
}

impl<'a> KeyRequest<'a> {
    pub(crate) fn new(column: Option<&'a LeafPath>, key_metadata: Option<&'a [u8]>) -> Self {
        Self { column, key_metadata }
    }
}

/// Finds keys while a file is read, as in a key management service.
///
/// A file asks for the key of its footer when it is opened, and for that of a column when the
/// column is first looked at; for each column and key metadata once, unless it failed.
pub trait KeyRetriever: Send + Sync {
    /// The key.
    ///
    /// # Errors
    /// [`ErrorKind::Crypto`] where the key does not exist or is denied: the column cannot be read,
    /// and others can. Any other kind ends the read, and the key is asked for again by the next.
    ///
    /// [`ErrorKind::Crypto`]: crate::ErrorKind::Crypto
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Key>;
}

impl<F: Fn(&KeyRequest<'_>) -> Result<Key> + Send + Sync> KeyRetriever for F {
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Key> {
        self(request)
    }
}

/// Like [`KeyRetriever`], but asynchronous. An [`AsyncReader`](crate::AsyncReader) asks
/// concurrently for all keys that a file names, when it is opened.
pub trait AsyncKeyRetriever: Send + Sync {
    /// The key.
    ///
    /// # Errors
    /// As [`KeyRetriever::retrieve`].
    fn retrieve<'a>(
        &'a self,
        request: KeyRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Key>> + Send + 'a>>;
}

#[cfg(all(test, feature = "encryption"))]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_its_bytes() {
        let key = Key::new(b"SECRET-SECRET-16").unwrap();
        assert_eq!(format!("{key:?} {key:#?}"), "Key(128 bits) Key(128 bits)");
        let wrong = Key::from_hex("SECRET").unwrap_err().to_string();
        assert!(!wrong.contains("SECRET"), "{wrong}");
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for len in 0..40 {
            assert_eq!(Key::new(&vec![7; len]).is_ok(), matches!(len, 16 | 24 | 32), "{len}");
        }
        assert!(Key::from_hex(&"0".repeat(31)).is_err());
        assert!(Key::from_hex(&"0g".repeat(16)).is_err());
        assert_eq!(Key::from_hex(&"0F".repeat(16)).unwrap().expose_bytes(), [15; 16]);
        assert!(Key::generate(100).is_err());
        assert_ne!(
            Key::generate(256).unwrap().expose_bytes(),
            Key::generate(256).unwrap().expose_bytes()
        );
    }

    #[test]
    fn a_key_is_refused_after_its_last_invocation() {
        let key = Key::generate(128).unwrap().with_invocations(Key::MAX_INVOCATIONS - 2);
        let clone = key.clone();
        key.seal(b"", &mut [1, 2, 3]).unwrap();
        clone.encrypt_ctr(&mut [1, 2, 3]).unwrap();
        assert_eq!(key.invocations(), Key::MAX_INVOCATIONS);
        for refused in [key.seal(b"", &mut []).map(drop), clone.encrypt_ctr(&mut []).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("2^32"));
        }
        assert_eq!(key.invocations(), Key::MAX_INVOCATIONS);
    }

    #[test]
    fn a_million_modules_have_a_million_nonces() {
        let key = Key::generate(128).unwrap();
        let mut seen = std::collections::HashSet::with_capacity(1_000_000);
        for _ in 0..1_000_000 {
            assert!(seen.insert(key.encrypt_ctr(&mut []).unwrap()));
        }
        assert_eq!(key.invocations(), 1_000_000);
    }
}
