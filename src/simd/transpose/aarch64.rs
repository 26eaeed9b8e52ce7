//! NEON: stores and loads of 2, 3 or 4 streams interleave them (`ST4`, `LD4`); of 8 streams those
//! of even and odd bytes become pairs first (`ZIP`, `UZP`).

use std::arch::aarch64::{
    uint8x16_t, uint8x16x2_t, uint8x16x4_t, uint16x8_t, uint16x8x4_t, vld1q_u8, vld2q_u8, vld4q_u8,
    vld4q_u16, vreinterpretq_u8_u16, vreinterpretq_u16_u8, vst1q_u8, vst4q_u8, vst4q_u16,
    vuzp1q_u8, vuzp2q_u8, vzip1q_u8, vzip2q_u8,
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
        let [a, b, c, d] = streams.map(|stream| unsafe { vld1q_u8(stream.add(at)) });
        // SAFETY: `4 * at + 64 <= 4 * n`, the room of `out`; every aarch64 has NEON.
        unsafe { vst4q_u8(out.add(4 * at), uint8x16x4_t(a, b, c, d)) };
    }
}

/// Writes `n` values of 8 bytes.
///
/// # Safety
/// Each stream must have `n` bytes, `out` room for `8 * n`; `n` must be a multiple of 16.
pub(super) unsafe fn interleave_8(streams: [*const u8; 8], n: usize, out: *mut u8) {
    for at in (0..n).step_by(STEP) {
        // SAFETY: `at + 16 <= n`, the length of the streams.
        let [a, b, c, d, e, f, g, h] = streams.map(|stream| unsafe { vld1q_u8(stream.add(at)) });
        // SAFETY: every aarch64 has NEON.
        let pairs = [(a, b), (c, d), (e, f), (g, h)].map(|(a, b)| unsafe { zip(a, b) });
        for half in 0..2 {
            let [a, b, c, d] = pairs.map(|pair| pair[half]);
            // SAFETY: `8 * at + 64 * half + 64 <= 8 * n`, the room of `out`.
            unsafe { vst4q_u16(out.add(8 * at + 64 * half).cast(), uint16x8x4_t(a, b, c, d)) };
        }
    }
}

/// Pairs of bytes of two streams: 8, and 8 more.
#[inline]
#[target_feature(enable = "neon")]
fn zip(a: uint8x16_t, b: uint8x16_t) -> [uint16x8_t; 2] {
    [vreinterpretq_u16_u8(vzip1q_u8(a, b)), vreinterpretq_u16_u8(vzip2q_u8(a, b))]
}

/// Writes the streams of `whole` of `n` values of 2, 4 or 8 bytes.
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
        // SAFETY: 16 values from `at` on are `16 * K` bytes, and they are within the `n` values;
        // every aarch64 has NEON.
        let streams = unsafe { sixteen::<K>(values.add(at * K)) };
        for (k, stream) in streams.into_iter().take(K).enumerate() {
            // SAFETY: `k < K` and `at + 16 <= n`, so that this is within the `n * K` bytes of
            // `out`.
            unsafe { vst1q_u8(out.add(k * n + at), stream) };
        }
    }
}

/// The streams of 16 values of 2, 4 or 8 bytes; the first of 8 are all there are of fewer.
///
/// # Safety
/// The machine must have NEON; there must be `16 * K` bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn sixteen<const K: usize>(values: *const u8) -> [uint8x16_t; 8] {
    const { assert!(matches!(K, 2 | 4 | 8), "values of 2, 4 or 8 bytes") };
    match K {
        2 => {
            // SAFETY: the caller guarantees 32 bytes.
            let uint8x16x2_t(a, b) = unsafe { vld2q_u8(values) };
            [a, b, a, b, a, b, a, b]
        }
        4 => {
            // SAFETY: the caller guarantees 64 bytes.
            let uint8x16x4_t(a, b, c, d) = unsafe { vld4q_u8(values) };
            [a, b, c, d, a, b, c, d]
        }
        _ => {
            // SAFETY: the caller guarantees 128 bytes.
            let (low, high) =
                unsafe { (vld4q_u16(values.cast()), vld4q_u16(values.add(64).cast())) };
            let [ab, cd, ef, gh] =
                [(low.0, high.0), (low.1, high.1), (low.2, high.2), (low.3, high.3)].map(
                    |(low, high)| {
                        let (low, high) = (vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
                        (vuzp1q_u8(low, high), vuzp2q_u8(low, high))
                    },
                );
            [ab.0, ab.1, cd.0, cd.1, ef.0, ef.1, gh.0, gh.1]
        }
    }
}
