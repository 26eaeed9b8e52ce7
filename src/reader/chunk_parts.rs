//! Reads parts of a column chunk that are not its rows: its bloom filter, and its dictionary.

use std::ops::Range;

use arrow_array::ArrayRef;
use bytes::Bytes;

use super::Reader;
use crate::error::Result;
use crate::io::read_exactly;
use crate::limits::{Budget, Reservation};
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
        let read = || self.fetched(self.bloom_step(row_group, leaf)?);
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
        let read = || self.fetched(self.dictionary_step(row_group, leaf)?);
        read().map_err(|e| self.name(self.at_chunk(e, row_group, leaf)))
    }

    fn fetched<T>(&self, mut step: PartStep<T>) -> Result<T> {
        loop {
            step = match step {
                PartStep::Done(part) => return Ok(part),
                PartStep::Needs { range, _memory, supply } => {
                    supply(read_exactly(&*self.source, range)?)?
                }
            };
        }
    }
}

#[cfg(feature = "async")]
impl super::AsyncReader {
    /// Reads the bloom filter of a column chunk; `None` if it has none.
    ///
    /// # Errors
    /// As the `bloom_filter` of a [`Reader`] whose bytes do not come asynchronously.
    pub async fn bloom_filter(&self, row_group: usize, leaf: usize) -> Result<Option<BloomFilter>> {
        let read = async { self.fetched(self.bloom_step(row_group, leaf)?).await };
        read.await.map_err(|e| self.name(self.at_chunk(e, row_group, leaf)))
    }

    /// Reads the dictionary of a column chunk as an array of the type that the column is read as:
    /// the entries, in their order; `None` if it has none. No other page is decoded.
    ///
    /// # Errors
    /// As the `dictionary_values` of a [`Reader`] whose bytes do not come asynchronously.
    pub async fn dictionary_values(
        &self,
        row_group: usize,
        leaf: usize,
    ) -> Result<Option<ArrayRef>> {
        let read = async { self.fetched(self.dictionary_step(row_group, leaf)?).await };
        read.await.map_err(|e| self.name(self.at_chunk(e, row_group, leaf)))
    }

    async fn fetched<T>(&self, mut step: PartStep<T>) -> Result<T> {
        loop {
            step = match step {
                PartStep::Done(part) => return Ok(part),
                PartStep::Needs { range, _memory, supply } => supply({
                    let end = self.end.clone();
                    crate::io::read_range_async(&self.source, end, range).await?
                })?,
            };
        }
    }
}

/// The next step of reading a part of a column chunk.
enum PartStep<T> {
    /// The part needs bytes of the file, and is further when it has them.
    Needs { range: Range<u64>, _memory: Reservation, supply: PartSupply<T> },
    /// It is read.
    Done(T),
}

type PartSupply<T> = Box<dyn FnOnce(Bytes) -> Result<PartStep<T>> + Send>;

/// As it is stored, as it is decrypted, and as blocks.
const BLOOM_COPIES: usize = 3;

impl<T> PartStep<T> {
    /// Needs the bytes of `range`, and memory for as many `copies`.
    fn needs(
        budget: &Budget,
        what: &'static str,
        (range, copies): (Range<u64>, usize),
        supply: impl FnOnce(Bytes) -> Result<Self> + Send + 'static,
    ) -> Result<Self> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let _memory = budget.take_for(what, len.saturating_mul(copies))?;
        Ok(Self::Needs { range, _memory, supply: Box::new(supply) })
    }
}

impl<S> Reader<S> {
    fn bloom_step(&self, row_group: usize, leaf: usize) -> Result<PartStep<Option<BloomFilter>>> {
        let Some(stored) = StoredBloom::new(&self.metadata, row_group, leaf)? else {
            return Ok(PartStep::Done(None));
        };
        let budget = Budget::new(self.options.limits.memory_bytes);
        let needs = (stored.first_range()?, BLOOM_COPIES);
        PartStep::needs(&budget.clone(), "a bloom filter", needs, move |bytes| {
            let Some(range) = stored.whole_range(&bytes)? else {
                return stored.open(&bytes).map(|filter| PartStep::Done(Some(filter)));
            };
            PartStep::needs(&budget, "a bloom filter", (range, BLOOM_COPIES), move |bytes| {
                stored.open(&bytes).map(|filter| PartStep::Done(Some(filter)))
            })
        })
    }

    fn dictionary_step(&self, row_group: usize, leaf: usize) -> Result<PartStep<Option<ArrayRef>>> {
        let options = self.options.clone();
        let wanted = ChunkDictionary::new(&self.metadata, row_group, leaf, &options)?;
        let Some(wanted) = wanted else { return Ok(PartStep::Done(None)) };
        let budget = Budget::new(options.limits.memory_bytes);
        let needs = (wanted.range.clone(), 1);
        PartStep::needs(&budget.clone(), "a dictionary page", needs, move |bytes| {
            wanted.decode(bytes, &options, &budget).map(PartStep::Done)
        })
    }

    pub(super) fn at_chunk(
        &self,
        error: crate::Error,
        row_group: usize,
        leaf: usize,
    ) -> crate::Error {
        let error = error.at_row_group(row_group);
        match self.metadata.schema().leaf(leaf) {
            Ok(leaf) => error.at_column(leaf.path.dotted()),
            Err(_) => error,
        }
    }
}
