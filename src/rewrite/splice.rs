//! [`Splicer`] copies row groups of files into a new one.
//!
//! ```text
//! magic | pages, chunk by chunk | bloom filters | column indexes | offset indexes | footer
//! ```
//!
//! Pages whose protection stays are copied as bytes, without looking at them; others page by page,
//! perhaps with another codec. What cannot be copied is decoded and encoded.
//! The order is that of [`Writer`](crate::Writer). Trap: a checksum covers the stored bytes, and is
//! computed anew where these change. It is verified before that, or a damaged page would get a
//! correct checksum.

use std::ops::Range;

use bytes::Bytes;

use super::column_encoder::ColumnEncoders;
use super::decide::Decisions;
use super::inputs::{Input, Inputs, RowGroupPart};
use super::made_indexes::{IndexKind, MadeIndexes};
use super::old_indexes::{OldIndexes, read};
use super::output::CountingSink;
use super::page_copier::PageCopier;
use super::plan::ChunkMethod;
use super::recompress::Recompressor;
use crate::crypt::FileEncryptor;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{
    ColumnChunk, ColumnMetaData, FileMetaData, OffsetIndex, PageType, RowGroup, SortingColumn,
};
use crate::io::Sink;
use crate::limits::{Budget, Reservation};
use crate::read::{ChunkRegions, ChunkWalk};
use crate::write::{
    IndexWriter, ModuleSealer, RowGroupEncryption, WriteOptions, footer, magic, state_paths,
};

/// Copies the row groups of the inputs.
pub(super) struct Splicer<'a, S> {
    inputs: &'a Inputs<'a>,
    encryptor: Option<FileEncryptor>,
    decisions: Decisions<'a>,
    encoders: ColumnEncoders<'a>,
    budget: Budget,
    out: CountingSink<S>,
    /// The memory of the offset indexes that are kept.
    indexes: Reservation,
    /// Pages that were looked at.
    pages: u64,
    /// By file, the bytes that were copied.
    regions: Vec<ChunkRegions>,
    /// Whether chunks state their paths.
    states_paths: bool,
}

/// The file that was written.
pub(super) struct Spliced {
    pub(super) rows: u64,
    pub(super) row_groups: usize,
    /// Pages that were looked at.
    pub(super) pages: u64,
    pub(super) bytes: u64,
}

/// The metadata of a copied chunk, until its indexes are written.
struct CopiedChunk {
    origin: ChunkOrigin,
    /// Where its bloom filter is in the old file.
    bloom: Option<i64>,
    pages: NewPlaces,
    /// The growth of its uncompressed size.
    grown: i64,
}

/// Where a chunk comes from.
#[derive(Clone, Copy)]
struct ChunkOrigin {
    file: usize,
    row_group: usize,
    leaf: usize,
    /// Whether its bounds are kept.
    has_bounds: bool,
}

/// Where the pages of a chunk are in the new file.
enum NewPlaces {
    /// All were moved by as many bytes, from this range.
    Shifted { from: Range<u64>, by: i64 },
    /// Each has its own; there may be no offset index.
    Listed(Option<OffsetIndex>),
    /// They are where they were, and so are their indexes.
    Kept,
    /// They were encoded, and these are their indexes.
    Made(Box<MadeIndexes>),
}

/// A data page in the old file and in the new one.
pub(super) struct MovedPage {
    pub(super) from: u64,
    pub(super) to: i64,
    pub(super) len: usize,
}

impl<'a, S: Sink> Splicer<'a, S> {
    pub(super) fn new(
        decisions: Decisions<'a>,
        sink: S,
        encryptor: Option<FileEncryptor>,
        options: &'a WriteOptions,
        budget: Budget,
    ) -> Self {
        let inputs = decisions.inputs;
        Self {
            inputs,
            encryptor,
            decisions,
            encoders: ColumnEncoders::new(inputs, options, &budget),
            states_paths: options.path_in_schema,
            out: CountingSink::new(sink),
            indexes: budget.reservation("the offset indexes of the file"),
            budget,
            pages: 0,
            regions: inputs.files.iter().map(|_| ChunkRegions::default()).collect(),
        }
    }

    /// Writes the file, into a sink that has its first `kept` bytes already: those of the first
    /// input, whose chunks stay where they are.
    pub(super) fn run(mut self, kept: u64) -> Result<Spliced> {
        let mut metadata = self.inputs.footer.clone();
        match kept {
            0 => self.out.send(Bytes::from_static(magic(self.encryptor.as_ref())))?,
            _ => self.out.has(kept),
        }
        let (mut copied, mut rows) = (Vec::new(), 0u64);
        for (at, file) in self.inputs.files.iter().enumerate() {
            let place = |e: Error| file.reader.name(e);
            // As thrift, as structs, and in the new footer.
            let footer_len = file.footer().index().byte_len();
            let _footer = self.budget.take_for("a footer", footer_len.saturating_mul(4))?;
            let old = file.footer().index().to_file_meta_data().map_err(place)?;
            for part in &file.row_groups {
                let ordinal = part.ordinal;
                rows = rows
                    .checked_add(part.rows)
                    .ok_or_else(|| Error::usage("more than 2^64 rows"))?;
                let old = old.row_groups.get(ordinal).cloned().unwrap_or_default();
                let new = metadata.row_groups.len();
                let done = match kept > 0 && at == 0 {
                    true => self.kept_row_group(part, old),
                    false => self.row_group(at, part, old, new),
                };
                let (row_group, chunks) = done.map_err(|e| place(e.at_row_group(ordinal)))?;
                metadata.row_groups.push(row_group);
                copied.push(chunks);
            }
        }
        metadata.num_rows = i64::try_from(rows).map_err(|_| Error::usage("more than 2^63 rows"))?;
        self.check_sources()?;
        self.write_indexes(&mut metadata, &copied)?;
        let mut end = Vec::new();
        state_paths(&mut metadata, &self.inputs.leaves, self.states_paths);
        footer(&mut metadata, &self.inputs.leaves, self.encryptor.as_ref(), &mut end)?;
        self.out.send(end.into())?;
        self.out.finish()?;
        let row_groups = metadata.row_groups.len();
        Ok(Spliced { rows, row_groups, pages: self.pages, bytes: self.out.written() })
    }

    fn file(&self, at: usize) -> Result<&'a Input<'a>> {
        let inputs: &'a Inputs<'a> = self.inputs;
        inputs.files.get(at).ok_or_else(|| Error::internal("there is no such input"))
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
        let mut done = Vec::with_capacity(input.leaves.len());
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
        let (columns, copied): (Vec<ColumnChunk>, Vec<CopiedChunk>) = done.into_iter().unzip();
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
        let mut kept = Vec::with_capacity(old.columns.len());
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

    /// Encodes a column of a row group. Appends the metadata of its chunks.
    fn encoded(
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
        for (new_leaf, mut chunk) in new.leaves.clone().zip(chunks) {
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
            let origin =
                ChunkOrigin { file, row_group: part.ordinal, leaf: new_leaf, has_bounds: true };
            let pages = NewPlaces::Made(Box::new(indexes));
            done.push((placed, CopiedChunk { origin, bloom: None, pages, grown: 0 }));
        }
        Ok(())
    }

    /// Copies the pages of a chunk. Returns its metadata with their new places, not encrypted.
    fn chunk(
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
        let start = self.out.here()?;
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at.saturating_add(WINDOW));
            let _window = self.reserve("bytes of a column chunk", &(at..end))?;
            self.out.send(read(input, at..end)?)?;
            at = end;
        }
        let by = start - i64::try_from(range.start).unwrap_or(i64::MAX);
        let moved = |offset: i64| {
            let is_inside = u64::try_from(offset).is_ok_and(|offset| range.contains(&offset));
            is_inside.then_some(offset.saturating_add(by))
        };
        let meta = old.meta_data.as_ref();
        let first_data_page = meta.and_then(|meta| moved(meta.data_page_offset));
        let dictionary_page = meta.and_then(|meta| moved(meta.dictionary_page_offset?));
        let bloom = meta.and_then(|meta| meta.bloom_filter_offset);
        let end = self.out.here()?;
        let new = relocated_chunk(old, start..end, first_data_page, dictionary_page, 0)?;
        let pages = NewPlaces::Shifted { from: range.clone(), by };
        Ok((new, CopiedChunk { origin, bloom, pages, grown: 0 }))
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

    fn reserve(&self, purpose: &'static str, range: &Range<u64>) -> Result<Reservation> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.budget.take_for(purpose, len)
    }

    /// Bloom filter and indexes of a chunk in the file that it comes from.
    fn old(&self, origin: ChunkOrigin) -> Result<OldIndexes<'_>> {
        let ChunkOrigin { row_group, leaf, .. } = origin;
        Ok(OldIndexes { input: self.file(origin.file)?, row_group, leaf, budget: &self.budget })
    }

    /// Writes bloom filters, column indexes and offset indexes, one by one.
    fn write_indexes(
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
        let mut to = IndexWriter { offset: self.out.written(), plain: Vec::new(), out: &mut out };
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

/// Bytes that are copied at a time.
const WINDOW: u64 = 4 << 20;

/// Leaves out bounds whose order the new footer does not state. The deprecated ones stay: their
/// order is always that of signed numbers.
fn forget_bounds(chunk: &mut ColumnChunk) {
    let Some(meta) = &mut chunk.meta_data else { return };
    let Some(statistics) = &mut meta.statistics else { return };
    (statistics.min_value, statistics.max_value) = (None, None);
    (statistics.is_min_value_exact, statistics.is_max_value_exact) = (None, None);
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

/// The metadata of a column chunk whose pages lie in `place` now, their headers `grown` bytes
/// longer; in plain text, and without its indexes and bloom filter, which are placed later.
///
/// # Errors
/// `Malformed` if it has no `meta_data`, or its size is less than that of its page headers.
pub(super) fn relocated_chunk(
    old: ColumnChunk,
    place: Range<i64>,
    first_data_page: Option<i64>,
    dictionary_page: Option<i64>,
    grown: i64,
) -> Result<ColumnChunk> {
    let meta = old
        .meta_data
        .ok_or_else(|| Error::malformed(Spec::Metadata("ColumnChunk"), "meta_data is missing"))?;
    let uncompressed = meta.total_uncompressed_size.checked_add(grown);
    let meta = ColumnMetaData {
        total_compressed_size: place.end - place.start,
        total_uncompressed_size: uncompressed.filter(|size| *size >= 0).ok_or_else(|| {
            let spec = Spec::Metadata("ColumnMetaData");
            let expected = "at least the bytes of the page headers";
            let found = meta.total_uncompressed_size;
            Error::mismatch(spec, "total_uncompressed_size", expected, found)
        })?,
        data_page_offset: first_data_page.unwrap_or(place.start),
        dictionary_page_offset: dictionary_page,
        index_page_offset: None,
        bloom_filter_offset: None,
        bloom_filter_length: None,
        ..meta
    };
    Ok(ColumnChunk {
        file_offset: 0,
        meta_data: Some(meta),
        offset_index_offset: None,
        offset_index_length: None,
        column_index_offset: None,
        column_index_length: None,
        crypto_metadata: None,
        encrypted_column_metadata: None,
        ..old
    })
}

/// An offset index with the new places of its pages.
pub(super) fn relocated(mut index: OffsetIndex, moved: &[MovedPage]) -> Result<OffsetIndex> {
    let (expected, found) = (moved.len(), index.page_locations.len());
    if expected != found {
        return Err(Error::mismatch(Spec::PageIndex, "pages of the offset index", expected, found));
    }
    for (location, page) in index.page_locations.iter_mut().zip(moved) {
        if u64::try_from(location.offset) != Ok(page.from) {
            let (from, found) = (page.from, location.offset);
            return Err(Error::mismatch(Spec::PageIndex, "offset of a page", from, found));
        }
        location.offset = page.to;
        location.compressed_page_size = i32::try_from(page.len)
            .map_err(|_| Error::limit(LimitKind::Page, "a page takes more than 2 GiB"))?;
    }
    Ok(index)
}
