//! [`DistinctValues`]: counts the distinct values of a chunk or a page.
//!
//! Values of up to 8 bytes are kept; of longer ones, 128 bits of their hashes, which never meet in
//! practice.

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use twox_hash::XxHash64;

use super::values::ValueBlock;
use crate::error::Result;
use crate::limits::{Budget, Reservation};

/// A set of values.
pub(super) struct DistinctValues {
    seen: HashSet<(u64, u64), RandomState>,
    memory: Reservation,
}

impl DistinctValues {
    pub(super) fn new(budget: &Budget) -> Self {
        let memory = budget.reservation("distinct values");
        Self { seen: HashSet::with_hasher(RandomState::default()), memory }
    }

    /// Adds the values of a block.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(super) fn add(&mut self, block: ValueBlock<'_>) -> Result<()> {
        /// Of an entry, with the share of what is empty, and of a table that is being copied.
        const ENTRY: usize = 3 * (size_of::<(u64, u64)>() + 1);
        let missing = self.seen.len() + block.len();
        if missing > self.seen.capacity() {
            self.memory.resize(missing.max(2 * self.seen.capacity()).saturating_mul(ENTRY))?;
        }
        block.each(|value| {
            self.seen.insert(key(value));
        });
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        self.seen.len() as u64
    }
}

fn key(value: &[u8]) -> (u64, u64) {
    if value.len() <= 8 {
        let mut word = [0; 8];
        word.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        return (u64::from_le_bytes(word), value.len() as u64);
    }
    (XxHash64::oneshot(0, value), XxHash64::oneshot(!0, value) | 1 << 63)
}
