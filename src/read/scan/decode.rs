//! Decodes a [`Wave`] on the threads of a pool: leaf by leaf, the heaviest first, each by the first
//! free thread. A leaf that would keep one thread busy after the others are done is split between
//! pages.

use std::cmp::Reverse;
use std::ops::Range;

use bytes::Bytes;

use super::shares::{WaveTask, share_out};
use super::wave::{Wave, WaveGroup};
use crate::error::{Error, Result};
use crate::read::batch::ReservedBatch;
use crate::read::column::LeafBatch;
use crate::read::column_task::ColumnDecoder;
use crate::read::filter_stages::DecodeStep;
use crate::read::plan::proportion;
use crate::read::retry::Failed;
use crate::read::row_group::{Batcher, FilteredWindow};
use crate::read::supplied::drive;
use crate::read::window::Window;

/// The threads that decode a wave. A driver has them.
pub(crate) trait Workers: Sync {
    /// Number of threads.
    fn threads(&self) -> usize;

    /// Does work for each item, and returns the results in the order of the items. The first items
    /// are begun first.
    ///
    /// # Errors
    /// One of those of the work.
    fn map<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> Result<R, Failed> + Sync + Send,
    ) -> Result<Vec<R>, Failed>;

    /// Reads a piece of a large column chunk that is decoded while it is read.
    ///
    /// # Errors
    /// `Io`.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Whether the read has ended before its end.
    fn is_cancelled(&self) -> bool;
}

/// A window of a wave, and what was decoded of it.
struct WaveWindow {
    /// Which group of the wave it is of.
    group: usize,
    filtered: FilteredWindow,
    /// The leaves of the current step, in the order of the plan.
    leaves: Vec<LeafBatch>,
}

/// Windows of one leaf that a thread decodes.
struct DecodeJob<'a> {
    /// The group and the leaf.
    place: (usize, usize),
    cost: u64,
    decoder: &'a mut ColumnDecoder,
    /// Which window, the window, and whether the row group ends with it.
    windows: Vec<(usize, &'a Window, bool)>,
}

/// The result of a job.
struct DecodedLeaf {
    place: (usize, usize),
    /// The leaf of each window, and which window that is.
    leaves: Vec<(usize, LeafBatch)>,
}

impl Wave {
    /// The batches of its windows: those that have rows.
    ///
    /// # Errors
    /// Whatever is wrong with the pages or the filter.
    pub(crate) fn decode(&mut self, workers: &impl Workers) -> Result<Vec<ReservedBatch>, Failed> {
        self.split(workers)?;
        let batchers: Vec<_> = self.groups.iter().map(|group| group.row_group.batcher()).collect();
        let mut windows = Vec::new();
        for (group, WaveGroup { windows: of_group, .. }) in self.groups.iter().enumerate() {
            windows.extend(of_group.iter().map(|window| {
                let filtered = FilteredWindow::new(window.clone());
                WaveWindow { group, filtered, leaves: Vec::new() }
            }));
        }
        let stages = windows.iter().map(|window| window.filtered.rest().filter_stages()).max();
        for stage in 0..stages.unwrap_or_default() {
            self.decode_step(workers, DecodeStep::Filter(stage), &mut windows)?;
            self.apply_filter(workers, stage, &mut windows, &batchers)?;
        }
        self.decode_step(workers, DecodeStep::Output, &mut windows)?;
        windows.retain(|window| window.filtered.rest().rows() > 0);
        workers.map(windows, |WaveWindow { group, mut filtered, leaves }| {
            Ok(batchers[group].batch(&mut filtered, leaves)?)
        })
    }

    /// Splits the tasks that would keep one thread busy when the others are done.
    fn split(&mut self, workers: &impl Workers) -> Result<(), Failed> {
        let threads = workers.threads();
        let mut wave = Vec::new();
        for WaveGroup { row_group, windows, .. } in &mut self.groups {
            let rows = windows.iter().map(|window| window.rows() as u64).sum();
            let (all, may_split, n) = (row_group.rows(), row_group.may_split(), windows.len());
            wave.extend(row_group.tasks().iter().map(|task| {
                let (work, shares) = (task.work(), task.shares());
                let max_shares =
                    if may_split && task.may_split() { threads.min(n) } else { shares };
                let (cost, entry) = (proportion(work.rows, rows, all), work.entry);
                WaveTask { cost, entry, windows: n, shares, max_shares }
            }));
        }
        share_out(&mut wave, threads);
        let tasks = self.groups.iter_mut().flat_map(|group| group.row_group.tasks());
        for (task, WaveTask { shares, .. }) in tasks.zip(wave) {
            if shares > task.shares() {
                let split =
                    drive(|range| workers.read(range), |given| Ok(task.split(shares, given)?));
                split.map_err(|failed| failed.map(|e| task.place(e)))?;
            }
        }
        Ok(())
    }

    /// Decodes the leaves that come in this step. Windows without rows are left out.
    fn decode_step(
        &mut self,
        workers: &impl Workers,
        step: DecodeStep,
        windows: &mut [WaveWindow],
    ) -> Result<(), Failed> {
        let mut jobs = Vec::new();
        let mut all = windows.iter().map(|window| window.filtered.rest()).enumerate();
        for (i, group) in self.groups.iter_mut().enumerate() {
            let of_group: Vec<_> = all.by_ref().take(group.windows.len()).collect();
            group.add_jobs(i, step, &of_group, &mut jobs)?;
        }
        // The heaviest first, so that all threads end at about the same time.
        jobs.sort_by_key(|job| Reverse(job.cost));
        let mut decoded = workers.map(jobs, |job| job.run(workers))?;
        decoded.sort_by_key(|leaf| leaf.place);
        for (window, leaf) in decoded.into_iter().flat_map(|leaf| leaf.leaves) {
            windows[window].leaves.push(leaf);
        }
        Ok(())
    }

    /// Evaluates a stage of the filter, where there is one, on what was decoded for it.
    fn apply_filter(
        &self,
        workers: &impl Workers,
        stage: usize,
        windows: &mut [WaveWindow],
        batchers: &[Batcher],
    ) -> Result<(), Failed> {
        let mut wanted = windows.iter_mut().filter(|window| {
            let rest = window.filtered.rest();
            rest.rows() > 0 && stage < rest.filter_stages()
        });
        let apply = |WaveWindow { group, filtered, leaves }: &mut WaveWindow| {
            Ok(batchers[*group].apply_filter(filtered, std::mem::take(leaves))?)
        };
        // Without a filter there is nothing to do that is worth a thread.
        if self.groups.iter().any(|group| group.row_group.is_filtered()) {
            return workers.map(wanted.collect(), apply).map(drop);
        }
        wanted.try_for_each(apply)
    }
}

impl WaveGroup {
    /// Adds the jobs of a step; `windows` are those of this group, by their place in the wave.
    fn add_jobs<'a>(
        &'a mut self,
        group: usize,
        step: DecodeStep,
        windows: &[(usize, &'a Window)],
        jobs: &mut Vec<DecodeJob<'a>>,
    ) -> Result<()> {
        let all_rows = self.row_group.rows();
        let rows_in_group = self.row_group.rows_in_group;
        for (leaf, task) in self.row_group.tasks().iter_mut().enumerate() {
            let work = task.work().rows;
            let is_wanted = |window: &Window| task.is_wanted(step, window) && window.rows() > 0;
            let wanted: Vec<bool> = windows.iter().map(|(_, window)| is_wanted(window)).collect();
            if !wanted.contains(&true) {
                continue;
            }
            let decoders = task.decoders()?;
            let n = decoders.len();
            for (i, decoder) in decoders.iter_mut().enumerate() {
                let share_of = windows.len() * i / n..windows.len() * (i + 1) / n;
                let own = share_of.filter(|at| wanted[*at]).map(|at| {
                    let (place, window) = windows[at];
                    (place, window, window.end() == rows_in_group)
                });
                let windows: Vec<_> = own.collect();
                if !windows.is_empty() {
                    let rows = windows.iter().map(|(_, window, _)| window.rows() as u64).sum();
                    let cost = proportion(work, rows, all_rows);
                    jobs.push(DecodeJob { place: (group, leaf), cost, decoder, windows });
                }
            }
        }
        Ok(())
    }
}

impl DecodeJob<'_> {
    /// The leaf of each window.
    fn run(self, workers: &impl Workers) -> Result<DecodedLeaf, Failed> {
        let Self { place, decoder, windows, .. } = self;
        let decode = |(at, window, ends): (usize, &Window, bool)| {
            if workers.is_cancelled() {
                return Err(Failed::at_last(Error::cancelled("the read")));
            }
            let decoded = drive(
                |range| workers.read(range),
                |given| Ok(decoder.decode(window, ends, given)?),
            );
            Ok((at, decoded.map_err(|failed| failed.map(|e| decoder.place(e)))?))
        };
        let leaves = windows.into_iter().map(decode).collect::<Result<_, Failed>>()?;
        Ok(DecodedLeaf { place, leaves })
    }
}
