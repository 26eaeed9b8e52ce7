//! The blocking driver: one thread, no synchronisation, row group after row group.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;

use super::coalesce::fetch;
use super::{Progress, Source};
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::limits::Limits;
use crate::read::{Footer, Plan, RowGroup, RowGroupPlan, RowRange, Supplied, Tail};

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
    /// Whether the row group is read without its page indexes, because one was found to be wrong.
    distrusts: bool,
    progress: Progress,
}

impl Serial {
    /// The batches of `plan`, whose bytes come from `source`.
    pub fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        progress.begin(plan.rows());
        Self { source, plan, next_range: 0, row_group: None, distrusts: false, progress }
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(row_group) = &mut self.row_group {
                let rest = row_group.rest();
                match row_group.next_batch() {
                    Ok(Some(batch)) => {
                        self.progress.gave(batch.num_rows());
                        return Ok(Some(batch));
                    }
                    Ok(None) => self.row_group = None,
                    Err(e) if contradicts(&e) && !self.distrusts => {
                        self.row_group = None;
                        self.distrusts = true;
                        let again = reopen(&*self.source, &self.plan, &rest, &self.progress)?;
                        self.row_group = Some(again);
                        continue;
                    }
                    Err(e) => return Err(e),
                }
            }
            let Some(range) = self.plan.ranges().get(self.next_range) else {
                return Ok(None);
            };
            self.next_range += 1;
            self.distrusts = false;
            self.row_group =
                Some(open_row_group(&*self.source, &self.plan, range, &self.progress)?);
        }
    }
}

/// Whether the error says that pages do not hold the rows that an index, or the headers of all pages, say.
pub(super) fn contradicts(error: &Error) -> bool {
    error.kind() == ErrorKind::Malformed(Spec::PageIndex)
}

/// Plans a row group, and fetches what is wanted of its column chunks.
pub(super) fn open_row_group(
    source: &dyn Source,
    plan: &Plan,
    range: &RowRange,
    progress: &Progress,
) -> Result<RowGroup> {
    let indexes = plan.row_group(range)?;
    let bytes = fetch_counted(source, indexes.needs(), range, progress)?;
    fetch_row_group(source, indexes.supply(&bytes)?, progress)
}

/// Fetches column chunks whole, of a row group whose index was found to be wrong while it was decoded.
pub(super) fn reopen(
    source: &dyn Source,
    plan: &Plan,
    range: &RowRange,
    progress: &Progress,
) -> Result<RowGroup> {
    progress.ignored_index();
    fetch_row_group(source, plan.row_group(range)?.without_index()?, progress)
}

fn fetch_row_group(
    source: &dyn Source,
    mut wanted: RowGroupPlan,
    progress: &Progress,
) -> Result<RowGroup> {
    loop {
        let bytes = fetch_counted(source, wanted.needs(), wanted.range(), progress)?;
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

fn fetch_counted(
    source: &dyn Source,
    needs: &[Range<u64>],
    range: &RowRange,
    progress: &Progress,
) -> Result<Vec<Bytes>> {
    let bytes = fetch(source, needs).map_err(|e| e.at_row_group(range.row_group))?;
    progress.fetched(needs.iter().map(|need| need.end - need.start).sum());
    Ok(bytes)
}
