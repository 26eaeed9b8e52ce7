//! [`SpilledRows`]: the rows of a row group that do not fit into memory, in a temporary file.
//!
//! Rows are shredded as they come, and the levels and values of each leaf are appended to one file:
//! a slice of rows after the other, and within a slice leaf after leaf. In the end the leaves come
//! back a few at a time, each with all of its rows, and are encoded as if they had never left. So
//! the file has the pages, dictionaries and statistics that it has without spilling, and memory is
//! needed for a slice of all leaves, or for all rows of a few leaves.
//!
//! ```text
//! slice     extent of leaf 0 | extent of leaf 1 | …  | lengths of the extents, u64 each
//! ```
//!
//! Trap: with very many leaves and slices even the lengths of the extents would take much memory,
//! so that they are in the file, too.

mod values;
mod extent;

use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use bytes::Bytes;

use self::extent::{Extent, ExtentWriter, blocks, read};
use self::values::expanded_bytes;
use super::column::Parallelism;
use super::row_group::{BatchColumn, PendingRowGroup, RowGroupLayout, ShreddedRows};
use super::shred::LeafColumn;
use super::spill_store::{SpillFile, SpillStore};
use crate::bytes::saturated;
use crate::crypt::TemporaryKey;
use crate::error::{Error, Result};
use crate::memory;
use crate::rows;

/// The rows of a row group so far, in a temporary file.
pub(crate) struct SpilledRows {
    layout: Arc<RowGroupLayout>,
    file: Box<dyn SpillFile>,
    /// Bytes of the file.
    len: u64,
    key: Option<TemporaryKey>,
    rows: usize,
    slices: Vec<Slice>,
    leaves: Vec<SpilledLeaf>,
    /// The leaf that comes back next.
    next: usize,
    /// The last row, if the order of rows is checked.
    last: Option<RecordBatch>,
}

/// Some rows of all leaves.
struct Slice {
    /// Where the extent of the next leaf begins that comes back.
    at: u64,
    /// Where the lengths of its extents are.
    lengths: u64,
}

/// Size and type of a leaf.
#[derive(Clone)]
struct SpilledLeaf {
    /// Bytes of its levels and values; of keyed values without a dictionary those of each row.
    bytes: u64,
    /// Bytes in the file.
    stored: u64,
    data_type: DataType,
}

impl SpilledRows {
    /// No rows yet.
    ///
    /// # Errors
    /// `Io` if there is no temporary file to be had, `Crypto` if the generator of the operating
    /// system fails.
    pub(crate) fn new(layout: Arc<RowGroupLayout>, store: &dyn SpillStore) -> Result<Self> {
        let key = layout.protections.as_ref().map(|_| TemporaryKey::generate()).transpose()?;
        let leaf = SpilledLeaf { bytes: 0, stored: 0, data_type: DataType::Null };
        Ok(Self {
            file: store.create()?,
            len: 0,
            key,
            rows: 0,
            slices: Vec::new(),
            leaves: memory::filled(leaf, layout.leaves.len())?,
            next: 0,
            last: None,
            layout,
        })
    }

    /// Bytes of the leaf that has the most.
    pub(crate) fn largest_leaf(&self) -> u64 {
        self.leaves.iter().map(|leaf| leaf.bytes).max().unwrap_or_default()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// `Usage` if a value does not fit its leaf; `Io` if the temporary file cannot be written.
    pub(crate) fn push(
        &mut self,
        mut pending: PendingRowGroup,
        parallelism: &dyn Parallelism,
    ) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let layout = self.layout.clone();
        if layout.sorting.is_some() {
            let last = pending.last_row()?;
            pending.come_after(self.last.take(), self.rows);
            self.last = last;
        }
        let start = self.len;
        let columns = pending.columns(&layout)?;
        let sizes = columns.iter().map(|column| pending.column_bytes(column.column));
        let blocks = blocks(sizes, BLOCK_BYTES);
        let mut lengths = memory::vec_for(layout.leaves.len() * size_of::<u64>())?;
        let number = self.slices.len() as u64 * layout.leaves.len() as u64;
        for some in blocks.chunks(parallelism.threads().max(1)) {
            let made = Mutex::new(memory::vec_for(some.len())?);
            let make = |i: usize| {
                let columns = some.get(i).and_then(|block| columns.get(block.clone()));
                let block = self.block(columns.unwrap_or_default(), &pending, number);
                made.lock().unwrap_or_else(PoisonError::into_inner).push((i, block));
            };
            match some.len() {
                1 => make(0),
                n => parallelism.for_each(n, &make),
            }
            let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
            made.sort_unstable_by_key(|(i, _)| *i);
            for (_, block) in made {
                let Block { first, bytes, extents } = block?;
                self.note(first, extents, &mut lengths);
                self.append(&bytes)?;
            }
        }
        let slice = Slice { at: start, lengths: self.len };
        self.append(&lengths)?;
        self.slices.push(slice);
        self.rows += pending.rows();
        Ok(())
    }

    /// The extents of some columns.
    fn block(
        &self,
        columns: &[BatchColumn],
        pending: &PendingRowGroup,
        number: u64,
    ) -> Result<Block> {
        let layout = &self.layout;
        let free_lists = &layout.context.free_lists;
        let mut writer = ExtentWriter::new(self.key.as_ref(), free_lists)?;
        let first = columns.first().map_or(0, |column| column.leaves.start);
        let mut block = Block { first, bytes: Vec::new(), extents: Vec::new() };
        for column in columns {
            let leaves = pending.shred(layout, column)?;
            for (leaf, shredded) in column.leaves.clone().zip(&leaves) {
                let extent = writer.append(number + leaf as u64, shredded, &mut block.bytes);
                let mut extent = extent.map_err(|e| e.at_column(shredded.path.as_str()))?;
                if layout.settings.get(leaf).is_some_and(|of| !of.may_have_dictionary()) {
                    extent.raw = extent.raw.max(expanded_bytes(&shredded.parts));
                }
                block.extents.push(extent);
            }
        }
        Ok(block)
    }

    fn note(&mut self, first: usize, extents: Vec<Extent>, lengths: &mut Vec<u8>) {
        for (leaf, extent) in self.leaves.iter_mut().skip(first).zip(extents) {
            lengths.extend(extent.stored.to_le_bytes());
            leaf.bytes = leaf.bytes.saturating_add(extent.raw);
            leaf.stored = leaf.stored.saturating_add(extent.stored);
            if let Some(data_type) = extent.data_type {
                leaf.data_type = data_type;
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The next leaves with all of their rows: as many as have `max` bytes in the file, and that
    /// are not much more when they are decoded; at least one. `None` after the last.
    ///
    /// # Errors
    /// `Io` if the temporary file cannot be read.
    pub(crate) fn next_leaves(&mut self, max: u64) -> Result<Option<SpilledLeaves>> {
        let (first, rest) = (self.next, self.leaves.get(self.next..).unwrap_or_default());
        let sums = rest.iter().scan(0u64, |sum, leaf| {
            *sum = sum.saturating_add(leaf.stored.max(leaf.bytes / MAX_PACKED).max(1));
            Some(*sum)
        });
        let n = sums.take_while(|sum| *sum <= max).count().max(1).min(rest.len());
        let Some(leaves) = rest.get(..n).filter(|leaves| !leaves.is_empty()) else {
            return Ok(None);
        };
        let leaves = leaves.to_vec();
        let mut extents = vec![Vec::with_capacity(self.slices.len()); n];
        for (i, slice) in self.slices.iter_mut().enumerate() {
            let number = (i * self.leaves.len() + first) as u64;
            let mut lengths = vec![0; n * 8];
            self.file.read_at(slice.lengths + first as u64 * 8, &mut lengths)?;
            let (lengths, _) = lengths.as_chunks::<8>();
            let lengths: Vec<u64> = lengths.iter().map(|len| u64::from_le_bytes(*len)).collect();
            let len = lengths.iter().copied().fold(0, u64::saturating_add);
            // Only a changed file has more.
            if len > self.len {
                return Err(Error::internal("a temporary file is not as it was written"));
            }
            let mut bytes = vec![0; saturated(len)];
            self.file.read_at(slice.at, &mut bytes)?;
            slice.at += len;
            let mut bytes = Bytes::from(bytes);
            for ((leaf, extents), len) in extents.iter_mut().enumerate().zip(lengths) {
                extents.push((number + leaf as u64, bytes.split_to(saturated(len))));
            }
        }
        self.next += n;
        let (rows, key) = (self.rows, self.key.clone());
        Ok(Some(SpilledLeaves { first, rows, leaves, extents, key }))
    }
}

/// The extents of some columns, as bytes.
struct Block {
    /// The first leaf.
    first: usize,
    bytes: Vec<u8>,
    extents: Vec<Extent>,
}

/// Some leaves, with all rows of the row group.
pub(crate) struct SpilledLeaves {
    /// The first of them.
    first: usize,
    rows: usize,
    leaves: Vec<SpilledLeaf>,
    /// The extents of each with their numbers, in the order of the rows.
    extents: Vec<Vec<(u64, Bytes)>>,
    key: Option<TemporaryKey>,
}

impl ShreddedRows for SpilledLeaves {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self, _: &RowGroupLayout) -> Result<Vec<BatchColumn>> {
        let column = |column: usize| {
            let leaf = self.first + column;
            BatchColumn { column, leaves: leaf..leaf + 1 }
        };
        memory::collected((0..self.leaves.len()).map(column))
    }

    fn column_bytes(&self, column: usize) -> u64 {
        self.leaves.get(column).map_or(0, |leaf| leaf.bytes)
    }

    fn shred(&self, layout: &RowGroupLayout, column: &BatchColumn) -> Result<Vec<LeafColumn>> {
        let leaf = layout.leaves.get(self.first + column.column);
        let of = (leaf, self.leaves.get(column.column), self.extents.get(column.column));
        let (Some(leaf), Some(SpilledLeaf { data_type, .. }), Some(extents)) = of else {
            return Err(Error::internal("a leaf that is not there"));
        };
        Ok(vec![read(leaf, data_type, extents, self.key.as_ref())?])
    }
}

impl PendingRowGroup {
    /// The last row, in memory of its own.
    fn last_row(&self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.batches().iter().rev().find(|batch| batch.num_rows() > 0) else {
            return Ok(None);
        };
        let last = (0, batch.num_rows() - 1);
        rows::interleave(batch.schema_ref(), slice::from_ref(batch), &[last]).map(Some)
    }
}

/// Leaves that come back together have at most this many times the bytes that they have in the
/// file, because they may take as much memory again once they are encoded.
const MAX_PACKED: u64 = 3;

/// Bytes of the columns that a thread makes extents of at a time.
const BLOCK_BYTES: u64 = 2 << 20;
