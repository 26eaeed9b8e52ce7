//! [`NullFilled`]: the rows of a damaged row group, with nulls where pages are damaged.
//!
//! The columns are read one by one: a column without structs, or what lies below structs. Of one
//! that cannot be read, each page is tried by itself; its rows are those of the offset index, or of
//! the page headers where these count rows. Whether a struct is null is then known from its other
//! fields. Trap: nothing may be made up, so that a column that must not be null, or whose pages
//! have rows that are not known, gives up the row group.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, FieldRef, SchemaRef};

use super::Reader;
use crate::bytes::saturated;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::{OffsetIndex, PageLocation, PageType};
use crate::limits::{Budget, Reservation};
use crate::memory::bytes_of_nulls;
use crate::read::{PageCache, PageIndexUse, ReadOptions, contradiction};
use crate::rows;
use crate::schema::{Kind, Projection, Shape, to_arrow};
use crate::selection::RowSelection;

/// A page whose rows were returned as nulls in its column, because it is damaged.
#[derive(Debug)]
#[non_exhaustive]
pub struct NulledPage {
    /// The row group, by its number in the file.
    pub row_group: usize,
    /// The dotted path of the leaf.
    pub column: String,
    /// The number of the page among the data pages of the chunk; the last one that was found, if
    /// those after it could not be.
    pub page: usize,
    /// The rows of the row group that are null.
    pub rows: Range<u64>,
    /// The fault.
    pub error: Error,
}

/// A result, or the reason why rows cannot be nulls.
pub(super) type OrReason<T> = std::result::Result<T, &'static str>;

/// Whether an error is a fault of the bytes, that other row groups need not have.
pub(super) fn is_damage(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Malformed(spec) => spec != Spec::Encryption,
        _ => false,
    }
}

/// The rows of a row group.
pub(super) struct NullFilled {
    schema: SchemaRef,
    nodes: Vec<ColumnNode>,
    parts: Vec<PartRows>,
    rows_left: u64,
    /// Maximum rows of a batch.
    batch_rows: usize,
    /// Memory of the nulls of a batch that is made, and of what is joined for it.
    memory: Reservation,
}

/// A node of the schema: structs, and what is read by itself below them.
enum ColumnNode {
    Part(usize),
    Struct { field: FieldRef, children: Vec<Self> },
}

/// Leaves that are read together.
struct LeafGroup {
    leaves: Vec<usize>,
    /// The fields around it, from the column down to itself.
    fields: Vec<FieldRef>,
}

/// The rows of a part.
struct PartRows {
    /// The structs around it.
    depth: usize,
    data_type: DataType,
    /// The rows that are null, in their order.
    bad: Vec<Range<u64>>,
    /// The other rows; some were taken.
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    held: Option<ArrayRef>,
    /// Memory of those that are held.
    memory: Reservation,
    /// Rows that were taken.
    at: u64,
}

/// Some rows of a part: the array of its column, and which of them are known.
struct TakenRows {
    column: ArrayRef,
    is_known: Vec<bool>,
}

impl NullFilled {
    /// The rows of a row group from `start` on, and the pages that are nulls in them; a reason if
    /// there is one against it.
    ///
    /// # Errors
    /// Those that are no damage.
    pub(super) fn new(
        reader: &Reader,
        row_group: usize,
        start: u64,
    ) -> Result<OrReason<(Self, Vec<NulledPage>)>> {
        match Self::try_new(reader, row_group, start) {
            Err(error) if is_damage(&error) => Ok(Err("its metadata are damaged")),
            other => other,
        }
    }

    fn try_new(
        reader: &Reader,
        row_group: usize,
        start: u64,
    ) -> Result<OrReason<(Self, Vec<NulledPage>)>> {
        let options = &reader.options;
        let picks_rows = options.selection.is_some() || options.not_deleted.is_some();
        if options.filter.is_some() || picks_rows {
            return Ok(Err("the rows of this read are filtered"));
        }
        if options.arrow.target.is_some() {
            return Ok(Err("the columns of this read have other types than those of the file"));
        }
        let schema = reader.schema()?;
        let metadata = &reader.metadata;
        let mapping = to_arrow(
            metadata.schema(),
            metadata.key_values(),
            &options.projection,
            &options.arrow,
        )?;
        if mapping.shapes.len() != schema.fields().len() {
            return Ok(Err("the read has columns that are not in the file"));
        }
        let (mut found, mut nodes) = (Vec::new(), Vec::new());
        for shape in &mapping.shapes {
            nodes.push(parts_of(shape, &mut Vec::new(), &mut found));
        }
        let rows = metadata.row_group_rows(row_group)?;
        let (mut parts, mut pages) = (Vec::with_capacity(found.len()), Vec::new());
        let group = RowGroupReader::new(reader, row_group, rows)?;
        for part in &found {
            match group.part(part, start, &mut pages)? {
                Ok(rows) => parts.push(rows),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        if pages.is_empty() {
            return Ok(Err("each of its columns can be read by itself"));
        }
        pages.retain(|page| page.rows.end > start);
        let rows_left = rows.saturating_sub(start);
        let memory = group.budget.reservation("a batch with the nulls of damaged pages");
        let batch_rows = group.reader.options.batch_rows;
        Ok(Ok((Self { schema, nodes, parts, rows_left, batch_rows, memory }, pages)))
    }

    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
        let rows = rows.min(self.batch_rows);
        if rows == 0 {
            return Ok(None);
        }
        self.rows_left -= rows as u64;
        self.memory.resize(0)?;
        let take = |part: &mut PartRows| part.take(rows, &mut self.memory);
        let taken: Vec<TakenRows> = self.parts.iter_mut().map(take).collect::<Result<_>>()?;
        let column = |node: &ColumnNode| self.array(node, 0, &taken, rows);
        let columns = self.nodes.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?))
    }

    /// The array of a node that lies in `depth` structs.
    fn array(
        &self,
        node: &ColumnNode,
        depth: usize,
        taken: &[TakenRows],
        rows: usize,
    ) -> Result<ArrayRef> {
        let (field, children) = match node {
            ColumnNode::Part(at) => {
                let of = taken.get(*at).ok_or_else(|| Error::internal("each part was taken"))?;
                return Ok(inner(&of.column, depth).clone());
            }
            ColumnNode::Struct { field, children } => (field, children),
        };
        let below: Vec<&TakenRows> =
            parts_below(node).into_iter().filter_map(|part| taken.get(part)).collect();
        let mut valid = BooleanBufferBuilder::new(rows);
        for row in 0..rows {
            let known = below.iter().filter(|of| of.is_known.get(row).copied().unwrap_or(false));
            let mut known = known.map(|of| inner(&of.column, depth).is_valid(row));
            let is_valid = known.next().unwrap_or_else(|| !field.is_nullable());
            if known.any(|other| other != is_valid) {
                return Err(contradiction(field));
            }
            valid.append(is_valid);
        }
        let child = |child: &ColumnNode| self.array(child, depth + 1, taken, rows);
        let arrays = children.iter().map(child).collect::<Result<Vec<_>>>()?;
        let DataType::Struct(fields) = field.data_type() else {
            return Err(Error::internal("a struct has the type of a struct"));
        };
        let nulls = NullBuffer::new(valid.finish());
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        Ok(Arc::new(StructArray::try_new(fields.clone(), arrays, nulls)?))
    }
}

/// The array that lies in `depth` structs of one field.
fn inner(column: &ArrayRef, depth: usize) -> &ArrayRef {
    let mut array = column;
    for _ in 0..depth {
        match array.as_struct_opt().and_then(|of| of.columns().first()) {
            Some(child) => array = child,
            None => break,
        }
    }
    array
}

fn parts_below(node: &ColumnNode) -> Vec<usize> {
    match node {
        ColumnNode::Part(at) => vec![*at],
        ColumnNode::Struct { children, .. } => children.iter().flat_map(parts_below).collect(),
    }
}

/// The parts of a column, which are added to `parts`.
fn parts_of(shape: &Shape, around: &mut Vec<FieldRef>, parts: &mut Vec<LeafGroup>) -> ColumnNode {
    around.push(shape.field.clone());
    let has_extension = shape.field.metadata().contains_key(EXTENSION_TYPE_NAME_KEY);
    let node = match &shape.kind {
        Kind::Struct(children)
            if !has_extension && struct_fields(shape) == children.len() && !children.is_empty() =>
        {
            let children = children.iter().map(|child| parts_of(child, around, parts)).collect();
            ColumnNode::Struct { field: shape.field.clone(), children }
        }
        _ => {
            let mut leaves = Vec::new();
            shape.for_each_leaf(&mut |leaf, _| leaves.push(leaf));
            parts.push(LeafGroup { leaves, fields: around.clone() });
            ColumnNode::Part(parts.len() - 1)
        }
    };
    around.pop();
    node
}

/// Fields of a struct; those of a VARIANT that is returned otherwise are others than in the file.
fn struct_fields(shape: &Shape) -> usize {
    match shape.field.data_type() {
        DataType::Struct(fields) => fields.len(),
        _ => 0,
    }
}

/// A damaged row group.
struct RowGroupReader {
    /// A reader for each part. Pages that it finds are not kept for other reads.
    reader: Reader,
    /// The memory of all parts.
    budget: Budget,
    row_group: usize,
    rows: u64,
}

/// The pages of a leaf: the rows of the row group that each has.
struct LeafPages {
    pages: Vec<Range<u64>>,
    /// The fault of a header, after which no page was found.
    end: Option<Error>,
}

impl RowGroupReader {
    fn new(reader: &Reader, row_group: usize, rows: u64) -> Result<Self> {
        let mut reader = reader.clone();
        let plan = reader.clone().row_groups([row_group])?.plan()?;
        let budget = plan.budget().clone();
        let row_bytes = match plan.ranges().first() {
            Some(range) => plan.row_group(range)?.row_bytes(),
            None => 0,
        };
        // Rows of all parts are held at a time.
        let batch_rows = saturated(plan.batch_bytes() as u64 / row_bytes.max(1));
        let batch_rows = batch_rows.min(reader.options.batch_rows).clamp(1, BATCH_ROWS);
        reader.options.batch_rows = batch_rows;
        reader.wiring.budget = Some(budget.clone());
        reader.wiring.skips_gaps = true;
        reader.page_cache = PageCache::default();
        Ok(Self { reader, budget, row_group, rows })
    }

    /// The rows of a part from `start` on; its damaged pages are added to `pages`.
    fn part(
        &self,
        part: &LeafGroup,
        start: u64,
        pages: &mut Vec<NulledPage>,
    ) -> Result<OrReason<PartRows>> {
        let top = part.fields.first().map(|field| field.data_type().clone());
        let (depth, mut bad) = (part.fields.len().saturating_sub(1), Vec::new());
        if self.fault_of(&part.leaves, None)?.is_some() {
            if part.fields.last().is_some_and(|field| !field.is_nullable()) {
                return Ok(Err("a damaged column must not be null"));
            }
            let before = pages.len();
            for leaf in &part.leaves {
                match self.damaged_pages(*leaf)? {
                    Ok(found) => pages.extend(found),
                    Err(reason) => return Ok(Err(reason)),
                }
            }
            bad = union(pages[before..].iter().map(|page| page.rows.clone()).collect());
            let good = complement(&bad, 0..self.rows);
            if bad.is_empty() || self.fault_of(&part.leaves, Some(&good))?.is_some() {
                return Ok(Err("the damage is not that of single pages"));
            }
        }
        let good = complement(&bad, start.min(self.rows)..self.rows);
        let batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> = match good.is_empty() {
            true => Box::new(std::iter::empty()),
            false => {
                // Many parts are read by turns: no one of them is read ahead.
                let mut reader = self.of_leaves(&part.leaves, Some(&good))?.threads(1);
                if bad.is_empty() {
                    // Page by page, as if there were no rows before.
                    reader.options.page_index = PageIndexUse::Never;
                }
                let mut batches = reader.batches()?;
                Box::new(std::iter::from_fn(move || batches.next_batch().transpose()))
            }
        };
        let data_type = match (depth, top) {
            (0, Some(top)) => top,
            // Of the structs around it, it has this field alone.
            _ => self.of_leaves(&part.leaves, None)?.schema()?.field(0).data_type().clone(),
        };
        let memory = self.budget.reservation("the rows of a column of a damaged row group");
        Ok(Ok(PartRows { depth, data_type, bad, batches, held: None, memory, at: start }))
    }

    fn path(&self, leaf: usize) -> Result<String> {
        Ok(self.reader.metadata.schema().leaf(leaf)?.path.dotted())
    }

    /// The pages of a leaf that cannot be read.
    fn damaged_pages(&self, leaf: usize) -> Result<OrReason<Vec<NulledPage>>> {
        let LeafPages { pages, end } = match self.page_rows(leaf)? {
            Ok(pages) => pages,
            Err(reason) => return Ok(Err(reason)),
        };
        let (row_group, column) = (self.row_group, self.path(leaf)?);
        let mut found = Vec::new();
        let mut after = 0;
        let count = pages.len();
        for (page, rows) in pages.into_iter().enumerate() {
            after = rows.end;
            if rows.is_empty() {
                continue;
            }
            let only = std::slice::from_ref(&rows);
            if let Some(error) = self.fault_of(&[leaf], Some(only))? {
                found.push(NulledPage { row_group, column: column.clone(), page, rows, error });
            }
        }
        if let Some(error) = end.filter(|_| after < self.rows) {
            let (page, rows) = (count, after..self.rows);
            found.push(NulledPage { row_group, column, page, rows, error });
        }
        Ok(Ok(found))
    }

    /// The rows of the pages of a leaf.
    fn page_rows(&self, leaf: usize) -> Result<OrReason<LeafPages>> {
        let index = match self.reader.page_index(self.row_group, leaf) {
            Ok(index) => index.offset_index,
            Err(error) if is_damage(&error) => None,
            Err(error) => return Err(error),
        };
        if let Some(index) = index {
            let starts = index.page_locations.iter().map(|page| page.first_row_index);
            let starts = starts.map(u64::try_from).collect::<Result<Vec<u64>, _>>();
            let starts = starts.unwrap_or_default();
            let is_sound = starts.first() == Some(&0)
                && starts.is_sorted()
                && starts.last().is_some_and(|last| *last <= self.rows);
            if is_sound {
                let ends = starts.iter().skip(1).copied().chain([self.rows]);
                let pages = starts.iter().zip(ends).map(|(start, end)| *start..end).collect();
                return Ok(Ok(LeafPages { pages, end: None }));
            }
        }
        self.rows_by_headers(leaf)
    }

    fn rows_by_headers(&self, leaf: usize) -> Result<OrReason<LeafPages>> {
        let is_flat = self.reader.metadata.schema().leaf(leaf)?.max_rep == 0;
        let (mut pages, mut at) = (Vec::new(), 0u64);
        let stored = self.reader.stored_pages(self.row_group, leaf)?;
        let (mut index, chunk_end) = (OffsetIndex::default(), stored.end());
        let mut bytes_end = None;
        for page in stored {
            let page = match page {
                Ok(page) => page,
                Err(error) if is_damage(&error) => {
                    // What cannot be told apart is one page.
                    let rest = bytes_end.map_or(0..0, |end| end..chunk_end);
                    index.page_locations.extend(location(&rest, at).filter(|_| at < self.rows));
                    self.keep_pages(leaf, &index)?;
                    return Ok(Ok(LeafPages { pages, end: Some(error) }));
                }
                Err(error) => return Err(error),
            };
            let header = &page.header;
            let rows = match (&header.data_page_header, &header.data_page_header_v2) {
                (Some(v1), _) if header.r#type == PageType::DataPage => match is_flat {
                    true => v1.num_values,
                    false => {
                        return Ok(Err(
                            "the damage is in a list, and no offset index tells the rows of pages",
                        ));
                    }
                },
                (_, Some(v2)) if header.r#type == PageType::DataPageV2 => v2.num_rows,
                _ => continue,
            };
            let end = at.saturating_add(u64::try_from(rows).unwrap_or(0)).min(self.rows);
            let bytes = page.offset..page.offset + page.bytes.len() as u64;
            bytes_end = Some(bytes.end);
            index.page_locations.extend(location(&bytes, at));
            pages.push(at..end);
            at = end;
        }
        match at == self.rows {
            true => {
                self.keep_pages(leaf, &index)?;
                Ok(Ok(LeafPages { pages, end: None }))
            }
            false => Ok(Err("the page headers have not the rows of the row group")),
        }
    }

    /// Lets the pages of a leaf be read one by one, as if the file had this index, if it is sound.
    fn keep_pages(&self, leaf: usize, index: &OffsetIndex) -> Result<()> {
        self.reader.plan()?.keep_pages(self.row_group, leaf, index);
        Ok(())
    }

    /// The fault of some rows of some leaves; all rows by default.
    fn fault_of(&self, leaves: &[usize], rows: Option<&[Range<u64>]>) -> Result<Option<Error>> {
        let read = || -> Result<()> {
            let mut batches = self.of_leaves(leaves, rows)?.batches()?;
            while batches.next_batch()?.is_some() {}
            Ok(())
        };
        match read() {
            Ok(()) => Ok(None),
            Err(error) if is_damage(&error) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// A reader of some rows of some leaves.
    fn of_leaves(&self, leaves: &[usize], rows: Option<&[Range<u64>]>) -> Result<Reader> {
        let mut reader = self.reader.clone();
        let options = ReadOptions {
            projection: Projection::leaves(leaves.iter().copied()),
            virtual_columns: Vec::new(),
            // Damaged pages are not to be looked at.
            page_index: PageIndexUse::Always,
            ..reader.options.clone()
        };
        reader = reader.options(options).row_groups([self.row_group])?;
        let Some(rows) = rows else { return Ok(reader) };
        let mut first = 0u64;
        for before in 0..self.row_group {
            first = first.saturating_add(reader.metadata.row_group_rows(before)?);
        }
        let rows = rows.iter().map(|rows| first + rows.start..first + rows.end);
        let selection = RowSelection::from_ranges(reader.file_rows()?, rows)?;
        reader.select(selection)
    }
}

impl PartRows {
    /// The next rows. `memory` counts nulls before they are made, and before they are copied.
    fn take(&mut self, rows: usize, memory: &mut Reservation) -> Result<TakenRows> {
        let end = self.at + rows as u64;
        let (mut pieces, mut is_known): (Vec<ArrayRef>, _) = (Vec::new(), Vec::with_capacity(rows));
        while self.at < end {
            let (len, is_bad) = match self.bad.iter().find(|bad| bad.end > self.at) {
                Some(bad) if bad.start <= self.at => (bad.end.min(end) - self.at, true),
                Some(bad) => (bad.start.min(end) - self.at, false),
                None => (end - self.at, false),
            };
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let piece = match is_bad {
                true => {
                    memory.grow(bytes_of_nulls(&self.data_type, len))?;
                    rows::null_array(&self.data_type, len)?
                }
                false => self.good(len)?,
            };
            self.at += piece.len() as u64;
            is_known.extend(std::iter::repeat_n(!is_bad, piece.len()));
            pieces.push(piece);
        }
        let column = match pieces.as_slice() {
            [only] => only.clone(),
            _ => {
                let bytes = pieces.iter().map(rows::array_bytes).fold(0, u64::saturating_add);
                memory.grow(saturated(bytes))?;
                rows::concat_arrays(&pieces.iter().collect::<Vec<_>>())?
            }
        };
        debug_assert!(self.depth == 0 || column.as_struct_opt().is_some());
        Ok(TakenRows { column, is_known })
    }

    /// At most `max` of the rows that can be read, and one at least.
    fn good(&mut self, max: usize) -> Result<ArrayRef> {
        loop {
            if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
                let len = held.len().min(max);
                self.held = Some(held.slice(len, held.len() - len));
                return Ok(held.slice(0, len));
            }
            self.memory.resize(0)?;
            let Some(batch) = self.batches.next() else {
                return Err(Error::malformed(Spec::Pages, "a column ends before its row group"));
            };
            self.held = batch?.columns().first().cloned();
            let bytes = self.held.as_ref().map_or(0, rows::array_bytes);
            self.memory.resize(saturated(bytes))?;
        }
    }
}

/// The place of a page whose first row is `row`, as an offset index has it.
fn location(bytes: &Range<u64>, row: u64) -> Option<PageLocation> {
    Some(PageLocation {
        offset: i64::try_from(bytes.start).ok()?,
        compressed_page_size: i32::try_from(bytes.end - bytes.start).ok()?,
        first_row_index: i64::try_from(row).ok()?,
    })
}

/// Ranges in their order, without overlaps.
fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut().filter(|last| last.end >= range.start) {
            Some(last) => last.end = last.end.max(range.end),
            None => out.push(range),
        }
    }
    out
}

/// The parts of `all` that are in none of the ranges.
fn complement(ranges: &[Range<u64>], all: Range<u64>) -> Vec<Range<u64>> {
    let (mut out, mut at) = (Vec::new(), all.start);
    for range in ranges.iter().filter(|range| range.end > all.start) {
        if range.start > at {
            out.push(at..range.start.min(all.end));
        }
        at = at.max(range.end);
    }
    if at < all.end {
        out.push(at..all.end);
    }
    out
}

/// Maximum rows of a batch that is put together.
const BATCH_ROWS: usize = 8192;
