//! [`LiteralValue`]: a literal or a bound, as a value that compares with those of an Arrow type.
//!
//! Only here do the bytes of statistics meet literals: both become a `LiteralValue` of the column's
//! Arrow type, through the same [`ReadConversion`] as its values. Bounds of a file may be wrong:
//! bytes that do not fit their type are no bound.
//! Trap: a bound must stay a bound. Where a conversion divides, lower bounds are rounded down and
//! upper ones up.

use std::cmp::Ordering;

use arrow_buffer::i256;
use arrow_schema::DataType;

use super::datetime::{DAY, nanos_of};
use crate::format::LogicalType;
use crate::schema::convert::{ReadConversion, Scale};
use crate::schema::{Leaf, Physical};
use crate::stats::bloom;
use crate::stats::order::ValueOrder;

/// A value that is not null.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LiteralValue {
    /// Booleans (0 and 1), integers, and all that is counted by one: dates, times, timestamps,
    /// durations.
    Int(i128),
    /// Floats of all widths.
    Float(f64),
    /// Unscaled decimals of all widths.
    Wide(i256),
    /// Strings and byte strings.
    Bytes(Vec<u8>),
}

/// Which side of the values a bound lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Lower,
    Upper,
}

/// Compares floats as predicates do: the zeros are equal, and every NaN is equal to every other and
/// greater than all numbers.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl LiteralValue {
    /// Compares two values of one domain.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => compare_floats(*a, *b),
            (Self::Wide(a), Self::Wide(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            _ => return None,
        })
    }

    /// Whether this is NaN.
    pub(super) fn is_nan(&self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }

    /// The bound that `bytes` of a statistic are of the values of `leaf`, when those are read as
    /// `data_type`; `None` if they are none.
    pub(super) fn from_bound(
        bytes: &[u8],
        leaf: &Leaf,
        conversion: ReadConversion,
        data_type: &DataType,
        side: Side,
    ) -> Option<Self> {
        match conversion {
            ReadConversion::Boolean => match bytes {
                [byte @ 0..=1] => Some(Self::Int(i128::from(*byte))),
                _ => None,
            },
            ReadConversion::Integer { unsigned, scale, .. } => {
                let raw = integer(bytes, leaf.physical, unsigned)?;
                let is_value = in_annotated_range(raw, leaf);
                is_value.then(|| Self::scaled(raw, scale, data_type, side))?
            }
            ReadConversion::Float { .. } => {
                let value = match leaf.physical {
                    Physical::Float => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
                    Physical::Double => f64::from_le_bytes(bytes.try_into().ok()?),
                    _ => half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
                };
                // SPEC parquet.thrift, ColumnOrder: a bound that is NaN is to be ignored. In the
                // total order it says that there is nothing else, which the count of NaNs says as
                // well.
                (!value.is_nan()).then_some(Self::Float(value))
            }
            ReadConversion::Int96(unit) => {
                let (nanos, days) = bytes.split_first_chunk::<8>()?;
                // Days are compared first, so that more than a day is no bound in time.
                let nanos = Some(i64::from_le_bytes(*nanos)).filter(|n| (0..DAY).contains(n))?;
                let nanos = i128::from(nanos);
                let days = i128::from(i32::from_le_bytes(days.try_into().ok()?)) - 2_440_588;
                let nanos = days * i128::from(DAY) + nanos;
                Some(Self::Int(divide(nanos, nanos_of(unit).into(), side)))
            }
            ReadConversion::Decimal { exponent, .. } => {
                if matches!(leaf.physical, Physical::FixedLenByteArray(n) if n != bytes.len()) {
                    return None;
                }
                let raw = wide(bytes)?;
                let product = raw.checked_mul(power_of_ten(exponent)?)?;
                within_precision(product, data_type).map(Self::Wide)
            }
            // Bounds of FLOAT16 are those of its numbers, also where it is read as bytes.
            ReadConversion::Bytes { .. } | ReadConversion::FixedBytes(_) => {
                let in_order = ValueOrder::for_leaf(leaf, false) == ValueOrder::Bytes;
                in_order.then(|| Self::Bytes(bytes.to_vec()))
            }
            ReadConversion::Null
            | ReadConversion::Interval(_)
            | ReadConversion::DecimalQuotient { .. } => None,
        }
    }

    /// The value that a bound of integers is read as.
    fn scaled(raw: i128, scale: Scale, data_type: &DataType, side: Side) -> Option<Self> {
        if data_type.is_floating() {
            #[expect(
                clippy::cast_precision_loss,
                reason = "only integers that the float holds are read so"
            )]
            return Some(Self::Float(raw as f64));
        }
        let scaled = match scale {
            Scale::Keep | Scale::Narrow => raw,
            Scale::Multiply(by) => raw * i128::from(by),
            Scale::PowerOfTen(exponent) => {
                let product = i256::from_i128(raw).checked_mul(power_of_ten(exponent)?)?;
                return within_precision(product, data_type).map(Self::Wide);
            }
            Scale::Divide(by) => divide(raw, i128::from(by), side),
        };
        match data_type.is_decimal() {
            true => within_precision(i256::from_i128(scaled), data_type).map(Self::Wide),
            false => Some(Self::Int(scaled)),
        }
    }

    /// The probes of a bloom filter of `leaf` that find this value, if the leaf is read as
    /// `data_type`.
    pub(super) fn probes(
        &self,
        leaf: &Leaf,
        conversion: ReadConversion,
        data_type: &DataType,
    ) -> Probes {
        let found = match (conversion, self) {
            (ReadConversion::Integer { scale, .. }, Self::Int(value))
                if !data_type.is_floating() =>
            {
                return integer_probes(leaf, scale, *value);
            }
            (ReadConversion::Integer { scale, .. }, Self::Wide(value)) => {
                let (scale, raw) = match scale {
                    Scale::PowerOfTen(exponent) => {
                        let factor = power_of_ten(exponent);
                        (Scale::Keep, factor.and_then(|factor| quotient(*value, factor)))
                    }
                    scale => (scale, Some(*value)),
                };
                return match raw.and_then(i256::to_i128) {
                    Some(raw) => integer_probes(leaf, scale, raw),
                    None => Probes::Hashes(Vec::new()),
                };
            }
            (ReadConversion::Float { .. }, Self::Float(value)) => {
                float_probes(leaf.physical, *value)
            }
            (ReadConversion::Decimal { exponent, .. }, Self::Wide(value)) => {
                // A BYTE_ARRAY may hold the same number in several lengths.
                let Physical::FixedLenByteArray(n) = leaf.physical else {
                    return Probes::Unknown;
                };
                return fixed_decimal_probes(n, exponent, *value);
            }
            (ReadConversion::Bytes { .. } | ReadConversion::FixedBytes(_), Self::Bytes(bytes)) => {
                Some(vec![bloom::hash(bytes)])
            }
            _ => None,
        };
        found.map_or(Probes::Unknown, Probes::Hashes)
    }
}

/// The probes of a bloom filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probes {
    /// A filter cannot decide.
    Unknown,
    /// The value is there only if one of these hashes is. Without any, no value of the leaf is
    /// equal to it.
    Hashes(Vec<u64>),
}

/// The integer that 4 or 8 bytes are.
fn integer(bytes: &[u8], physical: Physical, unsigned: bool) -> Option<i128> {
    Some(match physical {
        Physical::Int32 => {
            let word: [u8; 4] = bytes.try_into().ok()?;
            if unsigned { u32::from_le_bytes(word).into() } else { i32::from_le_bytes(word).into() }
        }
        _ => {
            let word: [u8; 8] = bytes.try_into().ok()?;
            if unsigned { u64::from_le_bytes(word).into() } else { i64::from_le_bytes(word).into() }
        }
    })
}

/// Bits and sign of an INTEGER annotation of less than 32 bits.
fn narrow(leaf: &Leaf) -> Option<(u32, bool)> {
    match &leaf.logical {
        Some(LogicalType::Integer(int)) if int.bit_width < 32 => {
            Some((u32::try_from(int.bit_width).ok()?, int.is_signed))
        }
        _ => None,
    }
}

/// A value outside an annotated range is read as another value, so a bound of it proves nothing.
fn in_annotated_range(raw: i128, leaf: &Leaf) -> bool {
    match narrow(leaf) {
        Some((bits, true)) => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&raw),
        Some((bits, false)) => (0..1 << bits).contains(&raw),
        None => true,
    }
}

fn divide(value: i128, by: i128, side: Side) -> i128 {
    let floor = value.div_euclid(by);
    floor + i128::from(side == Side::Upper && value.rem_euclid(by) != 0)
}

fn power_of_ten(exponent: u8) -> Option<i256> {
    i256::from_i128(10).checked_pow(u32::from(exponent))
}

/// The quotient, if nothing is left over.
fn quotient(value: i256, by: i256) -> Option<i256> {
    (value.checked_rem(by) == Some(i256::ZERO)).then(|| value.checked_div(by)).flatten()
}

/// A number of at most 256 bits, big-endian in two's complement.
fn wide(bytes: &[u8]) -> Option<i256> {
    let fill = if bytes.first()? & 0x80 == 0 { 0 } else { 0xFF };
    let (ahead, low) = bytes.split_at(bytes.len().saturating_sub(32));
    let mut word = [fill; 32];
    word.iter_mut().rev().zip(low.iter().rev()).for_each(|(to, from)| *to = *from);
    let number = i256::from_be_bytes(word);
    // Bytes before the lowest 256 bits may only extend the sign.
    let is_sign = ahead.iter().all(|byte| *byte == fill) && number.is_negative() == (fill != 0);
    is_sign.then_some(number)
}

/// The number, if it has no more digits than the type; one with more was not written by the rules.
fn within_precision(number: i256, data_type: &DataType) -> Option<i256> {
    let precision = precision_of(data_type)?;
    let max = i256::from_i128(10).checked_pow(u32::from(precision))?;
    (number < max && number > max.wrapping_neg()).then_some(number)
}

/// Digits of a decimal type.
pub(super) fn precision_of(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Decimal32(p, _)
        | DataType::Decimal64(p, _)
        | DataType::Decimal128(p, _)
        | DataType::Decimal256(p, _) => Some(*p),
        _ => None,
    }
}

fn integer_probes(leaf: &Leaf, scale: Scale, value: i128) -> Probes {
    // Values outside a narrow range were hashed as stored, but are read as other values.
    if narrow(leaf).is_some() {
        return Probes::Unknown;
    }
    let raw = match scale {
        Scale::Keep | Scale::Narrow => Some(value),
        Scale::Multiply(by) => {
            let by = i128::from(by);
            (value % by == 0).then_some(value / by)
        }
        // The number was divided before.
        Scale::PowerOfTen(_) => return Probes::Unknown,
        Scale::Divide(by) => value.checked_mul(by.into()),
    };
    let unsigned = matches!(&leaf.logical, Some(LogicalType::Integer(int)) if !int.is_signed);
    let hash = raw.and_then(|raw| {
        Some(match (leaf.physical, unsigned) {
            (Physical::Int32, false) => bloom::hash(&i32::try_from(raw).ok()?.to_le_bytes()),
            (Physical::Int32, true) => bloom::hash(&u32::try_from(raw).ok()?.to_le_bytes()),
            (_, false) => bloom::hash(&i64::try_from(raw).ok()?.to_le_bytes()),
            (_, true) => bloom::hash(&u64::try_from(raw).ok()?.to_le_bytes()),
        })
    });
    Probes::Hashes(hash.into_iter().collect())
}

/// Zeros have several byte representations, and NaNs too many to probe for.
fn float_probes(physical: Physical, value: f64) -> Option<Vec<u64>> {
    if value.is_nan() {
        return None;
    }
    let both = if value == 0.0 { vec![0.0, -0.0] } else { vec![value] };
    let hash = |value: f64| -> Option<u64> {
        match physical {
            Physical::Double => Some(bloom::hash(&value.to_le_bytes())),
            Physical::Float => {
                #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
                let narrow = value as f32;
                (f64::from(narrow) == value).then(|| bloom::hash(&narrow.to_le_bytes()))
            }
            _ => {
                let narrow = half::f16::from_f64(value);
                (narrow.to_f64() == value).then(|| bloom::hash(&narrow.to_le_bytes()))
            }
        }
    };
    Some(both.into_iter().filter_map(hash).collect())
}

/// Maximum bytes of a decimal that is encoded for a bloom filter, because its length is a number of
/// the file: every precision fits 32 bytes.
const MAX_DECIMAL_BYTES: usize = 1024;

fn fixed_decimal_probes(n: usize, exponent: u8, value: i256) -> Probes {
    if n > MAX_DECIMAL_BYTES {
        return Probes::Unknown;
    }
    let Some(factor) = power_of_ten(exponent) else {
        return Probes::Unknown;
    };
    let Some(raw) = quotient(value, factor) else {
        return Probes::Hashes(Vec::new());
    };
    let raw = raw.to_be_bytes();
    let fill = if raw[0] & 0x80 == 0 { 0 } else { 0xFF };
    let bytes = match n.checked_sub(raw.len()) {
        Some(missing) => [vec![fill; missing], raw.to_vec()].concat(),
        None => {
            let (ahead, low) = raw.split_at(raw.len() - n);
            let same_sign = low.first().is_some_and(|byte| (byte & 0x80 != 0) == (fill != 0));
            if !same_sign || ahead.iter().any(|byte| *byte != fill) {
                return Probes::Hashes(Vec::new());
            }
            low.to_vec()
        }
    };
    Probes::Hashes(vec![bloom::hash(&bytes)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_the_greatest_and_the_zeros_are_one() {
        for (a, b, expected) in [
            (f64::NAN, -f64::NAN, Ordering::Equal),
            (-f64::NAN, f64::INFINITY, Ordering::Greater),
            (1.0, f64::NAN, Ordering::Less),
            (-0.0, 0.0, Ordering::Equal),
        ] {
            assert_eq!(compare_floats(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_decimal_of_gigabytes_is_not_spelled_out_for_a_bloom_filter() {
        let one = i256::from_i128(1);
        let bytes = [&[0; 39][..], &[1]].concat();
        assert_eq!(fixed_decimal_probes(40, 0, one), Probes::Hashes(vec![bloom::hash(&bytes)]));
        assert_eq!(fixed_decimal_probes(i32::MAX as usize, 0, one), Probes::Unknown);
    }

    #[test]
    fn wide_numbers_have_any_length() {
        assert_eq!(wide(&[0xFF]), Some(i256::MINUS_ONE));
        assert_eq!(wide(&[0, 0xFF]), Some(i256::from_i128(255)));
        assert_eq!(wide(&[0xFF; 40]), Some(i256::MINUS_ONE));
        assert_eq!(wide(&[]), None);
        let mut long = [0; 33];
        long[1] = 0x80;
        assert_eq!(wide(&long), None, "2^255 takes 257 bits");
    }

    #[test]
    fn bounds_are_rounded_away_from_the_values() {
        assert_eq!(divide(-1, 1000, Side::Lower), -1);
        assert_eq!(divide(-1, 1000, Side::Upper), 0);
        assert_eq!(divide(2000, 1000, Side::Upper), 2);
    }
}
