//! Random schedules of what the threads of the library share.
//!
//! ```text
//! cargo run --release -- [SCHEDULES] [SEED]
//! ```
//!
//! The files of the library are compiled here as they are, with the locks, atomics and threads of a
//! scheduler in place of the standard library's ([`sync`]), and with a pool whose threads are such
//! threads ([`io::pool`]). Each schedule is a random order in which the threads take their steps,
//! that is, lock, load, store, wait and end. A failure prints the schedule; the seed, which is
//! always printed, finds it again.
//!
//! In every schedule:
//!
//! * budget (`limits`): no more than the cap is taken, and all comes back;
//! * free lists (`free_lists`): no memory has two owners, and what is kept is within the limit;
//! * dictionary (`write/column/dictionary`): threads find the dictionary of one;
//! * queue (`io/job_queue`): each column is encoded once, the row groups are those of one thread,
//!   and a failure, a panic, a cancellation and a pool that begins nothing end in time.
//!
//! The threads of rayon cannot be scheduled, so the waves of a read, which are rayon's own
//! iterators and a channel, are not here: `tests/it/read` compares their rows with those of one
//! thread.

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
mod sync;

mod simd {
    /// Asks for memory before it is written, which changes nothing that others see.
    pub(crate) fn prefault<T>(_: &mut Vec<T>) {}
}

#[path = "../../../src/free_lists.rs"]
mod free_lists;
#[path = "../../../src/limits.rs"]
mod limits;

mod io;
mod write;

mod scenarios {
    pub(super) mod budget;
    pub(super) mod free_lists;
}

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// The scenarios, and how many of a hundred schedules are theirs.
const SCENARIOS: [(&str, fn(), usize); 4] = [
    ("budget", scenarios::budget::run, 40),
    ("free lists", scenarios::free_lists::run, 20),
    ("dictionary", write::column::dictionary::scenario::run, 5),
    ("queue", io::scenario::run, 35),
];

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let schedules = numbers.next().unwrap_or(1_000_000);
    let seed = numbers.next().unwrap_or(1);
    println!("{schedules} schedules, seed {seed}");
    let mut all = 0;
    for (name, scenario, share) in SCENARIOS {
        let n = usize::try_from(schedules).expect("a count") * share / 100;
        let start = std::time::Instant::now();
        // Half of them change threads seldom, which finds what takes few changes.
        let random = RandomScheduler::new_from_seed(seed, n - n / 2);
        all += Runner::new(random, Config::new()).run(scenario);
        all +=
            Runner::new(PctScheduler::new_from_seed(seed, 3, n / 2), Config::new()).run(scenario);
        println!("{name}: {n} schedules, {:.0?}", start.elapsed());
    }
    println!("{all} schedules in all, none fails");
}
