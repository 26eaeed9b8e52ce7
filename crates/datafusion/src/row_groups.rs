//! Chooses which row groups of a file a scan reads, and in which order.
//!
//! DataFusion splits a large file by ranges of bytes: each row group belongs to the range that has
//! its middle.

use std::cmp::Ordering;

use arrow_array::Array;
use datafusion_common::{Result, ScalarValue};
use datafusion_datasource::FileRange;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::sort_expr::LexOrdering;

use crate::error::to_datafusion;
use crate::schema::plain_options;
use marquetry::Metadata;

/// The row groups whose middle lies in `range`; all of them without a range.
///
/// # Errors
/// `Malformed` if the metadata of a column chunk are broken.
pub(crate) fn in_range(metadata: &Metadata, range: Option<&FileRange>) -> Result<Vec<usize>> {
    let all = 0..metadata.row_groups();
    let Some(range) = range else { return Ok(all.collect()) };
    let mut found = Vec::new();
    for row_group in all {
        if range.contains(middle(metadata, row_group)?) {
            found.push(row_group);
        }
    }
    Ok(found)
}

/// The byte in the middle of a row group, and always one of the file.
fn middle(metadata: &Metadata, row_group: usize) -> Result<i64> {
    let (mut start, mut bytes) = (i64::MAX, 0i64);
    for chunk in metadata.column_chunks(row_group).map_err(to_datafusion)? {
        let Some(meta) = chunk.map_err(to_datafusion)?.meta_data else { continue };
        let dictionary = meta.dictionary_page_offset.filter(|offset| *offset > 0);
        let first = dictionary.unwrap_or(i64::MAX).min(meta.data_page_offset);
        start = start.min(first);
        bytes = bytes.saturating_add(meta.total_compressed_size.max(0));
    }
    let last = i64::try_from(metadata.file_len().saturating_sub(1)).unwrap_or(i64::MAX);
    Ok(start.saturating_add(bytes / 2).clamp(0, last))
}

/// The order in which row groups are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadOrder {
    /// Sorted by the lower bounds of its first column, ascending.
    pub(crate) by_bounds: Option<LexOrdering>,
    /// Then from the last to the first.
    pub(crate) is_reversed: bool,
}

impl ReadOrder {
    /// Puts row groups in this order. Those without bounds come last.
    pub(crate) fn apply(&self, metadata: &Metadata, row_groups: &mut [usize]) {
        let column =
            self.by_bounds.as_ref().and_then(|order| order.first().expr.downcast_ref::<Column>());
        let bounds = column.and_then(|column| lower_bounds(metadata, column.name()));
        if self.is_reversed {
            row_groups.reverse();
        }
        if let Some(bounds) = bounds {
            sort_by_bound(row_groups, self.is_reversed, |group| bounds.get(*group)?.clone());
        }
    }
}

/// Sorts `items` by their lower bounds, or from the highest to the lowest. Those without one come
/// last, and so do those whose bound is of another type than the first, because values of unlike
/// types have no order.
pub(crate) fn sort_by_bound<T>(
    items: &mut [T],
    is_reversed: bool,
    bound: impl Fn(&T) -> Option<ScalarValue>,
) {
    let data_type = items.iter().find_map(&bound).map(|bound| bound.data_type());
    items.sort_by_cached_key(|item| {
        let bound = bound(item).filter(|bound| Some(bound.data_type()) == data_type);
        SortKey { bound, is_reversed }
    });
}

/// Where an item comes that is ordered by its bound.
struct SortKey {
    bound: Option<ScalarValue>,
    is_reversed: bool,
}

impl PartialEq for SortKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortKey {}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.bound, &other.bound) {
            (Some(a), Some(b)) => {
                // Values of one type always compare, except nested ones, which have no bounds.
                let order = a.partial_cmp(b).unwrap_or(Ordering::Equal);
                if self.is_reversed { order.reverse() } else { order }
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }
}

/// The lower bound of each row group.
fn lower_bounds(metadata: &Metadata, column: &str) -> Option<Vec<Option<ScalarValue>>> {
    let node = metadata.schema().fields().find(|node| node.name() == column)?;
    if !node.is_leaf() {
        return None;
    }
    let found = metadata.column_statistics(node.leaves().start, &plain_options()).ok()?;
    let bound = |i| match found.min.is_valid(i) {
        true => ScalarValue::try_from_array(&found.min, i).ok(),
        false => None,
    };
    Some((0..found.len()).map(bound).collect())
}
