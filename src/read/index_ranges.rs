//! Finds where the indexes of row groups are, so that those of several are fetched together.

use std::ops::Range;

use super::plan::{Plan, RowRange};
use super::prune::IndexRequest;
use crate::error::Result;

/// The index ranges that may be fetched before the pages of a row group.
#[derive(Debug, Default)]
pub(crate) struct IndexRanges {
    /// Page indexes and bloom filters.
    pub(crate) indexes: Vec<Range<u64>>,
    /// Dictionary pages.
    pub(crate) dictionaries: Vec<Range<u64>>,
}

impl Plan {
    /// The indexes of a row group of [`Plan::ranges`] that may be asked for, and the dictionaries,
    /// so that they can be fetched together with those of others.
    ///
    /// # Errors
    /// `Malformed` if the metadata of a chunk are broken.
    pub(crate) fn index_ranges(&self, range: &RowRange) -> Result<IndexRanges> {
        let pruner = self.pruner(range)?;
        let mut found = IndexRanges::default();
        for (asked, need) in pruner.asked.iter().zip(pruner.needs) {
            match asked {
                IndexRequest::Dictionary { .. } => found.dictionaries.push(need),
                _ => found.indexes.push(need),
            }
        }
        if self.filter().is_none() || range.is_claimed_or_proven() {
            found.indexes.extend_from_slice(self.row_group(range)?.needs());
        } else if self.index_may_help(range.row_group)? {
            for column in self.leaves() {
                let chunk = self.footer().column_chunk_ref(range.row_group, column.leaf.index)?;
                found.indexes.extend(self.offset_index(&chunk));
            }
        }
        Ok(found)
    }
}
