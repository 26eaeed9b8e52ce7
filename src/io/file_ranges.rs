//! [`FileRanges`] reads pieces of column chunks from a local source while they are decoded, into
//! buffers that are reused. A piece may outlive its page, because arrays of string views point into
//! it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::ranges::read_pooled;
use super::source::Source;
use crate::error::Result;
use crate::free_lists::FreeLists;
use crate::read::Progress;

/// Reads pieces of a source. All leaves of a read share one.
#[derive(Clone)]
pub(super) struct FileRanges {
    source: Arc<dyn Source>,
    progress: Progress,
    free_lists: FreeLists,
}

impl FileRanges {
    /// `None` if the source is not local, or needs no reading at all.
    pub(super) fn from(
        source: &Arc<dyn Source>,
        progress: &Progress,
        free_lists: &FreeLists,
    ) -> Option<Self> {
        if !source.is_local() || source.in_memory() {
            return None;
        }
        let (source, progress, free_lists) = (source.clone(), progress.clone(), free_lists.clone());
        Some(Self { source, progress, free_lists })
    }

    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = read_pooled(&*self.source, range, &self.free_lists)?;
        self.progress.fetched(bytes.len() as u64);
        Ok(bytes)
    }
}

impl fmt::Debug for FileRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRanges").finish_non_exhaustive()
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
        let pieces =
            FileRanges::from(&source, &Progress::default(), &FreeLists::new(1 << 20)).unwrap();
        let first = pieces.read(0..100_000).unwrap();
        let (place, part) = (first.as_ptr(), first.slice(10..20));
        drop(first);
        let second = pieces.read(1000..101_000).unwrap();
        assert_ne!(second.as_ptr(), place, "a part of it is still held");
        assert_eq!(part, content[10..20]);
        drop(part);
        let third = pieces.read(50_000..149_000).unwrap();
        assert_eq!(third.as_ptr(), place);
        assert_eq!(third, content[50_000..149_000]);
    }

    #[test]
    fn what_is_in_memory_is_not_read_in_pieces() {
        let source: Arc<dyn Source> = Arc::new(Bytes::from_static(b"PAR1"));
        assert!(
            FileRanges::from(&source, &Progress::default(), &FreeLists::new(1 << 20)).is_none()
        );
    }
}
