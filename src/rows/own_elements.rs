//! The elements of lists that a slice of them reaches.

use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

/// The elements that the offsets of lists reach, and the offsets into these.
pub(crate) fn own_elements<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &ArrayRef,
) -> (OffsetBuffer<O>, ArrayRef) {
    let zero = O::usize_as(0);
    // As a slice: the buffer has methods of these names of its own in Arrow 60.
    let ends: &[O] = offsets;
    let first = ends.first().copied().unwrap_or(zero);
    let end = ends.last().copied().unwrap_or(zero).as_usize();
    let values = values.slice(first.as_usize(), end - first.as_usize());
    if first == zero {
        return (offsets.clone(), values);
    }
    let from_zero: Vec<O> = offsets.iter().map(|offset| *offset - first).collect();
    (OffsetBuffer::new(ScalarBuffer::from(from_zero)), values)
}
