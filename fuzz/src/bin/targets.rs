//! Lists the targets, writes their seeds, and runs inputs without a fuzzing engine.
//!
//! ```text
//! cargo run --bin targets                          the names
//! cargo run --bin targets -- seeds TARGET FOLDER   its seeds as files
//! cargo run --bin targets -- run TARGET FILE…      a panic is a finding
//! ```

use std::process::ExitCode;

use marquetry_fuzz::targets::{ALL, find};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => ALL.iter().for_each(|target| println!("{}", target.name)),
        ["seeds", name, folder] if find(name).is_some() => {
            std::fs::create_dir_all(folder).expect("a folder");
            let seeds = find(name).map(|target| (target.seeds)()).unwrap_or_default();
            for (i, seed) in seeds.iter().enumerate() {
                std::fs::write(format!("{folder}/seed-{i:04}"), seed).expect("a file");
            }
            println!("{} seeds of {name}", seeds.len());
        }
        ["run", name, ref files @ ..] if find(name).is_some() => {
            let target = find(name).expect("a target");
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
