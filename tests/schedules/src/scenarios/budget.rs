//! Threads that take memory from one budget, resize it, and give it back.

use shuttle::rand::Rng;
use shuttle::thread;

use crate::limits::Budget;

const CAP: u64 = 100;

pub(crate) fn run() {
    let budget = Budget::new(CAP);
    let threads = (0..3).map(|i| {
        let budget = budget.clone();
        thread::spawn(move || {
            let mut rng = shuttle::rand::thread_rng();
            let mut held = budget.reservation("a test");
            for _ in 0..2 {
                let before = held.bytes();
                let wanted = rng.gen_range(0..=70);
                match held.resize(wanted) {
                    Ok(()) => assert_eq!(held.bytes(), wanted as u64),
                    Err(_) => assert_eq!(held.bytes(), before, "a refusal takes nothing"),
                }
                let used = budget.used();
                assert!(used <= CAP, "{used} bytes taken");
                assert!(used >= held.bytes(), "what is held is counted");
            }
            match i {
                0 => drop(held),
                1 => drop(held.split_off()),
                _ => {
                    let mut other = budget.reservation("a test");
                    if other.grow(10).is_ok() {
                        held.absorb(other);
                    }
                }
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
    assert_eq!(budget.used(), 0, "all comes back");
}
