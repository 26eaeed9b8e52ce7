//! Converts the values of an array to the physical type of a leaf, and appends them.
//!
//! It is the inverse of the reader's conversions; `schema::convert` lists them. Trap: a value may
//! not be convertible even if its type is; the error names the value.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::arrays::WantedSlots;
use super::byte_arrays::{ByteArrayValues, ByteRun};
use super::values::LeafValues;
use crate::error::{Error, Result};
use crate::memory;
use crate::schema::Leaf;
use crate::schema::convert::{
    BytesLayout, SIGNED_INTERVAL_BYTES, Scale, Storage, WriteConversion, integers_of,
    write_conversion,
};
use crate::simd::bitmap::Bitmap;

/// Appends the values of the slots that are not null.
///
/// # Errors
/// `Usage` if a value does not fit the leaf; `Unsupported` if the type of the array has no way
/// there.
pub(super) fn append<'a>(
    array: &'a dyn Array,
    nulls: Option<&NullBuffer>,
    slots: &[Range<usize>],
    leaf: &Leaf,
    out: &mut LeafValues<'a>,
) -> Result<()> {
    let no_conversion = || {
        let types = format_args!("{} cannot be stored as {}", array.data_type(), leaf.physical);
        Error::unsupported("conversion", types)
    };
    let conversion = write_conversion(array.data_type(), leaf).ok_or_else(no_conversion)?;
    let from = WantedSlots { array, nulls, slots };
    let mut n = 0;
    from.for_each_run(|run| n += run.len());
    out.room_for(n)?;
    match (conversion, out) {
        (WriteConversion::Null, _) => Ok(()),
        (WriteConversion::Boolean, LeafValues::Bits(out)) => {
            from.booleans(out).ok_or_else(no_conversion)
        }
        (WriteConversion::Integer { from: storage, unsigned, scale }, LeafValues::Words32(out)) => {
            from.integers((storage, unsigned, scale), leaf, out.own())
        }
        (WriteConversion::Integer { from: storage, unsigned, scale }, LeafValues::Words64(out)) => {
            from.integers((storage, unsigned, scale), leaf, out.own())
        }
        (WriteConversion::Float, LeafValues::Words32(out)) => {
            from.words(out.own(), |bits: f32| bits.to_bits().cast_signed())
        }
        (WriteConversion::Float, LeafValues::Words64(out)) => {
            from.words(out.own(), |bits: f64| bits.to_bits().cast_signed())
        }
        (WriteConversion::Float16, LeafValues::Fixed { bytes, .. }) => {
            let bytes = bytes.own();
            from.each(|value: half::f16| bytes.extend_from_slice(&value.to_le_bytes()));
            Ok(())
        }
        (WriteConversion::Decimal { from: storage, exponent }, out) => {
            from.decimals(storage, exponent, leaf, out)
        }
        (WriteConversion::Interval(unit), LeafValues::Fixed { width, bytes }) => match *width {
            SIGNED_INTERVAL_BYTES => {
                from.signed_intervals(unit, bytes.own());
                Ok(())
            }
            _ => from.intervals(unit, bytes.own()),
        },
        (WriteConversion::Bytes { .. } | WriteConversion::FixedBytes(_), out) => {
            append_bytes(&from, conversion, out).unwrap_or_else(|| Err(no_conversion()))
        }
        _ => Err(no_conversion()),
    }
}

/// Appends byte strings; `None` if there is no way from the array to the leaf.
fn append_bytes<'a>(
    from: &WantedSlots<'a, '_>,
    conversion: WriteConversion,
    out: &mut LeafValues<'a>,
) -> Option<Result<()>> {
    match (conversion, out) {
        (WriteConversion::Bytes { layout }, LeafValues::Bytes(out)) => {
            let before = out.len();
            if let Err(error) = from.bytes(layout, out)? {
                return Some(Err(error));
            }
            if layout == BytesLayout::Offsets64 {
                return Some(check_lengths(out, before));
            }
        }
        (WriteConversion::Bytes { layout }, LeafValues::Fixed { width, bytes }) => {
            let mut values = ByteArrayValues::new();
            if let Err(error) = from.bytes(layout, &mut values)? {
                return Some(Err(error));
            }
            return Some(append_of_width(&values, *width, bytes.own()));
        }
        (WriteConversion::FixedBytes(n), LeafValues::Fixed { bytes, .. }) => {
            let bytes = bytes.own();
            from.fixed_bytes(n, |run| bytes.extend_from_slice(run))?;
        }
        (WriteConversion::FixedBytes(0), LeafValues::Bytes(out)) => {
            let mut done = Ok(());
            from.for_each_run(|run| {
                let slices = std::mem::replace(&mut done, Ok(())).and_then(|()| out.slices_mut());
                done = slices.and_then(|slices| memory::extend(slices, run.map(|_| &[][..])));
            });
            return Some(done);
        }
        (WriteConversion::FixedBytes(n), LeafValues::Bytes(out)) => {
            let mut done = Ok(());
            from.fixed_bytes(n, |run| {
                let slices = std::mem::replace(&mut done, Ok(())).and_then(|()| out.slices_mut());
                done = slices.and_then(|slices| memory::extend(slices, run.chunks_exact(n)));
            })?;
            return Some(done);
        }
        _ => return None,
    }
    Some(Ok(()))
}

/// Checks that values are not longer than the 31 bits that the format counts with. Only 64-bit
/// offsets allow that.
fn check_lengths(values: &ByteArrayValues<'_>, from: usize) -> Result<()> {
    let max = i32::MAX as usize;
    match values.iter(from..values.len()).find(|value| value.len() > max) {
        Some(value) => Err(Error::usage(format_args!(
            "a value of {} bytes; the format has 2 GiB at most",
            value.len()
        ))),
        None => Ok(()),
    }
}

/// A type that would hold the values that a column of this type is refused for.
fn what_fits(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Date64 => {
            ", DATE, which has whole days of 32 bits: write with WriteOptions::with_full_range(true) \
             (marq: --full-range), or cast to Timestamp(ms)"
        }
        DataType::Interval(_) => {
            ", INTERVAL, which has no signs and whole milliseconds of 32 bits: write with \
             WriteOptions::with_full_range(true) (marq: --full-range)"
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            ", TIMESTAMP(MILLIS), which ends 292 million years from 1970: cast to Int64"
        }
        DataType::Time32(TimeUnit::Second) => {
            ", TIME(MILLIS), which ends far beyond a day: cast to Int32"
        }
        _ => "",
    }
}

fn append_of_width(values: &ByteArrayValues<'_>, width: usize, out: &mut Vec<u8>) -> Result<()> {
    for value in values.iter(0..values.len()) {
        if value.len() != width {
            return Err(Error::usage(format_args!(
                "a value of {} bytes where the schema says {width}",
                value.len()
            )));
        }
        out.extend_from_slice(value);
    }
    Ok(())
}

impl<'a> WantedSlots<'a, '_> {
    fn booleans(&self, out: &mut Bitmap) -> Option<()> {
        let bits = self.array.as_boolean_opt()?.values();
        self.for_each_run(|run| {
            out.append_bits(bits.values(), bits.offset() + run.start, run.len());
        });
        Some(())
    }

    /// Calls `visit` with the bytes of each run of values of `n` bytes.
    fn fixed_bytes(&self, n: usize, mut visit: impl FnMut(&'a [u8])) -> Option<()> {
        let all = self.array.as_fixed_size_binary_opt()?.value_data();
        self.for_each_run(|run| visit(&all[run.start * n..run.end * n]));
        Some(())
    }

    /// Byte strings; `None` if the array is of another type.
    fn bytes(&self, layout: BytesLayout, out: &mut ByteArrayValues<'a>) -> Option<Result<()>> {
        let mut done = Ok(());
        let all = self.for_each_byte_run(layout, |run| {
            done = match run {
                ByteRun::Between(bytes, ends) => out.push_segment(bytes, ends),
                ByteRun::One(bytes, start, len) => {
                    let value = bytes.get(start..start + len)?;
                    out.slices_mut().and_then(|slices| memory::push(slices, value))
                }
            };
            done.is_ok().then_some(())
        });
        if done.is_err() { Some(done) } else { all.map(Ok) }
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
    pub(super) fn checked<T: ArrowNativeType + std::fmt::Debug, U: Default>(
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
                // A default where it fails; then nothing of this is used.
                converted.unwrap_or_default()
            }));
        });
        let mut bad = None;
        if !fits {
            self.for_each_run(|run| {
                let all = values.get(run.clone()).expect("slots lie within their array");
                let first = || run.zip(all).find(|(_, value)| convert(**value).is_none());
                bad = bad.or_else(first);
            });
        }
        match bad {
            None => Ok(()),
            Some((slot, value)) => Err(Error::usage(format_args!(
                "the value {value:?} of slot {slot} ({}) does not fit its type in the file{}",
                self.array.data_type(),
                what_fits(self.array.data_type())
            ))),
        }
    }

    /// Integers of any storage, through 64 bits where they are scaled or checked.
    fn integers<U>(
        &self,
        (storage, unsigned, scale): (Storage, bool, Scale),
        leaf: &Leaf,
        out: &mut Vec<U>,
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
                let range = integers_of(leaf).ok_or_else(|| {
                    Error::internal("values of no integer of the format are converted to one")
                })?;
                let narrow = |v: i64| range.contains(&v).then(|| U::from_i64(v));
                let convert = |v: i64| match scale {
                    Scale::Keep | Scale::Narrow => narrow(v),
                    Scale::Multiply(by) => v.checked_mul(by).and_then(&narrow),
                    // Only reading makes decimals so wide.
                    Scale::PowerOfTen(_) => None,
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
}

/// Words made of narrower ones.
pub(super) trait FromBits {
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
