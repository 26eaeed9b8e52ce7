//! Recomputes what a file states, and reports each lie with its place.
//!
//! [`Checker`] goes as far as its [`CheckLevel`] says: what the footer says by itself, pages and
//! indexes, values, and at last all statistics. A [`Finding`] has a kind with a stable name, what
//! is stated, what was found, and where. What contradicts the specification or the file itself is
//! an error ([`FindingKind::severity`]); what is deprecated is a note.
//!
//! The file is read once. A column chunk is checked by one thread, page by page, and of its values
//! none is kept, so that the memory is that of the largest page and dictionary. Where that exceeds
//! [`Limits::memory_bytes`](crate::Limits::memory_bytes), the chunk is checked again while no other
//! is, and if it does not fit then, a finding says so ([`FindingKind::NotChecked`]).
//!
//! It is behind a feature of its own, because it decodes every encoding and validates every type
//! once more, which programs that read or write do not need.

mod kind;
mod finding;
mod context;
mod order;
mod values;
mod rules;
mod facts;
mod boxes;
mod siblings;
mod levels;
mod sorting;
mod distinct;
mod statistics;
mod page_index;
mod chunk_metadata;
mod page_kinds;
mod survey;
mod pages;
mod sibling_rows;
mod filter;
mod column;
mod verify;
mod surveyor;
mod groups;
mod geo_key;
mod summary;
mod footer;
mod schema;
mod checker;

pub use checker::{CheckReport, Checker};
pub(crate) use column::{check_header, encoding_fits, encoding_of};
pub use finding::{CheckLevel, Finding};
pub use kind::{FindingKind, Severity};
pub(crate) use page_kinds::PageKinds;
pub(crate) use sorting::{SortedSlots, first_unsorted};
pub(crate) use survey::{ChunkSurvey, SurveyRequest, signed};
pub(crate) use surveyor::{Surveyor, VisitedPage};
pub(crate) use verify::{ChunkVerdict, ChunkVerifier};
