//! [`SpillStore`]: where rows go that a writer may not hold in memory.

use std::fmt;

use crate::error::Result;

/// Makes temporary files for a writer: see
/// [`WriteOptions::with_spill`](crate::WriteOptions::with_spill).
///
/// [`TempFolder`](crate::io::TempFolder) is one; engines that count and limit temporary space bring
/// their own.
pub trait SpillStore: Send + Sync + fmt::Debug {
    /// Makes an empty temporary file. It goes when it is dropped.
    ///
    /// # Errors
    /// `Io` if there is none to be had.
    fn create(&self) -> Result<Box<dyn SpillFile>>;
}

/// A temporary file: bytes are appended, and read back by their offset.
pub trait SpillFile: Send + Sync {
    /// Appends bytes, all of them.
    ///
    /// # Errors
    /// `Io` if they cannot be kept, as when a disk is full.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Reads the bytes at an offset, as many as `out` has.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<()>;
}
