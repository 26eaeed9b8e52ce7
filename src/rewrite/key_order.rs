//! [`key_ordered`]: row groups of sorted files in the order of their keys.
//!
//! Spec: `parquet.thrift`, `RowGroup.sorting_columns`. Each row group has the claim; a file is
//! sorted as a whole only if the keys of its row groups do not overlap either.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::Result;
use crate::format::{ColumnOrder, SortingColumn};
use crate::reader::Reader;
use crate::schema::Leaf;
use crate::stats::order::ValueOrder;
use crate::write::sorting::SortColumn;

/// The row groups of some files, in an order in which they are copied.
pub(super) struct KeyOrder {
    /// Each reader has the row groups that it lies before the next one with.
    pub(super) readers: Vec<Reader>,
    /// Whether the keys of one row group end before those of the next one begin.
    pub(super) is_sorted: bool,
}

/// A row group, and the bounds of the column that it is sorted by first.
struct KeyRange {
    file: usize,
    row_group: usize,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// By what values are compared.
struct KeyColumn {
    leaf: Leaf,
    order: ValueOrder,
    sorting: SortingColumn,
    /// All columns by which row groups are sorted. If there are several, equal keys at the border
    /// of two row groups may be in another order of the next column.
    all: Vec<SortingColumn>,
}

/// The order of row groups in which those apart from all others are copied, and the others merged.
pub(super) struct MergeOrder {
    pub(super) readers: Vec<Reader>,
    /// Ranges of these readers whose keys overlap.
    pub(super) merged: Vec<Range<usize>>,
    pub(super) columns: Vec<SortColumn>,
}

/// The row groups of these files by their keys, and which of them overlap; `None` as for
/// [`key_ordered`].
///
/// # Errors
/// `Malformed` if the metadata are broken.
pub(super) fn merge_ordered(readers: &[Reader]) -> Result<Option<MergeOrder>> {
    let Some((key, ranges)) = key_ranges(readers)? else { return Ok(None) };
    let Some(columns) = sort_columns(readers, &key)? else { return Ok(None) };
    // Row groups in a row; each overlaps with those before it.
    let mut clusters: Vec<(Vec<u8>, Vec<&KeyRange>)> = Vec::new();
    for range in &ranges {
        match clusters.last_mut().filter(|(last, _)| !key.follows(last, &range.first)) {
            Some((last, cluster)) => {
                if key.compare(last, &range.last) == Some(Ordering::Less) {
                    last.clone_from(&range.last);
                }
                cluster.push(range);
            }
            None => clusters.push((range.last.clone(), vec![range])),
        }
    }
    let mut order = MergeOrder { readers: Vec::new(), merged: Vec::new(), columns };
    for (_, cluster) in &clusters {
        let start = order.readers.len();
        for range in cluster {
            let Some(reader) = readers.get(range.file) else { continue };
            order.readers.push(reader.clone().row_groups([range.row_group])?);
        }
        if cluster.len() > 1 {
            order.merged.push(start..order.readers.len());
        }
    }
    Ok(Some(order))
}

impl KeyColumn {
    fn compare(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        let order = self.order.compare(self.leaf.physical, a, b)?;
        Some(if self.sorting.descending { order.reverse() } else { order })
    }

    /// Whether rows whose keys begin with `first` may come after those that end with `last`.
    fn follows(&self, last: &[u8], first: &[u8]) -> bool {
        match self.compare(last, first) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => self.all.len() == 1,
            _ => false,
        }
    }
}

/// The row groups of these files by their keys; `None` if they are not all sorted by the same
/// columns, or their bounds are not known.
///
/// # Errors
/// `Malformed` if the metadata are broken.
pub(super) fn key_ordered(readers: &[Reader]) -> Result<Option<KeyOrder>> {
    let Some((key, ranges)) = key_ranges(readers)? else { return Ok(None) };
    let is_sorted = ranges.windows(2).all(|pair| match pair {
        [a, b] => key.follows(&a.last, &b.first),
        _ => true,
    });
    let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
    for range in &ranges {
        match parts.last_mut().filter(|(file, _)| *file == range.file) {
            Some((_, row_groups)) => row_groups.push(range.row_group),
            None => parts.push((range.file, vec![range.row_group])),
        }
    }
    let mut ordered = Vec::with_capacity(parts.len());
    for (file, row_groups) in parts {
        if let Some(reader) = readers.get(file) {
            ordered.push(reader.clone().row_groups(row_groups)?);
        }
    }
    Ok(Some(KeyOrder { readers: ordered, is_sorted }))
}

/// The keys of all row groups that have rows, sorted by the first ones.
fn key_ranges(readers: &[Reader]) -> Result<Option<(KeyColumn, Vec<KeyRange>)>> {
    let Some(key) = key_column(readers)? else { return Ok(None) };
    let mut ranges = Vec::new();
    for (file, reader) in readers.iter().enumerate() {
        for row_group in 0..reader.metadata().row_groups() {
            if reader.metadata().footer().row_group_rows(row_group)? == 0 {
                continue;
            }
            match key_range(reader, file, row_group, &key)? {
                Some(range) => ranges.push(range),
                None => return Ok(None),
            }
        }
    }
    let all = || ranges.iter().flat_map(|range| [&range.first, &range.last]);
    let is_unknown = |(a, b): (&Vec<u8>, &Vec<u8>)| key.compare(a, b).is_none();
    if ranges.is_empty() || all().zip(all().skip(1)).any(is_unknown) {
        return Ok(None);
    }
    ranges.sort_by(|a, b| key.compare(&a.first, &b.first).unwrap_or(Ordering::Equal));
    Ok(Some((key, ranges)))
}

/// The columns that row groups are sorted by.
fn sort_columns(readers: &[Reader], key: &KeyColumn) -> Result<Option<Vec<SortColumn>>> {
    let Some(first) = readers.first() else { return Ok(None) };
    let mut columns = Vec::with_capacity(key.all.len());
    for column in &key.all {
        let Ok(leaf) = usize::try_from(column.column_idx) else { return Ok(None) };
        let path = first.metadata().schema().leaf(leaf)?.path.dotted();
        let by = match column.descending {
            true => SortColumn::descending(path),
            false => SortColumn::ascending(path),
        };
        columns.push(if column.nulls_first { by.nulls_first() } else { by });
    }
    Ok(Some(columns))
}

/// Readers whose rows are sorted, and by what: the files, or their row groups one by one where
/// those of a file overlap.
///
/// # Errors
/// As [`key_ordered`].
pub(super) fn sorted_streams(readers: &[Reader]) -> Result<Option<(Vec<Reader>, Vec<SortColumn>)>> {
    let Some(key) = key_column(readers)? else { return Ok(None) };
    let Some(columns) = sort_columns(readers, &key)? else { return Ok(None) };
    let mut streams = Vec::new();
    for reader in readers {
        match key_ordered(std::slice::from_ref(reader))? {
            Some(order) if order.is_sorted => streams.extend(order.readers),
            _ => {
                for row_group in 0..reader.metadata().row_groups() {
                    streams.push(reader.clone().row_groups([row_group])?);
                }
            }
        }
    }
    Ok(Some((streams, columns)))
}

/// Whether a file states an order of its rows.
pub(super) fn states_order(reader: &Reader) -> Result<bool> {
    let metadata = reader.metadata().index().to_file_meta_data()?;
    let stated = |of: &crate::format::RowGroup| {
        of.sorting_columns.as_ref().is_some_and(|columns| !columns.is_empty())
    };
    Ok(metadata.row_groups.iter().any(stated))
}

/// The first column by which all row groups of all files are sorted.
fn key_column(readers: &[Reader]) -> Result<Option<KeyColumn>> {
    let mut all: Option<Vec<SortingColumn>> = None;
    for reader in readers {
        let metadata = reader.metadata().index().to_file_meta_data()?;
        for row_group in metadata.row_groups {
            let columns = row_group.sorting_columns.unwrap_or_default();
            if all.get_or_insert_with(|| columns.clone()) != &columns {
                return Ok(None);
            }
        }
    }
    let (Some(columns), Some(reader)) = (all, readers.first()) else { return Ok(None) };
    let Some(sorting) = columns.first().cloned() else { return Ok(None) };
    let Ok(leaf) = usize::try_from(sorting.column_idx) else { return Ok(None) };
    let leaf = reader.metadata().schema().leaf(leaf)?;
    // Bounds of several files are compared in one order.
    let stated = |reader: &Reader| reader.metadata().footer().column_order(leaf.index).cloned();
    let first = stated(reader);
    if readers.iter().any(|reader| stated(reader) != first) {
        return Ok(None);
    }
    let is_total = first == Some(ColumnOrder::Ieee754TotalOrder);
    let order = ValueOrder::for_leaf(&leaf, is_total);
    // Rows with floats are sorted in their total order, and bounds in the older one leave NaNs out.
    if first.is_none() || order == ValueOrder::Undefined || (order.has_nan() && !is_total) {
        return Ok(None);
    }
    Ok(Some(KeyColumn { leaf, order, sorting, all: columns }))
}

/// The keys of a row group, if they are known and there is no null. Bounds leave NaNs out.
fn key_range(
    reader: &Reader,
    file: usize,
    row_group: usize,
    key: &KeyColumn,
) -> Result<Option<KeyRange>> {
    let chunk = reader.metadata().footer().column_chunk(row_group, key.leaf.index)?;
    let statistics = chunk.meta_data.and_then(|meta| meta.statistics).unwrap_or_default();
    let has_nan = key.order.has_nan() && statistics.nan_count != Some(0);
    if statistics.null_count != Some(0) || has_nan {
        return Ok(None);
    }
    let (Some(min), Some(max)) = (statistics.min_value, statistics.max_value) else {
        return Ok(None);
    };
    let (first, last) = if key.sorting.descending { (max, min) } else { (min, max) };
    Ok(Some(KeyRange { file, row_group, first, last }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, RecordBatch};
    use bytes::Bytes;

    use super::*;
    use crate::io::WriteSink;
    use crate::{SortColumn, WriteOptions, Writer};

    fn file(values: &[f64]) -> Reader {
        let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
        let options = WriteOptions::default().with_total_order(true);
        let options = options.with_sort_order([SortColumn::ascending("v")]);
        let mut file = Vec::new();
        let mut writer = Writer::new(WriteSink(&mut file), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        Reader::new(Bytes::from(file)).unwrap()
    }

    #[test]
    fn rows_after_a_nan_are_not_in_order() {
        let is_sorted = |files: [&[f64]; 2]| {
            key_ordered(&files.map(file)).unwrap().map(|order| order.is_sorted)
        };
        assert_eq!(is_sorted([&[2.0, 3.0], &[0.5, 1.0]]), Some(true));
        assert_eq!(is_sorted([&[1.0, 3.0], &[2.0]]), Some(false));
        // A NaN comes last, and no bound tells of it.
        assert_eq!(is_sorted([&[1.0, f64::NAN], &[2.0, 3.0]]), None);
    }
}
