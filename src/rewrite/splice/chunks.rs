//! Copies the pages of a chunk, or encodes a column.

use std::ops::Range;

use super::splicer::{ChunkOrigin, CopiedChunk, NewPlaces, Splicer};
use crate::error::{Error, Result};
use crate::format::{ColumnChunk, PageType};
use crate::io::{Sink, Source};
use crate::memory;
use crate::read::ChunkWalk;
use crate::rewrite::inputs::{Input, Inputs, RowGroupPart};
use crate::rewrite::made_indexes::MadeIndexes;
use crate::rewrite::moved_chunk::{
    MovedChunk, MovedPage, copy_chunk, forget_bounds, relocated, relocated_chunk,
};
use crate::rewrite::old_indexes::read;
use crate::rewrite::page_copier::PageCopier;
use crate::rewrite::plan::ChunkMethod;
use crate::rewrite::recompress::Recompressor;
use crate::write::{EncodedChunk, ModuleSealer, RowGroupEncryption};

impl<'a, S: Sink> Splicer<'a, S> {
    /// Encodes a column of a row group. Appends the metadata of its chunks.
    pub(super) fn encoded(
        &mut self,
        file: usize,
        part: &RowGroupPart,
        column: usize,
        new_ordinal: usize,
        done: &mut Vec<(ColumnChunk, CopiedChunk)>,
    ) -> Result<()> {
        let input = self.file(file)?;
        let inputs: &'a Inputs<'a> = self.inputs;
        let Some(new) = inputs.columns.get(column).filter(|new| !new.leaves.is_empty()) else {
            return Ok(());
        };
        let name = inputs.leaves.get(new.leaves.start).map(|leaf| leaf.path.dotted());
        let place = |e: Error| e.at_column(name.unwrap_or_default());
        let (chunks, _memory) = self.encoders.encode(input, part, column).map_err(place)?;
        for (new_leaf, chunk) in new.leaves.clone().zip(chunks) {
            let placed = self.place_encoded((file, part.ordinal), new_leaf, new_ordinal, chunk)?;
            memory::push(done, placed)?;
        }
        Ok(())
    }

    /// Writes the pages of a chunk that was encoded; `of` is the file and the row group that errors
    /// name.
    pub(super) fn place_encoded(
        &mut self,
        (file, row_group): (usize, usize),
        new_leaf: usize,
        new_ordinal: usize,
        mut chunk: EncodedChunk,
    ) -> Result<(ColumnChunk, CopiedChunk)> {
        let inputs: &'a Inputs<'a> = self.inputs;
        if let Some(encryptor) = &self.encryptor {
            let checksums = inputs.settings.get(new_leaf).is_some_and(|of| of.checksums);
            let (file, row_group) = (encryptor.clone(), new_ordinal);
            let encryption = RowGroupEncryption { file, row_group, checksums };
            encryption.encrypt(new_leaf, &mut chunk)?;
        }
        let mut placed = chunk.place(self.out.here()?);
        for bytes in std::mem::take(&mut chunk.bytes) {
            self.out.send(bytes)?;
        }
        if !inputs.has_bounds.get(new_leaf).copied().unwrap_or(false) {
            forget_bounds(&mut placed);
            chunk.column_index = None;
        }
        let indexes = MadeIndexes {
            offset_index: chunk.offset_index,
            column_index: chunk.column_index,
            bloom: chunk.bloom,
        };
        self.indexes.grow(indexes.bytes_held())?;
        // Only its place in the errors is asked for.
        let origin = ChunkOrigin { file, row_group, leaf: new_leaf, has_bounds: true };
        let pages = NewPlaces::Made(Box::new(indexes));
        Ok((placed, CopiedChunk { origin, bloom: None, pages, grown: 0 }))
    }

    /// Copies the pages of a chunk. Returns its metadata with their new places, not encrypted.
    pub(super) fn chunk(
        &mut self,
        origin: ChunkOrigin,
        to: (usize, usize),
    ) -> Result<(ColumnChunk, CopiedChunk)> {
        let input = self.file(origin.file)?;
        let options = input.reader.read_options();
        let (row_group, leaf) = (origin.row_group, origin.leaf);
        let file_len = input.reader.file_len();
        let walk = ChunkWalk::new(input.footer(), file_len, row_group, leaf, &options.limits)?;
        if let Some(regions) = self.regions.get_mut(origin.file).filter(|_| !options.shared_bytes) {
            regions.add(&walk.range)?;
        }
        // After the key was found, so that the metadata are those that it decrypts.
        let mut old = input.footer().column_chunk(row_group, leaf)?;
        if !origin.has_bounds {
            forget_bounds(&mut old);
        }
        let stored = input.footer().column_chunk_ref(row_group, leaf)?;
        let (method, _, codec) = self.decisions.copying(&stored, self.encryptor.as_ref(), to)?;
        if method == ChunkMethod::Bytes {
            return self.copy_bytes(input, origin, old, &walk.range);
        }
        let encryptor = self.encryptor.as_ref().map(|file| file.chunk(to.0, to.1));
        let encryptor = encryptor.transpose()?.flatten();
        let from = old.meta_data.as_ref().map(|meta| meta.codec).unwrap_or_default();
        let page_bytes = options.limits.page_bytes;
        let recompressor = codec.map(|to| Recompressor::new(from, to, page_bytes, &self.budget));
        let pages = PageCopier {
            decryptor: walk.decryptor().cloned(),
            encryptor,
            recompressor: recompressor.transpose()?,
            sealer: ModuleSealer::default(),
            plain: Vec::new(),
            header_bytes_added: 0,
        };
        self.copy_pages(input, origin, old, walk, pages)
    }

    /// Copies a chunk as it is.
    fn copy_bytes(
        &mut self,
        input: &Input<'_>,
        origin: ChunkOrigin,
        old: ColumnChunk,
        range: &Range<u64>,
    ) -> Result<(ColumnChunk, CopiedChunk)> {
        let budget = self.budget.clone();
        let source: &dyn Source = &**input.reader.source();
        let some = |range: Range<u64>| {
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let memory = budget.take_for("bytes of a column chunk", len)?;
            Ok((read(input, range)?, memory))
        };
        let MovedChunk { chunk, by, bloom } = copy_chunk(&mut self.out, old, range, source, some)?;
        let pages = NewPlaces::Shifted { from: range.clone(), by };
        Ok((chunk, CopiedChunk { origin, bloom, pages, grown: 0 }))
    }

    /// Copies a chunk page by page.
    fn copy_pages(
        &mut self,
        input: &Input<'_>,
        origin: ChunkOrigin,
        old: ColumnChunk,
        walk: ChunkWalk,
        mut pages: PageCopier,
    ) -> Result<(ColumnChunk, CopiedChunk)> {
        let mut indexes = self.indexes.empty();
        let offset_index = self.old(origin)?.offset_index(&mut indexes)?;
        // It stays reserved.
        self.indexes.absorb(indexes);
        let start = self.out.here()?;
        let memory = self.reserve("a column chunk", &walk.range)?;
        let bytes = read(input, walk.range.clone())?;
        let mut moved = Vec::new();
        let mut places = self.budget.reservation("the places of pages");
        let (mut first_data, mut dictionary) = (None, None);
        for page in walk.pages(bytes, memory) {
            let page = page?;
            let to = self.out.here()?;
            let place = |e: Error| e.at_offset(page.offset).at_page(moved.len());
            let is_dictionary = page.header.r#type == PageType::DictionaryPage;
            if !page.is_data() && !is_dictionary {
                // It carries no values, and there is no module for it.
                continue;
            }
            // In plain text, encrypted, and with its header.
            let _copies = self.budget.take_for("a page", page.bytes.len().saturating_mul(3))?;
            let new = pages.copy(&page, moved.len()).map_err(place)?;
            self.pages += 1;
            if is_dictionary {
                dictionary = Some(to);
            } else {
                first_data.get_or_insert(to);
                places.grow(size_of::<MovedPage>())?;
                moved.push(MovedPage { from: page.offset, to, len: new.len() });
            }
            self.out.send(new.into())?;
        }
        let end = self.out.here()?;
        let grown = pages.header_bytes_added;
        let bloom = old.meta_data.as_ref().and_then(|meta| meta.bloom_filter_offset);
        let mut new = relocated_chunk(old, start..end, first_data, dictionary, grown)?;
        if let (Some(recompressor), Some(meta)) = (&pages.recompressor, &mut new.meta_data) {
            meta.codec = recompressor.codec();
        }
        let offset_index = offset_index.map(|index| relocated(index, &moved)).transpose()?;
        let pages = NewPlaces::Listed(offset_index);
        Ok((new, CopiedChunk { origin, bloom, pages, grown }))
    }
}
