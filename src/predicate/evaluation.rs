//! [`Evaluation`]: what evaluating a predicate on a batch learns, and the memory that it may take.

use super::learn::AdaptiveStats;
use crate::bytes::saturated;
use crate::error::{Error, LimitKind, Result};
use crate::limits::{Budget, Growth, Reservation};

/// The measurements and the memory that a predicate is evaluated with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluation<'a> {
    pub(crate) adaptive: &'a AdaptiveStats,
    /// Counts what is copied for the evaluation; `None` if nothing limits it.
    pub(crate) budget: Option<&'a Budget>,
}

/// Copies that exist at a time while strings are changed: a string builder that may be twice as
/// large as the values, and one value more.
pub(super) const BUILT: usize = 3;

/// Maximum bytes of the values that are copied: with 32-bit offsets there is room for twice as
/// many, which small letters of other widths may take.
const MAX_COPIED: u64 = 1 << 30;

impl<'a> Evaluation<'a> {
    pub(crate) fn new(adaptive: &'a AdaptiveStats, budget: Option<&'a Budget>) -> Self {
        Self { adaptive, budget }
    }

    /// Memory for copies of nothing yet.
    pub(super) fn copies(self) -> Copies {
        Copies { bytes: 0, reservation: self.budget.map(|budget| budget.reservation(PURPOSE)) }
    }

    /// Counts what is put together for the evaluation.
    pub(super) fn growth(self) -> Growth {
        match self.budget {
            Some(budget) => Growth::counted(budget.reservation(PURPOSE)),
            None => Growth::Uncounted,
        }
    }
}

const PURPOSE: &str = "copies of values for a filter";

/// Memory that copies of values take until this is dropped. Trap: rows share the entries of
/// dictionaries and the bytes of views, but not those of copies.
#[derive(Debug)]
pub(super) struct Copies {
    bytes: u64,
    reservation: Option<Reservation>,
}

impl Copies {
    /// Counts `bytes` that are copied without becoming strings of one array.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget has less.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.reservation.as_mut().map_or(Ok(()), |reservation| reservation.grow(bytes))
    }

    /// Counts as many copies of values that take `bytes`, before they are made.
    ///
    /// # Errors
    /// `Limit(Memory)` if the budget has less, `Limit(ArrayLength)` if they have no room in arrays:
    /// fewer rows may do.
    pub(super) fn add(&mut self, bytes: u64, copies: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_COPIED {
            return Err(too_many(self.bytes));
        }
        self.hold(saturated(bytes).saturating_mul(copies))
    }
}

#[cold]
fn too_many(bytes: u64) -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        format_args!(
            "values of {bytes} bytes are to be copied for a filter, and {MAX_COPIED} can be: \
             evaluate it on fewer rows"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn copies_are_counted_until_they_are_dropped() {
        let (adaptive, budget) = (AdaptiveStats::default(), Budget::new(100));
        let evaluation = Evaluation::new(&adaptive, Some(&budget));
        let limit = ErrorKind::Limit(LimitKind::Memory);
        let mut copies = evaluation.copies();
        copies.hold(60).unwrap();
        copies.add(20, 2).unwrap();
        assert_eq!(copies.hold(1).unwrap_err().kind(), limit);
        assert_eq!(evaluation.copies().hold(1).unwrap_err().kind(), limit);
        drop(copies);
        evaluation.copies().hold(100).unwrap();
        Evaluation::new(&adaptive, None).copies().hold(usize::MAX).unwrap();
    }
}
