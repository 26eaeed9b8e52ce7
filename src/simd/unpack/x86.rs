//! AVX2: a byte permutation brings the bytes of each value into its lane, a shift by lane and a
//! mask extract the value. For widths that divide a word, and those that no lane holds, it is the
//! scalar definition compiled for AVX2: constant shifts of whole vectors.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_loadu_si256, _mm256_permute4x64_epi64, _mm256_set_m128i, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_shuffle_epi8, _mm256_shuffle_ps, _mm256_srlv_epi32,
    _mm256_srlv_epi64, _mm256_storeu_si256,
};

use super::lanes::{PLANS_32, PLANS_64, WIDEST_32, WIDEST_64, part_start, readable_blocks};
use super::{BLOCK, scalar};

/// Unpacks whole blocks of 1 to 32 bits.
///
/// # Safety
/// The machine must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn blocks_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) {
    let done = match width {
        1 | 2 | 4 | 8 | 16 | 32 => return scalar::even_blocks_u32(bytes, width, out),
        // SAFETY: the caller guarantees the features.
        ..=WIDEST_32 => unsafe { narrow_u32(bytes, width, out) },
        // SAFETY: as above.
        _ => unsafe { wide_u32(bytes, width, out) },
    };
    scalar::rest_u32(bytes, width, done, out);
}

/// Unpacks whole blocks of 1 to 64 bits.
///
/// # Safety
/// The machine must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn blocks_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) {
    if !(1..=WIDEST_64).contains(&width) || 32 % width == 0 {
        return scalar::even_blocks_u64(bytes, width, out);
    }
    // SAFETY: the caller guarantees the features.
    let done = unsafe { lanes_u64(bytes, width, out) };
    scalar::rest_u64(bytes, width, done, out);
}

/// Two vectors of 16 bytes, from `low` and from `high`.
///
/// # Safety
/// The machine must have AVX2; both must have 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: the caller guarantees the bytes.
    unsafe { _mm256_set_m128i(_mm_loadu_si128(high.cast()), _mm_loadu_si128(low.cast())) }
}

/// Unpacks blocks of 1 to 25 bits, as long as there are bytes for vectors; returns how many.
///
/// # Safety
/// The machine must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn narrow_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) -> usize {
    let w = width as usize;
    let plan = &PLANS_32[w];
    let blocks = readable_blocks(bytes.len(), w, 2, out.len());
    // SAFETY: both tables are 32 bytes long.
    let (index, shifts) = unsafe {
        (
            _mm256_loadu_si256(plan.bytes.as_ptr().cast()),
            _mm256_loadu_si256(plan.shifts.as_ptr().cast()),
        )
    };
    let keep = _mm256_set1_epi32((u32::MAX >> (32 - width)).cast_signed());
    let high = part_start(w, 1, 2);
    for (b, block) in out[..blocks].iter_mut().enumerate() {
        for group in 0..4 {
            let from = bytes.as_ptr().wrapping_add((4 * b + group) * w);
            // SAFETY: of `readable_blocks` every vector lies within the bytes.
            let packed = unsafe { two(from, from.wrapping_add(high)) };
            let lanes = _mm256_shuffle_epi8(packed, index);
            let values = _mm256_and_si256(_mm256_srlv_epi32(lanes, shifts), keep);
            // SAFETY: a block has capacity for four vectors of 8 values.
            unsafe { _mm256_storeu_si256(block.as_mut_ptr().add(8 * group).cast(), values) };
        }
    }
    blocks
}

/// The plan of a width for lanes of 8 bytes, in registers.
struct Avx2Lanes64 {
    index: [__m256i; 2],
    shifts: [__m256i; 2],
    keep: __m256i,
    /// Where the parts of a group begin.
    starts: [usize; 4],
}

impl Avx2Lanes64 {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(width: u32) -> Self {
        let plan = &PLANS_64[width as usize];
        let half = |of: *const __m256i| {
            // SAFETY: both tables are 64 bytes long.
            [0, 1].map(|i| unsafe { _mm256_loadu_si256(of.add(i)) })
        };
        Self {
            index: half(plan.bytes.as_ptr().cast()),
            shifts: half(plan.shifts.as_ptr().cast()),
            keep: _mm256_set1_epi64x((u64::MAX >> (64 - width)).cast_signed()),
            starts: std::array::from_fn(|part| part_start(width as usize, part, 4)),
        }
    }

    /// The 8 values of the group at `from`.
    ///
    /// # Safety
    /// There must be 16 bytes from the start of each part.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn group(&self, from: *const u8) -> [__m256i; 2] {
        let half = |i: usize| {
            let at = |part: usize| from.wrapping_add(self.starts[part]);
            // SAFETY: as the caller's.
            let packed = unsafe { two(at(2 * i), at(2 * i + 1)) };
            let lanes = _mm256_shuffle_epi8(packed, self.index[i]);
            _mm256_and_si256(_mm256_srlv_epi64(lanes, self.shifts[i]), self.keep)
        };
        [half(0), half(1)]
    }
}

/// Like [`narrow_u32`] for 26 to 31 bits: through lanes of 8 bytes.
///
/// # Safety
/// The machine must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn wide_u32(bytes: &[u8], width: u32, out: &mut [[u32; BLOCK]]) -> usize {
    let w = width as usize;
    let plan = Avx2Lanes64::new(width);
    let blocks = readable_blocks(bytes.len(), w, 4, out.len());
    for (b, block) in out[..blocks].iter_mut().enumerate() {
        for group in 0..4 {
            let from = bytes.as_ptr().wrapping_add((4 * b + group) * w);
            // SAFETY: of `readable_blocks` every vector lies within the bytes.
            let [low, high] = unsafe { plan.group(from) }.map(|half| _mm256_castsi256_ps(half));
            let halves = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
            let values = _mm256_permute4x64_epi64::<0b11_01_10_00>(halves);
            // SAFETY: a block has capacity for four vectors of 8 values.
            unsafe { _mm256_storeu_si256(block.as_mut_ptr().add(8 * group).cast(), values) };
        }
    }
    blocks
}

/// Like [`narrow_u32`] for values of 8 bytes, of 1 to 57 bits.
///
/// # Safety
/// The machine must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn lanes_u64(bytes: &[u8], width: u32, out: &mut [[u64; BLOCK]]) -> usize {
    let w = width as usize;
    let plan = Avx2Lanes64::new(width);
    let blocks = readable_blocks(bytes.len(), w, 4, out.len());
    for (b, block) in out[..blocks].iter_mut().enumerate() {
        for group in 0..4 {
            let from = bytes.as_ptr().wrapping_add((4 * b + group) * w);
            // SAFETY: of `readable_blocks` every vector lies within the bytes.
            let halves = unsafe { plan.group(from) };
            for (i, values) in halves.into_iter().enumerate() {
                let to = block.as_mut_ptr().wrapping_add(8 * group + 4 * i);
                // SAFETY: a block has capacity for eight vectors of 4 values.
                unsafe { _mm256_storeu_si256(to.cast(), values) };
            }
        }
    }
    blocks
}
