//! Runs a target as a test: under a fuzzing engine; or on its seeds, and for a second on mutants of
//! them.

use std::sync::{Mutex, PoisonError};

#[cfg(not(fuzzing))]
#[path = "mutate.rs"]
mod mutate;

/// Bytes of an input, at most.
#[cfg(fuzzing)]
const MAX_LEN: usize = 1 << 16;

type Engine =
    bolero::TestTarget<bolero::ByteSliceGenerator, bolero::DefaultEngine, bolero::BorrowedInput>;

pub(crate) fn test(engine: Engine, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) {
    /// The heap is counted of one target at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(fuzzing)]
    {
        let _ = seeds;
        // Bolero cuts inputs after 4,096 bytes, unless it is told otherwise.
        engine.with_max_len(MAX_LEN).for_each(|input: &[u8]| run(input));
    }
    #[cfg(not(fuzzing))]
    {
        use mutate::{Mutant, Mutants};

        let seeds = seeds();
        for (i, seed) in seeds.iter().enumerate() {
            println!("seed {i}");
            run(seed);
        }
        println!("mutants");
        // For a second, if the environment does not state another time.
        let engine = engine.with_generator(Mutants(seeds));
        engine.for_each(|Mutant(input): &Mutant| run(input));
    }
}
