//! The blocking driver: one thread, no synchronisation, row group after row group.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use bytes::Bytes;

use super::file_ranges::{FileRanges, next_batch};
use super::filter_first::{FilterFirst, FilteredOpening, OpenContext, OpenStep};
use super::progress::Progress;
use super::ranges::{fetch, read_metadata};
use super::row_group_open::contradicts;
use super::source::Source;
use crate::crypt::Decryption;
use crate::error::Result;
use crate::limits::Limits;
use crate::read::{Footer, Metadata, Plan, ReservedBatch, RowGroup, RowRange, Tail};
use crate::trace;

/// Reads the footer of a file. Gives the length of the file too.
///
/// # Errors
/// `Io`, or whatever is wrong with the footer.
pub(crate) fn open_footer(
    source: &dyn Source,
    limits: &Limits,
    keys: Option<&Decryption>,
) -> Result<(Footer, u64)> {
    let file_len = source.len()?;
    let tail = Tail::new(file_len)?;
    let bytes = fetch(source, tail.needs(), None, None, false)?.bytes;
    let footer = tail.supply(&bytes, limits)?;
    let missing = footer.needs().map(|range| read_metadata(source, range, limits)).transpose()?;
    Ok((footer.seal(missing, keys)?.open(limits)?, file_len))
}

/// Loads the page indexes of these leaves: a few large reads, whatever their number. What is loaded
/// already is not read again.
///
/// # Errors
/// `Io`; or as [`Metadata::index_needs`].
pub(crate) fn load_indexes(
    source: &dyn Source,
    metadata: &mut Metadata,
    row_groups: impl IntoIterator<Item = usize>,
    leaves: impl IntoIterator<Item = usize> + Clone,
    limits: &Limits,
) -> Result<()> {
    let gap = if source.in_memory() { 0 } else { source.latency().gap() };
    let needs = metadata.index_needs(row_groups, leaves, gap, limits)?;
    let bytes = needs.iter().map(|need| read_metadata(source, need.clone(), limits));
    let bytes = bytes.collect::<Result<_>>()?;
    metadata.supply_indexes(&needs, bytes)
}

/// The batches of a plan, decoded by the thread that asks.
pub(crate) struct Serial {
    opener: RowGroupOpener,
    next_range: usize,
    row_group: Option<RowGroup>,
    /// Whether the row group is read without its page indexes, because one was found to be wrong.
    ignores_index: bool,
}

impl Serial {
    /// The batches of `plan`, whose bytes come from `source`.
    pub(crate) fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        let opener = RowGroupOpener::new(source, plan, progress);
        Self { opener, next_range: 0, row_group: None, ignores_index: false }
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(row_group) = &mut self.row_group {
                let rest = row_group.rest();
                let _span = trace::decode(rest.row_group);
                match next_batch(row_group, self.opener.pieces.as_ref()) {
                    Ok(Some(ReservedBatch { batch, .. })) => {
                        self.opener.progress.gave(batch.num_rows());
                        return Ok(Some(batch));
                    }
                    Ok(None) => self.row_group = None,
                    Err(e) if contradicts(&e) && !self.ignores_index => {
                        self.row_group = None;
                        self.ignores_index = true;
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
            self.ignores_index = false;
            self.row_group = self.opener.open(range)?;
        }
    }
}

/// Opens the row groups of a plan: fetches what is wanted of them. Large chunks of local files are
/// read later, while they are decoded.
pub(super) struct RowGroupOpener {
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: Plan,
    pub(super) progress: Progress,
    pub(super) pieces: Option<FileRanges>,
    filter_first: Option<FilterFirst>,
    /// Whether the threads of the pool that the caller is one of share the requests.
    side_by_side: bool,
}

impl RowGroupOpener {
    pub(super) fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        progress.begin(plan.rows());
        let pieces = FileRanges::from(&source, &progress, plan.budget().free_lists());
        // From near sources, reading the columns of the filter twice costs more than reading the
        // others.
        let is_far = !source.in_memory() && !source.is_local();
        let filter_first = if is_far { FilterFirst::new(&plan) } else { None };
        Self { source, plan, progress, pieces, filter_first, side_by_side: false }
    }

    /// Makes the requests of a row group on all threads of the pool, one of which must be the one
    /// that opens it.
    #[cfg(feature = "parallel")]
    pub(super) fn side_by_side(self) -> Self {
        Self { side_by_side: true, ..self }
    }

    /// Opens a row group. `None` if no row passes the filter, as bloom filters or page indexes
    /// prove, or as the columns of the filter show.
    ///
    /// From a remote source, the columns of the filter are fetched first, and of the others only
    /// the pages of the rows that pass.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with its metadata and indexes; if the filter is evaluated first,
    /// with the pages of its columns too.
    pub(super) fn open(&self, range: &RowRange) -> Result<Option<RowGroup>> {
        let _span = trace::row_group(range.row_group, range.count());
        self.drive(FilteredOpening::new(self.context(), range)?)
    }

    /// Opens a row group whose index was found to be wrong while it was decoded.
    ///
    /// # Errors
    /// As [`RowGroupOpener::open`].
    pub(super) fn reopen(&self, rest: &RowRange) -> Result<Option<RowGroup>> {
        let mut row_group = self.drive(FilteredOpening::again(self.context(), rest)?)?;
        if let Some(row_group) = &mut row_group {
            row_group.forbid_splits();
        }
        Ok(row_group)
    }

    fn context(&self) -> OpenContext<'_> {
        let Self { source, plan, progress, pieces, filter_first, .. } = self;
        let gap = plan.options().latency.unwrap_or_else(|| source.latency()).gap();
        let (in_pieces, filter_first) = (pieces.is_some(), filter_first.as_ref());
        OpenContext { plan, progress, in_pieces, filter_first, gap }
    }

    /// Fetches what a row group needs until it is there.
    fn drive(&self, opening: FilteredOpening<'_>) -> Result<Option<RowGroup>> {
        let mut step = OpenStep::More(opening);
        loop {
            step = match step {
                OpenStep::More(opening) => {
                    opening.check_memory()?;
                    let (bytes, read) = self.fetch(opening.needs(), opening.row_group())?;
                    opening.supply(bytes, read)?
                }
                OpenStep::Filter(task, after) => after.resume(task.run(&AtomicBool::new(false)))?,
                OpenStep::Done(row_group) => return Ok(row_group.map(|row_group| *row_group)),
            };
        }
    }

    /// The bytes of ranges, and how many of them were not in memory.
    fn fetch(&self, needs: &[Range<u64>], row_group: usize) -> Result<(Vec<Bytes>, u64)> {
        let latency = self.plan.options().latency;
        let free_lists = self.plan.budget().free_lists();
        let fetched = fetch(&*self.source, needs, latency, Some(free_lists), self.side_by_side)
            .map_err(|e| e.at_row_group(row_group))?;
        self.progress.fetched(fetched.missing_bytes);
        Ok((fetched.bytes, fetched.missing_bytes))
    }
}
