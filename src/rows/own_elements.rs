//! The elements of lists that a slice of them reaches.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

/// Which elements the offsets of lists reach.
pub(super) fn own_range<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Range<usize> {
    // As a slice: the buffer has methods of these names of its own in Arrow 60.
    let ends: &[O] = offsets;
    let at = |end: Option<&O>| end.map_or(0, |end| end.as_usize());
    at(ends.first())..at(ends.last())
}

/// The elements that the offsets of lists reach, and the offsets into these.
pub(crate) fn own_elements<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &ArrayRef,
) -> (OffsetBuffer<O>, ArrayRef) {
    let Range { start, end } = own_range(offsets);
    let values = values.slice(start, end - start);
    if start == 0 {
        return (offsets.clone(), values);
    }
    let first = O::usize_as(start);
    let from_zero: Vec<O> = offsets.iter().map(|offset| *offset - first).collect();
    (OffsetBuffer::new(ScalarBuffer::from(from_zero)), values)
}
