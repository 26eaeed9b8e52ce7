//! [`PageCopier`] copies pages under another protection, or with another codec.

use super::recompress::Recompressor;
use crate::crypt::{ChunkDecryptor, ChunkEncryptor, Module};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::PageType;
use crate::memory;
use crate::read::StoredPage;
use crate::thrift::Write;
use crate::write::ModuleSealer;

/// Copies the pages of a chunk.
pub(super) struct PageCopier {
    pub(super) decryptor: Option<ChunkDecryptor>,
    pub(super) encryptor: Option<ChunkEncryptor>,
    /// Gives the pages another codec.
    pub(super) recompressor: Option<Recompressor>,
    pub(super) sealer: ModuleSealer,
    /// A body in plain text.
    pub(super) plain: Vec<u8>,
    /// Bytes of headers in the new file beyond those in the old one.
    pub(super) header_bytes_added: i64,
}

impl PageCopier {
    /// A page as it is in the new file; `data_pages` are before it.
    pub(super) fn copy(&mut self, page: &StoredPage, data_pages: usize) -> Result<Vec<u8>> {
        let body = match (&self.decryptor, page.module) {
            (Some(decryptor), Some(module)) => {
                decryptor.open_into(module, page.body(), &mut self.plain)?;
                &self.plain
            }
            _ => page.body(),
        };
        // Authenticated bytes need no checksum, which could be made without a key.
        let is_authenticated =
            self.decryptor.as_ref().zip(page.module).is_some_and(|(of, it)| of.authenticates(it));
        if let Some(stated) = page.header.crc.filter(|_| !is_authenticated) {
            let (stated, found) = (stated.cast_unsigned(), crc32fast::hash(page.body()));
            if stated != found {
                let (stated, found) = (format!("{stated:#010x}"), format!("{found:#010x}"));
                return Err(Error::mismatch(Spec::Pages, "CRC-32 of the page", stated, found));
            }
        }
        let mut header = page.header.clone();
        let is_same = page.module.is_none() && self.recompressor.is_none();
        let body = match &mut self.recompressor {
            Some(recompressor) => recompressor.body(&mut header, body)?,
            None => body,
        };
        let mut out = memory::vec_for(page.bytes.len() + OVERHEAD)?;
        let header_len = match &self.encryptor {
            Some(encryptor) => {
                let modules = match header.r#type {
                    PageType::DictionaryPage => {
                        (Module::DictionaryPageHeader, Module::DictionaryPage)
                    }
                    _ => (Module::DataPageHeader(data_pages), Module::DataPage(data_pages)),
                };
                let has_checksum = header.crc.is_some();
                self.sealer.page(encryptor, &mut header, body, modules, has_checksum, &mut out)?
            }
            None if is_same => {
                memory::append(&mut out, &page.bytes)?;
                page.header_len
            }
            None => {
                header.compressed_page_size = i32::try_from(body.len())
                    .map_err(|_| Error::limit(LimitKind::Page, "a page of more than 2 GiB"))?;
                header.crc = header.crc.map(|_| crc32fast::hash(body).cast_signed());
                header.write(&mut out)?;
                let header_len = out.len();
                memory::append(&mut out, body)?;
                header_len
            }
        };
        let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let added = signed(header_len).saturating_sub(signed(page.header_len));
        self.header_bytes_added = self.header_bytes_added.saturating_add(added);
        Ok(out)
    }
}

/// Bytes that encryption adds to a page, about.
const OVERHEAD: usize = 80;
