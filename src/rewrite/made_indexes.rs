//! [`MadeIndexes`]: what is around the pages of a chunk that was encoded, until it is written.

use crate::crypt::ChunkEncryptor;
use crate::error::Result;
use crate::format::{ColumnChunk, ColumnIndex, OffsetIndex, PageLocation};
use crate::write::IndexWriter;

/// The kinds of what is around pages, in the order in which they are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum IndexKind {
    Bloom,
    Column,
    Offset,
}

/// Bloom filter and indexes of a chunk that was encoded.
pub(super) struct MadeIndexes {
    pub(super) offset_index: OffsetIndex,
    pub(super) column_index: Option<ColumnIndex>,
    /// With its header, in plain text.
    pub(super) bloom: Option<Vec<u8>>,
}

impl MadeIndexes {
    /// Writes one of them.
    pub(super) fn write(
        &self,
        kind: IndexKind,
        chunk: &mut ColumnChunk,
        encryptor: Option<&ChunkEncryptor>,
        to: &mut IndexWriter<'_>,
    ) -> Result<()> {
        match (kind, &self.bloom, &self.column_index) {
            (IndexKind::Bloom, Some(bloom), _) => to.bloom(chunk, bloom, encryptor),
            (IndexKind::Column, _, Some(index)) => to.column_index(chunk, index, encryptor),
            (IndexKind::Offset, ..) => to.offset_index(chunk, &self.offset_index, encryptor),
            _ => Ok(()),
        }
    }

    /// Bytes of memory, about.
    pub(super) fn bytes_held(&self) -> usize {
        let bounds = self.column_index.as_ref().map_or(0, |index| {
            index.min_values.iter().chain(&index.max_values).map(|b| b.len() + 24).sum()
        });
        let places = self.offset_index.page_locations.len() * size_of::<PageLocation>();
        places + bounds + self.bloom.as_ref().map_or(0, Vec::len)
    }
}
