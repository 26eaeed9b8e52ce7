//! Parses the footer: the schema, and an index of the column chunks, which are decoded on demand.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::decrypted::DecryptedChunks;
use crate::crypt::{ChunkDecryptor, Decryption, FileDecryptor, Module, Signature};
use crate::encoding::legacy::BitOrder;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::{
    ColumnChunk, ColumnChunkRef, ColumnMetaData, ColumnMetaDataRef, ColumnOrder, CompressionCodec,
    EncryptionAlgorithm, FileCryptoMetaData, FooterIndex, KeyValue,
};
use crate::limits::Limits;
use crate::page::PageContext;
use crate::schema::{Leaf, Schema};
use crate::thrift::{self, Read};

/// The metadata of a file. Cheap to clone.
#[derive(Clone)]
pub struct Footer {
    pub(super) shared: Arc<FooterState>,
}

pub(super) struct FooterState {
    index: FooterIndex,
    schema: Schema,
    quirks: WriterQuirks,
    /// The footer as it is in the file.
    stored: Bytes,
    /// Whether it is encrypted there.
    is_encrypted: bool,
    signature: Signature,
    /// The decrypted metadata of column chunks, if keys were given.
    pub(super) decrypted: Option<DecryptedChunks>,
}

/// A footer whose encryption is known, if it is encrypted; its key is retrieved next.
pub(crate) struct SealedFooter {
    pub(super) stored: Bytes,
    pub(super) body: FooterBody,
    pub(super) file: Option<FileDecryptor>,
}

pub(super) enum FooterBody {
    /// A module, which begins at this byte of the stored footer.
    Encrypted { start: usize },
    /// In plain text, and perhaps signed.
    Plain(Box<FooterIndex>),
}

impl SealedFooter {
    /// The footer in the bytes `stored`, which may be encrypted as its tail states.
    ///
    /// # Errors
    /// `Crypto` if it is encrypted and there are no keys, or not encrypted and there are; or as
    /// [`Footer::parse`].
    pub(crate) fn new(
        stored: Bytes,
        is_encrypted: bool,
        keys: Option<&Decryption>,
    ) -> Result<Self> {
        if is_encrypted {
            let Some(keys) = keys else { return Err(FileDecryptor::needed("the footer")) };
            let mut reader = thrift::ThriftReader::new(&stored);
            let crypto = FileCryptoMetaData::read(&mut reader)?;
            let start = reader.position();
            let key_metadata = crypto.key_metadata;
            let file = FileDecryptor::new(
                keys,
                &crypto.encryption_algorithm,
                key_metadata.as_deref(),
                true,
            )?;
            let body = FooterBody::Encrypted { start };
            return Ok(Self { stored, body, file: Some(file) });
        }
        let index = FooterIndex::parse(stored.clone())?;
        let head = index.head();
        let file = match (keys, &head.encryption_algorithm) {
            (Some(keys), Some(algorithm)) => {
                let key_metadata = head.footer_signing_key_metadata.as_deref();
                Some(FileDecryptor::new(keys, algorithm, key_metadata, false)?)
            }
            (Some(keys), None) => {
                keys.check_plaintext_file()?;
                None
            }
            (None, _) => None,
        };
        Ok(Self { stored, body: FooterBody::Plain(index.into()), file })
    }

    /// Decrypts the footer, or verifies its signature, and parses it.
    ///
    /// # Errors
    /// `Crypto` if the key is missing or wrong, or the footer was changed; or as
    /// [`Footer::parse`].
    pub(crate) fn open(self, limits: &Limits) -> Result<Footer> {
        let Self { stored, body, file } = self;
        let (mut index, is_encrypted, signature) = match (body, &file) {
            (FooterBody::Encrypted { start, .. }, Some(file)) => {
                let plain = file.footer(stored.get(start..).unwrap_or_default())?;
                (FooterIndex::parse(plain.into())?, true, Signature::Encrypted)
            }
            (FooterBody::Encrypted { .. }, None) => {
                return Err(FileDecryptor::needed("the footer"));
            }
            (FooterBody::Plain(index), Some(file)) => {
                let (footer, signature) =
                    stored.split_at_checked(index.byte_len()).ok_or_else(|| {
                        Error::malformed(
                            Spec::Container,
                            "the footer ends beyond the end of its bytes",
                        )
                    })?;
                let signature = file.verify(footer, signature)?;
                (*index, false, signature)
            }
            (FooterBody::Plain(index), None) => {
                let is_signed = index.head().encryption_algorithm.is_some();
                let signature = if is_signed { Signature::Unverified } else { Signature::None };
                (*index, false, signature)
            }
        };
        check_version(index.head().version)?;
        let schema = Schema::from_elements(index.take_schema(), limits)?;
        let quirks = WriterQuirks::parse(index.head().created_by.as_deref().unwrap_or_default());
        let leaves = schema.leaves_len();
        let decrypted =
            file.map(|file| DecryptedChunks::new(file, index.head().row_groups.len(), leaves));
        let shared =
            FooterState { index, schema, quirks, stored, is_encrypted, signature, decrypted };
        Ok(Footer { shared: Arc::new(shared) })
    }
}

/// Refuses versions of the format that are reserved. What a file of 1 or 2 holds does not differ.
fn check_version(version: i32) -> Result<()> {
    if version <= MAX_VERSION {
        return Ok(());
    }
    let text = format_args!(
        "the footer states version {version} of the format, and versions after {MAX_VERSION} are \
         not specified yet"
    );
    Err(Error::unsupported(LATER_VERSIONS, text))
}

/// The name of what is unsupported where a footer states a version that has no meaning yet.
pub(crate) const LATER_VERSIONS: &str = "versions of the format after 2";

/// Versions of the format that have a meaning.
const MAX_VERSION: i32 = 2;

impl Footer {
    /// Parses the thrift bytes of a footer that is not encrypted. Encrypted columns then cannot be
    /// read.
    ///
    /// # Errors
    /// `Malformed` if they are not a FileMetaData with a valid schema.
    pub fn parse(bytes: Bytes, limits: &Limits) -> Result<Self> {
        SealedFooter::new(bytes, false, None)?.open(limits)
    }

    /// Whether the footer is protected, and was verified.
    pub fn signature(&self) -> Signature {
        self.shared.signature
    }

    /// Whether the file uses AES_GCM_CTR_V1, which does not authenticate the bodies of encrypted
    /// pages. For a file whose footer is not encrypted, this is known without keys too.
    pub fn has_unauthenticated_pages(&self) -> bool {
        let stated = &self.index().head().encryption_algorithm;
        matches!(stated, Some(EncryptionAlgorithm::AesGcmCtrV1(_)))
            || self.shared.decrypted.as_ref().is_some_and(|of| of.file().has_ctr_pages())
    }

    /// Whether something of the file is decrypted.
    pub(in crate::read) fn has_keys(&self) -> bool {
        self.shared.decrypted.is_some()
    }

    /// Whether the whole footer is encrypted in the file.
    pub fn is_encrypted(&self) -> bool {
        self.shared.is_encrypted
    }

    /// The order of the bounds of a leaf, if the footer has one for every leaf.
    pub(crate) fn column_order(&self, leaf: usize) -> Option<&ColumnOrder> {
        let orders = self.index().head().column_orders.as_ref()?;
        // A list that is shorter than the leaves is none.
        (orders.len() >= self.schema().leaves_len()).then(|| orders.get(leaf)).flatten()
    }

    /// The statistics of a leaf with those bounds only that filters go by, in `min_value` and
    /// `max_value`: their order is defined, and the footer states it. The deprecated bounds are of
    /// the order of numbers with a sign.
    #[cfg(feature = "engine")]
    pub fn trusted_bounds(
        &self,
        leaf: &Leaf,
        statistics: &crate::format::Statistics,
    ) -> crate::format::Statistics {
        crate::predicate::with_trusted_bounds(leaf, self.column_order(leaf.index), statistics)
    }

    /// Whether filters go by the bounds of a leaf in column indexes.
    #[cfg(feature = "engine")]
    pub fn trusts_page_bounds(&self, leaf: &Leaf) -> bool {
        crate::predicate::trusts_page_bounds(leaf, self.column_order(leaf.index))
    }

    /// Whether the metadata prove a leaf to be null in all rows.
    pub(in crate::read) fn is_all_null(&self, leaf: usize) -> bool {
        (0..self.row_groups()).all(|row_group| {
            let meta = self.column_chunk(row_group, leaf).ok().and_then(|chunk| chunk.meta_data);
            meta.is_some_and(|meta| {
                let nulls = meta.statistics.as_ref().and_then(|statistics| statistics.null_count);
                nulls == Some(meta.num_values)
            })
        })
    }

    /// The Parquet schema.
    pub fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    /// The thrift metadata; column chunks are decoded on demand.
    pub fn index(&self) -> &FooterIndex {
        &self.shared.index
    }

    /// The metadata before an encrypted footer; `None` if the footer is not encrypted.
    pub fn crypto_metadata(&self) -> Option<FileCryptoMetaData> {
        let stored = &self.shared.stored;
        // It was read before the footer was decrypted.
        let read = || FileCryptoMetaData::read(&mut thrift::ThriftReader::new(stored)).ok();
        self.is_encrypted().then(read).flatten()
    }

    /// The name and the version of the program that wrote the file, as the file states them.
    ///
    /// ```
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// assert_eq!(reader.metadata().created_by(), Some("parquet-cpp-arrow version 26.0.1"));
    /// # Ok::<(), marquetry::Error>(())
    /// ```
    pub fn created_by(&self) -> Option<&str> {
        self.shared.index.head().created_by.as_deref()
    }

    /// Key-value metadata of the file, in the order written.
    pub fn key_values(&self) -> &[KeyValue] {
        self.shared.index.head().key_value_metadata.as_deref().unwrap_or_default()
    }

    /// Number of row groups.
    pub fn row_groups(&self) -> usize {
        self.shared.index.head().row_groups.len()
    }

    /// Number of rows of a row group.
    ///
    /// # Errors
    /// `Usage` if there is no such row group, `Malformed` if it states a negative number.
    pub fn row_group_rows(&self, row_group: usize) -> Result<u64> {
        let group = self.shared.index.head().row_groups.get(row_group).ok_or_else(|| {
            Error::usage(format_args!(
                "row group {row_group} of {}: the file has no such",
                self.row_groups()
            ))
        })?;
        u64::try_from(group.num_rows).map_err(|_| {
            Error::mismatch(Spec::Metadata("RowGroup"), "num_rows", "not negative", group.num_rows)
                .at_row_group(row_group)
        })
    }

    /// Number of rows of the file: the sum over its row groups, because the number in the footer is
    /// wrong in some old files.
    ///
    /// # Errors
    /// `Malformed` if a row group states a negative number, or the sum overflows.
    pub fn rows(&self) -> Result<u64> {
        (0..self.row_groups()).try_fold(0u64, |sum, i| {
            sum.checked_add(self.row_group_rows(i)?).ok_or_else(|| {
                Error::malformed(
                    Spec::Metadata("RowGroup"),
                    "the rows of the row groups overflow 64 bits",
                )
            })
        })
    }

    /// Decodes the metadata of a column chunk. If the chunk is encrypted and its key was not found,
    /// `meta_data` is only what can be read without it: no statistics, or nothing.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Crypto` if they
    /// are not authentic.
    pub fn column_chunk(&self, row_group: usize, leaf: usize) -> Result<ColumnChunk> {
        let read = || {
            let mut chunk = self.shared.index.column_chunk(row_group, leaf)?;
            if self.shared.decrypted.is_some() && chunk.encrypted_column_metadata.is_some() {
                let found = self.shared.index.column_chunk_ref(row_group, leaf)?;
                if let Some(bytes) = self.decrypted_metadata(row_group, leaf, &found)? {
                    chunk.meta_data =
                        Some(ColumnMetaData::read(&mut thrift::ThriftReader::new(bytes))?);
                }
            }
            Ok(chunk)
        };
        read().map_err(|e: Error| e.at_row_group(row_group))
    }

    /// As [`Footer::column_chunk`], without copying: nothing is allocated.
    ///
    /// # Errors
    /// As [`Footer::column_chunk`].
    #[inline]
    pub(crate) fn column_chunk_ref(
        &self,
        row_group: usize,
        leaf: usize,
    ) -> Result<ColumnChunkRef<'_>> {
        let read = || {
            let chunk = self.shared.index.column_chunk_ref(row_group, leaf)?;
            self.with_decrypted_metadata(row_group, leaf, chunk)
        };
        read().map_err(|e: Error| e.at_row_group(row_group))
    }

    fn with_decrypted_metadata<'a>(
        &'a self,
        row_group: usize,
        leaf: usize,
        mut chunk: ColumnChunkRef<'a>,
    ) -> Result<ColumnChunkRef<'a>> {
        if self.shared.decrypted.is_some()
            && let Some(bytes) = self.decrypted_metadata(row_group, leaf, &chunk)?
        {
            let meta = ColumnMetaDataRef::read(&mut thrift::ThriftReader::new(bytes))?;
            chunk.meta_data = Some(meta);
        }
        Ok(chunk)
    }

    /// The bytes of the footer, decrypted if it is encrypted.
    #[cfg_attr(not(feature = "inspect"), allow(dead_code))]
    pub(crate) fn plain_bytes(&self) -> Bytes {
        self.index().bytes().clone()
    }

    /// The metadata of an encrypted column chunk; `None` if they are not encrypted apart, or the
    /// key was not found.
    fn decrypted_metadata(
        &self,
        row_group: usize,
        leaf: usize,
        chunk: &ColumnChunkRef<'_>,
    ) -> Result<Option<&[u8]>> {
        let (Some(decrypted), Some(module)) =
            (&self.shared.decrypted, chunk.encrypted_column_metadata)
        else {
            return Ok(None);
        };
        decrypted.metadata(row_group, leaf, || {
            match self.chunk_decryptor(row_group, leaf, chunk) {
                Ok(Some(opener)) => opener.open(Module::ColumnMetaData, module).map(Some),
                Ok(None) => Ok(None),
                // The column cannot be read; others can.
                Err(e) if e.kind() == ErrorKind::Crypto => Ok(None),
                Err(e) => Err(e),
            }
        })
    }

    /// Whether the pages of a column chunk can be read: they are in plain text, or their key was
    /// found.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Crypto` if they
    /// are not authentic.
    pub fn is_readable(&self, row_group: usize, leaf: usize) -> Result<bool> {
        let chunk = self.shared.index.column_chunk_ref(row_group, leaf)?;
        match self.chunk_decryptor(row_group, leaf, &chunk) {
            Ok(_) => self.column_chunk(row_group, leaf).map(|_| true),
            Err(e) if e.kind() == ErrorKind::Crypto => Ok(false),
            Err(e) => Err(e.at_row_group(row_group)),
        }
    }

    /// The decryptor of the modules of a column chunk; `None` if it is not encrypted.
    ///
    /// # Errors
    /// `Crypto` if the key is not given, not found or denied.
    pub(crate) fn chunk_decryptor(
        &self,
        row_group: usize,
        leaf: usize,
        chunk: &ColumnChunkRef<'_>,
    ) -> Result<Option<ChunkDecryptor>> {
        if !chunk.is_encrypted() {
            return match &self.shared.decrypted {
                Some(decrypted) => {
                    let path = self.schema().leaf(leaf)?.path;
                    decrypted.file().check_plaintext_column(&path).map(|()| None)
                }
                None => Ok(None),
            };
        }
        let path = self.schema().leaf(leaf)?.path;
        let Some(decrypted) = &self.shared.decrypted else {
            return Err(FileDecryptor::needed(&format!("the column {}", path.dotted())));
        };
        let crypto = chunk.crypto_metadata.map(|held| held.get()).ok_or_else(|| {
            Error::malformed(
                Spec::Encryption,
                "the metadata of the chunk are encrypted, and nothing says with which key",
            )
        })?;
        let file = decrypted.file();
        if file.has_encrypted_metadata(&crypto) && chunk.encrypted_column_metadata.is_none() {
            return Err(Error::malformed(
                Spec::Encryption,
                "the chunk is encrypted, and its metadata are not",
            ));
        }
        let key = file.column_key(&path, &crypto)?;
        file.chunk(key, row_group, leaf).map(Some)
    }

    /// An index of an encrypted column chunk, which is stored as `module`.
    ///
    /// # Errors
    /// As [`Footer::chunk_decryptor`]; `Crypto` if it is not authentic.
    pub(super) fn decrypted_index(
        &self,
        row_group: usize,
        leaf: usize,
        kind: Module,
        module: &[u8],
    ) -> Result<&[u8]> {
        let chunk = self.shared.index.column_chunk_ref(row_group, leaf)?;
        let opener = self.chunk_decryptor(row_group, leaf, &chunk)?;
        match (&self.shared.decrypted, opener) {
            (Some(decrypted), Some(opener)) => {
                decrypted.index(row_group, leaf, kind, || opener.open(kind, module))
            }
            _ => Err(Error::internal("an index that is not encrypted needs not be decrypted")),
        }
    }

    /// Decodes the metadata of all column chunks of a row group, one after the other and without
    /// copying: the fast way to visit all of a wide file.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// for row_group in 0..reader.metadata().row_groups() {
    ///     for chunk in reader.metadata().column_chunks(row_group)? {
    ///         let Some(meta) = chunk?.meta_data else { continue };
    ///         println!("{:?}: {} bytes", meta.path_in_schema, meta.total_compressed_size);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such row group. A chunk whose metadata are broken is an error in its
    /// place.
    pub fn column_chunks(
        &self,
        row_group: usize,
    ) -> Result<impl Iterator<Item = Result<ColumnChunkRef<'_>>>> {
        let chunks = self.shared.index.column_chunks(row_group);
        let mut chunks = chunks.map_err(|e| e.at_row_group(row_group))?;
        let mut leaf = 0;
        Ok(std::iter::from_fn(move || {
            // Returned where it is: a file has many, and a move costs as much as reading one.
            if self.shared.decrypted.is_none() {
                return chunks.next();
            }
            let chunk = chunks.next()?;
            leaf += 1;
            Some(chunk.and_then(|chunk| self.with_decrypted_metadata(row_group, leaf - 1, chunk)))
        }))
    }

    /// Bytes of memory that it holds, about; clones share them.
    pub(crate) fn heap_bytes(&self) -> usize {
        let FooterState { index, schema, stored, decrypted, .. } = &*self.shared;
        let beside = if self.is_encrypted() { stored.len() } else { 0 };
        let decrypted = decrypted.as_ref().map_or(0, DecryptedChunks::heap_bytes);
        size_of::<FooterState>() + index.heap_bytes() + schema.heap_bytes() + beside + decrypted
    }

    /// Bytes of the footer in the file, and of its signature, if it has one.
    pub(super) fn byte_len(&self) -> usize {
        self.stored_bytes().len()
    }

    /// The footer as it is in the file: encrypted, or in plain text with its signature.
    pub(super) fn stored_bytes(&self) -> &[u8] {
        let FooterState { index, stored, is_encrypted, signature, .. } = &*self.shared;
        let len = match (is_encrypted, signature) {
            // After a footer without signature, there may be anything.
            (false, Signature::None) => index.byte_len(),
            _ => stored.len(),
        };
        stored.get(..len).unwrap_or_default()
    }

    /// Bytes of the footer as its length says.
    #[cfg(feature = "check")]
    pub(crate) fn stored_len(&self) -> usize {
        self.shared.stored.len()
    }

    /// Whether the writer left the header of the dictionary page out of the sizes of chunks.
    #[cfg(feature = "check")]
    pub(crate) fn has_short_chunks(&self) -> bool {
        self.quirks().short_chunks
    }

    /// Whether a page may refer to the last value of the page before it (PARQUET-246).
    #[cfg(feature = "check")]
    pub(crate) fn carries_prefix(&self) -> bool {
        self.quirks().carries_prefix
    }

    /// The footer as it is in the file, and what follows it there.
    #[cfg_attr(not(feature = "inspect"), allow(dead_code))]
    pub(crate) fn stored(&self) -> Bytes {
        self.shared.stored.clone()
    }

    pub(crate) fn quirks(&self) -> WriterQuirks {
        self.shared.quirks
    }

    /// The context in which the pages of a leaf are opened, without keys.
    pub(crate) fn page_context(
        &self,
        leaf: &Leaf,
        codec: CompressionCodec,
        limits: &Limits,
    ) -> PageContext {
        let quirks = self.quirks();
        let mut context = PageContext::new(leaf, codec, limits);
        context.ignore_is_compressed = quirks.ignores_is_compressed;
        context.bit_order = quirks.bit_order;
        context
    }
}

impl fmt::Debug for Footer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Footer")
            .field("leaves", &self.schema().leaves_len())
            .field("row_groups", &self.row_groups())
            .field("created_by", &self.shared.index.head().created_by)
            .finish()
    }
}

/// Faults of the writer of a file that are read past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WriterQuirks {
    /// Arrow C++ before 3.0 (`parquet-cpp` before 2.0.0): V2 pages state `is_compressed = false`
    /// for compressed values.
    pub(super) ignores_is_compressed: bool,
    /// parquet-mr before 1.8.0 (PARQUET-246): a DELTA_BYTE_ARRAY page begins with a prefix of the
    /// previous page's last value.
    pub(super) carries_prefix: bool,
    /// Impala packs BIT_PACKED levels from the least significant bit
    /// (testdata/bit_packed_levels_impala.parquet).
    pub(super) bit_order: BitOrder,
    /// parquet-mr up to 1.2.8 (PARQUET-816), and one that names no version: total_compressed_size
    /// leaves out the header of the dictionary page.
    pub(super) short_chunks: bool,
    /// DuckDB writes further entries for an ARRAY that is null
    /// (testdata/duckdb_arrays.parquet). Pages that were copied from its files into ours have them,
    /// too.
    pub(super) pads_null_arrays: bool,
}

impl WriterQuirks {
    /// Whether pages that are copied into a file of another writer would be read wrongly.
    pub(crate) fn bind_pages(self) -> bool {
        Self { pads_null_arrays: false, ..self } != Self::default()
    }

    /// Reads `application version X.Y.Z (build HASH)`, as leniently as the field is written.
    fn parse(created_by: &str) -> Self {
        let mut words = created_by.split_whitespace();
        let application = words.next().unwrap_or_default();
        let version = words.skip_while(|word| *word != "version").nth(1);
        let mut numbers = version
            .unwrap_or("0")
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
        let mut number = || numbers.next().unwrap_or_default();
        let version = (number(), number(), number());
        Self {
            ignores_is_compressed: application == "parquet-cpp" && version < (2, 0, 0),
            carries_prefix: application == "parquet-mr" && version < (1, 8, 0),
            bit_order: if application == "impala" {
                BitOrder::LeastSignificantFirst
            } else {
                BitOrder::MostSignificantFirst
            },
            short_chunks: application == "parquet-mr" && version <= (1, 2, 8),
            pads_null_arrays: matches!(application, "DuckDB" | "marquetry"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_with_known_faults_are_told_from_their_heirs() {
        let old_cpp = WriterQuirks::parse("parquet-cpp version 1.5.1-SNAPSHOT");
        assert!(old_cpp.ignores_is_compressed);
        assert!(!WriterQuirks::parse("parquet-cpp-arrow version 2.0.0").ignores_is_compressed);
        let old_mr = WriterQuirks::parse("parquet-mr version 1.2.8 (build abc)");
        assert!(old_mr.carries_prefix && old_mr.short_chunks);
        let unversioned = WriterQuirks::parse("parquet-mr");
        assert!(unversioned.carries_prefix && unversioned.short_chunks);
        let newer_mr = WriterQuirks::parse("parquet-mr version 1.8.0 (build abc)");
        assert!(!newer_mr.carries_prefix && !newer_mr.short_chunks);
        for heir in ["DuckDB version v2.0.0 (build d54cbbe3df)", "marquetry version 0.1.0"] {
            let quirks = WriterQuirks::parse(heir);
            assert!(quirks.pads_null_arrays && !quirks.bind_pages(), "{heir}");
        }
        assert!(old_cpp.bind_pages() && !newer_mr.bind_pages());
        for text in ["", "parquet-mr", "version", "parquet-mr version", "parquet-cpp version x.y"] {
            WriterQuirks::parse(text);
        }
    }
}
