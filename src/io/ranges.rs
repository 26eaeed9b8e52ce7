//! Makes requests of the ranges of a plan: ranges that lie close are joined, because a request
//! costs more than some unneeded bytes; long ranges are split where requests run side by side.

use std::io::ErrorKind;
use std::ops::Range;

use bytes::Bytes;

use super::source::Source;
use super::threads;
use crate::bytes::saturated;
use crate::error::{Error, Result};
use crate::free_lists::{BufferPool, FreeLists};
use crate::limits::Limits;
use crate::memory;
use crate::read::Latency;

/// One read, and the wanted ranges that it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// The bytes to read.
    pub range: Range<u64>,
    /// Indices of the wanted ranges in it.
    pub indices: Vec<usize>,
}

/// Maximum bytes of a read that is made by joining, and of a request that a long range is split
/// into.
const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// Joins ranges into reads, in file order, where reading the gap between them costs less than
/// another request. A read has at most 8 MiB, or is a single range.
pub(crate) fn coalesce(ranges: &[Range<u64>], latency: Latency) -> Vec<Fetch> {
    let gap = latency.gap();
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&i| !ranges[i].is_empty()).collect();
    order.sort_by_key(|&i| ranges[i].start);
    let mut fetches: Vec<Fetch> = Vec::new();
    for i in order {
        let range = &ranges[i];
        match fetches.last_mut() {
            Some(last)
                if range.start <= last.range.end.saturating_add(gap)
                    && range.end.max(last.range.end) - last.range.start <= MAX_REQUEST_BYTES =>
            {
                last.range.end = last.range.end.max(range.end);
                last.indices.push(i);
            }
            _ => fetches.push(Fetch { range: range.clone(), indices: vec![i] }),
        }
    }
    fetches
}

/// The requests for ranges of a file: which bytes to read, and how the ranges are cut out of them.
#[derive(Debug)]
pub(crate) struct Requests {
    wanted: Vec<Range<u64>>,
    fetches: Vec<Fetch>,
    /// How many requests each of the reads is split into.
    pieces: Vec<usize>,
    needs: Vec<Range<u64>>,
}

impl Requests {
    /// For requests that are made one after the other: long ranges are not split.
    pub(crate) fn in_turn(wanted: &[Range<u64>], latency: Latency) -> Self {
        Self::new(wanted, latency, u64::MAX)
    }

    /// For requests that run side by side: long ranges are split.
    pub(crate) fn side_by_side(wanted: &[Range<u64>], latency: Latency) -> Self {
        Self::new(wanted, latency, MAX_REQUEST_BYTES)
    }

    fn new(wanted: &[Range<u64>], latency: Latency, longest: u64) -> Self {
        let fetches = coalesce(wanted, latency);
        let (mut pieces, mut needs) = (Vec::with_capacity(fetches.len()), Vec::new());
        for Fetch { range, .. } in &fetches {
            let len = range.end - range.start;
            let n = len.div_ceil(longest);
            // Pieces of equal length, which end at about the same time.
            let piece = len.div_ceil(n);
            let starts = (0..n).map(|i| range.start + i * piece);
            needs.extend(starts.map(|start| start..range.end.min(start + piece)));
            // Each is a request of its own, in a vector.
            pieces.push(usize::try_from(n).expect("no more pieces than memory counts"));
        }
        Self { wanted: wanted.to_vec(), fetches, pieces, needs }
    }

    /// The bytes to ask for.
    pub(crate) fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// The same in groups of at most 8 MiB each, or of one.
    fn groups(&self) -> Vec<&[Range<u64>]> {
        let (mut out, mut rest, mut n, mut bytes) = (Vec::new(), &self.needs[..], 0, 0);
        while let Some(need) = rest.get(n) {
            bytes += need.end - need.start;
            if n > 0 && bytes > MAX_REQUEST_BYTES {
                let (group, others) = rest.split_at(n);
                out.push(group);
                (rest, n, bytes) = (others, 0, 0);
            } else {
                n += 1;
            }
        }
        out.push(rest);
        out
    }

    /// Takes them, in the same order, and returns the bytes of the wanted ranges, in theirs.
    ///
    /// # Errors
    /// `Io` if there are fewer or more than were asked for.
    pub(crate) fn supply(self, bytes: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let given = bytes.iter().map(|bytes| bytes.len() as u64);
        if !given.eq(self.needs.iter().map(|need| need.end - need.start)) {
            return Err(self.short(&bytes));
        }
        let mut out = vec![Bytes::new(); self.wanted.len()];
        let mut rest = bytes.into_iter();
        for (Fetch { range, indices }, pieces) in self.fetches.iter().zip(self.pieces) {
            // Pieces are freed as soon as they are joined.
            let bytes = match pieces {
                1 => rest.next().unwrap_or_default(),
                _ => rest.by_ref().take(pieces).collect::<Vec<_>>().concat().into(),
            };
            let wanted = |index: &usize| self.wanted[*index].clone();
            let wanted_len: u64 =
                indices.iter().map(wanted).map(|range| range.end - range.start).sum();
            // If most of a read is gaps, the ranges are copied, so that the gaps are not held in
            // memory.
            let is_mostly_gap = range.end - range.start > wanted_len.saturating_mul(2);
            for &index in indices {
                let wanted = wanted(&index);
                let at = |n: u64| usize::try_from(n - range.start).expect("within bytes in memory");
                let found = bytes.slice(at(wanted.start)..at(wanted.end));
                out[index] = if is_mostly_gap { Bytes::copy_from_slice(&found) } else { found };
            }
        }
        Ok(out)
    }

    #[cold]
    fn short(&self, bytes: &[Bytes]) -> Error {
        let given: usize = bytes.iter().map(Bytes::len).sum();
        let wanted: u64 = self.needs.iter().map(|need| need.end - need.start).sum();
        let text = format!(
            "{given} bytes were given for {} ranges of {wanted} bytes in all",
            self.needs.len()
        );
        let error = std::io::Error::new(ErrorKind::UnexpectedEof, text);
        Error::io("reading ranges", error)
    }
}

/// Reads a range. Another number of bytes is an error.
pub(crate) fn read_exactly(source: &dyn Source, range: Range<u64>) -> Result<Bytes> {
    let bytes = source.read(range.clone())?;
    check_given(&range, bytes.len()).map(|()| bytes)
}

/// As [`read_exactly`], into memory that is used again.
pub(super) fn read_pooled(
    source: &dyn Source,
    range: Range<u64>,
    free_lists: &FreeLists,
) -> Result<Bytes> {
    // If the length exceeds all memory, none is taken, and the source reports the error.
    let memory = free_lists.take(saturated(range.end.saturating_sub(range.start)))?;
    read_over(source, range, memory, free_lists)
}

/// As [`read_exactly`], for metadata, which may be held for long: from a local source into memory
/// of the process that is used again, if the limits allow it.
pub(super) fn read_metadata(
    source: &dyn Source,
    range: Range<u64>,
    limits: &Limits,
) -> Result<Bytes> {
    if source.in_memory() || !source.is_local() || !limits.may_share_memory() {
        return read_exactly(source, range);
    }
    let pool = BufferPool::global();
    let len = saturated(range.end.saturating_sub(range.start));
    read_over(source, range, pool.free_lists().take_fitting(len)?, pool.free_lists())
}

fn read_over(
    source: &dyn Source,
    range: Range<u64>,
    mut memory: Vec<u8>,
    free_lists: &FreeLists,
) -> Result<Bytes> {
    source.read_into(range.clone(), &mut memory)?;
    check_given(&range, memory.len())?;
    Ok(free_lists.pooled_bytes(memory))
}

/// Checks that as many bytes were given as were asked for.
pub(in crate::io) fn check_given(range: &Range<u64>, given: usize) -> Result<()> {
    let wanted = range.end.saturating_sub(range.start);
    if given as u64 == wanted {
        return Ok(());
    }
    let is_short = (given as u64) < wanted;
    let kind = if is_short { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData };
    let text = format!("the source gave {given} bytes, where {wanted} were asked for");
    let what = format_args!("reading bytes {} to {}", range.start, range.end);
    Err(Error::io(what, std::io::Error::new(kind, text)))
}

/// The bytes of ranges.
pub(super) struct FetchedBytes {
    /// In the order of the ranges.
    pub(super) bytes: Vec<Bytes>,
    /// Bytes of the ranges that were not in memory.
    pub(super) missing_bytes: u64,
}

/// Reads the wanted ranges, those that lie close together in one request; from a local source into
/// memory of `free_lists`, if there are some. `side_by_side` if all threads of the pool that the
/// calling one belongs to make the requests.
///
/// # Errors
/// `Io` if they cannot be read.
pub(super) fn fetch(
    source: &dyn Source,
    ranges: &[Range<u64>],
    latency: Option<Latency>,
    free_lists: Option<&FreeLists>,
    side_by_side: bool,
) -> Result<FetchedBytes> {
    let len = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum();
    if source.in_memory() {
        let bytes = ranges.iter().map(|range| read_exactly(source, range.clone()));
        return Ok(FetchedBytes {
            bytes: memory::try_collected(bytes)?,
            missing_bytes: len(ranges),
        });
    }
    let loaded = |range: &Range<u64>| {
        // A range that is in memory with another length is fetched, and the fetch reports the
        // error.
        source.loaded(range).filter(|found| check_given(range, found.len()).is_ok())
    };
    let loaded: Vec<_> = ranges.iter().map(loaded).collect();
    let missing = ranges.iter().zip(&loaded).filter(|(_, found)| found.is_none());
    let missing: Vec<_> = missing.map(|(range, _)| range.clone()).collect();
    let missing_bytes = len(&missing);
    let latency = latency.unwrap_or_else(|| source.latency());
    // Joining what was split costs a copy, which is little where a request takes long.
    let requests = match side_by_side && !source.is_local() {
        true => Requests::side_by_side(&missing, latency),
        false => Requests::in_turn(&missing, latency),
    };
    let free_lists = free_lists.filter(|_| source.is_local());
    if let Some(bytes) = fetch_cached(source, &missing, &requests, free_lists, side_by_side)? {
        return Ok(FetchedBytes { bytes: in_order(loaded, bytes), missing_bytes });
    }
    let read = |need: &Range<u64>| match free_lists {
        Some(free_lists) => read_pooled(source, need.clone(), free_lists),
        None => read_exactly(source, need.clone()),
    };
    let at_once = match requests.needs() {
        [] | [_] => None,
        needs => source.read_many(needs),
    };
    let bytes = match at_once {
        // Their number and lengths are checked when they are supplied.
        Some(bytes) => bytes?,
        None if side_by_side => threads::map(requests.needs().iter().collect(), read)?,
        None => requests.needs().iter().map(read).collect::<Result<_>>()?,
    };
    Ok(FetchedBytes { bytes: in_order(loaded, requests.supply(bytes)?), missing_bytes })
}

/// The bytes that were loaded, and in the place of each that was not, the next of those read.
fn in_order(loaded: Vec<Option<Bytes>>, read: Vec<Bytes>) -> Vec<Bytes> {
    let mut read = read.into_iter();
    let mut next = || read.next().expect("one for each that was missing");
    loaded.into_iter().map(|found| found.unwrap_or_else(&mut next)).collect()
}

/// The bytes of ranges that the operating system has in memory, read without the gaps that
/// `joined` has; `None` if it does not, or if there are none.
fn fetch_cached(
    source: &dyn Source,
    wanted: &[Range<u64>],
    joined: &Requests,
    free_lists: Option<&FreeLists>,
    side_by_side: bool,
) -> Result<Option<Vec<Bytes>>> {
    if !source.is_local() {
        return Ok(None);
    }
    let near = Requests::in_turn(wanted, Latency::CACHED);
    if near.needs().len() <= joined.needs().len() {
        return Ok(None);
    }
    let read = |ranges: &[Range<u64>]| {
        let len = saturated(ranges.iter().map(|range| range.end - range.start).sum());
        let mut memory = match free_lists {
            Some(lists) => lists.take_used(len).map_err(drop)?,
            None => Vec::new(),
        };
        if !source.read_cached(ranges, &mut memory) || memory.len() != len {
            return Err(());
        }
        let bytes = match free_lists {
            Some(lists) => lists.pooled_bytes(memory),
            None => memory.into(),
        };
        let mut at = 0;
        let parts = ranges.iter().map(|range| {
            let start = at;
            at += saturated(range.end - range.start);
            bytes.slice(start..at)
        });
        Ok(parts.collect::<Vec<_>>())
    };
    let groups = near.groups();
    let read: Result<Vec<_>, ()> = match side_by_side {
        true => threads::map(groups, read),
        false => groups.into_iter().map(read).collect(),
    };
    read.ok().map(|read| near.supply(read.concat())).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn close_ranges_are_joined_and_given_back_in_order() {
        let ranges = [1_000_000..1_000_010, 0..10, 50_000..50_010, 5..5];
        let fetches = coalesce(&ranges, Latency::LOCAL);
        assert_eq!(
            fetches,
            [
                Fetch { range: 0..50_010, indices: vec![1, 2] },
                Fetch { range: 1_000_000..1_000_010, indices: vec![0] }
            ]
        );
        let fetches = coalesce(&ranges, Latency::STORE);
        assert_eq!(fetches, [Fetch { range: 0..1_000_010, indices: vec![1, 2, 0] }]);
    }

    #[test]
    fn random_ranges_come_back_whole() {
        let seed = 7;
        let mut rng = fastrand::Rng::with_seed(seed);
        let file: Bytes = (0..30_000_000u32).map(|i| (i % 251) as u8).collect();
        for case in 0..60 {
            let ranges: Vec<Range<u64>> = (0..rng.usize(0..20))
                .map(|_| {
                    let max = [10, 100_000, 20_000_000][rng.usize(0..3)];
                    let start = rng.u64(0..file.len() as u64);
                    start..file.len().min(start as usize + rng.usize(0..max)) as u64
                })
                .collect();
            for latency in [Latency::LOCAL, Latency::STORE] {
                let read =
                    |range: &Range<u64>| file.slice(range.start as usize..range.end as usize);
                let expected: Vec<_> = ranges.iter().map(read).collect();
                for requests in
                    [Requests::in_turn(&ranges, latency), Requests::side_by_side(&ranges, latency)]
                {
                    let bytes = requests.needs().iter().map(read).collect();
                    assert_eq!(requests.supply(bytes).unwrap(), expected, "seed {seed}, {case}");
                }
                let requests = Requests::side_by_side(&ranges, latency);
                assert!(
                    requests.needs().iter().all(|need| need.end - need.start <= MAX_REQUEST_BYTES)
                );
            }
        }
    }

    #[test]
    fn a_short_read_is_an_error() {
        let requests = Requests::side_by_side(&[0..10, 20..30], Latency::STORE);
        assert_eq!(requests.needs(), std::slice::from_ref(&(0..30)));
        let error = requests.supply(vec![Bytes::from_static(&[0; 29])]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }

    #[test]
    fn a_source_may_read_all_requests_at_once() {
        struct AtOnce(Bytes, std::sync::atomic::AtomicUsize);
        impl Source for AtOnce {
            fn len(&self) -> Result<u64> {
                Source::len(&self.0)
            }
            fn read(&self, _range: Range<u64>) -> Result<Bytes> {
                Err(Error::internal("read one by one"))
            }
            fn read_many(&self, ranges: &[Range<u64>]) -> Option<Result<Vec<Bytes>>> {
                self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Some(ranges.iter().map(|range| self.0.read(range.clone())).collect())
            }
        }
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let source = AtOnce(bytes.clone().into(), Default::default());
        let ranges = [150_000..150_100, 7..9, 70_000..70_500];
        for side_by_side in [false, true] {
            let fetched = fetch(&source, &ranges, None, None, side_by_side).unwrap();
            for (got, range) in fetched.bytes.iter().zip(&ranges) {
                assert_eq!(&got[..], &bytes[range.start as usize..range.end as usize]);
            }
        }
        assert_eq!(source.1.load(std::sync::atomic::Ordering::Relaxed), 2);
    }

    #[test]
    fn gaps_are_not_read_of_what_the_system_has_in_memory() {
        use std::sync::Mutex;
        /// Has the bytes before the second number cached.
        struct Cached(Bytes, u64, Mutex<Vec<Range<u64>>>);
        impl Source for Cached {
            fn len(&self) -> Result<u64> {
                Source::len(&self.0)
            }
            fn is_local(&self) -> bool {
                true
            }
            fn read(&self, range: Range<u64>) -> Result<Bytes> {
                self.2.lock().unwrap().push(range.clone());
                self.0.read(range)
            }
            fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
                out.clear();
                ranges.iter().all(|range| {
                    out.extend(&self.0[range.start as usize..range.end as usize]);
                    range.end <= self.1
                })
            }
        }
        let bytes: Bytes = (0..30 << 20u32).map(|i| (i % 251) as u8).collect();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut range = |i: u64| {
            let start = i * 50_000 + rng.u64(0..9_000);
            start..start + rng.u64(0..40_000)
        };
        let mut ranges: Vec<Range<u64>> = (0..600).map(&mut range).collect();
        rng.shuffle(&mut ranges);
        for (cached, reads) in [(u64::MAX, 0), (20 << 20, 4)] {
            for side_by_side in [false, true] {
                let source = Cached(bytes.clone(), cached, Mutex::default());
                let free_lists = FreeLists::new(64 << 20);
                let got = fetch(&source, &ranges, None, Some(&free_lists), side_by_side).unwrap();
                for (got, range) in got.bytes.iter().zip(&ranges) {
                    assert_eq!(got, &bytes[range.start as usize..range.end as usize]);
                }
                let found = source.2.into_inner().unwrap();
                assert_eq!(found.len(), reads, "{found:?}");
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_was_just_written_is_read_without_waiting_or_not_at_all() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let mut out = vec![1; 77];
        // Not every file system can tell.
        if file.read_cached(&[10..20, 90_000..90_001, 5..5], &mut out) {
            assert_eq!(out, [&bytes[10..20], &bytes[90_000..90_001]].concat());
        }
        assert!(!file.read_cached(&[0..10, 99_999..100_001], &mut out));
        assert!(!file.read_cached(&[0..10, 0..u64::MAX], &mut out));
    }

    #[test]
    fn what_is_fetched_is_what_was_wanted() {
        use std::sync::atomic::Ordering::Relaxed;
        struct Counted(Bytes, std::sync::atomic::AtomicUsize);
        impl Source for Counted {
            fn len(&self) -> Result<u64> {
                Source::len(&self.0)
            }
            fn read(&self, range: Range<u64>) -> Result<Bytes> {
                self.1.fetch_add(1, Relaxed);
                self.0.read(range)
            }
        }
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        for side_by_side in [false, true] {
            let source = Counted(bytes.clone().into(), Default::default());
            let ranges = [150_000..150_100, 7..9, 20_000..20_500, 3..3];
            let FetchedBytes { bytes: got, missing_bytes } =
                fetch(&source, &ranges, None, None, side_by_side).unwrap();
            assert_eq!(missing_bytes, 602);
            for (got, range) in got.iter().zip(&ranges) {
                assert_eq!(&got[..], &bytes[range.start as usize..range.end as usize]);
            }
            assert_eq!(source.1.load(Relaxed), 2, "one read for the two that lie close");
            let beyond = [7..9, 150_000..300_000];
            let error = fetch(&source, &beyond, None, None, side_by_side).err().unwrap();
            assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
        }
    }
}
