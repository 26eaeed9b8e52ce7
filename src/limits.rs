//! [`Limits`] cap how much a file may make a read allocate; a [`Budget`] counts what is allocated.
//!
//! Every allocation whose size comes from a file goes through [`Budget::take`] first; a
//! [`Reservation`] returns its bytes to the budget when it is dropped.

use std::cell::{Cell, RefCell};

use crate::error::{Error, LimitKind, Result};
use crate::free_lists::{BufferPool, FreeLists};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Limits what a file may make the reader allocate.
///
/// The defaults suffice for all usual files and refuse hostile ones; raise them for files that you
/// trust.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Limits, Reader};
///
/// let mut limits = Limits::default();
/// limits.memory_bytes = 256 << 20;
/// # use bytes::Bytes;
/// let upload = Bytes::from(std::fs::read("testdata/trips.parquet").unwrap());
/// let reader = Reader::with_limits(upload, limits)?;
/// # let _ = reader;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum footer, in bytes. Default 1 GiB.
    pub footer_bytes: u64,
    /// Maximum page, uncompressed, in bytes. Default 2 GiB − 1, the maximum of the format.
    pub page_bytes: u64,
    /// Maximum nesting of the schema: groups around a column, the root included; a REPEATED group
    /// without a LIST or MAP around it counts twice, because it becomes a list and a struct in
    /// Arrow. Default 208; capped at [`Limits::MAX_NESTING`].
    pub nesting: usize,
    /// Maximum rows of one read without any column: they take no bytes of the file, which can state
    /// any number. Default 2^36. Counts are not limited by it.
    pub rows_without_columns: u64,
    /// Maximum memory that one read may hold at a time, in bytes: fetched column chunks,
    /// decompressed pages, arrays that are built, and batches that wait to be returned. Default 4
    /// GiB.
    pub memory_bytes: u64,
}

impl Limits {
    /// Upper limit of [`Limits::nesting`], because every level takes stack, more in the kernels of
    /// Arrow than here: about 3 KiB where Arrow is optimised, in all two thirds of a thread of 1
    /// MiB. Lists or maps nested 100 deep are 201 levels.
    pub const MAX_NESTING: usize = 224;

    /// Whether a read within them may use the memory of the process again: with less memory than by
    /// default, what it leaves unused is to be given back.
    pub(crate) fn may_share_memory(&self) -> bool {
        self.memory_bytes >= Self::default().memory_bytes
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            footer_bytes: 1 << 30,
            page_bytes: (1 << 31) - 1,
            nesting: 208,
            rows_without_columns: 1 << 36,
            memory_bytes: 4 << 30,
        }
    }
}

/// Counts the bytes that a read holds, and refuses to exceed the cap.
///
/// Cheap to clone: clones share the count.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    cap: u64,
    used: AtomicU64,
    free_lists: FreeLists,
}

/// Maximum memory in the free lists, in bytes and as a part of the cap.
const MAX_FREE_BYTES: u64 = 64 << 20;
const FREE_BYTES_PART: u64 = 8;

impl Budget {
    /// A budget of `cap` bytes, none of them used.
    pub fn new(cap: u64) -> Self {
        let max_free_bytes =
            usize::try_from(MAX_FREE_BYTES.min(cap / FREE_BYTES_PART)).unwrap_or_default();
        let (used, free_lists) = (AtomicU64::new(0), FreeLists::new(max_free_bytes));
        Self { shared: Arc::new(BudgetState { cap, used, free_lists }) }
    }

    /// A budget of `cap` bytes, for a read that uses the memory of `pool` again.
    pub(crate) fn with_pool(cap: u64, pool: &BufferPool) -> Self {
        let (used, free_lists) = (AtomicU64::new(0), pool.free_lists().clone());
        Self { shared: Arc::new(BudgetState { cap, used, free_lists }) }
    }

    /// The free lists of the read. Memory in them is not counted.
    pub(crate) fn free_lists(&self) -> &FreeLists {
        &self.shared.free_lists
    }

    /// Takes `bytes` from the budget until the reservation is dropped.
    ///
    /// # Errors
    /// `Limit(Memory)` if fewer are left.
    #[cfg(test)]
    pub(crate) fn take(&self, bytes: usize) -> Result<Reservation> {
        let mut reservation = self.reservation("this read");
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// A reservation of nothing yet; errors name the `purpose` of the memory.
    pub(crate) fn reservation(&self, purpose: &'static str) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0, purpose }
    }

    /// Takes `bytes` as [`Budget::take`]; errors name their `purpose`.
    pub(crate) fn take_for(&self, purpose: &'static str, bytes: usize) -> Result<Reservation> {
        let mut reservation = self.reservation(purpose);
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// The cap, in bytes.
    pub fn cap(&self) -> u64 {
        self.shared.cap
    }

    #[cold]
    fn refused(&self, purpose: &str, bytes: u64) -> Error {
        Error::limit(
            LimitKind::Memory,
            format_args!(
                "{bytes} bytes wanted for {purpose}, {} of {} in use; \
                 raise Limits::memory_bytes to read on",
                self.used(),
                self.shared.cap
            ),
        )
    }
}

/// Bytes taken from a [`Budget`]; given back on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Budget,
    bytes: u64,
    /// The purpose of the memory, for errors.
    purpose: &'static str,
}

impl Reservation {
    /// Takes `bytes` more.
    ///
    /// # Errors
    /// `Limit(Memory)` if fewer are left; what was taken before stays taken.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        let BudgetState { cap, used, .. } = &*self.budget.shared;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| used <= cap)
        })
        .map_err(|_| self.budget.refused(self.purpose, bytes))?;
        self.bytes += bytes;
        Ok(())
    }

    /// A reservation of nothing yet, of the same budget and for the same purpose.
    pub(crate) fn empty(&self) -> Self {
        self.budget.reservation(self.purpose)
    }

    /// Moves all of the reservation to the returned one, and keeps nothing.
    pub(crate) fn split_off(&mut self) -> Self {
        let empty = self.empty();
        std::mem::replace(self, empty)
    }

    /// Takes over the bytes of another reservation of the same budget.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.budget.shared, &other.budget.shared), "one budget");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Changes the size to `bytes`, and returns or takes the difference.
    ///
    /// # Errors
    /// `Limit(Memory)` if the difference exceeds the rest of the budget.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<()> {
        match (bytes as u64).checked_sub(self.bytes) {
            Some(more) => self.grow(usize::try_from(more).unwrap_or(usize::MAX)),
            None => {
                let less = self.bytes - bytes as u64;
                self.budget.shared.used.fetch_sub(less, Ordering::Relaxed);
                self.bytes = bytes as u64;
                Ok(())
            }
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.shared.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Counts what grows while it is made, where nothing tells before how large it becomes: rows share
/// the entries of dictionaries and the bytes of views, and a copy has them for each row.
#[derive(Debug)]
pub(crate) enum Growth {
    Uncounted,
    /// Up to a number of bytes.
    Within(Cell<usize>),
    /// Added to a reservation.
    Of(RefCell<Reservation>),
}

impl Growth {
    pub(crate) const UNLIMITED: &'static Self = &Self::Uncounted;

    /// Up to `bytes`.
    pub(crate) fn within(bytes: usize) -> Self {
        Self::Within(Cell::new(bytes))
    }

    /// Bytes that are added to the reservation.
    pub(crate) fn counted(reservation: Reservation) -> Self {
        Self::Of(RefCell::new(reservation))
    }

    /// Counts bytes that are about to be allocated.
    ///
    /// # Errors
    /// `Limit(Memory)` if fewer are left; so for all of this type.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        match self {
            Self::Uncounted => Ok(()),
            Self::Within(left) => {
                let rest = left.get().checked_sub(bytes);
                left.set(rest.ok_or_else(|| beyond(bytes, left.get()))?);
                Ok(())
            }
            Self::Of(reservation) => reservation.borrow_mut().grow(bytes),
        }
    }

    /// Makes room for `n` values more, and counts it. A vector that is full becomes twice as large.
    #[inline]
    pub(crate) fn room<T>(&self, out: &mut Vec<T>, n: usize) -> Result<()> {
        if out.capacity() - out.len() >= n {
            return Ok(());
        }
        self.grow(out, n)
    }

    /// Apart from the loops that seldom come here.
    #[cold]
    #[inline(never)]
    fn grow<T>(&self, out: &mut Vec<T>, n: usize) -> Result<()> {
        let more = self.more(out.len(), out.capacity(), n, size_of::<T>())?;
        Ok(out.try_reserve_exact(more)?)
    }

    /// As [`room`](Self::room), for `n` bytes of text.
    #[inline]
    pub(crate) fn room_for_text(&self, out: &mut String, n: usize) -> Result<()> {
        if out.capacity() - out.len() >= n {
            return Ok(());
        }
        let more = self.more(out.len(), out.capacity(), n, 1)?;
        Ok(out.try_reserve_exact(more)?)
    }

    /// How many values more a vector without room for `n` is to have room for, counted. Never a
    /// few: while a vector moves, its memory before is there as well.
    fn more(&self, len: usize, capacity: usize, n: usize, size: usize) -> Result<usize> {
        let least = capacity.saturating_mul(2).max(MIN_GROWTH / size.max(1));
        let to = len.saturating_add(n).max(least);
        self.take((to - capacity).saturating_mul(size))?;
        Ok(to - len)
    }
}

/// Bytes that a vector begins with, so that few values do not make it grow several times.
const MIN_GROWTH: usize = 64;

#[cold]
fn beyond(bytes: usize, left: usize) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!("{bytes} bytes more are wanted, and {left} are left"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn growth_is_counted_before_it_is_allocated() {
        let budget = Budget::new(1000);
        let growth = Growth::counted(budget.reservation("a copy"));
        let mut out: Vec<u16> = Vec::new();
        growth.room(&mut out, 10).unwrap();
        assert_eq!((out.capacity(), budget.used()), (32, 64));
        growth.room(&mut out, 100).unwrap();
        assert_eq!((out.capacity(), budget.used()), (100, 200));
        out.extend(0..100);
        growth.room(&mut out, 1).unwrap();
        assert_eq!((out.capacity(), budget.used()), (200, 400));
        growth.room(&mut out, 100).unwrap();
        assert_eq!(budget.used(), 400, "there is room");
        let error = growth.room(&mut out, 500).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
        assert_eq!((out.capacity(), budget.used()), (200, 400));
        let mut text = String::new();
        growth.room_for_text(&mut text, 600).unwrap();
        assert!(growth.room_for_text(&mut text, 601).is_err());
        let small = Growth::within(10);
        small.take(6).unwrap();
        assert_eq!(small.take(5).unwrap_err().kind(), ErrorKind::Limit(LimitKind::Memory));
        small.take(4).unwrap();
        drop(growth);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn takes_refuses_and_gives_back() {
        let budget = Budget::new(100);
        let mut first = budget.take(60).unwrap();
        assert_eq!(budget.take(41).unwrap_err().kind(), ErrorKind::Limit(LimitKind::Memory));
        assert_eq!(
            budget.take(usize::MAX).unwrap_err().kind(),
            ErrorKind::Limit(LimitKind::Memory)
        );
        assert_eq!(budget.used(), 60, "a refused request takes nothing");
        first.resize(10).unwrap();
        let second = budget.take(90).unwrap();
        assert_eq!(budget.used(), 100);
        drop((first, second));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_refusal_says_what_the_memory_is_for() {
        let budget = Budget::new(100);
        let held = budget.take_for("a page", 40).unwrap();
        let error = budget.take_for("a table", 61).unwrap_err().to_string();
        assert!(error.contains("61 bytes wanted for a table, 40 of 100 in use"), "{error}");
        let mut all = budget.take(30).unwrap();
        all.absorb(held);
        assert_eq!((all.bytes(), budget.used()), (70, 70));
        let mut given = all.split_off();
        assert_eq!((all.bytes(), given.bytes(), budget.used()), (0, 70, 70));
        given.resize(7).unwrap();
        drop(all);
        assert_eq!(budget.used(), 7);
        drop(given);
        assert_eq!(budget.used(), 0);
    }
}
