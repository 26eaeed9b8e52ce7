//! [`ColumnMemory`] counts what the arrays, the pages and the dictionary of a leaf take of the
//! memory of a read.

use std::sync::Arc;

use crate::bytes::saturated;
use crate::error::Result;
use crate::limits::{Budget, Reservation};
use crate::read::window::Weight;

/// Counts the bytes that a column reader holds.
pub(super) struct ColumnMemory {
    budget: Budget,
    /// The array that is being built.
    array: Reservation,
    /// Pages that were closed and that this array points into.
    pub(super) adopted: Reservation,
    /// The dictionary page, and its decoded form; `None` before it is set.
    pub(super) dictionary: Option<Arc<Reservation>>,
    /// Bytes of the batch that is being made, all of its columns counted.
    batch: Weight,
    /// Bytes that this batch may hold at most.
    max_batch: u64,
    /// Bytes of `batch` that this leaf has added.
    counted: u64,
}

impl ColumnMemory {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            array: budget.reservation("the arrays of a batch"),
            adopted: budget.reservation("pages that string views point into"),
            dictionary: None,
            batch: Weight::default(),
            max_batch: u64::MAX,
            counted: 0,
        }
    }

    /// The budget of the memory.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Starts a batch: values that are decoded next are counted in `batch`, up to `max` bytes.
    pub(super) fn begin_batch(&mut self, batch: &Weight, max: u64) {
        self.batch = batch.clone();
        self.max_batch = max;
    }

    /// Bytes that the array may grow to.
    pub(super) fn capacity(&self) -> usize {
        let left = self.budget.cap().saturating_sub(self.budget.used());
        let left = left.saturating_add(self.array.bytes());
        let others = self.batch.bytes().saturating_sub(self.counted);
        saturated(left.min(self.max_batch.saturating_sub(others)))
    }

    /// Counts a page that was closed and that this array points into.
    pub(super) fn count_page(&self, bytes: usize) {
        self.batch.add_page(bytes as u64);
    }

    /// Reserves what the array holds now, and counts it in the batch.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget does not suffice for it, or the batch is too large.
    pub(super) fn set_array_bytes(&mut self, bytes: usize) -> Result<()> {
        // Most pages change nothing: memory for all rows was taken before the first.
        if self.array.bytes() == bytes as u64 && self.counted == bytes as u64 {
            return Ok(());
        }
        self.array.resize(bytes)?;
        let before = std::mem::replace(&mut self.counted, bytes as u64);
        self.batch.change(before, bytes as u64, self.max_batch)
    }

    /// Takes the memory of the finished array, and of the pages that it points into. The
    /// `still_held` bytes that the value reader keeps for the next array stay reserved.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget does not suffice for that.
    pub(super) fn take_array(&mut self, still_held: usize) -> Result<Reservation> {
        let mut memory = self.array.split_off();
        memory.absorb(self.adopted.split_off());
        self.array.resize(still_held)?;
        self.counted = 0;
        Ok(memory)
    }
}
