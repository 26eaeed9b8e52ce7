//! [`Reader::parts`] and [`Reader::streams`] divide one read into parts that are read
//! independently.
//!
//! Parts have about equal estimated costs; one ends at the edge of a row group if that is close,
//! else between two rows. Trap: how many rows the filter will leave is unknown here, beyond what
//! the footer proves.

use std::ops::Range;
use std::sync::Arc;

use super::{Batches, Reader, Threads};
use crate::error::{Error, Result};
use crate::read::Plan;
use crate::selection::RowSelection;

impl<S: Clone> Reader<S> {
    /// Divides the read into at most `n` parts, each a reader of its own: for engines that read on
    /// their own threads, tasks or machines.
    ///
    /// The parts hold all rows of the read, each row once: those of a part come before those of the
    /// next, in the order of [`Reader::batches`]. They are about equal in
    /// [`Reader::estimated_cost`]: none has more than 5/4 of the mean, if the rows of a row group
    /// cost the same. If row groups are too large or too few, a part begins or ends within one.
    /// There are fewer than `n` parts only if there are fewer rows, or if a row group costs nearly
    /// nothing; none is empty, unless the whole read is, which is then one part.
    ///
    /// Offset and limit are resolved here. [`Reader::memory`] is divided among the parts, and so is
    /// a number of threads; without one, each part is decoded on the thread that asks for its
    /// batches. The progress of this reader counts all parts.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    ///
    /// let parts = Reader::open("testdata/trips.parquet")?.project(["id", "fare"])?.parts(3)?;
    /// let mut rows = 0;
    /// std::thread::scope(|s| -> marquetry::Result<()> {
    ///     let read = |part: &Reader| part.batches()?.collect::<Result<Vec<_>, _>>();
    ///     let threads: Vec<_> = parts.iter().map(|part| s.spawn(move || read(part))).collect();
    ///     for thread in threads {
    ///         let batches = thread.join().expect("no panic")?;
    ///         rows += batches.iter().map(|batch| batch.num_rows()).sum::<usize>();
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(rows, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::plan`]. `Usage` if `n` is 0, or if there is an offset or a limit beside a
    /// filter, because only the read itself finds how many rows of a part pass.
    pub fn parts(&self, n: usize) -> Result<Vec<Self>> {
        self.check_parts(n)?;
        let plan = self.plan()?;
        if n == 1 {
            return Ok(vec![self.part(None, 1)]);
        }
        let costs = plan.ranges().iter().map(|range| RowCost {
            cost: plan.cost(range.row_group, range.count()),
            rows: range.count(),
        });
        let costs: Vec<_> = costs.collect();
        let parts = divide(&costs, n);
        if parts.is_empty() {
            return Ok(vec![self.part(Some(Arc::from([])), 1)]);
        }
        let of = parts.len();
        parts.iter().map(|part| Ok(self.part(Some(rows_of(&plan, part)?), of))).collect()
    }

    /// Estimated cost of the read, by which [`Reader::parts`] divides it: the compressed and
    /// uncompressed bytes of the wanted columns in the row groups that are not pruned, in
    /// proportion to the rows that are read, as the metadata state; and one for each row.
    ///
    /// # Errors
    /// As [`Reader::plan`].
    pub fn estimated_cost(&self) -> Result<u64> {
        let plan = self.plan()?;
        let costs = plan.ranges().iter().map(|range| plan.cost(range.row_group, range.count()));
        Ok(costs.fold(0, u64::saturating_add))
    }

    pub(crate) fn check_parts(&self, n: usize) -> Result<()> {
        let options = &self.options;
        if n == 0 {
            return Err(Error::usage("a read cannot be divided into 0 parts: ask for at least 1"));
        }
        if n > 1 && options.filter.is_some() && (options.offset > 0 || options.limit.is_some()) {
            return Err(self.name(Error::usage(
                "an offset or a limit of rows that pass a filter cannot be divided into parts that are \
                 read independently: leave it out and count the rows that the parts give, or ask for 1 \
                 part",
            )));
        }
        Ok(())
    }

    /// This reader, or some rows of it, as one of `of` parts.
    pub(crate) fn part(&self, rows: Option<Arc<[(usize, RowSelection)]>>, of: usize) -> Self {
        let mut part = match rows {
            Some(rows) => self.clone().of_rows(rows),
            None => self.clone(),
        };
        let options = &mut part.options;
        options.limits.memory_bytes = (options.limits.memory_bytes / of as u64).max(1);
        if let Threads::Exactly(threads) = &mut part.threads {
            *threads = (*threads / of).max(1);
        } else if matches!(part.threads, Threads::Auto) {
            part.threads = Threads::Exactly(1);
        }
        part.progress = self.progress.of_part();
        part
    }
}

impl Reader {
    /// The batches of each of the [`Reader::parts`]: at most `n` independent streams, which can be
    /// sent to other threads. Nothing is read before the first batch is asked for, unless several
    /// threads were set.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::{Export, Reader};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let reader = Reader::open("testdata/trips.parquet")?;
    /// let files = Export::to(folder.path(), reader.schema()?)?.run(reader.streams(4)?)?;
    /// assert_eq!(files.iter().map(|file| file.report.rows).sum::<u64>(), 1_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reader::parts`].
    pub fn streams(&self, n: usize) -> Result<Vec<Batches>> {
        self.parts(n)?.iter().map(Self::batches).collect()
    }
}

/// The wanted rows of a row group, and their estimated cost; all rows are assumed to cost the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCost {
    pub(crate) cost: u64,
    pub(crate) rows: u64,
}

/// A cut may lie this part of the mean cost off, to fall on the edge of a row group.
const SNAP: u128 = 8;

/// Divides row groups into at most `n` parts of about the same cost, in order: each part is a list
/// of row groups, by index, with a range of their wanted rows. No part is empty.
pub(crate) fn divide(costs: &[RowCost], n: usize) -> Vec<Vec<(usize, Range<u64>)>> {
    let total: u128 = costs.iter().map(|group| u128::from(group.cost)).sum();
    let rows: u128 = costs.iter().map(|group| u128::from(group.rows)).sum();
    let n = (n as u128).min(rows);
    let snap = total / n.max(1) / SNAP;
    let mut parts = Vec::new();
    let mut part = Vec::new();
    // The end of the current part, and the cost of the row groups before this one.
    let (mut number, mut before) = (1u128, 0u128);
    for (index, group) in costs.iter().enumerate() {
        let cost = u128::from(group.cost);
        let mut from = 0;
        while number < n {
            let end = total * number / n;
            if end > before + cost {
                break;
            }
            let within = end.saturating_sub(before);
            let row = match within {
                _ if within <= snap => 0,
                _ if cost - within <= snap => group.rows,
                _ => {
                    let row = within * u128::from(group.rows) / cost.max(1);
                    u64::try_from(row).unwrap_or(u64::MAX).min(group.rows)
                }
            };
            let row = row.max(from);
            if from < row {
                part.push((index, from..row));
                from = row;
            }
            if !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
            number += 1;
        }
        if from < group.rows {
            part.push((index, from..group.rows));
        }
        before += cost;
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// For each row group of a part, its number and which of its rows.
pub(crate) fn rows_of(
    plan: &Plan,
    part: &[(usize, Range<u64>)],
) -> Result<Arc<[(usize, RowSelection)]>> {
    let of_piece = |(index, rows): &(usize, Range<u64>)| {
        let range = plan.ranges().get(*index).ok_or_else(|| Error::usage("no such row group"))?;
        let wanted = plan.wanted(range)?;
        Ok((range.row_group, wanted.offset(rows.start).limit(rows.end - rows.start)))
    };
    part.iter().map(of_piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(costs: &[RowCost], part: &[(usize, Range<u64>)]) -> f64 {
        let of = |(index, rows): &(usize, Range<u64>)| {
            let group = costs[*index];
            group.cost as f64 * (rows.end - rows.start) as f64 / group.rows as f64
        };
        part.iter().map(of).sum()
    }

    #[test]
    fn parts_hold_every_row_once_in_order_and_none_costs_more_than_5_4_of_the_mean() {
        for seed in 0..2_000u64 {
            let mut random = fastrand::Rng::with_seed(seed);
            let costs: Vec<RowCost> = (0..random.usize(0..12))
                .map(|_| {
                    let bits = random.u32(1..40);
                    let rows = random.u64(1..1 << bits);
                    RowCost { cost: rows.saturating_mul(random.u64(1..100)), rows }
                })
                .collect();
            let n = random.usize(1..20);
            let parts = divide(&costs, n);
            let whole = costs.iter().enumerate().map(|(i, group)| (i, 0..group.rows));
            let mut joined: Vec<(usize, Range<u64>)> = Vec::new();
            for (index, rows) in parts.iter().flatten().cloned() {
                match joined.last_mut() {
                    Some(last) if last.0 == index => {
                        assert_eq!(last.1.end, rows.start, "seed {seed}");
                        last.1.end = rows.end;
                    }
                    _ => joined.push((index, rows)),
                }
            }
            assert_eq!(joined, whole.collect::<Vec<_>>(), "seed {seed}");
            assert!(parts.len() <= n, "seed {seed}");
            assert!(parts.iter().all(|part| !part.is_empty()), "seed {seed}");
            let all: f64 = costs.iter().map(|group| group.cost as f64).sum();
            let row = costs.iter().map(|group| group.cost as f64 / group.rows as f64);
            let row = row.fold(0.0, f64::max);
            for part in &parts {
                // A row is not divided, and there are no more parts than rows.
                let most = (all / n as f64).max(row) * 1.25 + 2.0 * row + 1.0;
                assert!(cost(&costs, part) <= most, "seed {seed}: {parts:?} of {costs:?}");
            }
        }
    }

    #[test]
    fn cuts_fall_on_the_edge_of_a_row_group_that_is_close() {
        let of = |rows| RowCost { cost: rows, rows };
        let parts = divide(&[of(100), of(104), of(96), of(100)], 4);
        let whole: Vec<_> = parts.iter().map(Vec::len).collect();
        assert_eq!(whole, [1, 1, 1, 1], "{parts:?}");
        assert_eq!(divide(&[of(10)], 3), [[(0, 0..3)], [(0, 3..6)], [(0, 6..10)]]);
        assert_eq!(divide(&[of(2)], 100).len(), 2, "no more parts than rows");
        assert!(divide(&[], 5).is_empty());
    }
}
