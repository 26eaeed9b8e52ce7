//! Tests that hostile files end in rows or in errors, within the limits of memory, time and stack.
//!
//! This is a binary of its own, because it counts what is allocated.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

mod bombs;
mod mutants;
mod stack;

#[path = "../support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

use support::heap;
use support::mutants::Heap;

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

const HEAP: Heap = Heap { start: heap::start, peak: heap::peak };

/// One test at a time: what another one allocates would count, and where it panics.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
