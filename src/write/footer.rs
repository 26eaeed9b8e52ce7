//! Builds the end of a file: indexes, bloom filters, the footer, the tail.

use super::column::EncodedChunk;
use super::encrypt;
use crate::crypt::{ChunkEncryptor, FileEncryptor, Module};
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, ColumnIndex, FileMetaData, OffsetIndex, RowGroup, tail};
use crate::memory;
use crate::schema::Leaf;
use crate::thrift::Write;

/// The indexes and the bloom filter of a chunk, until the end of the file is written.
pub(super) struct Indexes {
    offset_index: OffsetIndex,
    column_index: Option<ColumnIndex>,
    bloom: Option<Vec<u8>>,
}

impl Indexes {
    /// Takes those of a chunk whose offsets already count from the start of the file.
    pub(super) fn take_from(chunk: &mut EncodedChunk) -> Self {
        Self {
            offset_index: std::mem::take(&mut chunk.offset_index),
            column_index: chunk.column_index.take(),
            bloom: chunk.bloom.take(),
        }
    }

    /// Bytes of memory held, about.
    pub(super) fn bytes_held(&self) -> usize {
        let bounds = self.column_index.as_ref().map_or(0, |index| {
            index.min_values.iter().chain(&index.max_values).map(|b| b.len() + 24).sum()
        });
        self.offset_index.page_locations.len() * 24
            + bounds
            + self.bloom.as_ref().map_or(0, Vec::len)
    }
}

/// Appends the bloom filters and the page index of all row groups, which begin at `offset` of the
/// file, and stores their places in the chunks. Those of encrypted chunks are encrypted.
///
/// Filters come first: a reader that fetches the end of a file gets the indexes and the footer in
/// one piece.
pub(super) fn indexes(
    row_groups: &mut [RowGroup],
    indexes: &[Vec<Indexes>],
    offset: u64,
    encryptor: Option<&FileEncryptor>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let each = |row_groups: &mut [RowGroup], visit: &mut Visit<'_>| -> Result<()> {
        for (i, (row_group, indexes)) in row_groups.iter_mut().zip(indexes).enumerate() {
            for (leaf, (chunk, index)) in row_group.columns.iter_mut().zip(indexes).enumerate() {
                let encryptor = encryptor.map(|file| file.chunk(i, leaf)).transpose()?.flatten();
                visit(chunk, index, encryptor.as_ref())?;
            }
        }
        Ok(())
    };
    let mut to = IndexWriter { offset, plain: Vec::new(), out };
    each(row_groups, &mut |chunk, index, encryptor| match &index.bloom {
        Some(bloom) => to.bloom(chunk, bloom, encryptor),
        None => Ok(()),
    })?;
    each(row_groups, &mut |chunk, index, encryptor| match &index.column_index {
        Some(column_index) => to.column_index(chunk, column_index, encryptor),
        None => Ok(()),
    })?;
    each(row_groups, &mut |chunk, index, encryptor| {
        to.offset_index(chunk, &index.offset_index, encryptor)
    })
}

/// Appends the bloom filter and the indexes of chunks, and stores their places in the chunks.
pub(crate) struct IndexWriter<'a> {
    /// Where `out` begins in the file.
    pub(crate) offset: u64,
    /// An index in plain text.
    pub(crate) plain: Vec<u8>,
    pub(crate) out: &'a mut Vec<u8>,
}

impl IndexWriter<'_> {
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

/// An action on a chunk, its indexes, and their encryptor.
type Visit<'a> = dyn FnMut(&mut ColumnChunk, &Indexes, Option<&ChunkEncryptor>) -> Result<()> + 'a;

/// The magic number at both ends of the file.
pub(crate) fn magic(encryptor: Option<&FileEncryptor>) -> &'static [u8; 4] {
    match encryptor {
        Some(encryptor) if !encryptor.has_plaintext_footer() => &tail::MAGIC_ENCRYPTED,
        _ => &tail::MAGIC,
    }
}

/// Has each chunk state its path in the schema, or not.
pub(crate) fn state_paths(metadata: &mut FileMetaData, leaves: &[Leaf], is_stated: bool) {
    for row_group in &mut metadata.row_groups {
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
}

/// Appends footer and tail, protected by the encryptor.
///
/// # Errors
/// `Crypto` if a key was used too often, or the generator of the operating system fails; `Usage` if
/// the footer is too large.
pub(crate) fn footer(
    metadata: &mut FileMetaData,
    leaves: &[Leaf],
    encryptor: Option<&FileEncryptor>,
    out: &mut Vec<u8>,
) -> Result<()> {
    protect(metadata, leaves, encryptor)?;
    let start = out.len();
    match encryptor {
        Some(encryptor) if encryptor.has_plaintext_footer() => {
            let mut plain = Vec::new();
            metadata.write(&mut plain)?;
            memory::append(out, &plain)?;
            encryptor.sign(&plain, out)?;
        }
        Some(encryptor) => {
            let mut plain = Vec::new();
            metadata.write(&mut plain)?;
            encryptor.crypto_metadata().write(out)?;
            encryptor.footer(&plain, out)?;
        }
        None => metadata.write(out)?,
    }
    let len = u32::try_from(out.len() - start)
        .map_err(|_| Error::usage("a footer of more than 4 GiB; write fewer row groups"))?;
    memory::append(out, &len.to_le_bytes())?;
    memory::append(out, magic(encryptor))
}

/// Encrypts the metadata of the chunks that are encrypted, and states in the footer how.
fn protect(
    metadata: &mut FileMetaData,
    leaves: &[Leaf],
    encryptor: Option<&FileEncryptor>,
) -> Result<()> {
    metadata.encryption_algorithm = None;
    metadata.footer_signing_key_metadata = None;
    let Some(encryptor) = encryptor else { return Ok(()) };
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
    let Some(mut joined) = joined else {
        return Err(Error::usage("a summary of no files has no schema"));
    };
    let mut out = magic(None).to_vec();
    footer(&mut joined, &[], None, &mut out)?;
    Ok(out)
}
