//! Running sums: the second half of DELTA decoding.
//!
//! The scalar definition adds the step outside the chain from value to value, which is one addition for each. With AVX-512 a vector is summed in
//! itself first, by shifting lanes, so that the chain is one addition a vector.

use super::Isa;

/// Appends the running sums of `deltas` that begin behind `last`, each with `step` added; gives the last sum. All of it wraps.
pub fn prefix_sum_i64(deltas: &[u64], step: i64, last: i64, out: &mut Vec<i64>) -> i64 {
    prefix_sum_i64_with(Isa::best(), deltas, step, last, out)
}

/// As [`prefix_sum_i64`], with 32 bits.
pub fn prefix_sum_i32(deltas: &[u32], step: i32, last: i32, out: &mut Vec<i32>) -> i32 {
    prefix_sum_i32_with(Isa::best(), deltas, step, last, out)
}

fn prefix_sum_i64_with(
    isa: Isa,
    deltas: &[u64],
    step: i64,
    mut last: i64,
    out: &mut Vec<i64>,
) -> i64 {
    let mut rest = deltas;
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        let (vectors, tail) = deltas.as_chunks::<8>();
        // SAFETY: `Isa::Avx512` exists only where the features were found.
        last = unsafe { x86::sums_i64(vectors, step, last, out) };
        rest = tail;
    }
    let _ = isa;
    out.extend(rest.iter().map(|delta| {
        last = last.wrapping_add(delta.cast_signed().wrapping_add(step));
        last
    }));
    last
}

fn prefix_sum_i32_with(
    isa: Isa,
    deltas: &[u32],
    step: i32,
    mut last: i32,
    out: &mut Vec<i32>,
) -> i32 {
    let mut rest = deltas;
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        let (vectors, tail) = deltas.as_chunks::<16>();
        // SAFETY: `Isa::Avx512` exists only where the features were found.
        last = unsafe { x86::sums_i32(vectors, step, last, out) };
        rest = tail;
    }
    let _ = isa;
    out.extend(rest.iter().map(|delta| {
        last = last.wrapping_add(delta.cast_signed().wrapping_add(step));
        last
    }));
    last
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_add_epi64, _mm512_alignr_epi32, _mm512_alignr_epi64,
        _mm512_loadu_si512, _mm512_permutexvar_epi32, _mm512_permutexvar_epi64, _mm512_set1_epi32,
        _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    };

    /// Sums whole vectors; gives the last sum.
    ///
    /// # Safety
    /// The machine must have AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn sums_i64(
        deltas: &[[u64; 8]],
        step: i64,
        last: i64,
        out: &mut Vec<i64>,
    ) -> i64 {
        out.reserve(deltas.len() * 8);
        let start = out.len();
        let mut target = out.spare_capacity_mut().as_mut_ptr();
        let (zero, step, end) =
            (_mm512_setzero_si512(), _mm512_set1_epi64(step), _mm512_set1_epi64(7));
        let mut carry = _mm512_set1_epi64(last);
        for vector in deltas {
            // SAFETY: a vector of 8 words is 64 bytes.
            let mut sums =
                _mm512_add_epi64(unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) }, step);
            sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, zero));
            sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
            sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero));
            sums = _mm512_add_epi64(sums, carry);
            carry = _mm512_permutexvar_epi64(end, sums);
            // SAFETY: `reserve` made room for 8 words of each vector.
            unsafe { _mm512_storeu_si512(target.cast(), sums) };
            // SAFETY: as above; at most one behind the end.
            target = unsafe { target.add(8) };
        }
        // SAFETY: the loop has written 8 words of each vector behind the old length.
        unsafe { out.set_len(start + deltas.len() * 8) };
        if deltas.is_empty() { last } else { out.last().copied().unwrap_or(last) }
    }

    /// Sums whole vectors; gives the last sum.
    ///
    /// # Safety
    /// The machine must have AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn sums_i32(
        deltas: &[[u32; 16]],
        step: i32,
        last: i32,
        out: &mut Vec<i32>,
    ) -> i32 {
        out.reserve(deltas.len() * 16);
        let start = out.len();
        let mut target = out.spare_capacity_mut().as_mut_ptr();
        let (zero, step, end) =
            (_mm512_setzero_si512(), _mm512_set1_epi32(step), _mm512_set1_epi32(15));
        let mut carry = _mm512_set1_epi32(last);
        for vector in deltas {
            // SAFETY: a vector of 16 words is 64 bytes.
            let mut sums =
                _mm512_add_epi32(unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) }, step);
            sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<15>(sums, zero));
            sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
            sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
            sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
            sums = _mm512_add_epi32(sums, carry);
            carry = _mm512_permutexvar_epi32(end, sums);
            // SAFETY: `reserve` made room for 16 words of each vector.
            unsafe { _mm512_storeu_si512(target.cast(), sums) };
            // SAFETY: as above; at most one behind the end.
            target = unsafe { target.add(16) };
        }
        // SAFETY: the loop has written 16 words of each vector behind the old length.
        unsafe { out.set_len(start + deltas.len() * 16) };
        if deltas.is_empty() { last } else { out.last().copied().unwrap_or(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_the_naive_twin_and_wraps() {
        let seed = 14;
        let mut rng = fastrand::Rng::with_seed(seed);
        for (n, isa) in (0..70).flat_map(|n| Isa::available().into_iter().map(move |isa| (n, isa)))
        {
            let deltas: Vec<u64> = (0..n).map(|_| rng.u64(..)).collect();
            let (step, first) = (rng.i64(..), rng.i64(..));
            let mut out = vec![7];
            let last = prefix_sum_i64_with(isa, &deltas, step, first, &mut out);
            let mut sum = first;
            let expected: Vec<i64> = deltas
                .iter()
                .map(|d| {
                    sum = sum.wrapping_add(*d as i64).wrapping_add(step);
                    sum
                })
                .collect();
            assert_eq!((out[1..].to_vec(), last), (expected, sum), "seed {seed}");

            let deltas: Vec<u32> = (0..n).map(|_| rng.u32(..)).collect();
            let (step, first) = (rng.i32(..), rng.i32(..));
            let mut out = vec![7];
            let last = prefix_sum_i32_with(isa, &deltas, step, first, &mut out);
            let mut sum = first;
            let expected: Vec<i32> = deltas
                .iter()
                .map(|d| {
                    sum = sum.wrapping_add(*d as i32).wrapping_add(step);
                    sum
                })
                .collect();
            assert_eq!((out[1..].to_vec(), last), (expected, sum), "seed {seed}");
        }
    }
}
