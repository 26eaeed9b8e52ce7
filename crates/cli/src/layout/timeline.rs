//! [`Timeline`]: the pages of a column along the rows of the file, with their bounds.
//!
//! From the page index; where a chunk has none, from the headers of its pages. Trap: a page of
//! version 1 of a nested column does not say how many rows it has.

use std::ops::Range;

use marquetry::Reader;
use marquetry::format::{ColumnIndex, LogicalType, OffsetIndex, PageHeader};
use marquetry::inspect::SpanKind;
use marquetry::schema::{Leaf, Physical};
use serde::Serialize;

use super::file::FileLayout;
use super::overlay::Overlay;
use crate::args::Global;
use crate::failure::{Result, in_flags};
use crate::report::ReportMemory;
use crate::stats::Bound;

/// The pages of a column.
#[derive(Serialize)]
pub(crate) struct Timeline {
    pub(crate) column: String,
    /// Data pages of the column; `boxes` may be fewer.
    pub(crate) pages: usize,
    /// The least and the greatest bound.
    pub(crate) min: Option<String>,
    pub(crate) max: Option<String>,
    /// Whether rows of some pages are estimates.
    pub(crate) is_estimated: bool,
    /// Why pages are missing, if some are.
    pub(crate) problem: Option<String>,
    pub(crate) boxes: Vec<PageBox>,
}

/// A data page, or several that follow each other.
#[derive(Serialize)]
pub(crate) struct PageBox {
    pub(crate) row_group: usize,
    /// The number of the first page in its column chunk.
    pub(crate) page: usize,
    pub(crate) pages: usize,
    /// Rows of the file.
    pub(crate) rows: Range<u64>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) nulls: Option<u64>,
    /// Whether it has no value at all.
    pub(crate) is_null: bool,
    /// Between the least and the greatest bound of the column: 0 to 1.
    pub(crate) position: Option<(f64, f64)>,
    pub(crate) min: Option<String>,
    pub(crate) max: Option<String>,
    /// Whether the overlay prunes all its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_pruned: Option<bool>,
    #[serde(skip)]
    bounds: Option<(Vec<u8>, Vec<u8>)>,
}

/// The boxes that a picture has room for, and those of a column.
const MAX_BOXES: usize = 2400;
const MAX_OF_COLUMN: usize = 400;

/// The pages of some leaves.
///
/// # Errors
/// `Io`, and a limit of memory. What is wrong with a column chunk, its timeline says.
pub(crate) fn timelines(
    layout: &FileLayout,
    leaves: &[usize],
    overlay: Option<&Overlay>,
    global: &Global,
) -> Result<Vec<Timeline>> {
    let Some((reader, footer)) = layout.reader(global)?.zip(layout.footer()) else {
        return Ok(Vec::new());
    };
    let (rows, mut out) = (layout.rows(), Vec::new());
    for &index in leaves {
        let leaf = footer.schema().leaf(index)?;
        let mut column = ColumnPages {
            layout,
            reader: &reader,
            leaf: &leaf,
            memory: ReportMemory::new(global),
            boxes: Vec::new(),
            is_estimated: false,
            problem: None,
        };
        let mut first_row = 0u64;
        for (row_group, rows) in rows.iter().enumerate() {
            column.add_chunk(row_group, first_row, *rows, overlay)?;
            first_row = first_row.saturating_add(*rows);
        }
        let max = MAX_BOXES.checked_div(leaves.len()).unwrap_or(MAX_BOXES);
        out.push(column.timeline(max.clamp(1, MAX_OF_COLUMN)));
    }
    Ok(out)
}

/// The pages of a column, while they are found.
struct ColumnPages<'a> {
    layout: &'a FileLayout,
    reader: &'a Reader,
    leaf: &'a Leaf,
    memory: ReportMemory,
    boxes: Vec<PageBox>,
    is_estimated: bool,
    problem: Option<String>,
}

/// A page, before its rows in the file are known.
struct FoundPage {
    rows: Range<u64>,
    offset: u64,
    bytes: u64,
    nulls: Option<u64>,
    is_null: bool,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
}

impl ColumnPages<'_> {
    fn add_chunk(
        &mut self,
        row_group: usize,
        first_row: u64,
        rows: u64,
        overlay: Option<&Overlay>,
    ) -> Result<()> {
        let found = match self.reader.page_index(row_group, self.leaf.index) {
            Ok(index) => index.offset_index.map(|offsets| (offsets, index.column_index)),
            Err(error) => {
                self.note(row_group, error.message());
                None
            }
        };
        let pages = match found {
            Some((offsets, columns)) => indexed(&offsets, columns.as_ref(), rows),
            None => self.headers(row_group, rows)?,
        };
        for (page, found) in pages.into_iter().enumerate() {
            let FoundPage { rows, offset, bytes, nulls, is_null, bounds } = found;
            let file_rows =
                first_row.saturating_add(rows.start)..first_row.saturating_add(rows.end);
            let held = bytes_of(bounds.as_ref());
            let of = PageBox {
                row_group,
                page,
                pages: 1,
                offset,
                bytes,
                nulls,
                is_null,
                position: None,
                min: None,
                max: None,
                is_pruned: overlay.map(|overlay| overlay.prunes(row_group, &rows)),
                rows: file_rows,
                bounds,
            };
            self.memory.take(&self.layout.path, &of, held)?;
            self.boxes.push(of);
        }
        Ok(())
    }

    fn note(&mut self, row_group: usize, why: &str) {
        self.problem.get_or_insert_with(|| format!("row group {row_group}: {}", in_flags(why)));
    }

    /// The pages by their headers.
    fn headers(&mut self, row_group: usize, rows: u64) -> Result<Vec<FoundPage>> {
        let chunk = match self.layout.inspector.column_chunk(row_group, self.leaf.index) {
            Ok(chunk) => chunk,
            Err(error) => {
                self.note(row_group, error.message());
                return Ok(Vec::new());
            }
        };
        let (mut found, mut slots, mut held) = (Vec::new(), Vec::new(), 0);
        for span in chunk.children().into_iter().flatten() {
            let span = span.map_err(|e| e.at_file(self.layout.path.as_str()))?;
            match (span.kind, span.page_header()) {
                (SpanKind::DataPage | SpanKind::DataPageV2, Some(stored)) => {
                    let (page, slots_and_rows) = of_header(&stored.header);
                    held += size_of::<FoundPage>() + bytes_of(page.bounds.as_ref());
                    self.memory.check(&self.layout.path, held)?;
                    slots.push(slots_and_rows);
                    found.push(FoundPage { offset: span.offset, bytes: span.length, ..page });
                }
                (SpanKind::Unparsed, _) | (SpanKind::OtherPage, None) => {
                    self.note(row_group, span.text.as_deref().unwrap_or("it cannot be parsed"));
                }
                _ => {}
            }
        }
        self.place(&mut found, &slots, rows);
        Ok(found)
    }

    /// Sets the rows of pages: what their headers say, or shares of all by their slots.
    fn place(&mut self, pages: &mut [FoundPage], slots: &[(u64, Option<u64>)], rows: u64) {
        let is_flat = self.leaf.max_rep == 0;
        let all = slots.iter().fold(0u128, |sum, (slots, _)| sum + u128::from(*slots)).max(1);
        let (mut at, mut slots_before) = (0u64, 0u128);
        for (page, (slots, stated)) in pages.iter_mut().zip(slots) {
            slots_before += u128::from(*slots);
            let end = match stated.or(is_flat.then_some(*slots)) {
                Some(n) => at.saturating_add(n),
                None => {
                    self.is_estimated = true;
                    u64::try_from(u128::from(rows) * slots_before / all).unwrap_or(rows)
                }
            };
            let end = end.clamp(at, rows.max(at));
            page.rows = at..end;
            at = end;
        }
    }

    fn timeline(self, max_boxes: usize) -> Timeline {
        let Self { layout, leaf, mut boxes, is_estimated, problem, .. } = self;
        let pages = boxes.len();
        let keys = BoundKeys::new(leaf, &boxes);
        let mut least: Option<(f64, Vec<u8>)> = None;
        let mut greatest: Option<(f64, Vec<u8>)> = None;
        for page in &mut boxes {
            let Some((min, max)) = &page.bounds else { continue };
            page.position = keys.key(min).zip(keys.key(max)).filter(|(min, max)| min <= max);
            let Some((low, high)) = page.position else { continue };
            if least.as_ref().is_none_or(|(key, _)| low < *key) {
                least = Some((low, min.clone()));
            }
            if greatest.as_ref().is_none_or(|(key, _)| high > *key) {
                greatest = Some((high, max.clone()));
            }
        }
        let text = |bytes: &[u8]| Bound::new(leaf, bytes).text();
        let range =
            least.as_ref().zip(greatest.as_ref()).map(|((low, _), (high, _))| (*low, *high));
        let mut boxes = merged(boxes, max_boxes);
        for page in &mut boxes {
            let bounds = page.bounds.take().filter(|_| leaf.ordered);
            page.position = page.position.zip(range).map(|((low, high), (least, greatest))| {
                let scale = |key: f64| match greatest - least {
                    0.0 => 0.5,
                    width => ((key - least) / width).clamp(0.0, 1.0),
                };
                (scale(low), scale(high))
            });
            page.min = bounds.as_ref().map(|(min, _)| text(min));
            page.max = bounds.as_ref().map(|(_, max)| text(max));
        }
        Timeline {
            column: layout.column(leaf.index),
            pages,
            min: least.map(|(_, bytes)| text(&bytes)),
            max: greatest.map(|(_, bytes)| text(&bytes)),
            is_estimated,
            problem,
            boxes,
        }
    }
}

/// Bytes of the bounds of a page, which may be long.
fn bytes_of(bounds: Option<&(Vec<u8>, Vec<u8>)>) -> usize {
    bounds.map_or(0, |(min, max)| min.len() + max.len())
}

/// The pages that an offset index locates.
fn indexed(offsets: &OffsetIndex, columns: Option<&ColumnIndex>, rows: u64) -> Vec<FoundPage> {
    let start = |i: usize| {
        let location = offsets.page_locations.get(i)?;
        Some(u64::try_from(location.first_row_index).unwrap_or(0).min(rows))
    };
    let page = |i: usize| {
        let location = offsets.page_locations.get(i)?;
        let from = start(i)?;
        let is_null = columns.and_then(|index| index.null_pages.get(i)).is_some_and(|null| *null);
        let bounds = columns.filter(|_| !is_null).and_then(|index| {
            Some((index.min_values.get(i)?.clone(), index.max_values.get(i)?.clone()))
        });
        let nulls = columns.and_then(|index| index.null_counts.as_ref()?.get(i).copied());
        Some(FoundPage {
            rows: from..start(i + 1).unwrap_or(rows).max(from),
            offset: u64::try_from(location.offset).unwrap_or(0),
            bytes: u64::try_from(location.compressed_page_size).unwrap_or(0),
            nulls: nulls.and_then(|n| u64::try_from(n).ok()),
            is_null,
            bounds,
        })
    };
    (0..offsets.page_locations.len()).filter_map(page).collect()
}

/// A page by its header, its slots, and its rows if the header says how many.
fn of_header(header: &PageHeader) -> (FoundPage, (u64, Option<u64>)) {
    let size = |n: i32| u64::try_from(n).unwrap_or(0);
    let (v1, v2) = (header.data_page_header.as_ref(), header.data_page_header_v2.as_ref());
    let statistics = v1.and_then(|of| of.statistics.as_ref());
    let statistics = statistics.or_else(|| v2.and_then(|of| of.statistics.as_ref()));
    let bounds = statistics.and_then(|of| Some((of.min_value.clone()?, of.max_value.clone()?)));
    let nulls = statistics.and_then(|of| u64::try_from(of.null_count?).ok());
    let slots = v1.map(|of| of.num_values).or_else(|| v2.map(|of| of.num_values));
    let slots = slots.map_or(0, size);
    let nulls = nulls.or_else(|| v2.map(|of| size(of.num_nulls)));
    let is_null = slots > 0 && nulls == Some(slots);
    let page = FoundPage { rows: 0..0, offset: 0, bytes: 0, nulls, is_null, bounds };
    (page, (slots, v2.map(|of| size(of.num_rows))))
}

/// Joins neighbours where there are more pages than boxes.
fn merged(pages: Vec<PageBox>, max_boxes: usize) -> Vec<PageBox> {
    if pages.len() <= max_boxes {
        return pages;
    }
    let each = pages.len().div_ceil(max_boxes);
    let mut out: Vec<PageBox> = Vec::with_capacity(max_boxes);
    for (i, page) in pages.into_iter().enumerate() {
        match out.last_mut().filter(|_| !i.is_multiple_of(each)) {
            Some(last) => last.join(page),
            None => out.push(page),
        }
    }
    out
}

impl PageBox {
    fn join(&mut self, next: Self) {
        self.pages += 1;
        self.rows.end = self.rows.end.max(next.rows.end);
        self.bytes = self.bytes.saturating_add(next.bytes);
        self.nulls = self.nulls.zip(next.nulls).map(|(a, b)| a.saturating_add(b));
        self.is_pruned = self.is_pruned.zip(next.is_pruned).map(|(a, b)| a && b);
        let both_known =
            (self.position.is_some() || self.is_null) && (next.position.is_some() || next.is_null);
        self.is_null &= next.is_null;
        let (Some((low, high)), Some((next_low, next_high))) = (self.position, next.position)
        else {
            // Of a page whose bounds are not known, nothing is known together.
            let known = self.position.or(next.position).filter(|_| both_known);
            self.bounds = self.bounds.take().or(next.bounds).filter(|_| known.is_some());
            self.position = known;
            return;
        };
        if let (Some(bounds), Some((min, max))) = (&mut self.bounds, next.bounds) {
            if next_low < low {
                bounds.0 = min;
            }
            if next_high > high {
                bounds.1 = max;
            }
        }
        self.position = Some((low.min(next_low), high.max(next_high)));
    }
}

/// Bounds as numbers that are ordered as they are.
struct BoundKeys<'a> {
    leaf: &'a Leaf,
    /// Bytes that all bounds begin with, of byte strings.
    prefix: usize,
}

impl<'a> BoundKeys<'a> {
    fn new(leaf: &'a Leaf, pages: &[PageBox]) -> Self {
        let mut all =
            pages.iter().filter_map(|page| page.bounds.as_ref()).flat_map(|(a, b)| [a, b]);
        let first = all.next().map(Vec::as_slice).unwrap_or_default();
        let prefix = all.fold(first.len(), |prefix, bytes| {
            first.iter().zip(bytes).take(prefix).take_while(|(a, b)| a == b).count()
        });
        Self { leaf, prefix }
    }

    fn key(&self, bytes: &[u8]) -> Option<f64> {
        if !self.leaf.ordered {
            return None;
        }
        let is_unsigned =
            matches!(&self.leaf.logical, Some(LogicalType::Integer(of)) if !of.is_signed);
        let key = match (&self.leaf.logical, self.leaf.physical) {
            (_, Physical::Boolean) => f64::from(*bytes.first()?),
            (_, Physical::Int32) if is_unsigned => {
                u32::from_le_bytes(bytes.try_into().ok()?).into()
            }
            (_, Physical::Int32) => i32::from_le_bytes(bytes.try_into().ok()?).into(),
            (_, Physical::Int64) if is_unsigned => {
                rounded_unsigned(u64::from_le_bytes(bytes.try_into().ok()?))
            }
            (_, Physical::Int64) => rounded(i64::from_le_bytes(bytes.try_into().ok()?)),
            (_, Physical::Float) => f32::from_le_bytes(bytes.try_into().ok()?).into(),
            (_, Physical::Double) => f64::from_le_bytes(bytes.try_into().ok()?),
            (Some(LogicalType::Float16), _) => {
                half::f16::from_le_bytes(bytes.try_into().ok()?).into()
            }
            (_, Physical::Int96) => return None,
            (Some(LogicalType::Decimal(_)), _) => {
                let first = i8::from_be_bytes([*bytes.first()?]);
                let rest = bytes.iter().skip(1);
                rest.fold(f64::from(first), |sum, byte| sum * 256.0 + f64::from(*byte))
            }
            _ => {
                let rest = bytes.get(self.prefix..).unwrap_or_default();
                let digits = rest.iter().take(8).rev();
                digits.fold(0.0, |sum, byte| (sum + f64::from(*byte)) / 256.0)
            }
        };
        key.is_finite().then_some(key)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn rounded(n: i64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn rounded_unsigned(n: u64) -> f64 {
    n as f64
}
