//! Builds the bloom filter of a chunk while its pages are made.

use std::ops::Range;

use hashbrown::HashTable;

use super::values::LeafValues;
use crate::error::Result;
use crate::memory;
use crate::schema::{Leaf, Physical};
use crate::stats::bloom::{self, Bloom};
use crate::write::column_options::{BloomOptions, LeafSettings};

/// A bloom filter of values, which may repeat.
pub(super) struct BloomBuilder {
    options: BloomOptions,
    bloom: Bloom,
    distinct: HashTable<u64>,
}

impl BloomBuilder {
    /// For `n` values; `None` if no filter is wanted, or is of use.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn new(leaf: &Leaf, settings: &LeafSettings, n: usize) -> Result<Option<Self>> {
        let wanted = settings.bloom.filter(|_| leaf.physical != Physical::Boolean);
        let Some(options) = wanted else { return Ok(None) };
        let bloom = Bloom::new(n as u64, options.fpp)?;
        Ok(Some(Self { options, bloom, distinct: HashTable::new() }))
    }

    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(super) fn push(&mut self, values: &LeafValues<'_>, range: Range<usize>) -> Result<()> {
        let mut has_memory = true;
        let mut add = |value: &[u8]| {
            let hash = bloom::hash(value);
            if self.distinct.find(hash, |other| *other == hash).is_none() {
                has_memory &= self.distinct.try_reserve(1, |hash| *hash).is_ok();
                if !has_memory {
                    return;
                }
                self.distinct.insert_unique(hash, hash, |hash| *hash);
                self.bloom.insert_hash(hash);
            }
        };
        match values {
            LeafValues::Bits(_) => {}
            LeafValues::Words32(values) => {
                values
                    .get(range)
                    .expect("pages and samples lie within the values")
                    .iter()
                    .for_each(|v| add(&v.to_le_bytes()));
            }
            LeafValues::Words64(values) => {
                values
                    .get(range)
                    .expect("pages and samples lie within the values")
                    .iter()
                    .for_each(|v| add(&v.to_le_bytes()));
            }
            LeafValues::Bytes(byte_arrays) => byte_arrays.iter(range).for_each(add),
            LeafValues::Fixed { .. } => values.slices(range)?.into_iter().for_each(add),
        }
        if has_memory { Ok(()) } else { Err(memory::none_for("the values of a bloom filter")) }
    }

    /// The filter, with its header.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.bloom.folded(self.distinct.len() as u64, self.options.fpp).write(&mut out).ok()?;
        Some(out)
    }
}
