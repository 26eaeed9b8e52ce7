//! [`Grid`]: the column chunks of a file, as a table of at most some thousand cells.
//!
//! A wide or a long file has more chunks than a picture has room for. Neighbours are summed up
//! then: columns by their bytes, row groups by their rows, so that what is large stays alone.

use std::ops::Range;

use marquetry::format::{CompressionCodec, Encoding};
use serde::Serialize;

use super::chunk::Chunk;
use super::file::FileLayout;
use crate::args::Global;
use crate::failure::Result;
use crate::report::ReportMemory;

/// Row groups by columns.
pub(crate) struct Grid {
    pub(crate) columns: Vec<GridColumn>,
    pub(crate) rows: Vec<GridRow>,
    /// Row by row.
    cells: Vec<GridCell>,
    /// How many columns and row groups the file has.
    pub(crate) leaves: usize,
    pub(crate) row_groups: usize,
}

/// Leaves that stand next to each other: one, mostly.
#[derive(Debug, Serialize)]
pub(crate) struct GridColumn {
    pub(crate) name: String,
    /// The top-level field; empty if the leaf is one itself, or if there are several.
    #[serde(skip)]
    pub(crate) field: String,
    pub(crate) leaves: Range<usize>,
    pub(crate) bytes: u64,
}

/// Row groups that follow each other: one, mostly.
#[derive(Debug, Serialize)]
pub(crate) struct GridRow {
    pub(crate) row_groups: Range<usize>,
    pub(crate) rows: u64,
}

/// Column chunks, summed up.
#[derive(Debug, Clone, Default)]
pub(crate) struct GridCell {
    pub(crate) chunks: usize,
    pub(crate) bytes: u64,
    pub(crate) uncompressed_bytes: u64,
    pub(crate) values: u64,
    pub(crate) nulls: u64,
    /// Values of the chunks whose nulls are known.
    pub(crate) values_with_nulls: u64,
    /// Where the first of them begins.
    pub(crate) offset: Option<u64>,
    /// Bytes by codec, the most first.
    pub(crate) codecs: Vec<(CompressionCodec, u64)>,
    pub(crate) encodings: Vec<(Encoding, u64)>,
    pub(crate) dictionary_fallbacks: usize,
    pub(crate) bloom_filters: usize,
    pub(crate) page_indexes: usize,
    pub(crate) encrypted: usize,
    /// Chunks about which something is wrong or unknown, and the reason for the first of them.
    pub(crate) problems: usize,
    pub(crate) problem: Option<String>,
}

/// How many cells a picture has room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GridSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) cells: usize,
}

impl Grid {
    /// # Errors
    /// If it takes more memory than a report may.
    pub(crate) fn new(layout: &FileLayout, max: GridSize, global: &Global) -> Result<Self> {
        let memory = ReportMemory::new(global);
        let group_rows = layout.rows();
        let (leaves, row_groups) = (layout.columns(), group_rows.len());
        memory.check(&layout.path, (leaves + row_groups).saturating_mul(4 * size_of::<u64>()))?;
        let row_bins = bins(&group_rows, max.rows);
        let mut bytes = vec![0u64; leaves];
        for chunk in layout.chunks() {
            if let Some(sum) = bytes.get_mut(chunk.column) {
                *sum = sum.saturating_add(chunk.bytes);
            }
        }
        let most = max.cells.checked_div(row_bins.len()).unwrap_or(max.cells);
        let column_bins = bins(&bytes, most.min(max.columns).max(2));
        let rows = row_bins
            .iter()
            .map(|groups| GridRow { rows: sum(&group_rows, groups), row_groups: groups.clone() });
        let columns = column_bins.iter().map(|leaves| GridColumn::new(layout, leaves, &bytes));
        let mut grid = Self {
            rows: rows.collect(),
            columns: columns.collect(),
            cells: vec![GridCell::default(); row_bins.len().saturating_mul(column_bins.len())],
            leaves,
            row_groups,
        };
        let (row_of, column_of) = (places(&row_bins), places(&column_bins));
        for chunk in layout.chunks() {
            let place = row_of.get(chunk.row_group).zip(column_of.get(chunk.column));
            let Some((row, column)) = place else { continue };
            let width = grid.columns.len();
            if let Some(cell) = grid.cells.get_mut(row * width + column) {
                cell.add(chunk);
            }
        }
        grid.cells.iter_mut().for_each(GridCell::sort);
        Ok(grid)
    }

    /// The cells of a row.
    pub(crate) fn row(&self, row: usize) -> &[GridCell] {
        let width = self.columns.len();
        self.cells.get(row * width..(row + 1) * width).unwrap_or_default()
    }

    pub(crate) fn cells(&self) -> &[GridCell] {
        &self.cells
    }

    /// A column over all row groups.
    pub(crate) fn column(&self, column: usize) -> GridCell {
        let mut sum = GridCell::default();
        for row in 0..self.rows.len() {
            if let Some(cell) = self.row(row).get(column) {
                sum.merge(cell);
            }
        }
        sum.sort();
        sum
    }

    /// A row over all columns.
    pub(crate) fn row_sum(&self, row: usize) -> GridCell {
        let mut sum = GridCell::default();
        self.row(row).iter().for_each(|cell| sum.merge(cell));
        sum.sort();
        sum
    }
}

impl GridColumn {
    fn new(layout: &FileLayout, leaves: &Range<usize>, bytes: &[u64]) -> Self {
        let names = || -> Option<(String, String)> {
            let node = layout.footer()?.schema().leaf_node(leaves.start).ok()?;
            let path = node.path();
            let field = path.names().first().filter(|_| path.names().len() > 1);
            Some((path.dotted(), field.map(ToString::to_string).unwrap_or_default()))
        };
        let (name, field) = names().unwrap_or_default();
        let (name, field) = match leaves.len() {
            0 | 1 => (name, field),
            n => (format!("{name} + {} more", n - 1), String::new()),
        };
        Self { name, field, leaves: leaves.clone(), bytes: sum(bytes, leaves) }
    }
}

impl GridCell {
    fn add(&mut self, chunk: Chunk) {
        let one = |is: bool| usize::from(is);
        self.merge(&Self {
            chunks: 1,
            bytes: chunk.bytes,
            uncompressed_bytes: chunk.uncompressed_bytes,
            values: chunk.values,
            nulls: chunk.nulls.unwrap_or(0),
            values_with_nulls: chunk.nulls.map_or(0, |_| chunk.values),
            offset: chunk.offset,
            codecs: chunk.codec.into_iter().map(|codec| (codec, chunk.bytes)).collect(),
            encodings: chunk.encoding.into_iter().map(|of| (of, chunk.bytes)).collect(),
            dictionary_fallbacks: one(chunk.dictionary_fallback),
            bloom_filters: one(chunk.has_bloom_filter),
            page_indexes: one(chunk.has_page_index),
            encrypted: one(chunk.is_encrypted),
            problems: one(chunk.problem.is_some()),
            problem: chunk.problem,
        });
    }

    fn merge(&mut self, other: &Self) {
        self.chunks += other.chunks;
        for (sum, bytes) in [
            (&mut self.bytes, other.bytes),
            (&mut self.uncompressed_bytes, other.uncompressed_bytes),
            (&mut self.values, other.values),
            (&mut self.nulls, other.nulls),
            (&mut self.values_with_nulls, other.values_with_nulls),
        ] {
            *sum = sum.saturating_add(bytes);
        }
        self.offset = self.offset.into_iter().chain(other.offset).min();
        tally(&mut self.codecs, &other.codecs);
        tally(&mut self.encodings, &other.encodings);
        self.dictionary_fallbacks += other.dictionary_fallbacks;
        self.bloom_filters += other.bloom_filters;
        self.page_indexes += other.page_indexes;
        self.encrypted += other.encrypted;
        self.problems += other.problems;
        if self.problem.is_none() {
            self.problem.clone_from(&other.problem);
        }
    }

    fn sort(&mut self) {
        self.codecs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        self.encodings.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    }
}

/// Kinds that are told apart; a file may use any number as a codec.
const MAX_KINDS: usize = 32;

fn tally<T: Copy + PartialEq>(sums: &mut Vec<(T, u64)>, others: &[(T, u64)]) {
    for (kind, bytes) in others {
        let is_full = sums.len() >= MAX_KINDS;
        match sums.iter_mut().find(|(known, _)| known == kind) {
            Some((_, sum)) => *sum = sum.saturating_add(*bytes),
            None if !is_full => sums.push((*kind, *bytes)),
            None => {}
        }
    }
}

fn sum(numbers: &[u64], range: &Range<usize>) -> u64 {
    let numbers = numbers.get(range.clone()).unwrap_or_default();
    numbers.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// The index of the bin that each item is in.
fn places(bins: &[Range<usize>]) -> Vec<usize> {
    bins.iter().enumerate().flat_map(|(i, bin)| std::iter::repeat_n(i, bin.len())).collect()
}

/// Divides items into at most `max` bins of neighbours: each alone if they are that few, else so
/// that the bins weigh about the same.
pub(super) fn bins(weights: &[u64], max: usize) -> Vec<Range<usize>> {
    if weights.len() <= max {
        return (0..weights.len()).map(|i| i..i + 1).collect();
    }
    let total = weights.iter().fold(0u128, |sum, n| sum + u128::from(*n));
    // Items without weight take some room, too.
    let least = (total / weights.len() as u128 / 4).max(1);
    let all = total + least * weights.len() as u128;
    // Two bins next to each other weigh more than a share, so that these are few enough.
    let (mut low, mut high) = (0, (2 * all).div_ceil(max.saturating_sub(1).max(1) as u128));
    while high - low > 1 + high / 64 {
        let middle = low.midpoint(high);
        if of_share(weights, least, middle).len() <= max {
            high = middle;
        } else {
            low = middle;
        }
    }
    of_share(weights, least, high)
}

/// Bins that weigh at most `share`, unless one item weighs more.
fn of_share(weights: &[u64], least: u128, share: u128) -> Vec<Range<usize>> {
    let (mut out, mut start, mut sum) = (Vec::new(), 0, 0u128);
    for (i, weight) in weights.iter().enumerate() {
        let weight = u128::from(*weight) + least;
        if sum > 0 && sum + weight > share {
            out.push(start..i);
            (start, sum) = (i, 0);
        }
        sum += weight;
    }
    out.push(start..weights.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_few_and_have_all_items_in_their_order() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let len = random.usize(0..3000);
            let large = [1, 1000, u64::MAX][random.usize(0..3)];
            let weights: Vec<u64> = (0..len).map(|_| random.u64(0..=large)).collect();
            let max = random.usize(2..200);
            let bins = bins(&weights, max);
            assert!(bins.len() <= max, "{} of {max}", bins.len());
            assert!(bins.iter().cloned().flatten().eq(0..len));
        }
    }

    #[test]
    fn a_large_item_is_alone() {
        let mut weights = vec![1; 1000];
        weights[500] = 1_000_000;
        assert!(bins(&weights, 20).contains(&(500..501)));
        let equal = bins(&[7; 1000], 64);
        assert!(equal.len() > 60, "{}", equal.len());
    }
}
