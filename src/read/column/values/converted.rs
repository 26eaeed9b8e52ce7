//! Reads values that are converted from bytes: INT96, decimals in byte arrays, FLOAT16 and
//! intervals.

use std::marker::PhantomData;

use arrow_buffer::{ArrowNativeType, i256};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bytes::Bytes;
use half::f16;

use super::binary::SpanDecoder;
use super::fixed_bytes::FixedBytesDecoder;
use super::from_bytes::{FromBytes, wrong_length};
use super::intervals::{
    DayTime, MonthDayNano, SignedDayTime, SignedMonthDayNano, SignedYearMonth, YearMonth,
};
use super::primitive::{PrimitiveReader, PrimitiveSource};
use super::reader::{Count, ValueReader, over_memory_limit};
use super::sparse::whole_values;
use crate::encoding::{ValueSpan, plain};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::memory;
use crate::page::DictionaryPage;
use crate::schema::Physical;
use crate::schema::convert::{ReadConversion, SIGNED_INTERVAL_BYTES, Storage};
use crate::simd::native::PlainOldData;

/// The reader of values that are converted from bytes.
pub(super) fn converted_reader(
    physical: Physical,
    conversion: ReadConversion,
    data_type: &DataType,
    carries_prefix: bool,
) -> Result<Box<dyn ValueReader>> {
    let target = ConvertedColumn { physical, data_type, carries_prefix };
    Ok(match conversion {
        ReadConversion::Int96(unit) => target.reader(Int96 { unit }),
        ReadConversion::Decimal { exponent, to } => match to {
            Storage::I32 => target.reader(Decimal::<i32>::new(exponent)?),
            Storage::I64 => target.reader(Decimal::<i64>::new(exponent)?),
            Storage::I128 => target.reader(Decimal::<i128>::new(exponent)?),
            _ => target.reader(Decimal256 {
                factor: i256::from_i128(10).wrapping_pow(u32::from(exponent)),
            }),
        },
        ReadConversion::DecimalQuotient { exponent, to } => match to {
            Storage::I32 => target.reader(DecimalQuotient::<i32>::new(exponent)),
            Storage::I64 => target.reader(DecimalQuotient::<i64>::new(exponent)),
            Storage::I128 => target.reader(DecimalQuotient::<i128>::new(exponent)),
            _ => target.reader(DecimalQuotient::<i256>::new(exponent)),
        },
        ReadConversion::Float { to: Storage::F16 } => target.reader(Half),
        ReadConversion::Float { to: Storage::F32 } => target.reader(HalfTo32),
        ReadConversion::Float { .. } => target.reader(HalfTo64),
        ReadConversion::Interval(unit) if physical.byte_width() == Some(SIGNED_INTERVAL_BYTES) => {
            match unit {
                IntervalUnit::MonthDayNano => target.reader(SignedMonthDayNano),
                IntervalUnit::DayTime => target.reader(SignedDayTime),
                IntervalUnit::YearMonth => target.reader(SignedYearMonth),
            }
        }
        ReadConversion::Interval(IntervalUnit::MonthDayNano) => target.reader(MonthDayNano),
        ReadConversion::Interval(IntervalUnit::DayTime) => target.reader(DayTime),
        ReadConversion::Interval(IntervalUnit::YearMonth) => target.reader(YearMonth),
        _ => {
            return Err(Error::usage(format_args!("{physical} cannot be read as {data_type}")));
        }
    })
}

struct ConvertedColumn<'a> {
    physical: Physical,
    data_type: &'a DataType,
    carries_prefix: bool,
}

impl ConvertedColumn<'_> {
    fn reader<C: FromBytes + 'static>(self, convert: C) -> Box<dyn ValueReader> {
        match self.physical.byte_width() {
            Some(width) => {
                let decoder = FixedBytesDecoder::new(width, self.carries_prefix);
                let decoder = decoder.with_longest(LONGEST_JOINED);
                let source = FixedSource { width, decoder, convert, block: Vec::new() };
                PrimitiveReader::boxed(self.data_type, source)
            }
            None => {
                let decoder = SpanDecoder::new(self.physical, self.carries_prefix);
                let decoder = decoder.with_longest(LONGEST_JOINED);
                let source = ByteArraySource { decoder, convert, spans: Vec::new() };
                PrimitiveReader::boxed(self.data_type, source)
            }
        }
    }
}

/// Maximum bytes of a decimal in DELTA_BYTE_ARRAY, where a page of a few bytes may hold a million
/// decimals that begin with the same megabytes of zeros. Of 32 bytes, more are signs.
const LONGEST_JOINED: usize = 1 << 10;

/// INT96: nanoseconds of the day, then the Julian day.
struct Int96 {
    unit: TimeUnit,
}

/// The Julian day of 1970-01-01.
const UNIX_EPOCH_JULIAN_DAY: i64 = 2_440_588;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl FromBytes for Int96 {
    type Out = i64;

    fn convert(&self, bytes: &[u8]) -> Result<i64> {
        let parts = bytes.split_first_chunk::<8>();
        let Some((nanos, Ok(day))) = parts.map(|(nanos, day)| (nanos, <[u8; 4]>::try_from(day)))
        else {
            return Err(wrong_length("INT96", 12, bytes.len()));
        };
        let (nanos, day) = (i64::from_le_bytes(*nanos), i32::from_le_bytes(day));
        let per_second = match self.unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => NANOS_PER_SECOND,
        };
        let days = i64::from(day) - UNIX_EPOCH_JULIAN_DAY;
        days.checked_mul(SECONDS_PER_DAY * per_second)
            .and_then(|start| start.checked_add(nanos.div_euclid(NANOS_PER_SECOND / per_second)))
            .ok_or_else(|| {
                Error::unsupported(
                    "timestamp out of range",
                    format_args!(
                        "an INT96 timestamp, {days} days from 1970-01-01, overflows 64 bits of {:?}s; read INT96 in a coarser unit: \
                         Reader::int96(TimeUnit::Microsecond), or with marq --int96 us",
                        self.unit
                    ),
                )
            })
    }
}

/// Big-endian two's complement, times a power of ten.
struct Decimal<T> {
    factor: T,
}

/// A decimal of at most 16 bytes.
trait DecimalInt: ArrowNativeType + PlainOldData + TryFrom<i128> {
    fn power_of_ten(exponent: u8) -> Option<Self>;
    fn checked_times(self, factor: Self) -> Option<Self>;
    fn is_one(self) -> bool;
    /// The low bits.
    fn wrap(value: i128) -> Self;
}

macro_rules! decimal_int {
    ($($int:ty),*) => {$(
        impl DecimalInt for $int {
            fn power_of_ten(exponent: u8) -> Option<Self> {
                Self::checked_pow(10, u32::from(exponent))
            }
            fn checked_times(self, factor: Self) -> Option<Self> {
                self.checked_mul(factor)
            }
            fn is_one(self) -> bool {
                self == 1
            }
            #[allow(clippy::cast_possible_truncation, reason = "asked for")]
            fn wrap(value: i128) -> Self {
                value as Self
            }
        }
    )*};
}
decimal_int!(i32, i64, i128);

impl<T: DecimalInt> Decimal<T> {
    fn new(exponent: u8) -> Result<Self> {
        T::power_of_ten(exponent).map(|factor| Self { factor }).ok_or_else(|| {
            Error::usage(format_args!("a decimal cannot be rescaled by 10^{exponent}"))
        })
    }

    fn narrow(&self, value: i128, bytes: usize) -> Result<T> {
        let value = T::try_from(value).ok();
        value
            .and_then(|value| value.checked_times(self.factor))
            .ok_or_else(|| decimal_does_not_fit(bytes))
    }
}

impl<T: DecimalInt> FromBytes for Decimal<T> {
    type Out = T;

    fn convert(&self, bytes: &[u8]) -> Result<T> {
        let value = be_i128(bytes).ok_or_else(|| decimal_does_not_fit(bytes.len()))?;
        self.narrow(value, bytes.len())
    }

    fn convert_all(&self, bytes: &[u8], width: usize, out: &mut Vec<T>) -> Result<()> {
        if width == 0 || width > 16 {
            for value in bytes.chunks_exact(width.max(1)) {
                out.push(self.convert(value)?);
            }
            return Ok(());
        }
        // Loads the 16 bytes that end with the value, and shifts out those of its neighbours.
        let shift = 8 * (16 - width);
        let head = (16usize.div_ceil(width) * width).min(bytes.len());
        memory::room(out, bytes.len() / width)?;
        for value in bytes[..head].chunks_exact(width) {
            out.push(self.convert(value)?);
        }
        let Some(tail) = (head + width).checked_sub(16).and_then(|start| bytes.get(start..)) else {
            return Ok(());
        };
        let values = tail.windows(16).step_by(width).map(|window| {
            let window = *window.first_chunk::<16>().expect("windows of 16 bytes");
            (i128::from_be_bytes(window) << shift) >> shift
        });
        if self.factor.is_one() && size_of::<T>() == 16 {
            // Nothing can fail, so the loop has no branch.
            out.extend(values.map(T::wrap));
            return Ok(());
        }
        for value in values {
            out.push(self.narrow(value, width)?);
        }
        Ok(())
    }
}

struct Decimal256 {
    factor: i256,
}

impl FromBytes for Decimal256 {
    type Out = i256;

    fn convert(&self, bytes: &[u8]) -> Result<i256> {
        let too_long = || decimal_does_not_fit(bytes.len());
        let value = be_bytes::<32>(bytes).map(i256::from_be_bytes).ok_or_else(too_long)?;
        if self.factor == i256::ONE {
            return Ok(value);
        }
        value.checked_mul(self.factor).ok_or_else(too_long)
    }
}

/// Big-endian two's complement, divided by a power of ten: a decimal of negative scale.
struct DecimalQuotient<T> {
    divisor: i256,
    to: PhantomData<fn() -> T>,
}

impl<T: FromWide> DecimalQuotient<T> {
    fn new(exponent: u8) -> Self {
        let divisor = i256::from_i128(10).wrapping_pow(u32::from(exponent));
        Self { divisor, to: PhantomData }
    }
}

impl<T: FromWide> FromBytes for DecimalQuotient<T> {
    type Out = T;

    fn convert(&self, bytes: &[u8]) -> Result<T> {
        let value = be_bytes::<32>(bytes).map(i256::from_be_bytes);
        let value = value.ok_or_else(|| decimal_does_not_fit(bytes.len()))?;
        let is_multiple = value.checked_rem(self.divisor) == Some(i256::ZERO);
        let quotient = value.checked_div(self.divisor).filter(|_| is_multiple);
        quotient.and_then(T::from_wide).ok_or_else(|| no_multiple(value, self.divisor))
    }
}

/// A decimal of any width.
trait FromWide: ArrowNativeType + PlainOldData {
    fn from_wide(value: i256) -> Option<Self>;
}

macro_rules! from_wide {
    ($($int:ty),*) => {$(
        impl FromWide for $int {
            fn from_wide(value: i256) -> Option<Self> {
                Self::try_from(value.to_i128()?).ok()
            }
        }
    )*};
}
from_wide!(i32, i64, i128);

impl FromWide for i256 {
    fn from_wide(value: i256) -> Option<Self> {
        Some(value)
    }
}

#[cold]
fn no_multiple(value: i256, divisor: i256) -> Error {
    Error::unsupported(
        "conversion with loss",
        format_args!(
            "the value {value} is no multiple of {divisor}, of which the Arrow type has whole \
             ones, or has too many digits; read the column as its own type"
        ),
    )
}

/// The number in big-endian two's complement, if it fits.
fn be_i128(bytes: &[u8]) -> Option<i128> {
    be_bytes::<16>(bytes).map(i128::from_be_bytes)
}

/// Extends, or cuts where nothing but the sign is lost, to `N` bytes. No bytes at all are zero.
fn be_bytes<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xFF } else { 0 };
    let mut out = [sign; N];
    match bytes.len().checked_sub(N) {
        None => out[N - bytes.len()..].copy_from_slice(bytes),
        Some(extra) => {
            let (extra, kept) = bytes.split_at(extra);
            let same_sign = kept.first().is_some_and(|first| (first & 0x80 != 0) == (sign != 0));
            if !same_sign || extra.iter().any(|&byte| byte != sign) {
                return None;
            }
            out.copy_from_slice(kept);
        }
    }
    Some(out)
}

#[cold]
fn decimal_does_not_fit(bytes: usize) -> Error {
    Error::malformed(
        Spec::LogicalTypes("DECIMAL"),
        format_args!(
            "a stored value of {bytes} bytes has more digits than its declared precision allows; Reader::target with a wider \
             decimal reads up to 76 digits, and without the column the rest can be read"
        ),
    )
}

/// FLOAT16 as it is.
struct Half;

impl FromBytes for Half {
    type Out = f16;
    fn convert(&self, bytes: &[u8]) -> Result<f16> {
        <[u8; 2]>::try_from(bytes)
            .map(f16::from_le_bytes)
            .map_err(|_| wrong_length("FLOAT16", 2, bytes.len()))
    }
}

struct HalfTo32;

impl FromBytes for HalfTo32 {
    type Out = f32;
    fn convert(&self, bytes: &[u8]) -> Result<f32> {
        Half.convert(bytes).map(f16::to_f32)
    }
}

struct HalfTo64;

impl FromBytes for HalfTo64 {
    type Out = f64;
    fn convert(&self, bytes: &[u8]) -> Result<f64> {
        Half.convert(bytes).map(f16::to_f64)
    }
}

/// Values of one width, converted.
struct FixedSource<C> {
    width: usize,
    decoder: FixedBytesDecoder,
    convert: C,
    block: Vec<u8>,
}

/// Values converted at a time: their bytes stay in the first-level cache.
const BLOCK: usize = 1024;

/// Bytes of values converted at a time, or one value if it has more: a file states their width.
const BLOCK_BYTES: usize = 64 << 10;

impl<C: FromBytes> FixedSource<C> {
    /// Converts `n` values that lie end to end.
    fn convert_all(&self, bytes: &[u8], n: usize, out: &mut Vec<C::Out>) -> Result<()> {
        if self.width > 0 {
            return self.convert.convert_all(bytes, self.width, out);
        }
        if n > 0 {
            out.resize(out.len() + n, self.convert.convert(&[])?);
        }
        Ok(())
    }
}

impl<C: FromBytes> PrimitiveSource for FixedSource<C> {
    type Out = C::Out;

    fn entry_width(&self) -> Option<usize> {
        Some(self.width).filter(|width| *width > 0)
    }

    fn read_dictionary(&mut self, page: &DictionaryPage, out: &mut Vec<C::Out>) -> Result<()> {
        self.convert_all(&whole_values(page, self.width)?, page.values, out)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.decoder.set_page(encoding, bytes, count)
    }

    fn leave_page(&mut self) {
        self.decoder.leave_page();
    }

    fn read(&mut self, n: usize, max_bytes: usize, out: &mut Vec<C::Out>) -> Result<()> {
        let mut left = n;
        let max = (BLOCK_BYTES / self.width.max(1)).clamp(1, BLOCK);
        if self.width > max_bytes.max(BLOCK_BYTES) {
            return Err(over_memory_limit(self.width as u64, max_bytes));
        }
        while left > 0 {
            let n = left.min(max);
            let mut block = std::mem::take(&mut self.block);
            block.clear();
            self.decoder.read(n, max_bytes, &mut block)?;
            memory::room(out, n)?;
            self.convert_all(&block, n, out)?;
            self.block = block;
            left -= n;
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.decoder.skip(n)
    }
}

/// Values of any length, converted: decimals in BYTE_ARRAY.
struct ByteArraySource<C> {
    decoder: SpanDecoder,
    convert: C,
    spans: Vec<ValueSpan>,
}

impl<C: FromBytes> PrimitiveSource for ByteArraySource<C> {
    type Out = C::Out;

    fn entry_width(&self) -> Option<usize> {
        None
    }

    fn read_dictionary(&mut self, page: &DictionaryPage, out: &mut Vec<C::Out>) -> Result<()> {
        let mut values = plain::ByteArrays::new(page.bytes.clone(), page.values)?;
        let mut left = page.values;
        while left > 0 {
            self.spans.clear();
            values.read_spans(left.min(BLOCK), &mut self.spans)?;
            for span in &self.spans {
                out.push(self.convert.convert(span.slice(values.buffer()))?);
            }
            left -= self.spans.len();
        }
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.decoder.set_page(encoding, bytes, count)
    }

    fn leave_page(&mut self) {
        self.decoder.leave_page();
    }

    fn read(&mut self, n: usize, max_bytes: usize, out: &mut Vec<C::Out>) -> Result<()> {
        let mut left = n;
        while left > 0 {
            self.spans.clear();
            self.decoder.read_spans(left.min(BLOCK), max_bytes, &mut self.spans)?;
            let source = self.decoder.buffer()?;
            for span in &self.spans {
                out.push(self.convert.convert(span.slice(source))?);
            }
            left -= self.spans.len();
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.decoder.skip(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn int96_is_floored_and_signed() {
        let value = |nanos: i64, day: i32| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat();
        let micros = Int96 { unit: TimeUnit::Microsecond };
        assert_eq!(micros.convert(&value(0, 2_440_588)).unwrap(), 0);
        assert_eq!(micros.convert(&value(1_999, 2_440_588)).unwrap(), 1);
        assert_eq!(micros.convert(&value(0, 2_440_587)).unwrap(), -86_400_000_000);
        let nanos = Int96 { unit: TimeUnit::Nanosecond };
        let error = nanos.convert(&value(0, i32::MAX)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported("timestamp out of range"));
    }

    #[test]
    fn few_wide_decimals_are_converted_at_a_time() {
        for (width, max) in [(16, BLOCK * 16), (1 << 10, BLOCK_BYTES), (1 << 20, 1 << 20)] {
            let n = 4 * BLOCK_BYTES / width + 3;
            let (physical, convert) =
                (Physical::FixedLenByteArray(width), Decimal::new(0).unwrap());
            let decoder = FixedBytesDecoder::new(width, false);
            let mut source =
                FixedSource::<Decimal<i128>> { width, decoder, convert, block: vec![] };
            let mut values = vec![0; n * width];
            (1..=n).for_each(|i| values[i * width - 1] = i as u8);
            source.set_page(Encoding::Plain, values.into(), Count::Exactly(n)).unwrap();
            let mut out = Vec::new();
            source.read(n, 1 << 30, &mut out).unwrap();
            assert!(
                out.iter().zip(1..).all(|(found, i)| *found == i128::from(i as u8)),
                "{physical}"
            );
            assert!(source.block.capacity() <= max, "{physical}: {}", source.block.capacity());
        }
    }

    #[test]
    fn decimals_of_every_width_keep_their_sign() {
        let mut rng = fastrand::Rng::with_seed(7);
        for width in 1..=20usize {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for _ in 0..100 {
                let bits = 8 * width.min(16) as u32;
                let value = (rng.i128(..) << (128 - bits)) >> (128 - bits);
                let sign = if value < 0 { 0xFF } else { 0 };
                bytes.extend(std::iter::repeat_n(sign, width.saturating_sub(16)));
                bytes.extend_from_slice(&value.to_be_bytes()[16 - width.min(16)..]);
                expected.push(value);
            }
            let mut out = Vec::new();
            Decimal::<i128>::new(0).unwrap().convert_all(&bytes, width, &mut out).unwrap();
            assert_eq!(out, expected, "width {width}");
            let mut wide = Vec::new();
            Decimal256 { factor: i256::ONE }.convert_all(&bytes, width, &mut wide).unwrap();
            assert!(wide.iter().zip(&expected).all(|(a, b)| *a == i256::from_i128(*b)));
        }
        assert_eq!(be_i128(&[]), Some(0));
        assert_eq!(be_i128(&[1; 17]), None);
    }
}
