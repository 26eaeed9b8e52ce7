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

use super::encrypt::RowGroupEncryption;
use super::footer::{Indexes, footer, indexes, magic, state_paths};
use super::layout::FileLayout;
use super::report::{RowGroupReport, WriteReport};
use super::row_group::EncodedRowGroup;
use crate::crypt::FileEncryptor;
use crate::error::Result;
use crate::format::RowGroup;

/// A file as far as it is assembled: its length, and the metadata of the bytes so far.
#[derive(Default)]
pub(crate) struct FileAssembler {
    /// The encryptor of this file only. It is made when the first row group is encoded.
    encryptor: Option<FileEncryptor>,
    len: u64,
    row_groups: Vec<RowGroup>,
    indexes: Vec<Vec<Indexes>>,
    reports: Vec<RowGroupReport>,
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
        self.indexes.iter().flatten().map(Indexes::bytes_held).sum()
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

    /// The bytes of the next row group, and of what goes before the first one.
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
        if let Some(encryption) = encryption {
            for (leaf, chunk) in row_group.chunks.iter_mut().enumerate() {
                encryption.encrypt(leaf, chunk)?;
            }
        }
        let (placed, report) = row_group.place(self.len, ordinal)?;
        self.len += report.bytes;
        self.indexes.push(row_group.chunks.iter_mut().map(Indexes::take_from).collect());
        self.row_groups.push(placed);
        self.reports.push(report);
        out.extend(row_group.chunks.into_iter().flat_map(|chunk| chunk.bytes));
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
        let mut metadata = layout.metadata(rows, self.row_groups.clone())?;
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
