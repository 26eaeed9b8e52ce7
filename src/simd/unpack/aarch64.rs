//! NEON: a table look-up (`TBL`) brings the bytes of each value into its lane, a shift by lane and
//! a mask extract the value. For widths that divide a word or are narrow, the compiler vectorises
//! the scalar definition into fewer instructions, so that is used.

use std::arch::aarch64::{
    uint32x4_t, uint64x2_t, vandq_u32, vandq_u64, vdupq_n_u32, vdupq_n_u64, vld1q_u8, vld1q_u32,
    vld1q_u64, vnegq_s32, vnegq_s64, vqtbl1q_u8, vreinterpretq_s32_u32, vreinterpretq_s64_u64,
    vreinterpretq_u32_u8, vreinterpretq_u64_u8, vshlq_u32, vshlq_u64, vst1q_u32, vst1q_u64,
};

use super::lanes::{
    PLANS_32, PLANS_64, Plan32, Plan64, WIDEST_32, WIDEST_64, part_start, readable_blocks,
};
use super::{BLOCK, scalar};

/// Unpacks whole blocks of 1 to 32 bits.
pub(super) fn blocks_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) {
    let done = match width {
        8 | 16 => 0,
        // SAFETY: every aarch64 has NEON.
        5..=WIDEST_32 => unsafe { narrow_u32(bytes, width, out) },
        _ => 0,
    };
    scalar::rest_u32(bytes, width, done, out);
}

/// Unpacks whole blocks of 1 to 64 bits.
pub(super) fn blocks_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) {
    let done = match width {
        16 | 32 => 0,
        // SAFETY: every aarch64 has NEON.
        9..=WIDEST_64 => unsafe { lanes_u64(bytes, width, out) },
        _ => 0,
    };
    scalar::rest_u64(bytes, width, done, out);
}

/// Unpacks blocks of 1 to 25 bits, as long as there are bytes for vectors; returns how many.
///
/// # Safety
/// The machine must have NEON.
#[target_feature(enable = "neon")]
unsafe fn narrow_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) -> usize {
    let w = width as usize;
    let Plan32 { bytes: index, shifts } = &PLANS_32[w];
    let blocks = readable_blocks(bytes.len(), w, 2, out.len());
    // SAFETY: each row is 16 bytes long.
    let index = index.each_ref().map(|row| unsafe { vld1q_u8(row.as_ptr()) });
    // SAFETY: as above.
    let shifts = shifts.each_ref().map(|row| unsafe { vld1q_u32(row.as_ptr()) });
    // To the right is to the left by a negative number.
    let shifts = shifts.map(|shift| vnegq_s32(vreinterpretq_s32_u32(shift)));
    let keep = vdupq_n_u32(u32::MAX >> (32 - width));
    let high = part_start(w, 1, 2);
    for (b, block) in out[..blocks].iter_mut().enumerate() {
        for group in 0..4 {
            let from = bytes.as_ptr().wrapping_add((4 * b + group) * w);
            for (half, start) in [0, high].into_iter().enumerate() {
                // SAFETY: of `readable_blocks` every vector lies within the bytes.
                let packed = unsafe { vld1q_u8(from.wrapping_add(start)) };
                let lanes: uint32x4_t = vreinterpretq_u32_u8(vqtbl1q_u8(packed, index[half]));
                let values = vandq_u32(vshlq_u32(lanes, shifts[half]), keep);
                let to = block.as_mut_ptr().wrapping_add(8 * group + 4 * half);
                // SAFETY: a block has capacity for eight vectors of 4 values.
                unsafe { vst1q_u32(to, values) };
            }
        }
    }
    blocks
}

/// The plan of a width for lanes of 8 bytes, in registers.
struct NeonLanes64 {
    index: [std::arch::aarch64::uint8x16_t; 4],
    shifts: [std::arch::aarch64::int64x2_t; 4],
    keep: uint64x2_t,
    /// Where the parts of a group begin.
    starts: [usize; 4],
}

impl NeonLanes64 {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(width: u32) -> Self {
        let Plan64 { bytes, shifts } = &PLANS_64[width as usize];
        // SAFETY: each row is 16 bytes long.
        let index = bytes.each_ref().map(|row| unsafe { vld1q_u8(row.as_ptr()) });
        // SAFETY: as above.
        let shifts = shifts.each_ref().map(|row| unsafe { vld1q_u64(row.as_ptr()) });
        Self {
            index,
            shifts: shifts.map(|shift| vnegq_s64(vreinterpretq_s64_u64(shift))),
            keep: vdupq_n_u64(u64::MAX >> (64 - width)),
            starts: std::array::from_fn(|part| part_start(width as usize, part, 4)),
        }
    }

    /// Two values of the group at `from`.
    ///
    /// # Safety
    /// There must be 16 bytes from the start of the part.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn part(&self, from: *const u8, part: usize) -> uint64x2_t {
        // SAFETY: as the caller's.
        let packed = unsafe { vld1q_u8(from.wrapping_add(self.starts[part])) };
        let lanes = vreinterpretq_u64_u8(vqtbl1q_u8(packed, self.index[part]));
        vandq_u64(vshlq_u64(lanes, self.shifts[part]), self.keep)
    }
}

/// Like [`narrow_u32`] for values of 8 bytes, of 1 to 57 bits.
///
/// # Safety
/// The machine must have NEON.
#[target_feature(enable = "neon")]
unsafe fn lanes_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) -> usize {
    let w = width as usize;
    let plan = NeonLanes64::new(width);
    let blocks = readable_blocks(bytes.len(), w, 4, out.len());
    for (b, block) in out[..blocks].iter_mut().enumerate() {
        for group in 0..4 {
            let from = bytes.as_ptr().wrapping_add((4 * b + group) * w);
            for part in 0..4 {
                // SAFETY: of `readable_blocks` every vector lies within the bytes.
                let values = unsafe { plan.part(from, part) };
                let to = block.as_mut_ptr().wrapping_add(8 * group + 2 * part);
                // SAFETY: a block has capacity for sixteen vectors of 2 values.
                unsafe { vst1q_u64(to, values) };
            }
        }
    }
    blocks
}
