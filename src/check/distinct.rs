//! [`DistinctValues`]: counts the distinct values of a chunk or a page.
//!
//! Values of up to 8 bytes are kept; of longer ones, 128 bits of their hashes, which never meet in
//! practice.

use std::hash::Hash;

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use twox_hash::XxHash64;

use super::values::ValueBlock;
use crate::error::Result;
use crate::limits::{Budget, Reservation};
use crate::memory;

/// A set of values.
pub(super) struct DistinctValues {
    /// Those of INT32, INT64, FLOAT and DOUBLE.
    words: HashSet<u64, RandomState>,
    others: HashSet<(u64, u64), RandomState>,
    memory: Reservation,
}

impl DistinctValues {
    pub(super) fn new(budget: &Budget) -> Self {
        let memory = budget.reservation("distinct values");
        let (words, others) = (HashSet::default(), HashSet::default());
        Self { words, others, memory }
    }

    /// Adds the values of a block.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(super) fn add(&mut self, block: ValueBlock<'_>) -> Result<()> {
        match block {
            ValueBlock::Words32(words) => {
                make_room(&mut self.words, words.len(), &mut self.memory)?;
                self.words.extend(words.iter().map(|word| u64::from(word.cast_unsigned())));
            }
            ValueBlock::Words64(words) => {
                make_room(&mut self.words, words.len(), &mut self.memory)?;
                self.words.extend(words.iter().map(|word| word.cast_unsigned()));
            }
            ValueBlock::Fixed { .. } | ValueBlock::Strings { .. } => {
                make_room(&mut self.others, block.len(), &mut self.memory)?;
                self.others.extend(block.slices().map(key));
            }
        }
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        (self.words.len() + self.others.len()) as u64
    }
}

/// Makes a set ready for `more` entries.
fn make_room<T: Eq + Hash>(
    set: &mut HashSet<T, RandomState>,
    more: usize,
    reservation: &mut Reservation,
) -> Result<()> {
    let missing = set.len() + more;
    if missing > set.capacity() {
        // An entry has a byte of control; a quarter and more is empty; the old table is copied.
        let entry = 3 * (size_of::<T>() + 1);
        reservation.resize(missing.max(2 * set.capacity()).saturating_mul(entry))?;
        set.try_reserve(more).map_err(|_| memory::none_for("distinct values"))?;
    }
    Ok(())
}

fn key(value: &[u8]) -> (u64, u64) {
    if value.len() <= 8 {
        let mut word = [0; 8];
        word.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        return (u64::from_le_bytes(word), value.len() as u64);
    }
    (XxHash64::oneshot(0, value), XxHash64::oneshot(!0, value) | 1 << 63)
}
