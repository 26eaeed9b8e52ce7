//! Finds the minimum and maximum of integers, and of floats, which are returned as their bits.
//!
//! Used by the statistics of pages and chunks. No branch depends on a value. Trap: the instructions
//! that every x86-64 has cannot compare 64-bit integers, and how well the compiler does without
//! depends on where the loop is inlined.

use super::{Isa, Level};

macro_rules! extremes {
    (
        $int:ty, $float:ty, $ints:ident, $floats:ident,
        [$int_body:ident, $int_avx2:ident, $int_avx512:ident],
        [$float_body:ident, $float_avx2:ident, $float_avx512:ident]
    ) => {
        /// Minimum and maximum of `values`, each with the bits of `flip` inverted; the largest
        /// integer and the smallest if there are no values.
        pub(crate) fn $ints(isa: Isa, values: &[$int], flip: $int) -> ($int, $int) {
            match isa.level() {
                Level::Scalar => $int_body(values, flip),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: these exist only where `Isa::best` has found the features.
                Level::Avx2 => unsafe { $int_avx2(values, flip) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Level::Avx512 => unsafe { $int_avx512(values, flip) },
            }
        }

        #[inline(always)]
        fn $int_body(values: &[$int], flip: $int) -> ($int, $int) {
            let (mut min, mut max) = (<$int>::MAX, <$int>::MIN);
            for value in values {
                let key = *value ^ flip;
                min = min.min(key);
                max = max.max(key);
            }
            (min, max)
        }

        /// # Safety
        /// The machine must have AVX2 and BMI2.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi2")]
        unsafe fn $int_avx2(values: &[$int], flip: $int) -> ($int, $int) {
            $int_body(values, flip)
        }

        /// # Safety
        /// The machine must have AVX-512 F, BW and VL.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl")]
        unsafe fn $int_avx512(values: &[$int], flip: $int) -> ($int, $int) {
            $int_body(values, flip)
        }

        /// Minimum and maximum of the floats that are no NaN, as keys: integers in the total order
        /// of IEEE 754. How many are NaN comes third.
        pub(crate) fn $floats(isa: Isa, values: &[$int]) -> ($int, $int, u64) {
            match isa.level() {
                Level::Scalar => $float_body(values),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: these exist only where `Isa::best` has found the features.
                Level::Avx2 => unsafe { $float_avx2(values) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Level::Avx512 => unsafe { $float_avx512(values) },
            }
        }

        #[inline(always)]
        fn $float_body(values: &[$int]) -> ($int, $int, u64) {
            let infinity = <$float>::INFINITY.to_bits().cast_signed();
            let (mut min, mut max) = (<$int>::MAX, <$int>::MIN);
            let mut nans = 0u64;
            for &bits in values {
                let is_nan = bits & <$int>::MAX > infinity;
                nans += u64::from(is_nan);
                let key = bits ^ ((bits >> (<$int>::BITS - 1)) & <$int>::MAX);
                min = min.min(if is_nan { <$int>::MAX } else { key });
                max = max.max(if is_nan { <$int>::MIN } else { key });
            }
            (min, max, nans)
        }

        /// # Safety
        /// The machine must have AVX2 and BMI2.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi2")]
        unsafe fn $float_avx2(values: &[$int]) -> ($int, $int, u64) {
            $float_body(values)
        }

        /// # Safety
        /// The machine must have AVX-512 F, BW and VL.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl")]
        unsafe fn $float_avx512(values: &[$int]) -> ($int, $int, u64) {
            $float_body(values)
        }
    };
}
extremes!(
    i32,
    f32,
    extremes_i32_with,
    extremes_f32_with,
    [body_i32, avx2_i32, avx512_i32],
    [body_f32, avx2_f32, avx512_f32]
);
extremes!(
    i64,
    f64,
    extremes_i64_with,
    extremes_f64_with,
    [body_i64, avx2_i64, avx512_i64],
    [body_f64, avx2_f64, avx512_f64]
);

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
