//! The targets, and what they share.

mod crypt;
mod encoding;
mod every_way;
mod file;
mod footer;
mod geo;
mod inspect;
pub(crate) mod page;
mod rewrite;
mod roundtrip;
mod select;
mod snappy;
mod variant;

pub mod reading;

/// A target: it panics on a finding.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:ident,)*) => {
        /// All targets.
        pub const ALL: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name::run,
            seeds: $name::seeds,
        }),*];

        #[cfg(test)]
        mod tests {
            $(#[test]
            fn $name() {
                super::test(bolero::check!(), super::find(stringify!($name)).expect("a target"));
            })*
        }
    };
}

targets!(
    crypt, encoding, every_way, file, footer, geo, inspect, page, rewrite, roundtrip, select,
    snappy, variant,
);

/// The target of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

/// An engine gives the inputs, or they are the seeds and mutants of them.
#[cfg(test)]
type Engine =
    bolero::TestTarget<bolero::ByteSliceGenerator, bolero::DefaultEngine, bolero::BorrowedInput>;

#[cfg(test)]
fn test(engine: Engine, target: &Target) {
    use std::sync::{Mutex, PoisonError};

    /// The heap is counted of one target at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(fuzzing)]
    engine.for_each(|input: &[u8]| (target.run)(input));
    #[cfg(not(fuzzing))]
    {
        use crate::mutate::{Mutant, Mutants};

        let seeds = (target.seeds)();
        for (i, seed) in seeds.iter().enumerate() {
            println!("seed {i}");
            (target.run)(seed);
        }
        println!("mutants");
        // For a second, if the environment does not state another time.
        let engine = engine.with_generator(Mutants(seeds));
        engine.for_each(|Mutant(input): &Mutant| (target.run)(input));
    }
}
