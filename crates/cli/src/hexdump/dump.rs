//! The spans that a dump shows.

use std::cell::RefCell;

use marquetry::Error;
use marquetry::inspect::{Inspector, Span, SpanKind, Spans};

use super::wanted::Wanted;
use crate::args::Depth;

/// The spans that are shown: made while they are printed.
pub(super) struct Dump {
    pub(super) inspector: Inspector,
    pub(super) wanted: Wanted,
    pub(super) depth: Depth,
    /// Bytes on a line.
    pub(super) width: Option<usize>,
    /// Why the spans ended early.
    pub(super) failed: RefCell<Option<Error>>,
}

impl Dump {
    /// The outermost spans.
    pub(super) fn roots(&self) -> Box<dyn Iterator<Item = marquetry::Result<Span>>> {
        self.wanted.roots(&self.inspector)
    }

    /// What was read, unless the file could not be read.
    pub(super) fn checked<T>(&self, read: marquetry::Result<T>) -> Option<T> {
        read.map_err(|error| *self.failed.borrow_mut() = Some(error)).ok()
    }

    /// Whether what is inside a span is shown.
    pub(super) fn opens(&self, span: &Span) -> bool {
        use SpanKind::{BloomFilterBits, Compressed, PageBody, Values};
        match self.depth {
            Depth::Header => !matches!(span.kind, PageBody | BloomFilterBits),
            Depth::Levels => !matches!(span.kind, Values | Compressed | BloomFilterBits),
            Depth::Values => true,
        }
    }

    pub(super) fn children(&self, span: &Span) -> Option<Spans> {
        if self.opens(span) { span.children() } else { None }
    }

    pub(super) fn decompressed(&self, span: &Span) -> Option<Spans> {
        if self.opens(span) { span.decompressed() } else { None }
    }

    pub(super) fn decrypted(&self, span: &Span) -> Option<Spans> {
        if self.opens(span) { span.decrypted() } else { None }
    }

    /// Whether the levels of pages are shown.
    pub(super) fn shows_levels(&self) -> bool {
        self.depth != Depth::Header
    }
}
