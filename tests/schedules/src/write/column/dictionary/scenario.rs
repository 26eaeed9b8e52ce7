//! Threads that intern the parts of values, and one that interns them all.

use std::ops::Range;

use shuttle::rand::Rng;
use shuttle::thread;

use super::limits::{BLOCK, DictionaryGrowth, DictionaryLimits};
use super::parts::{DictionaryBuilder, PartedValues};
use crate::free_lists::FreeLists;
use crate::write::{Parallelism, SingleThread};

/// Threads of the scheduler, one for each part.
struct Threads;

impl Parallelism for Threads {
    fn threads(&self) -> usize {
        3
    }

    fn for_each(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
        thread::scope(|scope| {
            for i in 0..n {
                scope.spawn(move || work(i));
            }
        });
    }
}

/// A dictionary of numbers below 256.
struct Numbers {
    places: Vec<u32>,
    entries: Vec<u8>,
    codes: Vec<u32>,
    growth: DictionaryGrowth,
}

impl Numbers {
    fn new(growth: DictionaryGrowth) -> Self {
        let (entries, codes) = (Vec::new(), Vec::new());
        Self { places: vec![u32::MAX; 256], entries, codes, growth }
    }

    fn code(&mut self, value: u8) -> u32 {
        let place = &mut self.places[usize::from(value)];
        if *place == u32::MAX {
            *place = self.entries.len() as u32;
            self.entries.push(value);
        }
        *place
    }

    fn push(&mut self, values: &[u8]) -> Option<()> {
        for block in values.chunks(BLOCK) {
            for value in block {
                let code = self.code(*value);
                self.codes.push(code);
            }
            let (seen, entries) = (self.codes.len(), self.entries.len());
            self.growth.should_continue(seen, entries, entries).then_some(())?;
        }
        Some(())
    }
}

impl DictionaryBuilder for Numbers {
    type Entry = u8;

    fn growth(&mut self) -> &mut DictionaryGrowth {
        &mut self.growth
    }

    fn size(&mut self) -> (usize, usize) {
        (self.entries.len(), self.entries.len())
    }

    fn merge(&mut self, entries: &[u8]) -> Option<Vec<u32>> {
        Some(entries.iter().map(|entry| self.code(*entry)).collect())
    }

    fn append_codes(&mut self, n: usize) -> Option<&mut [u32]> {
        let start = self.codes.len();
        self.codes.resize(start + n, 0);
        self.codes.get_mut(start..)
    }

    fn end(&mut self) -> Option<()> {
        Some(())
    }

    fn into_dictionary(self) -> (Vec<u8>, Vec<u32>) {
        (self.entries, self.codes)
    }
}

pub(crate) fn run() {
    let mut rng = shuttle::rand::thread_rng();
    let distinct = rng.gen_range(1..=255);
    let values: Vec<u8> = (0..3 * BLOCK).map(|i| (i * 7 % distinct + i / BLOCK) as u8).collect();
    let bytes = if rng.gen_bool(0.5) { usize::MAX } else { rng.gen_range(0..=256) };
    let limits = DictionaryLimits { bytes, must_pay: rng.gen_bool(0.5) };
    let free_lists = FreeLists::none();
    let intern = |parallelism: &dyn Parallelism| {
        let parted = PartedValues { n: values.len(), limits, parallelism, free_lists: &free_lists };
        parted.intern(
            |_, growth| Some(Numbers::new(growth)),
            |numbers, range: Range<usize>| numbers.push(&values[range]),
        )
    };
    assert!(intern(&Threads) == intern(&SingleThread), "{distinct} distinct, {limits:?}");
}
