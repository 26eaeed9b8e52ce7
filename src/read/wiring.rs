//! [`ReadWiring`]: what a driver adds to the options of a read.

use std::sync::Arc;

use super::counters::FilterCounters;
use super::loaded_indexes::LoadedIndexes;
use super::options::ReadOptions;
use crate::limits::Budget;
use crate::selection::RowSelection;

/// How a driver controls a read. [`ReadOptions`] say which rows and columns a user wants; these
/// settings say what the read shares with others, and what its driver does in its place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadWiring {
    /// Whether bloom filters may exclude row groups. Default true.
    pub bloom_filters: bool,
    /// Whether the filter only decides what is not read, and the caller removes the rows that do
    /// not pass. Default false.
    pub only_prunes: bool,
    /// The counters of what the read does for its filter. Default: none.
    pub counters: Option<Arc<FilterCounters>>,
    /// The place where the read leaves the indexes that it fetches, for later reads of the file.
    /// Default: none.
    pub loaded_indexes: Option<Arc<LoadedIndexes>>,
    /// The memory budget of the read, shared with all that have a clone of it. Default: a budget of
    /// its own, of [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    pub budget: Option<Budget>,
    /// The row groups, and their rows, that one part of a divided read has; the other choices of
    /// rows are made among them.
    pub(crate) part: Option<Arc<[(usize, RowSelection)]>>,
    /// Only the number of rows is wanted, and there are no columns: rows that need not be decoded
    /// are given at once, however many they are.
    pub(crate) counting: bool,
    /// Whether rows that are not wanted are left alone, because their pages are damaged, also where
    /// it costs less to decode them.
    pub(crate) skips_gaps: bool,
}

impl Default for ReadWiring {
    fn default() -> Self {
        Self {
            bloom_filters: true,
            only_prunes: false,
            counters: None,
            loaded_indexes: None,
            budget: None,
            part: None,
            counting: false,
            skips_gaps: false,
        }
    }
}

impl ReadWiring {
    /// Maximum gap between wanted rows that is decoded.
    pub(super) fn max_gap(&self) -> u64 {
        if self.skips_gaps { 0 } else { GAP }
    }

    /// The row groups that are chosen in a file of `row_groups`, in order, and which rows of them;
    /// `None` for all.
    pub(crate) fn chosen_row_groups(
        &self,
        options: &ReadOptions,
        row_groups: usize,
    ) -> Vec<(usize, Option<&RowSelection>)> {
        let part = self.part.as_deref().map(|part| part.iter().map(|(i, rows)| (*i, Some(rows))));
        match (part, &options.row_groups) {
            (None, None) => (0..row_groups).map(|i| (i, None)).collect(),
            (None, Some(chosen)) => chosen.iter().map(|i| (*i, None)).collect(),
            (Some(part), None) => part.collect(),
            (Some(part), Some(chosen)) => {
                chosen.iter().flat_map(|i| part.clone().filter(move |(of, _)| of == i)).collect()
            }
        }
    }
}

/// Maximum gap between wanted rows that is decoded, because skipping it would cost more. Its pages
/// must be there.
pub(super) const GAP: u64 = 16;
