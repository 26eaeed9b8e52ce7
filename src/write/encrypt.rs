//! Encrypts encoded column chunks: their pages, metadata and indexes.
//!
//! Spec: Encryption.md. It runs after a chunk is encoded and before it is placed in the file: the
//! modules of a chunk are authenticated with the numbers of its row group and column, so the row
//! group must be known.

use std::ops::Range;

use bytes::Bytes;

use super::column::EncodedChunk;
use crate::crypt::{ChunkEncryptor, FileEncryptor, Module};
use crate::error::{Error, LimitKind, Result};
use crate::format::{ColumnChunk, ColumnMetaData, PageHeader};
use crate::memory;
use crate::schema::Leaf;
use crate::thrift::{self, Read, Write};

/// How the chunks of a row group are encrypted. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RowGroupEncryption {
    pub(crate) file: FileEncryptor,
    pub(crate) row_group: usize,
    /// Whether pages have checksums, which cover the stored bytes.
    pub(crate) checksums: bool,
}

impl RowGroupEncryption {
    /// Encrypts the pages of the chunk of a leaf, unless they are already, or stay in plain text.
    ///
    /// # Errors
    /// `Crypto` if there are too many row groups or pages for encryption, the key was used too
    /// often, or the generator of the operating system fails; `Limit` if a page becomes larger than
    /// the format allows.
    pub(crate) fn encrypt(&self, leaf: usize, chunk: &mut EncodedChunk) -> Result<()> {
        if chunk.is_encrypted {
            return Ok(());
        }
        self.encrypt_pages(leaf, chunk).map_err(|e| {
            e.at_row_group(self.row_group).at_column(chunk.meta_data.path_in_schema.join("."))
        })
    }

    fn encrypt_pages(&self, leaf: usize, chunk: &mut EncodedChunk) -> Result<()> {
        let Some(encryptor) = self.file.chunk(self.row_group, leaf)? else { return Ok(()) };
        if self.file.protection(leaf).has_own_key() || self.file.has_plaintext_footer() {
            // The order that was detected in the values would be readable by others.
            chunk.sorted = None;
        }
        let pages = PageEncryptor {
            encryptor,
            checksums: self.checksums,
            stored: &chunk.bytes,
            page: Vec::new(),
            sealer: ModuleSealer::default(),
            out: Vec::new(),
            header_bytes_added: 0,
        };
        let encrypted = pages.run(&chunk.meta_data, &chunk.offset_index)?;
        chunk.apply(encrypted)?;
        chunk.is_encrypted = true;
        Ok(())
    }
}

/// The pages of a chunk, encrypted.
struct EncryptedPages {
    bytes: Vec<u8>,
    /// Where the first data page begins.
    first_data_page: usize,
    /// Bytes of each data page.
    lens: Vec<usize>,
    header_bytes_added: usize,
}

struct PageEncryptor<'a> {
    encryptor: ChunkEncryptor,
    checksums: bool,
    stored: &'a [Bytes],
    /// A page in plain text.
    page: Vec<u8>,
    sealer: ModuleSealer,
    out: Vec<u8>,
    header_bytes_added: usize,
}

impl PageEncryptor<'_> {
    fn run(
        mut self,
        meta: &ColumnMetaData,
        index: &crate::format::OffsetIndex,
    ) -> Result<EncryptedPages> {
        let at = |n: i64| usize::try_from(n).expect("offsets of a chunk in memory count from 0");
        let pages = index.page_locations.len();
        let len = self.stored.iter().map(Bytes::len).sum::<usize>();
        self.out.try_reserve_exact(len + (pages + 1) * OVERHEAD)?;
        let first_data_page = at(meta.data_page_offset);
        if first_data_page > 0 {
            self.add(0..first_data_page, Module::DictionaryPageHeader, Module::DictionaryPage)?;
        }
        let encrypted_first = self.out.len();
        let mut lens = memory::vec_for(pages)?;
        for (i, page) in index.page_locations.iter().enumerate() {
            let before = self.out.len();
            let start = at(page.offset);
            let end = start + at(page.compressed_page_size.into());
            self.add(start..end, Module::DataPageHeader(i), Module::DataPage(i))?;
            lens.push(self.out.len() - before);
        }
        Ok(EncryptedPages {
            bytes: self.out,
            first_data_page: encrypted_first,
            lens,
            header_bytes_added: self.header_bytes_added,
        })
    }

    /// Appends a page, encrypted.
    fn add(&mut self, range: Range<usize>, header: Module, body: Module) -> Result<()> {
        self.page.clear();
        copy(self.stored, range, &mut self.page)?;
        let mut reader = thrift::ThriftReader::new(&self.page);
        let mut plain = PageHeader::read(&mut reader)?;
        let (old_header, contents) = self.page.split_at(reader.position());
        let crc = self.checksums;
        let sealed = self.sealer.page(
            &self.encryptor,
            &mut plain,
            contents,
            (header, body),
            crc,
            &mut self.out,
        )?;
        self.header_bytes_added += sealed.saturating_sub(old_header.len());
        Ok(())
    }
}

/// Encrypts pages, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct ModuleSealer {
    body: Vec<u8>,
    header: Vec<u8>,
}

impl ModuleSealer {
    /// Appends a page of this header and body, encrypted as these modules; returns the bytes of the
    /// header. A checksum covers the stored bytes.
    ///
    /// # Errors
    /// As [`RowGroupEncryption::encrypt`].
    pub(crate) fn page(
        &mut self,
        encryptor: &ChunkEncryptor,
        header: &mut PageHeader,
        contents: &[u8],
        modules: (Module, Module),
        has_checksum: bool,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        self.body.clear();
        encryptor.seal(modules.1, contents, &mut self.body)?;
        header.compressed_page_size = i32::try_from(self.body.len()).map_err(|_| {
            Error::limit(LimitKind::Page, "a page takes more than 2 GiB; write fewer rows per page")
        })?;
        header.crc = has_checksum.then(|| crc32fast::hash(&self.body).cast_signed());
        self.header.clear();
        header.write(&mut self.header)?;
        let before = out.len();
        encryptor.seal(modules.0, &self.header, out)?;
        let header_len = out.len() - before;
        memory::append(out, &self.body)?;
        Ok(header_len)
    }
}

/// Bytes that encryption adds to a page, about.
const OVERHEAD: usize = 80;

/// Copies a range of what lies in pieces.
fn copy(pieces: &[Bytes], range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    memory::room(out, range.len())?;
    let mut start = 0;
    for piece in pieces {
        let end = start + piece.len();
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            out.extend_from_slice(&piece[from - start..to - start]);
        }
        start = end;
    }
    Ok(())
}

impl EncodedChunk {
    /// Puts the encrypted pages in place of the others.
    fn apply(&mut self, pages: EncryptedPages) -> Result<()> {
        let wide = |n: usize| i64::try_from(n).expect("a chunk in memory has less than 2^63 bytes");
        let meta = &mut self.meta_data;
        meta.data_page_offset = wide(pages.first_data_page);
        meta.total_compressed_size = wide(pages.bytes.len());
        meta.total_uncompressed_size += wide(pages.header_bytes_added);
        let mut at = pages.first_data_page;
        for (page, len) in self.offset_index.page_locations.iter_mut().zip(pages.lens) {
            page.offset = wide(at);
            page.compressed_page_size =
                i32::try_from(len).map_err(|_| Error::usage("a page of more than 2 GiB"))?;
            at += len;
        }
        self.bytes = vec![pages.bytes.into()];
        Ok(())
    }
}

/// A bloom filter, encrypted: its header and its bits are modules.
///
/// # Errors
/// As [`RowGroupEncryption::encrypt`].
pub(super) fn bloom(filter: &[u8], encryptor: &ChunkEncryptor, out: &mut Vec<u8>) -> Result<()> {
    let mut reader = thrift::ThriftReader::new(filter);
    crate::format::BloomFilterHeader::read(&mut reader)?;
    let (header, bits) = filter.split_at(reader.position());
    encryptor.seal(Module::BloomFilterHeader, header, out)?;
    encryptor.seal(Module::BloomFilterBitset, bits, out)
}

/// Encrypts the metadata of an encrypted chunk with its key, and names the key.
///
/// # Errors
/// As [`RowGroupEncryption::encrypt`].
pub(super) fn column_metadata(
    chunk: &mut ColumnChunk,
    row_group: usize,
    leaf: &Leaf,
    file: &FileEncryptor,
) -> Result<()> {
    encrypted_metadata(chunk, row_group, leaf, file)
        .map_err(|e| e.at_row_group(row_group).at_column(leaf.path.dotted()))
}

fn encrypted_metadata(
    chunk: &mut ColumnChunk,
    row_group: usize,
    leaf: &Leaf,
    file: &FileEncryptor,
) -> Result<()> {
    let Some(encryptor) = file.chunk(row_group, leaf.index)? else { return Ok(()) };
    let protection = file.protection(leaf.index);
    chunk.crypto_metadata = protection.crypto_metadata(&leaf.path);
    // An encrypted footer protects those of columns that have its key.
    if protection.has_own_key() || file.has_plaintext_footer() {
        let meta = chunk.meta_data.take().unwrap_or_default();
        let (mut plain, mut module) = (Vec::new(), Vec::new());
        meta.write(&mut plain)?;
        encryptor.seal(Module::ColumnMetaData, &plain, &mut module)?;
        chunk.encrypted_column_metadata = Some(module);
        chunk.meta_data = file.has_plaintext_footer().then(|| stripped(meta));
    }
    Ok(())
}

/// The unencrypted part of the metadata of an encrypted chunk: nothing about its values, and no
/// unknown field.
fn stripped(meta: ColumnMetaData) -> ColumnMetaData {
    ColumnMetaData {
        unknown: Default::default(),
        statistics: None,
        size_statistics: None,
        geospatial_statistics: None,
        encoding_stats: None,
        key_value_metadata: None,
        ..meta
    }
}

#[cfg(all(test, feature = "encryption"))]
mod tests {
    use super::*;
    use crate::crypt::{Encryption, Key, LeafProtection};
    use crate::error::ErrorKind;
    use crate::format::OffsetIndex;

    #[test]
    fn a_row_group_beyond_the_last_that_can_be_encrypted_is_named_with_the_column() {
        let key = || Key::new(b"0123456789012345").unwrap();
        let protections = [LeafProtection::FooterKey(key())];
        let file = FileEncryptor::new(&Encryption::new(key()), &protections).unwrap();
        let encryption = RowGroupEncryption { file, row_group: 40_000, checksums: true };
        let path_in_schema = vec!["a".to_owned(), "b".to_owned()];
        let mut chunk = EncodedChunk {
            bytes: Vec::new(),
            meta_data: ColumnMetaData { path_in_schema, ..ColumnMetaData::default() },
            offset_index: OffsetIndex::default(),
            column_index: None,
            bloom: None,
            sorted: None,
            is_encrypted: false,
        };
        let error = encryption.encrypt(0, &mut chunk).unwrap_err();
        let place = (error.at().row_group, error.at().column.as_deref());
        assert_eq!((error.kind(), place), (ErrorKind::Crypto, (Some(40_000), Some("a.b"))));
    }
}
