//! The parallel driver: waves of (row group × leaf) tasks on a rayon pool, given out in order.
//!
//! A window is the rows of one batch. A wave is as many windows, of as many row groups, as fit a
//! share of the memory budget. Its tasks are decoded by any free thread, the heaviest first. While
//! the caller works on the batches of one wave, the pool works on the next: so at most two waves
//! are held, and a row group larger than a wave is decoded window by window. A task that would keep
//! one thread busy when the others are done is split between pages. While a wave is decoded, the
//! row group that follows is fetched; all threads share the requests of a row group.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::blocking::RowGroupOpener;
use super::file_ranges::{FileRanges, in_pieces, next_batch};
use super::pool::Pool;
use super::progress::Progress;
use super::row_group_open::contradicts;
#[cfg(feature = "async")]
use super::serial_wave::{QueuedRowGroup, WaveResult, serial_wave};
use super::shares::{WaveTask, share_out};
use super::source::Source;
use super::wave::WaveSize;
use super::wave_retry::Retry;
use crate::error::{Error, Result};
use crate::read::{
    Batcher, DecodeStep, FilteredWindow, LeafBatch, Plan, ReservedBatch, RowGroup, Window,
    is_too_large,
};
use crate::trace;

/// The batches of a plan, decoded by a pool, in order.
pub(crate) struct Parallel {
    shared: Arc<Shared>,
    pool: Pool,
    ready: VecDeque<ReservedBatch>,
    /// The wave that the pool works on.
    running: Option<Receiver<Finished>>,
    /// What the next wave continues from; with the pool while a wave runs.
    state: Option<ReadState>,
}

struct Shared {
    opener: RowGroupOpener,
    cancelled: AtomicBool,
}

/// How far the read is.
struct ReadState {
    /// Waves so far.
    waves: u32,
    /// What a wave may take.
    size: WaveSize,
    /// Whether batches of the wave before are not given out yet, so that their memory is not free.
    overlaps: bool,
    next_range: usize,
    /// Row groups with windows left, which come before all others.
    open: VecDeque<RowGroup>,
    /// Whether the first of them is read without its page index, because that was found to be
    /// wrong.
    ignores_index: bool,
    /// The row group that is next, fetched ahead.
    ahead: Option<Result<Option<RowGroup>>>,
    /// The last of the plan's ranges that was tried to fetch ahead.
    ahead_tried: Option<usize>,
    /// Whether a row group may be fetched before its turn: not after memory ran out.
    may_fetch_ahead: bool,
}

/// The batches of a wave, perhaps none; `None` after the last.
type Batches = Result<Option<Vec<ReservedBatch>>>;

type Finished = std::thread::Result<(ReadState, Batches)>;

/// Maximum windows of one row group in a wave, however narrow its rows are.
const MAX_WINDOWS: u64 = 256;

/// Maximum windows of a wave that shows which columns of a filter are better decoded later.
const WINDOWS_TO_LEARN: u64 = 4;

/// With a filter and a limit, each wave is this many times as long as the one before, because one
/// window may be enough, or all may be needed.
const GROWTH: u64 = 4;

impl ReadState {
    fn new(size: WaveSize) -> Self {
        Self {
            waves: 0,
            size,
            overlaps: false,
            next_range: 0,
            open: VecDeque::new(),
            ignores_index: false,
            ahead: None,
            ahead_tried: None,
            may_fetch_ahead: true,
        }
    }

    /// Whether the next row group is fetched during a wave of `parts`: what they leave is less than
    /// `wave_bytes`.
    fn fetches_ahead(&self, wave_bytes: u64, parts: &[Part]) -> bool {
        let left = parts.last().map_or(u64::MAX, |part| part.row_group.bytes_left());
        // If there was no memory for it, it is tried again when the row group before it ends.
        let is_tried = self.ahead_tried == Some(self.next_range) && left > 0;
        let is_there = self.ahead.is_some() || !self.open.is_empty();
        self.may_fetch_ahead && left < wave_bytes && !is_there && !is_tried
    }

    /// Frees the memory of the row group that was fetched before its turn, and fetches none so any
    /// more, because memory ran out. Says whether there was one.
    fn drop_ahead(&mut self) -> bool {
        self.may_fetch_ahead = false;
        matches!(self.ahead.take(), Some(Ok(Some(_))))
    }
}

impl Parallel {
    /// The batches of `plan`, whose bytes come from `source`, decoded by `pool`.
    pub(crate) fn new(source: Arc<dyn Source>, plan: Plan, pool: Pool, progress: Progress) -> Self {
        let size = WaveSize::new(&plan, pool.threads());
        let cancelled = AtomicBool::new(false);
        let opener = RowGroupOpener::new(source, plan, progress).side_by_side();
        let shared = Arc::new(Shared { opener, cancelled });
        let mut parallel = Self {
            shared,
            pool,
            ready: VecDeque::new(),
            running: None,
            state: Some(ReadState::new(size)),
        };
        parallel.start();
        parallel
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// `Io`, or whatever is wrong with the data; rows before the fault have been given.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(ReservedBatch { batch, .. }) = self.ready.pop_front() {
                self.shared.opener.progress.gave(batch.num_rows());
                return Ok(Some(batch));
            }
            if self.running.is_none() {
                self.start();
            }
            let Some(running) = self.running.take() else {
                return Ok(None);
            };
            let (state, batches) = match wait(&running, &self.pool) {
                Ok(finished) => finished,
                Err(panic) => resume_unwind(panic),
            };
            let Some(batches) = batches? else { return Ok(None) };
            let may_overlap = state.size.may_overlap;
            self.state = Some(state);
            self.ready = batches.into();
            if may_overlap {
                self.start();
            }
        }
    }

    /// Gives the next wave to the pool.
    fn start(&mut self) {
        let Some(mut state) = self.state.take() else {
            return;
        };
        state.overlaps = !self.ready.is_empty();
        let shared = self.shared.clone();
        let (send, receive) = sync_channel(1);
        self.pool.spawn(move || {
            let finished = catch_unwind(AssertUnwindSafe(|| {
                let batches = wave(&shared, &mut state);
                (state, batches)
            }));
            // The receiver may be gone.
            let _ = send.send(finished);
        });
        self.running = Some(receive);
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        if let Some(running) = self.running.take() {
            // Waits, so that no work goes on after the read: a task that runs is at most one leaf
            // of one wave.
            let _ = wait(&running, &self.pool);
        }
    }
}

fn wait(running: &Receiver<Finished>, pool: &Pool) -> Finished {
    // A thread of the pool that waits must work meanwhile, or a pool of one would wait for itself.
    while pool.help() {
        match running.try_recv() {
            Ok(finished) => return finished,
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    running.recv().unwrap_or_else(|gone| Err(Box::new(gone)))
}

/// The windows of one row group in a wave.
struct Part {
    row_group: RowGroup,
    windows: Vec<Window>,
}

/// A part of the rows of a row group, as an estimate of the work that its tasks are.
#[derive(Clone, Copy)]
struct RowFraction {
    rows: u64,
    /// Of the row group.
    all: u64,
}

impl RowFraction {
    /// About how much work it is of a task that is `cost` for all rows.
    fn of(self, cost: u64) -> u64 {
        let cost = u128::from(cost) * u128::from(self.rows) / u128::from(self.all.max(1));
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

impl Part {
    /// What the windows are of the row group.
    fn fraction(&self) -> RowFraction {
        let rows = self.windows.iter().map(|window| window.rows() as u64).sum();
        RowFraction { rows, all: self.row_group.rows() }
    }

    /// Goes back to the first of the windows, with all pages fetched.
    fn reopen(&mut self, shared: &Shared) -> Result<()> {
        let Some(first) = self.windows.first() else { return Ok(()) };
        let rest = self.row_group.rest_with(first);
        self.row_group.free();
        let Some(row_group) = shared.opener.reopen(&rest)? else {
            self.windows.clear();
            return Ok(());
        };
        self.row_group = row_group;
        // Without indexes, more rows are left. All windows are taken, because only the last row
        // group of a wave may have windows left.
        let filtered = shared.opener.plan.options().filter.is_some();
        let windows = if filtered { usize::MAX } else { self.windows.len() };
        self.windows = self.row_group.windows(windows);
        Ok(())
    }
}

/// Decodes as many windows as a wave may hold; `None` if none are left.
fn wave(shared: &Shared, state: &mut ReadState) -> Batches {
    let options = shared.opener.plan.options();
    let windows = match (&options.filter, options.limit) {
        (Some(_), Some(_)) => GROWTH.saturating_pow(state.waves),
        _ => u64::MAX,
    };
    state.waves = state.waves.saturating_add(1);
    if let Some(batches) = careful_batch(shared, state)? {
        return Ok(Some(batches));
    }
    let mut parts = match gather(state.size, windows, || shared.next(state)) {
        Err(e) if state.overlaps && is_too_large(&e) => {
            state.size.may_overlap = false;
            return Ok(Some(Vec::new()));
        }
        parts => parts?,
    };
    if parts.is_empty() {
        return Ok(None);
    }
    let pieces = shared.opener.pieces.as_ref();
    split(&mut parts, pieces)?;
    // Where a few windows may be enough, none is fetched before it is its turn.
    let wave_bytes = if windows == u64::MAX { state.size.bytes.max(1) } else { 1 };
    let fetches_ahead = state.fetches_ahead(wave_bytes, &parts);
    let (found, ahead) = rayon::join(
        || batches(&shared.cancelled, pieces, &mut parts),
        || if fetches_ahead { fetch_ahead(shared, state.next_range) } else { None },
    );
    if fetches_ahead {
        state.ahead_tried = Some(state.next_range);
        state.ahead = ahead;
    }
    let found = match found {
        Err(e) if contradicts(&e) => {
            // Without page indexes and without splits, the pages are read as they come.
            parts.iter_mut().try_for_each(|part| part.reopen(shared))?;
            batches(&shared.cancelled, pieces, &mut parts)
        }
        found => found,
    };
    let found = match found {
        Err(e) if is_too_large(&e) => {
            let retry = match state.drop_ahead() {
                true => Retry::InWaves,
                false => shrink(&mut state.size, &e, &parts, state.overlaps),
            };
            for row_group in rewound(parts, retry).into_iter().rev() {
                state.open.push_front(row_group);
            }
            return Ok(Some(Vec::new()));
        }
        found => found?,
    };
    let last = unfinished(parts);
    if let Some(row_group) = last {
        state.open.push_front(row_group);
    }
    Ok(Some(found))
}

/// The row group that is not decoded to its end: only the last one can have windows left.
fn unfinished(mut parts: Vec<Part>) -> Option<RowGroup> {
    let Part { mut row_group, windows } = parts.pop()?;
    row_group.widen(&windows);
    (!row_group.is_done()).then_some(row_group)
}

/// After a wave failed, makes the next ones smaller.
fn shrink(size: &mut WaveSize, error: &Error, parts: &[Part], overlapped: bool) -> Retry {
    let windows = parts.iter().map(|part| part.windows.len()).sum();
    let is_overweight = |part: &Part| {
        let batch_bytes = part.row_group.plan().batch_bytes();
        part.windows.iter().any(|window| window.is_overweight(batch_bytes))
    };
    size.shrink(error, windows, overlapped, parts.iter().any(is_overweight))
}

/// The row groups of a wave, to be read again from where it began.
fn rewound(parts: Vec<Part>, retry: Retry) -> Vec<RowGroup> {
    let mut row_groups = Vec::with_capacity(parts.len());
    for Part { mut row_group, windows } in parts {
        if let Some(first) = windows.first() {
            match retry {
                Retry::InWaves => row_group.restart_at(first),
                Retry::InBatches => row_group.restart_carefully(first),
            }
        }
        row_groups.push(row_group);
    }
    row_groups
}

/// The next batch of the first open row group, if its batches are made one at a time. No batch if
/// there is memory for it only after the batches that wait are given out; `None` if no row group is
/// read so.
fn careful_batch(shared: &Shared, state: &mut ReadState) -> Batches {
    while let Some(row_group) = state.open.front_mut().filter(|first| first.is_careful()) {
        let rest = row_group.rest();
        match next_batch(row_group, shared.opener.pieces.as_ref()) {
            Ok(Some(batch)) => return Ok(Some(vec![batch])),
            Ok(None) => {
                state.open.pop_front();
                state.ignores_index = false;
            }
            Err(e) if contradicts(&e) && !state.ignores_index => {
                state.open.pop_front();
                state.ignores_index = true;
                if let Some(row_group) = shared.opener.reopen(&rest)? {
                    state.open.push_front(row_group);
                }
            }
            Err(e) if is_too_large(&e) && state.overlaps => {
                state.size.may_overlap = false;
                return Ok(Some(Vec::new()));
            }
            Err(e) if is_too_large(&e) && state.drop_ahead() => return Ok(Some(Vec::new())),
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// The batches of the windows of all parts: those that have rows.
fn batches(
    cancelled: &AtomicBool,
    pieces: Option<&FileRanges>,
    parts: &mut [Part],
) -> Result<Vec<ReservedBatch>> {
    let _span = trace::decode(parts.first().map_or(0, |part| part.row_group.rest().row_group));
    let batchers: Vec<_> = parts.iter().map(|part| part.row_group.batcher()).collect();
    let windows: Vec<_> = parts.iter().map(|part| part.windows.clone()).collect();
    let mut filtered: Vec<Vec<FilteredWindow>> = windows
        .into_iter()
        .map(|windows| windows.into_iter().map(FilteredWindow::new).collect())
        .collect();
    let stages = filtered.iter().flatten().map(|window| window.rest().filter_stages()).max();
    for stage in 0..stages.unwrap_or_default() {
        let leaves = decode(cancelled, pieces, parts, DecodeStep::Filter(stage), &filtered)?;
        let windows = filtered.iter_mut().zip(leaves).zip(&batchers);
        let windows: Vec<_> = windows
            .flat_map(|((windows, leaves), batcher)| {
                windows
                    .iter_mut()
                    .zip(leaves)
                    .map(move |(window, leaves)| (batcher, window, leaves))
            })
            .filter(|(_, window, _)| {
                window.rest().rows() > 0 && stage < window.rest().filter_stages()
            })
            .collect();
        let apply_filter = |(batcher, window, leaves): (&Batcher, &mut FilteredWindow, _)| {
            batcher.apply_filter(window, leaves)
        };
        // Without a filter there is nothing to do here.
        match parts.iter().any(|part| part.row_group.is_filtered()) {
            true => windows.into_par_iter().try_for_each(apply_filter)?,
            false => windows.into_iter().try_for_each(apply_filter)?,
        }
    }
    let late = decode(cancelled, pieces, parts, DecodeStep::Output, &filtered)?;
    let windows = filtered.into_iter().zip(late).zip(&batchers);
    let windows: Vec<_> = windows
        .flat_map(|((windows, leaves), batcher)| {
            windows.into_iter().zip(leaves).map(move |(window, leaves)| (batcher, window, leaves))
        })
        .filter(|(_, window, _)| window.rest().rows() > 0)
        .collect();
    windows
        .into_par_iter()
        .map(|(batcher, mut window, leaves)| batcher.batch(&mut window, leaves))
        .collect()
}

impl Shared {
    /// The row group that a wave goes on with; `None` after the last.
    fn next(&self, state: &mut ReadState) -> Result<Option<RowGroup>> {
        if let Some(row_group) = state.open.pop_front() {
            state.ignores_index = false;
            return Ok(Some(row_group));
        }
        while !self.cancelled.load(Ordering::Relaxed)
            && let Some(range) = self.opener.plan.ranges().get(state.next_range)
        {
            let opened = match state.ahead.take() {
                // There may be memory for it now.
                Some(Err(e)) if is_too_large(&e) => self.opener.open(range)?,
                Some(row_group) => row_group?,
                None => self.opener.open(range)?,
            };
            state.next_range += 1;
            if opened.is_some() {
                return Ok(opened);
            }
        }
        Ok(None)
    }
}

/// Decodes as much of the queue as a wave may hold; `overlaps` says whether batches of the wave
/// before it wait.
#[cfg(feature = "async")]
pub(super) fn wave_of(
    queue: VecDeque<QueuedRowGroup>,
    mut size: WaveSize,
    overlaps: bool,
    cancelled: &AtomicBool,
) -> WaveResult {
    if queue.front().is_some_and(|first| first.row_group.is_careful()) {
        return serial_wave(queue, size, overlaps, cancelled);
    }
    let mut result = WaveResult::of(queue, size);
    let mut ignores_index = None;
    let gathered = gather(size, u64::MAX, || {
        // A wave has only row groups that are all read with their index, or all without, because
        // after an error they are read again together.
        let goes_along = result.queue.front().is_some_and(|next| {
            *ignores_index.get_or_insert(next.ignores_index) == next.ignores_index
        });
        let next = goes_along.then(|| result.queue.pop_front()).flatten();
        Ok(next.map(|mut next| {
            if next.ignores_index {
                next.row_group.forbid_splits();
            }
            next.row_group
        }))
    });
    let found = gathered.and_then(|mut parts| {
        split(&mut parts, None)?;
        let found = batches(cancelled, None, &mut parts);
        Ok((parts, found))
    });
    let (parts, found) = match found {
        Ok(found) => found,
        Err(e) => return WaveResult { failed: Some(e), ..result },
    };
    match found {
        Ok(batches) => {
            result.batches = batches;
            let last = unfinished(parts);
            if let (Some(row_group), Some(ignores_index)) = (last, ignores_index) {
                result.queue.push_front(QueuedRowGroup { row_group, is_new: false, ignores_index });
            }
        }
        Err(e) if is_too_large(&e) => {
            let retry = shrink(&mut size, &e, &parts, overlaps);
            result.size = size;
            let ignores_index = ignores_index.expect("a part was taken");
            for row_group in rewound(parts, retry).into_iter().rev() {
                let is_new = false;
                result.queue.push_front(QueuedRowGroup { row_group, is_new, ignores_index });
            }
        }
        Err(e) if contradicts(&e) && ignores_index != Some(true) => {
            let first = |part: &Part| Some(part.row_group.rest_with(part.windows.first()?));
            result.again = parts.iter().filter_map(first).collect();
        }
        Err(e) => result.failed = Some(e),
    }
    result
}

/// Takes row groups, each perhaps begun, until the wave is full, or has as many windows as are
/// wanted. A wave has at least one window, however small it is, unless no row group is left.
fn gather(
    size: WaveSize,
    mut windows_left: u64,
    mut next: impl FnMut() -> Result<Option<RowGroup>>,
) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut bytes = 0u64;
    while (parts.is_empty() || bytes < size.bytes) && windows_left > 0 {
        let mut row_group = match next() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            // What was taken is decoded first. Giving it out frees memory.
            Err(e) if !parts.is_empty() && is_too_large(&e) => break,
            Err(e) => return Err(e),
        };
        if row_group.is_to_learn() {
            windows_left = windows_left.min(WINDOWS_TO_LEARN);
        }
        let left = size.bytes.saturating_sub(bytes);
        let batches = (left / row_group.batch_bytes().max(1)).clamp(1, MAX_WINDOWS);
        let batches = batches.min(windows_left);
        let windows = row_group.windows(usize::try_from(batches).expect("at most MAX_WINDOWS"));
        bytes = bytes.saturating_add(row_group.batch_bytes().saturating_mul(windows.len() as u64));
        windows_left -= windows.len() as u64;
        let done = row_group.is_done();
        parts.push(Part { row_group, windows });
        if !done {
            break;
        }
    }
    Ok(parts)
}

/// Fetches a row group before its turn, if reading takes time and there is room for it.
fn fetch_ahead(shared: &Shared, next_range: usize) -> Option<Result<Option<RowGroup>>> {
    let RowGroupOpener { plan, source, .. } = &shared.opener;
    let budget = plan.budget();
    let max_held = (budget.cap() / 2).saturating_sub(budget.used());
    let useful = !source.in_memory() && !shared.cancelled.load(Ordering::Relaxed);
    let range = plan.ranges().get(next_range).filter(|_| useful && max_held > 0)?;
    // What is wrong with it comes to light in its turn.
    let wanted = plan.row_group(range).ok()?.chunk_bytes();
    (wanted <= max_held).then(|| shared.opener.open(range))
}

/// Splits the tasks that would keep one thread busy when the others are done.
fn split(parts: &mut [Part], pieces: Option<&FileRanges>) -> Result<()> {
    let threads = rayon::current_num_threads();
    let mut wave = Vec::new();
    for part in &mut *parts {
        let (fraction, windows) = (part.fraction(), part.windows.len());
        let may_split = part.row_group.may_split();
        wave.extend(part.row_group.tasks().iter().map(|task| {
            let (of_chunk, shares) = (task.work(), task.shares());
            let may_split = may_split && task.may_split();
            let max_shares = if may_split { threads.min(windows) } else { shares };
            let (cost, entry) = (fraction.of(of_chunk.rows), of_chunk.entry);
            WaveTask { cost, entry, windows, shares, max_shares }
        }));
    }
    share_out(&mut wave, threads);
    let tasks = parts.iter_mut().flat_map(|part| part.row_group.tasks());
    for (task, WaveTask { shares, .. }) in tasks.zip(wave) {
        if shares > task.shares() {
            in_pieces(pieces, |given| task.split(shares, given)).map_err(|e| task.place(e))?;
        }
    }
    Ok(())
}

/// The decoded leaves of each window of each part.
type Decoded = Vec<Vec<Vec<LeafBatch>>>;

/// Decodes the tasks of the parts that come in this step, the heaviest first. Windows without rows
/// are left out.
fn decode(
    cancelled: &AtomicBool,
    pieces: Option<&FileRanges>,
    parts: &mut [Part],
    step: DecodeStep,
    windows: &[Vec<FilteredWindow>],
) -> Result<Decoded> {
    struct DecodeJob<'a> {
        part: usize,
        leaf: usize,
        cost: u64,
        decoder: &'a mut crate::read::ColumnDecoder,
        /// Which window of the part, the window, and whether the row group ends with it.
        windows: Vec<(usize, &'a Window, bool)>,
    }
    let mut jobs = Vec::new();
    for (part, (Part { row_group, .. }, windows)) in parts.iter_mut().zip(windows).enumerate() {
        let windows: Vec<&Window> = windows.iter().map(FilteredWindow::rest).collect();
        let ends: Vec<bool> = windows.iter().map(|window| row_group.ends_with(window)).collect();
        let all_rows = row_group.rows();
        for (leaf, task) in row_group.tasks().iter_mut().enumerate() {
            let cost = task.work().rows;
            let wanted = |(i, window)| {
                let wanted = task.is_wanted(step, window) && window.rows() > 0;
                wanted.then(|| (i, window, ends[i]))
            };
            let all: Vec<_> = windows.iter().copied().enumerate().map(wanted).collect();
            if all.iter().all(Option::is_none) {
                continue;
            }
            let decoders = task.parts()?;
            let n = decoders.len();
            for (i, decoder) in decoders.iter_mut().enumerate() {
                let (first, end) = (windows.len() * i / n, windows.len() * (i + 1) / n);
                let windows: Vec<_> = all[first..end].iter().flatten().copied().collect();
                if !windows.is_empty() {
                    let rows = windows.iter().map(|(_, window, _)| window.rows() as u64).sum();
                    let cost = RowFraction { rows, all: all_rows }.of(cost);
                    jobs.push(DecodeJob { part, leaf, cost, decoder, windows });
                }
            }
        }
    }
    // The heaviest first, each to the thread that is free first: so all end at about the same time.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.cost));
    let threads = rayon::current_num_threads().min(jobs.len());
    let queue = Mutex::new(jobs.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let decode = |job: DecodeJob<'_>| -> Result<_> {
        let batches = job.windows.iter().map(|&(i, window, ends)| {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::usage("the read was cancelled"));
            }
            let decoder = &mut *job.decoder;
            let decoded = in_pieces(pieces, |given| decoder.decode(window, ends, given));
            Ok((i, decoded.map_err(|e| decoder.place(e))?))
        });
        Ok((job.part, job.leaf, batches.collect::<Result<Vec<_>>>()?))
    };
    let by_thread = (0..threads).into_par_iter().with_max_len(1).map(|_| {
        let mut decoded = Vec::new();
        while let Some(job) = next() {
            decoded.push(decode(job)?);
        }
        Ok(decoded)
    });
    let mut decoded: Vec<_> =
        by_thread.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    decoded.sort_by_key(|(part, leaf, _)| (*part, *leaf));
    // From leaves of windows to windows of leaves.
    let mut out: Decoded =
        windows.iter().map(|windows| windows.iter().map(|_| Vec::new()).collect()).collect();
    for (part, _, batches) in decoded {
        for (window, batch) in batches {
            out[part][window].push(batch);
        }
    }
    Ok(out)
}
