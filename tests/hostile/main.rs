//! Files that are made to hurt end in rows or in errors, within the memory, the time and the stack
//! that they are given.
//!
//! A binary of its own: it counts what is allocated.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::duplicate_mod,
    reason = "tests are no API, and fail where they must"
)]

mod bombs;
mod mutants;
mod nests;
mod stack;

#[path = "../it/generate.rs"]
mod generate;
#[path = "../../fuzz/src/heap.rs"]
mod heap;
#[path = "../../fuzz/src/structure/mod.rs"]
mod structure;
#[path = "../it/support.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

use structure::Heap;

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

const HEAP: Heap = Heap { start: heap::start, peak: heap::peak };

/// One test at a time: what another one allocates would count, and where it panics.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
