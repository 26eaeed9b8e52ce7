//! [`FileSet`] presents several files as one source, each at an offset of its own.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::source::Source;
use crate::error::{Error, Result, Spec};
use crate::read::Latency;

/// Files that lie one after the other, so far apart that no request joins bytes of two. A range of
/// the set is one of a single file.
#[derive(Debug, Clone)]
pub(crate) struct FileSet<S> {
    /// From its begin on, each in turn.
    pub(super) files: Arc<Vec<SetFile<S>>>,
    pub(super) len: u64,
}

#[derive(Debug)]
pub(super) struct SetFile<S> {
    place: Range<u64>,
    pub(super) name: Arc<str>,
    pub(super) source: S,
}

/// Bytes between two files: more than any gap that requests are joined over.
const APART: u64 = 1 << 30;

impl<S> FileSet<S> {
    /// Makes a source of these files, by name and length.
    ///
    /// # Errors
    /// `Usage` if they are beyond 2^62 bytes in all.
    pub(crate) fn new(files: impl IntoIterator<Item = (Arc<str>, u64, S)>) -> Result<Self> {
        let mut placed = Vec::new();
        let mut next = 0u64;
        for (name, len, source) in files {
            let end = next.checked_add(len).filter(|end| *end < 1 << 62);
            let end = end.ok_or_else(|| Error::usage("files of more than 2^62 bytes in all"))?;
            placed.push(SetFile { place: next..end, name, source });
            next = end + APART;
        }
        // The last file may end with a page, where a footer would be.
        Ok(Self { files: Arc::new(placed), len: next + 8 })
    }

    /// Where a file begins, by its index, and its length.
    pub(crate) fn place(&self, file: usize) -> Range<u64> {
        self.files.get(file).map_or(0..0, |file| file.place.clone())
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.len
    }

    pub(super) fn find(&self, range: &Range<u64>) -> Result<(&SetFile<S>, Range<u64>)> {
        let file = self.files.partition_point(|file| file.place.start <= range.start);
        let file = file.checked_sub(1).and_then(|file| self.files.get(file));
        match file.filter(|file| range.end <= file.place.end) {
            Some(file) => {
                let start = file.place.start;
                Ok((file, range.start - start..range.end.saturating_sub(start)))
            }
            None => Err(Error::mismatch(
                Spec::Container,
                "a range of a column chunk",
                "within one of the files",
                format_args!("{} bytes that are not", range.end.saturating_sub(range.start)),
            )),
        }
    }
}

impl<S: Source> Source for FileSet<S> {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn is_local(&self) -> bool {
        self.files.iter().all(|file| file.source.is_local())
    }

    fn latency(&self) -> Latency {
        self.files.first().map_or(Latency::LOCAL, |file| file.source.latency())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let (file, range) = self.find(&range)?;
        file.source.read(range).map_err(|e| e.at_file(file.name.clone()))
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let (file, range) = self.find(&range)?;
        file.source.read_into(range, out).map_err(|e| e.at_file(file.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_range_is_of_one_file() {
        let files = [("a", &b"0123"[..]), ("b", b""), ("c", b"45")];
        let files =
            files.map(|(name, bytes)| (name.into(), bytes.len() as u64, Bytes::from_static(bytes)));
        let set = FileSet::new(files).unwrap();
        let (first, last) = (set.place(0), set.place(2));
        assert_eq!(Source::read(&set, 1..3).unwrap(), &b"12"[..]);
        assert_eq!(Source::read(&set, last.clone()).unwrap(), &b"45"[..]);
        let beyond = [
            first.start..first.end + 1,
            first.start..last.end,
            first.end + 1..first.end + 2,
            last.start..last.end + 1,
            set.byte_len() - 1..set.byte_len(),
            u64::MAX - 1..u64::MAX,
        ];
        for range in beyond {
            let error = Source::read(&set, range.clone()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{range:?}: {error}");
        }
        assert!(FileSet::new([("a".into(), 1 << 62, Bytes::new())]).is_err());
    }
}
