//! Expands with NEON: look-ups (`TBL`) in a table that has a row for each mask of 2 to 8 slots; an
//! index out of range gives 0, or (`TBX`) keeps what was there.

use std::arch::aarch64::{
    vdupq_n_u32, vdupq_n_u64, vld1_u8, vld1q_u8, vqtbl1q_u8, vqtbx1q_u8, vreinterpretq_u8_u32,
    vreinterpretq_u8_u64, vst1_u8, vst1q_u8, vtbl1_u8,
};

use super::vectors::{by_vectors, ends_by_vectors};
use crate::simd::mask_tables::{ENDS_4, ENDS_8, SLOTS, SLOTS_2, SLOTS_4, SLOTS_8};
use crate::simd::native::PlainOldData;

/// Whether values of this width can be expanded.
pub(super) const fn fits<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8)
}

/// Moves the last values of `region[..dense]` to the set bits of the words of its slots: see
/// [`by_vectors`].
///
/// # Safety
/// The machine must have NEON; the width of `T` must be one that [`fits`].
#[target_feature(enable = "neon")]
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
                let index = vld1_u8(SLOTS[mask].as_ptr());
                vst1_u8(to.cast(), vtbl1_u8(vld1_u8(from.cast()), index));
            }),
            2 => by_vectors::<T, 8>(region, dense, word, |from, to, mask| {
                bytes(from.cast(), to.cast(), &SLOTS_2[mask]);
            }),
            4 => by_vectors::<T, 4>(region, dense, word, |from, to, mask| {
                bytes(from.cast(), to.cast(), &SLOTS_4[mask]);
            }),
            _ => by_vectors::<T, 2>(region, dense, word, |from, to, mask| {
                bytes(from.cast(), to.cast(), &SLOTS_8[mask]);
            }),
        }
    }
}

/// Moves 16 bytes to the places of a row; the others become 0.
///
/// # Safety
/// The machine must have NEON; there must be 16 bytes at `from` and at `to`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn bytes(from: *const u8, to: *mut u8, row: &[u8; 16]) {
    // SAFETY: a row has 16 bytes, and the caller guarantees the others.
    unsafe { vst1q_u8(to, vqtbl1q_u8(vld1q_u8(from), vld1q_u8(row.as_ptr()))) };
}

/// Whether ends of this width can be expanded.
pub(super) const fn fits_ends<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// Like [`spread`] for ends: see [`ends_by_vectors`].
///
/// # Safety
/// The machine must have NEON; the width of `T` must be one that [`fits_ends`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn spread_ends<T: PlainOldData>(
    region: &mut [T],
    dense: usize,
    word: impl Fn(usize) -> u64,
) {
    // SAFETY: each reads the end before and as many as it has lanes, which fill its vector, and
    // writes as many; the masks have as many bits, and the tables a row for each.
    unsafe {
        if size_of::<T>() == 4 {
            ends_by_vectors::<T, 4>(region, dense, word, |from, to, mask| {
                let before = vdupq_n_u32(from.cast::<u32>().read_unaligned());
                let index = vld1q_u8(ENDS_4[mask].as_ptr());
                let values = vld1q_u8(from.add(1).cast());
                vst1q_u8(to.cast(), vqtbx1q_u8(vreinterpretq_u8_u32(before), values, index));
            });
        } else {
            ends_by_vectors::<T, 2>(region, dense, word, |from, to, mask| {
                let before = vdupq_n_u64(from.cast::<u64>().read_unaligned());
                let index = vld1q_u8(ENDS_8[mask].as_ptr());
                let values = vld1q_u8(from.add(1).cast());
                vst1q_u8(to.cast(), vqtbx1q_u8(vreinterpretq_u8_u64(before), values, index));
            });
        }
    }
}
