//! The blocking driver fetches and decodes what a [`Scan`] asks for, on the calling thread.
//! [`Serial`] is the whole of it; the parallel driver lets a pool call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;

use super::file_ranges::FileRanges;
use super::ranges::{FetchedBytes, fetch, read_metadata};
use super::source::Source;
use super::threads::join;
use super::workers::PoolThreads;
use crate::crypt::Decryption;
use crate::error::Result;
use crate::limits::Limits;
use crate::read::{
    Failed, FilterFirst, Footer, Metadata, Next, OpenContext, Opened, Opening, Plan, Prefetch,
    Progress, ReservedBatch, RowGroupDecoder, Scan, Step, Tail, Wave,
};
use crate::trace;

/// Reads the footer of a file. Returns the length of the file too.
///
/// # Errors
/// `Io`, or whatever is wrong with the footer.
pub(crate) fn open_footer(
    source: &dyn Source,
    limits: &Limits,
    keys: Option<&Decryption>,
) -> Result<(Footer, u64)> {
    let file_len = source.len()?;
    let is_near = source.in_memory() || source.is_local();
    let tail = if is_near { Tail::new(file_len)? } else { Tail::without_head(file_len)? };
    let bytes = fetch(source, tail.needs(), None, None, false)?.bytes;
    let footer = tail.supply(&bytes, limits)?;
    let missing = footer.needs().map(|range| read_metadata(source, range, limits)).transpose()?;
    Ok((footer.seal(missing, keys)?.open(limits)?, file_len))
}

/// Loads the page indexes of these leaves in a few large reads, whatever their number. Indexes that
/// are loaded already are not read again.
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
    driver: ScanDriver,
    scan: Scan,
}

impl Serial {
    /// The batches of `plan`, whose bytes come from `source`.
    pub(crate) fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        let driver = ScanDriver::new(source, plan, progress);
        Self { scan: driver.scan(0, Prefetch::Never), driver }
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(batches) = self.driver.advance(&mut self.scan, false)? {
            if let Some(ReservedBatch { batch, .. }) = batches.into_iter().next() {
                self.driver.context.progress.gave(batch.num_rows());
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Fetches and decodes what a [`Scan`] asks for. Large chunks of local files are read while they
/// are decoded.
pub(super) struct ScanDriver {
    pub(super) context: Arc<OpenContext>,
    pub(super) source: Arc<dyn Source>,
    pub(super) pieces: Option<FileRanges>,
    pub(super) cancelled: AtomicBool,
    /// Whether the threads of the pool that the caller is one of share requests and waves.
    pub(super) side_by_side: bool,
}

impl ScanDriver {
    pub(super) fn new(source: Arc<dyn Source>, plan: Plan, progress: Progress) -> Self {
        progress.begin(plan.rows());
        let pieces = FileRanges::from(&source, &progress, plan.budget().free_lists());
        // From near sources, reading the columns of the filter twice costs more than reading the
        // others.
        let is_far = !source.in_memory() && !source.is_local();
        let filter_first = if is_far { FilterFirst::new(&plan) } else { None };
        let gap = plan.options().latency.unwrap_or_else(|| source.latency()).gap();
        let in_pieces = pieces.is_some();
        let context = OpenContext { plan, progress, in_pieces, filter_first, gap };
        let (context, cancelled) = (Arc::new(context), AtomicBool::new(false));
        Self { context, source, pieces, cancelled, side_by_side: false }
    }

    /// The state of the read at its beginning.
    pub(super) fn scan(&self, threads: usize, prefetch: Prefetch) -> Scan {
        let ranges = self.context.plan.ranges().into();
        Scan::new(self.context.clone(), ranges, threads, prefetch)
    }

    /// Decodes until a wave is done, and returns its batches; `None` after the last. A wave without
    /// batches means that memory is exhausted until waiting batches are returned.
    ///
    /// # Errors
    /// `Io`, or any fault of the data.
    pub(super) fn advance(
        &self,
        scan: &mut Scan,
        waits: bool,
    ) -> Result<Option<Vec<ReservedBatch>>> {
        while !self.cancelled.load(Ordering::Relaxed) {
            match scan.next(waits)? {
                Next::Open(id, opening) => scan.opened(id, self.open(*opening)),
                Next::Decode(wave) => {
                    let batches = self.decode(scan, wave);
                    if !batches.is_empty() {
                        return Ok(Some(batches));
                    }
                }
                Next::Wait => return Ok(Some(Vec::new())),
                Next::Stop => break,
            }
        }
        Ok(None)
    }

    /// Fetches what a row group needs until it is there: `None` if no row passes the filter, as
    /// metadata prove or the columns of the filter show.
    pub(super) fn open(&self, opening: Opening) -> Result<Option<Box<RowGroupDecoder>>, Failed> {
        let _span = trace::row_group(opening.row_group(), opening.rows());
        let mut step = Step::NeedsMore(opening);
        loop {
            step = match step {
                Step::NeedsMore(opening) => {
                    let needs = opening.needs()?;
                    let latency = self.context.plan.options().latency;
                    let free_lists = Some(self.context.plan.budget().free_lists());
                    let fetched =
                        fetch(&*self.source, needs, latency, free_lists, self.side_by_side);
                    let FetchedBytes { bytes, missing_bytes } = fetched
                        .map_err(|e| Failed::at_last(e.at_row_group(opening.row_group())))?;
                    self.context.progress.fetched(missing_bytes);
                    opening.supply(bytes, missing_bytes)?
                }
                Step::Done(Opened::Filter(task)) => task.run(&self.cancelled)?,
                Step::Done(Opened::RowGroup(row_group)) => return Ok(row_group),
            };
        }
    }

    /// Decodes a wave. Beside it, the next row group is opened if its turn comes soon.
    fn decode(&self, scan: &mut Scan, mut wave: Wave) -> Vec<ReservedBatch> {
        let ahead = scan.open_beside(&wave);
        let workers = PoolThreads { cancelled: &self.cancelled, pieces: self.pieces.as_ref() };
        let found = match ahead {
            None => workers.decode(&mut wave),
            Some((id, opening)) => {
                let (found, opened) = join(|| workers.decode(&mut wave), || self.open(opening));
                scan.opened(id, opened);
                found
            }
        };
        scan.decoded(wave, found)
    }
}
