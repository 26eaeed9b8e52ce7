//! Stands in for the spans without the feature `tracing`.

/// Stands in for a span.
pub(crate) struct NoSpan;

#[inline(always)]
pub(crate) fn open() -> NoSpan {
    NoSpan
}

#[inline(always)]
pub(crate) fn plan(_row_groups: usize) -> NoSpan {
    NoSpan
}

#[inline(always)]
pub(crate) fn row_group(_index: usize, _rows: u64) -> NoSpan {
    NoSpan
}

#[inline(always)]
pub(crate) fn decode(_row_group: usize) -> NoSpan {
    NoSpan
}

#[inline(always)]
pub(crate) fn write_row_group(_index: usize, _rows: u64) -> NoSpan {
    NoSpan
}

#[inline(always)]
pub(crate) fn finish(_row_groups: usize) -> NoSpan {
    NoSpan
}
