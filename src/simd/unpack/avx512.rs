//! AVX-512 VBMI: a byte permutation brings the bytes of each value into its lane, a shift by lane
//! and a mask extract the value. [`Cut`] serves kernels that take vectors of values on at once.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_loadu_si512, _mm512_maskz_loadu_epi8,
    _mm512_permutexvar_epi8, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_srlv_epi32,
    _mm512_srlv_epi64,
};

/// Lanes of 4 bytes hold a value and the bits before it up to this width.
pub(in crate::simd) const WIDEST_32: u32 = 25;
/// The same for lanes of 8 bytes.
pub(in crate::simd) const WIDEST_64: u32 = 57;

/// Which bytes go into each lane, and how far each lane is shifted, for one width.
struct UnpackPlan {
    bytes: [u8; 64],
    shifts_32: [u32; 16],
    shifts_64: [u64; 8],
}

#[expect(clippy::cast_possible_truncation, reason = "below 64, and no conversion is const")]
/// Plans for lanes of `lane` bytes, `64 / lane` of them in a vector.
const fn plans<const N: usize>(lane: usize) -> [UnpackPlan; N] {
    const EMPTY: UnpackPlan = UnpackPlan { bytes: [0; 64], shifts_32: [0; 16], shifts_64: [0; 8] };
    let mut plans = [const { EMPTY }; N];
    let mut width = 0;
    while width < N {
        let mut i = 0;
        while i < 64 / lane {
            let bit = i * width;
            let mut byte = 0;
            while byte < lane {
                // Nothing beyond the last byte of the group is wanted: it is shifted or masked
                // away.
                let from = bit / 8 + byte;
                plans[width].bytes[i * lane + byte] = if from < 64 { from as u8 } else { 63 };
                byte += 1;
            }
            if lane == 4 {
                plans[width].shifts_32[i] = (bit % 8) as u32;
            } else {
                plans[width].shifts_64[i] = (bit % 8) as u64;
            }
            i += 1;
        }
        width += 1;
    }
    plans
}

static PLANS_32: [UnpackPlan; WIDEST_32 as usize + 1] = plans(4);
static PLANS_64: [UnpackPlan; WIDEST_64 as usize + 1] = plans(8);

/// How values of one width are cut out of their bytes, a vector at a time.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Cut {
    index: __m512i,
    shifts: __m512i,
    keep: __m512i,
    /// Bytes that a vector of values takes.
    pub(in crate::simd) step: usize,
}

impl Cut {
    /// 16 values a vector, of 1 to [`WIDEST_32`] bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(in crate::simd) fn into_32(width: u32) -> Self {
        let UnpackPlan { bytes, shifts_32, .. } = &PLANS_32[width as usize];
        // SAFETY: the table is 64 bytes long.
        let index = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        // SAFETY: as above.
        let shifts = unsafe { _mm512_loadu_si512(shifts_32.as_ptr().cast()) };
        let keep = _mm512_set1_epi32((u32::MAX >> (32 - width)).cast_signed());
        Self { index, shifts, keep, step: 2 * width as usize }
    }

    /// 8 values a vector, of 1 to [`WIDEST_64`] bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(in crate::simd) fn into_64(width: u32) -> Self {
        let UnpackPlan { bytes, shifts_64, .. } = &PLANS_64[width as usize];
        // SAFETY: the table is 64 bytes long.
        let index = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        // SAFETY: as above.
        let shifts = unsafe { _mm512_loadu_si512(shifts_64.as_ptr().cast()) };
        let keep = _mm512_set1_epi64((u64::MAX >> (64 - width)).cast_signed());
        Self { index, shifts, keep, step: width as usize }
    }

    /// The bytes of the next vector of values; bytes beyond the end are 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn packed(&self, bytes: &[u8]) -> __m512i {
        let there = bytes.len().min(self.step);
        // SAFETY: the mask lets no byte be read that is not there; a vector takes at most 57.
        unsafe { _mm512_maskz_loadu_epi8((1 << there) - 1, bytes.as_ptr().cast()) }
    }

    /// The next 16 values.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    pub(in crate::simd) fn sixteen(&self, bytes: &[u8]) -> __m512i {
        let lanes = _mm512_permutexvar_epi8(self.index, self.packed(bytes));
        _mm512_and_si512(_mm512_srlv_epi32(lanes, self.shifts), self.keep)
    }

    /// The next 8 values.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    pub(in crate::simd) fn eight(&self, bytes: &[u8]) -> __m512i {
        let lanes = _mm512_permutexvar_epi8(self.index, self.packed(bytes));
        _mm512_and_si512(_mm512_srlv_epi64(lanes, self.shifts), self.keep)
    }
}
