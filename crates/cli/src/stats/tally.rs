//! How often values are there, in memory that is bounded.

use std::collections::{BTreeSet, HashMap};

use twox_hash::XxHash64;

/// Hashes that an estimate of the distinct values is made of: its standard error is 1.6 %.
const HASHES: usize = 4096;

/// Bytes of an entry beside its value: the entry in the table, and what an allocation takes.
const ENTRY: usize = 80;

/// How often each value is there. Once that takes too much memory, rare values are forgotten: then
/// counts are lower bounds, and the distinct values are estimated.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) nulls: u64,
    /// Values that are not null.
    values: u64,
    counts: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    /// By how much counts may be too small.
    missed: u64,
    /// The smallest hashes of all values, once some are forgotten.
    smallest: Option<BTreeSet<u64>>,
}

impl Tally {
    pub(super) fn add(&mut self, value: &[u8]) {
        self.values += 1;
        if let Some(smallest) = &mut self.smallest {
            keep_smallest(smallest, value);
        }
        match self.counts.get_mut(value) {
            Some(times) => *times += 1,
            None => {
                self.counts.insert(value.into(), 1);
                self.bytes += value.len() + ENTRY;
            }
        }
    }

    /// Values, nulls too.
    pub(super) fn rows(&self) -> u64 {
        self.values + self.nulls
    }

    /// Memory that the counts take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing was forgotten.
    pub(super) fn is_exact(&self) -> bool {
        self.smallest.is_none()
    }

    /// Forgets at least half of the values: all counts become smaller by the median (the algorithm
    /// of Misra and Gries), so that a value that is more frequent than all that was taken stays.
    pub(super) fn forget_rare(&mut self) {
        if self.smallest.is_none() {
            let mut smallest = BTreeSet::new();
            self.counts.keys().for_each(|value| keep_smallest(&mut smallest, value));
            self.smallest = Some(smallest);
        }
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let middle = counts.len() / 2;
        if counts.is_empty() {
            return;
        }
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.counts.retain(|_, times| {
            *times -= median.min(*times);
            *times > 0
        });
        self.bytes = self.counts.keys().map(|value| value.len() + ENTRY).sum();
        self.missed += median;
    }

    /// How many values are different; an estimate once some are forgotten.
    pub(super) fn distinct(&self) -> u64 {
        match &self.smallest {
            None => self.counts.len() as u64,
            Some(smallest) => estimate(smallest),
        }
    }

    /// Whether no value is there twice, as far as is known.
    pub(super) fn all_differ(&self) -> bool {
        self.is_exact() && self.values > 1 && self.counts.len() as u64 == self.values
    }

    /// The most frequent values, and how often they are there, at the least. Those that others may
    /// surpass that were forgotten are left out.
    pub(super) fn most_frequent(&self, n: usize) -> Vec<(&[u8], u64)> {
        let known = self.counts.iter().map(|(value, times)| (&**value, *times));
        let mut known: Vec<(&[u8], u64)> =
            known.filter(|(_, times)| *times > self.missed || self.is_exact()).collect();
        let order = |a: &(&[u8], u64), b: &(&[u8], u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0));
        if n < known.len() {
            known.select_nth_unstable_by(n, order);
            known.truncate(n);
        }
        known.sort_unstable_by(order);
        known
    }
}

fn keep_smallest(smallest: &mut BTreeSet<u64>, value: &[u8]) {
    let hash = XxHash64::oneshot(0, value);
    if smallest.len() < HASHES {
        smallest.insert(hash);
    } else if smallest.last().is_some_and(|last| hash < *last) && smallest.insert(hash) {
        smallest.pop_last();
    }
}

/// How many values there are, if these are the smallest of their hashes: hashes are spread evenly.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, never negative"
)]
fn estimate(smallest: &BTreeSet<u64>) -> u64 {
    match smallest.last() {
        Some(last) if smallest.len() == HASHES => {
            ((HASHES - 1) as f64 / (*last as f64 / u64::MAX as f64)) as u64
        }
        _ => smallest.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some frequent values among many that differ, in an order without a pattern.
    fn values(rng: &mut fastrand::Rng, n: usize) -> Vec<String> {
        let one = |i: usize| match rng.usize(0..10) {
            0..3 => "common".to_owned(),
            3 => "second".to_owned(),
            _ => format!("rare {i}"),
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn what_is_forgotten_leaves_the_frequent_values_and_an_estimate() {
        let seed = fastrand::u64(..);
        let values = values(&mut fastrand::Rng::with_seed(seed), 200_000);
        let (mut exact, mut small) = (Tally::default(), Tally::default());
        for value in &values {
            exact.add(value.as_bytes());
            small.add(value.as_bytes());
            if small.bytes() > 1 << 20 {
                small.forget_rare();
            }
        }
        assert!(exact.is_exact() && !small.is_exact(), "seed {seed}");
        let distinct = values.iter().collect::<std::collections::HashSet<_>>().len() as u64;
        assert_eq!(exact.distinct(), distinct);
        let apart = small.distinct().abs_diff(distinct);
        assert!(apart < distinct / 10, "{} of {distinct}, seed {seed}", small.distinct());
        let names = |tally: &Tally, n| -> Vec<String> {
            let found = tally.most_frequent(n);
            found.iter().map(|(value, _)| String::from_utf8_lossy(value).into_owned()).collect()
        };
        assert_eq!(names(&exact, 2), ["common", "second"], "seed {seed}");
        // None of the rare values is said to be frequent.
        assert_eq!(names(&small, 5), ["common", "second"], "seed {seed}");
        for ((_, least), (_, true_count)) in
            small.most_frequent(2).iter().zip(exact.most_frequent(2))
        {
            assert!((least..=&(least + small.missed)).contains(&&true_count), "seed {seed}");
        }
    }

    #[test]
    fn equal_counts_come_in_the_order_of_the_values() {
        let mut tally = Tally::default();
        for value in ["c", "a", "b", "c", "d"] {
            tally.add(value.as_bytes());
        }
        let found = |n| tally.most_frequent(n);
        assert_eq!(found(3), [(&b"c"[..], 2), (&b"a"[..], 1), (&b"b"[..], 1)]);
        assert_eq!(found(0), []);
        assert!(!tally.all_differ());
    }
}
