//! Makes spans for the subscribers of `tracing`.

use tracing::span::EnteredSpan;
use tracing::{debug_span, trace_span};

/// A file is opened: its footer is fetched and parsed.
pub(crate) fn open() -> EnteredSpan {
    debug_span!(target: "marquetry", "open").entered()
}

/// The span of planning a read.
pub(crate) fn plan(row_groups: usize) -> EnteredSpan {
    debug_span!(target: "marquetry", "plan", row_groups).entered()
}

/// A row group is fetched, as far as it is wanted.
pub(crate) fn row_group(index: usize, rows: u64) -> EnteredSpan {
    debug_span!(target: "marquetry", "row_group", index, rows).entered()
}

/// Batches are decoded, from this row group on.
pub(crate) fn decode(row_group: usize) -> EnteredSpan {
    trace_span!(target: "marquetry", "decode", row_group).entered()
}

/// A row group that was encoded is written.
pub(crate) fn write_row_group(index: usize, rows: u64) -> EnteredSpan {
    debug_span!(target: "marquetry", "write_row_group", index, rows).entered()
}

/// The end of a file is written: indexes and footer.
pub(crate) fn finish(row_groups: usize) -> EnteredSpan {
    debug_span!(target: "marquetry", "finish", row_groups).entered()
}
