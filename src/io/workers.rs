//! [`PoolThreads`]: the threads that decode a wave.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::file_ranges::FileRanges;
use super::threads;
use crate::error::{Error, Result};
use crate::read::{Failed, ReservedBatch, Wave};
use crate::trace;

/// The threads of the pool that the calling thread is one of; without the feature `parallel`, that
/// thread alone.
pub(super) struct PoolThreads<'a> {
    pub(super) cancelled: &'a AtomicBool,
    /// The source of large chunks that are read while they are decoded.
    pub(super) pieces: Option<&'a FileRanges>,
}

impl PoolThreads<'_> {
    /// The batches of a wave, perhaps none.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the pages or the filter.
    pub(super) fn decode(&self, wave: &mut Wave) -> Result<Vec<ReservedBatch>, Failed> {
        let _span = trace::decode(wave.row_group());
        match wave.as_single() {
            Some(batch) => batch.make(|range| self.piece(range)),
            None if cfg!(feature = "parallel") => wave.decode(self),
            // A build without the feature has no pool, and a scan without threads no windows.
            None => Err(Error::internal("a wave of windows, and no threads to decode them").into()),
        }
    }

    fn piece(&self, range: Range<u64>) -> Result<Bytes> {
        match self.pieces {
            Some(pieces) => pieces.read(range),
            None => Err(Error::internal("a stage whose bytes are there asks for more")),
        }
    }
}

impl crate::read::Workers for PoolThreads<'_> {
    fn threads(&self) -> usize {
        threads::current_num_threads()
    }

    fn map<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> Result<R, Failed> + Sync + Send,
    ) -> Result<Vec<R>, Failed> {
        let threads = threads::current_num_threads().min(items.len());
        let queue = Mutex::new(items.into_iter().enumerate());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        // Each item to the thread that is free first.
        let done = threads::map(vec![(); threads], |()| -> Result<_, Failed> {
            let mut done = Vec::new();
            while let Some((at, item)) = next() {
                done.push((at, work(item)?));
            }
            Ok(done)
        })?;
        let mut done: Vec<_> = done.into_iter().flatten().collect();
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.piece(range)
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
