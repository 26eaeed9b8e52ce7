//! [`Isa`]: the instruction set that a kernel runs with, detected at run time.

use std::sync::atomic::{AtomicU8, Ordering};

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

/// Whether this build can run a single kernel with less than this machine has: one with
/// `MARQUETRY_ISA=switch` in its environment, as `benches/kernels.rs` wants it.
pub(crate) const CAN_SWITCH: bool = match MAX_ISA {
    Some(text) => matches!(text.as_bytes(), b"switch"),
    None => false,
};

macro_rules! kernels {
    ($($kernel:ident = $name:literal,)*) => {
        /// The kernels of the ledger, `docs/kernels.md`, which says what each brings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kernel {
            $($kernel,)*
        }

        impl Kernel {
            /// All, with their names.
            pub(crate) const ALL: &[(&str, Self)] = &[$(($name, Self::$kernel),)*];
        }
    };
}
kernels!(
    Unpack = "unpack",
    Pack = "pack",
    Gather = "gather",
    Compact = "compact",
    Expand = "expand",
    PrefixSum = "prefix_sum",
    Transpose = "transpose",
    Extremes = "extremes",
    Deltas = "deltas",
    Decimals = "decimals",
    Lengths = "lengths",
    Join = "join",
    Levels = "levels",
    Bits = "bits",
    Snappy = "snappy",
);

/// The level that each kernel is held to: 0 for the best.
pub(crate) static SWITCHES: [AtomicU8; Kernel::ALL.len()] =
    [const { AtomicU8::new(0) }; Kernel::ALL.len()];

impl Kernel {
    fn switched(self) -> Isa {
        match SWITCHES[self as usize].load(Ordering::Relaxed) {
            1 => Isa::SCALAR,
            #[cfg(target_arch = "x86_64")]
            2 if Isa::best() != Isa::SCALAR => Isa::at_level(Level::Avx2),
            _ => Isa::best(),
        }
    }

    /// Whether the scalar definition is to run in place of vectors that every machine of this
    /// architecture has.
    #[inline]
    pub(super) fn is_off(self) -> bool {
        CAN_SWITCH && SWITCHES[self as usize].load(Ordering::Relaxed) == 1
    }
}

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

    /// The one that a kernel runs with: the best of this machine, unless this build can switch
    /// kernels off (`engine::switch_kernel`).
    #[inline]
    pub(crate) fn for_kernel(kernel: Kernel) -> Self {
        if CAN_SWITCH { kernel.switched() } else { Self::best() }
    }

    /// The one that a kernel runs with inside another kernel, which runs with this one.
    #[inline]
    pub(super) fn part(self, kernel: Kernel) -> Self {
        if CAN_SWITCH { kernel.switched() } else { self }
    }

    /// The best one of this machine. The answer is cached by the standard library.
    ///
    /// A build with `MARQUETRY_ISA=scalar` in its environment uses the scalar definitions wherever
    /// it runs, one with `MARQUETRY_ISA=avx2` no more than AVX2: so they are measured, and tested,
    /// on any machine. One with `MARQUETRY_ISA=switch` uses the best, and can switch off a kernel
    /// by itself (`engine::switch_kernel`). Libraries that we use pick for themselves as ever.
    #[inline]
    pub(super) fn best() -> Self {
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
