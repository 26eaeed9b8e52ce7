//! [`Window`]: the rows of one batch, and the spans of rows that are decoded for them.
//!
//! If two wanted rows lie close, decoding the rows between them costs less than skipping them.
//! Outside lists, unwanted rows are left out while a leaf is decoded. Inside lists, they are left
//! out of the finished column, because assembly needs the levels of all rows of a span.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::filter_stages::FilterStages;
use super::wiring::GAP;
use crate::bytes::saturated;
use crate::error::{Error, LimitKind, Result};

/// The rows of one batch, counted from the first of the row group.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    all: RowSpans,
    /// Other spans for columns of lists, if `all` has too many unwanted rows: more spans, fewer
    /// rows.
    apart: Option<RowSpans>,
    rows: usize,
    /// Whether the filter, if there is one, is known to be true of all rows.
    pub(super) is_proven: bool,
    /// The stages in which the columns of the filter are decoded; `None` without a filter, or if it
    /// need not be evaluated for any row of the row group.
    pub(super) stages: Option<Arc<FilterStages>>,
    /// The first row after the window that may be wanted.
    pub(super) next_wanted_row: u64,
    /// Bytes of its arrays.
    pub(super) weight: Weight,
}

/// Bytes that the arrays of a batch hold, counted by all threads while they decode. The metadata
/// may not reveal them: a long string is in a dictionary once, and in a batch many times.
#[derive(Debug, Clone, Default)]
pub(super) struct Weight(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    arrays: AtomicU64,
    /// Pages that the arrays point into, once they are closed.
    pages: AtomicU64,
}

impl Weight {
    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.0.arrays.load(Ordering::Relaxed)
    }

    /// Bytes so far, with those of pages that the arrays point into.
    pub(super) fn with_pages(&self) -> u64 {
        self.bytes().saturating_add(self.0.pages.load(Ordering::Relaxed))
    }

    /// Counts a page that arrays point into.
    pub(super) fn add_page(&self, bytes: u64) {
        self.0.pages.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Replaces `before` bytes of the count by `after` bytes.
    ///
    /// # Errors
    /// `Limit(Memory)` if the batch then holds more than `max`. The drivers of this crate read the
    /// rows again, in smaller batches.
    pub(super) fn change(&self, before: u64, after: u64, max: u64) -> Result<()> {
        match after.checked_sub(before) {
            Some(more) => self.0.arrays.fetch_add(more, Ordering::Relaxed),
            None => self.0.arrays.fetch_sub(before - after, Ordering::Relaxed),
        };
        if self.bytes() > max { Err(too_large(max)) } else { Ok(()) }
    }
}

/// Maximum bytes of the arrays of a batch of `rows` rows that should not exceed `batch_bytes`. More
/// than `batch_bytes`, because unused capacity counts too. One row has no limit, because it cannot
/// be split.
pub(super) fn max_bytes(batch_bytes: usize, rows: usize) -> u64 {
    if rows > 1 { (batch_bytes as u64).saturating_mul(2).saturating_add(1 << 20) } else { u64::MAX }
}

#[cold]
fn too_large(max: u64) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!("a batch of more than {max} bytes; ask for fewer rows per batch"),
    )
}

/// How decoded rows that are not wanted are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnselectedRows {
    /// They stay: the filter is evaluated on them.
    Stay,
    /// They are dropped while the leaf is decoded.
    DroppedWhileDecoding,
    /// They are left out of the finished column. If they are many, rows are decoded in more spans.
    Apart,
}

/// Rows that are decoded, and which of them are wanted.
#[derive(Debug, Clone)]
pub(super) struct RowSpans {
    /// Ascending, none empty, no two touching.
    pub(super) spans: Arc<[Range<u64>]>,
    /// How many rows that is.
    pub(super) rows: usize,
    /// A bit for each of them; `None` if all are wanted.
    pub(super) keep: Option<BooleanBuffer>,
}

/// Minimum unwanted rows that one more span must save, where a filter leaves runs of rows.
const MIN_ROWS_SAVED_PER_SPAN: usize = 64;

/// Maximum unwanted rows that are decoded for each wanted one, in columns of lists.
const MAX_ROWS_FOR_ONE: u64 = 3;

impl Window {
    /// The first `max` rows of `runs`, which are not empty. Gaps of at most `gap` rows between them
    /// are decoded, too.
    pub(super) fn from_runs(runs: impl Iterator<Item = Range<u64>>, max: u64, gap: u64) -> Self {
        let (mut wanted, mut rows) = (Vec::new(), 0u64);
        for Range { start, end } in runs {
            let end = end.min(start.saturating_add(max - rows));
            rows += end - start;
            wanted.push(start..end);
            if rows >= max {
                break;
            }
        }
        let all = RowSpans::joined(&wanted, gap);
        let few = rows.saturating_mul(MAX_ROWS_FOR_ONE + 1) < all.rows as u64;
        let rows = saturated(rows);
        let apart = few.then(|| RowSpans { spans: wanted.into(), rows, keep: None });
        Self {
            all,
            apart,
            rows,
            is_proven: false,
            stages: None,
            next_wanted_row: u64::MAX,
            weight: Weight::default(),
        }
    }

    /// The window of those decoded rows whose bits are set. `lists`: columns of lists are still to
    /// be decoded.
    pub(super) fn narrowed(&self, passed: &BooleanBuffer, lists: bool) -> Self {
        let rows = passed.count_set_bits();
        let decoded = passed.len();
        let (next_wanted_row, weight) = (self.next_wanted_row, self.weight.clone());
        let (is_proven, stages) = (self.is_proven, self.stages.clone());
        if rows == 0 {
            let none = RowSpans { spans: [].into(), rows, keep: None };
            return Self {
                all: none,
                apart: None,
                rows,
                is_proven,
                stages,
                next_wanted_row,
                weight,
            };
        }
        let keep = (rows < decoded).then(|| passed.clone());
        let all = RowSpans { keep, ..self.all.clone() };
        // More spans, if they save enough rows; else all rows are decoded.
        let max = (decoded - rows) / MIN_ROWS_SAVED_PER_SPAN;
        let few = lists && passed.set_slices().take(max + 1).count() <= max;
        let apart = few.then(|| {
            let runs: Vec<Range<u64>> = self.runs(passed).collect();
            let joined = RowSpans::joined(&runs, GAP);
            if joined.rows as u64 > (MAX_ROWS_FOR_ONE + 1).saturating_mul(rows as u64) {
                return RowSpans { spans: runs.into(), rows, keep: None };
            }
            joined
        });
        Self { all, apart, rows, is_proven, stages, next_wanted_row, weight }
    }

    /// The row ranges of the row group for the set bits, one bit for each decoded row.
    fn runs<'a>(&'a self, passed: &'a BooleanBuffer) -> impl Iterator<Item = Range<u64>> + 'a {
        let mut first = 0usize;
        self.all.spans.iter().flat_map(move |span| {
            let len = saturated(span.end - span.start);
            let len = len.min(passed.len() - first);
            let bits = passed.slice(first, len);
            first += len;
            let run =
                |(start, end): (usize, usize)| span.start + start as u64..span.start + end as u64;
            bits.set_slices().map(run).collect::<Vec<_>>()
        })
    }

    /// Rows of the batch.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether its arrays hold more than they should, where they should not exceed `batch_bytes`.
    pub(super) fn is_overweight(&self, batch_bytes: usize) -> bool {
        self.weight.bytes() > max_bytes(batch_bytes, self.rows())
    }

    /// Whether the filter, if there is one, is known to be true of all rows.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// How many stages the filter has; one if nothing is evaluated.
    pub(crate) fn filter_stages(&self) -> usize {
        self.stages.as_ref().map_or(1, |stages| stages.len())
    }

    /// In which step an early leaf of the plan is decoded.
    pub(super) fn stage_of_leaf(&self, leaf: usize) -> usize {
        self.stages.as_ref().map_or(0, |stages| stages.of_leaf(leaf))
    }

    /// In which step the leaves of an early column of the output are decoded.
    pub(super) fn stage_of_column(&self, column: usize) -> usize {
        self.stages.as_ref().map_or(0, |stages| stages.of_column(column))
    }

    /// Rows that are decoded for the first stage of the filter: the wanted ones, and those in short
    /// gaps.
    pub(super) fn decoded(&self) -> usize {
        self.all.rows
    }

    /// Which of those are wanted; `None` if all are.
    pub(super) fn keep(&self) -> Option<&BooleanBuffer> {
        self.all.keep.as_ref()
    }

    /// The spans of rows that are decoded.
    pub(super) fn spans(&self) -> &[Range<u64>] {
        &self.all.spans
    }

    /// The spans that are decoded of a leaf whose unwanted rows are handled so.
    pub(super) fn row_spans(&self, unselected: UnselectedRows) -> &RowSpans {
        match &self.apart {
            Some(apart) if unselected == UnselectedRows::Apart => apart,
            _ => &self.all,
        }
    }

    /// The row after its last one.
    pub(super) fn end(&self) -> u64 {
        self.all.spans.last().map_or(u64::MAX, |span| span.end)
    }
}

impl RowSpans {
    /// Runs, joined across gaps of at most `max_gap` rows.
    fn joined(runs: &[Range<u64>], max_gap: u64) -> Self {
        let of = |n: u64| saturated(n);
        // A run may be a count of more rows than there is memory for bits.
        if let [run] = runs {
            let rows = of(run.end - run.start);
            return Self { spans: runs.into(), rows, keep: None };
        }
        let mut spans: Vec<Range<u64>> = Vec::new();
        let mut keep = BooleanBufferBuilder::new(0);
        for run in runs {
            let gap = spans.last().map(|last| run.start - last.end).filter(|gap| *gap <= max_gap);
            match (gap, spans.last_mut()) {
                (Some(gap), Some(last)) => {
                    keep.append_n(of(gap), false);
                    last.end = run.end;
                }
                _ => spans.push(run.clone()),
            }
            keep.append_n(of(run.end - run.start), true);
        }
        let keep = keep.finish();
        let rows = keep.len();
        let keep = Some(keep).filter(|_| spans.len() < runs.len());
        Self { spans: spans.into(), rows, keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(row_spans: &RowSpans) -> Vec<u64> {
        let decoded = row_spans.spans.iter().cloned().flatten();
        let wanted = |i: usize| row_spans.keep.as_ref().is_none_or(|keep| keep.value(i));
        decoded.enumerate().filter(|(i, _)| wanted(*i)).map(|(_, row)| row).collect()
    }

    #[test]
    fn either_way_has_the_rows() {
        let seed = 6;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let (mut runs, mut at) = (Vec::new(), 0u64);
            let max = [3, 40, 400][rng.usize(0..3)];
            for _ in 0..rng.usize(1..40) {
                at += rng.u64(1..max);
                let end = at + rng.u64(1..20);
                runs.push(at..end);
                at = end;
            }
            let all: Vec<u64> = runs.iter().cloned().flatten().collect();
            let max = rng.u64(1..500);
            let window = Window::from_runs(runs.iter().cloned(), max, GAP);
            let first: Vec<u64> = all.into_iter().take(max as usize).collect();
            assert_eq!(window.rows(), first.len(), "seed {seed}");
            assert_eq!(window.end(), first.last().unwrap() + 1);
            for unselected in
                [UnselectedRows::Stay, UnselectedRows::DroppedWhileDecoding, UnselectedRows::Apart]
            {
                let row_spans = window.row_spans(unselected);
                assert_eq!(rows(row_spans), first, "seed {seed}");
                assert_eq!(row_spans.spans.iter().cloned().flatten().count(), row_spans.rows);
            }
            assert_eq!(window.row_spans(UnselectedRows::Stay).rows, window.decoded());
            let often = rng.u8(0..9);
            let flags = (0..window.decoded()).map(|_| rng.u8(0..8) < often);
            let passed: BooleanBuffer = flags.collect();
            let passed = match window.keep() {
                Some(keep) => &passed & keep,
                None => passed,
            };
            let decoded: Vec<u64> = window.spans().iter().cloned().flatten().collect();
            let left: Vec<u64> = passed.set_indices().map(|i| decoded[i]).collect();
            let narrowed = window.narrowed(&passed, true);
            for unselected in
                [UnselectedRows::Stay, UnselectedRows::DroppedWhileDecoding, UnselectedRows::Apart]
            {
                assert_eq!(rows(narrowed.row_spans(unselected)), left, "seed {seed}");
            }
        }
    }
}
