//! [`FileAssembler`] assembles the bytes of a file from encoded row groups, in the order of the
//! file.
//!
//! ```text
//! magic | row groups: pages, chunk by chunk | bloom filters | column and offset indexes | footer
//! ```
//!
//! Spec: README.md, "File format"; Encryption.md. It decides where everything is in the file, and
//! does not know where the file is: its caller writes each piece after those before it.

use bytes::Bytes;

use super::column::EncodedChunk;
use super::encrypt::RowGroupEncryption;
use super::footer::{Indexes, footer, indexes, magic, state_paths};
use super::layout::FileLayout;
use super::report::{ColumnReport, RowGroupReport, WriteReport};
use super::row_group::EncodedRowGroup;
use crate::crypt::FileEncryptor;
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, RowGroup, SortingColumn};
use crate::memory;

/// A file as far as it is assembled: its length, and the metadata of the bytes so far.
#[derive(Default)]
pub(crate) struct FileAssembler {
    /// The encryptor of this file only. It is made when the first row group is encoded.
    encryptor: Option<FileEncryptor>,
    len: u64,
    row_groups: Vec<RowGroup>,
    indexes: Vec<Vec<Indexes>>,
    reports: Vec<RowGroupReport>,
    /// The row group whose last chunks are not there yet.
    open: Option<OpenRowGroup>,
}

impl FileAssembler {
    /// Bytes assembled so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Row groups assembled so far.
    pub(crate) fn row_groups(&self) -> usize {
        self.row_groups.len()
    }

    /// Bytes of memory that the indexes of the row groups take until the end of the file.
    pub(crate) fn index_bytes(&self) -> usize {
        let open = self.open.iter().flat_map(|open| &open.indexes);
        self.indexes.iter().flatten().chain(open).map(Indexes::bytes_held).sum()
    }

    /// The encryption of row group `row_group` of this file; `None` if nothing is encrypted.
    ///
    /// # Errors
    /// `Crypto` if the generator of the operating system fails.
    pub(crate) fn encryption(
        &mut self,
        layout: &FileLayout,
        row_group: usize,
    ) -> Result<Option<RowGroupEncryption>> {
        let options = &layout.options;
        if let (None, Some(encryption), Some(protections)) =
            (&self.encryptor, &options.encryption, &layout.row_groups.protections)
        {
            self.encryptor = Some(FileEncryptor::new(encryption, protections)?);
        }
        Ok(self.encryptor.as_ref().map(|file| RowGroupEncryption {
            file: file.clone(),
            row_group,
            checksums: options.checksums,
        }))
    }

    /// The bytes of the next row group, or of the next chunks of one, and of what goes before the
    /// first one.
    ///
    /// # Errors
    /// `Usage` if the file becomes too large for the format; as [`RowGroupEncryption::encrypt`].
    pub(crate) fn row_group(
        &mut self,
        layout: &FileLayout,
        mut row_group: EncodedRowGroup,
    ) -> Result<Vec<Bytes>> {
        let ordinal = self.row_groups.len();
        let encryption = self.encryption(layout, ordinal)?;
        let mut out = self.start();
        let open = self.open.get_or_insert_with(|| OpenRowGroup::new(row_group.rows, self.len));
        if let Some(encryption) = encryption {
            for (leaf, chunk) in (open.columns.len()..).zip(&mut row_group.chunks) {
                encryption.encrypt(leaf, chunk)?;
            }
        }
        for mut chunk in row_group.chunks {
            self.len += open.place(&mut chunk, self.len)?;
            memory::push(&mut open.indexes, Indexes::take_from(&mut chunk))?;
            memory::extend(&mut out, std::mem::take(&mut chunk.bytes))?;
        }
        if open.columns.len() == layout.row_groups.leaves.len()
            && let Some(open) = self.open.take()
        {
            let (placed, report, indexes) = open.end(ordinal, row_group.sorting)?;
            memory::push(&mut self.indexes, indexes)?;
            memory::push(&mut self.row_groups, placed)?;
            memory::push(&mut self.reports, report)?;
        }
        Ok(out)
    }

    /// The bytes of the end of the file, and what the file holds.
    ///
    /// # Errors
    /// `Usage` if the file becomes too large for the format, `Crypto` if a key was used too often.
    pub(crate) fn end(mut self, layout: &FileLayout) -> Result<(Vec<Bytes>, WriteReport)> {
        self.encryption(layout, self.row_groups.len())?;
        let mut out = self.start();
        let (encryptor, mut end) = (self.encryptor.as_ref(), Vec::new());
        indexes(&mut self.row_groups, &self.indexes, self.len, encryptor, &mut end)?;
        let rows = self.reports.iter().map(|row_group| row_group.rows).sum();
        let mut metadata = layout.metadata(rows, self.row_groups)?;
        state_paths(&mut metadata, &layout.row_groups.leaves, layout.options.path_in_schema);
        footer(&mut metadata, &layout.row_groups.leaves, encryptor, &mut end)?;
        let bytes = self.len + end.len() as u64;
        out.push(end.into());
        let (row_groups, shapes) = (self.reports, layout.shapes());
        Ok((out, WriteReport { rows, bytes, row_groups, metadata, shapes }))
    }

    /// A file of only a footer, which describes the row groups so far without their indexes, and is
    /// encrypted or signed as that of the file.
    ///
    /// # Errors
    /// `Usage` if the footer becomes too large for the format, `Crypto` if a key was used too
    /// often.
    pub(crate) fn side_footer(&self, layout: &FileLayout) -> Result<Bytes> {
        let rows = self.reports.iter().map(|row_group| row_group.rows).sum();
        let mut metadata = layout.metadata(rows, memory::cloned(&self.row_groups)?)?;
        state_paths(&mut metadata, &layout.row_groups.leaves, layout.options.path_in_schema);
        let encryptor = self.encryptor.as_ref();
        let mut out = magic(encryptor).to_vec();
        footer(&mut metadata, &layout.row_groups.leaves, encryptor, &mut out)?;
        Ok(out.into())
    }

    /// The magic number, which comes before everything else.
    fn start(&mut self) -> Vec<Bytes> {
        if self.len > 0 {
            return Vec::new();
        }
        let magic = magic(self.encryptor.as_ref());
        self.len = magic.len() as u64;
        vec![Bytes::from_static(magic)]
    }
}

/// A row group as far as its chunks have a place in the file.
struct OpenRowGroup {
    rows: usize,
    /// Where it begins in the file.
    offset: u64,
    columns: Vec<ColumnChunk>,
    reports: Vec<ColumnReport>,
    indexes: Vec<Indexes>,
    uncompressed: i64,
    compressed: i64,
    /// The first column whose values are in order.
    sorted: Option<SortingColumn>,
}

impl OpenRowGroup {
    fn new(rows: usize, offset: u64) -> Self {
        let (columns, reports, indexes) = (Vec::new(), Vec::new(), Vec::new());
        let (uncompressed, compressed, sorted) = (0, 0, None);
        Self { rows, offset, columns, reports, indexes, uncompressed, compressed, sorted }
    }

    /// Notes the next chunk, whose first byte is at `at` of the file, and returns its bytes.
    fn place(&mut self, chunk: &mut EncodedChunk, at: u64) -> Result<u64> {
        let column = self.columns.len();
        memory::push(&mut self.columns, chunk.place(signed(at)?))?;
        memory::push(&mut self.reports, chunk.report.clone())?;
        self.uncompressed += chunk.meta_data.total_uncompressed_size;
        self.compressed += chunk.meta_data.total_compressed_size;
        if let (None, Some(sorted), Ok(column_idx)) =
            (&self.sorted, chunk.sorted, i32::try_from(column))
        {
            let (descending, nulls_first) = (sorted.descending, false);
            self.sorted = Some(SortingColumn {
                column_idx,
                descending,
                nulls_first,
                ..SortingColumn::default()
            });
        }
        Ok(chunk.bytes.iter().map(|bytes| bytes.len() as u64).sum())
    }

    /// The row group as the footer and the report have it.
    fn end(
        self,
        ordinal: usize,
        sorting: Option<Vec<SortingColumn>>,
    ) -> Result<(RowGroup, RowGroupReport, Vec<Indexes>)> {
        let bytes = u64::try_from(self.compressed).unwrap_or_default();
        let row_group = RowGroup {
            columns: self.columns,
            total_byte_size: self.uncompressed,
            num_rows: signed(self.rows as u64)?,
            // By one column only, because the order of rows that are equal in it was not checked.
            sorting_columns: sorting.or_else(|| self.sorted.map(|sorted| vec![sorted])),
            file_offset: Some(signed(self.offset)?),
            total_compressed_size: Some(self.compressed),
            ordinal: i16::try_from(ordinal).ok(),
            ..RowGroup::default()
        };
        let (rows, offset, columns) = (self.rows as u64, self.offset, self.reports);
        Ok((row_group, RowGroupReport { rows, offset, bytes, columns }, self.indexes))
    }
}

fn signed(n: u64) -> Result<i64> {
    i64::try_from(n).map_err(|_| Error::usage("a file beyond 2^63 bytes"))
}
