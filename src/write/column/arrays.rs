//! The slots of an array that hold values: where they lie, some at a time.

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
pub(super) struct Slots<'a, 'b> {
    pub(super) array: &'a dyn Array,
    pub(super) nulls: Option<&'b NullBuffer>,
    pub(super) slots: &'b [Range<usize>],
}

impl<'a> Slots<'a, 'a> {
    pub(super) fn of(part: &'a ArrayPart) -> Self {
        Self { array: part.array.as_ref(), nulls: part.nulls.as_ref(), slots: &part.slots }
    }
}

impl<'a> Slots<'a, '_> {
    /// Calls `visit` with every run of slots that hold a value.
    pub(super) fn for_each_run(&self, mut visit: impl FnMut(Range<usize>)) {
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

    /// Visits the byte strings, by runs that lie in one buffer, until a visit gives `None`. That is
    /// given back, and so it is if the array is of another type than `layout` says.
    #[inline(always)]
    pub(super) fn for_each_byte_run(
        &self,
        layout: BytesLayout,
        mut visit: impl FnMut(ByteRun<'a>) -> Option<()>,
    ) -> Option<()> {
        let mut goes_on = Some(());
        match layout {
            BytesLayout::Offsets32 => {
                let (ends, bytes) = ends_of::<i32>(self.array)?;
                self.for_each_run(|run| {
                    goes_on = goes_on.and_then(|()| {
                        visit(ByteRun::Between(bytes, Ends::Small(ends.get(run.start..=run.end)?)))
                    });
                });
            }
            BytesLayout::Offsets64 => {
                let (ends, bytes) = ends_of::<i64>(self.array)?;
                self.for_each_run(|run| {
                    goes_on = goes_on.and_then(|()| {
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
                        goes_on = goes_on.and_then(|()| {
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
        goes_on
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
pub(super) fn values_of(part: &ArrayPart) -> usize {
    let slots = part.slots.iter();
    match &part.nulls {
        None => slots.map(Range::len).sum(),
        Some(nulls) => slots.map(|s| s.len() - nulls.slice(s.start, s.len()).null_count()).sum(),
    }
}

/// The layout of the byte strings of a part, if it has some that are stored as they are.
pub(super) fn bytes_layout(part: &ArrayPart, leaf: &Leaf) -> Option<BytesLayout> {
    match write_conversion(part.array.data_type(), leaf)? {
        WriteConversion::Bytes { layout } => Some(layout),
        _ => None,
    }
}
