//! Which row groups of a file a scan reads, and in which order.
//!
//! DataFusion splits a large file by ranges of bytes: each row group belongs to the range that has
//! its middle.

use std::cmp::Ordering;

use arrow_array::Array;
use datafusion_common::{Result, ScalarValue};
use datafusion_datasource::FileRange;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::sort_expr::LexOrdering;

use crate::read::Metadata;
use crate::schema::ArrowOptions;

/// The row groups whose middle lies in `range`; all of them without a range.
///
/// # Errors
/// `Malformed` if the metadata of a column chunk are broken.
pub(super) fn in_range(metadata: &Metadata, range: Option<&FileRange>) -> Result<Vec<usize>> {
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
    for chunk in metadata.column_chunks(row_group)? {
        let Some(meta) = chunk?.meta_data else { continue };
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
pub(super) struct ReadOrder {
    /// Sorted by the lower bounds of its first column, ascending.
    pub(super) by_bounds: Option<LexOrdering>,
    /// Then from the last to the first.
    pub(super) is_reversed: bool,
}

impl ReadOrder {
    /// Puts row groups in this order. Those without bounds come last.
    pub(super) fn apply(&self, metadata: &Metadata, row_groups: &mut [usize]) {
        let column =
            self.by_bounds.as_ref().and_then(|order| order.first().expr.downcast_ref::<Column>());
        let bounds = column.and_then(|column| lower_bounds(metadata, column.name()));
        if let Some(bounds) = bounds {
            let bound = |group: &usize| bounds.get(*group).and_then(Option::as_ref);
            row_groups.sort_by(|a, b| match (bound(a), bound(b)) {
                (Some(a), Some(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
                // Last, also after the order is turned around.
                (Some(_), None) if !self.is_reversed => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (None, Some(_)) if !self.is_reversed => Ordering::Greater,
                (None, Some(_)) => Ordering::Less,
                (None, None) => Ordering::Equal,
            });
        }
        if self.is_reversed {
            row_groups.reverse();
        }
    }
}

/// The lower bound of each row group.
fn lower_bounds(metadata: &Metadata, column: &str) -> Option<Vec<Option<ScalarValue>>> {
    let node = metadata.schema().fields().find(|node| node.name() == column)?;
    if !node.is_leaf() {
        return None;
    }
    let found = metadata.column_statistics(node.leaves().start, &ArrowOptions::default()).ok()?;
    let bound = |i| match found.min.is_valid(i) {
        true => ScalarValue::try_from_array(&found.min, i).ok(),
        false => None,
    };
    Some((0..found.len()).map(bound).collect())
}
