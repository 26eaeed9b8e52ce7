//! Writes the new file, row group by row group.

use bytes::Bytes;

use super::old_footers::OldFooters;
use super::splicer::{ChunkOrigin, CopiedChunk, NewPlaces, Splicer};
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnChunk, FileMetaData, RowGroup, SortingColumn};
use crate::io::Sink;
use crate::memory;
use crate::rewrite::inputs::{Input, RowGroupPart};
use crate::rewrite::moved_chunk::forget_bounds;
use crate::rewrite::output::Spliced;
use crate::schema::Schema;
use crate::write::geo_key::GeoKey;
use crate::write::{footer, magic, state_paths};

impl<S: Sink> Splicer<'_, S> {
    /// Writes the file, into a sink that has its first `kept` bytes already: those of the first
    /// input, whose chunks stay where they are.
    pub(in crate::rewrite) fn run(mut self, kept: u64) -> Result<Spliced> {
        let mut metadata = self.inputs.footer.copied()?;
        match kept {
            0 => self.out.send(Bytes::from_static(magic(self.encryptor.as_ref())))?,
            _ => self.out.has(kept),
        }
        let (mut copied, mut rows) = (Vec::new(), 0u64);
        let spliced = self.inputs.files.iter().filter(|file| file.merged_with.is_none());
        let mut footers = OldFooters::new(spliced.map(Input::footer));
        for (at, file) in self.inputs.files.iter().enumerate() {
            let place = |e: Error| file.reader.name(e);
            if let Some(merged) = &file.merged_with {
                if merged.start == at {
                    for (row_group, chunks) in self.merged(merged.clone(), copied.len())? {
                        rows = rows.saturating_add(u64::try_from(row_group.num_rows).unwrap_or(0));
                        memory::push(&mut metadata.row_groups, row_group)?;
                        memory::push(&mut copied, chunks)?;
                    }
                }
                continue;
            }
            let old = footers.get(file.footer(), &self.budget).map_err(place)?;
            for part in &file.row_groups {
                let ordinal = part.ordinal;
                rows = rows
                    .checked_add(part.rows)
                    .ok_or_else(|| Error::usage("more than 2^64 rows"))?;
                let old = old.metadata.row_groups.get(ordinal).map(RowGroup::copied).transpose()?;
                let old = old.unwrap_or_default();
                let new = metadata.row_groups.len();
                let done = match kept > 0 && at == 0 {
                    true => self.kept_row_group(part, old),
                    false => self.row_group(at, part, old, new),
                };
                let (row_group, chunks) = done.map_err(|e| place(e.at_row_group(ordinal)))?;
                memory::push(&mut metadata.row_groups, row_group)?;
                memory::push(&mut copied, chunks)?;
            }
        }
        metadata.num_rows = i64::try_from(rows).map_err(|_| Error::usage("more than 2^63 rows"))?;
        self.check_sources()?;
        self.write_indexes(&mut metadata, &copied)?;
        let is_stated = self.settings.options.path_in_schema;
        for row_group in &mut metadata.row_groups {
            state_paths(row_group, &self.inputs.leaves, is_stated);
        }
        self.state_geo_key(&mut metadata)?;
        let (row_groups, mut end) = (metadata.row_groups.len(), Vec::new());
        footer(metadata, &self.inputs.leaves, self.encryptor.as_ref(), &mut end)?;
        self.out.send(end.into())?;
        self.out.finish()?;
        Ok(Spliced { rows, row_groups, pages: self.pages, bytes: self.out.written() })
    }

    /// States the key `geo`, if that is asked for.
    fn state_geo_key(&self, metadata: &mut FileMetaData) -> Result<()> {
        let Some(options) = &self.settings.options.geo else { return Ok(()) };
        let schema = Schema::parse(memory::cloned(&metadata.schema)?, &Default::default())?;
        let encryption = self.settings.encryption.as_ref();
        let protections = encryption.map(|of| of.protections(&self.inputs.leaves)).transpose()?;
        let protections = protections.unwrap_or_default();
        let is_hidden = |leaf: usize| protections.get(leaf).is_some_and(|of| !of.is_plain());
        let is_cut = |file: &Input<'_>| {
            file.row_groups.len() != file.reader.metadata().row_groups()
                || file.row_groups.iter().any(|part| part.cut.is_some())
        };
        let is_of_same_rows = self.inputs.files.len() == 1 && !self.inputs.files.iter().any(is_cut);
        GeoKey { options, schema: &schema, is_hidden: &is_hidden, is_of_same_rows }.state(metadata)
    }

    /// Copies the pages of a row group. Returns its metadata with their new places.
    fn row_group(
        &mut self,
        file: usize,
        part: &RowGroupPart,
        old: RowGroup,
        new_ordinal: usize,
    ) -> Result<(RowGroup, Vec<CopiedChunk>)> {
        let input = self.file(file)?;
        let (expected, found) = (input.footer().schema().leaves_len(), old.columns.len());
        if expected != found {
            return Err(Error::mismatch(Spec::Metadata("RowGroup"), "columns", expected, found));
        }
        let start = self.out.here()?;
        let mut done = memory::vec_for(input.leaves.len())?;
        let mut is_copied = input.leaves.len() == found;
        for (at, column) in self.inputs.columns.iter().enumerate() {
            if self.inputs.encoding_reason(input, part, at).is_some() {
                is_copied = false;
                self.encoded(file, part, at, new_ordinal, &mut done)?;
                continue;
            }
            for new_leaf in column.leaves.clone() {
                let leaf = input.leaves.get(new_leaf).copied().flatten();
                let leaf = leaf.ok_or_else(|| Error::internal("a copied leaf is in the file"))?;
                let has_bounds = input.is_ordered.get(new_leaf).copied().unwrap_or(false);
                let origin = ChunkOrigin { file, row_group: part.ordinal, leaf, has_bounds };
                let name = self.inputs.leaves.get(new_leaf).map(|leaf| leaf.path.dotted());
                let place = |e: Error| e.at_column(name.unwrap_or_default());
                done.push(self.chunk(origin, (new_ordinal, new_leaf)).map_err(place)?);
            }
        }
        let mut columns: Vec<ColumnChunk> = memory::vec_for(done.len())?;
        let mut copied: Vec<CopiedChunk> = memory::vec_for(done.len())?;
        for (column, chunk) in done {
            columns.push(column);
            copied.push(chunk);
        }
        let sizes = columns.iter().filter_map(|chunk| chunk.meta_data.as_ref());
        let total_byte_size = match is_copied {
            // Some writers count otherwise; what they said stays.
            true => {
                let grown = copied.iter().fold(0i64, |sum, chunk| sum.saturating_add(chunk.grown));
                old.total_byte_size.saturating_add(grown).max(0)
            }
            false => sizes.fold(0i64, |sum, meta| sum.saturating_add(meta.total_uncompressed_size)),
        };
        let stated = old.sorting_columns.as_deref().filter(|_| !self.decisions.forgets_order);
        let sorting_columns = stated.and_then(|all| sorting(all, input));
        let row_group = RowGroup {
            columns,
            total_byte_size,
            num_rows: i64::try_from(part.rows)
                .map_err(|_| Error::usage("a row group of more than 2^63 rows"))?,
            sorting_columns,
            total_compressed_size: Some(self.out.here()? - start),
            file_offset: Some(start),
            ordinal: i16::try_from(new_ordinal).ok(),
            ..old
        };
        Ok((row_group, copied))
    }

    /// A row group of the first file, which stays where it is, with what is around its pages.
    fn kept_row_group(
        &self,
        part: &RowGroupPart,
        mut old: RowGroup,
    ) -> Result<(RowGroup, Vec<CopiedChunk>)> {
        let input = self.file(0)?;
        if self.decisions.forgets_order {
            old.sorting_columns = None;
        }
        let mut kept = memory::vec_for(old.columns.len())?;
        for (leaf, chunk) in old.columns.iter_mut().enumerate() {
            let has_bounds = input.is_ordered.get(leaf).copied().unwrap_or(false);
            if !has_bounds {
                forget_bounds(chunk);
                (chunk.column_index_offset, chunk.column_index_length) = (None, None);
            }
            let origin = ChunkOrigin { file: 0, row_group: part.ordinal, leaf, has_bounds };
            kept.push(CopiedChunk { origin, bloom: None, pages: NewPlaces::Kept, grown: 0 });
        }
        Ok((old, kept))
    }

    /// Checks that no file has become longer or shorter since it was opened.
    fn check_sources(&self) -> Result<()> {
        for file in &self.inputs.files {
            let (expected, found) = (file.reader.file_len(), file.reader.source().len()?);
            if expected != found {
                let text = format_args!("it had {expected} bytes when it was opened, now {found}");
                let changed = std::io::Error::other(text.to_string());
                let error = Error::io("the file was changed while it was copied", changed);
                return Err(file.reader.name(error));
            }
        }
        Ok(())
    }
}

/// By what the rows of a row group are sorted, as far as those columns are copied.
fn sorting(all: &[SortingColumn], input: &Input<'_>) -> Option<Vec<SortingColumn>> {
    let moved = all.iter().map_while(|column| {
        let old = usize::try_from(column.column_idx).ok()?;
        let new = input.leaves.iter().position(|leaf| *leaf == Some(old))?;
        Some(SortingColumn { column_idx: i32::try_from(new).ok()?, ..column.clone() })
    });
    let moved: Vec<_> = moved.collect();
    (!moved.is_empty()).then_some(moved)
}
