//! Provides the seeds: files of a folder, or the random tables of the tests, written by the library
//! itself.

use std::path::Path;

use bytes::Bytes;

use super::{Seed, generate};

/// Files that the library's own writer makes.
pub fn generated(cases: u64) -> Vec<Seed> {
    let seed = |n| Seed::new(format!("case {n}"), &generate::case(n).file);
    (0..cases).filter_map(seed).collect()
}

/// The files of a folder and of those below it, sorted.
///
/// # Errors
/// The result of reading the folder.
pub fn folder(path: &Path) -> std::io::Result<Vec<Seed>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths {
        if path.is_dir() {
            seeds.extend(folder(&path)?);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let file = Bytes::from(bytes);
            // Panics here are found by the other mutator.
            let seed = std::panic::catch_unwind(|| Seed::new(path.display().to_string(), &file));
            seeds.extend(seed.ok().flatten());
        }
    }
    Ok(seeds)
}
