//! [`Wanted`]: the part of the file that is shown.

use std::ops::Range;

use marquetry::inspect::{Inspector, Span, SpanKind};
use marquetry::{Error, Result};

use crate::args::{Hexdump, PageOfChunk};

/// The part of the file that is shown.
pub(super) struct Wanted {
    start: Start,
    /// The bytes that are shown; all if none are given.
    at: Option<Range<u64>>,
    /// Whether these, and not the whole of what they lie in, are shown of a leaf.
    is_exact: bool,
}

/// Where the spans begin.
enum Start {
    File,
    Footer,
    Page(Box<Span>),
}

impl Wanted {
    /// # Errors
    /// `Usage` if there is no such page or no such byte; why the page cannot be found.
    pub(super) fn new(command: &Hexdump, inspector: &Inspector) -> Result<Self> {
        let start = match &command.page {
            Some(page) => Start::Page(Box::new(find(page, inspector)?)),
            None if command.footer => Start::Footer,
            None => Start::File,
        };
        let at = command.at.map(|(offset, len)| offset..offset.saturating_add(len.unwrap_or(1)));
        if let Some(range) = at.as_ref().filter(|range| range.start >= inspector.file_len()) {
            let (start, bytes) = (range.start, inspector.file_len());
            return Err(Error::usage(format_args!("--at {start}: the file has {bytes} bytes")));
        }
        Ok(Self { start, at, is_exact: command.at.is_some_and(|(_, len)| len.is_some()) })
    }

    pub(super) fn roots(
        &self,
        inspector: &Inspector,
    ) -> Box<dyn Iterator<Item = marquetry::Result<Span>>> {
        match &self.start {
            Start::File => Box::new(inspector.spans()),
            Start::Footer => Box::new(inspector.footer()),
            Start::Page(page) => Box::new(std::iter::once(Ok((**page).clone()))),
        }
    }

    /// Whether a span of the file has a byte that is shown.
    pub(super) fn has(&self, span: &Span) -> bool {
        self.at.as_ref().is_none_or(|at| span.offset < at.end && at.start < span.end())
    }

    /// The bytes of a leaf that are shown.
    pub(super) fn part(&self, span: &Span) -> Range<u64> {
        let all = span.offset..span.end();
        match self.at.as_ref().filter(|_| self.is_exact) {
            Some(at) => all.start.max(at.start)..all.end.min(at.end),
            None => all,
        }
    }
}

/// The page that is asked for.
fn find(page: &PageOfChunk, inspector: &Inspector) -> Result<Span> {
    let PageOfChunk { row_group, column, number } = page;
    let Some(footer) = inspector.metadata() else {
        // Fails with what is wrong with the footer.
        return inspector.column_chunk(*row_group, 0);
    };
    let schema = footer.schema();

    let is_it =
        |leaf: &usize| schema.leaf_node(*leaf).is_ok_and(|node| node.path().dotted() == *column);
    let leaf = (0..schema.leaves_len()).find(is_it).or_else(|| column.parse().ok());
    let leaf = leaf.filter(|leaf| *leaf < schema.leaves_len()).ok_or_else(|| {
        let text = format_args!("--page: there is no column {column:?}; marq schema lists them");
        Error::usage(text)
    })?;
    if *row_group >= footer.row_groups() {
        let text = format_args!("--page: the file has {} row groups", footer.row_groups());
        return Err(Error::usage(text));
    }
    let chunk = inspector.column_chunk(*row_group, leaf)?;
    let pages = chunk.children().into_iter().flatten();
    let mut count = 0usize;
    for span in pages {
        let span = span?;
        let is_dictionary = span.kind == SpanKind::DictionaryPage;
        if span.page == *number && (number.is_some() || is_dictionary) {
            return Ok(span);
        }
        count += usize::from(span.page.is_some());
    }
    let which = number.map_or("dictionary page".to_owned(), |number| format!("page {number}"));
    let text = format_args!("--page: there is no {which}; the column chunk has {count} data pages");
    Err(Error::usage(text))
}
