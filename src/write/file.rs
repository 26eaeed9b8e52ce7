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
use super::footer::{magic, plain_footer, protected_footer, state_paths};
use super::layout::FileLayout;
use super::placed::{IndexOffsets, OpenRowGroup, PlacedIndexes, PlacedRowGroup};
use super::report::WriteReport;
use super::row_group::EncodedRowGroup;
use crate::crypt::FileEncryptor;
use crate::error::{Error, Result};
use crate::format::{FileMetaData, RowGroup};
use crate::memory;

/// A file as far as it is assembled: its length, and the metadata of the bytes so far.
#[derive(Default)]
pub(crate) struct FileAssembler {
    /// The encryptor of this file only. It is made when the first row group is encoded.
    encryptor: Option<FileEncryptor>,
    len: u64,
    row_groups: Vec<PlacedRowGroup>,
    /// The filters and indexes of each row group.
    indexes: Vec<PlacedIndexes>,
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

    /// Bytes of memory that the metadata and the indexes of the row groups take until the end of
    /// the file.
    pub(crate) fn metadata_bytes(&self) -> usize {
        self.row_groups.iter().map(PlacedRowGroup::bytes_held).sum::<usize>()
            + self.indexes.iter().map(PlacedIndexes::bytes_held).sum::<usize>()
            + self.open.as_ref().map_or(0, OpenRowGroup::bytes_held)
    }

    /// Bytes that the footer of the row groups so far will have, about.
    #[cfg_attr(not(all(feature = "object_store", feature = "engine")), allow(dead_code))]
    pub(crate) fn footer_bytes(&self, layout: &FileLayout) -> usize {
        let row_groups = self.row_groups.iter().map(PlacedRowGroup::bytes_held);
        row_groups.sum::<usize>() + layout.footer_bytes()
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
        row_group: EncodedRowGroup,
    ) -> Result<Vec<Bytes>> {
        let ordinal = self.row_groups.len();
        let encryption = self.encryption(layout, ordinal)?;
        let mut out = self.start();
        let open = self.open.get_or_insert_with(|| OpenRowGroup::new(row_group.rows, self.len));
        for mut chunk in row_group.chunks {
            let leaf = open.chunks();
            if let Some(encryption) = &encryption {
                encryption.encrypt(leaf, &mut chunk)?;
            }
            let path = layout.row_groups.leaves.get(leaf).map(|leaf| &leaf.path);
            let place = |e: Error| match path {
                Some(path) => e.at_row_group(ordinal).at_column(path.dotted()),
                None => e.at_row_group(ordinal),
            };
            let encryptor = encryption.as_ref().map(|of| of.file.chunk(ordinal, leaf));
            let encryptor = encryptor.transpose().map_err(place)?.flatten();
            let bytes = open.place(&mut chunk, self.len, encryptor.as_ref()).map_err(place)?;
            self.len += bytes.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
            memory::extend(&mut out, bytes)?;
        }
        if open.chunks() == layout.row_groups.leaves.len()
            && let Some(open) = self.open.take()
        {
            let (placed, indexes) = open.end(ordinal, row_group.sorting)?;
            memory::push(&mut self.indexes, indexes)?;
            memory::push(&mut self.row_groups, placed)?;
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
        let offsets = self.indexes(&mut out)?;
        let metadata = self.metadata(layout)?;
        let (leaves, is_stated) = (&layout.row_groups.leaves, layout.options.path_in_schema);
        let row_groups = self.row_groups.iter().zip(offsets).map(|(placed, offsets)| {
            let mut row_group = placed.metadata_with(offsets)?;
            state_paths(&mut row_group, leaves, is_stated);
            Ok(row_group)
        });
        let encryptor = self.encryptor.as_ref();
        let footer = memory::frozen(plain_footer(metadata, row_groups, leaves, encryptor)?)?;
        for bytes in protected_footer(footer.clone(), encryptor)? {
            self.len += bytes.len() as u64;
            memory::push(&mut out, bytes)?;
        }
        out.retain(|bytes| !bytes.is_empty());
        let rows = self.row_groups.iter().map(|row_group| row_group.rows).sum();
        let field_ids = memory::collected(leaves.iter().map(|leaf| leaf.field_id))?;
        let (row_groups, shapes) = (self.row_groups, layout.shapes());
        Ok((out, WriteReport { rows, bytes: self.len, shapes, row_groups, field_ids, footer }))
    }

    /// Appends the filters and indexes of all row groups, and returns where those of each begin.
    ///
    /// Filters come first: a reader that fetches the end of a file gets the indexes and the footer
    /// in one piece.
    fn indexes(&mut self, out: &mut Vec<Bytes>) -> Result<Vec<IndexOffsets>> {
        let mut offsets = memory::vec_for(self.indexes.len())?;
        let mut at = IndexOffsets { blooms: self.len, column_indexes: 0, offset_indexes: 0 };
        at.column_indexes = at.blooms + self.indexes.iter().map(|of| of.bloom_bytes).sum::<u64>();
        let column_indexes = self.indexes.iter().map(|of| of.column_indexes.len() as u64);
        at.offset_indexes = at.column_indexes + column_indexes.sum::<u64>();
        for indexes in &self.indexes {
            offsets.push(at);
            at.blooms += indexes.bloom_bytes;
            at.column_indexes += indexes.column_indexes.len() as u64;
            at.offset_indexes += indexes.offset_indexes.len() as u64;
        }
        self.len = at.offset_indexes;
        for indexes in &mut self.indexes {
            memory::extend(out, std::mem::take(&mut indexes.blooms))?;
        }
        for indexes in &mut self.indexes {
            memory::push(out, std::mem::take(&mut indexes.column_indexes))?;
        }
        for indexes in std::mem::take(&mut self.indexes) {
            memory::push(out, indexes.offset_indexes)?;
        }
        Ok(offsets)
    }

    /// A file of only a footer, which describes the row groups so far without their indexes, and is
    /// encrypted or signed as that of the file.
    ///
    /// # Errors
    /// `Usage` if the footer becomes too large for the format, `Crypto` if a key was used too
    /// often.
    pub(crate) fn side_footer(&self, layout: &FileLayout) -> Result<Bytes> {
        let (leaves, is_stated) = (&layout.row_groups.leaves, layout.options.path_in_schema);
        let row_groups = self.row_groups.iter().map(|placed| {
            let mut row_group = placed.metadata()?;
            state_paths(&mut row_group, leaves, is_stated);
            Ok(row_group)
        });
        let encryptor = self.encryptor.as_ref();
        let plain = plain_footer(self.metadata(layout)?, row_groups, leaves, encryptor)?;
        let mut out = magic(encryptor).to_vec();
        for bytes in protected_footer(plain.into(), encryptor)? {
            memory::append(&mut out, &bytes)?;
        }
        Ok(out.into())
    }

    /// The footer but for its row groups.
    fn metadata(&self, layout: &FileLayout) -> Result<FileMetaData> {
        let rows = self.row_groups.iter().map(|row_group| row_group.rows).sum();
        // The key `geo` is made from them, all decoded at once; nothing else of the footer is.
        let row_groups: Vec<RowGroup> = match layout.options.geo {
            Some(_) => memory::try_collected(self.row_groups.iter().map(PlacedRowGroup::metadata))?,
            None => Vec::new(),
        };
        Ok(FileMetaData { row_groups: Vec::new(), ..layout.metadata(rows, row_groups)? })
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
