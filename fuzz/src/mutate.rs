//! Random changes of bytes, for runs without a fuzzing engine.

use fastrand::Rng;

/// Bytes of a mutant, at most.
const MAX_LEN: usize = 1 << 16;

/// A mutant of one of the seeds.
#[must_use]
pub fn mutant(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut out = seeds[rng.usize(..seeds.len())].clone();
    for _ in 0..[0, 1, 1, 2, 4, 8][rng.usize(..6)] {
        let other = &seeds[rng.usize(..seeds.len())];
        change(&mut out, other, rng);
    }
    out.truncate(MAX_LEN);
    out
}

fn change(out: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    if out.is_empty() {
        out.push(rng.u8(..));
        return;
    }
    let at = rng.usize(..out.len());
    let few = rng.usize(1..=16).min(out.len() - at);
    match rng.u8(..8) {
        0 => out[at] ^= 1 << rng.u8(..8),
        1 => out[at] = [0, 1, 0x7F, 0x80, 0xFF, 16][rng.usize(..6)],
        2 => out[at] = out[at].wrapping_add(rng.u8(..)),
        3 => drop(out.drain(at..at + few)),
        4 => {
            let copy = out[at..at + few].to_vec();
            let to = rng.usize(..=out.len());
            out.splice(to..to, copy);
        }
        5 => out[at..at + few].fill_with(|| rng.u8(..)),
        6 if !other.is_empty() => {
            let from = rng.usize(..other.len());
            let len = rng.usize(1..=64).min(other.len() - from);
            let end = out.len().min(at + len);
            out.splice(at..end, other[from..from + len].iter().copied());
        }
        _ => out.truncate(at + 1),
    }
}
