//! AVX2: a vector is summed in itself by shifting lanes within its halves, then the low half is
//! added to the high one.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_loadu_si256, _mm256_permute2x128_si256,
    _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_shuffle_epi32, _mm256_slli_si256, _mm256_storeu_si256, _mm256_unpackhi_epi64,
};

/// The running sums of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn sums_i32(deltas: __m256i, step: __m256i) -> __m256i {
    let mut sums = _mm256_add_epi32(deltas, step);
    sums = _mm256_add_epi32(sums, _mm256_slli_si256::<4>(sums));
    sums = _mm256_add_epi32(sums, _mm256_slli_si256::<8>(sums));
    // The low half in place of the high one, and 0 in place of the low one.
    let low = _mm256_permute2x128_si256::<0x08>(sums, sums);
    _mm256_add_epi32(sums, _mm256_shuffle_epi32::<0xFF>(low))
}

/// Sums whole vectors; returns the last sum.
///
/// # Safety
/// The machine must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sum_i32(deltas: &[[u32; 8]], step: i32, last: i32, out: &mut Vec<i32>) -> i32 {
    out.reserve(deltas.len() * 8);
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr().cast::<[i32; 8]>();
    let (step, end) = (_mm256_set1_epi32(step), _mm256_set1_epi32(7));
    let mut carry = _mm256_set1_epi32(last);
    for (i, vector) in deltas.iter().enumerate() {
        // SAFETY: a vector of 8 words is 32 bytes.
        let sums = sums_i32(unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) }, step);
        // SAFETY: `reserve` reserved memory for 8 words of each vector.
        unsafe { _mm256_storeu_si256(target.add(i).cast(), _mm256_add_epi32(sums, carry)) };
        carry = _mm256_add_epi32(carry, _mm256_permutevar8x32_epi32(sums, end));
    }
    // SAFETY: the loop has written 8 words of each vector after the old length.
    unsafe { out.set_len(start + deltas.len() * 8) };
    if deltas.is_empty() { last } else { out.last().copied().unwrap_or(last) }
}

/// The running sums of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn sums_i64(deltas: __m256i, step: __m256i) -> __m256i {
    let mut sums = _mm256_add_epi64(deltas, step);
    sums = _mm256_add_epi64(sums, _mm256_slli_si256::<8>(sums));
    // As above.
    let low = _mm256_permute2x128_si256::<0x08>(sums, sums);
    _mm256_add_epi64(sums, _mm256_unpackhi_epi64(low, low))
}

/// Sums whole vectors; returns the last sum.
///
/// # Safety
/// The machine must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sum_i64(deltas: &[[u64; 4]], step: i64, last: i64, out: &mut Vec<i64>) -> i64 {
    out.reserve(deltas.len() * 4);
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr().cast::<[i64; 4]>();
    let step = _mm256_set1_epi64x(step);
    let mut carry = _mm256_set1_epi64x(last);
    for (i, vector) in deltas.iter().enumerate() {
        // SAFETY: a vector of 4 words is 32 bytes.
        let sums = sums_i64(unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) }, step);
        // SAFETY: `reserve` reserved memory for 4 words of each vector.
        unsafe { _mm256_storeu_si256(target.add(i).cast(), _mm256_add_epi64(sums, carry)) };
        carry = _mm256_add_epi64(carry, _mm256_permute4x64_epi64::<0xFF>(sums));
    }
    // SAFETY: the loop has written 4 words of each vector after the old length.
    unsafe { out.set_len(start + deltas.len() * 4) };
    if deltas.is_empty() { last } else { out.last().copied().unwrap_or(last) }
}
