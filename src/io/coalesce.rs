//! Joins the ranges of a plan that lie close: one read for many column chunks, never one a page.

use std::ops::Range;

use bytes::Bytes;

use super::Source;
use crate::error::Result;

/// One read, and the wanted ranges that it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The bytes to read.
    pub range: Range<u64>,
    /// Indices of the wanted ranges in it.
    pub parts: Vec<usize>,
}

/// Bytes that are cheaper to read than to skip.
pub(super) const GAP: u64 = 64 << 10;

/// The longest read that is made by joining.
const LONGEST: u64 = 16 << 20;

/// Joins ranges whose gap is at most 64 KiB into reads of at most 16 MiB (a longer single range stays whole), in file order.
pub fn coalesce(ranges: &[Range<u64>]) -> Vec<Fetch> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&i| !ranges[i].is_empty()).collect();
    order.sort_by_key(|&i| ranges[i].start);
    let mut fetches: Vec<Fetch> = Vec::new();
    for i in order {
        let range = &ranges[i];
        match fetches.last_mut() {
            Some(last)
                if range.start <= last.range.end.saturating_add(GAP)
                    && range.end.max(last.range.end) - last.range.start <= LONGEST =>
            {
                last.range.end = last.range.end.max(range.end);
                last.parts.push(i);
            }
            _ => fetches.push(Fetch { range: range.clone(), parts: vec![i] }),
        }
    }
    fetches
}

/// Reads the wanted ranges, joined, and gives them in their order.
pub(super) fn fetch(source: &dyn Source, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    if source.in_memory() {
        return ranges.iter().map(|range| source.read(range.clone())).collect();
    }
    let mut out = vec![Bytes::new(); ranges.len()];
    let mut missing = ranges.to_vec();
    for (range, out) in missing.iter_mut().zip(&mut out) {
        if let Some(bytes) = source.at_hand(range) {
            (*out, range.end) = (bytes, range.start);
        }
    }
    for Fetch { range, parts } in coalesce(&missing) {
        let bytes = source.read(range.clone())?;
        for part in parts {
            let wanted = &ranges[part];
            let offset =
                |at: u64| usize::try_from(at - range.start).unwrap_or(usize::MAX).min(bytes.len());
            out[part] = bytes.slice(offset(wanted.start)..offset(wanted.end));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_ranges_are_joined_and_given_back_in_order() {
        let ranges = [1_000_000..1_000_010, 0..10, 50_000..50_010, 5..5];
        let fetches = coalesce(&ranges);
        assert_eq!(
            fetches,
            [
                Fetch { range: 0..50_010, parts: vec![1, 2] },
                Fetch { range: 1_000_000..1_000_010, parts: vec![0] }
            ]
        );
    }

    #[test]
    fn what_is_fetched_is_what_was_wanted() {
        struct Counted(Bytes, std::sync::atomic::AtomicUsize);
        impl Source for Counted {
            fn len(&self) -> Result<u64> {
                Source::len(&self.0)
            }
            fn read(&self, range: Range<u64>) -> Result<Bytes> {
                self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.0.read(range)
            }
        }
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let source = Counted(bytes.clone().into(), Default::default());
        let ranges = [150_000..150_100, 7..9, 20_000..20_500, 3..3];
        let got = fetch(&source, &ranges).unwrap();
        for (got, range) in got.iter().zip(&ranges) {
            assert_eq!(&got[..], &bytes[range.start as usize..range.end as usize]);
        }
        assert_eq!(source.1.into_inner(), 2, "one read for the two that lie close");
    }
}
