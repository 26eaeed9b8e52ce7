//! Retrieves keys asynchronously, before the blocking stages ask for them.

use std::sync::{Arc, PoisonError};

use super::decrypt::{Decryption, FileDecryptor, denied, key_name};
use super::key::{AsyncKeyRetriever, Key, KeyRequest};
use crate::error::Result;
use crate::schema::LeafPath;

impl Decryption {
    /// Like [`Decryption::with_retriever`], for asynchronous readers.
    #[must_use]
    pub fn with_async_retriever(mut self, retriever: impl AsyncKeyRetriever + 'static) -> Self {
        self.async_retriever = Some(Arc::new(retriever));
        self
    }

    pub(crate) fn async_retriever(&self) -> Option<&Arc<dyn AsyncKeyRetriever>> {
        self.async_retriever.as_ref()
    }
}

impl FileDecryptor {
    pub(crate) fn has_footer_key(&self) -> bool {
        self.footer_key.is_ok()
    }

    /// Sets the footer key, which was retrieved asynchronously.
    pub(crate) fn set_footer_key(&mut self, found: Result<Key>) -> Result<()> {
        self.footer_key = denied(found)?;
        Ok(())
    }

    /// Adds a column key that was retrieved asynchronously.
    pub(crate) fn remember(
        &self,
        column: &LeafPath,
        key_metadata: Option<&[u8]>,
        found: Result<Key>,
    ) -> Result<()> {
        let name = key_name(&KeyRequest::new(Some(column), key_metadata));
        let found = denied(found)?;
        self.retrieved.lock().unwrap_or_else(PoisonError::into_inner).insert(name, found);
        Ok(())
    }

    /// Whether a column key must still be retrieved asynchronously.
    pub(crate) fn waits_for(&self, column: &LeafPath, key_metadata: Option<&[u8]>) -> bool {
        let request = KeyRequest::new(Some(column), key_metadata);
        self.decryption.explicit_key(column).is_none()
            && self.decryption.retriever.is_none()
            && self.decryption.async_retriever.is_some()
            && !self
                .retrieved
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains_key(&key_name(&request))
    }
}
