//! Kernels: the only module with intrinsics and with memory that is written before it is
//! initialised.
//!
//! Each kernel has a safe function, a scalar definition, and versions for instruction sets that are
//! chosen at run time ([`Isa`]). Where the compiler vectorises the scalar definition well, such a
//! version is the same code compiled for the wider instruction set. `docs/kernels.md` is the ledger
//! of what each version brings to a whole read or write.

pub(crate) mod isa;
mod compiled;
mod memory_hints;
#[cfg(target_arch = "aarch64")]
mod bits;
pub(crate) mod bitmap;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod mask_tables;
pub(crate) mod transpose;
pub(crate) mod native;
pub(crate) mod unpack;
pub(crate) mod pack;
pub(crate) mod gather;
pub(crate) mod compact;
pub(crate) mod expand;
pub(crate) mod prefix_sum;
pub(crate) mod decimals;
pub(crate) mod deltas;
pub(crate) mod extremes;
pub(crate) mod ops;
pub(crate) mod join;
pub(crate) mod lengths;
pub(crate) mod planes;
#[cfg_attr(not(feature = "snappy"), allow(dead_code))]
pub(crate) mod snappy;
pub(crate) mod spans;
pub(crate) mod strings;

use isa::Level;
pub(crate) use isa::{Isa, Kernel};
pub(crate) use memory_hints::{prefault, prefetch};
