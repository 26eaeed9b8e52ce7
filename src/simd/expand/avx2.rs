//! Expands with AVX2: permutations by a table that has a row for each mask of 2 to 8 slots.

use std::arch::x86_64::{
    __m256i, _mm_loadl_epi64, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storel_epi64,
    _mm_storeu_si128, _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_cvtepi8_epi32,
    _mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_srai_epi32, _mm256_storeu_si256,
};

use super::vectors::{by_vectors, ends_by_vectors};
use crate::simd::mask_tables::{ENDS, ENDS_8, SLOTS, SLOTS_2, SLOTS_8, SLOTS_16};
use crate::simd::native::PlainOldData;

/// Whether values of this width can be expanded.
pub(super) const fn fits<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// Moves the last values of `region[..dense]` to the set bits of the words of its slots: see
/// [`by_vectors`].
///
/// # Safety
/// The machine must have AVX2 and POPCNT; the width of `T` must be one that [`fits`].
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn spread<T: PlainOldData>(
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize, usize) -> Option<u64>,
) -> usize {
    // SAFETY: each reads and writes as many values as it has lanes, which fill its vector; the
    // masks have as many bits, and the tables a row for each.
    unsafe {
        match size_of::<T>() {
            1 => by_vectors::<T, 8>(region, dense, word, |from, to, mask| {
                let index = _mm_loadl_epi64(SLOTS[mask].as_ptr().cast());
                let values = _mm_loadl_epi64(from.cast());
                _mm_storel_epi64(to.cast(), _mm_shuffle_epi8(values, index));
            }),
            2 => by_vectors::<T, 8>(region, dense, word, |from, to, mask| {
                let index = _mm_loadu_si128(SLOTS_2[mask].as_ptr().cast());
                let values = _mm_loadu_si128(from.cast());
                _mm_storeu_si128(to.cast(), _mm_shuffle_epi8(values, index));
            }),
            4 => by_vectors::<T, 8>(region, dense, word, |from, to, mask| {
                words(from.cast(), to.cast(), &SLOTS[mask]);
            }),
            8 => by_vectors::<T, 4>(region, dense, word, |from, to, mask| {
                words(from.cast(), to.cast(), &SLOTS_8[mask]);
            }),
            _ => by_vectors::<T, 2>(region, dense, word, |from, to, mask| {
                words(from.cast(), to.cast(), &SLOTS_16[mask]);
            }),
        }
    }
}

/// The words of a row.
#[inline]
#[target_feature(enable = "avx2")]
fn index(row: &[u8; 8]) -> __m256i {
    // SAFETY: a row has 8 bytes.
    _mm256_cvtepi8_epi32(unsafe { _mm_loadl_epi64(row.as_ptr().cast()) })
}

/// Moves 8 words of 4 bytes to the places of a row; the others become 0.
///
/// # Safety
/// The machine must have AVX2; there must be 32 bytes at `from` and at `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words(from: *const u8, to: *mut u8, row: &[u8; 8]) {
    let index = index(row);
    // SAFETY: the caller guarantees the bytes.
    let values = unsafe { _mm256_loadu_si256(from.cast()) };
    // The lowest bits are the source; the highest marks that there is none.
    let spread = _mm256_permutevar8x32_epi32(values, index);
    let spread = _mm256_andnot_si256(_mm256_srai_epi32::<31>(index), spread);
    // SAFETY: as above.
    unsafe { _mm256_storeu_si256(to.cast(), spread) };
}

/// Whether ends of this width can be expanded.
pub(super) const fn fits_ends<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// Like [`spread`] for ends: see [`ends_by_vectors`].
///
/// # Safety
/// The machine must have AVX2 and POPCNT; the width of `T` must be one that [`fits_ends`].
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn spread_ends<T: PlainOldData>(
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize) -> u64,
) {
    // SAFETY: each reads the end before and as many as it has lanes, which fill its vector, and
    // writes as many; the masks have as many bits, and the tables a row for each.
    unsafe {
        if size_of::<T>() == 4 {
            ends_by_vectors::<T, 8>(region, dense, word, |from, to, mask| {
                let before = _mm256_set1_epi32(from.cast::<i32>().read_unaligned());
                let values = _mm256_loadu_si256(from.add(1).cast());
                _mm256_storeu_si256(to.cast(), ends(before, values, &ENDS[mask]));
            });
        } else {
            ends_by_vectors::<T, 4>(region, dense, word, |from, to, mask| {
                let before = _mm256_set1_epi64x(from.cast::<i64>().read_unaligned());
                let values = _mm256_loadu_si256(from.add(1).cast());
                _mm256_storeu_si256(to.cast(), ends(before, values, &ENDS_8[mask]));
            });
        }
    }
}

/// The words of `values` at the places of a row, or those of `before` where it has none.
#[inline]
#[target_feature(enable = "avx2")]
fn ends(before: __m256i, values: __m256i, row: &[u8; 8]) -> __m256i {
    let index = index(row);
    let none = _mm256_srai_epi32::<31>(index);
    _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(values, index), before, none)
}
