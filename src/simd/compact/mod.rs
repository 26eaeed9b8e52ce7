//! Keeps selected values and drops the others, in place: the opposite of [`expand`](super::expand).
//!
//! It goes by words of 64 bits. A word whose bits are all set is one move, one without bits
//! nothing; of any other, each kept value is moved. With vectors, AVX2 and NEON permute lanes by a
//! table. AVX-512 has an instruction for it, and was no faster (`docs/kernels.md`).

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vectors;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::Level;
use super::bitmap::{Bitmap, WORD};
use super::native::PlainOldData;
use super::{Isa, Kernel};

/// Keeps those values from `start` on whose bits of `keep`, from `first` on, are set; bits beyond
/// the end count as not set.
///
/// # Panics
/// If `keep` has more bits than there are values.
pub(crate) fn compact<T: PlainOldData>(
    values: &mut Vec<T>,
    start: usize,
    keep: &Bitmap,
    first: usize,
) {
    compact_with(Isa::for_kernel(Kernel::Compact), values, start, keep, first);
}

/// Like [`compact`], with the kernel of an instruction set.
///
/// # Panics
/// As [`compact`].
pub(crate) fn compact_with<T: PlainOldData>(
    isa: Isa,
    values: &mut Vec<T>,
    start: usize,
    keep: &Bitmap,
    first: usize,
) {
    let kept = compact_in(isa, &mut values[start..], keep, first);
    values.truncate(start + kept);
}

/// Moves the values that are kept to the front, and returns how many they are.
fn compact_in<T: PlainOldData>(isa: Isa, values: &mut [T], keep: &Bitmap, first: usize) -> usize {
    let len = values.len();
    let mut to = 0;
    for at in (0..len).step_by(WORD) {
        let n = (len - at).min(WORD);
        let mut word = keep.word_at(first + at) & (u64::MAX >> (WORD - n));
        let ones = word.count_ones() as usize;
        if ones == n {
            if to < at {
                values.copy_within(at..at + n, to);
            }
            to += n;
            continue;
        }
        // A few values are moved faster one by one.
        if n == WORD && ones > few::<T>() && compress(isa, values, at, to, word) {
            to += ones;
            continue;
        }
        while word != 0 {
            values[to] = values[at + word.trailing_zeros() as usize];
            to += 1;
            word &= word - 1;
        }
    }
    to
}

/// How many values of a word are moved one by one.
const fn few<T>() -> usize {
    match size_of::<T>() {
        8 => 12,
        16 => 36,
        _ => 4,
    }
}

/// Moves the values of a word in vectors; false if there are none for values of this width.
fn compress<T: PlainOldData>(isa: Isa, values: &mut [T], at: usize, to: usize, word: u64) -> bool {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of these levels exists only where the features were found, and the width
        // fits.
        Level::Avx2 | Level::Avx512 if vectors::avx2::fits::<T>() => unsafe {
            vectors::avx2::compress(values, at, to, word);
            true
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: every aarch64 has NEON, and the width fits.
        Level::Scalar if isa.neon() && vectors::neon::fits::<T>() => unsafe {
            vectors::neon::compress(values, at, to, word);
            true
        },
        _ => {
            let _ = (values, at, to, word);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths<T: PlainOldData + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        let seed = 11;
        let mut rng = fastrand::Rng::with_seed(seed);
        for case in 0..300 {
            let (start, first, n) = (rng.usize(0..30), rng.usize(0..100), rng.usize(0..400));
            let mut keep = Bitmap::default();
            let often = rng.u8(0..=8);
            while keep.len() < first + n {
                let len = [1, 1, 70][rng.usize(0..3)].min(first + n - keep.len());
                keep.append_run(rng.u8(0..8) < often, len);
            }
            let values: Vec<T> = (0..start + n).map(&value).collect();
            let kept = (0..n).filter(|i| keep.get(first + i)).map(|i| value(start + i));
            let expected: Vec<T> = values[..start].iter().copied().chain(kept).collect();
            for isa in Isa::available() {
                let mut values = values.clone();
                compact_with(isa, &mut values, start, &keep, first);
                assert_eq!(values, expected, "{isa:?}, case {case}, seed {seed}");
            }
        }
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "any values will do")]
    fn keeps_what_the_naive_twin_keeps() {
        widths(|i| i as u8);
        widths(|i| i as u16);
        widths(|i| i as u32);
        widths(|i| i as u64);
        widths(|i| i as u128);
        widths(|i| [i as u64; 4]);
    }

    #[test]
    fn bits_that_are_not_there_are_not_set() {
        let mut values = vec![1, 2, 3];
        compact(&mut values, 1, &Bitmap::default(), 7);
        assert_eq!(values, [1]);
    }
}
