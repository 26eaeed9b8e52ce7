//! AVX-512 VBMI: a shift by lane moves each value to its place within a byte, and two byte
//! permutations put the lanes end to end, because from 8 bits on a byte is shared by at most two
//! values. Narrower values become bytes first, and BMI2 extracts their bits.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm256_loadu_si256, _mm512_and_si512,
    _mm512_cvtepi32_epi8, _mm512_cvtepi64_epi8, _mm512_cvtepu32_epi64, _mm512_loadu_si512,
    _mm512_maskz_permutexvar_epi8, _mm512_or_si512, _mm512_permutexvar_epi8, _mm512_set1_epi32,
    _mm512_set1_epi64, _mm512_sllv_epi32, _mm512_sllv_epi64, _mm512_storeu_si512, _pext_u64,
};

use super::scalar::SLACK;
use super::{BLOCK, scalar};

/// Values up to this width become bytes first.
const NARROWEST: u32 = 8;
/// Lanes of 4 bytes hold a value and the bits before it up to this width.
const WIDEST_32: u32 = 25;
/// The same for lanes of 8 bytes.
const WIDEST_64: u32 = 57;

/// Where the bytes of a vector come from, and how far each lane is shifted, for one width.
struct PackPlan {
    /// The lane that a byte begins in.
    bytes: [u8; 64],
    /// The lane that begins in a byte, after the first of its bits, if `begins` has one.
    others: [u8; 64],
    begins: u64,
    /// Little-endian numbers as wide as a lane.
    shifts: [u8; 64],
}

#[expect(clippy::cast_possible_truncation, reason = "below 64, and no conversion is const")]
/// Plans for lanes of `lane` bytes, `64 / lane` of them in a vector; those for widths below 8 bits
/// are not used.
const fn plans<const N: usize>(lane: usize) -> [PackPlan; N] {
    const EMPTY: PackPlan =
        PackPlan { bytes: [0; 64], others: [0; 64], begins: 0, shifts: [0; 64] };
    let mut plans = [const { EMPTY }; N];
    let mut width = NARROWEST as usize;
    while width < N {
        let plan = &mut plans[width];
        let lanes = 64 / lane;
        let mut i = 0;
        while i < lanes {
            plan.shifts[i * lane] = (i * width % 8) as u8;
            i += 1;
        }
        let mut byte = 0;
        while byte < lanes * width / 8 {
            let first = 8 * byte / width;
            plan.bytes[byte] = (first * lane + byte - first * width / 8) as u8;
            let next = first + 1;
            if next < lanes && next * width < 8 * byte + 8 {
                plan.others[byte] = (next * lane) as u8;
                plan.begins |= 1 << byte;
            }
            byte += 1;
        }
        width += 1;
    }
    plans
}

static PLANS_32: [PackPlan; WIDEST_32 as usize + 1] = plans(4);
static PLANS_64: [PackPlan; WIDEST_64 as usize + 1] = plans(8);

/// A plan in registers.
#[derive(Clone, Copy)]
struct Loaded {
    bytes: __m512i,
    others: __m512i,
    begins: u64,
    shifts: __m512i,
}

impl PackPlan {
    #[inline]
    #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn load(&self) -> Loaded {
        let Self { bytes, others, begins, shifts } = self;
        // SAFETY: the three tables are 64 bytes long.
        let [bytes, others, shifts] = [bytes, others, shifts]
            .map(|table| unsafe { _mm512_loadu_si512(table.as_ptr().cast()) });
        Loaded { bytes, others, begins: *begins, shifts }
    }
}

impl Loaded {
    /// The bytes of lanes that are shifted to their places.
    #[inline]
    #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn gather(&self, lanes: __m512i) -> __m512i {
        let begun = _mm512_permutexvar_epi8(self.bytes, lanes);
        _mm512_or_si512(begun, _mm512_maskz_permutexvar_epi8(self.begins, self.others, lanes))
    }
}

/// Packs whole blocks of 1 to 32 bits.
///
/// # Safety
/// The machine must have AVX-512 F, BW, VL and VBMI; `out` must have `4 * width` bytes for each
/// block, and `SLACK` more.
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn blocks_u32(blocks: &[[u32; BLOCK]], width: u32, out: &mut [u8]) {
    let w = width as usize;
    assert!(out.len() >= 4 * w * blocks.len() + SLACK, "the bytes of the blocks, and slack");
    let mut to = out.as_mut_ptr();
    if width == 32 {
        scalar::blocks_u32(blocks, width, out);
    } else if width > WIDEST_32 {
        let plan = PLANS_64[w].load();
        let keep = _mm512_set1_epi64((u64::MAX >> (64 - width)).cast_signed());
        for block in blocks {
            for quarter in 0..4 {
                // SAFETY: a block has four vectors of 8 values of 4 bytes.
                let values = unsafe { _mm256_loadu_si256(block.as_ptr().add(8 * quarter).cast()) };
                let lanes = _mm512_and_si512(_mm512_cvtepu32_epi64(values), keep);
                let packed = plan.gather(_mm512_sllv_epi64(lanes, plan.shifts));
                // SAFETY: `to` is within the bytes of the blocks, and there are 64 more after
                // those.
                unsafe { _mm512_storeu_si512(to.cast(), packed) };
                // SAFETY: the next 8 values begin within the bytes of the blocks, or at their end.
                to = unsafe { to.add(w) };
            }
        }
    } else if width > NARROWEST {
        let plan = PLANS_32[w].load();
        let keep = _mm512_set1_epi32((u32::MAX >> (32 - width)).cast_signed());
        for block in blocks {
            for half in 0..2 {
                // SAFETY: a block has two vectors of 16 values.
                let values = unsafe { _mm512_loadu_si512(block.as_ptr().add(16 * half).cast()) };
                let lanes = _mm512_and_si512(values, keep);
                let packed = plan.gather(_mm512_sllv_epi32(lanes, plan.shifts));
                // SAFETY: `to` is within the bytes of the blocks, and there are 64 more after
                // those.
                unsafe { _mm512_storeu_si512(to.cast(), packed) };
                // SAFETY: the next 16 values begin within the bytes of the blocks, or at their end.
                to = unsafe { to.add(2 * w) };
            }
        }
    } else {
        let keep = kept_bits(width);
        for block in blocks {
            for half in 0..2 {
                // SAFETY: a block has two vectors of 16 values.
                let values = unsafe { _mm512_loadu_si512(block.as_ptr().add(16 * half).cast()) };
                let bytes = _mm512_cvtepi32_epi8(values);
                for eight in [_mm_cvtsi128_si64(bytes), _mm_extract_epi64::<1>(bytes)] {
                    let packed = _pext_u64(eight.cast_unsigned(), keep).to_le_bytes();
                    // SAFETY: `to` is within the bytes of the blocks, and there are 64 more after
                    // those.
                    unsafe { to.cast::<[u8; 8]>().write(packed) };
                    // SAFETY: the next 8 values begin within the bytes of the blocks, or at their
                    // end.
                    to = unsafe { to.add(w) };
                }
            }
        }
    }
}

/// Packs whole blocks of 1 to 64 bits.
///
/// # Safety
/// As [`blocks_u32`].
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn blocks_u64(blocks: &[[u64; BLOCK]], width: u32, out: &mut [u8]) {
    let w = width as usize;
    assert!(out.len() >= 4 * w * blocks.len() + SLACK, "the bytes of the blocks, and slack");
    let mut to = out.as_mut_ptr();
    if width > WIDEST_64 {
        return scalar::blocks_u64(blocks, width, out);
    }
    if width > NARROWEST {
        let plan = PLANS_64[w].load();
        let keep = _mm512_set1_epi64((u64::MAX >> (64 - width)).cast_signed());
        for block in blocks {
            for quarter in 0..4 {
                // SAFETY: a block has four vectors of 8 values.
                let values = unsafe { _mm512_loadu_si512(block.as_ptr().add(8 * quarter).cast()) };
                let lanes = _mm512_and_si512(values, keep);
                let packed = plan.gather(_mm512_sllv_epi64(lanes, plan.shifts));
                // SAFETY: `to` is within the bytes of the blocks, and there are 64 more after
                // those.
                unsafe { _mm512_storeu_si512(to.cast(), packed) };
                // SAFETY: the next 8 values begin within the bytes of the blocks, or at their end.
                to = unsafe { to.add(w) };
            }
        }
    } else {
        let keep = kept_bits(width);
        for block in blocks {
            for quarter in 0..4 {
                // SAFETY: a block has four vectors of 8 values.
                let values = unsafe { _mm512_loadu_si512(block.as_ptr().add(8 * quarter).cast()) };
                let eight = _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(values));
                let packed = _pext_u64(eight.cast_unsigned(), keep).to_le_bytes();
                // SAFETY: `to` is within the bytes of the blocks, and there are 64 more after
                // those.
                unsafe { to.cast::<[u8; 8]>().write(packed) };
                // SAFETY: the next 8 values begin within the bytes of the blocks, or at their end.
                to = unsafe { to.add(w) };
            }
        }
    }
}

/// The lowest `width` bits of each byte; `width` is at most 8.
fn kept_bits(width: u32) -> u64 {
    u64::from(u8::MAX >> (NARROWEST - width)) * 0x0101_0101_0101_0101
}
