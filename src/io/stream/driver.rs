//! The asynchronous driver: row groups are fetched ahead, side by side, and decoded by a pool, or
//! where the stream is polled.
//!
//! Requests run while the stream is polled; a thread of the runtime never waits. As many row groups
//! are on their way as fit a share of the memory. What is fetched is decoded in waves, as by the
//! parallel driver: while one is decoded, requests go on.
//!
//! The indexes of many row groups are fetched together. With a filter, what it needs is fetched and
//! decoded first, and then of the other columns only the pages of the rows that pass, as long as
//! that spares more than it costs.

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arrow_array::RecordBatch;
use futures_channel::oneshot;
use futures_core::Stream;
use futures_core::future::BoxFuture;
use futures_util::stream::FuturesOrdered;

use super::source::{AsyncSource, CachedSource, FetchedRanges, FileEnd};
use crate::crypt::Decryption;
use crate::error::{Error, Result};
use crate::io::filter_first::{FilterFirst, FilterTask, FilteredOpening, OpenContext, OpenStep};
use crate::io::parallel;
use crate::io::pool::Pool;
use crate::io::progress::Progress;
use crate::io::serial_wave::{QueuedRowGroup, WaveResult, serial_wave};
use crate::io::wave::WaveSize;
use crate::limits::{Limits, Reservation};
#[cfg(feature = "engine")]
use crate::range_cache::RangeCache;
use crate::read::{Footer, Metadata, Plan, ReservedBatch, RowGroup, RowRange, Tail, is_too_large};
use crate::selection::RowSelection;

/// Reads the footer of a file, with one request if the guess of its length is right, which the
/// caller may know better; gives what was read of the end too.
///
/// # Errors
/// `Io`, or whatever is wrong with the footer.
pub(crate) async fn open_footer_async(
    source: &Arc<dyn AsyncSource>,
    limits: &Limits,
    keys: Option<&Decryption>,
    guess: Option<u64>,
) -> Result<(Footer, FileEnd)> {
    let max = match guess {
        // The footer, its length and the magic number.
        Some(guess) => guess.min(limits.footer_bytes.saturating_add(TAIL_BYTES)).max(TAIL_BYTES),
        None => (source.latency().gap() / GUESS_PART).clamp(SHORTEST_GUESS, LONGEST_GUESS),
    };
    let end = source.read_end(max).await?;
    let tail = Tail::at_end(end.file_len, end.bytes.len() as u64)?;
    let footer = tail.supply(std::slice::from_ref(&end.bytes), limits)?;
    let missing = match footer.needs() {
        Some(range) => CachedSource::new(source.clone(), None).fetch(&[range]).await?.bytes.pop(),
        None => None,
    };
    let footer = footer.seal(missing, keys)?;
    #[cfg(feature = "encryption")]
    if let Some(keys) = keys {
        let footer = footer.retrieve_key(keys).await?.open(limits)?;
        footer.retrieve_keys(keys).await?;
        return Ok((footer, end));
    }
    Ok((footer.open(limits)?, end))
}

/// Loads the page indexes of these leaves: a few requests, whatever their number. What is loaded
/// already is not fetched again.
///
/// # Errors
/// `Io`; or as [`Metadata::index_needs`].
pub(crate) async fn load_indexes_async(
    source: &Arc<dyn AsyncSource>,
    end: Option<FileEnd>,
    metadata: &mut Metadata,
    row_groups: impl IntoIterator<Item = usize>,
    leaves: impl IntoIterator<Item = usize> + Clone,
    limits: &Limits,
) -> Result<()> {
    let gap = source.latency().gap();
    let needs = metadata.index_needs(row_groups, leaves, gap, limits)?;
    let held = CachedSource::new(source.clone(), None);
    held.hold_end(end);
    let bytes = held.fetch(&needs).await?.bytes;
    metadata.supply_indexes(&needs, bytes)
}

/// What comes after the footer.
const TAIL_BYTES: u64 = 8;

/// The guess may cost a quarter of a request, because a wrong guess costs a whole one.
const GUESS_PART: u64 = 4;
/// Minimum and maximum of the guess, in bytes.
const SHORTEST_GUESS: u64 = 64 << 10;
const LONGEST_GUESS: u64 = 512 << 10;

/// The batches of a plan, fetched asynchronously, in order.
pub(crate) struct Streamed {
    shared: Arc<StreamState>,
    next_range: usize,
    /// The indexes of the first row groups, which are fetched before all else.
    indexes: Option<BoxFuture<'static, ()>>,
    /// Row groups that are being fetched.
    fetching: FuturesOrdered<Fetching>,
    /// Their rows, and about how many bytes each will hold.
    wanted: VecDeque<(u64, RowRange)>,
    /// Row groups that are fetched again without their index, before all others.
    again: FuturesOrdered<Fetching>,
    /// Those of them that have come.
    reopened: Vec<Result<QueuedRowGroup, Failed>>,
    /// Row groups that can be decoded.
    queue: VecDeque<Result<QueuedRowGroup, Failed>>,
    running: Option<oneshot::Receiver<WaveOutcome>>,
    ready: VecDeque<ReservedBatch>,
    size: WaveSize,
    /// Row groups that are fetched at a time now, and at most.
    depth: usize,
    max_depth: usize,
    /// Up to [`MAX_SMALL`] row groups are fetched at a time, as long as no more bytes than these
    /// are held.
    small: u64,
    /// The memory of what was taken over, until the first row group is open.
    taken_over: Option<Reservation>,
    /// Whether another read holds memory of the same budget, which it can give back.
    shares_memory: bool,
    done: bool,
}

type Fetching = BoxFuture<'static, Result<Option<QueuedRowGroup>>>;

/// An error, in the place of its row group.
struct Failed {
    error: Error,
    /// The rows to open once more, because there may be memory for them later.
    postponed: Option<RowRange>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, postponed: None }
    }
}

struct StreamState {
    source: CachedSource,
    plan: Plan,
    /// Row groups of the plan, and parts of those that are large.
    ranges: Vec<RowRange>,
    filter_first: Option<FilterFirst>,
    pool: Option<Pool>,
    progress: Progress,
    cancelled: Arc<AtomicBool>,
}

type WaveOutcome = Result<WaveResult, Box<dyn Any + Send>>;

/// Row groups that are fetched at a time at first, where a limit may soon be reached.
const FETCHING_AT_FIRST: usize = 2;

/// Row groups that are fetched at a time at most if they are small: those of which no column is read
/// take no bytes, and a file can have very many of them.
const MAX_SMALL: usize = 64;

/// What a request to a source takes at least, if fetching is slow beside decoding, so that it pays
/// to fetch the columns of a filter before the others.
const FAR: Duration = Duration::from_millis(1);

/// Bytes of a large row group that are fetched at a time, if the budget allows.
const PART_BYTES: u64 = 64 << 20;

/// Bytes that are fetched at a time however little memory there is. If they do not fit, that is an
/// error.
const SMALLEST_PART: u64 = 64 << 10;

impl Streamed {
    /// The batches of `plan`, whose bytes come from `source`, decoded by `pool`, or by the thread
    /// that polls; `end` is the end of the file, if it is at hand, and `metadata` holds the page
    /// indexes that are.
    pub(crate) fn new(
        source: Arc<dyn AsyncSource>,
        end: Option<FileEnd>,
        metadata: Metadata,
        plan: Plan,
        pool: Option<Pool>,
        progress: Progress,
    ) -> Self {
        progress.begin(plan.rows());
        let source = CachedSource::new(source, plan.options().latency).knowing(metadata);
        source.hold_end(end);
        // Without a pool, a poll decodes one batch.
        let size = WaveSize::new(&plan, pool.as_ref().map_or(0, Pool::threads));
        let options = plan.options();
        let may_end_soon = options.filter.is_some() && options.limit.is_some();
        let max_depth = options.read_ahead.row_groups.max(1);
        let depth = if may_end_soon { FETCHING_AT_FIRST.min(max_depth) } else { max_depth };
        let cancelled = Arc::new(AtomicBool::new(false));
        // From near sources, reading the columns of the filter twice costs more than reading the
        // others.
        let is_far = source.latency().per_request >= FAR;
        let filter_first = if is_far { FilterFirst::new(&plan) } else { None };
        let part_bytes = PART_BYTES.min(plan.budget().cap() / 8).min(options.read_ahead.bytes);
        let part_bytes = part_bytes.max(SMALLEST_PART);
        let mut ranges = Vec::new();
        for range in plan.ranges() {
            let parts = plan.parts(range, part_bytes);
            ranges.extend(parts.unwrap_or_else(|_| vec![range.clone()]));
        }
        let wants_indexes = plan.options().filter.is_some()
            || ranges.len() > plan.ranges().len()
            || ranges.iter().any(|range| range.selection.is_some());
        let shared = StreamState { source, plan, ranges, filter_first, pool, progress, cancelled };
        let shared = Arc::new(shared);
        let of_indexes = shared.clone();
        let indexes = async move { of_indexes.fetch_indexes().await };
        Self {
            shared,
            indexes: wants_indexes.then(|| -> BoxFuture<'static, ()> { Box::pin(indexes) }),
            next_range: 0,
            fetching: FuturesOrdered::new(),
            wanted: VecDeque::new(),
            again: FuturesOrdered::new(),
            reopened: Vec::new(),
            queue: VecDeque::new(),
            running: None,
            ready: VecDeque::new(),
            size,
            depth,
            max_depth,
            small: 0,
            taken_over: None,
            shares_memory: false,
            done: false,
        }
    }

    /// Whether another read is to give back the memory that it holds of the same budget: there was
    /// too little, or a row group is fetched again, for which there may be too little.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.shares_memory && (!self.size.may_overlap || !self.again.is_empty())
    }

    /// Begins to fetch as many row groups as there is memory for, and one if there is none.
    fn fetch_ahead(&mut self) {
        let plan = &self.shared.plan;
        let waves = self.size.bytes.saturating_mul(2);
        let max_held =
            plan.options().read_ahead.bytes.saturating_add(waves).min(plan.budget().cap() / 2);
        while let Some(range) = self.shared.ranges.get(self.next_range) {
            let n = self.fetching.len() + self.queue.len();
            let max = if self.small == 0 { self.depth } else { self.depth.max(MAX_SMALL) };
            if n >= max {
                break;
            }
            // An error in the metadata is given in its turn.
            let bytes = plan.row_group(range).map_or(0, |row_group| row_group.wanted_bytes());
            let held = plan.budget().used() + self.wanted.iter().map(|it| it.0).sum::<u64>();
            if n >= self.depth && held.saturating_add(bytes) > self.small {
                break;
            }
            let is_first = n == 0;
            if held.saturating_add(bytes) > max_held && !(is_first && self.running.is_none()) {
                break;
            }
            self.wanted.push_back((bytes, range.clone()));
            self.fetching.push_back(self.shared.clone().open_queued(range.clone()));
            self.next_range += 1;
        }
    }

    /// Polls what is on its way, and queues what has come.
    fn poll_fetching(&mut self, cx: &mut Context<'_>) {
        if let Some(indexes) = &mut self.indexes {
            if indexes.as_mut().poll(cx).is_pending() {
                return;
            }
            self.indexes = None;
        }
        while let Poll::Ready(Some(opened)) = Pin::new(&mut self.again).poll_next(cx) {
            self.reopened.extend(opened.map_err(Failed::from).transpose());
        }
        if self.again.is_empty() {
            for reopened in self.reopened.drain(..).rev() {
                self.queue.push_front(reopened);
            }
        }
        loop {
            self.fetch_ahead();
            let Poll::Ready(Some(opened)) = Pin::new(&mut self.fetching).poll_next(cx) else {
                break;
            };
            if self.taken_over.take().is_some() {
                self.shared.source.take_kept();
            }
            let range = self.wanted.pop_front().map(|(_, range)| range);
            let failed = |error| {
                let postponed = range.filter(|_| is_too_large(&error));
                Failed { error, postponed }
            };
            self.queue.extend(opened.map_err(failed).transpose());
        }
    }

    /// Decodes what is queued, here or by the pool; says whether there was anything.
    fn start(&mut self) -> bool {
        let mut queue = VecDeque::new();
        while self.queue.front().is_some_and(Result::is_ok) {
            queue.extend(self.queue.pop_front().and_then(Result::ok));
        }
        if queue.is_empty() {
            return false;
        }
        let Some(pool) = &self.shared.pool else {
            let result = serial_wave(queue, self.size, self.shares_memory, &self.shared.cancelled);
            self.take(result);
            return true;
        };
        let (send, receive) = oneshot::channel();
        let shared = self.shared.clone();
        let (size, overlaps) = (self.size, !self.ready.is_empty());
        pool.spawn(move || {
            let wave = || parallel::wave_of(queue, size, overlaps, &shared.cancelled);
            // The receiver may be gone.
            let _ = send.send(catch_unwind(AssertUnwindSafe(wave)));
        });
        self.running = Some(receive);
        true
    }

    /// Takes the result of a wave.
    fn take(&mut self, result: WaveResult) {
        let WaveResult { batches, size, queue, again, failed } = result;
        self.ready.extend(batches);
        self.size = size;
        for queued in queue.into_iter().rev() {
            self.queue.push_front(Ok(queued));
        }
        if let Some(error) = failed {
            self.queue.push_front(Err(error.into()));
        }
        for rest in again {
            let shared = self.shared.clone();
            self.again.push_back(Box::pin(async move {
                let opened = shared.reopen(&rest).await?;
                Ok(opened.map(|row_group| QueuedRowGroup {
                    row_group,
                    is_new: true,
                    ignores_index: true,
                }))
            }));
        }
        self.depth = self.depth.saturating_mul(2).min(self.max_depth);
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            if self.lacks_memory() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.poll_fetching(cx);
            // Not sooner: at most two waves are held.
            if self.ready.is_empty()
                && let Some(running) = &mut self.running
            {
                let finished = ready!(Pin::new(running).poll(cx));
                self.running = None;
                match finished {
                    Ok(Ok(result)) => self.take(result),
                    Ok(Err(panic)) => resume_unwind(panic),
                    Err(gone) => return Poll::Ready(Err(dropped(gone))),
                }
                // There may be room for more now, or rows to be read again. They must be polled, or
                // the task would not be woken.
                continue;
            }
            // The pool works on the next wave while the caller works on this one.
            let has_room = self.size.may_overlap || self.ready.is_empty();
            let is_idle = self.running.is_none() && self.again.is_empty();
            if self.shared.pool.is_some() && is_idle && has_room {
                self.start();
            }
            if let Some(ReservedBatch { batch, .. }) = self.ready.pop_front() {
                self.shared.progress.gave(batch.num_rows());
                return Poll::Ready(Ok(Some(batch)));
            }
            if self.running.is_some() || (self.again.is_empty() && self.start()) {
                if self.running.is_none() && self.ready.is_empty() {
                    // A row group gave nothing, and the next may give nothing: other tasks come
                    // first.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                continue;
            }
            if !self.again.is_empty() {
                return Poll::Pending;
            }
            return match self.queue.pop_front() {
                Some(Err(Failed { postponed: Some(range), .. })) => {
                    // What is in front of it is given out, and holds no memory any more.
                    self.again.push_back(self.shared.clone().open_queued(range));
                    continue;
                }
                Some(Err(Failed { error, .. })) => Poll::Ready(Err(error)),
                Some(Ok(_)) => Poll::Ready(Ok(None)),
                None if self.fetching.is_empty() && self.indexes.is_none() => Poll::Ready(Ok(None)),
                None => Poll::Pending,
            };
        }
    }
}

/// What an engine may ask and say of a read: the engine's own docs are at
/// [`BatchStream`](crate::BatchStream).
#[cfg(feature = "engine")]
impl Streamed {
    pub(crate) fn is_fetched(&self) -> bool {
        let is_idle = self.fetching.is_empty() && self.again.is_empty() && self.indexes.is_none();
        let is_postponed = |it: &Result<_, Failed>| matches!(it, Err(e) if e.postponed.is_some());
        let has_all = self.next_range >= self.shared.ranges.len();
        self.done || (is_idle && has_all && !self.queue.iter().any(is_postponed))
    }

    pub(crate) fn fetch(&mut self, cx: &mut Context<'_>) {
        self.poll_fetching(cx);
    }

    pub(crate) fn fetch_small(&mut self, bytes: u64) {
        self.small = bytes;
    }

    pub(crate) fn hold_back(&mut self) {
        (self.depth, self.max_depth, self.small) = (1, 1, 0);
    }

    pub(crate) fn keep_fetched(&self, keep: bool) {
        match keep {
            true => self.shared.source.keep(RangeCache::default()),
            false => _ = self.shared.source.take_kept(),
        }
    }

    pub(crate) fn take_over(&mut self, other: Self) {
        let Some(kept) = other.shared.source.take_kept() else { return };
        // What it holds of the same budget is given back.
        drop(other);
        let budget = self.shared.plan.budget();
        if let Ok(memory) = budget.take_for("what was fetched ahead", kept.byte_len()) {
            self.shared.source.keep(kept);
            self.taken_over = Some(memory);
        }
    }

    pub(crate) fn share_memory(&mut self, with_other: bool) {
        self.shares_memory = with_other;
    }
}

impl Stream for Streamed {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let polled = self.poll_batch(cx).map(Result::transpose);
        // After an error there is nothing more.
        self.done = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // Requests end here. Decoding stops after the current leaf, and is not waited for.
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }
}

impl StreamState {
    /// Opens a row group, to be decoded.
    fn open_queued(self: Arc<Self>, range: RowRange) -> Fetching {
        Box::pin(async move {
            let opened = self.open(&range).await?;
            Ok(opened.map(|row_group| QueuedRowGroup {
                row_group,
                is_new: true,
                ignores_index: false,
            }))
        })
    }

    /// Opens a row group: with a filter, only what is left of it.
    async fn open(&self, range: &RowRange) -> Result<Option<RowGroup>> {
        self.drive(FilteredOpening::new(self.context(), range)?).await
    }

    /// Opens a row group whose index was found to be wrong while it was decoded.
    async fn reopen(&self, rest: &RowRange) -> Result<Option<RowGroup>> {
        self.drive(FilteredOpening::again(self.context(), rest)?).await
    }

    fn context(&self) -> OpenContext<'_> {
        let Self { source, plan, progress, filter_first, .. } = self;
        let filter_first = filter_first.as_ref();
        OpenContext { plan, progress, in_pieces: false, filter_first, gap: source.gap() }
    }

    /// Fetches what a row group needs until it is there.
    async fn drive(&self, opening: FilteredOpening<'_>) -> Result<Option<RowGroup>> {
        let mut step = OpenStep::More(opening);
        loop {
            step = match step {
                OpenStep::More(opening) => {
                    opening.check_memory()?;
                    let fetched = match opening.needs() {
                        [] => FetchedRanges::default(),
                        needs => {
                            let fetched = self.source.fetch(needs).await;
                            fetched.map_err(|e| e.at_row_group(opening.row_group()))?
                        }
                    };
                    self.progress.fetched(fetched.wanted);
                    opening.supply(fetched.bytes, fetched.read)?
                }
                OpenStep::Filter(task, after) => after.resume(self.filter(task).await)?,
                OpenStep::Done(row_group) => return Ok(row_group.map(|row_group| *row_group)),
            };
        }
    }

    /// The rows of a row group that pass the filter, found by the pool if there is one.
    async fn filter(&self, task: FilterTask) -> Result<RowSelection> {
        let cancelled = self.cancelled.clone();
        let Some(pool) = &self.pool else {
            let passed = task.run(&cancelled);
            // Other row groups, and other tasks, may want the thread before the next.
            yield_once().await;
            return passed;
        };
        let (send, receive) = oneshot::channel();
        pool.spawn(move || {
            let _ = send.send(catch_unwind(AssertUnwindSafe(|| task.run(&cancelled))));
        });
        match receive.await {
            Ok(Ok(passed)) => passed,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(gone) => Err(dropped(gone)),
        }
    }

    /// Fetches the indexes of the first row groups together, up to [`MAX_INDEXES`] bytes.
    async fn fetch_indexes(&self) {
        let (mut needs, mut bytes) = (Vec::new(), 0u64);
        let mut indexes = Vec::new();
        for range in &self.ranges {
            // An error in the metadata is given in its turn.
            let Ok(of_group) = self.plan.index_ranges(range) else { continue };
            let first = needs.len();
            needs.extend(of_group.indexes.iter().cloned().chain(of_group.dictionaries));
            bytes += needs[first..].iter().map(|need| need.end - need.start).sum::<u64>();
            if bytes > MAX_INDEXES {
                needs.truncate(first);
                break;
            }
            indexes.extend(of_group.indexes);
        }
        // Parts of a row group have the same. Those that are at hand are not held twice.
        needs.sort_by_key(|need| (need.start, need.end));
        needs.dedup();
        needs.retain(|need| !self.source.holds(need));
        if let Ok(fetched) = self.source.fetch(&needs).await {
            self.progress.fetched(fetched.wanted);
            for (need, bytes) in needs.iter().zip(fetched.bytes) {
                self.source.hold(need.start, bytes);
            }
        }
        if self.plan.wiring().loaded_indexes.is_some() {
            for index in &indexes {
                if let Some(bytes) = self.source.find(index) {
                    self.plan.keep_index(index.start, &bytes);
                }
            }
        }
    }
}

/// Is pending once, and wakes its task at once.
async fn yield_once() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Bytes of indexes that are fetched together, and held.
const MAX_INDEXES: u64 = 8 << 20;

#[cold]
fn dropped(gone: oneshot::Canceled) -> Error {
    Error::io("the pool has dropped its work", std::io::Error::other(gone))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int32Array};
    use futures_util::FutureExt;

    use super::*;
    use crate::AsyncReader;
    use crate::io::WriteSink;
    use crate::write::WriteOptions;
    use crate::writer::Writer;

    /// A read of the columns `names` of a file of 1000 row groups.
    fn streamed(names: &[&str]) -> Streamed {
        let column = Arc::new(Int32Array::from_iter_values(0..1000)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let options = WriteOptions::default().with_row_group_rows(1);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let file = bytes::Bytes::from(writer.into_inner().unwrap().1);
        let reader = AsyncReader::open_async(file.clone()).now_or_never().unwrap().unwrap();
        let reader = reader.project(names.iter().copied()).unwrap();
        let (plan, metadata) = (reader.plan().unwrap(), reader.metadata().clone());
        let source = Arc::new(file);
        Streamed::new(source, None, metadata, plan, None, Progress::default())
    }

    #[test]
    fn small_row_groups_are_opened_a_few_at_a_time_even_if_they_take_no_bytes() {
        for names in [&[][..], &["n"]] {
            let mut read = streamed(names);
            read.max_depth = 2;
            read.depth = 2;
            read.small = 1 << 20;
            read.fetch_ahead();
            assert_eq!(read.fetching.len(), MAX_SMALL, "{names:?}");
            let mut rows = 0;
            let mut cx = Context::from_waker(std::task::Waker::noop());
            loop {
                match Pin::new(&mut read).poll_next(&mut cx) {
                    Poll::Ready(Some(batch)) => rows += batch.unwrap().num_rows(),
                    Poll::Ready(None) => break,
                    Poll::Pending => {}
                }
                let opened = read.fetching.len() + read.queue.len();
                assert!(opened <= MAX_SMALL, "{opened} row groups, {names:?}");
            }
            assert_eq!(rows, 1000);
        }
    }
}
