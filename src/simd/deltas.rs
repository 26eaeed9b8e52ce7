//! Subtracts neighbours, and the smallest difference from all of them, for blocks of 128 values:
//! the differences that DELTA_BINARY_PACKED packs.
//!
//! Spec: Encodings.md, "Delta Encoding". Used by its encoder. No branch depends on a value, so that
//! the compiler vectorises all of it.

use super::Isa;
use super::compiled::{Definition, compiled};

/// Values of a block.
pub(crate) const BLOCK: usize = 128;

/// Values of a miniblock.
pub(crate) const MINIBLOCK: usize = 32;

/// Miniblocks of a block.
pub(crate) const MINIBLOCKS: usize = BLOCK / MINIBLOCK;

/// The measurements of a block of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Differences<T> {
    /// The smallest.
    pub least: T,
    /// Bits that the differences of each miniblock take, less the smallest.
    pub widths: [u8; MINIBLOCKS],
}

/// Differences, and what is added to each; returns the bits that they take then.
struct Add<'a, T>(&'a mut [T], T);

/// Values, and where their differences go.
struct Subtract<'a, T, D>(&'a [T], &'a mut [D; BLOCK]);

macro_rules! differences {
    ($int:ty, $delta:ty, $with:ident, $raise_with:ident) => {
        /// Writes `values[i + 1] - values[i]`, wrapping, less the smallest of them, to `out[i]`;
        /// the rest of `out` becomes 0.
        ///
        /// # Panics
        /// If there are not 2 to 129 values.
        pub(crate) fn $with(
            isa: Isa,
            values: &[$int],
            out: &mut [$delta; BLOCK],
        ) -> Differences<$int> {
            compiled(isa, Subtract(values, out))
        }

        impl Definition for Subtract<'_, $int, $delta> {
            type Output = Differences<$int>;

            #[inline(always)]
            fn run(self) -> Self::Output {
                let Self(values, out) = self;
                let n = values.len().wrapping_sub(1);
                assert!((1..=BLOCK).contains(&n), "2 to 129 values");
                let mut least = <$int>::MAX;
                // The length must be unknown to the compiler, which otherwise unrolls a loop of 128
                // before it could vectorise it.
                let pairs = values[..n].iter().zip(&values[1..]);
                for (out, (before, after)) in out[..n].iter_mut().zip(pairs) {
                    let delta = after.wrapping_sub(*before);
                    least = least.min(delta);
                    *out = delta.cast_unsigned();
                }
                out[n..].fill(0);
                let mut widths = [0; MINIBLOCKS];
                for (width, miniblock) in widths.iter_mut().zip(out[..n].chunks_mut(MINIBLOCK)) {
                    *width = Add(miniblock, least.cast_unsigned().wrapping_neg()).run();
                }
                Differences { least, widths }
            }
        }

        /// Adds `by`, wrapping, to differences, and returns the bits that they take then.
        pub(crate) fn $raise_with(isa: Isa, deltas: &mut [$delta], by: $delta) -> u8 {
            compiled(isa, Add(deltas, by))
        }

        impl Definition for Add<'_, $delta> {
            type Output = u8;

            #[inline(always)]
            fn run(self) -> u8 {
                let mut all = 0;
                for delta in self.0 {
                    *delta = delta.wrapping_add(self.1);
                    all |= *delta;
                }
                #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
                let bits = (<$delta>::BITS - all.leading_zeros()) as u8;
                bits
            }
        }
    };
}
differences!(i32, u32, differences_i32_with, raise_u32_with);
differences!(i64, u64, differences_i64_with, raise_u64_with);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_raised_on_every_isa() {
        let seed = 72;
        let mut rng = fastrand::Rng::with_seed(seed);
        for isa in Isa::available() {
            for n in 0..=70 {
                let (shift, by) = (rng.u32(0..64), rng.u64(..) >> rng.u32(0..64));
                let mut deltas: Vec<u64> = (0..n).map(|_| rng.u64(..) >> shift).collect();
                let expected: Vec<u64> = deltas.iter().map(|d| d.wrapping_add(by)).collect();
                let max = expected.iter().max().copied().unwrap_or(0);
                let bits = raise_u64_with(isa, &mut deltas, by);
                assert_eq!(deltas, expected, "{isa:?} n {n} seed {seed}");
                assert_eq!(u32::from(bits), 64 - max.leading_zeros(), "{isa:?} n {n} seed {seed}");

                let mut deltas: Vec<u32> = deltas.iter().map(|d| *d as u32).collect();
                let expected: Vec<u32> = deltas.iter().map(|d| d.wrapping_add(by as u32)).collect();
                let max = expected.iter().max().copied().unwrap_or(0);
                let bits = raise_u32_with(isa, &mut deltas, by as u32);
                assert_eq!(deltas, expected, "{isa:?} n {n} seed {seed}");
                assert_eq!(u32::from(bits), 32 - max.leading_zeros(), "{isa:?} n {n} seed {seed}");
            }
        }
    }

    #[test]
    fn every_isa_and_length_by_the_book() {
        let seed = 71;
        let mut rng = fastrand::Rng::with_seed(seed);
        for isa in Isa::available() {
            for n in 2..=129 {
                let shift = rng.u32(0..64);
                let values: Vec<i64> = (0..n).map(|_| rng.i64(..) >> shift).collect();
                let mut out = [7; BLOCK];
                let got = differences_i64_with(isa, &values, &mut out);
                let deltas: Vec<i64> =
                    values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
                let least = *deltas.iter().min().unwrap();
                assert_eq!(got.least, least, "{isa:?} n {n} seed {seed}");
                for (i, out) in out.iter().enumerate() {
                    let expected = deltas.get(i).map_or(0, |d| d.wrapping_sub(least) as u64);
                    assert_eq!(*out, expected, "{isa:?} n {n} seed {seed}");
                }
                for (width, miniblock) in got.widths.iter().zip(out.chunks(MINIBLOCK)) {
                    let max = miniblock.iter().max().unwrap();
                    assert_eq!(u32::from(*width), 64 - max.leading_zeros());
                }

                let values: Vec<i32> = values.iter().map(|v| *v as i32).collect();
                let mut out = [7; BLOCK];
                let got = differences_i32_with(isa, &values, &mut out);
                let deltas: Vec<i32> =
                    values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
                let least = *deltas.iter().min().unwrap();
                assert_eq!(got.least, least, "{isa:?} n {n} seed {seed}");
                for (i, out) in out.iter().enumerate() {
                    let expected = deltas.get(i).map_or(0, |d| d.wrapping_sub(least) as u32);
                    assert_eq!(*out, expected, "{isa:?} n {n} seed {seed}");
                }
            }
        }
    }
}
