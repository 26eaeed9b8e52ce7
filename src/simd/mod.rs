//! Kernels: the only home of intrinsics and of memory written before it is initialised.
//!
//! Each kernel has a safe door, a scalar definition, and twins for instruction sets that are picked at run time ([`Isa`]). Where the compiler
//! vectorises the scalar definition well, the twin is that same code compiled for the wider instruction set.

pub mod bitmap;
pub mod compact;
pub mod decimals;
pub mod deltas;
pub mod expand;
pub mod gather;
pub mod native;
pub mod pack;
pub mod planes;
pub mod prefix_sum;
pub mod spans;
pub mod transpose;
pub mod unpack;

/// Asks for the line of the cache that item `at` of a slice lies in, if there is one.
#[inline(always)]
pub fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, and the address is that of an item that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// What every machine of the architecture has.
    Scalar,
    /// x86-64 with AVX2 and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL, VBMI and VBMI2 too, as machines since Ice Lake and Zen 4 have.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The best one of this machine. The answer is cached by the standard library.
    ///
    /// A build with `MARQUETRY_ISA=scalar` in its environment uses the scalar definitions wherever it runs: so they are measured, and tested, on
    /// any machine. Libraries that we use pick for themselves as ever.
    #[inline]
    pub fn best() -> Self {
        if option_env!("MARQUETRY_ISA") == Some("scalar") {
            return Self::Scalar;
        }
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("bmi2") && has!("popcnt") {
                let wide = has!("avx512f") && has!("avx512bw") && has!("avx512vl");
                return if wide && has!("avx512vbmi") && has!("avx512vbmi2") {
                    Self::Avx512
                } else {
                    Self::Avx2
                };
            }
        }
        Self::Scalar
    }

    /// All that this machine has, for tests of twins.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        match Self::best() {
            Self::Scalar => {}
            Self::Avx2 => all.push(Self::Avx2),
            Self::Avx512 => all.extend([Self::Avx2, Self::Avx512]),
        }
        all
    }
}
