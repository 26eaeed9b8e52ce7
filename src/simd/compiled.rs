//! Runs a scalar definition that is compiled for each instruction set: all of a kernel, where the
//! compiler makes good vectors of it.

use super::{Isa, Level};

/// A definition, and what it is given.
pub(super) trait Definition {
    /// The result.
    type Output;

    /// Whether it is faster with AVX-512 than with AVX2.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    const GAINS_BY_AVX512: bool = false;

    /// The definition; it is to be `#[inline(always)]`, so that it is compiled where it is called.
    fn run(self) -> Self::Output;
}

/// Runs a definition as it is compiled for an instruction set.
#[inline]
pub(super) fn compiled<D: Definition>(isa: Isa, definition: D) -> D::Output {
    match isa.level() {
        Level::Scalar => definition.run(),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these exist only where `Isa::best` has found the features.
        Level::Avx512 if D::GAINS_BY_AVX512 => unsafe { avx512(definition) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; AVX-512 comes with AVX2.
        Level::Avx2 | Level::Avx512 => unsafe { avx2(definition) },
    }
}

/// # Safety
/// The machine must have AVX2 and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn avx2<D: Definition>(definition: D) -> D::Output {
    definition.run()
}

/// # Safety
/// The machine must have AVX2, BMI2, and AVX-512 F, BW and VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl")]
unsafe fn avx512<D: Definition>(definition: D) -> D::Output {
    definition.run()
}
