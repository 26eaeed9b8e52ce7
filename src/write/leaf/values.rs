//! [`Values`]: the values of a leaf, densely and in their physical type; gathered from the arrays of the batches.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RunArray};
use arrow_buffer::ArrowNativeType;
use arrow_data::ByteView;
use arrow_schema::DataType;
use bytes::Bytes;

use super::slots::{Slots, append};
use super::texts::Texts;
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

#[cold]
fn too_many() -> Error {
    Error::usage("more than 2^32 values in one row group; write smaller ones")
}
