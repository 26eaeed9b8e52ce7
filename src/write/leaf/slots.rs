//! The slots of an array that hold values: appended to the values of a leaf, converted to its physical type.
//!
//! The inverse of `read::column`'s conversions; which ways there are, `schema::convert` says. Trap: a value may fail on a way that its type has; the error
//! names the value.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::{ArrowNativeType, NullBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{DataType, IntervalUnit};

use super::texts::{Ends, Texts};
use super::values::Values;
use crate::error::{Error, Result};
use crate::schema::Leaf;
use crate::schema::convert::{BytesLayout, Scale, Storage, Store};

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
pub(super) struct Slots<'a, 'b> {
    pub(super) array: &'a dyn Array,
    pub(super) nulls: Option<&'b NullBuffer>,
    pub(super) slots: &'b [Range<usize>],
}

impl<'a> Slots<'a, '_> {
    /// Calls `visit` with every stretch of slots that hold a value.
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
