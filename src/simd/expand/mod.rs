//! Spreads dense values to their slots, in place, from the back.
//!
//! It goes by words of 64 slots. A word whose slots are all valid is one move, one of nulls one
//! fill; the values of any other are moved one by one from a copy of them. With vectors no copy is
//! needed: AVX2 and NEON permute a few slots at a time, by a table. AVX-512 has an instruction for
//! it, which is faster for values of 16 bytes alone (`docs/kernels.md`).

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vectors;
mod scalar;
#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::Level;
use super::bitmap::{Bitmap, WORD};
use super::native::PlainOldData;
use super::{Isa, Kernel};
use scalar::Block;

/// Moves the values from `start` on to the set bits of `validity[first..first + slots]`; the slots
/// of nulls become 0.
///
/// Afterwards `values` has `start + slots` values.
///
/// # Panics
/// If there are not as many values from `start` on as bits are set.
pub(crate) fn spread<T: PlainOldData>(
    values: &mut Vec<T>,
    start: usize,
    validity: &Bitmap,
    first: usize,
    slots: usize,
) {
    spread_with(Isa::for_kernel(Kernel::Expand), values, start, validity, first, slots);
}

/// Like [`spread`], with the kernel of an instruction set.
///
/// # Panics
/// As [`spread`].
pub(crate) fn spread_with<T: PlainOldData>(
    isa: Isa,
    values: &mut Vec<T>,
    start: usize,
    validity: &Bitmap,
    first: usize,
    slots: usize,
) {
    let dense = values.len() - start;
    values.resize(start + slots, T::ZERO);
    spread_in(isa, &mut values[start..], dense, validity, first);
}

/// As [`spread_with`], within a slice of the slots, which begins with the `dense` values.
///
/// # Panics
/// As [`spread`].
pub(crate) fn spread_in<T: PlainOldData>(
    isa: Isa,
    region: &mut [T],
    dense: usize,
    validity: &Bitmap,
    first: usize,
) {
    let slots = region.len();
    let word_at = |at: usize, n: usize| validity.word_at(first + at) & (u64::MAX >> (WORD - n));
    let mut block: Block<T> = [T::ZERO; 2 * WORD];
    let mut from = dense;
    for at in (0..slots.next_multiple_of(WORD)).step_by(WORD).rev() {
        let n = (slots - at).min(WORD);
        if n == WORD {
            let word = |at, dense| {
                // Every slot before is valid too: nothing moves any more.
                let word = word_at(at, WORD);
                (word != u64::MAX || dense != at + WORD).then_some(word)
            };
            if let Some(left) = spread_words(isa, &mut region[..at + WORD], from, word) {
                assert_eq!(left % WORD, 0, "as many values as bits are set");
                return;
            }
        }
        let word = word_at(at, n);
        let ones = word.count_ones() as usize;
        from -= ones;
        if from == at && ones == n {
            return;
        }
        let target = &mut region[at..at + n];
        if ones == 0 {
            target.fill(T::ZERO);
        } else if ones == n {
            region.copy_within(from..from + ones, at);
        } else {
            block[..ones].copy_from_slice(&region[from..from + ones]);
            scalar::expand(&block, word, &mut region[at..at + n]);
        }
    }
    assert_eq!(from, 0, "as many values as bits are set");
}

/// Spreads whole words in vectors; `None` if there are none for values of this width. Returns how
/// many values stay where they are: those before the word for which `word` returns `None`.
fn spread_words<T: PlainOldData>(
    isa: Isa,
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize, usize) -> Option<u64>,
) -> Option<usize> {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where the features were found, and the width
        // fits.
        Level::Avx512 if avx512::fits::<T>() => unsafe {
            Some(avx512::spread(region, dense, word))
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 | Level::Avx512 if avx2::fits::<T>() => unsafe {
            Some(avx2::spread(region, dense, word))
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: every aarch64 has NEON, and the width fits.
        Level::Scalar if isa.neon() && aarch64::fits::<T>() => unsafe {
            Some(aarch64::spread(region, dense, word))
        },
        _ => {
            let _ = (region, dense, word);
            None
        }
    }
}

/// Like [`spread`] for the ends of byte strings, which are not negative and never fall: a null ends
/// where the value before it does; for the first that is `ends[start - 1]`.
///
/// # Panics
/// If `start` is 0, or there are not as many ends from `start` on as bits are set.
pub(crate) fn spread_ends<T: PlainOldData>(
    ends: &mut Vec<T>,
    start: usize,
    validity: &Bitmap,
    first: usize,
    slots: usize,
) {
    spread_ends_with(Isa::for_kernel(Kernel::Expand), ends, start, validity, first, slots);
}

/// Like [`spread_ends`], with the kernel of an instruction set.
///
/// # Panics
/// As [`spread_ends`].
pub(crate) fn spread_ends_with<T: PlainOldData>(
    isa: Isa,
    ends: &mut Vec<T>,
    start: usize,
    validity: &Bitmap,
    first: usize,
    slots: usize,
) {
    let dense = ends.len() - start;
    ends.resize(start + slots, T::ZERO);
    let mut block: Block<T> = [T::ZERO; 2 * WORD];
    // Index 0 is the end before the first slot.
    let region = &mut ends[start - 1..];
    let word_at = |at: usize, n: usize| validity.word_at(first + at) & (u64::MAX >> (WORD - n));
    let mut from = dense;
    for at in (0..slots.next_multiple_of(WORD)).step_by(WORD).rev() {
        let n = (slots - at).min(WORD);
        if n == WORD {
            let region = &mut region[..at + WORD + 1];
            if spread_ends_of_words(isa, region, from, |at| word_at(at, WORD)) {
                return;
            }
        }
        let word = word_at(at, n);
        let ones = word.count_ones() as usize;
        from -= ones;
        if ones == n {
            region.copy_within(from + 1..from + 1 + ones, at + 1);
        } else {
            block[..=ones].copy_from_slice(&region[from..=from + ones]);
            scalar::expand_ends(&block, word, &mut region[at + 1..at + 1 + n]);
        }
    }
    assert_eq!(from, 0, "as many ends as bits are set");
}

/// Spreads the ends of whole words in vectors; false if there are none for ends of this width.
fn spread_ends_of_words<T: PlainOldData>(
    isa: Isa,
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize) -> u64,
) -> bool {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where the features were found, and the width
        // fits.
        Level::Avx2 | Level::Avx512 if avx2::fits_ends::<T>() => unsafe {
            avx2::spread_ends(region, dense, word);
            true
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: every aarch64 has NEON, and the width fits.
        Level::Scalar if isa.neon() && aarch64::fits_ends::<T>() => unsafe {
            aarch64::spread_ends(region, dense, word);
            true
        },
        _ => {
            let _ = (region, dense, word);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validity(rng: &mut fastrand::Rng, first: usize, slots: usize) -> Bitmap {
        let mut bitmap = Bitmap::default();
        bitmap.append_run(true, first);
        while bitmap.len() < first + slots {
            let n = rng.usize(1..100).min(first + slots - bitmap.len());
            match rng.usize(0..3) {
                0 => bitmap.append_run(rng.bool(), n),
                _ => (0..n).for_each(|_| bitmap.append_run(rng.bool(), 1)),
            }
        }
        bitmap
    }

    fn widths<T: PlainOldData + PartialEq + std::fmt::Debug + TryFrom<usize>>(
        isa: Isa,
        bitmap: &Bitmap,
        first: usize,
        slots: usize,
    ) {
        let value = |i: usize| T::try_from(i % 100 + 1).unwrap_or(T::ZERO);
        let valid = |i: &usize| bitmap.get(first + i);
        let mut values: Vec<T> = (0..slots).filter(valid).map(value).collect();
        spread_with(isa, &mut values, 0, bitmap, first, slots);
        for (i, found) in values.iter().enumerate() {
            assert_eq!(*found, if valid(&i) { value(i) } else { T::ZERO }, "{isa:?} slot {i}");
        }
    }

    #[test]
    fn values_stand_at_their_slots() {
        let seed = 5;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let (start, first, slots) = (rng.usize(0..50), rng.usize(0..100), rng.usize(0..400));
            let bitmap = validity(&mut rng, first, slots);
            let mut values: Vec<u32> = (0..start as u32).collect();
            let mut expected = values.clone();
            for i in 0..slots {
                let valid = bitmap.get(first + i);
                if valid {
                    values.push(1000 + i as u32);
                }
                expected.push(if valid { 1000 + i as u32 } else { 0 });
            }
            for isa in Isa::available() {
                let mut values = values.clone();
                spread_with(isa, &mut values, start, &bitmap, first, slots);
                assert_eq!(values, expected, "{isa:?} seed {seed}");
                widths::<u8>(isa, &bitmap, first, slots);
                widths::<u16>(isa, &bitmap, first, slots);
                widths::<u64>(isa, &bitmap, first, slots);
                widths::<u128>(isa, &bitmap, first, slots);
            }
        }
    }

    #[test]
    fn nulls_end_where_the_value_before_ends() {
        let seed = 6;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..500 {
            let (first, slots) = (rng.usize(0..100), rng.usize(0..400));
            let bitmap = validity(&mut rng, first, slots);
            let (mut ends, mut expected, mut end) = (vec![9u32], vec![9u32], 9);
            for i in 0..slots {
                if bitmap.get(first + i) {
                    end += rng.u32(0..5);
                    ends.push(end);
                }
                expected.push(end);
            }
            for isa in Isa::available() {
                let mut found = ends.clone();
                spread_ends_with(isa, &mut found, 1, &bitmap, first, slots);
                assert_eq!(found, expected, "{isa:?} seed {seed}");
                let mut found: Vec<i64> = ends.iter().map(|&end| i64::from(end) << 30).collect();
                let expected: Vec<i64> = expected.iter().map(|&e| i64::from(e) << 30).collect();
                spread_ends_with(isa, &mut found, 1, &bitmap, first, slots);
                assert_eq!(found, expected, "{isa:?} seed {seed}");
            }
        }
    }
}
