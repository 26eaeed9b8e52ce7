//! What the parts of a file are, from its footer: chunks, filters, indexes, in the order of their
//! bytes, and what lies between them.
//!
//! Spec: README.md, "File format". Trap: nothing keeps two claims from sharing bytes. The one that
//! begins first has them; of two that begin together, the first in the footer.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::bloom;
use super::chunk::{self, MetadataCopy};
use super::memory;
use super::metadata::{self, Context};
use super::module;
use super::page::ChunkContext;
use super::span::{Cutter, Reference, Span, SpanKind, Spans};
use super::value::ShownColumn;
use crate::crypt::Module;
use crate::error::{ErrorKind, Result};
use crate::format::{ColumnChunkRef, ColumnIndex, OffsetIndex};
use crate::io::Source;
use crate::limits::{Budget, Limits, Reservation};
use crate::page::PageContext;
use crate::read::{Footer, chunk_range};

/// A claim of the footer on bytes of the file.
#[derive(Debug, Clone, Copy)]
struct Region {
    start: u64,
    /// Where it ends; the same as `start` if the footer does not say.
    end: u64,
    row_group: u32,
    leaf: u32,
    kind: SpanKind,
}

impl Region {
    /// Regions are in the order of their bytes, and else in that of the footer.
    fn order(&self) -> (u64, u32, u32, u8) {
        let kind = match self.kind {
            SpanKind::ColumnChunk => 0,
            SpanKind::BloomFilter => 1,
            SpanKind::ColumnIndex => 2,
            _ => 3,
        };
        (self.start, self.row_group, self.leaf, kind)
    }
}

/// The file as far as its footer describes it.
pub(super) struct File {
    pub(super) source: Arc<dyn Source>,
    pub(super) footer: Footer,
    pub(super) file_len: u64,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
}

/// The regions between the magic number and the footer.
pub(super) struct Regions {
    file: Arc<File>,
    regions: Vec<Region>,
    next: usize,
    /// Where the last one ended.
    at: u64,
    /// Where the footer begins.
    end: u64,
    /// The column chunk that ended there, if it was one.
    chunk: Option<Arc<ChunkContext>>,
    /// The dotted paths of leaves: claims share them, because a path may be long, and a leaf has
    /// many claims.
    paths: Vec<Option<Arc<str>>>,
    /// Counts all of it, and the references that regions become.
    memory: Reservation,
}

impl Regions {
    /// The regions from `start` to `end`, where the footer begins.
    ///
    /// # Errors
    /// `Limit(Memory)` if there are too many.
    pub(super) fn new(file: &Arc<File>, bytes: Range<u64>) -> Result<Self> {
        let (row_groups, leaves) = (file.footer.row_groups(), file.footer.schema().leaves_len());
        /// Chunk, filter, two indexes.
        const CLAIMS: usize = 4;
        let most = row_groups.saturating_mul(leaves).saturating_mul(CLAIMS);
        let len = most.saturating_mul(size_of::<Region>());
        let len = len.saturating_add(leaves.saturating_mul(size_of::<Option<Arc<str>>>()));
        let memory = file.budget.take_for("the list of the regions", len)?;
        let paths = crate::memory::filled(None, leaves)?;
        let mut regions = Vec::new();
        for row_group in 0..row_groups {
            for leaf in 0..leaves {
                // What is wrong with a chunk, the footer shows; its bytes are not known then.
                let Ok(chunk) = file.footer.column_chunk_ref(row_group, leaf) else { continue };
                claims(file, &chunk, row_group, leaf, &mut regions)?;
            }
        }
        // Of those that begin together, the first in the footer comes first.
        regions.sort_unstable_by_key(Region::order);
        let Range { start: at, end } = bytes;
        Ok(Self { file: file.clone(), regions, next: 0, at, end, chunk: None, paths, memory })
    }

    /// The claims on bytes of `claimed`, or before them, that are not their first.
    ///
    /// # Errors
    /// `Limit(Memory)` if there are too many.
    pub(super) fn references(&mut self, claimed: &Range<u64>) -> Result<Vec<Reference>> {
        let later = self.regions.get(self.next..).unwrap_or_default();
        let n = later.partition_point(|region| region.start < claimed.end);
        self.memory.grow(n.saturating_mul(size_of::<Reference>()))?;
        let mut out = crate::memory::vec_for(n)?;
        for at in self.next..self.next + n {
            let Some(region) = self.regions.get(at).copied() else { break };
            out.push(self.reference(region));
        }
        self.next += n;
        Ok(out)
    }

    fn reference(&mut self, region: Region) -> Reference {
        Reference {
            offset: region.start,
            length: region.end.saturating_sub(region.start),
            kind: region.kind,
            row_group: Some(region.row_group as usize),
            // Without it where there is no memory for it.
            column: self.path(region.leaf as usize).ok(),
        }
    }

    /// The dotted path of a leaf.
    ///
    /// # Errors
    /// `Limit(Memory)`; `Usage` if there is no such leaf.
    fn path(&mut self, leaf: usize) -> Result<Arc<str>> {
        if let Some(Some(path)) = self.paths.get(leaf) {
            return Ok(path.clone());
        }
        let path = self.file.footer.schema().leaf_node(leaf)?.path().dotted();
        self.memory.grow(path.len())?;
        let path: Arc<str> = path.into();
        if let Some(known) = self.paths.get_mut(leaf) {
            *known = Some(path.clone());
        }
        Ok(path)
    }

    /// The next region, or what lies before it; `None` where the footer begins.
    pub(super) fn next_span(&mut self) -> Result<Option<Span>> {
        while self.at < self.end {
            let Some(region) = self.regions.get(self.next).copied() else {
                return self.gap(self.end).map(Some);
            };
            if region.start > self.at {
                return self.gap(region.start.min(self.end)).map(Some);
            }
            self.next += 1;
            let context = match self.context(region) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                context => context,
            };
            let end = match &context {
                Ok(context) if region.end == region.start => {
                    // Its own header says where it ends; at the latest where something else begins.
                    let later = self.regions.get(self.next..).unwrap_or_default().iter();
                    let next = later.map(|other| other.start).find(|start| *start > region.start);
                    let max = next.unwrap_or(self.end).min(self.end) - region.start;
                    region.start + bloom::stated_len(context, region.start, max)?
                }
                _ => region.end.min(self.end),
            };
            if end <= region.start {
                continue;
            }
            let range = region.start..end;
            let mut span = match &context {
                Ok(context) => describe(context, region.kind, range.clone()),
                Err(error) => {
                    let kind = SpanKind::Unparsed;
                    let span = Span::in_file(&self.file.source, range.clone(), kind, "unparsed");
                    span.with_text(format!("{}: {}", region.kind, error.message()))
                }
            };
            self.at = end;
            self.chunk = context.ok().filter(|_| region.kind == SpanKind::ColumnChunk);
            span.references = self.references(&range)?;
            return Ok(Some(span));
        }
        Ok(None)
    }

    /// What nothing in the footer refers to, up to `end`.
    fn gap(&mut self, end: u64) -> Result<Span> {
        if let Some(chunk) = self.chunk.take()
            && let Some(copy) = MetadataCopy::find(&chunk, self.at, end - self.at)?
        {
            self.at = copy.end();
            return Ok(copy.describe(&chunk));
        }
        let range = self.at..end;
        self.at = end;
        let span = Span::in_file(&self.file.source, range, SpanKind::Gap, "gap");
        Ok(span.with_text("nothing in the footer refers to these bytes"))
    }

    /// The context that explains the region.
    fn context(&mut self, region: Region) -> Result<Arc<ChunkContext>> {
        let (row_group, leaf) = (region.row_group as usize, region.leaf as usize);
        let range = region.start..region.end.min(self.end);
        let path = self.path(leaf)?;
        let column = ShownColumn::with_path(&self.file.footer, leaf, path)?;
        self.file.chunk_context(row_group, column, range).map(Arc::new)
    }
}

impl File {
    fn chunk_context(
        &self,
        row_group: usize,
        column: ShownColumn,
        range: Range<u64>,
    ) -> Result<ChunkContext> {
        let (footer, leaf) = (&self.footer, column.leaf.index);
        let chunk = footer.column_chunk_ref(row_group, leaf)?;
        let codec = chunk.meta_data.as_ref().map(|meta| meta.codec).unwrap_or_default();
        let mut page: PageContext = footer.page_context(&column.leaf, codec, &self.limits);
        page.decryptor = match footer.chunk_decryptor(row_group, leaf, &chunk) {
            Ok(decryptor) => decryptor,
            Err(error) if error.kind() == ErrorKind::Crypto => None,
            Err(error) => return Err(error),
        };
        Ok(ChunkContext {
            source: self.source.clone(),
            budget: self.budget.clone(),
            column: Arc::new(column),
            row_group,
            range,
            page,
            is_encrypted: chunk.is_encrypted(),
            has_ctr_pages: footer.has_unauthenticated_pages(),
            dictionary: OnceLock::new(),
        })
    }

    /// The pages of a chunk.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Unsupported` if it lies in another file, or whatever is
    /// wrong with its metadata.
    pub(super) fn chunk(&self, row_group: usize, leaf: usize) -> Result<Span> {
        let chunk = self.footer.column_chunk_ref(row_group, leaf)?;
        chunk.check_is_here()?;
        let range = chunk_range(&self.footer, self.file_len, row_group, leaf, &chunk)?;
        let column = ShownColumn::new(&self.footer, leaf)?;
        let context = self.chunk_context(row_group, column, range)?;
        Ok(chunk::describe(&Arc::new(context)))
    }
}

/// The claims of a chunk.
fn claims(
    file: &File,
    chunk: &ColumnChunkRef<'_>,
    row_group: usize,
    leaf: usize,
    out: &mut Vec<Region>,
) -> Result<()> {
    let place = (u32::try_from(row_group).unwrap_or(u32::MAX), u32::try_from(leaf));
    let (row_group_index, leaf_index) = (place.0, place.1.unwrap_or(u32::MAX));
    let mut push = |kind, start: u64, end: u64| {
        let region = Region { start, end, row_group: row_group_index, leaf: leaf_index, kind };
        crate::memory::push(out, region)
    };
    let is_here = chunk.file_path.is_none_or(str::is_empty);
    if !is_here {
        return Ok(());
    }
    let number = |number: Option<i64>| u64::try_from(number?).ok();
    if let Ok(range) = chunk_range(&file.footer, file.file_len, row_group, leaf, chunk)
        && !range.is_empty()
    {
        push(SpanKind::ColumnChunk, range.start, range.end)?;
    }
    if let Some(meta) = &chunk.meta_data
        && let Some(start) = number(meta.bloom_filter_offset)
    {
        let len = number(meta.bloom_filter_length.map(i64::from)).unwrap_or(0);
        push(SpanKind::BloomFilter, start, start.saturating_add(len))?;
    }
    for (kind, offset, length) in [
        (SpanKind::ColumnIndex, chunk.column_index_offset, chunk.column_index_length),
        (SpanKind::OffsetIndex, chunk.offset_index_offset, chunk.offset_index_length),
    ] {
        if let (Some(start), Some(len)) = (number(offset), number(length.map(i64::from)))
            && len > 0
        {
            push(kind, start, start.saturating_add(len))?;
        }
    }
    Ok(())
}

fn describe(context: &Arc<ChunkContext>, kind: SpanKind, range: Range<u64>) -> Span {
    match kind {
        SpanKind::ColumnChunk => chunk::describe(context),
        SpanKind::BloomFilter => bloom::describe(context, range),
        _ => index(context, kind, range),
    }
}

/// A column index or an offset index.
fn index(context: &Arc<ChunkContext>, kind: SpanKind, range: Range<u64>) -> Span {
    let (name, module) = match kind {
        SpanKind::ColumnIndex => ("column index", Module::ColumnIndex),
        _ => ("offset index", Module::OffsetIndex),
    };
    let of = Context::of_column(&context.column);
    let fields = move |cutter| match kind {
        SpanKind::ColumnIndex => metadata::fields::<ColumnIndex>(cutter, of.clone()),
        _ => metadata::fields::<OffsetIndex>(cutter, of.clone()),
    };
    let span = context.span(range.clone(), kind, name);
    if !context.is_encrypted {
        return context.with_parts(span, fields);
    }
    let span = context.with_parts(span, |cutter| module::parts(cutter, true));
    let Some(opener) = context.opener(module) else {
        return span.with_text("encrypted; its key is not known");
    };
    let context = context.clone();
    let load = move || memory::read(&*context.source, range.clone(), &context.budget);
    span.with_decrypted(move || match load().and_then(|bytes| opener.open(&bytes)) {
        Ok(plain) => fields(Cutter::new(plain, 0)),
        Err(error) if error.kind() == ErrorKind::Io => Spans::failed(error),
        Err(error) => module::no_bytes(&error),
    })
}
