//! Tests how much heap reading and writing take.
//!
//! This is a binary of its own, because it counts what is allocated.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

mod reading;
#[cfg(feature = "full")]
mod refusal;
mod spilling;
mod writing;

#[path = "../support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: support::heap::Counting = support::heap::Counting;

/// The counters are those of the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
