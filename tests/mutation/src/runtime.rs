//! Stands in the copy of the library as its module `mutant`: says which mutant is active, or
//! records which are reached.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const UNKNOWN: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;
static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: [AtomicU32; 4096] = [const { AtomicU32::new(0) }; 4096];

unsafe extern "C" {
    fn atexit(run: extern "C" fn()) -> i32;
}

/// True if the mutant `id` is active.
#[inline]
pub(crate) fn on(id: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active >= RECORDING {
        return recorded(id);
    }
    active == id
}

#[cold]
#[inline(never)]
fn recorded(id: u32) -> bool {
    if ACTIVE.load(Relaxed) == UNKNOWN {
        let active = std::env::var("MUTANT").map_or(0, |id| id.parse().unwrap());
        let records = std::env::var_os("MUTANTS_REACHED").is_some();
        let active = if records { RECORDING } else { active };
        if ACTIVE.compare_exchange(UNKNOWN, active, Relaxed, Relaxed).is_ok() && records {
            unsafe { atexit(write_reached) };
        }
        return on(id);
    }
    REACHED[id as usize].store(1, Relaxed);
    false
}

extern "C" fn write_reached() {
    let path = std::env::var_os("MUTANTS_REACHED").unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    for (id, reached) in REACHED.iter().enumerate() {
        if reached.load(Relaxed) == 1 {
            writeln!(file, "{id}").unwrap();
        }
    }
}
