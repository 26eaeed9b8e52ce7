//! [`Covered`]: the bytes that ranges cover, found without a look at each range.

use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes that any of some ranges covers, which may overlap.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// Start → end of what is covered without a gap.
    stretches: BTreeMap<u64, u64>,
}

impl Covered {
    pub(super) fn add(&mut self, range: &Range<u64>) {
        let Range { mut start, mut end } = *range;
        if range.is_empty() {
            return;
        }
        while let Some((&before, &its_end)) = self.stretches.range(..=end).next_back() {
            if its_end < start {
                break;
            }
            self.stretches.remove(&before);
            (start, end) = (start.min(before), end.max(its_end));
        }
        self.stretches.insert(start, end);
    }

    /// Whether `range` has a byte that is covered, or is empty and lies between two of them.
    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        #[cfg(test)]
        crate::steps::add(1);
        let last = self.stretches.range(..range.end).next_back();
        last.is_some_and(|(_, end)| *end > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_those_that_a_look_at_each_finds() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let mut range = || {
                let start = rng.u64(0..60);
                start..start + rng.u64(0..6)
            };
            let (mut covered, mut ranges) = (Covered::default(), Vec::new());
            for _ in 0..12 {
                let asked = range();
                let expected = (asked.start..asked.end)
                    .any(|byte| ranges.iter().any(|of: &Range<u64>| of.contains(&byte)));
                if !asked.is_empty() {
                    assert_eq!(covered.overlaps(&asked), expected, "seed {seed}");
                }
                let added = range();
                covered.add(&added);
                ranges.push(added);
            }
        }
    }
}
