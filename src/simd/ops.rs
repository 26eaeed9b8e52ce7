//! Operations on 64-bit words that differ by instruction set; [`run`] compiles work on such words
//! once for each.

use super::{Isa, Level};

/// Levels, or bits, of a block: those of a word.
pub(crate) const BLOCK: usize = 64;

/// A word whose `n` lowest bits are set; `n` is at most 64.
#[inline(always)]
pub(crate) fn all(n: usize) -> u64 {
    debug_assert!(n <= BLOCK, "a word has 64 bits");
    if n == 0 { 0 } else { u64::MAX >> (BLOCK - n) }
}

/// Position of the `n`th set bit of a word, counted from 0; 64 if it has fewer.
#[inline(always)]
pub(crate) fn nth_set(word: u64, n: usize) -> usize {
    (0..n.min(BLOCK)).fold(word, |word, _| word & word.wrapping_sub(1)).trailing_zeros() as usize
}

/// Work on words that is compiled once for each instruction set; its `run` is to be
/// `#[inline(always)]`.
pub(crate) trait SimdTask {
    /// The result of the task.
    type Output;

    /// Does the work.
    fn run(self, kernel: impl SimdOps) -> Self::Output;
}

/// The operations that differ by instruction set.
pub(crate) trait SimdOps: Copy {
    /// The bits of `bits` where `mask` is set, moved together.
    fn select(self, bits: u64, mask: u64) -> u64;

    /// The planes of 64 levels of `width` bits, which is at most `W`; bytes that are not there are
    /// 0.
    fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W];
}

/// Does the work, compiled for an instruction set.
#[inline]
pub(crate) fn run<W: SimdTask>(isa: Isa, work: W) -> W::Output {
    match isa.level() {
        #[cfg(target_arch = "aarch64")]
        // SAFETY: every aarch64 has NEON.
        Level::Scalar if isa.neon() => unsafe { aarch64::run_neon(work) },
        Level::Scalar => work.run(Scalar),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where BMI2 and POPCNT were found, and BMI1
        // comes with BMI2.
        Level::Avx2 => unsafe { x86::run_bmi(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this level exists only where its features were found, and those of
        // AVX2.
        Level::Avx512 => unsafe { x86::run_avx512(work) },
    }
}

/// The definition.
#[derive(Clone, Copy)]
struct Scalar;

impl SimdOps for Scalar {
    #[inline(always)]
    fn select(self, bits: u64, mask: u64) -> u64 {
        if mask == u64::MAX {
            return bits;
        }
        let (mut mask, mut out, mut n) = (mask, 0, 0);
        while mask != 0 {
            let lowest = mask & mask.wrapping_neg();
            out |= u64::from(bits & lowest != 0) << n;
            n += 1;
            mask ^= lowest;
        }
        out
    }

    #[inline(always)]
    fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
        let mut planes = [0; W];
        if width == 1 {
            // One plane, as it is.
            let mut word = [0; 8];
            let there = bytes.len().min(8);
            word[..there].copy_from_slice(&bytes[..there]);
            planes[0] = u64::from_le_bytes(word);
            return planes;
        }
        if width > 8 {
            let bit =
                |at: usize| bytes.get(at / 8).map_or(0, |byte| u64::from(byte >> (at % 8) & 1));
            for (p, plane) in planes.iter_mut().enumerate().take(width) {
                *plane = (0..BLOCK).fold(0, |word, i| word | bit(i * width + p) << i);
            }
            return planes;
        }
        for (group, bytes) in bytes.chunks(width.max(1)).enumerate().take(8) {
            let mut packed = [0; 8];
            packed[..bytes.len()].copy_from_slice(bytes);
            let packed = u64::from_le_bytes(packed);
            // A byte for each of the 8 levels; of every byte one bit at a time.
            let spread = (0..8).fold(0, |word, i| word | (packed >> (i * width) & 0xFF) << (8 * i));
            for (p, plane) in planes.iter_mut().enumerate().take(width) {
                let bits = spread >> p & 0x0101_0101_0101_0101;
                *plane |= bits.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * group);
            }
        }
        planes
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_multishift_epi64_epi8,
        _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_test_epi8_mask, _pext_u64,
    };

    use super::{Scalar, SimdOps, SimdTask, all};

    /// Does the work with BMI.
    ///
    /// # Safety
    /// The machine must have BMI1, BMI2 and POPCNT.
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    pub(super) unsafe fn run_bmi<W: SimdTask>(work: W) -> W::Output {
        work.run(Bmi(()))
    }

    /// Does the work with AVX-512.
    ///
    /// # Safety
    /// The machine must have BMI1, BMI2, POPCNT, and AVX-512 F, BW and VBMI.
    #[target_feature(enable = "bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vbmi")]
    pub(super) unsafe fn run_avx512<W: SimdTask>(work: W) -> W::Output {
        work.run(Avx512(()))
    }

    /// Made only by [`run_bmi`].
    #[derive(Clone, Copy)]
    struct Bmi(());

    impl SimdOps for Bmi {
        #[inline(always)]
        fn select(self, bits: u64, mask: u64) -> u64 {
            // SAFETY: a `Bmi` is made only where BMI2 was found.
            unsafe { _pext_u64(bits, mask) }
        }

        #[inline(always)]
        fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
            if W > 4 || width == 0 {
                return Scalar.split(bytes, width);
            }
            let mut planes = [0; W];
            let mut at = [0; W];
            for (k, bytes) in bytes.chunks(8).enumerate().take(W) {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                let word = u64::from_le_bytes(word);
                for (p, plane) in planes.iter_mut().enumerate() {
                    // The first bit of this plane in the word, and every `width`th from there on.
                    let first = (p + width - 64 * k % width) % width;
                    let mask = EVERY[width] << first;
                    // SAFETY: as above.
                    *plane |= unsafe { _pext_u64(word, mask) } << at[p];
                    at[p] += mask.count_ones();
                }
            }
            planes
        }
    }

    /// Every `width`th bit, from the first on.
    const EVERY: [u64; 5] =
        [0, u64::MAX, 0x5555_5555_5555_5555, 0x9249_2492_4924_9249, 0x1111_1111_1111_1111];

    /// Made only by [`run_avx512`].
    #[derive(Clone, Copy)]
    struct Avx512(());

    /// The bytes of every 8 levels of a width, in 8 bytes.
    #[expect(clippy::cast_possible_truncation, reason = "bytes of a vector are fewer than 64")]
    const GROUPS: [[u8; 64]; 9] = {
        let mut tables = [[0; 64]; 9];
        let mut width = 0;
        while width < 9 {
            let mut i = 0;
            while i < 64 {
                // Bytes above the width are looked at by no level.
                let byte = i / 8 * width + if i % 8 < width { i % 8 } else { 0 };
                tables[width][i] = if byte < 64 { byte as u8 } else { 0 };
                i += 1;
            }
            width += 1;
        }
        tables
    };

    /// Where the 8 levels of a width begin in their bytes.
    #[expect(clippy::cast_possible_truncation, reason = "bits of 8 bytes are 64")]
    const SHIFTS: [[u8; 64]; 9] = {
        let mut tables = [[0; 64]; 9];
        let mut width = 0;
        while width < 9 {
            let mut i = 0;
            while i < 64 {
                tables[width][i] = (i % 8 * width) as u8;
                i += 1;
            }
            width += 1;
        }
        tables
    };

    impl SimdOps for Avx512 {
        #[inline(always)]
        fn select(self, bits: u64, mask: u64) -> u64 {
            // SAFETY: an `Avx512` is made only where BMI2 was found too.
            unsafe { _pext_u64(bits, mask) }
        }

        #[inline(always)]
        fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
            let (Some(groups), Some(shifts)) = (GROUPS.get(width), SHIFTS.get(width)) else {
                return Scalar.split(bytes, width);
            };
            // SAFETY: an `Avx512` is made only where the features were found.
            unsafe { split(bytes, width, groups, shifts) }
        }
    }

    /// A byte for every level, then a test of each bit.
    ///
    /// # Safety
    /// The machine must have AVX-512 F, BW and VBMI.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn split<const W: usize>(
        bytes: &[u8],
        width: usize,
        groups: &[u8; 64],
        shifts: &[u8; 64],
    ) -> [u64; W] {
        // SAFETY: the mask lets no byte be read but those of the slice.
        let packed =
            unsafe { _mm512_maskz_loadu_epi8(all(bytes.len().min(64)), bytes.as_ptr().cast()) };
        // SAFETY: the table has 64 bytes.
        let groups = unsafe { _mm512_loadu_si512(groups.as_ptr().cast()) };
        // SAFETY: as above.
        let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
        let levels = _mm512_multishift_epi64_epi8(shifts, _mm512_permutexvar_epi8(groups, packed));
        std::array::from_fn(|plane| {
            // Above the width there are bits of the next level.
            if plane < width {
                _mm512_test_epi8_mask(levels, _mm512_set1_epi8((1u8 << (plane % 8)).cast_signed()))
            } else {
                0
            }
        })
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::aarch64::{
        uint8x16_t, vandq_u8, vcombine_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_s16, vld1q_u8,
        vmovn_u16, vpaddq_u8, vqtbl1q_u8, vreinterpretq_u16_u8, vreinterpretq_u64_u8, vshlq_u16,
        vtstq_u8,
    };

    use super::{BLOCK, Scalar, SimdOps, SimdTask};
    use crate::simd::bits;

    /// Does the work with NEON.
    ///
    /// # Safety
    /// The machine must have NEON.
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn run_neon<W: SimdTask>(work: W) -> W::Output {
        work.run(Neon(()))
    }

    /// Made only by [`run_neon`].
    #[derive(Clone, Copy)]
    struct Neon(());

    impl SimdOps for Neon {
        #[inline(always)]
        fn select(self, bits: u64, mask: u64) -> u64 {
            if mask == u64::MAX {
                return bits;
            }
            // SAFETY: a `Neon` is made only where there is NEON.
            unsafe { bits::extract(bits, mask) }
        }

        #[inline(always)]
        fn split<const W: usize>(self, bytes: &[u8], width: usize) -> [u64; W] {
            let Some(plan) = PLANS.get(width).filter(|_| width > 1) else {
                return Scalar.split(bytes, width);
            };
            // SAFETY: as above.
            unsafe { split(bytes, width, plan) }
        }
    }

    /// Where the bytes of 8 levels of one width are, in lanes of 2, and how far those are shifted.
    struct LevelLanePlan {
        bytes: [u8; 16],
        /// To the left: a negative number is to the right.
        shifts: [i16; 8],
    }

    /// The plans of levels of up to 8 bits.
    #[expect(clippy::cast_possible_truncation, reason = "below 16, and no conversion is const")]
    static PLANS: [LevelLanePlan; 9] = {
        const EMPTY: LevelLanePlan = LevelLanePlan { bytes: [0; 16], shifts: [0; 8] };
        let mut plans = [const { EMPTY }; 9];
        let mut width = 0;
        while width < 9 {
            let mut level = 0;
            while level < 8 {
                let bit = level * width;
                plans[width].bytes[2 * level] = (bit / 8) as u8;
                plans[width].bytes[2 * level + 1] = (bit / 8 + 1) as u8;
                plans[width].shifts[level] = -((bit % 8) as i16);
                level += 1;
            }
            width += 1;
        }
        plans
    };

    /// A byte for every level, then a test of each bit.
    ///
    /// # Safety
    /// The machine must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn split<const W: usize>(bytes: &[u8], width: usize, plan: &LevelLanePlan) -> [u64; W] {
        // Each 8 levels are read as 16 bytes.
        let mut padded = [0; BLOCK + 16];
        let there = bytes.len().min(BLOCK);
        padded[..there].copy_from_slice(&bytes[..there]);
        // SAFETY: the table has 16 bytes.
        let index = unsafe { vld1q_u8(plan.bytes.as_ptr()) };
        // SAFETY: as above.
        let shifts = unsafe { vld1q_s16(plan.shifts.as_ptr()) };
        let eight = |group: usize| {
            let from: &[u8; 16] =
                padded[group * width..].first_chunk().expect("56 bytes and 16 at most");
            // SAFETY: 16 bytes are there.
            let lanes = vqtbl1q_u8(unsafe { vld1q_u8(from.as_ptr()) }, index);
            vmovn_u16(vshlq_u16(vreinterpretq_u16_u8(lanes), shifts))
        };
        let levels: [uint8x16_t; 4] =
            std::array::from_fn(|i| vcombine_u8(eight(2 * i), eight(2 * i + 1)));
        // SAFETY: 16 bytes are there.
        let places = unsafe { vld1q_u8(PLACES.as_ptr()) };
        std::array::from_fn(|plane| {
            // Above the width there are bits of the next level.
            if plane >= width {
                return 0;
            }
            let bit = vdupq_n_u8(1 << (plane % 8));
            let [a, b, c, d] = levels.map(|levels| vandq_u8(vtstq_u8(levels, bit), places));
            // Neighbours are added three times: 8 become a byte.
            let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
        })
    }

    /// The bit of each byte among 8, twice.
    const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Split<'a>(&'a [u8], usize);

    impl SimdTask for Split<'_> {
        type Output = Vec<u64>;

        #[inline(always)]
        fn run(self, kernel: impl SimdOps) -> Vec<u64> {
            match self.1 {
                0..=1 => kernel.split::<1>(self.0, self.1).to_vec(),
                2 => kernel.split::<2>(self.0, self.1).to_vec(),
                3 => kernel.split::<3>(self.0, self.1).to_vec(),
                4 => kernel.split::<4>(self.0, self.1).to_vec(),
                5..=8 => kernel.split::<8>(self.0, self.1).to_vec(),
                _ => kernel.split::<16>(self.0, self.1).to_vec(),
            }
        }
    }

    struct Select(u64, u64);

    impl SimdTask for Select {
        type Output = u64;

        #[inline(always)]
        fn run(self, kernel: impl SimdOps) -> u64 {
            kernel.select(self.0, self.1)
        }
    }

    #[test]
    fn every_isa_splits_and_selects_as_the_naive_twin() {
        let seed = 71;
        let mut rng = fastrand::Rng::with_seed(seed);
        assert_eq!(run(Isa::SCALAR, Select(0b1010_1100, 0b1111_0000)), 0b1010);
        for width in 0..=16usize {
            for _ in 0..50 {
                let bytes: Vec<u8> = (0..rng.usize(0..=8 * width)).map(|_| rng.u8(..)).collect();
                let bit = |at: usize| bytes.get(at / 8).map_or(0, |b| u64::from(b >> (at % 8) & 1));
                let naive: Vec<u64> = (0..width)
                    .map(|p| (0..64).fold(0, |word, i| word | bit(i * width + p) << i))
                    .collect();
                for isa in Isa::available() {
                    let planes = run(isa, Split(&bytes, width));
                    let (planes, above) = planes.split_at(width.min(planes.len()));
                    assert_eq!(planes, naive, "{isa:?} width {width} seed {seed}");
                    assert!(above.iter().all(|plane| *plane == 0), "{isa:?} width {width}");
                    let (bits, mask) = (rng.u64(..), rng.u64(..) & rng.u64(..));
                    assert_eq!(
                        run(isa, Select(bits, mask)),
                        run(Isa::SCALAR, Select(bits, mask)),
                        "{isa:?} seed {seed}"
                    );
                }
            }
        }
    }

    #[test]
    fn finds_the_nth_set_bit() {
        assert_eq!(nth_set(0b1011_0000, 0), 4);
        assert_eq!(nth_set(0b1011_0000, 2), 7);
        assert_eq!(nth_set(0b1011_0000, 3), 64);
    }
}
