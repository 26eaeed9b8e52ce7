//! Tests a few mutants that are wrong below the codecs; `fuzz/` makes as many as wanted.

use crate::support::mutants::{mutant, note_panics, read_every_way, rng, seeds};
use crate::{HEAP, alone};

/// `MARQUETRY_MUTANTS` is how many, `MARQUETRY_MUTANTS_FROM` the first.
#[test]
fn a_mutant_ends_in_rows_or_in_an_error() {
    let number = |name, default| {
        std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(default)
    };
    let from = number("MARQUETRY_MUTANTS_FROM", 0);
    let count = number("MARQUETRY_MUTANTS", 300);
    let series = number("MARQUETRY_MUTANTS_SERIES", 1);
    let mut seeds = seeds::generated(60);
    if let Some(folder) = std::env::var_os("MARQUETRY_MUTANTS_SEEDS") {
        seeds.extend(seeds::folder(folder.as_ref()).unwrap());
    }
    assert!(seeds.len() > 30, "{} seeds", seeds.len());
    let _alone = alone();
    let skip = std::env::var("MARQUETRY_MUTANTS_SKIP").unwrap_or_default();
    let skip: Vec<&str> = skip.split(',').collect();
    let mut findings = 0;
    note_panics();
    for index in from..from + count {
        let mutant = mutant(&seeds, series, index);
        for finding in read_every_way(&mutant.file, &mut rng(!series, index), Some(HEAP), &skip) {
            findings += 1;
            let seed = &seeds[mutant.seed].name;
            println!(
                "FINDING mutant {index} of series {series} ({seed}; {}): {} {}",
                mutant.done.join(", "),
                finding.path,
                finding.what
            );
        }
        if let Some(folder) = std::env::var_os("MARQUETRY_MUTANTS_KEEP")
            && count == 1
        {
            let path = std::path::Path::new(&folder).join(format!("{series}_{index}.parquet"));
            std::fs::write(path, &mutant.file).unwrap();
        }
    }
    println!("{count} mutants of {} seeds, {findings} findings", seeds.len());
    _ = std::panic::take_hook();
    assert_eq!(findings, 0, "see above");
}
