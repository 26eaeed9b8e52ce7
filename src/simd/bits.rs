//! Moves the bits of a word together, or apart, by a mask, with NEON: first within each byte, in
//! three rounds of masked moves, then between the bytes, halves and words by the number of bits
//! that are set.
//!
//! The bits that move in a round follow from the carry-less sum of the zeros before each bit, which
//! is a product of polynomials (`PMUL`).

use std::arch::aarch64::{
    poly8x8_t, uint8x8_t, vadd_u8, vand_u8, vand_u16, vand_u32, vbic_u8, vbsl_u8, vcnt_u8,
    vcreate_u8, vcreate_u32, vdup_n_p8, vdup_n_u16, vdup_n_u32, veor_u8, vget_lane_u64, vmul_p8,
    vmvn_u8, vneg_s8, vorr_u16, vorr_u32, vpaddl_u8, vreinterpret_p8_u8, vreinterpret_s8_s32,
    vreinterpret_s8_u8, vreinterpret_s16_s8, vreinterpret_s16_u8, vreinterpret_s32_s8,
    vreinterpret_s32_u16, vreinterpret_u8_p8, vreinterpret_u8_u16, vreinterpret_u16_u8,
    vreinterpret_u16_u32, vreinterpret_u32_u16, vreinterpret_u64_u8, vreinterpret_u64_u32,
    vshl_n_u8, vshl_n_u16, vshl_n_u32, vshl_u16, vshl_u32, vshr_n_u8, vshr_n_u16, vshr_n_u32,
};

/// The bits of each byte that move in three rounds: by 1, 2 and 4 places.
#[inline]
#[target_feature(enable = "neon")]
fn moves(mask: uint8x8_t) -> [uint8x8_t; 3] {
    let ones: poly8x8_t = vdup_n_p8(0xFF);
    let prefix_xor = |of: uint8x8_t| vreinterpret_u8_p8(vmul_p8(vreinterpret_p8_u8(of), ones));
    // The zeros before each bit.
    let mut zeros = vshl_n_u8::<1>(vmvn_u8(mask));
    let odd = prefix_xor(zeros);
    let first = vand_u8(odd, mask);
    let mask = vadd_u8(veor_u8(mask, first), vshr_n_u8::<1>(first));
    zeros = vbic_u8(zeros, odd);
    let odd = prefix_xor(zeros);
    let second = vand_u8(odd, mask);
    let mask = vadd_u8(veor_u8(mask, second), vshr_n_u8::<2>(second));
    zeros = vbic_u8(zeros, odd);
    let third = vand_u8(prefix_xor(zeros), mask);
    [first, second, third]
}

/// Puts the bits of `bits` at the set bits of `mask` together, in order.
///
/// # Safety
/// The machine must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub(super) unsafe fn extract(bits: u64, mask: u64) -> u64 {
    let [first, second, third] = moves(vcreate_u8(mask));
    let moved = vcreate_u8(bits & mask);
    let moving = vand_u8(moved, first);
    let moved = vadd_u8(veor_u8(moved, moving), vshr_n_u8::<1>(moving));
    let moving = vand_u8(moved, second);
    let moved = vadd_u8(veor_u8(moved, moving), vshr_n_u8::<2>(moving));
    let moving = vand_u8(moved, third);
    let moved = vadd_u8(veor_u8(moved, moving), vshr_n_u8::<4>(moving));
    // A shift by lane looks at the lowest byte alone: the count of the lower half.
    let ones = vcnt_u8(vcreate_u8(mask));
    let pairs = vreinterpret_u16_u8(moved);
    let low = vand_u16(pairs, vdup_n_u16(0xFF));
    let high = vshl_u16(vshr_n_u16::<8>(pairs), vreinterpret_s16_u8(ones));
    let fours = vreinterpret_u32_u16(vorr_u16(low, high));
    let ones = vreinterpret_s32_u16(vpaddl_u8(ones));
    let low = vand_u32(fours, vdup_n_u32(0xFFFF));
    let high = vshl_u32(vshr_n_u32::<16>(fours), ones);
    let word = vget_lane_u64::<0>(vreinterpret_u64_u32(vorr_u32(low, high)));
    let ones = (mask & LOW).count_ones();
    word & LOW | (word >> 32) << ones
}

/// Puts the low bits of `bits` at the set bits of `mask`, in order.
///
/// # Safety
/// The machine must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub(super) unsafe fn deposit(bits: u64, mask: u64) -> u64 {
    // Each half has its bits at its beginning, and more after them, which the mask drops.
    let ones = (mask & LOW).count_ones();
    let halves = vcreate_u32(bits & LOW | (bits >> ones) << 32);
    let ones = vcnt_u8(vcreate_u8(mask));
    let twos = vreinterpret_s32_u16(vpaddl_u8(ones));
    let high = vshl_u32(halves, vreinterpret_s32_s8(vneg_s8(vreinterpret_s8_s32(twos))));
    let low = vand_u32(halves, vdup_n_u32(0xFFFF));
    let pairs = vreinterpret_u16_u32(vorr_u32(low, vshl_n_u32::<16>(high)));
    let high = vshl_u16(pairs, vreinterpret_s16_s8(vneg_s8(vreinterpret_s8_u8(ones))));
    let low = vand_u16(pairs, vdup_n_u16(0xFF));
    let mut moved = vreinterpret_u8_u16(vorr_u16(low, vshl_n_u16::<8>(high)));
    let [first, second, third] = moves(vcreate_u8(mask));
    moved = vbsl_u8(third, vshl_n_u8::<4>(moved), moved);
    moved = vbsl_u8(second, vshl_n_u8::<2>(moved), moved);
    moved = vbsl_u8(first, vshl_n_u8::<1>(moved), moved);
    let word = vreinterpret_u64_u8(moved);
    vget_lane_u64::<0>(word) & mask
}

/// The low half of a word.
const LOW: u64 = 0xFFFF_FFFF;
