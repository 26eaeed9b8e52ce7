//! [`RangeCache`]: ranges of a file that are held in memory.
//!
//! `read` keeps loaded page indexes in it, and the drivers of `io` keep bytes that were read ahead.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

/// Ranges of a file and their bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeCache {
    /// By their start. No range lies within another, so their ends are in order too.
    ranges: BTreeMap<u64, Bytes>,
}

impl RangeCache {
    /// Adds bytes that begin at `start` of the file.
    pub(crate) fn insert(&mut self, start: u64, bytes: Bytes) {
        let end = start.saturating_add(bytes.len() as u64);
        if bytes.is_empty() || self.find(&(start..end)).is_some() {
            return;
        }
        let later = self.ranges.range(start..).map(|(at, bytes)| (*at, bytes.len() as u64));
        let within: Vec<u64> =
            later.take_while(|(at, len)| at + len <= end).map(|(at, _)| at).collect();
        for at in within {
            self.ranges.remove(&at);
        }
        self.ranges.insert(start, bytes);
    }

    /// The bytes that hold a range, and where in them it is.
    fn find(&self, range: &Range<u64>) -> Option<(&Bytes, Range<usize>)> {
        let (start, bytes) = self.ranges.range(..=range.start).next_back()?;
        let from = usize::try_from(range.start - start).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        (from <= to && to <= bytes.len()).then_some((bytes, from..to))
    }

    /// The bytes of a range, if all of them are there.
    pub(crate) fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        self.find(range).map(|(bytes, part)| bytes.slice(part))
    }

    /// As [`RangeCache::get`], borrowed.
    pub(crate) fn get_slice(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.find(range).and_then(|(bytes, part)| bytes.get(part))
    }

    /// The ranges, as their start and their bytes, in file order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &Bytes)> {
        self.ranges.iter().map(|(start, bytes)| (*start, bytes))
    }

    /// Bytes in all.
    pub(crate) fn byte_len(&self) -> usize {
        self.ranges.values().map(Bytes::len).sum()
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        // The nodes of the map may be half full, and each range may be an allocation.
        let of_range = 2 * size_of::<(u64, Bytes)>() + 2 * size_of::<usize>();
        self.byte_len() + self.ranges.len() * of_range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found_and_nothing_else() {
        let seed = 19;
        let mut rng = fastrand::Rng::with_seed(seed);
        let file: Bytes = (0..400u32).map(|i| (i % 251) as u8).collect();
        for case in 0..200 {
            let mut cache = RangeCache::default();
            let mut put: Vec<Range<usize>> = Vec::new();
            for _ in 0..rng.usize(0..12) {
                let start = rng.usize(0..400);
                let range = start..rng.usize(start..=400);
                cache.insert(range.start as u64, file.slice(range.clone()));
                put.push(range);
            }
            for _ in 0..50 {
                let start = rng.usize(0..400);
                let end = rng.usize(start + 1..=400);
                let is_there = put.iter().any(|range| range.start <= start && end <= range.end);
                let found = cache.get(&(start as u64..end as u64));
                let expected = is_there.then(|| file.slice(start..end));
                assert_eq!(found, expected, "seed {seed}, case {case}, {start}..{end}");
                assert_eq!(cache.get_slice(&(start as u64..end as u64)), expected.as_deref());
            }
            let kept: Vec<_> = cache.iter().map(|(at, b)| (at, at + b.len() as u64)).collect();
            assert!(kept.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        }
    }
}
