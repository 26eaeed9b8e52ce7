//! [`Reader`]: a file, and the options of a read of it.

mod file;
mod batch_output;
mod null_pages;
mod batches;
mod builder;
mod leaf_entries;
#[cfg(feature = "async")]
mod stream;
#[cfg(all(feature = "async", feature = "engine"))]
mod steering;
mod parts;
mod dataset;
mod hive;
mod points;
mod blocks;
mod shuffle;
mod external;
mod chunk_parts;
#[cfg(feature = "async")]
mod streams;
#[cfg(feature = "object_store")]
mod store;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::crypt::{Module, opened};
use crate::error::Result;
use crate::format::OffsetIndex;
use crate::io::{Explanation, Indexed, Source, load_indexes, read_exactly};
use crate::limits::Budget;
use crate::predicate::ColumnStatistics;
use crate::read::{
    ChunkWalk, OnDamage, PageCache, PageIndex, RowRange, StoredPages, column_index_range, decode,
    offset_index_range,
};
use crate::rows;

#[cfg(feature = "async")]
pub use self::{
    stream::{AsyncReader, BatchStream},
    streams::DatasetStream,
};
pub use batches::{Batches, DamagedRowGroup};
pub use dataset::{Dataset, DatasetBatches};
#[cfg(feature = "check")]
pub(crate) use external::inside;
pub use file::{Reader, Threads};
pub use leaf_entries::LeafBatches;
pub use null_pages::NulledPage;
pub use shuffle::{Shuffled, ShuffledBatches};
#[cfg(all(feature = "async", feature = "engine"))]
pub use steering::KnownFile;

impl Reader {
    /// Counts the rows that [`Reader::batches`] would return. With a filter, the columns that it
    /// needs are read, except where the metadata decide.
    ///
    /// # Errors
    /// As [`Reader::batches`] and its batches.
    pub fn count(&self) -> Result<u64> {
        if self.options.filter.is_none() {
            return self.rows();
        }
        if self.options.on_damage != OnDamage::Fail {
            return Err(self.refuses_damage("counts of rows that pass a filter"));
        }
        let mut reader = self.counting();
        let (offset, limit) = (reader.options.offset, reader.options.limit);
        // Row groups whose rows all pass, as the metadata prove, are not read.
        let plan = reader.plan()?;
        let proven = plan.ranges().iter().filter(|range| range.is_proven()).map(RowRange::count);
        let mut rows = proven.fold(0u64, u64::saturating_add);
        let doubtful = plan.ranges().iter().filter(|range| !range.is_proven());
        let doubtful: Vec<usize> = doubtful.map(|range| range.row_group).collect();
        match &reader.wiring.part {
            Some(part) => {
                let of_doubtful = part.iter().filter(|(row_group, _)| doubtful.contains(row_group));
                reader.wiring.part = Some(of_doubtful.cloned().collect());
            }
            None => reader.options.row_groups = Some(doubtful),
        }
        // Offset and limit count all rows that pass.
        let wanted = limit.map(|limit| limit.saturating_add(offset).saturating_sub(rows));
        (reader.options.offset, reader.options.limit) = (0, wanted);
        let mut batches = reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            rows = rows.saturating_add(batch.num_rows() as u64);
        }
        Ok(rows.saturating_sub(offset).min(limit.unwrap_or(u64::MAX)))
    }

    /// Reads rows by their numbers in the file, in any order, and repeatedly if asked, as one batch
    /// in the order of `rows`.
    ///
    /// Each page is read once. If the file has a page index, only pages that hold a row are read.
    /// Later reads of this reader and its clones reuse the page indexes that were read, and
    /// dictionaries that were decompressed twice: at most 32 MiB in all. Selection, filter, row
    /// groups, offset and limit of this reader are ignored.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// let batch = reader.project(["id"])?.take(&[700, 3, 3])?;
    /// assert_eq!(batch.num_rows(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if the file has no such row; else as [`Reader::batches`] and its batches.
    pub fn take(&self, rows: &[u64]) -> Result<RecordBatch> {
        let (reader, places) = self.taking(rows)?;
        let mut batches = reader.batches()?;
        let mut found = Vec::new();
        while let Some(batch) = batches.next_batch()? {
            found.push(batch);
        }
        rows::take(&batches.schema(), &found, &places).map_err(|e| self.name(e))
    }

    /// Reads the page index of a column chunk; each half is `None` if the file does not have it.
    ///
    /// It is fetched unless it was loaded ([`Reader::load_page_indexes`]); for many chunks, load
    /// them first.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if an index lies outside the file or violates
    /// the format, `Io`.
    pub fn page_index(&self, row_group: usize, leaf: usize) -> Result<PageIndex> {
        let read = || -> Result<PageIndex> {
            let places = self.metadata.index().index_places(row_group, [leaf])?;
            let places = places.first().copied().unwrap_or_default();
            let fetch = |range: Option<Range<u64>>| -> Result<Option<Bytes>> {
                let Some(range) = range else { return Ok(None) };
                match self.metadata.loaded(&range) {
                    Some(bytes) => Ok(Some(bytes)),
                    None => read_exactly(&*self.source, range).map(Some),
                }
            };
            let file_len = self.metadata.file_len();
            let offsets = fetch(offset_index_range(&places, file_len)?)?;
            let columns = fetch(column_index_range(&places, file_len)?)?;
            let footer = self.metadata.footer();
            let chunk = footer.column_chunk_ref(row_group, leaf)?;
            let opener = footer.chunk_decryptor(row_group, leaf, &chunk)?;
            let opener = opener.as_ref();
            let offsets = offsets.as_ref().map(|bytes| opened(opener, Module::OffsetIndex, bytes));
            let columns = columns.as_ref().map(|bytes| opened(opener, Module::ColumnIndex, bytes));
            let (offsets, columns) = (offsets.transpose()?, columns.transpose()?);
            Ok(PageIndex {
                offset_index: decode(offsets.as_deref())?,
                column_index: decode(columns.as_deref())?,
            })
        };
        read().map_err(|e| self.name(e.at_row_group(row_group)))
    }

    /// Reads the pages of a column chunk as they are stored: their places and their headers. The
    /// chunk is fetched, and nothing of it is decompressed. Headers of an encrypted column are
    /// decrypted.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// for page in reader.stored_pages(0, 0)? {
    ///     let page = page?;
    ///     println!("{} at byte {}", page.header.r#type, page.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Crypto` if its
    /// key is missing, `Limit(Memory)` if it is larger than the memory, `Io`.
    pub fn stored_pages(&self, row_group: usize, leaf: usize) -> Result<StoredPages> {
        let read = || {
            let footer = self.metadata.footer();
            let limits = &self.options.limits;
            let walk = ChunkWalk::new(footer, self.file_len(), row_group, leaf, limits)?;
            let len = walk.range.end - walk.range.start;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let memory = Budget::new(limits.memory_bytes).take_for("a column chunk", len)?;
            let bytes = read_exactly(&*self.source, walk.range.clone())?;
            Ok(walk.pages(bytes, memory))
        };
        read().map_err(|e| self.name(e))
    }

    /// The statistics of a column, one row for each row group of the file: bounds as Arrow arrays
    /// of the type that the column is read as. The column is named as in [`Reader::project`], down
    /// to a leaf. Nothing is fetched.
    ///
    /// See [`ColumnStatistics`] for an example.
    ///
    /// # Errors
    /// `Usage` if the file has no such column; as
    /// [`Metadata::column_statistics`](crate::Metadata::column_statistics).
    pub fn column_statistics(&self, column: &str) -> Result<ColumnStatistics> {
        let leaf = self.metadata.schema().leaf_named(column).map_err(|e| self.name(e))?;
        let found = self.metadata.column_statistics(leaf, &self.options.arrow);
        found.map_err(|e| self.name(e))
    }

    /// Like [`Reader::column_statistics`], one row for each data page. Fetches the page indexes of
    /// the column, unless they were loaded.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let reader = marquetry::Reader::open("testdata/trips.parquet")?;
    /// let pages = reader.page_statistics("id")?;
    /// assert_eq!(pages.row_count.values().iter().sum::<u64>(), reader.file_rows()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::column_statistics`]; `Limit` if the indexes are too long, `Io`.
    pub fn page_statistics(&self, column: &str) -> Result<ColumnStatistics> {
        let leaf = self.metadata.schema().leaf_named(column).map_err(|e| self.name(e))?;
        let mut metadata = self.metadata.clone();
        let groups = 0..metadata.row_groups();
        let limits = &self.options.limits;
        load_indexes(&*self.source, &mut metadata, groups, [leaf], limits)
            .and_then(|()| metadata.page_statistics(leaf, &self.options.arrow))
            .map_err(|e| self.name(e))
    }

    /// Loads the page indexes of the columns and row groups that the options select, in few reads.
    /// They stay in the [`Metadata`](crate::Metadata): neither this reader nor others that are
    /// opened with the metadata fetch them again.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// let mut reader = marquetry::Reader::open("testdata/trips.parquet")?.project(["id"])?;
    /// reader.load_page_indexes()?;
    /// let index = reader.metadata().page_index(0, 0)?;
    /// println!("{} pages", index.offset_index.map_or(0, |index| index.page_locations.len()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::plan`]; `Malformed` if a column chunk is broken, `Limit` if the indexes are too
    /// long, `Io`.
    pub fn load_page_indexes(&mut self) -> Result<()> {
        let (row_groups, leaves) = self.index_wants()?;
        let (options, leaves) = (&self.options, leaves.iter().copied());
        let metadata = &mut self.metadata;
        let loaded = load_indexes(&*self.source, metadata, row_groups, leaves, &options.limits);
        loaded.map_err(|e| self.name(e))
    }

    /// Explains what the read will do: the row groups and pages that are left, what pruned the
    /// others, bytes and requests. Fetches indexes, as the read will.
    ///
    /// # Errors
    /// As [`Reader::plan`], and any fault of the metadata of the row groups.
    pub fn explain(&self) -> Result<Explanation> {
        // Without what this reader has read before, so that the result is always the same.
        let plan = self.plan()?.with_page_cache(&PageCache::default());
        Explanation::new(self.indexed_source(), &plan).map_err(|e| self.name(e))
    }

    /// This reader, of a file that stays open: for many reads in a row.
    fn kept_open(&self) -> Result<Self> {
        let kept = self.source.keep_open().map_err(|e| self.name(e))?;
        let source = kept.unwrap_or_else(|| self.source.clone());
        Ok(Self { source, ..self.clone() })
    }

    /// The offset index of a column chunk, if there is one.
    fn offset_index(&self, row_group: usize, leaf: usize) -> Result<Option<OffsetIndex>> {
        let read = || -> Result<Option<OffsetIndex>> {
            let places = self.metadata.index().index_places(row_group, [leaf])?;
            let places = places.first().copied().unwrap_or_default();
            let range = offset_index_range(&places, self.metadata.file_len())?;
            let Some(range) = range else { return Ok(None) };
            let bytes = match self.metadata.loaded(&range) {
                Some(bytes) => bytes,
                None => read_exactly(&*self.source, range)?,
            };
            let footer = self.metadata.footer();
            let chunk = footer.column_chunk_ref(row_group, leaf)?;
            let opener = footer.chunk_decryptor(row_group, leaf, &chunk)?;
            decode(Some(&opened(opener.as_ref(), Module::OffsetIndex, &bytes)?))
        };
        read().map_err(|e| self.name(e.at_row_group(row_group)))
    }

    /// The source, with the page indexes that are loaded served from memory.
    fn indexed_source(&self) -> Arc<dyn Source> {
        if self.metadata.index_bytes() == 0 || self.source.in_memory() {
            return self.source.clone();
        }
        Arc::new(Indexed::new(self.source.clone(), self.metadata.clone()))
    }
}

#[cfg(test)]
mod tests;
