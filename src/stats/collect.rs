//! Collects the bounds of dense values.

use super::order::decimals;
use crate::simd::extremes::{
    extremes_f32_with, extremes_f64_with, extremes_i32_with, extremes_i64_with,
};
use crate::simd::{Isa, Kernel};

/// Minimum and maximum of some values, as PLAIN has them, and how many are NaN.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extremes {
    /// `None` if there are no values, or only NaNs and the order has no place for them.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// NaNs among the values.
    pub nans: u64,
}

impl Extremes {
    fn new(min: impl Into<Vec<u8>>, max: impl Into<Vec<u8>>) -> Self {
        Self { bounds: Some((min.into(), max.into())), nans: 0 }
    }
}

macro_rules! ints {
    ($name:ident, $int:ty, $extremes:ident) => {
        /// Bounds of integers, signed or not.
        pub(crate) fn $name(values: &[$int], unsigned: bool) -> Extremes {
            // Without a sign, the order is that of the numbers with the highest bit flipped.
            let flip = if unsigned { <$int>::MIN } else { 0 };
            if values.is_empty() {
                return Extremes::default();
            }
            let (min, max) = $extremes(Isa::for_kernel(Kernel::Extremes), values, flip);
            Extremes::new((min ^ flip).to_le_bytes(), (max ^ flip).to_le_bytes())
        }
    };
}
ints!(i32s, i32, extremes_i32_with);
ints!(i64s, i64, extremes_i64_with);

macro_rules! floats {
    ($name:ident, $int:ty, $extremes:ident) => {
        /// Bounds of floats, given as their bits, in the total order of IEEE 754 or in the
        /// type-defined order.
        ///
        /// NaNs are counted. They are bounds only in the total order, if all values are NaN.
        pub(crate) fn $name(values: &[$int], total: bool) -> Extremes {
            // Compared as signed numbers, the keys have the total order.
            let key = |bits: $int| bits ^ ((bits >> (<$int>::BITS - 1)) & <$int>::MAX);
            let (min, max, nans) = $extremes(Isa::for_kernel(Kernel::Extremes), values);
            if nans == values.len() as u64 {
                let only = total && !values.is_empty();
                let keys = values.iter().map(|bits| key(*bits));
                let bounds = only.then(|| (keys.clone().min(), keys.max()));
                let bounds = bounds.and_then(|(min, max)| {
                    Some((key(min?).to_le_bytes().to_vec(), key(max?).to_le_bytes().to_vec()))
                });
                return Extremes { bounds, nans };
            }
            let (mut min, mut max) = (key(min), key(max));
            if !total {
                // Readers take the two zeros for equal, so a bound gets the sign that covers both.
                let zero = |bits: $int| bits & <$int>::MAX == 0;
                min = if zero(min) { <$int>::MIN } else { min };
                max = if zero(max) { 0 } else { max };
            }
            let bounds = Some((min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec()));
            Extremes { bounds, nans }
        }
    };
}
floats!(f32s, i32, extremes_f32_with);
floats!(f64s, i64, extremes_f64_with);

/// Why there are bounds.
const HAS_BOUNDS: &str = "not all values are NaN, or NaNs count";

/// Bounds of 16-bit floats, two bytes each.
pub(crate) fn f16s(bytes: &[u8], total: bool) -> Extremes {
    let wide = |pair: &[u8; 2]| half::f16::from_le_bytes(*pair);
    let (values, _) = bytes.as_chunks::<2>();
    let nans = values.iter().filter(|value| wide(value).is_nan()).count() as u64;
    let only_nans = nans == values.len() as u64;
    if values.is_empty() || (only_nans && !total) {
        return Extremes { bounds: None, nans };
    }
    let kept = values.iter().map(wide).filter(|value| only_nans || !value.is_nan());
    let min = kept.clone().min_by(half::f16::total_cmp).expect(HAS_BOUNDS);
    let max = kept.max_by(half::f16::total_cmp).expect(HAS_BOUNDS);
    let zero = |value: half::f16| value == half::f16::ZERO;
    let min = if !total && zero(min) { half::f16::NEG_ZERO } else { min };
    let max = if !total && zero(max) { half::f16::ZERO } else { max };
    Extremes { bounds: Some((min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec())), nans }
}

/// Bounds of booleans.
pub(crate) fn booleans(trues: usize, n: usize) -> Extremes {
    if n == 0 {
        return Extremes::default();
    }
    Extremes::new([u8::from(trues == n)], [u8::from(trues > 0)])
}

/// The first eight bytes as a number. Of two byte strings, the one with the smaller number is the
/// smaller. If the numbers are equal, the rest decides.
pub(crate) fn prefix(value: &[u8]) -> u64 {
    match value.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(chunk)
        }
    }
}

/// Minimum and maximum of byte strings.
pub(crate) fn bytes<'a>(
    mut values: impl Iterator<Item = &'a [u8]>,
) -> Option<(&'a [u8], &'a [u8])> {
    let first = values.next()?;
    let mut extremes = OfBytes::new(first, first);
    // `for_each` is faster than a loop if the iterator is a chain of several.
    values.for_each(|value| extremes.push(value));
    Some((extremes.min, extremes.max))
}

/// Minimum and maximum of byte strings. After the prefix that they have in common, as paths do,
/// eight bytes at a time nearly always decide.
struct OfBytes<'a> {
    min: &'a [u8],
    max: &'a [u8],
    /// The prefix of both, if it is long. Every value between them has it, too.
    common: &'a [u8],
    /// The eight bytes after the prefix, as numbers.
    min_key: u64,
    max_key: u64,
}

impl<'a> OfBytes<'a> {
    fn new(min: &'a [u8], max: &'a [u8]) -> Self {
        let n = min.iter().zip(max).take_while(|(a, b)| a == b).count();
        let is_long = n >= COMPARED_BYTES && min.len() > n;
        let (common, _) = min.split_at(if is_long { n } else { 0 });
        let key = |value: &[u8]| {
            prefix(value.get(common.len()..).expect("all begin with what they have in common"))
        };
        Self { min, max, common, min_key: key(min), max_key: key(max) }
    }

    #[inline]
    fn push(&mut self, value: &'a [u8]) {
        let (is_less, is_greater) = match value.split_at_checked(self.common.len()) {
            Some((begin, rest)) if begin_alike(begin, self.common) => {
                let key = prefix(rest);
                (
                    key < self.min_key || (key == self.min_key && value < self.min),
                    key > self.max_key || (key == self.max_key && value > self.max),
                )
            }
            _ => (value < self.min, value > self.max),
        };
        if is_less {
            *self = Self::new(value, self.max);
        } else if is_greater {
            *self = Self::new(self.min, value);
        }
    }
}

/// Bytes that are compared at a time.
const COMPARED_BYTES: usize = 16;

/// Whether two byte strings of one length are equal. The length is 0, or at least
/// [`COMPARED_BYTES`].
#[inline]
fn begin_alike(a: &[u8], b: &[u8]) -> bool {
    let ((pieces, _), (others, _)) =
        (a.as_chunks::<COMPARED_BYTES>(), b.as_chunks::<COMPARED_BYTES>());
    pieces.iter().zip(others).all(|(a, b)| a == b)
        && a.last_chunk::<COMPARED_BYTES>() == b.last_chunk::<COMPARED_BYTES>()
}

/// Minimum and maximum of big-endian numbers in two's complement.
pub(crate) fn decimal_bytes<'a>(values: &[&'a [u8]]) -> Option<(&'a [u8], &'a [u8])> {
    if values.iter().all(|value| value.len() <= 16) {
        // As one word each, with the sign extended.
        let word = |value: &[u8]| {
            let sign = value.first().is_some_and(|byte| byte & 0x80 != 0);
            let mut bytes = [if sign { 0xFF } else { 0 }; 16];
            let (_, low) = bytes.split_at_mut(16 - value.len());
            low.copy_from_slice(value);
            i128::from_be_bytes(bytes)
        };
        let first = *values.first()?;
        let ((mut min, mut least), (mut max, mut greatest)) =
            ((first, word(first)), (first, word(first)));
        for &value in values {
            let key = word(value);
            if key < least {
                (min, least) = (value, key);
            }
            if key > greatest {
                (max, greatest) = (value, key);
            }
        }
        return Some((min, max));
    }
    let min = values.iter().copied().min_by(|a, b| decimals(a, b))?;
    let max = values.iter().copied().max_by(|a, b| decimals(a, b))?;
    Some((min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints_have_a_sign_or_not() {
        let values = [3, -1, 7, i32::MIN];
        let of = |min: i32, max: i32| Extremes::new(min.to_le_bytes(), max.to_le_bytes());
        assert_eq!(i32s(&values, false), of(i32::MIN, 7));
        assert_eq!(i32s(&values, true), of(3, -1));
        assert_eq!(i64s(&[], true), Extremes::default());
    }

    #[test]
    fn floats_of_both_orders_as_the_naive_twin() {
        let seed = 31;
        let mut rng = fastrand::Rng::with_seed(seed);
        let odd = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.5];
        for _ in 0..500 {
            let values: Vec<f64> =
                (0..rng.usize(0..6)).map(|_| *rng.choice(&odd).unwrap()).collect();
            let bits: Vec<i64> = values.iter().map(|v| v.to_bits().cast_signed()).collect();
            let some: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
            for total in [false, true] {
                let kept = if some.is_empty() && total { &values } else { &some };
                let min = kept.iter().copied().min_by(f64::total_cmp);
                let max = kept.iter().copied().max_by(f64::total_cmp);
                let expected = min.zip(max).map(|(min, max)| {
                    let min = if !total && min == 0.0 { -0.0 } else { min };
                    let max = if !total && max == 0.0 { 0.0 } else { max };
                    (min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec())
                });
                let got = f64s(&bits, total);
                assert_eq!(got.bounds, expected, "{values:?} total {total} seed {seed}");
                assert_eq!(got.nans, (values.len() - some.len()) as u64);
            }
        }
        let halves: Vec<u8> =
            [half::f16::NAN, half::f16::ZERO].iter().flat_map(|v| v.to_le_bytes()).collect();
        let zeros =
            (half::f16::NEG_ZERO.to_le_bytes().to_vec(), half::f16::ZERO.to_le_bytes().to_vec());
        assert_eq!(f16s(&halves, false), Extremes { bounds: Some(zeros), nans: 1 });
    }

    #[test]
    fn decimals_of_any_length_as_the_naive_twin() {
        let seed = 32;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let longest = if rng.bool() { 16 } else { 20 };
            let values: Vec<Vec<u8>> = (0..rng.usize(1..6))
                .map(|_| (0..rng.usize(1..=longest)).map(|_| rng.u8(..)).collect())
                .collect();
            let slices: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            let (min, max) = decimal_bytes(&slices).unwrap();
            for value in &slices {
                assert!(
                    decimals(min, value).is_le() && decimals(max, value).is_ge(),
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn strings_that_begin_alike_as_the_naive_twin() {
        let seed = 33;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let long: Vec<u8> = (0..rng.usize(0..50)).map(|_| rng.u8(0..3)).collect();
            let values: Vec<Vec<u8>> = (0..rng.usize(1..12))
                .map(|_| {
                    let begin =
                        if rng.u8(0..8) == 0 { rng.usize(0..=long.len()) } else { long.len() };
                    let rest = (0..rng.usize(0..12)).map(|_| rng.u8(0..3));
                    long[..begin].iter().copied().chain(rest).collect()
                })
                .collect();
            let slices = || values.iter().map(Vec::as_slice);
            assert_eq!(bytes(slices()), slices().min().zip(slices().max()), "seed {seed}");
        }
    }

    #[test]
    fn strings_compare_beyond_eight_bytes() {
        let values: Vec<&[u8]> = vec![b"prefix--b", b"prefix--a", b"prefix--", b"a", b"", b"\0"];
        assert_eq!(bytes(values[..3].iter().copied()), Some((&b"prefix--"[..], &b"prefix--b"[..])));
        assert_eq!(bytes(values.iter().copied()), Some((&b""[..], &b"prefix--b"[..])));
        assert_eq!(bytes([].into_iter()), None);
    }
}
