//! Reads parts of a column chunk that are not its rows: its bloom filter, and its dictionary.

use arrow_array::ArrayRef;

use super::Reader;
use crate::error::Result;
use crate::io::read_exactly;
use crate::limits::Budget;
use crate::read::bloom_filter::BloomFilter;
use crate::read::{ChunkDictionary, StoredBloom};

impl Reader {
    /// Reads the bloom filter of a column chunk; `None` if it has none.
    ///
    /// See [`BloomFilter`] for an example.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if the filter is broken or outside the file,
    /// `Unsupported` if its algorithm, hash or compression is unknown, `Crypto` if its key is
    /// missing, `Limit(Memory)` if it is larger than the memory, `Io`.
    pub fn bloom_filter(&self, row_group: usize, leaf: usize) -> Result<Option<BloomFilter>> {
        let read = || {
            let Some(stored) = StoredBloom::new(&self.metadata, row_group, leaf)? else {
                return Ok(None);
            };
            let budget = Budget::new(self.options.limits.memory_bytes);
            // As it is stored, as it is decrypted, and as blocks.
            let fetch = |range: std::ops::Range<u64>| {
                let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                let memory = budget.take_for("a bloom filter", len.saturating_mul(3))?;
                Ok::<_, crate::Error>((read_exactly(&*self.source, range)?, memory))
            };
            let (bytes, _memory) = fetch(stored.first_range()?)?;
            match stored.whole_range(&bytes)? {
                None => stored.open(&bytes).map(Some),
                Some(range) => {
                    let (bytes, _memory) = fetch(range)?;
                    stored.open(&bytes).map(Some)
                }
            }
        };
        read().map_err(|e| self.name(self.at_chunk(e, row_group, leaf)))
    }

    /// Reads the dictionary of a column chunk as an array of the type that the column is read as:
    /// the entries, in their order; `None` if it has none. No other page is decoded.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::arrow_array::{Array, StringArray};
    ///
    /// let reader = Reader::open("testdata/trips.parquet")?;
    /// let leaf = reader.metadata().schema().leaf_named("payment")?;
    /// let values = reader.dictionary_values(0, leaf)?.expect("few values, so a dictionary");
    /// let values = values.as_any().downcast_ref::<StringArray>().expect("strings");
    /// assert!(values.iter().any(|value| value == Some("card")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata or the page are broken,
    /// `Unsupported` if the column has no Arrow type, `Crypto` if its key is missing,
    /// `Limit(Memory)` if it is larger than the memory, `Io`.
    pub fn dictionary_values(&self, row_group: usize, leaf: usize) -> Result<Option<ArrayRef>> {
        let read = || {
            let options = &self.options;
            let wanted = ChunkDictionary::new(&self.metadata, row_group, leaf, options)?;
            let Some(wanted) = wanted else { return Ok(None) };
            let budget = Budget::new(options.limits.memory_bytes);
            let len = wanted.range.end - wanted.range.start;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let _memory = budget.take_for("a dictionary page", len)?;
            let bytes = read_exactly(&*self.source, wanted.range.clone())?;
            wanted.decode(bytes, options, &budget)
        };
        read().map_err(|e| self.name(self.at_chunk(e, row_group, leaf)))
    }

    fn at_chunk(&self, error: crate::Error, row_group: usize, leaf: usize) -> crate::Error {
        let error = error.at_row_group(row_group);
        match self.metadata.schema().leaf(leaf) {
            Ok(leaf) => error.at_column(leaf.path.dotted()),
            Err(_) => error,
        }
    }
}
