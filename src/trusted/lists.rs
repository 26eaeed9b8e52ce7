//! [`ListOffsets`]: where lists begin among their elements.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use crate::error::Result;
use crate::memory;
use crate::simd::ops::BLOCK;

/// The offsets of lists, found block by block.
///
/// Whatever is appended, they never fall: each counts the elements before it.
pub(crate) struct ListOffsets<O> {
    offsets: Vec<O>,
    /// Elements so far.
    elements: usize,
}

impl<O: OffsetSizeTrait> ListOffsets<O> {
    /// No offsets yet, with capacity for `lists` lists.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn with_capacity(lists: usize) -> Result<Self> {
        Ok(Self { offsets: memory::vec_for(lists.saturating_add(1))?, elements: 0 })
    }

    /// Appends a block of entries: which begin a list, and which hold an element.
    #[inline(always)]
    pub(crate) fn push_block(&mut self, begins: u64, is_element: u64) {
        if begins != 0 {
            let n = begins.count_ones() as usize;
            let mut of_block = [O::default(); BLOCK];
            let mut left = begins;
            for offset in of_block.iter_mut().take(n) {
                let below = left & left.wrapping_neg();
                let before = (is_element & below.wrapping_sub(1)).count_ones() as usize;
                *offset = O::usize_as(self.elements + before);
                left &= left.wrapping_sub(1);
            }
            self.offsets.extend_from_slice(&of_block[..n]);
        }
        self.elements += is_element.count_ones() as usize;
    }

    /// The offsets, one more than there are lists; `None` if the elements are more than they can
    /// count.
    pub(crate) fn finish(mut self) -> Option<OffsetBuffer<O>> {
        self.offsets.push(O::from_usize(self.elements)?);
        // SAFETY: there is at least one offset. Each is the number of elements before it, so that
        // none is below the one before. None is negative: the last fits, and none is above it.
        Some(unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(self.offsets)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_never_fall_whatever_begins_a_list() {
        let seed = 91;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let mut lists = ListOffsets::<i32>::with_capacity(rng.usize(0..9)).unwrap();
            let (mut naive, mut elements) = (Vec::new(), 0);
            for _ in 0..rng.usize(0..5) {
                let (begins, is_element) = (rng.u64(..) & rng.u64(..), rng.u64(..));
                lists.push_block(begins, is_element);
                for bit in 0..64 {
                    if begins >> bit & 1 != 0 {
                        naive.push(elements);
                    }
                    elements += (is_element >> bit & 1) as i32;
                }
            }
            naive.push(elements);
            let offsets = lists.finish().unwrap();
            assert_eq!(offsets.as_ref(), naive, "seed {seed}");
            assert!(offsets.is_sorted() && offsets[0] >= 0);
        }
    }

    #[test]
    fn more_elements_than_offsets_count_are_refused() {
        let mut lists = ListOffsets::<i32>::with_capacity(1).unwrap();
        lists.elements = i32::MAX as usize - 1;
        lists.push_block(1, 1);
        assert_eq!(lists.finish().unwrap().as_ref(), [i32::MAX - 1, i32::MAX]);
        let mut lists = ListOffsets::<i32>::with_capacity(1).unwrap();
        lists.elements = i32::MAX as usize;
        lists.push_block(0b11, 0b11);
        assert!(lists.finish().is_none());
    }
}
