//! The pages of a column chunk, one after the other: only their headers are read.
//!
//! Spec: README.md, "Column chunks". Trap: a header says where the next page begins, so what stands
//! after a header that is broken cannot be told apart.

use std::ops::Range;
use std::sync::Arc;

use super::memory::{MIN_READ, ReadAhead};
use super::metadata::{self, Context};
use super::module::{self, LENGTH_LEN};
use super::page::{self, ChunkContext, PageExtent};
use super::span::{Span, SpanKind, Spans};
use crate::error::{ErrorKind, Result};
use crate::format::{ColumnChunk, ColumnMetaData, PageType};
use crate::page::{PagePosition, StoredHeader};
use crate::thrift::{Read, ThriftReader};

/// The pages of a chunk, as a span.
pub(super) fn describe(context: &Arc<ChunkContext>) -> Span {
    let range = context.range.clone();
    let span = context.span(range, SpanKind::ColumnChunk, context.column.path.to_string());
    let codec = context.page.codec;
    let physical = context.column.leaf.physical;
    let context = context.clone();
    span.with_text(format!("{physical}, {codec}")).with_children(move || {
        Spans::new(PageSpans {
            at: context.range.start,
            ahead: ReadAhead::new(&context.source, &context.budget, context.range.end),
            context: context.clone(),
            data_pages: 0,
            pages: 0,
            is_done: false,
        })
    })
}

/// A copy of the metadata of a chunk, as older writers put it after the pages of the chunk.
#[derive(Debug, Clone)]
pub(super) struct MetadataCopy {
    range: Range<u64>,
    /// Whether it is a `ColumnChunk`, not the `ColumnMetaData` in it.
    is_chunk: bool,
}

impl MetadataCopy {
    /// The copy at `start`, of at most `max` bytes, if there is one.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn find(context: &ChunkContext, start: u64, max: u64) -> Result<Option<Self>> {
        /// Bounds of values are in it.
        const MAX_COPY: u64 = 64 << 10;
        let bytes = context.source.read(start..start + max.min(MAX_COPY))?;
        let mut reader = ThriftReader::new(&bytes);
        let is_chunk = ColumnChunk::read(&mut reader).is_ok_and(|copy| copy.meta_data.is_some());
        if !is_chunk {
            reader = ThriftReader::new(&bytes);
            if ColumnMetaData::read(&mut reader).is_err() {
                return Ok(None);
            }
        }
        let range = start..start + reader.position() as u64;
        Ok(Some(Self { range, is_chunk }))
    }

    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.range.end
    }

    pub(super) fn describe(&self, context: &Arc<ChunkContext>) -> Span {
        let Self { range, is_chunk } = self.clone();
        let span = context.span(range, SpanKind::Struct, "copy of the metadata");
        let name = if is_chunk { "ColumnChunk" } else { "ColumnMetaData" };
        let (span, of) = (
            span.with_text(format!("{name}, as the footer has it")),
            Context::of_column(&context.column),
        );
        context.with_parts(span, move |cutter| match is_chunk {
            true => metadata::fields::<ColumnChunk>(cutter, of.clone()),
            false => metadata::fields::<ColumnMetaData>(cutter, of.clone()),
        })
    }
}

struct PageSpans {
    context: Arc<ChunkContext>,
    /// Where the next page begins.
    at: u64,
    data_pages: usize,
    pages: usize,
    /// The bytes of the chunk, to find headers in.
    ahead: ReadAhead,
    is_done: bool,
}

/// No header is longer: statistics of a page are bounds of values.
const MAX_HEADER: u64 = 16 << 20;

impl PageSpans {
    fn next_page(&mut self) -> Result<Span> {
        if self.context.is_encrypted && self.context.page.decryptor.is_none() {
            return self.sealed_page();
        }
        let is_first = self.pages == 0;
        let position = PagePosition { is_first, data_pages: self.data_pages };
        // Whatever is left of what was read before is tried first.
        let mut len = 1;
        let (bytes, stored) = loop {
            let bytes = self.ahead.bytes_from(self.at, len)?;
            let stored = self.context.read_header(&bytes, position);
            let found = bytes.len() as u64;
            let is_all = self.at.saturating_add(found) >= self.context.range.end;
            match stored {
                Err(_) if !is_all && found < MAX_HEADER => {
                    len = found.saturating_mul(4).max(MIN_READ);
                }
                Err(error) => {
                    let max = self.context.range.end - self.at;
                    let copy = match self.data_pages {
                        0 => None,
                        _ => MetadataCopy::find(&self.context, self.at, max)?,
                    };
                    let Some(copy) = copy else { return Ok(self.unparsed(error.message())) };
                    self.at = copy.end();
                    return Ok(copy.describe(&self.context));
                }
                Ok(stored) => break (bytes, stored),
            }
        };
        let StoredHeader { header, len: header_len, .. } = &stored;
        let body = u64::try_from(header.compressed_page_size).ok();
        let start = self.at.saturating_add(*header_len as u64);
        let end = body.and_then(|body| start.checked_add(body));
        let Some(end) = end.filter(|end| *end <= self.context.range.end) else {
            let why = format!(
                "a page of {} bytes, with {} left of the column chunk",
                header.compressed_page_size,
                self.context.range.end.saturating_sub(start)
            );
            return Ok(self.unparsed(&why));
        };
        let is_data = matches!(header.r#type, PageType::DataPage | PageType::DataPageV2);
        let number = is_data.then_some(self.data_pages);
        self.data_pages += usize::from(is_data);
        self.pages += 1;
        let header = bytes.slice(..(*header_len).min(bytes.len()));
        let place = PageExtent { offset: self.at, header, end, number };
        self.at = end;
        Ok(page::describe(&self.context, place, &stored))
    }

    /// A page whose key is not known: two modules.
    fn sealed_page(&mut self) -> Result<Span> {
        let at = self.at;
        let left = self.context.range.end.saturating_sub(at);
        let mut ends = Vec::new();
        let mut next = at;
        for _ in 0..2 {
            let head = self.ahead.bytes_from(next, LENGTH_LEN as u64)?;
            let len = head.first_chunk().map(|len| u64::from(u32::from_le_bytes(*len)));
            let end = len.and_then(|len| next.checked_add(len)?.checked_add(LENGTH_LEN as u64));
            match end.filter(|end| *end <= self.context.range.end) {
                Some(end) => next = end,
                None => {
                    let why = format!("no encrypted page, with {left} bytes left");
                    return Ok(self.unparsed(&why));
                }
            }
            ends.push(next);
        }
        self.at = next;
        self.pages += 1;
        let context = self.context.clone();
        let name = format!("encrypted page {}", self.pages - 1);
        let span = context.span(at..next, SpanKind::OtherPage, name);
        let middle = ends.first().copied().unwrap_or(next);
        Ok(span.with_text("encrypted; its key is not known").with_children(move || {
            let parts = [
                (at..middle, SpanKind::PageHeader, "page header", true),
                (middle..next, SpanKind::PageBody, "page body", !context.has_ctr_pages),
            ];
            let context = context.clone();
            Spans::infallible(parts.into_iter().map(move |(range, kind, name, has_tag)| {
                let span = Span::in_file(&context.source, range, kind, name);
                context.with_parts(span, move |cutter| module::parts(cutter, has_tag))
            }))
        }))
    }

    /// The rest of the chunk.
    fn unparsed(&mut self, why: &str) -> Span {
        self.is_done = true;
        let range = self.at..self.context.range.end;
        let span = Span::in_file(&self.context.source, range, SpanKind::Unparsed, "unparsed");
        span.with_text(why.to_owned())
    }
}

impl Iterator for PageSpans {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done || self.at >= self.context.range.end {
            return None;
        }
        let found = self.next_page();
        match &found {
            Err(error) if error.kind() != ErrorKind::Io => {
                let why = error.message().to_owned();
                Some(Ok(self.unparsed(&why)))
            }
            Err(_) => {
                self.is_done = true;
                Some(found)
            }
            Ok(_) => Some(found),
        }
    }
}
