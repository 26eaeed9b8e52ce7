//! The blocking driver: one thread, no synchronisation, row group after row group.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;

use super::coalesce::fetch;
use super::{Progress, Source};
use crate::error::Result;
use crate::limits::Limits;
use crate::read::{Footer, Plan, RowGroup, RowRange, Supplied, Tail};

/// Reads the footer of a file; says the length of the file too.
///
/// # Errors
/// `Io`, or whatever is wrong with the footer.
pub fn open_footer(source: &dyn Source, limits: &Limits) -> Result<(Footer, u64)> {
    let file_len = source.len()?;
    let tail = Tail::new(file_len)?;
    let bytes = fetch(source, tail.needs())?;
    let footer = tail.supply(&bytes, limits)?;
    let missing = footer.needs().map(|range| source.read(range)).transpose()?;
    Ok((footer.supply(missing, limits)?, file_len))
}

/// The batches of a plan, decoded by the thread that asks.
pub struct Serial {
    source: Arc<dyn Source>,
    plan: Plan,
    next_range: usize,
    row_group: Option<RowGroup>,
    progress: Progress,
}

impl Serial {
    /// The batches of `plan`, whose bytes come from `source`.
    pub fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        progress.begin(plan.rows());
        Self { source, plan, next_range: 0, row_group: None, progress }
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(row_group) = &mut self.row_group {
                if let Some(batch) = row_group.next_batch()? {
                    self.progress.gave(batch.num_rows());
                    return Ok(Some(batch));
                }
                self.row_group = None;
            }
            let Some(range) = self.plan.ranges().get(self.next_range) else {
                return Ok(None);
            };
            self.next_range += 1;
            self.row_group =
                Some(open_row_group(&*self.source, &self.plan, range, &self.progress)?);
        }
    }
}

/// Plans a row group, and fetches what is wanted of its column chunks.
pub(super) fn open_row_group(
    source: &dyn Source,
    plan: &Plan,
    range: &RowRange,
    progress: &Progress,
) -> Result<RowGroup> {
    let bytes_of = |needs: &[Range<u64>]| -> Result<Vec<Bytes>> {
        let bytes = fetch(source, needs).map_err(|e| e.at_row_group(range.row_group))?;
        progress.fetched(needs.iter().map(|need| need.end - need.start).sum());
        Ok(bytes)
    };
    let indexes = plan.row_group(range)?;
    let bytes = bytes_of(indexes.needs())?;
    let mut wanted = indexes.supply(&bytes)?;
    loop {
        let bytes = bytes_of(wanted.needs())?;
        let ignored = wanted.ignored_indexes().len();
        match wanted.supply(bytes)? {
            Supplied::Ready(row_group) => {
                progress.opened(ignored);
                return Ok(*row_group);
            }
            // Each time an index less: at most as often as there are leaves.
            Supplied::Again(again) => wanted = *again,
        }
    }
}
