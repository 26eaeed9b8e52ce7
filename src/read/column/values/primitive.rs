//! INT32, INT64, FLOAT, DOUBLE: words of 4 or 8 bytes, kept, widened, narrowed or scaled on their way.
//!
//! Floats travel as their bits: only ALP computes with them.

use arrow_array::ArrayRef;
use arrow_buffer::{ArrowNativeType, NullBuffer, i256};
use arrow_schema::DataType;
use bytes::Bytes;

use super::reader::{
    Count, ValueReader, fixed_width_array, illegal, no_dictionary, no_page, vec_for,
};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::encoding::{alp, delta_binary, plain, split};
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::schema::Physical;
use crate::schema::convert::{Conversion, Scale, Storage};
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::simd::expand;
use crate::simd::native::PlainOldData;
use crate::spare::Spare;

/// The column of a leaf of words.
pub(super) fn primitive_reader(
    physical: Physical,
    conversion: Conversion,
    data_type: &DataType,
) -> Result<Box<dyn ValueReader>> {
    match physical {
        Physical::Int32 | Physical::Float => of_word::<i32>(physical, conversion, data_type),
        _ => of_word::<i64>(physical, conversion, data_type),
    }
}

fn of_word<P: PhysicalInt>(
    physical: Physical,
    conversion: Conversion,
    data_type: &DataType,
) -> Result<Box<dyn ValueReader>> {
    let same = || -> Box<dyn ValueReader> {
        Box::new(PrimitiveReader::<P, Identity>::new(physical, data_type, Identity))
    };
    let wrong = || Error::usage(format_args!("{physical} cannot be read as {data_type}"));
    match conversion {
        Conversion::Float { to: Storage::F32 } if P::BYTES == 4 => Ok(same()),
        Conversion::Float { to: Storage::F64 } if P::BYTES == 8 => Ok(same()),
        Conversion::Float { to: Storage::F64 } => {
            let widen = Converted {
                convert: |_, words: &[P], out: &mut Vec<f64>| {
                    out.extend(words.iter().map(|word| f64::from(word.f32_bits())));
                    Ok(())
                },
                rule: IntRule { unsigned: false, scale: Scale::Keep },
            };
            Ok(Box::new(PrimitiveReader::new(physical, data_type, widen)))
        }
        Conversion::Integer { unsigned, scale, to } => {
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
        (Scale::Divide(_), _) => divide::<P, T>,
    };
    Box::new(PrimitiveReader::new(physical, data_type, Converted { convert, rule }))
}

/// A physical word: `i32` or `i64`, whatever it stands for.
pub(super) trait PhysicalInt:
    plain::Native + delta_binary::Int + split::Native + ArrowNativeType + PlainOldData
{
    const BYTES: usize;
    /// The ALP decoder of the float of this width.
    type Alp: Send;
    fn alp(bytes: Bytes, count: Count) -> Result<Self::Alp>;
    fn alp_read(alp: &mut Self::Alp, n: usize, out: &mut Vec<Self>) -> Result<()>;
    fn alp_skip(alp: &mut Self::Alp, n: usize) -> Result<()>;
    fn signed(self) -> i64;
    fn unsigned(self) -> i64;
    /// The low 32 bits as a float.
    fn f32_bits(self) -> f32;
}

impl PhysicalInt for i32 {
    const BYTES: usize = 4;
    type Alp = alp::Decoder<f32>;
    fn alp(bytes: Bytes, count: Count) -> Result<Self::Alp> {
        let n = count.settle(alp::stated_len(&bytes)?, "ALP")?;
        alp::Decoder::new(bytes, n)
    }
    fn alp_read(alp: &mut Self::Alp, n: usize, out: &mut Vec<Self>) -> Result<()> {
        alp.read_bits(n, out)
    }
    fn alp_skip(alp: &mut Self::Alp, n: usize) -> Result<()> {
        alp.skip(n)
    }
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
    type Alp = alp::Decoder<f64>;
    fn alp(bytes: Bytes, count: Count) -> Result<Self::Alp> {
        let n = count.settle(alp::stated_len(&bytes)?, "ALP")?;
        alp::Decoder::new(bytes, n)
    }
    fn alp_read(alp: &mut Self::Alp, n: usize, out: &mut Vec<Self>) -> Result<()> {
        alp.read_bits(n, out)
    }
    fn alp_skip(alp: &mut Self::Alp, n: usize) -> Result<()> {
        alp.skip(n)
    }
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
    /// Exactly, or not at all; unsigned targets are told by the width.
    fn exact(value: i64) -> Option<Self>;
    /// The product, if it fits.
    fn times(value: i64, factor: i64) -> Option<Self>;
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
        let value = word.signed();
        out.push(T::times(value, factor).ok_or_else(|| does_not_fit(value))?);
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
    Alp(P::Alp),
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
            Encoding::Alp if !integer => Self::Alp(P::alp(bytes, count)?),
            other => return Err(illegal(other, physical)),
        })
    }

    /// Whether to skip values is no work.
    fn skips_at_once(&self) -> bool {
        matches!(self, Self::Plain(_) | Self::Split(_))
    }

    fn read(&mut self, n: usize, out: &mut Vec<P>) -> Result<()> {
        match self {
            Self::Plain(decoder) => decoder.read(n, out),
            Self::Delta(decoder) => decoder.read(n, out),
            Self::Split(decoder) => decoder.read_into(n, out),
            Self::Alp(decoder) => P::alp_read(decoder, n, out),
        }
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match self {
            Self::Plain(decoder) => decoder.skip(n),
            Self::Delta(decoder) => decoder.skip(n),
            Self::Split(decoder) => decoder.skip(n),
            Self::Alp(decoder) => P::alp_skip(decoder, n),
        }
    }
}

/// Whether so few of `n` values are picked that each is read by itself.
fn few(picks: &Bitmap, n: usize) -> bool {
    picks.count_ones(0..n) < n / 16
}

enum Source<P: PhysicalInt> {
    Nothing,
    Dictionary(Indices),
    Words(IntDecoder<P>),
}

struct PrimitiveReader<P: PhysicalInt, C: Convert<P>> {
    physical: Physical,
    data_type: DataType,
    convert: C,
    dictionary: Dictionary<C::Out>,
    source: Source<P>,
    out: Vec<C::Out>,
    spare: Spare,
    /// Indices of entries that are looked up in the page.
    picked: Vec<u32>,
}

/// The dictionary of the chunk.
enum Dictionary<T> {
    Missing,
    /// The page, as long as few entries of it are wanted: so many so far.
    Page {
        page: DictionaryPage,
        wanted: usize,
    },
    Entries(Vec<T>),
}

/// So much of a dictionary may be looked up in its page before all of it is converted.
const PART_OF_DICTIONARY: usize = 16;

/// The entries, if they are converted, or so many more are wanted that they should be.
fn entries<'a, P: PhysicalInt, C: Convert<P>>(
    dictionary: &'a mut Dictionary<C::Out>,
    convert: &mut C,
    more: usize,
) -> Result<Option<&'a [C::Out]>> {
    if let Dictionary::Page { page, wanted } = dictionary {
        *wanted = wanted.saturating_add(more);
        if *wanted <= page.values / PART_OF_DICTIONARY {
            return Ok(None);
        }
        let mut words = IntDecoder::Plain(plain::Fixed::new(page.bytes.clone(), page.values)?);
        let mut entries = vec_for(page.values)?;
        convert.read(&mut words, page.values, &mut entries)?;
        *dictionary = Dictionary::Entries(entries);
    }
    match dictionary {
        Dictionary::Entries(entries) => Ok(Some(entries)),
        _ => Err(no_dictionary()),
    }
}

impl<P: PhysicalInt, C: Convert<P>> PrimitiveReader<P, C> {
    fn new(physical: Physical, data_type: &DataType, convert: C) -> Self {
        Self {
            physical,
            data_type: data_type.clone(),
            convert,
            dictionary: Dictionary::Missing,
            source: Source::Nothing,
            out: Vec::new(),
            spare: Spare::new(0),
            picked: Vec::new(),
        }
    }

    /// Appends the entries of `picked`, taken from the dictionary page.
    fn look_up(&mut self) -> Result<()> {
        let Dictionary::Page { page, .. } = &self.dictionary else { return Err(no_dictionary()) };
        let mut bytes = Vec::with_capacity(self.picked.len() * P::BYTES);
        for &index in &self.picked {
            let start = (index as usize).saturating_mul(P::BYTES);
            let entry = page.bytes.get(start..start.saturating_add(P::BYTES));
            let entry = entry.filter(|_| (index as usize) < page.values);
            bytes.extend_from_slice(entry.ok_or_else(|| out_of_range(index, page.values))?);
        }
        let mut words = IntDecoder::Plain(plain::Fixed::new(bytes.into(), self.picked.len())?);
        self.convert.read(&mut words, self.picked.len(), &mut self.out)
    }
}

impl<P: PhysicalInt, C: Convert<P>> ValueReader for PrimitiveReader<P, C> {
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
        self.source = Source::Nothing;
        false
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        // Whether they are all there is known before any is looked up.
        plain::Fixed::<P>::new(page.bytes.clone(), page.values)?;
        self.dictionary = Dictionary::Page { page, wanted: 0 };
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.source = match encoding {
            Encoding::RleDictionary | Encoding::PlainDictionary => {
                Source::Dictionary(Indices::new(bytes, count.most())?)
            }
            other => Source::Words(IntDecoder::new(self.physical, other, bytes, count)?),
        };
        Ok(())
    }

    fn read(&mut self, n: usize, _room: usize) -> Result<()> {
        match &mut self.source {
            Source::Words(words) => self.convert.read(words, n, &mut self.out),
            Source::Dictionary(indices) => {
                match entries::<P, C>(&mut self.dictionary, &mut self.convert, n)? {
                    Some(entries) => indices.gather(n, entries, &mut self.out),
                    None => {
                        self.picked.clear();
                        indices.read(n, &mut self.picked)?;
                        self.look_up()
                    }
                }
            }
            Source::Nothing => Err(no_page()),
        }
    }

    fn read_picked(&mut self, n: usize, picks: &Bitmap, _room: usize) -> Result<()> {
        match &mut self.source {
            Source::Dictionary(indices) => {
                let more = picks.count_ones(0..n);
                match entries::<P, C>(&mut self.dictionary, &mut self.convert, more)? {
                    Some(entries) => indices.gather_picked(n, picks, entries, &mut self.out),
                    None => {
                        self.picked.clear();
                        indices.read_picked(n, picks, &mut self.picked)?;
                        self.look_up()
                    }
                }
            }
            Source::Words(words) if words.skips_at_once() && few(picks, n) => {
                let mut at = 0;
                for run in picks.runs() {
                    words.skip(run.start - at)?;
                    self.convert.read(words, run.len(), &mut self.out)?;
                    at = run.end;
                }
                words.skip(n - at)
            }
            Source::Words(words) => {
                let start = self.out.len();
                self.convert.read(words, n, &mut self.out)?;
                compact(&mut self.out, start, picks, 0);
                Ok(())
            }
            Source::Nothing => Err(no_page()),
        }
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.source {
            Source::Words(words) => words.skip(n),
            Source::Dictionary(indices) => indices.skip(n),
            Source::Nothing if n == 0 => Ok(()),
            Source::Nothing => Err(no_page()),
        }
    }

    fn holds(&self, n: usize) -> Option<bool> {
        match &self.source {
            Source::Words(IntDecoder::Plain(decoder)) => Some(n <= decoder.left()),
            _ => Some(n == 0),
        }
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
