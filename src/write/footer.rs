//! The end of a file: indexes, bloom filters, the footer, the tail.

use super::column::EncodedChunk;
use super::encrypt;
use crate::crypt::{FileEncryptor, Module};
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, ColumnIndex, FileMetaData, OffsetIndex, RowGroup, tail};
use crate::schema::Leaf;
use crate::thrift::Write;

/// The indexes and the bloom filter of a chunk, until the end of the file is written.
pub(crate) struct Indexes {
    offset_index: OffsetIndex,
    column_index: Option<ColumnIndex>,
    bloom: Option<Vec<u8>>,
}

impl Indexes {
    /// Those of a chunk whose offsets already count from the start of the file.
    pub(crate) fn of(chunk: &mut EncodedChunk) -> Self {
        Self {
            offset_index: std::mem::take(&mut chunk.offset_index),
            column_index: chunk.column_index.take(),
            bloom: chunk.bloom.take(),
        }
    }

    /// Bytes of memory held, about.
    pub(crate) fn bytes_held(&self) -> usize {
        let bounds = self.column_index.as_ref().map_or(0, |index| {
            index.min_values.iter().chain(&index.max_values).map(|b| b.len() + 24).sum()
        });
        self.offset_index.page_locations.len() * 24
            + bounds
            + self.bloom.as_ref().map_or(0, Vec::len)
    }
}

/// Appends the bloom filters and the page index of all row groups, which begin at `offset` of the
/// file, and says in the chunks where they are. Those of encrypted chunks are encrypted.
///
/// Filters come first: a reader that fetches the end of a file gets the indexes and the footer in
/// one piece.
pub(crate) fn indexes(
    row_groups: &mut [RowGroup],
    indexes: &[Vec<Indexes>],
    offset: u64,
    encryptor: Option<&FileEncryptor>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let here = |out: &Vec<u8>| {
        i64::try_from(offset + out.len() as u64)
            .map_err(|_| Error::usage("a file beyond 2^63 bytes"))
    };
    let len = |from: i64, to: i64| {
        i32::try_from(to - from).map_err(|_| Error::usage("an index of more than 2 GiB"))
    };
    let each = |row_groups: &mut [RowGroup], visit: &mut Visit<'_>| -> Result<()> {
        for (i, (row_group, indexes)) in row_groups.iter_mut().zip(indexes).enumerate() {
            for (leaf, (chunk, index)) in row_group.columns.iter_mut().zip(indexes).enumerate() {
                let of_chunk = encryptor.map(|file| file.chunk(i, leaf)).transpose()?.flatten();
                visit(chunk, index, of_chunk)?;
            }
        }
        Ok(())
    };
    let mut plain = Vec::new();
    each(row_groups, &mut |chunk, index, encryptor| {
        if let (Some(bloom), Some(meta)) = (&index.bloom, &mut chunk.meta_data) {
            let from = here(out)?;
            match encryptor {
                Some(encryptor) => encrypt::bloom(bloom, &encryptor, out)?,
                None => out.extend_from_slice(bloom),
            }
            meta.bloom_filter_offset = Some(from);
            meta.bloom_filter_length = Some(len(from, here(out)?)?);
        }
        Ok(())
    })?;
    each(row_groups, &mut |chunk, index, encryptor| {
        if let Some(column_index) = &index.column_index {
            let from = here(out)?;
            match encryptor {
                Some(encryptor) => {
                    plain.clear();
                    column_index.write(&mut plain);
                    encryptor.seal(Module::ColumnIndex, &plain, out)?;
                }
                None => column_index.write(out),
            }
            chunk.column_index_offset = Some(from);
            chunk.column_index_length = Some(len(from, here(out)?)?);
        }
        Ok(())
    })?;
    each(row_groups, &mut |chunk, index, encryptor| {
        let from = here(out)?;
        match encryptor {
            Some(encryptor) => {
                plain.clear();
                index.offset_index.write(&mut plain);
                encryptor.seal(Module::OffsetIndex, &plain, out)?;
            }
            None => index.offset_index.write(out),
        }
        chunk.offset_index_offset = Some(from);
        chunk.offset_index_length = Some(len(from, here(out)?)?);
        Ok(())
    })
}

/// What is done with a chunk, its indexes, and what encrypts them.
type Visit<'a> =
    dyn FnMut(&mut ColumnChunk, &Indexes, Option<crate::crypt::ChunkEncryptor>) -> Result<()> + 'a;

/// Encrypts the metadata of the chunks that are encrypted, and says how in the footer.
///
/// # Errors
/// `Crypto` if a key was used too often, or the generator of the operating system fails.
pub(crate) fn protect(
    metadata: &mut FileMetaData,
    leaves: &[Leaf],
    encryptor: &FileEncryptor,
) -> Result<()> {
    for (i, row_group) in metadata.row_groups.iter_mut().enumerate() {
        for (chunk, leaf) in row_group.columns.iter_mut().zip(leaves) {
            encrypt::column_metadata(chunk, i, leaf, encryptor)?;
        }
    }
    if encryptor.has_plaintext_footer() {
        metadata.encryption_algorithm = Some(encryptor.algorithm());
        metadata.footer_signing_key_metadata = encryptor.footer_key_metadata().cloned();
    }
    Ok(())
}

/// The magic number at both ends of the file.
pub(crate) fn magic(encryptor: Option<&FileEncryptor>) -> &'static [u8; 4] {
    match encryptor {
        Some(encryptor) if !encryptor.has_plaintext_footer() => &tail::MAGIC_ENCRYPTED,
        _ => &tail::MAGIC,
    }
}

/// Appends footer and tail.
pub(crate) fn footer(
    metadata: &FileMetaData,
    encryptor: Option<&FileEncryptor>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    match encryptor {
        Some(encryptor) if encryptor.has_plaintext_footer() => {
            let mut plain = Vec::new();
            metadata.write(&mut plain);
            out.extend_from_slice(&plain);
            encryptor.sign(&plain, out)?;
        }
        Some(encryptor) => {
            let mut plain = Vec::new();
            metadata.write(&mut plain);
            encryptor.crypto_metadata().write(out);
            encryptor.footer(&plain, out)?;
        }
        None => metadata.write(out),
    }
    let len = u32::try_from(out.len() - start)
        .map_err(|_| Error::usage("a footer of more than 4 GiB; write fewer row groups"))?;
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(magic(encryptor));
    Ok(())
}
