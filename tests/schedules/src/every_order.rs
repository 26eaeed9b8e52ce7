//! Every order of what threads do to a budget, weak memory included: two threads that take memory,
//! resize it, and give it back.
//!
//! ```text
//! cargo run --release --bin every_order
//! ```
//!
//! The random schedules of the other program keep one order of memory for all threads, and the
//! budget's atomics are relaxed. Here each load may see any store that the memory model allows.

#![allow(
    dead_code,
    unused_imports,
    clippy::all,
    reason = "files of the library, of which a part is used"
)]

#[path = "../../../src/error.rs"]
mod error;
#[path = "../../../src/memory.rs"]
mod memory;

/// In place of the library's module of this name. Counts of references are the standard library's:
/// no order of theirs is in question.
mod sync {
    pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
    pub(crate) use std::sync::{Arc, PoisonError, Weak};
}

mod simd {
    /// Asks for memory before it is written, which changes nothing that others see.
    pub(crate) fn prefault<T>(_: &mut Vec<T>) {}
}

#[path = "../../../src/free_lists.rs"]
mod free_lists;
#[path = "../../../src/limits.rs"]
mod limits;

use std::sync::atomic::{AtomicU64, Ordering};

use limits::{Budget, Reservation};

const CAP: u64 = 100;

/// How many orders there were.
static ORDERS: AtomicU64 = AtomicU64::new(0);

/// Resizes; what is held is what was wanted, or what was held before.
fn resize(budget: &Budget, held: &mut Reservation, wanted: u64) -> bool {
    let before = held.bytes();
    let taken = held.resize(wanted as usize).is_ok();
    assert_eq!(held.bytes(), if taken { wanted } else { before }, "a refusal takes nothing");
    let used = budget.used();
    assert!(used <= CAP, "{used} bytes taken");
    assert!(used >= held.bytes(), "what is held is counted");
    taken
}

fn main() {
    for sizes in [[60, 40], [60, 41], [70, 100], [100, 100]] {
        loom::model(move || {
            ORDERS.fetch_add(1, Ordering::Relaxed);
            let budget = Budget::new(CAP);
            let threads = sizes.map(|wanted| {
                let budget = budget.clone();
                loom::thread::spawn(move || {
                    let mut held = budget.reservation("a test");
                    let taken = resize(&budget, &mut held, wanted);
                    assert!(resize(&budget, &mut held, wanted / 2) || !taken, "less is refused");
                    let moved = held.split_off();
                    drop(held);
                    drop(moved);
                    taken
                })
            });
            let taken = threads.map(|thread| thread.join().expect("no thread fails"));
            assert!(taken != [false; 2], "none has taken what fits");
            assert!(sizes.iter().sum::<u64>() > CAP || taken == [true; 2], "what fits was refused");
            assert_eq!(budget.used(), 0, "all comes back");
        });
    }
    println!("{} orders, none fails", ORDERS.load(Ordering::Relaxed));
}
