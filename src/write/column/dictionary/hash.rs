//! Computes the hash of dictionary builders.

/// Odd numbers without a pattern.
pub(super) const MIX: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0x8CB9_2BA7_2F3D_8DD7, 0xABC9_8388_FB8F_AC03];

/// Both halves of a product: every bit of the factors counts.
#[expect(clippy::cast_possible_truncation, reason = "both halves of the product")]
#[inline(always)]
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
