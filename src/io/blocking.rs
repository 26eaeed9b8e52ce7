//! The blocking driver: one thread, no synchronisation, row group after row group.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;

use super::opening::{Opened, Opening};
use super::pull::LocalPull;
use super::ranges::fetch;
use super::{Progress, Source};
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::limits::Limits;
use crate::read::{Footer, Metadata, Plan, Pull, RowGroup, RowRange, Tail};

/// Reads the footer of a file; says the length of the file too.
///
/// # Errors
/// `Io`, or whatever is wrong with the footer.
pub fn open_footer(source: &dyn Source, limits: &Limits) -> Result<(Footer, u64)> {
    let file_len = source.len()?;
    let tail = Tail::new(file_len)?;
    let bytes = fetch(source, tail.needs(), None)?;
    let footer = tail.supply(&bytes, limits)?;
    let missing = footer.needs().map(|range| source.read(range)).transpose()?;
    Ok((footer.supply(missing, limits)?, file_len))
}

/// Loads the page indexes of these leaves: a few large reads, whatever their number. What is loaded already is not read again.
///
/// # Errors
/// `Io`; or as [`Metadata::index_needs`].
pub fn load_indexes(
    source: &dyn Source,
    metadata: &mut Metadata,
    row_groups: impl IntoIterator<Item = usize>,
    leaves: impl IntoIterator<Item = usize> + Clone,
    limits: &Limits,
) -> Result<()> {
    let gap = if source.in_memory() { 0 } else { source.latency().gap() };
    let needs = metadata.index_needs(row_groups, leaves, gap, limits)?;
    let bytes = needs.iter().map(|need| source.read(need.clone())).collect::<Result<_>>()?;
    metadata.supply_indexes(&needs, bytes)
}

/// The batches of a plan, decoded by the thread that asks.
pub struct Serial {
    opener: Opener,
    next_range: usize,
    row_group: Option<RowGroup>,
    /// Whether the row group is read without its page indexes, because one was found to be wrong.
    distrusts: bool,
}

impl Serial {
    /// The batches of `plan`, whose bytes come from `source`.
    pub fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        let opener = Opener::new(source, plan, progress);
        Self { opener, next_range: 0, row_group: None, distrusts: false }
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
                        self.opener.progress.gave(batch.num_rows());
                        return Ok(Some(batch));
                    }
                    Ok(None) => self.row_group = None,
                    Err(e) if contradicts(&e) && !self.distrusts => {
                        self.row_group = None;
                        self.distrusts = true;
                        self.row_group = self.opener.reopen(&rest)?;
                        continue;
                    }
                    Err(e) => return Err(e),
                }
            }
            let Some(range) = self.opener.plan.ranges().get(self.next_range) else {
                return Ok(None);
            };
            self.next_range += 1;
            self.distrusts = false;
            self.row_group = self.opener.open(range)?;
        }
    }
}

/// Whether the error says that pages do not hold the rows that an index, or the headers of all pages, say.
pub(super) fn contradicts(error: &Error) -> bool {
    error.kind() == ErrorKind::Malformed(Spec::PageIndex)
}

/// Opens the row groups of a plan: fetches what is wanted of them, or lets it be pulled.
pub(super) struct Opener {
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: Plan,
    pub(super) progress: Progress,
    pull: Option<Arc<dyn Pull>>,
}

impl Opener {
    pub(super) fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        progress.begin(plan.rows());
        let pull = LocalPull::from(&source, &progress, plan.budget().spare());
        Self { source, plan, progress, pull }
    }

    /// Opens a row group; `None` if bloom filters or page indexes prove that the filter is true of none of its rows.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with its metadata and indexes.
    pub(super) fn open(&self, range: &RowRange) -> Result<Option<RowGroup>> {
        self.drive(Opening::new(&self.plan, range, &self.progress)?)
    }

    /// Opens a row group whose index was found to be wrong while it was decoded.
    ///
    /// # Errors
    /// As [`Opener::open`].
    pub(super) fn reopen(&self, rest: &RowRange) -> Result<Option<RowGroup>> {
        self.drive(Opening::again(&self.plan, rest, &self.progress)?)
    }

    fn drive(&self, opening: Opening) -> Result<Option<RowGroup>> {
        let mut opening = opening.with_pull(&self.pull);
        loop {
            let bytes = self.fetch(opening.needs(), opening.row_group())?;
            match opening.supply(bytes)? {
                Opened::More(more) => opening = more,
                Opened::Done(row_group) => return Ok(row_group.map(|row_group| *row_group)),
            }
        }
    }

    pub(super) fn fetch(&self, needs: &[Range<u64>], row_group: usize) -> Result<Vec<Bytes>> {
        let latency = self.plan.options().latency;
        let bytes = fetch(&*self.source, needs, latency).map_err(|e| e.at_row_group(row_group))?;
        self.progress.fetched(needs.iter().map(|need| need.end - need.start).sum());
        Ok(bytes)
    }
}
