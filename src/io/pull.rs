//! Pulling from a local source: pieces of column chunks, read into memory that is used again and again.
//!
//! Fresh memory costs a page fault for every 4 KiB, which is more than the read itself. Pieces may outlive their page, as arrays of string views hold
//! them; they are used again once nobody does.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::{Progress, Source};
use crate::error::Result;
use crate::read::Pull;

/// Pulls from a source. All leaves of a read share one.
pub(super) struct LocalPull {
    source: Arc<dyn Source>,
    progress: Progress,
    /// Pieces that were given back, the oldest first.
    pieces: Mutex<VecDeque<Bytes>>,
}

/// Pieces that are remembered, and their bytes.
const MOST_PIECES: usize = 64;
const MOST_BYTES: usize = 32 << 20;

/// Pieces below this are not worth keeping.
const SMALL: usize = 32 << 10;

impl LocalPull {
    /// `None` if the source is not local, or needs no reading at all.
    pub(super) fn from(source: &Arc<dyn Source>, progress: &Progress) -> Option<Arc<dyn Pull>> {
        if !source.is_local() || source.in_memory() {
            return None;
        }
        let (source, progress) = (source.clone(), progress.clone());
        Some(Arc::new(Self { source, progress, pieces: Mutex::default() }))
    }

    /// Memory for `len` bytes that nobody holds any more, if there is some.
    fn memory(&self, len: usize) -> Vec<u8> {
        if len < SMALL {
            return Vec::new();
        }
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = pieces.iter().enumerate();
        let fitting = fitting.filter(|(_, piece)| piece.len() >= len && piece.is_unique());
        let at = fitting.min_by_key(|(_, piece)| piece.len()).map(|(at, _)| at);
        match at.and_then(|at| pieces.remove(at)).map(Bytes::try_into_mut) {
            Some(Ok(mut memory)) => {
                memory.clear();
                memory.into()
            }
            _ => Vec::new(),
        }
    }
}

impl Pull for LocalPull {
    fn pull(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end.saturating_sub(range.start);
        let mut out = self.memory(usize::try_from(len).unwrap_or(usize::MAX));
        self.source.read_into(range, &mut out)?;
        self.progress.fetched(len);
        Ok(out.into())
    }

    fn give_back(&self, bytes: Bytes) {
        if bytes.len() < SMALL {
            return;
        }
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held: usize = pieces.iter().map(Bytes::len).sum();
        while pieces.len() >= MOST_PIECES || held + bytes.len() > MOST_BYTES {
            let Some(oldest) = pieces.pop_front() else {
                return;
            };
            held -= oldest.len();
        }
        pieces.push_back(bytes);
    }
}

impl fmt::Debug for LocalPull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPull").finish_non_exhaustive()
    }
}
