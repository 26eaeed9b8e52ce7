//! Kernels: the only home of intrinsics and of memory written before it is initialised.
//!
//! Each kernel has a safe function, a scalar definition, and versions for instruction sets that are
//! picked at run time ([`Isa`]). Where the compiler vectorises the scalar definition well, such a
//! version is that same code compiled for the wider instruction set.

pub(crate) mod bitmap;
#[cfg(target_arch = "aarch64")]
mod bits;
pub(crate) mod compact;
pub(crate) mod decimals;
pub(crate) mod deltas;
pub(crate) mod expand;
pub(crate) mod extremes;
pub(crate) mod gather;
mod isa;
pub(crate) mod join;
pub(crate) mod lengths;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod mask_tables;
pub(crate) mod native;
pub(crate) mod pack;
pub(crate) mod ops;
pub(crate) mod planes;
pub(crate) mod prefix_sum;
#[cfg(any(feature = "snappy", test))]
pub(crate) mod snappy;
pub(crate) mod spans;
pub(crate) mod strings;
pub(crate) mod transpose;
pub(crate) mod unpack;

pub(crate) use isa::Isa;
use isa::Level;

/// Asks for the line of the cache that item `at` of a slice lies in, if there is one.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, and the address is that of an item that is
        // there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(item) = items.get(at) {
        // SAFETY: the instruction reads nothing and writes nothing, and the address is that of an
        // item that is there.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{}]",
                in(reg) std::ptr::from_ref(item),
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (items, at);
}
