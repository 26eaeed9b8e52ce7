//! AVX-512: packed differences are summed while they are unpacked; a vector is summed in itself by
//! shifting lanes.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_epi64, _mm512_alignr_epi32, _mm512_alignr_epi64,
    _mm512_permutexvar_epi32, _mm512_permutexvar_epi64, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_storeu_si512,
};

use super::PackedDeltas;
use crate::simd::unpack::avx512::Cut;

/// The running sums of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums_i64(deltas: __m512i, step: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let mut sums = _mm512_add_epi64(deltas, step);
    sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, zero));
    sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
    sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero));
    sums
}

/// Sums packed differences; returns the last sum.
///
/// # Safety
/// The machine must have AVX-512 F, BW and VBMI, and BMI2.
///
/// # Panics
/// If the width is not one that a lane holds.
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn sum_packed_i64(
    packed: PackedDeltas<'_>,
    step: i64,
    last: i64,
    out: &mut Vec<i64>,
) -> i64 {
    let PackedDeltas { bytes, width, n } = packed;
    if n == 0 {
        return last;
    }
    out.reserve(n.checked_next_multiple_of(8).expect("more than all memory"));
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr();
    let cut = Cut::into_64(width);
    let (step, end) = (_mm512_set1_epi64(step), _mm512_set1_epi64(7));
    let mut carry = _mm512_set1_epi64(last);
    let mut rest = bytes;
    for at in (0..n).step_by(8) {
        let sums = sums_i64(cut.eight(rest), step);
        // Bytes that are not there are 0.
        rest = rest.get(cut.step..).unwrap_or_default();
        // SAFETY: `reserve` reserved memory for `n` words, rounded up to a whole vector.
        unsafe { _mm512_storeu_si512(target.add(at).cast(), _mm512_add_epi64(sums, carry)) };
        carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(end, sums));
    }
    // SAFETY: the loop has written `n` words and more after the old length.
    unsafe { out.set_len(start + n) };
    out.last().copied().unwrap_or(last)
}

/// The running sums of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums_i32(deltas: __m512i, step: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let mut sums = _mm512_add_epi32(deltas, step);
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<15>(sums, zero));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
    sums
}

/// Sums packed differences; returns the last sum.
///
/// # Safety
/// The machine must have AVX-512 F, BW and VBMI, and BMI2.
///
/// # Panics
/// If the width is not one that a lane holds.
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn sum_packed_i32(
    packed: PackedDeltas<'_>,
    step: i32,
    last: i32,
    out: &mut Vec<i32>,
) -> i32 {
    let PackedDeltas { bytes, width, n } = packed;
    if n == 0 {
        return last;
    }
    out.reserve(n.checked_next_multiple_of(16).expect("more than all memory"));
    let start = out.len();
    let target = out.spare_capacity_mut().as_mut_ptr();
    let cut = Cut::into_32(width);
    let (step, end) = (_mm512_set1_epi32(step), _mm512_set1_epi32(15));
    let mut carry = _mm512_set1_epi32(last);
    let mut rest = bytes;
    for at in (0..n).step_by(16) {
        let sums = sums_i32(cut.sixteen(rest), step);
        // Bytes that are not there are 0.
        rest = rest.get(cut.step..).unwrap_or_default();
        // SAFETY: `reserve` reserved memory for `n` words, rounded up to a whole vector.
        unsafe { _mm512_storeu_si512(target.add(at).cast(), _mm512_add_epi32(sums, carry)) };
        carry = _mm512_add_epi32(carry, _mm512_permutexvar_epi32(end, sums));
    }
    // SAFETY: the loop has written `n` words and more after the old length.
    unsafe { out.set_len(start + n) };
    out.last().copied().unwrap_or(last)
}
