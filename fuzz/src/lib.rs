//! Fuzz targets: functions of bytes that panic where the library does what it must not.
//!
//! Each is a test: `./run` runs it under a fuzzing engine with AddressSanitizer, and `cargo test`
//! on its seeds and, for a second, on mutants of them.

use marquetry_testkit::heap;

pub mod command;
#[cfg(test)]
mod front;
pub mod input;
mod logical;
pub mod seeds;
pub mod targets;

/// Counts, so that targets can hold reads to their limit.
#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;
