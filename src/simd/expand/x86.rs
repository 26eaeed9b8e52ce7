//! The expand instructions of AVX-512: 4 to 64 slots at a time.

use std::arch::x86_64::{
    __m512i, _mm512_alignr_epi32, _mm512_alignr_epi64, _mm512_loadu_si512,
    _mm512_maskz_expand_epi8, _mm512_maskz_expand_epi16, _mm512_maskz_expand_epi32,
    _mm512_maskz_expand_epi64, _mm512_max_epu32, _mm512_max_epu64, _mm512_permutexvar_epi32,
    _mm512_permutexvar_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
};

use super::{Block, WORD};

/// Whether values of this width can be expanded.
pub(super) const fn fits<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// Spreads the values at the front of `block` to the set bits of `word`.
///
/// # Safety
/// The machine must have AVX-512 F, BW, and VBMI2; `target` must have 64 values; the width of `T` must be one that [`fits`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
pub(super) unsafe fn expand<T: Copy>(block: &Block<T>, word: u64, target: &mut [T]) {
    debug_assert_eq!(target.len(), WORD, "a whole word");
    let lanes = 64 / size_of::<T>();
    let mut from = block.as_ptr();
    for at in (0..WORD).step_by(lanes) {
        let mask = word >> at;
        // SAFETY: at most 64 values are in use before `from`, and a vector is at most 64 values: the block has 128.
        let values = unsafe { _mm512_loadu_si512(from.cast()) };
        let (spread, used) = one::<T>(values, mask);
        // SAFETY: `at + lanes <= 64`, the length of the target.
        unsafe { _mm512_storeu_si512(target.as_mut_ptr().add(at).cast(), spread) };
        // SAFETY: `used` counts set bits of the word, which are at most 64 in all.
        from = unsafe { from.add(used) };
    }
}

/// One vector, and how many values it took.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mask has as many bits as a vector has lanes"
)]
fn one<T>(values: __m512i, mask: u64) -> (__m512i, usize) {
    match size_of::<T>() {
        1 => (_mm512_maskz_expand_epi8(mask, values), mask.count_ones() as usize),
        2 => {
            let mask = mask as u32;
            (_mm512_maskz_expand_epi16(mask, values), mask.count_ones() as usize)
        }
        4 => {
            let mask = mask as u16;
            (_mm512_maskz_expand_epi32(mask, values), mask.count_ones() as usize)
        }
        8 => {
            let mask = mask as u8;
            (_mm512_maskz_expand_epi64(mask, values), mask.count_ones() as usize)
        }
        // 16: each slot is two lanes of 8 bytes.
        _ => {
            let mask = mask as u8 & 0b1111;
            let twice = TWICE[usize::from(mask)];
            (_mm512_maskz_expand_epi64(twice, values), mask.count_ones() as usize)
        }
    }
}

/// Whether ends of this width can be expanded.
pub(super) const fn fits_ends<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// As [`expand`] for ends: `block[0]` is the end before the first slot, and a null ends where the value before it does.
///
/// # Safety
/// The machine must have AVX-512 F; `target` must have 64 ends; the width of `T` must be one that [`fits_ends`].
#[target_feature(enable = "avx512f,popcnt")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mask has as many bits as a vector has lanes"
)]
pub(super) unsafe fn expand_ends<T: Copy>(block: &Block<T>, word: u64, target: &mut [T]) {
    debug_assert_eq!(target.len(), WORD, "a whole word");
    let lanes = 64 / size_of::<T>();
    let zero = _mm512_setzero_si512();
    let mut from = block.as_ptr();
    for at in (0..WORD).step_by(lanes) {
        let mask = word >> at;
        // SAFETY: at most 64 ends are in use before `from`, and a vector has at most 16: the block has 128.
        let before = unsafe { _mm512_loadu_si512(from.cast()) };
        // SAFETY: as above, one further.
        let values = unsafe { _mm512_loadu_si512(from.add(1).cast()) };
        // Ends never fall: the highest one so far is that of the last value.
        let (ends, used) = if lanes == 16 {
            let mut ends = _mm512_maskz_expand_epi32(mask as u16, values);
            ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<15>(ends, zero));
            ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<14>(ends, zero));
            ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<12>(ends, zero));
            ends = _mm512_max_epu32(ends, _mm512_alignr_epi32::<8>(ends, zero));
            let ends = _mm512_max_epu32(ends, _mm512_permutexvar_epi32(zero, before));
            (ends, (mask as u16).count_ones())
        } else {
            let mut ends = _mm512_maskz_expand_epi64(mask as u8, values);
            ends = _mm512_max_epu64(ends, _mm512_alignr_epi64::<7>(ends, zero));
            ends = _mm512_max_epu64(ends, _mm512_alignr_epi64::<6>(ends, zero));
            ends = _mm512_max_epu64(ends, _mm512_alignr_epi64::<4>(ends, zero));
            let ends = _mm512_max_epu64(ends, _mm512_permutexvar_epi64(zero, before));
            (ends, (mask as u8).count_ones())
        };
        // SAFETY: `at + lanes <= 64`, the length of the target.
        unsafe { _mm512_storeu_si512(target.as_mut_ptr().add(at).cast(), ends) };
        // SAFETY: `used` counts set bits of the word, which are at most 64 in all.
        from = unsafe { from.add(used as usize) };
    }
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
