//! NEON: a vector is summed in itself by shifting lanes (`EXT`).

use std::arch::aarch64::{
    vaddq_u32, vdupq_laneq_u32, vdupq_n_u32, vextq_u32, vld1q_u32, vst1q_u32,
};

/// Sums whole vectors; returns the last sum.
///
/// # Safety
/// The machine must have NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn sum_i32(deltas: &[[u32; 4]], step: i32, last: i32, out: &mut Vec<i32>) -> i32 {
    out.reserve(deltas.len() * 4);
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr().cast::<[u32; 4]>();
    let (step, zero) = (vdupq_n_u32(step.cast_unsigned()), vdupq_n_u32(0));
    let mut carry = vdupq_n_u32(last.cast_unsigned());
    for (i, vector) in deltas.iter().enumerate() {
        // SAFETY: a vector has 4 words.
        let mut sums = vaddq_u32(unsafe { vld1q_u32(vector.as_ptr()) }, step);
        sums = vaddq_u32(sums, vextq_u32::<3>(zero, sums));
        sums = vaddq_u32(sums, vextq_u32::<2>(zero, sums));
        // SAFETY: `reserve` reserved memory for 4 words of each vector.
        unsafe { vst1q_u32(target.add(i).cast(), vaddq_u32(sums, carry)) };
        carry = vaddq_u32(carry, vdupq_laneq_u32::<3>(sums));
    }
    // SAFETY: the loop has written 4 words of each vector after the old length.
    unsafe { out.set_len(start + deltas.len() * 4) };
    if deltas.is_empty() { last } else { out.last().copied().unwrap_or(last) }
}
