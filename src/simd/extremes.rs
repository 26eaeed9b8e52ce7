//! Finds the minimum and maximum of integers, and of floats, which are returned as their bits.
//!
//! Used by the statistics of pages and chunks. No branch depends on a value. Trap: the instructions
//! that every x86-64 has cannot compare 64-bit integers, and how well the compiler does without
//! depends on where the loop is inlined.

use super::Isa;
use super::compiled::{Definition, compiled};

macro_rules! extremes {
    ($int:ty, $float:ty, $ints:ident, $floats:ident) => {
        /// Minimum and maximum of `values`, each with the bits of `flip` inverted; the largest
        /// integer and the smallest if there are no values.
        pub(crate) fn $ints(isa: Isa, values: &[$int], flip: $int) -> ($int, $int) {
            struct IntExtremes<'a>(&'a [$int], $int);
            impl Definition for IntExtremes<'_> {
                type Output = ($int, $int);

                #[inline(always)]
                fn run(self) -> Self::Output {
                    let (mut min, mut max) = (<$int>::MAX, <$int>::MIN);
                    for value in self.0 {
                        let key = *value ^ self.1;
                        min = min.min(key);
                        max = max.max(key);
                    }
                    (min, max)
                }
            }
            compiled(isa, IntExtremes(values, flip))
        }

        /// Minimum and maximum of the floats that are no NaN, as keys: integers in the total order
        /// of IEEE 754. How many are NaN comes third.
        pub(crate) fn $floats(isa: Isa, values: &[$int]) -> ($int, $int, u64) {
            struct FloatExtremes<'a>(&'a [$int]);
            impl Definition for FloatExtremes<'_> {
                type Output = ($int, $int, u64);

                #[inline(always)]
                fn run(self) -> Self::Output {
                    let infinity = <$float>::INFINITY.to_bits().cast_signed();
                    let (mut min, mut max) = (<$int>::MAX, <$int>::MIN);
                    let mut nans = 0u64;
                    for &bits in self.0 {
                        let is_nan = bits & <$int>::MAX > infinity;
                        nans += u64::from(is_nan);
                        let key = bits ^ ((bits >> (<$int>::BITS - 1)) & <$int>::MAX);
                        min = min.min(if is_nan { <$int>::MAX } else { key });
                        max = max.max(if is_nan { <$int>::MIN } else { key });
                    }
                    (min, max, nans)
                }
            }
            compiled(isa, FloatExtremes(values))
        }
    };
}
extremes!(i32, f32, extremes_i32_with, extremes_f32_with);
extremes!(i64, f64, extremes_i64_with, extremes_f64_with);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_and_length_by_the_book() {
        let seed = 17;
        let mut rng = fastrand::Rng::with_seed(seed);
        for isa in Isa::available() {
            for n in 0..200 {
                let shift = rng.u32(0..64);
                let values: Vec<i64> = (0..n).map(|_| rng.i64(..) >> shift).collect();
                for flip in [0, i64::MIN] {
                    let keys = values.iter().map(|v| v ^ flip);
                    let expected =
                        (keys.clone().min().unwrap_or(i64::MAX), keys.max().unwrap_or(i64::MIN));
                    let found = extremes_i64_with(isa, &values, flip);
                    assert_eq!(found, expected, "{isa:?} n {n} seed {seed}");
                }
                let narrow: Vec<i32> = values.iter().map(|v| (v >> 32) as i32).collect();
                for flip in [0, i32::MIN] {
                    let keys = narrow.iter().map(|v| v ^ flip);
                    let expected =
                        (keys.clone().min().unwrap_or(i32::MAX), keys.max().unwrap_or(i32::MIN));
                    let found = extremes_i32_with(isa, &narrow, flip);
                    assert_eq!(found, expected, "{isa:?} n {n} seed {seed}");
                }
            }
        }
    }

    #[test]
    fn floats_are_in_the_total_order_and_nans_are_counted() {
        let seed = 18;
        let mut rng = fastrand::Rng::with_seed(seed);
        let special = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1e-310];
        for isa in Isa::available() {
            for n in 0..200 {
                let values: Vec<f64> = (0..n)
                    .map(|_| match rng.u8(..4) {
                        0 => special[rng.usize(..special.len())],
                        _ => f64::from_bits(rng.u64(..)),
                    })
                    .collect();
                let back = |key: i64| f64::from_bits((key ^ ((key >> 63) & i64::MAX)) as u64);
                let bits: Vec<i64> = values.iter().map(|v| v.to_bits() as i64).collect();
                let (min, max, nans) = extremes_f64_with(isa, &bits);
                let numbers = values.iter().filter(|v| !v.is_nan());
                assert_eq!(nans, n - numbers.clone().count() as u64, "{isa:?} seed {seed}");
                if let Some(expected) = numbers.clone().min_by(|a, b| a.total_cmp(b)) {
                    assert_eq!(back(min).to_bits(), expected.to_bits(), "{isa:?} seed {seed}");
                }
                if let Some(expected) = numbers.max_by(|a, b| a.total_cmp(b)) {
                    assert_eq!(back(max).to_bits(), expected.to_bits(), "{isa:?} seed {seed}");
                }

                let values: Vec<f32> = values.iter().map(|v| *v as f32).collect();
                let back = |key: i32| f32::from_bits((key ^ ((key >> 31) & i32::MAX)) as u32);
                let bits: Vec<i32> = values.iter().map(|v| v.to_bits() as i32).collect();
                let (min, max, nans) = extremes_f32_with(isa, &bits);
                let numbers = values.iter().filter(|v| !v.is_nan());
                assert_eq!(nans, n - numbers.clone().count() as u64, "{isa:?} seed {seed}");
                if let Some(expected) = numbers.clone().min_by(|a, b| a.total_cmp(b)) {
                    assert_eq!(back(min).to_bits(), expected.to_bits(), "{isa:?} seed {seed}");
                }
                if let Some(expected) = numbers.max_by(|a, b| a.total_cmp(b)) {
                    assert_eq!(back(max).to_bits(), expected.to_bits(), "{isa:?} seed {seed}");
                }
            }
        }
    }
}
