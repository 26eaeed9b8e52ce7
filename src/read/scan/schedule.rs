//! [`Scan`] decides which row groups of a plan are opened next, which are decoded next, and what is
//! retried in another way.
//!
//! A driver asks for the [`Next`] thing to do, does it, and reports the result. It may do several
//! things at a time: row groups are decoded in the order of the read, whatever order their bytes
//! come in.
//!
//! ```text
//!             ┌──────────── without the index that its pages contradict ◄──┐
//!             ▼                                                            │
//!  range ─ Planned ─ Opening ─ Open ─ part of a wave ─ decoded ─ batches ──┤
//!                       │ ▲      ▲                                         │
//!             no memory ▼ │      └─────── rows are left; or less at a time ┘
//!                    Postponed, until its turn
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use super::filter_first::{OpenContext, Opening};
use super::wave::{ScanEntry, Wave, WaveGroup, WaveSize};
use crate::bytes::saturated;
use crate::error::{Error, Result};
use crate::read::batch::ReservedBatch;
use crate::read::plan::{Plan, RowRange};
use crate::read::retry::{Failed, Retry};
use crate::read::row_group::RowGroupDecoder;

/// The state of a read, apart from what its driver does at the moment.
pub(crate) struct Scan {
    context: Arc<OpenContext>,
    /// The row groups of the plan, or parts of them.
    ranges: Arc<[RowRange]>,
    next_range: usize,
    /// The row groups that are begun and not completely decoded, in order, without those of the
    /// wave that is being decoded.
    queue: VecDeque<Queued>,
    prefetch: Prefetch,
    /// Threads that decode a wave; 0 if each batch is made by itself.
    threads: usize,
    size: WaveSize,
    /// Waves so far.
    waves: u32,
    is_decoding: bool,
}

/// A row group, or a part of one, that is not decoded to its end.
struct Queued {
    entry: ScanEntry,
    state: RowGroupState,
}

/// How far a row group is.
enum RowGroupState {
    /// It is to be opened.
    Planned,
    /// It is being opened; about `bytes` bytes are fetched for it. `alone`: no other memory is held
    /// that it could wait for.
    Opening { bytes: u64, alone: bool },
    /// Its bytes are there.
    Open(Box<RowGroupDecoder>),
    /// There was no memory for it. There may be in its turn.
    Postponed,
    /// It cannot be read.
    Failed(Error),
}

/// How far before their turn row groups are opened.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "async"), allow(dead_code))]
pub(crate) enum Prefetch {
    /// Only when a wave has capacity for them.
    Never,
    /// The next one also while a wave is decoded after which less than a wave is left.
    One,
    /// As many as there is memory for.
    Many {
        /// Maximum row groups that are fetched or wait.
        depth: usize,
        /// Maximum that `depth` grows to.
        max_depth: usize,
        /// Up to [`MAX_SMALL`] row groups may, as long as no more bytes than these are held.
        small: u64,
    },
}

/// The next action of a driver.
pub(crate) enum Next {
    /// Opens a row group: [`Scan::opened`] takes what came of it, by its number.
    Open(usize, Box<Opening>),
    /// Decodes a wave: [`Scan::decoded`] takes what came of it.
    Decode(Wave),
    /// Waits for an action in progress, or until batches are returned.
    Wait,
    /// Nothing more.
    Stop,
}

/// Maximum windows of one row group in a wave, however narrow its rows are.
const MAX_WINDOWS: u64 = 256;

/// Maximum row groups of a wave, because each that is opened is compared with those before it.
const MAX_GROUPS: usize = 1024;

/// Maximum windows of a wave that shows which columns of a filter are better decoded later.
const WINDOWS_TO_LEARN: u64 = 4;

/// With a filter and a limit, each wave is this many times as long as the one before, because one
/// window may be enough, or all may be needed.
const GROWTH: u64 = 4;

/// Row groups that are opened at a time at first, where a limit may soon be reached.
const DEPTH_AT_FIRST: usize = 2;

/// Maximum number of small row groups that are opened at a time: without columns they take no
/// bytes, and a file can have very many of them.
pub(crate) const MAX_SMALL: usize = 64;

impl Prefetch {
    /// As many row groups as the options of a plan allow, few at first if a limit may soon be
    /// reached.
    #[cfg_attr(not(feature = "async"), allow(dead_code))]
    pub(crate) fn many(plan: &Plan) -> Self {
        let max_depth = plan.options().read_ahead.row_groups.max(1);
        let depth = if may_end_soon(plan) { DEPTH_AT_FIRST.min(max_depth) } else { max_depth };
        Self::Many { depth, max_depth, small: 0 }
    }
}

/// Whether a few rows may be enough.
fn may_end_soon(plan: &Plan) -> bool {
    plan.options().filter.is_some() && plan.options().limit.is_some()
}

impl Scan {
    /// A read of `ranges`, whose waves `threads` threads decode; with 0 threads each batch is made
    /// by itself.
    pub(crate) fn new(
        context: Arc<OpenContext>,
        ranges: Arc<[RowRange]>,
        threads: usize,
        prefetch: Prefetch,
    ) -> Self {
        let size = WaveSize::new(&context.plan, threads);
        Self {
            context,
            ranges,
            next_range: 0,
            queue: VecDeque::new(),
            prefetch,
            threads,
            size,
            waves: 0,
            is_decoding: false,
        }
    }

    /// Returns the next action. `waits` says whether memory is held by batches that are not
    /// returned yet, or by another read that can return it.
    ///
    /// # Errors
    /// Why the next row group cannot be read. Nothing comes after it.
    pub(crate) fn next(&mut self, waits: bool) -> Result<Next> {
        if let Some((id, opening)) = self.open_next(waits) {
            return Ok(Next::Open(id, Box::new(opening)));
        }
        if self.is_decoding {
            return Ok(Next::Wait);
        }
        let has_room = self.size.may_overlap || !waits;
        match self.queue.front().map(|first| &first.state) {
            None => Ok(Next::Stop),
            Some(RowGroupState::Open(_)) if has_room => Ok(Next::Decode(self.gather(waits))),
            Some(RowGroupState::Failed(_)) => match self.queue.pop_front() {
                Some(Queued { state: RowGroupState::Failed(error), .. }) => Err(error),
                _ => Ok(Next::Wait),
            },
            Some(_) => Ok(Next::Wait),
        }
    }

    /// The next row group to be opened, if one may be now: see [`Scan::next`].
    pub(crate) fn open_next(&mut self, waits: bool) -> Option<(usize, Opening)> {
        let is_idle = !waits && !self.is_decoding;
        loop {
            let first = self.queue.front().map(|first| &first.state);
            let (at, bytes) = match (first, self.prefetch) {
                (Some(RowGroupState::Postponed), _) if is_idle => (0, 0),
                (_, Prefetch::Never | Prefetch::One) if self.is_decoding => return None,
                // There may be memory for it now, beside the batches that wait to be returned.
                (Some(RowGroupState::Postponed), Prefetch::Never | Prefetch::One) => {
                    if !self.size.may_overlap {
                        return None;
                    }
                    (0, 0)
                }
                (_, Prefetch::Never | Prefetch::One) => (self.missing_of_wave()?, 0),
                (_, Prefetch::Many { .. }) => self.planned().or_else(|| self.another())?,
            };
            if let Some(opening) = self.open(at, is_idle && at == 0, bytes) {
                return Some(opening);
            }
        }
    }

    /// The row group that is opened while `wave` is decoded, if its turn comes soon.
    pub(crate) fn open_beside(&mut self, wave: &Wave) -> Option<(usize, Opening)> {
        let left = wave.bytes_left();
        // Where a few windows may be enough, none is fetched before it is its turn.
        let is_near = match may_end_soon(&self.context.plan) {
            true => left == 0,
            false => left < self.size.bytes.max(1),
        };
        let range = match (self.prefetch, self.queue.front()) {
            (Prefetch::One, None) if is_near => self.ranges.get(self.next_range)?,
            // There was no memory for it before. Now its turn has come.
            (Prefetch::One, Some(Queued { entry, state: RowGroupState::Postponed }))
                if left == 0 =>
            {
                &entry.range
            }
            _ => return None,
        };
        let budget = self.context.plan.budget();
        let max_held = (budget.cap() / 2).saturating_sub(budget.used());
        // A fault is reported in its turn.
        let wanted = self.context.plan.row_group(range).ok()?.chunk_bytes();
        if max_held == 0 || wanted > max_held {
            return None;
        }
        if self.queue.is_empty() {
            self.begin();
        }
        self.open(0, false, wanted)
    }

    /// Takes what came of a row group that was opened.
    pub(crate) fn opened(
        &mut self,
        id: usize,
        opened: Result<Option<Box<RowGroupDecoder>>, Failed>,
    ) {
        let Ok(at) = self.queue.binary_search_by_key(&id, |queued| queued.entry.id) else { return };
        let failed = match opened {
            Err(failed) => failed,
            Ok(None) => {
                self.queue.remove(at);
                return;
            }
            Ok(Some(mut row_group)) => {
                let queued = &mut self.queue[at];
                if queued.entry.ignores_index {
                    row_group.forbid_splits();
                }
                queued.state = RowGroupState::Open(row_group);
                return;
            }
        };
        let alone = matches!(self.queue[at].state, RowGroupState::Opening { alone: true, .. });
        let may_wait = failed.is_too_large() && (!alone || self.drop_ahead());
        if may_wait
            && !alone
            && !self.is_decoding
            && !matches!(self.prefetch, Prefetch::Many { .. })
        {
            // There is none for it beside the batches that wait to be returned.
            self.size.may_overlap = false;
        }
        self.queue[at].state =
            if may_wait { RowGroupState::Postponed } else { RowGroupState::Failed(failed.error) };
    }

    /// Takes the result of a wave, and returns its batches. If it failed, its rows are read again
    /// in another way, if there is one.
    pub(crate) fn decoded(
        &mut self,
        mut wave: Wave,
        found: Result<Vec<ReservedBatch>, Failed>,
    ) -> Vec<ReservedBatch> {
        self.is_decoding = false;
        if let Prefetch::Many { depth, max_depth, .. } = &mut self.prefetch {
            *depth = depth.saturating_mul(2).min(*max_depth);
        }
        let is_single = wave.as_single().is_some();
        let Failed { error, retry } = match found {
            Ok(batches) => {
                self.keep_rest(wave, is_single && batches.is_empty());
                return batches;
            }
            Err(failed) => failed,
        };
        match retry {
            Some(Retry::WithoutIndex) if wave.trusts_index() => {
                for mut group in wave.groups.into_iter().rev() {
                    if group.entry.ignores_index {
                        group.row_group.restart_at(group.first_row);
                        self.requeue(group);
                        continue;
                    }
                    self.context.progress.ignored_indexes(1);
                    // What the index left out before the first row is read, too.
                    let is_begun = !group.row_group.begins_at(group.first_row);
                    let from = if is_begun { group.first_row } else { 0 };
                    let range = group.entry.range.rest_from(from);
                    let entry = ScanEntry { range, ignores_index: true, ..group.entry };
                    self.queue.push_front(Queued { entry, state: RowGroupState::Planned });
                }
            }
            Some(retry @ (Retry::WithLessMemory | Retry::WithFewerRows))
                if self.make_room(&mut wave, retry) =>
            {
                wave.groups.into_iter().rev().for_each(|group| self.requeue(group));
            }
            _ => {
                let state = RowGroupState::Failed(error);
                if let Some(WaveGroup { entry, .. }) = wave.groups.into_iter().next() {
                    self.queue.push_front(Queued { entry, state });
                }
            }
        }
        Vec::new()
    }

    /// After a wave was too large, lets the next one have more memory, or take less. False if
    /// neither is possible.
    fn make_room(&mut self, wave: &mut Wave, retry: Retry) -> bool {
        // A single batch has as few rows as may be, and is tried again as it is.
        let is_single = wave.as_single().is_some();
        if is_single && wave.overlaps {
            self.size.may_overlap = false;
            return true;
        }
        let fetches_again = matches!(self.prefetch, Prefetch::One) || is_single;
        let has_freed = fetches_again && self.drop_ahead();
        if !is_single {
            self.size.rewind(wave, retry, has_freed);
        }
        has_freed || !is_single
    }

    /// Frees the memory of a row group that has not begun to decode, and opens no more before their
    /// turn. Returns whether there was one.
    fn drop_ahead(&mut self) -> bool {
        self.prefetch = match self.prefetch {
            Prefetch::Never | Prefetch::One => Prefetch::Never,
            Prefetch::Many { .. } => Prefetch::Many { depth: 1, max_depth: 1, small: 0 },
        };
        let is_new = |queued: &&mut Queued| match &queued.state {
            RowGroupState::Open(row_group) => row_group.is_new(),
            _ => false,
        };
        let Some(last) = self.queue.iter_mut().rev().find(is_new) else { return false };
        last.state = RowGroupState::Postponed;
        true
    }

    /// Whether a wave may begin while batches of the one before it are not returned yet.
    pub(crate) fn may_overlap(&self) -> bool {
        self.size.may_overlap
    }
}

/// What the drivers of streams ask for.
#[cfg_attr(not(all(feature = "async", feature = "engine")), allow(dead_code))]
impl Scan {
    /// Whether the first row group is there, so that a wave can be decoded.
    pub(crate) fn has_open(&self) -> bool {
        matches!(self.queue.front(), Some(Queued { state: RowGroupState::Open(_), .. }))
    }

    /// Whether all that the read wants is fetched.
    pub(crate) fn is_fetched(&self) -> bool {
        let is_there = |queued: &Queued| {
            matches!(queued.state, RowGroupState::Open(_) | RowGroupState::Failed(_))
        };
        self.next_range >= self.ranges.len() && self.queue.iter().all(is_there)
    }

    /// Whether the read continues better once other memory of the same budget is returned: there
    /// was too little, or a row group is fetched again, for which there may be too little.
    pub(crate) fn lacks_memory(&self) -> bool {
        let is_again = |queued: &Queued| match queued.state {
            RowGroupState::Planned | RowGroupState::Opening { .. } => queued.entry.ignores_index,
            _ => false,
        };
        let first = self.queue.front().map(|first| &first.state);
        let is_postponed = matches!(first, Some(RowGroupState::Postponed));
        !self.size.may_overlap || is_postponed || self.queue.iter().any(is_again)
    }

    /// Opens one row group at a time from now on.
    pub(crate) fn hold_back(&mut self) {
        self.prefetch = Prefetch::Many { depth: 1, max_depth: 1, small: 0 };
    }

    /// Opens more row groups at a time, as long as no more than `bytes` are held.
    pub(crate) fn open_small(&mut self, bytes: u64) {
        if let Prefetch::Many { small, .. } = &mut self.prefetch {
            *small = bytes;
        }
    }

    /// Opens `depth` row groups at a time, and more as long as no more than `small` bytes are held.
    #[cfg(test)]
    pub(crate) fn open_many(&mut self, depth: usize, small: u64) {
        self.prefetch = Prefetch::Many { depth, max_depth: depth, small };
    }

    /// Row groups that are begun and not decoded.
    #[cfg(test)]
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }
}

impl Scan {
    /// Keeps what the last row group of a wave has left; `is_at_end` if it gave no more rows.
    fn keep_rest(&mut self, mut wave: Wave, is_at_end: bool) {
        let Some(mut last) = wave.groups.pop().filter(|_| !is_at_end) else { return };
        // A batch that was made by itself has told already.
        if !last.windows.is_empty() {
            let max_rows = last.row_group.max_batch_rows();
            last.row_group.size.widen(&last.windows, max_rows);
        }
        if !last.row_group.is_done() {
            self.requeue(last);
        }
    }

    fn requeue(&mut self, group: WaveGroup) {
        let WaveGroup { entry, row_group, .. } = group;
        self.queue.push_front(Queued { entry, state: RowGroupState::Open(row_group) });
    }

    /// Begins the next range, and returns its position in the queue.
    fn begin(&mut self) -> Option<usize> {
        let range = self.ranges.get(self.next_range)?.clone();
        let entry = ScanEntry { id: self.next_range, range, ignores_index: false };
        self.next_range += 1;
        self.queue.push_back(Queued { entry, state: RowGroupState::Planned });
        Some(self.queue.len() - 1)
    }

    /// Opens a row group of the queue. `None` if its metadata are broken, which is reported in its
    /// turn.
    fn open(&mut self, at: usize, alone: bool, bytes: u64) -> Option<(usize, Opening)> {
        let Queued { entry, state } = self.queue.get_mut(at)?;
        match Opening::new(&self.context, &entry.range, entry.ignores_index) {
            Ok(opening) => {
                *state = RowGroupState::Opening { bytes, alone };
                Some((entry.id, opening))
            }
            Err(error) => {
                *state = RowGroupState::Failed(error);
                None
            }
        }
    }

    /// Position in the queue of the row group that must be opened before the next wave can be full;
    /// `None` if it can be without, or if a fault must be reported first.
    fn missing_of_wave(&mut self) -> Option<usize> {
        let (mut bytes, mut windows) = (0u64, self.max_windows());
        for (at, queued) in self.queue.iter().enumerate() {
            let row_group = match &queued.state {
                RowGroupState::Planned => return Some(at),
                RowGroupState::Open(row_group) => row_group,
                RowGroupState::Opening { .. }
                | RowGroupState::Postponed
                | RowGroupState::Failed(_) => return None,
            };
            if row_group.is_to_learn() {
                windows = windows.min(WINDOWS_TO_LEARN);
            }
            bytes = bytes.saturating_add(row_group.bytes_left());
            windows = windows.saturating_sub(row_group.batches_left());
            let is_full = bytes >= self.size.bytes || windows == 0 || at + 1 == MAX_GROUPS;
            if is_full || self.is_made_alone(row_group) {
                return None;
            }
        }
        self.begin()
    }

    /// Whether the batches of a row group are made one at a time.
    fn is_made_alone(&self, row_group: &RowGroupDecoder) -> bool {
        self.threads == 0 || row_group.is_careful()
    }

    fn max_windows(&self) -> u64 {
        match may_end_soon(&self.context.plan) {
            true => GROWTH.saturating_pow(self.waves),
            false => u64::MAX,
        }
    }

    /// Position in the queue of the first row group that must be opened again.
    fn planned(&self) -> Option<(usize, u64)> {
        let mut states = self.queue.iter().map(|queued| &queued.state);
        states.position(|state| matches!(state, RowGroupState::Planned)).map(|at| (at, 0))
    }

    /// Begins one more row group if there is memory for it, or if none is begun. Returns its
    /// position in the queue, and the estimated bytes that are fetched for it.
    fn another(&mut self) -> Option<(usize, u64)> {
        let Prefetch::Many { depth, small, .. } = self.prefetch else { return None };
        let n = self.queue.len();
        let max = if small == 0 { depth } else { depth.max(MAX_SMALL) };
        let range = self.ranges.get(self.next_range).filter(|_| n < max)?;
        let plan = &self.context.plan;
        // An error in the metadata is given in its turn.
        let bytes = plan.row_group(range).map_or(0, |row_group| row_group.wanted_bytes());
        let on_their_way = self.queue.iter().map(|queued| match queued.state {
            RowGroupState::Opening { bytes, .. } => bytes,
            _ => 0,
        });
        let held = plan.budget().used().saturating_add(on_their_way.sum::<u64>());
        let held = held.saturating_add(bytes);
        let waves = self.size.bytes.saturating_mul(2);
        let ahead = plan.options().read_ahead.bytes.saturating_add(waves);
        let is_needed = n == 0 && !self.is_decoding;
        let fits = held <= ahead.min(plan.budget().cap() / 2) || is_needed;
        if !fits || (n >= depth && held > small) {
            return None;
        }
        self.begin().map(|at| (at, bytes))
    }

    /// Takes the first row group of the queue, if its bytes are there.
    fn pop_open(&mut self) -> Option<(ScanEntry, Box<RowGroupDecoder>)> {
        match self.queue.pop_front()? {
            Queued { entry, state: RowGroupState::Open(row_group) } => Some((entry, row_group)),
            other => {
                self.queue.push_front(other);
                None
            }
        }
    }

    /// Takes row groups, each perhaps begun, until the wave is full, or has as many windows as are
    /// wanted. A wave has at least one window, however small it is.
    fn gather(&mut self, waits: bool) -> Wave {
        let (mut bytes, mut windows_left) = (0u64, self.max_windows());
        let mut groups = Vec::new();
        while (groups.is_empty() || bytes < self.size.bytes)
            && windows_left > 0
            && groups.len() < MAX_GROUPS
            && let Some((entry, mut row_group)) = self.pop_open()
        {
            let is_single = self.is_made_alone(&row_group);
            if is_single && !groups.is_empty() {
                self.queue.push_front(Queued { entry, state: RowGroupState::Open(row_group) });
                break;
            }
            let (first_row, mut windows) = (row_group.next_row(), Vec::new());
            if !is_single {
                if row_group.is_to_learn() {
                    windows_left = windows_left.min(WINDOWS_TO_LEARN);
                }
                let left = self.size.bytes.saturating_sub(bytes);
                let fitting = (left / row_group.batch_bytes().max(1)).clamp(1, MAX_WINDOWS);
                windows = row_group.windows(saturated(fitting.min(windows_left)));
                let n = windows.len() as u64;
                bytes = bytes.saturating_add(row_group.batch_bytes().saturating_mul(n));
                windows_left -= n;
            }
            let ends_here = is_single || !row_group.is_done();
            groups.push(WaveGroup { entry, row_group, first_row, windows });
            if ends_here {
                break;
            }
        }
        self.waves = self.waves.saturating_add(1);
        self.is_decoding = true;
        Wave { groups, overlaps: waits }
    }
}
