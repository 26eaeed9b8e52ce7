//! [`Values`]: the values of a leaf, densely and in their physical type; gathered from the arrays of the batches.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RunArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, i256};
use arrow_data::{ArrayData, ByteView};
use arrow_schema::{DataType, IntervalUnit};
use bytes::Bytes;

use super::texts::{Ends, Texts};
use super::words::Words;
use crate::error::{Error, Result};
use crate::schema::convert::{BytesLayout, Scale, Storage, Store};
use crate::schema::{Leaf, Physical};
use crate::simd::bitmap::Bitmap;
use crate::spare::Spare;
use crate::write::shred::Part;

/// Values of one physical type, end to end, without nulls.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values<'a> {
    /// BOOLEAN.
    Bits(Bitmap),
    /// INT32, and FLOAT as its bits.
    Words32(Words<i32>),
    /// INT64, and DOUBLE as its bits.
    Words64(Words<i64>),
    /// BYTE_ARRAY.
    Bytes(Texts<'a>),
    /// FIXED_LEN_BYTE_ARRAY and INT96.
    Fixed { width: usize, bytes: Words<u8> },
}

impl<'a> Values<'a> {
    /// No values.
    pub(super) fn new(physical: Physical) -> Self {
        match physical {
            Physical::Boolean => Self::Bits(Bitmap::default()),
            Physical::Int32 | Physical::Float => Self::Words32(Vec::new().into()),
            Physical::Int64 | Physical::Double => Self::Words64(Vec::new().into()),
            Physical::ByteArray => Self::Bytes(Texts::new()),
            Physical::FixedLenByteArray(width) => Self::Fixed { width, bytes: Vec::new().into() },
            Physical::Int96 => Self::Fixed { width: 12, bytes: Vec::new().into() },
        }
    }

    /// No values yet, with room for `n` of them; see [`Values::give`].
    pub(super) fn with_room(physical: Physical, n: usize, spare: &Spare) -> Self {
        match Self::new(physical) {
            Self::Bits(mut bits) => {
                bits.reserve(n);
                Self::Bits(bits)
            }
            Self::Words32(_) => Self::Words32(spare.take(n).into()),
            Self::Words64(_) => Self::Words64(spare.take(n).into()),
            Self::Bytes(texts) => Self::Bytes(texts),
            Self::Fixed { width, .. } => Self::Fixed { width, bytes: spare.take(n * width).into() },
        }
    }

    /// `n` values of an array without nulls, from a slot on, if they lie there as PLAIN has them.
    pub(super) fn shared(array: &dyn Array, from: usize, n: usize, leaf: &Leaf) -> Option<Self> {
        if cfg!(target_endian = "big") {
            return None;
        }
        let store = crate::schema::convert::store(array.data_type(), leaf)?;
        let values = |width| {
            let data = array.to_data();
            let start = (data.offset() + from) * width;
            let buffer = data.buffers().first()?;
            let fits = start + n * width <= buffer.len();
            fits.then(|| buffer.slice_with_length(start, n * width))
        };
        match (store, leaf.physical) {
            (Store::Integer { from: Storage::I32, scale: Scale::Keep, .. }, Physical::Int32)
            | (Store::Float, Physical::Float) => {
                Some(Self::Words32(Words::Shared(values(4)?.into())))
            }
            (Store::Integer { from: Storage::I64, scale: Scale::Keep, .. }, Physical::Int64)
            | (Store::Float, Physical::Double) => {
                Some(Self::Words64(Words::Shared(values(8)?.into())))
            }
            (Store::FixedBytes(of), Physical::FixedLenByteArray(width)) if of == width => {
                Some(Self::Fixed { width, bytes: Words::Shared(values(width)?.into()) })
            }
            _ => None,
        }
    }

    /// The bytes of some values that lie in an array as PLAIN has them.
    pub(super) fn shared_bytes(&self, range: Range<usize>) -> Option<Bytes> {
        match self {
            Self::Words32(words) => words.shared(range),
            Self::Words64(words) => words.shared(range),
            Self::Fixed { width, bytes } => bytes.shared(range.start * width..range.end * width),
            Self::Bits(_) | Self::Bytes(_) => None,
        }
    }

    /// The bytes of values that were gathered, as this machine has them; there are none any more.
    pub(super) fn take_bytes(&mut self, spare: &Spare) -> Option<Bytes> {
        Some(match self {
            Self::Words32(words) => spare.lend_bytes(std::mem::take(words.own())),
            Self::Words64(words) => spare.lend_bytes(std::mem::take(words.own())),
            Self::Fixed { bytes, .. } => spare.lend_bytes(std::mem::take(bytes.own())),
            Self::Bits(_) | Self::Bytes(_) => return None,
        })
    }

    /// Gives the memory back.
    pub(super) fn give(self, spare: &Spare) {
        match self {
            Self::Words32(values) => values.give(spare),
            Self::Words64(values) => values.give(spare),
            Self::Fixed { bytes, .. } => bytes.give(spare),
            Self::Bits(_) | Self::Bytes(_) => {}
        }
    }

    /// Whether memory is to be found before values are gathered.
    pub(super) fn has_no_room(&self) -> bool {
        match self {
            Self::Words32(Words::Own(values)) => values.capacity() == 0,
            Self::Words64(Words::Own(values)) => values.capacity() == 0,
            Self::Fixed { bytes: Words::Own(values), .. } => values.capacity() == 0,
            _ => false,
        }
    }

    /// Forgets the values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Bits(bits) => bits.clear(),
            Self::Words32(values) => values.own().clear(),
            Self::Words64(values) => values.own().clear(),
            Self::Bytes(texts) => texts.clear(),
            Self::Fixed { bytes, .. } => bytes.own().clear(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bits(bits) => bits.len(),
            Self::Words32(values) => values.len(),
            Self::Words64(values) => values.len(),
            Self::Bytes(values) => values.len(),
            Self::Fixed { width: 0, .. } => 0,
            Self::Fixed { width, bytes } => bytes.len() / width,
        }
    }

    /// Bytes that the values of `range` take as PLAIN.
    pub(super) fn plain_len(&self, range: Range<usize>) -> usize {
        match self {
            Self::Bits(_) => range.len().div_ceil(8),
            Self::Words32(_) => range.len() * 4,
            Self::Words64(_) => range.len() * 8,
            Self::Bytes(texts) => range.len() * size_of::<u32>() + texts.payload(range),
            Self::Fixed { width, .. } => range.len() * width,
        }
    }

    /// The values at `indices`.
    pub(super) fn take(&self, indices: &[u32]) -> Self {
        fn at<T: Copy>(values: &[T], indices: &[u32]) -> Vec<T> {
            indices.iter().filter_map(|&i| values.get(i as usize).copied()).collect()
        }
        match self {
            Self::Bits(bits) => {
                let mut taken = Bitmap::default();
                indices.iter().for_each(|&i| taken.append_run(bits.get(i as usize), 1));
                Self::Bits(taken)
            }
            Self::Words32(values) => Self::Words32(at(values, indices).into()),
            Self::Words64(values) => Self::Words64(at(values, indices).into()),
            Self::Bytes(Texts::Slices(slices)) => Self::Bytes(Texts::Slices(at(slices, indices))),
            Self::Bytes(texts) => {
                let taken = indices.iter().filter_map(|&i| texts.get(i as usize)).collect();
                Self::Bytes(Texts::Slices(taken))
            }
            Self::Fixed { width, bytes } => {
                let mut taken = Vec::with_capacity(indices.len() * width);
                for &i in indices {
                    let start = i as usize * width;
                    taken.extend_from_slice(bytes.get(start..start + width).unwrap_or_default());
                }
                Self::Fixed { width: *width, bytes: taken.into() }
            }
        }
    }

    /// The values of some ranges, one behind the other.
    pub(super) fn sample(&self, ranges: &[Range<usize>]) -> Self {
        fn of<T: Copy>(values: &[T], ranges: &[Range<usize>]) -> Vec<T> {
            ranges.iter().filter_map(|r| values.get(r.clone())).flatten().copied().collect()
        }
        match self {
            Self::Bits(bits) => {
                let mut taken = Bitmap::default();
                ranges.iter().for_each(|range| taken.append_range(bits, range.clone()));
                Self::Bits(taken)
            }
            Self::Words32(values) => Self::Words32(of(values, ranges).into()),
            Self::Words64(values) => Self::Words64(of(values, ranges).into()),
            Self::Bytes(texts) => {
                let taken = ranges.iter().flat_map(|range| texts.iter(range.clone())).collect();
                Self::Bytes(Texts::Slices(taken))
            }
            Self::Fixed { width, bytes } => {
                let of = |range: &Range<usize>| range.start * width..range.end * width;
                let taken = ranges.iter().filter_map(|r| bytes.get(of(r))).flatten().copied();
                Self::Fixed { width: *width, bytes: taken.collect::<Vec<_>>().into() }
            }
        }
    }

    /// The values of FIXED_LEN_BYTE_ARRAY and BYTE_ARRAY as slices.
    pub(super) fn slices(&self, range: Range<usize>) -> Vec<&[u8]> {
        match self {
            Self::Bytes(texts) => texts.iter(range).collect(),
            Self::Fixed { width, bytes } => {
                let bytes = bytes.get(range.start * width..range.end * width).unwrap_or_default();
                bytes.chunks_exact((*width).max(1)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The values of a leaf as they were handed in.
pub(super) enum Gathered<'a> {
    /// One by one.
    Plain(Values<'a>),
    /// As keys into values, from dictionary and run-end arrays; several keys may mean one value.
    Keyed { entries: Values<'a>, keys: Vec<u32> },
}

/// Gathers the values of a leaf from its parts, converted to its physical type.
///
/// # Errors
/// `Usage` if a value does not fit the leaf, `Unsupported` if the array's type has no way there.
pub(super) fn gather<'a>(parts: &'a [Part], leaf: &Leaf, spare: &Spare) -> Result<Gathered<'a>> {
    if !is_keyed(parts) {
        let slots: usize = parts.iter().flat_map(|part| &part.slots).map(Range::len).sum();
        let mut values = Values::with_room(leaf.physical, slots, spare);
        for part in parts {
            let nulls = part.nulls.as_ref();
            append(part.array.as_ref(), nulls, &part.slots, leaf, &mut values)?;
        }
        return Ok(Gathered::Plain(values));
    }
    let mut values = Values::new(leaf.physical);
    let mut keys = spare.take(parts.iter().map(values_of).sum());
    for part in parts {
        let base = values.len();
        let (entries, of_slots) = keys_of(part, spare)?;
        // Entries that are null mean nothing, but keep their number.
        let nulls = entries.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let all = [Range { start: 0, end: entries.len() }];
        append(entries, nulls.as_ref(), &all, leaf, &mut values)?;
        let rank: Option<Vec<u32>> = nulls.map(|nulls| {
            let mut next = 0u32;
            nulls
                .iter()
                .map(|valid| {
                    let rank = next;
                    next += u32::from(valid);
                    rank
                })
                .collect()
        });
        let base = u32::try_from(base).map_err(|_| too_many())?;
        let key = |of: &u32| match &rank {
            None => base + of,
            Some(rank) => base + rank.get(*of as usize).copied().unwrap_or(0),
        };
        let slots =
            Slots { array: part.array.as_ref(), nulls: part.nulls.as_ref(), slots: &part.slots };
        slots.for_each_run(|run| {
            keys.extend(of_slots.get(run).unwrap_or_default().iter().map(key));
        });
        spare.give(of_slots);
    }
    Ok(Gathered::Keyed { entries: values, keys })
}

/// Byte strings that stand in one buffer.
pub(super) enum Stretch<'a> {
    /// Between offsets, one more than values.
    Offsets32(&'a [u8], &'a [i32]),
    Offsets64(&'a [u8], &'a [i64]),
    /// One value: where it starts, and its length.
    Place(&'a [u8], usize, usize),
}

/// How many values a part has.
pub(super) fn values_of(part: &Part) -> usize {
    let slots = part.slots.iter();
    match &part.nulls {
        None => slots.map(Range::len).sum(),
        Some(nulls) => slots.map(|s| s.len() - nulls.slice(s.start, s.len()).null_count()).sum(),
    }
}

/// Visits the byte strings of a part until a visit says `None`, which is given back; `None` too if it has others than byte strings, or one that is too
/// long for the format.
#[inline(always)]
pub(super) fn for_each_stretch<'a>(
    part: &'a Part,
    leaf: &Leaf,
    mut visit: impl FnMut(Stretch<'a>) -> Option<()>,
) -> Option<()> {
    let array = part.array.as_ref();
    let Some(Store::Bytes { layout }) = crate::schema::convert::store(array.data_type(), leaf)
    else {
        return None;
    };
    let slots = Slots { array, nulls: part.nulls.as_ref(), slots: &part.slots };
    let mut goes_on = Some(());
    match (layout, array.data_type()) {
        (BytesLayout::Offsets32, data_type) => {
            let (ends, values) = match data_type {
                DataType::Utf8 => {
                    let array = array.as_string_opt::<i32>()?;
                    (array.value_offsets(), array.value_data())
                }
                _ => {
                    let array = array.as_binary_opt::<i32>()?;
                    (array.value_offsets(), array.value_data())
                }
            };
            slots.for_each_run(|run| {
                goes_on = goes_on.and_then(|()| {
                    visit(Stretch::Offsets32(values, ends.get(run.start..=run.end)?))
                });
            });
        }
        (BytesLayout::Offsets64, data_type) => {
            let (ends, values) = match data_type {
                DataType::LargeUtf8 => {
                    let array = array.as_string_opt::<i64>()?;
                    (array.value_offsets(), array.value_data())
                }
                _ => {
                    let array = array.as_binary_opt::<i64>()?;
                    (array.value_offsets(), array.value_data())
                }
            };
            slots.for_each_run(|run| {
                goes_on = goes_on.and_then(|()| {
                    let ends = ends.get(run.start..=run.end)?;
                    let long = |pair: &[i64]| matches!(pair, [a, b] if b - a > i64::from(i32::MAX));
                    // Left to the one who gathers, and says so.
                    let is_long = values.len() > i32::MAX as usize && ends.windows(2).any(long);
                    if is_long { None } else { visit(Stretch::Offsets64(values, ends)) }
                });
            });
        }
        (BytesLayout::Views, data_type) => {
            let (views, buffers) = match data_type {
                DataType::Utf8View => {
                    let array = array.as_string_view_opt()?;
                    (array.views(), array.data_buffers())
                }
                _ => {
                    let array = array.as_binary_view_opt()?;
                    (array.views(), array.data_buffers())
                }
            };
            let inline = views.inner().as_slice();
            slots.for_each_run(|run| {
                for (i, view) in run.clone().zip(views.get(run).unwrap_or_default()) {
                    let of = ByteView::from(*view);
                    let len = of.length as usize;
                    goes_on = goes_on.and_then(|()| {
                        if len <= 12 {
                            // Behind the four bytes of its length.
                            return visit(Stretch::Place(inline, i * 16 + 4, len));
                        }
                        let buffer = buffers.get(of.buffer_index as usize)?.as_slice();
                        visit(Stretch::Place(buffer, of.offset as usize, len))
                    });
                }
            });
        }
    }
    goes_on
}

/// Whether all values are byte strings that [`for_each_stretch`] visits.
pub(super) fn are_texts(parts: &[Part], leaf: &Leaf) -> bool {
    let store = |part: &Part| crate::schema::convert::store(part.array.data_type(), leaf);
    !is_keyed(parts) && parts.iter().all(|part| matches!(store(part), Some(Store::Bytes { .. })))
}

/// Whether some of the values are keys into others.
pub(super) fn is_keyed(parts: &[Part]) -> bool {
    let keyed = |data_type: &DataType| {
        matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
    };
    parts.iter().any(|part| keyed(part.array.data_type()))
}

/// The values of a dictionary or run-end array, and which of them each slot has; anything where it is null.
fn keys_of<'p>(part: &'p Part, spare: &Spare) -> Result<(&'p dyn Array, Vec<u32>)> {
    let array = &part.array;
    match array.data_type() {
        DataType::Dictionary(of, _) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.keys(), dictionary.values().as_ref());
            let keys = match **of {
                DataType::Int8 => dictionary_keys::<Int8Type>(keys, values, spare),
                DataType::Int16 => dictionary_keys::<Int16Type>(keys, values, spare),
                DataType::Int32 => dictionary_keys::<Int32Type>(keys, values, spare),
                DataType::Int64 => dictionary_keys::<Int64Type>(keys, values, spare),
                DataType::UInt8 => dictionary_keys::<UInt8Type>(keys, values, spare),
                DataType::UInt16 => dictionary_keys::<UInt16Type>(keys, values, spare),
                DataType::UInt32 => dictionary_keys::<UInt32Type>(keys, values, spare),
                _ => dictionary_keys::<UInt64Type>(keys, values, spare),
            };
            Ok((values, keys?))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs(array.as_any().downcast_ref::<RunArray<Int16Type>>()),
            DataType::Int32 => runs(array.as_any().downcast_ref::<RunArray<Int32Type>>()),
            _ => runs(array.as_any().downcast_ref::<RunArray<Int64Type>>()),
        },
        _ => {
            // A plain array among keyed ones: every slot is an entry of its own.
            let n = u32::try_from(array.len()).map_err(|_| too_many())?;
            Ok((array.as_ref(), (0..n).collect()))
        }
    }
}

/// The keys of a dictionary; those of nulls, which may be anything, are brought into it.
fn dictionary_keys<K: ArrowPrimitiveType>(
    keys: &dyn Array,
    values: &dyn Array,
    spare: &Spare,
) -> Result<Vec<u32>> {
    let Some(keys) = keys.as_primitive_opt::<K>() else {
        return Err(Error::usage("a dictionary array of other keys than it says"));
    };
    let last = u32::try_from(values.len().saturating_sub(1)).map_err(|_| too_many())? as usize;
    #[expect(clippy::cast_possible_truncation, reason = "not above the last one, of 32 bits")]
    let key = |key: &K::Native| key.as_usize().min(last) as u32;
    let mut out = spare.take(keys.len());
    out.extend(keys.values().iter().map(key));
    Ok(out)
}

fn runs<R: arrow_array::types::RunEndIndexType>(
    array: Option<&RunArray<R>>,
) -> Result<(&dyn Array, Vec<u32>)> {
    let Some(array) = array else {
        return Err(Error::usage("a run-end array of another type than it says"));
    };
    let ends = array.run_ends();
    let (offset, len) = (ends.offset(), ends.len());
    let mut of_slots = Vec::with_capacity(len);
    for (run, end) in ends.values().iter().enumerate() {
        let end = end.as_usize().saturating_sub(offset).min(len);
        let run = u32::try_from(run).map_err(|_| too_many())?;
        if end > of_slots.len() {
            of_slots.resize(end, run);
        }
    }
    Ok((array.values().as_ref(), of_slots))
}

/// Appends the values of the slots that are not null.
pub(super) fn append<'a>(
    array: &'a dyn Array,
    nulls: Option<&NullBuffer>,
    slots: &[Range<usize>],
    leaf: &Leaf,
    out: &mut Values<'a>,
) -> Result<()> {
    let no_way = || {
        Error::unsupported(
            "conversion",
            format_args!("{} cannot be stored as {:?}", array.data_type(), leaf.physical),
        )
    };
    let Some(store) = crate::schema::convert::store(array.data_type(), leaf) else {
        return Err(no_way());
    };
    let from = Slots { array, nulls, slots };
    match (store, out) {
        (Store::Null, _) => Ok(()),
        (Store::Boolean, Values::Bits(out)) => {
            let Some(array) = array.as_boolean_opt() else {
                return Err(no_way());
            };
            let bits = array.values();
            from.for_each_run(|run| {
                out.append_bits(bits.values(), bits.offset() + run.start, run.len());
            });
            Ok(())
        }
        (Store::Integer { from: storage, unsigned, scale }, Values::Words32(out)) => {
            from.integers(storage, unsigned, scale, out.own(), |v| i32::try_from(v).ok())
        }
        (Store::Integer { from: storage, unsigned, scale }, Values::Words64(out)) => {
            from.integers(storage, unsigned, scale, out.own(), Some)
        }
        (Store::Float, Values::Words32(out)) => {
            from.words(out.own(), |bits: f32| bits.to_bits().cast_signed())
        }
        (Store::Float, Values::Words64(out)) => {
            from.words(out.own(), |bits: f64| bits.to_bits().cast_signed())
        }
        (Store::Float16, Values::Fixed { bytes, .. }) => {
            let bytes = bytes.own();
            from.each(|value: half::f16| bytes.extend_from_slice(&value.to_le_bytes()));
            Ok(())
        }
        (Store::Decimal { from: storage, exponent }, out) => {
            from.decimals(storage, exponent, leaf, out)
        }
        (Store::Interval(unit), Values::Fixed { bytes, .. }) => from.intervals(unit, bytes.own()),
        (Store::Bytes { layout }, Values::Bytes(out)) => {
            let before = out.len();
            from.bytes(layout, out).ok_or_else(no_way)?;
            if layout != BytesLayout::Offsets64 {
                return Ok(());
            }
            // Only 64-bit offsets reach so far; the format counts the bytes of a value with 31 bits.
            let most = i32::MAX as usize;
            match out.iter(before..out.len()).find(|value| value.len() > most) {
                Some(value) => Err(Error::usage(format_args!(
                    "a value of {} bytes; the format has 2 GiB at most",
                    value.len()
                ))),
                None => Ok(()),
            }
        }
        (Store::Bytes { layout }, Values::Fixed { width, bytes }) => {
            let bytes = bytes.own();
            let mut values = Texts::new();
            from.bytes(layout, &mut values).ok_or_else(no_way)?;
            for value in values.iter(0..values.len()) {
                if value.len() != *width {
                    return Err(Error::usage(format_args!(
                        "a value of {} bytes where the schema says {width}",
                        value.len()
                    )));
                }
                bytes.extend_from_slice(value);
            }
            Ok(())
        }
        (Store::FixedBytes(n), Values::Fixed { bytes, .. }) => {
            let Some(array) = array.as_fixed_size_binary_opt() else {
                return Err(no_way());
            };
            let (all, bytes) = (array.value_data(), bytes.own());
            from.for_each_run(|run| {
                bytes.extend_from_slice(all.get(run.start * n..run.end * n).unwrap_or_default());
            });
            Ok(())
        }
        (Store::FixedBytes(n), Values::Bytes(out)) => {
            let Some(array) = array.as_fixed_size_binary_opt() else {
                return Err(no_way());
            };
            let all = array.value_data();
            let out = out.slices_mut();
            from.for_each_run(|run| {
                let bytes = all.get(run.start * n..run.end * n).unwrap_or_default();
                out.extend(bytes.chunks_exact(n.max(1)));
            });
            Ok(())
        }
        _ => Err(no_way()),
    }
}

/// Of 64 slots, values up to which it is faster to look for each.
const SPARSE: u32 = 12;

/// The slots of an array that are wanted.
#[derive(Clone, Copy)]
struct Slots<'a, 'b> {
    array: &'a dyn Array,
    nulls: Option<&'b NullBuffer>,
    slots: &'b [Range<usize>],
}

impl<'a> Slots<'a, '_> {
    /// Calls `visit` with every stretch of slots that hold a value.
    fn for_each_run(&self, mut visit: impl FnMut(Range<usize>)) {
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

    fn data(&self) -> ArrayData {
        self.array.to_data()
    }

    /// Calls `visit` with every value.
    fn each<T: ArrowNativeType>(&self, mut visit: impl FnMut(T)) {
        let data = self.data();
        self.for_each_some(data.buffer::<T>(0), |some| some.iter().for_each(|value| visit(*value)));
    }

    /// Calls `visit` with the values, some at a time: as they lie there, or put together from between nulls.
    fn for_each_some<T: ArrowNativeType>(&self, values: &[T], mut visit: impl FnMut(&[T])) {
        for range in self.slots {
            let Some(nulls) = self.nulls else {
                visit(values.get(range.clone()).unwrap_or_default());
                continue;
            };
            let bits = nulls.inner().slice(range.start, range.len());
            let chunks = bits.bit_chunks();
            let words = chunks.iter().chain(std::iter::once(chunks.remainder_bits()));
            for (start, mut word) in range.clone().step_by(64).zip(words) {
                let some = values.get(start..range.end.min(start + 64)).unwrap_or_default();
                if word.count_ones() as usize == some.len() {
                    visit(some);
                    continue;
                }
                let mut kept = [T::default(); 64];
                let mut n = 0;
                if word.count_ones() < SPARSE {
                    while word != 0 {
                        if let Some(slot) = kept.get_mut(n) {
                            let at = word.trailing_zeros() as usize;
                            *slot = some.get(at).copied().unwrap_or_default();
                        }
                        n += 1;
                        word &= word - 1;
                    }
                } else {
                    // Each value is written where the next one belongs, and stays if it is one: no branch to be guessed wrong.
                    for (i, value) in some.iter().enumerate() {
                        kept[n % 64] = *value;
                        n += (word >> i & 1) as usize;
                    }
                }
                visit(kept.get(..n).unwrap_or_default());
            }
        }
    }

    /// Appends every value, converted.
    fn words<T: ArrowNativeType, U>(
        &self,
        out: &mut Vec<U>,
        convert: impl Fn(T) -> U,
    ) -> Result<()> {
        let data = self.data();
        self.for_each_some(data.buffer::<T>(0), |some| {
            out.extend(some.iter().map(|value| convert(*value)));
        });
        Ok(())
    }

    /// Appends every value, if each can be converted.
    fn checked<T: ArrowNativeType + std::fmt::Debug, U: Default>(
        &self,
        out: &mut Vec<U>,
        convert: impl Fn(T) -> Option<U>,
    ) -> Result<()> {
        let data = self.data();
        let values = data.buffer::<T>(0);
        let mut fits = true;
        self.for_each_some(values, |some| {
            out.extend(some.iter().map(|value| {
                let converted = convert(*value);
                fits &= converted.is_some();
                converted.unwrap_or_default()
            }));
        });
        let mut bad = None;
        if !fits {
            self.for_each_run(|run| {
                let all = values.get(run.clone()).unwrap_or_default();
                let first = || run.zip(all).find(|(_, value)| convert(**value).is_none());
                bad = bad.or_else(first);
            });
        }
        match bad {
            None => Ok(()),
            Some((slot, value)) => Err(Error::usage(format_args!(
                "the value {value:?} of slot {slot} ({}) does not fit its type in the file",
                self.array.data_type()
            ))),
        }
    }

    /// Integers of any storage, through 64 bits where they are scaled.
    fn integers<U>(
        &self,
        storage: Storage,
        unsigned: bool,
        scale: Scale,
        out: &mut Vec<U>,
        narrow: impl Fn(i64) -> Option<U>,
    ) -> Result<()>
    where
        U: Copy + Default + FromBits,
    {
        match (storage, unsigned, scale) {
            // The same width: the bits as they are, signed or not.
            (Storage::I32, _, Scale::Keep) if U::BITS == 32 => self.words(out, U::from_i32),
            (Storage::I64, _, Scale::Keep) if U::BITS == 64 => self.words(out, U::from_i64),
            (Storage::I8, false, Scale::Keep) => self.words(out, |v: i8| U::from_i32(i32::from(v))),
            (Storage::I8, true, Scale::Keep) => self.words(out, |v: u8| U::from_i32(i32::from(v))),
            (Storage::I16, false, Scale::Keep) => {
                self.words(out, |v: i16| U::from_i32(i32::from(v)))
            }
            (Storage::I16, true, Scale::Keep) => {
                self.words(out, |v: u16| U::from_i32(i32::from(v)))
            }
            (Storage::I32, false, Scale::Keep) => self.words(out, U::from_i32),
            (Storage::I32, true, Scale::Keep) => {
                self.words(out, |v: u32| U::from_i64(i64::from(v)))
            }
            (storage, unsigned, scale) => {
                let convert = |v: i64| match scale {
                    Scale::Keep | Scale::Narrow => narrow(v),
                    Scale::Multiply(by) => v.checked_mul(by).and_then(&narrow),
                    Scale::Divide(by) => {
                        (v.checked_rem(by) == Some(0)).then(|| v / by).and_then(&narrow)
                    }
                };
                match (storage, unsigned) {
                    (Storage::I8, false) => self.checked(out, |v: i8| convert(v.into())),
                    (Storage::I8, true) => self.checked(out, |v: u8| convert(v.into())),
                    (Storage::I16, false) => self.checked(out, |v: i16| convert(v.into())),
                    (Storage::I16, true) => self.checked(out, |v: u16| convert(v.into())),
                    (Storage::I32, false) => self.checked(out, |v: i32| convert(v.into())),
                    (Storage::I32, true) => self.checked(out, |v: u32| convert(v.into())),
                    (_, false) => self.checked(out, convert),
                    (_, true) => {
                        self.checked(out, |v: u64| i64::try_from(v).ok().and_then(convert))
                    }
                }
            }
        }
    }

    fn decimals(
        &self,
        storage: Storage,
        exponent: u8,
        leaf: &Leaf,
        out: &mut Values<'a>,
    ) -> Result<()> {
        let ten = |e: u8| i256::from_i128(10).checked_pow(u32::from(e));
        let Some(factor) = ten(exponent) else {
            return Err(Error::usage("a decimal scale beyond 76 digits"));
        };
        // What the precision of the leaf allows.
        let most = match &leaf.logical {
            Some(crate::format::LogicalType::Decimal(decimal)) => {
                u8::try_from(decimal.precision).ok().and_then(ten)
            }
            _ => None,
        };
        let scaled = |v: i256| {
            let v = if exponent == 0 { Some(v) } else { v.checked_mul(factor) }?;
            most.is_none_or(|most| v < most && v > most.wrapping_neg()).then_some(v)
        };
        let same = exponent == 0;
        let small = most.and_then(i256::to_i128);
        let fits = |v: i128| small.is_none_or(|most| v < most && v > -most);
        match out {
            Values::Words32(words) => match storage {
                Storage::I32 if same => {
                    self.checked(words.own(), |v: i32| fits(v.into()).then_some(v))
                }
                Storage::I64 if same => self.checked(words.own(), |v: i64| {
                    i32::try_from(v).ok().filter(|v| fits((*v).into()))
                }),
                Storage::I128 if same => {
                    let out = words.own();
                    let before = out.len();
                    let most = small.map_or(1 << 31, |most| most.min(1 << 31));
                    #[expect(clippy::cast_possible_truncation, reason = "below 2^31")]
                    if self.low_halves(Some(most), out, |low| low as i32) {
                        return Ok(());
                    }
                    out.truncate(before);
                    self.checked(words.own(), |v: i128| {
                        i32::try_from(v).ok().filter(|v| fits((*v).into()))
                    })
                }
                _ => self.wide(storage, words.own(), |v| {
                    scaled(v)?.to_i128().and_then(|v| i32::try_from(v).ok())
                }),
            },
            Values::Words64(words) => match storage {
                Storage::I64 if same => {
                    self.checked(words.own(), |v: i64| fits(v.into()).then_some(v))
                }
                Storage::I128 if same => {
                    let out = words.own();
                    let before = out.len();
                    if self.low_halves(small, out, |low| low) {
                        return Ok(());
                    }
                    out.truncate(before);
                    self.checked(words.own(), |v: i128| {
                        i64::try_from(v).ok().filter(|v| fits((*v).into()))
                    })
                }
                _ => self.wide(storage, words.own(), |v| {
                    scaled(v)?.to_i128().and_then(|v| i64::try_from(v).ok())
                }),
            },
            Values::Fixed { width, bytes } => {
                let (width, bytes) = (*width, bytes.own());
                if storage == Storage::I128 && same && width <= 16 {
                    let before = bytes.len();
                    if self.big_endian(small, width, bytes) {
                        return Ok(());
                    }
                    bytes.truncate(before);
                    self.checked(&mut Vec::new(), |v: i128| fits(v).then_some(v))?;
                    return Err(Error::usage("a decimal has more digits than its type"));
                }
                let mut values = Vec::new();
                self.wide(storage, &mut values, scaled)?;
                for value in values {
                    let all = value.to_be_bytes();
                    let fill = if value.is_negative() { 0xFF } else { 0 };
                    let skipped = all.get(..32usize.saturating_sub(width)).unwrap_or_default();
                    if skipped.iter().any(|byte| *byte != fill) {
                        return Err(Error::usage(format_args!(
                            "a decimal does not fit {width} bytes"
                        )));
                    }
                    bytes.resize(bytes.len() + width.saturating_sub(32), fill);
                    let kept = all.get(32usize.saturating_sub(width)..).unwrap_or_default();
                    bytes.extend_from_slice(kept);
                }
                Ok(())
            }
            _ => Err(Error::unsupported(
                "conversion",
                "a decimal in a BYTE_ARRAY is not written; use FIXED_LEN_BYTE_ARRAY",
            )),
        }
    }

    /// Appends decimals of 128 bits that have 64 and are nearer to 0 than `most`; says whether all are so. Without a compare: the signs of what they
    /// lack to the bounds are collected, which the compiler makes vectors of.
    fn low_halves<U>(
        &self,
        most: Option<i128>,
        out: &mut Vec<U>,
        narrow: impl Fn(i64) -> U,
    ) -> bool {
        let last = most.and_then(|most| i64::try_from(most - 1).ok()).unwrap_or(i64::MAX);
        let data = self.data();
        let (mut beyond, mut high) = (0i64, 0i64);
        self.for_each_some(data.buffer::<i128>(0), |some| {
            out.extend(some.iter().map(|value| {
                #[expect(clippy::cast_possible_truncation, reason = "what is cut off is looked at")]
                let (low, above) = (*value as i64, (*value >> 64) as i64);
                // Wrapped around is negative, too.
                beyond |= last.wrapping_sub(low) | last.wrapping_add(low);
                high |= above ^ (low >> 63);
                narrow(low)
            }));
        });
        beyond >= 0 && high == 0
    }

    /// Appends the last `width` bytes of decimals of 128 bits, the highest first; says whether all are nearer to 0 than `most`.
    fn big_endian(&self, most: Option<i128>, width: usize, out: &mut Vec<u8>) -> bool {
        const BLOCK: usize = 64;
        let most = most.unwrap_or(i128::MAX);
        let data = self.data();
        let mut beyond = false;
        self.for_each_some(data.buffer::<i128>(0), |some| {
            for some in some.chunks(BLOCK) {
                let mut block = [[0u8; 16]; BLOCK];
                for (to, value) in block.iter_mut().zip(some) {
                    beyond |= *value >= most || *value <= -most;
                    *to = value.to_be_bytes();
                }
                let block = block.get(..some.len()).unwrap_or_default();
                if width == 16 {
                    out.extend_from_slice(block.as_flattened());
                    continue;
                }
                for value in block {
                    out.extend_from_slice(value.get(16 - width..).unwrap_or_default());
                }
            }
        });
        !beyond
    }

    /// Decimals of any storage through 256 bits.
    fn wide<U: Default>(
        &self,
        storage: Storage,
        out: &mut Vec<U>,
        convert: impl Fn(i256) -> Option<U>,
    ) -> Result<()> {
        match storage {
            Storage::I32 => self.checked(out, |v: i32| convert(i256::from_i128(v.into()))),
            Storage::I64 => self.checked(out, |v: i64| convert(i256::from_i128(v.into()))),
            Storage::I128 => self.checked(out, |v: i128| convert(i256::from_i128(v))),
            _ => self.checked(out, convert),
        }
    }

    /// The 12 bytes of INTERVAL: months, days, milliseconds, none of which has a sign.
    fn intervals(&self, unit: IntervalUnit, out: &mut Vec<u8>) -> Result<()> {
        let unsigned = |v: i32| u32::try_from(v).ok();
        let mut values: Vec<[u32; 3]> = Vec::new();
        match unit {
            IntervalUnit::YearMonth => {
                self.checked(&mut values, |months: i32| Some([unsigned(months)?, 0, 0]))?;
            }
            IntervalUnit::DayTime => {
                self.checked(&mut values, |v: arrow_buffer::IntervalDayTime| {
                    Some([0, unsigned(v.days)?, unsigned(v.milliseconds)?])
                })?;
            }
            IntervalUnit::MonthDayNano => {
                self.checked(&mut values, |v: arrow_buffer::IntervalMonthDayNano| {
                    let whole = v.nanoseconds % 1_000_000 == 0;
                    let millis = u32::try_from(v.nanoseconds / 1_000_000).ok()?;
                    whole.then_some([unsigned(v.months)?, unsigned(v.days)?, millis])
                })?;
            }
        }
        out.extend(values.iter().flatten().flat_map(|part| part.to_le_bytes()));
        Ok(())
    }

    /// Byte strings; `None` if the array is of another type.
    fn bytes(&self, layout: BytesLayout, out: &mut Texts<'a>) -> Option<()> {
        fn of_offsets<'a, O>(
            slots: &Slots<'a, '_>,
            offsets: &'a [O],
            values: &'a [u8],
            ends: impl Fn(&'a [O]) -> Ends<'a>,
            out: &mut Texts<'a>,
        ) {
            slots.for_each_run(|run| {
                let of_run = offsets.get(run.start..=run.end).unwrap_or_default();
                out.push_stretch(values, ends(of_run));
            });
        }
        let array = self.array;
        match (layout, array.data_type()) {
            (BytesLayout::Offsets32, DataType::Utf8) => {
                let array = array.as_string::<i32>();
                of_offsets(self, array.value_offsets(), array.value_data(), Ends::Small, out);
            }
            (BytesLayout::Offsets32, _) => {
                let array = array.as_binary_opt::<i32>()?;
                of_offsets(self, array.value_offsets(), array.value_data(), Ends::Small, out);
            }
            (BytesLayout::Offsets64, DataType::LargeUtf8) => {
                let array = array.as_string::<i64>();
                of_offsets(self, array.value_offsets(), array.value_data(), Ends::Large, out);
            }
            (BytesLayout::Offsets64, _) => {
                let array = array.as_binary_opt::<i64>()?;
                of_offsets(self, array.value_offsets(), array.value_data(), Ends::Large, out);
            }
            (BytesLayout::Views, DataType::Utf8View) => {
                let array = array.as_string_view_opt()?;
                let out = out.slices_mut();
                self.for_each_run(|run| out.extend(run.map(|i| array.value(i).as_bytes())));
            }
            (BytesLayout::Views, _) => {
                let array = array.as_binary_view_opt()?;
                let out = out.slices_mut();
                self.for_each_run(|run| out.extend(run.map(|i| array.value(i))));
            }
        }
        Some(())
    }
}

/// Words made of narrower ones.
trait FromBits {
    const BITS: u32;
    /// Extends the sign.
    fn from_i32(value: i32) -> Self;
    /// Takes the low bits.
    fn from_i64(value: i64) -> Self;
}

impl FromBits for i32 {
    const BITS: u32 = 32;

    fn from_i32(value: i32) -> Self {
        value
    }

    #[expect(clippy::cast_possible_truncation, reason = "unsigned words keep their bits")]
    fn from_i64(value: i64) -> Self {
        value as Self
    }
}

impl FromBits for i64 {
    const BITS: u32 = 64;

    fn from_i32(value: i32) -> Self {
        value.into()
    }

    fn from_i64(value: i64) -> Self {
        value
    }
}

#[cold]
fn too_many() -> Error {
    Error::usage("more than 2^32 values in one row group; write smaller ones")
}
