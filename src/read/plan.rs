//! The plan of a read: which leaves, which row groups, which rows of them, and the bytes that each row group needs.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use bytes::Bytes;

use super::footer::Footer;
use super::options::{ReadOptions, VirtualColumn};
use super::row_group::{RowGroup, Unit};
use super::{LeafReader, Pages};
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnMetaData, CompressionCodec};
use crate::limits::Budget;
use crate::page::PageContext;
use crate::schema::convert::{Conversion, conversion};
use crate::schema::{Kind, Leaf, Shape, to_arrow};

/// Everything that a read does, decided before the first column chunk is fetched. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plan {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    footer: Footer,
    options: ReadOptions,
    schema: SchemaRef,
    shapes: Vec<Shape>,
    leaves: Vec<LeafPlan>,
    ranges: Vec<RowRange>,
    budget: Budget,
    file_len: u64,
    file_name: Option<Arc<str>>,
}

/// A leaf that is read, and what it becomes.
#[derive(Debug, Clone)]
pub struct LeafPlan {
    /// The leaf.
    pub leaf: Leaf,
    /// The Arrow type that it is read as.
    pub data_type: DataType,
    /// The way there.
    pub conversion: Conversion,
    /// Whether its levels are kept for `assemble`, because it is the first leaf below a list or a struct that may be null.
    pub keep_levels: bool,
    /// Definition level at which the leaf has a slot: that of the elements of the innermost list around it.
    pub slot: u16,
}

/// Rows of one row group that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRange {
    /// Index of the row group.
    pub row_group: usize,
    /// Rows of it, counted from its first.
    pub rows: Range<u64>,
    /// Number of its first row in the file.
    pub first_row: u64,
}

/// One row group of a plan: wants the bytes of its column chunks.
#[derive(Debug)]
pub struct RowGroupPlan {
    plan: Plan,
    range: RowRange,
    rows_in_group: u64,
    chunks: Vec<ChunkPlan>,
    needs: Vec<Range<u64>>,
    bytes_per_row: u64,
}

#[derive(Debug)]
struct ChunkPlan {
    slots: u64,
    codec: CompressionCodec,
}

impl Footer {
    /// Plans a read of a file of `file_len` bytes.
    ///
    /// # Errors
    /// `Usage` if the options name what the file does not have, `Unsupported` if a column cannot be mapped to Arrow.
    pub fn plan(
        &self,
        options: &ReadOptions,
        file_len: u64,
        file_name: Option<Arc<str>>,
    ) -> Result<Plan> {
        let mapping =
            to_arrow(self.schema(), self.key_values(), &options.projection, &options.arrow)?;
        let leaves = leaf_plans(self, &mapping.shapes)?;
        let ranges = row_ranges(self, options)?;
        let schema = with_virtual_columns(mapping.schema, &options.virtual_columns);
        Ok(Plan {
            shared: Arc::new(Shared {
                footer: self.clone(),
                options: options.clone(),
                schema,
                shapes: mapping.shapes,
                leaves,
                ranges,
                budget: Budget::new(options.limits.memory_bytes),
                file_len,
                file_name,
            }),
        })
    }
}

impl Plan {
    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.shared.schema
    }

    /// The metadata of the file.
    pub fn footer(&self) -> &Footer {
        &self.shared.footer
    }

    /// The options of the read.
    pub fn options(&self) -> &ReadOptions {
        &self.shared.options
    }

    /// The leaves that are read, depth-first in the order of the output.
    pub fn leaves(&self) -> &[LeafPlan] {
        &self.shared.leaves
    }

    /// The row groups that are read, and which rows of them.
    pub fn ranges(&self) -> &[RowRange] {
        &self.shared.ranges
    }

    /// Rows that the read gives.
    pub fn rows(&self) -> u64 {
        self.shared.ranges.iter().map(|range| range.rows.end - range.rows.start).sum()
    }

    /// What the read may hold in memory.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    pub(super) fn shapes(&self) -> &[Shape] {
        &self.shared.shapes
    }

    pub(super) fn file_name(&self) -> Option<&Arc<str>> {
        self.shared.file_name.as_ref()
    }

    /// Plans one row group of [`Plan::ranges`]: decodes the metadata of its chunks.
    ///
    /// # Errors
    /// `Malformed` if a chunk's metadata contradict the schema or the file, `Unsupported` if its data lie in another file,
    /// `Crypto` if it is encrypted.
    pub fn row_group(&self, range: &RowRange) -> Result<RowGroupPlan> {
        let footer = self.footer();
        let rows_in_group = footer.row_group_rows(range.row_group)?;
        let mut chunks = Vec::with_capacity(self.leaves().len());
        let mut needs = Vec::with_capacity(self.leaves().len());
        let mut bytes_per_row = 0u64;
        for leaf in self.leaves() {
            let (chunk, need, width) = self
                .chunk(range.row_group, leaf)
                .map_err(|e| e.at_column(leaf.leaf.path.dotted()).at_row_group(range.row_group))?;
            bytes_per_row = bytes_per_row.saturating_add(width / rows_in_group.max(1));
            chunks.push(chunk);
            needs.push(need);
        }
        Ok(RowGroupPlan {
            plan: self.clone(),
            range: range.clone(),
            rows_in_group,
            chunks,
            needs,
            bytes_per_row,
        })
    }

    /// The chunk of a leaf: what it is, where it lies, and about how many bytes it takes in memory.
    fn chunk(&self, row_group: usize, plan: &LeafPlan) -> Result<(ChunkPlan, Range<u64>, u64)> {
        let chunk = self.footer().column_chunk(row_group, plan.leaf.index)?;
        if let Some(path) = chunk.file_path.as_ref().filter(|path| !path.is_empty()) {
            return Err(Error::unsupported(
                "column chunks in other files",
                format_args!(
                    "the data lie in the file {path:?}, as in a _metadata summary; read that file instead"
                ),
            ));
        }
        let Some(meta) = chunk.meta_data else {
            return Err(Error::crypto(
                "the column is encrypted, and reading encrypted columns is not supported yet",
            ));
        };
        let found = meta.r#type;
        let expected = plan.leaf.physical.format_type();
        if found != expected {
            return Err(Error::mismatch(Spec::Metadata("ColumnMetaData"), "type", expected, found));
        }
        let slots = not_negative(meta.num_values, "num_values")?;
        let range = self.byte_range(&meta, slots)?;
        let width = memory_of(&meta, slots, &plan.data_type);
        Ok((ChunkPlan { slots, codec: meta.codec }, range, width))
    }

    /// Where the chunk lies (FORMAT.md section 1): from its dictionary page, if it has one, else from its first data page.
    fn byte_range(&self, meta: &ColumnMetaData, slots: u64) -> Result<Range<u64>> {
        // Without values there is nothing to read, and the offsets may be meaningless.
        if slots == 0 {
            return Ok(0..0);
        }
        let data = not_negative(meta.data_page_offset, "data_page_offset")?;
        let dictionary = meta.dictionary_page_offset.unwrap_or(0);
        let dictionary = not_negative(dictionary, "dictionary_page_offset")?;
        // 0 means that there is none.
        let start =
            if dictionary > 0 && (data == 0 || dictionary <= data) { dictionary } else { data };
        let mut len = not_negative(meta.total_compressed_size, "total_compressed_size")?;
        let end_of_data = self.shared.file_len.saturating_sub(8);
        if self.footer().writer().short_chunks {
            len = len.saturating_add(100).min(end_of_data.saturating_sub(start));
        }
        match start.checked_add(len).filter(|end| *end <= end_of_data) {
            Some(end) => Ok(start..end),
            None => Err(Error::mismatch(
                Spec::Container,
                "byte range of the column chunk",
                format_args!("within the first {end_of_data} bytes of the file"),
                format_args!("{len} bytes at {start}"),
            )),
        }
    }
}

impl RowGroupPlan {
    /// The bytes wanted: one range for each leaf, in the order of [`Plan::leaves`]. A driver joins those that lie close.
    pub fn needs(&self) -> &[Range<u64>] {
        &self.needs
    }

    /// The rows wanted.
    pub fn range(&self) -> &RowRange {
        &self.range
    }

    /// About how many bytes the rows wanted take as Arrow arrays, by what the metadata say.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes_per_row.saturating_mul(self.range.rows.end - self.range.rows.start)
    }

    /// Bytes that are fetched.
    pub fn fetch_bytes(&self) -> u64 {
        self.needs.iter().map(|range| range.end - range.start).sum()
    }

    /// Rows of a batch: as many as wanted, fewer where rows are wide.
    pub fn batch_rows(&self) -> usize {
        let options = self.plan.options();
        let by_bytes = options.batch_bytes as u64 / self.bytes_per_row.max(1);
        options.batch_rows.min(usize::try_from(by_bytes).unwrap_or(usize::MAX)).max(1)
    }

    /// Takes the bytes wanted, in the same order.
    ///
    /// # Errors
    /// `Usage` if they are not as many as wanted, `Limit(Memory)` if the budget has no room for them.
    pub fn supply(self, bytes: Vec<Bytes>) -> Result<RowGroup> {
        if bytes.len() != self.needs.len() {
            return Err(Error::usage(format_args!(
                "RowGroupPlan::supply wants {} ranges, and was given {}",
                self.needs.len(),
                bytes.len()
            )));
        }
        let fetched = usize::try_from(self.fetch_bytes()).unwrap_or(usize::MAX);
        let reservation = self.plan.budget().take(fetched)?;
        let batch_rows = self.batch_rows();
        let mut units = Vec::with_capacity(bytes.len());
        let leaves = self.plan.leaves();
        for (((leaf, chunk), need), bytes) in
            leaves.iter().zip(&self.chunks).zip(&self.needs).zip(bytes)
        {
            if bytes.len() as u64 != need.end - need.start {
                return Err(Error::usage(format_args!(
                    "RowGroupPlan::supply was given {} bytes for a range of {}",
                    bytes.len(),
                    need.end - need.start
                )));
            }
            let options = self.plan.options();
            let writer = self.plan.footer().writer();
            let mut context = PageContext::new(&leaf.leaf, chunk.codec, &options.limits);
            context.verify_checksums = options.verify_checksums;
            context.ignore_is_compressed = writer.ignores_is_compressed;
            context.bit_order = writer.bit_order;
            let cost = bytes.len();
            let pages = Pages::new(bytes, need.start, chunk.slots, context);
            let reader = LeafReader::new(
                leaf,
                pages,
                options.utf8,
                writer.carries_prefix,
                self.plan.budget(),
            )
            .map_err(|e| e.at_column(leaf.leaf.path.dotted()).at_row_group(self.range.row_group))?;
            units.push(Unit::new(reader, leaf, self.range.row_group, cost));
        }
        let batch_bytes = self.bytes_per_row.saturating_mul(batch_rows as u64);
        RowGroup::new(
            self.plan,
            self.range,
            self.rows_in_group,
            units,
            batch_rows,
            batch_bytes,
            reservation,
        )
    }
}

/// About how many bytes a chunk takes as an Arrow array.
fn memory_of(meta: &ColumnMetaData, slots: u64, data_type: &DataType) -> u64 {
    let fixed = match data_type {
        DataType::Dictionary(key, _) => key.primitive_width(),
        other => other.primitive_width(),
    };
    if let Some(width) = fixed {
        return slots.saturating_mul(width as u64);
    }
    let exact = meta
        .size_statistics
        .as_ref()
        .and_then(|sizes| sizes.unencoded_byte_array_data_bytes)
        .and_then(|bytes| u64::try_from(bytes).ok());
    let stated = u64::try_from(meta.total_uncompressed_size).unwrap_or_default();
    exact.unwrap_or(stated).saturating_add(slots.saturating_mul(4))
}

fn not_negative(value: i64, name: &str) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::mismatch(Spec::Metadata("ColumnMetaData"), name, "not negative", value))
}

/// The leaves of the shapes, in output order, and which of them must keep their levels.
fn leaf_plans(footer: &Footer, shapes: &[Shape]) -> Result<Vec<LeafPlan>> {
    fn walk(footer: &Footer, shape: &Shape, keep: bool, out: &mut Vec<LeafPlan>) -> Result<()> {
        match &shape.kind {
            Kind::Leaf { leaf } => {
                let leaf = footer.schema().leaf(*leaf)?;
                let data_type = shape.field.data_type().clone();
                let conversion = conversion(&leaf, &data_type).ok_or_else(|| {
                    Error::usage(format_args!(
                        "{} cannot be read as {data_type} without loss",
                        leaf.physical
                    ))
                    .at_column(leaf.path.dotted())
                })?;
                let slot = shape.levels.slot;
                out.push(LeafPlan { leaf, data_type, conversion, keep_levels: keep, slot });
                Ok(())
            }
            Kind::Struct(children) => {
                let mut keep = keep || shape.levels.may_be_null();
                for child in children {
                    let before = out.len();
                    walk(footer, child, keep, out)?;
                    // The first leaf speaks for the struct; the others need not.
                    keep &= out.len() == before;
                }
                Ok(())
            }
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
                walk(footer, child, true, out)
            }
            Kind::Missing => Ok(()),
        }
    }
    let mut leaves = Vec::new();
    for shape in shapes {
        walk(footer, shape, false, &mut leaves)?;
    }
    Ok(leaves)
}

/// Which rows of which row groups: offset and limit count over the chosen row groups.
fn row_ranges(footer: &Footer, options: &ReadOptions) -> Result<Vec<RowRange>> {
    let mut first_rows = Vec::with_capacity(footer.row_groups());
    let mut first = 0u64;
    for i in 0..footer.row_groups() {
        first_rows.push(first);
        first = first.saturating_add(footer.row_group_rows(i)?);
    }
    let chosen: Vec<usize> = match &options.row_groups {
        Some(chosen) => chosen.clone(),
        None => (0..footer.row_groups()).collect(),
    };
    let mut skip = options.offset;
    let mut left = options.limit.unwrap_or(u64::MAX);
    let mut ranges = Vec::new();
    for row_group in chosen {
        let rows = footer.row_group_rows(row_group)?;
        let start = skip.min(rows);
        let end = rows.min(start.saturating_add(left));
        skip -= start;
        left -= end - start;
        if start < end {
            let first_row = first_rows.get(row_group).copied().unwrap_or_default();
            ranges.push(RowRange { row_group, rows: start..end, first_row });
        }
    }
    Ok(ranges)
}

fn with_virtual_columns(schema: SchemaRef, columns: &[VirtualColumn]) -> SchemaRef {
    if columns.is_empty() {
        return schema;
    }
    let added = columns.iter().map(|column| match column {
        VirtualColumn::RowNumber { name } => Field::new(&**name, DataType::Int64, false),
        VirtualColumn::RowGroup { name } => Field::new(&**name, DataType::Int32, false),
        VirtualColumn::FileName { name } => Field::new(&**name, DataType::Utf8, true),
    });
    let fields = schema.fields().iter().cloned().chain(added.map(Arc::new)).collect::<Vec<_>>();
    Arc::new(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()))
}
