//! A row group: its batches while they arrive, and its chunks once they are encoded.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListViewArray, OffsetSizeTrait, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef};

use super::column::{ChunkEncoder, EncodedChunk, Parallelism};
use super::column_options::LeafSettings;
use super::context::EncoderContext;
use super::shred::{LeafColumn, shred};
use super::sorting::CheckedSortOrder;
use crate::crypt::LeafProtection;
use crate::error::Result;
use crate::format::{ColumnChunk, SortingColumn};
use crate::limits::Growth;
use crate::memory;
use crate::rows::{MAX_ARRAY_BYTES, array_bytes, arrays_bytes, value_bytes};
use crate::schema::{Leaf, Shape};
use crate::variant::{VariantArray, VariantPlaces, VariantShape};

/// The properties that all row groups of a file share.
#[derive(Debug)]
pub(crate) struct RowGroupLayout {
    /// The schema that batches must have.
    pub(crate) arrow: arrow_schema::SchemaRef,
    /// The shapes that VARIANT columns in each of its columns are shredded into.
    pub(crate) variants: Vec<VariantPlaces<VariantShape>>,
    /// One for each column of the batches.
    pub(crate) shapes: Vec<Shape>,
    /// The leaves, depth-first.
    pub(crate) leaves: Vec<Leaf>,
    /// How each is written.
    pub(crate) settings: Vec<LeafSettings>,
    /// How the rows are sorted, as the caller says.
    pub(crate) sorting: Option<CheckedSortOrder>,
    /// Buffers and codec tables that the chunks share.
    pub(crate) context: Arc<EncoderContext>,
    /// How the leaves are protected, if anything is encrypted.
    pub(crate) protections: Option<Vec<LeafProtection>>,
    /// How the bytes of batches are counted.
    pub(crate) sizes: RowSizes,
}

/// How the bytes of rows are counted that are not encoded yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowSizes {
    /// For each column, whether values that its rows share by keys are written for each row,
    /// because one of its leaves has no dictionary.
    expanded: Vec<bool>,
}

impl RowSizes {
    pub(crate) fn new(expanded: Vec<bool>) -> Self {
        Self { expanded }
    }

    fn is_expanded(&self, column: usize) -> bool {
        self.expanded.get(column).copied().unwrap_or_default()
    }

    /// Bytes of a column as an Arrow array; or of its values as they are written, if those are
    /// more.
    fn column_bytes(&self, column: usize, array: &ArrayRef) -> u64 {
        let bytes = array_bytes(array);
        match self.is_expanded(column) {
            true => bytes.max(value_bytes(array).min(MAX_ARRAY_BYTES)),
            false => bytes,
        }
    }

    /// Bytes of the rows of a batch.
    pub(crate) fn bytes(&self, batch: &RecordBatch) -> u64 {
        let columns = batch.columns().iter().enumerate();
        columns.map(|(i, array)| self.column_bytes(i, array)).fold(0, u64::saturating_add)
    }

    /// Bytes of the rows of a batch, of the levels of its lists, and of the values of each row of a
    /// VARIANT, which may be shredded: rows share long ones.
    pub(crate) fn memory(&self, batch: &RecordBatch) -> u64 {
        let fields = batch.schema_ref().fields();
        let variants = batch.columns().iter().zip(fields).filter(|(_, field)| has_variant(field));
        let shredded = variants.map(|(column, _)| value_bytes(column));
        let bytes = shredded.fold(self.bytes(batch), u64::saturating_add);
        bytes.saturating_add(level_bytes(batch)).min(MAX_ARRAY_BYTES)
    }

    /// Bytes of the values of a batch, of that column which has the most among those whose values
    /// are written for each row.
    pub(crate) fn largest_expanded(&self, batch: &RecordBatch) -> u64 {
        let columns = batch.columns().iter().enumerate().filter(|(i, _)| self.is_expanded(*i));
        columns.map(|(i, array)| self.column_bytes(i, array)).max().unwrap_or_default()
    }
}

/// The rows of a row group that is not encoded yet.
#[derive(Debug, Default)]
pub(crate) struct PendingRowGroup {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Bytes of each column, as [`RowSizes`] counts them.
    column_bytes: Vec<u64>,
    memory: u64,
    /// The row before the first, if its order is checked.
    before: Option<RecordBatch>,
    /// The number of the first row in its row group.
    first_row: usize,
}

/// Rows that are encoded as a row group, or some leaves of one: column by column.
pub(crate) trait ShreddedRows: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// The units of work, each with its leaves.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    fn columns(&self, layout: &RowGroupLayout) -> Result<Vec<BatchColumn>>;

    /// Bytes of a column, by which the heaviest are encoded first.
    fn column_bytes(&self, column: usize) -> u64;

    /// The leaves of a column.
    ///
    /// # Errors
    /// `Usage` if the rows do not fit the schema, or an order that was stated.
    fn shred(&self, layout: &RowGroupLayout, column: &BatchColumn) -> Result<Vec<LeafColumn>>;
}

/// Encodes one leaf of a column that was shredded.
///
/// # Errors
/// As [`ChunkEncoder::encode`].
pub(crate) fn encode_leaf(
    layout: &RowGroupLayout,
    leaf: usize,
    column: &LeafColumn,
    rows: usize,
    parallelism: &dyn Parallelism,
) -> Result<EncodedChunk> {
    let (leaf, settings) = (&layout.leaves[leaf], &layout.settings[leaf]);
    let context = &*layout.context;
    ChunkEncoder { column, leaf, settings, rows, context, parallelism }.encode()
}

impl PendingRowGroup {
    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn push(&mut self, batch: RecordBatch, sizes: &RowSizes) -> Result<()> {
        let columns = batch.num_columns();
        let known = self.column_bytes.len();
        memory::room(&mut self.column_bytes, columns.saturating_sub(known))?;
        memory::room(&mut self.batches, 1)?;
        self.rows += batch.num_rows();
        self.column_bytes.resize(columns, 0);
        for (i, (sum, array)) in self.column_bytes.iter_mut().zip(batch.columns()).enumerate() {
            *sum = sum.saturating_add(sizes.column_bytes(i, array));
        }
        self.memory = self.memory.saturating_add(sizes.memory(&batch));
        self.batches.push(batch);
        Ok(())
    }

    /// Notes that these are not the first rows of their row group, and the row before them.
    pub(crate) fn come_after(&mut self, before: Option<RecordBatch>, first_row: usize) {
        (self.before, self.first_row) = (before, first_row);
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Bytes of the rows.
    pub(crate) fn bytes(&self) -> u64 {
        self.column_bytes.iter().copied().fold(0, u64::saturating_add).min(MAX_ARRAY_BYTES)
    }

    /// Bytes of the column that has the most among those whose values are written for each row.
    pub(crate) fn largest_expanded(&self, sizes: &RowSizes) -> u64 {
        let columns = self.column_bytes.iter().enumerate().filter(|(i, _)| sizes.is_expanded(*i));
        columns.map(|(_, bytes)| *bytes).max().unwrap_or_default()
    }

    /// Bytes of the rows, and of what will be made of them.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl ShreddedRows for PendingRowGroup {
    fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of the batches.
    fn columns(&self, layout: &RowGroupLayout) -> Result<Vec<BatchColumn>> {
        let mut first = 0;
        memory::collected(layout.shapes.iter().enumerate().map(|(column, shape)| {
            let mut leaves = 0;
            shape.for_each_leaf(&mut |_, _| leaves += 1);
            let range = first..first + leaves;
            first += leaves;
            BatchColumn { column, leaves: range }
        }))
    }

    fn column_bytes(&self, column: usize) -> u64 {
        // Without a batch, no column has bytes.
        self.column_bytes.get(column).copied().unwrap_or_default()
    }

    /// Shreds a column of all batches; with the first column that they are sorted by, checks that
    /// they are.
    fn shred(&self, layout: &RowGroupLayout, column: &BatchColumn) -> Result<Vec<LeafColumn>> {
        let leaves = &layout.leaves[column.leaves.clone()];
        let mut out: Vec<LeafColumn> = memory::collected(leaves.iter().map(LeafColumn::new))?;
        let shape = &layout.shapes[column.column];
        if let Some(sorting) = &layout.sorting
            && sorting.is_checked_with(column.column)
        {
            let batches = self.before.iter().chain(&self.batches);
            let first_row = self.first_row - usize::from(self.before.is_some());
            sorting.check(batches, first_row)?;
        }
        for batch in &self.batches {
            let array = batch.column(column.column);
            match layout.variants.get(column.column).filter(|places| !places.is_none()) {
                Some(places) => {
                    let shredded = places.convert(array, None, &mut |shape, array, nulls| {
                        let variant = VariantArray::within(array, nulls, Growth::UNLIMITED)?;
                        let shredded: ArrayRef = Arc::new(variant.shred(shape)?);
                        Ok(shredded)
                    })?;
                    shred(&shredded, shape, &mut out)?;
                }
                None => shred(array, shape, &mut out)?,
            }
        }
        Ok(out)
    }
}

/// A column of the batches, and its leaves.
#[derive(Debug, Clone)]
pub(crate) struct BatchColumn {
    pub(crate) column: usize,
    pub(crate) leaves: std::ops::Range<usize>,
}

/// Whether a column is or has a VARIANT.
fn has_variant(field: &Field) -> bool {
    let below = |fields: &[FieldRef]| fields.iter().any(|field| has_variant(field));
    VariantArray::is_variant(field)
        || match field.data_type() {
            DataType::Struct(fields) => below(fields),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => below(std::slice::from_ref(item)),
            _ => false,
        }
}

/// Bytes of the rows of a batch as Arrow arrays. A slice counts its own rows alone; of a dictionary
/// it counts all entries. Values that views share count for each row.
pub fn batch_bytes(batch: &RecordBatch) -> u64 {
    arrays_bytes(batch.columns())
}

/// Bytes that the levels of a batch's lists will take: they can be far more than the values.
fn level_bytes(batch: &RecordBatch) -> u64 {
    let slots = batch.columns().iter().map(|column| slots_in_lists(column, false));
    slots.fold(0, u64::saturating_add).saturating_mul(LEVEL_BYTES)
}

/// Slots of the leaves that lie in lists.
fn slots_in_lists(array: &dyn Array, in_list: bool) -> u64 {
    let span = |first: Option<usize>, last: Option<usize>, values: &dyn Array| {
        // Views and fixed lengths aside, a list without offsets is empty.
        let from = first.unwrap_or_default();
        let len = last.unwrap_or_default().saturating_sub(from);
        slots_in_lists(&values.slice(from, len), true)
    };
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let at = |offset: Option<&i32>| offset.and_then(|&at| usize::try_from(at).ok());
            let offsets = list.value_offsets();
            span(at(offsets.first()), at(offsets.last()), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let at = |offset: Option<&i64>| offset.and_then(|&at| usize::try_from(at).ok());
            let offsets = list.value_offsets();
            span(at(offsets.first()), at(offsets.last()), list.values())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let at = |offset: Option<&i32>| offset.and_then(|&at| usize::try_from(at).ok());
            let offsets = map.value_offsets();
            span(at(offsets.first()), at(offsets.last()), map.entries())
        }
        DataType::FixedSizeList(..) => slots_in_lists(array.as_fixed_size_list().values(), true),
        DataType::ListView(_) => slots_in_views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => slots_in_views(array.as_list_view::<i64>()),
        DataType::Struct(_) => {
            let children = array.as_struct().columns().iter();
            children.map(|child| slots_in_lists(child, in_list)).fold(0, u64::saturating_add)
        }
        _ if in_list => array.len() as u64,
        _ => 0,
    }
}

/// List views may share elements: each is counted as often as lists have it, all of them alike.
fn slots_in_views<O: OffsetSizeTrait>(lists: &GenericListViewArray<O>) -> u64 {
    let elements: u128 = lists.sizes().iter().map(|size| size.as_usize() as u128).sum();
    let all = u128::from(slots_in_lists(lists.values(), true));
    let own = all.saturating_mul(elements) / (lists.values().len() as u128).max(1);
    u64::try_from(own).unwrap_or(u64::MAX).min(MAX_ARRAY_BYTES)
}

/// Bytes of a slot in a list besides its value, because two levels of 16 bits are copied once on
/// the way down the tree.
const LEVEL_BYTES: u64 = 8;

/// An encoded row group that can be appended to a file. A
/// [`RowGroupEncoder`](crate::RowGroupEncoder) makes it, on any thread. Values that are stored as
/// they are in memory are not copied; it holds their arrays.
pub struct EncodedRowGroup {
    pub(crate) rows: usize,
    /// The layout by which it was encoded.
    pub(crate) layout: Arc<RowGroupLayout>,
    /// Those of all leaves; or of some, while others of the same rows are not encoded yet.
    pub(crate) chunks: Vec<EncodedChunk>,
    /// How the rows are sorted, as the caller says.
    pub(crate) sorting: Option<Vec<SortingColumn>>,
}

impl fmt::Debug for EncodedRowGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedRowGroup")
            .field("rows", &self.rows)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl EncodedChunk {
    /// The chunk as the footer has it, with its first byte at `at` of the file. Its indexes, too,
    /// count from the start of the file then.
    pub(crate) fn place(&mut self, at: i64) -> ColumnChunk {
        let meta = &mut self.meta_data;
        meta.data_page_offset += at;
        if let Some(dictionary) = &mut meta.dictionary_page_offset {
            *dictionary += at;
        }
        for page in &mut self.offset_index.page_locations {
            page.offset += at;
        }
        ColumnChunk { meta_data: Some(std::mem::take(meta)), ..ColumnChunk::default() }
    }
}

impl EncodedRowGroup {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of its pages.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().flat_map(|chunk| &chunk.bytes).map(|bytes| bytes.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, ListArray, ListViewArray, StructArray};
    use arrow_buffer::OffsetBuffer;

    use super::*;

    #[test]
    fn list_views_have_the_levels_of_all_leaves_below_them() {
        let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true; 30]));
        let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Boolean, true));
        let group = StructArray::new(fields.to_vec().into(), vec![bits; 3], None);
        let item = Arc::new(Field::new_list_field(group.data_type().clone(), true));
        let offsets = OffsetBuffer::new(vec![0, 10, 10, 30].into());
        let lists = ListArray::new(item.clone(), offsets, Arc::new(group.clone()), None);
        assert_eq!(slots_in_lists(&lists, false), 90);
        let (offsets, sizes) = (vec![0, 10, 10], vec![10, 0, 20]);
        let views = |offsets: Vec<i32>, sizes: Vec<i32>| {
            let values = Arc::new(group.clone());
            ListViewArray::new(item.clone(), offsets.into(), sizes.into(), values, None)
        };
        assert_eq!(slots_in_lists(&views(offsets, sizes), false), 90);
        assert_eq!(slots_in_lists(&views(vec![0; 100], vec![30; 100]), false), 9000);
        assert_eq!(slots_in_lists(&views(vec![], vec![]), false), 0);
    }
}
