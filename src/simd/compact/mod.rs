//! Keeps some values and drops the others, in place: the opposite of [`expand`](super::expand).
//!
//! By words of 64 bits: all kept is one move, none kept nothing, and of a mixed word each kept
//! value is moved, or, with the compress instruction of AVX-512, each vector.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::bitmap::Bitmap;
use super::native::PlainOldData;
use super::{Isa, Level};

/// Bits of a word.
const WORD: usize = 64;

/// Of the values from `start` on, keeps those whose bits of `keep`, from `first` on, are set; bits
/// that are not there are not set.
///
/// # Panics
/// If there are not so many values.
pub(crate) fn compact<T: PlainOldData>(
    values: &mut Vec<T>,
    start: usize,
    keep: &Bitmap,
    first: usize,
) {
    compact_with(Isa::best(), values, start, keep, first);
}

/// As [`compact`], with the kernel of an instruction set.
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

/// Moves the values that are kept to the front, and says how many they are.
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
        match isa.level() {
            // Of a few values, each is moved sooner.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 if x86::fits::<T>() && n == WORD && ones > 4 => {
                // SAFETY: an `Isa` of this level exists only where the features were found; `to <=
                // at`, 64 values begin at `at`, and the width fits.
                unsafe { x86::compress(values, at, to, word) };
                to += ones;
            }
            _ => {
                while word != 0 {
                    values[to] = values[at + word.trailing_zeros() as usize];
                    to += 1;
                    word &= word - 1;
                }
            }
        }
    }
    to
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
