//! Builds the end of a file: indexes, bloom filters, the footer, the tail.

use bytes::Bytes;

use super::encrypt;
use crate::crypt::{ChunkEncryptor, FileEncryptor, Module};
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, ColumnIndex, FileMetaData, OffsetIndex, RowGroup, tail};
use crate::memory;
use crate::schema::Leaf;
use crate::thrift::Write;

/// Appends the bloom filter and the indexes of chunks, and stores their places in the chunks.
pub(crate) struct IndexWriter<'a> {
    /// Where `out` begins in the file.
    offset: u64,
    /// An index in plain text.
    plain: Vec<u8>,
    out: &'a mut Vec<u8>,
}

impl<'a> IndexWriter<'a> {
    pub(crate) fn new(offset: u64, out: &'a mut Vec<u8>) -> Self {
        Self { offset, plain: Vec::new(), out }
    }

    fn here(&self) -> Result<i64> {
        i64::try_from(self.offset + self.out.len() as u64)
            .map_err(|_| Error::usage("a file beyond 2^63 bytes"))
    }

    fn len_since(&self, start: i64) -> Result<i32> {
        i32::try_from(self.here()? - start).map_err(|_| Error::usage("an index of more than 2 GiB"))
    }

    /// A bloom filter, with its header.
    pub(crate) fn bloom(
        &mut self,
        chunk: &mut ColumnChunk,
        filter: &[u8],
        encryptor: Option<&ChunkEncryptor>,
    ) -> Result<()> {
        let Some(meta) = &mut chunk.meta_data else { return Ok(()) };
        let start = self.here()?;
        match encryptor {
            Some(encryptor) => encrypt::bloom(filter, encryptor, self.out)?,
            None => memory::append(self.out, filter)?,
        }
        meta.bloom_filter_offset = Some(start);
        meta.bloom_filter_length = Some(self.len_since(start)?);
        Ok(())
    }

    /// A column index.
    pub(crate) fn column_index(
        &mut self,
        chunk: &mut ColumnChunk,
        index: &ColumnIndex,
        encryptor: Option<&ChunkEncryptor>,
    ) -> Result<()> {
        let start = self.here()?;
        self.index(index, Module::ColumnIndex, encryptor)?;
        chunk.column_index_offset = Some(start);
        chunk.column_index_length = Some(self.len_since(start)?);
        Ok(())
    }

    /// An offset index.
    pub(crate) fn offset_index(
        &mut self,
        chunk: &mut ColumnChunk,
        index: &OffsetIndex,
        encryptor: Option<&ChunkEncryptor>,
    ) -> Result<()> {
        let start = self.here()?;
        self.index(index, Module::OffsetIndex, encryptor)?;
        chunk.offset_index_offset = Some(start);
        chunk.offset_index_length = Some(self.len_since(start)?);
        Ok(())
    }

    fn index(
        &mut self,
        index: &impl Write,
        module: Module,
        encryptor: Option<&ChunkEncryptor>,
    ) -> Result<()> {
        let Some(encryptor) = encryptor else {
            return index.write(self.out);
        };
        self.plain.clear();
        index.write(&mut self.plain)?;
        encryptor.seal(module, &self.plain, self.out)
    }
}

/// The magic number at both ends of the file.
pub(crate) fn magic(encryptor: Option<&FileEncryptor>) -> &'static [u8; 4] {
    match encryptor {
        Some(encryptor) if !encryptor.has_plaintext_footer() => &tail::MAGIC_ENCRYPTED,
        _ => &tail::MAGIC,
    }
}

/// Has each chunk of a row group state its path in the schema, or not.
pub(crate) fn state_paths(row_group: &mut RowGroup, leaves: &[Leaf], is_stated: bool) {
    for (chunk, leaf) in row_group.columns.iter_mut().zip(leaves) {
        let Some(meta) = &mut chunk.meta_data else { continue };
        match is_stated {
            true if meta.path_in_schema.is_empty() => {
                let names = leaf.path.names().iter();
                meta.path_in_schema = names.map(|name| name.to_string()).collect();
            }
            true => {}
            false => meta.path_in_schema = Vec::new(),
        }
    }
}

/// Appends footer and tail, protected by the encryptor.
///
/// # Errors
/// As [`plain_footer`] and [`protected_footer`].
pub(crate) fn footer(
    mut metadata: FileMetaData,
    leaves: &[Leaf],
    encryptor: Option<&FileEncryptor>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let row_groups = std::mem::take(&mut metadata.row_groups).into_iter().map(Ok);
    let plain = plain_footer(metadata, row_groups, leaves, encryptor)?;
    for bytes in protected_footer(plain.into(), encryptor)? {
        memory::append(out, &bytes)?;
    }
    Ok(())
}

/// The FileMetaData of these row groups, whose encrypted columns are encrypted, but which is not
/// itself.
///
/// # Errors
/// That of a row group; `Crypto` if a key was used too often, or the generator of the operating
/// system fails.
pub(super) fn plain_footer(
    mut metadata: FileMetaData,
    row_groups: impl ExactSizeIterator<Item = Result<RowGroup>>,
    leaves: &[Leaf],
    encryptor: Option<&FileEncryptor>,
) -> Result<Vec<u8>> {
    metadata.encryption_algorithm = None;
    metadata.footer_signing_key_metadata = None;
    if let Some(encryptor) = encryptor.filter(|encryptor| encryptor.has_plaintext_footer()) {
        metadata.encryption_algorithm = Some(encryptor.algorithm());
        metadata.footer_signing_key_metadata = encryptor.footer_key_metadata().cloned();
    }
    let row_groups = row_groups.enumerate().map(|(i, row_group)| {
        let mut row_group = row_group?;
        if let Some(encryptor) = encryptor {
            for (chunk, leaf) in row_group.columns.iter_mut().zip(leaves) {
                encrypt::column_metadata(chunk, i, leaf, encryptor)?;
            }
        }
        Ok(row_group)
    });
    let mut plain = Vec::new();
    metadata.write_with(row_groups, &mut plain)?;
    Ok(plain)
}

/// The bytes of a footer and the tail, protected by the encryptor.
///
/// # Errors
/// `Usage` if the footer is too large; `Crypto` as [`plain_footer`].
pub(super) fn protected_footer(
    plain: Bytes,
    encryptor: Option<&FileEncryptor>,
) -> Result<[Bytes; 3]> {
    let [mut before, mut after] = [Vec::new(), Vec::new()];
    let plain = match encryptor {
        Some(encryptor) if encryptor.has_plaintext_footer() => {
            encryptor.sign(&plain, &mut after)?;
            plain
        }
        Some(encryptor) => {
            encryptor.crypto_metadata().write(&mut before)?;
            encryptor.footer(&plain, &mut after)?;
            Bytes::new()
        }
        None => plain,
    };
    let len = u32::try_from(before.len() + plain.len() + after.len())
        .map_err(|_| Error::usage("a footer of more than 4 GiB; write fewer row groups"))?;
    memory::append(&mut after, &len.to_le_bytes())?;
    memory::append(&mut after, magic(encryptor))?;
    Ok([before.into(), plain, after.into()])
}

/// Builds a `_metadata` summary: a file of only a footer, with the row groups of several files,
/// given by their footers and their paths relative to the summary, with `/` between names.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Reader, write::summary};
///
/// let metadata = Reader::open("testdata/trips.parquet")?.metadata().index().to_file_meta_data()?;
/// let bytes = summary([("2026/trips.parquet", &metadata), ("2027/trips.parquet", &metadata)])?;
/// assert_eq!(Reader::new(bytes::Bytes::from(bytes))?.rows()?, 2_000);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` if there is no file, or their schemas differ; `Unsupported` if a column is encrypted.
pub fn summary<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a FileMetaData)>,
) -> Result<Vec<u8>> {
    let mut joined: Option<FileMetaData> = None;
    for (path, metadata) in files {
        let joined = joined.get_or_insert_with(|| FileMetaData {
            num_rows: 0,
            row_groups: Vec::new(),
            ..metadata.clone()
        });
        if joined.schema != metadata.schema || joined.column_orders != metadata.column_orders {
            let what = "a summary is of files of one schema, and this one has another";
            return Err(Error::usage(what).at_file(path));
        }
        joined.num_rows = joined.num_rows.saturating_add(metadata.num_rows);
        for row_group in &metadata.row_groups {
            let mut row_group = row_group.clone();
            // The ordinal in the joined file; row groups beyond the range of the format have none.
            row_group.ordinal = i16::try_from(joined.row_groups.len()).ok();
            for chunk in &mut row_group.columns {
                if chunk.crypto_metadata.is_some() {
                    let what = "a summary of encrypted files";
                    return Err(Error::unsupported(what, "a column is encrypted").at_file(path));
                }
                chunk.file_path = Some(path.to_owned());
            }
            joined.row_groups.push(row_group);
        }
    }
    let Some(joined) = joined else {
        return Err(Error::usage("a summary of no files has no schema"));
    };
    let mut out = magic(None).to_vec();
    footer(joined, &[], None, &mut out)?;
    Ok(out)
}
