//! [`WriteSchedule`] takes batches, and decides what is done next with their rows.
//!
//! It decides how many rows a row group has, by their number, their bytes in the file and the
//! memory, and when a row group that is being encoded must be written before more rows are held. It
//! starts no thread and writes nothing: its caller carries out each [`WriteStep`].

use std::collections::VecDeque;

use arrow_array::RecordBatch;

use super::options::WriteOptions;
use super::row_group::{PendingRowGroup, RowSizes, ShreddedRows};
use crate::bytes::saturated;
use crate::error::Result;

/// The next action.
pub(crate) enum WriteStep {
    /// These rows are a row group, after those of it that were spilled: begin to encode it, and ask
    /// again.
    Encode(PendingRowGroup),
    /// Append these rows of the next row group to a temporary file, report that
    /// ([`WriteSchedule::spilled`]), and ask again.
    Spill(PendingRowGroup),
    /// Wait for the oldest row group that is being encoded, write it, report it
    /// ([`WriteSchedule::encoded`]), and ask again.
    Wait,
    /// Nothing: all rows are held, or in row groups that may wait.
    Done,
}

/// The rows that are not written yet.
pub(crate) struct WriteSchedule {
    /// Maximum rows of a row group.
    max_rows: usize,
    /// Bytes that a row group should have in the file.
    row_group_bytes: u64,
    /// Bytes that the rows that are held, and those that are being encoded, may take.
    memory: u64,
    /// Rows that are looked at next.
    rest: Option<RecordBatch>,
    /// Rows of the next row group.
    pending: PendingRowGroup,
    /// Where rows may spill: those of the next row group that have.
    spilled: Option<SpilledSize>,
    /// Row groups that are being encoded, the oldest first.
    in_flight: VecDeque<GroupSize>,
    size_ratio: SizeRatio,
    /// How the bytes of batches are counted.
    sizes: RowSizes,
}

/// The size of a row group that is being encoded.
#[derive(Debug, Clone, Copy)]
struct GroupSize {
    /// Bytes as Arrow arrays.
    bytes: u64,
    /// The same, with what is made of them.
    memory: u64,
}

/// The size of the rows that are in a temporary file.
#[derive(Debug, Clone, Copy, Default)]
struct SpilledSize {
    rows: usize,
    /// Bytes as Arrow arrays.
    bytes: u64,
    /// Bytes of the leaf that has the most.
    largest_leaf: u64,
}

impl WriteSchedule {
    pub(crate) fn new(options: &WriteOptions, sizes: &RowSizes) -> Self {
        Self {
            max_rows: saturated(options.row_group_rows()),
            row_group_bytes: options.row_group_bytes,
            memory: options.memory / SHARES,
            rest: None,
            pending: PendingRowGroup::default(),
            spilled: options.spill.as_ref().map(|_| SpilledSize::default()),
            in_flight: VecDeque::new(),
            size_ratio: SizeRatio { expected: 0.5, row_groups: Vec::new() },
            sizes: sizes.clone(),
        }
    }

    /// Takes a batch. All steps of the one before must be done.
    pub(crate) fn push(&mut self, batch: RecordBatch) {
        self.rest = (batch.num_rows() > 0).then_some(batch);
    }

    /// The next step, while at most `max_in_flight` row groups are to be encoded beside the rows
    /// that are held.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory for the list of the rows.
    pub(crate) fn next(&mut self, max_in_flight: usize) -> Result<WriteStep> {
        if self.in_flight.len() > max_in_flight {
            return Ok(WriteStep::Wait);
        }
        loop {
            if let Some(spilled) = &self.spilled {
                // Less memory than a share of it makes has no rows either.
                if spilled.rows > 0 && spilled.largest_leaf >= self.memory / LEAF_SHARE {
                    return Ok(self.encode());
                }
                if self.pending.rows() > 0 && self.pending.memory() >= self.memory / HELD_SHARE {
                    return Ok(self.spill());
                }
            }
            let Some(rest) = self.rest.take() else { return Ok(WriteStep::Done) };
            let left = rest.num_rows();
            let Some(take) = self.rows_to_take(&rest) else {
                self.rest = Some(rest);
                return Ok(WriteStep::Wait);
            };
            // A slice holds the buffers of the whole batch, even if it has no row.
            self.rest = (take < left).then(|| rest.slice(take, left - take));
            match take {
                0 => {}
                _ if take == left => self.pending.push(rest, &self.sizes)?,
                _ => self.pending.push(rest.slice(0, take), &self.sizes)?,
            }
            if take < left || self.rows_pending() >= self.max_rows {
                return Ok(self.encode());
            }
        }
    }

    /// Like [`WriteSchedule::next`], if no row is to be held, and no row group to be encoded.
    ///
    /// # Errors
    /// As [`WriteSchedule::next`].
    pub(crate) fn flush(&mut self) -> Result<WriteStep> {
        Ok(match (self.rows_pending(), self.in_flight.is_empty()) {
            (1.., _) => self.encode(),
            (0, false) => WriteStep::Wait,
            (0, true) => WriteStep::Done,
        })
    }

    fn encode(&mut self) -> WriteStep {
        let bytes = self.pending_bytes();
        let pending = std::mem::take(&mut self.pending);
        self.in_flight.push_back(GroupSize { bytes, memory: pending.memory() });
        if let Some(spilled) = &mut self.spilled {
            *spilled = SpilledSize::default();
        }
        WriteStep::Encode(pending)
    }

    /// Spills the rows that are held, once no row group is being encoded.
    fn spill(&mut self) -> WriteStep {
        if !self.in_flight.is_empty() {
            return WriteStep::Wait;
        }
        let pending = std::mem::take(&mut self.pending);
        if let Some(spilled) = &mut self.spilled {
            spilled.rows += pending.rows();
            spilled.bytes += pending.bytes();
        }
        WriteStep::Spill(pending)
    }

    /// Notes that rows are spilled, and the bytes of the leaf that has the most.
    pub(crate) fn spilled(&mut self, largest_leaf: u64) {
        if let Some(spilled) = &mut self.spilled {
            spilled.largest_leaf = largest_leaf;
        }
    }

    /// Notes that the oldest row group is encoded, in `encoded` bytes.
    pub(crate) fn encoded(&mut self, encoded: u64) {
        if let Some(group) = self.in_flight.pop_front() {
            self.size_ratio.add(group.bytes, encoded);
        }
    }

    /// Forgets all rows.
    pub(crate) fn clear(&mut self) {
        self.rest = None;
        self.pending = PendingRowGroup::default();
        self.spilled = self.spilled.map(|_| SpilledSize::default());
        self.in_flight.clear();
    }

    /// How many rows of a batch the row group still takes; `None` if a row group must be written
    /// before that is known, or before there is memory for them.
    fn rows_to_take(&self, rest: &RecordBatch) -> Option<usize> {
        let (left, bytes) = (rest.num_rows(), self.sizes.bytes(rest));
        let may_wait = !self.in_flight.is_empty();
        let is_full = self.pending_bytes() + bytes >= self.row_group_bytes;
        // Until one row group is encoded, the ratio is a guess.
        if is_full && may_wait && self.size_ratio.row_groups.is_empty() {
            return None;
        }
        let width = (bytes / left as u64).max(1);
        let row = RowSize {
            width,
            memory: (self.sizes.memory(rest) / left as u64).max(1),
            expanded: self.sizes.largest_expanded(rest) / left as u64,
        };
        let take = left.min(self.rows_that_fit(row));
        let more = row.memory.saturating_mul(take as u64);
        let in_flight: u64 = self.in_flight.iter().map(|group| group.memory).sum();
        let lacks_memory = in_flight + self.pending.memory() + more > self.memory;
        (take == 0 || !may_wait || !lacks_memory).then_some(take)
    }

    /// How many rows of this size the row group still takes: by its rows, its bytes in the file and
    /// the memory; of rows that may spill, by that of a leaf without a dictionary whose values come
    /// as keys. At least one if it has none.
    fn rows_that_fit(&self, row: RowSize) -> usize {
        let rows_left = self.max_rows.saturating_sub(self.rows_pending());
        let by_memory = match self.spilled {
            // All values of a leaf are written at a time.
            Some(spilled) => {
                let held = spilled.largest_leaf + self.pending.largest_expanded(&self.sizes);
                let left = (self.memory / LEAF_SHARE).saturating_sub(held);
                left.checked_div(row.expanded).unwrap_or(u64::MAX)
            }
            None => self.memory.saturating_sub(self.pending.memory()) / row.memory,
        };
        let by_size = self.row_group_bytes.saturating_sub(self.estimated(self.pending_bytes()))
            / self.estimated(row.width).max(1);
        let fit = saturated(by_memory.min(by_size));
        rows_left.min(fit.max(usize::from(self.rows_pending() == 0)))
    }

    /// Row groups that are being encoded.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Rows that are held for the next row group, or spilled.
    pub(crate) fn rows_pending(&self) -> usize {
        self.pending.rows() + self.spilled.map_or(0, |spilled| spilled.rows)
    }

    /// Their bytes as Arrow arrays.
    fn pending_bytes(&self) -> u64 {
        self.pending.bytes() + self.spilled.map_or(0, |spilled| spilled.bytes)
    }

    /// Bytes of leaves that come back from a temporary file at a time.
    pub(crate) fn bytes_to_unspill(&self) -> u64 {
        self.memory / LEAF_SHARE
    }

    /// Bytes that the rows so far will have in the file, about.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        self.estimated(self.in_flight_bytes() + self.pending_bytes())
    }

    /// Bytes of memory of the rows, and the estimated output of those that are being encoded.
    pub(crate) fn bytes_held(&self) -> u64 {
        let in_flight: u64 = self.in_flight.iter().map(|group| group.memory).sum();
        self.pending.memory() + in_flight + self.estimated(self.in_flight_bytes())
    }

    fn in_flight_bytes(&self) -> u64 {
        self.in_flight.iter().map(|group| group.bytes).sum()
    }

    /// Rows of a batch that become about `bytes` bytes of the file, if they are all alike; at least
    /// 1.
    pub(crate) fn rows_of(&self, batch: &RecordBatch, bytes: u64) -> usize {
        let per_row = self.estimated(self.sizes.bytes(batch)) / (batch.num_rows() as u64).max(1);
        usize::try_from(bytes / per_row.max(1)).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Encoded bytes for each byte of Arrow arrays, as far as is known.
    pub(crate) fn ratio(&self) -> f64 {
        self.size_ratio.ratio(self.size_ratio.row_groups.len() + self.in_flight.len())
    }

    /// Sets the ratio that is expected, as another file with similar rows had it.
    pub(crate) fn expect_ratio(&mut self, ratio: f64) {
        self.size_ratio.expected = ratio;
    }

    /// Bytes in the file that `bytes` bytes of Arrow arrays become.
    fn estimated(&self, bytes: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, never negative"
        )]
        let estimate = (bytes as f64 * self.ratio()) as u64;
        estimate
    }
}

/// Encoded bytes for each byte of Arrow arrays, in the row groups so far.
#[derive(Debug)]
struct SizeRatio {
    /// The expected value before any is known.
    expected: f64,
    /// Bytes as Arrow arrays and in the file, both summed up from the first row group on.
    row_groups: Vec<(u64, u64)>,
}

impl SizeRatio {
    fn add(&mut self, bytes: u64, encoded: u64) {
        // Before the first row group, nothing was measured.
        let (before, encoded_before) = self.row_groups.last().copied().unwrap_or_default();
        self.row_groups.push((before + bytes, encoded_before + encoded));
    }

    /// The ratio for row group `next`. It counts only row groups that are encoded by then with any
    /// number of threads, so that the file is the same for any number. At most 1, so that no row
    /// group ends before its Arrow arrays have the bytes that are wanted.
    fn ratio(&self, next: usize) -> f64 {
        let known = next.saturating_sub(MAX_IN_FLIGHT + 1);
        let ratio = self
            .row_groups
            .get(known)
            .map_or(self.expected, |&(bytes, encoded)| encoded as f64 / bytes.max(1) as f64);
        ratio.min(1.0)
    }
}

/// The size of a row, if all rows of its batch are alike.
#[derive(Debug, Clone, Copy)]
struct RowSize {
    /// Bytes as Arrow arrays.
    width: u64,
    /// The same, and its levels.
    memory: u64,
    /// Bytes in the column that has the most among those whose values are written for each row.
    expanded: u64,
}

/// Maximum row groups that are encoded at a time beside the rows that are held, with any number of
/// threads, because the size of row group `n` must be known when row group `n + 1 + MAX_IN_FLIGHT`
/// is begun.
pub(crate) const MAX_IN_FLIGHT: usize = 8;

/// Shares of the memory, because a row group takes three times its bytes: its rows, what they
/// become, and its bytes in the file.
const SHARES: u64 = 3;

/// The part of a share that rows take before they spill: a batch comes as a whole, and there may be
/// another one that the caller makes meanwhile.
const HELD_SHARE: u64 = 2;

/// The part of a share that leaves take when they come back, because there are also their extents,
/// and what they become.
const LEAF_SHARE: u64 = 3;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::{ArrayRef, Int64Array, StringArray, StringViewArray};

    use super::*;
    use crate::error::Error;
    use crate::write::{SpillFile, SpillStore};

    #[test]
    fn a_batch_is_let_go_once_its_rows_are_taken() {
        for rows in [0, 1000, 2500] {
            let column = Int64Array::from_iter_values(0..rows);
            let buffer = column.values().inner().clone();
            let options = WriteOptions::default().with_row_group_rows(1000);
            let mut schedule = WriteSchedule::new(&options, &RowSizes::default());
            schedule.push(RecordBatch::try_from_iter([("n", Arc::new(column) as _)]).unwrap());
            for next in [|schedule: &mut WriteSchedule| schedule.next(9), WriteSchedule::flush] {
                while let Ok(WriteStep::Encode(rows)) = next(&mut schedule) {
                    drop(rows);
                }
            }
            assert_eq!(buffer.strong_count(), 1, "{rows} rows");
        }
    }

    /// The rows of each row group, and how many were being encoded when the last of them came.
    fn row_groups(options: &WriteOptions, max_in_flight: usize, batches: &[i64]) -> Vec<usize> {
        let mut schedule = WriteSchedule::new(options, &RowSizes::default());
        let (mut sizes, mut spilled) = (Vec::new(), 0);
        let mut run = |schedule: &mut WriteSchedule,
                       next: &dyn Fn(&mut WriteSchedule) -> Result<_>| {
            loop {
                match next(schedule).unwrap() {
                    WriteStep::Encode(rows) => {
                        sizes.push(std::mem::take(&mut spilled) + rows.rows());
                    }
                    WriteStep::Spill(rows) => {
                        assert_eq!(schedule.in_flight(), 0, "they take memory, too");
                        spilled += rows.rows();
                        schedule.spilled(8 * spilled as u64);
                    }
                    WriteStep::Wait => schedule.encoded(400),
                    WriteStep::Done => return,
                }
                assert!(schedule.in_flight() <= max_in_flight + 1);
            }
        };
        for &rows in batches {
            let column = Arc::new(Int64Array::from_iter_values(0..rows));
            schedule.push(RecordBatch::try_from_iter([("n", column as _)]).unwrap());
            run(&mut schedule, &|schedule| schedule.next(max_in_flight));
        }
        run(&mut schedule, &WriteSchedule::flush);
        assert_eq!((schedule.in_flight(), schedule.rows_pending()), (0, 0));
        sizes
    }

    #[test]
    fn row_groups_end_by_rows_by_bytes_and_by_memory() {
        let options = WriteOptions::new().with_row_group_rows(100);
        assert_eq!(row_groups(&options, 0, &[250, 0, 30]), [100, 100, 80]);
        // A guess of 1 in 2, then what was measured: 400 bytes of the 800 of 100 rows.
        let options = WriteOptions::new().with_row_group_bytes(400);
        assert_eq!(row_groups(&options, 0, &[250]), [100, 100, 50]);
        let options = WriteOptions::new().with_memory(3 * 8 * 64);
        assert_eq!(row_groups(&options, 0, &[150]), [64, 64, 22]);
    }

    #[derive(Debug)]
    struct Nowhere;

    impl SpillStore for Nowhere {
        fn create(&self) -> Result<Box<dyn SpillFile>> {
            Err(Error::internal("nothing is written here"))
        }
    }

    #[test]
    fn rows_that_spill_end_by_the_memory_of_a_leaf() {
        // The memory holds 20 of these rows before they spill, and a leaf of fewer than that.
        let memory = 8 * 20 * SHARES * HELD_SHARE;
        let options = WriteOptions::new().with_memory(memory).with_spill(Nowhere);
        assert_eq!(row_groups(&options, 0, &[10; 30]), [20; 15]);
    }

    #[test]
    fn rows_of_long_views_end_row_groups_as_those_of_long_strings_do() {
        let text = "x".repeat(1000);
        let texts = || std::iter::repeat_n(text.as_str(), 100);
        let batch = |column: ArrayRef| RecordBatch::try_from_iter([("text", column)]).unwrap();
        let strings = batch(Arc::new(StringArray::from_iter_values(texts())));
        let views = batch(Arc::new(StringViewArray::from_iter_values(texts())));
        let options = WriteOptions::new().with_memory(SHARES * 10_500);
        let rows = |batch: &RecordBatch| {
            let mut schedule = WriteSchedule::new(&options, &RowSizes::default());
            schedule.push(batch.clone());
            let Ok(WriteStep::Encode(rows)) = schedule.next(0) else { panic!("a row group") };
            rows.rows()
        };
        assert_eq!((rows(&strings), rows(&views)), (10, 10));
    }

    #[test]
    fn slices_of_lists_make_row_groups_of_one_size() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        (0..1000).for_each(|_| {
            (0..25).for_each(|i| lists.values().append_value(i));
            lists.append(true);
        });
        let batch = RecordBatch::try_from_iter([("list", Arc::new(lists.finish()) as _)]).unwrap();
        let options = WriteOptions::new().with_row_group_bytes(20_000);
        let mut schedule = WriteSchedule::new(&options, &RowSizes::default());
        schedule.push(batch);
        let (mut sizes, mut encoded) = (Vec::<usize>::new(), 0);
        for next in [|schedule: &mut WriteSchedule| schedule.next(9), WriteSchedule::flush] {
            loop {
                match next(&mut schedule).unwrap() {
                    WriteStep::Encode(rows) => sizes.push(rows.rows()),
                    WriteStep::Wait => {
                        schedule.encoded(sizes[encoded] as u64 * 100);
                        encoded += 1;
                    }
                    WriteStep::Spill(_) => panic!("there is no place to spill"),
                    WriteStep::Done => break,
                }
            }
        }
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert!(sizes.len() <= 6 && sizes[..5].iter().all(|rows| *rows > 190), "{sizes:?}");
    }

    #[test]
    fn memory_for_less_than_a_row_still_ends_with_all_rows() {
        let options = WriteOptions::new().with_memory(1).with_spill(Nowhere);
        assert_eq!(row_groups(&options, 0, &[3, 0, 1]).iter().sum::<usize>(), 4);
    }

    #[test]
    fn row_groups_are_the_same_however_many_are_encoded_at_a_time() {
        for options in [
            WriteOptions::new().with_row_group_bytes(1000),
            WriteOptions::new().with_memory(20_000),
            WriteOptions::new().with_memory(20_000).with_spill(Nowhere),
            WriteOptions::new().with_row_group_rows(333),
        ] {
            let alone = row_groups(&options, 0, &[5000, 10, 7000]);
            assert_eq!(alone.iter().sum::<usize>(), 12_010);
            for max_in_flight in [1, 3, MAX_IN_FLIGHT] {
                assert_eq!(row_groups(&options, max_in_flight, &[5000, 10, 7000]), alone);
            }
        }
    }
}
