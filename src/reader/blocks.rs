//! [`RowBlocks`]: the rows of a dataset in pieces that are read at once, for orders that look
//! random.
//!
//! A block is consecutive wanted rows of one row group. The footers say how many blocks a row group
//! has; where they begin is found when one of them is read: at the page of the largest column that
//! begins nearest, so that no page is read for two blocks.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::Reader;
use super::dataset::Dataset;
use crate::error::{Error, Result};
use crate::limits::Reservation;
use crate::memory;
use crate::read::Plan;
use crate::selection::RowSelection;

/// The blocks of a dataset, in the order of its rows.
pub(super) struct RowBlocks {
    files: Vec<FileRows>,
    blocks: u64,
    /// Memory of the order of the blocks, and of where they begin.
    _memory: Option<Reservation>,
}

/// A file, and the rows of it that are wanted.
struct FileRows {
    reader: Reader,
    plan: Plan,
    /// Blocks of the files before.
    first_block: u64,
    /// For each range of the plan.
    groups: Vec<GroupRows>,
}

struct GroupRows {
    /// Blocks of the files and row groups before.
    first_block: u64,
    /// How many blocks it has.
    blocks: u64,
    /// About how many bytes a row takes as Arrow arrays.
    row_bytes: u64,
    /// Where its blocks begin, and the end, among its wanted rows; found when they are needed.
    cuts: Option<Arc<[u64]>>,
}

/// One of the blocks of a row group.
struct Block {
    file: usize,
    /// The range of the plan of the file.
    group: usize,
    /// Which one.
    index: u64,
}

/// Consecutive wanted rows of a row group. They are ordered as in the dataset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowSegment {
    file: usize,
    group: usize,
    start: u64,
    end: u64,
}

impl RowSegment {
    pub(super) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Splits off the last `rows` rows.
    pub(super) fn split_end(&mut self, rows: u64) -> Self {
        let middle = self.end.saturating_sub(rows).max(self.start);
        let end = Self { start: middle, ..self.clone() };
        self.end = middle;
        end
    }
}

impl RowBlocks {
    /// RowBlocks of about `block_bytes` bytes as Arrow arrays, by the metadata.
    ///
    /// # Errors
    /// As [`Reader::plan`]; `Malformed` if the metadata of a column chunk are broken,
    /// `Limit(Memory)` if there are more blocks than there is memory for.
    pub(super) fn new(dataset: &Dataset, block_bytes: u64) -> Result<Self> {
        let (mut files, mut blocks) = (Vec::new(), 0u64);
        let mut memory: Option<Reservation> = None;
        for reader in dataset.readers() {
            let plan = reader.plan()?;
            let memory = memory.get_or_insert_with(|| plan.budget().reservation(PURPOSE));
            let mut groups = Vec::with_capacity(plan.ranges().len());
            let first_block = blocks;
            for range in plan.ranges() {
                let row_bytes = plan.row_group(range)?.row_bytes().saturating_add(BYTES_OF_PLACE);
                let bytes = row_bytes.saturating_mul(range.count());
                let of_group = bytes.div_ceil(block_bytes.max(1)).clamp(1, range.count().max(1));
                // The metadata may state any size.
                let memory_of_group = of_group.saturating_mul(BYTES_OF_BLOCK);
                memory.grow(usize::try_from(memory_of_group).unwrap_or(usize::MAX))?;
                let (first_block, cuts) = (blocks, None);
                groups.push(GroupRows { first_block, blocks: of_group, row_bytes, cuts });
                blocks = blocks.saturating_add(of_group);
            }
            files.push(FileRows { reader: reader.clone(), plan, first_block, groups });
        }
        Ok(Self { files, blocks, _memory: memory })
    }

    pub(super) fn len(&self) -> u64 {
        self.blocks
    }

    fn block(&self, block: u64) -> Option<Block> {
        let file = self.files.partition_point(|file| file.first_block <= block).checked_sub(1)?;
        let groups = &self.files.get(file)?.groups;
        let group = groups.partition_point(|group| group.first_block <= block).checked_sub(1)?;
        let index = block - groups.get(group)?.first_block;
        Some(Block { file, group, index })
    }

    /// About how many bytes a block takes in memory.
    pub(super) fn bytes_of(&self, block: u64) -> u64 {
        let found = self.block(block).and_then(|Block { file, group, .. }| {
            let file = self.files.get(file)?;
            let (group, range) = (file.groups.get(group)?, file.plan.ranges().get(group)?);
            Some(group.row_bytes.saturating_mul(range.count().div_ceil(group.blocks)))
        });
        found.unwrap_or_default()
    }

    /// The rows of a block; they may be none. Reads the offset index of its row group if that is
    /// needed for the first time.
    ///
    /// # Errors
    /// `Malformed` if an index is broken, `Io`.
    pub(super) fn segment(&mut self, block: u64) -> Result<RowSegment> {
        let lacks = || Error::internal("a block that the dataset lacks");
        let Block { file, group, index } = self.block(block).ok_or_else(lacks)?;
        let index = usize::try_from(index).map_err(|_| lacks())?;
        let of_file = self.files.get_mut(file).ok_or_else(lacks)?;
        let blocks = of_file.groups.get(group).ok_or_else(lacks)?;
        let cuts = match &blocks.cuts {
            Some(cuts) => cuts.clone(),
            None => {
                let cuts = of_file.cuts(group, blocks.blocks)?;
                of_file.groups[group].cuts = Some(cuts.clone());
                cuts
            }
        };
        match cuts.get(index..index + 2) {
            Some([start, end]) => Ok(RowSegment { file, group, start: *start, end: *end }),
            _ => Err(lacks()),
        }
    }

    /// Reads segments, which ascend and do not overlap; each file is opened once.
    ///
    /// # Errors
    /// Any fault of the data, with its place.
    pub(super) fn read(&self, segments: &[RowSegment], out: &mut Vec<RecordBatch>) -> Result<()> {
        for of_file in segments.chunk_by(|a, b| a.file == b.file) {
            let lacks = || Error::internal("a file that the dataset lacks");
            let file = of_file.first().and_then(|first| self.files.get(first.file));
            let FileRows { reader, plan, .. } = file.ok_or_else(lacks)?;
            let mut rows = Vec::new();
            for of_group in of_file.chunk_by(|a, b| a.group == b.group) {
                let range = of_group.first().and_then(|first| plan.ranges().get(first.group));
                let range = range.ok_or_else(lacks)?;
                let wanted = plan.wanted(range)?;
                let ranges = of_group.iter().map(|segment| segment.start..segment.end);
                let chosen = RowSelection::from_ranges(wanted.count(), ranges)?;
                rows.push((range.row_group, wanted.and_then(&chosen)?));
            }
            let mut batches = reader.kept_open()?.of_rows(rows.into()).batches()?;
            while let Some(batch) = batches.next_batch()? {
                out.push(batch);
            }
        }
        Ok(())
    }
}

impl FileRows {
    /// Where `blocks` blocks of a row group begin, and the end, among its wanted rows.
    fn cuts(&self, group: usize, blocks: u64) -> Result<Arc<[u64]>> {
        let lacks = || Error::internal("a row group that the plan lacks");
        let range = self.plan.ranges().get(group).ok_or_else(lacks)?;
        let rows = range.count();
        let even = |i: u64| {
            let row = u128::from(rows) * u128::from(i) / u128::from(blocks.max(1));
            u64::try_from(row).unwrap_or(rows)
        };
        // A part of the rows has no common begins with pages.
        let Range { start, end } = range.rows;
        let pages = match blocks > 1 && range.count() == end - start {
            true => self.page_starts(range.row_group)?,
            false => Vec::new(),
        };
        let nearest = |row: u64| {
            let at = pages.partition_point(|page| *page < row + start);
            let around = [at.checked_sub(1), Some(at)].into_iter().flatten();
            let starts = around.filter_map(|at| pages.get(at)?.checked_sub(start));
            let nearest = starts.min_by_key(|page| page.abs_diff(row));
            nearest.map_or(row, |page| page.min(rows))
        };
        let inner = (1..blocks).map(|i| nearest(even(i)));
        let cuts = std::iter::once(0).chain(inner).chain([rows]);
        Ok(memory::collected(cuts)?.into())
    }

    /// The rows of a row group that pages of its largest column begin with; none if that is not
    /// known.
    fn page_starts(&self, row_group: usize) -> Result<Vec<u64>> {
        let metadata = self.reader.metadata();
        let footer = metadata.footer();
        let mut largest = None;
        for column in self.plan.leaves() {
            let leaf = column.leaf.index;
            let chunk = footer.column_chunk_ref(row_group, leaf)?;
            let bytes = chunk.meta_data.as_ref().map_or(0, |meta| meta.total_compressed_size);
            if largest.is_none_or(|(most, _)| bytes > most) {
                largest = Some((bytes, leaf));
            }
        }
        let Some((_, leaf)) = largest else { return Ok(Vec::new()) };
        let index = self.reader.offset_index(row_group, leaf)?;
        let rows = metadata.footer().row_group_rows(row_group)?;
        let starts = index.into_iter().flat_map(|index| index.page_locations);
        // An index that lies makes other blocks, and the pages decide when they are read.
        let starts = starts.filter_map(|page| u64::try_from(page.first_row_index).ok());
        let starts: Vec<u64> = starts.filter(|row| *row < rows).collect();
        Ok(if starts.is_sorted() { starts } else { Vec::new() })
    }
}

/// Bytes that say, for each row of a window, which one it is.
const BYTES_OF_PLACE: u64 = 8;

/// Bytes that a block takes as long as the dataset is read: its place in the order, also where that
/// is divided, and where it begins.
const BYTES_OF_BLOCK: u64 = 16;

/// The purpose of that memory.
const PURPOSE: &str = "the order of the blocks to shuffle";
