//! Compacts with AVX2 and NEON: permutations by a table that has a row for each mask of 2 to 8
//! values.

use crate::simd::bitmap::WORD;
use crate::simd::native::PlainOldData;

/// Moves those of the 64 values from `at` on whose bits are set to `to`, one after the other. What
/// stood after them, before `at + 64`, is lost.
///
/// `compress` is given where `LANES` values begin, where those that are kept go, and their bits.
///
/// # Safety
/// `compress` must read and write no more than `LANES` values, which divide 64.
///
/// # Panics
/// If `to` is after `at`, or there are fewer than 64 values from `at` on.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a mask is a byte")]
unsafe fn by_vectors<T: PlainOldData, const LANES: usize>(
    values: &mut [T],
    at: usize,
    mut to: usize,
    word: u64,
    compress: impl Fn(*const T, *mut T, usize),
) {
    const { assert!(LANES <= 8, "a mask is a byte") };
    assert!(to <= at && at + WORD <= values.len(), "a whole word, moved to the front");
    let values = values.as_mut_ptr();
    for from in (0..WORD).step_by(LANES) {
        let mask = (word >> from) as usize & ((1 << LANES) - 1);
        // `to` is at most `at + from`, as no more values were kept than looked at: both vectors
        // end within the word.
        compress(values.wrapping_add(at + from), values.wrapping_add(to), mask);
        to += mask.count_ones() as usize;
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use std::arch::x86_64::{
        _mm_loadl_epi64, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storel_epi64, _mm_storeu_si128,
        _mm256_cvtepi8_epi32, _mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_storeu_si256,
    };

    use super::{PlainOldData, by_vectors};
    use crate::simd::mask_tables::{KEPT, KEPT_2, KEPT_8};

    /// Whether values of this width can be compressed.
    pub(in crate::simd::compact) const fn fits<T>() -> bool {
        matches!(size_of::<T>(), 1 | 2 | 4 | 8)
    }

    /// See [`by_vectors`].
    ///
    /// # Safety
    /// The machine must have AVX2 and POPCNT; the width of `T` must be one that [`fits`].
    #[target_feature(enable = "avx2,popcnt")]
    pub(in crate::simd::compact) unsafe fn compress<T: PlainOldData>(
        values: &mut [T],
        at: usize,
        to: usize,
        word: u64,
    ) {
        // SAFETY: each reads and writes as many values as it has lanes, which fill its vector; the
        // masks have as many bits, and the tables a row for each.
        unsafe {
            match size_of::<T>() {
                1 => by_vectors::<T, 8>(values, at, to, word, |from, to, mask| {
                    let index = _mm_loadl_epi64(KEPT[mask].as_ptr().cast());
                    let kept = _mm_shuffle_epi8(_mm_loadl_epi64(from.cast()), index);
                    _mm_storel_epi64(to.cast(), kept);
                }),
                2 => by_vectors::<T, 8>(values, at, to, word, |from, to, mask| {
                    let index = _mm_loadu_si128(KEPT_2[mask].as_ptr().cast());
                    let kept = _mm_shuffle_epi8(_mm_loadu_si128(from.cast()), index);
                    _mm_storeu_si128(to.cast(), kept);
                }),
                4 => by_vectors::<T, 8>(values, at, to, word, |from, to, mask| {
                    words(from.cast(), to.cast(), &KEPT[mask]);
                }),
                _ => by_vectors::<T, 4>(values, at, to, word, |from, to, mask| {
                    words(from.cast(), to.cast(), &KEPT_8[mask]);
                }),
            }
        }
    }

    /// Takes 8 words of 4 bytes from the places of a row.
    ///
    /// # Safety
    /// The machine must have AVX2; there must be 32 bytes at `from` and at `to`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn words(from: *const u8, to: *mut u8, row: &[u8; 8]) {
        // SAFETY: a row has 8 bytes.
        let index = _mm256_cvtepi8_epi32(unsafe { _mm_loadl_epi64(row.as_ptr().cast()) });
        // SAFETY: the caller guarantees the bytes.
        let values = unsafe { _mm256_loadu_si256(from.cast()) };
        let kept = _mm256_permutevar8x32_epi32(values, index);
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.cast(), kept) };
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) mod neon {
    use std::arch::aarch64::{vld1_u8, vld1q_u8, vqtbl1q_u8, vst1_u8, vst1q_u8, vtbl1_u8};

    use super::{PlainOldData, by_vectors};
    use crate::simd::mask_tables::{KEPT, KEPT_2, KEPT_4};

    /// Whether values of this width can be compressed.
    pub(in crate::simd::compact) const fn fits<T>() -> bool {
        matches!(size_of::<T>(), 1 | 2 | 4)
    }

    /// See [`by_vectors`].
    ///
    /// # Safety
    /// The machine must have NEON; the width of `T` must be one that [`fits`].
    #[target_feature(enable = "neon")]
    pub(in crate::simd::compact) unsafe fn compress<T: PlainOldData>(
        values: &mut [T],
        at: usize,
        to: usize,
        word: u64,
    ) {
        // SAFETY: each reads and writes as many values as it has lanes, which fill its vector; the
        // masks have as many bits, and the tables a row for each.
        unsafe {
            match size_of::<T>() {
                1 => by_vectors::<T, 8>(values, at, to, word, |from, to, mask| {
                    let index = vld1_u8(KEPT[mask].as_ptr());
                    vst1_u8(to.cast(), vtbl1_u8(vld1_u8(from.cast()), index));
                }),
                2 => by_vectors::<T, 8>(values, at, to, word, |from, to, mask| {
                    bytes(from.cast(), to.cast(), &KEPT_2[mask]);
                }),
                _ => by_vectors::<T, 4>(values, at, to, word, |from, to, mask| {
                    bytes(from.cast(), to.cast(), &KEPT_4[mask]);
                }),
            }
        }
    }

    /// Takes 16 bytes from the places of a row.
    ///
    /// # Safety
    /// The machine must have NEON; there must be 16 bytes at `from` and at `to`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn bytes(from: *const u8, to: *mut u8, row: &[u8; 16]) {
        // SAFETY: a row has 16 bytes, and the caller guarantees the others.
        unsafe { vst1q_u8(to, vqtbl1q_u8(vld1q_u8(from), vld1q_u8(row.as_ptr()))) };
    }
}
