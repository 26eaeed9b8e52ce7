//! A program that lists targets, writes their seeds, and runs inputs without a fuzzing engine.
//!
//! ```text
//! targets                       the names
//! targets seeds TARGET FOLDER   its seeds as files
//! targets run TARGET FILE…      a panic is a finding
//! ```

use std::process::ExitCode;

use crate::targets::Target;

/// Does what the arguments of the program say.
///
/// # Panics
/// If a file cannot be read or written, and at a finding.
#[must_use]
pub fn run(targets: &[Target]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let target = args.get(1).and_then(|name| targets.iter().find(|target| target.name == *name));
    match (&args[..], target) {
        ([], _) => targets.iter().for_each(|target| println!("{}", target.name)),
        (["seeds", name, folder], Some(target)) => {
            std::fs::create_dir_all(folder).expect("a folder");
            let seeds = (target.seeds)();
            for (i, seed) in seeds.iter().enumerate() {
                std::fs::write(format!("{folder}/seed-{i:04}"), seed).expect("a file");
            }
            println!("{} seeds of {name}", seeds.len());
        }
        (["run", _, files @ ..], Some(target)) => {
            for file in files {
                (target.run)(&std::fs::read(file).expect("a file"));
                println!("{file}: no finding");
            }
        }
        _ => {
            eprintln!("targets [seeds TARGET FOLDER | run TARGET FILE…]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
