//! The expand instructions of AVX-512: 4 to 64 slots at a time.

use std::arch::x86_64::{
    __m512i, _mm512_alignr_epi32, _mm512_alignr_epi64, _mm512_loadu_si512,
    _mm512_maskz_expand_epi8, _mm512_maskz_expand_epi16, _mm512_maskz_expand_epi32,
    _mm512_maskz_expand_epi64, _mm512_max_epu32, _mm512_max_epu64, _mm512_permutexvar_epi32,
    _mm512_permutexvar_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
};

use super::WORD;
use crate::simd::native::PlainOldData;

/// Whether values of this width can be expanded.
pub(super) const fn fits<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// Moves the last values of `region[..dense]` to the set bits of the words of its slots, from the
/// last word to the first; the slots of nulls become 0. Gives the number of values that are left
/// where they are: those of the words before the one that `words` gives `None` for.
///
/// A vector is read before it is written, and no value of a slot before it stands after its first
/// slot: nothing is copied aside.
///
/// # Safety
/// The machine must have AVX-512 F, BW, and VBMI2; the width of `T` must be one that [`fits`].
///
/// # Panics
/// If more bits are set than there are values.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
pub(super) unsafe fn spread<T: PlainOldData>(
    region: &mut [T],
    mut dense: usize,
    word: impl Fn(usize, usize) -> Option<u64>,
) -> usize {
    let lanes = 64 / size_of::<T>();
    let mask = u64::MAX >> (64 - lanes);
    let words = region.len() / WORD;
    let target = region.as_mut_ptr();
    for at in (0..words).rev().map(|at| at * WORD) {
        let Some(bits) = word(at, dense) else {
            return dense;
        };
        for at_lane in (0..WORD).step_by(lanes).rev() {
            let bits = bits >> at_lane & mask;
            let used = bits.count_ones() as usize;
            let to = at + at_lane;
            assert!(used <= dense && dense - used <= to, "as many values as bits are set");
            dense -= used;
            // SAFETY: `dense <= to`, and `to + lanes` is within a whole word of the region.
            let values = unsafe { _mm512_loadu_si512(target.add(dense).cast()) };
            let spread = one::<T>(values, bits);
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(target.add(to).cast(), spread) };
        }
    }
    dense
}

/// One vector.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mask has as many bits as a vector has lanes"
)]
fn one<T>(values: __m512i, mask: u64) -> __m512i {
    match size_of::<T>() {
        1 => _mm512_maskz_expand_epi8(mask, values),
        2 => _mm512_maskz_expand_epi16(mask as u32, values),
        4 => _mm512_maskz_expand_epi32(mask as u16, values),
        8 => _mm512_maskz_expand_epi64(mask as u8, values),
        // 16: each slot is two lanes of 8 bytes.
        _ => _mm512_maskz_expand_epi64(TWICE[mask as usize & 0b1111], values),
    }
}

/// Whether ends of this width can be expanded.
pub(super) const fn fits_ends<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// As [`spread`] for ends: a null ends where the value before it does. `region` begins with the end
/// before the first slot, which `dense` does not count.
///
/// # Safety
/// The machine must have AVX-512 F; the width of `T` must be one that [`fits_ends`].
///
/// # Panics
/// As [`spread`], and if the region is empty.
#[target_feature(enable = "avx512f,popcnt")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mask has as many bits as a vector has lanes"
)]
pub(super) unsafe fn spread_ends<T: PlainOldData>(
    region: &mut [T],
    mut dense: usize,
    word: impl Fn(usize) -> u64,
) {
    let lanes = 64 / size_of::<T>();
    let mask = u64::MAX >> (64 - lanes);
    let zero = _mm512_setzero_si512();
    let words = (region.len() - 1) / WORD;
    let target = region.as_mut_ptr();
    for at in (0..words).rev().map(|at| at * WORD) {
        let bits = word(at);
        for at_lane in (0..WORD).step_by(lanes).rev() {
            let bits = bits >> at_lane & mask;
            let used = bits.count_ones() as usize;
            let to = at + at_lane;
            assert!(used <= dense && dense - used <= to, "as many ends as bits are set");
            dense -= used;
            // SAFETY: `dense <= to`, and `to + 1 + lanes` is at most the length of the region,
            // whose words begin at 1.
            let before = unsafe { _mm512_loadu_si512(target.add(dense).cast()) };
            // SAFETY: as above.
            let values = unsafe { _mm512_loadu_si512(target.add(dense + 1).cast()) };
            // Ends never fall: the highest one so far is that of the last value.
            let ends = if lanes == 16 {
                let mut ends = _mm512_maskz_expand_epi32(bits as u16, values);
                ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<15>(ends, zero));
                ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<14>(ends, zero));
                ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<12>(ends, zero));
                ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<8>(ends, zero));
                _mm512_max_epu32(ends, _mm512_permutexvar_epi32(zero, before))
            } else {
                let mut ends = _mm512_maskz_expand_epi64(bits as u8, values);
                ends = _mm512_max_epu64(ends, _mm512_alignr_epi64::<7>(ends, zero));
                ends = _mm512_max_epu64(ends, _mm512_alignr_epi64::<6>(ends, zero));
                ends = _mm512_max_epu64(ends, _mm512_alignr_epi64::<4>(ends, zero));
                _mm512_max_epu64(ends, _mm512_permutexvar_epi64(zero, before))
            };
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(target.add(to + 1).cast(), ends) };
        }
    }
    assert_eq!(dense, 0, "as many ends as bits are set");
}

/// Every bit of four, twice.
const TWICE: [u8; 16] = {
    let mut table = [0; 16];
    let mut mask = 0;
    while mask < 16 {
        let mut bit = 0;
        while bit < 4 {
            if mask >> bit & 1 != 0 {
                table[mask] |= 0b11 << (2 * bit);
            }
            bit += 1;
        }
        mask += 1;
    }
    table
};
