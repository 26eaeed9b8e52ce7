//! [`Arrays`] finds the slots of arrays that hold values, some at a time.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::{ArrayData, ByteView};
use arrow_schema::DataType;

use super::byte_arrays::{ByteRun, Ends};
use crate::schema::Leaf;
use crate::schema::convert::{BytesLayout, WriteConversion, write_conversion};
use crate::write::shred::ArrayPart;

/// Maximum values in 64 slots that are looked for one by one, because with more it is faster to
/// visit all slots.
const MAX_SPARSE: u32 = 12;

/// The slots of an array that are wanted.
#[derive(Clone, Copy)]
pub(in crate::write) struct WantedSlots<'a, 'b> {
    pub(super) array: &'a dyn Array,
    pub(super) nulls: Option<&'b NullBuffer>,
    pub(super) slots: &'b [Range<usize>],
}

impl<'a> WantedSlots<'a, 'a> {
    pub(in crate::write) fn new(part: &'a ArrayPart) -> Self {
        Self { array: part.array.as_ref(), nulls: part.nulls.as_ref(), slots: &part.slots }
    }
}

impl<'a> WantedSlots<'a, '_> {
    /// Calls `visit` with every run of slots that hold a value.
    pub(in crate::write) fn for_each_run(&self, mut visit: impl FnMut(Range<usize>)) {
        for range in self.slots {
            match self.nulls {
                None => visit(range.clone()),
                Some(nulls) => {
                    let bits = nulls.inner().slice(range.start, range.len());
                    for (start, end) in bits.set_slices() {
                        visit(range.start + start..range.start + end);
                    }
                }
            }
        }
    }

    pub(super) fn data(&self) -> ArrayData {
        self.array.to_data()
    }

    /// Calls `visit` with every value.
    pub(super) fn each<T: ArrowNativeType>(&self, mut visit: impl FnMut(T)) {
        let data = self.data();
        self.for_each_some(data.buffer::<T>(0), |some| some.iter().for_each(|value| visit(*value)));
    }

    /// Calls `visit` with the values, some at a time and without nulls: as slices of the array, or
    /// copied together.
    pub(super) fn for_each_some<T: ArrowNativeType>(
        &self,
        values: &[T],
        mut visit: impl FnMut(&[T]),
    ) {
        for range in self.slots {
            let Some(nulls) = self.nulls else {
                visit(values.get(range.clone()).expect("slots lie within their array"));
                continue;
            };
            let bits = nulls.inner().slice(range.start, range.len());
            let chunks = bits.bit_chunks();
            let words = chunks.iter().chain(std::iter::once(chunks.remainder_bits()));
            for (start, mut word) in range.clone().step_by(64).zip(words) {
                let some = values
                    .get(start..range.end.min(start + 64))
                    .expect("slots lie within their array");
                if word.count_ones() as usize == some.len() {
                    visit(some);
                    continue;
                }
                let mut kept = [T::default(); 64];
                let mut n = 0;
                if word.count_ones() < MAX_SPARSE {
                    while word != 0 {
                        let at = word.trailing_zeros() as usize;
                        kept[n % 64] = *some.get(at).expect("a word has a bit for each slot");
                        n += 1;
                        word &= word - 1;
                    }
                } else {
                    // Each value is written where the next one belongs, and stays if it is one: no
                    // branch to be guessed wrong.
                    for (i, value) in some.iter().enumerate() {
                        kept[n % 64] = *value;
                        n += (word >> i & 1) as usize;
                    }
                }
                visit(kept.get(..n).expect("a word has 64 bits"));
            }
        }
    }

    /// Visits the byte strings, by runs that lie in one buffer, until a visit returns `None`, which
    /// is returned; also if the array has another type than `layout`.
    #[inline(always)]
    pub(super) fn for_each_byte_run(
        &self,
        layout: BytesLayout,
        mut visit: impl FnMut(ByteRun<'a>) -> Option<()>,
    ) -> Option<()> {
        let mut should_continue = Some(());
        match layout {
            BytesLayout::Offsets32 => {
                let (ends, bytes) = ends_of::<i32>(self.array)?;
                self.for_each_run(|run| {
                    should_continue = should_continue.and_then(|()| {
                        visit(ByteRun::Between(bytes, Ends::Small(ends.get(run.start..=run.end)?)))
                    });
                });
            }
            BytesLayout::Offsets64 => {
                let (ends, bytes) = ends_of::<i64>(self.array)?;
                self.for_each_run(|run| {
                    should_continue = should_continue.and_then(|()| {
                        visit(ByteRun::Between(bytes, Ends::Large(ends.get(run.start..=run.end)?)))
                    });
                });
            }
            BytesLayout::Views => {
                let (views, buffers) = match self.array.data_type() {
                    DataType::Utf8View => {
                        let array = self.array.as_string_view_opt()?;
                        (array.views(), array.data_buffers())
                    }
                    _ => {
                        let array = self.array.as_binary_view_opt()?;
                        (array.views(), array.data_buffers())
                    }
                };
                let inline = views.inner().as_slice();
                self.for_each_run(|run| {
                    for (i, view) in run.clone().zip(&views[run]) {
                        let of = ByteView::from(*view);
                        let len = of.length as usize;
                        should_continue = should_continue.and_then(|()| {
                            if len <= 12 {
                                // After the four bytes of its length.
                                return visit(ByteRun::One(inline, i * 16 + 4, len));
                            }
                            let buffer = buffers.get(of.buffer_index as usize)?.as_slice();
                            visit(ByteRun::One(buffer, of.offset as usize, len))
                        });
                    }
                });
            }
        }
        should_continue
    }
}

/// The offsets and the bytes of an array of strings or byte strings.
fn ends_of<O: OffsetSizeTrait>(array: &dyn Array) -> Option<(&[O], &[u8])> {
    if let Some(array) = array.as_string_opt::<O>() {
        return Some((array.value_offsets(), array.value_data()));
    }
    let array = array.as_binary_opt::<O>()?;
    Some((array.value_offsets(), array.value_data()))
}

/// How many values a part has.
pub(in crate::write) fn values_of(part: &ArrayPart) -> usize {
    let slots = part.slots.iter();
    match &part.nulls {
        None => slots.map(Range::len).sum(),
        Some(nulls) => slots.map(|s| s.len() - nulls.slice(s.start, s.len()).null_count()).sum(),
    }
}

/// The slots of a range that hold the next `n` values, or all values if there are fewer: how many
/// values they hold, and where the slots end.
pub(super) fn some_of(part: &ArrayPart, slots: Range<usize>, n: usize) -> (usize, usize) {
    if n == 0 {
        return (0, slots.start);
    }
    let Some(nulls) = &part.nulls else {
        let gathered = slots.len().min(n);
        return (gathered, slots.start + gathered);
    };
    let values =
        |slots: Range<usize>| nulls.inner().slice(slots.start, slots.len()).count_set_bits();
    let all = values(slots.clone());
    if all <= n {
        return (all, slots.end);
    }
    // Binary search for the slot after the last wanted value.
    let (mut at, mut end, mut left) = (slots.start, slots.end, n);
    while end - at > 1 {
        let middle = at + (end - at) / 2;
        let before = values(at..middle);
        if before < left {
            left -= before;
            at = middle;
        } else {
            end = middle;
        }
    }
    (n, end)
}

/// Calls `visit` with the slots of the parts that hold the values of a range, until it returns
/// `None`, which is returned.
pub(super) fn for_each_part<'a>(
    parts: &'a [ArrayPart],
    values: Range<usize>,
    mut visit: impl FnMut(&'a ArrayPart, WantedSlots<'a, '_>) -> Option<()>,
) -> Option<()> {
    let mut begin = 0;
    for part in parts {
        if begin >= values.end {
            break;
        }
        let of_part = begin..begin + values_of(part);
        begin = of_part.end;
        let of_both = of_part.start.max(values.start)..of_part.end.min(values.end);
        if of_both == of_part {
            visit(part, WantedSlots::new(part))?;
        } else if !of_both.is_empty() {
            let skipped = of_both.start - of_part.start;
            let slots = slots_of(part, skipped, of_both.len());
            visit(part, WantedSlots { slots: &slots, ..WantedSlots::new(part) })?;
        }
    }
    Some(())
}

/// The slots of a part that hold `n` values, after those that are skipped.
fn slots_of(part: &ArrayPart, mut skipped: usize, mut n: usize) -> Vec<Range<usize>> {
    let mut slots = Vec::new();
    for range in &part.slots {
        let (values, start) = some_of(part, range.clone(), skipped);
        skipped -= values;
        let (values, end) = some_of(part, start..range.end, n);
        n -= values;
        if start < end {
            slots.push(start..end);
        }
    }
    slots
}

/// The layout of the byte strings of a part, if it has some that are stored as they are.
pub(super) fn bytes_layout(part: &ArrayPart, leaf: &Leaf) -> Option<BytesLayout> {
    match write_conversion(part.array.data_type(), leaf)? {
        WriteConversion::Bytes { layout } => Some(layout),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn the_values_of_ranges_are_all_values() {
        let seed = 71;
        let mut rng = fastrand::Rng::with_seed(seed);
        for round in 0..200 {
            let percent = [0, 10, 50, 90, 100][round % 5];
            let (mut parts, mut expected, mut next) = (Vec::new(), Vec::new(), 0);
            for _ in 0..rng.usize(1..4) {
                let n = rng.usize(1..300);
                let values: Vec<Option<i64>> = (next..next + n as i64)
                    .map(|i| (rng.usize(0..100) >= percent).then_some(i))
                    .collect();
                next += n as i64;
                let (a, b) = (rng.usize(0..=n / 2), rng.usize(n / 2..=n));
                let slots = vec![0..a, a..a, n / 2..b];
                expected.extend(slots.iter().cloned().flatten().filter_map(|i| values[i]));
                let array: ArrayRef = Arc::new(Int64Array::from(values));
                parts.push(ArrayPart { nulls: array.nulls().cloned(), array, slots });
            }
            let (mut found, mut at) = (Vec::new(), 0);
            while at < expected.len() {
                let to = rng.usize(at..=expected.len());
                for_each_part(&parts, at..to, |_, slots| {
                    slots.each(|value: i64| found.push(value));
                    Some(())
                });
                assert_eq!(found, expected[..to], "seed {seed}, round {round}");
                at = to;
            }
        }
    }
}
