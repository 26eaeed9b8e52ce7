//! Expands values of 16 bytes with AVX-512: four slots at a time, where AVX2 has two.

use std::arch::x86_64::{_mm512_loadu_si512, _mm512_maskz_expand_epi64, _mm512_storeu_si512};

use super::vectors::by_vectors;
use crate::simd::native::PlainOldData;

/// Whether values have this width.
pub(super) const fn fits<T>() -> bool {
    size_of::<T>() == 16
}

/// Moves the last values of `region[..dense]` to the set bits of the words of its slots: see
/// [`by_vectors`].
///
/// # Safety
/// The machine must have AVX-512 F; the width of `T` must be the one that [`fits`].
#[target_feature(enable = "avx512f,popcnt")]
pub(super) unsafe fn spread<T: PlainOldData>(
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize, usize) -> Option<u64>,
) -> usize {
    // SAFETY: four values of 16 bytes are read and written, which fill a vector.
    unsafe {
        by_vectors::<T, 4>(region, dense, word, |from, to, mask| {
            let values = _mm512_loadu_si512(from.cast());
            // Each slot is two lanes of 8 bytes.
            _mm512_storeu_si512(to.cast(), _mm512_maskz_expand_epi64(TWICE[mask], values));
        })
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
