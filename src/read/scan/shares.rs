//! [`share_out`] decides into how many shares the tasks of a wave are split, so that all threads
//! end at about the same time.
//!
//! Two shares that meet in a page both decompress it, and both decode the dictionary. So a task is
//! split only if the threads would otherwise end at different times, and if decoding that page and
//! the dictionary twice costs less than the split saves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task of a wave, as far as the division of work needs to know it.
#[derive(Debug, Clone)]
pub(super) struct WaveTask {
    /// About how much work it is.
    pub(super) cost: u64,
    /// About how much work it is for a share to begin in the midst of pages.
    pub(super) entry: u64,
    /// Its windows, which its shares divide.
    pub(super) windows: usize,
    /// At least one.
    pub(super) shares: usize,
    /// Maximum shares.
    pub(super) max_shares: usize,
}

/// Threads that end this part of the time apart are no reason to split a task.
const TOLERANCE: u64 = 16;

/// Minimum work of a share, in bytes: less is not worth a thread of its own.
const SMALLEST_SHARE: u64 = 64 << 10;

impl WaveTask {
    /// Estimated work of a share of `windows` windows.
    fn cost_of(&self, windows: usize) -> u64 {
        let cost = u128::from(self.cost) * windows as u128 / self.windows.max(1) as u128;
        let entry = if self.shares > 1 { self.entry } else { 0 };
        u64::try_from(cost).unwrap_or(u64::MAX).saturating_add(entry)
    }

    /// The work of each share.
    fn costs(&self) -> impl Iterator<Item = u64> {
        let first = |i: usize| self.windows * i / self.shares;
        (0..self.shares).map(move |i| self.cost_of(first(i + 1) - first(i)))
    }

    /// The work of the largest share.
    fn heaviest(&self) -> u64 {
        self.cost_of(self.windows.div_ceil(self.shares.max(1)))
    }
}

/// Gives tasks more shares, the heaviest first, where `threads` threads would not end at about the
/// same time otherwise.
pub(super) fn share_out(tasks: &mut [WaveTask], threads: usize) {
    let total = tasks.iter().fold(0u64, |total, task| total.saturating_add(task.cost));
    let even = total / threads.max(1) as u64;
    let heavy = even / TOLERANCE;
    // Tasks that are light now fill the gaps that the others leave.
    let mut tasks: Vec<_> = tasks.iter_mut().filter(|task| task.heaviest() > heavy).collect();
    let mut best = (time(&tasks, threads), shares(&tasks));
    let mut steps_in_vain = 0;
    while best.0 > even.saturating_add(heavy) && steps_in_vain < threads {
        let splits = |task: &&mut &mut WaveTask| {
            task.shares < task.max_shares && task.heaviest() > SMALLEST_SHARE
        };
        let Some(heaviest) = tasks.iter_mut().filter(splits).max_by_key(|task| task.heaviest())
        else {
            break;
        };
        heaviest.shares += 1;
        let time = time(&tasks, threads);
        steps_in_vain += 1;
        if time < best.0 {
            best = (time, shares(&tasks));
            steps_in_vain = 0;
        }
    }
    for (task, shares) in tasks.into_iter().zip(best.1) {
        task.shares = shares;
    }
}

fn shares(tasks: &[&mut WaveTask]) -> Vec<usize> {
    tasks.iter().map(|task| task.shares).collect()
}

/// How long the busiest of the threads works, if each takes the heaviest share that is left.
fn time(tasks: &[&mut WaveTask], threads: usize) -> u64 {
    let mut costs: Vec<u64> = tasks.iter().flat_map(|task| task.costs()).collect();
    costs.sort_unstable_by_key(|cost| Reverse(*cost));
    // The thread that is free first is on top.
    let mut busy = BinaryHeap::from(vec![Reverse(0u64); threads.max(1)]);
    let mut longest = 0;
    for cost in costs {
        if let Some(mut first) = busy.peek_mut() {
            first.0 = first.0.saturating_add(cost);
            longest = longest.max(first.0);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// The shares of tasks of `(cost, windows)`, before any is split.
    fn shared_out(tasks: &[(u64, usize)], threads: usize) -> Vec<usize> {
        of_pages(tasks, threads, 0)
    }

    /// Like [`shared_out`], if it is so much work to begin in the midst of pages.
    fn of_pages(tasks: &[(u64, usize)], threads: usize, entry: u64) -> Vec<usize> {
        let task = |&(cost, windows): &(u64, usize)| WaveTask {
            cost,
            entry,
            windows,
            shares: 1,
            max_shares: threads.min(windows),
        };
        let mut tasks: Vec<WaveTask> = tasks.iter().map(task).collect();
        share_out(&mut tasks, threads);
        tasks.iter().map(|task| task.shares).collect()
    }

    #[test]
    fn a_task_is_split_where_threads_would_wait_for_it() {
        assert_eq!(shared_out(&[(40 * MIB, 16)], 2), [2]);
        assert_eq!(shared_out(&[(40 * MIB, 16), (MIB / 2, 16)], 4), [4, 1]);
        assert_eq!(shared_out(&[(10 * MIB, 4); 3], 2), [1, 1, 2]);
        // Two and one of three windows are better than all three.
        assert_eq!(shared_out(&[(10 * MIB, 3)], 2), [2]);
    }

    #[test]
    fn a_task_is_left_whole_where_no_thread_would_wait() {
        assert_eq!(shared_out(&[(8 * MIB, 8), (7 * MIB, 7), (MIB, 1)], 2), [1, 1, 1]);
        assert_eq!(shared_out(&[(22 * MIB, 3), (11 * MIB, 3), (9 * MIB, 3)], 2), [1, 1, 1]);
        assert_eq!(shared_out(&[(MIB, 8); 40], 2), [1; 40]);
        // Two shares of 12 MiB, each with 12 more to begin, are no less than one of 24.
        assert_eq!(of_pages(&[(24 * MIB, 8)], 2, 12 * MIB), [1]);
        assert_eq!(of_pages(&[(24 * MIB, 8)], 2, MIB), [2]);
        // Too little work, one window, one thread, no work at all.
        assert_eq!(shared_out(&[(SMALLEST_SHARE, 8)], 2), [1]);
        assert_eq!(shared_out(&[(40 * MIB, 1)], 2), [1]);
        assert_eq!(shared_out(&[(40 * MIB, 8)], 1), [1]);
        assert_eq!(shared_out(&[(0, 0), (0, 4)], 2), [1, 1]);
    }

    #[test]
    fn what_a_file_claims_does_not_overflow() {
        assert_eq!(of_pages(&[(u64::MAX, 256), (u64::MAX, 2)], 2, u64::MAX), [1, 1]);
    }

    #[test]
    fn shares_do_not_make_it_slower_and_stay_in_their_limits() {
        let seed = 18;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let threads = rng.usize(1..9);
            let mut tasks: Vec<WaveTask> = (0..rng.usize(0..20))
                .map(|_| {
                    let windows = rng.usize(1..20);
                    let shares = if rng.bool() { 1 } else { windows.min(2) };
                    let max_shares = if rng.bool() { shares } else { windows.max(shares) };
                    let (cost, entry) = (rng.u64(0..99 * MIB), rng.u64(0..9 * MIB));
                    WaveTask { cost, entry, windows, shares, max_shares }
                })
                .collect();
            let mut before = tasks.clone();
            share_out(&mut tasks, threads);
            for (now, then) in tasks.iter().zip(&before) {
                assert!((then.shares..=then.max_shares).contains(&now.shares), "seed {seed}");
            }
            let time = |tasks: &mut Vec<WaveTask>| {
                super::time(&tasks.iter_mut().collect::<Vec<_>>(), threads)
            };
            let even = before.iter().map(|task| task.cost).sum::<u64>() / threads as u64;
            let most = time(&mut before) + even / TOLERANCE;
            assert!(time(&mut tasks) <= most, "seed {seed}");
        }
    }
}
