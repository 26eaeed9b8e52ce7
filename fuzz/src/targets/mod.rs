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
    /// Inputs of the test, by default: about a second's.
    pub cases: u64,
}

macro_rules! targets {
    ($($name:ident $cases:literal,)*) => {
        /// All targets.
        pub const ALL: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name::run,
            seeds: $name::seeds,
            cases: $cases,
        }),*];

        #[cfg(test)]
        mod tests {
            $(#[test]
            fn $name() {
                super::test(super::find(stringify!($name)).expect("a target"));
            })*
        }
    };
}

targets!(
    crypt 400,
    encoding 400,
    every_way 30,
    file 300,
    footer 4000,
    geo 20_000,
    inspect 200,
    page 1500,
    rewrite 150,
    roundtrip 60,
    select 150,
    snappy 4000,
    variant 6000,
);

/// The target of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

/// The target that `MARQUETRY_TARGET` names.
///
/// # Panics
/// If it names none.
#[must_use]
pub fn chosen() -> &'static Target {
    let name = std::env::var("MARQUETRY_TARGET").expect("MARQUETRY_TARGET names a target");
    find(&name).unwrap_or_else(|| panic!("there is no target {name}"))
}

/// Runs the seeds and mutants of them: `MARQUETRY_CASES` is how many, `MARQUETRY_SEED` which.
#[cfg(test)]
fn test(target: &Target) {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::{Mutex, PoisonError};

    /// The heap is counted of one target at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let cases: u64 = number("MARQUETRY_CASES").unwrap_or(target.cases);
    let seed = number("MARQUETRY_SEED").unwrap_or_else(|| fastrand::u64(..));
    let seeds = (target.seeds)();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mutants = (0..cases).map(|_| crate::mutate::mutant(&seeds, &mut rng));
    for (i, input) in seeds.iter().cloned().chain(mutants).enumerate() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
            let path = std::env::temp_dir().join(format!("marquetry-fuzz-{}-{seed}", target.name));
            std::fs::write(&path, &input).expect("a scratch file");
            println!("MARQUETRY_SEED={seed}, input {i}: {}", path.display());
            resume_unwind(panic);
        }
    }
}
