//! Interleaving with SSE2, which every x86-64 has: two streams become one of pairs, and pairs of
//! pairs, until whole values lie side by side.

use std::arch::x86_64::{
    __m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16,
    _mm_unpackhi_epi32, _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
};

/// Number of values of a vector step, from 16 bytes of each stream.
pub(super) const STEP: usize = 16;

/// Writes `n` values of 4 bytes.
///
/// # Safety
/// Each stream must have `n` bytes, `out` room for `4 * n`; `n` must be a multiple of 16.
pub(super) unsafe fn interleave_4(streams: [*const u8; 4], n: usize, out: *mut u8) {
    for at in (0..n).step_by(STEP) {
        // SAFETY: `at + 16 <= n`, the length of the streams.
        let [a, b, c, d] = streams.map(|stream| unsafe { _mm_loadu_si128(stream.add(at).cast()) });
        let values = four([a, b, c, d]);
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: `4 * at + 16 * i + 16 <= 4 * n`, the room of `out`.
            unsafe { _mm_storeu_si128(out.add(4 * at + 16 * i).cast(), value) };
        }
    }
}

/// Writes `n` values of 8 bytes.
///
/// # Safety
/// Each stream must have `n` bytes, `out` room for `8 * n`; `n` must be a multiple of 16.
pub(super) unsafe fn interleave_8(streams: [*const u8; 8], n: usize, out: *mut u8) {
    for at in (0..n).step_by(STEP) {
        // SAFETY: `at + 16 <= n`, the length of the streams.
        let [a, b, c, d, e, f, g, h] =
            streams.map(|stream| unsafe { _mm_loadu_si128(stream.add(at).cast()) });
        let (low, high) = (four([a, b, c, d]), four([e, f, g, h]));
        for (i, (low, high)) in low.into_iter().zip(high).enumerate() {
            // SAFETY: SSE2 is part of x86-64.
            let halves = unsafe { [_mm_unpacklo_epi32(low, high), _mm_unpackhi_epi32(low, high)] };
            for (j, value) in halves.into_iter().enumerate() {
                // SAFETY: `8 * at + 32 * i + 16 * j + 16 <= 8 * n`, the room of `out`.
                unsafe { _mm_storeu_si128(out.add(8 * at + 32 * i + 16 * j).cast(), value) };
            }
        }
    }
}

/// Writes the streams of `whole` of `n` values of `K` bytes, `K` a power of 2.
///
/// The address of a byte among 16 values is 4 bits of the value, then those of its place in the
/// value. Interleaving the first half of the vectors with the second one moves the highest bit of
/// the address after the lowest; four times, and the value comes last.
///
/// # Safety
/// `values` must have `n * K` bytes and `out` room for as many; `whole` must be a multiple of 16
/// and at most `n`.
pub(super) unsafe fn split<const K: usize>(
    values: *const u8,
    n: usize,
    whole: usize,
    out: *mut u8,
) {
    for at in (0..whole).step_by(STEP) {
        // SAFETY: 16 values from `at` on are `K` vectors, and they are within the `n` values.
        let mut vectors: [__m128i; K] =
            std::array::from_fn(|k| unsafe { _mm_loadu_si128(values.add(at * K + 16 * k).cast()) });
        for _ in 0..STEP.ilog2() {
            vectors = std::array::from_fn(|k| {
                let (a, b) = (vectors[k / 2], vectors[k / 2 + K / 2]);
                // SAFETY: SSE2 is part of x86-64.
                unsafe {
                    if k % 2 == 0 { _mm_unpacklo_epi8(a, b) } else { _mm_unpackhi_epi8(a, b) }
                }
            });
        }
        for (k, stream) in vectors.into_iter().enumerate() {
            // SAFETY: `k < K` and `at + 16 <= n`, so that this is within the `n * K` bytes of
            // `out`.
            unsafe { _mm_storeu_si128(out.add(k * n + at).cast(), stream) };
        }
    }
}

/// 16 values of 4 bytes, from 16 bytes of each stream.
fn four([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let (ab_low, ab_high) = (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b));
        let (cd_low, cd_high) = (_mm_unpacklo_epi8(c, d), _mm_unpackhi_epi8(c, d));
        [
            _mm_unpacklo_epi16(ab_low, cd_low),
            _mm_unpackhi_epi16(ab_low, cd_low),
            _mm_unpacklo_epi16(ab_high, cd_high),
            _mm_unpackhi_epi16(ab_high, cd_high),
        ]
    }
}
