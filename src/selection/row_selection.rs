//! [`RowSelection`] and its algebra.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, MutableBuffer};

use super::runs::Runs;
use crate::bytes::saturated;
use crate::error::{Error, LimitKind, Result};

/// Selects some of the rows 0 to [`len`](RowSelection::len). Cheap to clone.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::RowSelection;
///
/// let wanted = RowSelection::from_ranges(100, [10..20, 50..60])?;
/// let odd = RowSelection::from_rows(100, (1..100).step_by(2))?;
/// let both = wanted.and(&odd)?;
/// assert_eq!(both.count(), 10);
/// assert_eq!(both.limit(2).rows().collect::<Vec<_>>(), [11, 13]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RowSelection {
    len: u64,
    count: u64,
    pub(super) form: Form,
}

/// The form is decided by the rows alone, so that equal selections are equal in form.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// Ascending, none empty, no two touching.
    Runs(Arc<[Range<u64>]>),
    /// One bit a row.
    Bits(BooleanBuffer),
}

/// A run takes as much memory as this many bits.
const BITS_OF_A_RUN: u64 = 8 * size_of::<Range<u64>>() as u64;

impl RowSelection {
    /// Selects all of `len` rows.
    pub fn all(len: u64) -> Self {
        let mut builder = Builder::new(len);
        builder.push(0..len);
        builder.finish()
    }

    /// Selects none of `len` rows.
    pub fn none(len: u64) -> Self {
        Builder::new(len).finish()
    }

    /// Selects the rows of ranges, which must ascend and not overlap, of `len` rows.
    ///
    /// # Errors
    /// `Usage` if a range begins before the previous one ends, or ends after the last row.
    pub fn from_ranges(len: u64, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Self> {
        let mut builder = Builder::new(len);
        let mut end = 0;
        for range in ranges {
            if range.start < end || range.end < range.start || range.end > len {
                return Err(Error::usage(format_args!(
                    "a selection of {len} rows: the range {range:?} follows row {end}; ranges ascend, and end within the rows"
                )));
            }
            end = range.end;
            builder.push(range);
        }
        Ok(builder.finish())
    }

    /// Selects the rows of ranges that ascend and end within the `len` rows, in no more memory than
    /// bits take, twice.
    pub(crate) fn from_ascending(len: u64, mut ranges: impl Iterator<Item = Range<u64>>) -> Self {
        let mut builder = Builder::new(len);
        for range in ranges.by_ref() {
            builder.push(range);
            if Form::prefers_bits(len, builder.runs.len() as u64) {
                let Builder { mut count, runs, .. } = builder;
                let bits = BooleanBufferBuilder::new(saturated(len));
                let rest = ranges.inspect(|range| count += range.end - range.start);
                let form = Form::Bits(set_bits(bits, len, runs.into_iter().chain(rest)));
                return Self { len, count, form };
            }
        }
        builder.finish()
    }

    /// Selects the rows with these numbers, ascending, of `len` rows; a repeated number counts
    /// once.
    ///
    /// # Errors
    /// `Usage` if a number is smaller than the previous one, or not a row.
    pub fn from_rows(len: u64, rows: impl IntoIterator<Item = u64>) -> Result<Self> {
        let mut builder = Builder::new(len);
        let mut least = 0;
        for row in rows {
            if row < least || row >= len {
                return Err(Error::usage(format_args!(
                    "a selection of {len} rows: row {row} follows row {least}; row numbers ascend, and are less than the rows"
                )));
            }
            least = row;
            builder.push(row..row + 1);
        }
        Ok(builder.finish())
    }

    /// Selects the rows whose bits are set.
    pub fn from_bits(bits: BooleanBuffer) -> Self {
        let (len, count) = (bits.len() as u64, bits.count_set_bits() as u64);
        if Form::prefers_bits(len, number_of_runs(&bits)) {
            return Self { len, count, form: Form::Bits(bits) };
        }
        let runs = bits.set_slices().map(|(start, end)| start as u64..end as u64).collect();
        Self { len, count, form: Form::Runs(runs) }
    }

    /// Whether a selection of this many runs is held as bits.
    pub(super) fn prefers_bits(len: u64, runs: u64) -> bool {
        Form::prefers_bits(len, runs)
    }

    /// Number of rows that the selection covers, selected or not.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the selection covers no rows at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of selected rows.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether every row is selected.
    pub fn is_all(&self) -> bool {
        self.count == self.len
    }

    /// Whether no row is selected.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// The runs of selected rows: ascending, none empty, no two adjacent.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        match &self.form {
            Form::Runs(runs) => Runs::from_ranges(runs),
            Form::Bits(bits) => Runs::from_bits(bits),
        }
    }

    /// The numbers of the selected rows, ascending.
    pub fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs().flatten()
    }

    /// From the first row that is wanted to the one after the last; `0..0` if there is none.
    pub(crate) fn hull(&self) -> Range<u64> {
        match &self.form {
            Form::Runs(runs) => match (runs.first(), runs.last()) {
                (Some(first), Some(last)) => first.start..last.end,
                _ => 0..0,
            },
            Form::Bits(bits) => {
                let ends = bits.set_indices().next().zip(last_end(bits));
                ends.map_or(0..0, |(first, end)| first as u64..end as u64)
            }
        }
    }

    /// Whether a row of `range` is wanted.
    pub(crate) fn intersects(&self, range: Range<u64>) -> bool {
        self.runs_from(range.start).next().is_some_and(|run| run.start < range.end)
    }

    /// Converts the selection to bits: one for each row, however few runs there are.
    ///
    /// # Errors
    /// `Limit(Memory)` if that much memory cannot be allocated.
    pub fn to_bits(&self) -> Result<BooleanBuffer> {
        let runs = match &self.form {
            Form::Bits(bits) => return Ok(bits.clone()),
            Form::Runs(runs) => runs,
        };
        let byte_len = self.len.div_ceil(8);
        let mut bytes: Vec<u8> = Vec::new();
        let fits = usize::try_from(self.len).is_ok()
            && bytes.try_reserve_exact(saturated(byte_len)).is_ok();
        if !fits {
            return Err(Error::limit(
                LimitKind::Memory,
                format_args!(
                    "a selection of {} rows takes {byte_len} bytes as bits; its runs take less",
                    self.len
                ),
            ));
        }
        let bits = BooleanBufferBuilder::new_from_buffer(MutableBuffer::from(bytes), 0);
        Ok(set_bits(bits, self.len, runs.iter().cloned()))
    }

    /// Selects the rows that both select.
    ///
    /// # Errors
    /// `Usage` if their lengths differ.
    pub fn and(&self, other: &Self) -> Result<Self> {
        self.same_len(other)?;
        match (&self.form, &other.form) {
            _ if other.is_all() => return Ok(self.clone()),
            _ if self.is_all() => return Ok(other.clone()),
            (Form::Bits(a), Form::Bits(b)) => return Ok(Self::from_bits(a & b)),
            (Form::Bits(bits), Form::Runs(runs)) | (Form::Runs(runs), Form::Bits(bits)) => {
                let builder = BooleanBufferBuilder::new(bits.len());
                let other = set_bits(builder, self.len, runs.iter().cloned());
                return Ok(Self::from_bits(bits & &other));
            }
            (Form::Runs(_), Form::Runs(_)) => {}
        }
        let mut builder = Builder::new(self.len);
        let (mut left, mut right) = (self.runs(), other.runs());
        let (mut a, mut b) = (left.next(), right.next());
        while let (Some(x), Some(y)) = (&a, &b) {
            builder.push(x.start.max(y.start)..x.end.min(y.end));
            if x.end <= y.end { a = left.next() } else { b = right.next() }
        }
        Ok(builder.finish())
    }

    /// Selects the rows that either selects.
    ///
    /// # Errors
    /// As [`RowSelection::and`].
    pub fn or(&self, other: &Self) -> Result<Self> {
        self.same_len(other)?;
        if let (Form::Bits(a), Form::Bits(b)) = (&self.form, &other.form) {
            return Ok(Self::from_bits(a | b));
        }
        let mut builder = Builder::new(self.len);
        let (mut left, mut right) = (self.runs().peekable(), other.runs().peekable());
        loop {
            let from_left = match (left.peek(), right.peek()) {
                (Some(x), Some(y)) => x.start <= y.start,
                (left, None) => left.is_some(),
                (None, Some(_)) => false,
            };
            match if from_left { left.next() } else { right.next() } {
                Some(run) => builder.push(run),
                None => return Ok(builder.finish()),
            }
        }
    }

    /// Selects the rows that are not selected.
    #[must_use]
    pub fn not(&self) -> Self {
        if let Form::Bits(bits) = &self.form {
            return Self::from_bits(!bits);
        }
        let mut builder = Builder::new(self.len);
        let mut at = 0;
        for run in self.runs() {
            builder.push(at..run.start);
            at = run.end;
        }
        builder.push(at..self.len);
        builder.finish()
    }

    /// Selects within the selected rows: `inner` says, in order, which of them stay.
    ///
    /// # Errors
    /// `Usage` if the length of `inner` is not the number of selected rows.
    pub fn and_then(&self, inner: &Self) -> Result<Self> {
        if inner.len != self.count {
            return Err(Error::usage(format_args!(
                "a selection of {} rows within one that wants {}",
                inner.len, self.count
            )));
        }
        let mut builder = Builder::new(self.len);
        let mut outer = self.runs();
        // The current outer run, and the number of its first row among those wanted.
        let (mut run, mut first) = (outer.next(), 0u64);
        for wanted in inner.runs() {
            let mut at = wanted.start;
            while at < wanted.end {
                let Some(Range { start, end }) = run.clone() else { break };
                let run_end = first + (end - start);
                if at >= run_end {
                    (run, first) = (outer.next(), run_end);
                    continue;
                }
                let until = wanted.end.min(run_end);
                builder.push(start + (at - first)..start + (until - first));
                at = until;
            }
        }
        Ok(builder.finish())
    }

    /// Drops the first `rows` selected rows.
    #[must_use]
    pub fn offset(&self, rows: u64) -> Self {
        if rows == 0 {
            return self.clone();
        }
        let mut builder = Builder::new(self.len);
        let mut left = rows;
        for run in self.runs() {
            let skipped = left.min(run.end - run.start);
            left -= skipped;
            builder.push(run.start + skipped..run.end);
        }
        builder.finish()
    }

    /// Keeps only the first `rows` selected rows.
    #[must_use]
    pub fn limit(&self, rows: u64) -> Self {
        if rows >= self.count {
            return self.clone();
        }
        let mut builder = Builder::new(self.len);
        let mut left = rows;
        for run in self.runs() {
            if left == 0 {
                break;
            }
            let taken = left.min(run.end - run.start);
            left -= taken;
            builder.push(run.start..run.start + taken);
        }
        builder.finish()
    }

    /// With the rows of gaps between runs that are at most `rows` long.
    #[must_use]
    pub(crate) fn without_gaps(&self, rows: u64) -> Self {
        let mut builder = Builder::new(self.len);
        let Range { mut start, end } = self.hull();
        match &self.form {
            Form::Runs(runs) => {
                for (before, run) in runs.iter().zip(runs.iter().skip(1)) {
                    if run.start - before.end > rows {
                        builder.push(start..before.end);
                        start = run.start;
                    }
                }
            }
            Form::Bits(bits) => {
                for gap in long_gaps(bits, saturated(rows).saturating_add(1)) {
                    if gap.start > start && gap.end <= end {
                        builder.push(start..gap.start);
                        start = gap.end;
                    }
                }
            }
        }
        builder.push(start..end);
        builder.finish()
    }

    /// The selection of the rows of `range`, which are then counted from 0; rows after the last are
    /// left out.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Self {
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        if let Form::Bits(bits) = &self.form
            && let (Ok(start), Ok(len)) = (usize::try_from(start), usize::try_from(end - start))
        {
            return Self::from_bits(bits.slice(start, len));
        }
        let mut builder = Builder::new(end - start);
        for run in self.runs_from(start) {
            if run.start >= end {
                break;
            }
            builder.push(run.start.max(start) - start..run.end.min(end) - start);
        }
        builder.finish()
    }

    /// Splits the selection into that of the rows before `row`, and that of the rows from it on.
    #[cfg(test)]
    pub(crate) fn split_at(&self, row: u64) -> (Self, Self) {
        (self.slice(0..row), self.slice(row..self.len))
    }

    /// Concatenates selections.
    ///
    /// # Errors
    /// `Usage` if they cover more rows together than a `u64` can count.
    pub fn concat(parts: impl IntoIterator<Item = Self>) -> Result<Self> {
        let mut builder = Builder::new(0);
        for part in parts {
            let first = builder.len;
            builder.len = first.checked_add(part.len).ok_or_else(|| {
                Error::usage(format_args!(
                    "selections of {first} and of {} rows: together they speak of more than {}",
                    part.len,
                    u64::MAX
                ))
            })?;
            part.runs().for_each(|run| builder.push(first + run.start..first + run.end));
        }
        Ok(builder.finish())
    }

    /// The runs from the one that holds `row` or follows it; that one may begin before `row`.
    pub(crate) fn runs_from(&self, row: u64) -> Runs<'_> {
        match &self.form {
            Form::Runs(runs) => {
                let first = runs.partition_point(|run| run.end <= row);
                Runs::from_ranges(&runs[first..])
            }
            Form::Bits(bits) => Runs::from_bits_after(bits, row),
        }
    }

    fn same_len(&self, other: &Self) -> Result<()> {
        if self.len == other.len {
            return Ok(());
        }
        Err(Error::usage(format_args!(
            "selections of {} and of {} rows cannot be combined",
            self.len, other.len
        )))
    }
}

impl Form {
    /// Whether bits take less memory than runs, and can be held at all.
    fn prefers_bits(len: u64, runs: u64) -> bool {
        runs.saturating_mul(BITS_OF_A_RUN) > len && usize::try_from(len).is_ok()
    }
}

impl std::fmt::Debug for RowSelection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} rows: ", self.count, self.len)?;
        f.debug_list().entries(self.runs().take(20)).finish()
    }
}

/// Joins runs that come in order, and chooses the form.
struct Builder {
    len: u64,
    count: u64,
    runs: Vec<Range<u64>>,
}

impl Builder {
    fn new(len: u64) -> Self {
        Self { len, count: 0, runs: Vec::new() }
    }

    /// Adds a run that begins where those so far end, before it or after it, but not before the
    /// last one begins.
    fn push(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        match self.runs.last_mut() {
            Some(last) if run.start <= last.end => {
                self.count += run.end.saturating_sub(last.end);
                last.end = last.end.max(run.end);
            }
            _ => {
                self.count += run.end - run.start;
                self.runs.push(run);
            }
        }
    }

    fn finish(self) -> RowSelection {
        let Self { len, count, runs } = self;
        let form = if Form::prefers_bits(len, runs.len() as u64) {
            // No more bytes than the runs take.
            let bits = BooleanBufferBuilder::new(saturated(len));
            Form::Bits(set_bits(bits, len, runs.into_iter()))
        } else {
            Form::Runs(runs.into())
        };
        RowSelection { len, count, form }
    }
}

/// The words of bits, and the last one filled up with zeros.
fn words(bits: &BooleanBuffer) -> impl Iterator<Item = u64> + '_ {
    let chunks = bits.bit_chunks();
    chunks.iter().chain((chunks.remainder_len() > 0).then(|| chunks.remainder_bits()))
}

/// How many runs of set bits there are.
fn number_of_runs(bits: &BooleanBuffer) -> u64 {
    let mut before = 0;
    let starts = words(bits).map(|word| {
        let starts = word & !(word << 1 | before >> 63);
        before = word;
        u64::from(starts.count_ones())
    });
    starts.sum()
}

/// The end of the last run of set bits.
fn last_end(bits: &BooleanBuffer) -> Option<usize> {
    let mut end = bits.len();
    loop {
        let start = end.checked_sub(1)? & !1023;
        if let Some((_, last)) = bits.slice(start, end - start).set_slices().last() {
            return Some(start + last);
        }
        end = start;
    }
}

/// The runs of at least `min` bits that are not set; one at the end may be missing, or shorter.
fn long_gaps(bits: &BooleanBuffer, min: usize) -> impl Iterator<Item = Range<u64>> {
    // Bit i of `begins`: of the bits from i on, `len` are not set.
    let mut begins: Vec<u64> = words(bits).map(|word| !word).collect();
    let mut len = 1;
    while len < min.min(bits.len()) {
        let step = len.min(min - len);
        let far = step / 64;
        let near = u32::try_from(step % 64).unwrap_or(0);
        for i in 0..begins.len() {
            let word = |i: usize| begins.get(i).copied().unwrap_or(0);
            let next = word(i + far + 1).checked_shl(64 - near).unwrap_or(0);
            let shifted = word(i + far) >> near | next;
            if let Some(word) = begins.get_mut(i) {
                *word &= shifted;
            }
        }
        len += step;
    }
    if len < min {
        begins.clear();
    }
    let covered = bits.len().min(begins.len() * 64);
    let begins = BooleanBuffer::new(begins.into(), 0, covered);
    let runs: Vec<_> = begins.set_slices().collect();
    runs.into_iter().map(move |(first, end)| first as u64..(end - 1 + min) as u64)
}

/// Sets the bits of `runs` among those of `len` rows; `bits` is empty, and has the capacity for
/// them.
fn set_bits(
    mut bits: BooleanBufferBuilder,
    len: u64,
    runs: impl Iterator<Item = Range<u64>>,
) -> BooleanBuffer {
    for run in runs {
        bits.append_n(saturated(run.start) - bits.len(), false);
        bits.append_n(saturated(run.end - run.start), true);
    }
    bits.append_n(saturated(len) - bits.len(), false);
    bits.finish()
}
