//! Reads INT32, INT64, FLOAT and DOUBLE as integers of 4 or 8 bytes, which are kept, widened,
//! narrowed or scaled.
//!
//! Floats are handled as their bits; only ALP computes with them.

use arrow_buffer::{ArrowNativeType, i256};
use arrow_schema::DataType;
use bytes::Bytes;

use super::primitive::{PrimitiveReader, PrimitiveSource};
use super::reader::{Count, ValueReader, illegal, no_page};
use crate::encoding::alp::{self, Alp};
use crate::encoding::pfor::{self, Pfor};
use crate::encoding::vectors::{VectorWord, stated_len};
use crate::encoding::{delta_binary, plain, split};
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::schema::Physical;
use crate::schema::convert::{ReadConversion, Scale, Storage};
use crate::simd::native::PlainOldData;

/// The reader of values that are stored as integers of 4 or 8 bytes.
pub(super) fn int_reader(
    physical: Physical,
    conversion: ReadConversion,
    data_type: &DataType,
) -> Result<Box<dyn ValueReader>> {
    match physical {
        Physical::Int32 | Physical::Float => of_int::<i32>(physical, conversion, data_type),
        _ => of_int::<i64>(physical, conversion, data_type),
    }
}

fn of_int<P: PhysicalInt>(
    physical: Physical,
    conversion: ReadConversion,
    data_type: &DataType,
) -> Result<Box<dyn ValueReader>> {
    let same = || PrimitiveReader::boxed(data_type, IntSource::<P, _>::new(physical, Identity));
    let wrong = || Error::usage(format_args!("{physical} cannot be read as {data_type}"));
    match conversion {
        ReadConversion::Float { to: Storage::F32 } if P::BYTES == 4 => Ok(same()),
        ReadConversion::Float { to: Storage::F64 } if P::BYTES == 8 => Ok(same()),
        ReadConversion::Float { to: Storage::F64 } => {
            let widen = Converted {
                convert: |_, words: &[P], out: &mut Vec<f64>| {
                    out.extend(words.iter().map(|word| f64::from(word.f32_bits())));
                    Ok(())
                },
                rule: IntRule { unsigned: false, scale: Scale::Keep },
            };
            Ok(PrimitiveReader::boxed(data_type, IntSource::new(physical, widen)))
        }
        ReadConversion::Integer { unsigned, scale, to } => {
            let rule = IntRule { unsigned, scale };
            if scale == Scale::Keep && to.byte_width() == P::BYTES && !to.is_float() {
                return Ok(same());
            }
            Ok(match to {
                Storage::I8 => of_rule::<P, i8>(physical, data_type, rule),
                Storage::I16 => of_rule::<P, i16>(physical, data_type, rule),
                Storage::I32 => of_rule::<P, i32>(physical, data_type, rule),
                Storage::I64 => of_rule::<P, i64>(physical, data_type, rule),
                Storage::I128 => of_rule::<P, i128>(physical, data_type, rule),
                Storage::I256 => of_rule::<P, i256>(physical, data_type, rule),
                Storage::F32 => of_rule::<P, f32>(physical, data_type, rule),
                Storage::F64 => of_rule::<P, f64>(physical, data_type, rule),
                Storage::F16 => return Err(wrong()),
            })
        }
        _ => Err(wrong()),
    }
}

fn of_rule<P: PhysicalInt, T: FromPhysicalInt>(
    physical: Physical,
    data_type: &DataType,
    rule: IntRule,
) -> Box<dyn ValueReader> {
    let convert = match (rule.scale, rule.unsigned) {
        (Scale::Keep, false) => keep_signed::<P, T>,
        (Scale::Keep, true) => keep_unsigned::<P, T>,
        (Scale::Narrow, _) => narrow::<P, T>,
        (Scale::Multiply(_), _) => multiply::<P, T>,
        (Scale::PowerOfTen(_), _) => multiply_wide::<P, T>,
        (Scale::Divide(_), _) => divide::<P, T>,
    };
    PrimitiveReader::boxed(data_type, IntSource::new(physical, Converted { convert, rule }))
}

/// A physical word: `i32` or `i64`, whatever its meaning.
pub(super) trait PhysicalInt:
    plain::Native + delta_binary::Int + VectorWord + split::SplitWord + ArrowNativeType + PlainOldData
{
    const BYTES: usize;
    /// The float of this width.
    type Float: alp::Float<Int = Self>;
    fn signed(self) -> i64;
    fn unsigned(self) -> i64;
    /// The low 32 bits as a float.
    fn f32_bits(self) -> f32;
}

impl PhysicalInt for i32 {
    const BYTES: usize = 4;
    type Float = f32;
    fn signed(self) -> i64 {
        i64::from(self)
    }
    fn unsigned(self) -> i64 {
        i64::from(self.cast_unsigned())
    }
    fn f32_bits(self) -> f32 {
        f32::from_bits(self.cast_unsigned())
    }
}

impl PhysicalInt for i64 {
    const BYTES: usize = 8;
    type Float = f64;
    fn signed(self) -> i64 {
        self
    }
    /// The bits as they are: nothing is wider than 64 bits of an unsigned number here.
    fn unsigned(self) -> i64 {
        self
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the low bits are wanted"
    )]
    fn f32_bits(self) -> f32 {
        f32::from_bits(self as u32)
    }
}

/// An Arrow value that a word can become.
pub(super) trait FromPhysicalInt: ArrowNativeType + PlainOldData {
    /// By dropping high bits or extending the sign.
    fn wrap(value: i64) -> Self;
    /// Exactly, or not at all; unsigned targets are recognised by the width.
    fn exact(value: i64) -> Option<Self>;
    /// The product, if it fits.
    fn times(value: i64, factor: i64) -> Option<Self>;
    /// The product, if it fits; of decimals alone.
    fn times_wide(value: i64, factor: i256) -> Option<Self>;
}

macro_rules! from_word {
    ($($int:ty),*) => {$(
        impl FromPhysicalInt for $int {
            #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, reason = "the annotation promises the range")]
            fn wrap(value: i64) -> Self {
                value as Self
            }
            fn exact(value: i64) -> Option<Self> {
                Self::try_from(value).ok()
            }
            fn times(value: i64, factor: i64) -> Option<Self> {
                Self::try_from(i128::from(value) * i128::from(factor)).ok()
            }
            fn times_wide(value: i64, factor: i256) -> Option<Self> {
                let product = i256::times_wide(value, factor)?;
                product.to_i128().and_then(|product| product.try_into().ok())
            }
        }
    )*};
}
from_word!(i8, i16, i32, i64, i128);

impl FromPhysicalInt for i256 {
    fn wrap(value: i64) -> Self {
        Self::from_i128(i128::from(value))
    }
    fn exact(value: i64) -> Option<Self> {
        Some(Self::wrap(value))
    }
    fn times(value: i64, factor: i64) -> Option<Self> {
        Some(Self::from_i128(i128::from(value) * i128::from(factor)))
    }
    fn times_wide(value: i64, factor: i256) -> Option<Self> {
        Self::wrap(value).checked_mul(factor)
    }
}

macro_rules! float_from_word {
    ($($float:ty),*) => {$(
        impl FromPhysicalInt for $float {
            #[expect(clippy::cast_precision_loss, reason = "the conversion table lets only exact ranges through")]
            fn wrap(value: i64) -> Self {
                value as Self
            }
            fn exact(value: i64) -> Option<Self> {
                Some(Self::wrap(value))
            }
            fn times(_value: i64, _factor: i64) -> Option<Self> {
                None
            }
            fn times_wide(_value: i64, _factor: i256) -> Option<Self> {
                None
            }
        }
    )*};
}
float_from_word!(f32, f64);

/// How words become values.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntRule {
    unsigned: bool,
    scale: Scale,
}

impl IntRule {
    fn value<P: PhysicalInt>(self, word: P) -> i64 {
        if self.unsigned { word.unsigned() } else { word.signed() }
    }
}

fn keep_signed<P: PhysicalInt, T: FromPhysicalInt>(
    _: IntRule,
    words: &[P],
    out: &mut Vec<T>,
) -> Result<()> {
    out.extend(words.iter().map(|word| T::wrap(word.signed())));
    Ok(())
}

fn keep_unsigned<P: PhysicalInt, T: FromPhysicalInt>(
    _: IntRule,
    words: &[P],
    out: &mut Vec<T>,
) -> Result<()> {
    out.extend(words.iter().map(|word| T::wrap(word.unsigned())));
    Ok(())
}

/// INT64 to 32 unsigned bits.
fn narrow<P: PhysicalInt, T: FromPhysicalInt>(
    _: IntRule,
    words: &[P],
    out: &mut Vec<T>,
) -> Result<()> {
    for word in words {
        let value = word.signed();
        let value = u32::try_from(value).map_err(|_| does_not_fit(value))?;
        out.push(T::wrap(i64::from(value)));
    }
    Ok(())
}

fn multiply<P: PhysicalInt, T: FromPhysicalInt>(
    rule: IntRule,
    words: &[P],
    out: &mut Vec<T>,
) -> Result<()> {
    let Scale::Multiply(factor) = rule.scale else {
        return Err(no_page());
    };
    for word in words {
        let value = rule.value(*word);
        out.push(T::times(value, factor).ok_or_else(|| does_not_fit(value))?);
    }
    Ok(())
}

fn multiply_wide<P: PhysicalInt, T: FromPhysicalInt>(
    rule: IntRule,
    words: &[P],
    out: &mut Vec<T>,
) -> Result<()> {
    let Scale::PowerOfTen(exponent) = rule.scale else {
        return Err(no_page());
    };
    let factor = i256::from_i128(10).checked_pow(u32::from(exponent));
    for word in words {
        let value = rule.value(*word);
        let product = factor.and_then(|factor| T::times_wide(value, factor));
        out.push(product.ok_or_else(|| does_not_fit(value))?);
    }
    Ok(())
}

fn divide<P: PhysicalInt, T: FromPhysicalInt>(
    rule: IntRule,
    words: &[P],
    out: &mut Vec<T>,
) -> Result<()> {
    let Scale::Divide(divisor) = rule.scale else {
        return Err(no_page());
    };
    for word in words {
        let value = word.signed();
        let quotient = (value % divisor == 0).then(|| value / divisor).and_then(T::exact);
        out.push(quotient.ok_or_else(|| does_not_fit(value))?);
    }
    Ok(())
}

#[cold]
fn does_not_fit(value: i64) -> Error {
    Error::unsupported(
        "conversion with loss",
        format_args!(
            "the value {value} does not fit the Arrow type; read the column as its own type"
        ),
    )
}

/// From the words of a decoder to the values of an array.
pub(super) trait Convert<P: PhysicalInt>: Send {
    type Out: ArrowNativeType + PlainOldData;
    fn read(&mut self, words: &mut IntDecoder<P>, n: usize, out: &mut Vec<Self::Out>)
    -> Result<()>;
}

/// The words are the values.
struct Identity;

impl<P: PhysicalInt> Convert<P> for Identity {
    type Out = P;
    fn read(&mut self, words: &mut IntDecoder<P>, n: usize, out: &mut Vec<P>) -> Result<()> {
        words.read(n, out)
    }
}

/// The words are converted block by block, while they are in the first-level cache.
struct Converted<P: PhysicalInt, T> {
    convert: fn(IntRule, &[P], &mut Vec<T>) -> Result<()>,
    rule: IntRule,
}

impl<P: PhysicalInt, T: ArrowNativeType + PlainOldData> Convert<P> for Converted<P, T> {
    type Out = T;
    fn read(&mut self, words: &mut IntDecoder<P>, n: usize, out: &mut Vec<T>) -> Result<()> {
        let mut block = Vec::with_capacity(n.min(BLOCK));
        let mut left = n;
        while left > 0 {
            block.clear();
            words.read(left.min(BLOCK), &mut block)?;
            (self.convert)(self.rule, &block, out)?;
            left -= block.len();
        }
        Ok(())
    }
}

/// Words converted at a time.
const BLOCK: usize = 1024;

/// The values of a page as words.
pub(super) enum IntDecoder<P: PhysicalInt> {
    Plain(plain::Fixed<P>),
    Delta(delta_binary::Decoder<P>),
    Split(split::Decoder),
    Alp(alp::Decoder<P::Float>),
    Pfor(pfor::Decoder<P>),
}

impl<P: PhysicalInt> IntDecoder<P> {
    fn new(physical: Physical, encoding: Encoding, bytes: Bytes, count: Count) -> Result<Self> {
        let integer = matches!(physical, Physical::Int32 | Physical::Int64);
        Ok(match encoding {
            Encoding::Plain => {
                let n = match count {
                    Count::Exactly(n) => n,
                    Count::AtMost(n) => n.min(bytes.len() / P::BYTES),
                };
                Self::Plain(plain::Fixed::new(bytes, n)?)
            }
            Encoding::DeltaBinaryPacked if integer => {
                let n = count.settle(delta_binary::stated_len(&bytes)?, "DELTA_BINARY_PACKED")?;
                Self::Delta(delta_binary::Decoder::new(bytes, n)?)
            }
            Encoding::ByteStreamSplit => {
                let n = count.settle(bytes.len() / P::BYTES, "BYTE_STREAM_SPLIT")?;
                Self::Split(split::Decoder::new(bytes, P::BYTES, n)?)
            }
            Encoding::Alp if !integer => {
                let n = count.settle(stated_len::<Alp<P::Float>>(&bytes)?, "ALP")?;
                Self::Alp(alp::Decoder::new(bytes, n)?)
            }
            Encoding::Pfor if integer => {
                let n = count.settle(stated_len::<Pfor<P>>(&bytes)?, "PFOR")?;
                Self::Pfor(pfor::Decoder::new(bytes, n)?)
            }
            other => return Err(illegal(other, physical)),
        })
    }

    fn read(&mut self, n: usize, out: &mut Vec<P>) -> Result<()> {
        match self {
            Self::Plain(decoder) => decoder.read(n, out),
            Self::Delta(decoder) => decoder.read(n, out),
            Self::Split(decoder) => decoder.read_into(n, out),
            Self::Alp(decoder) => decoder.read(n, out),
            Self::Pfor(decoder) => decoder.read(n, out),
        }
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match self {
            Self::Plain(decoder) => decoder.skip(n),
            Self::Delta(decoder) => decoder.skip(n),
            Self::Split(decoder) => decoder.skip(n),
            Self::Alp(decoder) => decoder.skip(n),
            Self::Pfor(decoder) => decoder.skip(n),
        }
    }
}

/// The integers of pages, converted.
struct IntSource<P: PhysicalInt, C> {
    physical: Physical,
    convert: C,
    /// The values of the current page.
    decoder: Option<IntDecoder<P>>,
}

impl<P: PhysicalInt, C: Convert<P>> IntSource<P, C> {
    fn new(physical: Physical, convert: C) -> Self {
        Self { physical, convert, decoder: None }
    }
}

impl<P: PhysicalInt, C: Convert<P>> PrimitiveSource for IntSource<P, C> {
    type Out = C::Out;

    fn entry_width(&self) -> Option<usize> {
        Some(P::BYTES)
    }

    fn read_dictionary(&mut self, page: &DictionaryPage, out: &mut Vec<C::Out>) -> Result<()> {
        let values = plain::Fixed::new(page.bytes.clone(), page.values)?;
        self.convert.read(&mut IntDecoder::Plain(values), page.values, out)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.decoder = Some(IntDecoder::new(self.physical, encoding, bytes, count)?);
        Ok(())
    }

    fn leave_page(&mut self) {
        self.decoder = None;
    }

    fn read(&mut self, n: usize, _max_bytes: usize, out: &mut Vec<C::Out>) -> Result<()> {
        let decoder = self.decoder.as_mut().ok_or_else(no_page)?;
        self.convert.read(decoder, n, out)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.decoder {
            Some(decoder) => decoder.skip(n),
            None if n == 0 => Ok(()),
            None => Err(no_page()),
        }
    }

    fn skips_at_once(&self) -> bool {
        matches!(self.decoder, Some(IntDecoder::Plain(_) | IntDecoder::Split(_)))
    }

    fn holds(&self, n: usize) -> Option<bool> {
        match &self.decoder {
            Some(IntDecoder::Plain(decoder)) => Some(n <= decoder.left()),
            _ => None,
        }
    }
}

impl Storage {
    /// Bytes of a value.
    fn byte_width(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
            Self::I128 => 16,
            Self::I256 => 32,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}
