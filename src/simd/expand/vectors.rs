//! Walks over words for kernels that expand a few slots at a time: in place, from the back.

use crate::simd::bitmap::WORD;
use crate::simd::native::PlainOldData;

/// Moves the last values of `region[..dense]` to the set bits of the words of its slots, from the
/// last word to the first; the slots of nulls become 0. Returns the number of values that stay
/// where they are: those of the words before the one for which `word` returns `None`.
///
/// `expand` is given where the values of `LANES` slots begin, where those slots begin, and their
/// bits. A vector is read before it is written, and no value of an earlier slot lies after its
/// first slot, so no copy is needed.
///
/// # Safety
/// `expand` must read and write no more than `LANES` values, which divide 64.
///
/// # Panics
/// If more bits are set than there are values.
#[inline(always)]
pub(super) unsafe fn by_vectors<T: PlainOldData, const LANES: usize>(
    region: &mut [T],
    mut dense: usize,
    word: impl Fn(usize, usize) -> Option<u64>,
    expand: impl Fn(*const T, *mut T, usize),
) -> usize {
    for at in (0..region.len() / WORD).rev().map(|at| at * WORD) {
        let Some(bits) = word(at, dense) else {
            return dense;
        };
        let ones = bits.count_ones() as usize;
        assert!(ones <= dense && dense - ones <= at, "as many values as bits are set");
        if ones <= few::<T>() {
            let mut values = [T::ZERO; MAX_FEW];
            dense -= ones;
            values[..ones].copy_from_slice(&region[dense..dense + ones]);
            let slots = &mut region[at..at + WORD];
            slots.fill(T::ZERO);
            let mut bits = bits;
            for value in &values[..ones] {
                slots[bits.trailing_zeros() as usize % WORD] = *value;
                bits &= bits.wrapping_sub(1);
            }
            continue;
        }
        if ones == WORD {
            dense -= WORD;
            region.copy_within(dense..dense + WORD, at);
            continue;
        }
        let target = region.as_mut_ptr();
        for lane in (0..WORD).step_by(LANES).rev() {
            let mask = bits_of::<LANES>(bits, lane);
            dense -= mask.count_ones() as usize;
            // At most `at + lane` of the slots before `at + lane` have values from `at` on:
            // `dense <= at + lane`, and a vector from either is within the word that ends at
            // `at + WORD`, which is in the region.
            expand(target.wrapping_add(dense), target.wrapping_add(at + lane), mask);
        }
    }
    dense
}

/// Like [`by_vectors`] for ends: a null ends where the value before it does. `region` begins with
/// the end before the first slot, which `dense` does not count.
///
/// `expand` is given where the end before the slots is, where the slots begin, and their bits.
///
/// # Safety
/// `expand` must read no more than `LANES` ends and one, and write no more than `LANES`, which
/// divide 64.
///
/// # Panics
/// As [`by_vectors`], and if the region is empty, or values are left.
#[inline(always)]
pub(super) unsafe fn ends_by_vectors<T: PlainOldData, const LANES: usize>(
    region: &mut [T],
    mut dense: usize,
    word: impl Fn(usize) -> u64,
    expand: impl Fn(*const T, *mut T, usize),
) {
    let words = (region.len() - 1) / WORD;
    for at in (0..words).rev().map(|at| at * WORD) {
        let bits = word(at);
        let ones = bits.count_ones() as usize;
        assert!(ones <= dense && dense - ones <= at, "as many ends as bits are set");
        if ones == WORD {
            dense -= WORD;
            region.copy_within(dense + 1..dense + 1 + WORD, at + 1);
            continue;
        }
        let target = region.as_mut_ptr();
        for lane in (0..WORD).step_by(LANES).rev() {
            let mask = bits_of::<LANES>(bits, lane);
            dense -= mask.count_ones() as usize;
            // As above, each one later: the words begin at 1.
            expand(target.wrapping_add(dense), target.wrapping_add(at + lane + 1), mask);
        }
    }
    assert_eq!(dense, 0, "as many ends as bits are set");
}

/// `LANES` bits of a word.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "words are those of the machine")]
fn bits_of<const LANES: usize>(bits: u64, lane: usize) -> usize {
    (bits >> lane & (u64::MAX >> (WORD - LANES))) as usize
}

/// The widest value has 16 bytes.
const MAX_FEW: usize = 16;

/// Values of at least 8 bytes are moved one by one if they are no more than these of a word.
const fn few<T>() -> usize {
    match size_of::<T>() {
        8 => 8,
        16 => MAX_FEW,
        _ => 0,
    }
}
