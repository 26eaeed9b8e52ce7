//! [`Reader::leaf_entries`]: levels and values of a column chunk, without assembly.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::Reader;
use crate::error::{Error, Result};
use crate::io::{Source, read_exactly};
use crate::limits::Budget;
use crate::read::{ChunkEntries, LeafEntries, Step};

/// The entries of a column chunk, some rows at a time: made by [`Reader::leaf_entries`].
///
/// An item is `Malformed` if the chunk has fewer or more rows than its row group, or a page breaks
/// a rule; `Limit(Memory)` if the rows do not fit; `Io`. Nothing comes after an error.
pub struct LeafBatches<'a, S> {
    pub(super) reader: &'a Reader<S>,
    chunk: ChunkEntries,
    row_group: usize,
    leaf: usize,
    pub(super) is_done: bool,
}

impl<S> Reader<S> {
    /// Reads the definition levels, the repetition levels and the values of a leaf in a row group,
    /// as Dremel shredding made them: for engines that assemble rows in their own way.
    ///
    /// Each item has at most [`ReadOptions::batch_rows`](crate::read::ReadOptions::batch_rows)
    /// rows. Values have the type that the leaf is read as. Filter, offset, limit and selection are
    /// ignored. The chunk is fetched in pieces of 256 KiB, or of a page that is larger.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::arrow_array::Array;
    ///
    /// let reader = Reader::open("testdata/trips.parquet")?;
    /// let schema = reader.metadata().schema();
    /// let leaf = schema.leaf_named("stops.list.element.name")?;
    /// let max_def = schema.leaf(leaf)?.max_def;
    /// for entries in reader.leaf_entries(0, leaf)? {
    ///     let entries = entries?;
    ///     let begun = entries.repetition_levels.iter().filter(|level| **level == 0).count();
    ///     assert_eq!(begun, entries.rows);
    ///     let there = entries.definition_levels.iter().filter(|level| **level == max_def).count();
    ///     assert_eq!(there, entries.values.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Unsupported` if
    /// the column has no Arrow type, `Crypto` if its key is missing.
    pub fn leaf_entries(&self, row_group: usize, leaf: usize) -> Result<LeafBatches<'_, S>> {
        let options = &self.options;
        let budget = Budget::new(options.limits.memory_bytes);
        let chunk = ChunkEntries::new(&self.metadata, row_group, leaf, options, &budget)
            .map_err(|e| self.name(self.at_chunk(e, row_group, leaf)))?;
        Ok(LeafBatches { reader: self, chunk, row_group, leaf, is_done: false })
    }
}

impl<S> fmt::Debug for LeafBatches<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafBatches")
            .field("row_group", &self.row_group)
            .field("leaf", &self.leaf)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

impl<S> LeafBatches<'_, S> {
    /// Decodes until entries are done, or bytes are missing.
    pub(super) fn step(&mut self, given: Option<Bytes>) -> Result<Step<Option<LeafEntries>>> {
        self.chunk.step(self.reader.options.batch_rows, given)
    }

    /// Notes the end; errors are named, and nothing is read after one.
    pub(super) fn ended(
        &mut self,
        next: Result<Option<LeafEntries>>,
    ) -> Option<Result<LeafEntries>> {
        self.is_done = !matches!(next, Ok(Some(_)));
        let Self { reader, row_group, leaf, .. } = self;
        next.map_err(|e: Error| reader.name(reader.at_chunk(e, *row_group, *leaf))).transpose()
    }
}

impl Iterator for LeafBatches<'_, Arc<dyn Source>> {
    type Item = Result<LeafEntries>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.read_next();
        self.ended(next)
    }
}

impl LeafBatches<'_, Arc<dyn Source>> {
    fn read_next(&mut self) -> Result<Option<LeafEntries>> {
        let mut given = None;
        loop {
            given = match self.step(given)? {
                Step::Done(entries) => return Ok(entries),
                Step::NeedsMore(range) => Some(read_exactly(&*self.reader.source, range)?),
            };
        }
    }
}
