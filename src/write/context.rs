//! [`EncoderContext`]: buffers and codec tables that the chunks of a file share, on any thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::compress::Compression;
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::page::{PageVersion, Sealer};

/// Memory and tables of codecs that are used again.
#[derive(Debug)]
pub(crate) struct EncoderContext {
    pub(crate) free_lists: FreeLists,
    sealers: Mutex<Vec<Sealer>>,
}

impl EncoderContext {
    /// At most `max` bytes of memory are kept.
    pub(crate) fn new(max: u64) -> Self {
        // More than the address space is no limit.
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Self { free_lists: FreeLists::new(max), sealers: Mutex::default() }
    }

    /// For encoders that may hold this much memory.
    pub(crate) fn of_memory(memory: u64) -> Self {
        Self::new(memory / POOL_SHARE)
    }

    /// A sealer, to be given back.
    ///
    /// # Errors
    /// As [`Sealer::new`].
    pub(super) fn sealer(
        &self,
        compression: Compression,
        version: PageVersion,
        checksums: bool,
    ) -> Result<Sealer> {
        let found = {
            let mut sealers = self.sealers();
            let at = sealers.iter().position(|sealer| sealer.is(compression, version, checksums));
            at.map(|at| sealers.swap_remove(at))
        };
        found.map_or_else(|| Sealer::new(compression, version, checksums), Ok)
    }

    /// Returns a sealer for reuse. There are never more than threads used at a time.
    pub(super) fn return_sealer(&self, sealer: Sealer) {
        self.sealers().push(sealer);
    }

    /// Nothing panics while it holds the lock.
    fn sealers(&self) -> MutexGuard<'_, Vec<Sealer>> {
        self.sealers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the memory that is kept to be used again, because the shares of the rows and of what
/// they become leave more than that over.
const POOL_SHARE: u64 = 16;
