//! Retrieves the keys of a file asynchronously, before its footer is opened.

use std::collections::HashSet;

use super::footer::{Footer, FooterBody, SealedFooter};
use crate::crypt::{Decryption, KeyRequest};
use crate::error::Result;
use crate::format::{ColumnCryptoMetaData, FileCryptoMetaData};
use crate::thrift::{self, Read};

/// Keys that are asked for side by side: a file can name very many.
const MAX_KEYS_AT_ONCE: usize = 32;

impl SealedFooter {
    /// Gives it the key that an asynchronous retriever found for `request`.
    pub(crate) async fn retrieve_key(mut self, keys: &Decryption) -> Result<Self> {
        let key_metadata = match &self.body {
            FooterBody::Encrypted { .. } => {
                FileCryptoMetaData::read(&mut thrift::ThriftReader::new(&self.stored))?.key_metadata
            }
            FooterBody::Plain(index) => index.head().footer_signing_key_metadata.clone(),
        };
        if let (Some(file), Some(retriever)) = (&mut self.file, keys.async_retriever())
            && !file.has_footer_key()
        {
            let found = retriever.retrieve(KeyRequest::new(None, key_metadata.as_deref())).await;
            file.set_footer_key(found)?;
        }
        Ok(self)
    }
}

impl Footer {
    /// Retrieves the keys of all columns that must come asynchronously, side by side. A key that is
    /// denied is an error where its column is read, and none here.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub(crate) async fn retrieve_keys(&self, keys: &Decryption) -> Result<()> {
        let (Some(decrypted), Some(retriever)) = (&self.shared.decrypted, keys.async_retriever())
        else {
            return Ok(());
        };
        let file = decrypted.file();
        let mut known = HashSet::new();
        let mut wanted = Vec::new();
        for row_group in 0..self.row_groups() {
            for (leaf, chunk) in self.index().column_chunks(row_group)?.enumerate() {
                let crypto = chunk?.crypto_metadata.map(|held| held.get());
                let Some(ColumnCryptoMetaData::EncryptionWithColumnKey(of)) = crypto else {
                    continue;
                };
                let path = self.schema().leaf(leaf)?.path;
                let asks = file.waits_for(&path, of.key_metadata.as_deref());
                if asks && known.insert((leaf, of.key_metadata.clone())) {
                    wanted.push((of.key_metadata, path));
                }
            }
        }
        for some in wanted.chunks(MAX_KEYS_AT_ONCE) {
            let found = some.iter().map(|(metadata, path)| {
                retriever.retrieve(KeyRequest::new(Some(path), metadata.as_deref()))
            });
            let found = futures_util::future::join_all(found).await;
            for ((metadata, path), key) in some.iter().zip(found) {
                file.remember(path, metadata.as_deref(), key)?;
            }
        }
        Ok(())
    }
}
