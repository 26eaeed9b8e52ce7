//! [`LeafWriter`]: a row group from the levels and values of its leaves.

use std::fmt;

use super::row_group_encoder::RowGroupEncoder;
use crate::error::{Error, Result};
use crate::read::LeafEntries;
use crate::schema::Leaf;
use crate::write::{
    CheckedSortOrder, EncodedChunk, EncodedRowGroup, GivenEntries, GivenLeaf, GivenLevels,
    check_siblings, encode_leaf,
};

/// Encodes a row group leaf by leaf, from definition levels, repetition levels and values: for
/// engines that shred rows in their own way, and for copies of what
/// [`Reader::leaf_entries`](crate::Reader::leaf_entries) reads. Made by
/// [`RowGroupEncoder::leaves`].
///
/// Pages, statistics, indexes and bloom filters are made as for batches. The row group goes into a
/// file by [`Writer::append`](crate::Writer::append) or
/// [`AsyncWriter::append`](crate::AsyncWriter::append).
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::read::LeafEntries;
/// use marquetry::{Reader, RowGroupEncoder, WriteOptions, Writer};
///
/// let reader = Reader::open("testdata/trips.parquet")?;
/// let encoder = RowGroupEncoder::new(reader.schema()?, WriteOptions::new())?;
/// let mut writer = Writer::over(marquetry::io::WriteSink(Vec::new()), encoder.clone());
/// let rows = reader.metadata().footer().row_group_rows(0)?;
/// let mut leaves = encoder.leaves(rows as usize);
/// for leaf in 0..reader.metadata().schema().leaves_len() {
///     let entries = reader.leaf_entries(0, leaf)?.collect::<marquetry::Result<Vec<_>>>()?;
///     leaves.write(&entries)?;
/// }
/// writer.append(leaves.finish()?)?;
/// assert_eq!(writer.finish()?.rows, rows);
/// # Ok(())
/// # }
/// ```
///
/// # The levels
///
/// All of it is checked: the number of levels, values and rows; that no level is above the highest;
/// that no entry continues a list that is null or empty; and that the leaves of a struct or map
/// agree on it and on the lists around it. The lists of a `FixedSizeList` are not compared with
/// its size: readers that go by the Arrow schema refuse those of others.
pub struct LeafWriter {
    encoder: RowGroupEncoder,
    rows: usize,
    chunks: Vec<EncodedChunk>,
    /// The levels of the leaves so far of the column that the next one belongs to.
    levels: Vec<GivenLevels>,
    /// The column of the next leaf.
    column: usize,
    is_failed: bool,
}

impl fmt::Debug for LeafWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafWriter")
            .field("rows", &self.rows)
            .field("leaves", &self.chunks.len())
            .finish_non_exhaustive()
    }
}

impl RowGroupEncoder {
    /// Encodes a row group of this many rows from the levels and values of its leaves.
    pub fn leaves(&self, rows: usize) -> LeafWriter {
        let (chunks, levels) = (Vec::new(), Vec::new());
        LeafWriter { encoder: self.clone(), rows, chunks, levels, column: 0, is_failed: false }
    }
}

impl LeafWriter {
    /// The leaf that [`LeafWriter::write`] takes next; `None` after the last.
    pub fn next_leaf(&self) -> Option<&Leaf> {
        self.encoder.file.row_groups.leaves.get(self.chunks.len())
    }

    /// Writes all rows of the [next leaf](LeafWriter::next_leaf), in one or several pieces of whole
    /// rows. Leaves come depth-first, as in the Parquet schema.
    ///
    /// # Errors
    /// `Usage` if levels or values are [not as they must be](LeafWriter#the-levels), the rows are
    /// not as many as the row group has, or a value does not fit the leaf. Nothing more may be
    /// written then.
    pub fn write(&mut self, entries: &[LeafEntries]) -> Result<()> {
        if self.is_failed {
            return Err(Error::usage("an earlier error ended the row group"));
        }
        let Some(leaf) = self.next_leaf().cloned() else {
            return Err(Error::usage("the row group has all of its leaves"));
        };
        let done = self.write_leaf(&leaf, entries).map_err(|e| e.at_column(leaf.path.dotted()));
        self.is_failed = done.is_err();
        done
    }

    fn write_leaf(&mut self, leaf: &Leaf, entries: &[LeafEntries]) -> Result<()> {
        let layout = &self.encoder.file.row_groups;
        let mut given = GivenLeaf::new(leaf);
        let mut rows = 0usize;
        for entries in entries {
            rows = rows.saturating_add(entries.rows);
            let entries = GivenEntries {
                rows: entries.rows,
                definition_levels: &entries.definition_levels,
                repetition_levels: &entries.repetition_levels,
                values: &entries.values,
            };
            given.push(leaf, &entries)?;
        }
        if rows != self.rows {
            return Err(Error::usage(format_args!(
                "the leaf has {rows} rows, where the row group has {}",
                self.rows
            )));
        }
        let (column, levels) = given.finish(layout, leaf)?;
        self.levels.push(levels);
        if let Some(shape) = layout.shapes.get(self.column) {
            let mut leaves = 0;
            shape.for_each_leaf(&mut |_, _| leaves += 1);
            if self.levels.len() == leaves {
                check_siblings(shape, &self.levels)?;
                self.levels.clear();
                self.column += 1;
            }
        }
        let parallelism = self.encoder.threads.parallelism();
        self.chunks.push(encode_leaf(layout, leaf.index, &column, rows, &parallelism)?);
        Ok(())
    }

    /// The row group, for a file of this encoder.
    ///
    /// # Errors
    /// `Usage` if leaves are missing, or if rows are stated to be sorted, which is not checked
    /// here: see [`with_unchecked_sort_order`].
    ///
    /// [`with_unchecked_sort_order`]: crate::WriteOptions::with_unchecked_sort_order
    pub fn finish(self) -> Result<EncodedRowGroup> {
        if let (false, Some(leaf)) = (self.is_failed, self.next_leaf()) {
            return Err(Error::usage("the leaf is missing").at_column(leaf.path.dotted()));
        }
        if self.is_failed {
            return Err(Error::usage("an earlier error ended the row group"));
        }
        let layout = self.encoder.file.row_groups;
        if layout.sorting.as_ref().is_some_and(CheckedSortOrder::is_checked) {
            return Err(Error::usage("the order of rows that are given as leaves is not checked"));
        }
        let sorting = layout.sorting.as_ref().map(CheckedSortOrder::columns);
        Ok(EncodedRowGroup { rows: self.rows, layout, chunks: self.chunks, sorting })
    }
}
