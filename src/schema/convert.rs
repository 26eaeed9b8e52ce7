//! Conversions between the physical and logical type of a leaf and an Arrow data type.
//!
//! There are two tables. The schema mapping asks [`read_conversion`] whether a hinted or wanted
//! type is reachable without loss; `read::column` asks it which conversion kernel to use while
//! values are copied:
//!
//! | leaf | Arrow types |
//! |---|---|
//! | BOOLEAN | Boolean |
//! | INT32, INT64 with or without INTEGER | integers, floats and decimals that hold the range |
//! | INT64 bare | also Duration, Timestamp(s), Date64, UInt32 (checked): see the hint |
//! | INT32 bare | also Time32(s) |
//! | DATE | Date32, Date64, Timestamp without zone (checked) |
//! | TIME, TIMESTAMP | the unit and finer ones (checked), seconds from milliseconds (exact) |
//! | TIMESTAMP(MILLIS), local | also Date64 |
//! | DECIMAL of any physical type | Decimal32 to 256 with no fewer digits on either side |
//! | DECIMAL of scale 0 | also those of negative scale (exact) |
//! | INT96 | Timestamp of any unit (checked) |
//! | FLOAT, DOUBLE, FLOAT16 | the same and wider |
//! | BYTE_ARRAY | Utf8 and Binary with 32-bit offsets, 64-bit offsets, views |
//! | BYTE_ARRAY bare | also FixedSizeBinary(0) (checked) |
//! | FIXED_LEN_BYTE_ARRAY(n) | FixedSizeBinary(n), Binary |
//! | FIXED_LEN_BYTE_ARRAY(16) bare | also Interval of any unit, with signs (checked) |
//! | INTERVAL | Interval of any unit (checked) |
//! | any, UNKNOWN | Null |
//!
//! The writer asks [`write_conversion`] how a leaf stores the values of an Arrow type:
//!
//! | Arrow | leaves |
//! |---|---|
//! | Null | any: there are no values |
//! | Boolean | BOOLEAN |
//! | integers | INT32, INT64 with or without INTEGER (checked where they do not hold the range) |
//! | Float16, Float32, Float64 | FLOAT16, FLOAT, DOUBLE of the same width |
//! | Decimal32 to 256 | DECIMAL with no fewer digits on either side |
//! | Date32, Date64 | DATE (exact); Date64 also TIMESTAMP, local, and INT64 bare |
//! | Time32, Time64 | TIME of any unit (checked, exact); seconds also INT32 bare |
//! | Timestamp | TIMESTAMP of any unit (checked, exact), UTC if there is a zone; INT64 bare |
//! | Duration | INT64 bare |
//! | Interval | INTERVAL (checked); FIXED_LEN_BYTE_ARRAY(16) bare, with signs |
//! | Utf8 in all layouts | BYTE_ARRAY bare, STRING, ENUM, JSON |
//! | Binary in all layouts | BYTE_ARRAY bare, BSON, GEO…; FIXED_LEN_BYTE_ARRAY (checked) |
//! | FixedSizeBinary(n) | FIXED_LEN_BYTE_ARRAY(n) but DECIMAL; of n = 0, BYTE_ARRAY bare |

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use arrow_schema::{DataType, IntervalUnit, TimeUnit as ArrowUnit};

use super::leaf::{Leaf, Physical};
use crate::format::{ConvertedType, LogicalType, TimeUnit};

/// Conversion from the values of a leaf to those of an Arrow array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum ReadConversion {
    /// All values are null.
    Null,
    /// Bits to bits.
    Boolean,
    /// INT32 or INT64: extend by sign or zero, scale, store.
    Integer {
        /// Whether the stored bits are an unsigned number.
        unsigned: bool,
        /// How the number is scaled.
        scale: Scale,
        /// How it is stored.
        to: Storage,
    },
    /// FLOAT, DOUBLE or FLOAT16: the same or wider.
    Float {
        /// How it is stored.
        to: Storage,
    },
    /// INT96 to a timestamp of this unit.
    Int96(ArrowUnit),
    /// Big-endian two's complement bytes, times a power of ten.
    Decimal {
        /// The power of ten.
        exponent: u8,
        /// How it is stored.
        to: Storage,
    },
    /// Big-endian two's complement bytes, divided by a power of ten; a remainder is an error.
    DecimalQuotient {
        /// The power of ten.
        exponent: u8,
        /// How it is stored.
        to: Storage,
    },
    /// The 12 bytes of INTERVAL, or the 16 of an interval with signs.
    Interval(IntervalUnit),
    /// Byte strings.
    Bytes {
        /// How an array of them is laid out.
        layout: BytesLayout,
        /// Whether they must be UTF-8.
        utf8: bool,
    },
    /// Bytes of one length, as they are.
    FixedBytes(usize),
}

/// How an integer is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Unchanged. High bits are dropped if the annotation makes them unused.
    Keep,
    /// Checked: a value that does not fit is an error.
    Narrow,
    /// Times this; overflow is an error.
    Multiply(i64),
    /// Times this power of ten, which no 64 bits hold; overflow is an error.
    PowerOfTen(u8),
    /// Divided by this; a remainder is an error.
    Divide(i64),
}

/// How a fixed-width value is stored in an Arrow buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// 1 byte.
    I8,
    /// 2 bytes.
    I16,
    /// 4 bytes.
    I32,
    /// 8 bytes.
    I64,
    /// 16 bytes.
    I128,
    /// 32 bytes.
    I256,
    /// binary16.
    F16,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

/// How an array of byte strings is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BytesLayout {
    /// 32-bit offsets.
    Offsets32,
    /// 64-bit offsets.
    Offsets64,
    /// Views.
    Views,
}

/// The conversion from `leaf` to the Arrow type `to`; `None` if there is none without loss.
///
/// `Dictionary` and `RunEndEncoded` are looked through: their value type decides.
pub(crate) fn read_conversion(leaf: &Leaf, to: &DataType) -> Option<ReadConversion> {
    match to {
        DataType::Dictionary(_, value) => return read_conversion(leaf, value),
        DataType::RunEndEncoded(_, values) => return read_conversion(leaf, values.data_type()),
        _ => {}
    }
    if matches!(leaf.logical, Some(LogicalType::Unknown)) {
        return matches!(to, DataType::Null).then_some(ReadConversion::Null);
    }
    match leaf.physical {
        Physical::Boolean => matches!(to, DataType::Boolean).then_some(ReadConversion::Boolean),
        Physical::Int32 | Physical::Int64 => integer(leaf, to),
        Physical::Int96 => match to {
            // Writers of INT96 mean points in time, which fit any zone.
            DataType::Timestamp(unit, _) => Some(ReadConversion::Int96(*unit)),
            _ => None,
        },
        Physical::Float => match to {
            DataType::Float32 => Some(ReadConversion::Float { to: Storage::F32 }),
            DataType::Float64 => Some(ReadConversion::Float { to: Storage::F64 }),
            _ => None,
        },
        Physical::Double => {
            matches!(to, DataType::Float64).then_some(ReadConversion::Float { to: Storage::F64 })
        }
        Physical::ByteArray => match leaf.logical {
            Some(LogicalType::Decimal(_)) => decimal_bytes(leaf, to),
            None if *to == DataType::FixedSizeBinary(0) => Some(ReadConversion::FixedBytes(0)),
            _ => bytes(to),
        },
        Physical::FixedLenByteArray(n) => fixed(leaf, n, to),
    }
}

/// Conversion from the values of an Arrow array to those of a leaf.
///
/// A value that the leaf cannot store is an error of the writer, whatever the conversion: only
/// [`Scale::Keep`] never needs to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum WriteConversion {
    /// There are no values.
    Null,
    /// Bits to bits.
    Boolean,
    /// Extend by sign or zero, scale, and store as INT32 or INT64.
    Integer {
        /// How it is stored in the array.
        from: Storage,
        /// Whether the bits in the array are an unsigned number.
        unsigned: bool,
        /// How the number is scaled. With [`Scale::Narrow`] it must be in the range of the leaf: of
        /// its INTEGER, or of the signed INT32 or INT64 that it is.
        scale: Scale,
    },
    /// FLOAT or DOUBLE, of the same width.
    Float,
    /// FLOAT16: two bytes, little-endian.
    Float16,
    /// DECIMAL on any physical type: times a power of ten, checked.
    Decimal {
        /// How the unscaled number is stored in the array.
        from: Storage,
        /// The power of ten, at most 76.
        exponent: u8,
    },
    /// The 12 bytes of INTERVAL: months, days and milliseconds must not be negative, nanoseconds be
    /// whole milliseconds. Or the 16 of an interval with signs.
    Interval(IntervalUnit),
    /// Byte strings. Into a FIXED_LEN_BYTE_ARRAY all must have its length.
    Bytes {
        /// How the array is laid out.
        layout: BytesLayout,
    },
    /// Bytes of one length, as they are.
    FixedBytes(usize),
}

/// The conversion from values of the Arrow type `from` into `leaf`; `None` if there is none.
///
/// Types decide here, not values: a value may still fail a conversion that is checked. The levels
/// decide whether the leaf may be null. `Dictionary` and `RunEndEncoded` are looked through: their
/// value type decides.
pub(crate) fn write_conversion(from: &DataType, leaf: &Leaf) -> Option<WriteConversion> {
    use DataType as D;
    match from {
        D::Dictionary(_, value) => return write_conversion(value, leaf),
        D::RunEndEncoded(_, values) => return write_conversion(values.data_type(), leaf),
        D::Null => return Some(WriteConversion::Null),
        _ => {}
    }
    match (leaf.physical, &leaf.logical) {
        (_, Some(LogicalType::Unknown)) => None,
        (_, Some(LogicalType::Decimal(_))) => write_decimal(from, leaf),
        (Physical::Boolean, _) => (*from == D::Boolean).then_some(WriteConversion::Boolean),
        (Physical::Int32 | Physical::Int64, _) => write_integer(from, leaf),
        // INT96 is deprecated.
        (Physical::Int96, _) => None,
        (Physical::Float, _) => (*from == D::Float32).then_some(WriteConversion::Float),
        (Physical::Double, _) => (*from == D::Float64).then_some(WriteConversion::Float),
        (Physical::ByteArray, None) if *from == D::FixedSizeBinary(0) => {
            Some(WriteConversion::FixedBytes(0))
        }
        (Physical::ByteArray, logical) => {
            let Some(ReadConversion::Bytes { layout, utf8 }) = bytes(from) else {
                return None;
            };
            let fits = match logical {
                None => true,
                Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => utf8,
                Some(_) => !utf8,
            };
            fits.then_some(WriteConversion::Bytes { layout })
        }
        (Physical::FixedLenByteArray(n), logical) => match from {
            D::Float16 if *logical == Some(LogicalType::Float16) => Some(WriteConversion::Float16),
            D::Interval(unit) if is_interval(leaf) || is_signed_interval(leaf) => {
                Some(WriteConversion::Interval(*unit))
            }
            D::FixedSizeBinary(width) => {
                (usize::try_from(*width) == Ok(n)).then_some(WriteConversion::FixedBytes(n))
            }
            D::Binary | D::LargeBinary | D::BinaryView => match bytes(from)? {
                ReadConversion::Bytes { layout, .. } => Some(WriteConversion::Bytes { layout }),
                _ => None,
            },
            _ => None,
        },
    }
}

/// Into a DECIMAL with enough digits on both sides of the point.
fn write_decimal(from: &DataType, leaf: &Leaf) -> Option<WriteConversion> {
    /// 10^77 is more than 256 bits hold.
    const MAX: u8 = 76;
    let Some(LogicalType::Decimal(to)) = &leaf.logical else {
        return None;
    };
    let (precision, scale, from) = decimal_parts(from)?;
    let exponent = u8::try_from(to.scale - i32::from(scale)).ok()?;
    let integer_digits = i32::from(precision) - i32::from(scale);
    let has_room = exponent <= MAX && to.precision - to.scale >= integer_digits;
    has_room.then_some(WriteConversion::Decimal { from, exponent })
}

/// Into INT32 or INT64, DECIMAL aside.
fn write_integer(from: &DataType, leaf: &Leaf) -> Option<WriteConversion> {
    use DataType as D;
    let wide = leaf.physical == Physical::Int64;
    let signed = |from, scale| Some(WriteConversion::Integer { from, unsigned: false, scale });
    match (from, &leaf.logical) {
        (D::Date32, Some(LogicalType::Date)) => signed(Storage::I32, Scale::Keep),
        (D::Date64, Some(LogicalType::Date)) => signed(Storage::I64, Scale::Divide(86_400_000)),
        (
            D::Time32(unit @ (ArrowUnit::Second | ArrowUnit::Millisecond)),
            Some(LogicalType::Time(time)),
        ) => signed(Storage::I32, ratio(per_second(*unit), per_second(arrow_unit(&time.unit)?))),
        (
            D::Time64(unit @ (ArrowUnit::Microsecond | ArrowUnit::Nanosecond)),
            Some(LogicalType::Time(time)),
        ) => signed(Storage::I64, ratio(per_second(*unit), per_second(arrow_unit(&time.unit)?))),
        (D::Timestamp(unit, zone), Some(LogicalType::Timestamp(timestamp))) => {
            let has_zone = zone.as_ref().is_some_and(|zone| !zone.is_empty());
            if timestamp.is_adjusted_to_utc != has_zone {
                return None;
            }
            signed(Storage::I64, ratio(per_second(*unit), per_second(arrow_unit(&timestamp.unit)?)))
        }
        (D::Date64, Some(LogicalType::Timestamp(timestamp))) => {
            (!timestamp.is_adjusted_to_utc).then_some(())?;
            signed(Storage::I64, ratio(1_000, per_second(arrow_unit(&timestamp.unit)?)))
        }
        // Types that Arrow writers leave to the hint.
        (D::Duration(_) | D::Date64 | D::Timestamp(ArrowUnit::Second, _), None) if wide => {
            signed(Storage::I64, Scale::Keep)
        }
        (D::Time32(ArrowUnit::Second), None) if !wide => signed(Storage::I32, Scale::Keep),
        (_, None | Some(LogicalType::Integer(_))) => {
            let (bits, unsigned, from) = match from {
                D::Int8 => (8, false, Storage::I8),
                D::UInt8 => (8, true, Storage::I8),
                D::Int16 => (16, false, Storage::I16),
                D::UInt16 => (16, true, Storage::I16),
                D::Int32 => (32, false, Storage::I32),
                D::UInt32 => (32, true, Storage::I32),
                D::Int64 => (64, false, Storage::I64),
                D::UInt64 => (64, true, Storage::I64),
                _ => return None,
            };
            let fits = holds(leaf_range(leaf)?, (bits, unsigned));
            let scale = if fits { Scale::Keep } else { Scale::Narrow };
            Some(WriteConversion::Integer { from, unsigned, scale })
        }
        _ => None,
    }
}

fn fixed(leaf: &Leaf, n: usize, to: &DataType) -> Option<ReadConversion> {
    match (&leaf.logical, to) {
        (Some(LogicalType::Decimal(_)), _) => decimal_bytes(leaf, to),
        (Some(LogicalType::Float16), DataType::Float16) => {
            Some(ReadConversion::Float { to: Storage::F16 })
        }
        (Some(LogicalType::Float16), DataType::Float32) => {
            Some(ReadConversion::Float { to: Storage::F32 })
        }
        (Some(LogicalType::Float16), DataType::Float64) => {
            Some(ReadConversion::Float { to: Storage::F64 })
        }
        (None, DataType::Interval(unit)) if is_interval(leaf) || is_signed_interval(leaf) => {
            Some(ReadConversion::Interval(*unit))
        }
        (_, DataType::FixedSizeBinary(width)) => {
            (usize::try_from(*width) == Ok(n)).then_some(ReadConversion::FixedBytes(n))
        }
        // Bytes of one length are bytes; whether they are text is unknown.
        (_, DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => bytes(to),
        _ => None,
    }
}

/// Whether the leaf is an INTERVAL, which only the converted type expresses.
pub(crate) fn is_interval(leaf: &Leaf) -> bool {
    leaf.physical == Physical::FixedLenByteArray(12)
        && leaf.logical.is_none()
        && leaf.converted == Some(ConvertedType::Interval)
}

/// Bytes of an interval with signs: months and days in 4 each, nanoseconds in 8, little-endian, as
/// in Arrow.
pub(crate) const SIGNED_INTERVAL_BYTES: usize = 16;

/// Whether the leaf may hold intervals with signs: any that has 16 bytes and no meaning of its own.
fn is_signed_interval(leaf: &Leaf) -> bool {
    leaf.physical == Physical::FixedLenByteArray(SIGNED_INTERVAL_BYTES) && leaf.logical.is_none()
}

fn bytes(to: &DataType) -> Option<ReadConversion> {
    let (layout, utf8) = match to {
        DataType::Utf8 => (BytesLayout::Offsets32, true),
        DataType::LargeUtf8 => (BytesLayout::Offsets64, true),
        DataType::Utf8View => (BytesLayout::Views, true),
        DataType::Binary => (BytesLayout::Offsets32, false),
        DataType::LargeBinary => (BytesLayout::Offsets64, false),
        DataType::BinaryView => (BytesLayout::Views, false),
        _ => return None,
    };
    Some(ReadConversion::Bytes { layout, utf8 })
}

fn decimal_bytes(leaf: &Leaf, to: &DataType) -> Option<ReadConversion> {
    Some(match decimal(leaf, to)? {
        (Rescale::Times(exponent), to) => ReadConversion::Decimal { exponent, to },
        (Rescale::By(exponent), to) => ReadConversion::DecimalQuotient { exponent, to },
    })
}

/// The power of ten that the unscaled number of a decimal is multiplied with or divided by.
enum Rescale {
    Times(u8),
    By(u8),
}

/// The power of ten and the storage of a decimal target that can hold the leaf's digits on
/// both sides of the point.
fn decimal(leaf: &Leaf, to: &DataType) -> Option<(Rescale, Storage)> {
    let Some(LogicalType::Decimal(from)) = &leaf.logical else {
        return None;
    };
    let (precision, scale, storage) = decimal_parts(to)?;
    let exponent = i32::from(scale) - from.scale;
    let rescale = match u8::try_from(exponent) {
        Ok(exponent) => Rescale::Times(exponent),
        // The format has no negative scales: such decimals are stored with scale 0.
        Err(_) if from.scale == 0 => Rescale::By(u8::try_from(-exponent).ok()?),
        Err(_) => return None,
    };
    let integer_digits = from.precision - from.scale;
    (i32::from(precision) - i32::from(scale) >= integer_digits).then_some((rescale, storage))
}

fn power_of_ten(exponent: u8) -> Scale {
    match (exponent, 10i64.checked_pow(u32::from(exponent))) {
        (0, _) => Scale::Keep,
        (_, Some(factor)) => Scale::Multiply(factor),
        (_, None) => Scale::PowerOfTen(exponent),
    }
}

/// Precision, scale and storage of a decimal.
fn decimal_parts(data_type: &DataType) -> Option<(u8, i8, Storage)> {
    Some(match *data_type {
        DataType::Decimal32(p, s) => (p, s, Storage::I32),
        DataType::Decimal64(p, s) => (p, s, Storage::I64),
        DataType::Decimal128(p, s) => (p, s, Storage::I128),
        DataType::Decimal256(p, s) => (p, s, Storage::I256),
        _ => return None,
    })
}

fn integer(leaf: &Leaf, to: &DataType) -> Option<ReadConversion> {
    let wide = leaf.physical == Physical::Int64;
    let signed = |scale, to| Some(ReadConversion::Integer { unsigned: false, scale, to });
    match (&leaf.logical, to) {
        (Some(LogicalType::Decimal(_)), _) => {
            let (rescale, to) = decimal(leaf, to)?;
            match rescale {
                Rescale::Times(exponent) => signed(power_of_ten(exponent), to),
                Rescale::By(exponent) => {
                    signed(Scale::Divide(10i64.checked_pow(exponent.into())?), to)
                }
            }
        }
        (Some(LogicalType::Date), DataType::Date32) => signed(Scale::Keep, Storage::I32),
        (Some(LogicalType::Date), DataType::Date64) => {
            signed(Scale::Multiply(86_400_000), Storage::I64)
        }
        (Some(LogicalType::Date), DataType::Timestamp(unit, None)) => {
            signed(Scale::Multiply(86_400 * per_second(*unit)), Storage::I64)
        }
        (Some(LogicalType::Time(time)), DataType::Time32(unit)) => {
            signed(rescale(&time.unit, *unit)?, Storage::I32)
        }
        (Some(LogicalType::Time(time)), DataType::Time64(unit)) => {
            signed(rescale(&time.unit, *unit)?, Storage::I64)
        }
        (Some(LogicalType::Timestamp(timestamp)), DataType::Timestamp(unit, zone)) => {
            if timestamp.is_adjusted_to_utc != zone.is_some() {
                return None;
            }
            signed(rescale(&timestamp.unit, *unit)?, Storage::I64)
        }
        (None, DataType::Duration(_) | DataType::Timestamp(ArrowUnit::Second, _)) if wide => {
            signed(Scale::Keep, Storage::I64)
        }
        (Some(LogicalType::Timestamp(of)), DataType::Date64) => {
            let is_same = !of.is_adjusted_to_utc && of.unit == TimeUnit::Millis;
            is_same.then_some(())?;
            signed(Scale::Keep, Storage::I64)
        }
        (None, DataType::Date64) if wide => signed(Scale::Keep, Storage::I64),
        (None, DataType::Time32(ArrowUnit::Second)) if !wide => signed(Scale::Keep, Storage::I32),
        // parquet-cpp's "1.0" writer stored UINT_32 as a bare INT64 and left the rest to the hint.
        (None, DataType::UInt32) if wide => signed(Scale::Narrow, Storage::I32),
        (None | Some(LogicalType::Integer(_)), _) => plain_integer(leaf, to),
        _ => None,
    }
}

/// From a unit of the format to one of Arrow that is as fine or finer.
fn rescale(from: &TimeUnit, to: ArrowUnit) -> Option<Scale> {
    let (from, to) = (per_second(arrow_unit(from)?), per_second(to));
    // Writers have no unit of seconds in the format: they store milliseconds and leave the rest to
    // the hint.
    (to >= from || (from, to) == (1_000, 1)).then(|| ratio(from, to))
}

/// Scale from a unit that is 1/`from` of a second to a unit that is 1/`to` of a second.
fn ratio(from: i64, to: i64) -> Scale {
    match from.cmp(&to) {
        Ordering::Less => Scale::Multiply(to / from),
        Ordering::Equal => Scale::Keep,
        Ordering::Greater => Scale::Divide(from / to),
    }
}

fn per_second(unit: ArrowUnit) -> i64 {
    match unit {
        ArrowUnit::Second => 1,
        ArrowUnit::Millisecond => 1_000,
        ArrowUnit::Microsecond => 1_000_000,
        ArrowUnit::Nanosecond => 1_000_000_000,
    }
}

fn arrow_unit(unit: &TimeUnit) -> Option<ArrowUnit> {
    match unit {
        TimeUnit::Millis => Some(ArrowUnit::Millisecond),
        TimeUnit::Micros => Some(ArrowUnit::Microsecond),
        TimeUnit::Nanos => Some(ArrowUnit::Nanosecond),
        TimeUnit::Unrecognized(..) => None,
    }
}

/// Bits of the integers of a leaf without annotation or with INTEGER, and whether they are
/// unsigned.
fn leaf_range(leaf: &Leaf) -> Option<(u32, bool)> {
    Some(match &leaf.logical {
        Some(LogicalType::Integer(int)) => (u32::try_from(int.bit_width).ok()?, !int.is_signed),
        _ if leaf.physical == Physical::Int64 => (64, false),
        _ => (32, false),
    })
}

/// The integers of a leaf, as far as they are of 64 bits with a sign.
pub(crate) fn integers_of(leaf: &Leaf) -> Option<RangeInclusive<i64>> {
    let (bits, unsigned) = leaf_range(leaf)?;
    let unused = 64 - bits.clamp(1, 64);
    Some(match unsigned {
        true => 0..=i64::try_from(u64::MAX >> unused).unwrap_or(i64::MAX),
        false => i64::MIN >> unused..=i64::MAX >> unused,
    })
}

/// Whether all integers of `inner` are among those of `outer`; both are bits, and whether unsigned.
fn holds(outer: (u32, bool), inner: (u32, bool)) -> bool {
    match (inner.1, outer.1) {
        (false, false) | (true, true) => outer.0 >= inner.0,
        (true, false) => outer.0 > inner.0,
        (false, true) => false,
    }
}

/// Integers to integers, floats and decimals that hold the whole range.
fn plain_integer(leaf: &Leaf, to: &DataType) -> Option<ReadConversion> {
    let (bits, unsigned) = leaf_range(leaf)?;
    let keep =
        |storage| Some(ReadConversion::Integer { unsigned, scale: Scale::Keep, to: storage });
    let fits = |to_bits, to_unsigned| holds((to_bits, to_unsigned), (bits, unsigned));
    match to {
        DataType::Int8 if fits(8, false) => keep(Storage::I8),
        DataType::UInt8 if fits(8, true) => keep(Storage::I8),
        DataType::Int16 if fits(16, false) => keep(Storage::I16),
        DataType::UInt16 if fits(16, true) => keep(Storage::I16),
        DataType::Int32 if fits(32, false) => keep(Storage::I32),
        DataType::UInt32 if fits(32, true) => keep(Storage::I32),
        DataType::Int64 if fits(64, false) => keep(Storage::I64),
        DataType::UInt64 if fits(64, true) => keep(Storage::I64),
        DataType::Float32 if bits <= 16 => keep(Storage::F32),
        DataType::Float64 if bits <= 32 => keep(Storage::F64),
        _ => {
            let (precision, scale, to) = decimal_parts(to)?;
            let digits = match bits {
                8 => 3,
                16 => 5,
                32 => 10,
                64 if !unsigned => 19,
                _ => return None,
            };
            let exponent = u8::try_from(scale).ok()?;
            let has_room = precision.checked_sub(exponent)? >= digits;
            let scale = power_of_ten(exponent);
            has_room.then_some(ReadConversion::Integer { unsigned, scale, to })
        }
    }
}

#[cfg(test)]
mod tests;
