//! [`Decisions`]: how each column chunk comes into the new file.

use super::inputs::{Inputs, RowGroupPart};
use super::plan::{ChunkMethod, ChunkReason, PlannedChunk, PlannedRowGroup};
use crate::compress::Compression;
use crate::crypt::FileEncryptor;
use crate::error::{Error, Result};
use crate::format::ColumnChunkRef;
use crate::read::chunk_range;

/// Decides from the footers alone, for the plan and for what is done.
#[derive(Clone, Copy)]
pub(super) struct Decisions<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) verifies_checksums: bool,
    /// Whether row groups state no order of their rows.
    pub(super) forgets_order: bool,
}

impl Decisions<'_> {
    /// How the chunk of a leaf is copied, whose column is not encoded; with the codec that it gets.
    ///
    /// # Errors
    /// `Crypto` if there are more row groups or columns than encryption can number.
    pub(super) fn copying(
        &self,
        chunk: &ColumnChunkRef<'_>,
        encryptor: Option<&FileEncryptor>,
        (row_group, leaf): (usize, usize),
    ) -> Result<(ChunkMethod, ChunkReason, Option<Compression>)> {
        let wanted = self.inputs.wishes.get(leaf).and_then(|wishes| wishes.codec);
        let codec = chunk.meta_data.as_ref().map(|meta| meta.codec);
        if let Some(wanted) = wanted
            && (Some(wanted.codec()) != codec || has_levels(wanted))
        {
            return Ok((ChunkMethod::Recompressed, ChunkReason::Codec, Some(wanted)));
        }
        let is_sealed = match encryptor {
            Some(encryptor) => encryptor.chunk(row_group, leaf)?.is_some(),
            None => false,
        };
        let (method, reason) = match is_sealed || chunk.is_encrypted() {
            true => (ChunkMethod::Pages, ChunkReason::Encryption),
            false if self.verifies_checksums => (ChunkMethod::Pages, ChunkReason::Checksums),
            false => (ChunkMethod::Bytes, ChunkReason::Unchanged),
        };
        Ok((method, reason, None))
    }

    /// The plan of a row group, which is the `new`th of the new file.
    ///
    /// # Errors
    /// As [`Decisions::copying`]; `Malformed` if the metadata are broken.
    pub(super) fn row_group(
        &self,
        file: usize,
        part: &RowGroupPart,
        encryptor: Option<&FileEncryptor>,
        new: usize,
    ) -> Result<PlannedRowGroup> {
        let input = self.inputs.files.get(file);
        let input = input.ok_or_else(|| Error::internal("there is no such input"))?;
        let (footer, file_len) = (input.footer(), input.reader.file_len());
        let mut chunks = Vec::with_capacity(self.inputs.leaves.len());
        for (at, column) in self.inputs.columns.iter().enumerate() {
            let reason = self.inputs.encoding_reason(input, part, at);
            for new_leaf in column.leaves.clone() {
                let leaf = input.leaves.get(new_leaf).copied().flatten();
                let (mut bytes, mut copying) = (0, None);
                if let Some(leaf) = leaf {
                    let chunk = footer.column_chunk_ref(part.ordinal, leaf)?;
                    let range = chunk_range(footer, file_len, part.ordinal, leaf, &chunk)?;
                    bytes = range.end - range.start;
                    copying = Some(self.copying(&chunk, encryptor, (new, new_leaf))?);
                }
                let (method, reason) = match (reason, copying) {
                    (None, Some((method, reason, _))) => (method, reason),
                    (reason, _) => (ChunkMethod::Encoded, reason.unwrap_or(ChunkReason::Type)),
                };
                chunks.push(PlannedChunk { method, reason, bytes });
            }
        }
        let (row_group, rows) = (part.ordinal, part.rows);
        let (copied, copied_by_page) = Default::default();
        let planned = PlannedRowGroup { file, row_group, rows, copied, copied_by_page, chunks };
        let (copied, copied_by_page) =
            (planned.total(ChunkMethod::Bytes), planned.total(ChunkMethod::Pages));
        Ok(PlannedRowGroup { copied, copied_by_page, ..planned })
    }
}

/// Whether a codec has levels, so that its pages may have another.
fn has_levels(codec: Compression) -> bool {
    matches!(codec, Compression::Gzip(_) | Compression::Brotli(_) | Compression::Zstd(_))
}
