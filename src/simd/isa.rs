//! [`Isa`]: the instruction set that a kernel runs with, detected at run time.

/// An instruction set that this machine has.
///
/// Beside [`Isa::SCALAR`] a value comes only from detection ([`Isa::best`]): the fields are private
/// to this file. So a kernel that is given one may use its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Isa {
    level: Level,
    /// NEON, beside what every machine has.
    #[cfg(target_arch = "aarch64")]
    neon: bool,
}

/// The instruction set for kernels to match on. A level proves nothing by itself; an [`Isa`] that
/// returns it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// The instructions that every machine of the architecture has.
    Scalar,
    /// x86-64 with AVX2, BMI2 and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL, VBMI and VBMI2 too, as machines since Ice Lake and Zen 4
    /// have.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The widest instruction set that this build may use, if its environment names one.
const MAX_ISA: Option<&str> = option_env!("MARQUETRY_ISA");

impl Isa {
    /// The scalar definitions, which every machine runs.
    pub(crate) const SCALAR: Self = Self::at_level(Level::Scalar);

    /// The instruction set of a level.
    const fn at_level(level: Level) -> Self {
        Self {
            level,
            #[cfg(target_arch = "aarch64")]
            neon: false,
        }
    }

    /// The best one of this machine. The answer is cached by the standard library.
    ///
    /// A build with `MARQUETRY_ISA=scalar` in its environment uses the scalar definitions wherever
    /// it runs, one with `MARQUETRY_ISA=avx2` no more than AVX2: so they are measured, and tested,
    /// on any machine. Libraries that we use pick for themselves as ever.
    #[inline]
    pub(crate) fn best() -> Self {
        if MAX_ISA == Some("scalar") {
            return Self::SCALAR;
        }
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("bmi2") && has!("popcnt") {
                let wide = MAX_ISA != Some("avx2")
                    && has!("avx512f")
                    && has!("avx512bw")
                    && has!("avx512vl");
                let wide = wide && has!("avx512vbmi") && has!("avx512vbmi2");
                return Self::at_level(if wide { Level::Avx512 } else { Level::Avx2 });
            }
        }
        // Kernels take vectors as bytes from the lowest on.
        #[cfg(target_arch = "aarch64")]
        if cfg!(target_endian = "little") {
            return Self { neon: true, ..Self::SCALAR };
        }
        Self::SCALAR
    }

    /// The instructions that may be used.
    #[inline]
    pub(super) fn level(self) -> Level {
        self.level
    }

    /// Whether NEON may be used: every aarch64 has it.
    #[cfg(target_arch = "aarch64")]
    #[inline]
    pub(super) fn neon(self) -> bool {
        self.neon
    }

    /// All that this machine has, for tests of twins.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        #[cfg(target_arch = "aarch64")]
        if Self::best().neon {
            return vec![Self::SCALAR, Self::best()];
        }
        let levels: &[Level] = match Self::best().level {
            Level::Scalar => &[Level::Scalar],
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => &[Level::Scalar, Level::Avx2],
            // Detection of the wider set asked for the narrower one first.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &[Level::Scalar, Level::Avx2, Level::Avx512],
        };
        levels.iter().map(|level| Self::at_level(*level)).collect()
    }
}
