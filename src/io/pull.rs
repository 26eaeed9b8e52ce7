//! Pulling from a local source: pieces of column chunks, read into memory that is used again and again.
//!
//! Fresh memory costs a page fault for every 4 KiB, which is more than the read itself. Pieces may outlive their page, as arrays of string views hold
//! them; their memory comes back when the last holder lets go.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use super::{Progress, Source};
use crate::error::Result;
use crate::read::Pull;

/// Pulls from a source. All leaves of a read share one.
pub(super) struct LocalPull {
    source: Arc<dyn Source>,
    progress: Progress,
    spare: Arc<Spare>,
}

impl LocalPull {
    /// `None` if the source is not local, or needs no reading at all.
    pub(super) fn from(source: &Arc<dyn Source>, progress: &Progress) -> Option<Arc<dyn Pull>> {
        if !source.is_local() || source.in_memory() {
            return None;
        }
        let (source, progress) = (source.clone(), progress.clone());
        Some(Arc::new(Self { source, progress, spare: Arc::default() }))
    }
}

impl Pull for LocalPull {
    fn pull(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end.saturating_sub(range.start);
        let mut memory = self.spare.take(usize::try_from(len).unwrap_or(usize::MAX));
        self.source.read_into(range, &mut memory)?;
        self.progress.fetched(len);
        Ok(Bytes::from_owner(Piece { memory, spare: Arc::downgrade(&self.spare) }))
    }
}

impl fmt::Debug for LocalPull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPull").finish_non_exhaustive()
    }
}

/// Bytes that were read; their memory goes back to where it came from.
struct Piece {
    memory: Vec<u8>,
    /// Gone when the read is over.
    spare: Weak<Spare>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(spare) = self.spare.upgrade() {
            spare.give(std::mem::take(&mut self.memory));
        }
    }
}

/// Memory that nobody uses at the moment.
#[derive(Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

/// Bytes of spare memory.
const MOST_SPARE: usize = 16 << 20;

/// Memory is taken in multiples of this, as pages differ a little in size; what is smaller is not worth keeping.
const STEP: usize = 32 << 10;

impl Spare {
    /// Empty memory with room for `len` bytes, if there is some; else as little as nothing.
    fn take(&self, len: usize) -> Vec<u8> {
        if len < STEP {
            return Vec::new();
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = all.iter().enumerate().filter(|(_, memory)| memory.capacity() >= len);
        match fitting.min_by_key(|(_, memory)| memory.capacity()).map(|(at, _)| at) {
            Some(at) => all.swap_remove(at),
            None => {
                let mut memory = Vec::new();
                // Where there is none, the read says so.
                let _ = memory.try_reserve_exact(len.next_multiple_of(STEP));
                memory
            }
        }
    }

    fn give(&self, mut memory: Vec<u8>) {
        memory.clear();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = all.iter().map(Vec::capacity).sum();
        if memory.capacity() >= STEP && held + memory.capacity() <= MOST_SPARE {
            all.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_the_last_holder_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let content: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let source: Arc<dyn Source> = Arc::new(std::fs::File::open(&path).unwrap());
        let pull = LocalPull::from(&source, &Progress::default()).unwrap();
        let first = pull.pull(0..100_000).unwrap();
        let (place, part) = (first.as_ptr(), first.slice(10..20));
        drop(first);
        let second = pull.pull(1000..101_000).unwrap();
        assert_ne!(second.as_ptr(), place, "a part of it is still held");
        assert_eq!(part, content[10..20]);
        drop(part);
        let third = pull.pull(50_000..149_000).unwrap();
        assert_eq!(third.as_ptr(), place);
        assert_eq!(third, content[50_000..149_000]);
        drop(pull);
        assert_eq!(second, content[1000..101_000]);
    }

    #[test]
    fn what_is_in_memory_is_not_pulled() {
        let source: Arc<dyn Source> = Arc::new(Bytes::from_static(b"PAR1"));
        assert!(LocalPull::from(&source, &Progress::default()).is_none());
    }
}
