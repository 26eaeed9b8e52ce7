//! Kernels: the only home of intrinsics and of memory written before it is initialised.
//!
//! Each kernel has a safe door, a scalar definition, and twins for instruction sets that are picked at run time ([`Isa`]). Where the compiler
//! vectorises the scalar definition well, the twin is that same code compiled for the wider instruction set.

pub mod bitmap;
pub mod expand;
pub mod gather;
pub mod native;
pub mod prefix_sum;
pub mod spans;
pub mod transpose;
pub mod unpack;

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// What every machine of the architecture has.
    Scalar,
    /// x86-64 with AVX2 and BMI.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    /// The best one of this machine. The answer is cached by the standard library.
    #[inline]
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi2")
        {
            return Self::Avx2;
        }
        Self::Scalar
    }

    /// All that this machine has, for tests of twins.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Scalar];
        if Self::best() != Self::Scalar {
            all.push(Self::best());
        }
        all
    }
}
