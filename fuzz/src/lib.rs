//! Fuzz targets: functions of bytes that panic where the library does what it must not.
//!
//! Each runs under libFuzzer with AddressSanitizer (`./run`), and for a moment in `cargo test`, on
//! mutants of the seeds.

use marquetry_testkit::heap;

pub mod input;
pub mod mutate;
pub mod seeds;
pub mod targets;

/// Counts, so that targets can hold reads to their limit.
#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;
