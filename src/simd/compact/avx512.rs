//! Compacts with the compress instructions of AVX-512: 4 to 64 values at a time.

use std::arch::x86_64::{
    _mm512_loadu_si512, _mm512_maskz_compress_epi8, _mm512_maskz_compress_epi16,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_storeu_si512,
};

use crate::simd::bitmap::WORD;
use crate::simd::native::PlainOldData;

/// Whether values of this width can be compressed.
pub(super) const fn fits<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// Moves those of the 64 values from `at` on whose bits are set to `to`, one after the other. What
/// stood after them, before `at + 64`, is lost.
///
/// # Safety
/// The machine must have AVX-512 F, BW and VBMI2; `to` must be at most `at`, `at + 64` at most the
/// length, and the width of `T` one that [`fits`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mask has as many bits as a vector has lanes"
)]
pub(super) unsafe fn compress<T: PlainOldData>(values: &mut [T], at: usize, to: usize, word: u64) {
    assert!(to <= at && at + WORD <= values.len(), "a whole word, moved to the front");
    let lanes = WORD / size_of::<T>();
    let mut to = to;
    for from in (0..WORD).step_by(lanes) {
        let mask = word >> from;
        // SAFETY: `at + 64` is at most the length, and `from + lanes` at most 64.
        let vector = unsafe { _mm512_loadu_si512(values.as_ptr().add(at + from).cast()) };
        let (kept, n) = match size_of::<T>() {
            1 => (_mm512_maskz_compress_epi8(mask, vector), mask.count_ones()),
            2 => (_mm512_maskz_compress_epi16(mask as u32, vector), (mask as u32).count_ones()),
            4 => (_mm512_maskz_compress_epi32(mask as u16, vector), (mask as u16).count_ones()),
            8 => (_mm512_maskz_compress_epi64(mask as u8, vector), (mask as u8).count_ones()),
            // 16: each value is two lanes of 8 bytes.
            _ => {
                let mask = mask as u8 & 0b1111;
                let spread = mask & 1 | (mask & 2) << 1 | (mask & 4) << 2 | (mask & 8) << 3;
                (_mm512_maskz_compress_epi64(spread * 3, vector), mask.count_ones())
            }
        };
        // SAFETY: `to` is at most `at + from`, as no more values were kept than looked at: a vector
        // there ends where the one just read did.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().add(to).cast(), kept) };
        to += n as usize;
    }
}
