//! Levels to bits: 64 comparisons in a word, and the bits of a word that another selects.

use super::Isa;

/// A word whose `n` lowest bits are set; `n` is at most 64.
#[inline]
pub fn all(n: usize) -> u64 {
    debug_assert!(n <= 64, "a word has 64 bits");
    if n == 0 { 0 } else { u64::MAX >> (64 - n) }
}

/// Bit `i` says whether `levels[i] >= least`, for at most 64 levels.
#[inline]
pub fn at_least(isa: Isa, levels: &[u16], least: u16) -> u64 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => {
            // SAFETY: `Isa::Avx512` exists only where the features were found.
            unsafe { x86::at_least(levels, least) }
        }
        _ => scalar_at_least(levels, least),
    }
}

fn scalar_at_least(levels: &[u16], least: u16) -> u64 {
    levels
        .iter()
        .take(64)
        .enumerate()
        .fold(0, |word, (i, level)| word | u64::from(*level >= least) << i)
}

/// The bits of `bits` where `mask` is set, moved together.
#[inline]
pub fn select(isa: Isa, bits: u64, mask: u64) -> u64 {
    if mask == u64::MAX {
        return bits;
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => {
            // SAFETY: these exist only where BMI2 was found.
            unsafe { std::arch::x86_64::_pext_u64(bits, mask) }
        }
        _ => scalar_select(bits, mask),
    }
}

fn scalar_select(bits: u64, mask: u64) -> u64 {
    let (mut mask, mut out, mut n) = (mask, 0, 0);
    while mask != 0 {
        let lowest = mask & mask.wrapping_neg();
        out |= u64::from(bits & lowest != 0) << n;
        n += 1;
        mask ^= lowest;
    }
    out
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_mm512_cmpge_epu16_mask, _mm512_maskz_loadu_epi16, _mm512_set1_epi16};

    /// As the door says.
    ///
    /// # Safety
    /// The machine must have AVX-512 F and BW.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn at_least(levels: &[u16], least: u16) -> u64 {
        let least = _mm512_set1_epi16(least.cast_signed());
        let mut word = 0;
        for (i, part) in levels.chunks(32).take(2).enumerate() {
            let there = u32::MAX >> (32 - part.len());
            // SAFETY: the mask lets no level be read but those of the part.
            let values = unsafe { _mm512_maskz_loadu_epi16(there, part.as_ptr().cast()) };
            let found = _mm512_cmpge_epu16_mask(values, least) & there;
            word |= u64::from(found) << (32 * i);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_as_the_scalar_definition() {
        let seed = 31;
        let mut rng = fastrand::Rng::with_seed(seed);
        for isa in Isa::available() {
            for n in 0..=64 {
                let levels: Vec<u16> = (0..n).map(|_| rng.u16(0..5)).collect();
                for least in 0..6 {
                    let naive = (0..n).fold(0, |w, i| w | u64::from(levels[i] >= least) << i);
                    assert_eq!(at_least(isa, &levels, least), naive, "{isa:?} seed {seed}");
                }
                let (bits, mask) = (rng.u64(..), rng.u64(..) & all(n));
                assert_eq!(
                    select(isa, bits, mask),
                    scalar_select(bits, mask),
                    "{isa:?} seed {seed}"
                );
            }
        }
        assert_eq!(scalar_select(0b1010_1100, 0b1111_0000), 0b1010);
    }
}
