//! Mutation testing: plants faults in a copy of the library, and counts those that its tests find.
//!
//! ```text
//! git worktree add --detach ../mutants && cargo run --release -- ../mutants [COUNT] [SEED]
//! ```
//!
//! The faults are those of cargo-mutants, which builds the library once for each. Here one build
//! has all: each place becomes `if crate::mutant::on(ID) { changed } else { original }`, and a
//! variable of the environment says which is active ([`plant`]). Those that do not compile are
//! taken out. Each test runs by itself first, to record which mutants it reaches; then each mutant
//! runs the tests that reach it, in three stages, until one fails, crashes, or takes five times as
//! long as without it ([`run`]).
//!
//! All that was found stands in the folder `mutants` of the copy, and a run that was stopped goes
//! on from there. The draw does not depend on tests: with `dropped` and without the lines of
//! survivors, `results` can be moved into a newer copy, to try new tests on them.

mod places;
mod plant;
mod run;

use std::path::Path;
use std::{env, fs};

/// Folders and files whose places are mutated.
const MODULES: [&str; 6] =
    ["encoding", "levels", "thrift", "selection", "predicate", "write/column"];

/// A fault: one change at one place.
struct Mutant {
    id: u32,
    /// Of [`MODULES`].
    module: &'static str,
    file: String,
    bytes: std::ops::Range<usize>,
    text: String,
    /// The place and the change, for people.
    name: String,
}

fn main() {
    let mut arguments = env::args().skip(1);
    let root = arguments.next().expect("the first argument is a copy of the repository");
    let count = arguments.next().map_or(340, |count| count.parse().expect("a number of mutants"));
    let seed = arguments.next().map_or(1, |seed| seed.parse().expect("a seed"));
    env::set_current_dir(root).expect("the copy is a folder");
    fs::create_dir_all("mutants").expect("the copy can be written");
    println!("seed {seed}");
    let (mutants, places, all) = plant::drawn(count, seed);
    println!("{places} places, {all} mutants, {} drawn", mutants.len());
    if !Path::new(plant::PLANTED).exists() {
        plant::plant(&mutants);
    }
    let dropped = plant::dropped();
    let viable: Vec<Mutant> =
        mutants.into_iter().filter(|mutant| !dropped.contains(&mutant.id)).collect();
    println!("{} viable", viable.len());
    let rows = viable.iter().map(|it| format!("{}\t{}\t{}\n", it.id, it.module, it.name));
    fs::write("mutants/viable.tsv", rows.collect::<String>()).expect("the copy can be written");
    run::run(&viable);
}
