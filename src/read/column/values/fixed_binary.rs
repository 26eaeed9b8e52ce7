//! Values whose bytes are not their number: INT96, FIXED_LEN_BYTE_ARRAY, and decimals in BYTE_ARRAY.

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, UInt32Array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, i256};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bytes::Bytes;
use half::f16;

use super::binary::SpanDecoder;
use super::reader::{
    Count, ValueReader, fixed_width_array, illegal, no_dictionary, no_page, over_memory_limit,
    vec_for,
};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{Span, plain, split};
use crate::error::{Error, Result, Spec};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::schema::Physical;
use crate::schema::convert::{Conversion, Storage};
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::simd::native::PlainOldData;
use crate::simd::{Isa, expand};
use crate::spare::Spare;

/// The column of a leaf whose bytes are converted.
pub(super) fn fixed_binary_reader(
    physical: Physical,
    conversion: Conversion,
    data_type: &DataType,
    carries_prefix: bool,
) -> Result<Box<dyn ValueReader>> {
    let column = Made { physical, data_type, carries_prefix };
    Ok(match conversion {
        Conversion::Int96(unit) => column.of(Int96 { unit }),
        Conversion::Decimal { exponent, to } => match to {
            Storage::I32 => column.of(Decimal::<i32>::new(exponent)?),
            Storage::I64 => column.of(Decimal::<i64>::new(exponent)?),
            Storage::I128 => column.of(Decimal::<i128>::new(exponent)?),
            _ => column
                .of(Decimal256 { factor: i256::from_i128(10).wrapping_pow(u32::from(exponent)) }),
        },
        Conversion::Float { to: Storage::F16 } => column.of(Half),
        Conversion::Float { to: Storage::F32 } => column.of(HalfTo32),
        Conversion::Float { .. } => column.of(HalfTo64),
        Conversion::Interval(IntervalUnit::MonthDayNano) => column.of(MonthDayNano),
        Conversion::Interval(IntervalUnit::DayTime) => column.of(DayTime),
        Conversion::Interval(IntervalUnit::YearMonth) => column.of(YearMonth),
        _ => {
            return Err(Error::usage(format_args!("{physical} cannot be read as {data_type}")));
        }
    })
}

struct Made<'a> {
    physical: Physical,
    data_type: &'a DataType,
    carries_prefix: bool,
}

impl Made<'_> {
    fn of<C: FromBytes + 'static>(self, convert: C) -> Box<dyn ValueReader> {
        let data_type = self.data_type.clone();
        match self.physical.byte_width() {
            Some(width) => Box::new(ConvertedReader {
                width,
                values: FixedSource::new(width, self.carries_prefix),
                convert,
                dictionary: None,
                out: Vec::new(),
                spare: Spare::new(0),
                block: Vec::new(),
                data_type,
            }),
            None => Box::new(ConvertedBinaryReader {
                values: SpanDecoder::new(self.physical, self.carries_prefix),
                convert,
                dictionary: None,
                out: Vec::new(),
                spare: Spare::new(0),
                spans: Vec::new(),
                data_type,
            }),
        }
    }
}

/// From the bytes of a value to the value of an array.
trait FromBytes: Send {
    type Out: ArrowNativeType + PlainOldData;
    fn convert(&self, bytes: &[u8]) -> Result<Self::Out>;

    /// Converts values of `width` bytes each, laid end to end.
    fn convert_all(&self, bytes: &[u8], width: usize, out: &mut Vec<Self::Out>) -> Result<()> {
        for value in bytes.chunks_exact(width) {
            out.push(self.convert(value)?);
        }
        Ok(())
    }
}

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
        let (Some((nanos, day)), true) = (bytes.split_first_chunk::<8>(), bytes.len() == 12) else {
            return Err(wrong_length("INT96", 12, bytes.len()));
        };
        let nanos = i64::from_le_bytes(*nanos);
        let day = <[u8; 4]>::try_from(day).map(i32::from_le_bytes).unwrap_or_default();
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
        // The 16 bytes that end where the value ends, shifted so that the bytes of its neighbour fall out.
        let shift = 8 * (16 - width);
        let head = (16usize.div_ceil(width) * width).min(bytes.len());
        for value in bytes[..head].chunks_exact(width) {
            out.push(self.convert(value)?);
        }
        let Some(tail) = (head + width).checked_sub(16).and_then(|start| bytes.get(start..)) else {
            return Ok(());
        };
        let values = tail.windows(16).step_by(width).map(|window| {
            let window = <[u8; 16]>::try_from(window).unwrap_or_default();
            (i128::from_be_bytes(window) << shift) >> shift
        });
        if self.factor.is_one() && size_of::<T>() == 16 {
            // Nothing can fail: no branch for a value.
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

#[cold]
fn wrong_length(what: &str, expected: usize, found: usize) -> Error {
    Error::mismatch(
        Spec::Encodings("PLAIN"),
        &format!("bytes of a value of {what}"),
        expected,
        found,
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

/// The months, days and milliseconds of an INTERVAL: three unsigned numbers.
fn interval_parts(bytes: &[u8]) -> Result<[u32; 3]> {
    let mut parts = [0; 3];
    if bytes.len() != 12 {
        return Err(wrong_length("INTERVAL", 12, bytes.len()));
    }
    for (part, bytes) in parts.iter_mut().zip(bytes.chunks_exact(4)) {
        *part = u32::from_le_bytes(<[u8; 4]>::try_from(bytes).unwrap_or_default());
    }
    Ok(parts)
}

#[cold]
fn interval_does_not_fit(parts: [u32; 3], unit: &str) -> Error {
    let [months, days, millis] = parts;
    Error::unsupported(
        "interval out of range",
        format_args!(
            "{months} months, {days} days, {millis} ms do not fit an Arrow interval of {unit}"
        ),
    )
}

/// Months, days and nanoseconds in one: the layout of Arrow's struct, little end first.
struct MonthDayNano;

impl FromBytes for MonthDayNano {
    type Out = i128;
    fn convert(&self, bytes: &[u8]) -> Result<i128> {
        let parts @ [months, days, millis] = interval_parts(bytes)?;
        if months > i32::MAX.cast_unsigned() || days > i32::MAX.cast_unsigned() {
            return Err(interval_does_not_fit(parts, "months, days and nanoseconds"));
        }
        let nanos = i128::from(millis) * 1_000_000;
        Ok(nanos << 64 | i128::from(days) << 32 | i128::from(months))
    }
}

/// Days and milliseconds; there must be no months.
struct DayTime;

impl FromBytes for DayTime {
    type Out = i64;
    fn convert(&self, bytes: &[u8]) -> Result<i64> {
        let parts @ [months, days, millis] = interval_parts(bytes)?;
        let limit = i32::MAX.cast_unsigned();
        if months != 0 || days > limit || millis > limit {
            return Err(interval_does_not_fit(parts, "days and milliseconds"));
        }
        Ok(i64::from(millis) << 32 | i64::from(days))
    }
}

/// Months; there must be nothing else.
struct YearMonth;

impl FromBytes for YearMonth {
    type Out = i32;
    fn convert(&self, bytes: &[u8]) -> Result<i32> {
        let parts @ [months, days, millis] = interval_parts(bytes)?;
        match i32::try_from(months) {
            Ok(months) if days == 0 && millis == 0 => Ok(months),
            _ => Err(interval_does_not_fit(parts, "months")),
        }
    }
}

/// Bytes of one width from any encoding that has them.
struct FixedSource {
    width: usize,
    carries_prefix: bool,
    decoder: FixedDecoder,
}

enum FixedDecoder {
    Nothing,
    Dictionary(Indices),
    Plain(plain::FixedBytes),
    Split(split::Decoder),
    Delta(Box<SpanDecoder>, Vec<Span>),
}

impl FixedSource {
    fn new(width: usize, carries_prefix: bool) -> Self {
        Self { width, carries_prefix, decoder: FixedDecoder::Nothing }
    }

    fn physical(&self) -> Physical {
        if self.width == 12 { Physical::Int96 } else { Physical::FixedLenByteArray(self.width) }
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        let stated = bytes.len().checked_div(self.width).unwrap_or_else(|| count.most());
        self.decoder = match encoding {
            Encoding::Plain => {
                let n = match count {
                    Count::Exactly(n) => n,
                    Count::AtMost(n) => n.min(stated),
                };
                FixedDecoder::Plain(plain::FixedBytes::new(bytes, self.width, n)?)
            }
            Encoding::RleDictionary | Encoding::PlainDictionary => {
                FixedDecoder::Dictionary(Indices::new(bytes, count.most())?)
            }
            Encoding::ByteStreamSplit => {
                let n = count.settle(stated, "BYTE_STREAM_SPLIT")?;
                FixedDecoder::Split(split::Decoder::new(bytes, self.width, n)?)
            }
            Encoding::DeltaByteArray => {
                // The decoder of the last page lends its last value, where a writer needs that.
                let mut spans = match std::mem::replace(&mut self.decoder, FixedDecoder::Nothing) {
                    FixedDecoder::Delta(spans, _) => spans,
                    _ => Box::new(SpanDecoder::new(Physical::ByteArray, self.carries_prefix)),
                };
                spans.set_page(encoding, bytes, count)?;
                FixedDecoder::Delta(spans, Vec::new())
            }
            other => return Err(illegal(other, self.physical())),
        };
        Ok(())
    }

    /// Appends the bytes of the next `n` values; not for dictionary pages.
    fn read(&mut self, n: usize, room: usize, out: &mut Vec<u8>) -> Result<()> {
        match &mut self.decoder {
            FixedDecoder::Plain(decoder) => decoder.read(n, out),
            FixedDecoder::Split(decoder) => decoder.read(n, out),
            FixedDecoder::Delta(decoder, spans) => {
                let mut left = n;
                while left > 0 {
                    spans.clear();
                    decoder.read_spans(left, room, spans)?;
                    let source = decoder.buffer()?;
                    for span in &*spans {
                        let value = span.slice(source);
                        if value.len() != self.width {
                            return Err(Error::mismatch(
                                Spec::Encodings("DELTA_BYTE_ARRAY"),
                                "bytes of a FIXED_LEN_BYTE_ARRAY",
                                self.width,
                                value.len(),
                            ));
                        }
                        out.extend_from_slice(value);
                    }
                    left -= spans.len();
                }
                Ok(())
            }
            FixedDecoder::Dictionary(_) | FixedDecoder::Nothing => Err(no_page()),
        }
    }

    /// Lets go of the page, unless its last value is for the next one.
    fn leave_page(&mut self) {
        if !self.carries_prefix {
            self.decoder = FixedDecoder::Nothing;
        }
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.decoder {
            FixedDecoder::Plain(decoder) => decoder.skip(n),
            FixedDecoder::Split(decoder) => decoder.skip(n),
            FixedDecoder::Delta(decoder, _) => decoder.skip(n),
            FixedDecoder::Dictionary(indices) => indices.skip(n),
            FixedDecoder::Nothing if n == 0 => Ok(()),
            FixedDecoder::Nothing => Err(no_page()),
        }
    }
}

/// Values of one width, converted.
struct ConvertedReader<C: FromBytes> {
    width: usize,
    values: FixedSource,
    convert: C,
    dictionary: Option<Vec<C::Out>>,
    out: Vec<C::Out>,
    spare: Spare,
    block: Vec<u8>,
    data_type: DataType,
}

/// Values converted at a time: their bytes stay in the first-level cache.
const BLOCK: usize = 1024;

impl<C: FromBytes> ValueReader for ConvertedReader<C> {
    fn use_spare(&mut self, spare: &Spare) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        self.spare.reserve(&mut self.out, slots);
    }

    fn dictionary_bytes(&self, entries: usize, _byte_len: usize) -> usize {
        entries.saturating_mul(size_of::<C::Out>())
    }

    fn leave_page(&mut self) -> bool {
        self.values.leave_page();
        false
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let bytes = whole_values(&page, self.width)?;
        let mut dictionary = vec_for(page.values)?;
        if self.width == 0 {
            dictionary.resize(page.values, self.convert.convert(&[])?);
        } else {
            self.convert.convert_all(&bytes, self.width, &mut dictionary)?;
        }
        self.dictionary = Some(dictionary);
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.values.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        if let FixedDecoder::Dictionary(indices) = &mut self.values.decoder {
            let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
            return indices.gather(n, dictionary, &mut self.out);
        }
        let mut left = n;
        while left > 0 {
            let n = left.min(BLOCK);
            self.block.clear();
            self.values.read(n, room, &mut self.block)?;
            if self.width == 0 {
                for _ in 0..n {
                    self.out.push(self.convert.convert(&[])?);
                }
            } else {
                self.convert.convert_all(&self.block, self.width, &mut self.out)?;
            }
            left -= n;
        }
        Ok(())
    }

    fn read_picked(&mut self, n: usize, picks: &Bitmap, room: usize) -> Result<()> {
        let start = self.out.len();
        self.read(n, room)?;
        compact(&mut self.out, start, picks, 0);
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.values.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.out.len() - values;
        expand::spread(&mut self.out, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.out.capacity() * size_of::<C::Out>()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        fixed_width_array(&self.data_type, std::mem::take(&mut self.out), nulls, &self.spare)
    }
}

/// Values of any length, converted: decimals in BYTE_ARRAY.
struct ConvertedBinaryReader<C: FromBytes> {
    values: SpanDecoder,
    convert: C,
    dictionary: Option<Vec<C::Out>>,
    out: Vec<C::Out>,
    spare: Spare,
    spans: Vec<Span>,
    data_type: DataType,
}

impl<C: FromBytes> ValueReader for ConvertedBinaryReader<C> {
    fn use_spare(&mut self, spare: &Spare) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        self.spare.reserve(&mut self.out, slots);
    }

    fn dictionary_bytes(&self, entries: usize, _byte_len: usize) -> usize {
        entries.saturating_mul(size_of::<C::Out>())
    }

    fn leave_page(&mut self) -> bool {
        self.values.leave_page();
        false
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let mut values = plain::ByteArrays::new(page.bytes, page.values)?;
        let mut dictionary = vec_for(page.values)?;
        while dictionary.len() < page.values {
            self.spans.clear();
            values.read_spans((page.values - dictionary.len()).min(BLOCK), &mut self.spans)?;
            for span in &self.spans {
                dictionary.push(self.convert.convert(span.slice(values.buffer()))?);
            }
        }
        self.dictionary = Some(dictionary);
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.values.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        if let Some(indices) = self.values.indices() {
            let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
            return indices.gather(n, dictionary, &mut self.out);
        }
        let mut left = n;
        while left > 0 {
            self.spans.clear();
            self.values.read_spans(left.min(BLOCK), room, &mut self.spans)?;
            let source = self.values.buffer()?;
            for span in &self.spans {
                self.out.push(self.convert.convert(span.slice(source))?);
            }
            left -= self.spans.len();
        }
        Ok(())
    }

    fn read_picked(&mut self, n: usize, picks: &Bitmap, room: usize) -> Result<()> {
        let start = self.out.len();
        self.read(n, room)?;
        compact(&mut self.out, start, picks, 0);
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.values.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.out.len() - values;
        expand::spread(&mut self.out, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.out.capacity() * size_of::<C::Out>()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        fixed_width_array(&self.data_type, std::mem::take(&mut self.out), nulls, &self.spare)
    }
}

/// Bytes of one width, as they are.
pub(super) struct FixedBinaryReader {
    width: usize,
    values: FixedSource,
    dictionary: Option<DictionaryPage>,
    out: Vec<u8>,
    spare: Spare,
    indices: Vec<u32>,
}

impl FixedBinaryReader {
    pub(super) fn new(width: usize, data_type: DataType) -> Result<Self> {
        debug_assert!(
            matches!(data_type, DataType::FixedSizeBinary(_)),
            "the only type of this column"
        );
        Ok(Self {
            width,
            values: FixedSource::new(width, false),
            dictionary: None,
            out: Vec::new(),
            spare: Spare::new(0),
            indices: Vec::new(),
        })
    }
}

impl ValueReader for FixedBinaryReader {
    fn use_spare(&mut self, spare: &Spare) {
        self.spare = spare.clone();
    }

    fn reserve(&mut self, slots: usize) {
        let bytes = slots.saturating_mul(self.width).min(MOST_RESERVED);
        self.spare.reserve(&mut self.out, bytes);
    }

    fn dictionary_bytes(&self, _entries: usize, _byte_len: usize) -> usize {
        0
    }

    fn leave_page(&mut self) -> bool {
        self.values.leave_page();
        false
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let bytes = whole_values(&page, self.width)?;
        self.dictionary = Some(DictionaryPage { values: page.values, bytes });
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.values.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        let wanted = n.saturating_mul(self.width);
        if wanted > room {
            return Err(over_memory_limit(wanted as u64, room));
        }
        let FixedDecoder::Dictionary(indices) = &mut self.values.decoder else {
            return self.values.read(n, room, &mut self.out);
        };
        let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
        self.indices.clear();
        indices.read(n, &mut self.indices)?;
        for &index in &self.indices {
            let start = (index as usize).saturating_mul(self.width);
            // Where values have no bytes, all indices have as many.
            let value = dictionary.bytes.get(start..start.saturating_add(self.width));
            let value = value.filter(|_| (index as usize) < dictionary.values);
            let value = value.ok_or_else(|| out_of_range(index, dictionary.values))?;
            self.out.extend_from_slice(value);
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.values.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let width = self.width;
        let start = self.out.len() - values * width;
        self.out.resize(start + slots * width, 0);
        let region = &mut self.out[start..];
        match width {
            4 => spread_fixed::<4>(region, values, validity, first),
            8 => spread_fixed::<8>(region, values, validity, first),
            12 => spread_fixed::<12>(region, values, validity, first),
            16 => spread_fixed::<16>(region, values, validity, first),
            32 => spread_fixed::<32>(region, values, validity, first),
            _ => spread_any(region, width, values, validity, first),
        }
    }

    fn bytes_held(&self) -> usize {
        self.out.capacity()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef> {
        let out = std::mem::take(&mut self.out);
        let width = i32::try_from(self.width)
            .map_err(|_| Error::unsupported("FIXED_LEN_BYTE_ARRAY", "a length beyond 2^31"))?;
        let out = self.spare.lend(out);
        let array = FixedSizeBinaryArray::try_new_with_len(width, out, nulls, slots)?;
        Ok(std::sync::Arc::new(array))
    }
}

/// The bytes of all values of a dictionary page of this width, which are there.
fn whole_values(page: &DictionaryPage, width: usize) -> Result<Bytes> {
    // `new` checks that the page holds them all.
    plain::FixedBytes::new(page.bytes.clone(), width, page.values)?;
    Ok(page.bytes.slice(..page.values * width))
}

/// The values at `indices`, some of which may be null, as `arrow_select::take` gives them; that counts the bytes of values of one width, and finds none
/// where they have none.
pub(super) fn taken(values: &ArrayRef, indices: &UInt32Array) -> Result<ArrayRef> {
    if *values.data_type() == DataType::FixedSizeBinary(0) {
        return without_bytes(indices.nulls().cloned(), indices.len());
    }
    Ok(arrow_select::take::take(values, indices, None)?)
}

/// The values of two arrays, none of which is null, one after the other; as [`taken`] does.
pub(super) fn joined(first: &ArrayRef, second: &ArrayRef) -> Result<ArrayRef> {
    if *first.data_type() == DataType::FixedSizeBinary(0) {
        return without_bytes(None, first.len() + second.len());
    }
    Ok(arrow_select::concat::concat(&[first, second])?)
}

/// So many values of no bytes.
fn without_bytes(nulls: Option<NullBuffer>, len: usize) -> Result<ArrayRef> {
    let none = Buffer::from_vec(Vec::<u8>::new());
    Ok(std::sync::Arc::new(FixedSizeBinaryArray::try_new_with_len(0, none, nulls, len)?))
}

/// Moves the first `values` values of `W` bytes to the slots that are valid; the others become 0.
fn spread_fixed<const W: usize>(region: &mut [u8], values: usize, validity: &Bitmap, first: usize) {
    expand::spread_in(Isa::best(), region.as_chunks_mut::<W>().0, values, validity, first);
}

/// As [`spread_fixed`], for any width.
fn spread_any(region: &mut [u8], width: usize, values: usize, validity: &Bitmap, first: usize) {
    let slots = region.len().checked_div(width).unwrap_or(0);
    // From the back, so that no value is overwritten before it has moved.
    let mut from = values;
    for slot in (0..slots).rev() {
        let to = slot * width;
        if validity.get(first + slot) {
            from -= 1;
            region.copy_within(from * width..(from + 1) * width, to);
        } else {
            region[to..to + width].fill(0);
        }
    }
}

/// Bytes reserved for a batch before its first value is seen.
const MOST_RESERVED: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn every_width_is_spread_as_any_width_is() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        let slots = 200;
        let mut validity = Bitmap::default();
        (0..slots).for_each(|_| validity.append_run(rng.bool(), 1));
        let values = (0..slots).filter(|i| validity.get(*i)).count();
        fn by<const W: usize>(region: &mut [u8], values: usize, validity: &Bitmap) {
            spread_fixed::<W>(region, values, validity, 0);
        }
        type Spread = fn(&mut [u8], usize, &Bitmap);
        let cases: [(usize, Spread); 5] =
            [(4, by::<4>), (8, by::<8>), (12, by::<12>), (16, by::<16>), (32, by::<32>)];
        for (width, spread) in cases {
            let mut region: Vec<u8> = (0..slots * width).map(|_| rng.u8(..)).collect();
            let mut expected = region.clone();
            spread_any(&mut expected, width, values, &validity, 0);
            spread(&mut region, values, &validity);
            assert_eq!(region, expected, "width {width} seed {seed}");
        }
    }

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

    #[test]
    fn interval_keeps_months_days_and_milliseconds() {
        let bytes = [1u32, 2, 3].iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<_>>();
        let value = MonthDayNano.convert(&bytes).unwrap();
        assert_eq!(value.to_le_bytes()[..4], 1i32.to_le_bytes());
        assert_eq!(value.to_le_bytes()[4..8], 2i32.to_le_bytes());
        assert_eq!(value.to_le_bytes()[8..], 3_000_000i64.to_le_bytes());
        assert!(DayTime.convert(&bytes).is_err(), "months would be lost");
    }
}
