//! [`ValueSource`] provides the values of a chunk while its pages are made; a [`ValueCursor`] goes
//! through them.
//!
//! Values that need not be seen all at once are gathered page by page: they are still in the
//! nearest cache when they are encoded, checked and measured.

use std::ops::Range;

use arrow_schema::DataType;
use bytes::Bytes;

use super::arrays::{WantedSlots, bytes_layout, some_of, values_of};
use super::byte_arrays::ByteRun;
use super::convert::append;
use super::values::LeafValues;
use crate::error::{Error, Result};
use crate::free_lists::FreeLists;
use crate::schema::{Leaf, Physical};
use crate::write::shred::ArrayPart;

/// The values of a leaf.
pub(super) enum ValueSource<'a> {
    /// All of them, gathered.
    Whole(LeafValues<'a>),
    /// Values of arrays, gathered page by page. No array is a dictionary or run-end array.
    Parts(&'a [ArrayPart]),
}

impl<'a> ValueSource<'a> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Parts(parts) => parts.iter().map(values_of).sum(),
        }
    }

    /// Bytes that they take as PLAIN.
    pub(super) fn plain_len(&self, leaf: &Leaf) -> usize {
        let parts = match self {
            Self::Whole(values) => return values.plain_len(0..values.len()),
            Self::Parts(parts) => parts,
        };
        let n = self.len();
        match leaf.physical {
            Physical::Boolean => n.div_ceil(8),
            Physical::Int32 | Physical::Float => n * 4,
            Physical::Int64 | Physical::Double => n * 8,
            Physical::Int96 => n * 12,
            Physical::FixedLenByteArray(width) => n * width,
            Physical::ByteArray => {
                let payload = parts.iter().map(|part| payload(part, leaf));
                n * size_of::<u32>() + payload.sum::<usize>()
            }
        }
    }

    /// The values of some ranges, one after the other.
    ///
    /// # Errors
    /// As [`append`].
    pub(super) fn sample(&self, ranges: &[Range<usize>], leaf: &Leaf) -> Result<LeafValues<'a>> {
        if let Self::Whole(values) = self {
            return values.sample(ranges);
        }
        let mut sample = LeafValues::new(leaf.physical);
        let mut cursor = ValueCursor::new(self, leaf, 0);
        let mut at = 0;
        for range in ranges {
            cursor.step(range.start - at, None)?;
            cursor.step(range.len(), Some(&mut sample))?;
            at = range.end;
        }
        Ok(sample)
    }

    /// A cursor over the values from number `begin` on. One step takes at most `max`.
    ///
    /// # Errors
    /// `Internal` if there are fewer.
    pub(super) fn read<'s>(
        &'s self,
        leaf: &'s Leaf,
        begin: usize,
        max: usize,
    ) -> Result<ValueCursor<'s, 'a>> {
        let mut cursor = ValueCursor::new(self, leaf, max);
        match self {
            Self::Whole(_) => cursor.slot = begin,
            Self::Parts(_) => cursor.step(begin, None)?,
        }
        Ok(cursor)
    }

    /// Returns the memory to its pool.
    pub(super) fn put_back(self, free_lists: &FreeLists) {
        if let Self::Whole(values) = self {
            values.put_back(free_lists);
        }
    }
}

/// Bytes of the byte strings of a part, without lengths.
fn payload(part: &ArrayPart, leaf: &Leaf) -> usize {
    if let DataType::FixedSizeBinary(width) = part.array.data_type() {
        return values_of(part) * usize::try_from(*width).expect("Arrow has no negative width");
    }
    let Some(layout) = bytes_layout(part, leaf) else {
        return 0;
    };
    let mut bytes = 0;
    // `None` for a type without byte strings, which the conversion will refuse.
    let _ = WantedSlots::new(part).for_each_byte_run(layout, |run| {
        bytes += match run {
            ByteRun::Between(_, ends) => ends.bounds().len(),
            ByteRun::One(_, _, len) => len,
        };
        Some(())
    });
    bytes
}

/// Goes through the values of a source.
pub(super) struct ValueCursor<'s, 'a> {
    source: &'s ValueSource<'a>,
    leaf: &'s Leaf,
    /// The position in parts: the part, and the range of its slots.
    part: usize,
    range: usize,
    /// The slot in the range; for `Whole`, the next value.
    slot: usize,
    /// Values of parts: those of the last step, at most `max`.
    gathered: LeafValues<'a>,
    max: usize,
}

impl<'s, 'a> ValueCursor<'s, 'a> {
    fn new(source: &'s ValueSource<'a>, leaf: &'s Leaf, max: usize) -> Self {
        let gathered = LeafValues::new(leaf.physical);
        Self { source, leaf, part: 0, range: 0, slot: 0, gathered, max }
    }

    /// The next `n` values, as a range of those that are given.
    ///
    /// # Errors
    /// As [`append`].
    pub(super) fn next(
        &mut self,
        n: usize,
        free_lists: &FreeLists,
    ) -> Result<(&LeafValues<'a>, Range<usize>)> {
        if let ValueSource::Whole(values) = self.source {
            let range = self.slot..self.slot + n;
            self.slot = range.end;
            return Ok((values, range));
        }
        if let Some(shared) = self.shared(n) {
            std::mem::replace(&mut self.gathered, shared).put_back(free_lists);
            self.step(n, None)?;
            return Ok((&self.gathered, 0..n));
        }
        let mut gathered =
            std::mem::replace(&mut self.gathered, LeafValues::new(self.leaf.physical));
        gathered.clear();
        if gathered.needs_memory() {
            gathered = LeafValues::with_capacity(self.leaf.physical, self.max, free_lists)?;
        }
        self.step(n, Some(&mut gathered))?;
        self.gathered = gathered;
        Ok((&self.gathered, 0..n))
    }

    /// Whether [`ValueCursor::take_bytes`] may return bytes.
    pub(super) fn has_own(&self) -> bool {
        matches!(self.source, ValueSource::Parts(_))
    }

    /// Takes the values of the last step, if their bytes in memory are those of PLAIN. No values
    /// are left.
    pub(super) fn take_bytes(&mut self, free_lists: &FreeLists) -> Option<Bytes> {
        let gathered = &mut self.gathered;
        let lent = gathered.shared_bytes(0..gathered.len());
        lent.or_else(|| gathered.take_bytes(free_lists))
            .filter(|_| matches!(self.source, ValueSource::Parts(_)))
    }

    /// Returns the memory to its pool.
    pub(super) fn put_back(self, free_lists: &FreeLists) {
        self.gathered.put_back(free_lists);
    }

    /// The next `n` values, where they lie end to end in one array as PLAIN has them.
    fn shared(&self, n: usize) -> Option<LeafValues<'a>> {
        let ValueSource::Parts(parts) = self.source else {
            return None;
        };
        let part = parts.get(self.part)?;
        let range = part.slots.get(self.range)?;
        let from = range.start + self.slot;
        if part.nulls.is_some() || range.end - from < n {
            return None;
        }
        LeafValues::shared(part.array.as_ref(), from, n, self.leaf)
    }

    /// Steps over `n` values of parts, and appends them to `out`.
    fn step(&mut self, mut n: usize, mut out: Option<&mut LeafValues<'a>>) -> Result<()> {
        let parts: &'a [ArrayPart] = match self.source {
            ValueSource::Whole(_) => &[],
            ValueSource::Parts(parts) => parts,
        };
        let mut taken: Vec<Range<usize>> = Vec::new();
        while n > 0 {
            let Some(part) = parts.get(self.part) else {
                return Err(Error::internal("fewer values than levels"));
            };
            taken.clear();
            while n > 0
                && let Some(range) = part.slots.get(self.range)
            {
                let rest = range.start + self.slot..range.end;
                let (values, end) = some_of(part, rest.clone(), n);
                n -= values;
                taken.push(rest.start..end);
                if end == range.end {
                    (self.range, self.slot) = (self.range + 1, 0);
                } else {
                    self.slot = end - range.start;
                }
            }
            if let Some(out) = &mut out {
                append(part.array.as_ref(), part.nulls.as_ref(), &taken, self.leaf, out)?;
            }
            if self.range == part.slots.len() {
                (self.part, self.range, self.slot) = (self.part + 1, 0, 0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Int64Array, StringArray};

    use super::*;
    use crate::schema::{FromArrowOptions, from_arrow};

    #[test]
    fn some_at_a_time_are_all_at_once() {
        let seed = 52;
        let mut rng = fastrand::Rng::with_seed(seed);
        for round in 0..60 {
            let percent = [0, 10, 50, 100][round % 4];
            let mut parts = Vec::new();
            let kind = round % 3;
            for _ in 0..rng.usize(1..4) {
                let n = rng.usize(1..300);
                let mut value = |i: usize| (rng.usize(0..100) >= percent).then_some(i);
                let values = (0..n).map(&mut value);
                let array: ArrayRef = match kind {
                    0 => {
                        let texts = values.map(|value| value.map(|i| format!("{i}")));
                        Arc::new(texts.collect::<StringArray>())
                    }
                    1 => {
                        let bytes = values.map(|value| value.map(|i| [i as u8, 1, 2]));
                        Arc::new(
                            FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 3).unwrap(),
                        )
                    }
                    _ => Arc::new(
                        values.map(|value| value.map(|i| i as i64)).collect::<Int64Array>(),
                    ),
                };
                let middle = n / 2;
                let slots = vec![0..middle, middle..n - n / 7];
                parts.push(ArrayPart { nulls: array.nulls().cloned(), array, slots });
            }
            let field = arrow_schema::Field::new("v", parts[0].array.data_type().clone(), true);
            let schema = arrow_schema::Schema::new(vec![field]);
            let leaf =
                from_arrow(&schema, &FromArrowOptions::new()).unwrap().schema.leaf(0).unwrap();
            let free_lists = FreeLists::new(1 << 20);
            let all = super::super::gather::gather(&parts, &leaf, &free_lists).unwrap();
            let super::super::gather::GatheredValues::Plain(all) = all else {
                panic!("nothing is keyed");
            };
            let source = ValueSource::Parts(&parts);
            assert_eq!(source.len(), all.len());
            assert_eq!(source.plain_len(&leaf), all.plain_len(0..all.len()));
            let mut at = rng.usize(0..=all.len());
            let mut reader = source.read(&leaf, at, 50).unwrap();
            while at < all.len() {
                let n = rng.usize(0..50).min(all.len() - at);
                let (gathered, range) = reader.next(n, &free_lists).unwrap();
                let expected = all.sample(std::slice::from_ref(&(at..at + n))).unwrap();
                assert_eq!(gathered.sample(&[range]).unwrap(), expected, "seed {seed}");
                at += n;
            }
            assert!(reader.next(1, &free_lists).is_err(), "more than there are");
            let ranges = [all.len() / 5..all.len() / 3, all.len() / 2..all.len()];
            let sample = source.sample(&ranges, &leaf).unwrap();
            assert_eq!(sample, all.sample(&ranges).unwrap(), "seed {seed}");
        }
    }
}
