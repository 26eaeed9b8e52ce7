//! Converts floats to the integers that ALP stores, a vector at a time: scales them, rounds them,
//! and compares them with what the decoder would return.
//!
//! Spec: AlpEncoding.md. Used by its encoder. No branch depends on a value, so that the compiler
//! vectorises all of it.

use super::Isa;
use super::compiled::{Definition, compiled};

/// The powers of ten of an exponent and a factor: `up` is positive, `down` negative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Powers<F> {
    /// 10^exponent.
    pub exponent_up: F,
    /// 10^-exponent.
    pub exponent_down: F,
    /// 10^factor.
    pub factor_up: F,
    /// 10^-factor.
    pub factor_down: F,
}

/// How well values fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit<I> {
    /// The smallest integer that is good; the largest of all if none is.
    pub least: I,
    /// The largest integer that is good; the smallest of all if none is.
    pub max: I,
    /// Values that do not come back as they were.
    pub bad: usize,
}

/// Adding this to a double below 2^51 leaves its integer in the low bits, rounded half to even.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Doubles below 2^51 are rounded here; the caller may try others by itself.
pub(crate) const QUICK_64: f64 = 2_251_799_813_685_248.0;

/// The same for floats: these are all that fit.
pub(crate) const QUICK_32: f64 = 2_147_483_647.0;

#[inline(always)]
fn scale_f64(value: f64, powers: &Powers<f64>) -> (i64, bool) {
    let scaled = value * powers.exponent_up * powers.factor_down;
    let shifted = scaled + ROUND;
    let integer = shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
    let back = (shifted - ROUND) * powers.factor_up * powers.exponent_down;
    // Not-a-number compares as false; negative zero differs in its bits.
    let good = (scaled.abs() < QUICK_64) & (back.to_bits() == value.to_bits());
    (integer, good)
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted; checked below")]
fn scale_f32(value: f32, powers: &Powers<f32>) -> (i32, bool) {
    // In doubles: integers of 32 bits keep all of their digits.
    let scaled = f64::from(value) * f64::from(powers.exponent_up) * f64::from(powers.factor_down);
    let integer = (scaled + ROUND).to_bits() as u32;
    let integer = integer.cast_signed();
    #[expect(clippy::cast_precision_loss, reason = "as the decoder does")]
    let back = integer as f32 * powers.factor_up * powers.exponent_down;
    let good = (scaled.abs() < QUICK_32) & (back.to_bits() == value.to_bits());
    (integer, good)
}

/// Values of a step.
const STEP: usize = 64;

/// Values, the powers that scale them, and where their integers go.
struct ScaledValues<'a, F, I> {
    values: &'a [F],
    powers: &'a Powers<F>,
    out: &'a mut [I],
    bad: &'a mut [bool],
}

macro_rules! integers {
    ($float:ty, $int:ty, $name:ident, $scale:ident) => {
        /// Writes the integer of each value, and whether the value does not come back from it; the
        /// integer is anything then.
        ///
        /// # Panics
        /// If the slices are not of one length.
        pub(crate) fn $name(
            isa: Isa,
            values: &[$float],
            powers: &Powers<$float>,
            out: &mut [$int],
            bad: &mut [bool],
        ) -> Fit<$int> {
            assert!(values.len() == out.len() && values.len() == bad.len(), "one length");
            compiled(isa, ScaledValues { values, powers, out, bad })
        }

        impl Definition for ScaledValues<'_, $float, $int> {
            type Output = Fit<$int>;
            const GAINS_BY_AVX512: bool = true;

            #[inline(always)]
            fn run(self) -> Self::Output {
                let Self { values, powers, out, bad } = self;
                let mut fit = Fit { least: <$int>::MAX, max: <$int>::MIN, bad: 0 };
                // In steps, so that one loop makes vectors of floats and the other of integers.
                let steps = values.chunks(STEP).zip(out.chunks_mut(STEP)).zip(bad.chunks_mut(STEP));
                for ((values, out), bad) in steps {
                    for ((value, out), bad) in values.iter().zip(&mut *out).zip(&mut *bad) {
                        let (integer, good) = $scale(*value, powers);
                        *out = integer;
                        *bad = !good;
                    }
                    for (integer, bad) in out.iter().zip(&*bad) {
                        fit.least = fit.least.min(if *bad { <$int>::MAX } else { *integer });
                        fit.max = fit.max.max(if *bad { <$int>::MIN } else { *integer });
                        fit.bad += usize::from(*bad);
                    }
                }
                fit
            }
        }
    };
}
integers!(f32, i32, integers_f32, scale_f32);
integers!(f64, i64, integers_f64, scale_f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_or_are_bad_on_every_isa() {
        let seed = 81;
        let mut rng = fastrand::Rng::with_seed(seed);
        let powers =
            Powers { exponent_up: 1e14, exponent_down: 1e-14, factor_up: 1e12, factor_down: 1e-12 };
        let mut values: Vec<f64> =
            (0..500).map(|_| f64::from(rng.i32(-100_000..100_000)) / 100.0).collect();
        values.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, 1e-300]);
        values.extend((0..100).map(|_| f64::from_bits(rng.u64(..))));
        for isa in Isa::available() {
            let (mut out, mut bad) = (vec![0; values.len()], vec![false; values.len()]);
            let fit = integers_f64(isa, &values, &powers, &mut out, &mut bad);
            assert_eq!(fit.bad, bad.iter().filter(|bad| **bad).count());
            assert!(bad[..500].iter().filter(|bad| **bad).count() < 50);
            assert_eq!(bad[500..506], [true, true, true, true, false, true]);
            for ((value, integer), bad) in values.iter().zip(&out).zip(&bad) {
                if !bad {
                    let back = *integer as f64 * 1e12 * 1e-14;
                    assert_eq!(back.to_bits(), value.to_bits(), "{isa:?} seed {seed}");
                    assert!((fit.least..=fit.max).contains(integer));
                }
            }
        }
    }
}
