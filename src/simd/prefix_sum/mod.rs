//! Computes running sums: the second half of DELTA decoding.
//!
//! The scalar definition adds the minimum delta outside the chain from value to value, which is one
//! addition for each value. With vectors, each vector is summed in itself first, by shifting lanes,
//! so that the chain is one addition for each vector. With AVX-512, packed differences are summed
//! while they are unpacked.

mod packed_deltas;
#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::unpack::{unpack_u32_with, unpack_u64_with};
use super::{Isa, Kernel, Level};
pub(crate) use packed_deltas::PackedDeltas;

/// Like [`prefix_sum_i64`], for packed differences. `scratch` is overwritten.
///
/// # Panics
/// If the width is over 64.
pub(crate) fn sum_packed_i64(
    packed: PackedDeltas<'_>,
    step: i64,
    last: i64,
    scratch: &mut Vec<u64>,
    out: &mut Vec<i64>,
) -> i64 {
    sum_packed_i64_with(Isa::for_kernel(Kernel::PrefixSum), packed, step, last, scratch, out)
}

/// Like [`prefix_sum_i32`], for packed differences. `scratch` is overwritten.
///
/// # Panics
/// If the width is over 32.
pub(crate) fn sum_packed_i32(
    packed: PackedDeltas<'_>,
    step: i32,
    last: i32,
    scratch: &mut Vec<u32>,
    out: &mut Vec<i32>,
) -> i32 {
    sum_packed_i32_with(Isa::for_kernel(Kernel::PrefixSum), packed, step, last, scratch, out)
}

fn sum_packed_i64_with(
    isa: Isa,
    packed: PackedDeltas<'_>,
    step: i64,
    last: i64,
    scratch: &mut Vec<u64>,
    out: &mut Vec<i64>,
) -> i64 {
    let PackedDeltas { bytes, width, n } = packed;
    #[cfg(target_arch = "x86_64")]
    if isa.level() == Level::Avx512 && (1..=super::unpack::avx512::WIDEST_64).contains(&width) {
        // SAFETY: an `Isa` of this level exists only where the features were found.
        return unsafe { avx512::sum_packed_i64(packed, step, last, out) };
    }
    // Vectors are faster to unpack first.
    #[cfg(target_arch = "x86_64")]
    let unpack_first = isa != Isa::SCALAR;
    #[cfg(not(target_arch = "x86_64"))]
    let unpack_first = false;
    let mut sums = Sums { step, last };
    let done = if unpack_first { 0 } else { sums.groups(bytes, width, n, out, |sum| sum) };
    let rest = bytes.get(done / GROUP * width as usize..).expect("groups are whole bytes of them");
    scratch.clear();
    unpack_u64_with(isa, rest, width, n - done, scratch);
    prefix_sum_i64_with(isa, scratch, step, sums.last, out)
}

fn sum_packed_i32_with(
    isa: Isa,
    packed: PackedDeltas<'_>,
    step: i32,
    last: i32,
    scratch: &mut Vec<u32>,
    out: &mut Vec<i32>,
) -> i32 {
    let PackedDeltas { bytes, width, n } = packed;
    #[cfg(target_arch = "x86_64")]
    if isa.level() == Level::Avx512 && (1..=super::unpack::avx512::WIDEST_32).contains(&width) {
        // SAFETY: an `Isa` of this level exists only where the features were found.
        return unsafe { avx512::sum_packed_i32(packed, step, last, out) };
    }
    // A sum that wraps at 64 bits wraps at 32 too.
    let mut sums = Sums { step: step.into(), last: last.into() };
    // Vectors are faster to unpack first.
    let done = if isa == Isa::SCALAR { sums.groups(bytes, width, n, out, truncated) } else { 0 };
    let rest = bytes.get(done / GROUP * width as usize..).expect("groups are whole bytes of them");
    scratch.clear();
    unpack_u32_with(isa, rest, width, n - done, scratch);
    prefix_sum_i32_with(isa, scratch, step, truncated(sums.last), out)
}

/// Values in a group: whatever their width, they begin and end with a byte.
pub(crate) const GROUP: usize = 8;

/// The widest value that a word holds wherever in a byte it begins.
const WIDEST: usize = 57;

/// The low half.
#[expect(clippy::cast_possible_truncation, reason = "what is wanted")]
fn truncated(sum: i64) -> i32 {
    sum as i32
}

/// A running sum.
struct Sums {
    step: i64,
    last: i64,
}

impl Sums {
    /// Sums packed differences while they are unpacked, a word for each: whole groups, as long as
    /// there are bytes for words. Returns how many.
    fn groups<T: Copy>(
        &mut self,
        bytes: &[u8],
        width: u32,
        n: usize,
        out: &mut Vec<T>,
        give: impl Fn(i64) -> T,
    ) -> usize {
        /// A kernel for a constant width, so that all places and shifts are constants.
        macro_rules! of_width {
            ($($width:literal)*) => {
                match width {
                    $($width => self.groups_of::<$width, T>(bytes, n, out, give),)*
                    _ => 0,
                }
            };
        }
        of_width!(
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
            30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        )
    }

    /// Like [`Sums::groups`], for a width of at most [`WIDEST`].
    #[inline(always)]
    fn groups_of<const W: usize, T: Copy>(
        &mut self,
        bytes: &[u8],
        n: usize,
        out: &mut Vec<T>,
        give: impl Fn(i64) -> T,
    ) -> usize {
        const { assert!(1 <= W && W <= WIDEST) };
        let mask = u64::MAX >> (u64::BITS as usize - W);
        let furthest = (GROUP - 1) * W / 8 + size_of::<u64>();
        let (mut done, mut rest, mut last) = (0, bytes, self.last);
        while n - done >= GROUP
            && let Some(words) = rest.get(..furthest)
        {
            let word = |at: usize| {
                let word = words[at..].first_chunk().expect("the furthest ends with the words");
                u64::from_le_bytes(*word)
            };
            // For narrow widths, a word holds the whole group.
            let whole = word(0);
            let sums: [T; GROUP] = std::array::from_fn(|i| {
                let delta = match W {
                    ..=8 => whole >> (i * W),
                    _ => word(i * W / 8) >> (i * W % 8),
                };
                last = last.wrapping_add((delta & mask).cast_signed().wrapping_add(self.step));
                give(last)
            });
            out.extend_from_slice(&sums);
            rest = rest.get(W..).expect("more bytes were there");
            done += GROUP;
        }
        self.last = last;
        done
    }
}

/// Appends the running sums of `deltas` that begin after `last`, each with `step` added; gives the
/// last sum. All of it wraps.
pub(crate) fn prefix_sum_i32(deltas: &[u32], step: i32, last: i32, out: &mut Vec<i32>) -> i32 {
    prefix_sum_i32_with(Isa::for_kernel(Kernel::PrefixSum), deltas, step, last, out)
}

/// Like [`prefix_sum_i32`], for 64 bits, with the kernel of an instruction set.
fn prefix_sum_i64_with(isa: Isa, deltas: &[u64], step: i64, last: i64, out: &mut Vec<i64>) -> i64 {
    let (rest, mut last) = match isa.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => {
            let (vectors, rest) = deltas.as_chunks();
            // SAFETY: these exist only where `Isa::best` has found the features.
            (rest, unsafe { avx2::sum_i64(vectors, step, last, out) })
        }
        // Two lanes are summed no faster than two values.
        _ => (deltas, last),
    };
    out.extend(rest.iter().map(|delta| {
        last = last.wrapping_add(delta.cast_signed().wrapping_add(step));
        last
    }));
    last
}

fn prefix_sum_i32_with(isa: Isa, deltas: &[u32], step: i32, last: i32, out: &mut Vec<i32>) -> i32 {
    let (rest, mut last) = match isa.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => {
            let (vectors, rest) = deltas.as_chunks();
            // SAFETY: these exist only where `Isa::best` has found the features.
            (rest, unsafe { avx2::sum_i32(vectors, step, last, out) })
        }
        #[cfg(target_arch = "aarch64")]
        Level::Scalar if isa.neon() => {
            let (vectors, rest) = deltas.as_chunks();
            // SAFETY: every aarch64 has NEON.
            (rest, unsafe { aarch64::sum_i32(vectors, step, last, out) })
        }
        Level::Scalar => (deltas, last),
    };
    out.extend(rest.iter().map(|delta| {
        last = last.wrapping_add(delta.cast_signed().wrapping_add(step));
        last
    }));
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_the_naive_twin_and_wraps() {
        let seed = 14;
        let mut rng = fastrand::Rng::with_seed(seed);
        for (n, isa) in (0..70).flat_map(|n| Isa::available().into_iter().map(move |isa| (n, isa)))
        {
            let deltas: Vec<u64> = (0..n).map(|_| rng.u64(..)).collect();
            let (step, first) = (rng.i64(..), rng.i64(..));
            let mut out = vec![7];
            let last = prefix_sum_i64_with(isa, &deltas, step, first, &mut out);
            let mut sum = first;
            let expected: Vec<i64> = deltas
                .iter()
                .map(|d| {
                    sum = sum.wrapping_add(*d as i64).wrapping_add(step);
                    sum
                })
                .collect();
            assert_eq!((out[1..].to_vec(), last), (expected, sum), "seed {seed}");

            let deltas: Vec<u32> = (0..n).map(|_| rng.u32(..)).collect();
            let (step, first) = (rng.i32(..), rng.i32(..));
            let mut out = vec![7];
            let last = prefix_sum_i32_with(isa, &deltas, step, first, &mut out);
            let mut sum = first;
            let expected: Vec<i32> = deltas
                .iter()
                .map(|d| {
                    sum = sum.wrapping_add(*d as i32).wrapping_add(step);
                    sum
                })
                .collect();
            assert_eq!((out[1..].to_vec(), last), (expected, sum), "seed {seed}");
        }
    }

    #[test]
    fn packed_differences_are_summed_as_by_the_twin() {
        let seed = 16;
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..800).map(|_| rng.u8(..)).collect();
        for isa in Isa::available() {
            for width in 0..=64 {
                for n in [0, 1, 7, 8, 9, 16, 31, 32, 33, 95, 128] {
                    let bytes = &bytes[rng.usize(0..4)..rng.usize(700..800)];
                    let packed = PackedDeltas { bytes, width, n };
                    let (step, last) = (rng.i64(..), rng.i64(..));
                    let (mut deltas, mut scratch) = (Vec::new(), Vec::new());
                    unpack_u64_with(Isa::SCALAR, bytes, width, n, &mut deltas);
                    let (mut out, mut expected) = (vec![7], vec![7]);
                    let end = prefix_sum_i64_with(Isa::SCALAR, &deltas, step, last, &mut expected);
                    let found =
                        sum_packed_i64_with(isa, packed, step, last, &mut scratch, &mut out);
                    assert_eq!((found, &out), (end, &expected), "{isa:?} width {width} n {n}");
                    if width > 32 {
                        continue;
                    }
                    let (step, last) = (rng.i32(..), rng.i32(..));
                    let (mut deltas, mut scratch) = (Vec::new(), Vec::new());
                    unpack_u32_with(Isa::SCALAR, bytes, width, n, &mut deltas);
                    let (mut out, mut expected) = (vec![7], vec![7]);
                    let end = prefix_sum_i32_with(Isa::SCALAR, &deltas, step, last, &mut expected);
                    let found =
                        sum_packed_i32_with(isa, packed, step, last, &mut scratch, &mut out);
                    assert_eq!((found, &out), (end, &expected), "{isa:?} width {width} n {n}");
                }
            }
        }
    }
}
