//! Compiles the scalar definition for AVX2 where that is faster: from the widths on at which two
//! values fill a lane.

use super::BLOCK;
use super::scalar::{self, for_width, kernel_u32, kernel_u64};

/// Packs whole blocks of 1 to 32 bits.
///
/// # Safety
/// The machine must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn blocks_u32(blocks: &[[u32; BLOCK]], width: u32, out: &mut [u8]) {
    if !matches!(width, 16 | 24..) {
        return scalar::blocks_u32(blocks, width, out);
    }
    for_width!(kernel_u32, width, blocks, out, [16 24 25 26 27 28 29 30 31 32]);
}

/// Packs whole blocks of 1 to 64 bits.
///
/// # Safety
/// The machine must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn blocks_u64(blocks: &[[u64; BLOCK]], width: u32, out: &mut [u8]) {
    if width < 14 {
        return scalar::blocks_u64(blocks, width, out);
    }
    for_width!(kernel_u64, width, blocks, out, [
        14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43
        44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    ]);
}
