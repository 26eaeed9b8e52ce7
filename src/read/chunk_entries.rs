//! [`ChunkEntries`] decodes the levels and values of a column chunk, without assembly.
//!
//! Spec: README.md, "Nested Encoding".

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use bytes::Bytes;

use super::chunk::Pages;
use super::column::{ColumnSpec, LeafBatch, LeafReader, column_specs};
use super::metadata::Metadata;
use super::options::ReadOptions;
use super::page_list::PageList;
use super::supplied::Step;
use super::walk::ChunkWalk;
use crate::bytes::saturated;
use crate::error::{Error, Result, Spec};
use crate::limits::Budget;
use crate::rows::RowFilter;
use crate::schema::{ArrowOptions, Projection, to_arrow};
use crate::simd::planes::LevelBitPlanes;

/// The levels and values of some rows of a leaf, as Dremel shredding makes them.
///
/// An entry is a place in the levels. It has a value if its definition level is the highest of the
/// leaf ([`Leaf::max_def`](crate::schema::Leaf::max_def)); a lower one says which node above the
/// value is null, or which list is empty. An entry whose repetition level is 0 begins a row.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeafEntries {
    /// Number of rows.
    pub rows: usize,
    /// The definition level of each entry; empty if the leaf and all nodes above it are required.
    pub definition_levels: Vec<u16>,
    /// The repetition level of each entry; empty if no node above the leaf is repeated.
    pub repetition_levels: Vec<u16>,
    /// The values, in order: of the entries with the highest definition level, and no others.
    pub values: ArrayRef,
}

impl LeafEntries {
    /// Entries of `rows` rows, for a [`LeafWriter`](crate::LeafWriter), which checks them.
    pub fn new(
        rows: usize,
        definition_levels: Vec<u16>,
        repetition_levels: Vec<u16>,
        values: ArrayRef,
    ) -> Self {
        Self { rows, definition_levels, repetition_levels, values }
    }

    /// The entries of decoded rows. A run of levels takes no memory before it is written out, so
    /// that what it takes then is counted first.
    fn of_batch(batch: LeafBatch, rows: usize, leaf: LeafLevel, budget: &Budget) -> Result<Self> {
        let LeafBatch { array, def, rep, max_rep, memory: _decoded, .. } = batch;
        let levels = def.len().saturating_add(rep.len()).saturating_mul(size_of::<u16>());
        let bytes = levels.saturating_add(array.get_buffer_memory_size());
        let _memory = budget.take_for("the levels and values of a leaf", bytes)?;
        let levels = |max, planes: LevelBitPlanes| match max {
            0 => Vec::new(),
            _ => planes.to_levels(),
        };
        let definition_levels = levels(leaf.max_def, def);
        let repetition_levels = levels(max_rep, rep);
        // By the levels and not by the array's nulls: a value may be read as null.
        let slots = definition_levels.iter().filter(|level| **level >= leaf.slot);
        let there: BooleanBuffer = slots.map(|level| *level == leaf.max_def).collect();
        let values = match there.count_set_bits() {
            _ if leaf.max_def == 0 => array,
            n if n == array.len() => array,
            _ => RowFilter::new(&BooleanArray::new(there, None), 1).apply(&array)?,
        };
        Ok(Self { rows, definition_levels, repetition_levels, values })
    }
}

/// The definition levels that matter to a leaf.
#[derive(Clone, Copy)]
struct LeafLevel {
    /// The highest: there is a value.
    max_def: u16,
    /// The least of entries that have a slot in the array.
    slot: u16,
}

/// Rows that memory is taken for before they are decoded.
const MAX_RESERVED_ROWS: usize = 65_536;

/// A column chunk whose entries are decoded.
pub(crate) struct ChunkEntries {
    reader: LeafReader,
    budget: Budget,
    leaf: LeafLevel,
    rows_left: u64,
    /// Rows of the step that waits for bytes.
    begun: Option<usize>,
}

impl ChunkEntries {
    /// The entries of the chunk of a leaf.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Unsupported` if
    /// the column has no Arrow type, `Crypto` if its key is missing.
    pub(crate) fn new(
        metadata: &Metadata,
        row_group: usize,
        leaf: usize,
        options: &ReadOptions,
        budget: &Budget,
    ) -> Result<Self> {
        let footer = metadata.footer();
        let walk = ChunkWalk::new(footer, metadata.file_len(), row_group, leaf, &options.limits)?;
        let rows_left = footer.row_group_rows(row_group)?;
        let spec = leaf_spec(metadata, leaf, options)?;
        let stored = footer.column_chunk(row_group, leaf)?.meta_data.map(|meta| meta.r#type);
        let expected = spec.leaf.physical.format_type();
        if let Some(found) = stored.filter(|found| *found != expected) {
            return Err(Error::mismatch(Spec::Metadata("ColumnMetaData"), "type", expected, found));
        }
        let range = walk.range.clone();
        let (slots, mut context) = walk.into_parts();
        // Even an empty list takes a slot.
        if slots < rows_left {
            let rows = format_args!("at least the {rows_left} rows of the row group");
            return Err(Error::mismatch(
                Spec::Metadata("ColumnMetaData"),
                "num_values",
                rows,
                slots,
            ));
        }
        context.verify_checksums = options.verify_checksums;
        let pages = Pages::new(&PageList::in_pieces(range, slots), context, budget);
        let reader = LeafReader::new(&spec, pages, options.utf8, footer.quirks(), budget)?;
        let (budget, leaf) =
            (budget.clone(), LeafLevel { max_def: spec.leaf.max_def, slot: spec.slot });
        Ok(Self { reader, budget, leaf, rows_left, begun: None })
    }

    /// Decodes at most `rows` rows; `None` after the last. `given` are the bytes that the step
    /// before asked for.
    ///
    /// # Errors
    /// `Malformed` if the chunk has fewer or more rows than its row group or a page breaks a rule,
    /// `Limit(Memory)`.
    pub(crate) fn step(
        &mut self,
        rows: usize,
        given: Option<Bytes>,
    ) -> Result<Step<Option<LeafEntries>>> {
        if let Some(bytes) = given {
            self.reader.supply(bytes)?;
        }
        if self.rows_left == 0 {
            return Ok(match Step::from_result(self.reader.finish())? {
                Step::Done(()) => Step::Done(None),
                Step::NeedsMore(range) => Step::NeedsMore(range),
            });
        }
        let rows = match self.begun {
            Some(rows) => rows,
            None => {
                let rows = rows.min(saturated(self.rows_left));
                // The file only claims that there are as many, and the caller may ask for all.
                self.reader.reserve(rows.min(MAX_RESERVED_ROWS))?;
                *self.begun.insert(rows)
            }
        };
        if let Step::NeedsMore(range) = Step::from_result(self.reader.append(rows))? {
            return Ok(Step::NeedsMore(range));
        }
        self.begun = None;
        self.rows_left -= rows as u64;
        let entries = LeafEntries::of_batch(self.reader.take()?, rows, self.leaf, &self.budget)?;
        Ok(Step::Done(Some(entries)))
    }
}

/// The leaf as it is read by itself, with its levels.
fn leaf_spec(metadata: &Metadata, leaf: usize, options: &ReadOptions) -> Result<ColumnSpec> {
    let footer = metadata.footer();
    let arrow = ArrowOptions { target: None, ..options.arrow.clone() };
    let projection = Projection::leaves([leaf]);
    let mapping = to_arrow(footer.schema(), footer.key_values(), &projection, &arrow)?;
    let specs = column_specs(footer.schema(), &mapping.shapes)?;
    let spec = specs.into_iter().find(|spec| spec.leaf.index == leaf);
    let spec = spec.ok_or_else(|| {
        let path = footer.schema().leaf(leaf).map(|leaf| leaf.path.dotted()).unwrap_or_default();
        Error::unsupported("the values of a column of this type", path)
    })?;
    Ok(ColumnSpec { keep_levels: true, ..spec })
}
