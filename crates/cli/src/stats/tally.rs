//! Counts how often values occur, in memory that is bounded.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use twox_hash::XxHash64;

/// Hashes that an estimate of the distinct values is made of: its standard error is 1.6 %.
const HASHES: usize = 4096;

/// Bytes of an entry beside its value: the entry in the table, which is half empty after it has
/// grown, and what an allocation takes.
const ENTRY: usize = 80;

/// A value: what fits 64 bits is one word, whose order is that of the values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Word(u64),
    Bytes(Box<[u8]>),
}

impl Value {
    fn len(&self) -> usize {
        match self {
            Self::Word(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// How often each value is there. Once that takes too much memory, rare values are forgotten: then
/// counts are lower bounds, and the distinct values are estimated.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) nulls: u64,
    /// Values that are not null.
    values: u64,
    counts: HashTable<(Value, u64)>,
    hasher: RandomState,
    bytes: usize,
    /// By how much counts may be too small.
    missed: u64,
    /// The smallest hashes of all values, once some are forgotten.
    smallest: Option<BTreeSet<u64>>,
    /// How many values were different before they were changed to others, whose hashes are others.
    distinct_before: u64,
}

impl Tally {
    /// Counts a value that fits 64 bits.
    pub(super) fn add_word(&mut self, word: u64, times: u64) {
        let is_known = |known: &Value| matches!(known, Value::Word(known) if *known == word);
        self.add(self.hasher.hash_one(word), is_known, || Value::Word(word), times);
    }

    /// Counts a value of bytes.
    pub(super) fn add_bytes(&mut self, bytes: &[u8], times: u64) {
        let is_known = |known: &Value| matches!(known, Value::Bytes(known) if **known == *bytes);
        self.add(self.hasher.hash_one(bytes), is_known, || Value::Bytes(bytes.into()), times);
    }

    fn add(
        &mut self,
        hash: u64,
        is_known: impl Fn(&Value) -> bool,
        value: impl FnOnce() -> Value,
        times: u64,
    ) {
        self.values += times;
        let hasher = &self.hasher;
        let hash_of = |(value, _): &(Value, u64)| match value {
            Value::Word(word) => hasher.hash_one(word),
            Value::Bytes(bytes) => hasher.hash_one(&**bytes),
        };
        match self.counts.entry(hash, |(known, _)| is_known(known), hash_of) {
            Entry::Occupied(mut known) => known.get_mut().1 += times,
            Entry::Vacant(new) => {
                let value = value();
                self.bytes += value.len() + ENTRY;
                // One that is in the table was seen before.
                if let Some(smallest) = &mut self.smallest {
                    keep_smallest(smallest, &value);
                }
                new.insert((value, times));
            }
        }
    }

    /// Converts the counted values with `changed`.
    pub(super) fn map<E>(
        &mut self,
        changed: impl Fn(&Value) -> Result<Box<[u8]>, E>,
    ) -> Result<(), E> {
        if let Some(smallest) = self.smallest.as_mut().map(std::mem::take) {
            self.distinct_before = self.distinct_before.max(estimate(&smallest));
        }
        let counts = std::mem::take(&mut self.counts);
        (self.values, self.bytes) = (self.values - counts.iter().map(|(_, n)| n).sum::<u64>(), 0);
        for (value, times) in counts {
            self.add_bytes(&changed(&value)?, times);
        }
        Ok(())
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
            self.counts.iter().for_each(|(value, _)| keep_smallest(&mut smallest, value));
            self.smallest = Some(smallest);
        }
        let mut counts: Vec<u64> = self.counts.iter().map(|(_, times)| *times).collect();
        let middle = counts.len() / 2;
        if counts.is_empty() {
            return;
        }
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.counts.retain(|(_, times)| {
            *times -= median.min(*times);
            *times > 0
        });
        self.bytes = self.counts.iter().map(|(value, _)| value.len() + ENTRY).sum();
        self.missed += median;
    }

    /// How many values are different; an estimate once some are forgotten.
    pub(super) fn distinct(&self) -> u64 {
        match &self.smallest {
            None => self.counts.len() as u64,
            Some(smallest) => estimate(smallest).max(self.distinct_before),
        }
    }

    /// Whether no value is there twice, as far as is known.
    pub(super) fn all_differ(&self) -> bool {
        self.is_exact() && self.values > 1 && self.counts.len() as u64 == self.values
    }

    /// The most frequent values, with lower bounds of their counts. Values that forgotten ones may
    /// surpass are left out.
    pub(super) fn most_frequent(&self, n: usize) -> Vec<(&Value, u64)> {
        let known = self.counts.iter().map(|(value, times)| (value, *times));
        let mut known: Vec<(&Value, u64)> =
            known.filter(|(_, times)| *times > self.missed || self.is_exact()).collect();
        let order = |a: &(&Value, u64), b: &(&Value, u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0));
        if n < known.len() {
            known.select_nth_unstable_by(n, order);
            known.truncate(n);
        }
        known.sort_unstable_by(order);
        known
    }
}

fn keep_smallest(smallest: &mut BTreeSet<u64>, value: &Value) {
    // Without a seed, so that the same file has the same estimate.
    let hash = match value {
        Value::Word(word) => XxHash64::oneshot(0, &word.to_be_bytes()),
        Value::Bytes(bytes) => XxHash64::oneshot(0, bytes),
    };
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

    fn text(value: &Value) -> String {
        let Value::Bytes(bytes) = value else { panic!("{value:?}") };
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn what_is_forgotten_leaves_the_frequent_values_and_an_estimate() {
        let seed = fastrand::u64(..);
        let values = values(&mut fastrand::Rng::with_seed(seed), 200_000);
        let (mut exact, mut small) = (Tally::default(), Tally::default());
        for value in &values {
            exact.add_bytes(value.as_bytes(), 1);
            small.add_bytes(value.as_bytes(), 1);
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
            found.iter().map(|(value, _)| text(value)).collect()
        };
        assert_eq!(names(&exact, 2), ["common", "second"], "seed {seed}");
        // No rare value is listed as frequent.
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
            tally.add_bytes(value.as_bytes(), 1);
        }
        let found = |n| -> Vec<(String, u64)> {
            tally.most_frequent(n).into_iter().map(|(value, n)| (text(value), n)).collect()
        };
        assert_eq!(found(3), [("c", 2), ("a", 1), ("b", 1)].map(|(text, n)| (text.to_owned(), n)));
        assert_eq!(found(0), []);
        assert!(!tally.all_differ());
    }
}
