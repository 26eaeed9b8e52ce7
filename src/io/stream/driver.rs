//! The asynchronous driver fetches row groups side by side for a [`Scan`], and decodes waves on a
//! pool, or on the thread that polls the stream.
//!
//! Requests run while the stream is polled; a thread of the runtime never blocks. As many row
//! groups are fetched at a time as fit a share of the memory. Requests go on while a wave is
//! decoded. The indexes of many row groups are fetched together.

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arrow_array::RecordBatch;
use bytes::Bytes;
use futures_channel::oneshot;
use futures_core::Stream;
use futures_core::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::source::{AsyncSource, CachedSource, FetchedRanges, FileEnd};
use crate::crypt::Decryption;
use crate::error::{Error, Result};
use crate::io::pool::Pool;
use crate::io::workers::PoolThreads;
use crate::limits::{Limits, Reservation};
use crate::range_cache::RangeCache;
use crate::read::{
    Failed, FilterFirst, FilterTask, Footer, Metadata, Next, OpenContext, OpenStep, Opened,
    Opening, Plan, Prefetch, Progress, ReservedBatch, RowGroupDecoder, RowRange, Scan, Step, Tail,
    Wave,
};

/// Reads the footer of a file, with one request if the guess of its length is right, which the
/// caller may know better; returns what was read of the end too.
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
    if let Some(keys) = keys {
        let footer = footer.retrieve_key(keys).await?.open(limits)?;
        footer.retrieve_keys(keys).await?;
        return Ok((footer, end));
    }
    Ok((footer.open(limits)?, end))
}

/// Loads the page indexes of these leaves with a few requests, whatever their number. Indexes that
/// are loaded already are not fetched again.
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

/// Reads a range, unless it is in the end of the file that was read with the footer.
///
/// # Errors
/// `Io`.
pub(crate) async fn read_range_async(
    source: &Arc<dyn AsyncSource>,
    end: Option<FileEnd>,
    range: Range<u64>,
) -> Result<Bytes> {
    let held = CachedSource::new(source.clone(), None);
    held.hold_end(end);
    let found = held.fetch(std::slice::from_ref(&range)).await?.bytes;
    found.into_iter().next().ok_or_else(|| Error::internal("a range was not read"))
}

/// Bytes after the footer: its length, and the magic number.
const TAIL_BYTES: u64 = 8;

/// The guess may cost a quarter of a request, because a wrong guess costs a whole one.
const GUESS_PART: u64 = 4;
/// Minimum and maximum of the guess, in bytes.
const SHORTEST_GUESS: u64 = 64 << 10;
const LONGEST_GUESS: u64 = 512 << 10;

/// The batches of a plan, fetched asynchronously, in order.
pub(crate) struct Streamed {
    shared: Arc<StreamState>,
    pub(crate) scan: Scan,
    /// The indexes of the first row groups, which are fetched before all else.
    indexes: Option<BoxFuture<'static, ()>>,
    /// Row groups that are being opened.
    opening: FuturesUnordered<BoxFuture<'static, OpenedRowGroup>>,
    /// The wave that the pool works on.
    running: Option<oneshot::Receiver<Finished>>,
    ready: VecDeque<ReservedBatch>,
    /// The memory of what was taken over, until the first row group is open.
    taken_over: Option<Reservation>,
    /// Whether another read holds memory of the same budget, which it can return.
    shares_memory: bool,
    done: bool,
}

/// The number of a row group, and the result of opening it.
type OpenedRowGroup = (usize, Result<Option<Box<RowGroupDecoder>>, Failed>);

/// A wave, and what came of it.
type Decoded = (Wave, Result<Vec<ReservedBatch>, Failed>);

type Finished = Result<Decoded, Box<dyn Any + Send>>;

struct StreamState {
    source: CachedSource,
    context: Arc<OpenContext>,
    /// Row groups of the plan, and parts of those that are large.
    ranges: Arc<[RowRange]>,
    pool: Option<Pool>,
    cancelled: AtomicBool,
}

/// Minimum latency of a source at which fetching is slow beside decoding, so that it pays to fetch
/// the columns of a filter first.
const MIN_FAR_LATENCY: Duration = Duration::from_millis(1);

/// Bytes of a large row group that are fetched at a time, if the budget allows.
const PART_BYTES: u64 = 64 << 20;

/// Bytes that are fetched at a time however little memory there is. If they do not fit, that is an
/// error.
const SMALLEST_PART: u64 = 64 << 10;

impl Streamed {
    /// The batches of `plan`, whose bytes come from `source`, decoded by `pool`, or by the thread
    /// that polls; `end` is the end of the file, if it was read, and `metadata` holds the page
    /// indexes that are loaded.
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
        // From near sources, reading the columns of the filter twice costs more than reading the
        // others.
        let is_far = source.latency().per_request >= MIN_FAR_LATENCY;
        let filter_first = if is_far { FilterFirst::new(&plan) } else { None };
        let ranges = parts(&plan);
        let wants_indexes = plan.options().filter.is_some()
            || ranges.len() > plan.ranges().len()
            || ranges.iter().any(|range| range.selection.is_some());
        // Without a pool, a poll decodes one batch.
        let threads = pool.as_ref().map_or(0, Pool::threads);
        let (prefetch, gap) = (Prefetch::many(&plan), source.gap());
        let context = OpenContext { plan, progress, in_pieces: false, filter_first, gap };
        let context = Arc::new(context);
        let scan = Scan::new(context.clone(), ranges.clone(), threads, prefetch);
        let cancelled = AtomicBool::new(false);
        let shared = Arc::new(StreamState { source, context, ranges, pool, cancelled });
        let of_indexes = shared.clone();
        let indexes = async move { of_indexes.fetch_indexes().await };
        Self {
            shared,
            scan,
            indexes: wants_indexes.then(|| -> BoxFuture<'static, ()> { Box::pin(indexes) }),
            opening: FuturesUnordered::new(),
            running: None,
            ready: VecDeque::new(),
            taken_over: None,
            shares_memory: false,
            done: false,
        }
    }

    /// Whether another read should return the memory that it holds of the same budget.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.shares_memory && self.scan.lacks_memory()
    }

    /// Whether memory is held that can be waited for.
    fn waits(&self) -> bool {
        !self.ready.is_empty() || self.shares_memory
    }

    /// Begins to open a row group.
    fn begin(&mut self, id: usize, opening: Opening) {
        let shared = self.shared.clone();
        self.opening.push(Box::pin(async move { (id, shared.open(opening).await) }));
    }

    /// Begins to open as many row groups as may be now, and takes what has come. `waits`: one for
    /// which there is no memory may wait for memory that is held.
    fn poll_opening(&mut self, cx: &mut Context<'_>, waits: bool) {
        if let Some(indexes) = &mut self.indexes {
            if indexes.as_mut().poll(cx).is_pending() {
                return;
            }
            self.indexes = None;
        }
        loop {
            while let Some((id, opening)) = self.scan.open_next(waits) {
                self.begin(id, opening);
            }
            let Poll::Ready(Some((id, opened))) = Pin::new(&mut self.opening).poll_next(cx) else {
                return;
            };
            if id == 0 && self.taken_over.take().is_some() {
                self.shared.source.take_kept();
            }
            self.scan.opened(id, opened);
        }
    }

    /// Takes what came of the wave that the pool worked on.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(running) = &mut self.running else { return Poll::Ready(Ok(())) };
        let finished = ready!(Pin::new(running).poll(cx));
        self.running = None;
        match finished {
            Ok(Ok((wave, found))) => self.ready.extend(self.scan.decoded(wave, found)),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(gone) => return Poll::Ready(Err(dropped(gone))),
        }
        Poll::Ready(Ok(()))
    }

    /// Lets the pool decode a wave, or decodes it here. False if it has no batches: the next wave
    /// may have none either, and other tasks may want the thread.
    fn decode(&mut self, mut wave: Wave) -> bool {
        let shared = self.shared.clone();
        let decode = move || {
            let found =
                PoolThreads { cancelled: &shared.cancelled, pieces: None }.decode(&mut wave);
            (wave, found)
        };
        let Some(pool) = &self.shared.pool else {
            let (wave, found) = decode();
            self.ready.extend(self.scan.decoded(wave, found));
            return !self.ready.is_empty();
        };
        let (send, receive) = oneshot::channel();
        pool.spawn(move || {
            // The receiver may be gone.
            let _ = send.send(catch_unwind(AssertUnwindSafe(decode)));
        });
        self.running = Some(receive);
        true
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            if self.lacks_memory() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.poll_opening(cx, self.waits());
            // Not sooner: at most two waves are held.
            if self.ready.is_empty() && self.running.is_some() {
                ready!(self.poll_running(cx))?;
                // There may be room for more now, which must be polled, or the task is not woken.
                continue;
            }
            // The pool works on the next wave while the caller works on this one.
            let is_free = self.running.is_none() && self.indexes.is_none();
            let begins = self.shared.pool.is_some() && self.scan.has_open();
            if is_free && (begins || self.ready.is_empty()) {
                match self.scan.next(self.waits())? {
                    Next::Open(id, opening) => {
                        self.begin(id, *opening);
                        // It must be polled, or nothing wakes the task.
                        continue;
                    }
                    Next::Decode(wave) => {
                        if !self.decode(wave) {
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        continue;
                    }
                    Next::Stop if self.ready.is_empty() => return Poll::Ready(Ok(None)),
                    Next::Wait if self.ready.is_empty() && self.lacks_memory() => continue,
                    Next::Wait | Next::Stop => {}
                }
            }
            let Some(ReservedBatch { batch, .. }) = self.ready.pop_front() else {
                return Poll::Pending;
            };
            self.shared.context.progress.gave(batch.num_rows());
            return Poll::Ready(Ok(Some(batch)));
        }
    }
}

/// The methods by which an engine controls a read; [`BatchStream`](crate::BatchStream) documents
/// them.
#[cfg_attr(not(feature = "engine"), allow(dead_code))]
impl Streamed {
    pub(crate) fn is_fetched(&self) -> bool {
        self.done || (self.indexes.is_none() && self.scan.is_fetched())
    }

    pub(crate) fn fetch(&mut self, cx: &mut Context<'_>) {
        // It is not the turn of this read: what has its turn holds memory, and gives it back.
        self.poll_opening(cx, true);
    }

    pub(crate) fn keep_fetched(&self, keep: bool) {
        match keep {
            true => self.shared.source.keep(RangeCache::default()),
            false => _ = self.shared.source.take_kept(),
        }
    }

    pub(crate) fn take_over(&mut self, other: Self) {
        let Some(kept) = other.shared.source.take_kept() else { return };
        // Returns its memory to the shared budget.
        drop(other);
        let budget = self.shared.context.plan.budget();
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
        // After a panic there is nothing more, nor after an error.
        self.done = true;
        let polled = self.poll_batch(cx).map(Result::transpose);
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

/// The row groups of a plan. Large ones are divided into parts, which are fetched one by one.
fn parts(plan: &Plan) -> Arc<[RowRange]> {
    let bytes = PART_BYTES.min(plan.budget().cap() / 8).min(plan.options().read_ahead.bytes);
    let bytes = bytes.max(SMALLEST_PART);
    let parts = |range: &RowRange| plan.parts(range, bytes).unwrap_or_else(|_| vec![range.clone()]);
    plan.ranges().iter().flat_map(parts).collect()
}

impl StreamState {
    /// Fetches what a row group needs until it is there.
    async fn open(
        self: Arc<Self>,
        opening: Opening,
    ) -> Result<Option<Box<RowGroupDecoder>>, Failed> {
        let mut step = Step::NeedsMore(opening);
        loop {
            step = match step {
                Step::NeedsMore(opening) => {
                    let fetched =
                        match opening.needs()? {
                            [] => FetchedRanges::default(),
                            needs => self.source.fetch(needs).await.map_err(|e| {
                                Failed::at_last(e.at_row_group(opening.row_group()))
                            })?,
                        };
                    self.context.progress.fetched(fetched.wanted);
                    opening.supply(fetched.bytes, fetched.read)?
                }
                Step::Done(Opened::Filter(task)) => self.clone().filter(*task).await?,
                Step::Done(Opened::RowGroup(row_group)) => return Ok(row_group),
            };
        }
    }

    /// Evaluates the filter of a row group, by the pool if there is one.
    async fn filter(self: Arc<Self>, task: FilterTask) -> Result<OpenStep, Failed> {
        let Some(pool) = &self.pool else {
            let step = task.run(&self.cancelled);
            // Other row groups, and other tasks, may want the thread before the next.
            yield_once().await;
            return step;
        };
        let (send, receive) = oneshot::channel();
        let shared = self.clone();
        pool.spawn(move || {
            let _ = send.send(catch_unwind(AssertUnwindSafe(|| task.run(&shared.cancelled))));
        });
        match receive.await {
            Ok(Ok(step)) => step,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(gone) => Err(Failed::at_last(dropped(gone))),
        }
    }

    /// Fetches the indexes of the first row groups together, up to [`MAX_INDEXES`] bytes.
    async fn fetch_indexes(&self) {
        let (mut needs, mut bytes) = (Vec::new(), 0u64);
        let mut indexes = Vec::new();
        for range in &*self.ranges {
            // An error in the metadata is given in its turn.
            let Ok(of_group) = self.context.plan.index_ranges(range) else { continue };
            let first = needs.len();
            needs.extend(of_group.indexes.iter().cloned().chain(of_group.dictionaries));
            bytes += needs[first..].iter().map(|need| need.end - need.start).sum::<u64>();
            if bytes > MAX_INDEXES {
                needs.truncate(first);
                break;
            }
            indexes.extend(of_group.indexes);
        }
        // Parts of a row group need the same ranges. Those that are in memory are not held twice.
        needs.sort_by_key(|need| (need.start, need.end));
        needs.dedup();
        needs.retain(|need| !self.source.holds(need));
        if let Ok(fetched) = self.source.fetch(&needs).await {
            self.context.progress.fetched(fetched.wanted);
            for (need, bytes) in needs.iter().zip(fetched.bytes) {
                self.source.hold(need.start, bytes);
            }
        }
        if self.context.plan.wiring().loaded_indexes.is_some() {
            for index in &indexes {
                if let Some(bytes) = self.source.find(index) {
                    self.context.plan.keep_index(index.start, &bytes);
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
fn dropped(_: oneshot::Canceled) -> Error {
    Error::cancelled("the pool's work on the read")
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int32Array};
    use futures_util::FutureExt;

    use super::*;
    use crate::AsyncReader;
    use crate::compress::Compression;
    use crate::format::Encoding;
    use crate::io::WriteSink;
    #[cfg(feature = "parallel")]
    use crate::predicate::Predicate;
    use crate::read::MAX_SMALL;
    use crate::write::WriteOptions;
    use crate::writer::Writer;

    /// A file of the numbers below `rows` in the column `n`, `per_group` to a row group.
    fn numbered(rows: i32, per_group: u64) -> bytes::Bytes {
        let column = Arc::new(Int32Array::from_iter_values(0..rows)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let options = WriteOptions::default().with_row_group_rows(per_group);
        let options = options
            .with_compression(Compression::Uncompressed)
            .with_column("n", |column| column.with_encoding(Encoding::Plain));
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        bytes::Bytes::from(writer.into_inner().unwrap().1)
    }

    fn opened(file: &bytes::Bytes) -> AsyncReader {
        AsyncReader::open_async(file.clone()).now_or_never().unwrap().unwrap()
    }

    /// The rows that a stream gives until its end.
    fn rows(mut stream: impl Stream<Item = Result<RecordBatch>> + Unpin) -> usize {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut rows = 0;
        loop {
            match Pin::new(&mut stream).poll_next(&mut cx) {
                Poll::Ready(Some(batch)) => rows += batch.unwrap().num_rows(),
                Poll::Ready(None) => return rows,
                Poll::Pending => std::thread::yield_now(),
            }
        }
    }

    /// A read of the columns `names` of a file of 1000 row groups.
    fn streamed(names: &[&str]) -> Streamed {
        let file = numbered(1000, 1);
        let reader = opened(&file).project(names.iter().copied()).unwrap();
        let (plan, metadata) = (reader.plan().unwrap(), reader.metadata().clone());
        let source = Arc::new(file);
        Streamed::new(source, None, metadata, plan, None, Progress::default())
    }

    #[test]
    fn a_large_file_gives_all_rows_by_the_threads_that_a_build_has() {
        let file = numbered(200_000, 1 << 20);
        assert!(file.len() > 256 << 10);
        assert_eq!(rows(opened(&file).stream().unwrap()), 200_000);
    }

    /// The read that has its turn holds the memory, for a while.
    #[test]
    #[cfg(feature = "engine")]
    fn a_row_group_fetched_ahead_waits_for_memory() {
        let file = numbered(100_000, 1 << 20);
        let reader = opened(&file).threads(1);
        let plan = reader.plan().unwrap();
        let budget = plan.budget().clone();
        let held = budget.take(usize::try_from(budget.cap() - budget.used()).unwrap()).unwrap();
        let mut ahead = reader.stream_plan(plan).unwrap();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for _ in 0..10 {
            ahead.fetch(&mut cx);
        }
        assert!(!ahead.is_fetched());
        drop(held);
        assert_eq!(rows(ahead), 100_000);
    }

    #[test]
    #[cfg(feature = "parallel")]
    fn after_a_panic_of_the_pool_a_stream_has_ended() {
        let file = numbered(100_000, 1 << 20);
        let filter = Predicate::function(["n"], |_| panic!("planted"));
        let mut stream = opened(&file).filter(filter).threads(2).stream().unwrap();
        let read = || while !matches!(rows(&mut stream), 0) {};
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
        assert_eq!(rows(stream), 0);
    }

    #[test]
    fn small_row_groups_are_opened_a_few_at_a_time_even_if_they_take_no_bytes() {
        for names in [&[][..], &["n"]] {
            let mut read = streamed(names);
            let mut cx = Context::from_waker(std::task::Waker::noop());
            read.scan.open_many(2, 1 << 20);
            while let Some((id, opening)) = read.scan.open_next(false) {
                read.begin(id, opening);
            }
            assert_eq!(read.opening.len(), MAX_SMALL, "{names:?}");
            let mut rows = 0;
            loop {
                match Pin::new(&mut read).poll_next(&mut cx) {
                    Poll::Ready(Some(batch)) => rows += batch.unwrap().num_rows(),
                    Poll::Ready(None) => break,
                    Poll::Pending => {}
                }
                let opened = read.scan.queued();
                assert!(opened <= MAX_SMALL, "{opened} row groups, {names:?}");
            }
            assert_eq!(rows, 1000);
        }
    }
}
