//! [`Kms`] wraps and unwraps keys; a [`KeyRing`] does so with master keys that it holds in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::wrapping::{unwrap_locally, wrap_locally};
use crate::crypt::key::Key;
use crate::error::{Error, Result};

/// A key management service: it holds master keys, and wraps other keys with them.
pub trait Kms: Send + Sync {
    /// Encrypts `key` with the master key of this name. Returns what [`unwrap`](Kms::unwrap) needs
    /// to decrypt it.
    ///
    /// # Errors
    /// Any; [`ErrorKind::Crypto`](crate::ErrorKind::Crypto) if the master key does not exist or is
    /// denied, so that columns with other keys can be read.
    fn wrap(&self, key: &Key, master_key: &str) -> Result<String>;

    /// Decrypts a key.
    ///
    /// # Errors
    /// As [`Kms::wrap`].
    fn unwrap(&self, wrapped: &str, master_key: &str) -> Result<Key>;
}

impl<K: Kms + ?Sized> Kms for Arc<K> {
    fn wrap(&self, key: &Key, master_key: &str) -> Result<String> {
        (**self).wrap(key, master_key)
    }

    fn unwrap(&self, wrapped: &str, master_key: &str) -> Result<Key> {
        (**self).unwrap(wrapped, master_key)
    }
}

/// Master keys in memory: a KMS for tests, and for tools that are given the master keys. Keys are
/// wrapped by AES-GCM with the name of the master key as authenticated data, in Base64, as the
/// in-memory service of parquet-java does.
#[derive(Clone, Default)]
pub struct KeyRing {
    keys: HashMap<String, Key>,
}

impl KeyRing {
    /// Without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a master key.
    #[must_use]
    pub fn with_key(mut self, name: impl Into<String>, key: Key) -> Self {
        self.keys.insert(name.into(), key);
        self
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.get(name)
    }

    fn master(&self, name: &str) -> Result<&Key> {
        self.key(name)
            .ok_or_else(|| Error::crypto(format_args!("there is no master key \"{name}\"")))
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.keys.keys().collect();
        names.sort();
        f.debug_struct("KeyRing").field("keys", &names).finish()
    }
}

impl Kms for KeyRing {
    fn wrap(&self, key: &Key, master_key: &str) -> Result<String> {
        wrap_locally(key, self.master(master_key)?, master_key.as_bytes())
    }

    fn unwrap(&self, wrapped: &str, master_key: &str) -> Result<Key> {
        unwrap_locally(wrapped, self.master(master_key)?, master_key.as_bytes())
    }
}
