//! [`Source`] provides the bytes of a file.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

#[cfg(target_os = "linux")]
use crate::bytes::saturated;
use crate::error::{Error, Result, Spec};
use crate::read::{Latency, Metadata};
use crate::trusted::{self, MappedFile};

/// Provides any range of the bytes of a file.
///
/// A source is shared between threads; reads do not disturb each other, so there is no current
/// position. Several reads may run at a time, on threads of a rayon pool: one that waits for rayon
/// while it holds a lock may wait for itself.
#[expect(clippy::len_without_is_empty, reason = "an empty file is no Parquet file")]
pub trait Source: Send + Sync {
    /// Length of the file, in bytes.
    ///
    /// # Errors
    /// `Io` if it cannot be found out.
    fn len(&self) -> Result<u64>;

    /// Reads the bytes of `range`, all of them.
    ///
    /// # Errors
    /// `Io` if they cannot be read.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Reads several ranges side by side, if the source has a better way than one read for each:
    /// their bytes, in their order. Close ranges were joined before.
    ///
    /// `None`, the default, lets [`Source::read`] read each, on the threads of the reader.
    fn read_many(&self, ranges: &[Range<u64>]) -> Option<Result<Vec<Bytes>>> {
        let _ = ranges;
        None
    }

    /// Whether a range costs nothing to read, so that there is no use in joining it with its
    /// neighbours.
    fn in_memory(&self) -> bool {
        false
    }

    /// Whether many small reads cost about as much as a large one, as from a local file: large
    /// column chunks are then read while they are decoded.
    fn is_local(&self) -> bool {
        false
    }

    /// The cost of a request, which decides whether ranges that lie close are read in one.
    fn latency(&self) -> Latency {
        Latency::LOCAL
    }

    /// The bytes of `range`, if they are in memory already: they are not read then, and not joined
    /// with their neighbours.
    fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        let _ = range;
        None
    }

    /// Reads ranges, one behind the other, into `out`, if none of them has to wait because the
    /// operating system has all of them in memory: close ranges are then not joined, because a
    /// read costs less than the bytes between them. `out` may come with other contents.
    ///
    /// `false`, the default, if one would have to wait, or if that is not known; what is in `out`
    /// then has no meaning.
    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        let _ = (ranges, out);
        false
    }

    /// The same bytes by way of a file that stays open, if each read would open it; else `None`.
    /// Held while many reads follow each other.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, or has changed.
    fn keep_open(&self) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    /// Reads the bytes of `range` into `out`, which is emptied first, and whose memory is used if
    /// it is enough.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        *out = self.read(range)?.into();
        Ok(())
    }
}

impl Source for Bytes {
    fn len(&self) -> Result<u64> {
        Ok(Self::len(self) as u64)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let start = usize::try_from(range.start).ok();
        let end = usize::try_from(range.end).ok().filter(|end| *end <= Self::len(self));
        match (start, end) {
            (Some(start), Some(end)) if start <= end => Ok(self.slice(start..end)),
            _ => Err(beyond_the_end(&range, Self::len(self) as u64)),
        }
    }

    fn in_memory(&self) -> bool {
        true
    }
}

impl Source for MappedFile {
    fn len(&self) -> Result<u64> {
        Source::len(self.bytes())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Source::read(self.bytes(), range)
    }

    fn in_memory(&self) -> bool {
        true
    }
}

impl Source for File {
    fn len(&self) -> Result<u64> {
        self.metadata()
            .map(|metadata| metadata.len())
            .map_err(|e| Error::io("the length of the file", e))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut out = Vec::new();
        self.read_into(range, &mut out)?;
        Ok(out.into())
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let len = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| Error::usage("a range longer than memory"))?;
        trusted::read_at(self, range.start, len, out).map_err(|e| {
            if e.kind() == std::io::ErrorKind::UnexpectedEof {
                match Source::len(self) {
                    Ok(len) => beyond_the_end(&range, len),
                    Err(e) => e,
                }
            } else {
                Error::io(format_args!("reading {len} bytes at {}", range.start), e)
            }
        })
    }

    #[cfg(target_os = "linux")]
    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        use rustix::io::{ReadWriteFlags, preadv2};
        let add = |sum: u64, range: &Range<u64>| {
            sum.saturating_add(range.end.saturating_sub(range.start))
        };
        let len = saturated(ranges.iter().fold(0, add));
        if out.try_reserve_exact(len.saturating_sub(out.len())).is_err() {
            return false;
        }
        out.resize(len, 0);
        let mut rest = &mut out[..];
        ranges.iter().all(|range| {
            let len = saturated(range.end.saturating_sub(range.start));
            let Some((part, others)) = std::mem::take(&mut rest).split_at_mut_checked(len) else {
                return false;
            };
            rest = others;
            let mut part = [std::io::IoSliceMut::new(part)];
            preadv2(self, &mut part, range.start, ReadWriteFlags::NOWAIT) == Ok(len)
        })
    }
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn len(&self) -> Result<u64> {
        (**self).len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        (**self).read(range)
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Option<Result<Vec<Bytes>>> {
        (**self).read_many(ranges)
    }

    fn in_memory(&self) -> bool {
        (**self).in_memory()
    }

    fn is_local(&self) -> bool {
        (**self).is_local()
    }

    fn latency(&self) -> Latency {
        (**self).latency()
    }

    fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        (**self).loaded(range)
    }

    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        (**self).read_cached(ranges, out)
    }

    fn keep_open(&self) -> Result<Option<Arc<dyn Source>>> {
        (**self).keep_open()
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        (**self).read_into(range, out)
    }
}

/// A source whose page indexes are loaded, and served from memory.
pub(crate) struct Indexed {
    source: Arc<dyn Source>,
    metadata: Metadata,
}

impl Indexed {
    /// `source`, whose metadata are `metadata`.
    pub(crate) fn new(source: Arc<dyn Source>, metadata: Metadata) -> Self {
        Self { source, metadata }
    }
}

impl Source for Indexed {
    fn len(&self) -> Result<u64> {
        Ok(self.metadata.file_len())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.source.read(range)
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Option<Result<Vec<Bytes>>> {
        self.source.read_many(ranges)
    }

    fn in_memory(&self) -> bool {
        self.source.in_memory()
    }

    fn is_local(&self) -> bool {
        self.source.is_local()
    }

    fn latency(&self) -> Latency {
        self.source.latency()
    }

    fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        self.metadata.loaded(range).or_else(|| self.source.loaded(range))
    }

    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        self.source.read_cached(ranges, out)
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.source.read_into(range, out)
    }
}

#[cold]
fn beyond_the_end(range: &Range<u64>, len: u64) -> Error {
    Error::mismatch(
        Spec::Container,
        "a range of the file",
        format_args!("within its {len} bytes"),
        format_args!("{} to {}", range.start, range.end),
    )
}
