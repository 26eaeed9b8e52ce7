//! The scalar definition, compiled for AVX2: the compiler turns the constant shifts into vector
//! ones.

use super::{BLOCK, scalar};

/// Unpacks whole blocks of 1 to 32 bits.
///
/// # Safety
/// The machine must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn blocks_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) {
    scalar::blocks_u32(bytes, width, out);
}

/// Unpacks whole blocks of 1 to 64 bits.
///
/// # Safety
/// The machine must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn blocks_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) {
    scalar::blocks_u64(bytes, width, out);
}
