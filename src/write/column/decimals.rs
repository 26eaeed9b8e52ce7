//! Converts decimals of any Arrow width to the width of the leaf.
//!
//! Trap: a decimal may have more digits than the leaf allows; it is refused, and never truncated.

use arrow_buffer::i256;

use super::arrays::WantedSlots;
use super::convert::FromBits;
use super::values::LeafValues;
use crate::error::{Error, Result};
use crate::format::LogicalType;
use crate::schema::Leaf;
use crate::schema::convert::Storage;

/// How a decimal is scaled, and what it must be to be stored.
struct DecimalRule {
    /// The factor that values are multiplied by first; `None` for 1.
    factor: Option<i256>,
    /// It must be nearer to 0 than this: the precision of the leaf.
    bound: Option<i256>,
    /// The same, where it has 128 bits.
    small_bound: Option<i128>,
}

impl DecimalRule {
    fn new(exponent: u8, leaf: &Leaf) -> Result<Self> {
        let ten = |e: u8| i256::from_i128(10).checked_pow(u32::from(e));
        let Some(factor) = ten(exponent) else {
            return Err(Error::usage("a decimal scale beyond 76 digits"));
        };
        let bound = match &leaf.logical {
            Some(LogicalType::Decimal(decimal)) => {
                u8::try_from(decimal.precision).ok().and_then(ten)
            }
            _ => None,
        };
        let small_bound = bound.and_then(i256::to_i128);
        Ok(Self { factor: (exponent != 0).then_some(factor), bound, small_bound })
    }

    fn scaled(&self, value: i256) -> Option<i256> {
        let value = self.factor.map_or(Some(value), |factor| value.checked_mul(factor))?;
        let fits = |bound: i256| value < bound && value > bound.wrapping_neg();
        self.bound.is_none_or(fits).then_some(value)
    }

    fn fits(&self, value: i128) -> bool {
        self.small_bound.is_none_or(|bound| value < bound && value > -bound)
    }
}

impl<'a> WantedSlots<'a, '_> {
    /// Appends decimals of this storage, multiplied by 10^`exponent`.
    pub(super) fn decimals(
        &self,
        storage: Storage,
        exponent: u8,
        leaf: &Leaf,
        out: &mut LeafValues<'a>,
    ) -> Result<()> {
        let rule = DecimalRule::new(exponent, leaf)?;
        match out {
            LeafValues::Words32(words) => self.decimal_words(storage, &rule, words.own()),
            LeafValues::Words64(words) => self.decimal_words(storage, &rule, words.own()),
            LeafValues::Fixed { width, bytes } => {
                self.decimal_bytes(storage, &rule, *width, bytes.own())
            }
            _ => Err(Error::unsupported(
                "conversion",
                "a decimal in a BYTE_ARRAY is not written; use FIXED_LEN_BYTE_ARRAY",
            )),
        }
    }

    fn decimal_words<U>(&self, storage: Storage, rule: &DecimalRule, out: &mut Vec<U>) -> Result<()>
    where
        U: FromBits + Default + TryFrom<i32> + TryFrom<i64> + TryFrom<i128>,
    {
        match storage {
            Storage::I32 if rule.factor.is_none() => {
                self.checked(out, |v: i32| U::try_from(v).ok().filter(|_| rule.fits(v.into())))
            }
            Storage::I64 if rule.factor.is_none() => {
                self.checked(out, |v: i64| U::try_from(v).ok().filter(|_| rule.fits(v.into())))
            }
            Storage::I128 if rule.factor.is_none() => {
                let before = out.len();
                let max = 1i128 << (U::BITS - 1);
                let bound = rule.small_bound.map_or(max, |bound| bound.min(max));
                if self.low_halves(bound, out, U::from_i64) {
                    return Ok(());
                }
                out.truncate(before);
                self.checked(out, |v: i128| U::try_from(v).ok().filter(|_| rule.fits(v)))
            }
            _ => self.wide(storage, out, |v| U::try_from(rule.scaled(v)?.to_i128()?).ok()),
        }
    }

    fn decimal_bytes(
        &self,
        storage: Storage,
        rule: &DecimalRule,
        width: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if storage == Storage::I128 && rule.factor.is_none() && width <= 16 {
            let before = out.len();
            if self.big_endian(rule.small_bound, width, out) {
                return Ok(());
            }
            out.truncate(before);
            self.checked(&mut Vec::new(), |v: i128| rule.fits(v).then_some(v))?;
            return Err(Error::usage("a decimal has more digits than its type"));
        }
        let mut values = Vec::new();
        self.wide(storage, &mut values, |v| rule.scaled(v))?;
        for value in values {
            let all = value.to_be_bytes();
            let fill = if value.is_negative() { 0xFF } else { 0 };
            let (skipped, kept) = all.split_at(all.len().saturating_sub(width));
            if skipped.iter().any(|byte| *byte != fill) {
                return Err(Error::usage(format_args!("a decimal does not fit {width} bytes")));
            }
            out.resize(out.len() + width.saturating_sub(all.len()), fill);
            out.extend_from_slice(kept);
        }
        Ok(())
    }

    /// Appends 128-bit decimals that fit 64 bits and are nearer to 0 than `max`. False if one does
    /// not. The loop has no comparison: it collects the sign bits of the distances to the bounds,
    /// which the compiler vectorises.
    fn low_halves<U>(&self, max: i128, out: &mut Vec<U>, narrow: impl Fn(i64) -> U) -> bool {
        // A bound beyond 64 bits is none.
        let last = i64::try_from(max - 1).unwrap_or(i64::MAX);
        let data = self.data();
        let (mut beyond, mut high) = (0i64, 0i64);
        self.for_each_some(data.buffer::<i128>(0), |some| {
            out.extend(some.iter().map(|value| {
                #[expect(clippy::cast_possible_truncation, reason = "what is cut off is looked at")]
                let (low, above) = (*value as i64, (*value >> 64) as i64);
                // A difference that overflows is negative, too.
                beyond |= last.wrapping_sub(low) | last.wrapping_add(low);
                high |= above ^ (low >> 63);
                narrow(low)
            }));
        });
        beyond >= 0 && high == 0
    }

    /// Appends the last `width` bytes of decimals of 128 bits, the highest first; returns whether
    /// all are nearer to 0 than `max`.
    fn big_endian(&self, max: Option<i128>, width: usize, out: &mut Vec<u8>) -> bool {
        const BLOCK: usize = 64;
        // A bound beyond 128 bits is none.
        let max = max.unwrap_or(i128::MAX);
        let data = self.data();
        let mut beyond = false;
        self.for_each_some(data.buffer::<i128>(0), |some| {
            for some in some.chunks(BLOCK) {
                let mut block = [[0u8; 16]; BLOCK];
                for (to, value) in block.iter_mut().zip(some) {
                    beyond |= *value >= max || *value <= -max;
                    *to = value.to_be_bytes();
                }
                let block = &block[..some.len()];
                if width == 16 {
                    out.extend_from_slice(block.as_flattened());
                    continue;
                }
                for value in block {
                    out.extend_from_slice(&value[16 - width..]);
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Decimal128Array, RecordBatch};

    use crate::error::ErrorKind;
    use crate::io::WriteSink;
    use crate::{WriteOptions, Writer};

    #[test]
    fn a_decimal_with_more_digits_than_its_type_is_refused_wherever_it_stands() {
        for (precision, sign) in [9, 18, 30, 38].into_iter().flat_map(|p| [(p, -1), (p, 1)]) {
            let bound = 10i128.pow(precision.into());
            let write = |at: usize, value: i128, times: usize| {
                // Beside negative ones, and beside none.
                let mut values = vec![(bound - 1) * sign, bound - 1, 0, 5, 5 * sign];
                values.splice(at..at, std::iter::repeat_n(value, times));
                let array = Decimal128Array::from(values).with_precision_and_scale(precision, 2);
                let array: ArrayRef = Arc::new(array.unwrap());
                let batch = RecordBatch::try_from_iter([("d", array)]).unwrap();
                let sink = WriteSink(Vec::new());
                let mut writer = Writer::new(sink, batch.schema(), WriteOptions::new()).unwrap();
                let done = writer.write(&batch).and_then(|()| writer.into_inner().map(drop));
                done.map_err(|error| error.kind())
            };
            for at in 0..=5 {
                assert_eq!(write(at, 1, 1), Ok(()));
                // Of the last one, the low half is a decimal of its own.
                let beyond = [bound, -bound, bound + 1, bound + 2, -bound - 1, i128::MAX];
                for wrong in beyond.into_iter().chain([(i128::MAX >> 64 << 64) + 5]) {
                    for times in 1..=2 {
                        assert_eq!(
                            write(at, wrong, times),
                            Err(ErrorKind::Usage),
                            "{wrong} at {at}"
                        );
                    }
                }
            }
        }
    }
}
