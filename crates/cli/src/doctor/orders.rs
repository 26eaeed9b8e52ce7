//! Prices orders of the rows: the bytes that a sorted sample takes, and the row groups and pages
//! that a filter of ranges then reads.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ord::rank::rank;
use arrow_schema::DataType;
use marquetry::engine;
use marquetry::{Compression, Reader, WriteOptions};

use super::advice::{Advice, Weight, change};
use super::columns::ColumnFacts;
use super::exam::{Exam, column_nodes, is_named};
use crate::bench::stored_bytes;
use crate::failure::Result;
use crate::recipe::sort_rows;
use crate::trial::{SampleRows, TrialFile};

/// Columns by which rows are tried to be sorted, at most.
const MAX_SORTS: usize = 3;
/// Columns whose ranges are looked at, at most: the largest.
const MAX_COLUMNS: usize = 24;
/// Rows below which an order brings nothing.
const MIN_ROWS: u64 = 1000;
/// The least that an order must save of the bytes.
const MIN_SAVED: f64 = 0.05;
/// The part of the values that the filter wants.
const RANGE: f64 = 0.1;

/// The pages and row groups that a filter of a range of values reads.
#[derive(Debug, Clone, Copy)]
struct RangeReads {
    pages: usize,
    pages_now: usize,
    /// With the rows of each row group sorted.
    pages_sorted: usize,
    row_groups: usize,
    row_groups_now: usize,
    /// With the rows of the file sorted.
    row_groups_sorted: usize,
}

/// An order that may be worth it.
struct Order<'a> {
    name: &'a str,
    reads: RangeReads,
    /// Whether values repeat, so that equal ones side by side are smaller.
    repeats: bool,
    /// Whether filters of ranges are usual: for numbers and times, and not for texts.
    is_of_ranges: bool,
}

impl Order<'_> {
    fn halves_pages(&self) -> bool {
        self.reads.pages_now >= 4 && self.reads.pages_sorted * 2 <= self.reads.pages_now
    }
}

impl<'e> Exam<'e> {
    /// Sorts the rows of the sample by columns, and says what that brings.
    pub(super) fn orders(&mut self, rows: &SampleRows) -> Result<()> {
        let groups = &self.reader.metadata().index().head().row_groups;
        if rows.rows < MIN_ROWS || groups.iter().any(|group| group.sorting_columns.is_some()) {
            return Ok(());
        }
        let whole = engine::rows::concat(&rows.schema, &rows.batches)?;
        let orders = self.candidates(&whole)?;
        if orders.is_empty() {
            return Ok(());
        }
        // One codec for all, because only the difference is asked for.
        let options = WriteOptions::new().with_compression("zstd:1".parse::<Compression>()?);
        let before = TrialFile::write(rows, &options, 1)?.page_bytes()?;
        let mut best: Option<(u64, &Order<'_>)> = None;
        let mut ranges: Option<(u64, &Order<'_>)> = None;
        for order in &orders {
            let Ok(batches) = self.sorted(&whole, order.name) else { continue };
            let sorted = SampleRows {
                schema: rows.schema.clone(),
                rows: rows.rows,
                memory_bytes: rows.memory_bytes,
                batches,
            };
            let after = TrialFile::write(&sorted, &options, 1)?.page_bytes()?;
            if best.is_none_or(|(least, _)| after < least) {
                best = Some((after, order));
            }
            let grown = self.plan.extrapolated(after.saturating_sub(before));
            let is_allowed =
                change(self.reader.file_len(), self.reader.file_len().saturating_add(grown))
                    <= self.goal.max_growth.max(MIN_SAVED);
            if order.is_of_ranges && order.halves_pages() && is_allowed && ranges.is_none() {
                ranges = Some((after, order));
            }
        }
        let is_smaller = |after: u64| change(before, after) < -MIN_SAVED;
        let (after, order) = match (best.filter(|(after, _)| is_smaller(*after)), ranges) {
            (Some(best), _) => best,
            (None, Some(ranges)) => ranges,
            (None, None) => return Ok(()),
        };
        self.push_order(order, before, after);
        Ok(())
    }

    fn push_order(&mut self, order: &Order<'_>, before: u64, after: u64) {
        let RangeReads { pages, pages_now, pages_sorted, .. } = order.reads;
        let RangeReads { row_groups, row_groups_now, row_groups_sorted, .. } = order.reads;
        let (name, file) = (order.name, super::quoted(self.file));
        let bytes = match change(before, after) < -MIN_SAVED {
            true => "smaller",
            false => "not smaller",
        };
        let sort = super::quoted(name);
        let text = format!(
            "the rows of each row group sorted by {name} are {bytes}; of {pages} pages of the \
             column, a filter for a tenth of its values reads {pages_sorted} in place of \
             {pages_now}. With all rows sorted (marq rewrite {file} --sort {sort}), it reads \
             {row_groups_sorted} of {row_groups} row groups in place of {row_groups_now}. Put sort \
             into the recipe if the order of rows may change"
        );
        let int96 = self.int96_flag();
        let command = self.command(|file| {
            format!(
                "marq doctor {file} --recipe R.toml{int96}; marq optimize {file} --recipe R.toml -o \
                 NEW.parquet{int96}"
            )
        });
        let advice = Advice::new(Weight::Note, "rows-clusterable", text, command).of_column(name);
        let (before, after) = (self.plan.extrapolated(before), self.plan.extrapolated(after));
        self.findings.push(advice.priced(before, after));
    }

    /// The columns by which sorting may bring something: the largest whose values repeat, and the
    /// one whose ranges are the most scattered.
    fn candidates(&self, whole: &RecordBatch) -> Result<Vec<Order<'e>>> {
        let reader: &'e Reader = self.reader;
        let schema = reader.metadata().schema();
        let mut columns = Vec::new();
        for (at, node) in column_nodes(schema).enumerate() {
            let may_be_sorted_by = node.is_leaf() && is_named(schema, node);
            if let Some(array) = whole.columns().get(at).filter(|_| may_be_sorted_by) {
                columns.push((stored_bytes(reader, self.plan, node.leaves())?, node, array));
            }
        }
        columns.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
        let mut orders = Vec::new();
        for (_, node, array) in columns.into_iter().take(MAX_COLUMNS) {
            let repeats = ColumnFacts::read(reader, node)?.has_dictionary;
            let of_type = array.data_type();
            let is_of_ranges = of_type.is_numeric() || of_type.is_temporal();
            if !repeats && !is_of_ranges {
                continue;
            }
            if let Some(reads) = self.range_reads(node.leaves().start, array)? {
                orders.push(Order { name: node.name(), reads, repeats, is_of_ranges });
            }
        }
        let (mut chosen, rest): (Vec<_>, Vec<_>) =
            orders.into_iter().partition(|order| order.repeats && order.reads.pages_now > 1);
        chosen.truncate(MAX_SORTS - 1);
        let scattered = rest.into_iter().filter(|order| order.is_of_ranges && order.halves_pages());
        chosen.extend(scattered.max_by_key(|order| order.reads.pages_now));
        Ok(chosen)
    }

    /// Rows of the row groups of the sample.
    fn group_rows(&self) -> Result<Vec<usize>> {
        let mut left = self.plan.rows;
        let mut out = Vec::new();
        for group in &self.plan.row_groups {
            let rows = self.reader.metadata().row_group_rows(*group)?.min(left);
            left -= rows;
            out.push(usize::try_from(rows).unwrap_or(usize::MAX));
        }
        Ok(out)
    }

    /// The reads of a filter for a tenth of the values, by the ranks of the values in the sample.
    fn range_reads(&self, leaf: usize, array: &ArrayRef) -> Result<Option<RangeReads>> {
        let is_ordered = !array.data_type().is_nested() && *array.data_type() != DataType::Boolean;
        let Some(mut ranks) = is_ordered.then(|| rank(array, None).ok()).flatten() else {
            return Ok(None);
        };
        let Some(group) = self.plan.row_groups.first() else { return Ok(None) };
        let pages = self.reader.stored_pages(*group, leaf)?.flatten();
        let pages = pages.filter(|page| page.header.dictionary_page_header.is_none()).count();
        let group_rows = self.group_rows()?;
        let page_rows = group_rows.first().copied().unwrap_or(0).div_ceil(pages.max(1)).max(1);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of the rows"
        )]
        let part = |share: f64| (ranks.len() as f64 * share) as u32;
        let wanted = (part(0.5 - RANGE / 2.0), part(0.5 + RANGE / 2.0));
        let count = |slice: &[u32]| {
            let (least, most) = (slice.iter().min(), slice.iter().max());
            let is_read = least.zip(most).is_some_and(|(a, b)| *a <= wanted.1 && *b >= wanted.0);
            usize::from(is_read)
        };
        let mut reads = RangeReads {
            pages: 0,
            pages_now: 0,
            pages_sorted: 0,
            row_groups: group_rows.len(),
            row_groups_now: 0,
            row_groups_sorted: 0,
        };
        let mut rest = ranks.as_mut_slice();
        for rows in &group_rows {
            let (group, after) = rest.split_at_mut((*rows).min(rest.len()));
            rest = after;
            reads.row_groups_now += count(group);
            reads.pages += group.chunks(page_rows).len();
            reads.pages_now += group.chunks(page_rows).map(count).sum::<usize>();
            group.sort_unstable();
            reads.pages_sorted += group.chunks(page_rows).map(count).sum::<usize>();
        }
        ranks.sort_unstable();
        let rows = group_rows.first().copied().unwrap_or(1).max(1);
        reads.row_groups_sorted = ranks.chunks(rows).map(count).sum();
        Ok(Some(reads))
    }

    /// The rows of each row group of the sample, sorted.
    fn sorted(&self, whole: &RecordBatch, name: &str) -> Result<Vec<RecordBatch>> {
        let mut at = 0;
        let mut out = Vec::new();
        for rows in self.group_rows()? {
            let rows = rows.min(whole.num_rows() - at);
            out.push(sort_rows(&whole.slice(at, rows), &[name.to_owned()])?);
            at += rows;
        }
        Ok(out)
    }
}
