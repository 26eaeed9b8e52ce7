//! Makes mutants that are wrong below the codecs, which a random change of the bytes never reaches.
//!
//! A file is taken apart ([`file`]), its pages decompressed; levels, values, headers, indexes and
//! metadata are changed ([`mutate`]), and it is put together again with sizes, offsets and
//! checksums that fit, unless they are what was changed. Each mutant is then read in many ways
//! ([`paths`]). Everything follows from the seeds, a number and an index.

pub mod codecs;
pub mod file;
pub mod mutate;
pub mod paths;
pub mod seeds;

use fastrand::Rng;

use super::{encode, generate};

use file::Parts;
pub use paths::{Heap, note_panics, read_every_way};

/// A file that mutants are made of.
pub struct Seed {
    /// For reports.
    pub name: String,
    parts: Parts,
}

impl Seed {
    /// Takes a file apart; `None` if it is broken, or too large to be read thousands of times.
    pub fn new(name: impl Into<String>, file: &bytes::Bytes) -> Option<Self> {
        const MAX_FILE: usize = 128 << 10;
        if file.len() > MAX_FILE {
            return None;
        }
        Some(Self { name: name.into(), parts: Parts::new(file)? })
    }
}

/// A mutant, and what was done to make it.
pub struct Mutant {
    pub seed: usize,
    pub done: Vec<&'static str>,
    pub file: bytes::Bytes,
}

/// The mutant at `index` of the series `series`: it depends on nothing but these and the seeds.
pub fn mutant(seeds: &[Seed], series: u64, index: u64) -> Mutant {
    let mut rng = rng(series, index);
    let seed = rng.usize(..seeds.len());
    let donor = &seeds[rng.usize(..seeds.len())].parts;
    let mut parts = seeds[seed].parts.clone();
    let mut done = Vec::new();
    for _ in 0..[1, 1, 1, 2, 2, 3, 5][rng.usize(..7)] {
        done.push(mutate::change(&mut parts, donor, &mut rng));
    }
    let is_late = rng.u8(..8) == 0;
    if is_late {
        done.push("late");
    }
    Mutant { seed, done, file: laid_out(parts, is_late.then_some(rng)) }
}

/// A mutant by single changes. Each has numbers of its own, so that a fuzzer can keep, drop and add
/// changes one by one; those of `late` change the metadata once it fits.
pub fn changed(
    seed: &Seed,
    donor: &Seed,
    changes: impl IntoIterator<Item = Rng>,
    late: Option<Rng>,
) -> bytes::Bytes {
    let mut parts = seed.parts.clone();
    for mut rng in changes {
        mutate::change(&mut parts, &donor.parts, &mut rng);
    }
    laid_out(parts, late)
}

fn laid_out(parts: Parts, late: Option<Rng>) -> bytes::Bytes {
    let file = parts.lay_out(|meta| {
        if let Some(mut rng) = late {
            mutate::metadata(meta, &mut rng);
        }
    });
    file.into()
}

/// The numbers that a mutant is made of, and read with.
pub fn rng(series: u64, index: u64) -> Rng {
    let mut rng = Rng::with_seed(series.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index);
    // Neighbours begin alike.
    for _ in 0..4 {
        rng.u64(..);
    }
    rng
}
