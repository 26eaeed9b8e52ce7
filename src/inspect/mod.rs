//! A file as a tree of spans: every byte explained.
//!
//! [`Inspector`] gives the parts of a file in the order of their bytes, from the magic number to
//! the last one, without a gap: pages, bloom filters, indexes, the footer, and what lies between
//! them. Each is a [`Span`], which says what is inside it when it is asked: the fields of a header,
//! the runs of levels, the values. So a file of any size is begun at once, and no more of it is
//! held than one page. What cannot be parsed is a span that says why, and what stands after it goes
//! on.
//!
//! | of a span | tiles |
//! |---|---|
//! | [`Span::children`] | its bytes |
//! | [`Span::decompressed`] | what its bytes decompress to, with offsets of their own |
//! | [`Span::decrypted`] | what its bytes decrypt to, with offsets of their own |
//!
//! What each [`SpanKind`] is, its documentation says. Bytes that are claimed twice belong to the
//! claim that begins first; the others are [`Span::references`] of it. Where the runs and the
//! blocks of an encoding lie, its decoder says. `marq hexdump` prints all of it.

mod memory;
mod value;
mod span;
mod metadata;
mod runs;
mod levels;
mod module;
mod delta;
mod vectors;
mod values;
mod page;
mod chunk;
mod bloom;
mod regions;
mod sealed;
mod file;

pub use file::Inspector;
pub use span::{
    FieldOfMetadata, PageChecksum, PageHeaderSpan, Reference, Slot, Slots, Span, SpanBytes,
    SpanKind, Spans,
};
pub use value::{Items, Text, Value};
