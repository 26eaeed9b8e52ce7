//! [`SortedSlots`]: how each row of a column compares with the row before it, so that the rows of a
//! row group can be compared by several columns that were decoded apart.
//!
//! Spec: `parquet.thrift`, SortingColumn. Two bits are kept for each row.

use std::cmp::Ordering;

use super::levels::{LevelShape, ValidSlots, too_many_values};
use super::order::{Comparison, LeafOrder};
use super::values::ValueBlock;
use crate::error::Result;
use crate::format::SortingColumn;
use crate::limits::{Budget, Reservation};
use crate::memory;

/// The rows of a column, compared.
pub(crate) struct SortedSlots {
    by: Comparison,
    is_descending: bool,
    nulls_first: bool,
    last: Option<Vec<u8>>,
    rows: u64,
    /// Whether a row equals the one before, and whether it must not come after it.
    equal: Vec<u64>,
    before: Vec<u64>,
    value: Vec<u8>,
    memory: Reservation,
}

impl SortedSlots {
    /// Of a column that is sorted as `sorting` says; `None` if its values have no order.
    pub(super) fn new(
        order: &LeafOrder,
        shape: &LevelShape,
        sorting: &SortingColumn,
        budget: &Budget,
    ) -> Option<Self> {
        let by = order.natural.filter(|_| shape.max_rep == 0)?;
        let memory = budget.reservation("how rows compare");
        let (equal, before, value) = (Vec::new(), Vec::new(), Vec::new());
        let &SortingColumn { descending: is_descending, nulls_first, .. } = sorting;
        let (last, rows) = (None, 0);
        Some(Self { by, is_descending, nulls_first, last, rows, equal, before, value, memory })
    }

    /// Adds the nulls of a page up to its next value.
    ///
    /// # Errors
    /// `Malformed` if there is no value left; `Limit(Memory)`.
    pub(super) fn before_value(&mut self, slots: &mut ValidSlots, order: &LeafOrder) -> Result<()> {
        loop {
            match slots.next_slot()? {
                Some(true) => return Ok(()),
                Some(false) => self.push(None, order)?,
                None => return Err(too_many_values()),
            }
        }
    }

    /// Adds the nulls after the last value of a page.
    ///
    /// # Errors
    /// As [`SortedSlots::before_value`].
    pub(super) fn after_values(&mut self, slots: &mut ValidSlots, order: &LeafOrder) -> Result<()> {
        while let Some(is_value) = slots.next_slot()? {
            if !is_value {
                self.push(None, order)?;
            }
        }
        Ok(())
    }

    /// Adds the values of a block, and the nulls between them.
    ///
    /// # Errors
    /// As [`SortedSlots::before_value`].
    pub(super) fn add(
        &mut self,
        block: ValueBlock<'_>,
        slots: &mut ValidSlots,
        order: &LeafOrder,
    ) -> Result<()> {
        let mut value = std::mem::take(&mut self.value);
        for i in 0..block.len() {
            self.before_value(slots, order)?;
            block.get(i, &mut value);
            self.push(Some(&value), order)?;
        }
        self.value = value;
        Ok(())
    }

    /// Adds a row.
    ///
    /// # Errors
    /// `Limit(Memory)`.
    pub(super) fn push(&mut self, value: Option<&[u8]>, order: &LeafOrder) -> Result<()> {
        let bit = self.rows % 64;
        if bit == 0 {
            self.memory.grow(16)?;
            memory::push(&mut self.equal, 0)?;
            memory::push(&mut self.before, 0)?;
        }
        let compared = if self.rows == 0 { None } else { self.compare(value, order) };
        let mark = match compared {
            Some(Ordering::Equal) => self.equal.last_mut(),
            Some(Ordering::Greater) => self.before.last_mut(),
            _ => None,
        };
        if let Some(word) = mark {
            *word |= 1 << bit;
        }
        match (&mut self.last, value) {
            (Some(last), Some(value)) => {
                last.clear();
                last.extend_from_slice(value);
            }
            (last, value) => *last = value.map(<[u8]>::to_vec),
        }
        self.rows += 1;
        Ok(())
    }

    /// How the last row compares with one of this value, in the order that is claimed.
    fn compare(&self, value: Option<&[u8]>, order: &LeafOrder) -> Option<Ordering> {
        let nulls = if self.nulls_first { Ordering::Less } else { Ordering::Greater };
        Some(match (&self.last, value) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => nulls,
            (Some(_), None) => nulls.reverse(),
            (Some(a), Some(b)) => {
                let found = order.compare(self.by, a, b)?;
                if self.is_descending { found.reverse() } else { found }
            }
        })
    }
}

/// The first row that must not come after the one before it, by the first column in which the two
/// differ.
pub(crate) fn first_unsorted(columns: &[&SortedSlots]) -> Option<u64> {
    let rows = columns.iter().map(|column| column.rows).min()?;
    let words = usize::try_from(rows.div_ceil(64)).unwrap_or(usize::MAX);
    for word in 0..words {
        let (mut undecided, mut wrong) = (u64::MAX, 0);
        for column in columns {
            let of = |bits: &[u64]| bits.get(word).copied().unwrap_or(0);
            wrong |= undecided & of(&column.before);
            undecided &= of(&column.equal);
        }
        if wrong != 0 {
            let row = word as u64 * 64 + u64::from(wrong.trailing_zeros());
            return Some(row).filter(|row| *row < rows);
        }
    }
    None
}
