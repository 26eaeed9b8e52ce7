//! Expands with the expand instructions of AVX-512: 4 to 64 slots at a time.

use std::arch::x86_64::{
    _mm512_loadu_si512, _mm512_maskz_expand_epi8, _mm512_maskz_expand_epi16,
    _mm512_maskz_expand_epi32, _mm512_maskz_expand_epi64, _mm512_storeu_si512,
};

use super::vectors::by_vectors;
use crate::simd::native::PlainOldData;

/// Whether values of this width can be expanded.
pub(super) const fn fits<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// Moves the last values of `region[..dense]` to the set bits of the words of its slots: see
/// [`by_vectors`].
///
/// # Safety
/// The machine must have AVX-512 F, BW, and VBMI2; the width of `T` must be one that [`fits`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mask has as many bits as a vector has lanes"
)]
pub(super) unsafe fn spread<T: PlainOldData>(
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize, usize) -> Option<u64>,
) -> usize {
    macro_rules! expand {
        ($lanes:literal, $mask:ident => $expand:ident($bits:expr)) => {
            by_vectors::<T, $lanes>(region, dense, word, |from, to, $mask| {
                let values = _mm512_loadu_si512(from.cast());
                _mm512_storeu_si512(to.cast(), $expand($bits, values));
            })
        };
    }
    // SAFETY: each reads and writes as many values as it has lanes, which fill its vector.
    unsafe {
        match size_of::<T>() {
            1 => expand!(64, mask => _mm512_maskz_expand_epi8(mask as u64)),
            2 => expand!(32, mask => _mm512_maskz_expand_epi16(mask as u32)),
            4 => expand!(16, mask => _mm512_maskz_expand_epi32(mask as u16)),
            8 => expand!(8, mask => _mm512_maskz_expand_epi64(mask as u8)),
            // 16: each slot is two lanes of 8 bytes.
            _ => expand!(4, mask => _mm512_maskz_expand_epi64(TWICE[mask])),
        }
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
