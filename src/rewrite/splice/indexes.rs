//! Writes what is around the pages: bloom filters, column indexes and offset indexes.

use super::splicer::{CopiedChunk, NewPlaces, Splicer};
use crate::error::Result;
use crate::format::{ColumnChunk, FileMetaData};
use crate::io::Sink;
use crate::rewrite::made_indexes::IndexKind;
use crate::write::IndexWriter;

impl<S: Sink> Splicer<'_, S> {
    /// Writes bloom filters, column indexes and offset indexes, one by one.
    pub(super) fn write_indexes(
        &mut self,
        metadata: &mut FileMetaData,
        copied: &[Vec<CopiedChunk>],
    ) -> Result<()> {
        for kind in [IndexKind::Bloom, IndexKind::Column, IndexKind::Offset] {
            for (i, row_group) in metadata.row_groups.iter_mut().enumerate() {
                let chunks = row_group.columns.iter_mut().zip(copied.get(i).into_iter().flatten());
                for ((chunk, of), leaf) in chunks.zip(&self.inputs.leaves) {
                    let input = self.file(of.origin.file)?;
                    self.write_index(kind, chunk, of, (i, leaf.index)).map_err(|e| {
                        let e = e.at_row_group(of.origin.row_group);
                        input.reader.name(e.at_column(leaf.path.dotted()))
                    })?;
                }
            }
        }
        Ok(())
    }

    fn write_index(
        &mut self,
        kind: IndexKind,
        chunk: &mut ColumnChunk,
        of: &CopiedChunk,
        to: (usize, usize),
    ) -> Result<()> {
        let encryptor = self.encryptor.as_ref().map(|file| file.chunk(to.0, to.1));
        let encryptor = encryptor.transpose()?.flatten();
        let encryptor = encryptor.as_ref();
        let old = self.old(of.origin)?;
        let mut out = Vec::new();
        let mut to = IndexWriter::new(self.out.written(), &mut out);
        match (kind, &of.pages) {
            (_, NewPlaces::Kept) | (IndexKind::Offset, NewPlaces::Listed(None)) => {}
            (kind, NewPlaces::Made(made)) => made.write(kind, chunk, encryptor, &mut to)?,
            (IndexKind::Bloom, _) => {
                if let Some(offset) = of.bloom {
                    let (filter, _memory) = old.bloom(offset)?;
                    to.bloom(chunk, &filter, encryptor)?;
                }
            }
            (IndexKind::Column, _) if of.origin.has_bounds => {
                if let Some((index, _memory)) = old.column_index()? {
                    to.column_index(chunk, &index, encryptor)?;
                }
            }
            // Its bounds mean nothing in the new file.
            (IndexKind::Column, _) => {}
            (IndexKind::Offset, NewPlaces::Listed(Some(index))) => {
                to.offset_index(chunk, index, encryptor)?;
            }
            (IndexKind::Offset, NewPlaces::Shifted { from, by }) => {
                if let Some((index, _memory)) = old.shifted(from, *by)? {
                    to.offset_index(chunk, &index, encryptor)?;
                }
            }
        }
        match out.is_empty() {
            true => Ok(()),
            false => self.out.send(out.into()),
        }
    }
}
